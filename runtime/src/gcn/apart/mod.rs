//! Workgroups that tell each other nothing: each runs on the memory that the launch began with, and sees its own stores only. So they
//! run on all host threads, and what comes out does not depend on how many there are: not the result, which is put together in the
//! order of workgroups, nor the error, which is the lowest workgroup's, nor the sums of what was counted, nor the races.

mod log;
mod merge;
mod race;

use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) use log::Log;
pub use race::{MemoryAccess, MemoryRace};

use log::Watch;
use merge::{Conflict, Merge};

use crate::choices::Choices;
use crate::gcn::error::{ErrorKind, Fault, GcnError, Result, Site};
use crate::gcn::memory::{Memory, Space};
use crate::gcn::object::Kernel;
use crate::gcn::profile::Profile;
use crate::gcn::run::{
    Group, MAX_SCRATCH, Options, Stats, Status, Stop, arguments, check, locate, place, scratch, slice, start,
};
use crate::gcn::together::{LOOKS, Launch};

/// Workgroups for each host thread between two times that all of them come together.
const BATCH: u64 = 64;

/// Spreads the numbers of workgroups over seeds.
const SPREAD: u64 = 0xD1B5_4A32_D192_ED03;

/// A launch as its workgroups see it.
struct Work<'a> {
    launch: &'a Launch<'a>,
    kernel: &'a Kernel,
    threads: u32,
    arguments: Vec<u8>,
    memory: &'a Memory,
    options: &'a Options,
}

/// What a workgroup did.
struct Done {
    number: u64,
    log: Log,
    /// Instructions of the launch before it, as far as was known when it began.
    before: u64,
    /// Its own.
    steps: u64,
    outcome: Result<()>,
}

impl Work<'_> {
    /// Workgroup `number`, which knows of `before` instructions; `None` if a lower one fails meanwhile.
    fn run(
        &self,
        number: u64,
        before: u64,
        watch: Option<Watch>,
        failed: &AtomicU64,
        stats: &mut Stats,
    ) -> Option<Done> {
        let mut log = Log::new(watch);
        let mut steps = before;
        let outcome = self.group(number, &mut log, &mut steps, failed, stats).transpose()?;
        Some(Done { number, log, before, steps: steps - before, outcome })
    }

    fn group(
        &self,
        number: u64,
        log: &mut Log,
        steps: &mut u64,
        failed: &AtomicU64,
        stats: &mut Stats,
    ) -> Result<Option<()>> {
        let Launch { object, grid, block, .. } = *self.launch;
        let id = place(number, grid);
        let mut group = start(object, self.kernel, id, block, self.threads, &self.arguments, self.options)?;
        let mut choices =
            (self.options.seed != 0).then(|| Choices(self.options.seed.wrapping_add(number.wrapping_mul(SPREAD))));
        let (mut version, mut turns) = (1, 0usize);
        // Of a workgroup that runs again until an access that is looked for, the rest does not matter.
        while log.seen.is_none() {
            if failed.load(Ordering::Relaxed) < number {
                return Ok(None);
            }
            let ready = group.ready(version);
            if ready.is_empty() {
                if group.is_done() {
                    break;
                }
                if group.is_stuck(version) {
                    return Err(self.endless(&group));
                }
                group.pass_barrier();
                stats.barriers += 1;
                version += 1;
                continue;
            }
            let w = group.next(&ready, &mut choices);
            let mut space = Space::apart(self.memory, log, &self.arguments, &object.image);
            let before = group.lds.version();
            let stop = slice(object, &mut group, w, &mut space, self.options, steps, stats)?;
            let changes = space.version() + (group.lds.version() - before);
            version += changes;
            turns = if changes > 0 { 1 } else { turns + 1 };
            // Where it does not let others run by itself, looking now and then is enough.
            if stop == Stop::Yielded || stop == Stop::Through && turns.is_multiple_of(LOOKS) {
                group.look(w, version);
            }
        }
        stats.workgroups += 1;
        Ok(Some(()))
    }

    /// No wave goes on: the first one that goes round in a loop is to blame.
    fn endless(&self, group: &Group) -> GcnError {
        let waiting = group.waves.iter().filter(|w| w.1 != Status::Done).count();
        match group.waves.iter().find(|w| w.1 == Status::Ready) {
            Some((wave, _)) => {
                let kind = ErrorKind::EndlessWait { on: wave.last_load, others: waiting.saturating_sub(1) };
                locate(self.launch.object, Fault::from(kind), wave.current_pc, group.id, wave)
            }
            None => ErrorKind::StepLimit(self.options.max_steps).into(),
        }
    }

    /// Workgroups from `next` on up to `end`, as one thread gets hold of them.
    fn take(&self, next: &AtomicU64, end: u64, before: u64, failed: &AtomicU64, stats: &mut Stats) -> Vec<Done> {
        let mut all = vec![];
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= end || failed.load(Ordering::Relaxed) < number {
                return all;
            }
            if let Some(done) = self.run(number, before, None, failed, stats) {
                if done.outcome.is_err() {
                    failed.fetch_min(number, Ordering::Relaxed);
                }
                all.push(done);
            }
        }
    }

    /// Workgroups `first .. end` on so many threads, in order, without those behind one that fails; `stats`: one a thread.
    fn batch(&self, first: u64, end: u64, before: u64, stats: &mut [Stats]) -> Vec<Done> {
        let (next, failed) = (AtomicU64::new(first), AtomicU64::new(u64::MAX));
        let Some((own, others)) = stats.split_first_mut() else { return vec![] };
        let mut all = std::thread::scope(|scope| {
            let (next, failed) = (&next, &failed);
            let spawn = |stats| {
                let work = move || self.take(next, end, before, failed, stats);
                std::thread::Builder::new().spawn_scoped(scope, work).ok()
            };
            // A host that refuses a thread just gets fewer.
            let handles: Vec<_> = others.iter_mut().map_while(spawn).collect();
            let mut all = self.take(next, end, before, failed, own);
            for handle in handles {
                match handle.join() {
                    Ok(mut done) => all.append(&mut done),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            all
        });
        all.sort_unstable_by_key(|done| done.number);
        all
    }

    /// What a workgroup comes to that follows `before` instructions, if it began with fewer and that matters.
    fn limited(&self, done: Done, before: u64) -> Done {
        let (most, after) = (self.options.max_steps, before.saturating_add(done.steps));
        let in_time = if done.outcome.is_ok() { after <= most } else { after < most };
        if in_time || done.before == before {
            return done;
        }
        let again = self.run(done.number, before, None, &AtomicU64::new(u64::MAX), &mut Stats::default());
        again.unwrap_or(done)
    }

    /// The access of a workgroup, with its instruction.
    fn access(&self, address: u64, (number, writes): (u64, bool)) -> MemoryAccess {
        let watch = Some(Watch { address, writes });
        let done = self.run(number, 0, watch, &AtomicU64::new(u64::MAX), &mut Stats::default());
        let workgroup = place(number, self.launch.grid);
        // Other devices may have changed what it reads of them, so that it goes another way.
        let site = done.and_then(|done| done.log.seen).map(|(wave, pc)| {
            let object = self.launch.object;
            let text = object.at(pc).map_or_else(String::new, |d| d.text.clone());
            let line = object.line(pc).map(|(file, line)| (file.to_owned(), line));
            Box::new(Site { pc, text, line, member: None, workgroup, wave, lane: None })
        });
        MemoryAccess { workgroup, writes, site }
    }

    fn races(&self, conflicts: &[Conflict]) -> Vec<MemoryRace> {
        let mut races: Vec<MemoryRace> = vec![];
        for conflict in conflicts {
            let [first, second] = [conflict.first, conflict.second].map(|of| self.access(conflict.address, of));
            let race = MemoryRace { address: conflict.address, first, second };
            if !races.iter().any(|other| other.is_like(&race)) {
                races.push(race);
            }
        }
        races
    }
}

/// Runs a launch.
pub(super) fn run(launch: &Launch<'_>, memory: &mut Memory, options: &Options) -> Result<Stats> {
    let kernel = launch.object.kernel(launch.kernel)?;
    let threads = check(launch.object, kernel, launch.grid, launch.block, options)?;
    let arguments = arguments(kernel, launch.grid, launch.block, launch.kernarg)?;
    let work = Work { launch, kernel, threads, arguments, memory, options };
    let workgroups = launch.grid.iter().fold(1u64, |n, g| n * u64::from(*g));
    let host = || std::thread::available_parallelism().map_or(1, usize::from);
    let room = MAX_SCRATCH / scratch(launch.object, kernel, threads).max(1);
    let hosts = (options.threads.unwrap_or_else(host) as u64).min(workgroups).min(room).max(1);
    let fresh = || Stats { profile: options.profile.then(|| Profile::new(launch.object)), ..Stats::default() };
    let mut stats: Vec<Stats> = (0..hosts).map(|_| fresh()).collect();
    let (mut merge, mut steps, mut first) = (Merge::default(), 0u64, 0);
    let mut failure = None;
    while first < workgroups && failure.is_none() {
        let end = first.saturating_add(BATCH * hosts).min(workgroups);
        for done in work.batch(first, end, steps, &mut stats) {
            let done = work.limited(done, steps);
            steps = steps.saturating_add(done.steps);
            merge.add(done.number, done.log);
            if let Err(error) = done.outcome {
                failure = Some(error);
                break;
            }
        }
        first = end;
    }
    let races = if failure.is_none() { work.races(&merge.conflicts) } else { vec![] };
    merge.apply(memory);
    if let Some(error) = failure {
        return Err(error);
    }
    let mut total = Stats { races, ..fresh() };
    stats.into_iter().for_each(|stats| total.add(stats));
    Ok(total)
}
