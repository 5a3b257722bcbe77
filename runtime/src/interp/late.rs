//! Stores to global memory that are on their way: under a seed, what nothing orders becomes visible late and out of order.
//!
//! A store starts in its wave, which sees it at once. Then it moves on, at random or because something orders it: to where its
//! workgroup sees it, its device, and everybody (global memory). What orders it, and how far it then goes at least:
//!
//! * a fence with a release half, or an operation that releases: as far as its scope reaches, whatever the store;
//! * `drain`: as far as its scope reaches, but beyond the workgroup only as far as the store goes through the caches by
//!   itself (atomic stores by their scope, buffer stores by their `Cache`);
//! * the end of the launch: everywhere.
//!
//! All three move what the executing lanes stored, and what their workgroup or device has already seen. An update
//! (`atomic_…`) happens in global memory at once, after the stores to its place. Stores to the same 16 aligned bytes stay in order.
//! Up to 16 bytes that one lane stores within such a *part* become visible at once.

use rustc_hash::FxHashMap;

use super::allocations::Allocations;
use super::memory::GlobalBuffer;
use super::program::Program;
use super::schedule::Choices;
use super::watch::{Reach, Waits};

/// Bytes that stay in order and become visible together.
const PART: u64 = 16;

/// Parts with stores on their way in one wave, at most.
const MAX_PARTS: usize = 512;

/// What one lane stored in a part.
#[derive(Clone)]
struct Store {
    lane: u8,
    /// How far it goes by itself; nothing for a plain store.
    reach: Option<Reach>,
    /// The wave's operations on vector memory up to it.
    issued: u64,
    /// Which bytes.
    mask: u16,
    bytes: [u8; PART as usize],
}

/// Stores that are equally far.
#[derive(Default)]
pub(super) struct Stores {
    /// By part (address / 16), oldest first.
    parts: Vec<(u64, Vec<Store>)>,
    index: FxHashMap<u64, usize>,
}

impl Stores {
    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    fn push(&mut self, part: u64, mut stores: Vec<Store>) {
        if stores.is_empty() {
            return;
        }
        let parts = &mut self.parts;
        let at = *self.index.entry(part).or_insert_with(|| {
            parts.push((part, vec![]));
            parts.len() - 1
        });
        self.parts[at].1.append(&mut stores);
    }

    fn take(&mut self, part: u64) -> Vec<Store> {
        let Some(at) = self.index.remove(&part) else { return vec![] };
        let (_, stores) = self.parts.swap_remove(at);
        if let Some((moved, _)) = self.parts.get(at) {
            self.index.insert(*moved, at);
        }
        stores
    }

    fn any(&self, choices: &mut Choices) -> Option<u64> {
        (!self.is_empty()).then(|| self.parts[choices.below(self.parts.len())].0)
    }

    fn numbers(&self) -> Vec<u64> {
        self.parts.iter().map(|(part, _)| *part).collect()
    }

    /// Puts what was stored to `part` over `bytes`, and its bytes into `mask`.
    fn overlay(&self, part: u64, bytes: &mut [u8; PART as usize], mask: &mut u16) {
        let Some(at) = self.index.get(&part) else { return };
        for store in &self.parts[*at].1 {
            *mask |= store.mask;
            for (i, byte) in bytes.iter_mut().enumerate().filter(|(i, _)| store.mask >> i & 1 == 1) {
                *byte = store.bytes[i];
            }
        }
    }
}

#[derive(Default)]
struct OfWave {
    stores: Stores,
    /// Operations on vector memory so far.
    issued: u64,
    /// After a time slice, one in 2 to this power moves something on.
    rarity: u32,
}

/// What is on its way in one workgroup.
pub(super) struct OfBlock {
    waves: Vec<OfWave>,
    /// What the workgroup sees.
    own: Stores,
}

impl OfBlock {
    pub(super) fn new(program: &Program) -> Self {
        let waves = std::iter::repeat_with(OfWave::default).take(program.block_waves() as usize).collect();
        Self { waves, own: Stores::default() }
    }

    /// For the next workgroup, when nothing is on its way.
    pub(super) fn start(&mut self, choices: &mut Choices) {
        for wave in &mut self.waves {
            *wave = OfWave { rarity: [0, 1, 3, 5, 7][choices.below(5)], ..OfWave::default() };
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.own.is_empty() && self.waves.iter().all(|w| w.stores.is_empty())
    }
}

/// What a load sees of bytes some of which are on their way.
pub(super) struct Seen {
    pub(super) bytes: Vec<u8>,
    /// Whether all of them were ever written.
    pub(super) written: bool,
}

/// The stores that a workgroup under way sees, or some of its waves.
pub(super) struct Late<'c> {
    pub(super) block: &'c mut OfBlock,
    pub(super) device: &'c mut Stores,
    pub(super) choices: &'c mut Choices,
    pub(super) allocations: &'c Allocations<'c>,
    pub(super) waits: Option<&'c Waits>,
}

impl Late<'_> {
    /// What wave `wave` sees of `bytes` bytes of `buffer` from `at` on, unless it is what global memory holds.
    pub(super) fn seen(&self, wave: u32, buffer: &GlobalBuffer, at: usize, bytes: usize) -> Option<Seen> {
        let of_wave = &self.block.waves[wave as usize].stores;
        let stages = [&*self.device, &self.block.own, of_wave];
        if stages.iter().all(|stores| stores.is_empty()) {
            return None;
        }
        let (first, end) = (buffer.address() + at as u64, buffer.address() + (at + bytes) as u64);
        let on_the_way = |part: u64| stages.iter().any(|stores| stores.index.contains_key(&part));
        if !(first / PART..end.div_ceil(PART)).any(on_the_way) {
            return None;
        }
        let mut all = vec![0; bytes];
        buffer.load::<1>(at, bytes, |i, bits| all[i] = bits as u8);
        let mut written = true;
        for part in first / PART..end.div_ceil(PART) {
            let (mut over, mut mask) = ([0; PART as usize], 0);
            stages.iter().for_each(|stores| stores.overlay(part, &mut over, &mut mask));
            for address in first.max(part * PART)..end.min((part + 1) * PART) {
                let (i, to) = ((address % PART) as usize, (address - first) as usize);
                if mask >> i & 1 == 1 {
                    all[to] = over[i];
                } else {
                    written &= buffer.is_written(at + to, 1);
                }
            }
        }
        Some(Seen { bytes: all, written })
    }

    /// Wave `wave` makes an operation on vector memory.
    pub(super) fn issue(&mut self, wave: u32) {
        self.block.waves[wave as usize].issued += 1;
    }

    /// Lane `lane` of wave `wave` stores `bytes` at `address`; they go as far as `reach` by themselves.
    pub(super) fn store(&mut self, (wave, lane): (u32, usize), address: u64, bytes: &[u8], reach: Option<Reach>) {
        let of = &mut self.block.waves[wave as usize];
        let end = address + bytes.len() as u64;
        for part in address / PART..end.div_ceil(PART) {
            let mut store = Store { lane: lane as u8, reach, issued: of.issued, mask: 0, bytes: [0; PART as usize] };
            for at in address.max(part * PART)..end.min((part + 1) * PART) {
                store.mask |= 1 << (at % PART);
                store.bytes[(at % PART) as usize] = bytes[(at - address) as usize];
            }
            of.stores.push(part, vec![store]);
        }
    }

    /// An update of `bytes` bytes at `address` by wave `wave` comes: what it sees there goes to global memory.
    pub(super) fn settle(&mut self, wave: u32, address: u64, bytes: u64) {
        for part in address / PART..(address + bytes).div_ceil(PART) {
            let stores = self.block.waves[wave as usize].stores.take(part);
            self.raise(part, stores, Reach::System);
        }
    }

    /// The lanes of `lanes` execute a release that reaches as far as `reach`.
    pub(super) fn release(&mut self, wave: u32, lanes: u64, reach: Reach) {
        self.order(wave, |store| lanes >> store.lane & 1 == 1, |_| reach, reach);
    }

    /// The lanes of `lanes` wait until what they stored is visible as far as `reach`.
    pub(super) fn drain(&mut self, wave: u32, lanes: u64, reach: Reach) {
        self.order(wave, |store| lanes >> store.lane & 1 == 1, |store| through(store, reach), reach);
    }

    /// Wave `wave` has at most `n` operations on vector memory outstanding.
    pub(super) fn wait_count(&mut self, wave: u32, n: u32) {
        let up_to = self.block.waves[wave as usize].issued.saturating_sub(n.into());
        self.order(wave, |store| store.issued <= up_to, |store| through(store, Reach::System), Reach::System);
    }

    /// Moves the stores of `wave` that are `meant`, and what their workgroup and device see if `reach` is further, to where
    /// `to` says.
    fn order(&mut self, wave: u32, meant: impl Fn(&Store) -> bool, to: impl Fn(&Store) -> Reach, reach: Reach) {
        if reach < Reach::Workgroup {
            return;
        }
        for part in self.block.waves[wave as usize].stores.numbers() {
            let stores = self.block.waves[wave as usize].stores.take(part);
            let rest =
                self.raise_each(part, stores, Reach::Wave, |store| if meant(store) { to(store) } else { Reach::Wave });
            self.block.waves[wave as usize].stores.push(part, rest);
        }
        if reach > Reach::Workgroup {
            for part in self.block.own.numbers() {
                let stores = self.block.own.take(part);
                let rest = self.raise_each(part, stores, Reach::Workgroup, &to);
                self.block.own.push(part, rest);
            }
        }
        if reach > Reach::Device {
            for part in self.device.numbers() {
                let stores = self.device.take(part);
                let rest = self.raise_each(part, stores, Reach::Device, &to);
                self.device.push(part, rest);
            }
        }
    }

    /// Moves stores to a part that were visible as far as `from` to where `to` says, and those before them at least as far.
    /// What comes back stays.
    fn raise_each(&mut self, part: u64, stores: Vec<Store>, from: Reach, to: impl Fn(&Store) -> Reach) -> Vec<Store> {
        let mut targets: Vec<Reach> = stores.iter().map(to).collect();
        for i in (1..targets.len()).rev() {
            targets[i - 1] = targets[i - 1].max(targets[i]);
        }
        let mut rest = vec![];
        for (store, target) in stores.into_iter().zip(targets) {
            if target > from {
                self.raise(part, vec![store], target);
            } else {
                rest.push(store);
            }
        }
        rest
    }

    /// Moves stores to a part, which come after all that is further on, to where `to` sees them.
    fn raise(&mut self, part: u64, stores: Vec<Store>, to: Reach) {
        match to {
            Reach::Wave | Reach::Workgroup => self.block.own.push(part, stores),
            Reach::Device => {
                let before = self.block.own.take(part);
                self.device.push(part, before);
                self.device.push(part, stores);
            }
            Reach::System => {
                let (first, second) = (self.device.take(part), self.block.own.take(part));
                for store in first.iter().chain(&second).chain(&stores) {
                    write(self.allocations, part, store);
                }
            }
        }
        if let Some(waits) = self.waits {
            waits.changed();
        }
    }

    /// Wave `wave` is through a time slice, or has let others run: something may move on.
    pub(super) fn chance(&mut self, wave: u32, yielded: bool) {
        let of = &self.block.waves[wave as usize];
        let parts = of.stores.parts.len();
        if parts > 0 {
            let rarity = if yielded { of.rarity.min(2) } else { of.rarity };
            if parts > MAX_PARTS {
                (0..parts / 2).for_each(|_| self.move_one(wave));
            } else if self.choices.below(1 << rarity) == 0 {
                let n = if self.choices.below(2) == 0 { 1 } else { 1 + self.choices.below(parts) };
                (0..n).for_each(|_| self.move_one(wave));
            }
        }
        if !self.block.own.is_empty() && self.choices.below(8) == 0 {
            self.move_of_block();
        }
        if !self.device.is_empty() && self.choices.below(8) == 0 {
            self.move_of_device();
        }
    }

    /// Moves the oldest stores of the wave to some part on.
    fn move_one(&mut self, wave: u32) {
        let of = &mut self.block.waves[wave as usize].stores;
        let Some(part) = of.any(self.choices) else { return };
        let mut stores = of.take(part);
        let rest = stores.split_off(1 + self.choices.below(stores.len()));
        of.push(part, rest);
        let to = [Reach::Workgroup, Reach::Device, Reach::System, Reach::System][self.choices.below(4)];
        self.raise(part, stores, to);
    }

    fn move_of_block(&mut self) {
        if let Some(part) = self.block.own.any(self.choices) {
            let stores = self.block.own.take(part);
            let to = [Reach::Device, Reach::System][self.choices.below(2)];
            self.raise(part, stores, to);
        }
    }

    fn move_of_device(&mut self) {
        if let Some(part) = self.device.any(self.choices) {
            let stores = self.device.take(part);
            self.raise(part, stores, Reach::System);
        }
    }

    /// Moves something on; whether there was anything.
    pub(super) fn move_any(&mut self) -> bool {
        let of_wave = (0..self.block.waves.len()).find(|wave| !self.block.waves[*wave].stores.is_empty());
        match of_wave {
            Some(wave) => self.move_one(wave as u32),
            None if !self.block.own.is_empty() => self.move_of_block(),
            None if !self.device.is_empty() => self.move_of_device(),
            None => return false,
        }
        true
    }

    /// The workgroup has ended: its device will see what it stored.
    pub(super) fn end(&mut self) {
        for wave in 0..self.block.waves.len() {
            for part in self.block.waves[wave].stores.numbers() {
                let stores = self.block.waves[wave].stores.take(part);
                self.raise(part, stores, Reach::Device);
            }
        }
        for part in self.block.own.numbers() {
            let stores = self.block.own.take(part);
            self.raise(part, stores, Reach::Device);
        }
    }

    /// The launch has ended: everybody sees what it stored.
    pub(super) fn end_launch(&mut self) {
        for part in self.device.numbers() {
            let stores = self.device.take(part);
            self.raise(part, stores, Reach::System);
        }
    }
}

/// How far a store is visible when it has been waited for by something that reaches as far as `reach`.
fn through(store: &Store, reach: Reach) -> Reach {
    reach.min(store.reach.unwrap_or(Reach::Workgroup).max(Reach::Workgroup))
}

fn write(allocations: &Allocations<'_>, part: u64, store: &Store) {
    let mut mask = store.mask;
    while mask != 0 {
        let first = mask.trailing_zeros() as usize;
        let n = (!(mask >> first)).trailing_zeros() as usize;
        mask &= !(u16::MAX >> (16 - n) << first);
        // It was found when the store was executed.
        if let Some((found, at)) = allocations.find(part * PART + first as u64, n as u64) {
            let _ = found.buffer.write(at, &store.bytes[first..first + n]);
        }
    }
}
