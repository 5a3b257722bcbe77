/// The distance of a result from the exact value, in units of the last place at that value. Infinite where the kind of
/// result is wrong: a NaN or none.
pub(super) fn ulp(result: f32, exact: f64) -> f64 {
    if result.is_nan() || exact.is_nan() {
        return if result.is_nan() && exact.is_nan() { 0.0 } else { f64::INFINITY };
    }
    // Infinity counts as the number that would follow the largest one.
    let end = 2f64.powi(128);
    let (value, exact) = (f64::from(result).clamp(-end, end), exact.clamp(-end, end));
    let exponent = ((exact.to_bits() >> 52 & 0x7ff) as i32 - 1023).clamp(-126, 127);
    (value - exact).abs() * f64::from_bits(((1023 + 23 - exponent) as u64) << 52)
}

#[test]
fn counts_places() {
    let next = f32::from_bits(1f32.to_bits() + 1);
    assert_eq!(ulp(next, 1.0), 1.0);
    assert_eq!(ulp(1.0, f64::from(next)), 1.0);
    assert_eq!(ulp(f32::from_bits(1), 0.0), 1.0);
    assert_eq!(ulp(f32::from_bits(1), 2f64.powi(-150)), 0.5);
    assert_eq!(ulp(f32::INFINITY, f64::from(f32::MAX)), 1.0);
    assert_eq!(ulp(f32::INFINITY, f64::INFINITY), 0.0);
    assert!(ulp(f32::NAN, 1.0).is_infinite() && ulp(1.0, f64::NAN).is_infinite());
}
