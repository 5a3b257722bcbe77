//! A workgroup's LDS with a shadow of what was written.
//!
//! A pointer is the number of its array (bits 63:48) and a signed byte offset from the array's start (bits 47:0), so every
//! access is held against the array that its pointer was made from, whatever way the pointer took. An offset that grows
//! past what any array can hold stays there. One that was made from an integer has the number of no array and an offset from
//! the start of LDS; each access finds the array that it lies in.

use lathe_dsl::ir::{LdsArray, Location};

use super::copies::{Copies, States};
use super::error::{AccessKind, FaultKind};
use super::program::Program;

/// Stands for the number of an array in a pointer that may point into any.
const ANY_ARRAY: u64 = (1 << 16) - 1;
/// LDS arrays that a pointer can tell apart.
pub(super) const MAX_ARRAYS: usize = ANY_ARRAY as usize;

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

/// Pointer to byte `address` of LDS, in whatever array it lies.
pub(super) fn at_address(address: u32) -> u64 {
    ANY_ARRAY << OFFSET_BITS | u64::from(address)
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

pub(super) struct Lds {
    arrays: Vec<LdsArray>,
    spans: Vec<Span>,
    bytes: Vec<u8>,
    /// Per byte: [`WRITTEN`] once this workgroup stored to it, [`PENDING`] while a copy into it has not landed, else 0.
    state: Vec<u8>,
    copies: Copies,
}

const STATES: States = States { landed: WRITTEN, pending: PENDING };

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
        let (bytes, state) = (vec![0; size], vec![0; size]);
        Self { arrays: program.lds.clone(), spans, bytes, state, copies: Copies::default() }
    }

    /// Forgets everything written, for the next workgroup.
    pub(super) fn reset(&mut self) {
        self.state.fill(0);
        self.copies.clear();
    }

    /// Byte of LDS that a pointer points to, modulo 2^32.
    pub(super) fn address(&self, pointer: u64) -> u32 {
        let start = self.spans.get((pointer >> OFFSET_BITS) as usize).map_or(0, |s| s.start);
        start.wrapping_add(offset(pointer) as u32)
    }

    /// The pointer of an access to `bytes` bytes, made from the array that they lie in.
    #[cold]
    fn in_some_array(&self, pointer: u64, bytes: usize, access: AccessKind) -> Result<u64, Box<FaultKind>> {
        let address = offset(pointer);
        let (begin, end) = (address, address.saturating_add(bytes as i64));
        let holds = |s: &&Span| i64::from(s.start) <= begin && end <= i64::from(s.start) + i64::from(s.bytes);
        match self.spans.iter().position(|s| holds(&s)) {
            Some(array) => Ok(base(array as u32) | (address - i64::from(self.spans[array].start)) as u64),
            None => Err(Box::new(FaultKind::LdsUnallocated { access, address, bytes: bytes as u32 })),
        }
    }

    /// Address of an access to `n` elements of `B` bytes, held against bounds and alignment; and its pointer, as one into an
    /// array.
    #[inline(always)]
    fn locate<const B: usize>(
        &self,
        mut pointer: u64,
        n: usize,
        align: u32,
        access: AccessKind,
    ) -> Result<(usize, u64), Box<FaultKind>> {
        if pointer >> OFFSET_BITS == ANY_ARRAY {
            pointer = self.in_some_array(pointer, n * B, access)?;
        }
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
        Ok((at, pointer))
    }

    /// Where an access of `bytes` bytes begins, if it lies within its array.
    pub(super) fn place(&self, pointer: u64, bytes: u32) -> Option<u64> {
        let pointer = match pointer >> OFFSET_BITS {
            ANY_ARRAY => self.in_some_array(pointer, bytes as usize, AccessKind::Read).ok()?,
            _ => pointer,
        };
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
        Box::new(match self.copies.meeting(at + first, 1, None) {
            Some((copy, _)) => FaultKind::LdsPending { access, array, element, copy },
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
        let (at, pointer) = self.locate::<B>(pointer, n, align, AccessKind::Read)?;
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
        let (at, pointer) = self.locate::<B>(pointer, n, align, AccessKind::Write)?;
        if !self.copies.is_empty() {
            self.check_landed(pointer, at, n * B, None)?;
        }
        for state in self.state[at..at + n * B].chunks_exact_mut(B) {
            state.copy_from_slice(&[WRITTEN; B]);
        }
        Ok(&mut self.bytes[at..at + n * B])
    }

    /// The bytes of one element of `B` bytes, to be replaced at once.
    pub(super) fn update<const B: usize>(&mut self, pointer: u64) -> Result<&mut [u8], Box<FaultKind>> {
        let (at, pointer) = self.locate::<B>(pointer, 1, B as u32, AccessKind::Atomic)?;
        self.check_readable::<B>(pointer, at, 1)?;
        Ok(&mut self.bytes[at..at + B])
    }

    /// Bytes into which a copy is under way must not be written: which of the two comes last is open. Copies of one wave,
    /// `but`, land in order.
    fn check_landed(&self, pointer: u64, at: usize, len: usize, but: Option<u32>) -> Result<(), Box<FaultKind>> {
        match self.copies.meeting(at, len, but) {
            None => Ok(()),
            Some((copy, byte)) => Err(Box::new(FaultKind::LdsPending {
                access: AccessKind::Write,
                array: self.arrays[(pointer >> OFFSET_BITS) as usize].name,
                element: self.element(pointer, byte - at),
                copy,
            })),
        }
    }

    /// One lane's part of a copy by wave `wave`, which [`Lds::start_copy`] then announces.
    pub(super) fn copy(&mut self, pointer: u64, data: &[u8], wave: u32) -> Result<(), Box<FaultKind>> {
        let bytes = data.len();
        let (at, pointer) = self.locate::<1>(pointer, bytes, bytes as u32, AccessKind::Write)?;
        self.check_landed(pointer, at, bytes, Some(wave))?;
        self.bytes[at..at + bytes].copy_from_slice(data);
        self.state[at..at + bytes].fill(PENDING);
        Ok(())
    }

    /// The lanes `lanes` of wave `wave` have started a copy of `bytes` bytes each, lane after lane from where `pointer` points.
    pub(super) fn start_copy(&mut self, pointer: u64, bytes: u32, (wave, lanes): (u32, u64), copy: Location) {
        let start = self.spans.get((pointer >> OFFSET_BITS) as usize).map_or(0, |s| s.start);
        self.copies.start(wave, i64::from(start) + offset(pointer), bytes, lanes, copy);
    }

    /// Wave `wave` has made an operation on vector memory.
    pub(super) fn issue(&mut self, wave: u32) {
        self.copies.issue(wave);
    }

    /// The lanes `lanes` of wave `wave` end a group of copies.
    pub(super) fn mark(&mut self, wave: u32, lanes: u64) {
        self.copies.mark(wave, lanes);
    }

    /// What they copied before their mark number `n`, counted back from the newest one, has landed.
    pub(super) fn wait_mark(&mut self, wave: u32, lanes: u64, n: u32) {
        self.copies.wait_mark(wave, lanes, n, &mut self.state, STATES);
    }

    /// What the lanes `lanes` of wave `wave` copied has landed.
    pub(super) fn drain(&mut self, wave: u32, lanes: u64) {
        self.copies.drain(wave, lanes, &mut self.state, STATES);
    }

    /// Wave `wave` has at most `n` operations on vector memory outstanding.
    pub(super) fn wait_count(&mut self, wave: u32, n: u32) {
        self.copies.wait_count(wave, n, &mut self.state, STATES);
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
