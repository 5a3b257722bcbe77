//! Conversions between floats and packed codes of narrow formats: by the chip's instructions where it has them, else by the
//! sequences here, which give the codes of [`Narrow::encode`] and the numbers of [`Narrow::decode`] on any chip.

use lathe_dsl::ir::{self, Scalar};
use lathe_dsl::numerics::{Narrow, Overflow};
use melior::ir::{Type, Value, ValueLike};

use super::emit::{Emitter, IntPredicate, Result};
use super::{Lowering, codes};
use crate::target::Backend;

/// Exponent field of an `f32`.
const EXPONENT: u32 = 0x7F80_0000;
/// An `f32` NaN.
const NAN: u32 = 0x7FC0_0000;
/// 2^−127 as `f32`: what the code 0 of e8m0 means.
const LEAST: u32 = 0x0040_0000;

/// Elements that become codes.
pub struct Encoding<'c, 'a> {
    pub format: Narrow,
    pub overflow: Overflow,
    /// Type of the elements.
    pub from: Scalar,
    pub elements: Vec<Value<'c, 'a>>,
    /// `f32` whose exponent field is the block's scale.
    pub scale: Option<Value<'c, 'a>>,
    /// A word, and the byte of it from which on the codes are wanted.
    pub old: Option<(Value<'c, 'a>, u32)>,
    /// Whether arithmetic flushes subnormal `f32`.
    pub flush: bool,
}

/// Codes in words of 32 bits, lowest first; bits of the last word that none fills may be anything.
pub struct Encoded<'c, 'a> {
    pub words: Vec<Value<'c, 'a>>,
    /// Whether they are where [`Encoding::old`] wants them.
    pub inserted: bool,
}

/// Codes that become elements.
pub struct Decoding<'c, 'a> {
    pub format: Narrow,
    /// Type of the elements.
    pub to: Scalar,
    /// Number of elements.
    pub n: u32,
    /// Codes in words of 32 bits, lowest first, zeros above them.
    pub words: Vec<Value<'c, 'a>>,
    /// `f32` whose exponent field is the block's scale.
    pub scale: Option<Value<'c, 'a>>,
    /// Whether arithmetic flushes subnormal `f32`.
    pub flush: bool,
}

/// Arithmetic on 32-bit words and single floats.
impl<'c, 'a> Emitter<'c, 'a> {
    pub fn with_word(&self, name: &str, a: Value<'c, 'a>, b: u32) -> Result<Value<'c, 'a>> {
        self.same(name, &[a, self.word(b)?])
    }

    pub fn or_words(&self, a: Value<'c, 'a>, b: Value<'c, 'a>) -> Result<Value<'c, 'a>> {
        self.same("arith.ori", &[a, b])
    }

    fn bits_of(&self, x: Value<'c, 'a>) -> Result<Value<'c, 'a>> {
        self.bitcast(x, self.int(32))
    }

    fn float_of(&self, bits: Value<'c, 'a>) -> Result<Value<'c, 'a>> {
        self.bitcast(bits, self.scalar(Scalar::F32))
    }

    /// `yes` where `a` compares so with `b`.
    fn choose(
        &self,
        predicate: IntPredicate,
        a: Value<'c, 'a>,
        b: u32,
        yes: u32,
        no: Value<'c, 'a>,
    ) -> Result<Value<'c, 'a>> {
        let holds = self.cmpi(predicate, a, self.word(b)?, self.int(1))?;
        self.select(holds, self.word(yes)?, no)
    }

    /// An element as `f32`, exactly. A NaN stays one, with any sign.
    pub fn widened(&self, from: Scalar, x: Value<'c, 'a>) -> Result<Value<'c, 'a>> {
        if from == Scalar::F32 { Ok(x) } else { self.value("arith.extf", &[x], self.scalar(Scalar::F32), &[]) }
    }

    /// The scale of a block as the `f32` that it stands for.
    pub fn block_scale(&self, scale: Value<'c, 'a>) -> Result<Value<'c, 'a>> {
        let field = self.with_word("arith.andi", self.bits_of(scale)?, EXPONENT)?;
        let finite = self.with_word("arith.maxui", field, LEAST)?;
        self.float_of(self.choose(IntPredicate::Eq, field, EXPONENT, NAN, finite)?)
    }

    /// One divided by the scale of a block, exactly.
    pub fn reciprocal_scale(&self, scale: Value<'c, 'a>) -> Result<Value<'c, 'a>> {
        let field = self.with_word("arith.andi", self.bits_of(scale)?, EXPONENT)?;
        let normal = self.same("arith.subi", &[self.word(254 << 23)?, field])?;
        // That of 2^127 is a subnormal number.
        let finite = self.with_word("arith.maxsi", normal, LEAST)?;
        self.float_of(self.choose(IntPredicate::Eq, field, EXPONENT, NAN, finite)?)
    }

    /// Words of these bits in place of bits of `old`: `bits` of them from `shift` on.
    fn inserted(&self, old: Value<'c, 'a>, word: Value<'c, 'a>, shift: u32, bits: u32) -> Result<Value<'c, 'a>> {
        let mask = (u32::MAX >> (32 - bits)) << shift;
        let kept = self.with_word("arith.andi", old, !mask)?;
        let moved = self.with_word("arith.shli", word, shift)?;
        self.or_words(kept, self.with_word("arith.andi", moved, mask)?)
    }
}

impl<'c, 'a> Lowering<'c, 'a, '_> {
    /// Packed codes of elements.
    pub(super) fn encode(&self, op: &ir::Op, result: ir::Value) -> Result<Value<'c, 'a>> {
        let ir::Op::Encode { value, scale, old, format, overflow, byte } = op else {
            return Err(format!("`{}` makes no codes", op.def().name));
        };
        let (e, from, to) = (&self.emit, self.kernel.ty(*value), self.kernel.ty(result));
        let old = match (old, byte) {
            (Some(old), Some(byte)) => Some((self.get(*old)?, *byte)),
            _ => None,
        };
        let encoding = Encoding {
            format: *format,
            overflow: *overflow,
            from: from.scalar(),
            elements: e.elements(from, self.get(*value)?)?,
            scale: scale.map(|s| self.get(s)).transpose()?,
            old,
            flush: self.kernel.fast_math.flush_subnormals,
        };
        let Encoded { words, inserted } = match self.backend.encode(e, &encoding)? {
            Some(encoded) => encoded,
            None => Encoded { words: encoded(e, &encoding)?, inserted: false },
        };
        if let Some((old, byte)) = old {
            let bits = (from.lanes() * format.bits()).next_multiple_of(8);
            return if inserted { Ok(words[0]) } else { e.inserted(old, words[0], 8 * byte, bits) };
        }
        match to {
            ir::Type::Scalar(s) => e.resize(words[0], 32, s.bits(), false),
            to => e.gather(to, &words),
        }
    }

    /// The elements of packed codes.
    pub(super) fn decode(
        &self,
        codes: ir::Value,
        scale: Option<ir::Value>,
        format: Narrow,
        result: ir::Value,
    ) -> Result<Value<'c, 'a>> {
        let (e, from, to) = (&self.emit, self.kernel.ty(codes), self.kernel.ty(result));
        let packed = self.get(codes)?;
        let words = match from {
            ir::Type::Scalar(s) => vec![e.resize(packed, s.bits(), 32, false)?],
            from => e.elements(from, packed)?,
        };
        let scale = scale.map(|s| self.get(s)).transpose()?;
        let flush = self.kernel.fast_math.flush_subnormals;
        let decoding = Decoding { format, to: to.scalar(), n: to.lanes(), words, scale, flush };
        let elements = match self.backend.decode(e, &decoding)? {
            Some(elements) => elements,
            None => decoded(self.backend, e, &decoding)?,
        };
        e.gather(to, &elements)
    }
}

/// Codes by integers, and one addition of floats that rounds.
fn encoded<'c, 'a>(e: &Emitter<'c, 'a>, encoding: &Encoding<'c, 'a>) -> Result<Vec<Value<'c, 'a>>> {
    let Encoding { format, overflow, from, elements, scale, flush, .. } = encoding;
    let reciprocal = scale.map(|s| e.reciprocal_scale(s)).transpose()?;
    let mut codes = vec![];
    for x in elements {
        let wide = e.widened(*from, *x)?;
        // Of the element itself: arithmetic may change a NaN's.
        let sign = match from {
            Scalar::F16 => {
                let half = e.resize(e.bitcast(*x, e.int(16))?, 16, 32, false)?;
                e.with_word("arith.shli", half, 16)?
            }
            _ => e.bits_of(wide)?,
        };
        let scaled = match reciprocal {
            Some(r) => e.same("arith.mulf", &[wide, r])?,
            None => wide,
        };
        codes.push(if !format.signed() {
            power(e, *overflow, scaled)?
        } else if *from == Scalar::F32 || *flush {
            signed(e, *format, *overflow, code(e, *format, *overflow, scaled)?, sign)?
        } else {
            signed(e, *format, *overflow, short_code(e, *format, *overflow, scaled)?, sign)?
        });
    }
    packed(e, &codes, format.bits())
}

/// Codes of so many bits side by side.
pub fn packed<'c, 'a>(e: &Emitter<'c, 'a>, codes: &[Value<'c, 'a>], bits: u32) -> Result<Vec<Value<'c, 'a>>> {
    let mut words: Vec<Option<Value<'c, 'a>>> = vec![None; (codes.len() as u32 * bits).div_ceil(32) as usize];
    let mut put = |word: u32, part: Value<'c, 'a>| -> Result<()> {
        let slot = &mut words[word as usize];
        *slot = Some(match *slot {
            Some(below) => e.or_words(below, part)?,
            None => part,
        });
        Ok(())
    };
    for (code, i) in codes.iter().zip(0..) {
        let (word, shift) = (i * bits / 32, i * bits % 32);
        put(word, if shift == 0 { *code } else { e.with_word("arith.shli", *code, shift)? })?;
        if shift + bits > 32 {
            put(word + 1, e.with_word("arith.shrui", *code, 32 - shift)?)?;
        }
    }
    words.into_iter().map(|w| w.ok_or_else(|| "a word without codes".to_owned())).collect()
}

/// What becomes of magnitudes that are no numbers of a format.
struct Limits {
    /// Code of the largest magnitude that the sequence need give.
    largest: Option<u8>,
    /// The code of what is past a magnitude, in the sequence's own measure.
    nan: Option<(Past, u8)>,
}

/// A magnitude.
#[derive(Clone, Copy)]
enum Past {
    /// Half a step past the largest number, where rounding to even leaves it.
    Middle,
    /// Infinity.
    Infinity,
}

fn limits(format: Narrow, overflow: Overflow) -> Limits {
    let largest = format.largest();
    match (format.nan(), overflow) {
        (None, _) => Limits { largest: Some(largest), nan: None },
        (Some(nan), Overflow::Ieee) if format.infinity().is_none() => {
            Limits { largest: None, nan: Some((Past::Middle, nan)) }
        }
        (Some(nan), Overflow::Ieee) => Limits { largest: Some(largest + 1), nan: Some((Past::Infinity, nan)) },
        (Some(nan), Overflow::Saturate) => Limits { largest: Some(largest), nan: Some((Past::Infinity, nan)) },
    }
}

/// A code's magnitude, and the value that its size is told by.
struct Magnitude<'c, 'a> {
    code: Value<'c, 'a>,
    /// Bits of a float that is not negative; of a NaN more than infinity's.
    size: Value<'c, 'a>,
    /// The size half a step past the format's largest number.
    middle: u32,
}

/// A code of its magnitude and its sign, the upper bit of `sign`.
fn signed<'c, 'a>(
    e: &Emitter<'c, 'a>,
    format: Narrow,
    overflow: Overflow,
    Magnitude { code, size, middle }: Magnitude<'c, 'a>,
    sign: Value<'c, 'a>,
) -> Result<Value<'c, 'a>> {
    let moved = e.with_word("arith.shrui", sign, 32 - format.bits())?;
    let mut signed = e.or_words(code, e.with_word("arith.andi", moved, 1 << (format.bits() - 1))?)?;
    if format.has_no_negative_zero() {
        signed = e.choose(IntPredicate::Eq, code, 0, 0, signed)?;
    }
    match limits(format, overflow).nan {
        // The middle itself goes to the even code, which may be the largest number's.
        Some((Past::Middle, nan)) => {
            let from = middle + u32::from(format.largest() & 1 == 0);
            e.choose(IntPredicate::Uge, size, from, nan.into(), signed)
        }
        Some((Past::Infinity, nan)) => e.choose(IntPredicate::Ugt, size, EXPONENT, nan.into(), signed),
        None => Ok(signed),
    }
}

/// Of any `f32`: the number plus 2^(23 − fraction) of its binade, or of the smallest normal one, is rounded where the code
/// ends.
fn code<'c, 'a>(
    e: &Emitter<'c, 'a>,
    format: Narrow,
    overflow: Overflow,
    x: Value<'c, 'a>,
) -> Result<Magnitude<'c, 'a>> {
    let (_, fraction, bias) = format.parts();
    let size = e.with_word("arith.andi", e.bits_of(x)?, 0x7FFF_FFFF)?;
    let largest = format.decode(format.largest());
    let step = largest - format.decode(format.largest() - 1);
    let limited = match limits(format, overflow).largest {
        Some(code) if code == format.largest() => e.with_word("arith.minui", size, largest.to_bits())?,
        Some(_) => e.with_word("arith.minui", size, (largest + step).to_bits())?,
        None => size,
    };
    let smallest = (128 - bias) as u32;
    let field = e.with_word("arith.andi", limited, EXPONENT)?;
    let binade = e.with_word("arith.maxui", field, smallest << 23)?;
    let large = e.with_word("arith.addi", binade, (23 - fraction) << 23)?;
    let sum = e.same("arith.addf", &[e.float_of(limited)?, e.float_of(large)?])?;
    let units = e.same("arith.subi", &[e.bits_of(sum)?, large])?;
    let above = e.with_word("arith.shrui", binade, 23 - fraction)?;
    let above = e.with_word("arith.subi", above, smallest << fraction)?;
    let code = e.same("arith.addi", &[above, units])?;
    Ok(Magnitude { code, size, middle: (largest + step / 2.0).to_bits() })
}

/// Of an `f32` that came from f16 or bf16: times what the biases differ by, its bits are the code's and more, the format's
/// subnormal numbers being `f32`'s. Numbers of 11 bits lose none where they do not become 0 either way.
fn short_code<'c, 'a>(
    e: &Emitter<'c, 'a>,
    format: Narrow,
    overflow: Overflow,
    x: Value<'c, 'a>,
) -> Result<Magnitude<'c, 'a>> {
    let (_, fraction, bias) = format.parts();
    let below = 23 - fraction;
    let single = ir::Type::Scalar(Scalar::F32);
    let positive = e.float_intrinsic("llvm.fabs", single, &[x], &[])?;
    let factor = f32::from_bits((bias as u32) << 23);
    let size = e.bits_of(e.same("arith.mulf", &[positive, e.float_constant(single, factor)?])?)?;
    let limited = match limits(format, overflow).largest {
        Some(code) => e.with_word("arith.minui", size, u32::from(code) << below)?,
        None => size,
    };
    let odd = e.with_word("arith.andi", e.with_word("arith.shrui", limited, below)?, 1)?;
    let half = e.with_word("arith.addi", odd, (1 << (below - 1)) - 1)?;
    let code = e.with_word("arith.shrui", e.same("arith.addi", &[limited, half])?, below)?;
    Ok(Magnitude { code, size, middle: u32::from(format.largest()) << below | 1 << (below - 1) })
}

/// The e8m0 code of one number, in a word.
fn power<'c, 'a>(e: &Emitter<'c, 'a>, overflow: Overflow, x: Value<'c, 'a>) -> Result<Value<'c, 'a>> {
    // Makes 0 of −0: more bits than infinity's are then a NaN's or of a negative number.
    let zero = e.float_constant(ir::Type::Scalar(Scalar::F32), 0.0)?;
    let bits = e.bits_of(e.same("arith.addf", &[x, zero])?)?;
    // 2^127, the largest, or infinity, whose exponent field is NaN's code.
    let limit = if overflow == Overflow::Saturate { 0x7F00_0000 } else { EXPONENT };
    let limited = e.with_word("arith.minui", bits, limit)?;
    let odd = e.with_word("arith.andi", e.with_word("arith.shrui", limited, 23)?, 1)?;
    let half = e.with_word("arith.addi", odd, 0x3F_FFFF)?;
    // Below 2^−126 lies 2^−127, a subnormal number with a step of half the size.
    let half = e.choose(IntPredicate::Ult, limited, 0x80_0000, 0x1F_FFFF, half)?;
    let sum = e.same("arith.addi", &[limited, half])?;
    let code = e.with_word("arith.shrui", sum, 23)?;
    e.choose(IntPredicate::Ugt, bits, EXPONENT, 0xFF, code)
}

/// Code `i` of packed ones, in a word without other bits.
pub fn picked<'c, 'a>(e: &Emitter<'c, 'a>, words: &[Value<'c, 'a>], i: u32, bits: u32) -> Result<Value<'c, 'a>> {
    let (word, shift) = ((i * bits / 32) as usize, i * bits % 32);
    let mut code = if shift == 0 { words[word] } else { e.with_word("arith.shrui", words[word], shift)? };
    if shift + bits > 32 {
        code = e.or_words(code, e.with_word("arith.shli", words[word + 1], 32 - shift)?)?;
    }
    if shift + bits == 32 { Ok(code) } else { e.with_word("arith.andi", code, (1 << bits) - 1) }
}

/// Numbers of codes by integers, and one product of floats.
fn decoded<'c, 'a>(
    backend: &dyn Backend,
    e: &Emitter<'c, 'a>,
    decoding: &Decoding<'c, 'a>,
) -> Result<Vec<Value<'c, 'a>>> {
    let Decoding { format, to, n, words, scale, flush } = decoding;
    let scale = scale.map(|s| e.block_scale(s)).transpose()?;
    let whole = format.bits() != 6 || words.len().is_multiple_of(3);
    let mut elements = vec![];
    if !format.has_no_negative_zero() && format.signed() && whole {
        for half in halves(backend, e, *format, words)?.into_iter().take(*n as usize) {
            elements.push(match (to, scale) {
                (Scalar::F16, None) => half,
                _ => narrowed(e, e.widened(Scalar::F16, half)?, scale, *to, backend.bf16_is_dear())?,
            });
        }
        return Ok(elements);
    }
    for i in 0..*n {
        let code = picked(e, words, i, format.bits())?;
        let number = number(e, *format, code, *flush)?;
        elements.push(narrowed(e, number, scale, *to, backend.bf16_is_dear())?);
    }
    Ok(elements)
}

/// The numbers of codes as f16, which holds all of them.
fn halves<'c, 'a>(
    backend: &dyn Backend,
    e: &Emitter<'c, 'a>,
    format: Narrow,
    words: &[Value<'c, 'a>],
) -> Result<Vec<Value<'c, 'a>>> {
    let two = ir::Type::Vector(Scalar::F16, 2);
    let factors = codes::halves(&codes::Emitted { backend, e }, format, words)?;
    let factor = e.float_constant(two, f32::from_bits(((127 + factors.exponent) as u32) << 23))?;
    let mut elements = vec![];
    for word in factors.words {
        let pair = e.bitcast(word, e.ty(two))?;
        let pair = if factors.exponent == 0 { pair } else { e.same("arith.mulf", &[pair, factor])? };
        elements.extend(e.elements(two, pair)?);
    }
    Ok(elements)
}

/// An `f32` that a code means, times a scale, in the type of the elements.
pub fn narrowed<'c, 'a>(
    e: &Emitter<'c, 'a>,
    number: Value<'c, 'a>,
    scale: Option<Value<'c, 'a>>,
    to: Scalar,
    bf16_is_dear: bool,
) -> Result<Value<'c, 'a>> {
    let scaled = match scale {
        Some(s) => e.same("arith.mulf", &[number, s])?,
        None => number,
    };
    match to {
        Scalar::F32 => Ok(scaled),
        // Exact.
        Scalar::Bf16 if scale.is_none() && bf16_is_dear => {
            let upper = e.with_word("arith.shrui", e.bits_of(scaled)?, 16)?;
            e.bitcast(e.resize(upper, 32, 16, false)?, e.scalar(to))
        }
        to => e.value("arith.truncf", &[scaled], e.scalar(to), &[]),
    }
}

/// The `f32` that one code means.
fn number<'c, 'a>(e: &Emitter<'c, 'a>, format: Narrow, code: Value<'c, 'a>, flush: bool) -> Result<Value<'c, 'a>> {
    if format == Narrow::E8m0 {
        let finite = e.with_word("arith.maxui", e.with_word("arith.shli", code, 23)?, LEAST)?;
        return e.float_of(e.choose(IntPredicate::Eq, code, 0xFF, NAN, finite)?);
    }
    let (_, fraction, bias) = format.parts();
    // Exponent and fraction where an f32 has them, times what the biases differ by: subnormal numbers come out right.
    let magnitude = e.with_word("arith.andi", code, (1 << (format.bits() - 1)) - 1)?;
    let moved = e.with_word("arith.shli", magnitude, 23 - fraction)?;
    let sign = e.with_word("arith.shli", code, 32 - format.bits())?;
    let sign = e.with_word("arith.andi", sign, 0x8000_0000)?;
    let number = if flush {
        // The same without a subnormal number on the way.
        let single = e.scalar(Scalar::F32);
        let step = e.float_of(e.word(((128 - bias) as u32 - fraction) << 23)?)?;
        let steps = e.value("arith.uitofp", &[magnitude], single, &[])?;
        let subnormal = e.bits_of(e.same("arith.mulf", &[steps, step])?)?;
        let normal = e.with_word("arith.addi", moved, ((127 - bias) as u32) << 23)?;
        let is_normal = e.cmpi(IntPredicate::Uge, magnitude, e.word(1 << fraction)?, e.int(1))?;
        e.float_of(e.or_words(e.select(is_normal, normal, subnormal)?, sign)?)?
    } else {
        let factor = e.float_of(e.word(((254 - bias) as u32) << 23)?)?;
        e.same("arith.mulf", &[e.float_of(e.or_words(moved, sign)?)?, factor])?
    };
    let Some(nan) = format.nan() else { return Ok(number) };
    let nan_at = if format.has_no_negative_zero() { code } else { magnitude };
    let is_nan = e.cmpi(IntPredicate::Eq, nan_at, e.word(nan.into())?, e.int(1))?;
    e.select(is_nan, e.float_of(e.word(NAN)?)?, number)
}

/// Two elements side by side.
pub fn pair<'c, 'a>(e: &Emitter<'c, 'a>, a: Value<'c, 'a>, b: Value<'c, 'a>) -> Result<Value<'c, 'a>> {
    e.value("vector.from_elements", &[a, b], Type::vector(&[2], a.r#type()), &[])
}
