//! What `mla_post` does not take.

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
}
