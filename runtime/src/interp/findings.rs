//! Collects findings so that the report is the same whatever the schedule.

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

use super::error::{BufferAccess, Finding, FindingKind, Site};
use super::program::Pc;

/// Number of the workgroup, then of the thread in it.
type Order = (u64, u32);

/// One finding an instruction and kind.
#[derive(Default)]
pub(super) struct Findings(FxHashMap<(Pc, FindingKind), (Order, Finding)>);

impl Findings {
    /// Records an access of the thread `order`.
    pub(super) fn add(&mut self, pc: Pc, order: Order, site: Site, access: BufferAccess) {
        self.merge_one((pc, access.kind), order, Finding { site, access, count: 1 });
    }

    /// Takes over what another worker found.
    pub(super) fn merge(&mut self, other: Self) {
        for (key, (order, finding)) in other.0 {
            self.merge_one(key, order, finding);
        }
    }

    fn merge_one(&mut self, key: (Pc, FindingKind), order: Order, new: Finding) {
        match self.0.entry(key) {
            Entry::Vacant(e) => {
                e.insert((order, new));
            }
            Entry::Occupied(mut e) => {
                let (first, kept) = e.get_mut();
                let count = kept.count.saturating_add(new.count);
                // A thread's own accesses come in program order, so on a tie the one kept is the first.
                if order < *first {
                    (*first, *kept) = (order, new);
                }
                kept.count = count;
            }
        }
    }

    /// The findings in code order, at most `limit`, and how many are left out.
    pub(super) fn into_report(self, limit: usize) -> (Vec<Finding>, usize) {
        let mut all: Vec<_> = self.0.into_iter().collect();
        all.sort_by_key(|(key, _)| *key);
        let omitted = all.len().saturating_sub(limit);
        (all.into_iter().take(limit).map(|(_, (_, finding))| finding).collect(), omitted)
    }
}
