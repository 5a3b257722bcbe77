//! Device `gcn`: executes a linked AMD code object instruction by instruction on the CPU.
//!
//! It takes exactly what a HIP device would load, decodes it with LLVM's disassembler, and is stricter than hardware.
//! Each of these is an error with pc, source line, workgroup, wave and lane: an instruction without semantics; a load's
//! result used before the wait that covers it; an LDS race; an address outside every allocation; reading past the
//! kernel arguments; undefined bits that reach an address, a branch, EXEC or a store.
//!
//! `v_exp_f32`, `v_rcp_f32` and their like, approximations in hardware, give correctly rounded results here.
//!
//! What hardware leaves to software between two instructions ([`hazard`]) is checked as well. `docs/src/gcn.md` says what is not modelled:
//! time and caches above all.
//!
//! | file | what |
//! |---|---|
//! | `object` | ELF, descriptor, metadata, line table |
//! | `decode` | disassembly text → [`decode::Inst`] |
//! | `isa/` | semantics, one file an encoding family |
//! | `state`, `wait`, `lds`, `memory` | registers, wait counters, LDS, memory, each with its shadow |
//! | `hazard/` | what two instructions need between them |
//! | `run`, `together` | launches; workgroups that take turns, of one launch or a group of them |
//! | `coherence` | whether what workgroups tell each other gets past the caches |
//! | `apart/` | workgroups that run beside each other, and their races |
//! | `profile` | what instructions cost |
//! | `trace`, `mutate` | what a run waited for; objects with one wait or barrier taken out |

// Lanes index several arrays at once.
#![allow(clippy::needless_range_loop)]

mod apart;
mod coherence;
pub mod decode;
mod error;
pub mod hazard;
pub mod isa;
mod lds;
mod memory;
pub mod mutate;
mod object;
pub mod profile;
mod run;
mod state;
#[cfg(test)]
mod tests;
mod together;
pub mod trace;
mod wait;

pub use apart::{MemoryAccess, MemoryRace};
pub use error::{Counter, ErrorKind, GcnError, Race, Result, Sink, Site};
pub use memory::{Memory, Shared};
pub use object::{Argument, CodeObject, Kernel, KernelMetadata};
pub use run::{Options, Stats, launch};
pub use together::{Launch, Rank, launch_group};
pub use wait::WaitCounts;

use lathe_dsl::target::Target;

/// Chips whose code objects can be executed.
pub fn targets() -> impl Iterator<Item = Target> {
    Target::all().filter(|target| isa::chip::Chip::of(*target).is_some())
}

/// Mnemonics with semantics for a chip, sorted, without encoding suffixes (`_e32`, `_e64`, `_dpp`, `_sdwa`).
///
/// # Errors
/// [`ErrorKind::UnsupportedTarget`] for a chip without a table.
pub fn implemented_mnemonics(target: Target) -> Result<Vec<&'static str>> {
    Ok(isa::for_target(target)?.mnemonics())
}

/// Whether a mnemonic, with or without encoding suffix, has semantics for a chip.
///
/// # Errors
/// [`ErrorKind::UnsupportedTarget`] for a chip without a table.
pub fn is_implemented(target: Target, mnemonic: &str) -> Result<bool> {
    Ok(isa::for_target(target)?.lookup(&decode::base_mnemonic(mnemonic)).is_some())
}
