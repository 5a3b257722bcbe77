//! Links the binary small.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // MLIR's templates make many copies of the same machine code; rustc's own linker keeps one, a quarter less.
    let rust_lld = std::env::var("TARGET").is_ok_and(|t| t == "x86_64-unknown-linux-gnu");
    if rust_lld && std::env::var_os("CARGO_FEATURE_JIT").is_some() {
        println!("cargo:rustc-link-arg-bins=-Wl,--icf=all");
        println!("cargo:rustc-link-arg-benches=-Wl,--icf=all");
    }
}
