//! Threads that work while the caller goes on.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

type Job = Box<dyn FnOnce() + Send>;

/// A queue of jobs and at most as many threads as there are cores, which end when the queue is empty. Dropping it discards
/// the jobs that have not begun and waits for those that have: no thread of it outlives it.
#[derive(Default)]
pub(super) struct Background {
    queue: Arc<Mutex<Queue>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    workers: usize,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Background {
    /// Does `job` soon; at once, on this thread, if the system gives no other.
    pub(super) fn run(&self, job: impl FnOnce() + Send + 'static) {
        let cores = super::cores();
        {
            let mut queue = lock(&self.queue);
            queue.jobs.push_back(Box::new(job));
            if queue.workers >= cores {
                return;
            }
            queue.workers += 1;
        }
        let queue = self.queue.clone();
        match thread::Builder::new().name("lathe-background".into()).spawn(move || work(&queue)) {
            Ok(handle) => {
                let mut threads = lock(&self.threads);
                threads.retain(|t| !t.is_finished());
                threads.push(handle);
            }
            Err(_) => work(&self.queue),
        }
    }
}

/// Does jobs until there is none.
fn work(queue: &Mutex<Queue>) {
    loop {
        let job = {
            let mut queue = lock(queue);
            let Some(job) = queue.jobs.pop_front() else {
                queue.workers -= 1;
                return;
            };
            job
        };
        // A job reports its own failures; one that panics all the same must not take the thread with it.
        let _ = catch_unwind(AssertUnwindSafe(job));
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let jobs = std::mem::take(&mut lock(&self.queue).jobs);
        drop(jobs);
        for handle in std::mem::take(&mut *lock(&self.threads)) {
            let _ = handle.join();
        }
    }
}
