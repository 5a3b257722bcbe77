//! Rounding to odd: an inexact result takes the neighbour whose last bit is 1. Rounding that to a type with at least two
//! bits less gives what rounding the exact value once would have given.

/// `x` rounded to odd. A finite number too large for `f32` gives the largest finite one.
pub(super) fn f32_odd(x: f64) -> f32 {
    let near = x as f32;
    let back = f64::from(near);
    if back == x || x.is_nan() {
        return near;
    }
    let bits = near.to_bits();
    // Towards zero, then the last bit set; ∞ is one step past the largest finite number.
    let below = if back.abs() > x.abs() { bits - 1 } else { bits };
    f32::from_bits(below | 1)
}

/// An integer whose magnitude fits 64 bits, rounded to odd.
pub(super) fn f32_odd_of_int(x: i128) -> f32 {
    let magnitude = x.unsigned_abs() as u64;
    // 24 bits are kept.
    let excess = 40u32.saturating_sub(magnitude.leading_zeros());
    let kept = magnitude >> excess;
    let sticky = u64::from(magnitude & !(u64::MAX << excess) != 0);
    let value = ((kept | sticky) as f32) * f32::from_bits((127 + excess) << 23);
    if x < 0 { -value } else { value }
}

/// `a + b` rounded to odd. The exact error of the nearest sum tells on which side the exact one lies.
pub(super) fn add_odd(a: f64, b: f64) -> f64 {
    let sum = a + b;
    let part = sum - a;
    let error = (a - (sum - part)) + (b - part);
    if !sum.is_finite() || error == 0.0 || error.is_nan() || sum.to_bits() & 1 == 1 {
        return sum;
    }
    // The sum is even and not exact, so its odd neighbour towards the exact value is the answer.
    let away = (error > 0.0) == (sum > 0.0);
    f64::from_bits(if away { sum.to_bits() + 1 } else { sum.to_bits() - 1 })
}
