//! The command line from outside: what it prints and with which status it ends.
#![cfg(feature = "jit")]

use std::process::{Command, Output};

use serde_json::Value;

fn lathe(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lathe")).args(args).output().expect("the binary starts")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("UTF-8")
}

fn json(args: &[&str]) -> Value {
    let out = lathe(args);
    assert!(out.status.success(), "{args:?}: {}", text(&out.stderr));
    let lines: Vec<&str> = text(&out.stdout).lines().collect();
    assert_eq!(lines.len(), 1, "one JSON object on one line");
    serde_json::from_str(lines[0]).expect("JSON")
}

/// A wrong request: status 2, nothing on standard output, one line that holds every one of `wanted`.
#[track_caller]
fn wrong(args: &[&str], wanted: &[&str]) {
    let out = lathe(args);
    let message = text(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{args:?}: {message}");
    assert_eq!(text(&out.stdout), "", "{args:?}");
    assert_eq!(message.lines().count(), 1, "{args:?}: {message}");
    for part in wanted {
        assert!(message.contains(part), "{args:?}: `{part}` is not in: {message}");
    }
}

#[test]
fn list_shows_kernels_stages_and_key_fields() {
    let out = lathe(&["list"]);
    assert!(out.status.success());
    for part in ["mla_combine", "stage_combine", "ranks = 8", "one of 1, 2, 4, 8", "tokens = 8"] {
        assert!(text(&out.stdout).contains(part), "{part}");
    }
    let kernels = json(&["list", "--json"]);
    let kernel = &kernels["kernels"][0];
    assert_eq!(kernel["name"], "mla_combine");
    assert_eq!(kernel["key"][0]["name"], "ranks");
    assert_eq!(kernel["key"][0]["default"], 8);
    assert_eq!(kernel["key"][0]["allowed"], "one of 1, 2, 4, 8");
}

#[test]
fn run_checks_every_rank_count_on_the_cpu() {
    for device in ["cpu", "cpu:sm_90"] {
        for (ranks, tokens) in [("1", "3"), ("2", "1"), ("4", "5"), ("8", "8")] {
            let (ranks, tokens) = (format!("ranks={ranks}"), format!("tokens={tokens}"));
            let set =
                ["run", "mla_combine", "--set", &ranks, "--set", &tokens, "--device", device, "--seed", "7", "--json"];
            let report = json(&set);
            assert_eq!(report["ok"], true, "{report}");
            assert_eq!(report["checks"].as_array().map(Vec::len), Some(2));
            assert_eq!(report["key"]["ranks"].to_string(), ranks.trim_start_matches("ranks="));
            assert_eq!(report["checks"][0]["max_abs_error"], 0.0);
            assert!(report["record"]["trace_ms"].as_f64().unwrap() > 0.0);
            assert!(report["launch_ms"].as_f64().unwrap() > 0.0);
        }
    }
}

#[test]
fn run_with_more_tasks_than_workgroups_loops_over_them() {
    let report = json(&["run", "mla_combine", "--set", "ranks=2", "--set", "tokens=101", "--json"]);
    assert_eq!(report["ok"], true, "{report}");
}

#[test]
fn run_prints_key_record_errors_and_time() {
    let out = lathe(&["run", "mla_combine", "--set", "ranks=8", "--set", "tokens=8"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let printed = text(&out.stdout);
    for part in ["ranks=8, tokens=8", "trace", "against the stage in plain Rust", "against attention in f64", "time"] {
        assert!(printed.contains(part), "{part} in\n{printed}");
    }
}

#[test]
fn compile_tells_time_and_resources() {
    for (target, registers) in [("gfx950", "vgpr"), ("sm_90", "ptx_registers")] {
        let record = json(&["compile", "mla_combine", "--target", target, "--json"]);
        for field in ["trace_ms", "compile_ms", registers, "lds_bytes", "code_bytes", "instructions"] {
            assert!(record[field].as_f64().is_some_and(|n| n > 0.0), "{target} {field}: {record}");
        }
        assert_eq!(record["target"], target);
        assert!(record["stages"].as_array().is_some_and(|s| s.len() >= 5), "{record}");
    }
    let record = json(&["compile", "mla_combine", "--target", "gfx950", "--json"]);
    assert_eq!(record["spills"], 0);
    assert!(record["sgpr"].as_u64().is_some_and(|n| n > 0));
}

#[test]
fn compile_emits_every_form() {
    let dir = tempfile::tempdir().expect("a folder");
    for (target, emit, head) in [
        ("gfx950", "kir", "kernel_ir 1"),
        ("gfx950", "mlir", "module"),
        ("gfx950", "llvm", "target triple = \"amdgcn-amd-amdhsa\""),
        ("gfx950", "asm", "v_exp_f32"),
        ("gfx950", "obj", "\x7fELF"),
        ("sm_90", "llvm", "target triple = \"nvptx64-nvidia-cuda\""),
        ("sm_90", "asm", "ex2.approx"),
        ("sm_90", "obj", ".target sm_90"),
    ] {
        let file = dir.path().join(format!("{target}.{emit}"));
        let path = file.to_str().expect("UTF-8");
        let to_file = lathe(&["compile", "mla_combine", "--target", target, "--emit", emit, "-o", path]);
        assert!(to_file.status.success(), "{}", text(&to_file.stderr));
        let written = std::fs::read(&file).expect("the file is there");
        assert!(written.windows(head.len()).any(|w| w == head.as_bytes()), "{target} {emit}");
        let to_stdout = lathe(&["compile", "mla_combine", "--target", target, "--emit", emit, "--timings"]);
        assert_eq!(to_stdout.stdout, written, "{target} {emit}: the same bytes on every run");
        assert!(text(&to_stdout.stderr).contains(" ms"), "the record goes to standard error then");
    }
}

#[test]
fn wrong_requests_are_one_line_and_status_2() {
    let run = |set: &'static str| ["run", "mla_combine", "--set", set];
    wrong(&["run", "mla_combin"], &["unknown kernel `mla_combin`", "mla_combine"]);
    wrong(&["compile", "x", "--target", "gfx950"], &["unknown kernel `x`", "mla_combine"]);
    wrong(&run("rank=2"), &["no key field `rank`", "ranks, tokens"]);
    wrong(&run("ranks=3"), &["ranks=3", "one of 1, 2, 4, 8"]);
    wrong(&run("ranks="), &["ranks= ", "one of 1, 2, 4, 8"]);
    wrong(&run("tokens=0"), &["tokens=0", "from 1 to 349525"]);
    wrong(&run("tokens=-1"), &["tokens=-1", "from 1 to 349525"]);
    wrong(&run("tokens=1e3"), &["tokens=1e3", "from 1 to 349525"]);
    wrong(&run("tokens=99999999999999999999999"), &["tokens=99999999999999999999999", "from 1 to 349525"]);
    wrong(&run("tokens=43691"), &["tokens=43691", "at most 43690"]);
    wrong(&run("tokens=43690"), &["tokens=43690", "GiB of host memory", "at most"]);
    wrong(&run("tokens"), &["FIELD=VALUE"]);
    wrong(&["run", "mla_combine", "--device", "gpu"], &["unknown device `gpu`", "cpu", "cpu:sm_90"]);
    wrong(&["run", "mla_combine", "--device", "cpu:gfx9"], &["unknown device `cpu:gfx9`"]);
    wrong(&["run", "mla_combine", "--seed", "x"], &["'x'", "--seed"]);
    wrong(&["compile", "mla_combine", "--target", "gfx9000"], &["unknown target `gfx9000`", "gfx950, sm_90"]);
    wrong(&["compile", "mla_combine"], &["--target"]);
    wrong(&["compile", "mla_combine", "--target", "gfx950", "--emit", "elf"], &["'elf'", "kir, mlir, llvm, asm, obj"]);
    let nowhere = ["compile", "mla_combine", "--target", "gfx950", "--emit", "asm", "-o", "/nonexistent/file"];
    wrong(&nowhere, &["cannot write /nonexistent/file", "No such file"]);
    wrong(&[], &["no command given", "list, run, compile"]);
    wrong(&["fly"], &["'fly'"]);
}

#[test]
fn help_and_version_are_no_failures() {
    for args in [&["--help"][..], &["--version"], &["run", "--help"]] {
        let out = lathe(args);
        assert!(out.status.success() && !out.stdout.is_empty(), "{args:?}");
    }
}
