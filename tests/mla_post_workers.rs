//! Promise: some workgroups of a launch can be the workers of the stages of `mla_post`, with several ranks, while others take
//! the values as they come; if these are told too early, some order shows it.

use std::sync::Arc;

use half::bf16;
use lathe_dsl::builder::{Message, Region};
use lathe_dsl::prelude::*;
use lathe_kernels::mla::message::{Exchange, Step};
use lathe_kernels::mla::post::{Hooks, Inputs, Lse, MlaPost, Post};
use lathe_kernels::mla::uv::{ROW, Weights};
use lathe_kernels::mla::{HEADS, LATENTS, THREADS, Workers, tasks};
use lathe_runtime::device::Group;
use lathe_runtime::interp::{Failing, explore};
use lathe_runtime::jit::Compiled;
use lathe_runtime::{DeviceBuffer, Engine, Error, gcn};

use crate::mla_post_orders::Ranks;
use crate::mla_post_orders::steps::{LAYER, Steps};

const RANKS: u32 = 2;

build_key! {
    /// Some workgroups have the stages, some read the values.
    pub struct Shared {
        /// Query tokens.
        tokens: u32 = 1, range(1, 64);
        /// Query tokens of a request.
        q: u32 = 1, range(1, 64);
        /// Workgroups of the stages.
        workers: u32 = 2, range(1, 64);
        /// Workgroups that read the values.
        readers: u32 = 1, range(1, 64);
        /// What is wrong: a number of [`FAULTS`].
        fault: u32 = 0, range(0, 4);
    }
}

/// What can be wrong, and how it shows.
const FAULTS: [(&str, &[&str]); 5] = [
    ("nothing", &[]),
    ("done before the values are stored", &["never written", "race", "wrong values"]),
    ("done with no drain", &["never written", "race", "wrong values"]),
    ("done with no barrier", &["never written", "race", "wrong values"]),
    ("values that stay in a cache", &["race", "wrong values", "never written"]),
];

impl Shared {
    fn post(&self) -> MlaPost {
        let Self { tokens, q, workers, .. } = *self;
        MlaPost { ranks: RANKS, tokens, q, splits: 0, ctas: workers, wait_us: 0 }
    }

    fn values(&self) -> u64 {
        u64::from(self.tokens * ROW)
    }

    fn tasks(&self) -> u32 {
        tasks(self.tokens, self.post().tokens_a_task())
    }
}

kernel_args! {
    /// Arguments of [`Shared`].
    pub struct SharedArgs(key: Shared) {
        /// Partial rows of all ranks' heads.
        o: InOut<bf16>[u64::from(key.tokens * RANKS * HEADS * LATENTS)] align 16;
        /// Their LSE.
        lse: InOut<u32>[u64::from(key.tokens * RANKS * HEADS)] align 4;
        /// KV rows.
        seq_lens: In<i32>[u64::from(key.tokens / key.q)] align 4;
        /// First tokens.
        qsl: In<i32>[u64::from(key.tokens / key.q) + 1] align 4;
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
        /// Addresses of the regions.
        peers: In<u64>[u64::from(RANKS)] align 8;
        /// This rank.
        rank: Scalar<u32>;
        /// Counts steps.
        epoch: In<u32>[1] align 4;
        /// Address of flags of tasks.
        done: Scalar<u64>;
    }
}

impl Kernel for Shared {
    const NAME: &'static str = "shared";
    type Args = SharedArgs;

    fn check(&self) -> Result<(), String> {
        self.post().check()
    }

    fn launch(&self) -> Launch {
        Launch::linear(self.workers + self.readers, THREADS)
    }

    fn build<'k>(&self, k: &'k Builder<'k>, args: SharedArgs<Dev<'k>>) {
        let key = self.post();
        let step = Step { peers: args.peers, rank: args.rank, layer: k.constant(LAYER), epoch: args.epoch };
        let exchange = Exchange::new(k, key.messages(), step, None);
        let mailbox = exchange.mailbox;
        let done = k.message_region(args.done, self.tasks() * 8, Cache::DEV, 2);
        let heads = key.heads();
        let inputs = Inputs {
            o: args.o,
            o_strides: [k.constant(heads * LATENTS), k.constant(LATENTS)],
            lse: Lse::Ranks { bits: args.lse, strides: [k.constant(heads), k.constant(1u32)], exchange },
            seq_lens: args.seq_lens,
            qsl: args.qsl,
            weights: Weights::dense(k, args.w_v, args.w_v_scale),
            gate: args.gate,
        };
        let core_cache = if self.fault == 4 { Cache::OWN } else { Cache::DEV };
        let post = Post::new(k, key, inputs, args.core, Hooks { ready: None, core_cache });
        let block = k.block_id(Axis::X);
        let workers = Workers { index: block, ctas: self.workers };
        post.stage_push(workers);
        let tell = |task: V<'k, u32>| match self.fault {
            2 => {
                k.barrier();
                k.if_(k.thread_id(Axis::X).eq(0), || mailbox.put_words(done, task, &[task]));
            }
            3 => {
                k.drain(Scope::Device);
                k.if_(k.thread_id(Axis::X).eq(0), || mailbox.put_words(done, task, &[task]));
            }
            _ => mailbox.publish(done, task, &[task]),
        };
        if self.fault == 1 {
            workers.each_task(k, self.tokens, key.tokens_a_task(), |task, head, first_token| {
                post.stage_combine(head, first_token);
                tell(task);
                post.stage_uv(head, first_token, None);
            });
        } else {
            post.combine_tasks(workers, tell);
        }
        let all = self.workers + self.readers;
        let readers = Workers { index: (block + self.readers).rem_floor(all), ctas: self.readers };
        readers.each(k, self.tokens, |token| self.read(k, &args, mailbox, done, token));
    }
}

impl Shared {
    /// Reads a token's values once all its heads are there.
    fn read<'k>(
        &self,
        k: &'k Builder<'k>,
        args: &SharedArgs<Dev<'k>>,
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

/// Runs all steps of both ranks.
fn run(key: &Shared, steps: &Steps, compiled: &Arc<Compiled>, name: &str, seed: Option<u64>) -> Result<(), String> {
    let text = |e: Error| e.to_string();
    let ranks = Ranks::new(name, steps).map_err(text)?;
    let mut group = seed.map_or_else(Group::new, Group::seeded);
    // Of a step what its readers saw, of a rank the flags, which no step clears.
    let lse =
        |rank: usize, step: usize| -> Vec<u32> { steps.sent[step][rank].lse.iter().map(|x| x.to_bits()).collect() };
    let (mut seen, mut bits, mut flags) = (vec![], vec![], vec![]);
    for (rank, device) in ranks.devices.iter().enumerate() {
        flags.push(DeviceBuffer::from_slice(device, &vec![0u64; key.tasks() as usize]).map_err(text)?);
        for step in 0..steps.sent.len() {
            seen.push(DeviceBuffer::<bf16>::uninit(device, key.values() as usize).map_err(text)?);
            bits.push(DeviceBuffer::from_slice(device, &lse(rank, step)).map_err(text)?);
        }
    }
    for (rank, device) in ranks.devices.iter().enumerate() {
        let number = group.rank(device);
        for (step, of_step) in ranks.steps[rank].iter().enumerate() {
            let weights = &ranks.weights[rank];
            let at = rank * steps.sent.len() + step;
            let args = SharedArgs {
                o: of_step.o.arg(),
                lse: bits[at].arg(),
                seq_lens: of_step.seq_lens.arg(),
                qsl: of_step.qsl.arg(),
                w_v: weights.codes.arg(),
                w_v_scale: weights.scales.arg(),
                gate: weights.gate.arg(),
                core: of_step.core.arg(),
                seen: seen[at].arg(),
                peers: ranks.tables[rank].arg(),
                rank: rank as u32,
                epoch: of_step.epoch.arg(),
                done: flags[rank].address(),
            };
            group.launch::<Shared>(number, compiled, &args).map_err(text)?;
        }
    }
    let reports = group.run().map_err(text)?;
    if let Some(finding) = reports.iter().flatten().find_map(|r| r.findings.first()) {
        return Err(finding.clone());
    }
    for (at, seen) in seen.iter().enumerate() {
        let (rank, step) = (at / steps.sent.len(), at % steps.sent.len());
        if seen.to_vec().map_err(text)? != steps.expected[step][rank] {
            return Err(format!("rank {rank}, step {step}: wrong values"));
        }
    }
    Ok(())
}

fn explored(key: Shared, name: &str, seeds: std::ops::Range<u64>) -> Result<(), Failing<String>> {
    let steps = Steps::new(key.post(), 3, u32::MAX - 1);
    let engine = Engine::open(name, None).expect("a device");
    let compiled = engine.jit.get(&key, engine.device.target()).expect("it compiles");
    explore(seeds, |seed| run(&key, &steps, &compiled, name, Some(seed)))
}

const SMALL: Shared = Shared { tokens: 1, q: 1, workers: 2, readers: 1, fault: 0 };

#[test]
fn values_are_taken_as_they_come_in_any_order() {
    // More tokens than workgroups; more workgroups than tasks.
    for (key, seeds) in [
        (SMALL, 8),
        (Shared { tokens: 5, workers: 3, readers: 2, ..SMALL }, 1),
        (Shared { tokens: 2, q: 2, workers: 14, ..SMALL }, 1),
    ] {
        for name in ["cpu".to_owned()].into_iter().chain(gcn::targets().map(|target| format!("gcn:{target}"))) {
            explored(key, &name, 0..seeds).unwrap_or_else(|e| panic!("{name} {key:?}: {e}"));
        }
    }
}

#[test]
fn who_tells_too_early_is_found() {
    let mut failures = vec![];
    for (fault, (name, says)) in (0u32..).zip(FAULTS).skip(1) {
        match explored(Shared { fault, ..SMALL }, "cpu", 0..100) {
            Ok(()) => failures.push(format!("{name}: not found")),
            Err(found) if says.iter().any(|s| found.error.contains(s)) => println!("{name}: {found}"),
            Err(found) => failures.push(format!("{name}: {found}")),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
