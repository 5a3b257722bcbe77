//! Matrix products: which there are on which chip, and which element of a matrix every lane's registers hold.
//!
//! One table here serves the verifier, the interpreter, the builder's fragments and code generation.

mod layout;
mod plain;
mod scaled;
#[cfg(test)]
mod tests;

pub use layout::{Layout, Step};
pub use plain::{E4M3, plain};
pub use scaled::{BLOCK, SCALED, ScaledTiles, scaled};

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ir::{Scalar, Type};
use crate::numerics::Narrow;
use crate::target::{Generation, Target};

/// Extents of a matrix product: A is M×K, B is K×N, C and D are M×N.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct MmaShape {
    /// Rows of A, C and D.
    pub m: u32,
    /// Columns of B, C and D.
    pub n: u32,
    /// Columns of A, rows of B.
    pub k: u32,
}

impl MmaShape {
    /// M, N, K.
    pub const fn new(m: u32, n: u32, k: u32) -> Self {
        Self { m, n, k }
    }

    /// The shape that is printed so.
    pub fn named(text: &str) -> Option<Self> {
        let (m, rest) = text.strip_prefix('m')?.split_once('n')?;
        let (n, k) = rest.split_once('k')?;
        let number = |t: &str| t.parse().ok().filter(|_| t.bytes().all(|b| b.is_ascii_digit()) && !t.starts_with('0'));
        Some(Self { m: number(m)?, n: number(n)?, k: number(k)? })
    }
}

/// `m16n16k32`.
impl fmt::Display for MmaShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "m{}n{}k{}", self.m, self.n, self.k)
    }
}

/// Element type of a factor.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum MmaType {
    /// IEEE binary16; sums are `f32`.
    F16,
    /// bfloat16; sums are `f32`.
    Bf16,
    /// Signed 8-bit integer; sums are `i32`, and wrap.
    I8,
    /// A float of 8, 6 or 4 bits; sums are `f32`.
    Narrow(Narrow),
}

impl MmaType {
    /// As printed.
    pub const fn name(self) -> &'static str {
        match self {
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::I8 => "i8",
            Self::Narrow(format) => format.name(),
        }
    }

    /// The type that is printed so.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "f16" => Some(Self::F16),
            "bf16" => Some(Self::Bf16),
            "i8" => Some(Self::I8),
            // A scale is no factor.
            _ => Narrow::named(name).filter(|f| *f != Narrow::E8m0).map(Self::Narrow),
        }
    }

    /// Bits of an element.
    pub const fn bits(self) -> u32 {
        match self {
            Self::F16 | Self::Bf16 => 16,
            Self::I8 => 8,
            Self::Narrow(format) => format.bits(),
        }
    }

    /// Type of sums.
    pub const fn sum(self) -> Scalar {
        match self {
            Self::I8 => Scalar::I32,
            _ => Scalar::F32,
        }
    }

    /// Type of a lane's registers that hold `n` elements: a vector of them, or packed words, first element lowest, of a narrow
    /// float.
    pub const fn registers(self, n: u32) -> Type {
        match self {
            Self::F16 => Type::Vector(Scalar::F16, n),
            Self::Bf16 => Type::Vector(Scalar::Bf16, n),
            Self::I8 => Type::Vector(Scalar::I8, n),
            Self::Narrow(format) => Type::Vector(Scalar::U32, n * format.bits() / 32),
        }
    }

    /// Whether a product of the two is one of 8-bit floats of one family: both as OCP has them, or both `fnuz`.
    const fn fp8(a: Self, b: Self, fnuz: bool) -> bool {
        a.is_fp8(fnuz) && b.is_fp8(fnuz)
    }

    const fn is_fp8(self, fnuz: bool) -> bool {
        matches!(
            (self, fnuz),
            (Self::Narrow(Narrow::E4m3 | Narrow::E5m2), false)
                | (Self::Narrow(Narrow::E4m3Fnuz | Narrow::E5m2Fnuz), true)
        )
    }
}

impl fmt::Display for MmaType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Whose registers: how matrix products spread matrices over lanes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Fragments {
    /// gfx942.
    Cdna3,
    /// gfx950.
    Cdna4,
    /// gfx12.
    Rdna4,
    /// `mma.sync`.
    Nvidia,
}

impl Fragments {
    /// Every one.
    pub const ALL: [Self; 4] = [Self::Cdna3, Self::Cdna4, Self::Rdna4, Self::Nvidia];

    /// As printed.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cdna3 => "cdna3",
            Self::Cdna4 => "cdna4",
            Self::Rdna4 => "rdna4",
            Self::Nvidia => "nvidia",
        }
    }

    /// The one that is printed so.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|f| f.name() == name)
    }

    /// That of a target.
    pub fn of(target: Target) -> Self {
        match target.chip().generation {
            Generation::Cdna3 => Self::Cdna3,
            Generation::Cdna4 => Self::Cdna4,
            Generation::Rdna4 => Self::Rdna4,
            Generation::Ada | Generation::Hopper | Generation::Blackwell120 => Self::Nvidia,
        }
    }

    /// Lanes a wave.
    pub const fn wave(self) -> u32 {
        match self {
            Self::Cdna3 | Self::Cdna4 => 64,
            Self::Rdna4 | Self::Nvidia => 32,
        }
    }
}

impl fmt::Display for Fragments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Where the elements of a product's matrices are. All three are spread over the same number of lanes, a logical group of the
/// wave; every group multiplies its own matrices.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tiles {
    /// M rows, K columns.
    pub a: Layout,
    /// K rows, N columns.
    pub b: Layout,
    /// M rows, N columns; C and D alike.
    pub c: Layout,
}

impl Tiles {
    /// Lanes of a group.
    pub fn lanes(&self) -> u32 {
        self.c.lanes()
    }
}
