//! Tests across crates. One binary, a file a promise.

mod approximate;
mod cuda;
mod dec2;
mod dec2_gpu;
mod devices;
mod differential;
mod filetests;
mod gcn;
mod golden;
mod group;
mod hip;
mod hostile;
mod images;
mod isolated;
mod matrix;
mod mla;
mod mla_post;
mod mla_post_fused;
mod mla_post_gpu;
mod mla_post_orders;
mod mla_post_workers;
mod mutants;
mod narrow;
mod peers;
mod planted;
mod threads;

use lathe_codegen::Options;
use lathe_dsl::artifact::Artifact;
use lathe_dsl::{Target, ir};
use lathe_kernels::gemm::mx::GemmMx;
use lathe_kernels::mla::combine::MlaCombine;
use lathe_kernels::mla::post::MlaPost;
use lathe_kernels::mla::push::MlaPush;
use lathe_kernels::mla::ranks::MlaCombineRanks;
use lathe_kernels::mla::splits::MlaCombineSplits;
use lathe_kernels::mla::uv::MlaUv;
use lathe_kernels::registry::Build;

/// The kernels whose emitted form is pinned, by the name of their snapshots.
const GOLDEN: [(&str, &dyn Build); 11] = [
    ("mla_combine.ranks_1", &MlaCombine { ranks: 1, tokens: 8 }),
    ("mla_combine.ranks_8", &MlaCombine { ranks: 8, tokens: 8 }),
    ("mla_combine_splits", &MlaCombineSplits { splits: 128, tokens: 8, q: 8 }),
    ("mla_push", &MlaPush { ranks: 8, tokens: 8, q: 8, ctas: 256 }),
    ("mla_combine_ranks", &MlaCombineRanks { ranks: 8, tokens: 8, wait_us: 0 }),
    ("mla_combine_ranks.bounded", &MlaCombineRanks { ranks: 8, tokens: 8, wait_us: 1_000_000 }),
    ("mla_uv", &MlaUv { tokens: 8 }),
    ("mla_post.ranks_1", &MlaPost { ranks: 1, tokens: 8, q: 8, splits: 0, ctas: 0, wait_us: 0 }),
    ("mla_post.ranks_8", &MlaPost { ranks: 8, tokens: 8, q: 8, splits: 0, ctas: 0, wait_us: 0 }),
    ("mla_post.splits_128", &MlaPost { ranks: 1, tokens: 8, q: 8, splits: 128, ctas: 0, wait_us: 0 }),
    ("gemm_mx.tile_32x64", &GemmMx { m: 100, n: 200, k: 416, tile_m: 32, tile_n: 64 }),
];

/// A key of a shipped kernel, or of a test's own.
trait Traced {
    fn traced(&self, target: Target) -> ir::Kernel;
}

impl<K: lathe_dsl::Kernel> Traced for K {
    fn traced(&self, target: Target) -> ir::Kernel {
        lathe_dsl::trace(self, target).expect("the kernel is accepted")
    }
}

impl Traced for dyn Build {
    fn traced(&self, target: Target) -> ir::Kernel {
        self.trace(target).expect("the kernel is accepted")
    }
}

/// Compiles a kernel with default options.
fn compiled(key: &(impl Traced + ?Sized), target: Target) -> Artifact {
    let kernel = key.traced(target);
    lathe_codegen::compile(&kernel, target, &Options::default()).expect("the kernel compiles")
}
