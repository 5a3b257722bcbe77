//! Products of e4m3 matrices, f16 sums: rounded after every 32 of K.

use half::f16;
use lathe_dsl::numerics::{Float, MmaRounding, Narrow, hopper_step, hopper_step_f16};

use super::matrix::Matrix;
use super::number::rounded;
use crate::dec2::fragment::STEP;
use crate::dec2::options::{MmaAcc, Options};

/// A·B + C, of codes `[m][k]` and `[k][n]`; K in steps of 32, each with the sum of those before it as its C.
pub fn product(a: &Matrix<u8>, b: &Matrix<u8>, c: &Matrix<f16>, options: &Options) -> Matrix<f16> {
    let value = |code| f64::from(Narrow::E4m3.decode(code));
    let (a, b) = (a.map(value), b.transposed().map(value));
    Matrix::from_fn(a.row_count(), b.row_count(), |i, j| {
        let steps = a.row(i).chunks(STEP as usize).zip(b.row(j).chunks(STEP as usize));
        steps.fold(c[(i, j)], |c, (a, b)| step(a, b, c, options))
    })
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
        (factors.clone().take(STEP as usize / 2), factors.skip(STEP as usize / 2))
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
