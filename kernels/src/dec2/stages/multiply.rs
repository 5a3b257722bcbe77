//! The products: every step of 32 along K is rounded to f16.

use lathe_dsl::prelude::*;

use super::load::Image;
use super::numeric::border;
use super::skip_residual::Window;
use super::tiles::{Columns, Quads, Tiles};
use super::warp::{Pair, Warp};
use crate::dec2::options::{CoarseBorder, MmaAcc, SkipBorder};
use crate::dec2::phases::Base;
use crate::dec2::plane::CELL_WORDS;
use crate::dec2::{COARSE_CHANNELS, COARSE_ROWS, COARSE_SIDE};

/// Coarse features and where the workgroup's lie.
#[derive(Clone, Copy)]
pub struct Coarse<'k> {
    /// Planes of e4m3.
    pub features: Buffer<'k, u32, In>,
    /// Width.
    pub ex: V<'k, u32>,
    /// Height.
    pub ey: V<'k, u32>,
    /// What stands for features outside.
    pub border: CoarseBorder,
}

impl<'k> Warp<'k> {
    /// `A·B + C`, or `A·B`, every step of 32 along K rounded as `acc` says.
    pub fn multiply(&self, a: &Quads<'k>, b: &Columns<'k>, c: Option<&Tiles<'k>>, acc: MmaAcc) -> Tiles<'k> {
        let (m_tiles, n_tiles) = (a.extent().0, b.extent().0);
        let tiles: Vec<[Pair<'k>; 2]> = (0..m_tiles * n_tiles)
            .map(|i| {
                let (m, n) = (i / n_tiles, i % n_tiles);
                let c = c.map(|c| [0, 1].map(|p| c.at(m, p, n)));
                (0..b.extent().1)
                    .fold(c, |sum, ks| Some(self.step(a.at(m, ks), b.at(n, ks), sum, acc)))
                    .unwrap_or_else(|| [self.k.filled(f16::ZERO); 2])
            })
            .collect();
        Tiles::from_fn(m_tiles, n_tiles, |m, p, n| tiles[m * n_tiles + n][p])
    }

    /// A step of 32 along K.
    fn step(
        &self,
        left: [V<'k, u32>; 4],
        right: [V<'k, u32>; 2],
        c: Option<[Pair<'k>; 2]>,
        acc: MmaAcc,
    ) -> [Pair<'k>; 2] {
        let sum = match acc {
            MmaAcc::Sm90Emul => {
                // The lower halves of words are of the lower 16 of K, in every layout.
                let [low, high] = [0x0000_FFFFu32, 0xFFFF_0000].map(|half| left.map(|word| word & half));
                let sum = self.rounded_sum(high, right, Some(self.rounded_sum(low, right, None)));
                c.map_or(sum, |c| [sum[0] + c[0], sum[1] + c[1]])
            }
            // The exact sum, which the other is of, is no kernel's.
            MmaAcc::F32PerK32 | MmaAcc::NativeF16 => self.rounded_sum(left, right, c),
        };
        // LLVM would round and add where a sum is used, behind the branches of an epilogue, and hold what it comes of until then: twice
        // the registers, and on AMD those of the chip's wider tiles, which gfx1201 has not.
        sum.map(V::opaque)
    }

    /// An f32 sum of products and C, rounded to f16.
    fn rounded_sum(&self, left: [V<'k, u32>; 4], right: [V<'k, u32>; 2], c: Option<[Pair<'k>; 2]>) -> [Pair<'k>; 2] {
        let k = self.k;
        let left: FragmentA<'k, MmaE4m3> = k.fragment(&left);
        let right: FragmentB<'k, MmaE4m3> = k.fragment(&right);
        let seed = c.map_or_else(
            || k.zero_fragment(),
            |pairs| k.fragment(&pairs.map(|p| p.to::<Vector<f32, 2>>().elements()).concat()),
        );
        let [x, y, z, w] = <[V<'k, f32>; 4]>::try_from(k.mma(left, right, seed).registers())
            .unwrap_or_else(|r| unreachable!("{} registers of a sum", r.len()));
        [[x, y], [z, w]].map(|pair| k.vector(pair).to())
    }

    /// The patch expand: 6×6 coarse pixels times the warp's slab, 96 columns.
    pub fn expand(
        &self,
        image: Image<'k>,
        [weights, bias]: [Base; 2],
        coarse: &Coarse<'k>,
        window: &Window<'k>,
        acc: MmaAcc,
    ) -> Tiles<'k> {
        let steps = (COARSE_CHANNELS / 32) as usize;
        let a = self.coarse_quads(coarse, window, steps);
        let bias = self.load_table(image, self.of_warp(bias.base, bias.z_stride), 12);
        let base = self.of_warp(weights.base, weights.z_stride);
        // By two column tiles: the right factor is too large to hold, so none is loaded ahead.
        let parts: Vec<Tiles<'k>> = (0..6)
            .map(|pair| {
                let b = self.load_columns(image, base + (pair * steps * 512) as u32, 1, steps);
                let c = Tiles::from_fn(a.extent().0, 2, |_, p, n| bias[p][2 * pair + n]);
                let sums = self.multiply(&a, &b, Some(&c), acc);
                self.k.sched_barrier(0);
                sums
            })
            .collect();
        Tiles::from_fn(a.extent().0, 12, |m, p, n| parts[n / 2].at(m, p, n % 2))
    }

    /// The coarse pixels around the window as a left factor; rows past the 36th are zeros.
    fn coarse_quads(&self, coarse: &Coarse<'k>, window: &Window<'k>, steps: usize) -> Quads<'k> {
        let k = self.k;
        let m_tiles = (COARSE_ROWS / 16) as usize;
        // By tile, step, register.
        let mut words = vec![[k.constant(0u32); 4]; m_tiles * steps];
        for m in 0..m_tiles {
            for owned in self.owned() {
                let row = owned.row + 16 * m as u32;
                let at = |first: V<'k, i32>, i: V<'k, u32>, e: V<'k, u32>| {
                    border(of_skip(coarse.border), (first >> 1) - 1 + i.bitcast::<i32>(), e)
                };
                let y = at(window.y0, row.div_floor(COARSE_SIDE), coarse.ey);
                let x = at(window.x0, row.rem_floor(COARSE_SIDE), coarse.ex);
                let live = row.lt(COARSE_SIDE * COARSE_SIDE);
                let cell = (coarse.ex * y + x) * CELL_WORDS + owned.t;
                let plane = coarse.ex * coarse.ey * CELL_WORDS;
                for (q, h) in (0..steps).flat_map(|q| [(q, 0), (q, 1)]) {
                    let at = plane * q as u32 + cell + 4 * h as u32;
                    let loaded = self.load_words_where(coarse.features, at, owned.slots.len(), live);
                    for (p, word) in owned.slots.iter().zip(loaded) {
                        words[m * steps + q][p + 2 * h] = word;
                    }
                }
            }
        }
        Quads::from_fn(m_tiles, steps, |m, ks| words[m * steps + ks])
    }
}

/// The two borders have the same rules.
fn of_skip(border: CoarseBorder) -> SkipBorder {
    match border {
        CoarseBorder::Reflect101Clamp => SkipBorder::Reflect101Clamp,
        CoarseBorder::Clamp => SkipBorder::Clamp,
    }
}
