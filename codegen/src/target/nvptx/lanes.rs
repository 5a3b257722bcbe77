//! Exchanges between lanes: `shfl.sync`, `vote.sync`.

use lathe_dsl::ir::{Axis, ShuffleOp};
use melior::ir::Value;

use super::Nvptx;
use crate::lower::emit::{IntPredicate, Result};
use crate::lower::lanes::{Amount, Lanes};
use crate::target::Backend;

impl Nvptx {
    /// The lane: of the thread index where that is one operation.
    pub(super) fn lane<'c, 'a>(&self, at: &Lanes<'_, 'c, 'a>) -> Result<Value<'c, 'a>> {
        let e = at.e;
        let wave = self.chip.wave;
        if !at.is_thread_index(wave) {
            return e.call("llvm.nvvm.read.ptx.sreg.laneid", &[], e.int(32));
        }
        let x = self.thread_id(e, Axis::X, at.launch.block[0])?;
        if at.launch.block[0] <= wave { Ok(x) } else { at.and(x, wave - 1) }
    }

    /// Mask of the lanes that must meet for an exchange within groups of `width` lanes. The verifier lets no other code come
    /// here than such as all lanes of a group run together: the whole warp, or, in a branch that may be taken by some groups
    /// only, the lane's own group.
    fn members<'c, 'a>(&self, at: &Lanes<'_, 'c, 'a>, width: u32) -> Result<Value<'c, 'a>> {
        let e = at.e;
        if at.whole || width == self.chip.wave {
            return e.word(u32::MAX);
        }
        let first = at.and(self.lane(at)?, !(width - 1))?;
        e.same("arith.shli", &[e.word((1 << width) - 1)?, first])
    }

    /// `shfl.sync` of every word.
    pub(super) fn shfl<'c, 'a>(
        &self,
        at: &Lanes<'_, 'c, 'a>,
        width: u32,
        mode: &str,
        words: &[Value<'c, 'a>],
        amount: Value<'c, 'a>,
        clamp: Value<'c, 'a>,
    ) -> Result<Vec<Value<'c, 'a>>> {
        let e = at.e;
        let members = self.members(at, width)?;
        let name = format!("llvm.nvvm.shfl.sync.{mode}.i32");
        words.iter().map(|w| e.call(&name, &[members, *w, amount, clamp], e.int(32))).collect()
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
        // Bits 8 to 12 say which bits of the lane stay; below lies the last lane of a group, its first for `up`.
        let segment = (32 - width) << 8;
        let (mode, last) = match op {
            ShuffleOp::Xor => ("bfly", 31),
            ShuffleOp::Up => ("up", 0),
            ShuffleOp::Down => ("down", 31),
            ShuffleOp::Idx => ("idx", 31),
        };
        let far = amount.max >= u64::from(width);
        let n = match op {
            ShuffleOp::Xor | ShuffleOp::Idx if far => at.and(amount.value, width - 1)?,
            _ => amount.value,
        };
        let moved = self.shfl(at, width, mode, words, n, e.word(segment | last)?)?;
        if !far || matches!(op, ShuffleOp::Xor | ShuffleOp::Idx) {
            return Ok(moved);
        }
        // The instruction reads five bits of the distance only.
        let near = e.cmpi(IntPredicate::Ult, n, e.word(width)?, e.int(1))?;
        moved.into_iter().zip(words).map(|(m, own)| e.select(near, m, *own)).collect()
    }
}
