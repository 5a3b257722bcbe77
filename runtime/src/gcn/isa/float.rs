//! Floating-point rules shared by the vector ALU: NaN results, denormal flushing, output modifiers, rounding.

use crate::gcn::state::Mode;

/// NaN that an operation on numbers produces.
pub(crate) const NAN32: u32 = 0x7FC0_0000;
pub(crate) const NAN64: u64 = 0x7FF8_0000_0000_0000;
pub(crate) const NAN16: u16 = 0x7E00;

/// Sets the quiet bit of an f32 NaN.
pub(crate) fn quiet32(bits: u32) -> u32 {
    bits | 0x0040_0000
}

pub(crate) fn is_signalling32(bits: u32) -> bool {
    f32::from_bits(bits).is_nan() && bits & 0x0040_0000 == 0
}

/// Bits of an f32 result: the first NaN operand, quieted; the default NaN if the operation made one.
pub(crate) fn result32(r: f32, operands: &[u32]) -> u32 {
    if !r.is_nan() {
        return r.to_bits();
    }
    operands.iter().find(|o| f32::from_bits(**o).is_nan()).map_or(NAN32, |o| quiet32(*o))
}

/// Likewise for f64.
pub(crate) fn result64(r: f64, operands: &[u64]) -> u64 {
    if !r.is_nan() {
        return r.to_bits();
    }
    operands.iter().find(|o| f64::from_bits(**o).is_nan()).map_or(NAN64, |o| o | 0x0008_0000_0000_0000)
}

/// Likewise for f16.
pub(crate) fn result16(r: half::f16, operands: &[u16]) -> u16 {
    if !r.is_nan() {
        return r.to_bits();
    }
    operands.iter().find(|o| half::f16::from_bits(**o).is_nan()).map_or(NAN16, |o| o | 0x0200)
}

/// Flushes a denormal to zero of the same sign.
pub(crate) fn flush32(bits: u32) -> u32 {
    if bits & 0x7F80_0000 == 0 { bits & 0x8000_0000 } else { bits }
}

/// Likewise for f64.
pub(crate) fn flush64(bits: u64) -> u64 {
    if bits & 0x7FF0_0000_0000_0000 == 0 { bits & (1 << 63) } else { bits }
}

/// Likewise for f16.
pub(crate) fn flush16(bits: u16) -> u16 {
    if bits & 0x7C00 == 0 { bits & 0x8000 } else { bits }
}

/// `clamp` of an f32: into [0, 1]; NaN gives 0 in DX10 mode.
pub(crate) fn clamp32(bits: u32, mode: Mode) -> u32 {
    let f = f32::from_bits(bits);
    if f.is_nan() {
        return if mode.dx10_clamp { 0 } else { bits };
    }
    // Not `f32::clamp`: −0 becomes +0.
    (if f <= 0.0 { 0.0f32 } else { f.min(1.0) }).to_bits()
}

fn order32(bits: u32) -> i32 {
    let i = bits as i32;
    i ^ ((i >> 31) as u32 >> 1) as i32
}

/// `v_max_f32` / `v_min_f32`: a NaN loses against a number, −0 < +0; a signalling NaN wins, quieted, in IEEE mode.
pub(crate) fn select32(a: u32, b: u32, max: bool, mode: Mode) -> u32 {
    if mode.ieee
        && let Some(s) = [a, b].into_iter().find(|x| is_signalling32(*x))
    {
        return quiet32(s);
    }
    match (f32::from_bits(a).is_nan(), f32::from_bits(b).is_nan()) {
        (true, _) => b,
        (_, true) => a,
        _ if (order32(a) >= order32(b)) == max => a,
        _ => b,
    }
}

/// Same for f64.
pub(crate) fn select64(a: u64, b: u64, max: bool, mode: Mode) -> u64 {
    let quiet = 0x0008_0000_0000_0000;
    let nan = |x: u64| f64::from_bits(x).is_nan();
    if mode.ieee
        && let Some(s) = [a, b].into_iter().find(|x| nan(*x) && x & quiet == 0)
    {
        return s | quiet;
    }
    let order = |x: u64| x as i64 ^ ((x as i64 >> 63) as u64 >> 1) as i64;
    match (nan(a), nan(b)) {
        (true, _) => b,
        (_, true) => a,
        _ if (order(a) >= order(b)) == max => a,
        _ => b,
    }
}

/// Same for f16.
pub(crate) fn select16(a: u16, b: u16, max: bool, mode: Mode) -> u16 {
    let nan = |x: u16| half::f16::from_bits(x).is_nan();
    if mode.ieee
        && let Some(s) = [a, b].into_iter().find(|x| nan(*x) && x & 0x0200 == 0)
    {
        return s | 0x0200;
    }
    let order = |x: u16| x as i16 ^ ((x as i16 >> 15) as u16 >> 1) as i16;
    match (nan(a), nan(b)) {
        (true, _) => b,
        (_, true) => a,
        _ if (order(a) >= order(b)) == max => a,
        _ => b,
    }
}

/// IEEE 754-2019 maximum / minimum: NaN if either is, −0 < +0.
pub(crate) fn propagate32(a: f32, b: f32, max: bool) -> f32 {
    if a.is_nan() || b.is_nan() {
        return f32::from_bits(NAN32);
    }
    if (order32(a.to_bits()) >= order32(b.to_bits())) == max { a } else { b }
}

/// An f64 function of an f32 argument, rounded to f32: correctly rounded unless the exact value lies within an f64
/// rounding error of the middle between two f32 numbers.
pub(crate) fn via64(x: f32, f: impl Fn(f64) -> f64) -> f32 {
    f(f64::from(x)) as f32
}

/// (a · b + c) · 2^power, rounded once.
pub(crate) fn scaled_fma(a: f32, b: f32, c: f32, power: i32) -> f32 {
    if power == 0 {
        return libm::fmaf(a, b, c);
    }
    let (product, c) = (f64::from(a) * f64::from(b), f64::from(c));
    let sum = product + c;
    if !sum.is_finite() {
        return sum as f32;
    }
    // What the sum lost (exact, by Knuth's two-sum).
    let part = sum - product;
    let lost = (product - (sum - part)) + (c - part);
    let odd = if lost == 0.0 {
        sum
    } else {
        // Round to odd: f64 has the two bits more than f32 that make the second rounding the only one.
        let beyond = (lost > 0.0) != (sum > 0.0);
        f64::from_bits((sum.to_bits() - u64::from(beyond)) | 1)
    };
    (odd * libm::exp2(f64::from(power))) as f32
}

/// Likewise for f64.
pub(crate) fn scaled_fma64(a: f64, b: f64, c: f64, power: i32) -> f64 {
    let sum = libm::fma(a, b, c);
    if power == 0 || !sum.is_finite() {
        return sum;
    }
    let result = libm::scalbn(sum, power);
    let back = libm::scalbn(result, -power);
    let rest = sum - back;
    // Only a subnormal result is rounded again, and wrongly only from a tie: there what the sum lost decides.
    if !back.is_finite() || rest == 0.0 || rest.abs() != libm::scalbn(1.0, -1075 - power) {
        return result;
    }
    // The error of the sum (Boldo and Muller).
    let product = a * b;
    let low = libm::fma(a, b, -product);
    let (high, lost) = two_sum(c, low);
    let (beta, beta_lost) = two_sum(product, high);
    let error = ((beta - sum) + beta_lost) + lost;
    if error == 0.0 || (error > 0.0) != (rest > 0.0) {
        // `result` is the even neighbour; an exact tie, or less than one, on its side of the middle.
        return result;
    }
    let outwards = (rest > 0.0) == (sum > 0.0);
    f64::from_bits(if outwards { result.to_bits() + 1 } else { result.to_bits() - 1 })
}

/// Sum and its rounding error.
pub(crate) fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let part = sum - a;
    (sum, (a - (sum - part)) + (b - part))
}

/// Exponent field of an f32, unbiased; denormals as if normalised.
pub(crate) fn frexp32(x: f32) -> (f32, i32) {
    if x == 0.0 || !x.is_finite() {
        return (x, 0);
    }
    libm::frexpf(x)
}

/// Likewise for f64.
pub(crate) fn frexp64(x: f64) -> (f64, i32) {
    if x == 0.0 || !x.is_finite() {
        return (x, 0);
    }
    libm::frexp(x)
}

/// f64 to f16, nearest even, rounded once.
pub(crate) fn round16(x: f64) -> half::f16 {
    let near = x as f32;
    if f64::from(near) == x || !near.is_finite() {
        return half::f16::from_f32(near);
    }
    // Round to odd in f32: keeps the information that there was more below the last bit.
    let towards_zero = if f64::from(near).abs() > x.abs() { near.to_bits() - 1 } else { near.to_bits() };
    half::f16::from_f32(f32::from_bits(towards_zero | 1))
}

/// f16 to f32, bits to bits: exact, a NaN quieted with its payload.
pub(crate) fn widen16(bits: u16) -> u32 {
    let payload = u32::from(bits & 0x8000) << 16 | u32::from(bits & 0x3FF) << 13 | 0x7F80_0000;
    result32(half::f16::from_bits(bits).to_f32(), &[payload])
}

/// f32 to bf16, nearest even; NaN stays NaN.
pub(crate) fn bf16(bits: u32) -> u16 {
    half::bf16::from_f32(f32::from_bits(bits)).to_bits()
}

/// f32 to f16 towards zero.
pub(crate) fn f16_towards_zero(bits: u32) -> u16 {
    let x = f32::from_bits(bits);
    let h = half::f16::from_f32(x);
    if x.is_finite() && h.to_f32().abs() > x.abs() { h.to_bits() - 1 } else { h.to_bits() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_are_ordered_and_nans_lose() {
        let m = Mode::default();
        assert_eq!(select32(0x8000_0000, 0, true, m), 0);
        assert_eq!(select32(0, 0x8000_0000, false, m), 0x8000_0000);
        assert_eq!(select32(NAN32, 0x3F80_0000, true, m), 0x3F80_0000);
        assert_eq!(select32(0x3F80_0000, 0x7F80_0001, true, m), 0x7FC0_0001, "a signalling NaN wins in IEEE mode");
        assert_eq!(select32(0x3F80_0000, 0x7F80_0001, true, Mode { ieee: false, ..m }), 0x3F80_0000);
        assert_eq!(select64((-2f64).to_bits(), (-3f64).to_bits(), true, m), (-2f64).to_bits());
        assert_eq!(select16(0xC000, 0xC200, false, m), 0xC200);
    }

    #[test]
    fn nan_results_come_from_the_first_nan_operand() {
        assert_eq!(result32(f32::NAN, &[0x3F80_0000, 0x7F80_1234]), 0x7FC0_1234);
        assert_eq!(result32(f32::NAN, &[0x7F80_0000, 0xFF80_0000]), NAN32);
    }

    #[test]
    fn clamping() {
        let m = Mode::default();
        assert_eq!(clamp32(0x8000_0000, m), 0);
        assert_eq!(clamp32(2.5f32.to_bits(), m), 1f32.to_bits());
        assert_eq!(clamp32(NAN32, m), 0);
        assert_eq!(clamp32(NAN32, Mode { dx10_clamp: false, ..m }), NAN32);
    }

    #[test]
    fn scaled_fma_rounds_once() {
        let tiny = f32::from_bits(1);
        // 1.5 · 2^-149 exactly is a tie (to even: 2); less than that by one f32 unit rounds to 1.
        assert_eq!(scaled_fma(1.0, 0.0, 1.5 * 2f32.powi(-85), -64).to_bits(), 2);
        assert_eq!(scaled_fma(-1.0, 2f32.powi(-120), 1.5 * 2f32.powi(-85), -64), tiny);
        assert_eq!(scaled_fma(3.0, 2.0, 1.0, 64), 7.0 * 2f32.powi(64));
        assert!(scaled_fma(f32::INFINITY, 0.0, 1.0, 64).is_nan());
    }

    #[test]
    fn scaled_fma64_rounds_once() {
        // 1.5 · 2^-1074 is a tie (to even: 2); a little less than that rounds to 1, a little more of 2.5 to 3.
        let at = |x: f64| libm::scalbn(x, -1074 + 128);
        let tiny = libm::scalbn(1.0, -1010);
        assert_eq!(scaled_fma64(at(1.5), 1.0, 0.0, -128).to_bits(), 2);
        assert_eq!(scaled_fma64(tiny, -1.0, at(1.5), -128).to_bits(), 1);
        assert_eq!(scaled_fma64(at(2.5), 1.0, 0.0, -128).to_bits(), 2);
        assert_eq!(scaled_fma64(tiny, 1.0, at(2.5), -128).to_bits(), 3);
        assert_eq!(scaled_fma64(-tiny, 1.0, -at(2.5), -128).to_bits(), 3 | 1 << 63);
        assert_eq!(scaled_fma64(3.0, 2.0, 1.0, 128), libm::scalbn(7.0, 128));
    }

    #[test]
    fn f64_to_f16_rounds_once() {
        // Just above the middle between 1 and the next f16.
        assert_eq!(round16(1.0 + 2f64.powi(-11) + 2f64.powi(-40)).to_bits(), 0x3C01);
        assert_eq!(round16(1.0 + 2f64.powi(-11)).to_bits(), 0x3C00);
        assert_eq!(round16(-(1.0 + 2f64.powi(-11) - 2f64.powi(-40))).to_bits(), 0xBC00);
        assert_eq!(round16(1e300).to_bits(), 0x7C00);
    }

    #[test]
    fn f16_towards_zero_never_grows() {
        assert_eq!(f16_towards_zero(1.000_9f32.to_bits()), 0x3C00);
        assert_eq!(f16_towards_zero((-1.000_9f32).to_bits()), 0xBC00);
        // Finite values beyond the range end at the largest number, not at infinity.
        assert_eq!(f16_towards_zero(1e6f32.to_bits()), 0x7BFF);
    }
}
