//! V8 and V9.

use half::f16;

use super::{all, class, h, near};
use crate::dec2::constants::{ACT_HALF, ACT_MID, ACT_SLOPE};
use crate::dec2::options::{ActRound, NanSign};
use crate::dec2::reference::Matrix;
use crate::dec2::reference::mlp::{act_gate, col_add, cubic_act};
use crate::dec2::reference::number::quantise;

const BOTH: [ActRound; 2] = [ActRound::Stepwise, ActRound::Fused];

#[test]
fn known_activations() {
    for (x, y) in [(0x3C00, 0x3AA6), (0xBC00, 0xB168), (0xC000, 0x8000), (0x5000, 0x5000)] {
        assert_eq!(cubic_act(h(x), ActRound::Stepwise).to_bits(), y, "{x:04X}");
    }
    assert!((cubic_act(f16::ONE, ActRound::Stepwise).to_f64() - 0.83105).abs() < 5e-6);
}

#[test]
fn beyond_two_it_is_the_identity_or_zero() {
    for round in BOTH {
        assert_eq!((act_gate(near(-2.0), round), act_gate(near(2.0), round)), (f16::ZERO, f16::ONE));
        for x in all() {
            let y = cubic_act(x, round);
            if x.is_nan() || x == f16::NEG_INFINITY {
                assert!(y.is_nan());
            } else if x.to_f64() >= 2.0 {
                assert_eq!(y.to_bits(), x.to_bits());
            } else if x.to_f64() <= -2.0 {
                assert_eq!(y.to_bits(), 0x8000);
            }
        }
    }
    assert_eq!(quantise(cubic_act(near(-3.0), ActRound::Stepwise), NanSign::Positive), 0x80);
}

/// Each operation's rounding, from exact ones.
#[test]
fn roundings_are_where_they_should_be() {
    let (mid, slope, half) = (ACT_MID.to_f64(), ACT_SLOPE.to_f64(), ACT_HALF.to_f64());
    for x in all().filter(|x| x.is_finite()) {
        let (value, y) = (x.to_f64(), x.to_f64().clamp(-2.0, 2.0));
        let r = |v: f64| near(v).to_f64();
        let stepwise = near(value * r(half + r(y * r(mid - r(slope * y.abs())))));
        let fused = near(value * r(half + y * r(mid - slope * y.abs())));
        assert_eq!(cubic_act(x, ActRound::Stepwise), stepwise, "{x}");
        assert_eq!(cubic_act(x, ActRound::Fused), fused, "{x}");
    }
}

#[test]
fn how_far_the_two_roundings_are_apart() {
    let code = |x| quantise(x, NanSign::Positive);
    let (mut differ, mut codes, mut most, mut count) = (0, 0, 0.0f64, 0);
    for x in all().filter(|x| x.is_finite()) {
        let [a, b] = BOTH.map(|round| cubic_act(x, round));
        count += 1;
        differ += u32::from(class(a) != class(b));
        codes += u32::from(code(a) != code(b));
        most = most.max((a.to_f64() - b.to_f64()).abs());
    }
    assert_eq!((differ, count, codes), (2281, 63_488, 68));
    assert!((most - 0.00195).abs() < 5e-6, "{most}");
}

#[test]
fn it_is_close_to_gelu() {
    let points: Vec<_> = all().filter(|x| x.is_finite() && x.to_f64().abs() <= 8.0).collect();
    let out = |x: f16| cubic_act(x, ActRound::Stepwise).to_f64();
    let apart = |f: &dyn Fn(f64) -> f64| points.iter().map(|x| (out(*x) - f(x.to_f64())).abs()).fold(0.0, f64::max);
    let gelu = apart(&|x| x * 0.5 * (1.0 + libm::erf(x / 2f64.sqrt())));
    let silu = apart(&|x| x / (1.0 + libm::exp(-x)));
    assert!((gelu - 0.046).abs() < 0.0005 && (silu - 0.239).abs() < 0.0005, "{gelu} {silu}");
    let (at, least) =
        points.iter().map(|x| (x.to_f64(), out(*x))).fold((0.0, 0.0), |a, b| if b.1 < a.1 { b } else { a });
    assert!((least + 0.17786).abs() < 5e-6 && (at + 0.774).abs() < 0.0005, "{least} at {at}");
}

#[test]
fn residuals() {
    let table = [0x3C00, 0xBC00, 0x7BFF, 0x8000, 0x0001, 0x0000].map(h);
    let residual = Matrix::from_fn(1, 6, |_, j| [0xBC00, 0x3C01, 0x7BFF, 0x8000, 0x8001, 0x8000].map(h)[j]);
    let sums: Vec<_> = col_add(&table, &residual).elements().iter().map(|x| x.to_bits()).collect();
    assert_eq!(sums, [0, 0x1400, 0x7C00, 0x8000, 0, 0]);
    let nan = col_add(&[h(0x7C00), h(0x7E00)], &Matrix::filled(1, 2, h(0xFC00)));
    assert!(nan.elements().iter().all(|x| x.is_nan()));
}
