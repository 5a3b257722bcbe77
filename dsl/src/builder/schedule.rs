//! Waiting, priorities and hints to AMD's scheduler.

use super::Builder;
use super::value::V;
use crate::ir::Op;

/// Counters of [`Builder::s_waitcnt`]; one that is not named is not waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Waitcnt {
    vmcnt: Option<u32>,
    lgkmcnt: Option<u32>,
    expcnt: Option<u32>,
}

impl Waitcnt {
    /// None.
    pub const fn new() -> Self {
        Self { vmcnt: None, lgkmcnt: None, expcnt: None }
    }

    /// At most so many operations on vector memory are outstanding: 0 to 63.
    #[must_use]
    pub const fn vmcnt(self, n: u32) -> Self {
        Self { vmcnt: Some(n), ..self }
    }

    /// At most so many operations on LDS and scalar memory are outstanding: 0 to 15.
    #[must_use]
    pub const fn lgkmcnt(self, n: u32) -> Self {
        Self { lgkmcnt: Some(n), ..self }
    }

    /// At most so many exports are outstanding: 0 to 7.
    #[must_use]
    pub const fn expcnt(self, n: u32) -> Self {
        Self { expcnt: Some(n), ..self }
    }
}

/// Instruction classes of [`Builder::sched_barrier`] and [`Builder::sched_group_barrier`], as AMD's scheduler numbers them.
pub mod sched {
    /// Everything that is no memory access.
    pub const ALU: u32 = 0x1;
    /// Vector arithmetic.
    pub const VALU: u32 = 0x2;
    /// Scalar arithmetic.
    pub const SALU: u32 = 0x4;
    /// Matrix instructions.
    pub const MFMA: u32 = 0x8;
    /// Vector memory.
    pub const VMEM: u32 = 0x10;
    /// Loads from vector memory.
    pub const VMEM_READ: u32 = 0x20;
    /// Stores to vector memory.
    pub const VMEM_WRITE: u32 = 0x40;
    /// LDS.
    pub const DS: u32 = 0x80;
    /// Loads from LDS.
    pub const DS_READ: u32 = 0x100;
    /// Stores to LDS.
    pub const DS_WRITE: u32 = 0x200;
    /// Transcendental functions.
    pub const TRANS: u32 = 0x400;
}

macro_rules! sched_groups {
    ($($(#[doc = $doc:literal])+ $name:ident = $class:ident;)*) => {
        impl<'k> Builder<'k> {
            $(
                $(#[doc = $doc])+
                #[track_caller]
                pub fn $name(&'k self, size: u32) {
                    self.sched_group_barrier(sched::$class, size, 0);
                }
            )*
        }
    };
}

sched_groups! {
    /// Asks for a group of `size` matrix instructions.
    sched_mfma = MFMA;
    /// Asks for a group of `size` loads from vector memory.
    sched_vmem = VMEM_READ;
    /// Asks for a group of `size` loads from LDS.
    sched_dsrd = DS_READ;
    /// Asks for a group of `size` stores to LDS.
    sched_dswr = DS_WRITE;
}

impl<'k> Builder<'k> {
    /// Waits until at most so many memory operations of the wave are outstanding. CDNA (gfx9) only, refused elsewhere;
    /// [`Builder::drain`] is portable.
    ///
    /// ```
    /// # use lathe_dsl::prelude::*;
    /// # lathe_dsl::builder::build("k", Target::GFX950, Launch::linear(1, 64), vec![], |k| {
    /// k.s_waitcnt(Waitcnt::new().vmcnt(0));
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn s_waitcnt(&'k self, counters: Waitcnt) {
        let Waitcnt { vmcnt, lgkmcnt, expcnt } = counters;
        self.emit_void(Op::SWaitcnt { vmcnt, lgkmcnt, expcnt });
    }

    /// Ends a group of copies to LDS: those that the thread started since its last mark.
    ///
    /// ```
    /// # use lathe_dsl::prelude::*;
    /// # lathe_dsl::builder::build("k", Target::GFX950, Launch::linear(1, 64), vec![], |k| {
    /// # let x = k.make_buffer::<f32>(k.constant(0u64), 4096);
    /// let tiles = k.lds::<f32>("tiles", 128);
    /// k.copy_to_lds(x, k.lane_id(), tiles, 4);
    /// k.asyncmark();
    /// k.for_range(0u32, 16u32, 1, (), |i, ()| {
    ///     // Past the end it copies zeros, so that the number of copies stays known.
    ///     let next = i + 1;
    ///     k.copy_to_lds(x, next * 64 + k.lane_id(), tiles + (next & 1) * 64, 4);
    ///     k.asyncmark();
    ///     k.wait_asyncmark(1);
    ///     let _mine: V<f32> = k.ptr_load(tiles + (i & 1) * 64 + k.lane_id());
    /// });
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn asyncmark(&'k self) {
        self.emit_void(Op::AsyncMark);
    }

    /// Waits until all groups of the thread's copies to LDS have landed but the newest `n`, 0 to 31, and what is not marked
    /// yet.
    #[track_caller]
    pub fn wait_asyncmark(&'k self, n: u32) {
        self.emit_void(Op::WaitAsyncMark(n));
    }

    /// Lets the wave sleep for about 64·`n` cycles, 0 to 127; NVIDIA: 64·`n` ns.
    #[track_caller]
    pub fn s_sleep(&'k self, n: u32) {
        self.emit_void(Op::SSleep(n));
    }

    /// Time in nanoseconds since some moment, for measuring what passes between two readings. `cpu` and `gcn`: 1000 more at each
    /// reading by the wave, whatever the schedule.
    ///
    /// ```
    /// # use lathe_dsl::prelude::*;
    /// # lathe_dsl::builder::build("k", Target::GFX950, Launch::linear(1, 64), vec![], |k| {
    /// # let flag = k.constant(0u64).to_ptr::<u32>();
    /// // Waits until the flag is up, a millisecond at most.
    /// let start = k.clock();
    /// let seen = k.while_(
    ///     (),
    ///     |()| {
    ///         let seen = k.ptr_load_with::<u32>(flag, Memory::new().relaxed(Scope::Device));
    ///         (seen.eq(0) & (k.clock() - start).lt(1_000_000), seen)
    ///     },
    ///     |_| k.s_sleep(1),
    /// );
    /// # let _ = seen;
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn clock(&'k self) -> V<'k, u64> {
        self.emit(Op::Clock)
    }

    /// Priority of the wave, 0 to 3; nothing on NVIDIA.
    #[track_caller]
    pub fn s_setprio(&'k self, level: u32) {
        self.emit_void(Op::SSetprio(level));
    }

    /// Instructions whose class ([`sched`]) is not in the mask are not moved across it; nothing on NVIDIA.
    #[track_caller]
    pub fn sched_barrier(&'k self, mask: u32) {
        self.emit_void(Op::SchedBarrier(mask));
    }

    /// Asks for a group of `size` instructions of the classes in `mask` ([`sched`]); groups with the same number are ordered
    /// among each other. Nothing on NVIDIA.
    #[track_caller]
    pub fn sched_group_barrier(&'k self, mask: u32, size: u32, group: u32) {
        self.emit_void(Op::SchedGroupBarrier { mask, size, group });
    }
}
