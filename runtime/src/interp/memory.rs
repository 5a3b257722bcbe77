//! Global memory of the CPU device.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::error::Error;

/// A buffer in the CPU device's global memory, little-endian, shared by all workgroups of a launch.
///
/// Its bytes are 32-bit words that are read and written atomically and without ordering, so racing kernels are
/// well-defined in Rust: an aligned element of at most 32 bits never tears, and neighbours in one word never disturb
/// each other. What is wider and must not tear takes a lock: atomic operations on 64 bits, and loads and stores that
/// others take part in.
///
/// Every buffer has an address of its own in this process, for as long as it lives and after.
#[derive(Debug)]
pub struct GlobalBuffer {
    address: u64,
    words: Vec<AtomicU32>,
    len: usize,
    /// One bit a byte: whether it was ever written. Absent if all are.
    written: Option<Vec<AtomicU32>>,
    /// Held during accesses of more than 32 bits that happen at once.
    wide: Mutex<()>,
}

/// Addresses for `len` bytes: a multiple of 4096, with a gap behind them, so that running over a buffer's end never lands
/// in another one. 0 is never one.
fn addresses(len: usize) -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0x1_0000);
    const PAGE: u64 = 0x1000;
    NEXT.fetch_add((len as u64 / PAGE + 2) * PAGE, Ordering::Relaxed)
}

impl GlobalBuffer {
    /// `len` zero bytes.
    pub fn zeroed(len: usize) -> Self {
        Self { address: addresses(len), words: atomics(len.div_ceil(4)), len, written: None, wide: Mutex::new(()) }
    }

    /// `len` bytes that count as never written: reading them gives a finding (and 0).
    pub fn uninit(len: usize) -> Self {
        Self { written: Some(atomics(len.div_ceil(32))), ..Self::zeroed(len) }
    }

    /// Like [`Self::zeroed`], for lengths that come from outside; nothing if the host has no room. Pages of it that nobody writes
    /// to take none, where the host gives out memory page by page.
    pub fn try_zeroed(len: usize) -> Option<Self> {
        let words = try_atomics(len.div_ceil(4))?;
        Some(Self { address: addresses(len), words, len, written: None, wide: Mutex::new(()) })
    }

    /// Like [`Self::uninit`], for lengths that come from outside; as [`Self::try_zeroed`].
    pub fn try_uninit(len: usize) -> Option<Self> {
        Some(Self { written: Some(try_atomics(len.div_ceil(32))?), ..Self::try_zeroed(len)? })
    }

    /// A buffer with this content.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut buffer = Self::zeroed(bytes.len());
        for (word, chunk) in buffer.words.iter_mut().zip(bytes.chunks(4)) {
            let mut four = [0; 4];
            four[..chunk.len()].copy_from_slice(chunk);
            *word.get_mut() = u32::from_le_bytes(four);
        }
        buffer
    }

    /// Device address of the first byte: what pointers to it hold.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Extent in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// A copy of all bytes; 0 for those never written.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes: Vec<u8> = self.words.iter().flat_map(|w| w.load(Ordering::Relaxed).to_le_bytes()).collect();
        bytes.truncate(self.len);
        bytes
    }

    /// Copies the bytes from `offset` on into `out`.
    ///
    /// # Errors
    /// [`Error::HostAccess`] if they do not all lie in the buffer.
    pub fn read(&self, offset: usize, out: &mut [u8]) -> Result<(), Error> {
        self.check_host(offset, out.len())?;
        let head = out.len().min(offset.next_multiple_of(4) - offset);
        let (head, body) = out.split_at_mut(head);
        for (i, byte) in head.iter_mut().enumerate() {
            *byte = self.load_byte(offset + i);
        }
        for (chunk, word) in body.chunks_mut(4).zip(&self.words[(offset + head.len()).div_ceil(4)..]) {
            chunk.copy_from_slice(&word.load(Ordering::Relaxed).to_le_bytes()[..chunk.len()]);
        }
        Ok(())
    }

    /// Copies `bytes` into the buffer from `offset` on.
    ///
    /// # Errors
    /// [`Error::HostAccess`] if they do not all fit; nothing is written then.
    pub fn write(&self, offset: usize, bytes: &[u8]) -> Result<(), Error> {
        self.check_host(offset, bytes.len())?;
        let head = bytes.len().min(offset.next_multiple_of(4) - offset);
        let (head, body) = bytes.split_at(head);
        for (i, byte) in head.iter().enumerate() {
            self.store_part(offset + i, u32::from(*byte), 0xFF);
        }
        let start = offset + head.len();
        let words = body.chunks_exact(4);
        let tail = words.remainder();
        for (i, word) in words.enumerate() {
            let word = word.try_into().map_or(0, u32::from_le_bytes);
            self.words[start / 4 + i].store(word, Ordering::Relaxed);
        }
        for (i, byte) in tail.iter().enumerate() {
            self.store_part(start + body.len() - tail.len() + i, u32::from(*byte), 0xFF);
        }
        self.mark_written(offset, bytes.len());
        Ok(())
    }

    fn check_host(&self, offset: usize, bytes: usize) -> Result<(), Error> {
        match offset.checked_add(bytes) {
            Some(end) if end <= self.len => Ok(()),
            _ => Err(Error::HostAccess { offset, bytes, extent: self.len }),
        }
    }

    fn load_byte(&self, at: usize) -> u8 {
        (self.words[at / 4].load(Ordering::Relaxed) >> (at % 4 * 8)) as u8
    }

    /// Replaces the bits `mask` (shifted to byte `at`'s place in its word), leaving the word's others alone.
    fn store_part(&self, at: usize, bits: u32, mask: u32) {
        let shift = at % 4 * 8;
        let update = |old: u32| Some(old & !(mask << shift) | bits << shift);
        // The closure never declines, so there is no error to handle.
        let _ = self.words[at / 4].fetch_update(Ordering::Relaxed, Ordering::Relaxed, update);
    }

    /// Replaces the aligned element of `B` bytes (4 or 8) at byte `at`, which lies in the buffer, by `f` of it, atomically
    /// and in one order with all such operations. Gives what was there.
    pub(super) fn update<const B: usize>(&self, at: usize, f: impl Fn(u64) -> u64) -> u64 {
        let old = if B == 4 {
            let update = |old: u32| Some(f(old.into()) as u32);
            let (Ok(old) | Err(old)) = self.words[at / 4].fetch_update(Ordering::SeqCst, Ordering::SeqCst, update);
            old.into()
        } else {
            self.locked(|| {
                let mut old = 0;
                self.load::<8>(at, 1, |_, bits| old = bits);
                self.store::<8>(at, 1, |_| f(old));
                old
            })
        };
        self.mark_written(at, B);
        old
    }

    /// Runs `f`, an access, at once if it is to be `whole`: as no other such access, nor an atomic operation on 64 bits, is
    /// under way.
    #[inline(always)]
    pub(super) fn undivided(&self, whole: bool, f: impl FnOnce()) {
        if whole { self.locked(f) } else { f() }
    }

    fn locked<T>(&self, f: impl FnOnce() -> T) -> T {
        let _guard = self.wide.lock().unwrap_or_else(PoisonError::into_inner);
        f()
    }

    /// Loads `n` elements of `B` bytes (1, 2, 4 or 8) from byte `at` on; they lie in the buffer. `put(e, bits)` takes them.
    #[inline(always)]
    pub(super) fn load<const B: usize>(&self, at: usize, n: usize, mut put: impl FnMut(usize, u64)) {
        if at.is_multiple_of(B.min(4)) {
            for e in 0..n {
                let at = at + e * B;
                let word = |i: usize| self.words[at / 4 + i].load(Ordering::Relaxed);
                put(
                    e,
                    match B {
                        1 => u64::from(word(0) >> (at % 4 * 8) & 0xFF),
                        2 => u64::from(word(0) >> (at % 4 * 8) & 0xFFFF),
                        4 => u64::from(word(0)),
                        _ => u64::from(word(0)) | u64::from(word(1)) << 32,
                    },
                );
            }
        } else {
            for e in 0..n {
                let mut bytes = [0; 8];
                for (i, byte) in bytes[..B].iter_mut().enumerate() {
                    *byte = self.load_byte(at + e * B + i);
                }
                put(e, u64::from_le_bytes(bytes));
            }
        }
    }

    /// Stores `n` elements of `B` bytes (1, 2, 4 or 8) from byte `at` on; they lie in the buffer. `get(e)` gives them.
    #[inline(always)]
    pub(super) fn store<const B: usize>(&self, at: usize, n: usize, get: impl Fn(usize) -> u64) {
        if !at.is_multiple_of(B.min(4)) {
            for e in 0..n {
                for (i, byte) in get(e).to_le_bytes()[..B].iter().enumerate() {
                    self.store_part(at + e * B + i, u32::from(*byte), 0xFF);
                }
            }
        } else if B < 4 {
            let (a_word, mask) = (4 / B, u32::MAX >> (32 - 8 * B));
            let mut e = 0;
            while e < n {
                let at = at + e * B;
                if at.is_multiple_of(4) && e + a_word <= n {
                    let word = (0..a_word).fold(0, |word, i| word | get(e + i) << (i * B * 8));
                    self.words[at / 4].store(word as u32, Ordering::Relaxed);
                    e += a_word;
                } else {
                    self.store_part(at, get(e) as u32, mask);
                    e += 1;
                }
            }
        } else {
            for e in 0..n {
                let at = at + e * B;
                let value = get(e);
                self.words[at / 4].store(value as u32, Ordering::Relaxed);
                if B == 8 {
                    self.words[at / 4 + 1].store((value >> 32) as u32, Ordering::Relaxed);
                }
            }
        }
        self.mark_written(at, n * B);
    }

    #[inline(always)]
    fn mark_written(&self, at: usize, bytes: usize) {
        if let Some(written) = &self.written {
            for (word, bits) in flags(at, bytes) {
                let word = &written[word];
                if word.load(Ordering::Relaxed) & bits != bits {
                    word.fetch_or(bits, Ordering::Relaxed);
                }
            }
        }
    }

    /// Whether all of these bytes, which lie in the buffer, were ever written.
    #[inline(always)]
    pub(super) fn is_written(&self, at: usize, bytes: usize) -> bool {
        self.written.as_ref().is_none_or(|written| {
            flags(at, bytes).all(|(word, bits)| written[word].load(Ordering::Relaxed) & bits == bits)
        })
    }
}

/// The flags of bytes `at .. at + bytes`: words of 32 flags, and the bits of each.
#[inline(always)]
fn flags(at: usize, bytes: usize) -> impl Iterator<Item = (usize, u32)> {
    let end = at + bytes;
    (at / 32..end.div_ceil(32)).map(move |word| {
        let (from, to) = (at.max(word * 32) % 32, end.min(word * 32 + 32) - word * 32);
        (word, u32::MAX >> (32 - to) & u32::MAX << from)
    })
}

fn atomics(n: usize) -> Vec<AtomicU32> {
    std::iter::repeat_with(AtomicU32::default).take(n).collect()
}

fn try_atomics(n: usize) -> Option<Vec<AtomicU32>> {
    // Larger than any allocation may be.
    if n > isize::MAX as usize / size_of::<AtomicU32>() {
        return None;
    }
    bytemuck::allocation::try_zeroed_vec(n).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loaded<const B: usize>(b: &GlobalBuffer, at: usize, n: usize) -> Vec<u64> {
        let mut out = vec![0; n];
        b.load::<B>(at, n, |e, bits| out[e] = bits);
        out
    }

    #[test]
    fn bytes_round_trip_at_every_length_and_offset() {
        for len in 0..19usize {
            let bytes: Vec<u8> = (0..len as u8).map(|b| b * 7 + 1).collect();
            let b = GlobalBuffer::from_bytes(&bytes);
            assert_eq!((b.len(), b.is_empty(), b.to_vec()), (len, len == 0, bytes.clone()));
            for offset in 0..=len {
                let z = GlobalBuffer::zeroed(len);
                z.write(offset, &bytes[offset..]).unwrap();
                let mut expected = vec![0; len];
                expected[offset..].copy_from_slice(&bytes[offset..]);
                assert_eq!(z.to_vec(), expected);
                let mut out = vec![0; len - offset];
                b.read(offset, &mut out).unwrap();
                assert_eq!(out, &bytes[offset..]);
            }
        }
    }

    #[test]
    fn an_absurd_length_is_an_error() {
        assert!(GlobalBuffer::try_uninit(usize::MAX).is_none());
        let b = GlobalBuffer::try_uninit(9).unwrap();
        assert_eq!((b.to_vec(), b.is_written(8, 1)), (vec![0; 9], false));
    }

    #[test]
    fn host_access_past_the_end_is_an_error() {
        let b = GlobalBuffer::zeroed(8);
        let e = b.write(6, &[1, 2, 3]).unwrap_err();
        assert_eq!(e.to_string(), "bytes 6..9 of a buffer of 8 bytes");
        assert_eq!(b.to_vec(), [0; 8]);
        assert!(b.read(usize::MAX, &mut [0]).is_err());
    }

    #[test]
    fn elements_of_every_width_at_every_alignment() {
        let bytes: Vec<u8> = (0..40).map(|b| b * 5 + 3).collect();
        let b = GlobalBuffer::from_bytes(&bytes);
        for at in 0..16 {
            let element = |at: usize, w: usize| bytes[at..at + w].iter().rev().fold(0, |v, b| v << 8 | u64::from(*b));
            assert_eq!(loaded::<1>(&b, at, 5), [0, 1, 2, 3, 4].map(|i| element(at + i, 1)));
            assert_eq!(loaded::<2>(&b, at, 3), [element(at, 2), element(at + 2, 2), element(at + 4, 2)]);
            assert_eq!(loaded::<4>(&b, at, 2), [element(at, 4), element(at + 4, 4)]);
            assert_eq!(loaded::<8>(&b, at, 2), [element(at, 8), element(at + 8, 8)]);

            let s = GlobalBuffer::from_bytes(&[0xEE; 40]);
            s.store::<2>(at, 3, |e| element(at + 2 * e, 2));
            s.store::<4>(at + 6, 1, |_| element(at + 6, 4));
            s.store::<8>(at + 10, 1, |_| element(at + 10, 8));
            s.store::<1>(at + 18, 6, |e| element(at + 18 + e, 1));
            let mut expected = vec![0xEE; 40];
            expected[at..at + 24].copy_from_slice(&bytes[at..at + 24]);
            assert_eq!(s.to_vec(), expected, "at {at}");
        }
    }

    #[test]
    fn uninitialised_bytes_are_known_one_by_one() {
        for (at, bytes) in [(0, 1), (31, 1), (31, 2), (5, 60), (32, 32), (0, 128), (64, 0), (100, 28), (63, 2)] {
            let b = GlobalBuffer::uninit(128);
            b.mark_written(at, bytes);
            for i in 0..128 {
                assert_eq!(b.is_written(i, 1), (at..at + bytes).contains(&i), "byte {i} of {at}+{bytes}");
            }
            assert!(b.is_written(at, bytes));
            assert!(at == 0 || !b.is_written(at - 1, bytes + 1));
            assert!(at + bytes == 128 || !b.is_written(at, bytes + 1));
        }
        let b = GlobalBuffer::uninit(70);
        b.store::<2>(30, 2, |_| 1);
        b.write(69, &[9]).unwrap();
        assert!(b.is_written(30, 4) && b.is_written(69, 1));
        assert!(!b.is_written(29, 2) && !b.is_written(33, 2) && !b.is_written(68, 2));
        assert!(GlobalBuffer::zeroed(4).is_written(0, 4));
    }

    #[test]
    fn addresses_are_apart_and_aligned() {
        let buffers = [0, 1, 4095, 4096, 4097, 3].map(GlobalBuffer::zeroed);
        let mut all: Vec<_> = buffers.iter().map(|b| (b.address(), b.len() as u64)).collect();
        all.sort_unstable();
        assert!(all.iter().all(|(a, _)| *a > 0 && a.is_multiple_of(4096)));
        assert!(all.windows(2).all(|w| w[0].0 + w[0].1 + 4096 <= w[1].0));
    }

    #[test]
    fn updates_are_atomic_at_both_widths() {
        let b = GlobalBuffer::uninit(24);
        std::thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| {
                    for _ in 0..1000 {
                        b.update::<4>(4, |x| x + 1);
                        b.update::<8>(8, |x| x + (1 << 31));
                    }
                });
            }
        });
        assert_eq!(loaded::<4>(&b, 4, 1), [4000]);
        assert_eq!(loaded::<8>(&b, 8, 1), [4000 << 31]);
        assert_eq!(b.update::<8>(8, |_| 7), 4000 << 31);
        assert!(b.is_written(4, 12) && !b.is_written(3, 1) && !b.is_written(16, 1));
    }

    #[test]
    fn neighbouring_halves_of_a_word_survive_concurrent_stores() {
        for round in 0..200 {
            let b = GlobalBuffer::zeroed(64);
            std::thread::scope(|s| {
                for half in 0..2usize {
                    let b = &b;
                    s.spawn(move || {
                        for w in 0..16 {
                            b.store::<2>(w * 4 + half * 2, 1, |_| (round + 1) << half);
                        }
                    });
                }
            });
            for w in 0..16 {
                assert_eq!(loaded::<2>(&b, w * 4, 2), [round + 1, (round + 1) << 1]);
            }
        }
    }
}
