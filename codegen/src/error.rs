//! Why a kernel was not compiled.

use std::fmt;
use std::path::PathBuf;

use lathe_dsl::ir::Location;
use lathe_dsl::{Refusal, Target};

/// A stage of the compiler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Stage {
    /// Kernel IR's verifier and the target's limits.
    Verify,
    /// Kernel IR to MLIR, and MLIR's verifier.
    Mlir,
    /// MLIR to its LLVM dialect.
    Passes,
    /// To LLVM IR, and LLVM's verifier.
    Llvm,
    /// LLVM's optimiser.
    Optimise,
    /// LLVM IR to an object or PTX.
    Codegen,
    /// Object to code object.
    Link,
}

impl Stage {
    /// As in [`lathe_dsl::artifact::StageTime`].
    pub const fn name(self) -> &'static str {
        match self {
            Self::Verify => "verify",
            Self::Mlir => "mlir",
            Self::Passes => "passes",
            Self::Llvm => "llvm",
            Self::Optimise => "optimise",
            Self::Codegen => "codegen",
            Self::Link => "link",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A kernel was not compiled.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel asks for something that it may not, or that this target cannot do.
    #[error("kernel `{kernel}` is refused for {target}: {refusal}")]
    Refused {
        /// Kernel name.
        kernel: String,
        /// The chip.
        target: Target,
        /// What is wrong, and where the author wrote it.
        refusal: Refusal,
    },
    /// The compiler failed on an accepted kernel, which is a defect of the compiler.
    #[error("kernel `{}` failed to compile for {} in stage `{}`: {}", .0.kernel, .0.target, .0.stage, .0)]
    Failed(Box<Failure>),
}

/// A failure of the compiler itself; displays its location, message and reproducer.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Kernel name.
    pub kernel: String,
    /// The chip.
    pub target: Target,
    /// Where in the compiler.
    pub stage: Stage,
    /// The author's call, where one is to blame.
    pub location: Option<Location>,
    /// What the compiler said.
    pub message: String,
    /// Whether the compiler would have ended the process; its thread is lost.
    pub fatal: bool,
    /// The directory with everything needed to see the failure again, or why there is none.
    pub reproducer: Result<PathBuf, String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(location) = self.location {
            write!(f, "{location}: ")?;
        }
        if self.fatal {
            f.write_str("fatal: ")?;
        }
        f.write_str(&self.message)?;
        match &self.reproducer {
            Ok(path) => write!(f, " (reproducer: {})", path.display()),
            Err(reason) => write!(f, " (no reproducer: {reason})"),
        }
    }
}
