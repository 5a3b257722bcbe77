//! V12: the head's outputs as a 3×3 filter of the colour image, and a gate between its result and another image.

use lathe_dsl::prelude::*;

use super::skip_residual::Window;
use super::tiles::Tiles;
use super::warp::Warp;
use crate::dec2::constants::LOG2_E;
use crate::dec2::options::{TapBorder, TapOrder};
use crate::dec2::shared::output_word;
use crate::dec2::{LANES, PIXELS, TAPS, WINDOW};

/// Channels that are made.
const COLOURS: usize = 3;

/// What the gate takes and where its result goes.
pub struct Images<'k> {
    /// What is filtered.
    pub colour: Texture<'k, f16>,
    /// What a shut gate shows, pixel by pixel.
    pub blend: Texture<'k, f16>,
    /// What is added where it is a number, pixel by pixel.
    pub offset: Texture<'k, f16>,
    /// The result, `[ey][ex][4]`; the fourth number is 0.
    pub surface: Surface<'k, f16>,
    /// Distance of two pixels' centres in the colour image, where that is 1×1 large.
    pub step: [V<'k, f32>; 2],
}

/// How colours are taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Taps {
    /// Pixels outside of the image.
    pub border: TapBorder,
    /// Which logit is which pixel's.
    pub order: TapOrder,
}

impl<'k> Warp<'k> {
    /// V12 `KernelGate`: a pixel a lane of the first two warps. The workgroup comes together after [`Warp::stage_outputs`].
    pub fn kernel_gate(&self, shared: V<'k, LdsPtr<u8>>, window: &Window<'k>, images: &Images<'k>, taps: Taps) {
        let k = self.k;
        let pixel = self.z * LANES + self.lane;
        let x = window.x0 + pixel.rem_floor(WINDOW).bitcast::<i32>();
        let y = window.y0 + pixel.div_floor(WINDOW).bitcast::<i32>();
        k.if_(pixel.lt(PIXELS) & window.contains(x, y), || {
            let [weights @ .., gate] = self.filter(shared, pixel);
            let filtered = self.filtered(&weights, x, y, window, images, taps);
            let [blend, offset] =
                [images.blend, images.offset].map(|image| k.texture_fetch::<f16, _>(image, x, y).elements());
            let open = sigmoid(gate);
            let closed = k.constant(f16::ONE) - open;
            let mut out = [k.constant(f16::ZERO); 4];
            for (c, filtered) in filtered.into_iter().enumerate() {
                let mixed = blend[c].fma(closed, filtered * open);
                out[c] = offset[c].is_nan().select(mixed, mixed + offset[c]);
            }
            k.surface_store(k.vector(out), images.surface, x, y);
        });
    }

    /// V12 `StageOutputs`: the first twelve outputs of every pixel into shared memory.
    pub fn stage_outputs(&self, outputs: &Tiles<'k>, shared: V<'k, LdsPtr<u8>>) {
        let k = self.k;
        for owned in self.owned() {
            let pixel = self.z * 16 + owned.row;
            let store = |n: usize| {
                let words: Vec<_> = owned.slots.iter().map(|p| outputs.at(0, *p, n).bitcast()).collect();
                let at = pixel * output_word(1, 0) + owned.t * 4 + output_word(0, 4 * n as u32);
                self.store_shared(&words, shared.byte_offset(at));
            };
            store(0);
            // Words 6 and 7 are the next pixel's.
            k.if_(owned.t.lt(2), || store(1));
        }
    }

    /// The nine weights of a pixel's filter and the gate's logit.
    fn filter(&self, shared: V<'k, LdsPtr<u8>>, pixel: V<'k, u32>) -> [V<'k, f16>; TAPS as usize + 1] {
        let k = self.k;
        let at = |word: u32| shared.byte_offset::<u32>(pixel * output_word(1, 0) + output_word(0, word));
        let halves = |word: u32| k.ptr_load::<u32>(at(word)).bitcast::<Vector<f16, 2>>().elements();
        let mut channels: [V<'k, f16>; TAPS as usize + 1] = [k.constant(f16::ZERO); TAPS as usize + 1];
        for word in 0..5 {
            channels[2 * word as usize..][..2].copy_from_slice(&halves(word));
        }
        let [logits @ .., gate] = channels;
        let most = logits[1..].iter().fold(logits[0], |most, x| most.maxnum(*x));
        let exponentials = logits.map(|x| ((x - most).to::<f32>() * LOG2_E).hw_exp2());
        let sum = exponentials[1..].iter().fold(exponentials[0], |sum, e| sum + *e);
        let inverse = sum.hw_rcp().to::<f16>();
        let mut out = [gate; TAPS as usize + 1];
        for (w, e) in out.iter_mut().zip(exponentials) {
            *w = e.to::<f16>() * inverse;
        }
        out
    }

    /// The filtered colour of a pixel.
    fn filtered(
        &self,
        weights: &[V<'k, f16>],
        x: V<'k, i32>,
        y: V<'k, i32>,
        window: &Window<'k>,
        images: &Images<'k>,
        taps: Taps,
    ) -> [V<'k, f16>; COLOURS] {
        let k = self.k;
        let coordinates = |v: V<'k, i32>, e: V<'k, u32>, step: V<'k, f32>| {
            [-1, 0, 1].map(|d| step.fma(tap(taps.border, v + d, e).to::<f32>(), step * 0.5))
        };
        let [sx, sy] = images.step;
        let (us, vs) = (coordinates(x, window.ex, sx), coordinates(y, window.ey, sy));
        let mut sums = [k.constant(f16::ZERO); COLOURS];
        for (i, weight) in weights.iter().enumerate() {
            let (row, column) = match taps.order {
                TapOrder::RowMajor => (i / 3, i % 3),
                TapOrder::ColMajor => (i % 3, i / 3),
            };
            let colour = k.texture_sample::<f16, _>(images.colour, us[column], vs[row]).elements();
            sums = std::array::from_fn(|c| colour[c].fma(*weight, sums[c]));
        }
        sums
    }
}

/// [`TapBorder::map`] of device values.
fn tap<'k>(border: TapBorder, v: V<'k, i32>, e: V<'k, u32>) -> V<'k, i32> {
    let e = e.bitcast::<i32>();
    match border {
        TapBorder::Reflect101 => {
            let v = v.lt(0).select(1, v);
            (e - 1).lt(v).select(e - 2, v)
        }
        TapBorder::Clamp => v.maximum(0).minimum(e - 1),
    }
}

/// `1/(1 + e^-x)` through f32.
fn sigmoid(x: V<'_, f16>) -> V<'_, f16> {
    (((x.to::<f32>() * -LOG2_E).hw_exp2() + 1.0).hw_rcp()).to()
}
