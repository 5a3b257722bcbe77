//! Every kind of damage to one cache folder, within one process. Several processes are in the JIT's tests.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use lathe_dsl::Target;
use lathe_dsl::artifact::{CompileRecord, Resources, StageTime};

use super::*;

fn key(n: u8) -> DiskKey {
    let mut bytes = [0x5A; 32];
    bytes[0] = n;
    DiskKey::from_bytes(bytes)
}

fn artifact(n: u8, code_bytes: usize) -> Artifact {
    Artifact {
        target: if n.is_multiple_of(2) { Target::GFX950 } else { Target::SM_90 },
        symbol: format!("kernel_{n}"),
        code: (0..code_bytes).map(|i| (i as u8).wrapping_mul(31).wrapping_add(n)).collect(),
        record: CompileRecord {
            kernel: "kernel".to_owned(),
            target: "gfx950".to_owned(),
            trace_ms: 0.25,
            compile_ms: 48.5,
            stages: vec![StageTime { stage: "verify".into(), ms: 0.5 }],
            kir_ops: 17,
            resources: Resources { vgpr: Some(33), code_bytes: code_bytes as u64, ..Resources::default() },
            ..CompileRecord::default()
        },
    }
}

fn open(dir: &Path, mode: CacheMode, max_bytes: u64) -> DiskCache {
    DiskCache::open(CacheOptions { dir: dir.to_owned(), mode, max_bytes })
}

/// A cache with entry 1, and that entry's file.
fn one_entry(dir: &Path) -> (DiskCache, PathBuf) {
    let cache = DiskCache::open(CacheOptions::new(dir));
    assert!(cache.put(&key(1), &artifact(1, 40)));
    let file = cache.store.entry(&key(1));
    assert!(file.is_file());
    (cache, file)
}

/// Sets a file's age.
fn age(path: &Path, seconds: u64) {
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(seconds)).unwrap();
}

fn age_of(path: &Path) -> Duration {
    SystemTime::now().duration_since(fs::metadata(path).unwrap().modified().unwrap()).unwrap_or_default()
}

#[test]
fn what_is_put_comes_back_whole() {
    let dir = tempfile::tempdir().unwrap();
    let cache = DiskCache::open(CacheOptions::new(dir.path().join("not/there/yet")));
    assert_eq!(cache.get(&key(1)), None);
    for n in [1, 2] {
        assert!(cache.put(&key(n), &artifact(n, 100_000)));
    }
    assert!(cache.put(&key(2), &artifact(2, 0)), "an entry can be replaced");
    assert_eq!(cache.get(&key(1)), Some(artifact(1, 100_000)));
    let again = DiskCache::open(cache.options().clone());
    assert_eq!(again.get(&key(2)), Some(artifact(2, 0)));
    assert_eq!(again.get(&key(3)), None);

    let stats = cache.stats();
    assert_eq!((stats.entries, stats.unfinished, stats.corrupt, stats.evicted), (2, 0, 0, 0));
    assert_eq!((stats.hits, stats.misses, stats.writes, stats.failed_writes), (1, 1, 3, 0));
    assert!(stats.bytes > 100_000 && stats.bytes < 101_000, "{}", stats.bytes);
    assert_eq!((again.stats().hits, again.stats().misses), (1, 1));
}

/// Damages entry 1's file in every way that `ways` gives; each time it must be a miss, counted, removed and rebuildable.
fn damage(ways: impl Fn(&[u8]) -> Vec<Vec<u8>>) {
    let dir = tempfile::tempdir().unwrap();
    let (cache, file) = one_entry(dir.path());
    let whole = fs::read(&file).unwrap();
    let ways = ways(&whole);
    assert!(ways.len() >= whole.len());
    for (i, bytes) in ways.iter().enumerate() {
        fs::write(&file, bytes).unwrap();
        assert_eq!(cache.get(&key(1)), None, "way {i} of {}", ways.len());
        assert_eq!(cache.stats().corrupt, i as u64 + 1);
        assert!(!file.exists(), "way {i}: a damaged entry is removed");
    }
    assert!(cache.put(&key(1), &artifact(1, 40)));
    assert_eq!(cache.get(&key(1)), Some(artifact(1, 40)));
    assert_eq!(fs::read(&file).unwrap(), whole, "the same artifact gives the same bytes");
}

#[test]
fn an_entry_cut_short_anywhere_is_a_miss() {
    damage(|whole| (0..whole.len()).map(|n| whole[..n].to_vec()).collect());
}

#[test]
fn an_entry_with_any_bit_flipped_is_a_miss() {
    damage(|whole| {
        let flip = |at: usize, mask: u8| {
            let mut bytes = whole.to_vec();
            bytes[at] ^= mask;
            bytes
        };
        (0..whole.len())
            .flat_map(|at| (0..8).map(move |bit| (at, 1 << bit)).chain([(at, 0xFF)]))
            .map(|(a, m)| flip(a, m))
            .collect()
    });
}

#[test]
fn an_entry_with_zeros_or_more_bytes_is_a_miss() {
    damage(|whole| {
        let mut ways: Vec<Vec<u8>> = (1..=whole.len()).map(|n| [whole, &vec![0; n]].concat()).collect();
        // What a file system may leave after a crash: the length without the content.
        ways.extend((0..whole.len()).filter(|n| whole[*n..].iter().any(|b| *b != 0)).map(|n| {
            let mut bytes = whole.to_vec();
            bytes[n..].fill(0);
            bytes
        }));
        ways
    });
}

#[test]
fn an_entry_under_another_keys_name_is_a_miss() {
    let dir = tempfile::tempdir().unwrap();
    let (cache, file) = one_entry(dir.path());
    let other = cache.store.entry(&key(2));
    fs::create_dir_all(other.parent().unwrap()).unwrap();
    fs::copy(&file, &other).unwrap();
    assert_eq!(cache.get(&key(2)), None);
    assert_eq!(cache.stats().corrupt, 1);
    assert_eq!(cache.get(&key(1)), Some(artifact(1, 40)));
}

#[test]
fn a_sound_entry_that_holds_no_artifact_is_a_miss() {
    let dir = tempfile::tempdir().unwrap();
    let (cache, file) = one_entry(dir.path());
    let whole = fs::read(&file).unwrap();
    for payload in [&b"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01"[..], b"", &[whole[84..].to_vec(), vec![0]].concat()] {
        let mut bytes = whole[..84].to_vec();
        bytes[44..52].copy_from_slice(&(payload.len() as u64).to_le_bytes());
        bytes[52..84].copy_from_slice(blake3::hash(payload).as_bytes());
        bytes.extend_from_slice(payload);
        fs::write(&file, bytes).unwrap();
        assert_eq!(cache.get(&key(1)), None);
    }
    assert_eq!(cache.stats().corrupt, 3);
}

#[test]
fn whatever_stands_in_an_entrys_place_is_a_miss() {
    let dir = tempfile::tempdir().unwrap();
    let (cache, file) = one_entry(dir.path());
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    assert_eq!(cache.get(&key(1)), None);
    assert!(!cache.put(&key(1), &artifact(1, 40)), "a folder cannot be replaced by an entry");
    assert_eq!(cache.stats().unfinished, 0, "what could not be published is removed");
    fs::remove_dir(&file).unwrap();

    assert!(Command::new("mkfifo").arg(&file).status().unwrap().success());
    assert_eq!(cache.get(&key(1)), None, "and nobody waits for a pipe's writer");
    assert!(cache.put(&key(1), &artifact(1, 40)));

    std::os::unix::fs::symlink("/nowhere/at/all", cache.store.entry(&key(1)).with_file_name("x.lathe")).unwrap();
    assert_eq!(cache.verify().damaged.len(), 1);
    assert_eq!(cache.get(&key(1)), Some(artifact(1, 40)));
    assert_eq!(cache.stats().failed_writes, 1);
}

#[test]
fn a_folder_that_vanishes_is_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let (cache, _) = one_entry(dir.path());
    fs::remove_dir_all(dir.path()).unwrap();
    assert_eq!(cache.get(&key(1)), None);
    assert_eq!((cache.stats().entries, cache.verify(), cache.clear()), (0, VerifyReport::default(), 0));
    assert!(cache.lock(&key(1), Duration::ZERO).lock.is_some());
    assert!(cache.put(&key(1), &artifact(1, 40)));
    assert_eq!(cache.get(&key(1)), Some(artifact(1, 40)));
}

#[test]
fn a_folder_that_cannot_be_is_no_error() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "not a folder").unwrap();
    for dir in [file.as_path(), &file.join("below"), Path::new("/proc/nothing/can/be/made/here"), Path::new("\0")] {
        let cache = open(dir, CacheMode::ReadWrite, u64::MAX);
        assert_eq!(cache.get(&key(1)), None);
        assert!(cache.lock(&key(1), Duration::from_secs(5)).lock.is_none());
        assert!(!cache.put(&key(1), &artifact(1, 40)));
        assert_eq!(cache.get(&key(1)), None);
        assert_eq!((cache.stats().entries, cache.stats().failed_writes), (0, 1));
        assert_eq!((cache.verify(), cache.clear()), (VerifyReport::default(), 0));
    }
}

#[test]
fn a_read_only_cache_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (_, file) = one_entry(dir.path());
    age(&file, 3600);
    let cache = open(dir.path(), CacheMode::ReadOnly, 1);
    assert_eq!(cache.get(&key(1)), Some(artifact(1, 40)));
    assert!(age_of(&file) > Duration::from_secs(3000), "not even its age");
    assert!(!cache.put(&key(2), &artifact(2, 40)));
    assert!(cache.lock(&key(2), Duration::ZERO).lock.is_none());
    fs::write(&file, "damaged").unwrap();
    assert_eq!(cache.get(&key(1)), None);
    let report = cache.verify();
    assert_eq!((report.good, report.damaged.len(), report.damaged[0].removed), (0, 1, false));
    assert_eq!(report.damaged[0].path, file);
    assert_eq!(cache.clear(), 0);
    assert_eq!(fs::read(&file).unwrap(), b"damaged");
    assert!(!dir.path().join("v1/locks").exists());
    assert_eq!((cache.stats().writes, cache.stats().failed_writes), (0, 0));
}

#[test]
fn a_cache_that_is_off_does_nothing() {
    let dir = tempfile::tempdir().unwrap();
    one_entry(dir.path());
    let cache = open(dir.path(), CacheMode::Off, u64::MAX);
    assert_eq!(cache.get(&key(1)), None);
    assert!(!cache.put(&key(2), &artifact(2, 40)));
    assert_eq!((cache.stats().entries, cache.stats().writes, cache.stats().misses), (1, 0, 1));
}

#[test]
fn the_least_recently_used_entries_go_first() {
    let dir = tempfile::tempdir().unwrap();
    let probe = open(&dir.path().join("probe"), CacheMode::ReadWrite, u64::MAX);
    probe.put(&key(0), &artifact(0, 10_000));
    let size = probe.stats().bytes;

    let cache = open(&dir.path().join("cache"), CacheMode::ReadWrite, 10 * size + size / 2);
    for n in 0..10 {
        assert!(cache.put(&key(n), &artifact(n, 10_000)));
        age(&cache.store.entry(&key(n)), 1000 - 10 * u64::from(n));
    }
    assert_eq!((cache.stats().entries, cache.stats().evicted), (10, 0), "what fits stays");
    // The oldest is used, which its file notes.
    assert!(cache.get(&key(0)).is_some());
    assert!(age_of(&cache.store.entry(&key(0))) < Duration::from_secs(100));

    assert!(cache.put(&key(10), &artifact(10, 10_000)));
    let stats = cache.stats();
    assert!(stats.bytes <= 10 * size + size / 2, "{stats:?}");
    assert_eq!(stats.entries + stats.evicted, 11);
    let kept: HashSet<u8> = (0..=10).filter(|n| cache.get(&key(*n)).is_some()).collect();
    let first_kept = 1 + stats.evicted as u8;
    assert_eq!(kept, (first_kept..=10).chain([0]).collect());

    // Another process's writes are seen too.
    let other = open(&dir.path().join("cache"), CacheMode::ReadWrite, 3 * size);
    assert!(other.put(&key(11), &artifact(11, 10_000)));
    assert!(other.stats().bytes <= 3 * size && other.get(&key(11)).is_some());
}

#[test]
fn a_use_is_noted_at_most_once_a_minute() {
    let dir = tempfile::tempdir().unwrap();
    let (cache, file) = one_entry(dir.path());
    for (seconds, noted) in [(30, false), (90, true)] {
        age(&file, seconds);
        assert!(cache.get(&key(1)).is_some());
        assert_eq!(age_of(&file) < Duration::from_secs(20), noted, "{seconds}");
    }
}

#[test]
fn an_entry_larger_than_the_cache_is_not_stored() {
    let dir = tempfile::tempdir().unwrap();
    let cache = open(dir.path(), CacheMode::ReadWrite, 1000);
    assert!(cache.put(&key(1), &artifact(1, 10)));
    assert!(!cache.put(&key(2), &artifact(2, 1000)));
    assert_eq!((cache.stats().entries, cache.stats().evicted), (1, 0), "and drives nothing out");
    assert!(!open(dir.path(), CacheMode::ReadWrite, 0).put(&key(3), &artifact(3, 0)));
}

#[test]
fn verify_removes_what_is_damaged_and_what_the_dead_left() {
    let dir = tempfile::tempdir().unwrap();
    let (cache, file) = one_entry(dir.path());
    for n in 2..5 {
        cache.put(&key(n), &artifact(n, 40));
    }
    fs::write(cache.store.entry(&key(2)), "LATHE").unwrap();
    let stray = file.with_file_name("stray.lathe");
    fs::copy(&file, &stray).unwrap();
    let unfinished = |name: &str, seconds| {
        let path = file.with_file_name(name);
        fs::write(&path, "half").unwrap();
        age(&path, seconds);
        path
    };
    let dead = unfinished("a.1.2.tmp", 3600);
    let young = unfinished("b.1.2.tmp", 1);
    let alive = unfinished("c.1.2.tmp", 3600);
    let writer = fs::File::open(&alive).unwrap();
    writer.lock().unwrap();
    let foreign = dir.path().join("notes.txt");
    fs::write(&foreign, "mine").unwrap();

    let report = cache.verify();
    let damaged: HashSet<PathBuf> = report.damaged.iter().map(|d| d.path.clone()).collect();
    assert_eq!(damaged, HashSet::from([cache.store.entry(&key(2)), stray]));
    assert!(report.damaged.iter().all(|d| d.removed));
    assert_eq!((report.good, report.unfinished_removed), (3, 1));
    assert!(!dead.exists() && young.exists() && alive.exists());
    let report = cache.verify();
    assert_eq!((report.good, report.damaged, report.unfinished_removed), (3, vec![], 0));

    assert_eq!(cache.clear(), 3);
    assert_eq!(cache.stats().entries, 0);
    assert!(foreign.exists() && young.exists() && alive.exists());
}

#[test]
fn a_lock_has_one_owner_and_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let cache = DiskCache::open(CacheOptions::new(dir.path()));
    let long = Duration::from_secs(60);
    let first = cache.lock(&key(1), long);
    assert!(first.lock.is_some() && !first.waited);
    assert!(cache.lock(&key(2), Duration::ZERO).lock.is_some(), "another key's is free");
    let start = std::time::Instant::now();
    let second = cache.lock(&key(1), Duration::from_millis(50));
    assert!(second.lock.is_none() && second.waited, "patience ends");
    assert!((50..5000).contains(&start.elapsed().as_millis()));
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| cache.lock(&key(1), long));
        std::thread::sleep(Duration::from_millis(300));
        drop(first);
        let third = waiter.join().unwrap();
        assert!(third.lock.is_some() && third.waited);
        assert!(cache.lock(&key(1), Duration::ZERO).lock.is_none());
    });
    assert_eq!(fs::read_dir(dir.path().join("v1/locks")).unwrap().count(), 0);
}

#[test]
fn a_lock_is_never_held_twice() {
    let dir = tempfile::tempdir().unwrap();
    let (inside, held) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let cache = DiskCache::open(CacheOptions::new(dir.path()));
                for _ in 0..50 {
                    let acquired = cache.lock(&key(1), Duration::from_secs(60));
                    assert!(acquired.lock.is_some());
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                    std::thread::yield_now();
                    inside.fetch_sub(1, Ordering::SeqCst);
                    held.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
    });
    assert_eq!(held.into_inner(), 400);
}

#[test]
fn no_one_ever_sees_a_wrong_artifact() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("cache");
    let one = {
        let probe = open(&dir.path().join("probe"), CacheMode::ReadWrite, u64::MAX);
        probe.put(&key(0), &artifact(0, 5000));
        probe.stats().bytes
    };
    let (hits, done) = (AtomicU64::new(0), AtomicU64::new(0));
    let (root, hits, done) = (&root, &hits, &done);
    std::thread::scope(|scope| {
        for thread in 0..6u64 {
            scope.spawn(move || {
                // Room for half of the keys: writing one evicts others all the time.
                let cache = open(root, CacheMode::ReadWrite, 8 * one);
                let mut random = thread;
                for _ in 0..300 {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    let n = (random >> 40) as u8 % 16;
                    match cache.get(&key(n)) {
                        Some(found) => {
                            assert_eq!(found, artifact(n, 5000));
                            hits.fetch_add(1, Ordering::Relaxed);
                        }
                        None => {
                            cache.put(&key(n), &artifact(n, 5000));
                        }
                    }
                    if random >> 60 == 0 {
                        cache.verify();
                    }
                }
                done.fetch_add(1, Ordering::Relaxed);
            });
        }
        // Meanwhile someone damages entries in place, and now and then the whole folder goes.
        scope.spawn(move || {
            for round in 0.. {
                if done.load(Ordering::Relaxed) == 6 {
                    break;
                }
                for n in 0..16 {
                    if let Ok(file) = fs::OpenOptions::new().write(true).open(Store::new(root).entry(&key(n))) {
                        let _ = file.set_len(round % 5000);
                    }
                }
                if round % 16 == 15 {
                    let _ = fs::remove_dir_all(root);
                }
                std::thread::sleep(Duration::from_millis(2));
            }
        });
    });
    assert!(hits.load(Ordering::Relaxed) > 0);
}

#[test]
fn modes_are_written_and_read() {
    for mode in [CacheMode::Off, CacheMode::ReadOnly, CacheMode::ReadWrite] {
        assert_eq!(mode.to_string().parse(), Ok(mode));
    }
    assert_eq!("RW".parse::<CacheMode>().unwrap_err().to_string(), "`RW` is no cache mode: it is off, ro or rw");
}
