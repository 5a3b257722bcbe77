//! A kernel that is in memory costs its caller no allocation, whatever else the JIT does.

use lathe_dsl::Target;
use lathe_dsl::prelude::*;
use lathe_runtime::DeviceBuffer;
use lathe_runtime::device::{Cpu, CpuOptions, Device};
use lathe_runtime::jit::{Interpreter, Jit};
use std::sync::Arc;

build_key! {
    /// y = 1
    pub struct Ones {
        /// Elements.
        n: u32 = 64, range(1, 4096);
    }
}

kernel_args! {
    /// Arguments of [`Ones`].
    pub struct OnesArgs(key: Ones) {
        /// Output.
        y: Out<f32>[u64::from(key.n)] align 4;
    }
}

impl Kernel for Ones {
    const NAME: &'static str = "ones";
    type Args = OnesArgs;

    fn launch(&self) -> Launch {
        Launch::linear(self.n.div_ceil(64), 64)
    }

    fn build<'k>(&self, k: &'k Builder<'k>, args: OnesArgs<Dev<'k>>) {
        let i = k.block_id(Axis::X) * 64 + k.thread_id(Axis::X);
        k.if_(i.lt(self.n), || k.buffer_store(k.constant(1.0f32), args.y, i));
    }
}

#[test]
fn a_hit_allocates_nothing() {
    let jit = Jit::new(Interpreter);
    let key = Ones { n: 64 };
    let fallback = jit.get(&key, Target::GFX950).unwrap();
    let counted = allocation_counter::measure(|| {
        for _ in 0..1000 {
            assert!(Arc::ptr_eq(&jit.get(&key, Target::GFX950).unwrap(), &fallback));
            assert!(Arc::ptr_eq(&jit.get_or_fallback(&key, Target::GFX950, &fallback).unwrap(), &fallback));
        }
    });
    assert_eq!((counted.count_total, counted.bytes_total), (0, 0));
    assert_eq!(jit.counters().memory_hits, 2000);
}

#[test]
fn what_is_counted_are_allocations() {
    let device: Arc<dyn Device> = Arc::new(Cpu::new(Target::GFX950, CpuOptions::default()));
    let counted = allocation_counter::measure(|| drop(DeviceBuffer::<f32>::uninit(&device, 64)));
    assert!(counted.count_total > 0);
}
