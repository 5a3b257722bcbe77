//! What integers leave when they are divided by powers of two.

use crate::facts::Facts;
use crate::ir::{BinaryOp, Kernel, Op, Scalar, Type, Value};

/// A number that is `fixed` and a multiple of `2^zeros`; wrapping in its type keeps that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Residue {
    pub fixed: i128,
    pub zeros: u32,
}

impl Residue {
    pub fn plus(self, other: Self) -> Self {
        Self { fixed: self.fixed + other.fixed, zeros: self.zeros.min(other.zeros) }
    }

    pub fn times(self, n: i128) -> Self {
        Self { fixed: self.fixed * n, zeros: self.zeros + n.trailing_zeros().min(u64::BITS) }
    }

    /// What is left by the division by `align`, a power of two; `None` if that is unknown.
    pub fn rest(self, align: u32) -> Option<i128> {
        (self.zeros >= align.trailing_zeros()).then(|| self.fixed.rem_euclid(align.into()))
    }
}

/// By value.
pub(super) struct Residues<'k> {
    kernel: &'k Kernel,
    facts: &'k Facts,
    known: Vec<Option<Residue>>,
}

impl<'k> Residues<'k> {
    pub fn new(kernel: &'k Kernel, facts: &'k Facts) -> Self {
        Self { kernel, facts, known: vec![None; kernel.values.len()] }
    }

    /// Of an integer.
    pub fn get(&self, v: Value) -> Residue {
        let fact = self.facts.get(v);
        let plain =
            || fact.single().map_or(Residue { fixed: 0, zeros: fact.zeros }, |n| Residue { fixed: n, zeros: 63 });
        self.known[v.index()].unwrap_or_else(plain)
    }

    /// Notes what an operation makes, in the order of the text.
    pub fn made(&mut self, op: &Op, result: Value) {
        let Type::Scalar(s) = self.kernel.ty(result) else { return };
        if !s.is_int() || self.facts.get(result).single().is_some() {
            return;
        }
        let residue = match op {
            Op::Binary(BinaryOp::Add, a, b) => self.get(*a).plus(self.get(*b)),
            Op::Binary(BinaryOp::Sub, a, b) => self.get(*a).plus(self.get(*b).times(-1)),
            Op::Binary(BinaryOp::Mul, a, b) => match (self.facts.get(*a).single(), self.facts.get(*b).single()) {
                (_, Some(n)) if n != 0 => self.get(*a).times(n),
                (Some(n), _) if n != 0 => self.get(*b).times(n),
                _ => return,
            },
            Op::Convert(a) if self.kernel.ty(*a).scalar().is_int() => {
                let Residue { fixed, zeros } = self.get(*a);
                Residue { fixed, zeros: zeros.min(bits(self.kernel.ty(*a).scalar())) }
            }
            Op::ReadFirstLane(a) | Op::AssumeUniform { value: a, .. } => self.get(*a),
            _ => return,
        };
        let zeros = residue.zeros.min(bits(s));
        if zeros > self.facts.get(result).zeros {
            self.known[result.index()] = Some(Residue { fixed: residue.fixed.rem_euclid(1 << zeros), zeros });
        }
    }
}

/// Bits that stay when a number of a type wraps.
fn bits(s: Scalar) -> u32 {
    s.bits().min(63)
}
