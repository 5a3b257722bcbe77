//! What has to be on the machine before anything with LLVM can be built.

use std::path::Path;

use crate::run::command;

/// Debian 12's names for it: LLVM, MLIR and lld 22 with what they link to, libclang for the bindings' generator, and a
/// C++ compiler for the shim around lld.
const PACKAGES: [&str; 14] = [
    "llvm-22-dev",
    "libmlir-22-dev",
    "mlir-22-tools",
    "lld-22",
    "liblld-22-dev",
    "libclang-22-dev",
    "clang-22",
    "libpolly-22-dev",
    "libzstd-dev",
    "zlib1g-dev",
    "libxml2-dev",
    "libffi-dev",
    "libedit-dev",
    "g++",
];

/// What tests take besides: AMD's HIP runtime, against which what Lathe believes of it is held.
const FOR_TESTS: [&str; 1] = ["libamdhip64-dev"];

/// Files of LLVM's folder that a build needs; where all are there, another system than Debian 12 will do.
const NEEDED: [&str; 4] = ["bin/llvm-config", "lib/libMLIRCAPIIR.a", "lib/liblldELF.a", "include/mlir-c/IR.h"];

/// Installs the packages that are missing of those for building, saying which; stops with what to do where it cannot.
pub fn install() -> Result<(), String> {
    install_all(&PACKAGES)
}

/// As [`install`], of those for building and for tests.
pub fn install_for_tests() -> Result<(), String> {
    install_all(&[&PACKAGES[..], &FOR_TESTS].concat())
}

fn install_all(packages: &[&'static str]) -> Result<(), String> {
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    if !is_debian_12(&release) {
        return other_system(&release, &std::env::var("LLVM_SYS_221_PREFIX").unwrap_or_default());
    }
    let missing = missing_packages(packages, &installed_packages(packages)?);
    if missing.is_empty() {
        println!("all {} there", packages.len());
        return Ok(());
    }
    println!("missing: {}", missing.join(" "));

    let root = command("id").arg("-u").output()?.trim() == "0";
    let prefix: &[&str] = match root {
        true => &["env"],
        false if command("sudo").arg("--version").quiet() => &["sudo", "env"],
        false => {
            let packages = missing.join(" ");
            return Err(format!(
                "installing packages takes root, and there is no sudo here. As root, run:\n  \
                 apt-get update && apt-get install --no-install-recommends {packages}"
            ));
        }
    };
    let apt_get = |args: &[&str]| {
        let quiet = ["DEBIAN_FRONTEND=noninteractive", "apt-get"];
        command(prefix[0]).args(prefix[1..].iter().copied()).args(quiet).args(args.iter().copied()).run()
    };
    apt_get(&["update"])?;
    let install = ["install", "--yes", "--no-install-recommends"];
    apt_get(&[&install, missing.as_slice()].concat())
}

fn is_debian_12(os_release: &str) -> bool {
    field(os_release, "ID") == Some("debian") && field(os_release, "VERSION_ID") == Some("12")
}

/// A field of `/etc/os-release`, without its quotes.
fn field<'a>(os_release: &'a str, name: &str) -> Option<&'a str> {
    let value = os_release.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='))?;
    Some(value.trim_matches(['"', '\'']))
}

/// Nothing is installed on a system whose packages we do not know; LLVM that is there already is taken.
fn other_system(os_release: &str, prefix: &str) -> Result<(), String> {
    let version = command(format!("{prefix}/bin/llvm-config")).arg("--version").output().unwrap_or_default();
    if version.starts_with("22.1.") && NEEDED.iter().all(|file| Path::new(prefix).join(file).exists()) {
        println!("LLVM {} in {prefix}", version.trim());
        return Ok(());
    }
    let name = field(os_release, "PRETTY_NAME").unwrap_or("this system");
    Err(format!(
        "packages are installed on Debian 12 only, and this is {name}.\n\
         Install what Debian 12 calls\n  {}\n\
         and let MLIR_SYS_220_PREFIX, TABLEGEN_220_PREFIX and LLVM_SYS_221_PREFIX name the folder of LLVM 22.1 that has\n  {}\n\
         (now: {prefix})",
        PACKAGES.join(" "),
        NEEDED.join(" ")
    ))
}

/// dpkg's word on each of the packages that it has heard of, a line each: `name status`.
fn installed_packages(packages: &[&str]) -> Result<String, String> {
    // Ends with 1 when it has not heard of one, so the exit status says nothing.
    let script = format!(
        "dpkg-query --show --showformat '${{Package}} ${{db:Status-Status}}\\n' {} || true",
        packages.join(" ")
    );
    command("sh").args(["-c", &script]).output()
}

fn missing_packages(packages: &[&'static str], dpkg: &str) -> Vec<&'static str> {
    let installed = |package: &&str| dpkg.lines().any(|line| line.split_once(' ') == Some((package, "installed")));
    packages.iter().copied().filter(|package| !installed(package)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debian_12_is_told_from_others() {
        assert!(is_debian_12("PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nVERSION_ID=\"12\"\nID=debian\n"));
        assert!(!is_debian_12("ID=debian\nVERSION_ID=\"13\"\n"));
        assert!(!is_debian_12("ID=ubuntu\nVERSION_ID=\"12\"\nID_LIKE=debian\n"));
        assert!(!is_debian_12(""));
    }

    #[test]
    fn a_removed_package_whose_settings_stay_is_missing() {
        let mut dpkg: String = PACKAGES.iter().map(|p| format!("{p} installed\n")).collect();
        assert!(missing_packages(&PACKAGES, &dpkg).is_empty());
        dpkg = dpkg.replace("lld-22 installed\nliblld", "lld-22 config-files\nliblld").replace("g++ installed\n", "");
        assert_eq!(missing_packages(&PACKAGES, &dpkg), ["lld-22", "g++"]);
        assert_eq!(missing_packages(&PACKAGES, ""), PACKAGES);
    }

    #[test]
    fn another_system_is_told_what_to_install() {
        let error = other_system("PRETTY_NAME=\"Plan 9\"\n", "/nonexistent").unwrap_err();
        assert!(error.contains("this is Plan 9") && error.contains("(now: /nonexistent)"), "{error}");
        assert!(PACKAGES.iter().all(|package| error.contains(package)));
    }
}
