//! Puts what the workgroups of a launch stored together, and finds those that touch the same bytes.

use rustc_hash::FxHashMap;

use super::log::{Content, Log, Mask, PAGE, Page};
use crate::gcn::memory::Memory;

/// Pairs of workgroups to report at most.
const MAX_CONFLICTS: usize = 16;

/// Two workgroups that touch a byte, the lower one first: its number, and whether it writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Conflict {
    pub(super) address: u64,
    pub(super) first: (u64, bool),
    pub(super) second: (u64, bool),
}

/// Workgroups and which bytes of a page each of them touched; and all these bytes.
#[derive(Default)]
struct By {
    all: Mask,
    each: Vec<(u64, Mask)>,
}

impl By {
    fn add(&mut self, workgroup: u64, bytes: Mask) {
        if !bytes.is_empty() {
            self.all = self.all.or(bytes);
            self.each.push((workgroup, bytes));
        }
    }
}

/// A page that some workgroup touched.
#[derive(Default)]
struct Merged {
    writers: By,
    /// The first workgroup to read each byte, and the second: a writer collides with one of them if it collides with any.
    readers: [By; 2],
    /// Valid where it was written.
    content: Option<Box<Content>>,
}

/// What a launch stored.
#[derive(Default)]
pub(super) struct Merge {
    pages: FxHashMap<u64, Merged>,
    pub(super) conflicts: Vec<Conflict>,
}

impl Merge {
    /// Adds what workgroup `number` did. They must come in order.
    pub(super) fn add(&mut self, number: u64, log: Log) {
        let mut found = vec![];
        let wanted = self.conflicts.len() < MAX_CONFLICTS;
        for page in log.pages {
            let merged = self.pages.entry(page.number).or_default();
            if wanted {
                merged.collide(number, &page, &mut found);
            }
            let (bytes, [first, second]) = (page.read, &mut merged.readers);
            let again = bytes.and(first.all);
            first.add(number, bytes.without(again));
            second.add(number, again.without(second.all));
            merged.writers.add(number, page.written);
            match (&mut merged.content, page.content) {
                (Some(to), Some(from)) => {
                    for byte in page.written.bytes() {
                        to.data[byte] = from.data[byte];
                        to.undefined[byte] = from.undefined[byte];
                    }
                }
                (to @ None, from) => *to = from,
                (Some(_), None) => {}
            }
        }
        // One of each pair and kind, whatever the order of accesses.
        found.sort_unstable_by_key(|c: &Conflict| (c.first, c.second.1, c.address));
        found.dedup_by_key(|c| (c.first, c.second.1));
        found.sort_by_key(|c| c.address);
        self.conflicts.extend(found.into_iter().take(MAX_CONFLICTS - self.conflicts.len().min(MAX_CONFLICTS)));
    }

    /// Makes all of it visible.
    pub(super) fn apply(self, memory: &mut Memory) {
        for (number, page) in self.pages {
            let Some(content) = page.content else { continue };
            let mut bytes = page.writers.all.bytes().peekable();
            while let Some(start) = bytes.next() {
                let mut end = start + 1;
                while bytes.next_if_eq(&end).is_some() {
                    end += 1;
                }
                memory.put(PAGE * number + start as u64, &content.data[start..end], &content.undefined[start..end]);
            }
        }
    }
}

impl Merged {
    /// Finds the workgroups before workgroup `number` that touched what it touched: a write of the same value collides with no write.
    fn collide(&self, number: u64, page: &Page, found: &mut Vec<Conflict>) {
        let mut add = |by: &By, writes: bool, bytes: Mask, wrote: bool| {
            if bytes.and(by.all).is_empty() {
                return;
            }
            for (other, theirs) in by.each.iter().rev() {
                let (first, second) = ((*other, writes), (number, wrote));
                if let Some(byte) = theirs.and(bytes).bytes().next() {
                    found.push(Conflict { address: PAGE * page.number + byte as u64, first, second });
                }
            }
        };
        add(&self.writers, true, page.read, false);
        self.readers.iter().for_each(|by| add(by, false, page.written, true));
        let again = page.written.and(self.writers.all);
        if let (Some(before), Some(now)) = (&self.content, &page.content)
            && let Some(byte) = again.bytes().find(|byte| before.data[*byte] != now.data[*byte])
        {
            // What is there the last one has written.
            if let Some((other, _)) = self.writers.each.iter().rev().find(|(_, theirs)| theirs.has(byte)) {
                let address = PAGE * page.number + byte as u64;
                found.push(Conflict { address, first: (*other, true), second: (number, true) });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A conflict's byte, and its two workgroups with whether they write.
    type Found = (u64, (u64, bool), (u64, bool));

    /// What workgroups do to an allocation of 1024 zeros: (writes, first byte, values or zeros that are read).
    fn merged(workgroups: &[&[(bool, u64, &[u8])]]) -> (Vec<Found>, Vec<u8>) {
        let mut memory = Memory::default();
        let a = memory.alloc(1024);
        memory.write(a, &[0; 1024]).unwrap();
        let mut merge = Merge::default();
        for (number, accesses) in workgroups.iter().enumerate() {
            let mut log = Log::new(None);
            for (writes, at, bytes) in *accesses {
                if *writes {
                    let store = |data: &mut [u8], _: &mut [u8]| data.copy_from_slice(bytes);
                    log.store(&memory, "store", a + at, bytes.len(), store).unwrap();
                } else {
                    log.load(&memory, a + at, bytes.len(), |_, _| ()).unwrap();
                }
            }
            merge.add(number as u64, log);
        }
        let conflicts = merge.conflicts.iter().map(|c| (c.address - a, c.first, c.second)).collect();
        merge.apply(&mut memory);
        (conflicts, memory.read(a, 1024).unwrap())
    }

    #[test]
    fn what_touches_the_same_byte_collides_if_one_writes() {
        const R: bool = false;
        const W: bool = true;
        // Apart; both read; one byte of a word each.
        assert_eq!(merged(&[&[(W, 0, &[1; 4])], &[(W, 4, &[2; 4])], &[(R, 8, &[0; 4])]]).0, []);
        assert_eq!(merged(&[&[(R, 0, &[0; 4])], &[(R, 0, &[0; 4])]]).0, []);
        // A workgroup alone, in whatever order.
        assert_eq!(merged(&[&[(R, 0, &[0; 4]), (W, 0, &[1; 4]), (R, 0, &[0; 4]), (W, 0, &[2; 4])]]).0, []);
        assert_eq!(merged(&[&[(W, 0, &[1; 4])], &[(R, 3, &[0; 4])]]).0, [(3, (0, W), (1, R))]);
        assert_eq!(merged(&[&[(R, 0, &[0; 4])], &[(W, 2, &[1; 4])]]).0, [(2, (0, R), (1, W))]);
        // The same value twice, then another one.
        let (conflicts, bytes) = merged(&[&[(W, 9, &[1])], &[(W, 9, &[1])], &[(W, 8, &[5, 6])]]);
        assert_eq!((conflicts, &bytes[8..10]), (vec![(9, (1, W), (2, W))], &[5, 6][..]));
        // Of many readers the writer meets two, itself not being one.
        let read: &[(bool, u64, &[u8])] = &[(R, 0, &[0])];
        let write: &[(bool, u64, &[u8])] = &[(R, 0, &[0]), (W, 0, &[1])];
        assert_eq!(merged(&[write, read, read]).0, [(0, (0, W), (1, R)), (0, (0, W), (2, R))]);
        assert_eq!(merged(&[read, write]).0, [(0, (0, R), (1, W))]);
        assert_eq!(merged(&[read, read, read, write]).0.len(), 2);
        // Over the end of a page, and no more than so many.
        let (conflicts, bytes) = merged(&[&[(W, 254, &[1, 2, 3, 4])], &[(R, 256, &[0])]]);
        assert_eq!((conflicts, &bytes[253..259]), (vec![(256, (0, W), (1, R))], &[0, 1, 2, 3, 4, 0][..]));
        let many: Vec<&[(bool, u64, &[u8])]> =
            std::iter::once(write).chain(std::iter::repeat_n(read, 2 * MAX_CONFLICTS)).collect();
        assert_eq!(merged(&many).0.len(), MAX_CONFLICTS);
    }
}
