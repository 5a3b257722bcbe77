//! From a build key to a compiled kernel: trace, look on disk, compile, publish.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use lathe_dsl::artifact::{Artifact, CacheSource, CompileRecord, StageTime};
use lathe_dsl::kernel::describe;
use lathe_dsl::{Kernel, Target, Warning, ir};

use super::{Code, Compiled, Inner, Outcome, count};
use crate::error::Error;
use crate::key::DiskKey;

/// How long another process may compile a key before this one compiles it too.
const PATIENCE: Duration = Duration::from_secs(60);

/// A kernel on its way to code.
struct Traced {
    kernel: Arc<ir::Kernel>,
    target: Target,
    /// The build key's fields and values.
    key: String,
    /// What the verifier warns of.
    warnings: Vec<String>,
    trace_ms: f64,
    /// When tracing was done.
    since: Instant,
    /// Times of the disk cache.
    stages: Vec<StageTime>,
}

impl Traced {
    /// Runs one step of the disk cache under a span and on the clock.
    fn step<T>(&mut self, stage: &'static str, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let span = match stage {
            "lookup" => tracing::debug_span!("disk_lookup"),
            "wait" => tracing::debug_span!("wait"),
            _ => tracing::debug_span!("publish"),
        };
        let value = span.in_scope(work);
        self.stages.push(StageTime { stage: stage.into(), ms: milliseconds(start) });
        value
    }

    /// The kernel under the name of its entry point, which tells builds apart. Its key is that of the kernel under its own
    /// name.
    fn named(&self, key: &DiskKey) -> Arc<ir::Kernel> {
        Arc::new(ir::Kernel { name: key.symbol(&self.kernel.name), ..(*self.kernel).clone() })
    }

    /// The kernel with code from disk. The artifact's own record tells how that was once compiled.
    fn loaded(self, artifact: Artifact, cache: CacheSource) -> Compiled {
        let record = CompileRecord {
            cache,
            trace_ms: self.trace_ms,
            compile_ms: milliseconds(self.since),
            stages: self.stages,
            warnings: self.warnings,
            ..artifact.record.clone()
        };
        Compiled::new(self.kernel, self.target, Code::Object(Box::new(artifact)), record).with_key(self.key)
    }

    /// The kernel with code that was compiled now.
    fn compiled(self, code: Code, record: CompileRecord) -> Compiled {
        Compiled::new(self.kernel, self.target, code, record).with_key(self.key)
    }
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

impl Inner {
    /// Gets a kernel that is not in memory; a panic on the way is an error.
    pub(super) fn produce<K: Kernel>(&self, key: &K, target: Target) -> Outcome {
        let span = tracing::debug_span!("compile", kernel = K::NAME, %target);
        let _entered = span.enter();
        let result = catch_unwind(AssertUnwindSafe(|| self.try_produce(key, target))).unwrap_or_else(|payload| {
            let message = payload
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| payload.downcast_ref::<&str>().copied())
                .unwrap_or("no message");
            let (key, target) = (describe(key), target.chip().name);
            Err(Error::Panicked { kernel: K::NAME, key, target, message: message.to_owned() })
        });
        count(match result.as_ref().map_or(CacheSource::Miss, |compiled| compiled.cache()) {
            CacheSource::Disk => &self.counts.disk_hits,
            CacheSource::Waited => &self.counts.waits,
            CacheSource::Miss | CacheSource::Memory => &self.counts.misses,
        });
        result
    }

    fn try_produce<K: Kernel>(&self, key: &K, target: Target) -> Outcome {
        let start = Instant::now();
        let trace = || lathe_dsl::trace_with_warnings(key, target);
        let (kernel, warnings) = tracing::debug_span!("trace").in_scope(trace)?;
        let (trace_ms, since) = (milliseconds(start), Instant::now());
        let warnings: Vec<String> = warnings.iter().map(Warning::to_string).collect();
        for warning in &warnings {
            tracing::warn!("{warning}");
        }
        let key = describe(key);
        let traced = Traced { kernel: Arc::new(kernel), target, key, warnings, trace_ms, since, stages: vec![] };
        let Some(fingerprint) = self.compiler.fingerprint() else {
            let (code, record) = self.compile(&traced, &traced.kernel)?;
            return Ok(Arc::new(traced.compiled(code, record)));
        };
        let disk_key = DiskKey::of(&traced.kernel, target, &self.compiler.flags(), &fingerprint);
        self.load_or_compile(traced, &disk_key)
    }

    fn load_or_compile(&self, mut traced: Traced, key: &DiskKey) -> Outcome {
        let Some(cache) = &self.cache else {
            let (code, record) = self.compile(&traced, &traced.named(key))?;
            return Ok(Arc::new(traced.compiled(code, record)));
        };
        let target = traced.target;
        // An artifact for another chip under this key can only have been put there by hand.
        let load = || cache.load(key).filter(|artifact| artifact.target == target);
        if let Some(artifact) = traced.step("lookup", load) {
            cache.count_lookup(true);
            return Ok(Arc::new(traced.loaded(artifact, CacheSource::Disk)));
        }
        let acquired = traced.step("wait", || cache.lock(key, PATIENCE));
        // Someone may have published it between the look-up and the lock.
        if let Some(artifact) = traced.step("lookup", load) {
            cache.count_lookup(true);
            let source = if acquired.waited { CacheSource::Waited } else { CacheSource::Disk };
            return Ok(Arc::new(traced.loaded(artifact, source)));
        }
        cache.count_lookup(false);
        let (code, mut record) = self.compile(&traced, &traced.named(key))?;
        if let Code::Object(artifact) = &code {
            traced.step("publish", || cache.put(key, artifact));
        }
        drop(acquired);
        // Look-ups before the compiler's stages, publishing after them.
        let publish = traced.stages.pop_if(|step| step.stage == "publish");
        record.stages = traced.stages.drain(..).chain(record.stages).chain(publish).collect();
        record.compile_ms = milliseconds(traced.since);
        Ok(Arc::new(traced.compiled(code, record)))
    }

    /// Runs the compiler on `kernel`, which is the traced one, perhaps under the name of its entry point.
    fn compile(&self, traced: &Traced, kernel: &Arc<ir::Kernel>) -> Result<(Code, CompileRecord), Error> {
        count(&self.counts.compiles);
        let start = Instant::now();
        let compiled = tracing::debug_span!("compiler").in_scope(|| self.compiler.compile(kernel, traced.target));
        let (mut code, mut record) = compiled?;
        record.kernel.clone_from(&traced.kernel.name);
        record.target = traced.target.to_string();
        record.kir_ops = kernel.op_count();
        record.warnings.clone_from(&traced.warnings);
        record.trace_ms = traced.trace_ms;
        record.compile_ms = milliseconds(start);
        record.cache = CacheSource::Miss;
        if let Code::Object(artifact) = &mut code {
            artifact.record.clone_from(&record);
        }
        Ok((code, record))
    }
}
