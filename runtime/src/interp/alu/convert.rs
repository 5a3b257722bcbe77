//! Conversions between scalar types.

use half::{bf16, f16};
use lathe_dsl::ir::Scalar;
use lathe_dsl::numerics::{Float, bf16_stochastic, f16_stochastic};

use super::super::error::FaultKind;
use super::super::program::Reg;
use super::super::rows::{self, Done, Regs};
use super::{Fn1, Fn2, lanes};

/// Whether a conversion leaves the cell as it is.
pub(in super::super) fn same_bits(from: Scalar, to: Scalar) -> bool {
    use Scalar::{Bool, I16, I32, I64, Idx, U8, U16, U32, U64};
    from == to
        || match (from, to) {
            // Zero-extended already.
            (Bool, t) => t.is_int() && t.bits() <= 32,
            (U8, I16 | U16 | I32 | U32) | (U16, I32 | U32) => true,
            (I64, Idx | U64) | (U64 | Idx, I64) => true,
            (f, t) => f.is_int() && t.is_int() && f.bits() == t.bits() && f != Idx && t != Idx,
        }
}

/// To an index, or out of one: the number must fit.
macro_rules! fitting {
    ($from:ty, $to:ty) => {
        lanes!(try |x: $from| -> $to { <$to>::try_from(x).map_err(|_| FaultKind::IndexOverflow) })
    };
}

/// From a float to an index: the truncated number must fit.
fn index_of(x: f64) -> Result<i64, FaultKind> {
    // Both bounds are exact in f64; NaN is in no range.
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&x) {
        Ok(x as i64)
    } else {
        Err(FaultKind::IndexOverflow)
    }
}

/// From integers of a stated width and `bool`.
macro_rules! from_int {
    ($from:ty, $to:expr) => {
        match $to {
            Scalar::Bool => return None,
            Scalar::I8 => lanes!(|x: $from| -> i8 { x as i8 }),
            Scalar::U8 => lanes!(|x: $from| -> u8 { x as u8 }),
            Scalar::I16 => lanes!(|x: $from| -> i16 { x as i16 }),
            Scalar::U16 => lanes!(|x: $from| -> u16 { x as u16 }),
            Scalar::I32 => lanes!(|x: $from| -> i32 { x as i32 }),
            Scalar::U32 => lanes!(|x: $from| -> u32 { x as u32 }),
            Scalar::I64 => lanes!(|x: $from| -> i64 { x as i64 }),
            Scalar::U64 => lanes!(|x: $from| -> u64 { x as u64 }),
            Scalar::Idx => fitting!($from, i64),
            to => return from_number!($from, to),
        }
    };
}

/// From any integer to a float.
macro_rules! from_number {
    ($from:ty, $to:expr) => {
        Some(match $to {
            Scalar::F16 => lanes!(|x: $from| -> f16 { Float::from_int(x.into()) }),
            Scalar::Bf16 => lanes!(|x: $from| -> bf16 { Float::from_int(x.into()) }),
            Scalar::F32 => lanes!(|x: $from| -> f32 { x as f32 }),
            Scalar::F64 => lanes!(|x: $from| -> f64 { x as f64 }),
            _ => return None,
        })
    };
}

/// From a float; `$wide` is the native float that holds it exactly.
macro_rules! from_float {
    ($from:ty, $to:expr, |$x:ident| $wide:expr) => {
        match $to {
            Scalar::Bool => return None,
            // Rust's casts round towards 0, saturate, and make 0 of NaN.
            Scalar::I8 => lanes!(|$x: $from| -> i8 { $wide as i8 }),
            Scalar::U8 => lanes!(|$x: $from| -> u8 { $wide as u8 }),
            Scalar::I16 => lanes!(|$x: $from| -> i16 { $wide as i16 }),
            Scalar::U16 => lanes!(|$x: $from| -> u16 { $wide as u16 }),
            Scalar::I32 => lanes!(|$x: $from| -> i32 { $wide as i32 }),
            Scalar::U32 => lanes!(|$x: $from| -> u32 { $wide as u32 }),
            Scalar::I64 => lanes!(|$x: $from| -> i64 { $wide as i64 }),
            Scalar::U64 => lanes!(|$x: $from| -> u64 { $wide as u64 }),
            Scalar::Idx => lanes!(try |$x: $from| -> i64 { index_of($wide.into()) }),
            Scalar::F32 => lanes!(|$x: $from| -> f32 { $wide as f32 }),
            Scalar::F64 => lanes!(|$x: $from| -> f64 { $wide.into() }),
            Scalar::F16 => lanes!(|$x: $from| -> f16 { Float::from_f64($wide.into()) }),
            Scalar::Bf16 => lanes!(|$x: $from| -> bf16 { Float::from_f64($wide.into()) }),
        }
    };
}

/// The conversion, if there is one; [`same_bits`] tells those that need none.
pub(in super::super) fn convert<const W: usize>(from: Scalar, to: Scalar) -> Option<Fn1<W>> {
    Some(match from {
        Scalar::Bool | Scalar::U32 => from_int!(u32, to),
        Scalar::I8 => from_int!(i8, to),
        Scalar::U8 => from_int!(u8, to),
        Scalar::I16 => from_int!(i16, to),
        Scalar::U16 => from_int!(u16, to),
        Scalar::I32 => from_int!(i32, to),
        Scalar::I64 => from_int!(i64, to),
        Scalar::U64 => from_int!(u64, to),
        Scalar::Idx => match to {
            Scalar::I8 => fitting!(i64, i8),
            Scalar::U8 => fitting!(i64, u8),
            Scalar::I16 => fitting!(i64, i16),
            Scalar::U16 => fitting!(i64, u16),
            Scalar::I32 => fitting!(i64, i32),
            Scalar::U32 => fitting!(i64, u32),
            Scalar::U64 => fitting!(i64, u64),
            to => return from_number!(i64, to),
        },
        Scalar::F16 => from_float!(f16, to, |x| x.to_f32()),
        Scalar::F32 => match to {
            // One rounding less.
            Scalar::Bf16 => lanes!(|x: f32| -> bf16 { Float::from_f32(x) }),
            Scalar::F16 => lanes!(|x: f32| -> f16 { Float::from_f32(x) }),
            to => from_float!(f32, to, |x| x),
        },
        Scalar::Bf16 => from_float!(bf16, to, |x| x.to_f32()),
        Scalar::F64 => from_float!(f64, to, |x| x),
    })
}

/// Stochastic rounding of `f32`, if there is one to this type.
pub(in super::super) fn convert_stochastic<const W: usize>(to: Scalar) -> Option<Fn2<W>> {
    match to {
        Scalar::Bf16 => Some(lanes!(|x: f32, random: u32| -> bf16 { bf16_stochastic(x, random) })),
        Scalar::F16 => Some(lanes!(|x: f32, random: u32| -> f16 { f16_stochastic(x, random) })),
        _ => None,
    }
}
