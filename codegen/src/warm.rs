//! The kernel that warms the compiler up.

use lathe_dsl::builder::{self, Builder};
use lathe_dsl::ir::{Access, Axis, Kernel, Launch, Param, ParamKind, Scalar};
use lathe_dsl::kernel::{In, Out};
use lathe_dsl::{Refusal, Target};

/// A little of everything that kernels are made of: a loop, a branch, LDS, a barrier, a dozen live values.
pub fn kernel(target: Target) -> Result<Kernel, Refusal> {
    let buffer = |name, access| {
        let kind = ParamKind::Buffer { elem: Scalar::F32, len: 4096, access, align: 16 };
        Param { name, kind }
    };
    let params = vec![buffer("x", Access::Read), buffer("y", Access::Write)];
    builder::build("warm_up", target, Launch::linear(4, 256), params, body)
}

fn body<'k>(k: &'k Builder<'k>) {
    let (x, y) = (k.buffer::<f32, In>(0), k.buffer::<f32, Out>(1));
    let thread = k.thread_id(Axis::X);
    let row = k.lds::<f32>("row", 256);
    k.for_range(k.block_id(Axis::X), 16, 4, (), |block, ()| {
        let at = block * 256 + thread;
        let loaded: Vec<_> = (0..8u32).map(|j| k.buffer_load::<f32>(x, (at + j * 512).minimum(4095))).collect();
        let max = loaded.iter().copied().reduce(|a, b| a.maximum(b)).unwrap_or_else(|| k.constant(0.0));
        let sum = loaded.iter().fold(k.constant(0.0f32), |sum, v| sum + (*v - max).hw_exp2());
        k.ptr_store(sum.eq(0.0).select(0.0, sum.hw_rcp()), row + thread);
        k.barrier();
        k.if_(thread.lt(128), || k.buffer_store(k.ptr_load::<f32>(row + (thread + 128)), y, at));
        k.barrier();
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, compile};

    #[test]
    fn it_compiles_for_every_chip() {
        for target in Target::all() {
            let artifact = compile(&kernel(target).unwrap(), target, &Options::default()).unwrap();
            assert!(artifact.record.resources.instructions > 20);
        }
    }
}
