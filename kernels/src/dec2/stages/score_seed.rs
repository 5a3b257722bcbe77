//! V5: both factors of the scores, and their bias.

use lathe_dsl::prelude::*;

use super::load::Image;
use super::tiles::{Columns, Quads, Tiles};
use super::warp::{Bit, Pair, Slot, Warp};
use crate::dec2::fragment::BLOCK_BYTES;
use crate::dec2::options::NanSign;
use crate::dec2::{KEYS, PIXELS};

/// What the product of scores takes.
#[derive(Clone, Debug)]
pub struct ScoreSeed<'k> {
    /// Queries of the 64 pixels.
    pub a: Quads<'k>,
    /// The 96 keys.
    pub b: Columns<'k>,
    /// The bias, 64×96.
    pub c: Tiles<'k>,
}

impl<'k> Warp<'k> {
    /// V5 `ScoreSeed`: queries and keys are the same projection, 96 rows of 32; the bias is the table from byte `base` on.
    pub fn score_seed(&self, projected: &Tiles<'k>, image: Image<'k>, base: V<'k, u32>, nan: NanSign) -> ScoreSeed<'k> {
        let (a, b) = self.score_factors(projected, nan);
        let bias: Vec<_> = (0..a.extent().0).map(|m| self.load_score_bias(image, base, m)).collect();
        ScoreSeed { a, b, c: Tiles::stacked(&bias) }
    }

    /// Queries and keys.
    pub fn score_factors(&self, projected: &Tiles<'k>, nan: NanSign) -> (Quads<'k>, Columns<'k>) {
        let quads = self.pack_quads(projected, nan);
        (Quads::from_fn((PIXELS / 16) as usize, 1, |m, _| quads.at(m, 0)), self.rows_to_columns(&quads))
    }

    /// The rows of a left factor, 32 wide, as columns of a right one.
    fn rows_to_columns(&self, quads: &Quads<'k>) -> Columns<'k> {
        let (m_tiles, _) = quads.extent();
        // By tile of 16 rows: its two tiles of 8 columns.
        let columns: Vec<[[V<'k, u32>; 2]; 2]> = (0..m_tiles)
            .map(|m| {
                let [a0, a1, a2, a3] = quads.at(m, 0);
                if !self.one_row() {
                    return [[a0, a2], [a1, a3]];
                }
                // A lane has words 2·hi + {0, 1} and 4 + 2·hi + {0, 1} of one row of 16. Those with 4 go to the lanes whose
                // row is 8 or more, these lanes' without 4 to the others; then lanes stand for rows mod 8 and words.
                let [low0, high0] = self.swap_with_lane([a0, a2], 3);
                let [low1, high1] = self.swap_with_lane([a1, a3], 3);
                let source = [Bit::Column(0), Bit::Column(1), Bit::Column(2), Bit::Word(2), Bit::Word(1)];
                [[low0, low1], [high0, high1]].map(|tile| tile.map(|w| self.to_columns(w, source)))
            })
            .collect();
        Columns::from_fn(2 * m_tiles, 1, |n, _| columns[n / 2][n % 2])
    }

    /// The bias of 16 rows of a head's scores, tile `m`.
    pub fn load_score_bias(&self, image: Image<'k>, base: V<'k, u32>, m: usize) -> Tiles<'k> {
        let k = self.k;
        let n_tiles = (KEYS / 8) as usize;
        // By two column tiles: of either, what the slots have.
        let words: Vec<[V<'k, u32>; 4]> = (0..n_tiles / 2)
            .map(|n| {
                let block = base + BLOCK_BYTES * (4 * n + m) as u32;
                let at = |slot: Slot<'k>| block + ((slot.row & 7) * 4 + slot.t) * 16;
                let [first, second] = self.slots;
                if !self.one_row() {
                    return k.buffer_load::<Vector<u32, 4>>(image.cast(), Bytes(at(first))).elements();
                }
                let half = |slot: Slot<'k>, tile: u32| {
                    k.buffer_load::<u32>(image.cast(), Bytes(at(slot) + (slot.row >> 3) * 4 + 8 * tile))
                };
                [half(first, 0), half(second, 0), half(first, 1), half(second, 1)]
            })
            .collect();
        Tiles::from_fn(1, n_tiles, |_, p, n| -> Pair<'k> { words[n / 2][2 * (n % 2) + p].bitcast() })
    }
}
