//! Waits for messages that gave up: where kernels record them, and what the records say.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lathe_dsl::builder::{HEALTH_WORDS, NO_SOURCE, TAG_SLOTS, WAITED_UNIT_NS};
use lathe_dsl::kernel::BufferArg;

use crate::buffer::DeviceBuffer;
use crate::device::Device;
use crate::error::Error;

/// The health records and the alarm of a rank's launches ([`lathe_dsl::builder::Mailbox::bounded`]).
///
/// A wait that gives up leaves a record of its workgroup, unless there is one, raises the alarm, and lets the kernel go on: its
/// results are then wrong. [`MailboxHealth::check`] tells, after a launch has been waited for.
pub struct MailboxHealth {
    rank: u32,
    records: DeviceBuffer<u32>,
    alarm: DeviceBuffer<u32>,
}

impl MailboxHealth {
    /// None gave up. For launches of `rank` on `device` with at most `workgroups` workgroups.
    ///
    /// # Errors
    /// The device has no room.
    pub fn new(device: &Arc<dyn Device>, rank: u32, workgroups: u32) -> Result<Self, Error> {
        let words = workgroups as usize * HEALTH_WORDS as usize;
        let records = DeviceBuffer::from_slice(device, &vec![0; words])?;
        Ok(Self { rank, records, alarm: DeviceBuffer::from_slice(device, &[0])? })
    }

    /// The records, `[workgroups][8]`.
    pub fn health(&self) -> BufferArg<'_, u32> {
        self.records.arg()
    }

    /// The alarm, `[1]`.
    pub fn alarm(&self) -> BufferArg<'_, u32> {
        self.alarm.arg()
    }

    /// Whether all waits have ended with what they waited for, since the records were cleared. `regions` names the regions that
    /// the kernel's messages lie in, by their number.
    ///
    /// # Errors
    /// [`Error::GaveUp`] with the first workgroup's record and the number of others; or reading failed.
    pub fn check(&self, regions: &[(u32, &'static str)]) -> Result<(), Error> {
        if self.alarm.to_vec()? == [0] {
            return Ok(());
        }
        let records = self.records.to_vec()?;
        let mut given_up = records.chunks_exact(HEALTH_WORDS as usize).filter(|r| r[0] != 0);
        let first = given_up.next().map(|r| Wait::of(r, regions));
        Err(Error::GaveUp(Arc::new(GaveUp { rank: self.rank, first, others: given_up.count() })))
    }

    /// Forgets what gave up.
    ///
    /// # Errors
    /// Writing failed.
    pub fn clear(&self) -> Result<(), Error> {
        let device = self.records.device();
        device.write(self.records.address(), &vec![0; self.records.len() * 4])?;
        device.write(self.alarm.address(), &[0; 4])
    }
}

/// Waits of one rank that gave up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GaveUp {
    /// The rank whose kernel waited.
    pub rank: u32,
    /// That of the lowest workgroup; `None` if the alarm was raised and no record is there, which then was cleared or overwritten.
    pub first: Option<Wait>,
    /// Workgroups that also gave up.
    pub others: usize,
}

/// A wait that gave up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wait {
    /// Number of the workgroup.
    pub workgroup: u32,
    /// Number of the region that the message was to come to.
    pub region: u32,
    /// The region's name, if it has one.
    pub name: Option<&'static str>,
    /// The pair in the region, or in its half of this epoch.
    pub pair: u32,
    /// Rank that the message was to come from.
    pub source: Option<u32>,
    /// The tag waited for.
    pub wanted: u32,
    /// The tag that was there.
    pub seen: u32,
    /// How long it waited.
    pub waited: Duration,
}

impl Wait {
    fn of(record: &[u32], regions: &[(u32, &'static str)]) -> Self {
        let region = record[1];
        Self {
            workgroup: record[5],
            region,
            name: regions.iter().find(|(id, _)| *id == region).map(|(_, name)| *name),
            pair: record[2],
            source: (record[7] != NO_SOURCE).then_some(record[7]),
            wanted: record[3],
            seen: record[4],
            waited: Duration::from_nanos(u64::from(record[6]) * WAITED_UNIT_NS),
        }
    }
}

impl fmt::Display for GaveUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(first) = &self.first else {
            return write!(f, "rank {}: a wait for a message gave up; there is no record of it", self.rank);
        };
        write!(f, "rank {}: {first}", self.rank)?;
        match self.others {
            0 => Ok(()),
            1 => f.write_str("; another workgroup gave up, too"),
            n => write!(f, "; {n} more workgroups gave up, too"),
        }
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "workgroup {} waited {:?} for a message", self.workgroup, self.waited)?;
        if let Some(source) = self.source {
            write!(f, " from rank {source}")?;
        }
        match self.name {
            Some(name) => write!(f, " in region `{name}`")?,
            None => write!(f, " in region {}", self.region)?,
        }
        write!(f, ", pair {}: wanted {}, found {}", self.pair, Tag(self.wanted), Tag(self.seen))
    }
}

/// A tag, as the step that it belongs to.
struct Tag(u32);

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.checked_sub(1) {
            None => f.write_str("no tag"),
            Some(n) => write!(f, "tag {:#x} (epoch {}, slot {})", self.0, n / TAG_SLOTS, n % TAG_SLOTS),
        }
    }
}

#[cfg(test)]
mod tests {
    use lathe_dsl::builder::step_tag_of;

    use super::*;
    use crate::Engine;

    fn health(records: [[u32; 8]; 3]) -> MailboxHealth {
        let device = Engine::open("cpu", None).unwrap().device;
        let health = MailboxHealth::new(&device, 2, 3).unwrap();
        assert!(health.check(&[]).is_ok());
        device.write(health.records.address(), bytemuck::cast_slice(&records)).unwrap();
        device.write(health.alarm.address(), &[1, 0, 0, 0]).unwrap();
        health
    }

    #[test]
    fn a_record_is_told_in_words() {
        let record = [1, 7, 128, step_tag_of(5, 3), step_tag_of(4, 3), 1, 1000, 6];
        let one = health([[0; 8], record, [0; 8]]);
        assert_eq!(
            one.check(&[(7, "cmb")]).unwrap_err().to_string(),
            "rank 2: workgroup 1 waited 1.024ms for a message from rank 6 in region `cmb`, pair 128: wanted tag 0x504 (epoch 5, \
             slot 3), found tag 0x404 (epoch 4, slot 3)"
        );
        let silent = [1, 9, 0, step_tag_of(5, 255), 0, 2, 5, NO_SOURCE];
        assert_eq!(
            health([silent, record, record]).check(&[(7, "cmb")]).unwrap_err().to_string(),
            "rank 2: workgroup 2 waited 5.12µs for a message in region 9, pair 0: wanted tag 0x600 (epoch 5, slot 255), found no \
             tag; 2 more workgroups gave up, too"
        );
        assert!(
            health([record, record, [0; 8]])
                .check(&[])
                .unwrap_err()
                .to_string()
                .ends_with("; another workgroup gave up, too")
        );
        let none = health([[0; 8]; 3]);
        assert!(none.check(&[]).unwrap_err().to_string().ends_with("there is no record of it"));
        none.clear().unwrap();
        one.clear().unwrap();
        assert!(none.check(&[]).is_ok() && one.check(&[]).is_ok());
        assert!(one.records.to_vec().unwrap().iter().all(|w| *w == 0));
    }
}
