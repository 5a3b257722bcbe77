//! What operations have to do with.

use super::op::Op;

/// What an operation has to do with: whoever treats operations by sort asks this, so that a new one is sorted once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpKind {
    /// Who runs, and when: indices of the thread, its workgroup and its lane; the time.
    Place,
    /// Data of one lane: its results follow from its operands and attributes, it touches nothing else.
    Data,
    /// Addresses of one lane: the same of pointers and buffers. No access.
    Address,
    /// Accesses to memory and their order.
    Memory,
    /// Exchanges with other lanes of the wave.
    Lanes,
    /// What the whole wave does or is told, without a value.
    Wave,
    /// Operations with regions.
    Region,
}

impl OpKind {
    /// Whether equal operands give equal results, in whichever lane.
    pub const fn follows_from_operands(self) -> bool {
        matches!(self, Self::Data | Self::Address)
    }
}

impl Op {
    /// What it has to do with.
    pub const fn kind(&self) -> OpKind {
        match self {
            Self::ThreadId(_) | Self::BlockId(_) | Self::LaneId | Self::Clock => OpKind::Place,
            Self::Const(..)
            | Self::Unary(..)
            | Self::Binary(..)
            | Self::Compare(..)
            | Self::Fma { .. }
            | Self::Select { .. }
            | Self::Convert(_)
            | Self::ConvertStochastic(..)
            | Self::Encode { .. }
            | Self::Decode { .. }
            | Self::Bitcast(_)
            | Self::VectorFrom(_)
            | Self::Extract(..)
            | Self::ExtractAt(..)
            | Self::Shuffle { .. }
            | Self::Reduce(..)
            | Self::PermB32(..)
            | Self::Opaque(_)
            | Self::Expect { .. }
            | Self::Assume(_) => OpKind::Data,
            Self::LdsBase(_)
            | Self::PtrAdd(..)
            | Self::PtrCast(_)
            | Self::BufferPtr(_)
            | Self::IntToPtr(_)
            | Self::PtrToInt(_)
            | Self::MakeBuffer { .. } => OpKind::Address,
            Self::PtrLoad { .. }
            | Self::PtrStore { .. }
            | Self::LdsReadTr { .. }
            | Self::AtomicRmw { .. }
            | Self::AtomicCas { .. }
            | Self::Fence { .. }
            | Self::Drain { .. }
            | Self::BufferLoad { .. }
            | Self::BufferStore { .. }
            | Self::BufferAtomic { .. }
            | Self::BufferAtomicCas { .. }
            | Self::SBufferLoad { .. }
            | Self::CopyToLds { .. }
            | Self::TextureFetch { .. }
            | Self::TextureSample { .. }
            | Self::SurfaceStore { .. } => OpKind::Memory,
            Self::LaneShuffle { .. }
            | Self::Butterfly { .. }
            | Self::Ballot(_)
            | Self::ReadFirstLane(_)
            | Self::AssumeUniform { .. }
            | Self::ReadLane(..)
            | Self::Transpose8x8(_)
            | Self::Mma { .. }
            | Self::MfmaScaled { .. } => OpKind::Lanes,
            Self::Barrier
            | Self::AsyncMark
            | Self::WaitAsyncMark(_)
            | Self::SWaitcnt { .. }
            | Self::SSleep(_)
            | Self::SSetprio(_)
            | Self::SchedBarrier(_)
            | Self::SchedGroupBarrier { .. } => OpKind::Wave,
            Self::Native { .. } | Self::If { .. } | Self::For { .. } | Self::While { .. } => OpKind::Region,
        }
    }
}
