//! Memory of a GPU that other GPUs and other processes reach.

#![allow(unsafe_code)] // Calls of the runtime.

use std::ffi::c_char;
use std::sync::{Arc, MutexGuard};

use hip_sys::hiprt::{hipError_t, hipIpcMemHandle_t};

use super::Hip;
use super::memory::{Memory, pointer};
use crate::device::Device;
use crate::device::driver::{Opened, Sharing};
use crate::device::extents::Extents;
use crate::device::peer::{DRIVER_BYTES, GpuMemory, Maker, PeerHandle, PeerRegion, gpu};
use crate::error::Error;

/// `hipIpcMemLazyEnablePeerAccess` of newer versions of HIP, and of older ones; each takes its own number only.
const LAZY_PEER_ACCESS: [u32; 2] = [1, 0];

impl GpuMemory for Memory {
    const MAKER: Maker = Maker::Hip;

    fn name(&self) -> &str {
        &self.context.name
    }

    fn regions(&self) -> MutexGuard<'_, Extents> {
        Self::regions(self)
    }

    fn drain(&self) {
        self.context.drain();
    }

    fn has_driver_of(&self, other: &Self) -> bool {
        self.context.api.is(&other.context.api)
    }

    fn is_device_of(&self, other: &Self) -> bool {
        self.context.is(&other.context)
    }

    fn free_region(&self, address: u64) {
        Self::free_region(self, address);
    }

    fn export(&self, address: u64) -> Result<[u8; DRIVER_BYTES], Error> {
        let functions = self.context.enter()?;
        let mut handle = hipIpcMemHandle_t { reserved: [0; DRIVER_BYTES] };
        // SAFETY: writes one handle through a valid pointer; the address is an allocation's.
        unsafe { (functions.hipIpcGetMemHandle)(&raw mut handle, pointer(address)) }
            .result()
            .map_err(self.context.failed("hipIpcGetMemHandle"))?;
        Ok(handle.reserved.map(c_char::cast_unsigned))
    }

    fn map(&self, handle: &PeerHandle) -> Result<u64, Error> {
        let functions = self.context.enter()?;
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
                self.context.error("hipIpcOpenMemHandle", Some(&of), status)
            })?;
        Ok(start.addr() as u64)
    }

    fn unmap(&self, address: u64) {
        if let Ok(functions) = self.context.enter() {
            // SAFETY: it was opened on this device, and once; nothing runs that could reach it.
            let _ = unsafe { (functions.hipIpcCloseMemHandle)(pointer(address)) };
        }
    }

    fn allocation(&self, address: u64) -> Result<(u64, u64), Error> {
        let functions = self.context.enter()?;
        let (mut base, mut size) = (std::ptr::null_mut(), 0);
        // SAFETY: writes an address and a size through valid pointers.
        unsafe { (functions.hipMemGetAddressRange)(&raw mut base, &raw mut size, pointer(address)) }
            .result()
            .map_err(self.context.failed("hipMemGetAddressRange"))?;
        Ok((base.addr() as u64, size as u64))
    }

    fn enable(&self, owner: &Self) -> Result<(), Error> {
        let (context, owner) = (&self.context, &owner.context);
        let functions = context.enter()?;
        let mut can = 0;
        // SAFETY: writes one int through a valid pointer; both devices are ones that the runtime counted.
        unsafe { (functions.hipDeviceCanAccessPeer)(&raw mut can, context.device, owner.device) }
            .result()
            .map_err(context.failed("hipDeviceCanAccessPeer"))?;
        let refused = |reason| self.no_peer(owner.name.clone(), reason);
        if can == 0 {
            return Err(refused("there is no way between the two GPUs, says hipDeviceCanAccessPeer".to_owned()));
        }
        // SAFETY: the device is one that the runtime counted; the flags must be 0, and are.
        let enabled = unsafe { (functions.hipDeviceEnablePeerAccess)(owner.device, 0) }.result();
        enabled.or_else(|status| {
            if status.is(hipError_t::hipErrorPeerAccessAlreadyEnabled) {
                Ok(())
            } else if status.is(hipError_t::hipErrorPeerAccessUnsupported) {
                Err(refused(context.api.failure(status)))
            } else {
                Err(context.failed("hipDeviceEnablePeerAccess")(status))
            }
        })
    }
}

impl Sharing for Hip {
    fn region(&self, bytes: u64) -> Result<Arc<dyn PeerRegion>, Error> {
        let address = self.memory.alloc_region(bytes)?;
        let region = gpu::region(self.id(), &self.memory, address, bytes);
        let functions = self.memory.context.enter()?;
        // SAFETY: the range was just allocated.
        unsafe { (functions.hipMemset)(pointer(address), 0, bytes as usize) }
            .result()
            .map_err(self.memory.context.failed("hipMemset"))?;
        // Others may store to it as soon as they have it.
        self.default.synchronize()?;
        Ok(region)
    }

    fn import(&self, handle: &PeerHandle) -> Result<Arc<dyn PeerRegion>, Error> {
        gpu::import(self.id(), &self.memory, handle)
    }

    fn open(&self, region: &dyn PeerRegion) -> Result<Box<dyn Opened>, Error> {
        gpu::open(&self.memory, region)
    }
}
