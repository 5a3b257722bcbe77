//! Float arithmetic.

use super::convert::rounded;
use super::*;

/// Edge cases and a sample of all bit patterns of a 16-bit type.
fn sample(s: Scalar) -> Vec<u64> {
    let mut all = float_edges(s);
    if s.bits() == 16 {
        all.extend((0..1 << 16).step_by(23));
    }
    all
}

/// `x` in type `s`; exact results of `f64` operands are the operands' own type.
fn to(s: Scalar, x: f64) -> u64 {
    if s == Scalar::F64 { x.to_bits() } else { nearest(s, x) }
}

#[test]
fn arithmetic_rounds_once() {
    // In f64 and then to the type is correctly rounded, because 53 bits are more than twice the type's and two. For f64
    // itself this only says that the host's own is used; see below.
    for s in FLOATS {
        let edges = float_edges(s);
        let v = |x| value(s, x);
        check_binary(s, BinaryOp::Add, &edges, |a, b| to(s, v(a) + v(b)));
        check_binary(s, BinaryOp::Sub, &edges, |a, b| to(s, v(a) - v(b)));
        check_binary(s, BinaryOp::Mul, &edges, |a, b| to(s, v(a) * v(b)));
        check_binary(s, BinaryOp::Div, &edges, |a, b| to(s, v(a) / v(b)));
        check_unary(s, UnaryOp::Sqrt, &sample(s), |x| to(s, v(x).sqrt()));
    }
}

#[test]
fn f64_arithmetic_rounds_once() {
    // Integers of up to 53 bits, with sums and products exact in i128.
    let ints: Vec<i64> =
        (0..20u32).map(|i| (0x1F_2E3D_4C5B_6A79i64 >> (i % 7)) - i64::from(i) * 0x0123_4567_89AB).collect();
    let bits: Vec<u64> = ints.iter().map(|x| (*x as f64).to_bits()).collect();
    let int = |x: u64| f64::from_bits(x) as i128;
    assert!(ints.iter().zip(&bits).all(|(i, b)| i128::from(*i) == int(*b)));
    check_binary(Scalar::F64, BinaryOp::Add, &bits, |a, b| rounded(int(a) + int(b), 53).to_bits());
    check_binary(Scalar::F64, BinaryOp::Mul, &bits, |a, b| rounded(int(a) * int(b), 53).to_bits());
    // √x is the nearest if x lies between the squares of the midpoints around it.
    let squares: Vec<u64> = ints.iter().map(|x| ((x & 0x3FF_FFFF_FFFF) as f64).to_bits()).collect();
    let ty = Type::Scalar(Scalar::F64);
    for (x, r) in squares.iter().zip(apply(&[(ty, squares.clone())], ty, |v| Op::Unary(UnaryOp::Sqrt, v[0]))) {
        let (e, digits) = ((r >> 52) as i32 - 1075, i128::from(r & ((1 << 52) - 1) | 1 << 52));
        // In units of 2^(e−1), squared: (2·digits ± 1)² against x · 2^(2−2e).
        let x = int(*x) << (2 - 2 * e);
        assert!((2 * digits - 1).pow(2) <= x && x <= (2 * digits + 1).pow(2));
    }
}

#[test]
fn signs_are_bits() {
    for s in FLOATS {
        let sign = 1u64 << (s.bits() - 1);
        let mut edges = sample(s);
        // Signalling NaNs with payloads.
        let infinity = (2 * layout(s).1 as u64 + 1) << layout(s).0;
        edges.extend([infinity | 1, infinity | 3 | sign]);
        let ty = Type::Scalar(s);
        let got = apply(&[(ty, edges.clone())], ty, |v| Op::Unary(UnaryOp::Neg, v[0]));
        assert_eq!(got, edges.iter().map(|x| x ^ sign).collect::<Vec<u64>>());
        let got = apply(&[(ty, edges.clone())], ty, |v| Op::Unary(UnaryOp::Abs, v[0]));
        assert_eq!(got, edges.iter().map(|x| x & !sign).collect::<Vec<u64>>());
        let n = edges.len();
        let (a, b) = pairs(&[&edges[..12], &edges[n - 3..]].concat());
        let got = apply(&[(ty, a.clone()), (ty, b.clone())], ty, |v| Op::Binary(BinaryOp::Copysign, v[0], v[1]));
        assert_eq!(got, a.iter().zip(&b).map(|(a, b)| a & !sign | b & sign).collect::<Vec<u64>>());
    }
}

#[test]
fn rounding_to_integers() {
    for s in FLOATS {
        let v = |x| value(s, x);
        // Halves decide.
        let mut x = sample(s);
        x.extend([0.5, 1.5, 2.5, 3.5, 0.25, 0.75, 100.5, 101.5].into_iter().flat_map(|x| [to(s, x), to(s, -x)]));
        // A number below 2^52 is its integer part and a fraction; larger ones are integers.
        let parts = |x: f64| {
            let magnitude = x.abs();
            let whole = if magnitude < 2f64.powi(52) { (magnitude as u64) as f64 } else { magnitude };
            (whole, magnitude - whole)
        };
        let integer = |f: fn(f64, f64, bool) -> bool| {
            move |x: u64| {
                let x = v(x);
                if !x.is_finite() {
                    return to(s, x);
                }
                let (whole, rest) = parts(x);
                let up = rest > 0.0 && f(whole, rest, x < 0.0);
                to(s, (whole + if up { 1.0 } else { 0.0 }).copysign(x))
            }
        };
        check_unary(s, UnaryOp::Floor, &x, integer(|_, _, negative| negative));
        check_unary(s, UnaryOp::Ceil, &x, integer(|_, _, negative| !negative));
        check_unary(s, UnaryOp::Trunc, &x, integer(|_, _, _| false));
        check_unary(s, UnaryOp::Round, &x, integer(|_, rest, _| rest >= 0.5));
        check_unary(
            s,
            UnaryOp::Roundeven,
            &x,
            integer(|whole, rest, _| rest > 0.5 || rest == 0.5 && whole % 2.0 == 1.0),
        );
    }
}

#[test]
fn reciprocal_roots_round_twice() {
    for s in FLOATS {
        check_unary(s, UnaryOp::Rsqrt, &sample(s), |x| {
            let v = value(s, x);
            match s {
                Scalar::F64 => (1.0 / v.sqrt()).to_bits(),
                // In f32, and then to the type.
                _ => {
                    let root = value(Scalar::F32, nearest(Scalar::F32, v.sqrt()));
                    nearest(s, value(Scalar::F32, nearest(Scalar::F32, 1.0 / root)))
                }
            }
        });
    }
}

#[test]
fn extrema_order_zeros_and_treat_nan_as_named() {
    // Total order of non-NaN floats with −0 < +0.
    let key = |x: f64| if x.is_sign_negative() { -(x.abs().to_bits() as i64) - 1 } else { x.to_bits() as i64 };
    for s in FLOATS {
        let ops = [
            (BinaryOp::Maximum, true, true),
            (BinaryOp::Minimum, false, true),
            (BinaryOp::Maxnum, true, false),
            (BinaryOp::Minnum, false, false),
        ];
        for (op, largest, propagates) in ops {
            check_binary(s, op, &float_edges(s), |a, b| match (is_nan(s, a), is_nan(s, b)) {
                (false, false) => {
                    if (key(value(s, a)) > key(value(s, b))) == largest {
                        a
                    } else {
                        b
                    }
                }
                (true, true) => a,
                (true, false) => {
                    if propagates {
                        a
                    } else {
                        b
                    }
                }
                (false, true) => {
                    if propagates {
                        b
                    } else {
                        a
                    }
                }
            });
        }
    }
}

/// An `f16` in units of 2^-24.
fn f16_units(bits: u64) -> i128 {
    (value(Scalar::F16, bits) * 2f64.powi(24)) as i128
}

fn check_fma(s: Scalar, operands: [Vec<u64>; 3], expected: impl Fn([u64; 3]) -> u64) {
    let ty = Type::Scalar(s);
    let typed: Vec<_> = operands.iter().map(|o| (ty, o.clone())).collect();
    let got = apply(&typed, ty, |v| Op::Fma { a: v[0], b: v[1], c: v[2] });
    let case = |i: usize| [0, 1, 2].map(|k: usize| operands[k][i]);
    let want: Vec<u64> = (0..got.len()).map(|i| expected(case(i))).collect();
    check(s, &got, &want, |i| format!("fma {s} {:x?}", case(i)));
}

/// Triples of finite edge cases, and scattered ones.
fn triples(s: Scalar, n: u64) -> [Vec<u64>; 3] {
    let edges: Vec<u64> = float_edges(s).into_iter().filter(|x| value(s, *x).is_finite()).collect();
    let mut all: Vec<[u64; 3]> =
        (0..n).map(|i| [i, i / 3 * 5 + 1, i / 7 * 11 + 2].map(|i| edges[i as usize % edges.len()])).collect();
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> (64 - s.bits())
    };
    while all.len() < 2 * n as usize {
        let t = [next(), next(), next()];
        if t.iter().all(|x| value(s, *x).is_finite()) {
            all.push(t);
        }
    }
    [0, 1, 2].map(|k: usize| all.iter().map(|t| t[k]).collect())
}

#[test]
fn fused_f16_rounds_once() {
    // Products and sums are exact in units of 2^-48; a sum of 0 is +0 unless both are −0.
    check_fma(Scalar::F16, triples(Scalar::F16, 3000), |[a, b, c]| {
        let exact = f16_units(a) * f16_units(b) + (f16_units(c) << 24);
        if exact == 0 {
            let (p, c) = (value(Scalar::F16, a) * value(Scalar::F16, b), value(Scalar::F16, c));
            return nearest(Scalar::F16, p + c);
        }
        // To the 11 bits of a normal number, or to a multiple of 2^-24.
        let magnitude = exact.unsigned_abs();
        let bits = (128 - magnitude.leading_zeros()).saturating_sub(24).min(11);
        let kept = if bits < 11 {
            // Subnormal: whole units of 2^-24, ties to even.
            let (whole, rest) = (magnitude >> 24, magnitude & ((1 << 24) - 1));
            (whole + u128::from(rest > 1 << 23 || rest == 1 << 23 && whole & 1 == 1)) as f64 * 2f64.powi(-24)
        } else {
            rounded(exact, 11).abs() * 2f64.powi(-48)
        };
        nearest(Scalar::F16, if exact < 0 { -kept } else { kept })
    });
    // By hand: (1 + 2^-10)² − (1 + 2^-9) = 2^-20, lost if the product is rounded first.
    check_fma(Scalar::F16, [vec![0x3C01], vec![0x3C01], vec![0xBC02]], |_| 0x0010);
}

#[test]
fn fused_bf16_rounds_to_f32_first() {
    check_fma(Scalar::Bf16, triples(Scalar::Bf16, 3000), |[a, b, c]| {
        // The product has 16 bits, so the f64 sum is never a midpoint of f32 that the exact one is not.
        let sum = value(Scalar::Bf16, a) * value(Scalar::Bf16, b) + value(Scalar::Bf16, c);
        nearest(Scalar::Bf16, value(Scalar::F32, nearest(Scalar::F32, sum)))
    });
}

#[test]
fn fused_f32_and_f64_round_once() {
    // Small integers times powers of two, so that the exact result fits i128.
    for (s, bits, spread) in [(Scalar::F32, 24, 30), (Scalar::F64, 53, 10)] {
        let mut state = 7u64;
        let mut next = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) % n
        };
        let mut exact = vec![];
        let mut operands = [vec![], vec![], vec![]];
        for i in 0..2000 {
            let mut digits = || (i128::from(next(1 << bits)) | 1 << (bits - 1)) * if next(2) == 0 { 1 } else { -1 };
            let (a, b, c) = (digits(), digits(), digits());
            // Near −a·b every other time, so that they cancel.
            let shift = next(spread) as u32;
            let c = if i % 2 == 0 { rounded(-a * b, bits) as i128 } else { c << shift };
            exact.push(a * b + c);
            for (list, x) in operands.iter_mut().zip([a, b, c]) {
                list.push(to(s, x as f64));
            }
        }
        let want: Vec<u64> = exact.iter().map(|x| to(s, rounded(*x, bits))).collect();
        let at = std::cell::Cell::new(0);
        check_fma(s, operands, |_| {
            at.set(at.get() + 1);
            want[at.get() - 1]
        });
    }
    let infinity = u64::from(f32::INFINITY.to_bits());
    let (one, zero) = (u64::from(1f32.to_bits()), 0);
    check_fma(Scalar::F32, [vec![infinity, infinity], vec![zero, one], vec![one, infinity | 1 << 31]], |_| 0x7FC0_0000);
}

#[test]
fn hardware_approximations_are_correctly_rounded() {
    let mut edges = float_edges(Scalar::F32);
    edges.extend(
        [0.1f32, 127.9, 128.0, -126.5, -149.0, -149.5, -151.0, 1e-10, 0.5, 7.0].map(|x| u64::from(x.to_bits())),
    );
    let s = Scalar::F32;
    let v = |x| value(s, x);
    check_unary(s, UnaryOp::HwExp2, &edges, |x| nearest(s, v(x).exp2()));
    check_unary(s, UnaryOp::HwLog2, &edges, |x| nearest(s, v(x).log2()));
    check_unary(s, UnaryOp::HwRcp, &edges, |x| nearest(s, 1.0 / v(x)));
    check_unary(s, UnaryOp::HwRsq, &edges, |x| nearest(s, 1.0 / v(x).sqrt()));
    check_unary(s, UnaryOp::HwSqrt, &edges, |x| nearest(s, v(x).sqrt()));
}
