//! Licences that a kernel gives the compiler about floats.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::def::Family;

/// A set of fast-math flags, as LLVM defines them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct FastFlags(u8);

impl FastFlags {
    /// No licence.
    pub const NONE: Self = Self(0);
    /// Sums and products may be reordered.
    pub const REASSOC: Self = Self(1);
    /// No operand or result is a NaN.
    pub const NNAN: Self = Self(2);
    /// No operand or result is infinite.
    pub const NINF: Self = Self(4);
    /// The sign of a zero does not matter.
    pub const NSZ: Self = Self(8);
    /// A quotient may be a product with the reciprocal.
    pub const ARCP: Self = Self(16);
    /// A product and a sum may become an fma.
    pub const CONTRACT: Self = Self(32);
    /// Functions may be approximated by the chip's own.
    pub const AFN: Self = Self(64);
    /// Everything.
    pub const FAST: Self = Self(127);

    const NAMES: [&'static str; 7] = ["reassoc", "nnan", "ninf", "nsz", "arcp", "contract", "afn"];

    /// Both.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of `other` are in it.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// LLVM's names of its flags, in LLVM's order.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES.into_iter().enumerate().filter(move |(i, _)| self.0 >> i & 1 == 1).map(|(_, n)| n)
    }

    /// The flag with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().position(|n| *n == name).map(|i| Self(1 << i))
    }
}

impl std::ops::BitOr for FastFlags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        self.with(other)
    }
}

impl fmt::Display for FastFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names().collect::<Vec<_>>().join("|"))
    }
}

/// What a kernel allows, for each family of operations, and whether subnormals of `f32` may be flushed to zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct FastMath {
    families: [FastFlags; Family::ALL.len()],
    /// `f32` subnormals may be flushed to zero, as operands and as results.
    pub flush_subnormals: bool,
}

impl FastMath {
    /// The default: no contraction, no reassociation, no flushing.
    pub const STRICT: Self = Self { families: [FastFlags::NONE; Family::ALL.len()], flush_subnormals: false };

    /// The flags of a family.
    pub const fn of(self, family: Family) -> FastFlags {
        self.families[family as usize]
    }

    /// With more flags for a family.
    #[must_use]
    pub const fn allow(mut self, family: Family, flags: FastFlags) -> Self {
        self.families[family as usize] = self.families[family as usize].with(flags);
        self
    }

    /// With more flags for every family.
    #[must_use]
    pub const fn allow_all(self, flags: FastFlags) -> Self {
        self.allow(Family::Arith, flags)
            .allow(Family::Extrema, flags)
            .allow(Family::Math, flags)
            .allow(Family::Compare, flags)
    }

    /// With leave to flush `f32` subnormals.
    #[must_use]
    pub const fn flush(mut self) -> Self {
        self.flush_subnormals = true;
        self
    }
}
