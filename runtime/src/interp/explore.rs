//! Many schedules of the same run.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};

/// The lowest seed for which a run went wrong.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("with seed {seed}: {error}")]
pub struct Failing<E> {
    /// Gives the same again.
    pub seed: u64,
    /// What went wrong.
    pub error: E,
}

/// Calls `run` with every seed of `seeds` until one fails, on all host threads. `run` makes its memory anew, launches with
/// [`Options::seed`](super::Options::seed) and judges the results; the same seed must give the same.
///
/// ```
/// # use lathe_runtime::interp::explore;
/// let failing = explore(0..1000, |seed| if seed % 7 == 5 { Err("five") } else { Ok(()) }).unwrap_err();
/// assert_eq!(failing.to_string(), "with seed 5: five");
/// ```
///
/// # Errors
/// The lowest seed that fails.
pub fn explore<E: Send>(seeds: Range<u64>, run: impl Fn(u64) -> Result<(), E> + Sync) -> Result<(), Failing<E>> {
    let (next, found) = (AtomicU64::new(seeds.start), Mutex::new(None::<Failing<E>>));
    let lock = || found.lock().unwrap_or_else(PoisonError::into_inner);
    let work = || loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        // All lower ones have been taken.
        if seed >= seeds.end || lock().is_some() {
            return;
        }
        if let Err(error) = run(seed) {
            let mut lowest = lock();
            if lowest.as_ref().is_none_or(|known| seed < known.seed) {
                *lowest = Some(Failing { seed, error });
            }
        }
    };
    std::thread::scope(|scope| {
        let more = std::thread::available_parallelism().map_or(1, usize::from) - 1;
        // A host that refuses a thread just gets fewer.
        let handles: Vec<_> =
            (0..more).map_while(|_| std::thread::Builder::new().spawn_scoped(scope, work).ok()).collect();
        work();
        for handle in handles {
            if let Err(panic) = handle.join() {
                std::panic::resume_unwind(panic);
            }
        }
    });
    found.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_seed_has_its_turn_and_the_lowest_failure_is_told() {
        let seen = Mutex::new(vec![]);
        explore(3..50, |seed| {
            seen.lock().unwrap().push(seed);
            Ok::<(), ()>(())
        })
        .unwrap();
        let mut seen = seen.into_inner().unwrap();
        seen.sort_unstable();
        assert!(seen.into_iter().eq(3..50));
        for round in 0..20 {
            let failing = explore(0..500, |seed| if seed >= 100 + round { Err(seed) } else { Ok(()) }).unwrap_err();
            assert_eq!(failing, Failing { seed: 100 + round, error: 100 + round });
        }
        assert_eq!(explore(0..0, |_| Err(())), Ok(()));
    }
}
