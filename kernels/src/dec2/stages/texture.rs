//! Textures of four f16 a texel, as loads of a buffer: the same on chips with and without samplers.

use lathe_dsl::prelude::*;

use crate::dec2::options::ColourFilter;

/// An image, `[height][width][4]`.
#[derive(Clone, Copy)]
pub struct Texture<'k> {
    /// Its texels.
    pub texels: Buffer<'k, f16, In>,
    /// Width in texels.
    pub width: u32,
    /// Height in texels.
    pub height: u32,
}

impl<'k> Texture<'k> {
    /// The texel `at`, counted by rows.
    pub fn texel(&self, k: &'k Builder<'k>, at: V<'k, u32>) -> [V<'k, f16>; 4] {
        k.buffer_load::<Vector<f16, 4>>(self.texels, at * 4).elements()
    }

    /// The texel of a column and a row, the nearest one for those outside.
    fn clamped(&self, k: &'k Builder<'k>, x: V<'k, i32>, y: V<'k, i32>) -> [V<'k, f16>; 4] {
        let inside = |v: V<'k, i32>, e: u32| v.maximum(0).minimum(e as i32 - 1).bitcast::<u32>();
        self.texel(k, inside(y, self.height) * self.width + inside(x, self.width))
    }

    /// The colour at (`u`, `v`), the image being 1×1 large.
    pub fn sample(&self, k: &'k Builder<'k>, u: V<'k, f32>, v: V<'k, f32>, filter: ColourFilter) -> [V<'k, f16>; 4] {
        match filter {
            ColourFilter::Nearest => {
                let texel = |at: V<'k, f32>, extent: u32| (at * extent as f32).floor().to::<i32>();
                self.clamped(k, texel(u, self.width), texel(v, self.height))
            }
            ColourFilter::Bilinear => {
                let ((x, across), (y, down)) = (between(u, self.width), between(v, self.height));
                let row = |y: V<'k, i32>| {
                    let [left, right] = [x, x + 1].map(|x| self.clamped(k, x, y).map(|c| c.to::<f32>()));
                    std::array::from_fn::<_, 4, _>(|c| mixed(left[c], right[c], across))
                };
                let (above, below) = (row(y), row(y + 1));
                std::array::from_fn(|c| mixed(above[c], below[c], down).to())
            }
        }
    }
}

/// The texel whose centre lies before a coordinate, and how far the coordinate is on the way to the next one's, in steps of 1/256.
fn between<'k>(at: V<'k, f32>, extent: u32) -> (V<'k, i32>, V<'k, f32>) {
    let steps = (at.fma(extent as f32, -0.5) * 256.0 + 0.5).floor().to::<i32>();
    (steps >> 8, (steps & 255).to::<f32>() * (1.0 / 256.0))
}

/// `p` at 0, `q` at 1.
fn mixed<'k>(p: V<'k, f32>, q: V<'k, f32>, at: V<'k, f32>) -> V<'k, f32> {
    at.fma(q, (-at).fma(p, p))
}
