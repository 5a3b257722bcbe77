//! Products of e4m3 matrices, f16 sums: rounded after every 32 of K.

use half::f16;
use lathe_dsl::numerics::{Float, MmaRounding, hopper_step, hopper_step_f16};

use super::matrix::Matrix;
use super::number::{decode, rounded};
use crate::dec2::fragment::STEP;
use crate::dec2::options::{MmaAcc, Options};

/// Columns whose sums are made together.
const PANEL: usize = 8;

/// A·B + C, of codes `[m][k]` and `[k][n]`; K in steps of 32, each with the sum of those before it as its C.
pub fn product(a: &Matrix<u8>, b: &Matrix<u8>, c: &Matrix<f16>, options: &Options) -> Matrix<f16> {
    let a = a.map(value);
    let steps_of_a: Vec<Vec<f64>> = (0..a.row_count()).map(|i| a.row(i).chunks(DEPTH).map(largest).collect()).collect();
    let mut out = c.clone();
    for first in (0..b.column_count()).step_by(PANEL) {
        let columns = PANEL.min(b.column_count() - first);
        // Columns past the last are zeros, and their sums are dropped.
        let panel: Vec<[f64; PANEL]> = (0..b.row_count())
            .map(|k| std::array::from_fn(|j| if j < columns { value(b[(k, first + j)]) } else { 0.0 }))
            .collect();
        let steps: Vec<_> = panel.chunks(DEPTH).map(|b| (b, largest(b.as_flattened()))).collect();
        for (i, of_a) in steps_of_a.iter().enumerate() {
            let sums = &mut out.row_mut(i)[first..first + columns];
            for ((a, of_a), (b, of_b)) in a.row(i).chunks(DEPTH).zip(of_a).zip(&steps) {
                let halves = half_sums(a, b);
                for (j, c) in sums.iter_mut().enumerate() {
                    let halves = halves.map(|half| half[j]);
                    *c = rounded_step(halves, of_a * of_b, *c, options).unwrap_or_else(|| {
                        let column: Vec<f64> = b.iter().map(|row| row[j]).collect();
                        step(a, &column, *c, options)
                    });
                }
            }
        }
    }
    out
}

/// K of a step.
const DEPTH: usize = STEP as usize;

/// What a code means.
fn value(code: u8) -> f64 {
    decode(code).to_f64()
}

/// The largest magnitude; infinite if there is a NaN.
fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |largest, x| if x.is_nan() { f64::INFINITY } else { x.abs().max(largest) })
}

/// The exact sums of a step's lower and upper 16 products, of each column.
fn half_sums(a: &[f64], b: &[[f64; PANEL]]) -> [[f64; PANEL]; 2] {
    let half = a.len().min(DEPTH / 2);
    let sum = |a: &[f64], b: &[[f64; PANEL]]| {
        let mut sum = [0.0; PANEL];
        for (a, b) in a.iter().zip(b) {
            (0..PANEL).for_each(|j| sum[j] += a * b[j]);
        }
        sum
    };
    [sum(&a[..half], &b[..half]), sum(&a[half..], &b[half..])]
}

/// [`step`] from exact sums of its halves, where they tell it: `bound` is no less than a product's magnitude.
///
/// sm_90 cuts terms to multiples of 2^(emax − 25), and all of them are multiples of 2^-18: below 2^8 nothing is cut.
fn rounded_step([low, high]: [f64; 2], bound: f64, c: f16, options: &Options) -> Option<f16> {
    let all = low + high;
    let exact = all + c.to_f64() + 0.0;
    let uncut = |sum: f64| bound < 256.0 && sum.abs() < 256.0;
    let is_f32 = |sum: f64| f64::from(sum as f32) == sum;
    match (options.mma_acc, options.mma_rounding) {
        (MmaAcc::F32PerK32, MmaRounding::Exact) => Some(rounded(exact as f32)),
        (MmaAcc::F32PerK32, MmaRounding::Hopper) => {
            (uncut(low) && is_f32(low) && is_f32(all)).then(|| rounded(all as f32 + c.to_f32() + 0.0))
        }
        (MmaAcc::NativeF16, _) => Some(<f16 as Float>::from_f64(exact)),
        (MmaAcc::Sm90Emul, _) => uncut(low).then(|| {
            let low = <f16 as Float>::from_f64(low);
            let sum = <f16 as Float>::from_f64(low.to_f64() + high);
            rounded(sum.to_f32() + c.to_f32() + 0.0)
        }),
    }
}

/// The same value in every row: a column table as C.
pub fn columns(rows: usize, table: &[f16]) -> Matrix<f16> {
    Matrix::from_fn(rows, table.len(), |_, j| table[j])
}

/// One step: up to 32 products and C, as `mma_acc` rounds them.
pub fn step(a: &[f64], b: &[f64], c: f16, options: &Options) -> f16 {
    // Products are multiples of 2^-18 below 2^23 in all, C one of 2^-24: their sum is exact in f64. A zero is +0.
    let exact = || a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>() + c.to_f64() + 0.0;
    let halves = || {
        let factors = a.iter().copied().zip(b.iter().copied());
        (factors.clone().take(DEPTH / 2), factors.skip(DEPTH / 2))
    };
    match (options.mma_acc, options.mma_rounding) {
        (MmaAcc::F32PerK32, MmaRounding::Exact) => rounded(exact() as f32),
        (MmaAcc::F32PerK32, MmaRounding::Hopper) => {
            let (low, high) = halves();
            let sum = hopper_step(high, hopper_step(low, 0.0, [-14; 2]), [-14; 2]);
            rounded(sum + c.to_f32() + 0.0)
        }
        (MmaAcc::NativeF16, _) => <f16 as Float>::from_f64(exact()),
        (MmaAcc::Sm90Emul, _) => {
            let (low, high) = halves();
            let sum = hopper_step_f16(high, hopper_step_f16(low, f16::ZERO));
            rounded(sum.to_f32() + c.to_f32() + 0.0)
        }
    }
}
