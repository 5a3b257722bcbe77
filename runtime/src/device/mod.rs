//! Devices: where kernels run. One file a device.

mod cpu;
#[cfg(feature = "jit")]
mod gcn;

use std::sync::Arc;
use std::time::Duration;

use lathe_dsl::Target;

pub use cpu::{Cpu, CpuOptions};
#[cfg(feature = "jit")]
pub use gcn::{Gcn, LocatedError};

use crate::error::Error;
use crate::jit::{Compiled, Compiler, Interpreter, Jit};
use crate::launch::ArgBlock;

/// Memory and execution of one device. Addresses are the device's own; every call waits until it is done.
pub trait Device: Send + Sync {
    /// As the command line spells it: `cpu`, `gcn:gfx950`.
    fn name(&self) -> String;

    /// The chip that kernels must be traced for.
    fn target(&self) -> Target;

    /// Reserves `bytes` of memory, aligned to 256; the content is undefined.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    fn alloc(&self, bytes: u64) -> Result<u64, Error>;

    /// Gives memory back; an address that [`Device::alloc`] did not give is ignored.
    fn free(&self, address: u64);

    /// Copies to the device.
    ///
    /// # Errors
    /// [`Error::BadAddress`] if the range lies in no allocation.
    fn write(&self, address: u64, bytes: &[u8]) -> Result<(), Error>;

    /// Copies from the device.
    ///
    /// # Errors
    /// [`Error::BadAddress`] if the range lies in no allocation.
    fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), Error>;

    /// Runs a compiled kernel. [`Compiled::launch`] has checked the arguments.
    ///
    /// # Errors
    /// Code for another device, or what the kernel did wrong.
    fn launch(&self, compiled: &Compiled, args: &ArgBlock) -> Result<LaunchReport, Error>;
}

/// What a launch tells beyond its results.
#[derive(Clone, Debug, Default)]
pub struct LaunchReport {
    /// Wall time of the launch.
    pub time: Duration,
    /// Accesses that have a defined result but are seldom meant, each with its source location.
    pub findings: Vec<String>,
}

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
    names.push("gcn:gfx950".to_owned());
    names.join(", ")
}

impl Engine {
    /// Opens a device by name: `cpu` (the interpreter, as gfx950), `cpu:CHIP` (the interpreter with that chip's wave width and
    /// limits), `gcn:gfx950` (the AMD code object, executed instruction by instruction). `seed` interleaves
    /// waves at random, the same way for the same seed; without one they run in order.
    ///
    /// # Errors
    /// [`Error::UnknownDevice`], listing what there is.
    pub fn open(name: &str, seed: Option<u64>) -> Result<Self, Error> {
        let unknown = || Error::UnknownDevice { given: name.to_owned(), known: known() };
        let (kind, chip) = name.split_once(':').map_or((name, None), |(k, c)| (k, Some(c)));
        let target = chip.unwrap_or("gfx950").parse::<Target>().map_err(|_| unknown())?;
        match kind {
            "cpu" => Ok(Self::new(Cpu::new(target, CpuOptions { seed, ..CpuOptions::default() }), Interpreter)),
            #[cfg(feature = "jit")]
            "gcn" if chip.is_some() && target == Target::GFX950 => {
                Ok(Self::new(Gcn::new(target, seed), crate::jit::Llvm::default()))
            }
            _ => Err(unknown()),
        }
    }

    /// A device and the compiler whose code it runs.
    pub fn new(device: impl Device + 'static, compiler: impl Compiler + 'static) -> Self {
        Self { device: Arc::new(device), jit: Jit::new(compiler) }
    }
}
