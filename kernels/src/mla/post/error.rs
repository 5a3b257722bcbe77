//! What `mla_post` does not take.

use lathe_runtime::Error;

/// Tensors, or a place among the ranks, that `mla_post` does not take. Strides count elements.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArgsError {
    /// A row is not dense.
    #[error("`{name}`: the last dimension has stride {stride}; rows must be dense")]
    LastStride {
        /// Of which tensor.
        name: &'static str,
        /// Its last stride.
        stride: u64,
    },
    /// Rows do not begin at multiples of 16 bytes.
    #[error("`{name}`: {what} is {bytes} bytes, which is no multiple of 16; rows must be aligned to 16 bytes")]
    Misaligned {
        /// Of which tensor.
        name: &'static str,
        /// The address, or a stride.
        what: &'static str,
        /// How many bytes it is.
        bytes: u64,
    },
    /// Offsets within the tensor do not fit 32 bits.
    #[error(
        "`{name}`: the stride of dimension {dimension} is {stride}, more than {most}: byte offsets would pass 32 bits"
    )]
    TooFar {
        /// Of which tensor.
        name: &'static str,
        /// Outermost is 0.
        dimension: usize,
        /// Its stride.
        stride: u64,
        /// What is allowed.
        most: u64,
    },
    /// The buffer ends before the tensor does.
    #[error("`{name}` ends at element {end} of a buffer of {len}")]
    Short {
        /// Which tensor.
        name: &'static str,
        /// Elements that the view needs.
        end: u64,
        /// Elements that there are.
        len: u64,
    },
    /// Splits must lie dense.
    #[error(
        "`{name}`: the stride of dimension {dimension} is {stride}, with splits it must be {wanted}: splits are dense"
    )]
    NotDense {
        /// Which tensor.
        name: &'static str,
        /// Outermost is 0.
        dimension: usize,
        /// Its stride.
        stride: u64,
        /// What it must be.
        wanted: u64,
    },
    /// There is no log-sum-exp.
    #[error("`lse` is missing; only one rank without splits has none")]
    NoLse,
    /// The memory is that of another device.
    #[error("`{name}` lies on {device}, `core` on {other}")]
    OtherDevice {
        /// Which tensor.
        name: &'static str,
        /// Where it lies.
        device: String,
        /// Where it should.
        other: String,
    },
    /// A tensor that is read is the one that is written.
    #[error("`{name}` overlaps `core`, which the kernel writes")]
    Overlap {
        /// Which tensor.
        name: &'static str,
    },
    /// The key is not allowed.
    #[error("{0}")]
    Key(String),
    /// The rank or the layer is none.
    #[error("{0}")]
    Step(String),
    /// There are too many or too few regions.
    #[error("{given} regions in the table of peers; the kernel is for {wanted} ranks")]
    Peers {
        /// How many there are.
        given: usize,
        /// How many there should be.
        wanted: usize,
    },
    /// The records of waits are those of another number of workgroups.
    #[error("health records of {given} workgroups; the kernel has {wanted}")]
    Health {
        /// How many there are.
        given: u32,
        /// How many there should be.
        wanted: u32,
    },
    /// A region is not made for the kernel.
    #[error("the region of rank {rank} has {bytes} bytes; the kernel's messages take {wanted}")]
    Region {
        /// Whose.
        rank: usize,
        /// Its size.
        bytes: u64,
        /// What it should be.
        wanted: u64,
    },
    /// Two ranks share a region.
    #[error("ranks {} and {} have the same region in the table of peers", ranks[0], ranks[1])]
    SameRegion {
        /// Which ranks.
        ranks: [usize; 2],
    },
    /// The rank's own region is another one's.
    #[error("the table of peers has a region of {owner} for rank {rank}, which is on {device}")]
    NotOwnRegion {
        /// The rank.
        rank: u32,
        /// Whose region there is in its place.
        owner: String,
        /// Where the rank is.
        device: String,
    },
}

/// A step that must not begin.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StepError {
    /// Messages of the step would be taken for those of an earlier one.
    #[error(
        "rank {rank}: epoch {epoch} is not later than epoch {last}, the last one of region `{region}` (epochs count modulo 2^22)"
    )]
    NotLater {
        /// Whose step.
        rank: u32,
        /// Its own region.
        region: &'static str,
        /// The epoch.
        epoch: u32,
        /// The last one before.
        last: u32,
    },
    /// Messages of the step might overwrite those of the last one.
    #[error(
        "rank {rank}: epoch {epoch} does not follow epoch {last}, the last one of region `{region}`: each step's is one more; to skip \
         some, all ranks restart"
    )]
    Skips {
        /// Whose step.
        rank: u32,
        /// Its own region.
        region: &'static str,
        /// The epoch.
        epoch: u32,
        /// The last one before.
        last: u32,
    },
    /// The step before was never run.
    #[error(
        "rank {rank}: epoch {epoch} begins, but no launch of epoch {last} has left anything in region `{region}`: that step was not run, and \
         all ranks must restart with a later one"
    )]
    NotRun {
        /// Whose step.
        rank: u32,
        /// Its own region.
        region: &'static str,
        /// The epoch.
        epoch: u32,
        /// The one before.
        last: u32,
    },
    /// A wait of an earlier step gave up.
    #[error("{0}; all ranks must restart with a later epoch")]
    GaveUp(Error),
    /// A device failed.
    #[error(transparent)]
    Device(#[from] Error),
}

impl StepError {
    /// What a look at the records of waits told.
    pub(super) fn of_wait(error: Error) -> Self {
        if matches!(error, Error::GaveUp(_)) { Self::GaveUp(error) } else { Self::Device(error) }
    }
}

impl From<ArgsError> for crate::run::RunError {
    fn from(error: ArgsError) -> Self {
        Self::Refused(std::sync::Arc::new(error))
    }
}

impl From<StepError> for crate::run::RunError {
    fn from(error: StepError) -> Self {
        Self::Refused(std::sync::Arc::new(error))
    }
}
