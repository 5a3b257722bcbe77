//! Accepts or refuses a kernel. What passes here means something on every device, and no code generator checks it again.

mod budget;
mod lacks;
mod lds;
mod matrix;
mod memory;
mod narrow;
mod origins;
mod places;
mod regions;
mod residues;
mod rules;
mod together;

use crate::error::{Refusal, Warning};
use crate::facts::Facts;
use crate::ir::{
    Block, Inst, Kernel, Location, MAX_ARGUMENT_BYTES, MAX_BUFFER_BYTES, MAX_IMAGES, Op, ParamKind, Scalar, Type, Value,
};
use crate::target::Target;
use crate::uniform::Uniformity;
pub use budget::OP_BUDGET;
pub use lacks::lacks;
use origins::Origins;

/// Most elements a vector may have.
pub const MAX_VECTOR: u32 = 64;

/// Largest alignment of an LDS array and of a pointer access, in bytes.
pub const MAX_ALIGN: u32 = 4096;

/// Deepest nesting of regions; what executes a kernel keeps a stack of this size.
pub const MAX_DEPTH: usize = 64;

/// Widest memory access of one thread, in bytes; a scalar load takes up to 64.
pub const MAX_ACCESS: u32 = 16;

/// Oldest mark that [`Op::WaitAsyncMark`] can name.
pub const MAX_MARK: u32 = 31;

/// Checks `kernel` for `target`: types, definitions before uses, launch shape, sizes; that barriers and exchanges between
/// lanes stand where the threads they are about come together; that no access is provably misplaced, misaligned or of LDS that
/// nothing was stored to. An accepted kernel may come with warnings.
///
/// # Errors
/// The first thing wrong, with the location of the author's call.
pub fn verify(kernel: &Kernel, target: Target) -> Result<Vec<Warning>, Refusal> {
    whole(kernel, target).map_err(|message| Refusal { location: None, message })?;
    lds::fits(kernel, target)?;
    let values = kernel.values.len();
    let mut scope = Scope {
        kernel,
        target,
        defined: vec![false; values],
        constants: vec![false; values],
        sealed: None,
        origins: Origins::of(kernel),
        depth: 0,
    };
    for i in 0..kernel.params.len() {
        scope.defined[i] = true;
    }
    scope.block(&kernel.body, &[], None)?;
    let facts = Facts::of(kernel);
    together::check(kernel, &Uniformity::of(kernel, &facts))?;
    let mut warnings = places::check(kernel, &facts)?;
    lds::check(kernel)?;
    warnings.extend(budget::check(kernel, &facts));
    Ok(warnings)
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
                if !elem.in_memory() {
                    return Err(format!("buffer `{}` holds {elem}, {}", p.name, no_memory_form(elem)));
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
            ParamKind::Texture { image, .. } | ParamKind::Surface(image) => {
                lacks::lacks_param(p.kind, target)
                    .map_or_else(|| image.check(), Err)
                    .map_err(|why| format!("image `{}` {why}", p.name))?;
            }
            ParamKind::Scalar(s) if !s.in_memory() => {
                return Err(format!("scalar `{}` is {s}, {}", p.name, no_memory_form(s)));
            }
            ParamKind::Scalar(_) => {}
        }
    }
    let images = kernel.params.iter().filter(|p| p.kind.image().is_some()).count();
    if images > MAX_IMAGES {
        return Err(format!("{images} images; one kernel takes at most {MAX_IMAGES}"));
    }
    for a in &kernel.lds {
        let allowed = a.elem.bytes()..=MAX_ALIGN;
        if !a.elem.in_memory() || a.len == 0 || !a.align.is_power_of_two() || !allowed.contains(&a.align) {
            return Err(format!(
                "LDS array `{}` of {} {}, aligned to {}; allowed are 1 or more elements with a memory form and powers of \
                 two from the element's size to {MAX_ALIGN}",
                a.name, a.len, a.elem, a.align
            ));
        }
    }
    Ok(())
}

/// Why a type does not lie in memory, and what does.
fn no_memory_form(s: Scalar) -> &'static str {
    if s == Scalar::Bool { "which has no memory form; use u32" } else { "which has no memory form; use i32 or i64" }
}

/// The operation of which a value is a result, in whatever region.
fn maker(block: &Block, v: Value) -> Option<&Inst> {
    block.insts.iter().find_map(|inst| {
        if inst.results.contains(&v) {
            return Some(inst);
        }
        inst.op.blocks().into_iter().find_map(|region| maker(region, v))
    })
}

struct Scope<'a> {
    kernel: &'a Kernel,
    target: Target,
    defined: Vec<bool>,
    /// Constants, which every region sees.
    constants: Vec<bool>,
    /// What is defined outside the `native` region that is being checked.
    sealed: Option<Vec<bool>>,
    origins: Origins,
    /// Regions around the current block.
    depth: usize,
}

impl Scope<'_> {
    fn ty(&self, v: Value) -> Result<Type, String> {
        if self.defined.get(v.index()) == Some(&true) {
            return Ok(self.kernel.ty(v));
        }
        if self.sealed.as_ref().is_some_and(|s| s.get(v.index()) == Some(&true)) {
            return Err("uses a value that is not among the arguments of its `native`; pass it as one".to_owned());
        }
        let made = maker(&self.kernel.body, v).map(|inst| format!(" (at {})", self.kernel.location(inst.number)));
        let made = made.unwrap_or_default();
        Err(format!(
            "uses a value outside the region that makes it{made}; hand it out of `if_else`, or carry it through `for_range`"
        ))
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

    /// Checks a block and forgets what it defined. `around`: the operation that it is a region of.
    fn block(&mut self, block: &Block, yields: &[Type], around: Option<Location>) -> Result<(), Refusal> {
        let unlocated = |message| Refusal { location: around, message };
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
                self.constants[r.index()] |= matches!(inst.op, Op::Const(_));
            }
        }
        let location = block.insts.last().map(|i| self.kernel.location(i.number)).or(around);
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

    /// Checks the regions of an operation.
    fn nested(&mut self, inst: &Inst) -> Result<(), Refusal> {
        let location = self.kernel.location(inst.number);
        let refuse = |message| Refusal { location: Some(location), message };
        let regions = self.regions(inst).map_err(refuse)?;
        if regions.is_empty() {
            return Ok(());
        }
        if self.depth == MAX_DEPTH {
            return Err(refuse(format!("control flow nested deeper than {MAX_DEPTH} regions")));
        }
        let isolated = matches!(inst.op, Op::Native { .. });
        self.depth += 1;
        for region in regions {
            let params = region.block.params.iter().map(|p| self.declared(*p)).collect::<Result<Vec<_>, _>>();
            let params = params.map_err(refuse)?;
            if params != region.params {
                let (given, wanted) = (listed(&params), listed(&region.params));
                let name = inst.op.def().name;
                return Err(refuse(format!("the {} of `{name}` takes {given} where {wanted} is wanted", region.name)));
            }
            // The code that stands for a native region sees its arguments and nothing else.
            if isolated {
                let outside = std::mem::replace(&mut self.defined, self.constants.clone());
                let sealed = self.sealed.replace(outside);
                self.block(region.block, &region.yields, Some(location))?;
                self.defined = std::mem::replace(&mut self.sealed, sealed).unwrap_or_default();
            } else {
                self.block(region.block, &region.yields, Some(location))?;
            }
        }
        self.depth -= 1;
        Ok(())
    }

    /// The declared type of a value, whether or not it is defined yet.
    fn declared(&self, v: Value) -> Result<Type, String> {
        self.kernel.values.get(v.index()).copied().ok_or_else(|| "a result has no type".to_owned())
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
