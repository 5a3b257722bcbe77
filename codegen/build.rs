//! Builds the lld shim and links it: lld's ELF driver statically, LLVM from its one shared library. Also fingerprints the
//! sources that decide what code a kernel becomes.

use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};

fn main() {
    let prefix = std::env::var_os("LLVM_SYS_221_PREFIX").map(PathBuf::from).unwrap_or_else(|| {
        panic!("LLVM_SYS_221_PREFIX is not set: it names the directory where LLVM 22 is installed");
    });
    let include = prefix.join("include");
    assert!(
        include.join("lld/Common/Driver.h").is_file(),
        "lld's headers are not under {}: install liblld-22-dev",
        include.display()
    );
    println!("cargo::rerun-if-env-changed=LLVM_SYS_221_PREFIX");
    println!("cargo::rustc-env=LATHE_SOURCES={:016x}", fingerprint());

    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .file("src/lld_shim.cpp")
        .include(&include)
        .flag_if_supported("-fno-exceptions")
        .flag_if_supported("-fno-rtti")
        .flag_if_supported("-w")
        .compile("lathe_lld_shim");

    println!("cargo::rustc-link-search=native={}", prefix.join("lib").display());
    println!("cargo::rustc-link-lib=static=lldELF");
    println!("cargo::rustc-link-lib=static=lldCommon");
    println!("cargo::rustc-link-lib=dylib=LLVM-22");
}

/// A hash of the sources between Kernel IR and code: whoever works on them must never be served what an older state of them
/// compiled, though the version is the same.
fn fingerprint() -> u64 {
    let mut hasher = DefaultHasher::new();
    for folder in ["src", "../dsl/src"] {
        let folder = Path::new(folder);
        // Outside the workspace the language is a package of its own, whose version is fixed.
        if folder.is_dir() {
            println!("cargo::rerun-if-changed={}", folder.display());
            add(folder, &mut hasher);
        }
    }
    hasher.finish()
}

/// Adds every source below `folder`, tests left out.
fn add(folder: &Path, hasher: &mut DefaultHasher) {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            if !path.ends_with("tests") {
                add(&path, hasher);
            }
        } else if let Ok(content) = fs::read(&path) {
            let name = path.to_string_lossy();
            for part in [name.as_bytes(), &content] {
                hasher.write_usize(part.len());
                hasher.write(part);
            }
        }
    }
}
