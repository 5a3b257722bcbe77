//! Conversions.

use super::*;

#[test]
fn integers_keep_low_bits_and_extend_by_the_operand() {
    for from in SIZED.into_iter().chain([Scalar::Bool]) {
        for to in SIZED {
            let x = edges(from);
            let got = apply(&[(Type::Scalar(from), x.clone())], Type::Scalar(to), |v| Op::Convert(v[0]));
            let want: Vec<u64> = x.iter().map(|x| wrapped(to, number(from, *x))).collect();
            check(to, &got, &want, |i| format!("{from} {:#x} to {to}", x[i]));
        }
    }
    for to in FLOATS.into_iter().chain([Scalar::Idx]) {
        let one = if to == Scalar::Idx { 1 } else { (layout(to).1 as u64) << layout(to).0 };
        assert_eq!(apply(&[(BOOL, vec![0, 1])], Type::Scalar(to), |v| Op::Convert(v[0])), [0, one], "{to}");
    }
}

/// Integers around every rounding boundary of a float with `bits` significant bits.
fn rounding_ints(s: Scalar, bits: u32) -> Vec<u64> {
    let mut out = int_edges(s);
    let width = s.bits() - u32::from(s.is_signed());
    for top in bits..width {
        let half = 1u64 << (top - bits);
        let base = (1u64 << top) + half;
        for x in [base - 1, base, base + 1, base + 2 * half - 1, base + 2 * half, base + 2 * half + 1] {
            out.push(x & (u64::MAX >> (64 - s.bits())));
            if s.is_signed() {
                out.push(x.wrapping_neg() & (u64::MAX >> (64 - s.bits())));
            }
        }
    }
    out
}

/// Rounds to `bits` significant bits, ties to even, exactly.
pub(super) fn rounded(x: i128, bits: u32) -> f64 {
    let magnitude = x.unsigned_abs();
    let excess = (128 - magnitude.leading_zeros()).saturating_sub(bits);
    let (kept, rest) = (magnitude >> excess, magnitude & ((1 << excess) - 1));
    let half = 1u128 << excess >> 1;
    let up = excess > 0 && (rest > half || rest == half && kept & 1 == 1);
    let r = ((kept + u128::from(up)) << excess) as f64;
    if x < 0 { -r } else { r }
}

#[test]
fn integers_to_floats_round_once() {
    for from in SIZED.into_iter().chain([Scalar::Idx]) {
        for to in FLOATS {
            let bits = layout(to).0 + 1;
            let mut x = rounding_ints(from, bits);
            // Around the largest f16, whatever the width.
            x.extend([65_504, 65_519, 65_520, 65_521, 65_535].map(|x: u64| x & (u64::MAX >> (64 - from.bits()))));
            let got = apply(&[(Type::Scalar(from), x.clone())], Type::Scalar(to), |v| Op::Convert(v[0]));
            let want: Vec<u64> = x
                .iter()
                .map(|x| {
                    let r = rounded(number(from, *x), bits);
                    if to == Scalar::F64 { r.to_bits() } else { nearest(to, r) }
                })
                .collect();
            check(to, &got, &want, |i| format!("{from} {:#x} to {to}", x[i]));
        }
    }
}

#[test]
fn floats_to_integers_truncate_and_saturate() {
    for from in FLOATS {
        for to in SIZED {
            let (low, high) = if to.is_signed() {
                (-(1i128 << (to.bits() - 1)), (1i128 << (to.bits() - 1)) - 1)
            } else {
                (0, (1i128 << to.bits()) - 1)
            };
            // Edge cases, and the floats on both sides of the type's limits.
            let mut x = float_edges(from);
            for limit in [low, high, high + 1, low - 1] {
                let at = if from == Scalar::F64 { (limit as f64).to_bits() } else { nearest(from, limit as f64) };
                x.extend([at, at.saturating_sub(1), at + 1]);
            }
            let got = apply(&[(Type::Scalar(from), x.clone())], Type::Scalar(to), |v| Op::Convert(v[0]));
            let want: Vec<u64> = x
                .iter()
                .map(|x| match value(from, *x) {
                    v if v.is_nan() => 0,
                    v if v >= 2f64.powi(100) => wrapped(to, high),
                    v if v <= -(2f64.powi(100)) => wrapped(to, low),
                    v => wrapped(to, (v as i128).clamp(low, high)),
                })
                .collect();
            check(to, &got, &want, |i| format!("{from} {:#x} to {to}", x[i]));
        }
    }
}

/// Floats of type `from` around every place where rounding to `to` is decided.
fn rounding_floats(from: Scalar, to: Scalar) -> Vec<u64> {
    let mut x = float_edges(from);
    let (wide, narrow) = (layout(from), layout(to));
    if wide.0 <= narrow.0 {
        return x;
    }
    for t in float_edges(to).into_iter().chain((0..40).map(|i| i * 1619 % (1 << 15))) {
        let v = value(to, t);
        if !v.is_finite() {
            continue;
        }
        let step = (value(to, t ^ 1) - v).abs();
        for v in [v, v + step / 2.0, v - step / 2.0] {
            let bits = if from == Scalar::F64 { v.to_bits() } else { nearest(from, v) };
            x.extend([bits, bits.saturating_sub(1), bits + 1]);
        }
    }
    x
}

#[test]
fn floats_to_floats_round_once() {
    for from in FLOATS {
        for to in FLOATS.into_iter().filter(|to| *to != from) {
            let x = rounding_floats(from, to);
            let got = apply(&[(Type::Scalar(from), x.clone())], Type::Scalar(to), |v| Op::Convert(v[0]));
            let want: Vec<u64> = x
                .iter()
                .map(|x| {
                    let v = value(from, *x);
                    if to == Scalar::F64 { v.to_bits() } else { nearest(to, v) }
                })
                .collect();
            check(to, &got, &want, |i| format!("{from} {:#x} to {to}", x[i]));
            // A NaN stays one, wherever its payload lies.
            let (fraction, bias) = layout(from);
            let infinity = (2 * bias as u64 + 1) << fraction;
            let nans = vec![infinity | 1, infinity | 1 << (fraction - 1), infinity | ((1 << fraction) - 1)];
            for bits in apply(&[(Type::Scalar(from), nans)], Type::Scalar(to), |v| Op::Convert(v[0])) {
                assert!(is_nan(to, bits), "{from} to {to}: {bits:#x}");
            }
        }
    }
}
