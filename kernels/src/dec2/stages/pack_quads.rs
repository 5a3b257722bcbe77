//! V10: f16 sums as the left factor of the next product.

use super::numeric::word;
use super::tiles::{Quads, Tiles};
use super::warp::Warp;
use crate::dec2::options::NanSign;

impl<'k> Warp<'k> {
    /// V10 `PackQuads`: the quads of all tiles, four tiles across a step of 32 columns. No lane needs another one's.
    pub fn pack_quads(&self, x: &Tiles<'k>, nan: NanSign) -> Quads<'k> {
        let (m_tiles, n_tiles) = x.extent();
        Quads::from_fn(m_tiles, n_tiles / 4, |m, ks| {
            [(0, 0), (1, 0), (0, 1), (1, 1)].map(|(p, h)| {
                let tile = 4 * ks + h;
                word(self.k, x.at(m, p, tile), x.at(m, p, tile + 2), nan)
            })
        })
    }
}
