//! Operations with one operand, and the fused multiply-add.

use half::{bf16, f16};
use lathe_dsl::ir::{Scalar, UnaryOp};
use lathe_dsl::math::{self, Host};
use lathe_dsl::numerics::{self, Float};

use super::super::error::FaultKind;
use super::super::program::Reg;
use super::super::rows::{self, Done, Regs};
use super::{Fn1, Fn3, lanes};

/// Integers of a stated width.
macro_rules! sized {
    ($op:expr, $t:ty, |$x:ident| $abs:expr) => {
        match $op {
            UnaryOp::Neg => lanes!(|x: $t| -> $t { x.wrapping_neg() }),
            UnaryOp::Not => lanes!(|x: $t| -> $t { !x }),
            UnaryOp::Abs => lanes!(|$x: $t| -> $t { $abs }),
            UnaryOp::Ctpop => lanes!(|x: $t| -> $t { x.count_ones() as $t }),
            UnaryOp::Ctlz => lanes!(|x: $t| -> $t { x.leading_zeros() as $t }),
            UnaryOp::Cttz => lanes!(|x: $t| -> $t { x.trailing_zeros() as $t }),
            _ => return None,
        }
    };
}

macro_rules! float {
    ($op:expr, $t:ty, else $rest:expr) => {
        match $op {
            UnaryOp::Neg => lanes!(|x: $t| -> $t { Float::neg(x) }),
            UnaryOp::Abs => lanes!(|x: $t| -> $t { Float::abs(x) }),
            UnaryOp::Floor => lanes!(|x: $t| -> $t { Float::floor(x) }),
            UnaryOp::Ceil => lanes!(|x: $t| -> $t { Float::ceil(x) }),
            UnaryOp::Trunc => lanes!(|x: $t| -> $t { Float::trunc(x) }),
            UnaryOp::Round => lanes!(|x: $t| -> $t { Float::round(x) }),
            UnaryOp::Roundeven => lanes!(|x: $t| -> $t { Float::roundeven(x) }),
            UnaryOp::Sqrt => lanes!(|x: $t| -> $t { Float::sqrt(x) }),
            UnaryOp::Rsqrt => lanes!(|x: $t| -> $t { Float::rsqrt(x) }),
            _ => $rest,
        }
    };
}

/// An expansion in `f32` of elements of a type that is widened before and narrowed after it. Too slow to run on junk.
macro_rules! expanded {
    ($f:path, $t:ty, |$x:ident| $wide:expr, |$y:ident| $narrow:expr) => {
        lanes!(try |$x: $t| -> $t {{
            let $y = $f(&Host, $wide);
            Ok($narrow)
        }})
    };
}

/// Transcendental functions: those of `f32`, rounded once more for the 16-bit types.
macro_rules! math {
    ($op:expr, $t:ty, |$x:ident| $wide:expr, |$y:ident| $narrow:expr, else $rest:expr) => {
        match $op {
            UnaryOp::Exp => expanded!(math::exp, $t, |$x| $wide, |$y| $narrow),
            UnaryOp::Exp2 => expanded!(math::exp2, $t, |$x| $wide, |$y| $narrow),
            UnaryOp::Log => expanded!(math::log, $t, |$x| $wide, |$y| $narrow),
            UnaryOp::Log2 => expanded!(math::log2, $t, |$x| $wide, |$y| $narrow),
            UnaryOp::Sin => expanded!(math::sin, $t, |$x| $wide, |$y| $narrow),
            UnaryOp::Cos => expanded!(math::cos, $t, |$x| $wide, |$y| $narrow),
            UnaryOp::Tanh => expanded!(math::tanh, $t, |$x| $wide, |$y| $narrow),
            UnaryOp::Erf => expanded!(math::erf, $t, |$x| $wide, |$y| $narrow),
            _ => $rest,
        }
    };
}

/// `op` of elements of type `s`; `None` if there is no such thing.
pub(in super::super) fn unary<const W: usize>(op: UnaryOp, s: Scalar) -> Option<Fn1<W>> {
    Some(match s {
        Scalar::Bool => match op {
            UnaryOp::Not => lanes!(|x: bool| -> bool { !x }),
            _ => return None,
        },
        Scalar::I8 => sized!(op, i8, |x| x.wrapping_abs()),
        Scalar::U8 => sized!(op, u8, |x| x),
        Scalar::I16 => sized!(op, i16, |x| x.wrapping_abs()),
        Scalar::U16 => sized!(op, u16, |x| x),
        Scalar::I32 => sized!(op, i32, |x| x.wrapping_abs()),
        Scalar::U32 => sized!(op, u32, |x| x),
        Scalar::I64 => sized!(op, i64, |x| x.wrapping_abs()),
        Scalar::U64 => sized!(op, u64, |x| x),
        Scalar::Idx => match op {
            UnaryOp::Neg => lanes!(try |x: i64| -> i64 { x.checked_neg().ok_or(FaultKind::IndexOverflow) }),
            UnaryOp::Abs => lanes!(try |x: i64| -> i64 { x.checked_abs().ok_or(FaultKind::IndexOverflow) }),
            _ => return None,
        },
        Scalar::F16 => float!(op, f16, else math!(op, f16, |x| x.to_f32(), |y| f16::from_f32(y), else return None)),
        Scalar::Bf16 => float!(op, bf16, else math!(op, bf16, |x| x.to_f32(), |y| bf16::from_f32(y), else return None)),
        Scalar::F64 => float!(op, f64, else return None),
        Scalar::F32 => float!(op, f32, else math!(op, f32, |x| x, |y| y, else return hardware(op))),
    })
}

fn hardware<const W: usize>(op: UnaryOp) -> Option<Fn1<W>> {
    Some(match op {
        UnaryOp::HwExp2 => lanes!(try |x: f32| -> f32 { Ok(numerics::hw_exp2(x)) }),
        UnaryOp::HwLog2 => lanes!(try |x: f32| -> f32 { Ok(numerics::hw_log2(x)) }),
        UnaryOp::HwRsq => lanes!(try |x: f32| -> f32 { Ok(numerics::hw_rsq(x)) }),
        UnaryOp::HwRcp => lanes!(|x: f32| -> f32 { numerics::hw_rcp(x) }),
        UnaryOp::HwSqrt => lanes!(|x: f32| -> f32 { numerics::hw_sqrt(x) }),
        _ => return None,
    })
}

/// `a·b + c`.
pub(in super::super) fn fma<const W: usize>(s: Scalar) -> Option<Fn3<W>> {
    macro_rules! of {
        ($t:ty) => {
            lanes!(|x: $t, y: $t, z: $t| -> $t { Float::fma(x, y, z) })
        };
    }
    Some(match s {
        Scalar::F16 => of!(f16),
        Scalar::Bf16 => of!(bf16),
        Scalar::F32 => of!(f32),
        Scalar::F64 => of!(f64),
        _ => return None,
    })
}

/// Byte `i` of the result is byte `selector.byte[i] mod 8` of the eight bytes of `a` (4–7) and `b` (0–3).
pub(in super::super) fn perm_b32<const W: usize>() -> Fn3<W> {
    fn permuted(a: u32, b: u32, selector: u32) -> u32 {
        let bytes = (u64::from(a) << 32 | u64::from(b)).to_le_bytes();
        u32::from_le_bytes(selector.to_le_bytes().map(|s| bytes[usize::from(s % 8)]))
    }
    lanes!(|x: u32, y: u32, z: u32| -> u32 { permuted(x, y, z) })
}
