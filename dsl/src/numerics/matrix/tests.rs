use super::*;

/// A number stream without a pattern.
fn stream(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    }
}

/// Rounds `n · 2^unit` to f32 by integers alone.
fn rounded(n: i128, unit: i32) -> f32 {
    let (magnitude, negative) = (n.unsigned_abs(), n < 0);
    if magnitude == 0 {
        return 0.0;
    }
    let length = 128 - magnitude.leading_zeros() as i32;
    let dropped = (length - 24).max(-149 - unit).max(0);
    let (whole, rest) = if dropped > 127 { (0, 1) } else { (magnitude >> dropped, magnitude & ((1 << dropped) - 1)) };
    let half = if dropped == 0 || dropped > 127 { u128::MAX } else { 1 << (dropped - 1) };
    let up = rest > half || (rest == half && whole & 1 == 1);
    let value = (whole + u128::from(up)) as f64 * 2f64.powi(unit + dropped);
    if negative { -(value as f32) } else { value as f32 }
}

#[test]
fn sums_are_exact_and_rounded_once() {
    let mut next = stream(1);
    for round in 0..20_000 {
        // Terms that are multiples of 2^-60 below 2^40, many of which cancel: integers hold them.
        let n = 1 + next() % 40;
        let mut whole = vec![];
        for i in 0..n {
            let bits = 1 + next() % 50;
            let mut m = i128::from(next() & ((1 << bits.min(31)) - 1)) << (next() % 60);
            if next().is_multiple_of(2) {
                m = -m;
            }
            whole.push(m);
            if i > 0 && next().is_multiple_of(3) {
                let before = -whole[i as usize - 1];
                whole[i as usize] = before;
            }
        }
        let c = (next() as i32 - (1 << 30)) as f32 * 2f32.powi(-(next() as i32 % 60).abs());
        let terms: Vec<f64> = whole.iter().map(|m| *m as f64 * 2f64.powi(-60)).collect();
        let exact: i128 = whole.iter().sum::<i128>() + (f64::from(c) * 2f64.powi(60)) as i128;
        let c_fits = f64::from(c) * 2f64.powi(60) == (f64::from(c) * 2f64.powi(60)).trunc();
        if !c_fits {
            continue;
        }
        let want = rounded(exact, -60) + 0.0;
        let got = exact_sum(terms.iter().copied(), c);
        assert_eq!(got.to_bits(), want.to_bits(), "round {round}: {terms:?} + {c:e}: {got:e}, not {want:e}");
    }
}

#[test]
fn sums_at_the_edges() {
    let sum = |terms: &[f64], c: f32| exact_sum(terms.iter().copied(), c);
    assert_eq!(sum(&[], -0.0).to_bits(), 0);
    assert_eq!(sum(&[-0.0, 0.0], -0.0).to_bits(), 0);
    // Between two floats by a hair: only one rounding finds the right one.
    assert_eq!(sum(&[1.0, 2f64.powi(-24), 2f64.powi(-400)], 0.0), 1.0 + f32::EPSILON);
    assert_eq!(sum(&[1.0, 2f64.powi(-24), -(2f64.powi(-400))], 0.0), 1.0);
    assert_eq!(sum(&[1.0, 2f64.powi(-24)], 0.0), 1.0);
    assert_eq!(sum(&[2f64.powi(300), 1.5, -(2f64.powi(300))], 2.0), 3.5);
    assert_eq!(sum(&[2f64.powi(-600)], 0.0).to_bits(), 0);
    assert_eq!(sum(&[-(2f64.powi(-600))], 0.0).to_bits(), 0);
    assert_eq!(sum(&[2f64.powi(-149)], 0.0), f32::from_bits(1));
    assert_eq!(sum(&[2f64.powi(-150), 2f64.powi(-500)], 0.0), f32::from_bits(1));
    assert_eq!(sum(&[2f64.powi(-150)], 0.0), 0.0);
    assert_eq!(sum(&[2f64.powi(128)], 0.0), f32::INFINITY);
    assert_eq!(sum(&[2f64.powi(128)], f32::MIN), 2f32.powi(104));
    assert_eq!(sum(&[1.0], f32::INFINITY), f32::INFINITY);
    assert_eq!(sum(&[f64::NEG_INFINITY, 5.0], 1.0), f32::NEG_INFINITY);
    assert!(sum(&[f64::NEG_INFINITY], f32::INFINITY).is_nan());
    assert!(sum(&[f64::NAN, 1.0], 1.0).is_nan() && sum(&[1.0], f32::NAN).is_nan());
}

#[test]
fn the_tensor_core_cuts_small_terms() {
    let step = |f: &[(f64, f64)], c: f32| hopper_step(f.iter().copied(), c, [-14; 2]);
    assert_eq!(step(&[(1.0, 1.0)], 0.0), 1.0);
    // 2^-25 of the largest term is kept, half of it is cut.
    assert_eq!(step(&[(1.0, 1.0), (-1.0, 1.0), (2f64.powi(-13), 2f64.powi(-12))], 0.0), 2f32.powi(-25));
    assert_eq!(step(&[(1.0, 1.0), (-1.0, 1.0), (2f64.powi(-13), 2f64.powi(-13))], 0.0), 0.0);
    // The exponent of a product is the sum of the factors': 1.5·1.5 = 2.25 counts as 2^0.
    assert_eq!(step(&[(1.5, 1.5), (-1.5, 1.5), (2f64.powi(-12), 2f64.powi(-13))], 0.0), 2f32.powi(-25));
    // Cut towards 0 after the sum, for both signs.
    assert_eq!(step(&[(1.0, 1.0), (2f64.powi(-12), 2f64.powi(-12))], 0.0), 1.0);
    assert_eq!(step(&[(-1.0, 1.0), (2f64.powi(-12), -(2f64.powi(-12)))], 0.0), -1.0);
    assert_eq!(step(&[(-1.0, 1.0), (2f64.powi(-12), 2f64.powi(-13))], 0.0), -(1.0 - 2f32.powi(-24)));
    // A subnormal f16 counts with the smallest normal exponent.
    let tiny = 2f64.powi(-24);
    assert_eq!(step(&[(tiny, tiny)], 0.0), 2f32.powi(-48));
    assert_eq!(step(&[(tiny, 2f64.powi(-14)), (tiny, tiny)], 0.0), 2f32.powi(-38) + 2f32.powi(-48));
    // Beside C.
    assert_eq!(step(&[(1.0, 1.0)], 2f32.powi(30)), 2f32.powi(30));
    assert_eq!(step(&[(1.0, 1.0)], -(2f32.powi(26))), -(2f32.powi(26)));
    assert_eq!(step(&[(1.0, 1.0)], -(2f32.powi(25))), -33_554_430.0);
    assert_eq!(step(&[], -0.0).to_bits(), 0);
    assert_eq!(step(&[(-0.0, 1.0)], -0.0).to_bits(), 0);
    assert_eq!(step(&[(f64::NAN, 1.0)], 0.0).to_bits(), 0x7FFF_FFFF);
    assert_eq!(step(&[(f64::INFINITY, 0.0)], 0.0).to_bits(), 0x7FFF_FFFF);
    assert_eq!(step(&[(f64::INFINITY, -1.0), (3.0, 4.0)], 7.0), f32::NEG_INFINITY);
    assert_eq!(step(&[(f64::INFINITY, -1.0)], f32::INFINITY).to_bits(), 0x7FFF_FFFF);
    assert_eq!(step(&[], f32::MAX), f32::MAX);
}

#[test]
fn the_tensor_core_rounds_f16_sums_once() {
    let h = |x: f64| <half::f16 as crate::numerics::Float>::from_f64(x);
    let step = |f: &[(f64, f64)], c: f64| hopper_step_f16(f.iter().copied(), h(c)).to_bits();
    assert_eq!(step(&[(1.0, 1.0)], 2.0), h(3.0).to_bits());
    // A tie goes to even, unless a term that is still in sight breaks it.
    assert_eq!(step(&[(1.0, 1.0), (2f64.powi(-11), 1.0)], 0.0), h(1.0).to_bits());
    assert_eq!(step(&[(1.0, 1.0), (2f64.powi(-11), 1.0), (2f64.powi(-12), 2f64.powi(-13))], 0.0), 0x3C01);
    assert_eq!(step(&[(1.0, 1.0), (2f64.powi(-11), 1.0), (2f64.powi(-13), 2f64.powi(-13))], 0.0), 0x3C00);
    // The largest exponent is that of subnormal C too.
    assert_eq!(step(&[(2f64.powi(-14), 2f64.powi(-14))], 2f64.powi(-24)), 1);
    assert_eq!(step(&[(448.0, 448.0)], 0.0), 0x7C00);
    assert_eq!(step(&[(-448.0, 448.0)], 65504.0), h(65504.0 - 200_704.0).to_bits());
    assert_eq!((step(&[], -0.0), step(&[(-0.0, 1.0)], -0.0)), (0, 0));
    assert_eq!((step(&[(f64::NAN, 1.0)], 0.0), step(&[(1.0, 1.0)], f64::NEG_INFINITY)), (0x7FFF, 0xFC00));
    // Where nothing is cut it is the exact sum, rounded once.
    let mut next = stream(5);
    for _ in 0..20_000 {
        let factors: Vec<_> = (0..16).map(|_| (next() as i32 % 449, next() as i32 % 9 - 4)).collect();
        let c = (next() % 4096) as i32 - 2048;
        let sum: i32 = factors.iter().map(|(a, b)| a * b).sum::<i32>() + c;
        let got = hopper_step_f16(factors.iter().map(|(a, b)| (f64::from(*a), f64::from(*b))), h(c.into()));
        assert_eq!(got, h(sum.into()), "{factors:?} {c}");
    }
}

/// Against the same rule in rationals: terms as integers of one common unit.
#[test]
fn the_tensor_core_as_integers_have_it() {
    let mut next = stream(7);
    for _ in 0..20_000 {
        let value = |r: u64, spread: u64| {
            let m = 1024 + (r % 1024) as i64;
            let e = (r >> 10) % spread;
            (if r >> 30 & 1 == 1 { -m } else { m }, e as i32)
        };
        let spread = 1 + next() % 16;
        let factors: Vec<_> = (0..16).map(|_| (value(next(), spread), value(next(), spread))).collect();
        let (c, ce) = value(next(), 12);
        // Factors m · 2^(e−10), C m · 2^(ce−10).
        let top = factors.iter().map(|((_, e), (_, f))| e + f).chain([ce]).max().unwrap();
        // In units of 2^-20, each at most 2^(22+32): cut to 2^(top−25), that is to 2^(top−5) units.
        let cut = |units: i128| {
            let grain = (top - 5).max(0);
            units.signum() * (units.abs() >> grain << grain)
        };
        let sum: i128 =
            factors.iter().map(|((m, e), (n, f))| cut((i128::from(*m) * i128::from(*n)) << (e + f))).sum::<i128>()
                + cut(i128::from(c) << (ce + 10));
        let length = 128 - sum.unsigned_abs().leading_zeros();
        let dropped = length.saturating_sub(24);
        let want = (sum.signum() * (sum.abs() >> dropped << dropped)) as f64 * 2f64.powi(-20);
        let float = |(m, e): (i64, i32)| m as f64 * 2f64.powi(e - 10);
        let got = hopper_step(factors.iter().map(|(a, b)| (float(*a), float(*b))), float((c, ce)) as f32, [-14; 2]);
        assert_eq!(f64::from(got), want, "{factors:?} {c} {ce}");
    }
}
