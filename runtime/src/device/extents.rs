//! What a driver's device has allocated, and who still needs it.

use std::collections::BTreeMap;

/// Allocations by address. Each has owners, of whom [`Extents::insert`] makes the first.
#[derive(Debug, Default)]
pub(super) struct Extents(BTreeMap<u64, Extent>);

#[derive(Debug)]
struct Extent {
    bytes: u64,
    owners: u32,
}

impl Extents {
    pub(super) fn insert(&mut self, address: u64, bytes: u64) {
        self.0.insert(address, Extent { bytes, owners: 1 });
    }

    /// One more owner of what begins at `address`, which is known from now on.
    pub(super) fn open(&mut self, address: u64, bytes: u64) {
        self.0.entry(address).or_insert(Extent { bytes, owners: 0 }).owners += 1;
    }

    /// Address of the allocation that covers the range.
    pub(super) fn covering(&self, address: u64, bytes: u64) -> Option<u64> {
        let (start, extent) = self.0.range(..=address).next_back()?;
        let at = address - start;
        (at <= extent.bytes && bytes <= extent.bytes - at).then_some(*start)
    }

    /// One more owner of the allocation that covers `address`, whose own address this gives.
    pub(super) fn retain(&mut self, address: u64) -> Option<u64> {
        let start = self.covering(address, 0)?;
        self.0.get_mut(&start)?.owners += 1;
        Some(start)
    }

    /// One owner fewer; whether that was the last, so that the memory is to be freed. An unknown address has none.
    pub(super) fn release(&mut self, address: u64) -> bool {
        let Some(extent) = self.0.get_mut(&address) else { return false };
        extent.owners -= 1;
        extent.owners == 0 && self.0.remove(&address).is_some()
    }

    /// All that is left.
    pub(super) fn take(&mut self) -> impl Iterator<Item = u64> + use<> {
        std::mem::take(&mut self.0).into_keys()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_lie_in_one_allocation_or_in_none() {
        let mut extents = Extents::default();
        extents.insert(0x100, 16);
        extents.insert(0x200, 0);
        for (address, bytes, start) in [(0x100, 16, 0x100), (0x10f, 1, 0x100), (0x110, 0, 0x100), (0x200, 0, 0x200)] {
            assert_eq!(extents.covering(address, bytes), Some(start), "{address:x}");
        }
        for (address, bytes) in [(0xff, 1), (0x100, 17), (0x110, 1), (0x200, 1), (0x108, u64::MAX), (u64::MAX, 1)] {
            assert_eq!(extents.covering(address, bytes), None, "{address:x}");
        }
    }

    #[test]
    fn the_last_owner_frees() {
        let mut extents = Extents::default();
        extents.insert(0x100, 16);
        assert_eq!(extents.retain(0x108), Some(0x100));
        assert_eq!(extents.retain(0x300), None);
        assert!(!extents.release(0x100));
        assert_eq!(extents.covering(0x100, 16), Some(0x100), "one owner is left");
        assert!(extents.release(0x100));
        assert_eq!(extents.covering(0x100, 1), None);
        assert!(!extents.release(0x100), "an unknown address is nobody's");
        extents.open(0x500, 2);
        extents.open(0x500, 2);
        assert!(!extents.release(0x500) && extents.covering(0x500, 2).is_some() && extents.release(0x500));
        extents.insert(0x400, 1);
        assert_eq!(extents.take().collect::<Vec<_>>(), [0x400]);
        assert_eq!(extents.take().count(), 0);
    }
}
