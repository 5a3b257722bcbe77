//! Values that an author promises to be the same in all waves of a workgroup.

use rustc_hash::FxHashMap;

use super::program::{Pc, Program};

/// What the waves of one workgroup have said so far. Control flow at a promise is the same for the whole workgroup, so the
/// n-th time one wave comes to it is the n-th time of every wave.
#[derive(Debug)]
pub(super) struct Promises {
    waves: u32,
    /// By operation and wave: how often it came there.
    times: FxHashMap<(Pc, u32), u32>,
    /// By operation and time: the value, and how many waves have said it.
    said: FxHashMap<(Pc, u32), (u64, u32)>,
}

impl Promises {
    pub(super) fn new(program: &Program) -> Self {
        Self { waves: program.block_waves(), times: FxHashMap::default(), said: FxHashMap::default() }
    }

    /// For the next workgroup.
    pub(super) fn reset(&mut self) {
        self.times.clear();
        self.said.clear();
    }

    /// Whether a wave that comes to `pc` has the value that those before it had there, at their same time.
    pub(super) fn keep(&mut self, pc: Pc, wave: u32, bits: u64) -> bool {
        let time = self.times.entry((pc, wave)).or_default();
        *time += 1;
        let at = (pc, *time);
        let (value, said) = self.said.entry(at).or_insert((bits, 0));
        *said += 1;
        let kept = *value == bits;
        if *said == self.waves {
            self.said.remove(&at);
        }
        kept
    }
}
