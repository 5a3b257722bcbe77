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
//! (`atomic_…`) happens in global memory at once, after the stores to its place. Stores to the same aligned bytes, a *granule* of the
//! chip's ([`granule`]), stay in order, and what one lane stores within such a part in one operation becomes visible at once.

use lathe_dsl::Arch;
use lathe_dsl::ir::Scope;
use rustc_hash::FxHashMap;

use crate::choices::Choices;

/// How far a scope reaches.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Reach {
    Wave = 1,
    Workgroup = 2,
    Device = 3,
    System = 4,
}

impl Reach {
    /// Those that reach other waves, nearest first.
    pub(crate) const BEYOND: [Self; 3] = [Self::Workgroup, Self::Device, Self::System];

    /// Its place among [`Self::BEYOND`], of which it must be one.
    pub(crate) fn level(self) -> usize {
        self as usize - Self::Workgroup as usize
    }

    /// Nothing for a scope that reaches no other thread. A scope among one address space counts as one among all.
    pub(crate) fn of(scope: Scope) -> Option<Self> {
        match scope.wide() {
            Scope::System => Some(Self::System),
            Scope::Device => Some(Self::Device),
            Scope::Workgroup => Some(Self::Workgroup),
            Scope::Wave => Some(Self::Wave),
            _ => None,
        }
    }
}

/// Global memory behind the stores on their way.
pub(crate) trait Behind {
    /// Bytes that everybody sees from now on; the store that they come from was checked.
    fn write(&mut self, address: u64, bytes: &[u8]);
    /// Somebody may see something new.
    fn changed(&mut self);
}

/// Largest granule.
const PART: u64 = 16;

/// Aligned bytes that stay in order and that a store never shows in part. AMD's caches move 16 bytes that a lane stores at once; PTX
/// promises it of 8, and takes wider stores for several.
pub(crate) fn granule(arch: Arch) -> u64 {
    match arch {
        Arch::Amdgpu => PART,
        Arch::Nvptx => 8,
    }
}

/// Parts with stores that are equally far in one wave, workgroup or device, above which half of them move on.
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
pub(crate) struct Stores {
    /// By part (address / granule), oldest first.
    parts: Vec<(u64, Vec<Store>)>,
    index: FxHashMap<u64, usize>,
    /// No part lies outside, first and last: most loads are of memory far from what is stored.
    within: (u64, u64),
}

impl Stores {
    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    fn push(&mut self, part: u64, mut stores: Vec<Store>) {
        if stores.is_empty() {
            return;
        }
        let (first, last) = self.within;
        self.within = if self.parts.is_empty() { (part, part) } else { (first.min(part), last.max(part)) };
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

    fn has(&self, part: u64) -> bool {
        !self.is_empty() && (self.within.0..=self.within.1).contains(&part) && self.index.contains_key(&part)
    }

    fn any(&self, choices: &mut Choices) -> Option<u64> {
        (!self.is_empty()).then(|| self.parts[choices.below(self.parts.len())].0)
    }

    fn numbers(&self) -> Vec<u64> {
        self.parts.iter().map(|(part, _)| *part).collect()
    }

    /// The parts with a store that `moves`.
    fn with(&self, moves: impl Fn(&Store) -> bool) -> Vec<u64> {
        self.parts.iter().filter(|(_, stores)| stores.iter().any(&moves)).map(|(part, _)| *part).collect()
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
pub(crate) struct OfBlock {
    waves: Vec<OfWave>,
    /// What the workgroup sees.
    own: Stores,
}

impl OfBlock {
    pub(crate) fn new(waves: usize) -> Self {
        let waves = std::iter::repeat_with(OfWave::default).take(waves).collect();
        Self { waves, own: Stores::default() }
    }

    /// For the next workgroup, when nothing is on its way.
    pub(crate) fn start(&mut self, choices: &mut Choices) {
        for wave in &mut self.waves {
            *wave = OfWave { rarity: [0, 1, 3, 5, 7][choices.below(5)], ..OfWave::default() };
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.own.is_empty() && self.waves.iter().all(|w| w.stores.is_empty())
    }
}

/// The stores that a workgroup under way sees, or some of its waves.
pub(crate) struct Late<'c> {
    /// Of the chip that they are on.
    pub(crate) granule: u64,
    pub(crate) block: &'c mut OfBlock,
    pub(crate) device: &'c mut Stores,
    pub(crate) choices: &'c mut Choices,
}

impl Late<'_> {
    /// Whether any of the stores that wave `wave` sees lies in `bytes` bytes at `address`.
    pub(crate) fn covers(&self, wave: u32, address: u64, bytes: usize) -> bool {
        let stages = self.stages(wave);
        parts(self.granule, address, bytes as u64).any(|part| stages.iter().any(|stores| stores.has(part)))
    }

    /// Puts what wave `wave` sees over `bytes`, which lie at `address`; `put` takes number and value of each.
    pub(crate) fn overlay(&self, wave: u32, address: u64, bytes: usize, mut put: impl FnMut(usize, u8)) {
        let stages = self.stages(wave);
        let (granule, end) = (self.granule, address + bytes as u64);
        for part in parts(granule, address, bytes as u64) {
            let (mut over, mut mask) = ([0; PART as usize], 0u16);
            stages.iter().for_each(|stores| stores.overlay(part, &mut over, &mut mask));
            for at in address.max(part * granule)..end.min((part + 1) * granule) {
                let i = (at % granule) as usize;
                if mask >> i & 1 == 1 {
                    put((at - address) as usize, over[i]);
                }
            }
        }
    }

    /// Oldest first.
    fn stages(&self, wave: u32) -> [&Stores; 3] {
        [self.device, &self.block.own, &self.block.waves[wave as usize].stores]
    }

    /// Wave `wave` makes an operation on vector memory.
    pub(crate) fn issue(&mut self, wave: u32) {
        self.block.waves[wave as usize].issued += 1;
    }

    /// The next operation of wave `wave` on vector memory has this number.
    #[cfg(feature = "jit")]
    pub(crate) fn number(&mut self, wave: u32, number: u64) {
        self.block.waves[wave as usize].issued = number;
    }

    /// Lane `lane` of wave `wave` stores `bytes` at `address`; they go as far as `reach` by themselves.
    pub(crate) fn store(&mut self, (wave, lane): (u32, usize), address: u64, bytes: &[u8], reach: Option<Reach>) {
        let of = &mut self.block.waves[wave as usize];
        let (granule, end) = (self.granule, address + bytes.len() as u64);
        for part in parts(granule, address, bytes.len() as u64) {
            let mut store = Store { lane: lane as u8, reach, issued: of.issued, mask: 0, bytes: [0; PART as usize] };
            for at in address.max(part * granule)..end.min((part + 1) * granule) {
                store.mask |= 1 << (at % granule);
                store.bytes[(at % granule) as usize] = bytes[(at - address) as usize];
            }
            of.stores.push(part, vec![store]);
        }
    }

    /// An update of `bytes` bytes at `address` by wave `wave` comes: what it sees there goes to global memory.
    pub(crate) fn settle(&mut self, memory: &mut impl Behind, wave: u32, address: u64, bytes: u64) {
        for part in parts(self.granule, address, bytes) {
            let stores = self.block.waves[wave as usize].stores.take(part);
            self.raise(memory, part, Reach::Wave, stores, Reach::System);
        }
    }

    /// The lanes of `lanes` execute a release that reaches as far as `reach`.
    pub(crate) fn release(&mut self, memory: &mut impl Behind, wave: u32, lanes: u64, reach: Reach) {
        self.order(memory, wave, |store| lanes >> store.lane & 1 == 1, |_| reach, reach);
    }

    /// The lanes of `lanes` wait until what they stored is visible as far as `reach`.
    pub(crate) fn drain(&mut self, memory: &mut impl Behind, wave: u32, lanes: u64, reach: Reach) {
        self.order(memory, wave, |store| lanes >> store.lane & 1 == 1, |store| through(store, reach), reach);
    }

    /// Wave `wave` has at most `n` operations on vector memory outstanding.
    pub(crate) fn wait_count(&mut self, memory: &mut impl Behind, wave: u32, n: u32) {
        let up_to = self.block.waves[wave as usize].issued.saturating_sub(n.into());
        self.wait_up_to(memory, wave, up_to);
    }

    /// Wave `wave` waits for its operations on vector memory up to number `up_to`.
    pub(crate) fn wait_up_to(&mut self, memory: &mut impl Behind, wave: u32, up_to: u64) {
        let to = |store: &Store| through(store, Reach::System);
        self.order(memory, wave, |store| store.issued <= up_to, to, Reach::System);
    }

    /// What wave `wave` has stored up to now is to go as far as `reach` when it is waited for.
    #[cfg(any(feature = "jit", test))]
    pub(crate) fn write_back(&mut self, memory: &mut impl Behind, wave: u32, reach: Reach) {
        for (_, stores) in &mut self.block.waves[wave as usize].stores.parts {
            stores.iter_mut().for_each(|store| store.reach = store.reach.max(Some(reach)));
        }
        self.order(memory, wave, |_| false, |_| reach, reach);
    }

    /// Moves the stores of `wave` that are `meant`, and what their workgroup and device see if `reach` is further, to where
    /// `to` says.
    fn order(
        &mut self,
        memory: &mut impl Behind,
        wave: u32,
        meant: impl Fn(&Store) -> bool,
        to: impl Fn(&Store) -> Reach,
        reach: Reach,
    ) {
        if reach < Reach::Workgroup {
            return;
        }
        let of_wave = |store: &Store| if meant(store) { to(store) } else { Reach::Wave };
        for part in self.block.waves[wave as usize].stores.with(|store| of_wave(store) > Reach::Wave) {
            let stores = self.block.waves[wave as usize].stores.take(part);
            let rest = self.raise_each(memory, part, stores, Reach::Wave, of_wave);
            self.block.waves[wave as usize].stores.push(part, rest);
        }
        if reach > Reach::Workgroup {
            for part in self.block.own.with(|store| to(store) > Reach::Workgroup) {
                let stores = self.block.own.take(part);
                let rest = self.raise_each(memory, part, stores, Reach::Workgroup, &to);
                self.block.own.push(part, rest);
            }
        }
        if reach > Reach::Device {
            for part in self.device.with(|store| to(store) > Reach::Device) {
                let stores = self.device.take(part);
                let rest = self.raise_each(memory, part, stores, Reach::Device, &to);
                self.device.push(part, rest);
            }
        }
    }

    /// Moves stores to a part that were visible as far as `from` to where `to` says, and those before them at least as far.
    /// What comes back stays.
    fn raise_each(
        &mut self,
        memory: &mut impl Behind,
        part: u64,
        stores: Vec<Store>,
        from: Reach,
        to: impl Fn(&Store) -> Reach,
    ) -> Vec<Store> {
        let mut targets: Vec<Reach> = stores.iter().map(to).collect();
        for i in (1..targets.len()).rev() {
            targets[i - 1] = targets[i - 1].max(targets[i]);
        }
        let mut rest = vec![];
        for (store, target) in stores.into_iter().zip(targets) {
            if target > from {
                self.raise(memory, part, from, vec![store], target);
            } else {
                rest.push(store);
            }
        }
        rest
    }

    /// Moves stores to a part, which were visible as far as `from` and come after all that is further on, to where `to` sees them.
    fn raise(&mut self, memory: &mut impl Behind, part: u64, from: Reach, stores: Vec<Store>, to: Reach) {
        match to {
            Reach::Wave | Reach::Workgroup => self.block.own.push(part, stores),
            Reach::Device => {
                let before = self.block.own.take(part);
                self.device.push(part, before);
                self.device.push(part, stores);
            }
            Reach::System => {
                // What the workgroup alone sees comes after what its device sees, and stays.
                let second = if from < Reach::Device { self.block.own.take(part) } else { vec![] };
                let first = self.device.take(part);
                for store in first.iter().chain(&second).chain(&stores) {
                    write(memory, self.granule * part, store);
                }
            }
        }
        memory.changed();
    }

    /// Wave `wave` is through a time slice, or has let others run: something may move on.
    pub(crate) fn chance(&mut self, memory: &mut impl Behind, wave: u32, yielded: bool) {
        let of = &self.block.waves[wave as usize];
        let parts = of.stores.parts.len();
        if parts > 0 {
            let rarity = if yielded { of.rarity.min(2) } else { of.rarity };
            if parts > MAX_PARTS {
                (0..parts / 2).for_each(|_| self.move_one(memory, wave));
            } else if self.choices.below(1 << rarity) == 0 {
                match self.choices.below(4) {
                    // Ahead of all that were stored before: a flag, mostly.
                    0 => self.move_last(memory, wave),
                    1 => self.move_one(memory, wave),
                    _ => (0..=self.choices.below(parts)).for_each(|_| self.move_one(memory, wave)),
                }
            }
        }
        let parts = self.block.own.parts.len();
        for _ in 0..self.lot(parts) {
            self.move_of_block(memory);
        }
        let parts = self.device.parts.len();
        for _ in 0..self.lot(parts) {
            self.move_of_device(memory);
        }
    }

    /// How many of so many parts beyond a wave move on by chance.
    fn lot(&mut self, parts: usize) -> usize {
        match parts {
            0 => 0,
            1..=MAX_PARTS => usize::from(self.choices.below(8) == 0),
            _ => parts / 2,
        }
    }

    /// Moves the oldest stores of the wave to some part on.
    fn move_one(&mut self, memory: &mut impl Behind, wave: u32) {
        let of = &mut self.block.waves[wave as usize].stores;
        let Some(part) = of.any(self.choices) else { return };
        let mut stores = of.take(part);
        let rest = stores.split_off(1 + self.choices.below(stores.len()));
        of.push(part, rest);
        let to = [Reach::Workgroup, Reach::Device, Reach::System, Reach::System][self.choices.below(4)];
        self.raise(memory, part, Reach::Wave, stores, to);
    }

    /// Everybody sees the wave's stores to the part that it stored to last.
    fn move_last(&mut self, memory: &mut impl Behind, wave: u32) {
        let of = &mut self.block.waves[wave as usize].stores;
        let newest = of.parts.iter().max_by_key(|(_, stores)| stores.last().map(|store| store.issued));
        let Some(part) = newest.map(|(part, _)| *part) else { return };
        let stores = of.take(part);
        self.raise(memory, part, Reach::Wave, stores, Reach::System);
    }

    fn move_of_block(&mut self, memory: &mut impl Behind) {
        if let Some(part) = self.block.own.any(self.choices) {
            let stores = self.block.own.take(part);
            let to = [Reach::Device, Reach::System][self.choices.below(2)];
            self.raise(memory, part, Reach::Workgroup, stores, to);
        }
    }

    fn move_of_device(&mut self, memory: &mut impl Behind) {
        if let Some(part) = self.device.any(self.choices) {
            let stores = self.device.take(part);
            self.raise(memory, part, Reach::Device, stores, Reach::System);
        }
    }

    /// Moves something on; whether there was anything.
    pub(crate) fn move_any(&mut self, memory: &mut impl Behind) -> bool {
        let of_wave = (0..self.block.waves.len()).find(|wave| !self.block.waves[*wave].stores.is_empty());
        match of_wave {
            Some(wave) => self.move_one(memory, wave as u32),
            None if !self.block.own.is_empty() => self.move_of_block(memory),
            None if !self.device.is_empty() => self.move_of_device(memory),
            None => return false,
        }
        true
    }

    /// The workgroup has ended: its device will see what it stored.
    pub(crate) fn end(&mut self, memory: &mut impl Behind) {
        for wave in 0..self.block.waves.len() {
            for part in self.block.waves[wave].stores.numbers() {
                let stores = self.block.waves[wave].stores.take(part);
                self.raise(memory, part, Reach::Wave, stores, Reach::Device);
            }
        }
        for part in self.block.own.numbers() {
            let stores = self.block.own.take(part);
            self.raise(memory, part, Reach::Workgroup, stores, Reach::Device);
        }
    }

    /// The launch has ended: everybody sees what it stored.
    pub(crate) fn end_launch(&mut self, memory: &mut impl Behind) {
        for part in self.device.numbers() {
            let stores = self.device.take(part);
            self.raise(memory, part, Reach::Device, stores, Reach::System);
        }
    }
}

/// How far a store is visible when it has been waited for by something that reaches as far as `reach`.
fn through(store: &Store, reach: Reach) -> Reach {
    reach.min(store.reach.unwrap_or(Reach::Workgroup).max(Reach::Workgroup))
}

fn parts(granule: u64, address: u64, bytes: u64) -> std::ops::Range<u64> {
    address / granule..(address + bytes).div_ceil(granule)
}

/// Writes a store to the part that begins at `start`.
fn write(memory: &mut impl Behind, start: u64, store: &Store) {
    let mut mask = store.mask;
    while mask != 0 {
        let first = mask.trailing_zeros() as usize;
        let n = (!(mask >> first)).trailing_zeros().min(PART as u32) as usize;
        mask &= !(u16::MAX >> (PART as usize - n) << first);
        memory.write(start + first as u64, &store.bytes[first..first + n]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Global memory of 64 bytes.
    struct Bytes([u8; 64]);

    impl Behind for Bytes {
        fn write(&mut self, address: u64, bytes: &[u8]) {
            self.0[address as usize..][..bytes.len()].copy_from_slice(bytes);
        }

        fn changed(&mut self) {}
    }

    /// Two workgroups of two waves on one device.
    struct Device {
        granule: u64,
        blocks: [OfBlock; 2],
        stores: Stores,
        choices: Choices,
        memory: Bytes,
    }

    impl Device {
        fn new(seed: u64) -> Self {
            Self::of(Arch::Amdgpu, seed)
        }

        fn of(arch: Arch, seed: u64) -> Self {
            let mut choices = Choices(seed);
            let mut blocks = [OfBlock::new(2), OfBlock::new(2)];
            blocks.iter_mut().for_each(|b| b.start(&mut choices));
            Self { granule: granule(arch), blocks, stores: Stores::default(), choices, memory: Bytes([0; 64]) }
        }

        fn with<T>(&mut self, block: usize, f: impl FnOnce(&mut Late<'_>, &mut Bytes) -> T) -> T {
            let Self { granule, blocks, stores, choices, memory } = self;
            f(&mut Late { granule: *granule, block: &mut blocks[block], device: stores, choices }, memory)
        }

        fn store(&mut self, address: u64, bytes: &[u8], reach: Option<Reach>) {
            self.with(0, |late, _| {
                late.issue(0);
                late.store((0, 3), address, bytes, reach);
            });
        }

        /// Byte `at` as its wave, the other wave, the other workgroup and everybody see it.
        fn seen(&mut self, at: u64) -> [u8; 4] {
            let all = self.memory.0[at as usize];
            let mut by = |block, wave| {
                self.with(block, |late, _| {
                    let mut byte = all;
                    late.overlay(wave, at, 1, |_, new| byte = new);
                    assert!(late.covers(wave, at, 1) || byte == all);
                    byte
                })
            };
            [by(0, 0), by(0, 1), by(1, 0), all]
        }
    }

    #[test]
    fn a_store_goes_as_far_as_what_orders_it_says() {
        use Reach::{Device as D, System as S, Wave, Workgroup as W};
        let to = |n: usize| -> [u8; 4] { std::array::from_fn(|i| if i < n { 7 } else { 0 }) };
        // Own reach, that of the drain, and who sees it then.
        for (own, drain, sees) in [
            (None, Wave, 1),
            (None, W, 2),
            (None, S, 2),
            (Some(W), S, 2),
            (Some(D), W, 2),
            (Some(D), D, 3),
            (Some(D), S, 3),
            (Some(S), W, 2),
            (Some(S), D, 3),
            (Some(S), S, 4),
        ] {
            let mut d = Device::new(1);
            d.store(20, &[7], own);
            assert_eq!(d.seen(20), to(1));
            d.with(0, |late, memory| late.drain(memory, 0, !(1 << 3), drain));
            assert_eq!(d.seen(20), to(1), "other lanes");
            d.with(0, |late, memory| late.drain(memory, 0, 1 << 3, drain));
            assert_eq!(d.seen(20), to(sees), "{own:?} {drain:?}");
            // A fence takes it further whatever it is, another wave's too if it was seen.
            d.with(0, |late, memory| late.release(memory, 1, u64::MAX, S));
            assert_eq!(d.seen(20), to(if sees == 1 { 1 } else { 4 }));
        }
    }

    #[test]
    fn a_wait_covers_what_was_issued_before_and_a_write_back_takes_it_further() {
        let mut d = Device::new(2);
        d.store(0, &[7], Some(Reach::System));
        d.store(16, &[7], None);
        d.with(0, |late, memory| late.wait_count(memory, 0, 1));
        assert_eq!((d.seen(0), d.seen(16)), ([7; 4], [7, 0, 0, 0]));
        d.with(0, |late, memory| {
            late.write_back(memory, 0, Reach::Device);
            late.wait_count(memory, 0, 0);
        });
        assert_eq!(d.seen(16), [7, 7, 7, 0]);
        d.with(0, |late, memory| late.end_launch(memory));
        assert_eq!(d.seen(16), [7; 4]);
    }

    #[test]
    fn one_place_never_goes_back_and_one_part_comes_at_once() {
        for seed in 0..200 {
            let mut d = Device::new(seed);
            let (mut last, mut lone) = ([0; 4], [0; 4]);
            for value in 1..20 {
                // Sixteen bytes at once, over the end of a part two at a time.
                d.store(32, &[value; 16], None);
                d.store(14, &[value; 4], Some(Reach::Device));
                for _ in 0..8 {
                    d.with(0, |late, memory| late.chance(memory, 0, false));
                    let seen = d.seen(32);
                    assert!(
                        seen.iter().zip(&last).all(|(now, before)| now >= before),
                        "{seed}: {last:?}, then {seen:?}"
                    );
                    assert!((33..48).all(|at| d.seen(at) == seen), "{seed}");
                    let now = d.seen(15);
                    assert!(now.iter().zip(&lone).all(|(now, before)| now >= before), "{seed}");
                    assert_eq!((d.seen(14), d.seen(17)), (now, d.seen(16)), "{seed}");
                    (last, lone) = (seen, now);
                }
            }
            // An update sees its wave's stores.
            d.with(0, |late, memory| late.settle(memory, 0, 32, 4));
            assert_eq!(d.seen(32), [19; 4]);
            d.with(0, |late, memory| {
                late.end(memory);
                late.end_launch(memory);
            });
            assert_eq!((d.seen(14), d.seen(17)), ([19; 4], [19; 4]));
            assert!(d.stores.is_empty() && d.blocks[0].is_empty());
        }
    }

    /// Whoever takes 16 bytes for one, on NVIDIA sees either half first.
    #[test]
    fn sixteen_bytes_come_in_halves_on_nvidia() {
        let halves = |arch| {
            let mut either = [false; 2];
            for seed in 0..200 {
                let mut d = Device::of(arch, seed);
                d.store(32, &[7; 16], Some(Reach::System));
                while d.with(0, |late, memory| late.move_any(memory)) {
                    let [low, high] = [32, 40].map(|at| d.seen(at)[2]);
                    assert!((0..8).all(|i| (d.seen(32 + i)[2], d.seen(40 + i)[2]) == (low, high)), "{seed}");
                    either[0] |= low > high;
                    either[1] |= low < high;
                }
                assert_eq!((d.seen(32), d.seen(47)), ([7; 4], [7; 4]), "{seed}");
            }
            either
        };
        assert_eq!((halves(Arch::Nvptx), halves(Arch::Amdgpu)), ([true; 2], [false; 2]));
    }

    #[test]
    fn whatever_is_on_its_way_comes_in_the_end() {
        let mut d = Device::new(5);
        for at in 0..4 {
            d.store(16 * at, &[7; 8], None);
        }
        let mut moves = 0;
        while d.with(0, |late, memory| late.move_any(memory)) {
            moves += 1;
        }
        assert!((4..=12).contains(&moves), "{moves}");
        assert!((0..4).all(|at| d.seen(16 * at) == [7; 4]));
    }
}
