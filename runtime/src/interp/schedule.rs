//! Runs the waves of a workgroup: who runs when, and barriers.

use super::error::{Absence, Fault, FaultKind};
use super::program::Program;
use super::wave::{Context, Stop, Wave};

/// A small generator of scheduling choices (SplitMix64).
struct Choices(u64);

impl Choices {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number in `0..n`, for small `n`.
    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

/// Longest time slice of a wave under a seeded schedule, in instructions.
const MAX_SLICE: usize = 64;

/// The waves of a workgroup; reused for one workgroup after the other.
pub(super) struct Group<const W: usize> {
    waves: Vec<Wave<W>>,
}

impl<const W: usize> Group<W> {
    pub(super) fn new(program: &Program) -> Self {
        Self { waves: (0..program.block_waves()).map(|i| Wave::new(program, i)).collect() }
    }

    /// Instructions executed so far, and the same counted once an active lane.
    pub(super) fn counts(&self) -> (u64, u64) {
        let sum = |f: fn(&Wave<W>) -> u64| self.waves.iter().map(f).sum();
        (sum(Wave::instructions), sum(|w| w.lane_ops))
    }

    /// Runs the workgroup of `cx`. Without a seed the waves run in order, each up to the next barrier; with one, a
    /// wave chosen at random runs for a random number of instructions, and so on.
    pub(super) fn run(&mut self, cx: &mut Context<'_>, seed: Option<u64>) -> Result<(), Box<Fault>> {
        cx.lds.reset();
        self.waves.iter_mut().for_each(Wave::reset);
        let mut choices = seed.map(|s| Choices(Choices(s ^ Choices(cx.block_number).next()).next()));
        let mut stops = vec![Stop::Preempted; self.waves.len()];
        let mut ready: Vec<usize> = vec![];
        loop {
            ready.clear();
            ready.extend((0..stops.len()).filter(|i| stops[*i] == Stop::Preempted));
            while !ready.is_empty() {
                let (at, fuel) = match &mut choices {
                    Some(c) => (c.below(ready.len()), 1 + c.below(MAX_SLICE) as u64),
                    None => (0, u64::MAX),
                };
                let wave = ready[at];
                stops[wave] = self.waves[wave].run(cx, fuel)?;
                if stops[wave] != Stop::Preempted {
                    ready.remove(at);
                }
            }
            if stops.iter().all(|s| *s == Stop::End) {
                return Ok(());
            }
            self.check_barrier(cx, &stops)?;
            stops.fill(Stop::Preempted);
        }
    }

    /// Every wave has stopped and not all have ended: all must wait at the same barrier.
    fn check_barrier(&self, cx: &Context<'_>, stops: &[Stop]) -> Result<(), Box<Fault>> {
        let waiting = stops.iter().enumerate().find_map(|(wave, stop)| match stop {
            Stop::Barrier(pc) => Some((wave, *pc)),
            _ => None,
        });
        let Some((wave, pc)) = waiting else { return Ok(()) };
        for (other, stop) in stops.iter().enumerate() {
            let absence = match stop {
                Stop::Barrier(at) if *at == pc => continue,
                Stop::Barrier(at) => Absence::Elsewhere(cx.program.locations[*at as usize]),
                _ => Absence::Ended,
            };
            let missing = cx.program.thread(self.waves[other].first_thread());
            let kind = FaultKind::BarrierNotReached { missing, absence };
            return Err(Box::new(Fault { site: cx.site(pc, wave as u32, 0), kind }));
        }
        Ok(())
    }
}
