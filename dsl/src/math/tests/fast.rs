use super::super::{Host, approximate_binary, approximate_unary};
use super::pow::Random;
use crate::ir::{BinaryOp, UnaryOp};

/// An approximation on the CPU device's own instructions, and the function itself.
type Case = (UnaryOp, fn(f64) -> f64);

const FUNCTIONS: [Case; 2] = [(UnaryOp::Tanh, libm::tanh), (UnaryOp::Erf, libm::erf)];

fn fast(op: UnaryOp, x: f32) -> f32 {
    approximate_unary(op, &Host, x).unwrap()
}

fn fast_pow(x: f32, y: f32) -> f32 {
    approximate_binary(BinaryOp::Pow, &Host, x, y).unwrap()
}

#[test]
fn the_promised_part_of_the_result_is_right() {
    for (op, exact) in FUNCTIONS {
        let mut worst = 0f64;
        for bits in (0..f32::INFINITY.to_bits()).step_by(2_053) {
            let x = f32::from_bits(bits);
            let (got, wanted) = (f64::from(fast(op, x)), exact(f64::from(x)));
            let error = (got - wanted).abs();
            assert!(error <= wanted * 2f64.powi(-18) + 2f64.powi(-149), "{op} of {x:e}: {got:e}, exactly {wanted:e}");
            assert_eq!(fast(op, -x).to_bits(), (-fast(op, x)).to_bits(), "{op} of ±{x:e}");
            worst = worst.max(if x > 1e-30 { error / wanted } else { 0.0 });
        }
        println!("{op}: 2^{}", worst.log2());
        assert_eq!((fast(op, f32::INFINITY), fast(op, f32::NEG_INFINITY)), (1.0, -1.0));
        assert!(fast(op, f32::NAN).is_nan());
    }
}

#[test]
fn powers_are_as_near_as_their_logarithm_times_the_exponent_allows() {
    let random = &mut Random(3);
    for i in 0..200_000 {
        let x = f32::from_bits(0x0080_0000 + random.next() as u32 % 0x7F00_0000);
        // Results of every size; of every fourth base close to 1.
        let x = if i % 4 == 0 { 1.0 + x.rem_euclid(1.0) / 64.0 } else { x };
        let logarithm = f64::from(x).log2();
        let exponent = (random.next() % 2_500) as f64 / 10.0 - 125.0;
        let y = (exponent / logarithm) as f32;
        if !y.is_finite() {
            continue;
        }
        let (got, wanted) = (f64::from(fast_pow(x, y)), libm::pow(f64::from(x), f64::from(y)));
        let bound = 2f64.powi(-21) * (1.0 + f64::from(y.abs()) * logarithm.abs().max(1.0));
        assert!((got - wanted).abs() <= wanted * bound + 2f64.powi(-126), "{x:e}^{y:e}: {got:e}, exactly {wanted:e}");
    }
}

#[test]
fn powers_have_c_s_special_cases() {
    let edges = [
        0.0,
        1.0,
        2.0,
        3.0,
        0.5,
        1.5,
        7.0,
        8.0,
        16_777_215.0,
        16_777_216.0,
        1e10,
        1e30,
        f32::MAX,
        f32::MIN_POSITIVE,
        f32::INFINITY,
        f32::NAN,
    ];
    let signed = || edges.into_iter().flat_map(|x| [x, -x]);
    let mut special = 0;
    for (x, y) in signed().flat_map(|x| signed().map(move |y| (x, y))) {
        let (got, wanted) = (fast_pow(x, y), libm::powf(x, y));
        assert_eq!(got.is_nan(), wanted.is_nan(), "{x}^{y}: {got} instead of {wanted}");
        if wanted.is_nan() {
            continue;
        }
        assert_eq!(got.is_sign_negative(), wanted.is_sign_negative(), "{x}^{y}: {got} instead of {wanted}");
        if [0.0, 1.0, f32::INFINITY].contains(&wanted.abs()) {
            assert_eq!(got, wanted, "{x}^{y}");
            special += 1;
        }
    }
    assert!(special > 500, "{special}");
}
