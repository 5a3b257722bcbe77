//! V5 to V7: scores of keys with themselves, and a softmax whose exponential is a cubic.

use half::f16;

use super::gemm;
use super::matrix::Matrix;
use super::norm::row_sum;
use super::number::{fma, maxnum, minnum, mul, rcp16};
use super::patch::quantised;
use crate::dec2::constants::{CUBIC_CONSTANT, CUBIC_LINEAR, CUBIC_MASK, CUBIC_SHIFT, SCORE_CLAMP, SCORE_SCALE};
use crate::dec2::options::{Options, ReduceTree};
use crate::dec2::{KEYS, PIXELS};

/// The cubic of a score: `1.375 + m · (0.927… − m²)` of the scaled, clamped score m. A NaN counts as the lower bound.
pub fn cubic(score: f16) -> f16 {
    let m = mul(score, SCORE_SCALE);
    let m = minnum(maxnum(m, SCORE_CLAMP[0]), SCORE_CLAMP[1]);
    fma(m, fma(m, -m, CUBIC_LINEAR), CUBIC_CONSTANT)
}

/// The weight of a score, from 2^-14 to 2^8: the cubic's bits shifted, so that its fraction becomes exponent and fraction.
pub fn cubic_exp(score: f16) -> f16 {
    f16::from_bits((cubic(score).to_bits() << CUBIC_SHIFT) & CUBIC_MASK)
}

/// V6: each row's weights over their sum.
pub fn cubic_softmax(scores: &Matrix<f16>, tree: ReduceTree) -> Matrix<f16> {
    let mut weights = scores.map(cubic_exp);
    for i in 0..weights.row_count() {
        let inverse = rcp16(row_sum(weights.row(i), tree));
        weights.row_mut(i).iter_mut().for_each(|w| *w = mul(*w, inverse));
    }
    weights
}

/// Scores `[64][96]` of a head's keys `[96][32]`, the first 64 of which are the queries, plus their bias.
pub fn scores(keys: &Matrix<f16>, bias: &[f16], options: &Options) -> Matrix<f16> {
    let keys = quantised(keys, options.nan_sign);
    let bias = Matrix::from_fn(PIXELS as usize, KEYS as usize, |i, j| bias[i * KEYS as usize + j]);
    gemm::product(&keys.rows(0, PIXELS as usize), &keys.transposed(), &bias, options)
}

/// A head's result `[64][32]`: probabilities times values.
pub fn mixed(probabilities: &Matrix<f16>, values: &Matrix<f16>, options: &Options) -> Matrix<f16> {
    let [p, v] = [probabilities, values].map(|m| quantised(m, options.nan_sign));
    let zero = Matrix::filled(p.row_count(), v.column_count(), f16::ZERO);
    gemm::product(&p, &v, &zero, options)
}
