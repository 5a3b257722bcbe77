//! How the `lathe` binary may be linked.

use std::path::Path;

use crate::run::command;

/// LLVM's shared library.
const LLVM: &str = "libLLVM.so.22.1";
/// GPU vendors' libraries, which a machine may not have.
const DRIVERS: [&str; 2] = ["libcuda", "libamdhip"];
/// Largest size of the binary, in bytes.
const LIMIT: u64 = 60_000_000;

/// An error unless the binary takes LLVM from its shared library, needs no GPU's driver and is small.
///
/// MLIR is linked in, LLVM must not be: two copies of it in one process would be two sets of options, targets and error
/// handlers, and the binary several times as large.
pub fn check(binary: &Path) -> Result<(), String> {
    let dynamic = command("readelf").args(["--dynamic", "--wide", &binary.to_string_lossy()]).output()?;
    let needed = needed_libraries(&dynamic);
    if !needed.contains(&LLVM) {
        return Err(format!("{} does not need {LLVM} but {needed:?}: LLVM is linked in", binary.display()));
    }
    if let Some(driver) = needed.iter().find(|library| DRIVERS.iter().any(|driver| library.starts_with(driver))) {
        return Err(format!("{} needs {driver}, which is to be loaded at run time", binary.display()));
    }
    let size = std::fs::metadata(binary).map_err(|e| format!("{}: {e}", binary.display()))?.len();
    if size > LIMIT {
        return Err(format!("{} has {size} bytes, more than {LIMIT}", binary.display()));
    }
    println!("needs {LLVM}, {:.1} MB", size as f64 / 1e6);
    Ok(())
}

/// The shared libraries that a listing by `readelf --dynamic` names as needed.
fn needed_libraries(readelf: &str) -> Vec<&str> {
    let lines = readelf.lines().filter(|line| line.contains("(NEEDED)"));
    lines.filter_map(|line| line.split_once('[')?.1.split_once(']').map(|(name, _)| name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needed_libraries_are_read_from_the_listing() {
        let listing = "\
Dynamic section at offset 0x2d8 contains 30 entries:
  Tag        Type                         Name/Value
 0x0000000000000001 (NEEDED)             Shared library: [libLLVM.so.22.1]
 0x0000000000000001 (NEEDED)             Shared library: [libc.so.6]
 0x000000000000001d (RUNPATH)            Library runpath: [/usr/lib/libLLVM.so.9]
";
        assert_eq!(needed_libraries(listing), ["libLLVM.so.22.1", "libc.so.6"]);
    }

    #[test]
    fn a_binary_without_llvm_is_refused() {
        let error = check(&std::env::current_exe().unwrap()).unwrap_err();
        assert!(error.contains("LLVM is linked in"), "{error}");
        assert!(check(Path::new("/nonexistent")).is_err());
    }
}
