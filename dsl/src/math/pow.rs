//! Power.
//!
//! 2^(y · log2 |x|), the logarithm and the product in two floats each, because an error of the exponent is multiplied by up
//! to 150 in the result. Signs and what is no number are put right afterwards.

use super::arith::Arith;
use super::exp::{EXP2, horner, round};
use super::log::split;
use super::reciprocal::reciprocal;

/// A number in two floats: their sum, the second being the rounding error of the first, or nearly.
type Pair<A> = (<A as Arith>::F, <A as Arith>::F);

/// 1 / ln 2 in two floats.
const LOG2_E: [f32; 2] = [std::f32::consts::LOG2_E, 1.925_963e-8];

/// (log2 m − q / ln 2) / q³ in powers of q², where q = 2 (m − 1) / (m + 1), √½ ≤ m ≤ √2. Relative error of the logarithm
/// 2^-37.5.
const ATANH: [f32; 4] = [0.120_224_59, 0.018_033_84, 0.003_216_436_8, 0.000_664_609_9];
/// What the first coefficient lacks.
const ATANH_LOW: f32 = -2.715_947_7e-9;

/// Where |y| is larger, x^y is 0, 1 or infinity.
const MOST: f32 = 4_294_967_296.0;

/// x^y: 101 operations, two [`Arith::clamp`] and [`Arith::ldexp`].
pub fn pow<A: Arith>(a: &A, x: A::F, y: A::F) -> A::F {
    let zero = a.f(0.0);
    let infinity = a.f(f32::INFINITY);
    let size = a.fabs(x);
    let (high, low) = log2(a, size);
    // Infinite logarithms need no low part: below, an infinite product drops it.
    let high = a.select(a.feq(x, zero), a.f(f32::NEG_INFINITY), high);
    let high = a.select(a.flt(size, infinity), high, size);
    let value = exp2(a, product(a, limited(a, y), (high, low)));
    with_sign(a, x, y, value)
}

/// An exponent that times an infinite logarithm is infinite, and times the logarithm of 1 is 0.
pub(super) fn limited<A: Arith>(a: &A, y: A::F) -> A::F {
    a.clamp(y, -MOST, MOST)
}

/// x^y from |x|^y: its sign, and where it is no number or 1.
pub(super) fn with_sign<A: Arith>(a: &A, x: A::F, y: A::F, value: A::F) -> A::F {
    let (zero, infinity, size) = (a.f(0.0), a.f(f32::INFINITY), a.fabs(x));
    // Integers and their parity. Adding 2^23 rounds to an integer, whose lowest bit is that of the sum's significand.
    let exponent = a.fabs(y);
    let fractional = a.flt(exponent, a.f(8_388_608.0));
    let rounded = a.fadd(exponent, a.f(8_388_608.0));
    let integer = a.feq(a.fsub(rounded, a.f(8_388_608.0)), exponent);
    let parity = a.select_i(fractional, a.bits(rounded), a.bits(exponent));
    let parity = a.select_i(a.flt(exponent, a.f(16_777_216.0)), parity, a.i(0));
    let sign = a.iand(a.shl(parity, a.i(31)), a.bits(x));
    let value = a.from_bits(a.ixor(a.bits(value), sign));

    let no_number = a.and(a.and(fractional, a.not(integer)), a.and(a.flt(x, zero), a.flt(size, infinity)));
    let value = a.select(no_number, a.f(f32::NAN), value);
    let one = a.f(1.0);
    a.select(a.or(a.feq(y, zero), a.feq(x, one)), one, value)
}

/// log2 of a positive finite number, relative error about 2^-37.
fn log2<A: Arith>(a: &A, x: A::F) -> Pair<A> {
    let (exponent, f) = split(a, x, std::f32::consts::FRAC_1_SQRT_2);
    // q = 2f / (2 + f)
    let two = a.f(2.0);
    let divisor = sum(a, two, f);
    let inverse = reciprocal(a, divisor.0);
    let twice = a.fadd(f, f);
    let q = a.fmul(twice, inverse);
    let negative = a.fneg(q);
    let rest = a.fma(negative, divisor.1, a.fma(negative, divisor.0, twice));
    let q = (q, a.fmul(rest, inverse));
    let square = product(a, q.0, q);
    let square = (square.0, a.fma(q.1, q.0, square.1));
    let series = a.fmul(horner(a, square.0, &ATANH[1..]), square.0);
    let (first, lost) = sum(a, a.f(ATANH[0]), series);
    let series = (first, a.fadd(lost, a.f(ATANH_LOW)));
    let cube = times(a, q, square);
    let tail = times(a, cube, series);
    let head = times(a, q, (a.f(LOG2_E[0]), a.f(LOG2_E[1])));
    // The parts by size; an exponent that is not 0 exceeds the head, and the head the tail.
    let (high, lost) = sum(a, exponent, head.0);
    let (high, also) = sum(a, high, tail.0);
    let low = a.fadd(a.fadd(a.fadd(head.1, tail.1), lost), also);
    sum(a, high, low)
}

/// 2^x.
fn exp2<A: Arith>(a: &A, (high, low): Pair<A>) -> A::F {
    let low = a.select(a.flt(a.fabs(high), a.f(160.0)), low, a.f(0.0));
    let high = a.clamp(high, -160.0, 160.0);
    let (whole, n) = round(a, high, 1.0);
    let f = a.fadd(a.fsub(high, whole), low);
    a.ldexp(a.fma(horner(a, f, &EXP2), f, a.f(1.0)), n)
}

/// a + b, where a is 0 or |a| ≥ |b|; exact.
fn sum<A: Arith>(a: &A, x: A::F, y: A::F) -> Pair<A> {
    let high = a.fadd(x, y);
    (high, a.fsub(y, a.fsub(high, x)))
}

/// x · y of a float and a pair.
fn product<A: Arith>(a: &A, x: A::F, y: Pair<A>) -> Pair<A> {
    let high = a.fmul(x, y.0);
    (high, a.fma(x, y.1, a.fma(x, y.0, a.fneg(high))))
}

/// x · y of pairs.
fn times<A: Arith>(a: &A, x: Pair<A>, y: Pair<A>) -> Pair<A> {
    let (high, low) = product(a, x.0, y);
    (high, a.fma(x.1, y.0, low))
}
