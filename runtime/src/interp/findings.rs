//! Collects findings so that the report is the same whatever the schedule.

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

use super::error::{Finding, FindingKind, Site, Unusual};
use super::program::Pc;

/// Which of several findings of the same kind is reported: the lowest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Order {
    /// Number of the workgroup, then of the thread in it.
    pub(super) at: (u64, u32),
    /// The same of the other side of a race.
    pub(super) other: (u64, u32),
    /// Which byte they have in common.
    pub(super) place: u64,
}

impl Order {
    /// What one thread does.
    pub(super) fn of(block: u64, thread: u32) -> Self {
        Self { at: (block, thread), other: (0, 0), place: 0 }
    }
}

/// What an instruction is reported for, once.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Kind {
    Access(FindingKind),
    /// With that other instruction.
    Race(Pc),
    Nan,
}

/// An instruction of a launch, by the launch's place in its group.
type Place = (u32, Pc);

/// One finding an instruction and kind.
#[derive(Default)]
pub(super) struct Findings(FxHashMap<(Place, Kind), (Order, Finding)>);

impl Findings {
    /// Records what instruction `place` did.
    pub(super) fn add(&mut self, place: Place, kind: Kind, order: Order, site: Site, what: Unusual) {
        self.merge_one((place, kind), order, Finding { site, what, count: 1 });
    }

    /// Takes over what another worker found.
    pub(super) fn merge(&mut self, other: Self) {
        for (key, (order, finding)) in other.0 {
            self.merge_one(key, order, finding);
        }
    }

    fn merge_one(&mut self, key: (Place, Kind), order: Order, new: Finding) {
        match self.0.entry(key) {
            Entry::Vacant(e) => {
                e.insert((order, new));
            }
            Entry::Occupied(mut e) => {
                let (first, kept) = e.get_mut();
                let count = match key.1 {
                    Kind::Race(_) => 1,
                    _ => kept.count.saturating_add(new.count),
                };
                // A thread's own accesses come in program order, so on a tie the one kept is the first.
                if order < *first {
                    (*first, *kept) = (order, new);
                }
                kept.count = count;
            }
        }
    }

    /// The findings of each of `parties` launches in code order, at most `limit`, and how many are left out.
    pub(super) fn into_reports(self, parties: usize, limit: usize) -> Vec<(Vec<Finding>, usize)> {
        let mut all: Vec<_> = self.0.into_iter().collect();
        all.sort_by_key(|(key, _)| *key);
        let mut reports = vec![(vec![], 0); parties];
        for (((party, _), _), (_, finding)) in all {
            let (kept, omitted) = &mut reports[party as usize];
            if kept.len() < limit {
                kept.push(finding);
            } else {
                *omitted += 1;
            }
        }
        reports
    }
}
