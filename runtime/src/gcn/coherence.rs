//! Whether what workgroups tell each other through global memory gets past the caches between them, on both sides.
//!
//! What a workgroup loads that another one has stored in the same run of launches must have been stored as far as the two are
//! apart (same device or not): by the store's own scope bits, by a write-back after it, or by the end of its launch. And it must be
//! loaded from as far: by the load's own bits, or behind an invalidation that came after the store. Otherwise hardware may keep the
//! store in a cache for as long as it likes, or find an older copy in one, so the load is an error, whatever it found here.
//!
//! Remembered is the last store of each word. Write-backs and invalidations count for the whole workgroup, those of system scope for
//! its whole device. Not covered: scalar loads, and caches that waves of one workgroup do not share.

use rustc_hash::FxHashMap;

use crate::gcn::error::ErrorKind;
use crate::gcn::memory::{FIRST_ADDRESS, FIRST_SHARED_ADDRESS};
use crate::visibility::Reach;

/// Bytes of a page of words.
const PAGE: u64 = 4096;
/// Bytes of a word.
const WORD: u64 = 4;

/// The last store of a word.
#[derive(Clone, Copy)]
struct Stored {
    at: u64,
    pc: u64,
    block: u32,
    /// Which bytes; none: nobody has stored here.
    mask: u8,
    reach: Reach,
}

/// In place of a memory's number: what several devices have.
const SHARED: usize = usize::MAX;

const NOBODY: Stored = Stored { at: 0, pc: 0, block: 0, mask: 0, reach: Reach::Wave };

/// When caches were last written back and invalidated: a workgroup's as far as its device, a device's as far as the system.
#[derive(Clone, Copy, Default)]
struct Caches {
    written_back: u64,
    invalidated: u64,
}

/// A workgroup that has begun.
struct Block {
    rank: usize,
    memory: usize,
    id: [u32; 3],
    caches: Caches,
}

/// What the workgroups of a run told each other.
pub(crate) struct Coherence {
    now: u64,
    /// By memory ([`SHARED`]: what several have) and address / [`PAGE`].
    pages: FxHashMap<(usize, u64), Box<[Stored; (PAGE / WORD) as usize]>>,
    blocks: Vec<Block>,
    ranks: Vec<Caches>,
}

impl Coherence {
    /// For launches of so many devices.
    pub(crate) fn new(ranks: usize) -> Self {
        Self { now: 0, pages: FxHashMap::default(), blocks: vec![], ranks: vec![Caches::default(); ranks] }
    }

    /// A workgroup of `rank`, with memory number `memory`, begins; what it gets is its number.
    pub(crate) fn begin(&mut self, rank: usize, memory: usize, id: [u32; 3]) -> u32 {
        // Caches are fresh since the launch began, not since the workgroup did.
        let invalidated = self.ranks[rank].invalidated;
        self.blocks.push(Block { rank, memory, id, caches: Caches { written_back: 0, invalidated } });
        self.blocks.len() as u32 - 1
    }

    /// A launch of `rank` has ended, and a next one begins: everything is written back, and nothing in caches any more.
    pub(crate) fn end_launch(&mut self, rank: usize) {
        self.now += 1;
        self.ranks[rank] = Caches { written_back: self.now, invalidated: self.now };
    }

    /// A workgroup writes back as far as `reach`.
    pub(crate) fn write_back(&mut self, block: u32, reach: Reach) {
        self.now += 1;
        let block = &mut self.blocks[block as usize];
        if reach >= Reach::Device {
            block.caches.written_back = self.now;
        }
        if reach >= Reach::System {
            self.ranks[block.rank].written_back = self.now;
        }
    }

    /// A workgroup drops copies of what lies as far as `reach`.
    pub(crate) fn invalidate(&mut self, block: u32, reach: Reach) {
        self.now += 1;
        let block = &mut self.blocks[block as usize];
        if reach >= Reach::Device {
            block.caches.invalidated = self.now;
        }
        if reach >= Reach::System {
            self.ranks[block.rank].invalidated = self.now;
        }
    }

    /// A workgroup stores bytes that go as far as `reach` by themselves.
    pub(crate) fn store(&mut self, block: u32, address: u64, bytes: u32, reach: Option<Reach>, pc: u64) {
        self.now += 1;
        let reach = reach.unwrap_or(Reach::Workgroup);
        let of = self.owner(block, address);
        for (page, word, mask) in words(address, bytes) {
            let page = self.pages.entry((of, page)).or_insert_with(|| Box::new([NOBODY; (PAGE / WORD) as usize]));
            page[word] = Stored { at: self.now, pc, block, mask, reach };
        }
    }

    /// A workgroup loads bytes from as far as `reach`.
    pub(crate) fn load(&self, block: u32, address: u64, bytes: u32, reach: Option<Reach>) -> Result<(), ErrorKind> {
        let of = self.owner(block, address);
        for (page, word, mask) in words(address, bytes) {
            let Some(page) = self.pages.get(&(of, page)) else { continue };
            let stored = &page[word];
            if stored.mask & mask != 0 && stored.block != block {
                self.told(stored, block, address, reach.unwrap_or(Reach::Workgroup))?;
            }
        }
        Ok(())
    }

    /// Whose memory a workgroup finds at an address: devices have memory of their own at equal ones.
    fn owner(&self, block: u32, address: u64) -> usize {
        let shared = (FIRST_SHARED_ADDRESS..FIRST_ADDRESS).contains(&address);
        if shared { SHARED } else { self.blocks[block as usize].memory }
    }

    fn told(&self, stored: &Stored, to: u32, address: u64, reach: Reach) -> Result<(), ErrorKind> {
        let (from, to) = (&self.blocks[stored.block as usize], &self.blocks[to as usize]);
        let since = |time: u64| time > stored.at;
        let (sender, receiver) = (self.ranks[from.rank], self.ranks[to.rank]);
        let apart = if from.rank == to.rank { Reach::Device } else { Reach::System };
        let goes = stored.reach.max(match (since(from.caches.written_back), since(sender.written_back)) {
            (_, true) => Reach::System,
            (true, _) => Reach::Device,
            _ => Reach::Wave,
        });
        let near = reach >= Reach::Device || since(to.caches.invalidated);
        let comes = reach.max(match (near, since(receiver.invalidated)) {
            (true, true) => Reach::System,
            (true, _) => Reach::Device,
            _ => Reach::Wave,
        });
        let [x, y, z] = from.id;
        let by = if from.rank == to.rank {
            format!("workgroup ({x}, {y}, {z})")
        } else {
            format!("workgroup ({x}, {y}, {z}) of rank {}", from.rank)
        };
        if goes < apart {
            return Err(ErrorKind::StoreHeldBack { address, by, stored: stored.pc, reach: name(goes) });
        }
        if comes < apart {
            return Err(ErrorKind::StaleLoad { address, by, stored: stored.pc, reach: name(comes) });
        }
        Ok(())
    }
}

fn name(reach: Reach) -> &'static str {
    match reach {
        Reach::Wave | Reach::Workgroup => "its workgroup",
        Reach::Device => "its device",
        Reach::System => "the system",
    }
}

/// The words that bytes lie in: number of the page, place in it, which bytes.
fn words(address: u64, bytes: u32) -> impl Iterator<Item = (u64, usize, u8)> {
    let end = address.saturating_add(bytes.into());
    (address / WORD..end.div_ceil(WORD)).map(move |word| {
        let (first, last) = ((word * WORD).max(address), (word * WORD + WORD).min(end));
        let mask = (first..last).fold(0, |mask, at| mask | 1 << (at % WORD));
        (word / (PAGE / WORD), (word % (PAGE / WORD)) as usize, mask)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: u64 = FIRST_SHARED_ADDRESS + 0x1FFE;

    /// Two devices, two workgroups of the first and one of the second.
    fn three() -> Coherence {
        let mut c = Coherence::new(2);
        assert_eq!([(0, 0), (0, 1), (1, 0)].map(|(rank, x)| c.begin(rank, rank, [x, 0, 0])), [0, 1, 2]);
        c
    }

    fn held_back(c: &Coherence, block: u32, reach: Reach) -> bool {
        match c.load(block, AT, 4, Some(reach)) {
            Err(ErrorKind::StoreHeldBack { .. }) => true,
            Err(ErrorKind::StaleLoad { .. }) | Ok(()) => false,
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn a_store_must_go_and_a_load_come_as_far_as_the_two_are_apart() {
        use Reach::{Device, System, Workgroup};
        for stored in [Workgroup, Device, System] {
            for loaded in [Workgroup, Device, System] {
                let mut c = three();
                c.store(0, AT, 4, Some(stored), 0x40);
                assert_eq!(c.load(0, AT, 4, None), Ok(()), "its own");
                for (block, apart) in [(1, Device), (2, System)] {
                    let right = stored.min(loaded) >= apart;
                    assert_eq!(c.load(block, AT, 4, Some(loaded)).is_ok(), right, "{stored:?} {loaded:?} {apart:?}");
                    assert_eq!(held_back(&c, block, loaded), stored < apart);
                    assert_eq!(c.load(block, AT - 2, 2, None), Ok(()), "beside it");
                }
            }
        }
    }

    #[test]
    fn devices_have_memory_of_their_own_at_equal_addresses() {
        let mut c = three();
        c.store(0, FIRST_ADDRESS, 4, None, 0x40);
        assert_eq!(c.load(2, FIRST_ADDRESS, 4, None), Ok(()), "another device's");
        assert!(c.load(1, FIRST_ADDRESS, 4, None).is_err(), "its own device's");
    }

    #[test]
    fn what_writes_back_and_invalidates_counts_from_then_on() {
        use Reach::{Device, System, Workgroup};
        let mut c = three();
        c.write_back(0, System);
        c.invalidate(2, System);
        c.store(0, AT, 4, None, 0x40);
        assert!(held_back(&c, 2, System), "it came before the store");
        c.write_back(0, Device);
        assert!(!held_back(&c, 1, Device) && held_back(&c, 2, System));
        // That of a neighbour takes what the device has to the system.
        c.write_back(1, System);
        assert_eq!(c.load(2, AT, 4, Some(System)), Ok(()));
        let stale = c.load(2, AT, 4, None).unwrap_err().to_string();
        assert!(stale.contains("workgroup (0, 0, 0) of rank 0 has stored there (pc 0x40)"), "{stale}");
        c.invalidate(2, Device);
        assert!(c.load(2, AT, 4, None).is_err() && c.load(1, AT, 4, Some(Workgroup)).is_err());
        c.invalidate(2, System);
        c.invalidate(1, Device);
        assert_eq!([1, 2].map(|block| c.load(block, AT, 4, None)), [Ok(()), Ok(())]);
    }

    #[test]
    fn launches_begin_and_end_with_clean_caches() {
        let mut c = three();
        c.store(0, AT, 4, None, 0x40);
        c.end_launch(0);
        assert_eq!(c.load(2, AT, 4, Some(Reach::System)), Ok(()));
        assert!(c.load(2, AT, 4, None).is_err(), "that launch is an older one");
        let next = c.begin(0, 0, [0; 3]);
        assert_eq!(c.load(next, AT, 4, None), Ok(()));
    }
}
