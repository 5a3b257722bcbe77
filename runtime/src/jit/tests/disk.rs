//! The JIT with a disk cache, in one process.

use std::fs;
use std::path::{Path, PathBuf};

use super::*;
use crate::cache::{CacheMode, CacheOptions};
use crate::key::DiskKey;

const KEY: Shift = Shift { n: 64, trouble: 0 };

fn cache(dir: &Path) -> Arc<DiskCache> {
    Arc::new(DiskCache::open(CacheOptions::new(dir)))
}

/// A JIT as another process would have it, on the same folder.
fn fresh(dir: &Path, compiler: &Texts) -> Jit {
    Jit::with_cache(compiler.clone(), cache(dir))
}

fn artifact(compiled: &Compiled) -> &Artifact {
    let Code::Object(artifact) = compiled.code() else { panic!("expected an object") };
    artifact
}

fn stages(compiled: &Compiled) -> Vec<&str> {
    compiled.record().stages.iter().map(|s| s.stage.as_ref()).collect()
}

/// Every entry's file.
fn entries(dir: &Path) -> Vec<PathBuf> {
    let folder = |path: &Path| -> Vec<PathBuf> { fs::read_dir(path).unwrap().map(|e| e.unwrap().path()).collect() };
    let shards = folder(&dir.join("v1")).into_iter().filter(|p| !p.ends_with("locks"));
    shards.flat_map(|shard| folder(&shard)).collect()
}

#[test]
fn a_kernel_comes_from_the_compiler_then_from_memory_then_from_disk() {
    let dir = tempfile::tempdir().unwrap();
    let compiler = Texts::default();
    for target in [Target::GFX950, Target::SM_90] {
        let jit = fresh(dir.path(), &compiler);
        let (first, source) = jit.get_from(&KEY, target).unwrap();
        assert_eq!((source, first.cache()), (CacheSource::Miss, CacheSource::Miss));
        assert_eq!(stages(&first), ["lookup", "wait", "lookup", "text", "publish"]);
        let (again, source) = jit.get_from(&KEY, target).unwrap();
        assert!(Arc::ptr_eq(&first, &again) && source == CacheSource::Memory);
        let expected = Counters { memory_hits: 1, misses: 1, compiles: 1, ..Counters::default() };
        assert_eq!(jit.counters(), expected);

        let jit = fresh(dir.path(), &compiler);
        let (loaded, source) = jit.get_from(&KEY, target).unwrap();
        assert_eq!((source, loaded.cache()), (CacheSource::Disk, CacheSource::Disk));
        assert_eq!(stages(&loaded), ["lookup"]);
        assert_eq!(artifact(&loaded), artifact(&first));
        assert_eq!((loaded.target(), loaded.kernel()), (target, first.kernel()));
        let record = loaded.record();
        assert_eq!((&*record.kernel, &*record.target), ("shift", target.chip().name));
        assert!(record.kir_ops > 0 && record.trace_ms > 0.0 && record.compile_ms > 0.0);
        assert_eq!(artifact(&loaded).record.stages[0].stage, "text", "how it was compiled is kept");
        assert_eq!(jit.counters(), Counters { disk_hits: 1, ..Counters::default() });
        let stats = jit.cache().unwrap().stats();
        assert_eq!((stats.hits, stats.misses, stats.writes), (1, 0, 0));
    }
    assert_eq!(compiler.compiles.load(Ordering::SeqCst), 2);
    assert_eq!(entries(dir.path()).len(), 2);
}

#[test]
fn the_entry_point_carries_the_keys_digest() {
    let compiler = Texts::default();
    let jit = Jit::new(compiler.clone());
    let symbols: Vec<String> = [(64, Target::GFX950), (64, Target::SM_90), (65, Target::GFX950)]
        .into_iter()
        .map(|(n, target)| {
            let key = Shift { n, trouble: 0 };
            let compiled = jit.get(&key, target).unwrap();
            let fingerprint = compiler.fingerprint().unwrap();
            let disk_key = DiskKey::of(&lathe_dsl::trace(&key, target).unwrap(), target, "", &fingerprint);
            let symbol = artifact(&compiled).symbol.clone();
            assert_eq!(symbol, format!("shift_{}", &disk_key.to_string()[..8]));
            assert_eq!(compiled.kernel().name, "shift");
            assert_eq!(compiled.record().kernel, "shift");
            symbol
        })
        .collect();
    assert!(symbols[0] != symbols[1] && symbols[1] != symbols[2] && symbols[0] != symbols[2], "{symbols:?}");
}

#[test]
fn warnings_come_with_the_kernel_wherever_its_code_is_from() {
    let (dir, compiler) = (tempfile::tempdir().unwrap(), Texts::default());
    for (trouble, wanted) in [(0, 0), (3, 1)] {
        let key = Shift { n: 64, trouble };
        for (jit, from) in [
            (Jit::new(Interpreter), CacheSource::Miss),
            (fresh(dir.path(), &compiler), CacheSource::Miss),
            (fresh(dir.path(), &compiler), CacheSource::Disk),
        ] {
            let compiled = jit.get(&key, Target::GFX950).unwrap();
            let record = compiled.record();
            assert_eq!((record.cache, record.warnings.len()), (from, wanted), "{:?}", record.warnings);
            let place = "jit/tests.rs:";
            assert!(
                record.warnings.iter().all(|w| w.contains(place) && w.contains("traced 10000 times")),
                "{record:?}"
            );
        }
    }
}

#[test]
fn flags_are_part_of_the_key() {
    let dir = tempfile::tempdir().unwrap();
    let (plain, fast) = (Texts::default(), Texts { flags: "fast", ..Texts::default() });
    for compiler in [&plain, &fast, &plain, &fast] {
        fresh(dir.path(), compiler).get(&KEY, Target::GFX950).unwrap();
    }
    assert_eq!((plain.compiles.load(Ordering::SeqCst), fast.compiles.load(Ordering::SeqCst)), (1, 1));
}

#[test]
fn a_damaged_entry_is_compiled_again_and_mended() {
    let dir = tempfile::tempdir().unwrap();
    let compiler = Texts::default();
    fresh(dir.path(), &compiler).get(&KEY, Target::GFX950).unwrap();
    let file = entries(dir.path()).remove(0);
    let mut bytes = fs::read(&file).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&file, bytes).unwrap();

    let jit = fresh(dir.path(), &compiler);
    assert_eq!(jit.get(&KEY, Target::GFX950).unwrap().cache(), CacheSource::Miss);
    assert_eq!(jit.counters(), Counters { misses: 1, compiles: 1, corrupt: 1, ..Counters::default() });
    let jit = fresh(dir.path(), &compiler);
    assert_eq!(jit.get(&KEY, Target::GFX950).unwrap().cache(), CacheSource::Disk);
}

#[test]
fn a_sound_artifact_for_another_chip_is_not_taken() {
    let dir = tempfile::tempdir().unwrap();
    let compiler = Texts::default();
    let cache = cache(dir.path());
    let jit = Jit::with_cache(compiler.clone(), cache.clone());
    let other = jit.get(&KEY, Target::SM_90).unwrap();
    let kernel = lathe_dsl::trace(&KEY, Target::GFX950).unwrap();
    cache.put(&DiskKey::of(&kernel, Target::GFX950, "", &compiler.fingerprint().unwrap()), artifact(&other));
    let compiled = jit.get(&KEY, Target::GFX950).unwrap();
    assert_eq!((compiled.cache(), artifact(&compiled).target), (CacheSource::Miss, Target::GFX950));
}

#[test]
fn failures_are_not_stored_and_hold_no_lock() {
    let dir = tempfile::tempdir().unwrap();
    for trouble in [Trouble::Fails, Trouble::Panics] {
        let compiler = Texts { trouble, time: Duration::from_millis(20), ..Texts::default() };
        let jit = fresh(dir.path(), &compiler);
        for result in at_once(&jit, KEY) {
            let message = result.unwrap_err().to_string();
            assert!(
                message.contains("does not like it") || message.contains("the compiler's own mistake"),
                "{message}"
            );
        }
        let counters = jit.counters();
        assert_eq!(counters.memory_hits + counters.disk_hits, 0);
        assert_eq!(counters.misses + counters.waits, 8);
        assert_eq!((counters.compiles, counters.misses), (counters.misses, counters.compiles));
    }
    let compiler = Texts::default();
    assert_eq!(fresh(dir.path(), &compiler).get(&KEY, Target::GFX950).unwrap().cache(), CacheSource::Miss);
    assert_eq!(fresh(dir.path(), &compiler).get(&KEY, Target::GFX950).unwrap().cache(), CacheSource::Disk);
    assert_eq!(fs::read_dir(dir.path().join("v1/locks")).unwrap().count(), 0);
}

#[test]
fn two_jits_of_one_process_share_a_compile() {
    let dir = tempfile::tempdir().unwrap();
    let compiler = Texts { time: Duration::from_millis(200), ..Texts::default() };
    let jits = [fresh(dir.path(), &compiler), fresh(dir.path(), &compiler)];
    let start = Barrier::new(2);
    let sources: Vec<CacheSource> = std::thread::scope(|scope| {
        let threads: Vec<_> = jits
            .iter()
            .map(|jit| {
                scope.spawn(|| {
                    start.wait();
                    jit.get(&KEY, Target::GFX950).unwrap().cache()
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    assert_eq!(compiler.compiles.load(Ordering::SeqCst), 1);
    assert!(sources.contains(&CacheSource::Miss) && sources.contains(&CacheSource::Waited), "{sources:?}");
    assert_eq!(jits[0].counters().waits + jits[1].counters().waits, 1);
}

#[test]
fn programs_for_the_interpreter_are_not_stored() {
    let dir = tempfile::tempdir().unwrap();
    let jit = Jit::with_cache(Interpreter, cache(dir.path()));
    assert_eq!(jit.get(&KEY, Target::GFX950).unwrap().cache(), CacheSource::Miss);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_cache_that_is_off_or_read_only_is_kept_out_of_the_way() {
    let dir = tempfile::tempdir().unwrap();
    let compiler = Texts::default();
    for mode in [CacheMode::Off, CacheMode::ReadOnly] {
        let options = CacheOptions { mode, ..CacheOptions::new(dir.path().join("cache")) };
        let jit = Jit::with_cache(compiler.clone(), Arc::new(DiskCache::open(options)));
        assert_eq!(jit.get(&KEY, Target::GFX950).unwrap().cache(), CacheSource::Miss);
        assert_eq!(jit.counters(), Counters { misses: 1, compiles: 1, ..Counters::default() });
    }
    assert!(!dir.path().join("cache").exists());
}

#[test]
fn evictions_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let options = CacheOptions { max_bytes: 30_000, ..CacheOptions::new(dir.path()) };
    let compiler = Texts { padding: 12_000, ..Texts::default() };
    let jit = Jit::with_cache(compiler, Arc::new(DiskCache::open(options)));
    for n in 1..=5 {
        jit.get(&Shift { n, trouble: 0 }, Target::GFX950).unwrap();
    }
    let counters = jit.counters();
    let stats = jit.cache().unwrap().stats();
    assert!(counters.evicted >= 3 && stats.bytes <= 30_000, "{counters:?} {stats:?}");
    assert_eq!((counters.evicted, stats.entries), (stats.evicted, 5 - stats.evicted));
}

/// The same kernel, written in two places, and one that differs in a constant.
mod written {
    use lathe_dsl::prelude::*;

    macro_rules! variant {
        ($name:ident, $args:ident, $build:expr) => {
            build_key! {
                /// One kernel.
                pub struct $name {
                    /// Elements.
                    n: u32 = 64, range(1, 4096);
                }
            }

            kernel_args! {
                /// Its arguments.
                pub struct $args(key: $name) {
                    /// Output.
                    y: Out<f32>[u64::from(key.n)] align 4;
                }
            }

            impl Kernel for $name {
                const NAME: &'static str = "written";
                type Args = $args;

                fn launch(&self) -> Launch {
                    Launch::linear(1, 64)
                }

                fn build<'k>(&self, k: &'k Builder<'k>, args: $args<Dev<'k>>) {
                    let build: fn(&'k Builder<'k>, $args<Dev<'k>>) = $build;
                    build(k, args);
                }
            }
        };
    }

    variant!(Here, HereArgs, |k, args| {
        let i = k.thread_id(Axis::X);
        k.buffer_store(k.constant::<f32>(1.5), args.y, i);
    });

    // The same, elsewhere, with a comment
    // and other line breaks.
    variant!(There, ThereArgs, |k, args| {
        let index = k.thread_id(Axis::X); // the lane's element

        let value = k.constant::<f32>(1.5);
        k.buffer_store(value, args.y, index);
    });

    variant!(Changed, ChangedArgs, |k, args| {
        let i = k.thread_id(Axis::X);
        k.buffer_store(k.constant::<f32>(1.25), args.y, i);
    });
}

#[test]
fn moving_or_commenting_the_source_keeps_the_key_and_changing_it_does_not() {
    fn key<K: Kernel>(kernel: &K) -> DiskKey {
        let fingerprint = Texts::default().fingerprint().unwrap();
        DiskKey::of(&lathe_dsl::trace(kernel, Target::GFX950).unwrap(), Target::GFX950, "", &fingerprint)
    }
    let (here, there) = (written::Here { n: 64 }, written::There { n: 64 });
    let traces = [lathe_dsl::trace(&here, Target::GFX950).unwrap(), lathe_dsl::trace(&there, Target::GFX950).unwrap()];
    assert_ne!(traces[0].locations, traces[1].locations);
    assert_eq!(key(&here), key(&there));
    assert_ne!(key(&here), key(&written::Changed { n: 64 }));
    assert_ne!(key(&here), key(&written::Here { n: 65 }), "the extents are part of it");
}
