//! What the checks report.

use std::fmt;

use lathe_dsl::ir::{Location, Scalar};

use super::super::error::{AccessKind, Site};

/// Bytes that threads have in common.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum MemoryPlace {
    /// An element of an LDS array.
    Lds {
        /// The array.
        array: &'static str,
        /// Number of the element.
        element: u32,
    },
    /// A byte of a buffer.
    Global {
        /// Name of the buffer parameter, or `(allocation)`.
        buffer: &'static str,
        /// Byte offset from its start.
        offset: u64,
    },
}

impl fmt::Display for MemoryPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lds { array, element } => write!(f, "LDS array `{array}` at element {element}"),
            Self::Global { buffer, offset } => write!(f, "buffer `{buffer}` at byte {offset}"),
        }
    }
}

/// What could have ordered two accesses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Missing {
    /// Lanes execute one store and store different values.
    OneStore,
    /// A scope: both are atomic, but one of them only among threads to which the other's does not belong.
    Scope,
    /// Lanes of a wave: a fence, or a barrier for LDS, a drain for global memory.
    InWave,
    /// Waves of a workgroup, in LDS: a barrier.
    Barrier,
    /// Waves of a workgroup, in global memory: a drain or a fence, and then a barrier.
    DrainAndBarrier,
    /// Workgroups: a release and an acquire.
    Release,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OneStore => "the lanes store different values",
            Self::Scope => "both are atomic, but not in a scope that reaches the other",
            Self::InWave => "no fence or barrier orders lanes of the wave",
            Self::Barrier => "no barrier between them",
            Self::DrainAndBarrier => "no drain or fence, followed by a barrier, between them",
            Self::Release => "no release by one and acquire by the other between them",
        })
    }
}

/// Two accesses of different threads to a common byte, at least one of them a write and not both atomic, that nothing orders.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Race {
    /// The access at the finding's site.
    pub access: AccessKind,
    /// First common byte, or its element.
    pub place: MemoryPlace,
    /// The other access.
    pub other: AccessKind,
    /// The other access's site.
    pub other_site: Site,
    /// What could have ordered them.
    pub missing: Missing,
}

impl fmt::Display for Race {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { access, place, other, other_site, missing } = self;
        let other = match other {
            AccessKind::Read => "read",
            AccessKind::Write => "write",
            AccessKind::Atomic => "atomic update",
        };
        let at = other_site.location;
        write!(f, "{access} {place} races with the {other} at {at} of {other_site}: {missing}")
    }
}

/// Arithmetic that gave a NaN though no operand was one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NanMade {
    /// Its type.
    pub scalar: Scalar,
}

impl fmt::Display for NanMade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a NaN ({}) made of operands that are none", self.scalar)
    }
}

/// A wave that cannot go on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Waiter {
    /// The loop it goes round in, or the barrier it stands at; the first of its active threads.
    pub site: Site,
    /// What it waits for.
    pub on: WaitsOn,
}

/// What a wave waits for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WaitsOn {
    /// The other waves of its workgroup.
    Barrier,
    /// A change of memory: what its loop read last, and where it did.
    Memory(MemoryPlace, Location),
    /// Nothing: its loop reads no memory.
    Nothing,
}

impl fmt::Display for WaitsOn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Barrier => f.write_str("at the barrier"),
            Self::Memory(place, at) => write!(f, "for {place} to change, read at {at}"),
            Self::Nothing => f.write_str("for nothing: it reads no memory"),
        }
    }
}

/// Waves that all wait, so that none ever goes on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EndlessWait {
    /// What the wave at the fault's site waits for; it goes round in a loop.
    pub on: WaitsOn,
    /// Other waves that wait: the first few.
    pub others: Vec<Waiter>,
    /// How many more there are.
    pub more: usize,
    /// Workgroups that cannot begin because too many others wait.
    pub not_begun: u64,
}

impl fmt::Display for EndlessWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { on, others, more, not_begun } = self;
        write!(f, "endless wait {on}; no wave that still runs stores anything")?;
        for Waiter { site, on } in others {
            write!(f, "; {site} waits at {} {on}", site.location)?;
        }
        if *more > 0 {
            write!(f, "; {more} more waves wait")?;
        }
        if *not_begun > 0 {
            write!(f, "; {not_begun} workgroups have not begun, because too many wait")?;
        }
        Ok(())
    }
}
