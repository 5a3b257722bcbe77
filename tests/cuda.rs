//! Promise: on an NVIDIA GPU the shipped kernels give what they give on the CPU device, but for the bounds of the chip's own
//! approximations. Without a GPU these tests do nothing, and say why.

use lathe_dsl::kernel::Kernel;
use lathe_kernels::gemm::mx::GemmMx;
use lathe_kernels::mla::combine::MlaCombine;
use lathe_kernels::registry::Entry;
use lathe_runtime::Engine;

use crate::filetests::machine;

#[test]
fn mla_combine_keeps_its_bounds() {
    if let Err(reason) = machine::gpu() {
        println!("skipped: {reason}");
        return;
    }
    let engine = Engine::open("cuda", None).expect("there is a GPU");
    let entry = Entry::find(MlaCombine::NAME).expect("it is shipped");
    println!("ranks  tokens  launch ms  largest error against the stage and the unsplit attention");
    for ranks in [1, 2, 4, 8] {
        for tokens in [1, 3, 8, 64, 1000] {
            let settings = [("ranks".to_owned(), ranks.to_string()), ("tokens".to_owned(), tokens.to_string())];
            let report = entry.build(&settings).expect("a key").run(&engine, 7).expect("it runs");
            let errors: Vec<String> = report.checks.iter().map(|c| format!("{:.3e}", c.max_abs_error)).collect();
            println!("{ranks:5}  {tokens:6}  {:9.3}  {}", report.launch_ms, errors.join(", "));
            for check in &report.checks {
                assert!(check.ok, "ranks {ranks}, tokens {tokens}: {} {:?}", check.against, check.first_failure);
            }
        }
    }
}

#[test]
fn gemm_mx_keeps_its_bounds() {
    if let Err(reason) = machine::gpu() {
        println!("skipped: {reason}");
        return;
    }
    let engine = Engine::open("cuda", None).expect("there is a GPU");
    let entry = Entry::find(GemmMx::NAME).expect("it is shipped");
    println!("    m     n     k  tile_m  tile_n  launch ms  largest error");
    let sizes = [(1, 1, 32), (17, 65, 160), (33, 257, 416), (256, 256, 1024), (1000, 1000, 1056)];
    for (m, n, k) in sizes {
        for (tile_m, tile_n) in [(16, 128), (32, 64), (64, 256), (128, 128)] {
            let key = [("m", m), ("n", n), ("k", k), ("tile_m", tile_m), ("tile_n", tile_n)];
            let settings: Vec<_> = key.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
            let report = entry.build(&settings).expect("a key").run(&engine, 7).expect("it runs");
            let check = &report.checks[0];
            println!(
                "{m:5} {n:5} {k:5}  {tile_m:6}  {tile_n:6}  {:9.3}  {:.3e}",
                report.launch_ms, check.max_abs_error
            );
            assert!(check.ok, "{key:?}: {:?}", check.first_failure);
        }
    }
}
