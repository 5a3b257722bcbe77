//! Stochastic rounding.

use half::{bf16, f16};

/// `x` rounded to bf16 by chance: away from 0 if what is cut off, as a part of one unit in the last place, plus
/// `random / 2^32` is at least 1.
///
/// Beyond the largest number lies ∞. NaN gives NaN.
pub fn bf16_stochastic(x: f32, random: u32) -> bf16 {
    if x.is_nan() {
        return bf16::from_f32(x);
    }
    // 16 bits are cut off, so the random number's upper 16 decide. ∞ has nothing to carry.
    bf16::from_bits(((x.to_bits() + (random >> 16)) >> 16) as u16)
}

/// `x` rounded to f16 by chance: away from 0 if what is cut off, as a part of one unit in the last place (of subnormals
/// 2^-24), plus `random / 2^32` is at least 1.
///
/// Beyond the largest number lies ∞. NaN gives NaN.
pub fn f16_stochastic(x: f32, random: u32) -> f16 {
    if x.is_nan() {
        return f16::from_f32(x);
    }
    let sign = (x.to_bits() >> 16 & 0x8000) as u16;
    let size = x.to_bits() & 0x7FFF_FFFF;
    if size >= 65536f32.to_bits() {
        return f16::from_bits(sign | f16::INFINITY.to_bits());
    }
    // Of f32's subnormals all is cut off, and no random number is large enough to make up for it.
    let (exponent, significand) = (size >> 23, size & 0x7F_FFFF | 0x80_0000);
    // Bits of the significand below f16's unit in the last place; of small numbers more than f16's normal 13.
    let cut = 126u32.saturating_sub(exponent).clamp(13, 63);
    let units = (u64::from(significand) << 32 >> cut) + u64::from(random);
    // A normal number's hidden bit counts one exponent more.
    let normal = exponent.saturating_sub(113) << 10;
    f16::from_bits(sign | (normal + (units >> 32) as u32) as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The two numbers of a 16-bit type around `x`, and what lies between them and it, by exact arithmetic in f64.
    fn check(x: f32, random: u32, to_f64: impl Fn(u16) -> f64, got: u16, largest: u16) {
        let infinite = largest + 1;
        let (sign, size) = (got & 0x8000, got & 0x7FFF);
        assert_eq!(sign >> 15 == 1, x.is_sign_negative(), "{x:e}");
        let x = f64::from(x.abs());
        // The largest number not above x.
        let mut below = 0u16;
        let mut step = 0x4000;
        while step > 0 {
            if below + step <= largest && to_f64(below + step) <= x {
                below += step;
            }
            step /= 2;
        }
        let next = if below == largest { 2.0 * to_f64(below) - to_f64(below - 1) } else { to_f64(below + 1) };
        let expected = if x >= next {
            infinite
        } else {
            let part = (x - to_f64(below)) / (next - to_f64(below));
            below + u16::from(part * 4_294_967_296.0 + f64::from(random) >= 4_294_967_296.0)
        };
        assert_eq!(size, expected, "{x:e} {random:#x}");
    }

    #[test]
    fn rounding_is_by_the_part_that_is_cut_off() {
        let randoms =
            [0, 1, 0xFFFF, 0x1_0000, 0x7FFF_FFFF, 0x8000_0000, 0xDEAD_BEEF, 0xFFFF_0000, u32::MAX - 1, u32::MAX];
        let mut bits = 0u32;
        while bits <= 0x7F80_0000 {
            for sign in [0, 0x8000_0000] {
                let x = f32::from_bits(bits | sign);
                for random in randoms.into_iter().chain([bits.wrapping_mul(0x9E37_79B9)]) {
                    // Differences of bf16 numbers near f32's largest are exact in f64, quotients of powers of two too.
                    let b = bf16_stochastic(x, random).to_bits();
                    if x.is_infinite() {
                        assert_eq!(f32::from(bf16::from_bits(b)), x);
                    } else {
                        check(x, random, |b| bf16::from_bits(b).to_f64(), b, bf16::MAX.to_bits());
                    }
                    let h = f16_stochastic(x, random).to_bits();
                    check(x, random, |b| f16::from_bits(b).to_f64(), h, f16::MAX.to_bits());
                }
            }
            bits += 1 + bits / 2500 + bits % 11;
        }
    }

    #[test]
    fn the_mean_is_exact() {
        // 3 of 8 steps between two bf16 numbers; every eighth random number.
        let x = 1.0 + 3.0 / 8.0 / 128.0;
        let up = (0..8u32).filter(|i| bf16_stochastic(x, i << 29).to_f32() > 1.0).count();
        assert_eq!(up, 3);
        let x = 1.0 + 3.0 / 8.0 / 1024.0;
        let up = (0..8u32).filter(|i| f16_stochastic(x, i << 29).to_f32() > 1.0).count();
        assert_eq!(up, 3);
    }

    #[test]
    fn what_is_no_finite_number_stays() {
        for random in [0, u32::MAX] {
            assert!(bf16_stochastic(f32::from_bits(0x7F80_0001), random).is_nan());
            assert!(f16_stochastic(f32::from_bits(0xFF80_0001), random).is_nan());
            assert_eq!(bf16_stochastic(f32::NEG_INFINITY, random), bf16::NEG_INFINITY);
            assert_eq!(f16_stochastic(f32::INFINITY, random), f16::INFINITY);
        }
    }
}
