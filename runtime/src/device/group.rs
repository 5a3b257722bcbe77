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
/// * On GPUs each rank has a stream of its own. A rank whose workgroups cannot all be on the device at once is refused.
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
    /// [`Error::Rank`] with what the lowest rank to blame did wrong; [`Error::NotCoResident`] before anything runs;
    /// [`Error::MixedGroup`] for devices of different kinds.
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

/// Each rank on a stream of its own.
fn streams(ranks: &[Rank]) -> Result<Vec<Vec<LaunchReport>>, Blamed> {
    let mut streams = vec![];
    for (number, rank) in ranks.iter().enumerate() {
        let ready = || {
            for (compiled, _) in &rank.launches {
                // What shares the device takes room from it.
                let sharers = ranks.iter().filter(|other| other.device.id() == rank.device.id()).count() as u64;
                let blocks = compiled.kernel().launch.blocks();
                rank.device.co_resident(compiled, blocks.saturating_mul(sharers))?;
            }
            rank.device.stream()
        };
        streams.push(ready().map_err(|error| (number, error))?);
    }
    let start = Instant::now();
    let given = |stream: &Stream, rank: &Rank| {
        rank.launches.iter().try_for_each(|(compiled, block)| stream.launch(compiled, block))
    };
    let given: Vec<Result<(), Error>> = streams.iter().zip(ranks).map(|(s, rank)| given(s, rank)).collect();
    // Every rank is waited for, whatever became of the others.
    let done: Vec<_> = streams.iter().map(|s| s.synchronize().map(|()| start.elapsed())).collect();
    let mut reports = vec![];
    for (number, ((given, done), rank)) in given.into_iter().zip(done).zip(ranks).enumerate() {
        let time = given.and(done).map_err(|error| (number, error))?;
        reports.push(vec![LaunchReport { time, findings: vec![] }; rank.launches.len()]);
    }
    Ok(reports)
}
