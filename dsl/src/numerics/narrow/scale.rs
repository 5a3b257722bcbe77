//! Scales of blocks (MX formats: one power of two for 32 elements).

use super::Narrow;

/// How a block's scale follows from its largest magnitude. Quantiser, reference and kernel must use the same.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ScaleRule {
    /// The magnitude's exponent, after rounding it to the element's fraction bits, less the exponent of the element's
    /// largest number: the block's largest element lands in the format's top binade, and saturates where it is past its
    /// largest number. For e2m1 the exponent grows from a fraction of 1.75 on. (aiter's `Even`.)
    Even,
    /// The smallest power of two with which no element saturates. (aiter's `ROUND_UP`, NVIDIA's round towards +∞.)
    RoundUp,
}

/// The biased exponent that `rule` gives a block of elements of `format` whose largest magnitude is `amax`, not yet held
/// within what e8m0 can say: it is negative for small blocks, and a kernel's own least scale (0, or 1 where the scale must
/// be a normal f32) goes on top. At most 254; `amax` must not be negative or NaN.
///
/// [`ScaleRule::RoundUp`] multiplies by the reciprocal of the format's largest number in f32, as its sources do.
pub fn scale_code(rule: ScaleRule, format: Narrow, amax: f32) -> i32 {
    let bits = amax.to_bits();
    let code = match rule {
        ScaleRule::Even => {
            let fraction = format.layout().fraction;
            // Half of the last place that the element keeps.
            let half = 1 << (22 - fraction);
            let top = format.decode(format.largest()).to_bits() >> 23;
            ((bits + half) >> 23) as i32 - (top as i32 - 127)
        }
        ScaleRule::RoundUp => {
            let inverse = 1.0 / format.decode(format.largest());
            ((amax * inverse).to_bits().saturating_add(0x7F_FFFF) >> 23) as i32
        }
    };
    code.min(254)
}
