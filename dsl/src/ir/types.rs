//! Types of Kernel IR values.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Element type of every Kernel IR value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Scalar {
    /// Truth value; one bit in registers, never in memory.
    Bool,
    /// Unsigned 16-bit integer.
    U16,
    /// Signed 32-bit integer.
    I32,
    /// Unsigned 32-bit integer.
    U32,
    /// Signed 64-bit integer.
    I64,
    /// Unsigned 64-bit integer.
    U64,
    /// bfloat16: sign, 8 exponent and 7 fraction bits.
    Bf16,
    /// IEEE binary32.
    F32,
}

impl Scalar {
    /// Width in bits; 1 for `bool`.
    pub const fn bits(self) -> u32 {
        match self {
            Self::Bool => 1,
            Self::U16 | Self::Bf16 => 16,
            Self::I32 | Self::U32 | Self::F32 => 32,
            Self::I64 | Self::U64 => 64,
        }
    }

    /// Bytes in memory.
    pub const fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }

    /// Whether this is a floating-point type.
    pub const fn is_float(self) -> bool {
        matches!(self, Self::Bf16 | Self::F32)
    }

    /// Whether this is an integer type (`bool` is not).
    pub const fn is_int(self) -> bool {
        !self.is_float() && !matches!(self, Self::Bool)
    }

    /// Whether this is a signed integer type.
    pub const fn is_signed(self) -> bool {
        matches!(self, Self::I32 | Self::I64)
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bool => "bool",
            Self::U16 => "u16",
            Self::I32 => "i32",
            Self::U32 => "u32",
            Self::I64 => "i64",
            Self::U64 => "u64",
            Self::Bf16 => "bf16",
            Self::F32 => "f32",
        })
    }
}

/// Type of a Kernel IR value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Type {
    /// One element a lane.
    Scalar(Scalar),
    /// Several elements a lane, side by side in its registers.
    Vector(Scalar, u32),
    /// Pointer to elements in the workgroup's LDS; arithmetic counts elements.
    LdsPtr(Scalar),
    /// A global buffer with its extent; only a kernel parameter has this type.
    Buffer(Scalar),
}

impl Type {
    /// The element type.
    pub const fn scalar(self) -> Scalar {
        match self {
            Self::Scalar(s) | Self::Vector(s, _) | Self::LdsPtr(s) | Self::Buffer(s) => s,
        }
    }

    /// Elements a lane holds; 1 for everything but vectors.
    pub const fn lanes(self) -> u32 {
        match self {
            Self::Vector(_, n) => n,
            _ => 1,
        }
    }

    /// Whether values of this type are data (scalars and vectors), not pointers or buffers.
    pub const fn is_data(self) -> bool {
        matches!(self, Self::Scalar(_) | Self::Vector(..))
    }

    /// Bytes in memory of one data value.
    pub const fn bytes(self) -> u32 {
        self.scalar().bytes() * self.lanes()
    }

    /// This type with another element type, same number of elements.
    pub const fn with_scalar(self, scalar: Scalar) -> Self {
        match self {
            Self::Scalar(_) => Self::Scalar(scalar),
            Self::Vector(_, n) => Self::Vector(scalar, n),
            Self::LdsPtr(_) => Self::LdsPtr(scalar),
            Self::Buffer(_) => Self::Buffer(scalar),
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scalar(s) => write!(f, "{s}"),
            Self::Vector(s, n) => write!(f, "{s}x{n}"),
            Self::LdsPtr(s) => write!(f, "lds<{s}>"),
            Self::Buffer(s) => write!(f, "buffer<{s}>"),
        }
    }
}
