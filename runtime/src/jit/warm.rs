//! Many kernels at once, before they are needed.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use lathe_dsl::{Kernel, Target};

use super::{Compiled, Jit, cores};
use crate::error::Error;

/// How far a warm-up has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Jobs done, failed ones too.
    pub done: usize,
    /// All jobs.
    pub total: usize,
}

/// Does every job, on as many threads as there are cores, and gives their results in the order of the jobs. A job whose turn
/// comes after `cancel` was set gives `None`; one that has begun is finished. `on_progress` hears of every job done, one
/// call at a time.
pub fn on_all_cores<J: Sync, T: Send>(
    jobs: &[J],
    work: impl Fn(&J) -> T + Sync,
    on_progress: impl FnMut(Progress) + Send,
    cancel: &AtomicBool,
) -> Vec<Option<T>> {
    let next = AtomicUsize::new(0);
    // How many are done, and whom to tell: under one lock, so that the numbers come in order.
    let progress = Mutex::new((0, on_progress));
    let worker = || {
        let mut results = vec![];
        while !cancel.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(index) else { break };
            results.push((index, work(job)));
            let mut progress = progress.lock().unwrap_or_else(PoisonError::into_inner);
            let (done, on_progress) = &mut *progress;
            *done += 1;
            on_progress(Progress { done: *done, total: jobs.len() });
        }
        results
    };
    let mut results: Vec<Option<T>> = jobs.iter().map(|_| None).collect();
    let done = thread::scope(|scope| {
        let others = 1..cores().min(jobs.len());
        // A system that gives no thread leaves the work to this one.
        let others: Vec<_> = others.filter_map(|_| thread::Builder::new().spawn_scoped(scope, worker).ok()).collect();
        let mut done = worker();
        for thread in others {
            done.extend(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        done
    });
    for (index, result) in done {
        results[index] = Some(result);
    }
    results
}

impl Jit {
    /// Gets every kernel of a list, on all cores, in the list's order. `on_progress` hears of every kernel that is done. Once
    /// `cancel` is set, no further one is begun.
    ///
    /// # Errors
    /// Each kernel's own, as [`Jit::get`]; [`Error::Cancelled`] for those that were not begun.
    pub fn warm<K: Kernel>(
        &self,
        keys: &[(K, Target)],
        on_progress: impl FnMut(Progress) + Send,
        cancel: &AtomicBool,
    ) -> Vec<Result<Arc<Compiled>, Error>> {
        let results = on_all_cores(keys, |(key, target)| self.get(key, *target), on_progress, cancel);
        let cancelled = |target: Target| Err(Error::Cancelled { kernel: K::NAME, target: target.chip().name });
        results
            .into_iter()
            .zip(keys)
            .map(|(result, (_, target))| result.unwrap_or_else(|| cancelled(*target)))
            .collect()
    }
}
