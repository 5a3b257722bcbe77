//! Scales of blocks in the expansion of `mfma_scaled`: one product of the plain kind for every block along K, whose sums are
//! multiplied by a power of two and added up, the first block's to C.

use melior::ir::Value;

use super::emit::{Emitter, IntPredicate, Result};
use super::lanes::Lanes;
use super::matrix::Registers;
use crate::target::Backend;

/// Blocks along K.
pub const BLOCKS: usize = 4;

/// All scales of row `lane mod 16` of A (column, of B) in one word, the first block's lowest. They come from 4 lanes, or from 2
/// that have two each.
pub fn packed<'c, 'a>(
    backend: &dyn Backend,
    at: &Lanes<'_, 'c, 'a>,
    scale: Registers<'c, 'a>,
    byte: u32,
) -> Result<Value<'c, 'a>> {
    let e = at.e;
    let words = scale.words(e)?;
    let own = match words[..] {
        [first, third] => {
            let selector = (4 + byte) << 16 | byte;
            at.and(backend.perm_b32(e, [third, first, e.word(selector)?])?, 0x00FF_00FF)?
        }
        _ => at.and(e.same("arith.shrui", &[words[0], e.word(8 * byte)?])?, 0xFF)?,
    };
    let wave = backend.chip().wave;
    // Eight bits up for every 16 lanes.
    let shift = at.and(e.same("arith.shrui", &[backend.lane_id(at)?, e.word(1)?])?, wave / 2 - 8)?;
    let mut word = e.same("arith.shli", &[own, shift])?;
    for offset in [16, 32] {
        if offset < wave {
            let (a, b) = backend.exchange(at, &[word], offset, wave)?;
            word = e.same("arith.ori", &[a[0], b[0]])?;
        }
    }
    Ok(word)
}

/// NaN if one of four scales is, else 0: added to C it makes NaN of what has such a scale, and no sum of it −0.
pub fn poison<'c, 'a>(e: &Emitter<'c, 'a>, packed: Value<'c, 'a>) -> Result<Value<'c, 'a>> {
    let with = |name, a, bits| e.same(name, &[a, e.word(bits)?]);
    let next = with("arith.addi", with("arith.andi", packed, 0x7F7F_7F7F)?, 0x0101_0101)?;
    let nans = with("arith.andi", e.same("arith.andi", &[next, packed])?, 0x8080_8080)?;
    let some = e.cmpi(IntPredicate::Ne, nans, e.word(0)?, e.int(1))?;
    let bits = e.select(some, e.word(0x7FC0_0000)?, e.word(0)?)?;
    e.bitcast(bits, melior::ir::Type::float32(e.context))
}
