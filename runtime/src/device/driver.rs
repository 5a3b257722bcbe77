//! What a driver gives for streams, events, graphs, pinned host memory and memory that devices share: implemented once a driver.
//! What is made of it for users, and what holds for them, is in [`stream`](super::Stream), [`graph`](super::Graph),
//! [`pinned`](super::Pinned) and [`peer`](super::PeerRegion).

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use lathe_dsl::ir::{Coordinates, Filter, ImageType};

use super::peer::{PeerHandle, PeerRegion};
use crate::error::Error;
use crate::jit::Compiled;
use crate::launch::ArgBlock;

/// A device that takes work and returns before it is done.
pub trait Asynchronous: Send + Sync {
    /// A new queue of work.
    ///
    /// # Errors
    /// What the driver says.
    fn queue(&self) -> Result<Box<dyn Queue>, Error>;

    /// A new mark that queues can be given.
    ///
    /// # Errors
    /// What the driver says.
    fn mark(&self) -> Result<Box<dyn Mark>, Error>;

    /// Host memory of `bytes` zeros that the device reads and writes without a copy in between.
    ///
    /// # Errors
    /// The host has no room, or what the driver says.
    fn host_memory(&self, bytes: usize) -> Result<Box<dyn HostMemory>, Error>;

    /// Begins a recording of launches.
    ///
    /// # Errors
    /// What the driver says.
    fn recorder(&self) -> Result<Box<dyn Recorder>, Error>;
}

/// Work that the device does in the order in which it was given. Dropped, it waits for that work first.
pub trait Queue: Send + Sync {
    /// Adds a launch, without allocating once the kernel is loaded. The kernel's code stays loaded until the launch is done.
    ///
    /// # Errors
    /// Code for another device, or what the driver says, also of earlier work.
    fn launch(&self, compiled: &Arc<Compiled>, args: &ArgBlock) -> Result<(), Error>;

    /// Adds a copy within the device's memory.
    ///
    /// # Errors
    /// [`Error::BadAddress`], or what the driver says.
    fn copy(&self, to: u64, from: u64, bytes: u64) -> Result<(), Error>;

    /// Adds a copy of all of `from` to the device. Whatever happens to the transfer, the host memory is neither given back nor
    /// freed before the copy is done.
    ///
    /// # Errors
    /// As [`Queue::copy`].
    fn write(&self, to: u64, from: Box<dyn HostMemory>) -> Result<Box<dyn Transit>, Error>;

    /// Adds a copy from the device that fills `to`; as [`Queue::write`].
    ///
    /// # Errors
    /// As [`Queue::copy`].
    fn read(&self, from: u64, to: Box<dyn HostMemory>) -> Result<Box<dyn Transit>, Error>;

    /// Adds one run of a recording, which stays until the run is done.
    ///
    /// # Errors
    /// A recording of another device, or what the driver says.
    fn replay(&self, recording: &Arc<dyn Recording>) -> Result<(), Error>;

    /// Adds the mark.
    ///
    /// # Errors
    /// A mark of another device, or what the driver says.
    fn record(&self, mark: &dyn Mark) -> Result<(), Error>;

    /// What is added from now on begins after the mark, as last recorded.
    ///
    /// # Errors
    /// A mark of another driver, or what the driver says.
    fn wait(&self, mark: &dyn Mark) -> Result<(), Error>;

    /// Whether everything is done.
    ///
    /// # Errors
    /// What the driver says of the work.
    fn is_idle(&self) -> Result<bool, Error>;

    /// Waits until everything is done.
    ///
    /// # Errors
    /// What the driver says of the work.
    fn synchronize(&self) -> Result<(), Error>;

    /// What launches found unusual since the last call; drivers find nothing.
    fn take_findings(&self) -> Vec<String> {
        vec![]
    }
}

/// A point in a queue.
pub trait Mark: Any + Send + Sync {
    /// Whether the device has passed it, as last recorded; one that was never recorded is passed.
    ///
    /// # Errors
    /// What the driver says of the work before it.
    fn is_passed(&self) -> Result<bool, Error>;

    /// Waits until the device has passed it.
    ///
    /// # Errors
    /// What the driver says of the work before it.
    fn synchronize(&self) -> Result<(), Error>;

    /// Device time from here to `end`; both were recorded and are passed. 0 if `end` came first.
    ///
    /// # Errors
    /// A mark of another device, or what the driver says.
    fn elapsed(&self, end: &dyn Mark) -> Result<Duration, Error>;
}

/// Host memory for copies.
pub trait HostMemory: Send + Sync {
    /// Its bytes, aligned to 16.
    fn bytes(&self) -> &[u8];

    /// Its bytes, aligned to 16.
    fn bytes_mut(&mut self) -> &mut [u8];
}

/// A copy between host and device that may be under way. Dropped, it waits for it.
pub trait Transit: Send + Sync {
    /// Whether it is done.
    ///
    /// # Errors
    /// What the driver says.
    fn is_done(&self) -> Result<bool, Error>;

    /// Waits for it and gives the host memory back.
    ///
    /// # Errors
    /// What the driver says; the memory is lost.
    fn finish(self: Box<Self>) -> Result<Box<dyn HostMemory>, Error>;
}

/// Launches that are noted instead of done.
pub trait Recorder: Send + Sync {
    /// Notes a launch after the ones before it.
    ///
    /// # Errors
    /// As [`Queue::launch`].
    fn launch(&self, compiled: &Arc<Compiled>, args: &ArgBlock) -> Result<(), Error>;

    /// Notes a copy within the device's memory.
    ///
    /// # Errors
    /// As [`Queue::copy`].
    fn copy(&self, to: u64, from: u64, bytes: u64) -> Result<(), Error>;

    /// What was noted, ready to run again and again.
    ///
    /// # Errors
    /// What the driver says.
    fn finish(self: Box<Self>) -> Result<Arc<dyn Recording>, Error>;
}

/// A finished recording; it keeps the code of its kernels loaded.
pub trait Recording: Any + Send + Sync {}

/// A device whose memory other devices reach, and that reaches theirs.
pub trait Sharing: Send + Sync {
    /// New memory of `bytes` zeros that other devices can open.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or what the driver says.
    fn region(&self, bytes: u64) -> Result<Arc<dyn PeerRegion>, Error>;

    /// Memory of another process, which made the handle.
    ///
    /// # Errors
    /// [`Error::NoPeer`], or what the driver says.
    fn import(&self, handle: &PeerHandle) -> Result<Arc<dyn PeerRegion>, Error>;

    /// Makes a region reachable, one of this device's own included. The caller keeps the region for longer than what this gives.
    ///
    /// # Errors
    /// [`Error::NoPeer`], or what the driver says.
    fn open(&self, region: &dyn PeerRegion) -> Result<Box<dyn Opened>, Error>;
}

/// A region that a device reaches. Dropped, it waits for what the device's queues were given before.
pub trait Opened: Send + Sync {
    /// Where it begins there.
    fn address(&self) -> u64;
}

/// How an image's texture is sampled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sampling {
    /// What samples between texel centres are.
    pub filter: Filter,
    /// What their coordinates count.
    pub coordinates: Coordinates,
}

/// What kernels get of an image.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ImageHandle {
    /// To read it.
    Texture(u64),
    /// To store to it.
    Surface(u64),
}

/// A device whose kernels take images.
pub trait Images: Send + Sync {
    /// A new image, of a type that was checked; its content is undefined.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or what the driver says.
    fn image(&self, image: ImageType, sampling: Sampling) -> Result<Arc<dyn Image>, Error>;

    /// The image that kernels get as `handle`, if it lives.
    fn owner(&self, handle: ImageHandle) -> Option<Arc<dyn Image>>;
}

/// An image of a device. Dropped by its last owner, it waits for what the device's queues were given before.
pub trait Image: Send + Sync {
    /// A number that no other image of the device has.
    fn number(&self) -> u64;

    /// What kernels get to read it.
    fn texture(&self) -> u64;

    /// What kernels get to store to it.
    fn surface(&self) -> u64;

    /// Copies all texels, row by row, to the device.
    ///
    /// # Errors
    /// What the driver says.
    fn write(&self, texels: &[u8]) -> Result<(), Error>;

    /// Copies all texels from the device.
    ///
    /// # Errors
    /// What the driver says.
    fn read(&self, texels: &mut [u8]) -> Result<(), Error>;
}
