//! V0: loads of the weight image. It is only read, and every load is aligned to what it takes.

use lathe_dsl::prelude::*;

use super::tiles::{Columns, Tiles};
use super::warp::{Pair, Warp};
use crate::dec2::fragment::BLOCK_BYTES;

/// The weight image.
pub type Image<'k> = Buffer<'k, u8, In>;

impl<'k> Warp<'k> {
    /// `base + stride · z`.
    pub fn of_warp(&self, base: u32, stride: u32) -> V<'k, u32> {
        if stride == 0 { self.k.constant(base) } else { self.z * stride + base }
    }

    /// V0 `LoadB`: `n` pairs of column tiles and `ks` steps along K of a right factor from byte `base` on, a block of 512 bytes
    /// each, the step running fastest.
    pub fn load_columns(&self, image: Image<'k>, base: V<'k, u32>, n: usize, ks: usize) -> Columns<'k> {
        let loaded: Vec<_> = (0..n * ks).map(|i| self.load_block(image, base, i as u32 * BLOCK_BYTES)).collect();
        Columns::from_fn(2 * n, ks, |tile, step| loaded[tile / 2 * ks + step][tile % 2])
    }

    /// The registers of a block's two column tiles.
    fn load_block(&self, image: Image<'k>, base: V<'k, u32>, offset: u32) -> [[V<'k, u32>; 2]; 2] {
        let k = self.k;
        if !self.one_row() {
            // A lane's sixteen bytes are its four registers.
            let at = base + self.lane * 16 + offset;
            let [a, b, c, d] = k.buffer_load::<Vector<u32, 4>>(image.cast(), Bytes(at)).elements();
            return [[a, b], [c, d]];
        }
        // Word 4h + t of column g lies behind 16 · (4g + t) + 4h; that of column 8 + g eight bytes on.
        let at = |i: usize, tile: u32| {
            let own = self.columns[i];
            let (t, h) = (own.word & 3, own.word >> 2);
            let at = base + (own.col * 4 + t) * 16 + h * 4 + (offset + 8 * tile);
            k.buffer_load::<u32>(image.cast(), Bytes(at))
        };
        [0, 1].map(|tile| [at(0, tile), at(1, tile)])
    }

    /// V0 `LoadCol`: a table of f16, one for each column of `n` tiles: what each slot has of it.
    pub fn load_table(&self, image: Image<'k>, base: V<'k, u32>, n: usize) -> [Vec<Pair<'k>>; 2] {
        let owned = self.owned();
        let load = |slots: usize, t: V<'k, u32>| -> Vec<Vec<V<'k, u32>>> {
            let tile = |n: usize| {
                let at = base + t * 4 + 16 * n as u32;
                match slots {
                    1 => vec![self.k.buffer_load::<u32>(image.cast(), Bytes(at))],
                    _ => self.k.buffer_load::<Vector<u32, 2>>(image.cast(), Bytes(at)).elements().into(),
                }
            };
            (0..n).map(tile).collect()
        };
        // Slots of two rows have the same columns.
        let words = load(owned[0].slots.len(), owned[0].t);
        [0, 1].map(|p| words.iter().map(|w| w[p.min(w.len() - 1)].bitcast()).collect())
    }

    /// A table as the same row of every tile: the C of a product.
    pub fn broadcast(&self, m: usize, table: &[Vec<Pair<'k>>; 2]) -> Tiles<'k> {
        Tiles::from_fn(m, table[0].len(), |_, p, n| table[p][n])
    }
}
