//! Device `gcn`: executes the linked AMD code object itself, instruction by instruction.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lathe_dsl::Target;
use lathe_dsl::artifact::Artifact;
use lathe_dsl::ir::{Kernel, Location, OpNumber};

use super::driver::Sharing;
use super::extents::Extents;
use super::group::{Blamed, Rank};
use super::{Device, DeviceId, LaunchReport, wrong_code};
use crate::error::Error;
use crate::gcn::profile::{Assumptions, Cost};
use crate::gcn::{self, CodeObject, GcnError, Memory, Options};
use crate::jit::{Code, Compiled};
use crate::launch::ArgBlock;

/// The code-object executor as a device.
pub struct Gcn {
    id: DeviceId,
    target: Target,
    options: Options,
    memory: Arc<Mutex<Memory>>,
    owners: Mutex<Extents>,
    /// Of the last launch, if asked for.
    costs: Mutex<Option<Costs>>,
}

/// What a launch cost, instruction by instruction, with the author's lines.
#[derive(Clone, Debug)]
pub struct Costs {
    /// What the estimate of cycles takes for granted.
    pub assumptions: Assumptions,
    /// Workgroups that ran.
    pub workgroups: u64,
    /// Every instruction that was executed, in the order of the code.
    pub instructions: Vec<InstructionCost>,
}

/// One instruction of [`Costs`].
#[derive(Clone, Debug)]
pub struct InstructionCost {
    /// Address in the code object.
    pub pc: u64,
    /// Its text.
    pub text: String,
    /// Where the operation that it came from was written.
    pub location: Option<Location>,
    /// What it cost.
    pub cost: Cost,
}

/// An execution error with the author's line, found through the object's line table and the kernel's trace.
#[derive(Debug, thiserror::Error)]
#[error("{}{error}", location.map_or(String::new(), |l| format!("{l}: ")))]
pub struct LocatedError {
    /// Where the operation that the faulty instruction came from was written.
    pub location: Option<Location>,
    /// What went wrong, with pc, workgroup, wave and lane.
    pub error: GcnError,
}

impl LocatedError {
    fn new(error: GcnError, kernel: &Kernel) -> Self {
        let op = error.site.as_ref().and_then(|site| site.line.as_ref()).map(|(_, line)| *line);
        let location = op.and_then(|op| author(kernel, op));
        Self { location, error }
    }
}

pub(super) fn lock(memory: &Mutex<Memory>) -> MutexGuard<'_, Memory> {
    memory.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where operation number `op` was written, if the kernel has one of this number.
fn author(kernel: &Kernel, op: u32) -> Option<Location> {
    (1..=kernel.op_count()).contains(&op).then(|| kernel.location(OpNumber(op)))
}

impl Gcn {
    /// A device with no memory in use. Waves and workgroups are interleaved by `seed`; without one, in order.
    pub fn new(target: Target, seed: Option<u64>) -> Self {
        let options = Options { seed: seed.map_or(0, executor_seed), ..Options::default() };
        let (memory, owners, costs) = (Arc::default(), Mutex::default(), Mutex::default());
        Self { id: DeviceId::unique(), target, options, memory, owners, costs }
    }

    /// Likewise; it counts what every instruction of a launch costs, for [`Gcn::costs`].
    pub fn counting(target: Target, seed: Option<u64>) -> Self {
        let mut device = Self::new(target, seed);
        device.options.profile = true;
        device
    }

    /// The same on so many host threads, where a launch's workgroups can run beside each other; `None` for all that there are.
    #[must_use]
    pub fn with_threads(mut self, threads: Option<usize>) -> Self {
        self.options.threads = threads;
        self
    }

    /// What the last launch cost, if it was counted and came to its end.
    pub fn costs(&self) -> Option<Costs> {
        self.costs.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What a finished launch tells; what it cost is kept.
    fn told(&self, compiled: &Compiled, object: &CodeObject, stats: &gcn::Stats, time: Duration) -> LaunchReport {
        let costs = stats.profile.as_ref().map(|profile| Costs {
            assumptions: profile.assumptions(),
            workgroups: stats.workgroups,
            instructions: profile
                .instructions(object)
                .map(|(pc, text, cost)| {
                    let location = object.line(pc).and_then(|(_, op)| author(compiled.kernel(), op));
                    InstructionCost { pc, text: text.to_owned(), location, cost }
                })
                .collect(),
        });
        *self.costs.lock().unwrap_or_else(PoisonError::into_inner) = costs;
        let place = |line: Option<u32>| {
            let place = line.and_then(|op| author(compiled.kernel(), op));
            place.map_or(String::new(), |l| format!("{l}: "))
        };
        let cut = |pc: &u64| {
            let place = place(object.line(*pc).map(|(_, op)| op));
            format!(
                "{place}a buffer access of several words ends past the buffer's end (pc {pc:#x}): chips differ in what it does"
            )
        };
        let race = |race: &gcn::MemoryRace| race.describe(|site| place(site.line.as_ref().map(|(_, op)| *op)));
        LaunchReport { time, findings: stats.cut.iter().map(cut).chain(stats.races.iter().map(race)).collect() }
    }

    /// The code that was compiled for this device.
    fn artifact<'c>(&self, compiled: &'c Compiled) -> Result<&'c Artifact, Error> {
        let wrong = |made_for: String| wrong_code(compiled, made_for, self.name());
        match compiled.code() {
            Code::Object(artifact) if artifact.target == self.target => Ok(artifact),
            Code::Object(artifact) => Err(wrong(artifact.target.to_string())),
            Code::Program(_) => Err(wrong(format!("cpu:{}", compiled.target()))),
        }
    }

    fn owners(&self) -> MutexGuard<'_, Extents> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        lock(&self.memory)
    }

    /// What [`Sharing`] opens regions in.
    pub(super) fn shared(&self) -> &Arc<Mutex<Memory>> {
        &self.memory
    }
}

impl Device for Gcn {
    fn name(&self) -> String {
        format!("gcn:{}", self.target)
    }

    fn id(&self) -> DeviceId {
        self.id
    }

    fn target(&self) -> Target {
        self.target
    }

    fn another(&self) -> Option<Arc<dyn Device>> {
        let (options, memory, owners, costs) = (self.options, Arc::default(), Mutex::default(), Mutex::default());
        Some(Arc::new(Self { id: DeviceId::unique(), target: self.target, options, memory, owners, costs }))
    }

    fn alloc(&self, bytes: u64) -> Result<u64, Error> {
        let out_of_memory = || Error::OutOfMemory { device: self.name(), bytes };
        let n = usize::try_from(bytes).map_err(|_| out_of_memory())?;
        let address = self.memory().try_alloc(n).map_err(|_| out_of_memory())?;
        self.owners().insert(address, bytes);
        Ok(address)
    }

    fn free(&self, address: u64) {
        if self.owners().release(address) {
            // It is the memory's: it has an owner.
            let _ = self.memory().free(address);
        }
    }

    fn retain(&self, address: u64) -> Option<u64> {
        self.owners().retain(address)
    }

    fn write(&self, address: u64, bytes: &[u8]) -> Result<(), Error> {
        let bad = |_| Error::BadAddress { device: self.name(), address, bytes: bytes.len() as u64 };
        self.memory().write(address, bytes).map_err(bad)
    }

    fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), Error> {
        let n = bytes.len() as u64;
        let bad = |_| Error::BadAddress { device: self.name(), address, bytes: n };
        self.memory().read_into(address, bytes).map_err(bad)
    }

    fn launch(&self, compiled: &Compiled, args: &ArgBlock) -> Result<LaunchReport, Error> {
        let artifact = self.artifact(compiled)?;
        let located = |error| located(error, compiled);
        let object = CodeObject::load(&artifact.code, self.target).map_err(located)?;
        let launch = &compiled.kernel().launch;
        let start = Instant::now();
        let mut memory = self.memory();
        let stats =
            gcn::launch(&object, &artifact.symbol, launch.grid, launch.block, args.bytes(), &mut memory, &self.options)
                .map_err(located)?;
        let time = start.elapsed();
        Ok(self.told(compiled, &object, &stats, time))
    }

    fn sharing(&self) -> Option<&dyn Sharing> {
        Some(self)
    }
}

fn located(error: GcnError, compiled: &Compiled) -> Error {
    Error::fault(LocatedError::new(error, compiled.kernel()))
}

/// Runs the launches of a group whose ranks are on `devices`, as the first one's options say.
pub(super) fn together(devices: &[&Gcn], ranks: &[Rank], seed: Option<u64>) -> Result<Vec<Vec<LaunchReport>>, Blamed> {
    let mut objects = vec![];
    for (number, (device, rank)) in devices.iter().zip(ranks).enumerate() {
        let load = |(compiled, _): &(Arc<Compiled>, _)| {
            let artifact = device.artifact(compiled)?;
            CodeObject::load(&artifact.code, device.target).map_err(|error| located(error, compiled))
        };
        objects.push(rank.launches.iter().map(load).collect::<Result<Vec<_>, _>>().map_err(|error| (number, error))?);
    }
    // Each device's memory once, in an order in which everybody locks them.
    let mut own: Vec<&Gcn> = devices.to_vec();
    own.sort_by_key(|device| device.id.0);
    own.dedup_by_key(|device| device.id.0);
    let mut members = vec![];
    for ((device, rank), objects) in devices.iter().zip(ranks).zip(&objects) {
        let mut launches = vec![];
        for ((compiled, args), object) in rank.launches.iter().zip(objects) {
            let artifact = device.artifact(compiled).map_err(|error| (members.len(), error))?;
            let lathe_dsl::ir::Launch { grid, block, .. } = compiled.kernel().launch;
            launches.push(gcn::Launch { object, kernel: &artifact.symbol, grid, block, kernarg: args.bytes() });
        }
        let memory = own.iter().position(|other| other.id == device.id).unwrap_or(0);
        members.push(gcn::Rank { memory, launches });
    }
    let options = devices.first().map_or_else(Options::default, |device| device.options);
    let options = Options { seed: seed.map_or(options.seed, executor_seed), ..options };
    let start = Instant::now();
    let mut guards: Vec<_> = own.iter().map(|device| device.memory()).collect();
    let mut memories: Vec<&mut Memory> = guards.iter_mut().map(|guard| &mut **guard).collect();
    let stats = gcn::launch_group(&members, &mut memories, &options).map_err(|(rank, error)| {
        let launch = error.site.as_ref().and_then(|site| site.member?.launch).unwrap_or(0);
        let compiled = ranks.get(rank).and_then(|rank| rank.launches.get(launch as usize));
        (rank, compiled.map_or_else(|| Error::fault(error.clone()), |(compiled, _)| located(error.clone(), compiled)))
    })?;
    let time = start.elapsed();
    let mut reports = vec![];
    for (((device, rank), objects), stats) in devices.iter().zip(ranks).zip(&objects).zip(&stats) {
        let launches = rank.launches.iter().zip(objects).zip(stats);
        reports.push(
            launches.map(|(((compiled, _), object), stats)| device.told(compiled, object, stats, time)).collect(),
        );
    }
    Ok(reports)
}

/// The executor takes 0 for "in order", which is a seed like any other here.
fn executor_seed(seed: u64) -> u64 {
    seed.wrapping_add(1).max(1)
}
