//! A reciprocal without division, for the expansions that need one.

use super::arith::Arith;

/// An approximation of 1/x as bits: the difference from the operand's bits. Relative error 12 %.
const RECIPROCAL: i32 = 0x7ef3_11c7;

/// 1/x of a positive number well within the normal ones, or NaN: an approximation refined twice, each time cubing the
/// error. Within about 1 ulp. 9 operations.
pub(super) fn reciprocal<A: Arith>(a: &A, x: A::F) -> A::F {
    let mut y = a.from_bits(a.isub(a.i(RECIPROCAL), a.bits(x)));
    for _ in 0..2 {
        let error = a.fma(a.fneg(x), y, a.f(1.0));
        y = a.fma(a.fma(error, error, error), y, y);
    }
    y
}
