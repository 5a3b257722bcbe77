//! Promise: every target's conversions to and from codes of narrow floats give what `Narrow` says, bit for bit: from every f16
//! and bf16 and many f32, to and from every code, with every scale, saturating or not.

mod pieces;

use lathe_dsl::builder::{Codes, Data, MathFloat, Plain};
use lathe_dsl::numerics::Rounding;
use lathe_dsl::prelude::*;
use lathe_runtime::{DeviceBuffer, Engine};

use crate::filetests::machine;

/// Threads of a launch; each converts 32 elements.
const THREADS: u32 = 2048;
/// Elements a thread.
const EACH: usize = 32;

build_key! {
    /// A conversion.
    pub struct Conversion {
        /// Place in [`Narrow::ALL`].
        format: u32 = 0, range(0, 7);
        /// Whether it is `ieee`.
        ieee: u32 = 0, range(0, 1);
        /// f32, f16 or bf16.
        element: u32 = 0, range(0, 2);
        /// Whether there is a scale.
        scaled: u32 = 0, range(0, 1);
        /// Codes to elements.
        decode: u32 = 0, range(0, 1);
    }
}

impl Conversion {
    fn narrow(&self) -> Narrow {
        Narrow::ALL[self.format as usize]
    }

    fn overflow(&self) -> Overflow {
        if self.ieee == 1 { Overflow::Ieee } else { Overflow::Saturate }
    }

    /// Bits of an element.
    fn bits(&self) -> usize {
        if self.element == 0 { 32 } else { 16 }
    }

    /// Words that a thread's codes fill.
    fn words(&self) -> usize {
        EACH * self.narrow().bits() as usize / 32
    }
}

kernel_args! {
    /// Arguments of [`Conversion`].
    pub struct ConversionArgs(key: Conversion) {
        /// Elements or codes.
        x: In<u32>[u64::from(THREADS) * 32] align 16;
        /// A scale a thread.
        scale: In<f32>[u64::from(THREADS)] align 4;
        /// Codes or elements.
        y: Out<u32>[u64::from(THREADS) * 32] align 16;
    }
}

/// A thread's words of `x`.
fn loaded<'k, const N: usize>(
    k: &'k Builder<'k>,
    args: &ConversionArgs<Dev<'k>>,
    thread: V<'k, u32>,
) -> V<'k, Vector<u32, N>>
where
    Vector<u32, N>: Data<Elem = u32>,
{
    let words: [V<'k, u32>; N] = std::array::from_fn(|i| k.buffer_load::<u32>(args.x, thread * N as u32 + i as u32));
    k.vector(words)
}

/// A thread's words of `y`.
fn store<'k, const N: usize>(
    k: &'k Builder<'k>,
    args: &ConversionArgs<Dev<'k>>,
    thread: V<'k, u32>,
    words: V<'k, Vector<u32, N>>,
) where
    Vector<u32, N>: Data<Elem = u32>,
{
    for (i, word) in words.elements().into_iter().enumerate() {
        k.buffer_store(word, args.y, thread * N as u32 + i as u32);
    }
}

impl Conversion {
    /// Converts 32 elements of type `T`, which fill `E` words, to or from codes, which fill `C`.
    fn convert<'k, T, const E: usize, const C: usize>(
        &self,
        k: &'k Builder<'k>,
        args: &ConversionArgs<Dev<'k>>,
        thread: V<'k, u32>,
    ) where
        T: MathFloat + Plain,
        Vector<u32, E>: Data<Elem = u32> + Plain,
        Vector<u32, C>: Data<Elem = u32> + Codes,
    {
        let scale = (self.scaled == 1).then(|| k.buffer_load::<f32>(args.scale, thread));
        if self.decode == 1 {
            let codes: V<'k, Vector<u32, C>> = loaded(k, args, thread);
            let x: V<'k, T> = match scale {
                Some(scale) => codes.decode_scaled(self.narrow(), scale),
                None => codes.decode(self.narrow()),
            };
            store(k, args, thread, x.bitcast::<Vector<u32, E>>());
            return;
        }
        let x: V<'k, T> = loaded::<E>(k, args, thread).bitcast();
        let codes: V<'k, Vector<u32, C>> = match scale {
            Some(scale) => x.encode_scaled(self.narrow(), self.overflow(), scale),
            None => x.encode(self.narrow(), self.overflow()),
        };
        store(k, args, thread, codes);
    }
}

impl Kernel for Conversion {
    const NAME: &'static str = "conversion";
    type Args = ConversionArgs;

    fn launch(&self) -> Launch {
        Launch::linear(THREADS / 256, 256)
    }

    fn build<'k>(&self, k: &'k Builder<'k>, args: ConversionArgs<Dev<'k>>) {
        let thread = k.block_id(Axis::X) * 256 + k.thread_id(Axis::X);
        match (self.element, self.words()) {
            (0, 8) => self.convert::<Vector<f32, 32>, 32, 8>(k, &args, thread),
            (0, 6) => self.convert::<Vector<f32, 32>, 32, 6>(k, &args, thread),
            (0, _) => self.convert::<Vector<f32, 32>, 32, 4>(k, &args, thread),
            (1, 8) => self.convert::<Vector<f16, 32>, 16, 8>(k, &args, thread),
            (1, 6) => self.convert::<Vector<f16, 32>, 16, 6>(k, &args, thread),
            (1, _) => self.convert::<Vector<f16, 32>, 16, 4>(k, &args, thread),
            (_, 8) => self.convert::<Vector<bf16, 32>, 16, 8>(k, &args, thread),
            (_, 6) => self.convert::<Vector<bf16, 32>, 16, 6>(k, &args, thread),
            _ => self.convert::<Vector<bf16, 32>, 16, 4>(k, &args, thread),
        }
    }
}

/// A number in 64 bits that depends on all of `n`.
fn mixed(n: u64) -> u64 {
    let n = (n ^ n >> 31).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (n ^ n >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) ^ n >> 32
}

/// The bits of element `i`: every pattern of 16 bits; of 32 bits those whose low half is random, near a tie, or 0.
fn element(key: &Conversion, i: usize) -> u32 {
    let low = mixed(i as u64);
    match (key.element, low >> 60) {
        (0, 0..3) => (i as u32) << 16,
        (0, 3..6) => ((i as u32) << 16).wrapping_add(if low & 1 == 0 { 1 } else { u32::MAX }),
        (0, _) => (i as u32) << 16 | low as u32 & 0xFFFF,
        _ => i as u32,
    }
}

fn as_f32(key: &Conversion, bits: u32) -> f32 {
    as_f32_of(key.element, bits)
}

/// The number that the bits of an f32, f16 or bf16 (0, 1, 2) are.
fn as_f32_of(element: u32, bits: u32) -> f32 {
    match element {
        0 => f32::from_bits(bits),
        1 => f16::from_bits(bits as u16).to_f64() as f32,
        _ => f32::from_bits(bits << 16),
    }
}

/// The scale of a thread: every exponent field, other bits at random.
fn scale(thread: usize) -> f32 {
    let bits = mixed(thread as u64) as u32 & 0x807F_FFFF;
    f32::from_bits(bits | ((thread as u32 * 37) & 0xFF) << 23)
}

/// Bits of `bits` at place `i` of words.
fn at(words: &[u32], i: usize, bits: usize) -> u32 {
    let (word, shift) = (i * bits / 32, i * bits % 32);
    let high = words.get(word + 1).copied().unwrap_or(0);
    ((u64::from(words[word]) | u64::from(high) << 32) >> shift) as u32 & (u32::MAX >> (32 - bits))
}

/// Sets them.
fn put(words: &mut [u32], i: usize, bits: usize, value: u32) {
    let (word, shift) = (i * bits / 32, i * bits % 32);
    let moved = u64::from(value) << shift;
    words[word] |= moved as u32;
    if shift + bits > 32 {
        words[word + 1] |= (moved >> 32) as u32;
    }
}

/// Codes of a thread's elements, or bits of the elements of its codes.
fn expected(key: &Conversion, thread: usize, input: u32) -> u32 {
    let (format, s) = (key.narrow(), scale(thread));
    if key.decode == 0 {
        let x = as_f32(key, input);
        return u32::from(match key.scaled {
            1 => format.encode_scaled(x, s, Rounding::NearestEven, key.overflow()),
            _ => format.encode(x, Rounding::NearestEven, key.overflow()),
        });
    }
    let x = if key.scaled == 1 { format.decode_scaled(input as u8, s) } else { format.decode(input as u8) };
    match key.element {
        0 => x.to_bits(),
        1 => f16::from_f32(x).to_bits().into(),
        _ => bf16::from_f32(x).to_bits().into(),
    }
}

/// The input of a thread at place `i`.
fn input(key: &Conversion, thread: usize, i: usize) -> u32 {
    if key.decode == 0 {
        return element(key, thread * EACH + i);
    }
    // Every code with every scale: of 256 codes 8 threads hold 32 each, of which the scale's factor is coprime to 256.
    let codes = 1u32 << key.narrow().bits();
    ((thread / 256 * EACH + i) as u32) % codes
}

/// Runs one conversion of everything and compares it; of NaN elements only that they are some.
fn check(engine: &Engine, key: Conversion) {
    let (from, to) = if key.decode == 1 {
        (key.narrow().bits() as usize, key.bits())
    } else {
        (key.bits(), key.narrow().bits() as usize)
    };
    let per_thread = EACH * from / 32;
    let mut x = vec![0; THREADS as usize * 32];
    for thread in 0..THREADS as usize {
        for i in 0..EACH {
            put(&mut x[thread * per_thread..], i, from, input(&key, thread, i));
        }
    }
    let scales: Vec<f32> = (0..THREADS as usize).map(scale).collect();
    let compiled = engine.jit.get(&key, engine.device.target()).unwrap_or_else(|e| panic!("{key:?}: {e}"));
    let device = &engine.device;
    let (x, scales) =
        (DeviceBuffer::from_slice(device, &x).unwrap(), DeviceBuffer::from_slice(device, &scales).unwrap());
    let y = DeviceBuffer::from_slice(device, &vec![0xDEAD_BEEFu32; THREADS as usize * 32]).unwrap();
    let args = ConversionArgs { x: x.arg(), scale: scales.arg(), y: y.arg() };
    compiled.launch::<Conversion>(device.as_ref(), &args).unwrap_or_else(|e| panic!("{key:?}: {e}"));
    let y = y.to_vec().unwrap();
    let words = EACH * to / 32;
    for thread in 0..THREADS as usize {
        for i in 0..EACH {
            let input = input(&key, thread, i);
            let got = at(&y[thread * words..], i, to);
            let expected = expected(&key, thread, input);
            let same = got == expected || key.decode == 1 && is_nan(&key, got) && is_nan(&key, expected);
            assert!(
                same,
                "{} {} {key:?}: of {input:#x} with scale {:?}: {got:#x}, expected {expected:#x}",
                device.target(),
                key.narrow().name(),
                scale(thread),
            );
        }
    }
}

fn is_nan(key: &Conversion, bits: u32) -> bool {
    as_f32(key, bits).is_nan()
}

/// Every conversion there is.
fn all() -> Vec<Conversion> {
    let mut keys = vec![];
    for (format, narrow) in (0..).zip(Narrow::ALL) {
        for element in 0..3 {
            for scaled in 0..=u32::from(narrow.signed()) {
                for ieee in 0..2 {
                    keys.push(Conversion { format, ieee, element, scaled, decode: 0 });
                }
                keys.push(Conversion { format, ieee: 0, element, scaled, decode: 1 });
            }
        }
    }
    keys
}

#[test]
fn conversions_on_the_cpu_device_are_what_narrow_says() {
    for device in ["cpu:gfx950", "cpu:sm_90"] {
        let engine = Engine::open(device, None).unwrap();
        all().into_iter().for_each(|key| check(&engine, key));
    }
}

#[test]
fn conversions_in_amd_code_are_what_narrow_says() {
    for device in ["gcn:gfx950", "gcn:gfx942", "gcn:gfx1201"] {
        let engine = Engine::open(device, None).unwrap();
        all().into_iter().for_each(|key| check(&engine, key));
    }
}

#[test]
fn conversions_on_an_nvidia_gpu_are_what_narrow_says() {
    if let Err(reason) = machine::gpu() {
        println!("skipped: {reason}");
        return;
    }
    let engine = Engine::open("cuda", None).expect("there is a GPU");
    all().into_iter().for_each(|key| check(&engine, key));
}

/// The kernel-side scale rules, over every bf16 magnitude: what `scale_code` says.
mod scales {
    use super::*;
    use lathe_dsl::numerics::scale_code;

    build_key! {
        /// A rule for a format.
        pub struct Rule {
            /// Place in [`Narrow::ALL`].
            format: u32 = 0, range(0, 6);
            /// Whether it is `RoundUp`.
            up: u32 = 0, range(0, 1);
        }
    }

    kernel_args! {
        /// Arguments of [`Rule`].
        pub struct RuleArgs(key: Rule) {
            /// Largest magnitudes.
            amax: In<f32>[4 * 16384] align 4;
            /// Codes of their scales.
            code: Out<i32>[4 * 16384] align 4;
            /// What `even_code` makes of their upper halves.
            even: Out<i32>[4 * 16384] align 4;
            /// Their reciprocals.
            reciprocal: Out<f32>[4 * 16384] align 4;
        }
    }

    impl Rule {
        fn parts(&self) -> (ScaleRule, Narrow) {
            let rule = if self.up == 1 { ScaleRule::RoundUp } else { ScaleRule::Even };
            (rule, Narrow::ALL[self.format as usize])
        }
    }

    impl Kernel for Rule {
        const NAME: &'static str = "scale_rule";
        type Args = RuleArgs;

        fn launch(&self) -> Launch {
            Launch::linear(4 * 64, 256)
        }

        fn build<'k>(&self, k: &'k Builder<'k>, args: RuleArgs<Dev<'k>>) {
            let i = k.block_id(Axis::X) * 256 + k.thread_id(Axis::X);
            let amax = k.buffer_load::<f32>(args.amax, i);
            let (rule, format) = self.parts();
            k.buffer_store(k.scale_code(rule, format, amax), args.code, i);
            k.buffer_store(k.even_code(amax.bitcast::<u32>() >> 16), args.even, i);
            k.buffer_store(k.rcp_pow2((i & 0xFF).minimum(254)), args.reciprocal, i);
        }
    }

    #[test]
    fn scale_rules_in_kernels_are_those_of_the_host() {
        // Every magnitude of bf16 up to infinity, as it is and with more bits.
        let amax: Vec<f32> = (0..65536u32)
            .map(|i| {
                f32::from_bits(((i / 2).min(0x7F80) << 16) | if i % 2 == 1 && i / 2 < 0x7F80 { 0x8001 } else { 0 })
            })
            .collect();
        for device in ["cpu:gfx950", "gcn:gfx950"] {
            let engine = Engine::open(device, None).unwrap();
            for (format, up) in (0..7).flat_map(|f| [(f, 0), (f, 1)]) {
                let key = Rule { format, up };
                let compiled = engine.jit.get(&key, engine.device.target()).unwrap();
                let x = DeviceBuffer::from_slice(&engine.device, &amax).unwrap();
                let code = DeviceBuffer::from_slice(&engine.device, &vec![0i32; amax.len()]).unwrap();
                let even = DeviceBuffer::from_slice(&engine.device, &vec![0i32; amax.len()]).unwrap();
                let reciprocal = DeviceBuffer::from_slice(&engine.device, &vec![0f32; amax.len()]).unwrap();
                let args = RuleArgs { amax: x.arg(), code: code.arg(), even: even.arg(), reciprocal: reciprocal.arg() };
                compiled.launch::<Rule>(engine.device.as_ref(), &args).unwrap();
                let (code, even, reciprocal) =
                    (code.to_vec().unwrap(), even.to_vec().unwrap(), reciprocal.to_vec().unwrap());
                let (rule, narrow) = key.parts();
                for (i, x) in amax.iter().enumerate() {
                    assert_eq!(code[i], scale_code(rule, narrow, *x), "{rule:?} {} of {x:e}", narrow.name());
                    let upper = f32::from_bits(x.to_bits() & 0xFFFF_0000);
                    assert_eq!(even[i], scale_code(ScaleRule::Even, Narrow::E2m1, upper), "{x:e}");
                    let exact = 1.0 / f64::from(Narrow::E8m0.decode((i as u32 & 0xFF).min(254) as u8));
                    assert_eq!(f64::from(reciprocal[i]), exact, "code {}", i & 0xFF);
                }
            }
        }
    }
}
