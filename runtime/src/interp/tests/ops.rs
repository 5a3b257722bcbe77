//! Every operation over its edge cases, at both wave widths, against expectations computed another way.

use lathe_dsl::ir::UnaryOp;

use super::*;

/// Applies `op` to one lane a case. `operands[i]` gives operand `i`'s type and its elements, case after case; so does
/// the result. `bool` travels through memory as `u32`.
fn apply(operands: &[(Type, Vec<u64>)], result: Type, op: impl Fn(&[Value]) -> Op) -> Vec<u64> {
    let cases = operands[0].1.len() / operands[0].0.lanes() as usize;
    let results = [32, 64].map(|wave| apply_with(wave, cases as u32, operands, result, &op));
    assert_eq!(results[0], results[1]);
    results.into_iter().next().unwrap()
}

fn stored(ty: Type) -> Type {
    if ty.scalar() == Scalar::Bool { ty.with_scalar(Scalar::U32) } else { ty }
}

fn apply_with(
    wave: u32,
    cases: u32,
    operands: &[(Type, Vec<u64>)],
    result: Type,
    op: impl Fn(&[Value]) -> Op,
) -> Vec<u64> {
    let mut b = Build::new(wave, 1, cases);
    let buffers: Vec<Value> =
        operands.iter().map(|(ty, e)| b.buffer("in", stored(*ty).scalar(), e.len() as u64, Access::Read)).collect();
    let lanes = u64::from(cases) * u64::from(result.lanes());
    let out = b.buffer("out", stored(result).scalar(), lanes, Access::Write);
    let tid = b.tid();
    let mut loaded = vec![];
    for ((ty, _), buffer) in operands.iter().zip(&buffers) {
        let n = b.u32(ty.lanes());
        let at = b.mul(tid, n);
        let x = b.load(*buffer, at, stored(*ty));
        loaded.push(if ty.scalar() == Scalar::Bool {
            let zero = b.constant(0, stored(*ty));
            b.compare(Predicate::Ne, x, zero)
        } else {
            x
        });
    }
    let mut r = b.op(op(&loaded), result);
    if result.scalar() == Scalar::Bool {
        let (one, zero) = (b.u32(1), b.u32(0));
        let elements: Vec<Value> = (0..result.lanes())
            .map(|i| {
                let condition = if result == BOOL { r } else { b.op(Op::Extract(r, i), BOOL) };
                b.op(Op::Select { condition, on_true: one, on_false: zero }, U32)
            })
            .collect();
        r = if result == BOOL { elements[0] } else { b.op(Op::VectorFrom(elements), stored(result)) };
    }
    let n = b.u32(result.lanes());
    let at = b.mul(tid, n);
    b.store(r, out, at);
    let kernel = b.finish();
    let bytes = |s: Scalar| if s == Scalar::Bool { 4 } else { s.bytes() as usize };
    let inputs: Vec<GlobalBuffer> = operands
        .iter()
        .map(|(ty, e)| {
            let w = bytes(ty.scalar());
            GlobalBuffer::from_bytes(&e.iter().flat_map(|e| e.to_le_bytes()[..w].to_vec()).collect::<Vec<_>>())
        })
        .collect();
    let w = bytes(result.scalar());
    let output = GlobalBuffer::uninit(lanes as usize * w);
    let args: Vec<ArgValue<'_>> = inputs.iter().chain([&output]).map(ArgValue::Buffer).collect();
    let report = run(&kernel, &args, &Options::default()).unwrap();
    assert_eq!(report.findings, []);
    output.to_vec().chunks_exact(w).map(|c| c.iter().rev().fold(0, |v, b| v << 8 | u64::from(*b))).collect()
}

fn pairs(edges: &[u64]) -> (Vec<u64>, Vec<u64>) {
    edges.iter().flat_map(|a| edges.iter().map(|b| (*a, *b))).unzip()
}

const F32_EDGES: [f32; 26] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    1.5,
    0.1,
    -3.0,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
    f32::MIN_POSITIVE,
    -f32::MIN_POSITIVE,
    1e-45,
    -1e-45,
    1.1754942e-38,
    f32::MAX,
    f32::MIN,
    1.0 + f32::EPSILON,
    1.0 - f32::EPSILON / 2.0,
    16_777_216.0,
    16_777_215.0,
    -0.333_333_34,
    1e38,
    -1e-38,
    std::f32::consts::PI,
    7.0e-20,
];

const INTS: [Scalar; 5] = [Scalar::U16, Scalar::I32, Scalar::U32, Scalar::I64, Scalar::U64];

fn f32_edges() -> Vec<u64> {
    F32_EDGES.iter().map(|x| x.to_bits().into()).collect()
}

fn bf16_edges() -> Vec<u64> {
    // ±0, subnormals, normals around 1, largest, ±∞, NaN, and neighbours that round interestingly.
    vec![
        0, 0x8000, 1, 0x8001, 0x7F, 0x80, 0x8080, 0x3F80, 0xBF80, 0x3F81, 0x3F7F, 0x4049, 0x3DCD, 0x7F7F, 0xFF7F,
        0x7F80, 0xFF80, 0x7FC0, 0x4380, 0x4381, 0xC2FF, 0x1234, 0x2A55, 0x0F00,
    ]
}

fn int_edges(s: Scalar) -> Vec<u64> {
    let mask = u64::MAX >> (64 - s.bits());
    let top = 1u64 << (s.bits() - 1);
    [0, 1, 2, 3, 7, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, top - 1, top, top + 1, 0x5555_5555_5555_5555, 12_345]
        .into_iter()
        .chain([1u64, 2, 7, 100].map(u64::wrapping_neg))
        .map(|x| x & mask)
        .collect()
}

/// The number that an integer's bits stand for.
fn number(s: Scalar, bits: u64) -> i128 {
    if s.is_signed() && bits >> (s.bits() - 1) == 1 { i128::from(bits) - (1i128 << s.bits()) } else { i128::from(bits) }
}

fn wrapped(s: Scalar, x: i128) -> u64 {
    x.rem_euclid(1i128 << s.bits()) as u64
}

fn is_nan(s: Scalar, bits: u64) -> bool {
    match s {
        Scalar::F32 => f32::from_bits(bits as u32).is_nan(),
        Scalar::Bf16 => bits & 0x7FFF > 0x7F80,
        _ => false,
    }
}

#[track_caller]
fn check(s: Scalar, got: &[u64], expected: &[u64], what: impl Fn(usize) -> String) {
    assert_eq!(got.len(), expected.len());
    for (i, (g, e)) in got.iter().zip(expected).enumerate() {
        let same = g == e || is_nan(s, *g) && is_nan(s, *e);
        assert!(same, "{}: got {g:#x}, expected {e:#x}", what(i));
    }
}

#[track_caller]
fn check_binary(s: Scalar, op: BinaryOp, edges: &[u64], expected: impl Fn(u64, u64) -> u64) {
    let ty = Type::Scalar(s);
    let (a, b) = pairs(edges);
    let got = apply(&[(ty, a.clone()), (ty, b.clone())], ty, |v| Op::Binary(op, v[0], v[1]));
    let want: Vec<u64> = a.iter().zip(&b).map(|(a, b)| expected(*a, *b)).collect();
    check(s, &got, &want, |i| format!("{op:?} {s} {:#x} {:#x}", a[i], b[i]));
}

/// The nearest bf16, ties to even, found among all of them by value.
fn nearest_bf16(x: f64) -> u64 {
    if x.is_nan() {
        return 0x7FC0;
    }
    let sign = if x.is_sign_negative() { 0x8000 } else { 0 };
    let value = |bits: u64| f64::from(f32::from_bits((bits << 16) as u32));
    // The first step past the largest finite one stands for ∞ when rounding.
    let bound = |bits: u64| if bits == 0x7F80 { 2f64.powi(128) } else { value(bits) };
    let x = x.abs();
    let below = (0..0x7F80u64).rev().find(|b| value(*b) <= x).unwrap();
    let (down, up) = (x - bound(below), bound(below + 1) - x);
    sign | if up < down || up == down && below & 1 == 1 { below + 1 } else { below }
}

fn wide(bits: u64) -> f64 {
    f64::from(f32::from_bits((bits << 16) as u32))
}

fn f(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

#[test]
fn integer_arithmetic_wraps() {
    for s in INTS {
        let n = |x| number(s, x);
        let edges = int_edges(s);
        check_binary(s, BinaryOp::Add, &edges, |a, b| wrapped(s, n(a) + n(b)));
        check_binary(s, BinaryOp::Sub, &edges, |a, b| wrapped(s, n(a) - n(b)));
        // The product of two 64-bit numbers fits i128 only modulo 2^128, which is enough.
        check_binary(s, BinaryOp::Mul, &edges, |a, b| wrapped(s, n(a).wrapping_mul(n(b))));
        check_binary(s, BinaryOp::Maximum, &edges, |a, b| if n(a) >= n(b) { a } else { b });
        check_binary(s, BinaryOp::Minimum, &edges, |a, b| if n(a) <= n(b) { a } else { b });
    }
}

#[test]
fn integer_division_floors() {
    for s in INTS {
        let floor =
            |a: i128, b: i128| (a - a.rem_euclid(b.abs())) / b - if b < 0 && a.rem_euclid(-b) != 0 { 1 } else { 0 };
        let mut edges = int_edges(s);
        edges.retain(|x| *x != 0);
        let ty = Type::Scalar(s);
        let (a, b): (Vec<u64>, Vec<u64>) = int_edges(s).iter().flat_map(|a| edges.iter().map(|b| (*a, *b))).unzip();
        for op in [BinaryOp::DivFloor, BinaryOp::RemFloor] {
            let got = apply(&[(ty, a.clone()), (ty, b.clone())], ty, |v| Op::Binary(op, v[0], v[1]));
            let want: Vec<u64> = a
                .iter()
                .zip(&b)
                .map(|(a, b)| {
                    let (a, b) = (number(s, *a), number(s, *b));
                    let q = floor(a, b);
                    wrapped(s, if op == BinaryOp::DivFloor { q } else { a - b * q })
                })
                .collect();
            check(s, &got, &want, |i| format!("{op:?} {s} {:#x} {:#x}", a[i], b[i]));
        }
    }
    // By hand: −7 // 2 = −4 rem 1, 7 // −2 = −4 rem −1, MIN // −1 wraps to MIN rem 0.
    let i32s = |x: &[i32]| x.iter().map(|x| u64::from(*x as u32)).collect::<Vec<_>>();
    let ty = Type::Scalar(Scalar::I32);
    let operands = [(ty, i32s(&[-7, 7, i32::MIN, -8])), (ty, i32s(&[2, -2, -1, 2]))];
    let q = apply(&operands, ty, |v| Op::Binary(BinaryOp::DivFloor, v[0], v[1]));
    assert_eq!(q, i32s(&[-4, -4, i32::MIN, -4]));
    let r = apply(&operands, ty, |v| Op::Binary(BinaryOp::RemFloor, v[0], v[1]));
    assert_eq!(r, i32s(&[1, -1, 0, 0]));
}

#[test]
fn bitwise_and_shifts() {
    for s in INTS {
        let edges = int_edges(s);
        let width = u64::from(s.bits());
        check_binary(s, BinaryOp::And, &edges, |a, b| a & b);
        check_binary(s, BinaryOp::Or, &edges, |a, b| a | b);
        check_binary(s, BinaryOp::Xor, &edges, |a, b| a ^ b);
        check_binary(s, BinaryOp::Shl, &edges, |a, b| wrapped(s, i128::from(a) << (b % width)));
        check_binary(s, BinaryOp::Shr, &edges, |a, b| wrapped(s, number(s, a) >> (b % width)));
        let ty = Type::Scalar(s);
        let not = apply(&[(ty, edges.clone())], ty, |v| Op::Unary(UnaryOp::Not, v[0]));
        let neg = apply(&[(ty, edges.clone())], ty, |v| Op::Unary(UnaryOp::Neg, v[0]));
        for ((x, not), neg) in edges.iter().zip(not).zip(neg) {
            assert_eq!(not, wrapped(s, -1 - number(s, *x)), "not {s} {x:#x}");
            assert_eq!(neg, wrapped(s, -number(s, *x)), "neg {s} {x:#x}");
        }
    }
    for (op, table) in [(BinaryOp::And, [0, 0, 0, 1]), (BinaryOp::Or, [0, 1, 1, 1]), (BinaryOp::Xor, [0, 1, 1, 0])] {
        let got = apply(&[(BOOL, vec![0, 0, 1, 1]), (BOOL, vec![0, 1, 0, 1])], BOOL, |v| Op::Binary(op, v[0], v[1]));
        assert_eq!(got, table, "{op:?}");
    }
    assert_eq!(apply(&[(BOOL, vec![0, 1])], BOOL, |v| Op::Unary(UnaryOp::Not, v[0])), [1, 0]);
}

#[test]
fn f32_arithmetic_rounds_once() {
    let edges = f32_edges();
    // In f64 and back is correctly rounded for these operations: 53 > 2·24 + 2.
    let via = |g: fn(f64, f64) -> f64| move |a, b| u64::from((g(f(a).into(), f(b).into()) as f32).to_bits());
    check_binary(Scalar::F32, BinaryOp::Add, &edges, via(|a, b| a + b));
    check_binary(Scalar::F32, BinaryOp::Sub, &edges, via(|a, b| a - b));
    check_binary(Scalar::F32, BinaryOp::Mul, &edges, via(|a, b| a * b));
    check_binary(Scalar::F32, BinaryOp::Div, &edges, via(|a, b| a / b));
}

fn extremum(a: f64, b: f64, a_bits: u64, b_bits: u64, largest: bool, nan: u64) -> u64 {
    if a.is_nan() || b.is_nan() {
        return nan;
    }
    // Total order of non-NaN floats with −0 < +0.
    let key = |x: f64| if x.is_sign_negative() { -(x.abs().to_bits() as i64) - 1 } else { x.to_bits() as i64 };
    if (key(a) > key(b)) == largest { a_bits } else { b_bits }
}

#[test]
fn float_extrema_propagate_nan_and_order_zeros() {
    for (op, largest) in [(BinaryOp::Maximum, true), (BinaryOp::Minimum, false)] {
        let nan = u64::from(f32::NAN.to_bits());
        check_binary(Scalar::F32, op, &f32_edges(), |a, b| extremum(f(a).into(), f(b).into(), a, b, largest, nan));
        check_binary(Scalar::Bf16, op, &bf16_edges(), |a, b| extremum(wide(a), wide(b), a, b, largest, 0x7FC0));
    }
}

#[test]
fn bf16_arithmetic_rounds_once() {
    let edges = bf16_edges();
    // f64 holds sums of these edges to far below half a bf16 ulp, and their products exactly.
    check_binary(Scalar::Bf16, BinaryOp::Add, &edges, |a, b| nearest_bf16(wide(a) + wide(b)));
    check_binary(Scalar::Bf16, BinaryOp::Sub, &edges, |a, b| nearest_bf16(wide(a) - wide(b)));
    check_binary(Scalar::Bf16, BinaryOp::Mul, &edges, |a, b| nearest_bf16(wide(a) * wide(b)));
}

#[test]
fn float_negation_flips_the_sign_bit_of_everything() {
    for (s, mut edges, sign) in [(Scalar::F32, f32_edges(), 1 << 31), (Scalar::Bf16, bf16_edges(), 1 << 15)] {
        // A signalling NaN with a payload.
        edges.push(if s == Scalar::F32 { 0x7FA0_1234 } else { 0x7FA1 });
        let ty = Type::Scalar(s);
        let got = apply(&[(ty, edges.clone())], ty, |v| Op::Unary(UnaryOp::Neg, v[0]));
        assert_eq!(got, edges.iter().map(|x| x ^ sign).collect::<Vec<u64>>());
    }
}

#[test]
fn hardware_approximations_are_correctly_rounded() {
    let edges: Vec<u64> = f32_edges()
        .into_iter()
        .chain([0.5f32, -0.5, 127.9, 128.0, -126.5, -149.0, -149.5, -151.0, 1e-10].map(|x| x.to_bits().into()))
        .collect();
    let got = apply(&[(F32, edges.clone())], F32, |v| Op::Unary(UnaryOp::HwExp2, v[0]));
    let want: Vec<u64> = edges.iter().map(|x| (f64::from(f(*x)).exp2() as f32).to_bits().into()).collect();
    check(Scalar::F32, &got, &want, |i| format!("exp2 {}", f(edges[i])));
    let got = apply(&[(F32, edges.clone())], F32, |v| Op::Unary(UnaryOp::HwRcp, v[0]));
    let want: Vec<u64> = edges.iter().map(|x| ((1.0 / f64::from(f(*x))) as f32).to_bits().into()).collect();
    check(Scalar::F32, &got, &want, |i| format!("rcp {}", f(edges[i])));
}

#[test]
fn comparisons() {
    use std::cmp::Ordering;
    let order = |s: Scalar, a: u64, b: u64| match s {
        Scalar::F32 => f(a).partial_cmp(&f(b)),
        Scalar::Bf16 => wide(a).partial_cmp(&wide(b)),
        Scalar::Bool => Some(a.cmp(&b)),
        _ => Some(number(s, a).cmp(&number(s, b))),
    };
    let mut all: Vec<(Scalar, Vec<u64>)> = INTS.iter().map(|s| (*s, int_edges(*s))).collect();
    all.extend([(Scalar::F32, f32_edges()), (Scalar::Bf16, bf16_edges()), (Scalar::Bool, vec![0, 1])]);
    for (s, edges) in all {
        let ty = Type::Scalar(s);
        let (a, b) = pairs(&edges);
        for p in Predicate::ALL.iter().copied().filter(|p| p.def().on.contains(s)) {
            let got = apply(&[(ty, a.clone()), (ty, b.clone())], BOOL, |v| Op::Compare(p, v[0], v[1]));
            for (i, g) in got.iter().enumerate() {
                let o = order(s, a[i], b[i]);
                let expected = match p {
                    Predicate::Eq => o == Some(Ordering::Equal),
                    Predicate::Ne => o != Some(Ordering::Equal),
                    Predicate::Lt => o == Some(Ordering::Less),
                    Predicate::Le => matches!(o, Some(Ordering::Less | Ordering::Equal)),
                    Predicate::Gt => o == Some(Ordering::Greater),
                    Predicate::Ge => matches!(o, Some(Ordering::Greater | Ordering::Equal)),
                };
                assert_eq!(*g, u64::from(expected), "{p:?} {s} {:#x} {:#x}", a[i], b[i]);
            }
        }
    }
}

#[test]
fn vectors_compute_element_by_element() {
    let ty = Type::Vector(Scalar::I64, 3);
    let a: Vec<u64> = (0..3 * 70).map(|i| i * 0x1234_5678_9ABC).collect();
    let b: Vec<u64> = (0..3 * 70).map(|i| u64::MAX - i * 77).collect();
    let sum = apply(&[(ty, a.clone()), (ty, b.clone())], ty, |v| Op::Binary(BinaryOp::Add, v[0], v[1]));
    assert_eq!(sum, a.iter().zip(&b).map(|(a, b)| a.wrapping_add(*b)).collect::<Vec<_>>());
    let mask = Type::Vector(Scalar::Bool, 3);
    let lt = apply(&[(ty, a.clone()), (ty, b.clone())], mask, |v| Op::Compare(Predicate::Lt, v[0], v[1]));
    assert_eq!(lt, a.iter().zip(&b).map(|(a, b)| u64::from((*a as i64) < (*b as i64))).collect::<Vec<_>>());
}

#[test]
fn select_keeps_nan_bits() {
    let condition: Vec<u64> = vec![1, 0, 1, 0];
    let (a, b) = (vec![0x7FA0_0001, 1, 2, 3], vec![5, 0xFF80_0001, 7, 0x8000_0000]);
    let got = apply(&[(BOOL, condition.clone()), (F32, a), (F32, b)], F32, |v| Op::Select {
        condition: v[0],
        on_true: v[1],
        on_false: v[2],
    });
    assert_eq!(got, [0x7FA0_0001, 0xFF80_0001, 2, 0x8000_0000]);
    let ty = Type::Vector(Scalar::U64, 2);
    let got = apply(&[(BOOL, condition), (ty, (0..8).collect()), (ty, (100..108).collect())], ty, |v| Op::Select {
        condition: v[0],
        on_true: v[1],
        on_false: v[2],
    });
    assert_eq!(got, [0, 1, 102, 103, 4, 5, 106, 107]);
}

#[test]
fn integer_conversions_keep_low_bits_and_extend_by_the_operand() {
    for from in INTS {
        for to in INTS {
            let x = int_edges(from);
            let got = apply(&[(Type::Scalar(from), x.clone())], Type::Scalar(to), |v| Op::Convert(v[0]));
            let want: Vec<u64> = x.iter().map(|x| wrapped(to, number(from, *x))).collect();
            check(to, &got, &want, |i| format!("{from} {:#x} to {to}", x[i]));
        }
    }
}

/// Integers around every rounding boundary of a float with `bits` significant bits.
fn rounding_ints(s: Scalar, bits: u32) -> Vec<u64> {
    let mut out = int_edges(s);
    let width = s.bits() - u32::from(s.is_signed());
    for top in bits..width {
        let half = 1u64 << (top - bits);
        let base = (1u64 << top) + half;
        for x in [base - 1, base, base + 1, base + 2 * half - 1, base + 2 * half, base + 2 * half + 1] {
            out.push(x);
            if s.is_signed() {
                out.push(x.wrapping_neg() & (u64::MAX >> (64 - s.bits())));
            }
        }
    }
    out
}

/// Rounds to `bits` significant bits, ties to even, exactly.
fn rounded(x: i128, bits: u32) -> f64 {
    let magnitude = x.unsigned_abs();
    let excess = (128 - magnitude.leading_zeros()).saturating_sub(bits);
    let (kept, rest) = (magnitude >> excess, magnitude & ((1 << excess) - 1));
    let half = 1u128 << excess >> 1;
    let up = excess > 0 && (rest > half || rest == half && kept & 1 == 1);
    let r = ((kept + u128::from(up)) << excess) as f64;
    if x < 0 { -r } else { r }
}

#[test]
fn integers_to_floats_round_once() {
    for from in INTS {
        for (to, bits) in [(Scalar::F32, 24), (Scalar::Bf16, 8)] {
            for x in rounding_ints(from, bits).chunks(1000) {
                let got = apply(&[(Type::Scalar(from), x.to_vec())], Type::Scalar(to), |v| Op::Convert(v[0]));
                let want: Vec<u64> = x
                    .iter()
                    .map(|x| {
                        let r = (rounded(number(from, *x), bits) as f32).to_bits();
                        u64::from(if to == Scalar::F32 { r } else { r >> 16 })
                    })
                    .collect();
                check(to, &got, &want, |i| format!("{from} {:#x} to {to}", x[i]));
            }
        }
    }
}

#[test]
fn float_conversions() {
    let mut x = f32_edges();
    // Ties, just below, just above; overflow to ∞; NaNs whose payload lies in the dropped half.
    x.extend([0x3F80_8000, 0x3F81_8000, 0x3F80_7FFF, 0x3F80_8001, 0x7F7F_8000, 0x7F7F_7FFF, 0xFF7F_FFFF, 0x0000_8000]);
    let nans = [0x7F80_0001, 0xFF80_FFFF, 0x7FC0_0000];
    let got = apply(&[(F32, x.clone())], BF16, |v| Op::Convert(v[0]));
    let want: Vec<u64> = x.iter().map(|x| nearest_bf16(f(*x).into())).collect();
    check(Scalar::Bf16, &got, &want, |i| format!("{:#x} to bf16", x[i]));
    for bits in apply(&[(F32, nans.to_vec())], BF16, |v| Op::Convert(v[0])) {
        assert!(is_nan(Scalar::Bf16, bits), "{bits:#x}");
    }
    let all: Vec<u64> = (0..1024).map(|i| i * 64 + 63).collect();
    let got = apply(&[(BF16, all.clone())], F32, |v| Op::Convert(v[0]));
    let want: Vec<u64> = all.iter().map(|x| x << 16).collect();
    check(Scalar::F32, &got, &want, |i| format!("bf16 {:#x}", all[i]));
}

#[test]
fn bitcast_puts_element_0_lowest() {
    let types = [
        (U64, 1u32),
        (Type::Vector(Scalar::U32, 2), 2),
        (Type::Vector(Scalar::F32, 2), 2),
        (Type::Vector(Scalar::U16, 4), 4),
        (Type::Vector(Scalar::Bf16, 4), 4),
        (Type::Scalar(Scalar::I64), 1),
    ];
    let whole: Vec<u64> = (0..67u64).map(|i| 0x0123_4567_89AB_CDEFu64.rotate_left(i as u32) ^ i).collect();
    let cut = |n: u32| {
        let bits = 64 / n;
        whole.iter().flat_map(|x| (0..n).map(move |i| x >> (i * bits) & (u64::MAX >> (64 - bits)))).collect::<Vec<_>>()
    };
    for (from, n) in types {
        for (to, m) in types {
            let got = apply(&[(from, cut(n))], to, |v| Op::Bitcast(v[0]));
            assert_eq!(got, cut(m), "{from} to {to}");
        }
    }
    // 32 bits: a bf16 pair in a word.
    let pair = apply(&[(Type::Vector(Scalar::Bf16, 2), vec![0x3F80, 0xC000])], U32, |v| Op::Bitcast(v[0]));
    assert_eq!(pair, [0xC000_3F80]);
    let halves = apply(&[(F32, vec![0x7FA0_1234])], Type::Vector(Scalar::U16, 2), |v| Op::Bitcast(v[0]));
    assert_eq!(halves, [0x1234, 0x7FA0]);
    let words =
        apply(&[(Type::Vector(Scalar::U16, 4), vec![1, 2, 3, 4])], Type::Vector(Scalar::U32, 2), |v| Op::Bitcast(v[0]));
    assert_eq!(words, [0x0002_0001, 0x0004_0003]);
}

#[test]
fn vector_from_and_extract() {
    for s in [Scalar::Bf16, Scalar::F32, Scalar::U64] {
        let ty = Type::Scalar(s);
        let x: [Vec<u64>; 3] = [0, 1, 2].map(|k| (0..65).map(|i| i * 3 + k).collect());
        let operands: Vec<_> = x.iter().map(|x| (ty, x.clone())).collect();
        let v = apply(&operands, Type::Vector(s, 3), |v| Op::VectorFrom(v.to_vec()));
        assert_eq!(v, (0..195).collect::<Vec<u64>>());
        for (k, x) in x.iter().enumerate() {
            let got = apply(&[(Type::Vector(s, 3), v.clone())], ty, |v| Op::Extract(v[0], k as u32));
            assert_eq!(got, *x);
        }
    }
}

#[test]
fn constants_fill_every_element() {
    for (ty, bits) in [(Type::Vector(Scalar::F32, 4), 0x7FA0_0000), (Type::Vector(Scalar::U64, 2), u64::MAX - 5)] {
        let got = apply(&[(U32, vec![0; 33])], ty, |_| Op::Const(Bits(bits)));
        assert_eq!(got, vec![bits; 33 * ty.lanes() as usize]);
    }
}

#[test]
fn ids_run_x_fastest_over_partial_waves() {
    let (grid, block) = ([2, 3, 2], [5, 3, 7]);
    for wave in [32, 64] {
        let mut b = Build::new(wave, 1, 1).shape(grid, block);
        let out = b.buffer("out", Scalar::U32, 12 * 105 * 6, Access::Write);
        let axes = [Axis::X, Axis::Y, Axis::Z];
        let ids: Vec<Value> = axes
            .map(|a| b.op(Op::ThreadId(a), U32))
            .into_iter()
            .chain(axes.map(|a| b.op(Op::BlockId(a), U32)))
            .collect();
        let mut at = b.u32(0);
        for (i, extent) in [5, 3, 7, 2, 3, 2].into_iter().enumerate().rev() {
            let e = b.u32(extent);
            at = b.mul(at, e);
            at = b.add(at, ids[i]);
        }
        let six = b.u32(6);
        let at = b.mul(at, six);
        let v = b.op(Op::VectorFrom(ids), Type::Vector(Scalar::U32, 6));
        b.store(v, out, at);
        let mut expected = vec![];
        for i in 0..12 * 105 {
            let (t, g) = (i % 105, i / 105);
            expected.extend([t % 5, t / 5 % 3, t / 15, g % 2, g / 2 % 3, g / 6]);
        }
        assert_eq!(run_u32(&b.finish()), expected);
    }
}
