//! Memory of one device that others reach by its address: in this process, and from other processes by a handle.

mod cpu;
#[cfg(feature = "jit")]
mod gcn;
pub(super) mod gpu;
mod handle;
mod table;

use std::any::Any;
use std::fmt;
use std::sync::Arc;

pub(super) use gpu::GpuMemory;
pub(super) use handle::{DRIVER_BYTES, Maker};
pub use handle::{PeerHandle, PeerHandleError};
pub use table::PeerTable;

use super::driver::{Opened, Sharing};
use super::{Device, DeviceId};
use crate::error::Error;

/// Memory that kernels of other devices can load from and store to: `device.peer_region(bytes)` makes one,
/// `device.import_region(&handle)` one of another process's.
///
/// It is zero at first, and stays until the last [`Arc`] of it is gone, of which everything that opened it has one. Dropping that
/// waits for the work of its own device; dropping an [`OpenRegion`] waits for the work of the device that opened it.
pub trait PeerRegion: Any + Send + Sync {
    /// The device through which this process has it: the one that it lies on, or the one that imported it.
    fn device(&self) -> DeviceId;

    /// That device's name; of an imported one, that of the device it lies on and of its process as well.
    fn owner(&self) -> String;

    /// Its first byte's address on [`PeerRegion::device`], a multiple of 256.
    fn address(&self) -> u64;

    /// Its bytes.
    fn bytes(&self) -> u64;

    /// A handle by which other processes can import it. It must stay until they have dropped what they made of it: drivers
    /// do not keep memory for other processes.
    ///
    /// # Errors
    /// [`Error::NoPeer`] for devices whose memory other processes cannot reach and for imported regions; what the driver says.
    fn export(&self) -> Result<PeerHandle, Error>;
}

impl fmt::Debug for dyn PeerRegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PeerRegion({}: {} bytes at 0x{:x})", self.owner(), self.bytes(), self.address())
    }
}

/// A region as a device reaches it, for as long as this lives. The region stays as long, too.
pub struct OpenRegion {
    /// Dropped first: it waits for the device's work.
    opened: Box<dyn Opened>,
    region: Arc<dyn PeerRegion>,
}

impl OpenRegion {
    /// Address of the region's first byte on the device that opened it.
    pub fn address(&self) -> u64 {
        self.opened.address()
    }

    /// What was opened.
    pub fn region(&self) -> &Arc<dyn PeerRegion> {
        &self.region
    }
}

impl fmt::Debug for OpenRegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OpenRegion({:?} at 0x{:x})", self.region, self.address())
    }
}

impl dyn Device {
    /// Allocates `bytes` zeros that other devices can reach. GPUs round the size up (CUDA to 2 MiB): make one of all that is to be
    /// shared.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; what the driver says.
    pub fn peer_region(&self, bytes: u64) -> Result<Arc<dyn PeerRegion>, Error> {
        self.sharing_or_none()?.region(bytes)
    }

    /// A region of another process, by the handle that [`PeerRegion::export`] gave there. It is closed, not freed, when it is
    /// dropped.
    ///
    /// # Errors
    /// [`Error::NoPeer`] for a handle of this process, of another driver, or of memory that this device does not reach; what the driver
    /// says, such as of a region that is gone.
    pub fn import_region(&self, handle: &PeerHandle) -> Result<Arc<dyn PeerRegion>, Error> {
        let sharing = self.sharing_or_none()?;
        if handle.is_own() {
            let reason = "the handle was made by this process: open the region itself".to_owned();
            return Err(Error::NoPeer { device: self.name(), owner: handle.owner(), reason });
        }
        sharing.import(handle)
    }

    /// Makes a region reachable for this device's kernels, and for its [`Device::read`] and [`Device::write`].
    ///
    /// # Errors
    /// [`Error::NoPeer`] with both devices if this one cannot reach the other's memory; what the driver says.
    pub fn open_region(&self, region: &Arc<dyn PeerRegion>) -> Result<OpenRegion, Error> {
        Ok(OpenRegion { opened: self.sharing_or_none()?.open(&**region)?, region: region.clone() })
    }

    fn sharing_or_none(&self) -> Result<&dyn Sharing, Error> {
        let none = || Error::NoPeer {
            device: self.name(),
            owner: "other devices".to_owned(),
            reason: "it shares no memory".to_owned(),
        };
        self.sharing().ok_or_else(none)
    }
}

/// Devices that run in this process have no handles.
fn within_the_process(device: String) -> Error {
    let reason = "it runs within its process".to_owned();
    Error::NoPeer { device, owner: "other processes".to_owned(), reason }
}

/// A region of another driver than the device's.
fn another_driver(device: String, region: &dyn PeerRegion) -> Error {
    Error::NoPeer { device, owner: region.owner(), reason: "they have different drivers".to_owned() }
}
