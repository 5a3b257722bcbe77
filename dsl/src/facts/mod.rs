//! What is known about integer values without running the kernel: ranges and power-of-two divisors.
//!
//! One forward pass over the structured IR, from what the types say and what the kernel declares of its arguments. Code generators use it to leave out bounds checks that cannot fire, to widen
//! loads to their provable alignment and to promise LLVM the absence of overflow; nothing here is ever guessed.

mod declared;
mod fact;

pub use fact::Fact;

use crate::ir::{BinaryOp, Block, Inst, Kernel, Memory, OffsetUnit, Op, ParamKind, Scalar, Space, Type, Value};

/// Exact range of a buffer access's first byte, in bytes from the buffer's start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ByteRange {
    /// Smallest.
    pub min: i128,
    /// Largest.
    pub max: i128,
    /// A multiple of `2^zeros`.
    pub zeros: u32,
}

impl ByteRange {
    /// This many bytes further, as the scalar offset of an access is.
    #[must_use]
    pub fn plus(self, bytes: Fact) -> Self {
        Self { min: self.min + bytes.min, max: self.max + bytes.max, zeros: self.zeros.min(bytes.zeros) }
    }

    /// Whether an access of `data` ends within `extent` bytes, wherever it begins.
    pub fn ends_within(self, data: Type, extent: u64) -> bool {
        self.min >= 0 && self.max + i128::from(data.bytes()) <= i128::from(extent)
    }
}

/// Extent in bytes of a buffer, if it is known when the kernel is built: of parameters, not of what `make_buffer` made.
pub fn buffer_extent(kernel: &Kernel, buffer: Value) -> Option<u64> {
    kernel.params.get(buffer.index()).and_then(|p| p.kind.buffer_bytes())
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
                Type::Ptr(..) => Fact::address(0),
                // An author promises that a buffer starts at a multiple of its element's size.
                Type::Buffer(s) => Fact::address(s.bytes().trailing_zeros()),
                t => Fact::of_type(*t),
            })
            .collect();
        let mut this = Self { facts };
        for (fact, param) in this.facts.iter_mut().zip(&kernel.params) {
            if let ParamKind::Buffer { align, .. } = param.kind {
                *fact = Fact::address(align.trailing_zeros());
            }
        }
        declared::narrow(kernel, &mut this.facts);
        this.block(kernel, &kernel.body);
        this
    }

    /// What is known of `v`.
    pub fn get(&self, v: Value) -> Fact {
        self.facts[v.index()]
    }

    /// Bits that hold every number `v`, an index, can be: 32 (as signed) or 64.
    pub fn idx_bits(&self, v: Value) -> u32 {
        if self.get(v).within(Fact::of_scalar(Scalar::I32)) { 32 } else { 64 }
    }

    /// Where a buffer access begins; [`ByteRange::plus`] adds its scalar offset.
    pub fn byte_range(&self, offset: Value, unit: OffsetUnit, data: Type) -> ByteRange {
        let f = self.get(offset);
        let size = match unit {
            OffsetUnit::Bytes => 1,
            OffsetUnit::Elements => data.scalar().bytes(),
        };
        let scale = |v: i128| v * i128::from(size);
        ByteRange { min: scale(f.min), max: scale(f.max), zeros: f.zeros + size.trailing_zeros() }
    }

    /// Whether a buffer access without a scalar offset provably ends within its buffer, in every thread.
    pub fn in_bounds(&self, kernel: &Kernel, buffer: Value, offset: Value, unit: OffsetUnit, data: Type) -> bool {
        let range = self.byte_range(offset, unit, data);
        buffer_extent(kernel, buffer).is_some_and(|extent| range.ends_within(data, extent))
    }

    /// Alignment in bytes that a buffer access without a scalar offset provably has, at most its own size, rounded up to a
    /// power of two.
    pub fn buffer_align(&self, _: &Kernel, buffer: Value, offset: Value, unit: OffsetUnit, data: Type) -> u32 {
        self.place_align(buffer, self.byte_range(offset, unit, data), data)
    }

    /// Alignment in bytes that an access of `data` at `range` of a buffer provably has, at most its own size, rounded up to a
    /// power of two.
    pub fn place_align(&self, buffer: Value, range: ByteRange, data: Type) -> u32 {
        1 << self.get(buffer).zeros.min(range.zeros).min(data.bytes().next_power_of_two().trailing_zeros())
    }

    /// Alignment in bytes of an ordinary LDS access through `pointer`, as of [`Facts::ptr_align`].
    pub fn lds_align(&self, pointer: Value, data: Type) -> u32 {
        self.ptr_align(pointer, data, &Memory::default())
    }

    /// Alignment in bytes of an access through `pointer`: what is provable or what the author promises (without a word the
    /// element's size), at most the access's own size, rounded up to a power of two.
    pub fn ptr_align(&self, pointer: Value, data: Type, memory: &Memory) -> u32 {
        let promised = memory.align.unwrap_or(data.scalar().bytes()).trailing_zeros();
        1 << self.get(pointer).zeros.max(promised).min(data.bytes().next_power_of_two().trailing_zeros())
    }

    /// Whether an integer `add`, `sub`, `mul` or `shl` provably does not wrap: its bits read as unsigned, and as signed,
    /// numbers. An index never wraps as a signed number.
    pub fn no_wrap(&self, kernel: &Kernel, op: BinaryOp, a: Value, b: Value) -> (bool, bool) {
        let Type::Scalar(s) = kernel.ty(a) else { return (false, false) };
        if !s.is_int() || !matches!(op, BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Shl) {
            return (false, false);
        }
        let (a, b) = (self.get(a), self.get(b));
        let Some(exact) = fact::exact(op, a, b, s) else { return (false, false) };
        let unsigned = Fact::range(0, (1i128 << s.bits()) - 1);
        let signed = Fact::range(-(1i128 << (s.bits() - 1)), (1i128 << (s.bits() - 1)) - 1);
        let amount = op == BinaryOp::Shl;
        // Read either way, the operands must be the numbers that the facts are about.
        let fits = |all: Fact| a.within(all) && (amount || b.within(all)) && exact.within(all);
        let index = s == Scalar::Idx;
        let promised = exact.promised(s);
        (fits(unsigned) || (index && a.min >= 0 && b.min >= 0 && promised.min >= 0), fits(signed) || index)
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
        match &inst.op {
            Op::If { then, otherwise, .. } => {
                self.block(kernel, then);
                self.block(kernel, otherwise);
                for (r, (a, b)) in inst.results.iter().zip(then.yields.iter().zip(&otherwise.yields)) {
                    self.set(*r, self.get(*a).join(self.get(*b)));
                }
            }
            Op::For { lo, hi, step, body, .. } => {
                let (lo, hi) = (self.get(*lo), self.get(*hi));
                let index =
                    Fact { min: lo.min, max: (hi.max - 1).max(lo.min), zeros: lo.zeros.min(step.trailing_zeros()) };
                self.set(body.params[0], index);
                // Carried values keep what their types say: one pass finds no fixed point.
                self.block(kernel, body);
            }
            Op::While { before, after, .. } => {
                self.block(kernel, before);
                for (p, y) in after.params.iter().zip(before.yields.iter().skip(1)) {
                    self.set(*p, self.get(*y));
                }
                self.block(kernel, after);
                for (r, y) in inst.results.iter().zip(before.yields.iter().skip(1)) {
                    self.set(*r, self.get(*y));
                }
            }
            // Another form than the region may give the results, so only their types are known.
            Op::Native { args, meaning, .. } => {
                for (p, a) in meaning.params.iter().zip(args) {
                    self.set(*p, self.get(*a));
                }
                self.block(kernel, meaning);
            }
            op => {
                if let [result] = inst.results[..]
                    && let Some(fact) = self.data(kernel, op, kernel.ty(result))
                {
                    self.set(result, fact);
                }
            }
        }
    }

    /// The fact of an operation with one result; `None` leaves what the type says.
    fn data(&self, kernel: &Kernel, op: &Op, ty: Type) -> Option<Fact> {
        let first = |n: u32| Some(Fact::range(0, i128::from(n.max(1) - 1)));
        match (op, ty) {
            (Op::LdsBase(i), _) => return Some(Fact::address(kernel.lds[*i as usize].align.trailing_zeros())),
            (Op::PtrAdd(p, n), Type::Ptr(_, elem)) => {
                let zeros = self.get(*n).zeros + elem.bytes().trailing_zeros();
                return Some(Fact::address(self.get(*p).zeros.min(zeros)));
            }
            (Op::PtrToInt(a), Type::U32) => return Some(Fact::address(self.get(*a).zeros).wrapped(Scalar::U32)),
            // Where LDS begins is aligned as the array is that wants it most.
            (Op::IntToPtr(a), Type::Ptr(Space::Lds, _)) => {
                let block = kernel.lds.iter().map(|l| l.align.trailing_zeros()).max().unwrap_or(0);
                return Some(Fact::address(self.get(*a).zeros.min(block)));
            }
            (Op::PtrCast(a) | Op::BufferPtr(a) | Op::IntToPtr(a) | Op::PtrToInt(a), _) => {
                return Some(Fact::address(self.get(*a).zeros));
            }
            (Op::MakeBuffer { address, .. }, Type::Buffer(elem)) => {
                return Some(Fact::address(self.get(*address).zeros.max(elem.bytes().trailing_zeros())));
            }
            _ => {}
        }
        let Type::Scalar(scalar) = ty else { return None };
        if scalar.is_float() {
            return None;
        }
        match op {
            Op::Const(b) => Some(Fact::constant(number(b.0, scalar))),
            Op::ThreadId(axis) => first(kernel.launch.block[axis.index()]),
            Op::BlockId(axis) => first(kernel.launch.grid[axis.index()]),
            Op::LaneId => first(kernel.wave.min(kernel.launch.block_threads())),
            Op::Ballot(_) => Some(Fact::range(0, (1i128 << kernel.wave.min(64)) - 1)),
            Op::Select { on_true, on_false, .. } => Some(self.get(*on_true).join(self.get(*on_false))),
            Op::Expect { condition: a, .. } | Op::ReadFirstLane(a) | Op::AssumeUniform { value: a, .. } => {
                Some(self.get(*a))
            }
            Op::Convert(a) => {
                let from = kernel.ty(*a).scalar();
                let f = self.get(*a);
                if from.is_float() {
                    None
                } else if from == Scalar::Idx || scalar == Scalar::Idx {
                    Some(f.promised(scalar))
                } else {
                    Some(f.wrapped(scalar))
                }
            }
            Op::Bitcast(a) => match kernel.ty(*a) {
                Type::Scalar(s) if s.is_int() => Some(self.get(*a).reread(scalar)),
                _ => None,
            },
            Op::Compare(predicate, a, b) => {
                let decided = match kernel.ty(*a) {
                    Type::Scalar(s) if !s.is_float() => fact::compared(*predicate, self.get(*a), self.get(*b)),
                    _ => None,
                };
                decided.map(|holds| Fact::constant(holds.into()))
            }
            // Of a `bool`, whose facts are 0 and 1.
            Op::Binary(BinaryOp::And, a, b) if scalar == Scalar::Bool => {
                let (a, b) = (self.get(*a), self.get(*b));
                Some(Fact::range(a.min.min(b.min), a.max.min(b.max)))
            }
            Op::Binary(BinaryOp::Or, a, b) if scalar == Scalar::Bool => {
                let (a, b) = (self.get(*a), self.get(*b));
                Some(Fact::range(a.min.max(b.min), a.max.max(b.max)))
            }
            Op::Unary(op, a) => fact::unary(*op, self.get(*a), scalar),
            Op::Binary(op, a, b) => fact::binary(*op, self.get(*a), self.get(*b), scalar),
            _ => None,
        }
    }
}

/// A constant's number, as its type reads its bits.
fn number(bits: u64, s: Scalar) -> i128 {
    if s.is_signed() {
        let unused = 64 - s.bits();
        i128::from((bits << unused) as i64 >> unused)
    } else {
        i128::from(bits)
    }
}

#[cfg(test)]
mod tests;
