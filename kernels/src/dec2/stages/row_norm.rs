//! V3: every row divided by its root mean square (but for the mean's factor), times a gain by column.

use super::numeric::inverse_norms;
use super::tiles::Tiles;
use super::warp::{Pair, Warp};
use crate::dec2::options::ReduceTree;

impl<'k> Warp<'k> {
    /// V3 `RowNorm`: `x · (inv · gain)`, with `inv = 1/√(Σ x² + 2^-13)` over the row's 96 columns, each step rounded to f16.
    pub fn row_norm(&self, x: &Tiles<'k>, gain: &[Vec<Pair<'k>>; 2], tree: ReduceTree) -> Tiles<'k> {
        let (m_tiles, n_tiles) = x.extent();
        let inverse: Vec<_> = (0..m_tiles).map(|m| inverse_norms(self, [x.row(m, 0), x.row(m, 1)], tree)).collect();
        Tiles::from_fn(m_tiles, n_tiles, |m, p, n| {
            let inverse: Pair<'k> = self.k.filled(inverse[m][p]);
            x.at(m, p, n) * (inverse * gain[p][n])
        })
    }
}
