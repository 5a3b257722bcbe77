//! Streams, events, graphs and pinned memory where everything is done at once.

use std::sync::Arc;

use lathe_dsl::Target;
use lathe_dsl::prelude::*;

use super::*;
use crate::buffer::DeviceBuffer;
use crate::jit::{Interpreter, Jit};

build_key! {
    /// y += factor * x
    pub struct Add {
        /// Elements.
        n: u32 = 64, range(0, 4096);
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
        Launch::linear(self.n.div_ceil(64), 64)
    }

    fn build<'k>(&self, k: &'k Builder<'k>, args: AddArgs<Dev<'k>>) {
        let i = k.block_id(Axis::X) * 64 + k.thread_id(Axis::X);
        k.if_(i.lt(self.n), || {
            let (x, y) = (k.buffer_load::<f32>(args.x, i), k.buffer_load::<f32>(args.y, i));
            k.buffer_store(x * args.factor + y, args.y, i);
        });
    }
}

const N: usize = 100;

/// A device with a kernel, `x` = 1 and `y` = 0.
struct Setup {
    device: Arc<dyn Device>,
    kernel: Arc<Compiled>,
    x: DeviceBuffer<f32>,
    y: DeviceBuffer<f32>,
}

impl Setup {
    fn new() -> Self {
        let device: Arc<dyn Device> = Arc::new(Cpu::new(Target::GFX950, CpuOptions::default()));
        let kernel = Jit::new(Interpreter).get(&Add { n: N as u32 }, Target::GFX950).unwrap();
        let (x, y) = (DeviceBuffer::from_slice(&device, &[1.0; N]), DeviceBuffer::from_slice(&device, &[0.0; N]));
        Self { kernel, x: x.unwrap(), y: y.unwrap(), device }
    }

    /// y += factor
    fn add(&self, stream: &Stream, factor: f32) -> Result<(), Error> {
        self.kernel.launch_on::<Add>(stream, &AddArgs { x: self.x.arg(), y: self.y.arg(), factor })
    }

    fn y(&self) -> f32 {
        let y = self.y.to_vec().unwrap();
        assert!(y.iter().all(|v| *v == y[0]), "{y:?}");
        y[0]
    }
}

#[test]
fn work_is_done_in_order() {
    let setup = Setup::new();
    let stream = setup.device.stream().unwrap();
    let sevens = Pinned::from_slice(&setup.device, &[7.0f32; N]).unwrap();
    let written = stream.write(sevens, &setup.y).unwrap();
    setup.add(&stream, 2.0).unwrap();
    stream.copy(&setup.y, &setup.x).unwrap();
    setup.add(&stream, 1.0).unwrap();
    let sums = stream.read(&setup.y, Pinned::zeroed(&setup.device, N).unwrap()).unwrap();
    assert!(sums.is_done().unwrap());
    assert_eq!(*sums.wait().unwrap(), [18.0; N]);
    assert_eq!(*written.wait().unwrap(), [7.0; N], "given back as it was");
    assert!(stream.is_idle().unwrap());
    stream.synchronize().unwrap();
    assert_eq!(stream.take_findings(), [""; 0]);
}

#[test]
fn an_event_is_a_time() {
    let setup = Setup::new();
    let stream = setup.device.stream().unwrap();
    let [start, end] = [setup.device.event().unwrap(), setup.device.event().unwrap()];
    assert!(matches!(start.elapsed(&end), Err(Error::NotRecorded)));
    assert!(start.is_passed().unwrap());
    stream.wait(&start).unwrap();
    start.record(&stream).unwrap();
    assert!(matches!(start.elapsed(&end), Err(Error::NotRecorded)));
    std::thread::sleep(Duration::from_millis(2));
    end.record(&stream).unwrap();
    assert!(start.elapsed(&end).unwrap() >= Duration::from_millis(2));
    assert_eq!(end.elapsed(&start).unwrap(), Duration::ZERO);
}

#[test]
fn a_capture_runs_nothing_and_a_graph_runs_it_all() {
    let setup = Setup::new();
    let stream = setup.device.stream().unwrap();
    let twice = DeviceBuffer::from_slice(&setup.device, &[0.0f32; N]).unwrap();
    let graph = stream
        .capture(|s| {
            setup.add(s, 1.0)?;
            setup.add(s, 2.0)?;
            s.copy(&setup.y, &twice)
        })
        .unwrap();
    assert_eq!(setup.y(), 0.0, "nothing has run");
    graph.launch(&stream).unwrap();
    setup.add(&stream, 10.0).unwrap();
    graph.launch(&stream).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(setup.y(), 16.0);
    assert_eq!(twice.to_vec().unwrap(), [16.0; N]);
}

#[test]
fn a_graph_keeps_its_memory_and_its_kernels() {
    let setup = Setup::new();
    let stream = setup.device.stream().unwrap();
    let graph = stream.capture(|s| setup.add(s, 3.0)).unwrap();
    let (device, x, y) = (setup.device.clone(), setup.x.address(), setup.y.address());
    drop(setup);
    graph.launch(&stream).unwrap();
    let mut first = [0; 4];
    device.read(y, &mut first).unwrap();
    assert_eq!(f32::from_le_bytes(first), 3.0);
    drop(graph);
    for gone in [x, y] {
        assert!(matches!(device.read(gone, &mut first), Err(Error::BadAddress { .. })));
    }
}

#[test]
fn a_failed_capture_leaves_nothing() {
    let setup = Setup::new();
    let stream = setup.device.stream().unwrap();
    let error = stream.capture(|s| {
        setup.add(s, 1.0)?;
        s.synchronize()
    });
    assert!(matches!(error, Err(Error::NotRecordable { call: "synchronize" })));
    let (device, y) = (setup.device.clone(), setup.y.address());
    drop(setup);
    assert!(matches!(device.read(y, &mut [0; 4]), Err(Error::BadAddress { .. })), "its buffers are not kept");
}

#[test]
fn what_cannot_be_captured_is_named() {
    let setup = Setup::new();
    let stream = setup.device.stream().unwrap();
    let event = setup.device.event().unwrap();
    let graph = stream.capture(|_| Ok(())).unwrap();
    graph.launch(&stream).unwrap();
    let pinned = || Pinned::<f32>::zeroed(&setup.device, N).unwrap();
    type Work<'a> = &'a dyn Fn(&Stream) -> Result<(), Error>;
    let calls: [(&str, Work<'_>); 8] = [
        ("write", &|s| s.write(pinned(), &setup.y).map(drop)),
        ("read", &|s| s.read(&setup.y, pinned()).map(drop)),
        ("wait", &|s| s.wait(&event)),
        ("record", &|s| event.record(s)),
        ("synchronize", &|s| s.synchronize()),
        ("is_idle", &|s| s.is_idle().map(drop)),
        ("capture", &|s| s.capture(|_| Ok(())).map(drop)),
        ("launch of a graph", &|s| graph.launch(s)),
    ];
    for (call, work) in calls {
        let message = stream.capture(work).unwrap_err().to_string();
        assert_eq!(
            message,
            format!("`{call}` cannot be captured: a graph holds launches and copies within the device")
        );
    }
}

#[test]
fn things_of_other_devices_are_refused() {
    let (here, there) = (Setup::new(), Setup::new());
    let [stream, other] = [here.device.stream().unwrap(), there.device.stream().unwrap()];
    let foreign = |result: Result<(), Error>, wanted: &str| {
        let message = result.unwrap_err().to_string();
        assert_eq!(message, format!("the {wanted} is not one of cpu:gfx950"));
    };
    foreign(stream.copy(&here.x, &there.y), "buffer");
    foreign(stream.copy(&there.x, &here.y), "buffer");
    foreign(there.device.event().unwrap().record(&stream), "event");
    foreign(here.device.event().unwrap().elapsed(&there.device.event().unwrap()).map(drop), "event");
    foreign(other.capture(|s| there.add(s, 1.0)).unwrap().launch(&stream), "graph");
    let message = there.add(&stream, 1.0).unwrap_err().to_string();
    assert!(message.contains("lies on another device"), "{message}");
}

#[test]
fn copies_are_of_whole_buffers() {
    let setup = Setup::new();
    let stream = setup.device.stream().unwrap();
    let short = DeviceBuffer::<f32>::uninit(&setup.device, N - 1).unwrap();
    let pinned = || Pinned::<f32>::zeroed(&setup.device, N - 1).unwrap();
    let results = [
        stream.copy(&setup.x, &short),
        stream.write(pinned(), &setup.x).map(drop),
        stream.read(&setup.x, pinned()).map(drop),
    ];
    for (result, (from, to)) in results.into_iter().zip([(N, N - 1), (N - 1, N), (N, N - 1)]) {
        let message = result.unwrap_err().to_string();
        assert_eq!(message, format!("a copy of {from} elements to {to}: both must be the same"));
    }
}

#[test]
fn pinned_memory_has_any_length() {
    let device: Arc<dyn Device> = Arc::new(Cpu::new(Target::GFX950, CpuOptions::default()));
    let stream = device.stream().unwrap();
    for n in [0, 1, 3, 5, 1000] {
        let data: Vec<u16> = (0..n).collect();
        let mut pinned = Pinned::from_slice(&device, &data).unwrap();
        assert_eq!(*pinned, data[..]);
        pinned.iter_mut().for_each(|v| *v += 1);
        let buffer = DeviceBuffer::<u16>::uninit(&device, data.len()).unwrap();
        drop(stream.write(pinned, &buffer).unwrap());
        let back = stream.read(&buffer, Pinned::zeroed(&device, data.len()).unwrap()).unwrap().wait().unwrap();
        assert!(back.iter().copied().eq(1..=n), "{n}");
    }
    assert!(matches!(Pinned::<u64>::zeroed(&device, usize::MAX / 2), Err(Error::HostMemory { .. })));
    assert!(matches!(Pinned::<u64>::zeroed(&device, usize::MAX / 16), Err(Error::HostMemory { .. })));
}

#[test]
fn what_a_kernel_needs_is_the_compiler_s_record_on_the_host() {
    let setup = Setup::new();
    let resources = setup.kernel.resources_on(&*setup.device).unwrap();
    assert_eq!(resources, LoadedResources::default(), "the interpreter has neither registers nor, here, LDS");
    assert_eq!(setup.kernel.occupancy(&*setup.device).unwrap(), None);
    assert_eq!(setup.device.resident_blocks(&setup.kernel).unwrap(), None);
    let other = Cpu::new(Target::SM_90, CpuOptions::default());
    assert!(matches!(setup.kernel.resources_on(&other), Err(Error::WrongCode { .. })));
    assert_eq!(Occupancy { blocks_per_unit: 3, units: 132 }.resident_blocks(), 396);
}

#[test]
fn a_kernel_is_called_by_its_name_and_key() {
    assert_eq!(Setup::new().kernel.label(), "`add` {n=100}");
}

#[test]
fn memory_has_as_many_owners_as_were_asked_for() {
    let setup = Setup::new();
    let (device, address) = (&setup.device, setup.x.address());
    assert_eq!(device.retain(address + 4), Some(address));
    assert_eq!(device.retain(1), None);
    device.free(address);
    assert_eq!(setup.x.to_vec().unwrap(), [1.0; N], "one owner is left");
}

#[test]
fn an_empty_grid_is_no_launch() {
    let setup = Setup::new();
    let stream = setup.device.stream().unwrap();
    let kernel = Jit::new(Interpreter).get(&Add { n: 0 }, Target::GFX950).unwrap();
    let [x, y] = [0, 0].map(|n| DeviceBuffer::<f32>::uninit(&setup.device, n).unwrap());
    kernel.launch_on::<Add>(&stream, &AddArgs { x: x.arg(), y: y.arg(), factor: 1.0 }).unwrap();
}
