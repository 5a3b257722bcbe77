//! `mla_combine_ranks`: the ranks' partial attention rows as [`push`](super::push) sent them, weighted by their log-sum-exp, into one
//! row of bf16 latents. The arithmetic is that of [`combine`](super::combine).
//!
//! A thread waits for the tagged LSE of all ranks, and then loads what it needs of their rows.

use lathe_dsl::builder::Message;
use lathe_dsl::prelude::*;

use super::combine::{combine_ranks, own_words};
use super::message::{Exchange, Messages, ROW_PAIRS, Step, bounded, health_words};
use super::{CTAS, HEADS, LATENTS, THREADS, TOKENS_A_TASK, Workers, tasks};

/// Words (two latents) of a row.
const ROW: u32 = LATENTS / 2;

/// Most tokens for two ranks; what is allowed for more, the region says.
const MAX_TOKENS: u32 = 1 << 18;

build_key! {
    /// Combines what `ranks` ranks have sent of `tokens` query tokens.
    pub struct MlaCombineRanks {
        /// Ranks.
        ranks: u32 = 8, one_of(2, 4, 8);
        /// Query tokens.
        tokens: u32 = 8, range(1, MAX_TOKENS);
        /// Microseconds after which a wait gives up; 0: never.
        wait_us: u32 = 0, range(0, u32::MAX);
    }
}

impl MlaCombineRanks {
    /// The shape of the messages.
    pub fn messages(&self) -> Messages {
        Messages { ranks: self.ranks, tokens: self.tokens }
    }

    /// Workgroups.
    pub fn ctas(&self) -> u32 {
        tasks(self.tokens, TOKENS_A_TASK).min(CTAS)
    }
}

kernel_args! {
    /// Arguments of [`MlaCombineRanks`].
    pub struct MlaCombineRanksArgs(key: MlaCombineRanks) {
        /// Addresses of all ranks' regions as this device sees them, `[ranks]`; the rank's own is read.
        peers: In<u64>[u64::from(key.ranks)] align 8;
        /// This rank.
        rank: Scalar<u32>;
        /// Slot of the step's tag, 0 to 255.
        layer: Scalar<u32>;
        /// Counts steps, `[1]`.
        epoch: In<u32>[1] align 4;
        /// Records of waits that gave up, `[ctas][8]`.
        health: InOut<u32>[health_words(key.ctas())] align 4;
        /// Not 0 after a wait gave up, `[1]`.
        alarm: InOut<u32>[1] align 4;
        /// The combined latents, `[tokens][12][512]`.
        latents: Out<bf16>[u64::from(key.tokens) * u64::from(HEADS * LATENTS)] align 16;
    }
}

impl Kernel for MlaCombineRanks {
    const NAME: &'static str = "mla_combine_ranks";
    type Args = MlaCombineRanksArgs;

    fn check(&self) -> Result<(), String> {
        self.messages().check()
    }

    fn launch(&self) -> Launch {
        Launch::linear(self.ctas(), THREADS)
    }

    fn build<'k>(&self, k: &'k Builder<'k>, args: MlaCombineRanksArgs<Dev<'k>>) {
        let step = Step { peers: args.peers, rank: args.rank, layer: args.layer, epoch: args.epoch };
        let bounded = bounded(k, self.wait_us, args.health, args.alarm);
        let received = Received::new(&Exchange::new(k, self.messages(), step, bounded));
        Workers::all(k).each_task(k, self.tokens, TOKENS_A_TASK, |_, head, first_token| {
            let (row, column) = own_words(k);
            let token = (first_token + row).minimum(self.tokens - 1);
            let words = received.combine(k, head, token, column);
            k.if_((first_token + row).lt(self.tokens), || {
                k.buffer_store(k.vector(words), args.latents.cast(), (token * HEADS + head) * ROW + column);
            });
        });
    }
}

/// The rows that other ranks send to this one.
pub struct Received<'k> {
    messages: Messages,
    mailbox: Mailbox<'k>,
    own: Region<'k>,
}

impl<'k> Received<'k> {
    /// Those of a step.
    #[track_caller]
    pub fn new(exchange: &Exchange<'k>) -> Self {
        Self { messages: exchange.messages, mailbox: exchange.mailbox, own: exchange.own() }
    }

    /// Words `column` and `column + 1` (four latents) of the combined row of (token, head): waits for all ranks' tags, then loads
    /// their rows.
    pub fn combine(
        &self,
        k: &'k Builder<'k>,
        head: V<'k, u32>,
        token: V<'k, u32>,
        column: V<'k, u32>,
    ) -> [V<'k, u32>; 2] {
        let ranks = (0..self.messages.ranks).map(|r| k.constant(r));
        let slots: Vec<_> = ranks.clone().map(|r| self.messages.slot_pair(r, token, head)).collect();
        let flags: Vec<_> = slots
            .iter()
            .zip(ranks)
            .map(|(slot, r)| Message::new(self.own, *slot + ROW_PAIRS, 1).from_rank(r))
            .collect();
        let lse: Vec<_> = self.mailbox.poll(&flags).iter().map(|words| words[0].bitcast::<f32>()).collect();
        let options = LoadOptions::new().cache(self.own.cache());
        let row = |slot: &V<'k, u32>| {
            k.buffer_load_with::<Vector<u32, 2>>(self.own.buffer(), *slot * 2 + column, options).elements()
        };
        combine_ranks(k, &lse, &slots.iter().map(row).collect::<Vec<_>>())
    }
}
