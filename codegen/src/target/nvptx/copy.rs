//! Asynchronous copies to shared memory.

use lathe_dsl::ir::Coherence;
use melior::ir::Value;

use super::Nvptx;
use crate::lower::buffer::{BufferAccess, scale};
use crate::lower::emit::{GepIndex, Result};
use crate::lower::lanes::Lanes;

impl Nvptx {
    /// `cp.async`, in pieces of 16 or of 4 bytes by what the address is surely aligned to; lanes outside the buffer read
    /// nothing and write zeros. `false` for what it has no form for: less alignment, coherent loads.
    pub(super) fn copy_async<'c, 'a>(
        &self,
        at: &Lanes<'_, 'c, 'a>,
        access: &BufferAccess<'c, 'a>,
        pointer: Value<'c, 'a>,
    ) -> Result<bool> {
        let e = at.e;
        if access.cache.coherence != Coherence::Own || access.align < 4 {
            return Ok(false);
        }
        let (piece, name) = match (access.bytes, access.align) {
            (16, 16..) => (16, "llvm.nvvm.cp.async.cg.shared.global.16"),
            _ => (4, "llvm.nvvm.cp.async.ca.shared.global.4"),
        };
        let to = e.gep(pointer, GepIndex::Value(scale(e, self.lane(at)?, access.bytes)?), e.int(8))?;
        let mut from = access.address(e)?;
        let mut read = None;
        if let Some(permitted) = access.permitted(e)? {
            from = e.select(permitted, from, access.buffer.pointer)?;
            read = Some(e.select(permitted, e.word(piece)?, e.word(0)?)?);
        }
        for i in 0..access.bytes / piece {
            let [to, from] = [to, from].map(|p| match i {
                0 => Ok(p),
                i => e.gep(p, GepIndex::Constant((i * piece) as i32), e.int(8)),
            });
            match read {
                Some(read) => e.call_void(&format!("{name}.s"), &[to?, from?, read])?,
                None => e.call_void(name, &[to?, from?])?,
            }
        }
        Ok(true)
    }

    /// Lets the lanes of a warp, if all run here, see what each has waited for.
    pub(super) fn meet(at: &Lanes<'_, '_, '_>) -> Result<()> {
        if at.whole { at.e.call_void("llvm.nvvm.bar.warp.sync", &[at.e.word(u32::MAX)?]) } else { Ok(()) }
    }
}
