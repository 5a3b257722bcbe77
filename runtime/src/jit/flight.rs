//! Single flight: of all threads that ask for a key, one makes the result and the others wait for it.
//!
//! The protocol is model-checked: `--cfg loom` swaps the locks for loom's and builds the tests at the end of this file.

use std::hash::{BuildHasher, Hash};
use std::sync::{Arc, PoisonError};

use rustc_hash::{FxBuildHasher, FxHashMap};

use primitives::{Condvar, Mutex, OnceLock, RwLock};

#[cfg(not(loom))]
mod primitives {
    pub use std::sync::{Condvar, Mutex, OnceLock, RwLock};

    /// A copy of what the cell holds.
    pub fn copy<T: Clone>(cell: &OnceLock<T>) -> Option<T> {
        cell.get().cloned()
    }
}

#[cfg(loom)]
mod primitives {
    pub use loom::sync::{Condvar, Mutex, RwLock};

    /// Loom has no such cell. What is checked here is its use: whether it is set is seen at any moment.
    pub struct OnceLock<T>(Mutex<Option<T>>);

    impl<T> OnceLock<T> {
        pub fn new() -> Self {
            Self(Mutex::new(None))
        }

        pub fn set(&self, value: T) -> Result<(), T> {
            let mut cell = self.0.lock().unwrap();
            if cell.is_some() {
                return Err(value);
            }
            *cell = Some(value);
            Ok(())
        }
    }

    /// A copy of what the cell holds.
    pub fn copy<T: Clone>(cell: &OnceLock<T>) -> Option<T> {
        cell.0.lock().unwrap().clone()
    }
}

/// A result that one thread makes and any number wait for. `None` as a result: its maker went away without one.
pub(super) struct Flight<T> {
    result: OnceLock<Option<T>>,
    waiting: Mutex<()>,
    landed: Condvar,
}

impl<T: Clone> Flight<T> {
    fn new() -> Self {
        Self { result: OnceLock::new(), waiting: Mutex::new(()), landed: Condvar::new() }
    }

    /// The result, if there is one by now; takes no lock.
    fn landed(&self) -> Option<Option<T>> {
        primitives::copy(&self.result)
    }

    /// The result, once there is one; `None` if there will be none.
    pub(super) fn wait(&self) -> Option<T> {
        let mut guard = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(result) = self.landed() {
                return result;
            }
            guard = self.landed.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Hands the result to everyone who waits. Only the first one counts.
    fn land(&self, result: Option<T>) {
        let guard = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = self.result.set(result);
        drop(guard);
        self.landed.notify_all();
    }
}

/// Shards of a map: a few, so that threads on different keys seldom meet.
const SHARDS: usize = if cfg!(loom) { 1 } else { 16 };

type Shard<K, T> = RwLock<FxHashMap<K, Arc<Flight<T>>>>;

/// The flights of many keys, landed ones kept.
pub(super) struct Flights<K, T> {
    shards: [Shard<K, T>; SHARDS],
}

/// What a thread that asks for a key has to do.
pub(super) enum Role<K: Copy + Eq + Hash, T: Clone> {
    /// Take the result.
    Landed(T),
    /// Wait for it.
    Wait(Arc<Flight<T>>),
    /// Make it.
    Lead(Lead<K, T>),
}

impl<K: Copy + Eq + Hash, T: Clone> Flights<K, T> {
    pub(super) fn new() -> Self {
        Self { shards: std::array::from_fn(|_| RwLock::new(FxHashMap::default())) }
    }

    fn shard(&self, key: &K) -> &Shard<K, T> {
        // The map itself uses the hash's low bits.
        &self.shards[(FxBuildHasher.hash_one(key) >> 59) as usize % SHARDS]
    }

    /// The result of `key`, if it is there.
    pub(super) fn landed(&self, key: &K) -> Option<T> {
        let map = self.shard(key).read().unwrap_or_else(PoisonError::into_inner);
        map.get(key)?.landed().flatten()
    }

    /// Joins the flight of `key`, or starts one.
    pub(super) fn join(flights: &Arc<Self>, key: K) -> Role<K, T> {
        let mut map = flights.shard(&key).write().unwrap_or_else(PoisonError::into_inner);
        if let Some(flight) = map.get(&key) {
            return flight.landed().flatten().map_or_else(|| Role::Wait(flight.clone()), Role::Landed);
        }
        let flight = Arc::new(Flight::new());
        map.insert(key, flight.clone());
        drop(map);
        Role::Lead(Lead { flights: flights.clone(), key, flight, landed: false })
    }

    /// Removes the flight of a key: that of the leader who asks for it, because no other can start before.
    fn remove(&self, key: &K) {
        self.shard(key).write().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

/// The duty to make a key's result. Dropped without one, it sends those who wait to ask again.
pub(super) struct Lead<K: Copy + Eq + Hash, T: Clone> {
    flights: Arc<Flights<K, T>>,
    key: K,
    flight: Arc<Flight<T>>,
    landed: bool,
}

impl<K: Copy + Eq + Hash, T: Clone> Lead<K, T> {
    /// Hands out the result. Whoever asks later gets it too if it is kept, and has to make one if not.
    pub(super) fn land(mut self, result: T, keep: bool) {
        self.landed = true;
        if !keep {
            // Removed first: no one who asks after the failure is known may still get it.
            self.flights.remove(&self.key);
        }
        self.flight.land(Some(result));
    }
}

impl<K: Copy + Eq + Hash, T: Clone> Drop for Lead<K, T> {
    fn drop(&mut self) {
        if !self.landed {
            self.flights.remove(&self.key);
            self.flight.land(None);
        }
    }
}

#[cfg(all(test, loom))]
mod model {
    //! Every interleaving of two or three threads that ask for one key.

    use loom::sync::atomic::{AtomicUsize, Ordering};
    use loom::thread;

    use super::*;

    /// With the turn of the leader that made it.
    type Outcome = Result<usize, usize>;
    type Map = Arc<Flights<u32, Outcome>>;

    /// What a leader does on its nth turn: a result to keep, one not to keep, or none.
    type Script = fn(usize) -> Option<Outcome>;

    /// As the JIT asks for a key; also says whether this thread led.
    fn ask(map: &Map, leads: &AtomicUsize, script: Script) -> (Outcome, bool) {
        loop {
            if let Some(result) = map.landed(&7) {
                return (result, false);
            }
            match Flights::join(map, 7) {
                Role::Landed(result) => return (result, false),
                Role::Wait(flight) => {
                    if let Some(result) = flight.wait() {
                        return (result, false);
                    }
                }
                Role::Lead(lead) => {
                    let turn = leads.fetch_add(1, Ordering::SeqCst);
                    match script(turn) {
                        Some(result) => {
                            lead.land(result, result.is_ok());
                            return (result, true);
                        }
                        None => drop(lead),
                    }
                }
            }
        }
    }

    /// Runs `threads` askers in every interleaving; `check` sees their outcomes and how often one led.
    fn explore(
        threads: usize,
        script: Script,
        check: impl Fn(&[(Outcome, bool)], usize, &Map) + Sync + Send + 'static,
    ) {
        let mut model = loom::model::Builder::new();
        // Enough for every ordering of two critical sections; unbounded, three threads take hours.
        model.preemption_bound = (threads > 2).then_some(2);
        model.check(move || {
            let map: Map = Arc::new(Flights::new());
            let leads = loom::sync::Arc::new(AtomicUsize::new(0));
            let others: Vec<_> = (1..threads)
                .map(|_| {
                    let (map, leads) = (map.clone(), leads.clone());
                    thread::spawn(move || ask(&map, &leads, script))
                })
                .collect();
            let mut outcomes = vec![ask(&map, &leads, script)];
            outcomes.extend(others.into_iter().map(|t| t.join().unwrap()));
            check(&outcomes, leads.load(Ordering::SeqCst), &map);
        });
    }

    #[test]
    fn one_leads_and_all_get_its_result() {
        for threads in [2, 3] {
            explore(
                threads,
                |turn| Some(Ok(turn)),
                |outcomes, leads, map| {
                    assert_eq!(leads, 1);
                    assert!(outcomes.iter().all(|(outcome, _)| *outcome == Ok(0)));
                    assert_eq!(outcomes.iter().filter(|(_, led)| *led).count(), 1);
                    assert_eq!(map.landed(&7), Some(Ok(0)));
                },
            );
        }
    }

    #[test]
    fn a_failure_reaches_those_who_wait_and_is_not_kept() {
        for threads in [2, 3] {
            explore(
                threads,
                |turn| Some(Err(turn)),
                |outcomes, leads, map| {
                    assert!((1..=outcomes.len()).contains(&leads));
                    assert!(outcomes.iter().all(|(outcome, _)| outcome.is_err()));
                    assert_eq!(map.landed(&7), None);
                    assert!(matches!(Flights::join(map, 7), Role::Lead(_)));
                },
            );
        }
    }

    #[test]
    fn after_a_failure_the_next_one_succeeds_for_good() {
        explore(
            3,
            |turn| Some(if turn == 0 { Err(turn) } else { Ok(turn) }),
            |outcomes, leads, map| {
                assert!(outcomes.iter().any(|(outcome, _)| outcome.is_err()));
                for (outcome, _) in outcomes {
                    assert!(*outcome == Err(0) || *outcome == Ok(1), "{outcome:?}");
                }
                assert!(leads <= 2);
                assert_eq!(map.landed(&7), (leads == 2).then_some(Ok(1)));
            },
        );
    }

    #[test]
    fn a_failure_is_told_to_no_one_twice() {
        loom::model(|| {
            let map: Map = Arc::new(Flights::new());
            let leads = loom::sync::Arc::new(AtomicUsize::new(0));
            let ask_twice = |map: &Map, leads: &AtomicUsize| {
                let fail_first: Script = |turn| Some(if turn == 0 { Err(turn) } else { Ok(turn) });
                if ask(map, leads, fail_first).0.is_err() {
                    assert_eq!(ask(map, leads, fail_first).0, Ok(1));
                }
            };
            let other = {
                let (map, leads) = (map.clone(), leads.clone());
                thread::spawn(move || ask_twice(&map, &leads))
            };
            ask_twice(&map, &leads);
            other.join().unwrap();
            assert_eq!(leads.load(Ordering::SeqCst), 2);
        });
    }

    #[test]
    fn a_leader_that_goes_away_is_replaced() {
        for threads in [2, 3] {
            explore(
                threads,
                |turn| (turn > 0).then_some(Ok(turn)),
                |outcomes, leads, map| {
                    assert_eq!(leads, 2);
                    assert!(outcomes.iter().all(|(outcome, _)| *outcome == Ok(1)));
                    assert_eq!(map.landed(&7), Some(Ok(1)));
                },
            );
        }
    }
}
