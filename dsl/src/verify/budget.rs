//! How much there is to compile.

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;

use crate::error::Warning;
use crate::facts::Facts;
use crate::ir::{Block, Inst, Kernel, Location, Op, Unroll};

/// Operations of a kernel, loops that are asked to be unrolled counted that often, above which a warning says what makes so
/// many: each costs some 0.1 ms of compile time, and the instruction cache of a chip holds a few thousand.
pub const OP_BUDGET: u64 = 10_000;

/// Warns of a kernel that is too large, and names what makes it so.
pub(super) fn check(kernel: &Kernel, facts: &Facts) -> Vec<Warning> {
    // What is not unrolled here cannot be over the budget without a single operation more than that.
    let mut count = Count { kernel, facts, largest: None };
    let total = count.block(&kernel.body);
    if total <= OP_BUDGET {
        return vec![];
    }
    let much = format!("{total} operations to compile, more than {OP_BUDGET}");
    if let Some(Part { ops, rounds, location }) = count.largest.filter(|p| p.ops > total / 2) {
        let message = format!(
            "{much}: {ops} of them are the {rounds} rounds of this loop, which is to be unrolled; let it be a loop \
             (`Unroll::Auto`), or unroll a part of it"
        );
        return vec![Warning { location: Some(location), message }];
    }
    let mut written: HashMap<Location, u64, FxBuildHasher> = HashMap::default();
    kernel.locations.iter().for_each(|l| *written.entry(*l).or_default() += 1);
    let most = written.into_iter().max_by_key(|(location, n)| (*n, std::cmp::Reverse(*location)));
    let message = match most {
        Some((_, n)) if n > 1 => format!(
            "{much}: this place alone was traced {n} times; a loop in Rust is unrolled while the kernel is traced, \
             `for_range` is not"
        ),
        _ => format!("{much}; use `for_range` for what repeats, or make it several kernels"),
    };
    vec![Warning { location: most.filter(|(_, n)| *n > 1).map(|(l, _)| l), message }]
}

/// An unrolled loop.
struct Part {
    ops: u64,
    rounds: u64,
    location: Location,
}

struct Count<'k> {
    kernel: &'k Kernel,
    facts: &'k Facts,
    /// The unrolled loop that makes most operations.
    largest: Option<Part>,
}

impl Count<'_> {
    fn block(&mut self, block: &Block) -> u64 {
        block.insts.iter().fold(0, |n: u64, inst| n.saturating_add(self.inst(inst)))
    }

    fn inst(&mut self, inst: &Inst) -> u64 {
        let inside = inst.op.blocks().into_iter().fold(0, |n: u64, b| n.saturating_add(self.block(b)));
        let rounds = self.rounds(&inst.op);
        let ops = inside.saturating_mul(rounds);
        if rounds > 1 && self.largest.as_ref().is_none_or(|l| ops >= l.ops) {
            self.largest = Some(Part { ops, rounds, location: self.kernel.location(inst.number) });
        }
        ops.saturating_add(1)
    }

    /// Copies of its regions that are asked for.
    fn rounds(&self, op: &Op) -> u64 {
        let Op::For { lo, hi, step, unroll: Unroll::Full, .. } = op else { return 1 };
        match (self.facts.get(*lo).single(), self.facts.get(*hi).single()) {
            (Some(lo), Some(hi)) => {
                let step = i128::from(*step);
                u64::try_from(((hi - lo).max(0) + step - 1) / step).unwrap_or(u64::MAX)
            }
            _ => 1,
        }
    }
}
