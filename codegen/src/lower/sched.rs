//! What speaks to the scheduler, the waiting hardware and the optimiser.

use lathe_dsl::ir;
use melior::ir::Value;

use super::Lowering;
use super::emit::Result;
use super::words::{from_words, words};

impl<'c, 'a> Lowering<'c, 'a, '_> {
    /// A value that the compiler knows nothing of.
    pub(super) fn opaque(&self, a: ir::Value) -> Result<Value<'c, 'a>> {
        let (e, ty) = (&self.emit, self.kernel.ty(a));
        let constraint = self.backend.register_constraint();
        let hidden = words(e, ty, self.get(a)?)?.into_iter().map(|word| {
            // Without effects it would leave the loop it stands in.
            e.asm("", &format!("={constraint},0"), &[word], &[e.int(32)], true).map(|r| r[0])
        });
        from_words(e, ty, &hidden.collect::<Result<Vec<_>>>()?)
    }

    /// A condition that is usually so.
    pub(super) fn expect(&self, condition: ir::Value, likely: bool) -> Result<Value<'c, 'a>> {
        let e = &self.emit;
        e.same("llvm.intr.expect", &[self.get(condition)?, e.bit(likely)?])
    }

    /// A condition that always holds.
    pub(super) fn assume(&self, condition: ir::Value) -> Result<()> {
        self.emit.call_void("llvm.assume", &[self.get(condition)?])
    }

    /// `s_waitcnt`, which only gfx9 has: counters that are not named are not waited for.
    pub(super) fn s_waitcnt(&self, vmcnt: Option<u32>, lgkmcnt: Option<u32>, expcnt: Option<u32>) -> Result<()> {
        let (vm, lgkm, exp) = (vmcnt.unwrap_or(63), lgkmcnt.unwrap_or(15), expcnt.unwrap_or(7));
        let e = &self.emit;
        // A wait is there for the accesses around it.
        e.compiler_barrier()?;
        e.call_void("llvm.amdgcn.s.waitcnt", &[e.word(vm & 15 | exp << 4 | lgkm << 8 | vm >> 4 << 14)?])?;
        e.compiler_barrier()
    }
}
