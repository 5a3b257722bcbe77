//! What the stand-in remembers. Work waits in its stream until somebody waits for it, so whoever forgets to wait sees that
//! nothing was done, or what was freed meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use super::shared::{BLOCK, Mapping};

pub const SUCCESS: i32 = 0;
pub const INVALID_VALUE: i32 = 1;
pub const OUT_OF_MEMORY: i32 = 2;
pub const INVALID_DEVICE: i32 = 101;
pub const INVALID_IMAGE: i32 = 200;
pub const INVALID_CONTEXT: i32 = 201;
pub const PEER_ACCESS_UNSUPPORTED: i32 = 217;
pub const UNSUPPORTED_PTX_VERSION: i32 = 222;
pub const NOT_READY: i32 = 600;
pub const ILLEGAL_ADDRESS: i32 = 700;
pub const PEER_ACCESS_ALREADY_ENABLED: i32 = 704;
pub const STREAM_CAPTURE_UNSUPPORTED: i32 = 900;

/// Largest allocation.
const ROOM: usize = 1 << 40;

/// Devices that there are. The last one has no way to the others.
pub const DEVICES: i32 = 3;

/// One step of a stream's work.
#[derive(Clone)]
pub enum Step {
    /// Bytes from address to address, on the host or on the device.
    Copy { to: u64, from: u64, bytes: usize },
    /// Bytes that the host gave, on the device.
    Write { to: u64, bytes: Arc<[u8]> },
    /// `y[i] += factor · x[i]`, for all of `y`, by the code of a module.
    Add { module: usize, x: u64, y: u64, factor: f32 },
    /// Bytes set to a value.
    Fill { to: u64, value: u8, bytes: usize },
    /// `to[i] = from[i] + add`, for words where entries of a table of addresses point, by the code of a module, on a device.
    Relay { module: usize, device: i32, table: u64, from: u32, to: u32, add: u32, words: u32 },
    /// All texels of a texture to a surface, by the code of a module.
    Shade { module: usize, texture: u64, surface: u64 },
    /// A store to an address that nobody has.
    Stray,
    /// An event is passed.
    Record(usize),
    /// The stream waits for an event.
    Wait(usize),
    /// The steps of a graph.
    Graph(Arc<Vec<Step>>),
}

#[derive(Default)]
pub struct Stream {
    /// Whether it is ordered with the default stream.
    pub blocking: bool,
    pub waiting: Vec<Step>,
    /// What a capture under way has noted.
    pub capture: Option<Vec<Step>>,
}

/// An event; nothing is known of one that was never recorded.
#[derive(Clone, Copy, Default)]
pub struct Event {
    pub stream: usize,
    pub pending: bool,
    pub time: f32,
}

/// An allocation.
pub struct Block {
    pub device: i32,
    pub bytes: usize,
    pub pages: Pages,
}

/// Where its bytes are.
pub enum Pages {
    /// In words, whose first the alignment may leave out.
    Heap {
        _words: Box<[u64]>,
    },
    Mapped(Mapping),
    /// Memory of another process.
    Imported {
        _mapping: Mapping,
        opened: u32,
    },
}

/// The default stream's number: the null handle.
pub const DEFAULT: usize = 0;

#[derive(Default)]
pub struct State {
    last: usize,
    /// Said by every call once a kernel faulted.
    pub fault: i32,
    clock: f32,
    pub streams: BTreeMap<usize, Stream>,
    pub events: BTreeMap<usize, Event>,
    /// Device memory by address.
    memory: BTreeMap<u64, Block>,
    /// Which device reaches which other one's memory.
    pub peers: BTreeSet<(i32, i32)>,
    pub captured: BTreeMap<usize, Vec<Step>>,
    pub graphs: BTreeMap<usize, Arc<Vec<Step>>>,
    /// Modules that are loaded.
    pub modules: BTreeMap<usize, ()>,
    /// Module and name of each function.
    pub functions: BTreeMap<usize, (usize, String)>,
    /// What linkers made.
    pub linkers: BTreeMap<usize, Vec<u8>>,
    pub arrays: BTreeMap<usize, Array>,
    /// Texture objects, numbered anew from the lowest that is free, as surfaces are: as the driver's, both may have one number.
    pub textures: BTreeMap<u64, Object>,
    pub surfaces: BTreeMap<u64, Object>,
}

/// An array.
pub struct Array {
    /// Bytes of a row.
    pub row: usize,
    pub texels: Box<[u8]>,
}

/// What kernels get of an array.
pub struct Object {
    pub array: usize,
}

impl Object {
    /// A new one; its number.
    pub fn hang(all: &mut BTreeMap<u64, Self>, array: usize) -> u64 {
        let number = (1..).find(|n| !all.contains_key(n)).unwrap_or(u64::MAX);
        all.insert(number, Self { array });
        number
    }
}

/// The state, locked; made at the first use.
pub fn state() -> MutexGuard<'static, State> {
    static STATE: LazyLock<Mutex<State>> = LazyLock::new(|| {
        Mutex::new(State { streams: BTreeMap::from([(DEFAULT, Stream::default())]), ..State::default() })
    });
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    /// A number that no handle has.
    pub fn handle(&mut self) -> usize {
        self.last += 0x10;
        self.last
    }

    pub fn alloc(&mut self, device: i32, bytes: usize) -> Result<u64, i32> {
        if bytes > ROOM {
            return Err(OUT_OF_MEMORY);
        }
        // As the driver: what is of blocks has them to itself.
        if bytes > 0 && bytes.is_multiple_of(BLOCK) {
            let mapping = Mapping::new(bytes).ok_or(OUT_OF_MEMORY)?;
            let address = mapping.address();
            // Nobody may rely on zeros.
            super::fill(address, 0xff, bytes);
            self.memory.insert(address, Block { device, bytes, pages: Pages::Mapped(mapping) });
            return Ok(address);
        }
        // 256 bytes more, for the alignment. As above.
        let words = vec![u64::MAX; bytes.div_ceil(8) + 32].into_boxed_slice();
        let address = (words.as_ptr().addr() as u64).next_multiple_of(256);
        self.memory.insert(address, Block { device, bytes, pages: Pages::Heap { _words: words } });
        Ok(address)
    }

    /// Frees memory; it must have been allocated.
    pub fn free(&mut self, address: u64) -> i32 {
        match self.memory.get(&address) {
            None | Some(Block { pages: Pages::Imported { .. }, .. }) => INVALID_VALUE,
            Some(_) => self.memory.remove(&address).map_or(INVALID_VALUE, |_| SUCCESS),
        }
    }

    /// What other processes can map.
    pub fn mapping(&self, address: u64) -> Option<&Mapping> {
        match &self.memory.get(&address)?.pages {
            Pages::Mapped(mapping) => Some(mapping),
            _ => None,
        }
    }

    /// Another process's memory, opened once more.
    pub fn import(&mut self, device: i32, mapping: Mapping) -> u64 {
        let (origin, bytes) = (mapping.origin, mapping.bytes);
        for (address, block) in &mut self.memory {
            if let Pages::Imported { _mapping, opened } = &mut block.pages
                && _mapping.origin == origin
            {
                *opened += 1;
                return *address;
            }
        }
        let address = mapping.address();
        self.memory.insert(address, Block { device, bytes, pages: Pages::Imported { _mapping: mapping, opened: 1 } });
        address
    }

    pub fn close(&mut self, address: u64) -> i32 {
        match self.memory.get_mut(&address).map(|block| &mut block.pages) {
            // It would be gone under what is still to run.
            _ if self.streams.values().any(|s| !s.waiting.is_empty()) => std::process::abort(),
            Some(Pages::Imported { opened: 1, .. }) => self.memory.remove(&address).map_or(INVALID_VALUE, |_| SUCCESS),
            Some(Pages::Imported { opened, .. }) => {
                *opened -= 1;
                SUCCESS
            }
            _ => INVALID_VALUE,
        }
    }

    /// Bytes of the allocation at `address`.
    fn extent(&self, address: u64) -> Option<usize> {
        self.memory.get(&address).map(|block| block.bytes)
    }

    /// Start and bytes of the allocation around an address.
    pub fn range(&self, address: u64) -> Option<(u64, usize)> {
        let (start, block) = self.memory.range(..=address).next_back()?;
        (address - start < block.bytes as u64).then_some((*start, block.bytes))
    }

    /// Whether a device reaches so many bytes.
    fn reaches(&self, device: i32, address: u64, bytes: usize) -> bool {
        let Some((start, block)) = self.memory.range(..=address).next_back() else { return false };
        let fits = (address - start) as usize + bytes <= block.bytes;
        fits && (block.device == device || self.peers.contains(&(device, block.device)))
    }

    /// What a relay copies between; `None` where the device does not reach it.
    fn relayed(&self, device: i32, table: u64, from: u32, to: u32, words: u32) -> Option<(u64, u64)> {
        let entry = |i: u32| {
            let at = table + 8 * u64::from(i);
            let address = self.reaches(device, at, 8).then(|| super::word(at))?;
            self.reaches(device, address, 4 * words as usize).then_some(address)
        };
        Some((entry(from)?, entry(to)?))
    }

    /// Texels of a texture and of a surface that is as large, and their bytes.
    fn hung(&self, texture: u64, surface: u64) -> Option<(u64, u64, usize)> {
        let array = |object: Option<&Object>| self.arrays.get(&object?.array);
        let (from, to) = (array(self.textures.get(&texture))?, array(self.surfaces.get(&surface))?);
        let start = |array: &Array| array.texels.as_ptr().addr() as u64;
        (from.texels.len() == to.texels.len()).then(|| (start(from), start(to), from.texels.len()))
    }

    /// Gives a stream a step, or notes it in the stream's capture.
    pub fn give(&mut self, stream: usize, step: Step) -> i32 {
        if self.fault != SUCCESS {
            return self.fault;
        }
        if stream == DEFAULT {
            self.drain_blocking();
        }
        let Some(stream) = self.streams.get_mut(&stream) else { return INVALID_VALUE };
        stream.capture.as_mut().unwrap_or(&mut stream.waiting).push(step);
        SUCCESS
    }

    /// Does what the streams that are ordered with the default one were given, and that one.
    pub fn drain_blocking(&mut self) -> i32 {
        let blocking: Vec<usize> = self.streams.iter().filter(|(_, s)| s.blocking).map(|(id, _)| *id).collect();
        blocking.into_iter().chain([DEFAULT]).for_each(|stream| {
            self.drain(stream);
        });
        self.fault
    }

    /// Does what a stream was given.
    pub fn drain(&mut self, stream: usize) -> i32 {
        let steps = self.streams.get_mut(&stream).map(|s| std::mem::take(&mut s.waiting)).unwrap_or_default();
        self.run(&steps);
        self.fault
    }

    fn run(&mut self, steps: &[Step]) {
        for step in steps {
            let code = match step {
                Step::Copy { to, from, bytes } => {
                    super::copy(*to, *from, *bytes);
                    SUCCESS
                }
                Step::Write { to, bytes } => {
                    super::copy(*to, bytes.as_ptr().addr() as u64, bytes.len());
                    SUCCESS
                }
                Step::Add { module, x, y, factor } => match (self.extent(*x), self.extent(*y)) {
                    (Some(n), Some(m)) if n == m && self.modules.contains_key(module) => {
                        super::add(*x, *y, m / 4, *factor);
                        SUCCESS
                    }
                    _ => ILLEGAL_ADDRESS,
                },
                Step::Fill { to, value, bytes } => {
                    super::fill(*to, *value, *bytes);
                    SUCCESS
                }
                Step::Relay { module, device, table, from, to, add, words } => {
                    match self.relayed(*device, *table, *from, *to, *words) {
                        Some((from, to)) if self.modules.contains_key(module) => {
                            super::relay(from, to, *words as usize, *add);
                            SUCCESS
                        }
                        _ => ILLEGAL_ADDRESS,
                    }
                }
                Step::Shade { module, texture, surface } => match self.hung(*texture, *surface) {
                    Some((from, to, bytes)) if self.modules.contains_key(module) => {
                        super::copy(to, from, bytes);
                        SUCCESS
                    }
                    _ => ILLEGAL_ADDRESS,
                },
                Step::Stray => ILLEGAL_ADDRESS,
                Step::Record(event) => {
                    self.clock += 0.25;
                    let time = self.clock;
                    if let Some(event) = self.events.get_mut(event) {
                        event.pending = false;
                        event.time = time;
                    }
                    SUCCESS
                }
                Step::Wait(event) => {
                    if let Some(Event { stream, pending: true, .. }) = self.events.get(event).copied() {
                        self.drain(stream);
                    }
                    SUCCESS
                }
                Step::Graph(steps) => {
                    self.run(&steps.clone());
                    SUCCESS
                }
            };
            if code != SUCCESS && self.fault == SUCCESS {
                self.fault = code;
            }
        }
    }
}
