//! The tensor core of sm_90, measured.

use half::f16;

use crate::numerics::Float;

/// One step of sm_90's tensor core with f32 sums: up to 16 products of f16 or bf16 values and one sum.
///
/// With exp(x) = ⌊log2 |x|⌋, but at least its `floors` for the left and the right factor (−14 for f16 and what is converted to
/// it, −126 for bf16) and −126 for `c`, and emax the largest of exp(a)+exp(b) over products that are not 0 and exp(c): every product and `c` is cut towards
/// 0 to a multiple of 2^(emax − 25), the sum of these is exact, and is cut towards 0 to 24 significant bits. A zero is +0, a NaN
/// 0x7FFFFFFF. Held against an H200 on 254,244 outputs of e4m3 and 38,400 of f16 and bf16, without a difference.
///
/// `factors` are pairs of exact values of the operand type.
pub fn hopper_step(factors: impl Iterator<Item = (f64, f64)> + Clone, c: f32, floors: [i32; 2]) -> f32 {
    let Aligned { sum, unit } = match aligned(factors, c.into(), [floors[0], floors[1], -126]) {
        Ok(sum) => sum,
        Err(special) => return if special.is_nan() { f32::from_bits(0x7FFF_FFFF) } else { special as f32 },
    };
    let magnitude = sum.unsigned_abs();
    // 24 significant bits, fewer where f32 is subnormal.
    let length = 64 - magnitude.leading_zeros() as i32;
    let dropped = (length - 24).max(-149 - unit).clamp(0, 63);
    let kept = magnitude >> dropped << dropped;
    let value = scaled(kept as f64, unit);
    let value = if value > f64::from(f32::MAX) { f32::INFINITY } else { value as f32 };
    if sum < 0 && value != 0.0 { -value } else { value }
}

/// The same with f16 factors and f16 sums: exp(c) is at least −14, and the sum is rounded to f16 once, to nearest even. A NaN is
/// 0x7FFF.
pub fn hopper_step_f16(factors: impl Iterator<Item = (f64, f64)> + Clone, c: f16) -> f16 {
    match aligned(factors, c.to_f64(), [-14; 3]) {
        // Below 2^34, so exact in f64; and an f16 at its smallest is still far from f64's.
        Ok(Aligned { sum, unit }) => <f16 as Float>::from_f64(scaled(sum as f64, unit)),
        Err(special) if special.is_nan() => f16::from_bits(0x7FFF),
        Err(special) => <f16 as Float>::from_f64(special),
    }
}

/// The number `sum` · 2^`unit`.
struct Aligned {
    sum: i64,
    unit: i32,
}

/// The exact sum of the cut terms; where one is infinite or NaN, what that makes of the sum.
fn aligned(factors: impl Iterator<Item = (f64, f64)> + Clone, c: f64, floors: [i32; 3]) -> Result<Aligned, f64> {
    let plain = factors
        .clone()
        .map(|(a, b)| a * b)
        .fold(c, |sum, p| if p.is_finite() && sum.is_finite() { 0.0 } else { sum + p });
    if !plain.is_finite() {
        return Err(plain);
    }
    let products = factors.clone().filter(|(a, b)| a * b != 0.0);
    let largest = products.clone().map(|(a, b)| exponent(a).max(floors[0]) + exponent(b).max(floors[1]));
    let Some(top) = largest.chain((c != 0.0).then(|| exponent(c).max(floors[2]))).max() else {
        return Ok(Aligned { sum: 0, unit: 0 });
    };
    // In units of 2^(top − 25) a term is below 2^28, and `as` cuts towards 0.
    let unit = top - 25;
    let cut = |x: f64| scaled(x, -unit) as i64;
    Ok(Aligned { sum: products.map(|(a, b)| cut(a * b)).sum::<i64>() + cut(c), unit })
}

/// x · 2^e in two exact steps, as the power itself may be beyond f64.
fn scaled(x: f64, e: i32) -> f64 {
    x * 2f64.powi(e / 2) * 2f64.powi(e - e / 2)
}

/// ⌊log2 |x|⌋ of a normal f64.
fn exponent(x: f64) -> i32 {
    (x.to_bits() >> 52) as i32 % 2048 - 1023
}
