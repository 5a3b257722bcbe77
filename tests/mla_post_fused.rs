//! Promise: the stages of `mla_post` work in the launch of a kernel that has more to do: one that makes the splits' rows before them,
//! and reads the values behind them, all workgroups waiting for each other by flags.

use fastrand::Rng;
use half::bf16;
use lathe_dsl::builder::{Message, Region, step_tag_of};
use lathe_dsl::prelude::*;
use lathe_kernels::gemm::reference::Mxfp4;
use lathe_kernels::mla::post::{Hooks, Inputs, Lse, MlaPost, Post, Ready};
use lathe_kernels::mla::reference::post::mla_post;
use lathe_kernels::mla::uv::{ROW, Weights};
use lathe_kernels::mla::{HEADS, LATENTS, THREADS, VALUES, Workers, tasks};
use lathe_runtime::{DeviceBuffer, Engine};

build_key! {
    /// Makes splits, combines them, reads the values.
    pub struct Fused {
        /// Query tokens.
        tokens: u32 = 2, range(1, 64);
        /// Query tokens of a request.
        q: u32 = 2, range(1, 64);
        /// Splits of all requests together.
        splits: u32 = 8, range(2, 1024);
        /// Heads that are made together.
        heads: u32 = 4, one_of(1, 2, 3, 4, 6, 12);
        /// Workgroups.
        ctas: u32 = 8, range(1, 256);
        /// How many of them make the splits, while the others have the stages; 0: all have both.
        makers: u32 = 0, range(0, 255);
    }
}

impl Fused {
    fn post(&self) -> MlaPost {
        let Self { tokens, q, splits, ctas, makers, .. } = *self;
        MlaPost { ranks: 1, tokens, q, splits, ctas: ctas.saturating_sub(makers), wait_us: 0 }
    }

    /// Pieces that splits are made in: one of a split's head groups each.
    fn pieces(&self) -> u32 {
        self.splits * (HEADS / self.heads)
    }

    fn tasks(&self) -> u32 {
        tasks(self.tokens, self.post().tokens_a_task())
    }

    fn rows(&self) -> u64 {
        u64::from(self.splits * self.tokens * HEADS)
    }

    fn values(&self) -> u64 {
        u64::from(self.tokens * ROW)
    }
}

kernel_args! {
    /// Arguments of [`Fused`].
    pub struct FusedArgs(key: Fused) {
        /// What the splits' rows are made of.
        source: In<bf16>[key.rows() * u64::from(LATENTS)] align 16;
        /// What their LSE are made of.
        source_lse: In<f32>[key.rows()] align 4;
        /// The splits' rows.
        o: InOut<bf16>[key.rows() * u64::from(LATENTS)] align 16;
        /// Their LSE.
        lse: InOut<f32>[key.rows()] align 4;
        /// Not read of one rank.
        requests: In<i32>[u64::from(key.tokens / key.q) + 1] align 4;
        /// W_UV.
        w_v: InOut<u8>[u64::from(ROW * LATENTS / 2)] align 16;
        /// Its scales.
        w_v_scale: InOut<u8>[u64::from(ROW * LATENTS / 32)] align 16;
        /// Gates.
        gate: In<bf16>[key.values()] align 16;
        /// Values.
        core: InOut<bf16>[key.values()] align 16;
        /// What is read of them.
        seen: Out<bf16>[key.values()] align 16;
        /// Address of flags of pieces.
        ready: Scalar<u64>;
        /// Address of flags of tasks.
        done: Scalar<u64>;
        /// Counts launches.
        epoch: Scalar<u32>;
    }
}

impl Kernel for Fused {
    const NAME: &'static str = "fused";
    type Args = FusedArgs;

    fn check(&self) -> Result<(), String> {
        if self.makers >= self.ctas {
            return Err("some workgroups must be left for the stages".to_owned());
        }
        self.post().check()
    }

    fn launch(&self) -> Launch {
        Launch::linear(self.ctas, THREADS)
    }

    fn build<'k>(&self, k: &'k Builder<'k>, args: FusedArgs<Dev<'k>>) {
        let (makers, workers) = self.shares(k);
        let mailbox = Mailbox::new(k, k.step_tag(args.epoch, 0));
        let ready = k.message_region(args.ready, self.pieces() * 8, Cache::DEV, 1);
        let done = k.message_region(args.done, self.tasks() * 8, Cache::DEV, 2);
        makers.each(k, self.pieces(), |piece| {
            self.make(k, &args, piece);
            mailbox.publish(ready, piece, &[piece]);
        });
        let wait = |flag| drop(mailbox.poll(&[Message::new(ready, flag, 1)]));
        let hooks = Hooks { ready: Some(Ready { heads: self.heads, wait: &wait }), core_cache: Cache::DEV };
        let inputs = Inputs {
            o: args.o,
            o_strides: [k.constant(HEADS * LATENTS), k.constant(LATENTS)],
            lse: Lse::Splits(args.lse),
            seq_lens: args.requests,
            qsl: args.requests,
            weights: Weights::dense(k, args.w_v, args.w_v_scale),
            gate: args.gate,
        };
        let post = Post::new(k, self.post(), inputs, args.core, hooks);
        post.combine_tasks(workers, |task| mailbox.publish(done, task, &[task]));
        workers.each(k, self.tokens, |token| self.read(k, &args, mailbox, done, token));
    }
}

impl Fused {
    /// Who makes the splits, and who has the stages.
    fn shares<'k>(&self, k: &'k Builder<'k>) -> (Workers<'k>, Workers<'k>) {
        if self.makers == 0 {
            return (Workers::all(k), Workers::all(k));
        }
        let (block, workers) = (k.block_id(Axis::X), self.ctas - self.makers);
        let index = (block + workers).rem_floor(self.ctas);
        (Workers { index: block, ctas: self.makers }, Workers { index, ctas: workers })
    }

    /// Makes the rows and LSE of a piece.
    fn make<'k>(&self, k: &'k Builder<'k>, args: &FusedArgs<Dev<'k>>, piece: V<'k, u32>) {
        const LANES: u32 = LATENTS * 2 / 16;
        let groups = HEADS / self.heads;
        let (split, first_head) = (piece.div_floor(groups), piece.rem_floor(groups) * self.heads);
        let row = |i: V<'k, u32>| {
            (split * self.tokens + i.div_floor(self.heads)) * HEADS + first_head + i.rem_floor(self.heads)
        };
        let options = StoreOptions::new().cache(Cache::DEV);
        let rows = self.tokens * self.heads;
        k.for_range(k.thread_id(Axis::X), rows * LANES, THREADS, (), |i, ()| {
            let at = Bytes((row(i.div_floor(LANES)) * LANES + i.rem_floor(LANES)) * 16);
            k.buffer_store_with(k.buffer_load::<Vector<u32, 4>>(args.source.cast(), at), args.o.cast(), at, options);
        });
        k.for_range(k.thread_id(Axis::X), rows, THREADS, (), |i, ()| {
            k.buffer_store_with(k.buffer_load::<f32>(args.source_lse, row(i)), args.lse, row(i), options);
        });
    }

    /// Reads a token's values once all its heads are there.
    fn read<'k>(
        &self,
        k: &'k Builder<'k>,
        args: &FusedArgs<Dev<'k>>,
        mailbox: Mailbox<'k>,
        done: Region<'k>,
        token: V<'k, u32>,
    ) {
        const LANES: u32 = ROW * 2 / 16;
        let thread = k.thread_id(Axis::X);
        let first = token.div_floor(self.post().tokens_a_task()) * HEADS;
        k.if_(thread.lt(HEADS), || drop(mailbox.poll(&[Message::new(done, first + thread, 1)])));
        k.barrier();
        k.if_(thread.lt(LANES), || {
            let at = Bytes((token * LANES + thread) * 16);
            let values = k.buffer_load_with(args.core.cast(), at, LoadOptions::new().cache(Cache::DEV));
            k.buffer_store::<Vector<u32, 4>>(values, args.seen.cast(), at);
        });
    }
}

fn run(key: &Fused, device: &str, seed: u64, order: Option<u64>) {
    let mut rng = Rng::with_seed(seed);
    let engine = Engine::open(device, order).expect("a device");
    let compiled = engine.jit.get(key, engine.device.target()).expect("it compiles");
    let device = &engine.device;
    let rows = key.rows() as usize;
    let source: Vec<bf16> = (0..rows * LATENTS as usize).map(|_| bf16::from_f32(rng.f32() * 4.0 - 2.0)).collect();
    // Here and there an empty split.
    let lse = |rng: &mut Rng| if rng.u32(0..5) == 0 { f32::NEG_INFINITY } else { rng.f32() * 8.0 };
    let source_lse: Vec<f32> = (0..rows).map(|_| lse(&mut rng)).collect();
    let w_v = Mxfp4::random(&mut rng, ROW, LATENTS);
    let gate: Vec<bf16> = (0..key.values()).map(|_| bf16::from_f32(rng.f32())).collect();
    let expected = mla_post(&key.post(), &source, &source_lse, &w_v, &gate);

    let source = DeviceBuffer::from_slice(device, &source).expect("fits");
    let source_lse = DeviceBuffer::from_slice(device, &source_lse).expect("fits");
    let o = DeviceBuffer::<bf16>::uninit(device, source.len()).expect("fits");
    let lse = DeviceBuffer::<f32>::uninit(device, rows).expect("fits");
    let requests = DeviceBuffer::from_slice(device, &vec![0; (key.tokens / key.q) as usize + 1]).expect("fits");
    let codes = DeviceBuffer::from_slice(device, &w_v.codes).expect("fits");
    let scales = DeviceBuffer::from_slice(device, &w_v.scales).expect("fits");
    let gate = DeviceBuffer::from_slice(device, &gate).expect("fits");
    let core = DeviceBuffer::<bf16>::uninit(device, gate.len()).expect("fits");
    let ready = DeviceBuffer::from_slice(device, &vec![0u64; key.pieces() as usize]).expect("fits");
    let done = DeviceBuffer::from_slice(device, &vec![0u64; key.tasks() as usize]).expect("fits");
    for epoch in [7, 8] {
        let seen = DeviceBuffer::<bf16>::uninit(device, gate.len()).expect("fits");
        let args = FusedArgs {
            source: source.arg(),
            source_lse: source_lse.arg(),
            o: o.arg(),
            lse: lse.arg(),
            requests: requests.arg(),
            w_v: codes.arg(),
            w_v_scale: scales.arg(),
            gate: gate.arg(),
            core: core.arg(),
            seen: seen.arg(),
            ready: ready.address(),
            done: done.address(),
            epoch,
        };
        let report = compiled.launch::<Fused>(device.as_ref(), &args).expect("it runs");
        assert_eq!(report.findings, [""; 0], "{key:?} seed {seed}");
        assert!(core.to_vec().expect("read") == expected, "{key:?} seed {seed}: values");
        assert!(seen.to_vec().expect("read") == expected, "{key:?} seed {seed}: what was read of them");
        let tags = done.to_vec().expect("read");
        assert!(tags.iter().all(|pair| (pair >> 32) as u32 == step_tag_of(epoch, 0)), "{tags:x?}");
    }
    assert_eq!(expected.len(), (key.tokens * HEADS * VALUES) as usize);
}

/// Tasks of one, two and four tokens; workgroups with nothing to do, one task, and several.
#[test]
fn stages_wait_for_what_their_launch_makes() {
    let keys = [
        Fused { tokens: 2, q: 2, splits: 8, heads: 4, ctas: 8, makers: 0 },
        Fused { tokens: 4, q: 4, splits: 2, heads: 12, ctas: 30, makers: 0 },
        Fused { tokens: 2, q: 1, splits: 16, heads: 3, ctas: 40, makers: 3 },
        Fused { tokens: 1, q: 1, splits: 72, heads: 1, ctas: 5, makers: 4 },
    ];
    for (seed, key) in (0..).zip(keys) {
        for device in ["cpu", "cpu:sm_90", "gcn:gfx950"] {
            run(&key, device, seed, None);
        }
    }
}

/// Turns at random are many where workgroups wait.
#[test]
fn stages_wait_in_any_order() {
    let key = Fused { tokens: 1, q: 1, splits: 8, heads: 12, ctas: 3, makers: 0 };
    for seed in 0..2 {
        run(&key, "cpu", seed, Some(seed));
        run(&Fused { makers: 1, ..key }, "cpu", seed, Some(seed));
        run(&Fused { makers: 2, ..key }, "gcn:gfx950", seed, Some(seed));
    }
}
