//! Scales of blocks (MX formats: one power of two for 32 elements).

use super::{Narrow, Overflow, Rounding};

/// How a block's scale follows from its largest magnitude. Quantiser, reference and kernel must use the same.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ScaleRule {
    /// The magnitude's exponent, after rounding it to the element's fraction bits, less the exponent of the element's
    /// largest number: the block's largest element lands in the format's top binade, and saturates where it is past its
    /// largest number. For e2m1 the exponent grows from a fraction of 1.75 on. (aiter's `Even`.)
    Even,
    /// The smallest power of two with which no element saturates, code 1 at least for what is not 0. (aiter's `ROUND_UP`, NVIDIA's round towards +∞.)
    RoundUp,
}

/// What a rule does to the bits of a block's largest magnitude: `((bits(amax · factor) + add) >> 23) − less`, at most 254.
pub(crate) struct ScaleParts {
    pub(crate) factor: Option<f32>,
    pub(crate) add: u32,
    pub(crate) less: i32,
}

pub(crate) fn scale_parts(rule: ScaleRule, format: Narrow) -> ScaleParts {
    let largest = format.decode(format.largest());
    match rule {
        // Half of the last place that the element keeps.
        ScaleRule::Even => ScaleParts {
            factor: None,
            add: 1 << (22 - format.layout().fraction),
            less: (largest.to_bits() >> 23) as i32 - 127,
        },
        ScaleRule::RoundUp => ScaleParts { factor: Some(1.0 / largest), add: 0x7F_FFFF, less: 0 },
    }
}

/// The biased exponent that `rule` gives a block of elements of `format` whose largest magnitude is `amax`, not yet held
/// within what e8m0 can say: it is negative for small blocks, and a kernel's own least scale (0, or 1 where the scale must
/// be a normal f32) goes on top. At most 254; `amax` must not be negative or NaN.
///
/// [`ScaleRule::RoundUp`] multiplies by the reciprocal of the format's largest number in f32, as its sources do.
pub fn scale_code(rule: ScaleRule, format: Narrow, amax: f32) -> i32 {
    let ScaleParts { factor, add, less } = scale_parts(rule, format);
    let bits = factor.map_or(amax, |f| amax * f).to_bits();
    ((bits.wrapping_add(add) >> 23) as i32 - less).min(254)
}

/// The number that a conversion takes a scale for: 2^(e − 127) of its exponent field e, whatever its other bits are; NaN of
/// 0xFF. So the `f32` with the bits `code << 23` stands for an e8m0 code.
pub fn block_scale(scale: f32) -> f32 {
    Narrow::E8m0.decode((scale.to_bits() >> 23) as u8)
}

impl Narrow {
    /// The code of `x` divided by [`block_scale`], rounded once. With a scale that is NaN, `x` counts as a NaN of its sign.
    pub fn encode_scaled(self, x: f32, scale: f32, rounding: Rounding, overflow: Overflow) -> u8 {
        let scale = block_scale(scale);
        // Exact in f64; as f32 it rounds only where that is far below this format's smallest number or above its largest.
        let quotient = if scale.is_nan() { f32::NAN.copysign(x) } else { (f64::from(x) / f64::from(scale)) as f32 };
        self.encode(quotient, rounding, overflow)
    }

    /// The number that a code means times [`block_scale`]; exact, but for ±∞ past the largest `f32`.
    pub fn decode_scaled(self, code: u8, scale: f32) -> f32 {
        self.decode(code) * block_scale(scale)
    }
}
