//! Which values are the same in all lanes of a wave, as far as the structured IR shows without a loop being followed.
//!
//! NVIDIA's lane operations name the lanes that take part: all of them where control flow is uniform, else whichever are
//! active. What is not known to be uniform is not.

use lathe_dsl::ir::{Block, Kernel, Op, Type, Value};

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
            let all = inst.op.operands().into_iter().all(|v| self.holds(v));
            let uniform = match &inst.op {
                Op::Const(_)
                | Op::BlockId(_)
                | Op::LdsBase(_)
                | Op::ReadFirstLane(_)
                | Op::ReadLane(..)
                | Op::SBufferLoad { .. }
                | Op::Ballot(_) => true,
                Op::Unary(..)
                | Op::Binary(..)
                | Op::Compare(..)
                | Op::Fma { .. }
                | Op::Select { .. }
                | Op::Convert(_)
                | Op::Bitcast(_)
                | Op::VectorFrom(_)
                | Op::Extract(..)
                | Op::ExtractAt(..)
                | Op::Shuffle { .. }
                | Op::Reduce(..)
                | Op::PtrAdd(..)
                | Op::PtrCast(_)
                | Op::BufferPtr(_)
                | Op::IntToPtr(_)
                | Op::PtrToInt(_)
                | Op::MakeBuffer { .. }
                | Op::Opaque(_)
                | Op::Expect { .. } => all,
                Op::For { lo, body, .. } => {
                    if let Some(index) = body.params.first() {
                        self.0[index.index()] = self.holds(*lo);
                    }
                    false
                }
                _ => false,
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
