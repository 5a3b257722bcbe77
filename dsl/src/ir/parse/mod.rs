//! Reads the printed form of Kernel IR. [`super::print`] says what it looks like; here blanks and line ends are free, `;`
//! begins a comment, values may have any names, and the attributes of an operation any order.

mod lex;
mod literal;
mod op;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use super::print::VERSION;
use super::{
    Access, Block, Coordinates, FastFlags, FastMath, Filter, ImageType, Inst, Kernel, Launch, LdsArray, Location, Name,
    Op, OpNumber, Param, ParamKind, Scalar, Space, Type, Value, def::Family, intern,
};
use crate::verify::MAX_DEPTH;
use lex::{Kind, Token, tokens};
use op::Attributes;

/// A text that is no kernel: where, what stands there, and what was wanted.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{location}: found {found} where {wanted} is wanted")]
pub struct ParseError {
    /// The place.
    pub location: Location,
    /// What stands there.
    pub found: String,
    /// What should stand there.
    pub wanted: String,
}

/// Reads one kernel. Values and operations are numbered in the order in which they stand, and every operation's location is
/// its place in `file`, the name that messages give the text. What is read is well formed as text only: [`crate::verify`]
/// says whether it is a kernel.
///
/// ```
/// use lathe_dsl::{Target, ir, verify};
///
/// let text = "
/// kernel_ir 2
/// kernel @double wave 64 grid 2x1x1 block 64x1x1 {
///   param %x x: buffer<f32> len 64 read_write align 4
///   %lane: u32 = thread_id x    ; values may have names
///   %old: f32 = buffer_load %x, %lane
///   %sum: f32 = add %old, %old
///   buffer_store %sum, %x, %lane
/// }";
/// let kernel = ir::parse(text, "double.kir").unwrap();
/// verify::verify(&kernel, Target::GFX950).unwrap();
/// assert_eq!(ir::parse(&kernel.to_string(), "again").unwrap(), kernel);
///
/// let error = ir::parse(&text.replace("f32 = add", "f33 = add"), "double.kir").unwrap_err();
/// assert_eq!(error.to_string(), "double.kir:7:9: found `f33` where a type is wanted");
/// ```
///
/// # Errors
/// The first place where the text is not the printed form of a kernel.
pub fn parse(text: &str, file: &str) -> Result<Kernel, ParseError> {
    let file = intern(file.to_owned());
    let tokens = tokens(text, file)?;
    let parser = Parser {
        tokens,
        at: 0,
        file,
        names: HashMap::new(),
        values: vec![],
        locations: vec![],
        depth: 0,
        current: Current::default(),
    };
    parser.kernel()
}

type Result<T, E = ParseError> = std::result::Result<T, E>;

struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    at: usize,
    file: Name,
    /// Values by name, and the line of their definition.
    names: HashMap<&'a str, (Value, u32)>,
    values: Vec<Type>,
    locations: Vec<Location>,
    /// Regions around the current place.
    depth: usize,
    current: Current,
}

/// The operation that is being read.
#[derive(Default)]
struct Current {
    /// Type of its first result.
    result: Option<Type>,
    /// Whether a positional operand was read.
    positional: bool,
    /// Its attributes, once they are read.
    attributes: Option<Attributes>,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> &Token<'a> {
        &self.tokens[self.at]
    }

    /// The token and moves behind it; stays at the end.
    fn next(&mut self) -> Token<'a> {
        let token = self.tokens[self.at].clone();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    fn wrong(&self, token: &Token<'_>, wanted: impl Into<String>) -> ParseError {
        ParseError { location: token.location(self.file), found: token.found(), wanted: wanted.into() }
    }

    fn wrong_here<T>(&self, wanted: impl Into<String>) -> Result<T> {
        Err(self.wrong(self.peek(), wanted))
    }

    fn is(&self, text: &str) -> bool {
        let token = self.peek();
        matches!(token.kind, Kind::Mark | Kind::Word) && token.text == text
    }

    fn accept(&mut self, text: &str) -> bool {
        let found = self.is(text);
        if found {
            self.next();
        }
        found
    }

    /// A mark or a certain word.
    fn expect(&mut self, text: &str) -> Result<()> {
        if self.accept(text) { Ok(()) } else { self.wrong_here(format!("`{text}`")) }
    }

    /// A word or number that `parse` understands.
    fn read<T>(&mut self, wanted: &str, parse: impl FnOnce(&str) -> Option<T>) -> Result<T> {
        let token = self.peek();
        match token.kind {
            Kind::Word | Kind::Number => match parse(token.text) {
                Some(value) => {
                    self.next();
                    Ok(value)
                }
                None => self.wrong_here(wanted),
            },
            _ => self.wrong_here(wanted),
        }
    }

    fn number<T: std::str::FromStr>(&mut self, what: &str) -> Result<T> {
        self.read(what, |t| t.parse().ok().filter(|_| t.starts_with(|c: char| c.is_ascii_digit())))
    }

    /// A name of the author's: a word, or anything in quotes.
    fn name(&mut self) -> Result<String> {
        let token = self.next();
        match token.kind {
            Kind::Word => Ok(token.text.to_owned()),
            Kind::Text(text) => Ok(text),
            _ => Err(self.wrong(&token, "a name")),
        }
    }

    fn kernel(mut self) -> Result<Kernel> {
        self.version()?;
        self.expect("kernel")?;
        self.expect("@")?;
        let name = self.name()?;
        let mut kernel = Kernel {
            name,
            wave: 0,
            launch: Launch { grid: [0; 3], block: [0; 3], waves_per_eu: None, maxnreg: None },
            fast_math: FastMath::STRICT,
            params: vec![],
            lds: vec![],
            values: vec![],
            body: Block::default(),
            locations: vec![],
        };
        self.header(&mut kernel)?;
        self.expect("{")?;
        while self.is("param") {
            kernel.params.push(self.param()?);
        }
        while self.is("lds") {
            let array = self.lds(kernel.lds.len())?;
            kernel.lds.push(array);
        }
        kernel.body = self.block()?;
        self.expect("}")?;
        if self.peek().kind != Kind::End {
            return self.wrong_here("the end of the text");
        }
        Ok(Kernel { values: self.values, locations: self.locations, ..kernel })
    }

    fn version(&mut self) -> Result<()> {
        let wanted = format!("`kernel_ir {VERSION}`, the one version that is known,");
        let start = self.next();
        if start.text != "kernel_ir" {
            return Err(self.wrong(&start, wanted));
        }
        let version = self.next();
        if version.text == VERSION.to_string() {
            return Ok(());
        }
        Err(ParseError { found: format!("`kernel_ir {}`", version.text), ..self.wrong(&start, wanted) })
    }

    /// What stands between the kernel's name and its `{`, each at most once, in any order.
    fn header(&mut self, kernel: &mut Kernel) -> Result<()> {
        const WANTED: &str = "wave, grid, block, waves_per_eu, maxnreg, fast_FAMILY, flush_subnormals or `{`";
        let mut seen: Vec<&str> = vec![];
        while !self.is("{") {
            let key = self.next();
            if key.kind != Kind::Word {
                return Err(self.wrong(&key, WANTED));
            }
            if seen.contains(&key.text) {
                return Err(self.wrong(&key, "what is not said yet"));
            }
            seen.push(key.text);
            match key.text {
                "wave" => kernel.wave = self.number("lanes of a wave")?,
                "grid" => kernel.launch.grid = self.extent()?,
                "block" => kernel.launch.block = self.extent()?,
                "waves_per_eu" => kernel.launch.waves_per_eu = Some(self.number("a number of waves")?),
                "maxnreg" => kernel.launch.maxnreg = Some(self.number("a number of registers")?),
                "flush_subnormals" => kernel.fast_math = kernel.fast_math.flush(),
                word => {
                    let family = Family::ALL.into_iter().find(|f| word.strip_prefix("fast_") == Some(f.name()));
                    let family = family.ok_or_else(|| self.wrong(&key, WANTED))?;
                    loop {
                        let flag = self.read("a fast-math flag", FastFlags::named)?;
                        kernel.fast_math = kernel.fast_math.allow(family, flag);
                        if !self.accept("|") {
                            break;
                        }
                    }
                }
            }
        }
        match ["wave", "grid", "block"].iter().find(|k| !seen.contains(k)) {
            Some(missing) => self.wrong_here(format!("`{missing}`")),
            None => Ok(()),
        }
    }

    /// `4x2x1`.
    fn extent(&mut self) -> Result<[u32; 3]> {
        self.read("an extent along x, y and z, such as 4x2x1,", |t| {
            let numbers: Option<Vec<u32>> = t.split('x').map(digits).collect();
            numbers?.try_into().ok()
        })
    }

    fn param(&mut self) -> Result<Param> {
        self.expect("param")?;
        let value = self.value_name()?;
        let name = intern(self.name()?);
        self.expect(":")?;
        let kind = match self.ty()? {
            Type::Buffer(elem) => {
                self.expect("len")?;
                let len = self.number("a number of elements")?;
                let all = [Access::Read, Access::Write, Access::ReadWrite];
                let access =
                    self.read("one of read, write, read_write", |t| all.into_iter().find(|a| a.to_string() == t))?;
                self.expect("align")?;
                let align = self.number("an alignment in bytes")?;
                ParamKind::Buffer { elem, len, access, align }
            }
            Type::Texture(elem) => {
                let image = self.image(elem)?;
                self.expect("filter")?;
                let filter = self.read("nearest or linear", Filter::named)?;
                self.expect("coordinates")?;
                let coordinates = self.read("texels or normalized", Coordinates::named)?;
                ParamKind::Texture { image, filter, coordinates }
            }
            Type::Surface(elem) => ParamKind::Surface(self.image(elem)?),
            Type::Scalar(s) => ParamKind::Scalar(s),
            _ => return Err(self.wrong(&self.tokens[self.at - 1], "a scalar, buffer or image type")),
        };
        let param = Param { name, kind };
        self.define(&value, param.ty())?;
        Ok(param)
    }

    /// `size 4x2`.
    fn image(&mut self, elem: Scalar) -> Result<ImageType> {
        self.expect("size")?;
        self.read("a width and a height, such as 4x2,", |t| {
            let (width, height) = t.split_once('x')?;
            Some(ImageType { elem, width: digits(width)?, height: digits(height)? })
        })
    }

    fn lds(&mut self, index: usize) -> Result<LdsArray> {
        self.expect("lds")?;
        let number = self.next();
        let wanted = format!("#{index}");
        if number.text != wanted {
            return Err(self.wrong(&number, format!("`{wanted}`")));
        }
        let name = intern(self.name()?);
        self.expect(":")?;
        let elem = self.read("an element type", Scalar::named)?;
        self.expect("len")?;
        let len = self.number("a number of elements")?;
        self.expect("align")?;
        let align = self.number("an alignment in bytes")?;
        Ok(LdsArray { name, elem, len, align })
    }

    fn ty(&mut self) -> Result<Type> {
        let space = [Space::Lds, Space::Global].into_iter().find(|s| self.is(s.name()));
        let of: Option<fn(Scalar) -> Type> = match () {
            () if self.is("buffer") => Some(Type::Buffer),
            () if self.is("texture") => Some(Type::Texture),
            () if self.is("surface") => Some(Type::Surface),
            () => None,
        };
        if space.is_some() || of.is_some() {
            self.next();
            self.expect("<")?;
            let elem = self.read("an element type", Scalar::named)?;
            self.expect(">")?;
            return Ok(space.map_or_else(|| of.unwrap_or(Type::Buffer)(elem), |space| Type::Ptr(space, elem)));
        }
        self.read("a type", |t| match (Scalar::named(t), t.rsplit_once('x')) {
            (Some(s), _) => Some(Type::Scalar(s)),
            (None, Some((s, n))) => Some(Type::Vector(Scalar::named(s)?, digits(n)?)),
            (None, None) => None,
        })
    }

    /// `%NAME`.
    fn value_name(&mut self) -> Result<Token<'a>> {
        let token = self.next();
        if token.kind == Kind::Value { Ok(token) } else { Err(self.wrong(&token, "a value, such as %0,")) }
    }

    fn define(&mut self, name: &Token<'a>, ty: Type) -> Result<Value> {
        let value = Value(self.values.len() as u32);
        if let Some((_, line)) = self.names.insert(name.text, (value, name.line)) {
            let found = format!("`{}`, which line {line} defines,", name.text);
            return Err(ParseError { found, ..self.wrong(name, "a new name") });
        }
        self.values.push(ty);
        Ok(value)
    }

    fn used(&mut self) -> Result<Value> {
        let name = self.value_name()?;
        match self.names.get(name.text) {
            Some((value, _)) => Ok(*value),
            None => Err(self.wrong(&name, "a value that is defined before")),
        }
    }

    /// Values separated by commas, at least one.
    fn used_list(&mut self) -> Result<Vec<Value>> {
        let mut list = vec![self.used()?];
        while self.accept(",") {
            list.push(self.used()?);
        }
        Ok(list)
    }

    /// `%NAME: TYPE, …`, at least one.
    fn typed(&mut self) -> Result<Vec<(Token<'a>, Type)>> {
        let mut list = vec![];
        loop {
            let name = self.value_name()?;
            self.expect(":")?;
            list.push((name, self.ty()?));
            if !self.accept(",") {
                return Ok(list);
            }
        }
    }

    fn define_all(&mut self, list: Vec<(Token<'a>, Type)>) -> Result<Vec<Value>> {
        list.iter().map(|(name, ty)| self.define(name, *ty)).collect()
    }

    /// Parameters, operations and yields, up to the `}`.
    fn block(&mut self) -> Result<Block> {
        let mut block = Block::default();
        if self.accept("(") {
            let params = self.typed()?;
            self.expect(")")?;
            block.params = self.define_all(params)?;
        }
        while !self.is("}") {
            if self.accept("yield") {
                block.yields = self.used_list()?;
                if !self.is("}") {
                    return self.wrong_here("`}`");
                }
                break;
            }
            let inst = self.inst()?;
            block.insts.push(inst);
        }
        Ok(block)
    }

    fn inst(&mut self) -> Result<Inst> {
        let location = self.peek().location(self.file);
        let results = if self.peek().kind == Kind::Value { self.typed()? } else { vec![] };
        if !results.is_empty() {
            self.expect("=")?;
        }
        let mnemonic = self.next();
        self.locations.push(location);
        let number = OpNumber(self.locations.len() as u32);
        let current = Current { result: results.first().map(|(_, ty)| *ty), ..Current::default() };
        let outer = std::mem::replace(&mut self.current, current);
        let op = match mnemonic.kind {
            Kind::Word => Op::read(mnemonic.text, self)?,
            _ => None,
        };
        let op = op.ok_or_else(|| self.wrong(&mnemonic, "an operation, `yield` or `}`"))?;
        self.finish_attributes(mnemonic.text)?;
        self.current = outer;
        let results = self.define_all(results)?;
        Ok(Inst { number, op, results })
    }

    fn nested_block(&mut self) -> Result<Block> {
        if self.depth == MAX_DEPTH {
            return self.wrong_here(format!("control flow nested at most {MAX_DEPTH} deep"));
        }
        let outer = std::mem::take(&mut self.current);
        self.depth += 1;
        self.expect("{")?;
        let block = self.block()?;
        self.expect("}")?;
        self.depth -= 1;
        self.current = outer;
        Ok(block)
    }
}

/// A plain decimal number.
fn digits(text: &str) -> Option<u32> {
    text.parse().ok().filter(|_| text.starts_with(|c: char| c.is_ascii_digit()))
}
