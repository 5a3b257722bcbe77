//! V6: a softmax whose exponential is a cubic that is moved into the exponent's bits.

use lathe_dsl::prelude::*;

use super::numeric::{pair, rcp, row_sums};
use super::tiles::Tiles;
use super::warp::{Pair, Warp};
use crate::dec2::constants::{CUBIC_CONSTANT, CUBIC_LINEAR, CUBIC_MASK, CUBIC_SHIFT, SCORE_CLAMP, SCORE_SCALE};
use crate::dec2::options::ReduceTree;

/// The exponential of a score, in [2^-14, 2^8]: with `m` the scaled and clamped score, the bits of `1.375 + m·(0.927 − m²)`, whose
/// fraction's upper half becomes the exponent and whose lower half the fraction. A NaN counts as the lower bound.
pub fn cubic_exp<'k>(k: &'k Builder<'k>, score: Pair<'k>) -> Pair<'k> {
    let constant = |x: f16| pair(k, x);
    let m = (score * constant(SCORE_SCALE)).maxnum(constant(SCORE_CLAMP[0])).minnum(constant(SCORE_CLAMP[1]));
    let slope = m.fma(-m, constant(CUBIC_LINEAR));
    let u = m.fma(slope, constant(CUBIC_CONSTANT));
    // The mask also takes away what the lower half carries into the upper one.
    let mask = u32::from(CUBIC_MASK);
    ((u.bitcast::<u32>() << CUBIC_SHIFT) & (mask << 16 | mask)).bitcast()
}

impl<'k> Warp<'k> {
    /// V6 `CubicSoftmax`: of every row of 96 scores.
    pub fn cubic_softmax(&self, scores: &Tiles<'k>, tree: ReduceTree) -> Tiles<'k> {
        let exponentials = scores.map(|x| cubic_exp(self.k, x));
        let (m_tiles, n_tiles) = scores.extent();
        let inverse: Vec<_> = (0..m_tiles)
            .map(|m| row_sums(self, [exponentials.row(m, 0), exponentials.row(m, 1)], tree).map(rcp))
            .collect();
        Tiles::from_fn(m_tiles, n_tiles, |m, p, n| exponentials.at(m, p, n) * self.k.filled(inverse[m][p]))
    }
}
