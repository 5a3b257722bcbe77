//! Launches: start state, workgroups, scheduling of waves, barriers.

use std::collections::BTreeSet;

use lathe_dsl::target::Generation;

use crate::choices::Choices;
use crate::gcn::apart::{self, MemoryRace};
use crate::gcn::decode::{Inst, TTMP0};
use crate::gcn::error::{ErrorKind, Fault, GcnError, Result, Site};
use crate::gcn::isa::chip::Family;
use crate::gcn::isa::{self, Context, Flow};
use crate::gcn::lds::Lds;
use crate::gcn::memory::{KERNARG_ADDRESS, Memory, Space};
use crate::gcn::object::{CodeObject, Kernel};
use crate::gcn::profile::Profile;
use crate::gcn::state::{Lanes, Scalar, Wave};
use crate::gcn::together::{self, Launch, Rank};
use crate::gcn::trace::Trace;

/// Bytes of scratch of all workgroups that run at a time.
pub(super) const MAX_SCRATCH: u64 = 1 << 28;

/// First instructions that firmware skips when it preloads kernel arguments itself.
const PRELOAD_PROLOGUE: u64 = 256;

/// How to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Chooses the order in which workgroups that take turns, and waves, run; 0 is the natural order.
    pub seed: u64,
    /// Instructions (one a wave) after which the run is given up.
    pub max_steps: u64,
    /// Workgroups in flight at a time, if they take turns, at least 1; more while all of those wait.
    pub resident: usize,
    /// Instructions a wave runs before another one gets its turn, at least 1; with a seed, at most so many.
    pub quantum: u64,
    /// Record [`Trace`]s.
    pub record: bool,
    /// Count what instructions cost.
    pub profile: bool,
    /// Host threads of a launch whose workgroups tell each other nothing; `None` for as many as the host has. Nothing else depends
    /// on it.
    pub threads: Option<usize>,
}

impl Default for Options {
    fn default() -> Self {
        Self { seed: 0, max_steps: 1 << 32, resident: 8, quantum: 10_000, record: false, profile: false, threads: None }
    }
}

/// What a run did.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// Instructions executed, one a wave.
    pub instructions: u64,
    /// Workgroups run.
    pub workgroups: u64,
    /// Barriers passed, one a workgroup.
    pub barriers: u64,
    /// Per wave, if asked for by [`Options::record`].
    pub traces: Vec<Trace>,
    /// Addresses of instructions whose buffer access of several words began within the buffer and ended past it: gfx9 drops the
    /// words that are past, what other chips do is not said.
    pub cut: BTreeSet<u64>,
    /// If asked for by [`Options::profile`].
    pub profile: Option<Profile>,
    /// Workgroups that touch the same byte of global memory in a launch whose workgroups tell each other nothing; those of the
    /// lowest workgroups, each pair of instructions once.
    pub races: Vec<MemoryRace>,
}

impl Stats {
    /// Adds what other workgroups of the launch did.
    pub(super) fn add(&mut self, other: Self) {
        self.instructions += other.instructions;
        self.workgroups += other.workgroups;
        self.barriers += other.barriers;
        self.traces.extend(other.traces);
        self.cut.extend(other.cut);
        self.races.extend(other.races);
        if let (Some(profile), Some(other)) = (&mut self.profile, &other.profile) {
            profile.add(other);
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Ready,
    AtBarrier,
    Done,
}

/// Why a wave's turn ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// It lets others run.
    Yielded,
    /// It has had its instructions.
    Through,
    /// It waits for its workgroup.
    Barrier,
    /// It is done.
    End,
}

pub(super) struct Group {
    pub(super) id: [u32; 3],
    pub(super) lds: Lds,
    pub(super) waves: Vec<(Wave, Status)>,
    /// Wave that ran last.
    pub(super) last: usize,
}

impl Group {
    /// Whether some waves go round for ever unless memory changes from what it is at `version`, and all others wait for them.
    pub(super) fn is_stuck(&self, version: u64) -> bool {
        let mut ready = self.waves.iter().filter(|w| w.1 == Status::Ready).peekable();
        ready.peek().is_some() && ready.all(|w| w.0.probe.is_stuck(version))
    }

    /// Waves that can do something, while memory is at `version`.
    pub(super) fn ready(&self, version: u64) -> Vec<usize> {
        let ready = |w: &usize| self.waves[*w].1 == Status::Ready && !self.waves[*w].0.probe.is_stuck(version);
        (0..self.waves.len()).filter(ready).collect()
    }

    /// Whose turn it is among `ready`, of which there is one: at random, or the next one's.
    pub(super) fn next(&mut self, ready: &[usize], choices: &mut Option<Choices>) -> usize {
        let last = ready.iter().position(|w| self.last == usize::MAX || *w > self.last).unwrap_or(0);
        self.last = ready[pick(choices, ready.len(), last.wrapping_sub(1))];
        self.last
    }

    /// Notes the state of wave `w`, which lets others run while memory is at `version`.
    pub(super) fn look(&mut self, w: usize, version: u64) {
        let wave = &mut self.waves[w].0;
        let mut probe = wave.probe;
        probe.visit(version, || wave.state());
        wave.probe = probe;
    }

    /// Whether all waves have ended.
    pub(super) fn is_done(&self) -> bool {
        self.waves.iter().all(|w| w.1 == Status::Done)
    }

    /// Everyone who is still running has arrived.
    pub(super) fn pass_barrier(&mut self) {
        let Self { lds, waves, .. } = self;
        lds.barrier(waves.iter().map(|w| w.0.arrived.as_ref().unwrap_or(&w.0.outstanding)));
        for (wave, status) in waves.iter_mut().filter(|w| w.1 == Status::AtBarrier) {
            wave.arrived = None;
            *status = Status::Ready;
        }
    }
}

/// One of `n`: at random, or the one after `last` in turn, so that one that waits for another cannot starve it.
pub(super) fn pick(choices: &mut Option<Choices>, n: usize, last: usize) -> usize {
    choices.as_mut().map_or(last.wrapping_add(1) % n.max(1), |c| c.below(n))
}

/// Workgroup number `n` of a grid, along each axis.
pub(super) fn place(n: u64, grid: [u32; 3]) -> [u32; 3] {
    let (x, y) = (u64::from(grid[0]), u64::from(grid[1]));
    [(n % x) as u32, (n / x % y) as u32, (n / (x * y)) as u32]
}

/// Kernel arguments as the kernel sees them: the caller's bytes, hidden arguments filled in.
pub(super) fn arguments(kernel: &Kernel, grid: [u32; 3], block: [u32; 3], given: &[u8]) -> Result<Vec<u8>> {
    let size = kernel.descriptor.kernarg_size as usize;
    let refuse = |what: String| Err(ErrorKind::Launch(what).into());
    let explicit = kernel.metadata.args.iter().filter(|a| !a.kind.starts_with("hidden_"));
    let needed = explicit.map(|a| (a.offset + a.size) as usize).max().unwrap_or(0);
    if given.len() > size || given.len() < needed {
        return refuse(format!("{} bytes of arguments, the kernel takes {needed} to {size}", given.len()));
    }
    let mut bytes = given.to_vec();
    let hidden = kernel.metadata.args.iter().filter(|a| a.kind.starts_with("hidden_"));
    for a in hidden {
        let axis = match a.kind.as_bytes().last() {
            Some(b'x') => 0,
            Some(b'y') => 1,
            _ => 2,
        };
        let value = match a.kind.trim_end_matches(['x', 'y', 'z']) {
            "hidden_block_count_" => u64::from(grid[axis]),
            "hidden_group_size_" => u64::from(block[axis]),
            // Grids are whole workgroups here.
            "hidden_remainder_" | "hidden_global_offset_" | "hidden_none" => 0,
            "hidden_grid_dims" => 3,
            // Left out: reading it is an over-read.
            _ => continue,
        };
        let (start, end) = (a.offset as usize, (a.offset + a.size) as usize);
        if a.size > 8 {
            return refuse(format!("hidden argument of {} bytes", a.size));
        }
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        bytes[start..end].copy_from_slice(&value.to_le_bytes()[..end - start]);
    }
    Ok(bytes)
}

/// Bytes of scratch of a workgroup.
pub(super) fn scratch(object: &CodeObject, kernel: &Kernel, threads: u32) -> u64 {
    u64::from(kernel.descriptor.scratch) * u64::from(threads.next_multiple_of(object.target.chip().wave))
}

pub(super) fn check(
    object: &CodeObject,
    kernel: &Kernel,
    grid: [u32; 3],
    block: [u32; 3],
    options: &Options,
) -> Result<u32> {
    let refuse = |what: String| Err(ErrorKind::Launch(what).into());
    let chip = object.target.chip();
    let threads = block.iter().try_fold(1u32, |n, b| n.checked_mul(*b)).unwrap_or(u32::MAX);
    if threads == 0 || threads > chip.max_block.min(kernel.metadata.max_threads) {
        let most = chip.max_block.min(kernel.metadata.max_threads);
        return refuse(format!("workgroup {block:?} has {threads} threads, 1 to {most} allowed"));
    }
    if let Some(required) = kernel.metadata.block.filter(|r| *r != block) {
        return refuse(format!("workgroup {block:?}, the kernel is compiled for {required:?}"));
    }
    if let Some(axis) = (0..3).find(|a| grid[*a] == 0 || grid[*a] > chip.max_grid[*a]) {
        return refuse(format!("grid {grid:?}: axis {axis} must be 1 to {}", chip.max_grid[axis]));
    }
    let groups = grid.iter().fold(1, |n: u64, g| n * u64::from(*g)).min(options.resident.max(1) as u64);
    let scratch = scratch(object, kernel, threads).saturating_mul(groups);
    if scratch > MAX_SCRATCH {
        return refuse(format!("{scratch} bytes of scratch at a time, device gcn has {MAX_SCRATCH}"));
    }
    if kernel.descriptor.lds > chip.lds_bytes {
        return refuse(format!(
            "{} bytes of LDS, {chip} has {}",
            kernel.descriptor.lds,
            chip.lds_bytes,
            chip = chip.name
        ));
    }
    Ok(threads)
}

/// Runs a kernel to its end.
///
/// `grid` counts workgroups, `block` threads of a workgroup; `kernarg` is the argument block without hidden arguments.
///
/// Where the code has nothing by which workgroups could tell each other something (atomic or coherent accesses, `s_sleep`), they run
/// on all host threads, each on the memory that the launch began with; what they stored is put together at the end, in order.
/// Results and errors are the same for any number of threads. Otherwise, and to [record](Options::record), workgroups take turns on
/// one memory.
///
/// # Errors
/// [`ErrorKind::NoKernel`], [`ErrorKind::Launch`] before anything runs; any other kind with its [`Site`]. Of workgroups that run
/// apart it is the error of the lowest one that has one, and memory holds what it and those before it stored.
pub fn launch(
    object: &CodeObject,
    kernel: &str,
    grid: [u32; 3],
    block: [u32; 3],
    kernarg: &[u8],
    memory: &mut Memory,
    options: &Options,
) -> Result<Stats> {
    let launch = Launch { object, kernel, grid, block, kernarg };
    if !options.record && !together::talks(object) {
        return apart::run(&launch, memory, options);
    }
    let ranks = [Rank { memory: 0, launches: vec![launch] }];
    let stats = together::run(&ranks, &mut [memory], options, false).map_err(|(_, error)| error)?;
    Ok(stats.into_iter().flatten().next().unwrap_or_default())
}

/// Runs one wave until it waits, ends, yields, or its turn is over.
pub(super) fn slice(
    object: &CodeObject,
    group: &mut Group,
    w: usize,
    space: &mut Space<'_>,
    options: &Options,
    steps: &mut u64,
    stats: &mut Stats,
) -> Result<Stop> {
    let Group { id, lds, waves, .. } = group;
    let (wave, status) = &mut waves[w];
    for _ in 0..options.quantum.max(1) {
        let pc = wave.pc;
        wave.current_pc = pc;
        let step = match object.at(pc) {
            None => Err(ErrorKind::NoInstruction(pc).into()),
            _ if *steps >= options.max_steps => Err(ErrorKind::StepLimit(options.max_steps).into()),
            Some(decoded) => match &decoded.inst {
                Err(kind) => Err(kind.clone().into()),
                Ok(inst) => {
                    let exec = wave.exec();
                    near(wave, inst, pc).and_then(|()| isa::exec(&mut Context { wave, lds, space }, inst)).map(|flow| {
                        if space.noted() {
                            stats.cut.append(&mut space.cut);
                            space.note(w as u32, pc);
                        }
                        if let Some(profile) = &mut stats.profile {
                            profile.count(object.word(pc), inst, wave, exec);
                        }
                        (flow, pc + u64::from(inst.size))
                    })
                }
            },
        };
        let (flow, next) = step.map_err(|fault| locate(object, fault, pc, *id, wave))?;
        stats.instructions += 1;
        *steps += 1;
        wave.pc = if let Flow::Jump(target) = flow { target } else { next };
        match flow {
            Flow::Next | Flow::Jump(_) => {}
            Flow::Yield => return Ok(Stop::Yielded),
            Flow::Barrier => {
                *status = Status::AtBarrier;
                return Ok(Stop::Barrier);
            }
            Flow::End => {
                *status = Status::Done;
                return Ok(Stop::End);
            }
        }
    }
    Ok(Stop::Through)
}

/// Checks that an instruction keeps its distance from those before it.
fn near(wave: &mut Wave, inst: &Inst, pc: u64) -> Result<(), Fault> {
    match wave.chip.family {
        // With a register index in force the operands are not those of the text.
        Family::Gfx9 if wave.indexed => Ok(()),
        Family::Gfx9 => wave.history.step(&inst.facts, pc, wave.chip.generation == Generation::Cdna4),
        Family::Gfx12 => {
            let second = inst.second.as_ref().map(|second| &second.facts);
            wave.gfx12_history.step(&inst.facts, second, pc)
        }
    }
}

pub(super) fn locate(object: &CodeObject, fault: Fault, pc: u64, workgroup: [u32; 3], wave: &Wave) -> GcnError {
    let text = object.at(pc).map_or_else(|| "?".to_owned(), |d| d.text.clone());
    let line = object.line(pc).map(|(file, line)| (file.to_owned(), line));
    let site = Site { pc, text, line, member: None, workgroup, wave: wave.index, lane: fault.lane };
    GcnError { kind: fault.kind, site: Some(Box::new(site)) }
}

/// A workgroup before its first instruction.
pub(super) fn start(
    object: &CodeObject,
    kernel: &Kernel,
    id: [u32; 3],
    block: [u32; 3],
    threads: u32,
    arguments: &[u8],
    options: &Options,
) -> Result<Group> {
    let chip = object.isa.chip;
    let lanes = chip.lanes;
    let d = &kernel.descriptor;
    let count = (threads as usize).div_ceil(lanes);
    let mut waves = Vec::with_capacity(count);
    for index in 0..count {
        let live = (threads as usize - index * lanes).min(lanes);
        let exec = u64::MAX >> (64 - live);
        let mut wave = Wave::new(index as u32, chip, d.registers, d.mode, d.scratch as usize, exec);
        let mut ids = Lanes::UNDEFINED;
        for lane in 0..live {
            let t = (index * lanes + lane) as u32;
            let (x, y, z) = (t % block[0], t / block[0] % block[1], t / (block[0] * block[1]));
            ids.v[lane] = x | y << 10 | z << 20;
            ids.u[lane] = 0;
        }
        wave.preset_vector(0, ids);
        scalars(&mut wave, kernel, id, arguments).map_err(|f| GcnError::from(f.kind))?;
        // Firmware that preloads starts behind the loads that stand in for it.
        wave.pc = kernel.entry + if d.preload.1 != 0 { PRELOAD_PROLOGUE } else { 0 };
        wave.trace = options.record.then(|| Box::new(Trace::new(id, index as u32)));
        wave.touched = options.profile.then(Box::default);
        waves.push((wave, Status::Ready));
    }
    Ok(Group { id, lds: Lds::new(d.lds as usize, count), waves, last: usize::MAX })
}

/// Scalar start state: user registers in the descriptor's order, preloaded arguments, workgroup ids.
fn scalars(wave: &mut Wave, kernel: &Kernel, id: [u32; 3], arguments: &[u8]) -> Result<(), Fault> {
    let d = &kernel.descriptor;
    let mut next = 0u16;
    // Values that only a queue has stay undefined: using one is an error.
    let order = [
        (d.private_segment_buffer, 4, None),
        (d.dispatch_ptr, 2, None),
        (d.queue_ptr, 2, None),
        (d.kernarg_ptr, 2, Some(KERNARG_ADDRESS)),
        (d.dispatch_id, 2, Some(0)),
        (d.flat_scratch_init, 2, None),
        (d.private_segment_size, 1, Some(u64::from(d.scratch))),
    ];
    for (present, count, value) in order {
        if !present {
            continue;
        }
        if let Some(value) = value {
            wave.set_scalar(next, count, Scalar::known(value))?;
        }
        next += count;
    }
    let (first, words) = d.preload;
    let wanted = u32::from(next) + words;
    if wanted > d.user_sgprs {
        let what = format!("the descriptor asks for {wanted} user SGPRs but counts {}", d.user_sgprs);
        return Err(ErrorKind::Object(what).into());
    }
    for word in first..first + words {
        let at = 4 * word as usize;
        let bytes: Option<[u8; 4]> = arguments.get(at..at + 4).and_then(|b| b.try_into().ok());
        if let Some(bytes) = bytes {
            wave.set_scalar(next, 1, Scalar::known(u64::from(u32::from_le_bytes(bytes))))?;
        }
        next += 1;
    }
    if wave.chip.family == Family::Gfx12 {
        // Trap registers hold the ids, whether the descriptor asks for them or not.
        wave.set_scalar(TTMP0 + 9, 1, Scalar::known(u64::from(id[0])))?;
        wave.set_scalar(TTMP0 + 7, 1, Scalar::known(u64::from(id[1]) | u64::from(id[2]) << 16))?;
        // Bits 29:25 hold the number of the wave in its workgroup; the others are nobody's business.
        let number = Scalar { v: u64::from(wave.index) << 25, u: !(0x1F << 25) & u64::from(u32::MAX) };
        return wave.set_scalar(TTMP0 + 8, 1, number);
    }
    next = d.user_sgprs as u16;
    for (axis, present) in d.workgroup_id.into_iter().enumerate() {
        if present {
            wave.set_scalar(next, 1, Scalar::known(u64::from(id[axis])))?;
            next += 1;
        }
    }
    Ok(())
}
