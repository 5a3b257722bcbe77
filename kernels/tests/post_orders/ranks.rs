//! Ranks of `mla_post` on the interpreter.

use lathe_dsl::ir;
use lathe_kernels::mla::LATENTS;
use lathe_kernels::mla::message::health_words;
use lathe_kernels::mla::uv::ROW;
use lathe_runtime::interp::{ArgValue, Checks, GlobalBuffer, Launch, Options, Program, launch_group};

use super::steps::{LAYER, Sent, Steps};

/// Most instructions of a wave: many times what it takes.
const STEP_LIMIT: u64 = 1_000_000;

/// A kernel, and what its ranks read: the same in every order.
pub struct Run {
    pub steps: Steps,
    program: Program,
    epochs: Vec<GlobalBuffer>,
    /// By ranks.
    fixed: Vec<Fixed>,
    /// `[step][rank]`.
    sent: Vec<Vec<OfStep>>,
    leftovers: Vec<u8>,
}

struct Fixed {
    codes: GlobalBuffer,
    scales: GlobalBuffer,
    gate: GlobalBuffer,
}

struct OfStep {
    o: GlobalBuffer,
    lse: GlobalBuffer,
    seq_lens: GlobalBuffer,
    qsl: GlobalBuffer,
}

/// What a rank writes in a step.
struct Written {
    core: GlobalBuffer,
    health: GlobalBuffer,
    alarm: GlobalBuffer,
}

fn bytes<T: bytemuck::NoUninit>(data: &[T]) -> GlobalBuffer {
    GlobalBuffer::from_bytes(bytemuck::cast_slice(data))
}

impl Run {
    /// The steps by `kernel`, which is `mla_post` or once was.
    pub fn new(steps: Steps, kernel: &ir::Kernel) -> Self {
        let of_step =
            |s: &Sent| OfStep { o: bytes(&s.o), lse: bytes(&s.lse), seq_lens: bytes(&s.seq_lens), qsl: bytes(&s.qsl) };
        let fixed = steps.w_v.iter().zip(&steps.gate).map(|(w_v, gate)| Fixed {
            codes: bytes(&w_v.codes),
            scales: bytes(&w_v.scales),
            gate: bytes(gate),
        });
        Self {
            program: Program::new(kernel).expect("verified"),
            epochs: (0..steps.sent.len()).map(|step| bytes(&[steps.epoch(step)])).collect(),
            fixed: fixed.collect(),
            sent: steps.sent.iter().map(|ranks| ranks.iter().map(of_step).collect()).collect(),
            leftovers: steps.leftovers(),
            steps,
        }
    }

    /// Runs all steps of all ranks, with the turns that `seed` gives; each rank goes on as soon as its step has ended.
    pub fn run(&self, seed: u64, checks: Checks) -> Result<(), String> {
        let key = &self.steps.key;
        let ranks = key.ranks as usize;
        let regions: Vec<GlobalBuffer> = (0..ranks).map(|_| GlobalBuffer::from_bytes(&self.leftovers)).collect();
        let peers = bytes(&regions.iter().map(GlobalBuffer::address).collect::<Vec<u64>>());
        let written: Vec<Vec<Written>> = (0..ranks)
            .map(|_| {
                let of_step = |_| Written {
                    core: GlobalBuffer::uninit((key.tokens * ROW * 2) as usize),
                    health: bytes(&vec![0u32; health_words(key.ctas()) as usize]),
                    alarm: bytes(&[0u32]),
                };
                (0..self.sent.len()).map(of_step).collect()
            })
            .collect();
        let others: Vec<Vec<Vec<&GlobalBuffer>>> = (0..ranks)
            .map(|rank| {
                let Fixed { codes, scales, .. } = &self.fixed[rank];
                let of_step = |step: usize| -> Vec<&GlobalBuffer> {
                    let OfStep { o, lse, .. } = &self.sent[step][rank];
                    regions.iter().chain([codes, scales, o, lse]).collect()
                };
                (0..self.sent.len()).map(of_step).collect()
            })
            .collect();
        let args: Vec<Vec<Vec<ArgValue<'_>>>> = (0..ranks)
            .map(|rank| (0..self.sent.len()).map(|step| self.args(rank, step, &peers, &written[rank][step])).collect())
            .collect();
        let launches: Vec<Vec<Launch<'_>>> = args
            .iter()
            .zip(&others)
            .map(|(args, others)| {
                let both = args.iter().zip(others);
                both.map(|(args, others)| Launch { program: &self.program, args, others }).collect()
            })
            .collect();
        let options = Options { seed: Some(seed), step_limit: Some(STEP_LIMIT), checks, ..Options::default() };
        let reports = launch_group(&launches, &options).map_err(|e| e.to_string())?;
        if let Some(finding) = reports.iter().flatten().flat_map(|r| &r.findings).next() {
            return Err(finding.to_string());
        }
        for (rank, written) in written.iter().enumerate() {
            for (step, written) in written.iter().enumerate() {
                if written.core.to_vec() != bytemuck::cast_slice::<_, u8>(&self.steps.expected[step][rank]) {
                    return Err(format!("rank {rank}, step {step}: wrong values"));
                }
                if written.alarm.to_vec() != [0; 4] {
                    return Err(format!("rank {rank}, step {step}: a wait gave up"));
                }
            }
        }
        Ok(())
    }

    /// In the order of the kernel's parameters.
    fn args<'a>(&'a self, rank: usize, step: usize, peers: &'a GlobalBuffer, to: &'a Written) -> Vec<ArgValue<'a>> {
        let key = &self.steps.key;
        let Fixed { codes, scales, gate } = &self.fixed[rank];
        let OfStep { o, lse, seq_lens, qsl } = &self.sent[step][rank];
        let word = |n: u32| ArgValue::Scalar(n.into());
        let at = |buffer: &GlobalBuffer| ArgValue::Scalar(buffer.address());
        let row = LATENTS / 2;
        vec![
            at(o),
            word(key.heads() * LATENTS),
            word(LATENTS),
            at(lse),
            word(key.heads()),
            word(1),
            ArgValue::Buffer(seq_lens),
            ArgValue::Buffer(qsl),
            at(codes),
            word(128 * row),
            word(row),
            at(scales),
            word(128 * 16),
            word(16),
            word(1),
            ArgValue::Buffer(gate),
            ArgValue::Buffer(&to.core),
            ArgValue::Buffer(peers),
            word(rank as u32),
            word(LAYER),
            ArgValue::Buffer(&self.epochs[step]),
            ArgValue::Buffer(&to.health),
            ArgValue::Buffer(&to.alarm),
        ]
    }
}
