//! Runs the block on random images and compares features and image with plain Rust.

use lathe_dsl::numerics::Narrow;
use lathe_runtime::Engine;
use lathe_runtime::jit::Compiled;

use super::problem::Problem;
use super::{Dec2, LaunchError};
use crate::dec2::host::{check_pixels, of_device};
use crate::dec2::reference::{Outputs, frame};
use crate::run::{Check, Outcome, Run, RunError};

/// Pixels that plain Rust makes in less than a minute on two processors.
const MOST_PIXELS: u64 = 1 << 20;

impl Run for Dec2 {
    fn check_size(&self) -> Result<(), RunError> {
        check_pixels(self, self.geometry(), [self.colour_width, self.colour_height], MOST_PIXELS)
    }

    fn run(&self, engine: &Engine, compiled: &Compiled, seed: u64) -> Result<Outcome, RunError> {
        // A key that was compiled was checked.
        let (Ok(geometry), Ok(options)) = (self.geometry(), self.options()) else {
            unreachable!("the key was checked")
        };
        let problem = Problem::new(self, &geometry, seed);
        let inputs = problem.inputs(&geometry);
        let (found, report) = match self.launch_on(engine, compiled, &inputs) {
            Ok(launched) => launched,
            Err(LaunchError::Runtime(e)) => return Err(e.into()),
            Err(e) => unreachable!("inputs of this key: {e}"),
        };
        let options = of_device(options, &*engine.device);
        let expected = frame(&inputs, &options).unwrap_or_else(|e| unreachable!("inputs of this key's extents: {e}"));
        Ok(Outcome { checks: checks(&found, &expected), findings: report.findings, time: report.time })
    }
}

/// What a launch gave against plain Rust.
pub(crate) fn checks(found: &Outputs, expected: &Outputs) -> Vec<Check> {
    let value = |code: &u8| f64::from(Narrow::E4m3.decode(*code));
    vec![
        near("features in plain Rust", found.features.iter().map(value), expected.features.iter().map(value), |i| {
            format!("code {i} of the arena")
        }),
        near(
            "the image in plain Rust",
            found.image.texels().as_flattened().iter().map(|x| x.to_f64()),
            expected.image.texels().as_flattened().iter().map(|x| x.to_f64()),
            |i| format!("channel {} of texel {}", i % 4, i / 4),
        ),
    ]
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
        // A NaN is not within.
        let within = error <= (want.abs() + typical) / 4.0;
        if !within && first.is_none() {
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
    use crate::run::Build;

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
    fn more_pixels_than_a_run_compares_are_refused_with_the_limit() {
        assert!(Dec2::defaults().check_size().is_ok());
        assert!(small(1280, 736).check_size().is_ok());
        let told = |key: Dec2| key.check_size().unwrap_err().to_string();
        let limit = "takes at most 1048576: set `ex` and `ey`, or `colour_width` and `colour_height`, lower";
        let windows = told(small(4000, 1000));
        assert!(windows.contains(": 4040064 pixels, ") && windows.ends_with(limit), "{windows}");
        let colours = told(Dec2 { colour_width: 4096, colour_height: 257, ..small(8, 8) });
        assert!(colours.contains(": 1052672 pixels, ") && colours.ends_with(limit), "{colours}");
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

    /// Every value of every option that the reference has: whether kernels do it, on all chips, as no chip lacks what one needs.
    const VALUES: [(&str, &str, bool); 23] = [
        ("mma_acc", "f32_per_k32", true),
        ("mma_acc", "native_f16", false),
        ("mma_acc", "sm90_emul", true),
        ("act_round", "stepwise", true),
        ("act_round", "fused", true),
        ("reduce_tree", "slice_even_odd", true),
        ("reduce_tree", "sequential", true),
        ("nan_sign", "positive", true),
        ("nan_sign", "keep", true),
        ("subpixel_order", "row_major", true),
        ("subpixel_order", "col_major", true),
        ("skip_border", "reflect101_clamp", true),
        ("skip_border", "clamp", true),
        ("coarse_border", "reflect101_clamp", true),
        ("coarse_border", "clamp", true),
        ("coarse_extent", "floor", true),
        ("coarse_extent", "ceil", true),
        ("tap_border", "reflect101", true),
        ("tap_border", "clamp", true),
        ("tap_order", "row_major", true),
        ("tap_order", "col_major", true),
        ("colour_filter", "nearest", true),
        ("colour_filter", "bilinear", true),
    ];

    #[test]
    fn kernels_do_every_option_or_refuse_it_by_name() {
        // The table has all of them: the default of each, and each alternative.
        let all = Options::each_alternative();
        assert_eq!(VALUES.len(), Options::NAMES.len() + all.len() - 1);
        let mut seen = vec![];
        for (i, (option, value, taken)) in VALUES.into_iter().enumerate() {
            let mut options = Options::default();
            options.set(option, value).unwrap();
            assert!(all.contains(&options) && !seen.contains(&(option, value)), "{option}={value}");
            seen.push((option, value));
            let key = Dec2 { colour_width: 7, colour_height: 5, ..small(5, 3) }.with_options(&options);
            assert_eq!(key.options(), Ok(options), "{option}={value}");
            if !taken {
                let told = lathe_dsl::trace(&key, lathe_dsl::Target::SM_90).unwrap_err().to_string();
                let wanted = format!("option `{option}`: `{value}` is for the reference alone: ");
                assert!(told.contains(&wanted), "{told}");
            } else if options != Options::default() {
                let devices = ["cpu:gfx950", "cpu:sm_90", "cpu:gfx1201"];
                runs(key, devices[i % 3], 2);
                if option == "mma_acc" {
                    devices.into_iter().for_each(|device| runs(key, device, 3));
                }
            }
        }
    }
}
