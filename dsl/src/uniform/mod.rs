//! Which values are the same in which threads, and where control flow is.
//!
//! The unit is an aligned block of threads in the workgroup's linear order (x fastest): of 2, 4, … threads up to a wave, of
//! several waves, or the whole workgroup. A value is *uniform* over a block if all of its threads hold the same one. For
//! integers the analysis knows more: how many low bits may differ within a block, so that `thread_id / 64` and
//! `thread_id < 128` are seen to be the same over 64 threads.
//!
//! Equations over all values are solved from below: everything starts as uniform, and what turns out not to be is handed on
//! along the uses until nothing changes. Each value rises a bounded number of times, so the time is linear in the kernel.
//! What control flow adds: a value that leaves an `if` or a loop whose lanes do not go together is not uniform.

mod explain;
mod number;
mod solve;
mod sources;
mod state;
mod transfer;

use std::fmt;

pub use explain::Cause;

use crate::facts::Facts;
use crate::ir::{Block, Inst, Kernel, Op, OpNumber, Value};
use state::{SIZES, State};

/// The largest aligned block of threads over which something is the same.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Span(u32);

impl Span {
    /// The whole workgroup, even if it is smaller than a wave.
    pub const WORKGROUP: Self = Self(u32::MAX);
    /// One thread: nothing is the same.
    pub const THREAD: Self = Self(0);

    /// Blocks of this many threads, a power of two.
    pub const fn of(threads: u32) -> Self {
        Self(threads.trailing_zeros())
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::WORKGROUP => f.write_str("the workgroup"),
            Self::THREAD => f.write_str("one thread"),
            Self(k) => write!(f, "{} threads", 1u64 << k),
        }
    }
}

/// What is known of a kernel's values and places.
pub struct Uniformity<'k> {
    kernel: &'k Kernel,
    states: Vec<State>,
    /// By operation, from number 1: the blocks that run it together.
    control: Vec<Span>,
    /// By operation: the blocks whose threads take the same way through an `if`, or the same number of rounds of a loop.
    guards: Vec<Span>,
    /// Blocks of `2^top` threads, or larger, hold the whole workgroup.
    top: u32,
}

impl<'k> Uniformity<'k> {
    /// Analyses a kernel whose types and regions have been verified.
    pub fn of(kernel: &'k Kernel, facts: &Facts) -> Self {
        let threads = kernel.launch.block_threads().max(1);
        let top = threads.next_power_of_two().trailing_zeros().min(SIZES as u32);
        let states = solve::solve(kernel, facts);
        let all = vec![Span::WORKGROUP; kernel.locations.len()];
        let mut this = Self { kernel, states, control: all.clone(), guards: all, top };
        this.place(&kernel.body, Span::WORKGROUP, facts);
        this
    }

    /// Over which blocks a value is uniform, among the threads that run where it is made.
    pub fn value(&self, v: Value) -> Span {
        self.states.get(v.index()).map_or(Span::THREAD, |s| self.span(|k| s.same(k)))
    }

    /// The blocks of threads that run an operation together: all of a block's threads, or none.
    pub fn control(&self, op: OpNumber) -> Span {
        self.control.get(index(op)).copied().unwrap_or(Span::THREAD)
    }

    /// The blocks whose threads go together through the regions of an operation that is run by whole blocks.
    pub fn guard(&self, op: OpNumber) -> Span {
        self.guards.get(index(op)).copied().unwrap_or(Span::THREAD)
    }

    fn guard_of(&self, inst: &Inst, facts: &Facts) -> Span {
        match &inst.op {
            Op::If { condition, .. } => self.value(*condition),
            Op::For { lo, hi, step, .. } => {
                let [from, to] = [lo, hi].map(|v| self.states[v.index()]);
                self.span(|k| transfer::same_rounds(&from, &to, facts.get(*hi).zeros, *step, k))
            }
            Op::While { before, .. } => before.yields.first().map_or(Span::THREAD, |c| self.value(*c)),
            _ => Span::WORKGROUP,
        }
    }

    fn span(&self, same: impl Fn(u32) -> bool) -> Span {
        (1..=self.top).find(|k| !same(*k)).map_or(Span::WORKGROUP, |k| Span(k - 1))
    }

    fn place(&mut self, block: &Block, span: Span, facts: &Facts) {
        for inst in &block.insts {
            let at = index(inst.number);
            if let Some(control) = self.control.get_mut(at) {
                *control = span;
            }
            let regions = inst.op.blocks();
            if regions.is_empty() {
                continue;
            }
            let guard = self.guard_of(inst, facts);
            if let Some(known) = self.guards.get_mut(at) {
                *known = guard;
            }
            for region in regions {
                self.place(region, span.min(guard), facts);
            }
        }
    }
}

fn index(op: OpNumber) -> usize {
    (op.0 as usize).wrapping_sub(1)
}

#[cfg(test)]
mod tests;
