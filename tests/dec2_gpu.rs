//! Promise: on an NVIDIA GPU `dec2` and each of its epilogues give what plain Rust gives, whole images of them, and how long the block
//! takes is told beside the least that its products and its memory could take there. Without a GPU these tests do nothing, and say why.

use std::sync::Arc;
use std::time::Instant;

use lathe_dsl::prelude::*;
use lathe_kernels::dec2::block::problem::Problem;
use lathe_kernels::dec2::block::{Dec2, Sent};
use lathe_kernels::dec2::options::Options;
use lathe_kernels::dec2::phases::{Phase, phases};
use lathe_kernels::dec2::reference::{Image, Outputs, frame};
use lathe_kernels::dec2::weights::WeightLayout;
use lathe_kernels::dec2::{LANES, WARPS};
use lathe_kernels::registry::Entry;
use lathe_runtime::device::Stream;
use lathe_runtime::jit::Compiled;
use lathe_runtime::{DeviceBuffer, Engine, Error};

use crate::filetests::machine;

/// The images that the block is made for.
const EXTENTS: [[u32; 2]; 2] = [[320, 184], [1280, 736]];

/// A GPU's engine; where there is none, says so.
fn gpu() -> Option<Engine> {
    match machine::gpu() {
        Ok(_) => Some(Engine::open("cuda", None).expect("there is a GPU")),
        Err(reason) => {
            println!("skipped: {reason}");
            None
        }
    }
}

fn of_extents([ex, ey]: [u32; 2]) -> Dec2 {
    Dec2 { ex, ey, colour_width: ex, colour_height: ey, ..Dec2::defaults() }
}

/// How far a pixel may be off, in parts of the largest number that it is mixed of: exponentials are the chip's own, and a weight
/// that is the next f16 moves the sum of nine by less.
const PIXEL_BOUND: f64 = 1.0 / 256.0;
/// Largest number in a problem's images.
const LARGEST: f64 = 2.0;
/// One in so many numbers of the image may differ at all: of 19543 inputs of the exponential 14 lie where chips can differ.
const ONE_IN: usize = 100;

/// Features have equal bits; numbers of the image too, but for what the chip's exponentials explain. How many of either differ.
fn compare(found: &Outputs, expected: &Outputs, what: &str) -> [usize; 2] {
    let different = found.features.iter().zip(&expected.features).filter(|(a, b)| a != b).count();
    assert_eq!(different, 0, "{what}: features that differ, of {}", expected.features.len());
    let numbers = |image: &Image| image.texels().as_flattened().to_vec();
    let (found, expected) = (numbers(&found.image), numbers(&expected.image));
    assert_eq!(found.len(), expected.len(), "{what}");
    let mut off = 0;
    for (i, (a, b)) in found.iter().zip(&expected).enumerate() {
        if a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()) {
            continue;
        }
        off += 1;
        let error = (a.to_f64() - b.to_f64()).abs();
        assert!(error <= PIXEL_BOUND * LARGEST, "{what}: channel {} of pixel {} is {a}, not {b}", i % 4, i / 4);
    }
    assert!(off * ONE_IN <= found.len(), "{what}: {off} numbers of {} differ", found.len());
    [different, off]
}

#[test]
fn whole_images_are_plain_rusts() {
    let Some(engine) = gpu() else { return };
    println!("extents    seed  features that differ  numbers of the image that differ  launch ms  plain Rust s");
    for extents @ [ex, ey] in EXTENTS {
        let key = of_extents(extents);
        let compiled = engine.jit.get(&key, engine.device.target()).expect("it compiles");
        let geometry = key.geometry().expect("a geometry");
        let options = key.options().expect("its options");
        let options = Options { mma_rounding: engine.device.mma_rounding(), ..options };
        for seed in 1..=3 {
            let problem = Problem::new(&key, &geometry, seed);
            let inputs = problem.inputs(&geometry);
            let (found, report) = key.launch_on(&engine, &compiled, &inputs).expect("it runs");
            let start = Instant::now();
            let expected = frame(&inputs, &options).expect("inputs of the key");
            let seconds = start.elapsed().as_secs_f64();
            let [different, off] = compare(&found, &expected, &format!("{ex}×{ey}, seed {seed}"));
            let ms = report.time.as_secs_f64() * 1e3;
            println!("{ex:4}×{ey:<4}  {seed:4}  {different:20}  {off:32}  {ms:9.3}  {seconds:12.1}");
        }
    }
}

/// Read and stored by texture units, images are what they are as buffers: bit for bit where samples are texels.
#[test]
fn images_by_texture_units_are_those_of_buffers() {
    let Some(engine) = gpu() else { return };
    const UNITS: u32 = 1;
    const BUFFERS: u32 = 2;
    for (extents, [colour_width, colour_height]) in [([64, 48], [64, 48]), ([33, 17], [40, 9]), ([9, 66], [1, 7])] {
        let outputs = |textures: u32, colour_filter: u32| {
            let key = Dec2 { colour_width, colour_height, textures, colour_filter, ..of_extents(extents) };
            let compiled = engine.jit.get(&key, engine.device.target()).expect("it compiles");
            let geometry = key.geometry().expect("a geometry");
            let problem = Problem::new(&key, &geometry, 4);
            let (found, report) = key.launch_on(&engine, &compiled, &problem.inputs(&geometry)).expect("it runs");
            println!(
                "{extents:?}, textures {textures}, filter {colour_filter}: {:.3} ms",
                report.time.as_secs_f64() * 1e3
            );
            found
        };
        let [units, buffers] = [UNITS, BUFFERS].map(|textures| outputs(textures, 0));
        assert_eq!(units.features, buffers.features, "{extents:?}");
        let bits = |image: &Image| image.texels().as_flattened().iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&units.image), bits(&buffers.image), "{extents:?}");
        assert_eq!(outputs(UNITS, 1).features, buffers.features, "{extents:?}");
        for [textures, colour_filter] in [[UNITS, 0], [UNITS, 1], [BUFFERS, 0], [BUFFERS, 1]] {
            let settings = [
                ("ex", extents[0]),
                ("ey", extents[1]),
                ("colour_width", colour_width),
                ("colour_height", colour_height),
                ("textures", textures),
                ("colour_filter", colour_filter),
            ];
            let settings = settings.map(|(name, value): (&str, u32)| (name.to_owned(), value.to_string()));
            let build = Entry::find("dec2.e38").expect("it is shipped").build(&settings).expect("a key");
            for check in &build.run(&engine, 5).expect("it runs").checks {
                println!("dec2.e38 {extents:?} textures {textures} filter {colour_filter}: {}", check.allowed);
                assert!(check.ok, "{settings:?}: {} {:?}", check.against, check.first_failure);
            }
        }
    }
}

#[test]
fn every_epilogue_is_plain_rusts() {
    let Some(engine) = gpu() else { return };
    let extents = [[1, 1], [11, 6], [16, 8], [33, 17], [96, 64]];
    println!("epilogue  registers  local bytes  largest error, of each of {extents:?}");
    for number in 1..=38u64 {
        let entry = Entry::find(&format!("dec2.e{number}")).expect("it is shipped");
        let mut errors = vec![];
        let mut resources = Default::default();
        for (i, [ex, ey]) in extents.into_iter().enumerate() {
            let settings = [("ex", ex), ("ey", ey), ("colour_width", ex), ("colour_height", ey)];
            let settings = settings.map(|(name, value): (&str, u32)| (name.to_owned(), value.to_string()));
            let build = entry.build(&settings).expect("a key");
            let report = build.run(&engine, 10 * number + i as u64).expect("it runs");
            for check in &report.checks {
                assert!(check.ok, "epilogue {number}, {ex}×{ey}: {} {:?}", check.against, check.first_failure);
                // Exponentials are in the last alone.
                assert!(number == 38 || check.max_abs_error == 0.0, "epilogue {number}, {ex}×{ey}: {check:?}");
            }
            errors.push(report.checks.iter().map(|c| c.max_abs_error).fold(0.0, f64::max));
            let compiled = build.compile(&engine.jit, engine.device.target()).expect("it compiles");
            resources = compiled.resources_on(&*engine.device).expect("it loads");
            // ptxas gives some of them, 15 and 17 for instance, 32 registers and keeps 8 bytes a lane in memory.
            assert!(resources.local_bytes <= Some(8), "epilogue {number}: registers in memory, {resources:?}");
        }
        let told = [resources.registers, resources.local_bytes].map(Option::unwrap_or_default);
        println!("{number:8}  {:9}  {:11}  {errors:?}", told[0], told[1]);
    }
}

build_key! {
    /// Multiplies 16×32 by 32×8 codes of e4m3, over and over.
    pub struct MmaRate {
        /// Workgroups of four warps.
        blocks: u32 = 2, range(1, 1 << 16);
        /// Steps, in each of which a warp multiplies two left by four right factors.
        steps: u32 = 64, range(8, 1 << 16);
        /// Whether each step has other left factors than the one before.
        fresh: u32 = 0, range(0, 1);
    }
}

kernel_args! {
    /// Arguments of [`MmaRate`].
    pub struct MmaRateArgs(key: MmaRate) {
        /// Words of codes that all factors are made of.
        codes: In<u32>[4] align 16;
        /// By lanes: the sum of all that a lane has of the products.
        sums: Out<f32>[u64::from(key.lanes())] align 4;
    }
}

/// Left and right factors of a step.
const FACTORS: [usize; 2] = [2, 4];

impl MmaRate {
    fn lanes(&self) -> u32 {
        self.blocks * WARPS * LANES
    }

    /// Products of all warps in all steps.
    fn products(&self) -> u64 {
        u64::from(self.blocks * WARPS) * u64::from(self.steps) * (FACTORS[0] * FACTORS[1]) as u64
    }

    /// What every lane's sum is where all codes are 1: fresh left factors are 1 to 1.875 in turn.
    fn sum(&self) -> f32 {
        let mean = if self.fresh == 1 { 1.4375 } else { 1.0 };
        (FACTORS[0] * FACTORS[1] * 4) as f32 * 32.0 * self.steps as f32 * mean
    }
}

/// The code of 1 in each byte of a word.
const ONES: u32 = 0x3838_3838;

impl Kernel for MmaRate {
    const NAME: &'static str = "mma_rate";
    type Args = MmaRateArgs;

    fn launch(&self) -> Launch {
        Launch::linear(self.blocks, WARPS * LANES)
    }

    fn build<'k>(&self, k: &'k Builder<'k>, args: MmaRateArgs<Dev<'k>>) {
        let thread = k.thread_id(Axis::X);
        let word = |i: usize| k.buffer_load::<u32>(args.codes, (thread + i as u32) & 3);
        let [left, right] = FACTORS;
        let left: Vec<[V<'k, u32>; 4]> = (0..left).map(|m| [0, 1, 2, 3].map(|i| word(m + i))).collect();
        let right: Vec<FragmentB<'k, MmaE4m3>> = (0..right).map(|n| k.fragment(&[0, 1].map(|i| word(n + i)))).collect();
        let zeros: Vec<FragmentC<'k, MmaE4m3>> = vec![k.zero_fragment(); left.len() * right.len()];
        let sums = k.for_range_with(0u32, self.steps, 1, Unroll::Never, zeros, |step, sums| {
            let changed = |words: &[V<'k, u32>; 4]| match self.fresh {
                0 => *words,
                // Fractions of 0 to 7 eighths.
                _ => words.map(|word| word ^ ((step & 7) * 0x0101_0101)),
            };
            let left: Vec<FragmentA<'k, MmaE4m3>> = left.iter().map(|words| k.fragment(&changed(words))).collect();
            let pairs = left.iter().flat_map(|a| right.iter().map(move |b| (*a, *b)));
            pairs.zip(sums).map(|((a, b), sum)| k.mma(a, b, sum)).collect()
        });
        let registers = sums.into_iter().flat_map(|sum| sum.registers());
        let sum = registers.reduce(|a, b| a + b).expect("products");
        k.buffer_store(sum, args.sums, k.block_id(Axis::X) * (WARPS * LANES) + thread);
    }
}

/// A rate's kernel with its buffers.
struct Rate {
    key: MmaRate,
    compiled: Arc<Compiled>,
    codes: DeviceBuffer<u32>,
    sums: DeviceBuffer<f32>,
}

impl Rate {
    fn new(engine: &Engine, key: MmaRate) -> Self {
        Self {
            compiled: engine.jit.get(&key, engine.device.target()).expect("it compiles"),
            codes: DeviceBuffer::from_slice(&engine.device, &[ONES; 4]).expect("fits"),
            sums: DeviceBuffer::from_slice(&engine.device, &vec![0.0; key.lanes() as usize]).expect("fits"),
            key,
        }
    }

    fn args(&self) -> MmaRateArgs<lathe_dsl::kernel::Host<'_>> {
        MmaRateArgs { codes: self.codes.arg(), sums: self.sums.arg() }
    }

    /// Every product was made.
    fn check(&self) {
        let wanted = self.key.sum();
        assert!(self.sums.to_vec().expect("read").iter().all(|sum| *sum == wanted), "{:?}: not {wanted}", self.key);
    }
}

/// What the rate is measured with multiplies as often as it says.
#[test]
fn a_rates_products_are_all_made() {
    for device in ["cpu:sm_90", "cpu:gfx950", "gcn:gfx1201"] {
        let engine = Engine::open(device, Some(1)).expect("it runs anywhere");
        for fresh in [0, 1] {
            let rate = Rate::new(&engine, MmaRate { fresh, ..MmaRate::defaults() });
            rate.compiled.launch::<MmaRate>(engine.device.as_ref(), &rate.args()).expect("it runs");
            rate.check();
        }
    }
}

/// Replays of a graph that count, and those before.
const ROUNDS: usize = 101;
const WARM_UP: usize = 10;

/// Microseconds of one of `count` equal pieces of work, one behind the other in a graph: the median of many replays.
fn microseconds(engine: &Engine, stream: &Stream, count: usize, work: impl Fn(&Stream) -> Result<(), Error>) -> f64 {
    let graph = stream.capture(|s| (0..count).try_for_each(|_| work(s))).expect("it is captured");
    let [begin, end] = [(); 2].map(|()| engine.device.event().expect("an event"));
    let mut times: Vec<f64> = (0..WARM_UP + ROUNDS)
        .map(|_| {
            begin.record(stream).expect("it is recorded");
            graph.launch(stream).expect("it is launched");
            end.record(stream).expect("it is recorded");
            begin.elapsed(&end).expect("both are passed").as_secs_f64() * 1e6 / count as f64
        })
        .skip(WARM_UP)
        .collect();
    times.sort_by(f64::total_cmp);
    times[ROUNDS / 2]
}

/// Words of a buffer that is copied to measure how fast memory is: 1 GiB.
const COPIED: usize = 1 << 28;

/// Launches of the block in a graph.
const LAUNCHES: usize = 20;

/// Prints one JSON object: rates of the GPU, and for each extent the block's time and the least that it could be, the larger of two:
/// its products at the rate of a kernel that does nothing else, and its inputs and outputs, each once, at the rate of a copy.
#[test]
fn the_blocks_time_and_its_floor() {
    let Some(engine) = gpu() else { return };
    let stream = engine.device.stream().expect("a stream");
    let rate = |fresh| {
        let rate = Rate::new(&engine, MmaRate { blocks: 2112, steps: 2048, fresh });
        let us = microseconds(&engine, &stream, 1, |s| rate.compiled.launch_on::<MmaRate>(s, &rate.args()));
        rate.check();
        rate.key.products() as f64 / us
    };
    // Products a microsecond.
    let rates = [0, 1].map(rate);
    let fastest = rates[0].max(rates[1]);
    let copied = {
        let [from, to] = [(); 2].map(|()| DeviceBuffer::<u32>::uninit(&engine.device, COPIED).expect("fits"));
        let us = microseconds(&engine, &stream, 1, |s| s.copy(&from, &to));
        (2 * 4 * COPIED) as f64 / us
    };
    let layout = WeightLayout::dec2().expect("a layout");
    let steps: u64 = phases(&layout).expect("products").iter().map(Phase::steps).map(u64::from).sum();
    let mut blocks = vec![];
    for extents in EXTENTS {
        let key = of_extents(extents);
        let compiled = engine.jit.get(&key, engine.device.target()).expect("it compiles");
        let geometry = key.geometry().expect("a geometry");
        let problem = Problem::new(&key, &geometry, 1);
        let inputs = problem.inputs(&geometry);
        let (once, _) = key.launch_on(&engine, &compiled, &inputs).expect("it runs");
        let sent: Sent = key.send(&engine.device, &inputs).expect("fits");
        let us = microseconds(&engine, &stream, LAUNCHES, |s| compiled.launch_on::<Dec2>(s, &sent.args()));
        let many = sent.outputs().expect("read");
        assert!(many.features == once.features, "{extents:?}: launches behind each other give something else");
        let products = steps * u64::from(WARPS) * geometry.grid().map(u64::from).iter().product::<u64>();
        let [mma_us, copy_us] = [products as f64 / fastest, sent.bytes() as f64 / copied];
        let floor = mma_us.max(copy_us);
        // Less than the least there is would be a wrong measurement.
        assert!(us >= 0.95 * floor, "{extents:?}: {us} µs, and the floor is {floor}");
        let resources = compiled.resources_on(&*engine.device).expect("it loads");
        let occupancy = compiled.occupancy(&*engine.device).expect("it is told");
        blocks.push(serde_json::json!({
            "extents": extents,
            "workgroups": geometry.grid().iter().product::<u32>(),
            "us": us,
            "floor_us": floor,
            "ratio": us / floor,
            "mma_us": mma_us,
            "copy_us": copy_us,
            "products": products,
            "bytes": sent.bytes(),
            "registers": resources.registers,
            "local_bytes": resources.local_bytes,
            "workgroups_a_unit": occupancy.map(|o| o.blocks_per_unit),
        }));
    }
    let report = serde_json::json!({
        "device": engine.device.name(),
        "mma_per_us": { "same_factors": rates[0], "other_factors_each_step": rates[1] },
        "mma_tflops": { "same_factors": rates[0] * 8192.0 / 1e6, "other_factors_each_step": rates[1] * 8192.0 / 1e6 },
        "copy_gb_per_s": copied / 1e3,
        "dec2": blocks,
    });
    println!("{report}");
}
