//! Every kernel by name, for the command line and for tools that do not know its type.

use lathe_dsl::kernel::{self, BuildKey, KeyError, KeyField};
use lathe_runtime::Engine;
use lathe_runtime::device::Device;

use crate::dec2::block::Dec2;
use crate::dec2::denoise;
pub use crate::dec2::denoise::{DenoiseError, Filtered};
use crate::dec2::reference::Image;
use crate::dec2::stage::Dec2Stage;
use crate::dec2::stage::names::{EPILOGUES, Named};
use crate::gemm::mx::GemmMx;
use crate::mla::combine::MlaCombine;
use crate::mla::post::MlaPost;
use crate::mla::push::MlaPush;
use crate::mla::ranks::MlaCombineRanks;
use crate::mla::splits::MlaCombineSplits;
use crate::mla::uv::MlaUv;
pub use crate::run::{Build, Check, Outcome, Run, RunError, RunReport};

/// Makes a build of a kernel from `field=value` settings.
type Parse = fn(&[(String, String)]) -> Result<Box<dyn Build>, KeyError>;

/// Runs a kernel on a picture, with `field=value` settings and the device's seed.
type Filter = fn(&Engine, &Image, &[(String, String)], u64) -> Result<Filtered, DenoiseError>;

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
        all[1 + i] = of_family(&EPILOGUES[i]);
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

/// One of a family: its name stands for the first of the key's fields.
const fn of_family(named: &Named) -> Entry {
    Entry {
        name: named.name,
        doc: named.doc,
        stages: named.stages,
        fields: Dec2Stage::FIELDS.split_at(1).1,
        preset: named.instance,
        on_gpus: Dec2Stage::ON_GPUS,
        parse: parse::<Dec2Stage>,
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
        Ok(filter(engine, picture, settings, seed)?)
    }
}

fn filters() -> String {
    KERNELS.iter().filter(|e| e.filter.is_some()).map(|e| e.name).collect::<Vec<_>>().join(", ")
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
    /// Its own reasons.
    #[error(transparent)]
    Denoise(#[from] DenoiseError),
}

impl FilterError {
    /// Whether what was asked for is wrong, rather than what came of it.
    pub const fn is_request(&self) -> bool {
        match self {
            Self::NoPictures { .. } => true,
            Self::Denoise(error) => error.is_request(),
        }
    }
}
