//! The weights.

use half::f16;
use lathe_dsl::numerics::Float;

use super::{DIFFERENCES, NEIGHBOURS, SCALE, channel};
use crate::dec2::options::{NanSign, SubpixelOrder, TapOrder};
use crate::dec2::reference::number::quantise;
use crate::dec2::reference::patch::sub_pixel;
use crate::dec2::weights::{DenseWeights, WeightShape};
use crate::dec2::{CHANNELS, OUTPUTS, TAPS, WARPS};

/// The constant channel before the norm, and the gains: a feature is divided by 4.
const CONSTANT: f64 = 64.0;
const GAIN: f64 = 16.0;

/// What a difference of 1 is after the norm.
const NORMED: f64 = SCALE * GAIN / CONSTANT;

/// Slope of the two hidden units, per difference.
const SLOPE: f64 = 64.0;

/// How much the pixel's own differences count beside the guide's.
const OWN: f64 = 0.25;

/// Threshold of the hidden units without noise, below which the activation is exactly 0, and what a noise estimate of 1 (after the norm) adds.
const THRESHOLD: f64 = 2.0;
const PER_NOISE: f64 = 3.0;

/// From roughness to the mean: the projection to the head's value, whose 96 probabilities are a little less than 1/96 each.
const VALUE: f64 = 8.0;

/// What a penalty of 1 takes from a logit.
const PENALTY: f64 = 2.0;

/// Logit of the gate: open by 1 − 2^-11 and more.
const OPEN: f64 = 8.0;

/// Weights of the block for [`features`](super::features()).
pub fn weights(subpixels: SubpixelOrder, taps: TapOrder) -> DenseWeights {
    let code = |x: f64| quantise(<f16 as Float>::from_f64(x), NanSign::Positive);
    let half = <f16 as Float>::from_f64;
    let mut w = DenseWeights::zeros(&WeightShape::DEC2);
    let (c, hidden, outputs) = (CHANNELS as usize, 4 * CHANNELS as usize, OUTPUTS as usize);

    for z in 0..WARPS {
        let (sub_y, sub_x) = sub_pixel(z, subpixels);
        let first = z as usize * c;
        for (i, (dy, dx)) in NEIGHBOURS.into_iter().enumerate() {
            let (there, here) = ([place(sub_y, dy), place(sub_x, dx)], [place(sub_y, 0), place(sub_x, 0)]);
            for (j, (row, column)) in NEIGHBOURS.into_iter().enumerate() {
                let part = |at: [f64; 2]| share(at[0], row) * share(at[1], column);
                for plane in (0..DIFFERENCES).step_by(NEIGHBOURS.len()) {
                    w.patch[(plane + j) * hidden + first + channel::GUIDE + plane + i] = code(part(there) - part(here));
                }
            }
        }
        w.patch_bias[first + channel::CONSTANT] = half(CONSTANT);
    }
    w.gain1.fill(half(GAIN));
    w.gain2.fill(half(GAIN));

    // Queries and keys of 0: every key weighs the same.
    let head = &mut w.heads[0];
    let width = head.value.len() / c;
    head.value[channel::ROUGHNESS * width] = code(VALUE);
    head.out_proj[channel::NOISE] = code(1.0);

    for i in 0..DIFFERENCES {
        for (unit, sign) in [(2 * i, 1.0), (2 * i + 1, -1.0)] {
            w.fc1[(channel::GUIDE + i) * hidden + unit] = code(sign * SLOPE / NORMED);
            w.fc1[(channel::OWN + i) * hidden + unit] = code(sign * OWN * SLOPE / NORMED);
            w.fc1[channel::NOISE * hidden + unit] = code(-PER_NOISE);
            w.fc1_bias[unit] = half(-THRESHOLD);
            w.fc2[unit * c + channel::PENALTY + i % NEIGHBOURS.len()] = code(-1.0);
        }
    }
    for (i, (dy, dx)) in NEIGHBOURS.into_iter().enumerate() {
        let (row, column) = ((dy + 1) as usize, (dx + 1) as usize);
        let tap = match taps {
            TapOrder::RowMajor => 3 * row + column,
            TapOrder::ColMajor => 3 * column + row,
        };
        w.head[(channel::PENALTY + i) * outputs + tap] = code(PENALTY);
    }
    w.head_bias[TAPS as usize] = half(OPEN);
    w
}

/// Where the neighbour `step` pixels on from sub-pixel `sub` lies, in coarse pixels from the centre of the coarse one.
fn place(sub: u32, step: i32) -> f64 {
    f64::from(sub) * 0.5 - 0.25 + 0.5 * f64::from(step)
}

/// Share of the coarse pixel `step` on in the guide at `place`: linear between centres.
fn share(place: f64, step: i32) -> f64 {
    (1.0 - (place - f64::from(step)).abs()).max(0.0)
}
