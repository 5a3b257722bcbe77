//! The command line from outside: what it prints and with which status it ends.
#![cfg(feature = "jit")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use lathe_dsl::Target;
use lathe_kernels::mla::combine::MlaCombine;
use lathe_kernels::registry::Run;
use lathe_runtime::Engine;
use lathe_runtime::bundle::{Bundle, Place};
use serde_json::Value;
use tempfile::TempDir;

/// Runs the command without a disk cache and without any variable of the caller's.
fn lathe(args: &[&str]) -> Output {
    with(args, &[("LATHE_CACHE", "off")])
}

fn with(args: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lathe"));
    for name in ["LATHE_CACHE", "LATHE_CACHE_DIR", "LATHE_CACHE_MAX_BYTES", "LATHE_HIP_LIBRARY", "LATHE_REPRODUCER_DIR"]
    {
        command.env_remove(name);
    }
    command.args(args).envs(variables.iter().copied()).output().expect("the binary starts")
}

/// A folder with a disk cache and other files.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().expect("UTF-8").to_owned()
    }

    fn file(&self, name: &str, text: &str) -> String {
        std::fs::write(self.path(name), text).expect("a file");
        self.path(name)
    }

    fn lathe(&self, args: &[&str]) -> Output {
        with(args, &[("LATHE_CACHE_DIR", &self.path("cache"))])
    }

    fn json(&self, args: &[&str]) -> Value {
        object(args, &self.lathe(args))
    }

    /// Files of the cache's entries.
    fn entries(&self) -> Vec<PathBuf> {
        fn walk(dir: &Path, found: &mut Vec<PathBuf>) {
            for item in std::fs::read_dir(dir).into_iter().flatten().flatten() {
                match item.path() {
                    path if path.is_dir() => walk(&path, found),
                    path if path.extension().is_some_and(|e| e == "lathe") => found.push(path),
                    _ => {}
                }
            }
        }
        let mut found = vec![];
        walk(Path::new(&self.path("cache")), &mut found);
        found
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("UTF-8")
}

fn json(args: &[&str]) -> Value {
    object(args, &lathe(args))
}

#[track_caller]
fn object(args: &[&str], out: &Output) -> Value {
    assert!(out.status.success(), "{args:?}: {}", text(&out.stderr));
    let lines: Vec<&str> = text(&out.stdout).lines().collect();
    assert_eq!(lines.len(), 1, "one JSON object on one line");
    serde_json::from_str(lines[0]).expect("JSON")
}

/// A wrong request: status 2, nothing on standard output, one line that holds every one of `wanted`.
#[track_caller]
fn wrong(args: &[&str], wanted: &[&str]) {
    refused(args, &lathe(args), wanted);
}

#[track_caller]
fn refused(args: &[&str], out: &Output, wanted: &[&str]) {
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
    let kernels = kernels["kernels"].as_array().unwrap();
    let kernel = kernels.iter().find(|k| k["name"] == "mla_combine").unwrap();
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
fn run_multiplies_matrices_and_rounds_as_it_is_told() {
    let set = ["run", "gemm_mx", "--set", "m=33", "--set", "n=70", "--set", "k=160", "--json"];
    let errors = [&["--device", "cpu"][..], &["--device", "cpu:sm_90", "--mma-rounding", "sm_90"]].map(|more| {
        let report = json(&[&set, more].concat());
        assert_eq!(report["ok"], true, "{report}");
        report["checks"][0]["max_abs_error"].as_f64().unwrap()
    });
    assert!(errors.iter().all(|e| *e > 0.0), "bf16 rounds: {errors:?}");
    wrong(
        &["run", "gemm_mx", "--mma-rounding", "gfx950"],
        &["unknown rounding of matrix products; known are exact, sm_90"],
    );
    wrong(
        &["run", "gemm_mx", "--device", "gcn:gfx950", "--mma-rounding", "exact"],
        &["--mma-rounding is for device `cpu`"],
    );
    wrong(&["run", "gemm_mx", "--set", "k=48"], &["k must be a multiple of 32"]);
    let out = lathe(&["run", "gemm_mx", "--set", "m=1", "--set", "n=1", "--mma-rounding", "sm_90"]);
    assert_eq!(out.status.code(), Some(1));
    assert!(text(&out.stderr).contains("cdna4 fragments, which cannot be rounded as sm_90 does"), "{out:?}");
}

#[test]
fn run_with_more_tasks_than_workgroups_loops_over_them() {
    let report = json(&["run", "mla_combine", "--set", "ranks=2", "--set", "tokens=101", "--json"]);
    assert_eq!(report["ok"], true, "{report}");
}

#[test]
fn run_of_no_tokens_launches_nothing_and_is_right() {
    for ranks in ["ranks=1", "ranks=8"] {
        let report = json(&["run", "mla_post", "--set", "tokens=0", "--set", ranks, "--json"]);
        assert_eq!(report["ok"], true, "{report}");
    }
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
        ("gfx950", "kir", "kernel_ir 2"),
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

/// Every chip; the sums by line and by instruction are the total, and the lines are the author's.
#[test]
fn trace_tells_costs_by_line_and_instruction() {
    for chip in ["gfx950", "gfx942", "gfx1201"] {
        let device = format!("gcn:{chip}");
        let settings = ["trace", "mla_combine", "--set", "ranks=2", "--set", "tokens=3", "--device", &device];
        let report = json(&[&settings[..], &["--json"]].concat());
        assert_eq!((&report["ok"], &report["device"]), (&Value::Bool(true), &Value::String(device.clone())));
        let count = |cost: &Value, name: &str| cost[name].as_u64().unwrap_or_else(|| panic!("{name} of {cost}"));
        let list = |name: &str| report[name].as_array().expect("a list").clone();
        for column in ["executions", "bytes_loaded", "bytes_stored", "cache_lines", "lds_conflicts", "waits"] {
            let total = count(&report["total"], column);
            for part in ["lines", "instructions"] {
                let sum: u64 = list(part).iter().map(|cost| count(cost, column)).sum();
                assert_eq!(sum, total, "{chip}: {column} by {part}");
            }
        }
        // 3 tokens x 128 heads x 512 channels, of two ranks, read once each in bf16; written in bf16.
        let row = 512 * 2;
        let written = count(&report["total"], "bytes_stored");
        assert_eq!((written % row, written >= row), (0, true), "{chip}: {written} bytes stored");
        assert!(count(&report["total"], "bytes_loaded") >= 2 * written, "{chip}");
        let lines = list("lines");
        let sources = lines.iter().filter_map(|l| l["line"].as_str()).filter(|l| l.contains(".rs:")).count();
        assert!(sources * 2 > lines.len(), "{chip}: {lines:?}");
        let cycles = |cost: &Value| {
            ["valu", "mfma", "vmem", "lds", "salu"].iter().map(|u| count(&cost["cycles"], u)).sum::<u64>()
        };
        let all: Vec<u64> = lines.iter().map(cycles).collect();
        assert!(all.is_sorted_by(|a, b| a >= b) && all.iter().sum::<u64>() == cycles(&report["total"]), "{all:?}");
        let banks = if chip == "gfx950" { 64 } else { 32 };
        assert_eq!(report["assumptions"]["lds_banks"], banks);

        let out = lathe(&[&settings[..], &["--top", "3"]].concat());
        let table = text(&out.stdout);
        assert!(out.status.success(), "{table}");
        for wanted in
            ["cycles are estimates", "source line", "instruction", "conflicts", "more: --top", &format!("on {device}")]
        {
            assert!(table.contains(wanted), "{chip} lacks {wanted}:\n{table}");
        }
        assert!(table.matches("kernels/src/mla").count() >= 3, "{table}");
    }
    // Of ranks that wait for each other, one launch after the other: what the last one of rank 0 cost.
    let post = ["tokens=2", "q=1", "ctas=1"].map(|setting| ["--set", setting]).concat();
    for ranks in ["ranks=1", "ranks=2"] {
        let report = json(&[&["trace", "mla_post", "--set", ranks, "--json"][..], &post].concat());
        let stored = report["total"]["bytes_stored"].as_u64();
        assert!(report["ok"] == true && stored.is_some_and(|stored| stored > 0), "{ranks}: {report}");
    }
    wrong(
        &["trace", "mla_combine", "--device", "cpu"],
        &["`cpu` executes no code object", "gcn:gfx950, gcn:gfx942, gcn:gfx1201"],
    );
    wrong(&["trace", "mla_combine", "--device", "gcn:sm_90"], &["gcn:sm_90"]);
    wrong(&["trace", "frobnicate"], &["unknown kernel `frobnicate`"]);
    wrong(&["trace", "mla_combine", "--set", "ranks=3"], &["ranks"]);
    wrong(&["trace", "mla_combine", "--top", "0"], &["--top"]);
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
    wrong(
        &["compile", "mla_combine", "--target", "gfx9000"],
        &["unknown target `gfx9000`", "gfx950, gfx942, gfx1201, sm_90"],
    );
    wrong(&["compile", "mla_combine"], &["--target"]);
    wrong(&["compile", "mla_combine", "--target", "gfx950", "--emit", "elf"], &["'elf'", "kir, mlir, llvm, asm, obj"]);
    let nowhere = ["compile", "mla_combine", "--target", "gfx950", "--emit", "asm", "-o", "/nonexistent/file"];
    wrong(&nowhere, &["cannot write /nonexistent/file", "No such file"]);
    wrong(
        &[],
        &[
            "no command given",
            "list, run, trace, compile, opt, interp, warm, bundle, cache, env, doctor",
            "`lathe --help`",
        ],
    );
    wrong(&["bundle"], &["no command given", "commands: build, list", "`lathe bundle --help`"]);
    wrong(&["cache"], &["no command given", "commands: stats, verify, clear", "`lathe cache --help`"]);
    wrong(&["fly"], &["'fly'"]);
    wrong(&["bundle", "build", "--keys", "k", "--targets", "cpu"], &["-o <FILE>"]);
    wrong(&["bundle", "build", "-o", "b", "--keys", "k"], &["--targets"]);
    wrong(&["doctor", "--fast"], &["'--fast'"]);
}

#[test]
fn help_and_version_are_no_failures() {
    for args in [&["--help"][..], &["--version"], &["run", "--help"]] {
        let out = lathe(args);
        assert!(out.status.success() && !out.stdout.is_empty(), "{args:?}");
    }
}

#[test]
fn a_second_compile_comes_from_the_disk_cache() {
    let folder = Folder::new();
    for target in ["gfx950", "sm_90"] {
        let args = ["compile", "mla_combine", "--target", target, "--json"];
        let first = folder.json(&args);
        let second = folder.json(&args);
        assert_eq!((&first["cache"], &second["cache"]), (&"miss".into(), &"disk".into()));
        assert_eq!(first["code_bytes"], second["code_bytes"]);
        let none = folder.json(&[args.as_slice(), &["--no-cache"]].concat());
        assert_eq!(none["cache"], "miss");
    }
    assert_eq!(folder.entries().len(), 2);
    let object = ["compile", "mla_combine", "--target", "gfx950", "--emit", "obj"];
    let cached = folder.lathe(&object);
    assert!(text(&cached.stderr).contains("cache: disk"), "{}", text(&cached.stderr));
    assert_eq!(cached.stdout, lathe(&object).stdout, "cached and compiled code are the same");
}

#[test]
fn a_second_run_comes_from_the_disk_cache() {
    let folder = Folder::new();
    let args = ["run", "mla_combine", "--set", "ranks=2", "--set", "tokens=1", "--device", "gcn:gfx950", "--json"];
    for cache in ["miss", "disk"] {
        let report = folder.json(&args);
        assert_eq!((&report["ok"], &report["record"]["cache"]), (&true.into(), &cache.into()));
    }
    assert_eq!(folder.json(&[args.as_slice(), &["--no-cache"]].concat())["record"]["cache"], "miss");
}

#[test]
fn assembly_has_the_entry_point_of_the_object() {
    let emit = |form| lathe(&["compile", "mla_combine", "--target", "gfx950", "--emit", form]).stdout;
    let assembly = String::from_utf8(emit("asm")).expect("text");
    let name = assembly.split_whitespace().find_map(|w| w.strip_suffix(".kd")).expect("a kernel descriptor");
    assert!(name.len() == "mla_combine_".len() + 8 && name.starts_with("mla_combine_"), "{name}");
    assert!(emit("obj").windows(name.len()).any(|w| w == name.as_bytes()));
}

const KEYS: &str = "# builds of a test\n\nmla_combine ranks=2 tokens=3  # the small one\n  mla_combine\n";

#[test]
fn warm_fills_the_cache_once() {
    let folder = Folder::new();
    let keys = folder.file("keys", KEYS);
    let args = ["warm", &keys, "--targets", "gfx950,sm_90,gfx950", "--json"];
    let out = folder.lathe(&args);
    let report = object(&args, &out);
    assert_eq!((&report["kernels"], &report["compiled"], &report["cached"]), (&4.into(), &4.into(), &0.into()));
    let lines: Vec<&str> = text(&out.stderr).lines().collect();
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert!(lines[0].starts_with("1/4 mla_combine {ranks=") && lines[3].starts_with("4/4 "), "{lines:?}");
    let report = folder.json(&args);
    assert_eq!((&report["compiled"], &report["cached"]), (&0.into(), &4.into()));
    let compile = ["compile", "mla_combine", "--set", "ranks=2", "--set", "tokens=3", "--target", "sm_90", "--json"];
    assert_eq!(folder.json(&compile)["cache"], "disk");

    let off = with(&args, &[("LATHE_CACHE", "off")]);
    refused(&args, &off, &["LATHE_CACHE=off", "cannot be warmed"]);
    let args = ["warm", &keys, "--targets", "cpu"];
    refused(&args, &folder.lathe(&args), &["unknown target `cpu`", "gfx950, gfx942, gfx1201, sm_90"]);
}

#[test]
fn a_cache_that_cannot_be_written_is_told() {
    let folder = Folder::new();
    let keys = folder.file("keys", "mla_combine ranks=1 tokens=1");
    folder.file("cache", "in the way");
    let out = folder.lathe(&["warm", &keys, "--targets", "sm_90"]);
    assert_eq!(out.status.code(), Some(1));
    assert!(text(&out.stderr).contains("lathe: 1 compiled kernels could not be written to"), "{}", text(&out.stderr));
}

#[test]
fn a_wrong_keys_file_names_file_and_line() {
    let folder = Folder::new();
    for (content, wanted) in [
        ("mla_combine\nmla_comb ranks=1", ":2: unknown kernel `mla_comb`; known kernels: dec2, dec2.e1, dec2.e2"),
        ("\n\nmla_combine ranks", ":3: a setting is FIELD=VALUE"),
        ("mla_combine rank=1", ":1: `mla_combine` has no key field `rank`"),
        ("# one\nmla_combine ranks=3", ":2: ranks=3 is not allowed"),
        ("mla_combine\n#\nmla_combine ranks=8", ":3: `mla_combine` {ranks=8, tokens=8} is the build of line 1 already"),
        ("# nothing\n", " names no kernel"),
    ] {
        let keys = folder.file("keys", content);
        let wanted = format!("{keys}{wanted}");
        wrong(&["warm", &keys, "--targets", "sm_90"], &[&wanted]);
        wrong(&["bundle", "build", "-o", &folder.path("b"), "--keys", &keys, "--targets", "cpu"], &[&wanted]);
    }
    assert!(!Path::new(&folder.path("b")).exists());
    let nowhere = folder.path("nowhere");
    wrong(&["warm", &nowhere, "--targets", "sm_90"], &["cannot read", &nowhere, "No such file"]);
}

#[test]
fn bundles_are_built_and_listed() {
    let folder = Folder::new();
    let (keys, file) = (folder.file("keys", KEYS), folder.path("kernels.lathe"));
    let build = |file: &str| {
        let targets = "gfx950,sm_90,cpu,cpu:sm_90,cpu:gfx950";
        folder.json(&["bundle", "build", "-o", file, "--keys", &keys, "--targets", targets, "--json"])
    };
    let report = build(&file);
    let size = std::fs::metadata(&file).expect("a bundle").len();
    assert_eq!((&report["kernels"], &report["bytes"]), (&8.into(), &size.into()));
    let again = folder.path("again.lathe");
    build(&again);
    assert_eq!(std::fs::read(&file).unwrap(), std::fs::read(&again).unwrap(), "the same bytes on every run");

    let listed = folder.json(&["bundle", "list", &file, "--json"]);
    let kernels = listed["kernels"].as_array().expect("kernels");
    let targets: Vec<&str> = kernels.iter().map(|k| k["target"].as_str().unwrap()).collect();
    assert_eq!(targets, ["cpu:gfx950", "cpu:gfx950", "cpu:sm_90", "cpu:sm_90", "gfx950", "gfx950", "sm_90", "sm_90"]);
    assert_eq!((&kernels[0]["kernel"], &kernels[0]["key"]["tokens"]), (&"mla_combine".into(), &3.into()));
    let out = folder.lathe(&["bundle", "list", &file]);
    assert_eq!(text(&out.stdout).lines().count(), 8);
    assert!(text(&out.stdout).contains("mla_combine {ranks=2, tokens=3} for sm_90: "), "{}", text(&out.stdout));

    let mut bytes = std::fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&file, bytes).unwrap();
    wrong(&["bundle", "list", &file], &[&file, "is damaged: `mla_combine`, entry 7", "checksum"]);
    wrong(&["bundle", "list", &keys], &[&keys, "not a Lathe bundle"]);
    wrong(&["bundle", "list", &folder.path("none")], &["cannot read bundle", "No such file"]);
    let build = ["bundle", "build", "-o", &file, "--keys", &keys, "--targets"];
    wrong(
        &[build.as_slice(), &["cpu:gfx9"]].concat(),
        &["unknown target `cpu:gfx9`", "gfx950, gfx942, gfx1201, sm_90", "sm_120a, cpu, cpu:gfx950"],
    );
    let nowhere = ["bundle", "build", "-o", "/nonexistent/b", "--keys", &keys, "--targets", "cpu"];
    let out = lathe(&nowhere);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("cannot write bundle /nonexistent/b"), "{}", text(&out.stderr));
}

/// Code that was compiled in another process launches from the file, on the device that executes AMD code and on the CPU.
#[test]
fn what_was_bundled_launches() {
    let folder = Folder::new();
    let (keys, file) = (folder.file("keys", KEYS), folder.path("kernels.lathe"));
    let targets = "gfx950,gfx942,gfx1201,cpu,cpu:sm_90";
    folder.json(&["bundle", "build", "-o", &file, "--keys", &keys, "--targets", targets, "--json"]);
    let key = MlaCombine { ranks: 2, tokens: 3 };
    let bytes = std::fs::read(&file).expect("a bundle");
    for bundle in [Bundle::open(&file).expect("a bundle"), Bundle::from_bytes(bytes).expect("a bundle")] {
        for device in ["gcn:gfx950", "gcn:gfx942", "gcn:gfx1201", "cpu", "cpu:sm_90"] {
            let engine = Engine::open(device, Some(5)).expect("a device");
            let target = engine.device.target();
            let place = if device.starts_with("cpu") { Place::Cpu(target) } else { Place::Chip(target) };
            let compiled = bundle.get(&key, place).expect("a kernel");
            let outcome = Run::run(&key, &engine, &compiled, 5).expect("it runs");
            assert!(outcome.checks.len() == 2 && outcome.checks.iter().all(|c| c.ok), "{device}: {:?}", outcome.checks);
            assert_eq!(engine.jit.counters().compiles, 0);
        }
        let error = bundle.get(&MlaCombine { ranks: 4, ..key }, Place::Cpu(Target::GFX950)).unwrap_err().to_string();
        assert!(
            error.contains("has no `mla_combine` {ranks=4, tokens=3} for cpu:gfx950; it has `mla_combine`"),
            "{error}"
        );
    }
}

#[test]
fn the_cache_is_shown_checked_and_emptied() {
    let folder = Folder::new();
    let empty = folder.json(&["cache", "stats", "--json"]);
    assert_eq!(
        (&empty["entries"], &empty["mode"], &empty["dir"]),
        (&0.into(), &"rw".into(), &folder.path("cache").into())
    );
    let keys = folder.file("keys", KEYS);
    folder.json(&["warm", &keys, "--targets", "gfx950", "--json"]);
    let stats = folder.json(&["cache", "stats", "--json"]);
    let bytes: u64 = folder.entries().iter().map(|e| std::fs::metadata(e).unwrap().len()).sum();
    assert_eq!((&stats["entries"], &stats["bytes"]), (&2.into(), &bytes.into()));
    assert!(text(&folder.lathe(&["cache", "stats"]).stdout).contains("entries     2"));
    assert_eq!(folder.json(&["cache", "verify", "--json"])["good"], 2);

    let broken = &folder.entries()[0];
    std::fs::write(broken, "no entry").unwrap();
    let out = folder.lathe(&["cache", "verify"]);
    assert_eq!(out.status.code(), Some(1), "{}", text(&out.stdout));
    assert!(text(&out.stdout).contains(broken.to_str().unwrap()) && !broken.exists(), "{}", text(&out.stdout));
    assert_eq!(folder.json(&["cache", "verify", "--json"])["good"], 1);
    let args = ["cache", "clear", "--json"];
    let read_only = with(&args, &[("LATHE_CACHE_DIR", &folder.path("cache")), ("LATHE_CACHE", "ro")]);
    refused(&args, &read_only, &["LATHE_CACHE=ro", "cannot be cleared"]);
    assert_eq!(folder.entries().len(), 1);
    assert_eq!(folder.json(&args)["removed"], 1);
    assert!(folder.entries().is_empty());
}

#[test]
fn env_lists_every_variable() {
    let variables = [("LATHE_CACHE_MAX_BYTES", "3M"), ("LATHE_CACHE_DIR", "/somewhere")];
    let args = ["env", "--json"];
    let listed = object(&args, &with(&args, &variables));
    let listed = listed["variables"].as_array().expect("variables");
    let value = |name: &str| {
        let variable = listed.iter().find(|v| v["name"] == name).expect(name);
        (variable["value"].as_str().unwrap(), variable["set"].as_bool().unwrap())
    };
    assert_eq!(value("LATHE_CACHE_MAX_BYTES"), ("3145728", true));
    assert_eq!(value("LATHE_CACHE_DIR"), ("/somewhere", true));
    assert_eq!(value("LATHE_CACHE"), ("rw", false));
    let printed = with(&["env"], &variables);
    for variable in listed {
        let (name, default) = (variable["name"].as_str().unwrap(), variable["default"].as_str().unwrap());
        assert!(!variable["doc"].as_str().unwrap().is_empty());
        assert!(text(&printed.stdout).contains(name) && text(&printed.stdout).contains(default), "{name}");
    }
}

#[test]
fn a_bad_variable_is_a_wrong_request_wherever_it_is_read() {
    let readers: [&[&str]; 4] =
        [&["env"], &["compile", "mla_combine", "--target", "sm_90"], &["run", "mla_combine"], &["cache", "stats"]];
    for args in readers {
        let out = with(args, &[("LATHE_CACHE", "yes")]);
        refused(args, &out, &["environment variable LATHE_CACHE=yes is not allowed", "off, ro or rw"]);
        let out = with(args, &[("LATHE_CACHE_MAX_BYTES", "-3")]);
        refused(args, &out, &["LATHE_CACHE_MAX_BYTES=-3", "a whole number of bytes"]);
    }
}

#[test]
fn doctor_tells_what_there_is_and_how_to_mend_the_rest() {
    let folder = Folder::new();
    let find = |report: &Value, what: &str| {
        report["findings"].as_array().unwrap().iter().find(|f| f["what"] == what).expect(what).clone()
    };
    let report = folder.json(&["doctor", "--json"]);
    let compiled = ["gfx950", "gfx942", "gfx1201", "sm_90"].map(|t| format!("compile {t}"));
    let executed = ["gfx950", "gfx942", "gfx1201"].map(|t| format!("run gcn:{t}"));
    let others = ["llvm", "disk cache", "environment"].map(str::to_owned);
    for what in compiled.iter().chain(&executed).chain(&others) {
        assert_eq!(find(&report, what)["state"], "ok", "{report}");
    }
    assert!(find(&report, "llvm")["version"].as_str().unwrap().starts_with("22."));
    for what in ["cuda driver", "hip runtime"] {
        let finding = find(&report, what);
        assert!(finding["state"] == "ok" || finding["mend"].as_str().is_some_and(|m| m.contains("sudo ")), "{finding}");
    }
    assert!(!Path::new(&folder.path("cache")).exists(), "looking changes nothing");

    let keys = folder.file("keys", "mla_combine ranks=1 tokens=1");
    folder.json(&["warm", &keys, "--targets", "sm_90", "--json"]);
    assert_eq!(find(&folder.json(&["doctor", "--json"]), "disk cache")["entries"], 1);
    std::fs::write(&folder.entries()[0], "no entry").unwrap();
    let cache = find(&folder.json(&["doctor", "--json"]), "disk cache");
    assert_eq!(
        (&cache["state"], &cache["damaged"], &cache["mend"]),
        (&"bad".into(), &1.into(), &"lathe cache verify".into())
    );
    assert_eq!(folder.entries().len(), 1, "looking changes nothing");

    let out = with(&["doctor"], &[("LATHE_CACHE", "yes"), ("LATHE_CACHE_DIR", &folder.path("keys"))]);
    assert!(out.status.success(), "bad findings are no failure");
    assert!(text(&out.stdout).contains("mend: unset LATHE_CACHE"), "{}", text(&out.stdout));
    let out = with(&["doctor", "--json"], &[("LATHE_CACHE_DIR", &folder.path("keys"))]);
    let cache = find(&object(&["doctor"], &out), "disk cache");
    assert_eq!(cache["state"], "bad");
    assert!(cache["found"].as_str().unwrap().ends_with("not a folder"), "{cache}");
}

#[test]
fn output_that_cannot_be_written_is_said_in_one_line() {
    for args in [&["list"][..], &["list", "--json"], &["run", "mla_combine"], &["env"]] {
        let full = std::fs::File::options().write(true).open("/dev/full").expect("/dev/full");
        let out = Command::new(env!("CARGO_BIN_EXE_lathe"))
            .args(args)
            .env("LATHE_CACHE", "off")
            .stdout(full)
            .output()
            .expect("the binary starts");
        let message = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{args:?}: {message}");
        assert!(message.starts_with("lathe: cannot write to standard output: "), "{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    }
}

#[test]
fn a_reader_who_has_seen_enough_is_no_crash() {
    let command =
        format!("'{}' run mla_combine --no-cache | head -c 1; exit ${{PIPESTATUS[0]}}", env!("CARGO_BIN_EXE_lathe"));
    let out = Command::new("bash").args(["-c", &command]).output().expect("bash starts");
    assert!(matches!(out.status.code(), Some(0 | 2)), "{:?}", out.status);
    assert_eq!(text(&out.stderr), "");
}

#[test]
fn a_field_is_set_once() {
    wrong(&["run", "mla_combine", "--set", "ranks=2", "--set", "ranks=4"], &["ranks is set twice"]);
    wrong(&["run", "mla_combine", "--set", "ranks=+8"], &["ranks=+8", "one of 1, 2, 4, 8"]);
}

/// Doubles what is below `n`; the last lane reads past the end if there are fewer elements than lanes.
const DOUBLE: &str = "kernel_ir 2
kernel @double wave 64 grid 1x1x1 block 64x1x1 {
  param %x x: buffer<f32> len 64 read align 4
  param %y y: buffer<f32> len 64 write align 4
  param %n n: u32
  %i: u32 = thread_id x
  %c: bool = cmp_lt %i, %n
  %v: f32 = buffer_load %x, %i
  %s: f32 = add %v, %v
  %r: f32 = select %c, %s, %v
  buffer_store %r, %y, %i
}
";

#[test]
fn opt_compiles_a_text_file_to_every_form() {
    let folder = Folder::new();
    let file = folder.file("double.kir", DOUBLE);
    let narrow = folder.file("narrow.kir", &DOUBLE.replace("wave 64", "wave 32"));
    for (path, args, head) in [
        (&file, &["--emit", "kir"][..], "kernel_ir 2\nkernel @double wave 64 grid 1x1x1"),
        (&file, &["--emit", "mlir"], "gpu.module"),
        (&file, &["--emit", "llvm"], "target triple = \"amdgcn-amd-amdhsa\""),
        (&file, &["--emit", "asm", "--target", "gfx942"], "gfx942"),
        (&file, &["--emit", "asm"], "v_add_f32"),
        (&file, &["--emit", "obj"], "\x7fELF"),
        (&narrow, &["--emit", "asm"], "gfx1201"),
        (&narrow, &["--emit", "asm", "--target", "sm_90"], ".visible .entry double("),
    ] {
        let out = lathe(&[&["opt", path.as_str()], args].concat());
        assert!(out.status.success(), "{args:?}: {}", text(&out.stderr));
        assert!(out.stdout.windows(head.len()).any(|w| w == head.as_bytes()), "{args:?}");
        assert!(text(&out.stderr).starts_with("double for "), "the record goes to standard error then");
    }
    // What is printed reads back.
    let printed = lathe(&["opt", &file, "--emit", "kir"]).stdout;
    let again = folder.file("again.kir", text(&printed));
    assert_eq!(lathe(&["opt", &again, "--emit", "kir"]).stdout, printed);
    let record = json(&["opt", &file, "--json"]);
    assert_eq!((&record["target"], &record["kernel"]), (&"gfx950".into(), &"double".into()));
    assert!(record["vgpr"].as_u64().is_some_and(|n| n > 0), "{record}");
}

/// A kernel that would be 20000 operations and more if its loop were unrolled as it says; what it computes is used nowhere.
const LARGE: &str = "\
kernel_ir 2
kernel @large wave 64 grid 1x1x1 block 64x1x1 {
  param %y y: buffer<u32> len 64 write align 4
  %i: u32 = thread_id x
  %z: u32 = const 0
  %n: u32 = const 20000
  for %z, %n, [] step=1 unroll=full {
    (%j: u32)
    %k: u32 = add %j, %i
  }
  buffer_store %i, %y, %i
}
";

#[test]
fn warnings_go_to_standard_error_with_their_place() {
    let folder = Folder::new();
    let file = folder.file("large.kir", LARGE);
    for args in [&["opt"][..], &["opt", "--json"], &["opt", "--emit", "asm"], &["interp"]] {
        let out = lathe(&[&args[..1], &[&file], &args[1..]].concat());
        let said = text(&out.stderr);
        assert!(out.status.success(), "{args:?}: {said}");
        let warning = said.lines().find(|l| l.starts_with("warning: ")).expect("a warning");
        assert!(warning.contains("large.kir:7:3: 20005 operations to compile, more than 10000"), "{args:?}: {warning}");
        assert_eq!(said.matches("warning").count(), 1, "{args:?}: {said}");
        assert!(!text(&out.stdout).contains("warning: "), "{args:?}");
    }
    let record = json(&["opt", &file, "--json"]);
    let warnings = record["warnings"].as_array().expect("a list");
    assert!(warnings.len() == 1 && warnings[0].as_str().is_some_and(|w| w.contains("large.kir:7:3")), "{record}");
    let quiet = lathe(&["opt", &folder.file("double.kir", DOUBLE)]);
    assert_eq!(text(&quiet.stderr), "");
}

#[test]
fn interp_runs_a_text_file_and_shows_what_it_wrote() {
    let folder = Folder::new();
    let file = folder.file("double.kir", DOUBLE);
    let bytes: Vec<u8> = (0..64u8).flat_map(|i| f32::from(i / 4).to_le_bytes()).collect();
    std::fs::write(folder.path("x.bin"), bytes).expect("a file");
    let x = format!("x=@{}", folder.path("x.bin"));
    for extra in [&[][..], &["--seed", "5", "--threads", "2"], &["--target", "gfx942"]] {
        let out = lathe(&[&["interp", &file, "--arg", &x, "--arg", "n=6"], extra].concat());
        assert!(out.status.success(), "{}", text(&out.stderr));
        let line = "y: f32[64] 0.0 x4 2.0 x2 1.0 x2 2.0 x4 3.0 x4 4.0 x4 5.0 x4 6.0 x4 7.0 x4 8.0 x4 9.0 x4 10.0 x4 \
                    11.0 x4 12.0 x4 13.0 x4 14.0 x4 and 4 more\n";
        assert_eq!(text(&out.stdout), line);
    }
    let zeros = lathe(&["interp", &file, "--arg", "x=zeros", "--arg", "n=0"]);
    assert_eq!(text(&zeros.stdout), "y: f32[64] 0.0 x64\n");
    let iota = lathe(&["interp", &file, "--arg", "x=iota", "--arg", "n=2"]);
    assert!(text(&iota.stdout).starts_with("y: f32[64] 0.0 2.0 x2 3.0 4.0"), "{}", text(&iota.stdout));

    let small = DOUBLE.replace("x: buffer<f32> len 64", "x: buffer<f32> len 3");
    let small = folder.file("small.kir", &small.replace("64x1x1", "4x1x1"));
    let out = lathe(&["interp", &small, "--arg", "x=1.5,-0.0,nan", "--arg", "n=9", "--full"]);
    assert_eq!(out.status.code(), Some(1), "a finding is no success");
    let printed = text(&out.stdout);
    for part in ["y: f32[64] 3.0 -0.0 0x7fc00000 0.0", "finding  ", "small.kir:8:3: read of buffer `x` at bytes 12..16"]
    {
        assert!(printed.contains(part), "{part} in\n{printed}");
    }
    let endless = DOUBLE.replace("%c: bool = cmp_lt %i, %n", "%q: u32 = div_floor %n, %n %c: bool = cmp_lt %i, %q");
    let out = lathe(&["interp", &folder.file("fault.kir", &endless), "--arg", "x=zeros", "--arg", "n=0"]);
    assert_eq!((out.status.code(), text(&out.stdout)), (Some(1), ""));
    for part in ["fault.kir:7:3: integer division by zero", "lane 0"] {
        assert!(text(&out.stderr).contains(part), "{}", text(&out.stderr));
    }
}

#[test]
fn wrong_text_files_and_arguments_are_one_line_and_status_2() {
    let folder = Folder::new();
    let file = folder.file("double.kir", DOUBLE);
    for verb in ["opt", "interp"] {
        wrong(&[verb], &["<FILE>"]);
        wrong(&[verb, "/nonexistent/k.kir"], &["cannot read /nonexistent/k.kir", "No such file"]);
        let other = |name: &str, old: &str, new: &str, wanted: &[&str]| {
            wrong(&[verb, &folder.file(name, &DOUBLE.replace(old, new))], wanted);
        };
        other(
            "a.kir",
            "add %v, %v",
            "add %v, %w",
            &["a.kir:9:21: found `%w` where a value that is defined before is wanted"],
        );
        other("b.kir", "kernel_ir 2", "kernel_ir 1", &["b.kir:1:1: found `kernel_ir 1`", "`kernel_ir 2`"]);
        other("c.kir", "add %v, %v", "add %v, %i", &["is refused", "c.kir:9:3: ", "u32"]);
        other("d.kir", "wave 64", "wave 48", &["kernel `double` is for waves of 48; chips have waves of 64 or 32"]);
        wrong(&[verb, &file, "--target", "sm_90"], &["is refused", "waves of 64", "sm_90 has waves of 32"]);
        wrong(&[verb, &file, "--target", "gfx9"], &["unknown target `gfx9`"]);
        std::fs::write(folder.path("binary.kir"), [0xFF, 0xFE]).expect("a file");
        wrong(&[verb, &folder.path("binary.kir")], &["cannot read", "UTF-8"]);
    }
    let interp = |args: &[&str], wanted: &[&str]| {
        let args: Vec<&str> = args.iter().flat_map(|a| ["--arg", a]).collect();
        wrong(&[&["interp", file.as_str()], args.as_slice()].concat(), wanted);
    };
    interp(&["n=1"], &["argument `x` is missing", "64 elements of f32"]);
    interp(&["x=zeros"], &["argument `n` is missing", "u32"]);
    interp(&["x=zeros", "n=-1"], &["argument `n` is `-1` where a number of type u32 is wanted"]);
    interp(&["x=1,2", "n=1"], &["argument `x` has 8 bytes; 64 elements of f32, 4 bytes each, are wanted"]);
    interp(&["x=1,b", "n=1"], &["argument `x` is `b` where a number of type f32 is wanted"]);
    interp(&["x=@/nonexistent/x", "n=1"], &["argument `x` cannot be read from /nonexistent/x"]);
    interp(&["x=zeros", "n=1", "m=2"], &["`double` has no parameter `m`; it has: x, y, n"]);
    interp(&["x=zeros", "n=1", "n=2"], &["argument `n` is given twice"]);
    interp(&["x"], &["NAME=VALUE"]);
    wrong(&["interp", &file, "--threads", "0"], &["--threads"]);
}

#[test]
fn checks_are_chosen() {
    let folder = Folder::new();
    // All threads store to one element; in the second kernel, 0 · inf besides.
    let race = folder.file("race.kir", &DOUBLE.replace("buffer_store %r, %y, %i", "buffer_store %r, %y, %n"));
    let interp = |file: &str, x: &str, extra: &[&str]| {
        let args = ["interp", file, "--arg", x, "--arg", "n=3", "--threads", "1"];
        lathe(&[&args, extra].concat())
    };
    for extra in [&[][..], &["--checks", "races"], &["--checks", "default"], &["--checks", "all"]] {
        let out = interp(&race, "x=iota", extra);
        assert_eq!(out.status.code(), Some(1));
        let wanted = "race.kir:11:3: write to buffer `y` at byte 12 races with the write at ";
        assert!(text(&out.stdout).contains(wanted), "{}", text(&out.stdout));
    }
    for extra in ["none", "waits", "waits,nan"] {
        let out = interp(&race, "x=iota", &["--checks", extra]);
        assert!(out.status.success(), "{extra}: {}", text(&out.stdout));
    }
    let nan = folder.file("nan.kir", &DOUBLE.replace("add %v, %v", "sub %v, %v"));
    let input = format!("x=inf{}", ",1.0".repeat(63));
    assert!(interp(&nan, &input, &[]).status.success());
    let out = interp(&nan, &input, &["--checks", "nan"]);
    assert!(text(&out.stdout).contains("nan.kir:9:3: a NaN (f32) made of operands that are none"), "{out:?}");
    assert_eq!(out.status.code(), Some(1));

    wrong(&["interp", &race, "--checks", "racing"], &["unknown check `racing`", "races, waits, nan"]);
    let run = ["run", "mla_combine", "--set", "ranks=1", "--checks", "races"];
    assert!(lathe(&run).status.success());
    wrong(&[&run[..], &["--device", "gcn:gfx950"]].concat(), &["--checks is for device `cpu`", "`gcn:gfx950`"]);
}

/// Width, height and bytes of a PPM file as the command writes it.
fn ppm(path: &str) -> (String, Vec<u8>) {
    let bytes = std::fs::read(path).expect("a picture");
    let ends: Vec<usize> = (0..bytes.len()).filter(|i| bytes[*i] == b'\n' || bytes[*i] == b' ').collect();
    (text(&bytes[..ends[2]]).to_owned(), bytes[ends[3] + 1..].to_vec())
}

/// The decibels of the bytes of two pictures, worked out from the files.
fn decibels(a: &[u8], b: &[u8]) -> f64 {
    assert_eq!(a.len(), b.len());
    let square: f64 = a.iter().zip(b).map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum();
    10.0 * (255.0 * 255.0 * a.len() as f64 / square).log10()
}

#[test]
fn run_denoises_a_picture() {
    let folder = Folder::new();
    let path = |name: &str| folder.path(name);
    // Two flat halves, 12×7: odd, and windows that hang over every side.
    let mut clean = b"P6\n12 7\n255\n".to_vec();
    clean.extend((0..12 * 7).flat_map(|i| if i % 12 < 6 { [60, 90, 200] } else { [220, 180, 30] }));
    std::fs::write(path("clean.ppm"), clean).unwrap();
    let (clean, noisy, once, twice) = (&path("clean.ppm"), &path("noisy.ppm"), &path("once.ppm"), &path("twice.png"));
    let report = folder.json(&[
        "run",
        "dec2",
        "--image",
        clean,
        "--noise",
        "0.05",
        "--seed",
        "3",
        "--noisy-output",
        noisy,
        "-o",
        once,
        "--json",
    ]);
    assert_eq!(report["ok"], true, "{report}");
    assert_eq!((report["key"]["ex"].as_u64(), report["key"]["ey"].as_u64()), (Some(12), Some(7)));
    assert_eq!(report["checks"].as_array().map(Vec::len), Some(2));
    let of = |name: &str| report["psnr"][name].as_f64().unwrap();
    assert!(of("after") > of("before") + 3.0 && of("edges_after") > of("edges_before"), "{report}");
    // The numbers are of the files.
    let files = [clean, noisy, once].map(|path| ppm(path));
    assert!(files.iter().all(|(head, _)| head == "P6\n12 7"), "{files:?}");
    for (i, name) in [(1, "before"), (2, "after")] {
        let worked_out = decibels(&files[i].1, &files[0].1);
        assert!((of(name) - worked_out).abs() < 0.02, "{name}: {} {worked_out}", of(name));
    }
    // The noisy file is what was denoised.
    let out = folder.lathe(&["run", "dec2", "--image", noisy, "--clean", clean, "-o", twice, "--seed", "3"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let wanted = format!("psnr     {:.2} dB before, {:.2} dB after\n", of("before"), of("after"));
    assert!(text(&out.stdout).contains(&wanted), "`{wanted}` in {}", text(&out.stdout));
    assert!(std::fs::read(twice).unwrap().starts_with(b"\x89PNG"));
    // With nothing to compare with there is nothing to tell.
    let report =
        folder.json(&["run", "dec2", "--image", twice, "-o", once, "--set", "ox=0", "--set", "oy=2", "--json"]);
    assert!(report["psnr"].is_null() && report["key"]["oy"] == 2, "{report}");
}

#[test]
fn wrong_requests_for_pictures_are_one_line_and_status_2() {
    let folder = Folder::new();
    let good = &folder.file("good.ppm", "P3\n2 2\n255\n1 2 3 4 5 6 7 8 9 10 11 12\n");
    let other = &folder.file("other.ppm", "P3\n4 1\n255\n1 2 3 4 5 6 7 8 9 10 11 12\n");
    let thin = &folder.file("thin.ppm", "P3\n1 2\n255\n1 2 3 4 5 6\n");
    let words = &folder.file("words.png", "these are words");
    let cut = &folder.file("cut.ppm", "P3\n2 2\n255\n1 2 3");
    let (out, nowhere, jpeg) = (&folder.path("out.png"), &folder.path("no/out.png"), &folder.path("out.jpg"));
    let missing = &folder.path("missing.png");
    let image = |image, output| ["run", "dec2", "--image", image, "-o", output];
    let more = |more: &[&'static str]| [&image(good, out), more].concat();
    wrong(&image(missing, out), &["cannot read", "missing.png", "No such file"]);
    wrong(&image(words, out), &["words.png is no PNG or PNM picture"]);
    wrong(&image(cut, out), &["cut.ppm is no PNG or PNM picture"]);
    wrong(&image(thin, out), &["the image is 1×2", "must be at least 1"]);
    wrong(&image(good, nowhere), &["cannot write", "no/out.png", "No such file"]);
    wrong(&image(good, jpeg), &["out.jpg", "must end in .png or .ppm"]);
    wrong(&["run", "gemm_mx", "--image", good, "-o", out], &["`gemm_mx` takes no picture", "dec2"]);
    wrong(&["run", "dec2.e8", "--image", good, "-o", out], &["`dec2.e8` takes no picture"]);
    wrong(&["run", "dec2", "--image", good], &["--output <FILE>"]);
    wrong(&["run", "dec2", "-o", out], &["--image <FILE>"]);
    wrong(&["run", "dec2", "--noise", "0.1"], &["--image <FILE>"]);
    wrong(&more(&["--set", "ey=2"]), &["`ey` cannot be set", "picture"]);
    wrong(&more(&["--set", "ox=1"]), &["the origin (1, 4) is odd"]);
    wrong(&more(&["--noise", "2"]), &["a number from 0 to 1"]);
    wrong(&more(&["--noise", "-1"]), &["a number from 0 to 1"]);
    wrong(&more(&["--noise", "nan"]), &["a number from 0 to 1"]);
    wrong(&more(&["--noisy-output", "x.png"]), &["--noise <SIGMA>"]);
    wrong(&[&image(good, out)[..], &["--clean", other]].concat(), &["the image is 2×2, the clean one 4×1"]);
    wrong(&[&image(good, out)[..], &["--clean", good, "--noise", "0"]].concat(), &["cannot be used with"]);
    // Nothing was done.
    assert!(!Path::new(out).exists());
}
