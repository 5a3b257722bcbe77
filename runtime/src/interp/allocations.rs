//! The memory that a launch can reach through pointers.

use super::memory::GlobalBuffer;

/// An allocation and what messages call it.
#[derive(Clone, Copy)]
pub(super) struct Allocation<'a> {
    pub(super) buffer: &'a GlobalBuffer,
    pub(super) name: &'static str,
}

/// Allocations in order of their addresses.
pub(super) struct Allocations<'a>(Vec<Allocation<'a>>);

impl<'a> Allocations<'a> {
    /// Of these; where one is named twice, the first name counts.
    pub(super) fn new(all: impl Iterator<Item = Allocation<'a>>) -> Self {
        let mut all: Vec<_> = all.collect();
        all.sort_by_key(|a| a.buffer.address());
        all.dedup_by_key(|a| a.buffer.address());
        Self(all)
    }

    /// The allocation that holds all of `bytes` bytes at `address`, and where in it they begin.
    #[inline(always)]
    pub(super) fn find(&self, address: u64, bytes: u64) -> Option<(Allocation<'a>, usize)> {
        let above = self.0.partition_point(|a| a.buffer.address() <= address);
        let found = self.0[above.checked_sub(1)?];
        let offset = address - found.buffer.address();
        let end = offset.checked_add(bytes)?;
        (end <= found.buffer.len() as u64).then_some((found, offset as usize))
    }
}
