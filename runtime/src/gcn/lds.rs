//! LDS of one workgroup, with a shadow that finds unsynchronised accesses of different waves.
//!
//! Two accesses of one byte by different waves, at least one of them a write, must be separated by a barrier, and the
//! earlier one must have been waited for before its wave arrived there: a barrier orders waves, not their outstanding
//! LDS operations. Every byte remembers its last writer and the waves that read it since the last barrier.

use crate::gcn::error::{ErrorKind, Fault, Race};
use crate::gcn::trace::LdsAccess;
use crate::gcn::wait::{Outstanding, Seq};

/// What a byte remembers of its last writer.
#[derive(Clone, Copy, Default)]
struct Writer {
    /// Wave + 1; 0 = nobody.
    wave: u8,
    atomic: bool,
    /// Counted by vmcnt (a load into LDS), else by lgkmcnt.
    by_vm: bool,
    epoch: u32,
    seq: Seq,
}

#[derive(Clone, Copy, Default)]
struct Shadow {
    writer: Writer,
    readers: u32,
    readers_epoch: u32,
    undefined: u8,
}

/// A read that was outstanding when its wave arrived at a barrier.
struct Unfinished {
    wave: u32,
    start: u32,
    end: u32,
}

/// A read that may still be outstanding.
struct Reading {
    seq: Seq,
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
    /// Per wave: reads since its last complete wait.
    reading: Vec<Vec<Reading>>,
    unfinished: Vec<Unfinished>,
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
            reading: (0..waves).map(|_| Vec::new()).collect(),
            unfinished: Vec::new(),
        }
    }

    /// Called when all waves have arrived at a barrier, with each wave's counters as they were then.
    pub(crate) fn barrier<'a>(&mut self, waves: impl Iterator<Item = &'a Outstanding>) {
        self.epoch += 1;
        self.unfinished.clear();
        for (wave, o) in waves.enumerate() {
            self.complete[wave] = Complete { lds: o.lds.retired, vm: o.vm.retired };
            self.reading[wave].retain(|r| r.seq > o.lds.retired);
            self.unfinished.extend(self.reading[wave].iter().map(|r| Unfinished {
                wave: wave as u32,
                start: r.start,
                end: r.end,
            }));
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
        let writes = access != LdsAccess::Read;
        if writes {
            let crossed = self
                .unfinished
                .iter()
                .find(|u| u.wave != by.wave && (u.start as usize) < range.end && range.start < u.end as usize);
            if let Some(u) = crossed {
                let address = (u.start as usize).max(range.start) as u32;
                return Err(ErrorKind::LdsRace { address, other: u.wave, race: Race::ReadNotWaitedFor });
            }
        }
        for at in range.clone() {
            let s = &mut self.shadow[at];
            let w = s.writer;
            if w.wave != 0 {
                let other = u32::from(w.wave) - 1;
                if other == by.wave {
                    // The wave's own DS operations are in order; a load into LDS is not ordered with them.
                    if w.by_vm && !by.vm && w.seq > own.vm.retired {
                        return Err(ErrorKind::LdsBeforeWait { address: at as u32 });
                    }
                } else if !(w.atomic && access == LdsAccess::Atomic) {
                    let done = self.complete[other as usize];
                    let race = if w.epoch == epoch {
                        Some(if writes { Race::WriteAfterWrite } else { Race::ReadOfUnsynchronisedWrite })
                    } else if w.seq > if w.by_vm { done.vm } else { done.lds } {
                        Some(Race::WriteNotWaitedFor)
                    } else {
                        None
                    };
                    if let Some(race) = race {
                        return Err(ErrorKind::LdsRace { address: at as u32, other, race });
                    }
                }
            }
            if s.readers_epoch != epoch {
                s.readers = 0;
                s.readers_epoch = epoch;
            }
            if writes {
                let others = s.readers & !(1 << by.wave);
                if others != 0 {
                    let other = others.trailing_zeros();
                    return Err(ErrorKind::LdsRace { address: at as u32, other, race: Race::WriteAfterRead });
                }
                s.writer = Writer {
                    wave: by.wave as u8 + 1,
                    atomic: access == LdsAccess::Atomic,
                    by_vm: by.vm,
                    epoch,
                    seq: by.seq,
                };
            } else {
                s.readers |= 1 << by.wave;
            }
        }
        if access == LdsAccess::Read && !by.vm {
            let reading = &mut self.reading[by.wave as usize];
            // Keep the list short: what is complete can no longer cross a barrier.
            if reading.len() >= 4096 {
                reading.retain(|r| r.seq > own.lds.retired);
            }
            reading.push(Reading { seq: by.seq, start: range.start as u32, end: range.end as u32 });
        }
        Ok(())
    }

    /// Reads up to 16 bytes: values and undefined bits.
    pub(crate) fn read(
        &mut self,
        address: u64,
        size: u32,
        by: By,
        own: &Outstanding,
    ) -> Result<([u8; 16], [u8; 16]), ErrorKind> {
        let range = self.range(address, size)?;
        self.order(range.clone(), LdsAccess::Read, by, own)?;
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
            self.lds.read(address, 4, by, &self.out[wave]).map(drop)
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
        for wave in 0..2 {
            let by = By { wave, seq: t.out[wave as usize].issue_lds(), vm: false };
            t.lds.update(0, 4, by, &t.out[wave as usize], |v, _| (v + 1, 0)).unwrap();
        }
        assert_eq!(race(t.read(0, 0)), Some(Race::ReadOfUnsynchronisedWrite));
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
