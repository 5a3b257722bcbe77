//! Mutants: a code object with one wait or barrier taken out, one wait weakened or one `s_nop` shortened, and which of them must
//! be noticed.
//!
//! [`verdict`] works on the recorded events of an intact run and on definitions alone (which completions are possible
//! under a wait), not on the checks that a run makes. So "the run refuses the mutant" and "the verdict says it is
//! needed" are two opinions, and a test can hold them against each other.

use std::collections::BTreeMap;

use crate::gcn::error::Result;
use crate::gcn::object::{CodeObject, mnemonic};
use crate::gcn::trace::{Class, Event, LdsAccess, OpId, Trace};
use crate::gcn::wait::WaitCounts;

/// `s_nop 0`.
const NOP: u32 = 0xBF80_0000;

/// An instruction that can be taken out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// Its address.
    pub pc: u64,
    /// Its text.
    pub text: String,
    /// The first half of a split barrier, which goes with it.
    pub signal: Option<u64>,
}

/// A wait that covers one operation less, or an `s_nop` that is one wait state less.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Weakened {
    /// Its address.
    pub pc: u64,
    /// Its text.
    pub text: String,
    /// What stands in its place.
    pub word: u32,
    /// What this waits for; `None` for an `s_nop`.
    pub counts: Option<WaitCounts>,
}

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
        matches!(self, Self::Wait { .. } | Self::Barrier { .. })
    }
}

/// Every wait and barrier of a kernel.
///
/// # Errors
/// If the object has no such kernel.
pub fn candidates(object: &CodeObject, kernel: &str) -> Result<Vec<Candidate>> {
    let kernel = object.kernel(kernel)?;
    let mut signal = None;
    let mut all = Vec::new();
    for (pc, text) in object.listing(kernel) {
        let name = mnemonic(text);
        if name == "s_barrier_signal" {
            signal = Some(pc);
        } else if matches!(name, "s_waitcnt" | "s_barrier" | "s_barrier_wait") || name.starts_with("s_wait_") {
            let signal = if name == "s_barrier_wait" { signal.take() } else { None };
            // What changes no value is not told apart by what values come out.
            if name != "s_wait_alu" && name != "s_wait_idle" {
                all.push(Candidate { pc, text: text.to_owned(), signal });
            }
        }
    }
    Ok(all)
}

/// The object with the instruction at `pc` replaced by `s_nop 0`.
///
/// # Errors
/// If no 4-byte instruction starts there.
pub fn without(object: &CodeObject, pc: u64) -> Result<CodeObject> {
    object.with_instruction(pc, NOP)
}

impl Candidate {
    /// The object without it.
    ///
    /// # Errors
    /// As [`without`].
    pub fn removed(&self, object: &CodeObject) -> Result<CodeObject> {
        let mutant = without(object, self.pc)?;
        match self.signal {
            Some(signal) => without(&mutant, signal),
            None => Ok(mutant),
        }
    }
}

/// Every way to let a wait of a kernel cover one operation less, and every `s_nop` that can be a wait state shorter.
///
/// # Errors
/// If the object has no such kernel.
pub fn weakened(object: &CodeObject, kernel: &str) -> Result<Vec<Weakened>> {
    let kernel = object.kernel(kernel)?;
    let mut all = Vec::new();
    for (pc, text) in object.listing(kernel) {
        let Some(Ok(inst)) = object.at(pc).map(|d| d.inst.as_ref()) else { continue };
        let Some(word) = object.code_word(pc) else { continue };
        let mut add = |word: u32, counts| all.push(Weakened { pc, text: text.to_owned(), word, counts });
        let counts = inst.mods.wait;
        let immediate = word & 0xFFFF;
        match mnemonic(text) {
            "s_nop" if immediate > 0 => add(word - 1, None),
            "s_waitcnt" => {
                // vmcnt in bits 3:0 and 15:14, lgkmcnt in bits 11:8; all ones: no wait.
                if let Some(n) = counts.vm.filter(|n| *n < 62) {
                    let vm = n + 1;
                    let word = word & !0xC00F | vm & 0xF | (vm >> 4) << 14;
                    add(word, Some(WaitCounts { vm: Some(vm), ..counts }));
                }
                if let Some(n) = counts.lgkm.filter(|n| *n < 14) {
                    add(word & !0xF00 | (n + 1) << 8, Some(WaitCounts { lgkm: Some(n + 1), ..counts }));
                }
            }
            "s_wait_loadcnt" => {
                if let Some(n) = counts.vm.filter(|n| *n < 62) {
                    add(word + 1, Some(WaitCounts { vm: Some(n + 1), ..counts }));
                }
            }
            "s_wait_dscnt" => {
                if let Some(n) = counts.ds.filter(|n| *n < 62) {
                    add(word + 1, Some(WaitCounts { ds: Some(n + 1), ..counts }));
                }
            }
            "s_wait_kmcnt" => {
                if let Some(n) = counts.km.filter(|n| *n < 30) {
                    add(word + 1, Some(WaitCounts { km: Some(n + 1), ..counts }));
                }
            }
            "s_wait_loadcnt_dscnt" => {
                // loadcnt in bits 13:8, dscnt in bits 5:0.
                if let Some(n) = counts.vm.filter(|n| *n < 62) {
                    add(word + 0x100, Some(WaitCounts { vm: Some(n + 1), ..counts }));
                }
                if let Some(n) = counts.ds.filter(|n| *n < 62) {
                    add(word + 1, Some(WaitCounts { ds: Some(n + 1), ..counts }));
                }
            }
            _ => {}
        }
    }
    Ok(all)
}

impl Weakened {
    /// The object with it.
    ///
    /// # Errors
    /// As [`without`].
    pub fn applied(&self, object: &CodeObject) -> Result<CodeObject> {
        object.with_instruction(self.pc, self.word)
    }
}

/// Whether the traces of an intact run (all waves, recorded with [`crate::gcn::Options::record`]) show that the
/// `s_waitcnt` or `s_barrier` at `pc` is needed.
pub fn verdict(traces: &[Trace], pc: u64) -> Verdict {
    verdict_instead(traces, pc, WaitCounts::default())
}

/// Likewise whether the wait at `pc` is needed as it is, and not one for `counts` in its place.
pub fn verdict_instead(traces: &[Trace], pc: u64, counts: WaitCounts) -> Verdict {
    let mut groups: BTreeMap<[u32; 3], Vec<&Trace>> = BTreeMap::new();
    for t in traces {
        groups.entry(t.workgroup).or_default().push(t);
    }
    let is = |event: &Event| match event {
        Event::Wait { pc: at, .. } | Event::Barrier { pc: at } => *at == pc,
        _ => false,
    };
    let found = traces.iter().flat_map(|t| &t.events).find(|e| is(e));
    let Some(found) = found else { return Verdict::NeverReached };
    let is_barrier = matches!(found, Event::Barrier { .. });
    let waves: Vec<_> = traces.iter().map(|t| (t, Wave::read(t, pc, counts))).collect();
    for group in groups.values() {
        let waves: Vec<_> =
            group.iter().filter_map(|t| waves.iter().find(|w| std::ptr::eq(w.0, *t)).map(|w| &w.1)).collect();
        if let Some(needed) = lds_conflict(&waves, is_barrier) {
            return needed;
        }
    }
    if is_barrier {
        return Verdict::NoConflictAcrossIt;
    }
    let mut any = false;
    for (_, wave) in &waves {
        for (used_at, used_pc, op) in &wave.uses {
            if !wave.complete(*op, *used_at) {
                return Verdict::Wait { issued: wave.ops[op].pc, used: *used_pc };
            }
        }
        any |= wave.removed_had_work;
    }
    if any { Verdict::NoUseDependsOnIt } else { Verdict::NothingOutstanding }
}

/// Operations so far of the classes that complete in order.
#[derive(Clone, Copy, Default)]
struct Counts {
    vm: u32,
    lds: u32,
}

struct Issued {
    at: usize,
    pc: u64,
    class: Class,
    /// Operations before it.
    rank: Counts,
}

struct Waited {
    at: usize,
    counts: WaitCounts,
    /// Operations before it.
    issued: Counts,
}

struct Access {
    at: usize,
    op: OpId,
    access: LdsAccess,
    ranges: Vec<(u32, u32)>,
    /// Barriers before it, the removed one left out.
    epoch: usize,
}

/// One wave's events with the candidate left out.
struct Wave {
    wave: u32,
    ops: BTreeMap<OpId, Issued>,
    waits: Vec<Waited>,
    uses: Vec<(usize, u64, OpId)>,
    accesses: Vec<Access>,
    barriers: Vec<(usize, u64)>,
    removed_had_work: bool,
}

impl Wave {
    fn read(trace: &Trace, removed: u64, instead: WaitCounts) -> Self {
        let mut w = Self {
            wave: trace.wave,
            ops: BTreeMap::new(),
            waits: Vec::new(),
            uses: Vec::new(),
            accesses: Vec::new(),
            barriers: Vec::new(),
            removed_had_work: false,
        };
        let mut issued = Counts::default();
        for (at, event) in trace.events.iter().enumerate() {
            match event {
                Event::Issue { op, pc, class } => {
                    w.ops.insert(*op, Issued { at, pc: *pc, class: *class, rank: issued });
                    issued.vm += u32::from(matches!(class, Class::Vm | Class::Flat));
                    issued.lds += u32::from(*class == Class::Lds);
                }
                Event::Wait { pc, counts } if *pc == removed => {
                    // Does it cover anything that no earlier wait does?
                    let open: Vec<_> = w.ops.keys().copied().filter(|op| !w.complete(*op, at)).collect();
                    w.waits.push(Waited { at, counts: *counts, issued });
                    w.removed_had_work |= open.iter().any(|op| w.complete(*op, at + 1));
                    w.waits.pop();
                    w.waits.push(Waited { at, counts: instead, issued });
                }
                Event::Wait { counts, .. } => w.waits.push(Waited { at, counts: *counts, issued }),
                Event::Use { op, pc } => w.uses.push((at, *pc, *op)),
                Event::Lds { op, access, ranges } => {
                    let (op, access, ranges) = (*op, *access, ranges.clone());
                    w.accesses.push(Access { at, op, access, ranges, epoch: w.barriers.len() });
                }
                Event::Barrier { pc } if *pc == removed => {}
                Event::Barrier { pc } => w.barriers.push((at, *pc)),
            }
        }
        w
    }

    /// Whether `op` is complete before event `end` in every order of completion that the waits allow.
    fn complete(&self, op: OpId, end: usize) -> bool {
        let Some(x) = self.ops.get(&op) else { return true };
        self.waits.iter().filter(|w| x.at < w.at && w.at < end).any(|w| {
            // If `op` is outstanding at the wait, so is everything that must complete after it: at least so many.
            let vm = w.counts.vm.is_some_and(|n| w.issued.vm - x.rank.vm > n);
            let lds = w.counts.lgkm.or(w.counts.ds);
            match x.class {
                Class::Vm => vm,
                Class::Lds => lds.is_some_and(|n| w.issued.lds - x.rank.lds > n),
                Class::Smem => w.counts.lgkm.or(w.counts.km) == Some(0),
                Class::Flat => vm && lds == Some(0),
            }
        })
    }
}

/// A pair of accesses of different waves that is not ordered.
fn lds_conflict(waves: &[&Wave], barrier_removed: bool) -> Option<Verdict> {
    // Accesses by byte: wave, index of the access.
    let mut by_byte: BTreeMap<u32, Vec<(usize, usize)>> = BTreeMap::new();
    for (w, wave) in waves.iter().enumerate() {
        for (i, a) in wave.accesses.iter().enumerate() {
            for byte in a.ranges.iter().flat_map(|r| r.0..r.1) {
                let list = by_byte.entry(byte).or_default();
                if list.last() != Some(&(w, i)) {
                    list.push((w, i));
                }
            }
        }
    }
    for (byte, list) in &by_byte {
        for (n, (wa, ia)) in list.iter().enumerate() {
            for (wb, ib) in &list[n + 1..] {
                if wa == wb {
                    continue;
                }
                let (a, b) = (&waves[*wa].accesses[*ia], &waves[*wb].accesses[*ib]);
                let harmless = a.access == b.access && a.access != LdsAccess::Write;
                if harmless {
                    continue;
                }
                if a.epoch == b.epoch {
                    debug_assert!(barrier_removed, "the intact run has no race");
                    return Some(Verdict::Barrier { byte: *byte, waves: [waves[*wa].wave, waves[*wb].wave] });
                }
                let (early, wave, late) = if a.epoch < b.epoch { (a, waves[*wa], b) } else { (b, waves[*wb], a) };
                // The last barrier between them; the early operation must be complete there.
                let Some((at, pc)) = wave.barriers.get(late.epoch - 1) else { continue };
                debug_assert!(early.at < *at, "an access before the barrier that ends its epoch");
                if !wave.complete(early.op, *at) {
                    let issued = wave.ops.get(&early.op).map_or(0, |o| o.pc);
                    return Some(Verdict::Wait { issued, used: *pc });
                }
            }
        }
    }
    None
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
        assert_eq!(verdict(&t, 1), Verdict::Wait { issued: 101, used: 201 });
        assert_eq!(verdict(&t, 2), Verdict::NoUseDependsOnIt, "the next one covers it");
        assert_eq!(verdict(&t, 3), Verdict::NothingOutstanding);
        assert_eq!(verdict(&t, 4), Verdict::NeverReached);
    }

    #[test]
    fn scalar_loads_need_zero() {
        let t = [trace(
            0,
            vec![issue(1, Class::Smem), issue(2, Class::Smem), wait(1, None, Some(1)), wait(2, None, Some(0)), used(1)],
        )];
        assert_eq!(verdict(&t, 1), Verdict::NothingOutstanding);
        assert!(verdict(&t, 2).is_needed());
    }

    #[test]
    fn barriers_and_the_waits_before_them() {
        let lds = |op, access| Event::Lds { op: OpId(op), access, ranges: vec![(0, 4)] };
        let writer =
            vec![issue(1, Class::Lds), lds(1, LdsAccess::Write), wait(1, None, Some(0)), Event::Barrier { pc: 2 }];
        let reader =
            vec![wait(1, None, Some(0)), Event::Barrier { pc: 2 }, issue(1, Class::Lds), lds(1, LdsAccess::Read)];
        let t = [trace(0, writer), trace(1, reader)];
        assert_eq!(verdict(&t, 1), Verdict::Wait { issued: 101, used: 2 });
        assert_eq!(verdict(&t, 2), Verdict::Barrier { byte: 0, waves: [0, 1] });
    }
}
