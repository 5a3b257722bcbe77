//! Matrices to multiply, and what comes out.

use half::{bf16, f16};
use lathe_dsl::mma::{MmaShape, MmaType};
use lathe_dsl::numerics::Narrow;

/// What the elements are like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Data {
    /// Small numbers whose products all sum up exactly in f32.
    Exact,
    /// Any numbers of the type that are finite, of moderate size where it has a wide range.
    Random,
    /// Any bits at all.
    Wild,
}

impl Data {
    pub const ALL: [Self; 3] = [Self::Exact, Self::Random, Self::Wild];
}

/// Operands of all groups, as the kernel takes them.
pub struct Problem {
    shape: MmaShape,
    types: [MmaType; 2],
    scaled: Option<[u32; 2]>,
    /// Rows and elements along K of A that count.
    left: Option<(u32, u32)>,
    pub groups: u32,
    pub a: Vec<u32>,
    pub b: Vec<u32>,
    pub c: Vec<u32>,
    pub a_scale: Vec<u32>,
    pub b_scale: Vec<u32>,
}

/// A number stream without a pattern.
pub struct Stream(pub u64);

impl Stream {
    pub fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 32) as u32
    }

    fn below(&mut self, n: u32) -> u32 {
        ((u64::from(self.next()) * u64::from(n)) >> 32) as u32
    }
}

/// Bits of one element.
fn element(of: MmaType, data: Data, from: &mut Stream) -> u32 {
    let small = from.below(9) as i32 - 4;
    match (of, data) {
        (MmaType::F16, Data::Exact) => u32::from(f16::from_f32(small as f32 / 2.0).to_bits()),
        (MmaType::Bf16, Data::Exact) => u32::from(bf16::from_f32(small as f32 / 2.0).to_bits()),
        (MmaType::I8, Data::Exact) => (small as u32) & 0xFF,
        (MmaType::Narrow(format), Data::Exact) => loop {
            let code = from.below(1 << format.bits()) as u8;
            let x = format.decode(code);
            if x.abs() <= 4.0 && (x * 2.0).fract() == 0.0 {
                return code.into();
            }
        },
        // Exponents from 2^-8 to 2^7.
        (MmaType::F16, Data::Random) => (from.next() & 0x83FF) | (7 + from.below(16)) << 10,
        (MmaType::Bf16, Data::Random) => (from.next() & 0x807F) | (119 + from.below(16)) << 7,
        (MmaType::Narrow(format), Data::Random) => loop {
            let code = from.below(1 << format.bits()) as u8;
            if format.decode(code).is_finite() {
                return code.into();
            }
        },
        (of, _) => from.next() & (u32::MAX >> (32 - of.bits())),
    }
}

/// The number that an element's bits stand for.
fn number(of: MmaType, bits: u32) -> f64 {
    match of {
        MmaType::F16 => f16::from_bits(bits as u16).to_f64(),
        MmaType::Bf16 => bf16::from_bits(bits as u16).to_f64(),
        MmaType::I8 => f64::from(bits as i8),
        MmaType::Narrow(format) => f64::from(format.decode(bits as u8)),
    }
}

/// Element `i` of packed ones.
fn unpack(words: &[u32], bits: u32, i: usize) -> u32 {
    let at = i * bits as usize;
    (0..bits as usize).map(|b| (words[(at + b) / 32] >> ((at + b) % 32) & 1) << b).sum()
}

fn pack(elements: &[u32], bits: u32) -> Vec<u32> {
    let mut words = vec![0; (elements.len() * bits as usize).div_ceil(32)];
    for (i, e) in elements.iter().enumerate() {
        for b in 0..bits as usize {
            let at = i * bits as usize + b;
            words[at / 32] |= (e >> b & 1) << (at % 32);
        }
    }
    words
}

impl Problem {
    /// For so many groups. `scaled`: which bytes are the scales; all others are random.
    pub fn new(
        (shape, a, b): (MmaShape, MmaType, MmaType),
        scaled: Option<[u32; 2]>,
        groups: u32,
        data: Data,
        seed: u64,
    ) -> Self {
        let from = &mut Stream(seed.wrapping_mul(977) ^ 0x5DEE_CE66);
        let mut factor = |of: MmaType, n: u32| {
            let elements: Vec<u32> = (0..groups * n).map(|_| element(of, data, from)).collect();
            pack(&elements, of.bits())
        };
        let (packed_a, packed_b) = (factor(a, shape.m * shape.k), factor(b, shape.n * shape.k));
        let c = (0..groups * shape.m * shape.n)
            .map(|_| match (a, data) {
                (MmaType::I8, _) => from.next(),
                (_, Data::Exact) => (from.below(33) as f32 - 16.0).to_bits(),
                (_, Data::Random) => ((from.below(2001) as f32 - 1000.0) / 64.0).to_bits(),
                (_, Data::Wild) => from.next(),
            })
            .collect();
        let mut scales = |byte: u32| {
            let code = |from: &mut Stream| match data {
                Data::Exact => 125 + from.below(5),
                Data::Random => 115 + from.below(24),
                Data::Wild => from.below(256),
            };
            let shift = 8 * byte;
            let words = (0..groups * 64).map(|_| {
                let code = code(from);
                from.next() & !(0xFF << shift) | code << shift
            });
            words.collect::<Vec<_>>()
        };
        let [a_byte, b_byte] = scaled.unwrap_or_default();
        let (a_scale, b_scale) = (scales(a_byte), scales(b_byte));
        Self { shape, types: [a, b], scaled, left: None, groups, a: packed_a, b: packed_b, c, a_scale, b_scale }
    }

    /// The same, of whose A only so many rows and elements along K count.
    pub fn within(self, left: Option<(u32, u32)>) -> Self {
        Self { left, ..self }
    }

    /// Operand words of one group: its A and B by rows along K, its C, and the products' scales by block.
    fn group(&self, group: u32) -> impl Fn(u32, u32) -> (Vec<f64>, u32) {
        let MmaShape { m, n, k } = self.shape;
        let [of_a, of_b] = self.types;
        move |row, col| {
            let terms = (0..k).map(|i| {
                let a = number(of_a, unpack(&self.a, of_a.bits(), ((group * m + row) * k + i) as usize));
                let b = number(of_b, unpack(&self.b, of_b.bits(), ((group * n + col) * k + i) as usize));
                let scale = self.scaled.map_or(1.0, |[a_byte, b_byte]| {
                    let block = i / 32 * 16;
                    let code =
                        |words: &[u32], at: u32, byte| (words[(group * 64 + block + at) as usize] >> (8 * byte)) as u8;
                    let number = |code| f64::from(Narrow::E8m0.decode(code));
                    number(code(&self.a_scale, row, a_byte)) * number(code(&self.b_scale, col, b_byte))
                });
                let counts = self.left.is_none_or(|(rows, depth)| row < rows && i < depth);
                if counts { a * b * scale } else { 0.0 }
            });
            (terms.collect(), self.c[((group * m + row) * n + col) as usize])
        }
    }

    /// Holds D against A·B + C: bit for bit, or within the bound, in units of which the largest error is returned.
    pub fn check(&self, d: &[u32], exact: bool, what: &str) -> f64 {
        let MmaShape { m, n, .. } = self.shape;
        let mut worst = 0.0f64;
        let mut at = d.iter();
        for group in 0..self.groups {
            let product = self.group(group);
            for (row, col) in (0..m).flat_map(|row| (0..n).map(move |col| (row, col))) {
                let got = *at.next().expect("all elements");
                let (terms, c) = product(row, col);
                let place = || format!("{what}: group {group} row {row} column {col}");
                if self.types[0] == MmaType::I8 {
                    let want = (terms.iter().sum::<f64>() as i64 + i64::from(c as i32)) as i32;
                    assert_eq!(got as i32, want, "{}", place());
                    continue;
                }
                let (got, c) = (f32::from_bits(got), f64::from(f32::from_bits(c)));
                let want = terms.iter().sum::<f64>() + c;
                if exact {
                    // +0 for 0.
                    let want = want as f32 + 0.0;
                    assert_eq!(got.to_bits(), want.to_bits(), "{}: {got:e}, not {want:e}", place());
                    continue;
                }
                let size = terms.iter().map(|t| t.abs()).sum::<f64>() + c.abs();
                let bound = size * 2f64.powi(-20) + 2f64.powi(-126);
                let error = (f64::from(got) - want).abs() / bound;
                assert!(error <= 1.0, "{}: {got:e}, {want:e} within {bound:e}", place());
                worst = worst.max(error);
            }
        }
        worst
    }

    /// Holds D against A·B + C where NaNs and infinities are among the operands: NaN and infinity where they must be; numbers, where
    /// no sum on the way can pass `f32`'s range, within the bound.
    pub fn check_specials(&self, d: &[u32], what: &str) {
        let MmaShape { m, n, .. } = self.shape;
        if self.types[0] == MmaType::I8 {
            self.check(d, true, what);
            return;
        }
        let (mut at, mut nans, mut numbers) = (d.iter(), 0, 0);
        for group in 0..self.groups {
            let product = self.group(group);
            for (row, col) in (0..m).flat_map(|row| (0..n).map(move |col| (row, col))) {
                let got = f32::from_bits(*at.next().expect("all elements"));
                let (terms, c) = product(row, col);
                let c = f64::from(f32::from_bits(c));
                let want = terms.iter().sum::<f64>() + c;
                let size = terms.iter().map(|t| t.abs()).sum::<f64>() + c.abs();
                let place = format!("{what}: group {group} row {row} column {col}: {got:e}, {want:e}");
                if want.is_nan() {
                    nans += 1;
                    assert!(got.is_nan(), "{place}");
                } else if size < f64::from(f32::MAX) / 2.0 {
                    numbers += 1;
                    let bound = size * 2f64.powi(-20) + 2f64.powi(-126);
                    assert!((f64::from(got) - want).abs() <= bound, "{place} within {bound:e}");
                } else if want.is_infinite() && terms.iter().chain([&c]).all(|t| t.is_infinite() || t.abs() < 1e30) {
                    assert_eq!(f64::from(got), want, "{place}");
                }
            }
        }
        assert!(nans + numbers > 0, "{what}: nothing was compared");
    }
}
