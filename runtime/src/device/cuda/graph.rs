//! Recordings: the driver's graphs, captured from a stream of their own.

#![allow(unsafe_code)] // Calls of the driver.

use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::{DriverError, result, sys};

use super::context::Context;
use super::memory::Memory;
use super::module::{Loaded, Modules};
use super::stream;
use crate::device::driver::{Recorder, Recording};
use crate::device::inflight::Running;
use crate::error::Error;
use crate::jit::Compiled;
use crate::launch::ArgBlock;

/// A capture under way, in a stream that nothing else knows and that is not ordered with the default stream, so that no call of
/// another thread can spoil it.
pub(super) struct Capture {
    modules: Arc<Modules>,
    memory: Arc<Memory>,
    stream: sys::CUstream,
    kernels: Mutex<Vec<Arc<Loaded>>>,
}

// SAFETY: the driver's handles may be used from any thread, in a relaxed capture too.
unsafe impl Send for Capture {}
// SAFETY: as above; what is given to the stream is given under a lock.
unsafe impl Sync for Capture {}

impl Capture {
    pub(super) fn new(modules: &Arc<Modules>, memory: &Arc<Memory>) -> Result<Self, Error> {
        let context = &memory.context;
        context.enter()?;
        let kind = result::stream::StreamKind::NonBlocking;
        let stream = result::stream::create(kind).map_err(context.failed("cuStreamCreate"))?;
        let kernels = Mutex::default();
        let capture = Self { modules: modules.clone(), memory: memory.clone(), stream, kernels };
        // Relaxed: kernels may be loaded and memory allocated meanwhile.
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: the stream was just made.
        unsafe { result::stream::begin_capture(stream, mode) }.map_err(context.failed("cuStreamBeginCapture"))?;
        Ok(capture)
    }

    /// Ends it; what was captured, which is null if the capture failed.
    fn end(&self) -> Result<Captured, Error> {
        let context = &self.memory.context;
        context.enter()?;
        // SAFETY: the stream lives; a capture of it was begun.
        let graph =
            unsafe { result::stream::end_capture(self.stream) }.map_err(context.failed("cuStreamEndCapture"))?;
        Ok(Captured(graph))
    }
}

impl Recorder for Capture {
    fn launch(&self, compiled: &Arc<Compiled>, args: &ArgBlock) -> Result<(), Error> {
        let context = &self.memory.context;
        let loaded = self.modules.loaded(compiled)?;
        let mut kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        context.enter()?;
        stream::launch(self.stream, &loaded, args)
            .map_err(|e| context.error("cuLaunchKernel", Some(&loaded.label), e))?;
        if !kernels.iter().any(|known| Arc::ptr_eq(known, &loaded)) {
            kernels.push(loaded);
        }
        Ok(())
    }

    fn copy(&self, to: u64, from: u64, bytes: u64) -> Result<(), Error> {
        self.memory.check(from, bytes)?;
        self.memory.check(to, bytes)?;
        if bytes == 0 {
            return Ok(());
        }
        let context = &self.memory.context;
        let _kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        context.enter()?;
        // SAFETY: both ranges lie in allocations, which whoever runs the graph keeps.
        unsafe { result::memcpy_dtod_async(to, from, bytes as usize, self.stream) }
            .map_err(context.failed("cuMemcpyDtoDAsync"))
    }

    fn finish(self: Box<Self>) -> Result<Arc<dyn Recording>, Error> {
        let context = &self.memory.context;
        let graph = self.end()?;
        let flags = sys::CUgraphInstantiate_flags(0);
        // SAFETY: the capture gave the graph.
        let exec = unsafe { result::graph::instantiate(graph.0, flags) }
            .map_err(context.failed("cuGraphInstantiateWithFlags"))?;
        let kernels = std::mem::take(&mut *self.kernels.lock().unwrap_or_else(PoisonError::into_inner));
        let graph = Arc::new(Exec { context: context.clone(), handle: Mutex::new(exec), kernels });
        Ok(Arc::new(Replayed { running: graph.clone(), graph }))
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        let context = &self.memory.context;
        if context.enter().is_err() {
            return;
        }
        // SAFETY: the stream lives.
        let status = unsafe { result::stream::is_capturing(self.stream) };
        if !matches!(status, Ok(sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE)) {
            // Given up half way.
            let _ = self.end();
        }
        // SAFETY: the stream was made once, captures nothing and is not used any more.
        let _ = unsafe { result::stream::destroy(self.stream) };
    }
}

/// A graph that only serves to make another form of it.
struct Captured(sys::CUgraph);

impl Drop for Captured {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: the graph was given by a capture; what was instantiated from it is a copy.
            let _ = unsafe { result::graph::destroy(self.0) };
        }
    }
}

/// A graph that can be launched.
struct Exec {
    context: Arc<Context>,
    /// Locked for each call: the driver does not lock graphs.
    handle: Mutex<sys::CUgraphExec>,
    kernels: Vec<Arc<Loaded>>,
}

// SAFETY: the driver's handles may be used from any thread, those of graphs from one at a time, which the lock sees to.
unsafe impl Send for Exec {}
// SAFETY: as above.
unsafe impl Sync for Exec {}

impl Running for Exec {
    fn kernels(&self, list: &mut Vec<String>) {
        list.extend(self.kernels.iter().map(|k| k.label.clone()));
    }
}

impl Drop for Exec {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            let handle = *self.handle.get_mut().unwrap_or_else(PoisonError::into_inner);
            // SAFETY: it was instantiated once; streams that run it hold it.
            let _ = unsafe { result::graph::exec_destroy(handle) };
        }
    }
}

/// A graph as the device hands it out.
pub(super) struct Replayed {
    graph: Arc<Exec>,
    /// The same, for the streams that run it.
    pub running: Arc<dyn Running>,
}

impl Replayed {
    pub(super) fn context(&self) -> &Arc<Context> {
        &self.graph.context
    }

    /// Gives one run to a stream of the current context, which must hold [`Replayed::running`] until the run is done.
    pub(super) fn launch(&self, stream: sys::CUstream) -> Result<(), DriverError> {
        let handle = self.graph.handle.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the graph and the stream live, and no other thread uses the graph now.
        unsafe { result::graph::launch(*handle, stream) }
    }
}

impl Recording for Replayed {}
