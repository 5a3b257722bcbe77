//! Block-scaled matrix products: gfx950's own instruction; elsewhere products of f16 (gfx942) or fp8 (gfx1201), a block at a
//! time.

use lathe_dsl::ir::{Scalar, Type as IrType};
use lathe_dsl::numerics::Narrow;
use lathe_dsl::target::Generation;
use melior::ir::{Type, Value, ValueLike};

use super::Amdgpu;
use super::lanes::dpp;
use super::matrix::{call_mfma, fp8_wmma};
use crate::lower::codes::{Emitted, fp8, halves, no_sums};
use crate::lower::emit::{Emitter, Result};
use crate::lower::lanes::Lanes;
use crate::lower::matrix::{Scaled, sums, word_vector};
use crate::lower::scales::{BLOCKS, packed, poison};

/// A format as the instruction names it, and 32-bit registers of 32 elements of it.
fn format_of(format: Narrow) -> Result<(u32, u32)> {
    match format {
        Narrow::E4m3 => Ok((0, 8)),
        Narrow::E5m2 => Ok((1, 8)),
        Narrow::E2m3 => Ok((2, 6)),
        Narrow::E3m2 => Ok((3, 6)),
        Narrow::E2m1 => Ok((4, 4)),
        format => Err(format!("a scaled product of {format}")),
    }
}

/// f16 MFMA or fp8 WMMA of so many words of either factor at a time.
const WORDS: usize = 2;

impl Amdgpu {
    pub(super) fn scaled_product<'c, 'a>(&self, at: &Lanes<'_, 'c, 'a>, p: &Scaled<'c, 'a>) -> Result<Value<'c, 'a>> {
        if self.chip.generation == Generation::Cdna4 { native(at.e, p) } else { self.by_blocks(at, p) }
    }

    /// One product a block, from zero; its sums times 2^(a + b − 254) by `v_ldexp_f32`, added up.
    fn by_blocks<'c, 'a>(&self, at: &Lanes<'_, 'c, 'a>, p: &Scaled<'c, 'a>) -> Result<Value<'c, 'a>> {
        let e = at.e;
        let emitted = Emitted { backend: self, e };
        let mut exponent = -254;
        let (mut factors, mut names) = (vec![], vec![]);
        for (format, registers) in p.formats.into_iter().zip(&p.factors) {
            let words = registers.words(e)?;
            let made = if self.chip.generation == Generation::Cdna3 {
                halves(&emitted, format, &words)?
            } else {
                let (like, made) = fp8(&emitted, format, &words)?;
                names.push(if like == Narrow::E4m3 { "fp8" } else { "bf8" });
                made
            };
            exponent += made.exponent;
            factors.push(made.words);
        }
        let [of_a, of_b] = [0, 1].map(|i| packed(self, at, p.scales[i], p.bytes[i]));
        let (of_a, of_b) = (of_a?, of_b?);
        let n = p.c.ty.lanes();
        let rows = self.by_rows(e, of_a, n)?;
        let poisons = self.by_rows(e, e.bitcast(poison(e, of_a)?, e.int(32))?, n)?;
        let column = pairs(e, of_b)?;
        let column = [plus(e, column[0], exponent)?, plus(e, column[1], exponent)?];
        let column_poison = poison(e, of_b)?;
        let mut exponents = vec![];
        let mut total = vec![];
        for ((row, row_poison), c) in rows.into_iter().zip(poisons).zip(p.c.elements(e)?) {
            let row = pairs(e, row)?;
            let sum = |i: usize| e.same("arith.addi", &[row[i], column[i]]);
            exponents.push([sum(0)?, sum(1)?]);
            let poison = e.same("arith.addf", &[e.bitcast(row_poison, e.scalar(Scalar::F32))?, column_poison])?;
            total.push(e.same("arith.addf", &[c, poison])?);
        }
        for block in 0..BLOCKS {
            let mut sum = no_sums(e, n)?;
            let words = factors[0].len() / BLOCKS;
            let of_block = words * block..words * (block + 1);
            let (a, b) = (&factors[0][of_block.clone()], &factors[1][of_block]);
            for (a, b) in a.chunks_exact(WORDS).zip(b.chunks_exact(WORDS)) {
                let (a, b) = (word_vector(e, a)?, word_vector(e, b)?);
                sum = match names[..] {
                    [a_name, b_name] => fp8_wmma(e, (a_name, b_name), a, b, sum)?,
                    _ => {
                        let four = Type::vector(&[4], e.scalar(Scalar::F16));
                        call_mfma(e, "f32.16x16x16f16", [e.bitcast(a, four)?, e.bitcast(b, four)?], sum)?
                    }
                };
            }
            for (i, total) in total.iter_mut().enumerate() {
                let exponent = e.part(exponents[i][block % 2], block as u32 / 2, e.int(16))?;
                let exponent = e.resize(exponent, 16, 32, true)?;
                let one = e.extract(Scalar::F32, sum, i as u32)?;
                let scaled = e.call("llvm.ldexp.f32.i32", &[one, exponent], one.r#type())?;
                *total = e.same("arith.addf", &[*total, scaled])?;
            }
        }
        sums(e, Scalar::F32, &total)
    }

    /// Of a word that the lanes of every row of 16 have for the 16 rows of a matrix, that of every row of which a lane has `n`
    /// sums: lanes of the wave's row `g` have rows `n·g` and following.
    fn by_rows<'c, 'a>(&self, e: &Emitter<'c, 'a>, word: Value<'c, 'a>, n: u32) -> Result<Vec<Value<'c, 'a>>> {
        let mut turned = word;
        for g in 1..self.chip.wave / 16 {
            turned = Self::dpp_in_row(e, turned, word, dpp::ROW_ROR | (16 - n * g), g)?;
        }
        (0..n).map(|r| Self::dpp(e, turned, dpp::ROW_LANE | r, false)).collect()
    }
}

/// The four bytes of a word in halves: the first and third, the second and fourth.
fn pairs<'c, 'a>(e: &Emitter<'c, 'a>, word: Value<'c, 'a>) -> Result<[Value<'c, 'a>; 2]> {
    let pair = |word| {
        let bytes = e.same("arith.andi", &[word, e.word(0x00FF_00FF)?])?;
        e.bitcast(bytes, Type::vector(&[2], e.int(16)))
    };
    Ok([pair(word)?, pair(e.same("arith.shrui", &[word, e.word(8)?])?)?])
}

/// A number added to both halves.
fn plus<'c, 'a>(e: &Emitter<'c, 'a>, pair: Value<'c, 'a>, n: i32) -> Result<Value<'c, 'a>> {
    let constant = e.constant(IrType::Vector(Scalar::I16, 2), u64::from(n as u16))?;
    e.same("arith.addi", &[pair, constant])
}

/// `v_mfma_scale_f32_16x16x128_f8f6f4`.
fn native<'c, 'a>(e: &Emitter<'c, 'a>, p: &Scaled<'c, 'a>) -> Result<Value<'c, 'a>> {
    let [(a_format, a_words), (b_format, b_words)] = [format_of(p.formats[0])?, format_of(p.formats[1])?];
    // The instruction takes scales out of vector registers alone, and LLVM takes two zeros for a product without scales, by
    // whatever it finds that they are zero: it must not know what they are.
    let scale = |i: usize| e.asm("", "=v,0", &[p.scales[i].value], &[e.int(32)], false).map(|made| made[0]);
    let operands = [
        p.factors[0].value,
        p.factors[1].value,
        p.c.value,
        e.word(a_format)?,
        e.word(b_format)?,
        e.word(p.bytes[0])?,
        scale(0)?,
        e.word(p.bytes[1])?,
        scale(1)?,
    ];
    let name = format!("llvm.amdgcn.mfma.scale.f32.16x16x128.f8f6f4.v{a_words}i32.v{b_words}i32");
    e.call(&name, &operands, p.c.value.r#type())
}

/// Where scales go, lane by lane, against the layouts.
#[cfg(test)]
mod tests {
    use lathe_dsl::mma::{Fragments, scaled};

    use super::*;

    /// Of every lane, the word that `packed` makes, from each lane's code of its block (two, where it has two words).
    fn packed_words(wave: u32, codes: impl Fn(u32, u32) -> u32) -> Vec<u32> {
        let mut words: Vec<u32> = (0..wave)
            .map(|l| {
                let own = if wave == 64 { codes(l, 0) } else { codes(l, 0) | codes(l, 1) << 16 };
                own << (l >> 1 & (wave / 2 - 8))
            })
            .collect();
        for offset in [16, 32] {
            if offset < wave {
                words = (0..wave).map(|l| words[l as usize] | words[(l ^ offset) as usize]).collect();
            }
        }
        words
    }

    #[test]
    fn scales_reach_the_rows_and_columns_that_they_are_of() {
        for (on, wave, n) in [(Fragments::Cdna3, 64, 4), (Fragments::Rdna4, 32, 8)] {
            let all = scaled(on, Narrow::E2m1, Narrow::E2m1).unwrap();
            // A code that tells its row and block.
            let of_a = packed_words(wave, |lane, element| {
                let (row, block) = all.scale_a.at(lane, element);
                row * 4 + block
            });
            let of_b = packed_words(wave, |lane, element| {
                let (block, col) = all.scale_b.at(lane, element);
                col * 4 + block
            });
            // `by_rows`: row_ror:(16 − n·g) in row g of the wave, then lane r of every row.
            let turned = |l: u32| match l / 16 {
                0 => of_a[l as usize],
                g => of_a[((l & !15) | (l.wrapping_sub(16 - n * g) & 15)) as usize],
            };
            for (lane, r) in (0..wave).flat_map(|l| (0..n).map(move |r| (l, r))) {
                let (row, col) = all.tiles.c.at(lane, r);
                let codes = |of: u32| u32::from_le_bytes([0, 1, 2, 3].map(|block| (of * 4 + block) as u8));
                assert_eq!(turned((lane & !15) | r), codes(row), "{on}: rows, lane {lane} register {r}");
                assert_eq!(of_b[lane as usize], codes(col), "{on}: columns, lane {lane}");
            }
        }
    }

    #[test]
    fn a_block_along_k_is_one_run_of_words() {
        for on in [Fragments::Cdna3, Fragments::Rdna4] {
            let all = scaled(on, Narrow::E4m3, Narrow::E4m3).unwrap();
            let per_block = all.tiles.a.elements() / BLOCKS as u32;
            for (lane, e) in (0..on.wave()).flat_map(|l| (0..all.tiles.a.elements()).map(move |e| (l, e))) {
                let ((row, k), (k_b, col)) = (all.tiles.a.at(lane, e), all.tiles.b.at(lane, e));
                // Lanes and elements of one number have the same place along K, whatever permutation of it that is.
                assert_eq!((row, k, k / 32), (col, k_b, e / per_block), "{on}");
                assert_eq!(row, lane % 16);
            }
        }
    }
}
