//! Floats of 8 bits and fewer: what their codes mean, and how an `f32` becomes one.
//!
//! Sources: OCP 8-bit Floating Point Specification 1.0, OCP Microscaling Formats 1.0, and for the `fnuz` forms the CDNA3
//! instruction set.

mod scale;
#[cfg(test)]
mod tests;

pub(crate) use scale::scale_parts;
pub use scale::{ScaleRule, block_scale, scale_code};

use serde::{Deserialize, Serialize};

/// A format of at most 8 bits. A code is a `u8` whose upper bits are 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Narrow {
    /// 4 exponent, 3 fraction bits; no infinity, one NaN of each sign; largest 448. gfx950, gfx12, NVIDIA.
    E4m3,
    /// 5 exponent, 2 fraction bits; infinities and NaNs as IEEE has them; largest 57344. gfx950, gfx12, NVIDIA.
    E5m2,
    /// As `E4m3` with a bias one larger, no −0, and 0x80 as the only NaN; largest 240. gfx942.
    E4m3Fnuz,
    /// As `E5m2` with a bias one larger, no infinity, no −0, and 0x80 as the only NaN; largest 57344. gfx942.
    E5m2Fnuz,
    /// 2 exponent, 3 fraction bits; all codes are numbers; largest 7.5.
    E2m3,
    /// 3 exponent, 2 fraction bits; all codes are numbers; largest 28.
    E3m2,
    /// 2 exponent, 1 fraction bit; all codes are numbers; largest 6.
    E2m1,
    /// A power of two without sign, the scale of a block: 2^(code − 127); 0xFF is NaN.
    E8m0,
}

/// How a number between two codes becomes one of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Rounding {
    /// The nearer one; of two equally near ones that with an even code.
    NearestEven,
    /// The one of smaller magnitude.
    TowardZero,
    /// The one of larger magnitude.
    AwayFromZero,
}

/// What becomes of a number whose rounded magnitude is larger than the format's largest.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub enum Overflow {
    /// The largest number of its sign; infinity too.
    #[default]
    Saturate,
    /// The infinity of its sign, or NaN in a format that has none. In a format where all codes are numbers it saturates.
    Ieee,
}

impl std::fmt::Display for Narrow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl Overflow {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Saturate, Self::Ieee];

    /// `saturate` or `ieee`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Saturate => "saturate",
            Self::Ieee => "ieee",
        }
    }

    /// The one with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|o| o.name() == name)
    }
}

/// Which codes are no numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Special {
    /// The largest exponent means infinity and NaNs.
    Ieee,
    /// The largest magnitude is NaN.
    Last,
    /// What would be −0 is NaN.
    NegativeZero,
    /// All are numbers.
    None,
}

struct Layout {
    exponent: u32,
    fraction: u32,
    bias: i32,
    special: Special,
}

impl Narrow {
    /// Every format.
    pub const ALL: [Self; 8] =
        [Self::E4m3, Self::E5m2, Self::E4m3Fnuz, Self::E5m2Fnuz, Self::E2m3, Self::E3m2, Self::E2m1, Self::E8m0];

    /// `e4m3`, `e5m2fnuz` and so on.
    pub const fn name(self) -> &'static str {
        match self {
            Self::E4m3 => "e4m3",
            Self::E5m2 => "e5m2",
            Self::E4m3Fnuz => "e4m3fnuz",
            Self::E5m2Fnuz => "e5m2fnuz",
            Self::E2m3 => "e2m3",
            Self::E3m2 => "e3m2",
            Self::E2m1 => "e2m1",
            Self::E8m0 => "e8m0",
        }
    }

    /// The format with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|f| f.name() == name)
    }

    /// Bits of a code: 8, 6 or 4.
    pub const fn bits(self) -> u32 {
        match self {
            Self::E2m3 | Self::E3m2 => 6,
            Self::E2m1 => 4,
            _ => 8,
        }
    }

    /// Exponent bits, fraction bits and bias.
    pub const fn parts(self) -> (u32, u32, i32) {
        let Layout { exponent, fraction, bias, .. } = self.layout();
        (exponent, fraction, bias)
    }

    const fn layout(self) -> Layout {
        let (exponent, fraction, bias, special) = match self {
            Self::E4m3 => (4, 3, 7, Special::Last),
            Self::E5m2 => (5, 2, 15, Special::Ieee),
            Self::E4m3Fnuz => (4, 3, 8, Special::NegativeZero),
            Self::E5m2Fnuz => (5, 2, 16, Special::NegativeZero),
            Self::E2m3 => (2, 3, 1, Special::None),
            Self::E3m2 => (3, 2, 3, Special::None),
            Self::E2m1 => (2, 1, 1, Special::None),
            // No fraction, no sign and no zero: the smallest exponent is a number like the others.
            Self::E8m0 => (8, 0, 127, Special::Last),
        };
        Layout { exponent, fraction, bias, special }
    }

    /// Whether it has a sign bit: all but `E8m0`.
    pub const fn signed(self) -> bool {
        !matches!(self, Self::E8m0)
    }

    /// The sign bit; 0 if there is none.
    const fn sign(self) -> u8 {
        if self.signed() { 1 << (self.bits() - 1) } else { 0 }
    }

    /// Code of the largest finite number.
    pub const fn largest(self) -> u8 {
        let all = self.magnitudes();
        match self.layout().special {
            Special::Ieee => all - (1 << self.layout().fraction),
            Special::Last => all - 1,
            Special::NegativeZero | Special::None => all,
        }
    }

    /// All bits of a code but the sign.
    const fn magnitudes(self) -> u8 {
        let Layout { exponent, fraction, .. } = self.layout();
        ((1u32 << (exponent + fraction)) - 1) as u8
    }

    /// Whether there is no −0; what would be it is NaN.
    pub const fn has_no_negative_zero(self) -> bool {
        matches!(self.layout().special, Special::NegativeZero)
    }

    /// Code of +∞; `None` where there is none.
    pub const fn infinity(self) -> Option<u8> {
        match self.layout().special {
            Special::Ieee => Some(self.largest() + 1),
            _ => None,
        }
    }

    /// The NaN that conversions give; `None` where all codes are numbers.
    pub const fn nan(self) -> Option<u8> {
        match self.layout().special {
            Special::Ieee | Special::Last => Some(self.magnitudes()),
            Special::NegativeZero => Some(0x80),
            Special::None => None,
        }
    }

    /// The number that a code means, exactly; NaN for a NaN. Bits above [`Self::bits`] are not looked at.
    pub fn decode(self, code: u8) -> f32 {
        let Layout { fraction, bias, special, .. } = self.layout();
        let (negative, magnitude) = (code & self.sign() != 0, code & self.magnitudes());
        let nan = match special {
            Special::Ieee if magnitude == self.largest() + 1 => {
                return if negative { f32::NEG_INFINITY } else { f32::INFINITY };
            }
            Special::Ieee => magnitude > self.largest(),
            Special::Last => magnitude == self.magnitudes(),
            Special::NegativeZero => negative && magnitude == 0,
            Special::None => false,
        };
        if nan {
            return f32::NAN;
        }
        let field = i32::from(magnitude >> fraction);
        let part = i32::from(magnitude) & ((1 << fraction) - 1);
        // In units of the smallest step of this exponent.
        let (units, exponent) = if field == 0 && self.signed() {
            (part, 1 - bias - fraction as i32)
        } else {
            (part | 1 << fraction, field - bias - fraction as i32)
        };
        // Both factors and the product are exact in f64, and the product is an f32.
        let value = (f64::from(units) * 2f64.powi(exponent)) as f32;
        if negative { -value } else { value }
    }

    /// The code of `x`, rounded once.
    ///
    /// NaN, and what overflows to it, gives [`Self::nan`], as NVIDIA's conversions do; a format where all codes are numbers
    /// gives the largest one of the NaN's sign, as AMD's do. A zero keeps its sign where there is a −0. `E8m0` has neither
    /// zero nor sign: anything below 2^−127 gives 2^−127, a negative number NaN.
    pub fn encode(self, x: f32, rounding: Rounding, overflow: Overflow) -> u8 {
        let Layout { fraction, bias, special, .. } = self.layout();
        let sign = if x.is_sign_negative() { self.sign() } else { 0 };
        if x.is_nan() {
            return self.nan().unwrap_or(sign | self.largest());
        }
        if !self.signed() && x.is_sign_negative() && x != 0.0 {
            return self.magnitudes();
        }
        let magnitude = if x.is_infinite() { None } else { self.magnitude(x.abs(), fraction, bias, rounding) };
        match (magnitude, overflow) {
            // There is no −0.
            (Some(0), _) if special == Special::NegativeZero => 0,
            (Some(magnitude), _) => sign | magnitude,
            (None, Overflow::Saturate) => sign | self.largest(),
            (None, Overflow::Ieee) => match special {
                Special::Ieee => sign | (self.largest() + 1),
                Special::Last => self.magnitudes(),
                Special::NegativeZero => 0x80,
                Special::None => sign | self.largest(),
            },
        }
    }

    /// The magnitude bits of a finite number that is not negative; `None` if they would pass the largest.
    fn magnitude(self, x: f32, fraction: u32, bias: i32, rounding: Rounding) -> Option<u8> {
        let bits = x.to_bits();
        // x = significand · 2^exponent, exactly.
        let (significand, exponent) = match (bits >> 23) as i32 {
            0 => (bits, -149),
            e => (bits & 0x7F_FFFF | 1 << 23, e - 150),
        };
        if significand == 0 {
            return Some(0);
        }
        let top = exponent + significand.ilog2() as i32;
        let smallest = if self.signed() { 1 - bias } else { -bias };
        let above = top.max(smallest) - smallest;
        // Bits of the significand below the format's last place; never negative, as f32 is finer than any format here,
        // except where an f32 is subnormal, which only E8m0 reaches.
        let dropped = top.max(smallest) - fraction as i32 - exponent;
        let units = match u32::try_from(dropped) {
            Ok(dropped) => rounded(significand, dropped, rounding, |units| {
                // Which of two codes is even.
                if self.signed() { units & 1 == 1 } else { above & 1 == 1 }
            }),
            Err(_) => significand << dropped.unsigned_abs(),
        };
        // One unit more in the exponent field is 2^fraction units, so a carry comes out right.
        let code = if self.signed() {
            ((above as u32) << fraction) + units
        } else {
            // No subnormals: what is below the smallest number is the smallest number.
            (above as u32 + units).saturating_sub(1)
        };
        u8::try_from(code).ok().filter(|c| *c <= self.largest())
    }
}

/// `significand / 2^dropped` as a whole number; `odd` tells which of two equally near ones is not taken.
fn rounded(significand: u32, dropped: u32, rounding: Rounding, odd: impl Fn(u64) -> bool) -> u32 {
    let wide = u64::from(significand);
    // Past this nothing is left but the fact that it is not 0.
    let dropped = dropped.min(40);
    let (whole, rest) = (wide >> dropped, wide & ((1 << dropped) - 1));
    let half = (1u64 << dropped) / 2;
    let up = match rounding {
        Rounding::NearestEven => rest > half || (rest == half && dropped > 0 && odd(whole)),
        Rounding::TowardZero => false,
        Rounding::AwayFromZero => rest > 0,
    };
    (whole + u64::from(up)) as u32
}
