//! Kernel IR to machine code: gfx950 code objects and sm_90 PTX, through MLIR and LLVM, inside this process.
//!
//! One file a stage (`lower`, `passes`, `llvm`, `link`), one file a target (`target`), run in order by `driver`:
//!
//! ```text
//! Kernel IR ─ verify ─ mlir ─ passes ─ llvm ─ optimise ─ codegen ─ link ─ Artifact
//! ```
//!
//! The same kernel, target and toolchain give the same bytes. A compile runs on a thread of its own: neither a fatal
//! error of LLVM nor a panic ends the process.

mod contain;
mod disasm;
mod driver;
mod error;
mod link;
mod listing;
mod llvm;
mod lower;
mod options;
mod passes;
mod reproducer;
mod resources;
mod signed_zero;
mod target;
#[cfg(test)]
mod tests;
mod warm;

use lathe_dsl::Target;
use lathe_dsl::artifact::Artifact;
use lathe_dsl::ir::Kernel;

pub use disasm::{Disassembler, NoDisassembler};
pub use error::{Error, Failure, Stage};
pub use listing::{listing, mnemonics};
pub use options::Options;

use driver::Stop;

/// A form in which a compile can be looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    /// MLIR as lowered from Kernel IR, before any pass.
    Mlir,
    /// LLVM IR before LLVM's optimiser.
    LlvmIr,
    /// AMD: assembly text. NVIDIA: PTX.
    Asm,
    /// What an artifact's code holds. AMD: a linked code object (ELF). NVIDIA: PTX.
    Obj,
}

/// What code generation depends on besides kernel and target; part of a disk cache's key.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Toolchain {
    /// LLVM's version, such as `22.1.8`.
    pub llvm: String,
    /// This crate's version and a hash of the sources that decide the code, such as `0.1.0+83f1c0d2a94e6b57`.
    pub lathe: &'static str,
}

/// The toolchain inside this process.
pub fn toolchain() -> Toolchain {
    let (major, minor, patch) = llvm::version();
    Toolchain {
        llvm: format!("{major}.{minor}.{patch}"),
        lathe: concat!(env!("CARGO_PKG_VERSION"), "+", env!("LATHE_SOURCES")),
    }
}

/// Pays what the first compile of a process costs beyond the later ones (LLVM's pages, registries and tables): compiles a
/// tiny kernel for each family of chips. Meant for a thread in the background; does nothing once a compile was asked for,
/// and blocks until it is done.
pub fn warm_up() {
    driver::warm_up();
}

/// Compiles a kernel for a chip.
///
/// # Errors
/// [`Error::Refused`] if the kernel is not well formed or asks for more than the chip has; [`Error::Failed`] if the
/// compiler fails on it, with the path of a reproducer.
pub fn compile(kernel: &Kernel, target: Target, options: &Options) -> Result<Artifact, Error> {
    driver::compile(kernel, target, options)
}

/// Compiles a kernel up to a level and returns that: text for all but AMD's [`Level::Obj`].
///
/// # Errors
/// As [`compile`].
pub fn emit(kernel: &Kernel, target: Target, options: &Options, level: Level) -> Result<Vec<u8>, Error> {
    let stop = match level {
        Level::Mlir => Stop::Mlir,
        Level::LlvmIr => Stop::LlvmIr,
        Level::Asm => Stop::Assembly,
        Level::Obj => Stop::Code,
    };
    driver::make(kernel, target, options, stop).map(|made| made.bytes)
}
