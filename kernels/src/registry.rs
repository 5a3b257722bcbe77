//! Every kernel by name, for the command line and for tools that do not know its type.

use std::sync::Arc;
use std::time::Duration;

use lathe_dsl::artifact::CompileRecord;
use lathe_dsl::kernel::{self, KeyError, KeyField};
use lathe_dsl::{Kernel, Target, ir};
use lathe_runtime::device::Device;
use lathe_runtime::jit::{Compiled, Jit};
use lathe_runtime::{Engine, Error};
use serde::Serialize;

use crate::dec2::block::{Dec2, LaunchError};
use crate::dec2::denoise;
use crate::dec2::geometry::GeometryError;
use crate::dec2::reference::Image;
use crate::dec2::stage::names::EPILOGUES;
use crate::gemm::mx::GemmMx;
use crate::mla::combine::MlaCombine;
use crate::mla::post::{ArgsError, MlaPost, StepError};
use crate::mla::push::MlaPush;
use crate::mla::ranks::MlaCombineRanks;
use crate::mla::splits::MlaCombineSplits;
use crate::mla::uv::MlaUv;

/// Makes a build of a kernel from `field=value` settings.
type Parse = fn(&[(String, String)]) -> Result<Box<dyn Build>, KeyError>;

/// Runs a kernel on a picture, with `field=value` settings and the device's seed.
type Filter = fn(&Engine, &Image, &[(String, String)], u64) -> Result<Filtered, FilterError>;

/// A kernel that has a name.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Name on the command line.
    pub name: &'static str,
    /// What it computes, in a line.
    pub doc: &'static str,
    /// The stages it is made of, in order.
    pub stages: &'static [&'static str],
    /// Its build key's fields.
    pub fields: &'static [KeyField],
    /// Settings that the name itself makes.
    preset: &'static [(&'static str, &'static str)],
    /// As [`Run::ON_GPUS`].
    on_gpus: &'static [(&'static str, u32)],
    /// Makes a build of it from `field=value` settings.
    parse: Parse,
    /// Runs it on a picture, where it is made for pictures.
    filter: Option<Filter>,
}

/// Every kernel, in alphabetical order; those that are one kernel with a number by it.
pub const KERNELS: &[Entry] = &{
    let mut all = [FIRST; 1 + EPILOGUES.len() + OTHERS.len()];
    let mut i = 0;
    while i < EPILOGUES.len() {
        all[1 + i] = EPILOGUES[i].entry();
        i += 1;
    }
    let mut i = 0;
    while i < OTHERS.len() {
        all[1 + EPILOGUES.len() + i] = OTHERS[i];
        i += 1;
    }
    all
};

const FIRST: Entry = Entry {
    filter: Some(denoise::run),
    ..entry::<Dec2>(
        "A decoder level of a Swin transformer with a kernel-prediction head: 38 products and epilogues in one launch",
        &["expand", "epilogue", "product"],
    )
};

const OTHERS: &[Entry] = &[
    entry::<GemmMx>("Multiplies two MXFP4 matrices into one of bf16: D = A·Bᵀ", &["copy", "multiply", "store"]),
    entry::<MlaCombine>(
        "Combines the ranks' partial attention rows, weighted by their log-sum-exp, into bf16 latents",
        &["stage_combine", "store_latents"],
    ),
    entry::<MlaCombineRanks>(
        "Combines the partial attention rows that ranks have sent, weighted by their log-sum-exp, into bf16 latents",
        &["poll", "combine"],
    ),
    entry::<MlaCombineSplits>(
        "Combines the partial attention rows of a rank's splits, weighted by their log-sum-exp, into bf16 latents",
        &["weigh", "part_sums", "reduce"],
    ),
    entry::<MlaPost>(
        "Combines partial attention rows and makes gated values of the latents, in one launch",
        &["wv_loads", "stage_combine", "stage_uv"],
    ),
    entry::<MlaPush>(
        "Sends a rank's partial attention rows and their log-sum-exp to the ranks whose heads they are of",
        &["stage_push"],
    ),
    entry::<MlaUv>(
        "Multiplies combined latents, quantised to MXFP4, by W_UV, and the result by the gate",
        &["quantise", "stage_uv"],
    ),
];

const fn entry<K: Run>(doc: &'static str, stages: &'static [&'static str]) -> Entry {
    Entry {
        name: K::NAME,
        doc,
        stages,
        fields: K::FIELDS,
        preset: &[],
        on_gpus: K::ON_GPUS,
        parse: parse::<K>,
        filter: None,
    }
}

fn parse<K: Run>(settings: &[(String, String)]) -> Result<Box<dyn Build>, KeyError> {
    let key = kernel::key_from::<K>(settings.iter().map(|(k, v)| (k.as_str(), v.as_str())))?;
    Ok(Box::new(key))
}

/// A name that no kernel has.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("unknown kernel `{name}`; known kernels: {known}", known = known())]
pub struct UnknownKernel {
    name: String,
}

fn known() -> String {
    KERNELS.iter().map(|e| e.name).collect::<Vec<_>>().join(", ")
}

impl Entry {
    /// One of a family: `name` stands for the first of the key's fields.
    pub(crate) const fn of_family<K: Run>(
        name: &'static str,
        doc: &'static str,
        stages: &'static [&'static str],
        preset: &'static [(&'static str, &'static str)],
    ) -> Self {
        let fields = K::FIELDS.split_at(1).1;
        Self { name, doc, stages, fields, preset, on_gpus: K::ON_GPUS, parse: parse::<K>, filter: None }
    }

    /// The kernel called `name`.
    ///
    /// # Errors
    /// [`UnknownKernel`], listing what there is.
    pub fn find(name: &str) -> Result<&'static Self, UnknownKernel> {
        KERNELS.iter().find(|e| e.name == name).ok_or_else(|| UnknownKernel { name: name.to_owned() })
    }

    /// A build of it: `settings` over the key's defaults.
    ///
    /// # Errors
    /// A field or value that is not allowed.
    pub fn build(&self, settings: &[(String, String)]) -> Result<Box<dyn Build>, KeyError> {
        let preset = self.preset.iter().map(|(field, value)| ((*field).to_owned(), (*value).to_owned()));
        let settings: Vec<_> = preset.chain(settings.iter().cloned()).collect();
        (self.parse)(&settings)
    }

    /// A build of it to be run on `device`: on a GPU the defaults of some fields are others ([`Run::ON_GPUS`]).
    ///
    /// # Errors
    /// As [`Entry::build`].
    pub fn build_for(&self, device: &dyn Device, settings: &[(String, String)]) -> Result<Box<dyn Build>, KeyError> {
        let name = device.name();
        let simulated = ["cpu", "gcn"].iter().any(|kind| name.starts_with(kind));
        let unset = |field: &str| settings.iter().all(|(given, _)| given != field);
        let more = self.on_gpus.iter().filter(|(field, _)| !simulated && unset(field));
        let more = more.map(|(field, value)| ((*field).to_owned(), value.to_string()));
        self.build(&more.chain(settings.iter().cloned()).collect::<Vec<_>>())
    }

    /// Whether it filters pictures.
    ///
    /// # Errors
    /// [`FilterError::NoPictures`].
    pub fn filters_pictures(&self) -> Result<(), FilterError> {
        self.filter.map(|_| ()).ok_or(FilterError::NoPictures { kernel: self.name })
    }

    /// Runs it on a picture, from which its key has the extents; `settings` are for the other fields. A picture of few enough pixels
    /// is compared with plain Rust.
    ///
    /// # Errors
    /// The kernel filters no pictures, a setting is not allowed, the picture is too small or too large, compiling or launching failed.
    /// A wrong result is not an error but a failed [`Check`].
    pub fn filter(
        &self,
        engine: &Engine,
        picture: &Image,
        settings: &[(String, String)],
        seed: u64,
    ) -> Result<Filtered, FilterError> {
        let filter = self.filter.ok_or(FilterError::NoPictures { kernel: self.name })?;
        filter(engine, picture, settings, seed)
    }
}

fn filters() -> String {
    KERNELS.iter().filter(|e| e.filter.is_some()).map(|e| e.name).collect::<Vec<_>>().join(", ")
}

/// What a kernel made of a picture.
#[derive(Clone, Debug)]
pub struct Filtered {
    /// The new picture.
    pub picture: Image,
    /// How.
    pub report: RunReport,
}

/// Why a kernel could not be run on a picture.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FilterError {
    /// It is not made for pictures.
    #[error("`{kernel}` takes no picture; kernels that do: {known}", known = filters())]
    NoPictures {
        /// The kernel.
        kernel: &'static str,
    },
    /// A setting that the key does not allow.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A setting that contradicts, or repeats, the picture.
    #[error("`{field}` cannot be set: it is the picture's")]
    FromPicture {
        /// The field.
        field: String,
    },
    /// There is no launch on a picture of this size.
    #[error(transparent)]
    Geometry(#[from] GeometryError),
    /// Compiling failed.
    #[error(transparent)]
    Runtime(#[from] Error),
    /// Launching failed.
    #[error(transparent)]
    Launch(#[from] LaunchError),
}

impl FilterError {
    /// Whether what was asked for is wrong, rather than what came of it.
    pub const fn is_request(&self) -> bool {
        match self {
            Self::NoPictures { .. } | Self::Key(_) | Self::FromPicture { .. } | Self::Geometry(_) => true,
            Self::Runtime(error) => matches!(error, Error::Trace(_)),
            Self::Launch(_) => false,
        }
    }
}

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
    /// What `mla_post` is passed is not what it takes.
    #[error(transparent)]
    Args(#[from] ArgsError),
    /// A step of `mla_post` must not begin.
    #[error(transparent)]
    Step(#[from] StepError),
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
