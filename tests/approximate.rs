//! Promise: what a kernel's `afn` licence makes of `tanh`, `erf` and `pow` in machine code is as near to the exact value as the
//! op reference says.

use lathe_dsl::prelude::*;
use lathe_runtime::{DeviceBuffer, Engine};

/// Operands of one launch.
const N: u32 = 1 << 15;

build_key! {
    /// One function of many operands, approximately.
    pub struct Approximate {
        /// 0: tanh, 1: erf, 2: pow.
        function: u32 = 0, range(0, 2);
        /// Operands.
        n: u32 = 32768, range(256, 32768);
    }
}

kernel_args! {
    /// Arguments of [`Approximate`].
    pub struct ApproximateArgs(key: Approximate) {
        /// Operands, or bases.
        x: In<f32>[u64::from(key.n)] align 16;
        /// Exponents.
        y: In<f32>[u64::from(key.n)] align 16;
        /// Results.
        z: Out<f32>[u64::from(key.n)] align 16;
    }
}

impl Kernel for Approximate {
    const NAME: &'static str = "approximate";
    type Args = ApproximateArgs;
    fn launch(&self) -> Launch {
        Launch::linear(self.n / 256, 256)
    }
    fn build<'k>(&self, k: &'k Builder<'k>, args: ApproximateArgs<Dev<'k>>) {
        k.fast_math(FastMath::STRICT.allow(Family::Math, FastFlags::AFN));
        let i = k.block_id(Axis::X) * 256 + k.thread_id(Axis::X);
        let (x, y) = (k.buffer_load::<f32>(args.x, i), k.buffer_load::<f32>(args.y, i));
        let z = match self.function {
            0 => x.tanh(),
            1 => x.erf(),
            _ => x.pow(y),
        };
        k.buffer_store(z, args.z, i);
    }
}

fn results(device: &str, function: u32, x: &[f32], y: &[f32]) -> Vec<f32> {
    let Engine { device, jit } = Engine::open(device, None).unwrap();
    let key = Approximate { function, n: N };
    let compiled = jit.get(&key, device.target()).unwrap();
    let [x, y] = [x, y].map(|v| DeviceBuffer::from_slice(&device, v).unwrap());
    let z = DeviceBuffer::<f32>::uninit(&device, N as usize).unwrap();
    let args = ApproximateArgs { x: x.arg(), y: y.arg(), z: z.arg() };
    compiled.launch::<Approximate>(device.as_ref(), &args).unwrap();
    z.to_vec().unwrap()
}

/// Holds the machine code's results against the CPU device's, which are within 1 ulp of the exact ones. `bound` is relative.
fn compare(function: u32, x: &[f32], y: &[f32], bound: impl Fn(f64, f64) -> f64) {
    let exact = results("cpu", function, x, y);
    for target in lathe_runtime::gcn::targets() {
        let fast = results(&format!("gcn:{target}"), function, x, y);
        compare_one(&exact, &fast, x, y, &bound);
    }
}

fn compare_one(exact: &[f32], fast: &[f32], x: &[f32], y: &[f32], bound: impl Fn(f64, f64) -> f64) {
    let mut differ = 0;
    for i in 0..N as usize {
        let (wanted, got) = (f64::from(exact[i]), f64::from(fast[i]));
        let (a, b) = (x[i], y[i]);
        differ += u32::from(exact[i].to_bits() != fast[i].to_bits());
        if wanted.is_nan() || wanted.is_infinite() && f64::from(f32::MAX) * (1.0 + bound(a.into(), b.into())) < wanted {
            assert_eq!(wanted.is_nan(), got.is_nan(), "{a:e}, {b:e}: {got:e} instead of {wanted:e}");
            continue;
        }
        let allowed = wanted.abs() * (bound(a.into(), b.into()) + 2f64.powi(-23)) + 2f64.powi(-126);
        assert!((wanted - got).abs() <= allowed || wanted == got, "{a:e}, {b:e}: {got:e} instead of {wanted:e}");
    }
    assert!(differ > N / 100, "the licence changed nothing: {differ} of {N} results differ");
}

#[test]
fn tanh_and_erf_keep_their_bound() {
    // Every exponent, both signs, and densely where the functions are neither x nor 1.
    let spread = (0..N / 2).map(|i| f32::from_bits((i << 18) | (i.wrapping_mul(0x9E37) % (1 << 18))));
    let dense = (0..N / 2).map(|i| (i as f32 - 8192.0) / 2000.0);
    let x: Vec<f32> = spread.chain(dense).collect();
    let y = vec![1.0; N as usize];
    for function in [0, 1] {
        compare(function, &x, &y, |_, _| 2f64.powi(-18));
    }
}

#[test]
fn pow_keeps_its_bound() {
    let mut state = 7u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / 16_777_216.0
    };
    let (mut x, mut y) = (vec![], vec![]);
    for i in 0..N {
        // Bases from 2^-20 to 2^20, every fourth close to 1; every eighth negative with a whole exponent.
        let base = if i % 4 == 0 { 0.75 + random() / 2.0 } else { (random() * 40.0 - 20.0).exp2() };
        let exponent = random() * 12.0 - 6.0;
        x.push(if i % 8 == 1 { -base } else { base });
        y.push(if i % 8 == 1 { exponent.round() } else { exponent });
    }
    compare(2, &x, &y, |x, y| 2f64.powi(-21) * (1.0 + y.abs() * x.abs().log2().abs().max(1.0)));
}
