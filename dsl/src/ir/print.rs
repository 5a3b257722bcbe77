//! The printed form of Kernel IR: location-free, the same bytes on every run and machine. [`super::parse`] reads it.
//!
//! ```text
//! %RESULT: TYPE, … = MNEMONIC %OPERAND, … key=value … {
//!   (%PARAMETER: TYPE, …)
//!   …
//!   yield %VALUE, …
//! }
//! ```
//!
//! Attributes that have their default are left out.

use std::fmt::{self, Display, Formatter};

use super::def::Family;
use super::parts::{Show, quoted};
use super::{Access, Bits, Block, ImageType, Inst, Kernel, LdsArray, Param, ParamKind, Scalar, Type, Value};

/// Version of the printed form, in its first line.
pub(super) const VERSION: u32 = 2;

/// A name of the author's: as it is if it is a word, else in quotes.
fn name(name: &str) -> String {
    let word = name.chars().all(|c| c.is_alphanumeric() || c == '_');
    if word && !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()) {
        name.to_owned()
    } else {
        quoted(name)
    }
}

impl Display for Value {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "%{}", self.0)
    }
}

impl Display for Access {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::ReadWrite => "read_write",
        })
    }
}

impl Display for Param {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.kind {
            ParamKind::Buffer { elem, len, access, align } => {
                write!(f, "{}: buffer<{elem}> len {len} {access} align {align}", name(self.name))
            }
            ParamKind::Texture { image: ImageType { elem, width, height }, filter, coordinates } => {
                let name = name(self.name);
                write!(f, "{name}: texture<{elem}> size {width}x{height} filter {filter} coordinates {coordinates}")
            }
            ParamKind::Surface(ImageType { elem, width, height }) => {
                write!(f, "{}: surface<{elem}> size {width}x{height}", name(self.name))
            }
            ParamKind::Scalar(s) => write!(f, "{}: {s}", name(self.name)),
        }
    }
}

impl Display for LdsArray {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} len {} align {}", name(self.name), self.elem, self.len, self.align)
    }
}

impl Display for Kernel {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "kernel_ir {VERSION}")?;
        let [gx, gy, gz] = self.launch.grid;
        let [bx, by, bz] = self.launch.block;
        write!(f, "kernel @{} wave {} grid {gx}x{gy}x{gz} block {bx}x{by}x{bz}", name(&self.name), self.wave)?;
        if let Some(n) = self.launch.waves_per_eu {
            write!(f, " waves_per_eu {n}")?;
        }
        if let Some(n) = self.launch.maxnreg {
            write!(f, " maxnreg {n}")?;
        }
        for family in Family::ALL {
            let flags = self.fast_math.of(family);
            if !flags.is_empty() {
                write!(f, " fast_{} {flags}", family.name())?;
            }
        }
        if self.fast_math.flush_subnormals {
            write!(f, " flush_subnormals")?;
        }
        writeln!(f, " {{")?;
        for (i, p) in self.params.iter().enumerate() {
            writeln!(f, "  param {} {p}", Value(i as u32))?;
        }
        for (i, a) in self.lds.iter().enumerate() {
            writeln!(f, "  lds #{i} {a}")?;
        }
        self.print_block(f, &self.body, 1)?;
        writeln!(f, "}}")
    }
}

/// A constant in the notation that reads back to the same bits: decimal where short and exact, else the bits in hex.
fn constant(bits: Bits, scalar: Scalar) -> String {
    let hex = || format!("0x{:01$x}", bits.0, scalar.bits() as usize / 4);
    match scalar {
        Scalar::Bool => (if bits.0 == 0 { "false" } else { "true" }).to_owned(),
        Scalar::F32 => {
            let v = f32::from_bits(bits.0 as u32);
            if v.is_finite() { format!("{v:?}") } else { hex() }
        }
        Scalar::F64 => {
            let v = f64::from_bits(bits.0);
            if v.is_finite() { format!("{v:?}") } else { hex() }
        }
        Scalar::F16 | Scalar::Bf16 => hex(),
        s if s.is_signed() => {
            let unused = 64 - s.bits();
            ((bits.0 << unused) as i64 >> unused).to_string()
        }
        _ => bits.0.to_string(),
    }
}

fn list(values: &[Value]) -> String {
    values.iter().map(Value::to_string).collect::<Vec<_>>().join(", ")
}

/// Collects the parts of one operation.
struct Line<'a> {
    result: Option<Type>,
    positional: Vec<String>,
    keyed: String,
    regions: Vec<&'a Block>,
    /// Regions are borrowed from the operation, which outlives this; [`Show`] cannot say so.
    blocks: Vec<&'a Block>,
}

impl Show for Line<'_> {
    fn value(&mut self, v: Value) {
        self.positional.push(v.to_string());
    }
    fn list(&mut self, v: &[Value]) {
        self.positional.push(format!("[{}]", list(v)));
    }
    fn word(&mut self, text: String) {
        self.positional.push(text);
    }
    fn constant(&mut self, bits: Bits) {
        // Without a result the kernel is malformed, and prints all the same.
        self.positional.push(self.result.map_or_else(|| format!("{:#x}", bits.0), |t| t.constant(bits)));
    }
    fn keyed(&mut self, key: &str, text: String) {
        self.keyed.push_str(&format!(" {key}={text}"));
    }
    fn region(&mut self, _: &Block) {
        self.regions.push(self.blocks[self.regions.len()]);
    }
}

impl Kernel {
    fn typed(&self, values: &[Value]) -> String {
        let ty = |v: &Value| self.values.get(v.index()).map_or_else(|| "?".to_owned(), Type::to_string);
        values.iter().map(|v| format!("{v}: {}", ty(v))).collect::<Vec<_>>().join(", ")
    }

    fn print_block(&self, f: &mut Formatter<'_>, block: &Block, depth: usize) -> fmt::Result {
        if !block.params.is_empty() {
            writeln!(f, "{:1$}({2})", "", depth * 2, self.typed(&block.params))?;
        }
        for inst in &block.insts {
            write!(f, "{:1$}", "", depth * 2)?;
            self.print_inst(f, inst, depth)?;
        }
        if !block.yields.is_empty() {
            writeln!(f, "{:1$}yield {2}", "", depth * 2, list(&block.yields))?;
        }
        Ok(())
    }

    fn print_inst(&self, f: &mut Formatter<'_>, inst: &Inst, depth: usize) -> fmt::Result {
        if !inst.results.is_empty() {
            write!(f, "{} = ", self.typed(&inst.results))?;
        }
        let result = inst.results.first().and_then(|r| self.values.get(r.index())).copied();
        let mut line =
            Line { result, positional: vec![], keyed: String::new(), regions: vec![], blocks: inst.op.blocks() };
        inst.op.fields(&mut line);
        write!(f, "{}", inst.op.def().name)?;
        if !line.positional.is_empty() {
            write!(f, " {}", line.positional.join(", "))?;
        }
        write!(f, "{}", line.keyed)?;
        for region in line.regions {
            writeln!(f, " {{")?;
            self.print_block(f, region, depth + 1)?;
            write!(f, "{:1$}}}", "", depth * 2)?;
        }
        writeln!(f)
    }
}

impl Type {
    /// The printed form of a constant of this type.
    pub fn constant(self, bits: Bits) -> String {
        constant(bits, self.scalar())
    }
}
