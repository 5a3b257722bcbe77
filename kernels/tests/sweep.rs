//! Promise: `mla_post` gives the bits of plain Rust for every key of its sweep: batches of 1 to 64 tokens in requests of 1 to 8,
//! of 1 to 8 ranks, whole and in 2 to 128 splits a request. None is left out.

// Device `cpu` is the same with and without LLVM: once is enough.
#![cfg(not(feature = "jit"))]

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use lathe_dsl::Kernel;
use lathe_kernels::mla::post::MlaPost;
use lathe_kernels::registry::Build;
use lathe_runtime::Engine;

const TOKENS: [u32; 8] = [1, 2, 3, 4, 5, 8, 16, 64];
const QUERY_TOKENS: [u32; 4] = [1, 2, 4, 8];
const RANKS: [u32; 4] = [1, 2, 4, 8];
/// Of a request.
const SPLITS: [u32; 6] = [2, 8, 16, 64, 100, 128];

/// Keys that there are.
const KEYS: usize = 178;

/// Why keys of the sweep are refused, by the words of the refusal, and how many.
const REFUSED: [(&str, usize); 2] = [("that must be a multiple of", 21), ("with 64 tokens, splits must be at most", 1)];

/// All combinations of the numbers above that make a key.
fn keys() -> Vec<MlaPost> {
    let mut keys = vec![];
    let mut refused = BTreeMap::new();
    for tokens in TOKENS {
        for q in QUERY_TOKENS.into_iter().filter(|q| tokens % q == 0) {
            let whole = RANKS.map(|ranks| (ranks, 0));
            let split = SPLITS.map(|per| (1, per * (tokens / q)));
            for (ranks, splits) in whole.into_iter().chain(split) {
                let key = MlaPost { ranks, tokens, q, splits, ctas: 0, wait_us: 0 };
                match key.check() {
                    Ok(()) => keys.push(key),
                    Err(reason) => {
                        let known = REFUSED.iter().find(|(words, _)| reason.contains(words));
                        *refused.entry(known.unwrap_or_else(|| panic!("{key:?}: {reason}")).0).or_insert(0) += 1;
                    }
                }
            }
        }
    }
    assert_eq!(refused, BTreeMap::from(REFUSED));
    assert_eq!(keys.len(), KEYS);
    keys
}

/// Work that a key is, roughly: rows that are read, each step of each rank.
fn work(key: &MlaPost) -> u64 {
    let ranks = u64::from(key.ranks);
    let steps = if ranks > 1 { 2 } else { 1 };
    u64::from(key.tokens) * ranks * steps * (8 + u64::from(key.per_request()) / 4 + ranks)
}

/// Runs key number `n` and holds it against the reference.
fn is_right(key: &MlaPost, n: u64) {
    let device = ["cpu:gfx950", "cpu:gfx1201", "cpu:sm_90"][n as usize % 3];
    // Turns at random among the workgroups of many ranks would be many: tests of the exchange take them.
    let seed = (key.ranks == 1).then_some(n);
    // As many workgroups as have work are many for many ranks: all of them are there at once. With few, each has many tasks.
    let ctas = if key.ranks * key.tokens > 64 { 24 } else { 0 };
    let key = MlaPost { ctas, ..*key };
    let engine = Engine::open(device, seed).expect("a device");
    let report = Build::run(&key, &engine, n).unwrap_or_else(|e| panic!("{device} {key:?} seed {n}: {e}"));
    assert!(report.ok, "{device} {key:?} seed {n}: {:?} {:?}", report.checks, report.findings);
    assert_eq!(report.checks[0].max_abs_error, 0.0, "{device} {key:?} seed {n}");
}

#[test]
fn every_batch_is_right_on_the_cpu_device() {
    let mut keys: Vec<(u64, MlaPost)> = (0..).zip(keys()).collect();
    keys.sort_by_key(|(_, key)| work(key));
    let (queue, times) = (Mutex::new(VecDeque::from(keys)), Mutex::new(vec![]));
    let start = Instant::now();
    // One thread begins with the largest keys, the others with the smallest: no two of those that take much memory run together.
    let work = |largest: bool| {
        let next = || {
            let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
            if largest { queue.pop_back() } else { queue.pop_front() }
        };
        while let Some((n, key)) = next() {
            let start = Instant::now();
            is_right(&key, n);
            times.lock().unwrap_or_else(PoisonError::into_inner).push((start.elapsed(), key));
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..threads).for_each(|thread| drop(scope.spawn(move || work(thread == 0)))));
    let mut times = times.into_inner().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(times.len(), KEYS);
    times.sort_by_key(|(time, _)| Reverse(*time));
    let sum: Duration = times.iter().map(|(time, _)| time).sum();
    println!("{KEYS} keys in {:.1?} on {threads} threads, {sum:.1?} of all; the longest:", start.elapsed());
    for (time, MlaPost { ranks, tokens, q, splits, .. }) in times.iter().take(12) {
        println!("{time:>8.2?} ranks {ranks}, tokens {tokens}, q {q}, splits {splits}");
    }
}
