//! LDS of one workgroup, with a shadow that finds unsynchronised accesses of different waves.
//!
//! Two accesses of one byte by different waves, at least one of them a write, must be separated by a barrier, and the
//! earlier one must have been waited for before its wave arrived there: a barrier orders waves, not their outstanding
//! LDS operations. Atomics do not collide with each other; with loads and stores they do. (An atomic load or store of
//! the source is an ordinary one in the machine code, so that waves which talk through those are reported too.)
//! Every byte remembers its last store, and the waves that loaded it or worked on it atomically since the last barrier.

use crate::gcn::error::{ErrorKind, Fault, Race};
use crate::gcn::trace::LdsAccess;
use crate::gcn::wait::{Outstanding, Seq};

/// What a byte remembers of its last store.
#[derive(Clone, Copy, Default)]
struct Writer {
    /// Wave + 1; 0 = nobody.
    wave: u8,
    /// Counted by vmcnt (a load into LDS), else by lgkmcnt.
    by_vm: bool,
    epoch: u32,
    seq: Seq,
}

#[derive(Clone, Copy, Default)]
struct Shadow {
    writer: Writer,
    /// Waves that loaded it in `epoch`.
    readers: u32,
    /// Waves that worked on it atomically in `epoch`.
    atomics: u32,
    epoch: u32,
    undefined: u8,
}

/// A load or an atomic that may still be outstanding; or was, when its wave arrived at a barrier.
#[derive(Clone, Copy)]
struct Access {
    wave: u32,
    seq: Seq,
    atomic: bool,
    start: u32,
    end: u32,
}

/// LDS of one workgroup.
pub(crate) struct Lds {
    data: Vec<u8>,
    shadow: Vec<Shadow>,
    /// Barriers passed, from 1.
    epoch: u32,
    /// Per wave: what was complete when it arrived at the last barrier.
    complete: Vec<Complete>,
    /// Per wave: loads and atomics since its last complete wait.
    running: Vec<Vec<Access>>,
    unfinished: Vec<Access>,
    /// Grows with every change.
    version: u64,
}

#[derive(Clone, Copy, Default)]
struct Complete {
    lds: Seq,
    vm: Seq,
}

/// Who accesses, and what completes the access.
#[derive(Clone, Copy)]
pub(crate) struct By {
    pub(crate) wave: u32,
    pub(crate) seq: Seq,
    /// Counted by vmcnt.
    pub(crate) vm: bool,
}

impl Lds {
    /// `bytes` of undefined LDS shared by `waves`.
    pub(crate) fn new(bytes: usize, waves: usize) -> Self {
        Self {
            data: vec![0xC7; bytes],
            shadow: vec![Shadow { undefined: 0xFF, ..Shadow::default() }; bytes],
            epoch: 1,
            complete: vec![Complete::default(); waves],
            running: (0..waves).map(|_| Vec::new()).collect(),
            unfinished: Vec::new(),
            version: 0,
        }
    }

    /// Grows with every change of a byte.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Called when all waves have arrived at a barrier, with each wave's counters as they were then.
    pub(crate) fn barrier<'a>(&mut self, waves: impl Iterator<Item = &'a Outstanding>) {
        self.epoch += 1;
        self.unfinished.clear();
        for (wave, o) in waves.enumerate() {
            self.complete[wave] = Complete { lds: o.lds.retired, vm: o.vm.retired };
            self.running[wave].retain(|a| a.seq > o.lds.retired);
            self.unfinished.extend(self.running[wave].iter().copied());
        }
    }

    fn range(&self, address: u64, size: u32) -> Result<std::ops::Range<usize>, ErrorKind> {
        let limit = self.data.len();
        match usize::try_from(address).ok().and_then(|a| Some((a, a.checked_add(size as usize)?))) {
            Some((start, end)) if end <= limit => Ok(start..end),
            _ => Err(ErrorKind::LdsOutOfRange { address, size, limit: limit as u32 }),
        }
    }

    /// Checks the order of an access against other waves' accesses, and remembers it.
    fn order(
        &mut self,
        range: std::ops::Range<usize>,
        access: LdsAccess,
        by: By,
        own: &Outstanding,
    ) -> Result<(), ErrorKind> {
        let epoch = self.epoch;
        let (writes, atomic) = (access != LdsAccess::Read, access == LdsAccess::Atomic);
        // Loads collide with writes only, atomics not with each other.
        let collides = |u: &&Access| u.wave != by.wave && if u.atomic { !atomic } else { writes };
        let overlaps = |u: &&Access| (u.start as usize) < range.end && range.start < u.end as usize;
        if let Some(u) = self.unfinished.iter().filter(collides).find(overlaps) {
            let address = (u.start as usize).max(range.start) as u32;
            let race = if u.atomic { Race::WriteNotWaitedFor } else { Race::ReadNotWaitedFor };
            return Err(ErrorKind::LdsRace { address, other: u.wave, race });
        }
        for at in range.clone() {
            let s = &mut self.shadow[at];
            let race = |other, race| Err(ErrorKind::LdsRace { address: at as u32, other, race });
            let unordered = if writes { Race::WriteAfterWrite } else { Race::ReadOfUnsynchronisedWrite };
            let w = s.writer;
            if w.wave != 0 {
                let other = u32::from(w.wave) - 1;
                if other == by.wave {
                    // The wave's own DS operations are in order; a load into LDS is not ordered with them.
                    if w.by_vm && !by.vm && w.seq > own.vm.retired {
                        return Err(ErrorKind::LdsBeforeWait { address: at as u32 });
                    }
                } else {
                    let done = self.complete[other as usize];
                    if w.epoch == epoch {
                        return race(other, unordered);
                    }
                    if w.seq > if w.by_vm { done.vm } else { done.lds } {
                        return race(other, Race::WriteNotWaitedFor);
                    }
                }
            }
            if s.epoch != epoch {
                (s.readers, s.atomics, s.epoch) = (0, 0, epoch);
            }
            let me = 1 << by.wave;
            let others = s.atomics & !me;
            if !atomic && others != 0 {
                return race(others.trailing_zeros(), unordered);
            }
            let others = s.readers & !me;
            if writes && others != 0 {
                return race(others.trailing_zeros(), Race::WriteAfterRead);
            }
            match access {
                LdsAccess::Read => s.readers |= me,
                LdsAccess::Atomic => s.atomics |= me,
                LdsAccess::Write => {
                    s.writer = Writer { wave: by.wave as u8 + 1, by_vm: by.vm, epoch, seq: by.seq };
                }
            }
        }
        if access != LdsAccess::Write && !by.vm {
            let running = &mut self.running[by.wave as usize];
            // Keep the list short: what is complete can no longer cross a barrier.
            if running.len() >= 4096 {
                running.retain(|a| a.seq > own.lds.retired);
            }
            let (start, end) = (range.start as u32, range.end as u32);
            running.push(Access { wave: by.wave, seq: by.seq, atomic, start, end });
        }
        Ok(())
    }

    /// Reads up to 16 bytes: values and undefined bits. `access` is what other waves' accesses are checked against.
    pub(crate) fn read(
        &mut self,
        address: u64,
        size: u32,
        access: LdsAccess,
        by: By,
        own: &Outstanding,
    ) -> Result<([u8; 16], [u8; 16]), ErrorKind> {
        let range = self.range(address, size)?;
        self.order(range.clone(), access, by, own)?;
        Ok(self.peek(range))
    }

    fn peek(&self, range: std::ops::Range<usize>) -> ([u8; 16], [u8; 16]) {
        let (mut v, mut u) = ([0; 16], [0; 16]);
        for (i, at) in range.enumerate() {
            v[i] = self.data[at];
            u[i] = self.shadow[at].undefined;
        }
        (v, u)
    }

    /// Writes bytes with undefined bits.
    pub(crate) fn write(
        &mut self,
        address: u64,
        bytes: &[u8],
        undefined: &[u8],
        by: By,
        own: &Outstanding,
    ) -> Result<(), ErrorKind> {
        let range = self.range(address, bytes.len() as u32)?;
        self.order(range.clone(), LdsAccess::Write, by, own)?;
        self.poke(range, bytes, undefined);
        Ok(())
    }

    fn poke(&mut self, range: std::ops::Range<usize>, bytes: &[u8], undefined: &[u8]) {
        for (i, at) in range.enumerate() {
            self.version += u64::from(self.data[at] != bytes[i]);
            self.data[at] = bytes[i];
            self.shadow[at].undefined = undefined[i];
        }
    }

    /// Replaces up to 8 bytes in one step by `f(old value, old undefined bits)`; returns the old ones.
    pub(crate) fn update(
        &mut self,
        address: u64,
        size: u32,
        by: By,
        own: &Outstanding,
        f: impl FnOnce(u64, u64) -> (u64, u64),
    ) -> Result<(u64, u64), ErrorKind> {
        let range = self.range(address, size)?;
        self.order(range.clone(), LdsAccess::Atomic, by, own)?;
        let (v, u) = self.peek(range.clone());
        let word = |b: [u8; 16]| u64::from_le_bytes(b[..8].try_into().expect("8 of 16 bytes"));
        let old = (word(v), word(u));
        let new = f(old.0, old.1);
        self.poke(range, &new.0.to_le_bytes(), &new.1.to_le_bytes());
        Ok(old)
    }

    /// Fails if two lanes of one store write different bytes to one address. `writes` holds address and bytes a lane.
    pub(crate) fn lane_conflict(writes: &mut [(u64, usize, [u8; 16], usize)]) -> Result<(), Fault> {
        // Sorted by address: an overlap is between neighbours unless one range holds another's start.
        writes.sort_unstable_by_key(|w| (w.0, w.1));
        let mut end = 0u64;
        let overlap = writes.iter().any(|w| {
            let hit = w.0 < end;
            end = end.max(w.0 + w.1 as u64);
            hit
        });
        if !overlap {
            return Ok(());
        }
        let mut bytes = std::collections::BTreeMap::new();
        for (address, size, data, lane) in writes.iter() {
            for i in 0..*size {
                let at = address + i as u64;
                if *bytes.entry(at).or_insert(data[i]) != data[i] {
                    return Err(ErrorKind::LdsLaneConflict(at as u32).lane(*lane));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gcn::wait::WaitCounts;

    struct Two {
        lds: Lds,
        out: [Outstanding; 2],
    }

    impl Two {
        fn new() -> Self {
            Self { lds: Lds::new(16, 2), out: [Outstanding::default(); 2] }
        }

        fn write(&mut self, wave: usize, address: u64) -> Result<(), ErrorKind> {
            let by = By { wave: wave as u32, seq: self.out[wave].issue_lds(), vm: false };
            self.lds.write(address, &[1; 4], &[0; 4], by, &self.out[wave])
        }

        fn read(&mut self, wave: usize, address: u64) -> Result<(), ErrorKind> {
            let by = By { wave: wave as u32, seq: self.out[wave].issue_lds(), vm: false };
            self.lds.read(address, 4, LdsAccess::Read, by, &self.out[wave]).map(drop)
        }

        fn add(&mut self, wave: usize, address: u64) -> Result<(), ErrorKind> {
            let by = By { wave: wave as u32, seq: self.out[wave].issue_lds(), vm: false };
            self.lds.update(address, 4, by, &self.out[wave], |v, _| (v + 1, 0)).map(drop)
        }

        fn wait(&mut self, wave: usize) {
            self.out[wave].wait(WaitCounts { lgkm: Some(0), ..WaitCounts::default() });
        }

        fn barrier(&mut self) {
            self.lds.barrier(self.out.iter());
        }
    }

    fn race(r: Result<(), ErrorKind>) -> Option<Race> {
        match r {
            Ok(()) => None,
            Err(ErrorKind::LdsRace { race, .. }) => Some(race),
            Err(e) => panic!("{e}"),
        }
    }

    #[test]
    fn a_waited_write_and_a_barrier_order_two_waves() {
        let mut t = Two::new();
        t.write(0, 0).unwrap();
        t.wait(0);
        t.barrier();
        t.read(1, 0).unwrap();
        t.wait(1);
        t.barrier();
        t.write(0, 0).unwrap();
    }

    #[test]
    fn without_barrier_every_pair_with_a_write_is_a_race() {
        let mut t = Two::new();
        t.write(0, 0).unwrap();
        assert_eq!(race(t.read(1, 0)), Some(Race::ReadOfUnsynchronisedWrite));
        assert_eq!(race(t.write(1, 2)), Some(Race::WriteAfterWrite));
        t.read(0, 8).unwrap();
        assert_eq!(race(t.write(1, 8)), Some(Race::WriteAfterRead));
        assert_eq!(race(t.read(1, 8)), None);
        assert_eq!(race(t.write(0, 0)), None, "a wave never races with itself");
    }

    #[test]
    fn a_barrier_does_not_complete_outstanding_operations() {
        let mut t = Two::new();
        t.write(0, 0).unwrap();
        t.read(0, 8).unwrap();
        t.barrier();
        assert_eq!(race(t.read(1, 0)), Some(Race::WriteNotWaitedFor));
        assert_eq!(race(t.write(1, 8)), Some(Race::ReadNotWaitedFor));
    }

    #[test]
    fn atomics_of_two_waves_do_not_race_with_each_other() {
        let mut t = Two::new();
        t.add(0, 0).unwrap();
        t.add(1, 0).unwrap();
        assert_eq!(race(t.read(0, 0)), Some(Race::ReadOfUnsynchronisedWrite));
        // The last one to work on it is no exception.
        assert_eq!(race(t.read(1, 0)), Some(Race::ReadOfUnsynchronisedWrite));
        assert_eq!(race(t.write(1, 0)), Some(Race::WriteAfterWrite));
    }

    #[test]
    fn atomics_do_not_hide_what_was_there_before_them() {
        let mut t = Two::new();
        t.write(0, 0).unwrap();
        t.add(0, 0).unwrap();
        assert_eq!(race(t.add(1, 0)), Some(Race::WriteAfterWrite));
        t.read(0, 8).unwrap();
        t.add(0, 8).unwrap();
        assert_eq!(race(t.add(1, 8)), Some(Race::WriteAfterRead));
    }

    #[test]
    fn atomics_cross_a_barrier_only_if_waited_for() {
        let mut t = Two::new();
        t.add(0, 0).unwrap();
        t.add(1, 0).unwrap();
        t.wait(1);
        t.barrier();
        assert_eq!(race(t.read(1, 0)), Some(Race::WriteNotWaitedFor));
        assert_eq!(race(t.add(1, 0)), None);
        let mut t = Two::new();
        t.add(0, 0).unwrap();
        t.add(1, 0).unwrap();
        (0..2).for_each(|w| t.wait(w));
        t.barrier();
        assert_eq!(race(t.read(1, 0)), None);
        assert_eq!(race(t.add(0, 0)), Some(Race::WriteAfterRead));
    }

    #[test]
    fn bounds_and_lane_conflicts() {
        let mut t = Two::new();
        assert!(matches!(t.read(0, 14), Err(ErrorKind::LdsOutOfRange { address: 14, size: 4, limit: 16 })));
        let lane = |address, byte, lane| (address, 4, [byte; 16], lane);
        assert!(Lds::lane_conflict(&mut [lane(0, 1, 0), lane(4, 2, 1), lane(0, 1, 2)]).is_ok());
        assert!(Lds::lane_conflict(&mut [lane(0, 1, 0), lane(4, 2, 1), lane(2, 1, 2)]).is_err());
    }
}
