//! Handles of device values and their operators.

use std::marker::PhantomData;
use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Shl, Shr, Sub};

use half::bf16;

use super::Builder;
use super::element::{Bitwise, ConvertTo, Data, Element, Float, Integer, Numeric, Plain, Ty, Vector};
use crate::ir::{BinaryOp, Location, Op, Predicate, UnaryOp, Value};

/// A device value of type `T` in the kernel that `'k` brands.
///
/// It has operators but neither `PartialEq` nor `PartialOrd`: comparisons are device operations ([`V::eq`], [`V::lt`], …).
pub struct V<'k, T> {
    pub(super) k: &'k Builder<'k>,
    pub(super) id: Value,
    ty: PhantomData<fn() -> T>,
}

impl<T> Clone for V<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for V<'_, T> {}

impl<T: Ty> std::fmt::Debug for V<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.id, T::TYPE)
    }
}

/// What can stand where a device value of type `T` is wanted: such a value, or a Rust number (a constant).
#[diagnostic::on_unimplemented(
    message = "a device value of `{T}` is wanted here, not `{Self}`",
    label = "not a device value of `{T}`",
    note = "element types do not mix: convert with `.to::<…>()`, reinterpret with `.bitcast::<…>()`"
)]
pub trait Operand<'k, T> {
    /// The device value.
    #[track_caller]
    fn value(self, k: &'k Builder<'k>) -> V<'k, T>;
}

impl<'k, T> Operand<'k, T> for V<'k, T> {
    fn value(self, _: &'k Builder<'k>) -> V<'k, T> {
        self
    }
}

macro_rules! operand {
    ($($t:ty)*) => {$(
        impl<'k> Operand<'k, $t> for $t {
            #[track_caller]
            fn value(self, k: &'k Builder<'k>) -> V<'k, $t> {
                k.constant(self)
            }
        }

        impl<'k, const N: usize> Operand<'k, Vector<$t, N>> for $t {
            #[track_caller]
            fn value(self, k: &'k Builder<'k>) -> V<'k, Vector<$t, N>> {
                V::new(k, k.const_value(<Vector<$t, N> as Ty>::TYPE, self.bits()))
            }
        }
    )*};
}

operand!(bool u16 i32 u32 i64 u64 bf16 f32);

impl<'k, T> V<'k, T> {
    pub(super) fn new(k: &'k Builder<'k>, id: Value) -> Self {
        Self { k, id, ty: PhantomData }
    }
}

impl<'k, T: Data> V<'k, T> {
    #[track_caller]
    fn unary(self, op: UnaryOp) -> Self {
        self.k.emit(Op::Unary(op, self.id))
    }

    #[track_caller]
    fn binary(self, op: BinaryOp, other: impl Operand<'k, T>) -> Self {
        let other = other.value(self.k);
        self.k.emit(Op::Binary(op, self.id, other.id))
    }

    #[track_caller]
    fn compare(self, p: Predicate, other: impl Operand<'k, T>) -> V<'k, T::Mask> {
        let other = other.value(self.k);
        self.k.emit(Op::Compare(p, self.id, other.id))
    }

    /// `self = other`; false with a NaN.
    #[track_caller]
    pub fn eq(self, other: impl Operand<'k, T>) -> V<'k, T::Mask> {
        self.compare(Predicate::Eq, other)
    }

    /// `self ≠ other`; true with a NaN.
    #[track_caller]
    pub fn ne(self, other: impl Operand<'k, T>) -> V<'k, T::Mask> {
        self.compare(Predicate::Ne, other)
    }
}

impl<'k, T: Numeric> V<'k, T> {
    /// `self < other`, by signedness; false with a NaN.
    #[track_caller]
    pub fn lt(self, other: impl Operand<'k, T>) -> V<'k, T::Mask> {
        self.compare(Predicate::Lt, other)
    }

    /// `self ≤ other`, by signedness; false with a NaN.
    #[track_caller]
    pub fn le(self, other: impl Operand<'k, T>) -> V<'k, T::Mask> {
        self.compare(Predicate::Le, other)
    }

    /// `self > other`, by signedness; false with a NaN.
    #[track_caller]
    pub fn gt(self, other: impl Operand<'k, T>) -> V<'k, T::Mask> {
        self.compare(Predicate::Gt, other)
    }

    /// `self ≥ other`, by signedness; false with a NaN.
    #[track_caller]
    pub fn ge(self, other: impl Operand<'k, T>) -> V<'k, T::Mask> {
        self.compare(Predicate::Ge, other)
    }

    /// The larger one (fx `max`). Floats: NaN if either is NaN, −0 < +0.
    #[track_caller]
    pub fn maximum(self, other: impl Operand<'k, T>) -> Self {
        self.binary(BinaryOp::Maximum, other)
    }

    /// The smaller one (fx `min`). Floats: NaN if either is NaN, −0 < +0.
    #[track_caller]
    pub fn minimum(self, other: impl Operand<'k, T>) -> Self {
        self.binary(BinaryOp::Minimum, other)
    }
}

impl<'k, T: Integer> V<'k, T> {
    /// Quotient rounded towards −∞ (fx `//`).
    #[track_caller]
    pub fn div_floor(self, other: impl Operand<'k, T>) -> Self {
        self.binary(BinaryOp::DivFloor, other)
    }

    /// Remainder with the divisor's sign, the one that belongs to [`V::div_floor`].
    #[track_caller]
    pub fn rem_floor(self, other: impl Operand<'k, T>) -> Self {
        self.binary(BinaryOp::RemFloor, other)
    }
}

impl<'k, T: Float> V<'k, T> {
    /// 2^self by the chip's approximation: within 2 ulp; subnormals may be flushed.
    #[track_caller]
    pub fn hw_exp2(self) -> Self {
        self.unary(UnaryOp::HwExp2)
    }

    /// 1/self by the chip's approximation: within 1 ulp; subnormals may be flushed.
    #[track_caller]
    pub fn hw_rcp(self) -> Self {
        self.unary(UnaryOp::HwRcp)
    }
}

impl<'k, T: Plain> V<'k, T> {
    /// The same bits as another type of the same width; a different width does not compile.
    ///
    /// ```compile_fail
    /// use lathe_dsl::prelude::*;
    /// let _ = lathe_dsl::builder::build("wide", Target::GFX950, Launch::linear(1, 64), vec![], |k| {
    ///     let _ = k.constant(1u32).bitcast::<u64>();
    /// });
    /// ```
    #[track_caller]
    pub fn bitcast<U: Plain>(self) -> V<'k, U> {
        const { assert!(T::TYPE.bytes() == U::TYPE.bytes(), "bitcast between types of different width") };
        self.k.emit(Op::Bitcast(self.id))
    }
}

impl<'k, T: Data> V<'k, T> {
    /// Conversion to another element type: integers keep the low bits (sign- or zero-extended by `self`'s signedness),
    /// to a narrower float rounds to nearest even, to a wider float is exact.
    #[track_caller]
    pub fn to<U: Data>(self) -> V<'k, U>
    where
        T: ConvertTo<U>,
    {
        self.k.emit(Op::Convert(self.id))
    }
}

impl<'k> V<'k, bool> {
    /// `on_true` where this holds, else `on_false`; NaN bits are kept.
    #[track_caller]
    pub fn select<T: Data>(self, on_true: impl Operand<'k, T>, on_false: impl Operand<'k, T>) -> V<'k, T> {
        let (on_true, on_false) = (on_true.value(self.k), on_false.value(self.k));
        self.k.emit(Op::Select { condition: self.id, on_true: on_true.id, on_false: on_false.id })
    }
}

impl<'k, T: Element, const N: usize> V<'k, Vector<T, N>>
where
    Vector<T, N>: Data<Elem = T>,
{
    /// The elements, in order.
    #[track_caller]
    pub fn elements(self) -> [V<'k, T>; N] {
        let location = Location::caller();
        std::array::from_fn(|i| self.k.emit_at(Op::Extract(self.id, i as u32), location))
    }

    /// Element `index`, a build-time number; out of range is refused.
    #[track_caller]
    pub fn element(self, index: usize) -> V<'k, T> {
        if index >= N {
            self.k.refuse(format!("element {index} of a vector of {N} elements"));
        }
        self.k.emit(Op::Extract(self.id, index.min(N.saturating_sub(1)) as u32))
    }
}

impl<'k> Builder<'k> {
    /// A vector of these elements, in order (fx `Vector.from_elements`).
    #[track_caller]
    pub fn vector<T: Element, const N: usize>(&'k self, elements: [V<'k, T>; N]) -> V<'k, Vector<T, N>>
    where
        Vector<T, N>: Data<Elem = T>,
    {
        self.emit(Op::VectorFrom(elements.iter().map(|e| e.id).collect()))
    }

    /// A vector of `N` equal elements (fx `Vector.filled`).
    #[track_caller]
    pub fn filled<T: Element, const N: usize>(&'k self, element: V<'k, T>) -> V<'k, Vector<T, N>>
    where
        Vector<T, N>: Data<Elem = T>,
    {
        self.emit(Op::VectorFrom(vec![element.id; N]))
    }

    /// Two `f32` rounded to bf16 (nearest even) in one word: `low` in bits 15:0, `high` in bits 31:16 (fx `bf16_pair`).
    #[track_caller]
    pub fn bf16_pair(&'k self, low: V<'k, f32>, high: V<'k, f32>) -> V<'k, u32> {
        self.vector([low, high]).to::<Vector<bf16, 2>>().bitcast()
    }
}

impl<'k> V<'k, u32> {
    /// The bf16 in bits 15:0, as `f32` (fx `bf_lo`).
    #[track_caller]
    pub fn bf_lo(self) -> V<'k, f32> {
        (self << 16).bitcast()
    }

    /// The bf16 in bits 31:16, as `f32` (fx `bf_hi`).
    #[track_caller]
    pub fn bf_hi(self) -> V<'k, f32> {
        (self & 0xFFFF_0000).bitcast()
    }
}

macro_rules! operator {
    ($($trait:ident $method:ident $op:ident $class:ident;)*) => {$(
        impl<'k, T: $class, R: Operand<'k, T>> $trait<R> for V<'k, T> {
            type Output = Self;
            #[track_caller]
            fn $method(self, other: R) -> Self {
                self.binary(BinaryOp::$op, other)
            }
        }
    )*};
}

operator! {
    Add add Add Numeric;
    Sub sub Sub Numeric;
    Mul mul Mul Numeric;
    Div div Div Float;
    BitAnd bitand And Bitwise;
    BitOr bitor Or Bitwise;
    BitXor bitxor Xor Bitwise;
    Shl shl Shl Integer;
    Shr shr Shr Integer;
}

macro_rules! number_on_the_left {
    ($($t:ty: $($trait:ident $method:ident),*;)*) => {$($(
        impl<'k> $trait<V<'k, $t>> for $t {
            type Output = V<'k, $t>;
            #[track_caller]
            fn $method(self, other: V<'k, $t>) -> V<'k, $t> {
                other.k.constant(self).$method(other)
            }
        }
    )*)*};
}

number_on_the_left! {
    f32: Add add, Sub sub, Mul mul, Div div;
    i32: Add add, Sub sub, Mul mul;
    u32: Add add, Sub sub, Mul mul;
    i64: Add add, Sub sub, Mul mul;
    u64: Add add, Sub sub, Mul mul;
}

impl<T: Numeric> Neg for V<'_, T> {
    type Output = Self;
    #[track_caller]
    fn neg(self) -> Self {
        self.unary(UnaryOp::Neg)
    }
}

impl<T: Bitwise> Not for V<'_, T> {
    type Output = Self;
    #[track_caller]
    fn not(self) -> Self {
        self.unary(UnaryOp::Not)
    }
}
