//! Every operation on data, on every element type that it is defined on, scalar and vector, compiles for every chip.

use lathe_dsl::ir::{
    BinaryOp, Bits, Block, Cache, FastMath, Inst, Kernel, Launch, Location, OffsetUnit, Op, OpDef, OpNumber, Param,
    Predicate, ReduceOp, Scalar, Type, UnaryOp, Value,
};
use lathe_dsl::{Target, ir};

use super::buffer;
use crate::{Options, compile};

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
                let from = if self.stores % 2 == 0 { Scalar::I64 } else { Scalar::U16 };
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
