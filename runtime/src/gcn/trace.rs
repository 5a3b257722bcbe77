//! Record of a run: which asynchronous operations were issued, waited for and used.
//!
//! Only for analyses after the run (see [`crate::gcn::mutate`]); the checks of a run do not read it.

/// Identity of an asynchronous operation in one wave; 0 stands for none.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Debug)]
pub struct OpId(pub u32);

/// How an asynchronous operation completes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Counted by vmcnt, in order.
    Vm,
    /// Counted by lgkmcnt, in order with its like.
    Lds,
    /// Counted by lgkmcnt, in any order.
    Smem,
    /// Counted by both, in any order.
    Flat,
    /// Counted by storecnt, in order, where stores have a counter of their own.
    Store,
}

/// How an LDS access touches its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LdsAccess {
    /// Load.
    Read,
    /// Store, by a DS instruction or by a load into LDS.
    Write,
    /// Read-modify-write in one step.
    Atomic,
}

/// One event of a wave.
#[derive(Clone, PartialEq, Debug)]
pub enum Event {
    /// An asynchronous operation was issued.
    Issue {
        /// Its identity.
        op: OpId,
        /// Address of the instruction.
        pc: u64,
        /// How it completes.
        class: Class,
    },
    /// `s_waitcnt`.
    Wait {
        /// Address of the instruction.
        pc: u64,
        /// Counts waited for.
        counts: crate::gcn::wait::WaitCounts,
    },
    /// A register that holds the result of `op` was read, or overwritten by something not ordered behind it.
    Use {
        /// The operation.
        op: OpId,
        /// Address of the using instruction.
        pc: u64,
    },
    /// LDS bytes `start .. end` were accessed by `op`.
    Lds {
        /// The operation.
        op: OpId,
        /// How.
        access: LdsAccess,
        /// First byte and end, one entry a lane and address.
        ranges: Vec<(u32, u32)>,
    },
    /// Bytes of global memory were accessed by `op`; in groups only.
    Memory {
        /// The operation.
        op: OpId,
        /// Address of the instruction.
        pc: u64,
        /// Whether it loads.
        loads: bool,
        /// Whether it stores.
        stores: bool,
        /// Address of the first byte and bytes, one entry a lane.
        ranges: Vec<(u64, u32)>,
    },
    /// `s_barrier`.
    Barrier {
        /// Address of the instruction.
        pc: u64,
    },
}

/// Events of one wave.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Trace {
    /// Workgroup id.
    pub workgroup: [u32; 3],
    /// Wave of the workgroup.
    pub wave: u32,
    /// In order.
    pub events: Vec<Event>,
    /// Whether accesses of global memory are noted.
    pub(crate) memory: bool,
    ops: u32,
    used: Vec<bool>,
}

impl Trace {
    pub(crate) fn new(workgroup: [u32; 3], wave: u32) -> Self {
        Self { workgroup, wave, ..Self::default() }
    }

    pub(crate) fn issue(&mut self, pc: u64, class: Class) -> OpId {
        self.ops += 1;
        self.used.resize(self.ops as usize + 1, false);
        let op = OpId(self.ops);
        self.events.push(Event::Issue { op, pc, class });
        op
    }

    /// Notes the first use of an operation's result.
    pub(crate) fn touch(&mut self, op: OpId, pc: u64) {
        if op == OpId::default() {
            return;
        }
        if let Some(used) = self.used.get_mut(op.0 as usize).filter(|u| !**u) {
            *used = true;
            self.events.push(Event::Use { op, pc });
        }
    }
}
