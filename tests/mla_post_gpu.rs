//! Promise: ranks of `mla_post` on NVIDIA GPUs give the same bits step after step, whatever one is ahead of the other. Without a GPU
//! these tests do nothing, and say why.

use std::sync::Arc;
use std::time::Instant;

use fastrand::Rng;
use half::bf16;
use lathe_dsl::prelude::*;
use lathe_kernels::gemm::reference::Mxfp4;
use lathe_kernels::mla::post::{MlaPost, Seat, Tensors, View, mla_post};
use lathe_kernels::mla::uv::ROW;
use lathe_kernels::mla::{HEADS, LATENTS, VALUES};
use lathe_kernels::registry::Build;
use lathe_runtime::device::{Cuda, Device, PeerTable, Stream};
use lathe_runtime::jit::Compiled;
use lathe_runtime::{DeviceBuffer, Engine};

use crate::filetests::machine;

/// Words of a rank's values that one thread compares.
const THREADS: u32 = 256;

build_key! {
    /// Counts a step, and the words of the last step's values that are not what they should be.
    pub struct Account {
        /// Words.
        words: u32 = 1536, range(1, 1 << 24);
    }
}

kernel_args! {
    /// Arguments of [`Account`].
    pub struct AccountArgs(key: Account) {
        /// What came out.
        got: In<u32>[u64::from(key.words)] align 4;
        /// What should have.
        wanted: In<u32>[u64::from(key.words)] align 4;
        /// Words that differed so far.
        different: InOut<u32>[1] align 4;
        /// Steps so far.
        epoch: InOut<u32>[1] align 4;
    }
}

impl Kernel for Account {
    const NAME: &'static str = "account";
    type Args = AccountArgs;

    fn launch(&self) -> Launch {
        Launch::linear(self.words.div_ceil(THREADS), THREADS)
    }

    fn build<'k>(&self, k: &'k Builder<'k>, args: AccountArgs<Dev<'k>>) {
        let i = k.block_id(Axis::X) * THREADS + k.thread_id(Axis::X);
        let differs = k.buffer_load::<u32>(args.got, i).ne(k.buffer_load::<u32>(args.wanted, i));
        k.if_(differs, || {
            k.buffer_atomic(AtomicOp::Add, k.constant(1u32), args.different, 0u32, Scope::Device);
        });
        k.if_(i.eq(0), || {
            k.buffer_atomic(AtomicOp::Add, k.constant(1u32), args.epoch, 0u32, Scope::Device);
        });
    }
}

/// Inputs that steps take turns with: three, so that no two steps that share a half of a region have the same.
const SETS: usize = 3;

/// A rank with its device.
struct Rank {
    device: Arc<dyn Device>,
    stream: Stream,
    kernel: Arc<Compiled>,
    account: Arc<Compiled>,
    seat: Seat,
    sets: Vec<Set>,
    seq_lens: DeviceBuffer<i32>,
    qsl: DeviceBuffer<i32>,
    codes: DeviceBuffer<u8>,
    scales: DeviceBuffer<u8>,
    gate: DeviceBuffer<bf16>,
    core: DeviceBuffer<bf16>,
    different: DeviceBuffer<u32>,
}

/// One of its inputs, and what comes of it.
struct Set {
    o: DeviceBuffer<bf16>,
    lse: DeviceBuffer<f32>,
    wanted: DeviceBuffer<bf16>,
}

impl Rank {
    fn tensors(&self, set: usize) -> Tensors<'_> {
        let heads = 2 * u64::from(HEADS);
        Tensors {
            o: View::dense(&self.sets[set].o, [0, heads, u64::from(LATENTS)]),
            lse: Some(View::dense(&self.sets[set].lse, [0, heads])),
            seq_lens: &self.seq_lens,
            qsl: &self.qsl,
            w_v: View::dense(&self.codes, [0, u64::from(VALUES), u64::from(LATENTS / 2)]),
            w_v_scale: View::dense(&self.scales, [0, u64::from(VALUES), u64::from(LATENTS / 32)]),
            gate: &self.gate,
        }
    }

    /// Gives a step to the stream.
    fn step(&self, key: &MlaPost, set: usize) {
        let args = key.host_args(&self.tensors(set), &self.core, &self.seat, 5).expect("they are taken");
        mla_post(key, &self.kernel, &self.stream, &args).expect("it is launched");
    }

    /// As [`Rank::step`]; what came out is held against what should.
    fn step_of_account(&self, key: &MlaPost, account: &Account, set: usize) {
        self.step(key, set);
        let words = |buffer: &DeviceBuffer<bf16>| (buffer.address(), u64::from(account.words));
        let arg = |(address, len)| lathe_dsl::kernel::BufferArg::new(self, self.device.id().0, address, len);
        let args = AccountArgs {
            got: arg(words(&self.core)),
            wanted: arg(words(&self.sets[set].wanted)),
            different: self.different.arg(),
            epoch: self.seat.epoch(),
        };
        self.account.launch_on::<Account>(&self.stream, &args).expect("it is launched");
    }
}

/// A kernel that its first launch need not load: CUDA does that only once nothing runs on the device, and what runs there may wait
/// for a launch that comes later.
fn loaded(kernel: Arc<Compiled>, device: &Arc<dyn Device>) -> Arc<Compiled> {
    kernel.resources_on(&**device).expect("it loads");
    kernel
}

/// Two ranks, one on each of the devices, which may be one.
fn ranks(engines: [&Engine; 2], key: &MlaPost, account: &Account) -> [Rank; 2] {
    let mut rng = Rng::with_seed(11);
    let regions = engines.map(|e| e.device.peer_region(key.messages().region_bytes()).expect("fits"));
    let mut rank = 0;
    engines.map(|engine| {
        let device = &engine.device;
        let rows = (key.tokens * key.heads()) as usize;
        let mut row = |_| bf16::from_f32(rng.f32() * 4.0 - 2.0);
        let sets: Vec<Vec<bf16>> = (0..SETS).map(|_| (0..rows * LATENTS as usize).map(&mut row).collect()).collect();
        let sets = sets.into_iter().map(|o| Set {
            o: DeviceBuffer::from_slice(device, &o).expect("fits"),
            lse: DeviceBuffer::from_slice(device, &(0..rows).map(|_| rng.f32() * 8.0).collect::<Vec<_>>())
                .expect("fits"),
            wanted: DeviceBuffer::uninit(device, (key.tokens * ROW) as usize).expect("fits"),
        });
        let sets = sets.collect();
        let w_v = Mxfp4::random(&mut rng, ROW, LATENTS);
        let gate: Vec<bf16> = (0..key.tokens * ROW).map(|_| bf16::from_f32(rng.f32())).collect();
        let starts: Vec<i32> = (0..=key.requests()).map(|r| (r * key.q) as i32).collect();
        let table = PeerTable::new(device, &regions).expect("they reach each other");
        rank += 1;
        Rank {
            stream: device.stream().expect("a stream"),
            kernel: engine.jit.get(key, device.target()).expect("it compiles"),
            account: loaded(engine.jit.get(account, device.target()).expect("it compiles"), device),
            seat: Seat::new(device, rank - 1, table, key.ctas()).expect("fits"),
            sets,
            seq_lens: DeviceBuffer::from_slice(device, &vec![1; key.requests() as usize]).expect("fits"),
            qsl: DeviceBuffer::from_slice(device, &starts).expect("fits"),
            codes: DeviceBuffer::from_slice(device, &w_v.codes).expect("fits"),
            scales: DeviceBuffer::from_slice(device, &w_v.scales).expect("fits"),
            gate: DeviceBuffer::from_slice(device, &gate).expect("fits"),
            core: DeviceBuffer::uninit(device, gate.len()).expect("fits"),
            different: DeviceBuffer::from_slice(device, &[0]).expect("fits"),
            device: device.clone(),
        }
    })
}

/// Steps of two ranks, given without waiting, each with other inputs than the two before it.
fn steps(engines: [&Engine; 2], key: &MlaPost, steps: u32) {
    let account = Account { words: key.tokens * ROW / 2 };
    let ranks = ranks(engines, key, &account);
    // What comes of each input, where every step is waited for.
    for set in 0..SETS {
        for rank in &ranks {
            rank.seat.begin(set as u32).expect("it is written");
        }
        // Behind the last of these: they wait for what the device does.
        for rank in &ranks {
            rank.step(key, set);
        }
        for rank in &ranks {
            rank.stream.synchronize().expect("it is done");
            rank.seat.check().expect("nobody gave up");
            let values = rank.core.to_vec().expect("read");
            assert!(values.iter().all(|x| x.is_finite()) && values.iter().any(|x| *x != bf16::ZERO));
            rank.device.write(rank.sets[set].wanted.address(), bytemuck::cast_slice(&values)).expect("it is written");
        }
    }
    for rank in &ranks {
        rank.seat.begin(SETS as u32).expect("it is written");
    }
    let start = Instant::now();
    for step in SETS..SETS + steps as usize {
        for rank in &ranks {
            rank.step_of_account(key, &account, step % SETS);
        }
    }
    for rank in &ranks {
        rank.stream.synchronize().expect("it is done");
        rank.seat.check().expect("nobody gave up");
    }
    let time = start.elapsed();
    for (number, rank) in ranks.iter().enumerate() {
        assert_eq!(rank.different.to_vec().expect("read"), [0], "rank {number}: words that differ");
    }
    let names = ranks.map(|rank| rank.device.name()).join(" and ");
    println!("{key:?} on {names}: {steps} steps, {:.2} µs each", time.as_secs_f64() * 1e6 / f64::from(steps));
}

/// Waits that would never end give up after this long: a test that fails must end.
const WAIT_US: u32 = 20_000_000;

#[test]
fn two_ranks_on_one_gpu_wait_for_each_other() {
    if let Err(reason) = machine::gpu() {
        println!("skipped: {reason}");
        return;
    }
    let engine = Engine::open("cuda", None).expect("there is a GPU");
    for (tokens, q, ctas) in [(1, 1, 12), (8, 8, 24), (8, 2, 48), (64, 8, 60)] {
        let key = MlaPost { ranks: 2, tokens, q, splits: 0, ctas, wait_us: WAIT_US };
        for seed in [6, 7] {
            let report = Build::run(&key, &engine, seed).expect("it runs");
            let errors: Vec<String> = report.checks.iter().map(|c| format!("{:.3e}", c.max_abs_error)).collect();
            println!("{key:?}: {:9.3} ms, errors {}", report.launch_ms, errors.join(", "));
            for check in &report.checks {
                assert!(check.ok, "{key:?}: {} {:?}", check.against, check.first_failure);
            }
        }
    }
    steps([&engine, &engine], &MlaPost { ranks: 2, tokens: 8, q: 8, splits: 0, ctas: 24, wait_us: WAIT_US }, 1000);
}

#[test]
fn two_gpus_agree_for_ten_thousand_steps() {
    if let Err(reason) = machine::gpu() {
        println!("skipped: {reason}");
        return;
    }
    if Cuda::count() < 2 {
        println!("skipped: there is one GPU, two are wanted");
        return;
    }
    let engines = ["cuda:0", "cuda:1"].map(|name| Engine::open(name, None).expect("it is counted"));
    for (tokens, wait_us) in [(1, WAIT_US), (8, WAIT_US), (8, 0), (64, WAIT_US)] {
        // As many as an H200 has at once.
        let key =
            MlaPost { ranks: 2, tokens, q: tokens.min(8), splits: 0, ctas: if tokens > 8 { 132 } else { 0 }, wait_us };
        steps(engines.each_ref(), &key, 10_000);
    }
}
