//! What launches of a group tell each other, by the recorded events of an intact run: who loads what somebody else has stored.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::gcn::trace::{Event, OpId, Trace};

/// Bytes that are told apart.
const WORD: u64 = 4;

/// How far workgroups are apart that tell each other something.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Apart {
    /// On one device.
    Workgroups,
    /// On two.
    Devices,
}

/// How far apart the two ends of what is told are, by the instructions at either end.
#[derive(Clone, Debug, Default)]
pub struct Told {
    stores: BTreeMap<(usize, u64), Apart>,
    loads: BTreeMap<(usize, u64), Apart>,
}

impl Told {
    /// Of the traces of launches that ran together, each with the number of its device.
    pub fn of(launches: &[(usize, &[Trace])]) -> Self {
        let mut told = Self::default();
        let traces: Vec<_> = launches.iter().map(|(_, traces)| *traces).collect();
        let stores = Stores::of(&traces);
        for (launch, _, trace) in waves(&traces) {
            for (pc, ranges) in trace.events.iter().filter_map(loads) {
                for store in stores.of_others(ranges, launch, trace) {
                    let from = &traces[store.launch][store.wave].events[store.at];
                    let Event::Memory { pc: stored, .. } = from else { continue };
                    let apart = match launches[launch].0 == launches[store.launch].0 {
                        true => Apart::Workgroups,
                        false => Apart::Devices,
                    };
                    for end in [told.loads.entry((launch, pc)), told.stores.entry((store.launch, *stored))] {
                        end.and_modify(|known| *known = apart.max(*known)).or_insert(apart);
                    }
                }
            }
        }
        told
    }

    /// How far the others are at most that load what the instruction at `pc` of launch number `launch` stores.
    pub fn store(&self, launch: usize, pc: u64) -> Option<Apart> {
        self.stores.get(&(launch, pc)).copied()
    }

    /// Likewise those that stored what it loads.
    pub fn load(&self, launch: usize, pc: u64) -> Option<Apart> {
        self.loads.get(&(launch, pc)).copied()
    }
}

/// A store of data, and where it must be complete because a flag follows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Message {
    pub(super) launch: usize,
    /// Number of the trace.
    pub(super) wave: usize,
    pub(super) op: OpId,
    /// Event at which it must be complete.
    pub(super) end: usize,
    /// Address of the flag's store, or of the barrier before it.
    pub(super) used: u64,
}

/// The messages of launches: a wave loads what was stored later, and then what was stored before it.
pub(super) fn messages(launches: &[&[Trace]]) -> BTreeSet<Message> {
    let stores = Stores::of(launches);
    let mut found = BTreeSet::new();
    for (launch, _, trace) in waves(launches) {
        // What it has loaded, by workgroup, in the order of loading.
        let mut flags: FxHashMap<(usize, [u32; 3]), Vec<Store>> = FxHashMap::default();
        for (_, ranges) in trace.events.iter().filter_map(loads) {
            let of_others = stores.of_others(ranges, launch, trace);
            for data in &of_others {
                let of = &launches[data.launch][data.wave];
                for flag in flags.get(&(data.launch, of.workgroup)).into_iter().flatten() {
                    found.extend(order(launches, *data, *flag));
                }
            }
            for store in of_others {
                let workgroup = launches[store.launch][store.wave].workgroup;
                let known = flags.entry((store.launch, workgroup)).or_default();
                if !known.contains(&store) {
                    known.push(store);
                }
            }
        }
    }
    found
}

/// Where the store of data must be complete for a flag to tell of it.
fn order(launches: &[&[Trace]], data: Store, flag: Store) -> Option<Message> {
    let traces = launches[data.launch];
    let Event::Memory { op, .. } = &traces[data.wave].events[data.at] else { return None };
    let message = |end, used| Message { launch: data.launch, wave: data.wave, op: *op, end, used };
    if data.wave == flag.wave {
        let Event::Memory { pc, .. } = &traces[flag.wave].events[flag.at] else { return None };
        return (data.at < flag.at).then(|| message(flag.at, *pc));
    }
    // The last barrier before the flag.
    let barrier = |event: &Event| matches!(event, Event::Barrier { .. });
    let before = traces[flag.wave].events[..flag.at].iter().filter(|e| barrier(e)).count();
    let events = traces[data.wave].events.iter().enumerate();
    let (end, event) = events.filter(|(_, e)| barrier(e)).nth(before.checked_sub(1)?)?;
    let Event::Barrier { pc } = event else { return None };
    (data.at < end).then(|| message(end, *pc))
}

/// A store: launch, trace and event.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Store {
    launch: usize,
    wave: usize,
    at: usize,
}

/// All stores by word.
struct Stores<'t> {
    launches: &'t [&'t [Trace]],
    by_word: FxHashMap<u64, Vec<Store>>,
}

impl<'t> Stores<'t> {
    fn of(launches: &'t [&'t [Trace]]) -> Self {
        let mut by_word: FxHashMap<u64, Vec<Store>> = FxHashMap::default();
        for (launch, wave, trace) in waves(launches) {
            for (at, event) in trace.events.iter().enumerate() {
                if let Event::Memory { stores: true, ranges, .. } = event {
                    for word in words(ranges) {
                        by_word.entry(word).or_default().push(Store { launch, wave, at });
                    }
                }
            }
        }
        Self { launches, by_word }
    }

    /// Those to any of some bytes that other workgroups than that of `trace` made, each once.
    fn of_others(&self, ranges: &[(u64, u32)], launch: usize, trace: &Trace) -> Vec<Store> {
        let found = words(ranges).filter_map(|word| self.by_word.get(&word)).flatten();
        let others =
            found.filter(|s| s.launch != launch || self.launches[s.launch][s.wave].workgroup != trace.workgroup);
        let unique: FxHashSet<Store> = others.copied().collect();
        let mut unique: Vec<Store> = unique.into_iter().collect();
        unique.sort_unstable();
        unique
    }
}

fn loads(event: &Event) -> Option<(u64, &[(u64, u32)])> {
    match event {
        Event::Memory { loads: true, pc, ranges, .. } => Some((*pc, ranges)),
        _ => None,
    }
}

/// Every trace, with its launch and number.
fn waves<'t>(launches: &'t [&'t [Trace]]) -> impl Iterator<Item = (usize, usize, &'t Trace)> {
    let of = |(launch, traces): (usize, &'t &'t [Trace])| {
        traces.iter().enumerate().map(move |(wave, trace)| (launch, wave, trace))
    };
    launches.iter().enumerate().flat_map(of)
}

fn words(ranges: &[(u64, u32)]) -> impl Iterator<Item = u64> {
    ranges.iter().flat_map(|(at, n)| at / WORD..(at + u64::from(*n)).div_ceil(WORD))
}
