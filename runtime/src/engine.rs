//! A device by name, with the JIT that compiles for it.

use std::sync::Arc;

use lathe_dsl::Target;

use crate::cache::DiskCache;
#[cfg(all(feature = "jit", feature = "hip"))]
use crate::device::Hip;
use crate::device::{Cpu, CpuOptions, Device};
#[cfg(feature = "jit")]
use crate::device::{Cuda, Gcn};
use crate::error::Error;
#[cfg(feature = "jit")]
use crate::jit::Llvm;
use crate::jit::{Compiler, Interpreter, Jit};

/// A device together with the JIT whose code it runs.
pub struct Engine {
    /// The device.
    pub device: Arc<dyn Device>,
    /// Compiles for it.
    pub jit: Jit,
}

/// What a device name can be, for messages.
fn known() -> String {
    let mut names = vec!["cpu".to_owned()];
    names.extend(Target::all().map(|t| format!("cpu:{t}")));
    #[cfg(feature = "jit")]
    {
        names.extend(crate::gcn::targets().map(|t| format!("gcn:{t}")));
        names.extend(["cuda".to_owned(), "cuda:NUMBER".to_owned()]);
    }
    #[cfg(all(feature = "jit", feature = "hip"))]
    names.extend(["hip".to_owned(), "hip:NUMBER".to_owned()]);
    names.join(", ")
}

/// A device, by what it runs.
enum Opened {
    /// The interpreter's program.
    Interprets(Arc<dyn Device>),
    /// Machine code.
    #[cfg(feature = "jit")]
    Executes(Arc<dyn Device>),
}

fn open(name: &str, options: CpuOptions, cache: Option<&Arc<DiskCache>>) -> Result<Opened, Error> {
    // Only drivers that compile once more keep something.
    #[cfg(not(feature = "jit"))]
    let _ = cache;
    let unknown = || Error::UnknownDevice { given: name.to_owned(), known: known() };
    let (kind, chip) = name.split_once(':').map_or((name, None), |(k, c)| (k, Some(c)));
    #[cfg(feature = "jit")]
    if kind == "cuda" {
        let ordinal = chip.unwrap_or("0").parse().map_err(|_| unknown())?;
        let device = match cache {
            Some(cache) => Cuda::with_cache(ordinal, cache.clone())?,
            None => Cuda::new(ordinal)?,
        };
        return Ok(Opened::Executes(Arc::new(device)));
    }
    if kind == "hip" {
        return hip(chip.unwrap_or("0").parse().map_err(|_| unknown())?);
    }
    let target = chip.unwrap_or("gfx950").parse::<Target>().map_err(|_| unknown())?;
    match kind {
        "cpu" => Ok(Opened::Interprets(Arc::new(Cpu::new(target, options)))),
        #[cfg(feature = "jit")]
        "gcn" if chip.is_some() && crate::gcn::targets().any(|t| t == target) => {
            Ok(Opened::Executes(Arc::new(Gcn::new(target, options.seed).with_threads(options.threads))))
        }
        _ => Err(unknown()),
    }
}

#[cfg(all(feature = "jit", feature = "hip"))]
fn hip(ordinal: u32) -> Result<Opened, Error> {
    Ok(Opened::Executes(Arc::new(Hip::new(ordinal)?)))
}

#[cfg(not(all(feature = "jit", feature = "hip")))]
fn hip(ordinal: u32) -> Result<Opened, Error> {
    let reason = "Lathe was built without its features `jit` and `hip`".to_owned();
    Err(Error::NoDevice { device: format!("hip:{ordinal}"), reason })
}

impl Engine {
    /// Opens a device by name: `cpu` (the interpreter, as gfx950), `cpu:CHIP` (the interpreter with that chip's wave width and
    /// limits), `gcn:CHIP` (the AMD code object for gfx950, gfx942 or gfx1201, executed instruction by instruction), `cuda` or
    /// `cuda:NUMBER` (an NVIDIA GPU), `hip` or `hip:NUMBER` (an AMD GPU, if Lathe was built with the feature `hip`). `seed` orders workgroups and interleaves waves at random, the same way for the same seed;
    /// without one they run in order.
    ///
    /// # Errors
    /// [`Error::UnknownDevice`], listing what there is; [`Error::NoDevice`] where this machine has none.
    pub fn open(name: &str, seed: Option<u64>) -> Result<Self, Error> {
        match open(name, CpuOptions { seed, ..CpuOptions::default() }, None)? {
            Opened::Interprets(device) => Ok(Self { device, jit: Jit::new(Interpreter) }),
            #[cfg(feature = "jit")]
            Opened::Executes(device) => Ok(Self { device, jit: Jit::new(Llvm::default()) }),
        }
    }

    /// As [`Engine::open`]; where the device interprets, it does so by `options`; where it runs machine code, `llvm` makes it and
    /// `cache` keeps it, as well as what a GPU's driver makes of it, and of the options only the seed and, on `gcn`, the threads count.
    ///
    /// # Errors
    /// As [`Engine::open`].
    #[cfg(feature = "jit")]
    pub fn open_with(
        name: &str,
        options: CpuOptions,
        llvm: Llvm,
        cache: Option<Arc<DiskCache>>,
    ) -> Result<Self, Error> {
        match open(name, options, cache.as_ref())? {
            Opened::Interprets(device) => Ok(Self { device, jit: Jit::new(Interpreter) }),
            Opened::Executes(device) => {
                let jit = match cache {
                    Some(cache) => Jit::with_cache(llvm, cache),
                    None => Jit::new(llvm),
                };
                Ok(Self { device, jit })
            }
        }
    }

    /// A device and the compiler whose code it runs.
    pub fn new(device: impl Device + 'static, compiler: impl Compiler + 'static) -> Self {
        Self { device: Arc::new(device), jit: Jit::new(compiler) }
    }
}
