//! Error function.

use super::arith::Arith;
use super::exp::{exp_limited, horner};
use super::tanh::copy_sign;

/// Below: a polynomial. Above: 1 − e^q(x) with a polynomial q.
const SMALL: f32 = 1.0;

/// erf x / x − 1 in powers of x², |x| ≤ 1. Relative error of the function 2^-29.4.
const ERF: [f32; 7] =
    [0.128_379_17, -0.376_126_26, 0.112_835_79, -0.026_853_347, 0.005_187_162, -0.000_799_785_3, 0.000_078_069_04];

/// From here on erf x rounds to 1.
const LIMIT: f32 = 3.93;

/// Where the polynomial for larger x is centred: a number close to 1 at which log (1 − erf x) is close to a float.
const CENTRE: f32 = 0.999_988_14;

/// log (1 − erf (CENTRE + u)) in powers of u. Relative error of the function 2^-29.5.
const LOG_ERFC: [f32; 7] =
    [-1.849_574_2, -2.638_947, -0.843_115_7, -0.041_502_964, 0.009_890_015, -0.001_822_697_9, 0.000_183_960_07];

/// Error function: 36 operations.
pub fn erf<A: Arith>(a: &A, x: A::F) -> A::F {
    let size = a.fabs(x);
    let square = a.fmul(x, x);
    let small = a.fma(horner(a, square, &ERF), size, size);
    let limit = a.f(LIMIT);
    let limited = a.select(a.flt(limit, size), limit, size);
    let logarithm = horner(a, a.fsub(limited, a.f(CENTRE)), &LOG_ERFC);
    let large = a.fsub(a.f(1.0), exp_limited(a, logarithm));
    let value = a.select(a.flt(size, a.f(SMALL)), small, large);
    copy_sign(a, value, x)
}
