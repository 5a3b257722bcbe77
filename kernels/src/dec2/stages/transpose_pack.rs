//! V7: values, rows of a product's sums, as the right factor of the next product.

use lathe_dsl::prelude::*;

use super::numeric::word;
use super::tiles::{Columns, Tiles};
use super::warp::{Bit, Pair, Warp};
use crate::dec2::options::NanSign;

impl<'k> Warp<'k> {
    /// V7 `TransposePack`: column tiles stay column tiles, rows become steps of 32 along K.
    pub fn transpose_pack(&self, values: &Tiles<'k>, nan: NanSign) -> Columns<'k> {
        let (m_tiles, n_tiles) = values.extent();
        if self.one_row() {
            let words: Vec<[V<'k, u32>; 2]> = (0..m_tiles / 2)
                .flat_map(|ks| (0..n_tiles).map(move |n| (ks, n)))
                .map(|(ks, n)| self.transpose_codes(values, ks, n, nan))
                .collect();
            return Columns::from_fn(n_tiles, m_tiles / 2, |n, ks| words[ks * n_tiles + n]);
        }
        let transposed = values.map(|x: Pair<'k>| x.bitcast::<u32>().transpose8x8().bitcast());
        Columns::from_fn(n_tiles, m_tiles / 2, |n, ks| {
            [0, 1].map(|h| word(self.k, transposed.at(2 * ks, h, n), transposed.at(2 * ks + 1, h, n), nan))
        })
    }

    /// Where a lane has four columns of a row: quantised first, so that four codes travel at once. Codes of four rows and four
    /// columns change places between four neighbouring lanes, then words go to the lanes of their columns.
    fn transpose_codes(&self, values: &Tiles<'k>, ks: usize, n: usize, nan: NanSign) -> [V<'k, u32>; 2] {
        let k = self.k;
        // Bytes are columns, one lane of four a row.
        let [first, second] = [0, 1].map(|i| {
            let m = 2 * ks + i;
            let columns = word(k, values.at(m, 0, n), values.at(m, 1, n), nan);
            let rows = self.transpose_bytes(columns);
            self.to_columns(rows, [Bit::Column(0), Bit::Column(1), Bit::Word(1), Bit::Word(2), Bit::Column(2)])
        });
        // Two rows of either tile are a word.
        [k.perm_b32(second, first, 0x0504_0100u32), k.perm_b32(second, first, 0x0706_0302u32)]
    }

    /// Byte `i` of lane `j` of every four lanes becomes byte `j` of lane `i`.
    fn transpose_bytes(&self, word: V<'k, u32>) -> V<'k, u32> {
        let k = self.k;
        let step = |word: V<'k, u32>, bit: u32, keep_low: u32, keep_high: u32| {
            let theirs = word.shuffle_xor(1 << bit, super::warp::LANES);
            let high = ((self.lane >> bit) & 1).eq(1);
            k.perm_b32(theirs, word, high.select::<u32>(keep_high, keep_low))
        };
        // Bytes 0–3 are one's own, 4–7 the other lane's.
        let word = step(word, 0, 0x0602_0400, 0x0307_0105);
        step(word, 1, 0x0504_0100, 0x0302_0706)
    }
}
