//! V12: a 3×3 filter from nine logits, and the gate.

use half::f16;

use super::image::Image;
use super::number::{add, exp32, fma, maxnum, mul, rounded, sigmoid16, sub};
use crate::dec2::TAPS;
use crate::dec2::geometry::Extents;
use crate::dec2::options::{Options, TapOrder};
use lathe_dsl::numerics::hw_rcp;

const TAP_COUNT: usize = TAPS as usize;

/// The images that the filter reads.
#[derive(Clone, Copy, Debug)]
pub struct Pictures<'a> {
    /// What is filtered; of any size, read by normalised coordinates.
    pub colour: &'a Image,
    /// What a pixel is in these coordinates, along x and y: [`Image::step`] of `colour`, unless that is to be scaled.
    pub step: [f32; 2],
    /// What the gate mixes with the filtered colour, as large as the image.
    pub blend: &'a Image,
    /// What is added where it is not NaN, as large as the image.
    pub offset: &'a Image,
}

/// The weights of the nine logits: `RN(e^(L − M)) · RN(1 / S)`, S the f32 sum of the exponentials in order.
pub fn weights(logits: &[f16; TAP_COUNT]) -> [f16; TAP_COUNT] {
    let largest = logits[1..].iter().fold(logits[0], |m, l| maxnum(m, *l));
    let exponentials = logits.map(|l| exp32(sub(l, largest)));
    let sum = exponentials.iter().fold(0.0, |sum, e| sum + e);
    let inverse = rounded(hw_rcp(sum));
    exponentials.map(|e| mul(rounded(e), inverse))
}

/// Normalised coordinates of the taps' columns (or rows) around `at`, in an image `extent` wide whose texture steps by `step`.
pub fn tap_coordinates(at: u32, extent: u32, step: f32, options: &Options) -> [f32; 3] {
    let half = step * 0.5;
    [-1, 0, 1].map(|d| step.mul_add(options.tap_border.map(at as i32 + d, extent) as f32, half))
}

/// The filtered colour of pixel (x, y): `fma` by tap, starting at 0.
pub fn filtered(
    pictures: &Pictures<'_>,
    weights: &[f16; TAP_COUNT],
    extents: Extents,
    (x, y): (u32, u32),
    options: &Options,
) -> [f16; 3] {
    let us = tap_coordinates(x, extents.x, pictures.step[0], options);
    let vs = tap_coordinates(y, extents.y, pictures.step[1], options);
    let mut sums = [f16::ZERO; 3];
    for (k, weight) in weights.iter().enumerate() {
        let (row, column) = match options.tap_order {
            TapOrder::RowMajor => (k / 3, k % 3),
            TapOrder::ColMajor => (k % 3, k / 3),
        };
        let texel = pictures.colour.sample(us[column], vs[row], options.colour_filter);
        for (sum, channel) in sums.iter_mut().zip(texel) {
            *sum = fma(channel, *weight, *sum);
        }
    }
    sums
}

/// Filtered colour where the gate is open, `blend` where it is not, plus `offset`; +0 as the fourth channel.
pub fn gated(filtered: [f16; 3], gate: f16, blend: [f16; 4], offset: [f16; 4]) -> [f16; 4] {
    let open = sigmoid16(gate);
    let closed = sub(f16::ONE, open);
    let mut out = [f16::ZERO; 4];
    for c in 0..3 {
        out[c] = fma(blend[c], closed, mul(filtered[c], open));
        if !offset[c].is_nan() {
            out[c] = add(out[c], offset[c]);
        }
    }
    out
}

/// V12 for one pixel inside of the image; `outputs` are the head's, of which the first ten count.
pub fn kernel_gate(
    outputs: &[f16],
    pictures: &Pictures<'_>,
    extents: Extents,
    (x, y): (u32, u32),
    options: &Options,
) -> [f16; 4] {
    let logits = std::array::from_fn(|k| outputs[k]);
    let colour = filtered(pictures, &weights(&logits), extents, (x, y), options);
    let at = |image: &Image| image.texel(x.into(), y.into());
    gated(colour, outputs[TAP_COUNT], at(pictures.blend), at(pictures.offset))
}
