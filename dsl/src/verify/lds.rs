//! Loads from LDS to which nothing can have been stored: what LDS holds at the start is undefined.

use super::origins::Origins;
use crate::error::Refusal;
use crate::ir::{AtomicOp, Block, Inst, Kernel, Op, Value};

/// Refuses loads of LDS arrays before anything can have been stored there.
pub(super) fn check(kernel: &Kernel, origins: &Origins) -> Result<(), Refusal> {
    if kernel.lds.is_empty() {
        return Ok(());
    }
    let mut arrays = vec![None; kernel.values.len()];
    kernel.walk(&mut |inst| {
        if let (Op::LdsBase(array), [result]) = (&inst.op, &inst.results[..]) {
            arrays[result.index()] = Some(*array as usize);
        }
    });
    let walk = Walk { kernel, origins, arrays };
    let mut ever = vec![false; kernel.lds.len()];
    walk.stores(&kernel.body, &mut ever);
    let mut stored = vec![false; kernel.lds.len()];
    walk.block(&kernel.body, &mut stored, &ever)
}

struct Walk<'k> {
    kernel: &'k Kernel,
    origins: &'k Origins,
    /// By value: the array that it is the base of.
    arrays: Vec<Option<usize>>,
}

impl Walk<'_> {
    /// The arrays that a value can point into.
    fn pointed(&self, v: Value) -> Vec<usize> {
        self.origins.all(v).into_iter().filter_map(|v| self.arrays[v.index()]).collect()
    }

    /// Marks what an operation may store to.
    fn store(&self, inst: &Inst, stored: &mut [bool]) {
        let mut mark = |v: Value| self.pointed(v).into_iter().for_each(|a| stored[a] = true);
        match &inst.op {
            Op::PtrStore { pointer, .. }
            | Op::AtomicRmw { pointer, .. }
            | Op::AtomicCas { pointer, .. }
            | Op::CopyToLds { pointer, .. } => mark(*pointer),
            // What stands for the region may store in ways that the region does not show.
            Op::Native { args, .. } => args.iter().copied().for_each(mark),
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
            Op::PtrLoad { pointer, .. } | Op::AtomicCas { pointer, .. } => *pointer,
            Op::AtomicRmw { op, pointer, .. } if *op != AtomicOp::Xchg => *pointer,
            _ => return Ok(()),
        };
        let arrays = self.pointed(pointer);
        let (Some(first), true) = (arrays.first(), arrays.iter().all(|a| !stored[*a])) else { return Ok(()) };
        let (name, array) = (inst.op.def().name, self.kernel.lds[*first].name);
        Err(match ever[*first] {
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
