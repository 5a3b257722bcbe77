//! Measurements that need a process of their own. The child prints nanoseconds, the parent reads them.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lathe_dsl::Target;
use lathe_dsl::artifact::CacheSource;
use lathe_runtime::cache::{CacheOptions, DiskCache};
use lathe_runtime::jit::{Jit, Llvm};

use crate::KEY;

/// Names the measurement in the child's environment.
const WHAT: &str = "LATHE_BENCH_FRESH";

/// Names the folder of the child's disk cache.
const DIR: &str = "LATHE_BENCH_FRESH_DIR";

/// One measurement.
pub struct Fresh {
    /// Name in the report.
    pub name: &'static str,
    child: fn(&Path) -> Duration,
}

/// All of them.
pub static ALL: [Fresh; 4] = [
    Fresh { name: "first_compile/gfx950", child: |_| compile(false, Target::GFX950) },
    Fresh { name: "first_compile_after_warm_up/gfx950", child: |_| compile(true, Target::GFX950) },
    Fresh { name: "warm_up", child: |_| timed(lathe_codegen::warm_up).1 },
    Fresh { name: "disk_hit/gfx950", child: disk_hit },
];

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let value = work();
    (value, start.elapsed())
}

fn compile(warm: bool, target: Target) -> Duration {
    if warm {
        lathe_codegen::warm_up();
    }
    let kernel = lathe_dsl::trace(&KEY, target).expect("traces");
    timed(|| lathe_codegen::compile(&kernel, target, &lathe_codegen::Options::default()).expect("compiles")).1
}

fn cached(dir: &Path) -> Jit {
    Jit::with_cache(Llvm::default(), Arc::new(DiskCache::open(CacheOptions::new(dir))))
}

/// From a new JIT to a kernel ready to launch: trace, key, read, check, decode.
fn disk_hit(dir: &Path) -> Duration {
    let (compiled, time) = timed(|| cached(dir).get(&KEY, Target::GFX950).expect("is there"));
    assert_eq!(compiled.cache(), CacheSource::Disk);
    time
}

impl Fresh {
    /// Makes what the measurement finds.
    pub fn prepare(&self, dir: &Path) {
        cached(dir).get(&KEY, Target::GFX950).expect("compiles");
    }

    /// Takes it in a fresh process.
    pub fn measure(&self, dir: &Path) -> Duration {
        let exe = std::env::current_exe().expect("this program's path");
        let output = Command::new(exe).env(WHAT, self.name).env(DIR, dir).output().expect("starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).expect("a number");
        Duration::from_nanos(text.trim().parse().expect("a number"))
    }
}

/// Whether this is a child; if so, its work is done.
pub fn is_child() -> bool {
    let (Ok(name), Some(dir)) = (std::env::var(WHAT), std::env::var_os(DIR)) else { return false };
    let what = ALL.iter().find(|what| what.name == name).expect("a measurement");
    println!("{}", (what.child)(Path::new(&dir)).as_nanos());
    true
}
