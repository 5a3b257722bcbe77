//! V6: the cubic exponential and its softmax.

use half::f16;

use super::{all, h, near};
use crate::dec2::constants::{CUBIC_LINEAR, SCORE_CLAMP, SCORE_SCALE};
use crate::dec2::options::ReduceTree;
use crate::dec2::reference::Matrix;
use crate::dec2::reference::attention::{cubic, cubic_exp, cubic_softmax};
use crate::dec2::reference::norm::row_sum;

const TREE: ReduceTree = ReduceTree::SliceEvenOdd;

/// All f16 but NaNs, by size.
fn ordered() -> Vec<f16> {
    let mut numbers: Vec<_> = all().filter(|x| !x.is_nan()).collect();
    numbers.sort_by(|a, b| a.to_f64().total_cmp(&b.to_f64()));
    numbers
}

fn weight(x: f16) -> f64 {
    cubic_exp(x).to_f64()
}

/// Smallest and largest.
fn range(values: impl Iterator<Item = f64>) -> [f64; 2] {
    values.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], v| [low.min(v), high.max(v)])
}

fn about(found: [f64; 2], expected: [f64; 2], by: f64) {
    let near = |i: usize| (found[i] - expected[i]).abs() <= by;
    assert!(near(0) && near(1), "{found:?}, not {expected:?}");
}

#[test]
fn known_weights() {
    let goldens = [
        (0x0000, 0x3000),
        (0x8000, 0x3000),
        (0x3C00, 0x3200),
        (0xBC00, 0x2E00),
        (0x4000, 0x3420),
        (0xC000, 0x2BE0),
        (0x4400, 0x3820),
        (0xC400, 0x27E0),
        (0x4800, 0x4000),
        (0xC800, 0x2000),
        (0x4C00, 0x4E00),
        (0xCC00, 0x1200),
        (0x5000, 0x5C00),
        (0x7C00, 0x5C00),
        (0xD000, 0x0400),
        (0xFC00, 0x0400),
        (0x7E00, 0x0400),
        (0xFE00, 0x0400),
        (0x7C01, 0x0400),
    ];
    for (x, weight) in goldens {
        assert_eq!(cubic_exp(h(x)).to_bits(), weight, "{x:04X}");
    }
}

#[test]
fn the_whole_map() {
    let numbers = ordered();
    assert_eq!(numbers.len(), 63_490);
    let cubics: Vec<u16> = numbers.iter().map(|x| cubic(*x).to_bits()).collect();
    assert_eq!((cubics.iter().min(), cubics.iter().max()), (Some(&0x3C20), Some(&0x3EE0)));
    let mut weights: Vec<u16> = numbers.iter().map(|x| cubic_exp(*x).to_bits()).collect();
    let descents: Vec<u16> =
        numbers.windows(2).filter(|w| weight(w[1]) < weight(w[0])).map(|w| w[1].to_bits()).collect();
    assert_eq!(descents.len(), 18, "{descents:04X?}");
    assert!(descents.contains(&0xCFE0) && descents.contains(&0x4E5D), "{descents:04X?}");
    weights.sort_unstable();
    weights.dedup();
    assert_eq!((weights.len(), weights[0], weights[weights.len() - 1]), (705, 0x0400, 0x5C00));
    let ratios = weights.windows(2).map(|w| h(w[1]).to_f64() / h(w[0]).to_f64());
    assert!(ratios.fold(0.0, f64::max) <= 1.03126);
    let clamped = |bound: f16| {
        numbers.iter().filter(move |x| {
            near(x.to_f64() * SCORE_SCALE.to_f64()).to_f64() * bound.to_f64().signum() >= bound.to_f64().abs()
        })
    };
    assert_eq!(range(clamped(SCORE_CLAMP[1]).map(|x| x.to_f64()))[0], 32.375);
    assert_eq!(range(clamped(SCORE_CLAMP[0]).map(|x| x.to_f64()))[1], -32.375);
}

/// It is the piecewise linear 2^v of v = 32·(u − 1) − 15, up to 6.1 % too large.
#[test]
fn errors_of_the_exponential() {
    let numbers = ordered();
    let of_cubic = |x: f16| weight(x) / libm::exp2(32.0 * (cubic(x).to_f64() - 1.0) - 15.0) - 1.0;
    about(range(numbers.iter().map(|x| of_cubic(*x))), [0.0, 0.06147], 1e-5);
    let theory = |f: f64| (1.0 + f) / libm::exp2(f) - 1.0;
    assert!((theory(0.4427) - 0.06148).abs() < 1e-5);
    assert!(theory(0.4427) >= theory(0.4420) && theory(0.4427) >= theory(0.4434));
    // Against the cubic in real numbers.
    let exact = |x: f16| {
        let m = (x.to_f64() * SCORE_SCALE.to_f64()).clamp(SCORE_CLAMP[0].to_f64(), SCORE_CLAMP[1].to_f64());
        weight(x) / libm::exp2(32.0 * (0.375 + CUBIC_LINEAR.to_f64() * m - m.powi(3)) - 15.0) - 1.0
    };
    let inside = |limit: f64| numbers.iter().copied().filter(move |x| x.to_f64().abs() <= limit);
    about(range(inside(32.0).map(exact)), [-0.012, 0.076], 0.0006);
    // Near 0 the exponent is −3 + 0.5098·x: e^(x/√8), and the weight of 0 is 1/8.
    let slope = 32.0 * CUBIC_LINEAR.to_f64() * SCORE_SCALE.to_f64();
    assert!((slope - 0.5098).abs() < 5e-5 && (slope * std::f64::consts::LN_2 - 0.35337).abs() < 5e-6);
    assert!((slope * std::f64::consts::LN_2 * 8f64.sqrt() - 1.0).abs() < 0.0006);
    assert_eq!(weight(h(0)), 0.125);
    let against_e =
        |limit: f64| range(inside(limit).map(|x| 8.0 * weight(x) / libm::exp(x.to_f64() / 8f64.sqrt()) - 1.0));
    about(against_e(1.0), [-0.011, 0.073], 0.0006);
    about(against_e(4.0), [-0.018, 0.077], 0.0006);
    about(against_e(8.0), [-0.06, 0.12], 0.006);
    assert!(against_e(16.0)[1].max(-against_e(16.0)[0]) > 0.3);
}

#[test]
fn rows_of_clamped_scores() {
    let (high, low) = (near(40.0), near(-40.0));
    let row = |f: &dyn Fn(usize) -> f16| Matrix::from_fn(1, 96, |_, j| f(j));
    let sum = |scores: &Matrix<f16>| row_sum(scores.map(cubic_exp).row(0), TREE);
    let all_high = row(&|_| high);
    assert_eq!(sum(&all_high).to_bits(), 0x7600);
    assert!(cubic_softmax(&all_high, TREE).elements().iter().all(|p| *p == near(256.0 * near(1.0 / 24576.0).to_f64())));
    let all_low = row(&|_| low);
    assert_eq!(sum(&all_low).to_f64(), 96.0 * 2f64.powi(-14));
    assert!((sum(&all_low).to_f64() - 0.00586).abs() < 1e-5);
    let one = row(&|j| if j == 5 { high } else { low });
    let p = cubic_softmax(&one, TREE);
    assert_eq!(p[(0, 5)], f16::ONE);
    assert!((256.0f64 / (256.0 + 95.0 * 2f64.powi(-14)) - 0.99998).abs() < 5e-6);
    assert_eq!(p[(0, 6)], near(2f64.powi(-14) / 256.0));
    // A NaN counts as the lower bound, infinities as theirs.
    let special = row(&|j| [h(0x7E00), h(0x7C00), h(0xFC00), h(0xFE00)][j % 4]);
    let plain = row(&|j| [low, high, low, low][j % 4]);
    assert_eq!(cubic_softmax(&special, TREE), cubic_softmax(&plain, TREE));
}

#[test]
fn probabilities_add_up() {
    let mut rng = fastrand::Rng::with_seed(11);
    let scores = Matrix::from_fn(64, 96, |_, _| near(3.0 * super::normal(&mut rng)));
    let p = cubic_softmax(&scores, TREE);
    for i in 0..64 {
        let total: f64 = p.row(i).iter().map(|p| p.to_f64()).sum();
        assert!((total - 1.0).abs() < 0.004, "row {i}: {total}");
        // Order is kept where scores are well apart.
        for (a, b) in (0..95).map(|j| (j, j + 1)) {
            let (s, t) = (scores[(i, a)].to_f64(), scores[(i, b)].to_f64());
            assert!((s - t).abs() < 0.5 || (s > t) == (p[(i, a)] > p[(i, b)]));
        }
    }
}
