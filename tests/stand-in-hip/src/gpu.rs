//! One GPU: its memory, its code, and what its streams were given.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use hip_sys::hiprt::hipError_t::{self, *};
use hip_sys::hiprt::hipEventDisableTiming;
use lathe_dsl::Target;
use lathe_runtime::gcn::{self, CodeObject, ErrorKind, Memory, Shared};

use crate::Done;
use crate::machine::Stream;

/// A stream, event, module or function, or 0: the default stream.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Handle(pub u64);

/// The part of a handle that is its number on its GPU.
const NUMBER_BITS: u32 = 40;

impl Handle {
    pub const DEFAULT_STREAM: Self = Self(0);

    /// The GPU that made it; no GPU's number for what none made.
    pub fn gpu(self) -> usize {
        (self.0 >> NUMBER_BITS).wrapping_sub(1) as usize
    }
}

/// One end of a copy.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    Host(u64),
    Device(u64),
}

/// A module.
pub struct Module {
    pub object: CodeObject,
    /// Whether a kernel of it waits for others: it lets them run in a loop.
    waits: bool,
}

/// What a stream can be given.
pub enum Step {
    Launch {
        module: Arc<Module>,
        symbol: String,
        grid: [u32; 3],
        block: [u32; 3],
        kernarg: Vec<u8>,
    },
    Copy {
        to: Place,
        from: Place,
        bytes: usize,
    },
    Fill {
        to: u64,
        value: u8,
        bytes: usize,
    },
    Record {
        event: Handle,
    },
    /// Until another stream has done everything up to a ticket.
    Wait {
        stream: Stream,
        ticket: u64,
    },
}

struct Event {
    timed: bool,
    /// Stream and ticket of the last record.
    recorded: Option<(Handle, u64)>,
    time: Option<Instant>,
}

pub struct Gpu {
    number: u64,
    /// `None` for a chip that the executor does not know.
    target: Option<Target>,
    pub memory: Memory,
    /// Its own memory that other GPUs can reach, with its size.
    shared: BTreeMap<u64, (Arc<Shared>, usize)>,
    /// GPUs whose memory it reaches.
    pub peers: BTreeSet<usize>,
    /// What it has of other processes.
    imported: BTreeMap<u64, usize>,
    /// What each stream has not done yet, with tickets that count up through all streams.
    streams: BTreeMap<Handle, VecDeque<(u64, Step)>>,
    events: HashMap<Handle, Event>,
    modules: HashMap<Handle, Arc<Module>>,
    functions: HashMap<Handle, (Handle, String)>,
    /// Once a kernel has failed, what every call returns.
    fault: Option<hipError_t>,
    handles: u64,
    tickets: u64,
}

impl Gpu {
    pub fn new(number: usize, architecture: &str) -> Self {
        let chip = architecture.split(':').next().unwrap_or_default();
        Self {
            number: number as u64,
            target: gcn::targets().find(|t| t.chip().name == chip),
            memory: Memory::default(),
            shared: BTreeMap::new(),
            peers: BTreeSet::new(),
            imported: BTreeMap::new(),
            streams: BTreeMap::from([(Handle::DEFAULT_STREAM, VecDeque::new())]),
            events: HashMap::new(),
            modules: HashMap::new(),
            functions: HashMap::new(),
            fault: None,
            handles: 0,
            tickets: 0,
        }
    }

    fn handle(&mut self) -> Handle {
        self.handles += 1;
        Handle((self.number + 1) << NUMBER_BITS | self.handles)
    }

    /// Nothing is wrong with it.
    pub fn sound(&self) -> Done {
        self.fault.map_or(Ok(()), Err)
    }

    pub fn alloc(&mut self, bytes: usize) -> Done<u64> {
        self.sound()?;
        self.memory.try_alloc(bytes).map_err(|_| hipErrorOutOfMemory)
    }

    /// Memory that other GPUs can reach.
    pub fn alloc_shared(&mut self, bytes: usize) -> Done<Arc<Shared>> {
        self.sound()?;
        let shared = Shared::undefined(bytes).map_err(|_| hipErrorOutOfMemory)?;
        self.memory.open(&shared);
        self.shared.insert(shared.address(), (shared.clone(), bytes));
        Ok(shared)
    }

    pub fn shared(&self) -> Vec<Arc<Shared>> {
        self.shared.values().map(|(shared, _)| shared.clone()).collect()
    }

    /// Bytes of memory that others can reach.
    pub fn shared_bytes(&self, address: u64) -> Done<usize> {
        self.shared.get(&address).map(|(_, bytes)| *bytes).ok_or(hipErrorInvalidValue)
    }

    /// Another GPU's memory.
    pub fn reach(&mut self, shared: &Arc<Shared>) {
        self.memory.open(shared);
    }

    /// Memory that was another's, or its own.
    pub fn lose(&mut self, address: u64) -> Done {
        self.memory.close(address).map_err(|_| hipErrorInvalidValue)
    }

    /// Takes it from what others can reach; whether it was there.
    pub fn unshare(&mut self, address: u64) -> bool {
        self.shared.remove(&address).is_some()
    }

    /// Memory that stands for another process's: words that count from 0.
    pub fn import(&mut self, bytes: usize) -> Done<u64> {
        self.sound()?;
        let shared = Shared::zeroed(bytes).map_err(|_| hipErrorOutOfMemory)?;
        self.memory.open(&shared);
        let words: Vec<u8> = (0..bytes.div_ceil(4) as u32).flat_map(u32::to_le_bytes).collect();
        self.memory.write(shared.address(), &words[..bytes]).map_err(|_| hipErrorUnknown)?;
        self.imported.insert(shared.address(), bytes);
        Ok(shared.address())
    }

    pub fn close(&mut self, address: u64) -> Done {
        if self.imported.remove(&address).is_some() { self.lose(address) } else { Err(hipErrorInvalidValue) }
    }

    /// Start and bytes of the memory of others around an address.
    pub fn range(&self, address: u64) -> Done<(u64, usize)> {
        let before = self.imported.range(..=address).next_back();
        let around = before.filter(|(start, bytes)| address - **start < **bytes as u64);
        around.map(|(start, bytes)| (*start, *bytes)).ok_or(hipErrorNotFound)
    }

    /// At once, whatever streams still want to do with it.
    pub fn free(&mut self, address: u64) -> Done {
        self.memory.free(address).map_err(|_| hipErrorInvalidValue)
    }

    /// Whether one allocation covers a place of this GPU.
    pub fn check(&self, place: &Place, bytes: usize) -> Done {
        match place {
            Place::Host(0) => Err(hipErrorInvalidValue),
            Place::Host(_) => Ok(()),
            Place::Device(address) => self.memory.read(*address, bytes).map(|_| ()).map_err(|_| hipErrorInvalidValue),
        }
    }

    pub fn stream(&mut self) -> Done<Handle> {
        self.sound()?;
        let handle = self.handle();
        self.streams.insert(handle, VecDeque::new());
        Ok(handle)
    }

    /// Forgets a stream.
    pub fn remove_stream(&mut self, stream: Handle) {
        self.streams.remove(&stream);
    }

    pub fn event(&mut self, flags: u32) -> Done<Handle> {
        self.sound()?;
        let handle = self.handle();
        self.events.insert(handle, Event { timed: flags & hipEventDisableTiming == 0, recorded: None, time: None });
        Ok(handle)
    }

    pub fn destroy_event(&mut self, event: Handle) -> Done {
        self.events.remove(&event).map(|_| ()).ok_or(hipErrorInvalidHandle)
    }

    /// Stream and ticket of an event's last record; an error if there is none.
    pub fn recorded(&self, event: Handle) -> Done<(Handle, u64)> {
        self.events.get(&event).and_then(|e| e.recorded).ok_or(hipErrorInvalidHandle)
    }

    pub fn record(&mut self, event: Handle, stream: Handle) -> Done {
        let ticket = self.tickets + 1;
        let known = self.events.get_mut(&event).ok_or(hipErrorInvalidHandle)?;
        (known.recorded, known.time) = (Some((stream, ticket)), None);
        self.give(stream, Step::Record { event })
    }

    /// When a timed event was passed.
    pub fn time(&self, event: Handle) -> Done<Instant> {
        let event = self.events.get(&event).filter(|e| e.timed && e.recorded.is_some());
        event.ok_or(hipErrorInvalidHandle)?.time.ok_or(hipErrorNotReady)
    }

    pub fn load(&mut self, image: &[u8]) -> Done<Handle> {
        self.sound()?;
        let target = self.target.ok_or(hipErrorNoBinaryForGpu)?;
        let object = CodeObject::load(image, target).map_err(|e| match e.kind {
            ErrorKind::WrongTarget { .. } => hipErrorNoBinaryForGpu,
            _ => hipErrorInvalidImage,
        })?;
        let handle = self.handle();
        let waits = object.mnemonics().iter().any(|name| name.starts_with("s_sleep"));
        self.modules.insert(handle, Arc::new(Module { object, waits }));
        Ok(handle)
    }

    /// Launches of it that are still to be done will fail, as they may on a GPU.
    pub fn unload(&mut self, module: Handle) -> Done {
        let gone = self.modules.remove(&module).ok_or(hipErrorInvalidHandle)?;
        self.functions.retain(|_, (of, _)| *of != module);
        let runs = |step: &Step| matches!(step, Step::Launch { module, .. } if Arc::ptr_eq(module, &gone));
        if self.streams.values().flatten().any(|(_, step)| runs(step)) {
            eprintln!("stand-in for HIP: a module was unloaded with launches of it under way");
            self.fault = Some(hipErrorLaunchFailure);
        }
        Ok(())
    }

    pub fn function(&mut self, module: Handle, name: &str) -> Done<Handle> {
        let known = self.modules.get(&module).ok_or(hipErrorInvalidHandle)?;
        known.object.kernel(name).map_err(|_| hipErrorNotFound)?;
        let handle = self.handle();
        self.functions.insert(handle, (module, name.to_owned()));
        Ok(handle)
    }

    /// A function's module and name there.
    pub fn code(&self, function: Handle) -> Done<(Arc<Module>, String)> {
        let (module, symbol) = self.functions.get(&function).ok_or(hipErrorInvalidHandle)?;
        Ok((self.modules[module].clone(), symbol.clone()))
    }

    /// Adds work to a stream.
    pub fn give(&mut self, stream: Handle, step: Step) -> Done {
        self.sound()?;
        self.tickets += 1;
        let work = self.streams.get_mut(&stream).ok_or(hipErrorInvalidHandle)?;
        work.push_back((self.tickets, step));
        Ok(())
    }

    /// Its streams.
    pub fn streams(&self) -> impl Iterator<Item = Handle> {
        self.streams.keys().copied()
    }

    pub fn has(&self, stream: Handle) -> bool {
        self.streams.contains_key(&stream)
    }

    pub fn is_done(&self, stream: Handle, ticket: u64) -> bool {
        self.streams.get(&stream).and_then(VecDeque::front).is_none_or(|(next, _)| *next > ticket)
    }

    /// Steps of a stream before the first kernel that waits for others, if there is one.
    pub fn waits(&self, stream: Handle) -> Option<usize> {
        let waits = |(_, step): &(u64, Step)| matches!(step, Step::Launch { module, .. } if module.waits);
        self.streams.get(&stream)?.iter().position(waits)
    }

    /// Takes the next step of a stream.
    pub fn next(&mut self, stream: Handle) -> Option<Step> {
        self.streams.get_mut(&stream)?.pop_front().map(|(_, step)| step)
    }

    /// An event is passed.
    pub fn pass(&mut self, event: Handle, time: Instant) {
        if let Some(event) = self.events.get_mut(&event) {
            event.time = Some(time);
        }
    }

    /// From now on every call returns this.
    pub fn fail(&mut self, error: hipError_t) {
        self.fault = Some(error);
    }
}
