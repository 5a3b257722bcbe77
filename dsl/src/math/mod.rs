//! Transcendental functions of f32, each one expansion for all targets.
//!
//! An expansion is written once over [`Arith`]: the interpreter evaluates it on host numbers ([`Host`]), a code generator
//! emits it, and because every step rounds alike everywhere, so do the results. No step depends on a table, a division or
//! the flushing of subnormals.
//!
//! Largest error in units of the last place, over all inputs (`pow`: 4·10^8 pairs), as `cargo xtask exhaustive` measures it
//! (even and odd functions at operands that are not negative; that the others mirror them bit for bit is sampled), and cost
//! in operations without bit casts, sign changes and magnitudes; a clamp is 4 of them and a scaling 8 where the target has
//! nothing shorter:
//!
//! | function | ulp | operations |
//! |---|---|---|
//! | [`exp`] | 0.892 | 11, a clamp, a scaling |
//! | [`exp2`] | 0.879 | 10, a clamp, a scaling |
//! | [`log`] | 0.934 | 27 |
//! | [`log2`] | 0.980 | 29 |
//! | [`sin`] | 0.884 | 31; 113 from 2^17 on |
//! | [`cos`] | 0.898 | 30; 112 from 2^17 on |
//! | [`tanh`] | 0.960 | 40 |
//! | [`erf`] | 0.986 | 36 |
//! | [`pow`] | 0.930 | 101, two clamps, a scaling |
//!
//! Where a kernel gives licence, `tanh`, `erf` and `pow` are [`approximate_unary`] and [`approximate_binary`]: a few steps
//! around the chip's own instructions.

mod arith;
mod erf;
mod exp;
mod fast;
mod host;
mod log;
mod pow;
mod reciprocal;
mod tanh;
#[cfg(test)]
mod tests;
mod trig;

pub use arith::{Arith, Values};
pub use erf::erf;
pub use exp::{exp, exp2};
pub use fast::Hardware;
pub use host::Host;
pub use log::{log, log2};
pub use pow::pow;
pub use tanh::tanh;
pub use trig::{cos, sin};

use crate::ir::{BinaryOp, UnaryOp};

/// The expansion of an operation; `None` if it has none.
pub fn unary<A: Arith>(op: UnaryOp, a: &A, x: A::F) -> Option<A::F> {
    Some(match op {
        UnaryOp::Exp => exp(a, x),
        UnaryOp::Exp2 => exp2(a, x),
        UnaryOp::Log => log(a, x),
        UnaryOp::Log2 => log2(a, x),
        UnaryOp::Sin => sin(a, x),
        UnaryOp::Cos => cos(a, x),
        UnaryOp::Tanh => tanh(a, x),
        UnaryOp::Erf => erf(a, x),
        _ => return None,
    })
}

/// The expansion of an operation; `None` if it has none.
pub fn binary<A: Arith>(op: BinaryOp, a: &A, x: A::F, y: A::F) -> Option<A::F> {
    match op {
        BinaryOp::Pow => Some(pow(a, x, y)),
        _ => None,
    }
}

/// A short approximation of an operation that is no instruction of any chip; `None` if it has none.
pub fn approximate_unary<A: Hardware>(op: UnaryOp, a: &A, x: A::F) -> Option<A::F> {
    match op {
        UnaryOp::Tanh => Some(fast::tanh(a, x)),
        UnaryOp::Erf => Some(fast::erf(a, x)),
        _ => None,
    }
}

/// A short approximation of an operation that is no instruction of any chip; `None` if it has none.
pub fn approximate_binary<A: Hardware>(op: BinaryOp, a: &A, x: A::F, y: A::F) -> Option<A::F> {
    match op {
        BinaryOp::Pow => Some(fast::pow(a, x, y)),
        _ => None,
    }
}
