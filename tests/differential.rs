//! Promise: what the interpreter says a program means, the emitted AMD code does, bit for bit.
//!
//! Small programs aimed at what compilers get wrong: wrapping offsets, lane-dependent loops, divisions, special floats.

use lathe_dsl::prelude::*;
use lathe_runtime::{DeviceBuffer, Engine};

/// Threads of the launch, and words of each buffer.
const THREADS: u32 = 2 * 2 * 32 * 2 * 2;

build_key! {
    /// One of the programs below.
    pub struct Program {
        /// Which.
        case: u32 = 0, range(0, CASES - 1);
    }
}

/// Programs.
const CASES: u32 = 14;

kernel_args! {
    /// Arguments of [`Program`].
    pub struct ProgramArgs(key: Program) {
        /// Random words, special floats among them.
        x: In<u32>[u64::from(THREADS)] align 16;
        /// One word a thread, most often.
        y: Out<u32>[u64::from(THREADS)] align 16;
        /// A number that the compiler does not know: 10.
        n: Scalar<u32>;
    }
}

impl Kernel for Program {
    const NAME: &'static str = "program";
    type Args = ProgramArgs;

    fn launch(&self) -> Launch {
        Launch { grid: [2, 2, 1], block: [32, 2, 2], waves_per_eu: None, maxnreg: None }
    }

    fn build<'k>(&self, k: &'k Builder<'k>, args: ProgramArgs<Dev<'k>>) {
        let tid = k.thread_id(Axis::X) + k.thread_id(Axis::Y) * 32 + k.thread_id(Axis::Z) * 64;
        let id = tid + (k.block_id(Axis::X) + k.block_id(Axis::Y) * 2) * 128;
        let x = k.buffer_load::<u32>(args.x, id);
        let result = match self.case {
            // The offset wraps on its way to a byte inside the buffer.
            0 => k.buffer_load::<u32>(args.x, Bytes((args.n - tid) * 4 + 512)),
            1 => {
                let lds = k.lds::<u32>("a", 256);
                k.ptr_store(x, lds + tid);
                k.barrier();
                k.ptr_load::<u32>(lds + (args.n + 117 - tid))
            }
            2 => k.for_range(tid.rem_floor(5), x.rem_floor(11), 2, x, |i, acc| acc * 31 + i),
            3 => k.if_else(
                x.lt(0x8000_0000),
                || k.if_else((tid & 1).eq(0), || x + 1, || x - tid),
                || k.if_else(tid.lt(args.n), || !x, || x ^ tid),
            ),
            4 => {
                let (a, b) = (x.bitcast::<i32>(), (tid.bitcast::<i32>() - 50) * 77777);
                let b = b.eq(0).select(3, b);
                (a.div_floor(b) ^ a.rem_floor(b)).bitcast()
            }
            5 => {
                let d = (tid * 0x0101_0101) | 1;
                x.div_floor(d) ^ (x.rem_floor(d) << 7)
            }
            6 => {
                let wide = x.bitcast::<i32>().to::<i64>() * tid.to::<i64>() - 0x1234_5678_9ABCi64;
                let shifted = (wide >> tid.to::<i64>()) ^ (wide << x.to::<i64>());
                let folded = shifted.lt(-5).select(shifted - 1, shifted).bitcast::<u64>();
                (folded >> 32).to::<u32>() ^ folded.to::<u32>()
            }
            7 => {
                let (a, b) = (x.bitcast::<f32>(), k.buffer_load::<f32>(args.x.cast(), id ^ 5));
                let sum = [a + b, a - b, a * b, a / b, a.maximum(b), a.minimum(b)].map(bits);
                sum.into_iter().reduce(|a, b| a * 3 + b).unwrap_or(x)
            }
            8 => {
                let a = x.bitcast::<f32>();
                let b = k.buffer_load::<f32>(args.x.cast(), id ^ 9);
                let words = k.bf16_pair(a, b);
                bits(words.bf_lo()) ^ (bits(words.bf_hi()) >> 3) ^ bits(x.bitcast::<i32>().to::<f32>())
            }
            // Reads past the end, and across it.
            9 => {
                let words = k.buffer_load::<Vector<u32, 4>>(args.x, id * 2 + 1).elements();
                words.into_iter().reduce(|a, b| a * 5 + b).unwrap_or(x)
            }
            // Stores past the end, and across it, are dropped.
            10 => {
                k.buffer_store(x, args.y, id);
                k.barrier();
                let far = id * (THREADS - 2);
                k.if_(id.gt(0), || k.buffer_store(k.filled::<u32, 4>(x), args.y, far));
                // Hidden from the verifier, which would refuse it.
                k.buffer_store(x, args.y, Bytes(id.opaque() * 4 + 0xFFFF_0000));
                return;
            }
            11 => (x << tid) ^ (x >> (tid * 3)) ^ (x.bitcast::<i32>() >> tid.bitcast::<i32>()).bitcast(),
            12 => {
                let a = (x & 0x3FF).to::<f32>() * 0.03125 - 16.0;
                bits(a.hw_exp2()) ^ bits((a + 0.015625).hw_rcp())
            }
            _ => {
                let wide = k.buffer_load::<Vector<u64, 2>>(args.x.cast(), id & !1).elements();
                let sum = k.vector(wide) + k.vector([wide[1], wide[0]]);
                let narrow = sum.element(1).maximum(sum.element(0) >> 3);
                narrow.to::<u32>() ^ (x.to::<u16>() & 0xFFF).to::<u32>()
            }
        };
        k.buffer_store(result, args.y, id);
    }
}

/// The bits of a float; every NaN is the same one (which of them arithmetic makes is not defined).
fn bits(x: V<'_, f32>) -> V<'_, u32> {
    x.ne(x).select(0x7FC0_0000, x.bitcast::<u32>())
}

/// Random words; one in four is a special float.
fn words(seed: u64) -> Vec<u32> {
    const SPECIAL: [u32; 8] =
        [0, 0x8000_0000, 0x7F80_0000, 0xFF80_0000, 0x7FC0_0000, 0x0000_0001, 0x807F_FFFF, 0x3F80_0000];
    let mut state = seed;
    (0..THREADS)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let word = (state >> 32) as u32;
            if word.is_multiple_of(4) { SPECIAL[(state >> 20) as usize % 8] } else { word }
        })
        .collect()
}

fn run(engine: &Engine, case: u32, x: &[u32]) -> Vec<u32> {
    let compiled = engine.jit.get(&Program { case }, engine.device.target()).unwrap();
    let x = DeviceBuffer::from_slice(&engine.device, x).unwrap();
    let y = DeviceBuffer::from_slice(&engine.device, &vec![0xDEAD_BEEF; THREADS as usize]).unwrap();
    let args = ProgramArgs { x: x.arg(), y: y.arg(), n: 10 };
    compiled.launch::<Program>(engine.device.as_ref(), &args).unwrap_or_else(|e| panic!("case {case}: {e}"));
    y.to_vec().unwrap()
}

#[test]
fn the_interpreter_and_the_amd_code_agree() {
    for target in lathe_runtime::gcn::targets() {
        let [cpu, gcn] = ["cpu", "gcn"].map(|kind| Engine::open(&format!("{kind}:{target}"), None).unwrap());
        for case in 0..CASES {
            for seed in 0..3 {
                let x = words(seed);
                let (expected, got) = (run(&cpu, case, &x), run(&gcn, case, &x));
                for (i, (e, g)) in expected.iter().zip(&got).enumerate() {
                    assert_eq!(e, g, "{target} case {case} seed {seed} thread {i}: {e:#x} on cpu, {g:#x} on gcn");
                }
                assert!(expected.iter().any(|w| *w != 0xDEAD_BEEF), "case {case} stores something");
            }
        }
    }
}

/// Case 0 by hand: the interpreter itself is held to what the operations say.
#[test]
fn an_offset_that_wraps_is_a_plain_number_again() {
    let x = words(1);
    let y = run(&Engine::open("cpu:sm_90", None).unwrap(), 0, &x);
    for (i, word) in y.iter().enumerate() {
        let at = 10u32.wrapping_sub(i as u32 % 128).wrapping_mul(4).wrapping_add(512) / 4;
        assert_eq!(*word, x[at as usize], "thread {i}");
    }
}
