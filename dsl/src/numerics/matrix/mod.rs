//! Sums of products as matrix instructions make them: exact with one rounding, and as a chip was measured to do it.

mod exact;
mod hopper;
#[cfg(test)]
mod tests;

pub use exact::exact_sum;
pub use hopper::{hopper_step, hopper_step_f16};

use crate::target::Target;

/// How the sums of a matrix product are rounded.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum MmaRounding {
    /// The exact sum, rounded once to f32: the portable meaning.
    #[default]
    Exact,
    /// Bit for bit as sm_90's tensor cores do it in `mma.sync` ([`hopper_step`]).
    Hopper,
}

impl MmaRounding {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Exact, Self::Hopper];

    /// `exact`, or the chip's: `sm_90`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Hopper => "sm_90",
        }
    }

    /// The one with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|r| r.name() == name)
    }

    /// The chip's own, if it has been measured.
    pub fn of(target: Target) -> Option<Self> {
        (target == Target::SM_90).then_some(Self::Hopper)
    }
}
