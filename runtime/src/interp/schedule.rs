//! Runs the waves of a workgroup: who runs when, and barriers.

use super::error::{Absence, Fault, FaultKind};
use super::program::{Instr, Program, while_around};
use super::watch::{self, Waiter, WaitsOn};
use super::wave::{Context, Stop, Wave};
use crate::choices::Choices;

/// Longest time slice of a wave under a seeded schedule, in instructions.
const MAX_SLICE: usize = 64;

/// Rounds of a workgroup's waves in which nothing but yielding happened, after which it counts as waiting.
const IDLE_ROUNDS: usize = 8;

/// How far a workgroup got.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Progress {
    /// To its end.
    Done,
    /// Its waves seem to wait for another workgroup.
    Waiting,
    /// Through its turn.
    Preempted,
}

/// The waves of a workgroup; reused for one workgroup after the other.
pub(super) struct Group<const W: usize> {
    waves: Vec<Wave<W>>,
    /// Why each wave stopped last.
    stops: Vec<Stop>,
    /// Waves that may run.
    ready: Vec<usize>,
    choices: Option<Choices>,
}

impl<const W: usize> Group<W> {
    pub(super) fn new(program: &Program) -> Self {
        let waves: Vec<_> = (0..program.block_waves()).map(|i| Wave::new(program, i)).collect();
        Self { stops: vec![Stop::Preempted; waves.len()], ready: vec![], choices: None, waves }
    }

    /// Instructions executed in this workgroup, and the same counted once an active lane.
    pub(super) fn counts(&self) -> (u64, u64) {
        self.waves.iter().map(Wave::counts).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1))
    }

    /// Goes back to the kernel's start, for workgroup number `number`.
    pub(super) fn start(&mut self, number: u64, seed: Option<u64>) {
        self.waves.iter_mut().for_each(Wave::reset);
        self.choices = seed.map(|s| Choices(Choices(s ^ Choices(number).next()).next()));
        self.release();
    }

    /// Every wave may run.
    fn release(&mut self) {
        self.stops.fill(Stop::Preempted);
        self.ready.clear();
        self.ready.extend(0..self.waves.len());
    }

    /// Runs the workgroup of `cx`, from where it stopped, for at most `slices` time slices. Without a seed the waves run in
    /// order, each up to the next barrier or until it yields; with one, a wave chosen at random runs for a random number of
    /// instructions, and so on.
    pub(super) fn run(
        &mut self,
        cx: &mut Context<'_>,
        code: &[Instr<W>],
        mut slices: u64,
    ) -> Result<Progress, Box<Fault>> {
        let mut yields = 0;
        loop {
            while !self.ready.is_empty() {
                if slices == 0 {
                    return Ok(Progress::Preempted);
                }
                slices -= 1;
                let (at, fuel) = match &mut self.choices {
                    Some(c) => (c.below(self.ready.len()), 1 + c.below(MAX_SLICE) as u64),
                    None => (0, u64::MAX),
                };
                let wave = self.ready[at];
                let stop = match cx.watch {
                    None => self.waves[wave].run::<false>(cx, code, fuel)?,
                    Some(_) => self.waves[wave].run::<true>(cx, code, fuel)?,
                };
                self.stops[wave] = stop;
                if let Some(late) = &mut cx.late {
                    late.chance(wave as u32, stop == Stop::Yielded);
                }
                match stop {
                    Stop::Preempted => {}
                    Stop::Yielded => {
                        if let Some(watch) = &mut cx.watch {
                            watch.yielded(wave, || self.waves[wave].state());
                        }
                        self.ready.remove(at);
                        self.ready.push(wave);
                        yields += 1;
                        if yields >= IDLE_ROUNDS * self.ready.len() {
                            return Ok(Progress::Waiting);
                        }
                    }
                    Stop::Barrier(_) | Stop::End => {
                        self.ready.remove(at);
                        yields = 0;
                    }
                }
            }
            if self.stops.iter().all(|s| *s == Stop::End) {
                return Ok(Progress::Done);
            }
            self.check_barrier(cx)?;
            if let Some(watch) = &mut cx.watch {
                watch.barrier();
            }
            if let Some(late) = &mut cx.late {
                late.barrier();
            }
            self.release();
        }
    }

    /// The version of memory at which no wave goes on, after [`Progress::Waiting`].
    pub(super) fn stuck(&self, cx: &Context<'_>) -> Option<u64> {
        cx.watch.as_ref()?.stuck(&self.ready)
    }

    /// What the waves wait for, those in loops first.
    pub(super) fn waiters(&self, cx: &Context<'_>, code: &[Instr<W>]) -> Vec<Waiter> {
        let mut waiters = vec![];
        for (wave, stop) in self.stops.iter().enumerate() {
            let here = &self.waves[wave];
            let (pc, on) = match stop {
                Stop::End => continue,
                Stop::Barrier(pc) => (*pc, WaitsOn::Barrier),
                Stop::Preempted | Stop::Yielded => {
                    let (head, back) = while_around(code, here.pc()).unwrap_or((here.pc(), here.pc()));
                    let name = |space, at| watch::place(cx, space, at);
                    let on = cx.watch.as_ref().map(|w| w.waits_on(wave, (head, back), cx.program, name));
                    (head, on.unwrap_or(WaitsOn::Nothing))
                }
            };
            waiters.push(Waiter { site: cx.site(pc, wave as u32, here.first_lane()), on });
        }
        waiters.sort_by_key(|w| w.on == WaitsOn::Barrier);
        waiters
    }

    /// Every wave has stopped and not all have ended: all must wait at the same barrier.
    fn check_barrier(&self, cx: &Context<'_>) -> Result<(), Box<Fault>> {
        let stops = &self.stops;
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
