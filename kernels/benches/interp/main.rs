//! Speed of the interpreter, on one core, with and without its checks: `cargo bench -p lathe-kernels --no-default-features
//! --bench interp`.
//!
//! Prints, for `mla_combine`, the lane-operations a second of the fastest of many launches (on a busy machine that says more
//! than the mean), and how many times slower the checks make it.

use std::time::Instant;

use lathe_dsl::{Target, trace};
use lathe_kernels::mla::combine::MlaCombine;
use lathe_kernels::mla::problem::Problem;
use lathe_runtime::interp::{ArgValue, Checks, GlobalBuffer, Options, Program, launch};

const TOKENS: u32 = 64;

/// Checks that are measured; the first is what the others are compared with.
const CHECKS: [(&str, Checks); 4] = [
    ("none", Checks::NONE),
    ("waits", Checks { waits: true, ..Checks::NONE }),
    ("default", Checks::DEFAULT),
    ("all", Checks::ALL),
];

fn main() {
    // `cargo test` runs benchmarks to see that they work.
    let launches = if std::env::args().any(|arg| arg == "--test") { 1 } else { 100 };
    for ranks in [1, 8] {
        let key = MlaCombine { ranks, tokens: TOKENS };
        let program = Program::new(&trace(&key, Target::GFX950).expect("traces")).expect("is verified");
        let problem = Problem::new(ranks as usize, TOKENS as usize, 0);
        let partial = GlobalBuffer::from_bytes(bytemuck::cast_slice(&problem.partial));
        let lse = GlobalBuffer::from_bytes(bytemuck::cast_slice(&problem.lse));
        let latents = GlobalBuffer::uninit(key.rows() as usize * 512 * 2);
        let args = [&partial, &lse, &latents].map(ArgValue::Buffer);
        let rate = |checks| {
            let options = Options { threads: Some(1), checks, ..Options::default() };
            let start = Instant::now();
            let report = launch(&program, &args, &options).expect("is right");
            report.lane_ops as f64 / start.elapsed().as_secs_f64()
        };
        // In turn, so that what else the machine does falls on all alike.
        let mut best = [0.0f64; CHECKS.len()];
        for _ in 0..launches {
            for (best, (_, checks)) in best.iter_mut().zip(CHECKS) {
                *best = best.max(rate(checks));
            }
        }
        println!("mla_combine ranks={ranks} tokens={TOKENS}, lane-operations a second:");
        for (rate, (name, _)) in best.iter().zip(CHECKS) {
            println!("  checks {name:<8} {:7.1} M   {:.2} times slower", rate / 1e6, best[0] / rate);
        }
    }
}
