//! A real attention problem for the combine stage: one decode step whose KV cache lies on several ranks.
//!
//! The inputs of `mla_combine` are not random numbers that merely have the right shape. They are what attention itself
//! makes: queries attend to a KV cache of unequal lengths, each rank sees its own shard of that cache, and what the
//! shards return has to add up to the attention over the whole cache, which is computed here too.

use fastrand::Rng;
use half::bf16;

// The family's constants in the host's type for sizes.
pub(super) const HEADS: usize = super::HEADS as usize;
pub(super) const LATENTS: usize = super::LATENTS as usize;
/// Length of a query and of a row of the KV cache: the latents, then the part that carries the rotary position.
const QUERY: usize = LATENTS + 64;
/// KV rows that a rank holds for one token, at most. Short: the stage's work does not depend on it, the host's does.
const KV_MAX: u32 = 6;
/// One in this many tokens is padding at the end of the batch; it has no KV row on any rank.
const PADDING: usize = 8;
/// Every so many tokens, one whose attention is so peaked that whole shards weigh less than the smallest `f32`.
const PEAKED: usize = 5;
/// Factor on the scores of such a token.
const PEAKED_SCALE: f64 = 64.0;

/// One decode step of multi-head latent attention, split over ranks: the inputs of `mla_combine` and the answer.
///
/// Each token is a request with a KV cache of its own, which all heads share, as in MLA; the values are the first
/// 512 numbers of each cache row. Queries and cache are random multiples of 1/64 in [−2, 2), exact in bf16;
/// scores and softmax are `f64`. Arrays are row-major, the last dimension dense.
///
/// Every problem of two or more ranks has, by its shape and not by luck: unequal KV lengths; from two tokens on a
/// token with an empty rank; from five tokens on one whose weights underflow `f32` for most seeds; from eight tokens
/// on padding tokens, all of whose ranks are empty.
#[derive(Clone, Debug)]
pub struct Problem {
    /// Ranks that share the KV cache.
    pub ranks: usize,
    /// Tokens of the batch, padding included.
    pub tokens: usize,
    /// Attention heads: 12 where the fields say so, of all ranks in a problem that has them all.
    pub heads: usize,
    /// KV rows held, `[ranks][tokens]`.
    pub kv_len: Vec<u32>,
    /// Each shard's attention, normalised by the shard's own softmax sum, rounded to nearest even:
    /// `[ranks][tokens][12][512]`.
    ///
    /// With two or more ranks, rows of empty shards hold garbage on purpose (NaN, ±∞, any bits), since the stage must
    /// keep it out of the result. With one rank they are zero: the stage then copies, and nothing would remove garbage.
    pub partial: Vec<bf16>,
    /// Natural logarithm of each shard's softmax sum, `[ranks][tokens][12]`.
    ///
    /// −∞ for an empty shard or, with two or more ranks, NaN or +∞ in its place now and then: the stage takes all three
    /// as −∞.
    pub lse: Vec<f32>,
    /// Attention over the whole KV cache, never split: `[tokens][12][512]`. Zero for padding tokens.
    pub unsplit: Vec<f64>,
}

impl Problem {
    /// Makes the problem of `seed`; the same seed gives the same bits on every platform.
    ///
    /// Takes some 50 µs and, for 8 ranks, 150 KB a token. Sizes are those of a checked build key: with no ranks or no
    /// tokens the arrays are empty.
    pub fn new(ranks: usize, tokens: usize, seed: u64) -> Self {
        Self::with_heads(HEADS, ranks, tokens, seed)
    }

    /// As [`Problem::new`], of so many heads.
    pub fn with_heads(heads: usize, ranks: usize, tokens: usize, seed: u64) -> Self {
        let mut problem = Self {
            ranks,
            tokens,
            heads,
            kv_len: vec![0; ranks * tokens],
            partial: vec![bf16::ZERO; ranks * tokens * heads * LATENTS],
            lse: vec![f32::NEG_INFINITY; ranks * tokens * heads],
            unsplit: vec![0.0; tokens * heads * LATENTS],
        };
        let mut rng = Rng::with_seed(seed);
        for token in 0..tokens {
            problem.fill_token(&mut rng, token);
        }
        problem
    }

    /// The problem of heads `first` to `first + 12` alone: what one of the ranks combines.
    pub fn of_heads(&self, first: usize) -> Self {
        let heads = first..first + HEADS;
        let rows = |all: usize| (0..all).flat_map(|row| heads.clone().map(move |head| row * self.heads + head));
        let of_row = |row: usize| row * LATENTS..(row + 1) * LATENTS;
        Self {
            heads: HEADS,
            kv_len: self.kv_len.clone(),
            partial: rows(self.ranks * self.tokens).flat_map(|row| &self.partial[of_row(row)]).copied().collect(),
            lse: rows(self.ranks * self.tokens).map(|row| self.lse[row]).collect(),
            unsplit: rows(self.tokens).flat_map(|row| &self.unsplit[of_row(row)]).copied().collect(),
            ..*self
        }
    }

    /// Whether this token is padding: no rank holds a KV row of it.
    pub fn is_padding(&self, token: usize) -> bool {
        token >= self.tokens - self.tokens / PADDING
    }

    /// Zeros in place of the garbage in empty shards' rows, for a stage whose contract that is.
    pub fn clear_empty_shards(&mut self) {
        for (rows, length) in self.partial.chunks_mut(self.heads * LATENTS).zip(&self.kv_len) {
            if *length == 0 {
                rows.fill(bf16::ZERO);
            }
        }
    }

    fn fill_token(&mut self, rng: &mut Rng, token: usize) {
        let lengths = self.kv_lengths(rng, token);
        let total = lengths.iter().sum::<u32>() as usize;
        let cache: Vec<f64> = random_values(rng, total * QUERY);
        let scale = if token % PEAKED == PEAKED - 1 { PEAKED_SCALE } else { 1.0 } / (QUERY as f64).sqrt();

        for head in 0..self.heads {
            let query = random_values(rng, QUERY);
            let scores: Vec<f64> = cache.chunks_exact(QUERY).map(|key| scale * dot(&query, key)).collect();

            if let Some((row, _)) = softmax_rows(&scores, &cache) {
                let at = (token * self.heads + head) * LATENTS;
                self.unsplit[at..at + LATENTS].copy_from_slice(&row);
            }

            let mut first = 0;
            for (rank, &length) in lengths.iter().enumerate() {
                let shard = first..first + length as usize;
                first = shard.end;
                let slot = (rank * self.tokens + token) * self.heads + head;
                let out = &mut self.partial[slot * LATENTS..(slot + 1) * LATENTS];
                match softmax_rows(&scores[shard.clone()], &cache[shard.start * QUERY..shard.end * QUERY]) {
                    Some((row, lse)) => {
                        for (out, x) in out.iter_mut().zip(row) {
                            *out = bf16::from_f64(x);
                        }
                        self.lse[slot] = lse as f32;
                    }
                    None if self.ranks > 1 => {
                        fill_garbage(rng, out);
                        self.lse[slot] = empty_lse(rng, slot);
                    }
                    None => {}
                }
            }
        }
        for (rank, length) in lengths.into_iter().enumerate() {
            self.kv_len[rank * self.tokens + token] = length;
        }
    }

    /// KV rows a rank holds for `token`, one number a rank.
    fn kv_lengths(&self, rng: &mut Rng, token: usize) -> Vec<u32> {
        if self.is_padding(token) {
            return vec![0; self.ranks];
        }
        let mut lengths: Vec<u32> = (0..self.ranks).map(|_| rng.u32(1..=KV_MAX)).collect();
        if self.ranks > 1 {
            let home = rng.usize(0..self.ranks);
            // Of four tokens, one has rows on all ranks, one lacks a rank for sure, two leave it to chance.
            match token % 4 {
                0 => {}
                1 => lengths[(home + 1) % self.ranks] = 0,
                _ => {
                    for (rank, length) in lengths.iter_mut().enumerate() {
                        if rank != home && rng.u32(0..4) == 0 {
                            *length = 0;
                        }
                    }
                }
            }
            // Unequal for sure.
            let next = (home + 1) % self.ranks;
            if lengths[next] == lengths[home] {
                lengths[home] = lengths[home] % KV_MAX + 1;
            }
        }
        lengths
    }
}

/// Uniform on the 256 multiples of 1/64 in [−2, 2).
fn random_values(rng: &mut Rng, count: usize) -> Vec<f64> {
    let mut bytes = vec![0; count];
    rng.fill(&mut bytes);
    bytes.into_iter().map(|b| f64::from(b as i8) / 64.0).collect()
}

/// Four interleaved sums, so that the compiler may keep them in vector registers.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; 4];
    for (a, b) in a.chunks_exact(4).zip(b.chunks_exact(4)) {
        for i in 0..4 {
            sums[i] += a[i] * b[i];
        }
    }
    (sums[0] + sums[1]) + (sums[2] + sums[3])
}

/// Softmax-weighted sum of the cache's rows (their first [`LATENTS`] numbers), and the natural logarithm of the softmax
/// sum; nothing where there is no row. `cache` is `[scores.len()][QUERY]`.
fn softmax_rows(scores: &[f64], cache: &[f64]) -> Option<(Vec<f64>, f64)> {
    let max = scores.iter().copied().reduce(f64::max)?;
    let mut sum = 0.0;
    let mut row = vec![0.0; LATENTS];
    for (&score, values) in scores.iter().zip(cache.chunks_exact(QUERY)) {
        // libm's, not the platform's: the same bits everywhere.
        let weight = libm::exp(score - max);
        sum += weight;
        for (out, &value) in row.iter_mut().zip(values) {
            *out += weight * value;
        }
    }
    for out in &mut row {
        *out /= sum;
    }
    Some((row, max + libm::log(sum)))
}

/// What may lie in memory that nobody wrote: any bits, with the values that do most harm among them.
fn fill_garbage(rng: &mut Rng, row: &mut [bf16]) {
    let worst = [bf16::NAN, bf16::INFINITY, bf16::NEG_INFINITY, bf16::MAX, bf16::from_bits(0xFF81)];
    for x in row {
        *x = if rng.bool() { worst[rng.usize(0..worst.len())] } else { bf16::from_bits(rng.u16(..)) };
    }
}

/// The LSE of an empty shard, in each of the forms that count as empty.
fn empty_lse(rng: &mut Rng, slot: usize) -> f32 {
    match slot % 4 {
        0 | 1 => f32::NEG_INFINITY,
        2 => f32::INFINITY,
        // A NaN of either sign, quiet or signalling, with any payload but the one that would make it an infinity.
        _ => f32::from_bits(rng.u32(..) | 0x7F80_0001),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(x: &[bf16]) -> Vec<u16> {
        x.iter().map(|x| x.to_bits()).collect()
    }

    #[test]
    fn a_seed_names_one_problem() {
        let (a, b, c) = (Problem::new(4, 9, 7), Problem::new(4, 9, 7), Problem::new(4, 9, 8));
        assert_eq!(bits(&a.partial), bits(&b.partial));
        assert_eq!(a.kv_len, b.kv_len);
        assert!(a.lse.iter().zip(&b.lse).all(|(a, b)| a.to_bits() == b.to_bits()));
        assert_eq!(a.unsplit, b.unsplit);
        assert_ne!(bits(&a.partial), bits(&c.partial));
    }

    #[test]
    fn the_promised_shapes_are_there_for_every_seed() {
        for seed in 0..8 {
            for ranks in [2, 4, 8] {
                let p = Problem::new(ranks, 8, seed);
                let lengths = |token| (0..ranks).map(|rank| p.kv_len[rank * 8 + token]).collect::<Vec<_>>();
                for token in 0..7 {
                    let lengths = lengths(token);
                    assert!(!p.is_padding(token) && lengths.iter().any(|&l| l > 0));
                    assert!(lengths.iter().any(|&l| l != lengths[0]), "token {token}: {lengths:?}");
                }
                assert!(lengths(0).iter().all(|&l| l > 0));
                assert!(lengths(1).contains(&0));
                assert!(p.is_padding(7) && lengths(7).iter().all(|&l| l == 0));
            }
        }
    }

    #[test]
    fn empty_shards_are_garbage_that_says_so_and_others_are_finite() {
        let p = Problem::new(8, 32, 1);
        let mut forms = [0; 3];
        for (slot, &lse) in p.lse.iter().enumerate() {
            let row = &p.partial[slot * LATENTS..(slot + 1) * LATENTS];
            if p.kv_len[slot / HEADS] > 0 {
                assert!(lse.is_finite() && row.iter().all(|x| x.is_finite()));
            } else {
                assert!(lse.is_nan() || lse.is_infinite());
                forms[if lse.is_nan() { 0 } else { 1 + usize::from(lse > 0.0) }] += 1;
                assert!(row.iter().any(|x| x.is_nan()));
            }
        }
        assert!(forms.iter().all(|&n| n > 0), "{forms:?}");
    }

    #[test]
    fn heads_of_a_rank_are_a_problem_of_their_own() {
        let all = Problem::with_heads(2 * HEADS, 2, 9, 4);
        for first in [0, HEADS] {
            let own = all.of_heads(first);
            assert_eq!((own.heads, &own.kv_len), (HEADS, &all.kv_len));
            assert_eq!((own.partial.len(), own.unsplit.len()), (2 * 9 * HEADS * LATENTS, 9 * HEADS * LATENTS));
            for rank in 0..2 {
                let (row, from) = ((rank * 9 + 5) * HEADS + 7, (rank * 9 + 5) * 2 * HEADS + first + 7);
                assert_eq!(own.lse[row].to_bits(), all.lse[from].to_bits());
                let of = |row: usize| row * LATENTS..(row + 1) * LATENTS;
                assert_eq!(bits(&own.partial[of(row)]), bits(&all.partial[of(from)]));
            }
            assert_eq!(own.unsplit[(5 * HEADS + 7) * LATENTS], all.unsplit[(5 * 2 * HEADS + first + 7) * LATENTS]);
        }
    }

    #[test]
    fn one_rank_holds_the_rounded_attention() {
        let p = Problem::new(1, 17, 3);
        for (i, (&x, &exact)) in p.partial.iter().zip(&p.unsplit).enumerate() {
            assert_eq!(x.to_bits(), bf16::from_f64(exact).to_bits(), "{i}");
        }
        assert!(!p.is_padding(14) && p.is_padding(15) && p.is_padding(16));
        assert!(p.partial[15 * HEADS * LATENTS..].iter().all(|x| x.to_bits() == 0));
    }

    #[test]
    fn softmax_of_known_scores() {
        // Two rows, the second three times as heavy as the first.
        let mut cache = vec![0.0; 2 * QUERY];
        (cache[0], cache[QUERY], cache[QUERY + 511]) = (1.0, 2.0, 4.0);
        // Behind the latents: seen by scores, never by values.
        cache[QUERY + 512] = 1e9;
        let (row, lse) = softmax_rows(&[1.0, 1.0 + 3f64.ln()], &cache).unwrap();
        assert!((row[0] - 1.75).abs() < 1e-15 && (row[511] - 3.0).abs() < 1e-15 && row[1] == 0.0);
        assert!((lse - (1.0 + 4f64.ln())).abs() < 1e-15);
        assert_eq!(row.len(), LATENTS);
        assert!(softmax_rows(&[], &[]).is_none());
    }

    #[test]
    fn peaked_tokens_have_shards_that_underflow() {
        let p = Problem::new(8, 20, 0);
        let underflows = (0..p.tokens * HEADS).filter(|slot| {
            let lse: Vec<f32> = (0..8).map(|r| p.lse[r * p.tokens * HEADS + slot]).filter(|l| l.is_finite()).collect();
            let max = lse.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            lse.iter().any(|l| l - max < -104.0)
        });
        assert!(underflows.count() > 0);
    }
}
