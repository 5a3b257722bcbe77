//! `lathe doctor`.

use std::path::Path;
use std::time::Instant;

use lathe_dsl::Target;
use lathe_kernels::registry::Entry;
use lathe_runtime::Engine;
use lathe_runtime::cache::{CacheMode, CacheOptions, DiskCache};
use lathe_runtime::drivers::{self, Driver, NoDriver};
use lathe_runtime::env::{ALL, CACHE_DIR};
use lathe_runtime::gcn;
use lathe_runtime::jit::{Jit, Llvm};
use serde::Serialize;

use crate::failure::Failure;
use crate::output::say;
use crate::size;

#[derive(clap::Args)]
pub struct Doctor {
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// One thing that was looked at.
#[derive(Serialize)]
struct Finding {
    what: String,
    state: State,
    /// What was found, in a line.
    found: String,
    /// The command that mends it, or what else does.
    mend: Option<String>,
    /// More of what was found, for programs.
    #[serde(flatten)]
    details: serde_json::Map<String, serde_json::Value>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    /// It works.
    Ok,
    /// It is not there; Lathe works without it.
    Missing,
    /// It is there and does not work.
    Bad,
}

impl Finding {
    fn new(what: impl Into<String>, state: State, found: impl Into<String>) -> Self {
        Self { what: what.into(), state, found: found.into(), mend: None, details: serde_json::Map::new() }
    }

    fn mend(self, mend: impl Into<String>) -> Self {
        Self { mend: Some(mend.into()), ..self }
    }

    fn detail(mut self, name: &str, value: impl Into<serde_json::Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }
}

impl Doctor {
    pub fn execute(&self) -> Result<(), Failure> {
        let mut findings = vec![llvm()];
        findings.extend(Target::all().map(compiler));
        findings.extend(gcn::targets().map(executor));
        findings.push(driver("cuda driver", drivers::cuda(), drivers::cuda_version, CUDA_MEND));
        findings.push(driver("hip runtime", drivers::hip(), drivers::hip_version, HIP_MEND));
        findings.push(cache());
        findings.push(environment());
        if self.json {
            let version = env!("CARGO_PKG_VERSION");
            say!("{}", serde_json::json!({ "lathe": version, "findings": findings }));
            return Ok(());
        }
        for f in &findings {
            let state = match f.state {
                State::Ok => "ok",
                State::Missing => "missing",
                State::Bad => "BAD",
            };
            say!("{:<16} {state:<8} {}", f.what, f.found);
            if let Some(mend) = &f.mend {
                say!("{:<25} mend: {mend}", "");
            }
        }
        Ok(())
    }
}

fn llvm() -> Finding {
    let llvm = lathe_codegen::toolchain().llvm;
    Finding::new("llvm", State::Ok, format!("LLVM and MLIR {llvm}, lld, in this process")).detail("version", llvm)
}

/// Compiles a real kernel, which takes MLIR, LLVM and, for AMD, lld.
fn compiler(target: Target) -> Finding {
    let what = format!("compile {target}");
    let Ok(kernel) = Entry::find("gemm_mx") else { return Finding::new(what, State::Missing, "there is no `gemm_mx`") };
    let start = Instant::now();
    let compiled = kernel
        .build(&[])
        .map_err(|e| e.to_string())
        .and_then(|build| build.compile(&Jit::new(Llvm::default()), target).map_err(|e| e.to_string()));
    let ms = start.elapsed().as_secs_f64() * 1e3;
    match compiled {
        Ok(compiled) => {
            let bytes = compiled.record().resources.code_bytes;
            let found = format!("`{}`: {bytes} bytes of code in {ms:.0} ms", kernel.name);
            Finding::new(what, State::Ok, found).detail("ms", ms)
        }
        Err(e) => Finding::new(what, State::Bad, e.split_whitespace().collect::<Vec<_>>().join(" "))
            .mend("sudo apt-get install --reinstall libllvm22"),
    }
}

/// Runs a real kernel on the device `gcn` and checks its results.
fn executor(target: Target) -> Finding {
    let what = format!("run gcn:{target}");
    // A small one: every instruction takes its time there.
    let Ok(kernel) = Entry::find("mla_combine") else {
        return Finding::new(what, State::Missing, "there is no kernel");
    };
    let start = Instant::now();
    let engine = Engine::open(&format!("gcn:{target}"), None).map_err(|e| e.to_string());
    let report = engine.and_then(|engine| {
        let build = kernel.build(&[("tokens".to_owned(), "1".to_owned())]).map_err(|e| e.to_string())?;
        build.run(&engine, 0).map_err(|e| e.to_string())
    });
    let ms = start.elapsed().as_secs_f64() * 1e3;
    match report {
        Ok(report) if report.ok => {
            let found = format!("`{}`: compiled, run and checked in {ms:.0} ms", kernel.name);
            Finding::new(what, State::Ok, found).detail("ms", ms)
        }
        Ok(_) => Finding::new(what, State::Bad, format!("`{}`: wrong results", kernel.name)),
        Err(e) => Finding::new(what, State::Bad, e.split_whitespace().collect::<Vec<_>>().join(" ")),
    }
}

/// What to do if there is no library, and if there is one without a device.
type Mend = (&'static str, &'static str);

const CUDA_MEND: Mend = (
    "sudo apt-get install nvidia-driver (Debian: section non-free), for machines with an NVIDIA GPU; devices cpu and gcn do \
     without",
    "nvidia-smi tells whether the driver sees a GPU; sudo modprobe nvidia loads its kernel module",
);

const HIP_MEND: Mend = (
    "sudo apt-get install libamdhip64-5 (Debian), or AMD's ROCm, for machines with an AMD GPU; devices cpu and gcn do without",
    "rocminfo tells whether the runtime sees a GPU; sudo modprobe amdgpu loads its kernel module",
);

fn driver(
    what: &'static str,
    found: Result<Driver, NoDriver>,
    version: impl Fn(i32) -> String,
    (absent, no_device): Mend,
) -> Finding {
    match found {
        Ok(driver) => {
            let build = driver.build.as_ref().map_or(String::new(), |b| format!(", driver {b}"));
            let text = format!("{}, version {}{build}", driver.library, version(driver.version));
            let finding = match driver.devices.as_slice() {
                [] => Finding::new(what, State::Missing, format!("{text}, no device")).mend(no_device),
                devices => {
                    let listed: Vec<String> = devices.iter().enumerate().map(|(i, d)| format!("{i}: {d}")).collect();
                    Finding::new(what, State::Ok, format!("{text}; {}", listed.join("; ")))
                }
            };
            finding
                .detail("version", version(driver.version))
                .detail("build", driver.build)
                .detail("devices", serde_json::json!(driver.devices))
        }
        Err(e @ NoDriver::NoLibrary { .. }) => Finding::new(what, State::Missing, e.to_string()).mend(absent),
        Err(e) => Finding::new(what, State::Bad, e.to_string()).mend(no_device),
    }
}

/// Looks at the disk cache without changing it.
fn cache() -> Finding {
    let what = "disk cache";
    let options = match CacheOptions::from_env() {
        Ok(options) => options,
        Err(e) => return Finding::new(what, State::Bad, e.to_string()).mend(format!("unset {}", e.name)),
    };
    let (dir, mode) = (options.dir.clone(), options.mode);
    let path = dir.display().to_string();
    let quoted = format!("'{path}'");
    let finding = |state, found: String| {
        Finding::new(what, state, format!("{path}: {found}"))
            .detail("dir", path.clone())
            .detail("mode", mode.to_string())
    };
    if mode == CacheMode::Off {
        return finding(State::Missing, "switched off".to_owned()).mend("unset LATHE_CACHE");
    }
    if dir.exists() && !dir.is_dir() {
        return finding(State::Bad, "not a folder".to_owned()).mend(format!("rm {quoted}"));
    }
    let writable = nearest_folder(&dir).is_some_and(|folder| tempfile::tempfile_in(folder).is_ok());
    if mode == CacheMode::ReadWrite && !writable {
        let mend = format!("mkdir -p {quoted} && chmod u+rwx {quoted}, or set {} to another folder", CACHE_DIR.name);
        return finding(State::Bad, "cannot be written".to_owned()).mend(mend);
    }
    if !dir.exists() {
        return match mode {
            CacheMode::ReadOnly => finding(State::Missing, "not there".to_owned()).mend("unset LATHE_CACHE"),
            _ => finding(State::Ok, "made when it is first needed".to_owned()),
        };
    }
    let cache = DiskCache::open(CacheOptions { mode: CacheMode::ReadOnly, ..options });
    let (stats, health) = (cache.stats(), cache.verify());
    let damaged = health.damaged.len();
    let found = format!("{} entries, {}, {damaged} damaged", stats.entries, size(stats.bytes));
    let finding = match damaged {
        0 => finding(State::Ok, found),
        _ => finding(State::Bad, found).mend("lathe cache verify"),
    };
    finding.detail("entries", stats.entries).detail("bytes", stats.bytes).detail("damaged", damaged)
}

/// The folder itself, or the nearest one above it that exists.
fn nearest_folder(dir: &Path) -> Option<&Path> {
    dir.ancestors().map(|p| if p.as_os_str().is_empty() { Path::new(".") } else { p }).find(|p| p.exists())
}

fn environment() -> Finding {
    let what = "environment";
    match ALL.iter().find_map(|v| v.value().err()) {
        Some(e) => Finding::new(what, State::Bad, e.to_string()).mend(format!("unset {}", e.name)),
        None => {
            let set: Vec<&str> = ALL.iter().filter(|v| v.is_set()).map(|v| v.name()).collect();
            let found =
                if set.is_empty() { "no variable is set".to_owned() } else { format!("set: {}", set.join(", ")) };
            Finding::new(what, State::Ok, found)
        }
    }
}
