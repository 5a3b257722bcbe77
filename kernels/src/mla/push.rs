//! `mla_push`: a rank's partial attention rows to the ranks whose heads they are of.
//!
//! Attention over a rank's shard of the KV cache leaves rows of all ranks' heads: head `12 p + h` belongs to rank `p`. Of each
//! (token, h) one wave sends every rank `p` its row and then its log-sum-exp, into the slot that it has there ([`Messages`]):
//!
//! ```text
//! row   as it is                              16 bytes a logical lane
//! drain
//! LSE   its bits, with the step's tag         of a request without KV rows here, and of rows past the batch: 0xFF800000 (−inf)
//! ```
//!
//! Rows past the batch (token ≥ `qsl[requests]`) are sent too, whatever they hold: they weigh nothing where they arrive.
//!
//! Items `g = 12 token + h` are dealt out as wave `w` of workgroup `b` has `g = (w + waves · i) · ctas + b`, so that a small batch
//! is on as many workgroups as there can be.

use lathe_dsl::builder::Readable;
use lathe_dsl::ir::MAX_BUFFER_BYTES;
use lathe_dsl::prelude::*;

use super::message::{Exchange, Messages, ROW_PAIRS, Step};
use super::{CTAS, HEADS, LATENTS, THREADS, Workers};

/// Logical lanes that copy a row, 16 bytes each.
const LANES: u32 = 64;

/// Bytes of a row.
const ROW: u32 = LATENTS * 2;

/// Bits of −inf.
const EMPTY: u32 = 0xFF80_0000;

/// Most tokens for one rank: `o` must end below 2^32 bytes.
const MAX_TOKENS: u32 = (MAX_BUFFER_BYTES / (HEADS as u64 * LATENTS as u64 * 2)) as u32;

build_key! {
    /// Sends the partial attention rows of `tokens` query tokens, `q` a request, to `ranks` ranks.
    pub struct MlaPush {
        /// Ranks.
        ranks: u32 = 8, one_of(2, 4, 8);
        /// Query tokens.
        tokens: u32 = 8, range(1, MAX_TOKENS);
        /// Query tokens of a request.
        q: u32 = 8, range(1, MAX_TOKENS);
        /// Workgroups.
        ctas: u32 = CTAS, range(1, CTAS);
    }
}

impl MlaPush {
    /// Requests of the batch.
    pub fn requests(&self) -> u32 {
        self.tokens / self.q
    }

    /// The shape of the messages.
    pub fn messages(&self) -> Messages {
        Messages { ranks: self.ranks, tokens: self.tokens }
    }

    fn heads(&self) -> u64 {
        u64::from(self.tokens) * u64::from(self.ranks * HEADS)
    }
}

kernel_args! {
    /// Arguments of [`MlaPush`].
    pub struct MlaPushArgs(key: MlaPush) {
        /// Partial attention rows of all ranks' heads, `[tokens][ranks · 12][512]`.
        o: In<bf16>[key.heads() * u64::from(LATENTS)] align 16;
        /// Their log-sum-exp (natural log), `[tokens][ranks · 12]`.
        lse: In<u32>[key.heads()] align 4;
        /// KV rows that this rank has of each request, `[requests]`.
        seq_lens: In<i32>[u64::from(key.requests())] align 4;
        /// First token of each request and, last, the number of tokens that are no padding: `[requests + 1]`.
        qsl: In<i32>[u64::from(key.requests()) + 1] align 4;
        /// Addresses of all ranks' regions as this device sees them, `[ranks]`; each is a multiple of 16.
        peers: In<u64>[u64::from(key.ranks)] align 8;
        /// This rank.
        rank: Scalar<u32>;
        /// Slot of the step's tag, 0 to 255.
        layer: Scalar<u32>;
        /// Counts steps, `[1]`.
        epoch: In<u32>[1] align 4;
    }
}

impl Kernel for MlaPush {
    const NAME: &'static str = "mla_push";
    type Args = MlaPushArgs;

    fn check(&self) -> Result<(), String> {
        let Self { ranks, tokens, q, .. } = *self;
        if !tokens.is_multiple_of(q) {
            return Err(format!("tokens must be a multiple of q: {tokens} tokens are no whole number of requests"));
        }
        self.messages().check()?;
        let most = MAX_TOKENS / ranks;
        if tokens > most {
            return Err(format!("with {ranks} ranks, tokens must be at most {most} (rows end below 2^32 bytes)"));
        }
        Ok(())
    }

    fn launch(&self) -> Launch {
        Launch::linear(self.ctas, THREADS)
    }

    fn build<'k>(&self, k: &'k Builder<'k>, args: MlaPushArgs<Dev<'k>>) {
        let heads = self.ranks * HEADS;
        let step = Step { peers: args.peers, rank: args.rank, layer: args.layer, epoch: args.epoch };
        let exchange = Exchange::new(k, self.messages(), step, None);
        let push = StagePush {
            o: args.o,
            o_strides: [k.constant(heads * LATENTS), k.constant(LATENTS)],
            lse: args.lse,
            lse_strides: [k.constant(heads), k.constant(1u32)],
            seq_lens: args.seq_lens,
            qsl: args.qsl,
            q: self.q,
        };
        push.all(k, &exchange, Workers::all(k));
    }
}

/// The stage, with what is the same for every item. `A` is how the kernel uses rows and LSE, `B` the tables of requests.
pub struct StagePush<'k, A, B> {
    /// Partial attention rows.
    pub o: Buffer<'k, bf16, A>,
    /// Elements from one token and from one head to the next: multiples of 8; all offsets in elements fit 31 bits, in bytes 32.
    pub o_strides: [V<'k, u32>; 2],
    /// Their log-sum-exp, as bits: a NaN's survive.
    pub lse: Buffer<'k, u32, A>,
    /// As `o_strides`.
    pub lse_strides: [V<'k, u32>; 2],
    /// KV rows of each request.
    pub seq_lens: Buffer<'k, i32, B>,
    /// First token of each request; the last entry is the number of live ones.
    pub qsl: Buffer<'k, i32, B>,
    /// Query tokens of a request: divides the number of tokens.
    pub q: u32,
}

impl<'k, A: Readable, B: Readable> StagePush<'k, A, B> {
    /// Sends all rows, spread over the workgroups. Waits for nobody.
    pub fn all(&self, k: &'k Builder<'k>, exchange: &Exchange<'k>, workers: Workers<'k>) {
        let Workers { index: cta, ctas } = workers;
        let items = exchange.messages.tokens * HEADS;
        let waves = THREADS / k.wave();
        // The drain before the flags is the wave's.
        let wave = k.thread_id(Axis::X).div_floor(k.wave()).uniform();
        let regions: Vec<_> = (0..exchange.messages.ranks).map(|p| exchange.region(p)).collect();
        let first = wave * ctas + cta;
        // Another workgroup's number would be that of somebody else's item.
        let first = if workers.are_all(k) { first } else { cta.ge(ctas).select(items, first) };
        if items <= waves * ctas {
            k.if_(first.lt(items), || self.item(k, exchange, &regions, first));
        } else {
            k.for_range(first, items, waves * ctas, (), |g, ()| self.item(k, exchange, &regions, g));
        }
    }

    /// One (token, head), the same for the whole wave.
    fn item(&self, k: &'k Builder<'k>, exchange: &Exchange<'k>, regions: &[Region<'k>], item: V<'k, u32>) {
        let Messages { ranks, tokens } = exchange.messages;
        let (token, head) = (item.div_floor(HEADS), item.rem_floor(HEADS));
        let slot = exchange.messages.slot_pair(exchange.rank, token, head);
        let lane = k.lanes(LANES).lane_index();
        // All rows are on their way before the first is stored.
        let rows: Vec<_> = (0..ranks)
            .map(|p| {
                let row = token * self.o_strides[0] + (head + p * HEADS) * self.o_strides[1];
                lane.map(|lane| k.buffer_load::<Vector<u32, 4>>(self.o.cast(), Bytes(row * 2 + lane * (ROW / LANES))))
            })
            .collect();
        // Logical lane p is the one that tells rank p. The others' LSE is nobody's.
        let teller = lane.part(0);
        let gh = head + teller.minimum(ranks - 1) * HEADS;
        let lse = k.buffer_load::<u32>(self.lse, token * self.lse_strides[0] + gh * self.lse_strides[1]);
        let live = k.buffer_load::<i32>(self.qsl, tokens / self.q);
        let length = k.buffer_load::<i32>(self.seq_lens, token.div_floor(self.q));
        let empty = length.eq(0) | token.bitcast::<i32>().ge(live);
        let lse = empty.select(EMPTY, lse);
        for (region, row) in regions.iter().zip(&rows) {
            let options = StoreOptions::new().cache(region.cache());
            row.zip(lane, |row, lane| {
                k.buffer_store_with(row, region.buffer(), Bytes(slot * 8 + lane * (ROW / LANES)), options);
                lane
            });
        }
        k.drain(Scope::System);
        for (p, region) in (0u32..).zip(regions) {
            let words = [lse, k.constant(0u32)];
            exchange.mailbox.put_words_where(teller.eq(p), *region, slot + ROW_PAIRS, &words);
        }
    }
}
