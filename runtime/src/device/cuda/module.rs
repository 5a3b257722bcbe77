//! Kernels loaded into a GPU's context. The driver's compiler turns PTX into the chip's own code (a cubin) once: the disk cache
//! keeps that.

#![allow(unsafe_code)] // Calls of the driver.

use std::any::Any;
use std::ffi::{CString, c_char, c_uint, c_void};
use std::sync::Arc;

use cudarc::driver::{DriverError, result, sys};
use lathe_dsl::Target;
use lathe_dsl::artifact::Artifact;

use super::context::{Context, failure};
use super::ptx::PtxVersion;
use crate::cache::DiskCache;
use crate::device::inflight::Running;
use crate::device::{DeviceId, LoadedResources, Occupancy, wrong_code};
use crate::error::Error;
use crate::jit::{Code, Compiled};
use crate::key::DiskKey;

/// Loads kernels for one device.
pub(super) struct Modules {
    pub id: DeviceId,
    pub target: Target,
    pub context: Arc<Context>,
    pub cache: Option<Arc<DiskCache>>,
}

/// A module of the driver, unloaded when nobody runs its kernel any more.
struct Module {
    context: Arc<Context>,
    handle: sys::CUmodule,
    label: String,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for Module {}
// SAFETY: as above; the driver locks its own state.
unsafe impl Sync for Module {}

impl Running for Module {
    fn kernels(&self, list: &mut Vec<String>) {
        list.push(self.label.clone());
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            // SAFETY: the module belongs to this context; streams that run its kernel hold this.
            let _ = unsafe { result::module::unload(self.handle) };
        }
    }
}

/// A kernel that can be launched.
pub(super) struct Loaded {
    pub function: sys::CUfunction,
    /// Of the function's module, for the streams that run it.
    pub running: Arc<dyn Running>,
    /// Name and key.
    pub label: String,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub dynamic_lds: u32,
    resources: LoadedResources,
}

// SAFETY: the driver's handles may be used from any thread; the module of the function lives as long as this.
unsafe impl Send for Loaded {}
// SAFETY: as above; the driver locks its own state.
unsafe impl Sync for Loaded {}

/// Where the driver's compiler writes what it objects to.
struct Log([c_char; 4096]);

impl Log {
    const OPTIONS: [sys::CUjit_option; 2] =
        [sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER, sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];

    fn new() -> Box<Self> {
        Box::new(Self([0; 4096]))
    }

    /// Values of [`Log::OPTIONS`], which point into this. A number is passed in place of a pointer.
    fn values(&mut self) -> [*mut c_void; 2] {
        [self.0.as_mut_ptr().cast(), std::ptr::without_provenance_mut(self.0.len())]
    }

    /// What was written, on one line.
    fn text(&self) -> String {
        let bytes: Vec<u8> = self.0.iter().take_while(|c| **c != 0).map(|c| *c as u8).collect();
        String::from_utf8_lossy(&bytes).split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// A failed call of the driver's compiler.
struct Refused {
    call: &'static str,
    error: DriverError,
    log: String,
}

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
        context.enter()?;
        let handle = self.module(artifact).map_err(|refused| self.refusal(&label, artifact, &refused))?;
        // From here on dropping it unloads the module.
        let module = Arc::new(Module { context: context.clone(), handle, label: label.clone() });
        let failed = |call| {
            let label = &label;
            move |e| context.error(call, Some(label), e)
        };
        let name = CString::new(artifact.symbol.as_str()).map_err(|_| Error::Driver {
            device: context.name.clone(),
            call: "cuModuleGetFunction",
            failure: format!("of {label}: its entry point's name holds a zero byte"),
        })?;
        // SAFETY: the module was just loaded.
        let function = unsafe { result::module::get_function(handle, name) }.map_err(failed("cuModuleGetFunction"))?;
        let dynamic_lds = artifact.record.resources.dynamic_lds_bytes;
        if dynamic_lds > 0 {
            let attribute = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            // SAFETY: the function is this module's.
            unsafe { result::function::set_function_attribute(function, attribute, dynamic_lds as i32) }
                .map_err(failed("cuFuncSetAttribute"))?;
        }
        let attribute = |attribute| {
            // SAFETY: the function is this module's.
            unsafe { result::function::get_function_attribute(function, attribute) }
                .map(|value| u32::try_from(value).unwrap_or(0))
                .map_err(failed("cuFuncGetAttribute"))
        };
        use sys::CUfunction_attribute as A;
        // Asking also loads a function that the driver would load at its first launch, which may be within a capture.
        let resources = LoadedResources {
            registers: Some(attribute(A::CU_FUNC_ATTRIBUTE_NUM_REGS)?),
            local_bytes: Some(attribute(A::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?),
            static_lds_bytes: attribute(A::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
            dynamic_lds_bytes: dynamic_lds,
            max_block: Some(attribute(A::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?),
            ..LoadedResources::default()
        };
        let launch = &compiled.kernel().launch;
        let (grid, block) = (launch.grid, launch.block);
        Ok(Loaded { function, running: module, label, grid, block, dynamic_lds, resources })
    }

    /// The module, from a cubin if there is a cache.
    fn module(&self, artifact: &Artifact) -> Result<sys::CUmodule, Refused> {
        let Some(cache) = &self.cache else { return load_image(&terminated(&artifact.code)) };
        let key = self.cubin_key(artifact);
        if let Some(stored) = cache.get(&key).filter(|stored| is_cubin(&stored.code)) {
            match load_image(&stored.code) {
                Ok(module) => return Ok(module),
                // Sound, but the driver does not take it: made anew, as if it were damaged.
                Err(refused) => {
                    tracing::warn!(%key, call = refused.call, error = failure(refused.error), "cubin not loaded");
                }
            }
        }
        let cubin = link(&terminated(&artifact.code))?;
        cache.put(&key, &Artifact { code: cubin.clone(), ..artifact.clone() });
        load_image(&cubin)
    }

    fn cubin_key(&self, artifact: &Artifact) -> DiskKey {
        let context = &self.context;
        let driver = format!("{} {}", context.driver_version, context.driver_build);
        DiskKey::of_cubin(&artifact.code, self.target.chip().name, &driver)
    }

    /// What to tell of a kernel that the driver did not take.
    fn refusal(&self, label: &str, artifact: &Artifact, refused: &Refused) -> Error {
        let driver = self.context.driver_version;
        let ptx = PtxVersion::of_module(&artifact.code);
        let unreadable = ptx.filter(|ptx| {
            refused.error.0 == sys::CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION
                || PtxVersion::newest_of(driver).is_none_or(|newest| newest < *ptx)
        });
        let mut about = label.to_owned();
        if let Some(ptx) = unreadable {
            about = format!("{about}, {}", ptx.unreadable(driver));
        }
        if !refused.log.is_empty() {
            about = format!("{about}: {}", refused.log);
        }
        self.context.error(refused.call, Some(&about), refused.error)
    }

    pub(super) fn resources(&self, compiled: &Compiled) -> Result<LoadedResources, Error> {
        Ok(self.loaded(compiled)?.resources)
    }

    pub(super) fn occupancy(&self, compiled: &Compiled) -> Result<Occupancy, Error> {
        let (context, loaded) = (&self.context, self.loaded(compiled)?);
        context.enter()?;
        let threads = loaded.block.iter().product::<u32>();
        // SAFETY: the function's module is loaded.
        let blocks = unsafe {
            let lds = loaded.dynamic_lds as usize;
            result::occupancy::max_active_block_per_multiprocessor(loaded.function, threads as i32, lds)
        }
        .map_err(|e| context.error("cuOccupancyMaxActiveBlocksPerMultiprocessor", Some(&loaded.label), e))?;
        let attribute = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
        // SAFETY: the device is one that the driver gave.
        let units = unsafe { result::device::get_attribute(context.device, attribute) }
            .map_err(context.failed("cuDeviceGetAttribute"))?;
        let number = |n: i32| u32::try_from(n).unwrap_or(0);
        Ok(Occupancy { blocks_per_unit: number(blocks), units: number(units) })
    }
}

/// PTX as the driver wants it.
fn terminated(ptx: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(ptx.len() + 1);
    bytes.extend_from_slice(ptx);
    bytes.push(0);
    bytes
}

/// Whether it is an ELF file, as far as its first bytes tell: the driver takes a cubin's size from itself.
fn is_cubin(code: &[u8]) -> bool {
    code.len() > 64 && code.starts_with(b"\x7fELF")
}

/// Loads PTX that ends in a zero byte, or a cubin, into the current context.
fn load_image(image: &[u8]) -> Result<sys::CUmodule, Refused> {
    let mut log = Log::new();
    let (mut options, mut values) = (Log::OPTIONS, log.values());
    let mut module = std::ptr::null_mut();
    // SAFETY: the image is a text that ends in a zero byte or an ELF file whose content was checked against its hash or was made
    // by the driver; there are as many options as values, and the log lives beyond the call and is as long as said.
    let loaded = unsafe {
        sys::cuModuleLoadDataEx(
            &raw mut module,
            image.as_ptr().cast(),
            options.len() as c_uint,
            options.as_mut_ptr(),
            values.as_mut_ptr(),
        )
    };
    match loaded.result() {
        Ok(()) => Ok(module),
        Err(error) => Err(Refused { call: "cuModuleLoadDataEx", error, log: log.text() }),
    }
}

/// A linker of the driver, destroyed with what it made.
struct Linker(sys::CUlinkState);

impl Drop for Linker {
    fn drop(&mut self) {
        // SAFETY: it was created once.
        let _ = unsafe { sys::cuLinkDestroy(self.0) };
    }
}

/// Compiles PTX that ends in a zero byte for the device of the current context.
fn link(ptx: &[u8]) -> Result<Vec<u8>, Refused> {
    let mut log = Log::new();
    let (mut options, mut values) = (Log::OPTIONS, log.values());
    let mut state = std::ptr::null_mut();
    // SAFETY: there are as many options as values; they and the log live longer than the linker, which is dropped first.
    let created = unsafe {
        sys::cuLinkCreate_v2(options.len() as c_uint, options.as_mut_ptr(), values.as_mut_ptr(), &raw mut state)
    };
    created.result().map_err(|error| Refused { call: "cuLinkCreate", error, log: log.text() })?;
    let linker = Linker(state);
    // SAFETY: the text ends in a zero byte and is only read, though the signature does not say so; so is its name; there are
    // no options.
    let added = unsafe {
        sys::cuLinkAddData_v2(
            linker.0,
            sys::CUjitInputType::CU_JIT_INPUT_PTX,
            ptx.as_ptr().cast_mut().cast(),
            ptx.len(),
            c"lathe".as_ptr(),
            0,
            std::ptr::null_mut(),
            std::ptr::null_mut(),
        )
    };
    added.result().map_err(|error| Refused { call: "cuLinkAddData", error, log: log.text() })?;
    let (mut cubin, mut size) = (std::ptr::null_mut::<c_void>(), 0usize);
    // SAFETY: writes a pointer and a size through valid pointers.
    let completed = unsafe { sys::cuLinkComplete(linker.0, &raw mut cubin, &raw mut size) };
    completed.result().map_err(|error| Refused { call: "cuLinkComplete", error, log: log.text() })?;
    // SAFETY: the linker owns so many bytes there until it is destroyed.
    Ok(unsafe { std::slice::from_raw_parts(cubin.cast::<u8>(), size) }.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_one_line() {
        let mut log = Log::new();
        assert_eq!(log.text(), "");
        for (slot, byte) in log.0.iter_mut().zip(b"ptxas fatal : Unresolved\n  extern\t'f'\n") {
            *slot = *byte as c_char;
        }
        assert_eq!(log.text(), "ptxas fatal : Unresolved extern 'f'");
        let values = log.values();
        assert_eq!(values[1].addr(), 4096);
        assert_eq!(values[0].addr(), log.0.as_ptr().addr());
    }

    #[test]
    fn a_cubin_is_told_from_text() {
        assert!(is_cubin(&[b"\x7fELF".as_slice(), &[0; 61]].concat()));
        assert!(!is_cubin(b"\x7fELF"));
        assert!(!is_cubin(&[b'.'; 100]));
        assert_eq!(terminated(b".version"), b".version\0");
    }
}
