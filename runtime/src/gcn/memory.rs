//! Device memory: a set of allocations, some of which several devices share. Any other address is an error.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::gcn::apart::Log;
use crate::gcn::coherence::Coherence;
use crate::gcn::error::{ErrorKind, GcnError};
use crate::visibility::{Behind, Late, Reach};

/// Addresses start here: beyond 32 bits and away from everything that a small integer could name.
pub(crate) const FIRST_ADDRESS: u64 = 0x0000_5A00_0000_0000;
/// Unmapped bytes behind each allocation.
const GUARD: u64 = 1 << 20;
/// Start of every allocation is a multiple of this, as HIP promises.
const ALIGNMENT: u64 = 256;
/// Where the kernel arguments of a launch are mapped.
pub(crate) const KERNARG_ADDRESS: u64 = 0x0000_1A00_0000_0000;
/// Where the code object is mapped.
const CODE_ADDRESS: u64 = 0x0000_2B00_0000_0000;

/// Addresses of what devices share: one process has each of them once.
pub(crate) const FIRST_SHARED_ADDRESS: u64 = 0x0000_3C00_0000_0000;

struct Contents {
    data: Vec<u8>,
    /// Undefined bits of each byte.
    undefined: Vec<u8>,
}

impl Contents {
    fn new(bytes: usize, value: u8, undefined: u8) -> Result<Self, GcnError> {
        let filled = |value: u8| {
            let mut v = Vec::new();
            v.try_reserve_exact(bytes).map_err(|_| ErrorKind::OutOfMemory(bytes))?;
            v.resize(bytes, value);
            Ok::<_, ErrorKind>(v)
        };
        Ok(Self { data: filled(value)?, undefined: filled(undefined)? })
    }

    /// Content of what nobody has written to. Not zero: a kernel that relies on zeroed memory should not get it by luck.
    fn unwritten(bytes: usize) -> Result<Self, GcnError> {
        Self::new(bytes, 0xA5, 0xFF)
    }
}

/// An allocation that several [`Memory`]s can have, at an address that nothing else in the process has. Each access of an
/// instruction to it, atomic or not, happens at once for all of them.
pub struct Shared {
    address: u64,
    bytes: usize,
    contents: Mutex<Contents>,
}

impl Shared {
    /// `bytes` zeros.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`] if the host has not so much memory.
    pub fn zeroed(bytes: usize) -> Result<Arc<Self>, GcnError> {
        Ok(Self::with(bytes, Contents::new(bytes, 0, 0)?))
    }

    /// `bytes` that are undefined until they are written.
    ///
    /// # Errors
    /// As [`Shared::zeroed`].
    pub fn undefined(bytes: usize) -> Result<Arc<Self>, GcnError> {
        Ok(Self::with(bytes, Contents::unwritten(bytes)?))
    }

    fn with(bytes: usize, contents: Contents) -> Arc<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(FIRST_SHARED_ADDRESS);
        let address = NEXT.fetch_add((bytes as u64 + GUARD).next_multiple_of(GUARD), Ordering::Relaxed);
        Arc::new(Self { address, bytes, contents: Mutex::new(contents) })
    }

    /// Device address, the same on every device; a multiple of 256.
    pub fn address(&self) -> u64 {
        self.address
    }

    fn contents(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum Allocation {
    Own(Contents),
    /// With the number of times that it was opened.
    Shared(Arc<Shared>, u32),
}

impl Allocation {
    fn bytes(&self) -> usize {
        match self {
            Self::Own(contents) => contents.data.len(),
            Self::Shared(shared, _) => shared.bytes,
        }
    }
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
        let allocation = Allocation::Own(Contents::unwritten(bytes)?);
        self.next = (address + bytes as u64 + GUARD).next_multiple_of(ALIGNMENT);
        self.allocations.insert(address, allocation);
        Ok(address)
    }

    /// Frees an allocation of [`Memory::alloc`].
    ///
    /// # Errors
    /// If `address` is not the start of one.
    pub fn free(&mut self, address: u64) -> Result<(), GcnError> {
        match self.allocations.get(&address) {
            Some(Allocation::Own(_)) => {
                self.allocations.remove(&address);
                Ok(())
            }
            _ => Err(self.outside("free", address, 0).into()),
        }
    }

    /// Makes a shared allocation part of this memory, until it is [closed](Memory::close) as often as it was opened.
    pub fn open(&mut self, shared: &Arc<Shared>) {
        let new = || Allocation::Shared(shared.clone(), 0);
        // No other allocation has its address.
        if let Allocation::Shared(_, opened) = self.allocations.entry(shared.address).or_insert_with(new) {
            *opened += 1;
        }
    }

    /// Undoes one [`Memory::open`].
    ///
    /// # Errors
    /// If no shared allocation that was opened here starts at `address`.
    pub fn close(&mut self, address: u64) -> Result<(), GcnError> {
        let Some(Allocation::Shared(_, opened)) = self.allocations.get_mut(&address) else {
            return Err(self.outside("close", address, 0).into());
        };
        *opened -= 1;
        if *opened == 0 {
            self.allocations.remove(&address);
        }
        Ok(())
    }

    /// Writes from the host; the bytes are defined afterwards.
    ///
    /// # Errors
    /// If the range is not within one allocation.
    pub fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), GcnError> {
        self.change("store", address, bytes.len(), |data, undefined| {
            data.copy_from_slice(bytes);
            undefined.fill(0);
        })?;
        Ok(())
    }

    /// Reads to the host, undefined bytes included (see [`Memory::undefined_bytes`]).
    ///
    /// # Errors
    /// If the range is not within one allocation.
    pub fn read(&self, address: u64, bytes: usize) -> Result<Vec<u8>, GcnError> {
        Ok(self.look("load", address, bytes, |data, _| data.to_vec())?)
    }

    /// As [`Memory::read`], into `bytes`.
    ///
    /// # Errors
    /// As [`Memory::read`].
    pub fn read_into(&self, address: u64, bytes: &mut [u8]) -> Result<(), GcnError> {
        Ok(self.look("load", address, bytes.len(), |data, _| bytes.copy_from_slice(data))?)
    }

    /// Number of bytes in a range of which at least one bit was never written.
    ///
    /// # Errors
    /// If the range is not within one allocation.
    pub fn undefined_bytes(&self, address: u64, bytes: usize) -> Result<usize, GcnError> {
        Ok(self.look("load", address, bytes, |_, undefined| undefined.iter().filter(|u| **u != 0).count())?)
    }

    /// Stores what a launch left, undefined bits and all. The range was checked when the kernel stored there.
    pub(super) fn put(&mut self, address: u64, bytes: &[u8], undefined: &[u8]) {
        let _ = self.change("store", address, bytes.len(), |to, bits| {
            to.copy_from_slice(bytes);
            bits.copy_from_slice(undefined);
        });
    }

    /// Start of the allocation that holds a range, and where the range begins in it.
    fn containing(&self, address: u64, bytes: usize) -> Option<(u64, usize)> {
        let (start, a) = self.allocations.range(..=address).next_back()?;
        let offset = usize::try_from(address - start).ok()?;
        (offset.checked_add(bytes)? <= a.bytes()).then_some((*start, offset))
    }

    fn outside(&self, what: &'static str, address: u64, bytes: usize) -> ErrorKind {
        let hint = match self.allocations.range(..=address).next_back() {
            Some((start, a)) => {
                let size = a.bytes() as u64;
                let past = i128::from(address) - i128::from(start + size);
                let place = if past >= 0 { format!("{past} bytes past") } else { format!("{} bytes before", -past) };
                format!(" ({place} the end of the {size} bytes at {start:#x})")
            }
            None => String::new(),
        };
        ErrorKind::OutsideAllocations { what, address, size: bytes as u32, hint }
    }

    /// What `f` makes of a range's bytes and their undefined bits.
    pub(super) fn look<T>(
        &self,
        what: &'static str,
        address: u64,
        bytes: usize,
        f: impl FnOnce(&[u8], &[u8]) -> T,
    ) -> Result<T, ErrorKind> {
        let Some((start, at)) = self.containing(address, bytes) else {
            return Err(self.outside(what, address, bytes));
        };
        let f = |c: &Contents| f(&c.data[at..at + bytes], &c.undefined[at..at + bytes]);
        Ok(match &self.allocations[&start] {
            Allocation::Own(contents) => f(contents),
            Allocation::Shared(shared, _) => f(&shared.contents()),
        })
    }

    /// As [`Memory::look`], with leave to change them.
    fn change<T>(
        &mut self,
        what: &'static str,
        address: u64,
        bytes: usize,
        f: impl FnOnce(&mut [u8], &mut [u8]) -> T,
    ) -> Result<T, ErrorKind> {
        let Some((start, at)) = self.containing(address, bytes) else {
            return Err(self.outside(what, address, bytes));
        };
        let f = |c: &mut Contents| f(&mut c.data[at..at + bytes], &mut c.undefined[at..at + bytes]);
        Ok(match self.allocations.get_mut(&start).expect("`containing` found it") {
            Allocation::Own(contents) => f(contents),
            Allocation::Shared(shared, _) => f(&mut shared.contents()),
        })
    }
}

/// How a wave sees global memory.
enum View<'m> {
    /// As it is.
    Whole(&'m mut Memory),
    /// As the launch found it, under what the wave's workgroup has stored.
    Apart(&'m Memory, &'m mut Log),
}

/// What a kernel can address: global memory, its arguments and its own code object. One wave's view.
pub(crate) struct Space<'m> {
    view: View<'m>,
    kernarg: &'m [u8],
    image: &'m [u8],
    /// The wave's number in its workgroup.
    wave: u32,
    /// Stores on their way, where they become visible late.
    late: Option<Late<'m>>,
    /// What workgroups told each other, where they can, and this workgroup's number there.
    pub(crate) coherence: Option<(&'m mut Coherence, u32)>,
    /// Grows with every change that somebody may see.
    version: u64,
    /// Instructions whose access of several words the end of a buffer cut.
    pub(crate) cut: BTreeSet<u64>,
}

impl<'m> Space<'m> {
    pub(crate) fn new(memory: &'m mut Memory, kernarg: &'m [u8], image: &'m [u8]) -> Self {
        Self::of(View::Whole(memory), kernarg, image)
    }

    /// For a workgroup whose stores others do not see.
    pub(crate) fn apart(memory: &'m Memory, log: &'m mut Log, kernarg: &'m [u8], image: &'m [u8]) -> Self {
        Self::of(View::Apart(memory, log), kernarg, image)
    }

    fn of(view: View<'m>, kernarg: &'m [u8], image: &'m [u8]) -> Self {
        Self { view, kernarg, image, wave: 0, late: None, coherence: None, version: 0, cut: BTreeSet::new() }
    }

    /// The same for wave number `wave`, whose workgroup's stores become visible late.
    pub(crate) fn with_late(self, wave: u32, late: Option<Late<'m>>) -> Self {
        Self { wave, late, ..self }
    }

    /// The same for workgroup number `block` of those that `coherence` knows.
    pub(crate) fn with_coherence(self, coherence: Option<&'m mut Coherence>, block: u32) -> Self {
        Self { coherence: coherence.map(|coherence| (coherence, block)), ..self }
    }

    /// Grows with every change that somebody may see.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn is_late(&self) -> bool {
        self.late.is_some()
    }

    /// Whether the last instruction did something of note.
    pub(crate) fn noted(&self) -> bool {
        !self.cut.is_empty() || matches!(&self.view, View::Apart(_, log) if log.hit())
    }

    /// Takes note that it was the instruction at `pc` of wave `wave`, if somebody asked.
    pub(crate) fn note(&mut self, wave: u32, pc: u64) {
        if let View::Apart(_, log) = &mut self.view {
            log.note(wave, pc);
        }
    }

    fn memory(&self) -> &Memory {
        match &self.view {
            View::Whole(memory) => memory,
            View::Apart(memory, _) => memory,
        }
    }

    /// Stores on their way, and the memory behind them.
    fn late(&mut self) -> Option<(&mut Late<'m>, Global<'_>)> {
        match (&mut self.view, &mut self.late) {
            (View::Whole(memory), Some(late)) => Some((late, Global { memory, version: &mut self.version })),
            _ => None,
        }
    }

    /// Lane `lane` stores, as its wave's store number `number`; how far the store goes by itself is `reach`.
    pub(crate) fn store_late(
        &mut self,
        lane: usize,
        address: u64,
        data: &[u8],
        number: u64,
        reach: Option<Reach>,
    ) -> Result<(), ErrorKind> {
        writable(address, data.len())?;
        if !data.is_empty() && self.memory().containing(address, data.len()).is_none() {
            return Err(self.memory().outside("store", address, data.len()));
        }
        if let Some(late) = &mut self.late {
            late.number(self.wave, number);
            late.store((self.wave, lane), address, data, reach);
            self.version += 1;
        }
        Ok(())
    }

    /// The wave's stores up to number `number` are complete.
    pub(crate) fn waited(&mut self, number: u64) {
        let wave = self.wave;
        if let Some((late, mut behind)) = self.late() {
            late.wait_up_to(&mut behind, wave, number);
        }
    }

    /// The wave writes earlier stores back as far as `reach`.
    pub(crate) fn write_back(&mut self, reach: Reach) {
        let wave = self.wave;
        if let Some((late, mut behind)) = self.late() {
            late.write_back(&mut behind, wave, reach);
        }
        if let Some((coherence, block)) = &mut self.coherence {
            coherence.write_back(*block, reach);
        }
    }

    /// The wave drops what caches hold of memory as far as `reach`.
    pub(crate) fn invalidate(&mut self, reach: Reach) {
        if let Some((coherence, block)) = &mut self.coherence {
            coherence.invalidate(*block, reach);
        }
    }

    /// The wave is through a time slice, or has let others run.
    pub(crate) fn chance(&mut self, yielded: bool) {
        let wave = self.wave;
        if let Some((late, mut behind)) = self.late() {
            late.chance(&mut behind, wave, yielded);
        }
    }

    /// Device address of a code object address.
    pub(crate) fn code_address(&self, pc: u64) -> u64 {
        code_address(pc)
    }

    /// Code object address of a device address.
    pub(crate) fn code_offset(&self, address: u64) -> u64 {
        address.wrapping_sub(CODE_ADDRESS)
    }

    /// What `f` makes of bytes and their undefined bits (none where the second slice is empty).
    pub(crate) fn load<T>(
        &mut self,
        address: u64,
        bytes: usize,
        f: impl FnOnce(&[u8], &[u8]) -> T,
    ) -> Result<T, ErrorKind> {
        if let Some(offset) = within(address, KERNARG_ADDRESS) {
            let size = self.kernarg.len() as u64;
            return match self.kernarg.get(offset as usize..).and_then(|k| k.get(..bytes)) {
                Some(k) => Ok(f(k, &[])),
                None => Err(ErrorKind::KernargOverRead { offset, bytes: bytes as u32, size }),
            };
        }
        if let Some(offset) = within(address, CODE_ADDRESS)
            && let Some(c) = self.image.get(offset as usize..).and_then(|c| c.get(..bytes))
        {
            return Ok(f(c, &[]));
        }
        match (&mut self.view, &self.late) {
            (View::Apart(memory, log), _) => log.load(memory, address, bytes, f),
            (View::Whole(memory), Some(late)) if late.covers(self.wave, address, bytes) => {
                let (mut data, mut undefined) = memory.look("load", address, bytes, |v, u| (v.to_vec(), u.to_vec()))?;
                late.overlay(self.wave, address, bytes, |i, byte| (data[i], undefined[i]) = (byte, 0));
                Ok(f(&data, &undefined))
            }
            (View::Whole(memory), _) => memory.look("load", address, bytes, f),
        }
    }

    /// As [`Space::load`], with leave to change both.
    pub(crate) fn store<T>(
        &mut self,
        what: &'static str,
        address: u64,
        bytes: usize,
        f: impl FnOnce(&mut [u8], &mut [u8]) -> T,
    ) -> Result<T, ErrorKind> {
        writable(address, bytes)?;
        let wave = self.wave;
        if let Some((late, mut behind)) = self.late() {
            late.settle(&mut behind, wave, address, bytes as u64);
        }
        let (result, changed) = match &mut self.view {
            View::Whole(memory) => {
                memory.change(what, address, bytes, |data, undefined| changes(data, |data| f(data, undefined)))?
            }
            View::Apart(memory, log) => log.store(memory, what, address, bytes, f)?,
        };
        self.version += u64::from(changed);
        Ok(result)
    }
}

/// What `f` gives, and whether it changes `data`.
pub(super) fn changes<T>(data: &mut [u8], f: impl FnOnce(&mut [u8]) -> T) -> (T, bool) {
    let (mut few, mut many) = ([0; 16], vec![]);
    let before: &[u8] = match few.get_mut(..data.len()) {
        Some(few) => {
            few.copy_from_slice(data);
            few
        }
        None => {
            many.extend_from_slice(data);
            &many
        }
    };
    let result = f(data);
    (result, data != before)
}

fn writable(address: u64, bytes: usize) -> Result<(), ErrorKind> {
    if within(address, KERNARG_ADDRESS).is_some() || within(address, CODE_ADDRESS).is_some() {
        return Err(ErrorKind::ReadOnly { address, size: bytes as u32 });
    }
    Ok(())
}

/// A device's memory behind the stores on their way to it.
pub(crate) struct Global<'g> {
    pub(crate) memory: &'g mut Memory,
    /// Counts changes.
    pub(crate) version: &'g mut u64,
}

impl Behind for Global<'_> {
    fn write(&mut self, address: u64, bytes: &[u8]) {
        // The range was checked when the store was executed.
        let _ = self.memory.write(address, bytes);
    }

    fn changed(&mut self) {
        *self.version += 1;
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
    fn what_is_shared_is_one_for_all_who_opened_it() {
        let (mut m, mut n) = (Memory::default(), Memory::default());
        let shared = Shared::zeroed(16).unwrap();
        let at = shared.address();
        assert!(m.read(at, 1).is_err(), "not opened");
        m.open(&shared);
        m.open(&shared);
        n.open(&shared);
        assert_eq!((m.read(at, 16).unwrap(), m.undefined_bytes(at, 16).unwrap()), (vec![0; 16], 0));
        m.write(at + 4, &[7; 2]).unwrap();
        assert_eq!(n.read(at + 3, 4).unwrap(), [0, 7, 7, 0]);
        assert!(n.free(at).is_err(), "it is not this memory's own");
        n.close(at).unwrap();
        assert!(n.read(at, 1).is_err() && n.close(at).is_err());
        m.close(at).unwrap();
        assert!(m.read(at, 1).is_ok(), "opened twice");
        m.close(at).unwrap();
        assert!(m.read(at, 1).is_err());
        assert_eq!(Arc::strong_count(&shared), 1);
        let other = Shared::undefined(3).unwrap();
        assert!(other.address() >= at + 16 + GUARD && other.address().is_multiple_of(ALIGNMENT));
        m.open(&other);
        assert_eq!(m.undefined_bytes(other.address(), 3).unwrap(), 3);
        assert!(m.read(other.address(), 4).is_err());
    }

    #[test]
    fn arguments_are_bounded_and_read_only() {
        let mut m = Memory::default();
        let args = [1u8; 28];
        let mut s = Space::new(&mut m, &args, &[]);
        assert!(s.load(KERNARG_ADDRESS + 24, 4, |_, _| ()).is_ok());
        let over = s.load(KERNARG_ADDRESS + 24, 8, |_, _| ()).unwrap_err();
        assert_eq!(over, ErrorKind::KernargOverRead { offset: 24, bytes: 8, size: 28 });
        assert!(matches!(s.store("store", KERNARG_ADDRESS, 4, |_, _| ()), Err(ErrorKind::ReadOnly { .. })));
    }
}
