//! Exchanges between lanes: DPP, swizzles, swaps, and the LDS crossbar for everything else.

use lathe_dsl::ir::ShuffleOp;
use lathe_dsl::target::Generation;
use melior::ir::Value;

use super::Amdgpu;
use crate::lower::emit::{Emitter, IntPredicate, Result};
use crate::lower::lanes::{Amount, Lanes};

/// DPP controls. Rows are 16 lanes.
pub(super) mod dpp {
    /// Lane `i` of a quad reads lane `i ^ n`.
    pub const fn quad_xor(n: u32) -> u32 {
        n | (1 ^ n) << 2 | (2 ^ n) << 4 | (3 ^ n) << 6
    }
    /// Every lane of a quad reads lane `n`.
    pub const fn quad_lane(n: u32) -> u32 {
        n * 0x55
    }
    /// Lane `i` reads lane `i + n` of its row.
    pub const ROW_SHL: u32 = 0x100;
    /// Lane `i` reads lane `i − n` of its row.
    pub const ROW_SHR: u32 = 0x110;
    /// Rotates a row: lane `i` reads lane `i − n` modulo 16.
    pub const ROW_ROR: u32 = 0x120;
    /// Rotates a row by 8: lane `i` reads `i ^ 8`.
    pub const ROW_ROR_8: u32 = 0x128;
    /// Lane `i` reads `i ^ 15`.
    pub const ROW_MIRROR: u32 = 0x140;
    /// Lane `i` reads `i ^ 7`.
    pub const ROW_HALF_MIRROR: u32 = 0x141;
    /// Every lane of a row reads its lane `n`: `row_newbcast` on CDNA, `row_share` on RDNA.
    pub const ROW_LANE: u32 = 0x150;
    /// RDNA: lane `i` reads `i ^ n`.
    pub const ROW_XMASK: u32 = 0x160;
}

/// `ds_swizzle` in groups of 32 lanes: lane `i` reads `(i & and | or) ^ xor`.
const fn swizzle(and: u32, or: u32, xor: u32) -> u32 {
    and | or << 5 | xor << 10
}

/// The first active lane's word, in a scalar register.
pub(super) fn first_lane<'c, 'a>(e: &Emitter<'c, 'a>, word: Value<'c, 'a>) -> Result<Value<'c, 'a>> {
    e.call("llvm.amdgcn.readfirstlane.i32", &[word], e.int(32))
}

impl Amdgpu {
    /// The lane: of the thread index where that is one operation.
    pub(super) fn lane<'c, 'a>(&self, at: &Lanes<'_, 'c, 'a>) -> Result<Value<'c, 'a>> {
        let e = at.e;
        let wave = self.chip.wave;
        if at.is_thread_index(wave) {
            use lathe_dsl::ir::Axis;
            let x = crate::target::Backend::thread_id(self, e, Axis::X, at.launch.block[0])?;
            return if at.launch.block[0] <= wave { Ok(x) } else { at.and(x, wave - 1) };
        }
        let (all, zero) = (e.word(u32::MAX)?, e.word(0)?);
        let low = e.call("llvm.amdgcn.mbcnt.lo", &[all, zero], e.int(32))?;
        if wave == 32 { Ok(low) } else { e.call("llvm.amdgcn.mbcnt.hi", &[all, low], e.int(32)) }
    }

    /// `word` through DPP; lanes that read from outside their row keep their own where `keep` says so.
    pub(super) fn dpp<'c, 'a>(
        e: &Emitter<'c, 'a>,
        word: Value<'c, 'a>,
        control: u32,
        keep: bool,
    ) -> Result<Value<'c, 'a>> {
        let all = e.word(0xF)?;
        let operands = [word, word, e.word(control)?, all, all, e.bit(!keep)?];
        e.call("llvm.amdgcn.update.dpp.i32", &operands, e.int(32))
    }

    /// `word` through DPP in one row of the wave; the others keep `old`.
    pub(super) fn dpp_in_row<'c, 'a>(
        e: &Emitter<'c, 'a>,
        old: Value<'c, 'a>,
        word: Value<'c, 'a>,
        control: u32,
        row: u32,
    ) -> Result<Value<'c, 'a>> {
        let operands = [old, word, e.word(control)?, e.word(1 << row)?, e.word(0xF)?, e.bit(false)?];
        e.call("llvm.amdgcn.update.dpp.i32", &operands, e.int(32))
    }

    fn swizzle<'c, 'a>(e: &Emitter<'c, 'a>, word: Value<'c, 'a>, pattern: u32) -> Result<Value<'c, 'a>> {
        e.call("llvm.amdgcn.ds.swizzle", &[word, e.word(pattern)?], e.int(32))
    }

    /// Every word from lane `source` of the wave.
    fn bpermute<'c, 'a>(
        e: &Emitter<'c, 'a>,
        words: &[Value<'c, 'a>],
        source: Value<'c, 'a>,
    ) -> Result<Vec<Value<'c, 'a>>> {
        let address = e.same("arith.shli", &[source, e.word(2)?])?;
        words.iter().map(|w| e.call("llvm.amdgcn.ds.bpermute", &[address, *w], e.int(32))).collect()
    }

    /// Both operands of gfx950's swap of rows (16) or halves (32) when both are `word`: the one that holds the lower
    /// lane's of every pair, and the one that holds the upper lane's.
    fn swap<'c, 'a>(e: &Emitter<'c, 'a>, word: Value<'c, 'a>, offset: u32) -> Result<[Value<'c, 'a>; 2]> {
        let name = if offset == 16 { "llvm.amdgcn.permlane16.swap" } else { "llvm.amdgcn.permlane32.swap" };
        let no = e.bit(false)?;
        let both = e.call_many(name, &[word, word, no, no], &[e.int(32), e.int(32)])?;
        Ok([both[0], both[1]])
    }

    /// The word of lane `lane ^ n`, by instructions that take their pattern as a constant; `None` if there are none.
    fn xor_word<'c, 'a>(&self, at: &Lanes<'_, 'c, 'a>, word: Value<'c, 'a>, n: u32) -> Result<Option<Value<'c, 'a>>> {
        let e = at.e;
        if !self.chip.generation.is_gfx9() {
            return match n {
                0 => Ok(Some(word)),
                1..=3 => Self::dpp(e, word, dpp::quad_xor(n), false).map(Some),
                4..=15 => Self::dpp(e, word, dpp::ROW_XMASK | n, false).map(Some),
                // The other row's lanes in any order: four bits a lane name it.
                16..=31 => {
                    let nibbles = |first: u32| (0..8).fold(0, |s, i| s | ((first + i) ^ (n & 15)) << (4 * i));
                    let (low, high) = (e.word(nibbles(0))?, e.word(nibbles(8))?);
                    let no = e.bit(false)?;
                    let operands = [word, word, low, high, no, no];
                    e.call("llvm.amdgcn.permlanex16.i32", &operands, e.int(32)).map(Some)
                }
                _ => Ok(None),
            };
        }
        let swaps = self.chip.generation == Generation::Cdna4;
        if n >= 32 && !swaps {
            return Ok(None);
        }
        if (16..32).contains(&n) && (!swaps || n != 16) {
            return Self::swizzle(e, word, swizzle(31, 0, n)).map(Some);
        }
        let mut word = word;
        // Rows first, then what is left within quads.
        let rows = n & 15;
        let quad = match rows & 12 {
            4 => {
                word = Self::dpp(e, word, dpp::ROW_HALF_MIRROR, false)?;
                rows ^ 7
            }
            8 => {
                word = Self::dpp(e, word, dpp::ROW_ROR_8, false)?;
                rows ^ 8
            }
            12 => {
                word = Self::dpp(e, word, dpp::ROW_MIRROR, false)?;
                rows ^ 15
            }
            _ => rows,
        };
        if quad != 0 {
            word = Self::dpp(e, word, dpp::quad_xor(quad), false)?;
        }
        for offset in [16, 32] {
            if n & offset != 0 {
                let [lower, upper] = Self::swap(e, word, offset)?;
                let own = at.and(self.lane(at)?, offset)?;
                let is_upper = e.cmpi(IntPredicate::Ne, own, e.word(0)?, e.int(1))?;
                word = e.select(is_upper, lower, upper)?;
            }
        }
        Ok(Some(word))
    }

    /// A shuffle whose pattern is constant, by instructions that take it so; `None` if there are none.
    fn constant_word<'c, 'a>(
        &self,
        at: &Lanes<'_, 'c, 'a>,
        op: ShuffleOp,
        word: Value<'c, 'a>,
        n: u32,
        width: u32,
    ) -> Result<Option<Value<'c, 'a>>> {
        let e = at.e;
        match op {
            ShuffleOp::Xor => self.xor_word(at, word, n & (width - 1)),
            ShuffleOp::Up if width == 16 => Self::dpp(e, word, dpp::ROW_SHR | n, true).map(Some),
            ShuffleOp::Down if width == 16 => Self::dpp(e, word, dpp::ROW_SHL | n, true).map(Some),
            ShuffleOp::Up | ShuffleOp::Down => Ok(None),
            ShuffleOp::Idx => {
                let n = n & (width - 1);
                if width == self.chip.wave {
                    e.call("llvm.amdgcn.readlane.i32", &[word, e.word(n)?], e.int(32)).map(Some)
                } else if width == 4 {
                    Self::dpp(e, word, dpp::quad_lane(n), false).map(Some)
                } else if width <= 32 {
                    Self::swizzle(e, word, swizzle(32 - width, n, 0)).map(Some)
                } else {
                    Ok(None)
                }
            }
        }
    }

    pub(super) fn shuffle_words<'c, 'a>(
        &self,
        at: &Lanes<'_, 'c, 'a>,
        op: ShuffleOp,
        words: &[Value<'c, 'a>],
        amount: Amount<'c, 'a>,
        width: u32,
    ) -> Result<Vec<Value<'c, 'a>>> {
        let e = at.e;
        if let Some(n) = amount.constant {
            let moved: Result<Option<Vec<_>>> =
                words.iter().map(|w| self.constant_word(at, op, *w, n, width)).collect();
            if let Some(moved) = moved? {
                return Ok(moved);
            }
        }
        let (lane, n) = (self.lane(at)?, amount.value);
        let group = width - 1;
        let source = match op {
            ShuffleOp::Xor => e.same("arith.xori", &[lane, at.and(n, group)?])?,
            ShuffleOp::Idx => e.same("arith.ori", &[at.and(lane, !group)?, at.and(n, group)?])?,
            // Distances that lead out of the group lead back to the lane.
            ShuffleOp::Up => {
                let inside = e.cmpi(IntPredicate::Ule, n, at.and(lane, group)?, e.int(1))?;
                e.select(inside, e.same("arith.subi", &[lane, n])?, lane)?
            }
            ShuffleOp::Down => {
                let room = e.same("arith.xori", &[at.and(lane, group)?, e.word(group)?])?;
                let inside = e.cmpi(IntPredicate::Ule, n, room, e.int(1))?;
                e.select(inside, e.same("arith.addi", &[lane, n])?, lane)?
            }
        };
        Self::bpermute(e, words, source)
    }

    pub(super) fn exchange_words<'c, 'a>(
        &self,
        at: &Lanes<'_, 'c, 'a>,
        words: &[Value<'c, 'a>],
        offset: u32,
    ) -> Result<(Vec<Value<'c, 'a>>, Vec<Value<'c, 'a>>)> {
        let e = at.e;
        if offset >= 16 && self.chip.generation == Generation::Cdna4 {
            let pairs = words.iter().map(|w| Self::swap(e, *w, offset)).collect::<Result<Vec<_>>>()?;
            return Ok(pairs.into_iter().map(|[a, b]| (a, b)).unzip());
        }
        let theirs: Result<Option<Vec<_>>> = words.iter().map(|w| self.xor_word(at, *w, offset)).collect();
        let theirs = match theirs? {
            Some(theirs) => theirs,
            None => {
                let source = e.same("arith.xori", &[self.lane(at)?, e.word(offset)?])?;
                Self::bpermute(e, words, source)?
            }
        };
        Ok((words.to_vec(), theirs))
    }

    pub(super) fn ballot_of<'c, 'a>(&self, e: &Emitter<'c, 'a>, condition: Value<'c, 'a>) -> Result<Value<'c, 'a>> {
        let wave = self.chip.wave;
        let mask = e.call(&format!("llvm.amdgcn.ballot.i{wave}"), &[condition], e.int(wave))?;
        e.resize(mask, wave, 64, false)
    }

    /// Two rows' worth of half-words come from two lanes; which half is the same for all of a lane's.
    pub(super) fn transpose<'c, 'a>(&self, at: &Lanes<'_, 'c, 'a>, word: Value<'c, 'a>) -> Result<Value<'c, 'a>> {
        let e = at.e;
        let lane = self.lane(at)?;
        // With g = lane / 4 mod 8 and t = lane mod 4: rows 2t and 2t + 1, whose words of column g lie in lanes
        // 8t + g/2 and 8t + 4 + g/2 of the group.
        let t8 = e.same("arith.shli", &[at.and(lane, 3)?, e.word(3)?])?;
        let half_g = at.and(e.same("arith.shrui", &[lane, e.word(3)?])?, 3)?;
        let base = at.and(lane, !31)?;
        let first = e.same("arith.ori", &[e.same("arith.ori", &[base, t8])?, half_g])?;
        let second = e.same("arith.ori", &[first, e.word(4)?])?;
        let low = Self::bpermute(e, &[word], first)?[0];
        let high = Self::bpermute(e, &[word], second)?[0];
        let odd = e.cmpi(IntPredicate::Ne, at.and(lane, 4)?, e.word(0)?, e.int(1))?;
        let selector = e.select(odd, e.word(0x0706_0302)?, e.word(0x0504_0100)?)?;
        e.call("llvm.amdgcn.perm", &[high, low, selector], e.int(32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_what_the_manuals_say() {
        assert_eq!((dpp::quad_xor(1), dpp::quad_xor(2), dpp::quad_xor(3)), (0xB1, 0x4E, 0x1B));
        assert_eq!((dpp::quad_lane(0), dpp::quad_lane(3)), (0x00, 0xFF));
        // As LLVM prints `swizzle(SWAP,16)`, and the broadcast of lane 3 in groups of 8.
        assert_eq!((swizzle(31, 0, 16), swizzle(24, 3, 0)), (0x401F, 0x0078));
    }
}
