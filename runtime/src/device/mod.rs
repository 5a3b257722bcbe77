//! Devices: where kernels run. One file or folder a device; what they share is beside them.

mod cpu;
mod cuda;
pub mod driver;
mod extents;
#[cfg(feature = "jit")]
mod gcn;
mod graph;
mod group;
#[cfg(feature = "hip")]
mod hip;
mod immediate;
mod inflight;
mod moving;
mod occupancy;
mod peer;
mod pinned;
mod stream;
#[cfg(test)]
mod tests;

use std::any::Any;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lathe_dsl::Target;
use lathe_dsl::numerics::MmaRounding;

pub use cpu::{Cpu, CpuOptions};
pub use cuda::Cuda;
#[cfg(feature = "jit")]
pub use gcn::{Costs, Gcn, InstructionCost, LocatedError};
pub use graph::Graph;
pub use group::Group;
#[cfg(feature = "hip")]
pub use hip::Hip;
pub use occupancy::{LoadedResources, Occupancy};
pub use peer::{OpenRegion, PeerHandle, PeerHandleError, PeerRegion, PeerTable};
pub use pinned::{Pinned, Transfer};
pub use stream::{Event, Stream};

use crate::error::Error;
use crate::jit::Compiled;
use crate::launch::ArgBlock;

/// Number of a device, unique in this process: addresses mean something on one device only.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DeviceId(pub u64);

impl DeviceId {
    /// One that no other device has.
    pub fn unique() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// Memory and execution of one device. Addresses are the device's own; every call of this trait waits until it is done.
/// [`Stream`]s do not.
pub trait Device: Any + Send + Sync {
    /// As the command line spells it: `cpu`, `gcn:gfx950`, `cuda:0`, `hip:0`.
    fn name(&self) -> String;

    /// Its number, the same for its whole life.
    fn id(&self) -> DeviceId;

    /// The chip that kernels must be traced for.
    fn target(&self) -> Target;

    /// Whether the chip's approximations (`hw_exp2` and its like) are the chip's own here, within their bounds. The devices
    /// that run on the host round them correctly.
    fn approximates(&self) -> bool {
        false
    }

    /// How sums of matrix products are rounded here: exactly but for one rounding, unless another way is known.
    fn mma_rounding(&self) -> MmaRounding {
        MmaRounding::Exact
    }

    /// A further device like this one, with memory of its own, if it is one that the host simulates: the other ranks of a group.
    fn another(&self) -> Option<Arc<dyn Device>> {
        None
    }

    /// Reserves `bytes` of memory, aligned to 256; the content is undefined.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    fn alloc(&self, bytes: u64) -> Result<u64, Error>;

    /// Gives memory back; an address that [`Device::alloc`] did not give is ignored. The memory is freed with the last
    /// `free` that [`Device::alloc`] and [`Device::retain`] ask for, and not before everything is done that streams of the
    /// device were given until then.
    fn free(&self, address: u64);

    /// Keeps the allocation that covers `address` for one more [`Device::free`] of its address, which this gives; `None` if
    /// there is none. A device without it cannot record graphs.
    fn retain(&self, address: u64) -> Option<u64> {
        let _ = address;
        None
    }

    /// Copies to the device.
    ///
    /// # Errors
    /// [`Error::BadAddress`] if the range lies in no allocation.
    fn write(&self, address: u64, bytes: &[u8]) -> Result<(), Error>;

    /// Copies from the device.
    ///
    /// # Errors
    /// [`Error::BadAddress`] if the range lies in no allocation.
    fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), Error>;

    /// Runs a compiled kernel. [`Compiled::launch`] has checked the arguments.
    ///
    /// # Errors
    /// Code for another device, or what the kernel did wrong.
    fn launch(&self, compiled: &Compiled, args: &ArgBlock) -> Result<LaunchReport, Error>;

    /// What a kernel needs here; see [`Compiled::resources_on`].
    ///
    /// # Errors
    /// Code for another device, or what the driver says.
    fn resources(&self, compiled: &Compiled) -> Result<LoadedResources, Error> {
        if compiled.target() == self.target() {
            Ok(LoadedResources::of_record(compiled))
        } else {
            Err(wrong_code(compiled, compiled.target().to_string(), self.name()))
        }
    }

    /// How many workgroups of a kernel run at once; see [`Compiled::occupancy`].
    ///
    /// # Errors
    /// As [`Device::resources`].
    fn occupancy(&self, compiled: &Compiled) -> Result<Option<Occupancy>, Error> {
        self.resources(compiled).map(|_| None)
    }

    /// Its driver, if it takes work that it does later. Without one its streams do everything at once, by the calls above.
    fn asynchronous(&self) -> Option<&dyn driver::Asynchronous> {
        None
    }

    /// How it keeps images, if its kernels take some.
    fn images(&self) -> Option<&dyn driver::Images> {
        None
    }

    /// How it shares memory with other devices, if it does.
    fn sharing(&self) -> Option<&dyn driver::Sharing> {
        None
    }
}

impl dyn Device {
    /// A new stream. On GPUs a stream costs memory and time to make: keep it.
    ///
    /// # Errors
    /// What the driver says.
    pub fn stream(self: &Arc<Self>) -> Result<Stream, Error> {
        Stream::new(self)
    }

    /// A new event, which was not recorded yet.
    ///
    /// # Errors
    /// What the driver says.
    pub fn event(self: &Arc<Self>) -> Result<Event, Error> {
        Event::new(self)
    }

    fn driver(self: &Arc<Self>) -> Driver<'_> {
        self.asynchronous().map_or_else(|| Driver::Immediate(immediate::Immediate(self.clone())), Driver::Own)
    }
}

/// What makes a device's streams.
enum Driver<'a> {
    Own(&'a dyn driver::Asynchronous),
    Immediate(immediate::Immediate),
}

impl<'a> Deref for Driver<'a> {
    type Target = dyn driver::Asynchronous + 'a;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Own(driver) => *driver,
            Self::Immediate(immediate) => immediate,
        }
    }
}

/// A kernel that was compiled for something else than `device`.
fn wrong_code(compiled: &Compiled, made_for: String, device: String) -> Error {
    Error::WrongCode { kernel: compiled.kernel().name.clone(), compiled: made_for, device }
}

/// What a launch tells beyond its results.
#[derive(Clone, Debug, Default)]
pub struct LaunchReport {
    /// Wall time of the launch.
    pub time: Duration,
    /// Accesses that have a defined result but are seldom meant, each with its source location.
    pub findings: Vec<String>,
}
