//! What is known about integer values without running the kernel: ranges and power-of-two divisors.
//!
//! One forward pass over the structured IR. Code generators use it to leave out bounds checks that cannot fire, to widen
//! loads to their provable alignment and to promise LLVM the absence of overflow; nothing here is ever guessed.

use crate::ir::{BinaryOp, Block, Inst, Kernel, OffsetUnit, Op, ParamKind, Scalar, Type, Value};

/// What is known of one value. For a pointer, of its byte offset in the workgroup's LDS (only [`Fact::zeros`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fact {
    /// Smallest value, as unsigned.
    pub min: u64,
    /// Largest value, as unsigned.
    pub max: u64,
    /// The value is a multiple of `2^zeros`.
    pub zeros: u32,
}

impl Fact {
    const fn constant(v: u64) -> Self {
        Self { min: v, max: v, zeros: if v == 0 { 63 } else { v.trailing_zeros() } }
    }

    const fn up_to(max: u64) -> Self {
        Self { min: 0, max, zeros: 0 }
    }

    fn join(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max), zeros: self.zeros.min(other.zeros) }
    }

    /// This fact where the true value is `self` modulo `2^bits`: kept if nothing wraps, else only the divisor is.
    fn modulo(min: u128, max: u128, zeros: u32, bits: u32) -> Self {
        let limit = mask(bits);
        if max <= u128::from(limit) {
            Self { min: min as u64, max: max as u64, zeros }
        } else {
            Self { min: 0, max: limit, zeros: zeros.min(63) }
        }
    }
}

const fn mask(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

/// Exact range of a buffer access's first byte, in bytes from the buffer's start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ByteRange {
    /// Smallest.
    pub min: u64,
    /// Largest.
    pub max: u64,
    /// A multiple of `2^zeros`.
    pub zeros: u32,
}

/// [`Fact`]s of every value of a kernel.
#[derive(Clone, Debug)]
pub struct Facts {
    facts: Vec<Fact>,
}

impl Facts {
    /// Analyses a verified kernel.
    pub fn of(kernel: &Kernel) -> Self {
        let facts = kernel
            .values
            .iter()
            .map(|t| match t {
                Type::Scalar(s) if !s.is_float() => Fact::up_to(mask(s.bits())),
                // Pointers only ever move by whole elements.
                Type::Ptr(_, s) => Fact { zeros: s.bytes().trailing_zeros(), ..Fact::up_to(u64::MAX) },
                _ => Fact::up_to(u64::MAX),
            })
            .collect();
        let mut this = Self { facts };
        this.block(kernel, &kernel.body);
        this
    }

    /// What is known of `v`.
    pub fn get(&self, v: Value) -> Fact {
        self.facts[v.index()]
    }

    /// Where a buffer access begins.
    pub fn byte_range(&self, offset: Value, unit: OffsetUnit, data: Type) -> ByteRange {
        let f = self.get(offset);
        let size = match unit {
            OffsetUnit::Bytes => 1,
            OffsetUnit::Elements => u64::from(data.scalar().bytes()),
        };
        ByteRange { min: f.min * size, max: f.max * size, zeros: f.zeros + size.trailing_zeros() }
    }

    /// Whether a `buffer_load` or `buffer_store` provably ends within its buffer, in every thread.
    pub fn in_bounds(&self, kernel: &Kernel, buffer: Value, offset: Value, unit: OffsetUnit, data: Type) -> bool {
        let bytes = kernel.params.get(buffer.index()).and_then(|p| p.kind.buffer_bytes()).unwrap_or(0);
        self.byte_range(offset, unit, data).max + u64::from(data.bytes()) <= bytes
    }

    /// Alignment in bytes that a buffer access provably has, at most its own size.
    pub fn buffer_align(&self, kernel: &Kernel, buffer: Value, offset: Value, unit: OffsetUnit, data: Type) -> u32 {
        let base = match kernel.params.get(buffer.index()).map(|p| p.kind) {
            Some(ParamKind::Buffer { align, .. }) => align.trailing_zeros(),
            _ => 0,
        };
        let zeros = base.min(self.byte_range(offset, unit, data).zeros).min(data.bytes().trailing_zeros());
        1 << zeros
    }

    /// Alignment in bytes that an LDS access through `pointer` provably has, at most its own size.
    pub fn lds_align(&self, pointer: Value, data: Type) -> u32 {
        1 << self.get(pointer).zeros.min(data.bytes().trailing_zeros())
    }

    /// Whether an integer `add`, `sub`, `mul` or `shl` provably does not wrap: as unsigned, and as signed, numbers.
    pub fn no_wrap(&self, kernel: &Kernel, op: BinaryOp, a: Value, b: Value) -> (bool, bool) {
        let Type::Scalar(s) = kernel.ty(a) else { return (false, false) };
        if !s.is_int() {
            return (false, false);
        }
        let (limit, signed_limit) = (u128::from(mask(s.bits())), u128::from(mask(s.bits() - 1)));
        let (a, b) = (self.get(a), self.get(b));
        let (x, y) = (u128::from(a.max), u128::from(b.max));
        let operands_positive = x <= signed_limit && y <= signed_limit;
        match op {
            BinaryOp::Add => (x + y <= limit, operands_positive && x + y <= signed_limit),
            BinaryOp::Sub => (a.min >= b.max, operands_positive),
            BinaryOp::Mul => (x * y <= limit, operands_positive && x * y <= signed_limit),
            BinaryOp::Shl if y < u128::from(s.bits()) => (x << y <= limit, x << y <= signed_limit),
            _ => (false, false),
        }
    }

    fn set(&mut self, v: Value, fact: Fact) {
        self.facts[v.index()] = fact;
    }

    fn block(&mut self, kernel: &Kernel, block: &Block) {
        for inst in &block.insts {
            self.inst(kernel, inst);
        }
    }

    fn inst(&mut self, kernel: &Kernel, inst: &Inst) {
        let fact = match &inst.op {
            Op::If { then, otherwise, .. } => {
                self.block(kernel, then);
                self.block(kernel, otherwise);
                for (r, (a, b)) in inst.results.iter().zip(then.yields.iter().zip(&otherwise.yields)) {
                    self.set(*r, self.get(*a).join(self.get(*b)));
                }
                return;
            }
            Op::For { lo, hi, step, body, .. } => {
                let (lo, hi) = (self.get(*lo), self.get(*hi));
                let index = Fact {
                    min: lo.min,
                    max: hi.max.saturating_sub(1).max(lo.min),
                    zeros: lo.zeros.min(step.trailing_zeros()),
                };
                self.set(body.params[0], index);
                // Carried values keep what their types say: one pass finds no fixed point.
                self.block(kernel, body);
                return;
            }
            op => {
                let [result] = inst.results[..] else { return };
                let Some(fact) = self.data(kernel, op, kernel.ty(result)) else { return };
                (result, fact)
            }
        };
        self.set(fact.0, fact.1);
    }

    /// The fact of an operation with one scalar (or pointer) result; `None` leaves what the type says.
    fn data(&self, kernel: &Kernel, op: &Op, ty: Type) -> Option<Fact> {
        if let Type::Ptr(_, elem) = ty {
            let unknown = Fact { min: 0, max: u64::MAX, zeros: elem.bytes().trailing_zeros() };
            let zeros = match op {
                Op::LdsBase(i) => kernel.lds[*i as usize].align.trailing_zeros(),
                Op::PtrAdd(p, n) => self.get(*p).zeros.min(self.get(*n).zeros + unknown.zeros),
                _ => unknown.zeros,
            };
            return Some(Fact { zeros, ..unknown });
        }
        let Type::Scalar(scalar) = ty else { return None };
        if scalar.is_float() {
            return None;
        }
        let bits = scalar.bits();
        match op {
            Op::Const(b) => Some(Fact::constant(b.0)),
            Op::ThreadId(axis) => Some(Fact::up_to(u64::from(kernel.launch.block[axis.index()].max(1) - 1))),
            Op::BlockId(axis) => Some(Fact::up_to(u64::from(kernel.launch.grid[axis.index()].max(1) - 1))),
            Op::Select { on_true, on_false, .. } => Some(self.get(*on_true).join(self.get(*on_false))),
            Op::Convert(a) => {
                let from = kernel.ty(*a).scalar();
                let f = self.get(*a);
                // A negative number changes when it is widened; one that is not, does not.
                let positive = !from.is_signed() || f.max <= mask(from.bits() - 1);
                (from.is_int() && positive).then(|| Fact::modulo(u128::from(f.min), u128::from(f.max), f.zeros, bits))
            }
            Op::Bitcast(a) => match kernel.ty(*a) {
                Type::Scalar(s) if s.is_int() => Some(self.get(*a)),
                _ => None,
            },
            Op::Binary(op, a, b) => self.binary(*op, self.get(*a), self.get(*b), scalar),
            _ => None,
        }
    }

    fn binary(&self, op: BinaryOp, a: Fact, b: Fact, scalar: Scalar) -> Option<Fact> {
        let bits = scalar.bits();
        let wide = |v: u64| u128::from(v);
        // Signed operations agree with unsigned ones on numbers that are not negative.
        let top = if scalar.is_signed() { mask(bits - 1) } else { mask(bits) };
        let agree = a.max <= top && b.max <= top;
        match op {
            BinaryOp::Add => {
                Some(Fact::modulo(wide(a.min) + wide(b.min), wide(a.max) + wide(b.max), a.zeros.min(b.zeros), bits))
            }
            BinaryOp::Sub if a.min >= b.max => {
                Some(Fact { min: a.min - b.max, max: a.max - b.min, zeros: a.zeros.min(b.zeros) })
            }
            BinaryOp::Mul => Some(Fact::modulo(
                wide(a.min) * wide(b.min),
                wide(a.max) * wide(b.max),
                (a.zeros + b.zeros).min(63),
                bits,
            )),
            BinaryOp::DivFloor if agree && b.min > 0 => {
                let exact_power = b.min == b.max && b.min.is_power_of_two();
                let zeros = if exact_power { a.zeros.saturating_sub(b.zeros) } else { 0 };
                Some(Fact { min: a.min / b.max, max: a.max / b.min, zeros })
            }
            BinaryOp::RemFloor if agree && b.min > 0 => {
                if a.max < b.min {
                    return Some(a);
                }
                Some(Fact { min: 0, max: a.max.min(b.max - 1), zeros: a.zeros.min(b.zeros) })
            }
            BinaryOp::And => Some(Fact { min: 0, max: a.max.min(b.max), zeros: a.zeros.max(b.zeros) }),
            BinaryOp::Or | BinaryOp::Xor => {
                let top = a.max | b.max;
                let max = if top == 0 { 0 } else { mask(64 - top.leading_zeros()) };
                Some(Fact { min: 0, max, zeros: a.zeros.min(b.zeros) })
            }
            BinaryOp::Shl if b.max < u64::from(bits) => {
                Some(Fact::modulo(wide(a.min) << b.min, wide(a.max) << b.max, (a.zeros + b.min as u32).min(63), bits))
            }
            BinaryOp::Shr if agree && b.max < u64::from(bits) => {
                Some(Fact { min: a.min >> b.max, max: a.max >> b.min, zeros: a.zeros.saturating_sub(b.max as u32) })
            }
            BinaryOp::Maximum if agree => {
                Some(Fact { min: a.min.max(b.min), max: a.max.max(b.max), zeros: a.zeros.min(b.zeros) })
            }
            BinaryOp::Minimum if agree => {
                Some(Fact { min: a.min.min(b.min), max: a.max.min(b.max), zeros: a.zeros.min(b.zeros) })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Axis, Launch};
    use crate::target::Target;

    /// The fact of the last value that `f` makes.
    fn fact<T>(f: impl for<'k> FnOnce(&'k crate::Builder<'k>) -> crate::V<'k, T>) -> Fact {
        let kernel = crate::builder::build("f", Target::GFX950, Launch::linear(24, 512), vec![], |k| {
            f(k);
        })
        .unwrap();
        let facts = Facts::of(&kernel);
        let last = kernel.body.insts.last().unwrap().results[0];
        facts.get(last)
    }

    fn is(f: Fact, min: u64, max: u64, zeros: u32) {
        assert_eq!(f, Fact { min, max, zeros });
    }

    #[test]
    fn index_arithmetic_of_a_row_kernel() {
        is(fact(|k| k.thread_id(Axis::X).div_floor(128)), 0, 3, 0);
        is(fact(|k| k.thread_id(Axis::X).rem_floor(128)), 0, 127, 0);
        is(fact(|k| k.block_id(Axis::X).div_floor(12) * 4), 0, 4, 2);
        is(fact(|k| (k.block_id(Axis::X).div_floor(12) * 4 + 3).minimum(7)), 3, 7, 0);
        is(fact(|k| k.thread_id(Axis::X) << 4), 0, 511 * 16, 4);
        is(fact(|k| k.thread_id(Axis::X) & 0xF0), 0, 0xF0, 4);
    }

    #[test]
    fn what_can_wrap_keeps_only_its_divisor() {
        is(fact(|k| k.thread_id(Axis::X) * 0x0100_0000), 0, 0xFFFF_FFFF, 24);
        is(fact(|k| k.thread_id(Axis::X) - 1), 0, 0xFFFF_FFFF, 0);
        is(fact(|k| k.thread_id(Axis::X) + 0xFFFF_FFFF), 0, 0xFFFF_FFFF, 0);
    }

    #[test]
    fn negative_numbers_are_not_taken_for_small_ones() {
        // i32 −1 / 2 is not 0x7FFFFFFF, and widening −1 is not 0xFFFFFFFF.
        is(fact(|k| k.constant(-1i32).div_floor(2)), 0, 0xFFFF_FFFF, 0);
        is(fact(|k| k.constant(-1i32).to::<i64>()), 0, u64::MAX, 0);
        is(fact(|k| k.constant(-8i32) >> 1), 0, 0xFFFF_FFFF, 0);
        is(fact(|k| k.constant(7i32).to::<i64>()), 7, 7, 0);
    }
}
