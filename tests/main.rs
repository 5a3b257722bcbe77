//! Tests across crates. One binary, a file a promise.

mod approximate;
mod cuda;
mod differential;
mod filetests;
mod gcn;
mod golden;
mod isolated;
mod matrix;
mod planted;
mod threads;

use lathe_codegen::Options;
use lathe_dsl::Target;
use lathe_dsl::artifact::Artifact;
use lathe_kernels::mla::combine::MlaCombine;

/// The kernels whose emitted form is pinned, by the name of their snapshots.
const GOLDEN: [(&str, MlaCombine); 2] = [
    ("mla_combine.ranks_1", MlaCombine { ranks: 1, tokens: 8 }),
    ("mla_combine.ranks_8", MlaCombine { ranks: 8, tokens: 8 }),
];

/// Compiles a kernel with default options.
fn compiled(key: &MlaCombine, target: Target) -> Artifact {
    let kernel = lathe_dsl::trace(key, target).expect("the kernel is accepted");
    lathe_codegen::compile(&kernel, target, &Options::default()).expect("the kernel compiles")
}
