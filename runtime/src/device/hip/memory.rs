//! Memory of a GPU, and host memory that it reaches.

#![allow(unsafe_code)] // Calls of the runtime.

use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hip_sys::hiprt::{hipDeviceMallocFinegrained, hipError_t, hipHostMallocPortable, hipMemcpyKind};

use super::api::{Functions, Status};
use super::context::Context;
use crate::device::driver::HostMemory;
use crate::device::extents::Extents;
use crate::error::Error;

/// An address of the device as the runtime takes it.
pub(super) fn pointer(address: u64) -> *mut c_void {
    std::ptr::without_provenance_mut(address as usize)
}

/// `hipDeviceMallocUncached`, which newer versions of HIP have.
const MALLOC_UNCACHED: u32 = 3;

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
        let address = self.reserve(bytes, "hipMalloc", |functions, start, size| {
            // SAFETY: writes one pointer through a valid one.
            unsafe { (functions.hipMalloc)(start, size) }
        })?;
        self.extents().insert(address, bytes);
        Ok(address)
    }

    /// Memory of `bytes` for others, which kernels see others' stores to while they run. [`Memory::free_region`] gives it back.
    pub(super) fn alloc_region(&self, bytes: u64) -> Result<u64, Error> {
        let address = self.reserve(bytes, "hipExtMallocWithFlags", |functions, start, size| {
            // SAFETY: writes one pointer through a valid one.
            let with = |flags| unsafe { (functions.hipExtMallocWithFlags)(start, size, flags) };
            let uncached = with(MALLOC_UNCACHED);
            // Versions that do not know it have fine-grained memory.
            if uncached.is(hipError_t::hipErrorInvalidValue) { with(hipDeviceMallocFinegrained) } else { uncached }
        })?;
        self.regions().open(address, bytes);
        Ok(address)
    }

    /// Nothing has it open any more.
    pub(super) fn free_region(&self, address: u64) {
        self.regions().release(address);
        self.give_back(std::iter::once(address));
    }

    fn reserve(
        &self,
        bytes: u64,
        call: &'static str,
        allocate: impl FnOnce(&Functions, *mut *mut c_void, usize) -> Status,
    ) -> Result<u64, Error> {
        let out_of_memory = || Error::OutOfMemory { device: self.context.name.clone(), bytes };
        // The runtime gives null for an empty one; an address is wanted all the same.
        let size = usize::try_from(bytes.max(1)).map_err(|_| out_of_memory())?;
        let functions = self.context.enter()?;
        let mut start = std::ptr::null_mut();
        allocate(functions, &raw mut start, size).result().map_err(|status| {
            if status.is(hipError_t::hipErrorOutOfMemory) { out_of_memory() } else { self.context.failed(call)(status) }
        })?;
        Ok(start.addr() as u64)
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
        if let Ok(functions) = self.context.enter() {
            for address in addresses {
                // SAFETY: it came from this device's `hipMalloc` and is freed once.
                let _ = unsafe { (functions.hipFree)(pointer(address)) };
            }
        }
    }

    pub(super) fn write(&self, address: u64, bytes: &[u8]) -> Result<(), Error> {
        self.check(address, bytes.len() as u64)?;
        if bytes.is_empty() {
            return Ok(());
        }
        let (functions, kind) = (self.context.enter()?, hipMemcpyKind::hipMemcpyHostToDevice as u32);
        // SAFETY: the device's range lies in one allocation; the host's is a slice.
        unsafe { (functions.hipMemcpy)(pointer(address), bytes.as_ptr().cast(), bytes.len(), kind) }
            .result()
            .map_err(self.context.failed("hipMemcpy"))
    }

    pub(super) fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), Error> {
        self.check(address, bytes.len() as u64)?;
        if bytes.is_empty() {
            return Ok(());
        }
        let (functions, kind) = (self.context.enter()?, hipMemcpyKind::hipMemcpyDeviceToHost as u32);
        // SAFETY: as for a write.
        unsafe { (functions.hipMemcpy)(bytes.as_mut_ptr().cast(), pointer(address), bytes.len(), kind) }
            .result()
            .map_err(self.context.failed("hipMemcpy"))
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
        let functions = context.enter()?;
        let (mut start, size) = (std::ptr::null_mut(), bytes.max(1));
        // SAFETY: writes one pointer through a valid one. Other devices may use the memory too.
        unsafe { (functions.hipHostMalloc)(&raw mut start, size, hipHostMallocPortable) }.result().map_err(
            |status| {
                if status.is(hipError_t::hipErrorOutOfMemory) {
                    Error::HostMemory { bytes: bytes as u64 }
                } else {
                    context.failed("hipHostMalloc")(status)
                }
            },
        )?;
        // SAFETY: that many bytes were just allocated.
        unsafe { start.cast::<u8>().write_bytes(0, size) };
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
        if let Ok(functions) = self.context.enter() {
            // SAFETY: it came from `hipHostMalloc`; no copy uses it.
            let _ = unsafe { (functions.hipHostFree)(self.start) };
        }
    }
}
