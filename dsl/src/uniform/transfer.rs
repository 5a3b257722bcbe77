//! What each operation makes of its operands' uniformity.

use super::number::{Operand, binary, compared};
use super::sources;
use super::state::{State, length};
use crate::facts::Facts;
use crate::ir::{
    Access, Cache, Coherence, Inst, Kernel, Memory, Op, Order, Param, ParamKind, Scope, ShuffleOp, Type, UnaryOp, Value,
};

/// A parameter, the same for all threads.
pub(super) fn entry(param: &Param) -> State {
    let written = matches!(param.kind, ParamKind::Buffer { access: Access::Write | Access::ReadWrite, .. });
    State::SAME.with_written(written)
}

/// Whether the threads of a block of `2^k` run the same number of rounds from `lo` to `hi`, of which so many low bits are 0.
pub(super) fn same_rounds(lo: &State, hi: &State, hi_zeros: u32, step: u32, k: u32) -> bool {
    // Bits that neither the end nor the step has do not decide how often the step fits.
    let differing = lo.differing(k);
    hi.same(k) && (differing == 0 || (hi_zeros >= differing && step.trailing_zeros() >= differing))
}

pub(super) struct Transfer<'k> {
    pub kernel: &'k Kernel,
    pub facts: &'k Facts,
    /// A wave has `2^wave` lanes.
    pub wave: u32,
}

impl Transfer<'_> {
    /// What a value's type and range leave of a state.
    pub fn bounded(&self, state: State, v: Value) -> State {
        let ty = self.kernel.ty(v);
        let state = state.with_written(state.written && !ty.is_data());
        if !self.number(v) {
            return state;
        }
        let fact = self.facts.get(v);
        // What the smallest and the largest number have in common above, all between them have.
        let range = if (fact.min < 0) == (fact.max < 0) { length((fact.min ^ fact.max) as u128) } else { u32::MAX };
        state.at_most(range.min(ty.scalar().bits()))
    }

    /// The state of the result of an operation without regions.
    pub fn op(&self, states: &[State], inst: &Inst, result: Value) -> State {
        let get = |v: &Value| states[v.index()];
        let operands = || inst.op.operands().into_iter().map(|v| states[v.index()]);
        let all = || operands().fold(State::SAME, State::join);
        let ty = self.kernel.ty(result);
        let loaded = |plain| self.loaded(operands(), plain);
        match &inst.op {
            Op::Const(_) | Op::BlockId(_) => State::SAME,
            Op::LdsBase(_) => State::SAME.with_written(true),
            Op::IntToPtr(_) | Op::MakeBuffer { .. } => State::mixed(operands()).with_written(true),
            Op::ThreadId(axis) => sources::thread_id(self.kernel.launch.block, *axis),
            Op::LaneId => sources::lane_id(self.wave),
            // Lanes may read it one after the other.
            Op::Clock => State::DIFFERENT,
            Op::Unary(UnaryOp::Not, a)
            | Op::Expect { condition: a, .. }
            | Op::Opaque(a)
            | Op::Extract(a, _)
            | Op::PtrCast(a)
            | Op::BufferPtr(a) => get(a),
            Op::Unary(UnaryOp::Abs, a) if self.number(*a) && self.facts.get(*a).min >= 0 => get(a),
            Op::VectorFrom(_) | Op::Shuffle { .. } => all(),
            Op::Binary(op, a, b) if self.number(result) => {
                let (n, signed) = (ty.scalar().bits(), ty.scalar().is_signed());
                self.by_size(states, [*a, *b], |a, b| binary(*op, a, b, n, signed))
            }
            Op::Compare(predicate, a, b) if self.number(*a) => {
                let s = self.kernel.ty(*a).scalar();
                let differs = |a, b| u32::from(!compared(*predicate, a, b, s.bits(), s.is_signed()));
                self.by_size(states, [*a, *b], differs)
            }
            Op::Select { on_true, on_false, .. } if on_true == on_false => get(on_true),
            Op::Select { condition, on_true, on_false } => get(on_true).join(get(on_false)).chosen_by(&get(condition)),
            Op::Convert(a) if self.kernel.ty(*a).scalar().is_float() || ty.scalar().is_float() => {
                State::mixed(operands())
            }
            Op::Convert(a) => {
                let from = self.kernel.ty(*a).scalar();
                // A sign that differs differs in all the bits that it is extended to.
                let all = if from.is_signed() { u32::MAX } else { from.bits() };
                get(a).with_bits(|k| match get(a).differing(k) {
                    m if m >= from.bits() => all,
                    m => m,
                })
            }
            Op::Bitcast(a) => match self.number(*a) && self.number(result) {
                true => get(a),
                false => State::mixed(operands()),
            },
            Op::PtrLoad { memory, .. } => loaded(is_plain(memory)),
            Op::BufferLoad { buffer, offset, scalar, mask, fill, cache, .. } => {
                let address = [Some(*buffer), Some(*offset), *scalar].into_iter().flatten();
                let state = self.loaded(address.map(|v| states[v.index()]), is_own(cache));
                match (mask, fill) {
                    (Some(mask), Some(fill)) => state.join(get(fill)).chosen_by(&get(mask)),
                    _ => state,
                }
            }
            Op::AtomicRmw { .. }
            | Op::AtomicCas { .. }
            | Op::BufferAtomic { .. }
            | Op::BufferAtomicCas { .. }
            | Op::LdsReadTr { .. }
            | Op::Transpose8x8(_)
            | Op::Mma { .. }
            | Op::MfmaScaled { .. } => State::DIFFERENT,
            // One load for the wave, of memory that nobody writes.
            Op::SBufferLoad { .. } => all().with_bits(|k| if k <= self.wave || all().same(k) { 0 } else { u32::MAX }),
            Op::Ballot(_) => State::by_size(|k| if k <= self.wave { 0 } else { u32::MAX }),
            Op::ReadFirstLane(a) => get(a).with_bits(|k| if k <= self.wave { 0 } else { get(a).differing(k) }),
            Op::ReadLane(a, lane) => {
                let (a, lane) = (get(a), get(lane));
                State::by_size(|k| if k <= self.wave && lane.same(k) { 0 } else { a.differing(k.max(self.wave)) })
            }
            Op::LaneShuffle { op, value, amount, width } => {
                let (a, n, group) = (get(value), get(amount), width.trailing_zeros());
                match op {
                    // Aligned blocks change places.
                    ShuffleOp::Xor if n == State::SAME => a,
                    ShuffleOp::Idx => State::by_size(|k| match k <= group && n.same(k) {
                        true => 0,
                        false => a.differing(k.max(group)),
                    }),
                    _ => State::by_size(|k| a.differing(k.max(group))),
                }
            }
            Op::Butterfly { value, offset, width, .. } => {
                let (a, group) = (get(value), width.trailing_zeros());
                a.with_bits(|k| if a.same(k.max(group)) { 0 } else { u32::MAX }).with_twins(offset.trailing_zeros())
            }
            Op::AssumeUniform { value, scope } => {
                let top = if *scope == Scope::Wave { self.wave } else { u32::MAX };
                get(value).with_bits(|k| if k <= top { 0 } else { get(value).differing(k) })
            }
            _ => State::mixed(operands()),
        }
    }

    /// One element of an integer or truth type.
    fn number(&self, v: Value) -> bool {
        matches!(self.kernel.ty(v), Type::Scalar(s) if !s.is_float())
    }

    /// Low bits that may differ by what they are in both operands, block size by block size; twins of both stay twins.
    fn by_size(&self, states: &[State], operands: [Value; 2], f: impl Fn(Operand, Operand) -> u32) -> State {
        let [a, b] = operands.map(|v| states[v.index()]);
        let [x, y] = operands.map(|v| self.facts.get(v));
        let operand = |state: &State, fact, k| Operand { bits: state.differing(k).min(64), fact };
        a.join(b).with_bits(|k| f(operand(&a, x, k), operand(&b, y, k)))
    }

    /// What is loaded from an address: the same for a wave that loads it at once; for several waves only if nobody stores
    /// there. An access that others may be writing to meanwhile tells nothing.
    fn loaded(&self, address: impl Iterator<Item = State>, plain: bool) -> State {
        if !plain {
            return State::DIFFERENT;
        }
        let address = address.fold(State::SAME, State::join);
        let together = |k| address.same(k) && (k <= self.wave || !address.written);
        let state = if address.written { address.within(self.wave) } else { address };
        state.with_bits(|k| if together(k) { 0 } else { u32::MAX })
    }
}

fn is_plain(memory: &Memory) -> bool {
    memory.order == Order::Plain && !memory.volatile
}

fn is_own(cache: &Cache) -> bool {
    cache.coherence == Coherence::Own
}
