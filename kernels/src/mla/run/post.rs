//! Runs `mla_post` on real attention and checks what comes out: of ranks a launch each, on devices of their own where there are.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use half::bf16;
use lathe_runtime::device::{Device, Group, PeerTable};
use lathe_runtime::jit::Compiled;
use lathe_runtime::{DeviceBuffer, Engine};

use super::super::post::{MlaPost, Seat, Tensors, View};
use super::super::problem::Problem;
use super::super::reference::post::combined;
use super::super::reference::splits::combine_own_splits;
use super::super::reference::uv::{Around, Bounds, bounds, rounding, uv};
use super::super::reference::{device_bound, unsplit_bound};
use super::super::splits::MlaCombineSplits;
use super::super::uv::ROW;
use super::super::{HEADS, LATENTS, VALUES};
use super::uv::{checks, random_gate};
use super::{GPU_WAIT_US, POISON, Run, check_host_bytes, fewer, poisoned, two_epochs};
use crate::gemm::reference::Mxfp4;
use crate::registry::{Check, Outcome, RunError};

impl MlaPost {
    /// Host memory that a run takes: of every latent the rows of the attention, here and among all that its rank has, on the device
    /// and in the regions, the f64 attention, its bounds and the reference; of every value its gate, result, reference and bounds.
    fn host_bytes(&self) -> u64 {
        let ranks = u64::from(self.ranks);
        let shards = u64::from(self.per_request()).max(ranks);
        // Of splits only a request's own are written, or kept at all.
        let rows = if self.splits > 0 { shards / 2 } else { ranks };
        let regions = if ranks > 1 { ranks * self.messages().region_bytes() } else { 0 };
        let of_latent = 2 * 2 * shards + 2 * 2 * rows + 4 * 8 + 2 * 2;
        let of_value = 5 * 2 + size_of::<Bounds>() as u64;
        ranks * u64::from(self.tokens) * (u64::from(HEADS * LATENTS) * of_latent + u64::from(ROW) * of_value) + regions
    }
}

impl Run for MlaPost {
    const ON_GPUS: &'static [(&'static str, u32)] = &[("wait_us", GPU_WAIT_US)];

    fn check_size(&self) -> Result<(), RunError> {
        check_host_bytes(self, self.host_bytes(), || fewer("tokens or splits"))
    }

    fn run(&self, engine: &Engine, compiled: &Compiled, seed: u64) -> Result<Outcome, RunError> {
        // The same one, for a group to hold.
        let shared = engine.jit.get(self, engine.device.target())?;
        let mut rng = Rng::with_seed(seed);
        // Tensors are views, every other seed of dense memory, else with other tensors between their rows.
        let spread = seed % 2 == 1;
        let problem = Problem::with_heads(self.heads() as usize, self.shards(), self.tokens as usize, seed);
        let mut ranks =
            (0..self.ranks).map(|rank| Rank::new(self, &problem, &mut rng, rank, spread)).collect::<Vec<_>>();
        let devices: Vec<Arc<dyn Device>> = (0..self.ranks)
            .map(|rank| if rank == 0 { None } else { engine.device.another() }.unwrap_or_else(|| engine.device.clone()))
            .collect();
        let sent = ranks.iter().zip(&devices).map(|(r, d)| r.send(d, self)).collect::<Result<Vec<_>, _>>()?;
        let seats = self.seats(&devices)?;

        let (mut findings, mut time) = (vec![], Duration::ZERO);
        let epochs = two_epochs(&mut rng);
        let layer = rng.u32(0..256);
        let steps = if self.ranks > 1 { 2 } else { 1 };
        for epoch in epochs.into_iter().take(steps) {
            let mut args = vec![];
            for (sent, seat) in sent.iter().zip(&seats) {
                sent.clear()?;
                seat.begin(epoch)?;
                args.push(self.host_args(&sent.tensors(), &sent.core, seat, layer)?);
            }
            let reports = if self.ranks > 1 {
                let mut group = Group::new();
                for (args, device) in args.iter().zip(&devices) {
                    let rank = group.rank(device);
                    group.launch::<Self>(rank, &shared, args)?;
                }
                group.run()?.into_iter().flatten().collect()
            } else {
                vec![compiled.launch::<Self>(&*devices[0], &args[0])?]
            };
            time = reports.iter().map(|report| report.time).max().unwrap_or_default();
            findings.extend(reports.into_iter().flat_map(|report| report.findings));
            for ((rank, sent), seat) in ranks.iter_mut().zip(&sent).zip(&seats) {
                seat.check()?;
                rank.got.extend(sent.core.to_vec()?);
            }
        }
        let mut worst: Option<[Check; 2]> = None;
        for rank in &ranks {
            let checks = rank.checks(self, engine.device.approximates());
            worst = Some(match worst {
                None => checks,
                Some(worst) => std::array::from_fn(|i| worse(&worst[i], &checks[i])),
            });
        }
        Ok(Outcome { checks: worst.into_iter().flatten().collect(), findings, time })
    }
}

/// Of the same check of two ranks, the one that went worse.
fn worse(a: &Check, b: &Check) -> Check {
    let later = a.ok && (!b.ok || b.max_abs_error > a.max_abs_error);
    if later { b.clone() } else { a.clone() }
}

impl MlaPost {
    /// The stage that combines its splits.
    fn of_splits(&self) -> MlaCombineSplits {
        MlaCombineSplits { splits: self.splits, tokens: self.tokens, q: self.q }
    }

    /// Parts of a token's KV cache.
    fn shards(&self) -> usize {
        self.per_request().max(self.ranks) as usize
    }

    /// A place for every rank, with regions that all reach.
    fn seats(&self, devices: &[Arc<dyn Device>]) -> Result<Vec<Seat>, RunError> {
        if let [device] = devices {
            return Ok(vec![Seat::alone(device, self.ctas())?]);
        }
        let regions = devices
            .iter()
            .map(|device| device.peer_region(self.messages().region_bytes()))
            .collect::<Result<Vec<_>, _>>()?;
        let seat = |(device, rank)| Seat::new(device, rank, PeerTable::new(device, &regions)?, self.ctas());
        Ok(devices.iter().zip(0..).map(seat).collect::<Result<_, _>>()?)
    }
}

/// A rank's part of the problem.
struct Rank {
    /// What it combines: its heads, all shards.
    own: Problem,
    /// What it holds: all heads of its shard; nothing where it has splits, which are its own.
    rows: Vec<bf16>,
    lse: Vec<f32>,
    seq_lens: Vec<i32>,
    qsl: Vec<i32>,
    w_v: Mxfp4,
    gate: Vec<bf16>,
    spread: bool,
    /// What came out, step by step.
    got: Vec<bf16>,
}

impl Rank {
    fn new(key: &MlaPost, problem: &Problem, rng: &mut Rng, rank: u32, spread: bool) -> Self {
        let tokens = key.tokens as usize;
        let mut own = problem.of_heads((rank * HEADS) as usize);
        let mut qsl: Vec<i32> = (0..=key.requests()).map(|r| (r * key.q) as i32).collect();
        let mut seq_lens = vec![1i32; key.requests() as usize];
        let (rows, lse) = if key.ranks > 1 {
            let at = rank as usize * tokens * problem.heads;
            let mut rows =
                problem.partial[at * LATENTS as usize..][..tokens * problem.heads * LATENTS as usize].to_vec();
            let mut lse = problem.lse[at..][..tokens * problem.heads].to_vec();
            let lengths = &problem.kv_len[rank as usize * tokens..][..tokens];
            seq_lens = lengths.chunks(key.q as usize).map(|tokens| tokens.iter().sum::<u32>() as i32).collect();
            let live = (0..tokens).filter(|token| !problem.is_padding(*token)).count();
            qsl.iter_mut().for_each(|start| *start = (*start).min(live as i32));
            // What these two hide may hold anything.
            for token in (0..tokens).filter(|t| *t >= live || seq_lens[t / key.q as usize] == 0) {
                lse[token * problem.heads..][..problem.heads].fill(1e3);
                rows[token * problem.heads * LATENTS as usize..][..LATENTS as usize].fill(bf16::NAN);
            }
            (rows, lse)
        } else if key.splits > 0 {
            own.clear_empty_shards();
            (vec![], vec![])
        } else {
            (own.partial.clone(), vec![])
        };
        let w_v = Mxfp4::random(rng, ROW, LATENTS);
        let gate = (0..tokens * ROW as usize).map(|_| random_gate(rng)).collect();
        Self { own, rows, lse, seq_lens, qsl, w_v, gate, spread, got: vec![] }
    }

    /// Copies it to the rank's device.
    fn send(&self, device: &Arc<dyn Device>, key: &MlaPost) -> Result<Sent, RunError> {
        let [tokens, heads] = [key.tokens, key.heads()].map(|n| n as usize);
        let rows = [tokens, heads, LATENTS as usize];
        let values = [HEADS, VALUES, LATENTS / 2].map(|n| n as usize);
        let blocks = [HEADS, VALUES, LATENTS / 32].map(|n| n as usize);
        let (o, lse) = if key.splits > 0 {
            let (o, lse) = key.of_splits().send(device, &self.own)?;
            (Spread::of(o, rows), Spread::of(lse, [tokens, heads, 1]))
        } else {
            let o = match self.spread {
                true => Spread::new(device, &self.rows, rows, [1, 0, 2], 64, POISON)?,
                false => Spread::dense(device, &self.rows, rows)?,
            };
            let lse = match self.spread && key.ranks > 1 {
                true => Spread::new(device, &self.lse, [tokens, heads, 1], [1, 0, 2], 2, f32::NAN)?,
                false => Spread::dense(device, &self.lse, [tokens, heads, 1])?,
            };
            (o, lse)
        };
        Ok(Sent {
            o,
            lse,
            codes: match self.spread {
                true => Spread::new(device, &self.w_v.codes, values, [1, 0, 2], 16, 0xFF)?,
                false => Spread::dense(device, &self.w_v.codes, values)?,
            },
            scales: match self.spread {
                true => Spread::new(device, &self.w_v.scales, blocks, [2, 1, 0], 1, 0xFF)?,
                false => Spread::dense(device, &self.w_v.scales, blocks)?,
            },
            seq_lens: DeviceBuffer::from_slice(device, &self.seq_lens)?,
            qsl: DeviceBuffer::from_slice(device, &self.qsl)?,
            gate: DeviceBuffer::from_slice(device, &self.gate)?,
            core: poisoned(device, self.gate.len())?,
        })
    }

    /// What came out of each step against the reference and the mathematics.
    fn checks(&self, key: &MlaPost, approximates: bool) -> [Check; 2] {
        let (tokens, shards, own) = (key.tokens as usize, key.shards(), &self.own);
        let latents = match key.splits {
            0 => combined(key, &own.partial, &own.lse),
            _ => combine_own_splits(&key.of_splits(), key.tokens_a_task(), &own.partial, &own.lse),
        };
        let error = match shards {
            1 => rounding(&latents),
            _ => unsplit_bound(shards, tokens, &own.partial, &own.lse),
        };
        let device = match approximates {
            true => device_bound(shards, tokens, &own.partial, &own.lse, &latents),
            false => vec![0.0; latents.len()],
        };
        let around = Around { latents: &latents, device: &device, exact: &own.unsplit, error: &error };
        let bounds = bounds(tokens, around, &self.w_v, &self.gate);
        let reference = uv(tokens, &latents, &self.w_v, &self.gate);
        let mut steps = self.got.chunks(self.gate.len().max(1)).map(|got| checks(got, &reference, &self.gate, &bounds));
        let first = steps.next().unwrap_or_else(|| checks(&[], &reference, &self.gate, &bounds));
        steps.fold(first, |worst, step| std::array::from_fn(|i| worse(&worst[i], &step[i])))
    }
}

/// A rank's tensors on its device.
struct Sent {
    o: Spread<bf16>,
    lse: Spread<f32>,
    codes: Spread<u8>,
    scales: Spread<u8>,
    seq_lens: DeviceBuffer<i32>,
    qsl: DeviceBuffer<i32>,
    gate: DeviceBuffer<bf16>,
    core: DeviceBuffer<bf16>,
}

impl Sent {
    fn tensors(&self) -> Tensors<'_> {
        let [of_token, of_head, _] = self.lse.strides;
        Tensors {
            o: self.o.view(),
            lse: Some(View { buffer: &self.lse.buffer, first: 0, strides: [of_token, of_head] }),
            seq_lens: &self.seq_lens,
            qsl: &self.qsl,
            w_v: self.codes.view(),
            w_v_scale: self.scales.view(),
            gate: &self.gate,
        }
    }

    /// Forgets what came out.
    fn clear(&self) -> Result<(), RunError> {
        let poison = vec![POISON; self.core.len()];
        Ok(self.core.device().write(self.core.address(), bytemuck::cast_slice(&poison))?)
    }
}

/// A tensor somewhere in device memory.
struct Spread<T> {
    buffer: DeviceBuffer<T>,
    strides: [u64; 3],
}

impl<T: lathe_dsl::builder::Element + bytemuck::Pod> Spread<T> {
    fn dense(device: &Arc<dyn Device>, data: &[T], extents: [usize; 3]) -> Result<Self, RunError> {
        Ok(Self::of(DeviceBuffer::from_slice(device, data)?, extents))
    }

    /// Dense, as it lies there.
    fn of(buffer: DeviceBuffer<T>, extents: [usize; 3]) -> Self {
        let [_, rows, columns] = extents.map(|n| n as u64);
        Self { buffer, strides: [rows * columns, columns, 1] }
    }

    /// Dimension `order[0]` outermost, and so on; between the rows of the innermost `gap` elements of `between`.
    fn new(
        device: &Arc<dyn Device>,
        data: &[T],
        extents: [usize; 3],
        order: [usize; 3],
        gap: usize,
        between: T,
    ) -> Result<Self, RunError> {
        let mut strides = [0; 3];
        strides[order[2]] = 1;
        strides[order[1]] = extents[order[2]] + gap;
        strides[order[0]] = strides[order[1]] * extents[order[1]];
        let mut memory = vec![between; strides[order[0]] * extents[order[0]]];
        for (i, x) in data.iter().enumerate() {
            let [a, b, c] = [i / extents[2] / extents[1], i / extents[2] % extents[1], i % extents[2]];
            memory[a * strides[0] + b * strides[1] + c * strides[2]] = *x;
        }
        Ok(Self { buffer: DeviceBuffer::from_slice(device, &memory)?, strides: strides.map(|n| n as u64) })
    }

    fn view(&self) -> View<'_, T, 3> {
        View { buffer: &self.buffer, first: 0, strides: self.strides }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Build;

    #[test]
    fn every_class_of_key_is_right_on_both_wave_widths() {
        let keys = [(1, 1, 0), (3, 3, 0), (8, 2, 0), (4, 4, 2), (3, 3, 16), (8, 8, 128), (5, 1, 5 * 8), (16, 4, 8)];
        for (tokens, q, splits) in keys {
            // The last two with more tasks than workgroups, or more workgroups than tasks.
            for (device, seed, ctas) in
                [("cpu:gfx950", None, 0), ("cpu:sm_90", Some(1), 7), ("cpu:gfx1201", Some(u64::MAX), 100)]
            {
                let engine = Engine::open(device, seed).unwrap();
                let key = MlaPost { ranks: 1, tokens, q, splits, ctas, wait_us: 0 };
                for seed in [2, 3] {
                    let report = Build::run(&key, &engine, seed).unwrap();
                    assert!(report.ok, "{device} {key:?}: {:?}", report.checks);
                    assert_eq!(report.findings, [""; 0], "{device} {key:?}");
                    // The device's products are the reference's: exact sums, rounded once a step.
                    assert_eq!(report.checks[0].max_abs_error, 0.0, "{device} {key:?}");
                }
            }
        }
    }

    #[test]
    fn ranks_are_right_on_both_wave_widths() {
        // Many workgroups in order; few in a random one, which takes many more turns.
        let (order, random) = (("cpu:gfx950", None), [("cpu:sm_90", Some(1)), ("cpu:gfx1201", Some(u64::MAX))]);
        let small = [(2, 1, 1, 2), (4, 3, 3, 1), (2, 9, 1, 3)];
        let mut runs =
            vec![(8, 8, 8, 0, order), (4, 5, 1, 7, ("cpu:gfx1201", None)), (2, 16, 4, 0, ("cpu:sm_90", None))];
        runs.extend(small.into_iter().flat_map(|(r, t, q, c)| random.map(|device| (r, t, q, c, device))));
        for (seed, (ranks, tokens, q, ctas, (device, order))) in (2..).zip(runs) {
            let engine = Engine::open(device, order).unwrap();
            let key = MlaPost { ranks, tokens, q, splits: 0, ctas, wait_us: 0 };
            let report = Build::run(&key, &engine, seed).unwrap();
            assert!(report.ok, "{device} {key:?}: {:?} {:?}", report.checks, report.findings);
            assert_eq!(report.checks[0].max_abs_error, 0.0, "{device} {key:?}");
        }
    }
}
