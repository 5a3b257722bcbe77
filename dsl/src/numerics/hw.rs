//! What the CPU device makes of the chips' approximate instructions: the correctly rounded function.

/// 2^x, correctly rounded to `f32` (nearest even) but for exact ties of the 53-bit intermediate result.
///
/// The CPU meaning of the `hw_exp2` operation. NaN gives NaN; results below the smallest subnormal round to zero.
pub fn hw_exp2(x: f32) -> f32 {
    libm::exp2(f64::from(x)) as f32
}

/// log2(x), correctly rounded to `f32` but for near-ties of the 53-bit intermediate result.
///
/// The CPU meaning of the `hw_log2` operation. `±0` gives −∞, negative numbers NaN.
pub fn hw_log2(x: f32) -> f32 {
    libm::log2(f64::from(x)) as f32
}

/// 1/x, correctly rounded to `f32`.
///
/// The CPU meaning of the `hw_rcp` operation. `±0` gives `±∞`, `±∞` gives `±0`.
pub fn hw_rcp(x: f32) -> f32 {
    1.0 / x
}

/// 1/√x, correctly rounded to `f32`.
///
/// The CPU meaning of the `hw_rsq` operation. `±0` gives `±∞`, ∞ gives 0, negative numbers NaN.
pub fn hw_rsq(x: f32) -> f32 {
    if x == 0.0 || !x.is_finite() || x < 0.0 {
        return 1.0 / x.sqrt();
    }
    // x = m · 2^e with 2^23 ≤ m < 2^25 and e even.
    let (fraction, exponent) = (u128::from(x.to_bits() & 0x7F_FFFF), (x.to_bits() >> 23) as i32);
    let (mut m, mut e) = if exponent == 0 { (fraction, -149) } else { (fraction | 1 << 23, exponent - 150) };
    while m < 1 << 23 || e % 2 != 0 {
        (m, e) = (m << 1, e - 1);
    }
    // The first 33 or 34 bits of 2^45/√m, and one more that tells whether anything follows: the rest is one rounding.
    let square = (1u128 << 90) / m;
    let root = square.isqrt();
    let exact = root * root * m == 1 << 90;
    let digits = (root << 1) | u128::from(!exact);
    (digits as f64 * f64::powi(2.0, -46 - e / 2)) as f32
}

/// √x, correctly rounded to `f32`.
///
/// The CPU meaning of the `hw_sqrt` operation. −0 gives −0, negative numbers NaN.
pub fn hw_sqrt(x: f32) -> f32 {
    x.sqrt()
}
