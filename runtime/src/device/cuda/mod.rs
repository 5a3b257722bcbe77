//! Device `cuda`: an NVIDIA GPU through the driver API, which is loaded at run time.

#![allow(unsafe_code)] // Calls of the driver.

mod context;
mod graph;
mod image;
mod memory;
mod module;
mod peer;
mod ptx;
mod stream;

use std::sync::Arc;
use std::time::Instant;

use cudarc::driver::{result, sys};
use lathe_dsl::Target;
use lathe_dsl::numerics::MmaRounding;

use super::driver::{Asynchronous, HostMemory, Images, Mark, Queue, Recorder, Sharing};
use super::{Device, DeviceId, LaunchReport, LoadedResources, Occupancy};
use crate::cache::DiskCache;
use crate::drivers;
use crate::error::Error;
use crate::jit::Compiled;
use crate::launch::ArgBlock;
use context::{Context, failure};
use graph::Capture;
use image::Gallery;
use memory::{HostPages, Memory};
use module::Modules;
use stream::{CudaMark, CudaQueue, State};

/// An NVIDIA GPU.
pub struct Cuda {
    modules: Arc<Modules>,
    memory: Arc<Memory>,
    images: Gallery,
    /// What [`Device::launch`] uses.
    default: Arc<State>,
}

impl Cuda {
    /// The GPU with this number, in the driver's order. Its primary context is used, so other libraries of the process
    /// share its memory.
    ///
    /// # Errors
    /// [`Error::NoDevice`] if there is no driver or no such GPU, or if Lathe makes no code for it.
    pub fn new(ordinal: u32) -> Result<Self, Error> {
        Self::open(ordinal, None)
    }

    /// As [`Cuda::new`]; what the driver's compiler makes of PTX is kept in `cache`, by the PTX, the chip and the version of the
    /// driver, so that it runs once for each.
    ///
    /// # Errors
    /// As [`Cuda::new`].
    pub fn with_cache(ordinal: u32, cache: Arc<DiskCache>) -> Result<Self, Error> {
        Self::open(ordinal, Some(cache))
    }

    /// How many GPUs the driver has; 0 if there is no driver.
    pub fn count() -> u32 {
        drivers::cuda().map_or(0, |driver| driver.devices.len() as u32)
    }

    fn open(ordinal: u32, cache: Option<Arc<DiskCache>>) -> Result<Self, Error> {
        let name = format!("cuda:{ordinal}");
        let none = |reason: String| Error::NoDevice { device: name.clone(), reason };
        let driver = drivers::cuda().map_err(|e| none(e.to_string()))?;
        let names = || driver.devices.iter().map(|d| d.name.as_str()).collect::<Vec<_>>().join(", ");
        let Some(known) = driver.devices.get(ordinal as usize) else {
            return Err(none(match driver.devices.len() {
                0 => "the driver has no device".to_owned(),
                n => format!("the driver has {n}: {}", names()),
            }));
        };
        let failed = |call: &'static str| {
            let device = name.clone();
            move |e| Error::Driver { device, call, failure: failure(e) }
        };
        result::init().map_err(failed("cuInit"))?;
        let device = result::device::get(ordinal as i32).map_err(failed("cuDeviceGet"))?;
        let attribute = |attribute| {
            // SAFETY: the device is one that the driver gave.
            unsafe { result::device::get_attribute(device, attribute) }.map_err(failed("cuDeviceGetAttribute"))
        };
        let major = attribute(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        let minor = attribute(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        let exact = format!("sm_{major}{minor}");
        let target = Target::all()
            .find(|t| t.chip().name.trim_end_matches('a') == exact)
            .ok_or_else(|| none(format!("{} is {exact}, which Lathe makes no code for", known.name)))?;
        let build = driver.build.clone().unwrap_or_default();
        let context =
            Context::retain(name.clone(), device, driver.version, build).map_err(failed("cuDevicePrimaryCtxRetain"))?;
        Ok(Self {
            memory: Memory::new(&context),
            images: Gallery::new(&context),
            default: State::default_stream(&context),
            modules: Arc::new(Modules { id: DeviceId::unique(), target, context, cache }),
        })
    }

    fn context(&self) -> &Arc<Context> {
        &self.memory.context
    }
}

impl Device for Cuda {
    fn name(&self) -> String {
        self.context().name.clone()
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

    fn mma_rounding(&self) -> MmaRounding {
        MmaRounding::of(self.target()).unwrap_or_default()
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
        let (context, loaded) = (self.context(), self.modules.loaded(compiled)?);
        context.enter()?;
        let start = Instant::now();
        self.default
            .give(Some(&loaded.running), |stream| stream::launch(stream, &loaded, args))
            .map_err(|e| context.error("cuLaunchKernel", Some(&loaded.label), e))?;
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

    fn images(&self) -> Option<&dyn Images> {
        Some(&self.images)
    }

    fn sharing(&self) -> Option<&dyn Sharing> {
        Some(self)
    }
}

impl Asynchronous for Cuda {
    fn queue(&self) -> Result<Box<dyn Queue>, Error> {
        Ok(Box::new(CudaQueue::new(&self.modules, &self.memory)?))
    }

    fn mark(&self) -> Result<Box<dyn Mark>, Error> {
        Ok(Box::new(CudaMark::timed(self.context())?))
    }

    fn host_memory(&self, bytes: usize) -> Result<Box<dyn HostMemory>, Error> {
        Ok(Box::new(HostPages::new(self.context(), bytes)?))
    }

    fn recorder(&self) -> Result<Box<dyn Recorder>, Error> {
        Ok(Box::new(Capture::new(&self.modules, &self.memory)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without a driver or GPU it says so; with one it keeps memory apart and finds ranges that are not its own.
    #[test]
    fn memory_or_the_reason_why_there_is_none() {
        let cuda = match Cuda::new(0) {
            Ok(cuda) => cuda,
            Err(error) => {
                assert!(matches!(error, Error::NoDevice { .. }), "{error}");
                assert!(error.to_string().starts_with("no device cuda:0: "), "{error}");
                println!("skipped: {error}");
                return;
            }
        };
        let a = cuda.alloc(10).unwrap();
        cuda.write(a, &[7; 10]).unwrap();
        let mut back = [0; 4];
        cuda.read(a + 6, &mut back).unwrap();
        assert_eq!(back, [7; 4]);
        assert!(matches!(cuda.read(a + 7, &mut back), Err(Error::BadAddress { .. })));
        cuda.free(a);
        assert!(matches!(cuda.write(a, &back), Err(Error::BadAddress { .. })));
        assert!(matches!(cuda.alloc(1 << 50), Err(Error::OutOfMemory { .. })));
        let far = Cuda::new(1000).map(|_| ()).unwrap_err();
        assert!(far.to_string().starts_with("no device cuda:1000: the driver has"), "{far}");
    }
}
