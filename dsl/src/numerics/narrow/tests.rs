use super::*;

const NEAREST: Rounding = Rounding::NearestEven;

fn codes(format: Narrow) -> impl Iterator<Item = u8> {
    (0..1u32 << format.bits()).map(|c| c as u8)
}

#[test]
fn every_code_decodes_and_encodes_as_ml_dtypes_says() {
    let named = |name: &str| Narrow::ALL.into_iter().find(|f| f.name() == name).unwrap();
    let hex = |text: &str| f32::from_bits(u32::from_str_radix(text, 16).unwrap());
    let (mut decoded, mut encoded) = (0, 0);
    for line in include_str!("ml_dtypes.txt").lines().filter(|l| !l.starts_with(';')) {
        let mut words = line.split(' ');
        let (what, format) = (words.next().unwrap(), named(words.next().unwrap()));
        if what == "decode" {
            let values: Vec<f32> = words.map(hex).collect();
            assert_eq!(values.len(), 1 << format.bits());
            for (code, value) in codes(format).zip(values) {
                let own = format.decode(code);
                let same = own.to_bits() == value.to_bits() || own.is_nan() && value.is_nan();
                assert!(same, "{} {code:#04x}: {own}, ml_dtypes {value}", format.name());
                decoded += 1;
            }
            continue;
        }
        for (x, code) in words.map(|w| w.split_once(':').unwrap()) {
            let (x, code) = (hex(x), u8::from_str_radix(code, 16).unwrap());
            let own = format.encode(x, NEAREST, Overflow::Ieee);
            let nan = format.decode(own).is_nan() && format.decode(code).is_nan();
            assert!(own == code || nan, "{} of {x:e}: {own:#04x}, ml_dtypes {code:#04x}", format.name());
            encoded += 1;
        }
    }
    assert_eq!(decoded, 5 * 256 + 64 + 64 + 16);
    assert!(encoded > 1500, "{encoded}");
}

#[test]
fn fp8_is_what_crate_float8_says() {
    use float8::{F8E4M3, F8E5M2};
    for code in 0..=255 {
        for (own, other) in [
            (Narrow::E4m3.decode(code), F8E4M3::from_bits(code).to_f32()),
            (Narrow::E5m2.decode(code), F8E5M2::from_bits(code).to_f32()),
        ] {
            assert!(own.to_bits() == other.to_bits() || own.is_nan() && other.is_nan(), "{code:#04x}: {own} {other}");
        }
    }
    for bits in (0..=u32::MAX).step_by(65_521) {
        let x = f32::from_bits(bits);
        if x.is_nan() {
            continue;
        }
        // Both of that crate's types saturate.
        assert_eq!(Narrow::E4m3.encode(x, NEAREST, Overflow::Saturate), F8E4M3::from_f32(x).to_bits(), "{x:e}");
        assert_eq!(Narrow::E5m2.encode(x, NEAREST, Overflow::Saturate), F8E5M2::from_f32(x).to_bits(), "{x:e}");
    }
}

#[test]
fn every_code_comes_back() {
    for format in Narrow::ALL {
        for code in codes(format) {
            let x = format.decode(code);
            for overflow in [Overflow::Saturate, Overflow::Ieee] {
                let back = format.encode(x, NEAREST, overflow);
                if x.is_nan() {
                    assert!(format.decode(back).is_nan(), "{} {code:#04x}", format.name());
                } else if x.is_finite() || overflow == Overflow::Ieee {
                    assert_eq!(back, code, "{} {x:e}", format.name());
                } else {
                    assert_eq!(format.decode(back).abs(), format.decode(format.largest()));
                }
            }
        }
    }
}

/// The code by looking for it: of all numbers of the format, in f64.
fn searched(format: Narrow, numbers: &[(f64, u8)], x: f32, rounding: Rounding) -> Option<u8> {
    let x = f64::from(x.abs());
    let above = numbers.partition_point(|(v, _)| *v < x);
    let Some(&(high, high_code)) = numbers.get(above) else {
        let &(last, code) = numbers.last()?;
        let &(before, _) = &numbers[numbers.len() - 2];
        // The number that would come next.
        let next = if format == Narrow::E8m0 { last * 2.0 } else { last + (last - before) };
        let middle = (last + next) / 2.0;
        let holds = match rounding {
            Rounding::NearestEven => x < middle || (x == middle && code & 1 == 0),
            Rounding::TowardZero => x < next,
            Rounding::AwayFromZero => false,
        };
        return holds.then_some(code);
    };
    if high == x || above == 0 {
        return Some(high_code);
    }
    let (low, low_code) = numbers[above - 1];
    let middle = (low + high) / 2.0;
    Some(match rounding {
        Rounding::TowardZero => low_code,
        Rounding::AwayFromZero => high_code,
        Rounding::NearestEven if x == middle => [low_code, high_code].into_iter().find(|c| c & 1 == 0)?,
        Rounding::NearestEven if x < middle => low_code,
        Rounding::NearestEven => high_code,
    })
}

fn check(format: Narrow, numbers: &[(f64, u8)], bits: u32) {
    let x = f32::from_bits(bits);
    for rounding in [Rounding::NearestEven, Rounding::TowardZero, Rounding::AwayFromZero] {
        let own = format.encode(x, rounding, Overflow::Ieee);
        let name = format.name();
        if x.is_nan() {
            match format.nan() {
                Some(nan) => assert_eq!(own, nan, "{name} of {bits:#x}"),
                None => {
                    let sign = if x.is_sign_negative() { format.sign() } else { 0 };
                    assert_eq!(own, sign | format.largest(), "{name} of {bits:#x}");
                }
            }
            continue;
        }
        if format == Narrow::E8m0 && x < 0.0 {
            assert_eq!(own, 0xFF);
            continue;
        }
        let found = if x.is_infinite() { None } else { searched(format, numbers, x, rounding) };
        let sign = if x.is_sign_negative() { format.sign() } else { 0 };
        let saturated = format.encode(x, rounding, Overflow::Saturate);
        match found {
            Some(0) if format.nan() == Some(0x80) => assert_eq!((own, saturated), (0, 0), "{name} of {x:e}"),
            Some(code) => assert_eq!((own, saturated), (sign | code, sign | code), "{name} of {x:e}, {rounding:?}"),
            None => {
                let value = format.decode(own);
                let right = match format.layout().special {
                    Special::Ieee => value.is_infinite() && value.is_sign_negative() == x.is_sign_negative(),
                    Special::None => own == sign | format.largest(),
                    Special::Last | Special::NegativeZero => Some(own) == format.nan() && value.is_nan(),
                };
                assert!(right, "{name} of {x:e}: {own:#04x}");
                assert_eq!(saturated, sign | format.largest(), "{name} of {x:e}");
            }
        }
    }
}

/// The numbers of a format that are not negative, in order.
fn numbers(format: Narrow) -> Vec<(f64, u8)> {
    (0..=format.largest()).map(|c| (f64::from(format.decode(c)), c)).collect()
}

#[test]
fn sampled_inputs_encode_to_the_nearest() {
    for format in Narrow::ALL {
        let numbers = numbers(format);
        assert!(numbers.is_sorted_by(|a, b| a.0 < b.0), "{}", format.name());
        for bits in (0..=u32::MAX).step_by(99_991) {
            check(format, &numbers, bits);
        }
        // Around every number and every tie.
        for pair in numbers.windows(2) {
            for value in [pair[0].0, (pair[0].0 + pair[1].0) / 2.0, pair[1].0] {
                let bits = (value as f32).to_bits();
                for near in bits.saturating_sub(2)..=bits + 2 {
                    check(format, &numbers, near);
                    check(format, &numbers, near | 1 << 31);
                }
            }
        }
        for bits in [0, 1, 0x7F_FFFF, 0x80_0000, 0x7F7F_FFFF, 0x7F80_0000, 0x7F80_0001, 0x7FC0_0000, 0x7FFF_FFFF] {
            check(format, &numbers, bits);
            check(format, &numbers, bits | 1 << 31);
        }
    }
}

/// Every f32, in every format, rounding and kind of overflow: `cargo xtask exhaustive`.
mod every_input_encodes_to_the_nearest {
    use super::*;

    fn all(format: Narrow) {
        let threads = std::thread::available_parallelism().map_or(1, usize::from) as u32;
        let numbers = &numbers(format);
        std::thread::scope(|scope| {
            for k in 0..threads {
                scope.spawn(move || (k..=u32::MAX).step_by(threads as usize).for_each(|b| check(format, numbers, b)));
            }
        });
        println!("{}: all 2^32 inputs, 3 roundings, 2 kinds of overflow", format.name());
    }

    macro_rules! formats {
        ($($name:ident = $format:ident;)*) => {$(
            #[test]
            #[ignore = "minutes"]
            fn $name() {
                all(Narrow::$format);
            }
        )*};
    }

    formats! {
        e4m3 = E4m3;
        e5m2 = E5m2;
        e4m3fnuz = E4m3Fnuz;
        e5m2fnuz = E5m2Fnuz;
        e2m3 = E2m3;
        e3m2 = E3m2;
        e2m1 = E2m1;
        e8m0 = E8m0;
    }
}

/// The answers to what users of other compilers reported.
#[test]
fn reported_cases() {
    use Narrow::{E2m1, E4m3, E4m3Fnuz, E5m2, E8m0};
    let saturating = |f: Narrow, x: f32| f.encode(x, NEAREST, Overflow::Saturate);
    let ieee = |f: Narrow, x: f32| f.encode(x, NEAREST, Overflow::Ieee);
    // Through f16 this would be rounded twice.
    assert_eq!(saturating(E4m3, 1.062_500_1), 0x39);
    assert_eq!(E4m3.decode(0x39), 1.125);
    assert_eq!(saturating(E4m3, 1.0625), 0x38);
    assert_eq!(saturating(E5m2, 1.125), 0x3C);
    assert_eq!((E4m3.decode(saturating(E4m3, 500.0)), ieee(E4m3, 500.0)), (448.0, 0x7F));
    assert_eq!(E5m2.decode(saturating(E5m2, 1e9)), 57344.0);
    assert_eq!(E5m2.decode(ieee(E5m2, 1e9)), f32::INFINITY);
    for format in [E4m3, E5m2] {
        assert_eq!((saturating(format, f32::NAN), ieee(format, f32::NAN)), (0x7F, 0x7F));
    }
    for format in [E4m3Fnuz, Narrow::E5m2Fnuz] {
        assert!(format.decode(0x80).is_nan());
        assert_eq!(codes(format).filter(|c| format.decode(*c).is_nan()).count(), 1);
        assert_eq!(saturating(format, -0.0), 0);
    }
    for (x, code) in [(128.0, 0x78), (200.0, 0x7C), (224.0, 0x7E), (240.0, 0x7F)] {
        assert_eq!(saturating(E4m3Fnuz, x), code);
    }
    for (x, code) in [(256.0, 0x78), (300.0, 0x79), (304.0, 0x7A), (448.0, 0x7E)] {
        assert_eq!(saturating(E4m3, x), code);
    }
    let e2m1 = [(0.25, 0.0), (0.75, 1.0), (1.25, 1.0), (1.75, 2.0), (2.5, 2.0), (3.5, 4.0), (5.0, 4.0), (7.0, 6.0)];
    for (x, value) in e2m1.into_iter().chain([(100.0, 6.0), (0.250_000_06, 0.5), (f32::INFINITY, 6.0)]) {
        assert_eq!(E2m1.decode(saturating(E2m1, x)), value, "{x}");
    }
    assert_eq!(E8m0.decode(134), 128.0);
    assert!(E8m0.decode(255).is_nan());
    assert_eq!(E8m0.decode(0).to_bits(), 0x0040_0000);
}

#[test]
fn scales_of_blocks() {
    use ScaleRule::{Even, RoundUp};
    let even = |x: f32| scale_code(Even, Narrow::E2m1, x);
    let worked: [(f32, i32); 9] = [
        (0.0, -2),
        (2f32.powi(-126), -1),
        (1.0, 125),
        (1.5, 125),
        (1.742_187_5, 125),
        (1.75, 126),
        (6.0, 127),
        (7.0, 128),
        (448.0, 134),
    ];
    for (amax, code) in worked {
        assert_eq!(even(amax), code, "{amax}");
    }
    assert_eq!(even(f32::from_bits(0x7F7F_0000)), 253);
    assert_eq!(even(f32::INFINITY), 253);
    // On a bf16 it is the rule in whole numbers of 16 bits.
    for am in 0..=0x7F80u32 {
        assert_eq!(even(f32::from_bits(am << 16)), ((am + 0x20) >> 7) as i32 - 2, "{am:#x}");
    }
    // The two rules differ, and round-up never saturates.
    assert_eq!((scale_code(Even, Narrow::E4m3, 957.0), scale_code(RoundUp, Narrow::E4m3, 957.0)), (128, 129));
    for bits in (0x0180_0000..0x7F00_0000u32).step_by(65_521) {
        let amax = f32::from_bits(bits);
        let code = scale_code(RoundUp, Narrow::E2m1, amax);
        let scaled = f64::from(amax) / 2f64.powi(code - 127);
        assert!(scaled <= 6.0 * (1.0 + 2f64.powi(-23)) && scaled > 2.999, "{amax:e}: {scaled}");
    }
    assert!(scale_code(RoundUp, Narrow::E2m1, f32::INFINITY) == 254);
}
