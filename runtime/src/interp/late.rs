//! Stores of interpreted kernels that are on their way (see [`visibility`](crate::visibility)).

use std::cell::RefCell;

use super::allocations::Allocations;
use super::early::{Past, Sight};
use super::memory::GlobalBuffer;
use super::watch::Waits;
use crate::visibility::{self, Behind, Reach};

/// Global memory, as a launch reaches it.
#[derive(Clone, Copy)]
pub(super) struct Global<'c> {
    pub(super) allocations: &'c Allocations<'c>,
    pub(super) waits: Option<&'c Waits>,
    /// Where loads are made early.
    pub(super) past: Option<&'c RefCell<Past>>,
}

impl Global<'_> {
    /// `bytes` bytes at `address`, of one allocation, are about to change.
    fn changes(&self, address: u64, bytes: usize) {
        if let Some(past) = self.past
            && let Some((found, at)) = self.allocations.find(address, bytes as u64)
        {
            past.borrow_mut().changes(found.buffer, at, bytes);
        }
    }
}

impl Behind for Global<'_> {
    fn write(&mut self, address: u64, bytes: &[u8]) {
        self.changes(address, bytes.len());
        // It was found when the store was executed, and it takes all bytes that lie in it.
        if let Some((found, at)) = self.allocations.find(address, bytes.len() as u64) {
            let _ = found.buffer.write(at, bytes);
        }
    }

    fn changed(&mut self) {
        if let Some(waits) = self.waits {
            waits.changed();
        }
    }
}

/// What a load sees of bytes some of which are on their way, or have changed.
pub(super) struct Seen {
    pub(super) bytes: Vec<u8>,
    /// Whether all of them were ever written.
    pub(super) written: bool,
}

/// The stores that a workgroup under way sees, or some of its waves.
pub(super) struct Late<'c> {
    pub(super) stores: visibility::Late<'c>,
    pub(super) global: Global<'c>,
    /// By wave; empty where loads are in order.
    pub(super) sight: &'c mut [Sight],
}

impl Late<'_> {
    /// What a load of wave `wave` sees of `bytes` bytes of `buffer` from `at` on, unless it is what global memory holds.
    pub(super) fn seen(&mut self, wave: u32, buffer: &GlobalBuffer, at: usize, bytes: usize) -> Option<Seen> {
        let address = buffer.address() + at as u64;
        if !self.stores.covers(wave, address, bytes) {
            let (past, sight) = (self.global.past?.borrow(), self.sight.get_mut(wave as usize)?);
            let mut all = vec![0; bytes];
            buffer.load::<1>(at, bytes, |i, bits| all[i] = bits as u8);
            let old = sight.load(&past, self.stores.choices, address, &mut all);
            return old.then_some(Seen { bytes: all, written: true });
        }
        self.knows(wave, address, bytes);
        let mut all = vec![0; bytes];
        buffer.load::<1>(at, bytes, |i, bits| all[i] = bits as u8);
        let mut unwritten = (0..bytes).filter(|i| !buffer.is_written(at + i, 1)).count();
        self.stores.overlay(wave, address, bytes, |i, byte| {
            all[i] = byte;
            unwritten -= usize::from(!buffer.is_written(at + i, 1));
        });
        Some(Seen { bytes: all, written: unwritten == 0 })
    }

    /// Of `bytes` bytes at `address`, wave `wave` sees nothing older from now on.
    fn knows(&mut self, wave: u32, address: u64, bytes: usize) {
        if let Some(sight) = self.sight.get_mut(wave as usize) {
            sight.knows(address, bytes);
        }
    }

    /// What wave `wave` loads from now on is loaded from now on.
    pub(super) fn order(&mut self, wave: u32) {
        if let (Some(past), Some(sight)) = (self.global.past, self.sight.get_mut(wave as usize)) {
            sight.order(&past.borrow());
        }
    }

    /// All waves of the workgroup have come to a barrier.
    pub(super) fn barrier(&mut self) {
        if let Some(past) = self.global.past {
            self.sight.iter_mut().for_each(|sight| sight.order(&past.borrow()));
        }
    }

    /// Wave `wave` makes an operation on vector memory.
    pub(super) fn issue(&mut self, wave: u32) {
        self.stores.issue(wave);
    }

    /// Lane `lane` of wave `wave` stores `bytes` at `address`; they go as far as `reach` by themselves.
    pub(super) fn store(&mut self, by: (u32, usize), address: u64, bytes: &[u8], reach: Option<Reach>) {
        self.knows(by.0, address, bytes.len());
        self.stores.store(by, address, bytes, reach);
    }

    /// An update of `bytes` bytes at `address` by wave `wave` comes.
    pub(super) fn settle(&mut self, wave: u32, address: u64, bytes: u64) {
        self.stores.settle(&mut self.global, wave, address, bytes);
        self.knows(wave, address, bytes as usize);
        self.global.changes(address, bytes as usize);
    }

    /// The lanes of `lanes` execute a release that reaches as far as `reach`.
    pub(super) fn release(&mut self, wave: u32, lanes: u64, reach: Reach) {
        self.stores.release(&mut self.global, wave, lanes, reach);
    }

    /// The lanes of `lanes` wait until what they stored is visible as far as `reach`.
    pub(super) fn drain(&mut self, wave: u32, lanes: u64, reach: Reach) {
        self.stores.drain(&mut self.global, wave, lanes, reach);
        self.order(wave);
    }

    /// Wave `wave` has at most `n` operations on vector memory outstanding.
    pub(super) fn wait_count(&mut self, wave: u32, n: u32) {
        self.stores.wait_count(&mut self.global, wave, n);
        self.order(wave);
    }

    /// Wave `wave` is through a time slice, or has let others run.
    pub(super) fn chance(&mut self, wave: u32, yielded: bool) {
        self.stores.chance(&mut self.global, wave, yielded);
    }

    /// Moves something on; whether there was anything.
    pub(super) fn move_any(&mut self) -> bool {
        self.stores.move_any(&mut self.global)
    }

    /// The workgroup has ended; with `launch`, its launch.
    pub(super) fn end(&mut self, launch: bool) {
        self.stores.end(&mut self.global);
        if launch {
            self.stores.end_launch(&mut self.global);
        }
    }
}
