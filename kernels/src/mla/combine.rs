//! `mla_combine`: the ranks' partial attention rows, weighted by their log-sum-exp, into one row of bf16 latents.
//!
//! For one (token, head), with partial rows `p[r]` and natural-log LSE `l[r]` of ranks `r = 0, 1, …`:
//!
//! ```text
//! l[r]   = sane(l[r])                          NaN, +inf → −inf
//! m      = maximum over r, −inf → 0
//! e[r]   = exp2((l[r] − m) · log2 e)
//! w[r]   = e[r] = 0 ? 0 : e[r] · rcp(Σ e)      ranks in order; Σ = 0 gives rcp = inf, which no weight sees
//! row[j] = Σ (w[r] = 0 ? 0 : p[r][j]) · w[r]   from 0.0, ranks in order; garbage of an empty rank is never added
//! ```
//!
//! Every operation rounds to f32 on its own (no contraction); rows end as bf16, nearest even. With one rank the row is
//! copied.

use lathe_dsl::ir::MAX_BUFFER_BYTES;
use lathe_dsl::prelude::*;

use super::{CTAS, HEADS, LATENTS, THREADS, TOKENS_A_TASK, Workers, tasks};

/// 1 / ln 2, rounded to f32.
pub const LOG2E: f32 = std::f32::consts::LOG2_E;

/// Words (two latents) of a row.
const ROW: u32 = LATENTS / 2;

/// Words from one LDS row to the next: padded by 16 bytes, so that rows start in different banks.
const LDS_ROW: u32 = ROW + 4;

/// Latents that one thread combines.
const LATENTS_A_THREAD: u32 = 4;

build_key! {
    /// Combines `ranks` partial attention results of `tokens` query tokens.
    pub struct MlaCombine {
        /// Ranks whose partial results are combined.
        ranks: u32 = 8, one_of(1, 2, 4, 8);
        /// Query tokens.
        tokens: u32 = 8, range(1, MAX_TOKENS);
    }
}

/// Most tokens for one rank: `partial` must end below 2^32 bytes.
const MAX_TOKENS: u32 = (MAX_BUFFER_BYTES / (HEADS as u64 * LATENTS as u64 * 2)) as u32;

impl MlaCombine {
    /// (token, head) rows of one rank.
    pub fn rows(&self) -> u64 {
        u64::from(self.tokens) * u64::from(HEADS)
    }
}

kernel_args! {
    /// Arguments of [`MlaCombine`].
    pub struct MlaCombineArgs(key: MlaCombine) {
        /// Partial attention rows, `[ranks][tokens][12][512]`; what an empty rank left there is never used.
        partial: In<bf16>[u64::from(key.ranks) * key.rows() * u64::from(LATENTS)] align 16;
        /// Their log-sum-exp (natural log), `[ranks][tokens][12]`; −inf, NaN and +inf mean an empty rank.
        lse: In<f32>[u64::from(key.ranks) * key.rows()] align 4;
        /// The combined latents, `[tokens][12][512]`.
        latents: Out<bf16>[key.rows() * u64::from(LATENTS)] align 16;
    }
}

impl Kernel for MlaCombine {
    const NAME: &'static str = "mla_combine";
    type Args = MlaCombineArgs;

    fn check(&self) -> Result<(), String> {
        let most = MAX_TOKENS / self.ranks;
        if self.tokens > most {
            return Err(format!(
                "with {} ranks, tokens must be at most {most} (partial rows end below 2^32 bytes)",
                self.ranks
            ));
        }
        Ok(())
    }

    fn launch(&self) -> Launch {
        Launch::linear(tasks(self.tokens, TOKENS_A_TASK).min(CTAS), THREADS)
    }

    fn build<'k>(&self, k: &'k Builder<'k>, args: MlaCombineArgs<Dev<'k>>) {
        let lat = k.lds::<u32>("lat", TOKENS_A_TASK * LDS_ROW);
        Workers::all(k).each_task(k, self.tokens, TOKENS_A_TASK, |_, head, first_token| {
            self.stage_combine(k, &args, lat, head, first_token);
            self.store_latents(k, &args, lat, head, first_token);
        });
    }
}

impl MlaCombine {
    /// Combines the rows of tokens `first_token..first_token + 4` of `head` into LDS; rows past the last token become 0.
    /// Ends with a barrier.
    fn stage_combine<'k>(
        &self,
        k: &'k Builder<'k>,
        args: &MlaCombineArgs<Dev<'k>>,
        lat: V<'k, LdsPtr<u32>>,
        head: V<'k, u32>,
        first_token: V<'k, u32>,
    ) {
        let (row, column) = own_words(k);
        let token = (first_token + row).minimum(self.tokens - 1);
        let source = |rank: u32| (token + rank * self.tokens) * HEADS + head;
        let load =
            |rank: u32| k.buffer_load::<Vector<u32, 2>>(args.partial.cast(), source(rank) * ROW + column).elements();

        let words = if self.ranks == 1 {
            load(0)
        } else {
            let lse: Vec<_> = (0..self.ranks).map(|r| k.buffer_load(args.lse, source(r))).collect();
            combine_ranks(k, &lse, &(0..self.ranks).map(load).collect::<Vec<_>>())
        };
        let live = (first_token + row).lt(self.tokens);
        let words = words.map(|w| live.select(w, 0));
        k.ptr_store(k.vector(words), lat + row * LDS_ROW + column);
        k.barrier();
    }

    /// Stores the LDS rows of tokens `first_token..first_token + 4` of `head`, 16 bytes a thread.
    fn store_latents<'k>(
        &self,
        k: &'k Builder<'k>,
        args: &MlaCombineArgs<Dev<'k>>,
        lat: V<'k, LdsPtr<u32>>,
        head: V<'k, u32>,
        first_token: V<'k, u32>,
    ) {
        let threads_a_row = ROW / 4;
        let thread = k.thread_id(Axis::X);
        let row = thread.div_floor(threads_a_row);
        let column = thread.rem_floor(threads_a_row) * 4;
        let live = thread.lt(TOKENS_A_TASK * threads_a_row) & (first_token + row).lt(self.tokens);
        k.if_(live, || {
            let words = k.ptr_load::<Vector<u32, 4>>(lat + row * LDS_ROW + column);
            let token = (first_token + row).minimum(self.tokens - 1);
            k.buffer_store(words, args.latents.cast(), Bytes(((token * HEADS + head) * ROW + column) * 4));
        });
    }
}

/// Which of a task's tokens a thread works on, and the first of its two words (four latents) of it: thread `t` token `t / 128`,
/// words `2 (t mod 128) ..`.
pub fn own_words<'k>(k: &'k Builder<'k>) -> (V<'k, u32>, V<'k, u32>) {
    let threads_a_row = LATENTS / LATENTS_A_THREAD;
    let thread = k.thread_id(Axis::X);
    (thread.div_floor(threads_a_row), thread.rem_floor(threads_a_row) * 2)
}

/// Two words of each rank's row, weighted by the ranks' LSE (as they came), into two words of bf16 latents.
pub fn combine_ranks<'k>(k: &'k Builder<'k>, lse: &[V<'k, f32>], rows: &[[V<'k, u32>; 2]]) -> [V<'k, u32>; 2] {
    let weights = combine_weights(&lse.iter().map(|l| sane(*l)).collect::<Vec<_>>());
    let sums: [V<'k, f32>; 4] = std::array::from_fn(|j| {
        let latent = |w: &[V<'k, u32>; 2]| if j % 2 == 0 { w[j / 2].bf_lo() } else { w[j / 2].bf_hi() };
        weighted_sum(k, &weights, &rows.iter().map(latent).collect::<Vec<_>>())
    });
    [k.bf16_pair(sums[0], sums[1]), k.bf16_pair(sums[2], sums[3])]
}

/// An LSE that no arithmetic can spoil: NaN and +inf become −inf, the LSE of an empty rank.
pub fn sane(lse: V<'_, f32>) -> V<'_, f32> {
    let bad = lse.ne(lse) | lse.eq(f32::INFINITY);
    bad.select(f32::NEG_INFINITY, lse)
}

/// The weight of every rank from its LSE: 0 for an empty one, all 0 if all are empty.
pub fn combine_weights<'k>(lse: &[V<'k, f32>]) -> Vec<V<'k, f32>> {
    let Some(max) = lse.iter().copied().reduce(|a, b| a.maximum(b)) else { return vec![] };
    let max = max.eq(f32::NEG_INFINITY).select(0.0, max);
    let exp: Vec<_> = lse.iter().map(|l| ((*l - max) * LOG2E).hw_exp2()).collect();
    let mut total = exp[0];
    for e in &exp[1..] {
        total = total + *e;
    }
    let inverse = total.hw_rcp();
    exp.iter().map(|e| e.eq(0.0).select(0.0, *e * inverse)).collect()
}

/// `Σ latents[r] · weights[r]`, ranks in order, from 0.0; a latent of weight 0 counts as 0, whatever it holds.
pub fn weighted_sum<'k>(k: &'k Builder<'k>, weights: &[V<'k, f32>], latents: &[V<'k, f32>]) -> V<'k, f32> {
    weights
        .iter()
        .zip(latents)
        .fold(k.constant(0.0), |sum, (weight, latent)| sum + weight.eq(0.0).select(0.0, *latent) * *weight)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_access_is_provably_in_bounds_and_aligned() {
        use lathe_dsl::facts::Facts;
        use lathe_dsl::ir::Op;
        for (ranks, tokens) in [(1, 1), (1, 349_525), (2, 5), (8, 8), (8, 1000), (8, 43_690)] {
            let kernel = trace(&MlaCombine { ranks, tokens }, Target::GFX950).unwrap();
            let facts = Facts::of(&kernel);
            let mut accesses = 0;
            kernel.walk(&mut |inst| {
                let (buffer, offset, unit, data) = match inst.op {
                    Op::BufferLoad { buffer, offset, unit, .. } => (buffer, offset, unit, inst.results[0]),
                    Op::BufferStore { value, buffer, offset, unit, .. } => (buffer, offset, unit, value),
                    Op::PtrLoad { pointer, .. } => {
                        let data = kernel.ty(inst.results[0]);
                        assert_eq!(facts.lds_align(pointer, data), data.bytes());
                        return;
                    }
                    _ => return,
                };
                accesses += 1;
                let data = kernel.ty(data);
                let at = kernel.location(inst.number);
                assert!(facts.in_bounds(&kernel, buffer, offset, unit, data), "{at} ranks {ranks} tokens {tokens}");
                assert_eq!(facts.buffer_align(&kernel, buffer, offset, unit, data), data.bytes(), "{at}");
            });
            assert_eq!(accesses, if ranks == 1 { 2 } else { 2 * ranks + 1 });
        }
    }

    #[test]
    fn keys_past_the_address_range_are_refused() {
        let error = trace(&MlaCombine { ranks: 8, tokens: 43_691 }, Target::GFX950).unwrap_err();
        assert_eq!(
            error.to_string(),
            "key ranks=8, tokens=43691 is not allowed for `mla_combine`: with 8 ranks, tokens must be at most 43690 \
             (partial rows end below 2^32 bytes)"
        );
    }
}
