//! Kernels ahead of time: one program writes a bundle, another one, without a compiler, launches from it.
//!
//! Here both are one program, and the bundle has code for the CPU device. A service writes the bundle with
//! `lathe bundle build`, or with a [`BundleWriter`] over a JIT that has LLVM, and includes it with
//! `include_bytes!("kernels.lathe").as_slice()`.

#[allow(dead_code)] // Its main function and its run on a JIT.
#[path = "axpy.rs"]
mod axpy;

use std::error::Error;
use std::sync::Arc;

use axpy::{Axpy, AxpyArgs};
use lathe_dsl::Target;
use lathe_runtime::DeviceBuffer;
use lathe_runtime::bundle::{Bundle, BundleWriter, Place};
use lathe_runtime::device::{Cpu, CpuOptions, Device};
use lathe_runtime::jit::{Interpreter, Jit};

// ANCHOR: write
/// What the machine with the compiler does: a bundle's bytes with a kernel for every key.
fn write(keys: &[Axpy]) -> Result<Vec<u8>, Box<dyn Error>> {
    let jit = Jit::new(Interpreter); // For chips: `Jit::new(Llvm::default())`.
    let mut writer = BundleWriter::new();
    for key in keys {
        writer.add(key, jit.get(key, Target::GFX950)?.as_ref())?;
    }
    Ok(writer.to_bytes()?) // Or `writer.write(path)`.
}
// ANCHOR_END: write

// ANCHOR: launch
/// What the machine without a compiler does: y = a·x + y for x = 0, 1, 2, … and y = 1.
fn launch(bundle: &Bundle, n: u32, a: f32) -> Result<Vec<f32>, Box<dyn Error>> {
    let device: Arc<dyn Device> = Arc::new(Cpu::new(Target::GFX950, CpuOptions::default()));
    let compiled = bundle.get(&Axpy { n }, Place::Cpu(device.target()))?;

    let x: Vec<f32> = (0..n).map(|i| i as f32).collect();
    let x = DeviceBuffer::from_slice(&device, &x)?;
    let y = DeviceBuffer::from_slice(&device, &vec![1.0; n as usize])?;
    compiled.launch::<Axpy>(device.as_ref(), &AxpyArgs { x: x.arg(), y: y.arg(), a })?;
    Ok(y.to_vec()?)
}
// ANCHOR_END: launch

fn main() -> Result<(), Box<dyn Error>> {
    let bytes = write(&[Axpy { n: 1000 }, Axpy { n: 64 }])?;
    let bundle = Bundle::from_bytes(bytes)?;
    for n in [1000, 64] {
        let y = launch(&bundle, n, 0.5)?;
        assert!(y.iter().enumerate().all(|(i, y)| *y == 0.5 * i as f32 + 1.0));
        println!("n = {n}: y[{}] = {}", n - 1, y[n as usize - 1]);
    }
    // A key that was not bundled is an error that lists what was.
    let error = launch(&bundle, 128, 0.5).err().ok_or("a kernel that is not in the bundle was launched")?;
    assert!(error.to_string().contains("has no `axpy` {n=128}"), "{error}");
    println!("{error}");
    Ok(())
}

#[test]
fn runs() {
    main().unwrap();
}
