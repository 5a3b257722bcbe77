//! How to compile.

use std::path::PathBuf;

/// What a caller may choose about a compile. The emitted code depends on the kernel and the target alone.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// Directory under which a failed compile leaves its reproducer; the system's temporary directory if unset.
    pub reproducer_dir: Option<PathBuf>,
    /// Makes the compiler fail in a chosen way.
    #[cfg(test)]
    pub(crate) sabotage: Option<crate::tests::Sabotage>,
}

impl Options {
    /// Leaves reproducers of failed compiles under `dir`.
    pub fn with_reproducer_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.reproducer_dir = Some(dir.into());
        self
    }
}
