//! What a compile yields: code, kernel ABI, resources and a record of how it was made.
//!
//! Plain data without any compiler behind it, so that a runtime built without LLVM can hold it, and caches and bundles can
//! store it.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::target::Target;

/// One compiled kernel for one chip.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Artifact {
    /// The chip it runs on.
    #[serde(with = "target_name")]
    pub target: Target,
    /// Name of the entry point inside [`Artifact::code`].
    pub symbol: String,
    /// AMD: a linked code object (ELF). NVIDIA: PTX text; in a cubin's entry of the disk cache, the cubin (ELF).
    #[serde(with = "serde_bytes")]
    pub code: Vec<u8>,
    /// How it was made and what it needs.
    #[serde(with = "StoredRecord")]
    pub record: CompileRecord,
}

/// Where a compiled kernel came from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheSource {
    /// This process had it in memory.
    Memory,
    /// The disk cache had it.
    Disk,
    /// No cache had it: it was compiled here.
    #[default]
    Miss,
    /// Another thread or process was compiling it; this one waited and took the result.
    Waited,
}

impl fmt::Display for CacheSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Memory => "memory",
            Self::Disk => "disk",
            Self::Miss => "miss",
            Self::Waited => "waited",
        })
    }
}

/// Timings and resources of one compile.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct CompileRecord {
    /// Kernel name.
    pub kernel: String,
    /// Chip name.
    pub target: String,
    /// Where the code came from.
    pub cache: CacheSource,
    /// Tracing the Rust stage to Kernel IR, in milliseconds.
    pub trace_ms: f64,
    /// Kernel IR to artifact, caches included, in milliseconds.
    pub compile_ms: f64,
    /// Milliseconds of each stage, in order.
    pub stages: Vec<StageTime>,
    /// Kernel IR operations.
    pub kir_ops: u32,
    /// What the verifier warns of, each with the place of the author's call. Not stored: places are those of this process's
    /// trace.
    pub warnings: Vec<String>,
    /// What the code needs of the chip.
    #[serde(flatten)]
    pub resources: Resources,
}

/// [`CompileRecord`] as an artifact stores it: no field is flattened, which formats without field names cannot do.
#[derive(Serialize, Deserialize)]
#[serde(remote = "CompileRecord")]
struct StoredRecord {
    kernel: String,
    target: String,
    cache: CacheSource,
    trace_ms: f64,
    compile_ms: f64,
    stages: Vec<StageTime>,
    kir_ops: u32,
    #[serde(skip)]
    warnings: Vec<String>,
    resources: Resources,
}

/// Wall time of one stage.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StageTime {
    /// Of the compiler: `verify`, `mlir`, `passes`, `llvm`, `optimise`, `codegen`, `link`; of the disk cache: `lookup`,
    /// `wait` (for another process that compiles the same key), `publish`.
    pub stage: Cow<'static, str>,
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
    /// The part of [`Resources::lds_bytes`] that a launch has to allocate (NVIDIA's dynamic shared memory); 0 if the code
    /// brings it all.
    pub dynamic_lds_bytes: u32,
    /// AMD: registers spilled to memory (VGPR + SGPR).
    pub spills: Option<u32>,
    /// AMD: scratch memory a lane, in bytes.
    pub scratch_bytes: Option<u32>,
    /// Bytes of `.text` (AMD), of PTX text (NVIDIA).
    pub code_bytes: u64,
    /// Instructions up to and with the last `s_endpgm` (AMD), PTX instructions (NVIDIA).
    pub instructions: u32,
}

/// A target is stored by its name.
mod target_name {
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::target::Target;

    pub fn serialize<S: Serializer>(target: &Target, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(target)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Target, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}
