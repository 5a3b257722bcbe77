//! The block's numbers. Those written as `f64` or `f32` in the original are here as the f16 they round to.

use half::f16;

/// Factor on a score before the cubic exponential.
pub const SCORE_SCALE: f16 = f16::from_bits(0x2466);

/// Bounds of a scaled score: ∓0.55615234375.
pub const SCORE_CLAMP: [f16; 2] = [f16::from_bits(0xB873), f16::from_bits(0x3873)];

/// Coefficient of the cubic's linear term, 0.92724609375.
pub const CUBIC_LINEAR: f16 = f16::from_bits(0x3B6B);

/// The cubic's constant term, 1.375.
pub const CUBIC_CONSTANT: f16 = f16::from_bits(0x3D80);

/// Bits that the cubic's result is shifted up by: its fraction's upper half becomes an exponent.
pub const CUBIC_SHIFT: u32 = 5;

/// Bits of an f16 that are kept after that shift.
pub const CUBIC_MASK: u16 = 0x7FE0;

/// What the norm adds to a row's sum of squares, 2^-13.
pub const NORM_EPSILON: f16 = f16::from_bits(0x0800);

/// The activation's constant and linear coefficients, 0.412109375 and 0.0810546875.
pub const ACT_MID: f16 = f16::from_bits(0x3698);
/// See [`ACT_MID`].
pub const ACT_SLOPE: f16 = f16::from_bits(0x2D30);

/// Where the activation's gate is centred, 0.5, and beyond which magnitude it is 0 or 1, 2.
pub const ACT_HALF: f16 = f16::from_bits(0x3800);
/// See [`ACT_HALF`].
pub const ACT_LIMIT: f16 = f16::from_bits(0x4000);

/// log2(e), the f32 that exponents of the filter and the gate are multiplied by.
pub const LOG2_E: f32 = f32::from_bits(0x3FB8_AA3B);

#[cfg(test)]
mod tests {
    use super::*;
    use lathe_dsl::numerics::Float;

    #[test]
    fn they_are_the_originals_rounded() {
        let of_f32 = |bits: u32| <f16 as Float>::from_f32(f32::from_bits(bits));
        let of_f64 = |bits: u64| <f16 as Float>::from_f64(f64::from_bits(bits));
        assert_eq!(SCORE_SCALE, of_f32(0x3C8C_CB50));
        assert_eq!(SCORE_CLAMP, [of_f64(0xBFE1_CC00_0000_0000), of_f64(0x3FE1_CC00_0000_0000)]);
        assert_eq!(CUBIC_LINEAR, of_f32(0x3F6D_6000));
        assert_eq!(CUBIC_CONSTANT, of_f32(0x3FB0_0000));
        assert_eq!(NORM_EPSILON, of_f64(0x3F20_0000_0000_0000));
        assert_eq!([ACT_MID, ACT_SLOPE], [of_f32(0x3ED3_06EB), of_f32(0x3DA6_0DD6)]);
        assert_eq!([ACT_HALF, ACT_LIMIT], [of_f32(0x3F00_0000), of_f32(0x4000_0000)]);
        let values = [SCORE_SCALE, SCORE_CLAMP[1], CUBIC_LINEAR, CUBIC_CONSTANT, NORM_EPSILON, ACT_MID, ACT_SLOPE];
        let exact =
            [0.017181396484375, 0.55615234375, 0.92724609375, 1.375, 0.0001220703125, 0.412109375, 0.0810546875];
        assert_eq!(values.map(f64::from), exact);
        assert_eq!(LOG2_E, std::f32::consts::LOG2_E);
        assert_eq!(f64::from(LOG2_E), 1.442_695_021_629_333_5);
    }
}
