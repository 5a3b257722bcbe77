//! V8: a table by column plus a residual.

use super::tiles::Tiles;
use super::warp::{Pair, Warp};

impl<'k> Warp<'k> {
    /// V8 `ColAdd`: `table[column] + residual`.
    pub fn col_add(&self, table: &[Vec<Pair<'k>>; 2], residual: &Tiles<'k>) -> Tiles<'k> {
        let (m, n) = residual.extent();
        Tiles::from_fn(m, n, |m, p, n| table[p][n] + residual.at(m, p, n))
    }
}
