//! Packed codes of narrow floats as factors of wider types: exactly, but for a power of two that all share.

use lathe_dsl::ir::{self, Scalar};
use lathe_dsl::numerics::Narrow;
use melior::ir::Value;

use super::emit::{Emitter, Result};
use crate::target::Backend;

/// Factors in words, in the order of their codes.
pub struct Factors<'c, 'a> {
    /// The words, lowest element first.
    pub words: Vec<Value<'c, 'a>>,
    /// What the codes stand for is that of the factors times 2 to this power.
    pub exponent: i32,
}

/// Writes words.
#[derive(Clone, Copy)]
struct Words<'r, 'c, 'a> {
    backend: &'r dyn Backend,
    e: &'r Emitter<'c, 'a>,
}

impl<'c, 'a> Words<'_, 'c, 'a> {
    fn and(&self, a: Value<'c, 'a>, bits: u32) -> Result<Value<'c, 'a>> {
        self.e.same("arith.andi", &[a, self.e.word(bits)?])
    }

    fn add(&self, a: Value<'c, 'a>, bits: u32) -> Result<Value<'c, 'a>> {
        self.e.same("arith.addi", &[a, self.e.word(bits)?])
    }

    fn or(&self, a: Value<'c, 'a>, b: Value<'c, 'a>) -> Result<Value<'c, 'a>> {
        self.e.same("arith.ori", &[a, b])
    }

    fn left(&self, a: Value<'c, 'a>, n: u32) -> Result<Value<'c, 'a>> {
        self.e.same("arith.shli", &[a, self.e.word(n)?])
    }

    fn right(&self, a: Value<'c, 'a>, n: u32) -> Result<Value<'c, 'a>> {
        if n == 0 { Ok(a) } else { self.e.same("arith.shrui", &[a, self.e.word(n)?]) }
    }

    /// Bytes of `low` (0 to 3) and `high` (4 to 7).
    fn bytes(&self, low: Value<'c, 'a>, high: Value<'c, 'a>, selector: u32) -> Result<Value<'c, 'a>> {
        self.backend.perm_b32(self.e, [high, low, self.e.word(selector)?])
    }
}

/// Codes of 8 bits or fewer each in a byte of its own, its lower bits.
pub fn bytes<'c, 'a>(
    backend: &dyn Backend,
    e: &Emitter<'c, 'a>,
    format: Narrow,
    packed: &[Value<'c, 'a>],
) -> Result<Vec<Value<'c, 'a>>> {
    let w = Words { backend, e };
    let mut out = vec![];
    match format.bits() {
        4 => {
            for word in packed {
                let (even, odd) = (w.and(*word, 0x0F0F_0F0F)?, w.and(w.right(*word, 4)?, 0x0F0F_0F0F)?);
                out.extend([w.bytes(even, odd, 0x0501_0400)?, w.bytes(even, odd, 0x0703_0602)?]);
            }
        }
        6 => {
            for three in packed.chunks_exact(3) {
                for i in 0..4 {
                    // 24 bits: four codes; then two of 12 bits apart, then each.
                    let (word, shift) = (i * 24 / 32, (i * 24 % 32) as u32);
                    let mut four = w.right(three[word], shift)?;
                    if shift > 8 {
                        four = w.or(four, w.left(three[word + 1], 32 - shift)?)?;
                    }
                    let pairs = w.or(w.and(four, 0xFFF)?, w.and(w.left(four, 4)?, 0x0FFF_0000)?)?;
                    out.push(w.or(w.and(pairs, 0x003F_003F)?, w.and(w.left(pairs, 2)?, 0x3F00_3F00)?)?);
                }
            }
        }
        _ => out.extend(packed),
    }
    Ok(out)
}

/// Codes as fp8 of one of OCP's two formats, which is told: four of them a word.
pub fn fp8<'c, 'a>(
    backend: &dyn Backend,
    e: &Emitter<'c, 'a>,
    format: Narrow,
    packed: &[Value<'c, 'a>],
) -> Result<(Narrow, Factors<'c, 'a>)> {
    let w = Words { backend, e };
    // Exponent and fraction go where the format has them, the sign to the top.
    let (like, exponent, sign, up) = match format {
        Narrow::E2m1 => (Narrow::E5m2, 14, 0x0808_0808, 1),
        Narrow::E3m2 => (Narrow::E5m2, 12, 0x2020_2020, 0),
        Narrow::E2m3 => (Narrow::E4m3, 6, 0x2020_2020, 0),
        Narrow::E4m3 | Narrow::E5m2 => return Ok((format, Factors { words: packed.to_vec(), exponent: 0 })),
        format => return Err(format!("{format} is no factor")),
    };
    let place = |bytes: Value<'c, 'a>| {
        let size = w.and(bytes, sign - 0x0101_0101)?;
        let size = if up == 0 { size } else { w.left(size, up)? };
        w.or(w.left(w.and(bytes, sign)?, 8 - format.bits())?, size)
    };
    let words = bytes(backend, e, format, packed)?.into_iter().map(place).collect::<Result<_>>()?;
    Ok((like, Factors { words, exponent }))
}

/// Codes as f16: two of them a word.
pub fn halves<'c, 'a>(
    backend: &dyn Backend,
    e: &Emitter<'c, 'a>,
    format: Narrow,
    packed: &[Value<'c, 'a>],
) -> Result<Factors<'c, 'a>> {
    let w = Words { backend, e };
    let (like, Factors { words: codes, mut exponent }) = fp8(backend, e, format, packed)?;
    let zero = e.word(0)?;
    let mut words = vec![];
    for four in codes {
        for selector in [0x0104_0004, 0x0304_0204] {
            // The code is the upper byte, which of e5m2 is all there is to do.
            let upper = w.bytes(four, zero, selector)?;
            words.push(if like == Narrow::E5m2 { upper } else { wider(&w, format, upper)? });
        }
    }
    if like == Narrow::E4m3 {
        exponent += 8;
    }
    Ok(Factors { words, exponent })
}

/// Two e4m3 codes in the upper bytes of halves, as f16 of the 256th part.
fn wider<'c, 'a>(w: &Words<'_, 'c, 'a>, format: Narrow, upper: Value<'c, 'a>) -> Result<Value<'c, 'a>> {
    let mut size = w.and(w.right(upper, 1)?, 0x3F80_3F80)?;
    if format == Narrow::E4m3 {
        // All ones are NaN: one more would be the exponent's next bit, with which the exponent is all ones.
        size = w.or(size, w.and(w.add(size, 0x0080_0080)?, 0x4000_4000)?)?;
    }
    w.or(size, w.and(upper, 0x8000_8000)?)
}

/// `f32` zeros.
pub fn no_sums<'c, 'a>(e: &Emitter<'c, 'a>, n: u32) -> Result<Value<'c, 'a>> {
    e.constant(ir::Type::Vector(Scalar::F32, n), 0)
}
