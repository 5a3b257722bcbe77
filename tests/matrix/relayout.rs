//! Promise: sums become factors by exchanges between lanes, every element in its place.

use lathe_dsl::Target;
use lathe_dsl::kernel::Dev;
use lathe_dsl::prelude::*;
use lathe_runtime::{DeviceBuffer, Engine};

use crate::filetests::machine;

build_key! {
    /// Multiplies a matrix, brought from the layout of sums into that of a factor, by the identity.
    pub struct Relayout {
        /// 0: 16×16 as A; 1: 16×16 as B; 2: 16×8 as A.
        case: u32 = 0, range(0, 2);
    }
}

kernel_args! {
    /// Arguments of [`Relayout`].
    pub struct RelayoutArgs(key: Relayout) {
        /// The matrix, by rows.
        x: In<f32>[256] align 16;
        /// The identity.
        one: In<f16>[256] align 16;
        /// The product.
        y: Out<f32>[256] align 16;
    }
}

impl Kernel for Relayout {
    const NAME: &'static str = "relayout";
    type Args = RelayoutArgs;

    fn launch(&self) -> Launch {
        Launch::linear(1, 64)
    }

    fn build<'k>(&self, k: &'k Builder<'k>, args: RelayoutArgs<Dev<'k>>) {
        match self.case {
            0 => as_a::<16>(k, &args),
            1 => {
                type P = Mma<16, 16, 16, f16>;
                let x: FragmentC<P> = k.load_fragment(Matrix::new(k, args.x, Storage::RowMajor, 0, 16));
                let one = k.load_fragment(Matrix::new(k, args.one, Storage::RowMajor, 0, 16));
                let halves: Vec<V<f16>> = x.registers().into_iter().map(|v| v.to()).collect();
                let moved = k.relayout(&halves, &x.layout(), &k.fragment_layout::<P, roles::B>());
                let y: FragmentC<P> = k.mma(one, k.fragment(&moved), k.zero_fragment());
                k.store_fragment(y, Matrix::new(k, args.y, Storage::RowMajor, 0, 16), |v, _| v);
            }
            _ => as_a::<8>(k, &args),
        }
    }
}

/// The sums of 16×N×N as its A.
fn as_a<'k, const N: u32>(k: &'k Builder<'k>, args: &RelayoutArgs<Dev<'k>>) {
    let x: FragmentC<Mma<16, N, N, f16>> = k.load_fragment(Matrix::new(k, args.x, Storage::RowMajor, 0, N));
    let one = k.load_fragment(Matrix::new(k, args.one, Storage::ColMajor, 0, N));
    let halves: Vec<V<f16>> = x.registers().into_iter().map(|v| v.to()).collect();
    let moved = k.relayout(&halves, &x.layout(), &k.fragment_layout::<Mma<16, N, N, f16>, roles::A>());
    let y: FragmentC<Mma<16, N, N, f16>> = k.mma(k.fragment(&moved), one, k.zero_fragment());
    k.store_fragment(y, Matrix::new(k, args.y, Storage::RowMajor, 0, N), |v, _| v);
}

fn holds(engine: &Engine, cases: &[u32]) {
    for &case in cases {
        let n = if case == 2 { 8 } else { 16 };
        let x: Vec<f32> = (0..256).map(|i| i as f32 - 99.0).collect();
        let identity = |i: usize| if i / n == i % n && i < n * n { f16::ONE } else { f16::ZERO };
        let one: Vec<f16> = (0..256).map(identity).collect();
        let [x_buffer, y] =
            [&x, &vec![f32::NAN; 256]].map(|v| DeviceBuffer::from_slice(&engine.device, v).expect("memory"));
        let one = DeviceBuffer::from_slice(&engine.device, &one).expect("memory");
        let args = RelayoutArgs { x: x_buffer.arg(), one: one.arg(), y: y.arg() };
        let compiled = engine.jit.get(&Relayout { case }, engine.device.target()).expect("it compiles");
        compiled.launch::<Relayout>(engine.device.as_ref(), &args).expect("it runs");
        let got = y.to_vec().expect("it copies");
        assert_eq!(got[..16 * n], x[..16 * n], "{} case {case}", engine.device.name());
    }
}

#[test]
fn sums_become_factors() {
    for target in Target::all() {
        let cases: &[u32] = if target.chip().arch == lathe_dsl::Arch::Nvptx { &[2] } else { &[0, 1] };
        holds(&Engine::open(&format!("cpu:{target}"), None).expect("it opens"), cases);
        if machine::executes(target) {
            holds(&Engine::open(&format!("gcn:{target}"), None).expect("it opens"), cases);
        }
    }
    if machine::gpu().is_ok() {
        holds(&Engine::open("cuda", None).expect("there is a GPU"), &[2]);
    }
}
