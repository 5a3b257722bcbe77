//! A rank's place among the ranks.

use std::sync::Arc;

use lathe_dsl::kernel::BufferArg;
use lathe_runtime::device::{Device, PeerTable};
use lathe_runtime::mailbox::MailboxHealth;
use lathe_runtime::{DeviceBuffer, Error};

use super::{ArgsError, MlaPost};
use crate::mla::message::REGIONS;

/// What a rank keeps from step to step: which one it is, the regions of all, the count of steps, and the records of waits that gave
/// up.
pub struct Seat {
    rank: u32,
    /// A rank that is alone has an empty one.
    table: PeerTable,
    epoch: DeviceBuffer<u32>,
    health: MailboxHealth,
    workgroups: u32,
}

impl Seat {
    /// That of `rank` on `device`, for kernels of `workgroups` workgroups. `table` has all ranks' regions, each of
    /// [`Messages::region_bytes`](crate::mla::message::Messages::region_bytes).
    ///
    /// # Errors
    /// The device has no room.
    pub fn new(device: &Arc<dyn Device>, rank: u32, table: PeerTable, workgroups: u32) -> Result<Self, Error> {
        let epoch = DeviceBuffer::from_slice(device, &[0])?;
        Ok(Self { rank, table, epoch, health: MailboxHealth::new(device, rank, workgroups)?, workgroups })
    }

    /// That of a rank that is alone.
    ///
    /// # Errors
    /// The device has no room.
    pub fn alone(device: &Arc<dyn Device>, workgroups: u32) -> Result<Self, Error> {
        Self::new(device, 0, PeerTable::new(device, &[])?, workgroups)
    }

    /// The rank.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Sets the count of steps, which all ranks must have in common; each step needs a count of its own, one more than the last. A
    /// step that has no tokens is not counted: nobody waits in it. Modulo 2^32: steps 2^22 apart have the same tags, of which the
    /// older ones are long overwritten.
    ///
    /// On a GPU this waits for what the device was given, so let all ranks begin before one of them is launched.
    ///
    /// # Errors
    /// Writing failed.
    pub fn begin(&self, epoch: u32) -> Result<(), Error> {
        self.epoch.device().write(self.epoch.address(), &epoch.to_le_bytes())
    }

    /// Whether all waits ended in time; asked after a launch has been waited for, before its results are used.
    ///
    /// # Errors
    /// [`Error::GaveUp`] with the first wait that did not; reading failed.
    pub fn check(&self) -> Result<(), Error> {
        self.health.check(REGIONS)
    }

    /// Forgets waits that gave up: what they left behind must be known to be gone, as it is once all ranks begin a later step.
    ///
    /// # Errors
    /// Writing failed.
    pub fn clear(&self) -> Result<(), Error> {
        self.health.clear()
    }

    /// Whether a kernel's messages fit the regions: exactly, as where their halves meet depends on their number.
    pub(super) fn fits(&self, key: &MlaPost) -> Result<(), ArgsError> {
        let (regions, wanted) = (self.table.regions(), key.messages().region_bytes());
        let ranks = if key.ranks > 1 { key.ranks as usize } else { 0 };
        if regions.len() != ranks {
            return Err(ArgsError::Peers { given: regions.len(), wanted: key.ranks as usize });
        }
        let other = regions.iter().map(|r| r.region().bytes()).enumerate().find(|(_, bytes)| *bytes != wanted);
        if let Some((rank, bytes)) = other {
            return Err(ArgsError::Region { rank, bytes, wanted });
        }
        if self.workgroups != key.ctas() {
            return Err(ArgsError::Health { given: self.workgroups, wanted: key.ctas() });
        }
        Ok(())
    }

    pub(super) fn peers(&self) -> BufferArg<'_, u64> {
        self.table.arg()
    }

    /// The count of steps, `[1]`: for a kernel that counts them on the device.
    pub fn epoch(&self) -> BufferArg<'_, u32> {
        self.epoch.arg()
    }

    pub(super) fn health(&self) -> &MailboxHealth {
        &self.health
    }
}
