//! NVIDIA's conversions of narrow floats: fp8 on every chip here, fp6 and fp4 from compute capability 12.0 on.

use lathe_dsl::ir::{self, Scalar};
use lathe_dsl::numerics::{Narrow, Overflow};
use lathe_dsl::target::Generation;
use melior::ir::{Type, Value};

use super::Nvptx;
use crate::lower::emit::{Emitter, Result};
use crate::lower::narrow::{Decoding, Encoded, Encoding, narrowed, packed, pair, picked};

impl Nvptx {
    /// What instructions call a pair of codes; `None` if the chip has no conversions of this format.
    fn pair_name(&self, format: Narrow) -> Option<&'static str> {
        let small = self.chip.generation == Generation::Blackwell120;
        match format {
            Narrow::E4m3 => Some("e4m3x2"),
            Narrow::E5m2 => Some("e5m2x2"),
            Narrow::E2m3 if small => Some("e2m3x2"),
            Narrow::E3m2 if small => Some("e3m2x2"),
            Narrow::E2m1 if small => Some("e2m1x2"),
            _ => None,
        }
    }

    /// Codes by `cvt.rn.satfinite`. It saturates, so of `ieee` only e4m3 goes this way, by the NaN that overflow gives.
    pub(super) fn encode_natively<'c, 'a>(
        &self,
        e: &Emitter<'c, 'a>,
        encoding: &Encoding<'c, 'a>,
    ) -> Result<Option<Encoded<'c, 'a>>> {
        let Encoding { format, overflow, from, elements, scale, .. } = encoding;
        let Some(name) = self.pair_name(*format) else { return Ok(None) };
        let ieee = *overflow == Overflow::Ieee && format.nan().is_some();
        if ieee && *format != Narrow::E4m3 {
            return Ok(None);
        }
        let bits = format.bits();
        let short = e.int(16);
        // From pairs of f16 directly; everything else by f32, which holds all of it exactly.
        let halves = *from == Scalar::F16 && scale.is_none() && !ieee && bits == 8;
        let reciprocal = scale.map(|s| e.reciprocal_scale(s)).transpose()?;
        let prepare = |x: &Value<'c, 'a>| {
            if halves {
                return Ok(*x);
            }
            let wide = e.widened(*from, *x)?;
            let scaled = match reciprocal {
                Some(r) => e.same("arith.mulf", &[wide, r])?,
                None => wide,
            };
            if ieee { nan_past(e, scaled, 464.0) } else { Ok(scaled) }
        };
        let zero = || e.float_constant(ir::Type::Scalar(if halves { Scalar::F16 } else { Scalar::F32 }), 0.0);
        let of_pair = |low: Value<'c, 'a>, high: Value<'c, 'a>| -> Result<Value<'c, 'a>> {
            let codes = if halves {
                e.call(&format!("llvm.nvvm.f16x2.to.{name}.rn"), &[pair(e, low, high)?], short)?
            } else {
                let suffix = if bits == 8 { "" } else { ".satfinite" };
                e.call(&format!("llvm.nvvm.ff.to.{name}.rn{suffix}"), &[high, low], short)?
            };
            let codes = e.resize(codes, 16, 32, false)?;
            if bits != 6 {
                return Ok(codes);
            }
            // One code a byte; here they lie side by side.
            let upper = e.with_word("arith.andi", e.with_word("arith.shrui", codes, 2)?, 0xFC0)?;
            e.or_words(e.with_word("arith.andi", codes, 0x3F)?, upper)
        };
        let pairs = elements
            .chunks(2)
            .map(|two| {
                let low = prepare(&two[0])?;
                of_pair(low, two.get(1).map_or_else(zero, prepare)?)
            })
            .collect::<Result<Vec<_>>>()?;
        let words = packed(e, &pairs, 2 * bits)?;
        Ok(Some(Encoded { words, inserted: false }))
    }

    /// Numbers by `cvt.rn.f16x2`, which is exact.
    pub(super) fn decode_natively<'c, 'a>(
        &self,
        e: &Emitter<'c, 'a>,
        decoding: &Decoding<'c, 'a>,
    ) -> Result<Option<Vec<Value<'c, 'a>>>> {
        let Decoding { format, to, n, words, scale, .. } = decoding;
        let Some(name) = self.pair_name(*format) else { return Ok(None) };
        let bits = format.bits();
        let scale = scale.map(|s| e.block_scale(s)).transpose()?;
        let halves = Type::vector(&[2], e.scalar(Scalar::F16));
        let mut elements = vec![];
        for first in (0..*n).step_by(2) {
            let codes = picked(e, words, first / 2, 2 * bits)?;
            let codes = if bits == 6 {
                // One code a byte.
                let upper = e.with_word("arith.andi", e.with_word("arith.shli", codes, 2)?, 0x3F00)?;
                e.or_words(e.with_word("arith.andi", codes, 0x3F)?, upper)?
            } else {
                codes
            };
            let codes = e.resize(codes, 32, 16, false)?;
            let two = e.call(&format!("llvm.nvvm.{name}.to.f16x2.rn"), &[codes], halves)?;
            for i in 0..2.min(*n - first) {
                let half = e.extract(Scalar::F16, two, i)?;
                elements.push(match (to, scale) {
                    (Scalar::F16, None) => half,
                    _ => narrowed(e, e.widened(Scalar::F16, half)?, scale, *to, false)?,
                });
            }
        }
        Ok(Some(elements))
    }
}

/// NaN of a magnitude past this number, else `x`.
fn nan_past<'c, 'a>(e: &Emitter<'c, 'a>, x: Value<'c, 'a>, past: f32) -> Result<Value<'c, 'a>> {
    let single = ir::Type::Scalar(Scalar::F32);
    let size = e.float_intrinsic("llvm.fabs", single, &[x], &[])?;
    // MLIR's number of ogt.
    let predicate = [("predicate", e.int_attribute(64, 2))];
    let large = e.value("arith.cmpf", &[size, e.float_constant(single, past)?], e.int(1), &predicate)?;
    e.select(large, e.float_constant(single, f32::NAN)?, x)
}
