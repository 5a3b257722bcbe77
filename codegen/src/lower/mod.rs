//! Kernel IR to MLIR: one `gpu.module` with one `gpu.func`.
//!
//! The function's body is `scf`, `arith`, `vector` and `llvm` operations; what differs between targets comes from
//! [`Backend`]. No operation carries a fast-math flag but what the kernel allows, so nothing else is contracted or
//! reassociated. Every operation's location is line N of the file `NAME.kir`, N being the Kernel IR operation it came from.

mod arith;
mod arith_convert;
mod arith_float;
mod arith_int;
pub mod atomic;
pub mod buffer;
mod call;
pub mod codes;
mod control;
pub mod emit;
mod image;
pub mod lanes;
mod marks;
mod math;
pub mod matrix;
pub mod memory;
pub mod narrow;
pub mod native;
mod params;
mod pointer;
pub mod scales;
mod sched;
mod stochastic;
mod survey;
mod transpose;
mod words;

use std::collections::HashMap;

use lathe_dsl::facts::Facts;
use lathe_dsl::ir::{self, Kernel, OpNumber, ParamKind, Scalar};
use lathe_dsl::uniform::{Span, Uniformity};
use melior::Context;
use melior::dialect::llvm;
use melior::ir::attribute::{ArrayAttribute, TypeAttribute};
use melior::ir::r#type::FunctionType;
use melior::ir::{Attribute, Location, Module, Value};

use self::buffer::Buffer;
use self::emit::{Emitter, GLOBAL, Result};
use self::marks::Marks;
use crate::target::Backend;

pub use self::control::has_loop_hints;

/// What went wrong, and at which operation.
#[derive(Debug)]
pub struct Blame {
    /// The Kernel IR operation, where one is to blame.
    pub op: Option<OpNumber>,
    /// What is wrong.
    pub message: String,
}

impl From<String> for Blame {
    fn from(message: String) -> Self {
        Self { op: None, message }
    }
}

/// Name of the file that line tables speak of.
pub fn file_name(kernel: &Kernel) -> String {
    format!("{}.kir", kernel.name)
}

/// Symbol of the block that holds all LDS arrays.
fn symbol_for_lds(kernel: &str) -> String {
    format!("{kernel}__lds")
}

/// The state of lowering one kernel.
pub struct Lowering<'c, 'a, 'k> {
    emit: Emitter<'c, 'a>,
    kernel: &'k Kernel,
    backend: &'k dyn Backend,
    facts: Facts,
    uniform: Uniformity<'k>,
    constants: Vec<Option<u64>>,
    /// Values by which `f32` is divided several times in one block.
    shared_divisors: Vec<bool>,
    marks: Marks,
    /// What copies to LDS that no load waits for by itself have in common; see [`memory::scope_of_copies`].
    copies_apart: Option<Attribute<'c>>,
    /// Whether the kernel copies to LDS.
    copies_to_lds: bool,
    /// Whether the lanes of a wave surely run the current operation together.
    whole: bool,
    /// Copies of the current place that loops around it became.
    copies: u64,
    file: String,
    values: Vec<Option<Value<'c, 'a>>>,
    buffers: HashMap<ir::Value, Buffer<'c, 'a>>,
}

/// Lowers a verified kernel into an empty module.
pub fn lower<'c: 'a, 'a>(
    context: &'c Context,
    module: &'a Module<'c>,
    kernel: &Kernel,
    backend: &dyn Backend,
) -> std::result::Result<(), Blame> {
    let file = file_name(kernel);
    let top = Emitter { context, block: module.body(), location: Location::new(context, &file, 0, 0) };
    let name = [("sym_name", top.string(&kernel.name))];
    let gpu_module = top.enter(top.op_with_regions("gpu.module", &[], &[], &name, 1)?, 0, &[])?;

    let facts = Facts::of(kernel);
    let marks = Marks::of(kernel, &facts, |bytes| backend.counts_copies(bytes));
    let mut lowering = Lowering {
        emit: gpu_module,
        kernel,
        backend,
        copies_apart: memory::scope_of_copies(&top, kernel, &marks)?,
        copies_to_lds: memory::copies_to_lds(kernel),
        marks,
        uniform: Uniformity::of(kernel, &facts),
        facts,
        constants: survey::constants(kernel),
        shared_divisors: survey::shared_divisors(kernel),
        whole: true,
        copies: 1,
        file,
        values: vec![None; kernel.values.len()],
        buffers: HashMap::new(),
    };
    lowering.declare_lds(&gpu_module)?;
    lowering.emit = lowering.function(&gpu_module)?;
    lowering.open_params()?;
    lowering.block(&kernel.body)?;
    lowering.emit.op("gpu.return", &[], &[], &[])?;
    Ok(())
}

impl<'c, 'a> Lowering<'c, 'a, '_> {
    /// Declares the kernel and enters its body.
    fn function(&self, module: &Emitter<'c, 'a>) -> Result<Emitter<'c, 'a>> {
        let context = module.context;
        let types: Vec<_> = self
            .kernel
            .params
            .iter()
            .map(|p| match p.kind {
                ParamKind::Buffer { .. } => llvm::r#type::pointer(context, GLOBAL),
                ParamKind::Texture { .. } | ParamKind::Surface(_) => module.int(64),
                ParamKind::Scalar(s) => module.scalar(s),
            })
            .collect();
        let attributes = params::attributes(module, self.kernel);
        let mut function = vec![
            ("sym_name", module.string(&self.kernel.name)),
            ("function_type", TypeAttribute::new(FunctionType::new(context, &types, &[]).into()).into()),
            ("arg_attrs", ArrayAttribute::new(context, &attributes).into()),
            ("gpu.kernel", module.unit()),
        ];
        function.extend(self.backend.kernel_attributes(module, self.kernel)?);
        if self.kernel.fast_math.flush_subnormals {
            function.push(("denormal_fp_math_f32", module.string("preserve-sign,preserve-sign")));
        }
        let operation = module.op_with_regions("gpu.func", &[], &[], &function, 1)?;
        module.enter(operation, 0, &types)
    }

    fn location_of(&self, op: OpNumber) -> Location<'c> {
        Location::new(self.emit.context, &self.file, op.0 as usize, 0)
    }

    /// Whether the lanes of a wave surely run an operation together: all of them, or none.
    fn is_for_whole_waves(&self, op: OpNumber) -> bool {
        self.uniform.control(op) >= Span::of(self.kernel.wave)
    }

    fn get(&self, v: ir::Value) -> Result<Value<'c, 'a>> {
        self.values.get(v.index()).copied().flatten().ok_or_else(|| format!("{v:?} is used before it is defined"))
    }

    /// The bits of a value that is a constant.
    fn constant(&self, v: ir::Value) -> Option<u64> {
        self.constants.get(v.index()).copied().flatten()
    }

    fn set(&mut self, v: ir::Value, value: Value<'c, 'a>) {
        self.values[v.index()] = Some(value);
    }
}

/// Indices are mathematical integers; here they get 32 or 64 bits, each by what is known of it.
impl<'c, 'a> Lowering<'c, 'a, '_> {
    /// Bits that represent an `idx` value: 32 if it is known to fit, as a signed number. Vectors always get 64.
    fn idx_bits(&self, v: ir::Value) -> u32 {
        if matches!(self.kernel.ty(v), ir::Type::Scalar(_)) { self.facts.idx_bits(v) } else { 64 }
    }

    /// Least and largest value of an integer, as the number that it is.
    fn range(&self, v: ir::Value) -> (i128, i128) {
        let fact = self.facts.get(v);
        (fact.min, fact.max)
    }

    /// Type in which an operation on these values, of one element type, is computed: the first one's, and for `idx` the
    /// integer that holds every one of them.
    fn work_type(&self, values: &[ir::Value]) -> ir::Type {
        let ty = self.kernel.ty(values[0]);
        let indices = values.iter().filter(|v| self.kernel.ty(**v).scalar() == Scalar::Idx);
        match indices.map(|v| self.idx_bits(*v)).max() {
            Some(32) => ty.with_scalar(Scalar::I32),
            Some(_) => ty.with_scalar(Scalar::I64),
            None => ty,
        }
    }

    /// A value in the type in which it is worked with.
    fn get_in(&self, v: ir::Value, ty: ir::Type) -> Result<Value<'c, 'a>> {
        let value = self.get(v)?;
        if self.kernel.ty(v).scalar() == Scalar::Idx {
            self.resize(value, self.work_type(&[v]), ty, true)
        } else {
            Ok(value)
        }
    }

    /// What was made in the type `ty`, as the value `like` wants it.
    fn fit(&self, value: Value<'c, 'a>, ty: ir::Type, like: ir::Value) -> Result<Value<'c, 'a>> {
        if self.kernel.ty(like).scalar() == Scalar::Idx {
            self.resize(value, ty, self.work_type(&[like]), true)
        } else {
            Ok(value)
        }
    }

    /// A value as `like`, of the same type, wants it: how values enter and leave regions.
    fn get_as(&self, v: ir::Value, like: ir::Value) -> Result<Value<'c, 'a>> {
        self.get_in(v, self.work_type(&[like]))
    }
}
