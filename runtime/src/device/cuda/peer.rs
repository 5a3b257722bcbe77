//! Memory of a GPU that other GPUs and other processes reach.

#![allow(unsafe_code)] // Calls of the driver.

use std::ffi::c_char;
use std::sync::{Arc, MutexGuard};

use cudarc::driver::{result, sys};

use super::Cuda;
use super::context::failure;
use super::memory::Memory;
use crate::device::Device;
use crate::device::driver::{Opened, Sharing};
use crate::device::extents::Extents;
use crate::device::peer::{DRIVER_BYTES, GpuMemory, Maker, PeerHandle, PeerRegion, gpu};
use crate::error::Error;

/// The driver gives other processes the whole block that an allocation lies in; one of a multiple of this has a block of its own.
const BLOCK: u64 = 2 << 20;

impl GpuMemory for Memory {
    const MAKER: Maker = Maker::Cuda;

    fn name(&self) -> &str {
        &self.context.name
    }

    fn regions(&self) -> MutexGuard<'_, Extents> {
        Self::regions(self)
    }

    fn drain(&self) {
        self.context.drain();
    }

    fn has_driver_of(&self, _: &Self) -> bool {
        // A process has one.
        true
    }

    fn is_device_of(&self, other: &Self) -> bool {
        self.context.is(&other.context)
    }

    fn free_region(&self, address: u64) {
        Self::free_region(self, address);
    }

    fn export(&self, address: u64) -> Result<[u8; DRIVER_BYTES], Error> {
        self.context.enter()?;
        let mut handle = sys::CUipcMemHandle { reserved: [0; DRIVER_BYTES] };
        // SAFETY: writes one handle through a valid pointer; the address is an allocation's.
        unsafe { sys::cuIpcGetMemHandle(&raw mut handle, address) }
            .result()
            .map_err(self.context.failed("cuIpcGetMemHandle"))?;
        Ok(handle.reserved.map(c_char::cast_unsigned))
    }

    fn map(&self, handle: &PeerHandle) -> Result<u64, Error> {
        self.context.enter()?;
        let driver = sys::CUipcMemHandle { reserved: handle.driver.map(u8::cast_signed) };
        let flags = sys::CUipcMem_flags::CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS as u32;
        let mut address = 0;
        // SAFETY: writes one address through a valid pointer; the driver looks the handle up.
        let opened = unsafe { sys::cuIpcOpenMemHandle_v2(&raw mut address, driver, flags) }.result();
        opened.map(|()| address).map_err(|e| match e.0 {
            sys::CUresult::CUDA_ERROR_PEER_ACCESS_UNSUPPORTED => self.no_peer(handle.owner(), failure(e)),
            _ => self.context.error("cuIpcOpenMemHandle", Some(&format_args!("memory of {}", handle.owner())), e),
        })
    }

    fn unmap(&self, address: u64) {
        if self.context.enter().is_ok() {
            // SAFETY: it was opened in this context, and once; nothing runs that could reach it.
            let _ = unsafe { sys::cuIpcCloseMemHandle(address) };
        }
    }

    fn allocation(&self, address: u64) -> Result<(u64, u64), Error> {
        self.context.enter()?;
        let (mut base, mut size) = (0, 0);
        // SAFETY: writes an address and a size through valid pointers.
        unsafe { sys::cuMemGetAddressRange_v2(&raw mut base, &raw mut size, address) }
            .result()
            .map_err(self.context.failed("cuMemGetAddressRange"))?;
        Ok((base, size as u64))
    }

    fn enable(&self, owner: &Self) -> Result<(), Error> {
        let (context, owner) = (&self.context, &owner.context);
        let mut can = 0;
        // SAFETY: writes one int through a valid pointer; both devices are ones that the driver gave.
        unsafe { sys::cuDeviceCanAccessPeer(&raw mut can, context.device, owner.device) }
            .result()
            .map_err(context.failed("cuDeviceCanAccessPeer"))?;
        let refused = |reason| self.no_peer(owner.name.clone(), reason);
        if can == 0 {
            return Err(refused("there is no way between the two GPUs, says cuDeviceCanAccessPeer".to_owned()));
        }
        context.enter()?;
        // SAFETY: the other context is retained as long as its memory; the flags must be 0, and are.
        unsafe { sys::cuCtxEnablePeerAccess(owner.handle(), 0) }.result().or_else(|e| match e.0 {
            sys::CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED => Ok(()),
            sys::CUresult::CUDA_ERROR_PEER_ACCESS_UNSUPPORTED | sys::CUresult::CUDA_ERROR_TOO_MANY_PEERS => {
                Err(refused(failure(e)))
            }
            _ => Err(context.failed("cuCtxEnablePeerAccess")(e)),
        })
    }
}

impl Sharing for Cuda {
    fn region(&self, bytes: u64) -> Result<Arc<dyn PeerRegion>, Error> {
        let address = self.memory.alloc_region(bytes, BLOCK)?;
        let region = gpu::region(self.id(), &self.memory, address, bytes);
        let context = self.context();
        // SAFETY: the range was just allocated.
        unsafe { result::memset_d8_sync(address, 0, bytes as usize) }.map_err(context.failed("cuMemsetD8"))?;
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
