//! A workgroup's LDS with a shadow of what was written.
//!
//! A pointer is the number of its array (bits 63:48) and a byte offset from the array's start (bits 47:0, saturating),
//! so every access is held against the array that its pointer was made from, whatever way the pointer took.

use lathe_dsl::ir::LdsArray;

use super::error::{AccessKind, FaultKind};
use super::program::Program;

/// LDS arrays that a pointer can tell apart.
pub(super) const MAX_ARRAYS: usize = 1 << 16;

const WRITTEN: u8 = 1;
const OFFSET_BITS: u32 = 48;
const OFFSET_MASK: u64 = (1 << OFFSET_BITS) - 1;
/// Offsets stop here; adding any 35-bit distance then stays in the field.
const OFFSET_CAP: u64 = 1 << (OFFSET_BITS - 1);

/// Pointer to the start of array number `array`.
pub(super) fn base(array: u32) -> u64 {
    u64::from(array) << OFFSET_BITS
}

/// `pointer` moved on by `count` elements of `bytes` bytes.
#[inline(always)]
pub(super) fn advance(pointer: u64, count: u32, bytes: u32) -> u64 {
    let offset = (pointer & OFFSET_MASK) + u64::from(count) * u64::from(bytes);
    (pointer & !OFFSET_MASK) | offset.min(OFFSET_CAP)
}

struct Span {
    start: u32,
    bytes: u32,
}

pub(super) struct Lds {
    arrays: Vec<LdsArray>,
    spans: Vec<Span>,
    bytes: Vec<u8>,
    /// Per byte: [`WRITTEN`] once this workgroup stored to it.
    written: Vec<u8>,
}

impl Lds {
    pub(super) fn new(program: &Program) -> Self {
        let (offsets, size) = &program.lds_layout;
        let spans = program
            .lds
            .iter()
            .zip(offsets)
            .map(|(a, start)| Span { start: *start, bytes: a.len * a.elem.bytes() })
            .collect();
        let size = *size as usize;
        Self { arrays: program.lds.clone(), spans, bytes: vec![0; size], written: vec![0; size] }
    }

    /// Forgets everything written, for the next workgroup.
    pub(super) fn reset(&mut self) {
        self.written.fill(0);
    }

    /// Address of an access to `n` elements of `B` bytes, held against bounds and alignment.
    #[inline(always)]
    fn locate<const B: usize>(&self, pointer: u64, n: usize, access: AccessKind) -> Result<usize, Box<FaultKind>> {
        let array = (pointer >> OFFSET_BITS) as usize;
        let span = &self.spans[array];
        let offset = pointer & OFFSET_MASK;
        if offset + (n * B) as u64 > u64::from(span.bytes) {
            return Err(self.out_of_range(array, offset, n as u32, access));
        }
        let at = span.start as usize + offset as usize;
        if !at.is_multiple_of(B) {
            return Err(self.misaligned(array, at, B as u32, access));
        }
        Ok(at)
    }

    #[cold]
    fn out_of_range(&self, array: usize, offset: u64, count: u32, access: AccessKind) -> Box<FaultKind> {
        let a = &self.arrays[array];
        let element = offset / u64::from(a.elem.bytes());
        Box::new(FaultKind::LdsOutOfRange { access, array: a.name, element, count, len: a.len })
    }

    #[cold]
    fn misaligned(&self, array: usize, at: usize, bytes: u32, access: AccessKind) -> Box<FaultKind> {
        Box::new(FaultKind::LdsMisaligned { access, array: self.arrays[array].name, address: at as u32, bytes })
    }

    #[cold]
    fn uninitialised(&self, pointer: u64, at: usize, len: usize) -> Box<FaultKind> {
        let a = &self.arrays[(pointer >> OFFSET_BITS) as usize];
        let first = self.written[at..at + len].iter().position(|w| *w == 0).unwrap_or(0);
        let byte = (pointer & OFFSET_MASK) + first as u64;
        Box::new(FaultKind::LdsUninitialised { array: a.name, element: byte / u64::from(a.elem.bytes()) })
    }

    /// The bytes of `n` elements of `B` bytes (2, 4 or 8), to load.
    #[inline(always)]
    pub(super) fn load<const B: usize>(&self, pointer: u64, n: usize) -> Result<&[u8], Box<FaultKind>> {
        let at = self.locate::<B>(pointer, n, AccessKind::Read)?;
        let mut all = true;
        for flags in self.written[at..at + n * B].chunks_exact(B) {
            all &= *flags == [WRITTEN; B];
        }
        if !all {
            return Err(self.uninitialised(pointer, at, n * B));
        }
        Ok(&self.bytes[at..at + n * B])
    }

    /// The bytes of `n` elements of `B` bytes (2, 4 or 8), to store to; they count as written.
    #[inline(always)]
    pub(super) fn store<const B: usize>(&mut self, pointer: u64, n: usize) -> Result<&mut [u8], Box<FaultKind>> {
        let at = self.locate::<B>(pointer, n, AccessKind::Write)?;
        for flags in self.written[at..at + n * B].chunks_exact_mut(B) {
            flags.copy_from_slice(&[WRITTEN; B]);
        }
        Ok(&mut self.bytes[at..at + n * B])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_keeps_its_array_and_saturates() {
        let mut p = base(3);
        for _ in 0..100_000 {
            p = advance(p, u32::MAX, 8);
        }
        assert_eq!(p, base(3) | OFFSET_CAP);
        assert_eq!(advance(base(1), 5, 2), base(1) | 10);
        assert_eq!(advance(base(65535), 0, 4), 0xFFFF << 48);
    }
}
