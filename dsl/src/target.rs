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

/// Instruction-set generation of a chip: what decides which instructions it has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Generation {
    /// AMD CDNA 3 (gfx942).
    Cdna3,
    /// AMD CDNA 4 (gfx950).
    Cdna4,
    /// AMD RDNA 4 (gfx1200, gfx1201).
    Rdna4,
    /// NVIDIA compute capability 8.9.
    Ada,
    /// NVIDIA compute capability 9.0.
    Hopper,
    /// NVIDIA compute capability 12.0.
    Blackwell120,
}

impl Generation {
    /// Whether it is AMD's gfx9 instruction set, whose `s_waitcnt` has vmcnt, lgkmcnt and expcnt.
    pub const fn is_gfx9(self) -> bool {
        matches!(self, Self::Cdna3 | Self::Cdna4)
    }
}

/// What the compiler and the devices need to know about one chip.
#[derive(PartialEq, Eq, Hash, Debug)]
pub struct Chip {
    /// Name as vendors' tools spell it: `gfx950`, `sm_90`.
    pub name: &'static str,
    /// Instruction-set family.
    pub arch: Arch,
    /// Instruction-set generation.
    pub generation: Generation,
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
/// compute capabilities (shared memory a block: 227 KiB on 9.0, 99 KiB on 8.9 and 12.0), the PTX manual (lowest version
/// that knows the chip).
pub static CHIPS: [Chip; 6] = [
    Chip {
        name: "gfx950",
        arch: Arch::Amdgpu,
        generation: Generation::Cdna4,
        triple: "amdgcn-amd-amdhsa",
        features: "",
        wave: 64,
        lds_bytes: 160 * 1024,
        max_block: 1024,
        max_registers: 512,
        max_grid: [0x7FFF_FFFF, 0xFFFF, 0xFFFF],
    },
    Chip {
        name: "gfx942",
        arch: Arch::Amdgpu,
        generation: Generation::Cdna3,
        triple: "amdgcn-amd-amdhsa",
        features: "",
        wave: 64,
        lds_bytes: 64 * 1024,
        max_block: 1024,
        max_registers: 512,
        max_grid: [0x7FFF_FFFF, 0xFFFF, 0xFFFF],
    },
    Chip {
        name: "gfx1201",
        arch: Arch::Amdgpu,
        generation: Generation::Rdna4,
        triple: "amdgcn-amd-amdhsa",
        features: "",
        wave: 32,
        lds_bytes: 64 * 1024,
        max_block: 1024,
        max_registers: 256,
        max_grid: [0x7FFF_FFFF, 0xFFFF, 0xFFFF],
    },
    Chip {
        name: "sm_90",
        arch: Arch::Nvptx,
        generation: Generation::Hopper,
        triple: "nvptx64-nvidia-cuda",
        features: "+ptx78",
        wave: 32,
        lds_bytes: 227 * 1024,
        max_block: 1024,
        max_registers: 255,
        max_grid: [0x7FFF_FFFF, 0xFFFF, 0xFFFF],
    },
    Chip {
        name: "sm_89",
        arch: Arch::Nvptx,
        generation: Generation::Ada,
        triple: "nvptx64-nvidia-cuda",
        features: "+ptx78",
        wave: 32,
        lds_bytes: 99 * 1024,
        max_block: 1024,
        max_registers: 255,
        max_grid: [0x7FFF_FFFF, 0xFFFF, 0xFFFF],
    },
    Chip {
        name: "sm_120a",
        arch: Arch::Nvptx,
        generation: Generation::Blackwell120,
        triple: "nvptx64-nvidia-cuda",
        features: "+ptx87",
        wave: 32,
        lds_bytes: 99 * 1024,
        max_block: 1024,
        max_registers: 255,
        max_grid: [0x7FFF_FFFF, 0xFFFF, 0xFFFF],
    },
];

impl Target {
    /// AMD Instinct MI350 / MI355X.
    pub const GFX950: Self = Self(&CHIPS[0]);
    /// AMD Instinct MI300A / MI300X / MI325X.
    pub const GFX942: Self = Self(&CHIPS[1]);
    /// AMD Radeon RX 9070 and its like.
    pub const GFX1201: Self = Self(&CHIPS[2]);
    /// NVIDIA H100 / H200.
    pub const SM_90: Self = Self(&CHIPS[3]);
    /// NVIDIA L4, L40, RTX 40.
    pub const SM_89: Self = Self(&CHIPS[4]);
    /// NVIDIA RTX 50, RTX PRO Blackwell.
    pub const SM_120A: Self = Self(&CHIPS[5]);

    /// The chips that every operation is written for and tested on; the others differ from one of them in a few operations.
    pub const MAIN: [Self; 4] = [Self::GFX950, Self::GFX942, Self::GFX1201, Self::SM_90];

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
