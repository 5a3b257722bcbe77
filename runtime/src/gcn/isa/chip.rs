//! The chips that can be executed: one table row a chip, and nothing about a chip anywhere else.
//!
//! Wave width, LDS size and limits of a launch come from the compiler's own table, [`lathe_dsl::target`].

use lathe_dsl::target::{Generation, Target};

use crate::gcn::error::Counter;

/// Encoding and spelling of instructions, and with them the wait counters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Family {
    /// CDNA: waves of 64, `s_waitcnt`, accumulation registers.
    Gfx9,
    /// RDNA 4: waves of 32, one wait instruction a counter, no accumulation registers.
    Gfx12,
}

/// Eight-bit floats that a chip's instructions mean by `fp8` and `bf8`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fp8 {
    /// OCP's e4m3 and e5m2.
    Ocp,
    /// e4m3 and e5m2 with one zero, one NaN and no infinity, their bias larger by one.
    Fnuz,
}

/// What the executor must know of one chip.
#[derive(Debug)]
pub(crate) struct Chip {
    pub(crate) name: &'static str,
    pub(crate) generation: Generation,
    pub(crate) family: Family,
    pub(crate) lanes: usize,
    /// Scalar registers that a wave can address.
    pub(crate) sgprs: u16,
    pub(crate) fp8: Fp8,
}

static CHIPS: [Chip; Chip::COUNT] = [
    Chip { name: "gfx950", generation: Generation::Cdna4, family: Family::Gfx9, lanes: 64, sgprs: 102, fp8: Fp8::Ocp },
    Chip { name: "gfx942", generation: Generation::Cdna3, family: Family::Gfx9, lanes: 64, sgprs: 102, fp8: Fp8::Fnuz },
    Chip {
        name: "gfx1201",
        generation: Generation::Rdna4,
        family: Family::Gfx12,
        lanes: 32,
        sgprs: 106,
        fp8: Fp8::Ocp,
    },
];

impl Chip {
    /// Rows of the table.
    pub(crate) const COUNT: usize = 3;

    /// All chips with their place in the table.
    pub(crate) fn all() -> impl Iterator<Item = (usize, &'static Self)> {
        CHIPS.iter().enumerate()
    }

    /// The row of a target, with its place.
    pub(crate) fn of(target: Target) -> Option<(usize, &'static Self)> {
        Self::all().find(|(_, c)| c.name == target.chip().name)
    }

    /// Counter that covers vector memory loads.
    pub(crate) fn vector_counter(&self) -> Counter {
        match self.family {
            Family::Gfx9 => Counter::Vmcnt,
            Family::Gfx12 => Counter::Loadcnt,
        }
    }

    /// Counter that covers LDS operations.
    pub(crate) fn lds_counter(&self) -> Counter {
        match self.family {
            Family::Gfx9 => Counter::Lgkmcnt,
            Family::Gfx12 => Counter::Dscnt,
        }
    }

    /// Counter that covers scalar loads.
    pub(crate) fn scalar_counter(&self) -> Counter {
        match self.family {
            Family::Gfx9 => Counter::Lgkmcnt,
            Family::Gfx12 => Counter::Kmcnt,
        }
    }

    /// Scratch that a wave can have at most: the field of the launch registers that holds its size, in units of it.
    pub(crate) fn wave_scratch_bytes(&self) -> u32 {
        match self.family {
            Family::Gfx9 => ((1 << 13) - 1) * 1024,
            Family::Gfx12 => ((1 << 18) - 1) * 256,
        }
    }

    /// Whether stores have a counter of their own, so that waiting for loads does not count them.
    pub(crate) fn counts_stores_apart(&self) -> bool {
        self.family == Family::Gfx12
    }

    /// Whether a 16-bit result leaves the other half of its register as it is (else the upper half becomes zero).
    pub(crate) fn keeps_other_half(&self) -> bool {
        self.family == Family::Gfx12
    }

    /// Lanes of a full wave.
    pub(crate) fn all_lanes(&self) -> u64 {
        u64::MAX >> (64 - self.lanes)
    }

    /// Bits of a register operand that holds one bit a lane.
    pub(crate) fn mask_bits(&self) -> u32 {
        self.lanes as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_agree_with_the_compilers_table() {
        for (_, chip) in Chip::all() {
            let target: Target = chip.name.parse().unwrap();
            assert_eq!(chip.lanes, target.chip().wave as usize, "{}", chip.name);
            assert_eq!(chip.generation, target.chip().generation, "{}", chip.name);
        }
    }
}
