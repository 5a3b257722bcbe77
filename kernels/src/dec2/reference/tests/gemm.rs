//! Steps of matrix products under every rounding.

use half::f16;
use lathe_dsl::numerics::{MmaRounding, Narrow};

use super::{near, normal, ulps};
use crate::dec2::options::{MmaAcc, Options};
use crate::dec2::reference::Matrix;
use crate::dec2::reference::gemm::{product, step};

fn models() -> [Options; 4] {
    let of = |mma_acc, mma_rounding| Options { mma_acc, mma_rounding, ..Options::default() };
    [
        of(MmaAcc::F32PerK32, MmaRounding::Exact),
        of(MmaAcc::F32PerK32, MmaRounding::Hopper),
        of(MmaAcc::NativeF16, MmaRounding::Exact),
        of(MmaAcc::Sm90Emul, MmaRounding::Exact),
    ]
}

/// The e4m3 number nearest to `x`.
fn e4m3(x: f64) -> f64 {
    let code = crate::dec2::reference::number::quantise(near(x), Default::default());
    f64::from(Narrow::E4m3.decode(code))
}

#[test]
fn small_integers_are_exact_under_every_model() {
    let mut rng = fastrand::Rng::with_seed(2);
    for _ in 0..4000 {
        let [a, b]: [Vec<f64>; 2] = std::array::from_fn(|_| (0..32).map(|_| f64::from(rng.i32(-2..=2))).collect());
        let c = f64::from(rng.i32(-64..=64));
        let exact = a.iter().zip(&b).map(|(a, b)| a * b).sum::<f64>() + c;
        for options in models() {
            assert_eq!(step(&a, &b, near(c), &options), near(exact), "{options}");
        }
    }
}

/// On ordinary data the f32 forms are the exact sum rounded once, and the emulated f16 form is not.
#[test]
fn one_rounding_against_three() {
    let mut rng = fastrand::Rng::with_seed(4);
    let [f32_exact, f32_hopper, once, emulated] = models();
    for scale in [0.25, 1.0, 4.0] {
        let (mut differ, mut count) = (0, 0);
        for _ in 0..4000 {
            let [a, b]: [Vec<f64>; 2] =
                std::array::from_fn(|_| (0..32).map(|_| e4m3(scale * normal(&mut rng))).collect());
            let c = near(scale * normal(&mut rng));
            let one = step(&a, &b, c, &once);
            let sum = |range: std::ops::Range<usize>| range.map(|k| a[k] * b[k]).sum::<f64>();
            assert_eq!(one, near(sum(0..32) + c.to_f64()));
            // Rounding twice, to f32 first, can only matter at ties.
            assert!(ulps(step(&a, &b, c, &f32_exact), one) <= 1);
            assert_eq!(step(&a, &b, c, &f32_exact), step(&a, &b, c, &f32_hopper));
            let three = step(&a, &b, c, &emulated);
            let low = near(sum(0..16)).to_f64();
            assert_eq!(three, near(near(low + sum(16..32)).to_f64() + c.to_f64()));
            differ += u32::from(three != one);
            count += 1;
        }
        let share = f64::from(differ) / f64::from(count);
        assert!((0.25..0.5).contains(&share), "{share} at {scale}");
    }
}

#[test]
fn sums_that_only_some_models_can_hold() {
    let [exact, hopper, once, emulated] = models();
    let mut a = vec![0.0; 32];
    let mut b = vec![448.0; 32];
    (a[0], a[31]) = (448.0, -448.0);
    b[1] = 2f64.powi(-9);
    a[1] = 2f64.powi(-9);
    // The emulation's halves overflow to infinities of both signs... unless they cancel first, which they cannot.
    let of = |options: &Options| step(&a, &b, f16::ZERO, options);
    assert_eq!((of(&exact), of(&once)), (near(2f64.powi(-18)), near(2f64.powi(-18))));
    assert_eq!(of(&hopper), f16::ZERO, "cut beside the largest term");
    assert_eq!(of(&emulated), f16::INFINITY);
    // Signed zeros and NaNs.
    for options in models() {
        let zero = step(&[-0.0; 32], &[1.0; 32], f16::NEG_ZERO, &options);
        assert_eq!(zero.to_bits(), 0, "{options}");
        assert!(step(&[f64::NAN; 32], &[0.0; 32], f16::ONE, &options).is_nan());
        assert_eq!(step(&[1.0; 32], &[1.0; 32], f16::NEG_INFINITY, &options), f16::NEG_INFINITY);
        assert_eq!(step(&[1.0; 32], &[0.0; 32], near(2f64.powi(-24)), &options).to_bits(), 1);
    }
}

/// Whole matrices, of numbers of every size, their zeros and NaNs, against one step after the other.
#[test]
fn products_are_their_steps() {
    let mut rng = fastrand::Rng::with_seed(9);
    for options in models() {
        for (scale, any) in [(0.3, 0), (1.0, 0), (3.0, 0), (20.0, 0), (1.0, 4), (0.0, 1)] {
            for (m, n, k) in [(5, 3, 96), (16, 16, 32), (2, 11, 40)] {
                let mut code = |_, _| {
                    if any > 0 && rng.u32(0..any) == 0 {
                        return rng.u8(..);
                    }
                    crate::dec2::reference::number::quantise(near(scale * normal(&mut rng)), Default::default())
                };
                let (a, b) = (Matrix::from_fn(m, k, &mut code), Matrix::from_fn(k, n, &mut code));
                let c = Matrix::from_fn(m, n, |_, _| match rng.u32(0..16) {
                    0 => half::f16::from_bits(rng.u16(..)),
                    _ => near(normal(&mut rng)),
                });
                let got = product(&a, &b, &c, &options);
                let value = |code| f64::from(Narrow::E4m3.decode(code));
                let (a, b) = (a.map(value), b.transposed().map(value));
                for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
                    let steps = a.row(i).chunks(32).zip(b.row(j).chunks(32));
                    let expected = steps.fold(c[(i, j)], |c, (a, b)| step(a, b, c, &options));
                    let got = got[(i, j)];
                    assert!(
                        got.to_bits() == expected.to_bits() || (got.is_nan() && expected.is_nan()),
                        "{options} {scale} {any}: {got} is not {expected}"
                    );
                }
            }
        }
    }
}

#[test]
fn every_thirty_two_of_k_are_rounded() {
    // 2048 + 1 is no f16: added in one step it would count.
    let code = |x: f64| crate::dec2::reference::number::quantise(near(x), Default::default());
    let a = Matrix::from_fn(1, 96, |_, k| {
        code(if k == 0 {
            64.0
        } else if k % 32 == 1 {
            1.0
        } else {
            0.0
        })
    });
    let b = Matrix::from_fn(96, 1, |k, _| code(if k == 0 { 32.0 } else { 1.0 }));
    let zero = Matrix::filled(1, 1, f16::ZERO);
    for options in models() {
        assert_eq!(product(&a, &b, &zero, &options)[(0, 0)], near(2048.0), "{options}");
    }
}
