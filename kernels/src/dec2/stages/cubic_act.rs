//! V9: an activation near GELU whose gate is a quadratic by sign.

use lathe_dsl::prelude::*;

use super::numeric::pair;
use super::tiles::Tiles;
use super::warp::{Pair, Warp};
use crate::dec2::constants::{ACT_HALF, ACT_LIMIT, ACT_MID, ACT_SLOPE};
use crate::dec2::options::ActRound;

/// `x · (0.5 + y·(mid − slope·|y|))` with `y` = `x` held within ±2. A NaN's `y` is −2.
pub fn cubic_act<'k>(k: &'k Builder<'k>, x: Pair<'k>, round: ActRound) -> Pair<'k> {
    let constant = |x: f16| pair(k, x);
    let y = x.maxnum(constant(-ACT_LIMIT)).minnum(constant(ACT_LIMIT));
    let gate = match round {
        ActRound::Stepwise => constant(ACT_HALF) + y * (constant(ACT_MID) - constant(ACT_SLOPE) * y.abs()),
        ActRound::Fused => y.fma(y.abs().fma(constant(-ACT_SLOPE), constant(ACT_MID)), constant(ACT_HALF)),
    };
    x * gate
}

impl<'k> Warp<'k> {
    /// V9 `CubicAct`: of every element.
    pub fn cubic_act(&self, x: &Tiles<'k>, round: ActRound) -> Tiles<'k> {
        x.map(|x| cubic_act(self.k, x, round))
    }
}
