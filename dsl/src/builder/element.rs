//! The types a device value can have, as Rust types.

use half::{bf16, f16};

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

/// An element type: `bool`, `i8` … `u64`, [`Idx`], `f16`, `bf16`, `f32`, `f64`.
pub trait Element: Data<Elem = Self> + Copy + Send + Sync {
    /// Its Kernel IR scalar.
    const SCALAR: Scalar;

    /// The value's bits, zero-extended.
    fn bits(self) -> Bits;
}

/// A number of the index type, on the host. On the device an index is a mathematical integer that never wraps: overflow of a
/// signed 64-bit one is reported on `cpu` and undefined elsewhere. It has no form in memory.
///
/// ```
/// # use lathe_dsl::prelude::*;
/// # lathe_dsl::builder::build("k", Target::GFX950, Launch::linear(2, 64), vec![], |k| {
/// let i = k.block_id(Axis::X).to::<Idx>() * 3_000_000_000u32 + k.thread_id(Axis::X).to::<Idx>();
/// let _ = (i + 1).div_floor(7);
/// # }).unwrap();
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Idx(pub i64);

impl From<i32> for Idx {
    fn from(n: i32) -> Self {
        Self(n.into())
    }
}

impl From<u32> for Idx {
    fn from(n: u32) -> Self {
        Self(n.into())
    }
}

impl From<i64> for Idx {
    fn from(n: i64) -> Self {
        Self(n)
    }
}

/// `N` elements a lane, side by side in its registers. A type, never a host value.
#[derive(Clone, Copy, Debug)]
pub enum Vector<T, const N: usize> {
    #[doc(hidden)]
    Never(std::convert::Infallible, std::marker::PhantomData<T>),
}

/// Scalars and vectors: what registers hold.
#[diagnostic::on_unimplemented(message = "`{Self}` is no scalar and no vector", label = "not data")]
pub trait Data: Ty {
    /// Element type.
    type Elem: Element;
    /// `bool`, or a vector of it: what comparing such values gives.
    type Mask: Data;
}

macro_rules! classes {
    ($($(#[doc = $doc:literal])+ $name:ident: $($base:path),+ = $message:literal;)*) => {$(
        $(#[doc = $doc])+
        #[diagnostic::on_unimplemented(message = $message)]
        pub trait $name: $($base +)+ {}
    )*};
}

classes! {
    /// Data with arithmetic: integers, indices, floats, and vectors of them.
    Numeric: Data = "`{Self}` has no arithmetic: it is neither an integer nor a float";
    /// Integers and indices, and vectors of them.
    Integer: Numeric = "`{Self}` is no integer";
    /// Integers of a stated width (so not indices), and vectors of them: what has shifts and bit counts.
    SizedInt: Integer, Bitwise, Plain = "`{Self}` is no integer of a stated width: it has no shifts and no bit counts";
    /// Floats, and vectors of them.
    Float: Numeric, Plain = "`{Self}` is no float";
    /// Floats that have transcendental functions (not `f64`), and vectors of them.
    MathFloat: Float = "`{Self}` has no transcendental functions: only f16, bf16 and f32 have";
    /// `f32` and vectors of it: what the chip's own approximations work on.
    HwFloat: MathFloat = "the chip's approximations work on f32, not `{Self}`";
    /// Data with bitwise (or, for `bool`, logical) operations: integers of a stated width, `bool`, and vectors of them.
    Bitwise: Data = "`{Self}` has no bitwise operations; reinterpret a float with `.bitcast::<…>()`, convert an index with `.to::<…>()`";
    /// Data with a form in memory: everything but `bool` and indices.
    Plain: Data = "`{Self}` has no form in memory; use u32 for bool, i32 or i64 for an index";
    /// Elements of 32 and 64 bits that atomics work on.
    Atomic: Element, Plain = "no atomics on `{Self}`: they work on i32, u32, i64, u64, f32 and f64";
    /// Elements that bitwise atomics work on.
    AtomicInt: Atomic, SizedInt = "no bitwise atomics on `{Self}`: they work on i32, u32, i64 and u64";
    /// Elements that numbers and `bool` convert to: all but `bool`.
    Number: Element, Numeric = "nothing converts to `{Self}`: numbers and bool convert to numbers; compare with 0 for a bool";
    /// What a loop can count in.
    LoopIndex: Element, Integer = "a loop counts in i32, u32, i64, u64 or Idx, not `{Self}`";
}

/// Data that converts to `U` by [`super::V::to`].
#[diagnostic::on_unimplemented(
    message = "no conversion from `{Self}` to `{U}`",
    note = "a vector converts to one of as many elements"
)]
pub trait ConvertTo<U: Data>: Data {}

impl<T: Element, U: Number> ConvertTo<U> for T {}

impl<T: Element, U: Number, const N: usize> ConvertTo<Vector<U, N>> for Vector<T, N>
where
    Self: Data,
    Vector<U, N>: Data,
{
}

macro_rules! element {
    ($($t:ty => $scalar:ident, $v:ident => $bits:expr, [$($class:ident),*], [$($one:ident),*];)*) => {$(
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
        $(impl $one for $t {})*
    )*};
}

element! {
    bool => Bool, v => u64::from(v), [Bitwise], [];
    i8 => I8, v => u64::from(v as u8), [Plain, Bitwise, Numeric, Integer, SizedInt], [Number];
    u8 => U8, v => u64::from(v), [Plain, Bitwise, Numeric, Integer, SizedInt], [Number];
    i16 => I16, v => u64::from(v as u16), [Plain, Bitwise, Numeric, Integer, SizedInt], [Number];
    u16 => U16, v => u64::from(v), [Plain, Bitwise, Numeric, Integer, SizedInt], [Number];
    i32 => I32, v => u64::from(v as u32), [Plain, Bitwise, Numeric, Integer, SizedInt], [Number];
    u32 => U32, v => u64::from(v), [Plain, Bitwise, Numeric, Integer, SizedInt], [Number];
    i64 => I64, v => v as u64, [Plain, Bitwise, Numeric, Integer, SizedInt], [Number];
    u64 => U64, v => v, [Plain, Bitwise, Numeric, Integer, SizedInt], [Number];
    Idx => Idx, v => v.0 as u64, [Numeric, Integer], [Number];
    f16 => F16, v => u64::from(v.to_bits()), [Plain, Numeric, Float, MathFloat], [Number];
    bf16 => Bf16, v => u64::from(v.to_bits()), [Plain, Numeric, Float, MathFloat], [Number];
    f32 => F32, v => u64::from(v.to_bits()), [Plain, Numeric, Float, MathFloat, HwFloat], [Number];
    f64 => F64, v => v.to_bits(), [Plain, Numeric, Float], [Number];
}

// One by one, so that rustc's list of what there is reads well.
impl Atomic for i32 {}
impl Atomic for u32 {}
impl Atomic for i64 {}
impl Atomic for u64 {}
impl Atomic for f32 {}
impl Atomic for f64 {}

impl AtomicInt for i32 {}
impl AtomicInt for u32 {}
impl AtomicInt for i64 {}
impl AtomicInt for u64 {}

impl LoopIndex for i32 {}
impl LoopIndex for u32 {}
impl LoopIndex for i64 {}
impl LoopIndex for u64 {}
impl LoopIndex for Idx {}
