//! Hyperbolic tangent.

use super::arith::Arith;
use super::exp::{exp_limited, horner};
use super::reciprocal::reciprocal;

/// Below: a polynomial. Above: 1 − 2 / (e^2x + 1).
const SMALL: f32 = 1.0;

/// (tanh x / x − 1) / x² in powers of x², |x| ≤ 1. Relative error of the tangent 2^-30.9.
const TANH: [f32; 8] = [
    -0.333_333_28,
    0.133_331_75,
    -0.053_950_723,
    0.021_774_445,
    -0.008_571_457,
    0.003_048_876_3,
    -0.000_821_896_25,
    0.000_116_449_71,
];

/// Hyperbolic tangent: 40 operations.
pub fn tanh<A: Arith>(a: &A, x: A::F) -> A::F {
    let size = a.fabs(x);
    let square = a.fmul(x, x);
    let small = a.fma(a.fmul(horner(a, square, &TANH), square), size, size);
    let limit = a.f(10.0);
    let limited = a.select(a.flt(limit, size), limit, size);
    let power = exp_limited(a, a.fadd(limited, limited));
    let large = a.fma(a.f(-2.0), reciprocal(a, a.fadd(power, a.f(1.0))), a.f(1.0));
    let value = a.select(a.flt(size, a.f(SMALL)), small, large);
    copy_sign(a, value, x)
}

/// The magnitude of a positive value or NaN with the sign of `x`.
pub(super) fn copy_sign<A: Arith>(a: &A, value: A::F, x: A::F) -> A::F {
    a.from_bits(a.ior(a.bits(value), a.iand(a.bits(x), a.i(i32::MIN))))
}
