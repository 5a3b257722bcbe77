//! V3: the norm of a row, and the sum that it shares with the softmax.

use half::f16;

use super::matrix::Matrix;
use super::number::{add, mul, rsqrt16};
use crate::dec2::constants::NORM_EPSILON;
use crate::dec2::options::ReduceTree;

/// Columns of a tile.
const TILE: usize = 8;

/// The sum of twelve tiles of 8 columns, in the order of a warp: tiles column by column, then lanes 1 and 2 apart, then the halves
/// of a word.
pub fn row_sum(values: &[f16], tree: ReduceTree) -> f16 {
    let add8 = |a: [f16; TILE], b: [f16; TILE]| std::array::from_fn(|i| add(a[i], b[i]));
    let tile = |n: usize| -> [f16; TILE] { std::array::from_fn(|i| values[TILE * n + i]) };
    let tiles = match tree {
        ReduceTree::SliceEvenOdd => {
            let slices = |first: usize| {
                let pair = |n: usize| add8(tile(first + n), tile(first + n + 2));
                add8(add8(pair(0), pair(4)), pair(8))
            };
            add8(slices(0), slices(1))
        }
        ReduceTree::Sequential => (1..values.len() / TILE).fold(tile(0), |sum, n| add8(sum, tile(n))),
    };
    // Column 2t + c: lanes exchange by t.
    let butterfly = |sum: [f16; TILE], lanes: usize| std::array::from_fn(|i| add(sum[i], sum[i ^ (2 * lanes)]));
    let all: [f16; TILE] = butterfly(butterfly(tiles, 1), 2);
    add(all[0], all[1])
}

/// The inverse of a row's norm, and the sum of squares it is of.
pub fn inverse_norm(row: &[f16], tree: ReduceTree) -> (f16, f16) {
    let squares: Vec<_> = row.iter().map(|x| mul(*x, *x)).collect();
    let sum = row_sum(&squares, tree);
    (rsqrt16(add(sum, NORM_EPSILON)), sum)
}

/// A row times the inverse of its norm times each column's gain.
pub fn row_norm(row: &[f16], gain: &[f16], tree: ReduceTree) -> Vec<f16> {
    let (inverse, _) = inverse_norm(row, tree);
    row.iter().zip(gain).map(|(x, gain)| mul(*x, mul(inverse, *gain))).collect()
}

/// [`row_norm`] of every row.
pub fn row_norms(rows: &Matrix<f16>, gain: &[f16], tree: ReduceTree) -> Matrix<f16> {
    let mut out = rows.clone();
    for i in 0..rows.row_count() {
        out.row_mut(i).copy_from_slice(&row_norm(rows.row(i), gain, tree));
    }
    out
}
