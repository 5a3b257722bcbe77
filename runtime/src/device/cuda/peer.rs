//! Memory of a GPU that other GPUs and other processes reach.

#![allow(unsafe_code)] // Calls of the driver.

use std::any::Any;
use std::ffi::c_char;
use std::sync::Arc;

use cudarc::driver::{result, sys};

use super::Cuda;
use super::context::{Context, failure};
use super::memory::Memory;
use crate::device::driver::{Opened, Sharing};
use crate::device::peer::{DRIVER_BYTES, Maker, PeerHandle, PeerRegion, another_driver};
use crate::device::{Device, DeviceId};
use crate::error::Error;

/// The driver gives other processes the whole block that an allocation lies in; one of a multiple of this has a block of its own.
const BLOCK: u64 = 2 << 20;

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
        context.enter()?;
        let mut handle = sys::CUipcMemHandle { reserved: [0; DRIVER_BYTES] };
        // SAFETY: writes one handle through a valid pointer; the address is an allocation's.
        unsafe { sys::cuIpcGetMemHandle(&raw mut handle, self.address) }
            .result()
            .map_err(context.failed("cuIpcGetMemHandle"))?;
        Ok(PeerHandle::new(Maker::Cuda, handle.reserved.map(c_char::cast_unsigned), self.bytes, &context.name))
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
        if context.enter().is_ok() {
            // SAFETY: it was opened in this context, and once for this; nothing runs that could reach it.
            let _ = unsafe { sys::cuIpcCloseMemHandle(self.address) }.result();
        }
    }
}

impl Sharing for Cuda {
    fn region(&self, bytes: u64) -> Result<Arc<dyn PeerRegion>, Error> {
        let address = self.memory.alloc_region(bytes, BLOCK)?;
        let region = Region { device: self.id(), memory: self.memory.clone(), address, bytes };
        let context = self.context();
        // SAFETY: the range was just allocated.
        unsafe { result::memset_d8_sync(address, 0, bytes as usize) }.map_err(context.failed("cuMemsetD8"))?;
        // Others may store to it as soon as they have it.
        self.default.synchronize()?;
        Ok(Arc::new(region))
    }

    fn import(&self, handle: &PeerHandle) -> Result<Arc<dyn PeerRegion>, Error> {
        let context = self.context();
        let refused = |reason| Error::NoPeer { device: context.name.clone(), owner: handle.owner(), reason };
        if handle.maker != Maker::Cuda {
            return Err(refused("they have different drivers".to_owned()));
        }
        context.enter()?;
        let driver = sys::CUipcMemHandle { reserved: handle.driver.map(u8::cast_signed) };
        let flags = sys::CUipcMem_flags::CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS as u32;
        let mut address = 0;
        // SAFETY: writes one address through a valid pointer; the driver looks the handle up.
        let opened = unsafe { sys::cuIpcOpenMemHandle_v2(&raw mut address, driver, flags) }.result();
        opened.map_err(|e| match e.0 {
            sys::CUresult::CUDA_ERROR_PEER_ACCESS_UNSUPPORTED => refused(failure(e)),
            _ => context.error("cuIpcOpenMemHandle", Some(&format_args!("memory of {}", handle.owner())), e),
        })?;
        if let Err(error) = whole(context, handle, address) {
            // SAFETY: it was opened just now, and nobody else knows of it.
            let _ = unsafe { sys::cuIpcCloseMemHandle(address) }.result();
            return Err(error);
        }
        let bytes = handle.region_bytes();
        self.memory.regions().open(address, bytes);
        let memory = self.memory.clone();
        Ok(Arc::new(Imported { device: self.id(), memory, owner: handle.owner(), address, bytes }))
    }

    fn open(&self, region: &dyn PeerRegion) -> Result<Box<dyn Opened>, Error> {
        let known: &dyn Any = region;
        if let Some(own) = known.downcast_ref::<Region>() {
            enable(self.context(), &own.memory.context)?;
        } else {
            let imported = known.downcast_ref::<Imported>();
            let imported = imported.ok_or_else(|| another_driver(self.name(), region))?;
            if !self.context().is(&imported.memory.context) {
                let reason = format!("it was imported by {}: import it here as well", imported.memory.context.name);
                return Err(Error::NoPeer { device: self.name(), owner: region.owner(), reason });
            }
        }
        Ok(Box::new(Reached::new(&self.memory, region.address(), region.bytes())))
    }
}

/// An error unless what was opened at `address` is the region that the handle tells of: the driver's part of the handle can be
/// another's than the rest.
fn whole(context: &Context, handle: &PeerHandle, address: u64) -> Result<(), Error> {
    let (mut base, mut size) = (0, 0);
    // SAFETY: writes an address and a size through valid pointers.
    unsafe { sys::cuMemGetAddressRange_v2(&raw mut base, &raw mut size, address) }
        .result()
        .map_err(context.failed("cuMemGetAddressRange"))?;
    handle
        .misfit(address, base, size as u64)
        .map_or(Ok(()), |reason| Err(Error::NoPeer { device: context.name.clone(), owner: handle.owner(), reason }))
}

/// Lets kernels of `context` reach the memory of `owner`. It stays so: others of the process may rely on it, too.
fn enable(context: &Context, owner: &Context) -> Result<(), Error> {
    if context.is(owner) {
        return Ok(());
    }
    let mut can = 0;
    // SAFETY: writes one int through a valid pointer; both devices are ones that the driver gave.
    unsafe { sys::cuDeviceCanAccessPeer(&raw mut can, context.device, owner.device) }
        .result()
        .map_err(context.failed("cuDeviceCanAccessPeer"))?;
    let refused = |reason| Error::NoPeer { device: context.name.clone(), owner: owner.name.clone(), reason };
    if can == 0 {
        return Err(refused("there is no way between the two GPUs, says cuDeviceCanAccessPeer".to_owned()));
    }
    context.enter()?;
    // SAFETY: the other context is retained as long as its memory; the flags must be 0, and are.
    let enabled = unsafe { sys::cuCtxEnablePeerAccess(owner.handle(), 0) }.result();
    match enabled {
        Ok(()) => Ok(()),
        Err(e) => match e.0 {
            sys::CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED => Ok(()),
            sys::CUresult::CUDA_ERROR_PEER_ACCESS_UNSUPPORTED | sys::CUresult::CUDA_ERROR_TOO_MANY_PEERS => {
                Err(refused(failure(e)))
            }
            _ => Err(context.failed("cuCtxEnablePeerAccess")(e)),
        },
    }
}
