//! What a target cannot do, said by name before a compiler trips over it.

use crate::ir::Op;
use crate::target::{Arch, Target};

/// Why `target` has no such operation and what to write instead; `None` if it has one.
pub fn lacks(op: &Op, target: Target) -> Option<String> {
    let chip = target.chip();
    match op {
        Op::SWaitcnt { .. } if !chip.generation.is_gfx9() => Some(match chip.arch {
            Arch::Amdgpu => format!("`s_waitcnt` counts differently on {target}; use `drain`"),
            Arch::Nvptx => format!("{target} has no `s_waitcnt`; use `drain`"),
        }),
        _ => None,
    }
}
