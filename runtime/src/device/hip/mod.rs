//! Device `hip`: an AMD GPU through AMD's HIP runtime, which is loaded at run time.

mod api;
mod code;
mod context;
mod graph;
mod memory;
mod module;
mod peer;
mod stream;

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use lathe_dsl::Target;

use super::driver::{Asynchronous, HostMemory, Mark, Queue, Recorder, Sharing};
use super::{Device, DeviceId, LaunchReport, LoadedResources, Occupancy};
use crate::arch::{Architecture, Properties};
use crate::drivers;
use crate::error::Error;
use crate::jit::Compiled;
use crate::launch::ArgBlock;
use api::Api;
use context::Context;
use graph::List;
use memory::{HostPages, Memory};
use module::Modules;
use stream::{HipMark, HipQueue, State};

/// An AMD GPU.
pub struct Hip {
    modules: Arc<Modules>,
    memory: Arc<Memory>,
    /// What [`Device::launch`] uses.
    default: Arc<State>,
}

impl Hip {
    /// The GPU with this number, in the order of the HIP runtime, which is looked for as [`drivers::hip`] does.
    ///
    /// # Errors
    /// [`Error::NoDevice`] if there is no runtime or no such GPU, or if Lathe makes no code for it.
    pub fn new(ordinal: u32) -> Result<Self, Error> {
        Self::open(ordinal, None)
    }

    /// As [`Hip::new`], with this library as the HIP runtime.
    ///
    /// # Errors
    /// As [`Hip::new`].
    pub fn with_library(ordinal: u32, library: &Path) -> Result<Self, Error> {
        Self::open(ordinal, Some(library))
    }

    /// How many GPUs the HIP runtime has; 0 if there is no runtime.
    pub fn count() -> u32 {
        drivers::hip().map_or(0, |driver| driver.devices.len() as u32)
    }

    fn open(ordinal: u32, library: Option<&Path>) -> Result<Self, Error> {
        let name = format!("hip:{ordinal}");
        let none = |reason: String| Error::NoDevice { device: name.clone(), reason };
        let driver = drivers::hip_at(library).map_err(|e| none(e.to_string()))?;
        let names = || driver.devices.iter().map(|d| d.name.as_str()).collect::<Vec<_>>().join(", ");
        let Some(known) = driver.devices.get(ordinal as usize) else {
            return Err(none(match driver.devices.len() {
                0 => "the HIP runtime has no device".to_owned(),
                n => format!("the HIP runtime has {n}: {}", names()),
            }));
        };
        let api = Api::load(library).map_err(|e| none(e.to_string()))?;
        let device = ordinal as i32;
        let told = api.architecture(device).map_err(|status| Error::Driver {
            device: name.clone(),
            call: Properties::CALL,
            failure: api.failure(status),
        })?;
        let architecture = told
            .as_deref()
            .and_then(Architecture::parse)
            .ok_or_else(|| none(format!("hipGetDeviceProperties does not tell what chip {} is", known.name)))?;
        let target = Target::all()
            .find(|t| t.chip().name == architecture.chip)
            .ok_or_else(|| none(format!("{} is {architecture}, which Lathe makes no code for", known.name)))?;
        let context = Context::new(api, name, device, architecture);
        Ok(Self {
            memory: Memory::new(&context),
            default: State::default_stream(&context),
            modules: Arc::new(Modules { id: DeviceId::unique(), target, context }),
        })
    }
}

impl Device for Hip {
    fn name(&self) -> String {
        self.memory.context.name.clone()
    }

    fn id(&self) -> DeviceId {
        self.modules.id
    }

    fn target(&self) -> Target {
        self.modules.target
    }

    fn approximates(&self) -> bool {
        true
    }

    fn alloc(&self, bytes: u64) -> Result<u64, Error> {
        self.memory.alloc(bytes)
    }

    fn free(&self, address: u64) {
        self.memory.free(address);
    }

    fn retain(&self, address: u64) -> Option<u64> {
        self.memory.extents().retain(address)
    }

    fn write(&self, address: u64, bytes: &[u8]) -> Result<(), Error> {
        self.memory.write(address, bytes)
    }

    fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), Error> {
        self.memory.read(address, bytes)
    }

    fn launch(&self, compiled: &Compiled, args: &ArgBlock) -> Result<LaunchReport, Error> {
        let loaded = self.modules.loaded(compiled)?;
        let start = Instant::now();
        self.default.launch(&loaded, args)?;
        self.default.synchronize()?;
        Ok(LaunchReport { time: start.elapsed(), findings: vec![] })
    }

    fn resources(&self, compiled: &Compiled) -> Result<LoadedResources, Error> {
        self.modules.resources(compiled)
    }

    fn occupancy(&self, compiled: &Compiled) -> Result<Option<Occupancy>, Error> {
        self.modules.occupancy(compiled).map(Some)
    }

    fn asynchronous(&self) -> Option<&dyn Asynchronous> {
        Some(self)
    }

    fn sharing(&self) -> Option<&dyn Sharing> {
        Some(self)
    }
}

impl Asynchronous for Hip {
    fn queue(&self) -> Result<Box<dyn Queue>, Error> {
        Ok(Box::new(HipQueue::new(&self.modules, &self.memory)?))
    }

    fn mark(&self) -> Result<Box<dyn Mark>, Error> {
        Ok(Box::new(HipMark::timed(&self.memory.context)?))
    }

    fn host_memory(&self, bytes: usize) -> Result<Box<dyn HostMemory>, Error> {
        Ok(Box::new(HostPages::new(&self.memory.context, bytes)?))
    }

    fn recorder(&self) -> Result<Box<dyn Recorder>, Error> {
        Ok(Box::new(List::new(&self.modules, &self.memory)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_the_runtime_there_is_no_device() {
        let error = Hip::with_library(3, Path::new("/no/such/libamdhip64.so")).err().expect("no runtime");
        assert!(matches!(error, Error::NoDevice { .. }), "{error}");
        let start = "no device hip:3: /no/such/libamdhip64.so cannot be loaded: ";
        assert!(error.to_string().starts_with(start), "{error}");
    }
}
