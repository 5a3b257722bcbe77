//! `mla_post`: the whole tail of a multi-head latent attention layer in one launch, from the partial attention rows to the gated
//! values: what [`combine`](super::combine), [`splits`](super::splits) and [`uv`] do, the latents between them in LDS alone.
//!
//! ```text
//! ranks             every rank pushes its partial rows and LSE    to the ranks whose heads they are of
//!                   latents = combine_ranks(rows, LSE)            of all ranks, each waited for
//! rank 1            latents = o                                   one rank holds the whole cache
//! rank 1, splits    latents = combine_splits(o, lse)              its attention left one partial row a split
//! then              core    = bf16(f32(bf16(W_UV · mxfp4(latents))) · gate)
//! ```
//!
//! With ranks every rank launches the kernel for its own heads; the launches wait for each other, so all their workgroups must be
//! resident at once.
//!
//! A workgroup takes tasks: a head and a few tokens. The loads of W_UV and the gates are under way while the latents are combined.
//! The stages are functions of [`Post`], so that a kernel with more to do can have them in its own launch; [`Hooks`] say what goes
//! between.

mod args;
mod error;
mod seat;
mod view;

use std::sync::Arc;

use lathe_dsl::builder::Writable;
use lathe_dsl::ir::MAX_BUFFER_BYTES;
use lathe_dsl::prelude::*;
use lathe_runtime::Error;
use lathe_runtime::device::Stream;
use lathe_runtime::jit::Compiled;

pub use args::{MlaPostArgs, Tensors};
pub use error::{ArgsError, StepError};
pub use seat::Seat;
pub use view::View;

use super::combine::own_words;
use super::latents::QuantisedLatents;
use super::message::{Exchange, Messages, Step, bounded};
use super::push::StagePush;
use super::ranks::Received;
use super::splits::{SplitShape, StageSplits, check_splits};
use super::uv::{Loads, StageUv, Weights};
use super::{CTAS, HEADS, THREADS, Workers, ctok, tasks, uv};

build_key! {
    /// From partial attention rows of `tokens` query tokens to gated values.
    pub struct MlaPost {
        /// Ranks whose partial results are combined.
        ranks: u32 = 8, one_of(1, 2, 4, 8);
        /// Query tokens; none of them, no launch.
        tokens: u32 = 8, range(0, MAX_TOKENS);
        /// Query tokens of a request.
        q: u32 = 8, range(1, MAX_TOKENS);
        /// Splits of all requests together, of a rank that is alone; 0 if its attention is whole.
        splits: u32 = 0, range(0, MAX_TOKENS);
        /// Workgroups of the launch; 0 stands for as many as have work, at most 256.
        ctas: u32 = 0, range(0, CTAS);
        /// Microseconds after which a wait for another rank gives up; 0: never.
        wait_us: u32 = 0, range(0, u32::MAX);
    }
}

/// Most tokens: `core` must end below 2^32 bytes.
const MAX_TOKENS: u32 = (MAX_BUFFER_BYTES / (uv::ROW as u64 * 2)) as u32;

impl MlaPost {
    /// Requests of the batch; 0 for a key that is not allowed.
    pub fn requests(&self) -> u32 {
        self.tokens.checked_div(self.q).unwrap_or(0)
    }

    /// Splits of a request; 0 without splits.
    pub fn per_request(&self) -> u32 {
        self.splits.checked_div(self.requests()).unwrap_or(0)
    }

    /// Tokens of a task; 0 for a key that is not allowed.
    pub fn tokens_a_task(&self) -> u32 {
        let ctas = if self.ctas == 0 { CTAS } else { self.ctas };
        ctok(self.tokens, self.q, self.splits, ctas).unwrap_or(0)
    }

    /// Workgroups of the launch.
    pub fn ctas(&self) -> u32 {
        let tasks = tasks(self.tokens, self.tokens_a_task().max(1));
        // A row to be pushed is a wave's work, and goes on its way soonest if the wave has a workgroup to itself.
        let rows = if self.ranks > 1 { self.tokens.saturating_mul(HEADS) } else { 0 };
        match (self.tokens, self.ctas) {
            (0, _) => 0,
            (_, 0) => tasks.max(rows).min(CTAS),
            (_, ctas) => ctas,
        }
    }

    /// Heads whose attention this rank has: those of all ranks.
    pub fn heads(&self) -> u32 {
        self.ranks * HEADS
    }

    /// The shape of what ranks send each other.
    pub fn messages(&self) -> Messages {
        Messages { ranks: self.ranks, tokens: self.tokens }
    }
}

impl Kernel for MlaPost {
    const NAME: &'static str = "mla_post";
    type Args = MlaPostArgs;

    fn check(&self) -> Result<(), String> {
        let Self { ranks, tokens, q, splits, .. } = *self;
        if !tokens.is_multiple_of(q) {
            return Err(format!("tokens must be a multiple of q: {tokens} tokens are no whole number of requests"));
        }
        if ranks > 1 && splits > 0 {
            return Err(format!("splits are of a rank that is alone, not of {ranks} ranks"));
        }
        if ranks > 1 {
            self.messages().check()?;
        }
        if splits > 0 && tokens > 0 { check_splits(splits, tokens, q) } else { Ok(()) }
    }

    fn launch(&self) -> Launch {
        Launch::linear(self.ctas(), THREADS)
    }

    fn build<'k>(&self, k: &'k Builder<'k>, args: MlaPostArgs<Dev<'k>>) {
        if self.tokens == 0 {
            return;
        }
        let inputs = args.inputs(k, self);
        let post = Post::new(k, *self, inputs, args.core, Hooks::default());
        post.stage_push(Workers::all(k));
        post.combine_tasks(Workers::all(k), |_| {});
    }
}

/// Gives a launch of `key`'s kernel to `stream`. That of another rank is to be given, too, without waiting for this one:
/// [`Group`](lathe_runtime::device::Group) does that for the ranks of one process, and counts what ranks on one GPU need together,
/// of which this call does not know.
///
/// # Errors
/// [`Error::NotCoResident`] if not all workgroups are resident at once, which ranks rely on; as [`Compiled::launch_on`].
pub fn mla_post(
    key: &MlaPost,
    compiled: &Arc<Compiled>,
    stream: &Stream,
    args: &MlaPostArgs<Host<'_>>,
) -> Result<(), Error> {
    if key.ranks > 1 {
        stream.device().co_resident(compiled, u64::from(key.ctas()))?;
    }
    compiled.launch_on::<MlaPost>(stream, args)
}

/// What the stages read, as a kernel sees it: [`MlaPostArgs::inputs`] makes it of a kernel's own arguments.
pub struct Inputs<'k> {
    /// Attention rows; with splits `[splits][tokens][12][512]`.
    pub o: Buffer<'k, bf16, InOut>,
    /// Without splits: elements from a token's rows to the next one's, and from a head's.
    pub o_strides: [V<'k, u32>; 2],
    /// The log-sum-exp of splits or of a rank's rows.
    pub lse: Lse<'k>,
    /// Rows of the KV cache of each request.
    pub seq_lens: Buffer<'k, i32, In>,
    /// First query token of each request, then the number of those that are no padding.
    pub qsl: Buffer<'k, i32, In>,
    /// W_UV.
    pub weights: Weights<'k, InOut>,
    /// Gates, `[tokens][12 · 128]`.
    pub gate: Buffer<'k, bf16, In>,
}

/// Log-sum-exp of partial rows.
pub enum Lse<'k> {
    /// There are no partial rows.
    None,
    /// Of splits, `[splits][tokens][12]`.
    Splits(Buffer<'k, f32, InOut>),
    /// Of a rank's rows.
    Ranks {
        /// As bits.
        bits: Buffer<'k, u32, InOut>,
        /// Elements from a token's to the next one's, and from a head's.
        strides: [V<'k, u32>; 2],
        /// The step's messages.
        exchange: Exchange<'k>,
    },
}

/// What a kernel that has the stages in its own launch puts between them.
#[derive(Clone, Copy, Default)]
pub struct Hooks<'h, 'k> {
    /// Waits for the partial rows and LSE of splits, which are made in the same launch (`ardy`) and stored with [`Cache::DEV`].
    pub ready: Option<Ready<'h, 'k>>,
    /// How `core` is stored (`core_cm`): [`Cache::DEV`] if other workgroups of the launch read it.
    pub core_cache: Cache,
}

/// How to wait for splits: see [`Hooks::ready`].
#[derive(Clone, Copy)]
pub struct Ready<'h, 'k> {
    /// Heads that one flag stands for (`ht`), a divisor of 12.
    pub heads: u32,
    /// Waits for flag number `split · (12 / heads) + head / heads`, a thread each; threads that have none do not come to it. The
    /// workgroup's barrier follows.
    pub wait: &'h dyn Fn(V<'k, u32>),
}

/// The stages, with what is the same for every task. `C` is how the kernel uses `core`.
pub struct Post<'h, 'k, C> {
    k: &'k Builder<'k>,
    key: MlaPost,
    o: Buffer<'k, bf16, InOut>,
    o_strides: [V<'k, u32>; 2],
    latents: QuantisedLatents<'k>,
    source: Source<'k>,
    uv: StageUv<'k, InOut, C>,
    ready: Option<Ready<'h, 'k>>,
}

/// Where latents come from.
enum Source<'k> {
    /// They are there.
    Whole,
    Splits(Box<StageSplits<'k, InOut>>),
    Ranks(Box<Ranks<'k>>),
}

/// The stages of ranks.
struct Ranks<'k> {
    exchange: Exchange<'k>,
    push: StagePush<'k, InOut, In>,
    received: Received<'k>,
}

impl<'h, 'k, C: Writable> Post<'h, 'k, C> {
    /// Reserves the stages' LDS. `core` is `[tokens][12 · 128]`. The key must be allowed and have tokens, and the workgroup 512
    /// threads.
    pub fn new(
        k: &'k Builder<'k>,
        key: MlaPost,
        inputs: Inputs<'k>,
        core: Buffer<'k, bf16, C>,
        hooks: Hooks<'h, 'k>,
    ) -> Self {
        let Inputs { o, o_strides, lse, seq_lens, qsl, weights, gate } = inputs;
        let MlaPost { tokens, q, .. } = key;
        let tc = key.tokens_a_task();
        let shape = SplitShape { tokens, q, per: key.per_request(), tc };
        let latents = QuantisedLatents::new(k, tc);
        let uv = StageUv { k, tokens, latents, weights, gate, core, cache: hooks.core_cache };
        // What this launch makes is looked for where its maker left it.
        let cache = if hooks.ready.is_some() { Cache::DEV } else { Cache::OWN };
        let source = match lse {
            Lse::None => Source::Whole,
            Lse::Splits(lse) => Source::Splits(Box::new(StageSplits::new(k, shape, o, lse, cache))),
            Lse::Ranks { bits, strides, exchange } => {
                let push = StagePush { o, o_strides, lse: bits, lse_strides: strides, seq_lens, qsl, q };
                let received = Received::new(&exchange);
                Source::Ranks(Box::new(Ranks { exchange, push, received }))
            }
        };
        Self { k, key, o, o_strides, latents, source, uv, ready: hooks.ready }
    }

    /// Sends this rank's rows to the ranks whose heads they are of; waits for nobody. Nothing to do for a rank that is alone.
    pub fn stage_push(&self, workers: Workers<'k>) {
        if let Source::Ranks(ranks) = &self.source {
            ranks.push.all(self.k, &ranks.exchange, workers);
        }
    }

    /// All tasks, spread over `workers`: combined latents, then values. `done` gets a task's number when its rows of `core` are
    /// stored, by all threads of the workgroup; who tells others must wait for the stores first.
    pub fn combine_tasks(&self, workers: Workers<'k>, done: impl Fn(V<'k, u32>)) {
        workers.each_task(self.k, self.key.tokens, self.latents.tokens(), |task, head, first_token| {
            let ahead = self.wv_loads(head, first_token);
            self.stage_combine(head, first_token);
            self.stage_uv(head, first_token, ahead);
            done(task);
        });
    }

    /// The loads of a task that do not wait for latents.
    pub fn wv_loads(&self, head: V<'k, u32>, first_token: V<'k, u32>) -> Option<Loads<'k>> {
        self.uv.wv_loads(head, first_token)
    }

    /// Leaves a task's latents in LDS. Ends with a barrier.
    pub fn stage_combine(&self, head: V<'k, u32>, first_token: V<'k, u32>) {
        match &self.source {
            Source::Whole => self.copy(head, first_token),
            Source::Splits(stage) => self.combine_splits(stage, head, first_token),
            Source::Ranks(ranks) => self.combine_ranks(&ranks.received, head, first_token),
        }
        self.k.barrier();
    }

    fn combine_ranks(&self, received: &Received<'k>, head: V<'k, u32>, first_token: V<'k, u32>) {
        let (row, word) = own_words(self.k);
        let token = (first_token + row).minimum(self.key.tokens - 1);
        let words = received.combine(self.k, head, token, word);
        self.latents.put(self.k, row, word, words);
    }

    fn combine_splits(&self, stage: &StageSplits<'k, InOut>, head: V<'k, u32>, first_token: V<'k, u32>) {
        if let Some(ready) = self.ready {
            self.wait_for_splits(ready, head, first_token);
        }
        let (_, words) = stage.combine(head, first_token);
        self.k.if_(stage.part.eq(0), || self.latents.put_eight(self.k, stage.row, stage.lane * 4, words));
    }

    /// Waits until all splits of the task's request are there.
    fn wait_for_splits(&self, ready: Ready<'h, 'k>, head: V<'k, u32>, first_token: V<'k, u32>) {
        let (k, per) = (self.k, self.key.per_request());
        let first_split = first_token.div_floor(self.key.q) * per;
        for first in (0..per).step_by(THREADS as usize) {
            let split = k.thread_id(Axis::X) + first;
            let flag = (first_split + split) * (HEADS / ready.heads) + head.div_floor(ready.heads);
            k.if_(split.lt(per), || (ready.wait)(flag));
        }
        k.barrier();
    }

    /// A rank that is alone: its rows are the latents.
    fn copy(&self, head: V<'k, u32>, first_token: V<'k, u32>) {
        let k = self.k;
        let (row, word) = own_words(k);
        let token = (first_token + row).minimum(self.key.tokens - 1);
        let [of_token, of_head] = self.o_strides;
        let element = token * of_token + head * of_head + word * 2;
        let words = k.buffer_load::<Vector<u32, 2>>(self.o.cast(), Bytes(element * 2));
        self.latents.put(k, row, word, words.elements());
    }

    /// A task's latents times W_UV and the gates, to `core`. A barrier must have come after the latents.
    pub fn stage_uv(&self, head: V<'k, u32>, first_token: V<'k, u32>, ahead: Option<Loads<'k>>) {
        self.uv.stage_uv(head, first_token, ahead);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn key(tokens: u32, q: u32, splits: u32) -> MlaPost {
        MlaPost { ranks: 1, tokens, q, splits, ctas: 0, wait_us: 0 }
    }

    #[test]
    fn keys_that_cannot_be_are_refused() {
        for (key, words) in [
            (key(8, 3, 0), "tokens must be a multiple of q: 8 tokens are no whole number of requests"),
            (key(8, 4, 9), "splits must be a multiple of the 2 requests (tokens / q)"),
            (key(8, 8, 3), "a request has 3 splits (splits · q / tokens); with q = 8 that must be a multiple of 2"),
            (key(6, 6, 10), "a request has 10 splits (splits · q / tokens); with q = 6 that must be a multiple of 4"),
            (key(1024, 512, 1024), "with 1024 tokens, splits must be at most 341"),
            (MlaPost { ctas: 257, ..key(8, 8, 0) }, "ctas=257"),
            (MlaPost { ranks: 3, ..key(8, 8, 0) }, "ranks=3"),
            (MlaPost { ranks: 2, ..key(8, 8, 2) }, "splits are of a rank that is alone, not of 2 ranks"),
            (MlaPost { ranks: 8, ..key(50_000, 1, 0) }, "with 8 ranks, tokens must be at most 43018"),
        ] {
            let error = trace(&key, Target::GFX950).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn a_launch_has_as_many_workgroups_as_have_work() {
        let ctas = |key: MlaPost| (key.tokens_a_task(), key.ctas());
        assert_eq!(ctas(key(0, 8, 0)), (4, 0));
        assert_eq!(ctas(key(8, 8, 0)), (4, 24));
        assert_eq!(ctas(key(8, 8, 128)), (1, 96));
        assert_eq!(ctas(key(64, 64, 64)), (4, 192));
        assert_eq!(ctas(key(128, 1, 0)), (4, 256));
        assert_eq!(ctas(MlaPost { ranks: 8, ..key(8, 8, 0) }), (4, 96));
        assert_eq!(ctas(MlaPost { ranks: 2, ..key(64, 8, 0) }), (4, 256));
        // Fewer workgroups, larger tasks.
        assert_eq!(ctas(MlaPost { ctas: 50, ..key(8, 8, 128) }), (2, 50));
        assert_eq!(ctas(MlaPost { ctas: 5, ..key(8, 8, 128) }), (4, 5));
    }

    /// Of batches of whole tasks: which rows of another one are live is asked at run time. So it is asked which waves push a row, and
    /// of regions, whose addresses are loaded, neither extent nor alignment is known.
    #[test]
    fn what_is_not_masked_is_provably_in_bounds_and_aligned() {
        use lathe_dsl::facts::Facts;
        use lathe_dsl::ir::Op;
        for key in [key(1, 1, 0), key(8, 8, 0), key(MAX_TOKENS / 64 / 4 * 4, 1, 0), key(8, 8, 128)] {
            let kernel = trace(&key, Target::GFX950).unwrap();
            let facts = Facts::of(&kernel);
            kernel.walk(&mut |inst| {
                let (buffer, offset, unit, data) = match inst.op {
                    Op::BufferLoad { buffer, offset, unit, scalar: None, mask: None, .. } => {
                        (buffer, offset, unit, inst.results[0])
                    }
                    Op::BufferStore { value, buffer, offset, unit, mask: None, .. } => (buffer, offset, unit, value),
                    _ => return,
                };
                let (at, data) = (kernel.location(inst.number), kernel.ty(data));
                assert_eq!(facts.buffer_align(&kernel, buffer, offset, unit, data), data.bytes(), "{key:?} {at}");
                if buffer.index() < kernel.params.len() {
                    assert!(facts.in_bounds(&kernel, buffer, offset, unit, data), "{key:?} {at}");
                }
            });
        }
    }
}
