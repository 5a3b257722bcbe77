//! Sine and cosine.
//!
//! |x| is reduced to r + low, |r| ≤ π/4 and a little, and a number of quadrants: below 2^17 by subtracting a multiple of
//! π/2 in three parts, beyond by multiplying with the bits of 2/π that matter (Payne and Hanek).

use super::arith::Arith;
use super::exp::{ROUND, horner};

/// From here on the reduction in three parts would lose accuracy.
const LARGE: f32 = 131_072.0;

/// π/2 in three floats.
const FRAC_PI_2: [f32; 3] = [std::f32::consts::FRAC_PI_2, -4.371_139e-8, -1.715_124_5e-15];

/// 2/π: a word of the integer part, then words of the fraction.
const FRAC_2_PI: [u32; 8] =
    [0, 0xa2f9_836e, 0x4e44_1529, 0xfc27_57d1, 0xf534_ddc0, 0xdb62_9599, 0x3c43_9041, 0xfe51_63ab];

/// (sin r / r − 1) / r² in powers of r². Relative error of the sine 2^-27.7.
const SIN: [f32; 3] = [-0.166_666_54, 0.008_332_093, -0.000_195_051_46];

/// (cos r − 1) / r² in powers of r². Relative error of the cosine 2^-32.6.
const COS: [f32; 4] = [-0.5, 0.041_666_64, -0.001_388_713, 0.000_024_412_086];

/// An angle as `quadrants · π/2 + r + low`; only the two lowest bits of `quadrants` mean something.
struct Reduced<A: Arith> {
    r: A::F,
    low: A::F,
    quadrants: A::I,
}

/// Sine: 31 operations and a branch; 113 from 2^17 on.
pub fn sin<A: Arith>(a: &A, x: A::F) -> A::F {
    let angle = reduce(a, a.fabs(x));
    let sign = a.iand(a.bits(x), a.i(i32::MIN));
    let value = rotated(a, &angle, angle.quadrants);
    a.from_bits(a.ixor(a.bits(value), sign))
}

/// Cosine: 30 operations and a branch; 112 from 2^17 on.
pub fn cos<A: Arith>(a: &A, x: A::F) -> A::F {
    let angle = reduce(a, a.fabs(x));
    // cos x = sin (x + π/2)
    let quadrants = a.iadd(angle.quadrants, a.i(1));
    rotated(a, &angle, quadrants)
}

/// sin (r + low + quadrants · π/2).
fn rotated<A: Arith>(a: &A, angle: &Reduced<A>, quadrants: A::I) -> A::F {
    let &Reduced { r, low, .. } = angle;
    let square = a.fmul(r, r);
    let sin = a.fadd(r, a.fma(horner(a, square, &SIN), a.fmul(square, r), low));
    let cos = a.fma(a.fma(horner(a, square, &COS), r, a.fneg(low)), r, a.f(1.0));
    let odd = a.ieq(a.iand(quadrants, a.i(1)), a.i(1));
    let value = a.select(odd, cos, sin);
    let sign = a.iand(a.shl(quadrants, a.i(30)), a.i(i32::MIN));
    a.from_bits(a.ixor(a.bits(value), sign))
}

fn reduce<A: Arith>(a: &A, x: A::F) -> Reduced<A> {
    let small = a.flt(x, a.f(LARGE));
    let ([r, low], [quadrants]) = a.branch(a.not(small), |a| reduce_large(a, x), |a| reduce_small(a, x));
    Reduced { r, low, quadrants }
}

fn reduce_small<A: Arith>(a: &A, x: A::F) -> ([A::F; 2], [A::I; 1]) {
    let sum = a.fma(x, a.f(std::f32::consts::FRAC_2_PI), a.f(ROUND));
    let n = a.fsub(sum, a.f(ROUND));
    // Exact: both terms are multiples of 2^-23 (where n is not 0) and nearly cancel.
    let first = a.fma(n, a.f(-FRAC_PI_2[0]), x);
    let product = a.fmul(n, a.f(-FRAC_PI_2[1]));
    let r = a.fadd(first, product);
    // What both roundings lost, and the third part.
    let low = a.fadd(a.fsub(first, r), product);
    let low = a.fadd(low, a.fma(n, a.f(-FRAC_PI_2[1]), a.fneg(product)));
    ([r, a.fma(n, a.f(-FRAC_PI_2[2]), low)], [a.bits(sum)])
}

fn reduce_large<A: Arith>(a: &A, x: A::F) -> ([A::F; 2], [A::I; 1]) {
    let i = |c| a.i(c);
    let bits = a.bits(x);
    // x = significand · 2^(exponent − 150). Of significand · 2/π · 2^…, only bits of weight 2 and below count, 96 of them.
    let significand = a.ior(a.iand(bits, i(0x007f_ffff)), i(0x0080_0000));
    let start = a.isub(a.shr_u(bits, i(23)), i(120));
    let (word, shift) = (a.shr_u(start, i(5)), a.iand(start, i(31)));
    let words: [A::I; 4] = std::array::from_fn(|k| {
        let constant = |j: usize| a.i(FRAC_2_PI[j + k].cast_signed());
        (1..5).fold(constant(0), |chosen, j| a.select_i(a.ieq(word, a.i(j as i32)), constant(j), chosen))
    });
    let unshift = a.isub(i(31), shift);
    let window: [A::I; 3] = std::array::from_fn(|k| {
        let next = a.shr_u(a.shr_u(words[k + 1], i(1)), unshift);
        a.ior(a.shl(words[k], shift), next)
    });
    // The product modulo 2^96, without its lowest word: 2 bits of quadrants, 62 of the fraction.
    let below = a.umulhi(significand, window[2]);
    let low = a.iadd(a.imul(significand, window[1]), below);
    let carry = a.select_i(a.ult(low, below), i(1), i(0));
    let high = a.iadd(a.imul(significand, window[0]), a.umulhi(significand, window[1]));
    let high = a.iadd(high, carry);
    let quadrants = a.shr_u(a.iadd(high, i(1 << 29)), i(30));
    let high = a.isub(high, a.shl(quadrants, i(30)));
    // The fraction, −½ to ½ of a quadrant, as three exact floats, then as two.
    let part = |n, weight| a.fmul(a.to_float(n), a.f(weight));
    let p = part(a.iand(high, i(!0xff)), 2f32.powi(-30));
    let q = part(a.ior(a.shl(a.iand(high, i(0xff)), i(16)), a.shr_u(low, i(16))), 2f32.powi(-46));
    let s = part(a.iand(low, i(0xffff)), 2f32.powi(-62));
    let sum = a.fadd(p, q);
    let rest = a.fadd(a.fsub(q, a.fsub(sum, p)), s);
    let fraction = a.fadd(sum, rest);
    let rest = a.fsub(rest, a.fsub(fraction, sum));
    let r = a.fmul(fraction, a.f(FRAC_PI_2[0]));
    let low = a.fma(fraction, a.f(FRAC_PI_2[0]), a.fneg(r));
    let low = a.fma(rest, a.f(FRAC_PI_2[0]), a.fma(fraction, a.f(FRAC_PI_2[1]), low));
    let sum = a.fadd(r, low);
    let low = a.fsub(low, a.fsub(sum, r));
    // Infinity and NaN become NaN.
    ([a.fadd(sum, a.fsub(x, x)), low], [quadrants])
}
