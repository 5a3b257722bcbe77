//! What a target answers; everything else about code generation is shared.

mod amdgpu;
mod nvptx;

use lathe_dsl::artifact::Resources;
use lathe_dsl::ir::{Axis, Kernel, UnaryOp};
use lathe_dsl::target::Chip;
use lathe_dsl::{Arch, Target};
use melior::ir::{Type, Value};

use crate::lower::Blame;
use crate::lower::emit::{Emitter, Named, Result};
use crate::lower::memory::BufferAccess;

/// A code generator's target.
pub trait Backend: Sync {
    /// The chip.
    fn chip(&self) -> &'static Chip;

    /// Refuses what verified Kernel IR may hold but this target cannot do.
    fn check(&self, kernel: &Kernel) -> std::result::Result<(), Blame>;

    /// Launch facts, as attributes of the kernel function.
    fn kernel_attributes<'c>(&self, e: &Emitter<'c, '_>, kernel: &Kernel) -> Result<Vec<Named<'c>>>;

    /// Index of the thread in its workgroup along an axis of this extent: 32 bits.
    fn thread_id<'c, 'a>(&self, e: &Emitter<'c, 'a>, axis: Axis, extent: u32) -> Result<Value<'c, 'a>>;

    /// Index of the workgroup in the grid along an axis of this extent: 32 bits.
    fn block_id<'c, 'a>(&self, e: &Emitter<'c, 'a>, axis: Axis, extent: u32) -> Result<Value<'c, 'a>>;

    /// Makes of a buffer's address what its accesses take; called once a parameter, at the kernel's start.
    fn open_buffer<'c, 'a>(&self, e: &Emitter<'c, 'a>, pointer: Value<'c, 'a>, bytes: u64) -> Result<Value<'c, 'a>>;

    /// Loads `carrier`, zeros if the access does not end within the buffer. Not called where it never does.
    fn buffer_load<'c, 'a>(
        &self,
        e: &Emitter<'c, 'a>,
        access: &BufferAccess<'c, 'a>,
        carrier: Type<'c>,
    ) -> Result<Value<'c, 'a>>;

    /// Stores `value`, nothing if the access does not end within the buffer. Not called where it never does.
    fn buffer_store<'c, 'a>(
        &self,
        e: &Emitter<'c, 'a>,
        access: &BufferAccess<'c, 'a>,
        value: Value<'c, 'a>,
    ) -> Result<()>;

    /// MLIR pass pipeline, anchored at `builtin.module`, that leaves only LLVM's dialects.
    fn pipeline(&self, target: Target) -> String;

    /// What LLVM has to emit for an artifact.
    fn output(&self) -> Output;

    /// Makes the artifact's code of LLVM's output.
    fn finish(&self, emitted: Vec<u8>) -> std::result::Result<Vec<u8>, String>;

    /// Reads what the artifact's code needs of the chip.
    fn resources(&self, target: Target, kernel: &Kernel, code: &[u8]) -> std::result::Result<Resources, String>;

    // Arithmetic.

    /// The chip's own instruction for a `hw_…` operation on one `f32`; `flush` allows it to flush subnormals, `flags` are
    /// what the operation carries.
    fn hardware<'c, 'a>(
        &self,
        e: &Emitter<'c, 'a>,
        op: UnaryOp,
        x: Value<'c, 'a>,
        flush: bool,
        flags: &[Named<'c>],
    ) -> Result<Value<'c, 'a>>;
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
