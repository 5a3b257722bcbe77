//! Arithmetic that several stages have in common.

use lathe_dsl::prelude::*;

use super::warp::{Pair, Warp};
use crate::dec2::constants::NORM_EPSILON;
use crate::dec2::options::{NanSign, ReduceTree, SkipBorder};

/// A number of f16, as a pair.
pub fn pair<'k>(k: &'k Builder<'k>, both: f16) -> Pair<'k> {
    k.filled(both)
}

/// The word of codes that two pairs give, `low`'s in the lower half: rounded to nearest even, saturating.
pub fn word<'k>(k: &'k Builder<'k>, low: Pair<'k>, high: Pair<'k>, nan: NanSign) -> V<'k, u32> {
    let four: V<'k, Vector<f16, 4>> = low.concat(high);
    let codes: V<'k, u32> = four.encode(Narrow::E4m3, Overflow::Saturate);
    match nan {
        NanSign::Positive => codes,
        // Every other code has its sign already.
        NanSign::Keep => {
            let signs = k.perm_b32(high.bitcast::<u32>(), low.bitcast::<u32>(), 0x0705_0301u32);
            codes | (signs & 0x8080_8080)
        }
    }
}

/// The four numbers that a word of codes means, as the pairs of its halves.
pub fn numbers<'k>(word: V<'k, u32>) -> V<'k, Vector<f16, 4>> {
    word.decode(Narrow::E4m3)
}

/// `1/x`, rounded once. The chip's f32 reciprocal is near enough: no f16 has a reciprocal within 2^-22 of where rounding changes.
pub fn rcp<'k>(x: V<'k, f16>) -> V<'k, f16> {
    x.to::<f32>().hw_rcp().to()
}

/// `1/√x`, rounded once, for `x` of at least 2^-13: as of [`rcp`], within 2^-21.4.
pub fn rsqrt<'k>(x: V<'k, f16>) -> V<'k, f16> {
    x.to::<f32>().hw_rsq().to()
}

/// The sum of a row's twelve tiles and over the row's lanes, in f16: that of each slot's row.
pub fn row_sums<'k>(warp: &Warp<'k>, rows: [&[Pair<'k>]; 2], tree: ReduceTree) -> [V<'k, f16>; 2] {
    let tiles = rows.map(|row| match tree {
        ReduceTree::SliceEvenOdd => {
            let half = |odd: usize| {
                let at = |slice: usize| row[2 * slice + odd];
                ((at(0) + at(1)) + (at(2) + at(3))) + (at(4) + at(5))
            };
            half(0) + half(1)
        }
        ReduceTree::Sequential => row[1..].iter().fold(row[0], |sum, x| sum + *x),
    });
    warp.across_row(tiles).map(|sum| sum.element(0) + sum.element(1))
}

/// `1/√(Σ x² + ε)` of each slot's row.
pub fn inverse_norms<'k>(warp: &Warp<'k>, rows: [&[Pair<'k>]; 2], tree: ReduceTree) -> [V<'k, f16>; 2] {
    let squares = rows.map(|row| row.iter().map(|x| *x * *x).collect::<Vec<_>>());
    row_sums(warp, [&squares[0], &squares[1]], tree).map(|sum| rsqrt(sum + NORM_EPSILON))
}

/// The coordinate that stands for `v` in an image `e` ≥ 1 wide or high: [`SkipBorder::map`] of device values.
pub fn border<'k>(rule: SkipBorder, v: V<'k, i32>, e: V<'k, u32>) -> V<'k, u32> {
    let last = e - 1;
    match rule {
        SkipBorder::Reflect101Clamp => {
            let magnitude = v.abs();
            let mirrored = (e * 2 - 2).bitcast::<i32>() - magnitude;
            magnitude.minimum(mirrored).bitcast::<u32>().minimum(last)
        }
        SkipBorder::Clamp => v.maximum(0).bitcast::<u32>().minimum(last),
    }
}
