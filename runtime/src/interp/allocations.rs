//! The memory that a launch can reach through pointers.

use super::memory::GlobalBuffer;

/// An allocation and what messages call it.
#[derive(Clone, Copy)]
pub(super) struct Allocation<'a> {
    pub(super) buffer: &'a GlobalBuffer,
    pub(super) name: &'static str,
}

/// Allocations in order of their addresses: looked through for every lane's access, hence each with its bounds beside it.
pub(super) struct Allocations<'a>(Vec<Bounded<'a>>);

struct Bounded<'a> {
    address: u64,
    bytes: u64,
    allocation: Allocation<'a>,
}

impl<'a> Allocations<'a> {
    /// Of these; where one is named twice, the first name counts.
    pub(super) fn new(all: impl Iterator<Item = Allocation<'a>>) -> Self {
        let mut all: Vec<_> = all.collect();
        all.sort_by_key(|a| a.buffer.address());
        all.dedup_by_key(|a| a.buffer.address());
        let bounded = |allocation: Allocation<'a>| {
            let buffer = allocation.buffer;
            Bounded { address: buffer.address(), bytes: buffer.len() as u64, allocation }
        };
        Self(all.into_iter().map(bounded).collect())
    }

    /// The allocation that holds all of `bytes` bytes at `address`, and where in it they begin. `hint` is where the last one was found,
    /// mostly the same: of lanes of one instruction.
    #[inline(always)]
    pub(super) fn find_near(&self, hint: &mut usize, address: u64, bytes: u64) -> Option<(Allocation<'a>, usize)> {
        if let Some(found) = self.0.get(*hint).and_then(|a| a.holds(address, bytes)) {
            return Some(found);
        }
        let above = self.0.partition_point(|a| a.address <= address);
        *hint = above.checked_sub(1)?;
        self.0[*hint].holds(address, bytes)
    }

    /// As [`Allocations::find_near`], of one access.
    #[inline(always)]
    pub(super) fn find(&self, address: u64, bytes: u64) -> Option<(Allocation<'a>, usize)> {
        let mut hint = usize::MAX;
        self.find_near(&mut hint, address, bytes)
    }
}

impl<'a> Bounded<'a> {
    #[inline(always)]
    fn holds(&self, address: u64, bytes: u64) -> Option<(Allocation<'a>, usize)> {
        let offset = address.checked_sub(self.address)?;
        let end = offset.checked_add(bytes)?;
        (end <= self.bytes).then_some((self.allocation, offset as usize))
    }
}
