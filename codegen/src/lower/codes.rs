//! Packed codes of narrow floats as factors of wider types: exactly, but for a power of two that all share.

use lathe_dsl::ir::{self, Scalar};
use lathe_dsl::numerics::Narrow;
use melior::ir::Value;

use super::emit::{Emitter, Result};
use crate::target::Backend;

/// Operations on 32-bit words, emitted or, in tests, done.
pub trait Words {
    /// A word.
    type Word: Copy;

    /// A constant.
    fn word(&self, bits: u32) -> Result<Self::Word>;

    /// `a & bits`.
    fn and(&self, a: Self::Word, bits: u32) -> Result<Self::Word>;

    /// `a & b`.
    fn both(&self, a: Self::Word, b: Self::Word) -> Result<Self::Word>;

    /// `a | b`.
    fn or(&self, a: Self::Word, b: Self::Word) -> Result<Self::Word>;

    /// `a + b`, modulo 2^32.
    fn sum(&self, a: Self::Word, b: Self::Word) -> Result<Self::Word>;

    /// `a << n`.
    fn left(&self, a: Self::Word, n: u32) -> Result<Self::Word>;

    /// `a >> n`.
    fn right(&self, a: Self::Word, n: u32) -> Result<Self::Word>;

    /// Bytes of `low` (0 to 3) and `high` (4 to 7).
    fn bytes(&self, low: Self::Word, high: Self::Word, selector: u32) -> Result<Self::Word>;

    /// `a + bits`, modulo 2^32.
    fn add(&self, a: Self::Word, bits: u32) -> Result<Self::Word> {
        self.sum(a, self.word(bits)?)
    }
}

/// Emits the operations for a target.
#[derive(Clone, Copy)]
pub struct Emitted<'r, 'c, 'a> {
    /// The target.
    pub backend: &'r dyn Backend,
    /// The place.
    pub e: &'r Emitter<'c, 'a>,
}

impl<'c, 'a> Words for Emitted<'_, 'c, 'a> {
    type Word = Value<'c, 'a>;

    fn word(&self, bits: u32) -> Result<Value<'c, 'a>> {
        self.e.word(bits)
    }

    fn and(&self, a: Value<'c, 'a>, bits: u32) -> Result<Value<'c, 'a>> {
        self.both(a, self.e.word(bits)?)
    }

    fn both(&self, a: Value<'c, 'a>, b: Value<'c, 'a>) -> Result<Value<'c, 'a>> {
        self.e.same("arith.andi", &[a, b])
    }

    fn or(&self, a: Value<'c, 'a>, b: Value<'c, 'a>) -> Result<Value<'c, 'a>> {
        self.e.same("arith.ori", &[a, b])
    }

    fn sum(&self, a: Value<'c, 'a>, b: Value<'c, 'a>) -> Result<Value<'c, 'a>> {
        self.e.same("arith.addi", &[a, b])
    }

    fn left(&self, a: Value<'c, 'a>, n: u32) -> Result<Value<'c, 'a>> {
        self.e.same("arith.shli", &[a, self.e.word(n)?])
    }

    fn right(&self, a: Value<'c, 'a>, n: u32) -> Result<Value<'c, 'a>> {
        self.e.same("arith.shrui", &[a, self.e.word(n)?])
    }

    fn bytes(&self, low: Value<'c, 'a>, high: Value<'c, 'a>, selector: u32) -> Result<Value<'c, 'a>> {
        self.backend.perm_b32(self.e, [high, low, self.e.word(selector)?])
    }
}

/// Factors in words, in the order of their codes.
pub struct Factors<W> {
    /// The words, lowest element first.
    pub words: Vec<W>,
    /// What the codes stand for is that of the factors times 2 to this power.
    pub exponent: i32,
}

/// Codes of 8 bits or fewer each in a byte of its own, its lower bits.
pub fn bytes<T: Words>(w: &T, format: Narrow, packed: &[T::Word]) -> Result<Vec<T::Word>> {
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
                    let mut four = if shift == 0 { three[word] } else { w.right(three[word], shift)? };
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
pub fn fp8<T: Words>(w: &T, format: Narrow, packed: &[T::Word]) -> Result<(Narrow, Factors<T::Word>)> {
    // Exponent and fraction go where the format has them, the sign to the top.
    let (like, exponent, sign, up) = match format {
        Narrow::E2m1 => (Narrow::E5m2, 14, 0x0808_0808, 1),
        Narrow::E3m2 => (Narrow::E5m2, 12, 0x2020_2020, 0),
        Narrow::E2m3 => (Narrow::E4m3, 6, 0x2020_2020, 0),
        Narrow::E4m3 | Narrow::E5m2 => return Ok((format, Factors { words: packed.to_vec(), exponent: 0 })),
        format => return Err(format!("{format} is no factor")),
    };
    let place = |bytes| {
        let size = w.and(bytes, sign - 0x0101_0101)?;
        let size = if up == 0 { size } else { w.left(size, up)? };
        w.or(w.left(w.and(bytes, sign)?, 8 - format.bits())?, size)
    };
    let words = bytes(w, format, packed)?.into_iter().map(place).collect::<Result<_>>()?;
    Ok((like, Factors { words, exponent }))
}

/// Codes as f16: two of them a word.
pub fn halves<T: Words>(w: &T, format: Narrow, packed: &[T::Word]) -> Result<Factors<T::Word>> {
    let (like, Factors { words: codes, mut exponent }) = fp8(w, format, packed)?;
    let zero = w.word(0)?;
    let mut words = vec![];
    for four in codes {
        for selector in [0x0104_0004, 0x0304_0204] {
            // The code is the upper byte, which of e5m2 is all there is to do.
            let upper = w.bytes(four, zero, selector)?;
            words.push(if like == Narrow::E5m2 { upper } else { wider(w, format, upper)? });
        }
    }
    if like == Narrow::E4m3 {
        exponent += 8;
    }
    Ok(Factors { words, exponent })
}

/// Two e4m3 codes in the upper bytes of halves, as f16 of the 256th part.
fn wider<T: Words>(w: &T, format: Narrow, upper: T::Word) -> Result<T::Word> {
    let mut size = w.and(w.right(upper, 1)?, 0x3F80_3F80)?;
    if format == Narrow::E4m3 {
        // All ones are NaN: one more would be the exponent's next bit, with which the exponent is all ones.
        size = w.or(size, w.and(w.add(size, 0x0080_0080)?, 0x4000_4000)?)?;
    }
    w.or(size, w.and(upper, 0x8000_8000)?)
}

/// Four e4m3 codes as the fnuz codes of half their numbers: the same bits but for −0, whose code is fnuz's NaN, and the NaNs,
/// which become that.
pub fn ocp_as_fnuz<T: Words>(w: &T, codes: T::Word) -> Result<T::Word> {
    let size = w.and(codes, 0x7F7F_7F7F)?;
    // The sign, where there is something else.
    let sign = w.and(w.both(codes, w.add(size, 0x7F7F_7F7F)?)?, 0x8080_8080)?;
    // 0x7F plus one is 0x80.
    let next = w.and(w.right(w.add(size, 0x0101_0101)?, 7)?, 0x0101_0101)?;
    w.or(w.sum(size, next)?, sign)
}

/// `f32` zeros.
pub fn no_sums<'c, 'a>(e: &Emitter<'c, 'a>, n: u32) -> Result<Value<'c, 'a>> {
    e.constant(ir::Type::Vector(Scalar::F32, n), 0)
}

#[cfg(test)]
mod tests {
    use lathe_dsl::builder::f16;

    use super::*;

    /// Does the operations.
    struct Done;

    impl Words for Done {
        type Word = u32;

        fn word(&self, bits: u32) -> Result<u32> {
            Ok(bits)
        }

        fn and(&self, a: u32, bits: u32) -> Result<u32> {
            Ok(a & bits)
        }

        fn both(&self, a: u32, b: u32) -> Result<u32> {
            Ok(a & b)
        }

        fn or(&self, a: u32, b: u32) -> Result<u32> {
            Ok(a | b)
        }

        fn sum(&self, a: u32, b: u32) -> Result<u32> {
            Ok(a.wrapping_add(b))
        }

        fn left(&self, a: u32, n: u32) -> Result<u32> {
            Ok(a << n)
        }

        fn right(&self, a: u32, n: u32) -> Result<u32> {
            Ok(a >> n)
        }

        fn bytes(&self, low: u32, high: u32, selector: u32) -> Result<u32> {
            let all = u64::from(high) << 32 | u64::from(low);
            Ok(u32::from_le_bytes(selector.to_le_bytes().map(|s| (all >> (8 * s)) as u8)))
        }
    }

    /// Sixteen codes after each other, of which the one at `at` is this one and its neighbours are all ones; in words.
    fn packed(format: Narrow, at: u32, code: u8) -> Vec<u32> {
        let ones = u128::MAX >> (128 - 16 * format.bits());
        let place = at * format.bits();
        let all = ones & !((u128::from(u8::MAX) >> (8 - format.bits())) << place) | u128::from(code) << place;
        (0..format.bits() / 2).map(|i| (all >> (32 * i)) as u32).collect()
    }

    /// Runs a check for every code of every format at every place.
    fn for_codes(check: impl Fn(Narrow, u32, u8, f32)) {
        for format in [Narrow::E4m3, Narrow::E5m2, Narrow::E2m3, Narrow::E3m2, Narrow::E2m1] {
            for (at, code) in (0..16).flat_map(|at| (0..1u32 << format.bits()).map(move |c| (at, c as u8))) {
                check(format, at, code, format.decode(code));
            }
        }
    }

    #[track_caller]
    fn same(wanted: f32, got: f32, what: &str) {
        assert!(wanted.to_bits() == got.to_bits() || wanted.is_nan() && got.is_nan(), "{what}: {got} for {wanted}");
    }

    #[test]
    fn codes_become_fp8_of_their_numbers() {
        for_codes(|format, at, code, number| {
            let (like, made) = fp8(&Done, format, &packed(format, at, code)).unwrap();
            let byte = (made.words[at as usize / 4] >> (8 * (at % 4))) as u8;
            same(number, like.decode(byte) * 2f32.powi(made.exponent), &format!("{format} {code:#x} at {at}"));
        });
    }

    #[test]
    fn codes_become_halves_of_their_numbers() {
        for_codes(|format, at, code, number| {
            let made = halves(&Done, format, &packed(format, at, code)).unwrap();
            let half = f16::from_bits((made.words[at as usize / 2] >> (16 * (at % 2))) as u16);
            same(number, half.to_f32() * 2f32.powi(made.exponent), &format!("{format} {code:#x} at {at}"));
        });
    }

    #[test]
    fn codes_get_bytes_of_their_own() {
        for_codes(|format, at, code, _| {
            let made = bytes(&Done, format, &packed(format, at, code)).unwrap();
            assert_eq!((made[at as usize / 4] >> (8 * (at % 4))) as u8, code, "{format} {code:#x} at {at}");
        });
    }

    #[test]
    fn ocp_codes_become_fnuz_codes_of_half_their_numbers() {
        for (at, code) in (0..4).flat_map(|at| (0..=255).map(move |c| (at, c))) {
            let made = ocp_as_fnuz(&Done, packed(Narrow::E4m3, at, code)[0]).unwrap().to_le_bytes();
            let half = Narrow::E4m3.decode(code) / 2.0;
            // There is one zero.
            same(half + 0.0, Narrow::E4m3Fnuz.decode(made[at as usize]), &format!("{code:#x} at {at}"));
            assert!((0..4).all(|other| other == at || made[other as usize] == 0x80), "{code:#x} at {at}");
        }
    }
}
