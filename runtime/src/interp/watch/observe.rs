//! What an instruction does that the checks must know, before it does it.

use std::sync::{Arc, MutexGuard};

use lathe_dsl::ir::Space;

use super::super::error::{AccessKind, Unusual};
use super::super::findings::{Kind, Order};
use super::super::parties;
use super::super::program::{Instr, Pc, Width};
use super::super::rows::Regs;
use super::super::wave::Context;
use super::access::{
    Accesses, NOWHERE, behind, cell, changes, copied, each_word, element, in_buffer, in_lds, width_of,
};
use super::clock::{Clock, Message};
use super::judge::{Found, Verdicts};
use super::mark::{Mark, acquires, releases};
use super::report::{MemoryPlace, Race};
use super::shadow::{Entry, How};
use super::{LastRead, Messages, Monitor, PAGE, Shadow, Turn, Watch};
use crate::visibility::Reach;

/// An instruction that a wave is about to execute.
pub(in super::super) struct Step<'s, const W: usize> {
    pub(in super::super) regs: &'s Regs<W>,
    pub(in super::super) mask: u64,
    pub(in super::super) wave: u32,
    pub(in super::super) pc: Pc,
    /// Instructions that the wave has executed.
    pub(in super::super) steps: u64,
}

/// Takes note of `instr`, which `step` is about to execute. What comes back is kept until it has been executed.
#[inline(never)]
pub(in super::super) fn observe<'m, const W: usize>(
    monitor: &'m Monitor,
    cx: &mut Context<'_>,
    step: &Step<'_, W>,
    instr: &Instr<W>,
) -> Option<Turn<'m>> {
    // Before anything is looked at, so that what it finds is what it then accesses.
    let mark = cx.program.marks[step.pc as usize];
    let messages = (matches!(mark, Mark::Atomic(..)) && instr.is_in_global()).then(|| monitor.messages());
    let accesses = match *instr {
        Instr::LdsLoad { pointer, width, n, .. } => in_lds(cx, step, pointer, (width, n), How::LOAD, None),
        Instr::LdsStore { value, pointer, width, n, .. } => {
            in_lds(cx, step, pointer, (width, n), How::STORE, Some(value))
        }
        Instr::GlobalLoad { pointer, width, n, .. } => behind(cx, step, pointer, (width, n), How::LOAD, None),
        Instr::GlobalStore { value, pointer, width, n, .. } => {
            behind(cx, step, pointer, (width, n), How::STORE, Some(value))
        }
        Instr::BufferLoad { buffer, offset, source, from, width, n, .. } => {
            let place = (source, buffer, offset, from);
            Accesses {
                constant: monitor.is_constant(source),
                ..in_buffer(cx, step, place, (width, n), How::LOAD, None)
            }
        }
        Instr::BufferStore { value, buffer, offset, source, from, width, n, .. } => {
            in_buffer(cx, step, (source, buffer, offset, from), (width, n), How::STORE, Some(value))
        }
        Instr::BufferRmw { value, buffer, offset, source, from, class, f, .. } => {
            let place = (source, buffer, offset, from);
            let accesses = in_buffer(cx, step, place, (width_of(class), 1), How::UPDATE, None);
            let changes = changes(cx, step, &accesses, class, |lane, old| f(old, cell(step.regs, class, value, lane)));
            Accesses { changes, ..accesses }
        }
        Instr::ScalarLoad { buffer, offset, source, from, n, .. } => {
            let place = (source, buffer, offset, from);
            Accesses {
                constant: monitor.is_constant(source),
                ..in_buffer(cx, step, place, (Width::B32, n), How::LOAD, None)
            }
        }
        Instr::BufferCas { expected, value, buffer, offset, source, from, class, .. } => {
            let place = (source, buffer, offset, from);
            let accesses = in_buffer(cx, step, place, (width_of(class), 1), How::UPDATE, None);
            let changes = changes(cx, step, &accesses, class, |lane, old| {
                let swaps = old == cell(step.regs, class, expected, lane);
                if swaps { cell(step.regs, class, value, lane) } else { old }
            });
            Accesses { changes, ..accesses }
        }
        Instr::Rmw { pointer, value, f, class, space, .. } => {
            let accesses = element(cx, step, pointer, class, space);
            let changes = changes(cx, step, &accesses, class, |lane, old| f(old, cell(step.regs, class, value, lane)));
            Accesses { changes, ..accesses }
        }
        Instr::Cas { pointer, expected, value, class, space, .. } => {
            let accesses = element(cx, step, pointer, class, space);
            let changes = changes(cx, step, &accesses, class, |lane, old| {
                let swaps = old == cell(step.regs, class, expected, lane);
                if swaps { cell(step.regs, class, value, lane) } else { old }
            });
            Accesses { changes, ..accesses }
        }
        Instr::CopyToLds { pointer, buffer, offset, source, from, bytes } => {
            let place = (source, buffer, offset, from);
            let load = Accesses {
                constant: monitor.is_constant(source),
                ..in_buffer(cx, step, place, (Width::B32, bytes / 4), How::LOAD, None)
            };
            drop(record(monitor, cx, step, &load, messages));
            return record(monitor, cx, step, &copied(cx, step, pointer, bytes), None);
        }
        Instr::Fence {} => {
            if let (Mark::Fence(order, scope), Some(watch)) = (mark, &mut cx.watch)
                && let Some(reach) = Reach::of(scope)
            {
                let clock = &mut watch.clocks[step.wave as usize];
                if releases(order) {
                    clock.release_fence(reach, step.mask);
                }
                if acquires(order) {
                    clock.acquire_fence(reach, step.mask);
                }
            }
            return None;
        }
        Instr::Drain {} | Instr::WaitCount { vmcnt: 0 } => {
            if let (Mark::Drain(scope), Some(watch)) = (mark, &mut cx.watch)
                && let Some(reach) = Reach::of(scope)
            {
                watch.clocks[step.wave as usize].drain(reach, step.mask);
            }
            return None;
        }
        // All that touches no memory; a barrier is dealt with when all waves have come to it.
        Instr::Fill { .. }
        | Instr::Param { .. }
        | Instr::BufferParam { .. }
        | Instr::ThreadId { .. }
        | Instr::BlockId { .. }
        | Instr::LaneId { .. }
        | Instr::Clock { .. }
        | Instr::Map1 { .. }
        | Instr::Map2 { .. }
        | Instr::Map3 { .. }
        | Instr::Select { .. }
        | Instr::Join { .. }
        | Instr::Split { .. }
        | Instr::Encode { .. }
        | Instr::Decode { .. }
        | Instr::Pack { .. }
        | Instr::Unpack { .. }
        | Instr::Insert { .. }
        | Instr::Move { .. }
        | Instr::ExtractAt { .. }
        | Instr::Ballot { .. }
        | Instr::ReadFirst { .. }
        | Instr::ReadLane { .. }
        | Instr::Shuffle { .. }
        | Instr::Partner { .. }
        | Instr::Transpose { .. }
        | Instr::Product { .. }
        | Instr::ScaledProduct { .. }
        | Instr::Deal { .. }
        | Instr::Agree { .. }
        | Instr::Assume { .. }
        | Instr::LdsBase { .. }
        | Instr::LdsAddress { .. }
        | Instr::LdsPointer { .. }
        | Instr::WaitCount { .. }
        | Instr::AsyncMark {}
        | Instr::WaitAsyncMark { .. }
        | Instr::PtrAdd { .. }
        | Instr::CheckBuffer { .. }
        | Instr::ByteOffset { .. }
        | Instr::Yield {}
        | Instr::Barrier {}
        | Instr::If { .. }
        | Instr::Else { .. }
        | Instr::Loop { .. }
        | Instr::Next { .. }
        | Instr::While {}
        | Instr::Test { .. }
        | Instr::Again { .. }
        | Instr::Pop {}
        | Instr::End {} => return None,
    };
    record(monitor, cx, step, &accesses, messages)
}

/// Judges the accesses against those before them, and moves the order that they carry.
fn record<'m, const W: usize>(
    monitor: &'m Monitor,
    cx: &mut Context<'_>,
    step: &Step<'_, W>,
    accesses: &Accesses<'_, W>,
    mut messages: Option<MutexGuard<'m, Messages>>,
) -> Option<Turn<'m>> {
    let changes = monitor.waits().filter(|_| accesses.changes);
    let mark = cx.program.marks[step.pc as usize];
    let watch = cx.watch.as_deref_mut()?;
    let reads = !accesses.how.writes() || accesses.how.updates();
    let first = accesses.starts.iter().find(|at| **at != NOWHERE)?;
    if reads {
        let read = LastRead { pc: step.pc, space: accesses.space, at: *first };
        watch.last_reads[step.wave as usize] = Some(read);
    }
    if !monitor.checks.races {
        return Some(Turn { _messages: messages, changes });
    }
    let atomic = match mark {
        Mark::Atomic(order, scope) if !accesses.how.copies() && !accesses.constant => {
            Reach::of(scope).map(|reach| (order, reach))
        }
        _ => None,
    };
    let wave = step.wave as usize;
    if let Some((order, reach)) = atomic
        && reads
    {
        let Watch { lds_messages, clocks, .. } = &mut *watch;
        let clock = &mut clocks[wave];
        each_word(accesses, |lane, word, _| {
            let message = match &messages {
                Some(messages) => messages.get(word),
                None => lds_messages.get(&(word as u32)),
            };
            if let Some(message) = message {
                if acquires(order) {
                    clock.acquire(message, reach, 1 << lane);
                } else {
                    clock.heard.hear(message, (clock.block, clock.device), clock.id);
                }
            }
        });
    }
    if !accesses.constant {
        let found = judge(monitor, watch, step, accesses, atomic.map(|(_, reach)| reach));
        if !found.is_empty() {
            report(monitor, cx, step, accesses.space, accesses.how, &found);
        }
    }
    let watch = cx.watch.as_deref_mut()?;
    if let Some((order, reach)) = atomic
        && accesses.how.writes()
    {
        let Watch { lds_messages, clocks, .. } = watch;
        let clock = &mut clocks[wave];
        publish(clock, step.mask, releases(order), reach, accesses, messages.as_deref_mut(), lds_messages);
    }
    Some(Turn { _messages: messages, changes })
}

fn judge<const W: usize>(
    monitor: &Monitor,
    watch: &mut Watch,
    step: &Step<'_, W>,
    accesses: &Accesses<'_, W>,
    reach: Option<Reach>,
) -> Vec<Found> {
    let clock = &watch.clocks[step.wave as usize];
    let how = reach.map_or(accesses.how, |reach| accesses.how.atomic(reach));
    let stamp = step.steps as u16;
    let entry = Entry { lanes: 0, wave: clock.id, epoch: clock.epoch, pc: step.pc, stamp, bytes: 0, how };
    let is_lds = accesses.space == Space::Lds;
    let mut verdicts = Verdicts {
        clock,
        monitor,
        entry,
        lds_base: is_lds.then_some(watch.base),
        stored: accesses.stored.as_ref(),
        starts: &accesses.starts,
        lane: 0,
        word: 0,
        found: vec![],
    };
    if is_lds {
        let shadow = &mut watch.lds;
        each_word(accesses, |lane, word, bytes| {
            (verdicts.lane, verdicts.word) = (lane, word);
            shadow.access(word as u32, Entry { lanes: 1 << lane, bytes, ..entry }, &mut verdicts);
        });
    } else {
        let mut held = None;
        each_word(accesses, |lane, word, bytes| {
            (verdicts.lane, verdicts.word) = (lane, word);
            let page = word * 4 / PAGE;
            if held.as_ref().is_none_or(|(number, _)| *number != page) {
                // One lock at a time.
                drop(held.take());
                held = Some((page, monitor.pages(page)));
            }
            if let Some((_, pages)) = &mut held {
                let shadow = pages.entry(page).or_insert_with(|| Shadow::new(PAGE as usize / 4));
                let entry = Entry { lanes: 1 << lane, bytes, ..entry };
                shadow.access((word % (PAGE / 4)) as u32, entry, &mut verdicts);
            }
        });
    }
    verdicts.found
}

/// Leaves at every word that was stored to what its readers learn.
fn publish<const W: usize>(
    clock: &mut Clock,
    mask: u64,
    releases: bool,
    reach: Reach,
    accesses: &Accesses<'_, W>,
    mut global: Option<&mut Messages>,
    lds: &mut rustc_hash::FxHashMap<u32, Arc<Message>>,
) {
    let released = releases.then(|| Arc::new(clock.release_message(reach, mask)));
    // Mostly all lanes tell the same.
    let mut relaxed: Option<([bool; 3], Option<Arc<Message>>)> = None;
    each_word(accesses, |lane, word, _| {
        let message = released.clone().or_else(|| {
            let tells = clock.tells(reach, lane);
            match &relaxed {
                Some((known, message)) if *known == tells => message.clone(),
                _ => {
                    let message = clock.relaxed_message(tells).map(Arc::new);
                    relaxed = Some((tells, message.clone()));
                    message
                }
            }
        });
        let mut replace = |message: Option<Arc<Message>>| match (&mut global, message) {
            (Some(global), message) => global.replace(word, message),
            (None, Some(message)) => lds.insert(word as u32, message),
            (None, None) => lds.remove(&(word as u32)),
        };
        // An update continues what it read, a store begins anew.
        if accesses.how.updates()
            && let Some(before) = replace(None)
        {
            let message = message.map_or_else(|| before.clone(), |new| Arc::new(new.continuing(&before)));
            replace(Some(message));
        } else {
            replace(message);
        }
    });
    if releases {
        clock.released_now();
    }
}

/// Turns what was found into findings.
#[cold]
fn report<const W: usize>(
    monitor: &Monitor,
    cx: &mut Context<'_>,
    step: &Step<'_, W>,
    space: Space,
    how: How,
    found: &[Found],
) {
    for race in found {
        let Some(place) = place(cx, space, race.at) else { continue };
        let (old_block, old_wave) = monitor.block_of(race.old.wave);
        let old = (race.old.pc, old_block, old_wave, race.old_lane, kind(race.old.how));
        let new = (step.pc, cx.block_number, step.wave, race.lane, kind(how));
        // The same two accesses give the same report, whichever came first.
        let (first, second) =
            if (new.0, new.1, new.2, new.3) < (old.0, old.1, old.2, old.3) { (new, old) } else { (old, new) };
        let site = |(pc, block, wave, lane, _): (Pc, u64, u32, u32, AccessKind)| {
            parties::site(cx.parties, block, pc, wave, lane)
        };
        let thread = |wave: u32, lane: u32| wave * cx.program.wave() + lane;
        let order = Order {
            at: (second.1, thread(second.2, second.3)),
            other: (first.1, thread(first.2, first.3)),
            place: race.at,
        };
        let what = Race { access: second.4, place, other: first.4, other_site: site(first), missing: race.missing };
        let site = site(second);
        let party = parties::at(cx.parties, second.1) as u32;
        cx.findings.add((party, second.0), Kind::Race(first.0), order, site, Unusual::Race(what));
    }
}

fn kind(how: How) -> AccessKind {
    match (how.writes(), how.updates()) {
        (true, true) => AccessKind::Atomic,
        (true, false) => AccessKind::Write,
        (false, _) => AccessKind::Read,
    }
}

/// What a byte of LDS, or an address, is called.
pub(in super::super) fn place(cx: &Context<'_>, space: Space, at: u64) -> Option<MemoryPlace> {
    match space {
        Space::Lds => cx.lds.element_at(at as usize).map(|(array, element)| MemoryPlace::Lds { array, element }),
        Space::Global => cx
            .allocations
            .find(at, 1)
            .map(|(found, offset)| MemoryPlace::Global { buffer: found.name, offset: offset as u64 }),
    }
}
