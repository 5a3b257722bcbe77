//! Which GPU drivers this machine has. They are looked for at run time; nothing links to them.

#![allow(unsafe_code)] // Calls into the vendors' libraries.

use std::ffi::{CStr, c_char, c_int, c_uint};
use std::fmt;
use std::mem::ManuallyDrop;
use std::path::Path;

use libloading::{Library, Symbol};
use serde::Serialize;

use crate::arch::Properties;
use crate::env::HIP_LIBRARY;

/// A GPU driver that answers.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Driver {
    /// The library that was found.
    pub library: String,
    /// Its version, as the vendor counts: 13000 is CUDA 13.0, 60342131 is HIP 6.3.42131.
    pub version: i32,
    /// The kernel driver's own version, such as `580.65.06`; `None` where the system does not tell.
    pub build: Option<String>,
    /// The devices it drives, in its own order.
    pub devices: Vec<DriverDevice>,
}

/// A GPU as its driver describes it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[non_exhaustive]
pub struct DriverDevice {
    /// Its name.
    pub name: String,
    /// NVIDIA: compute capability, such as `9.0`.
    pub compute_capability: Option<String>,
    /// AMD: chip and settings, such as `gfx942:sramecc+:xnack-`; `None` where the runtime does not tell.
    pub architecture: Option<String>,
    /// Its memory, in bytes.
    pub memory_bytes: u64,
    /// Whether its kernels can reach the memory of each device, in the driver's order; its own it always does. `None` where the
    /// driver does not tell.
    pub peers: Vec<Option<bool>>,
}

impl DriverDevice {
    /// The chip as its compiler names it: `sm_90`, `gfx942:sramecc+:xnack-`.
    pub fn chip(&self) -> Option<String> {
        let sm = self.compute_capability.as_ref().map(|version| format!("sm_{}", version.replace('.', "")));
        sm.or_else(|| self.architecture.clone())
    }

    /// Its memory in GiB, for messages.
    pub fn memory(&self) -> String {
        format!("{:.1} GiB", self.memory_bytes as f64 / f64::from(1 << 30))
    }
}

impl fmt::Display for DriverDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if let Some(capability) = &self.compute_capability {
            write!(f, ", compute capability {capability}")?;
        }
        if let Some(architecture) = &self.architecture {
            write!(f, ", {architecture}")?;
        }
        write!(f, ", {}", self.memory())
    }
}

/// A version as CUDA counts: 12080 is 12.8.
pub fn cuda_version(version: i32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

/// A version as HIP counts: 60342131 is 6.3.42131.
pub fn hip_version(version: i32) -> String {
    format!("{}.{}.{}", version / 10_000_000, version / 100_000 % 100, version % 100_000)
}

/// Why there is no driver to use.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoDriver {
    /// The library is not there, or cannot be loaded.
    #[error("{library} cannot be loaded: {reason}")]
    NoLibrary {
        /// The libraries that were tried.
        library: String,
        /// What the dynamic linker said of the first.
        reason: String,
    },
    /// The library lacks a function or refused a call.
    #[error("{library}: {call} {failure}")]
    Failed {
        /// The library.
        library: String,
        /// The function.
        call: &'static str,
        /// What went wrong with it.
        failure: String,
    },
}

/// The functions asked for, by the names that one vendor gives them. All return 0 if they did what they should.
struct Names {
    init: &'static str,
    version: &'static str,
    count: &'static str,
    device: &'static str,
    name: &'static str,
    memory: &'static str,
    /// Gives the two numbers of a compute capability.
    attribute: Option<&'static str>,
    /// Tells whether a device reaches another one's memory.
    peer: &'static str,
    /// Whether there are AMD's properties of devices.
    properties: bool,
    /// File in which the kernel driver tells its version.
    build: &'static str,
    /// What `init` and `count` return where there is a driver and no device.
    no_device: &'static [c_int],
}

const CUDA: Names = Names {
    init: "cuInit",
    version: "cuDriverGetVersion",
    count: "cuDeviceGetCount",
    device: "cuDeviceGet",
    name: "cuDeviceGetName",
    memory: "cuDeviceTotalMem_v2",
    attribute: Some("cuDeviceGetAttribute"),
    peer: "cuDeviceCanAccessPeer",
    properties: false,
    build: "/proc/driver/nvidia/version",
    no_device: &[100],
};

const HIP: Names = Names {
    init: "hipInit",
    version: "hipDriverGetVersion",
    count: "hipGetDeviceCount",
    device: "hipDeviceGet",
    name: "hipDeviceGetName",
    memory: "hipDeviceTotalMem",
    attribute: None,
    peer: "hipDeviceCanAccessPeer",
    properties: true,
    build: "/sys/module/amdgpu/version",
    // Version 5 initialises itself with an error that otherwise means a wrong number.
    no_device: &[100, 101],
};

/// NVIDIA's driver and its devices.
///
/// # Errors
/// There is none, or it does not work.
pub fn cuda() -> Result<Driver, NoDriver> {
    let (library, loaded) = load(&["libcuda.so.1"])?;
    ask(&library, &loaded, &CUDA)
}

/// AMD's HIP runtime and its devices; where it is looked for, [`HIP_LIBRARY`] tells.
///
/// # Errors
/// There is none, or it does not work.
pub fn hip() -> Result<Driver, NoDriver> {
    hip_at(None)
}

/// As [`hip`], of this library, if one is given.
pub(crate) fn hip_at(library: Option<&Path>) -> Result<Driver, NoDriver> {
    let (library, loaded) = load_hip(library)?;
    ask(&library, &loaded, &HIP)
}

/// Where AMD's HIP runtime may be, the newest first.
pub(crate) const HIP_LIBRARIES: [&str; 4] =
    ["libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"];

/// AMD's HIP runtime: `library`, else what [`HIP_LIBRARY`] says, else the first of [`HIP_LIBRARIES`] that there is; with its name.
pub(crate) fn load_hip(library: Option<&Path>) -> Result<(String, ManuallyDrop<Library>), NoDriver> {
    let set = HIP_LIBRARY.get().unwrap_or_default();
    match library.or(set.as_deref()).map(|path| path.display().to_string()) {
        Some(path) => load(&[&path]),
        None => load(&HIP_LIBRARIES),
    }
}

/// The first library that can be loaded; if none can, why not the first one. It is never unloaded: once initialised, the vendors'
/// libraries have threads and handlers of their own.
fn load(libraries: &[&str]) -> Result<(String, ManuallyDrop<Library>), NoDriver> {
    let mut reason = None;
    for &library in libraries {
        // SAFETY: loading runs the library's initialisers; these are the vendors' own libraries, made for that, or one that the
        // user named in their place.
        match unsafe { Library::new(library) } {
            Ok(loaded) => return Ok((library.to_owned(), ManuallyDrop::new(loaded))),
            Err(e) => {
                reason.get_or_insert(e.to_string());
            }
        }
    }
    let reason = reason.unwrap_or_else(|| "no library is known".to_owned());
    Err(NoDriver::NoLibrary { library: libraries.join(", "), reason })
}

fn ask(library: &str, loaded: &Library, names: &Names) -> Result<Driver, NoDriver> {
    let failed = |call, failure| NoDriver::Failed { library: library.to_owned(), call, failure };
    let absent = |call| move |e: libloading::Error| failed(call, format!("is missing: {e}"));
    let done = |call, code: c_int| match code {
        0 => Ok(()),
        code => Err(failed(call, format!("returned {code}"))),
    };
    // SAFETY: in both vendors' headers the functions have these signatures.
    let (init, version, count, device, name, memory, attribute) = unsafe {
        let init: Symbol<'_, unsafe extern "C" fn(c_uint) -> c_int> =
            loaded.get(names.init.as_bytes()).map_err(absent(names.init))?;
        let version: Symbol<'_, unsafe extern "C" fn(*mut c_int) -> c_int> =
            loaded.get(names.version.as_bytes()).map_err(absent(names.version))?;
        let count: Symbol<'_, unsafe extern "C" fn(*mut c_int) -> c_int> =
            loaded.get(names.count.as_bytes()).map_err(absent(names.count))?;
        let device: Symbol<'_, unsafe extern "C" fn(*mut c_int, c_int) -> c_int> =
            loaded.get(names.device.as_bytes()).map_err(absent(names.device))?;
        let name: Symbol<'_, unsafe extern "C" fn(*mut c_char, c_int, c_int) -> c_int> =
            loaded.get(names.name.as_bytes()).map_err(absent(names.name))?;
        let memory: Symbol<'_, unsafe extern "C" fn(*mut usize, c_int) -> c_int> =
            loaded.get(names.memory.as_bytes()).map_err(absent(names.memory))?;
        let attribute = names.attribute.map(|call| -> Result<_, NoDriver> {
            let found: Symbol<'_, unsafe extern "C" fn(*mut c_int, c_int, c_int) -> c_int> =
                loaded.get(call.as_bytes()).map_err(absent(call))?;
            Ok((call, found))
        });
        (init, version, count, device, name, memory, attribute.transpose()?)
    };
    let build = std::fs::read_to_string(names.build).ok().and_then(|text| build(&text));
    let mut driver = Driver { library: library.to_owned(), version: 0, build, devices: vec![] };
    // SAFETY: the flags must be 0, and are.
    let started = unsafe { init(0) };
    if !names.no_device.contains(&started) {
        done(names.init, started)?;
    }
    // SAFETY: writes one int through a valid pointer; needs no device.
    done(names.version, unsafe { version(&mut driver.version) })?;
    let mut devices = 0;
    // SAFETY: writes one int through a valid pointer; the driver is initialised, or says that it is not.
    let counted = if started == 0 { unsafe { count(&mut devices) } } else { started };
    if names.no_device.contains(&counted) {
        return Ok(driver);
    }
    done(names.count, counted)?;
    // More than is needed to run kernels: without them that much is not told.
    let properties = if names.properties { Properties::of(loaded).ok() } else { None };
    // SAFETY: in both vendors' headers the function has this signature.
    let peer: Option<Symbol<'_, unsafe extern "C" fn(*mut c_int, c_int, c_int) -> c_int>> =
        unsafe { loaded.get(names.peer.as_bytes()) }.ok();
    let mut handles = vec![];
    for i in 0..devices {
        let (mut handle, mut text) = (0, [0u8; 256]);
        // SAFETY: writes one int through a valid pointer; `i` is below the number of devices.
        done(names.device, unsafe { device(&mut handle, i) })?;
        // SAFETY: writes at most as many bytes as `text` has, and `handle` is one that the driver gave.
        done(names.name, unsafe { name(text.as_mut_ptr().cast(), text.len() as c_int, handle) })?;
        let text = CStr::from_bytes_until_nul(&text).unwrap_or_default();
        let mut bytes = 0;
        // SAFETY: writes one size through a valid pointer, and `handle` is one that the driver gave.
        done(names.memory, unsafe { memory(&mut bytes, handle) })?;
        let compute_capability = match &attribute {
            None => None,
            Some((call, attribute)) => {
                let [mut major, mut minor] = [0; 2];
                // SAFETY: each writes one int through a valid pointer; the numbers are those of attributes.
                done(call, unsafe { attribute(&mut major, CAPABILITY_MAJOR, handle) })?;
                // SAFETY: as above.
                done(call, unsafe { attribute(&mut minor, CAPABILITY_MINOR, handle) })?;
                Some(format!("{major}.{minor}"))
            }
        };
        let name = text.to_string_lossy().into_owned();
        let architecture = properties.as_ref().and_then(|properties| properties.architecture(i).ok().flatten());
        let memory_bytes = bytes as u64;
        handles.push(handle);
        driver.devices.push(DriverDevice { name, compute_capability, architecture, memory_bytes, peers: vec![] });
    }
    let reaches = |from: usize, to: usize| {
        if from == to {
            return Some(true);
        }
        let mut can = 0;
        // SAFETY: writes one int through a valid pointer; the handles are ones that the driver gave.
        let answer = unsafe { (peer.as_ref()?)(&mut can, handles[from], handles[to]) };
        (answer == 0).then_some(can != 0)
    };
    for (from, device) in driver.devices.iter_mut().enumerate() {
        device.peers = (0..handles.len()).map(|to| reaches(from, to)).collect();
    }
    Ok(driver)
}

/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR` and `_MINOR`.
const CAPABILITY_MAJOR: c_int = 75;
const CAPABILITY_MINOR: c_int = 76;

/// The version in what a kernel driver tells: the first word of numbers with a dot in between.
fn build(text: &str) -> Option<String> {
    let number = |word: &&str| word.contains('.') && word.split('.').all(|n| n.parse::<u32>().is_ok());
    text.split_whitespace().find(number).map(ToOwned::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each driver either answers or says what is missing, by the name of the library.
    #[test]
    fn a_driver_answers_or_says_what_is_missing() {
        for (found, library) in [(cuda(), "libcuda.so.1"), (hip(), "libamdhip64.so")] {
            match found {
                Ok(driver) => {
                    assert!(driver.library.starts_with(library));
                    assert!(driver.version > 0, "{driver:?}");
                    assert!(driver.devices.iter().all(|d| !d.name.is_empty() && d.memory_bytes > 0), "{driver:?}");
                    println!("{driver:?}");
                }
                Err(e) => assert!(e.to_string().contains(library), "{e}"),
            }
        }
    }

    #[test]
    fn the_kernel_driver_s_version_is_found() {
        let nvidia = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  (dvs)  Sun Jul 27\n\
                      GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n";
        assert_eq!(build(nvidia).as_deref(), Some("580.65.06"));
        assert_eq!(build("6.12.12\n").as_deref(), Some("6.12.12"));
        assert_eq!(build("no version. at all"), None);
    }

    #[test]
    fn a_device_is_described_in_a_line() {
        let device = |name: &str, capability: Option<&str>, architecture: Option<&str>| DriverDevice {
            name: name.to_owned(),
            compute_capability: capability.map(ToOwned::to_owned),
            architecture: architecture.map(ToOwned::to_owned),
            memory_bytes: 150_754_820_096,
            peers: vec![Some(true)],
        };
        let h200 = device("NVIDIA H200", Some("9.0"), None);
        assert_eq!(h200.to_string(), "NVIDIA H200, compute capability 9.0, 140.4 GiB");
        assert_eq!(h200.chip().as_deref(), Some("sm_90"));
        let mi300x = device("AMD Instinct MI300X", None, Some("gfx942:sramecc+:xnack-"));
        assert_eq!(mi300x.to_string(), "AMD Instinct MI300X, gfx942:sramecc+:xnack-, 140.4 GiB");
        assert_eq!(mi300x.chip().as_deref(), Some("gfx942:sramecc+:xnack-"));
        let unknown = device("GPU", None, None);
        assert_eq!((unknown.to_string(), unknown.chip()), ("GPU, 140.4 GiB".to_owned(), None));
        assert_eq!((cuda_version(12_080), cuda_version(13_000)), ("12.8".to_owned(), "13.0".to_owned()));
        assert_eq!(
            (hip_version(50_221_153), hip_version(60_342_131)),
            ("5.2.21153".to_owned(), "6.3.42131".to_owned())
        );
    }

    #[test]
    fn a_library_that_is_named_is_the_only_one_that_is_tried() {
        let error = load_hip(Some(Path::new("/no/such/libamdhip64.so"))).unwrap_err().to_string();
        assert!(error.starts_with("/no/such/libamdhip64.so cannot be loaded: "), "{error}");
        let error = load(&["libno-such-thing.so", "libno-other.so"]).unwrap_err().to_string();
        assert!(
            error.starts_with("libno-such-thing.so, libno-other.so cannot be loaded: libno-such-thing.so: "),
            "{error}"
        );
    }

    /// A library that exists but is no driver: the missing function is named.
    #[test]
    fn a_library_without_the_functions_is_an_error() {
        let (library, loaded) = load(&["libno-such-thing.so", "libm.so.6"]).unwrap();
        let error = ask(&library, &loaded, &CUDA).unwrap_err();
        assert!(error.to_string().starts_with("libm.so.6: cuInit is missing"), "{error}");
    }
}
