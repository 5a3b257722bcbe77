//! What `mla_combine` must compute, in plain Rust, and how far a device may be from it.
//!
//! [`combine`] follows the stage's operation order one rounding at a time. Two bounds go with it: [`unsplit_bound`], how
//! far any correct result can be from attention that was never split, and [`device_bound`], how far a device whose
//! `exp2` and reciprocal are approximations can be from [`combine`].

pub mod post;
pub mod push;
pub mod splits;
pub mod uv;

use std::fmt;

use half::bf16;
use lathe_dsl::numerics::{hw_exp2, hw_rcp, maximum};

use super::problem::{HEADS, LATENTS};

/// log2(e) as `f32`.
const LOG2E: f32 = std::f32::consts::LOG2_E;
/// Unit roundoff of bf16: rounding to nearest changes a normal number by at most this fraction of it.
const U_BF16: f64 = 1.0 / 256.0;
/// Unit roundoff of `f32`.
const U_F32: f64 = 1.0 / 16_777_216.0;
/// Largest error of a device's `exp2` and reciprocal, in units of [`U_F32`]: 2^−22, the looser of what the vendors state
/// (PTX `ex2.approx.f32`; AMD's `v_exp_f32` and `v_rcp_f32` err by about one unit in the last place).
const HW_ERROR: f64 = 4.0;
/// 2^−134, half of the smallest bf16 number: an error that only numbers rounded to zero have.
const ROUNDS_TO_ZERO: f64 = f32::MIN_POSITIVE as f64 / 256.0;

/// The `mla_combine` stage for one batch.
///
/// `partial` is `[ranks][tokens][12][512]`, `lse` (natural logarithms) is `[ranks][tokens][12]`; the result is
/// `[tokens][12][512]`. All arithmetic is `f32`, each operation rounded to nearest even, nothing contracted:
///
/// 1. an LSE that is NaN or +∞ becomes −∞;
/// 2. `m` = the largest LSE, ranks ascending; 0 where that is −∞;
/// 3. `e[r] = exp2((lse[r] − m) · log2e)`;
/// 4. `tot = e[0] + e[1] + …`, ranks ascending; `inv = 1 / tot`;
/// 5. `w[r] = 0` where `e[r]` is 0, else `e[r] · inv`;
/// 6. per latent, from `acc = 0.0`, ranks ascending: `acc += p · w[r]`, `p` replaced by 0 where `w[r]` is 0;
/// 7. `acc` rounded to bf16, to nearest even.
///
/// So a row without any live rank is zero, whatever its partial rows hold. With one rank it is a copy, bit for bit, and
/// `lse` is not read.
///
/// # Panics
///
/// Where a slice is shorter or longer than these shapes say.
pub fn combine(ranks: usize, tokens: usize, partial: &[bf16], lse: &[f32]) -> Vec<bf16> {
    let rows = tokens * HEADS;
    assert_eq!(partial.len(), ranks * rows * LATENTS, "partial is [{ranks}][{tokens}][{HEADS}][{LATENTS}]");
    if ranks == 1 {
        return partial.to_vec();
    }
    assert_eq!(lse.len(), ranks * rows, "lse is [{ranks}][{tokens}][{HEADS}]");

    let mut out = Vec::with_capacity(rows * LATENTS);
    for row in 0..rows {
        let weights = rank_weights((0..ranks).map(|rank| lse[rank * rows + row]).collect());
        for latent in 0..LATENTS {
            let mut acc = 0.0f32;
            for (rank, &weight) in weights.iter().enumerate() {
                let p = partial[(rank * rows + row) * LATENTS + latent].to_f32();
                acc += if weight == 0.0 { 0.0 } else { p } * weight;
            }
            out.push(bf16::from_f32(acc));
        }
    }
    out
}

/// Steps 1–5 of [`combine`] for one row: each rank's LSE in, each rank's weight out.
fn rank_weights(mut lse: Vec<f32>) -> Vec<f32> {
    for x in &mut lse {
        *x = sane(*x);
    }
    let m = lse.iter().copied().reduce(maximum).unwrap_or(f32::NEG_INFINITY);
    let m = if m == f32::NEG_INFINITY { 0.0 } else { m };
    let e: Vec<f32> = lse.iter().map(|x| hw_exp2((x - m) * LOG2E)).collect();
    let tot = e.iter().copied().reduce(|a, b| a + b).unwrap_or(0.0);
    // tot = 0 makes this infinite; every e is 0 then, and no weight comes from it.
    let inv = hw_rcp(tot);
    e.iter().map(|&e| if e == 0.0 { 0.0 } else { e * inv }).collect()
}

/// NaN and +∞, which an empty shard may leave as its LSE, read as −∞; all else as it is.
pub fn sane(lse: f32) -> f32 {
    if lse.is_nan() || lse == f32::INFINITY { f32::NEG_INFINITY } else { lse }
}

/// What the error bounds of one row need to know about it.
struct RowFacts {
    /// Each rank's weight in `f64`; 0 for an empty shard.
    weights: Vec<f64>,
    /// Largest |LSE| of a live rank.
    lse_max: f64,
    /// Whether there is a live rank.
    live: bool,
}

impl RowFacts {
    fn new(ranks: usize, rows: usize, row: usize, lse: &[f32]) -> Self {
        let lse: Vec<f64> = (0..ranks).map(|rank| f64::from(sane(lse[rank * rows + row]))).collect();
        let max = lse.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if max == f64::NEG_INFINITY {
            return Self { weights: vec![0.0; ranks], lse_max: 0.0, live: false };
        }
        let e: Vec<f64> = lse.iter().map(|x| libm::exp(x - max)).collect();
        let sum: f64 = e.iter().sum();
        Self {
            weights: e.iter().map(|e| e / sum).collect(),
            lse_max: lse.iter().filter(|x| x.is_finite()).fold(0.0, |m, x| m.max(x.abs())),
            live: true,
        }
    }

    /// For one latent, Σ w·|p| over the live ranks, and what a device that flushes subnormals may lose.
    fn magnitude(&self, rows: usize, row: usize, latent: usize, partial: &[bf16]) -> (f64, f64) {
        if !self.live {
            return (0.0, ROUNDS_TO_ZERO);
        }
        let (mut weighted, mut plain) = (0.0, 0.0);
        for (rank, &weight) in self.weights.iter().enumerate().filter(|(_, w)| **w > 0.0) {
            let p = f64::from(partial[(rank * rows + row) * LATENTS + latent]).abs();
            weighted += weight * p;
            plain += p;
        }
        (weighted, (1.0 + plain) * f64::from(f32::MIN_POSITIVE))
    }
}

/// How far a correct result of the stage, on any device, can be from the attention that was never split.
///
/// One absolute bound per element, `[tokens][12][512]`, from the stage's own inputs (shapes as for [`combine`]).
///
/// Let `x_r` be a shard's exact row, `w_r` its exact weight (Σ `w_r` = 1 over live ranks), so that the answer is
/// Σ `w_r·x_r`. With `u` = 2^−8 and `v` = 2^−24, the unit roundoffs of bf16 and `f32`:
///
/// * A partial row was rounded to bf16: relative error `u`.
/// * An exponent `(lse − m)·log2e` errs, in natural units, by at most `7·A·v`, where `A` is the row's largest |LSE|: `A·v`
///   from the LSE's own rounding, `2A·v` each from the subtraction, the constant and the product. (`m` is common to all
///   ranks, so its own error cancels.)
/// * `exp2` and the reciprocal err by `4·v` each, the sum of `R` terms by `(R−1)·v`, `e·inv` by `v`. A weight has one
///   `e` above and all below the line: `(14·A + 2·4 + (R−1) + 4 + 1)·v` together.
/// * The product with the row errs by `v`, the sum over ranks by `R·v`. All `f32` errors together are at most
///   `η = exp((14·A + 2·R + 13)·v) − 1`.
/// * The result is rounded to bf16: `u` once more.
///
/// Hence |error| ≤ ((1+u)²·(1+η) − 1) · Σ `w_r·|x_r|`. The sum is taken over the rounded rows and weights made of the
/// rounded LSE, hence divided by `(1−u)` and multiplied by `(1+η)`. A device may flush subnormals: `Σ |p|·2^−126` for an
/// `e` lost that way and 2^−126 for a result. A row without a live rank has the bound 2^−134, which no bf16 number but zero
/// is within.
///
/// With one rank the stage copies, and the only error is the rounding of the partial row: `u/(1−u)·|p|` + 2^−134.
pub fn unsplit_bound(ranks: usize, tokens: usize, partial: &[bf16], lse: &[f32]) -> Vec<f64> {
    let rows = tokens * HEADS;
    if ranks == 1 {
        return partial.iter().map(|x| U_BF16 / (1.0 - U_BF16) * f64::from(*x).abs() + ROUNDS_TO_ZERO).collect();
    }
    let mut out = Vec::with_capacity(rows * LATENTS);
    for row in 0..rows {
        let facts = RowFacts::new(ranks, rows, row, lse);
        let eta = ((14.0 * facts.lse_max + 2.0 * ranks as f64 + 13.0) * U_F32).exp_m1();
        let factor = ((1.0 + U_BF16).powi(2) * (1.0 + eta) - 1.0) * (1.0 + eta) / (1.0 - U_BF16);
        for latent in 0..LATENTS {
            let (weighted, flushed) = facts.magnitude(rows, row, latent, partial);
            out.push(factor * weighted + flushed);
        }
    }
    out
}

/// How far a device with approximate `exp2` and reciprocal can be from [`combine`] on the same inputs.
///
/// One absolute bound per element of `expected`, which is [`combine`]'s result. A device whose two operations are
/// correctly rounded has no need of it: it must be equal, bit for bit.
///
/// The exponents are equal on both sides. `e` differs by `5·v` (the device's `4·v`, the reference's `v`, `v` = 2^−24), so
/// does the reciprocal, and every rounding after them can differ by `2·v` because its operands do: for `R` ranks
/// `(2·5 + 5 + 2·(2·R + 1))·v` of Σ `w·|p|` before the last rounding. That rounding can then fall to the other side of a
/// tie: one bf16 unit in the last place more. Flushed subnormals as in [`unsplit_bound`].
pub fn device_bound(ranks: usize, tokens: usize, partial: &[bf16], lse: &[f32], expected: &[bf16]) -> Vec<f64> {
    if ranks == 1 {
        return vec![0.0; expected.len()];
    }
    let rows = tokens * HEADS;
    let factor = (2.0 * (HW_ERROR + 1.0) + (HW_ERROR + 1.0) + 2.0 * (2.0 * ranks as f64 + 1.0)) * U_F32;
    let mut out = Vec::with_capacity(expected.len());
    for row in 0..rows {
        let facts = RowFacts::new(ranks, rows, row, lse);
        for latent in 0..LATENTS {
            let (weighted, flushed) = facts.magnitude(rows, row, latent, partial);
            let before = factor * weighted + flushed;
            let last = if facts.live { ulp(f64::from(expected[row * LATENTS + latent]).abs() + before) } else { 0.0 };
            out.push(before + last);
        }
    }
    out
}

/// The distance between neighbouring bf16 numbers at the magnitude `x` ≥ 0.
fn ulp(x: f64) -> f64 {
    let exponent = libm::ilogb(x).max(-126);
    libm::scalbn(1.0, exponent - 7)
}

/// A place in an array `[tokens][12][512]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Position {
    /// Token of the batch.
    pub token: usize,
    /// Attention head.
    pub head: usize,
    /// Latent within the head's row.
    pub latent: usize,
}

impl Position {
    /// The place of a flat index.
    pub fn of(index: usize) -> Self {
        Self { token: index / (HEADS * LATENTS), head: index / LATENTS % HEADS, latent: index % LATENTS }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "token {}, head {}, latent {}", self.token, self.head, self.latent)
    }
}

/// Two bf16 results side by side.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Comparison {
    /// Elements whose bits differ. Two NaNs count as equal: the bits of a NaN that arithmetic made are unspecified.
    pub different: usize,
    /// The first of them.
    pub first: Option<Position>,
    /// Largest absolute difference; infinite where one side alone is NaN or infinite.
    pub max_abs: f64,
    /// Largest difference in bf16 units in the last place: how many representable numbers lie between, plus one.
    /// `u32::MAX` where one side alone is NaN. ±0 are the same number (but different bits).
    pub max_ulp: u32,
}

impl Comparison {
    /// Whether the two are the same, bit for bit.
    pub fn equal(&self) -> bool {
        self.different == 0
    }
}

/// Compares two results of the shape `[tokens][12][512]`.
///
/// # Panics
///
/// Where the two are not equally long.
pub fn compare(got: &[bf16], expected: &[bf16]) -> Comparison {
    assert_eq!(got.len(), expected.len(), "both results have one shape");
    let mut out = Comparison { different: 0, first: None, max_abs: 0.0, max_ulp: 0 };
    for (i, (a, b)) in got.iter().zip(expected).enumerate() {
        if a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()) {
            continue;
        }
        out.different += 1;
        out.first.get_or_insert(Position::of(i));
        let (abs, ulp) = if a.is_nan() || b.is_nan() {
            (f64::INFINITY, u32::MAX)
        } else {
            ((f64::from(*a) - f64::from(*b)).abs(), ordinal(*a).abs_diff(ordinal(*b)))
        };
        out.max_abs = out.max_abs.max(abs);
        out.max_ulp = out.max_ulp.max(ulp);
    }
    out
}

/// Counts representable numbers from zero, so that neighbours differ by one; ±0 are 0.
fn ordinal(x: bf16) -> i32 {
    let magnitude = i32::from(x.to_bits() & 0x7FFF);
    if x.is_sign_negative() { -magnitude } else { magnitude }
}

/// A result against numbers that it may differ from by a bound.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Deviation {
    /// Largest absolute error; infinite where the result or its expectation alone is NaN.
    pub max_abs: f64,
    /// Largest error as a fraction of its bound: at most 1 for a correct result.
    pub max_ratio: f64,
    /// Where that fraction is; nowhere for an exact result.
    pub worst: Option<Position>,
}

impl Deviation {
    /// Whether every element is within its bound.
    pub fn within(&self) -> bool {
        self.max_ratio <= 1.0
    }
}

/// Measures `got` against `expected`, element by element, in terms of `bound`; all three are `[tokens][12][512]`.
///
/// # Panics
///
/// Where the three are not equally long.
pub fn deviation(got: &[bf16], expected: &[f64], bound: &[f64]) -> Deviation {
    assert!(got.len() == expected.len() && got.len() == bound.len(), "result, expectation and bound have one shape");
    let mut out = Deviation { max_abs: 0.0, max_ratio: 0.0, worst: None };
    for (i, ((a, b), bound)) in got.iter().zip(expected).zip(bound).enumerate() {
        let a = f64::from(*a);
        let error = if a == *b || (a.is_nan() && b.is_nan()) { 0.0 } else { (a - b).abs() };
        let error = if error.is_nan() { f64::INFINITY } else { error };
        let ratio = if error == 0.0 { 0.0 } else { error / bound };
        let ratio = if ratio.is_nan() { f64::INFINITY } else { ratio };
        out.max_abs = out.max_abs.max(error);
        if ratio > out.max_ratio {
            out.max_ratio = ratio;
            out.worst = Some(Position::of(i));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::problem::Problem;
    use super::*;

    const INF: f32 = f32::INFINITY;
    const NAN: f32 = f32::NAN;

    /// One row whose latents all hold the same numbers: `(lse, p)` of each rank in, the result's one number out.
    fn one(ranks: &[(f32, f32)]) -> bf16 {
        let lse: Vec<f32> = ranks.iter().flat_map(|(lse, _)| [*lse; HEADS]).collect();
        let partial: Vec<bf16> =
            ranks.iter().flat_map(|(_, p)| std::iter::repeat_n(bf16::from_f32(*p), HEADS * LATENTS)).collect();
        let out = combine(ranks.len(), 1, &partial, &lse);
        assert!(out.iter().all(|x| x.to_bits() == out[0].to_bits()));
        out[0]
    }

    #[track_caller]
    fn check(ranks: &[(f32, f32)], expected: f32) {
        let got = one(ranks).to_f32();
        assert_eq!(got.to_bits(), expected.to_bits(), "{ranks:?} gives {got}");
    }

    #[test]
    fn equal_lse_gives_the_mean() {
        check(&[(3.5, 1.0), (3.5, 3.0)], 2.0);
        check(&[(-700.0, 1.0), (-700.0, 3.0), (-700.0, 5.0), (-700.0, 7.0)], 4.0);
    }

    #[test]
    fn weights_are_natural_exponentials() {
        // exp(−ln 2) = 1/2, so the weights are 2/3 and 1/3.
        let ln2 = std::f32::consts::LN_2;
        check(&[(0.0, 1.5), (-ln2, 3.0)], 2.0);
        check(&[(5.0 - ln2, 3.0), (5.0, 1.5)], 2.0);
        // ln 3 apart: 3/4 and 1/4.
        check(&[(3f32.ln(), 4.0), (0.0, 8.0)], 5.0);
    }

    #[test]
    fn the_last_rounding_goes_to_even() {
        let step = 1.0 / 128.0;
        check(&[(0.0, 1.0), (0.0, 1.0 + step)], 1.0);
        check(&[(0.0, 1.0 + step), (0.0, 1.0 + 2.0 * step)], 1.0 + 2.0 * step);
    }

    #[test]
    fn product_and_sum_are_rounded_separately() {
        // 2/3 and 1/3 round up in f32, both products to exactly ±2. A fused multiply-add would leave −6e−8.
        check(&[(0.0, 3.0), (-std::f32::consts::LN_2, -6.0)], 0.0);
    }

    #[test]
    fn ranks_are_added_in_ascending_order() {
        // Weights 1/4. Left to right the small ones vanish beside 2^30 one by one; what is left is what comes after.
        let big = 2f32.powi(32);
        check(&[(0.0, big), (0.0, 4.0), (0.0, -big), (0.0, 8.0)], 2.0);
        check(&[(0.0, 4.0), (0.0, big), (0.0, -big), (0.0, 8.0)], 2.0);
        check(&[(0.0, big), (0.0, -big), (0.0, 4.0), (0.0, 8.0)], 3.0);
    }

    #[test]
    fn an_empty_shard_is_not_seen_whatever_it_holds() {
        for lse in [f32::NEG_INFINITY, INF, NAN, -NAN, f32::from_bits(0x7F80_0001)] {
            for garbage in [NAN, INF, -INF, 3e38, 1.0] {
                check(&[(2.0, 1.25), (lse, garbage)], 1.25);
                check(&[(lse, garbage), (2.0, 1.25)], 1.25);
                check(&[(lse, garbage), (2.0, 1.0), (lse, garbage), (2.0, 2.0)], 1.5);
            }
        }
    }

    #[test]
    fn a_row_without_live_shard_is_positive_zero() {
        check(&[(f32::NEG_INFINITY, NAN), (f32::NEG_INFINITY, -INF)], 0.0);
        check(&[(NAN, NAN), (INF, INF), (f32::NEG_INFINITY, -1.0), (NAN, 1.0)], 0.0);
    }

    #[test]
    fn a_weight_that_underflows_takes_its_row_away() {
        // exp(−200) is below the smallest f32; exp(−90) is not, and an infinity under it stays one.
        check(&[(0.0, 1.0), (-200.0, NAN)], 1.0);
        check(&[(0.0, 1.0), (-90.0, INF)], INF);
    }

    #[test]
    fn a_sum_that_starts_at_positive_zero_loses_the_sign() {
        check(&[(0.0, -0.0), (0.0, -0.0)], 0.0);
    }

    #[test]
    fn signed_zero_lse_are_equal() {
        check(&[(0.0, 1.0), (-0.0, 3.0)], 2.0);
    }

    #[test]
    fn a_nan_in_a_live_row_is_passed_on() {
        assert!(one(&[(0.0, NAN), (0.0, 1.0)]).is_nan());
    }

    #[test]
    fn one_rank_is_a_copy_of_the_bits() {
        let partial: Vec<bf16> = (0..HEADS * LATENTS).map(|i| bf16::from_bits(i as u16 ^ 0x7F80)).collect();
        let out = combine(1, 1, &partial, &[]);
        assert!(out.iter().zip(&partial).all(|(a, b)| a.to_bits() == b.to_bits()));
    }

    #[test]
    fn every_element_goes_to_its_own_place() {
        let (ranks, tokens) = (2, 3);
        let rows = tokens * HEADS;
        // The value tells the place; rank 1 is live for odd rows only, rank 0 for even ones.
        let value = |rank: usize, i: usize| bf16::from_bits(0x3F00 + ((i * 7 + i / LATENTS + rank * 31) % 128) as u16);
        let partial: Vec<bf16> = (0..ranks).flat_map(|rank| (0..rows * LATENTS).map(move |i| value(rank, i))).collect();
        let lse: Vec<f32> =
            (0..ranks * rows).map(|i| if i / rows == i % rows % 2 { 1.0 } else { f32::NEG_INFINITY }).collect();
        let out = combine(ranks, tokens, &partial, &lse);
        for (i, x) in out.iter().enumerate() {
            assert_eq!(*x, value(i / LATENTS % 2, i), "{}", Position::of(i));
        }
    }

    #[test]
    fn combined_shards_are_the_unsplit_attention() {
        for (ranks, seed) in [(1, 0), (2, 1), (4, 2), (8, 3), (8, 4), (2, 5)] {
            let p = Problem::new(ranks, 16, seed);
            let out = combine(ranks, p.tokens, &p.partial, &p.lse);
            let bound = unsplit_bound(ranks, p.tokens, &p.partial, &p.lse);
            let d = deviation(&out, &p.unsplit, &bound);
            assert!(d.within(), "ranks {ranks}, seed {seed}: {d:?}");
            // A bound that nothing comes near proves nothing.
            assert!(d.max_ratio > 0.5, "ranks {ranks}, seed {seed}: {d:?}");
            assert!(out[14 * HEADS * LATENTS..].iter().all(|x| x.to_bits() == 0));
        }
    }

    #[test]
    fn the_unsplit_bound_sees_wrong_combinations() {
        let p = Problem::new(4, 8, 6);
        let rows = p.tokens * HEADS;
        let bound = unsplit_bound(4, p.tokens, &p.partial, &p.lse);
        let caught = |partial: &[bf16], lse: &[f32]| {
            !deviation(&combine(4, p.tokens, partial, lse), &p.unsplit, &bound).within()
        };
        assert!(!caught(&p.partial, &p.lse));

        let mut lse = p.lse.clone();
        lse[..rows].fill(f32::NEG_INFINITY);
        assert!(caught(&p.partial, &lse), "a rank left out");

        let mut lse = p.lse.clone();
        lse.rotate_left(rows);
        assert!(caught(&p.partial, &lse), "LSE of the wrong rank");

        let base2: Vec<f32> = p.lse.iter().map(|x| x * LOG2E).collect();
        assert!(caught(&p.partial, &base2), "LSE of the wrong base");

        let mut partial = p.partial.clone();
        partial.rotate_left(1);
        assert!(caught(&partial, &p.lse), "rows off by one latent");

        let truncated: Vec<bf16> = combine(4, p.tokens, &p.partial, &p.lse)
            .iter()
            .map(|x| bf16::from_bits(x.to_bits().saturating_sub(u16::from(x.to_bits() & 0x7FFF != 0) * 2)))
            .collect();
        assert!(!deviation(&truncated, &p.unsplit, &bound).within(), "two units in the last place off");
    }

    #[test]
    fn the_device_bound_admits_approximate_operations_and_little_else() {
        for ranks in [2, 8] {
            let p = Problem::new(ranks, 16, 9);
            let rows = p.tokens * HEADS;
            let expected = combine(ranks, p.tokens, &p.partial, &p.lse);
            let exact: Vec<f64> = expected.iter().map(|x| f64::from(*x)).collect();
            let bound = device_bound(ranks, p.tokens, &p.partial, &p.lse, &expected);

            // A device whose exp2 is always 2^−22 too large and reciprocal 2^−22 too small, written out anew.
            let mut got = Vec::new();
            for row in 0..rows {
                let lse: Vec<f32> = (0..ranks).map(|r| sane(p.lse[r * rows + row])).collect();
                let m = lse.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                let m = if m == f32::NEG_INFINITY { 0.0 } else { m };
                let off = 1.0 + 2f64.powi(-22);
                let e: Vec<f32> = lse.iter().map(|x| (f64::from((x - m) * LOG2E).exp2() * off) as f32).collect();
                let inv = (1.0 / f64::from(e.iter().sum::<f32>()) / off) as f32;
                for latent in 0..LATENTS {
                    let mut acc = 0.0;
                    for (r, e) in e.iter().enumerate().filter(|(_, e)| **e != 0.0) {
                        acc += p.partial[(r * rows + row) * LATENTS + latent].to_f32() * (e * inv);
                    }
                    got.push(bf16::from_f32(acc));
                }
            }
            assert!(deviation(&got, &exact, &bound).within());

            // Two units in the last place are too much where no cancellation widens the bound.
            let off: Vec<bf16> = expected.iter().map(|x| bf16::from_bits(x.to_bits() + 2)).collect();
            assert!(!deviation(&off, &exact, &bound).within());
        }
    }

    #[test]
    fn comparison_counts_places_and_steps() {
        let expected = vec![bf16::ONE; 2 * HEADS * LATENTS];
        assert!(compare(&expected, &expected).equal());

        let mut got = expected.clone();
        let at = (HEADS + 3) * LATENTS + 7;
        got[at] = bf16::from_f32(1.0 - 2.0 / 256.0);
        got[at + 1] = bf16::from_f32(1.0 + 1.0 / 128.0);
        let c = compare(&got, &expected);
        assert_eq!((c.different, c.max_ulp, c.max_abs), (2, 2, 1.0 / 128.0));
        assert_eq!(c.first, Some(Position { token: 1, head: 3, latent: 7 }));
        assert_eq!(c.first.unwrap().to_string(), "token 1, head 3, latent 7");

        let pair = |a: f32, b: f32| compare(&[bf16::from_f32(a)], &[bf16::from_f32(b)]);
        let zeros = pair(0.0, -0.0);
        assert_eq!((zeros.different, zeros.max_ulp, zeros.max_abs), (1, 0, 0.0));
        assert_eq!(pair(f32::from_bits(0x0001_0000), f32::from_bits(0x8001_0000)).max_ulp, 2);
        assert_eq!((pair(NAN, 1.0).max_ulp, pair(NAN, 1.0).max_abs), (u32::MAX, f64::INFINITY));
        assert!(pair(NAN, -NAN).equal());
        assert_eq!(pair(INF, 1.0).max_abs, f64::INFINITY);
    }

    #[test]
    fn deviation_fails_closed() {
        let one = |got: f32, expected: f64, bound: f64| deviation(&[bf16::from_f32(got)], &[expected], &[bound]);
        assert!(one(1.0, 1.0, 0.0).within() && one(1.0, 1.25, 0.25).within());
        assert_eq!(one(1.0, 1.25, 0.5).max_ratio, 0.5);
        for bad in [one(1.0, 1.25, 0.0), one(NAN, 1.0, 1.0), one(1.0, f64::NAN, 1.0), one(1.0, 1.25, f64::NAN)] {
            assert!(!bad.within() && bad.worst.is_some(), "{bad:?}");
        }
        assert!(one(INF, 1.0, 1e9).max_abs.is_infinite() && !one(INF, 1.0, 1e9).within());
    }

    #[test]
    fn ulp_of_bf16() {
        assert_eq!((ulp(1.0), ulp(1.99), ulp(2.0)), (2f64.powi(-7), 2f64.powi(-7), 2f64.powi(-6)));
        assert_eq!((ulp(2f64.powi(-133)), ulp(2f64.powi(-126))), (2f64.powi(-133), 2f64.powi(-133)));
    }
}
