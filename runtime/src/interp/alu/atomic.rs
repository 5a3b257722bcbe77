//! What an atomic read-modify-write makes of the old element and the operand.

use lathe_dsl::ir::{AtomicOp, Scalar};
use lathe_dsl::numerics;

/// `(old, operand) → new`, on bits.
pub(in super::super) type Rmw = fn(u64, u64) -> u64;

macro_rules! int {
    ($op:expr, $t:ty, $cell:ty) => {{
        macro_rules! f {
            (|$x:ident, $y:ident| $e:expr) => {
                |x, y| {
                    let ($x, $y) = (x as $t, y as $t);
                    u64::from($e as $cell)
                }
            };
        }
        match $op {
            AtomicOp::Add => f!(|x, y| x.wrapping_add(y)),
            AtomicOp::Sub => f!(|x, y| x.wrapping_sub(y)),
            AtomicOp::Min => f!(|x, y| x.min(y)),
            AtomicOp::Max => f!(|x, y| x.max(y)),
            AtomicOp::And => f!(|x, y| x & y),
            AtomicOp::Or => f!(|x, y| x | y),
            AtomicOp::Xor => f!(|x, y| x ^ y),
            AtomicOp::Xchg => |_, y| y,
        }
    }};
}

macro_rules! float {
    ($op:expr, $t:ty, $cell:ty) => {{
        macro_rules! f {
            (|$x:ident, $y:ident| $e:expr) => {
                |x, y| {
                    let ($x, $y) = (<$t>::from_bits(x as $cell), <$t>::from_bits(y as $cell));
                    <$t>::to_bits($e).into()
                }
            };
        }
        match $op {
            AtomicOp::Add => f!(|x, y| x + y),
            AtomicOp::Sub => f!(|x, y| x - y),
            AtomicOp::Min => f!(|x, y| numerics::minnum(x, y)),
            AtomicOp::Max => f!(|x, y| numerics::maxnum(x, y)),
            AtomicOp::Xchg => |_, y| y,
            AtomicOp::And | AtomicOp::Or | AtomicOp::Xor => return None,
        }
    }};
}

/// The step of `op` on elements of type `s`; `None` if there is no such thing.
pub(in super::super) fn rmw(op: AtomicOp, s: Scalar) -> Option<Rmw> {
    Some(match s {
        Scalar::I32 => int!(op, i32, u32),
        Scalar::U32 => int!(op, u32, u32),
        Scalar::I64 => int!(op, i64, u64),
        Scalar::U64 => int!(op, u64, u64),
        Scalar::F32 => float!(op, f32, u32),
        Scalar::F64 => float!(op, f64, u64),
        _ => return None,
    })
}
