//! Queues and marks of a GPU: the runtime's streams and events.

#![allow(unsafe_code)] // Calls of the runtime.

use std::any::Any;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hip_sys::hiprt::{
    hipError_t, hipEvent_t, hipEventDefault, hipEventDisableTiming, hipMemcpyKind, hipStream_t, hipStreamDefault,
};

use super::api::{Functions, Status};
use super::context::Context;
use super::graph::Replayed;
use super::memory::{Memory, pointer};
use super::module::{Loaded, Modules};
use crate::device::driver::{HostMemory, Mark, Queue, Recording, Transit};
use crate::device::inflight::{InFlight, Running};
use crate::device::moving::{Flow, Moving};
use crate::error::Error;
use crate::jit::Compiled;
use crate::launch::ArgBlock;

/// One stream of the runtime, and what it was given.
pub(super) struct State {
    pub context: Arc<Context>,
    /// Null: the device's default stream.
    handle: hipStream_t,
    flight: Mutex<InFlight>,
}

// SAFETY: the runtime's handles may be used from any thread.
unsafe impl Send for State {}
// SAFETY: as above; the runtime locks its own state.
unsafe impl Sync for State {}

impl State {
    /// The default stream. What it is given begins after what the other streams were given before, and the other way round.
    pub(super) fn default_stream(context: &Arc<Context>) -> Arc<Self> {
        Self::registered(context, std::ptr::null_mut())
    }

    /// A new stream, ordered with the default stream.
    fn new(context: &Arc<Context>) -> Result<Arc<Self>, Error> {
        let functions = context.enter()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: writes one handle through a valid pointer.
        unsafe { (functions.hipStreamCreateWithFlags)(&raw mut handle, hipStreamDefault) }
            .result()
            .map_err(context.failed("hipStreamCreateWithFlags"))?;
        Ok(Self::registered(context, handle))
    }

    fn registered(context: &Arc<Context>, handle: hipStream_t) -> Arc<Self> {
        let state = Arc::new(Self { context: context.clone(), handle, flight: Mutex::default() });
        context.register(&state);
        state
    }

    fn flight(&self) -> MutexGuard<'_, InFlight> {
        self.flight.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the stream some work by `call`, about `of`, and notes it, so that nobody can take it for idle in between.
    pub(super) fn give(
        &self,
        call: &'static str,
        running: Option<&Arc<dyn Running>>,
        of: Option<&str>,
        work: impl FnOnce(&Functions, hipStream_t) -> Status,
    ) -> Result<(), Error> {
        let functions = self.context.enter()?;
        let mut flight = self.flight();
        match work(functions, self.handle).result() {
            Ok(()) => {
                flight.give(running);
                Ok(())
            }
            Err(status) => {
                // A runtime that was told to wait for each kernel tells a fault of this one here.
                if status.is_sticky() {
                    flight.give(running);
                }
                // What is told of a fault looks at what streams were given.
                drop(flight);
                Err(self.context.error(call, of.as_ref().map(|of| of as _), status))
            }
        }
    }

    /// Gives the stream a launch.
    pub(super) fn launch(&self, loaded: &Loaded, args: &ArgBlock) -> Result<(), Error> {
        self.give("hipModuleLaunchKernel", Some(&loaded.running), Some(&loaded.label), |functions, stream| {
            launch(functions, stream, loaded, args)
        })
    }

    /// Gives the stream a copy within the device's memory, between ranges that lie in allocations.
    pub(super) fn copy(&self, to: u64, from: u64, bytes: u64) -> Result<(), Error> {
        let kind = hipMemcpyKind::hipMemcpyDeviceToDevice as u32;
        // SAFETY: both ranges lie in allocations, which are not freed before the stream is done with them.
        self.give("hipMemcpyAsync", None, None, |functions, stream| unsafe {
            (functions.hipMemcpyAsync)(pointer(to), pointer(from), bytes as usize, kind, stream)
        })
    }

    /// Adds the kernels that may be running.
    pub(super) fn kernels(&self, list: &mut Vec<String>) {
        self.flight().kernels(list);
    }

    /// Waits for everything, whatever was given.
    pub(super) fn synchronize(&self) -> Result<(), Error> {
        let mark = self.flight().mark();
        let functions = self.context.enter()?;
        // SAFETY: the stream lives as long as this.
        unsafe { (functions.hipStreamSynchronize)(self.handle) }
            .result()
            .map_err(self.context.failed("hipStreamSynchronize"))?;
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
        let functions = self.context.enter()?;
        // SAFETY: the stream lives as long as this.
        passed(&self.context, "hipStreamQuery", unsafe { (functions.hipStreamQuery)(self.handle) })
    }
}

impl Flow for State {
    type Mark = HipMark;

    fn record(&self, mark: &HipMark) -> Result<(), Error> {
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
        if !self.handle.is_null()
            && let Ok(functions) = self.context.enter()
        {
            // SAFETY: the stream was made once and is not used any more.
            let _ = unsafe { (functions.hipStreamDestroy)(self.handle) };
        }
    }
}

/// What an answer says that can be "not yet".
fn passed(context: &Context, call: &'static str, answer: Status) -> Result<bool, Error> {
    match answer.result() {
        Ok(()) => Ok(true),
        Err(status) if status.is(hipError_t::hipErrorNotReady) => Ok(false),
        Err(status) => Err(context.failed(call)(status)),
    }
}

/// Puts a launch into a stream of the current device.
fn launch(functions: &Functions, stream: hipStream_t, loaded: &Loaded, args: &ArgBlock) -> Status {
    let bytes = args.bytes();
    let mut size = bytes.len();
    let mut extra = [
        // HIP_LAUNCH_PARAM_BUFFER_POINTER, HIP_LAUNCH_PARAM_BUFFER_SIZE, HIP_LAUNCH_PARAM_END (which is not CUDA's).
        std::ptr::without_provenance_mut(1),
        bytes.as_ptr().cast_mut().cast::<c_void>(),
        std::ptr::without_provenance_mut(2),
        (&raw mut size).cast(),
        std::ptr::without_provenance_mut(3),
    ];
    let ([gx, gy, gz], [bx, by, bz], lds) = (loaded.grid, loaded.block, loaded.dynamic_lds);
    // SAFETY: the function belongs to the current device, as the stream does; the argument block is laid out as its parameters are
    // and is copied before the call returns; the list ends as the runtime wants it.
    unsafe {
        (functions.hipModuleLaunchKernel)(
            loaded.function,
            gx,
            gy,
            gz,
            bx,
            by,
            bz,
            lds,
            stream,
            std::ptr::null_mut(),
            extra.as_mut_ptr(),
        )
    }
}

/// A stream as the device hands it out.
pub(super) struct HipQueue {
    state: Arc<State>,
    modules: Arc<Modules>,
    memory: Arc<Memory>,
}

impl HipQueue {
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
        host: Box<dyn HostMemory>,
        copy: impl FnOnce(&Functions, &mut dyn HostMemory, hipStream_t) -> Status,
    ) -> Result<Box<dyn Transit>, Error> {
        let arrived = HipMark::untimed(self.context())?;
        // From here on dropping it waits for the copy.
        let mut moving = Moving::new(host, self.state.clone(), arrived);
        if let Some(host) = moving.begin() {
            self.state.give("hipMemcpyAsync", None, None, |functions, stream| copy(functions, host, stream))?;
        }
        moving.marked()?;
        Ok(Box::new(moving))
    }
}

impl Drop for HipQueue {
    fn drop(&mut self) {
        // Transfers may keep the stream itself.
        let _ = self.state.settle();
    }
}

impl Queue for HipQueue {
    fn launch(&self, compiled: &Arc<Compiled>, args: &ArgBlock) -> Result<(), Error> {
        self.state.launch(&*self.modules.loaded(compiled)?, args)
    }

    fn copy(&self, to: u64, from: u64, bytes: u64) -> Result<(), Error> {
        self.memory.check(from, bytes)?;
        self.memory.check(to, bytes)?;
        if bytes == 0 { Ok(()) } else { self.state.copy(to, from, bytes) }
    }

    fn write(&self, to: u64, from: Box<dyn HostMemory>) -> Result<Box<dyn Transit>, Error> {
        self.memory.check(to, from.bytes().len() as u64)?;
        self.move_host(from, |functions, host, stream| {
            let (bytes, kind) = (host.bytes(), hipMemcpyKind::hipMemcpyHostToDevice as u32);
            // SAFETY: the device's range lies in an allocation, which is not freed before the stream is done with it; the
            // host's is owned by a `Moving` until the copy is done.
            unsafe { (functions.hipMemcpyAsync)(pointer(to), bytes.as_ptr().cast(), bytes.len(), kind, stream) }
        })
    }

    fn read(&self, from: u64, to: Box<dyn HostMemory>) -> Result<Box<dyn Transit>, Error> {
        self.memory.check(from, to.bytes().len() as u64)?;
        self.move_host(to, |functions, host, stream| {
            let (bytes, kind) = (host.bytes_mut(), hipMemcpyKind::hipMemcpyDeviceToHost as u32);
            // SAFETY: as for a write; nobody reads the host's memory meanwhile.
            unsafe { (functions.hipMemcpyAsync)(bytes.as_mut_ptr().cast(), pointer(from), bytes.len(), kind, stream) }
        })
    }

    fn replay(&self, recording: &Arc<dyn Recording>) -> Result<(), Error> {
        let recording: &dyn Any = &**recording;
        let graph = recording
            .downcast_ref::<Replayed>()
            .filter(|graph| Arc::ptr_eq(graph.context(), self.context()))
            .ok_or_else(|| self.foreign("graph"))?;
        graph.run(&self.state)
    }

    fn record(&self, mark: &dyn Mark) -> Result<(), Error> {
        let mark: &dyn Any = mark;
        let mark = mark
            .downcast_ref::<HipMark>()
            .filter(|mark| Arc::ptr_eq(&mark.context, self.context()))
            .ok_or_else(|| self.foreign("event"))?;
        mark.record(&self.state)
    }

    fn wait(&self, mark: &dyn Mark) -> Result<(), Error> {
        let mark: &dyn Any = mark;
        // Another GPU's is waited for, but another runtime's means nothing to this one.
        let mark = mark
            .downcast_ref::<HipMark>()
            .filter(|mark| self.context().api.is(&mark.context.api))
            .ok_or_else(|| self.foreign("event"))?;
        mark.hold(&self.state)
    }

    fn is_idle(&self) -> Result<bool, Error> {
        self.state.is_idle()
    }

    fn synchronize(&self) -> Result<(), Error> {
        self.state.synchronize()
    }
}

/// An event of the runtime.
pub(super) struct HipMark {
    context: Arc<Context>,
    handle: hipEvent_t,
    /// The runtime takes an event that was never recorded for one that is still to come.
    recorded: AtomicBool,
}

// SAFETY: the runtime's handles may be used from any thread.
unsafe impl Send for HipMark {}
// SAFETY: as above; the runtime locks its own state.
unsafe impl Sync for HipMark {}

impl HipMark {
    /// One that keeps the time.
    pub(super) fn timed(context: &Arc<Context>) -> Result<Self, Error> {
        Self::new(context, hipEventDefault)
    }

    /// One that does not, which costs less.
    pub(super) fn untimed(context: &Arc<Context>) -> Result<Self, Error> {
        Self::new(context, hipEventDisableTiming)
    }

    fn new(context: &Arc<Context>, flags: u32) -> Result<Self, Error> {
        let functions = context.enter()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: writes one handle through a valid pointer.
        unsafe { (functions.hipEventCreateWithFlags)(&raw mut handle, flags) }
            .result()
            .map_err(context.failed("hipEventCreateWithFlags"))?;
        Ok(Self { context: context.clone(), handle, recorded: AtomicBool::new(false) })
    }

    pub(super) fn record(&self, state: &State) -> Result<(), Error> {
        // SAFETY: both live and belong to this device.
        state.give("hipEventRecord", None, None, |functions, stream| unsafe {
            (functions.hipEventRecord)(self.handle, stream)
        })?;
        self.recorded.store(true, Ordering::Release);
        Ok(())
    }

    /// What the stream is given from now on begins after this, if it was recorded.
    pub(super) fn hold(&self, state: &State) -> Result<(), Error> {
        if !self.was_recorded() {
            return Ok(());
        }
        // SAFETY: both live; the event may be that of another device.
        state.give("hipStreamWaitEvent", None, None, |functions, stream| unsafe {
            (functions.hipStreamWaitEvent)(stream, self.handle, 0)
        })
    }

    fn was_recorded(&self) -> bool {
        self.recorded.load(Ordering::Acquire)
    }
}

impl Mark for HipMark {
    fn is_passed(&self) -> Result<bool, Error> {
        if !self.was_recorded() {
            return Ok(true);
        }
        let functions = self.context.enter()?;
        // SAFETY: the event lives as long as this.
        passed(&self.context, "hipEventQuery", unsafe { (functions.hipEventQuery)(self.handle) })
    }

    fn synchronize(&self) -> Result<(), Error> {
        if !self.was_recorded() {
            return Ok(());
        }
        let functions = self.context.enter()?;
        // SAFETY: as above.
        unsafe { (functions.hipEventSynchronize)(self.handle) }
            .result()
            .map_err(self.context.failed("hipEventSynchronize"))
    }

    fn elapsed(&self, end: &dyn Mark) -> Result<Duration, Error> {
        let end: &dyn Any = end;
        let end = end
            .downcast_ref::<Self>()
            .filter(|end| Arc::ptr_eq(&end.context, &self.context))
            .ok_or_else(|| Error::Foreign { what: "event", device: self.context.name.clone() })?;
        let functions = self.context.enter()?;
        let mut milliseconds = 0f32;
        // SAFETY: writes one float through a valid pointer; both events live and were recorded.
        unsafe { (functions.hipEventElapsedTime)(&raw mut milliseconds, self.handle, end.handle) }
            .result()
            .map_err(self.context.failed("hipEventElapsedTime"))?;
        Ok(Duration::try_from_secs_f64(f64::from(milliseconds) / 1e3).unwrap_or_default())
    }
}

impl Drop for HipMark {
    fn drop(&mut self) {
        if let Ok(functions) = self.context.enter() {
            // SAFETY: the event was made once. The runtime waits with its resources until the stream has passed it.
            let _ = unsafe { (functions.hipEventDestroy)(self.handle) };
        }
    }
}
