//! What it takes to run a kernel by name on input of its own, and what comes of it.

use std::sync::Arc;
use std::time::Duration;

use lathe_dsl::artifact::CompileRecord;
use lathe_dsl::{Kernel, Target, ir, kernel};
use lathe_runtime::jit::{Compiled, Jit};
use lathe_runtime::{Engine, Error};
use serde::Serialize;

/// A kernel with its build key, whatever its type.
pub trait Build: Send + Sync {
    /// Kernel name.
    fn name(&self) -> &'static str;

    /// The key as `field=value` pairs.
    fn key(&self) -> String;

    /// The key, field by field, in order.
    fn fields(&self) -> Vec<(&'static str, u32)>;

    /// Traces and verifies it.
    ///
    /// # Errors
    /// The kernel is refused.
    fn trace(&self, target: Target) -> Result<ir::Kernel, lathe_dsl::Error>;

    /// Gets its compiled form from `jit`.
    ///
    /// # Errors
    /// As [`Jit::get`].
    fn compile(&self, jit: &Jit, target: Target) -> Result<Arc<Compiled>, Error>;

    /// Runs it on real input made from `seed` and checks every output.
    ///
    /// # Errors
    /// Compiling or launching failed. A wrong result is not an error but a failed [`Check`].
    fn run(&self, engine: &Engine, seed: u64) -> Result<RunReport, RunError>;
}

/// Why a kernel could not be run on real input.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// Compiling or launching failed.
    #[error(transparent)]
    Runtime(#[from] Error),
    /// The kernel's own reasons: it does not take what it is passed, or must not begin.
    #[error(transparent)]
    Refused(Arc<dyn std::error::Error + Send + Sync>),
    /// The key is fine for a kernel, but its check's host data is too large.
    #[error("`{kernel}` with {key}: making and checking its input would take {gib:.1} GiB of host memory; {hint}")]
    TooLarge {
        /// Kernel name.
        kernel: &'static str,
        /// The key.
        key: String,
        /// Host memory it would take.
        gib: f64,
        /// What would be allowed.
        hint: String,
    },
    /// The key is fine for a kernel, but plain Rust would take too long to make what it is compared with.
    #[error(
        "`{kernel}` with {key}: {pixels} pixels, of whole windows of 8×8 or of the colour image; a run, which compares all of them \
         with plain Rust, takes at most {most}: set `ex` and `ey`, or `colour_width` and `colour_height`, lower"
    )]
    TooManyPixels {
        /// Kernel name.
        kernel: &'static str,
        /// The key.
        key: String,
        /// Pixels it asks for.
        pixels: u64,
        /// Pixels it may ask for.
        most: u64,
    },
}

impl RunError {
    /// Whether what was asked for is wrong, rather than what came of it.
    pub const fn is_request(&self) -> bool {
        matches!(self, Self::TooLarge { .. } | Self::TooManyPixels { .. } | Self::Runtime(Error::Trace(_)))
    }
}

/// What a kernel family adds to a [`Kernel`] to be run and checked by name.
pub trait Run: Kernel {
    /// What fields of the key are in a run on a GPU where nothing else is asked for: there nobody sees that a wait never ends.
    const ON_GPUS: &'static [(&'static str, u32)] = &[];

    /// Runs `compiled` on real input made from `seed` and checks every output.
    ///
    /// # Errors
    /// As [`Build::run`].
    fn run(&self, engine: &Engine, compiled: &Compiled, seed: u64) -> Result<Outcome, RunError>;

    /// Refuses keys whose check would not fit the host, before anything is compiled.
    ///
    /// # Errors
    /// [`RunError::TooLarge`] or [`RunError::TooManyPixels`].
    fn check_size(&self) -> Result<(), RunError>;
}

impl<K: Run> Build for K {
    fn name(&self) -> &'static str {
        K::NAME
    }

    fn key(&self) -> String {
        kernel::describe(self)
    }

    fn fields(&self) -> Vec<(&'static str, u32)> {
        K::FIELDS.iter().enumerate().map(|(i, f)| (f.name, self.get(i))).collect()
    }

    fn trace(&self, target: Target) -> Result<ir::Kernel, lathe_dsl::Error> {
        lathe_dsl::trace(self, target)
    }

    fn compile(&self, jit: &Jit, target: Target) -> Result<Arc<Compiled>, Error> {
        jit.get(self, target)
    }

    fn run(&self, engine: &Engine, seed: u64) -> Result<RunReport, RunError> {
        self.check_size()?;
        let compiled = engine.jit.get(self, engine.device.target())?;
        let outcome = Run::run(self, engine, &compiled, seed)?;
        Ok(RunReport::new(self, engine, &compiled, seed, outcome))
    }
}

/// What came out of running a kernel.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Every check of the output.
    pub checks: Vec<Check>,
    /// What the device found unusual.
    pub findings: Vec<String>,
    /// Time of the launch.
    pub time: Duration,
}

/// One check of a kernel's output.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// What the output was compared with.
    pub against: &'static str,
    /// Largest absolute error.
    pub max_abs_error: f64,
    /// What is allowed, in words.
    pub allowed: String,
    /// Whether it passed.
    pub ok: bool,
    /// Where it failed first, if it did.
    pub first_failure: Option<String>,
}

/// Everything `lathe run` tells.
#[derive(Clone, Debug, Serialize)]
pub struct RunReport {
    /// Kernel name.
    pub kernel: &'static str,
    /// Build key, field by field.
    #[serde(serialize_with = "as_map")]
    pub key: Vec<(&'static str, u32)>,
    /// Device name.
    pub device: String,
    /// Seed of the input.
    pub seed: u64,
    /// How the kernel was compiled.
    pub record: CompileRecord,
    /// Every check of the output.
    pub checks: Vec<Check>,
    /// What the device found unusual.
    pub findings: Vec<String>,
    /// Wall time of the launch, in milliseconds.
    pub launch_ms: f64,
    /// Whether every check passed and nothing was found.
    pub ok: bool,
}

impl RunReport {
    /// Of a launch and its checks.
    pub(crate) fn new<K: Run>(key: &K, engine: &Engine, compiled: &Compiled, seed: u64, outcome: Outcome) -> Self {
        let ok = outcome.findings.is_empty() && outcome.checks.iter().all(|c| c.ok);
        Self {
            kernel: K::NAME,
            key: key.fields(),
            device: engine.device.name(),
            seed,
            record: compiled.record().clone(),
            checks: outcome.checks,
            findings: outcome.findings,
            launch_ms: outcome.time.as_secs_f64() * 1e3,
            ok,
        }
    }
}

/// A key as a JSON object, its fields in order.
fn as_map<S: serde::Serializer>(key: &[(&'static str, u32)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(key.iter().copied())
}
