//! One host thread of a launch: takes workgroups and runs them.

use std::sync::atomic::Ordering;

use super::error::Fault;
use super::lds::Lds;
use super::program::{Instr, Program};
use super::promises::Promises;
use super::schedule::{Group, Progress};
use super::watch::{Checks, Watch};
use super::wave::Context;
use super::{Outcome, Shared};

/// Memory that the registers and LDS of the workgroups begun by one host thread may take.
const MAX_RESIDENT_BYTES: u64 = 256 << 20;

/// A workgroup that has begun.
struct Resident<const W: usize> {
    number: u64,
    group: Group<W>,
    lds: Lds,
    promises: Promises,
    watch: Option<Watch>,
}

/// Workgroups that one host thread may have begun: those that wait for others stay while those run.
pub(super) fn most_residents(program: &Program, checks: Checks) -> usize {
    let rows = u64::from(program.rows[0]) * 4 + u64::from(program.rows[1]) * 8;
    let registers = rows * u64::from(program.wave()) * u64::from(program.block_waves());
    let shadow = if checks.races { Watch::bytes(program) } else { 0 };
    let bytes = registers + 2 * u64::from(program.lds_layout.1) + shadow + 1024;
    (MAX_RESIDENT_BYTES / bytes).clamp(16, 1024) as usize
}

/// Takes workgroups in the launch's order until there are none left but such as are higher than one that has failed. While all that have begun wait, it begins
/// further ones and goes back to the others between them.
pub(super) fn worker<const W: usize>(shared: &Shared<'_>, code: &[Instr<W>]) -> Outcome {
    let program = shared.program;
    let mut outcome = Outcome::default();
    let mut residents: Vec<Resident<W>> = vec![];
    let mut spare: Vec<Resident<W>> = vec![];
    let most = most_residents(program, shared.options.checks);
    let mut left = true;
    // Which resident has its turn next, and whether a new one comes before it.
    let (mut turn, mut new_first) = (0, true);
    loop {
        let at = if left && residents.len() < most && (residents.is_empty() || new_first) {
            let place = shared.next.fetch_add(1, Ordering::Relaxed);
            let failed = shared.failed.load(Ordering::Relaxed);
            if place >= shared.blocks || shared.order.least_from(place) > failed {
                left = false;
                continue;
            }
            let number = shared.order.at(place);
            if number > failed {
                continue;
            }
            let mut next = spare.pop().unwrap_or_else(|| Resident {
                number,
                group: Group::new(program),
                lds: Lds::new(program),
                promises: Promises::new(program),
                watch: shared.monitor.as_ref().map(|monitor| Watch::new(program, monitor)),
            });
            next.number = number;
            next.group.start(number, shared.options.seed);
            next.lds.reset();
            next.promises.reset();
            if let Some(watch) = &mut next.watch {
                watch.begin(number);
            }
            if let Some(waits) = shared.monitor.as_ref().and_then(|m| m.waits()) {
                waits.begin();
            }
            residents.push(next);
            residents.len() - 1
        } else if residents.is_empty() {
            break;
        } else {
            if !left && turn % residents.len() == 0 {
                std::thread::yield_now();
            }
            turn += 1;
            turn % residents.len()
        };
        new_first = !new_first;
        match run(shared, code, &mut residents[at], &mut outcome) {
            Ok(Progress::Done) => {
                if let Some(waits) = shared.monitor.as_ref().and_then(|m| m.waits()) {
                    waits.end(residents[at].number);
                }
                spare.push(residents.swap_remove(at));
                new_first = true;
            }
            // What it waits for may never come.
            Ok(Progress::Waiting) if shared.failed.load(Ordering::Relaxed) != u64::MAX => {
                spare.push(residents.swap_remove(at));
            }
            Ok(Progress::Waiting) => {}
            Err((number, fault)) => {
                shared.failed.fetch_min(number, Ordering::Relaxed);
                if outcome.failure.as_ref().is_none_or(|(lowest, _)| number < *lowest) {
                    outcome.failure = Some((number, fault));
                }
                let (lower, higher) = residents.drain(..).partition(|r| r.number < number);
                residents = lower;
                spare.extend::<Vec<_>>(higher);
            }
        }
    }
    for group in spare.iter().map(|r| &r.group) {
        let (instructions, lane_ops) = group.counts();
        outcome.instructions += instructions;
        outcome.lane_ops += lane_ops;
    }
    outcome
}

/// Runs a workgroup on; a fault comes with the number of the workgroup to blame.
fn run<const W: usize>(
    shared: &Shared<'_>,
    code: &[Instr<W>],
    resident: &mut Resident<W>,
    outcome: &mut Outcome,
) -> Result<Progress, (u64, Box<Fault>)> {
    let number = resident.number;
    let mut cx = Context {
        program: shared.program,
        buffers: &shared.buffers,
        scalars: &shared.scalars,
        block: shared.program.block_at(number),
        block_number: number,
        allocations: &shared.allocations,
        lds: &mut resident.lds,
        promises: &mut resident.promises,
        findings: &mut outcome.findings,
        watch: resident.watch.as_mut(),
        mma: shared.options.mma,
        strict_bounds: shared.options.strict_bounds,
        step_limit: shared.options.step_limit.unwrap_or(u64::MAX),
    };
    let progress = resident.group.run(&mut cx, code).map_err(|fault| (number, fault))?;
    if progress == Progress::Waiting
        && let Some(waits) = shared.monitor.as_ref().and_then(|m| m.waits())
        && let Some(version) = resident.group.stuck(&cx)
        && let Some((lowest, fault)) = waits.stuck(number, version, || resident.group.waiters(&cx, code))
    {
        return Err((lowest, Box::new(fault)));
    }
    Ok(progress)
}
