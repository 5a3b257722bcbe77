//! The functions of AMD's HIP runtime that the device calls, found when the library is loaded. Types and numbers are hip-sys's; each of
//! them is the same in HIP 5, 6 and 7.

#![allow(unsafe_code)] // Calls into AMD's library.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fmt;
use std::mem::ManuallyDrop;
use std::path::Path;
use std::sync::Arc;

use hip_sys::hiprt::{self, hipError_t, hipEvent_t, hipFunction_t, hipIpcMemHandle_t, hipModule_t, hipStream_t};
use libloading::Library;

use crate::arch::Properties;
use crate::drivers::{self, NoDriver};

/// What a function returned. Not hip-sys's enumeration: a newer runtime may have errors that it does not know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub(super) struct Status(c_uint);

impl Status {
    /// An error unless the function did what it should.
    pub(super) fn result(self) -> Result<(), Status> {
        if self.is(hipError_t::hipSuccess) { Ok(()) } else { Err(self) }
    }

    pub(super) fn is(self, error: hipError_t) -> bool {
        self.0 == error as c_uint
    }

    /// Whether nothing that comes after it on the device can be relied upon.
    pub(super) fn is_sticky(self) -> bool {
        [
            hipError_t::hipErrorECCNotCorrectable,
            hipError_t::hipErrorIllegalAddress,
            hipError_t::hipErrorLaunchTimeOut,
            hipError_t::hipErrorAssert,
            hipError_t::hipErrorLaunchFailure,
        ]
        .into_iter()
        .any(|error| self.is(error))
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "returned {}", self.0)
    }
}

macro_rules! functions {
    ($($name:ident: ($($parameter:ty),*) $(-> $result:ty)?;)*) => {
        /// By the names of AMD's header. Each needs what that header says of it.
        #[allow(non_snake_case)]
        pub(super) struct Functions {
            $(pub $name: unsafe extern "C" fn($($parameter),*) -> functions!(@ $($result)?),)*
        }

        impl Functions {
            fn of(library: &Library, missing: impl Fn(&'static str, libloading::Error) -> NoDriver) -> Result<Self, NoDriver> {
                Ok(Self {
                    $($name: {
                        type Signature = unsafe extern "C" fn($($parameter),*) -> functions!(@ $($result)?);
                        // SAFETY: AMD's header gives the function this signature in every version that is looked for.
                        *unsafe { library.get::<Signature>(concat!(stringify!($name), "\0").as_bytes()) }
                            .map_err(|e| missing(stringify!($name), e))?
                    },)*
                })
            }
        }
    };
    (@) => { Status };
    (@ $result:ty) => { $result };
}

functions! {
    hipInit: (c_uint);
    hipSetDevice: (c_int);
    hipDeviceGetAttribute: (*mut c_int, c_uint, c_int);
    hipGetErrorName: (Status) -> *const c_char;
    hipGetErrorString: (Status) -> *const c_char;
    hipMalloc: (*mut *mut c_void, usize);
    hipExtMallocWithFlags: (*mut *mut c_void, usize, c_uint);
    hipFree: (*mut c_void);
    hipHostMalloc: (*mut *mut c_void, usize, c_uint);
    hipHostFree: (*mut c_void);
    hipMemset: (*mut c_void, c_int, usize);
    hipMemcpy: (*mut c_void, *const c_void, usize, c_uint);
    hipMemcpyAsync: (*mut c_void, *const c_void, usize, c_uint, hipStream_t);
    hipStreamCreateWithFlags: (*mut hipStream_t, c_uint);
    hipStreamDestroy: (hipStream_t);
    hipStreamQuery: (hipStream_t);
    hipStreamSynchronize: (hipStream_t);
    hipStreamWaitEvent: (hipStream_t, hipEvent_t, c_uint);
    hipEventCreateWithFlags: (*mut hipEvent_t, c_uint);
    hipEventDestroy: (hipEvent_t);
    hipEventRecord: (hipEvent_t, hipStream_t);
    hipEventQuery: (hipEvent_t);
    hipEventSynchronize: (hipEvent_t);
    hipEventElapsedTime: (*mut f32, hipEvent_t, hipEvent_t);
    hipModuleLoadData: (*mut hipModule_t, *const c_void);
    hipModuleUnload: (hipModule_t);
    hipModuleGetFunction: (*mut hipFunction_t, hipModule_t, *const c_char);
    hipModuleLaunchKernel: (
        hipFunction_t, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, hipStream_t, *mut *mut c_void, *mut *mut c_void
    );
    hipModuleOccupancyMaxActiveBlocksPerMultiprocessor: (*mut c_int, hipFunction_t, c_int, usize);
    hipDeviceCanAccessPeer: (*mut c_int, c_int, c_int);
    hipDeviceEnablePeerAccess: (c_int, c_uint);
    hipIpcGetMemHandle: (*mut hipIpcMemHandle_t, *mut c_void);
    hipIpcOpenMemHandle: (*mut *mut c_void, hipIpcMemHandle_t, c_uint);
    hipIpcCloseMemHandle: (*mut c_void);
    hipMemGetAddressRange: (*mut *mut c_void, *mut usize, *mut c_void);
    hipFuncGetAttribute: (*mut c_int, c_uint, hipFunction_t);
}

/// The loaded runtime.
pub(super) struct Api {
    pub functions: Functions,
    properties: Properties,
    /// Kept loaded, as [`drivers::load_hip`] says.
    _library: ManuallyDrop<Library>,
}

impl Api {
    /// Loads `library`, or what [`drivers::load_hip`] finds, and initialises it.
    pub(super) fn load(library: Option<&Path>) -> Result<Arc<Self>, NoDriver> {
        let (name, library) = drivers::load_hip(library)?;
        let failed = |call, failure| NoDriver::Failed { library: name.clone(), call, failure };
        let missing = |call, e: libloading::Error| failed(call, format!("is missing: {e}"));
        let functions = Functions::of(&library, missing)?;
        let properties = Properties::of(&library).map_err(|e| missing(Properties::CALL, e))?;
        let api = Arc::new(Self { functions, properties, _library: library });
        // SAFETY: the flags must be 0, and are.
        unsafe { (api.functions.hipInit)(0) }.result().map_err(|status| failed("hipInit", api.failure(status)))?;
        Ok(api)
    }

    /// Whether both are one runtime, loaded once or twice.
    pub(super) fn is(&self, other: &Self) -> bool {
        std::ptr::fn_addr_eq(self.functions.hipMalloc, other.functions.hipMalloc)
    }

    /// What the runtime says about an error: `hipErrorInvalidValue, invalid argument`.
    pub(super) fn failure(&self, status: Status) -> String {
        let text = |function: unsafe extern "C" fn(Status) -> *const c_char| {
            // SAFETY: takes any number.
            let text = unsafe { function(status) };
            // SAFETY: the runtime's texts are constants that end in a zero byte.
            (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
        };
        let texts = [text(self.functions.hipGetErrorName), text(self.functions.hipGetErrorString)];
        let texts: Vec<String> = texts.into_iter().flatten().collect();
        if texts.is_empty() { status.to_string() } else { texts.join(", ") }
    }

    /// One number about a device.
    pub(super) fn attribute(&self, attribute: hiprt::hipDeviceAttribute_t, device: c_int) -> Result<c_int, Status> {
        let mut value = 0;
        // SAFETY: writes one int through a valid pointer.
        unsafe { (self.functions.hipDeviceGetAttribute)(&raw mut value, attribute as c_uint, device) }.result()?;
        Ok(value)
    }

    /// Name of a device's architecture, as [`Properties`] gives it.
    pub(super) fn architecture(&self, device: c_int) -> Result<Option<String>, Status> {
        self.properties.architecture(device).map_err(|code| Status(code.cast_unsigned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_that_end_the_device_are_told_from_others() {
        let sticky: Vec<c_uint> = (0..2000).filter(|n| Status(*n).is_sticky()).collect();
        assert_eq!(sticky, [214, 700, 702, 710, 719]);
    }

    /// The numbers that are passed on are those of HIP 6 and 7 as well.
    #[test]
    fn numbers_are_those_of_every_version() {
        assert_eq!(hiprt::hipDeviceAttribute_t::hipDeviceAttributeMultiprocessorCount as u32, 63);
        assert_eq!(hiprt::hipFunction_attribute::HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK as u32, 0);
        assert_eq!((hiprt::hipEventDefault, hiprt::hipEventDisableTiming), (0, 2));
        assert_eq!((hiprt::hipStreamDefault, hiprt::hipHostMallocPortable), (0, 1));
    }

    /// Debian's package `libamdhip64-5`, which [`Api::load`] takes as far as the first call that needs a GPU.
    #[test]
    fn every_function_is_in_debian_s_runtime() {
        let name = "libamdhip64.so.5";
        let Ok((_, library)) = drivers::load_hip(Some(Path::new(name))) else {
            println!("skipped: no {name}");
            return;
        };
        let missing = |call, e: libloading::Error| -> NoDriver { panic!("{call}: {e}") };
        Functions::of(&library, missing).expect("it has every function");
        Properties::of(&library).expect("it tells of devices");
        match Api::load(Some(Path::new(name))) {
            Ok(_) => println!("there is a GPU"),
            Err(error) => assert!(error.to_string().starts_with("libamdhip64.so.5: hipInit hipError"), "{error}"),
        }
    }

    #[test]
    fn a_library_that_is_not_the_runtime_is_an_error() {
        let error = Api::load(Some(Path::new("libm.so.6"))).err().expect("no runtime").to_string();
        assert!(error.starts_with("libm.so.6: hipInit is missing: "), "{error}");
    }
}
