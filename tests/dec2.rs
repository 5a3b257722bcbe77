//! Promise: what AMD's code objects of dec2 compute is what plain Rust does: each epilogue by itself, bit for bit, and the block.

use lathe_dsl::Target;
use lathe_kernels::registry::{Entry, RunReport};
use lathe_runtime::{Engine, gcn};

/// Runs a kernel by name on device `gcn`.
fn run(name: &str, target: Target, settings: &[(&str, u32)], seed: u64) -> RunReport {
    let settings: Vec<_> = settings.iter().map(|(name, value)| ((*name).to_owned(), value.to_string())).collect();
    let build = Entry::find(name).unwrap().build(&settings).unwrap();
    let engine = Engine::open(&format!("gcn:{target}"), Some(seed)).unwrap();
    let report = build.run(&engine, seed).unwrap();
    assert!(report.ok, "{name} on {target} {settings:?}: {:?} {:?}", report.checks, report.findings);
    report
}

/// All of it is in the registers that a lane has: none is kept in memory, nor in another.
fn fits_registers(report: &RunReport, name: &str, target: Target) {
    let resources = &report.record.resources;
    println!("{name} on {target}: {resources:?}");
    assert_eq!((resources.scratch_bytes, resources.spills), (Some(0), Some(0)), "{name} on {target}");
}

#[test]
fn every_epilogues_code_object_equals_plain_rust() {
    for target in gcn::targets() {
        for number in 1..=38u64 {
            let name = format!("dec2.e{number}");
            let report = run(&name, target, &[("ex", 11), ("ey", 6)], number);
            assert!(report.checks.iter().all(|c| c.max_abs_error == 0.0), "{name} on {target}: {:?}", report.checks);
            fits_registers(&report, &name, target);
        }
    }
}

/// In NVIDIA's layout too, which shares nothing with AMD's where words change lanes.
#[test]
fn the_other_layout_is_right_in_code_objects() {
    const NVIDIA: u32 = 4;
    for target in gcn::targets() {
        for number in [1u64, 7, 8, 14, 37] {
            let name = format!("dec2.e{number}");
            let report = run(&name, target, &[("ex", 11), ("ey", 6), ("fragments", NVIDIA)], number);
            assert!(report.checks.iter().all(|c| c.max_abs_error == 0.0), "{name} on {target}: {:?}", report.checks);
        }
    }
}

/// Products on these chips round a step's sum twice to f32, so codes may differ where a sum is near a boundary.
#[test]
fn the_blocks_code_object_is_near_plain_rust() {
    for target in gcn::targets() {
        let settings = [("ex", 12), ("ey", 4), ("colour_width", 12), ("colour_height", 4)];
        let report = run("dec2", target, &settings, 1);
        println!("{target}: {:?}", report.checks);
        fits_registers(&report, "dec2", target);
    }
}

/// Options that change a product's code, or the most of what lies in registers.
#[test]
fn the_blocks_code_object_fits_registers_with_every_rounding() {
    for target in gcn::targets() {
        let engine = Engine::open(&format!("gcn:{target}"), None).unwrap();
        for (option, code) in [("mma_acc", 2), ("reduce_tree", 1), ("nan_sign", 1), ("colour_filter", 1)] {
            let build = Entry::find("dec2").unwrap().build(&[(option.to_owned(), code.to_string())]).unwrap();
            let compiled = build.compile(&engine.jit, target).unwrap();
            let resources = &compiled.record().resources;
            println!("{option}={code} on {target}: {resources:?}");
            assert_eq!((resources.scratch_bytes, resources.spills), (Some(0), Some(0)), "{option}={code} on {target}");
        }
    }
}
