//! Rules that the builder's types already keep, checked on IR made by hand: each with its message.

use lathe_dsl::builder::build;
use lathe_dsl::ir::{
    Access, AtomicKind, AtomicOp, BinaryOp, Bits, Block, ButterflyOp, Cache, Inst, Kernel, LdsArray, Location, Memory,
    NativeCode, NativeForm, OffsetUnit, Op, OpNumber, Order, Param, ParamKind, Predicate, ReduceOp, Scalar, Scope,
    ShuffleOp, Space, Type, UnaryOp, Unroll, Value,
};
use lathe_dsl::prelude::{Launch, Target};
use lathe_dsl::verify::verify;

const F16: Type = Type::Scalar(Scalar::F16);
const F32: Type = Type::Scalar(Scalar::F32);
const F64: Type = Type::Scalar(Scalar::F64);
const I32: Type = Type::Scalar(Scalar::I32);
const I16: Type = Type::Scalar(Scalar::I16);
const IDX: Type = Type::Scalar(Scalar::Idx);
const U16: Type = Type::Scalar(Scalar::U16);
const U32: Type = Type::U32;
const U64: Type = Type::U64;
const BOOL: Type = Type::BOOL;
const F32X4: Type = Type::Vector(Scalar::F32, 4);
const LDS: Type = Type::Ptr(Space::Lds, Scalar::U32);
const GLOBAL: Type = Type::Ptr(Space::Global, Scalar::U32);
const BUFFER: Type = Type::Buffer(Scalar::U32);

/// IR in the making.
struct Ir(Kernel);

impl Ir {
    fn new(target: Target) -> Self {
        let params = [("in", Access::Read), ("out", Access::Write)].map(|(name, access)| Param {
            name,
            kind: ParamKind::Buffer { elem: Scalar::U32, len: 64, access, align: 16 },
        });
        Self(build("k", target, Launch::linear(1, 64), params.to_vec(), |_| ()).unwrap())
    }

    fn fresh(&mut self, ty: Type) -> Value {
        self.0.values.push(ty);
        Value(self.0.values.len() as u32 - 1)
    }

    fn inst(&mut self, op: Op, results: &[Type]) -> Inst {
        let results = results.iter().map(|t| self.fresh(*t)).collect();
        self.0.locations.push(Location { file: "f", line: 1, column: 1 });
        Inst { number: OpNumber(self.0.locations.len() as u32), op, results }
    }

    fn push(&mut self, op: Op, results: &[Type]) -> Vec<Value> {
        let inst = self.inst(op, results);
        let results = inst.results.clone();
        self.0.body.insts.push(inst);
        results
    }

    /// A value of a type.
    fn value(&mut self, ty: Type) -> Value {
        let op = match ty {
            Type::Scalar(_) | Type::Vector(..) => Op::Const(Bits(0)),
            Type::Ptr(Space::Lds, elem) => {
                self.0.lds.push(LdsArray { name: "a", elem, len: 64, align: 16 });
                Op::LdsBase(self.0.lds.len() as u32 - 1)
            }
            Type::Ptr(Space::Global, _) => Op::IntToPtr(self.value(U64)),
            Type::Buffer(_) => Op::MakeBuffer { address: self.value(U64), bytes: self.value(U32) },
        };
        self.push(op, &[ty])[0]
    }
}

/// A region of constants that yields one of each type.
fn region(ir: &mut Ir, params: &[Type], yields: &[Type]) -> Block {
    let params = params.iter().map(|t| ir.fresh(*t)).collect();
    let insts: Vec<Inst> = yields.iter().map(|t| ir.inst(Op::Const(Bits(0)), &[*t])).collect();
    let yields = insts.iter().map(|i| i.results[0]).collect();
    Block { params, insts, yields }
}

fn message(target: Target, make: impl FnOnce(&mut Ir)) -> Result<(), String> {
    let mut ir = Ir::new(target);
    make(&mut ir);
    verify(&ir.0, target).map(drop).map_err(|e| e.message)
}

#[track_caller]
fn refused(expected: &str, make: impl FnOnce(&mut Ir)) {
    let message = message(Target::GFX950, make).expect_err(expected);
    assert_eq!(message, expected);
}

#[track_caller]
fn accepted(make: impl FnOnce(&mut Ir)) {
    assert_eq!(message(Target::GFX950, make), Ok(()));
}

/// Operands of these types, and an operation made of them.
#[track_caller]
fn refused_op<const N: usize>(
    expected: &str,
    operands: [Type; N],
    results: &[Type],
    op: impl FnOnce([Value; N]) -> Op,
) {
    refused(expected, |ir| {
        let operands = operands.map(|t| ir.value(t));
        ir.push(op(operands), results);
    });
}

#[track_caller]
fn accepted_op<const N: usize>(operands: [Type; N], results: &[Type], op: impl FnOnce([Value; N]) -> Op) {
    accepted(|ir| {
        let operands = operands.map(|t| ir.value(t));
        ir.push(op(operands), results);
    });
}

#[test]
fn element_types_that_an_operation_is_not_defined_on() {
    let unary = |op| move |[a]: [Value; 1]| Op::Unary(op, a);
    let binary = |op| move |[a, b]: [Value; 2]| Op::Binary(op, a, b);
    refused_op("`exp` of f64; it is defined on f16, bf16, f32", [F64], &[F64], unary(UnaryOp::Exp));
    refused_op("`hw_rcp` of f16; it is defined on f32", [F16], &[F16], unary(UnaryOp::HwRcp));
    refused_op(
        "`ctpop` of idx; it is defined on i8, u8, i16, u16, i32, u32, i64, u64",
        [IDX],
        &[IDX],
        unary(UnaryOp::Ctpop),
    );
    refused_op(
        "`shl` of idx; it is defined on i8, u8, i16, u16, i32, u32, i64, u64",
        [IDX; 2],
        &[IDX],
        binary(BinaryOp::Shl),
    );
    refused_op("`div` of u32; it is defined on f16, bf16, f32, f64", [U32; 2], &[U32], binary(BinaryOp::Div));
    refused_op(
        "`and` of f32; it is defined on bool, i8, u8, i16, u16, i32, u32, i64, u64",
        [F32; 2],
        &[F32],
        binary(BinaryOp::And),
    );
    refused_op(
        "`cmp_lt` of bool; it is defined on i8, u8, i16, u16, i32, u32, i64, u64, idx, f16, bf16, f32, f64",
        [BOOL; 2],
        &[BOOL],
        |[a, b]| Op::Compare(Predicate::Lt, a, b),
    );
    refused_op("`fma` of u32; it is defined on f16, bf16, f32, f64", [U32; 3], &[U32], |[a, b, c]| Op::Fma { a, b, c });
    refused_op(
        "`reduce_and` of f32x4; it is defined on bool, i8, u8, i16, u16, i32, u32, i64, u64",
        [F32X4],
        &[F32],
        |[v]| Op::Reduce(ReduceOp::And, v),
    );
    let plain = "i8, u8, i16, u16, i32, u32, i64, u64, f16, bf16, f32, f64";
    refused_op(&format!("`opaque` of bool; it is defined on {plain}"), [BOOL], &[BOOL], |[v]| Op::Opaque(v));
    refused_op(&format!("`readfirstlane` of idx; it is defined on {plain}"), [IDX], &[IDX], |[v]| Op::ReadFirstLane(v));
    refused_op(&format!("`bitcast` of bool; it is defined on {plain}"), [BOOL], &[U32], |[v]| Op::Bitcast(v));
    accepted_op([F16], &[F16], unary(UnaryOp::Exp));
    accepted_op([Type::Vector(Scalar::Bf16, 3)], &[Type::Vector(Scalar::Bf16, 3)], unary(UnaryOp::Tanh));
}

#[test]
fn operands_and_results_that_do_not_match() {
    refused_op("the operand is f32 where u32 is wanted", [F32], &[U32], |[a]| Op::Unary(UnaryOp::Neg, a));
    refused_op("the right operand is u32 where f32 is wanted", [F32, U32], &[F32], |[a, b]| {
        Op::Binary(BinaryOp::Add, a, b)
    });
    refused_op("the summand is f64 where f32 is wanted", [F32, F32, F64], &[F32], |[a, b, c]| Op::Fma { a, b, c });
    refused_op(
        "the condition is boolx2 where boolx4 is wanted",
        [Type::Vector(Scalar::Bool, 2), F32X4],
        &[F32X4],
        |[c, a]| Op::Select { condition: c, on_true: a, on_false: a },
    );
    refused_op(
        "the condition is boolx4 where bool is wanted",
        [Type::Vector(Scalar::Bool, 4), F32],
        &[F32],
        |[c, a]| Op::Select { condition: c, on_true: a, on_false: a },
    );
    refused_op("`neg` has 2 results instead of 1", [F32], &[F32, F32], |[a]| Op::Unary(UnaryOp::Neg, a));
    refused_op("`barrier` has a result, but gives none", [], &[U32], |[]| Op::Barrier);
    refused_op("`lane_id` of u64; it is defined on u32", [], &[U64], |[]| Op::LaneId);
    refused_op("`opaque` of global<u32>", [GLOBAL], &[GLOBAL], |[p]| Op::Opaque(p));
    refused_op("constant 0x10000 does not fit u16", [], &[U16], |[]| Op::Const(Bits(0x1_0000)));
}

#[test]
fn conversions_that_there_are_not() {
    refused_op("no conversion from u32 to bool; compare with 0", [U32], &[BOOL], |[a]| Op::Convert(a));
    refused_op("no conversion from f32x4 to u32", [F32X4], &[U32], |[a]| Op::Convert(a));
    refused_op("no conversion from u32 to u32", [U32], &[U32], |[a]| Op::Convert(a));
    refused_op("no conversion from global<u32> to u64", [GLOBAL], &[U64], |[a]| Op::Convert(a));
    refused_op("no bitcast from f32 to u64", [F32], &[U64], |[a]| Op::Bitcast(a));
    refused_op("no bitcast from u64 to idx", [U64], &[IDX], |[a]| Op::Bitcast(a));
    for (from, to) in [(BOOL, IDX), (IDX, F64), (F16, IDX), (F64, U16), (BOOL, F16)] {
        accepted_op([from], &[to], |[a]| Op::Convert(a));
    }
}

#[test]
fn vectors() {
    let wide = |n| Type::Vector(Scalar::U16, n);
    refused_op("a vector of 65 elements; allowed are 1 to 64", [U16], &[wide(65)], |[a]| Op::VectorFrom(vec![a; 65]));
    accepted_op([U16], &[wide(64)], |[a]| Op::VectorFrom(vec![a; 64]));
    refused_op("3 elements for u16x4", [U16], &[wide(4)], |[a]| Op::VectorFrom(vec![a; 3]));
    refused_op("element 4 of f32x4", [F32X4], &[F32], |[v]| Op::Extract(v, 4));
    refused_op("the index is i32 where u32 is wanted", [F32X4, I32], &[F32], |[v, i]| Op::ExtractAt(v, i));
    refused_op("element of f32", [F32, U32], &[F32], |[v, i]| Op::ExtractAt(v, i));
    let shuffle = |mask: &[u32]| {
        let mask = mask.to_vec();
        move |[a, b]: [Value; 2]| Op::Shuffle { a, b, mask }
    };
    refused_op(
        "`shuffle` picks element 8 of two vectors of 4; allowed are 0 to 7",
        [F32X4; 2],
        &[Type::Vector(Scalar::F32, 2)],
        shuffle(&[0, 8]),
    );
    refused_op("the result is f32x4 where f32x2 is wanted", [F32X4; 2], &[F32X4], shuffle(&[0, 7]));
    refused_op(
        "the second vector is u16x4 where f32x4 is wanted",
        [F32X4, wide(4)],
        &[Type::Vector(Scalar::F32, 1)],
        shuffle(&[0]),
    );
    refused_op("`reduce_add` of f32, which is no vector", [F32], &[F32], |[v]| Op::Reduce(ReduceOp::Add, v));
}

#[test]
fn pointers() {
    refused_op(
        "the element count is f32; allowed are i8, u8, i16, u16, i32, u32, i64, u64, idx",
        [LDS, F32],
        &[LDS],
        |[p, n]| Op::PtrAdd(p, n),
    );
    refused_op("the pointer is lds<u32> where global<u32> is wanted", [LDS, U32], &[GLOBAL], |[p, n]| Op::PtrAdd(p, n));
    refused_op("`ptr_add` of u64", [U64, U32], &[U64], |[p, n]| Op::PtrAdd(p, n));
    refused_op("no pointer cast from lds<u32> to global<u32>", [LDS], &[GLOBAL], |[p]| Op::PtrCast(p));
    refused_op("no pointer cast from lds<u32> to lds<bool>", [LDS], &[Type::Ptr(Space::Lds, Scalar::Bool)], |[p]| {
        Op::PtrCast(p)
    });
    refused_op("an address as lds<u32>; only a pointer to global memory has one", [U64], &[LDS], |[a]| Op::IntToPtr(a));
    refused_op("the address is u32 where u64 is wanted", [U32], &[GLOBAL], |[a]| Op::IntToPtr(a));
    refused_op("lds<u32> where a pointer to global memory is wanted", [LDS], &[U64], |[p]| Op::PtrToInt(p));
    refused_op("pointer to a buffer that is no parameter; its address is a pointer", [BUFFER], &[GLOBAL], |[b]| {
        Op::BufferPtr(b)
    });
    refused_op("LDS array #7 is not declared", [], &[LDS], |[]| Op::LdsBase(7));
}

fn load(memory: Memory) -> impl FnOnce([Value; 1]) -> Op {
    move |[pointer]| Op::PtrLoad { pointer, memory }
}

fn store(memory: Memory) -> impl FnOnce([Value; 2]) -> Op {
    move |[value, pointer]| Op::PtrStore { value, pointer, memory }
}

#[test]
fn accesses_through_pointers() {
    let plain = Memory::new();
    let x4 = Type::Vector(Scalar::U32, 4);
    refused_op("access of f32 through a pointer to u32", [LDS], &[F32], load(plain));
    refused_op("memory access through u64", [U64], &[U64], load(plain));
    refused_op("alignment of 12 bytes; allowed are powers of two up to 4096", [LDS], &[U32], load(plain.align(12)));
    refused_op("alignment of 8192 bytes; allowed are powers of two up to 4096", [LDS], &[U32], load(plain.align(8192)));
    refused_op(
        "a load with order release; allowed are relaxed, acquire and seq_cst",
        [LDS],
        &[U32],
        load(plain.release(Scope::Device)),
    );
    refused_op(
        "a store with order acquire; allowed are relaxed, release and seq_cst",
        [U32, GLOBAL],
        &[],
        store(plain.acquire(Scope::Device)),
    );
    refused_op(
        "an atomic load of u32x4, 16 bytes; allowed are 1, 2, 4 and 8",
        [GLOBAL],
        &[x4],
        load(plain.relaxed(Scope::Device)),
    );
    refused_op(
        "an atomic load of u32 aligned to 2 bytes; it needs its own size, 4",
        [GLOBAL],
        &[U32],
        load(plain.relaxed(Scope::Device).align(2)),
    );
    refused_op(
        "an access that is not atomic has scope device; give it a memory order, or leave the scope out",
        [GLOBAL],
        &[U32],
        load(Memory { scope: Scope::Device, ..plain }),
    );
    refused_op(
        "memory access of u32x8, 32 bytes; allowed are 1, 2, 4, 8 and 16",
        [GLOBAL],
        &[Type::Vector(Scalar::U32, 8)],
        load(plain),
    );
    accepted_op([GLOBAL], &[Type::Vector(Scalar::U32, 2)], load(plain.acquire(Scope::System)));
    accepted_op([GLOBAL], &[x4], load(plain.align(1)));
}

#[test]
fn pointers_into_parameters_keep_their_declaration() {
    let (read, write) = (Value(0), Value(1));
    let through = |ir: &mut Ir, buffer| {
        let p = ir.push(Op::BufferPtr(buffer), &[GLOBAL])[0];
        let n = ir.value(U32);
        ir.push(Op::PtrAdd(p, n), &[GLOBAL])[0]
    };
    refused("stores to buffer `in`, which is declared as only read", |ir| {
        let (p, v) = (through(ir, read), ir.value(U32));
        ir.push(Op::PtrStore { value: v, pointer: p, memory: Memory::new() }, &[]);
    });
    refused("loads from buffer `out`, which is declared as only written", |ir| {
        let p = through(ir, write);
        ir.push(Op::PtrLoad { pointer: p, memory: Memory::new() }, &[U32]);
    });
    // Through a branch and a loop.
    refused("stores to buffer `in`, which is declared as only read", |ir| {
        let (a, b, v, c) = (through(ir, read), through(ir, write), ir.value(U32), ir.value(BOOL));
        let side = |p| Block { yields: vec![p], ..Block::default() };
        let p = ir.push(Op::If { condition: c, then: side(a), otherwise: side(b) }, &[GLOBAL])[0];
        let body = {
            let (i, carried) = (ir.fresh(U32), ir.fresh(GLOBAL));
            Block { params: vec![i, carried], insts: vec![], yields: vec![carried] }
        };
        let op = Op::For { lo: v, hi: v, init: vec![p], step: 1, unroll: Unroll::Auto, body };
        let p = ir.push(op, &[GLOBAL])[0];
        ir.push(Op::PtrStore { value: v, pointer: p, memory: Memory::new() }, &[]);
    });
    refused("loads from buffer `out`, which is declared as only written", |ir| {
        let (p, v) = (through(ir, write), ir.value(U32));
        let op = Op::AtomicRmw { op: AtomicOp::Add, pointer: p, value: v, order: Order::Relaxed, scope: Scope::Device };
        ir.push(op, &[U32]);
    });
}

#[test]
fn atomics() {
    let rmw = |op, order| {
        move |[pointer, value]: [Value; 2]| Op::AtomicRmw { op, pointer, value, order, scope: Scope::Device }
    };
    let relaxed = Order::Relaxed;
    refused_op(
        "`atomic_add` of global<u16>; it is defined on i32, u32, i64, u64, f32, f64",
        [Type::Ptr(Space::Global, Scalar::U16), U16],
        &[U16],
        rmw(AtomicOp::Add, relaxed),
    );
    refused_op(
        "`atomic_xor` of global<f32>; it is defined on i32, u32, i64, u64",
        [Type::Ptr(Space::Global, Scalar::F32), F32],
        &[F32],
        rmw(AtomicOp::Xor, relaxed),
    );
    refused_op(
        "an atomic operation with order plain; allowed are relaxed, acquire, release, acq_rel and seq_cst",
        [GLOBAL, U32],
        &[U32],
        rmw(AtomicOp::Add, Order::Plain),
    );
    refused_op("the value is u64 where u32 is wanted", [GLOBAL, U64], &[U32], rmw(AtomicOp::Add, relaxed));
    refused_op("access of u64 through a pointer to u32", [GLOBAL, U64], &[U64], rmw(AtomicOp::Add, relaxed));
    refused_op(
        "the value is u32x2 where one element is wanted",
        [GLOBAL, Type::Vector(Scalar::U32, 2)],
        &[Type::Vector(Scalar::U32, 2)],
        rmw(AtomicOp::Add, relaxed),
    );
    let cas = |order| {
        move |[pointer, expected, value]: [Value; 3]| Op::AtomicCas {
            pointer,
            expected,
            value,
            order,
            scope: Scope::Device,
        }
    };
    refused_op("the expected value is i32 where u32 is wanted", [GLOBAL, I32, U32], &[U32], cas(relaxed));
    refused_op(
        "an atomic operation with order plain; allowed are relaxed, acquire, release, acq_rel and seq_cst",
        [GLOBAL, U32, U32],
        &[U32],
        cas(Order::Plain),
    );
    for order in [Order::Plain, Order::Relaxed] {
        let expected = format!("a fence with order {order}; allowed are acquire, release, acq_rel and seq_cst");
        refused_op(&expected, [], &[], |[]| Op::Fence { order, scope: Scope::Device });
    }
}

fn buffer_load(buffer: Value, offset: Value) -> Op {
    let (scalar, mask, fill) = (None, None, None);
    Op::BufferLoad { buffer, offset, unit: OffsetUnit::Elements, scalar, mask, fill, cache: Cache::default() }
}

#[test]
fn buffer_accesses() {
    refused_op("the offset is i32; allowed are u32, idx", [BUFFER, I32], &[U32], |[b, i]| buffer_load(b, i));
    refused_op("buffer access through global<u32>", [GLOBAL, U32], &[U32], |[b, i]| buffer_load(b, i));
    refused_op("memory access of bool", [BUFFER, U32], &[BOOL], |[b, i]| buffer_load(b, i));
    refused_op("memory access of idx", [BUFFER, U32], &[IDX], |[b, i]| buffer_load(b, i));
    let with = |change: fn(&mut Op, Value)| {
        move |[b, i, v]: [Value; 3]| {
            let mut op = buffer_load(b, i);
            change(&mut op, v);
            op
        }
    };
    let mask = |op: &mut Op, v| {
        if let Op::BufferLoad { mask, .. } = op {
            *mask = Some(v);
        }
    };
    let fill = |op: &mut Op, v| {
        if let Op::BufferLoad { fill, .. } = op {
            *fill = Some(v);
        }
    };
    let scalar = |op: &mut Op, v| {
        if let Op::BufferLoad { scalar, .. } = op {
            *scalar = Some(v);
        }
    };
    refused_op("a masked load without a fill value; give both", [BUFFER, U32, BOOL], &[U32], with(mask));
    refused_op("the mask is u32 where bool is wanted", [BUFFER, U32, U32], &[U32], with(mask));
    refused_op("a load with a fill value, but without a mask; give both", [BUFFER, U32, U32], &[U32], with(fill));
    refused_op("the scalar offset is idx where u32 is wanted", [BUFFER, U32, IDX], &[U32], with(scalar));
    refused_op(
        "the fill value is f32 where u32 is wanted",
        [BUFFER, U32, BOOL, F32],
        &[U32],
        |[buffer, offset, mask, fill]| Op::BufferLoad {
            buffer,
            offset,
            unit: OffsetUnit::Bytes,
            scalar: None,
            mask: Some(mask),
            fill: Some(fill),
            cache: Cache::default(),
        },
    );
    let atomic = |op| {
        move |[value, buffer, offset]: [Value; 3]| Op::BufferAtomic {
            kind: AtomicKind(op),
            value,
            buffer,
            offset,
            unit: OffsetUnit::Elements,
            mask: None,
            scope: Scope::Device,
        }
    };
    refused_op(
        "the value of `atomic_or` is f32; allowed are i32, u32, i64, u64",
        [F32, BUFFER, U32],
        &[F32],
        atomic(AtomicOp::Or),
    );
    refused_op(
        "`buffer_atomic` of f16; it is defined on i32, u32, i64, u64, f32, f64",
        [F16, BUFFER, U32],
        &[F16],
        atomic(AtomicOp::Add),
    );
    refused("stores to buffer `in`, which is declared as only read", |ir| {
        let (value, offset) = (ir.value(U32), ir.value(U32));
        ir.push(atomic(AtomicOp::Add)([value, Value(0), offset]), &[U32]);
    });
    let made = |[address, bytes]: [Value; 2]| Op::MakeBuffer { address, bytes };
    refused_op("the extent is i32; allowed are u32, u64 and idx", [U64, I32], &[BUFFER], made);
    refused_op("the address is u32 where u64 is wanted", [U32, U32], &[BUFFER], made);
    refused_op("makes a buffer, but the result is u32", [U64, U32], &[U32], made);
}

#[test]
fn copies_to_lds() {
    let copy = |bytes| {
        move |[buffer, offset, pointer]: [Value; 3]| Op::CopyToLds {
            buffer,
            offset,
            pointer,
            unit: OffsetUnit::Elements,
            scalar: None,
            bytes,
            cache: Cache::default(),
        }
    };
    refused_op("a copy of 8 bytes a lane; allowed are 4 and 16", [BUFFER, U32, LDS], &[], copy(8));
    refused_op("a copy to global<u32>; it needs a pointer to LDS", [BUFFER, U32, GLOBAL], &[], copy(4));
    accepted_op([BUFFER, IDX, LDS], &[], copy(16));
    refused("loads from buffer `out`, which is declared as only written", |ir| {
        let (offset, pointer) = (ir.value(U32), ir.value(LDS));
        ir.push(copy(4)([Value(1), offset, pointer]), &[]);
    });
}

#[test]
fn exchanges_between_lanes() {
    let shuffle =
        |width| move |[value, amount]: [Value; 2]| Op::LaneShuffle { op: ShuffleOp::Xor, value, amount, width };
    for width in [0, 24, 128] {
        let expected = format!("a group of {width} lanes; allowed are powers of two up to 64, the wave of gfx950");
        refused_op(&expected, [U32, U32], &[U32], shuffle(width));
    }
    refused_op("the lane is i32 where u32 is wanted", [U32, I32], &[U32], shuffle(32));
    refused_op("the value is f32x4 where one element is wanted", [F32X4, U32], &[F32X4], shuffle(32));
    let butterfly =
        |offset, width| move |[value]: [Value; 1]| Op::Butterfly { op: ButterflyOp::Add, value, offset, width };
    for offset in [0, 3, 16, 32] {
        let expected = format!("butterfly over distance {offset}; allowed are powers of two below 16");
        refused_op(&expected, [F32], &[F32], butterfly(offset, 16));
    }
    accepted_op([F32], &[F32], butterfly(8, 16));
    let message = message(Target::SM_90, |ir| {
        let v = ir.value(F32);
        ir.push(butterfly(32, 64)([v]), &[F32]);
    });
    assert_eq!(message, Err("a group of 64 lanes; allowed are powers of two up to 32, the wave of sm_90".to_owned()));
    refused_op("the condition is boolx2 where bool is wanted", [Type::Vector(Scalar::Bool, 2)], &[U64], |[c]| {
        Op::Ballot(c)
    });
    refused_op("the result is u32 where u64 is wanted", [BOOL], &[U32], |[c]| Op::Ballot(c));
    refused_op("the value is f32x4 where one element is wanted", [F32X4, U32], &[F32X4], |[v, l]| Op::ReadLane(v, l));
    refused_op("`transpose8x8` of f32; it is defined on u32", [F32], &[F32], |[v]| Op::Transpose8x8(v));
    refused_op("the selector is i32 where u32 is wanted", [U32, U32, I32], &[U32], |[a, b, s]| Op::PermB32(a, b, s));
}

#[test]
fn numbers_out_of_range() {
    let wait = |vmcnt, lgkmcnt, expcnt| move |[]: [Value; 0]| Op::SWaitcnt { vmcnt, lgkmcnt, expcnt };
    refused_op("vmcnt 64; allowed are 0 to 63", [], &[], wait(Some(64), None, None));
    refused_op("lgkmcnt 16; allowed are 0 to 15", [], &[], wait(None, Some(16), None));
    refused_op("expcnt 8; allowed are 0 to 7", [], &[], wait(None, None, Some(8)));
    refused_op("`s_waitcnt` of no counter; name vmcnt, lgkmcnt or expcnt", [], &[], wait(None, None, None));
    refused_op("s_sleep 128; allowed are 0 to 127", [], &[], |[]| Op::SSleep(128));
    refused_op("s_setprio 4; allowed are 0 to 3", [], &[], |[]| Op::SSetprio(4));
    refused_op("instruction classes 0x800; allowed are bits of 0x7ff", [], &[], |[]| Op::SchedBarrier(0x800));
    refused_op("a scheduling group of 0 instructions; allowed are 1 or more", [], &[], |[]| Op::SchedGroupBarrier {
        mask: 8,
        size: 0,
        group: 0,
    });
}

#[test]
fn what_a_target_lacks() {
    let wait = |target| {
        message(target, |ir| {
            ir.push(Op::SWaitcnt { vmcnt: Some(0), lgkmcnt: None, expcnt: None }, &[]);
        })
    };
    assert_eq!(wait(Target::GFX942), Ok(()));
    assert_eq!(wait(Target::GFX1201), Err("`s_waitcnt` counts differently on gfx1201; use `drain`".to_owned()));
    assert_eq!(wait(Target::SM_89), Err("sm_89 has no `s_waitcnt`; use `drain`".to_owned()));
}

#[test]
fn conditions_are_one_bool() {
    refused_op("`assume` of u32; it is defined on bool", [U32], &[], |[c]| Op::Assume(c));
    refused_op("`expect` of u32; it is defined on bool", [U32], &[U32], |[c]| Op::Expect {
        condition: c,
        likely: true,
    });
    refused_op("the condition is boolx2 where bool is wanted", [Type::Vector(Scalar::Bool, 2)], &[], |[c]| Op::If {
        condition: c,
        then: Block::default(),
        otherwise: Block::default(),
    });
}

#[test]
fn loops() {
    let make =
        |ty: Type, hi: Type, step, params: &'static [Type], yields: &'static [Type], results: &'static [Type]| {
            move |ir: &mut Ir| {
                let (lo, hi, start) = (ir.value(ty), ir.value(hi), ir.value(F32));
                let body = region(ir, params, yields);
                ir.push(Op::For { lo, hi, init: vec![start], step, unroll: Unroll::Auto, body }, results);
            }
        };
    accepted(make(I32, I32, 1, &[I32, F32], &[F32], &[F32]));
    accepted(make(IDX, IDX, 1, &[IDX, F32], &[F32], &[F32]));
    refused(
        "the first index is i16; allowed are i32, u32, i64, u64, idx",
        make(I16, I16, 1, &[I16, F32], &[F32], &[F32]),
    );
    refused("the end is u64 where u32 is wanted", make(U32, U64, 1, &[U32, F32], &[F32], &[F32]));
    refused("a loop with step 0", make(U32, U32, 0, &[U32, F32], &[F32], &[F32]));
    refused(
        "the body of `for` takes u64, f32 where u32, f32 is wanted",
        make(U32, U32, 1, &[U64, F32], &[F32], &[F32]),
    );
    refused("the region hands out u32 where f32 is wanted", make(U32, U32, 1, &[U32, F32], &[U32], &[F32]));
    refused("`for` carries f32, but results in nothing", make(U32, U32, 1, &[U32, F32], &[F32], &[]));
}

#[test]
fn regions_of_while() {
    let make = |before: (&'static [Type], &'static [Type]), after: (&'static [Type], &'static [Type])| {
        move |ir: &mut Ir| {
            let start = ir.value(U32);
            let before = region(ir, before.0, before.1);
            let after = region(ir, after.0, after.1);
            ir.push(Op::While { init: vec![start], before, after }, &[F32]);
        }
    };
    accepted(make((&[U32], &[BOOL, F32]), (&[F32], &[U32])));
    refused("the condition of `while` takes nothing where u32 is wanted", make((&[], &[BOOL, F32]), (&[F32], &[U32])));
    refused("the region hands out f32 where bool, f32 is wanted", make((&[U32], &[F32]), (&[F32], &[U32])));
    refused("the body of `while` takes u32 where f32 is wanted", make((&[U32], &[BOOL, F32]), (&[U32], &[U32])));
    refused("the region hands out f32 where u32 is wanted", make((&[U32], &[BOOL, F32]), (&[F32], &[F32])));
}

#[test]
fn what_cannot_cross_the_edge_of_a_region() {
    refused("buffer<u32> at the edge of a region; only data and pointers enter or leave one", |ir| {
        let (c, b) = (ir.value(BOOL), ir.value(BUFFER));
        let side = || Block { yields: vec![b], ..Block::default() };
        ir.push(Op::If { condition: c, then: side(), otherwise: side() }, &[BUFFER]);
    });
    refused("the first region of `if` takes u32 where nothing is wanted", |ir| {
        let c = ir.value(BOOL);
        let then = region(ir, &[U32], &[]);
        ir.push(Op::If { condition: c, then, otherwise: Block::default() }, &[]);
    });
}

#[test]
fn native_operations() {
    let make = |target: &'static str, code: NativeCode, ty: Type| {
        move |ir: &mut Ir| {
            let arg = ir.value(ty);
            let meaning = region(ir, std::slice::from_ref(&ty), &[ty]);
            let forms = vec![NativeForm { target: target.to_owned(), code, effects: false }];
            ir.push(Op::Native { args: vec![arg], forms, meaning }, &[ty]);
        }
    };
    let asm = |t: &str| NativeCode::Asm { template: t.to_owned(), constraints: "=v,v".to_owned() };
    let intrinsic = |n: &str| NativeCode::Intrinsic { name: n.to_owned() };
    accepted(make("gfx942", asm("v_mov_b32 $0, $1"), U32));
    accepted(make("nvptx", intrinsic("llvm.bitreverse.i32"), U32));
    refused(
        "a `native` form for `gfx9`; known are amdgpu, nvptx and the chips gfx950, gfx942, gfx1201, sm_90, sm_89, sm_120a",
        make("gfx9", asm("x"), U32),
    );
    refused("`native` form for nvptx without assembly", make("nvptx", asm(" "), U32));
    refused("assembly for amdgpu with bool, which has no register form; use u32", make("amdgpu", asm("x"), BOOL));
    refused(
        "`native` form for sm_90 with idx, which has no fixed width; use i32 or i64",
        make("sm_90", intrinsic("llvm.abs.i64"), IDX),
    );
    refused(
        "sm_90 has no intrinsic `llvm.amdgcn.rcp.f32`; its names start with `llvm.`, never with `llvm.amdgcn.`",
        make("sm_90", intrinsic("llvm.amdgcn.rcp.f32"), F32),
    );
    refused(
        "amdgpu has no intrinsic `rcp`; its names start with `llvm.`, never with `llvm.nvvm.`",
        make("amdgpu", intrinsic("rcp"), F32),
    );
    refused("the meaning of `native` takes nothing where u32 is wanted", |ir| {
        let arg = ir.value(U32);
        let meaning = region(ir, &[], &[]);
        ir.push(Op::Native { args: vec![arg], forms: vec![], meaning }, &[]);
    });
    refused("uses a value that is not among the arguments of its `native`; pass it as one", |ir| {
        let outside = ir.push(Op::LaneId, &[U32])[0];
        let inst = ir.inst(Op::Unary(UnaryOp::Not, outside), &[U32]);
        let meaning = Block { params: vec![], yields: inst.results.clone(), insts: vec![inst] };
        ir.push(Op::Native { args: vec![], forms: vec![], meaning }, &[U32]);
    });
    accepted(|ir| {
        let constant = ir.value(U32);
        let inst = ir.inst(Op::Unary(UnaryOp::Not, constant), &[U32]);
        let meaning = Block { params: vec![], yields: inst.results.clone(), insts: vec![inst] };
        let n = ir.push(Op::Native { args: vec![], forms: vec![], meaning }, &[U32])[0];
        ir.push(Op::Unary(UnaryOp::Not, n), &[U32]);
    });
}

#[test]
fn types_without_a_memory_form() {
    let with = |kind| {
        let params = vec![Param { name: "p", kind }];
        let kernel = build("k", Target::GFX950, Launch::linear(1, 64), params, |_| ()).unwrap();
        verify(&kernel, Target::GFX950).unwrap_err().to_string()
    };
    let buffer = |elem| ParamKind::Buffer { elem, len: 1, access: Access::Read, align: 16 };
    assert_eq!(with(buffer(Scalar::Bool)), "buffer `p` holds bool, which has no memory form; use u32");
    assert_eq!(with(buffer(Scalar::Idx)), "buffer `p` holds idx, which has no memory form; use i32 or i64");
    assert_eq!(with(ParamKind::Scalar(Scalar::Idx)), "scalar `p` is idx, which has no memory form; use i32 or i64");
    let message = message(Target::GFX950, |ir| {
        ir.0.lds.push(LdsArray { name: "a", elem: Scalar::Idx, len: 1, align: 16 });
    });
    assert!(message.unwrap_err().contains("elements with a memory form"));
}
