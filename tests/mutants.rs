//! Promise: in the code objects of [`SUBJECTS`] on every chip, no wait or barrier that is needed can be taken out or weakened, and no
//! `s_nop` shortened, without device `gcn` noticing.
//!
//! Of objects with very many mutants some are run, which a fixed seed chooses; with `LATHE_TEST_ALL_MUTANTS=1` all are.

mod exchange;
mod fenced;
mod launched;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use fastrand::Rng;
use lathe_dsl::Target;
use lathe_runtime::gcn::mutate::{Candidate, Needs, Verdict, Weakened, candidates, weakened};
use lathe_runtime::gcn::{self, CodeObject, ErrorKind, GcnError, Options};

use self::launched::Launched;

/// A kernel with settings so small that hundreds of mutants take seconds, and that reach every round of every loop.
#[derive(Clone, Copy)]
struct Subject {
    kernel: &'static str,
    settings: &'static [(&'static str, u32)],
    /// Most mutants that are run of an object, unless all are to be.
    most: usize,
    /// Orders of the waves.
    seeds: &'static [u64],
}

const fn subject(kernel: &'static str, settings: &'static [(&'static str, u32)]) -> Subject {
    Subject { kernel, settings, most: usize::MAX, seeds: &[0, 5] }
}

/// One workgroup, of which the image covers a part: stores within and past it.
const WINDOW: &[(&str, u32)] = &[("ex", 3), ("ey", 2)];

/// The largest one first.
const SUBJECTS: &[Subject] = &[
    Subject {
        most: 150,
        seeds: &[0],
        ..subject("dec2", &[("ex", 3), ("ey", 2), ("colour_width", 3), ("colour_height", 2)])
    },
    subject("mla_combine", &[("ranks", 2), ("tokens", 3)]),
    subject("mla_combine_splits", &[("splits", 12), ("tokens", 2), ("q", 2)]),
    subject("mla_uv", &[("tokens", 3)]),
    subject("gemm_mx", &[("m", 17), ("n", 33), ("k", 160)]),
];

/// All of them, with the epilogues of dec2.
fn subjects() -> Vec<Subject> {
    let names = lathe_kernels::registry::KERNELS.iter().map(|entry| entry.name);
    let epilogues: Vec<_> = names.filter(|name| name.starts_with("dec2.e")).map(|name| subject(name, WINDOW)).collect();
    assert_eq!(epilogues.len(), 38);
    SUBJECTS.iter().copied().chain(epilogues).collect()
}

/// Whether everything is to be run, however long it takes.
fn all() -> bool {
    std::env::var_os("LATHE_TEST_ALL_MUTANTS").is_some_and(|value| value == "1")
}

/// What became of the mutants of an object.
#[derive(Clone, Copy, Default)]
struct Tally {
    /// Waits and barriers, taken out or weakened.
    needed: usize,
    not_needed: usize,
    never_reached: usize,
    nops: usize,
    nops_found: usize,
    /// Not run.
    left_out: usize,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.needed += other.needed;
        self.not_needed += other.not_needed;
        self.never_reached += other.never_reached;
        self.nops += other.nops;
        self.nops_found += other.nops_found;
        self.left_out += other.left_out;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { needed, not_needed, never_reached, nops, nops_found, left_out } = self;
        write!(
            f,
            "{needed} needed, all found; {not_needed} not needed, none found, {never_reached} of them never reached; \
             {nops_found} of {nops} `s_nop`s; {left_out} not run"
        )
    }
}

enum Mutant {
    Removed(Candidate),
    Weakened(Weakened),
}

impl Mutant {
    fn of(object: &CodeObject, symbol: &str) -> Vec<Self> {
        let removed = candidates(object, symbol).unwrap().into_iter().map(Self::Removed);
        removed.chain(weakened(object, symbol).unwrap().into_iter().map(Self::Weakened)).collect()
    }

    fn applied(&self, object: &CodeObject) -> CodeObject {
        match self {
            Self::Removed(candidate) => candidate.removed(object),
            Self::Weakened(weak) => weak.applied(object),
        }
        .unwrap()
    }

    /// What the trace says; nothing of an `s_nop`.
    fn verdict(&self, needs: &Needs) -> Option<Verdict> {
        match self {
            // A split barrier is passed where its first half is.
            Self::Removed(candidate) => Some(needs.verdict(candidate.signal.unwrap_or(candidate.pc))),
            Self::Weakened(weak) => weak.counts.map(|counts| needs.verdict_instead(weak.pc, counts)),
        }
    }
}

impl fmt::Display for Mutant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Removed(c) => write!(f, "without `{}` at {:#x}", c.text, c.pc),
            Self::Weakened(w) => write!(f, "`{}` at {:#x} weakened to {:x?}", w.text, w.pc, w.counts),
        }
    }
}

impl Subject {
    /// Runs a mutant in a few orders of the waves; it must fail in all of them, or in none and then change no byte.
    fn errors(&self, launched: &Launched, mutant: &CodeObject, intact: &Intact, what: &str) -> Vec<GcnError> {
        let mut errors = vec![];
        for seed in self.seeds {
            // Other mutants take the other cores.
            let (max_steps, threads) = (4 * intact.steps + 10_000, Some(1));
            let options = Options { seed: *seed, max_steps, threads, ..Options::default() };
            match launched.run(&[mutant], &options) {
                Ok((_, memory)) => {
                    assert!(launched.bytes(&memory) == intact.bytes, "{what}: another result, and nothing noticed");
                }
                Err(error) => {
                    let site = error.site.as_ref().unwrap_or_else(|| panic!("{what}: no place: {error}"));
                    assert!(site.line.is_some(), "{what}: no line: {error}");
                    errors.push(error);
                }
            }
        }
        errors
    }

    fn mutants(&self, target: Target) -> Tally {
        let launched = Launched::of(self.kernel, self.settings, target);
        let (object, symbol) = (&launched.objects()[0], &launched.launches[0].symbol);
        let options = Options { record: true, threads: Some(1), ..Options::default() };
        let (stats, memory) = launched.run(&[object], &options).unwrap();
        let intact = Intact { bytes: launched.bytes(&memory), steps: stats[0].instructions };
        let needs = Needs::of(&stats[0].traces);
        let mut tally = Tally::default();
        let mut mutants = Mutant::of(object, symbol);
        if !all() && mutants.len() > self.most {
            Rng::with_seed(1).shuffle(&mut mutants);
            tally.left_out = mutants.len() - self.most;
            mutants.truncate(self.most);
        }
        for mutant in mutants {
            let what = format!("{} for {target}, {mutant}", self.kernel);
            let errors = self.errors(&launched, &mutant.applied(object), &intact, &what);
            let Some(verdict) = mutant.verdict(&needs) else {
                // LLVM puts in no more states than the worst way to get there needs.
                tally.nops += 1;
                tally.nops_found += usize::from(errors.len() == self.seeds.len());
                let as_meant = errors.iter().all(|e| matches!(e.kind, ErrorKind::WaitStates { .. }));
                assert!(as_meant, "{what}: noticed, but as something else: {errors:?}");
                continue;
            };
            assert_eq!(
                errors.len(),
                if verdict.is_needed() { self.seeds.len() } else { 0 },
                "{what}: the trace says {verdict:?}, the runs say {errors:?}"
            );
            tally.needed += usize::from(verdict.is_needed());
            tally.not_needed += usize::from(!verdict.is_needed());
            tally.never_reached += usize::from(verdict == Verdict::NeverReached);
        }
        tally
    }
}

/// What the intact object does.
struct Intact {
    bytes: Vec<u8>,
    steps: u64,
}

/// What `f` makes of each item, on all cores, in order.
fn in_parallel<T: Sync, R: Send>(items: &[T], f: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    let work = || {
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(i) else { return };
            let result = f(item);
            done.lock().unwrap().insert(i, result);
        }
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(2, usize::from).min(items.len());
        (0..threads).for_each(|_| drop(scope.spawn(work)));
    });
    done.into_inner().unwrap().into_values().collect()
}

#[test]
fn no_needed_wait_barrier_or_nop_can_be_weakened_unseen() {
    let objects: Vec<_> = subjects().into_iter().flat_map(|s| gcn::targets().map(move |t| (s, t))).collect();
    let tallies = in_parallel(&objects, |(subject, target)| subject.mutants(*target));
    assert_eq!(tallies.len(), objects.len());
    let mut sums: BTreeMap<(&str, String), Tally> = BTreeMap::new();
    for ((subject, target), tally) in objects.iter().zip(tallies) {
        println!("{} for {target}: {tally}", subject.kernel);
        let group = if subject.kernel.starts_with("dec2.e") { "dec2.e1 to dec2.e38" } else { subject.kernel };
        *sums.entry((group, target.to_string())).or_default() += tally;
        assert!(tally.needed >= 3, "{} for {target}", subject.kernel);
        if target.chip().wave == 64 {
            assert!(tally.nops_found * 10 >= tally.nops * 9, "{} for {target}: {tally}", subject.kernel);
        }
    }
    for ((group, target), tally) in sums {
        println!("all of {group} for {target}: {tally}");
    }
}
