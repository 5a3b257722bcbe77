//! Messages between workgroups and devices: words that arrive together with the tag that says whose step they belong to.

use super::Builder;
use super::buffer::{Buffer, Extent};
use super::element::{Element, Plain, Vector};
use super::options::{LoadOptions, StoreOptions};
use super::pointer::GlobalPtr;
use super::value::{Operand, V};
use crate::ir::{Axis, Cache, Coherence, Memory, Order, Scope};
use crate::kernel::InOut;
use crate::target::Arch;

/// Most messages that one round of polling loads.
pub const POLL_MAX: usize = 12;

/// Slots of a step: tags of one epoch.
pub const TAG_SLOTS: u32 = 256;

/// Epochs until tags come again.
pub const TAG_EPOCHS: u32 = 1 << 22;

/// Words of a workgroup's health record.
pub const HEALTH_WORDS: u32 = 8;

/// What a waiting time in a health record counts, in nanoseconds.
pub const WAITED_UNIT_NS: u64 = 1024;

/// Source of a message in a health record that has none.
pub const NO_SOURCE: u32 = u32::MAX;

/// The tag of a step as the host computes it: `(epoch mod 2^22) · 256 + slot + 1`, never 0. `slot` is below [`TAG_SLOTS`].
pub const fn step_tag_of(epoch: u32, slot: u32) -> u32 {
    epoch % TAG_EPOCHS * TAG_SLOTS + slot + 1
}

/// Memory that messages lie in, an array of pairs of 8 bytes: on this device, on another one, or of the host.
#[derive(Clone, Copy)]
pub struct Region<'k> {
    buffer: Buffer<'k, u64, InOut>,
    cache: Cache,
    id: u32,
}

impl<'k> Region<'k> {
    /// Its memory, as elements of any type, for rows that go untagged before a tagged pair; to be accessed with [`Region::cache`].
    pub fn buffer<T: Element + Plain>(self) -> Buffer<'k, T, InOut> {
        self.buffer.cast()
    }

    /// The cache behaviour that makes its data visible where it is read.
    pub fn cache(self) -> Cache {
        self.cache
    }
}

/// Pairs to be waited for.
#[derive(Clone, Copy)]
pub struct Message<'k> {
    region: Region<'k>,
    pair: V<'k, u32>,
    pairs: u32,
    source: Option<V<'k, u32>>,
}

impl<'k> Message<'k> {
    /// `pairs` pairs from number `pair` of a region on.
    pub fn new(region: Region<'k>, pair: V<'k, u32>, pairs: u32) -> Self {
        Self { region, pair, pairs, source: None }
    }

    /// Named in the health record: the rank that the message comes from.
    #[must_use]
    pub fn from_rank(self, source: V<'k, u32>) -> Self {
        Self { source: Some(source), ..self }
    }
}

/// How long a wait may take, and who is told of one that took longer.
#[derive(Clone, Copy)]
pub struct Bounded<'k> {
    /// Nanoseconds.
    pub limit: V<'k, u64>,
    /// A record of [`HEALTH_WORDS`] words for each workgroup.
    pub health: V<'k, GlobalPtr<u32>>,
    /// A word that becomes 1.
    pub alarm: V<'k, GlobalPtr<u32>>,
}

/// A step's tag, and what is done with it: `(word, tag)` pairs are put by one side and polled by the other.
///
/// A pair is stored at once and read at once, so a word whose tag is right is the word of this step. Tags of other steps differ
/// ([`Builder::step_tag`]) and 0 is none, so nothing is cleared between steps.
#[derive(Clone, Copy)]
pub struct Mailbox<'k> {
    k: &'k Builder<'k>,
    tag: V<'k, u32>,
    bounded: Option<Bounded<'k>>,
}

impl<'k> Builder<'k> {
    /// `bytes` bytes of messages at an address that is a multiple of 8 and the same in all lanes of the wave; `cache` is
    /// [`Cache::DEV`] for memory that only this device uses, else [`Cache::SYS`]. `id` names the region in health records.
    #[track_caller]
    pub fn message_region(
        &'k self,
        address: impl Operand<'k, u64>,
        bytes: impl Extent<'k>,
        cache: Cache,
        id: u32,
    ) -> Region<'k> {
        if cache.coherence == Coherence::Own {
            self.refuse("messages in memory that caches may hide; allowed are Cache::DEV and Cache::SYS".to_owned());
        }
        Region { buffer: self.make_buffer(address, bytes), cache, id }
    }

    /// The tag of a step: `(epoch mod 2^22) · 256 + slot + 1` ([`step_tag_of`]). `slot` is below [`TAG_SLOTS`].
    #[track_caller]
    pub fn step_tag(&'k self, epoch: impl Operand<'k, u32>, slot: impl Operand<'k, u32>) -> V<'k, u32> {
        (epoch.value(self) & (TAG_EPOCHS - 1)) * TAG_SLOTS + slot.value(self) + 1
    }

    /// Where in a double-buffered region an epoch's half begins: bytes, `(epoch mod 2) · half`. Who is one step ahead writes the
    /// other half; who were two ahead would overwrite what is still read, and cannot be, because every step waits for all others.
    #[track_caller]
    pub fn step_half(&'k self, epoch: impl Operand<'k, u32>, half: u64) -> V<'k, u64> {
        (epoch.value(self) & 1).to::<u64>() * half
    }
}

impl<'k> Mailbox<'k> {
    /// For a step's tag ([`Builder::step_tag`]); its waits end when what they wait for has come.
    pub fn new(k: &'k Builder<'k>, tag: V<'k, u32>) -> Self {
        Self { k, tag, bounded: None }
    }

    /// With waits that give up. The kernel then goes on with whatever the words are: the host looks at the alarm before it uses
    /// the results. Of each workgroup the first wait that gives up is recorded, as eight words:
    /// `[1, region's id, pair, tag wanted, tag seen, workgroup, time waited in units of 1024 ns, source]`; a record stays until
    /// the host clears it.
    #[must_use]
    pub fn bounded(self, bounded: Bounded<'k>) -> Self {
        Self { bounded: Some(bounded), ..self }
    }

    /// Puts words as pairs from number `pair` of a region on, two pairs by one store.
    ///
    /// Data that goes before untagged is stored with the region's [`Region::cache`] and drained: `k.drain(scope)`.
    #[track_caller]
    pub fn put_words(self, region: Region<'k>, pair: V<'k, u32>, words: &[V<'k, u32>]) {
        self.put_with(region, pair, words, StoreOptions::new());
    }

    /// As [`Mailbox::put_words`], in the lanes where `mask` holds.
    #[track_caller]
    pub fn put_words_where(self, mask: V<'k, bool>, region: Region<'k>, pair: V<'k, u32>, words: &[V<'k, u32>]) {
        self.put_with(region, pair, words, StoreOptions::new().mask(mask));
    }

    /// As [`Mailbox::put_words`], of floats; bits that are to survive whatever they are go as words.
    #[track_caller]
    pub fn put(self, region: Region<'k>, pair: V<'k, u32>, values: &[V<'k, f32>]) {
        let words: Vec<_> = values.iter().map(|x| x.bitcast::<u32>()).collect();
        self.put_words(region, pair, &words);
    }

    /// As [`Mailbox::put_words`], of floats rounded to bf16, two a word, the first one low.
    #[track_caller]
    pub fn put_bf(self, region: Region<'k>, pair: V<'k, u32>, values: &[V<'k, f32>]) {
        if !values.len().is_multiple_of(2) {
            self.k.refuse(format!("{} values as pairs of bf16; an even number is wanted", values.len()));
        }
        let words: Vec<_> = values.chunks_exact(2).map(|x| self.k.bf16_pair(x[0], x[1])).collect();
        self.put_words(region, pair, &words);
    }

    /// Tells of what the whole workgroup stored before, with the region's [`Region::cache`]: every thread drains, all come
    /// together, and the first thread puts the words.
    #[track_caller]
    pub fn publish(self, region: Region<'k>, pair: V<'k, u32>, words: &[V<'k, u32>]) {
        let k = self.k;
        k.drain(scope_of(region.cache));
        k.barrier();
        let [x, y, z] = [Axis::X, Axis::Y, Axis::Z].map(|axis| k.thread_id(axis));
        k.if_((x | y | z).eq(0), || self.put_words(region, pair, words));
    }

    #[track_caller]
    fn put_with(self, region: Region<'k>, pair: V<'k, u32>, words: &[V<'k, u32>], options: StoreOptions<'k>) {
        let (k, tag) = (self.k, self.tag);
        let options = options.cache(region.cache);
        for (i, words) in words.chunks(2).enumerate() {
            let at = advanced(pair, 2 * i as u32);
            match *words {
                [a, b] => {
                    let pairs: V<'k, Vector<u64, 2>> = k.vector([a, tag, b, tag]).bitcast();
                    k.buffer_store_with(pairs, region.buffer, at, options);
                }
                [a] => k.buffer_store_with(k.vector([a, tag]).bitcast::<u64>(), region.buffer, at, options),
                _ => {}
            }
        }
    }

    /// Waits until all pairs of all messages carry the tag, and gives their words, message by message: loads all, and all again
    /// until then, with a short sleep between. More than [`POLL_MAX`] messages are waited for one batch after the other. All lie
    /// in regions of one cache behaviour. Lanes wait each for their own.
    ///
    /// What was stored before the tags (with the region's [`Region::cache`], and drained) is seen by loads with that cache
    /// behaviour that follow.
    ///
    /// ```
    /// # use lathe_dsl::prelude::*;
    /// # for target in Target::all() {
    /// # lathe_dsl::builder::build("k", target, Launch::linear(1, 64), vec![], |k| {
    /// # let (address, epoch) = (k.constant(0u64), k.constant(7u32));
    /// // A row of 512 bytes, then one pair that tells of it; four such slots.
    /// let region = k.message_region(address, 4 * 520, Cache::SYS, 1);
    /// let mailbox = Mailbox::new(k, k.step_tag(epoch, 3));
    /// let flag = |slot: u32| k.constant(slot * 65 + 64);
    /// let lsb = mailbox.poll(&[Message::new(region, flag(0), 1), Message::new(region, flag(1), 1)]);
    /// let options = LoadOptions::new().cache(region.cache());
    /// let row: V<Vector<u32, 2>> = k.buffer_load_with(region.buffer(), Bytes(k.lane_id() * 8), options);
    /// # let _ = (lsb[0][0], row);
    /// # }).unwrap();
    /// # }
    /// ```
    #[track_caller]
    pub fn poll(self, messages: &[Message<'k>]) -> Vec<Vec<V<'k, u32>>> {
        let k = self.k;
        let Some(first) = messages.first() else { return vec![] };
        let cache = first.region.cache;
        if messages.iter().any(|m| m.region.cache.coherence != cache.coherence) {
            k.refuse("one poll of messages in regions of different cache behaviour".to_owned());
        }
        let words = messages.chunks(POLL_MAX).flat_map(|batch| self.poll_batch(batch)).collect();
        // Relaxed loads of one thread have no order among addresses on NVIDIA. On AMD the loop's branch waits for what was
        // loaded, and later accesses of such cache behaviour go where these went.
        if k.chip().arch == Arch::Nvptx {
            k.fence(Order::Acquire, scope_of(cache));
        }
        words
    }

    /// Once all carry the tag, or the time is over, the words.
    #[track_caller]
    fn poll_batch(self, batch: &[Message<'k>]) -> Vec<Vec<V<'k, u32>>> {
        let k = self.k;
        let look = || {
            let pairs: Vec<Vec<[V<'k, u32>; 2]>> = batch.iter().map(|m| m.load(k)).collect();
            let mut there = k.constant(true);
            for [_, tag] in pairs.iter().flatten() {
                there = there & tag.eq(self.tag);
            }
            (pairs, there)
        };
        let pairs = match self.bounded {
            None => k.while_(
                (),
                |()| {
                    let (pairs, there) = look();
                    ((!there).expect(false), pairs)
                },
                |_| k.s_sleep(1),
            ),
            Some(bounded) => {
                // No clock is read before the first look has failed; none ever shows 0.
                let start = (k.constant(0u64), k.constant(0u64), k.constant(true));
                let (pairs, there, _, waited) = k.while_(
                    start,
                    |(start, waited, patient)| {
                        let (pairs, there) = look();
                        ((!there & patient).expect(false), (pairs, there, start, waited))
                    },
                    |(_, _, start, _)| {
                        k.s_sleep(1);
                        let now = k.clock();
                        let start = start.eq(0).select(now, start);
                        let waited = now - start;
                        (start, waited, waited.lt(bounded.limit))
                    },
                );
                k.if_((!there).expect(false), || self.give_up(&bounded, batch, &pairs, waited));
                pairs
            }
        };
        pairs.iter().map(|pairs| pairs.iter().map(|[word, _]| *word).collect()).collect()
    }

    /// Records the first pair that has not come, if this is the workgroup's first wait to give up, and raises the alarm.
    #[track_caller]
    fn give_up(self, bounded: &Bounded<'k>, batch: &[Message<'k>], pairs: &[Vec<[V<'k, u32>; 2]>], waited: V<'k, u64>) {
        let k = self.k;
        let mut missing = [k.constant(0u32); 4];
        for (message, pairs) in batch.iter().zip(pairs).rev() {
            for (i, [_, seen]) in pairs.iter().enumerate().rev() {
                let source = message.source.unwrap_or_else(|| k.constant(NO_SOURCE));
                let this = [k.constant(message.region.id), advanced(message.pair, i as u32), *seen, source];
                let late = seen.ne(self.tag);
                for (missing, this) in missing.iter_mut().zip(this) {
                    *missing = late.select(this, *missing);
                }
            }
        }
        let [region, pair, seen, source] = missing;
        let [x, y, z] = [Axis::X, Axis::Y, Axis::Z].map(|axis| k.block_id(axis));
        let [width, height, _] = k.grid_dim();
        let workgroup = (z * height + y) * width + x;
        let units = waited.div_floor(WAITED_UNIT_NS).minimum(u64::from(u32::MAX)).to::<u32>();
        let record = bounded.health + workgroup * HEALTH_WORDS;
        let shared = Memory::new().relaxed(Scope::System);
        let first = k.atomic_cas(record, 0u32, 1u32, Order::Relaxed, Scope::System).eq(0);
        k.if_(first, || {
            for (i, word) in (1u32..).zip([region, pair, self.tag, seen, workgroup, units, source]) {
                k.ptr_store_with(word, record + i, shared);
            }
        });
        // The alarm tells of a record that is whole.
        k.drain(Scope::System);
        k.ptr_store_with(k.constant(1u32), bounded.alarm, shared);
    }
}

impl<'k> Message<'k> {
    /// Its pairs as they are now: word and tag.
    #[track_caller]
    fn load(&self, k: &'k Builder<'k>) -> Vec<[V<'k, u32>; 2]> {
        let Region { buffer, cache, .. } = self.region;
        let mut pairs = vec![];
        for i in (0..self.pairs).step_by(2) {
            let at = advanced(self.pair, i);
            if i + 1 < self.pairs {
                let two: V<'k, Vector<u64, 2>> = k.buffer_load_with(buffer, at, LoadOptions::new().cache(cache));
                let [a, s, b, t] = two.bitcast::<Vector<u32, 4>>().elements();
                pairs.extend([[a, s], [b, t]]);
            } else {
                let one: V<'k, u64> = k.buffer_load_with(buffer, at, LoadOptions::new().cache(cache));
                pairs.push(one.bitcast::<Vector<u32, 2>>().elements());
            }
        }
        pairs
    }
}

/// The place `n` pairs on.
#[track_caller]
fn advanced(pair: V<'_, u32>, n: u32) -> V<'_, u32> {
    if n == 0 { pair } else { pair + n }
}

/// Who must see what such accesses store.
fn scope_of(cache: Cache) -> Scope {
    if cache.coherence == Coherence::System { Scope::System } else { Scope::Device }
}
