//! Runs `mla_combine_splits` on real attention and checks what comes out.

use std::sync::Arc;

use half::bf16;
use lathe_runtime::device::Device;
use lathe_runtime::jit::Compiled;
use lathe_runtime::{DeviceBuffer, Engine, Error};

use super::super::problem::Problem;
use super::super::reference::splits::combine_own_splits;
use super::super::splits::{MlaCombineSplits, MlaCombineSplitsArgs};
use super::super::{HEADS, LATENTS};
use super::{Run, check_host_bytes, fewer, latents_checks, poisoned_latents};
use crate::registry::{Outcome, RunError};

/// Bytes of rows up to which those of other requests are NaN. Where there are more they are left as they are: devices that the host
/// simulates find out if somebody reads them, and take no memory for them.
const FILLED_BYTES: u64 = 64 << 20;

impl Run for MlaCombineSplits {
    fn check_size(&self) -> Result<(), RunError> {
        // Of every latent: the requests' own rows here and on the device, the f64 attention and its bounds, the output, its reference
        // and the copies that are compared.
        let of_latent = 2 * 2 * u64::from(self.per_request()) + 2 * 8 + 4 * 2;
        let bytes = u64::from(self.tokens) * u64::from(HEADS * LATENTS) * of_latent + 2 * FILLED_BYTES;
        check_host_bytes(self, bytes, || fewer("tokens or splits"))
    }

    fn run(&self, engine: &Engine, compiled: &Compiled, seed: u64) -> Result<Outcome, RunError> {
        let (per, tokens) = (self.per_request() as usize, self.tokens as usize);
        let mut problem = Problem::new(per, tokens, seed);
        problem.clear_empty_shards();
        let device = &engine.device;
        let (partial, lse) = self.send(device, &problem)?;
        let latents = poisoned_latents(device, tokens)?;
        let args = MlaCombineSplitsArgs { partial: partial.arg(), lse: lse.arg(), latents: latents.arg() };
        let report = compiled.launch::<Self>(device.as_ref(), &args)?;
        let got = latents.to_vec()?;

        let reference = combine_own_splits(self, self.tokens_a_task(), &problem.partial, &problem.lse);
        let checks = latents_checks(device.as_ref(), &problem, &reference, &got);
        Ok(Outcome { checks, findings: report.findings, time: report.time })
    }
}

impl MlaCombineSplits {
    /// Copies the rows and LSE of each request to a device, at its own place among all splits. Where another request's are, a token
    /// has an LSE and, up to [`FILLED_BYTES`], rows that would spoil its result.
    pub(super) fn send(
        &self,
        device: &Arc<dyn Device>,
        problem: &Problem,
    ) -> Result<(DeviceBuffer<bf16>, DeviceBuffer<f32>), Error> {
        let (per, tokens) = (self.per_request() as usize, self.tokens as usize);
        let (heads, row) = (HEADS as usize, (HEADS * LATENTS) as usize);
        let rows = self.splits as usize * tokens;
        let mut lse = vec![1e3; rows * heads];
        let bytes = rows as u64 * row as u64 * 2;
        let partial = match bytes <= FILLED_BYTES {
            true => DeviceBuffer::from_slice(device, &vec![bf16::NAN; rows * row])?,
            false => DeviceBuffer::uninit(device, rows * row)?,
        };
        for token in 0..tokens {
            let first = token / self.q as usize * per;
            for i in 0..per {
                let (to, from) = ((first + i) * tokens + token, i * tokens + token);
                let data = &problem.partial[from * row..][..row];
                device.write(partial.address() + (to * row * 2) as u64, bytemuck::cast_slice(data))?;
                lse[to * heads..][..heads].copy_from_slice(&problem.lse[from * heads..][..heads]);
            }
        }
        Ok((partial, DeviceBuffer::from_slice(device, &lse)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Build;
    use lathe_dsl::{Target, trace};

    const fn key(splits: u32, tokens: u32, q: u32) -> MlaCombineSplits {
        MlaCombineSplits { splits, tokens, q }
    }

    #[test]
    fn every_shape_of_task_is_right_on_both_wave_widths() {
        // Splits a request: 2, 8, 12, 16, 64, 100 and 128; tokens a task: 4, 2 and 1; the last two have more tasks than
        // workgroups.
        let keys = [
            key(2, 4, 4),
            key(16, 8, 4),
            key(12, 2, 2),
            key(16, 3, 3),
            key(64, 8, 8),
            key(100, 2, 2),
            key(128, 1, 1),
            key(8 * 5, 5, 1),
            key(23 * 8, 23, 1),
            key(23 * 2, 92, 4),
        ];
        for key in keys {
            for (device, seed) in [("cpu:gfx950", None), ("cpu:sm_90", Some(1)), ("cpu:gfx950", Some(u64::MAX))] {
                let engine = Engine::open(device, seed).unwrap();
                let report = Build::run(&key, &engine, 3).unwrap();
                assert!(report.ok, "{device} {key:?}: {:?}", report.checks);
                assert_eq!(report.findings, [""; 0], "{device} {key:?}");
            }
        }
    }

    #[test]
    fn tasks_are_as_large_as_fills_the_workgroups_and_divides_the_splits() {
        assert_eq!(key(128, 8, 8).tokens_a_task(), 1);
        assert_eq!(key(2, 4, 4).tokens_a_task(), 4);
        assert_eq!(key(64, 64, 64).tokens_a_task(), 4);
        assert_eq!(key(12, 6, 6).tokens_a_task(), 2);
        assert_eq!(key(23 * 8, 23, 1).tokens_a_task(), 1);
        // 128 tokens: 1536 tasks of one, 384 of four.
        assert_eq!(key(128, 128, 128).tokens_a_task(), 4);
    }

    #[test]
    fn keys_that_cannot_be_are_refused() {
        let refused = |key: MlaCombineSplits| trace(&key, Target::GFX950).unwrap_err().to_string();
        for (key, words) in [
            (key(8, 8, 3), "tokens must be a multiple of q: 8 tokens are no whole number of requests"),
            (key(9, 8, 4), "splits must be a multiple of the 2 requests (tokens / q)"),
            (key(3, 8, 8), "a request has 3 splits (splits · q / tokens); with q = 8 that must be a multiple of 2"),
            (key(12, 6, 6), ""),
            (key(10, 6, 6), "a request has 10 splits (splits · q / tokens); with q = 6 that must be a multiple of 4"),
            (key(12, 1, 1), "with q = 1 that must be a multiple of 8"),
            (key(2056, 8, 8), "a request has 2056 splits (splits · q / tokens), at most 2048 are allowed"),
            (key(1024, 1024, 512), "with 1024 tokens, splits must be at most 341"),
        ] {
            if words.is_empty() {
                trace(&key, Target::GFX950).unwrap();
            } else {
                assert!(refused(key).contains(words), "{}", refused(key));
            }
        }
    }
}
