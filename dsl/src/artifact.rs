//! What a compile yields: code, kernel ABI, resources and a record of how it was made.
//!
//! Plain data without any compiler behind it, so that a runtime built without LLVM can hold it.

use serde::{Deserialize, Serialize};

use crate::target::Target;

/// One compiled kernel for one chip.
#[derive(Clone, Debug)]
pub struct Artifact {
    /// The chip it runs on.
    pub target: Target,
    /// Name of the entry point inside [`Artifact::code`].
    pub symbol: String,
    /// AMD: a linked code object (ELF). NVIDIA: PTX text.
    pub code: Vec<u8>,
    /// How it was made and what it needs.
    pub record: CompileRecord,
}

/// Timings and resources of one compile.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CompileRecord {
    /// Kernel name.
    pub kernel: String,
    /// Chip name.
    pub target: String,
    /// Tracing the Rust stage to Kernel IR, in milliseconds.
    pub trace_ms: f64,
    /// Kernel IR to artifact, in milliseconds.
    pub compile_ms: f64,
    /// Milliseconds of each compiler stage, in order.
    pub stages: Vec<StageTime>,
    /// Kernel IR operations.
    pub kir_ops: u32,
    /// What the code needs of the chip.
    #[serde(flatten)]
    pub resources: Resources,
}

/// Wall time of one compiler stage.
#[derive(Clone, Debug, Serialize)]
pub struct StageTime {
    /// `verify`, `mlir`, `passes`, `llvm`, `optimise`, `codegen`, `link`.
    pub stage: &'static str,
    /// Milliseconds.
    pub ms: f64,
}

/// Static resources of a compiled kernel. `None` where the target does not tell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resources {
    /// AMD: vector registers a lane.
    pub vgpr: Option<u32>,
    /// AMD: scalar registers a wave.
    pub sgpr: Option<u32>,
    /// NVIDIA: virtual registers declared in the PTX, by class (the real number is `ptxas`'s).
    pub ptx_registers: Option<u32>,
    /// LDS (shared memory) of a workgroup, in bytes.
    pub lds_bytes: u32,
    /// AMD: registers spilled to memory (VGPR + SGPR).
    pub spills: Option<u32>,
    /// AMD: scratch memory a lane, in bytes.
    pub scratch_bytes: Option<u32>,
    /// Bytes of `.text` (AMD), of PTX text (NVIDIA).
    pub code_bytes: u64,
    /// Instructions up to and with the last `s_endpgm` (AMD), PTX instructions (NVIDIA).
    pub instructions: u32,
}
