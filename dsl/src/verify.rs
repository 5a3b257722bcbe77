//! Accepts or refuses a kernel. What passes here means something on every device, and no code generator checks it again.

use crate::error::Refusal;
use crate::ir::{
    Access, Block, Inst, Kernel, LdsArray, MAX_ARGUMENT_BYTES, MAX_BUFFER_BYTES, Op, ParamKind, Scalar, Space, Type,
    Value,
};
use crate::target::Target;

/// Most elements a vector may have.
const MAX_VECTOR: u32 = 16;

/// Largest alignment of an LDS array, in bytes.
const MAX_LDS_ALIGN: u32 = 4096;

/// Deepest nesting of `if` and `for`; what executes a kernel keeps a stack of this size.
pub const MAX_DEPTH: usize = 64;

/// Widest memory access of one thread, in bytes.
const MAX_ACCESS: u32 = 16;

/// Checks types, definitions before uses, launch shape, LDS size and buffer extents of `kernel` for `target`.
///
/// # Errors
/// The first thing wrong, with the location of the author's call.
pub fn verify(kernel: &Kernel, target: Target) -> Result<(), Refusal> {
    whole(kernel, target).map_err(|message| Refusal { location: None, message })?;
    let mut scope = Scope { kernel, defined: vec![false; kernel.values.len()], depth: 0 };
    for i in 0..kernel.params.len() {
        scope.defined[i] = true;
    }
    scope.block(&kernel.body, &[])
}

/// What does not belong to one operation.
fn whole(kernel: &Kernel, target: Target) -> Result<(), String> {
    let chip = target.chip();
    let name = &kernel.name;
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(word) || name.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(format!("kernel name `{name}` is not made of letters, digits and `_`, starting with no digit"));
    }
    if kernel.wave != chip.wave {
        return Err(format!("traced for waves of {}, but {target} has waves of {}", kernel.wave, chip.wave));
    }
    let launch = &kernel.launch;
    let threads = launch.block_threads();
    if threads == 0 || threads > chip.max_block {
        let [x, y, z] = launch.block;
        return Err(format!("workgroup of {x}x{y}x{z} threads; {target} allows 1 to {} in all", chip.max_block));
    }
    for (axis, (n, max)) in ["x", "y", "z"].iter().zip(launch.grid.iter().zip(chip.max_grid)) {
        if *n > max {
            return Err(format!("grid of {n} workgroups along {axis}; {target} allows {max}"));
        }
    }
    if launch.waves_per_eu.is_some_and(|n| !(1..=8).contains(&n)) {
        return Err(format!("waves_per_eu {}; allowed are 1 to 8", launch.waves_per_eu.unwrap_or(0)));
    }
    if launch.maxnreg.is_some_and(|n| !(16..=255).contains(&n)) {
        return Err(format!("maxnreg {}; allowed are 16 to 255", launch.maxnreg.unwrap_or(0)));
    }
    if kernel.params.len() > (MAX_ARGUMENT_BYTES / 2) as usize || kernel.abi_bytes() > MAX_ARGUMENT_BYTES {
        let n = kernel.params.len();
        return Err(format!("{n} arguments take more than the {MAX_ARGUMENT_BYTES} bytes that one launch can pass"));
    }
    if kernel.params.len() > kernel.values.len() {
        return Err("a parameter has no value".to_owned());
    }
    for (i, p) in kernel.params.iter().enumerate() {
        if kernel.values[i] != p.ty() {
            return Err(format!("parameter `{}` is {}, its value {}", p.name, p.ty(), kernel.values[i]));
        }
        match p.kind {
            ParamKind::Buffer { elem, len, align, .. } => {
                if elem == Scalar::Bool {
                    return Err(format!("buffer `{}` holds bool, which has no memory form; use u32", p.name));
                }
                if len.checked_mul(u64::from(elem.bytes())).is_none_or(|b| b > MAX_BUFFER_BYTES) {
                    return Err(format!(
                        "buffer `{}` has {len} elements of {elem}, past the {MAX_BUFFER_BYTES} bytes that one buffer can address",
                        p.name
                    ));
                }
                if !align.is_power_of_two() || align < elem.bytes() || align > 4096 {
                    return Err(format!(
                        "buffer `{}` is aligned to {align}; allowed are powers of two from {} to 4096",
                        p.name,
                        elem.bytes()
                    ));
                }
            }
            ParamKind::Scalar(Scalar::Bool) => {
                return Err(format!("scalar `{}` is bool, which has no memory form; use u32", p.name));
            }
            ParamKind::Scalar(_) => {}
        }
    }
    for a in &kernel.lds {
        let allowed = a.elem.bytes()..=MAX_LDS_ALIGN;
        if a.elem == Scalar::Bool || a.len == 0 || !a.align.is_power_of_two() || !allowed.contains(&a.align) {
            return Err(format!(
                "LDS array `{}` of {} {}, aligned to {}; allowed are 1 or more elements with a memory form and powers of \
                 two from the element's size to {MAX_LDS_ALIGN}",
                a.name, a.len, a.elem, a.align
            ));
        }
    }
    let size = |a: &LdsArray| u64::from(a.len) * u64::from(a.elem.bytes()) + u64::from(MAX_LDS_ALIGN);
    // The layout is computed in 32 bits, so the sum must fit first.
    if kernel.lds.iter().map(size).sum::<u64>() > 1 << 30 || kernel.lds_layout().1 > chip.lds_bytes {
        let arrays: Vec<String> = kernel.lds.iter().map(|a| format!("{} of {} {}", a.name, a.len, a.elem)).collect();
        let arrays = arrays.join(", ");
        return Err(format!("LDS arrays ({arrays}) need more than the {} bytes {target} has", chip.lds_bytes));
    }
    Ok(())
}

struct Scope<'a> {
    kernel: &'a Kernel,
    defined: Vec<bool>,
    /// Regions around the current block.
    depth: usize,
}

impl Scope<'_> {
    fn ty(&self, v: Value) -> Result<Type, String> {
        match self.defined.get(v.index()) {
            Some(true) => Ok(self.kernel.ty(v)),
            _ => {
                Err("uses a value outside the region that defines it; hand it out of `if_else` or `for_range`"
                    .to_owned())
            }
        }
    }

    fn define(&mut self, v: Value) -> Result<(), String> {
        match self.defined.get_mut(v.index()) {
            Some(d) if !*d => {
                *d = true;
                Ok(())
            }
            _ => Err(format!("{v} is defined twice or has no type")),
        }
    }

    fn undefine(&mut self, values: impl IntoIterator<Item = Value>) {
        for v in values {
            self.defined[v.index()] = false;
        }
    }

    /// Checks a block and forgets what it defined.
    fn block(&mut self, block: &Block, yields: &[Type]) -> Result<(), Refusal> {
        let unlocated = |message| Refusal { location: None, message };
        for p in &block.params {
            self.define(*p).map_err(unlocated)?;
        }
        for inst in &block.insts {
            let number = inst.number.0 as usize;
            if number == 0 || number > self.kernel.locations.len() {
                return Err(unlocated(format!("operation number {number} has no location")));
            }
            let refuse = |message| Refusal { location: Some(self.kernel.location(inst.number)), message };
            self.inst(inst).map_err(refuse)?;
            self.nested(inst)?;
            for r in &inst.results {
                self.define(*r).map_err(refuse)?;
            }
        }
        let location = block.insts.last().map(|i| self.kernel.location(i.number));
        let refuse = |message| Refusal { location, message };
        let given = block.yields.iter().map(|v| self.ty(*v)).collect::<Result<Vec<_>, _>>().map_err(refuse)?;
        if given != yields {
            let (given, wanted) = (listed(&given), listed(yields));
            return Err(refuse(format!("the region hands out {given} where {wanted} is wanted")));
        }
        let defined = block.insts.iter().flat_map(|i| &i.results).chain(&block.params);
        self.undefine(defined.copied().collect::<Vec<_>>());
        Ok(())
    }

    fn nested(&mut self, inst: &Inst) -> Result<(), Refusal> {
        let blocks = inst.op.blocks();
        if blocks.is_empty() {
            return Ok(());
        }
        let refuse = |message| Refusal { location: Some(self.kernel.location(inst.number)), message };
        if self.depth == MAX_DEPTH {
            return Err(refuse(format!("control flow nested deeper than {MAX_DEPTH} regions")));
        }
        let results: Vec<Type> = inst.results.iter().map(|r| self.kernel.values[r.index()]).collect();
        if let Some(other) = results.iter().find(|t| !t.is_data() && !matches!(t, Type::Ptr(..))) {
            return Err(refuse(format!("hands out {other}; only data and LDS pointers leave a region")));
        }
        self.depth += 1;
        blocks.into_iter().try_for_each(|b| self.block(b, &results))?;
        self.depth -= 1;
        Ok(())
    }

    fn inst(&self, inst: &Inst) -> Result<(), String> {
        let known = |r: &Value| self.kernel.values.get(r.index()).copied().ok_or("a result has no type".to_owned());
        let results = inst.results.iter().map(known).collect::<Result<Vec<_>, _>>()?;
        let operands = inst.op.operands().into_iter().map(|v| self.ty(v)).collect::<Result<Vec<_>, _>>()?;
        let result = || match results[..] {
            [one] if one.lanes() == 0 || one.lanes() > MAX_VECTOR => {
                Err(format!("a vector of {} elements; allowed are 1 to {MAX_VECTOR}", one.lanes()))
            }
            [one] => Ok(one),
            _ => Err(format!("has {} results instead of 1", results.len())),
        };
        let nothing = || if results.is_empty() { Ok(()) } else { Err("has a result".to_owned()) };
        let same = |want: Type, what: &str, got: Type| {
            if want == got { Ok(()) } else { Err(format!("{what} is {got} where {want} is wanted")) }
        };
        let bool_ = Type::Scalar(Scalar::Bool);
        let u32_ = Type::Scalar(Scalar::U32);
        match &inst.op {
            Op::Const(bits) => {
                let ty = result()?;
                let width = ty.scalar().bits();
                if !ty.is_data() || (width < 64 && bits.0 >> width != 0) {
                    return Err(format!("constant 0x{:x} does not fit {ty}", bits.0));
                }
                Ok(())
            }
            Op::ThreadId(_) | Op::BlockId(_) => same(u32_, "the result", result()?),
            Op::Unary(op, _) => {
                let ty = result()?;
                same(ty, "the operand", operands[0])?;
                let s = ty.scalar();
                let fits = ty.is_data() && op.def().on.contains(s);
                if fits { Ok(()) } else { Err(format!("`{op}` of {ty}")) }
            }
            Op::Binary(op, ..) => {
                let ty = result()?;
                same(ty, "the left operand", operands[0])?;
                same(ty, "the right operand", operands[1])?;
                let s = ty.scalar();
                let fits = ty.is_data() && op.def().on.contains(s);
                if fits { Ok(()) } else { Err(format!("`{op}` of {ty}")) }
            }
            Op::Compare(..) => {
                let ty = operands[0];
                same(ty, "the right operand", operands[1])?;
                if !ty.is_data() {
                    return Err(format!("comparison of {ty}"));
                }
                same(ty.with_scalar(Scalar::Bool), "the result", result()?)
            }
            Op::Select { .. } => {
                let ty = result()?;
                same(bool_, "the condition", operands[0])?;
                same(ty, "the first choice", operands[1])?;
                same(ty, "the second choice", operands[2])?;
                if ty.is_data() { Ok(()) } else { Err(format!("select of {ty}")) }
            }
            Op::Convert(_) => {
                let (from, to) = (operands[0], result()?);
                let (a, b) = (from.scalar(), to.scalar());
                let fits = from.is_data()
                    && to == from.with_scalar(b)
                    && a != b
                    && ((a.is_int() && (b.is_int() || b == Scalar::F32))
                        || matches!((a, b), (Scalar::Bf16, Scalar::F32) | (Scalar::F32, Scalar::Bf16)));
                if fits { Ok(()) } else { Err(format!("no conversion from {from} to {to}")) }
            }
            Op::Bitcast(_) => {
                let (from, to) = (operands[0], result()?);
                let plain = |t: Type| t.is_data() && t.scalar() != Scalar::Bool;
                if plain(from) && plain(to) && from.bytes() == to.bytes() {
                    Ok(())
                } else {
                    Err(format!("no bitcast from {from} to {to}"))
                }
            }
            Op::VectorFrom(elements) => {
                let ty = result()?;
                let Type::Vector(s, n) = ty else { return Err(format!("makes a vector, but the result is {ty}")) };
                if elements.len() != n as usize {
                    return Err(format!("{} elements for {ty}", elements.len()));
                }
                operands.iter().try_for_each(|t| same(Type::Scalar(s), "an element", *t))
            }
            Op::Extract(_, i) => {
                let Type::Vector(s, n) = operands[0] else { return Err(format!("element of {}", operands[0])) };
                if *i >= n {
                    return Err(format!("element {i} of {}", operands[0]));
                }
                same(Type::Scalar(s), "the result", result()?)
            }
            Op::LdsBase(i) => match self.kernel.lds.get(*i as usize) {
                Some(a) => same(Type::Ptr(Space::Lds, a.elem), "the result", result()?),
                None => Err(format!("LDS array #{i} is not declared")),
            },
            Op::PtrAdd(..) => {
                same(result()?, "the pointer", operands[0])?;
                same(u32_, "the element count", operands[1])?;
                if matches!(operands[0], Type::Ptr(..)) { Ok(()) } else { Err(format!("ptr_add of {}", operands[0])) }
            }
            Op::PtrLoad { .. } => access(operands[0], result()?, true),
            Op::PtrStore { .. } => {
                nothing()?;
                access(operands[1], operands[0], true)
            }
            Op::BufferLoad { buffer, .. } => {
                same(u32_, "the offset", operands[1])?;
                self.buffer_access(*buffer, Access::Write, "loads from", "written")?;
                access(operands[0], result()?, false)
            }
            Op::BufferStore { buffer, .. } => {
                nothing()?;
                same(u32_, "the offset", operands[2])?;
                self.buffer_access(*buffer, Access::Read, "stores to", "read")?;
                access(operands[1], operands[0], false)
            }
            Op::Barrier => nothing(),
            Op::If { then, otherwise, .. } => {
                same(bool_, "the condition", operands[0])?;
                if then.params.is_empty() && otherwise.params.is_empty() {
                    Ok(())
                } else {
                    Err("a branch of `if` has parameters".to_owned())
                }
            }
            Op::For { step, body, init, .. } => {
                same(u32_, "the first index", operands[0])?;
                same(u32_, "the end", operands[1])?;
                if *step == 0 {
                    return Err("a loop with step 0".to_owned());
                }
                if body.params.len() != init.len() + 1 || init.len() != results.len() {
                    return Err("a loop whose carried values do not match its body".to_owned());
                }
                let params = body.params.iter().map(known).collect::<Result<Vec<_>, _>>()?;
                same(u32_, "the loop index", params[0])?;
                for ((p, i), r) in params[1..].iter().zip(&operands[2..]).zip(&results) {
                    same(*p, "an initial carried value", *i)?;
                    same(*p, "a carried result", *r)?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn buffer_access(&self, buffer: Value, forbidden: Access, does: &str, only: &str) -> Result<(), String> {
        match self.kernel.params.get(buffer.index()).map(|p| (p.name, p.kind)) {
            Some((name, ParamKind::Buffer { access, .. })) if access == forbidden => {
                Err(format!("{does} buffer `{name}`, which is declared as only {only}"))
            }
            Some((_, ParamKind::Buffer { .. })) => Ok(()),
            _ => Err("accesses something that is not a buffer parameter".to_owned()),
        }
    }
}

/// Types for a message.
pub(crate) fn listed(types: &[Type]) -> String {
    if types.is_empty() {
        "nothing".to_owned()
    } else {
        types.iter().map(Type::to_string).collect::<Vec<_>>().join(", ")
    }
}

/// A memory access of `data` through `place`; LDS pointers are typed, buffers are bytes.
fn access(place: Type, data: Type, typed: bool) -> Result<(), String> {
    if !data.is_data() || data.scalar() == Scalar::Bool {
        return Err(format!("memory access of {data}"));
    }
    if data.bytes() > MAX_ACCESS || !data.bytes().is_power_of_two() {
        return Err(format!("memory access of {data}, {} bytes; allowed are 1, 2, 4, 8 and 16", data.bytes()));
    }
    match place {
        Type::Ptr(_, s) if typed && s == data.scalar() => Ok(()),
        Type::Ptr(_, s) if typed => Err(format!("access of {data} through a pointer to {s}")),
        Type::Buffer(_) if !typed => Ok(()),
        other => Err(format!("memory access through {other}")),
    }
}
