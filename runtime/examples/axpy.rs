//! A whole kernel: y = a·x + y over n elements, compiled for and run on the CPU device.

use std::error::Error;

// ANCHOR: declaration
use lathe_dsl::prelude::*;

build_key! {
    /// y = a·x + y, four elements a thread.
    pub struct Axpy {
        /// Elements, a multiple of 4.
        n: u32 = 1024, range(4, 1_048_576);
    }
}

kernel_args! {
    /// Arguments of [`Axpy`].
    pub struct AxpyArgs(key: Axpy) {
        /// Added to `y` once it is multiplied by `a`, `[n]`.
        x: In<f32>[u64::from(key.n)] align 16;
        /// Changed in place, `[n]`.
        y: InOut<f32>[u64::from(key.n)] align 16;
        /// The factor.
        a: Scalar<f32>;
    }
}
// ANCHOR_END: declaration

// ANCHOR: kernel
impl Kernel for Axpy {
    const NAME: &'static str = "axpy";
    type Args = AxpyArgs;

    fn check(&self) -> Result<(), String> {
        if self.n.is_multiple_of(4) { Ok(()) } else { Err("n must be a multiple of 4".to_owned()) }
    }

    fn launch(&self) -> Launch {
        Launch::linear(self.n.div_ceil(4 * 256), 256)
    }

    fn build<'k>(&self, k: &'k Builder<'k>, args: AxpyArgs<Dev<'k>>) {
        let first = (k.block_id(Axis::X) * 256 + k.thread_id(Axis::X)) * 4;
        k.if_(first.lt(self.n), || {
            let x = k.buffer_load::<Vector<f32, 4>>(args.x, first);
            let y = k.buffer_load::<Vector<f32, 4>>(args.y, first);
            k.buffer_store(k.filled(args.a) * x + y, args.y, first);
        });
    }
}
// ANCHOR_END: kernel

// ANCHOR: run
fn main() -> Result<(), Box<dyn Error>> {
    use lathe_runtime::{DeviceBuffer, Engine};

    let Engine { device, jit } = Engine::open("cpu", None)?;
    let compiled = jit.get(&Axpy { n: 1000 }, device.target())?;

    let x: Vec<f32> = (0..1000).map(|i| i as f32).collect();
    let x = DeviceBuffer::from_slice(&device, &x)?;
    let y = DeviceBuffer::from_slice(&device, &[1.0; 1000])?;
    compiled.launch::<Axpy>(device.as_ref(), &AxpyArgs { x: x.arg(), y: y.arg(), a: 0.5 })?;

    let y = y.to_vec()?;
    assert!(y.iter().enumerate().all(|(i, y)| *y == 0.5 * i as f32 + 1.0));
    println!("y[999] = {}", y[999]);
    println!("{}", compiled.kernel());
    Ok(())
}
// ANCHOR_END: run
