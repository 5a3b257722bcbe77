//! Conversions between floats and packed codes of narrow formats, and scales of blocks.

use half::bf16;

use super::Builder;
use super::element::{Data, MathFloat, Vector};
use super::value::{Operand, V};
use crate::ir::Op;
use crate::numerics::{Narrow, Overflow, ScaleRule, scale_parts};

/// What packed codes of narrow floats lie in.
#[diagnostic::on_unimplemented(message = "packed codes lie in u8, u16, u32 or vectors of u32, not in `{Self}`")]
pub trait Codes: Data {}

impl Codes for u8 {}
impl Codes for u16 {}
impl Codes for u32 {}
impl<const N: usize> Codes for Vector<u32, N> {}

impl<'k, T: MathFloat> V<'k, T> {
    /// The elements as packed codes of `format`, rounded once to nearest even (rocdl `cvt_pk_fp8_f32`, nvvm
    /// `convert.f16x2.to.f8x2`). Code `i` lies in the bits from `i · bits` on. `U` is what the codes fill: `u8`, `u16`, `u32` or
    /// a vector of `u32`; one code alone lies in the low bits of a `u8`. Other totals are refused. The same codes on every
    /// target: those of [`Narrow::encode`], but that sm_120a takes the positive largest number for any NaN in e2m1, e2m3 and e3m2.
    ///
    /// ```
    /// # use lathe_dsl::prelude::*;
    /// # lathe_dsl::builder::build("k", Target::GFX950, Launch::linear(1, 64), vec![], |k| {
    /// let x = k.vector([1.0f32, 500.0, -0.1, 0.0].map(|x| k.constant(x)));
    /// let word: V<u32> = x.encode(Narrow::E4m3, Overflow::Saturate);
    /// let back: V<Vector<f16, 4>> = word.decode(Narrow::E4m3);
    /// # let _ = back;
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn encode<U: Codes>(self, format: Narrow, overflow: Overflow) -> V<'k, U> {
        self.k.emit(Op::Encode { value: self.id, scale: None, old: None, format, overflow, byte: None })
    }

    /// As [`V::encode`], of every element divided by a scale of the block (rocdl `cvt_scalef32_pk_fp4_bf16` and its like). Of
    /// the scale only the exponent field `e` counts: it stands for 2^(e − 127), so [`Builder::pow2`] makes one of an e8m0
    /// code. `e` = 0xFF makes every element a NaN.
    ///
    /// ```
    /// # use lathe_dsl::prelude::*;
    /// # lathe_dsl::builder::build("k", Target::GFX950, Launch::linear(1, 64), vec![], |k| {
    /// let latents = k.filled::<bf16, 32>(k.constant(bf16::from_f32(3.0)));
    /// let code = k.even_code(k.constant(0x4040u32)).maximum(1);
    /// let packed: V<Vector<u32, 4>> =
    ///     latents.encode_scaled(Narrow::E2m1, Overflow::Saturate, k.pow2(code.to::<u32>()));
    /// # let _ = packed;
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn encode_scaled<U: Codes>(self, format: Narrow, overflow: Overflow, scale: impl Operand<'k, f32>) -> V<'k, U> {
        let scale = Some(scale.value(self.k).id);
        self.k.emit(Op::Encode { value: self.id, scale, old: None, format, overflow, byte: None })
    }

    /// The same codes, 8 or 16 bits of them, in place of the bits of `old` from byte `byte` on; `scale` may be `None`.
    #[track_caller]
    pub fn encode_into(
        self,
        old: impl Operand<'k, u32>,
        byte: u32,
        format: Narrow,
        overflow: Overflow,
        scale: Option<V<'k, f32>>,
    ) -> V<'k, u32> {
        let (old, scale) = (Some(old.value(self.k).id), scale.map(|s| s.id));
        self.k.emit(Op::Encode { value: self.id, scale, old, format, overflow, byte: Some(byte) })
    }
}

impl<'k, U: Codes> V<'k, U> {
    /// The numbers that packed codes mean, lowest first (rocdl `cvt_pk_f32_fp8`, nvvm `convert.f8x2.to.f16x2`); how many, `T`
    /// says. Exact, but for e8m0 in f16, which is rounded to nearest even.
    #[track_caller]
    pub fn decode<T: MathFloat>(self, format: Narrow) -> V<'k, T> {
        self.k.emit(Op::Decode { codes: self.id, scale: None, format })
    }

    /// As [`V::decode`], times a scale of the block (rocdl `cvt_scalef32_pk_f32_fp4` and its like), which counts as in
    /// [`V::encode_scaled`]; rounded once where `T` does not hold the product.
    #[track_caller]
    pub fn decode_scaled<T: MathFloat>(self, format: Narrow, scale: impl Operand<'k, f32>) -> V<'k, T> {
        let scale = Some(scale.value(self.k).id);
        self.k.emit(Op::Decode { codes: self.id, scale, format })
    }
}

impl<'k> Builder<'k> {
    /// Two bf16 of `word`, divided by `scale`, as e2m1 codes in byte `j` of `old`, the lower bf16 in the lower half
    /// (`v_cvt_scalef32_pk_fp4_bf16`): rounded to nearest even, saturating to ±6.
    ///
    /// ```
    /// # use lathe_dsl::prelude::*;
    /// # lathe_dsl::builder::build("k", Target::GFX950, Launch::linear(1, 64), vec![], |k| {
    /// let (a, b) = (k.constant(0x3F80_4000u32), k.constant(0xBF80_C0C0u32));
    /// let scale = k.pow2(126u32);
    /// let low = k.pk_fp4_bf16(0u32, a, scale, 0);
    /// let both = k.pk_fp4_bf16(low, b, scale, 1);
    /// # let _ = both;
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn pk_fp4_bf16(
        &'k self,
        old: impl Operand<'k, u32>,
        word: impl Operand<'k, u32>,
        scale: impl Operand<'k, f32>,
        j: u32,
    ) -> V<'k, u32> {
        let pair: V<'k, Vector<bf16, 2>> = word.value(self).bitcast();
        pair.encode_into(old, j, Narrow::E2m1, Overflow::Saturate, Some(scale.value(self)))
    }

    /// As [`Builder::pk_fp4_bf16`], of two `f32` (`v_cvt_scalef32_pk_fp4_f32`).
    #[track_caller]
    pub fn pk_fp4_f32(
        &'k self,
        old: impl Operand<'k, u32>,
        a: impl Operand<'k, f32>,
        b: impl Operand<'k, f32>,
        scale: impl Operand<'k, f32>,
        j: u32,
    ) -> V<'k, u32> {
        let pair = self.vector([a.value(self), b.value(self)]);
        pair.encode_into(old, j, Narrow::E2m1, Overflow::Saturate, Some(scale.value(self)))
    }

    /// Two `f32` as e4m3 codes in the lower or, if `high`, the upper half of `old` (rocdl `cvt_pk_fp8_f32`). Unlike the
    /// instruction it saturates, and means OCP's format on gfx942 too.
    #[track_caller]
    pub fn cvt_pk_fp8_f32(
        &'k self,
        a: impl Operand<'k, f32>,
        b: impl Operand<'k, f32>,
        old: impl Operand<'k, u32>,
        high: bool,
    ) -> V<'k, u32> {
        let pair = self.vector([a.value(self), b.value(self)]);
        pair.encode_into(old, 2 * u32::from(high), Narrow::E4m3, Overflow::Saturate, None)
    }

    /// The two e4m3 codes in the lower or, if `high`, the upper half of a word (rocdl `cvt_pk_f32_fp8`), of OCP's format.
    #[track_caller]
    pub fn cvt_pk_f32_fp8(&'k self, word: impl Operand<'k, u32>, high: bool) -> V<'k, Vector<f32, 2>> {
        let four: V<'k, Vector<f32, 4>> = word.value(self).decode(Narrow::E4m3);
        four.slice(2 * usize::from(high))
    }

    /// 2^(code − 127), what an e8m0 code means, for codes from 1 to 254: the `f32` with the bits `code << 23`. Of 0 and 255 it
    /// has 0 and ∞, but where a conversion takes a scale, what these codes mean.
    #[track_caller]
    pub fn pow2(&'k self, code: impl Operand<'k, u32>) -> V<'k, f32> {
        (code.value(self) << 23).bitcast()
    }

    /// 2^(127 − code), the reciprocal of what an e8m0 code means, exactly, for codes from 0 to 254.
    #[track_caller]
    pub fn rcp_pow2(&'k self, code: impl Operand<'k, u32>) -> V<'k, f32> {
        // That of 254 is a subnormal number.
        let bits: V<'k, i32> = ((self.constant(254u32) - code.value(self)) << 23).bitcast();
        bits.maximum(0x0040_0000).bitcast()
    }

    /// The e8m0 code of a block's scale by a rule: [`scale_code`](crate::numerics::scale_code), whose limits it has; hold it
    /// within the codes that the kernel wants (`.maximum(1)`).
    #[track_caller]
    pub fn scale_code(&'k self, rule: ScaleRule, format: Narrow, amax: impl Operand<'k, f32>) -> V<'k, i32> {
        let amax = amax.value(self);
        let parts = scale_parts(rule, format);
        let scaled = match parts.factor {
            Some(factor) => amax * factor,
            None => amax,
        };
        let bits: V<'k, u32> = scaled.bitcast();
        let code: V<'k, i32> = ((bits + parts.add) >> 23).bitcast();
        (code - parts.less).minimum(254)
    }

    /// [`Builder::scale_code`] by the even rule for e2m1 (FlyDSL `even_code`), of a block whose largest bf16 has the bits `am`
    /// without its sign: `((am + 0x20) >> 7) − 2`.
    #[track_caller]
    pub fn even_code(&'k self, am: impl Operand<'k, u32>) -> V<'k, i32> {
        ((am.value(self) + 0x20u32) >> 7).bitcast::<i32>() - 2
    }

    /// [`Builder::scale_code`] by the round-up rule for e2m1 (FlyDSL `e8m0_roundup`).
    #[track_caller]
    pub fn e8m0_roundup(&'k self, amax: impl Operand<'k, f32>) -> V<'k, i32> {
        self.scale_code(ScaleRule::RoundUp, Narrow::E2m1, amax)
    }
}
