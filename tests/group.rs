//! Promise: kernels on several devices that wait for each other get on, on whatever runs them; where their protocol is broken, a
//! schedule shows it, and who waits for what never comes is told.

use std::sync::Arc;

use lathe_dsl::Target;
use lathe_dsl::prelude::*;
use lathe_runtime::device::{Cpu, CpuOptions, Device, Gcn, Group, PeerRegion, PeerTable};
use lathe_runtime::interp::{Failing, explore};
use lathe_runtime::jit::Compiled;
use lathe_runtime::{DeviceBuffer, Engine, Error};

use crate::devices::{Add, AddArgs, Adder};
use crate::{filetests::machine, hip};

build_key! {
    /// Each rank stores 64 words a workgroup to the next one, raises a flag there, waits for its own and copies what it was sent.
    pub struct Ring {
        /// 0: nothing is wrong; 1: no drain before the flag; 2: rank 0 waits for another tag.
        fault: u32 = 0, range(0, 2);
    }
}

kernel_args! {
    /// Arguments of [`Ring`].
    pub struct RingArgs(key: Ring) {
        /// Addresses of the regions.
        peers: In<u64>[RANKS as u64] align 8;
        /// This rank.
        rank: Scalar<u32>;
        /// The flag's value.
        tag: Scalar<u32>;
        /// What was sent.
        out: Out<u32>[u64::from(BLOCKS * WORDS)] align 4;
    }
}

/// Ranks of a ring.
pub const RANKS: usize = 3;
const BLOCKS: u32 = 2;
/// Words of a message, as many as threads of a workgroup.
const WORDS: u32 = 64;
/// Words of a region a workgroup: the message, and the flag in a part of its own.
const SLOT: u32 = WORDS + 4;

impl Kernel for Ring {
    const NAME: &'static str = "ring";
    type Args = RingArgs;

    fn launch(&self) -> Launch {
        Launch::linear(BLOCKS, WORDS)
    }

    fn build<'k>(&self, k: &'k Builder<'k>, args: RingArgs<Dev<'k>>) {
        let shared = Memory::new().relaxed(Scope::System);
        let (block, thread) = (k.block_id(Axis::X), k.thread_id(Axis::X));
        let id = block * WORDS + thread;
        let last = args.rank.eq(RANKS as u32 - 1);
        let next: V<u32> = last.select(0u32, args.rank + 1);
        let [to, own] = [next, args.rank].map(|rank| k.load_ptr64(args.peers, rank).to_ptr::<u32>() + block * SLOT);
        k.ptr_store_with(args.rank * 1000 + args.tag * 1_000_000 + id, to + thread, shared);
        if self.fault != 1 {
            k.drain(Scope::System);
        }
        k.barrier();
        k.if_(thread.eq(0), || k.ptr_store_with(args.tag, to + WORDS, shared));
        let wanted = match self.fault {
            2 => args.rank.eq(0).select(args.tag + 7, args.tag),
            _ => args.tag,
        };
        k.while_((), |()| (k.ptr_load_with::<u32>(own + WORDS, shared).ne(wanted), ()), |()| k.s_sleep(1));
        // NVIDIA's loads of different addresses have no order without it.
        k.fence(Order::Acquire, Scope::System);
        let got = k.ptr_load_with::<u32>(own + thread, shared);
        k.buffer_store(got, args.out, id);
    }
}

type Devices = fn() -> Vec<Arc<dyn Device>>;

fn cpu(target: Target) -> Vec<Arc<dyn Device>> {
    (0..RANKS).map(|_| Arc::new(Cpu::new(target, CpuOptions::default())) as Arc<dyn Device>).collect()
}

fn gcn(targets: [Target; RANKS]) -> Vec<Arc<dyn Device>> {
    targets.map(|target| Arc::new(Gcn::new(target, None)) as Arc<dyn Device>).into()
}

/// Devices that the host is, by name.
const HOSTS: [(&str, Devices); 4] = [
    ("cpu:gfx950", || cpu(Target::GFX950)),
    ("cpu:sm_90", || cpu(Target::SM_90)),
    ("gcn:gfx1201", || gcn([Target::GFX1201; RANKS])),
    // A kernel of each chip's own.
    ("gcn", || gcn([Target::GFX950, Target::GFX942, Target::GFX950])),
];

/// The kernel for each of some devices.
fn compiled(ring: Ring, name: &str, devices: &[Arc<dyn Device>]) -> Vec<Arc<Compiled>> {
    let engine = |target: Target| {
        // A GPU's name says which one it is, not of what kind.
        let device = match name.split(':').next() {
            Some(host @ ("cpu" | "gcn")) => format!("{host}:{target}"),
            _ => name.to_owned(),
        };
        Engine::open(&device, None).expect("the device is known")
    };
    devices.iter().map(|d| engine(d.target()).jit.get(&ring, d.target()).expect("it compiles")).collect()
}

/// Runs the kernel on each device, and checks what was sent.
pub fn run(kernels: &[Arc<Compiled>], devices: &[Arc<dyn Device>], seed: Option<u64>) -> Result<(), String> {
    let bytes = u64::from(4 * SLOT * BLOCKS);
    let text = |e: Error| e.to_string();
    let regions: Vec<Arc<dyn PeerRegion>> =
        devices.iter().map(|d| d.peer_region(bytes)).collect::<Result<_, _>>().map_err(text)?;
    let tables: Vec<PeerTable> =
        devices.iter().map(|d| PeerTable::new(d, &regions)).collect::<Result<_, _>>().map_err(text)?;
    let outs: Vec<DeviceBuffer<u32>> = devices
        .iter()
        .map(|d| DeviceBuffer::uninit(d, (BLOCKS * WORDS) as usize))
        .collect::<Result<_, _>>()
        .map_err(text)?;
    let arguments =
        |rank: usize| RingArgs { peers: tables[rank].arg(), rank: rank as u32, tag: 5, out: outs[rank].arg() };
    let arguments: Vec<_> = (0..devices.len()).map(arguments).collect();
    let mut group = seed.map_or_else(Group::new, Group::seeded);
    for ((device, kernel), arguments) in devices.iter().zip(kernels).zip(&arguments) {
        let rank = group.rank(device);
        group.launch::<Ring>(rank, kernel, arguments).map_err(text)?;
    }
    let reports = group.run().map_err(text)?;
    assert_eq!(reports.iter().map(Vec::len).collect::<Vec<_>>(), [1; RANKS]);
    if let Some(finding) = reports.iter().flatten().find_map(|r| r.findings.first()) {
        return Err(finding.clone());
    }
    for (rank, out) in outs.iter().enumerate() {
        let from = (rank + RANKS - 1) % RANKS;
        let due = |id: u32| from as u32 * 1000 + 5_000_000 + id;
        let got = out.to_vec().map_err(text)?;
        if let Some((id, word)) = (0..).zip(got).find(|(id, word)| due(*id) != *word) {
            return Err(format!("rank {rank}: word {id} is {word}"));
        }
    }
    Ok(())
}

fn explored((name, devices): (&str, Devices), ring: Ring, seeds: u64) -> Result<(), Failing<String>> {
    let kernels = compiled(ring, name, &devices());
    let failing = explore(0..seeds, |seed| run(&kernels, &devices(), Some(seed)));
    if let Err(Failing { seed, error }) = &failing {
        println!("{name}: {error} (seed {seed})");
        assert_eq!(run(&kernels, &devices(), Some(*seed)).as_ref(), Err(error), "{name}: the seed says it all");
    }
    failing
}

#[test]
fn ranks_that_wait_for_each_other_get_on() {
    for (name, devices) in HOSTS {
        let kernels = compiled(Ring { fault: 0 }, name, &devices());
        run(&kernels, &devices(), None).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
}

#[test]
fn a_right_protocol_is_right_whatever_the_schedule() {
    for host in HOSTS {
        let seeds = if host.0.starts_with("cpu") { 1000 } else { 100 };
        explored(host, Ring { fault: 0 }, seeds).unwrap_or_else(|e| panic!("{}: {e}", host.0));
    }
}

#[test]
fn a_missing_drain_is_found() {
    for host in HOSTS {
        let ring = Ring { fault: 1 };
        if host.0 == "gcn:gfx1201" {
            // Its barriers wait for stores themselves.
            explored(host, ring, 100).unwrap_or_else(|e| panic!("{}: {e}", host.0));
            continue;
        }
        let failing = explored(host, ring, 1000).expect_err(host.0);
        assert!(failing.error.contains(" is 0"), "{failing}");
    }
}

#[test]
fn who_waits_for_what_never_comes_is_told() {
    for (name, devices) in HOSTS {
        let kernels = compiled(Ring { fault: 2 }, name, &devices());
        for seed in [None, Some(1), Some(2)] {
            let error = run(&kernels, &devices(), seed).expect_err(name);
            assert!(error.starts_with("rank 0: "), "{name}: {error}");
            assert!(error.contains("tests/group.rs:") && error.contains("endless wait for "), "{name}: {error}");
            assert!(error.contains("rank 0, "), "{name}: {error}");
        }
    }
}

#[test]
fn gpus_run_each_rank_on_a_stream_of_its_own() {
    if let Err(reason) = machine::gpu() {
        println!("skipped: {reason}");
        return;
    }
    let engine = Engine::open("cuda:0", None).expect("there is a GPU");
    let devices = vec![engine.device.clone(); RANKS];
    let kernels = compiled(Ring { fault: 0 }, "cuda", &devices);
    for _ in 0..100 {
        run(&kernels, &devices, None).expect("it gets on");
    }
}

/// The stand-in's GPU, open twice: it has room for 32 workgroups of 256 threads.
#[test]
fn ranks_that_share_a_gpu_share_its_room() {
    let run = |sizes: &[&[usize]]| {
        let adders: Vec<Vec<Adder>> = sizes
            .iter()
            .map(|rank| {
                let engine = hip::engine(0);
                rank.iter().map(|blocks| Adder::new(&engine, 256 * blocks)).collect()
            })
            .collect();
        let mut group = Group::new();
        for rank in &adders {
            let number = group.rank(&rank[0].device);
            for adder in rank {
                let args = AddArgs { x: adder.x.arg(), y: adder.y.arg(), factor: 2.0 };
                group.launch::<Add>(number, &adder.kernel, &args).expect("it is one of this device");
            }
        }
        let done = group.run();
        let wanted = if done.is_ok() { 2.0 } else { 0.0 };
        assert!(adders.iter().flatten().all(|adder| adder.y() == wanted), "{sizes:?}");
        done.map(|reports| reports.iter().map(Vec::len).collect::<Vec<_>>()).map_err(|e| e.to_string())
    };
    assert_eq!(run(&[&[16], &[16]]), Ok(vec![1, 1]));
    assert_eq!(run(&[&[16, 2], &[1, 16]]), Ok(vec![2, 2]));
    let refused = |rank: usize, blocks: usize| {
        Err(format!("rank {rank}: `add` has {blocks} workgroups that must be on hip:0 at once, which has room for 32"))
    };
    assert_eq!(run(&[&[16], &[17]]), refused(1, 33));
    assert_eq!(run(&[&[2, 30], &[1, 2], &[3]]), refused(2, 35));
    assert_eq!(run(&[&[33]]), refused(0, 33));
}

#[test]
fn a_group_is_of_one_kind() {
    let hip = hip::engine(0);
    let devices = [cpu(Target::GFX950)[0].clone(), gcn([Target::GFX950; RANKS])[0].clone(), hip.device.clone()];
    let mut group = Group::new();
    devices.iter().for_each(|device| {
        group.rank(device);
    });
    let error = group.run().expect_err("they cannot run together").to_string();
    assert!(error.starts_with("a group runs on devices of one kind, not on cpu:gfx950, gcn:gfx950, "), "{error}");
}
