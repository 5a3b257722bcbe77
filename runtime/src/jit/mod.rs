//! One compile per build key: trace, compile, remember.

mod compiler;
mod flight;
#[cfg(test)]
mod tests;

use std::any::{Any, TypeId};
use std::hash::BuildHasher;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, RwLock};
use std::time::Instant;

use lathe_dsl::artifact::CompileRecord;
use lathe_dsl::kernel::{Arguments, Host};
use lathe_dsl::{Kernel, Target, ir};
use rustc_hash::{FxBuildHasher, FxHashMap};

#[cfg(feature = "jit")]
pub use compiler::Llvm;
pub use compiler::{Code, Compiler, Interpreter};
use flight::Flight;

use crate::device::{Device, LaunchReport};
use crate::error::Error;

/// A kernel ready to launch.
#[derive(Debug)]
pub struct Compiled {
    kernel: Arc<ir::Kernel>,
    target: Target,
    code: Code,
    record: CompileRecord,
}

impl Compiled {
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

    /// Timings and resources of the compile.
    pub fn record(&self) -> &CompileRecord {
        &self.record
    }

    /// Launches the kernel on `device` and waits for it. Every argument is checked against its declaration first.
    ///
    /// # Errors
    /// An argument that does not match, code for another device, or what the kernel did wrong.
    pub fn launch<K: Kernel>(
        &self,
        device: &dyn Device,
        args: &<K::Args as Arguments<K>>::On<Host<'_>>,
    ) -> Result<LaunchReport, Error> {
        let mut packed = crate::launch::Pack::new(&self.kernel);
        K::Args::pack(args, &mut |arg| packed.push(arg));
        device.launch(self, &packed.finish()?)
    }
}

type Slot = Arc<Flight<Result<Arc<Compiled>, Error>>>;

/// Shards of one kernel type's map: a few, so that threads on different keys seldom meet.
const SHARDS: usize = 16;

/// The compiled keys of one kernel type.
struct Keys<K> {
    shards: [RwLock<FxHashMap<(K, Target), Slot>>; SHARDS],
}

impl<K: Kernel> Keys<K> {
    fn new() -> Self {
        Self { shards: std::array::from_fn(|_| RwLock::default()) }
    }

    fn shard(&self, key: &(K, Target)) -> &RwLock<FxHashMap<(K, Target), Slot>> {
        // The map itself uses the hash's low bits.
        &self.shards[(FxBuildHasher.hash_one(key) >> 59) as usize % SHARDS]
    }
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
    compiler: Box<dyn Compiler>,
    types: RwLock<FxHashMap<TypeId, Arc<dyn Any + Send + Sync>>>,
}

impl Jit {
    /// A JIT that compiles with `compiler`.
    pub fn new(compiler: impl Compiler + 'static) -> Self {
        Self { compiler: Box::new(compiler), types: RwLock::default() }
    }

    /// The compiled kernel of `key` for `target`: remembered, or traced and compiled now. Threads that ask for a key that is
    /// being compiled wait for that compile.
    ///
    /// # Errors
    /// What tracing or the compiler says, or that either panicked; told to everyone who waited, and not remembered.
    pub fn get<K: Kernel>(&self, key: &K, target: Target) -> Result<Arc<Compiled>, Error> {
        let keys = self.keys::<K>();
        let entry = (*key, target);
        let shard = keys.shard(&entry);
        let remembered = read(shard).get(&entry).cloned();
        if let Some(slot) = remembered {
            return slot.wait();
        }
        let (slot, mine) = {
            let mut map = shard.write().unwrap_or_else(std::sync::PoisonError::into_inner);
            let mut mine = false;
            let slot = map.entry(entry).or_insert_with(|| {
                mine = true;
                Slot::default()
            });
            (slot.clone(), mine)
        };
        if !mine {
            return slot.wait();
        }
        let result = self.compile(key, target);
        if result.is_err() {
            shard.write().unwrap_or_else(std::sync::PoisonError::into_inner).remove(&entry);
        }
        slot.land(result.clone());
        result
    }

    fn keys<K: Kernel>(&self) -> Arc<Keys<K>> {
        let id = TypeId::of::<K>();
        let known = read(&self.types).get(&id).cloned();
        let keys = known.unwrap_or_else(|| {
            let mut types = self.types.write().unwrap_or_else(std::sync::PoisonError::into_inner);
            types.entry(id).or_insert_with(|| Arc::new(Keys::<K>::new())).clone()
        });
        match keys.downcast() {
            Ok(keys) => keys,
            Err(_) => unreachable!("the map of a kernel type is stored under its own type id"),
        }
    }

    fn compile<K: Kernel>(&self, key: &K, target: Target) -> Result<Arc<Compiled>, Error> {
        let span = tracing::debug_span!("compile", kernel = K::NAME, %target);
        let _entered = span.enter();
        let work = || {
            let start = Instant::now();
            let kernel = Arc::new(lathe_dsl::trace(key, target)?);
            let trace_ms = start.elapsed().as_secs_f64() * 1e3;
            let start = Instant::now();
            let (code, mut record) = self.compiler.compile(&kernel, target)?;
            record.kernel = K::NAME.to_owned();
            record.target = target.to_string();
            record.kir_ops = kernel.op_count();
            record.trace_ms = trace_ms;
            record.compile_ms = start.elapsed().as_secs_f64() * 1e3;
            Ok(Arc::new(Compiled { kernel, target, code, record }))
        };
        catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| {
            let message = payload
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| payload.downcast_ref::<&str>().copied())
                .unwrap_or("no message");
            Err(Error::Panicked { kernel: K::NAME, target: target.chip().name, message: message.to_owned() })
        })
    }
}

fn read<T>(lock: &RwLock<T>) -> std::sync::RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(std::sync::PoisonError::into_inner)
}
