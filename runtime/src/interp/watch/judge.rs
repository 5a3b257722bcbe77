//! The rule that decides whether two accesses are ordered, for LDS and for global memory.

use super::super::program::{Pc, Reg, Width};
use super::super::rows::{Regs, Row};
use super::Monitor;
use super::clock::Clock;
use super::know::{Domain, WaveId};
use super::report::Missing;
use super::shadow::{Entry, Judge};

/// What a store puts where; the lanes' first bytes are where their accesses begin.
pub(super) struct Stored<'s, const W: usize> {
    pub(super) regs: &'s Regs<W>,
    pub(super) value: Reg,
    pub(super) width: Width,
}

impl<const W: usize> Stored<'_, W> {
    /// Byte number `byte` of what lane `lane` stores.
    fn byte(&self, lane: usize, byte: u64) -> u8 {
        let (row, shift) =
            (self.value as usize + byte as usize / self.width.bytes() as usize, byte as u32 % self.width.bytes());
        let bits = match self.width {
            Width::B64 => self.regs.r64[row][lane],
            _ => self.regs.r32[row][lane].into(),
        };
        (bits >> (8 * shift)) as u8
    }
}

/// A race that was found: with which lane of which access, at which byte.
pub(super) struct Found {
    pub(super) old: Entry,
    pub(super) old_lane: u32,
    pub(super) lane: u32,
    pub(super) at: u64,
    pub(super) missing: Missing,
}

type Party = (Pc, WaveId, u32);

impl Found {
    /// The later party (in the code), the other one, and the place: the lowest is reported.
    fn order(&self, new: &Entry) -> (Party, Party, u64) {
        let (old, new) = ((self.old.pc, self.old.wave, self.old_lane), (new.pc, new.wave, self.lane));
        (old.max(new), old.min(new), self.at)
    }
}

/// Judges the accesses of one instruction, lane by lane.
pub(super) struct Verdicts<'j, const W: usize> {
    pub(super) clock: &'j Clock,
    pub(super) monitor: &'j Monitor,
    /// The instruction's accesses: all but lanes and bytes.
    pub(super) entry: Entry,
    /// In LDS: the epoch before which everything is past. In global memory, nothing ever is.
    pub(super) lds_base: Option<u32>,
    pub(super) stored: Option<&'j Stored<'j, W>>,
    pub(super) starts: &'j Row<u64, W>,
    /// The lane whose access is judged, and the word.
    pub(super) lane: u32,
    pub(super) word: u64,
    pub(super) found: Vec<Found>,
}

impl<const W: usize> Verdicts<'_, W> {
    fn same_block(&self, old: &Entry) -> bool {
        self.monitor.block_of(old.wave).0 == self.monitor.block_of(self.clock.id).0
    }
}

impl<const W: usize> Judge for Verdicts<'_, W> {
    #[inline(always)]
    fn is_past(&self, old: &Entry) -> bool {
        self.lds_base.is_some_and(|base| old.epoch < base)
    }

    fn unordered(&self, old: &Entry) -> u64 {
        let clock = self.clock;
        let domain = if self.lds_base.is_some() { Domain::Lds } else { old.how.global_domain() };
        let mut lanes = old.lanes;
        if old.wave == clock.id {
            let me = 1 << self.lane;
            // A wave that waited for its copies may touch all of them; that it did is checked elsewhere.
            if lanes & !me == 0 || old.how.copies() {
                return 0;
            }
            let joins = if domain == Domain::Lds { &clock.lds } else { &clock.global };
            lanes &= !me & !joins.before(old.epoch, me);
        }
        match lanes {
            0 => 0,
            _ => clock.know.missing(old.wave, domain, old.epoch, lanes),
        }
    }

    fn distance(&self, old: &Entry) -> u8 {
        match () {
            () if old.wave == self.clock.id => 1,
            () if self.same_block(old) => 2,
            () if self.monitor.device_of(old.wave) == self.clock.device => 3,
            () => 4,
        }
    }

    fn same_value(&self, _: &Entry, lane: u32, bytes: u8) -> bool {
        let Some(stored) = self.stored else { return false };
        (0..4u64).filter(|i| bytes >> i & 1 == 1).all(|i| {
            let at = self.word * 4 + i;
            let [old, new] = [lane, self.lane].map(|l| stored.byte(l as usize, at - self.starts[l as usize]));
            old == new
        })
    }

    fn race(&mut self, old: &Entry, lane: u32, bytes: u8) {
        let one_store = self.stored.is_some() && old.how.writes() && old.same_execution(&self.entry);
        let atomic = old.how.is_atomic() && self.entry.how.is_atomic();
        let missing = match (self.distance(old), self.lds_base) {
            _ if atomic => Missing::Scope,
            (1, _) if one_store => Missing::OneStore,
            (1, _) => Missing::InWave,
            (2, Some(_)) => Missing::Barrier,
            (2, None) => Missing::DrainAndBarrier,
            _ => Missing::Release,
        };
        let at = self.word * 4 + u64::from(bytes.trailing_zeros());
        let found = Found { old: *old, old_lane: lane, lane: self.lane, at, missing };
        // One a pair of instructions: the one that is reported in the end.
        match self.found.iter_mut().find(|f| f.old.pc == old.pc) {
            Some(known) if found.order(&self.entry) < known.order(&self.entry) => *known = found,
            Some(_) => {}
            None => self.found.push(found),
        }
    }
}
