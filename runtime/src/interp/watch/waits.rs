//! Finds waits that never end.
//!
//! A wave whose state (place, active lanes, registers) comes back while no memory changed goes round for ever. When every
//! wave of all workgroups that have begun does, or stands at a barrier, nobody is left to change memory.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::super::error::{Fault, FaultKind};
use super::report::{EndlessWait, Waiter};

/// Other waiting waves that a report names.
const NAMED: usize = 3;

struct Table {
    /// Workgroups that may begin or have: those of launches whose turn has come.
    open: u64,
    begun: u64,
    ended: u64,
    /// Workgroups that cannot go on: at which version of memory, and what their waves wait for, a looping one first.
    stuck: BTreeMap<u64, (u64, Vec<Waiter>)>,
    reported: bool,
}

/// What a launch's workgroups wait for.
pub(in super::super) struct Waits {
    /// Counts changes of memory, after each.
    version: AtomicU64,
    blocks: u64,
    /// Workgroups that can have begun at the same time.
    most: u64,
    table: Mutex<Table>,
}

impl Waits {
    /// Of `blocks` workgroups, of which `open` may begin.
    pub(super) fn new(blocks: u64, open: u64, most: u64) -> Self {
        let table = Table { open, begun: 0, ended: 0, stuck: BTreeMap::new(), reported: false };
        Self { version: AtomicU64::new(1), blocks, most, table: Mutex::new(table) }
    }

    pub(in super::super) fn version(&self) -> u64 {
        self.version.load(Ordering::SeqCst)
    }

    pub(in super::super) fn changed(&self) {
        self.version.fetch_add(1, Ordering::SeqCst);
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(in super::super) fn begin(&self) {
        self.table().begun += 1;
    }

    /// Workgroup `block` has ended, so that `opened` further ones may begin.
    pub(in super::super) fn end(&self, block: u64, opened: u64) {
        let mut table = self.table();
        table.ended += 1;
        table.open += opened;
        table.stuck.remove(&block);
    }

    /// Workgroup `block` cannot go on as long as memory stays at `version`. If nobody can, the launch's fault, once; it
    /// is the lowest workgroup's.
    pub(in super::super) fn stuck(
        &self,
        block: u64,
        version: u64,
        waiters: impl FnOnce() -> Vec<Waiter>,
    ) -> Option<(u64, Fault)> {
        let mut table = self.table();
        if table.stuck.get(&block).is_none_or(|(known, _)| *known != version) {
            table.stuck.insert(block, (version, waiters()));
        }
        let running = table.begun - table.ended;
        let all_begun = table.begun == table.open || running >= self.most;
        let all_stuck = table.stuck.len() as u64 == running && table.stuck.values().all(|(v, _)| *v == version);
        if table.reported || !all_begun || !all_stuck || self.version() != version {
            return None;
        }
        table.reported = true;
        let mut waiters = table.stuck.values().flat_map(|(_, waiters)| waiters).cloned();
        let first = waiters.next()?;
        let others: Vec<Waiter> = waiters.by_ref().take(NAMED).collect();
        let kind = FaultKind::EndlessWait(Box::new(EndlessWait {
            on: first.on,
            others,
            more: waiters.count(),
            not_begun: self.blocks - table.begun,
        }));
        let block = *table.stuck.keys().next()?;
        Some((block, Fault { site: first.site, kind }))
    }
}
