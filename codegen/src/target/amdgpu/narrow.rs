//! AMD's conversions of narrow floats. Where an instruction means something else than the language, it is corrected: gfx9's and
//! gfx12's fp8 conversions do not saturate and keep a NaN's sign, gfx942's know the FNUZ formats only.

use lathe_dsl::ir::{self, Scalar};
use lathe_dsl::numerics::{Narrow, Overflow};
use lathe_dsl::target::Generation;
use melior::ir::{Type, Value};

use super::Amdgpu;
use crate::lower::emit::{Emitter, Result};
use crate::lower::narrow::{Decoding, Encoded, Encoding, narrowed, pair};

const SINGLE: ir::Type = ir::Type::Scalar(Scalar::F32);

/// How a chip's own fp8 format of some width means OCP's numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Own {
    /// As they are.
    Same,
    /// Times two, but for −0 and NaN.
    Half,
}

/// The instructions' name of an 8-bit format.
fn fp8_name(format: Narrow) -> Option<&'static str> {
    match format {
        Narrow::E4m3 | Narrow::E4m3Fnuz => Some("fp8"),
        Narrow::E5m2 | Narrow::E5m2Fnuz => Some("bf8"),
        _ => None,
    }
}

/// The instructions' name of a 6-bit format.
fn fp6_name(format: Narrow) -> Option<&'static str> {
    match format {
        Narrow::E2m3 => Some("fp6"),
        Narrow::E3m2 => Some("bf6"),
        _ => None,
    }
}

impl Amdgpu {
    /// Name of the fp8 instructions that serve a format, and what they mean by it.
    fn fp8(&self, format: Narrow) -> Option<(&'static str, Own)> {
        let fnuz = self.chip.generation == Generation::Cdna3;
        let name = fp8_name(format)?;
        match (format.has_no_negative_zero(), fnuz) {
            (true, true) | (false, false) => Some((name, Own::Same)),
            (false, true) => Some((name, Own::Half)),
            (true, false) => None,
        }
    }

    fn scaled_conversions(&self) -> bool {
        self.chip.generation == Generation::Cdna4
    }

    pub(super) fn encode_natively<'c, 'a>(
        &self,
        e: &Emitter<'c, 'a>,
        encoding: &Encoding<'c, 'a>,
    ) -> Result<Option<Encoded<'c, 'a>>> {
        let n = encoding.elements.len();
        if let Some((name, own)) = self.fp8(encoding.format) {
            let words = match own {
                Own::Same => self.fp8_codes(e, encoding, name)?,
                Own::Half => doubled_codes(e, encoding, name)?,
            };
            return Ok(Some(Encoded { words, inserted: false }));
        }
        if !self.scaled_conversions() {
            return Ok(None);
        }
        if encoding.format == Narrow::E2m1 {
            return fp4_codes(e, encoding).map(Some);
        }
        match fp6_name(encoding.format) {
            Some(name) if n.is_multiple_of(32) => fp6_codes(e, encoding, name).map(Some),
            _ => Ok(None),
        }
    }

    /// Codes of fp8 by instructions that mean the same numbers.
    fn fp8_codes<'c, 'a>(
        &self,
        e: &Emitter<'c, 'a>,
        encoding: &Encoding<'c, 'a>,
        name: &str,
    ) -> Result<Vec<Value<'c, 'a>>> {
        let Encoding { format, overflow, from, elements, scale, .. } = encoding;
        let largest = format.decode(format.largest());
        let saturate = *overflow == Overflow::Saturate;
        let scaled = self.scaled_conversions();
        // f16 and bf16 as they are: without limits always, f16 without a scale also within limits.
        let direct = scaled
            && match from {
                Scalar::F16 => scale.is_none() || !saturate,
                Scalar::Bf16 => !saturate,
                _ => false,
            };
        let short = Type::vector(&[2], e.int(16));
        // What the other half of a register holds; the second pair of codes goes into the first's.
        let kept = |old: Option<Value<'c, 'a>>, ty: Type<'c>| match old {
            Some(old) => e.bitcast(old, ty),
            None => e.value("llvm.mlir.poison", &[], ty, &[]),
        };
        let one = e.float_constant(SINGLE, 1.0)?;
        // What magnitudes are limited to, before the instruction divides.
        let limit = match scale {
            Some(s) if scaled => e.same("arith.mulf", &[e.block_scale(*s)?, e.float_constant(SINGLE, largest)?])?,
            _ => e.float_constant(SINGLE, largest)?,
        };
        let reciprocal = match scale {
            Some(s) if !scaled => Some(e.reciprocal_scale(*s)?),
            _ => None,
        };
        let prepare = |x: Value<'c, 'a>| -> Result<Value<'c, 'a>> {
            let wide = e.widened(*from, x)?;
            let x = match reciprocal {
                Some(r) => e.same("arith.mulf", &[wide, r])?,
                None => wide,
            };
            if saturate { self.limited(e, x, limit) } else { Ok(x) }
        };
        let convert = |two: &[Value<'c, 'a>], old: Option<Value<'c, 'a>>| -> Result<Value<'c, 'a>> {
            let upper = e.bit(old.is_some())?;
            let [low, high] = [two[0], *two.get(1).unwrap_or(&two[0])];
            if direct {
                let both = pair(e, low, high)?;
                let both = match saturate {
                    true => {
                        let ty = ir::Type::Vector(Scalar::F16, 2);
                        let raised =
                            e.float_intrinsic("llvm.maximum", ty, &[both, e.float_constant(ty, -largest)?], &[])?;
                        e.float_intrinsic("llvm.minimum", ty, &[raised, e.float_constant(ty, largest)?], &[])?
                    }
                    false => both,
                };
                let intrinsic = format!("llvm.amdgcn.cvt.scalef32.pk.{name}.{}", from.name());
                let made = e.call(&intrinsic, &[kept(old, short)?, both, scale.unwrap_or(one), upper], short)?;
                return e.bitcast(made, e.int(32));
            }
            let [low, high] = [prepare(low)?, prepare(high)?];
            match scale {
                Some(s) if scaled => {
                    let intrinsic = format!("llvm.amdgcn.cvt.scalef32.pk.{name}.f32");
                    let made = e.call(&intrinsic, &[kept(old, short)?, low, high, *s, upper], short)?;
                    e.bitcast(made, e.int(32))
                }
                _ => {
                    let intrinsic = format!("llvm.amdgcn.cvt.pk.{name}.f32");
                    e.call(&intrinsic, &[low, high, kept(old, e.int(32))?, upper], e.int(32))
                }
            }
        };
        elements
            .chunks(4)
            .map(|four| {
                let mut halves = four.chunks(2);
                let low = convert(halves.next().unwrap_or(four), None)?;
                let word = match halves.next() {
                    Some(high) => convert(high, Some(low))?,
                    None => low,
                };
                // FNUZ has one NaN.
                if format.has_no_negative_zero() { Ok(word) } else { one_nan(e, *format, word) }
            })
            .collect()
    }

    /// `x` with at most this magnitude; a NaN stays one.
    fn limited<'c, 'a>(&self, e: &Emitter<'c, 'a>, x: Value<'c, 'a>, limit: Value<'c, 'a>) -> Result<Value<'c, 'a>> {
        let lowest = e.same("arith.negf", &[limit])?;
        if self.chip.generation == Generation::Cdna3 {
            let middle = e.float_intrinsic("llvm.amdgcn.fmed3", SINGLE, &[x, lowest, limit], &[])?;
            return e.select(unordered(e, x, x)?, x, middle);
        }
        let raised = e.float_intrinsic("llvm.maximum", SINGLE, &[x, lowest], &[])?;
        e.float_intrinsic("llvm.minimum", SINGLE, &[raised, limit], &[])
    }

    pub(super) fn decode_natively<'c, 'a>(
        &self,
        e: &Emitter<'c, 'a>,
        decoding: &Decoding<'c, 'a>,
    ) -> Result<Option<Vec<Value<'c, 'a>>>> {
        let Decoding { format, to, n, words, scale, .. } = decoding;
        let one = || e.float_constant(SINGLE, 1.0);
        let two = |of: Scalar| Type::vector(&[2], e.scalar(of));
        let mut elements = vec![];
        let mut take = |made: Value<'c, 'a>, of: Scalar, scale: Option<Value<'c, 'a>>| -> Result<()> {
            for i in 0..2 {
                if elements.len() as u32 == *n {
                    break;
                }
                let element = e.extract(of, made, i)?;
                elements.push(if of == *to && scale.is_none() {
                    element
                } else {
                    narrowed(e, element, scale, *to, self.chip.generation != Generation::Cdna4)?
                });
            }
            Ok(())
        };
        if let Some((name, Own::Same)) = self.fp8(*format) {
            let own_scale = scale.map(|s| e.block_scale(s)).transpose()?.filter(|_| !self.scaled_conversions());
            for pair in 0..n.div_ceil(2) {
                let (word, upper) = (words[pair as usize / 2], e.bit(pair % 2 == 1)?);
                if self.scaled_conversions() && (*to != Scalar::F32 || scale.is_some()) {
                    let intrinsic = format!("llvm.amdgcn.cvt.scalef32.pk.{}.{name}", to.name());
                    let made = e.call(&intrinsic, &[word, scale.map_or_else(one, Ok)?, upper], two(*to))?;
                    take(made, *to, None)?;
                } else {
                    let intrinsic = format!("llvm.amdgcn.cvt.pk.f32.{name}");
                    take(e.call(&intrinsic, &[word, upper], two(Scalar::F32))?, Scalar::F32, own_scale)?;
                }
            }
            return Ok(Some(elements));
        }
        if !self.scaled_conversions() {
            return Ok(None);
        }
        if *format == Narrow::E2m1 {
            let intrinsic = format!("llvm.amdgcn.cvt.scalef32.pk.{}.fp4", to.name());
            for pair in 0..n.div_ceil(2) {
                let word = words[pair as usize / 4];
                let made = e.call(&intrinsic, &[word, scale.map_or_else(one, Ok)?, e.word(pair % 4)?], two(*to))?;
                take(made, *to, None)?;
            }
            return Ok(Some(elements));
        }
        let Some(name) = fp6_name(*format).filter(|_| n.is_multiple_of(32)) else { return Ok(None) };
        let intrinsic = format!("llvm.amdgcn.cvt.scalef32.pk32.{}.{name}", to.name());
        for six in words.chunks(6) {
            let six = e.value("vector.from_elements", six, Type::vector(&[6], e.int(32)), &[])?;
            let many = Type::vector(&[32], e.scalar(*to));
            let made = e.call(&intrinsic, &[six, scale.map_or_else(one, Ok)?], many)?;
            for i in 0..32 {
                elements.push(e.extract(*to, made, i)?);
            }
        }
        Ok(Some(elements))
    }
}

/// Whether one of them is a NaN.
fn unordered<'c, 'a>(e: &Emitter<'c, 'a>, a: Value<'c, 'a>, b: Value<'c, 'a>) -> Result<Value<'c, 'a>> {
    // MLIR's number of uno.
    e.value("arith.cmpf", &[a, b], e.int(1), &[("predicate", e.int_attribute(64, 14))])
}

/// Four codes whose NaNs are all made the positive one with all bits set: instructions keep a NaN's sign, and which of e5m2's
/// three NaNs they make is not told.
fn one_nan<'c, 'a>(e: &Emitter<'c, 'a>, format: Narrow, word: Value<'c, 'a>) -> Result<Value<'c, 'a>> {
    let finite = format.infinity().unwrap_or(format.largest());
    let least = u32::from(0x7F - finite) * 0x0101_0101;
    let magnitudes = e.with_word("arith.andi", word, 0x7F7F_7F7F)?;
    let carried = e.with_word("arith.addi", magnitudes, least)?;
    let nans = e.with_word("arith.andi", carried, 0x8080_8080)?;
    let plus = e.with_word("arith.xori", nans, u32::MAX)?;
    let word = e.same("arith.andi", &[word, plus])?;
    if format.infinity().is_none() {
        return Ok(word);
    }
    let ones = e.same("arith.subi", &[nans, e.with_word("arith.shrui", nans, 7)?])?;
    e.or_words(word, ones)
}

/// Codes of OCP's fp8 by instructions that mean half the numbers: of −0 and small negative numbers they make +0, of a NaN −0.
/// So a NaN goes as the number that has its code there, and signs are put in again.
fn doubled_codes<'c, 'a>(e: &Emitter<'c, 'a>, encoding: &Encoding<'c, 'a>, name: &str) -> Result<Vec<Value<'c, 'a>>> {
    let Encoding { format, overflow, from, elements, scale, .. } = encoding;
    let (fnuz, past) = match format {
        Narrow::E4m3 => (Narrow::E4m3Fnuz, 464.0),
        _ => (Narrow::E5m2Fnuz, f32::INFINITY),
    };
    let number = |x| e.float_constant(SINGLE, x);
    let reciprocal = scale.map(|s| e.reciprocal_scale(s)).transpose()?;
    let intrinsic = format!("llvm.amdgcn.cvt.pk.{name}.f32");
    // The number whose code is NaN's.
    let nan = number(fnuz.decode(0x7F))?;
    // Half of the largest number, or of what has infinity's code.
    let limit = match (overflow, format.infinity()) {
        (Overflow::Ieee, Some(infinity)) => fnuz.decode(infinity),
        _ => format.decode(format.largest()) / 2.0,
    };
    let prepare = |x: &Value<'c, 'a>| -> Result<Value<'c, 'a>> {
        let wide = e.widened(*from, *x)?;
        let x = match reciprocal {
            Some(r) => e.same("arith.mulf", &[wide, r])?,
            None => wide,
        };
        let half = e.same("arith.mulf", &[x, number(0.5)?])?;
        if *overflow == Overflow::Ieee && format.infinity().is_none() {
            // MLIR's number of ugt: also of a NaN.
            let size = e.float_intrinsic("llvm.fabs", SINGLE, &[x], &[])?;
            let predicate = [("predicate", e.int_attribute(64, 9))];
            let none = e.value("arith.cmpf", &[size, number(past)?], e.int(1), &predicate)?;
            return e.select(none, nan, half);
        }
        let operands = [half, number(-limit)?, number(limit)?];
        let limited = e.float_intrinsic("llvm.amdgcn.fmed3", SINGLE, &operands, &[])?;
        e.select(unordered(e, x, x)?, nan, limited)
    };
    let nothing = e.value("llvm.mlir.poison", &[], e.int(32), &[])?;
    let mut words = vec![];
    for four in elements.chunks(4) {
        let numbers = four.iter().map(prepare).collect::<Result<Vec<_>>>()?;
        let mut word = nothing;
        for (two, upper) in numbers.chunks(2).zip([false, true]) {
            let [low, high] = [two[0], *two.get(1).unwrap_or(&two[0])];
            word = e.call(&intrinsic, &[low, high, word, e.bit(upper)?], e.int(32))?;
        }
        let signs = upper_bytes(e, &numbers)?;
        let magnitudes = e.with_word("arith.andi", word, 0x7F7F_7F7F)?;
        words.push(e.or_words(magnitudes, e.with_word("arith.andi", signs, 0x8080_8080)?)?);
    }
    Ok(words)
}

/// The uppermost byte of up to four floats, side by side.
fn upper_bytes<'c, 'a>(e: &Emitter<'c, 'a>, numbers: &[Value<'c, 'a>]) -> Result<Value<'c, 'a>> {
    let bits = numbers.iter().map(|x| e.bitcast(*x, e.int(32))).collect::<Result<Vec<_>>>()?;
    // Bytes 0 to 3 are the second operand's, 4 to 7 the first's.
    let two = |a, b, selector: u32| e.call("llvm.amdgcn.perm", &[b, a, e.word(selector)?], e.int(32));
    match bits[..] {
        [a] => e.with_word("arith.shrui", a, 24),
        [a, b] => two(a, b, 0x0C0C_0703),
        [a, b, c, d] => two(two(a, b, 0x0C0C_0703)?, two(c, d, 0x0C0C_0703)?, 0x0504_0100),
        _ => Err("codes of an odd number of elements".to_owned()),
    }
}

/// Codes of e2m1: instructions divide by the scale, round and saturate as wanted, and write one byte of a word.
fn fp4_codes<'c, 'a>(e: &Emitter<'c, 'a>, encoding: &Encoding<'c, 'a>) -> Result<Encoded<'c, 'a>> {
    let Encoding { from, elements, scale, old, .. } = encoding;
    let intrinsic = format!("llvm.amdgcn.cvt.scalef32.pk.fp4.{}", from.name());
    let scale = scale.map_or_else(|| e.float_constant(SINGLE, 1.0), Ok)?;
    let (old, byte) = old.map_or((None, 0), |(old, byte)| (Some(old), byte));
    let mut words = vec![];
    for eight in elements.chunks(8) {
        let mut word = match old {
            Some(old) => old,
            None => e.value("llvm.mlir.poison", &[], e.int(32), &[])?,
        };
        for (two, at) in eight.chunks(2).zip(byte..) {
            let zero = || e.float_constant(ir::Type::Scalar(*from), 0.0);
            let [low, high] = [two[0], two.get(1).map_or_else(zero, |x| Ok(*x))?];
            let at = e.word(at)?;
            word = match from {
                Scalar::F32 => e.call(&intrinsic, &[word, low, high, scale, at], e.int(32))?,
                _ => e.call(&intrinsic, &[word, pair(e, low, high)?, scale, at], e.int(32))?,
            };
        }
        words.push(word);
    }
    Ok(Encoded { words, inserted: old.is_some() })
}

/// Codes of 6 bits, 32 at a time.
fn fp6_codes<'c, 'a>(e: &Emitter<'c, 'a>, encoding: &Encoding<'c, 'a>, name: &str) -> Result<Encoded<'c, 'a>> {
    let Encoding { from, elements, scale, .. } = encoding;
    let scale = scale.map_or_else(|| e.float_constant(SINGLE, 1.0), Ok)?;
    let six = Type::vector(&[6], e.int(32));
    let gather = |of: &[Value<'c, 'a>]| {
        let ty = Type::vector(&[of.len() as u64], e.scalar(*from));
        e.value("vector.from_elements", of, ty, &[])
    };
    let mut words = vec![];
    for all in elements.chunks(32) {
        let made = if *from == Scalar::F32 {
            // The instruction deals elements of its two operands out by turns.
            let turn = |first: usize| all.iter().skip(first).step_by(2).copied().collect::<Vec<_>>();
            let operands = [gather(&turn(0))?, gather(&turn(1))?, scale];
            e.call(&format!("llvm.amdgcn.cvt.scalef32.2xpk16.{name}.f32"), &operands, six)?
        } else {
            e.call(&format!("llvm.amdgcn.cvt.scalef32.pk32.{name}.{}", from.name()), &[gather(all)?, scale], six)?
        };
        for i in 0..6 {
            words.push(e.part(made, i, e.int(32))?);
        }
    }
    Ok(Encoded { words, inserted: false })
}
