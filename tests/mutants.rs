//! Promise: in the code objects of [`BUILDS`] on every chip, no wait or barrier that is needed can be taken out or weakened, and no
//! `s_nop` shortened, without device `gcn` noticing.

use std::sync::{Arc, Mutex};

use lathe_dsl::Target;
use lathe_kernels::registry::Entry;
use lathe_runtime::device::{Device, DeviceId, LaunchReport};
use lathe_runtime::gcn::mutate::{candidates, verdict, verdict_instead, weakened};
use lathe_runtime::gcn::{self, CodeObject, ErrorKind, GcnError, Memory, Options, Stats};
use lathe_runtime::jit::{Code, Compiled, Jit, Llvm};
use lathe_runtime::{ArgBlock, Engine, Error};

/// What is run, small enough that hundreds of mutants of each take seconds; the keys reach every round of every loop.
const BUILDS: &[(&str, &[(&str, u32)])] = &[
    ("mla_combine", &[("ranks", 2), ("tokens", 3)]),
    ("mla_combine_splits", &[("splits", 12), ("tokens", 2), ("q", 2)]),
    ("mla_uv", &[("tokens", 3)]),
    ("gemm_mx", &[("m", 17), ("n", 33), ("k", 160)]),
];

/// One launch, to be repeated: the object, its arguments, and the memory before.
#[derive(Clone)]
struct Launched {
    code: Vec<u8>,
    symbol: String,
    grid: [u32; 3],
    block: [u32; 3],
    arguments: Vec<u8>,
    allocations: Vec<Allocated>,
}

/// An allocation as it was before the launch, in the order in which they were made, which is that of their addresses.
#[derive(Clone)]
struct Allocated {
    address: u64,
    /// Defined bytes.
    bytes: Vec<Option<u8>>,
}

/// A device that runs nothing but its last launch's intact object, and remembers what it was given.
struct Recorder {
    id: DeviceId,
    target: Target,
    memory: Mutex<(Memory, Vec<(u64, usize)>)>,
    launched: Mutex<Option<Launched>>,
}

impl Device for Recorder {
    fn name(&self) -> String {
        format!("gcn:{}", self.target)
    }

    fn id(&self) -> DeviceId {
        self.id
    }

    fn target(&self) -> Target {
        self.target
    }

    fn alloc(&self, bytes: u64) -> Result<u64, Error> {
        let mut memory = self.memory.lock().unwrap();
        let address = memory.0.alloc(bytes as usize);
        memory.1.push((address, bytes as usize));
        Ok(address)
    }

    fn free(&self, _: u64) {}

    fn write(&self, address: u64, bytes: &[u8]) -> Result<(), Error> {
        self.memory.lock().unwrap().0.write(address, bytes).map_err(Error::fault)
    }

    fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), Error> {
        bytes.copy_from_slice(&self.memory.lock().unwrap().0.read(address, bytes.len()).map_err(Error::fault)?);
        Ok(())
    }

    fn launch(&self, compiled: &Compiled, args: &ArgBlock) -> Result<LaunchReport, Error> {
        let Code::Object(artifact) = compiled.code() else { panic!("an object was compiled") };
        let launch = &compiled.kernel().launch;
        let mut memory = self.memory.lock().unwrap();
        let allocations = memory.1.iter().map(|(address, n)| {
            let byte = |at: u64| {
                let defined = memory.0.undefined_bytes(at, 1).unwrap() == 0;
                defined.then(|| memory.0.read(at, 1).unwrap()[0])
            };
            Allocated { address: *address, bytes: (*address..*address + *n as u64).map(byte).collect() }
        });
        let launched = Launched {
            code: artifact.code.clone(),
            symbol: artifact.symbol.clone(),
            grid: launch.grid,
            block: launch.block,
            arguments: args.bytes().to_vec(),
            allocations: allocations.collect(),
        };
        let object = CodeObject::load(&launched.code, self.target).map_err(Error::fault)?;
        let (_, after) = launched.run(&object, &Options::default()).map_err(Error::fault)?;
        memory.0 = after;
        *self.launched.lock().unwrap() = Some(launched);
        Ok(LaunchReport::default())
    }
}

impl Launched {
    /// Records the launch that a kernel's own check makes.
    fn of(kernel: &str, settings: &[(&str, u32)], target: Target) -> Self {
        let settings: Vec<_> = settings.iter().map(|(name, value)| ((*name).to_owned(), value.to_string())).collect();
        let build = Entry::find(kernel).unwrap().build(&settings).unwrap();
        let recorder =
            Arc::new(Recorder { id: DeviceId::unique(), target, memory: Mutex::default(), launched: Mutex::default() });
        let engine = Engine { device: Arc::<Recorder>::clone(&recorder), jit: Jit::new(Llvm::default()) };
        let report = build.run(&engine, 7).unwrap();
        assert!(report.ok, "{kernel} for {target}: {:?}", report.checks);
        let launched = recorder.launched.lock().unwrap().take();
        launched.expect("a launch")
    }

    fn run(&self, object: &CodeObject, options: &Options) -> Result<(Stats, Memory), GcnError> {
        let mut memory = Memory::default();
        for a in &self.allocations {
            assert_eq!(memory.alloc(a.bytes.len()), a.address, "allocations are where they were");
            match a.bytes.iter().copied().collect::<Option<Vec<u8>>>() {
                Some(all) => memory.write(a.address, &all)?,
                None => {
                    for (at, byte) in (a.address..).zip(&a.bytes) {
                        byte.map_or(Ok(()), |byte| memory.write(at, &[byte]))?;
                    }
                }
            }
        }
        let stats = gcn::launch(object, &self.symbol, self.grid, self.block, &self.arguments, &mut memory, options)?;
        Ok((stats, memory))
    }

    /// All bytes of memory.
    fn bytes(&self, memory: &Memory) -> Vec<u8> {
        self.allocations.iter().flat_map(|a| memory.read(a.address, a.bytes.len()).unwrap().to_vec()).collect()
    }
}

/// What became of the mutants of one object.
#[derive(Default)]
struct Tally {
    needed: u32,
    not_needed: u32,
    nops: u32,
    nops_found: u32,
}

/// Runs a mutant in a few orders of the waves; it must fail in all of them, or in none and then change no byte.
fn errors(launched: &Launched, mutant: &CodeObject, intact: &[u8], what: &str) -> Vec<GcnError> {
    let run = |seed| launched.run(mutant, &Options { seed, max_steps: 1 << 26, ..Options::default() });
    let all: Vec<_> = [0, 5].map(run).into_iter().collect();
    for (_, memory) in all.iter().flatten() {
        assert!(launched.bytes(memory) == intact, "{what}: another result, and nothing noticed");
    }
    let errors: Vec<_> = all.into_iter().filter_map(Result::err).collect();
    for e in &errors {
        let site = e.site.as_ref().unwrap_or_else(|| panic!("{what}: no place: {e}"));
        assert!(site.line.is_some(), "{what}: no line: {e}");
    }
    errors
}

fn mutants(kernel: &str, settings: &[(&str, u32)], target: Target) -> Tally {
    let launched = Launched::of(kernel, settings, target);
    let object = CodeObject::load(&launched.code, target).unwrap();
    let (stats, memory) = launched.run(&object, &Options { record: true, ..Options::default() }).unwrap();
    let intact = launched.bytes(&memory);
    let mut tally = Tally::default();
    for candidate in candidates(&object, &launched.symbol).unwrap() {
        let what = format!("{kernel} for {target} without `{}` at {:#x}", candidate.text, candidate.pc);
        // A split barrier is passed where its first half is.
        let verdict = verdict(&stats.traces, candidate.signal.unwrap_or(candidate.pc));
        let errors = errors(&launched, &candidate.removed(&object).unwrap(), &intact, &what);
        assert_eq!(
            errors.len(),
            if verdict.is_needed() { 2 } else { 0 },
            "{what}: the trace says {verdict:?}, the runs say {errors:?}"
        );
        tally.needed += u32::from(verdict.is_needed());
        tally.not_needed += u32::from(!verdict.is_needed());
    }
    for weak in weakened(&object, &launched.symbol).unwrap() {
        let what = format!("{kernel} for {target}, `{}` at {:#x} weakened to {:x?}", weak.text, weak.pc, weak.counts);
        let errors = errors(&launched, &weak.applied(&object).unwrap(), &intact, &what);
        let Some(counts) = weak.counts else {
            // LLVM puts in no more states than the worst way to get there needs.
            tally.nops += 1;
            tally.nops_found += u32::from(errors.len() == 2);
            let as_meant = errors.iter().all(|e| matches!(e.kind, ErrorKind::WaitStates { .. }));
            assert!(as_meant, "{what}: noticed, but as something else: {errors:?}");
            continue;
        };
        let verdict = verdict_instead(&stats.traces, weak.pc, counts);
        assert_eq!(
            errors.len(),
            if verdict.is_needed() { 2 } else { 0 },
            "{what}: the trace says {verdict:?}, the runs say {errors:?}"
        );
        tally.needed += u32::from(verdict.is_needed());
        tally.not_needed += u32::from(!verdict.is_needed());
    }
    tally
}

#[test]
fn no_needed_wait_barrier_or_nop_can_be_weakened_unseen() {
    for target in gcn::targets() {
        for (kernel, settings) in BUILDS {
            let t = mutants(kernel, settings, target);
            println!(
                "{kernel} for {target}: {} needed, all found; {} not needed, none found; {} of {} `s_nop`s",
                t.needed, t.not_needed, t.nops_found, t.nops
            );
            assert!(t.needed >= 3, "{kernel} for {target}");
            if target.chip().wave == 64 {
                assert!(t.nops_found * 10 >= t.nops * 9, "{kernel} for {target}: {} of {}", t.nops_found, t.nops);
            }
        }
    }
}
