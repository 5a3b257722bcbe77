//! Promise: device `hip` runs the shipped kernels through AMD's HIP runtime and tells what went wrong there. The runtime here is the
//! stand-in of `stand-in-hip/`, whose GPUs execute the code objects; see there for how strict it is.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, LazyLock};

use lathe_dsl::prelude::*;
use lathe_kernels::gemm::mx::GemmMx;
use lathe_kernels::mla::combine::MlaCombine;
use lathe_kernels::mla::post::MlaPost;
use lathe_kernels::mla::push::MlaPush;
use lathe_kernels::mla::ranks::MlaCombineRanks;
use lathe_kernels::registry::{Build, Entry};
use lathe_runtime::device::{Device, Hip, Pinned};
use lathe_runtime::jit::{Code, Compiled, Llvm};
use lathe_runtime::{DeviceBuffer, Engine, Error, KernelFault};

use crate::cuda::{Stray, StrayArgs};
use crate::devices::{Add, AddArgs, Adder};
use crate::group::{self, RANKS, Ring};
use crate::isolated::LATHE;

/// The stand-in, which cargo builds with this test and leaves beside it.
pub static LIBRARY: LazyLock<PathBuf> = LazyLock::new(|| {
    let exe = std::env::current_exe().expect("this test's path");
    exe.with_file_name("liblathe_stand_in_hip.so")
});

/// Its GPUs, by number.
const MI300X: u32 = 0;
const MI300A_XNACK: u32 = 3;
const MI50: u32 = 4;
const COUNT: u32 = 5;
const EXECUTED: [(u32, Target); 3] = [(MI300X, Target::GFX942), (1, Target::GFX950), (2, Target::GFX1201)];

fn open(number: u32, library: &Path) -> Engine {
    Engine::new(Hip::with_library(number, library).expect("the stand-in has it"), Llvm::default())
}

/// The engine of one of the stand-in's GPUs.
pub fn engine(number: u32) -> Engine {
    open(number, &LIBRARY)
}

/// A stand-in of its own: whatever happens to its GPUs, other tests do not see it.
struct Fresh(tempfile::TempDir);

impl Fresh {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        std::fs::copy(&*LIBRARY, dir.path().join("libamdhip64.so")).expect("it is copied");
        Self(dir)
    }

    fn engine(&self, number: u32) -> Engine {
        open(number, &self.0.path().join("libamdhip64.so"))
    }
}

fn settings(key: &[(&str, u32)]) -> Vec<(String, String)> {
    key.iter().map(|(name, value)| ((*name).to_owned(), value.to_string())).collect()
}

#[test]
fn mla_combine_is_right() {
    let entry = Entry::find(MlaCombine::NAME).expect("it is shipped");
    for (number, target) in EXECUTED {
        let engine = engine(number);
        assert_eq!((engine.device.name(), engine.device.target()), (format!("hip:{number}"), target));
        for ranks in [1, 8] {
            let report = entry
                .build(&settings(&[("ranks", ranks), ("tokens", 3)]))
                .expect("a key")
                .run(&engine, 7)
                .expect("it runs");
            assert!(!report.checks.is_empty());
            for check in &report.checks {
                assert!(check.ok, "{target}, ranks {ranks}: {} {:?}", check.against, check.first_failure);
            }
        }
    }
}

#[test]
fn mla_post_is_right() {
    let entry = Entry::find(MlaPost::NAME).expect("it is shipped");
    for (number, target) in EXECUTED {
        for splits in [0, 16] {
            let key = settings(&[("ranks", 1), ("tokens", 2), ("q", 2), ("splits", splits)]);
            let report = entry.build(&key).expect("a key").run(&engine(number), 7).expect("it runs");
            assert!(!report.checks.is_empty());
            for check in &report.checks {
                assert!(check.ok, "{target}, splits {splits}: {} {:?}", check.against, check.first_failure);
            }
        }
    }
}

/// Runs a key and holds it against the reference. The GPUs are the test's own: whatever else runs does not wait for them.
fn is_right(key: &dyn Build, number: u32, seed: u64) {
    let runtime = Fresh::new();
    let report = key.run(&runtime.engine(number), seed).unwrap_or_else(|e| panic!("hip:{number} {}: {e}", key.key()));
    assert!(report.ok && !report.checks.is_empty(), "hip:{number} {}: {:?}", key.key(), report.checks);
    // Bit for bit, where products are single instructions.
    if EXECUTED[number as usize].1 == Target::GFX950 || key.name() != MlaPost::NAME {
        assert_eq!(report.checks[0].max_abs_error, 0.0, "hip:{number} {}", key.key());
    }
}

#[test]
fn messages_are_pushed_and_combined() {
    for (number, _) in EXECUTED {
        is_right(&MlaPush { ranks: 2, tokens: 3, q: 1, ctas: 5 }, number, 7);
        is_right(&MlaCombineRanks { ranks: 2, tokens: 3, wait_us: 0 }, number, 8);
    }
}

/// Two ranks of a GPU, each in a stream of its own: they send each other rows and wait for them, in two steps.
#[test]
fn mla_post_of_ranks_is_right() {
    for (number, _) in EXECUTED {
        is_right(&MlaPost { ranks: 2, tokens: 2, q: 1, splits: 0, ctas: 3, wait_us: 0 }, number, 9);
    }
}

/// The ring's kernel for each of three GPUs.
fn ring(runtime: &Fresh, ring: Ring) -> (Vec<Arc<dyn Device>>, Vec<Arc<Compiled>>) {
    let engines: Vec<Engine> = (0..RANKS as u32).map(|number| runtime.engine(number)).collect();
    let kernels = engines.iter().map(|e| e.jit.get(&ring, e.device.target()).expect("it compiles")).collect();
    (engines.into_iter().map(|e| e.device).collect(), kernels)
}

#[test]
fn kernels_of_several_gpus_wait_for_each_other() {
    let runtime = Fresh::new();
    let (devices, kernels) = ring(&runtime, Ring { fault: 0 });
    for _ in 0..3 {
        group::run(&kernels, &devices, None).expect("they get on");
    }
    // On one GPU, in three streams.
    let devices = vec![devices[0].clone(); RANKS];
    let kernels = vec![kernels[0].clone(); RANKS];
    group::run(&kernels, &devices, None).expect("they get on");
}

/// What is never sent is waited for by all: each GPU has failed then, and the first rank's error is told.
#[test]
fn kernels_that_wait_for_ever_fail_on_every_gpu() {
    let runtime = Fresh::new();
    let (devices, kernels) = ring(&runtime, Ring { fault: 2 });
    let error = group::run(&kernels, &devices, None).expect_err("rank 0 waits for ever");
    assert!(error.starts_with("rank 0: ") && error.contains("hipErrorLaunchFailure"), "{error}");
    for device in &devices {
        assert!(device.alloc(16).is_err(), "{}", device.name());
    }
}

#[test]
fn gemm_mx_is_right() {
    let entry = Entry::find(GemmMx::NAME).expect("it is shipped");
    let key = settings(&[("m", 17), ("n", 65), ("k", 160), ("tile_m", 16), ("tile_n", 128)]);
    for (number, target) in EXECUTED {
        let report = entry.build(&key).expect("a key").run(&engine(number), 7).expect("it runs");
        assert!(!report.checks.is_empty());
        for check in &report.checks {
            assert!(check.ok, "{target}: {:?}", check.first_failure);
        }
    }
}

/// The stand-in does nothing that nobody waits for, so a call that ought to return at once is seen to.
#[test]
fn streams_return_before_the_work_is_done() {
    let adder = Adder::new(&engine(MI300X), 300);
    let stream = adder.device.stream().unwrap();
    let event = adder.device.event().unwrap();
    assert!(event.is_passed().unwrap(), "it was never recorded");
    stream.wait(&event).unwrap();
    event.synchronize().unwrap();
    adder.add(&stream, 1.0).unwrap();
    event.record(&stream).unwrap();
    let read = stream.read(&adder.y, Pinned::zeroed(&adder.device, 300).unwrap()).unwrap();
    assert!(!event.is_passed().unwrap());
    assert!(!read.is_done().unwrap());
    assert!(!stream.is_idle().unwrap());
    assert!(read.wait().unwrap().iter().all(|v| *v == 1.0));
    assert!(event.is_passed().unwrap());
    stream.synchronize().unwrap();
    assert!(stream.is_idle().unwrap());
}

/// Runs of one graph in two streams: on lazy streams nothing but the graph itself orders them.
#[test]
fn runs_of_a_graph_follow_each_other() {
    let adder = Adder::new(&engine(MI300X), 300);
    let [first, second] = [adder.device.stream().unwrap(), adder.device.stream().unwrap()];
    let copy = DeviceBuffer::from_slice(&adder.device, &[0.0f32; 300]).unwrap();
    let graph = first.capture(|s| adder.add(s, 1.0).and_then(|()| s.copy(&adder.y, &copy))).unwrap();
    graph.launch(&first).unwrap();
    graph.launch(&second).unwrap();
    graph.launch(&first).unwrap();
    graph.launch(&second).unwrap();
    drop(graph);
    second.synchronize().unwrap();
    assert!(first.is_idle().unwrap(), "the last run began after the one before it");
    assert!(copy.to_vec().unwrap().iter().all(|v| *v == 4.0));
}

#[test]
fn gpus_are_devices_of_their_own_and_wait_for_each_other() {
    let adders = [MI300X, 1].map(|number| Adder::new(&engine(number), 100));
    let [first, second] = adders.each_ref().map(|a| a.device.stream().unwrap());
    let event = adders[0].device.event().unwrap();
    adders[0].add(&first, 2.0).unwrap();
    event.record(&first).unwrap();
    second.wait(&event).unwrap();
    adders[1].add(&second, 3.0).unwrap();
    second.synchronize().unwrap();
    assert!(event.is_passed().unwrap());
    assert_eq!(adders.each_ref().map(Adder::y), [2.0, 3.0]);
    assert!(matches!(event.record(&second), Err(Error::Foreign { what: "event", .. })));
    let foreign = second.copy(&adders[0].x, &adders[1].y).unwrap_err();
    assert_eq!(foreign.to_string(), "the buffer is not one of hip:1");
}

/// Two runtimes in one process: their handles and addresses mean nothing to each other.
#[test]
fn what_is_another_runtime_s_is_refused() {
    let runtimes = [Fresh::new(), Fresh::new()];
    let [first, second] = runtimes.each_ref().map(|runtime| runtime.engine(MI300X).device);
    let event = first.event().unwrap();
    event.record(&first.stream().unwrap()).unwrap();
    let error = second.stream().unwrap().wait(&event).unwrap_err();
    assert!(matches!(error, Error::Foreign { what: "event", .. }), "{error}");
    let region = first.peer_region(16).unwrap();
    let error = second.open_region(&region).map(drop).unwrap_err().to_string();
    assert_eq!(error, "hip:0 does not reach memory of hip:0: they have different drivers");
    first.open_region(&region).expect("its own runtime's");
}

#[test]
fn a_gpu_that_cannot_be_used_is_named_with_the_reason() {
    let error = |number| Hip::with_library(number, &LIBRARY).map(drop).expect_err("no device").to_string();
    let all = "Double MI300X, Double MI355X, Double RX 9070, Double MI300A, Double MI50";
    assert_eq!(error(COUNT), format!("no device hip:{COUNT}: the HIP runtime has {COUNT}: {all}"));
    let chip = "Double MI50 is gfx906:sramecc+:xnack-, which Lathe makes no code for";
    assert_eq!(error(MI50), format!("no device hip:{MI50}: {chip}"));
    let library = Hip::with_library(0, Path::new("libm.so.6")).map(drop).expect_err("no runtime").to_string();
    assert!(library.starts_with("no device hip:0: libm.so.6: hipInit is missing"), "{library}");
}

/// AMD's own library, which Debian has, on a machine without an AMD GPU.
#[test]
fn amd_s_runtime_without_a_gpu_is_told_as_such() {
    let library = "libamdhip64.so.5";
    let error = match Hip::with_library(0, Path::new(library)).map(drop) {
        Ok(()) => return println!("skipped: there is an AMD GPU"),
        Err(error) => error.to_string(),
    };
    if error.contains("cannot be loaded") {
        return println!("skipped: {error}");
    }
    assert_eq!(error, "no device hip:0: the HIP runtime has no device");
    let (ok, text, _) = lathe(&["env"], Path::new(library));
    assert!(ok && text.contains("hip: no GPU: libamdhip64.so.5, HIP 5.") && text.contains(", has no device"), "{text}");
}

/// Signatures, numbers and sizes, by the C compiler and the header of Debian's package `libamdhip64-dev`.
#[test]
fn amd_s_header_says_what_lathe_believes() {
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("stand-in-hip/header.c");
    let compile = |args: &[&str]| {
        let output = Command::new("cc")
            .env("LC_ALL", "C")
            .args(["-std=c11", "-Wall", "-Werror"])
            .args(args)
            .arg(&header)
            .output();
        output.map(|o| (o.status.success(), String::from_utf8_lossy(&o.stderr).into_owned()))
    };
    match compile(&["-M"]) {
        Ok((true, _)) => {}
        // As gcc and clang say it of the package's own header, not of one that it includes.
        Ok((false, reason))
            if reason.contains("hip/hip_runtime_api.h: No such file")
                || reason.contains("'hip/hip_runtime_api.h' file not found") =>
        {
            return println!("skipped: {reason}");
        }
        other => panic!("{other:?}"),
    }
    let (ok, errors) = compile(&["-fsyntax-only"]).expect("it ran before");
    assert!(ok, "{errors}");
}

#[test]
fn memory_is_kept_apart() {
    let device = engine(MI300X).device;
    let address = device.alloc(10).unwrap();
    device.write(address, &[7; 10]).unwrap();
    let mut back = [0; 4];
    device.read(address + 6, &mut back).unwrap();
    assert_eq!(back, [7; 4]);
    let bad = device.read(address + 7, &mut back).unwrap_err().to_string();
    assert_eq!(bad, format!("no allocation of hip:0 covers 4 bytes at 0x{:x}", address + 7));
    assert!(matches!(device.alloc(1 << 62), Err(Error::OutOfMemory { .. })));
    assert_eq!(device.alloc(0).and_then(|empty| device.read(empty, &mut [])).ok(), Some(()));
    device.free(address);
    assert!(matches!(device.write(address, &back), Err(Error::BadAddress { .. })));
}

/// The kernel with its artifact changed.
fn changed(compiled: &Compiled, change: impl FnOnce(&mut Vec<u8>, &mut String)) -> Compiled {
    let Code::Object(artifact) = compiled.code() else { panic!("a GPU runs a code object") };
    let mut artifact = artifact.clone();
    change(&mut artifact.code, &mut artifact.symbol);
    let (kernel, record) = (compiled.kernel().clone(), compiled.record().clone());
    Compiled::new(kernel, artifact.target, Code::Object(artifact), record).with_key(compiled.key())
}

/// Where a code object's header has its flags: the second byte has the settings.
const SETTINGS: usize = 49;
const XNACK: u8 = 0b11;
const XNACK_OFF: u8 = 0b10;
const SRAMECC: u8 = 0b1100;
const SRAMECC_OFF: u8 = 0b1000;

#[test]
fn code_that_does_not_run_there_is_refused_with_both_names() {
    let adder = Adder::new(&engine(MI300X), 300);
    let refusal = |compiled: &Compiled, number| {
        compiled.resources_on(&*engine(number).device).map(drop).expect_err("it does not run there").to_string()
    };
    let set = |mask: u8, bits: u8| changed(&adder.kernel, |code, _| code[SETTINGS] = code[SETTINGS] & !mask | bits);
    let [here, there] = ["hip:0, gfx942:sramecc+:xnack-", "hip:3, gfx942:sramecc+:xnack+"];
    for (compiled, number, wanted) in [
        (set(XNACK, XNACK), MI300X, format!("gfx942:xnack+, but the device is {here}")),
        (set(XNACK, XNACK_OFF), MI300A_XNACK, format!("gfx942:xnack-, but the device is {there}")),
        (set(SRAMECC, SRAMECC_OFF), MI300X, format!("gfx942:sramecc-, but the device is {here}")),
    ] {
        let message = refusal(&compiled, number);
        // Settings that the compiler chose itself are named as well.
        let (start, end) = wanted.split_at("gfx942".len());
        assert!(message.starts_with(&format!("`add` was compiled for {start}")), "{message}");
        assert!(message.contains(end.split(',').next().expect("a setting")), "{message}");
        assert!(message.ends_with(end.split_once(", ").expect("a device").1), "{message}");
    }
    // Either setting runs where it is met.
    set(XNACK, XNACK_OFF).resources_on(&*engine(MI300X).device).expect("it is met");
    assert_eq!(refusal(&adder.kernel, 1), "`add` was compiled for gfx942, but the device is hip:1");
    // What the trace's target says is not believed.
    let other = Adder::new(&engine(1), 300);
    let Code::Object(artifact) = other.kernel.code() else { panic!("a GPU runs a code object") };
    let mixed = changed(&adder.kernel, |code, _| code.clone_from(&artifact.code));
    let message = refusal(&mixed, MI300X);
    assert!(message.starts_with("`add` was compiled for gfx950") && message.ends_with(here), "{message}");
}

#[test]
fn what_the_runtime_does_not_take_is_told_with_kernel_and_call() {
    let adder = Adder::new(&engine(MI300X), 300);
    let refusal = |compiled: Compiled| {
        compiled.resources_on(&*adder.device).map(drop).expect_err("it cannot be loaded").to_string()
    };
    let label = "of `add` {n=300}:";
    assert_eq!(
        refusal(changed(&adder.kernel, |_, symbol| symbol.push_str("_2"))),
        format!("hip:0: hipModuleGetFunction {label} hipErrorNotFound, named symbol not found")
    );
    assert_eq!(
        refusal(changed(&adder.kernel, |_, symbol| symbol.push('\0'))),
        format!("hip:0: hipModuleGetFunction {label} its entry point's name holds a zero byte")
    );
    assert_eq!(
        refusal(changed(&adder.kernel, |code, _| code.clear())),
        format!("hip:0: hipModuleLoadData {label} it is no 64-bit ELF file")
    );
    // Without its type: no shared object.
    assert_eq!(
        refusal(changed(&adder.kernel, |code, _| code[16] = 1)),
        format!("hip:0: hipModuleLoadData {label} hipErrorInvalidImage, device kernel image is invalid")
    );
    adder.add_and_wait(1.0);
    assert_eq!(adder.y(), 1.0, "the device goes on");
}

#[test]
fn a_fault_is_told_with_the_kernels_that_can_have_been_it() {
    for (how, wanted) in [
        ("alone", &["`stray` {n=3}"][..]),
        ("among others", &["`add` {n=100}", "`stray` {n=3}"]),
        ("in a graph", &["`stray` {n=3}"]),
        ("waited for", &["`stray` {n=3}"]),
    ] {
        let runtime = Fresh::new();
        let engine = runtime.engine(MI300X);
        let adder = Adder::new(&engine, 100);
        let stray = engine.jit.get(&Stray { n: 3 }, engine.device.target()).expect("it compiles");
        let args = StrayArgs { address: 64, value: 1.0 };
        let [first, second] = [engine.device.stream().expect("a stream"), engine.device.stream().expect("a stream")];
        adder.add(&first, 1.0).expect("it is launched");
        first.synchronize().expect("nothing is wrong yet");
        let result = match how {
            "alone" => stray.launch_on::<Stray>(&second, &args).and_then(|()| second.synchronize()),
            "among others" => {
                adder.add(&first, 1.0).expect("it is launched");
                stray.launch_on::<Stray>(&second, &args).and_then(|()| second.synchronize())
            }
            "in a graph" => {
                let graph = second.capture(|s| stray.launch_on::<Stray>(s, &args)).expect("it is captured");
                graph.launch(&second).and_then(|()| second.synchronize())
            }
            _ => stray.launch::<Stray>(&*engine.device, &args).map(drop),
        };
        let fault = |result: Result<(), Error>| -> Arc<KernelFault> {
            match result {
                Err(Error::Faulted(fault)) => fault,
                other => panic!("{how}: a fault is due, got {other:?}"),
            }
        };
        let told = fault(result);
        assert_eq!(told.kernels, wanted, "{how}");
        assert_eq!(told.failure, "hipErrorIllegalAddress, an illegal memory access was encountered");
        // Whatever is asked next says the same.
        assert_eq!(fault(first.synchronize()), told);
        assert_eq!(fault(adder.y.to_vec().map(drop)), told);
        assert_eq!(fault(adder.add(&first, 1.0)), told);
        // Another GPU goes on.
        let other = Adder::new(&runtime.engine(1), 100);
        other.add_and_wait(1.0);
        assert_eq!(other.y(), 1.0);
    }
}

#[test]
fn one_compiled_kernel_is_loaded_by_two_devices_of_its_chip() {
    let runtimes = [Fresh::new(), Fresh::new()];
    let [a, b] = runtimes.each_ref().map(|runtime| Adder::new(&runtime.engine(MI300X), 100));
    let args = AddArgs { x: b.x.arg(), y: b.y.arg(), factor: 5.0 };
    a.kernel.launch::<Add>(&*b.device, &args).expect("the same chip");
    a.add_and_wait(1.0);
    assert_eq!([a.y(), b.y()], [1.0, 5.0]);
}

/// `lathe` with the stand-in as the HIP runtime.
fn lathe(args: &[&str], library: &Path) -> (bool, String, String) {
    let mut command = Command::new(&*LATHE);
    let output =
        command.args(args).env("LATHE_CACHE", "off").env("LATHE_HIP_LIBRARY", library).output().expect("it starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn the_command_line_runs_kernels_there() {
    let run = |device| ["run", "mla_combine", "--set", "ranks=8", "--set", "tokens=1", "--device", device];
    for device in ["hip", "hip:1"] {
        let (ok, text, error) = lathe(&run(device), &LIBRARY);
        assert!(ok && text.contains(device), "{text}{error}");
    }
    let (ok, _, error) = lathe(&run("hip"), Path::new("/no/such/library.so"));
    assert!(!ok && error.contains("no device hip:0: /no/such/library.so cannot be loaded: "), "{error}");
    let (ok, text, error) = lathe(&["doctor", "--json"], &LIBRARY);
    assert!(ok, "{error}");
    for words in ["Double MI300X", "Double RX 9070", "LATHE_HIP_LIBRARY"] {
        assert!(text.contains(words), "{words} is not in {text}");
    }
}

#[test]
fn the_command_line_lists_gpus() {
    let (ok, text, _) = lathe(&["env"], &LIBRARY);
    assert!(ok, "{text}");
    let matrix = "
  hip:0    yes    yes    yes     no     no
  hip:1    yes    yes    yes     no     no
  hip:2    yes    yes    yes     no     no
  hip:3     no     no     no    yes     no
  hip:4     no     no     no     no    yes
";
    for words in [
        &LIBRARY.display().to_string(),
        "\nhip: ",
        ", HIP 7.0.0\n",
        "\n  hip:0  Double MI300X, gfx942:sramecc+:xnack-, 16.0 GiB\n",
        "\n  hip:4  Double MI50, gfx906:sramecc+:xnack-, 16.0 GiB\n",
        matrix,
        "\ncuda: ",
    ] {
        assert!(text.contains(words), "`{words}` is not in {text}");
    }
    let (ok, text, _) = lathe(&["env", "--json"], &LIBRARY);
    let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let gpus = &value["gpus"]["hip"];
    assert!(ok && gpus["version"] == "7.0.0", "{text}");
    assert_eq!(gpus["devices"][3]["architecture"], "gfx942:sramecc+:xnack+");
    assert_eq!(gpus["devices"][2]["peers"], serde_json::json!([true, true, true, false, false]));

    // Absent or broken, it is told and nothing fails.
    for (library, reason) in [
        ("/no/such/library.so", "/no/such/library.so cannot be loaded: "),
        ("libm.so.6", "libm.so.6: hipInit is missing"),
    ] {
        let (ok, text, error) = lathe(&["env"], Path::new(library));
        assert!(ok && text.contains(&format!("\nhip: no GPU: {reason}")), "{text}{error}");
        let (ok, text, error) = lathe(&["env", "--json"], Path::new(library));
        let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let absent = value["gpus"]["hip"]["absent"].as_str();
        assert!(ok && absent.is_some_and(|absent| absent.starts_with(reason)), "{text}{error}");
    }
}
