//! Which waits and barriers a run needed, by its recorded events alone.
//!
//! Every *need* is looked at once: an operation's result that is used, and an LDS access that another wave's access behind a
//! barrier depends on, each need the operation to be complete at a certain event. A wait is needed if some need is met by that wait
//! alone; a barrier is, if no other one lies between two accesses that collide, or none behind which the first is complete.
//!
//! In launches of a group there are messages as well: a wave stores data and then, itself or behind a barrier another one of its
//! workgroup, a flag; a wave of another workgroup loads the flag and then the data. The data's store must be complete where the
//! flag's is made. Without that the flag *may* come first, which only some schedules show.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use rustc_hash::FxHashMap;

use super::messages::{Message, messages};
use crate::gcn::trace::{Class, Event, LdsAccess, OpId, Trace};
use crate::gcn::wait::WaitCounts;

/// Whether an instruction is needed, as a run's events tell.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Without it, what `issued` started is not certainly complete when `used` needs it.
    Wait {
        /// Address of the asynchronous instruction.
        issued: u64,
        /// Address of what needs it: an instruction, or the barrier behind which another wave needs it.
        used: u64,
    },
    /// Without it, another workgroup may see what is stored later before it sees what `issued` stored.
    Message {
        /// Address of the store.
        issued: u64,
        /// Address of the later store, or of the barrier behind which another wave makes it.
        used: u64,
    },
    /// Without it, two waves collide in LDS.
    Barrier {
        /// LDS byte.
        byte: u32,
        /// The two waves.
        waves: [u32; 2],
    },
    /// Not needed: the run never reached it.
    NeverReached,
    /// Not needed: nothing was outstanding that it waits for.
    NothingOutstanding,
    /// Not needed: what it waits for is used by nobody, or only behind another wait that covers it.
    NoUseDependsOnIt,
    /// Not needed: no two waves touch the same LDS bytes across it, at least one of them writing.
    NoConflictAcrossIt,
}

impl Verdict {
    /// Whether taking the instruction out must be noticed.
    pub fn is_needed(&self) -> bool {
        matches!(self, Self::Wait { .. } | Self::Message { .. } | Self::Barrier { .. })
    }
}

/// What a run needed of its waits and barriers.
#[derive(Clone, Debug, Default)]
pub struct Needs {
    /// By address of a wait or barrier that was reached.
    reached: BTreeMap<u64, Reached>,
    /// By address of a wait: needs that it alone meets.
    waits: BTreeMap<u64, Vec<Need>>,
    /// The same of messages.
    messages: BTreeMap<u64, Vec<Need>>,
    /// By address of a barrier.
    barriers: BTreeMap<u64, Verdict>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Reached {
    barrier: bool,
    /// It covered what no wait before it did.
    had_work: bool,
}

/// An operation that must be complete somewhere, and the last of the waits that make it so.
#[derive(Clone, Copy, Debug)]
struct Need {
    class: Class,
    /// Operations in order from it to the wait, itself among them.
    after: Counts,
    issued: u64,
    used: u64,
}

/// Operations so far of the classes that complete in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    vm: u32,
    lds: u32,
    store: u32,
}

impl Counts {
    fn since(self, before: Self) -> Self {
        Self { vm: self.vm - before.vm, lds: self.lds - before.lds, store: self.store - before.store }
    }
}

/// Whether a wait for `counts` makes an operation complete in every order of completion that it allows, with so many operations
/// from it on. If it is outstanding at the wait, so is everything that must complete after it.
fn covers(counts: WaitCounts, class: Class, after: Counts) -> bool {
    let vm = counts.vm.is_some_and(|n| after.vm > n);
    let lds = counts.lgkm.or(counts.ds);
    match class {
        Class::Vm => vm,
        Class::Lds => lds.is_some_and(|n| after.lds > n),
        Class::Smem => counts.lgkm.or(counts.km) == Some(0),
        Class::Flat => vm && lds == Some(0),
        Class::Store => counts.store.is_some_and(|n| after.store > n),
    }
}

impl Needs {
    /// Of the traces of an intact run: all its waves, recorded with [`crate::gcn::Options::record`].
    pub fn of(traces: &[Trace]) -> Self {
        let mut needs = Self::default();
        let mut groups: BTreeMap<[u32; 3], Vec<Wave<'_>>> = BTreeMap::new();
        for trace in traces {
            let wave = Wave::read(trace, &mut needs.reached);
            for (at, used, op) in &wave.uses {
                let met = add(&mut needs.waits, &wave, *op, *at, *used);
                debug_assert!(met, "the intact run waits for all that it uses");
            }
            groups.entry(trace.workgroup).or_default().push(wave);
        }
        groups.values().for_each(|waves| needs.lds(waves));
        needs
    }

    /// Of the traces of launches that ran together, for each of them: what it needs for itself and for its messages.
    pub fn of_group(launches: &[&[Trace]]) -> Vec<Self> {
        let mut all: Vec<Self> = launches.iter().map(|traces| Self::of(traces)).collect();
        for message in messages(launches) {
            let Message { launch, wave, op, end, used } = message;
            let wave = Wave::read(&launches[launch][wave], &mut BTreeMap::new());
            add(&mut all[launch].messages, &wave, op, end, used);
        }
        all
    }

    /// Whether the wait or barrier at `pc` is needed.
    pub fn verdict(&self, pc: u64) -> Verdict {
        self.verdict_instead(pc, WaitCounts::default())
    }

    /// Likewise whether the wait at `pc` is needed as it is, and not one for `counts` in its place.
    pub fn verdict_instead(&self, pc: u64, counts: WaitCounts) -> Verdict {
        let Some(reached) = self.reached.get(&pc) else { return Verdict::NeverReached };
        if reached.barrier {
            return self.barriers.get(&pc).cloned().unwrap_or(Verdict::NoConflictAcrossIt);
        }
        let unmet = |needs: &BTreeMap<u64, Vec<Need>>| {
            let need = needs.get(&pc).into_iter().flatten().find(|need| !covers(counts, need.class, need.after));
            need.map(|need| (need.issued, need.used))
        };
        match (unmet(&self.waits), unmet(&self.messages)) {
            (Some((issued, used)), _) => Verdict::Wait { issued, used },
            (None, Some((issued, used))) => Verdict::Message { issued, used },
            (None, None) if reached.had_work => Verdict::NoUseDependsOnIt,
            (None, None) => Verdict::NothingOutstanding,
        }
    }

    /// What the accesses of LDS of a workgroup need.
    fn lds(&mut self, waves: &[Wave<'_>]) {
        for (early, (epoch, byte, other)) in next_conflicts(waves) {
            let wave = &waves[early.wave];
            // Those between the two; the early operation must be complete at the last one.
            let between = wave.barriers.get(early.epoch as usize..epoch as usize).unwrap_or_default();
            let Some(&(at, last)) = between.last() else { continue };
            let met = add(&mut self.waits, wave, early.op, at, last);
            debug_assert!(met, "the intact run has no race");
            let needed = match between.iter().rev().find(|(_, pc)| *pc != last) {
                None => Verdict::Barrier { byte, waves: [wave.wave, waves[other].wave] },
                Some((before, pc)) if !wave.complete(early.op, *before) => {
                    Verdict::Wait { issued: wave.op(early.op).map_or(0, |x| x.pc), used: *pc }
                }
                Some(_) => continue,
            };
            if let Entry::Vacant(free) = self.barriers.entry(last) {
                free.insert(needed);
            }
        }
    }
}

/// `op` must be complete at event `end`, which is at `used`; whether any wait makes it so.
fn add(needs: &mut BTreeMap<u64, Vec<Need>>, wave: &Wave<'_>, op: OpId, end: usize, used: u64) -> bool {
    let Some(x) = wave.op(op) else { return true };
    let mut alone: Option<(u64, Counts)> = None;
    for wait in wave.waits_after(x.at).take_while(|w| w.at < end) {
        let after = wait.issued.since(x.before);
        if covers(wait.counts, x.class, after) {
            if alone.is_some_and(|(pc, _)| pc != wait.pc) {
                return true;
            }
            alone = Some((wait.pc, after));
        }
    }
    let Some((pc, after)) = alone else { return false };
    let need = Need { class: x.class, after, issued: x.pc, used };
    let needs = needs.entry(pc).or_default();
    // Of each class the one that is hardest to meet.
    let order = |n: &Need| match n.class {
        Class::Lds => n.after.lds,
        Class::Store => n.after.store,
        Class::Vm | Class::Flat | Class::Smem => n.after.vm,
    };
    match needs.iter_mut().find(|n| n.class == need.class) {
        Some(known) if order(known) <= order(&need) => {}
        Some(known) => *known = need,
        None => needs.push(need),
    }
    true
}

struct Issued {
    at: usize,
    pc: u64,
    class: Class,
    /// Operations before it.
    before: Counts,
}

struct Waited {
    at: usize,
    pc: u64,
    counts: WaitCounts,
    /// Operations before it.
    issued: Counts,
}

struct Access<'t> {
    op: OpId,
    access: LdsAccess,
    ranges: &'t [(u32, u32)],
    /// Barriers before it.
    epoch: u32,
}

/// One wave's events, sorted.
struct Wave<'t> {
    wave: u32,
    /// By number, from 1 on.
    ops: Vec<Issued>,
    waits: Vec<Waited>,
    uses: Vec<(usize, u64, OpId)>,
    accesses: Vec<Access<'t>>,
    barriers: Vec<(usize, u64)>,
}

impl<'t> Wave<'t> {
    fn read(trace: &'t Trace, reached: &mut BTreeMap<u64, Reached>) -> Self {
        let mut w = Self {
            wave: trace.wave,
            ops: Vec::new(),
            waits: Vec::new(),
            uses: Vec::new(),
            accesses: Vec::new(),
            barriers: Vec::new(),
        };
        let mut issued = Counts::default();
        // Operations that no wait covers yet.
        let mut open: Vec<usize> = Vec::new();
        for (at, event) in trace.events.iter().enumerate() {
            match event {
                Event::Issue { op, pc, class } => {
                    debug_assert_eq!(op.0 as usize, w.ops.len() + 1, "operations are numbered");
                    open.push(w.ops.len());
                    w.ops.push(Issued { at, pc: *pc, class: *class, before: issued });
                    issued.vm += u32::from(matches!(class, Class::Vm | Class::Flat));
                    issued.lds += u32::from(*class == Class::Lds);
                    issued.store += u32::from(*class == Class::Store);
                }
                Event::Wait { pc, counts } => {
                    let before = open.len();
                    open.retain(|i| !covers(*counts, w.ops[*i].class, issued.since(w.ops[*i].before)));
                    reached.entry(*pc).or_default().had_work |= open.len() < before;
                    w.waits.push(Waited { at, pc: *pc, counts: *counts, issued });
                }
                Event::Use { op, pc } => w.uses.push((at, *pc, *op)),
                Event::Lds { op, access, ranges } => {
                    w.accesses.push(Access { op: *op, access: *access, ranges, epoch: w.barriers.len() as u32 });
                }
                Event::Memory { .. } => {}
                Event::Barrier { pc } => {
                    reached.entry(*pc).or_default().barrier = true;
                    w.barriers.push((at, *pc));
                }
            }
        }
        w
    }

    fn op(&self, op: OpId) -> Option<&Issued> {
        self.ops.get((op.0 as usize).checked_sub(1)?)
    }

    fn waits_after(&self, at: usize) -> impl Iterator<Item = &Waited> {
        self.waits[self.waits.partition_point(|w| w.at < at)..].iter()
    }

    /// Whether `op` is complete before event `end`.
    fn complete(&self, op: OpId, end: usize) -> bool {
        let Some(x) = self.op(op) else { return true };
        let mut waits = self.waits_after(x.at).take_while(|w| w.at < end);
        waits.any(|w| covers(w.counts, x.class, w.issued.since(x.before)))
    }
}

/// An LDS access that a later one depends on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Early {
    /// Its place among the waves.
    wave: usize,
    op: OpId,
    epoch: u32,
}

/// A touch of some bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Touch {
    byte: u32,
    epoch: u32,
    wave: u16,
    kind: u8,
    op: OpId,
}

/// Of each access with which another wave's later one collides: the epoch of the first such, the byte, and the wave.
fn next_conflicts(waves: &[Wave<'_>]) -> BTreeMap<Early, (u32, u32, usize)> {
    let ranges = || waves.iter().flat_map(|w| &w.accesses).flat_map(|a| a.ranges);
    let unit = if ranges().all(|(start, end)| (start | end) % 4 == 0) { 4 } else { 1 };
    let mut touches = vec![];
    for (number, wave) in waves.iter().enumerate() {
        for a in &wave.accesses {
            let from = touches.len();
            let touch = |byte| Touch { byte, epoch: a.epoch, wave: number as u16, kind: a.access as u8, op: a.op };
            let units = a.ranges.iter().flat_map(|(start, end)| (*start..*end).step_by(unit));
            touches.extend(units.map(touch));
            // Lanes that share their bytes.
            touches[from..].sort_unstable();
            let mut unique = from;
            for i in from..touches.len() {
                if i == from || touches[i] != touches[unique - 1] {
                    touches[unique] = touches[i];
                    unique += 1;
                }
            }
            touches.truncate(unique);
        }
    }
    touches.sort_unstable();
    let mut next: FxHashMap<Early, (u32, u32, usize)> = FxHashMap::default();
    for of_byte in touches.chunk_by(|a, b| a.byte == b.byte) {
        // Nobody else's, or only read: most bytes.
        if of_byte.iter().all(|t| t.wave == of_byte[0].wave) || of_byte.iter().all(|t| t.kind == LdsAccess::Read as u8)
        {
            continue;
        }
        for (i, a) in of_byte.iter().enumerate() {
            let collides = |b: &&Touch| {
                let harmless = a.kind == b.kind && a.kind != LdsAccess::Write as u8;
                a.wave != b.wave && !harmless
            };
            let Some(b) = of_byte[i + 1..].iter().find(collides) else { continue };
            if b.epoch == a.epoch {
                debug_assert!(false, "the intact run has no race");
                continue;
            }
            let early = Early { wave: a.wave.into(), op: a.op, epoch: a.epoch };
            let found = (b.epoch, a.byte, usize::from(b.wave));
            next.entry(early).and_modify(|known| *known = (*known).min(found)).or_insert(found);
        }
    }
    next.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(wave: u32, events: Vec<Event>) -> Trace {
        let mut t = Trace::new([0; 3], wave);
        t.events = events;
        t
    }

    fn issue(op: u32, class: Class) -> Event {
        Event::Issue { op: OpId(op), pc: 100 + u64::from(op), class }
    }

    fn wait(pc: u64, vm: Option<u32>, lgkm: Option<u32>) -> Event {
        Event::Wait { pc, counts: WaitCounts { vm, lgkm, ..WaitCounts::default() } }
    }

    fn used(op: u32) -> Event {
        Event::Use { op: OpId(op), pc: 200 + u64::from(op) }
    }

    #[test]
    fn a_wait_is_needed_if_a_use_follows_that_no_other_wait_covers() {
        let events = vec![
            issue(1, Class::Vm),
            issue(2, Class::Vm),
            wait(1, Some(1), None),
            used(1),
            wait(2, Some(0), None),
            wait(3, Some(0), None),
            used(2),
        ];
        let t = [trace(0, events)];
        assert_eq!(Needs::of(&t).verdict(1), Verdict::Wait { issued: 101, used: 201 });
        assert_eq!(Needs::of(&t).verdict(2), Verdict::NoUseDependsOnIt, "the next one covers it");
        assert_eq!(Needs::of(&t).verdict(3), Verdict::NothingOutstanding);
        assert_eq!(Needs::of(&t).verdict(4), Verdict::NeverReached);
    }

    #[test]
    fn scalar_loads_need_zero() {
        let t = [trace(
            0,
            vec![issue(1, Class::Smem), issue(2, Class::Smem), wait(1, None, Some(1)), wait(2, None, Some(0)), used(1)],
        )];
        assert_eq!(Needs::of(&t).verdict(1), Verdict::NothingOutstanding);
        assert!(Needs::of(&t).verdict(2).is_needed());
    }

    #[test]
    fn barriers_and_the_waits_before_them() {
        let lds = |op, access| Event::Lds { op: OpId(op), access, ranges: vec![(0, 4)] };
        let writer =
            vec![issue(1, Class::Lds), lds(1, LdsAccess::Write), wait(1, None, Some(0)), Event::Barrier { pc: 2 }];
        let reader =
            vec![wait(1, None, Some(0)), Event::Barrier { pc: 2 }, issue(1, Class::Lds), lds(1, LdsAccess::Read)];
        let t = [trace(0, writer), trace(1, reader)];
        assert_eq!(Needs::of(&t).verdict(1), Verdict::Wait { issued: 101, used: 2 });
        assert_eq!(Needs::of(&t).verdict(2), Verdict::Barrier { byte: 0, waves: [0, 1] });
    }
}
