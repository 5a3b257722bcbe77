//! Queues and marks of a GPU: the driver's streams and events.

#![allow(unsafe_code)] // Calls of the driver.

use std::any::Any;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cudarc::driver::{DriverError, result, sys};

use super::context::{Context, is_sticky};
use super::graph::Replayed;
use super::memory::Memory;
use super::module::{Loaded, Modules};
use crate::device::driver::{HostMemory, Mark, Queue, Recording, Transit};
use crate::device::inflight::{InFlight, Running};
use crate::device::moving::{Flow, Moving};
use crate::error::Error;
use crate::jit::Compiled;
use crate::launch::ArgBlock;

/// One stream of the driver, and what it was given.
pub(super) struct State {
    pub context: Arc<Context>,
    /// Null: the context's default stream.
    pub handle: sys::CUstream,
    flight: Mutex<InFlight>,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for State {}
// SAFETY: as above; the driver locks its own state.
unsafe impl Sync for State {}

impl State {
    /// The default stream. What it is given begins after what the other streams were given before, and the other way round.
    pub(super) fn default_stream(context: &Arc<Context>) -> Arc<Self> {
        Self::registered(context, result::stream::null())
    }

    /// A new stream, ordered with the default stream.
    fn new(context: &Arc<Context>) -> Result<Arc<Self>, Error> {
        context.enter()?;
        let kind = result::stream::StreamKind::Default;
        let handle = result::stream::create(kind).map_err(context.failed("cuStreamCreate"))?;
        Ok(Self::registered(context, handle))
    }

    fn registered(context: &Arc<Context>, handle: sys::CUstream) -> Arc<Self> {
        let state = Arc::new(Self { context: context.clone(), handle, flight: Mutex::default() });
        context.register(&state);
        state
    }

    fn flight(&self) -> MutexGuard<'_, InFlight> {
        self.flight.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the stream some work and notes it, so that nobody can take it for idle in between.
    pub(super) fn give(
        &self,
        running: Option<&Arc<dyn Running>>,
        work: impl FnOnce(sys::CUstream) -> Result<(), DriverError>,
    ) -> Result<(), DriverError> {
        let mut flight = self.flight();
        let result = work(self.handle);
        // A driver that was told to wait for each kernel tells a fault of this one here.
        if result.as_ref().err().is_none_or(|e| is_sticky(e.0)) {
            flight.give(running);
        }
        result
    }

    /// Adds the kernels that may be running.
    pub(super) fn kernels(&self, list: &mut Vec<String>) {
        self.flight().kernels(list);
    }

    /// Waits for everything, whatever was given.
    pub(super) fn synchronize(&self) -> Result<(), Error> {
        let mark = self.flight().mark();
        self.context.enter()?;
        // SAFETY: the stream lives as long as this.
        unsafe { result::stream::synchronize(self.handle) }.map_err(self.context.failed("cuStreamSynchronize"))?;
        let done = self.flight().settle(mark);
        // Not while the lock is held: what goes with it may wait for this stream.
        drop(done);
        Ok(())
    }

    /// Waits for everything, if there is anything.
    pub(super) fn settle(&self) -> Result<(), Error> {
        let settled = self.flight().is_settled();
        if settled { Ok(()) } else { self.synchronize() }
    }

    fn is_idle(&self) -> Result<bool, Error> {
        self.context.enter()?;
        // SAFETY: the stream lives as long as this.
        passed(&self.context, "cuStreamQuery", unsafe { sys::cuStreamQuery(self.handle) }.result())
    }
}

impl Flow for State {
    type Mark = CudaMark;

    fn record(&self, mark: &CudaMark) -> Result<(), Error> {
        mark.record(self)
    }

    fn synchronize(&self) -> Result<(), Error> {
        self.synchronize()
    }

    fn device(&self) -> &str {
        &self.context.name
    }
}

impl Drop for State {
    fn drop(&mut self) {
        let _ = self.settle();
        if !self.handle.is_null() && self.context.enter().is_ok() {
            // SAFETY: the stream was made once and is not used any more.
            let _ = unsafe { result::stream::destroy(self.handle) };
        }
    }
}

/// What an answer says that can be "not yet".
fn passed(context: &Context, call: &'static str, answer: Result<(), DriverError>) -> Result<bool, Error> {
    match answer {
        Ok(()) => Ok(true),
        Err(DriverError(sys::CUresult::CUDA_ERROR_NOT_READY)) => Ok(false),
        Err(e) => Err(context.failed(call)(e)),
    }
}

/// Puts a launch into a stream of the current context.
pub(super) fn launch(stream: sys::CUstream, loaded: &Loaded, args: &ArgBlock) -> Result<(), DriverError> {
    let bytes = args.bytes();
    let mut size = bytes.len();
    let mut extra = [
        // CU_LAUNCH_PARAM_BUFFER_POINTER, CU_LAUNCH_PARAM_BUFFER_SIZE, CU_LAUNCH_PARAM_END.
        std::ptr::without_provenance_mut(1),
        bytes.as_ptr().cast_mut().cast::<c_void>(),
        std::ptr::without_provenance_mut(2),
        (&raw mut size).cast(),
        std::ptr::null_mut(),
    ];
    let ([gx, gy, gz], [bx, by, bz]) = (loaded.grid, loaded.block);
    // SAFETY: the function belongs to the current context, as the stream does; the argument block is laid out as its parameters
    // are and is copied before the call returns; the list ends as the driver wants it.
    unsafe {
        sys::cuLaunchKernel(
            loaded.function,
            gx,
            gy,
            gz,
            bx,
            by,
            bz,
            loaded.dynamic_lds,
            stream,
            std::ptr::null_mut(),
            extra.as_mut_ptr(),
        )
    }
    .result()
}

/// A stream as the device hands it out.
pub(super) struct CudaQueue {
    state: Arc<State>,
    modules: Arc<Modules>,
    memory: Arc<Memory>,
}

impl CudaQueue {
    pub(super) fn new(modules: &Arc<Modules>, memory: &Arc<Memory>) -> Result<Self, Error> {
        Ok(Self { state: State::new(&memory.context)?, modules: modules.clone(), memory: memory.clone() })
    }

    fn context(&self) -> &Arc<Context> {
        &self.state.context
    }

    fn foreign(&self, what: &'static str) -> Error {
        Error::Foreign { what, device: self.context().name.clone() }
    }

    /// Begins a copy of host memory; without any there is none.
    fn move_host(
        &self,
        call: &'static str,
        host: Box<dyn HostMemory>,
        copy: impl FnOnce(&mut dyn HostMemory, sys::CUstream) -> Result<(), DriverError>,
    ) -> Result<Box<dyn Transit>, Error> {
        let context = self.context();
        context.enter()?;
        let arrived = CudaMark::untimed(context)?;
        // From here on dropping it waits for the copy.
        let mut moving = Moving::new(host, self.state.clone(), arrived);
        if let Some(host) = moving.begin() {
            self.state.give(None, |stream| copy(host, stream)).map_err(context.failed(call))?;
        }
        moving.marked()?;
        Ok(Box::new(moving))
    }
}

impl Drop for CudaQueue {
    fn drop(&mut self) {
        // Transfers may keep the stream itself.
        let _ = self.state.settle();
    }
}

impl Queue for CudaQueue {
    fn launch(&self, compiled: &Arc<Compiled>, args: &ArgBlock) -> Result<(), Error> {
        let loaded = self.modules.loaded(compiled)?;
        self.context().enter()?;
        self.state
            .give(Some(&loaded.running), |stream| launch(stream, &loaded, args))
            .map_err(|e| self.context().error("cuLaunchKernel", Some(&loaded.label), e))
    }

    fn copy(&self, to: u64, from: u64, bytes: u64) -> Result<(), Error> {
        self.memory.check(from, bytes)?;
        self.memory.check(to, bytes)?;
        if bytes == 0 {
            return Ok(());
        }
        self.context().enter()?;
        // SAFETY: both ranges lie in allocations, which are not freed before the stream is done with them.
        self.state
            .give(None, |stream| unsafe { result::memcpy_dtod_async(to, from, bytes as usize, stream) })
            .map_err(self.context().failed("cuMemcpyDtoDAsync"))
    }

    fn write(&self, to: u64, from: Box<dyn HostMemory>) -> Result<Box<dyn Transit>, Error> {
        self.memory.check(to, from.bytes().len() as u64)?;
        self.move_host("cuMemcpyHtoDAsync", from, |host, stream| {
            // SAFETY: the device's range lies in an allocation, which is not freed before the stream is done with it; the
            // host's is owned by a `Moving` until the copy is done.
            unsafe { result::memcpy_htod_async(to, host.bytes(), stream) }
        })
    }

    fn read(&self, from: u64, to: Box<dyn HostMemory>) -> Result<Box<dyn Transit>, Error> {
        self.memory.check(from, to.bytes().len() as u64)?;
        self.move_host("cuMemcpyDtoHAsync", to, |host, stream| {
            // SAFETY: as for a write; nobody reads the host's memory meanwhile.
            unsafe { result::memcpy_dtoh_async(host.bytes_mut(), from, stream) }
        })
    }

    fn replay(&self, recording: &Arc<dyn Recording>) -> Result<(), Error> {
        let context = self.context();
        let recording: &dyn Any = &**recording;
        let graph = recording
            .downcast_ref::<Replayed>()
            .filter(|graph| Arc::ptr_eq(graph.context(), context))
            .ok_or_else(|| self.foreign("graph"))?;
        context.enter()?;
        self.state.give(Some(&graph.running), |stream| graph.launch(stream)).map_err(context.failed("cuGraphLaunch"))
    }

    fn record(&self, mark: &dyn Mark) -> Result<(), Error> {
        let mark: &dyn Any = mark;
        let mark = mark
            .downcast_ref::<CudaMark>()
            .filter(|mark| Arc::ptr_eq(&mark.context, self.context()))
            .ok_or_else(|| self.foreign("event"))?;
        mark.record(&self.state)
    }

    fn wait(&self, mark: &dyn Mark) -> Result<(), Error> {
        let mark: &dyn Any = mark;
        let mark = mark.downcast_ref::<CudaMark>().ok_or_else(|| self.foreign("event"))?;
        self.context().enter()?;
        let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: both live; the event may be that of another device.
        self.state
            .give(None, |stream| unsafe { result::stream::wait_event(stream, mark.handle, flags) })
            .map_err(self.context().failed("cuStreamWaitEvent"))
    }

    fn is_idle(&self) -> Result<bool, Error> {
        self.state.is_idle()
    }

    fn synchronize(&self) -> Result<(), Error> {
        self.state.synchronize()
    }
}

/// An event of the driver.
pub(super) struct CudaMark {
    context: Arc<Context>,
    handle: sys::CUevent,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for CudaMark {}
// SAFETY: as above; the driver locks its own state.
unsafe impl Sync for CudaMark {}

impl CudaMark {
    /// One that keeps the time.
    pub(super) fn timed(context: &Arc<Context>) -> Result<Self, Error> {
        Self::new(context, sys::CUevent_flags::CU_EVENT_DEFAULT)
    }

    /// One that does not, which costs less.
    fn untimed(context: &Arc<Context>) -> Result<Self, Error> {
        Self::new(context, sys::CUevent_flags::CU_EVENT_DISABLE_TIMING)
    }

    fn new(context: &Arc<Context>, flags: sys::CUevent_flags) -> Result<Self, Error> {
        context.enter()?;
        let handle = result::event::create(flags).map_err(context.failed("cuEventCreate"))?;
        Ok(Self { context: context.clone(), handle })
    }

    pub(super) fn record(&self, state: &State) -> Result<(), Error> {
        self.context.enter()?;
        // SAFETY: both live and belong to this context.
        state
            .give(None, |stream| unsafe { result::event::record(self.handle, stream) })
            .map_err(self.context.failed("cuEventRecord"))
    }
}

impl Mark for CudaMark {
    fn is_passed(&self) -> Result<bool, Error> {
        self.context.enter()?;
        // SAFETY: the event lives as long as this.
        passed(&self.context, "cuEventQuery", unsafe { result::event::query(self.handle) })
    }

    fn synchronize(&self) -> Result<(), Error> {
        self.context.enter()?;
        // SAFETY: as above.
        unsafe { result::event::synchronize(self.handle) }.map_err(self.context.failed("cuEventSynchronize"))
    }

    fn elapsed(&self, end: &dyn Mark) -> Result<Duration, Error> {
        let end: &dyn Any = end;
        let end = end
            .downcast_ref::<Self>()
            .filter(|end| Arc::ptr_eq(&end.context, &self.context))
            .ok_or_else(|| Error::Foreign { what: "event", device: self.context.name.clone() })?;
        let failed = self.context.failed("cuEventElapsedTime");
        self.context.enter()?;
        // The version of the function that every driver has: `_v2` came with CUDA 12.8.
        type Elapsed = unsafe extern "C" fn(*mut f32, sys::CUevent, sys::CUevent) -> sys::CUresult;
        // SAFETY: the driver is loaded, and exports the function with this signature.
        let elapsed = unsafe { sys::culib().get::<Elapsed>(b"cuEventElapsedTime\0") };
        let elapsed = elapsed.map_err(|e| Error::Driver {
            device: self.context.name.clone(),
            call: "cuEventElapsedTime",
            failure: e.to_string(),
        })?;
        let mut milliseconds = 0f32;
        // SAFETY: writes one float through a valid pointer; both events live and were recorded.
        unsafe { elapsed(&raw mut milliseconds, self.handle, end.handle) }.result().map_err(failed)?;
        Ok(Duration::try_from_secs_f64(f64::from(milliseconds) / 1e3).unwrap_or_default())
    }
}

impl Drop for CudaMark {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            // SAFETY: the event was made once. The driver waits with its resources until the stream has passed it.
            let _ = unsafe { result::event::destroy(self.handle) };
        }
    }
}
