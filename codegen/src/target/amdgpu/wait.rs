//! Waiting, and hints for the scheduler.

use super::Amdgpu;
use crate::lower::emit::{Emitter, Result};

impl Amdgpu {
    /// Waits until at most `n` of the wave's newest operations on vector memory are outstanding (gfx9).
    pub(super) fn wait_for_loads(e: &Emitter<'_, '_>, n: u32) -> Result<()> {
        let n = n.min(63);
        e.compiler_barrier()?;
        // The other counters at their most.
        e.call_void("llvm.amdgcn.s.waitcnt", &[e.word(n & 15 | n >> 4 << 14 | 0x0F70)?])?;
        e.compiler_barrier()
    }

    /// Waits until the wave's stores are out and its copies to LDS are in.
    pub(super) fn wait_for_stores(&self, e: &Emitter<'_, '_>) -> Result<()> {
        if self.chip.generation.is_gfx9() {
            return Self::wait_for_loads(e, 0);
        }
        e.compiler_barrier()?;
        // Copies to LDS are loads and stores here, and LDS keeps the order of a wave.
        e.call_void("llvm.amdgcn.s.wait.storecnt", &[e.int_const(16, 0)?])?;
        e.compiler_barrier()
    }
}
