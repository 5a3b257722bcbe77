//! Regions of GPUs: what holds for every driver whose memory other GPUs and other processes reach.

use std::any::Any;
use std::sync::{Arc, MutexGuard};

use super::{DRIVER_BYTES, Maker, PeerHandle, PeerRegion, another_driver};
use crate::device::DeviceId;
use crate::device::driver::Opened;
use crate::device::extents::Extents;
use crate::error::Error;

/// A GPU's memory, with the driver's calls for what other GPUs and processes reach of it.
pub trait GpuMemory: Send + Sync + Sized + 'static {
    /// Whose handles its regions have.
    const MAKER: Maker;

    /// The device's name.
    fn name(&self) -> &str;

    /// What is shared with other devices: its own regions, and those that were opened.
    fn regions(&self) -> MutexGuard<'_, Extents>;

    /// Waits for the device's work.
    fn drain(&self);

    /// Whether both are reached through one driver.
    fn has_driver_of(&self, other: &Self) -> bool;

    /// Whether both are memory of one device.
    fn is_device_of(&self, other: &Self) -> bool;

    /// Frees a region that nothing has open.
    fn free_region(&self, address: u64);

    /// The driver's part of a handle for other processes.
    ///
    /// # Errors
    /// What the driver says.
    fn export(&self, address: u64) -> Result<[u8; DRIVER_BYTES], Error>;

    /// Maps another process's memory, and tells where.
    ///
    /// # Errors
    /// [`Error::NoPeer`] if the device does not reach it; what else the driver says.
    fn map(&self, handle: &PeerHandle) -> Result<u64, Error>;

    /// Takes back [`GpuMemory::map`], once nothing runs that could reach it.
    fn unmap(&self, address: u64);

    /// Start and bytes of the allocation that an address lies in.
    ///
    /// # Errors
    /// What the driver says.
    fn allocation(&self, address: u64) -> Result<(u64, u64), Error>;

    /// Lets this device's kernels reach the memory of another one, `owner`.
    ///
    /// # Errors
    /// [`Error::NoPeer`] if there is no way; what else the driver says.
    fn enable(&self, owner: &Self) -> Result<(), Error>;

    /// An error that says why this device does not reach what `owner` has.
    fn no_peer(&self, owner: String, reason: String) -> Error {
        Error::NoPeer { device: self.name().to_owned(), owner, reason }
    }
}

/// Memory of this process.
struct Region<M: GpuMemory> {
    device: DeviceId,
    memory: Arc<M>,
    address: u64,
    bytes: u64,
}

/// Memory of another process, mapped into this one.
struct Imported<M: GpuMemory> {
    device: DeviceId,
    memory: Arc<M>,
    owner: String,
    address: u64,
    bytes: u64,
}

/// A region that a device reaches.
struct Reached<M: GpuMemory> {
    memory: Arc<M>,
    address: u64,
}

impl<M: GpuMemory> Opened for Reached<M> {
    fn address(&self) -> u64 {
        self.address
    }
}

impl<M: GpuMemory> Drop for Reached<M> {
    fn drop(&mut self) {
        self.memory.drain();
        self.memory.regions().release(self.address);
    }
}

impl<M: GpuMemory> PeerRegion for Region<M> {
    fn device(&self) -> DeviceId {
        self.device
    }

    fn owner(&self) -> String {
        self.memory.name().to_owned()
    }

    fn address(&self) -> u64 {
        self.address
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn export(&self) -> Result<PeerHandle, Error> {
        Ok(PeerHandle::new(M::MAKER, self.memory.export(self.address)?, self.bytes, self.memory.name()))
    }
}

impl<M: GpuMemory> Drop for Region<M> {
    fn drop(&mut self) {
        self.memory.free_region(self.address);
    }
}

impl<M: GpuMemory> PeerRegion for Imported<M> {
    fn device(&self) -> DeviceId {
        self.device
    }

    fn owner(&self) -> String {
        self.owner.clone()
    }

    fn address(&self) -> u64 {
        self.address
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn export(&self) -> Result<PeerHandle, Error> {
        Err(Error::NoPeer {
            device: "another process".to_owned(),
            owner: self.owner.clone(),
            reason: "only the process that has the region can export it".to_owned(),
        })
    }
}

impl<M: GpuMemory> Drop for Imported<M> {
    fn drop(&mut self) {
        self.memory.regions().release(self.address);
        self.memory.drain();
        self.memory.unmap(self.address);
    }
}

/// The region at `address`, which is among the memory's. Dropped, it frees it.
pub fn region<M: GpuMemory>(device: DeviceId, memory: &Arc<M>, address: u64, bytes: u64) -> Arc<dyn PeerRegion> {
    Arc::new(Region { device, memory: memory.clone(), address, bytes })
}

/// A region of another process.
///
/// # Errors
/// [`Error::NoPeer`] for another driver's handle, for memory that the device does not reach, and for a handle whose parts do not
/// belong together; what the driver says.
pub fn import<M: GpuMemory>(
    device: DeviceId,
    memory: &Arc<M>,
    handle: &PeerHandle,
) -> Result<Arc<dyn PeerRegion>, Error> {
    if handle.maker != M::MAKER {
        return Err(memory.no_peer(handle.owner(), "they have different drivers".to_owned()));
    }
    let (address, bytes) = (memory.map(handle)?, handle.region_bytes());
    // The driver's part of the handle can be another's than the rest.
    let whole = memory.allocation(address).and_then(|(start, size)| {
        handle.misfit(address, start, size).map_or(Ok(()), |reason| Err(memory.no_peer(handle.owner(), reason)))
    });
    if let Err(error) = whole {
        memory.unmap(address);
        return Err(error);
    }
    memory.regions().open(address, bytes);
    Ok(Arc::new(Imported { device, memory: memory.clone(), owner: handle.owner(), address, bytes }))
}

/// Makes a region reachable for the device's kernels.
///
/// # Errors
/// [`Error::NoPeer`] for another driver's region and where there is no way; what the driver says.
pub fn open<M: GpuMemory>(memory: &Arc<M>, region: &dyn PeerRegion) -> Result<Box<dyn Opened>, Error> {
    let known: &dyn Any = region;
    if let Some(own) = known.downcast_ref::<Region<M>>().filter(|own| memory.has_driver_of(&own.memory)) {
        // It stays enabled: others of the process may rely on it, too.
        if !memory.is_device_of(&own.memory) {
            memory.enable(&own.memory)?;
        }
    } else {
        let imported = known.downcast_ref::<Imported<M>>().filter(|other| memory.has_driver_of(&other.memory));
        let imported = imported.ok_or_else(|| another_driver(memory.name().to_owned(), region))?;
        if !memory.is_device_of(&imported.memory) {
            let reason = format!("it was imported by {}: import it here as well", imported.memory.name());
            return Err(memory.no_peer(region.owner(), reason));
        }
    }
    memory.regions().open(region.address(), region.bytes());
    Ok(Box::new(Reached { memory: memory.clone(), address: region.address() }))
}
