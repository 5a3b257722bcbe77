//! A workgroup's LDS with a shadow of what was written.
//!
//! A pointer is the number of its array (bits 63:48) and a signed byte offset from the array's start (bits 47:0), so every
//! access is held against the array that its pointer was made from, whatever way the pointer took. An offset that grows
//! past what any array can hold stays there.

use lathe_dsl::ir::{LdsArray, Location};

use super::error::{AccessKind, FaultKind};
use super::program::Program;

/// LDS arrays that a pointer can tell apart.
pub(super) const MAX_ARRAYS: usize = 1 << 16;

const WRITTEN: u8 = 1;
/// A copy into it may not have landed yet.
const PENDING: u8 = 2;
const OFFSET_BITS: u32 = 48;
const OFFSET_MASK: u64 = (1 << OFFSET_BITS) - 1;
/// Offsets stop here.
const OFFSET_CAP: i64 = 1 << (OFFSET_BITS - 2);

/// Pointer to the start of array number `array`.
pub(super) fn base(array: u32) -> u64 {
    u64::from(array) << OFFSET_BITS
}

/// Byte offset of a pointer from the start of its array.
#[inline(always)]
fn offset(pointer: u64) -> i64 {
    (pointer << (64 - OFFSET_BITS)) as i64 >> (64 - OFFSET_BITS)
}

/// `pointer` moved by `bytes`.
#[inline(always)]
pub(super) fn advance(pointer: u64, bytes: i64) -> u64 {
    let from = offset(pointer);
    let to = if from.abs() == OFFSET_CAP { from } else { from.saturating_add(bytes).clamp(-OFFSET_CAP, OFFSET_CAP) };
    (pointer & !OFFSET_MASK) | (to as u64 & OFFSET_MASK)
}

struct Span {
    start: u32,
    bytes: u32,
}

/// Bytes that a wave's copy was told to write, until the wave drains.
struct Pending {
    start: usize,
    bytes: usize,
    wave: u32,
    copy: Location,
}

pub(super) struct Lds {
    arrays: Vec<LdsArray>,
    spans: Vec<Span>,
    bytes: Vec<u8>,
    /// Per byte: [`WRITTEN`] once this workgroup stored to it, [`PENDING`] while a copy into it is not drained, else 0.
    state: Vec<u8>,
    pending: Vec<Pending>,
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
        Self { arrays: program.lds.clone(), spans, bytes: vec![0; size], state: vec![0; size], pending: vec![] }
    }

    /// Forgets everything written, for the next workgroup.
    pub(super) fn reset(&mut self) {
        self.state.fill(0);
        self.pending.clear();
    }

    /// Address of an access to `n` elements of `B` bytes, held against bounds and alignment.
    #[inline(always)]
    fn locate<const B: usize>(
        &self,
        pointer: u64,
        n: usize,
        align: u32,
        access: AccessKind,
    ) -> Result<usize, Box<FaultKind>> {
        let array = (pointer >> OFFSET_BITS) as usize;
        let span = &self.spans[array];
        // A negative offset is a huge one.
        let offset = offset(pointer) as u64;
        if offset > u64::from(span.bytes) || offset + (n * B) as u64 > u64::from(span.bytes) {
            return Err(self.out_of_range(pointer, n * B, access));
        }
        let at = span.start as usize + offset as usize;
        if at & (align as usize - 1) != 0 {
            return Err(self.misaligned(array, at, B as u32, align, access));
        }
        Ok(at)
    }

    /// Where an access of `bytes` bytes begins, if it lies within its array.
    pub(super) fn place(&self, pointer: u64, bytes: u32) -> Option<u64> {
        let span = &self.spans[(pointer >> OFFSET_BITS) as usize];
        let offset = offset(pointer) as u64;
        let end = offset.checked_add(bytes.into())?;
        (end <= u64::from(span.bytes)).then(|| u64::from(span.start) + offset)
    }

    /// The array, and the element in it, that byte `at` belongs to.
    pub(super) fn element_at(&self, at: usize) -> Option<(&'static str, u32)> {
        let inside = |span: &Span| (span.start as usize..span.start as usize + span.bytes as usize).contains(&at);
        let (array, span) = self.arrays.iter().zip(&self.spans).find(|(_, span)| inside(span))?;
        Some((array.name, (at as u32 - span.start) / array.elem.bytes()))
    }

    /// What `bytes` bytes (at most 8) hold, written or not.
    pub(super) fn peek(&self, at: usize, bytes: usize) -> u64 {
        self.bytes[at..at + bytes].iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte))
    }

    /// Number of the element of the array that a pointer, moved by `bytes`, points into.
    fn element(&self, pointer: u64, bytes: usize) -> i64 {
        let a = &self.arrays[(pointer >> OFFSET_BITS) as usize];
        (offset(pointer) + bytes as i64).div_euclid(i64::from(a.elem.bytes()))
    }

    #[cold]
    fn out_of_range(&self, pointer: u64, bytes: usize, access: AccessKind) -> Box<FaultKind> {
        let a = &self.arrays[(pointer >> OFFSET_BITS) as usize];
        let first = self.element(pointer, 0);
        let count = self.element(pointer, bytes.max(1) - 1) - first + 1;
        Box::new(FaultKind::LdsOutOfRange { access, array: a.name, element: first, count: count as u32, len: a.len })
    }

    #[cold]
    fn misaligned(&self, array: usize, at: usize, bytes: u32, align: u32, access: AccessKind) -> Box<FaultKind> {
        let (array, address) = (self.arrays[array].name, at as u32);
        Box::new(if align == bytes {
            FaultKind::LdsMisaligned { access, array, address, bytes }
        } else {
            FaultKind::BrokenAlignment { access, place: "LDS", address: address.into(), align }
        })
    }

    /// Why these bytes, one of which is not simply written, are not to be accessed.
    #[cold]
    fn unreadable(&self, pointer: u64, at: usize, len: usize, access: AccessKind) -> Box<FaultKind> {
        let array = self.arrays[(pointer >> OFFSET_BITS) as usize].name;
        let first = self.state[at..at + len].iter().position(|s| *s != WRITTEN).unwrap_or(0);
        let element = self.element(pointer, first);
        let byte = at + first;
        let copy = self.pending.iter().rev().find(|p| (p.start..p.start + p.bytes).contains(&byte));
        Box::new(match copy {
            Some(p) => FaultKind::LdsPending { access, array, element, copy: p.copy },
            None => FaultKind::LdsUninitialised { array, element },
        })
    }

    #[inline(always)]
    fn check_readable<const B: usize>(&self, pointer: u64, at: usize, n: usize) -> Result<(), Box<FaultKind>> {
        let mut all = true;
        for state in self.state[at..at + n * B].chunks_exact(B) {
            all &= *state == [WRITTEN; B];
        }
        if all { Ok(()) } else { Err(self.unreadable(pointer, at, n * B, AccessKind::Read)) }
    }

    /// The bytes of `n` elements of `B` bytes, to load; their address is a multiple of `align`.
    #[inline(always)]
    pub(super) fn load<const B: usize>(&self, pointer: u64, n: usize, align: u32) -> Result<&[u8], Box<FaultKind>> {
        let at = self.locate::<B>(pointer, n, align, AccessKind::Read)?;
        self.check_readable::<B>(pointer, at, n)?;
        Ok(&self.bytes[at..at + n * B])
    }

    /// The bytes of `n` elements of `B` bytes, to store to; they count as written.
    #[inline(always)]
    pub(super) fn store<const B: usize>(
        &mut self,
        pointer: u64,
        n: usize,
        align: u32,
    ) -> Result<&mut [u8], Box<FaultKind>> {
        let at = self.locate::<B>(pointer, n, align, AccessKind::Write)?;
        if !self.pending.is_empty() {
            self.check_landed(pointer, at, n * B, None)?;
        }
        for state in self.state[at..at + n * B].chunks_exact_mut(B) {
            state.copy_from_slice(&[WRITTEN; B]);
        }
        Ok(&mut self.bytes[at..at + n * B])
    }

    /// The bytes of one element of `B` bytes, to be replaced at once.
    pub(super) fn update<const B: usize>(&mut self, pointer: u64) -> Result<&mut [u8], Box<FaultKind>> {
        let at = self.locate::<B>(pointer, 1, B as u32, AccessKind::Atomic)?;
        self.check_readable::<B>(pointer, at, 1)?;
        Ok(&mut self.bytes[at..at + B])
    }

    /// Bytes into which a copy is under way must not be written: which of the two comes last is open. Copies of one wave,
    /// `but`, land in order.
    fn check_landed(&self, pointer: u64, at: usize, len: usize, but: Option<u32>) -> Result<(), Box<FaultKind>> {
        let hit = |p: &&Pending| at < p.start + p.bytes && p.start < at + len && Some(p.wave) != but;
        match self.pending.iter().find(hit) {
            None => Ok(()),
            Some(p) => Err(Box::new(FaultKind::LdsPending {
                access: AccessKind::Write,
                array: self.arrays[(pointer >> OFFSET_BITS) as usize].name,
                element: self.element(pointer, p.start.saturating_sub(at)),
                copy: p.copy,
            })),
        }
    }

    /// One lane's part of a copy that wave `wave` starts at `copy`.
    pub(super) fn copy(&mut self, pointer: u64, data: &[u8], wave: u32, copy: Location) -> Result<(), Box<FaultKind>> {
        let bytes = data.len();
        let at = self.locate::<1>(pointer, bytes, bytes as u32, AccessKind::Write)?;
        self.check_landed(pointer, at, bytes, Some(wave))?;
        self.bytes[at..at + bytes].copy_from_slice(data);
        self.state[at..at + bytes].fill(PENDING);
        match self.pending.last_mut() {
            // Lanes copy side by side.
            Some(p) if p.start + p.bytes == at && p.wave == wave && p.copy == copy => p.bytes += bytes,
            _ => self.pending.push(Pending { start: at, bytes, wave, copy }),
        }
        Ok(())
    }

    /// The copies of wave `wave` have landed.
    pub(super) fn drain(&mut self, wave: u32) {
        let state = &mut self.state;
        self.pending.retain(|p| {
            let landed = p.wave == wave;
            if landed {
                state[p.start..p.start + p.bytes].fill(WRITTEN);
            }
            !landed
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_keeps_its_array_and_saturates() {
        let mut p = base(3);
        for _ in 0..100_000 {
            p = advance(p, i64::from(u32::MAX) * 8);
        }
        assert_eq!(p, base(3) | OFFSET_CAP as u64);
        // It never comes back.
        assert_eq!(advance(p, -8), p);
        assert_eq!(advance(base(1), 10), base(1) | 10);
        assert_eq!(advance(base(65535), 0), 0xFFFF << 48);
        assert_eq!(offset(advance(base(2), -12)), -12);
        assert_eq!(advance(advance(base(2), -12), 12), base(2));
        assert_eq!(offset(advance(base(2), i64::MIN)), -OFFSET_CAP);
    }
}
