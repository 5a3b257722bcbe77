//! The JIT and its disk cache among several processes: this test binary runs itself as the others.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Instant;

use super::*;
use crate::cache::CacheOptions;
use crate::key::DiskKey;

/// What another process does; unset in the tests themselves.
const ROLE: &str = "LATHE_TEST_ROLE";
/// The cache's folder.
const DIR: &str = "LATHE_TEST_DIR";

const KEY: Shift = Shift { n: 64, trouble: 0 };

/// Where the other processes begin.
#[test]
fn another_process() {
    let Some(role) = std::env::var_os(ROLE) else { return };
    let dir = PathBuf::from(std::env::var_os(DIR).unwrap());
    let cache = Arc::new(DiskCache::open(CacheOptions::new(&dir)));
    match role.to_str().unwrap() {
        "keys" => tell(&keys()),
        "get" => get_when_told(&dir, cache),
        "hold" => {
            let compiler = Texts { time: Duration::from_secs(3600), ..Texts::default() };
            Jit::with_cache(Announced(compiler), cache).get(&KEY, Target::GFX950).unwrap();
        }
        "write" => write_for_ever(&cache),
        role => panic!("no role {role}"),
    }
}

/// Prints a line that [`Other::line`] finds among what the test harness prints.
fn tell(text: &str) {
    println!("\n> {text}");
}

/// Says when a compile begins.
struct Announced(Texts);

impl Compiler for Announced {
    fn compile(&self, kernel: &Arc<ir::Kernel>, target: Target) -> Result<(Code, CompileRecord), Error> {
        tell("compiling");
        self.0.compile(kernel, target)
    }

    fn fingerprint(&self) -> Option<Fingerprint> {
        self.0.fingerprint()
    }
}

/// Keys of some kernels, for all targets.
fn keys() -> String {
    let key = |n: u32, target: Target| {
        let kernel = lathe_dsl::trace(&Shift { n, trouble: 0 }, target).unwrap();
        DiskKey::of(&kernel, target, "flags", &Texts::default().fingerprint().unwrap()).to_string()
    };
    let keys: Vec<String> = Target::all().flat_map(|t| [1, 64, 4096].map(|n| key(n, t))).collect();
    keys.join(" ")
}

/// Gets [`KEY`] for every target once there is a file `go`, and tells what happened.
fn get_when_told(dir: &Path, cache: Arc<DiskCache>) {
    let compiler = Texts { time: Duration::from_millis(100), padding: 20_000, ..Texts::default() };
    let jit = Jit::with_cache(compiler.clone(), cache);
    tell("ready");
    let start = Instant::now();
    while !dir.join("go").exists() {
        assert!(start.elapsed() < Duration::from_secs(60), "never told to go");
        std::thread::sleep(Duration::from_millis(1));
    }
    let sources: Vec<String> = Target::all().map(|t| jit.get(&KEY, t).unwrap().cache().to_string()).collect();
    let stats = jit.cache().unwrap().stats();
    assert_eq!(jit.counters().compiles, u64::from(compiler.compiles.load(Ordering::SeqCst)));
    tell(&format!("{} {} {}", jit.counters().compiles, stats.failed_writes, sources.join(",")));
}

/// Keys that [`write_for_ever`] writes.
const WRITTEN: u8 = 3;

/// The artifact of a key, generation by generation: every byte of its code is the same.
fn written(key: u8, generation: u32) -> Artifact {
    let code = vec![generation as u8; 300_000];
    Artifact { target: Target::GFX950, symbol: format!("{key}:{generation}"), code, record: CompileRecord::default() }
}

fn written_key(key: u8) -> DiskKey {
    DiskKey::from_bytes([key; 32])
}

/// Replaces entries under their locks, without end.
fn write_for_ever(cache: &DiskCache) {
    tell("writing");
    for generation in 0.. {
        for key in 0..WRITTEN {
            let acquired = cache.lock(&written_key(key), Duration::from_secs(60));
            assert!(acquired.lock.is_some() && cache.put(&written_key(key), &written(key, generation)));
        }
    }
}

/// A process that this test started; killed when dropped.
struct Other {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Other {
    fn start(role: &str, dir: &Path) -> Self {
        let program = std::env::current_exe().unwrap();
        Self::start_by(&[program.as_os_str()], role, dir)
    }

    /// Starts this test binary through other programs: `program` ends with the binary's path.
    fn start_by(program: &[&OsStr], role: &str, dir: &Path) -> Self {
        let mut child = Command::new(program[0])
            .args(&program[1..])
            .args(["--exact", "jit::tests::processes::another_process", "--nocapture", "--test-threads=1"])
            .env(ROLE, role)
            .env(DIR, dir)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    /// The next line that the process [`tell`]s.
    fn line(&mut self) -> String {
        let mut line = String::new();
        while self.lines.read_line(&mut line).unwrap() > 0 {
            if let Some(text) = line.trim_end().strip_prefix("> ") {
                return text.to_owned();
            }
            line.clear();
        }
        let mut errors = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        panic!("the process ended without a word: {errors}");
    }

    /// What a process in the role `get` tells: compiles, failed writes, and where each target's kernel came from.
    fn outcome(mut self) -> (u32, u32, Vec<String>) {
        let line = self.line();
        assert!(self.child.wait().unwrap().success());
        let words: Vec<&str> = line.split(' ').collect();
        let [compiles, failed, sources] = words[..] else { panic!("{line}") };
        (compiles.parse().unwrap(), failed.parse().unwrap(), sources.split(',').map(str::to_owned).collect())
    }

    fn kill(&mut self) {
        self.child.kill().unwrap(); // SIGKILL
        self.child.wait().unwrap();
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn go(dir: &Path) {
    fs::write(dir.join("go"), "").unwrap();
}

#[test]
fn keys_are_the_same_in_every_process() {
    let dir = tempfile::tempdir().unwrap();
    let mut others = [Other::start("keys", dir.path()), Other::start("keys", dir.path())];
    for other in &mut others {
        assert_eq!(other.line(), keys());
    }
}

#[test]
fn cold_processes_compile_a_key_once_in_all() {
    let dir = tempfile::tempdir().unwrap();
    let mut others: Vec<Other> = (0..8).map(|_| Other::start("get", dir.path())).collect();
    for other in &mut others {
        assert_eq!(other.line(), "ready");
    }
    go(dir.path());
    let outcomes: Vec<_> = others.into_iter().map(Other::outcome).collect();
    let targets = Target::all().count();
    let sources = |wanted: &str| outcomes.iter().flat_map(|o| &o.2).filter(|s| *s == wanted).count();
    assert_eq!(outcomes.iter().map(|o| o.0).sum::<u32>() as usize, targets, "{outcomes:?}");
    assert_eq!(sources("miss"), targets, "{outcomes:?}");
    assert_eq!(sources("waited") + sources("disk"), 7 * targets, "{outcomes:?}");
    assert!(sources("waited") > 0, "{outcomes:?}");

    // And the next process compiles nothing, for any target.
    let mut next = Other::start("get", dir.path());
    next.line();
    assert_eq!(next.outcome(), (0, 0, vec!["disk".to_owned(); targets]));
}

#[test]
fn a_dead_owners_lock_is_free() {
    let dir = tempfile::tempdir().unwrap();
    let mut owner = Other::start("hold", dir.path());
    assert_eq!(owner.line(), "compiling");
    let jit = Jit::with_cache(Texts::default(), Arc::new(DiskCache::open(CacheOptions::new(dir.path()))));
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| jit.get(&KEY, Target::GFX950).unwrap());
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(jit.counters().compiles, 0, "it waits for the owner");
        assert!(!waiter.is_finished());
        let start = Instant::now();
        owner.kill();
        assert_eq!(waiter.join().unwrap().cache(), CacheSource::Miss);
        assert!(start.elapsed() < Duration::from_secs(10));
    });
    assert_eq!(jit.counters(), Counters { misses: 1, compiles: 1, ..Counters::default() });
}

#[test]
fn killing_a_writer_at_any_moment_damages_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let cache = DiskCache::open(CacheOptions::new(dir.path()));
    let mut random = 0x9E37_79B9u32;
    let mut seen = 0;
    let mut unfinished = 0;
    for _ in 0..60 {
        let mut writer = Other::start("write", dir.path());
        assert_eq!(writer.line(), "writing");
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        std::thread::sleep(Duration::from_micros(u64::from(random >> 12) % 60_000));
        writer.kill();
        for key in 0..WRITTEN {
            if let Some(artifact) = cache.get(&written_key(key)) {
                let generation = artifact.symbol.strip_prefix(&format!("{key}:")).unwrap().parse().unwrap();
                assert_eq!(artifact, written(key, generation));
                seen += 1;
            }
            let start = Instant::now();
            assert!(cache.lock(&written_key(key), Duration::from_secs(60)).lock.is_some());
            assert!(start.elapsed() < Duration::from_secs(10), "the dead hold no lock");
        }
        unfinished = cache.stats().unfinished;
    }
    let stats = cache.stats();
    assert_eq!(stats.corrupt, 0, "{stats:?}");
    assert!(seen > 60 && stats.entries == u64::from(WRITTEN), "{stats:?}");
    assert!(unfinished > 0, "no writer was caught in the middle: this test tests nothing");

    // What they left is removed once it is old enough to be no one's.
    for shard in 0..WRITTEN {
        for file in fs::read_dir(dir.path().join(format!("v1/{shard:02x}"))).unwrap() {
            let file = fs::File::options().write(true).open(file.unwrap().path()).unwrap();
            file.set_modified(std::time::SystemTime::now() - Duration::from_secs(600)).unwrap();
        }
    }
    let report = cache.verify();
    assert_eq!((report.good, report.damaged.len(), report.unfinished_removed), (u64::from(WRITTEN), 0, unfinished));
    assert_eq!(cache.stats().unfinished, 0);
}

#[test]
fn a_full_disk_is_no_error() {
    let dir = tempfile::tempdir().unwrap();
    go(dir.path());
    // Files may not grow over 8 blocks: writing more fails, as on a full disk, at some byte in the middle.
    let script = OsStr::new("ulimit -f 8; trap '' XFSZ; exec \"$0\" \"$@\"");
    let program = std::env::current_exe().unwrap();
    let shell = [OsStr::new("sh"), OsStr::new("-c"), script, program.as_os_str()];
    let mut other = Other::start_by(&shell, "get", dir.path());
    assert_eq!(other.line(), "ready");
    let targets = Target::all().count();
    assert_eq!(other.outcome(), (targets as u32, targets as u32, vec!["miss".to_owned(); targets]));
    let stats = DiskCache::open(CacheOptions::new(dir.path())).stats();
    assert_eq!((stats.entries, stats.unfinished), (0, 0), "nothing is left of what did not fit");
}

#[test]
fn a_folder_that_may_not_be_written_is_read_all_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let cache_dir = dir.path().join("cache");
    let known = Jit::with_cache(
        Texts { padding: 20_000, ..Texts::default() },
        Arc::new(DiskCache::open(CacheOptions::new(&cache_dir))),
    );
    known.get(&KEY, Target::GFX950).unwrap();
    go(&cache_dir);
    // Another user's binary and folder, if the system's administrator runs this test: permissions do not bind that one.
    let program = dir.path().join("program");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    set_mode(dir.path(), 0o555, 0o555);
    let probe = fs::write(cache_dir.join("probe"), "");
    let nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"].map(OsStr::new);
    let start = |role| match &probe {
        Ok(()) => Other::start_by(&[&nobody[..], &[program.as_os_str()]].concat(), role, &cache_dir),
        Err(_) => Other::start_by(&[program.as_os_str()], role, &cache_dir),
    };
    let mut other = start("get");
    assert_eq!(other.line(), "ready");
    let outcome = other.outcome();

    // Entries that may not even be read.
    set_mode(&cache_dir.join("v1"), 0o000, 0o000);
    let mut blind = start("get");
    assert_eq!(blind.line(), "ready");
    let blind = blind.outcome();
    set_mode(dir.path(), 0o755, 0o755);

    // One chip's code is there, and can be read only while the folder can.
    let missing = Target::all().count() - 1;
    let outcomes = |first: &str| [vec![first.to_owned()], vec!["miss".to_owned(); missing]].concat();
    assert_eq!(outcome, (missing as u32, missing as u32, outcomes("disk")));
    assert_eq!(blind, (missing as u32 + 1, missing as u32 + 1, outcomes("miss")));
    let stats = DiskCache::open(CacheOptions::new(&cache_dir)).stats();
    assert_eq!((stats.entries, stats.unfinished), (1, 0));
}

/// Sets the permissions of a folder and all below it.
fn set_mode(path: &Path, folders: u32, files: u32) {
    let is_folder = path.is_dir();
    if is_folder && folders == 0 {
        fs::read_dir(path).unwrap().for_each(|e| set_mode(&e.unwrap().path(), folders, files));
    }
    fs::set_permissions(path, fs::Permissions::from_mode(if is_folder { folders } else { files })).unwrap();
    if is_folder && folders != 0 {
        fs::read_dir(path).unwrap().for_each(|e| set_mode(&e.unwrap().path(), folders, files));
    }
}
