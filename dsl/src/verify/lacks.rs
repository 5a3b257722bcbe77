//! What a target cannot do, said by name before a compiler trips over it.

use crate::image;
use crate::ir::{Op, ParamKind};
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

/// Why kernels for `target` take no such parameter and what to write instead; `None` if they do.
pub(super) fn lacks_param(kind: ParamKind, target: Target) -> Option<String> {
    (kind.image().is_some() && !image::has_units(target)).then(|| {
        format!("needs texture units, and Lathe uses none of {target}; declare it with `Units::Emulated` or `Units::WhereThereAre`")
    })
}
