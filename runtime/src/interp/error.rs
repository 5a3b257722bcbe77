//! What a launch can report: errors and findings.

use std::fmt;

use lathe_dsl::ir::Location;

use super::watch::{EndlessWait, NanMade, Race};

/// Where something happened: source line, workgroup and thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Site {
    /// The operation in the author's source.
    pub location: Location,
    /// The launch, if it is one of a [group](super::launch_group).
    pub member: Option<Member>,
    /// Index of the workgroup in the grid (x, y, z).
    pub block: [u32; 3],
    /// Index of the thread in its workgroup (x, y, z).
    pub thread: [u32; 3],
    /// Number of the wave in its workgroup.
    pub wave: u32,
    /// Number of the lane in its wave.
    pub lane: u32,
}

/// A launch of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Member {
    /// Number of the device in the group.
    pub rank: u32,
    /// Number among the device's launches, if there are several.
    pub launch: Option<u32>,
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {}", self.rank)?;
        self.launch.map_or(Ok(()), |launch| write!(f, ", launch {launch}"))
    }
}

struct Triple([u32; 3]);

impl fmt::Display for Triple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({},{},{})", self.0[0], self.0[1], self.0[2])
    }
}

/// The part after the location: `block (3,0,0), thread (17,0,0), wave 0, lane 17`, in a group after `rank 1, `.
impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { block, thread, wave, lane, .. } = self;
        if let Some(member) = self.member {
            write!(f, "{member}, ")?;
        }
        write!(f, "block {}, thread {}, wave {wave}, lane {lane}", Triple(*block), Triple(*thread))
    }
}

/// Direction of a memory access.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum AccessKind {
    /// A load.
    Read,
    /// A store.
    Write,
    /// An atomic read-modify-write.
    Atomic,
}

impl fmt::Display for AccessKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read of",
            Self::Write => "write to",
            Self::Atomic => "atomic update of",
        })
    }
}

/// Elements `first .. first + count`, for messages.
struct Elements(i64, u32);

impl fmt::Display for Elements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.1 {
            1 => write!(f, "element {}", self.0),
            n => write!(f, "elements {}..{}", self.0, self.0.saturating_add(n.into())),
        }
    }
}

/// Why some thread does not come to a barrier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Absence {
    /// Control flow took it past the barrier, at this branch or loop.
    PassedBy(Location),
    /// It has ended.
    Ended,
    /// It waits at another barrier.
    Elsewhere(Location),
}

/// What a thread did wrong.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FaultKind {
    /// An LDS access leaves the array that its pointer was made from.
    #[error("{access} LDS array `{array}` at {}, which has {len} elements", Elements(*element, *count))]
    LdsOutOfRange {
        /// Load or store.
        access: AccessKind,
        /// The array.
        array: &'static str,
        /// First element accessed.
        element: i64,
        /// Elements accessed.
        count: u32,
        /// Elements the array has.
        len: u32,
    },
    /// A load reads LDS that this workgroup has not stored to.
    #[error(
        "read of LDS array `{array}` at element {element}, which was never written in this workgroup before; if another wave writes it, a barrier in between is missing"
    )]
    LdsUninitialised {
        /// The array.
        array: &'static str,
        /// First such element.
        element: i64,
    },
    /// An access through a pointer that was made from an integer, to LDS that does not lie in one array.
    #[error("{access} LDS at byte {address}, {bytes} bytes that lie in no array")]
    LdsUnallocated {
        /// Load, store or atomic.
        access: AccessKind,
        /// First byte in the workgroup's LDS.
        address: i64,
        /// Bytes accessed.
        bytes: u32,
    },
    /// An access to LDS into which a copy is under way.
    #[error(
        "{access} LDS array `{array}` at element {element}: bytes whose copy to LDS ({copy}) has not been waited for"
    )]
    LdsPending {
        /// Load or store.
        access: AccessKind,
        /// The array.
        array: &'static str,
        /// First such element.
        element: i64,
        /// The copy.
        copy: Location,
    },
    /// An LDS address is not a multiple of the element's size.
    #[error("{access} LDS array `{array}` at LDS byte {address}, which is not aligned to its {bytes}-byte elements")]
    LdsMisaligned {
        /// Load or store.
        access: AccessKind,
        /// The array.
        array: &'static str,
        /// Byte address in the workgroup's LDS.
        address: u32,
        /// Bytes of an element.
        bytes: u32,
    },
    /// An address is not a multiple of what the access promises, or an atomic needs.
    #[error("{access} {place} at address {address:#x}, which is not aligned to {align} bytes")]
    BrokenAlignment {
        /// Load, store or atomic.
        access: AccessKind,
        /// Which memory.
        place: &'static str,
        /// The address.
        address: u64,
        /// What it must be a multiple of.
        align: u32,
    },
    /// An access through a pointer, or within a made buffer, to memory that is not allocated.
    #[error("{access} global memory at address {address:#x}, {bytes} bytes that lie in no allocation")]
    Unallocated {
        /// Load, store or atomic.
        access: AccessKind,
        /// First byte.
        address: u64,
        /// Bytes accessed.
        bytes: u32,
    },
    /// `make_buffer` with an address or an extent that no buffer may have.
    #[error(
        "buffer of {bytes} bytes at {address:#x}; allowed are addresses aligned to {align} and at most 0xffffff00 bytes"
    )]
    BadBuffer {
        /// Its address.
        address: u64,
        /// Its extent.
        bytes: u64,
        /// Alignment that the element type wants.
        align: u32,
    },
    /// A number that does not fit `idx`, or the type that an `idx` is converted to.
    #[error("index overflow")]
    IndexOverflow,
    /// An element that the vector does not have.
    #[error("element {index} of a vector of {len}")]
    VectorIndex {
        /// The index.
        index: u32,
        /// Elements of the vector.
        len: u32,
    },
    /// The condition of `assume` does not hold.
    #[error("assumption does not hold")]
    BrokenAssumption,
    /// A lane's value is needed and the lane is not active.
    #[error("value of lane {lane}, which is not active")]
    InactiveLane {
        /// The lane that is not active.
        lane: u32,
    },
    /// A value that must be the same in all active lanes is not. The site is the first lane that differs.
    #[error("{what} differs between lanes of the wave")]
    NotUniform {
        /// What it is.
        what: &'static str,
    },
    /// A value that must be the same in all waves of the workgroup that come to the same operation is not.
    #[error("{what} differs between waves of the workgroup")]
    NotUniformInWorkgroup {
        /// What it is.
        what: &'static str,
    },
    /// Integer division or remainder by zero.
    #[error("integer division by zero")]
    DivisionByZero,
    /// Some thread waits at a barrier that another one does not reach. The site is the waiting thread's.
    #[error("barrier not reached by all threads: this one waits, thread {} {}", Triple(*missing), Why(*absence))]
    BarrierNotReached {
        /// A thread that does not reach it.
        missing: [u32; 3],
        /// What it does instead.
        absence: Absence,
    },
    /// A wave ran more instructions than [`super::Options::step_limit`] allows; the site is the loop it is in.
    #[error("loop still running after {limit} instructions of its wave, the limit that `step_limit` sets")]
    StepLimit {
        /// The limit.
        limit: u64,
    },
    /// Nothing that still runs can ever go on. The site is the loop of a wave that waits.
    #[error("{0}")]
    EndlessWait(Box<EndlessWait>),
    /// A buffer access that [`super::Options::strict_bounds`] makes an error.
    #[error("{0}")]
    Buffer(BufferAccess),
}

struct Why(Absence);

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Absence::PassedBy(at) => write!(f, "does not take this path, which leads off at {at}"),
            Absence::Ended => f.write_str("has ended"),
            Absence::Elsewhere(at) => write!(f, "waits at {at}"),
        }
    }
}

/// What a thread did wrong, and where.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}: {kind} ({site})", site.location)]
pub struct Fault {
    /// Where.
    pub site: Site,
    /// What.
    pub kind: FaultKind,
}

/// What is unusual about a buffer access.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum FindingKind {
    /// It begins at or past the buffer's end: the load gave 0, the store was dropped.
    OutOfRange,
    /// It begins within the buffer and ends past it: the load gave 0 in every element, the store was dropped whole.
    Straddle,
    /// Its byte offset is not a multiple of the element's size, which some targets fault on.
    Misaligned,
    /// It reads bytes that nobody ever wrote ([`super::GlobalBuffer::uninit`]).
    Uninitialised,
}

/// An unusual buffer access.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BufferAccess {
    /// What is unusual.
    pub kind: FindingKind,
    /// Load or store.
    pub access: AccessKind,
    /// Name of the buffer parameter.
    pub buffer: &'static str,
    /// Byte offset of the access from the buffer's start; may be negative.
    pub offset: i64,
    /// Bytes of the access.
    pub bytes: u32,
    /// Bytes of the buffer.
    pub extent: u64,
}

impl fmt::Display for BufferAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, access, buffer, offset, bytes, extent } = self;
        let end = offset.saturating_add((*bytes).into());
        match kind {
            FindingKind::OutOfRange => {
                write!(f, "{access} buffer `{buffer}` at bytes {offset}..{end}, which has {extent} bytes")
            }
            FindingKind::Straddle => {
                write!(f, "{access} buffer `{buffer}` at bytes {offset}..{end} straddles its end at byte {extent}")
            }
            FindingKind::Misaligned => {
                write!(f, "{access} buffer `{buffer}` at byte {offset}, which is not aligned to the accessed elements")
            }
            FindingKind::Uninitialised => {
                write!(f, "{access} buffer `{buffer}` at bytes {offset}..{end}, some of which were never written")
            }
        }
    }
}

/// What a launch does in spite of.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Unusual {
    /// An unusual but defined buffer access.
    Access(BufferAccess),
    /// A data race: what other targets make of it is undefined.
    Race(Race),
    /// A NaN out of nothing.
    Nan(NanMade),
}

impl fmt::Display for Unusual {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Access(access) => access.fmt(f),
            Self::Race(race) => race.fmt(f),
            Self::Nan(nan) => nan.fmt(f),
        }
    }
}

/// What was found of one operation; of two that race.
///
/// The site is the first thread's of the lowest workgroup that did it, whatever the schedule; of a race that of the
/// operation which is later in the code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// Where it was seen first.
    pub site: Site,
    /// What was seen first.
    pub what: Unusual,
    /// How many times, over all lanes and workgroups; of a race always 1, because the schedule has a part in that.
    pub count: u64,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({}", self.site.location, self.what, self.site)?;
        match (self.count, &self.what) {
            (1, _) => f.write_str(")"),
            (n, Unusual::Access(_)) => write!(f, "; {n} such accesses)"),
            (n, _) => write!(f, "; {n} times)"),
        }
    }
}

/// Why a kernel cannot be run, or what went wrong when it ran.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel breaks a rule of Kernel IR (the verifier was not run).
    #[error("{}kernel `{kernel}`: {message}", At(*location))]
    Malformed {
        /// Its name.
        kernel: String,
        /// The operation to blame, if any.
        location: Option<Location>,
        /// What is wrong.
        message: String,
    },
    /// Number of arguments.
    #[error("kernel `{kernel}` takes {expected} arguments, {given} were given")]
    ArgumentCount {
        /// Kernel name.
        kernel: String,
        /// Parameters it has.
        expected: usize,
        /// Arguments given.
        given: usize,
    },
    /// An argument does not fit its parameter.
    #[error("kernel `{kernel}`: argument `{param}` {message}")]
    Argument {
        /// Kernel name.
        kernel: String,
        /// Name of the parameter.
        param: &'static str,
        /// What is wrong with it.
        message: String,
    },
    /// Matrix products were to be rounded as a chip does whose fragments they are not.
    #[error(
        "kernel `{kernel}` multiplies {fragments} fragments, which cannot be rounded as {rounding} does; allowed is exact"
    )]
    Rounding {
        /// Kernel name.
        kernel: String,
        /// The rounding asked for.
        rounding: &'static str,
        /// The product's fragments.
        fragments: &'static str,
    },
    /// Launches of one group whose waves are of different widths.
    #[error("kernel `{kernel}` has waves of {wave} lanes, others of its group have {other}")]
    MixedWaves {
        /// Kernel name.
        kernel: String,
        /// Lanes of its waves.
        wave: u32,
        /// Lanes of the first kernel's waves.
        other: u32,
    },
    /// A host access leaves the buffer.
    #[error("bytes {offset}..{} of a buffer of {extent} bytes", offset.saturating_add(*bytes))]
    HostAccess {
        /// First byte.
        offset: usize,
        /// Bytes accessed.
        bytes: usize,
        /// Bytes the buffer has.
        extent: usize,
    },
    /// A thread did something undefined.
    #[error(transparent)]
    Fault(#[from] Box<Fault>),
}

/// The first error of a group of launches: of the one to blame.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("rank {rank}: {error}")]
pub struct GroupError {
    /// Number of its device in the group.
    pub rank: usize,
    /// What went wrong.
    pub error: Error,
}

struct At(Option<Location>);

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(location) => write!(f, "{location}: "),
            None => Ok(()),
        }
    }
}
