use super::super::{Arith, Host, cos, erf, exp, exp2, log, log2, sin, tanh};
use super::FUNCTIONS;

const INFINITY: f32 = f32::INFINITY;

#[track_caller]
fn same(result: f32, expected: f32) {
    assert!(result.to_bits() == expected.to_bits(), "{result:e} instead of {expected:e}");
}

#[test]
fn a_nan_stays_a_nan() {
    for function in &FUNCTIONS {
        // Payloads at both ends, quiet and signalling, both signs.
        for bits in [0x7fc0_0000, 0x7fff_ffff, 0x7f80_0001, 0x7fbf_ffff, 0xffc0_0000, 0xffff_ffff, 0xff80_0001u32] {
            assert!((function.expansion)(f32::from_bits(bits)).is_nan(), "{} of {bits:#x}", function.name);
        }
    }
}

#[test]
fn exponentials() {
    for f in [exp::<Host>, exp2::<Host>] {
        same(f(&Host, 0.0), 1.0);
        same(f(&Host, -0.0), 1.0);
        same(f(&Host, INFINITY), INFINITY);
        same(f(&Host, f32::MAX), INFINITY);
        same(f(&Host, -INFINITY), 0.0);
        same(f(&Host, f32::MIN), 0.0);
    }
    for n in -149..=127 {
        same(exp2(&Host, n as f32), 2f64.powi(n) as f32);
    }
    same(exp2(&Host, 128.0), INFINITY);
    same(exp2(&Host, -150.0), 0.0);
    assert!(exp(&Host, 88.722_83).is_finite());
    same(exp(&Host, 88.722_84), INFINITY);
    same(exp(&Host, -103.97), f32::from_bits(1));
    same(exp(&Host, -103.98), 0.0);
}

#[test]
fn logarithms() {
    for f in [log::<Host>, log2::<Host>] {
        same(f(&Host, 1.0), 0.0);
        same(f(&Host, 0.0), -INFINITY);
        same(f(&Host, -0.0), -INFINITY);
        same(f(&Host, INFINITY), INFINITY);
        for x in [-1.0, -f32::from_bits(1), f32::MIN, -INFINITY] {
            assert!(f(&Host, x).is_nan(), "{x:e}");
        }
    }
    for n in -149..=127 {
        same(log2(&Host, 2f64.powi(n) as f32), n as f32);
    }
}

#[test]
fn odd_functions_keep_zeros_and_subnormals() {
    for f in [sin::<Host>, tanh::<Host>] {
        for bits in [0, 1, 2, 0x007f_ffff, 0x0080_0000] {
            let x = f32::from_bits(bits);
            same(f(&Host, x), x);
            same(f(&Host, -x), -x);
        }
    }
    same(erf(&Host, 0.0), 0.0);
    same(erf(&Host, -0.0), -0.0);
    // 2/√π of the smallest number is nearest to it.
    same(erf(&Host, f32::from_bits(1)), f32::from_bits(1));
    same(cos(&Host, 0.0), 1.0);
    same(cos(&Host, -0.0), 1.0);
}

#[test]
fn infinities() {
    for f in [tanh::<Host>, erf::<Host>] {
        for x in [10.0, 90.0, f32::MAX, INFINITY] {
            same(f(&Host, x), 1.0);
            same(f(&Host, -x), -1.0);
        }
    }
    for f in [sin::<Host>, cos::<Host>] {
        assert!(f(&Host, INFINITY).is_nan() && f(&Host, -INFINITY).is_nan());
    }
}

#[test]
fn the_host_has_an_exact_fma() {
    let mut random = super::pow::Random(1);
    for _ in 0..100_000 {
        let [a, b, c] = std::array::from_fn(|_| f32::from_bits(random.next() as u32));
        // One in which the sum cancels, too.
        for c in [c, -(a * b), f32::from_bits((-(a * b)).to_bits().wrapping_add(1))] {
            let (value, expected) = (Host.fma(a, b, c), libm::fmaf(a, b, c));
            assert!(value.to_bits() == expected.to_bits() || value.is_nan() && expected.is_nan(), "{a:e} {b:e} {c:e}");
        }
    }
}

#[test]
fn scaling_rounds_once() {
    for x in [0.0, -0.0, 0.5, 1.0, 1.999_999_9, -1.333_333_4, 4.0] {
        for n in -200..=200 {
            same(Host.ldexp(x, n), (f64::from(x) * 2f64.powi(n)) as f32);
        }
    }
    assert!(Host.ldexp(f32::NAN, i32::MIN).is_nan());
}
