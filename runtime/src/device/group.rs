//! Launches on several devices that run together and wait for each other.

use std::any::Any;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Instant;

use lathe_dsl::kernel::{Arguments, Host};

use super::{Cpu, Device, LaunchReport, Stream, cpu};
#[cfg(feature = "jit")]
use super::{Gcn, gcn};
use crate::error::Error;
use crate::jit::Compiled;
use crate::launch::ArgBlock;

/// Launches that run together, each *rank* on its own device and stream, so that they may wait for each other's stores.
///
/// * On `cpu` and `gcn` all workgroups of all ranks are resident at once and take turns, on whatever host threads there are. With a
///   seed the turns are random and stores that nothing orders become visible late and out of order, the same way for the same seed:
///   [`crate::interp::explore`] runs many seeds. A wait that can never end is an error.
/// * On GPUs each rank has a stream of its own. Ranks whose workgroups might not all be on the device at once are refused.
///
/// ```no_run
/// # use std::sync::Arc;
/// # use lathe_runtime::{Error, device::{Device, Group}, jit::Compiled};
/// # fn f<'a, K: lathe_dsl::Kernel>(
/// #     devices: &[Arc<dyn Device>],
/// #     push: &Arc<Compiled>,
/// #     args: &[<K::Args as lathe_dsl::kernel::Arguments<K>>::On<lathe_dsl::kernel::Host<'a>>],
/// # ) -> Result<(), Error> {
/// let mut group = Group::new();
/// for (device, args) in devices.iter().zip(args) {
///     let rank = group.rank(device);
///     group.launch::<K>(rank, push, args)?;
/// }
/// group.run()?;
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
pub struct Group<'a> {
    seed: Option<u64>,
    ranks: Vec<Rank>,
    args: PhantomData<&'a ()>,
}

/// One device's launches, in order.
pub(super) struct Rank {
    pub(super) device: Arc<dyn Device>,
    pub(super) launches: Vec<(Arc<Compiled>, Box<ArgBlock>)>,
}

/// What went wrong, with the rank to blame.
pub(super) type Blamed = (usize, Error);

impl<'a> Group<'a> {
    /// No rank yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// With turns that `seed` chooses instead of those of the devices' own options; GPUs take no notice.
    pub fn seeded(seed: u64) -> Self {
        Self { seed: Some(seed), ..Self::default() }
    }

    /// A further rank, on `device`, which other ranks may be on as well. What comes back is its number.
    pub fn rank(&mut self, device: &Arc<dyn Device>) -> usize {
        self.ranks.push(Rank { device: device.clone(), launches: vec![] });
        self.ranks.len() - 1
    }

    /// Adds a launch to rank number `rank`, which begins when those that the rank was given before have ended. Every argument is
    /// checked against its declaration first. A grid without workgroups launches nothing.
    ///
    /// # Errors
    /// As [`Compiled::launch`], and [`Error::NoRank`].
    pub fn launch<K: lathe_dsl::Kernel>(
        &mut self,
        rank: usize,
        compiled: &Arc<Compiled>,
        args: &<K::Args as Arguments<K>>::On<Host<'a>>,
    ) -> Result<(), Error> {
        let ranks = self.ranks.len();
        let to = self.ranks.get_mut(rank).ok_or(Error::NoRank { rank, ranks })?;
        let block = compiled.packed::<K>(to.device.id(), args)?;
        if compiled.kernel().launch.blocks() > 0 {
            to.launches.push((compiled.clone(), block));
        }
        Ok(())
    }

    /// Runs everything and waits for it: by rank, what each launch tells.
    ///
    /// # Errors
    /// [`Error::Rank`] with what the lowest rank to blame did wrong, of which a [`Error::NotCoResident`] comes before anything runs. A
    /// fault of a kernel is every rank's on its GPU, so the lowest of them tells it; [`Error::Faulted`] lists the kernels that can have
    /// been it. [`Error::MixedGroup`] for devices of different kinds.
    ///
    /// Where a GPU refuses a launch, the ranks that were launched before are not waited for, and may wait for ever: their devices' memory
    /// cannot be freed then.
    pub fn run(&self) -> Result<Vec<Vec<LaunchReport>>, Error> {
        let blame = |(rank, error)| Error::Rank { rank, error: Box::new(error) };
        if let Some(devices) = self.all::<Cpu>() {
            return cpu::together(&devices, &self.ranks, self.seed).map_err(blame);
        }
        #[cfg(feature = "jit")]
        if let Some(devices) = self.all::<Gcn>() {
            return gcn::together(&devices, &self.ranks, self.seed).map_err(blame);
        }
        if self.ranks.iter().all(|r| r.device.asynchronous().is_some()) {
            return streams(&self.ranks).map_err(blame);
        }
        Err(Error::MixedGroup { devices: self.ranks.iter().map(|r| r.device.name()).collect::<Vec<_>>().join(", ") })
    }

    /// The devices, if they are all of one kind.
    fn all<D: Device>(&self) -> Option<Vec<&D>> {
        let of = |rank: &'_ Rank| {
            let device: &dyn Any = &*rank.device;
            device.is::<D>()
        };
        if !self.ranks.iter().all(of) {
            return None;
        }
        self.ranks.iter().map(|rank| <dyn Any>::downcast_ref(&*rank.device as &dyn Any)).collect()
    }
}

/// An error unless all workgroups that may wait for each other are on their GPUs at once. Every kernel is loaded then.
fn resident(ranks: &[Rank]) -> Result<(), Blamed> {
    let mut rooms = vec![];
    for (number, rank) in ranks.iter().enumerate() {
        let of = rank.launches.iter().map(|(compiled, _)| rank.device.resident_blocks(compiled));
        rooms.push(of.collect::<Result<Vec<_>, _>>().map_err(|error| (number, error))?);
    }
    let blocks = |compiled: &Compiled| compiled.kernel().launch.blocks();
    // Launches of a rank follow each other, so the largest counts.
    let largest = |rank: &Rank| rank.launches.iter().map(|(compiled, _)| compiled.clone()).max_by_key(|c| blocks(c));
    for (number, rank) in ranks.iter().enumerate() {
        let device = &rank.device;
        // By name: one GPU can be open as several devices.
        let on_it = |i: &usize| !ranks[*i].launches.is_empty() && ranks[*i].device.name() == device.name();
        let sharers: Vec<usize> = (0..ranks.len()).filter(on_it).collect();
        if sharers.len() < 2 {
            let fits = |(compiled, _): &(Arc<Compiled>, _)| device.co_resident(compiled, blocks(compiled));
            rank.launches.iter().try_for_each(fits).map_err(|error| (number, error))?;
            continue;
        }
        // With m the fewest workgroups that a compute unit holds of any of the kernels, none takes more than an m-th of anything that
        // a unit has: one that holds fewer than m has room for one more of any kernel. While fewer than m a unit run, there is one.
        let room = sharers.iter().flat_map(|i| &rooms[*i]).flatten().min();
        let up_to = |last: usize| {
            let before = sharers.iter().filter(|i| **i <= last);
            before.filter_map(|i| largest(&ranks[*i])).map(|c| blocks(&c)).fold(0, u64::saturating_add)
        };
        if let (Some(room), Some(compiled)) = (room, largest(rank))
            && up_to(number) > *room
        {
            let (kernel, device) = (compiled.kernel().name.clone(), device.name());
            let error = Error::NotCoResident { kernel, device, blocks: up_to(ranks.len()), resident: *room };
            return Err((number, error));
        }
    }
    Ok(())
}

/// Each rank on a stream of its own.
fn streams(ranks: &[Rank]) -> Result<Vec<Vec<LaunchReport>>, Blamed> {
    resident(ranks)?;
    let mut streams = vec![];
    for (number, rank) in ranks.iter().enumerate() {
        streams.push(rank.device.stream().map_err(|error| (number, error))?);
    }
    let start = Instant::now();
    for (number, rank) in ranks.iter().enumerate() {
        for (index, (compiled, block)) in rank.launches.iter().enumerate() {
            if let Err(error) = streams[number].launch(compiled, block) {
                let begun = number + usize::from(index > 0);
                leave(streams.into_iter().zip(ranks).take(begun), &error, &rank.device.name());
                return Err((number, error));
            }
        }
    }
    // Every rank is waited for, whatever became of the others.
    let done: Vec<_> = streams.iter().map(|s| s.synchronize().map(|()| start.elapsed())).collect();
    let mut reports = vec![];
    for (number, (done, rank)) in done.into_iter().zip(ranks).enumerate() {
        let time = done.map_err(|error| (number, error))?;
        reports.push(vec![LaunchReport { time, findings: vec![] }; rank.launches.len()]);
    }
    Ok(reports)
}

/// Leaves what was given, because a launch on `device` failed: it may wait for that one for ever, and a stream that is dropped waits
/// for its work. After a fault nothing runs on its own GPU any more.
fn leave<'r>(given: impl Iterator<Item = (Stream, &'r Rank)>, error: &Error, device: &str) {
    for (stream, rank) in given {
        if !matches!(error, Error::Faulted(_)) || rank.device.name() != device {
            std::mem::forget(stream);
        }
    }
}
