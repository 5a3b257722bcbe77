//! Operations with two operands of one type, and comparisons.

use half::{bf16, f16};
use lathe_dsl::ir::{BinaryOp, Predicate, Scalar};
use lathe_dsl::math::{self, Host};
use lathe_dsl::numerics::{self, Float, Int};

use super::super::error::FaultKind;
use super::super::program::Reg;
use super::super::rows::{self, Done, Regs};
use super::{Fn2, lanes};

/// A division; its divisor may be 0.
macro_rules! divide {
    ($t:ty, |$x:ident, $y:ident| $e:expr) => {
        lanes!(try |$x: $t, $y: $t| -> $t { if $y == 0 { Err(FaultKind::DivisionByZero) } else { $e } })
    };
}

/// Integers of a stated width. `$u` is the unsigned type of the same width.
macro_rules! sized {
    ($op:expr, $t:ty, $u:ty) => {
        match $op {
            BinaryOp::Add => lanes!(|x: $t, y: $t| -> $t { x.wrapping_add(y) }),
            BinaryOp::Sub => lanes!(|x: $t, y: $t| -> $t { x.wrapping_sub(y) }),
            BinaryOp::Mul => lanes!(|x: $t, y: $t| -> $t { x.wrapping_mul(y) }),
            BinaryOp::DivFloor => divide!($t, |x, y| Ok(x.floor_div(y))),
            BinaryOp::RemFloor => divide!($t, |x, y| Ok(x.floor_rem(y))),
            BinaryOp::DivTrunc => divide!($t, |x, y| Ok(x.trunc_div(y))),
            BinaryOp::RemTrunc => divide!($t, |x, y| Ok(x.trunc_rem(y))),
            BinaryOp::CeilDiv => divide!($t, |x, y| Ok(x.ceil_div(y))),
            BinaryOp::And => lanes!(|x: $t, y: $t| -> $t { x & y }),
            BinaryOp::Or => lanes!(|x: $t, y: $t| -> $t { x | y }),
            BinaryOp::Xor => lanes!(|x: $t, y: $t| -> $t { x ^ y }),
            // Wrapping shifts take the low bits of a 32-bit amount; those of a negative one are its remainder too.
            BinaryOp::Shl => lanes!(|x: $t, y: $t| -> $t { x.wrapping_shl(y as u32) }),
            BinaryOp::Shr => lanes!(|x: $t, y: $t| -> $t { x.wrapping_shr(y as u32) }),
            BinaryOp::Shrui => lanes!(|x: $t, y: $t| -> $t { (x as $u).wrapping_shr(y as u32) as $t }),
            BinaryOp::Maximum => lanes!(|x: $t, y: $t| -> $t { x.max(y) }),
            BinaryOp::Minimum => lanes!(|x: $t, y: $t| -> $t { x.min(y) }),
            _ => return None,
        }
    };
}

macro_rules! float {
    ($op:expr, $t:ty, else $rest:expr) => {
        match $op {
            BinaryOp::Add => lanes!(|x: $t, y: $t| -> $t { Float::add(x, y) }),
            BinaryOp::Sub => lanes!(|x: $t, y: $t| -> $t { Float::sub(x, y) }),
            BinaryOp::Mul => lanes!(|x: $t, y: $t| -> $t { Float::mul(x, y) }),
            BinaryOp::Div => lanes!(|x: $t, y: $t| -> $t { Float::div(x, y) }),
            BinaryOp::DivFloor => lanes!(|x: $t, y: $t| -> $t { Float::floor(Float::div(x, y)) }),
            BinaryOp::Maximum => lanes!(|x: $t, y: $t| -> $t { numerics::maximum(x, y) }),
            BinaryOp::Minimum => lanes!(|x: $t, y: $t| -> $t { numerics::minimum(x, y) }),
            BinaryOp::Maxnum => lanes!(|x: $t, y: $t| -> $t { numerics::maxnum(x, y) }),
            BinaryOp::Minnum => lanes!(|x: $t, y: $t| -> $t { numerics::minnum(x, y) }),
            BinaryOp::Copysign => lanes!(|x: $t, y: $t| -> $t { Float::copysign(x, y) }),
            _ => $rest,
        }
    };
}

fn pow(x: f32, y: f32) -> f32 {
    math::pow(&Host, x, y)
}

/// Whether the quotient of two indices overflows.
fn overflows(x: i64, y: i64) -> bool {
    x == i64::MIN && y == -1
}

macro_rules! index_quotient {
    ($f:ident) => {
        divide!(i64, |x, y| if overflows(x, y) { Err(FaultKind::IndexOverflow) } else { Ok(x.$f(y)) })
    };
}

/// `op` of elements of type `s`; `None` if there is no such thing.
pub(in super::super) fn binary<const W: usize>(op: BinaryOp, s: Scalar) -> Option<Fn2<W>> {
    Some(match s {
        Scalar::Bool => match op {
            BinaryOp::And => lanes!(|x: bool, y: bool| -> bool { x & y }),
            BinaryOp::Or => lanes!(|x: bool, y: bool| -> bool { x | y }),
            BinaryOp::Xor => lanes!(|x: bool, y: bool| -> bool { x ^ y }),
            _ => return None,
        },
        Scalar::I8 => sized!(op, i8, u8),
        Scalar::U8 => sized!(op, u8, u8),
        Scalar::I16 => sized!(op, i16, u16),
        Scalar::U16 => sized!(op, u16, u16),
        Scalar::I32 => sized!(op, i32, u32),
        Scalar::U32 => sized!(op, u32, u32),
        Scalar::I64 => sized!(op, i64, u64),
        Scalar::U64 => sized!(op, u64, u64),
        Scalar::Idx => match op {
            BinaryOp::Add => lanes!(idx | x, y | x.overflowing_add(y)),
            BinaryOp::Sub => lanes!(idx | x, y | x.overflowing_sub(y)),
            BinaryOp::Mul => lanes!(idx | x, y | x.overflowing_mul(y)),
            BinaryOp::DivFloor => index_quotient!(floor_div),
            BinaryOp::DivTrunc => index_quotient!(trunc_div),
            BinaryOp::CeilDiv => index_quotient!(ceil_div),
            BinaryOp::RemFloor => divide!(i64, |x, y| Ok(x.floor_rem(y))),
            BinaryOp::RemTrunc => divide!(i64, |x, y| Ok(x.trunc_rem(y))),
            BinaryOp::Maximum => lanes!(|x: i64, y: i64| -> i64 { x.max(y) }),
            BinaryOp::Minimum => lanes!(|x: i64, y: i64| -> i64 { x.min(y) }),
            _ => return None,
        },
        Scalar::F16 => float!(op, f16, else match op {
            BinaryOp::Pow => lanes!(try |x: f16, y: f16| -> f16 { Ok(f16::from_f32(pow(x.to_f32(), y.to_f32()))) }),
            _ => return None,
        }),
        Scalar::Bf16 => float!(op, bf16, else match op {
            BinaryOp::Pow => lanes!(try |x: bf16, y: bf16| -> bf16 { Ok(bf16::from_f32(pow(x.to_f32(), y.to_f32()))) }),
            _ => return None,
        }),
        Scalar::F32 => float!(op, f32, else match op {
            BinaryOp::Pow => lanes!(try |x: f32, y: f32| -> f32 { Ok(pow(x, y)) }),
            _ => return None,
        }),
        Scalar::F64 => float!(op, f64, else return None),
    })
}

/// A comparison of elements of type `s`, giving `bool`.
pub(in super::super) fn compare<const W: usize>(p: Predicate, s: Scalar) -> Fn2<W> {
    macro_rules! of {
        ($t:ty) => {
            match p {
                Predicate::Eq => lanes!(|x: $t, y: $t| -> bool { x == y }),
                Predicate::Ne => lanes!(|x: $t, y: $t| -> bool { x != y }),
                Predicate::Lt => lanes!(|x: $t, y: $t| -> bool { x < y }),
                Predicate::Le => lanes!(|x: $t, y: $t| -> bool { x <= y }),
                Predicate::Gt => lanes!(|x: $t, y: $t| -> bool { x > y }),
                Predicate::Ge => lanes!(|x: $t, y: $t| -> bool { x >= y }),
            }
        };
    }
    match s {
        // In a cell they are zero-extended, so those of at most 32 bits compare alike.
        Scalar::Bool | Scalar::U8 | Scalar::U16 | Scalar::U32 => of!(u32),
        Scalar::I8 => of!(i8),
        Scalar::I16 => of!(i16),
        Scalar::I32 => of!(i32),
        Scalar::I64 | Scalar::Idx => of!(i64),
        Scalar::U64 => of!(u64),
        Scalar::F16 => of!(f16),
        Scalar::Bf16 => of!(bf16),
        Scalar::F32 => of!(f32),
        Scalar::F64 => of!(f64),
    }
}
