//! V1: the patch expand's sums, quantised, into the patch grid.

use lathe_dsl::prelude::*;

use super::numeric::word;
use super::tiles::Tiles;
use super::warp::Warp;
use crate::dec2::options::{NanSign, SubpixelOrder};
use crate::dec2::shared::grid_word;
use crate::dec2::{COARSE_SIDE, GRID};

impl<'k> Warp<'k> {
    /// The sub-pixel (dy, dx) that the warp makes.
    pub fn subpixel(&self, order: SubpixelOrder) -> (V<'k, u32>, V<'k, u32>) {
        let (high, low) = (self.z >> 1, self.z & 1);
        match order {
            SubpixelOrder::RowMajor => (high, low),
            SubpixelOrder::ColMajor => (low, high),
        }
    }

    /// V1 `PatchScatter`: row `6·ly + lx` of the warp's slab is the sub-pixel (dy, dx) of coarse pixel (ly, lx), cell
    /// (2ly + dy − 1, 2lx + dx − 1) of the grid; what lies outside of it, as all rows from 36 on do, is dropped.
    pub fn patch_scatter(&self, sums: &Tiles<'k>, shared: V<'k, LdsPtr<u8>>, order: SubpixelOrder, nan: NanSign) {
        let k = self.k;
        let (dy, dx) = self.subpixel(order);
        let (m_tiles, n_tiles) = sums.extent();
        for m in 0..m_tiles {
            for owned in self.owned() {
                let coarse = owned.row + 16 * m as u32;
                let row = coarse.div_floor(COARSE_SIDE) * 2 + dy - 1;
                let column = coarse.rem_floor(COARSE_SIDE) * 2 + dx - 1;
                k.if_(row.lt(GRID) & column.lt(GRID), || {
                    let cell = row * grid_word(0, 0, 1, 0, 0) + column * grid_word(0, 0, 0, 1, 0) + owned.t * 4;
                    for (q, h) in (0..n_tiles / 4).flat_map(|q| [(q, 0), (q, 1)]) {
                        let tile = 4 * q + h;
                        let words: Vec<_> = owned
                            .slots
                            .iter()
                            .map(|p| word(k, sums.at(m, *p, tile), sums.at(m, *p, tile + 2), nan))
                            .collect();
                        let plane = grid_word(q as u32, h as u32, 0, 0, 0);
                        self.store_shared(&words, shared.byte_offset(cell + plane));
                    }
                });
            }
        }
    }
}
