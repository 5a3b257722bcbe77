//! Constants as text.

use crate::ir::{Bits, Scalar};

impl Scalar {
    /// Reads a constant of this type: `true`, `false`; whole numbers in decimal; floats in decimal (rounded to nearest
    /// even), `inf`, `-inf`, `nan` (the quiet NaN without payload), `-nan`; and of every type but `bool` the bits as
    /// `0x…`.
    ///
    /// ```
    /// use lathe_dsl::ir::{Bits, Scalar};
    /// assert_eq!(Scalar::I8.parse_constant("-1"), Ok(Bits(0xFF)));
    /// assert_eq!(Scalar::F16.parse_constant("1.5"), Ok(Bits(0x3E00)));
    /// assert_eq!(Scalar::F32.parse_constant("0x7f800001"), Ok(Bits(0x7F80_0001)));
    /// assert_eq!(Scalar::U8.parse_constant("256").unwrap_err(), "a number of type u8");
    /// ```
    ///
    /// # Errors
    /// What is wanted instead.
    pub fn parse_constant(self, text: &str) -> Result<Bits, String> {
        let mask = u64::MAX >> (64 - self.bits());
        let wanted = match self {
            Self::Bool => "`true` or `false`".to_owned(),
            s => format!("a number of type {s}"),
        };
        let bits = if self == Self::Bool {
            text.parse::<bool>().ok().map(u64::from)
        } else if let Some(hex) = text.strip_prefix("0x") {
            // `from_str_radix` takes a sign.
            let digits = hex.chars().all(|c| c.is_ascii_hexdigit());
            u64::from_str_radix(hex, 16).ok().filter(|n| digits && *n <= mask)
        } else if self.is_float() {
            float(self, text)
        } else {
            let number = text.parse::<i128>().ok();
            let signed = self.is_signed();
            let least = if signed { -1i128 << (self.bits() - 1) } else { 0 };
            let most = (1i128 << (self.bits() - u32::from(signed))) - 1;
            number.filter(|n| (least..=most).contains(n)).map(|n| n as u64 & mask)
        };
        bits.map(Bits).ok_or(wanted)
    }
}

/// Width of exponent and fraction.
fn format(scalar: Scalar) -> (u32, u32) {
    match scalar {
        Scalar::F16 => (5, 10),
        Scalar::Bf16 => (8, 7),
        Scalar::F32 => (8, 23),
        _ => (11, 52),
    }
}

fn float(scalar: Scalar, text: &str) -> Option<u64> {
    let (exponent, fraction) = format(scalar);
    let infinity = ((1u64 << exponent) - 1) << fraction;
    let (negative, magnitude) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let bits = match magnitude {
        "inf" => infinity,
        "nan" => infinity | 1 << (fraction - 1),
        // Rust reads more words than these, and a second sign.
        _ if !magnitude.starts_with(|c: char| c.is_ascii_digit() || c == '.') => return None,
        // A number too large for the type is a mistake, not an infinity.
        _ => match scalar {
            Scalar::F32 => u64::from(magnitude.parse::<f32>().ok()?.to_bits()),
            Scalar::F64 => magnitude.parse::<f64>().ok()?.to_bits(),
            _ => narrow(magnitude.parse().ok()?, exponent, fraction),
        },
    };
    let finite = bits < infinity || matches!(magnitude, "inf" | "nan");
    finite.then_some(bits | u64::from(negative) << (exponent + fraction))
}

/// A finite or infinite number, not negative, rounded to nearest even in a narrower format.
fn narrow(x: f64, exponent: u32, fraction: u32) -> u64 {
    let least = 2 - (1i32 << (exponent - 1));
    let most = (1i32 << (exponent - 1)) - 1;
    let raw = (x.to_bits() >> 52) as i32 - 1023;
    if x == 0.0 {
        return 0;
    }
    if raw > most {
        return ((1 << exponent) - 1) << fraction;
    }
    let significand = x.to_bits() & ((1 << 52) - 1) | 1 << 52;
    // Subnormals of the narrow format keep fewer bits. An f64 subnormal is below half of the smallest of them.
    let lost = 52 - fraction as i32 + (least - raw).max(0);
    if lost > 54 {
        return 0;
    }
    let (kept, rest, half) = (significand >> lost, significand & ((1 << lost) - 1), 1u64 << (lost - 1));
    let rounded = kept + u64::from(rest > half || (rest == half && kept & 1 == 1));
    // A carry out of the fraction raises the exponent, as it should; the leading one of a normal number is hidden.
    if raw < least { rounded } else { (((raw - least + 1) as u64) << fraction) + rounded - (1 << fraction) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixteen_bit_floats_read_back_from_their_exact_decimal() {
        for bits in 0..=u16::MAX {
            let f16 = half::f16::from_bits(bits);
            let bf16 = half::bf16::from_bits(bits);
            if f16.is_finite() {
                let text = format!("{:?}", f16.to_f64());
                assert_eq!(Scalar::F16.parse_constant(&text), Ok(Bits(bits.into())), "{text}");
            }
            if bf16.is_finite() {
                let text = format!("{:?}", bf16.to_f64());
                assert_eq!(Scalar::Bf16.parse_constant(&text), Ok(Bits(bits.into())), "{text}");
            }
        }
    }

    #[test]
    fn sixteen_bit_floats_round_to_nearest_even() {
        let read = |s: Scalar, text: &str| s.parse_constant(text).map(|b| b.0);
        // One and a half steps above 1 is a tie that goes up, half a step one that goes down.
        assert_eq!(read(Scalar::F16, "1.00048828125"), Ok(0x3C00));
        assert_eq!(read(Scalar::F16, "1.00146484375"), Ok(0x3C02));
        assert_eq!(read(Scalar::F16, "1.000488281251"), Ok(0x3C01));
        assert_eq!(read(Scalar::F16, "65519.99"), Ok(0x7BFF));
        assert!(read(Scalar::F16, "65520").is_err());
        // Half of the smallest subnormal is a tie to 0, a little more is not.
        assert_eq!(read(Scalar::F16, "2.9802322387695312e-8"), Ok(0));
        assert_eq!(read(Scalar::F16, "2.98023223876953125001e-8"), Ok(0));
        assert_eq!(read(Scalar::F16, "2.9802322388e-8"), Ok(1));
        assert_eq!(read(Scalar::F16, "-2.9e-8"), Ok(0x8000));
        assert_eq!(read(Scalar::F16, "6.1e-5"), Ok(0x3FF));
        assert_eq!(read(Scalar::F16, "6.1035e-5"), Ok(0x400));
        assert_eq!(read(Scalar::Bf16, "1e-45"), Ok(0));
        assert_eq!(read(Scalar::Bf16, "3.39e38"), Ok(0x7F7F));
        assert!(read(Scalar::Bf16, "3.4e38").is_err());
        assert_eq!(read(Scalar::F16, "1e-320"), Ok(0));
    }

    #[test]
    fn what_is_no_constant_of_the_type_is_refused() {
        for (scalar, text) in [
            (Scalar::Bool, "1"),
            (Scalar::Bool, "0x1"),
            (Scalar::I8, "128"),
            (Scalar::I8, "-129"),
            (Scalar::I8, "0x100"),
            (Scalar::I8, "1.0"),
            (Scalar::U8, "-1"),
            (Scalar::U64, "18446744073709551616"),
            (Scalar::I64, "-9223372036854775809"),
            (Scalar::U32, "99999999999999999999999999999999999999999999"),
            (Scalar::U32, "0x+1"),
            (Scalar::U32, "0x"),
            (Scalar::F32, "infinity"),
            (Scalar::F32, "1e39"),
            (Scalar::F64, "1e309"),
            (Scalar::F32, "--1"),
            (Scalar::F32, "1x"),
            (Scalar::F32, "0x100000000"),
            (Scalar::F32, ""),
            (Scalar::F32, "-"),
        ] {
            assert!(scalar.parse_constant(text).is_err(), "{scalar} {text}");
        }
    }

    #[test]
    fn ends_of_the_ranges_are_read() {
        for (scalar, text, bits) in [
            (Scalar::I8, "-128", 0x80),
            (Scalar::I8, "0xff", 0xFF),
            (Scalar::U64, "18446744073709551615", u64::MAX),
            (Scalar::I64, "-9223372036854775808", 1 << 63),
            (Scalar::Idx, "-1", u64::MAX),
            (Scalar::F32, "-0.0", 0x8000_0000),
            (Scalar::F32, "1e-45", 1),
            (Scalar::F32, "nan", 0x7FC0_0000),
            (Scalar::F32, "-nan", 0xFFC0_0000),
            (Scalar::F32, "-inf", 0xFF80_0000),
            (Scalar::F64, "inf", 0x7FF0_0000_0000_0000),
            (Scalar::F16, "nan", 0x7E00),
            (Scalar::Bf16, "nan", 0x7FC0),
            (Scalar::F16, "+1", 0x3C00),
            (Scalar::Bool, "true", 1),
        ] {
            assert_eq!(scalar.parse_constant(text), Ok(Bits(bits)), "{scalar} {text}");
        }
    }
}
