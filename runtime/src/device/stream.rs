//! Streams and events: work that a device does in order while the host goes on.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytemuck::Pod;
use lathe_dsl::builder::Element;

use super::Device;
use super::driver::{Mark, Queue, Recorder, Recording};
use super::graph::{Graph, Kept};
use super::pinned::{Pinned, Transfer};
use crate::buffer::DeviceBuffer;
use crate::error::Error;
use crate::jit::Compiled;
use crate::launch::ArgBlock;

/// An ordered queue of work on a device.
///
/// * **Order.** What one stream is given runs in that order. Streams run beside each other; events order them.
///   [`Device::write`], [`Device::read`], [`Device::launch`] and what is made of them begin after everything that the device's
///   streams were given before, and what a stream is given afterwards begins after them.
/// * **Memory.** Device memory is freed only after everything that the device's streams were given before is done: dropping a
///   [`DeviceBuffer`] waits for it. A kernel's code stays loaded while it runs. Host memory goes into a copy by value and comes
///   back when the copy is done.
/// * **Dropping** a stream waits for its work.
/// * On `cpu` and `gcn` everything is done when the call returns.
pub struct Stream {
    device: Arc<dyn Device>,
    work: Work,
}

/// Where a stream's work goes.
enum Work {
    Queue(Box<dyn Queue>),
    /// Into a graph, whose memory is kept.
    Recorder(Box<dyn Recorder>, Kept),
}

impl Stream {
    pub(super) fn new(device: &Arc<dyn Device>) -> Result<Self, Error> {
        Ok(Self { device: device.clone(), work: Work::Queue(device.driver().queue()?) })
    }

    /// The device that does the work.
    pub fn device(&self) -> &Arc<dyn Device> {
        &self.device
    }

    /// The queue, for `call`, which cannot be recorded.
    fn queue(&self, call: &'static str) -> Result<&dyn Queue, Error> {
        match &self.work {
            Work::Queue(queue) => Ok(&**queue),
            Work::Recorder(..) => Err(Error::NotRecordable { call }),
        }
    }

    /// [`Compiled::launch_on`] with a checked argument block.
    pub(crate) fn launch(&self, compiled: &Arc<Compiled>, args: &ArgBlock) -> Result<(), Error> {
        match &self.work {
            Work::Queue(queue) => queue.launch(compiled, args),
            Work::Recorder(recorder, kept) => {
                kept.keep_arguments(compiled.kernel(), args)?;
                recorder.launch(compiled, args)
            }
        }
    }

    /// Address of a buffer of this device.
    fn address<T: Element + Pod>(&self, buffer: &DeviceBuffer<T>) -> Result<u64, Error> {
        if buffer.device().id() == self.device.id() {
            Ok(buffer.address())
        } else {
            Err(Error::Foreign { what: "buffer", device: self.device.name() })
        }
    }

    /// Copies all of `from` to `to`, which is as long, within the device.
    ///
    /// # Errors
    /// [`Error::Foreign`], [`Error::CopyLength`], what the driver says.
    pub fn copy<T: Element + Pod>(&self, from: &DeviceBuffer<T>, to: &DeviceBuffer<T>) -> Result<(), Error> {
        let (source, target) = (self.address(from)?, self.address(to)?);
        same_length(from.len(), to.len())?;
        let bytes = from.len() as u64 * size_of::<T>() as u64;
        match &self.work {
            Work::Queue(queue) => queue.copy(target, source, bytes),
            Work::Recorder(recorder, kept) => {
                kept.keep(source)?;
                kept.keep(target)?;
                recorder.copy(target, source, bytes)
            }
        }
    }

    /// Copies all of `from` to `to`, which is as long.
    ///
    /// # Errors
    /// As [`Stream::copy`]; the host memory is lost. [`Error::NotRecordable`] in a capture.
    pub fn write<T: Element + Pod>(&self, from: Pinned<T>, to: &DeviceBuffer<T>) -> Result<Transfer<T>, Error> {
        let queue = self.queue("write")?;
        let address = self.address(to)?;
        same_length(from.len(), to.len())?;
        Ok(Transfer::new(queue.write(address, from.into_memory())?))
    }

    /// Copies all of `from` to `to`, which is as long.
    ///
    /// # Errors
    /// As [`Stream::write`].
    pub fn read<T: Element + Pod>(&self, from: &DeviceBuffer<T>, to: Pinned<T>) -> Result<Transfer<T>, Error> {
        let queue = self.queue("read")?;
        let address = self.address(from)?;
        same_length(from.len(), to.len())?;
        Ok(Transfer::new(queue.read(address, to.into_memory())?))
    }

    /// What is given from now on begins after `event`, as it was last recorded; at once if it never was. The event may be that
    /// of another device of the same driver.
    ///
    /// # Errors
    /// [`Error::Foreign`] for an event of another driver, what the driver says, [`Error::NotRecordable`] in a capture.
    pub fn wait(&self, event: &Event) -> Result<(), Error> {
        self.queue("wait")?.wait(&*event.mark)
    }

    /// Whether everything is done.
    ///
    /// # Errors
    /// As [`Stream::synchronize`].
    pub fn is_idle(&self) -> Result<bool, Error> {
        self.queue("is_idle")?.is_idle()
    }

    /// Waits until everything is done.
    ///
    /// # Errors
    /// [`Error::Faulted`] if a kernel faulted, here or in another stream of the device; what else the driver says;
    /// [`Error::NotRecordable`] in a capture.
    pub fn synchronize(&self) -> Result<(), Error> {
        self.queue("synchronize")?.synchronize()
    }

    /// What launches found unusual since the last call; see [`LaunchReport`](super::LaunchReport). GPUs find nothing.
    pub fn take_findings(&self) -> Vec<String> {
        match &self.work {
            Work::Queue(queue) => queue.take_findings(),
            Work::Recorder(..) => vec![],
        }
    }

    /// Records what `work` gives to the stream that it is handed, and runs nothing: launches and copies within the device.
    /// This stream, others and other threads go on meanwhile. Whatever `work` does beside that, such as allocating, is done now
    /// and not repeated.
    ///
    /// # Errors
    /// `work`'s own; what the driver says; [`Error::NotRecordable`] for anything else that is given to the stream.
    pub fn capture(&self, work: impl FnOnce(&Stream) -> Result<(), Error>) -> Result<Graph, Error> {
        self.queue("capture")?;
        let recorder = self.device.driver().recorder()?;
        let kept = Kept::new(self.device.clone());
        let recording = Self { device: self.device.clone(), work: Work::Recorder(recorder, kept) };
        work(&recording)?;
        match recording.work {
            Work::Recorder(recorder, kept) => Ok(Graph::new(recorder.finish()?, kept)),
            Work::Queue(_) => Err(Error::NotRecordable { call: "capture" }),
        }
    }

    pub(super) fn replay(&self, recording: &Arc<dyn Recording>) -> Result<(), Error> {
        self.queue("launch of a graph")?.replay(recording)
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("device", &self.device.name()).finish_non_exhaustive()
    }
}

fn same_length(from: usize, to: usize) -> Result<(), Error> {
    if from == to { Ok(()) } else { Err(Error::CopyLength { from, to }) }
}

/// A point in a stream's work: recorded there, waited for by other streams or by the host, and a time on the device's clock.
pub struct Event {
    device: Arc<dyn Device>,
    mark: Box<dyn Mark>,
    recorded: AtomicBool,
}

impl Event {
    pub(super) fn new(device: &Arc<dyn Device>) -> Result<Self, Error> {
        let mark = device.driver().mark()?;
        Ok(Self { device: device.clone(), mark, recorded: AtomicBool::new(false) })
    }

    /// Puts it after everything that `stream` was given so far, in place of where it was.
    ///
    /// # Errors
    /// [`Error::Foreign`] on another device, what the driver says, [`Error::NotRecordable`] in a capture.
    pub fn record(&self, stream: &Stream) -> Result<(), Error> {
        let queue = stream.queue("record")?;
        if stream.device.id() != self.device.id() {
            return Err(Error::Foreign { what: "event", device: stream.device.name() });
        }
        queue.record(&*self.mark)?;
        self.recorded.store(true, Ordering::Release);
        Ok(())
    }

    /// Whether the device has passed it; one that was never recorded is passed.
    ///
    /// # Errors
    /// As [`Event::synchronize`].
    pub fn is_passed(&self) -> Result<bool, Error> {
        self.mark.is_passed()
    }

    /// Waits until the device has passed it.
    ///
    /// # Errors
    /// [`Error::Faulted`] if a kernel faulted; what else the driver says.
    pub fn synchronize(&self) -> Result<(), Error> {
        self.mark.synchronize()
    }

    /// Time on the device from this event to `end`, which this waits for; 0 if `end` came first. CUDA resolves half a
    /// microsecond.
    ///
    /// # Errors
    /// [`Error::NotRecorded`]; [`Error::Foreign`] for events of two devices; as [`Event::synchronize`].
    pub fn elapsed(&self, end: &Self) -> Result<Duration, Error> {
        if self.device.id() != end.device.id() {
            return Err(Error::Foreign { what: "event", device: self.device.name() });
        }
        if ![self, end].iter().all(|e| e.recorded.load(Ordering::Acquire)) {
            return Err(Error::NotRecorded);
        }
        self.synchronize()?;
        end.synchronize()?;
        self.mark.elapsed(&*end.mark)
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event").field("device", &self.device.name()).finish_non_exhaustive()
    }
}
