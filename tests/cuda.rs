//! Promise: on an NVIDIA GPU the shipped kernels give what they give on the CPU device, but for the bounds of the chip's own
//! approximations. Without a GPU these tests do nothing, and say why.

use std::ffi::{CString, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cudarc::driver::{result, sys};
use lathe_dsl::prelude::*;
use lathe_kernels::gemm::mx::GemmMx;
use lathe_kernels::mla::combine::MlaCombine;
use lathe_kernels::mla::post::MlaPost;
use lathe_kernels::mla::push::MlaPush;
use lathe_kernels::mla::ranks::MlaCombineRanks;
use lathe_kernels::mla::splits::MlaCombineSplits;
use lathe_kernels::mla::uv::MlaUv;
use lathe_kernels::registry::Entry;
use lathe_runtime::cache::{CacheOptions, DiskCache};
use lathe_runtime::device::{Cuda, Device};
use lathe_runtime::jit::{Code, Compiled, Jit, Llvm};
use lathe_runtime::key::DiskKey;
use lathe_runtime::{Engine, Error, KernelFault};

use crate::devices::Adder;
use crate::filetests::machine;
use crate::isolated::LATHE;

#[test]
fn mla_combine_keeps_its_bounds() {
    if let Err(reason) = machine::gpu() {
        println!("skipped: {reason}");
        return;
    }
    let engine = Engine::open("cuda", None).expect("there is a GPU");
    let entry = Entry::find(MlaCombine::NAME).expect("it is shipped");
    println!("ranks  tokens  launch ms  largest error against the stage and the unsplit attention");
    for ranks in [1, 2, 4, 8] {
        for tokens in [1, 3, 8, 64, 1000] {
            let settings = [("ranks".to_owned(), ranks.to_string()), ("tokens".to_owned(), tokens.to_string())];
            let report = entry.build(&settings).expect("a key").run(&engine, 7).expect("it runs");
            let errors: Vec<String> = report.checks.iter().map(|c| format!("{:.3e}", c.max_abs_error)).collect();
            println!("{ranks:5}  {tokens:6}  {:9.3}  {}", report.launch_ms, errors.join(", "));
            for check in &report.checks {
                assert!(check.ok, "ranks {ranks}, tokens {tokens}: {} {:?}", check.against, check.first_failure);
            }
        }
    }
}

#[test]
fn mla_combine_splits_keeps_its_bounds() {
    if let Err(reason) = machine::gpu() {
        println!("skipped: {reason}");
        return;
    }
    let engine = Engine::open("cuda", None).expect("there is a GPU");
    let entry = Entry::find(MlaCombineSplits::NAME).expect("it is shipped");
    println!("splits  tokens  q  launch ms  largest error against the stage and the unsplit attention");
    for (splits, tokens, q) in [(2, 4, 4), (100, 2, 2), (128, 8, 8), (184, 23, 1), (512, 64, 8), (2048, 8, 8)] {
        let key = [("splits", splits), ("tokens", tokens), ("q", q)];
        let settings = key.map(|(name, value): (&str, u32)| (name.to_owned(), value.to_string()));
        let report = entry.build(&settings).expect("a key").run(&engine, 7).expect("it runs");
        let errors: Vec<String> = report.checks.iter().map(|c| format!("{:.3e}", c.max_abs_error)).collect();
        println!("{splits:6}  {tokens:6}  {q}  {:9.3}  {}", report.launch_ms, errors.join(", "));
        for check in &report.checks {
            assert!(check.ok, "{key:?}: {} {:?}", check.against, check.first_failure);
        }
    }
}

#[test]
fn mla_uv_keeps_its_bounds() {
    if let Err(reason) = machine::gpu() {
        println!("skipped: {reason}");
        return;
    }
    let engine = Engine::open("cuda", None).expect("there is a GPU");
    let entry = Entry::find(MlaUv::NAME).expect("it is shipped");
    println!("tokens  launch ms  largest error against the stage and in f64");
    for tokens in [1, 3, 8, 64, 1000] {
        let report = entry.build(&[("tokens".to_owned(), tokens.to_string())]).expect("a key").run(&engine, 7);
        let report = report.expect("it runs");
        let errors: Vec<String> = report.checks.iter().map(|c| format!("{:.3e}", c.max_abs_error)).collect();
        println!("{tokens:6}  {:9.3}  {}", report.launch_ms, errors.join(", "));
        for check in &report.checks {
            assert!(check.ok, "tokens {tokens}: {} {:?}", check.against, check.first_failure);
        }
    }
}

#[test]
fn messages_are_pushed_and_combined() {
    if let Err(reason) = machine::gpu() {
        println!("skipped: {reason}");
        return;
    }
    let engine = Engine::open("cuda", None).expect("there is a GPU");
    let push = [(2, 1, 1, 256), (8, 8, 8, 256), (4, 64, 4, 3)].map(|(ranks, tokens, q, ctas)| {
        (MlaPush::NAME, vec![("ranks", ranks), ("tokens", tokens), ("q", q), ("ctas", ctas)])
    });
    let combine = [(2, 1, 0), (8, 8, 1_000_000), (4, 64, 0)].map(|(ranks, tokens, wait)| {
        (MlaCombineRanks::NAME, vec![("ranks", ranks), ("tokens", tokens), ("wait_us", wait)])
    });
    for (name, key) in push.into_iter().chain(combine) {
        let settings: Vec<_> =
            key.iter().map(|(name, value): &(&str, u32)| ((*name).to_owned(), value.to_string())).collect();
        let report = Entry::find(name).expect("it is shipped").build(&settings).expect("a key").run(&engine, 7);
        let report = report.expect("it runs");
        println!("{name} {key:?}: {:.3} ms", report.launch_ms);
        for check in &report.checks {
            assert!(check.ok, "{name} {key:?}: {} {:?}", check.against, check.first_failure);
        }
    }
}

#[test]
fn mla_post_of_one_rank_keeps_its_bounds() {
    if let Err(reason) = machine::gpu() {
        println!("skipped: {reason}");
        return;
    }
    let engine = Engine::open("cuda", None).expect("there is a GPU");
    let entry = Entry::find(MlaPost::NAME).expect("it is shipped");
    println!("splits  tokens  q  launch ms  largest error against the stages and in f64");
    for (splits, tokens, q) in [(0, 1, 1), (0, 8, 8), (0, 64, 4), (2, 4, 4), (100, 2, 2), (128, 8, 8), (512, 64, 8)] {
        let key = [("ranks", 1), ("splits", splits), ("tokens", tokens), ("q", q)];
        let settings = key.map(|(name, value): (&str, u32)| (name.to_owned(), value.to_string()));
        for seed in [6, 7] {
            let report = entry.build(&settings).expect("a key").run(&engine, seed).expect("it runs");
            let errors: Vec<String> = report.checks.iter().map(|c| format!("{:.3e}", c.max_abs_error)).collect();
            println!("{splits:6}  {tokens:6}  {q}  {:9.3}  {}", report.launch_ms, errors.join(", "));
            for check in &report.checks {
                assert!(check.ok, "{key:?}: {} {:?}", check.against, check.first_failure);
            }
        }
    }
}

#[test]
fn gemm_mx_keeps_its_bounds() {
    if let Err(reason) = machine::gpu() {
        println!("skipped: {reason}");
        return;
    }
    let engine = Engine::open("cuda", None).expect("there is a GPU");
    let entry = Entry::find(GemmMx::NAME).expect("it is shipped");
    println!("    m     n     k  tile_m  tile_n  launch ms  largest error");
    let sizes = [(1, 1, 32), (17, 65, 160), (33, 257, 416), (256, 256, 1024), (1000, 1000, 1056)];
    for (m, n, k) in sizes {
        for (tile_m, tile_n) in [(16, 128), (32, 64), (64, 256), (128, 128)] {
            let key = [("m", m), ("n", n), ("k", k), ("tile_m", tile_m), ("tile_n", tile_n)];
            let settings: Vec<_> = key.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
            let report = entry.build(&settings).expect("a key").run(&engine, 7).expect("it runs");
            let check = &report.checks[0];
            println!(
                "{m:5} {n:5} {k:5}  {tile_m:6}  {tile_n:6}  {:9.3}  {:.3e}",
                report.launch_ms, check.max_abs_error
            );
            assert!(check.ok, "{key:?}: {:?}", check.first_failure);
        }
    }
}

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

/// The only entry of a cache.
fn entry(dir: &Path) -> PathBuf {
    let folders = |dir: &Path| std::fs::read_dir(dir).expect("a folder").map(|item| item.expect("an item").path());
    let files =
        folders(&dir.join("v1")).filter(|d| d.file_name().is_some_and(|n| n.len() == 2)).flat_map(|d| folders(&d));
    let entries: Vec<PathBuf> = files.filter(|f| f.extension().is_some_and(|e| e == "lathe")).collect();
    assert_eq!(entries.len(), 1, "{entries:?}");
    entries[0].clone()
}

#[test]
fn a_cubin_is_made_once() {
    let Some(engine) = gpu() else { return };
    let dir = tempfile::tempdir().expect("a folder");
    let cache = Arc::new(DiskCache::open(CacheOptions::new(dir.path())));
    // A key of its own: the driver has a cache as well.
    let mut elements = 1000 + std::process::id() as usize % 10_000;
    let run = |what: &str, n: usize| {
        let device: Arc<dyn Device> = Arc::new(Cuda::with_cache(0, cache.clone()).expect("there is a GPU"));
        let engine = Engine { device, jit: Jit::new(Llvm::default()) };
        let adder = Adder::new(&engine, n);
        let start = Instant::now();
        adder.kernel.resources_on(&*engine.device).expect("it loads");
        println!("{what}: loaded in {:.3} ms", start.elapsed().as_secs_f64() * 1e3);
        adder.add_and_wait(2.0);
        assert_eq!(adder.y(), 2.0, "{what}");
        let stats = cache.stats();
        (stats.hits, stats.misses, stats.writes, stats.corrupt)
    };
    assert_eq!(run("nothing stored", elements), (0, 1, 1, 0));
    assert_eq!(run("stored", elements), (1, 1, 1, 0));
    // A bit flipped.
    let path = entry(dir.path());
    let mut bytes = std::fs::read(&path).expect("an entry");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, bytes).expect("it is written");
    assert_eq!(run("damaged", elements), (1, 2, 2, 1));
    // A sound entry that is no cubin of this chip.
    let key: DiskKey = path.file_stem().and_then(|stem| stem.to_str()).expect("a name").parse().expect("a key");
    let mut artifact = cache.get(&key).expect("it is there");
    artifact.code.truncate(4);
    artifact.code.resize(4096, 0);
    assert!(cache.put(&key, &artifact));
    let (hits, _, writes, _) = run("not loadable", elements);
    assert_eq!((hits, writes), (3, 4), "looked up here, found there, and written anew");
    // Another kernel is another entry.
    elements += 1;
    let (_, _, writes, _) = run("another kernel", elements);
    assert_eq!(writes, 5);
    drop(engine);
}

#[test]
fn a_module_newer_than_the_driver_is_refused_with_both_versions() {
    let Some(engine) = gpu() else { return };
    let adder = Adder::new(&engine, 1024);
    let Code::Object(artifact) = adder.kernel.code() else { panic!("a GPU runs PTX") };
    let text = String::from_utf8(artifact.code.clone()).expect("PTX is text");
    let version = text.lines().find(|line| line.starts_with(".version")).expect("a version").to_owned();
    let mut newer = artifact.clone();
    newer.code = text.replace(&version, ".version 99.9").into_bytes();
    let (kernel, record) = (adder.kernel.kernel().clone(), adder.kernel.record().clone());
    let compiled = Compiled::new(kernel, artifact.target, Code::Object(newer), record).with_key(adder.kernel.key());
    let message = compiled.resources_on(&*engine.device).expect_err("no driver reads it").to_string();
    println!("{message}");
    let wanted = "of `add` {n=1024}, its PTX is of version 99.9, and the driver, CUDA ";
    assert!(message.contains(wanted) && message.contains("reads PTX up to "), "{message}");
    adder.add_and_wait(1.0);
    assert_eq!(adder.y(), 1.0, "the device goes on");
}

build_key! {
    /// Stores to an address that it is given.
    pub struct Stray {
        /// Threads.
        n: u32 = 1, range(1, 64);
    }
}

kernel_args! {
    /// Arguments of [`Stray`].
    pub struct StrayArgs(key: Stray) {
        /// Address.
        address: Scalar<u64>;
        /// What is stored.
        value: Scalar<f32>;
    }
}

impl Kernel for Stray {
    const NAME: &'static str = "stray";
    type Args = StrayArgs;

    fn launch(&self) -> Launch {
        Launch::linear(1, self.n)
    }

    fn build<'k>(&self, k: &'k Builder<'k>, args: StrayArgs<Dev<'k>>) {
        k.ptr_store(args.value, args.address.to_ptr::<f32>());
    }
}

/// Set for the processes that the test of faults starts: a fault ends the use of the GPU by its process.
const FAULT: &str = "LATHE_TEST_FAULT";

#[test]
fn a_fault_is_told_with_the_kernels_that_can_have_been_it() {
    if gpu().is_none() {
        return;
    }
    for how in ["alone", "among others", "in a graph", "waited for", "by its launch"] {
        let exe = std::env::current_exe().expect("this test's path");
        let args = ["--exact", "cuda::fault", "--ignored", "--nocapture", "--test-threads=1"];
        let mut command = Command::new(exe);
        if how == "by its launch" {
            command.env("CUDA_LAUNCH_BLOCKING", "1");
        }
        let output = command.args(args).env(FAULT, how).output().expect("it starts");
        let text = String::from_utf8_lossy(&output.stdout);
        let error = String::from_utf8_lossy(&output.stderr);
        println!("{text}");
        assert!(output.status.success() && text.contains("told again by"), "{how}: {text}{error}");
    }
}

#[test]
#[ignore = "run by a_fault_is_told_with_the_kernels_that_can_have_been_it"]
fn fault() {
    let Ok(how) = std::env::var(FAULT) else { return };
    let engine = Engine::open("cuda", None).expect("there is a GPU");
    let adder = Adder::new(&engine, 1000);
    let stray = engine.jit.get(&Stray { n: 3 }, engine.device.target()).expect("it compiles");
    let args = StrayArgs { address: 64, value: 1.0 };
    let [first, second] = [engine.device.stream().expect("a stream"), engine.device.stream().expect("a stream")];
    adder.add(&first, 1.0).expect("it is launched");
    first.synchronize().expect("nothing is wrong yet");
    let result = match how.as_str() {
        "alone" => stray.launch_on::<Stray>(&second, &args).and_then(|()| second.synchronize()),
        "among others" => {
            adder.add(&first, 1.0).expect("it is launched");
            stray.launch_on::<Stray>(&second, &args).and_then(|()| second.synchronize())
        }
        "in a graph" => {
            let graph = second.capture(|s| stray.launch_on::<Stray>(s, &args)).expect("it is captured");
            graph.launch(&second).and_then(|()| second.synchronize())
        }
        "by its launch" => stray.launch_on::<Stray>(&second, &args),
        _ => stray.launch::<Stray>(&*engine.device, &args).map(drop),
    };
    let fault = |result: Result<(), Error>| -> Arc<KernelFault> {
        match result {
            Err(Error::Faulted(fault)) => fault,
            other => panic!("a fault is due, got {other:?}"),
        }
    };
    let told = fault(result);
    println!("{how}: {told}");
    let wanted: &[&str] = if how == "among others" { &["`add` {n=1000}", "`stray` {n=3}"] } else { &["`stray` {n=3}"] };
    assert_eq!(told.kernels, wanted);
    assert!(told.failure.starts_with("CUDA_ERROR_ILLEGAL_ADDRESS"), "{told}");
    // Whatever is asked next says the same.
    assert_eq!(fault(first.synchronize()), told);
    assert_eq!(fault(adder.y.to_vec().map(drop)), told);
    assert_eq!(fault(adder.add(&first, 1.0)), told);
    println!("told again by other calls");
}

#[test]
fn every_gpu_is_a_device_of_its_own() {
    if gpu().is_none() {
        return;
    }
    let count = Cuda::count();
    let adders: Vec<Adder> = (0..count)
        .map(|i| Adder::new(&Engine::open(&format!("cuda:{i}"), None).expect("it is counted"), 1 << 20))
        .collect();
    let streams: Vec<_> = adders.iter().map(|a| a.device.stream().expect("a stream")).collect();
    // Each waits for the one before it.
    for (i, (adder, stream)) in adders.iter().zip(&streams).enumerate() {
        println!("{}: {}", adder.device.name(), adder.device.target());
        if i > 0 {
            let done = adders[i - 1].device.event().expect("an event");
            done.record(&streams[i - 1]).expect("it is recorded");
            stream.wait(&done).expect("an event of another device");
        }
        adder.add(stream, 1.0 + i as f32).expect("it is launched");
    }
    for (i, (adder, stream)) in adders.iter().zip(&streams).enumerate() {
        stream.synchronize().expect("it is done");
        assert_eq!(adder.y(), 1.0 + i as f32, "cuda:{i}");
    }
    let error = Cuda::new(count).map(drop).expect_err("there are no more").to_string();
    assert!(error.starts_with(&format!("no device cuda:{count}: the driver has {count}: ")), "{error}");
}

/// What needs no GPU but a driver runs in a process of its own with a stand-in for it, which does work only when it is waited for.
#[test]
#[cfg(target_os = "linux")]
fn a_stand_in_is_driven_as_a_gpu_is() {
    let exe = std::env::current_exe().expect("this test's path");
    let library = exe.with_file_name("liblathe_stand_in_cuda.so");
    assert!(library.exists(), "cargo leaves {} beside this test", library.display());
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["libcuda.so.1", "libcuda.so"] {
        std::fs::copy(&library, folder.path().join(name)).expect("it is copied");
    }
    let own = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let path = std::env::join_paths(
        std::iter::once(folder.path().to_owned()).chain(std::env::split_paths(&own).filter(|p| p.is_absolute())),
    );
    let tests = [
        "devices::",
        "cuda::a_cubin_is_made_once",
        "cuda::a_module_newer_than_the_driver_is_refused_with_both_versions",
        "cuda::a_fault_is_told_with_the_kernels_that_can_have_been_it",
        "cuda::every_gpu_is_a_device_of_its_own",
        "images::images_may_be_dropped_while_they_are_used",
        "images::a_graph_keeps_its_images",
        "images::bad_images_are_refused_before_the_driver",
        "peers::",
    ];
    // These have kernels that it does not know.
    let others = ["peers::values_of_every_width_arrive_at_a_gpu", "peers::messages_of_running_kernels"];
    let path = path.expect("paths");
    let listed = Command::new(&*LATHE).arg("env").env("LD_LIBRARY_PATH", &path).output().expect("it starts");
    let listed = String::from_utf8_lossy(&listed.stdout);
    for line in [
        "cuda: libcuda.so.1, CUDA 12.4",
        "  cuda:0  Stand-in, sm_90, 128.0 GiB",
        "  cuda:1     yes     yes      no",
        "  cuda:2      no      no     yes",
    ] {
        assert!(listed.lines().any(|l| l.starts_with(line)), "`{line}` is not in {listed}");
    }
    let output = Command::new(exe)
        .args(tests)
        .args(others.iter().flat_map(|name| ["--skip", name]))
        .args(["--nocapture", "--test-threads=1"])
        .env("LD_LIBRARY_PATH", path)
        .output()
        .expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let passed = text.rsplit("test result: ok. ").next().and_then(|t| t.split(' ').next()?.parse().ok());
    let complete = passed.is_some_and(|n: usize| n > tests.len()) && !text.contains("skipped");
    assert!(output.status.success() && complete, "{text}{}", String::from_utf8_lossy(&output.stderr));
}

/// Launches of a round; fewer than a stream takes before it makes the host wait.
const LAUNCHES: usize = 500;
/// Rounds, of which the fastest counts: whatever else the machine does makes one slower.
const ROUNDS: usize = 60;

/// Time a launch: until the host has given all of them, and until they are done.
#[derive(Clone, Copy)]
struct Cost {
    given: Duration,
    done: Duration,
}

impl Cost {
    const NONE: Self = Self { given: Duration::MAX, done: Duration::MAX };

    /// Runs a round and keeps the best.
    fn round(&mut self, give: impl FnOnce(), wait: impl FnOnce()) {
        let start = Instant::now();
        give();
        let given = start.elapsed();
        wait();
        let done = start.elapsed();
        *self = Self { given: self.given.min(given), done: self.done.min(done) };
    }

    fn print(&self, what: &str, bare: &Self) {
        let ns = |d: Duration| d.as_secs_f64() * 1e9 / LAUNCHES as f64;
        let ratio = |a: Duration, b: Duration| a.as_secs_f64() / b.as_secs_f64();
        println!(
            "{what:<28} {:>9.0} {:>9.3} {:>9.0} {:>9.3}",
            ns(self.given),
            ratio(self.given, bare.given),
            ns(self.done),
            ratio(self.done, bare.done)
        );
    }
}

/// The kernel without Lathe's runtime: its PTX in a module, and a stream.
struct Bare {
    module: sys::CUmodule,
    function: sys::CUfunction,
    stream: sys::CUstream,
}

impl Bare {
    /// In the primary context of the first GPU, which the device keeps.
    fn new(compiled: &Compiled) -> Self {
        let Code::Object(artifact) = compiled.code() else { panic!("a GPU runs PTX") };
        let ptx = CString::new(artifact.code.clone()).expect("PTX is text");
        let device = result::device::get(0).expect("a GPU");
        // SAFETY: the driver is initialised and has the device; the context is kept by the device under test; the text ends in a
        // zero byte.
        unsafe {
            let context = result::primary_ctx::retain(device).expect("a context");
            result::ctx::set_current(context).expect("it is current");
            result::primary_ctx::release(device).expect("the device keeps it");
            let module = result::module::load_data(ptx.as_ptr().cast()).expect("it loads");
            let name = CString::new(artifact.symbol.as_str()).expect("a name");
            let function = result::module::get_function(module, name).expect("its entry point");
            let stream = result::stream::create(result::stream::StreamKind::Default).expect("a stream");
            Self { module, function, stream }
        }
    }

    fn launch(&self, x: u64, y: u64, factor: f32) {
        let mut params: [*mut c_void; 3] =
            [(&raw const x).cast_mut().cast(), (&raw const y).cast_mut().cast(), (&raw const factor).cast_mut().cast()];
        // SAFETY: the kernel takes two pointers and a float, which the driver copies before it returns.
        unsafe { result::launch_kernel(self.function, (1, 1, 1), (256, 1, 1), 0, self.stream, &mut params) }
            .expect("it is launched");
    }

    fn wait(&self) {
        // SAFETY: the stream lives.
        unsafe { result::stream::synchronize(self.stream) }.expect("it is done");
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        // SAFETY: both were made once and nothing runs.
        unsafe {
            result::stream::destroy(self.stream).expect("a stream");
            result::module::unload(self.module).expect("a module");
        }
    }
}

/// Printed as a table; a launch through Lathe, with its arguments checked, may take 1.1 times a bare one.
#[test]
fn a_launch_costs_what_the_driver_s_costs() {
    let Some(engine) = gpu() else { return };
    let adder = Adder::new(&engine, 256);
    let bare = Bare::new(&adder.kernel);
    let stream = engine.device.stream().expect("a stream");
    let (x, y) = (adder.x.address(), adder.y.address());
    let all = |s: &_| (0..LAUNCHES).try_for_each(|_| adder.add(s, 0.5));
    let graph = stream.capture(all).expect("it is captured");
    let [mut driver, mut lathe, mut replay] = [Cost::NONE; 3];
    for _ in 0..ROUNDS {
        driver.round(|| (0..LAUNCHES).for_each(|_| bare.launch(x, y, 0.5)), || bare.wait());
        lathe.round(|| all(&stream).expect("they are launched"), || stream.synchronize().expect("they are done"));
        replay.round(|| graph.launch(&stream).expect("it is launched"), || stream.synchronize().expect("it is done"));
    }
    println!("{:<28} {:>9} {:>9} {:>9} {:>9}", "ns a launch", "given", "ratio", "done", "ratio");
    driver.print("cuLaunchKernel", &driver);
    lathe.print("Compiled::launch_on", &driver);
    replay.print("Graph::launch, a node", &driver);
    assert_eq!(adder.y(), (3 * ROUNDS * LAUNCHES) as f32 * 0.5, "each of them ran");
    for (lathe, driver) in [(lathe.given, driver.given), (lathe.done, driver.done)] {
        assert!(lathe <= driver.mul_f64(1.1), "{lathe:?} against {driver:?}");
    }
}
