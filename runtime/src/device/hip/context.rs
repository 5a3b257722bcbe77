//! An AMD GPU in this process: who uses it, and what its runtime's errors say.

#![allow(unsafe_code)] // Calls of the runtime.

use std::ffi::c_int;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::api::{Api, Functions, Status};
use super::stream::State;
use crate::arch::Architecture;
use crate::error::{Error, KernelFault};

/// A GPU, which the runtime keeps for as long as the process lives.
pub(super) struct Context {
    pub api: Arc<Api>,
    /// As the command line spells it.
    pub name: String,
    pub device: c_int,
    pub architecture: Architecture,
    queues: Mutex<Vec<Weak<State>>>,
    /// The first fault that was seen. None can come after it: the runtime does nothing more.
    fault: Mutex<Option<Arc<KernelFault>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Context {
    pub(super) fn new(api: Arc<Api>, name: String, device: c_int, architecture: Architecture) -> Arc<Self> {
        Arc::new(Self { api, name, device, architecture, queues: Mutex::default(), fault: Mutex::default() })
    }

    /// Whether both are one GPU: what one reaches, the other reaches.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.device == other.device && self.api.is(&other.api)
    }

    /// The runtime's functions, with this thread's calls going to this device.
    pub(super) fn enter(&self) -> Result<&Functions, Error> {
        let functions = &self.api.functions;
        // SAFETY: the device is one that the runtime counted.
        unsafe { (functions.hipSetDevice)(self.device) }.result().map_err(self.failed("hipSetDevice"))?;
        Ok(functions)
    }

    pub(super) fn failed(&self, call: &'static str) -> impl Fn(Status) -> Error + '_ {
        move |status| self.error(call, None, status)
    }

    /// What to tell of a failed call, which was about `of`. A fault is told with the kernels that can have been it, and told
    /// again by every call that fails after it.
    pub(super) fn error(&self, call: &'static str, of: Option<&dyn fmt::Display>, status: Status) -> Error {
        if let Some(fault) = &*lock(&self.fault) {
            return Error::Faulted(fault.clone());
        }
        let failure = self.api.failure(status);
        if !status.is_sticky() {
            let failure = of.map_or_else(|| failure.clone(), |of| format!("of {of}: {failure}"));
            return Error::Driver { device: self.name.clone(), call, failure };
        }
        let mut kernels = vec![];
        for queue in self.queues() {
            queue.kernels(&mut kernels);
        }
        let mut seen = std::collections::HashSet::new();
        kernels.retain(|kernel| seen.insert(kernel.clone()));
        let fault = KernelFault { device: self.name.clone(), call, failure, kernels };
        // Another thread may have been first.
        Error::Faulted(lock(&self.fault).get_or_insert_with(|| Arc::new(fault)).clone())
    }

    /// Notes a queue, whose work [`Context::drain`] waits for.
    pub(super) fn register(&self, queue: &Arc<State>) {
        let mut queues = lock(&self.queues);
        queues.retain(|q| q.strong_count() > 0);
        queues.push(Arc::downgrade(queue));
    }

    fn queues(&self) -> Vec<Arc<State>> {
        lock(&self.queues).iter().filter_map(Weak::upgrade).collect()
    }

    /// Waits for everything that queues were given so far. A fault is noted, and told by the next call that fails.
    pub(super) fn drain(&self) {
        for queue in self.queues() {
            let _ = queue.settle();
        }
    }
}
