//! Speed of the JIT: `cargo bench -p lathe-kernels --bench jit`.
//!
//! What only a fresh process can show (the first compile, a hit in the disk cache) is measured in one: this program starts
//! itself, see [`fresh`].

mod fresh;

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use criterion::{BatchSize, Criterion, criterion_group};
use lathe_codegen::Options;
use lathe_dsl::verify::verify;
use lathe_dsl::{Target, trace};
use lathe_kernels::mla::combine::{MlaCombine, MlaCombineArgs};
use lathe_runtime::bundle::{Bundle, BundleWriter};
use lathe_runtime::device::{Device, DeviceId, LaunchReport};
use lathe_runtime::jit::{Compiled, Interpreter, Jit, Llvm};
use lathe_runtime::{ArgBlock, DeviceBuffer, Error};

/// The kernel that is traced and compiled.
const KEY: MlaCombine = MlaCombine { ranks: 8, tokens: 8 };

/// Takes launches and does nothing: what is left is what the host does for one.
#[derive(Default)]
struct Nowhere {
    next: AtomicU64,
}

impl Device for Nowhere {
    fn name(&self) -> String {
        "nowhere".to_owned()
    }

    fn id(&self) -> DeviceId {
        DeviceId(0) // `DeviceId::unique` begins at 1.
    }

    fn target(&self) -> Target {
        Target::GFX950
    }

    fn alloc(&self, bytes: u64) -> Result<u64, Error> {
        Ok(0x1000 + self.next.fetch_add(bytes.next_multiple_of(256), Ordering::Relaxed))
    }

    fn free(&self, _: u64) {}

    fn write(&self, _: u64, _: &[u8]) -> Result<(), Error> {
        Ok(())
    }

    fn read(&self, _: u64, _: &mut [u8]) -> Result<(), Error> {
        Ok(())
    }

    fn launch(&self, _: &Compiled, args: &ArgBlock) -> Result<LaunchReport, Error> {
        black_box(args);
        Ok(LaunchReport::default())
    }
}

fn tracing(c: &mut Criterion) {
    c.bench_function("trace/mla_combine_ranks_8", |b| {
        b.iter(|| trace(black_box(&KEY), Target::GFX950).expect("traces"))
    });
}

/// Cold compiles in a warm process: every compile after the first. The fastest of 50 is printed with its stages, too: on a
/// busy machine it says more than the mean.
fn compiling(c: &mut Criterion) {
    let mut group = c.benchmark_group("compile");
    group.sample_size(50).measurement_time(Duration::from_secs(10));
    for target in Target::all() {
        let kernel = trace(&KEY, target).expect("traces");
        let compile = || lathe_codegen::compile(&kernel, target, &Options::default()).expect("compiles").record;
        let fastest = (0..50).map(|_| compile()).min_by(|a, b| a.compile_ms.total_cmp(&b.compile_ms));
        if let Some(record) = fastest {
            let stages: Vec<_> = record.stages.iter().map(|s| format!("{} {:.2}", s.stage, s.ms)).collect();
            println!("fastest of 50 compiles for {target}: {:.2} ms ({})", record.compile_ms, stages.join(", "));
        }
        group.bench_function(format!("mla_combine_ranks_8/{target}"), |b| {
            b.iter(|| lathe_codegen::compile(black_box(&kernel), target, &Options::default()).expect("compiles"));
        });
    }
    group.finish();
}

/// The verifier, and its share of a cold compile: the JIT verifies what it has traced, and the code generator what it is given.
fn verifying(c: &mut Criterion) {
    let mut group = c.benchmark_group("verify");
    for (ranks, tokens) in [(1, 8), (8, 8), (8, 43_690)] {
        let (key, target) = (MlaCombine { ranks, tokens }, Target::GFX950);
        let kernel = trace(&key, target).expect("traces");
        let fastest = |n: u32, f: &dyn Fn()| {
            let time = |_| {
                let start = Instant::now();
                f();
                start.elapsed().as_secs_f64() * 1e3
            };
            (0..n).map(time).fold(f64::INFINITY, f64::min)
        };
        let verify = || verify(black_box(&kernel), target).expect("accepted");
        let verified = fastest(500, &|| drop(verify()));
        let traced = fastest(500, &|| drop(trace(&key, target)));
        let compiled = fastest(50, &|| drop(lathe_codegen::compile(&kernel, target, &Options::default())));
        let share = 200.0 * verified / (traced + compiled);
        println!(
            "ranks {ranks}, tokens {tokens}, {} operations: trace {traced:.3} ms, compile {compiled:.2} ms, of which the \
             verifier twice {verified:.3} ms, {share:.2} %",
            kernel.op_count()
        );
        group.bench_function(format!("mla_combine_ranks_{ranks}_tokens_{tokens}"), |b| b.iter(verify));
    }
    group.finish();
}

fn hits(c: &mut Criterion) {
    let jit = Jit::new(Llvm::default());
    let device: Arc<dyn Device> = Arc::new(Nowhere::default());
    jit.get(&KEY, Target::GFX950).expect("compiles");
    let rows = KEY.rows() as usize;
    let partial = DeviceBuffer::uninit(&device, 8 * rows * 512).expect("memory");
    let lse = DeviceBuffer::uninit(&device, 8 * rows).expect("memory");
    let latents = DeviceBuffer::uninit(&device, rows * 512).expect("memory");

    c.bench_function("memory_hit", |b| b.iter(|| jit.get(black_box(&KEY), Target::GFX950).expect("is there")));
    c.bench_function("memory_hit_and_pack", |b| {
        b.iter(|| {
            let compiled = jit.get(black_box(&KEY), Target::GFX950).expect("is there");
            let args = MlaCombineArgs { partial: partial.arg(), lse: lse.arg(), latents: latents.arg() };
            compiled.launch::<MlaCombine>(&*device, &args).expect("arguments fit")
        });
    });
}

/// A file of 1,000 kernels, for the device cpu: they are as large as code objects, and compile in no time.
fn bundles(c: &mut Criterion) {
    let jit = Jit::new(Interpreter);
    let mut writer = BundleWriter::new();
    for tokens in 1..=1000 {
        let key = MlaCombine { ranks: 8, tokens };
        writer.add(&key, &jit.get(&key, Target::GFX950).expect("compiles")).expect("fits");
    }
    assert_eq!(writer.len(), 1000);
    let bytes = writer.to_bytes().expect("fits");
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = dir.path().join("thousand.lathe");
    std::fs::write(&path, &bytes).expect("written");
    println!("bundle of 1,000 kernels: {} bytes", bytes.len());
    c.bench_function("bundle_open_1000", |b| b.iter(|| Bundle::open(black_box(&path)).expect("opens")));
    c.bench_function("bundle_from_bytes_1000", |b| {
        b.iter_batched(|| bytes.clone(), |bytes| Bundle::from_bytes(bytes).expect("opens"), BatchSize::LargeInput);
    });
}

/// Times that fresh processes report.
fn fresh_processes(c: &mut Criterion) {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut group = c.benchmark_group("fresh_process");
    group.sample_size(10).measurement_time(Duration::from_secs(5));
    for what in &fresh::ALL {
        what.prepare(dir.path());
        group.bench_function(what.name, |b| {
            b.iter_custom(|n| (0..n).map(|_| what.measure(dir.path())).sum());
        });
    }
    group.finish();
}

criterion_group!(benches, tracing, verifying, compiling, hits, bundles, fresh_processes);

fn main() {
    if fresh::is_child() {
        return;
    }
    benches();
    Criterion::default().configure_from_args().final_summary();
}
