//! Why something is not uniform: the chain of causes back to where threads begin to differ.

use super::{Span, Uniformity};
use crate::ir::{Block, Inst, Location, Op, Value};

/// Where a difference between threads begins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cause {
    /// The operation, as messages name it.
    pub what: String,
    /// Whether it is a load, whose author may know that what it gives is the same.
    pub loads: bool,
    /// Where it was written.
    pub location: Location,
}

/// What makes a value.
#[derive(Clone, Copy)]
enum Maker<'k> {
    /// A result of it.
    Result(&'k Inst, usize),
    /// A parameter of one of its regions.
    Param(&'k Inst, usize, usize),
}

impl<'k> Uniformity<'k> {
    /// Why the threads of a block just larger than the guard of `inst` do not all go the same way through its regions.
    pub fn why_apart(&self, inst: &'k Inst) -> Option<Cause> {
        let values: Vec<Value> = match &inst.op {
            Op::If { condition, .. } => vec![*condition],
            Op::For { lo, hi, .. } => vec![*hi, *lo],
            Op::While { before, .. } => before.yields.first().copied().into_iter().collect(),
            _ => vec![],
        };
        self.origin(values, self.guard(inst.number))
    }

    /// Why a value is not uniform beyond its span.
    pub fn why_differs(&self, v: Value) -> Option<Cause> {
        self.origin(vec![v], self.value(v))
    }

    /// The first operation, back from these values, that differs within a block just larger than `span` though its operands
    /// do not.
    fn origin(&self, values: Vec<Value>, span: Span) -> Option<Cause> {
        let k = span.0.checked_add(1).filter(|k| *k <= self.top)?;
        let differs = |v: &Value| self.states.get(v.index()).is_some_and(|s| !s.same(k));
        let mut makers = vec![None; self.kernel.values.len()];
        note(&self.kernel.body, &mut makers);
        let mut seen = vec![false; makers.len()];
        let mut open: Vec<Value> = values.into_iter().filter(differs).collect();
        while let Some(v) = open.pop() {
            if std::mem::replace(&mut seen[v.index()], true) {
                continue;
            }
            let Some(maker) = makers[v.index()] else { continue };
            let mut from = sources(maker);
            from.retain(differs);
            match maker {
                Maker::Result(inst, _) if from.is_empty() && inst.op.blocks().is_empty() => {
                    let location = self.kernel.location(inst.number);
                    let loads = matches!(inst.op, Op::PtrLoad { .. } | Op::BufferLoad { .. });
                    return Some(Cause { what: format!("`{}`", inst.op.def().name), loads, location });
                }
                _ => open.extend(from.into_iter().rev()),
            }
        }
        None
    }
}

/// What the value's uniformity comes from.
fn sources(maker: Maker<'_>) -> Vec<Value> {
    let at = |list: &[Value], i: usize| list.get(i).copied();
    let some = |all: &[Option<Value>]| all.iter().flatten().copied().collect();
    match maker {
        Maker::Result(inst, i) => match &inst.op {
            Op::If { condition, then, otherwise } => {
                some(&[Some(*condition), at(&then.yields, i), at(&otherwise.yields, i)])
            }
            Op::For { lo, hi, init, body, .. } => some(&[Some(*hi), Some(*lo), at(init, i), at(&body.yields, i)]),
            Op::While { before, .. } => some(&[before.yields.first().copied(), at(&before.yields, i + 1)]),
            Op::Native { meaning, .. } => some(&[at(&meaning.yields, i)]),
            op => op.operands(),
        },
        Maker::Param(inst, region, i) => match &inst.op {
            Op::For { lo, .. } if i == 0 => vec![*lo],
            Op::For { init, body, .. } => some(&[at(init, i - 1), at(&body.yields, i - 1)]),
            Op::While { init, after, .. } if region == 0 => some(&[at(init, i), at(&after.yields, i)]),
            Op::While { before, .. } => some(&[at(&before.yields, i + 1)]),
            Op::Native { args, .. } => some(&[at(args, i)]),
            _ => vec![],
        },
    }
}

/// Notes what makes each value of a block.
fn note<'k>(block: &'k Block, makers: &mut Vec<Option<Maker<'k>>>) {
    for inst in &block.insts {
        for (region, nested) in inst.op.blocks().into_iter().enumerate() {
            for (i, p) in nested.params.iter().enumerate() {
                makers[p.index()] = Some(Maker::Param(inst, region, i));
            }
            note(nested, makers);
        }
        for (i, r) in inst.results.iter().enumerate() {
            makers[r.index()] = Some(Maker::Result(inst, i));
        }
    }
}
