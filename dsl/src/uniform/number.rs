//! How arithmetic carries on which low bits of an integer may differ.

use super::state::length;
use crate::facts::Fact;
use crate::ir::{BinaryOp, Predicate};

/// An integer operand within one block of threads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operand {
    /// So many low bits may differ.
    pub bits: u32,
    /// What is known of it in all threads.
    pub fact: Fact,
}

impl Operand {
    fn same(self) -> bool {
        self.bits == 0
    }

    /// The power of two that it is everywhere.
    fn power_of_two(self) -> Option<u32> {
        let single = self.fact.single()?;
        (single > 0 && single.count_ones() == 1).then(|| single.trailing_zeros())
    }

    /// The low bits that may differ, as a mask.
    fn mask(self) -> u128 {
        (1 << self.bits) - 1
    }
}

/// Low bits that may differ in a result of `n` bits.
pub(super) fn binary(op: BinaryOp, a: Operand, b: Operand, n: u32, signed: bool) -> u32 {
    if a.same() && b.same() {
        return 0;
    }
    let most = a.bits.max(b.bits);
    let ones = (1i128 << n) - 1;
    // As a mask: the bits of a constant of type `n`.
    let constant = |o: Operand| o.fact.single().map(|v| (v & ones) as u128);
    let not_negative = a.fact.min >= 0;
    match op {
        BinaryOp::Add => sum(a, b).or_else(|| sum(b, a)).unwrap_or(n),
        BinaryOp::Sub if b.same() && b.fact.zeros >= a.bits => a.bits,
        BinaryOp::Mul => match (a.power_of_two(), b.power_of_two()) {
            (Some(c), _) => b.bits + c,
            (_, Some(c)) => a.bits + c,
            _ => n,
        }
        .min(n),
        BinaryOp::Shl => match b.fact.single() {
            Some(c) => (a.bits + (c as u32 & (n - 1))).min(n),
            None => n,
        },
        BinaryOp::Shr | BinaryOp::Shrui => match b.fact.single() {
            Some(c) => shifted(a.bits, c as u32 & (n - 1), n, signed && op == BinaryOp::Shr),
            None => n,
        },
        BinaryOp::DivFloor | BinaryOp::DivTrunc if op == BinaryOp::DivFloor || not_negative => match b.fact.single() {
            // The quotient by an odd number of what is the same.
            Some(d) if d > 0 && a.bits <= d.trailing_zeros() => 0,
            Some(_) => b.power_of_two().map_or(n, |c| shifted(a.bits, c, n, signed)),
            None => n,
        },
        BinaryOp::RemFloor | BinaryOp::RemTrunc if op == BinaryOp::RemFloor || not_negative => match b.power_of_two() {
            Some(c) => a.bits.min(c),
            None => n,
        },
        BinaryOp::And => match (constant(a), constant(b)) {
            (Some(c), _) => length(b.mask() & c),
            (_, Some(c)) => length(a.mask() & c),
            _ => most,
        },
        BinaryOp::Or => match (constant(a), constant(b)) {
            (Some(c), _) => length(b.mask() & !c & ones as u128),
            (_, Some(c)) => length(a.mask() & !c & ones as u128),
            _ => most,
        },
        BinaryOp::Xor => most,
        // Which of two is larger does not change when both lose the same low bits.
        BinaryOp::Maximum | BinaryOp::Minimum => most,
        _ => n,
    }
}

/// A sum in which no carry leaves the low bits that differ: `a`'s are 0 wherever `b` differs.
fn sum(a: Operand, b: Operand) -> Option<u32> {
    if a.fact.zeros < b.bits {
        return None;
    }
    if a.bits <= b.bits {
        return Some(b.bits);
    }
    (b.fact.min >= 0 && length(b.fact.max as u128) <= b.bits).then_some(a.bits)
}

/// Shifted right; a sign that differs fills what is shifted in.
fn shifted(bits: u32, by: u32, n: u32, signed: bool) -> u32 {
    if signed && bits >= n { n } else { bits.saturating_sub(by) }
}

/// Whether a comparison of integers of `n` bits comes out the same in the whole block.
pub(super) fn compared(predicate: Predicate, a: Operand, b: Operand, n: u32, signed: bool) -> bool {
    if a.same() && b.same() {
        return true;
    }
    let apart = a.fact.max < b.fact.min || b.fact.max < a.fact.min;
    match predicate {
        Predicate::Eq | Predicate::Ne => apart,
        Predicate::Lt | Predicate::Ge => less(a, b, n, signed),
        Predicate::Gt | Predicate::Le => less(b, a, n, signed),
    }
}

/// Whether `a < b` comes out the same.
fn less(a: Operand, b: Operand, n: u32, signed: bool) -> bool {
    if a.fact.max < b.fact.min || a.fact.min >= b.fact.max {
        return true;
    }
    // Without a differing sign, `a < b` is `a >> m < b >> m` if `b` is a multiple of 2^m, and `b ≥ a + 1` the other way round.
    let countable = |o: Operand| !(signed && o.bits >= n);
    if b.same() {
        return countable(a) && b.fact.zeros >= a.bits;
    }
    let next = a.fact.single().map(|v| v + 1);
    countable(b) && next.is_some_and(|v| v == 0 || v.trailing_zeros() >= b.bits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Scalar;

    /// Operands whose low bits differ, over bases of which the facts tell exactly what there is to know.
    fn operands(s: Scalar) -> Vec<(Operand, Vec<i128>)> {
        let (all, mut out) = (if s.is_signed() { -128i128..128 } else { 0..256 }, vec![]);
        for bits in 0..=8 {
            let size = 1i128 << bits;
            let bases: Vec<i128> = all.clone().filter(|v| v.rem_euclid(size) == 0).collect();
            let picked = bases.iter().step_by(bases.len().div_ceil(7));
            for base in picked.chain(bases.last()) {
                let values: Vec<i128> = (*base..base + size).collect();
                let zeros = values.iter().map(|v| if *v == 0 { 63 } else { v.trailing_zeros() }).min().unwrap();
                let fact = Fact { min: *base, max: base + size - 1, zeros };
                out.push((Operand { bits, fact }, values));
            }
        }
        out
    }

    fn evaluate(op: BinaryOp, s: Scalar, x: i128, y: i128) -> Option<i128> {
        let wrap = |v: i128| if s.is_signed() { i128::from(v as i8) } else { i128::from(v as u8) };
        let (floor, by) = (x.checked_div_euclid(y)?, (y & 7) as u32);
        let floor = if y < 0 && x.rem_euclid(y) != 0 { floor - 1 } else { floor };
        Some(wrap(match op {
            BinaryOp::Add => x + y,
            BinaryOp::Sub => x - y,
            BinaryOp::Mul => x * y,
            BinaryOp::DivFloor => floor,
            BinaryOp::RemFloor => x - y * floor,
            BinaryOp::DivTrunc => x / y,
            BinaryOp::RemTrunc => x % y,
            BinaryOp::And => x & y,
            BinaryOp::Or => x | y,
            BinaryOp::Xor => x ^ y,
            BinaryOp::Shl => x << by,
            BinaryOp::Shr => x >> by,
            BinaryOp::Shrui => i128::from(x as u8) >> by,
            BinaryOp::Maximum => x.max(y),
            BinaryOp::Minimum => x.min(y),
            _ => return None,
        }))
    }

    /// No two results of one block differ above the bits that may.
    #[test]
    fn results_differ_in_no_other_bits() {
        for s in [Scalar::U8, Scalar::I8] {
            let all = operands(s);
            for (a, xs) in &all {
                for (b, ys) in &all {
                    for op in BinaryOp::ALL.iter().copied().filter(|o| o.def().on.contains(s)) {
                        let bits = binary(op, *a, *b, 8, s.is_signed());
                        if bits >= 8 {
                            continue;
                        }
                        let mut results = xs.iter().flat_map(|x| ys.iter().filter_map(|y| evaluate(op, s, *x, *y)));
                        let Some(first) = results.next() else { continue };
                        let odd = results.find(|r| r >> bits != first >> bits);
                        assert!(
                            odd.is_none(),
                            "{op} {s}: {odd:?} and {first} differ above {bits} bits of {a:?}, {b:?}"
                        );
                    }
                    for predicate in Predicate::ALL.iter().copied() {
                        if !compared(predicate, *a, *b, 8, s.is_signed()) {
                            continue;
                        }
                        let holds = |x: &i128, y: &i128| match predicate {
                            Predicate::Eq => x == y,
                            Predicate::Ne => x != y,
                            Predicate::Lt => x < y,
                            Predicate::Le => x <= y,
                            Predicate::Gt => x > y,
                            Predicate::Ge => x >= y,
                        };
                        let first = holds(&xs[0], &ys[0]);
                        let same = xs.iter().all(|x| ys.iter().all(|y| holds(x, y) == first));
                        assert!(same, "{predicate} {s} of {a:?}, {b:?}");
                    }
                }
            }
        }
    }
}
