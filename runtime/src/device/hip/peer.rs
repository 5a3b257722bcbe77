//! Memory of a GPU that other GPUs and other processes reach.

#![allow(unsafe_code)] // Calls of the runtime.

use std::any::Any;
use std::ffi::c_char;
use std::sync::Arc;

use hip_sys::hiprt::{hipError_t, hipIpcMemHandle_t};

use super::Hip;
use super::context::Context;
use super::memory::{Memory, pointer};
use crate::device::driver::{Opened, Sharing};
use crate::device::peer::{DRIVER_BYTES, Maker, PeerHandle, PeerRegion, another_driver};
use crate::device::{Device, DeviceId};
use crate::error::Error;

/// `hipIpcMemLazyEnablePeerAccess` of newer versions of HIP, and of older ones; each takes its own number only.
const LAZY_PEER_ACCESS: [u32; 2] = [1, 0];

/// Memory of this process.
struct Region {
    device: DeviceId,
    memory: Arc<Memory>,
    address: u64,
    bytes: u64,
}

/// Memory of another process, mapped into this one.
struct Imported {
    device: DeviceId,
    memory: Arc<Memory>,
    owner: String,
    address: u64,
    bytes: u64,
}

/// A region that a device reaches.
struct Reached {
    memory: Arc<Memory>,
    address: u64,
}

impl Reached {
    fn new(memory: &Arc<Memory>, address: u64, bytes: u64) -> Self {
        memory.regions().open(address, bytes);
        Self { memory: memory.clone(), address }
    }
}

impl Opened for Reached {
    fn address(&self) -> u64 {
        self.address
    }
}

impl Drop for Reached {
    fn drop(&mut self) {
        self.memory.context.drain();
        self.memory.regions().release(self.address);
    }
}

impl PeerRegion for Region {
    fn device(&self) -> DeviceId {
        self.device
    }

    fn owner(&self) -> String {
        self.memory.context.name.clone()
    }

    fn address(&self) -> u64 {
        self.address
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn export(&self) -> Result<PeerHandle, Error> {
        let context = &self.memory.context;
        let functions = context.enter()?;
        let mut handle = hipIpcMemHandle_t { reserved: [0; DRIVER_BYTES] };
        // SAFETY: writes one handle through a valid pointer; the address is an allocation's.
        unsafe { (functions.hipIpcGetMemHandle)(&raw mut handle, pointer(self.address)) }
            .result()
            .map_err(context.failed("hipIpcGetMemHandle"))?;
        Ok(PeerHandle::new(Maker::Hip, handle.reserved.map(c_char::cast_unsigned), self.bytes, &context.name))
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        self.memory.free_region(self.address);
    }
}

impl PeerRegion for Imported {
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

impl Drop for Imported {
    fn drop(&mut self) {
        let context = &self.memory.context;
        self.memory.regions().release(self.address);
        context.drain();
        if let Ok(functions) = context.enter() {
            // SAFETY: it was opened on this device, and once for this; nothing runs that could reach it.
            let _ = unsafe { (functions.hipIpcCloseMemHandle)(pointer(self.address)) };
        }
    }
}

impl Sharing for Hip {
    fn region(&self, bytes: u64) -> Result<Arc<dyn PeerRegion>, Error> {
        let address = self.memory.alloc_region(bytes)?;
        let region = Region { device: self.id(), memory: self.memory.clone(), address, bytes };
        let functions = self.memory.context.enter()?;
        // SAFETY: the range was just allocated.
        unsafe { (functions.hipMemset)(pointer(address), 0, bytes as usize) }
            .result()
            .map_err(self.memory.context.failed("hipMemset"))?;
        // Others may store to it as soon as they have it.
        self.default.synchronize()?;
        Ok(Arc::new(region))
    }

    fn import(&self, handle: &PeerHandle) -> Result<Arc<dyn PeerRegion>, Error> {
        let context = &self.memory.context;
        if handle.maker != Maker::Hip {
            let reason = "they have different drivers".to_owned();
            return Err(Error::NoPeer { device: context.name.clone(), owner: handle.owner(), reason });
        }
        let functions = context.enter()?;
        let mut start = std::ptr::null_mut();
        let mut open = |flags| {
            let driver = hipIpcMemHandle_t { reserved: handle.driver.map(u8::cast_signed) };
            // SAFETY: writes one pointer through a valid one; the runtime looks the handle up.
            unsafe { (functions.hipIpcOpenMemHandle)(&raw mut start, driver, flags) }.result()
        };
        let [newer, older] = LAZY_PEER_ACCESS;
        open(newer)
            .or_else(|status| if status.is(hipError_t::hipErrorInvalidValue) { open(older) } else { Err(status) })
            .map_err(|status| {
                let of = format!("memory of {}", handle.owner());
                context.error("hipIpcOpenMemHandle", Some(&of), status)
            })?;
        let (address, bytes) = (start.addr() as u64, handle.region_bytes());
        if let Err(error) = whole(context, handle, address) {
            // SAFETY: it was opened just now, and nobody else knows of it.
            let _ = unsafe { (functions.hipIpcCloseMemHandle)(start) };
            return Err(error);
        }
        self.memory.regions().open(address, bytes);
        let memory = self.memory.clone();
        Ok(Arc::new(Imported { device: self.id(), memory, owner: handle.owner(), address, bytes }))
    }

    fn open(&self, region: &dyn PeerRegion) -> Result<Box<dyn Opened>, Error> {
        let known: &dyn Any = region;
        let context = &self.memory.context;
        let same = |memory: &Memory| context.api.is(&memory.context.api);
        if let Some(own) = known.downcast_ref::<Region>().filter(|own| same(&own.memory)) {
            enable(context, &own.memory.context)?;
        } else {
            let imported = known.downcast_ref::<Imported>().filter(|imported| same(&imported.memory));
            let imported = imported.ok_or_else(|| another_driver(self.name(), region))?;
            if !context.is(&imported.memory.context) {
                let reason = format!("it was imported by {}: import it here as well", imported.memory.context.name);
                return Err(Error::NoPeer { device: self.name(), owner: region.owner(), reason });
            }
        }
        Ok(Box::new(Reached::new(&self.memory, region.address(), region.bytes())))
    }
}

/// An error unless what was opened at `address` is the region that the handle tells of: the runtime's part of the handle can be
/// another's than the rest.
fn whole(context: &Context, handle: &PeerHandle, address: u64) -> Result<(), Error> {
    let functions = context.enter()?;
    let (mut base, mut size) = (std::ptr::null_mut(), 0);
    // SAFETY: writes an address and a size through valid pointers.
    unsafe { (functions.hipMemGetAddressRange)(&raw mut base, &raw mut size, pointer(address)) }
        .result()
        .map_err(context.failed("hipMemGetAddressRange"))?;
    handle
        .misfit(address, base.addr() as u64, size as u64)
        .map_or(Ok(()), |reason| Err(Error::NoPeer { device: context.name.clone(), owner: handle.owner(), reason }))
}

/// Lets kernels of `context` reach the memory of `owner`. It stays so: others of the process may rely on it, too.
fn enable(context: &Context, owner: &Context) -> Result<(), Error> {
    if context.is(owner) {
        return Ok(());
    }
    let functions = context.enter()?;
    let mut can = 0;
    // SAFETY: writes one int through a valid pointer; both devices are ones that the runtime counted.
    unsafe { (functions.hipDeviceCanAccessPeer)(&raw mut can, context.device, owner.device) }
        .result()
        .map_err(context.failed("hipDeviceCanAccessPeer"))?;
    let refused = |reason| Error::NoPeer { device: context.name.clone(), owner: owner.name.clone(), reason };
    if can == 0 {
        return Err(refused("there is no way between the two GPUs, says hipDeviceCanAccessPeer".to_owned()));
    }
    // SAFETY: the device is one that the runtime counted; the flags must be 0, and are.
    let enabled = unsafe { (functions.hipDeviceEnablePeerAccess)(owner.device, 0) }.result();
    match enabled {
        Ok(()) => Ok(()),
        Err(status) if status.is(hipError_t::hipErrorPeerAccessAlreadyEnabled) => Ok(()),
        Err(status) if status.is(hipError_t::hipErrorPeerAccessUnsupported) => {
            Err(refused(context.api.failure(status)))
        }
        Err(status) => Err(context.failed("hipDeviceEnablePeerAccess")(status)),
    }
}
