//! The runner notices what is wrong: each text here holds one mistake.

use std::path::Path;

use super::{format, section};

/// Failures of a text, as `LINE: MESSAGE`.
fn failures(text: &str) -> Vec<String> {
    let text = format!("; a text\n{text}");
    let file = match format::read(Path::new("itself.kir"), "itself.kir".to_owned(), &text) {
        Ok(file) => file,
        Err(failure) => return vec![format!("{}: {}", failure.line, failure.message)],
    };
    let run = |s| section::run(&file.path, s).failures;
    file.sections.iter().flat_map(run).map(|f| format!("{}: {}", f.line, f.message)).collect()
}

/// All failures hold one of `wanted`, and each of those is met.
#[track_caller]
fn fails(text: &str, wanted: &[&str]) {
    let found = failures(text);
    for wanted in wanted {
        assert!(found.iter().any(|f| f.contains(wanted)), "`{wanted}` is not among {found:#?} of\n{text}");
    }
    for found in found {
        assert!(wanted.iter().any(|w| found.contains(w)), "{found} is not wanted of\n{text}");
    }
}

const ADD: &str = "sig (f32, f32) -> f32
  %r: f32 = add %0, %1
yield %r
";

const KERNEL: &str = "kernel_ir 2
kernel @k wave any grid 1x1x1 block 64x1x1 {
  param %x x: buffer<u32> len 64 read align 4
  param %y y: buffer<u32> len 64 write align 4
  param %n n: u32
  %i: u32 = thread_id x
  %at: u32 = add %i, %n
  %v: u32 = buffer_load %x, %at
  buffer_store %v, %y, %i
}
covers buffer_load
";

#[test]
fn wrong_results_are_noticed_on_every_device() {
    let add = |run: &str| format!("{ADD}run (1.0, 1.0) = any\nrun {run}");
    for (run, wanted) in [
        ("(1.0, 2.0) = 3.5", "out0 element 0 is 3.0 (0x40400000), wanted 3.5 (0x40600000)"),
        ("(0.0, -0.0) = -0.0", "is 0.0 (0x00000000), wanted -0.0"),
        ("(nan, 1.0) = 1.0", "wanted 1.0"),
        ("(1.0, 1.0) = nan", "wanted a NaN"),
    ] {
        let places = ["cpu with waves of 64", "cpu with waves of 32", "gcn:gfx950", "gcn:gfx942", "gcn:gfx1201"];
        let found = failures(&add(run));
        assert_eq!(found.len(), places.len(), "{found:#?}");
        for place in places {
            assert!(
                found.iter().any(|f| f.starts_with("6: ") && f.contains(place) && f.contains(wanted)),
                "{found:#?}"
            );
        }
    }
    fails(&add("(1.0, 2.0) = ~ 3.0000002 within 1 ulp"), &[]);
    fails(
        &add("(1.0, 2.0) = ~ 3.0000005 within 1 ulp"),
        &["cpu with waves of 64", "cpu with waves of 32", "gcn", "gcn", "gcn"],
    );
    fails(&add("(1.0, 2.0) = ~ 3.0000005 within 1 ulp or 1e-6"), &[]);
    // Of an operation with a bound the CPU device's result is exact.
    let exp2 = |run: &str| format!("sig (f32) -> f32\n  %r: f32 = hw_exp2 %0\nyield %r\nrun {run}");
    fails(&exp2("(1.0) = ~ 2.0000002 within 1 ulp"), &["cpu with waves of 64", "cpu with waves of 32"]);
    fails(&exp2("(1.0) = ~ 2.0 within 1 ulp"), &[]);
    fails(&add("(1.0, 2.0) = 3.0"), &[]);
}

#[test]
fn wrong_buffers_findings_and_faults_are_noticed() {
    let run = |lines: &str| format!("{KERNEL}run\n  arg x = each i\n{lines}");
    fails(&run("  arg n = 0\n  expect y = each i"), &[]);
    fails(
        &run("  arg n = 0\n  expect y = each i == 3 ? 4 : i"),
        &["16: cpu with waves of 64: y[3] is 3, wanted 4", "32: y[3]", "gcn", "gcn", "gcn"],
    );
    fails(&run("  arg n = 0\n  expect y = each i + 1"), &["y[0] is 0", "y[", "58 more elements of y's 64 are wrong"]);
    let shifted = "  arg n = 1\n  expect y = each i < 63 ? i + 1 : 0\n";
    fails(&run(shifted), &["finding: itself.kir:9:3: read of buffer `x`"]);
    fails(&run(&format!("{shifted}  finding \"buffer `x`\"")), &[]);
    fails(&run("  arg n = 0\n  expect y = each i\n  finding \"buffer\""), &["no finding with `buffer`"]);
    fails(&run("  arg n = 0\n  fault \"zero\""), &["no fault, where one with `zero` is expected"]);
    fails(
        &run("  arg n = 0\n  expect y = each i\n  fault gcn \"zero\""),
        &["gcn:gfx950, seed 0: no fault", "gcn:gfx942, seed 0: no fault", "gcn:gfx1201, seed 0: no fault"],
    );
    fails(&run("  arg n = 0"), &["no `expect` for buffer `y`"]);
    fails(&run("  expect y = each i"), &["no `arg` for scalar `n`"]);
    fails(&run("  arg n = 0\n  expect z = each i"), &["no parameter `z`"]);
    fails(&run("  arg n = 0\n  expect y = 1 2 3"), &["3 values for 64 elements"]);
    let zero = "sig (u32, u32) -> u32\n  %r: u32 = div_floor %0, %1\nyield %r\n";
    fails(&format!("{zero}run (1, 0) fault \"division by zero\""), &[]);
    fails(&format!("{zero}run (1, 0) fault \"overflow\""), &["a fault without `overflow`"]);
    fails(
        &format!("{zero}run (1, 0) = 0"),
        &["64: itself.kir:3:3: integer division by zero", "32: itself", "gcn", "gcn", "gcn"],
    );
}

#[test]
fn wrong_instructions_and_refusals_are_noticed() {
    let add = |lines: &str| format!("{ADD}run (1.0, 1.0) = 2.0\n{lines}");
    fails(&add("gfx950: v_add_f32\ngfx950: buffer_store_dword\nsm_90: add.rn.f32\nsm_90-not: fma"), &[]);
    fails(&add("gfx950: v_mul_f32"), &["6: gfx950: no instruction contains `v_mul_f32`"]);
    fails(&add("gfx950: buffer_store\ngfx950: v_add_f32"), &["7: gfx950: `v_add_f32` does not stand behind"]);
    fails(&add("gfx1201-not: v_add_f32"), &["contains `v_add_f32`; the kernel is"]);
    fails(&add("sm_90: add.rn.f32\nsm_90: add.rn.f32"), &["7: sm_90: `add.rn.f32` does not stand behind"]);
    fails(&add("refused sm_90 \"no\""), &["sm_90: compiled, where a refusal with `no` is expected"]);
    let bools = ADD.replace("f32", "bool");
    fails(&format!("{bools}refused all \"of bool\""), &[]);
    fails(
        &format!("{bools}refused all \"of f64\""),
        &["gfx950: refused, but without `of f64`", "gfx942", "gfx1201", "sm_90"],
    );
}

#[test]
fn malformed_texts_are_errors() {
    fails("run (1) = 2", &["2: `run` before the first `sig` or `kernel_ir`"]);
    fails("", &["1: no `sig` and no `kernel_ir`"]);
    fails(ADD, &["2: no `run`"]);
    fails("sig (f32) -> f32\n  yield %0\nrun (1.0) = 1.0", &["the body has no `yield` in the first column"]);
    fails("sig (f31) -> f32\nyield %0\nrun (1.0) = 1.0", &["`f31` is no scalar or vector type"]);
    fails("sig (f32) -> (f32, f32)\nyield %0\nrun (1.0) = 1.0", &["1 yields for 2 results"]);
    fails(&format!("{ADD}run (1.0) = 1.0"), &["1 operands where 2 are wanted"]);
    fails(&format!("{ADD}run (1.0, x) = 1.0"), &["`x` is not a number of type f32"]);
    fails(&format!("{ADD}run 1.0, 1.0 = 2.0"), &["`(VALUE, …)` is wanted"]);
    fails(&format!("{ADD}run (1.0, 1.0) = 2.0\nexpect y = 1"), &["`expect` is no directive here"]);
    fails(&format!("{ADD}run (1.0, 1.0) = 2.0\ngfx9: v_add"), &["unknown target `gfx9`"]);
    fails(&format!("{ADD}run (1.0, 1.0) = 2.0\nskip gcn"), &["a text in quotes is missing"]);
    fails(&ADD.replace("add", "plus").replace("yield %r", "yield %r\nrun (1.0, 1.0) = 2.0"), &["3: column 13"]);
    fails(&format!("{}run", KERNEL.replace("covers buffer_load\n", "")), &["says what it `covers`"]);
    fails(&KERNEL.replace("\n}", "\n  }"), &["no `}` in the first column"]);
}
