//! Devices: where kernels run. One file a device.

mod cpu;
mod cuda;
#[cfg(feature = "jit")]
mod gcn;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lathe_dsl::Target;

pub use cpu::{Cpu, CpuOptions};
pub use cuda::Cuda;
#[cfg(feature = "jit")]
pub use gcn::{Gcn, LocatedError};

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

/// Memory and execution of one device. Addresses are the device's own; every call waits until it is done.
pub trait Device: Send + Sync {
    /// As the command line spells it: `cpu`, `gcn:gfx950`, `cuda:0`.
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

    /// Reserves `bytes` of memory, aligned to 256; the content is undefined.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    fn alloc(&self, bytes: u64) -> Result<u64, Error>;

    /// Gives memory back; an address that [`Device::alloc`] did not give is ignored.
    fn free(&self, address: u64);

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
}

/// What a launch tells beyond its results.
#[derive(Clone, Debug, Default)]
pub struct LaunchReport {
    /// Wall time of the launch.
    pub time: Duration,
    /// Accesses that have a defined result but are seldom meant, each with its source location.
    pub findings: Vec<String>,
}
