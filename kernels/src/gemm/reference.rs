//! MXFP4 matrices, and their product in f64.

use fastrand::Rng;
use lathe_dsl::numerics::Narrow;

use super::mx::BLOCK;

/// A matrix of e2m1 codes with a scale for every 32 of a row.
#[derive(Clone, Debug)]
pub struct Mxfp4 {
    rows: usize,
    columns: usize,
    /// `[rows][columns / 2]`, the first of two codes in the low half.
    pub codes: Vec<u8>,
    /// `[rows][columns / 32]`, e8m0.
    pub scales: Vec<u8>,
}

impl Mxfp4 {
    /// Any codes, with scales from 2^-6 to 2^6; now and then a block of zeros with an extreme scale.
    pub fn random(rng: &mut Rng, rows: u32, columns: u32) -> Self {
        let (rows, columns) = (rows as usize, columns as usize);
        let blocks = rows * columns / BLOCK as usize;
        let mut codes: Vec<u8> = (0..rows * columns / 2).map(|_| rng.u8(..)).collect();
        let mut scales: Vec<u8> = (0..blocks).map(|_| rng.u8(121..=133)).collect();
        for (block, scale) in scales.iter_mut().enumerate() {
            if rng.u8(..) < 4 {
                codes[block * BLOCK as usize / 2..][..BLOCK as usize / 2].fill(0);
                *scale = if rng.bool() { 0 } else { 254 };
            }
        }
        Self { rows, columns, codes, scales }
    }

    /// Zeros with scales of 1.
    #[cfg(test)]
    pub(crate) fn zeros(rows: u32, columns: u32) -> Self {
        let (rows, columns) = (rows as usize, columns as usize);
        let scales = vec![127; rows * columns / BLOCK as usize];
        Self { rows, columns, codes: vec![0; rows * columns / 2], scales }
    }

    /// The numbers, by rows.
    pub fn numbers(&self) -> Vec<f64> {
        let numbers: Vec<f64> = (0..16).map(|code| f64::from(Narrow::E2m1.decode(code))).collect();
        (0..self.rows * self.columns)
            .map(|i| {
                let code = self.codes[i / 2] >> (i % 2 * 4) & 0xF;
                numbers[usize::from(code)] * f64::from(Narrow::E8m0.decode(self.scales[i / BLOCK as usize]))
            })
            .collect()
    }
}

/// A·Bᵀ and, for each element, the sum of the products' magnitudes.
pub fn product(a: &Mxfp4, b: &Mxfp4) -> Vec<(f64, f64)> {
    let (of_a, of_b) = (a.numbers(), b.numbers());
    let mut out = Vec::with_capacity(a.rows * b.rows);
    for row in of_a.chunks(a.columns) {
        for column in of_b.chunks(b.columns) {
            let terms = row.iter().zip(column).map(|(x, y)| x * y);
            out.push(terms.fold((0.0, 0.0), |(sum, size), t| (sum + t, size + t.abs())));
        }
    }
    out
}
