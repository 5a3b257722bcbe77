//! Errors of compiling, loading and launching.

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
    #[error("`{kernel}` panicked while it was compiled for {target}: {message}")]
    Panicked {
        /// Kernel name.
        kernel: &'static str,
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
