//! What a target answers; everything else about code generation is shared.

mod amdgpu;
mod nvptx;

use lathe_dsl::artifact::Resources;
use lathe_dsl::ir::{Axis, FastFlags, Kernel, Scalar, Scope, ShuffleOp, UnaryOp};
use lathe_dsl::target::Chip;
use lathe_dsl::{Arch, Target};
use melior::ir::{Attribute, Type, Value};

use crate::lower::atomic::Rmw;
use crate::lower::buffer::{BufferAccess, Extent, Hinted};
use crate::lower::emit::{Emitter, Named, Result};
use crate::lower::lanes::{Amount, Lanes};
use crate::lower::matrix::{Product, Scaled};
use crate::lower::narrow::{Decoding, Encoded, Encoding};

/// A code generator's target.
pub trait Backend: Sync {
    /// The chip.
    fn chip(&self) -> &'static Chip;

    /// Launch facts, as attributes of the kernel function.
    fn kernel_attributes<'c>(&self, e: &Emitter<'c, '_>, kernel: &Kernel) -> Result<Vec<Named<'c>>>;

    /// Index of the thread in its workgroup along an axis of this extent: 32 bits.
    fn thread_id<'c, 'a>(&self, e: &Emitter<'c, 'a>, axis: Axis, extent: u32) -> Result<Value<'c, 'a>>;

    /// Index of the workgroup in the grid along an axis of this extent: 32 bits.
    fn block_id<'c, 'a>(&self, e: &Emitter<'c, 'a>, axis: Axis, extent: u32) -> Result<Value<'c, 'a>>;

    // Memory

    /// LDS that a launch has to allocate, in bytes, because the code's own would be more than the target's tools take.
    fn dynamic_lds(&self, kernel: &Kernel) -> u32;

    /// LLVM's name of a scope.
    fn sync_scope(&self, scope: Scope) -> &'static str;

    /// Whether accesses within this scope are in order by themselves, and LLVM has no fence for it.
    fn is_ordered_within(&self, scope: Scope) -> bool;

    /// Whether atomic read-modify-writes are to be relaxed, with fences around them for their order.
    fn orders_atomics_by_fences(&self) -> bool;

    /// A relaxed read-modify-write that LLVM does not make as its scope wants it; `None` if it makes all.
    fn own_atomic<'c, 'a>(&self, e: &Emitter<'c, 'a>, atomic: &Rmw<'c, 'a>) -> Result<Option<Value<'c, 'a>>>;

    /// Promises that make an atomic on floats in global memory one instruction.
    fn float_atomic_attributes<'c>(&self, e: &Emitter<'c, '_>, scope: Scope) -> Vec<Named<'c>>;

    /// A pointer for an access of which every lane's part is an operation of its own: the same address, of which LLVM
    /// does not know that several lanes may have it.
    fn apart<'c, 'a>(&self, e: &Emitter<'c, 'a>, pointer: Value<'c, 'a>) -> Result<Value<'c, 'a>>;

    /// Makes of a buffer's address what its accesses take.
    fn open_buffer<'c, 'a>(
        &self,
        e: &Emitter<'c, 'a>,
        pointer: Value<'c, 'a>,
        extent: &Extent<'c, 'a>,
    ) -> Result<Value<'c, 'a>>;

    /// Loads `carrier`, zeros if the access is masked or does not end within the buffer. Not called where it never does.
    fn buffer_load<'c, 'a>(
        &self,
        e: &Emitter<'c, 'a>,
        access: &BufferAccess<'c, 'a>,
        carrier: Type<'c>,
    ) -> Result<Value<'c, 'a>>;

    /// Stores `value`, nothing if the access is masked or does not end within the buffer. Not called where it never does.
    fn buffer_store<'c, 'a>(
        &self,
        e: &Emitter<'c, 'a>,
        access: &BufferAccess<'c, 'a>,
        value: Value<'c, 'a>,
    ) -> Result<()>;

    /// Words that are the same in all lanes, such that the compiler knows it where that makes a difference.
    fn scalar_words<'c, 'a>(&self, e: &Emitter<'c, 'a>, words: Vec<Value<'c, 'a>>) -> Result<Vec<Value<'c, 'a>>>;

    /// Loads words that are the same in all lanes, from memory that nobody writes; only where the access lies in the buffer.
    fn scalar_load<'c, 'a>(
        &self,
        e: &Emitter<'c, 'a>,
        access: &BufferAccess<'c, 'a>,
        words: Type<'c>,
    ) -> Result<Value<'c, 'a>>;

    /// A relaxed atomic on a buffer's element with its hint, where the access lies in the buffer; `None` if the target has
    /// no form for it, and nothing was emitted.
    fn hinted_atomic<'c, 'a>(
        &self,
        e: &Emitter<'c, 'a>,
        access: &BufferAccess<'c, 'a>,
        atomic: Hinted<'_, 'c, 'a>,
    ) -> Result<Option<Value<'c, 'a>>>;

    /// Copies from a buffer to LDS, past the registers; `false` if the chip cannot, and nothing was emitted. `scope` is the
    /// copies' alias scope if they have one.
    fn copy_to_lds<'c, 'a>(
        &self,
        at: &Lanes<'_, 'c, 'a>,
        access: &BufferAccess<'c, 'a>,
        pointer: Value<'c, 'a>,
        scope: Option<Attribute<'c>>,
    ) -> Result<bool>;

    // Images, which the verifier lets kernels have only where there are texture units

    /// Four f32 of the texel in a column and a row that there are.
    fn texture_fetch<'c, 'a>(
        &self,
        e: &Emitter<'c, 'a>,
        texture: Value<'c, 'a>,
        at: [Value<'c, 'a>; 2],
    ) -> Result<Vec<Value<'c, 'a>>>;

    /// Four f32 of the colour at a place in the image or on its edge.
    fn texture_sample<'c, 'a>(
        &self,
        e: &Emitter<'c, 'a>,
        texture: Value<'c, 'a>,
        at: [Value<'c, 'a>; 2],
    ) -> Result<Vec<Value<'c, 'a>>>;

    /// Stores a texel, as integers, at a column in bytes and a row; nothing where there is none.
    fn surface_store<'c, 'a>(
        &self,
        e: &Emitter<'c, 'a>,
        surface: Value<'c, 'a>,
        at: [Value<'c, 'a>; 2],
        elements: &[Value<'c, 'a>],
    ) -> Result<()>;

    // Lanes

    /// Index of the lane in its wave: 32 bits.
    fn lane_id<'c, 'a>(&self, at: &Lanes<'_, 'c, 'a>) -> Result<Value<'c, 'a>>;

    /// Every word from the lane that a shuffle names.
    fn shuffle<'c, 'a>(
        &self,
        at: &Lanes<'_, 'c, 'a>,
        op: ShuffleOp,
        words: &[Value<'c, 'a>],
        amount: Amount<'c, 'a>,
        width: u32,
    ) -> Result<Vec<Value<'c, 'a>>>;

    /// Two values whose words are, in one order or the other, a lane's own and those of the lane at distance `offset`, a
    /// power of two.
    fn exchange<'c, 'a>(
        &self,
        at: &Lanes<'_, 'c, 'a>,
        words: &[Value<'c, 'a>],
        offset: u32,
        width: u32,
    ) -> Result<(Vec<Value<'c, 'a>>, Vec<Value<'c, 'a>>)>;

    /// Mask of the active lanes where a condition holds: 64 bits.
    fn ballot<'c, 'a>(&self, at: &Lanes<'_, 'c, 'a>, condition: Value<'c, 'a>) -> Result<Value<'c, 'a>>;

    /// Every word of the first active lane.
    fn read_first_lane<'c, 'a>(&self, at: &Lanes<'_, 'c, 'a>, words: &[Value<'c, 'a>]) -> Result<Vec<Value<'c, 'a>>>;

    /// Every word of a lane.
    fn read_lane<'c, 'a>(
        &self,
        at: &Lanes<'_, 'c, 'a>,
        words: &[Value<'c, 'a>],
        lane: Value<'c, 'a>,
    ) -> Result<Vec<Value<'c, 'a>>>;

    /// A word of the transposed 8×8 matrix.
    fn transpose8x8<'c, 'a>(&self, at: &Lanes<'_, 'c, 'a>, word: Value<'c, 'a>) -> Result<Value<'c, 'a>>;

    /// Bytes of `a` (4 to 7) and `b` (0 to 3), named by a selector of bytes below 8.
    fn perm_b32<'c, 'a>(&self, e: &Emitter<'c, 'a>, operands: [Value<'c, 'a>; 3]) -> Result<Value<'c, 'a>>;

    /// A transposing read of LDS with elements of `bits` bits by one instruction: 64 bits, of 6-bit elements 96; `None` if the
    /// chip has none.
    fn transposing_read<'c, 'a>(
        &self,
        e: &Emitter<'c, 'a>,
        pointer: Value<'c, 'a>,
        bits: u32,
    ) -> Result<Option<Value<'c, 'a>>>;

    /// A matrix product without scales.
    fn mma<'c, 'a>(&self, at: &Lanes<'_, 'c, 'a>, product: &Product<'c, 'a>) -> Result<Value<'c, 'a>>;

    /// A block-scaled matrix product.
    fn mfma_scaled<'c, 'a>(&self, at: &Lanes<'_, 'c, 'a>, product: &Scaled<'c, 'a>) -> Result<Value<'c, 'a>>;

    // Waiting

    /// Waits for the stores, and if there are `copies` for those.
    fn drain(&self, at: &Lanes<'_, '_, '_>, scope: Scope, copies: bool) -> Result<()>;

    /// Whether a copy to LDS of so many bytes a lane is one instruction that is waited for by counting.
    fn counts_copies(&self, bytes: u32) -> bool;

    /// Ends a group of copies to LDS.
    fn asyncmark(&self, e: &Emitter<'_, '_>) -> Result<()>;

    /// Waits for all groups but the newest `n`; where copies are counted, until `outstanding` are left, if there are any.
    fn wait_asyncmark(&self, at: &Lanes<'_, '_, '_>, n: u32, outstanding: Option<u32>) -> Result<()>;

    /// Time in nanoseconds.
    fn clock<'c, 'a>(&self, e: &Emitter<'c, 'a>) -> Result<Value<'c, 'a>>;

    /// Sleeps for about 64 times so many cycles.
    fn s_sleep(&self, e: &Emitter<'_, '_>, amount: u32) -> Result<()>;

    /// Sets the wave's priority.
    fn s_setprio(&self, e: &Emitter<'_, '_>, level: u32) -> Result<()>;

    /// Limits the scheduler.
    fn sched_barrier(&self, e: &Emitter<'_, '_>, mask: u32) -> Result<()>;

    /// Guides the scheduler.
    fn sched_group_barrier(&self, e: &Emitter<'_, '_>, mask: u32, size: u32, group: u32) -> Result<()>;

    /// Inline assembly's constraint for a 32-bit register.
    fn register_constraint(&self) -> &'static str;

    // Stages

    /// LLVM's subtarget features: the chip's, and what this kernel needs besides.
    fn features(&self, kernel: &Kernel) -> &'static str;

    /// MLIR pass pipeline, anchored at `builtin.module`, that leaves only LLVM's dialects.
    fn pipeline(&self, target: Target) -> String;

    /// What LLVM has to emit for an artifact.
    fn output(&self) -> Output;

    /// Makes the artifact's code of LLVM's output.
    fn finish(&self, emitted: Vec<u8>) -> std::result::Result<Vec<u8>, String>;

    /// Reads what the artifact's code needs of the chip.
    fn resources(&self, target: Target, kernel: &Kernel, code: &[u8]) -> std::result::Result<Resources, String>;

    // Arithmetic.

    /// The chip's own instruction for a `hw_…` operation, or for an approximate sine or cosine, of one `f32`; `flush` allows
    /// it to flush subnormals, `licence` is what the operation carries.
    fn hardware<'c, 'a>(
        &self,
        e: &Emitter<'c, 'a>,
        op: UnaryOp,
        x: Value<'c, 'a>,
        flush: bool,
        licence: FastFlags,
    ) -> Result<Value<'c, 'a>>;

    /// Whether LLVM makes one instruction of an approximate hyperbolic tangent of `f32`.
    fn has_tanh(&self) -> bool;

    /// An `f32` or `f64` as a 32-bit integer by one instruction: rounded towards 0, saturated, 0 of a NaN. `None` if there is
    /// none.
    fn saturating_int<'c, 'a>(
        &self,
        e: &Emitter<'c, 'a>,
        x: Value<'c, 'a>,
        from: Scalar,
        signed: bool,
    ) -> Result<Option<Value<'c, 'a>>>;

    /// The bits of an integer of 32 or 64 bits in reverse order, where LLVM would make worse of counting zeros from below
    /// than of reversing and counting from above.
    fn reversed<'c, 'a>(&self, e: &Emitter<'c, 'a>, x: Value<'c, 'a>, bits: u32) -> Result<Option<Value<'c, 'a>>>;

    /// Whether LLVM's `copysign` of 16 bits keeps a NaN's.
    fn short_copysign_keeps_nan(&self) -> bool;

    /// Packed codes of a narrow format by the chip's own conversions, with the meaning that the language has of them; `None`
    /// where it has none.
    fn encode<'c, 'a>(&self, e: &Emitter<'c, 'a>, encoding: &Encoding<'c, 'a>) -> Result<Option<Encoded<'c, 'a>>>;

    /// The numbers of packed codes by the chip's own conversions; `None` where it has none.
    fn decode<'c, 'a>(&self, e: &Emitter<'c, 'a>, decoding: &Decoding<'c, 'a>) -> Result<Option<Vec<Value<'c, 'a>>>>;

    /// Whether rounding `f32` to bf16 takes several instructions.
    fn bf16_is_dear(&self) -> bool;
}

/// Form of LLVM's output.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// A relocatable object.
    Object,
    /// Assembly text.
    Assembly,
}

/// The code generator that serves a chip.
pub fn backend(target: Target) -> Box<dyn Backend> {
    let chip = target.chip();
    match chip.arch {
        Arch::Amdgpu => Box::new(amdgpu::Amdgpu { chip }),
        Arch::Nvptx => Box::new(nvptx::Nvptx { chip }),
    }
}

/// `range` attribute of an index below `extent`.
fn range<'c>(e: &Emitter<'c, '_>, extent: u32) -> Result<Vec<Named<'c>>> {
    // LLVM's range attribute holds signed 32-bit ends, which every chip's launch limits fit.
    match i32::try_from(extent) {
        Ok(end @ 1..) => Ok(vec![("range", e.attribute(&format!("#llvm.constant_range<i32, 0, {end}>"))?)]),
        _ => Ok(vec![]),
    }
}
