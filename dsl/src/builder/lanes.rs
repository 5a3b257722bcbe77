//! Exchanges between the lanes of a wave.

use super::Builder;
use super::element::{Data, Element, Numeric, Plain};
use super::value::{Operand, V};
use crate::ir::{ButterflyOp, Op, Scope, ShuffleOp};

macro_rules! shuffle {
    ($($(#[$meta:meta])* $name:ident = $op:ident;)*) => {$(
        $(#[$meta])*
        #[track_caller]
        pub fn $name(self, n: impl Operand<'k, u32>, width: u32) -> Self {
            let n = n.value(self.k);
            self.k.emit(Op::LaneShuffle { op: ShuffleOp::$op, value: self.id, amount: n.id, width })
        }
    )*};
}

impl<'k, T: Data + Plain> V<'k, T> {
    shuffle! {
        /// The value of lane `l ^ (n mod width)` of the logical group of `width` lanes (a power of two up to the wave).
        shuffle_xor = Xor;
        /// The value of lane `l − n` of the group; its own where there is none.
        shuffle_up = Up;
        /// The value of lane `l + n` of the group; its own where there is none.
        shuffle_down = Down;
        /// The value of lane `n mod width` of the group.
        shuffle_idx = Idx;
    }

    /// The value of the first active lane, in all lanes (`readfirstlane`): tells the compiler that it is the same for all.
    #[track_caller]
    pub fn uniform(self) -> Self {
        self.k.emit(Op::ReadFirstLane(self.id))
    }

    /// [`V::uniform`] by its AMD name.
    #[track_caller]
    pub fn readfirstlane(self) -> Self {
        self.uniform()
    }

    /// The value of one lane (modulo the wave width), in all lanes; it must be active, and `lane` the same for all.
    #[track_caller]
    pub fn readlane(self, lane: impl Operand<'k, u32>) -> Self {
        let lane = lane.value(self.k);
        self.k.emit(Op::ReadLane(self.id, lane.id))
    }
}

impl<'k, T: Data + Numeric> V<'k, T> {
    /// For each of `offsets` in turn: itself combined with the value of the lane at that distance (`lane ^ offset`). The
    /// offsets are powers of two; every lane of the smallest group that holds them all must be active. All lanes of a pair
    /// get the same bits (fx `butterfly`).
    ///
    /// ```
    /// # use lathe_dsl::prelude::*;
    /// # lathe_dsl::builder::build("k", Target::GFX950, Launch::linear(1, 64), vec![], |k| {
    /// let x = k.lane_id().to::<f32>();
    /// let sum_of_wave = x.butterfly([32, 16, 8, 4, 2, 1], ButterflyOp::Add);
    /// # let _ = sum_of_wave;
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn butterfly(self, offsets: impl IntoIterator<Item = u32>, op: ButterflyOp) -> Self {
        let offsets: Vec<u32> = offsets.into_iter().collect();
        let most = offsets.iter().copied().max().unwrap_or(0);
        // An offset that is no power of two is the verifier's to refuse, whatever the width.
        let width = most.checked_mul(2).map_or(most, |w| w.checked_next_power_of_two().unwrap_or(w));
        self.butterfly_within(&offsets, width, op)
    }

    #[track_caller]
    pub(super) fn butterfly_within(self, offsets: &[u32], width: u32, op: ButterflyOp) -> Self {
        let mut v = self;
        for &offset in offsets {
            v = self.k.emit(Op::Butterfly { op, value: v.id, offset, width });
        }
        v
    }
}

impl<'k, T: Element> V<'k, T> {
    /// Itself, with the promise that all threads of the wave or the workgroup that come here together hold the same value: for
    /// control flow by what was loaded from memory that the kernel writes, which the verifier cannot see to be uniform. A broken
    /// promise is reported on `cpu`, undefined elsewhere. Other scopes are refused.
    ///
    /// ```
    /// # use lathe_dsl::prelude::*;
    /// # lathe_dsl::builder::build("k", Target::GFX950, Launch::linear(1, 256), vec![], |k| {
    /// let next = k.lds::<u32>("next", 1);
    /// k.if_(k.thread_id(Axis::X).eq(0), || k.ptr_store(k.constant(7u32), next));
    /// k.barrier();
    /// let item = k.ptr_load::<u32>(next).assume_uniform(Scope::Workgroup);
    /// k.if_(item.lt(8), || k.barrier());
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn assume_uniform(self, scope: Scope) -> Self {
        self.k.emit(Op::AssumeUniform { value: self.id, scope })
    }
}

impl<'k> V<'k, bool> {
    /// Bit `i` tells whether this holds in lane `i` of the wave and that lane is active.
    #[track_caller]
    pub fn ballot(self) -> V<'k, u64> {
        self.k.emit(Op::Ballot(self.id))
    }
}

impl<'k> V<'k, u32> {
    /// Transposes an 8×8 matrix of 16-bit elements held by each logical group of 32 lanes: with `g = l div 4` and
    /// `t = l mod 4`, a word holds row `g`, columns `2t` (low half) and `2t + 1` before, and column `g`, rows `2t` and
    /// `2t + 1` after (`movmatrix`).
    #[track_caller]
    pub fn transpose8x8(self) -> Self {
        self.k.emit(Op::Transpose8x8(self.id))
    }
}

impl<'k> Builder<'k> {
    /// Index of the lane in its wave.
    #[track_caller]
    pub fn lane_id(&'k self) -> V<'k, u32> {
        self.emit(Op::LaneId)
    }

    /// The value of lane `byte_address / 4`, modulo the wave width (`rocdl.ds_bpermute`).
    #[track_caller]
    pub fn ds_bpermute<T: Data + Plain>(&'k self, byte_address: impl Operand<'k, u32>, value: V<'k, T>) -> V<'k, T> {
        let lane = byte_address.value(self) >> 2;
        value.shuffle_idx(lane, self.wave())
    }

    /// Byte `i` of the result is byte `selector.byte[i] mod 8` of the eight bytes of `a` (4–7) and `b` (0–3).
    #[track_caller]
    pub fn perm_b32(
        &'k self,
        a: impl Operand<'k, u32>,
        b: impl Operand<'k, u32>,
        selector: impl Operand<'k, u32>,
    ) -> V<'k, u32> {
        let (a, b, selector) = (a.value(self), b.value(self), selector.value(self));
        self.emit(Op::PermB32(a.id, b.id, selector.id))
    }
}
