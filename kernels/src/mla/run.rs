//! Runs the mla kernels on real attention and checks what comes out. What the runs have in common is here.

mod post;
mod push;
mod ranks;
mod splits;
mod uv;

use std::sync::Arc;

use fastrand::Rng;
use half::bf16;
use lathe_dsl::kernel::{self, Kernel};
use lathe_runtime::device::Device;
use lathe_runtime::jit::Compiled;
use lathe_runtime::{DeviceBuffer, Engine, Error};

use super::combine::{MlaCombine, MlaCombineArgs};
use super::problem::Problem;
use super::reference::{Comparison, combine, compare, deviation, device_bound, unsplit_bound};
use super::{HEADS, LATENTS};
use crate::registry::{Check, Outcome, Run, RunError};

/// Host memory that making and checking an input may take.
const HOST_BYTES: u64 = 4 << 30;

/// Microseconds after which a wait on a GPU gives up where nothing else is asked for: longer than ranks are ever apart.
const GPU_WAIT_US: u32 = 10_000_000;

/// What the outputs hold before the launch: an element that the kernel forgets stays a NaN of this pattern.
const POISON: bf16 = bf16::from_bits(0x7FA5);

/// Refuses a key whose run takes more than [`HOST_BYTES`]; `hint` says what would be allowed.
fn check_host_bytes<K: Kernel>(key: &K, bytes: u64, hint: impl FnOnce() -> String) -> Result<(), RunError> {
    if bytes <= HOST_BYTES {
        return Ok(());
    }
    let gib = bytes as f64 / f64::from(1 << 30);
    Err(RunError::TooLarge { kernel: K::NAME, key: kernel::describe(key), gib, hint: hint() })
}

/// The hint to take less of some fields of a key.
fn fewer(what: &str) -> String {
    format!("a run takes at most {} GiB; take fewer {what}", HOST_BYTES >> 30)
}

/// An output of so many elements, all of them [`POISON`].
fn poisoned(device: &Arc<dyn Device>, len: usize) -> Result<DeviceBuffer<bf16>, Error> {
    DeviceBuffer::from_slice(device, &vec![POISON; len])
}

/// Latents of so many tokens, to be filled.
fn poisoned_latents(device: &Arc<dyn Device>, tokens: usize) -> Result<DeviceBuffer<bf16>, Error> {
    poisoned(device, tokens * (HEADS * LATENTS) as usize)
}

/// Epochs of two steps in a row, now and then those at which the tags or the count begin anew.
fn two_epochs(rng: &mut Rng) -> [u32; 2] {
    let first = match rng.u32(0..3) {
        0 => rng.u32(..),
        1 => u32::MAX,
        _ => (rng.u32(1..1000) << 22) - 1,
    };
    [first, first.wrapping_add(1)]
}

impl MlaCombine {
    /// Bytes that one token costs the host: the ranks' rows here and on the device, the f64 attention and its bounds, the
    /// output, its reference and the copies that are compared.
    fn host_bytes_a_token(&self) -> u64 {
        let latents = u64::from(HEADS * LATENTS);
        latents * (2 * 2 * u64::from(self.ranks) + 2 * 8 + 4 * 2)
    }
}

impl Run for MlaCombine {
    fn check_size(&self) -> Result<(), RunError> {
        let a_token = self.host_bytes_a_token();
        check_host_bytes(self, a_token * u64::from(self.tokens), || {
            format!("a run takes at most {} tokens with {} ranks", HOST_BYTES / a_token, self.ranks)
        })
    }

    fn run(&self, engine: &Engine, compiled: &Compiled, seed: u64) -> Result<Outcome, RunError> {
        let (ranks, tokens) = (self.ranks as usize, self.tokens as usize);
        let problem = Problem::new(ranks, tokens, seed);

        let device = &engine.device;
        let partial = DeviceBuffer::from_slice(device, &problem.partial)?;
        let lse = DeviceBuffer::from_slice(device, &problem.lse)?;
        let latents = poisoned_latents(device, tokens)?;
        let args = MlaCombineArgs { partial: partial.arg(), lse: lse.arg(), latents: latents.arg() };
        let report = compiled.launch::<Self>(device.as_ref(), &args)?;
        let got = latents.to_vec()?;

        let checks = combine_checks(device.as_ref(), &problem, &got);
        Ok(Outcome { checks, findings: report.findings, time: report.time })
    }
}

/// Holds combined latents of a problem against the stage in plain Rust and against attention itself.
fn combine_checks(device: &dyn Device, problem: &Problem, got: &[bf16]) -> Vec<Check> {
    let reference = combine(problem.ranks, problem.tokens, &problem.partial, &problem.lse);
    latents_checks(device, problem, &reference, got)
}

/// Holds combined latents of a problem against those of a reference, which has them combined in the same order, and against attention
/// itself.
fn latents_checks(device: &dyn Device, problem: &Problem, reference: &[bf16], got: &[bf16]) -> Vec<Check> {
    let Problem { ranks, tokens, partial, lse, unsplit, .. } = problem;
    let (ranks, tokens) = (*ranks, *tokens);
    let bounds = unsplit_bound(ranks, tokens, partial, lse);
    let stage = if device.approximates() {
        let bounds = device_bound(ranks, tokens, partial, lse, reference);
        let expected: Vec<f64> = reference.iter().map(|x| x.to_f64()).collect();
        bounded_check("the stage in plain Rust", got, &expected, &bounds)
    } else {
        stage_check(compare(got, reference))
    };
    vec![stage, bounded_check("attention in f64, never split", got, unsplit, &bounds)]
}

/// The device rounds `hw_exp2` and `hw_rcp` correctly, so nothing but equality is right.
fn stage_check(comparison: Comparison) -> Check {
    Check {
        against: "the stage in plain Rust",
        max_abs_error: comparison.max_abs,
        allowed: "equal bit for bit".to_owned(),
        ok: comparison.equal(),
        first_failure: comparison.first.map(|at| format!("{} elements differ, first at {at}", comparison.different)),
    }
}

fn bounded_check(against: &'static str, got: &[bf16], expected: &[f64], bounds: &[f64]) -> Check {
    let deviation = deviation(got, expected, bounds);
    Check {
        against,
        max_abs_error: deviation.max_abs,
        allowed: format!("the error bound of each element (largest part of it used: {:.3})", deviation.max_ratio),
        ok: deviation.within(),
        first_failure: deviation.worst.filter(|_| !deviation.within()).map(|at| format!("worst at {at}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Build;

    #[test]
    fn the_sanitizer_has_nothing_to_say_of_any_key() {
        // 101 tokens are more tasks than workgroups: the loop's barriers are needed, too.
        for tokens in [1, 3, 8, 101] {
            for ranks in [1, 2, 4, 8] {
                for (device, seed) in [("cpu:gfx950", None), ("cpu:sm_90", Some(1)), ("cpu:gfx950", Some(u64::MAX))] {
                    let engine = Engine::open(device, seed).unwrap();
                    let report = Build::run(&MlaCombine { ranks, tokens }, &engine, 3).unwrap();
                    assert!(report.ok, "{device} {ranks} {tokens}");
                    assert_eq!(report.findings, [""; 0], "{device} {ranks} {tokens}");
                }
            }
        }
    }
}
