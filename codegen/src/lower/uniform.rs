//! Which values are the same in all lanes of a wave, as far as the structured IR shows without a loop being followed.
//!
//! NVIDIA's lane operations name the lanes that take part: all of them where control flow is uniform, else whichever are
//! active. What is not known to be uniform is not.

use std::collections::HashSet;

use lathe_dsl::ir::{BinaryOp, Block, Kernel, Op, Scalar, Type, Value};

/// For every value, whether all lanes of a wave surely hold the same one.
pub struct Uniform(Vec<bool>);

impl Uniform {
    /// Analyses a kernel.
    pub fn of(kernel: &Kernel) -> Self {
        let mut this = Self(vec![false; kernel.values.len()]);
        for i in 0..kernel.params.len() {
            this.0[i] = true;
        }
        this.block(&kernel.body);
        this
    }

    /// Whether `v` is.
    pub fn holds(&self, v: Value) -> bool {
        self.0.get(v.index()).copied().unwrap_or(false)
    }

    fn block(&mut self, block: &Block) {
        for inst in &block.insts {
            let uniform = match &inst.op {
                Op::BlockId(_)
                | Op::ReadFirstLane(_)
                | Op::ReadLane(..)
                | Op::AssumeUniform { .. }
                | Op::SBufferLoad { .. }
                | Op::Ballot(_) => true,
                Op::For { lo, body, .. } => {
                    if let Some(index) = body.params.first() {
                        self.0[index.index()] = self.holds(*lo);
                    }
                    false
                }
                op => op.kind().follows_from_operands() && op.operands().into_iter().all(|v| self.holds(v)),
            };
            for nested in inst.op.blocks() {
                self.block(nested);
            }
            for r in &inst.results {
                self.0[r.index()] = uniform;
            }
        }
    }
}

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
