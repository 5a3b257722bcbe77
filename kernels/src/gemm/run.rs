//! Runs `gemm_mx` on random matrices and checks the product.

use fastrand::Rng;
use half::bf16;
use lathe_dsl::kernel;
use lathe_runtime::jit::Compiled;
use lathe_runtime::{DeviceBuffer, Engine};

use super::mx::{GemmMx, GemmMxArgs};
use super::reference::{Mxfp4, product};
use crate::run::{Check, Outcome, Run, RunError};

/// Products that checking may compute: some seconds.
const MOST_PRODUCTS: u64 = 1 << 32;

/// What D holds before the launch: an element that the kernel forgets stays a NaN of this pattern.
const POISON: bf16 = bf16::from_bits(0x7FA5);

/// Error of one step along K in units of what it adds up and of the sum that it adds to: the bound of `mfma_scaled`.
const STEP_BOUND: f64 = 1.0 / (1 << 20) as f64;

impl Run for GemmMx {
    fn check_size(&self) -> Result<(), RunError> {
        let products = [self.m, self.n, self.k].map(u64::from).iter().product::<u64>();
        if products <= MOST_PRODUCTS {
            return Ok(());
        }
        let numbers = u64::from(self.m + self.n) * u64::from(self.k) + 2 * u64::from(self.m) * u64::from(self.n);
        Err(RunError::TooLarge {
            kernel: <Self as kernel::Kernel>::NAME,
            key: kernel::describe(self),
            gib: (numbers * 8) as f64 / f64::from(1 << 30),
            hint: format!("a run checks at most {MOST_PRODUCTS} products, m · n · k"),
        })
    }

    fn run(&self, engine: &Engine, compiled: &Compiled, seed: u64) -> Result<Outcome, RunError> {
        let mut rng = Rng::with_seed(seed);
        let (a, b) = (Mxfp4::random(&mut rng, self.m, self.k), Mxfp4::random(&mut rng, self.n, self.k));

        let device = &engine.device;
        let upload = |bytes: &[u8]| DeviceBuffer::from_slice(device, bytes);
        let (a_codes, a_scale) = (upload(&a.codes)?, upload(&a.scales)?);
        let (b_codes, b_scale) = (upload(&b.codes)?, upload(&b.scales)?);
        let d = DeviceBuffer::from_slice(device, &vec![POISON; (self.m * self.n) as usize])?;
        let args = GemmMxArgs {
            a: a_codes.arg(),
            a_scale: a_scale.arg(),
            b: b_codes.arg(),
            b_scale: b_scale.arg(),
            d: d.arg(),
        };
        let report = compiled.launch::<Self>(device.as_ref(), &args)?;
        // Each step adds its error to sums that are no larger than all that is summed up.
        let steps = f64::from(self.k.div_ceil(128));
        let check = within(&d.to_vec()?, &product(&a, &b), self.n, steps * STEP_BOUND);
        Ok(Outcome { checks: vec![check], findings: report.findings, time: report.time })
    }
}

/// Every element within the steps' bound and one rounding to bf16.
fn within(got: &[bf16], expected: &[(f64, f64)], columns: u32, steps: f64) -> Check {
    let (mut largest, mut share, mut first) = (0.0f64, 0.0f64, None);
    for (i, (got, (want, size))) in got.iter().zip(expected).enumerate() {
        let error = (got.to_f64() - want).abs();
        // Half of the last place of bf16: 2^-8 at the bottom of a binade, and its smallest number.
        let bound = size * steps + want.abs() * 2f64.powi(-8) + 2f64.powi(-126);
        // A NaN is not within it.
        let held = error <= bound;
        if !held && first.is_none() {
            let (row, column) = (i / columns as usize, i % columns as usize);
            first = Some(format!("d[{row}][{column}] is {got}, not {want}"));
        }
        (largest, share) = (largest.max(error), share.max(error / bound));
    }
    Check {
        against: "A·Bᵀ in f64",
        max_abs_error: largest,
        allowed: format!(
            "2^-20 of Σ |a·b| for each 128 of k, and half of bf16's last place (largest part of it used: {share:.3})"
        ),
        ok: first.is_none(),
        first_failure: first,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Build;

    #[test]
    fn every_tail_and_every_tile_is_right() {
        let sizes = [(1, 1, 32), (16, 64, 128), (17, 65, 160), (130, 70, 96), (33, 257, 416), (128, 128, 512)];
        for (i, (m, n, k)) in sizes.into_iter().enumerate() {
            for (tile_m, tile_n) in [(16, 128), (32, 64), (64, 256), (128, 128)] {
                let device = ["cpu:gfx950", "cpu:sm_90", "cpu:gfx942", "cpu:gfx1201"][(i + tile_m as usize / 32) % 4];
                let engine = Engine::open(device, Some(i as u64)).unwrap();
                let key = GemmMx { m, n, k, tile_m, tile_n };
                let report = Build::run(&key, &engine, 5).unwrap();
                assert!(report.ok, "{device} {key:?}: {:?} {:?}", report.checks, report.findings);
            }
        }
    }

    #[test]
    fn keys_that_cannot_be_are_refused() {
        use lathe_dsl::{Target, trace};
        let refused = |key: GemmMx| trace(&key, Target::GFX950).unwrap_err().to_string();
        let key = GemmMx { m: 1, n: 1, k: 32, tile_m: 16, tile_n: 128 };
        assert!(refused(GemmMx { k: 48, ..key }).contains("k must be a multiple of 32"));
        assert!(refused(GemmMx { tile_n: 64, ..key }).contains("tile_n must be 128 or 256"));
        assert!(refused(GemmMx { m: 1 << 20, n: 1 << 20, ..key }).contains("a matrix has 2199023255552 bytes"));
        assert!(refused(GemmMx { m: 1 << 20, n: 8, tile_m: 16, ..key }).contains("65536 tiles along M"));
    }
}
