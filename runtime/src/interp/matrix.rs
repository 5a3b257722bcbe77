//! Matrix products: each group of lanes' registers become matrices, are multiplied, and go back.

use half::{bf16, f16};
use lathe_dsl::mma::{Fragments, Layout, MmaShape, MmaType, Tiles};
use lathe_dsl::numerics::{MmaRounding, Narrow, exact_sum, hopper_step};

use super::lanes::whole_groups;
use super::program::{Instr, Reg};
use super::rows::{Done, Regs};

/// Elements along K that share a scale.
const BLOCK: usize = lathe_dsl::mma::BLOCK as usize;

/// A matrix product of a kernel, made ready.
#[derive(Debug)]
pub(super) struct Product {
    pub(super) fragments: Fragments,
    shape: MmaShape,
    lanes: usize,
    a: Factor,
    b: Factor,
    /// In rows.
    c: Places,
    scales: Option<[Scale; 2]>,
}

/// How A or B comes out of registers: both to rows along K.
#[derive(Debug)]
struct Factor {
    of: MmaType,
    /// Every code's number, if it is a narrow float.
    numbers: Vec<f64>,
    places: Places,
}

/// How scales come out of registers.
#[derive(Debug)]
struct Scale {
    byte: u32,
    /// Blocks along K run fastest.
    places: Places,
}

/// Place in a matrix of each element of each lane, by lane.
#[derive(Debug)]
struct Places {
    at: Vec<usize>,
    /// Elements a lane.
    each: usize,
}

/// Registers of a product.
pub(super) struct Operands {
    pub(super) dst: Reg,
    pub(super) factors: [Reg; 2],
    pub(super) c: Reg,
    pub(super) scales: [Reg; 2],
}

/// What an element of D is made of.
#[derive(Clone, Copy)]
struct Terms<'m> {
    /// The row of A and the column of B.
    a: &'m [f64],
    b: &'m [f64],
    /// Their scales, by block.
    scales: Option<(&'m [f64], &'m [f64])>,
    /// Bits of the element of C.
    c: u32,
    /// Which element of D of the group it is, or the first one with the same row, column and scales.
    like: usize,
}

impl Places {
    fn new(layout: &Layout, place: impl Fn((u32, u32)) -> u32) -> Self {
        let elements = |lane| (0..layout.elements()).map(move |e| (lane, e));
        let at = (0..layout.lanes()).flat_map(elements).map(|(lane, e)| place(layout.at(lane, e)) as usize).collect();
        Self { at, each: layout.elements() as usize }
    }

    /// Lane, element and place of each.
    fn iter(&self) -> impl Iterator<Item = (usize, usize, usize)> {
        let lanes = self.at.chunks_exact(self.each).enumerate();
        lanes.flat_map(|(lane, places)| places.iter().enumerate().map(move |(element, place)| (lane, element, *place)))
    }

    /// The matrix of what `get` says of each lane and element.
    fn matrix(&self, get: impl Fn(usize, usize) -> f64) -> Vec<f64> {
        let mut matrix = vec![0.0; self.at.len()];
        for (lane, places) in self.at.chunks_exact(self.each).enumerate() {
            for (element, place) in places.iter().enumerate() {
                matrix[*place] = get(lane, element);
            }
        }
        matrix
    }
}

impl Operands {
    /// Those of an instruction, with the product's number, if it is one.
    pub(super) fn of<const W: usize>(instr: &Instr<W>) -> Option<(Self, u32)> {
        match *instr {
            Instr::Product { dst, a, b, c, product } => {
                Some((Self { dst, factors: [a, b], c, scales: [0; 2] }, product))
            }
            Instr::ScaledProduct { dst, a, b, c, a_scale, b_scale, product } => {
                Some((Self { dst, factors: [a, b], c, scales: [a_scale, b_scale] }, product))
            }
            _ => None,
        }
    }
}

impl Product {
    pub(super) fn new(fragments: Fragments, shape: MmaShape, tiles: &Tiles, types: [MmaType; 2]) -> Self {
        let factor = |of: MmaType, places| {
            let numbers = match of {
                MmaType::Narrow(format) => (0..=255).map(|code| f64::from(format.decode(code))).collect(),
                _ => vec![],
            };
            Factor { of, numbers, places }
        };
        let [a, b] = types;
        Self {
            fragments,
            shape,
            lanes: tiles.lanes() as usize,
            a: factor(a, Places::new(&tiles.a, |(row, k)| row * shape.k + k)),
            b: factor(b, Places::new(&tiles.b, |(k, col)| col * shape.k + k)),
            c: Places::new(&tiles.c, |(row, col)| row * shape.n + col),
            scales: None,
        }
    }

    /// With scales, taken from the bytes so numbered.
    pub(super) fn scaled(self, layouts: [&Layout; 2], bytes: [u32; 2]) -> Self {
        let blocks = self.shape.k / BLOCK as u32;
        let [a, b] = layouts;
        let a = Scale { byte: bytes[0], places: Places::new(a, |(row, block)| row * blocks + block) };
        let b = Scale { byte: bytes[1], places: Places::new(b, |(block, col)| col * blocks + block) };
        Self { scales: Some([a, b]), ..self }
    }

    /// Multiplies the matrices of every group of lanes.
    pub(super) fn run<const W: usize>(
        &self,
        regs: &mut Regs<W>,
        operands: &Operands,
        rounding: MmaRounding,
        mask: u64,
    ) -> Done {
        whole_groups::<W>(W as u32, mask)?;
        let mut sums = vec![];
        // Of columns that repeat, as where there are fewer tokens than columns, each is multiplied once. By `like`, with C.
        let mut known: Vec<Option<(u32, u32)>> = vec![];
        let mut group = usize::MAX;
        self.elements(regs, operands, |lane, row, terms| {
            if group != lane / self.lanes {
                group = lane / self.lanes;
                known.clear();
                known.resize(self.c.at.len(), None);
            }
            let sum = match known[terms.like] {
                Some((c, sum)) if c == terms.c => sum,
                _ => self.one(&terms, rounding),
            };
            known[terms.like] = Some((terms.c, sum));
            sums.push((lane, row, sum));
        });
        for (lane, row, sum) in sums {
            regs.r32[(operands.dst + row) as usize][lane] = sum;
        }
        Ok(())
    }

    /// Lanes that hold a NaN of D which no operand of it explains.
    pub(super) fn made_nans<const W: usize>(&self, regs: &Regs<W>, operands: &Operands) -> u64 {
        let mut lanes = 0;
        self.elements(regs, operands, |lane, row, terms| {
            let given = || {
                let scales = terms.scales.into_iter().flat_map(|(a, b)| a.iter().chain(b));
                terms.a.iter().chain(terms.b).chain(scales).any(|x| x.is_nan()) || f32::from_bits(terms.c).is_nan()
            };
            if f32::from_bits(regs.r32[(operands.dst + row) as usize][lane]).is_nan() && !given() {
                lanes |= 1 << lane;
            }
        });
        lanes
    }

    /// Calls `f` with lane, row in D's registers and terms of every element of D.
    fn elements<const W: usize>(&self, regs: &Regs<W>, operands: &Operands, mut f: impl FnMut(usize, Reg, Terms<'_>)) {
        let [n, k] = [self.shape.n, self.shape.k].map(|x| x as usize);
        let blocks = k / BLOCK;
        for first in (0..W).step_by(self.lanes) {
            let [a, b] = [(&self.a, operands.factors[0]), (&self.b, operands.factors[1])]
                .map(|(factor, from)| factor.read(regs, from, first));
            let scales = self.scales.as_ref().map(|[a, b]| {
                let [of_a, of_b] = operands.scales;
                [a.read(regs, of_a, first), b.read(regs, of_b, first)]
            });
            let scales_of = |j: usize| scales.as_ref().map_or(&[][..], |[_, b]| &b[j * blocks..][..blocks]);
            let same = |i: usize, j: usize| {
                let column = |j: usize| b[j * k..][..k].iter().chain(scales_of(j)).map(|x| x.to_bits());
                column(i).eq(column(j))
            };
            let mut alike: Vec<usize> = vec![];
            for j in 0..n {
                alike.push((0..j).find(|i| alike[*i] == *i && same(*i, j)).unwrap_or(j));
            }
            for (lane, element, place) in self.c.iter() {
                let (lane, row) = (first + lane, element as Reg);
                let (i, j) = (place / n, place % n);
                let scales = scales.as_ref().map(|[a, _]| (&a[i * blocks..][..blocks], scales_of(j)));
                let c = regs.r32[(operands.c + row) as usize][lane];
                let like = i * n + alike[j];
                f(lane, row, Terms { a: &a[i * k..][..k], b: &b[j * k..][..k], scales, c, like });
            }
        }
    }

    /// One element of D.
    fn one(&self, terms: &Terms<'_>, rounding: MmaRounding) -> u32 {
        let Terms { a, b, scales, c, .. } = *terms;
        let products = a.iter().zip(b).map(|(a, b)| a * b);
        if self.a.of == MmaType::I8 {
            // Exact in f64, then modulo 2^32.
            return (products.sum::<f64>() as i64).wrapping_add(i64::from(c as i32)) as u32;
        }
        let c = f32::from_bits(c);
        let sum = match (rounding, scales) {
            (MmaRounding::Exact, None) => exact_sum(products, c),
            (MmaRounding::Exact, Some((of_a, of_b))) => {
                let scaled = products.enumerate().map(|(k, p)| p * (of_a[k / BLOCK] * of_b[k / BLOCK]));
                exact_sum(scaled, c)
            }
            (MmaRounding::Hopper, None) => self.hopper(a, b, c),
            (MmaRounding::Hopper, Some(scales)) => self.hopper_scaled(a, b, scales, c),
        };
        sum.to_bits()
    }

    /// As `mma.sync` does it on sm_90.
    fn hopper(&self, a: &[f64], b: &[f64], c: f32) -> f32 {
        let factors = a.iter().copied().zip(b.iter().copied());
        match self.a.of {
            MmaType::F16 => hopper_step(factors, c, [-14; 2]),
            MmaType::Bf16 => hopper_step(factors, c, [-126; 2]),
            // The chip converts to f16 and multiplies in two steps: the lower two bytes of every register, then the upper two.
            _ => {
                let half = |upper: bool| factors.clone().enumerate().filter(move |(k, _)| (k & 2 != 0) == upper);
                let low = hopper_step(half(false).map(|(_, f)| f), 0.0, [-14; 2]);
                canonical(hopper_step(half(true).map(|(_, f)| f), low, [-14; 2]) + c)
            }
        }
    }

    /// As the expansion of `mfma_scaled` does it on sm_90: a block at a time in two steps of f16 products, the first of k with
    /// `k mod 8 < 4`; the block's sum times one half of its power, then with the other half added to C and the blocks before.
    fn hopper_scaled(&self, a: &[f64], b: &[f64], (of_a, of_b): (&[f64], &[f64]), c: f32) -> f32 {
        // Codes of 6 and 4 bits become f16 whose normal numbers begin where the codes' do.
        let floor = |of: MmaType| match of {
            MmaType::Narrow(Narrow::E2m1 | Narrow::E2m3) => 0,
            MmaType::Narrow(Narrow::E3m2) => -2,
            _ => -14,
        };
        let floors = [floor(self.a.of), floor(self.b.of)];
        let blocks = a.chunks(BLOCK).zip(b.chunks(BLOCK)).zip(of_a.iter().zip(of_b));
        let sum = blocks.fold(c, |sum, ((a, b), (of_a, of_b))| {
            let factors = a.iter().copied().zip(b.iter().copied()).enumerate();
            let half = |upper: bool| factors.clone().filter(move |(k, _)| (k & 4 != 0) == upper).map(|(_, f)| f);
            let block = hopper_step(half(true), hopper_step(half(false), 0.0, floors), floors);
            if (of_a * of_b).is_nan() {
                return f32::NAN;
            }
            // Of less than 2^-252 nothing is left in an f32.
            let power = (of_a * of_b).log2().max(-252.0) as i32;
            let first = power.div_euclid(2);
            (block * 2f32.powi(first)).mul_add(2f32.powi(power - first), sum)
        });
        if sum.is_nan() { f32::from_bits(0x7FFF_FFFF) } else { sum }
    }
}

/// The one NaN of the chip; a zero is +0.
fn canonical(x: f32) -> f32 {
    if x.is_nan() { f32::from_bits(0x7FFF_FFFF) } else { x + 0.0 }
}

impl Factor {
    /// The matrix of the group that begins at lane `first`.
    fn read<const W: usize>(&self, regs: &Regs<W>, from: Reg, first: usize) -> Vec<f64> {
        let row = |lane: usize, r: usize| regs.r32[from as usize + r][first + lane];
        match self.of {
            MmaType::F16 => self.places.matrix(|lane, e| f16::from_bits(row(lane, e) as u16).to_f64()),
            MmaType::Bf16 => self.places.matrix(|lane, e| bf16::from_bits(row(lane, e) as u16).to_f64()),
            MmaType::I8 => self.places.matrix(|lane, e| f64::from(row(lane, e) as i8)),
            MmaType::Narrow(format) => {
                let bits = format.bits() as usize;
                self.places.matrix(|lane, e| {
                    let (word, shift) = (e * bits / 32, e * bits % 32);
                    // A code of 6 bits may lie in two words.
                    let next = if shift + bits > 32 { u64::from(row(lane, word + 1)) << 32 } else { 0 };
                    let code = (next | u64::from(row(lane, word))) >> shift & ((1 << bits) - 1);
                    self.numbers[code as usize]
                })
            }
        }
    }
}

impl Scale {
    fn read<const W: usize>(&self, regs: &Regs<W>, from: Reg, first: usize) -> Vec<f64> {
        self.places.matrix(|lane, e| {
            let code = (regs.r32[from as usize + e][first + lane] >> (8 * self.byte)) as u8;
            f64::from(Narrow::E8m0.decode(code))
        })
    }
}
