//! What one workgroup has loaded and stored: its own view of a memory that the launch leaves alone until its end.

use rustc_hash::FxHashMap;

use crate::gcn::error::ErrorKind;
use crate::gcn::memory::{Memory, changes};

/// Bytes of a page. Every allocation begins with one, so that none belongs to two.
pub(super) const PAGE: u64 = 256;

/// Some of the bytes of a page.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Mask([u64; PAGE as usize / 64]);

impl Mask {
    /// Bytes `start .. end`.
    fn of(start: usize, end: usize) -> Self {
        Self(std::array::from_fn(|word| {
            let base = 64 * word;
            let (start, end) = (start.clamp(base, base + 64), end.clamp(base, base + 64));
            if start < end { u64::MAX >> (64 - (end - start)) << (start - base) } else { 0 }
        }))
    }

    fn each(self, other: Self, f: impl Fn(u64, u64) -> u64) -> Self {
        Self(std::array::from_fn(|word| f(self.0[word], other.0[word])))
    }

    pub(super) fn is_empty(self) -> bool {
        self == Self::default()
    }

    pub(super) fn and(self, other: Self) -> Self {
        self.each(other, |a, b| a & b)
    }

    pub(super) fn without(self, other: Self) -> Self {
        self.each(other, |a, b| a & !b)
    }

    pub(super) fn or(self, other: Self) -> Self {
        self.each(other, |a, b| a | b)
    }

    pub(super) fn has(self, byte: usize) -> bool {
        self.0[byte / 64] >> (byte % 64) & 1 != 0
    }

    /// Its bytes, lowest first.
    pub(super) fn bytes(self) -> impl Iterator<Item = usize> {
        let (mut words, mut at) = (self.0, 0);
        std::iter::from_fn(move || {
            while *words.get(at)? == 0 {
                at += 1;
            }
            let bit = words[at].trailing_zeros() as usize;
            words[at] &= words[at] - 1;
            Some(64 * at + bit)
        })
    }
}

/// Bytes of a page with their undefined bits.
#[derive(Clone)]
pub(super) struct Content {
    pub(super) data: [u8; PAGE as usize],
    pub(super) undefined: [u8; PAGE as usize],
}

impl Content {
    pub(super) fn empty() -> Box<Self> {
        Box::new(Self { data: [0; PAGE as usize], undefined: [0; PAGE as usize] })
    }
}

/// A page that a workgroup touched.
pub(super) struct Page {
    /// Its address divided by [`PAGE`].
    pub(super) number: u64,
    /// Bytes that were loaded before the workgroup stored there itself.
    pub(super) read: Mask,
    pub(super) written: Mask,
    /// Valid where it was written; there once it was.
    pub(super) content: Option<Box<Content>>,
}

/// An access that somebody wants to know the instruction of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Watch {
    pub(super) address: u64,
    pub(super) writes: bool,
}

/// See the module.
pub(crate) struct Log {
    /// In the order of their first access.
    pub(super) pages: Vec<Page>,
    index: FxHashMap<u64, usize>,
    /// Number and place of the page that was touched last.
    last: (u64, usize),
    watch: Option<Watch>,
    /// The current instruction is the one that was looked for.
    hit: bool,
    /// Its wave and pc.
    pub(super) seen: Option<(u32, u64)>,
}

/// A range page by page: number, first byte in the page, bytes before it in the range, bytes.
fn split(address: u64, bytes: usize) -> impl Iterator<Item = (u64, usize, usize, usize)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let (address, left) = (address + done as u64, bytes - done);
        let at = (address % PAGE) as usize;
        let n = left.min(PAGE as usize - at);
        let before = done;
        done += n;
        (n > 0).then_some((address / PAGE, at, before, n))
    })
}

impl Log {
    pub(super) fn new(watch: Option<Watch>) -> Self {
        Self { pages: vec![], index: FxHashMap::default(), last: (u64::MAX, 0), watch, hit: false, seen: None }
    }

    fn page(&mut self, number: u64) -> &mut Page {
        if self.last.0 != number {
            let pages = &mut self.pages;
            let at = *self.index.entry(number).or_insert_with(|| {
                pages.push(Page { number, read: Mask::default(), written: Mask::default(), content: None });
                pages.len() - 1
            });
            self.last = (number, at);
        }
        &mut self.pages[self.last.1]
    }

    fn look_out(&mut self, address: u64, bytes: usize, writes: bool) {
        if let Some(watch) = self.watch
            && watch.writes == writes
            && address <= watch.address
            && watch.address - address < bytes as u64
        {
            self.hit = true;
        }
    }

    /// Whether the access that somebody wants to know of has just happened.
    pub(crate) fn hit(&self) -> bool {
        self.hit
    }

    /// That was, if it was, the instruction at `pc` of wave `wave`.
    pub(crate) fn note(&mut self, wave: u32, pc: u64) {
        if std::mem::take(&mut self.hit) {
            self.watch = None;
            self.seen = Some((wave, pc));
        }
    }

    /// What `f` makes of bytes as the workgroup sees them.
    pub(crate) fn load<T>(
        &mut self,
        memory: &Memory,
        address: u64,
        bytes: usize,
        f: impl FnOnce(&[u8], &[u8]) -> T,
    ) -> Result<T, ErrorKind> {
        memory.look("load", address, bytes, |data, undefined| {
            self.look_out(address, bytes, false);
            let at = (address % PAGE) as usize;
            let own = if at + bytes <= PAGE as usize {
                self.page(address / PAGE).load(at, bytes)
            } else {
                split(address, bytes).fold(false, |own, (number, at, _, n)| own | self.page(number).load(at, n))
            };
            if !own {
                return f(data, undefined);
            }
            let page = self.page(address / PAGE);
            if let Some(content) = &page.content
                && at + bytes <= PAGE as usize
                && Mask::of(at, at + bytes).without(page.written).is_empty()
            {
                return f(&content.data[at..at + bytes], &content.undefined[at..at + bytes]);
            }
            let (mut data, mut undefined) = (data.to_vec(), undefined.to_vec());
            self.overlay(address, &mut data, &mut undefined);
            f(&data, &undefined)
        })
    }

    /// Puts what the workgroup stored over what the memory holds.
    fn overlay(&mut self, address: u64, data: &mut [u8], undefined: &mut [u8]) {
        for (number, at, before, n) in split(address, data.len()) {
            let page = self.page(number);
            let Some(content) = &page.content else { continue };
            for byte in page.written.and(Mask::of(at, at + n)).bytes() {
                data[before + byte - at] = content.data[byte];
                undefined[before + byte - at] = content.undefined[byte];
            }
        }
    }

    /// As [`Self::load`], with leave to change the bytes; and whether that changed one.
    pub(crate) fn store<T>(
        &mut self,
        memory: &Memory,
        what: &'static str,
        address: u64,
        bytes: usize,
        f: impl FnOnce(&mut [u8], &mut [u8]) -> T,
    ) -> Result<(T, bool), ErrorKind> {
        memory.look(what, address, bytes, |data, undefined| {
            self.look_out(address, bytes, true);
            let at = (address % PAGE) as usize;
            if at + bytes > PAGE as usize {
                let (mut data, mut undefined) = (data.to_vec(), undefined.to_vec());
                self.overlay(address, &mut data, &mut undefined);
                let result = changes(&mut data, |data| f(data, &mut undefined));
                for (number, at, before, n) in split(address, bytes) {
                    let (data, undefined) = (&data[before..before + n], &undefined[before..before + n]);
                    let content = self.page(number).write(at, data, undefined);
                    content.data[at..at + n].copy_from_slice(data);
                    content.undefined[at..at + n].copy_from_slice(undefined);
                }
                return result;
            }
            let content = self.page(address / PAGE).write(at, data, undefined);
            let Content { data, undefined } = content;
            changes(&mut data[at..at + bytes], |data| f(data, &mut undefined[at..at + bytes]))
        })
    }
}

impl Page {
    /// Notes a load of `n` bytes from `at` on; whether the workgroup stored some of them.
    fn load(&mut self, at: usize, n: usize) -> bool {
        let (word, bit) = (at / 64, at % 64);
        if (1..=64 - bit).contains(&n) {
            let bytes = u64::MAX >> (64 - n) << bit;
            let written = self.written.0[word];
            self.read.0[word] |= bytes & !written;
            return bytes & written != 0;
        }
        let mask = Mask::of(at, at + n);
        self.read = self.read.or(mask.without(self.written));
        !self.written.and(mask).is_empty()
    }

    /// Makes bytes from `at` on the workgroup's own: as they were, where they are not yet.
    fn write(&mut self, at: usize, data: &[u8], undefined: &[u8]) -> &mut Content {
        let content = self.content.get_or_insert_with(Content::empty);
        let mask = Mask::of(at, at + data.len());
        for byte in mask.without(self.written).bytes() {
            content.data[byte] = data[byte - at];
            content.undefined[byte] = undefined[byte - at];
        }
        self.written = self.written.or(mask);
        content
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_ranges_of_bytes() {
        for (start, end) in [(0, 0), (0, 1), (63, 65), (0, 256), (255, 256), (64, 128), (100, 200)] {
            assert_eq!(Mask::of(start, end).bytes().collect::<Vec<_>>(), (start..end).collect::<Vec<_>>());
        }
        let (a, b) = (Mask::of(10, 100), Mask::of(60, 70));
        assert_eq!(a.and(b), b);
        assert_eq!(a.without(b).or(b), a);
        assert_eq!(a.without(b).bytes().count(), 80);
    }

    #[test]
    fn a_workgroup_sees_its_own_stores_over_a_memory_that_stays() {
        let mut memory = Memory::default();
        let a = memory.alloc(1000);
        memory.write(a, &[1; 600]).unwrap();
        let mut log = Log::new(None);
        let load = |log: &mut Log, at: u64, n: usize| {
            log.load(&memory, a + at, n, |v, u| (v.to_vec(), u.iter().filter(|u| **u != 0).count()))
        };
        let store = |log: &mut Log, at: u64, bytes: &[u8]| {
            let changed = log.store(&memory, "store", a + at, bytes.len(), |v, u| {
                v.copy_from_slice(bytes);
                u.fill(0);
            });
            changed.map(|(_, changed)| changed)
        };
        assert_eq!(load(&mut log, 596, 8).unwrap(), (vec![1, 1, 1, 1, 0xA5, 0xA5, 0xA5, 0xA5], 4));
        assert!(store(&mut log, 600, &[7; 4]).unwrap());
        assert!(!store(&mut log, 600, &[7; 4]).unwrap(), "the same again changes nothing");
        assert!(!store(&mut log, 0, &[1; 4]).unwrap());
        // Own bytes alone, own ones among others, and over the end of a page.
        assert_eq!(load(&mut log, 600, 4).unwrap(), (vec![7; 4], 0));
        assert_eq!(load(&mut log, 598, 4).unwrap(), (vec![1, 1, 7, 7], 0));
        assert!(store(&mut log, 254, &[2, 3, 4, 5]).unwrap());
        assert_eq!(load(&mut log, 253, 6).unwrap(), (vec![1, 2, 3, 4, 5, 1], 0));
        assert_eq!(memory.read(a + 254, 4).unwrap(), [1; 4]);
        // Loads of own bytes are none of the memory's.
        let read: usize = log.pages.iter().map(|p| p.read.bytes().count()).sum();
        let written: usize = log.pages.iter().map(|p| p.written.bytes().count()).sum();
        assert_eq!((read, written), (8 + 2, 4 + 4 + 4));
        assert!(load(&mut log, 998, 4).unwrap_err().to_string().contains("outside every allocation"));
        assert!(store(&mut log, 1000, &[0]).is_err());
    }
}
