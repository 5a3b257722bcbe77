//! Tests of the whole crate: small kernels, looked at in MLIR, LLVM IR and machine code.

mod arithmetic;
mod arithmetic_types;
mod atomics;
mod buffers;
mod control;
mod failures;
mod fast_math;
mod lanes;
mod launch;
mod matrix;
mod memory;
mod native;
mod pointers;
mod sabotage;
mod scheduling;
mod targets;
mod whole;

use lathe_dsl::builder::{self, Builder};
use lathe_dsl::ir::{Access, Cache, FastMath, Kernel, Launch, Param, ParamKind, Scalar};
use lathe_dsl::{Target, ir};

use crate::{Level, Options, emit};

pub use sabotage::{Sabotage, sabotage_mlir};

/// A buffer parameter of 4096 elements, aligned to 16 bytes.
fn buffer(name: &'static str, elem: Scalar, access: Access) -> Param {
    buffer_of(name, elem, 4096, access)
}

fn buffer_of(name: &'static str, elem: Scalar, len: u64, access: Access) -> Param {
    Param { name, kind: ParamKind::Buffer { elem, len, access, align: 16 } }
}

fn scalar(name: &'static str, s: Scalar) -> Param {
    Param { name, kind: ParamKind::Scalar(s) }
}

/// A kernel `k` of 256 threads in 4 workgroups.
fn kernel(target: Target, params: Vec<Param>, body: impl for<'k> FnOnce(&'k Builder<'k>)) -> Kernel {
    kernel_with(target, Launch::linear(4, 256), params, body)
}

fn kernel_with(
    target: Target,
    launch: Launch,
    params: Vec<Param>,
    body: impl for<'k> FnOnce(&'k Builder<'k>),
) -> Kernel {
    builder::build("k", target, launch, params, body).expect("traces")
}

fn text(kernel: &Kernel, target: Target, level: Level) -> String {
    let bytes = emit(kernel, target, &Options::default(), level).unwrap_or_else(|e| panic!("{e}\n{kernel}"));
    String::from_utf8(bytes).expect("text")
}

/// A kernel's body.
type Body = for<'k> fn(&'k Builder<'k>);

/// Parameters of [`asm`]: `x`, read only, of `f32`; `y`, of `u32`; an address; a number.
fn usual_params() -> Vec<Param> {
    vec![
        buffer("x", Scalar::F32, Access::Read),
        buffer("y", Scalar::U32, Access::ReadWrite),
        scalar("address", Scalar::U64),
        scalar("n", Scalar::U32),
    ]
}

/// Assembly of a kernel with [`usual_params`].
fn asm(target: Target, body: Body) -> String {
    text(&kernel(target, usual_params(), body), target, Level::Asm)
}

/// Asserts for each target that the assembly of a body holds these texts.
#[track_caller]
fn becomes(body: Body, wanted: &[(Target, &[&str])]) {
    for (target, wanted) in wanted {
        has(&asm(*target, body), wanted);
    }
}

/// Lines of a text that hold `what`.
fn count(text: &str, what: &str) -> usize {
    text.lines().filter(|l| l.contains(what)).count()
}

/// Asserts that a text holds every one of `wanted`.
#[track_caller]
fn has(text: &str, wanted: &[&str]) {
    for w in wanted {
        assert!(text.contains(w), "`{w}` is not in\n{text}");
    }
}

/// Asserts that a text holds none of `unwanted`.
#[track_caller]
fn lacks(text: &str, unwanted: &[&str]) {
    for w in unwanted {
        assert!(!text.contains(w), "`{w}` is in\n{text}");
    }
}

/// The kernel `y[i] = f(a[i], b[i])` over 32-bit or 64-bit elements, as hand-made Kernel IR: `f` gets the two operands
/// and the next free value and operation numbers' maker.
struct Elementwise {
    kernel: Kernel,
}

impl Elementwise {
    /// Loads `inputs` (buffers of one element type each), applies `op`, stores a result of type `result`.
    fn new(target: Target, inputs: &[ir::Type], result: ir::Type, op: impl FnOnce(&[ir::Value]) -> ir::Op) -> Self {
        use ir::{Axis, Block, Inst, Location, OffsetUnit, Op, OpNumber, Type, Value};
        let names = ["a", "b", "c"];
        let store_bytes = result.scalar() != Scalar::Bool;
        let out_scalar = if store_bytes { result.scalar() } else { Scalar::U32 };
        let mut params: Vec<Param> =
            inputs.iter().zip(names).map(|(t, n)| buffer(n, t.scalar(), Access::Read)).collect();
        params.push(buffer("y", out_scalar, Access::Write));
        let mut values: Vec<Type> = params.iter().map(|p| Type::Buffer(p_elem(p))).collect();
        let mut insts = vec![];
        let mut push = |values: &mut Vec<Type>, ty: Option<Type>, op: Op| {
            let results = ty.map(|t| {
                values.push(t);
                Value(values.len() as u32 - 1)
            });
            insts.push(Inst { number: OpNumber(insts.len() as u32 + 1), op, results: results.into_iter().collect() });
            results
        };
        let tid = push(&mut values, Some(Type::Scalar(Scalar::U32)), Op::ThreadId(Axis::X)).expect("a result");
        let loaded: Vec<Value> = inputs
            .iter()
            .enumerate()
            .map(|(i, t)| {
                let load = Op::BufferLoad {
                    buffer: Value(i as u32),
                    offset: tid,
                    unit: OffsetUnit::Elements,
                    scalar: None,
                    mask: None,
                    fill: None,
                    cache: Cache::default(),
                };
                push(&mut values, Some(*t), load).expect("a result")
            })
            .collect();
        let mut value = push(&mut values, Some(result), op(&loaded)).expect("a result");
        if !store_bytes {
            let u32_ = Type::Scalar(Scalar::U32);
            let one = push(&mut values, Some(u32_), Op::Const(ir::Bits(1))).expect("a result");
            let zero = push(&mut values, Some(u32_), Op::Const(ir::Bits(0))).expect("a result");
            let select = Op::Select { condition: value, on_true: one, on_false: zero };
            value = push(&mut values, Some(u32_), select).expect("a result");
        }
        let y = Value(inputs.len() as u32);
        push(
            &mut values,
            None,
            Op::BufferStore {
                value,
                buffer: y,
                offset: tid,
                unit: OffsetUnit::Elements,
                scalar: None,
                mask: None,
                cache: Cache::default(),
            },
        );
        let locations = (0..insts.len()).map(|i| Location { file: "k.rs", line: i as u32 + 100, column: 5 }).collect();
        let body = Block { insts, ..Block::default() };
        Self {
            kernel: Kernel {
                name: "k".into(),
                wave: target.chip().wave,
                launch: Launch::linear(4, 256),
                fast_math: FastMath::STRICT,
                params,
                lds: vec![],
                values,
                body,
                locations,
            },
        }
    }
}

fn p_elem(p: &Param) -> Scalar {
    match p.kind {
        ParamKind::Buffer { elem, .. } => elem,
        ParamKind::Texture { image, .. } | ParamKind::Surface(image) => image.elem,
        ParamKind::Scalar(s) => s,
    }
}
