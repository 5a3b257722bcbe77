//! Speed of the interpreter: `cargo bench -p lathe-kernels --no-default-features --bench interp`.

use std::time::Instant;

use half::bf16;
use lathe_dsl::{Target, trace};
use lathe_kernels::mla::combine::MlaCombine;
use lathe_kernels::mla::problem::Problem;
use lathe_runtime::interp::{ArgValue, GlobalBuffer, Options, Program, launch};

fn bytes<T: bytemuck::NoUninit>(x: &[T]) -> GlobalBuffer {
    GlobalBuffer::from_bytes(bytemuck::cast_slice(x))
}

fn main() {
    for ranks in [1, 8] {
        let key = MlaCombine { ranks, tokens: 64 };
        let program = Program::new(&trace(&key, Target::GFX950).expect("traces")).expect("verified");
        let problem = Problem::new(ranks as usize, 64, 0);
        let (partial, lse) = (bytes(&problem.partial), bytes(&problem.lse));
        let latents = GlobalBuffer::uninit(64 * 12 * 512 * 2);
        let args = [&partial, &lse, &latents].map(ArgValue::Buffer);
        let options = Options { threads: Some(1), ..Options::default() };
        let best = (0..20)
            .map(|_| {
                let s = Instant::now();
                let r = launch(&program, &args, &options).expect("right");
                r.lane_ops as f64 / s.elapsed().as_secs_f64()
            })
            .fold(0.0, f64::max);
        println!("ranks {ranks}: {:.1} M lane-ops/s", best / 1e6);
    }
    let _ = bf16::ZERO;
}
