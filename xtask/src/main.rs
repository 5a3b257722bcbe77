//! The project's chores: `cargo xtask demo`, `cargo xtask test` and what else [`USAGE`] lists.
//!
//! Everything is built in the release profile, so that the demo, the tests and the checks share one build of MLIR's
//! bindings.

mod binary;
mod book;
mod gpu;
mod run;
mod setup;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use run::{Report, cargo, command};

const USAGE: &str = "\
usage: cargo xtask VERB

  demo          install what is missing, build, finish an attention layer of eight ranks on the CPU device
  test          install what is missing; formatting, lints, documentation, all tests
  bless         accept golden IR and the other snapshots as they are now; fill in the file tests' lines `TARGET: ?`
  exhaustive    every f32 through the conversions to narrow floats and through exp, exp2, log, sin and their like (hours)
  gcn-coverage  hold the instructions of every golden AMD object against those that device gcn executes
  gpu-bundle    pack the tests with all they need into target/gpu, for a machine with a GPU and without Rust";

/// Crates that must build, test and document on a machine without LLVM, as they are without their feature `jit`.
const WITHOUT_LLVM: [&str; 7] =
    ["-p", "lathe-dsl", "-p", "lathe-runtime", "-p", "lathe-kernels", "--no-default-features"];
/// What launches bundles on AMD GPUs; its tests run with those of all crates.
const HIP_WITHOUT_LLVM: [&str; 5] = ["-p", "lathe-runtime", "--no-default-features", "--features", "hip"];
/// All crates with every feature, as the tests of the whole workspace need them.
const EVERYTHING: [&str; 3] = ["--workspace", "--features", "lathe-kernels/hip"];
/// Crates that need LLVM to build; none may be among the dependencies of those.
const LLVM_CRATES: [&str; 6] = ["melior", "mlir-sys", "inkwell", "llvm-sys", "tblgen", "lathe-codegen"];
/// Where build scripts look for LLVM.
const LLVM_PREFIXES: [&str; 3] = ["MLIR_SYS_220_PREFIX", "TABLEGEN_220_PREFIX", "LLVM_SYS_221_PREFIX"];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let verb = match arguments.as_slice() {
        [verb] => verb.as_str(),
        _ => "",
    };
    let mut report = Report::default();
    let done = match verb {
        "demo" => demo(&mut report),
        "test" => test(&mut report),
        "bless" => bless(&mut report),
        "exhaustive" => exhaustive(&mut report),
        "gcn-coverage" => gcn_coverage(&mut report),
        "gpu-bundle" => gpu_bundle(&mut report),
        "help" | "--help" | "-h" => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    report.print();
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn demo(report: &mut Report) -> Result<(), String> {
    report.step("Debian packages", setup::install)?;
    report.step("build", build_lathe)?;
    report.step("mla_post on the CPU device", || {
        let job = ["run", "mla_post", "--set", "ranks=8", "--set", "tokens=8", "--set", "q=8", "--device", "cpu"];
        command(lathe_binary()?).args(job).run()
    })
}

fn test(report: &mut Report) -> Result<(), String> {
    report.step("format", || cargo("fmt").args(["--all", "--check"]).run())?;
    report.step("book", || book::check(&root()))?;
    // Before anything is installed, and with LLVM hidden where it is there already.
    report.step("without LLVM: dependencies", dependencies_without_llvm)?;
    report.step("without LLVM: lints", || lints(&hide_llvm, &WITHOUT_LLVM))?;
    report.step("without LLVM: lints of device hip", || lints(&hide_llvm, &HIP_WITHOUT_LLVM))?;
    report.step("without LLVM: tests", || hide_llvm(cargo("test").arg("--release").args(WITHOUT_LLVM)).run())?;
    report.step("single flight, every interleaving", model_check)?;
    report.step("without LLVM: documentation", || documentation(&hide_llvm, &WITHOUT_LLVM))?;
    report.step("Debian packages", setup::install_for_tests)?;
    report.step("lints", || lints(&|c| c, &EVERYTHING))?;
    report.step("documentation", || documentation(&|c| c, &EVERYTHING))?;
    report.step("build", build_lathe)?;
    report.step("binary", || binary::check(&lathe_binary()?))?;
    report.step("tests", || cargo("test").arg("--release").args(EVERYTHING).env("INSTA_UPDATE", "no").run())?;
    if cargo("deny").arg("--version").quiet() {
        report.step("licences and sources", || cargo("deny").args(["check", "bans", "licenses", "sources"]).run())?;
    }
    Ok(())
}

fn bless(report: &mut Report) -> Result<(), String> {
    report.step("Debian packages", setup::install)?;
    report.step("snapshots", || integration_tests("", "always"))
}

fn exhaustive(report: &mut Report) -> Result<(), String> {
    report.step("every f32", || {
        let ignored = ["--package", "lathe-dsl", "--lib", "--", "--ignored", "--nocapture"];
        hide_llvm(cargo("test").arg("--release").args(ignored)).run()
    })
}

fn gcn_coverage(report: &mut Report) -> Result<(), String> {
    report.step("Debian packages", setup::install)?;
    report.step("instructions of the golden AMD objects", || {
        integration_tests("every_golden_amd_object_uses_only_implemented_instructions", "no")
    })
}

fn gpu_bundle(report: &mut Report) -> Result<(), String> {
    report.step("Debian packages", setup::install)?;
    report.step("bundle", || gpu::bundle(&target_folder()?.join("gpu")))
}

/// Runs the integration tests whose names hold `filter`, showing what they print; an error where there is none.
fn integration_tests(filter: &str, insta_update: &str) -> Result<(), String> {
    let tests = || cargo("test").args(["--release", "--package", "lathe-tests", "--test", "lathe", "--", filter]);
    if !tests().arg("--list").output()?.contains(": test") {
        return Err(format!("no test of lathe-tests is called {filter}"));
    }
    let tests = tests().arg("--nocapture").env("INSTA_UPDATE", insta_update);
    if insta_update == "always" { tests.env("LATHE_BLESS", "1") } else { tests }.run()
}

/// Lets loom run the JIT's single flight in every interleaving of its threads. Its own target folder: `--cfg loom` is a flag
/// of every crate. Not optimised: it is built longer than it runs.
fn model_check() -> Result<(), String> {
    let flight = ["--package", "lathe-runtime", "--no-default-features", "--lib", "--", "flight::model"];
    let quick = r#"profile.dev.package."*".opt-level=0"#;
    let folder = target_folder()?.join("loom");
    let test = cargo("test").args(["--config", quick]).args(flight).env("RUSTFLAGS", "--cfg loom");
    hide_llvm(test.env("CARGO_TARGET_DIR", &folder.to_string_lossy())).run()
}

/// Builds `lathe` with the features that the tests of the whole workspace use, so that both share one build.
fn build_lathe() -> Result<(), String> {
    cargo("build").args(["--release", "--bin", "lathe"]).args(EVERYTHING).run()
}

fn lints(prepare: &dyn Fn(run::Command) -> run::Command, packages: &[&str]) -> Result<(), String> {
    let clippy = cargo("clippy").args(["--release", "--all-targets"]).args(packages.iter().copied());
    prepare(clippy.args(["--", "-D", "warnings"])).run()
}

fn documentation(prepare: &dyn Fn(run::Command) -> run::Command, packages: &[&str]) -> Result<(), String> {
    let doc = cargo("doc").args(["--release", "--no-deps"]).args(packages.iter().copied());
    prepare(doc.env("RUSTDOCFLAGS", "-D warnings")).run()
}

/// Lets a command find no LLVM, wherever it is installed.
fn hide_llvm(command: run::Command) -> run::Command {
    LLVM_PREFIXES.iter().fold(command, |command, name| command.env(name, "/nonexistent"))
}

/// A build that was made with LLVM could be reused unseen with LLVM hidden, so the dependencies are looked at too.
fn dependencies_without_llvm() -> Result<(), String> {
    let tree = cargo("tree").args(WITHOUT_LLVM).args(["--edges", "normal,build,dev", "--prefix", "none"]).output()?;
    let found: Vec<&str> =
        tree.lines().filter(|line| line.split(' ').next().is_some_and(|name| LLVM_CRATES.contains(&name))).collect();
    if tree.lines().count() < 3 || !found.is_empty() {
        return Err(format!("crates that need LLVM: {found:?}, in\n{tree}"));
    }
    println!("none of {}", LLVM_CRATES.join(", "));
    Ok(())
}

/// The root of the checkout: told by cargo at run time, since checkouts that share a target folder share this program.
fn root() -> PathBuf {
    let own = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&own).join("..")
}

/// Where [`build_lathe`] leaves the binary: beside this program's own profile, whatever the target folder is called.
fn lathe_binary() -> Result<PathBuf, String> {
    Ok(target_folder()?.join("release").join("lathe"))
}

fn target_folder() -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|e| format!("cannot tell where xtask lies: {e}"))?;
    own.parent()
        .and_then(Path::parent)
        .map(Path::to_path_buf)
        .ok_or_else(|| "xtask lies in no target folder".to_owned())
}
