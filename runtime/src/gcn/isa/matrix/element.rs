//! Element types of matrix operands: bits to values.

use std::sync::LazyLock;

use crate::gcn::isa::chip::Fp8;

/// Type of the elements of an operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Element {
    F32,
    F16,
    Bf16,
    /// Eight bits, four of them exponent.
    Fp8,
    /// Eight bits, five of them exponent.
    Bf8,
    /// e2m3.
    Fp6,
    /// e3m2.
    Bf6,
    /// e2m1.
    Fp4,
}

impl Element {
    /// What `cbsz` and `blgp` name by numbers 0 to 4.
    pub(super) fn of_format(number: u8) -> Option<Self> {
        [Self::Fp8, Self::Bf8, Self::Fp6, Self::Bf6, Self::Fp4].get(usize::from(number)).copied()
    }

    pub(super) fn bits(self) -> u32 {
        match self {
            Self::F32 => 32,
            Self::F16 | Self::Bf16 => 16,
            Self::Fp8 | Self::Bf8 => 8,
            Self::Fp6 | Self::Bf6 => 6,
            Self::Fp4 => 4,
        }
    }

    /// Value of an element's bits, on a chip whose bytes are such floats.
    pub(super) fn decoder(self, fp8: Fp8) -> Decoder {
        match self {
            Self::F32 => Decoder::F32,
            Self::F16 => Decoder::F16,
            Self::Bf16 => Decoder::Bf16,
            Self::Fp8 if fp8 == Fp8::Fnuz => Decoder::Table(&E4M3_FNUZ[..]),
            Self::Fp8 => Decoder::Table(&E4M3[..]),
            Self::Bf8 if fp8 == Fp8::Fnuz => Decoder::Table(&E5M2_FNUZ[..]),
            Self::Bf8 => Decoder::Table(&E5M2[..]),
            Self::Fp6 => Decoder::Table(&E2M3[..]),
            Self::Bf6 => Decoder::Table(&E3M2[..]),
            Self::Fp4 => Decoder::Table(&E2M1[..]),
        }
    }
}

/// How bits become a value.
#[derive(Clone, Copy)]
pub(super) enum Decoder {
    F32,
    F16,
    Bf16,
    Table(&'static [f64]),
}

impl Decoder {
    pub(super) fn value(self, bits: u32) -> f64 {
        match self {
            Self::F32 => f64::from(f32::from_bits(bits)),
            Self::F16 => half::f16::from_bits(bits as u16).to_f64(),
            Self::Bf16 => f64::from(f32::from_bits(bits << 16)),
            Self::Table(values) => values[bits as usize],
        }
    }
}

/// What the codes of a narrow float mean that are not numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Specials {
    /// The largest exponent is infinity and NaN.
    Ieee,
    /// All ones but the sign is NaN.
    Fn,
    /// The code of −0 is NaN.
    Fnuz,
    /// Every code is a number.
    None,
}

static E4M3: LazyLock<Vec<f64>> = LazyLock::new(|| values(4, 3, 7, Specials::Fn));
static E5M2: LazyLock<Vec<f64>> = LazyLock::new(|| values(5, 2, 15, Specials::Ieee));
static E4M3_FNUZ: LazyLock<Vec<f64>> = LazyLock::new(|| values(4, 3, 8, Specials::Fnuz));
static E5M2_FNUZ: LazyLock<Vec<f64>> = LazyLock::new(|| values(5, 2, 16, Specials::Fnuz));
static E2M3: LazyLock<Vec<f64>> = LazyLock::new(|| values(2, 3, 1, Specials::None));
static E3M2: LazyLock<Vec<f64>> = LazyLock::new(|| values(3, 2, 3, Specials::None));
static E2M1: LazyLock<Vec<f64>> = LazyLock::new(|| values(2, 1, 1, Specials::None));

/// The value of every code.
fn values(exponent_bits: u32, mantissa_bits: u32, bias: i32, specials: Specials) -> Vec<f64> {
    let magnitudes = 1u32 << (exponent_bits + mantissa_bits);
    let top = (1 << exponent_bits) - 1;
    let value = |code: u32| {
        let (negative, magnitude) = (code >= magnitudes, code % magnitudes);
        let (exponent, mantissa) = (magnitude >> mantissa_bits, magnitude % (1 << mantissa_bits));
        let special = match specials {
            Specials::Ieee if exponent == top => Some(if mantissa == 0 { f64::INFINITY } else { f64::NAN }),
            Specials::Fn if magnitude == magnitudes - 1 => Some(f64::NAN),
            Specials::Fnuz if negative && magnitude == 0 => Some(f64::NAN),
            _ => None,
        };
        let hidden = if exponent == 0 { 0 } else { 1 << mantissa_bits };
        let power = (exponent as i32).max(1) - bias - mantissa_bits as i32;
        let number = special.unwrap_or_else(|| libm::scalbn(f64::from(hidden + mantissa), power));
        if negative { -number } else { number }
    };
    (0..2 * magnitudes).map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_the_values_of_their_formats() {
        let at = |e: Element, fp8, code| e.decoder(fp8).value(code);
        use Element::{Bf6, Bf8, Fp4, Fp6, Fp8 as Byte};
        for (element, fp8, code, value) in [
            (Byte, Fp8::Ocp, 0x38, 1.0),
            (Byte, Fp8::Ocp, 0x7E, 448.0),
            (Byte, Fp8::Ocp, 0x01, 1.0 / 512.0),
            (Byte, Fp8::Fnuz, 0x40, 1.0),
            (Byte, Fp8::Fnuz, 0x7F, 240.0),
            (Bf8, Fp8::Ocp, 0x3C, 1.0),
            (Bf8, Fp8::Ocp, 0xFC, f64::NEG_INFINITY),
            (Bf8, Fp8::Ocp, 0x7B, 57344.0),
            (Bf8, Fp8::Fnuz, 0x40, 1.0),
            (Bf8, Fp8::Fnuz, 0x7F, 57344.0),
            (Fp6, Fp8::Ocp, 0x08, 1.0),
            (Fp6, Fp8::Ocp, 0x1F, 7.5),
            (Fp6, Fp8::Ocp, 0x21, -0.125),
            (Bf6, Fp8::Ocp, 0x0C, 1.0),
            (Bf6, Fp8::Ocp, 0x1F, 28.0),
            (Fp4, Fp8::Ocp, 0x1, 0.5),
            (Fp4, Fp8::Ocp, 0x7, 6.0),
            (Fp4, Fp8::Ocp, 0xA, -1.0),
        ] {
            assert_eq!(at(element, fp8, code), value, "{element:?} {fp8:?} {code:#x}");
        }
        for (element, fp8, code) in
            [(Byte, Fp8::Ocp, 0x7F), (Byte, Fp8::Fnuz, 0x80), (Bf8, Fp8::Ocp, 0x7D), (Bf8, Fp8::Fnuz, 0x80)]
        {
            assert!(at(element, fp8, code).is_nan(), "{element:?} {fp8:?} {code:#x}");
        }
        assert!(at(Byte, Fp8::Ocp, 0x80).is_sign_negative());
    }
}
