//! Waiting, and hints for the scheduler.

use super::Amdgpu;
use crate::lower::emit::{Emitter, Result};

impl Amdgpu {
    /// Waits until the wave's stores are out and its copies to LDS are in.
    pub(super) fn wait_for_stores(&self, e: &Emitter<'_, '_>) -> Result<()> {
        e.compiler_barrier()?;
        if self.chip.generation.is_gfx9() {
            // vmcnt(0), the other counters at their most.
            e.call_void("llvm.amdgcn.s.waitcnt", &[e.word(0x0F70)?])?;
        } else {
            // Copies to LDS are loads and stores here, and LDS keeps the order of a wave.
            e.call_void("llvm.amdgcn.s.wait.storecnt", &[e.int_const(16, 0)?])?;
        }
        e.compiler_barrier()
    }
}
