//! The chips Lathe compiles for: one table row a chip, and nothing about a chip anywhere else.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

/// Instruction-set family of a chip; decides which code generator serves it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Arch {
    /// AMD GPUs, compiled to a linked code object (`amdgcn-amd-amdhsa`).
    Amdgpu,
    /// NVIDIA GPUs, compiled to PTX (`nvptx64-nvidia-cuda`).
    Nvptx,
}

/// What the compiler and the devices need to know about one chip.
#[derive(PartialEq, Eq, Hash, Debug)]
pub struct Chip {
    /// Name as vendors' tools spell it: `gfx950`, `sm_90`.
    pub name: &'static str,
    /// Instruction-set family.
    pub arch: Arch,
    /// LLVM target triple.
    pub triple: &'static str,
    /// LLVM subtarget features, comma separated, beyond what the name implies.
    pub features: &'static str,
    /// Lanes a wave (warp).
    pub wave: u32,
    /// LDS (shared memory) one workgroup may use, in bytes.
    pub lds_bytes: u32,
    /// Threads one workgroup may have.
    pub max_block: u32,
    /// Vector registers one thread can address.
    pub max_registers: u32,
    /// Workgroups a launch may have along x, y, z.
    pub max_grid: [u32; 3],
}

/// A chip to compile for: a reference into [`CHIPS`].
///
/// ```
/// use lathe_dsl::Target;
/// let target: Target = "gfx950".parse().unwrap();
/// assert_eq!(target.chip().wave, 64);
/// assert!("gfx9".parse::<Target>().unwrap_err().to_string().contains("gfx950"));
/// ```
#[derive(Clone, Copy)]
pub struct Target(&'static Chip);

/// Every chip of this version, in the order in which messages list them.
///
/// Sources: LLVM's AMDGPU usage guide (wave width, LDS size), the CUDA C++ programming guide's table of
/// compute capabilities (`sm_90`: 227 KiB of shared memory a block).
pub static CHIPS: [Chip; 2] = [
    Chip {
        name: "gfx950",
        arch: Arch::Amdgpu,
        triple: "amdgcn-amd-amdhsa",
        features: "",
        wave: 64,
        lds_bytes: 160 * 1024,
        max_block: 1024,
        max_registers: 512,
        max_grid: [0x7FFF_FFFF, 0xFFFF, 0xFFFF],
    },
    Chip {
        name: "sm_90",
        arch: Arch::Nvptx,
        triple: "nvptx64-nvidia-cuda",
        features: "+ptx78",
        wave: 32,
        lds_bytes: 227 * 1024,
        max_block: 1024,
        max_registers: 255,
        max_grid: [0x7FFF_FFFF, 0xFFFF, 0xFFFF],
    },
];

impl Target {
    /// AMD Instinct MI350 / MI355X.
    pub const GFX950: Self = Self(&CHIPS[0]);
    /// NVIDIA H100 / H200.
    pub const SM_90: Self = Self(&CHIPS[1]);

    /// Every target, in table order.
    pub fn all() -> impl Iterator<Item = Self> {
        CHIPS.iter().map(Self)
    }

    /// The chip's facts.
    pub fn chip(self) -> &'static Chip {
        self.0
    }
}

/// Every target refers to a row of the one table, so its address stands for it.
impl PartialEq for Target {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for Target {}

impl Hash for Target {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::ptr::hash(self.0, state);
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)
    }
}

/// A chip name that is not in the table.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("unknown target `{0}`; known targets: {list}", list = names())]
pub struct UnknownTarget(pub String);

fn names() -> String {
    CHIPS.iter().map(|c| c.name).collect::<Vec<_>>().join(", ")
}

impl FromStr for Target {
    type Err = UnknownTarget;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        Self::all().find(|t| t.0.name == s).ok_or_else(|| UnknownTarget(s.to_owned()))
    }
}
