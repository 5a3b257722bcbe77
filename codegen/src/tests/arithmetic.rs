//! Every arithmetic operation, in LLVM IR (what it means) and in machine code (what it costs).

use lathe_dsl::Target;
use lathe_dsl::ir::{BinaryOp, Bits, Op, Predicate, Scalar, Type, UnaryOp, Value};

use super::{Elementwise, has, lacks, text};
use crate::Level;

const I32: Type = Type::Scalar(Scalar::I32);
const U32: Type = Type::Scalar(Scalar::U32);
const I64: Type = Type::Scalar(Scalar::I64);
const U64: Type = Type::Scalar(Scalar::U64);
const U16: Type = Type::Scalar(Scalar::U16);
const F32: Type = Type::Scalar(Scalar::F32);
const BF16: Type = Type::Scalar(Scalar::Bf16);
const BOOL: Type = Type::Scalar(Scalar::Bool);
const F32X2: Type = Type::Vector(Scalar::F32, 2);
const F32X4: Type = Type::Vector(Scalar::F32, 4);
const BF16X2: Type = Type::Vector(Scalar::Bf16, 2);
const BF16X4: Type = Type::Vector(Scalar::Bf16, 4);

/// LLVM IR and machine code of `y = op(inputs…)`.
fn made(target: Target, inputs: &[Type], result: Type, op: impl FnOnce(&[Value]) -> Op) -> (String, String) {
    let kernel = Elementwise::new(target, inputs, result, op).kernel;
    (text(&kernel, target, Level::LlvmIr), text(&kernel, target, Level::Asm))
}

fn binary(target: Target, op: BinaryOp, ty: Type) -> (String, String) {
    made(target, &[ty, ty], ty, |v| Op::Binary(op, v[0], v[1]))
}

fn unary(target: Target, op: UnaryOp, ty: Type) -> (String, String) {
    made(target, &[ty], ty, |v| Op::Unary(op, v[0]))
}

fn convert(target: Target, from: Type, to: Type) -> (String, String) {
    made(target, &[from], to, |v| Op::Convert(v[0]))
}

#[test]
fn integer_operations_become_the_plain_instructions() {
    let cases = [
        (BinaryOp::Add, I32, " = add i32 "),
        (BinaryOp::Sub, U64, " = sub i64 "),
        (BinaryOp::Mul, U32, " = mul i32 "),
        (BinaryOp::And, U32, " = and i32 "),
        (BinaryOp::Or, I64, " = or i64 "),
        (BinaryOp::Xor, U16, " = xor i16 "),
        (BinaryOp::Maximum, I32, "@llvm.smax.i32("),
        (BinaryOp::Maximum, U32, "@llvm.umax.i32("),
        (BinaryOp::Minimum, I64, "@llvm.smin.i64("),
        (BinaryOp::Minimum, U64, "@llvm.umin.i64("),
    ];
    for target in Target::MAIN {
        for (op, ty, wanted) in cases {
            let (ir, _) = binary(target, op, ty);
            has(&ir, &[wanted]);
            // Nothing is known about loaded values, so nothing may be promised.
            lacks(&ir, &[" nsw ", " nuw "]);
        }
    }
}

#[test]
fn float_operations_round_once_and_carry_no_flags() {
    let cases = [
        (BinaryOp::Add, F32, " = fadd float "),
        (BinaryOp::Sub, F32, " = fsub float "),
        (BinaryOp::Mul, F32X4, " = fmul <4 x float> "),
        (BinaryOp::Div, F32, " = fdiv float "),
        (BinaryOp::Maximum, F32, "@llvm.maximum.f32("),
        (BinaryOp::Minimum, F32X4, "@llvm.minimum.v4f32("),
    ];
    for target in Target::MAIN {
        for (op, ty, wanted) in cases {
            let (ir, _) = binary(target, op, ty);
            has(&ir, &[wanted]);
            lacks(&ir, &[" fast ", " contract ", " nnan ", " nsz ", " reassoc ", "!fpmath"]);
        }
    }
    has(&binary(Target::SM_90, BinaryOp::Div, F32).1, &["div.rn.f32"]);
    has(&binary(Target::SM_90, BinaryOp::Add, F32).1, &["add.rn.f32"]);
    has(&binary(Target::SM_90, BinaryOp::Maximum, F32).1, &["max.NaN.f32"]);
    has(&binary(Target::GFX950, BinaryOp::Minimum, F32).1, &["v_minimum3_f32"]);
    // Correctly rounded division scales and fixes up.
    has(&binary(Target::GFX950, BinaryOp::Div, F32).1, &["v_div_scale_f32", "v_div_fmas_f32", "v_div_fixup_f32"]);
}

#[test]
fn a_product_and_a_sum_stay_two_roundings() {
    for target in Target::MAIN {
        let kernel =
            super::kernel(target, vec![super::buffer("x", Scalar::F32, lathe_dsl::ir::Access::ReadWrite)], |k| {
                let x = k.buffer::<f32, lathe_dsl::kernel::InOut>(0);
                let i = k.thread_id(lathe_dsl::ir::Axis::X);
                let [a, b, c] = [0, 256, 512].map(|d| k.buffer_load::<f32>(x, i + d));
                k.buffer_store(a * b + c, x, i);
            });
        lacks(&text(&kernel, target, Level::Asm), &["fma", "v_mac", "v_fmac", "mad.f32"]);
    }
}

#[test]
fn shift_amounts_are_taken_modulo_the_width() {
    for target in Target::MAIN {
        for (op, ty, mask, wanted) in [
            (BinaryOp::Shl, U32, "and i32 %", "shl i32"),
            (BinaryOp::Shr, U32, "and i32 %", "lshr i32"),
            (BinaryOp::Shr, I32, "and i32 %", "ashr i32"),
            (BinaryOp::Shr, I64, "and i64 %", "ashr i64"),
        ] {
            let (ir, _) = binary(target, op, ty);
            let width = if ty.scalar().bits() == 64 { ", 63" } else { ", 31" };
            let masked = ir.lines().find(|l| l.contains(mask)).unwrap_or_else(|| panic!("{ir}"));
            assert!(masked.contains(width), "{masked}");
            has(&ir, &[wanted]);
        }
    }
    // Free on AMD, whose shifts mask by themselves.
    lacks(&binary(Target::GFX950, BinaryOp::Shl, U32).1, &["v_and_b32"]);
}

#[test]
fn division_is_never_undefined() {
    for target in Target::MAIN {
        let (ir, _) = binary(target, BinaryOp::DivFloor, U32);
        has(&ir, &["@llvm.umax.i32(i32 %", "udiv i32"]);
        let (ir, _) = binary(target, BinaryOp::RemFloor, U64);
        has(&ir, &["@llvm.umax.i64(i64 %", "urem i64"]);
        for op in [BinaryOp::DivFloor, BinaryOp::RemFloor] {
            let (ir, _) = binary(target, op, I32);
            // 0 and −1 are replaced before anything is divided.
            has(&ir, &["icmp ule i32", "select i1", "srem i32"]);
        }
    }
}

/// `x op divisor` with a constant divisor.
fn by_constant(target: Target, op: BinaryOp, ty: Type, divisor: u64) -> String {
    let mut kernel = Elementwise::new(target, &[ty], ty, |v| Op::Binary(op, v[0], v[0])).kernel;
    // Put the constant in front and divide by it.
    let constant = Value(kernel.values.len() as u32);
    kernel.values.push(ty);
    for inst in &mut kernel.body.insts {
        inst.number.0 += 1;
        if let Op::Binary(_, _, b) = &mut inst.op {
            *b = constant;
        }
    }
    let first = lathe_dsl::ir::OpNumber(1);
    let inst = lathe_dsl::ir::Inst { number: first, op: Op::Const(Bits(divisor)), results: vec![constant] };
    kernel.body.insts.insert(0, inst);
    kernel.locations.push(kernel.locations[0]);
    text(&kernel, target, Level::LlvmIr)
}

#[test]
fn division_by_a_known_number_needs_no_guard() {
    for target in Target::MAIN {
        let ir = by_constant(target, BinaryOp::DivFloor, U32, 12);
        has(&ir, &["udiv i32 %"]);
        lacks(&ir, &["umax"]);
        let ir = by_constant(target, BinaryOp::DivFloor, I32, 8);
        has(&ir, &["ashr i32 %", ", 3"]);
        lacks(&ir, &["sdiv", "srem"]);
        let ir = by_constant(target, BinaryOp::RemFloor, I64, 16);
        has(&ir, &["and i64 %", ", 15"]);
        lacks(&ir, &["srem"]);
        let ir = by_constant(target, BinaryOp::DivFloor, I32, 10);
        has(&ir, &["sdiv i32 %", "srem i32 %", "sub i32 %"]);
        lacks(&ir, &["icmp ule"]);
        let ir = by_constant(target, BinaryOp::DivFloor, I32, 0xFFFF_FFFF);
        has(&ir, &["sub i32 0, %"]);
        lacks(&ir, &["sdiv", "srem"]);
    }
}

#[test]
fn comparisons_with_nan_are_false_but_for_ne() {
    let float = [
        (Predicate::Eq, "fcmp oeq"),
        (Predicate::Ne, "fcmp une"),
        (Predicate::Lt, "fcmp olt"),
        (Predicate::Le, "fcmp ole"),
        (Predicate::Gt, "fcmp ogt"),
        (Predicate::Ge, "fcmp oge"),
    ];
    let signed = ["icmp eq", "icmp ne", "icmp slt", "icmp sle", "icmp sgt", "icmp sge"];
    let unsigned = ["icmp eq", "icmp ne", "icmp ult", "icmp ule", "icmp ugt", "icmp uge"];
    for target in Target::MAIN {
        for (i, (predicate, wanted)) in float.iter().enumerate() {
            let of = |ty| made(target, &[ty, ty], BOOL, |v| Op::Compare(*predicate, v[0], v[1])).0;
            has(&of(F32), &[wanted]);
            has(&of(I32), &[signed[i]]);
            has(&of(U64), &[unsigned[i]]);
        }
    }
}

#[test]
fn unary_operations() {
    for target in Target::MAIN {
        has(&unary(target, UnaryOp::Neg, F32X2).0, &["fneg <2 x float>"]);
        has(&unary(target, UnaryOp::Neg, I32).0, &["sub i32 0, %"]);
        has(&unary(target, UnaryOp::Not, U32).0, &["xor i32 %", ", -1"]);
    }
    let (ir, asm) = unary(Target::GFX950, UnaryOp::HwExp2, F32);
    has(&ir, &["@llvm.amdgcn.exp2.f32"]);
    has(&asm, &["v_exp_f32"]);
    has(&unary(Target::GFX950, UnaryOp::HwRcp, F32X2).1, &["v_rcp_f32"]);
    has(&unary(Target::SM_90, UnaryOp::HwExp2, F32).1, &["ex2.approx.f32"]);
    has(&unary(Target::SM_90, UnaryOp::HwRcp, F32).1, &["rcp.approx.f32"]);
}

#[test]
fn conversions_widen_by_signedness_and_round_to_nearest_even() {
    for target in Target::MAIN {
        has(&convert(target, U16, U32).0, &["zext i16"]);
        has(&convert(target, I32, I64).0, &["sext i32"]);
        has(&convert(target, I32, U64).0, &["sext i32"]);
        has(&convert(target, U32, I64).0, &["zext i32"]);
        has(&convert(target, U64, U16).0, &["trunc i64"]);
        has(&convert(target, I32, F32).0, &["sitofp i32"]);
        has(&convert(target, U32, F32).0, &["uitofp i32"]);
        has(&convert(target, BF16X2, F32X2).0, &["fpext <2 x bfloat>"]);
        has(&convert(target, F32, BF16).0, &["fptrunc float"]);
        lacks(&convert(target, I32, U32).0, &["sext", "trunc"]);
    }
    has(&convert(Target::GFX950, F32X2, BF16X2).1, &["v_cvt_pk_bf16_f32"]);
    has(&convert(Target::SM_90, F32X2, BF16X2).1, &["cvt.rn.bf16x2.f32"]);
    has(&convert(Target::SM_90, F32, BF16).1, &["cvt.rn.bf16.f32"]);
}

#[test]
fn a_nan_constant_keeps_its_bits() {
    for target in Target::MAIN {
        let (_, asm) = made(target, &[U32], F32, |_| Op::Const(Bits(0x7FC0_1234)));
        // AMD's assembly shows bits in hexadecimal, PTX the integer that is stored.
        assert!(asm.contains("0x7fc01234") || asm.contains(&0x7FC0_1234u32.to_string()), "{asm}");
        let (_, asm) = made(target, &[U32], BF16, |_| Op::Const(Bits(0xFFA1)));
        assert!(["ffa1", "FFA1", "-95", "65441"].iter().any(|w| asm.contains(w)), "{asm}");
    }
}

#[test]
fn selects_and_bitcasts_move_bits() {
    for target in Target::MAIN {
        let (ir, _) = made(target, &[BF16X4], U64, |v| Op::Bitcast(v[0]));
        lacks(&ir, &["fpext", "fptrunc"]);
        let mut k = Elementwise::new(target, &[F32X4, F32X4], F32X4, |v| Op::Binary(BinaryOp::Add, v[0], v[1])).kernel;
        // A scalar condition chooses between whole vectors.
        let condition = Value(k.values.len() as u32);
        k.values.push(BOOL);
        let at = k.body.insts.len() - 2;
        let Op::Binary(_, a, b) = k.body.insts[at].op else { panic!("{k}") };
        k.body.insts[at].op = Op::Select { condition, on_true: a, on_false: b };
        let inst = lathe_dsl::ir::Inst {
            number: lathe_dsl::ir::OpNumber(1),
            op: Op::Const(Bits(1)),
            results: vec![condition],
        };
        k.body.insts.insert(0, inst);
        for (i, inst) in k.body.insts.iter_mut().enumerate() {
            inst.number.0 = i as u32 + 1;
        }
        k.locations.push(k.locations[0]);
        has(&text(&k, target, Level::Mlir), &["arith.select", "vector<4xf32>"]);
    }
}

#[test]
fn truth_values_are_one_bit() {
    for target in Target::MAIN {
        let k = super::kernel(target, vec![super::buffer("x", Scalar::U32, lathe_dsl::ir::Access::ReadWrite)], |k| {
            let x = k.buffer::<u32, lathe_dsl::kernel::InOut>(0);
            let i = k.thread_id(lathe_dsl::ir::Axis::X);
            let v = k.buffer_load::<u32>(x, i);
            let (a, b) = (v.gt(3), v.lt(9));
            let c = (a & !b) | (a ^ b);
            k.buffer_store::<u32>(c.eq(a).select(1, 2), x, i);
        });
        let ir = text(&k, target, Level::LlvmIr);
        has(&ir, &["and i1 %", "or i1 %", "xor i1 %", "icmp eq i1"]);
        text(&k, target, Level::Asm);
    }
}

#[test]
fn vectors_are_taken_apart_and_put_together() {
    for target in Target::MAIN {
        let (ir, _) = made(target, &[F32, F32], F32X2, |v| Op::VectorFrom(vec![v[1], v[0]]));
        has(&ir, &["insertelement <2 x float>"]);
        let (ir, _) = made(target, &[F32X4], F32, |v| Op::Extract(v[0], 3));
        has(&ir, &["extractelement <4 x float>", "i64 3"]);
    }
}
