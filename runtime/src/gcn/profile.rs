//! What a launch cost, instruction by instruction: counts that are exact, and an estimate of cycles from a few stated assumptions
//! ([`Assumptions`]).

use std::collections::BTreeMap;

use serde::Serialize;

use crate::gcn::decode::Inst;
use crate::gcn::hazard::Class;
use crate::gcn::isa::Op;
use crate::gcn::isa::chip::{Chip, Family};
use crate::gcn::isa::control::Control;
use crate::gcn::object::CodeObject;
use crate::gcn::state::Wave;

/// What the estimate takes for granted of a chip.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Assumptions {
    /// Banks of LDS, four bytes wide; each serves one word a cycle.
    pub lds_banks: u32,
    /// Bytes of a cache line of vector memory.
    pub line_bytes: u32,
    /// Cycles that vector memory takes for a line.
    pub line_cycles: u32,
    /// Cycles that a wave takes to issue an instruction of the vector ALU.
    pub valu_cycles: u32,
    /// Likewise a transcendental one.
    pub transcendental_cycles: u32,
    /// Cycles of a scalar instruction, and the least of one of memory.
    pub issue_cycles: u32,
}

impl Assumptions {
    /// Those for a chip.
    pub(crate) fn of(chip: &Chip) -> Self {
        // A SIMD of CDNA has 16 lanes, so that each wave of 64 issues every fourth cycle; one of RDNA has 32.
        let (issue, banks) = match chip.family {
            // 64 KiB in 32 banks of 512 words, 160 KiB in 64 banks of 640.
            Family::Gfx9 => (4, if chip.name == "gfx950" { 64 } else { 32 }),
            Family::Gfx12 => (1, 32),
        };
        Self {
            lds_banks: banks,
            line_bytes: 128,
            line_cycles: 2,
            valu_cycles: issue,
            transcendental_cycles: 4 * issue,
            issue_cycles: issue,
        }
    }
}

/// Cycles by the unit that is busy with them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Cycles {
    /// Vector ALU.
    pub valu: u64,
    /// Matrix unit.
    pub mfma: u64,
    /// Vector memory.
    pub vmem: u64,
    /// LDS.
    pub lds: u64,
    /// Scalar ALU, scalar memory, branches, waits.
    pub salu: u64,
}

impl Cycles {
    /// All of them, as if no unit worked beside another.
    pub fn total(&self) -> u64 {
        self.valu + self.mfma + self.vmem + self.lds + self.salu
    }
}

/// What an instruction, a line or a launch cost, all waves together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Cost {
    /// Executions, one a wave.
    pub executions: u64,
    /// Lanes that were active at these.
    pub lanes: u64,
    /// Bytes that active lanes loaded from memory, what a range check suppressed left out.
    pub bytes_loaded: u64,
    /// Bytes that they stored there, atomics included.
    pub bytes_stored: u64,
    /// Cache lines that accesses of vector memory touched.
    pub cache_lines: u64,
    /// Cache lines that as many different bytes fill.
    pub full_lines: u64,
    /// Bytes that active lanes read from LDS or wrote there.
    pub lds_bytes: u64,
    /// Cycles of LDS beyond those that the same access takes without conflicts of banks.
    pub lds_conflicts: u64,
    /// Executions of waits for memory, LDS or a barrier.
    pub waits: u64,
    /// Estimated cycles.
    pub cycles: Cycles,
}

impl Cost {
    /// Adds another one.
    pub fn add(&mut self, other: &Self) {
        self.executions += other.executions;
        self.lanes += other.lanes;
        self.bytes_loaded += other.bytes_loaded;
        self.bytes_stored += other.bytes_stored;
        self.cache_lines += other.cache_lines;
        self.full_lines += other.full_lines;
        self.lds_bytes += other.lds_bytes;
        self.lds_conflicts += other.lds_conflicts;
        self.waits += other.waits;
        let (c, o) = (&mut self.cycles, &other.cycles);
        c.valu += o.valu;
        c.mfma += o.mfma;
        c.vmem += o.vmem;
        c.lds += o.lds;
        c.salu += o.salu;
    }
}

/// What the instruction that a wave is executing has touched.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Touched {
    /// Address and bytes, lane by lane.
    pub(crate) loaded: Vec<(u64, u32)>,
    pub(crate) stored: Vec<(u64, u32)>,
    /// First byte and end, element by element, within an element lane by lane.
    pub(crate) lds: Vec<(u32, u32)>,
}

/// Costs by instruction.
#[derive(Clone, Debug)]
pub struct Profile {
    assumptions: Assumptions,
    /// By the instruction's place in the code, in words.
    costs: Vec<Cost>,
}

/// Cache lines that accesses touch, and that as many different bytes would fill.
fn lines(accesses: &[(u64, u32)], line: u32) -> (u64, u64) {
    let line = u64::from(line);
    let mut touched: Vec<u64> =
        accesses.iter().flat_map(|(at, n)| at / line..=(at + u64::from(*n).max(1) - 1) / line).collect();
    touched.sort_unstable();
    touched.dedup();
    let mut ranges = accesses.to_vec();
    ranges.sort_unstable();
    let (mut bytes, mut end) = (0, 0);
    for (at, n) in ranges {
        let stop = at + u64::from(n);
        bytes += stop.saturating_sub(end.max(at));
        end = end.max(stop);
    }
    (touched.len() as u64, bytes.div_ceil(line))
}

/// Cycles of an access of LDS and those of them that conflicts cause.
///
/// Lanes are served in groups, in order, as many as the banks' width in bytes allows: with 32 banks 32 lanes of 4 bytes,
/// 16 of 8, 8 of 16. In a group each bank serves one word a cycle; lanes that want the same word share it.
fn lds_cycles(ranges: &[(u32, u32)], lanes: usize, banks: u32) -> (u64, u64) {
    let (mut cycles, mut least) = (0, 0);
    for element in ranges.chunks(lanes.max(1)) {
        let width = element.iter().map(|r| r.1 - r.0).max().unwrap_or(0).next_multiple_of(4).max(4);
        // Twelve bytes take the lanes of sixteen.
        let group = (banks * 4 / width.next_power_of_two()).max(1) as usize;
        for group in element.chunks(group) {
            let mut words: Vec<u32> = group.iter().flat_map(|(start, end)| start / 4..end.div_ceil(4)).collect();
            words.sort_unstable();
            words.dedup();
            let mut used: BTreeMap<u32, u64> = BTreeMap::new();
            for word in words {
                *used.entry(word % banks).or_default() += 1;
            }
            cycles += used.values().copied().max().unwrap_or(0);
            least += 1;
        }
    }
    (cycles, cycles.saturating_sub(least))
}

impl Profile {
    pub(crate) fn new(object: &CodeObject) -> Self {
        Self { assumptions: Assumptions::of(object.isa.chip), costs: vec![Cost::default(); object.words()] }
    }

    /// Adds what other workgroups of the launch cost.
    pub(crate) fn add(&mut self, other: &Self) {
        self.costs.iter_mut().zip(&other.costs).for_each(|(cost, other)| cost.add(other));
    }

    /// Counts one execution, whose lanes were `exec`.
    pub(crate) fn count(&mut self, word: usize, inst: &Inst, wave: &mut Wave, exec: u64) {
        let a = self.assumptions;
        let Some(cost) = self.costs.get_mut(word) else { return };
        let lanes = u64::from(exec.count_ones());
        cost.executions += 1;
        cost.lanes += lanes;
        let touched = wave.touched.as_deref_mut();
        if let Op::Control(control) = inst.op {
            cost.waits += u64::from(matches!(control, Control::Wait | Control::Barrier | Control::BarrierWait));
        }
        let issue = u64::from(a.issue_cycles);
        let cycles = &mut cost.cycles;
        match inst.facts.class {
            Class::Control | Class::Salu | Class::Smem => cycles.salu += issue,
            Class::Valu if inst.facts.is_transcendental() => cycles.valu += u64::from(a.transcendental_cycles),
            Class::Valu => cycles.valu += u64::from(a.valu_cycles),
            Class::Matrix { passes, .. } => cycles.mfma += 4 * u64::from(passes),
            Class::Vmem | Class::Lds => {}
        }
        let Some(t) = touched else { return };
        let sum = |accesses: &[(u64, u32)]| accesses.iter().map(|a| u64::from(a.1)).sum::<u64>();
        if inst.facts.class == Class::Vmem {
            cost.bytes_loaded += sum(&t.loaded);
            cost.bytes_stored += sum(&t.stored);
            let mut time = 0;
            for accesses in [&t.loaded, &t.stored] {
                let (lines, full) = lines(accesses, a.line_bytes);
                cost.cache_lines += lines;
                cost.full_lines += full;
                time += lines * u64::from(a.line_cycles);
            }
            cycles.vmem += time.max(issue);
        }
        if inst.facts.class == Class::Lds || !t.lds.is_empty() {
            cost.lds_bytes += t.lds.iter().map(|r| u64::from(r.1 - r.0)).sum::<u64>();
            let (time, conflicts) = lds_cycles(&t.lds, lanes as usize, a.lds_banks);
            cycles.lds += time.max(if inst.facts.class == Class::Lds { issue } else { 0 });
            cost.lds_conflicts += conflicts;
        }
        t.loaded.clear();
        t.stored.clear();
        t.lds.clear();
    }

    /// What was assumed.
    pub fn assumptions(&self) -> Assumptions {
        self.assumptions
    }

    /// Every instruction that was executed: address, text, cost, in the order of the code.
    pub fn instructions<'a>(&'a self, object: &'a CodeObject) -> impl Iterator<Item = (u64, &'a str, Cost)> {
        object.all().filter_map(|(word, pc, text)| {
            let cost = self.costs.get(word).filter(|c| c.executions > 0)?;
            Some((pc, text, *cost))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Accesses of `n` lanes, each of so many bytes, `stride` bytes apart.
    fn strided(n: u32, bytes: u32, stride: u32) -> Vec<(u32, u32)> {
        (0..n).map(|lane| (lane * stride, lane * stride + bytes)).collect()
    }

    #[test]
    fn lds_conflicts_worked_by_hand() {
        // Bytes a lane, stride, banks → cycles, conflicts. 64 lanes.
        for (bytes, stride, banks, cycles, conflicts) in [
            // Neighbours: two groups of 32 lanes, or one of 64.
            (4, 4, 32, 2, 0),
            (4, 4, 64, 1, 0),
            // Every second word: 32 lanes on 16 banks.
            (4, 8, 32, 4, 2),
            (4, 8, 64, 2, 1),
            // A column of a 32-word row: all in one bank.
            (4, 128, 32, 64, 62),
            (4, 128, 64, 32, 31),
            // The same column with a word of padding.
            (4, 132, 32, 2, 0),
            // All lanes the same word: shared.
            (4, 0, 32, 2, 0),
            // Bytes: four lanes share a word.
            (1, 1, 32, 2, 0),
            // Two words a lane: groups of 16 lanes; four words: of 8.
            (8, 8, 32, 4, 0),
            (16, 16, 32, 8, 0),
            (16, 16, 64, 4, 0),
            // Rows of 128 bytes, 16 bytes of each: 8 lanes on 4 banks.
            (16, 128, 32, 64, 56),
            // The same with 16 bytes of padding.
            (16, 144, 32, 8, 0),
            // Rows of 256 bytes on 64 banks: 16 lanes on 4 banks.
            (16, 256, 64, 64, 60),
        ] {
            let got = lds_cycles(&strided(64, bytes, stride), 64, banks);
            assert_eq!(got, (cycles, conflicts), "{bytes} bytes, stride {stride}, {banks} banks");
        }
        // Two elements a lane (ds_read2_b32) are two accesses.
        let two = [strided(64, 4, 4), strided(64, 4, 128)].concat();
        assert_eq!(lds_cycles(&two, 64, 32), (2 + 64, 62));
        // Few active lanes: one group.
        assert_eq!(lds_cycles(&strided(8, 4, 128), 8, 32), (8, 7));
        assert_eq!(lds_cycles(&[], 0, 32), (0, 0));
    }

    #[test]
    fn cache_lines_worked_by_hand() {
        let strided = |n: u64, bytes: u32, stride: u64, start: u64| -> Vec<(u64, u32)> {
            (0..n).map(|lane| (start + lane * stride, bytes)).collect()
        };
        // 64 neighbouring words: two lines; moved by a word, three, for bytes that fill two.
        assert_eq!(lines(&strided(64, 4, 4, 0), 128), (2, 2));
        assert_eq!(lines(&strided(64, 4, 4, 4), 128), (3, 2));
        assert_eq!(lines(&strided(64, 16, 16, 0), 128), (8, 8));
        // A line each.
        assert_eq!(lines(&strided(64, 4, 128, 0), 128), (64, 2));
        // All lanes the same word.
        assert_eq!(lines(&strided(64, 4, 0, 256), 128), (1, 1));
        // One access across two lines.
        assert_eq!(lines(&[(126, 4)], 128), (2, 1));
        assert_eq!(lines(&[], 128), (0, 0));
    }
}
