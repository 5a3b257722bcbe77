//! Conversions, reciprocals, exponentials.

use half::f16;
use lathe_dsl::numerics::Narrow;

use super::{all, h, near, ulps};
use crate::dec2::constants::{LOG2_E, NORM_EPSILON};
use crate::dec2::options::NanSign;
use crate::dec2::reference::number::*;

const Q: fn(f16) -> u8 = |x| quantise(x, NanSign::Positive);

/// Against a search for the nearest of the values.
#[test]
fn codes_are_the_nearest_ones() {
    let values: Vec<f64> = (0..0x7F).map(|code| decode(code).to_f64()).collect();
    for x in all().filter(|x| !x.is_nan()) {
        let magnitude = x.to_f64().abs().min(448.0);
        let above = values.partition_point(|v| *v < magnitude).min(0x7E);
        let below = above.saturating_sub(1);
        let (to_above, to_below) = (values[above] - magnitude, magnitude - values[below]);
        let up = to_above < to_below || (to_above == to_below && above % 2 == 0);
        let code = if up { above } else { below } as u8 | if x.is_sign_negative() { 0x80 } else { 0 };
        assert_eq!(Q(x), code, "{x}");
        assert_eq!(quantise(x, NanSign::Keep), code);
    }
    for x in all().filter(|x| x.is_nan()) {
        let kept = if x.is_sign_negative() { 0xFF } else { 0x7F };
        assert_eq!((Q(x), quantise(x, NanSign::Keep)), (0x7F, kept));
    }
}

#[test]
fn codes_at_the_edges() {
    let codes = [
        (0x5F00, 0x7E),
        (0x5F40, 0x7E),
        (0x5F80, 0x7E),
        (0x7BFF, 0x7E),
        (0x7C00, 0x7E),
        (0xFC00, 0xFE),
        (0x8000, 0x80),
        (0x0001, 0x00),
        (0x1400, 0x00),
        (0x1401, 0x01),
        (0x23FF, 0x08),
        (0x2400, 0x08),
        (0x7E00, 0x7F),
        (0x7C01, 0x7F),
        (0xFE00, 0x7F),
    ];
    for (bits, code) in codes {
        assert_eq!(Q(h(bits)), code, "{bits:04X}");
    }
    assert_eq!((h(0x5F40).to_f64(), h(0x5F80).to_f64(), h(0x1400).to_f64()), (464.0, 480.0, 2f64.powi(-10)));
}

#[test]
fn every_code_leads_back() {
    for code in 0..=255u8 {
        let x = decode(code);
        if code & 0x7F == 0x7F {
            assert!(x.is_nan());
            continue;
        }
        let (sign, exponent, fraction) = (code >> 7, i32::from(code >> 3 & 15), f64::from(code & 7));
        let magnitude =
            if exponent == 0 { fraction * 2f64.powi(-9) } else { (8.0 + fraction) * 2f64.powi(exponent - 10) };
        assert_eq!(x.to_f64(), if sign == 1 { -magnitude } else { magnitude });
        assert_eq!(Q(x), code);
    }
    let largest = decode(0x7E).to_f64();
    assert_eq!(largest * largest, 200_704.0);
    assert_eq!(decode(1).to_f64().powi(2), 2f64.powi(-18));
    let span = libm::log2(32.0 * largest * largest) + 18.0;
    assert!((40.5..41.0).contains(&span), "a step's sum has {span} bits");
}

/// A chip with the other form of e4m3 reads codes as half their value.
#[test]
fn the_other_form_is_half_of_it() {
    let differ: Vec<u8> =
        (0..=255u8).filter(|c| Narrow::E4m3.decode(*c) != 2.0 * Narrow::E4m3Fnuz.decode(*c)).collect();
    assert_eq!(differ, [0x7F, 0x80, 0xFF]);
}

/// Relative distance of a positive number to the nearest place where its rounding to f16 changes.
fn margin(exact: f64) -> f64 {
    let nearest = near(exact);
    let neighbour = |bits: u16| h(bits).to_f64();
    let (above, below) = (neighbour(nearest.to_bits() + 1), neighbour(nearest.to_bits() - 1));
    let ends = [(nearest.to_f64() + above) / 2.0, (nearest.to_f64() + below) / 2.0];
    ends.map(|end| (exact - end).abs() / exact).into_iter().fold(f64::INFINITY, f64::min)
}

fn positive() -> impl Iterator<Item = f16> + Clone {
    (1..0x7C00).map(f16::from_bits)
}

fn smallest(margins: impl Iterator<Item = f64>) -> f64 {
    libm::log2(margins.fold(f64::INFINITY, f64::min))
}

/// An f32 reciprocal that errs by at most an ulp, rounded to f16, is the rounded reciprocal: the exact ones are far from where
/// roundings change.
#[test]
fn reciprocals_are_as_if_rounded_once() {
    for x in all().filter(|x| !x.is_nan() && *x != f16::ZERO) {
        assert_eq!(rcp16(x), near(1.0 / x.to_f64()), "{x}");
    }
    assert_eq!((rcp16(h(0)).to_bits(), rcp16(h(0x8000)).to_bits()), (0x7C00, 0xFC00));
    assert_eq!((rcp16(h(0x7C00)).to_bits(), rcp16(h(0xFC00)).to_bits()), (0, 0x8000));
    let finite = positive().map(|x| 1.0 / x.to_f64()).filter(|r| *r < 65504.0);
    let least = smallest(finite.map(margin));
    assert!((-22.005..-21.995).contains(&least), "{least}");
    assert!(2f64.powf(least) > 2f64.powf(-23.28));
}

#[test]
fn reciprocal_roots_are_as_if_rounded_once() {
    for x in positive() {
        assert_eq!(rsqrt16(x), near(1.0 / x.to_f64().sqrt()), "{x}");
    }
    assert_eq!(
        (rsqrt16(h(0)).to_bits(), rsqrt16(h(0x8000)).to_bits(), rsqrt16(h(0x7C00)).to_bits()),
        (0x7C00, 0xFC00, 0)
    );
    assert!(rsqrt16(h(0xBC00)).is_nan() && rsqrt16(h(0x7E00)).is_nan());
    let reached = positive().filter(|x| *x >= NORM_EPSILON);
    let least = smallest(reached.map(|x| margin(1.0 / x.to_f64().sqrt())));
    assert!((-21.445..-21.435).contains(&least), "{least}");
    assert!(2f64.powf(least) > 2f64.powf(-22.94));
}

/// These come too close: other chips may differ by an ulp there, and the H200 does at the inputs listed.
#[test]
fn exponentials_that_a_chip_may_round_otherwise() {
    let exact = |x: f16| libm::exp2(f64::from(x.to_f32() * LOG2_E));
    let inputs = all().filter(|x| *x <= f16::ZERO && x.is_finite() && exact(*x) > 2f64.powi(-25));
    assert_eq!(inputs.clone().count(), 19_543);
    assert_eq!(inputs.filter(|x| margin(exact(*x)) < 2f64.powi(-22)).count(), 14);
    // Steps that are rounded to f32 first are no closer: they, too, differ where the exact result is near the edge, and only there.
    let mut differ = vec![];
    for x in all().filter(|x| !x.is_nan()) {
        let (found, right) = (rounded(exp32(x)), near(exact(x)));
        if found != right {
            assert!(ulps(found, right) == 1 && margin(exact(x)) < 2f64.powi(-24), "{x}");
            differ.push(x.to_bits());
        }
    }
    assert_eq!(differ, [0x1F79, 0x25CF]);
    for (input, chip, right) in
        [(0x1F79, 0x3C08, 0x3C07), (0x25CF, 0x3C18, 0x3C17), (0xC13B, 0x2CAE, 0x2CAF), (0xC1EF, 0x2A96, 0x2A97)]
    {
        assert_eq!((near(exact(h(input))).to_bits(), ulps(h(right), h(chip))), (right, 1), "{input:04X}");
    }
}

#[test]
fn sigmoids_that_a_chip_may_round_otherwise() {
    let exact = |x: f16| 1.0 / (1.0 + libm::exp2(f64::from(x.to_f32() * -LOG2_E)));
    let inputs = all().filter(|x| x.is_finite() && exact(*x) > 2f64.powi(-24));
    assert_eq!(inputs.filter(|x| margin(exact(*x)) < 2f64.powi(-21)).count(), 58);
    let listed = [
        (0x1A00, 0x3802, 0x3801),
        (0x2180, 0x3806, 0x3805),
        (0x9D80, 0x37FA, 0x37FB),
        (0x9E80, 0x37F9, 0x37FA),
        (0x9F80, 0x37F8, 0x37F9),
        (0xA0C0, 0x37F6, 0x37F7),
        (0xA1C0, 0x37F4, 0x37F5),
        (0xB13F, 0x3759, 0x3758),
        (0x1F00, 0x3804, 0x3803),
    ];
    for (input, chip, right) in listed {
        assert_eq!((near(exact(h(input))).to_bits(), ulps(h(right), h(chip))), (right, 1), "{input:04X}");
    }
    // Correctly rounded f32 steps, too, can differ from the exact sigmoid where it is near the edge, and only there.
    for x in all().filter(|x| !x.is_nan()) {
        let (found, right) = (sigmoid16(x), near(exact(x)));
        assert!(found == right || (ulps(found, right) == 1 && margin(exact(x)) < 2f64.powi(-21)), "{x}");
    }
    assert_eq!((sigmoid16(h(0x7C00)).to_bits(), sigmoid16(h(0xFC00)).to_bits()), (0x3C00, 0));
    assert!(sigmoid16(h(0x7E00)).is_nan());
}
