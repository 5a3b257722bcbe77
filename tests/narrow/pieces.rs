//! The same in pieces: as few elements as go into a `u8`, a `u16`, a word or some words take other instructions than 32 do.

use lathe_dsl::builder::{Codes, Element, MathFloat, Plain};
use lathe_dsl::kernel::Dev;
use lathe_dsl::numerics::Rounding;
use lathe_dsl::prelude::*;
use lathe_runtime::{DeviceBuffer, Engine};

use super::{as_f32_of, mixed, scale};

/// Threads of a launch; each converts one piece at a time, [`ROUNDS`] times.
const THREADS: usize = 256;
const ROUNDS: usize = 16;
/// Words that a piece takes at most, of elements and of codes.
const WORDS: usize = 16;

build_key! {
    /// Conversions of pieces of `length` elements.
    pub struct Pieces {
        /// Place in [`Narrow::ALL`].
        format: u32 = 0, range(0, 7);
        /// f32, f16 or bf16.
        element: u32 = 0, range(0, 2);
        /// Elements.
        length: u32 = 1, one_of(1, 2, 4, 8, 16);
        /// Whether it is `ieee`.
        ieee: u32 = 0, range(0, 1);
        /// Whether there is a scale.
        scaled: u32 = 0, range(0, 1);
        /// Codes to elements.
        decode: u32 = 0, range(0, 1);
        /// 0, or one more than the first byte of a word that codes are put into.
        into: u32 = 0, range(0, 4);
    }
}

kernel_args! {
    /// Arguments of [`Pieces`]: `WORDS` words a piece.
    pub struct PiecesArgs(key: Pieces) {
        /// Elements, or codes.
        x: In<u32>[(THREADS * ROUNDS * WORDS) as u64] align 16;
        /// A scale a piece.
        scale: In<f32>[(THREADS * ROUNDS) as u64] align 4;
        /// Codes, or elements.
        y: Out<u32>[(THREADS * ROUNDS * WORDS) as u64] align 16;
    }
}

impl Pieces {
    fn narrow(&self) -> Narrow {
        Narrow::ALL[self.format as usize]
    }

    fn overflow(&self) -> Overflow {
        if self.ieee == 1 { Overflow::Ieee } else { Overflow::Saturate }
    }

    fn element_bits(&self) -> u32 {
        if self.element == 0 { 32 } else { 16 }
    }

    /// Whether so many codes have a place: one alone, or a total of 8, 16 or whole words.
    fn fits(&self) -> bool {
        let total = self.length * self.narrow().bits();
        let fits = self.length == 1 || total == 8 || total == 16 || total.is_multiple_of(32);
        let placed =
            self.into == 0 || (fits && total <= 16 && self.length > 1 && (self.into - 1).is_multiple_of(total / 8));
        fits && placed && (self.scaled == 0 || self.narrow().signed()) && (self.into == 0 || self.decode == 0)
    }

    /// One piece: elements of type `D`, codes in `U`.
    fn piece<'k, D, U>(&self, k: &'k Builder<'k>, args: &PiecesArgs<Dev<'k>>)
    where
        D: MathFloat + Plain,
        U: Codes + Plain,
        D::Elem: Element,
    {
        let thread = k.block_id(Axis::X) * 64 + k.thread_id(Axis::X);
        let at = Bytes(thread * (WORDS as u32 * 4));
        let scale = (self.scaled == 1).then(|| k.buffer_load::<f32>(args.scale, thread));
        if self.decode == 1 {
            let codes: V<'k, U> = k.buffer_load(args.x.cast(), at);
            let x: V<'k, D> = match scale {
                Some(scale) => codes.decode_scaled(self.narrow(), scale),
                None => codes.decode(self.narrow()),
            };
            k.buffer_store(x, args.y.cast(), at);
            return;
        }
        let x: V<'k, D> = k.buffer_load(args.x.cast(), at);
        if self.into > 0 {
            let word = x.encode_into(OLD, self.into - 1, self.narrow(), self.overflow(), scale);
            k.buffer_store(word, args.y, at);
            return;
        }
        let codes: V<'k, U> = match scale {
            Some(scale) => x.encode_scaled(self.narrow(), self.overflow(), scale),
            None => x.encode(self.narrow(), self.overflow()),
        };
        k.buffer_store(codes, args.y.cast(), at);
    }

    /// By what the codes lie in.
    fn typed<'k, D: MathFloat + Plain>(&self, k: &'k Builder<'k>, args: &PiecesArgs<Dev<'k>>) {
        match (self.length * self.narrow().bits(), self.length) {
            (_, 1) | (8, _) => self.piece::<D, u8>(k, args),
            (16, _) => self.piece::<D, u16>(k, args),
            (32, _) => self.piece::<D, u32>(k, args),
            (64, _) => self.piece::<D, Vector<u32, 2>>(k, args),
            (96, _) => self.piece::<D, Vector<u32, 3>>(k, args),
            _ => self.piece::<D, Vector<u32, 4>>(k, args),
        }
    }
}

/// The word that codes are put into.
const OLD: u32 = 0xA5C3_960F;

impl Kernel for Pieces {
    const NAME: &'static str = "pieces";
    type Args = PiecesArgs;

    fn launch(&self) -> Launch {
        Launch::linear((THREADS * ROUNDS / 64) as u32, 64)
    }

    fn build<'k>(&self, k: &'k Builder<'k>, args: PiecesArgs<Dev<'k>>) {
        macro_rules! by_length {
            ($t:ty) => {
                match self.length {
                    1 => self.typed::<$t>(k, &args),
                    2 => self.typed::<Vector<$t, 2>>(k, &args),
                    4 => self.typed::<Vector<$t, 4>>(k, &args),
                    _ => self.typed::<Vector<$t, 8>>(k, &args),
                }
            };
        }
        match self.element {
            0 if self.length < 8 => by_length!(f32),
            1 => by_length!(f16),
            2 => by_length!(bf16),
            _ => {}
        }
    }
}

fn check(engine: &Engine, key: Pieces) {
    let (format, n) = (key.narrow(), key.length as usize);
    let (code_bits, element_bits) = (format.bits() as usize, key.element_bits() as usize);
    let (from, to) = if key.decode == 1 { (code_bits, element_bits) } else { (element_bits, code_bits) };
    let pieces = THREADS * ROUNDS;
    let input = |piece: usize, i: usize| {
        let any = mixed((piece * 16 + i) as u64) as u32;
        // Magnitudes near the format's, and anything.
        let bits = match (key.decode, key.element, any % 3) {
            (1, ..) | (_, _, 0) => any >> 3,
            (_, 0, _) => (any & 0x8FFF_FFFF) | 0x3000_0000,
            (_, 1, _) => (any & 0xBFFF) >> (any >> 30) | (any & 0x8000),
            _ => (any & 0x8FFF) | 0x3000,
        };
        bits & (u32::MAX >> (32 - from))
    };
    let mut x = vec![0u32; pieces * WORDS];
    for piece in 0..pieces {
        for i in 0..n {
            super::put(&mut x[piece * WORDS..], i, from, input(piece, i));
        }
    }
    let scales: Vec<f32> = (0..pieces).map(scale).collect();
    let device = &engine.device;
    let (x, scales) =
        (DeviceBuffer::from_slice(device, &x).unwrap(), DeviceBuffer::from_slice(device, &scales).unwrap());
    let y = DeviceBuffer::from_slice(device, &vec![OLD; pieces * WORDS]).unwrap();
    let args = PiecesArgs { x: x.arg(), scale: scales.arg(), y: y.arg() };
    let compiled = engine.jit.get(&key, device.target()).unwrap_or_else(|e| panic!("{key:?}: {e}"));
    compiled.launch::<Pieces>(device.as_ref(), &args).unwrap_or_else(|e| panic!("{key:?}: {e}"));
    let y = y.to_vec().unwrap();
    for piece in 0..pieces {
        let (words, s) = (&y[piece * WORDS..][..WORDS], scale(piece));
        let skipped = if key.into > 0 { (key.into as usize - 1) * 8 / to } else { 0 };
        for i in 0..n {
            let bits = input(piece, i);
            let got = super::at(words, skipped + i, to);
            let (want, same): (u32, fn(u32, u32, u32) -> bool) = if key.decode == 1 {
                let x = match key.scaled {
                    1 => format.decode_scaled(bits as u8, s),
                    _ => format.decode(bits as u8),
                };
                let want = match key.element {
                    0 => x.to_bits(),
                    1 => f16::from_f32(x).to_bits().into(),
                    _ => bf16::from_f32(x).to_bits().into(),
                };
                (want, |e, a, b| a == b || (as_f32_of(e, a).is_nan() && as_f32_of(e, b).is_nan()))
            } else {
                let x = as_f32_of(key.element, bits);
                let code = match key.scaled {
                    1 => format.encode_scaled(x, s, Rounding::NearestEven, key.overflow()),
                    _ => format.encode(x, Rounding::NearestEven, key.overflow()),
                };
                (code.into(), |_, a, b| a == b)
            };
            assert!(
                same(key.element, got, want),
                "{} {key:?}: of {bits:#x} with scale {s:?}: {got:#x}, expected {want:#x}",
                device.name()
            );
        }
        if key.into > 0 {
            // The other bits of the word.
            let replaced = (u32::MAX >> (32 - n * code_bits)) << ((key.into - 1) * 8);
            assert_eq!(words[0] & !replaced, OLD & !replaced, "{} {key:?}", device.name());
        }
    }
}

/// Every length of every format and type; overflow, scale and place take turns, so that each is met in each.
fn all() -> Vec<Pieces> {
    let mut keys = vec![];
    for format in 0..8 {
        for element in 0..3 {
            for length in [1, 2, 4, 8] {
                if element == 0 && length == 8 {
                    continue;
                }
                let turn = format + element + length;
                let key = Pieces { format, element, length, ieee: turn % 2, scaled: turn / 2 % 2, decode: 0, into: 0 };
                let other = Pieces { ieee: 1 - key.ieee, scaled: 1 - key.scaled, ..key };
                let all = [key, other, Pieces { decode: 1, ..key }, Pieces { decode: 1, ..other }];
                keys.extend(all);
                keys.extend((1..5).map(|into| Pieces { into, ..if into % 2 == 0 { key } else { other } }));
            }
        }
    }
    keys.retain(Pieces::fits);
    keys
}

#[test]
fn pieces_are_converted_as_narrow_says() {
    let keys = &all();
    assert!(keys.len() > 250, "{}", keys.len());
    std::thread::scope(|scope| {
        for device in ["cpu:gfx950", "gcn:gfx950", "gcn:gfx942", "gcn:gfx1201"] {
            scope.spawn(move || {
                let engine = Engine::open(device, None).unwrap();
                keys.iter().for_each(|key| check(&engine, *key));
            });
        }
    });
    if crate::filetests::machine::gpu().is_ok() {
        let engine = Engine::open("cuda", None).expect("there is a GPU");
        keys.iter().for_each(|key| check(&engine, *key));
    }
}

kernel_args! {
    /// Arguments of [`Named`].
    pub struct NamedArgs(key: Named) {
        /// Words.
        x: In<u32>[4096] align 4;
        /// What the methods give, four words a thread.
        y: Out<u32>[4 * 4096] align 16;
    }
}

build_key! {
    /// The methods that have FlyDSL's names.
    pub struct Named {
        /// Which byte, and which half.
        byte: u32 = 0, range(0, 3);
    }
}

impl Kernel for Named {
    const NAME: &'static str = "named";
    type Args = NamedArgs;

    fn launch(&self) -> Launch {
        Launch::linear(64, 64)
    }

    fn build<'k>(&self, k: &'k Builder<'k>, args: NamedArgs<Dev<'k>>) {
        let thread = k.block_id(Axis::X) * 64 + k.thread_id(Axis::X);
        let word = k.buffer_load::<u32>(args.x, thread);
        let (a, b) = (word.bf_lo(), word.bf_hi());
        let high = self.byte >= 2;
        let [low, up] = k.cvt_pk_f32_fp8(word, high).elements();
        let results = [
            k.pk_fp4_bf16(OLD, word, k.pow2(126u32), self.byte),
            k.pk_fp4_f32(OLD, a, b, k.pow2(126u32), self.byte),
            k.cvt_pk_fp8_f32(a, b, OLD, high),
            k.bf16_pair(low, up),
        ];
        k.buffer_store(k.vector(results), args.y, thread * 4);
    }
}

#[test]
fn methods_with_the_names_that_authors_know() {
    let words: Vec<u32> = (0..4096).map(|i| mixed(i) as u32).collect();
    for device in ["cpu:gfx950", "cpu:sm_90", "gcn:gfx950", "gcn:gfx942", "gcn:gfx1201"] {
        let engine = Engine::open(device, None).unwrap();
        for byte in 0..4 {
            let key = Named { byte };
            let x = DeviceBuffer::from_slice(&engine.device, &words).unwrap();
            let y = DeviceBuffer::from_slice(&engine.device, &vec![0u32; 4 * 4096]).unwrap();
            let compiled = engine.jit.get(&key, engine.device.target()).unwrap();
            let args = NamedArgs { x: x.arg(), y: y.arg() };
            compiled.launch::<Named>(engine.device.as_ref(), &args).unwrap();
            for (word, got) in words.iter().zip(y.to_vec().unwrap().chunks(4)) {
                let (a, b) = (f32::from_bits(word << 16), f32::from_bits(word & 0xFFFF_0000));
                let code = |f: Narrow, x: f32| u32::from(f.encode(x, Rounding::NearestEven, Overflow::Saturate));
                let put = |bits: u32, n: u32, at: u32| OLD & !((u32::MAX >> (32 - n)) << at) | bits << at;
                // Divided by one half.
                let fp4 = code(Narrow::E2m1, a * 2.0) | code(Narrow::E2m1, b * 2.0) << 4;
                let fp8 = code(Narrow::E4m3, a) | code(Narrow::E4m3, b) << 8;
                let half = 16 * u32::from(byte >= 2);
                assert_eq!(got[0], put(fp4, 8, 8 * byte), "{device} pk_fp4_bf16 of {word:#x}");
                assert_eq!(got[1], put(fp4, 8, 8 * byte), "{device} pk_fp4_f32 of {word:#x}");
                assert_eq!(got[2], put(fp8, 16, half), "{device} cvt_pk_fp8_f32 of {word:#x}");
                for (i, shift) in [0, 8].into_iter().enumerate() {
                    let number = Narrow::E4m3.decode((word >> (half + shift)) as u8);
                    let back = f32::from_bits((got[3] >> (16 * i)) << 16);
                    assert!(
                        back == number || (back.is_nan() && number.is_nan()),
                        "{device} cvt_pk_f32_fp8 of {word:#x}"
                    );
                }
            }
        }
    }
}
