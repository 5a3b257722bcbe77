//! The four float types under one trait.

use half::{bf16, f16};

use super::round::{add_odd, f32_odd};

/// A float type of the language. Every method is the meaning of the operation of that name on it; results that
/// arithmetic makes are rounded to nearest even.
///
/// The 16-bit types compute in `f32` and round the result, which is correctly rounded for `add`, `sub`, `mul`, `div` and
/// `sqrt`, because 24 significant bits are at least two more than twice theirs.
pub trait Float: Copy + PartialOrd {
    /// The NaN that operations make.
    const NAN: Self;
    /// Whether it is a NaN.
    fn is_nan(self) -> bool;
    /// Whether its sign bit is set.
    fn is_negative(self) -> bool;
    /// The sign bit flipped.
    fn neg(self) -> Self;
    /// The sign bit cleared.
    fn abs(self) -> Self;
    /// This magnitude with the sign of `sign`.
    fn copysign(self, sign: Self) -> Self;
    /// Sum.
    fn add(self, b: Self) -> Self;
    /// Difference.
    fn sub(self, b: Self) -> Self;
    /// Product.
    fn mul(self, b: Self) -> Self;
    /// Quotient.
    fn div(self, b: Self) -> Self;
    /// `self · b + c`, rounded once (bf16: rounded to `f32`, then to bf16).
    fn fma(self, b: Self, c: Self) -> Self;
    /// Square root.
    fn sqrt(self) -> Self;
    /// `1 / sqrt(self)`: root and quotient rounded one after the other, in `f32` for the 16-bit types, which round the
    /// quotient once more.
    fn rsqrt(self) -> Self;
    /// Largest integer not above it.
    fn floor(self) -> Self;
    /// Smallest integer not below it.
    fn ceil(self) -> Self;
    /// Rounded towards 0.
    fn trunc(self) -> Self;
    /// Rounded to the nearest integer, halves away from 0.
    fn round(self) -> Self;
    /// Rounded to the nearest integer, halves to the even one.
    fn roundeven(self) -> Self;
    /// The nearest to an `f64`.
    fn from_f64(x: f64) -> Self;
    /// The nearest to an `f32`.
    fn from_f32(x: f32) -> Self;
    /// Exactly this number as `f64`.
    fn to_f64(self) -> f64;
    /// The nearest to an integer of at most 64 bits and a sign.
    fn from_int(x: i128) -> Self;
}

macro_rules! native {
    ($t:ident) => {
        impl Float for $t {
            const NAN: Self = $t::NAN;
            #[inline(always)]
            fn is_nan(self) -> bool {
                $t::is_nan(self)
            }
            #[inline(always)]
            fn is_negative(self) -> bool {
                self.is_sign_negative()
            }
            #[inline(always)]
            fn neg(self) -> Self {
                -self
            }
            #[inline(always)]
            fn abs(self) -> Self {
                $t::abs(self)
            }
            #[inline(always)]
            fn copysign(self, sign: Self) -> Self {
                $t::copysign(self, sign)
            }
            #[inline(always)]
            fn add(self, b: Self) -> Self {
                self + b
            }
            #[inline(always)]
            fn sub(self, b: Self) -> Self {
                self - b
            }
            #[inline(always)]
            fn mul(self, b: Self) -> Self {
                self * b
            }
            #[inline(always)]
            fn div(self, b: Self) -> Self {
                self / b
            }
            #[inline(always)]
            fn fma(self, b: Self, c: Self) -> Self {
                self.mul_add(b, c)
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                $t::sqrt(self)
            }
            #[inline(always)]
            fn rsqrt(self) -> Self {
                1.0 / $t::sqrt(self)
            }
            #[inline(always)]
            fn floor(self) -> Self {
                $t::floor(self)
            }
            #[inline(always)]
            fn ceil(self) -> Self {
                $t::ceil(self)
            }
            #[inline(always)]
            fn trunc(self) -> Self {
                $t::trunc(self)
            }
            #[inline(always)]
            fn round(self) -> Self {
                $t::round(self)
            }
            #[inline(always)]
            fn roundeven(self) -> Self {
                self.round_ties_even()
            }
            #[inline(always)]
            fn from_f64(x: f64) -> Self {
                x as $t
            }
            #[inline(always)]
            fn from_f32(x: f32) -> Self {
                x.into()
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self.into()
            }
            #[inline(always)]
            fn from_int(x: i128) -> Self {
                x as $t
            }
        }
    };
}

native!(f32);
native!(f64);

macro_rules! through_f32 {
    ($t:ident, |$a:ident, $b:ident, $c:ident| $fma:expr) => {
        impl Float for $t {
            const NAN: Self = $t::NAN;
            #[inline(always)]
            fn is_nan(self) -> bool {
                $t::is_nan(self)
            }
            #[inline(always)]
            fn is_negative(self) -> bool {
                self.to_bits() >> 15 == 1
            }
            #[inline(always)]
            fn neg(self) -> Self {
                Self::from_bits(self.to_bits() ^ 0x8000)
            }
            #[inline(always)]
            fn abs(self) -> Self {
                Self::from_bits(self.to_bits() & 0x7FFF)
            }
            #[inline(always)]
            fn copysign(self, sign: Self) -> Self {
                Self::from_bits(self.to_bits() & 0x7FFF | sign.to_bits() & 0x8000)
            }
            #[inline(always)]
            fn add(self, b: Self) -> Self {
                Self::from_f32(self.to_f32() + b.to_f32())
            }
            #[inline(always)]
            fn sub(self, b: Self) -> Self {
                Self::from_f32(self.to_f32() - b.to_f32())
            }
            #[inline(always)]
            fn mul(self, b: Self) -> Self {
                Self::from_f32(self.to_f32() * b.to_f32())
            }
            #[inline(always)]
            fn div(self, b: Self) -> Self {
                Self::from_f32(self.to_f32() / b.to_f32())
            }
            #[inline(always)]
            fn fma(self, b: Self, c: Self) -> Self {
                let ($a, $b, $c) = (self, b, c);
                $fma
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                Self::from_f32(self.to_f32().sqrt())
            }
            #[inline(always)]
            fn rsqrt(self) -> Self {
                Self::from_f32(1.0 / self.to_f32().sqrt())
            }
            #[inline(always)]
            fn floor(self) -> Self {
                Self::from_f32(self.to_f32().floor())
            }
            #[inline(always)]
            fn ceil(self) -> Self {
                Self::from_f32(self.to_f32().ceil())
            }
            #[inline(always)]
            fn trunc(self) -> Self {
                Self::from_f32(self.to_f32().trunc())
            }
            #[inline(always)]
            fn round(self) -> Self {
                Self::from_f32(self.to_f32().round())
            }
            #[inline(always)]
            fn roundeven(self) -> Self {
                Self::from_f32(self.to_f32().round_ties_even())
            }
            #[inline(always)]
            fn from_f64(x: f64) -> Self {
                Self::from_f32(f32_odd(x))
            }
            #[inline(always)]
            fn from_f32(x: f32) -> Self {
                $t::from_f32(x)
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self.to_f32().into()
            }
            #[inline(always)]
            fn from_int(x: i128) -> Self {
                Self::from_f32(super::round::f32_odd_of_int(x))
            }
        }
    };
}

// The product of two f16 is exact in f64; the sum is rounded to odd, so that rounding to f16 rounds once. (`f16` has a
// `from_f64` of its own, which ignores low bits.)
through_f32!(f16, |a, b, c| <Self as Float>::from_f64(add_odd(a.to_f64() * b.to_f64(), c.to_f64())));
through_f32!(bf16, |a, b, c| Self::from_f32(a.to_f32().mul_add(b.to_f32(), c.to_f32())));

/// The larger operand; NaN if either is NaN; −0 < +0 (IEEE 754-2019 `maximum`).
#[inline(always)]
pub fn maximum<T: Float>(a: T, b: T) -> T {
    if a.is_nan() || b.is_nan() { T::NAN } else { larger(a, b) }
}

/// The smaller operand; NaN if either is NaN; −0 < +0 (IEEE 754-2019 `minimum`).
#[inline(always)]
pub fn minimum<T: Float>(a: T, b: T) -> T {
    if a.is_nan() || b.is_nan() { T::NAN } else { smaller(a, b) }
}

/// The larger operand; the other one if one is NaN, NaN if both are; −0 < +0 (IEEE 754-2019 `maximumNumber`).
#[inline(always)]
pub fn maxnum<T: Float>(a: T, b: T) -> T {
    match (a.is_nan(), b.is_nan()) {
        (false, false) => larger(a, b),
        (false, true) => a,
        (true, false) => b,
        (true, true) => T::NAN,
    }
}

/// The smaller operand; the other one if one is NaN, NaN if both are; −0 < +0 (IEEE 754-2019 `minimumNumber`).
#[inline(always)]
pub fn minnum<T: Float>(a: T, b: T) -> T {
    match (a.is_nan(), b.is_nan()) {
        (false, false) => smaller(a, b),
        (false, true) => a,
        (true, false) => b,
        (true, true) => T::NAN,
    }
}

#[inline(always)]
fn larger<T: Float>(a: T, b: T) -> T {
    if a == b {
        if a.is_negative() { b } else { a }
    } else if a > b {
        a
    } else {
        b
    }
}

#[inline(always)]
fn smaller<T: Float>(a: T, b: T) -> T {
    if a == b {
        if a.is_negative() { a } else { b }
    } else if a < b {
        a
    } else {
        b
    }
}
