//! Memory instructions of one wave.

use lathe_dsl::ir::Space;

use super::allocations::Allocation;
use super::error::{AccessKind, BufferAccess, FaultKind, FindingKind, Unusual};
use super::findings::{Kind, Order};
use super::lds::Lds;
use super::memory::GlobalBuffer;
use super::program::{Offset, Pc, Reg, Source};
use super::rows::{Cell, Done, Raised, Regs, Row, each_lane, lanes_where};
use super::watch::{Mark, acquires, releases};
use super::wave::Context;
use crate::visibility::Reach;

fn at_lane<T>(lane: usize, result: Result<T, Box<FaultKind>>) -> Result<T, Raised> {
    result.map_err(|kind| Raised(lane as u32, kind))
}

#[inline(always)]
pub(super) fn lds_load<C: Cell, const W: usize, const B: usize>(
    regs: &mut Regs<W>,
    lds: &Lds,
    dst: Reg,
    pointer: Reg,
    (n, align): (u32, u32),
    mask: u64,
) -> Done {
    let pointers = regs.r64[pointer as usize];
    let rows = &mut C::file_mut(regs)[dst as usize..(dst + n) as usize];
    each_lane::<W>(mask, |lane| {
        let bytes = at_lane(lane, lds.load::<B>(pointers[lane], rows.len(), align))?;
        for (row, element) in rows.iter_mut().zip(bytes.chunks_exact(B)) {
            row[lane] = from_bytes(element);
        }
        Ok(())
    })
}

#[inline(always)]
pub(super) fn lds_store<C: Cell, const W: usize, const B: usize>(
    regs: &Regs<W>,
    lds: &mut Lds,
    value: Reg,
    pointer: Reg,
    (n, align): (u32, u32),
    mask: u64,
) -> Done {
    let pointers = &regs.r64[pointer as usize];
    let rows = &C::file(regs)[value as usize..(value + n) as usize];
    each_lane::<W>(mask, |lane| {
        let bytes = at_lane(lane, lds.store::<B>(pointers[lane], rows.len(), align))?;
        for (row, element) in rows.iter().zip(bytes.chunks_exact_mut(B)) {
            element.copy_from_slice(&row[lane].bits().to_le_bytes()[..B]);
        }
        Ok(())
    })
}

#[inline(always)]
fn from_bytes<C: Cell>(bytes: &[u8]) -> C {
    let mut bits = [0; 8];
    bits[..bytes.len()].copy_from_slice(bytes);
    C::from_bits(u64::from_le_bytes(bits))
}

/// Places of the lanes' accesses, in bytes from the buffer's start. Numbers past 64 bits stop there; no buffer reaches
/// that far.
#[inline(always)]
pub(super) fn byte_offsets<const W: usize>(regs: &Regs<W>, offset: Reg, from: Offset) -> Row<i64, W> {
    let scale = i64::from(from.scale);
    if from.wide {
        regs.r64[offset as usize].map(|x| (x as i64).saturating_mul(scale))
    } else {
        regs.r32[offset as usize].map(|x| i64::from(x) * scale)
    }
}

/// One memory instruction of one wave, in global memory.
pub(super) struct Access<'c, 'a> {
    pub(super) cx: &'c mut Context<'a>,
    pub(super) pc: Pc,
    pub(super) wave: u32,
    pub(super) kind: AccessKind,
    /// Where the last lane's allocation is ([`Allocations::find_near`](super::allocations::Allocations::find_near)).
    pub(super) hint: usize,
}

/// A buffer that an instruction accesses: a parameter with its name, or address and extent lane by lane.
#[derive(Clone, Copy)]
pub(super) enum Place<'r, 'a, const W: usize> {
    Param(&'a GlobalBuffer, &'static str),
    Made(&'r [Row<u64, W>; 2]),
}

/// The registers of `source`, copied so that results may be written.
pub(super) fn made<const W: usize>(regs: &Regs<W>, source: Source, buffer: Reg) -> [Row<u64, W>; 2] {
    match source {
        Source::Param(_) => [[0; W]; 2],
        Source::Made => [regs.r64[buffer as usize], regs.r64[buffer as usize + 1]],
    }
}

impl<'a> Access<'_, 'a> {
    pub(super) fn place<'r, const W: usize>(&self, source: Source, rows: &'r [Row<u64, W>; 2]) -> Place<'r, 'a, W> {
        match source {
            Source::Param(p) => Place::Param(self.cx.buffers[p as usize], self.cx.program.params[p as usize].name),
            Source::Made => Place::Made(rows),
        }
    }

    /// Records that lane `lane` did something unusual; with strict bounds, leaving the buffer is a fault.
    #[cold]
    fn unusual(&mut self, lane: usize, access: BufferAccess) -> Done {
        if self.cx.strict_bounds && matches!(access.kind, FindingKind::OutOfRange | FindingKind::Straddle) {
            return Err(Raised::new(lane, FaultKind::Buffer(access)));
        }
        let site = self.cx.site(self.pc, self.wave, lane as u32);
        let thread = self.wave * self.cx.program.wave() + lane as u32;
        let (kind, order) = (Kind::Access(access.kind), Order::of(self.cx.block_number, thread));
        self.cx.findings.add((self.cx.party, self.pc), kind, order, site, Unusual::Access(access));
        Ok(())
    }

    /// The bytes of an access through a pointer.
    #[inline(always)]
    fn resolve(
        &mut self,
        lane: usize,
        address: u64,
        bytes: usize,
        align: u32,
    ) -> Result<(Allocation<'a>, usize), Raised> {
        if address & (u64::from(align) - 1) != 0 {
            let kind = FaultKind::BrokenAlignment { access: self.kind, place: "global memory", address, align };
            return Err(Raised::new(lane, kind));
        }
        self.cx.allocations.find_near(&mut self.hint, address, bytes as u64).ok_or_else(|| {
            Raised::new(lane, FaultKind::Unallocated { access: self.kind, address, bytes: bytes as u32 })
        })
    }

    /// Reading bytes that nobody wrote is a finding.
    #[inline(always)]
    fn check_written(&mut self, lane: usize, buffer: &GlobalBuffer, name: &'static str, at: usize, n: usize) -> Done {
        if buffer.is_written(at, n) { Ok(()) } else { self.uninitialised(lane, buffer, name, at, n) }
    }

    #[cold]
    fn uninitialised(&mut self, lane: usize, buffer: &GlobalBuffer, name: &'static str, at: usize, n: usize) -> Done {
        let (kind, access) = (FindingKind::Uninitialised, self.kind);
        let (offset, extent) = (at as i64, buffer.len() as u64);
        self.unusual(lane, BufferAccess { kind, access, buffer: name, offset, bytes: n as u32, extent })
    }

    /// What lane `lane` sees of `bytes` bytes of a buffer, words of four: `put` takes them.
    fn seen(
        &mut self,
        lane: usize,
        (buffer, name, at): (&GlobalBuffer, &'static str, usize),
        bytes: usize,
        mut put: impl FnMut(usize, [u8; 4]),
    ) -> Done {
        match self.on_its_way(lane, (buffer, name, at), bytes)? {
            Some(seen) => {
                let words = seen.chunks_exact(4).filter_map(|word| word.try_into().ok());
                words.enumerate().for_each(|(e, word)| put(e, word));
            }
            None => {
                self.check_written(lane, buffer, name, at, bytes)?;
                buffer.load::<4>(at, bytes / 4, |e, bits| put(e, (bits as u32).to_le_bytes()));
            }
        }
        Ok(())
    }

    /// The same if some of it is on its way to global memory.
    fn on_its_way(
        &mut self,
        lane: usize,
        (buffer, name, at): (&GlobalBuffer, &'static str, usize),
        bytes: usize,
    ) -> Result<Option<Vec<u8>>, Raised> {
        let late = self.cx.late.as_mut();
        let Some(seen) = late.and_then(|late| late.seen(self.wave, buffer, at, bytes)) else { return Ok(None) };
        if !seen.written {
            self.uninitialised(lane, buffer, name, at, bytes)?;
        }
        Ok(Some(seen.bytes))
    }

    /// A load where stores become visible late.
    #[inline(never)]
    fn load_late<C: Cell, const W: usize, const B: usize>(
        &mut self,
        lane: usize,
        (buffer, name, at): (&GlobalBuffer, &'static str, usize),
        rows: &mut [Row<C, W>],
    ) -> Done {
        match self.on_its_way(lane, (buffer, name, at), rows.len() * B)? {
            Some(seen) => {
                rows.iter_mut().zip(seen.chunks_exact(B)).for_each(|(row, bytes)| row[lane] = from_bytes(bytes));
            }
            None => {
                self.check_written(lane, buffer, name, at, rows.len() * B)?;
                buffer.load::<B>(at, rows.len(), |e, bits| rows[e][lane] = C::from_bits(bits));
            }
        }
        Ok(())
    }

    /// A store where they become visible late.
    #[inline(never)]
    fn store_late<C: Cell, const W: usize, const B: usize>(&mut self, lane: usize, address: u64, rows: &[Row<C, W>]) {
        let bytes: Vec<u8> = rows.iter().flat_map(|row| row[lane].bits().to_le_bytes().into_iter().take(B)).collect();
        let reach = match self.cx.program.marks[self.pc as usize] {
            Mark::Atomic(_, scope) => Reach::of(scope),
            _ => None,
        };
        if let Some(late) = &mut self.cx.late {
            late.store((self.wave, lane), address, &bytes, reach);
        }
    }

    /// What follows is loaded after this operation, if that acquires; and so is what it loads itself.
    fn acquire(&mut self) {
        if let (Some(late), Mark::Atomic(order, _)) = (&mut self.cx.late, self.cx.program.marks[self.pc as usize])
            && acquires(order)
        {
            late.order(self.wave);
        }
    }

    /// What the lanes of `mask` stored comes before their operation, if that releases.
    fn release(&mut self, mask: u64) {
        if let (Some(late), Mark::Atomic(order, scope)) = (&mut self.cx.late, self.cx.program.marks[self.pc as usize])
            && let Some(reach) = Reach::of(scope).filter(|_| releases(order))
        {
            late.release(self.wave, mask, reach);
        }
    }

    /// An update of `bytes` bytes at `address` comes.
    fn settle(&mut self, address: u64, bytes: usize) {
        if let Some(late) = &mut self.cx.late {
            late.settle(self.wave, address, bytes as u64);
        }
    }

    /// Where an access of `n` elements of `B` bytes to a buffer lies, or `None` if it does not end within it.
    #[inline(always)]
    fn locate<const W: usize, const B: usize>(
        &mut self,
        lane: usize,
        place: Place<'_, 'a, W>,
        at: i64,
        n: usize,
    ) -> Result<Option<(&'a GlobalBuffer, &'static str, usize)>, Raised> {
        let bytes = (n * B) as u64;
        let (name, extent) = match place {
            Place::Param(buffer, name) => (name, buffer.len() as u64),
            Place::Made([_, extent]) => ("make_buffer", extent[lane]),
        };
        let access = self.kind;
        let report = |kind| BufferAccess { kind, access, buffer: name, offset: at, bytes: bytes as u32, extent };
        // A negative offset is a huge one.
        let begin = at as u64;
        if begin > extent || begin + bytes > extent {
            let kind = if begin < extent { FindingKind::Straddle } else { FindingKind::OutOfRange };
            self.unusual(lane, report(kind))?;
            return Ok(None);
        }
        if !begin.is_multiple_of(B as u64) {
            self.unusual(lane, report(FindingKind::Misaligned))?;
        }
        Ok(Some(match place {
            Place::Param(buffer, name) => (buffer, name, begin as usize),
            Place::Made([address, _]) => {
                let (found, at) = self.resolve(lane, address[lane] + begin, bytes as usize, 1)?;
                (found.buffer, found.name, at)
            }
        }))
    }

    #[inline(always)]
    pub(super) fn buffer_load<C: Cell, const W: usize, const B: usize>(
        &mut self,
        regs: &mut Regs<W>,
        dst: Reg,
        place: Place<'_, 'a, W>,
        offsets: &Row<i64, W>,
        (n, whole): (u32, bool),
        mask: u64,
    ) -> Done {
        self.cx.issue(self.wave);
        let whole = whole && n as usize * B > 4;
        let rows = &mut C::file_mut(regs)[dst as usize..(dst + n) as usize];
        each_lane::<W>(mask, |lane| {
            match self.locate::<W, B>(lane, place, offsets[lane], rows.len())? {
                Some(found) if self.cx.late.is_some() => self.load_late::<C, W, B>(lane, found, rows)?,
                Some((buffer, name, at)) => {
                    self.check_written(lane, buffer, name, at, rows.len() * B)?;
                    let load = || buffer.load::<B>(at, rows.len(), |e, bits| rows[e][lane] = C::from_bits(bits));
                    buffer.undivided(whole, load);
                }
                None => rows.iter_mut().for_each(|row| row[lane] = C::from_bits(0)),
            }
            Ok(())
        })
    }

    #[inline(always)]
    pub(super) fn buffer_store<C: Cell, const W: usize, const B: usize>(
        &mut self,
        regs: &Regs<W>,
        value: Reg,
        place: Place<'_, 'a, W>,
        offsets: &Row<i64, W>,
        (n, whole): (u32, bool),
        mask: u64,
    ) -> Done {
        self.cx.issue(self.wave);
        let whole = whole && n as usize * B > 4;
        let rows = &C::file(regs)[value as usize..(value + n) as usize];
        self.release(mask);
        each_lane::<W>(mask, |lane| {
            if let Some((buffer, _, at)) = self.locate::<W, B>(lane, place, offsets[lane], rows.len())? {
                if self.cx.late.is_some() {
                    self.store_late::<C, W, B>(lane, buffer.address() + at as u64, rows);
                    return Ok(());
                }
                let store = || buffer.store::<B>(at, rows.len(), |e| rows[e][lane].bits());
                buffer.undivided(whole, store);
            }
            Ok(())
        })
    }

    /// A load that is the same in all lanes, of `n` words.
    pub(super) fn scalar_load<const W: usize>(
        &mut self,
        regs: &mut Regs<W>,
        dst: Reg,
        place: Place<'_, 'a, W>,
        offsets: &Row<i64, W>,
        n: u32,
        mask: u64,
    ) -> Done {
        super::lanes::uniform(&offsets.map(|x| x as u64), mask, "offset of a scalar load")?;
        if let Place::Made(rows) = place {
            rows.iter().try_for_each(|row| super::lanes::uniform(row, mask, "buffer of a scalar load"))?;
        }
        let lane = mask.trailing_zeros() as usize % W;
        let mut words = [0; 16];
        let words = &mut words[..n as usize];
        if let Some((buffer, name, at)) = self.locate::<W, 4>(lane, place, offsets[lane], words.len())? {
            let address = buffer.address() + at as u64;
            self.resolve(lane, address, 4 * words.len(), 4)?;
            self.seen(lane, (buffer, name, at), 4 * words.len(), |e, four| {
                words[e] = u32::from_le_bytes(four);
            })?;
        }
        for (row, word) in regs.r32[dst as usize..].iter_mut().zip(words) {
            *row = [*word; W];
        }
        Ok(())
    }

    /// Replaces the element that every lane names by `f(lane, old)`, one lane after the other; 0 outside the buffer.
    pub(super) fn buffer_update<C: Cell, const W: usize, const B: usize>(
        &mut self,
        regs: &mut Regs<W>,
        dst: Reg,
        place: Place<'_, 'a, W>,
        offsets: &Row<i64, W>,
        f: impl Fn(usize, u64) -> u64,
        mask: u64,
    ) -> Done {
        self.cx.issue(self.wave);
        let dst = &mut C::file_mut(regs)[dst as usize];
        each_lane::<W>(mask, |lane| {
            let old = match self.locate::<W, B>(lane, place, offsets[lane], 1)? {
                Some((buffer, name, at)) => {
                    let address = buffer.address() + at as u64;
                    self.resolve(lane, address, B, B as u32)?;
                    self.settle(address, B);
                    self.check_written(lane, buffer, name, at, B)?;
                    buffer.update::<B>(at, |old| f(lane, old))
                }
                None => 0,
            };
            dst[lane] = C::from_bits(old);
            Ok(())
        })
    }

    pub(super) fn copy_to_lds<const W: usize>(
        &mut self,
        pointers: &Row<u64, W>,
        place: Place<'_, 'a, W>,
        offsets: &Row<i64, W>,
        bytes: u32,
        mask: u64,
    ) -> Done {
        super::lanes::uniform(pointers, mask, "LDS pointer of a copy")?;
        if let Some(late) = &mut self.cx.late {
            late.issue(self.wave);
        }
        let copy = self.cx.program.locations[self.pc as usize];
        each_lane::<W>(mask, |lane| {
            let mut data = [0; 16];
            let data = &mut data[..bytes as usize];
            if let Some((buffer, name, at)) = self.locate::<W, 4>(lane, place, offsets[lane], data.len() / 4)? {
                let len = data.len();
                self.seen(lane, (buffer, name, at), len, |e, four| data[4 * e..4 * e + 4].copy_from_slice(&four))?;
            }
            let pointer = super::lds::advance(pointers[lane], i64::from(bytes) * lane as i64);
            at_lane(lane, self.cx.lds.copy(pointer, data, self.wave))
        })?;
        let first = pointers[mask.trailing_zeros() as usize % W];
        self.cx.lds.start_copy(first, bytes, (self.wave, mask), copy);
        Ok(())
    }

    #[inline(always)]
    pub(super) fn global_load<C: Cell, const W: usize, const B: usize>(
        &mut self,
        regs: &mut Regs<W>,
        (dst, pointer): (Reg, Reg),
        (n, align): (u32, u32),
        ordered: bool,
        mask: u64,
    ) -> Done {
        let pointers = regs.r64[pointer as usize];
        let first = pointers[mask.trailing_zeros() as usize % W];
        if lanes_where(&pointers, |p| p != first) & mask != 0 {
            self.cx.issue(self.wave);
        }
        self.acquire();
        let rows = &mut C::file_mut(regs)[dst as usize..(dst + n) as usize];
        each_lane::<W>(mask, |lane| {
            let (found, at) = self.resolve(lane, pointers[lane], rows.len() * B, align)?;
            if self.cx.late.is_some() {
                return self.load_late::<C, W, B>(lane, (found.buffer, found.name, at), rows);
            }
            self.check_written(lane, found.buffer, found.name, at, rows.len() * B)?;
            let load = || found.buffer.load::<B>(at, rows.len(), |e, bits| rows[e][lane] = C::from_bits(bits));
            found.buffer.undivided(ordered, load);
            Ok(())
        })
    }

    #[inline(always)]
    pub(super) fn global_store<C: Cell, const W: usize, const B: usize>(
        &mut self,
        regs: &Regs<W>,
        (value, pointer): (Reg, Reg),
        (n, align): (u32, u32),
        ordered: bool,
        mask: u64,
    ) -> Done {
        self.cx.issue(self.wave);
        let pointers = &regs.r64[pointer as usize];
        let rows = &C::file(regs)[value as usize..(value + n) as usize];
        self.release(mask);
        each_lane::<W>(mask, |lane| {
            let (found, at) = self.resolve(lane, pointers[lane], rows.len() * B, align)?;
            if self.cx.late.is_some() {
                self.store_late::<C, W, B>(lane, pointers[lane], rows);
                return Ok(());
            }
            let store = || found.buffer.store::<B>(at, rows.len(), |e| rows[e][lane].bits());
            found.buffer.undivided(ordered, store);
            Ok(())
        })
    }

    /// Replaces the element that every lane points to by `f(lane, old)`, one lane after the other.
    pub(super) fn update<C: Cell, const W: usize, const B: usize>(
        &mut self,
        regs: &mut Regs<W>,
        (dst, pointer): (Reg, Reg),
        space: Space,
        f: impl Fn(usize, u64) -> u64,
        mask: u64,
    ) -> Done {
        if space == Space::Global {
            self.cx.issue(self.wave);
            self.release(mask);
            self.acquire();
        }
        let pointers = regs.r64[pointer as usize];
        let dst = &mut C::file_mut(regs)[dst as usize];
        each_lane::<W>(mask, |lane| {
            let old = match space {
                Space::Lds => {
                    let bytes = at_lane(lane, self.cx.lds.update::<B>(pointers[lane]))?;
                    let old: C = from_bytes(bytes);
                    bytes.copy_from_slice(&f(lane, old.bits()).to_le_bytes()[..B]);
                    old.bits()
                }
                Space::Global => {
                    let (found, at) = self.resolve(lane, pointers[lane], B, B as u32)?;
                    self.settle(pointers[lane], B);
                    self.check_written(lane, found.buffer, found.name, at, B)?;
                    found.buffer.update::<B>(at, |old| f(lane, old))
                }
            };
            dst[lane] = C::from_bits(old);
            Ok(())
        })
    }
}
