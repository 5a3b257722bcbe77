//! What is gathered of a kernel's values before it is lowered.

use std::collections::HashSet;

use lathe_dsl::ir::{BinaryOp, Block, Kernel, Op, Scalar, Type};

/// Divisors of several `f32` divisions of one block, by value.
pub fn shared_divisors(kernel: &Kernel) -> Vec<bool> {
    let mut shared = vec![false; kernel.values.len()];
    divisors(kernel, &kernel.body, &mut shared);
    shared
}

fn divisors(kernel: &Kernel, block: &Block, shared: &mut [bool]) {
    let mut seen = HashSet::new();
    for inst in &block.insts {
        if let Op::Binary(BinaryOp::Div, _, b) = inst.op
            && kernel.ty(b).scalar() == Scalar::F32
        {
            shared[b.index()] |= !seen.insert(b);
        }
        for nested in inst.op.blocks() {
            divisors(kernel, nested, shared);
        }
    }
}

/// Constants of a kernel, by value: their bits.
pub fn constants(kernel: &Kernel) -> Vec<Option<u64>> {
    let mut all = vec![None; kernel.values.len()];
    kernel.walk(&mut |inst| {
        if let (Op::Const(bits), [result]) = (&inst.op, &inst.results[..])
            && matches!(kernel.ty(*result), Type::Scalar(_) | Type::Vector(..))
        {
            all[result.index()] = Some(bits.0);
        }
    });
    all
}
