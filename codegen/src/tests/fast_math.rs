//! Licences about floats: on every operation of their family, in LLVM IR and in machine code; and nowhere else.

use std::collections::BTreeSet;

use lathe_dsl::Target;
use lathe_dsl::ir::{
    BinaryOp, Bits, ButterflyOp, Family, FastFlags, FastMath, Kernel, Op, OpDef, Predicate, ReduceOp, Scalar, Type,
    UnaryOp, Value,
};

use super::arithmetic_types::Straight;
use super::{count, has, lacks, text};
use crate::Level;

const F32: Type = Type::Scalar(Scalar::F32);

/// A kernel that does one thing with `f32` operands.
fn kernel(target: Target, fast_math: FastMath, f: impl FnOnce(&mut Straight)) -> Kernel {
    let mut k = Straight::new(target);
    f(&mut k);
    Kernel { fast_math, ..k.kernel }
}

fn unary(k: &mut Straight, op: UnaryOp) {
    let a = k.load(F32);
    k.made(F32, Op::Unary(op, a));
}

fn binary(k: &mut Straight, op: BinaryOp) {
    let [a, b] = [0, 1].map(|_| k.load(F32));
    k.made(F32, Op::Binary(op, a, b));
}

/// Applies an operation of a family.
type Use = Box<dyn Fn(&mut Straight)>;

/// Every float operation that has a family.
fn of_families() -> Vec<(&'static OpDef, Use)> {
    let mut all: Vec<(&'static OpDef, Use)> = vec![];
    for op in UnaryOp::ALL.iter().copied() {
        all.push((op.def(), Box::new(move |k| unary(k, op))));
    }
    for op in BinaryOp::ALL.iter().copied() {
        all.push((op.def(), Box::new(move |k| binary(k, op))));
    }
    for op in Predicate::ALL.iter().copied() {
        all.push((
            op.def(),
            Box::new(move |k| {
                let [a, b] = [0, 1].map(|_| k.load(F32));
                k.made(Type::BOOL, Op::Compare(op, a, b));
            }),
        ));
    }
    for op in ReduceOp::ALL.iter().copied() {
        all.push((
            op.def(),
            Box::new(move |k| {
                let v = k.load(Type::Vector(Scalar::F32, 4));
                k.made(F32, Op::Reduce(op, v));
            }),
        ));
    }
    for op in ButterflyOp::ALL.iter().copied() {
        all.push((
            op.def(),
            Box::new(move |k| {
                let value = k.load(F32);
                k.made(F32, Op::Butterfly { op, value, offset: 1, width: 32 });
            }),
        ));
    }
    all.retain(|(def, _)| def.family.is_some());
    all
}

/// Functions that are expansions unless they may be approximated.
const APPROXIMATED: [&str; 9] = ["exp", "exp2", "log", "log2", "sin", "cos", "tanh", "erf", "pow"];

#[test]
fn every_operation_with_a_family_is_looked_at() {
    let looked_at: BTreeSet<&str> = of_families().iter().map(|(d, _)| d.name).collect();
    let with_family: BTreeSet<&str> =
        Op::all_defs().into_iter().filter(|d| d.family.is_some()).map(|d| d.name).collect();
    assert_eq!(looked_at, with_family);
}

#[test]
fn every_operation_carries_the_licence_of_its_family_and_no_other() {
    for target in [Target::GFX950, Target::SM_90] {
        for (def, apply) in of_families() {
            let own = def.family.unwrap();
            for family in Family::ALL {
                let mut flags = FastFlags::NSZ;
                if family == own && APPROXIMATED.contains(&def.name) {
                    flags = flags | FastFlags::AFN;
                }
                let k = kernel(target, FastMath::STRICT.allow(family, flags), &apply);
                let ir = text(&k, target, Level::LlvmIr);
                let carried = ir.lines().any(|l| l.contains(" nsz ") && l.contains(" = "));
                assert_eq!(carried, family == own, "{} with {} on {target}\n{ir}", def.name, family.name());
            }
        }
    }
}

#[test]
fn all_seven_flags_reach_llvm() {
    let strict = FastMath::STRICT;
    for (flags, name) in [
        (FastFlags::REASSOC, "fadd reassoc float"),
        (FastFlags::NNAN, "fadd nnan float"),
        (FastFlags::NINF, "fadd ninf float"),
        (FastFlags::NSZ, "fadd nsz float"),
        (FastFlags::ARCP, "fadd arcp float"),
        (FastFlags::CONTRACT, "fadd contract float"),
        (FastFlags::AFN, "fadd afn float"),
        (FastFlags::NNAN | FastFlags::CONTRACT, "fadd nnan contract float"),
        (FastFlags::FAST, "fadd fast float"),
    ] {
        let k = kernel(Target::GFX950, strict.allow(Family::Arith, flags), |k| binary(k, BinaryOp::Add));
        has(&text(&k, Target::GFX950, Level::LlvmIr), &[name]);
    }
}

#[test]
fn fma_and_select_go_with_arithmetic_and_comparisons() {
    let k = kernel(
        Target::GFX950,
        FastMath::STRICT.allow(Family::Arith, FastFlags::NSZ).allow(Family::Compare, FastFlags::NNAN),
        |k| {
            let [a, b, c] = [0, 1, 2].map(|_| k.load(F32));
            let condition = k.load(Type::BOOL);
            k.made(F32, Op::Fma { a, b, c });
            k.made(F32, Op::Select { condition, on_true: a, on_false: b });
        },
    );
    has(&text(&k, Target::GFX950, Level::LlvmIr), &["call nsz float @llvm.fma.f32", "select nnan i1"]);
}

fn asm(target: Target, fast_math: FastMath, f: impl FnOnce(&mut Straight)) -> String {
    text(&kernel(target, fast_math, f), target, Level::Asm)
}

#[test]
fn contraction_makes_an_fma() {
    let sum = |k: &mut Straight| {
        let [a, b, c] = [0, 1, 2].map(|_| k.load(F32));
        let product = k.push(F32, Op::Binary(BinaryOp::Mul, a, b));
        k.made(F32, Op::Binary(BinaryOp::Add, product, c));
    };
    let contract = FastMath::STRICT.allow(Family::Arith, FastFlags::CONTRACT);
    for target in [Target::GFX950, Target::GFX942, Target::GFX1201] {
        let asm = asm(target, contract, sum);
        assert!(asm.contains("v_fma_f32") || asm.contains("v_fmac_f32"), "{asm}");
        lacks(&asm, &["v_mul_f32"]);
    }
    has(&asm(Target::SM_90, contract, sum), &["fma.rn.f32"]);
    for target in Target::MAIN {
        lacks(&asm(target, FastMath::STRICT, sum), &["v_fma", "v_fmac", "fma.rn"]);
    }
}

#[test]
fn approximate_functions_are_the_chip_s_instructions() {
    let afn = FastMath::STRICT.allow(Family::Math, FastFlags::AFN);
    let cases = [
        (UnaryOp::Exp2, "v_exp_f32", "ex2.approx.f32"),
        (UnaryOp::Exp, "v_exp_f32", "ex2.approx.f32"),
        (UnaryOp::Log2, "v_log_f32", "lg2.approx.f32"),
        (UnaryOp::Log, "v_log_f32", "lg2.approx.f32"),
        (UnaryOp::Sin, "v_sin_f32", "sin.approx.f32"),
        (UnaryOp::Cos, "v_cos_f32", "cos.approx.f32"),
        (UnaryOp::Sqrt, "v_sqrt_f32", "sqrt.approx.f32"),
        (UnaryOp::Rsqrt, "v_rsq_f32", "rsqrt.approx.f32"),
    ];
    for (op, amd, nvidia) in cases {
        for target in Target::MAIN {
            let asm = asm(target, afn, |k| unary(k, op));
            let wanted = if target == Target::SM_90 { nvidia } else { amd };
            assert_eq!(count(&asm, wanted), 1, "{asm}");
            // No step of an expansion is left.
            lacks(&asm, &["v_fma", "fma.rn", "v_ldexp", "v_cndmask", "selp"]);
        }
    }
}

#[test]
fn what_no_chip_has_is_a_few_steps_around_what_it_has() {
    let afn = FastMath::STRICT.allow(Family::Math, FastFlags::AFN);
    let cases: [(&str, Use, &[&str], &[&str]); 3] = [
        ("tanh", Box::new(|k| unary(k, UnaryOp::Tanh)), &["v_exp_f32", "v_rcp_f32"], &["tanh.approx.f32"]),
        ("erf", Box::new(|k| unary(k, UnaryOp::Erf)), &["v_exp_f32"], &["ex2.approx.f32"]),
        (
            "pow",
            Box::new(|k| binary(k, BinaryOp::Pow)),
            &["v_log_f32", "v_exp_f32"],
            &["lg2.approx.f32", "ex2.approx.f32"],
        ),
    ];
    for (name, apply, amd, nvidia) in cases {
        for target in Target::MAIN {
            let (strict, fast) = (asm(target, FastMath::STRICT, &apply), asm(target, afn, &apply));
            for wanted in if target == Target::SM_90 { nvidia } else { amd } {
                assert_eq!(count(&fast, wanted), 1, "{name} on {target}: {fast}");
            }
            assert!(instructions(&fast) + 12 < instructions(&strict), "{name} on {target}: {strict}\n{fast}");
        }
    }
}

#[test]
fn divisions_by_one_divisor_share_a_reciprocal() {
    let two = |k: &mut Straight| {
        let [a, b, c] = [0, 1, 2].map(|_| k.load(F32));
        k.made(F32, Op::Binary(BinaryOp::Div, a, c));
        k.made(F32, Op::Binary(BinaryOp::Div, b, c));
    };
    let arcp = FastMath::STRICT.allow(Family::Arith, FastFlags::ARCP);
    for (target, division) in [
        (Target::GFX950, "v_div_fixup_f32"),
        (Target::GFX942, "v_div_fixup_f32"),
        (Target::GFX1201, "v_div_fixup_f32"),
        (Target::SM_90, "div.rn.f32"),
    ] {
        assert_eq!(count(&asm(target, FastMath::STRICT, two), division), 2);
        let fast = asm(target, arcp, two);
        // NVIDIA has an instruction for the reciprocal.
        assert_eq!(count(&fast, division) + count(&fast, "rcp.rn.f32"), 1, "{fast}");
        assert_eq!(
            count(&fast, if target == Target::SM_90 { "mul.rn.f32" } else { "v_mul_f32" }),
            count(&fast, "v_div_fixup_f32") + 2
        );
        // One division stays one: a product would be less exact for nothing.
        let one = asm(target, arcp, |k| binary(k, BinaryOp::Div));
        assert_eq!(one, asm(target, FastMath::STRICT, |k| binary(k, BinaryOp::Div)));
    }
}

/// Instructions of assembly text.
fn instructions(asm: &str) -> usize {
    let body = |l: &&str| l.starts_with('\t') && l.trim_start().starts_with(|c: char| c.is_ascii_lowercase());
    asm.lines().filter(body).count()
}

/// A constant.
fn constant(k: &mut Straight, value: f32) -> Value {
    k.push(F32, Op::Const(Bits(value.to_bits().into())))
}

/// For an operation of a family: a licence, and a use of the operation that is shorter with it.
fn licensed(name: &str) -> (FastMath, Use) {
    let allow = |family, flags| FastMath::STRICT.allow(family, flags);
    let arith = |flags| allow(Family::Arith, flags);
    let nnan = allow(Family::Extrema, FastFlags::NNAN | FastFlags::NSZ);
    if let Some(op) = UnaryOp::named(name) {
        return match op {
            UnaryOp::Neg => (
                arith(FastFlags::NSZ),
                Box::new(|k| {
                    let [a, b] = [0, 1].map(|_| k.load(F32));
                    let difference = k.push(F32, Op::Binary(BinaryOp::Sub, a, b));
                    k.made(F32, Op::Unary(UnaryOp::Neg, difference));
                }),
            ),
            op => (allow(Family::Math, FastFlags::AFN), Box::new(move |k| unary(k, op))),
        };
    }
    if let Some(op) = BinaryOp::named(name) {
        let two = move |k: &mut Straight| binary(k, op);
        return match op {
            BinaryOp::Add | BinaryOp::Sub => (
                arith(FastFlags::CONTRACT),
                Box::new(move |k| {
                    let [a, b, c] = [0, 1, 2].map(|_| k.load(F32));
                    let product = k.push(F32, Op::Binary(BinaryOp::Mul, a, b));
                    k.made(F32, Op::Binary(op, product, c));
                }),
            ),
            BinaryOp::Mul => (
                arith(FastFlags::REASSOC),
                Box::new(|k| {
                    let a = k.load(F32);
                    let [two, three] = [2.5, 3.0].map(|c| constant(k, c));
                    let product = k.push(F32, Op::Binary(BinaryOp::Mul, a, two));
                    k.made(F32, Op::Binary(BinaryOp::Mul, product, three));
                }),
            ),
            BinaryOp::Div | BinaryOp::DivFloor => (arith(FastFlags::ARCP | FastFlags::AFN), Box::new(two)),
            BinaryOp::Pow => (allow(Family::Math, FastFlags::AFN), Box::new(two)),
            _ => (nnan, Box::new(two)),
        };
    }
    if let Some(op) = Predicate::named(name) {
        return (
            allow(Family::Compare, FastFlags::NNAN | FastFlags::NSZ),
            Box::new(move |k| {
                // Of one number the compiler then knows the answer, of two it sees the smaller or larger one.
                let [a, other] = [0, 1].map(|_| k.load(F32));
                let b = if matches!(op, Predicate::Eq | Predicate::Ne) { a } else { other };
                let condition = k.push(Type::BOOL, Op::Compare(op, a, b));
                k.made(F32, Op::Select { condition, on_true: a, on_false: other });
            }),
        );
    }
    if let Some(op) = ReduceOp::named(name) {
        let parts = move |k: &mut Straight, parts: Vec<Value>| {
            let n = parts.len() as u32;
            let v = k.push(Type::Vector(Scalar::F32, n), Op::VectorFrom(parts));
            k.made(F32, Op::Reduce(op, v));
        };
        return match op {
            ReduceOp::Add => (
                arith(FastFlags::CONTRACT),
                Box::new(move |k| {
                    let [a, b, c] = [0, 1, 2].map(|_| k.load(F32));
                    let product = k.push(F32, Op::Binary(BinaryOp::Mul, a, b));
                    parts(k, vec![product, c]);
                }),
            ),
            ReduceOp::Mul => (
                arith(FastFlags::REASSOC),
                Box::new(move |k| {
                    let a = k.load(F32);
                    let [two, three] = [2.5, 3.0].map(|c| constant(k, c));
                    parts(k, vec![a, two, three]);
                }),
            ),
            _ => (
                nnan,
                Box::new(move |k| {
                    let all = [0, 1, 2].map(|_| k.load(F32));
                    parts(k, all.to_vec());
                }),
            ),
        };
    }
    let op = ButterflyOp::named(name).unwrap_or_else(|| panic!("`{name}` has no row"));
    let flags = if op == ButterflyOp::Add { arith(FastFlags::REASSOC | FastFlags::NSZ) } else { nnan };
    let step = Box::new(move |k: &mut Straight| {
        let value = k.load(F32);
        let both = k.push(F32, Op::Butterfly { op, value, offset: 1, width: 32 });
        match op {
            // The partner's value alone is left.
            ButterflyOp::Add => k.made(F32, Op::Binary(BinaryOp::Sub, both, value)),
            _ => k.made(F32, Op::Opaque(both)),
        };
    });
    (flags, step)
}

#[test]
fn the_licence_of_every_operation_reaches_the_machine_code() {
    for (def, apply) in of_families() {
        if def.name.starts_with("hw_") {
            // They are what a licence would make of something else; flushing is all that is left.
            let asm = asm(Target::SM_90, FastMath::STRICT.flush(), &apply);
            has(&asm, &[".approx.ftz.f32"]);
            continue;
        }
        let (licence, apply) = licensed(def.name);
        let (strict, fast) = (asm(Target::GFX942, FastMath::STRICT, &apply), asm(Target::GFX942, licence, &apply));
        assert!(instructions(&fast) < instructions(&strict), "{} with {licence:?}:\n{strict}\n{fast}", def.name);
    }
}

#[test]
fn expansions_take_no_licence() {
    // Fast arithmetic must not break the steps of a function that has no licence itself.
    let fast = FastMath::STRICT.allow(Family::Arith, FastFlags::FAST).allow(Family::Compare, FastFlags::FAST);
    for target in [Target::GFX950, Target::SM_90] {
        let of = |fast_math| {
            let k = kernel(target, fast_math, |k| unary(k, UnaryOp::Exp));
            text(&k, target, Level::LlvmIr)
        };
        assert_eq!(of(fast), of(FastMath::STRICT));
        lacks(&of(fast), &[" fast ", "contract"]);
    }
}

#[test]
fn an_approximate_quotient_is_a_reciprocal_and_a_product() {
    let fast = FastMath::STRICT.allow(Family::Arith, FastFlags::ARCP | FastFlags::AFN);
    for target in [Target::GFX950, Target::GFX942, Target::GFX1201] {
        let asm = asm(target, fast, |k| binary(k, BinaryOp::Div));
        has(&asm, &["v_rcp_f32", "v_mul_f32"]);
        lacks(&asm, &["v_div_scale", "v_div_fmas"]);
    }
    has(&asm(Target::SM_90, fast, |k| binary(k, BinaryOp::Div)), &["div.approx.f32"]);
}

#[test]
fn without_nan_a_maximum_is_one_instruction() {
    let maximum = |k: &mut Straight| binary(k, BinaryOp::Maximum);
    let nnan = FastMath::STRICT.allow(Family::Extrema, FastFlags::NNAN);
    let asm_of = |fast_math| asm(Target::GFX942, fast_math, maximum);
    has(&asm_of(FastMath::STRICT), &["v_max_f32", "v_cmp_o_f32"]);
    has(&asm_of(nnan), &["v_max_f32"]);
    lacks(&asm_of(nnan), &["v_cmp_o_f32", "v_cndmask"]);
}

#[test]
fn subnormals_are_flushed_only_on_demand() {
    let sum = |k: &mut Straight| binary(k, BinaryOp::Add);
    let flush = FastMath::STRICT.flush();
    for target in [Target::GFX950, Target::GFX942, Target::GFX1201] {
        has(&asm(target, flush, sum), &[".amdhsa_float_denorm_mode_32 0"]);
        has(&asm(target, FastMath::STRICT, sum), &[".amdhsa_float_denorm_mode_32 3"]);
    }
    has(&asm(Target::SM_90, flush, sum), &["add.rn.ftz.f32"]);
    lacks(&asm(Target::SM_90, FastMath::STRICT, sum), &[".ftz"]);
    for op in [UnaryOp::HwExp2, UnaryOp::HwLog2, UnaryOp::HwRcp, UnaryOp::HwRsq, UnaryOp::HwSqrt] {
        has(&asm(Target::SM_90, flush, |k| unary(k, op)), &[".approx.ftz.f32"]);
        let strict = asm(Target::SM_90, FastMath::STRICT, |k| unary(k, op));
        has(&strict, &[".approx.f32"]);
        lacks(&strict, &[".ftz"]);
    }
}
