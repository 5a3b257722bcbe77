//! Promise: every matrix product gives A·B + C on every device: data whose sums are exact bit for bit, other data within the
//! bound that the operation states; and the CPU device rounds as sm_90 does if it is told to.

mod data;
mod kernel;
mod relayout;

use lathe_dsl::Target;
use lathe_dsl::numerics::MmaRounding;
use lathe_runtime::device::{Cpu, CpuOptions};
use lathe_runtime::jit::Interpreter;
use lathe_runtime::{DeviceBuffer, Engine, gcn};

use crate::filetests::machine;
use data::{Data, Problem};
use kernel::{CASES, LENGTHS, Products, ProductsArgs, THREADS};

/// D of every group, as bits.
fn run(engine: &Engine, key: Products, problem: &Problem) -> Vec<u32> {
    let upload = |words: &[u32], len: u64| {
        let mut all = words.to_vec();
        all.resize(len as usize, 0);
        DeviceBuffer::from_slice(&engine.device, &all).expect("memory")
    };
    let operands = [&problem.a, &problem.b, &problem.c, &problem.a_scale, &problem.b_scale];
    let [a, b, c, a_scale, b_scale] = std::array::from_fn(|i| upload(operands[i], LENGTHS[i]));
    let d = upload(&[], LENGTHS[5]);
    let args =
        ProductsArgs { a: a.arg(), b: b.arg(), c: c.arg(), a_scale: a_scale.arg(), b_scale: b_scale.arg(), d: d.arg() };
    let compiled = engine.jit.get(&key, engine.device.target()).unwrap_or_else(|e| panic!("{key:?}: {e}"));
    compiled.launch::<Products>(engine.device.as_ref(), &args).unwrap_or_else(|e| panic!("{key:?}: {e}"));
    let mut all = d.to_vec().expect("it copies");
    all.truncate(problem.c.len());
    all
}

/// The products that a target has; scaled ones with several choices of bytes.
fn keys(target: Target) -> Vec<(Products, u32)> {
    let mut keys = vec![];
    for case in 0..CASES {
        let key = Products { case, a_byte: 0, b_byte: 0 };
        let Some(lanes) = key.lanes(target) else { continue };
        keys.push((key, THREADS / lanes));
        if case == kernel::FP4 {
            keys.extend((1..4).map(|byte| (Products { case, a_byte: byte, b_byte: 3 - byte }, THREADS / lanes)));
        }
    }
    keys
}

fn problem((key, groups): (Products, u32), data: Data, seed: u64) -> Problem {
    let scaled = key.scaled().then_some([key.a_byte, key.b_byte]);
    Problem::new(key.of(), scaled, groups, data, seed)
}

/// Runs all products of the engine's target and holds them against the reference.
fn holds(engine: &Engine) {
    let target = engine.device.target();
    let keys = keys(target);
    assert!(keys.len() > 15, "{target} has only {} products", keys.len());
    let mut worst = 0.0f64;
    for (i, key) in keys.into_iter().enumerate() {
        let seed = i as u64;
        let what = format!("{} {:?} {:?}", engine.device.name(), key.0.of(), key.0);
        let exact = problem(key, Data::Exact, seed);
        exact.check(&run(engine, key.0, &exact), true, &what);
        let random = problem(key, Data::Random, seed);
        worst = worst.max(random.check(&run(engine, key.0, &random), false, &what));
    }
    println!("{}: largest error {worst:.3} of the bound", engine.device.name());
}

#[test]
fn the_interpreter_multiplies() {
    for target in Target::all() {
        holds(&Engine::open(&format!("cpu:{target}"), None).expect("it opens"));
    }
}

/// `cpu` told to round as the chip does, with the chip's own fragments.
fn as_hopper() -> Engine {
    let options = CpuOptions { mma: MmaRounding::Hopper, ..CpuOptions::default() };
    Engine::new(Cpu::new(Target::SM_90, options), Interpreter)
}

#[test]
fn the_interpreter_multiplies_as_sm_90_does() {
    holds(&as_hopper());
}

#[test]
fn the_chips_rounding_is_refused_for_other_fragments() {
    let options = CpuOptions { mma: MmaRounding::Hopper, ..CpuOptions::default() };
    let engine = Engine::new(Cpu::new(Target::GFX950, options), Interpreter);
    let key = Products { case: 0, a_byte: 0, b_byte: 0 };
    let compiled = engine.jit.get(&key, Target::GFX950).expect("it compiles");
    let words = |n: u64| DeviceBuffer::from_slice(&engine.device, &vec![0u32; n as usize]).expect("memory");
    let [a, b, c, a_scale, b_scale, d] = LENGTHS.map(words);
    let args =
        ProductsArgs { a: a.arg(), b: b.arg(), c: c.arg(), a_scale: a_scale.arg(), b_scale: b_scale.arg(), d: d.arg() };
    let error = compiled.launch::<Products>(engine.device.as_ref(), &args).expect_err("it is refused");
    assert!(error.to_string().contains("cdna4 fragments, which cannot be rounded as sm_90 does"), "{error}");
}

#[test]
fn the_amd_code_multiplies() {
    for target in gcn::targets() {
        holds(&Engine::open(&format!("gcn:{target}"), None).expect("it opens"));
    }
}

/// On an H200: bit for bit what `cpu` gives with the chip's rounding, whatever the data.
#[test]
fn the_gpu_multiplies_as_the_interpreter_says() {
    if let Err(reason) = machine::gpu() {
        println!("skipped: {reason}");
        return;
    }
    let gpu = Engine::open("cuda", None).expect("there is a GPU");
    holds(&gpu);
    if gpu.device.target() != Target::SM_90 {
        println!("skipped the comparison bit for bit: {}'s rounding is not measured", gpu.device.target());
        return;
    }
    let cpu = as_hopper();
    let mut outputs = 0;
    for key in keys(Target::SM_90) {
        for data in [Data::Exact, Data::Random, Data::Wild] {
            for seed in 0..40 {
                let problem = problem(key, data, seed);
                let [cpu, gpu] = [&cpu, &gpu].map(|engine| run(engine, key.0, &problem));
                outputs += gpu.len();
                let differ = cpu.iter().zip(&gpu).position(|(c, g)| c != g);
                if let Some(at) = differ {
                    let (c, g) = (cpu[at], gpu[at]);
                    panic!(
                        "{:?} {:?} {data:?} seed {seed}, output {at}: {c:#x} on cpu, {g:#x} on the GPU",
                        key.0.of(),
                        key.0
                    );
                }
            }
        }
    }
    println!("{outputs} outputs, all bits the same");
}

/// NVIDIA's assembler takes what is emitted for chips that no machine at hand has.
#[test]
fn ptxas_takes_every_product() {
    let ptxas = || std::process::Command::new("ptxas");
    if ptxas().arg("--version").output().is_err() {
        println!("skipped: there is no ptxas on this machine");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    for target in [Target::SM_90, Target::SM_89, Target::SM_120A] {
        let keys = keys(target);
        let products = keys.len();
        for (key, _) in keys {
            let artifact = crate::compiled(&key, target);
            let file = folder.path().join(format!("{}.ptx", artifact.symbol));
            std::fs::write(&file, &artifact.code).expect("it writes");
            let arch = format!("-arch={target}");
            let out = ptxas().arg(arch).arg(&file).args(["-o", "/dev/null"]).output().expect("it runs");
            let said = String::from_utf8_lossy(&out.stderr);
            assert!(out.status.success(), "{target} {:?}: {said}", key.of());
        }
        println!("{target}: ptxas takes all {products} products");
    }
}
