//! Runs `mla_post` on real attention and checks what comes out.

use fastrand::Rng;
use half::bf16;
use lathe_dsl::kernel;
use lathe_runtime::device::Device;
use lathe_runtime::jit::Compiled;
use lathe_runtime::{DeviceBuffer, Engine};
use std::sync::Arc;

use super::super::post::{MlaPost, Tensors, View};
use super::super::problem::Problem;
use super::super::reference::post::combined;
use super::super::reference::uv::{Around, Bounds, bounds, rounding, uv};
use super::super::reference::{device_bound, unsplit_bound};
use super::super::splits::MlaCombineSplits;
use super::super::uv::ROW;
use super::super::{HEADS, LATENTS, VALUES};
use super::uv::{checks, random_gate};
use super::{HOST_BYTES, POISON, Run};
use crate::gemm::reference::Mxfp4;
use crate::registry::{Outcome, RunError};

impl MlaPost {
    /// Host memory that a run takes: of every latent the rows of the attention, here, among all splits and on the device, the f64
    /// attention, its bounds and the reference; of every value its gate, result, reference and bounds.
    fn host_bytes(&self) -> u64 {
        let shards = u64::from(self.per_request().max(1));
        let rows = u64::from(self.splits.max(1));
        let of_latent = 2 * shards + 2 * 2 * rows + 4 * 8 + 2 * 2;
        let of_value = 5 * 2 + size_of::<Bounds>() as u64;
        u64::from(self.tokens) * (u64::from(HEADS * LATENTS) * of_latent + u64::from(ROW) * of_value)
    }
}

impl Run for MlaPost {
    fn check_size(&self) -> Result<(), RunError> {
        let bytes = self.host_bytes();
        if bytes <= HOST_BYTES {
            return Ok(());
        }
        Err(RunError::TooLarge {
            kernel: <Self as kernel::Kernel>::NAME,
            key: kernel::describe(self),
            gib: bytes as f64 / f64::from(1 << 30),
            hint: format!("a run takes at most {} GiB; take fewer tokens or splits", HOST_BYTES >> 30),
        })
    }

    fn run(&self, engine: &Engine, compiled: &Compiled, seed: u64) -> Result<Outcome, RunError> {
        let tokens = self.tokens as usize;
        let shards = self.per_request().max(1) as usize;
        let mut problem = Problem::new(shards, tokens, seed);
        let (rows, all_lse) = if self.splits > 0 {
            problem.clear_empty_shards();
            MlaCombineSplits { splits: self.splits, tokens: self.tokens, q: self.q }.among_all(&problem)
        } else {
            (problem.partial.clone(), problem.lse.clone())
        };
        let mut rng = Rng::with_seed(seed);
        let w_v = Mxfp4::random(&mut rng, ROW, LATENTS);
        let gate: Vec<bf16> = (0..tokens * ROW as usize).map(|_| random_gate(&mut rng)).collect();

        let device = &engine.device;
        // Tensors are views, every other seed of dense memory, else with other tensors between their rows.
        let spread = seed % 2 == 1;
        let o = if spread && self.splits == 0 {
            Spread::new(device, &rows, [tokens, HEADS as usize, LATENTS as usize], [0, 1, 2], 64, POISON)?
        } else {
            Spread::dense(device, &rows, [tokens, HEADS as usize, LATENTS as usize])?
        };
        let values = [HEADS, VALUES, LATENTS / 2].map(|n| n as usize);
        let blocks = [HEADS, VALUES, LATENTS / 32].map(|n| n as usize);
        let (codes, scales) = if spread {
            let codes = Spread::new(device, &w_v.codes, values, [1, 0, 2], 16, 0xFF)?;
            (codes, Spread::new(device, &w_v.scales, blocks, [2, 1, 0], 1, 0xFF)?)
        } else {
            (Spread::dense(device, &w_v.codes, values)?, Spread::dense(device, &w_v.scales, blocks)?)
        };
        let lse = DeviceBuffer::from_slice(device, &all_lse)?;
        let seq_lens = DeviceBuffer::from_slice(device, &vec![1i32; self.requests() as usize])?;
        let starts: Vec<i32> = (0..=self.requests()).map(|r| (r * self.q) as i32).collect();
        let qsl = DeviceBuffer::from_slice(device, &starts)?;
        let gates = DeviceBuffer::from_slice(device, &gate)?;
        let core = DeviceBuffer::from_slice(device, &vec![POISON; gate.len()])?;
        let tensors = Tensors {
            o: o.view(),
            lse: (self.splits > 0).then(|| View::dense(&lse, [0, u64::from(HEADS)])),
            seq_lens: &seq_lens,
            qsl: &qsl,
            w_v: codes.view(),
            w_v_scale: scales.view(),
            gate: &gates,
        };
        let report = compiled.launch::<Self>(device.as_ref(), &self.host_args(&tensors, &core)?)?;
        let got = core.to_vec()?;

        let latents = combined(self, &rows, &all_lse);
        let reference = uv(tokens, &latents, &w_v, &gate);
        let (error, of_device) = if self.splits > 0 {
            let error = unsplit_bound(shards, tokens, &problem.partial, &problem.lse);
            (error, device_bound(shards, tokens, &problem.partial, &problem.lse, &latents))
        } else {
            (rounding(&latents), vec![0.0; latents.len()])
        };
        let exactly = vec![0.0; latents.len()];
        let of_device = if device.approximates() { &of_device } else { &exactly };
        let around = Around { latents: &latents, device: of_device, exact: &problem.unsplit, error: &error };
        let bounds = bounds(tokens, around, &w_v, &gate);
        let checks = checks(&got, &reference, &gate, &bounds).into();
        Ok(Outcome { checks, findings: report.findings, time: report.time })
    }
}

/// A tensor somewhere in device memory.
struct Spread<T> {
    buffer: DeviceBuffer<T>,
    strides: [u64; 3],
}

impl<T: lathe_dsl::builder::Element + bytemuck::Pod> Spread<T> {
    fn dense(device: &Arc<dyn Device>, data: &[T], extents: [usize; 3]) -> Result<Self, RunError> {
        let [_, rows, columns] = extents.map(|n| n as u64);
        Ok(Self { buffer: DeviceBuffer::from_slice(device, data)?, strides: [rows * columns, columns, 1] })
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
                let key = MlaPost { ranks: 1, tokens, q, splits, ctas };
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
}
