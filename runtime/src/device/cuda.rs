//! Device `cuda`: an NVIDIA GPU through the driver API, which is loaded at run time.

#![allow(unsafe_code)] // Calls of the driver.

use std::any::Any;
use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_uint, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use cudarc::driver::{DriverError, result, sys};
use lathe_dsl::Target;
use lathe_dsl::artifact::Artifact;
use lathe_dsl::ir::Kernel;

use super::{Device, DeviceId, LaunchReport};
use crate::drivers;
use crate::error::Error;
use crate::jit::{Code, Compiled};
use crate::launch::ArgBlock;

/// The primary context of a GPU, kept for as long as something of it is in use.
struct Context {
    /// As the command line spells it.
    name: String,
    device: sys::CUdevice,
    handle: sys::CUcontext,
}

// SAFETY: the driver's handles may be used from any thread; the context is made current before each call.
unsafe impl Send for Context {}
// SAFETY: as above; the driver locks its own state.
unsafe impl Sync for Context {}

impl Context {
    fn failed(&self, call: &'static str) -> impl Fn(DriverError) -> Error {
        let device = self.name.clone();
        move |e| Error::Driver { device: device.clone(), call, failure: failure(e) }
    }

    /// Makes it this thread's.
    fn enter(&self) -> Result<(), Error> {
        // SAFETY: the handle is a context that is retained until this is dropped.
        unsafe { result::ctx::set_current(self.handle) }.map_err(self.failed("cuCtxSetCurrent"))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: it was retained once, and nothing of it is in use: modules hold it, and the device's memory is gone.
        // A driver that fails here has nobody to tell.
        let _ = unsafe { result::primary_ctx::release(self.device) };
    }
}

/// What the driver says about an error: `CUDA_ERROR_INVALID_VALUE, invalid argument`.
fn failure(error: DriverError) -> String {
    let name = error.error_name().map_or_else(|_| format!("{:?}", error.0), |n| n.to_string_lossy().into_owned());
    match error.error_string() {
        Ok(text) => format!("{name}, {}", text.to_string_lossy()),
        Err(_) => name,
    }
}

/// A kernel's module, loaded into a context.
struct Loaded {
    context: Arc<Context>,
    module: sys::CUmodule,
    function: sys::CUfunction,
    dynamic_lds: u32,
}

// SAFETY: as of [`Context`].
unsafe impl Send for Loaded {}
// SAFETY: as of [`Context`].
unsafe impl Sync for Loaded {}

impl Drop for Loaded {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            // SAFETY: the module belongs to this context, and its launches were waited for.
            let _ = unsafe { result::module::unload(self.module) };
        }
    }
}

impl Loaded {
    fn new(context: &Arc<Context>, artifact: &Artifact) -> Result<Self, Error> {
        let kernel = &artifact.record.kernel;
        let refused = |call, failure| Error::Driver { device: context.name.clone(), call, failure };
        context.enter()?;
        let ptx = CString::new(artifact.code.as_slice())
            .map_err(|_| refused("cuModuleLoadDataEx", format!("the PTX of `{kernel}` holds a zero byte")))?;
        let mut log = [0 as c_char; 4096];
        let mut options =
            [sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER, sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
        let mut values = [log.as_mut_ptr().cast::<c_void>(), log.len() as *mut c_void];
        let mut module = std::ptr::null_mut();
        // SAFETY: the PTX ends in a zero byte; there are as many options as values, the log lives beyond the call and is as
        // long as said.
        let loaded = unsafe {
            sys::cuModuleLoadDataEx(
                &raw mut module,
                ptx.as_ptr().cast(),
                options.len() as c_uint,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        if let Err(e) = loaded.result() {
            let bytes: Vec<u8> = log.iter().take_while(|c| **c != 0).map(|c| *c as u8).collect();
            let said = String::from_utf8_lossy(&bytes);
            let said = if said.is_empty() { String::new() } else { format!("; {}", said.trim()) };
            return Err(refused("cuModuleLoadDataEx", format!("of `{kernel}`: {}{said}", failure(e))));
        }
        // From here on dropping it unloads the module.
        let dynamic_lds = artifact.record.resources.dynamic_lds_bytes;
        let mut this = Self { context: context.clone(), module, function: std::ptr::null_mut(), dynamic_lds };
        let name = CString::new(artifact.symbol.as_str())
            .map_err(|_| refused("cuModuleGetFunction", format!("`{}` holds a zero byte", artifact.symbol)))?;
        // SAFETY: the module was just loaded.
        this.function = unsafe { result::module::get_function(module, name) }
            .map_err(|e| refused("cuModuleGetFunction", format!("of `{}`: {}", artifact.symbol, failure(e))))?;
        if dynamic_lds > 0 {
            let attribute = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            // SAFETY: the function is this module's.
            unsafe { result::function::set_function_attribute(this.function, attribute, dynamic_lds as i32) }.map_err(
                |e| refused("cuFuncSetAttribute", format!("{dynamic_lds} B of LDS for `{kernel}`: {}", failure(e))),
            )?;
        }
        Ok(this)
    }
}

/// An NVIDIA GPU.
pub struct Cuda {
    id: DeviceId,
    target: Target,
    context: Arc<Context>,
    /// Extents of what is allocated, by address.
    allocations: Mutex<BTreeMap<u64, u64>>,
}

impl Cuda {
    /// The GPU with this number, in the driver's order. Its primary context is used, so other libraries of the process
    /// share its memory.
    ///
    /// # Errors
    /// [`Error::NoDevice`] if there is no driver or no such GPU, or if Lathe makes no code for it.
    pub fn new(ordinal: u32) -> Result<Self, Error> {
        let name = format!("cuda:{ordinal}");
        let none = |reason: String| Error::NoDevice { device: name.clone(), reason };
        let driver = drivers::cuda().map_err(|e| none(e.to_string()))?;
        if driver.devices.len() <= ordinal as usize {
            return Err(none(match driver.devices.len() {
                0 => "the driver has no device".to_owned(),
                n => format!("the driver has {n}: {}", driver.devices.join(", ")),
            }));
        }
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
        let target = Target::all().find(|t| t.chip().name.trim_end_matches('a') == exact).ok_or_else(|| {
            none(format!("{} is {exact}, which Lathe makes no code for", driver.devices[ordinal as usize]))
        })?;
        // SAFETY: the device is one that the driver gave.
        let handle = unsafe { result::primary_ctx::retain(device) }.map_err(failed("cuDevicePrimaryCtxRetain"))?;
        let context = Arc::new(Context { name, device, handle });
        Ok(Self { id: DeviceId::unique(), target, context, allocations: Mutex::default() })
    }

    fn allocations(&self) -> MutexGuard<'_, BTreeMap<u64, u64>> {
        self.allocations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An error unless the range lies in one allocation.
    fn check(&self, address: u64, bytes: u64) -> Result<(), Error> {
        let allocations = self.allocations();
        let found = allocations.range(..=address).next_back();
        let inside = found.is_some_and(|(start, len)| address - start <= *len && bytes <= len - (address - start));
        if inside { Ok(()) } else { Err(Error::BadAddress { device: self.name(), address, bytes }) }
    }

    fn loaded(&self, compiled: &Compiled) -> Result<Arc<Loaded>, Error> {
        let kernel = compiled.kernel();
        let wrong = |compiled: String| Error::WrongCode { kernel: kernel.name.clone(), compiled, device: self.name() };
        let Code::Object(artifact) = compiled.code() else { return Err(wrong(format!("cpu:{}", compiled.target()))) };
        if artifact.target != self.target {
            return Err(wrong(artifact.target.to_string()));
        }
        let made = compiled.loaded(self.id, || {
            let loaded: Arc<dyn Any + Send + Sync> = Arc::new(Loaded::new(&self.context, artifact)?);
            Ok(loaded)
        })?;
        made.downcast().map_err(|_| wrong("another device's form".to_owned()))
    }

    /// Puts a launch into the default stream.
    fn start(&self, kernel: &Kernel, loaded: &Loaded, args: &ArgBlock) -> Result<(), Error> {
        let bytes = args.bytes();
        let mut size = bytes.len();
        let mut extra = [
            // CU_LAUNCH_PARAM_BUFFER_POINTER, CU_LAUNCH_PARAM_BUFFER_SIZE, CU_LAUNCH_PARAM_END.
            std::ptr::without_provenance_mut(1),
            bytes.as_ptr().cast_mut().cast::<c_void>(),
            std::ptr::without_provenance_mut(2),
            (&raw mut size).cast(),
            std::ptr::null_mut(),
        ];
        let ([gx, gy, gz], [bx, by, bz]) = (kernel.launch.grid, kernel.launch.block);
        // SAFETY: the function belongs to the current context; the argument block is laid out as its parameters are and is
        // copied before the call returns; the list ends as the driver wants it.
        unsafe {
            sys::cuLaunchKernel(
                loaded.function,
                gx,
                gy,
                gz,
                bx,
                by,
                bz,
                loaded.dynamic_lds,
                std::ptr::null_mut(),
                std::ptr::null_mut(),
                extra.as_mut_ptr(),
            )
        }
        .result()
        .map_err(|e| self.kernel_failed(kernel, "cuLaunchKernel", e))
    }

    fn kernel_failed(&self, kernel: &Kernel, call: &'static str, error: DriverError) -> Error {
        Error::Driver { device: self.name(), call, failure: format!("of `{}`: {}", kernel.name, failure(error)) }
    }
}

impl Drop for Cuda {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            for address in std::mem::take(&mut *self.allocations()).into_keys() {
                // SAFETY: it came from this context's `malloc_sync` and was not freed.
                let _ = unsafe { result::free_sync(address) };
            }
        }
    }
}

impl Device for Cuda {
    fn name(&self) -> String {
        self.context.name.clone()
    }

    fn id(&self) -> DeviceId {
        self.id
    }

    fn target(&self) -> Target {
        self.target
    }

    fn approximates(&self) -> bool {
        true
    }

    fn alloc(&self, bytes: u64) -> Result<u64, Error> {
        let out_of_memory = || Error::OutOfMemory { device: self.name(), bytes };
        self.context.enter()?;
        // No driver gives an empty one; an address is wanted all the same.
        let size = usize::try_from(bytes.max(1)).map_err(|_| out_of_memory())?;
        // SAFETY: the context is current.
        let address = unsafe { result::malloc_sync(size) }.map_err(|e| match e.0 {
            sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => out_of_memory(),
            _ => self.context.failed("cuMemAlloc")(e),
        })?;
        self.allocations().insert(address, bytes);
        Ok(address)
    }

    fn free(&self, address: u64) {
        let known = self.allocations().remove(&address).is_some();
        if known && self.context.enter().is_ok() {
            // SAFETY: it came from this context's `malloc_sync` and is freed once.
            let _ = unsafe { result::free_sync(address) };
        }
    }

    fn write(&self, address: u64, bytes: &[u8]) -> Result<(), Error> {
        self.check(address, bytes.len() as u64)?;
        if bytes.is_empty() {
            return Ok(());
        }
        self.context.enter()?;
        // SAFETY: the range lies in one allocation.
        unsafe { result::memcpy_htod_sync(address, bytes) }.map_err(self.context.failed("cuMemcpyHtoD"))
    }

    fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), Error> {
        self.check(address, bytes.len() as u64)?;
        if bytes.is_empty() {
            return Ok(());
        }
        self.context.enter()?;
        // SAFETY: the range lies in one allocation.
        unsafe { result::memcpy_dtoh_sync(bytes, address) }.map_err(self.context.failed("cuMemcpyDtoH"))
    }

    fn launch(&self, compiled: &Compiled, args: &ArgBlock) -> Result<LaunchReport, Error> {
        let loaded = self.loaded(compiled)?;
        let kernel = compiled.kernel();
        self.context.enter()?;
        let start = Instant::now();
        self.start(kernel, &loaded, args)?;
        result::ctx::synchronize().map_err(|e| self.kernel_failed(kernel, "cuCtxSynchronize", e))?;
        Ok(LaunchReport { time: start.elapsed(), findings: vec![] })
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
