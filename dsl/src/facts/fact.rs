//! What is known of one integer, and how operations carry it on.

use crate::ir::{BinaryOp, Predicate, Scalar, Type, UnaryOp};

/// What is known of one value: an integer (as its type reads its bits; `bool` is 0 or 1), or a pointer or buffer, whose
/// address is the integer of which only [`Fact::zeros`] is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fact {
    /// Smallest value.
    pub min: i128,
    /// Largest value.
    pub max: i128,
    /// The value is a multiple of `2^zeros`; at most 63.
    pub zeros: u32,
}

const MOST_ZEROS: u32 = 63;

impl Fact {
    pub(super) const fn constant(v: i128) -> Self {
        let zeros = if v == 0 { MOST_ZEROS } else { v.trailing_zeros() };
        Self { min: v, max: v, zeros: if zeros > MOST_ZEROS { MOST_ZEROS } else { zeros } }
    }

    pub(super) const fn range(min: i128, max: i128) -> Self {
        Self { min, max, zeros: 0 }
    }

    /// What a type says: for anything but integers, nothing.
    pub(super) fn of_type(ty: Type) -> Self {
        match ty {
            Type::Scalar(s) if !s.is_float() => Self::of_scalar(s),
            _ => Self::range(i128::from(i64::MIN), i128::from(u64::MAX)),
        }
    }

    pub(super) fn of_scalar(s: Scalar) -> Self {
        if s.is_signed() {
            let half = 1i128 << (s.bits() - 1);
            Self::range(-half, half - 1)
        } else {
            Self::range(0, (1i128 << s.bits()) - 1)
        }
    }

    /// An address.
    pub(super) const fn address(zeros: u32) -> Self {
        Self { min: 0, max: u64::MAX as i128, zeros }
    }

    pub(super) fn join(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max), zeros: self.zeros.min(other.zeros) }
    }

    /// Whether every value lies in `other`'s range.
    pub(super) const fn within(self, other: Self) -> bool {
        self.min >= other.min && self.max <= other.max
    }

    /// The one value it has, if there is just one.
    pub const fn single(self) -> Option<i128> {
        if self.min == self.max { Some(self.min) } else { None }
    }

    /// This fact about an exact result, as a value of type `s`: what wraps keeps its divisor only; an index never wraps.
    pub(super) fn wrapped(self, s: Scalar) -> Self {
        let all = Self::of_scalar(s);
        let zeros = self.zeros.min(MOST_ZEROS);
        if self.within(all) {
            Self { zeros, ..self }
        } else if s == Scalar::Idx {
            self.promised(s)
        } else {
            Self { zeros, ..all }
        }
    }

    /// This fact about a number of which the author promises that it fits `s`.
    pub(super) fn promised(self, s: Scalar) -> Self {
        let all = Self::of_scalar(s);
        let clamp = |v: i128| v.clamp(all.min, all.max);
        Self { min: clamp(self.min), max: clamp(self.max), zeros: self.zeros.min(MOST_ZEROS) }
    }

    /// The same bits as an integer type of the same width.
    pub(super) fn reread(self, s: Scalar) -> Self {
        let all = Self::of_scalar(s);
        let turn = 1i128 << s.bits();
        let moved = |by: i128| Self { min: self.min + by, max: self.max + by, zeros: self.zeros };
        [self, moved(turn), moved(-turn)]
            .into_iter()
            .find(|f| f.within(all))
            .unwrap_or(Self { zeros: self.zeros, ..all })
    }
}

/// The smallest and the largest of a function's values at the corners of two ranges, where it is monotone in each operand.
fn corners(a: Fact, b: Fact, f: impl Fn(i128, i128) -> i128) -> (i128, i128) {
    let at = [f(a.min, b.min), f(a.min, b.max), f(a.max, b.min), f(a.max, b.max)];
    let [first, rest @ ..] = at;
    rest.iter().fold((first, first), |(lo, hi), v| (lo.min(*v), hi.max(*v)))
}

fn div_floor(a: i128, b: i128) -> i128 {
    let q = a / b;
    if a % b != 0 && ((a < 0) != (b < 0)) { q - 1 } else { q }
}

fn div_ceil(a: i128, b: i128) -> i128 {
    let q = a / b;
    if a % b != 0 && ((a < 0) == (b < 0)) { q + 1 } else { q }
}

/// All ones below the highest one of a number that is not negative.
fn filled(top: i128) -> i128 {
    if top == 0 { 0 } else { (1i128 << (128 - top.leading_zeros())) - 1 }
}

/// Whether a comparison of integers holds, if their ranges say so.
pub(super) fn compared(predicate: Predicate, a: Fact, b: Fact) -> Option<bool> {
    let (below, not_above) = (a.max < b.min, a.max <= b.min);
    let (above, not_below) = (a.min > b.max, a.min >= b.max);
    let (yes, no) = match predicate {
        Predicate::Eq => (a.single().is_some() && a.single() == b.single(), below || above),
        Predicate::Ne => (below || above, a.single().is_some() && a.single() == b.single()),
        Predicate::Lt => (below, not_below),
        Predicate::Le => (not_above, above),
        Predicate::Gt => (above, not_above),
        Predicate::Ge => (not_below, below),
    };
    if yes { Some(true) } else { no.then_some(false) }
}

/// An operation with one operand, of type `s`; `None` if nothing beyond the type is known.
pub(super) fn unary(op: UnaryOp, a: Fact, s: Scalar) -> Option<Fact> {
    let bits = i128::from(s.bits());
    let exact = match op {
        UnaryOp::Neg => Fact { min: -a.max, max: -a.min, zeros: a.zeros },
        UnaryOp::Not if s.is_signed() => Fact::range(-1 - a.max, -1 - a.min),
        UnaryOp::Not => {
            let ones = Fact::of_scalar(s).max;
            Fact::range(ones - a.max, ones - a.min)
        }
        UnaryOp::Abs if a.min >= 0 => a,
        UnaryOp::Abs => Fact { min: 0.max(-a.max), max: a.max.max(-a.min), zeros: a.zeros },
        UnaryOp::Ctlz if a.min >= 0 => {
            let zeros = |v: i128| bits - i128::from(128 - v.leading_zeros());
            Fact::range(zeros(a.max), zeros(a.min))
        }
        UnaryOp::Ctpop | UnaryOp::Ctlz | UnaryOp::Cttz => Fact::range(0, bits),
        _ => return None,
    };
    Some(exact.wrapped(s))
}

/// An operation with two operands of type `s`; `None` if nothing beyond the type is known.
pub(super) fn binary(op: BinaryOp, a: Fact, b: Fact, s: Scalar) -> Option<Fact> {
    exact(op, a, b, s).map(|f| f.wrapped(s))
}

/// [`binary`] before its result is brought back into the type's range.
pub(super) fn exact(op: BinaryOp, a: Fact, b: Fact, s: Scalar) -> Option<Fact> {
    let zeros = a.zeros.min(b.zeros);
    let amounts = b.min >= 0 && b.max < i128::from(s.bits());
    let no_zero = b.min > 0 || b.max < 0;
    let spread = |(min, max): (i128, i128), zeros| Fact { min, max, zeros };
    let quotient = |divide: fn(i128, i128) -> i128| {
        // Exact where the divisor is a power of two that divides the dividend.
        let power = b.single().filter(|d| d.abs().count_ones() == 1).map_or(MOST_ZEROS, |d| d.trailing_zeros());
        spread(corners(a, b, divide), a.zeros.saturating_sub(power))
    };
    // The largest divisor's magnitude, less one.
    let below = b.max.abs().max(b.min.abs()) - 1;
    let exact = match op {
        BinaryOp::Add => Fact { min: a.min + b.min, max: a.max + b.max, zeros },
        BinaryOp::Sub => Fact { min: a.min - b.max, max: a.max - b.min, zeros },
        BinaryOp::Mul => spread(corners(a, b, i128::saturating_mul), a.zeros + b.zeros),
        BinaryOp::DivFloor if no_zero => quotient(div_floor),
        BinaryOp::DivTrunc if no_zero => quotient(|a, b| a / b),
        BinaryOp::CeilDiv if no_zero => quotient(div_ceil),
        BinaryOp::RemFloor | BinaryOp::RemTrunc if a.min >= 0 && b.min > 0 => {
            if a.max < b.min {
                a
            } else {
                Fact { min: 0, max: a.max.min(below), zeros }
            }
        }
        BinaryOp::RemFloor if b.min > 0 => Fact { min: 0, max: below, zeros },
        BinaryOp::RemFloor if b.max < 0 => Fact { min: -below, max: 0, zeros },
        BinaryOp::RemTrunc if no_zero => Fact { min: a.min.clamp(-below, 0), max: a.max.clamp(0, below), zeros },
        // A number that is not negative masks the other one, whatever its sign.
        BinaryOp::And => {
            let masks = [a, b].into_iter().filter(|f| f.min >= 0).map(|f| f.max).min();
            let zeros = a.zeros.max(b.zeros);
            return Some(match masks {
                Some(max) => Fact { min: 0, max, zeros },
                None => Fact { zeros, ..Fact::of_scalar(s) },
            });
        }
        BinaryOp::Or | BinaryOp::Xor if a.min >= 0 && b.min >= 0 => {
            let min = if op == BinaryOp::Or { a.min.max(b.min) } else { 0 };
            Fact { min, max: filled(a.max | b.max), zeros }
        }
        BinaryOp::Or | BinaryOp::Xor => return Some(Fact { zeros, ..Fact::of_scalar(s) }),
        BinaryOp::Shl if amounts => spread(corners(a, b, |v, n| v.saturating_mul(1 << n)), a.zeros + b.min as u32),
        BinaryOp::Shr if amounts => spread(corners(a, b, |v, n| v >> n), a.zeros.saturating_sub(b.max as u32)),
        BinaryOp::Shrui if amounts && a.min >= 0 => {
            spread(corners(a, b, |v, n| v >> n), a.zeros.saturating_sub(b.max as u32))
        }
        BinaryOp::Shrui if amounts && b.min > 0 => Fact::range(0, ((1i128 << s.bits()) - 1) >> b.min),
        BinaryOp::Maximum => Fact { min: a.min.max(b.min), max: a.max.max(b.max), zeros },
        BinaryOp::Minimum => Fact { min: a.min.min(b.min), max: a.max.min(b.max), zeros },
        _ => return None,
    };
    Some(exact)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Exhaustive over pairs of ranges of a few bits: no value that an operation can give lies outside its fact.
    #[test]
    fn no_result_lies_outside_its_fact() {
        for s in [Scalar::I8, Scalar::U8] {
            let all = Fact::of_scalar(s);
            let points = [all.min, all.min + 1, -17, -8, -3, -1, 0, 1, 2, 3, 7, 8, 12, 100, all.max - 1, all.max];
            let points: Vec<i128> = points.into_iter().filter(|p| (all.min..=all.max).contains(p)).collect();
            let ranges: Vec<(i128, i128)> = points
                .iter()
                .flat_map(|lo| points.iter().filter(move |hi| *hi >= lo).map(move |hi| (*lo, *hi)))
                .collect();
            for &(alo, ahi) in &ranges {
                for &(blo, bhi) in &ranges {
                    for op in BinaryOp::ALL.iter().copied().filter(|o| o.def().on.contains(s)) {
                        check(op, s, fact_of(alo, ahi), fact_of(blo, bhi), &points);
                    }
                }
            }
        }
    }

    /// A range, with the zeros that a single number has.
    fn fact_of(lo: i128, hi: i128) -> Fact {
        if lo == hi { Fact::constant(lo) } else { Fact::range(lo, hi) }
    }

    fn check(op: BinaryOp, s: Scalar, a: Fact, b: Fact, points: &[i128]) {
        let Some(fact) = binary(op, a, b, s) else { return };
        for &x in points.iter().filter(|x| (a.min..=a.max).contains(x)) {
            for &y in points.iter().filter(|y| (b.min..=b.max).contains(y)) {
                let Some(r) = evaluate(op, s, x, y) else { continue };
                assert!(
                    (fact.min..=fact.max).contains(&r) && r.trailing_zeros() >= fact.zeros.min(8),
                    "{op} {s}: {x}, {y} = {r}, not in {fact:?} of {a:?}, {b:?}"
                );
            }
        }
    }

    /// The meaning of an 8-bit operation, written another way.
    fn evaluate(op: BinaryOp, s: Scalar, x: i128, y: i128) -> Option<i128> {
        let wrap = |v: i128| if s.is_signed() { i128::from(v as i8) } else { i128::from(v as u8) };
        let amount = y & 7;
        Some(wrap(match op {
            BinaryOp::Add => x + y,
            BinaryOp::Sub => x - y,
            BinaryOp::Mul => x * y,
            BinaryOp::DivFloor => (y != 0).then(|| (x as f64 / y as f64).floor() as i128)?,
            BinaryOp::DivTrunc => (y != 0).then(|| (x as f64 / y as f64).trunc() as i128)?,
            BinaryOp::CeilDiv => (y != 0).then(|| (x as f64 / y as f64).ceil() as i128)?,
            BinaryOp::RemFloor => (y != 0).then(|| x - y * (x as f64 / y as f64).floor() as i128)?,
            BinaryOp::RemTrunc => (y != 0).then(|| x % y)?,
            BinaryOp::And => x & y,
            BinaryOp::Or => x | y,
            BinaryOp::Xor => x ^ y,
            BinaryOp::Shl => x << amount,
            BinaryOp::Shr => x >> amount,
            BinaryOp::Shrui => i128::from(x as u8) >> amount,
            BinaryOp::Maximum => x.max(y),
            BinaryOp::Minimum => x.min(y),
            _ => return None,
        }))
    }
}
