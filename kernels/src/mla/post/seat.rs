//! A rank's place among the ranks.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lathe_dsl::builder::{TAG_EPOCHS, TAG_SLOTS};
use lathe_dsl::kernel::BufferArg;
use lathe_runtime::device::{Device, PeerTable};
use lathe_runtime::mailbox::MailboxHealth;
use lathe_runtime::{DeviceBuffer, Error};

use super::{ArgsError, MlaPost, StepError};
use crate::mla::message::{REGION, REGIONS, ROW_PAIRS, SLOT};

/// Bytes from a slot's start to the tag beside the LSE.
const TAG_AT: usize = ROW_PAIRS as usize * 8 + 4;

/// How far epoch `epoch` is ahead of `last` as their tags tell: modulo 2^22, from −2^21 to 2^21 − 1.
fn ahead(epoch: u32, last: u32) -> i32 {
    let bits = u32::BITS - TAG_EPOCHS.trailing_zeros();
    (epoch.wrapping_sub(last) << bits) as i32 >> bits
}

/// The latest of some epochs, of which tags tell some bits, as a number near `epoch`.
fn latest(epoch: u32, epochs: impl IntoIterator<Item = u32>) -> Option<u32> {
    let least = epochs.into_iter().map(|last| ahead(epoch, last)).min()?;
    Some(epoch.wrapping_add_signed(-least))
}

/// What a rank keeps from step to step: which one it is, the regions of all, the count of steps, and the records of waits that gave
/// up.
pub struct Seat {
    rank: u32,
    /// A rank that is alone has an empty one.
    table: PeerTable,
    epoch: DeviceBuffer<u32>,
    /// The last one that the host began.
    begun: Mutex<Option<u32>>,
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
        let health = MailboxHealth::new(device, rank, workgroups)?;
        Ok(Self { rank, table, epoch, begun: Mutex::new(None), health, workgroups })
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

    /// Sets the count of steps, which all ranks must have in common: the first one of a region that was never used is any, each other one
    /// is one more than the last. A step that has no tokens is not counted: nobody waits in it. Modulo 2^32.
    ///
    /// What the last one was, messages tell that the rank sent to its own region: so this knows of other seats that used the region, and
    /// of steps that the device counted. Other ranks may be one step ahead. A rank that is alone may begin any step.
    ///
    /// On a GPU this waits for what the device was given, so let all ranks begin before one of them is launched.
    ///
    /// # Errors
    /// [`StepError::NotLater`], [`StepError::Skips`]: another epoch would let messages of two steps be taken for each other.
    /// [`StepError::NotRun`], [`StepError::GaveUp`]: the last step failed, and [`Seat::restart`] was not called since.
    /// [`StepError::Device`]: reading or writing failed.
    pub fn begin(&self, epoch: u32) -> Result<(), StepError> {
        let mut begun = self.begun();
        if self.has_messages() {
            self.check().map_err(StepError::of_wait)?;
            self.follows(epoch, self.unless_counted(*begun)?)?;
        }
        self.set(&mut begun, epoch)
    }

    /// As [`Seat::begin`], with any epoch that is later than those before, and whatever became of the last step; forgets waits that gave
    /// up. All ranks restart with the same epoch, while no launch of any of them is under way.
    ///
    /// # Errors
    /// [`StepError::NotLater`]; [`StepError::Device`].
    pub fn restart(&self, epoch: u32) -> Result<(), StepError> {
        let mut begun = self.begun();
        if self.has_messages() {
            let last = latest(epoch, self.sent(true)?.into_iter().chain(self.unless_counted(*begun)?));
            last.map_or(Ok(()), |last| self.is_later(epoch, last))?;
        }
        self.health.clear()?;
        self.set(&mut begun, epoch)
    }

    /// Whether there are others, and room for what they send: kernels of no tokens send nothing.
    fn has_messages(&self) -> bool {
        self.table.regions().iter().any(|region| region.region().bytes() > 0)
    }

    fn begun(&self) -> MutexGuard<'_, Option<u32>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, begun: &mut Option<u32>, epoch: u32) -> Result<(), StepError> {
        self.epoch.device().write(self.epoch.address(), &epoch.to_le_bytes())?;
        *begun = Some(epoch);
        Ok(())
    }

    /// The epoch that the host began, if the device has not counted on since.
    fn unless_counted(&self, begun: Option<u32>) -> Result<Option<u32>, Error> {
        let held = self.epoch.to_vec()?;
        Ok(begun.filter(|begun| held == [*begun]))
    }

    /// Whether `epoch` is the one after the last, and that one was run if it is `begun`.
    fn follows(&self, epoch: u32, begun: Option<u32>) -> Result<(), StepError> {
        let last = latest(epoch, self.sent(begun.is_none())?);
        let (rank, region) = (self.rank, REGION);
        if let Some(begun) = begun
            && last.is_none_or(|last| ahead(begun, last) > 0)
        {
            // The same one again is no step that follows.
            self.is_later(epoch, begun)?;
            return Err(StepError::NotRun { rank, region, epoch, last: begun });
        }
        let Some(last) = last else { return Ok(()) };
        self.is_later(epoch, last)?;
        if ahead(epoch, last) == 1 { Ok(()) } else { Err(StepError::Skips { rank, region, epoch, last }) }
    }

    fn is_later(&self, epoch: u32, last: u32) -> Result<(), StepError> {
        let (rank, region) = (self.rank, REGION);
        if ahead(epoch, last) > 0 { Ok(()) } else { Err(StepError::NotLater { rank, region, epoch, last }) }
    }

    /// Epochs, modulo 2^22, of the messages that this rank sent to itself: of the first in each half, or of all. Those of others may be of
    /// a step that this rank has not begun.
    fn sent(&self, all: bool) -> Result<Vec<u32>, Error> {
        let regions = self.table.regions();
        let Some(own) = regions.get(self.rank as usize) else { return Ok(vec![]) };
        let half = own.region().bytes() / 2;
        let of_source = half / regions.len() as u64;
        let mut bytes = vec![0; if all { of_source as usize } else { SLOT as usize }];
        let mut epochs = vec![];
        for begin in [0, half] {
            self.epoch.device().read(own.address() + begin + u64::from(self.rank) * of_source, &mut bytes)?;
            let tags = bytes.chunks_exact(SLOT as usize).filter_map(|slot| slot[TAG_AT..].first_chunk());
            let steps = tags.filter_map(|tag| u32::from_le_bytes(*tag).checked_sub(1));
            epochs.extend(steps.map(|step| step / TAG_SLOTS));
        }
        Ok(epochs)
    }

    /// Whether all waits ended in time; asked after a launch has been waited for, before its results are used.
    ///
    /// # Errors
    /// [`Error::GaveUp`] with the first wait that did not; reading failed.
    pub fn check(&self) -> Result<(), Error> {
        self.health.check(REGIONS)
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
        for (rank, region) in regions.iter().enumerate() {
            if let Some(other) = regions[..rank].iter().position(|other| other.address() == region.address()) {
                return Err(ArgsError::SameRegion { ranks: [other, rank] });
            }
        }
        // Of tables in different orders messages would go to other ranks than they are for.
        let device = self.epoch.device();
        if let Some(own) = regions.get(self.rank as usize).filter(|own| own.region().device() != device.id()) {
            let (rank, owner) = (self.rank, own.region().owner());
            return Err(ArgsError::NotOwnRegion { rank, owner, device: device.name() });
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
