//! Promise: memory of one device is reached by kernels of others through tables of addresses, in this process and from others, and stays
//! for as long as anything has it open.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use lathe_dsl::prelude::*;
use lathe_runtime::device::{Cuda, Device, Hip, PeerHandle, PeerHandleError, PeerRegion, PeerTable, Stream};
use lathe_runtime::jit::{Compiled, Llvm};
use lathe_runtime::{DeviceBuffer, Engine, Error, drivers};

use crate::filetests::machine;
use crate::hip;

build_key! {
    /// `peers[to][i] = peers[from][i] + add`
    pub struct Relay {
        /// Words.
        n: u32 = 256, range(1, 1 << 20);
    }
}

kernel_args! {
    /// Arguments of [`Relay`].
    pub struct RelayArgs(key: Relay) {
        /// Addresses of the regions.
        peers: In<u64>[4] align 8;
        /// Whose is read.
        from: Scalar<u32>;
        /// Whose is written.
        to: Scalar<u32>;
        /// Added.
        add: Scalar<u32>;
        /// As many as the key says.
        words: Scalar<u32>;
    }
}

impl Kernel for Relay {
    const NAME: &'static str = "relay";
    type Args = RelayArgs;

    fn launch(&self) -> Launch {
        Launch::linear(self.n.div_ceil(64), 64)
    }

    fn build<'k>(&self, k: &'k Builder<'k>, args: RelayArgs<Dev<'k>>) {
        let i = k.block_id(Axis::X) * 64 + k.thread_id(Axis::X);
        let [from, to] = [args.from, args.to].map(|rank| k.load_ptr64(args.peers, rank).to_ptr::<u32>());
        k.if_(i.lt(args.words), || {
            let value = k.ptr_load::<u32>(from + i);
            k.ptr_store(value + args.add, to + i);
        });
    }
}

/// Regions of a [`Relay`]'s table.
const RANKS: usize = 4;
/// Words that it copies.
const WORDS: usize = 300;

/// Kernels on one device, and its part of a set of peers.
struct Peer {
    device: Arc<dyn Device>,
    relay: Arc<Compiled>,
    region: Arc<dyn PeerRegion>,
}

impl Peer {
    fn new(engine: &Engine) -> Self {
        let device = engine.device.clone();
        let relay = engine.jit.get(&Relay { n: WORDS as u32 }, device.target()).expect("it compiles");
        let region = device.peer_region(4 * WORDS as u64).expect("there is room");
        Self { device, relay, region }
    }

    fn relay(&self, stream: &Stream, table: &PeerTable, from: usize, to: usize, add: u32) -> Result<(), Error> {
        let (from, to, words) = (from as u32, to as u32, WORDS as u32);
        self.relay.launch_on::<Relay>(stream, &RelayArgs { peers: table.arg(), from, to, add, words })
    }

    /// The first words of its region.
    fn words(&self) -> Vec<u32> {
        words(&*self.device, self.region.address())
    }
}

fn words(device: &dyn Device, address: u64) -> Vec<u32> {
    let mut bytes = vec![0; 4 * WORDS];
    device.read(address, &mut bytes).expect("it is read");
    bytes.chunks(4).map(|word| u32::from_le_bytes(std::array::from_fn(|i| word[i]))).collect()
}

/// A table as long as the kernel wants it: the regions in turn.
fn table(device: &Arc<dyn Device>, regions: &[Arc<dyn PeerRegion>]) -> Result<PeerTable, Error> {
    let regions: Vec<_> = (0..RANKS).map(|rank| regions[rank % regions.len()].clone()).collect();
    PeerTable::new(device, &regions)
}

/// GPUs that reach each other: two, or twice the same one.
fn cuda() -> Option<[Engine; 2]> {
    if let Err(reason) = machine::gpu() {
        println!("cuda skipped: {reason}");
        return None;
    }
    let second = 1.min(Cuda::count() - 1);
    println!("cuda:0 and cuda:{second}");
    Some([gpu(0), gpu(second)])
}

fn gpu(number: u32) -> Engine {
    Engine::new(Cuda::new(number).expect("it is counted"), Llvm::default())
}

/// Pairs of devices that reach each other's memory, of every kind that this machine has.
fn pairs() -> Vec<[Engine; 2]> {
    let open = |name: &str| Engine::open(name, None).expect("it runs anywhere");
    let mut all = vec![
        [open("cpu"), open("cpu:sm_90")],
        [open("gcn:gfx950"), open("gcn:gfx942")],
        [hip::engine(0), hip::engine(1)],
    ];
    all.extend(cuda());
    all
}

#[test]
fn a_region_is_reached_through_a_table_both_ways() {
    for engines in pairs() {
        let peers = engines.each_ref().map(Peer::new);
        let name = peers[0].device.name();
        for peer in &peers {
            assert_eq!(peer.words(), [0; WORDS], "{name}: zero at first");
            assert_eq!((peer.region.device(), peer.region.owner()), (peer.device.id(), peer.device.name()));
            assert_eq!((peer.region.bytes(), peer.region.address() % 256), (4 * WORDS as u64, 0));
        }
        let regions = peers.each_ref().map(|p| p.region.clone());
        let tables = peers.each_ref().map(|p| table(&p.device, &regions).expect("they are opened"));
        let streams = peers.each_ref().map(|p| p.device.stream().expect("a stream"));
        let start: Vec<u8> = (0..WORDS as u32).flat_map(u32::to_le_bytes).collect();
        peers[0].device.write(regions[0].address(), &start).expect("a region is memory of its device");
        // Stores to the peer's, then loads from it, by each in turn.
        for (step, (device, from, to)) in [(0, 0, 1), (0, 1, 0), (1, 0, 1), (1, 1, 0)].into_iter().enumerate() {
            peers[device].relay(&streams[device], &tables[device], from, to, 10).expect("it is launched");
            streams[device].synchronize().expect("it is done");
            let wanted: Vec<u32> = (0..WORDS as u32).map(|i| i + 10 * (step as u32 + 1)).collect();
            assert_eq!(peers[to].words(), wanted, "{name}: step {step}");
            // The host reads what a device has opened, too.
            let opened = tables[1 - to].regions()[to].address();
            assert_eq!(words(&*peers[1 - to].device, opened), wanted, "{name}: step {step}");
        }
    }
}

#[test]
fn a_region_stays_for_as_long_as_it_is_open() {
    for engines in pairs() {
        let [a, b] = engines.each_ref().map(Peer::new);
        let (device, name, stream) = (&a.device, a.device.name(), a.device.stream().expect("a stream"));
        let own = table(device, std::slice::from_ref(&a.region)).expect("its own, too");
        let both = table(device, &[a.region.clone(), b.region.clone()]).expect("they are opened");
        let (mine, theirs) = (a.region.address(), b.region.address());
        let (Peer { device: other, region, .. }, mut byte) = (b, [7; 1]);
        other.write(theirs, &byte).expect("it is there");
        other.free(theirs);
        drop(region);
        a.relay(&stream, &both, 1, 0, 1).expect("it is launched");
        // Waits for the launch, which is the last that reaches the other's region.
        drop(both);
        assert!(stream.is_idle().expect("it can be asked"), "{name}");
        assert_eq!(a.words()[0], 8, "{name}");
        let gone = |result: Result<(), Error>| assert!(matches!(result, Err(Error::BadAddress { .. })), "{name}");
        gone(other.read(theirs, &mut byte));
        if theirs != mine {
            gone(device.read(theirs, &mut byte));
        }
        drop(own);
        a.device.read(mine, &mut byte).expect("it is still the owner's");
        drop(a.region);
        gone(device.read(mine, &mut byte));
    }
}

#[test]
fn memory_that_was_not_opened_is_not_reached() {
    // A device each time: a GPU may be unusable afterwards.
    let pairs = [
        ["cpu", "cpu:sm_90"].map(|name| Engine::open(name, None).expect("it runs anywhere")),
        ["gcn:gfx950", "gcn:gfx942"].map(|name| Engine::open(name, None).expect("it runs anywhere")),
    ];
    for engines in pairs {
        let [a, b] = engines.each_ref().map(Peer::new);
        let own = table(&a.device, std::slice::from_ref(&a.region)).expect("it is opened");
        // The address alone, as whoever forgets to open it has it.
        let rows = [a.region.address(), b.region.address(), 0, 0];
        let forged = DeviceBuffer::from_slice(&a.device, &rows).expect("there is room");
        let args = RelayArgs { peers: forged.arg(), from: 1, to: 0, add: 0, words: WORDS as u32 };
        let error = a.relay.launch::<Relay>(&*a.device, &args).map(drop).expect_err("it was not opened").to_string();
        assert!(error.contains("peers.rs") && error.contains(&format!("{:x}", rows[1])), "{error}");
        drop(own);
    }
}

#[test]
fn devices_that_do_not_reach_each_other_are_named() {
    let open = |name: &str| Engine::open(name, None).expect("it runs anywhere").device;
    let (cpu, gcn, mi300x, apart) = (open("cpu"), open("gcn:gfx950"), hip::engine(0).device, hip::engine(3).device);
    let region = |device: &Arc<dyn Device>| device.peer_region(16).expect("there is room");
    let refused = |device: &Arc<dyn Device>, region: &Arc<dyn PeerRegion>| {
        let error = device.open_region(region).map(drop).expect_err("no way");
        assert!(matches!(error, Error::NoPeer { .. }), "{error}");
        error.to_string()
    };
    let drivers = "they have different drivers";
    assert_eq!(refused(&gcn, &region(&cpu)), format!("gcn:gfx950 does not reach memory of {}: {drivers}", cpu.name()));
    assert_eq!(refused(&cpu, &region(&mi300x)), format!("{} does not reach memory of hip:0: {drivers}", cpu.name()));
    assert_eq!(refused(&mi300x, &region(&gcn)), format!("hip:0 does not reach memory of gcn:gfx950: {drivers}"));
    let way = "there is no way between the two GPUs, says hipDeviceCanAccessPeer";
    assert_eq!(refused(&apart, &region(&mi300x)), format!("hip:3 does not reach memory of hip:0: {way}"));
    assert_eq!(refused(&mi300x, &region(&apart)), format!("hip:0 does not reach memory of hip:3: {way}"));
    assert!(PeerTable::new(&mi300x, &[region(&mi300x), region(&apart)]).is_err());
    assert!(matches!(cpu.peer_region(1 << 60), Err(Error::OutOfMemory { .. })));
    assert!(matches!(gcn.peer_region(1 << 60), Err(Error::OutOfMemory { .. })));
    assert!(matches!(mi300x.peer_region(1 << 62), Err(Error::OutOfMemory { .. })));
    for device in [&cpu, &gcn, &mi300x] {
        region(device);
        device.peer_region(0).and_then(|r| device.open_region(&r)).expect("an empty one is one as well");
    }
}

#[test]
fn gpus_that_do_not_reach_each_other_are_named() {
    let Some([first, _]) = cuda() else { return };
    let region = first.device.peer_region(16).expect("there is room");
    let refusal = |i: u32| match gpu(i).device.open_region(&region) {
        Ok(_) => None,
        Err(error) => {
            let start = format!("cuda:{i} does not reach memory of cuda:0: ");
            assert!(matches!(error, Error::NoPeer { .. }) && error.to_string().starts_with(&start), "{error}");
            Some(i)
        }
    };
    let refused: Vec<u32> = (0..Cuda::count()).filter_map(refusal).collect();
    println!("of {} GPUs, these do not reach the first one's memory: {refused:?}", Cuda::count());
    if drivers::cuda().is_ok_and(|driver| driver.devices[0].name == "Stand-in") {
        assert_eq!(refused, [2]);
    }
}

#[test]
fn a_handle_is_for_other_processes_of_the_same_driver() {
    let open = |name: &str| Engine::open(name, None).expect("it runs anywhere").device;
    for device in [open("cpu"), open("gcn:gfx950")] {
        let error = device.peer_region(16).and_then(|r| r.export()).expect_err("it has none").to_string();
        let wanted = format!("{} does not reach memory of other processes: it runs within its process", device.name());
        assert_eq!(error, wanted);
    }
    let mut exported = vec![hip::engine(1).device];
    exported.extend(cuda().map(|[first, _]| first.device));
    for device in exported {
        let region = device.peer_region(100).expect("there is room");
        let bytes = region.export().expect("it has one").to_bytes();
        let handle = PeerHandle::from_bytes(&bytes).expect("it is whole");
        let owner = format!("{} of process {}", device.name(), std::process::id());
        assert_eq!((handle.region_bytes(), handle.owner()), (100, owner.clone()));
        let error = device.import_region(&handle).expect_err("its own").to_string();
        let reason = "the handle was made by this process: open the region itself";
        assert_eq!(error, format!("{} does not reach memory of {owner}: {reason}", device.name()));
        let mut damaged = bytes;
        damaged[20] ^= 4;
        let error = PeerHandle::from_bytes(&damaged).map_err(Error::from).expect_err("a bit is flipped");
        assert!(matches!(error, Error::PeerHandle(PeerHandleError::Damaged)));
    }
}

/// What the other process of a test is given: a device's name, what to do, and a handle in hexadecimal digits.
const OTHER: &str = "LATHE_TEST_OTHER_PROCESS";
/// Where it finds the stand-in for HIP.
const LIBRARY: &str = "LATHE_TEST_HIP_LIBRARY";

/// Starts this test's program again, as the other process.
fn other_process(device: &str, what: &str, handle: &[u8], library: &Path) {
    let digits: String = handle.iter().map(|byte| format!("{byte:02x}")).collect();
    let exe = std::env::current_exe().expect("this test's path");
    let args = ["--exact", "peers::other", "--ignored", "--nocapture", "--test-threads=1"];
    let output = Command::new(exe)
        .args(args)
        .env(OTHER, format!("{device} {what} {digits}"))
        .env(LIBRARY, library)
        .output()
        .expect("it starts");
    let (text, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && text.contains("the other process is done"), "{device}, {what}: {text}{error}");
}

#[test]
#[ignore = "the other process of tests here"]
fn other() {
    let Ok(given) = std::env::var(OTHER) else { return };
    let [name, what, digits]: [&str; 3] =
        given.split(' ').collect::<Vec<_>>().try_into().expect("device, what to do, handle");
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).expect("two digits");
    let handle: Vec<u8> = (0..digits.len()).step_by(2).map(byte).collect();
    let handle = PeerHandle::from_bytes(&handle).expect("it is whole");
    let number = name.split_once(':').and_then(|(_, n)| n.parse().ok()).expect("a number");
    let engine = if name.starts_with("hip") {
        let library = std::env::var_os(LIBRARY).expect("a path");
        Engine::new(Hip::with_library(number, Path::new(&library)).expect("it opens"), Llvm::default())
    } else {
        gpu(number)
    };
    let peer = Peer::new(&engine);
    if what == "larger" {
        let error = peer.device.import_region(&handle).expect_err("it has not so many bytes");
        println!("{error}");
        assert!(matches!(error, Error::NoPeer { .. }), "{error}");
        let said = format!(
            "{name} does not reach memory of {}: the handle is of {LARGER} bytes, but what was opened at 0x",
            handle.owner()
        );
        assert!(error.to_string().starts_with(&said), "{error}");
    } else if what == "gone" {
        let error = peer.device.import_region(&handle).expect_err("its owner has freed it").to_string();
        println!("{error}");
        assert!(error.starts_with(&format!("{name}: cuIpcOpenMemHandle of memory of {}: ", handle.owner())), "{error}");
    } else {
        let theirs = peer.device.import_region(&handle).expect("the other process has it");
        assert_eq!((theirs.owner(), theirs.bytes()), (handle.owner(), handle.region_bytes()));
        assert!(matches!(theirs.export(), Err(Error::NoPeer { .. })), "it is not its own");
        let table = table(&peer.device, &[peer.region.clone(), theirs.clone()]).expect("both are open");
        // Once more, for as long as this lives.
        let again = peer.device.import_region(&handle).expect("the other process has it");
        drop(again);
        let stream = peer.device.stream().expect("a stream");
        // Loads what is there, and stores it with something added.
        peer.relay(&stream, &table, 1, 0, 1).expect("it is launched");
        peer.relay(&stream, &table, 0, 1, 1).expect("it is launched");
        drop((table, theirs));
        assert!(stream.is_idle().expect("it can be asked"), "closing waits");
        let first: u32 = what.parse().expect("the first word that is there");
        assert_eq!(peer.words(), (0..WORDS as u32).map(|i| first + i + 1).collect::<Vec<_>>());
    }
    println!("the other process is done");
}

/// More than any region here has.
const LARGER: u64 = 1 << 32;

/// The handle of a region, but for [`LARGER`] bytes, with the checksum that belongs to it.
fn larger(handle: &[u8]) -> Vec<u8> {
    // The size follows the words that every handle begins with, the version, the driver and its own handle.
    const AT: usize = 8 + 2 + 1 + 64;
    let mut forged = handle.to_vec();
    forged[AT..AT + 8].copy_from_slice(&LARGER.to_le_bytes());
    let end = forged.len() - 16;
    let sum = blake3::hash(&forged[..end]);
    forged[end..].copy_from_slice(&sum.as_bytes()[..16]);
    assert_eq!(PeerHandle::from_bytes(&forged).expect("it is whole").region_bytes(), LARGER);
    forged
}

#[test]
fn another_process_loads_and_stores() {
    let Some(engines) = cuda() else { return };
    let peer = Peer::new(&engines[0]);
    let handle = peer.region.export().expect("the driver has handles").to_bytes();
    for (round, engine) in engines.iter().enumerate() {
        let first = 1000 * (round as u32 + 1);
        let start: Vec<u8> = (0..WORDS as u32).flat_map(|i| (first + i).to_le_bytes()).collect();
        peer.device.write(peer.region.address(), &start).expect("it is written");
        other_process(&engine.device.name(), &first.to_string(), &handle, Path::new(""));
        assert_eq!(peer.words(), (0..WORDS as u32).map(|i| first + i + 2).collect::<Vec<_>>());
    }
    other_process("cuda:0", "larger", &larger(&handle), Path::new(""));
    drop(peer);
    other_process("cuda:0", "gone", &handle, Path::new(""));
}

/// The stand-in gives the other process memory of its own: what is seen is that it is opened, used and closed as it should be.
#[test]
fn another_process_opens_and_closes_a_hip_handle() {
    let device = hip::engine(2).device;
    let region = device.peer_region(4 * WORDS as u64).expect("there is room");
    let handle = region.export().expect("it has one").to_bytes();
    other_process("hip:1", "0", &handle, &hip::LIBRARY);
    other_process("hip:1", "larger", &larger(&handle), &hip::LIBRARY);
}

build_key! {
    /// Every workgroup stores its own row of the region of one peer, each thread a value of every width.
    pub struct Scatter {
        /// Peers.
        ranks: u32 = 2, range(1, 8);
    }
}

kernel_args! {
    /// Arguments of [`Scatter`].
    pub struct ScatterArgs(key: Scatter) {
        /// Addresses of the regions.
        peers: In<u64>[u64::from(key.ranks)] align 8;
        /// Whose kernel it is.
        rank: Scalar<u32>;
        /// Makes the values of one launch others than those of the next.
        round: Scalar<u32>;
    }
}

build_key! {
    /// Every workgroup loads the row that this rank stored to one peer, and writes down what it sees.
    pub struct Gather {
        /// Peers.
        ranks: u32 = 2, range(1, 8);
    }
}

kernel_args! {
    /// Arguments of [`Gather`].
    pub struct GatherArgs(key: Gather) {
        /// Addresses of the regions.
        peers: In<u64>[u64::from(key.ranks)] align 8;
        /// Rows, as they lie in the regions, but for single bytes, which are words here.
        seen: Out<u32>[u64::from(key.ranks * 8 * THREADS)] align 4;
        /// Whose row.
        rank: Scalar<u32>;
    }
}

/// Threads of a workgroup.
const THREADS: u32 = 64;
/// Bytes of a row: for each width, a value a thread.
const ROW: u32 = (16 + 8 + 4 + 1) * THREADS;

/// Where a row's values of each width begin.
struct Row<'k> {
    wide: V<'k, GlobalPtr<u32>>,
    pair: V<'k, GlobalPtr<u64>>,
    word: V<'k, GlobalPtr<u32>>,
    byte: V<'k, GlobalPtr<u8>>,
}

impl<'k> Row<'k> {
    /// The row of `rank` in the region that the workgroup is for, at this thread's values.
    fn new(k: &'k Builder<'k>, peers: Buffer<'k, u64, In>, rank: V<'k, u32>) -> Self {
        let t = k.thread_id(Axis::X);
        let row = k.load_ptr64(peers, k.block_id(Axis::X)) + (rank * ROW).to::<u64>();
        let at = |offset: u32| row + u64::from(offset * THREADS);
        Self {
            wide: at(0).to_ptr::<u32>() + t * 4,
            pair: at(16).to_ptr::<u64>() + t,
            word: at(24).to_ptr::<u32>() + t,
            byte: at(28).to_ptr::<u8>() + t,
        }
    }
}

impl Kernel for Scatter {
    const NAME: &'static str = "scatter";
    type Args = ScatterArgs;

    fn launch(&self) -> Launch {
        Launch::linear(self.ranks, THREADS)
    }

    fn build<'k>(&self, k: &'k Builder<'k>, args: ScatterArgs<Dev<'k>>) {
        let row = Row::new(k, args.peers, args.rank);
        let seed = args.round * 1_000_003 + args.rank * 10_007 + k.block_id(Axis::X) * 101 + k.thread_id(Axis::X);
        let value = |i: u32| seed * 0x9E37_79B9 + i;
        k.ptr_store_with(k.vector([0, 1, 2, 3].map(value)), row.wide, Memory::new().align(16));
        k.ptr_store(value(4).to::<u64>() << 32 | value(5).to::<u64>(), row.pair);
        k.ptr_store(value(6), row.word);
        k.ptr_store(value(7).to::<u8>(), row.byte);
    }
}

impl Kernel for Gather {
    const NAME: &'static str = "gather";
    type Args = GatherArgs;

    fn launch(&self) -> Launch {
        Launch::linear(self.ranks, THREADS)
    }

    fn build<'k>(&self, k: &'k Builder<'k>, args: GatherArgs<Dev<'k>>) {
        let row = Row::new(k, args.peers, args.rank);
        let [a, b, c, d] = k.ptr_load_with::<Vector<u32, 4>>(row.wide, Memory::new().align(16)).elements();
        let pair = k.ptr_load::<u64>(row.pair);
        let (word, byte) = (k.ptr_load::<u32>(row.word), k.ptr_load::<u8>(row.byte));
        let at = (k.block_id(Axis::X) * THREADS + k.thread_id(Axis::X)) * 8;
        let seen = [a, b, c, d, (pair >> 32).to::<u32>(), pair.to::<u32>(), word, byte.to::<u32>()];
        seen.into_iter().enumerate().for_each(|(i, value)| k.buffer_store(value, args.seen, at + i as u32));
    }
}

/// What [`Gather`] sees of a thread's values.
fn scattered(round: u32, rank: u32, peer: u32, thread: u32) -> [u32; 8] {
    let seed = round.wrapping_mul(1_000_003).wrapping_add(rank * 10_007 + peer * 101 + thread);
    std::array::from_fn(|i| {
        let value = seed.wrapping_mul(0x9E37_79B9).wrapping_add(i as u32);
        if i == 7 { value & 0xff } else { value }
    })
}

/// All of them store to all, then all load from all.
fn every_width(engines: &[Engine]) {
    let devices: Vec<_> = engines.iter().map(|engine| engine.device.clone()).collect();
    let ranks = devices.len() as u32;
    let regions: Vec<_> =
        devices.iter().map(|d| d.peer_region(u64::from(ranks * ROW)).expect("there is room")).collect();
    let compiled = |rank: usize| {
        let (jit, target) = (&engines[rank].jit, devices[rank].target());
        let [scatter, gather] = [jit.get(&Scatter { ranks }, target), jit.get(&Gather { ranks }, target)];
        (scatter.expect("it compiles"), gather.expect("it compiles"))
    };
    let kernels: Vec<_> = (0..devices.len()).map(compiled).collect();
    let tables: Vec<_> = devices.iter().map(|d| PeerTable::new(d, &regions).expect("they are opened")).collect();
    for round in 0..3 {
        for (rank, (device, table)) in devices.iter().zip(&tables).enumerate() {
            let args = ScatterArgs { peers: table.arg(), rank: rank as u32, round };
            kernels[rank].0.launch::<Scatter>(&**device, &args).expect("it runs");
        }
        for (rank, (device, table)) in devices.iter().zip(&tables).enumerate() {
            let seen = DeviceBuffer::<u32>::uninit(device, (ranks * 8 * THREADS) as usize).expect("there is room");
            // The row of another rank than this one.
            let row = (rank as u32 + round) % ranks;
            let args = GatherArgs { peers: table.arg(), seen: seen.arg(), rank: row };
            kernels[rank].1.launch::<Gather>(&**device, &args).expect("it runs");
            let seen = seen.to_vec().expect("it is read");
            for (i, seen) in seen.chunks(8).enumerate() {
                let (peer, thread) = (i as u32 / THREADS, i as u32 % THREADS);
                let wanted = scattered(round, row, peer, thread);
                assert_eq!(seen, wanted, "{}, row {row}, peer {peer}, thread {thread}", device.name());
            }
        }
    }
}

#[test]
fn values_of_every_width_arrive() {
    let open = |name: &str| Engine::open(name, None).expect("it runs anywhere");
    every_width(&["cpu", "cpu:gfx942", "cpu:sm_90"].map(open));
    every_width(&["gcn:gfx950", "gcn:gfx942", "gcn:gfx1201"].map(open));
    every_width(&[0, 1, 2].map(hip::engine));
}

#[test]
fn values_of_every_width_arrive_at_a_gpu() {
    let Some(pair) = cuda() else { return };
    every_width(&pair);
    let all: Vec<Engine> = (0..Cuda::count().min(8)).map(gpu).collect();
    println!("{} GPUs", all.len());
    every_width(&all);
}

build_key! {
    /// Two ranks that send each other messages, each as soon as it has the other's.
    pub struct Ping {
        /// Messages.
        rounds: u32 = 1000, range(1, 1 << 20);
    }
}

kernel_args! {
    /// Arguments of [`Ping`].
    pub struct PingArgs(key: Ping) {
        /// Addresses of the regions.
        peers: In<u64>[2] align 8;
        /// For each thread: values that were wrong, and waits that were given up.
        wrong: Out<u32>[u64::from(2 * THREADS)] align 4;
        /// Whose kernel it is.
        rank: Scalar<u32>;
    }
}

/// Where a region has pairs of value and tag, 16 bytes a thread, both in turn twice, and the flag.
const PAIRS: u64 = 0;
const DATA: u64 = PAIRS + 2 * 8 * THREADS as u64;
const FLAG: u64 = DATA + 2 * 16 * THREADS as u64;
const PING_BYTES: u64 = FLAG + 4;
/// Looks at a message that has not come, after which a thread gives up.
const LOOKS: u32 = 1 << 22;

impl Kernel for Ping {
    const NAME: &'static str = "ping";
    type Args = PingArgs;

    fn launch(&self) -> Launch {
        Launch::linear(1, THREADS)
    }

    fn build<'k>(&self, k: &'k Builder<'k>, args: PingArgs<Dev<'k>>) {
        let t = k.thread_id(Axis::X);
        let system = Memory::new().relaxed(Scope::System);
        let other = 1 - args.rank;
        let (own, theirs) = (k.load_ptr64(args.peers, args.rank), k.load_ptr64(args.peers, other));
        let value = |round: V<'k, u32>, rank: V<'k, u32>| (round * 2 + rank) * 0x9E37_79B9 + t;
        let zero = k.constant(0u32);
        let init = vec![zero, zero];
        let counts = k.for_range(1u32, self.rounds + 1, 1, init, |round, counts| {
            let parity = (round & 1).to::<u64>();
            let pair = |region: V<'k, u64>| (region + parity * (8 * u64::from(THREADS)) + PAIRS).to_ptr::<u64>() + t;
            let data =
                |region: V<'k, u64>| (region + parity * (16 * u64::from(THREADS)) + DATA).to_ptr::<u32>() + t * 4;
            let flag = |region: V<'k, u64>| (region + FLAG).to_ptr::<u32>();

            // A message that is its own sign of arrival, and one that a flag tells of once it is out.
            let mine = value(round, args.rank);
            k.ptr_store_with(round.to::<u64>() << 32 | mine.to::<u64>(), pair(theirs), system);
            k.ptr_store_with(k.filled::<u32, 4>(mine), data(theirs), Memory::new().align(16));
            k.drain(Scope::System);
            k.barrier();
            k.if_(t.eq(0), || k.ptr_store_with(round, flag(theirs), system));

            let due = value(round, other);
            let (tagged, looks) = k.while_(
                (k.constant(0u64), zero),
                |(_, looks)| {
                    let seen = k.ptr_load_with::<u64>(pair(own), system);
                    ((seen >> 32).to::<u32>().ne(round) & looks.lt(LOOKS), (seen, looks))
                },
                |(seen, looks)| (seen, looks + 1),
            );
            let (_, more) = k.while_(
                (zero, zero),
                |(_, looks)| {
                    let seen = k.ptr_load_with::<u32>(flag(own), Memory::new().acquire(Scope::System));
                    (seen.lt(round) & looks.lt(LOOKS), (seen, looks))
                },
                |(seen, looks)| (seen, looks + 1),
            );
            let wide = k.ptr_load_with::<Vector<u32, 4>>(data(own), Memory::new().align(16)).elements();
            let one = |wrong: V<'k, bool>| wrong.select(k.constant(1u32), zero);
            let wrong = wide.into_iter().fold(one(tagged.to::<u32>().ne(due)), |n, v| n + one(v.ne(due)));
            let late = one(looks.ge(LOOKS)) + one(more.ge(LOOKS));
            // All have read before the next message but one takes the place of this one.
            k.fence(Order::AcqRel, Scope::System);
            k.barrier();
            vec![counts[0] + wrong, counts[1] + late]
        });
        k.buffer_store(counts[0], args.wrong, t * 2);
        k.buffer_store(counts[1], args.wrong, t * 2 + 1);
    }
}

#[test]
fn messages_of_running_kernels_arrive_whole_and_in_order() {
    const ROUNDS: u32 = 20_000;
    let Some(engines) = cuda() else { return };
    let kernels =
        engines.each_ref().map(|e| e.jit.get(&Ping { rounds: ROUNDS }, e.device.target()).expect("it compiles"));
    let devices = engines.map(|engine| engine.device);
    let regions = devices.each_ref().map(|d| d.peer_region(PING_BYTES).expect("there is room"));
    let tables = devices.each_ref().map(|d| PeerTable::new(d, &regions).expect("they are opened"));
    let streams = devices.each_ref().map(|d| d.stream().expect("a stream"));
    let wrong = devices.each_ref().map(|d| DeviceBuffer::from_slice(d, &[1u32; 2 * THREADS as usize]).expect("room"));
    // Loaded first: loading may wait for what runs.
    for (kernel, device) in kernels.iter().zip(&devices) {
        kernel.resources_on(&**device).expect("it loads");
    }
    let start = std::time::Instant::now();
    for rank in 0..2 {
        let args = PingArgs { peers: tables[rank].arg(), wrong: wrong[rank].arg(), rank: rank as u32 };
        kernels[rank].launch_on::<Ping>(&streams[rank], &args).expect("it is launched");
    }
    streams.iter().for_each(|stream| stream.synchronize().expect("it is done"));
    println!("{:.2} µs a round", start.elapsed().as_secs_f64() * 1e6 / f64::from(ROUNDS));
    for (rank, wrong) in wrong.iter().enumerate() {
        let wrong = wrong.to_vec().expect("it is read");
        assert_eq!(wrong, [0; 2 * THREADS as usize], "rank {rank}: wrong values, waits given up");
    }
}
