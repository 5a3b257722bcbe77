//! Promise: what ranks tell each other is told right only by the code as it is. In the objects of `mla_push`, `mla_combine_ranks`,
//! `mla_post` and a kernel with fences, on every chip, no access that another rank sees can go less far, no store of a message and no fence
//! be missing, and no wait or barrier be taken out or weakened that is needed, without device `gcn` noticing; and what is not needed is
//! never blamed.
//!
//! What is needed is decided by what the intact run did: who loaded what somebody else had stored, and in which order. A wait that is
//! there for that order alone is missed in some schedules only: seeds are tried until one shows it.

use std::fmt;
use std::sync::Arc;

use fastrand::Rng;
use half::bf16;
use lathe_dsl::{Kernel, Target};
use lathe_kernels::gemm::reference::Mxfp4;
use lathe_kernels::mla::post::{MlaPost, MlaPostArgs};
use lathe_kernels::mla::push::{MlaPush, MlaPushArgs};
use lathe_kernels::mla::ranks::{MlaCombineRanks, MlaCombineRanksArgs};
use lathe_kernels::mla::{HEADS, LATENTS, VALUES, uv};
use lathe_runtime::DeviceBuffer;
use lathe_runtime::device::Device;
use lathe_runtime::gcn::mutate::{Exchange, Needs, Role, Told, Verdict, exchanges};
use lathe_runtime::gcn::trace::Trace;
use lathe_runtime::gcn::{self, CodeObject, ErrorKind, GcnError, Options};
use lathe_runtime::jit::{Jit, Llvm};
use lathe_runtime::mailbox::MailboxHealth;

use super::fenced::{Fenced, FencedArgs};
use super::launched::{Launched, Recorder};
use super::{Mutant, all, in_parallel};

/// Ranks of every group.
pub const RANKS: u32 = 2;
const LAYER: u32 = 3;
const EPOCH: u32 = 6;

/// Schedules in which a mutant must have shown that some only show.
const SCHEDULES: u64 = 64;

/// Schedules for what none may show, unless everything is to be run.
const FEW: u64 = 5;

/// Schedules that mutants are tried in, from 0 on.
fn seeds() -> u64 {
    if all() { SCHEDULES / 4 } else { FEW }
}

/// Launches of several kernels on several ranks.
struct Group {
    kernels: &'static [&'static str],
    /// Schedules in which a mutant must have shown: the more, the fewer messages there are.
    schedules: u64,
    launched: Launched,
    /// By launch: its kernel and its rank.
    of: Vec<(usize, usize)>,
}

impl Group {
    /// The launches of each rank, in order.
    fn ranks(&self) -> Vec<Vec<usize>> {
        let of = |rank| (0..self.of.len()).filter(|i| self.of[*i].1 == rank).collect();
        (0..RANKS as usize).map(of).collect()
    }

    /// The rows that a rank holds of `heads` heads: a token's.
    fn rows(rng: &mut Rng, heads: u32) -> (Vec<bf16>, Vec<f32>) {
        let rows = (0..heads * LATENTS).map(|_| bf16::from_f32(rng.f32() * 4.0 - 2.0)).collect();
        (rows, (0..heads).map(|_| rng.f32() * 8.0).collect())
    }

    /// Every rank pushes its rows and then combines what it was sent.
    fn push_and_combine(target: Target) -> Self {
        let recorder = Recorder::new(target, false);
        let device: Arc<dyn Device> = recorder.clone();
        let jit = Jit::new(Llvm::default());
        // Fewer waves than rows, of which most chips' waves take several.
        let push = MlaPush { ranks: RANKS, tokens: 1, q: 1, ctas: 1 };
        let combine = MlaCombineRanks { ranks: RANKS, tokens: 1, wait_us: 0 };
        let (pushes, combines) = (jit.get(&push, target).unwrap(), jit.get(&combine, target).unwrap());
        let common = Common::new(&device, push.messages().region_bytes());
        let mut rng = Rng::with_seed(1);
        let sent: Vec<_> = (0..RANKS)
            .map(|_| {
                let (rows, lse) = Self::rows(&mut rng, RANKS * HEADS);
                let bits: Vec<u32> = lse.iter().map(|x| x.to_bits()).collect();
                (DeviceBuffer::from_slice(&device, &rows).unwrap(), DeviceBuffer::from_slice(&device, &bits).unwrap())
            })
            .collect();
        let latents = |_| DeviceBuffer::<bf16>::uninit(&device, (HEADS * LATENTS) as usize).unwrap();
        let latents: Vec<_> = (0..RANKS).map(latents).collect();
        let health = |rank| MailboxHealth::new(&device, rank, combine.ctas()).unwrap();
        let health: Vec<_> = (0..RANKS).map(health).collect();
        for (rank, (o, lse)) in (0..).zip(&sent) {
            let args = MlaPushArgs {
                o: o.arg(),
                lse: lse.arg(),
                seq_lens: common.seq_lens.arg(),
                qsl: common.qsl.arg(),
                peers: common.peers.arg(),
                rank,
                layer: LAYER,
                epoch: common.epoch.arg(),
            };
            pushes.launch::<MlaPush>(&*device, &args).unwrap();
        }
        for ((rank, latents), health) in (0..).zip(&latents).zip(&health) {
            let args = MlaCombineRanksArgs {
                peers: common.peers.arg(),
                rank,
                layer: LAYER,
                epoch: common.epoch.arg(),
                health: health.health(),
                alarm: health.alarm(),
                latents: latents.arg(),
            };
            combines.launch::<MlaCombineRanks>(&*device, &args).unwrap();
        }
        Self {
            kernels: &[MlaPush::NAME, MlaCombineRanks::NAME],
            schedules: SCHEDULES,
            launched: recorder.take(),
            of: vec![(0, 0), (0, 1), (1, 0), (1, 1)],
        }
    }

    /// Every rank launches the whole tail of the layer.
    fn post(target: Target) -> Self {
        let recorder = Recorder::new(target, false);
        let device: Arc<dyn Device> = recorder.clone();
        let key = MlaPost { ranks: RANKS, tokens: 1, q: 1, splits: 0, ctas: 2, wait_us: 0 };
        let compiled = Jit::new(Llvm::default()).get(&key, target).unwrap();
        let common = Common::new(&device, key.messages().region_bytes());
        let mut rng = Rng::with_seed(2);
        for rank in 0..RANKS {
            let (rows, lse) = Self::rows(&mut rng, RANKS * HEADS);
            let weights = Mxfp4::random(&mut rng, uv::ROW, LATENTS);
            let gate: Vec<bf16> = (0..uv::ROW).map(|_| bf16::from_f32(rng.f32())).collect();
            let o = DeviceBuffer::from_slice(&device, &rows).unwrap();
            let lse = DeviceBuffer::from_slice(&device, &lse).unwrap();
            let codes = DeviceBuffer::from_slice(&device, &weights.codes).unwrap();
            let scales = DeviceBuffer::from_slice(&device, &weights.scales).unwrap();
            let gate = DeviceBuffer::from_slice(&device, &gate).unwrap();
            let core = DeviceBuffer::<bf16>::uninit(&device, gate.len()).unwrap();
            let health = MailboxHealth::new(&device, rank, key.ctas()).unwrap();
            let args = MlaPostArgs {
                o: o.address(),
                o_sb: RANKS * HEADS * LATENTS,
                o_sh: LATENTS,
                lse: lse.address(),
                lse_sb: RANKS * HEADS,
                lse_sh: 1,
                seq_lens: common.seq_lens.arg(),
                qsl: common.qsl.arg(),
                w_v: codes.address(),
                wv_sh: VALUES * LATENTS / 2,
                wv_sn: LATENTS / 2,
                w_v_scale: scales.address(),
                vs_sh: VALUES * LATENTS / 32,
                vs_sn: LATENTS / 32,
                vs_sk: 1,
                gate: gate.arg(),
                core: core.arg(),
                peers: common.peers.arg(),
                rank,
                layer: LAYER,
                epoch: common.epoch.arg(),
                health: health.health(),
                alarm: health.alarm(),
            };
            compiled.launch::<MlaPost>(&*device, &args).unwrap();
        }
        let (launched, of) = (recorder.take(), vec![(0, 0), (0, 1)]);
        Self { kernels: &[MlaPost::NAME], schedules: SCHEDULES, launched, of }
    }

    /// Every rank stores plainly, and fences its stores and loads.
    fn fenced(target: Target) -> Self {
        let recorder = Recorder::new(target, false);
        let device: Arc<dyn Device> = recorder.clone();
        let key = Fenced { blocks: 2 };
        let compiled = Jit::new(Llvm::default()).get(&key, target).unwrap();
        let common = Common::new(&device, key.region_bytes());
        for rank in 0..RANKS {
            let out = DeviceBuffer::<u32>::uninit(&device, key.words()).unwrap();
            let args = FencedArgs { peers: common.peers.arg(), rank, tag: 5, out: out.arg() };
            compiled.launch::<Fenced>(&*device, &args).unwrap();
        }
        let (launched, of) = (recorder.take(), vec![(0, 0), (0, 1)]);
        Self { kernels: &[Fenced::NAME], schedules: 4096, launched, of }
    }

    /// Runs it with the object of each kernel.
    fn run(&self, objects: &[&CodeObject], options: &Options) -> Result<(Vec<Vec<gcn::Stats>>, Vec<u8>), GcnError> {
        let ranks = self.ranks();
        let ranks: Vec<&[usize]> = ranks.iter().map(Vec::as_slice).collect();
        let of_launch: Vec<_> = self.of.iter().map(|(kernel, _)| objects[*kernel]).collect();
        let (stats, memory) = self.launched.run_together(&ranks, &of_launch, options)?;
        Ok((stats, self.launched.bytes(&memory)))
    }

    /// The object of each kernel.
    fn objects(&self) -> Vec<CodeObject> {
        let all = self.launched.objects();
        let first = |kernel| self.of.iter().position(|(of, _)| *of == kernel).unwrap();
        (0..self.kernels.len()).map(|kernel| all[first(kernel)].clone()).collect()
    }
}

/// What all ranks have in common.
struct Common {
    seq_lens: DeviceBuffer<i32>,
    qsl: DeviceBuffer<i32>,
    epoch: DeviceBuffer<u32>,
    peers: DeviceBuffer<u64>,
    _regions: Vec<DeviceBuffer<u8>>,
}

impl Common {
    fn new(device: &Arc<dyn Device>, region: u64) -> Self {
        let zeros = vec![0; region as usize];
        let regions: Vec<_> = (0..RANKS).map(|_| DeviceBuffer::from_slice(device, &zeros).unwrap()).collect();
        let addresses: Vec<u64> = regions.iter().map(DeviceBuffer::address).collect();
        Self {
            seq_lens: DeviceBuffer::from_slice(device, &[1]).unwrap(),
            qsl: DeviceBuffer::from_slice(device, &[0, 1]).unwrap(),
            epoch: DeviceBuffer::from_slice(device, &[EPOCH]).unwrap(),
            peers: DeviceBuffer::from_slice(device, &addresses).unwrap(),
            _regions: regions,
        }
    }
}

/// A group, what its intact objects do, and their mutants.
struct Prepared {
    group: Group,
    objects: Vec<CodeObject>,
    bytes: Vec<u8>,
    steps: u64,
    mutants: Vec<Case>,
}

/// A mutant.
struct Case {
    /// Which object it is of.
    kernel: usize,
    change: Change,
    due: Due,
    /// Schedules to run it in.
    seeds: Vec<u64>,
}

enum Change {
    Wait(Mutant),
    Exchange(Exchange),
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wait(mutant) => mutant.fmt(f),
            Self::Exchange(Exchange { pc, text, instead: Some(instead), .. }) => {
                write!(f, "`{text}` at {pc:#x} as `{instead}`")
            }
            Self::Exchange(Exchange { pc, text, .. }) => write!(f, "without `{text}` at {pc:#x}"),
        }
    }
}

/// When a mutant must be noticed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Due {
    Never,
    /// If too few wait states are left: the compiler may have put in more than one way to get there needs.
    Perhaps,
    /// In some schedule.
    Once,
    /// In each schedule whose intact run needs it, by an error or other results.
    Shown,
    /// In each schedule whose intact run needs it, by an error.
    Always,
}

/// What an intact run did: for each launch what it needs, and what was told.
struct Intact {
    seed: u64,
    needs: Vec<Needs>,
    told: Told,
}

impl Intact {
    fn new(group: &Group, seed: u64, stats: &[Vec<gcn::Stats>]) -> Self {
        // By launch.
        let mut traces: Vec<&[Trace]> = vec![&[]; group.of.len()];
        for (numbers, stats) in group.ranks().iter().zip(stats) {
            for (number, stats) in numbers.iter().zip(stats) {
                traces[*number] = &stats.traces;
            }
        }
        let ranks = group.of.iter().map(|(_, rank)| *rank);
        let told = Told::of(&ranks.zip(traces.iter().copied()).collect::<Vec<_>>());
        Self { seed, needs: Needs::of_group(&traces), told }
    }

    /// When a mutant of some launches' object must be noticed in this schedule.
    fn due(&self, change: &Change, launches: &[usize]) -> Due {
        let due = launches.iter().map(|launch| match change {
            Change::Wait(mutant) => match mutant.verdict(&self.needs[*launch]) {
                None => Due::Perhaps,
                Some(Verdict::Message { .. }) => Due::Once,
                Some(verdict) if verdict.is_needed() => Due::Always,
                Some(_) => Due::Never,
            },
            // There are no more fences than are needed. Between launches that follow each other caches are clean, so that accesses
            // across them matter in some schedules only.
            Change::Exchange(exchange) => match (exchange.is_needed(&self.told, *launch), &exchange.instead) {
                (Some(false), _) => Due::Never,
                (Some(true), None) => Due::Shown,
                (Some(true), Some(_)) | (None, _) => Due::Once,
            },
        });
        due.max().unwrap_or(Due::Never)
    }
}

impl Prepared {
    fn new(group: Group) -> Self {
        let target = group.launched.target;
        let objects = group.objects();
        let intact: Vec<&CodeObject> = objects.iter().collect();
        let run = |seed, record| {
            let options = Options { seed, record, ..Options::default() };
            group
                .run(&intact, &options)
                .unwrap_or_else(|e| panic!("{:?} for {target}, seed {seed}: {e}", group.kernels))
        };
        let (stats, bytes) = run(0, true);
        let steps = stats.iter().flatten().map(|s| s.instructions).sum();
        let mut seen = vec![Intact::new(&group, 0, &stats)];
        // As many as the intact objects are tried with in any case; what mutants are tried with is looked at.
        for seed in 1..SCHEDULES / 4 {
            let looked_at = seed < seeds();
            let (stats, again) = run(seed, looked_at);
            assert!(again == bytes, "{:?} for {target}, seed {seed}: other results", group.kernels);
            seen.extend(looked_at.then(|| Intact::new(&group, seed, &stats)));
        }
        let mut mutants = vec![];
        for (kernel, object) in objects.iter().enumerate() {
            let launches: Vec<usize> = (0..group.of.len()).filter(|i| group.of[*i].0 == kernel).collect();
            let symbol = &group.launched.launches[launches[0]].symbol;
            let waits = Mutant::of(object, symbol).into_iter().map(Change::Wait);
            let exchanges = exchanges(object, symbol).unwrap().into_iter().map(Change::Exchange);
            for change in waits.chain(exchanges) {
                let by_seed: Vec<_> = seen.iter().map(|intact| (intact.seed, intact.due(&change, &launches))).collect();
                let due = by_seed.iter().map(|(_, due)| *due).max().unwrap_or(Due::Never);
                let seeds = by_seed.iter().filter(|(_, of_seed)| *of_seed == due).map(|(seed, _)| *seed).collect();
                mutants.push(Case { kernel, change, due, seeds });
            }
        }
        drop(seen);
        Self { group, objects, bytes, steps, mutants }
    }

    /// Runs mutant number `number`; after how many schedules it was noticed, if it was.
    fn noticed(&self, number: usize) -> Option<u64> {
        let Case { kernel, change, due, seeds } = &self.mutants[number];
        let what = format!("{} for {}, {change}", self.group.kernels[*kernel], self.group.launched.target);
        let mutant = match change {
            Change::Wait(mutant) => mutant.applied(&self.objects[*kernel]),
            Change::Exchange(exchange) => exchange.applied(&self.objects[*kernel]).unwrap(),
        };
        let mut objects: Vec<&CodeObject> = self.objects.iter().collect();
        objects[*kernel] = &mutant;
        let run = |seed| {
            // Waiting takes more turns in some schedules.
            let options = Options { seed, max_steps: 64 * self.steps, ..Options::default() };
            match self.group.run(&objects, &options) {
                Ok((_, bytes)) if bytes == self.bytes => None,
                Ok(_) => Some("other results".to_owned()),
                Err(e) if *due == Due::Perhaps && !matches!(e.kind, ErrorKind::WaitStates { .. }) => {
                    panic!("{what}: noticed, but as something else: {e}")
                }
                Err(e) => Some(format!("error: {e}")),
            }
        };
        match due {
            Due::Never => {
                let blamed = seeds.iter().find_map(|seed| run(*seed).map(|said| (seed, said)));
                assert_eq!(blamed, None, "{what}: not needed, and blamed");
                None
            }
            Due::Perhaps => run(0).map(|_| 1),
            Due::Once => {
                let schedules = self.group.schedules;
                let found = (0..schedules).find(|seed| run(*seed).is_some());
                assert!(found.is_some(), "{what}: needed, and no schedule of {schedules} shows it");
                found.map(|seed| seed + 1)
            }
            Due::Shown | Due::Always => {
                for seed in seeds.iter().take(3) {
                    let said = run(*seed).unwrap_or_else(|| panic!("{what}, seed {seed}: needed, and not noticed"));
                    assert!(*due == Due::Shown || said.starts_with("error: "), "{what}, seed {seed}: {said}");
                }
                Some(1)
            }
        }
    }
}

/// What became of a kernel's mutants.
#[derive(Default)]
struct Tally {
    waits: usize,
    waits_not_needed: usize,
    /// Waits that only the order of messages needs.
    orders: usize,
    /// The most schedules that it took to show a mutant.
    longest: u64,
    accesses: usize,
    accesses_not_needed: usize,
    stores: usize,
    fences: usize,
    nops: usize,
    nops_found: usize,
}

impl Tally {
    fn add(&mut self, change: &Change, due: Due, noticed: Option<u64>) {
        self.longest = self.longest.max(noticed.unwrap_or_default());
        match (change, due) {
            (_, Due::Perhaps) => {
                self.nops += 1;
                self.nops_found += usize::from(noticed.is_some());
            }
            (Change::Wait(_), Due::Never) => self.waits_not_needed += 1,
            (Change::Wait(_), Due::Once) => self.orders += 1,
            (Change::Wait(_), _) => self.waits += 1,
            (Change::Exchange(_), Due::Never) => self.accesses_not_needed += 1,
            (Change::Exchange(exchange), _) if exchange.instead.is_none() && exchange.role == Role::Store => {
                self.stores += 1;
            }
            (Change::Exchange(exchange), _) if exchange.role == Role::Fence => self.fences += 1,
            (Change::Exchange(_), _) => self.accesses += 1,
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { waits, waits_not_needed, orders, longest, accesses, accesses_not_needed, stores, fences, .. } = self;
        write!(
            f,
            "{waits} waits and barriers needed in any schedule, {orders} for the order of messages, {waits_not_needed} not needed; \
             {accesses} narrower accesses, {stores} missing stores, {fences} missing or narrower fences found, \
             {accesses_not_needed} of these not needed; at most {longest} schedules; {} of {} `s_nop`s",
            self.nops_found, self.nops
        )
    }
}

#[test]
fn what_ranks_tell_each_other_cannot_be_weakened_unseen() {
    let make: [fn(Target) -> Group; 3] = [Group::post, Group::push_and_combine, Group::fenced];
    let groups: Vec<_> = make.into_iter().flat_map(|make| gcn::targets().map(move |target| (make, target))).collect();
    let prepared = in_parallel(&groups, |(make, target)| Prepared::new(make(*target)));
    let numbers =
        |(at, p): (usize, &Prepared)| (0..p.mutants.len()).map(move |number| (at, number)).collect::<Vec<_>>();
    let all: Vec<_> = prepared.iter().enumerate().flat_map(numbers).collect();
    let mut noticed = in_parallel(&all, |(at, number)| prepared[*at].noticed(*number)).into_iter();
    for p in &prepared {
        let target = p.group.launched.target;
        let mut tallies: Vec<Tally> = p.group.kernels.iter().map(|_| Tally::default()).collect();
        for Case { kernel, change, due, .. } in &p.mutants {
            tallies[*kernel].add(change, *due, noticed.next().expect("as many as mutants"));
        }
        for (kernel, tally) in p.group.kernels.iter().zip(&tallies) {
            println!("{kernel} for {target}: {tally}");
            let sends = *kernel != MlaCombineRanks::NAME;
            assert!(tally.waits >= 3 && tally.accesses >= 2, "{kernel} for {target}: {tally}");
            assert!(!sends || tally.stores >= 1, "{kernel} for {target}: {tally}");
            // On gfx1201 LLVM waits for each coherent store, so that no wait alone is needed.
            let ordered = tally.orders >= 1 || target.chip().wave == 32;
            assert!(!sends || ordered, "{kernel} for {target}: {tally}");
            assert!(*kernel != Fenced::NAME || tally.fences >= 4, "{kernel} for {target}: {tally}");
        }
    }
}
