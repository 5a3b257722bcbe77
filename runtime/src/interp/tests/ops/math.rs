//! Transcendental functions: the expansions of `lathe_dsl::math`, in every type.

use lathe_dsl::math::{self, Host};

use super::*;

const MATH: [UnaryOp; 8] =
    [UnaryOp::Exp, UnaryOp::Exp2, UnaryOp::Log, UnaryOp::Log2, UnaryOp::Sin, UnaryOp::Cos, UnaryOp::Tanh, UnaryOp::Erf];

#[test]
fn functions_of_f32_are_their_expansions_and_right() {
    let mut x = float_edges(Scalar::F32);
    x.extend((0..300).map(|i| u64::from(((i - 150) as f32 * 0.173).to_bits())));
    for op in MATH {
        check_unary(Scalar::F32, op, &x, |x| {
            math::unary(op, &Host, f32::from_bits(x as u32)).unwrap().to_bits().into()
        });
        // A wrong function would be far off.
        let exact: fn(f64) -> f64 = match op {
            UnaryOp::Exp => f64::exp,
            UnaryOp::Exp2 => f64::exp2,
            UnaryOp::Log => f64::ln,
            UnaryOp::Log2 => f64::log2,
            UnaryOp::Sin => f64::sin,
            UnaryOp::Cos => f64::cos,
            UnaryOp::Tanh => f64::tanh,
            _ => return check_erf(),
        };
        let got = apply(&[(F32, x.clone())], F32, |v| Op::Unary(op, v[0]));
        for (x, g) in x.iter().zip(got) {
            let (x, g) = (f32::from_bits(*x as u32), f32::from_bits(g as u32));
            let e = exact(x.into()) as f32;
            let close = g == e || (g - e).abs() <= e.abs() * 1e-6 + 1e-38 || g.is_nan() && e.is_nan();
            assert!(close, "{op} {x}: {g}, not {e}");
        }
    }
}

fn check_erf() {
    // erf of 0, 0.5, 1, 2, from tables.
    let table = [(0.0f32, 0.0f32), (0.5, 0.520_499_9), (1.0, 0.842_700_8), (2.0, 0.995_322_3), (-1.0, -0.842_700_8)];
    let x = table.iter().map(|t| u64::from(t.0.to_bits())).collect();
    let got = apply(&[(F32, x)], F32, |v| Op::Unary(UnaryOp::Erf, v[0]));
    for ((x, e), g) in table.into_iter().zip(got) {
        let g = f32::from_bits(g as u32);
        assert!((g - e).abs() < 2e-7, "erf {x}: {g}, not {e}");
    }
}

#[test]
fn sixteen_bit_functions_round_those_of_f32() {
    for s in [Scalar::F16, Scalar::Bf16] {
        let mut x = float_edges(s);
        x.extend((0..1 << 16).step_by(311));
        let f32_of = |x: u64| value(s, x) as f32;
        for op in MATH {
            check_unary(s, op, &x, |x| nearest(s, math::unary(op, &Host, f32_of(x)).unwrap().into()));
        }
        let edges: Vec<u64> = float_edges(s).into_iter().step_by(2).collect();
        check_binary(s, BinaryOp::Pow, &edges, |a, b| nearest(s, math::pow(&Host, f32_of(a), f32_of(b)).into()));
    }
}

#[test]
fn powers() {
    let f = |x: u64| f32::from_bits(x as u32);
    let edges = float_edges(Scalar::F32);
    check_binary(Scalar::F32, BinaryOp::Pow, &edges, |a, b| math::pow(&Host, f(a), f(b)).to_bits().into());
    let (a, b) = (vec![2f32, 9.0, -2.0, 10.0, 0.5], vec![10f32, 0.5, 3.0, -2.0, 0.0]);
    let bits = |x: &[f32]| x.iter().map(|x| u64::from(x.to_bits())).collect::<Vec<_>>();
    let got = apply(&[(F32, bits(&a)), (F32, bits(&b))], F32, |v| Op::Binary(BinaryOp::Pow, v[0], v[1]));
    for ((g, e), a) in got.iter().zip([1024.0, 3.0, -8.0, 0.01, 1.0]).zip(a) {
        assert!((f(*g) - e).abs() <= e.abs() * 1e-6, "{a}: {}", f(*g));
    }
}
