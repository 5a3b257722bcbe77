//! One compile per build key: trace, look on disk, compile, remember.

mod background;
mod compiler;
mod flight;
pub mod isolated;
mod produce;
#[cfg(all(test, not(loom)))]
mod tests;
mod warm;

use std::any::{Any, TypeId};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use lathe_dsl::artifact::{CacheSource, CompileRecord};
use lathe_dsl::{Kernel, Target, ir};
use rustc_hash::FxHashMap;
use serde::Serialize;

use background::Background;
#[cfg(feature = "jit")]
pub use compiler::Llvm;
pub use compiler::{Code, Compiler, Interpreter};
pub use isolated::Isolated;

use flight::{Flights, Lead, Role};
pub use warm::{Progress, on_all_cores};

use crate::cache::DiskCache;
use crate::device::DeviceId;
use crate::error::Error;

/// A kernel ready to launch.
#[derive(Debug)]
pub struct Compiled {
    kernel: Arc<ir::Kernel>,
    target: Target,
    code: Code,
    record: CompileRecord,
    /// The build key's fields and values; empty if nobody told.
    key: String,
    /// What devices made of it.
    loaded: RwLock<Vec<(DeviceId, Loaded)>>,
}

/// Code in the form that a device runs, such as a driver's module. It lives as long as the [`Compiled`] does.
type Loaded = Arc<dyn Any + Send + Sync>;

impl Compiled {
    /// A kernel with its code, which must have been made from it for this chip.
    pub fn new(kernel: Arc<ir::Kernel>, target: Target, code: Code, record: CompileRecord) -> Self {
        Self { kernel, target, code, record, key: String::new(), loaded: RwLock::default() }
    }

    /// With the build key that it was traced from, as [`describe`](lathe_dsl::kernel::describe) has it.
    #[must_use]
    pub fn with_key(self, key: impl Into<String>) -> Self {
        Self { key: key.into(), ..self }
    }

    /// The build key's fields and values: `ranks=8, tokens=3`. Empty for a kernel that was compiled without one.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Name and key for messages: `` `mla_combine` {ranks=8, tokens=3} ``.
    pub fn label(&self) -> String {
        match self.key.as_str() {
            "" => format!("`{}`", self.kernel.name),
            key => format!("`{}` {{{key}}}", self.kernel.name),
        }
    }

    /// The traced kernel, with the source location of every operation.
    pub fn kernel(&self) -> &Arc<ir::Kernel> {
        &self.kernel
    }

    /// The chip it was traced and compiled for.
    pub fn target(&self) -> Target {
        self.target
    }

    /// What a device runs.
    pub fn code(&self) -> &Code {
        &self.code
    }

    /// What `device` made of it, made now if it is the first time. Threads that come at once may each make one; one is kept.
    pub(crate) fn loaded(
        &self,
        device: DeviceId,
        make: impl FnOnce() -> Result<Loaded, Error>,
    ) -> Result<Loaded, Error> {
        let find = |list: &[(DeviceId, Loaded)]| list.iter().find(|(d, _)| *d == device).map(|(_, l)| l.clone());
        if let Some(found) = find(&self.loaded.read().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(found);
        }
        let made = make()?;
        let mut list = self.loaded.write().unwrap_or_else(PoisonError::into_inner);
        Ok(find(&list).unwrap_or_else(|| {
            list.push((device, made.clone()));
            made
        }))
    }

    /// Timings and resources. For code from a disk cache the times are this process's; how the code was once compiled is in
    /// [`Artifact::record`](lathe_dsl::artifact::Artifact::record).
    pub fn record(&self) -> &CompileRecord {
        &self.record
    }

    /// Where this process got it from: [`CacheSource::Disk`], [`CacheSource::Miss`], or, from another process that
    /// was compiling it, [`CacheSource::Waited`].
    pub fn cache(&self) -> CacheSource {
        self.record.cache
    }
}

type Outcome = Result<Arc<Compiled>, Error>;

/// The keys of one kernel type.
struct Keys<K: Kernel> {
    flights: Arc<Flights<(K, Target), Outcome>>,
    /// What background compiles failed with and no one has heard yet.
    failures: Mutex<FxHashMap<(K, Target), Error>>,
}

/// Compiles each build key once and remembers it.
///
/// ```
/// use lathe_dsl::Target;
/// use lathe_runtime::jit::{Interpreter, Jit};
/// # use lathe_dsl::prelude::*;
/// # build_key! {
/// #     /// A kernel without arguments.
/// #     pub struct Nothing {
/// #         /// Workgroups.
/// #         n: u32 = 1, range(1, 8);
/// #     }
/// # }
/// # kernel_args! {
/// #     /// None.
/// #     pub struct NothingArgs(key: Nothing) {
/// #         /// A number.
/// #         x: Scalar<u32>;
/// #     }
/// # }
/// # impl Kernel for Nothing {
/// #     const NAME: &'static str = "nothing";
/// #     type Args = NothingArgs;
/// #     fn launch(&self) -> Launch { Launch::linear(self.n, 64) }
/// #     fn build<'k>(&self, k: &'k Builder<'k>, _: NothingArgs<Dev<'k>>) { k.barrier(); }
/// # }
/// let jit = Jit::new(Interpreter);
/// let first = jit.get(&Nothing { n: 2 }, Target::GFX950).unwrap();
/// let again = jit.get(&Nothing { n: 2 }, Target::GFX950).unwrap();
/// assert!(std::sync::Arc::ptr_eq(&first, &again));
/// ```
pub struct Jit {
    inner: Arc<Inner>,
    background: Background,
}

/// What background threads share with the [`Jit`].
struct Inner {
    compiler: Box<dyn Compiler>,
    cache: Option<Arc<DiskCache>>,
    types: RwLock<FxHashMap<TypeId, Arc<dyn Any + Send + Sync>>>,
    counts: Counts,
}

#[derive(Default)]
struct Counts {
    memory_hits: AtomicU64,
    disk_hits: AtomicU64,
    misses: AtomicU64,
    compiles: AtomicU64,
    waits: AtomicU64,
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// What a [`Jit`] did so far. Every kernel that was asked for counts once as a hit, a miss or a wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Counters {
    /// Found in memory.
    pub memory_hits: u64,
    /// Loaded from the disk cache.
    pub disk_hits: u64,
    /// Found nowhere.
    pub misses: u64,
    /// Runs of the compiler, failed ones too.
    pub compiles: u64,
    /// Waits for another thread or process that was compiling the key.
    pub waits: u64,
    /// Damaged entries met in the disk cache, by whoever shares the [`DiskCache`].
    pub corrupt: u64,
    /// Entries evicted from the disk cache, by whoever shares the [`DiskCache`].
    pub evicted: u64,
}

impl Jit {
    /// A JIT that compiles with `compiler` and remembers in memory only. The compiler's first-use cost
    /// ([`Compiler::warm_up`]) is paid on a background thread, which starts now.
    pub fn new(compiler: impl Compiler + 'static) -> Self {
        let jit = Self::make(compiler, None);
        if let Some(warm_up) = jit.inner.compiler.warm_up() {
            jit.background.run(warm_up);
        }
        jit
    }

    /// A JIT that also remembers on disk. What the disk cache has needs no compiler, so nothing is warmed up in advance.
    pub fn with_cache(compiler: impl Compiler + 'static, cache: Arc<DiskCache>) -> Self {
        Self::make(compiler, Some(cache))
    }

    fn make(compiler: impl Compiler + 'static, cache: Option<Arc<DiskCache>>) -> Self {
        let compiler = Box::new(compiler);
        let inner = Inner { compiler, cache, types: RwLock::default(), counts: Counts::default() };
        Self { inner: Arc::new(inner), background: Background::default() }
    }

    /// The compiled kernel of `key` for `target`: remembered, or traced now and loaded from disk or compiled. Threads that
    /// ask for a key that is being compiled wait for that compile.
    ///
    /// # Errors
    /// What tracing or the compiler says, or that either panicked; told to everyone who waited, and not remembered.
    pub fn get<K: Kernel>(&self, key: &K, target: Target) -> Result<Arc<Compiled>, Error> {
        self.get_from(key, target).map(|(compiled, _)| compiled)
    }

    /// As [`Jit::get`], and where this call got the kernel from.
    ///
    /// # Errors
    /// As [`Jit::get`].
    pub fn get_from<K: Kernel>(&self, key: &K, target: Target) -> Result<(Arc<Compiled>, CacheSource), Error> {
        let keys = self.inner.keys::<K>();
        let entry = (*key, target);
        if let Some(result) = keys.flights.landed(&entry) {
            count(&self.inner.counts.memory_hits);
            return result.map(|compiled| (compiled, CacheSource::Memory));
        }
        loop {
            match Flights::join(&keys.flights, entry) {
                Role::Landed(result) => {
                    count(&self.inner.counts.memory_hits);
                    return result.map(|compiled| (compiled, CacheSource::Memory));
                }
                Role::Wait(flight) => {
                    if let Some(result) = flight.wait() {
                        count(&self.inner.counts.waits);
                        return result.map(|compiled| (compiled, CacheSource::Waited));
                    }
                    // Whoever was to compile it went away.
                }
                Role::Lead(lead) => {
                    let result = self.inner.lead(key, target, lead);
                    return result.map(|compiled| (compiled.clone(), compiled.cache()));
                }
            }
        }
    }

    /// The compiled kernel of `key` for `target` if it is ready; until then `fallback`, while a background thread
    /// gets it. `fallback` is any kernel that can stand in, such as one built from a more general key.
    ///
    /// # Errors
    /// What the background compile failed with: told once, by the first call after it; the next call tries again.
    pub fn get_or_fallback<K: Kernel>(
        &self,
        key: &K,
        target: Target,
        fallback: &Arc<Compiled>,
    ) -> Result<Arc<Compiled>, Error> {
        let keys = self.inner.keys::<K>();
        let entry = (*key, target);
        if let Some(result) = keys.flights.landed(&entry) {
            count(&self.inner.counts.memory_hits);
            return result;
        }
        if let Some(error) = lock(&keys.failures).remove(&entry) {
            return Err(error);
        }
        match Flights::join(&keys.flights, entry) {
            Role::Landed(result) => {
                count(&self.inner.counts.memory_hits);
                return result;
            }
            Role::Wait(_) => {}
            Role::Lead(lead) => {
                let (inner, keys, key) = (self.inner.clone(), keys.clone(), *key);
                self.background.run(move || {
                    // Noted before the flight ends: whoever then finds no flight must find the error.
                    let _ = inner.lead_with(&key, target, lead, |error| {
                        lock(&keys.failures).insert(entry, error.clone());
                    });
                });
            }
        }
        Ok(fallback.clone())
    }

    /// Whether `key` for `target` is in memory, ready to launch.
    pub fn is_ready<K: Kernel>(&self, key: &K, target: Target) -> bool {
        self.inner.keys::<K>().flights.landed(&(*key, target)).is_some()
    }

    /// What this JIT did so far.
    pub fn counters(&self) -> Counters {
        let Counts { memory_hits, disk_hits, misses, compiles, waits } = &self.inner.counts;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (corrupt, evicted) = self.inner.cache.as_ref().map_or((0, 0), |cache| cache.losses());
        Counters {
            memory_hits: read(memory_hits),
            disk_hits: read(disk_hits),
            misses: read(misses),
            compiles: read(compiles),
            waits: read(waits),
            corrupt,
            evicted,
        }
    }

    /// The disk cache, if there is one.
    pub fn cache(&self) -> Option<&Arc<DiskCache>> {
        self.inner.cache.as_ref()
    }
}

impl Inner {
    fn keys<K: Kernel>(&self) -> Arc<Keys<K>> {
        let id = TypeId::of::<K>();
        let known = self.types.read().unwrap_or_else(PoisonError::into_inner).get(&id).cloned();
        let keys = known.unwrap_or_else(|| {
            let mut types = self.types.write().unwrap_or_else(PoisonError::into_inner);
            let keys = || Keys::<K> { flights: Arc::new(Flights::new()), failures: Mutex::default() };
            types.entry(id).or_insert_with(|| Arc::new(keys())).clone()
        });
        match keys.downcast() {
            Ok(keys) => keys,
            Err(_) => unreachable!("the keys of a kernel type are stored under its own type id"),
        }
    }

    /// Makes the kernel that `lead` stands for and hands it to everyone who waits.
    fn lead<K: Kernel>(&self, key: &K, target: Target, lead: Lead<(K, Target), Outcome>) -> Outcome {
        self.lead_with(key, target, lead, |_| {})
    }

    /// As [`Inner::lead`]; `failed` hears of a failure before anyone else does.
    fn lead_with<K: Kernel>(
        &self,
        key: &K,
        target: Target,
        lead: Lead<(K, Target), Outcome>,
        failed: impl FnOnce(&Error),
    ) -> Outcome {
        let result = self.produce(key, target);
        if let Err(error) = &result {
            failed(error);
        }
        lead.land(result.clone(), result.is_ok());
        result
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Threads that can run at once; 1 if the system does not tell.
fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
