//! The equations between values, and their least solution.

use std::collections::VecDeque;

use super::state::State;
use super::transfer::{Transfer, entry};
use crate::facts::Facts;
use crate::ir::{Block, Inst, Kernel, Op, Value};

/// After so many changes a value's differing bits grow to all at once.
const PATIENCE: u8 = 4;

/// One equation: what `to` is made of.
struct Equation<'k> {
    to: Value,
    from: From<'k>,
}

enum From<'k> {
    /// An operation without regions.
    Op(&'k Inst),
    /// One of these: a block's parameter or an isolated region's result.
    OneOf([Value; 2]),
    /// An `if`'s result.
    If { condition: Value, sides: [Value; 2] },
    /// A loop's index.
    Index { lo: Value, step: u32 },
    /// What a `for` carried at its end, in threads that may end it in different rounds.
    AfterFor { lo: Value, hi: Value, step: u32, last: [Value; 2] },
    /// What a `while` handed out at its end.
    AfterWhile { condition: Value, last: Value },
}

impl From<'_> {
    fn each(&self, f: &mut impl FnMut(Value)) {
        match self {
            From::Op(inst) => inst.op.operands().into_iter().for_each(f),
            From::OneOf(all) => all.iter().copied().for_each(f),
            From::If { condition, sides: [a, b] } => [*condition, *a, *b].into_iter().for_each(f),
            From::Index { lo, .. } => f(*lo),
            From::AfterFor { lo, hi, last: [a, b], .. } => [*lo, *hi, *a, *b].into_iter().for_each(f),
            From::AfterWhile { condition, last } => [*condition, *last].into_iter().for_each(f),
        }
    }
}

/// States of all values.
pub(super) fn solve(kernel: &Kernel, facts: &Facts) -> Vec<State> {
    solved(kernel, facts).0
}

/// How often an equation was solved.
#[cfg(test)]
pub(super) fn updates(kernel: &Kernel, facts: &Facts) -> usize {
    solved(kernel, facts).1
}

fn solved(kernel: &Kernel, facts: &Facts) -> (Vec<State>, usize) {
    let mut equations = vec![];
    collect(&kernel.body, &mut equations);
    let mut states = vec![State::SAME; kernel.values.len()];
    for (state, param) in states.iter_mut().zip(&kernel.params) {
        *state = entry(param);
    }
    let mut solver = Solver {
        transfer: Transfer { kernel, facts, wave: kernel.wave.trailing_zeros() },
        changes: vec![0; states.len()],
        states,
        users: Users::of(&equations, kernel.values.len()),
        queue: VecDeque::new(),
        queued: vec![false; equations.len()],
    };
    for i in 0..equations.len() {
        solver.update(&equations, i, i);
    }
    let mut updates = equations.len();
    while let Some(i) = solver.queue.pop_front() {
        solver.queued[i] = false;
        solver.update(&equations, i, equations.len());
        updates += 1;
    }
    (solver.states, updates)
}

struct Solver<'k> {
    transfer: Transfer<'k>,
    states: Vec<State>,
    /// How often a value rose.
    changes: Vec<u8>,
    users: Users,
    queue: VecDeque<usize>,
    queued: Vec<bool>,
}

impl Solver<'_> {
    /// Holds equation `i`; if its value rises, those of the equations before `done` that use it are due again.
    fn update(&mut self, equations: &[Equation<'_>], i: usize, done: usize) {
        let Equation { to, from } = &equations[i];
        let get = |v: &Value| self.states[v.index()];
        let (transfer, facts) = (&self.transfer, self.transfer.facts);
        let new = match from {
            From::Op(inst) => transfer.op(&self.states, inst, *to),
            From::OneOf([a, b]) => get(a).join(get(b)),
            From::If { sides: [a, b], .. } if a == b => get(a),
            From::If { condition, sides: [a, b] } => get(a).join(get(b)).chosen_by(&get(condition)),
            From::Index { lo, step } => {
                // All lanes run the same round, `step` further on.
                get(lo).with_bits(|k| match get(lo).differing(k) {
                    m if step.trailing_zeros() >= m => m,
                    _ => u32::MAX,
                })
            }
            From::AfterFor { lo, hi, step, last: [a, b] } => {
                let (lo, hi, zeros) = (get(lo), get(hi), facts.get(*hi).zeros);
                let rounds = State::by_size(|k| u32::from(!super::transfer::same_rounds(&lo, &hi, zeros, *step, k)));
                get(a).join(get(b)).chosen_by(&rounds)
            }
            From::AfterWhile { condition, last } => get(last).chosen_by(&get(condition)),
        };
        let (old, changes) = (self.states[to.index()], &mut self.changes[to.index()]);
        let mut new = transfer.bounded(old.join(new), *to);
        if new == old {
            return;
        }
        *changes += 1;
        if *changes > PATIENCE {
            new = transfer.bounded(new.widened(&old), *to);
        }
        self.states[to.index()] = new;
        for &user in self.users.of_value(*to) {
            let user = user as usize;
            if user < done && !self.queued[user] {
                self.queued[user] = true;
                self.queue.push_back(user);
            }
        }
    }
}

/// The equations in which each value is used, one list behind the other.
struct Users {
    starts: Vec<u32>,
    all: Vec<u32>,
}

impl Users {
    fn of(equations: &[Equation<'_>], values: usize) -> Self {
        let mut starts = vec![0u32; values + 1];
        for e in equations {
            e.from.each(&mut |v| starts[v.index() + 1] += 1);
        }
        for i in 0..values {
            starts[i + 1] += starts[i];
        }
        let mut next = starts.clone();
        let mut all = vec![0; starts[values] as usize];
        for (i, e) in equations.iter().enumerate() {
            e.from.each(&mut |v| {
                all[next[v.index()] as usize] = i as u32;
                next[v.index()] += 1;
            });
        }
        Self { starts, all }
    }

    fn of_value(&self, v: Value) -> &[u32] {
        &self.all[self.starts[v.index()] as usize..self.starts[v.index() + 1] as usize]
    }
}

/// The equations of a block, in the order of the text; a loop's results stand behind its body.
fn collect<'k>(block: &'k Block, out: &mut Vec<Equation<'k>>) {
    for inst in &block.insts {
        match &inst.op {
            Op::If { condition, then, otherwise } => {
                collect(then, out);
                collect(otherwise, out);
                for (to, (a, b)) in inst.results.iter().zip(then.yields.iter().zip(&otherwise.yields)) {
                    out.push(Equation { to: *to, from: From::If { condition: *condition, sides: [*a, *b] } });
                }
            }
            Op::For { lo, hi, init, step, body, .. } => {
                if let Some((index, carried)) = body.params.split_first() {
                    out.push(Equation { to: *index, from: From::Index { lo: *lo, step: *step } });
                    one_of(carried, init, &body.yields, out);
                }
                collect(body, out);
                for (to, (a, b)) in inst.results.iter().zip(init.iter().zip(&body.yields)) {
                    let from = From::AfterFor { lo: *lo, hi: *hi, step: *step, last: [*a, *b] };
                    out.push(Equation { to: *to, from });
                }
            }
            Op::While { init, before, after } => {
                one_of(&before.params, init, &after.yields, out);
                collect(before, out);
                if let Some((condition, handed)) = before.yields.split_first() {
                    one_of(&after.params, handed, handed, out);
                    collect(after, out);
                    for (to, last) in inst.results.iter().zip(handed) {
                        out.push(Equation { to: *to, from: From::AfterWhile { condition: *condition, last: *last } });
                    }
                }
            }
            Op::Native { args, meaning, .. } => {
                one_of(&meaning.params, args, args, out);
                collect(meaning, out);
                one_of(&inst.results, &meaning.yields, &meaning.yields, out);
            }
            _ => out.extend(inst.results.iter().map(|to| Equation { to: *to, from: From::Op(inst) })),
        }
    }
}

fn one_of<'k>(to: &[Value], a: &[Value], b: &[Value], out: &mut Vec<Equation<'k>>) {
    let sources = a.iter().zip(b);
    out.extend(to.iter().zip(sources).map(|(to, (a, b))| Equation { to: *to, from: From::OneOf([*a, *b]) }));
}
