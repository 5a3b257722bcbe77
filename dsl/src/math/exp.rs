//! e^x and 2^x.
//!
//! Both split the exponent into an integer n and a rest f, |f| ≤ ½ (in units of log2), evaluate a polynomial of degree 6
//! in f and scale by 2^n. The limits of the operand lie where results have become 0 and infinity for good.

use super::arith::Arith;

/// 1.5 · 2^23: added to |x| ≤ 2^22 it leaves x rounded to an integer, ties to even, in the low bits of the sum.
pub(super) const ROUND: f32 = 12_582_912.0;

/// Coefficients of 2^f, powers 1 to 6; the constant term is 1. Relative error 2^-28.3 on [−½, ½].
pub(super) const EXP2: [f32; 6] =
    [std::f32::consts::LN_2, 0.240_226_48, 0.055_503_6, 0.009_618_506, 0.001_339_080_6, 0.000_153_264_71];

/// Coefficients of e^f, powers 1 to 6; the constant term is 1. Relative error 2^-28.3 on [−ln 2 / 2, ln 2 / 2].
const EXP: [f32; 6] = [1.0, 0.499_999_94, 0.166_665_21, 0.041_668_255, 0.008_368_663, 0.001_382_146_8];

/// ln 2 in two floats.
pub(super) const LN2: [f32; 2] = [std::f32::consts::LN_2, -1.904_654_3e-9];

/// `c[0] + x·(c[1] + x·(c[2] + …))`, an fma for each coefficient but the last.
pub(super) fn horner<A: Arith>(a: &A, x: A::F, c: &[f32]) -> A::F {
    let (last, rest) = c.split_last().expect("a polynomial has coefficients");
    rest.iter().rev().fold(a.f(*last), |sum, c| a.fma(sum, x, a.f(*c)))
}

/// The integer next to `x · scale`, |x · scale| ≤ 2^22, as a float and as an integer.
pub(super) fn round<A: Arith>(a: &A, x: A::F, scale: f32) -> (A::F, A::I) {
    let sum = a.fma(x, a.f(scale), a.f(ROUND));
    (a.fsub(sum, a.f(ROUND)), a.isub(a.bits(sum), a.i(ROUND.to_bits().cast_signed())))
}

/// 2^x: 10 operations, [`Arith::clamp`] and [`Arith::ldexp`].
pub fn exp2<A: Arith>(a: &A, x: A::F) -> A::F {
    let x = a.clamp(x, -151.0, 128.0);
    let (whole, n) = round(a, x, 1.0);
    let f = a.fsub(x, whole);
    let power = a.fma(horner(a, f, &EXP2), f, a.f(1.0));
    a.ldexp(power, n)
}

/// e^x: 11 operations, [`Arith::clamp`] and [`Arith::ldexp`].
pub fn exp<A: Arith>(a: &A, x: A::F) -> A::F {
    let (power, n) = exp_parts(a, a.clamp(x, -104.0, 89.0));
    a.ldexp(power, n)
}

/// e^x of −80 ≤ x ≤ 80, or NaN.
pub(super) fn exp_limited<A: Arith>(a: &A, x: A::F) -> A::F {
    let (power, n) = exp_parts(a, x);
    a.fmul(power, a.from_bits(a.iadd(a.shl(n, a.i(23)), a.i(0x3f80_0000))))
}

/// e^x as `power · 2^n`.
fn exp_parts<A: Arith>(a: &A, x: A::F) -> (A::F, A::I) {
    let (whole, n) = round(a, x, std::f32::consts::LOG2_E);
    // The first product cancels exactly.
    let f = a.fma(whole, a.f(-LN2[0]), x);
    let f = a.fma(whole, a.f(-LN2[1]), f);
    (a.fma(horner(a, f, &EXP), f, a.f(1.0)), n)
}
