//! What the checks need to know of an instruction's operation and the executor does not.

use lathe_dsl::ir::{Cache, Coherence, Kernel, Op, Order, Scalar, Scope, Type};

/// One a [`Program`](super::super::Program) instruction.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(in super::super) enum Mark {
    #[default]
    Nothing,
    /// An atomic access.
    Atomic(Order, Scope),
    Fence(Order, Scope),
    Drain(Scope),
    /// Arithmetic on floats of one type.
    Float(Scalar),
}

impl Mark {
    pub(in super::super) fn of(kernel: &Kernel, op: &Op) -> Self {
        match op {
            Op::PtrLoad { memory, .. } | Op::PtrStore { memory, .. } if memory.order != Order::Plain => {
                Self::Atomic(memory.order, memory.scope)
            }
            Op::AtomicRmw { order, scope, .. } | Op::AtomicCas { order, scope, .. } => Self::Atomic(*order, *scope),
            Op::BufferAtomic { scope, .. } | Op::BufferAtomicCas { scope, .. } => Self::Atomic(Order::Relaxed, *scope),
            Op::BufferLoad { cache, .. } | Op::BufferStore { cache, .. } | Op::CopyToLds { cache, .. } => {
                Self::coherent(*cache)
            }
            Op::Fence { order, scope } => Self::Fence(*order, *scope),
            Op::Drain { scope } => Self::Drain(*scope),
            // What it waits for is visible to whom its own cache behaviour reaches.
            Op::SWaitcnt { .. } => Self::Drain(Scope::System),
            Op::Unary(_, a)
            | Op::Binary(_, a, _)
            | Op::Fma { a, .. }
            | Op::Butterfly { value: a, .. }
            | Op::Mma { c: a, .. }
            | Op::MfmaScaled { c: a, .. }
            | Op::Reduce(_, a) => match kernel.values.get(a.index()) {
                Some(Type::Scalar(s) | Type::Vector(s, _)) if s.is_float() => Self::Float(*s),
                _ => Self::Nothing,
            },
            _ => Self::Nothing,
        }
    }

    /// A buffer access: one that goes through the caches is atomic and relaxed.
    fn coherent(cache: Cache) -> Self {
        match cache.coherence {
            Coherence::Own => Self::Nothing,
            Coherence::Device => Self::Atomic(Order::Relaxed, Scope::Device),
            Coherence::System => Self::Atomic(Order::Relaxed, Scope::System),
        }
    }
}

pub(in super::super) fn acquires(order: Order) -> bool {
    matches!(order, Order::Acquire | Order::AcqRel | Order::SeqCst)
}

pub(in super::super) fn releases(order: Order) -> bool {
    matches!(order, Order::Release | Order::AcqRel | Order::SeqCst)
}
