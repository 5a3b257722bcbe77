//! Promise: latents become MXFP4 on every chip as the plain-Rust stage says, bit for bit: with every bf16 as the largest of a block.

use half::bf16;
use lathe_dsl::prelude::*;
use lathe_kernels::mla::latents::{BLOCK, quantise};
use lathe_kernels::mla::reference::uv::Quantised;
use lathe_runtime::{DeviceBuffer, Engine, gcn};

/// Bit patterns without a sign: a block each.
const BLOCKS: u32 = 1 << 15;
/// Threads of a block, and of a workgroup.
const EACH: u32 = 8;
const THREADS: u32 = 256;

build_key! {
    /// Quantises a block of latents for every magnitude.
    pub struct Quantise {
        /// Workgroups.
        groups: u32 = BLOCKS * EACH / THREADS, range(1, BLOCKS * EACH / THREADS);
    }
}

kernel_args! {
    /// Arguments of [`Quantise`].
    pub struct QuantiseArgs(key: Quantise) {
        /// Latents.
        x: In<bf16>[u64::from(key.groups * THREADS) * 4] align 16;
        /// Four codes a thread.
        codes: Out<u16>[u64::from(key.groups * THREADS)] align 16;
        /// A scale a thread.
        scales: Out<u32>[u64::from(key.groups * THREADS)] align 16;
    }
}

impl Kernel for Quantise {
    const NAME: &'static str = "quantise";
    type Args = QuantiseArgs;

    fn launch(&self) -> Launch {
        Launch::linear(self.groups, THREADS)
    }

    fn build<'k>(&self, k: &'k Builder<'k>, args: QuantiseArgs<Dev<'k>>) {
        let thread = k.block_id(Axis::X) * THREADS + k.thread_id(Axis::X);
        let words = k.buffer_load::<Vector<u32, 2>>(args.x.cast(), thread * 2);
        let (codes, scale) = quantise(k, words.elements());
        k.buffer_store(codes, args.codes, thread);
        k.buffer_store(scale, args.scales, thread);
    }
}

/// Block `m` has the magnitude `m` somewhere, and otherwise what is no larger: of its neighbourhood, or of any size.
fn latents() -> Vec<bf16> {
    let mut state = 1u32;
    let mut random = move |below: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        ((u64::from(state) * u64::from(below)) >> 32) as u32
    };
    let mut out = Vec::with_capacity((BLOCKS * BLOCK) as usize);
    for largest in 0..BLOCKS {
        let place = random(BLOCK);
        for i in 0..BLOCK {
            let magnitude = match random(4) {
                _ if i == place => largest,
                0 => random(largest + 1),
                _ => largest - random(largest.min(0x200) + 1),
            };
            out.push(bf16::from_bits((magnitude | random(2) << 15) as u16));
        }
    }
    out
}

#[test]
fn every_block_of_latents_is_quantised_as_the_stage_says() {
    let latents = latents();
    let expected: Vec<Quantised> = latents.chunks(BLOCK as usize).map(Quantised::new).collect();
    let key = Quantise { groups: BLOCKS * EACH / THREADS };
    let machines = gcn::targets().map(|t| format!("gcn:{t}"));
    for device in ["cpu:gfx950", "cpu:sm_90"].map(str::to_owned).into_iter().chain(machines) {
        let Engine { device, jit } = Engine::open(&device, None).expect("a device");
        let compiled = jit.get(&key, device.target()).expect("compiles");
        let x = DeviceBuffer::from_slice(&device, &latents).expect("fits");
        let codes = DeviceBuffer::<u16>::uninit(&device, (BLOCKS * EACH) as usize).expect("fits");
        let scales = DeviceBuffer::<u32>::uninit(&device, (BLOCKS * EACH) as usize).expect("fits");
        let args = QuantiseArgs { x: x.arg(), codes: codes.arg(), scales: scales.arg() };
        let report = compiled.launch::<Quantise>(device.as_ref(), &args).expect("runs");
        assert_eq!(report.findings, [""; 0], "{}", device.name());
        let (codes, scales) = (codes.to_vec().expect("read"), scales.to_vec().expect("read"));
        for (largest, block) in expected.iter().enumerate() {
            let threads = largest * EACH as usize..(largest + 1) * EACH as usize;
            let got: Vec<u8> =
                codes[threads.clone()].iter().flat_map(|w| (0..4).map(move |i| (w >> (4 * i) & 15) as u8)).collect();
            assert_eq!(got, block.codes, "{} largest {largest:#06x}", device.name());
            assert!(scales[threads].iter().all(|s| *s == u32::from(block.scale)), "{} {largest:#06x}", device.name());
        }
    }
}
