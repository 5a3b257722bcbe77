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
mod messages;
mod nan;
mod observe;
mod report;
mod shadow;
mod waits;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lathe_dsl::ir::Space;
use rustc_hash::FxHashMap;

use super::parties::Party;
use super::program::{Code, Instr, Pc, Program, Source};
use crate::stuck::Probe;
use clock::{Clock, Message};
use know::{Know, WaveId};
use messages::Messages;
use shadow::Shadow;

pub use checks::{Checks, UnknownCheck};
pub use report::{EndlessWait, MemoryPlace, Missing, NanMade, Race, Waiter, WaitsOn};

pub(super) use mark::{Mark, acquires, releases};
pub(super) use nan::check as check_nan;
pub(super) use observe::{Step, observe, place};
pub(super) use waits::Waits;

/// Bytes of global memory whose shadow lies together.
const PAGE: u64 = 4096;

/// Locks of the shadow of global memory: pages with the same remainder share one.
const SHARDS: usize = 64;

type Pages = FxHashMap<u64, Shadow>;

/// What the checks of a launch, or of a group of them, share among the workgroups.
pub(super) struct Monitor {
    checks: Checks,
    shards: Vec<Mutex<Pages>>,
    /// Held during every atomic access to global memory, so that value and message go together.
    messages: Mutex<Messages>,
    waits: Waits,
    /// By parameter: nothing is stored to its buffer. Empty where anything may be.
    constant: Vec<bool>,
    /// Wave numbers that a workgroup takes.
    waves_a_block: u32,
    /// Number of each launch's first workgroup, ascending, and its device.
    devices: Vec<(u64, u32)>,
    /// By device: what happened in the launches that have ended there. Only kept if others follow some.
    ended: Option<Mutex<Vec<Know>>>,
}

impl Monitor {
    /// For launches of which at most `most` workgroups have begun at the same time.
    pub(super) fn new(parties: &[Party<'_>], checks: Checks, most: u64) -> Self {
        let devices: Vec<(u64, u32)> = parties.iter().map(|p| (p.first, p.device)).collect();
        let count = |open: bool| parties.iter().filter(|p| p.is_open() || !open).map(|p| p.blocks).sum();
        let follows = parties.iter().any(|p| p.then.is_some());
        Self {
            checks,
            shards: std::iter::repeat_with(Mutex::default).take(if checks.races { SHARDS } else { 0 }).collect(),
            messages: Mutex::default(),
            waits: Waits::new(count(false), count(true), most),
            constant: match parties {
                [Party { program, .. }] => match &program.code {
                    Code::W32(code) => constant(program, code),
                    Code::W64(code) => constant(program, code),
                },
                // What one of them only reads, another one may write.
                _ => vec![],
            },
            waves_a_block: parties.iter().map(|p| p.program.block_waves()).max().unwrap_or(1),
            ended: follows.then(|| {
                Mutex::new(vec![Know::default(); devices.iter().map(|d| d.1 as usize + 1).max().unwrap_or(0)])
            }),
            devices,
        }
    }

    /// Number of the workgroup that a wave belongs to, and of the wave in it.
    fn block_of(&self, wave: WaveId) -> (u64, u32) {
        (u64::from(wave / self.waves_a_block), wave % self.waves_a_block)
    }

    fn device_of(&self, wave: WaveId) -> u32 {
        match self.devices.as_slice() {
            [(_, device)] => *device,
            devices => {
                let above = devices.partition_point(|(first, _)| *first <= self.block_of(wave).0);
                devices.get(above.saturating_sub(1)).map_or(0, |(_, device)| *device)
            }
        }
    }

    pub(super) fn waits(&self) -> Option<&Waits> {
        self.checks.waits.then_some(&self.waits)
    }

    fn pages(&self, page: u64) -> MutexGuard<'_, Pages> {
        lock(&self.shards[page as usize % SHARDS])
    }

    fn messages(&self) -> MutexGuard<'_, Messages> {
        lock(&self.messages)
    }

    /// Whether loads from parameter `param` cannot race.
    fn is_constant(&self, source: Source) -> bool {
        let Source::Param(param) = source else { return false };
        self.constant.get(param as usize).is_some_and(|constant| *constant)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// By parameter, whether nothing is stored to its buffer; nothing where a store may lead anywhere. Buffers that may be stored to are
/// no other parameter's.
fn constant<const W: usize>(program: &Program, code: &[Instr<W>]) -> Vec<bool> {
    if code.iter().any(stores_anywhere) {
        return vec![];
    }
    let mut constant = vec![true; program.params.len()];
    for param in code.iter().filter_map(stored) {
        constant[param as usize] = false;
    }
    constant
}

/// The parameter to whose buffer it stores.
fn stored<const W: usize>(instr: &Instr<W>) -> Option<u32> {
    match instr {
        Instr::BufferStore { source: Source::Param(param), .. }
        | Instr::BufferRmw { source: Source::Param(param), .. }
        | Instr::BufferCas { source: Source::Param(param), .. } => Some(*param),
        _ => None,
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

    /// Workgroup number `block` begins, on device number `device`.
    pub(super) fn begin(&mut self, block: u64, device: u32) {
        let epoch = self.next_epoch();
        (self.block, self.base) = (block, epoch);
        let first = (block as u32).wrapping_mul(self.monitor.waves_a_block);
        let know = self.monitor.ended.as_ref().map_or_else(Know::default, |all| lock(all)[device as usize].clone());
        for (wave, clock) in self.clocks.iter_mut().enumerate() {
            clock.start(first.wrapping_add(wave as u32), (block, device), epoch, know.clone());
        }
        self.lds_messages.clear();
        self.probes.fill(Probe::default());
        self.last_reads.fill(None);
    }

    /// The workgroup has ended.
    pub(super) fn end(&self) {
        if let Some(ended) = &self.monitor.ended {
            let mut ended = lock(ended);
            self.clocks.iter().for_each(|clock| ended[clock.device as usize].join(&clock.ended()));
        }
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
