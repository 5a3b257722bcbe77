//! Why a bundle, or a kernel of it, cannot be used.

/// What is wrong with a bundle. `bundle` is its file, or says that it lies in memory.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BundleError {
    /// The file system refused.
    #[error("cannot {action} bundle {bundle}: {reason}")]
    Io {
        /// `read` or `write`.
        action: &'static str,
        /// The file.
        bundle: String,
        /// What the system said.
        reason: String,
    },
    /// It does not begin like a bundle.
    #[error("bundle {bundle}: not a Lathe bundle")]
    NotABundle {
        /// The file.
        bundle: String,
    },
    /// Another version's format.
    #[error("bundle {bundle} has format {found}; this version of Lathe reads format {known}: build the bundle again")]
    Format {
        /// The file.
        bundle: String,
        /// Its format.
        found: u32,
        /// The format that can be read.
        known: u32,
    },
    /// Its bytes are not those that were written.
    #[error("bundle {bundle} is damaged: {what}")]
    Damaged {
        /// The file.
        bundle: String,
        /// Where, and in which way.
        what: String,
    },
    /// It has no such kernel.
    #[error("bundle {bundle} has no {wanted}; it has {has}")]
    Missing {
        /// The file.
        bundle: String,
        /// Kernel, key and target.
        wanted: String,
        /// Some of what there is.
        has: String,
    },
    /// It has the kernel, but not as this program would trace it: launching it could do anything.
    #[error(
        "bundle {bundle} has {wanted}, built from another version of the kernel ({difference}): build the bundle again"
    )]
    Stale {
        /// The file.
        bundle: String,
        /// Kernel, key and target.
        wanted: String,
        /// What differs.
        difference: String,
    },
    /// The program that writes a bundle put in what does not belong together.
    #[error("kernel `{kernel}` cannot be bundled: {reason}")]
    Unfit {
        /// Kernel name.
        kernel: String,
        /// Why.
        reason: String,
    },
}
