//! The interpreter of Kernel IR: the engine of device `cpu`, and the definition of what every operation means.
//!
//! A [`Kernel`](lathe_dsl::ir::Kernel) is flattened once into a [`Program`]: a linear list of typed instructions over
//! rows of lanes, with jumps and a mask stack in place of structured control flow. [`launch`] runs it: a wave executes
//! its lanes in lock step, the waves of a workgroup take turns between barriers, workgroups run in parallel on the
//! host's threads. Undefined behaviour of the kernel is a located [`Fault`]; what is defined but suspicious (a buffer
//! access out of range) is a [`Finding`] in the [`Report`].

mod access;
mod allocations;
mod alu;
mod copies;
mod early;
mod error;
mod explore;
mod findings;
mod flatten;
mod lanes;
mod late;
mod lds;
mod matrix;
mod memory;
mod order;
mod parties;
mod program;
mod promises;
mod registers;
mod rows;
mod schedule;
mod step;
#[cfg(test)]
mod tests;
mod watch;
mod wave;
mod worker;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use lathe_dsl::numerics::MmaRounding;

pub use error::{
    Absence, AccessKind, BufferAccess, Error, Fault, FaultKind, Finding, FindingKind, GroupError, Member, Site, Unusual,
};
pub use explore::{Failing, explore};
pub use memory::GlobalBuffer;
pub use program::Program;
pub use watch::{Checks, EndlessWait, MemoryPlace, Missing, NanMade, Race, UnknownCheck, Waiter, WaitsOn};

use findings::Findings;
use order::Order;
use parties::Party;
use program::{Code, Instr};
use watch::Monitor;

/// An argument of a launch.
#[derive(Clone, Copy, Debug)]
pub enum ArgValue<'a> {
    /// For a buffer parameter; its extent must be the declared one.
    Buffer(&'a GlobalBuffer),
    /// For a scalar parameter: its bits, zero-extended to 64.
    Scalar(u64),
}

/// How to run a launch. The default: all host threads, workgroups and waves in order, no limits, [`Checks::DEFAULT`].
#[derive(Clone, Debug)]
pub struct Options {
    /// Begins workgroups near each other in a random order, and interleaves the waves of each at random, the same way for
    /// the same seed. If workgroups tell each other something, they too take turns at random, on one host thread, and stores
    /// become visible late, and loads of programs for NVIDIA's chips are made early (`docs/src/sanitizer.md`). `None`: workgroups
    /// begin in order, and each wave runs up to the next barrier, in order.
    pub seed: Option<u64>,
    /// Host threads; `None` for as many as the host has.
    pub threads: Option<usize>,
    /// Makes buffer accesses that leave their buffer faults instead of findings.
    pub strict_bounds: bool,
    /// Instructions that a wave may execute in one workgroup before a loop in it counts as endless ([`STEP_LIMIT`] unless set);
    /// `None` for no limit.
    pub step_limit: Option<u64>,
    /// Findings to report at most.
    pub max_findings: usize,
    /// What is checked besides what always is.
    pub checks: Checks,
    /// How matrix products round their sums.
    pub mma: MmaRounding,
}

/// See [`Options::step_limit`]: more than a wave executes in a minute.
pub const STEP_LIMIT: u64 = 1 << 32;

impl Default for Options {
    fn default() -> Self {
        Self {
            seed: None,
            threads: None,
            strict_bounds: false,
            step_limit: Some(STEP_LIMIT),
            max_findings: 64,
            checks: Checks::DEFAULT,
            mma: MmaRounding::Exact,
        }
    }
}

/// What a finished launch did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// What is unusual, one an operation and kind (a race: a pair of operations), in code order.
    pub findings: Vec<Finding>,
    /// Findings left out because of [`Options::max_findings`].
    pub findings_omitted: usize,
    /// Workgroups run.
    pub blocks: u64,
    /// Instructions of the [`Program`] executed by all waves.
    pub instructions: u64,
    /// The same, each counted once an active lane.
    pub lane_ops: u64,
}

/// A launch of a group.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// What runs.
    pub program: &'a Program,
    /// Its arguments, in parameter order.
    pub args: &'a [ArgValue<'a>],
    /// What its pointers reach besides the buffers among `args`.
    pub others: &'a [&'a GlobalBuffer],
}

/// What the workers of a launch, or of a group of them, share.
struct Shared<'a> {
    /// In the order of their workgroups' numbers.
    parties: Vec<Party<'a>>,
    options: &'a Options,
    /// If anything is checked.
    monitor: Option<Arc<Monitor>>,
    /// Workgroups that one worker may have begun.
    most: usize,
    /// One worker takes turns at random between all workgroups that have begun.
    interleaves: bool,
    /// Lowest workgroup that failed so far.
    failed: AtomicU64,
}

/// What one worker did.
struct Outcome {
    findings: Findings,
    /// By launch: instructions, and the same counted once an active lane.
    counts: Vec<(u64, u64)>,
    failure: Option<(u64, Box<Fault>)>,
}

/// Runs a kernel to its end and leaves its results in the buffers among `args` (in parameter order). Pointers reach these
/// buffers and nothing else.
///
/// Results and errors do not depend on the number of host threads, unless workgroups race for the same bytes. Workgroups
/// may wait for each other in `while` loops, as long as there are not too many of them.
///
/// # Errors
/// [`Error::ArgumentCount`] and [`Error::Argument`] if the arguments do not fit the kernel's parameters; nothing ran
/// then. [`Error::Fault`] if a thread does something undefined: the first fault of the lowest workgroup that has one.
/// Other workgroups may have run and stored.
pub fn launch(program: &Program, args: &[ArgValue<'_>], options: &Options) -> Result<Report, Error> {
    launch_among(program, args, &[], options)
}

/// Like [`launch`]; pointers also reach the buffers of `others`, at their [addresses](GlobalBuffer::address).
///
/// # Errors
/// As of [`launch`].
pub fn launch_among(
    program: &Program,
    args: &[ArgValue<'_>],
    others: &[&GlobalBuffer],
    options: &Options,
) -> Result<Report, Error> {
    let launch = Launch { program, args, others };
    check(&launch, options)?;
    let nothing = GlobalBuffer::zeroed(0);
    let window = worker::most_residents(program, Checks::ALL);
    let party = Party::new(&launch, &nothing, Order::new(options.seed, program.blocks(), window as u64));
    let most = worker::most_residents(program, options.checks);
    let interleaves = options.seed.is_some() && program.communicates();
    match run_parties(vec![party], options, most, interleaves) {
        Ok(mut reports) => Ok(reports.remove(0)),
        Err((_, fault)) => Err(Error::Fault(fault)),
    }
}

/// Runs the launches of several devices together: `ranks` has, for each device (a *rank*), its launches, one after the
/// other. Workgroups of all devices may wait for each other and share memory, as ranks with peer access do: all are
/// resident at once, whatever their number. A launch begins when the one before it on its device has ended. The reports are in the
/// same order.
///
/// With a [seed](Options::seed) one host thread takes turns at random between all workgroups that have begun, the same way for the
/// same seed. [`explore`] runs many seeds.
///
/// Scopes count: what reaches a rank from another one takes [`Scope::System`](lathe_dsl::ir::Scope::System).
///
/// # Errors
/// As of [`launch`], with the rank to blame: nothing ran if it is not a fault. A group whose waves all wait for what none of
/// them will store is a [`FaultKind::EndlessWait`] (check `waits`). [`Error::MixedWaves`].
pub fn launch_group<'a, R: AsRef<[Launch<'a>]>>(
    ranks: &[R],
    options: &Options,
) -> Result<Vec<Vec<Report>>, GroupError> {
    let nothing = GlobalBuffer::zeroed(0);
    let mut parties: Vec<Party<'_>> = vec![];
    let mut first = 0;
    for (rank, launches) in ranks.iter().enumerate() {
        let launches = launches.as_ref();
        let mut before: Option<usize> = None;
        for (number, launch) in launches.iter().enumerate() {
            let program = launch.program;
            let same_waves = parties.first().is_none_or(|p| p.program.wave() == program.wave());
            let mixed = || Error::MixedWaves {
                kernel: program.name.clone(),
                wave: program.wave(),
                other: parties.first().map_or(0, |p| p.program.wave()),
            };
            let checked = if same_waves { check(launch, options) } else { Err(mixed()) };
            checked.map_err(|error| GroupError { rank, error })?;
            let at = parties.len();
            let seed = options.seed.map(|s| s.wrapping_add(at as u64));
            let order = Order::new(seed, program.blocks(), program.blocks());
            let mut party = Party::new(launch, &nothing, order);
            party.set_open(before.is_none());
            party.like = parties.iter().position(|p| std::ptr::eq(p.program, program)).unwrap_or(at);
            (party.first, party.device) = (first, rank as u32);
            let launch = (launches.len() > 1).then_some(number as u32);
            party.member = Some(Member { rank: rank as u32, launch });
            first += party.blocks;
            // One without workgroups never ends.
            if party.blocks > 0
                && let Some(before) = before.replace(at)
            {
                parties[before].then = Some(at);
            }
            parties.push(party);
        }
    }
    let rank_of: Vec<(u64, usize)> = parties.iter().map(|p| (p.first, p.device as usize)).collect();
    let reports = run_parties(parties, options, usize::MAX, options.seed.is_some()).map_err(|(block, fault)| {
        let above = rank_of.partition_point(|(first, _)| *first <= block);
        let rank = rank_of.get(above.saturating_sub(1)).map_or(0, |r| r.1);
        GroupError { rank, error: Error::Fault(fault) }
    })?;
    let mut reports = reports.into_iter();
    Ok(ranks.iter().map(|launches| reports.by_ref().take(launches.as_ref().len()).collect()).collect())
}

fn check(launch: &Launch<'_>, options: &Options) -> Result<(), Error> {
    parties::check_args(launch.program, launch.args)?;
    parties::check_rounding(launch.program, options.mma)
}

/// Runs launches together; one worker may have begun `most` workgroups. A fault comes with its workgroup's number.
fn run_parties(
    parties: Vec<Party<'_>>,
    options: &Options,
    most: usize,
    interleaves: bool,
) -> Result<Vec<Report>, (u64, Box<Fault>)> {
    let blocks = parties.iter().map(|p| p.blocks).fold(0, u64::saturating_add);
    let threads = if interleaves { 1 } else { host_threads(options, blocks) };
    let monitor = || Arc::new(Monitor::new(&parties, options.checks, most.saturating_mul(threads) as u64));
    let monitor = options.checks.any().then(monitor);
    let failed = AtomicU64::new(u64::MAX);
    let shared = Shared { parties, options, monitor, most, interleaves, failed };
    let outcomes = match shared.parties.first().map(|p| &p.program.code) {
        None => vec![],
        Some(Code::W32(_)) => run_workers(&shared, threads, |code| match code {
            Code::W32(code) => code.as_slice(),
            Code::W64(_) => &[],
        }),
        Some(Code::W64(_)) => run_workers(&shared, threads, |code| match code {
            Code::W64(code) => code.as_slice(),
            Code::W32(_) => &[],
        }),
    };

    let mut counts = vec![(0, 0); shared.parties.len()];
    let (mut findings, mut failure) = (Findings::default(), None);
    for outcome in outcomes {
        findings.merge(outcome.findings);
        for (total, count) in counts.iter_mut().zip(outcome.counts) {
            *total = (total.0 + count.0, total.1 + count.1);
        }
        failure = [failure, outcome.failure].into_iter().flatten().min_by_key(|(block, _)| *block);
    }
    if let Some(failure) = failure {
        return Err(failure);
    }
    let findings = findings.into_reports(shared.parties.len(), options.max_findings);
    let reports = shared.parties.iter().zip(findings).zip(counts);
    Ok(reports
        .map(|((party, (findings, findings_omitted)), (instructions, lane_ops))| Report {
            findings,
            findings_omitted,
            blocks: party.blocks,
            instructions,
            lane_ops,
        })
        .collect())
}

/// Host threads of so many workgroups.
fn host_threads(options: &Options, blocks: u64) -> usize {
    let host = || std::thread::available_parallelism().map_or(1, usize::from);
    let threads = options.threads.unwrap_or_else(host);
    threads.min(usize::try_from(blocks).unwrap_or(usize::MAX)).max(1)
}

/// Shares the workgroups out to host threads.
fn run_workers<'a, const W: usize>(
    shared: &Shared<'a>,
    threads: usize,
    code: fn(&'a Code) -> &'a [Instr<W>],
) -> Vec<Outcome> {
    let codes: Vec<&[Instr<W>]> = shared.parties.iter().map(|p| code(&p.program.code)).collect();
    let work = || worker::worker(shared, &codes);
    std::thread::scope(|scope| {
        // A host that refuses a thread just gets fewer.
        let handles: Vec<_> =
            (1..threads).map_while(|_| std::thread::Builder::new().spawn_scoped(scope, work).ok()).collect();
        let mut outcomes = vec![work()];
        for handle in handles {
            match handle.join() {
                Ok(outcome) => outcomes.push(outcome),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        outcomes
    })
}
