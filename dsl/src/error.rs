//! Errors of tracing and verification.

use std::fmt;

use crate::ir::Location;
use crate::kernel::KeyError;

/// A kernel that is refused: what is wrong, where the author wrote it, and what would be right.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// The author's call, where one is to blame.
    pub location: Option<Location>,
    /// What was given and what is allowed.
    pub message: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(location) = self.location {
            write!(f, "{location}: ")?;
        }
        f.write_str(&self.message)
    }
}

/// Why a build key did not become a kernel.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The build key's values are not allowed.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The traced kernel is wrong.
    #[error("kernel `{kernel}` is refused: {refusal}")]
    Refused {
        /// Kernel name.
        kernel: String,
        /// The first thing wrong with it.
        refusal: Box<Refusal>,
    },
}
