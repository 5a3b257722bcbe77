//! `mla_combine_splits`: the partial attention rows that one rank's splits of a KV cache left, weighted by their log-sum-exp, into one
//! row of bf16 latents.
//!
//! The splits are divided among the requests in order, `per` each; a request has `q` tokens in a row. For one (token, head), with the
//! request's partial rows `p[i]` and natural-log LSE `l[i]`, in a logical wave of 64 lanes that has split `lane + 64 k` in round `k`:
//!
//! ```text
//! l[i]   = sane(l[i])                     NaN, +inf → −inf
//! m      = maximum over k in a lane, then over lanes (32, 16, 8, 4, 2, 1 apart); −inf → 0
//! e[i]   = exp2((l[i] − m) · log2 e)
//! Σ      = e over k in a lane, then over lanes likewise
//! w[i]   = e[i] · (Σ = 0 ? 0 : rcp(Σ))
//! ```
//!
//! A task has `tc` tokens, one of 1, 2, 4, and `8 / tc` parts of the workgroup for each. Part `n` adds `p[i] · w[i]` from 0.0 over
//! `i = n, n + parts, …` in order; then the upper half of the parts is added to the lower, until one is left. Every operation rounds
//! to f32 on its own; rows end as bf16, nearest even. An empty split's rows must be finite: it has weight 0, but is not left out.

use lathe_dsl::builder::Readable;
use lathe_dsl::ir::MAX_BUFFER_BYTES;
use lathe_dsl::prelude::*;

use super::combine::{LOG2E, sane};
use super::{CTAS, HEADS, LATENTS, THREADS, Workers, ctok, tasks};

/// Lanes of a logical wave, which has a whole row: 8 latents a lane.
const LANES: u32 = 64;
const EACH: u32 = LATENTS / LANES;

/// Logical waves of a workgroup.
pub(super) const WAVES: u32 = THREADS / LANES;

/// Bytes of a row.
const ROW: u32 = LATENTS * 2;

/// Rows whose loads a thread has under way.
const AHEAD: u32 = 8;

/// Most splits of a request: their weights are in LDS.
const MAX_SPLITS: u32 = 2048;

/// Most splits times tokens: `partial` must end below 2^32 bytes.
const MAX_ROWS: u32 = (MAX_BUFFER_BYTES / (HEADS as u64 * LATENTS as u64 * 2)) as u32;

build_key! {
    /// Combines the partial attention results of `splits` splits for `tokens` query tokens, `q` a request.
    pub struct MlaCombineSplits {
        /// Splits of all requests together.
        splits: u32 = 128, range(2, MAX_ROWS);
        /// Query tokens.
        tokens: u32 = 8, range(1, MAX_ROWS);
        /// Query tokens of a request.
        q: u32 = 8, range(1, MAX_ROWS);
    }
}

impl MlaCombineSplits {
    /// Splits of a request.
    pub fn per_request(&self) -> u32 {
        self.splits / (self.tokens / self.q)
    }

    /// Tokens of a task, of one request; 0 for a key that is not allowed.
    pub fn tokens_a_task(&self) -> u32 {
        ctok(self.tokens, self.q, self.splits, CTAS).unwrap_or(0)
    }
}

kernel_args! {
    /// Arguments of [`MlaCombineSplits`].
    pub struct MlaCombineSplitsArgs(key: MlaCombineSplits) {
        /// Partial attention rows, `[splits][tokens][12][512]`; those of a token's own request are read. An empty split's must be
        /// finite.
        partial: In<bf16>[u64::from(key.splits) * u64::from(key.tokens) * u64::from(HEADS * LATENTS)] align 16;
        /// Their log-sum-exp (natural log), `[splits][tokens][12]`; −inf, NaN and +inf mean an empty split.
        lse: In<f32>[u64::from(key.splits) * u64::from(key.tokens) * u64::from(HEADS)] align 4;
        /// The combined latents, `[tokens][12][512]`.
        latents: Out<bf16>[u64::from(key.tokens) * u64::from(HEADS * LATENTS)] align 16;
    }
}

impl Kernel for MlaCombineSplits {
    const NAME: &'static str = "mla_combine_splits";
    type Args = MlaCombineSplitsArgs;

    fn check(&self) -> Result<(), String> {
        check_splits(self.splits, self.tokens, self.q)?;
        Ok(())
    }

    fn launch(&self) -> Launch {
        Launch::linear(tasks(self.tokens, self.tokens_a_task()).min(CTAS), THREADS)
    }

    fn build<'k>(&self, k: &'k Builder<'k>, args: MlaCombineSplitsArgs<Dev<'k>>) {
        let tc = self.tokens_a_task();
        let shape = SplitShape { tokens: self.tokens, q: self.q, per: self.per_request(), tc };
        let stage = StageSplits::new(k, shape, args.partial, args.lse, Cache::OWN);
        Workers::all(k).each_task(k, self.tokens, tc, |_, head, first_token| {
            let (token, words) = stage.combine(head, first_token);
            k.if_(stage.part.eq(0), || {
                let row = (token * HEADS + head) * ROW;
                k.buffer_store(k.vector(words), args.latents.cast(), Bytes(row + stage.lane * (EACH * 2)));
            });
        });
    }
}

/// Whether requests of `q` tokens each can be combined of so many splits.
pub(super) fn check_splits(splits: u32, tokens: u32, q: u32) -> Result<(), String> {
    if !tokens.is_multiple_of(q) {
        return Err(format!("tokens must be a multiple of q: {tokens} tokens are no whole number of requests"));
    }
    let requests = tokens / q;
    if !splits.is_multiple_of(requests) {
        return Err(format!("splits must be a multiple of the {requests} requests (tokens / q)"));
    }
    let per = splits / requests;
    if ctok(tokens, q, splits, CTAS).is_none() {
        let factor = WAVES >> q.trailing_zeros().min(2);
        return Err(format!(
            "a request has {per} splits (splits · q / tokens); with q = {q} that must be a multiple of {factor}"
        ));
    }
    if per > MAX_SPLITS {
        return Err(format!("a request has {per} splits (splits · q / tokens), at most {MAX_SPLITS} are allowed"));
    }
    if splits > MAX_ROWS / tokens {
        let most = MAX_ROWS / tokens;
        return Err(format!("with {tokens} tokens, splits must be at most {most} (partial rows end below 2^32 bytes)"));
    }
    Ok(())
}

/// The numbers of a key that the stage depends on.
#[derive(Clone, Copy)]
pub(super) struct SplitShape {
    /// Query tokens, those of a request, splits of a request, tokens of a task.
    pub tokens: u32,
    pub q: u32,
    pub per: u32,
    pub tc: u32,
}

impl SplitShape {
    /// Parts of the workgroup for each token.
    fn parts(self) -> u32 {
        WAVES / self.tc
    }

    /// Weights of a token in LDS: every lane has one in each round.
    fn weights_a_token(self) -> u32 {
        self.per.next_multiple_of(LANES)
    }

    /// The first split of a token's request.
    pub fn first_split(self, token: V<'_, u32>) -> V<'_, u32> {
        token.div_floor(self.q) * self.per
    }
}

/// The stage, with what is the same for every task. `A` is how the kernel uses the partial rows and LSE.
pub(super) struct StageSplits<'k, A> {
    k: &'k Builder<'k>,
    shape: SplitShape,
    partial: Buffer<'k, bf16, A>,
    lse: Buffer<'k, f32, A>,
    cache: Cache,
    parts: u32,
    /// `[tc][weights_a_token]`.
    weights: V<'k, LdsPtr<f32>>,
    /// Half of the parts' sums, `[parts / 2][tc][512]`.
    exchange: V<'k, LdsPtr<f32>>,
    /// Which of the task's tokens the thread works on, in which part, and which 8 latents.
    pub row: V<'k, u32>,
    pub part: V<'k, u32>,
    pub lane: V<'k, u32>,
}

impl<'k, A: Readable> StageSplits<'k, A> {
    /// Rows are `[splits][tokens][12][512]`, LSE `[splits][tokens][12]`, both loaded with `cache`.
    pub fn new(
        k: &'k Builder<'k>,
        shape: SplitShape,
        partial: Buffer<'k, bf16, A>,
        lse: Buffer<'k, f32, A>,
        cache: Cache,
    ) -> Self {
        let (tc, parts) = (shape.tc, shape.parts());
        let thread = k.thread_id(Axis::X);
        let wave = thread.div_floor(LANES).uniform();
        Self {
            k,
            shape,
            partial,
            lse,
            cache,
            parts,
            weights: k.lds("weights", tc * shape.weights_a_token()),
            exchange: k.lds("exchange", parts / 2 * tc * LATENTS),
            row: wave.rem_floor(tc),
            part: wave.div_floor(tc),
            lane: thread.rem_floor(LANES),
        }
    }

    /// The thread's token, and its 8 latents of it as bf16: whole in part 0 alone.
    pub fn combine(&self, head: V<'k, u32>, first_token: V<'k, u32>) -> (V<'k, u32>, [V<'k, u32>; 4]) {
        let k = self.k;
        let first_split = self.shape.first_split(first_token);
        // As many waves as tokens; of waves of 32 lanes, each stands for a logical one.
        let wave = k.thread_id(Axis::X).div_floor(k.wave()).uniform();
        k.if_(wave.lt(self.shape.tc), || self.weigh(wave, head, first_token + wave, first_split));
        k.barrier();
        let token = first_token + self.row;
        let sums = self.reduce(self.part_sums(head, token, first_split));
        (token, std::array::from_fn(|i| k.bf16_pair(sums[2 * i], sums[2 * i + 1])))
    }

    /// Leaves the weights of token number `row` of the task in LDS.
    fn weigh(&self, row: V<'k, u32>, head: V<'k, u32>, token: V<'k, u32>, first_split: V<'k, u32>) {
        const DISTANCES: [u32; 6] = [32, 16, 8, 4, 2, 1];
        let (k, per) = (self.k, self.shape.per);
        let lanes = k.lanes(LANES).lane_index();
        let lse: Vec<Grouped<'k, f32>> = (0..per)
            .step_by(LANES as usize)
            .map(|first| {
                lanes.map(|lane| {
                    let i = lane + first;
                    let split = first_split + i.minimum(per - 1);
                    let place = (split * self.shape.tokens + token) * HEADS + head;
                    let lse = sane(k.buffer_load_with(self.lse, place, LoadOptions::new().cache(self.cache)));
                    if first + LANES <= per { lse } else { i.lt(per).select(lse, f32::NEG_INFINITY) }
                })
            })
            .collect();
        let mut max = lse[0];
        for more in &lse[1..] {
            max = max.zip(*more, |a, b| a.maximum(b));
        }
        let max = max.butterfly(DISTANCES, ButterflyOp::Maximum).map(|m| m.eq(f32::NEG_INFINITY).select(0.0, m));
        let exp: Vec<_> = lse.iter().map(|l| l.zip(max, |l, m| ((l - m) * LOG2E).hw_exp2())).collect();
        let mut total = exp[0];
        for more in &exp[1..] {
            total = total.zip(*more, |a, b| a + b);
        }
        let total = total.butterfly(DISTANCES, ButterflyOp::Add);
        let inverse = total.map(|t| t.eq(0.0).select(0.0, t.hw_rcp()));
        for (first, exp) in (0..per).step_by(LANES as usize).zip(exp) {
            let weights = exp.zip(inverse, |e, inverse| e * inverse);
            for part in 0..lanes.group().parts() {
                let at = row * self.shape.weights_a_token() + (lanes.part(part) + first);
                k.ptr_store(weights.part(part), self.weights + at);
            }
        }
    }

    /// The sum of the part's weighted rows.
    fn part_sums(&self, head: V<'k, u32>, token: V<'k, u32>, first_split: V<'k, u32>) -> [V<'k, f32>; 8] {
        let k = self.k;
        let row = ((first_split + self.part) * self.shape.tokens + token) * HEADS + head;
        let first = row * ROW + self.lane * (EACH * 2);
        let weight = self.weights + (self.row * self.shape.weights_a_token() + self.part);
        let apart = self.parts * self.shape.tokens * HEADS * ROW;
        let add = |sums: [V<'k, f32>; 8], from: V<'k, u32>, count: u32| {
            let rows: Vec<_> = (0..count)
                .map(|i| {
                    let options = LoadOptions::new().soffset((from + i) * apart).cache(self.cache);
                    k.buffer_load_with::<Vector<u32, 4>>(self.partial.cast(), Bytes(first), options).elements()
                })
                .collect();
            (0..count).zip(rows).fold(sums, |sums, (i, words)| {
                let weight = k.ptr_load::<f32>(weight + (from + i) * self.parts);
                std::array::from_fn(|j| {
                    let word = words[j / 2];
                    sums[j] + if j % 2 == 0 { word.bf_lo() } else { word.bf_hi() } * weight
                })
            })
        };
        let rows = self.shape.per / self.parts;
        let sums = [k.constant(0.0f32); 8];
        let whole = rows - rows % AHEAD;
        let sums = match whole {
            0 => sums,
            _ => k.for_range(0u32, whole, AHEAD, sums, |from, sums| add(sums, from, AHEAD)),
        };
        add(sums, k.constant(whole), rows % AHEAD)
    }

    /// The sum over all parts, in part 0.
    fn reduce(&self, mut sums: [V<'k, f32>; 8]) -> [V<'k, f32>; 8] {
        let k = self.k;
        let place = |part: V<'k, u32>| {
            let at = part * (self.shape.tc * LATENTS) + self.row * LATENTS + self.lane * EACH;
            [self.exchange + at, self.exchange + at + 4]
        };
        let mut half = self.parts / 2;
        while half > 0 {
            let gives = self.part.ge(half) & self.part.lt(2 * half);
            k.if_(gives, || {
                let halves = [[sums[0], sums[1], sums[2], sums[3]], [sums[4], sums[5], sums[6], sums[7]]];
                for (to, four) in place(self.part - half).into_iter().zip(halves) {
                    k.ptr_store(k.vector(four), to);
                }
            });
            k.barrier();
            let sum = || {
                let given: Vec<_> =
                    place(self.part).into_iter().flat_map(|p| k.ptr_load::<Vector<f32, 4>>(p).elements()).collect();
                std::array::from_fn(|i| sums[i] + given[i])
            };
            sums = k.if_else(self.part.lt(half), sum, || sums);
            half /= 2;
            if half > 0 {
                k.barrier(); // The sums are read before the next ones overwrite them.
            }
        }
        sums
    }
}
