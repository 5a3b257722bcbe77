//! How many instructions a wait for a mark may leave outstanding, where the hardware counts instructions and knows no marks.
//!
//! A counter that completes in order says that all but its newest `m` instructions are done. So a wait for a mark may leave
//! as many outstanding as there surely are behind the mark: the copies of every path from there, one instruction each. What
//! else may be behind it does not count, because the compiler may leave it out; it only makes the wait longer. Copies are
//! loads, which complete in order among themselves, so it does not matter whether stores do. Compiler barriers at marks and
//! waits keep copies on their side, and an instruction on a lane's path runs with that lane active.

use std::collections::HashMap;

use lathe_dsl::facts::{Facts, buffer_extent};
use lathe_dsl::ir::{Block, Inst, Kernel, Op, OpNumber, Value};
use lathe_dsl::verify::MAX_MARK;

/// Distances of a loop settle within a round for every mark that a wait can name; what has not by then counts as 0.
const MOST_ROUNDS: u32 = 2 * MAX_MARK + 4;

/// What is known at a place, along every path to it.
#[derive(Clone, PartialEq, Eq)]
struct State {
    /// By mark, the newest one first: copies surely issued since; `None` where nothing before it can be under way.
    since: Vec<Option<u32>>,
    /// Some copy may be under way.
    copied: bool,
}

impl State {
    fn new() -> Self {
        Self { since: vec![None; MAX_MARK as usize + 1], copied: false }
    }

    /// Anything may have happened.
    fn unknown() -> Self {
        Self { since: vec![Some(0); MAX_MARK as usize + 1], copied: true }
    }

    fn copy(&mut self) {
        self.since.iter_mut().flatten().for_each(|n| *n = n.saturating_add(1));
        self.copied = true;
    }

    fn mark(&mut self) {
        self.since.pop();
        self.since.insert(0, self.copied.then_some(0));
    }

    /// Everything has landed that was started before mark `n`.
    fn landed(&mut self, n: u32) {
        self.since[n as usize..].fill(None);
    }

    /// What holds on this path and on another.
    fn join(&mut self, other: &Self) {
        for (a, b) in self.since.iter_mut().zip(&other.since) {
            *a = match (*a, *b) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
        }
        self.copied |= other.copied;
    }
}

/// The waits of a kernel: how many instructions each may leave outstanding; none where it has nothing to wait for.
pub struct Marks(HashMap<OpNumber, u32>);

impl Marks {
    /// Counts copies, of which `native` says whether one of so many bytes is an instruction that outlasts its issue.
    pub fn of(kernel: &Kernel, facts: &Facts, native: impl Fn(u32) -> bool) -> Self {
        let mut extents = HashMap::new();
        kernel.walk(&mut |inst| {
            if let (Op::MakeBuffer { bytes, .. }, [buffer]) = (&inst.op, &inst.results[..]) {
                extents.insert(*buffer, facts.get(*bytes).max);
            }
        });
        for i in 0..kernel.params.len() {
            let buffer = Value(i as u32);
            extents.extend(buffer_extent(kernel, buffer).map(|n| (buffer, i128::from(n))));
        }
        let mut count = Count { native, extents, waits: HashMap::new() };
        count.block(&kernel.body, &mut State::new());
        Self(count.waits)
    }

    /// What wait `at` may leave outstanding.
    pub fn outstanding(&self, at: OpNumber) -> Option<u32> {
        self.0.get(&at).copied()
    }

    /// Whether some wait leaves copies under way.
    pub fn leave_some(&self) -> bool {
        self.0.values().any(|n| *n > 0)
    }
}

struct Count<F> {
    native: F,
    /// Most bytes that a buffer can have.
    extents: HashMap<Value, i128>,
    waits: HashMap<OpNumber, u32>,
}

impl<F: Fn(u32) -> bool> Count<F> {
    fn block(&mut self, block: &Block, state: &mut State) {
        for inst in &block.insts {
            self.inst(inst, state);
        }
    }

    fn inst(&mut self, inst: &Inst, state: &mut State) {
        match &inst.op {
            Op::CopyToLds { buffer, bytes, .. } => {
                // A copy that never lies within its buffer only stores zeros.
                let some = self.extents.get(buffer).is_some_and(|n| *n >= i128::from(*bytes));
                if some && (self.native)(*bytes) {
                    state.copy();
                }
            }
            Op::AsyncMark => state.mark(),
            Op::WaitAsyncMark(n) => {
                if let Some(m) = state.since[*n as usize] {
                    // A place in a loop is seen more than once; so is one that stands for several.
                    self.waits.entry(inst.number).and_modify(|old| *old = m.min(*old)).or_insert(m);
                }
                state.landed(*n);
            }
            Op::Drain { .. } | Op::SWaitcnt { vmcnt: Some(0), .. } => {
                state.landed(0);
                state.copied = false;
            }
            Op::If { then, otherwise, .. } => {
                let mut other = state.clone();
                self.block(then, state);
                self.block(otherwise, &mut other);
                state.join(&other);
            }
            Op::For { body, .. } => self.repeat(state, |this, state| this.block(body, state)),
            Op::While { before, after, .. } => {
                self.repeat(state, |this, state| {
                    this.block(before, state);
                    this.block(after, state);
                });
                self.block(before, state);
            }
            // What it emits may be another form than its meaning.
            Op::Native { meaning, .. } => {
                self.block(meaning, &mut State::unknown());
                if copies(meaning) {
                    *state = State::unknown();
                }
            }
            _ => {}
        }
    }

    /// The state at a loop's head, from the one before it: what holds there whichever round it is.
    fn repeat(&mut self, state: &mut State, round: impl Fn(&mut Self, &mut State)) {
        for _ in 0..MOST_ROUNDS {
            let mut after = state.clone();
            round(self, &mut after);
            let mut head = state.clone();
            head.join(&after);
            if head == *state {
                return;
            }
            *state = head;
        }
        *state = State::unknown();
        round(self, &mut state.clone());
    }
}

/// Whether a block holds copies or marks.
fn copies(block: &Block) -> bool {
    let nested = |inst: &Inst| inst.op.blocks().into_iter().any(copies);
    block.insts.iter().any(|i| matches!(i.op, Op::CopyToLds { .. } | Op::AsyncMark) || nested(i))
}

#[cfg(test)]
mod tests {
    use lathe_dsl::prelude::*;

    use super::*;

    type K<'k> = &'k Builder<'k>;

    /// What each wait of a kernel may leave outstanding, in order; copies of 16 bytes are not counted.
    fn waits(body: impl for<'k> FnOnce(K<'k>, &dyn Fn(u32))) -> Vec<Option<u32>> {
        let kernel = lathe_dsl::builder::build("k", Target::GFX950, Launch::linear(1, 64), vec![], |k| {
            let x = k.make_buffer::<f32>(k.constant(0u64), 4096);
            let small = k.make_buffer::<f32>(k.constant(0u64), 2);
            let tile = k.lds::<f32>("tile", 256);
            // 0 bytes stand for a copy that never lies in its buffer.
            body(k, &|bytes| match bytes {
                0 => k.copy_to_lds(small, k.lane_id(), tile, 4),
                bytes => k.copy_to_lds(x, k.lane_id(), tile, bytes),
            });
        })
        .unwrap();
        let marks = Marks::of(&kernel, &Facts::of(&kernel), |bytes| bytes == 4);
        let mut found = vec![];
        kernel.walk(&mut |inst| {
            if let Op::WaitAsyncMark(_) = inst.op {
                found.push(marks.outstanding(inst.number));
            }
        });
        found
    }

    #[test]
    fn copies_behind_a_mark_count_if_they_are_instructions() {
        let found = waits(|k, copy| {
            k.wait_asyncmark(0);
            copy(4);
            k.asyncmark();
            copy(16);
            copy(4);
            copy(0);
            copy(4);
            k.wait_asyncmark(1);
            k.wait_asyncmark(0);
            k.wait_asyncmark(0);
        });
        assert_eq!(found, [None, None, Some(2), None]);
    }

    #[test]
    fn a_drain_leaves_nothing_to_wait_for() {
        let found = waits(|k, copy| {
            copy(4);
            k.asyncmark();
            k.drain(Scope::Workgroup);
            k.asyncmark();
            k.wait_asyncmark(1);
            copy(4);
            k.asyncmark();
            copy(4);
            k.wait_asyncmark(0);
            k.wait_asyncmark(1);
        });
        assert_eq!(found, [None, Some(1), None]);
    }

    #[test]
    fn of_two_paths_the_shorter_one_counts() {
        let found = waits(|k, copy| {
            copy(4);
            k.asyncmark();
            k.if_else(
                k.lane_id().lt(7),
                || {
                    copy(4);
                    copy(4);
                    copy(4);
                },
                || {
                    copy(4);
                    copy(4);
                    k.if_(k.lane_id().lt(9), || copy(4));
                },
            );
            k.wait_asyncmark(0);
        });
        assert_eq!(found, [Some(2)]);
    }

    #[test]
    fn marks_of_one_path_only_move_what_a_wait_means() {
        // The newest mark is in the branch or before the second copy.
        let found = waits(|k, copy| {
            copy(4);
            k.asyncmark();
            copy(4);
            k.if_(k.lane_id().lt(7), || k.asyncmark());
            copy(4);
            k.wait_asyncmark(0);
        });
        assert_eq!(found, [Some(1)]);
    }

    #[test]
    fn loops_keep_the_distance_that_every_round_keeps() {
        let pipelined = |depth: u32, a_round: u32| {
            waits(|k, copy| {
                let start = || {
                    (0..a_round).for_each(|_| copy(4));
                    k.asyncmark();
                };
                (0..depth).for_each(|_| start());
                k.for_range(0u32, k.lane_id(), 1, (), |_, ()| {
                    start();
                    k.wait_asyncmark(depth);
                });
                // Behind it all rounds but the last ones have landed.
                k.wait_asyncmark(depth);
                k.wait_asyncmark(0);
            })
        };
        for (depth, a_round) in [(1, 1), (2, 1), (3, 4), (30, 1)] {
            let found = pipelined(depth, a_round);
            assert_eq!((found[0], found[2]), (Some(depth * a_round), Some(0)), "{depth} {a_round}");
        }
    }

    #[test]
    fn a_mark_without_a_copy_in_some_round_costs_the_distance() {
        let found = waits(|k, copy| {
            copy(4);
            k.asyncmark();
            k.for_range(0u32, k.lane_id(), 1, (), |i, ()| {
                k.if_(i.lt(3), || copy(4));
                k.asyncmark();
                k.wait_asyncmark(1);
            });
        });
        assert_eq!(found, [Some(0)]);
    }

    #[test]
    fn the_end_of_a_while_has_seen_its_condition() {
        let found = waits(|k, copy| {
            copy(4);
            k.asyncmark();
            k.while_(
                k.lane_id(),
                |n| {
                    copy(4);
                    (n.lt(64), n)
                },
                |n| {
                    k.wait_asyncmark(0);
                    n + 1
                },
            );
            k.wait_asyncmark(0);
        });
        assert_eq!(found, [Some(1), Some(1)]);
    }
}
