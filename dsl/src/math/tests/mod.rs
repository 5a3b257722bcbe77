mod accuracy;
mod count;
mod fast;
mod pow;
mod special;
mod ulp;

use super::{Host, cos, erf, exp, exp2, log, log2, sin, tanh};

/// A function of one number: its expansion, and a reference in f64.
struct Function {
    name: &'static str,
    expansion: fn(f32) -> f32,
    reference: fn(f64) -> f64,
    /// What −x gives: the same, the negated value, or something else.
    symmetry: Option<f32>,
    /// Around these the expansion changes its ways, or the function its kind of result.
    boundaries: &'static [f32],
}

/// Where series beat library calls: x⁴ is below the accuracy of the comparison.
const TINY: f64 = 1.0 / 16_384.0;

const FUNCTIONS: [Function; 8] = [
    Function {
        name: "exp",
        expansion: |x| exp(&Host, x),
        reference: |x| match x.abs() {
            size if size < TINY => 1.0 + x * (1.0 + x * (0.5 + x / 6.0)),
            size if size > 200.0 => {
                if x > 0.0 {
                    f64::INFINITY
                } else {
                    0.0
                }
            }
            _ => libm::exp(x),
        },
        symmetry: None,
        boundaries: &[88.722_84, -87.336_55, -103.278_93, -103.972_08, 89.0, -104.0, 0.346_573_6, -0.346_573_6],
    },
    Function {
        name: "exp2",
        expansion: |x| exp2(&Host, x),
        reference: |x| match x.abs() {
            size if size < TINY => {
                let x = x * std::f64::consts::LN_2;
                1.0 + x * (1.0 + x * (0.5 + x / 6.0))
            }
            size if size > 200.0 => {
                if x > 0.0 {
                    f64::INFINITY
                } else {
                    0.0
                }
            }
            _ => libm::exp2(x),
        },
        symmetry: None,
        boundaries: &[128.0, 127.5, -126.0, -126.5, -149.0, -149.5, -150.0, -151.0, 0.5, -0.5, 1.0, 7.0],
    },
    Function {
        name: "log",
        expansion: |x| log(&Host, x),
        reference: libm::log,
        symmetry: None,
        boundaries: &[1.0, 0.666_666_7, 1.333_333_4, f32::MIN_POSITIVE, f32::MAX, 2.0, 0.5],
    },
    Function {
        name: "log2",
        expansion: |x| log2(&Host, x),
        reference: libm::log2,
        symmetry: None,
        boundaries: &[1.0, std::f32::consts::FRAC_1_SQRT_2, std::f32::consts::SQRT_2, f32::MIN_POSITIVE, f32::MAX],
    },
    Function {
        name: "sin",
        expansion: |x| sin(&Host, x),
        reference: |x| if x.abs() < TINY { x - x * x * x / 6.0 } else { libm::sin(x) },
        symmetry: Some(-1.0),
        boundaries: &TURNS,
    },
    Function {
        name: "cos",
        expansion: |x| cos(&Host, x),
        reference: |x| if x.abs() < TINY { 1.0 - x * x / 2.0 } else { libm::cos(x) },
        symmetry: Some(1.0),
        boundaries: &TURNS,
    },
    Function {
        name: "tanh",
        expansion: |x| tanh(&Host, x),
        reference: |x| match x.abs() {
            size if size < TINY => x - x * x * x / 3.0,
            size if size > 20.0 => 1f64.copysign(x),
            _ => libm::tanh(x),
        },
        symmetry: Some(-1.0),
        boundaries: &[1.0, 9.01, 10.0],
    },
    Function {
        name: "erf",
        expansion: |x| erf(&Host, x),
        reference: |x| match x.abs() {
            size if size < TINY => std::f64::consts::FRAC_2_SQRT_PI * (x - x * x * x / 3.0),
            size if size > 6.0 => 1f64.copysign(x),
            _ => libm::erf(x),
        },
        symmetry: Some(-1.0),
        boundaries: &[1.0, 3.919_206, 3.93],
    },
];

/// Multiples of π/4, the end of the short reduction, large multiples of π/2 (nearly), and the largest number.
const TURNS: [f32; 9] = [
    std::f32::consts::FRAC_PI_4,
    std::f32::consts::FRAC_PI_2,
    std::f32::consts::PI,
    355.0,
    131_072.0,
    20_145.463,
    16_367_173.0 * (1u128 << 72) as f32,
    1e22,
    f32::MAX,
];

/// Numbers with a meaning of their own.
const SPECIAL: [f32; 16] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -2.0,
    f32::MIN_POSITIVE,
    -f32::MIN_POSITIVE,
    1e-45,
    -1e-45,
    f32::MAX,
    f32::MIN,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
    -f32::NAN,
];
