//! V3.

use half::f16;

use super::{class, h, near, normal, ulps};
use crate::dec2::options::ReduceTree;
use crate::dec2::reference::norm::{inverse_norm, row_norm, row_sum};
use crate::dec2::reference::number::mul;

const TREE: ReduceTree = ReduceTree::SliceEvenOdd;

fn normed(row: &[f16]) -> Vec<f16> {
    row_norm(row, &[f16::ONE; 96], TREE)
}

#[test]
fn rows_with_known_norms() {
    let row = |f: &dyn Fn(usize) -> f64| (0..96).map(|c| near(f(c))).collect::<Vec<_>>();
    let facts = |row: &[f16]| {
        let (inverse, sum) = inverse_norm(row, TREE);
        (sum.to_bits(), inverse.to_bits())
    };
    let zeros = row(&|_| 0.0);
    assert_eq!(facts(&zeros), (0, 0x55A8));
    assert!(normed(&zeros).iter().all(|x| x.to_bits() == 0));
    assert_eq!(facts(&row(&|_| 1.0)), (0x5600, 0x2E88));
    let ramp = row(&|c| c as f64 / 32.0);
    assert_eq!(facts(&ramp), (0x5C6E, 0x2B9A));
    assert_eq!(normed(&ramp)[95], mul(ramp[95], h(0x2B9A)));
    // Up to a root mean square of 26.11 the sum of squares is finite.
    assert_eq!(facts(&row(&|_| 26.11)).0, 0x7BFC);
    assert_eq!(facts(&row(&|_| 26.12)), (0x7C00, 0));
    let one = row(&|c| if c == 0 { 256.0 } else { 0.0 });
    assert_eq!(facts(&one), (0x7C00, 0));
    assert!(normed(&row(&|_| 26.12)).iter().all(|x| *x == f16::ZERO));
    // Below 256 a single element is fine.
    assert_ne!(facts(&row(&|c| if c == 0 { 255.75 } else { 0.0 })).1, 0);
}

#[test]
fn infinities_and_nans() {
    for (at, value) in [(0, 0x7C00), (17, 0xFC00), (95, 0x7C00)] {
        let mut row: Vec<_> = (0..96).map(|c| near(1.0 - c as f64 / 40.0)).collect();
        row[at] = h(value);
        for (c, (x, before)) in normed(&row).iter().zip(&row).enumerate() {
            if c == at {
                assert!(x.is_nan());
            } else {
                assert_eq!(x.to_bits(), before.to_bits() & 0x8000, "column {c}");
            }
        }
        for nan in [0x7E00, 0x7C01, 0xFE00] {
            row[at] = h(nan);
            assert!(normed(&row).iter().all(|x| x.is_nan()));
        }
    }
}

#[test]
fn subnormals_count() {
    // Squares of these are 2^-24 each: 96 of them and epsilon.
    let row = [near(2f64.powi(-12)); 96];
    let (inverse, sum) = inverse_norm(&row, TREE);
    assert_eq!(
        (sum.to_f64(), inverse),
        (96.0 * 2f64.powi(-24), near(1.0 / (96.0 * 2f64.powi(-24) + 2f64.powi(-13)).sqrt()))
    );
    assert_eq!(inverse_norm(&[h(0x03FF); 96], TREE).1, h(0));
}

/// The order in words: which columns are added first.
#[test]
fn the_tree_is_even_then_odd_slices_then_lanes_then_halves() {
    let mut rng = fastrand::Rng::with_seed(3);
    for _ in 0..500 {
        let x: Vec<_> = (0..96).map(|_| near(normal(&mut rng).powi(2))).collect();
        let add = |a: f16, b: f16| near(a.to_f64() + b.to_f64());
        let of_column = |c: usize| {
            let s = |n: usize| x[8 * n + c];
            let even = add(add(add(s(0), s(2)), add(s(4), s(6))), add(s(8), s(10)));
            let odd = add(add(add(s(1), s(3)), add(s(5), s(7))), add(s(9), s(11)));
            add(even, odd)
        };
        // Columns 0 and 2 are neighbouring lanes, 0 and 1 the halves of one lane's word.
        let of_half = |c: usize| add(add(of_column(c), of_column(c + 2)), add(of_column(c + 4), of_column(c + 6)));
        assert_eq!(row_sum(&x, TREE), add(of_half(0), of_half(1)));
    }
}

/// How much the order matters: a lane's part of the sum differs for half of all rows.
#[test]
fn another_order_gives_other_sums() {
    let mut rng = fastrand::Rng::with_seed(1);
    let (mut differ, mut most) = (0, 0);
    for _ in 0..20_000 {
        let mut row = vec![f16::ZERO; 96];
        for n in 0..12 {
            let x = near(normal(&mut rng));
            row[8 * n] = mul(x, x);
        }
        let distance = ulps(row_sum(&row, TREE), row_sum(&row, ReduceTree::Sequential));
        differ += u32::from(distance != 0);
        most = most.max(distance);
    }
    assert!((9_000..10_600).contains(&differ) && (3..=6).contains(&most), "{differ} differ, by at most {most}");
}

#[test]
fn gains_are_multiplied_first() {
    let row = [near(3.0); 96];
    let gain: Vec<_> = (0..96).map(|c| near(0.37 * c as f64 - 9.0)).collect();
    let (inverse, _) = inverse_norm(&row, TREE);
    for (c, x) in row_norm(&row, &gain, TREE).iter().enumerate() {
        let right = near(row[c].to_f64() * near(inverse.to_f64() * gain[c].to_f64()).to_f64());
        assert_eq!(class(*x), class(right));
    }
}
