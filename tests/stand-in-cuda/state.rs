//! What the stand-in remembers. Work waits in its stream until somebody waits for it, so whoever forgets to wait sees that
//! nothing was done, or what was freed meanwhile.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

pub const SUCCESS: i32 = 0;
pub const INVALID_VALUE: i32 = 1;
pub const OUT_OF_MEMORY: i32 = 2;
pub const INVALID_IMAGE: i32 = 200;
pub const UNSUPPORTED_PTX_VERSION: i32 = 222;
pub const NOT_READY: i32 = 600;
pub const ILLEGAL_ADDRESS: i32 = 700;
pub const STREAM_CAPTURE_UNSUPPORTED: i32 = 900;

/// Largest allocation.
const ROOM: usize = 1 << 40;

/// One step of a stream's work.
#[derive(Clone)]
pub enum Step {
    /// Bytes from address to address, on the host or on the device.
    Copy { to: u64, from: u64, bytes: usize },
    /// `y[i] += factor · x[i]`, for all of `y`, by the code of a module.
    Add { module: usize, x: u64, y: u64, factor: f32 },
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
    /// Device memory, in words of 8 bytes, by address, with its size in bytes.
    memory: BTreeMap<u64, (Box<[u64]>, usize)>,
    pub captured: BTreeMap<usize, Vec<Step>>,
    pub graphs: BTreeMap<usize, Arc<Vec<Step>>>,
    /// Modules that are loaded.
    pub modules: BTreeMap<usize, ()>,
    /// Module and name of each function.
    pub functions: BTreeMap<usize, (usize, String)>,
    /// What linkers made.
    pub linkers: BTreeMap<usize, Vec<u8>>,
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

    pub fn alloc(&mut self, bytes: usize) -> Result<u64, i32> {
        if bytes > ROOM {
            return Err(OUT_OF_MEMORY);
        }
        // 256 bytes more, for the alignment. Nobody may rely on zeros.
        let words = vec![u64::MAX; bytes.div_ceil(8) + 32].into_boxed_slice();
        let address = (words.as_ptr().addr() as u64).next_multiple_of(256);
        self.memory.insert(address, (words, bytes));
        Ok(address)
    }

    /// Frees memory; it must have been allocated.
    pub fn free(&mut self, address: u64) -> i32 {
        self.memory.remove(&address).map_or(INVALID_VALUE, |_| SUCCESS)
    }

    /// Bytes of the allocation at `address`.
    fn extent(&self, address: u64) -> Option<usize> {
        self.memory.get(&address).map(|(_, bytes)| *bytes)
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
                Step::Add { module, x, y, factor } => match (self.extent(*x), self.extent(*y)) {
                    (Some(n), Some(m)) if n == m && self.modules.contains_key(module) => {
                        super::add(*x, *y, m / 4, *factor);
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
