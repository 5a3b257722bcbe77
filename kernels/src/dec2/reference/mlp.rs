//! V8 and V9: residuals with a bias, and the activation.

use half::f16;

use super::matrix::Matrix;
use super::number::{add, fma, maxnum, minnum, mul, sub};
use crate::dec2::constants::{ACT_HALF, ACT_LIMIT, ACT_MID, ACT_SLOPE};
use crate::dec2::options::ActRound;

/// V8: a value for each column plus the residual.
pub fn col_add(table: &[f16], residual: &Matrix<f16>) -> Matrix<f16> {
    Matrix::from_fn(residual.row_count(), residual.column_count(), |i, j| add(table[j], residual[(i, j)]))
}

/// The activation's gate: 0 at −2 and below, 1 at 2 and above, `0.5 + y · (0.412… − 0.081… · |y|)` between.
pub fn act_gate(x: f16, round: ActRound) -> f16 {
    let y = minnum(maxnum(x, -ACT_LIMIT), ACT_LIMIT);
    let magnitude = f16::from_bits(y.to_bits() & 0x7FFF);
    match round {
        ActRound::Stepwise => add(ACT_HALF, mul(y, sub(ACT_MID, mul(ACT_SLOPE, magnitude)))),
        ActRound::Fused => fma(y, fma(-ACT_SLOPE, magnitude, ACT_MID), ACT_HALF),
    }
}

/// V9: x times its gate.
pub fn cubic_act(x: f16, round: ActRound) -> f16 {
    mul(x, act_gate(x, round))
}
