//! Runs the block on random images and compares features and image with plain Rust.

use half::f16;
use lathe_dsl::kernel;
use lathe_dsl::numerics::Narrow;
use lathe_runtime::jit::Compiled;
use lathe_runtime::{DeviceBuffer, Engine};

use super::problem::Problem;
use super::{Dec2, Dec2Args};
use crate::dec2::reference::{Image, frame};
use crate::dec2::weights::WeightLayout;
use crate::registry::{Check, Outcome, Run, RunError};

/// Pixels whose check takes some seconds.
const MOST_PIXELS: u64 = 1 << 14;

/// Host memory that a pixel takes: planes and images, on either side.
const BYTES_A_PIXEL: u64 = 2 * (2 * 96 + 128 / 4 + 4 * 8);

/// What outputs hold before the launch.
const POISON: u32 = 0x7FA5_7FA5;

impl Run for Dec2 {
    fn check_size(&self) -> Result<(), RunError> {
        let colours = u64::from(self.colour_width) * u64::from(self.colour_height);
        let pixels = self.geometry().map_or(0, |g| g.grid().map(u64::from).iter().product::<u64>() * 64).max(colours);
        if pixels <= MOST_PIXELS {
            return Ok(());
        }
        Err(RunError::TooLarge {
            kernel: <Self as kernel::Kernel>::NAME,
            key: kernel::describe(self),
            gib: (pixels * BYTES_A_PIXEL) as f64 / f64::from(1 << 30),
            hint: format!("a run checks at most {MOST_PIXELS} pixels, those of whole windows and of the colour image"),
        })
    }

    fn run(&self, engine: &Engine, compiled: &Compiled, seed: u64) -> Result<Outcome, RunError> {
        // A key that was compiled was checked.
        let (Ok(geometry), Ok(options), Ok(layout)) = (self.geometry(), self.options(), WeightLayout::dec2()) else {
            unreachable!("the key was checked")
        };
        let problem = Problem::new(self, &geometry, seed);
        let image = problem.weights.pack(&layout).unwrap_or_else(|e| unreachable!("weights of this shape: {e}"));

        let device = &engine.device;
        let words = |bytes: &[u8]| DeviceBuffer::from_slice(device, &words(bytes));
        let texels = |image: &Image| DeviceBuffer::from_slice(device, image.texels().as_flattened());
        let image = DeviceBuffer::from_slice(device, &image)?;
        let (coarse, skip) = (words(&problem.coarse)?, words(&problem.skip)?);
        let arena = DeviceBuffer::from_slice(device, &vec![POISON; problem.skip.len() / 4])?;
        let (colour, blend, offset) = (texels(&problem.colour)?, texels(&problem.blend)?, texels(&problem.offset)?);
        let poison = vec![f16::from_bits(POISON as u16); 4 * problem.blend.texels().len()];
        let surface = DeviceBuffer::from_slice(device, &poison)?;
        let [sx, sy] = problem.colour.step();
        let args = Dec2Args {
            image: image.arg(),
            coarse: coarse.arg(),
            skip: skip.arg(),
            arena: arena.arg(),
            colour: colour.arg(),
            blend: blend.arg(),
            offset: offset.arg(),
            surface: surface.arg(),
            sx,
            sy,
        };
        let report = compiled.launch::<Self>(device.as_ref(), &args)?;

        let expected = frame(&problem.inputs(&geometry), &options)
            .unwrap_or_else(|e| unreachable!("inputs of this key's extents: {e}"));
        let features: Vec<u8> = arena.to_vec()?.into_iter().flat_map(u32::to_le_bytes).collect();
        let value = |code: &u8| f64::from(Narrow::E4m3.decode(*code));
        let checks = vec![
            near("features in plain Rust", features.iter().map(value), expected.features.iter().map(value), |i| {
                format!("code {i} of the arena")
            }),
            near(
                "the image in plain Rust",
                surface.to_vec()?.into_iter().map(f16::to_f64),
                expected.image.texels().as_flattened().iter().map(|x| x.to_f64()),
                |i| format!("channel {} of texel {}", i % 4, i / 4),
            ),
        ];
        Ok(Outcome { checks, findings: report.findings, time: report.time })
    }
}

fn words(bytes: &[u8]) -> Vec<u32> {
    let (words, _) = bytes.as_chunks();
    words.iter().map(|w| u32::from_le_bytes(*w)).collect()
}

/// Part of numbers that may be a code off and more: sums that a chip rounds otherwise than once fall to the other side of a
/// boundary between codes now and then, and what follows with them.
const PART_OFF: f64 = 0.05;

/// Every number within a quarter of itself and of the typical one, a NaN where one is wanted; no more than [`PART_OFF`] of them
/// more than an eighth off.
fn near(
    against: &'static str,
    got: impl Iterator<Item = f64>,
    expected: impl Iterator<Item = f64> + Clone,
    place: impl Fn(usize) -> String,
) -> Check {
    let (mut sum, mut finite) = (0.0, 0.0);
    for x in expected.clone().filter(|x| x.is_finite()) {
        (sum, finite) = (sum + x.abs(), finite + 1.0);
    }
    let typical = sum / f64::max(finite, 1.0);
    let (mut largest, mut off, mut count, mut first) = (0.0f64, 0.0, 0.0, None);
    let mut different = 0u64;
    for (i, (got, want)) in got.zip(expected).enumerate() {
        count += 1.0;
        if got == want || (got.is_nan() && want.is_nan()) {
            continue;
        }
        different += 1;
        let error = (got - want).abs();
        largest = largest.max(if error.is_nan() { f64::INFINITY } else { error });
        off += f64::from(error > want.abs() / 8.0 + typical / 64.0);
        if !(error <= (want.abs() + typical) / 4.0) && first.is_none() {
            first = Some(format!("{} is {got}, not {want}", place(i)));
        }
    }
    if off > PART_OFF * count && first.is_none() {
        first = Some(format!("{off} of {count} are more than an eighth off"));
    }
    Check {
        against,
        max_abs_error: largest,
        allowed: format!(
            "a quarter of the number and of the typical one, {typical:.3}; {} in 100 more than an eighth off ({different} differ, {off} by \
             so much)",
            PART_OFF * 100.0
        ),
        ok: first.is_none(),
        first_failure: first,
    }
}

#[cfg(test)]
mod tests {
    use lathe_dsl::kernel::BuildKey;

    use super::*;
    use crate::dec2::options::Options;
    use crate::registry::Build;

    fn runs(key: Dec2, device: &str, seed: u64) {
        let engine = Engine::open(device, Some(seed)).unwrap();
        let report = Build::run(&key, &engine, seed).unwrap();
        assert!(report.ok, "{device} {key:?}: {:?} {:?}", report.checks, report.findings);
        assert!(report.checks.iter().all(|c| c.max_abs_error == 0.0), "{device} {key:?}: {:?}", report.checks);
    }

    fn small(ex: u32, ey: u32) -> Dec2 {
        Dec2 { ex, ey, colour_width: ex, colour_height: ey, ..Dec2::defaults() }
    }

    #[test]
    fn the_block_equals_plain_rust_on_both_wave_widths() {
        for (seed, device) in ["cpu:gfx950", "cpu:sm_90", "cpu:gfx1201", "cpu:gfx942"].into_iter().enumerate() {
            runs(small(12, 4), device, seed as u64);
        }
    }

    #[test]
    fn images_of_any_extent_and_origin() {
        for (i, (ex, ey)) in [(2, 2), (3, 9), (9, 3), (16, 8), (17, 5)].into_iter().enumerate() {
            let [ox, oy] = [[0, 0], [4, 4], [8, 8], [2, 6], [14, 0]][i];
            let device = ["cpu:gfx950", "cpu:sm_90"][i % 2];
            runs(Dec2 { ox, oy, ..small(ex, ey) }, device, 3);
        }
    }

    #[test]
    fn every_option_is_the_references() {
        for (i, options) in Options::each_alternative().into_iter().enumerate() {
            if options.mma_acc != Options::default().mma_acc {
                continue;
            }
            let key = Dec2 { colour_width: 7, colour_height: 5, ..small(5, 3) };
            runs(key.with_options(&options), ["cpu:gfx950", "cpu:sm_90"][i % 2], 2);
        }
    }
}
