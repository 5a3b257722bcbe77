//! Which GPU drivers this machine has. They are looked for at run time; nothing links to them.

#![allow(unsafe_code)] // Calls into the vendors' libraries.

use std::ffi::{CStr, c_char, c_int, c_uint};

use libloading::{Library, Symbol};

/// A GPU driver that answers.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Driver {
    /// The library that was found.
    pub library: &'static str,
    /// Its version, as the vendor counts: 13000 is CUDA 13.0.
    pub version: i32,
    /// Names of the devices it drives, in its own order.
    pub devices: Vec<String>,
}

/// Why there is no driver to use.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoDriver {
    /// The library is not there, or cannot be loaded.
    #[error("{library} cannot be loaded: {reason}")]
    NoLibrary {
        /// The library, or the first of those that were tried.
        library: &'static str,
        /// What the dynamic linker said.
        reason: String,
    },
    /// The library lacks a function or refused a call.
    #[error("{library}: {call} {failure}")]
    Failed {
        /// The library.
        library: &'static str,
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
    /// What `init` and `count` return where there is a driver and no device.
    no_device: c_int,
}

const CUDA: Names = Names {
    init: "cuInit",
    version: "cuDriverGetVersion",
    count: "cuDeviceGetCount",
    device: "cuDeviceGet",
    name: "cuDeviceGetName",
    no_device: 100,
};

const HIP: Names = Names {
    init: "hipInit",
    version: "hipDriverGetVersion",
    count: "hipGetDeviceCount",
    device: "hipDeviceGet",
    name: "hipDeviceGetName",
    no_device: 100,
};

/// NVIDIA's driver and its devices.
///
/// # Errors
/// There is none, or it does not work.
pub fn cuda() -> Result<Driver, NoDriver> {
    probe(&["libcuda.so.1"], &CUDA)
}

/// AMD's HIP runtime and its devices.
///
/// # Errors
/// There is none, or it does not work.
pub fn hip() -> Result<Driver, NoDriver> {
    probe(&["libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"], &HIP)
}

fn probe(libraries: &[&'static str], names: &Names) -> Result<Driver, NoDriver> {
    let mut absent = None;
    for &library in libraries {
        // SAFETY: loading runs the library's initialisers; these are the vendors' own libraries, made for that.
        match unsafe { Library::new(library) } {
            Ok(loaded) => return ask(library, &loaded, names),
            Err(e) => {
                absent.get_or_insert(NoDriver::NoLibrary { library, reason: e.to_string() });
            }
        }
    }
    Err(absent.unwrap_or(NoDriver::NoLibrary { library: "none", reason: "no library is known".to_owned() }))
}

fn ask(library: &'static str, loaded: &Library, names: &Names) -> Result<Driver, NoDriver> {
    let failed = |call, failure| NoDriver::Failed { library, call, failure };
    let absent = |call| move |e: libloading::Error| failed(call, format!("is missing: {e}"));
    let done = |call, code: c_int| match code {
        0 => Ok(()),
        code => Err(failed(call, format!("returned {code}"))),
    };
    // SAFETY: in both vendors' headers the five functions have these signatures.
    let (init, version, count, device, name) = unsafe {
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
        (init, version, count, device, name)
    };
    let mut driver = Driver { library, version: 0, devices: vec![] };
    // SAFETY: the flags must be 0, and are.
    let started = unsafe { init(0) };
    if started != names.no_device {
        done(names.init, started)?;
    }
    // SAFETY: writes one int through a valid pointer; needs no device.
    done(names.version, unsafe { version(&mut driver.version) })?;
    let mut devices = 0;
    // SAFETY: writes one int through a valid pointer; the driver is initialised, or says that it is not.
    let counted = if started == names.no_device { started } else { unsafe { count(&mut devices) } };
    if counted == names.no_device {
        return Ok(driver);
    }
    done(names.count, counted)?;
    for i in 0..devices {
        let (mut handle, mut text) = (0, [0u8; 256]);
        // SAFETY: writes one int through a valid pointer; `i` is below the number of devices.
        done(names.device, unsafe { device(&mut handle, i) })?;
        // SAFETY: writes at most as many bytes as `text` has, and `handle` is one that the driver gave.
        done(names.name, unsafe { name(text.as_mut_ptr().cast(), text.len() as c_int, handle) })?;
        let text = CStr::from_bytes_until_nul(&text).unwrap_or_default();
        driver.devices.push(text.to_string_lossy().into_owned());
    }
    Ok(driver)
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
                    assert!(driver.devices.iter().all(|d| !d.is_empty()), "{driver:?}");
                    println!("{driver:?}");
                }
                Err(e) => assert!(e.to_string().contains(library), "{e}"),
            }
        }
    }

    /// A library that exists but is no driver: the missing function is named.
    #[test]
    fn a_library_without_the_functions_is_an_error() {
        let error = probe(&["libm.so.6"], &CUDA).unwrap_err();
        assert!(error.to_string().starts_with("libm.so.6: cuInit is missing"), "{error}");
    }
}
