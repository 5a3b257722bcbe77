//! Bounds of scalar arguments that a kernel declares: what it assumes of them, against constants, where every thread comes by.

use super::{Fact, number};
use crate::ir::{BinaryOp, Bits, Kernel, Op, Predicate, Type, Value};

/// Narrows the facts of the parameters by what the kernel's outermost block assumes.
pub(super) fn narrow(kernel: &Kernel, facts: &mut [Fact]) {
    if !kernel.body.insts.iter().any(|inst| matches!(inst.op, Op::Assume(_))) {
        return;
    }
    let mut makers = vec![None; kernel.values.len()];
    for inst in &kernel.body.insts {
        if let [result] = inst.results[..] {
            makers[result.index()] = Some(&inst.op);
        }
    }
    let mut declared = Declared { kernel, makers, facts };
    for inst in &kernel.body.insts {
        if let Op::Assume(condition) = inst.op {
            declared.holds(condition);
        }
    }
}

struct Declared<'k, 'f> {
    kernel: &'k Kernel,
    /// By value: what makes it, in the outermost block.
    makers: Vec<Option<&'k Op>>,
    facts: &'f mut [Fact],
}

impl Declared<'_, '_> {
    fn holds(&mut self, condition: Value) {
        match self.makers[condition.index()] {
            Some(Op::Binary(BinaryOp::And, a, b)) => {
                self.holds(*a);
                self.holds(*b);
            }
            Some(Op::Compare(predicate, a, b)) => {
                if let Some(n) = self.constant(*b) {
                    self.compares(*predicate, *a, n);
                } else if let Some(n) = self.constant(*a) {
                    self.compares(swapped(*predicate), *b, n);
                }
            }
            _ => {}
        }
    }

    /// `value PREDICATE n` holds.
    fn compares(&mut self, predicate: Predicate, value: Value, n: i128) {
        if value.index() < self.kernel.params.len() {
            let old = self.facts[value.index()];
            let (min, max) = match predicate {
                Predicate::Eq => (n, n),
                Predicate::Ne => return,
                Predicate::Lt => (old.min, n - 1),
                Predicate::Le => (old.min, n),
                Predicate::Gt => (n + 1, old.max),
                Predicate::Ge => (n, old.max),
            };
            let new = Fact { min: min.max(old.min), max: max.min(old.max), ..old };
            // What nothing fulfils says nothing.
            if new.min <= new.max {
                self.facts[value.index()] = new;
            }
        } else if let (Predicate::Eq, 0, Some(Op::Binary(BinaryOp::RemFloor | BinaryOp::RemTrunc, a, by))) =
            (predicate, n, self.makers[value.index()])
            && a.index() < self.kernel.params.len()
            && let Some(by) = self.constant(*by)
            && by > 0
        {
            let fact = &mut self.facts[a.index()];
            fact.zeros = fact.zeros.max(by.trailing_zeros());
        }
    }

    fn constant(&self, v: Value) -> Option<i128> {
        match (self.makers[v.index()], self.kernel.ty(v)) {
            (Some(Op::Const(Bits(bits))), Type::Scalar(s)) if !s.is_float() => Some(number(*bits, s)),
            _ => None,
        }
    }
}

/// The predicate with its operands exchanged.
const fn swapped(predicate: Predicate) -> Predicate {
    match predicate {
        Predicate::Eq | Predicate::Ne => predicate,
        Predicate::Lt => Predicate::Gt,
        Predicate::Le => Predicate::Ge,
        Predicate::Gt => Predicate::Lt,
        Predicate::Ge => Predicate::Le,
    }
}
