//! Runs an epilogue on random matrices and compares all that it stores with plain Rust.

use half::f16;
use lathe_dsl::numerics::Narrow;
use lathe_runtime::jit::Compiled;
use lathe_runtime::{DeviceBuffer, Engine};

use super::ports::{Form, Ports};
use super::problem::{Problem, Texel};
use super::{Dec2Stage, Dec2StageArgs};
use crate::dec2::WARPS;
use crate::dec2::host::{POISON, POISON_HALF, check_pixels, texels, untouched, words};
use crate::dec2::images;
use crate::dec2::options::ColourFilter;
use crate::dec2::weights::WeightLayout;
use crate::run::{Check, Outcome, Run, RunError};

/// Pixels whose words, up to 4096 bytes each, a host holds.
const MOST_PIXELS: u64 = 1 << 16;

/// Largest part of what is mixed that approximate exponentials and reciprocals may be off by.
const GATE_BOUND: f64 = 1.0 / 256.0;

/// Largest part of the largest texel around that a tap may be off by where texture units filter: a step of 1/256 along either axis,
/// over which two texels differ by no more than twice the largest, and what sums are rounded by.
const FILTER_BOUND: f64 = 2.0 * 2.0 / 256.0 + 1.0 / 128.0;

impl Run for Dec2Stage {
    fn check_size(&self) -> Result<(), RunError> {
        check_pixels(self, self.geometry(), [self.colour_width, self.colour_height], MOST_PIXELS)
    }

    fn run(&self, engine: &Engine, compiled: &Compiled, seed: u64) -> Result<Outcome, RunError> {
        // A key that was compiled was checked.
        let (Ok(table), Ok(geometry), Ok(options), Ok(layout)) =
            (self.table(), self.geometry(), self.options(), WeightLayout::dec2())
        else {
            unreachable!("the key was checked")
        };
        let problem = Problem::new(self, &table, &geometry, &options, seed);
        let image = problem.weights.pack(&layout).unwrap_or_else(|e| unreachable!("weights of this shape: {e}"));

        let device = &engine.device;
        let (image, skip) =
            (DeviceBuffer::from_slice(device, &image)?, DeviceBuffer::from_slice(device, &words(&problem.skip))?);
        let taken = DeviceBuffer::from_slice(device, &problem.taken)?;
        let given = DeviceBuffer::from_slice(device, &vec![POISON; problem.given.len().max(1)])?;
        let arena = DeviceBuffer::from_slice(device, &vec![POISON; problem.skip.len() / 4])?;
        let pixels = images::pixels(self.extents(), self.textures);
        let declared = images::colour(self.colour_width, self.colour_height, self.colour_filter, self.textures);
        let colour = texels(device, &problem.colour, declared)?;
        let (blend, offset) = (texels(device, &problem.blend, pixels)?, texels(device, &problem.offset, pixels)?);
        let surface = untouched(device, pixels)?;
        let [sx, sy] = problem.colour.step();
        let args = Dec2StageArgs {
            image: image.arg(),
            skip: skip.arg(),
            taken: taken.arg(),
            given: given.arg(),
            arena: arena.arg(),
            colour: colour.texture(),
            blend: blend.texture(),
            offset: offset.texture(),
            surface: surface.surface(),
            sx,
            sy,
        };
        let report = compiled.launch::<Self>(device.as_ref(), &args)?;

        let mut checks = vec![];
        let mut given = given.to_vec()?;
        given.truncate(problem.given.len());
        if !given.is_empty() {
            checks.push(operands(&given, &problem.given, &table.outputs));
        }
        let untouched = vec![POISON; problem.skip.len() / 4];
        let arena_expected = problem.arena.as_deref().map_or(untouched, words);
        checks.push(features(&arena.to_vec()?, &arena_expected));
        let filtered = device.approximates()
            && options.colour_filter == ColourFilter::Bilinear
            && !declared.is_emulated(device.target());
        let filter_bound = if filtered { FILTER_BOUND } else { 0.0 };
        checks.push(texels_within(&surface.to_vec()?, problem.surface.as_deref(), filter_bound));
        Ok(Outcome { checks, findings: report.findings, time: report.time })
    }
}

/// Words that differ: their numbers, the first difference, and the largest error.
#[derive(Default)]
struct Compared {
    largest: f64,
    first: Option<String>,
}

impl Compared {
    fn differ(&mut self, got: f64, expected: f64, place: impl FnOnce() -> String) {
        let error = (got - expected).abs();
        self.largest = self.largest.max(if error.is_nan() { f64::INFINITY } else { error });
        self.first.get_or_insert_with(|| format!("{} is {got}, not {expected}", place()));
    }

    fn check(self, against: &'static str, allowed: &str) -> Check {
        let ok = self.first.is_none();
        Check { against, max_abs_error: self.largest, allowed: allowed.to_owned(), ok, first_failure: self.first }
    }
}

/// What the epilogue gave to the next product.
fn operands(got: &[u32], expected: &[u32], ports: &Ports) -> Check {
    let mut compared = Compared::default();
    let words = ports.words() as usize;
    for (i, (got, expected)) in got.iter().zip(expected).enumerate() {
        let (warp, word) = (i / words, (i % words) as u32);
        let Some(port) = ports.ports.iter().rev().find(|port| port.first <= word) else { continue };
        let place = |part: usize| {
            let (block, z) = (warp / WARPS as usize, warp % WARPS as usize);
            format!("{:?} of block {block}, warp {z}, word {}, part {part}", port.matrix, word - port.first)
        };
        if port.form == Form::Halves {
            let halves = |word: u32| [word as u16, (word >> 16) as u16].map(f16::from_bits);
            for (part, (got, expected)) in halves(*got).into_iter().zip(halves(*expected)).enumerate() {
                if !same(got, expected) {
                    compared.differ(got.to_f64(), expected.to_f64(), || place(part));
                }
            }
        } else {
            compare_codes(&mut compared, *got, *expected, place);
        }
    }
    compared.check("operands of the next product, in plain Rust", "equal bits; NaNs as a class")
}

/// Codes of a word. A NaN's sign is whatever arithmetic made of it.
fn compare_codes(compared: &mut Compared, got: u32, expected: u32, place: impl Fn(usize) -> String) {
    let nan = |code: u8| code & 0x7F == 0x7F;
    for (part, (got, expected)) in got.to_le_bytes().into_iter().zip(expected.to_le_bytes()).enumerate() {
        if got != expected && !(nan(got) && nan(expected)) {
            let value = |code| f64::from(Narrow::E4m3.decode(code));
            compared.differ(value(got), value(expected), || place(part));
        }
    }
}

/// What lies in the arena.
fn features(got: &[u32], expected: &[u32]) -> Check {
    let mut compared = Compared::default();
    for (i, (got, expected)) in got.iter().zip(expected).enumerate() {
        compare_codes(&mut compared, *got, *expected, |part| format!("code {part} of word {i} of the arena"));
    }
    compared.check("the arena, in plain Rust", "equal codes; NaNs as a class; nothing else touched")
}

/// What lies in the surface.
fn texels_within(got: &[f16], expected: Option<&[Texel]>, filter_bound: f64) -> Check {
    let mut compared = Compared::default();
    let (mut largest, mut share) = (0.0f64, 0.0f64);
    for (i, got) in got.iter().enumerate() {
        let (texel, c) = (i / 4, i % 4);
        let place = || format!("channel {c} of texel {texel} of the surface");
        let Some(expected) = expected.map(|all| all[texel]) else {
            // Not even another NaN.
            if got.to_bits() != POISON_HALF.to_bits() {
                compared.differ(got.to_f64(), POISON_HALF.to_f64(), place);
            }
            continue;
        };
        let want = expected.expected[c];
        let around = if filter_bound == 0.0 { 0.0 } else { expected.around[c] * filter_bound };
        if !around.is_finite() {
            continue;
        }
        let bound = expected.size[c] * GATE_BOUND + around + want.to_f64().abs() / 1024.0;
        let error = (got.to_f64() - want.to_f64()).abs();
        if same(*got, want) {
            continue;
        }
        if error <= bound {
            (largest, share) = (largest.max(error), share.max(error / bound));
        } else {
            compared.differ(got.to_f64(), want.to_f64(), place);
        }
    }
    compared.largest = compared.largest.max(largest);
    let units = if filter_bound == 0.0 { "" } else { ", 3/128 of the texels around" };
    let allowed = format!("1/256 of what is mixed{units} and a last place (largest part of it used: {share:.3})");
    compared.check("the surface, in plain Rust", &allowed)
}

/// Equal bits, or both NaN.
fn same(a: f16, b: f16) -> bool {
    a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
}

#[cfg(test)]
mod tests {
    use lathe_dsl::kernel::BuildKey;

    use super::*;
    use crate::dec2::options::Options;
    use crate::dec2::phases::PHASES;
    use crate::run::Build;

    fn runs(key: Dec2Stage, device: &str, seed: u64) {
        let engine = Engine::open(device, Some(seed)).unwrap();
        let report = Build::run(&key, &engine, seed).unwrap();
        assert!(report.ok, "{device} {key:?}: {:?} {:?}", report.checks, report.findings);
        assert!(report.checks.iter().all(|c| c.max_abs_error == 0.0), "{device} {key:?}: {:?}", report.checks);
    }

    #[test]
    fn every_epilogue_equals_plain_rust_on_both_wave_widths() {
        for instance in 1..=PHASES {
            for (seed, device) in ["cpu:gfx950", "cpu:sm_90", "cpu:gfx1201"].into_iter().enumerate() {
                runs(Dec2Stage { instance, ..Dec2Stage::defaults() }, device, seed as u64);
            }
        }
    }

    #[test]
    fn every_layout_is_right_on_either_wave_width() {
        for instance in [1, 2, 7, 8, 9, 11, 13, 14, 37, 38] {
            for fragments in 1..=4 {
                for device in ["cpu:gfx950", "cpu:sm_90"] {
                    runs(Dec2Stage { instance, fragments, ..Dec2Stage::defaults() }, device, 9);
                }
            }
        }
    }

    #[test]
    fn every_option_is_the_references() {
        for options in Options::each_alternative() {
            for instance in [1, 8, 14, 37, 38] {
                let key = Dec2Stage { instance, colour_width: 11, colour_height: 5, ..Dec2Stage::defaults() };
                runs(key.with_options(&options), "cpu:gfx950", 4);
            }
        }
    }

    #[test]
    fn texels_are_the_same_by_texture_units_and_as_buffers() {
        for textures in [0, 1, 2] {
            for colour_filter in [0, 1] {
                let key = Dec2Stage { instance: 38, textures, colour_filter, ..Dec2Stage::defaults() };
                runs(Dec2Stage { colour_width: 11, colour_height: 5, ..key }, "cpu:sm_90", 6);
            }
        }
        let key = Dec2Stage { instance: 38, textures: 1, ..Dec2Stage::defaults() };
        let refused = Build::run(&key, &Engine::open("cpu:gfx950", None).unwrap(), 0).unwrap_err().to_string();
        assert!(refused.contains("image `colour` needs texture units, and Lathe uses none of gfx950"), "{refused}");
    }

    #[test]
    fn images_of_every_extent_keep_within_themselves() {
        for (i, ex) in [1, 2, 3, 7, 8, 9, 17].into_iter().enumerate() {
            for (j, ey) in [1, 2, 3, 8, 15].into_iter().enumerate() {
                let [ox, oy] = [[0, 0], [4, 4], [8, 8], [2, 6], [14, 0]][(i + j) % 5];
                for instance in [1, 37, 38] {
                    let key = Dec2Stage { instance, ex, ey, ox, oy, ..Dec2Stage::defaults() };
                    runs(key, ["cpu:gfx950", "cpu:sm_90"][(i + j) % 2], 7);
                }
            }
        }
    }
}
