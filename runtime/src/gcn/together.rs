//! Launches that run together: their workgroups take turns, wait for each other and share memory.

use std::collections::VecDeque;
use std::ops::Range;

use lathe_dsl::Arch;

use crate::choices::Choices;
use crate::gcn::coherence::Coherence;
use crate::gcn::error::{ErrorKind, Fault, GcnError, Result};
use crate::gcn::memory::{Global, Memory, Space};
use crate::gcn::object::{CodeObject, Kernel};
use crate::gcn::profile::Profile;
use crate::gcn::run::{Group, Options, Stats, Status, Stop, arguments, check, locate, pick, place, slice, start};
use crate::interp::Member;
use crate::visibility::{Late, OfBlock, Stores, granule};

/// Workgroups among which a seed chooses the next one to start.
const WINDOW: usize = 64;

/// Turns a wave of a workgroup in which nothing changed, after which the workgroup counts as waiting.
const IDLE_TURNS: usize = 8;

/// Turns without a change from one look at a wave's state to the next.
pub(super) const LOOKS: usize = 32;

/// A launch of a group.
#[derive(Clone, Copy)]
pub struct Launch<'a> {
    /// Where the kernel is.
    pub object: &'a CodeObject,
    /// Its name.
    pub kernel: &'a str,
    /// Workgroups.
    pub grid: [u32; 3],
    /// Threads of a workgroup.
    pub block: [u32; 3],
    /// The argument block without hidden arguments.
    pub kernarg: &'a [u8],
}

/// A device of a group.
#[derive(Clone)]
pub struct Rank<'a> {
    /// Which of the memories is its own.
    pub memory: usize,
    /// What it runs, one after the other.
    pub launches: Vec<Launch<'a>>,
}

/// A launch under way.
struct Party<'a> {
    launch: Launch<'a>,
    kernel: &'a Kernel,
    threads: u32,
    arguments: Vec<u8>,
    rank: usize,
    memory: usize,
    member: Option<Member>,
    unseen: Range<u64>,
    /// The next ones, among which a seed chooses.
    window: VecDeque<u64>,
    /// Workgroups that have not ended.
    left: u64,
    open: bool,
    then: Option<usize>,
    /// Whether its stores become visible late, and turns are short, under a seed.
    talks: bool,
    stats: Stats,
}

/// A workgroup under way.
struct Active {
    party: usize,
    group: Group,
    /// Its stores on their way.
    late: Option<OfBlock>,
    /// Its number among those that tell each other something.
    block: u32,
    /// Turns since something changed.
    turns: usize,
    /// Those of them in which it let others run or had a whole turn.
    idle: usize,
}

struct Machine<'m, 'a> {
    parties: Vec<Party<'a>>,
    memories: Vec<&'m mut Memory>,
    options: &'m Options,
    choices: Option<Choices>,
    /// By rank: stores on their way that it sees.
    late: Vec<Stores>,
    /// Where workgroups can tell each other something.
    coherence: Option<Coherence>,
    active: Vec<Active>,
    /// The workgroup that ran last.
    last: usize,
    /// Counts changes of memory.
    version: u64,
    steps: u64,
}

type Blamed = (usize, GcnError);

/// Runs the launches of several devices together. Workgroups of all of them are in flight at once, whatever
/// [`Options::resident`] says, and may wait for each other. A launch begins when the one before it on its device has ended. What
/// comes back is in the same order. With a [seed](Options::seed), turns are random and stores become visible late; see
/// `docs/src/gcn.md`.
///
/// # Errors
/// As of [`launch`](super::launch), with the number of the rank to blame; [`ErrorKind::EndlessWait`].
pub fn launch_group(
    ranks: &[Rank<'_>],
    memories: &mut [&mut Memory],
    options: &Options,
) -> Result<Vec<Vec<Stats>>, Blamed> {
    let all = Options { resident: usize::MAX, ..*options };
    run(ranks, memories, &all, true)
}

/// The same; `named`: errors name rank and launch.
pub(super) fn run(
    ranks: &[Rank<'_>],
    memories: &mut [&mut Memory],
    options: &Options,
    named: bool,
) -> Result<Vec<Vec<Stats>>, Blamed> {
    let mut parties: Vec<Party<'_>> = vec![];
    for (number, rank) in ranks.iter().enumerate() {
        for (at, launch) in rank.launches.iter().enumerate() {
            let mut party = Party::new(launch, options).map_err(|error| (number, error))?;
            (party.rank, party.memory, party.open) = (number, rank.memory, at == 0);
            party.talks = options.seed != 0 && (named || talks(launch.object));
            let several = (rank.launches.len() > 1).then_some(at as u32);
            party.member = named.then_some(Member { rank: number as u32, launch: several });
            let next = parties.len();
            if at > 0
                && let Some(before) = parties.last_mut()
            {
                before.then = Some(next);
            }
            parties.push(party);
        }
    }
    let choices = (options.seed != 0).then_some(Choices(options.seed));
    let late = ranks.iter().map(|_| Stores::default()).collect();
    let tell = parties.iter().any(|party| named || party.talks);
    let coherence = tell.then(|| Coherence::new(ranks.len()));
    let memories = memories.iter_mut().map(|memory| &mut **memory).collect();
    let machine = Machine {
        parties,
        memories,
        options,
        choices,
        late,
        coherence,
        active: vec![],
        last: usize::MAX,
        version: 1,
        steps: 0,
    };
    let mut stats = machine.run()?.into_iter();
    Ok(ranks.iter().map(|rank| stats.by_ref().take(rank.launches.len()).collect()).collect())
}

impl<'a> Party<'a> {
    fn new(launch: &Launch<'a>, options: &Options) -> Result<Self> {
        let kernel = launch.object.kernel(launch.kernel)?;
        let threads = check(launch.object, kernel, launch.grid, launch.block, options)?;
        let blocks = launch.grid.iter().fold(1u64, |n, g| n * u64::from(*g));
        Ok(Self {
            launch: *launch,
            kernel,
            threads,
            arguments: arguments(kernel, launch.grid, launch.block, launch.kernarg)?,
            rank: 0,
            memory: 0,
            member: None,
            unseen: 0..blocks,
            window: VecDeque::new(),
            left: blocks,
            open: true,
            then: None,
            talks: false,
            stats: Stats { profile: options.profile.then(|| Profile::new(launch.object)), ..Stats::default() },
        })
    }

    fn may_begin(&self) -> bool {
        self.open && !(self.window.is_empty() && self.unseen.is_empty())
    }
}

/// Whether a launch's workgroups can tell each other something: the code has accesses that reach past a compute unit's cache, or
/// a loop that waits.
pub(super) fn talks(object: &CodeObject) -> bool {
    const SIGNS: [&str; 6] = [" sc0", " sc1", "scope:SCOPE_DEV", "scope:SCOPE_SYS", "atomic", "s_sleep"];
    object.all().any(|(_, _, text)| SIGNS.iter().any(|sign| text.contains(sign)))
}

impl Machine<'_, '_> {
    fn run(mut self) -> Result<Vec<Stats>, Blamed> {
        loop {
            while self.active.len() < self.options.resident.max(1) && self.begin()? {}
            if self.active.is_empty() {
                return Ok(self.parties.into_iter().map(|p| p.stats).collect());
            }
            let version = self.version;
            let moving: Vec<usize> =
                (0..self.active.len()).filter(|at| !self.active[*at].group.is_stuck(version)).collect();
            // More than are resident when those that are wait for them.
            let waits = |at: &usize| self.active[*at].idle >= IDLE_TURNS * self.active[*at].group.waves.len();
            if moving.iter().all(waits) && self.begin()? {
                continue;
            }
            if moving.is_empty() {
                if !self.move_any() {
                    return Err(self.endless());
                }
                continue;
            }
            let after = moving.iter().position(|at| self.last == usize::MAX || *at > self.last).unwrap_or(0);
            let at = moving[pick(&mut self.choices, moving.len(), after.wrapping_sub(1))];
            self.last = at;
            self.turn(at)?;
        }
    }

    /// Begins a workgroup, if one may.
    fn begin(&mut self) -> Result<bool, Blamed> {
        let open: Vec<usize> = (0..self.parties.len()).filter(|p| self.parties[*p].may_begin()).collect();
        if open.is_empty() {
            return Ok(false);
        }
        let at = open[pick(&mut self.choices, open.len(), usize::MAX)];
        let party = &mut self.parties[at];
        party.window.extend(party.unseen.by_ref().take(WINDOW - party.window.len()));
        let chosen = pick(&mut self.choices, party.window.len(), usize::MAX);
        let Some(n) = party.window.remove(chosen) else { return Ok(false) };
        let id = place(n, party.launch.grid);
        let Launch { object, block, .. } = party.launch;
        let group = start(object, party.kernel, id, block, party.threads, &party.arguments, self.options);
        let mut group = group.map_err(|error| (party.rank, error))?;
        for trace in group.waves.iter_mut().filter_map(|w| w.0.trace.as_mut()) {
            trace.memory = party.member.is_some();
        }
        let late = self.choices.as_mut().filter(|_| party.talks).map(|choices| {
            let mut late = OfBlock::new(group.waves.len());
            late.start(choices);
            late
        });
        let block = self.coherence.as_mut().map_or(0, |coherence| coherence.begin(party.rank, party.memory, id));
        self.active.push(Active { party: at, group, late, block, turns: 0, idle: 0 });
        Ok(true)
    }

    /// Lets a wave of workgroup `at` run, or all of them pass a barrier, or ends the workgroup.
    fn turn(&mut self, at: usize) -> Result<(), Blamed> {
        let Self { parties, memories, options, choices, late, coherence, active, version, steps, .. } = self;
        let Active { party, group, late: block, block: number, turns, idle } = &mut active[at];
        let party = &mut parties[*party];
        let ready = group.ready(*version);
        if ready.is_empty() {
            if group.is_done() {
                self.end(at);
            } else {
                group.pass_barrier();
                party.stats.barriers += 1;
                *version += 1;
            }
            return Ok(());
        }
        let w = group.next(&ready, choices);
        let Launch { object, .. } = party.launch;
        // Under a seed mostly short turns: what goes wrong between two instructions shows.
        let longest = options.quantum.max(1);
        let quantum = choices.as_mut().filter(|_| party.talks).map_or(longest, |c| {
            let most = 1 << [0, 2, 4, 7, 12][c.below(5)];
            longest.min(1 + c.below(most) as u64)
        });
        let turn = Options { quantum, ..**options };
        let late = match (block, choices) {
            (Some(block), Some(choices)) => {
                Some(Late { granule: granule(Arch::Amdgpu), block, device: &mut late[party.rank], choices })
            }
            _ => None,
        };
        let mut space = Space::new(&mut *memories[party.memory], &party.arguments, &object.image)
            .with_late(w as u32, late)
            .with_coherence(coherence.as_mut(), *number);
        let before = group.lds.version();
        let done = slice(object, group, w, &mut space, &turn, steps, &mut party.stats);
        let stop = done.map_err(|error| (party.rank, error.of(party.member)))?;
        space.chance(stop == Stop::Yielded);
        let changes = space.version() + (group.lds.version() - before);
        *version += changes;
        if changes > 0 {
            (*turns, *idle) = (0, 0);
        }
        *turns += 1;
        *idle += usize::from(stop == Stop::Yielded || quantum == longest);
        // Where it does not let others run by itself, looking now and then is enough.
        if stop == Stop::Yielded || stop == Stop::Through && turns.is_multiple_of(LOOKS) {
            group.look(w, *version);
        }
        Ok(())
    }

    /// Workgroup `at` has ended.
    fn end(&mut self, at: usize) {
        let Active { party: number, group, late: block, .. } = self.active.remove(at);
        let party = &mut self.parties[number];
        party.stats.workgroups += 1;
        party.stats.traces.extend(group.waves.into_iter().filter_map(|w| w.0.trace).map(|t| *t));
        party.left -= 1;
        let mut global = Global { memory: &mut *self.memories[party.memory], version: &mut self.version };
        if let (Some(mut block), Some(choices)) = (block, &mut self.choices) {
            let mut late =
                Late { granule: granule(Arch::Amdgpu), block: &mut block, device: &mut self.late[party.rank], choices };
            late.end(&mut global);
            if party.left == 0 {
                late.end_launch(&mut global);
            }
        }
        if let Some(coherence) = self.coherence.as_mut().filter(|_| party.left == 0) {
            coherence.end_launch(party.rank);
        }
        if let Some(then) = party.then.filter(|_| party.left == 0) {
            self.parties[then].open = true;
        }
    }

    /// Moves some store on that nothing waits for; whether there was one.
    fn move_any(&mut self) -> bool {
        let Self { parties, memories, choices, late, active, version, .. } = self;
        let Some(choices) = choices else { return false };
        active.iter_mut().any(|a| {
            let party = &parties[a.party];
            let mut global = Global { memory: &mut *memories[party.memory], version };
            a.late.as_mut().is_some_and(|block| {
                Late { granule: granule(Arch::Amdgpu), block, device: &mut late[party.rank], choices: &mut *choices }
                    .move_any(&mut global)
            })
        })
    }

    /// Nobody goes on: the first wave of the lowest rank that goes round in a loop is to blame.
    fn endless(&self) -> Blamed {
        let ready = |a: &'_ Active| a.group.waves.iter().position(|w| w.1 == Status::Ready);
        let key = |a: &&Active| (a.party, a.group.id.into_iter().rev().collect::<Vec<_>>());
        let waiting = self.active.iter().filter(|a| ready(a).is_some()).min_by_key(key);
        let waves = self.active.iter().flat_map(|a| &a.group.waves).filter(|w| w.1 != Status::Done).count();
        let Some((active, w)) = waiting.and_then(|a| Some((a, ready(a)?))) else {
            return (0, ErrorKind::StepLimit(self.steps).into());
        };
        let party = &self.parties[active.party];
        let wave = &active.group.waves[w].0;
        let kind = ErrorKind::EndlessWait { on: wave.last_load, others: waves.saturating_sub(1) };
        let fault = Fault::from(kind);
        (party.rank, locate(party.launch.object, fault, wave.current_pc, active.group.id, wave).of(party.member))
    }
}
