//! Promise: once a kernel is compiled, getting and launching it allocates nothing.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lathe_dsl::Target;
use lathe_dsl::prelude::*;
use lathe_runtime::device::{Device, DeviceId, LaunchReport};
use lathe_runtime::jit::{Compiled, Interpreter, Jit};
use lathe_runtime::{ArgBlock, DeviceBuffer, Error};

/// Allocations that `work` makes on this thread.
fn allocations(work: impl FnOnce()) -> u64 {
    allocation_counter::measure(work).count_total
}

build_key! {
    /// y = x * factor
    pub struct Scale {
        /// Elements.
        n: u32 = 64, range(1, 4096);
    }
}

kernel_args! {
    /// Arguments of [`Scale`].
    pub struct ScaleArgs(key: Scale) {
        /// Input.
        x: In<f32>[u64::from(key.n)] align 4;
        /// Output.
        y: Out<f32>[u64::from(key.n)] align 4;
        /// Factor.
        factor: Scalar<f32>;
    }
}

impl Kernel for Scale {
    const NAME: &'static str = "scale";
    type Args = ScaleArgs;

    fn launch(&self) -> Launch {
        Launch::linear(self.n.div_ceil(64), 64)
    }

    fn build<'k>(&self, k: &'k Builder<'k>, args: ScaleArgs<Dev<'k>>) {
        let i = k.block_id(Axis::X) * 64 + k.thread_id(Axis::X);
        k.if_(i.lt(self.n), || k.buffer_store(k.buffer_load::<f32>(args.x, i) * args.factor, args.y, i));
    }
}

/// Takes launches and does nothing: what is left is what the host does for one.
#[derive(Default)]
struct Nowhere {
    next: AtomicU64,
    launches: AtomicU64,
}

impl Device for Nowhere {
    fn name(&self) -> String {
        "nowhere".to_owned()
    }

    fn id(&self) -> DeviceId {
        DeviceId(0) // `DeviceId::unique` begins at 1.
    }

    fn target(&self) -> Target {
        Target::GFX950
    }

    fn alloc(&self, bytes: u64) -> Result<u64, Error> {
        Ok(0x1000 + self.next.fetch_add(bytes.next_multiple_of(256), Ordering::Relaxed))
    }

    fn free(&self, _: u64) {}

    fn write(&self, _: u64, _: &[u8]) -> Result<(), Error> {
        Ok(())
    }

    fn read(&self, _: u64, _: &mut [u8]) -> Result<(), Error> {
        Ok(())
    }

    fn launch(&self, _: &Compiled, args: &ArgBlock) -> Result<LaunchReport, Error> {
        assert_eq!(black_box(args).bytes().len(), 8 + 8 + 4);
        self.launches.fetch_add(1, Ordering::Relaxed);
        Ok(LaunchReport::default())
    }
}

const CALLS: u64 = 1000;

#[test]
fn the_counter_counts() {
    let mut list = vec![];
    assert!(allocations(|| (0..100u64).for_each(|i| list.push(black_box(i)))) > 1);
    assert_eq!(allocations(|| drop(black_box(Box::new(7u64)))), 1);
}

#[test]
fn a_memory_hit_allocates_nothing() {
    let jit = Jit::new(Interpreter);
    let keys = [1, 64, 100].map(|n| Scale { n });
    for key in &keys {
        assert!(allocations(|| drop(jit.get(key, Target::GFX950).unwrap())) > 0, "the first time it does");
    }
    let hits = || {
        for _ in 0..CALLS {
            for key in &keys {
                let compiled = black_box(jit.get(black_box(key), Target::GFX950).unwrap());
                black_box(jit.get_or_fallback(black_box(key), Target::GFX950, &compiled).unwrap());
            }
        }
    };
    assert_eq!(allocations(hits), 0);
    assert_eq!(jit.counters().memory_hits, 2 * CALLS * keys.len() as u64);
}

#[test]
fn a_memory_hit_with_its_launch_allocates_nothing() {
    let jit = Jit::new(Interpreter);
    let nowhere = Arc::new(Nowhere::default());
    let device: Arc<dyn Device> = nowhere.clone();
    let key = Scale { n: 64 };
    jit.get(&key, Target::GFX950).unwrap();
    let x = DeviceBuffer::<f32>::uninit(&device, 64).unwrap();
    let y = DeviceBuffer::<f32>::uninit(&device, 64).unwrap();
    let launches = || {
        for _ in 0..CALLS {
            let compiled = jit.get(black_box(&key), Target::GFX950).unwrap();
            let args = ScaleArgs { x: x.arg(), y: y.arg(), factor: 2.0 };
            compiled.launch::<Scale>(&*device, &args).unwrap();
        }
    };
    assert_eq!(allocations(launches), 0);
    assert_eq!(nowhere.launches.load(Ordering::Relaxed), CALLS);
}

#[test]
fn a_launch_on_a_stream_allocates_nothing() {
    let nowhere = Arc::new(Nowhere::default());
    let device: Arc<dyn Device> = nowhere.clone();
    let stream = device.stream().unwrap();
    let compiled = Jit::new(Interpreter).get(&Scale { n: 64 }, Target::GFX950).unwrap();
    let x = DeviceBuffer::<f32>::uninit(&device, 64).unwrap();
    let y = DeviceBuffer::<f32>::uninit(&device, 64).unwrap();
    let launches = || {
        for _ in 0..CALLS {
            compiled.launch_on::<Scale>(&stream, &ScaleArgs { x: x.arg(), y: y.arg(), factor: 2.0 }).unwrap();
        }
    };
    assert_eq!(allocations(launches), 0);
    assert_eq!(nowhere.launches.load(Ordering::Relaxed), CALLS);
}
