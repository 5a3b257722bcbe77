//! One host thread of a launch or of a group of them: takes workgroups and runs them.

use std::cell::RefCell;
use std::sync::atomic::Ordering;

use lathe_dsl::Arch;

use super::early::{Past, Sight};
use super::error::Fault;
use super::findings::Findings;
use super::late::{Global, Late};
use super::lds::Lds;
use super::parties::Party;
use super::program::{Instr, Program};
use super::promises::Promises;
use super::schedule::{Group, Progress};
use super::watch::{Checks, Waits, Watch};
use super::wave::Context;
use super::{Outcome, Shared};
use crate::choices::Choices;
use crate::visibility::{self, OfBlock, Stores, granule};

/// Memory that the registers and LDS of the workgroups begun by one host thread may take.
const MAX_RESIDENT_BYTES: u64 = 256 << 20;

/// A workgroup that has begun.
struct Resident<const W: usize> {
    /// Its launch.
    party: usize,
    number: u64,
    group: Group<W>,
    lds: Lds,
    promises: Promises,
    watch: Option<Watch>,
    /// Its stores on their way.
    late: Option<OfBlock>,
    /// By wave; empty where loads are in order.
    sight: Vec<Sight>,
    /// The version of memory at which it was last seen not to go on.
    stuck: Option<u64>,
}

/// Workgroups that one host thread may have begun: those that wait for others stay while those run.
pub(super) fn most_residents(program: &Program, checks: Checks) -> usize {
    let rows = u64::from(program.rows[0]) * 4 + u64::from(program.rows[1]) * 8;
    let registers = rows * u64::from(program.wave()) * u64::from(program.block_waves());
    let shadow = if checks.races { Watch::bytes(program) } else { 0 };
    let bytes = registers + 2 * u64::from(program.lds_layout.1) + shadow + 1024;
    (MAX_RESIDENT_BYTES / bytes).clamp(16, 1024) as usize
}

/// One host thread's workgroups.
struct Worker<'s, 'a, const W: usize> {
    shared: &'s Shared<'a>,
    codes: &'s [&'s [Instr<W>]],
    residents: Vec<Resident<W>>,
    /// By launch, those of [`Party::like`]: for its next workgroups.
    spare: Vec<Vec<Resident<W>>>,
    /// Stores on their way that a device sees, by device.
    late: Vec<Stores>,
    /// Where loads are made early.
    past: Option<RefCell<Past>>,
    /// What becomes visible when; only in [`Worker::interleave`].
    choices: Option<Choices>,
    outcome: Outcome,
}

/// Takes workgroups until there are none left but such as are higher than one that has failed.
pub(super) fn worker<const W: usize>(shared: &Shared<'_>, codes: &[&[Instr<W>]]) -> Outcome {
    let parties = shared.parties.len();
    let worker = Worker {
        shared,
        codes,
        residents: vec![],
        spare: std::iter::repeat_with(Vec::new).take(parties).collect(),
        late: std::iter::repeat_with(Stores::default).take(parties).collect(),
        past: (shared.interleaves && shared.parties.iter().any(|p| p.arch == Arch::Nvptx)).then(RefCell::default),
        choices: shared.options.seed.filter(|_| shared.interleaves).map(Choices),
        outcome: Outcome { findings: Findings::default(), counts: vec![(0, 0); parties], failure: None },
    };
    match worker.choices {
        Some(Choices(seed)) => worker.interleave(Choices(!seed)),
        None => worker.in_order(),
    }
}

impl<const W: usize> Worker<'_, '_, W> {
    fn waits(&self) -> Option<&Waits> {
        self.shared.monitor.as_ref().and_then(|m| m.waits())
    }

    fn failed(&self) -> u64 {
        self.shared.failed.load(Ordering::Relaxed)
    }

    /// Each workgroup runs until it ends or waits. While all that have begun wait, this begins further ones and goes back to
    /// the others between them.
    fn in_order(mut self) -> Outcome {
        // Which resident has its turn next, and whether a new one comes before it.
        let (mut turn, mut new_first) = (0, true);
        loop {
            let begins = (self.residents.is_empty() || new_first) && self.residents.len() < self.shared.most;
            let at = if begins && self.begin(None) {
                self.residents.len() - 1
            } else if self.residents.is_empty() {
                return self.outcome;
            } else {
                if begins && turn % self.residents.len() == 0 {
                    std::thread::yield_now();
                }
                turn += 1;
                turn % self.residents.len()
            };
            new_first = !new_first;
            new_first |= self.turn(at, u64::MAX) == Some(Progress::Done);
        }
    }

    /// Takes turns of random length between the workgroups that have begun, and begins others at random.
    fn interleave(mut self, mut choices: Choices) -> Outcome {
        loop {
            let open: Vec<usize> =
                (0..self.shared.parties.len()).filter(|p| self.shared.parties[*p].has_left()).collect();
            let version = self.waits().map(Waits::version);
            let moving = |r: &Resident<W>| version.is_none() || r.stuck != version;
            let ready: Vec<usize> = (0..self.residents.len()).filter(|at| moving(&self.residents[*at])).collect();
            let begins = !open.is_empty() && self.residents.len() < self.shared.most;
            if begins && (ready.is_empty() || choices.below(4) == 0) {
                let party = open[choices.below(open.len())];
                // One higher than a failed one does not begin.
                if !self.begin(Some(party)) && self.residents.is_empty() {
                    return self.outcome;
                }
                continue;
            }
            let at = match (ready.len(), self.residents.len()) {
                (0, 0) => return self.outcome,
                (0, _) if self.move_any() => continue,
                // None goes on, as their next turns tell.
                (0, n) => choices.below(n),
                (n, _) => ready[choices.below(n)],
            };
            // Mostly short turns, now and then a long one.
            let longest = 1 << [1, 3, 5, 5, 7, 10][choices.below(6)];
            let slices = 1 + choices.below(longest) as u64;
            self.turn(at, slices);
        }
    }

    /// Begins the next workgroup of launch `party`, or of the first that has one.
    fn begin(&mut self, party: Option<usize>) -> bool {
        let shared = self.shared;
        let mut candidates = party.map_or(0..shared.parties.len(), |p| p..p + 1);
        while let Some(at) = candidates.clone().find(|p| shared.parties[*p].has_left()) {
            let party = &shared.parties[at];
            let Some(place) = party.take() else { continue };
            let failed = self.failed();
            if party.first + party.order.least_from(place) > failed {
                // So are all that follow.
                candidates.start = at + 1;
                continue;
            }
            let number = party.first + party.order.at(place);
            if number > failed {
                continue;
            }
            let mut next = self.spare[party.like].pop().unwrap_or_else(|| Resident {
                party: at,
                number,
                group: Group::new(party.program),
                lds: Lds::new(party.program),
                promises: Promises::new(party.program),
                watch: shared.monitor.as_ref().map(|monitor| Watch::new(party.program, monitor)),
                late: shared.interleaves.then(|| OfBlock::new(party.program.block_waves() as usize)),
                sight: sight(party, shared.interleaves),
                stuck: None,
            });
            (next.party, next.number, next.stuck) = (at, number, None);
            next.group.start(number, shared.options.seed);
            next.lds.reset();
            next.promises.reset();
            if let Some(watch) = &mut next.watch {
                watch.begin(number, party.device);
            }
            if let (Some(late), Some(choices)) = (&mut next.late, &mut self.choices) {
                late.start(choices);
            }
            if let Some(past) = &self.past {
                next.sight.iter_mut().for_each(|sight| sight.start(&past.borrow()));
            }
            if let Some(waits) = self.waits() {
                waits.begin();
            }
            self.residents.push(next);
            return true;
        }
        false
    }

    /// Runs resident number `at` on for at most `slices` time slices. What comes back is nothing if it failed.
    fn turn(&mut self, at: usize, slices: u64) -> Option<Progress> {
        match self.run(at, slices) {
            Ok(Progress::Done) => {
                let mut resident = self.take(at);
                self.ended(&mut resident);
                self.spare[self.shared.parties[resident.party].like].push(resident);
                Some(Progress::Done)
            }
            Ok(progress) => {
                // What it waits for may never come.
                let gives_up = progress == Progress::Waiting || self.residents[at].stuck.is_some();
                if gives_up && self.failed() != u64::MAX {
                    self.take(at);
                }
                Some(progress)
            }
            Err((number, fault)) => {
                self.shared.failed.fetch_min(number, Ordering::Relaxed);
                if self.outcome.failure.as_ref().is_none_or(|(lowest, _)| number < *lowest) {
                    self.outcome.failure = Some((number, fault));
                }
                self.residents.retain(|r| r.number < number);
                None
            }
        }
    }

    /// Resident number `at` goes; what it executed counts.
    fn take(&mut self, at: usize) -> Resident<W> {
        let resident = self.residents.swap_remove(at);
        let (instructions, lane_ops) = resident.group.counts();
        let total = &mut self.outcome.counts[resident.party];
        *total = (total.0 + instructions, total.1 + lane_ops);
        resident
    }

    /// Moves some store on that nothing waits for; whether there was one.
    fn move_any(&mut self) -> bool {
        let Self { shared, residents, late: devices, past, choices, .. } = self;
        residents.iter_mut().any(|r| {
            let late = late((shared, r.party), devices, past, choices, (&mut r.late, &mut r.sight));
            late.is_some_and(|mut late| late.move_any())
        })
    }

    /// A workgroup has come to its end: its device's next launch may have its turn.
    fn ended(&mut self, resident: &mut Resident<W>) {
        let parties = &self.shared.parties;
        let party = &parties[resident.party];
        if let Some(watch) = &resident.watch {
            watch.end();
        }
        let last = party.end();
        let block = (&mut resident.late, resident.sight.as_mut_slice());
        let launch = (self.shared, resident.party);
        if let Some(mut late) = late(launch, &mut self.late, &self.past, &mut self.choices, block) {
            late.end(last);
        }
        let next = party.then.filter(|_| last).map(|at| &parties[at]);
        if let Some(waits) = self.waits() {
            waits.end(resident.number, next.map_or(0, |next| next.blocks));
        }
        if let Some(next) = next {
            next.set_open(true);
        }
    }

    /// Runs a workgroup on; a fault comes with the number of the workgroup to blame.
    fn run(&mut self, at: usize, slices: u64) -> Result<Progress, (u64, Box<Fault>)> {
        let Self { shared, codes, residents, late: devices, past, choices, outcome, .. } = self;
        let resident = &mut residents[at];
        let (number, code) = (resident.number, codes[resident.party]);
        let (mut block, mut sight) = (resident.late.take(), std::mem::take(&mut resident.sight));
        let late = late((shared, resident.party), devices, past, choices, (&mut block, &mut sight));
        let (group, mut cx) = resident.parts(shared, &mut outcome.findings, late);
        let progress = group.run(&mut cx, code, slices).map_err(|fault| (number, fault))?;
        let stuck = if progress == Progress::Done { None } else { group.stuck(&cx) };
        (resident.stuck, resident.late, resident.sight) = (stuck, block, sight);
        // What is on its way may be what is waited for.
        let under_way = |r: &Resident<W>| r.late.as_ref().is_some_and(|late| !late.is_empty());
        if let Some(version) = stuck
            && let Some(waits) = shared.monitor.as_ref().and_then(|m| m.waits())
            && devices.iter().all(Stores::is_empty)
            && !residents.iter().any(under_way)
        {
            let (group, cx) = residents[at].parts(shared, &mut outcome.findings, None);
            if let Some((lowest, fault)) = waits.stuck(number, version, || group.waiters(&cx, code)) {
                return Err((lowest, Box::new(fault)));
            }
        }
        Ok(progress)
    }
}

impl<const W: usize> Resident<W> {
    /// Its waves, and what they share.
    fn parts<'c>(
        &'c mut self,
        shared: &'c Shared<'_>,
        findings: &'c mut Findings,
        late: Option<Late<'c>>,
    ) -> (&'c mut Group<W>, Context<'c>) {
        let party: &Party<'_> = &shared.parties[self.party];
        let cx = Context {
            program: party.program,
            buffers: &party.buffers,
            scalars: &party.scalars,
            parties: &shared.parties,
            party: self.party as u32,
            block: party.program.block_at(self.number - party.first),
            block_number: self.number,
            late,
            allocations: &party.allocations,
            lds: &mut self.lds,
            promises: &mut self.promises,
            findings,
            watch: self.watch.as_mut(),
            mma: shared.options.mma,
            strict_bounds: shared.options.strict_bounds,
            step_limit: shared.options.step_limit.unwrap_or(u64::MAX),
        };
        (&mut self.group, cx)
    }
}

/// What the waves of a workgroup see, where loads are made early.
fn sight(party: &Party<'_>, interleaves: bool) -> Vec<Sight> {
    let waves = if interleaves && party.arch == Arch::Nvptx { party.program.block_waves() } else { 0 };
    (0..waves).map(|_| Sight::default()).collect()
}

/// What is on its way for a workgroup of a launch, by its number, and what it sees.
fn late<'c>(
    (shared, party): (&'c Shared<'_>, usize),
    devices: &'c mut [Stores],
    past: &'c Option<RefCell<Past>>,
    choices: &'c mut Option<Choices>,
    (block, sight): (&'c mut Option<OfBlock>, &'c mut [Sight]),
) -> Option<Late<'c>> {
    let party = &shared.parties[party];
    let stores = visibility::Late {
        granule: granule(party.arch),
        block: block.as_mut()?,
        device: &mut devices[party.device as usize],
        choices: choices.as_mut()?,
    };
    let waits = shared.monitor.as_ref().and_then(|m| m.waits());
    Some(Late { stores, global: Global { allocations: &party.allocations, waits, past: past.as_ref() }, sight })
}
