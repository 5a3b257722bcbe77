//! A result that one thread makes and any number wait for.

use std::sync::{Condvar, Mutex, OnceLock, PoisonError};

/// Empty until [`Flight::land`]; a finished one is read without a lock.
pub(super) struct Flight<T> {
    result: OnceLock<T>,
    waiting: Mutex<()>,
    landed: Condvar,
}

impl<T> Default for Flight<T> {
    fn default() -> Self {
        Self { result: OnceLock::new(), waiting: Mutex::new(()), landed: Condvar::new() }
    }
}

impl<T: Clone> Flight<T> {
    /// The result, once there is one.
    pub(super) fn wait(&self) -> T {
        if let Some(result) = self.result.get() {
            return result.clone();
        }
        let mut guard = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(result) = self.result.get() {
                return result.clone();
            }
            guard = self.landed.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Hands the result to everyone who waits. Only the first one counts.
    pub(super) fn land(&self, result: T) {
        let guard = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = self.result.set(result);
        drop(guard);
        self.landed.notify_all();
    }
}
