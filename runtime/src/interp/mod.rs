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
mod error;
mod findings;
mod flatten;
mod lanes;
mod lds;
mod matrix;
mod memory;
mod order;
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

use lathe_dsl::ir::{Access, ParamKind};
use lathe_dsl::mma::Fragments;
use lathe_dsl::numerics::MmaRounding;

pub use error::{Absence, AccessKind, BufferAccess, Error, Fault, FaultKind, Finding, FindingKind, Site, Unusual};
pub use memory::GlobalBuffer;
pub use program::Program;
pub use watch::{Checks, EndlessWait, MemoryPlace, Missing, NanMade, Race, UnknownCheck, Waiter, WaitsOn};

use allocations::{Allocation, Allocations};
use findings::Findings;
use order::Order;
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
    /// the same seed. `None`: workgroups begin in order, and each wave runs up to the next barrier, in order.
    pub seed: Option<u64>,
    /// Host threads; `None` for as many as the host has.
    pub threads: Option<usize>,
    /// Makes buffer accesses that leave their buffer faults instead of findings.
    pub strict_bounds: bool,
    /// Instructions that a wave may execute in one workgroup before a loop in it counts as endless; `None` for no
    /// limit.
    pub step_limit: Option<u64>,
    /// Findings to report at most.
    pub max_findings: usize,
    /// What is checked besides what always is.
    pub checks: Checks,
    /// How matrix products round their sums.
    pub mma: MmaRounding,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            seed: None,
            threads: None,
            strict_bounds: false,
            step_limit: None,
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

/// What the workers of a launch share.
struct Shared<'a> {
    program: &'a Program,
    /// By parameter; an empty buffer where the parameter is a scalar.
    buffers: Vec<&'a GlobalBuffer>,
    /// By parameter; 0 where the parameter is a buffer.
    scalars: Vec<u64>,
    allocations: Allocations<'a>,
    options: &'a Options,
    /// If anything is checked.
    monitor: Option<Arc<Monitor>>,
    blocks: u64,
    order: Order,
    /// How many workgroups have begun.
    next: AtomicU64,
    /// Lowest workgroup that failed so far.
    failed: AtomicU64,
}

/// What one worker did.
#[derive(Default)]
struct Outcome {
    findings: Findings,
    instructions: u64,
    lane_ops: u64,
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
    let nothing = GlobalBuffer::zeroed(0);
    check_args(program, args)?;
    check_rounding(program, options.mma)?;
    let blocks = program.grid.iter().fold(1u64, |n, d| n.saturating_mul(u64::from(*d)));
    let named = program.params.iter().zip(args).filter_map(|(p, a)| match a {
        ArgValue::Buffer(buffer) => Some(Allocation { buffer, name: p.name }),
        ArgValue::Scalar(_) => None,
    });
    let unnamed = others.iter().map(|buffer| Allocation { buffer, name: "(allocation)" });
    let threads = host_threads(options, blocks);
    let most = (threads * worker::most_residents(program, options.checks)) as u64;
    let monitor = || Arc::new(Monitor::new(program, options.checks, blocks, most));
    let shared = Shared {
        program,
        buffers: args.iter().map(|a| if let ArgValue::Buffer(b) = a { *b } else { &nothing }).collect(),
        scalars: args.iter().map(|a| if let ArgValue::Scalar(bits) = a { *bits } else { 0 }).collect(),
        allocations: Allocations::new(named.chain(unnamed)),
        options,
        monitor: options.checks.any().then(monitor),
        blocks,
        order: Order::new(options.seed, blocks, worker::most_residents(program, Checks::ALL) as u64),
        next: AtomicU64::new(0),
        failed: AtomicU64::new(u64::MAX),
    };
    let outcomes = match &program.code {
        Code::W32(code) => run_workers(&shared, code, threads),
        Code::W64(code) => run_workers(&shared, code, threads),
    };

    let mut total = Outcome::default();
    for outcome in outcomes {
        total.findings.merge(outcome.findings);
        total.instructions += outcome.instructions;
        total.lane_ops += outcome.lane_ops;
        total.failure = [total.failure, outcome.failure].into_iter().flatten().min_by_key(|(block, _)| *block);
    }
    if let Some((_, fault)) = total.failure {
        return Err(Error::Fault(fault));
    }
    let (findings, findings_omitted) = total.findings.into_report(options.max_findings);
    let Outcome { instructions, lane_ops, .. } = total;
    Ok(Report { findings, findings_omitted, blocks, instructions, lane_ops })
}

/// Host threads of a launch.
fn host_threads(options: &Options, blocks: u64) -> usize {
    let host = || std::thread::available_parallelism().map_or(1, usize::from);
    let threads = options.threads.unwrap_or_else(host);
    threads.min(usize::try_from(blocks).unwrap_or(usize::MAX)).max(1)
}

/// Shares the workgroups out to host threads.
fn run_workers<const W: usize>(shared: &Shared<'_>, code: &[Instr<W>], threads: usize) -> Vec<Outcome> {
    let work = || worker::worker(shared, code);
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

/// A chip's rounding is that of the chip's fragments.
fn check_rounding(program: &Program, mma: MmaRounding) -> Result<(), Error> {
    let wrong = program.products.iter().find(|p| mma == MmaRounding::Hopper && p.fragments != Fragments::Nvidia);
    match wrong {
        Some(product) => {
            let kernel = program.name.clone();
            Err(Error::Rounding { kernel, rounding: mma.name(), fragments: product.fragments.name() })
        }
        None => Ok(()),
    }
}

fn check_args(program: &Program, args: &[ArgValue<'_>]) -> Result<(), Error> {
    let kernel = || program.name.clone();
    if args.len() != program.params.len() {
        return Err(Error::ArgumentCount { kernel: kernel(), expected: program.params.len(), given: args.len() });
    }
    for (i, (param, arg)) in program.params.iter().zip(args).enumerate() {
        let refuse = |message| Err(Error::Argument { kernel: kernel(), param: param.name, message });
        match (param.kind, arg) {
            (ParamKind::Buffer { elem, len, access, .. }, ArgValue::Buffer(buffer)) => {
                let declared = len * u64::from(elem.bytes());
                if buffer.len() as u64 != declared {
                    let given = buffer.len();
                    return refuse(format!("has {given} bytes; {len} elements of {elem} have {declared}"));
                }
                // Buffers of a launch overlap only if all are read only.
                let clash = program.params.iter().zip(args).take(i).find(|(other, a)| {
                    let reads = |kind| matches!(kind, ParamKind::Buffer { access: Access::Read, .. });
                    let writes = access != Access::Read || !reads(other.kind);
                    writes && matches!(a, ArgValue::Buffer(b) if std::ptr::eq(*b, *buffer))
                });
                if let Some((other, _)) = clash {
                    return refuse(format!("is the same buffer as `{}`, and one of them is written", other.name));
                }
            }
            (ParamKind::Scalar(s), ArgValue::Scalar(bits)) => {
                if bits & !(u64::MAX >> (64 - s.bits())) != 0 {
                    return refuse(format!("is {bits:#x}, which does not fit {s}"));
                }
            }
            (ParamKind::Buffer { elem, .. }, ArgValue::Scalar(_)) => {
                return refuse(format!("is a buffer of {elem}, a scalar was given"));
            }
            (ParamKind::Scalar(s), ArgValue::Buffer(_)) => {
                return refuse(format!("is a scalar of type {s}, a buffer was given"));
            }
        }
    }
    Ok(())
}
