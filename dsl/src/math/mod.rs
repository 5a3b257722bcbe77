//! Transcendental functions of f32, each one expansion for all targets.
//!
//! An expansion is written once over [`Arith`]: the interpreter evaluates it on host numbers ([`Host`]), a code generator
//! emits it, and because every step rounds alike everywhere, so do the results.

mod arith;
mod exp;
mod host;

pub use arith::{Arith, Values};
pub use exp::{exp, exp2};
pub use host::Host;

use crate::ir::{BinaryOp, UnaryOp};

/// The expansion of an operation; `None` if it has none.
pub fn unary<A: Arith>(op: UnaryOp, a: &A, x: A::F) -> Option<A::F> {
    Some(match op {
        UnaryOp::Exp => exp(a, x),
        UnaryOp::Exp2 => exp2(a, x),
        _ => return None,
    })
}

/// The expansion of an operation; `None` if it has none.
pub fn binary<A: Arith>(op: BinaryOp, a: &A, x: A::F, y: A::F) -> Option<A::F> {
    let _ = (op, a, x, y);
    None
}
