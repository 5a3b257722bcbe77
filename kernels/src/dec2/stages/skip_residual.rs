//! V2: patch features plus skip features.

use lathe_dsl::prelude::*;

use super::numeric::{border, numbers};
use super::tiles::Tiles;
use super::warp::{Pair, Warp};
use crate::dec2::options::SkipBorder;
use crate::dec2::plane::CELL_WORDS;
use crate::dec2::shared::grid_word;
use crate::dec2::{CHANNELS, GRID, WINDOW};

/// Planes of the skip features and of the arena.
const PLANES: usize = CHANNELS as usize / 32;

/// Where the workgroup's window lies in the image.
#[derive(Clone, Copy, Debug)]
pub struct Window<'k> {
    /// Width of the image.
    pub ex: V<'k, u32>,
    /// Height of the image.
    pub ey: V<'k, u32>,
    /// Column of the window's first pixel.
    pub x0: V<'k, i32>,
    /// Its row.
    pub y0: V<'k, i32>,
}

impl<'k> Window<'k> {
    /// The window of this workgroup, `8 · block − origin`.
    pub fn new(k: &'k Builder<'k>, [ex, ey]: [u32; 2], [ox, oy]: [u32; 2]) -> Self {
        let first = |axis: Axis, origin: u32| (k.block_id(axis) * WINDOW - origin).bitcast::<i32>();
        Self { ex: k.constant(ex), ey: k.constant(ey), x0: first(Axis::X, ox), y0: first(Axis::Y, oy) }
    }

    /// Word 0 of plane 0 of a pixel's cell, and words of a plane.
    pub fn cell(&self, x: V<'k, u32>, y: V<'k, u32>) -> (V<'k, u32>, V<'k, u32>) {
        ((self.ex * y + x) * CELL_WORDS, self.ex * self.ey * CELL_WORDS)
    }

    /// Whether the image has a pixel there.
    pub fn contains(&self, x: V<'k, i32>, y: V<'k, i32>) -> V<'k, bool> {
        // A negative coordinate is a large one without sign.
        x.bitcast::<u32>().lt(self.ex) & y.bitcast::<u32>().lt(self.ey)
    }
}

/// Which 16 attention rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// Pixels of lines 2z and 2z + 1 of the window.
    Own,
    /// Of warp 0 the edges above and below the window, of warp 1 those to the left and to the right; nothing's of the others.
    Halo,
}

impl<'k> Warp<'k> {
    /// The cell (row, column) of the grid that a row of the part is.
    fn attention_cell(&self, part: Part, row: V<'k, u32>) -> (V<'k, u32>, V<'k, u32>) {
        let (line, along) = (row.div_floor(WINDOW), row.rem_floor(WINDOW) + 1);
        match part {
            Part::Own => (self.z * 2 + line + 1, along),
            Part::Halo => {
                let edge = line * (GRID - 1);
                let horizontal = self.z.eq(0);
                (horizontal.select(edge, along), horizontal.select(along, edge))
            }
        }
    }

    /// V2 `SkipResidual`: 16 rows of 96 channels, `f16(patch) + f16(skip)`, skip features outside of the image by `rule`.
    pub fn skip_residual(
        &self,
        part: Part,
        shared: V<'k, LdsPtr<u8>>,
        skip: Buffer<'k, u32, In>,
        window: &Window<'k>,
        rule: SkipBorder,
    ) -> Tiles<'k> {
        let mut sums: Vec<Option<V<'k, Vector<f16, 4>>>> = vec![None; 2 * 2 * PLANES];
        for owned in self.owned() {
            let (row, column) = self.attention_cell(part, owned.row);
            let patch = row * grid_word(0, 0, 1, 0, 0) + column * grid_word(0, 0, 0, 1, 0) + owned.t * 4;
            let y = border(rule, window.y0 + row.bitcast::<i32>() - 1, window.ey);
            let x = border(rule, window.x0 + column.bitcast::<i32>() - 1, window.ex);
            let (cell, plane) = window.cell(x, y);
            for (q, h) in (0..PLANES).flat_map(|q| [(q, 0), (q, 1)]) {
                let n = owned.slots.len();
                let patch = shared.byte_offset::<u32>(patch + grid_word(q as u32, h as u32, 0, 0, 0));
                let at = plane * q as u32 + cell + owned.t + 4 * h as u32;
                let (patch, skip) = (self.load_shared(patch, n), self.load_words(skip, at, n));
                for ((p, patch), skip) in owned.slots.iter().zip(patch).zip(skip) {
                    sums[(p * PLANES + q) * 2 + h] = Some(numbers(patch) + numbers(skip));
                }
            }
        }
        Tiles::from_fn(1, 4 * PLANES, |_, p, n| -> Pair<'k> {
            let four = sums[(p * PLANES + n / 4) * 2 + n % 2].expect("a lane has both slots of every tile");
            four.slice(n % 4 / 2 * 2)
        })
    }
}
