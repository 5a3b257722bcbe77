//! Whether the LDS arrays fit the chip, and loads from LDS to which nothing can have been stored: what it holds at the start is
//! undefined.

use super::origins::Arrays;
use crate::error::Refusal;
use crate::ir::{AtomicOp, Block, Inst, Kernel, Op, Space, Type, Value};
use crate::target::Target;

/// Refuses LDS arrays that need more than the chip has, at the first one that does.
pub(super) fn fits(kernel: &Kernel, target: Target) -> Result<(), Refusal> {
    let most = u64::from(target.chip().lds_bytes);
    let mut end = 0u64;
    let mut first = None;
    for (i, a) in (0..).zip(&kernel.lds) {
        end = end.next_multiple_of(a.align.into()).saturating_add(u64::from(a.len) * u64::from(a.elem.bytes()));
        first = first.or((end > most).then_some(i));
    }
    let Some(first) = first else { return Ok(()) };
    let mut location = None;
    kernel.walk(&mut |inst| {
        if matches!(inst.op, Op::LdsBase(i) if i == first) && location.is_none() {
            location = kernel.locations.get((inst.number.0 as usize).wrapping_sub(1)).copied();
        }
    });
    let arrays: Vec<String> = kernel.lds.iter().map(|a| format!("{} of {} {}", a.name, a.len, a.elem)).collect();
    let arrays = arrays.join(", ");
    let message = format!(
        "LDS arrays ({arrays}) need {end} bytes, more than the {most} bytes {target} has; make one smaller, or use one for what \
         is not needed at the same time"
    );
    Err(Refusal { location, message })
}

/// Refuses loads of LDS arrays before anything can have been stored there.
pub(super) fn check(kernel: &Kernel) -> Result<(), Refusal> {
    if kernel.lds.is_empty() {
        return Ok(());
    }
    let mut addresses = false;
    kernel.walk(&mut |inst| {
        addresses |= matches!(inst.op, Op::PtrToInt(p) if matches!(kernel.ty(p), Type::Ptr(Space::Lds, _)));
    });
    let walk = Walk { kernel, arrays: Arrays::of(kernel), addresses };
    let mut ever = vec![false; kernel.lds.len()];
    walk.stores(&kernel.body, &mut ever);
    let mut stored = vec![false; kernel.lds.len()];
    walk.block(&kernel.body, &mut stored, &ever)
}

struct Walk<'k> {
    kernel: &'k Kernel,
    /// By value.
    arrays: Vec<Arrays>,
    /// Whether addresses in LDS become integers, which may go anywhere.
    addresses: bool,
}

impl Walk<'_> {
    /// Marks what an operation may store to.
    fn store(&self, inst: &Inst, stored: &mut [bool]) {
        let mut mark = |v: Value| match self.arrays[v.index()] {
            Arrays::None => {}
            Arrays::One(a) => stored[a as usize] = true,
            Arrays::Any => stored.fill(true),
        };
        match &inst.op {
            Op::PtrStore { pointer, .. }
            | Op::AtomicRmw { pointer, .. }
            | Op::AtomicCas { pointer, .. }
            | Op::CopyToLds { pointer, .. } => mark(*pointer),
            // What stands for the region may store in ways that the region does not show.
            Op::Native { args, .. } => {
                args.iter().copied().for_each(mark);
                if self.addresses {
                    stored.fill(true);
                }
            }
            _ => {}
        }
    }

    fn stores(&self, block: &Block, stored: &mut [bool]) {
        for inst in &block.insts {
            self.store(inst, stored);
            inst.op.blocks().into_iter().for_each(|region| self.stores(region, stored));
        }
    }

    /// `stored`: where something may have been stored to when the block begins, and then when it ends.
    fn block(&self, block: &Block, stored: &mut [bool], ever: &[bool]) -> Result<(), Refusal> {
        for inst in &block.insts {
            self.load(inst, stored, ever)
                .map_err(|message| Refusal { location: Some(self.kernel.location(inst.number)), message })?;
            self.store(inst, stored);
            let regions = inst.op.blocks();
            // An earlier round may have stored what a later one loads, and other threads, on the other side of a branch, what
            // these here wait for.
            if !regions.is_empty() && (regions.len() > 1 || matches!(inst.op, Op::For { .. })) {
                regions.iter().for_each(|region| self.stores(region, stored));
            }
            for region in regions {
                self.block(region, stored, ever)?;
            }
        }
        Ok(())
    }

    fn load(&self, inst: &Inst, stored: &[bool], ever: &[bool]) -> Result<(), String> {
        let pointer = match &inst.op {
            Op::PtrLoad { pointer, .. } | Op::LdsReadTr { pointer, .. } | Op::AtomicCas { pointer, .. } => *pointer,
            Op::AtomicRmw { op, pointer, .. } if *op != AtomicOp::Xchg => *pointer,
            _ => return Ok(()),
        };
        let Arrays::One(first) = self.arrays[pointer.index()] else { return Ok(()) };
        let first = first as usize;
        if stored[first] {
            return Ok(());
        }
        let (name, array) = (inst.op.def().name, self.kernel.lds[first].name);
        Err(match ever[first] {
            false => format!(
                "`{name}` from LDS array `{array}`, to which the kernel never stores; LDS holds nothing of use at the start: \
                 store to it first"
            ),
            true => format!(
                "`{name}` from LDS array `{array}` before anything can have been stored to it; LDS holds nothing of use at \
                 the start: store to it first"
            ),
        })
    }
}
