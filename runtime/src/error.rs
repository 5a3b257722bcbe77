//! Errors of compiling, loading and launching.

use std::fmt;
use std::sync::Arc;

use lathe_dsl::ir::Scalar;

/// Why a kernel did not run. Cheap to clone: a failed compile is reported to everyone who waited for it.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The key is not allowed, or the kernel is refused.
    #[error(transparent)]
    Trace(#[from] lathe_dsl::Error),
    /// The author's Rust function panicked while it was traced, or a compiler stage did.
    #[error("`{kernel}` ({key}) panicked while it was compiled for {target}: {message}")]
    Panicked {
        /// Kernel name.
        kernel: &'static str,
        /// Build key, as `field=value` pairs.
        key: String,
        /// Chip name.
        target: &'static str,
        /// The panic's message.
        message: String,
    },
    /// A warm-up was cancelled before this kernel's turn came.
    #[error("`{kernel}` for {target} was not compiled: the warm-up was cancelled")]
    Cancelled {
        /// Kernel name.
        kernel: &'static str,
        /// Chip name.
        target: &'static str,
    },
    /// The compiler failed.
    #[error("{0}")]
    Compile(Arc<dyn std::error::Error + Send + Sync>),
    /// A bundle, or a kernel of it, cannot be used.
    #[error(transparent)]
    Bundle(#[from] crate::bundle::BundleError),
    /// The kernel did something wrong while it ran.
    #[error("{0}")]
    Fault(Arc<dyn std::error::Error + Send + Sync>),
    /// No such device.
    #[error("unknown device `{given}`; known devices: {known}")]
    UnknownDevice {
        /// What was given.
        given: String,
        /// What there is.
        known: String,
    },
    /// A device that this machine does not have.
    #[error("no device {device}: {reason}")]
    NoDevice {
        /// The device.
        device: String,
        /// Why.
        reason: String,
    },
    /// A driver refused a call, or a kernel that it ran failed.
    #[error("{device}: {call} {failure}")]
    Driver {
        /// The device.
        device: String,
        /// The driver's function.
        call: &'static str,
        /// Of what, and what the driver says.
        failure: String,
    },
    /// A kernel faulted. The driver does nothing more in this process on the device: every later call that fails says this again.
    #[error("{0}")]
    Faulted(Arc<KernelFault>),
    /// A kernel's wait for a message gave up: what it computed is wrong.
    #[error("{0}")]
    GaveUp(Arc<crate::mailbox::GaveUp>),
    /// Something of another device, or of another driver.
    #[error("the {what} is not one of {device}")]
    Foreign {
        /// `buffer`, `event`, `graph`.
        what: &'static str,
        /// The device that it was used on.
        device: String,
    },
    /// A device does not reach memory of another device or process.
    #[error("{device} does not reach memory of {owner}: {reason}")]
    NoPeer {
        /// The device.
        device: String,
        /// Whose memory.
        owner: String,
        /// Why not.
        reason: String,
    },
    /// Bytes that are no handle of another process's memory.
    #[error(transparent)]
    PeerHandle(#[from] crate::device::PeerHandleError),
    /// A launch for a rank that the group has not.
    #[error("rank {rank} of a group of {ranks}")]
    NoRank {
        /// What was given.
        rank: usize,
        /// Ranks there are.
        ranks: usize,
    },
    /// A group of devices that cannot run together.
    #[error("a group runs on devices of one kind, not on {devices}")]
    MixedGroup {
        /// Their names.
        devices: String,
    },
    /// Workgroups that are to wait for each other and of which some can only begin when others have ended.
    #[error("`{kernel}` has {blocks} workgroups that must be on {device} at once, which has room for {resident}")]
    NotCoResident {
        /// Kernel name.
        kernel: String,
        /// The device.
        device: String,
        /// Workgroups, of all ranks on the device.
        blocks: u64,
        /// How many run at once when nothing else does.
        resident: u64,
    },
    /// What a rank of a group did wrong.
    #[error("rank {rank}: {error}")]
    Rank {
        /// Its number in the group.
        rank: usize,
        /// What went wrong.
        error: Box<Error>,
    },
    /// A copy between buffers of two lengths.
    #[error("a copy of {from} elements to {to}: both must be the same")]
    CopyLength {
        /// Elements of the source.
        from: usize,
        /// Elements of the destination.
        to: usize,
    },
    /// Something that a capture cannot record.
    #[error("`{call}` cannot be captured: a graph holds launches and copies within the device")]
    NotRecordable {
        /// The call.
        call: &'static str,
    },
    /// The time of an event that was never recorded.
    #[error("the time between two events is known only after both were recorded")]
    NotRecorded,
    /// The host has no room for copies.
    #[error("the host cannot allocate {bytes} bytes for copies")]
    HostMemory {
        /// Extent.
        bytes: u64,
    },
    /// The arguments are those of another kernel than the one that was compiled.
    #[error("arguments of `{given}` for `{kernel}`: launch what was compiled for the kernel whose arguments they are")]
    OtherKernel {
        /// The kernel that was compiled.
        kernel: String,
        /// The kernel that the arguments belong to.
        given: &'static str,
    },
    /// The argument struct is not the one that the kernel was traced with.
    #[error("`{kernel}` takes {wanted} arguments, {given} were given")]
    ArgumentCount {
        /// Kernel name.
        kernel: String,
        /// Arguments given.
        given: usize,
        /// Arguments wanted.
        wanted: usize,
    },
    /// A launch argument does not match its declaration.
    #[error(
        "argument `{name}` of `{kernel}` is {given} elements of {elem}; this key's kernel wants {wanted} of {wanted_elem}"
    )]
    BadBuffer {
        /// Kernel name.
        kernel: String,
        /// Argument name.
        name: &'static str,
        /// Elements given.
        given: u64,
        /// Their type.
        elem: Scalar,
        /// Elements wanted.
        wanted: u64,
        /// Their type.
        wanted_elem: Scalar,
    },
    /// A launch argument of another kind than declared: an image where a buffer is wanted, an image of other extents.
    #[error("argument `{name}` of `{kernel}` is {given}; this key's kernel wants {wanted}")]
    BadArgument {
        /// Kernel name.
        kernel: String,
        /// Argument name.
        name: &'static str,
        /// What was given.
        given: String,
        /// What is declared.
        wanted: String,
    },
    /// An image that no device holds.
    #[error("an image {reason}")]
    BadImage {
        /// What is wrong with it.
        reason: String,
    },
    /// An image for texture units, on a device without.
    #[error(
        "{device} has no texture units that Lathe uses; make the image with `Units::Emulated` or `Units::WhereThereAre`"
    )]
    NoImages {
        /// The device.
        device: String,
    },
    /// Texels for an image of another size.
    #[error("{given} elements for an image that has {wanted}")]
    ImageTexels {
        /// Elements given.
        given: usize,
        /// Elements of the image: four a texel.
        wanted: u64,
    },
    /// A buffer of another device, whose addresses mean nothing here.
    #[error("argument `{name}` of `{kernel}` lies on another device than the one it is launched on")]
    OtherDevice {
        /// Kernel name.
        kernel: String,
        /// Argument name.
        name: &'static str,
    },
    /// A buffer's address is not aligned as declared.
    #[error("argument `{name}` of `{kernel}` is at 0x{address:x}, which is not a multiple of {align}")]
    Misaligned {
        /// Kernel name.
        kernel: String,
        /// Argument name.
        name: &'static str,
        /// Its device address.
        address: u64,
        /// Alignment wanted, in bytes.
        align: u32,
    },
    /// Two buffers of a launch overlap, and the kernel writes to one.
    #[error("arguments `{first}` and `{second}` of `{kernel}` overlap, and the kernel writes to one of them")]
    Overlap {
        /// Kernel name.
        kernel: String,
        /// Argument name.
        first: &'static str,
        /// Argument name.
        second: &'static str,
    },
    /// Code for another chip or engine than the device's.
    #[error("`{kernel}` was compiled for {compiled}, but the device is {device}")]
    WrongCode {
        /// Kernel name.
        kernel: String,
        /// What it was compiled for.
        compiled: String,
        /// The device.
        device: String,
    },
    /// A device address range that no allocation covers.
    #[error("no allocation of {device} covers {bytes} bytes at 0x{address:x}")]
    BadAddress {
        /// The device.
        device: String,
        /// First byte.
        address: u64,
        /// Extent.
        bytes: u64,
    },
    /// The device has no room.
    #[error("{device} cannot allocate {bytes} bytes")]
    OutOfMemory {
        /// The device.
        device: String,
        /// Extent.
        bytes: u64,
    },
}

/// A kernel that faulted on a GPU, such as by an illegal address.
///
/// A driver tells of a fault at some later call and does not say which kernel it was. So these are all that may have run: those
/// launched in any stream of the device since that stream was last waited for.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct KernelFault {
    /// The device.
    pub device: String,
    /// The driver's function that told first.
    pub call: &'static str,
    /// What it said.
    pub failure: String,
    /// Name and key of each kernel that may have been it; empty if none was launched through Lathe.
    pub kernels: Vec<String>,
}

/// Kernels that a message lists at most.
const LISTED: usize = 8;

impl fmt::Display for KernelFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { device, call, failure, kernels } = self;
        write!(f, "{device}: ")?;
        match kernels.as_slice() {
            [] => write!(f, "a kernel that Lathe did not launch faulted")?,
            [one] => write!(f, "kernel {one} faulted")?,
            several => {
                write!(f, "one of these kernels faulted: {}", several[..several.len().min(LISTED)].join(", "))?;
                if several.len() > LISTED {
                    write!(f, " and {} more", several.len() - LISTED)?;
                }
            }
        }
        write!(f, ": {failure}, told by {call}; the device cannot be used any more in this process")
    }
}

impl Error {
    /// Wraps a compiler's error.
    pub fn compile(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Compile(Arc::new(error))
    }

    /// Wraps a device's error.
    pub fn fault(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Fault(Arc::new(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_names_whoever_may_have_been_it() {
        let fault = |kernels: &[&str]| KernelFault {
            device: "cuda:0".to_owned(),
            call: "cuStreamSynchronize",
            failure: "CUDA_ERROR_ILLEGAL_ADDRESS".to_owned(),
            kernels: kernels.iter().map(ToString::to_string).collect(),
        };
        let end = ": CUDA_ERROR_ILLEGAL_ADDRESS, told by cuStreamSynchronize; the device cannot be used any more in this process";
        let one = Error::Faulted(Arc::new(fault(&["`axpy` {n=4}"])));
        assert_eq!(one.to_string(), format!("cuda:0: kernel `axpy` {{n=4}} faulted{end}"));
        let none = fault(&[]).to_string();
        assert_eq!(none, format!("cuda:0: a kernel that Lathe did not launch faulted{end}"));
        let two = fault(&["`a`", "`b`"]).to_string();
        assert_eq!(two, format!("cuda:0: one of these kernels faulted: `a`, `b`{end}"));
        let many = fault(&["`k`"; LISTED + 3]).to_string();
        assert!(many.contains("`k`, `k` and 3 more: CUDA"), "{many}");
    }
}
