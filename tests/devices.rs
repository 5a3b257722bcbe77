//! Promise: streams, events, graphs and pinned copies give on every device what plain launches give, written once.

use std::sync::Arc;

use lathe_dsl::prelude::*;
use lathe_runtime::device::{Device, Pinned, Stream};
use lathe_runtime::jit::Compiled;
use lathe_runtime::{DeviceBuffer, Engine, Error};

use crate::filetests::machine;
use crate::hip;

build_key! {
    /// y += factor · x
    pub struct Add {
        /// Elements.
        n: u32 = 1024, range(1, 1 << 24);
    }
}

kernel_args! {
    /// Arguments of [`Add`].
    pub struct AddArgs(key: Add) {
        /// Added, `[n]`.
        x: In<f32>[u64::from(key.n)] align 4;
        /// Changed in place, `[n]`.
        y: InOut<f32>[u64::from(key.n)] align 4;
        /// Factor.
        factor: Scalar<f32>;
    }
}

impl Kernel for Add {
    const NAME: &'static str = "add";
    type Args = AddArgs;

    fn launch(&self) -> Launch {
        Launch::linear(self.n.div_ceil(256), 256)
    }

    fn build<'k>(&self, k: &'k Builder<'k>, args: AddArgs<Dev<'k>>) {
        let i = k.block_id(Axis::X) * 256 + k.thread_id(Axis::X);
        k.if_(i.lt(self.n), || {
            let (x, y) = (k.buffer_load::<f32>(args.x, i), k.buffer_load::<f32>(args.y, i));
            k.buffer_store(x * args.factor + y, args.y, i);
        });
    }
}

/// `x` = 1, `y` = 0, and a kernel that adds.
pub struct Adder {
    pub device: Arc<dyn Device>,
    pub kernel: Arc<Compiled>,
    pub x: DeviceBuffer<f32>,
    pub y: DeviceBuffer<f32>,
    n: usize,
}

impl Adder {
    pub fn new(engine: &Engine, n: usize) -> Self {
        let device = engine.device.clone();
        let kernel = engine.jit.get(&Add { n: n as u32 }, device.target()).expect("it compiles");
        let buffer = |value| DeviceBuffer::from_slice(&device, &vec![value; n]).expect("there is room");
        Self { kernel, x: buffer(1.0), y: buffer(0.0), n, device }
    }

    pub fn add(&self, stream: &Stream, factor: f32) -> Result<(), Error> {
        self.kernel.launch_on::<Add>(stream, &AddArgs { x: self.x.arg(), y: self.y.arg(), factor })
    }

    pub fn add_and_wait(&self, factor: f32) {
        let args = AddArgs { x: self.x.arg(), y: self.y.arg(), factor };
        self.kernel.launch::<Add>(&*self.device, &args).expect("it runs");
    }

    /// What every element of `y` is.
    pub fn y(&self) -> f32 {
        let y = self.y.to_vec().expect("it is read");
        assert!(y.iter().all(|v| *v == y[0]), "{:?}", y.iter().find(|v| **v != y[0]));
        y[0]
    }
}

/// Runs it on every device of this machine; for `cuda` with arrays large enough that nothing is done when a call returns.
fn on_every_device(promise: impl Fn(&Adder)) {
    for name in ["cpu", "cpu:sm_90", "gcn:gfx950"] {
        promise(&Adder::new(&Engine::open(name, None).expect("it runs anywhere"), 300));
    }
    // A stand-in, whose streams do nothing before somebody waits.
    promise(&Adder::new(&hip::engine(1), 300));
    match machine::gpu() {
        Ok(_) => promise(&Adder::new(&Engine::open("cuda", None).expect("there is a GPU"), 1 << 24)),
        Err(reason) => println!("cuda skipped: {reason}"),
    }
}

#[test]
fn a_stream_does_everything_in_order() {
    on_every_device(|a| {
        let stream = a.device.stream().unwrap();
        let written = stream.write(Pinned::from_slice(&a.device, &vec![7.0f32; a.n]).unwrap(), &a.y).unwrap();
        a.add(&stream, 2.0).unwrap();
        stream.copy(&a.y, &a.x).unwrap();
        a.add(&stream, 1.0).unwrap();
        let sums = stream.read(&a.y, Pinned::zeroed(&a.device, a.n).unwrap()).unwrap();
        assert!(sums.wait().unwrap().iter().all(|v| *v == 18.0), "{}", a.device.name());
        assert!(written.is_done().unwrap(), "it was before the other");
        assert!(written.wait().unwrap().iter().all(|v| *v == 7.0));
        stream.synchronize().unwrap();
        assert!(stream.is_idle().unwrap());
    });
}

#[test]
fn calls_that_wait_are_ordered_with_streams() {
    on_every_device(|a| {
        let stream = a.device.stream().unwrap();
        for round in 1..=10 {
            a.add(&stream, 1.0).unwrap();
            a.add_and_wait(10.0);
            assert_eq!(a.y(), 11.0 * round as f32, "{}", a.device.name());
            a.device.write(a.x.address(), &bytes(&vec![1.0; a.n])).unwrap();
        }
    });
}

/// Little endian, as every device has it.
fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

#[test]
fn an_event_orders_two_streams_and_tells_the_time() {
    on_every_device(|a| {
        let [first, second] = [a.device.stream().unwrap(), a.device.stream().unwrap()];
        let [start, middle, end] = [(); 3].map(|()| a.device.event().unwrap());
        for round in 1..=5 {
            start.record(&first).unwrap();
            (0..8).for_each(|_| a.add(&first, 1.0).unwrap());
            middle.record(&first).unwrap();
            second.wait(&middle).unwrap();
            let copy = DeviceBuffer::<f32>::uninit(&a.device, a.n).unwrap();
            second.copy(&a.y, &copy).unwrap();
            end.record(&second).unwrap();
            end.synchronize().unwrap();
            assert!(middle.is_passed().unwrap() && end.is_passed().unwrap());
            let copied = copy.to_vec().unwrap();
            assert!(copied.iter().all(|v| *v == 8.0 * round as f32), "{}", a.device.name());
            let (work, all) = (start.elapsed(&middle).unwrap(), start.elapsed(&end).unwrap());
            assert!(work <= all, "{work:?}, {all:?}");
            assert!(!work.is_zero(), "eight launches take time");
            assert!(end.elapsed(&start).unwrap().is_zero());
        }
    });
}

#[test]
fn buffers_and_kernels_may_be_dropped_while_they_are_used() {
    on_every_device(|a| {
        let stream = a.device.stream().unwrap();
        let results: Vec<_> = (0..8)
            .map(|i| {
                let engine_kernel = a.kernel.clone();
                let y = DeviceBuffer::from_slice(&a.device, &vec![i as f32; a.n]).unwrap();
                (0..4).for_each(|_| {
                    let args = AddArgs { x: a.x.arg(), y: y.arg(), factor: 1.0 };
                    engine_kernel.launch_on::<Add>(&stream, &args).unwrap();
                });
                stream.read(&y, Pinned::zeroed(&a.device, a.n).unwrap()).unwrap()
            })
            .collect();
        for (i, result) in results.into_iter().enumerate() {
            assert!(result.wait().unwrap().iter().all(|v| *v == i as f32 + 4.0), "{}", a.device.name());
        }
    });
}

#[test]
fn a_transfer_that_is_dropped_is_done() {
    on_every_device(|a| {
        let stream = a.device.stream().unwrap();
        (0..8).for_each(|_| a.add(&stream, 1.0).unwrap());
        drop(stream.write(Pinned::from_slice(&a.device, &vec![3.0f32; a.n]).unwrap(), &a.y).unwrap());
        assert!(stream.is_idle().unwrap(), "{}", a.device.name());
        assert_eq!(a.y(), 3.0);
    });
}

#[test]
fn a_graph_replays_what_was_captured() {
    on_every_device(|a| {
        let stream = a.device.stream().unwrap();
        let copy = DeviceBuffer::from_slice(&a.device, &vec![0.0f32; a.n]).unwrap();
        let work = |s: &Stream| {
            (1..=5).try_for_each(|i| a.add(s, i as f32))?;
            s.copy(&a.y, &copy)
        };
        let graph = stream.capture(work).unwrap();
        stream.synchronize().unwrap();
        assert_eq!(a.y(), 0.0, "nothing has run");
        graph.launch(&stream).unwrap();
        work(&stream).unwrap();
        graph.launch(&stream).unwrap();
        stream.synchronize().unwrap();
        assert_eq!(a.y(), 45.0, "{}", a.device.name());
        assert!(copy.to_vec().unwrap().iter().all(|v| *v == 45.0));
    });
}

#[test]
fn a_graph_outlives_what_it_was_captured_from() {
    on_every_device(|a| {
        let stream = a.device.stream().unwrap();
        let y = DeviceBuffer::from_slice(&a.device, &vec![1.0f32; a.n]).unwrap();
        let (address, args) = (y.address(), AddArgs { x: a.x.arg(), y: y.arg(), factor: 2.0 });
        let graph = stream.capture(|s| a.kernel.launch_on::<Add>(s, &args)).unwrap();
        drop(y);
        graph.launch(&stream).unwrap();
        graph.launch(&stream).unwrap();
        let mut value = [0; 4];
        a.device.read(address, &mut value).unwrap();
        assert_eq!(f32::from_le_bytes(value), 5.0, "{}", a.device.name());
        graph.launch(&stream).unwrap();
        drop(graph);
        assert!(matches!(a.device.read(address, &mut value), Err(Error::BadAddress { .. })));
    });
}

#[test]
fn a_failed_capture_spoils_nothing() {
    on_every_device(|a| {
        let stream = a.device.stream().unwrap();
        for _ in 0..3 {
            let failed = stream.capture(|s| a.add(s, 1.0).and_then(|()| s.synchronize()));
            assert!(matches!(failed, Err(Error::NotRecordable { call: "synchronize" })), "{failed:?}");
            let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                stream.capture(|s| {
                    a.add(s, 1.0)?;
                    std::panic::resume_unwind(Box::new("the author's"))
                })
            }));
            assert!(panicked.is_err());
        }
        // Allocating and launching elsewhere while a capture is under way.
        let graph = stream
            .capture(|s| {
                a.add(s, 1.0)?;
                let other = DeviceBuffer::from_slice(&a.device, &vec![0.0f32; a.n])?;
                a.add_and_wait(100.0);
                stream.synchronize()?;
                drop(other);
                a.add(s, 1.0)
            })
            .unwrap();
        graph.launch(&stream).unwrap();
        assert_eq!(a.y(), 102.0, "{}", a.device.name());
    });
}

#[test]
fn what_a_kernel_needs_is_told_where_it_is_known() {
    on_every_device(|a| {
        let resources = a.kernel.resources_on(&*a.device).unwrap();
        let occupancy = a.kernel.occupancy(&*a.device).unwrap();
        assert_eq!(a.device.resident_blocks(&a.kernel).unwrap(), occupancy.map(|o| o.resident_blocks()));
        let name = a.device.name();
        match name.split(':').next().expect("a kind") {
            "cpu" => assert_eq!((resources.registers, occupancy), (None, None), "{name}"),
            "gcn" => {
                assert!(resources.registers.is_some_and(|n| n > 0) && resources.scalar_registers.is_some(), "{name}");
                assert_eq!((resources.spills, resources.local_bytes, occupancy), (Some(0), Some(0), None), "{name}");
            }
            _ => {
                println!("{name}: {resources:?}, {occupancy:?}");
                let occupancy = occupancy.expect("a GPU has compute units");
                assert!(resources.registers.is_some_and(|n| (1..=255).contains(&n)), "{resources:?}");
                assert_eq!((resources.local_bytes, resources.static_lds_bytes), (Some(0), 0), "{resources:?}");
                assert!(resources.max_block.is_some_and(|n| (256..=1024).contains(&n)), "{resources:?}");
                // 2048 threads a multiprocessor at most, 256 a workgroup.
                assert!((1..=8).contains(&occupancy.blocks_per_unit) && occupancy.units > 0, "{occupancy:?}");
            }
        }
    });
}
