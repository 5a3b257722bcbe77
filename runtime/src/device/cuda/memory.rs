//! Memory of a GPU, and host memory that it reaches.

#![allow(unsafe_code)] // Calls of the driver.

use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::driver::{result, sys};

use super::context::Context;
use crate::device::driver::HostMemory;
use crate::device::extents::Extents;
use crate::error::Error;

/// What a device has allocated.
pub(super) struct Memory {
    pub context: Arc<Context>,
    extents: Mutex<Extents>,
    /// What is shared with other devices: its own regions, and those that were opened.
    regions: Mutex<Extents>,
}

impl Memory {
    pub(super) fn new(context: &Arc<Context>) -> Arc<Self> {
        Arc::new(Self { context: context.clone(), extents: Mutex::default(), regions: Mutex::default() })
    }

    pub(super) fn extents(&self) -> MutexGuard<'_, Extents> {
        self.extents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn regions(&self) -> MutexGuard<'_, Extents> {
        self.regions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An error unless the range lies in one allocation or region.
    pub(super) fn check(&self, address: u64, bytes: u64) -> Result<(), Error> {
        let own = self.extents().covering(address, bytes);
        match own.or_else(|| self.regions().covering(address, bytes)) {
            Some(_) => Ok(()),
            None => Err(Error::BadAddress { device: self.context.name.clone(), address, bytes }),
        }
    }

    pub(super) fn alloc(&self, bytes: u64) -> Result<u64, Error> {
        let address = self.reserve(bytes, bytes)?;
        self.extents().insert(address, bytes);
        Ok(address)
    }

    /// Memory of `bytes` for others, in `blocks` of so many bytes that hold nothing else. [`Memory::free_region`] gives it back.
    pub(super) fn alloc_region(&self, bytes: u64, blocks: u64) -> Result<u64, Error> {
        let size = bytes.max(1).checked_next_multiple_of(blocks).unwrap_or(u64::MAX);
        let address = self.reserve(size, bytes)?;
        self.regions().open(address, bytes);
        Ok(address)
    }

    /// Nothing has it open any more.
    pub(super) fn free_region(&self, address: u64) {
        self.regions().release(address);
        self.give_back(std::iter::once(address));
    }

    /// `size` bytes, of which `bytes` were asked for.
    fn reserve(&self, size: u64, bytes: u64) -> Result<u64, Error> {
        let out_of_memory = || Error::OutOfMemory { device: self.context.name.clone(), bytes };
        self.context.enter()?;
        // No driver gives an empty one; an address is wanted all the same.
        let size = usize::try_from(size.max(1)).map_err(|_| out_of_memory())?;
        // SAFETY: the context is current.
        unsafe { result::malloc_sync(size) }.map_err(|e| match e.0 {
            sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => out_of_memory(),
            _ => self.context.failed("cuMemAlloc")(e),
        })
    }

    pub(super) fn free(&self, address: u64) {
        let last = self.extents().release(address);
        if last {
            self.give_back(std::iter::once(address));
        }
    }

    /// Frees memory that nobody owns any more, once nothing runs that could reach it.
    fn give_back(&self, addresses: impl Iterator<Item = u64>) {
        self.context.drain();
        if self.context.enter().is_ok() {
            for address in addresses {
                // SAFETY: it came from this context's `malloc_sync` and is freed once.
                let _ = unsafe { result::free_sync(address) };
            }
        }
    }

    pub(super) fn write(&self, address: u64, bytes: &[u8]) -> Result<(), Error> {
        self.check(address, bytes.len() as u64)?;
        if bytes.is_empty() {
            return Ok(());
        }
        self.context.enter()?;
        // SAFETY: the range lies in one allocation.
        unsafe { result::memcpy_htod_sync(address, bytes) }.map_err(self.context.failed("cuMemcpyHtoD"))?;
        self.context.settle_default()
    }

    pub(super) fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), Error> {
        self.check(address, bytes.len() as u64)?;
        if bytes.is_empty() {
            return Ok(());
        }
        self.context.enter()?;
        // SAFETY: the range lies in one allocation.
        unsafe { result::memcpy_dtoh_sync(bytes, address) }.map_err(self.context.failed("cuMemcpyDtoH"))
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let left: Vec<u64> = self.extents().take().collect();
        if !left.is_empty() {
            self.give_back(left.into_iter());
        }
    }
}

/// Page-locked host memory.
pub(super) struct HostPages {
    context: Arc<Context>,
    start: *mut c_void,
    bytes: usize,
}

// SAFETY: it is plain memory that one owner holds.
unsafe impl Send for HostPages {}
// SAFETY: as above; a shared one is only read.
unsafe impl Sync for HostPages {}

impl HostPages {
    /// `bytes` zeros.
    pub(super) fn new(context: &Arc<Context>, bytes: usize) -> Result<Self, Error> {
        context.enter()?;
        // Other devices' contexts may use it too.
        let flags = sys::CU_MEMHOSTALLOC_PORTABLE;
        // SAFETY: the context is current; at least one byte is asked for.
        let start = unsafe { result::malloc_host(bytes.max(1), flags) }.map_err(|e| match e.0 {
            sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => Error::HostMemory { bytes: bytes as u64 },
            _ => context.failed("cuMemHostAlloc")(e),
        })?;
        // SAFETY: that many bytes were just allocated.
        unsafe { start.cast::<u8>().write_bytes(0, bytes.max(1)) };
        Ok(Self { context: context.clone(), start, bytes })
    }
}

impl HostMemory for HostPages {
    fn bytes(&self) -> &[u8] {
        // SAFETY: so many bytes were allocated and zeroed, and no copy writes to them while they are borrowed.
        unsafe { std::slice::from_raw_parts(self.start.cast(), self.bytes) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above; this is the only borrow.
        unsafe { std::slice::from_raw_parts_mut(self.start.cast(), self.bytes) }
    }
}

impl Drop for HostPages {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            // SAFETY: it came from `malloc_host`; no copy uses it.
            let _ = unsafe { result::free_host(self.start) };
        }
    }
}
