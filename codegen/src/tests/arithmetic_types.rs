//! Every operation on data, on every element type that it is defined on, scalar and vector, compiles for every chip.

use lathe_dsl::ir::{
    BinaryOp, Bits, Block, Cache, FastMath, Inst, Kernel, Launch, Location, OffsetUnit, Op, OpDef, OpNumber, Param,
    Predicate, ReduceOp, Scalar, Type, UnaryOp, Value,
};
use lathe_dsl::{Target, ir};

use super::{buffer, has, lacks, text};
use crate::{Level, Options, compile};

/// A kernel of one straight list of operations: loads from buffers `x`, stores to buffers `y`, one of each element type.
pub struct Straight {
    pub kernel: Kernel,
    thread: Value,
    stores: u64,
}

impl Straight {
    const MEMORY: [Scalar; 12] = [
        Scalar::I8,
        Scalar::U8,
        Scalar::I16,
        Scalar::U16,
        Scalar::I32,
        Scalar::U32,
        Scalar::I64,
        Scalar::U64,
        Scalar::F16,
        Scalar::Bf16,
        Scalar::F32,
        Scalar::F64,
    ];

    pub fn new(target: Target) -> Self {
        let params: Vec<Param> = ["x", "y"]
            .into_iter()
            .zip([ir::Access::Read, ir::Access::Write])
            .flat_map(|(name, access)| Self::MEMORY.map(|s| buffer(name, s, access)))
            .collect();
        let kernel = Kernel {
            name: "k".into(),
            wave: target.chip().wave,
            launch: Launch::linear(4, 256),
            fast_math: FastMath::STRICT,
            values: params.iter().map(Param::ty).collect(),
            params,
            lds: vec![],
            body: Block::default(),
            locations: vec![],
        };
        let mut this = Self { kernel, thread: Value(0), stores: 0 };
        this.thread = this.push(Type::U32, Op::ThreadId(ir::Axis::X));
        this
    }

    fn inst(&mut self, op: Op, results: Vec<Value>) {
        let number = OpNumber(self.kernel.locations.len() as u32 + 1);
        self.kernel.locations.push(Location { file: "k.rs", line: number.0, column: 1 });
        self.kernel.body.insts.push(Inst { number, op, results });
    }

    pub fn push(&mut self, ty: Type, op: Op) -> Value {
        self.kernel.values.push(ty);
        let result = Value(self.kernel.values.len() as u32 - 1);
        self.inst(op, vec![result]);
        result
    }

    fn buffer_of(s: Scalar, first: usize) -> Value {
        Value((first + Self::MEMORY.iter().position(|m| *m == s).expect("a memory form")) as u32)
    }

    /// A place in a buffer that no other access of the kernel uses.
    fn offset(&mut self) -> Value {
        self.stores += 1;
        let shift = self.push(Type::U32, Op::Const(Bits(self.stores * 16)));
        self.push(Type::U32, Op::Binary(BinaryOp::Add, self.thread, shift))
    }

    /// A value of which nothing is known.
    pub fn load(&mut self, ty: Type) -> Value {
        let n = ty.lanes();
        match ty.scalar() {
            Scalar::Bool => {
                let bytes = [0, 1].map(|_| self.load(ty.with_scalar(Scalar::U8)));
                self.push(ty, Op::Compare(Predicate::Lt, bytes[0], bytes[1]))
            }
            Scalar::Idx if n > 1 => {
                let elements = (0..n).map(|_| self.load(Type::Scalar(Scalar::Idx))).collect();
                self.push(ty, Op::VectorFrom(elements))
            }
            Scalar::Idx => {
                // One of 64 bits and one of 32 bits by turns.
                let from = if self.stores.is_multiple_of(2) { Scalar::I64 } else { Scalar::U16 };
                let number = self.load(Type::Scalar(from));
                self.push(ty, Op::Convert(number))
            }
            s => {
                let (buffer, offset) = (Self::buffer_of(s, 0), self.offset());
                let (unit, cache) = (OffsetUnit::Elements, Cache::default());
                self.push(ty, Op::BufferLoad { buffer, offset, unit, scalar: None, mask: None, fill: None, cache })
            }
        }
    }

    pub fn store(&mut self, value: Value) {
        let ty = self.kernel.ty(value);
        if ty.bytes() > 16 || ty.scalar() == Scalar::Bool && ty.lanes() > 1 {
            // Wider than one access.
            for i in 0..ty.lanes() {
                let element = self.push(Type::Scalar(ty.scalar()), Op::Extract(value, i));
                self.store(element);
            }
            return;
        }
        let value = match ty.scalar() {
            Scalar::Bool => self.push(ty.with_scalar(Scalar::U8), Op::Convert(value)),
            Scalar::Idx => self.push(ty.with_scalar(Scalar::I64), Op::Convert(value)),
            _ => value,
        };
        let (buffer, offset) = (Self::buffer_of(self.kernel.ty(value).scalar(), Self::MEMORY.len()), self.offset());
        let (unit, cache) = (OffsetUnit::Elements, Cache::default());
        self.inst(Op::BufferStore { value, buffer, offset, unit, scalar: None, mask: None, cache }, vec![]);
    }

    /// An operation and the store of its result.
    pub fn made(&mut self, ty: Type, op: Op) {
        let v = self.push(ty, op);
        self.store(v);
    }
}

/// Every operation on one type, in one kernel.
fn everything(target: Target, ty: Type) -> Kernel {
    let mut k = Straight::new(target);
    let s = ty.scalar();
    let truth = ty.with_scalar(Scalar::Bool);
    let on = |def: &OpDef| def.on.contains(s);
    let [a, b, c] = [0, 1, 2].map(|_| k.load(ty));
    for op in UnaryOp::ALL.iter().filter(|op| on(op.def())) {
        k.made(ty, Op::Unary(*op, a));
    }
    for op in BinaryOp::ALL.iter().filter(|op| on(op.def())) {
        k.made(ty, Op::Binary(*op, a, b));
    }
    for op in Predicate::ALL.iter().filter(|op| on(op.def())) {
        k.made(truth, Op::Compare(*op, a, b));
    }
    if s.is_float() {
        k.made(ty, Op::Fma { a, b, c });
    }
    let [one, each] = [Type::BOOL, truth].map(|t| k.load(t));
    k.made(ty, Op::Select { condition: one, on_true: a, on_false: b });
    k.made(ty, Op::Select { condition: each, on_true: a, on_false: b });
    for to in Scalar::ALL.iter().filter(|to| **to != s && **to != Scalar::Bool) {
        k.made(ty.with_scalar(*to), Op::Convert(a));
    }
    if s.in_memory() {
        let bits = [Scalar::U8, Scalar::U16, Scalar::U32, Scalar::U64][s.bytes().trailing_zeros() as usize];
        k.made(ty.with_scalar(bits), Op::Bitcast(a));
    }
    k.made(ty, Op::Const(Bits(1)));
    let Type::Vector(_, n) = ty else { return k.kernel };
    let element = Type::Scalar(s);
    let at = k.load(Type::U32);
    let elements: Vec<Value> = (0..n).rev().map(|i| k.push(element, Op::Extract(a, i))).collect();
    k.made(ty, Op::VectorFrom(elements));
    k.made(element, Op::ExtractAt(a, at));
    k.made(ty, Op::Shuffle { a, b, mask: (0..n).map(|i| 2 * n - 1 - 2 * i).collect() });
    for op in ReduceOp::ALL.iter().filter(|op| on(op.def())) {
        k.made(element, Op::Reduce(*op, a));
    }
    k.kernel
}

fn every_operation_on_every_type_compiles(target: Target) {
    for s in Scalar::ALL {
        let lanes = if s.bytes() == 8 { 2 } else { 4 };
        for ty in [Type::Scalar(*s), Type::Vector(*s, lanes)] {
            compile(&everything(target, ty), target, &Options::default()).unwrap_or_else(|e| panic!("{ty}: {e}"));
        }
    }
}

#[test]
fn every_operation_on_every_type_compiles_for_gfx950() {
    every_operation_on_every_type_compiles(Target::GFX950);
}

#[test]
fn every_operation_on_every_type_compiles_for_gfx942() {
    every_operation_on_every_type_compiles(Target::GFX942);
}

#[test]
fn every_operation_on_every_type_compiles_for_gfx1201() {
    every_operation_on_every_type_compiles(Target::GFX1201);
}

#[test]
fn every_operation_on_every_type_compiles_for_sm_90() {
    every_operation_on_every_type_compiles(Target::SM_90);
}

/// LLVM IR and machine code of one operation on operands of which nothing is known.
fn one(target: Target, ty: Type, operands: usize, result: Type, op: impl FnOnce(&[Value]) -> Op) -> (String, String) {
    let mut k = Straight::new(target);
    let operands: Vec<Value> = (0..operands).map(|_| k.load(ty)).collect();
    k.made(result, op(&operands));
    (text(&k.kernel, target, Level::LlvmIr), text(&k.kernel, target, Level::Asm))
}

fn scalar_binary(target: Target, s: Scalar, op: BinaryOp) -> (String, String) {
    one(target, Type::Scalar(s), 2, Type::Scalar(s), |v| Op::Binary(op, v[0], v[1]))
}

fn scalar_unary(target: Target, s: Scalar, op: UnaryOp) -> (String, String) {
    one(target, Type::Scalar(s), 1, Type::Scalar(s), |v| Op::Unary(op, v[0]))
}

#[test]
fn extrema_order_zeros_and_treat_nan_as_they_say() {
    // `llvm.maxnum` leaves the sign of a zero open; `maximumnum` does not.
    for (op, wanted) in [(BinaryOp::Maxnum, "@llvm.maximumnum."), (BinaryOp::Minnum, "@llvm.minimumnum.")] {
        for s in [Scalar::F16, Scalar::Bf16, Scalar::F32, Scalar::F64] {
            has(&scalar_binary(Target::GFX942, s, op).0, &[wanted]);
        }
    }
    let maximum = |target| scalar_binary(target, Scalar::F32, BinaryOp::Maximum).1;
    has(&maximum(Target::GFX950), &["v_maximum3_f32"]);
    has(&maximum(Target::GFX1201), &["v_maximum_f32"]);
    has(&maximum(Target::SM_90), &["max.NaN.f32"]);
    // No such instruction: a maximum that drops NaN, and a NaN put back.
    has(&maximum(Target::GFX942), &["v_max_f32", "v_cmp_o_f32", "v_cndmask_b32"]);
}

#[test]
fn bf16_is_computed_in_f32_and_rounded_once() {
    for target in Target::MAIN {
        for (op, wanted) in
            [(BinaryOp::Add, "fadd float"), (BinaryOp::Mul, "fmul float"), (BinaryOp::Div, "fdiv float")]
        {
            has(&scalar_binary(target, Scalar::Bf16, op).0, &["fpext bfloat", wanted, "fptrunc float"]);
        }
        // Widened by its bits: converting would make a signaling NaN a quiet one, which would win.
        let maxnum = scalar_binary(target, Scalar::Bf16, BinaryOp::Maxnum).0;
        has(&maxnum, &["shl i32", "@llvm.maximumnum.f32"]);
        lacks(&maxnum, &["fpext bfloat"]);
        let ty = Type::Scalar(Scalar::Bf16);
        let (ir, asm) = one(target, ty, 3, ty, |v| Op::Fma { a: v[0], b: v[1], c: v[2] });
        has(&ir, &["@llvm.fma.f32", "fptrunc float"]);
        // NVIDIA has one that rounds once to bf16, which is something else.
        lacks(&asm, &["fma.rn.bf16"]);
    }
}

#[test]
fn roots_are_correctly_rounded() {
    // AMD's f16 root is not said to be; the f32 one is refined.
    for target in [Target::GFX950, Target::GFX942, Target::GFX1201] {
        lacks(&scalar_unary(target, Scalar::F16, UnaryOp::Sqrt).1, &["v_sqrt_f16"]);
        has(&scalar_unary(target, Scalar::F32, UnaryOp::Sqrt).1, &["v_sqrt_f32", "v_fma_f32"]);
    }
    has(&scalar_unary(Target::SM_90, Scalar::F32, UnaryOp::Sqrt).1, &["sqrt.rn.f32"]);
    has(&scalar_unary(Target::SM_90, Scalar::F32, UnaryOp::Rsqrt).1, &["sqrt.rn.f32", "rcp.rn.f32"]);
}

#[test]
fn roundings_to_integers_are_the_chips_own() {
    let cases = [
        (UnaryOp::Floor, "v_floor_f32", "cvt.rmi.f32.f32"),
        (UnaryOp::Ceil, "v_ceil_f32", "cvt.rpi.f32.f32"),
        (UnaryOp::Trunc, "v_trunc_f32", "cvt.rzi.f32.f32"),
        (UnaryOp::Roundeven, "v_rndne_f32", "cvt.rni.f32.f32"),
    ];
    for (op, amd, nvidia) in cases {
        for target in Target::MAIN {
            let wanted = if target == Target::SM_90 { nvidia } else { amd };
            has(&scalar_unary(target, Scalar::F32, op).1, &[wanted]);
        }
    }
}

#[test]
fn conversions_round_once_and_saturate() {
    let convert = |from, to| one(Target::GFX942, Type::Scalar(from), 1, Type::Scalar(to), |v| Op::Convert(v[0])).0;
    // The chip's own saturates, and gives 0 of a NaN; what is narrower is clamped.
    has(&convert(Scalar::F32, Scalar::I8), &["v_cvt_i32_f32"]);
    has(&convert(Scalar::F64, Scalar::U64), &["@llvm.fptoui.sat.i64.f64"]);
    has(&convert(Scalar::Bf16, Scalar::I16), &["v_cvt_i32_f32"]);
    // Not by way of f32, which would round twice.
    has(&convert(Scalar::F64, Scalar::F16), &["fptrunc double %", "to half"]);
    has(&convert(Scalar::F64, Scalar::Bf16), &["fptrunc double %", "to bfloat"]);
    // 32 bits do not fit f32: the low ones are folded into one first.
    let ir = convert(Scalar::I32, Scalar::Bf16);
    has(&ir, &["@llvm.ctlz.i32", "fptrunc float"]);
    lacks(&ir, &["sitofp"]);
    lacks(&convert(Scalar::I16, Scalar::Bf16), &["ctlz"]);
}

#[test]
fn every_division_is_total() {
    for op in [BinaryOp::DivFloor, BinaryOp::RemFloor, BinaryOp::DivTrunc, BinaryOp::RemTrunc, BinaryOp::CeilDiv] {
        let (ir, _) = scalar_binary(Target::GFX950, Scalar::I32, op);
        has(&ir, &["icmp ule i32", "select i1"]);
        let (ir, _) = scalar_binary(Target::GFX950, Scalar::U8, op);
        has(&ir, &["@llvm.umax.i8("]);
    }
}

#[test]
fn an_index_has_as_many_bits_as_its_range_needs() {
    let sum = |from| {
        let mut k = Straight::new(Target::GFX950);
        let numbers = [0, 1].map(|_| k.load(Type::Scalar(from)));
        let idx = Type::Scalar(Scalar::Idx);
        let [a, b] = numbers.map(|v| k.push(idx, Op::Convert(v)));
        k.made(idx, Op::Binary(BinaryOp::Add, a, b));
        text(&k.kernel, Target::GFX950, Level::LlvmIr)
    };
    // Overflow is promised absent; unsigned too, where nothing is negative.
    has(&sum(Scalar::U16), &["add nuw nsw i32"]);
    has(&sum(Scalar::I16), &["add nsw i32"]);
    has(&sum(Scalar::I64), &["add nsw i64"]);
    // The sum of two 32-bit numbers needs more, so its operands are extended first.
    has(&sum(Scalar::I32), &["sext i32", "add nsw i64"]);
}
