//! Approximations of the functions that no chip has as an instruction, by those that it has: for kernels that give licence.

use super::arith::Arith;
use super::exp::horner;
use super::host::Host;
use super::pow::{limited, with_sign};
use super::tanh::copy_sign;
use crate::numerics;

/// Arithmetic with the chip's own approximations, of the bounds that the `hw_…` operations have.
pub trait Hardware: Arith {
    /// 2^x.
    fn hw_exp2(&self, x: Self::F) -> Self::F;
    /// Binary logarithm.
    fn hw_log2(&self, x: Self::F) -> Self::F;
    /// 1/x.
    fn hw_rcp(&self, x: Self::F) -> Self::F;
}

impl Hardware for Host {
    fn hw_exp2(&self, x: f32) -> f32 {
        numerics::hw_exp2(x)
    }
    fn hw_log2(&self, x: f32) -> f32 {
        numerics::hw_log2(x)
    }
    fn hw_rcp(&self, x: f32) -> f32 {
        numerics::hw_rcp(x)
    }
}

/// (tanh x / x − 1) / x² in powers of x², |x| ≤ 0.3. Relative error of the tangent 2^-19.4.
const TANH: [f32; 2] = [-0.333_154_45, 0.126_831_5];

/// Hyperbolic tangent: 11 operations, relative error below 2^-18.
pub fn tanh<A: Hardware>(a: &A, x: A::F) -> A::F {
    let (size, square) = (a.fabs(x), a.fmul(x, x));
    let small = a.fma(a.fmul(horner(a, square, &TANH), square), size, size);
    // 1 − 2 / (e^2x + 1)
    let power = a.hw_exp2(a.fmul(size, a.f(2.0 * std::f32::consts::LOG2_E)));
    let large = a.fma(a.f(-2.0), a.hw_rcp(a.fadd(power, a.f(1.0))), a.f(1.0));
    copy_sign(a, a.select(a.flt(size, a.f(0.3)), small, large), x)
}

/// erf x / x in powers of x², |x| ≤ 0.75. Relative error 2^-18.3.
const ERF: [f32; 4] = [1.128_375_6, -0.375_927_6, 0.111_061_23, -0.021_644_725];

/// log2 (1 − erf x) / x in powers of x, x ≥ 0.75. Relative error of the error function 2^-22.4. The last power's sign lets the
/// exponent fall for ever.
const LOG2_ERFC: [f32; 5] = [-1.627_073_3, -0.921_502_2, -0.144_745_25, 0.027_422_879, -0.002_517_845_5];

/// Error function: 14 operations, relative error below 2^-18.
pub fn erf<A: Hardware>(a: &A, x: A::F) -> A::F {
    let size = a.fabs(x);
    let small = a.fmul(horner(a, a.fmul(x, x), &ERF), size);
    let large = a.fsub(a.f(1.0), a.hw_exp2(a.fmul(horner(a, size, &LOG2_ERFC), size)));
    copy_sign(a, a.select(a.flt(size, a.f(0.75)), small, large), x)
}

/// x^y as 2^(y · log2 |x|), with the sign and the special cases of C's `pow`. The error of the logarithm counts y-fold.
pub fn pow<A: Hardware>(a: &A, x: A::F, y: A::F) -> A::F {
    let logarithm = a.hw_log2(a.fabs(x));
    let value = a.hw_exp2(a.fmul(limited(a, y), logarithm));
    with_sign(a, x, y, value)
}
