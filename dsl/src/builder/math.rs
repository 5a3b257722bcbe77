//! Arithmetic that has no operator of Rust's: by class of types, element by element of vectors.

use half::{bf16, f16};

use super::element::{Data, Float, HwFloat, Integer, MathFloat, Numeric, SizedInt, Vector};
use super::value::{Operand, V};
use crate::ir::{BinaryOp, Op, Predicate, UnaryOp};

macro_rules! unary {
    ($($(#[$meta:meta])* $name:ident = $op:ident;)*) => {$(
        $(#[$meta])*
        #[track_caller]
        pub fn $name(self) -> Self {
            self.unary(UnaryOp::$op)
        }
    )*};
}

macro_rules! binary {
    ($($(#[$meta:meta])* $name:ident = $op:ident;)*) => {$(
        $(#[$meta])*
        #[track_caller]
        pub fn $name(self, other: impl Operand<'k, T>) -> Self {
            self.binary(BinaryOp::$op, other)
        }
    )*};
}

macro_rules! compare {
    ($($(#[$meta:meta])* $name:ident = $op:ident;)*) => {$(
        $(#[$meta])*
        #[track_caller]
        pub fn $name(self, other: impl Operand<'k, T>) -> V<'k, T::Mask> {
            self.compare(Predicate::$op, other)
        }
    )*};
}

impl<'k, T: Data> V<'k, T> {
    compare! {
        /// `self = other`; false with a NaN.
        eq = Eq;
        /// `self ≠ other`; true with a NaN.
        ne = Ne;
    }
}

impl<'k, T: Numeric> V<'k, T> {
    compare! {
        /// `self < other`, by signedness; false with a NaN.
        lt = Lt;
        /// `self ≤ other`, by signedness; false with a NaN.
        le = Le;
        /// `self > other`, by signedness; false with a NaN.
        gt = Gt;
        /// `self ≥ other`, by signedness; false with a NaN.
        ge = Ge;
    }

    binary! {
        /// The larger one (fx `max`). Floats: NaN if either is NaN, −0 < +0.
        maximum = Maximum;
        /// The smaller one (fx `min`). Floats: NaN if either is NaN, −0 < +0.
        minimum = Minimum;
        /// Quotient rounded towards −∞ (fx `//`): of floats `floor(self / other)`. Integer division by zero is reported on `cpu`,
        /// unspecified elsewhere.
        div_floor = DivFloor;
    }

    unary! {
        /// Magnitude. The smallest number of a signed integer type stays itself; a float's sign bit is cleared, a NaN stays
        /// a NaN.
        abs = Abs;
    }

    /// `minimum(maximum(self, lo), hi)`: floats give NaN if any of the three is NaN.
    #[track_caller]
    pub fn clamp(self, lo: impl Operand<'k, T>, hi: impl Operand<'k, T>) -> Self {
        self.maximum(lo).minimum(hi)
    }
}

impl<'k, T: Integer> V<'k, T> {
    binary! {
        /// Remainder with the divisor's sign, the one that belongs to [`V::div_floor`].
        rem_floor = RemFloor;
        /// Quotient rounded towards 0. Division by zero as of [`V::div_floor`].
        div_trunc = DivTrunc;
        /// Remainder with the dividend's sign, the one that belongs to [`V::div_trunc`] (fx `%`).
        rem_trunc = RemTrunc;
        /// Quotient rounded towards +∞ (fx `ceildiv`). Division by zero as of [`V::div_floor`].
        ceildiv = CeilDiv;
    }
}

impl<'k, T: SizedInt> V<'k, T> {
    binary! {
        /// Logical shift right whatever the signedness; the amount is taken modulo the width.
        shrui = Shrui;
    }

    unary! {
        /// Number of bits that are set.
        ctpop = Ctpop;
        /// Number of zeros above the highest set bit; the width for 0.
        ctlz = Ctlz;
        /// Number of zeros below the lowest set bit; the width for 0.
        cttz = Cttz;
    }
}

impl<'k, T: Float> V<'k, T> {
    unary! {
        /// Largest integer not above it; keeps ±0, ±∞ and NaN.
        floor = Floor;
        /// Smallest integer not below it; −0 from (−1, −0].
        ceil = Ceil;
        /// Rounded towards 0, sign kept.
        trunc = Trunc;
        /// Rounded to the nearest integer, halves away from 0, sign kept.
        round = Round;
        /// Rounded to the nearest integer, halves to the even one, sign kept.
        roundeven = Roundeven;
        /// Square root, correctly rounded.
        sqrt = Sqrt;
        /// `1 / sqrt(self)`: both steps correctly rounded.
        rsqrt = Rsqrt;
    }

    binary! {
        /// The larger one; the other one if one is NaN; −0 < +0 (fx `maxnumf`).
        maxnum = Maxnum;
        /// The smaller one; the other one if one is NaN; −0 < +0 (fx `minnumf`).
        minnum = Minnum;
        /// `self`'s magnitude with the sign of `other`, bit for bit.
        copysign = Copysign;
    }

    /// `self · b + c` with one rounding.
    #[track_caller]
    pub fn fma(self, b: impl Operand<'k, T>, c: impl Operand<'k, T>) -> Self {
        let (b, c) = (b.value(self.k), c.value(self.k));
        self.k.emit(Op::Fma { a: self.id, b: b.id, c: c.id })
    }

    /// Whether it is a NaN.
    #[track_caller]
    pub fn is_nan(self) -> V<'k, T::Mask> {
        self.ne(self)
    }
}

impl<'k, T: MathFloat> V<'k, T> {
    unary! {
        /// e^self, the same on every target.
        exp = Exp;
        /// 2^self, the same on every target.
        exp2 = Exp2;
        /// Natural logarithm; −∞ of ±0, NaN below 0.
        log = Log;
        /// Binary logarithm; −∞ of ±0, NaN below 0.
        log2 = Log2;
        /// Sine of radians; NaN of ±∞.
        sin = Sin;
        /// Cosine of radians; NaN of ±∞.
        cos = Cos;
        /// Hyperbolic tangent.
        tanh = Tanh;
        /// Error function.
        erf = Erf;
    }

    binary! {
        /// self^other, by C's `pow` in its special cases (fx `powf`).
        pow = Pow;
    }
}

impl<'k, T: HwFloat> V<'k, T> {
    unary! {
        /// 2^self by the chip's approximation: within 2 ulp; subnormals may be flushed.
        hw_exp2 = HwExp2;
        /// Binary logarithm by the chip's approximation: within 1 ulp away from 1; subnormals may be flushed.
        hw_log2 = HwLog2;
        /// 1/self by the chip's approximation: within 1 ulp; subnormals may be flushed.
        hw_rcp = HwRcp;
        /// 1/√self by the chip's approximation: within 2 ulp; subnormals may be flushed.
        hw_rsq = HwRsq;
        /// √self by the chip's approximation: within 2 ulp; subnormals may be flushed.
        hw_sqrt = HwSqrt;
    }
}

macro_rules! stochastic {
    ($([$($n:ident)?] $from:ty, $random:ty: $($(#[doc = $doc:literal])+ $name:ident -> $to:ty;)*)*) => {$(
        impl<'k $(, const $n: usize)?> V<'k, $from> {
            $($(#[doc = $doc])+
            #[track_caller]
            pub fn $name(self, random: impl Operand<'k, $random>) -> V<'k, $to> {
                let random = random.value(self.k);
                self.k.emit(Op::ConvertStochastic(self.id, random.id))
            })*
        }
    )*};
}

stochastic! {
    [] f32, u32:
        /// Rounded to bf16 by chance (fx `cvt_f32_to_bf16_sr`): away from 0 if what is cut off, as a part of one unit in the
        /// last place, plus `random / 2^32` is at least 1. The same bits on every target.
        cvt_sr_bf16 -> bf16;
        /// Rounded to f16 by chance, as by [`V::cvt_sr_bf16`].
        cvt_sr_f16 -> f16;
    [N] Vector<f32, N>, Vector<u32, N>:
        /// Rounded to bf16 by chance, element by element: away from 0 if what is cut off, as a part of one unit in the last
        /// place, plus `random / 2^32` is at least 1. The same bits on every target.
        cvt_sr_bf16 -> Vector<bf16, N>;
        /// Rounded to f16 by chance, element by element, as to bf16.
        cvt_sr_f16 -> Vector<f16, N>;
}
