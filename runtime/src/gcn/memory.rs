//! Device memory: a set of allocations. Any other address is an error.

use std::collections::BTreeMap;

use crate::gcn::error::{ErrorKind, GcnError};

/// Addresses start here: beyond 32 bits and away from everything that a small integer could name.
const FIRST_ADDRESS: u64 = 0x0000_5A00_0000_0000;
/// Unmapped bytes behind each allocation.
const GUARD: u64 = 1 << 20;
/// Start of every allocation is a multiple of this, as HIP promises.
const ALIGNMENT: u64 = 256;
/// Where the kernel arguments of a launch are mapped.
pub(crate) const KERNARG_ADDRESS: u64 = 0x0000_1A00_0000_0000;
/// Where the code object is mapped.
const CODE_ADDRESS: u64 = 0x0000_2B00_0000_0000;

struct Allocation {
    data: Vec<u8>,
    /// Undefined bits of each byte.
    undefined: Vec<u8>,
}

/// Global memory of one `gcn` device.
///
/// ```
/// # use lathe_runtime::gcn::Memory;
/// let mut memory = Memory::default();
/// let a = memory.alloc(16);
/// memory.write(a + 4, &[1, 2])?;
/// assert_eq!(memory.read(a + 4, 2)?, [1, 2]);
/// assert_eq!(memory.undefined_bytes(a, 16)?, 14);
/// assert!(memory.write(a + 15, &[1, 2]).is_err());
/// # Ok::<(), lathe_runtime::gcn::GcnError>(())
/// ```
#[derive(Default)]
pub struct Memory {
    allocations: BTreeMap<u64, Allocation>,
    next: u64,
}

impl Memory {
    /// Allocates `bytes` (undefined until written) and returns their device address, a multiple of 256.
    ///
    /// # Panics
    /// If the host has not so much memory; [`Memory::try_alloc`] reports that.
    pub fn alloc(&mut self, bytes: usize) -> u64 {
        self.try_alloc(bytes).unwrap_or_else(|e| panic!("{e}"))
    }

    /// Like [`Memory::alloc`].
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`] if the host has not so much memory.
    pub fn try_alloc(&mut self, bytes: usize) -> Result<u64, GcnError> {
        let address = if self.next == 0 { FIRST_ADDRESS } else { self.next };
        let filled = |value: u8| {
            let mut v = Vec::new();
            v.try_reserve_exact(bytes).map_err(|_| ErrorKind::OutOfMemory(bytes))?;
            v.resize(bytes, value);
            Ok::<_, ErrorKind>(v)
        };
        // Not zero: a kernel that relies on zeroed memory should not get it by luck.
        let allocation = Allocation { data: filled(0xA5)?, undefined: filled(0xFF)? };
        self.next = (address + bytes as u64 + GUARD).next_multiple_of(ALIGNMENT);
        self.allocations.insert(address, allocation);
        Ok(address)
    }

    /// Frees an allocation.
    ///
    /// # Errors
    /// If `address` is not the start of one.
    pub fn free(&mut self, address: u64) -> Result<(), GcnError> {
        match self.allocations.remove(&address) {
            Some(_) => Ok(()),
            None => Err(self.outside("free", address, 0).into()),
        }
    }

    /// Writes from the host; the bytes are defined afterwards.
    ///
    /// # Errors
    /// If the range is not within one allocation.
    pub fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), GcnError> {
        let (data, undefined) = self.slices_mut("store", address, bytes.len())?;
        data.copy_from_slice(bytes);
        undefined.fill(0);
        Ok(())
    }

    /// Reads to the host, undefined bytes included (see [`Memory::undefined_bytes`]).
    ///
    /// # Errors
    /// If the range is not within one allocation.
    pub fn read(&self, address: u64, bytes: usize) -> Result<&[u8], GcnError> {
        Ok(self.slices("load", address, bytes)?.0)
    }

    /// Number of bytes in a range of which at least one bit was never written.
    ///
    /// # Errors
    /// If the range is not within one allocation.
    pub fn undefined_bytes(&self, address: u64, bytes: usize) -> Result<usize, GcnError> {
        Ok(self.slices("load", address, bytes)?.1.iter().filter(|u| **u != 0).count())
    }

    fn containing(&self, address: u64, bytes: usize) -> Option<(u64, usize)> {
        let (start, a) = self.allocations.range(..=address).next_back()?;
        let offset = usize::try_from(address - start).ok()?;
        (offset.checked_add(bytes)? <= a.data.len()).then_some((*start, offset))
    }

    fn outside(&self, what: &'static str, address: u64, bytes: usize) -> ErrorKind {
        let hint = match self.allocations.range(..=address).next_back() {
            Some((start, a)) => {
                let size = a.data.len() as u64;
                let past = i128::from(address) - i128::from(start + size);
                let place = if past >= 0 { format!("{past} bytes past") } else { format!("{} bytes before", -past) };
                format!(" ({place} the end of the {size} bytes at {start:#x})")
            }
            None => String::new(),
        };
        ErrorKind::OutsideAllocations { what, address, size: bytes as u32, hint }
    }

    pub(crate) fn slices(&self, what: &'static str, address: u64, bytes: usize) -> Result<(&[u8], &[u8]), ErrorKind> {
        let Some((start, offset)) = self.containing(address, bytes) else {
            return Err(self.outside(what, address, bytes));
        };
        let a = &self.allocations[&start];
        Ok((&a.data[offset..offset + bytes], &a.undefined[offset..offset + bytes]))
    }

    pub(crate) fn slices_mut(
        &mut self,
        what: &'static str,
        address: u64,
        bytes: usize,
    ) -> Result<(&mut [u8], &mut [u8]), ErrorKind> {
        let Some((start, offset)) = self.containing(address, bytes) else {
            return Err(self.outside(what, address, bytes));
        };
        let a = self.allocations.get_mut(&start).expect("`containing` found it");
        Ok((&mut a.data[offset..offset + bytes], &mut a.undefined[offset..offset + bytes]))
    }
}

/// What a kernel can address: global memory, its arguments and its own code object.
pub(crate) struct Space<'m> {
    memory: &'m mut Memory,
    kernarg: &'m [u8],
    image: &'m [u8],
}

impl<'m> Space<'m> {
    pub(crate) fn new(memory: &'m mut Memory, kernarg: &'m [u8], image: &'m [u8]) -> Self {
        Self { memory, kernarg, image }
    }

    /// Device address of a code object address.
    pub(crate) fn code_address(&self, pc: u64) -> u64 {
        code_address(pc)
    }

    /// Code object address of a device address.
    pub(crate) fn code_offset(&self, address: u64) -> u64 {
        address.wrapping_sub(CODE_ADDRESS)
    }

    /// Bytes and their undefined bits (none where the second slice is empty).
    pub(crate) fn load(&self, address: u64, bytes: usize) -> Result<(&[u8], &[u8]), ErrorKind> {
        if let Some(offset) = within(address, KERNARG_ADDRESS) {
            let size = self.kernarg.len() as u64;
            return match self.kernarg.get(offset as usize..).and_then(|k| k.get(..bytes)) {
                Some(k) => Ok((k, &[])),
                None => Err(ErrorKind::KernargOverRead { offset, bytes: bytes as u32, size }),
            };
        }
        if let Some(offset) = within(address, CODE_ADDRESS)
            && let Some(c) = self.image.get(offset as usize..).and_then(|c| c.get(..bytes))
        {
            return Ok((c, &[]));
        }
        self.memory.slices("load", address, bytes)
    }

    /// Bytes and undefined bits to write to.
    pub(crate) fn store(
        &mut self,
        what: &'static str,
        address: u64,
        bytes: usize,
    ) -> Result<(&mut [u8], &mut [u8]), ErrorKind> {
        if within(address, KERNARG_ADDRESS).is_some() || within(address, CODE_ADDRESS).is_some() {
            return Err(ErrorKind::ReadOnly { address, size: bytes as u32 });
        }
        self.memory.slices_mut(what, address, bytes)
    }
}

/// Device address of a code object address.
pub(crate) fn code_address(pc: u64) -> u64 {
    CODE_ADDRESS.wrapping_add(pc)
}

/// Offset in a window of 4 GiB at `base`.
fn within(address: u64, base: u64) -> Option<u64> {
    address.checked_sub(base).filter(|o| *o < 1 << 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_must_lie_in_one_allocation() {
        let mut m = Memory::default();
        let (a, b) = (m.alloc(64), m.alloc(64));
        assert!(b >= a + 64 + GUARD);
        m.write(a, &[7; 64]).unwrap();
        assert!(m.read(a + 60, 4).is_ok());
        let e = m.read(a + 62, 4).unwrap_err().to_string();
        assert!(e.contains("2 bytes before the end of the 64 bytes"), "{e}");
        assert!(m.read(a - 1, 1).is_err());
        assert!(m.read(u64::MAX, 1).is_err());
        m.free(a).unwrap();
        assert!(m.read(a, 1).is_err());
        assert!(m.free(a).is_err());
        assert!(matches!(m.try_alloc(1 << 62).unwrap_err().kind, ErrorKind::OutOfMemory(_)));
    }

    #[test]
    fn arguments_are_bounded_and_read_only() {
        let mut m = Memory::default();
        let args = [1u8; 28];
        let mut s = Space::new(&mut m, &args, &[]);
        assert!(s.load(KERNARG_ADDRESS + 24, 4).is_ok());
        let over = s.load(KERNARG_ADDRESS + 24, 8).unwrap_err();
        assert_eq!(over, ErrorKind::KernargOverRead { offset: 24, bytes: 8, size: 28 });
        assert!(matches!(s.store("store", KERNARG_ADDRESS, 4), Err(ErrorKind::ReadOnly { .. })));
    }
}
