//! Types of Kernel IR values.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! scalars {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal, $bits:literal, $kind:ident;)*) => {
        /// Element type of every Kernel IR value.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
        pub enum Scalar {
            $($(#[doc = $doc])+ $variant,)*
        }

        impl Scalar {
            /// Every scalar type, in the order in which it is declared.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Width in bits; 1 for `bool`.
            pub const fn bits(self) -> u32 {
                match self {
                    $(Self::$variant => $bits,)*
                }
            }

            /// As printed.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            const fn kind(self) -> Kind {
                match self {
                    $(Self::$variant => Kind::$kind,)*
                }
            }
        }
    };
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Truth,
    Signed,
    Unsigned,
    Float,
}

scalars! {
    /// Truth value; one bit in registers, never in memory.
    Bool = "bool", 1, Truth;
    /// Signed 8-bit integer.
    I8 = "i8", 8, Signed;
    /// Unsigned 8-bit integer.
    U8 = "u8", 8, Unsigned;
    /// Signed 16-bit integer.
    I16 = "i16", 16, Signed;
    /// Unsigned 16-bit integer.
    U16 = "u16", 16, Unsigned;
    /// Signed 32-bit integer.
    I32 = "i32", 32, Signed;
    /// Unsigned 32-bit integer.
    U32 = "u32", 32, Unsigned;
    /// Signed 64-bit integer.
    I64 = "i64", 64, Signed;
    /// Unsigned 64-bit integer.
    U64 = "u64", 64, Unsigned;
    /// An index: a mathematical integer that the author promises to stay within a signed 64-bit one. Overflow is reported
    /// on `cpu` and undefined elsewhere; code generators use as few bits as its range needs. Never in memory.
    Idx = "idx", 64, Signed;
    /// IEEE binary16.
    F16 = "f16", 16, Float;
    /// bfloat16: sign, 8 exponent and 7 fraction bits.
    Bf16 = "bf16", 16, Float;
    /// IEEE binary32.
    F32 = "f32", 32, Float;
    /// IEEE binary64.
    F64 = "f64", 64, Float;
}

impl Scalar {
    /// The type with this printed name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|s| s.name() == name)
    }

    /// Bytes in memory.
    pub const fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }

    /// Whether this is a floating-point type.
    pub const fn is_float(self) -> bool {
        matches!(self.kind(), Kind::Float)
    }

    /// Whether this is an integer type (`idx` is, `bool` is not).
    pub const fn is_int(self) -> bool {
        matches!(self.kind(), Kind::Signed | Kind::Unsigned)
    }

    /// Whether this is a signed integer type (`idx` is).
    pub const fn is_signed(self) -> bool {
        matches!(self.kind(), Kind::Signed)
    }

    /// Whether values of this type have a form in memory: all but `bool` and `idx`.
    pub const fn in_memory(self) -> bool {
        !matches!(self, Self::Bool | Self::Idx)
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of scalar types: what an operation is defined on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Class(u16);

impl Class {
    /// Every type.
    pub const ALL: Self = Self::of(Scalar::ALL);
    /// `bool`.
    pub const BOOL: Self = Self::of(&[Scalar::Bool]);
    /// `u32`.
    pub const U32: Self = Self::of(&[Scalar::U32]);
    /// `u64`.
    pub const U64: Self = Self::of(&[Scalar::U64]);
    /// What packed codes of narrow floats lie in: `u8`, `u16`, `u32`.
    pub const CODES: Self = Self::of(&[Scalar::U8, Scalar::U16, Scalar::U32]);
    /// `f32`.
    pub const F32: Self = Self::of(&[Scalar::F32]);
    /// `idx`.
    pub const IDX: Self = Self::of(&[Scalar::Idx]);
    /// Integers of a stated width.
    pub const SIZED: Self = Self::of(&[
        Scalar::I8,
        Scalar::U8,
        Scalar::I16,
        Scalar::U16,
        Scalar::I32,
        Scalar::U32,
        Scalar::I64,
        Scalar::U64,
    ]);
    /// All integers.
    pub const INT: Self = Self::SIZED.or(Self::IDX);
    /// What texels of images are made of.
    pub const TEXEL: Self = Self::of(&[Scalar::F16, Scalar::F32]);
    /// Floats.
    pub const FLOAT: Self = Self::of(&[Scalar::F16, Scalar::Bf16, Scalar::F32, Scalar::F64]);
    /// Floats that have transcendental functions.
    pub const MATH: Self = Self::of(&[Scalar::F16, Scalar::Bf16, Scalar::F32]);
    /// Integers and floats.
    pub const NUMBER: Self = Self::INT.or(Self::FLOAT);
    /// Integers of a stated width, and `bool`.
    pub const BITS: Self = Self::SIZED.or(Self::BOOL);
    /// Types with a form in memory.
    pub const PLAIN: Self = Self::SIZED.or(Self::FLOAT);
    /// Types of 32 and 64 bits that atomics work on.
    pub const ATOMIC: Self = Self::of(&[Scalar::I32, Scalar::U32, Scalar::I64, Scalar::U64, Scalar::F32, Scalar::F64]);

    /// Integers of 32 and 64 bits: what bitwise atomics work on, and the sized types that a loop counts in.
    pub const ATOMIC_INT: Self = Self::of(&[Scalar::I32, Scalar::U32, Scalar::I64, Scalar::U64]);

    const fn of(list: &[Scalar]) -> Self {
        let (mut bits, mut i) = (0, 0);
        while i < list.len() {
            bits |= 1 << list[i] as u16;
            i += 1;
        }
        Self(bits)
    }

    /// Union.
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether it holds this type.
    pub const fn contains(self, s: Scalar) -> bool {
        self.0 >> s as u16 & 1 == 1
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = Scalar::ALL.iter().filter(|s| self.contains(**s)).map(|s| s.name()).collect();
        f.write_str(&names.join(", "))
    }
}

/// Address space of a pointer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Space {
    /// The workgroup's LDS (shared memory).
    Lds,
    /// Device memory.
    Global,
}

impl Space {
    /// As printed.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lds => "lds",
            Self::Global => "global",
        }
    }
}

/// Type of a Kernel IR value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Type {
    /// One element a lane.
    Scalar(Scalar),
    /// Several elements a lane, side by side in its registers.
    Vector(Scalar, u32),
    /// Pointer to elements in an address space; arithmetic counts elements.
    Ptr(Space, Scalar),
    /// A stretch of global memory with its extent: a kernel parameter, or made by `make_buffer`.
    Buffer(Scalar),
    /// An image with texels of four elements that is read: a kernel parameter.
    Texture(Scalar),
    /// An image with texels of four elements that is stored to: a kernel parameter.
    Surface(Scalar),
}

impl Type {
    /// One `bool`.
    pub const BOOL: Self = Self::Scalar(Scalar::Bool);
    /// One `u32`.
    pub const U32: Self = Self::Scalar(Scalar::U32);
    /// One `u64`.
    pub const U64: Self = Self::Scalar(Scalar::U64);

    /// The element type.
    pub const fn scalar(self) -> Scalar {
        match self {
            Self::Scalar(s)
            | Self::Vector(s, _)
            | Self::Ptr(_, s)
            | Self::Buffer(s)
            | Self::Texture(s)
            | Self::Surface(s) => s,
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
            Self::Ptr(space, _) => Self::Ptr(space, scalar),
            Self::Buffer(_) => Self::Buffer(scalar),
            Self::Texture(_) => Self::Texture(scalar),
            Self::Surface(_) => Self::Surface(scalar),
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scalar(s) => write!(f, "{s}"),
            Self::Vector(s, n) => write!(f, "{s}x{n}"),
            Self::Ptr(space, s) => write!(f, "{}<{s}>", space.name()),
            Self::Buffer(s) => write!(f, "buffer<{s}>"),
            Self::Texture(s) => write!(f, "texture<{s}>"),
            Self::Surface(s) => write!(f, "surface<{s}>"),
        }
    }
}
