//! Where the lanes of a memory instruction access what.

use lathe_dsl::ir::Space;

use super::super::access;
use super::super::lds;
use super::super::program::{Class, Offset, Reg, Source, Width};
use super::super::rows::{Regs, Row};
use super::super::wave::Context;
use super::judge::Stored;
use super::observe::Step;
use super::shadow::How;

/// No lane's access begins here: it is inactive, or drops out of the buffer.
pub(super) const NOWHERE: u64 = u64::MAX;

/// The accesses of an instruction's lanes.
pub(super) struct Accesses<'s, const W: usize> {
    pub(super) space: Space,
    /// Where each lane's begins: byte of LDS, or address.
    pub(super) starts: Row<u64, W>,
    pub(super) bytes: u64,
    pub(super) how: How,
    pub(super) stored: Option<Stored<'s, W>>,
    /// Whether memory may change.
    pub(super) changes: bool,
    /// Whether it cannot race.
    pub(super) constant: bool,
}

pub(super) fn width_of(class: Class) -> Width {
    match class {
        Class::R32 => Width::B32,
        Class::R64 => Width::B64,
    }
}

pub(super) fn cell<const W: usize>(regs: &Regs<W>, class: Class, row: Reg, lane: usize) -> u64 {
    match class {
        Class::R32 => regs.r32[row as usize][lane].into(),
        Class::R64 => regs.r64[row as usize][lane],
    }
}

/// `f` of every active lane, [`NOWHERE`] in the others and where it gives nothing.
fn starts<const W: usize>(mask: u64, mut f: impl FnMut(usize) -> Option<u64>) -> Row<u64, W> {
    std::array::from_fn(|lane| if mask >> lane & 1 == 1 { f(lane).unwrap_or(NOWHERE) } else { NOWHERE })
}

fn accesses<'s, const W: usize>(
    step: &Step<'s, W>,
    space: Space,
    starts: Row<u64, W>,
    (width, n): (Width, u32),
    how: How,
    value: Option<Reg>,
) -> Accesses<'s, W> {
    let stored = value.map(|value| Stored { regs: step.regs, value, width });
    Accesses { space, starts, bytes: u64::from(width.bytes() * n), how, stored, changes: how.writes(), constant: false }
}

pub(super) fn in_lds<'s, const W: usize>(
    cx: &Context<'_>,
    step: &Step<'s, W>,
    pointer: Reg,
    (width, n): (Width, u32),
    how: How,
    value: Option<Reg>,
) -> Accesses<'s, W> {
    let pointers = &step.regs.r64[pointer as usize];
    let starts = starts(step.mask, |lane| cx.lds.place(pointers[lane], width.bytes() * n));
    accesses(step, Space::Lds, starts, (width, n), how, value)
}

/// What a copy writes.
pub(super) fn copied<'s, const W: usize>(
    cx: &Context<'_>,
    step: &Step<'s, W>,
    pointer: Reg,
    bytes: u32,
) -> Accesses<'s, W> {
    let pointers = &step.regs.r64[pointer as usize];
    let at = |lane: usize| lds::advance(pointers[lane], i64::from(bytes) * lane as i64);
    let starts = starts(step.mask, |lane| cx.lds.place(at(lane), bytes));
    accesses(step, Space::Lds, starts, (Width::B32, bytes / 4), How::COPY, None)
}

/// Through a pointer to global memory.
pub(super) fn behind<'s, const W: usize>(
    cx: &Context<'_>,
    step: &Step<'s, W>,
    pointer: Reg,
    (width, n): (Width, u32),
    how: How,
    value: Option<Reg>,
) -> Accesses<'s, W> {
    let pointers = &step.regs.r64[pointer as usize];
    let bytes = u64::from(width.bytes() * n);
    let mut hint = 0;
    let starts =
        starts(step.mask, |lane| cx.allocations.find_near(&mut hint, pointers[lane], bytes).map(|_| pointers[lane]));
    accesses(step, Space::Global, starts, (width, n), how, value)
}

pub(super) fn in_buffer<'s, const W: usize>(
    cx: &Context<'_>,
    step: &Step<'s, W>,
    (source, buffer, offset, from): (Source, Reg, Reg, Offset),
    (width, n): (Width, u32),
    how: How,
    value: Option<Reg>,
) -> Accesses<'s, W> {
    let at = access::byte_offsets(step.regs, offset, from);
    let bytes = u64::from(width.bytes() * n);
    let begin = |lane: usize, address: u64, extent: u64| {
        let at = at[lane] as u64;
        (at <= extent && at + bytes <= extent).then(|| address + at)
    };
    let starts = match source {
        Source::Param(param) => {
            let buffer = cx.buffers[param as usize];
            starts(step.mask, |lane| begin(lane, buffer.address(), buffer.len() as u64))
        }
        Source::Made => {
            let [addresses, extents] = [0, 1].map(|i| &step.regs.r64[buffer as usize + i]);
            let mut hint = 0;
            starts(step.mask, |lane| {
                let at = begin(lane, addresses[lane], extents[lane])?;
                cx.allocations.find_near(&mut hint, at, bytes).map(|_| at)
            })
        }
    };
    accesses(step, Space::Global, starts, (width, n), how, value)
}

/// One element that is updated at once.
pub(super) fn element<'s, const W: usize>(
    cx: &Context<'_>,
    step: &Step<'s, W>,
    pointer: Reg,
    class: Class,
    space: Space,
) -> Accesses<'s, W> {
    match space {
        Space::Lds => in_lds(cx, step, pointer, (width_of(class), 1), How::UPDATE, None),
        Space::Global => behind(cx, step, pointer, (width_of(class), 1), How::UPDATE, None),
    }
}

/// Whether `f(lane, old)` is not `old` in some lane.
pub(super) fn changes<const W: usize>(
    cx: &Context<'_>,
    step: &Step<'_, W>,
    accesses: &Accesses<'_, W>,
    class: Class,
    f: impl Fn(usize, u64) -> u64,
) -> bool {
    let mask = if class == Class::R32 { u64::from(u32::MAX) } else { u64::MAX };
    (0..W).filter(|lane| step.mask >> lane & 1 == 1 && accesses.starts[*lane] != NOWHERE).any(|lane| {
        let at = accesses.starts[lane];
        let old = match accesses.space {
            Space::Lds => cx.lds.peek(at as usize, accesses.bytes as usize),
            Space::Global => {
                let Some((found, at)) = cx.allocations.find(at, accesses.bytes) else { return false };
                let mut old = 0;
                match class {
                    Class::R32 => found.buffer.load::<4>(at, 1, |_, bits| old = bits),
                    Class::R64 => found.buffer.load::<8>(at, 1, |_, bits| old = bits),
                }
                old
            }
        };
        f(lane, old) & mask != old & mask
    })
}

/// Calls `f` with every lane, number of a word, and which of its bytes the lane accesses.
pub(super) fn each_word<const W: usize>(accesses: &Accesses<'_, W>, mut f: impl FnMut(u32, u64, u8)) {
    for (lane, start) in accesses.starts.iter().enumerate() {
        if *start == NOWHERE {
            continue;
        }
        let end = start + accesses.bytes;
        for word in start / 4..end.div_ceil(4) {
            let (from, to) = (start.max(&(word * 4)) % 4, end.min(word * 4 + 4) - word * 4);
            f(lane as u32, word, (0xF >> (4 - to)) & (0xF << from));
        }
    }
}
