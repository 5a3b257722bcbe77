//! A GPU's primary context: who uses it, and what its driver's errors say.

#![allow(unsafe_code)] // Calls of the driver.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use cudarc::driver::{DriverError, result, sys};

use super::stream::State;
use crate::error::{Error, KernelFault};

/// The primary context of a GPU, kept for as long as something of it is in use.
pub(super) struct Context {
    /// As the command line spells it.
    pub name: String,
    pub device: sys::CUdevice,
    handle: sys::CUcontext,
    /// CUDA version of the driver: 13000 is 13.0.
    pub driver_version: i32,
    /// The driver's own version, such as `580.65.06`, where the system tells.
    pub driver_build: String,
    queues: Mutex<Vec<Weak<State>>>,
    /// The first fault that was seen. None can come after it: the context is dead.
    fault: Mutex<Option<Arc<KernelFault>>>,
}

// SAFETY: the driver's handles may be used from any thread; the context is made current before each call.
unsafe impl Send for Context {}
// SAFETY: as above; the driver locks its own state.
unsafe impl Sync for Context {}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Context {
    /// Retains the primary context of `device`, which the driver gave.
    pub(super) fn retain(
        name: String,
        device: sys::CUdevice,
        driver_version: i32,
        driver_build: String,
    ) -> Result<Arc<Self>, DriverError> {
        // SAFETY: the device is one that the driver gave.
        let handle = unsafe { result::primary_ctx::retain(device) }?;
        let (queues, fault) = (Mutex::default(), Mutex::default());
        Ok(Arc::new(Self { name, device, handle, driver_version, driver_build, queues, fault }))
    }

    pub(super) fn handle(&self) -> sys::CUcontext {
        self.handle
    }

    /// Whether both are one GPU's: what one reaches, the other reaches.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.handle == other.handle
    }

    /// Makes it this thread's. Looking first costs less than setting it again.
    pub(super) fn enter(&self) -> Result<(), Error> {
        if matches!(result::ctx::get_current(), Ok(Some(current)) if current == self.handle) {
            return Ok(());
        }
        // SAFETY: the handle is a context that is retained until this is dropped.
        unsafe { result::ctx::set_current(self.handle) }.map_err(self.failed("cuCtxSetCurrent"))
    }

    pub(super) fn failed(&self, call: &'static str) -> impl Fn(DriverError) -> Error + '_ {
        move |error| self.error(call, None, error)
    }

    /// What to tell of a failed call, which was about `of`. A fault is told with the kernels that can have been it, and told
    /// again by every call that fails after it.
    pub(super) fn error(&self, call: &'static str, of: Option<&dyn fmt::Display>, error: DriverError) -> Error {
        if let Some(fault) = &*lock(&self.fault) {
            return Error::Faulted(fault.clone());
        }
        if !is_sticky(error.0) {
            let failure = failure(error);
            let failure = of.map_or_else(|| failure.clone(), |of| format!("of {of}: {failure}"));
            return Error::Driver { device: self.name.clone(), call, failure };
        }
        let mut kernels = vec![];
        for queue in self.queues() {
            queue.kernels(&mut kernels);
        }
        let mut seen = std::collections::HashSet::new();
        kernels.retain(|kernel| seen.insert(kernel.clone()));
        let fault = KernelFault { device: self.name.clone(), call, failure: failure(error), kernels };
        // Another thread may have been first.
        Error::Faulted(lock(&self.fault).get_or_insert_with(|| Arc::new(fault)).clone())
    }

    /// Waits for a copy from pageable memory, whose call returned once the bytes were staged: other GPUs and processes could be
    /// ahead of it. The context is current.
    pub(super) fn settle_default(&self) -> Result<(), Error> {
        // SAFETY: the context's default stream lives as long as it does.
        unsafe { result::stream::synchronize(result::stream::null()) }.map_err(self.failed("cuStreamSynchronize"))
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

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: it was retained once, and nothing of it is in use: whatever is made in it holds it.
        // A driver that fails here has nobody to tell.
        let _ = unsafe { result::primary_ctx::release(self.device) };
    }
}

/// What the driver says about an error: `CUDA_ERROR_INVALID_VALUE, invalid argument`.
pub(super) fn failure(error: DriverError) -> String {
    let name = error.error_name().map_or_else(|_| format!("{:?}", error.0), |n| n.to_string_lossy().into_owned());
    match error.error_string() {
        Ok(text) => format!("{name}, {}", text.to_string_lossy()),
        Err(_) => name,
    }
}

/// Whether it leaves the process's context unusable, which the driver API's list of errors says of each: "This leaves the process
/// in an inconsistent state and any further CUDA work will return the same error".
pub(super) fn is_sticky(error: sys::CUresult) -> bool {
    use sys::CUresult as E;
    matches!(
        error,
        E::CUDA_ERROR_ECC_UNCORRECTABLE
            | E::CUDA_ERROR_CONTAINED
            | E::CUDA_ERROR_ILLEGAL_ADDRESS
            | E::CUDA_ERROR_LAUNCH_TIMEOUT
            | E::CUDA_ERROR_ASSERT
            | E::CUDA_ERROR_HARDWARE_STACK_ERROR
            | E::CUDA_ERROR_ILLEGAL_INSTRUCTION
            | E::CUDA_ERROR_MISALIGNED_ADDRESS
            | E::CUDA_ERROR_INVALID_ADDRESS_SPACE
            | E::CUDA_ERROR_INVALID_PC
            | E::CUDA_ERROR_LAUNCH_FAILED
            | E::CUDA_ERROR_EXTERNAL_DEVICE
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the numbers of the driver API, which no version changes.
    #[test]
    fn errors_that_end_the_context_are_told_from_others() {
        let sticky: Vec<u32> = [
            sys::CUresult::CUDA_ERROR_INVALID_VALUE,
            sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY,
            sys::CUresult::CUDA_ERROR_ECC_UNCORRECTABLE,
            sys::CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
            sys::CUresult::CUDA_ERROR_NOT_READY,
            sys::CUresult::CUDA_ERROR_CONTAINED,
            sys::CUresult::CUDA_ERROR_ILLEGAL_ADDRESS,
            sys::CUresult::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
            sys::CUresult::CUDA_ERROR_LAUNCH_TIMEOUT,
            sys::CUresult::CUDA_ERROR_ASSERT,
            sys::CUresult::CUDA_ERROR_MISALIGNED_ADDRESS,
            sys::CUresult::CUDA_ERROR_LAUNCH_FAILED,
            sys::CUresult::CUDA_ERROR_EXTERNAL_DEVICE,
        ]
        .into_iter()
        .filter(|e| is_sticky(*e))
        .map(|e| e as u32)
        .collect();
        assert_eq!(sticky, [214, 226, 700, 702, 710, 716, 719, 911]);
    }
}
