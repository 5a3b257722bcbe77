//! Launches that can be repeated, with another object or in another order.

use std::sync::{Arc, Mutex};

use lathe_dsl::Target;
use lathe_kernels::registry::Entry;
use lathe_runtime::device::{Device, DeviceId, LaunchReport};
use lathe_runtime::gcn::{self, CodeObject, GcnError, Memory, Options, Rank, Stats};
use lathe_runtime::jit::{Code, Compiled, Jit, Llvm};
use lathe_runtime::{ArgBlock, Engine, Error};

/// A launch: the object and its arguments.
#[derive(Clone)]
pub struct Launch {
    code: Vec<u8>,
    pub symbol: String,
    grid: [u32; 3],
    block: [u32; 3],
    arguments: Vec<u8>,
}

/// Launches to be repeated, and the memory before them.
#[derive(Clone)]
pub struct Launched {
    pub target: Target,
    pub launches: Vec<Launch>,
    allocations: Vec<Allocated>,
}

/// An allocation as it was before the launch, in the order in which they were made, which is that of their addresses.
#[derive(Clone)]
struct Allocated {
    address: u64,
    bytes: Vec<u8>,
    /// Stretches that are defined.
    defined: Vec<std::ops::Range<usize>>,
}

impl Allocated {
    fn of(memory: &Memory, address: u64, n: usize) -> Self {
        let bytes = memory.read(address, n).unwrap();
        let mut defined: Vec<std::ops::Range<usize>> = vec![];
        if memory.undefined_bytes(address, n).unwrap() == 0 {
            defined.push(0..n);
        } else {
            for i in (0..n).filter(|i| memory.undefined_bytes(address + *i as u64, 1).unwrap() == 0) {
                match defined.last_mut() {
                    Some(last) if last.end == i => last.end += 1,
                    _ => defined.push(i..i + 1),
                }
            }
        }
        Self { address, bytes, defined }
    }
}

/// A device that remembers what it is given, and runs it if it is to.
pub struct Recorder {
    id: DeviceId,
    target: Target,
    runs: bool,
    memory: Mutex<(Memory, Vec<(u64, usize)>)>,
    launched: Mutex<Vec<(Launch, Vec<Allocated>)>>,
}

impl Recorder {
    pub fn new(target: Target, runs: bool) -> Arc<Self> {
        let (memory, launched) = (Mutex::default(), Mutex::default());
        Arc::new(Self { id: DeviceId::unique(), target, runs, memory, launched })
    }

    /// The launches so far, and the memory before the last one.
    pub fn take(&self) -> Launched {
        let (launches, mut before): (Vec<_>, Vec<_>) = self.launched.lock().unwrap().drain(..).unzip();
        Launched { target: self.target, launches, allocations: before.pop().expect("a launch") }
    }
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
        let lathe_dsl::ir::Launch { grid, block, .. } = compiled.kernel().launch;
        let (code, symbol) = (artifact.code.clone(), artifact.symbol.clone());
        let launch = Launch { code, symbol, grid, block, arguments: args.bytes().to_vec() };
        let mut memory = self.memory.lock().unwrap();
        let before: Vec<_> = memory.1.iter().map(|(address, n)| Allocated::of(&memory.0, *address, *n)).collect();
        let mut launched = self.launched.lock().unwrap();
        launched.push((launch.clone(), before.clone()));
        if self.runs {
            let once = Launched { target: self.target, launches: vec![launch], allocations: before };
            let (_, after) =
                once.run(&once.objects().iter().collect::<Vec<_>>(), &Options::default()).map_err(Error::fault)?;
            memory.0 = after;
        }
        Ok(LaunchReport::default())
    }
}

impl Launched {
    /// The launch that a kernel's own check makes.
    pub fn of(kernel: &str, settings: &[(&str, u32)], target: Target) -> Self {
        let settings: Vec<_> = settings.iter().map(|(name, value)| ((*name).to_owned(), value.to_string())).collect();
        let build = Entry::find(kernel).unwrap().build(&settings).unwrap();
        let recorder = Recorder::new(target, true);
        let engine = Engine { device: Arc::<Recorder>::clone(&recorder), jit: Jit::new(Llvm::default()) };
        let report = build.run(&engine, 7).unwrap();
        assert!(report.ok, "{kernel} for {target}: {:?}", report.checks);
        let launched = recorder.take();
        assert_eq!(launched.launches.len(), 1, "{kernel} is one launch");
        launched
    }

    /// The launches' objects, loaded.
    pub fn objects(&self) -> Vec<CodeObject> {
        self.launches.iter().map(|launch| CodeObject::load(&launch.code, self.target).unwrap()).collect()
    }

    fn memory(&self) -> Memory {
        let mut memory = Memory::default();
        for a in &self.allocations {
            assert_eq!(memory.alloc(a.bytes.len()), a.address, "allocations are where they were");
            for range in &a.defined {
                memory.write(a.address + range.start as u64, &a.bytes[range.clone()]).unwrap();
            }
        }
        memory
    }

    /// Runs the launches one after the other, each with one of `objects`.
    pub fn run(&self, objects: &[&CodeObject], options: &Options) -> Result<(Vec<Stats>, Memory), GcnError> {
        let mut memory = self.memory();
        let mut stats = vec![];
        for (launch, object) in self.launches.iter().zip(objects) {
            let Launch { symbol, grid, block, arguments, .. } = launch;
            stats.push(gcn::launch(object, symbol, *grid, *block, arguments, &mut memory, options)?);
        }
        Ok((stats, memory))
    }

    /// Runs the launches together: of each rank the given ones, by number, one after the other. The memory is one for all, and so
    /// are addresses.
    pub fn run_together(
        &self,
        ranks: &[&[usize]],
        objects: &[&CodeObject],
        options: &Options,
    ) -> Result<(Vec<Vec<Stats>>, Memory), GcnError> {
        let mut memory = self.memory();
        let launch = |i: &usize| {
            let Launch { symbol, grid, block, arguments, .. } = &self.launches[*i];
            gcn::Launch { object: objects[*i], kernel: symbol, grid: *grid, block: *block, kernarg: arguments }
        };
        let of = |numbers: &&[usize]| Rank { memory: 0, launches: numbers.iter().map(launch).collect() };
        let ranks: Vec<_> = ranks.iter().map(of).collect();
        let stats = gcn::launch_group(&ranks, &mut [&mut memory], options).map_err(|(_, error)| error)?;
        Ok((stats, memory))
    }

    /// All bytes of memory.
    pub fn bytes(&self, memory: &Memory) -> Vec<u8> {
        self.allocations.iter().flat_map(|a| memory.read(a.address, a.bytes.len()).unwrap()).collect()
    }
}
