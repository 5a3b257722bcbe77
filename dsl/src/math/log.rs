//! Logarithms.
//!
//! Both split x into 2^e · m and add e (in their units) to a polynomial in m − 1, which is exact.

use super::arith::Arith;
use super::exp::{LN2, horner};

/// (log(1 + f) − f) / f² on [−⅓, ⅓].
const LOG: [f32; 9] = [
    -0.5,
    0.333_332_15,
    -0.249_998_06,
    0.200_104_27,
    -0.166_801_97,
    0.140_057_34,
    -0.121_874_49,
    0.139_845_94,
    -0.128_801_96,
];

/// log2(1 + f) / f on [√½ − 1, √2 − 1].
const LOG2: [f32; 10] = [
    std::f32::consts::LOG2_E,
    -0.721_347_33,
    0.480_898_23,
    -0.360_698_7,
    0.288_569_57,
    -0.239_564_88,
    0.204_522_09,
    -0.191_450_16,
    0.186_876_58,
    -0.109_837_78,
];
const LOG2_LOW: f32 = 1.920_075_7e-8;

/// A positive finite number as 2^e · m, where `least ≤ m < 2 · least`: e as a float, and m − 1.
pub(super) fn split<A: Arith>(a: &A, x: A::F, least: f32) -> (A::F, A::F) {
    let subnormal = a.flt(x, a.f(f32::MIN_POSITIVE));
    let x = a.select(subnormal, a.fmul(x, a.f(8_388_608.0)), x);
    let correction = a.select(subnormal, a.f(-23.0), a.f(0.0));
    let bits = a.bits(x);
    let high = a.iand(a.isub(bits, a.i(least.to_bits().cast_signed())), a.i(0x7f80_0000 | i32::MIN));
    let exponent = a.fma(a.to_float(high), a.f(1.0 / 8_388_608.0), correction);
    (exponent, a.fsub(a.from_bits(a.isub(bits, high)), a.f(1.0)))
}

/// The value where it is a positive finite number's logarithm; what 0, negative numbers, infinity and NaN give otherwise.
fn special<A: Arith>(a: &A, x: A::F, value: A::F) -> A::F {
    let zero = a.f(0.0);
    let low = a.select(a.feq(x, zero), a.f(f32::NEG_INFINITY), a.f(f32::NAN));
    let value = a.select(a.flt(zero, x), value, low);
    // Infinity and NaN are their own logarithms.
    a.select(a.flt(x, a.f(f32::INFINITY)), value, x)
}

/// Natural logarithm: 27 operations.
pub fn log<A: Arith>(a: &A, x: A::F) -> A::F {
    let (exponent, f) = split(a, x, 2.0 / 3.0);
    let square = a.fmul(f, f);
    let value = a.fma(horner(a, f, &LOG), square, f);
    special(a, x, a.fma(exponent, a.f(LN2[0]), value))
}

/// Binary logarithm: 29 operations.
pub fn log2<A: Arith>(a: &A, x: A::F) -> A::F {
    let (exponent, f) = split(a, x, std::f32::consts::FRAC_1_SQRT_2);
    let square = a.fmul(f, f);
    let rest = a.fma(horner(a, f, &LOG2[1..]), square, a.fmul(f, a.f(LOG2_LOW)));
    let value = a.fma(f, a.f(LOG2[0]), rest);
    special(a, x, a.fadd(exponent, value))
}
