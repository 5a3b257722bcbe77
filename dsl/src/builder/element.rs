//! The types a device value can have, as Rust types.

use half::bf16;

use crate::ir::{Bits, Scalar, Type};

mod sealed {
    pub trait Sealed {}
}
pub(super) use sealed::Sealed;

/// A type of device values.
pub trait Ty: Sealed + 'static {
    /// Its Kernel IR type.
    const TYPE: Type;
}

/// An element type: `bool`, `u16`, `i32`, `u32`, `i64`, `u64`, `bf16`, `f32`.
pub trait Element: Ty + Copy + Send + Sync {
    /// Its Kernel IR scalar.
    const SCALAR: Scalar;

    /// The value's bits, zero-extended.
    fn bits(self) -> Bits;
}

/// `N` elements a lane, side by side in its registers. A type, never a host value.
#[derive(Clone, Copy, Debug)]
pub enum Vector<T, const N: usize> {
    #[doc(hidden)]
    Never(std::convert::Infallible, std::marker::PhantomData<T>),
}

/// Scalars and vectors: what registers and memory hold.
pub trait Data: Ty {
    /// Element type.
    type Elem: Element;
    /// `bool`, or a vector of it: what comparing such values gives.
    type Mask: Data;
}

/// Data with arithmetic: integers of 32 and 64 bits, `f32`, and vectors of them.
pub trait Numeric: Data {}

/// Integer data.
pub trait Integer: Numeric + Bitwise {}

/// `f32` data.
pub trait Float: Numeric {}

/// Data with bitwise (or, for `bool`, logical) operations.
pub trait Bitwise: Data {}

/// Data with a fixed bit pattern in memory: everything but `bool`.
pub trait Plain: Data {}

/// Data that converts to `U` by [`super::V::to`].
pub trait ConvertTo<U: Data>: Data {}

macro_rules! element {
    ($($t:ty => $scalar:ident, $v:ident => $bits:expr, [$($class:ident),*];)*) => {$(
        impl Sealed for $t {}
        impl Ty for $t {
            const TYPE: Type = Type::Scalar(Scalar::$scalar);
        }
        impl Element for $t {
            const SCALAR: Scalar = Scalar::$scalar;
            fn bits(self) -> Bits {
                let $v = self;
                Bits($bits)
            }
        }
        impl Data for $t {
            type Elem = Self;
            type Mask = bool;
        }
        impl<const N: usize> Sealed for Vector<$t, N> {}
        impl<const N: usize> Ty for Vector<$t, N> {
            const TYPE: Type = Type::Vector(Scalar::$scalar, N as u32);
        }
        impl<const N: usize> Data for Vector<$t, N> {
            type Elem = $t;
            type Mask = Vector<bool, N>;
        }
        $(impl $class for $t {}
        impl<const N: usize> $class for Vector<$t, N> {})*
    )*};
}

element! {
    bool => Bool, v => u64::from(v), [Bitwise];
    u16 => U16, v => u64::from(v), [Plain, Bitwise];
    i32 => I32, v => u64::from(v as u32), [Plain, Bitwise, Numeric, Integer];
    u32 => U32, v => u64::from(v), [Plain, Bitwise, Numeric, Integer];
    i64 => I64, v => v as u64, [Plain, Bitwise, Numeric, Integer];
    u64 => U64, v => v, [Plain, Bitwise, Numeric, Integer];
    bf16 => Bf16, v => u64::from(v.to_bits()), [Plain];
    f32 => F32, v => u64::from(v.to_bits()), [Plain, Numeric, Float];
}

macro_rules! convert {
    ($($from:ty => $($to:ty),*;)*) => {$($(
        impl ConvertTo<$to> for $from {}
        impl<const N: usize> ConvertTo<Vector<$to, N>> for Vector<$from, N> {}
    )*)*};
}

convert! {
    u16 => i32, u32, i64, u64, f32;
    i32 => u16, u32, i64, u64, f32;
    u32 => u16, i32, i64, u64, f32;
    i64 => u16, i32, u32, u64, f32;
    u64 => u16, i32, u32, i64, f32;
    bf16 => f32;
    f32 => bf16;
}
