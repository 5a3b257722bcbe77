//! Builds the lld shim and links it: lld's ELF driver statically, LLVM from its one shared library.

use std::path::PathBuf;

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
    println!("cargo::rerun-if-changed=src/lld_shim.cpp");

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
