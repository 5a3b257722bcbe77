//! What `mla_combine_splits` must compute, in plain Rust.

use half::bf16;
use lathe_dsl::numerics::{hw_exp2, hw_rcp, maximum};

use super::super::problem::{HEADS, LATENTS};
use super::super::splits::MlaCombineSplits;
use super::{LOG2E, sane};

/// Lanes of a logical wave.
const LANES: usize = 64;
/// Logical waves of a workgroup.
const WAVES: usize = 8;

/// The stage for one batch: `partial` is `[splits][tokens][12][512]`, `lse` `[splits][tokens][12]`, the result
/// `[tokens][12][512]`.
///
/// All arithmetic is `f32`, each operation rounded to nearest even, in the order that [`super::super::splits`] states. Bounds of
/// it are those of [`combine`](super::combine) for as many ranks as a request has splits: they do not depend on the order of a
/// sum.
///
/// # Panics
///
/// Where a slice is shorter or longer than these shapes say.
pub fn combine_splits(key: &MlaCombineSplits, partial: &[bf16], lse: &[f32]) -> Vec<bf16> {
    combine_splits_in_tasks(key, key.tokens_a_task(), partial, lse)
}

/// As [`combine_splits`], with so many tokens a task: that decides on the order of the sums.
pub(super) fn combine_splits_in_tasks(key: &MlaCombineSplits, tc: u32, partial: &[bf16], lse: &[f32]) -> Vec<bf16> {
    let [q, per] = [key.q, key.per_request()].map(|n| n as usize);
    combine_from(key, tc, (key.splits, partial, lse), |row| row / HEADS / q * per)
}

/// As [`combine_splits`], with so many tokens a task, of rows that are each token's own request's alone: with `n` splits a request,
/// `partial` is `[n][tokens][12][512]` and `lse` `[n][tokens][12]`.
///
/// # Panics
///
/// Where a slice is shorter or longer than these shapes say.
pub fn combine_own_splits(key: &MlaCombineSplits, tc: u32, partial: &[bf16], lse: &[f32]) -> Vec<bf16> {
    combine_from(key, tc, (key.per_request(), partial, lse), |_| 0)
}

/// Of so many splits, of which those of a row (of all heads of all tokens) begin with split `first` of it.
fn combine_from(
    key: &MlaCombineSplits,
    tc: u32,
    (splits, partial, lse): (u32, &[bf16], &[f32]),
    first: impl Fn(usize) -> usize,
) -> Vec<bf16> {
    let [splits, tokens, per] = [splits, key.tokens, key.per_request()].map(|n| n as usize);
    let parts = WAVES / tc as usize;
    let rows = tokens * HEADS;
    assert_eq!(partial.len(), splits * rows * LATENTS, "partial is [{splits}][{tokens}][{HEADS}][{LATENTS}]");
    assert_eq!(lse.len(), splits * rows, "lse is [{splits}][{tokens}][{HEADS}]");

    let mut out = Vec::with_capacity(rows * LATENTS);
    for row in 0..rows {
        let first = first(row);
        let of_split = |i: usize| (first + i) * rows + row;
        let weights = split_weights(&(0..per).map(|i| lse[of_split(i)]).collect::<Vec<_>>());
        for latent in 0..LATENTS {
            let mut sums: Vec<f32> = (0..parts)
                .map(|part| {
                    let of_part = (part..per).step_by(parts);
                    of_part.fold(0.0, |sum, i| sum + partial[of_split(i) * LATENTS + latent].to_f32() * weights[i])
                })
                .collect();
            while sums.len() > 1 {
                let upper = sums.split_off(sums.len() / 2);
                sums.iter_mut().zip(upper).for_each(|(sum, more)| *sum += more);
            }
            out.push(bf16::from_f32(sums[0]));
        }
    }
    out
}

/// Each split's weight from its LSE.
fn split_weights(lse: &[f32]) -> Vec<f32> {
    let of_lane = |values: &[f32], op: fn(f32, f32) -> f32| {
        let lane = |lane: usize| values.iter().skip(lane).step_by(LANES).copied().reduce(op).unwrap_or(f32::NAN);
        butterfly((0..LANES).map(lane).collect(), op)
    };
    let mut lse: Vec<f32> = lse.iter().map(|x| sane(*x)).collect();
    let splits = lse.len();
    lse.resize(splits.next_multiple_of(LANES), f32::NEG_INFINITY);
    let m = of_lane(&lse, maximum);
    let m = if m == f32::NEG_INFINITY { 0.0 } else { m };
    let e: Vec<f32> = lse.iter().map(|x| hw_exp2((x - m) * LOG2E)).collect();
    let total = of_lane(&e, |a, b| a + b);
    let inverse = if total == 0.0 { 0.0 } else { hw_rcp(total) };
    e.iter().take(splits).map(|e| e * inverse).collect()
}

/// What every lane has after `op` with the lanes 32, 16, 8, 4, 2 and 1 apart: all the same.
fn butterfly(mut lanes: Vec<f32>, op: fn(f32, f32) -> f32) -> f32 {
    for distance in [32, 16, 8, 4, 2, 1] {
        lanes = (0..LANES).map(|lane| op(lanes[lane], lanes[lane ^ distance])).collect();
    }
    lanes[0]
}

#[cfg(test)]
mod tests {
    use super::super::super::problem::Problem;
    use super::super::{combine, deviation, unsplit_bound};
    use super::*;

    const KEY: MlaCombineSplits = MlaCombineSplits { splits: 16, tokens: 4, q: 2 };

    #[test]
    fn weights_of_known_lse() {
        assert_eq!(split_weights(&[2.0; 4]), [0.25; 4]);
        assert_eq!(split_weights(&[f32::NAN, -700.0, f32::INFINITY, f32::NEG_INFINITY]), [0.0, 1.0, 0.0, 0.0]);
        assert_eq!(split_weights(&[f32::NEG_INFINITY; 70]), [0.0; 70]);
        assert_eq!(split_weights(&[1.0; 128]), [1.0 / 128.0; 128]);
        // Lane 36 has splits 36 and 100.
        let mut lse = [f32::NEG_INFINITY; 128];
        (lse[36], lse[100], lse[3]) = (5.0, 5.0, 5.0 + std::f32::consts::LN_2);
        let weights = split_weights(&lse);
        assert!((weights[3] - 0.5).abs() < 1e-6 && (weights[36] - 0.25).abs() < 1e-6 && weights[36] == weights[100]);
    }

    #[test]
    fn a_token_sees_the_splits_of_its_own_request() {
        // Split s of token t has rows of s + 1, and there is one live split for each request: 3 and 8 + 5.
        let rows = 4 * HEADS;
        let partial: Vec<bf16> =
            (0..16 * rows * LATENTS).map(|i| bf16::from_f32((i / (rows * LATENTS) + 1) as f32)).collect();
        let live = |i: usize| [3, 13].contains(&(i / rows));
        let lse: Vec<f32> = (0..16 * rows).map(|i| if live(i) { 1.0 } else { f32::NEG_INFINITY }).collect();
        let out = combine_splits(&KEY, &partial, &lse);
        for (i, x) in out.iter().enumerate() {
            assert_eq!(x.to_f32(), if i / (HEADS * LATENTS) < 2 { 4.0 } else { 14.0 }, "{i}");
        }
    }

    #[test]
    fn splits_of_one_request_are_the_unsplit_attention() {
        for (splits, seed) in [(8, 1), (100, 2)] {
            let mut p = Problem::new(splits, 8, seed);
            p.clear_empty_shards();
            let key = MlaCombineSplits { splits: splits as u32, tokens: 8, q: 8 };
            let out = combine_splits(&key, &p.partial, &p.lse);
            let bound = unsplit_bound(splits, 8, &p.partial, &p.lse);
            let d = deviation(&out, &p.unsplit, &bound);
            assert!(d.within() && d.max_ratio > 0.3, "{splits}: {d:?}");
            // The order of the sums shows, but in last places alone.
            let other = combine(splits, 8, &p.partial, &p.lse);
            assert!(deviation(&other, &p.unsplit, &bound).within());
        }
    }

    #[test]
    fn rows_among_others_and_on_their_own_give_the_same() {
        let rows = 4 * HEADS;
        let value = |i: usize| bf16::from_f32((i * 37 % 251) as f32 / 8.0 - 15.0);
        let partial: Vec<bf16> = (0..16 * rows * LATENTS).map(value).collect();
        let lse: Vec<f32> = (0..16 * rows).map(|i| (i * 13 % 17) as f32 / 4.0).collect();
        // The splits of tokens 0 and 1 are the first eight, those of the others the rest.
        let (half, mut own, mut own_lse) = (rows / 2, vec![], vec![]);
        for i in 0..8 {
            for (split, row) in [(i, 0), (8 + i, half)] {
                let at = split * rows + row;
                own.extend_from_slice(&partial[at * LATENTS..(at + half) * LATENTS]);
                own_lse.extend_from_slice(&lse[at..at + half]);
            }
        }
        let all = combine_splits(&KEY, &partial, &lse);
        let own = combine_own_splits(&KEY, KEY.tokens_a_task(), &own, &own_lse);
        assert!(all.iter().zip(&own).all(|(a, b)| a.to_bits() == b.to_bits()));
        assert!(all.iter().any(|x| x.to_f32() != 0.0));
    }

    #[test]
    fn all_empty_requests_are_zero() {
        let n = 16 * 4 * HEADS;
        let out = combine_splits(&KEY, &vec![bf16::ONE; n * LATENTS], &vec![f32::NAN; n]);
        assert!(out.iter().all(|x| x.to_bits() == 0));
    }
}
