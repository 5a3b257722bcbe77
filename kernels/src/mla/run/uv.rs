//! Runs `mla_uv` on the latents of real attention and checks what comes out.

use fastrand::Rng;
use half::bf16;
use lathe_runtime::jit::Compiled;
use lathe_runtime::{DeviceBuffer, Engine};

use super::super::problem::Problem;
use super::super::reference::uv::{Around, Bounds, Interval, bounds, rounding, uv};
use super::super::uv::{MlaUv, MlaUvArgs, ROW};
use super::super::{HEADS, LATENTS, VALUES};
use super::{HOST_BYTES, Run, check_host_bytes, poisoned};
use crate::gemm::reference::Mxfp4;
use crate::registry::{Check, Outcome, RunError};

/// Host memory that a token takes: its latents in f64, twice in bf16 here and on the device, then for every value its gate, result,
/// reference and bounds.
const BYTES_A_TOKEN: u64 = (HEADS * LATENTS) as u64 * (8 + 3 * 2) + ROW as u64 * (5 * 2 + size_of::<Bounds>() as u64);

impl Run for MlaUv {
    fn check_size(&self) -> Result<(), RunError> {
        let bytes = BYTES_A_TOKEN * u64::from(self.tokens);
        check_host_bytes(self, bytes, || format!("a run takes at most {} tokens", HOST_BYTES / BYTES_A_TOKEN))
    }

    fn run(&self, engine: &Engine, compiled: &Compiled, seed: u64) -> Result<Outcome, RunError> {
        let tokens = self.tokens as usize;
        let problem = Problem::new(1, tokens, seed);
        let mut rng = Rng::with_seed(seed);
        let w_v = Mxfp4::random(&mut rng, ROW, LATENTS);
        let gate: Vec<bf16> = (0..tokens * ROW as usize).map(|_| random_gate(&mut rng)).collect();

        let device = &engine.device;
        let latents = DeviceBuffer::from_slice(device, &problem.partial)?;
        let (codes, scales) =
            (DeviceBuffer::from_slice(device, &w_v.codes)?, DeviceBuffer::from_slice(device, &w_v.scales)?);
        let gates = DeviceBuffer::from_slice(device, &gate)?;
        let core = poisoned(device, gate.len())?;
        let args = MlaUvArgs {
            latents: latents.arg(),
            w_v: codes.arg(),
            w_v_scale: scales.arg(),
            gate: gates.arg(),
            core: core.arg(),
        };
        let report = compiled.launch::<Self>(device.as_ref(), &args)?;
        let got = core.to_vec()?;

        let reference = uv(tokens, &problem.partial, &w_v, &gate);
        let error = rounding(&problem.partial);
        let around = Around {
            latents: &problem.partial,
            device: &vec![0.0; problem.partial.len()],
            exact: &problem.unsplit,
            error: &error,
        };
        let bounds = bounds(tokens, around, &w_v, &gate);
        let checks = checks(&got, &reference, &gate, &bounds).into();
        Ok(Outcome { checks, findings: report.findings, time: report.time })
    }
}

/// The two checks of gated values: against the reference, and against what was never split, rounded or quantised.
pub(super) fn checks(got: &[bf16], reference: &[bf16], gate: &[bf16], bounds: &[Bounds]) -> [Check; 2] {
    let equal = got.iter().zip(reference).filter(|(a, b)| a.to_bits() == b.to_bits()).count();
    let stage = Compared {
        against: "the stage in plain Rust",
        allowed: format!(
            "what accumulators within 4 · 2^-20 of Σ |a·b| of the exact sum give; {equal} of {} are equal bit for bit",
            got.len()
        ),
        expected: reference.iter().map(|x| x.to_f64()).collect(),
        interval: |b| b.stage,
    };
    let mathematics = Compared {
        against: "attention, W_UV and gate in f64, nothing rounded",
        allowed: "that, and what rounding latents to bf16 and to MXFP4 gives".to_owned(),
        expected: bounds.iter().zip(gate).map(|(b, gate)| b.mathematics.centre * gate.to_f64()).collect(),
        interval: |b| b.mathematics,
    };
    [stage, mathematics].map(|c| c.check(got, gate, bounds))
}

/// What a sigmoid gives, or now and then another number: the stage multiplies by anything.
pub(super) fn random_gate(rng: &mut Rng) -> bf16 {
    const OTHERS: [f32; 6] = [0.0, -0.0, 1.0, -1.0, 3.5, -1e-3];
    match rng.usize(0..64) {
        i if i < OTHERS.len() => bf16::from_f32(OTHERS[i]),
        _ => bf16::from_f64(1.0 / (1.0 + libm::exp(16.0 * rng.f64() - 8.0))),
    }
}

/// One comparison of the result.
struct Compared {
    against: &'static str,
    allowed: String,
    /// For the error that is reported.
    expected: Vec<f64>,
    interval: fn(&Bounds) -> Interval,
}

impl Compared {
    fn check(self, got: &[bf16], gate: &[bf16], bounds: &[Bounds]) -> Check {
        let (mut largest, mut first) = (0.0f64, None);
        for (i, (got, expected)) in got.iter().zip(&self.expected).enumerate() {
            let error = (got.to_f64() - expected).abs();
            largest = largest.max(if error.is_nan() { f64::INFINITY } else { error });
            if first.is_none() && !(self.interval)(&bounds[i]).admits(*got, gate[i]) {
                let (token, row) = (i / ROW as usize, i as u32 % ROW);
                let (head, value) = (row / VALUES, row % VALUES);
                first = Some(format!("token {token}, head {head}, value {value} is {got}, not {expected}"));
            }
        }
        Check {
            against: self.against,
            max_abs_error: largest,
            allowed: self.allowed,
            ok: first.is_none(),
            first_failure: first,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Build;

    #[test]
    fn every_key_is_right_on_both_wave_widths() {
        // 101 tokens are more tasks than workgroups.
        for tokens in [1, 3, 4, 8, 101] {
            for (device, seed) in [("cpu:gfx950", None), ("cpu:sm_90", Some(1)), ("cpu:gfx1201", Some(u64::MAX))] {
                let engine = Engine::open(device, seed).unwrap();
                let report = Build::run(&MlaUv { tokens }, &engine, 3).unwrap();
                assert!(report.ok, "{device} {tokens}: {:?}", report.checks);
                assert_eq!(report.findings, [""; 0], "{device} {tokens}");
                // The device's products are the reference's: exact sums, rounded once a step.
                assert_eq!(report.checks[0].max_abs_error, 0.0, "{device} {tokens}");
            }
        }
    }

    #[test]
    fn a_run_that_does_not_fit_is_refused() {
        let engine = Engine::open("cpu", None).unwrap();
        let error = Build::run(&MlaUv { tokens: 200_000 }, &engine, 0).unwrap_err().to_string();
        assert!(error.contains("a run takes at most"), "{error}");
    }
}
