//! Block-scaled matrix products: sm_120a's own instructions; elsewhere products of f16, a block at a time.
//!
//! The layouts are made for both: four lanes side by side hold 8 elements of a block each, eight rows 4 lanes apart, and rows
//! (columns of B) 8 apart in one lane.

use lathe_dsl::ir::{Scalar, ShuffleOp};
use lathe_dsl::numerics::Narrow;
use lathe_dsl::target::Generation;
use melior::ir::Value;

use super::Nvptx;
use super::matrix::{HALF, as_halves, call_mma, fp8_halves, half_mma};
use crate::lower::codes::{Emitted, Factors, Words, bytes, halves};
use crate::lower::emit::{Emitter, Result};
use crate::lower::lanes::{Amount, Lanes};
use crate::lower::matrix::{Scaled, sums};
use crate::lower::scales::{BLOCKS, packed, poison};

/// Products of 8 columns that make one of 16.
const TILES: usize = 2;

/// Words of a factor: by rows (columns of B) up to 7 and from 8 on, then by block, then along K.
struct ByBlocks<'r, 'c, 'a>(&'r [Value<'c, 'a>]);

impl<'r, 'c, 'a> ByBlocks<'r, 'c, 'a> {
    fn get(&self, half: usize, block: usize) -> &'r [Value<'c, 'a>] {
        let n = self.0.len() / 2 / BLOCKS;
        &self.0[(half * BLOCKS + block) * n..][..n]
    }
}

impl Nvptx {
    pub(super) fn scaled_product<'c, 'a>(&self, at: &Lanes<'_, 'c, 'a>, p: &Scaled<'c, 'a>) -> Result<Value<'c, 'a>> {
        let [a, b] = [0, 1].map(|i| packed(self, at, p.scales[i], p.bytes[i]));
        let scales = [a?, b?];
        let d = if self.chip.generation == Generation::Blackwell120 {
            self.natively(at, p, scales)?
        } else {
            self.by_blocks(at, p, scales)?
        };
        sums(at.e, Scalar::F32, &d)
    }

    /// The word of a lane below 16.
    fn of_lane<'c, 'a>(
        &self,
        at: &Lanes<'_, 'c, 'a>,
        word: Value<'c, 'a>,
        lane: Value<'c, 'a>,
    ) -> Result<Value<'c, 'a>> {
        let amount = Amount { value: lane, constant: None, max: 15 };
        Ok(self.shuffle_words(at, ShuffleOp::Idx, &[word], amount, 32)?[0])
    }

    /// `mma` with `block_scale`: of fp4 two blocks at a time, of others one, with every code in a byte.
    ///
    /// Of four lanes side by side the first two give the scales of a row of A and of that 8 below it, and the first that of a
    /// column of the first eight, the second that of one of the others: the same lanes for A and B. All blocks' are in one word,
    /// of which a product names a byte, or two.
    fn natively<'c, 'a>(
        &self,
        at: &Lanes<'_, 'c, 'a>,
        p: &Scaled<'c, 'a>,
        scales: [Value<'c, 'a>; 2],
    ) -> Result<Vec<Value<'c, 'a>>> {
        let e = at.e;
        let lane = self.lane(at)?;
        let eight = e.same("arith.shli", &[at.and(lane, 1)?, e.word(3)?])?;
        let row = e.same("arith.ori", &[e.same("arith.shrui", &[lane, e.word(2)?])?, eight])?;
        let [a_scale, b_scale] = scales.map(|word| self.of_lane(at, word, row));
        let (a_scale, b_scale) = (a_scale?, b_scale?);
        let fp4 = p.formats == [Narrow::E2m1; 2];
        let emitted = Emitted { backend: self, e };
        let mut factors = vec![];
        for (format, registers) in p.formats.into_iter().zip(&p.factors) {
            let words = registers.words(e)?;
            factors.push(if fp4 { words } else { containers(&emitted, format, &words)? });
        }
        let (a, b) = (ByBlocks(&factors[0]), ByBlocks(&factors[1]));
        let [a_format, b_format] = p.formats;
        let name = if fp4 {
            "block.scale.m16n8k64.row.col.mxf4.scale.2x.f32.e2m1.e2m1.f32.ue8m0".to_owned()
        } else {
            format!("block.scale.m16n8k32.row.col.mxf8f6f4.scale.1x.f32.{a_format}.{b_format}.f32.ue8m0")
        };
        let id = |n: usize| e.int_const(16, n as i64);
        let mut d = p.c.elements(e)?;
        for tile in 0..TILES {
            let sums = 4 * tile..4 * tile + 4;
            for step in (0..BLOCKS).step_by(if fp4 { 2 } else { 1 }) {
                // Words along K: of two blocks one each, or two of one block.
                let along = |f: &ByBlocks<'_, 'c, 'a>, half| -> [Value<'c, 'a>; 2] {
                    match *f.get(half, step) {
                        [first, second] => [first, second],
                        ref only => [only[0], f.get(half, step + 1)[0]],
                    }
                };
                let (low, high, b) = (along(&a, 0), along(&a, 1), along(&b, tile));
                let a = [low[0], high[0], low[1], high[1]];
                let scales = [a_scale, id(step)?, id(0)?, b_scale, id(step)?, id(tile)?];
                let sum = call_mma(e, &name, &[&a, &b, &d[sums.clone()], &scales], Scalar::F32)?;
                d[sums.clone()].copy_from_slice(&sum);
            }
        }
        Ok(d)
    }

    /// Two products of f16 a block, from zero; their sums times 2^(a + b − 254), added up.
    fn by_blocks<'c, 'a>(
        &self,
        at: &Lanes<'_, 'c, 'a>,
        p: &Scaled<'c, 'a>,
        scales: [Value<'c, 'a>; 2],
    ) -> Result<Vec<Value<'c, 'a>>> {
        let e = at.e;
        let emitted = Emitted { backend: self, e };
        let (mut factors, mut exponent) = (vec![], 0);
        for (format, registers) in p.formats.into_iter().zip(&p.factors) {
            let words = registers.words(e)?;
            if format.bits() == 8 {
                let pairs = words.iter().map(|w| fp8_halves(e, format, *w)).collect::<Result<Vec<_>>>()?;
                factors.push(pairs.concat());
            } else {
                let Factors { words, exponent: own } = halves(&emitted, format, &words)?;
                factors.push(as_halves(e, &words)?);
                exponent += own;
            }
        }
        let (a, b) = (ByBlocks(&factors[0]), ByBlocks(&factors[1]));

        // A lane has the sums of rows g and g + 8, and of columns 2t, 2t + 1, 2t + 8 and 2t + 9.
        let lane = self.lane(at)?;
        let (g, t2) =
            (e.same("arith.shrui", &[lane, e.word(2)?])?, e.same("arith.shli", &[at.and(lane, 3)?, e.word(1)?])?);
        let scale_of = |of: Value<'c, 'a>, first, further: u32| -> Result<Scale<'c, 'a>> {
            Scale::of(e, self.of_lane(at, of, e.same("arith.ori", &[first, e.word(further)?])?)?)
        };
        let rows = [scale_of(scales[0], g, 0)?, scale_of(scales[0], g, 8)?];
        let columns = [0, 1, 8, 9].map(|n| scale_of(scales[1], t2, n));
        let columns = columns.into_iter().collect::<Result<Vec<_>>>()?;
        // Sums of a tile: of two columns the first row's, then the second's.
        let place = |i: usize| (&rows[i / 2 % 2], &columns[i / 4 * 2 + i % 2]);

        let mut d = vec![];
        for (i, c) in p.c.elements(e)?.into_iter().enumerate() {
            let (row, column) = place(i);
            let poison = e.same("arith.addf", &[row.poison, column.poison])?;
            d.push(e.same("arith.addf", &[c, poison])?);
        }
        let zero = e.float_constant(lathe_dsl::ir::Type::Scalar(Scalar::F32), 0.0)?;
        for block in 0..BLOCKS {
            for tile in 0..TILES {
                let (low, high, b) = (a.get(0, block), a.get(1, block), b.get(tile, block));
                let mut sum = vec![zero; 4];
                for k in [0, 2] {
                    let a = [low[k], high[k], low[k + 1], high[k + 1]];
                    sum = half_mma(e, HALF, &a, &b[k..k + 2], &sum)?;
                }
                for (i, one) in (4 * tile..).zip(sum) {
                    let (row, column) = place(i);
                    d[i] = add_scaled(e, d[i], one, exponent, [row.codes[block], column.codes[block]])?;
                }
            }
        }
        Ok(d)
    }
}

/// The scales of a row or column.
struct Scale<'c, 'a> {
    /// Every block's code, from bit 22 on.
    codes: [Value<'c, 'a>; BLOCKS],
    /// NaN if one of them is, else 0.
    poison: Value<'c, 'a>,
}

impl<'c, 'a> Scale<'c, 'a> {
    fn of(e: &Emitter<'c, 'a>, packed: Value<'c, 'a>) -> Result<Self> {
        let code = |block: u32| {
            let moved = match block {
                3 => e.same("arith.shrui", &[packed, e.word(2)?])?,
                _ => e.same("arith.shli", &[packed, e.word(22 - 8 * block)?])?,
            };
            e.same("arith.andi", &[moved, e.word(0xFF << 22)?])
        };
        Ok(Self { codes: [code(0)?, code(1)?, code(2)?, code(3)?], poison: poison(e, packed)? })
    }
}

/// `total + sum · 2^exponent · 2^(a + b − 254)` for two codes from bit 22 on, rounded once.
///
/// The power is a product of two, each with half the exponent, so that neither it nor the first product leaves the range of
/// `f32` where the second does not. The sum of the codes lies in bits 22 to 30, so all but its lowest bit is where an exponent
/// is: that of the one; the other's is what is left. Of less than 2^−252 nothing is left in an `f32`, so smaller powers may
/// count as that.
fn add_scaled<'c, 'a>(
    e: &Emitter<'c, 'a>,
    total: Value<'c, 'a>,
    sum: Value<'c, 'a>,
    exponent: i32,
    [a, b]: [Value<'c, 'a>; 2],
) -> Result<Value<'c, 'a>> {
    let single = e.scalar(Scalar::F32);
    let both = e.same("arith.maxui", &[e.same("arith.addi", &[a, b])?, e.word(2 << 22)?])?;
    let half = e.same("arith.andi", &[both, e.word(0xFF << 23)?])?;
    let rest = e.same("arith.subi", &[e.same("arith.addi", &[both, both])?, half])?;
    let mut one = sum;
    if exponent != 0 {
        let power = 2f32.powi(exponent);
        let power = e.float_constant(lathe_dsl::ir::Type::Scalar(Scalar::F32), power)?;
        one = e.same("arith.mulf", &[one, power])?;
    }
    let first = e.same("arith.mulf", &[one, e.bitcast(half, single)?])?;
    e.call("llvm.fma.f32", &[first, e.bitcast(rest, single)?, total], single)
}

/// Every code in a byte, where the instruction has it: fp4 in bits 2 to 5, fp6 in bits 0 to 5.
fn containers<T: Words>(w: &T, format: Narrow, packed: &[T::Word]) -> Result<Vec<T::Word>> {
    let words = bytes(w, format, packed)?;
    if format == Narrow::E2m1 { words.into_iter().map(|word| w.left(word, 2)).collect() } else { Ok(words) }
}

/// Which lane's registers are what, against the layouts and the instructions' own.
#[cfg(test)]
mod tests {
    use lathe_dsl::mma::{Fragments, scaled};

    use super::*;

    #[test]
    fn scales_are_those_of_the_lanes_that_are_asked() {
        let all = scaled(Fragments::Nvidia, Narrow::E2m1, Narrow::E2m1).unwrap();
        for lane in 0..32u32 {
            // After `packed`, lane l has the scales of row l mod 16: all blocks that either of the two lanes had.
            for (element, half) in (0..2).flat_map(|e| [0, 16].map(|h| (e, h))) {
                assert_eq!(all.scale_a.at(lane % 16 + half, element), (lane % 16, half / 16 + 2 * element));
            }
            let (g, t) = (lane / 4, lane % 4);
            for i in 0..8u32 {
                let rows = [g, g | 8];
                let columns = [2 * t, 2 * t + 1, 2 * t + 8, 2 * t + 9];
                let place = (rows[i as usize / 2 % 2], columns[i as usize / 4 * 2 + i as usize % 2]);
                assert_eq!(all.tiles.c.at(lane, i), place, "lane {lane} sum {i}");
            }
            // `natively`: the first lane of four has row g and column g, the second row and column g + 8.
            assert_eq!(lane >> 2 | (lane & 1) << 3, if t % 2 == 0 { g } else { g + 8 });
        }
    }

    #[test]
    fn words_are_those_of_a_row_and_block() {
        let all = scaled(Fragments::Nvidia, Narrow::E4m3, Narrow::E4m3).unwrap();
        for (lane, half, block, i) in
            (0..32).flat_map(|l| (0..2).flat_map(move |h| (0..4).flat_map(move |b| (0..8).map(move |i| (l, h, b, i)))))
        {
            let e = (half * 4 + block) * 8 + i;
            assert_eq!(all.tiles.a.at(lane, e), (lane / 4 + 8 * half, 32 * block + 8 * (lane % 4) + i));
            assert_eq!(all.tiles.b.at(lane, e), (32 * block + 8 * (lane % 4) + i, lane / 4 + 8 * half));
        }
    }

    #[test]
    fn powers_are_halves_of_the_sum_of_codes() {
        for (a, b) in (0..255u32).flat_map(|a| (0..255).map(move |b| (a, b))) {
            // The steps of `add_scaled`.
            let both = ((a << 22) + (b << 22)).max(2 << 22);
            let half = both & 0xFF << 23;
            let rest = both.wrapping_add(both).wrapping_sub(half);
            let [half, rest] = [half, rest].map(|bits| f64::from(f32::from_bits(bits)));
            let wanted = 2f64.powi((a + b).max(2) as i32 - 254);
            assert_eq!(half * rest, wanted, "{a} {b}");
            assert!(half <= rest && rest <= 2.0 * half);
        }
    }
}
