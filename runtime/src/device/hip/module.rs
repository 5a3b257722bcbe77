//! Kernels loaded onto a GPU. An AMD code object is final: the runtime compiles nothing.

#![allow(unsafe_code)] // Calls of the runtime.

use std::any::Any;
use std::ffi::CString;
use std::sync::Arc;

use hip_sys::hiprt::{hipDeviceAttribute_t, hipFunction_attribute, hipFunction_t, hipModule_t};
use lathe_dsl::Target;
use lathe_dsl::artifact::Artifact;

use super::context::Context;
use crate::arch::Architecture;
use crate::device::inflight::Running;
use crate::device::{DeviceId, LoadedResources, Occupancy, wrong_code};
use crate::error::Error;
use crate::jit::{Code, Compiled};

/// Loads kernels for one device.
pub(super) struct Modules {
    pub id: DeviceId,
    pub target: Target,
    pub context: Arc<Context>,
}

/// A module of the runtime, unloaded when nobody runs its kernel any more.
struct Module {
    context: Arc<Context>,
    handle: hipModule_t,
    label: String,
}

// SAFETY: the runtime's handles may be used from any thread.
unsafe impl Send for Module {}
// SAFETY: as above; the runtime locks its own state.
unsafe impl Sync for Module {}

impl Running for Module {
    fn kernels(&self, list: &mut Vec<String>) {
        list.push(self.label.clone());
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        if let Ok(functions) = self.context.enter() {
            // SAFETY: the module belongs to this device; streams that run its kernel hold this.
            let _ = unsafe { (functions.hipModuleUnload)(self.handle) };
        }
    }
}

/// A kernel that can be launched.
pub(super) struct Loaded {
    pub function: hipFunction_t,
    /// Of the function's module, for the streams that run it.
    pub running: Arc<dyn Running>,
    /// Name and key.
    pub label: String,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub dynamic_lds: u32,
    resources: LoadedResources,
}

// SAFETY: the runtime's handles may be used from any thread; the module of the function lives as long as this.
unsafe impl Send for Loaded {}
// SAFETY: as above; the runtime locks its own state.
unsafe impl Sync for Loaded {}

impl Modules {
    /// The kernel, loaded now if it is the first time.
    pub(super) fn loaded(&self, compiled: &Compiled) -> Result<Arc<Loaded>, Error> {
        let wrong = |made_for: String| wrong_code(compiled, made_for, self.context.name.clone());
        let Code::Object(artifact) = compiled.code() else { return Err(wrong(format!("cpu:{}", compiled.target()))) };
        if artifact.target != self.target {
            return Err(wrong(artifact.target.to_string()));
        }
        let made = compiled.loaded(self.id, || {
            let loaded: Arc<dyn Any + Send + Sync> = Arc::new(self.load(compiled, artifact)?);
            Ok(loaded)
        })?;
        made.downcast().map_err(|_| wrong("another device's form".to_owned()))
    }

    fn load(&self, compiled: &Compiled, artifact: &Artifact) -> Result<Loaded, Error> {
        let (context, label) = (&self.context, compiled.label());
        let refused = |call: &'static str, why: String| Error::Driver {
            device: context.name.clone(),
            call,
            failure: format!("of {label}: {why}"),
        };
        // The runtime would only say that it has no code for the GPU.
        let made_for = Architecture::of_code(&artifact.code).map_err(|why| refused("hipModuleLoadData", why))?;
        let device = &context.architecture;
        if !made_for.runs_on(device) {
            return Err(wrong_code(compiled, made_for.to_string(), format!("{}, {device}", context.name)));
        }
        let functions = context.enter()?;
        let failed = |call| {
            let label = &label;
            move |status| context.error(call, Some(label), status)
        };
        let mut handle = std::ptr::null_mut();
        // SAFETY: writes one handle through a valid pointer; the image is an ELF file, which tells its own size, and whose content
        // was checked against its hash or was made in this process.
        unsafe { (functions.hipModuleLoadData)(&raw mut handle, artifact.code.as_ptr().cast()) }
            .result()
            .map_err(failed("hipModuleLoadData"))?;
        // From here on dropping it unloads the module.
        let module = Arc::new(Module { context: context.clone(), handle, label: label.clone() });
        let name = CString::new(artifact.symbol.as_str())
            .map_err(|_| refused("hipModuleGetFunction", "its entry point's name holds a zero byte".to_owned()))?;
        let mut function = std::ptr::null_mut();
        // SAFETY: writes one handle through a valid pointer; the module was just loaded, and the name ends in a zero byte.
        unsafe { (functions.hipModuleGetFunction)(&raw mut function, handle, name.as_ptr()) }
            .result()
            .map_err(failed("hipModuleGetFunction"))?;
        let (mut threads, attribute) = (0, hipFunction_attribute::HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK as u32);
        // SAFETY: writes one int through a valid pointer; the function is this module's.
        unsafe { (functions.hipFuncGetAttribute)(&raw mut threads, attribute, function) }
            .result()
            .map_err(failed("hipFuncGetAttribute"))?;
        // The compiler's own numbers are those that the code object tells the runtime.
        let resources =
            LoadedResources { max_block: u32::try_from(threads).ok(), ..LoadedResources::of_record(compiled) };
        let launch = &compiled.kernel().launch;
        let (grid, block, dynamic_lds) = (launch.grid, launch.block, resources.dynamic_lds_bytes);
        Ok(Loaded { function, running: module, label, grid, block, dynamic_lds, resources })
    }

    pub(super) fn resources(&self, compiled: &Compiled) -> Result<LoadedResources, Error> {
        Ok(self.loaded(compiled)?.resources)
    }

    pub(super) fn occupancy(&self, compiled: &Compiled) -> Result<Occupancy, Error> {
        let (context, loaded) = (&self.context, self.loaded(compiled)?);
        let functions = context.enter()?;
        let (mut blocks, threads) = (0, loaded.block.iter().product::<u32>());
        // SAFETY: writes one int through a valid pointer; the function's module is loaded.
        unsafe {
            let lds = loaded.dynamic_lds as usize;
            let blocks = &raw mut blocks;
            (functions.hipModuleOccupancyMaxActiveBlocksPerMultiprocessor)(blocks, loaded.function, threads as i32, lds)
        }
        .result()
        .map_err(|e| context.error("hipModuleOccupancyMaxActiveBlocksPerMultiprocessor", Some(&loaded.label), e))?;
        let units = context
            .api
            .attribute(hipDeviceAttribute_t::hipDeviceAttributeMultiprocessorCount, context.device)
            .map_err(context.failed("hipDeviceGetAttribute"))?;
        let number = |n: i32| u32::try_from(n).unwrap_or(0);
        Ok(Occupancy { blocks_per_unit: number(blocks), units: number(units) })
    }
}
