//! Promise: every matrix product gives A·B + C on every device: data whose sums are exact bit for bit, other data within the
//! bound that the operation states; and the CPU device rounds as sm_90 does if it is told to.

mod data;
mod kernel;
mod relayout;

use std::fmt::Write as _;

use lathe_dsl::Target;
use lathe_dsl::numerics::MmaRounding;
use lathe_kernels::gemm::mx::GemmMx;
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
        let key = Products { case, a_byte: case % 4, b_byte: case / 4 % 4, depth: 0 };
        let Some(lanes) = key.lanes(target) else { continue };
        keys.push((key, THREADS / lanes));
        if case == kernel::FP4 {
            keys.extend((0..4).map(|byte| (Products { a_byte: byte, b_byte: 3 - byte, ..key }, THREADS / lanes)));
        }
    }
    keys
}

fn problem((key, groups): (Products, u32), data: Data, seed: u64) -> Problem {
    let scaled = key.scaled().then_some([key.a_byte, key.b_byte]);
    let left = (key.depth != 0).then_some((kernel::ROWS, key.depth));
    Problem::new(key.of(), scaled, groups, data, seed).within(left)
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

/// Zeros around a part of A, in every format and on every chip, whichever way codes lie in words.
#[test]
fn zeros_stand_around_what_is_within() {
    let check = |engine: &Engine| {
        for (key, groups) in keys(engine.device.target()) {
            let deep = key.of().0.k;
            for depth in [16, 48, 96].into_iter().filter(|depth| *depth < deep) {
                let key = Products { depth, ..key };
                let problem = problem((key, groups), Data::Exact, depth.into());
                let what = format!("{} {:?} {key:?}", engine.device.name(), key.of());
                problem.check(&run(engine, key, &problem), true, &what);
            }
        }
    };
    for target in Target::all() {
        check(&Engine::open(&format!("cpu:{target}"), None).expect("it opens"));
    }
    check(&Engine::open("gcn:gfx942", None).expect("it opens"));
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
    let key = Products { case: 0, a_byte: 0, b_byte: 0, depth: 0 };
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
        let engine = Engine::open(&format!("gcn:{target}"), None).expect("it opens");
        holds(&engine);
        for key in keys(target) {
            let wild = problem(key, Data::Wild, u64::from(key.0.case));
            wild.check_specials(&run(&engine, key.0, &wild), &format!("{target} {:?}", key.0.of()));
        }
    }
}

/// What an H200 gave, kept: `CASE A_BYTE B_BYTE DATA SEED HASH` a line.
const RECORD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/matrix/h200.txt");

/// FNV-1a.
fn hash(bits: &[u32]) -> u64 {
    let step = |h: u64, byte: u8| (h ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
    bits.iter().flat_map(|b| b.to_le_bytes()).fold(0xCBF2_9CE4_8422_2325, step)
}

/// The CPU device, told to round as sm_90 does, gives bit for bit what an H200 gave.
#[test]
fn the_interpreter_rounds_as_an_h200_did() {
    let text = std::fs::read_to_string(RECORD).expect("the record");
    let cpu = as_hopper();
    let (mut lines, mut wrong) = (0, vec![]);
    for line in text.lines().filter(|l| !l.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |i: usize| words[i].parse().expect("a number");
        let key = Products { case: number(0), a_byte: number(1), b_byte: number(2), depth: 0 };
        let data = Data::ALL.into_iter().find(|d| format!("{d:?}") == words[3]).expect("a kind of data");
        let groups = THREADS / key.lanes(Target::SM_90).expect("a product of sm_90");
        let problem = problem((key, groups), data, number(4).into());
        let got = format!("{:016x}", hash(&run(&cpu, key, &problem)));
        if got != words[5] {
            wrong.push(format!("{:?} {line}: {got}", key.of()));
        }
        lines += 1;
    }
    assert!(lines > 300, "{lines} recorded products");
    assert!(wrong.is_empty(), "{} of {lines}:\n{}", wrong.len(), wrong.join("\n"));
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
    let (mut outputs, mut record) = (0, String::from("# case a_byte b_byte data seed hash\n"));
    for key in keys(Target::SM_90) {
        for data in Data::ALL {
            for seed in 0..40 {
                let problem = problem(key, data, seed);
                let [cpu, gpu] = [&cpu, &gpu].map(|engine| run(engine, key.0, &problem));
                outputs += gpu.len();
                if seed < 3 {
                    let Products { case, a_byte, b_byte, .. } = key.0;
                    let _ = writeln!(record, "{case} {a_byte} {b_byte} {data:?} {seed} {:016x}", hash(&gpu));
                }
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
    // Where it is asked for, the record is made anew.
    if let Some(path) = std::env::var_os("LATHE_RECORD") {
        std::fs::write(path, record).expect("it writes");
    }
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
        let gemm = crate::compiled(&GemmMx { m: 100, n: 200, k: 416, tile_m: 16, tile_n: 128 }, target);
        let file = folder.path().join("gemm.ptx");
        std::fs::write(&file, &gemm.code).expect("it writes");
        let out =
            ptxas().arg(format!("-arch={target}")).arg(&file).args(["-o", "/dev/null"]).output().expect("it runs");
        assert!(out.status.success(), "{target} gemm_mx: {}", String::from_utf8_lossy(&out.stderr));
        println!("{target}: ptxas takes all {products} products and gemm_mx");
    }
}

#[test]
fn gemm_mx_compiles_for_every_chip() {
    for target in Target::all() {
        for (tile_m, tile_n) in [(16, 128), (128, 128)] {
            let artifact = crate::compiled(&GemmMx { m: 100, n: 200, k: 416, tile_m, tile_n }, target);
            assert!(artifact.record.resources.instructions > 100, "{target} {tile_m} {tile_n}");
        }
    }
}
