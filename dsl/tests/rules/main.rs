//! Rules that the builder's types already keep, checked on IR made by hand: each with its message.

mod memory;

use lathe_dsl::builder::build;
use lathe_dsl::ir::{
    Access, BinaryOp, Bits, Block, ButterflyOp, Inst, Kernel, LdsArray, Location, NativeCode, NativeForm, Op, OpNumber,
    Param, ParamKind, Predicate, ReduceOp, Scalar, ShuffleOp, Space, Type, UnaryOp, Unroll, Value,
};
use lathe_dsl::numerics::{Narrow, Overflow};
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

    /// Declares parameter `i`, a buffer, anew.
    fn declare(&mut self, i: usize, access: Access, align: u32) {
        self.0.params[i].kind = ParamKind::Buffer { elem: Scalar::U32, len: 64, access, align };
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
            Type::Texture(_) | Type::Surface(_) => unreachable!("only parameters are"),
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
    refused_op("`barrier` has a result, but gives none; write it without `%… =`", [], &[U32], |[]| Op::Barrier);
    refused_op("`lane_id` of u64; it is defined on u32", [], &[U64], |[]| Op::LaneId);
    refused_op(
        "`opaque` of global<u32>; it is defined on elements and vectors, not on pointers or buffers",
        [GLOBAL],
        &[GLOBAL],
        |[p]| Op::Opaque(p),
    );
    refused_op("constant 0x10000 does not fit u16, which has 16 bits", [], &[U16], |[]| Op::Const(Bits(0x1_0000)));
}

#[test]
fn conversions_that_there_are_not() {
    refused_op("no conversion from u32 to bool; compare with 0", [U32], &[BOOL], |[a]| Op::Convert(a));
    refused_op(
        "no conversion from f32x4 to u32; as many elements must come out as go in, 4",
        [F32X4],
        &[U32],
        |[a]| Op::Convert(a),
    );
    refused_op("no conversion from u32 to u32; it is one already", [U32], &[U32], |[a]| Op::Convert(a));
    refused_op(
        "`convert` of global<u32>; it is defined on elements and vectors, not on pointers or buffers",
        [GLOBAL],
        &[U64],
        |[a]| Op::Convert(a),
    );
    refused_op(
        "no bitcast from f32 to u64; allowed are data of one size with a memory form (no bool, no idx)",
        [F32],
        &[U64],
        |[a]| Op::Bitcast(a),
    );
    refused_op(
        "no bitcast from u64 to idx; allowed are data of one size with a memory form (no bool, no idx)",
        [U64],
        &[IDX],
        |[a]| Op::Bitcast(a),
    );
    for (from, to) in [(BOOL, IDX), (IDX, F64), (F16, IDX), (F64, U16), (BOOL, F16)] {
        accepted_op([from], &[to], |[a]| Op::Convert(a));
    }
}

#[test]
fn vectors() {
    let wide = |n| Type::Vector(Scalar::U16, n);
    refused_op("a vector of 65 elements; allowed are 1 to 64", [U16], &[wide(65)], |[a]| Op::VectorFrom(vec![a; 65]));
    accepted_op([U16], &[wide(64)], |[a]| Op::VectorFrom(vec![a; 64]));
    refused_op("3 elements for u16x4, which has 4", [U16], &[wide(4)], |[a]| Op::VectorFrom(vec![a; 3]));
    refused_op("element 4 of f32x4; allowed are 0 to 3", [F32X4], &[F32], |[v]| Op::Extract(v, 4));
    refused_op("the index is i32 where u32 is wanted", [F32X4, I32], &[F32], |[v, i]| Op::ExtractAt(v, i));
    refused_op("`extract_at` of f32, which is no vector", [F32, U32], &[F32], |[v, i]| Op::ExtractAt(v, i));
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
fn transposing_reads() {
    let lds = |s| Type::Ptr(Space::Lds, s);
    let read = |bits| move |[pointer]: [Value; 1]| Op::LdsReadTr { pointer, bits };
    for (bits, s, n) in
        [(16, Scalar::Bf16, 4), (16, Scalar::U16, 4), (8, Scalar::I8, 8), (4, Scalar::U32, 2), (6, Scalar::U32, 3)]
    {
        // Not of an array that nothing is stored to.
        accepted(|ir| {
            let address = ir.value(U32);
            let pointer = ir.push(Op::IntToPtr(address), &[lds(s)])[0];
            ir.push(read(bits)([pointer]), &[Type::Vector(s, n)]);
        });
        let wrong = Type::Vector(s, n + 1);
        refused_op(&format!("the result is {wrong} where {s}x{n} is wanted"), [lds(s)], &[wrong], read(bits));
    }
    let f16x4 = Type::Vector(Scalar::F16, 4);
    refused_op("a transposing read of 32 bits; allowed are 16, 8, 6 and 4", [lds(Scalar::F16)], &[f16x4], read(32));
    refused_op("a transposing read of f16x4; elements of 8 bits are wanted", [lds(Scalar::F16)], &[f16x4], read(8));
    refused_op(
        "access of f16x4 through a pointer to u16; cast the pointer by `.cast::<f16>()`",
        [lds(Scalar::U16)],
        &[f16x4],
        read(16),
    );
    let global = Type::Ptr(Space::Global, Scalar::F16);
    refused_op("a transposing read through global<f16>; it needs a pointer to LDS", [global], &[f16x4], read(16));
}

#[test]
fn stochastic_rounding() {
    let round = |[a, random]: [Value; 2]| Op::ConvertStochastic(a, random);
    let bf16 = Type::Scalar(Scalar::Bf16);
    accepted_op([F32, U32], &[bf16], round);
    accepted_op([F32X4, Type::Vector(Scalar::U32, 4)], &[Type::Vector(Scalar::F16, 4)], round);
    refused_op("the random number is u32 where u32x4 is wanted", [F32X4, U32], &[Type::Vector(Scalar::F16, 4)], round);
    refused_op(
        "no stochastic rounding from f32 to f64; allowed are bf16 and f16",
        [F32, U32],
        &[Type::Scalar(Scalar::F64)],
        round,
    );
    refused_op("`cvt_sr` of bf16; it is defined on f32", [bf16, U32], &[bf16], round);
}

#[test]
fn codes_of_narrow_floats() {
    let vector = |s, n| Type::Vector(s, n);
    let u8 = Type::Scalar(Scalar::U8);
    let overflow = Overflow::Saturate;
    let encode =
        |format| move |[value]: [Value; 1]| Op::Encode { value, scale: None, old: None, format, overflow, byte: None };
    accepted_op([F32X4], &[U32], encode(Narrow::E4m3));
    accepted_op([F32], &[u8], encode(Narrow::E2m1));
    accepted_op([F16], &[u8], encode(Narrow::E2m3));
    accepted_op([vector(Scalar::F16, 4)], &[U16], encode(Narrow::E2m1));
    accepted_op([vector(Scalar::Bf16, 16)], &[vector(Scalar::U32, 3)], encode(Narrow::E3m2));
    refused_op("the result is u16 where u32 is wanted", [F32X4], &[U16], encode(Narrow::E4m3));
    refused_op("the result is i32 where u32 is wanted", [F32X4], &[I32], encode(Narrow::E4m3));
    refused_op("`encode` of i32; it is defined on f16, bf16, f32", [I32], &[u8], encode(Narrow::E4m3));
    refused_op(
        "3 codes of e4m3 are 24 bits; allowed are one code, and 8, 16 and multiples of 32 bits",
        [vector(Scalar::F32, 3)],
        &[U32],
        encode(Narrow::E4m3),
    );
    let into = |byte, format| {
        move |[value, old]: [Value; 2]| Op::Encode { value, scale: None, old: Some(old), format, overflow, byte }
    };
    let pair = vector(Scalar::F32, 2);
    accepted_op([pair, U32], &[U32], into(Some(3), Narrow::E2m1));
    accepted_op([pair, U32], &[U32], into(Some(2), Narrow::E4m3));
    refused_op(
        "codes go into `old` from `byte` on; give both or neither",
        [pair, U32],
        &[U32],
        into(None, Narrow::E2m1),
    );
    refused_op("what the codes go into is i32 where u32 is wanted", [pair, I32], &[U32], into(Some(0), Narrow::E2m1));
    refused_op("the result is u16 where u32 is wanted", [pair, U32], &[U16], into(Some(0), Narrow::E2m1));
    let expected = "codes of 16 bits at byte 1; allowed are multiples of 2 up to 2";
    refused_op(expected, [pair, U32], &[U32], into(Some(1), Narrow::E4m3));
    refused_op(
        "codes of 8 bits at byte 4; allowed are multiples of 1 up to 3",
        [pair, U32],
        &[U32],
        into(Some(4), Narrow::E2m1),
    );
    refused_op("codes of 32 bits into a u32; allowed are 8 and 16", [F32X4, U32], &[U32], into(Some(0), Narrow::E4m3));
    let scaled = |format| {
        move |[value, scale]: [Value; 2]| Op::Encode {
            value,
            scale: Some(scale),
            old: None,
            format,
            overflow,
            byte: None,
        }
    };
    accepted_op([F32X4, F32], &[U32], scaled(Narrow::E5m2));
    refused_op("the scale is u32 where f32 is wanted", [F32X4, U32], &[U32], scaled(Narrow::E5m2));
    refused_op("e8m0 is what scales are in; it takes none itself", [F32X4, F32], &[U32], scaled(Narrow::E8m0));

    let decode = |format| move |[codes]: [Value; 1]| Op::Decode { codes, scale: None, format };
    accepted_op([U32], &[F32X4], decode(Narrow::E4m3));
    accepted_op([u8], &[F16], decode(Narrow::E2m1));
    accepted_op([vector(Scalar::U32, 3)], &[vector(Scalar::Bf16, 16)], decode(Narrow::E2m3));
    refused_op("the operand is u32 where u16 is wanted", [U32], &[pair], decode(Narrow::E4m3));
    refused_op("`decode` gives f16, bf16, f32, not f64", [u8], &[F64], decode(Narrow::E4m3));
    refused_op("`decode` of i32; it is defined on u8, u16, u32", [I32], &[F32X4], decode(Narrow::E4m3));
    let scaled = |[codes, scale]: [Value; 2]| Op::Decode { codes, scale: Some(scale), format: Narrow::E8m0 };
    refused_op("e8m0 is what scales are in; it takes none itself", [U32, F32], &[F32X4], scaled);
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
    accepted_op([F32X4, U32], &[F32X4], shuffle(32));
    refused_op("the value is f32x4 where f32 is wanted", [F32X4, U32], &[F32], shuffle(32));
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
    assert_eq!(
        message,
        Err("butterfly over distance 32; allowed are powers of two below 32, the lanes of a wave".to_owned())
    );
    refused_op("the condition is boolx2 where bool is wanted", [Type::Vector(Scalar::Bool, 2)], &[U64], |[c]| {
        Op::Ballot(c)
    });
    refused_op("the result is u32 where u64 is wanted", [BOOL], &[U32], |[c]| Op::Ballot(c));
    accepted_op([F32X4, U32], &[F32X4], |[v, l]| Op::ReadLane(v, l));
    accepted_op([F32X4], &[F32X4], |[v]| Op::ReadFirstLane(v));
    accepted_op([F32X4], &[F32X4], butterfly(8, 16));
    refused_op("the lane is u32x2 where u32 is wanted", [F32, Type::Vector(Scalar::U32, 2)], &[F32], |[v, l]| {
        Op::ReadLane(v, l)
    });
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
    refused(
        "a loop with step 0 never ends; the step must be at least 1",
        make(U32, U32, 0, &[U32, F32], &[F32], &[F32]),
    );
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
    refused(
        "buffer<u32> at the edge of a region; only data and pointers enter or leave one: use the buffer inside",
        |ir| {
            let (c, b) = (ir.value(BOOL), ir.value(BUFFER));
            let side = || Block { yields: vec![b], ..Block::default() };
            ir.push(Op::If { condition: c, then: side(), otherwise: side() }, &[BUFFER]);
        },
    );
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
    refused(
        "`native` form for nvptx without assembly; write its instructions, or leave the form out",
        make("nvptx", asm(" "), U32),
    );
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
