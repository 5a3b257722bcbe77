//! What ranks send each other, and where it lies: one place for the layout of a rank's region.
//!
//! Every rank has a region that all ranks write to. It has two halves; steps of even and of odd epochs take turns. A half is a slot
//! for each (source rank, token, head), source slowest:
//!
//! ```text
//! slot: 1040 bytes, 130 pairs     row of 512 bf16 (1024 bytes, untagged) | (LSE bits, tag) | (0, tag)
//! ```
//!
//! The source stores the row, drains, and puts the LSE with the step's tag ([`Mailbox`]): who sees the tag may load the row.

use lathe_dsl::builder::{Bounded, HEALTH_WORDS, TAG_SLOTS};
use lathe_dsl::ir::MAX_BUFFER_BYTES;
use lathe_dsl::prelude::*;

use super::{HEADS, LATENTS};

/// Bytes of a pair.
const PAIR: u32 = 8;

/// Pairs of a slot before its tagged ones: the row.
pub const ROW_PAIRS: u32 = LATENTS * 2 / PAIR;

/// Pairs of a slot.
pub const SLOT_PAIRS: u32 = ROW_PAIRS + 2;

/// Bytes of a slot.
pub const SLOT: u32 = SLOT_PAIRS * PAIR;

/// The region's number in health records.
const REGION_ID: u32 = 1;

/// What messages to the host call it.
pub const REGION: &str = "cmb";

/// The regions that records may name.
pub const REGIONS: &[(u32, &str)] = &[(REGION_ID, REGION)];

/// The shape of a step's messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Messages {
    /// Ranks.
    pub ranks: u32,
    /// Query tokens.
    pub tokens: u32,
}

impl Messages {
    /// Bytes of one epoch's half of a region.
    pub const fn half(&self) -> u64 {
        self.ranks as u64 * self.tokens as u64 * HEADS as u64 * SLOT as u64
    }

    /// Bytes of a region.
    pub const fn region_bytes(&self) -> u64 {
        2 * self.half()
    }

    /// Bytes from a half's start to the slot of what `source` sends for (token, head).
    pub const fn slot(&self, source: u32, token: u32, head: u32) -> u64 {
        ((source as u64 * self.tokens as u64 + token as u64) * HEADS as u64 + head as u64) * SLOT as u64
    }

    /// First pair of that slot (`cmb_pair`).
    #[track_caller]
    pub fn slot_pair<'k>(&self, source: V<'k, u32>, token: V<'k, u32>, head: V<'k, u32>) -> V<'k, u32> {
        ((source * self.tokens + token) * HEADS + head) * SLOT_PAIRS
    }

    /// Holds the shape against what a region can hold: a half must end below 2^32 bytes.
    ///
    /// # Errors
    /// The most tokens that are allowed.
    pub fn check(&self) -> Result<(), String> {
        if self.half() <= MAX_BUFFER_BYTES {
            return Ok(());
        }
        let most = MAX_BUFFER_BYTES / Self { tokens: 1, ..*self }.half();
        Err(format!(
            "with {} ranks, tokens must be at most {most} (a half of a region ends below 2^32 bytes)",
            self.ranks
        ))
    }
}

/// One step's messages inside a kernel: which regions, which half of them, and the tag.
#[derive(Clone)]
pub struct Exchange<'k> {
    k: &'k Builder<'k>,
    /// Their shape.
    pub messages: Messages,
    /// This rank.
    pub rank: V<'k, u32>,
    /// With the step's tag.
    pub mailbox: Mailbox<'k>,
    peers: Buffer<'k, u64, In>,
    half: V<'k, u64>,
}

/// What a kernel is told of the step: its place among the ranks and in time.
#[derive(Clone, Copy)]
pub struct Step<'k> {
    /// Addresses of all ranks' regions as this device sees them, `[ranks]`.
    pub peers: Buffer<'k, u64, In>,
    /// This rank.
    pub rank: V<'k, u32>,
    /// Slot of the step's tag: the layer.
    pub layer: V<'k, u32>,
    /// Counts steps, `[1]`.
    pub epoch: Buffer<'k, u32, In>,
}

impl<'k> Exchange<'k> {
    /// The messages of a step. Declares `rank` and `layer` to be in range, which the host checks ([`check_step`]).
    #[track_caller]
    pub fn new(k: &'k Builder<'k>, messages: Messages, step: Step<'k>, bounded: Option<Bounded<'k>>) -> Self {
        k.assume(step.rank.lt(messages.ranks));
        k.assume(step.layer.lt(TAG_SLOTS));
        let epoch = k.s_buffer_load::<u32>(step.epoch, 0u32);
        let mailbox = Mailbox::new(k, k.step_tag(epoch, step.layer));
        let mailbox = bounded.map_or(mailbox, |b| mailbox.bounded(b));
        let half = k.step_half(epoch, messages.half());
        Self { k, messages, rank: step.rank, mailbox, peers: step.peers, half }
    }

    /// The half of a rank's region.
    #[track_caller]
    pub fn region(&self, rank: impl Operand<'k, u32>) -> Region<'k> {
        // The table does not change during a launch.
        let words: V<'k, Vector<u32, 2>> = self.k.s_buffer_load(self.peers.cast(), rank.value(self.k) * 2);
        let address = words.bitcast::<u64>() + self.half;
        self.k.message_region(address, self.messages.half() as u32, Cache::SYS, REGION_ID)
    }

    /// The half of this rank's own region.
    #[track_caller]
    pub fn own(&self) -> Region<'k> {
        self.region(self.rank)
    }
}

/// A wait's limit for [`Mailbox::bounded`]: `micros` microseconds, or none of 0.
pub fn bounded<'k>(
    k: &'k Builder<'k>,
    micros: u32,
    health: Buffer<'k, u32, InOut>,
    alarm: Buffer<'k, u32, InOut>,
) -> Option<Bounded<'k>> {
    let limit = k.constant(u64::from(micros) * 1000);
    (micros > 0).then(|| Bounded { limit, health: health.ptr(), alarm: alarm.ptr() })
}

/// Words of the health records of a launch.
pub const fn health_words(ctas: u32) -> u64 {
    ctas as u64 * HEALTH_WORDS as u64
}

/// Checks a launch's `rank` and `layer`, which the kernel takes to be in range.
///
/// # Errors
/// Which is not, and what is allowed.
pub fn check_step(ranks: u32, rank: u32, layer: u32) -> Result<(), String> {
    if rank >= ranks {
        return Err(format!("rank {rank} of {ranks} ranks; allowed are 0 to {}", ranks.saturating_sub(1)));
    }
    if layer >= TAG_SLOTS {
        return Err(format!("layer {layer}; allowed are 0 to {}", TAG_SLOTS - 1));
    }
    Ok(())
}
