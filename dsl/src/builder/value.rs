//! Handles of device values and their operators.

use std::marker::PhantomData;
use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Shl, Shr, Sub};

use half::{bf16, f16};

use super::Builder;
use super::element::{Bitwise, ConvertTo, Data, Element, Float, Idx, Numeric, Plain, SizedInt, Ty, Vector};
use crate::ir::{BinaryOp, Op, Predicate, UnaryOp, Value};

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

operand!(bool i8 u8 i16 u16 i32 u32 i64 u64 Idx f16 bf16 f32 f64);

// Rust has no literals of these types, so a number of another one stands for them where it is exact.
macro_rules! stands_for {
    ($($number:ty => $t:ty, $make:expr;)*) => {$(
        impl<'k> Operand<'k, $t> for $number {
            #[track_caller]
            fn value(self, k: &'k Builder<'k>) -> V<'k, $t> {
                k.constant($make(self, k))
            }
        }

        impl<'k, const N: usize> Operand<'k, Vector<$t, N>> for $number {
            #[track_caller]
            fn value(self, k: &'k Builder<'k>) -> V<'k, Vector<$t, N>> {
                let element: $t = $make(self, k);
                element.value(k)
            }
        }
    )*};
}

stands_for! {
    i32 => Idx, |n, _| Idx::from(n);
    u32 => Idx, |n, _| Idx::from(n);
    i64 => Idx, |n, _| Idx::from(n);
    f32 => f16, half_exact;
    f32 => bf16, bfloat_exact;
}

#[track_caller]
fn half_exact(x: f32, k: &Builder<'_>) -> f16 {
    let rounded = f16::from_f32(x);
    exact(x, rounded.to_f32(), "f16", k);
    rounded
}

#[track_caller]
fn bfloat_exact(x: f32, k: &Builder<'_>) -> bf16 {
    let rounded = bf16::from_f32(x);
    exact(x, rounded.to_f32(), "bf16", k);
    rounded
}

#[track_caller]
fn exact(x: f32, rounded: f32, name: &str, k: &Builder<'_>) {
    if x != rounded && !x.is_nan() {
        k.refuse(format!(
            "{x:?} is not exact in {name} (nearest is {rounded:?}); write `{name}::from_f32({x:?})` to round it"
        ));
    }
}

impl<'k, T> V<'k, T> {
    pub(super) fn new(k: &'k Builder<'k>, id: Value) -> Self {
        Self { k, id, ty: PhantomData }
    }
}

impl<'k, T: Data> V<'k, T> {
    #[track_caller]
    pub(super) fn unary(self, op: UnaryOp) -> Self {
        self.k.emit(Op::Unary(op, self.id))
    }

    #[track_caller]
    pub(super) fn binary(self, op: BinaryOp, other: impl Operand<'k, T>) -> Self {
        let other = other.value(self.k);
        self.k.emit(Op::Binary(op, self.id, other.id))
    }

    #[track_caller]
    pub(super) fn compare(self, p: Predicate, other: impl Operand<'k, T>) -> V<'k, T::Mask> {
        let other = other.value(self.k);
        self.k.emit(Op::Compare(p, self.id, other.id))
    }

    /// Conversion to another element type, element by element. Integers keep the low bits (sign- or zero-extended by `self`'s
    /// signedness); what becomes an index, or comes from one, must fit. `bool` gives 0 or 1. To a float rounds to nearest
    /// even, once. A float to an integer is rounded towards 0 and saturates; NaN gives 0. To its own type it is itself.
    ///
    /// ```
    /// # use lathe_dsl::prelude::*;
    /// # lathe_dsl::builder::build("k", Target::GFX950, Launch::linear(1, 64), vec![], |k| {
    /// let lane = k.lane_id();
    /// let x: V<f32> = lane.to();
    /// let live = lane.lt(7).to::<u8>();
    /// # let _ = (x, live);
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn to<U: Data>(self) -> V<'k, U>
    where
        T: ConvertTo<U>,
    {
        if T::TYPE == U::TYPE { V::new(self.k, self.id) } else { self.k.emit(Op::Convert(self.id)) }
    }
}

impl<'k, T: Plain> V<'k, T> {
    /// The same bits as another type of the same width, element 0 the least significant; a different width does not compile.
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

    /// Itself, of which the compiler knows nothing more (fx `fresh`): stops hoisting and folding across it.
    #[track_caller]
    pub fn opaque(self) -> Self {
        self.k.emit(Op::Opaque(self.id))
    }
}

impl<'k> V<'k, bool> {
    /// `on_true` where this holds, else `on_false`; NaN bits are kept. One `bool` chooses whole values, vectors too.
    #[track_caller]
    pub fn select<T: Data>(self, on_true: impl Operand<'k, T>, on_false: impl Operand<'k, T>) -> V<'k, T> {
        choose(self, on_true, on_false)
    }

    /// Itself, told to be `likely` most of the time (`llvm.expect`).
    #[track_caller]
    pub fn expect(self, likely: bool) -> Self {
        self.k.emit(Op::Expect { condition: self.id, likely })
    }
}

impl<'k, const N: usize> V<'k, Vector<bool, N>> {
    /// For each element: of `on_true` where this holds, else of `on_false`.
    #[track_caller]
    pub fn select<T: Data<Mask = Vector<bool, N>>>(
        self,
        on_true: impl Operand<'k, T>,
        on_false: impl Operand<'k, T>,
    ) -> V<'k, T> {
        choose(self, on_true, on_false)
    }
}

#[track_caller]
fn choose<'k, C, T: Data>(
    condition: V<'k, C>,
    on_true: impl Operand<'k, T>,
    on_false: impl Operand<'k, T>,
) -> V<'k, T> {
    let k = condition.k;
    let (on_true, on_false) = (on_true.value(k), on_false.value(k));
    k.emit(Op::Select { condition: condition.id, on_true: on_true.id, on_false: on_false.id })
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
    Shl shl Shl SizedInt;
    Shr shr Shr SizedInt;
}

macro_rules! number_on_the_left {
    ($($t:ty as $of:ty: $($trait:ident $method:ident),*;)*) => {$($(
        impl<'k> $trait<V<'k, $of>> for $t {
            type Output = V<'k, $of>;
            #[track_caller]
            fn $method(self, other: V<'k, $of>) -> V<'k, $of> {
                Operand::<$of>::value(self, other.k).$method(other)
            }
        }

        impl<'k, const N: usize> $trait<V<'k, Vector<$of, N>>> for $t {
            type Output = V<'k, Vector<$of, N>>;
            #[track_caller]
            fn $method(self, other: V<'k, Vector<$of, N>>) -> V<'k, Vector<$of, N>> {
                Operand::<Vector<$of, N>>::value(self, other.k).$method(other)
            }
        }
    )*)*};
}

macro_rules! integer_on_the_left {
    ($($t:ident)*) => {
        number_on_the_left! {
            $($t as $t: Add add, Sub sub, Mul mul, BitAnd bitand, BitOr bitor, BitXor bitxor, Shl shl, Shr shr;)*
        }
    };
}

integer_on_the_left!(i8 u8 i16 u16 i32 u32 i64 u64);

number_on_the_left! {
    i64 as Idx: Add add, Sub sub, Mul mul;
    Idx as Idx: Add add, Sub sub, Mul mul;
    f32 as f16: Add add, Sub sub, Mul mul, Div div;
    f16 as f16: Add add, Sub sub, Mul mul, Div div;
    f32 as bf16: Add add, Sub sub, Mul mul, Div div;
    bf16 as bf16: Add add, Sub sub, Mul mul, Div div;
    f32 as f32: Add add, Sub sub, Mul mul, Div div;
    f64 as f64: Add add, Sub sub, Mul mul, Div div;
    bool as bool: BitAnd bitand, BitOr bitor, BitXor bitxor;
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
