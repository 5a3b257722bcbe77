//! Links the test binary as `lathe` itself is linked, so that what is tested is what is shipped.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("TARGET").is_ok_and(|t| t == "x86_64-unknown-linux-gnu") {
        println!("cargo:rustc-link-arg-tests=-Wl,--icf=all");
    }
}
