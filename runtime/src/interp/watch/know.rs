//! What is known of other waves' epochs.

use std::sync::Arc;

use rustc_hash::FxHashMap;

/// Number of a wave in its launch, or among all of a group of launches.
pub(super) type WaveId = u32;

/// Which order holds for an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Domain {
    /// In LDS.
    Lds,
    /// A store to global memory that may stay in a cache of its workgroup.
    Plain,
    /// One that goes through to its device by itself, not beyond.
    Device,
    /// A load from global memory, or a store that goes through all caches by itself: done once it was waited for.
    Done,
}

/// Accesses of a wave up to an epoch: of all lanes, and up to a later one those of some.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Seen {
    all: u32,
    some: u32,
    lanes: u64,
}

impl Seen {
    fn join(&mut self, other: &Self) {
        let all = self.all.max(other.all);
        let beyond = |seen: &Self| if seen.some > all { seen.lanes } else { 0 };
        // Two groups of lanes with different epochs count as one: rather too much order than too little.
        *self = Self { all, some: self.some.max(other.some), lanes: beyond(self) | beyond(other) };
    }

    /// The lanes among `lanes` whose accesses in `epoch` are not among these.
    fn missing(&self, epoch: u32, lanes: u64) -> u64 {
        match () {
            () if epoch <= self.all => 0,
            () if epoch <= self.some => lanes & !self.lanes,
            () => lanes,
        }
    }
}

/// What is known of one wave.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Known {
    pub(super) lds: Seen,
    pub(super) plain: Seen,
    pub(super) device: Seen,
    pub(super) done: Seen,
}

impl Known {
    /// Everything up to `epoch`.
    pub(super) fn all(epoch: u32) -> Self {
        let seen = Seen { all: epoch, some: 0, lanes: 0 };
        Self { lds: seen, plain: seen, device: seen, done: seen }
    }

    fn join(&mut self, other: &Self) {
        self.lds.join(&other.lds);
        self.plain.join(&other.plain);
        self.device.join(&other.device);
        self.done.join(&other.done);
    }

    fn seen(&self, domain: Domain) -> &Seen {
        match domain {
            Domain::Lds => &self.lds,
            Domain::Plain => &self.plain,
            Domain::Device => &self.device,
            Domain::Done => &self.done,
        }
    }
}

/// What is known of all waves. Shared by the waves of a workgroup between barriers.
#[derive(Clone, Default, Debug)]
pub(super) struct Know(Arc<FxHashMap<WaveId, Known>>);

impl Know {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn join(&mut self, other: &Self) {
        if other.is_empty() || Arc::ptr_eq(&self.0, &other.0) {
            return;
        }
        if self.is_empty() {
            *self = other.clone();
            return;
        }
        let map = Arc::make_mut(&mut self.0);
        for (wave, known) in other.0.iter() {
            map.entry(*wave).or_default().join(known);
        }
    }

    pub(super) fn learn(&mut self, wave: WaveId, known: &Known) {
        Arc::make_mut(&mut self.0).entry(wave).or_default().join(known);
    }

    /// The lanes among `lanes` of `wave` whose accesses in `epoch` are unknown.
    pub(super) fn missing(&self, wave: WaveId, domain: Domain, epoch: u32, lanes: u64) -> u64 {
        self.0.get(&wave).map_or(lanes, |known| known.seen(domain).missing(epoch, lanes))
    }
}

/// Events that order lanes of one wave among each other: all of them, and since then some of them.
#[derive(Clone, Default, Debug)]
pub(super) struct Joins {
    full: u32,
    partial: Vec<(u32, u64)>,
}

/// Partial events kept; older ones run together.
const MAX_PARTIAL: usize = 32;

impl Joins {
    /// Everything up to `epoch` is ordered.
    pub(super) fn all(&mut self, epoch: u32) {
        self.full = self.full.max(epoch);
        self.partial.retain(|(e, _)| *e > epoch);
    }

    /// The lanes of `lanes`, out of `live`, meet in `epoch`.
    pub(super) fn some(&mut self, epoch: u32, lanes: u64, live: u64) {
        if lanes & live == live {
            return self.all(epoch);
        }
        if lanes.count_ones() < 2 {
            return;
        }
        match self.partial.last_mut() {
            Some((last, same)) if *same == lanes => *last = epoch,
            _ => self.partial.push((epoch, lanes)),
        }
        if self.partial.len() > MAX_PARTIAL {
            let (_, lanes) = self.partial.remove(0);
            self.partial[0].1 |= lanes;
        }
    }

    /// What the lanes of `lanes`, out of `live`, know of their wave up to `epoch`.
    pub(super) fn seen(&self, epoch: u32, lanes: u64, live: u64) -> Seen {
        match lanes & live == live {
            true => Seen { all: epoch, some: 0, lanes: 0 },
            false => Seen { all: self.full, some: epoch, lanes: self.before(self.full + 1, lanes) },
        }
    }

    /// Lanes whose accesses in `epoch` happened before what the lanes of `to` do now.
    pub(super) fn before(&self, epoch: u32, to: u64) -> u64 {
        if epoch <= self.full {
            return u64::MAX;
        }
        let later = self.partial.iter().rev().take_while(|(e, _)| *e >= epoch);
        later.fold(to, |known, (_, lanes)| if lanes & known == 0 { known } else { known | lanes })
    }
}
