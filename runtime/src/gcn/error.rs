//! What can go wrong while a code object is loaded or executed, and where.

use std::fmt;

use crate::interp::Member;

/// Shorthand of this module tree.
pub type Result<T, E = GcnError> = std::result::Result<T, E>;

/// Counter of outstanding work that wait instructions wait on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counter {
    /// Vector memory.
    Vmcnt,
    /// LDS, scalar memory.
    Lgkmcnt,
    /// Vector memory loads, on gfx12.
    Loadcnt,
    /// LDS, on gfx12.
    Dscnt,
    /// Scalar memory, on gfx12.
    Kmcnt,
}

impl fmt::Display for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Vmcnt => "vmcnt",
            Self::Lgkmcnt => "lgkmcnt",
            Self::Loadcnt => "loadcnt",
            Self::Dscnt => "dscnt",
            Self::Kmcnt => "kmcnt",
        })
    }
}

/// Where undefined bits arrived that must not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sink {
    /// Address of a memory or LDS access, buffer descriptor, or scalar offset.
    Address,
    /// Condition or target of a branch.
    Branch,
    /// EXEC mask.
    Exec,
    /// Data stored to memory.
    Store,
    /// Operand that selects a lane or a register, or control state (`m0`, mode).
    Control,
}

impl fmt::Display for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Address => "an address",
            Self::Branch => "a branch",
            Self::Exec => "EXEC",
            Self::Store => "a store",
            Self::Control => "a control operand",
        })
    }
}

/// Kind of an LDS conflict.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Race {
    /// Another wave wrote the byte and no barrier came between.
    ReadOfUnsynchronisedWrite,
    /// Another wave wrote the byte before the barrier, but had not waited for that write when it arrived there.
    WriteNotWaitedFor,
    /// Another wave wrote the byte and no barrier came between the two writes.
    WriteAfterWrite,
    /// Another wave read the byte and no barrier came between that read and this write.
    WriteAfterRead,
    /// Another wave read the byte before the barrier, but had not waited for that read when it arrived there.
    ReadNotWaitedFor,
}

impl fmt::Display for Race {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ReadOfUnsynchronisedWrite => "its write is read with no barrier between",
            Self::WriteNotWaitedFor => "its write was not waited for before the barrier",
            Self::WriteAfterWrite => "both write with no barrier between",
            Self::WriteAfterRead => "what it read is overwritten with no barrier between",
            Self::ReadNotWaitedFor => "its read was not waited for before the barrier",
        })
    }
}

/// What is wrong.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The bytes are not a loadable code object.
    #[error("malformed code object: {0}")]
    Object(String),
    /// A code object for something else than asked.
    #[error("code object is for {found}, not for {expected}")]
    WrongTarget {
        /// What was asked for.
        expected: String,
        /// What the object says.
        found: String,
    },
    /// No device `gcn` for this chip.
    #[error("device gcn has no instruction table for {0}; it has: {known}", known = crate::gcn::isa::names())]
    UnsupportedTarget(String),
    /// No kernel of this name.
    #[error("no kernel `{name}` in the code object; it has: {known}")]
    NoKernel {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// The launch does not fit the kernel or the chip.
    #[error("launch refused: {0}")]
    Launch(String),
    /// Bytes that libLLVM cannot decode, or text that the decoder does not understand.
    #[error("cannot decode: {0}")]
    Decode(String),
    /// An instruction without semantics here.
    #[error("instruction `{0}` is not implemented")]
    UnknownInstruction(String),
    /// An instruction that is implemented, for other chips than this.
    #[error("{chip} has no instruction `{mnemonic}`")]
    NotOnChip {
        /// The instruction.
        mnemonic: String,
        /// The chip.
        chip: &'static str,
    },
    /// An implemented instruction in a form without semantics here.
    #[error("unsupported form: {0}")]
    Unsupported(String),
    /// Control left the decoded code.
    #[error("control reached {0:#x}, where no instruction starts")]
    NoInstruction(u64),
    /// A result was used or overwritten before the wait that covers it.
    #[error("{register} is {how} before its load (pc {issued:#x}) was waited for with {counter}")]
    UseBeforeWait {
        /// Register, as the assembler writes it.
        register: String,
        /// `read` or `overwritten`.
        how: &'static str,
        /// Counter that was not waited on.
        counter: Counter,
        /// Where the load is.
        issued: u64,
    },
    /// Two instructions are too near to each other: the hardware does not wait.
    #[error(
        "{register}: {need} wait states are needed after pc {first:#x}, {between} are there (rule `{rule}` of the hazard table)"
    )]
    WaitStates {
        /// Name in [`crate::gcn::hazard::RULES`].
        rule: &'static str,
        /// Register that both touch.
        register: String,
        /// Wait states that the rule asks for.
        need: u32,
        /// Wait states between the two.
        between: u32,
        /// Where the earlier one is.
        first: u64,
    },
    /// Two instructions have nothing of what they need between them.
    #[error("{register}: {need} is needed after pc {first:#x} (rule `{rule}` of the hazard table)")]
    NothingBetween {
        /// Name in [`crate::gcn::hazard::RULES`].
        rule: &'static str,
        /// Register that both touch.
        register: String,
        /// What is needed.
        need: String,
        /// Where the earlier one is.
        first: u64,
    },
    /// LDS bytes written to by a buffer load were touched before its wait.
    #[error("LDS byte {address} is touched before the load into LDS was waited for with vmcnt")]
    LdsBeforeWait {
        /// Byte address in the workgroup's LDS.
        address: u32,
    },
    /// Two waves touch the same LDS byte without order between them.
    #[error("LDS race on byte {address} with wave {other}: {race}")]
    LdsRace {
        /// Byte address in the workgroup's LDS.
        address: u32,
        /// The other wave.
        other: u32,
        /// How they collide.
        race: Race,
    },
    /// Two lanes of one instruction store different bytes to one LDS address.
    #[error("two lanes write different values to LDS byte {0}")]
    LdsLaneConflict(u32),
    /// Access past the workgroup's LDS.
    #[error("LDS access of {size} bytes at {address}, but the workgroup has {limit} bytes")]
    LdsOutOfRange {
        /// First byte.
        address: u64,
        /// Bytes.
        size: u32,
        /// LDS of the workgroup.
        limit: u32,
    },
    /// The host has not so much memory.
    #[error("no memory for {0} bytes")]
    OutOfMemory(usize),
    /// Access outside every allocation.
    #[error("{what} of {size} bytes at {address:#x} lies outside every allocation{hint}")]
    OutsideAllocations {
        /// `load`, `store` or `atomic`.
        what: &'static str,
        /// First byte.
        address: u64,
        /// Bytes.
        size: u32,
        /// Nearest allocation, if any.
        hint: String,
    },
    /// Read past the kernel's arguments.
    #[error("kernarg over-read: bytes {offset}..{end} of {size} were loaded", end = offset + u64::from(*.bytes))]
    KernargOverRead {
        /// First byte in the kernarg segment.
        offset: u64,
        /// Bytes loaded.
        bytes: u32,
        /// Size of the kernarg segment.
        size: u64,
    },
    /// Store to read-only memory (kernel arguments, the code object).
    #[error("store of {size} bytes to read-only memory at {address:#x}")]
    ReadOnly {
        /// First byte.
        address: u64,
        /// Bytes.
        size: u32,
    },
    /// Undefined bits reached a place where they change behaviour.
    #[error("undefined bits {bits:#x} of {what} reach {sink}")]
    Undefined {
        /// Register or memory they come from.
        what: String,
        /// Which bits, as a mask.
        bits: u64,
        /// Where they arrived.
        sink: Sink,
    },
    /// A register number beyond what the kernel descriptor allocates.
    #[error("{register} is beyond the {allocated} that the kernel descriptor allocates")]
    RegisterOutOfRange {
        /// Register, as the assembler writes it.
        register: String,
        /// Registers of that kind.
        allocated: u32,
    },
    /// A wave waits or loops for longer than the run allows.
    #[error("execution did not end within {0} instructions")]
    StepLimit(u64),
    /// Nothing that still runs can ever go on. The site is a wave that goes round in a loop.
    #[error("endless wait{}; no wave that still runs stores anything ({others} more wait)", On(*on))]
    EndlessWait {
        /// Where in global memory the wave loaded last.
        on: Option<u64>,
        /// Other waves that wait, in loops or at barriers.
        others: usize,
    },
    /// A load from less far than where what it loads was stored.
    #[error(
        "the load from {address:#x} goes as far as {reach} only: what {by} has stored there (pc {stored:#x}) may not be what a cache holds"
    )]
    StaleLoad {
        /// First byte of the load.
        address: u64,
        /// Who stored there.
        by: String,
        /// Address of that store.
        stored: u64,
        /// How far the load goes.
        reach: &'static str,
    },
    /// What is loaded was stored less far than where it is loaded.
    #[error(
        "what {by} has stored at {address:#x} (pc {stored:#x}) goes as far as {reach} only: it may stay in a cache for as long as that launch runs"
    )]
    StoreHeldBack {
        /// First byte of the load.
        address: u64,
        /// Who stored there.
        by: String,
        /// Address of that store.
        stored: u64,
        /// How far it went.
        reach: &'static str,
    },
    /// `s_trap` or another deliberate stop.
    #[error("trap: {0}")]
    Trap(String),
}

struct On(Option<u64>);

impl fmt::Display for On {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |address| write!(f, " for memory at {address:#x} to change"))
    }
}

/// Where in the running kernel an error arose.
#[derive(Clone, PartialEq, Debug)]
pub struct Site {
    /// Address of the instruction in the code object.
    pub pc: u64,
    /// Its text.
    pub text: String,
    /// File and line of the object's line table. The line is the Kernel IR op number in objects that Lathe emits.
    pub line: Option<(String, u32)>,
    /// The launch, if it is one of a [group](super::launch_group).
    pub member: Option<Member>,
    /// Workgroup id.
    pub workgroup: [u32; 3],
    /// Wave of the workgroup.
    pub wave: u32,
    /// Lane, where one lane is to blame.
    pub lane: Option<u32>,
}

/// An error of device `gcn`.
#[derive(Clone, PartialEq, Debug)]
pub struct GcnError {
    /// What is wrong.
    pub kind: ErrorKind,
    /// Where; `None` before execution starts.
    pub site: Option<Box<Site>>,
}

impl From<ErrorKind> for GcnError {
    fn from(kind: ErrorKind) -> Self {
        Self { kind, site: None }
    }
}

impl GcnError {
    /// The same of a launch of a group.
    pub(crate) fn of(mut self, member: Option<Member>) -> Self {
        if let Some(site) = &mut self.site {
            site.member = member;
        }
        self
    }
}

impl std::error::Error for GcnError {}

impl fmt::Display for GcnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(s) = &self.site else { return self.kind.fmt(f) };
        let [x, y, z] = s.workgroup;
        write!(f, "{} at pc {:#x} `{}`", self.kind, s.pc, s.text)?;
        match &s.line {
            Some((file, line)) => write!(f, " ({file}:{line})")?,
            None => f.write_str(" (no line)")?,
        }
        s.member.map_or(Ok(()), |member| write!(f, ", {member}"))?;
        write!(f, ", workgroup ({x}, {y}, {z}), wave {}", s.wave)?;
        s.lane.map_or(Ok(()), |lane| write!(f, ", lane {lane}"))
    }
}

/// An error inside one instruction, before the run adds its place.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Fault {
    pub(crate) kind: ErrorKind,
    pub(crate) lane: Option<u32>,
}

impl From<ErrorKind> for Fault {
    fn from(kind: ErrorKind) -> Self {
        Self { kind, lane: None }
    }
}

impl ErrorKind {
    pub(crate) fn lane(self, lane: usize) -> Fault {
        Fault { kind: self, lane: Some(lane as u32) }
    }
}

/// Shorthand for [`ErrorKind::Unsupported`].
pub(crate) fn unsupported<T>(what: impl Into<String>) -> Result<T, Fault> {
    Err(ErrorKind::Unsupported(what.into()).into())
}
