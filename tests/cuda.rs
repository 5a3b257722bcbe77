//! Promise: on an NVIDIA GPU the shipped kernels give what they give on the CPU device, but for the bounds of the chip's own
//! approximations. Without a GPU these tests do nothing, and say why.

use lathe_dsl::kernel::Kernel;
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
