//! Transcendental functions of f32, each one expansion for all targets.
//!
//! An expansion is written once over [`Arith`]: the interpreter evaluates it on host numbers ([`Host`]), a code generator
//! emits it, and because every step rounds alike everywhere, so do the results.

mod arith;
mod erf;
mod exp;
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
