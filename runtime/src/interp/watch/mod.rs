//! The checks that cost time: data races, waits without end, NaNs out of nothing. A launch without them runs code that
//! knows nothing of this module.
//!
//! The executor shows every instruction to [`observe`] before it executes it. `docs/src/sanitizer.md` has the memory model.

mod access;
mod checks;
mod clock;
mod judge;
mod know;
mod mark;
mod nan;
mod observe;
mod report;
mod shadow;
mod waits;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lathe_dsl::ir::{Access, ParamKind, Space};
use rustc_hash::FxHashMap;

use super::program::{Code, Instr, Pc, Program, Source};
use clock::{Clock, Message};
use shadow::Shadow;
use waits::{Probe, Waits};

pub use checks::{Checks, UnknownCheck};
pub use report::{EndlessWait, MemoryPlace, Missing, NanMade, Race, Waiter, WaitsOn};

pub(super) use mark::Mark;
pub(super) use nan::check as check_nan;
pub(super) use observe::{Step, observe, place};

/// Bytes of global memory whose shadow lies together.
const PAGE: u64 = 4096;

/// Locks of the shadow of global memory: pages with the same remainder share one.
const SHARDS: usize = 64;

type Pages = FxHashMap<u64, Shadow>;

/// By the address of a word.
type Messages = FxHashMap<u64, Arc<Message>>;

/// What the checks of a launch share among its workgroups.
pub(super) struct Monitor {
    checks: Checks,
    shards: Vec<Mutex<Pages>>,
    /// Held during every atomic access to global memory, so that value and message go together.
    messages: Mutex<Messages>,
    waits: Waits,
    /// Nothing is stored to buffers that are read only.
    keeps_read_only: bool,
    waves_a_block: u32,
}

impl Monitor {
    /// For a launch of which at most `most` workgroups have begun at the same time.
    pub(super) fn new(program: &Program, checks: Checks, blocks: u64, most: u64) -> Self {
        Self {
            checks,
            shards: std::iter::repeat_with(Mutex::default).take(if checks.races { SHARDS } else { 0 }).collect(),
            messages: Mutex::default(),
            waits: Waits::new(blocks, most),
            keeps_read_only: match &program.code {
                Code::W32(code) => !code.iter().any(stores_anywhere),
                Code::W64(code) => !code.iter().any(stores_anywhere),
            },
            waves_a_block: program.block_waves(),
        }
    }

    pub(super) fn waits(&self) -> Option<&Waits> {
        self.checks.waits.then_some(&self.waits)
    }

    fn pages(&self, page: u64) -> MutexGuard<'_, Pages> {
        self.shards[page as usize % SHARDS].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn messages(&self) -> MutexGuard<'_, Messages> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether loads from parameter `param` cannot race.
    fn is_constant(&self, program: &Program, source: Source) -> bool {
        let Source::Param(param) = source else { return false };
        let kind = program.params[param as usize].kind;
        self.keeps_read_only && matches!(kind, ParamKind::Buffer { access: Access::Read, .. })
    }
}

/// Whether it stores to global memory, wherever an address leads.
fn stores_anywhere<const W: usize>(instr: &Instr<W>) -> bool {
    matches!(
        instr,
        Instr::GlobalStore { .. }
            | Instr::Rmw { space: Space::Global, .. }
            | Instr::Cas { space: Space::Global, .. }
            | Instr::BufferStore { source: Source::Made, .. }
            | Instr::BufferRmw { source: Source::Made, .. }
            | Instr::BufferCas { source: Source::Made, .. }
    )
}

/// Where a wave read memory last.
#[derive(Clone, Copy)]
struct LastRead {
    pc: Pc,
    space: Space,
    /// Byte of LDS, or address.
    at: u64,
}

/// The state of one workgroup's checks; reused for one after the other.
pub(super) struct Watch {
    monitor: Arc<Monitor>,
    block: u64,
    clocks: Vec<Clock>,
    /// LDS accesses of earlier epochs happened before whatever comes.
    base: u32,
    lds: Shadow,
    lds_messages: FxHashMap<u32, Arc<Message>>,
    probes: Vec<Probe>,
    last_reads: Vec<Option<LastRead>>,
}

impl Watch {
    pub(super) fn new(program: &Program, monitor: &Arc<Monitor>) -> Self {
        let waves = program.block_waves();
        let lanes = |wave: u32| (program.block_threads() - wave * program.wave()).min(program.wave());
        let lds_words = if monitor.checks.races { program.lds_layout.1.div_ceil(4) } else { 0 };
        Self {
            monitor: monitor.clone(),
            block: 0,
            clocks: (0..waves).map(|wave| Clock::new(u64::MAX >> (64 - lanes(wave)))).collect(),
            base: 0,
            lds: Shadow::new(lds_words as usize),
            lds_messages: FxHashMap::default(),
            probes: vec![Probe::default(); waves as usize],
            last_reads: vec![None; waves as usize],
        }
    }

    /// Bytes that one for `program` takes.
    pub(super) fn bytes(program: &Program) -> u64 {
        u64::from(program.lds_layout.1) * Shadow::BYTES_A_BYTE
    }

    pub(super) fn monitor(&self) -> Arc<Monitor> {
        self.monitor.clone()
    }

    pub(super) fn checks(&self) -> Checks {
        self.monitor.checks
    }

    fn next_epoch(&self) -> u32 {
        self.clocks.iter().map(|c| c.epoch).max().unwrap_or(0) + 1
    }

    /// Workgroup number `block` begins.
    pub(super) fn begin(&mut self, block: u64) {
        let epoch = self.next_epoch();
        (self.block, self.base) = (block, epoch);
        let first = (block as u32).wrapping_mul(self.monitor.waves_a_block);
        for (wave, clock) in self.clocks.iter_mut().enumerate() {
            clock.start(first.wrapping_add(wave as u32), block, epoch);
        }
        self.lds_messages.clear();
        self.probes.fill(Probe::default());
        self.last_reads.fill(None);
    }

    /// All waves have come to a barrier and go on.
    pub(super) fn barrier(&mut self) {
        self.base = self.next_epoch();
        clock::barrier(&mut self.clocks, self.base);
    }

    /// Wave `wave` has come to a place where it lets others run; `state` is a digest of all that it goes on from.
    pub(super) fn yielded(&mut self, wave: usize, state: impl FnOnce() -> u64) {
        if let Some(waits) = self.monitor.waits() {
            self.probes[wave].visit(waits.version(), state);
        }
    }

    /// The version of memory at which none of `waves` goes on.
    pub(super) fn stuck(&self, waves: &[usize]) -> Option<u64> {
        let version = self.monitor.waits()?.version();
        (!waves.is_empty() && waves.iter().all(|w| self.probes[*w].is_stuck(version))).then_some(version)
    }

    /// What wave `wave`, in a loop from `first` to `last`, read last in it.
    pub(super) fn waits_on(
        &self,
        wave: usize,
        (first, last): (Pc, Pc),
        program: &Program,
        name: impl FnOnce(Space, u64) -> Option<MemoryPlace>,
    ) -> WaitsOn {
        let read = self.last_reads[wave].filter(|r| (first..=last).contains(&r.pc));
        let place = read.and_then(|r| Some((name(r.space, r.at)?, program.locations[r.pc as usize])));
        place.map_or(WaitsOn::Nothing, |(place, at)| WaitsOn::Memory(place, at))
    }
}

/// An instruction under way; memory that it changes has changed when this ends.
pub(super) struct Turn<'m> {
    /// An atomic access to global memory, with its message.
    _messages: Option<MutexGuard<'m, Messages>>,
    changes: Option<&'m Waits>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if let Some(waits) = self.changes {
            waits.changed();
        }
    }
}
