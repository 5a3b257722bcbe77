//! Exact dot products of many columns at once, rounded once to f32.

use crate::gcn::isa::float;

/// Rows times columns: `a` is rows × k, row after row, `b` is k × columns, row after row.
pub(super) struct Product {
    pub(super) k: usize,
    pub(super) columns: usize,
    pub(super) a: Vec<f64>,
    pub(super) b: Vec<f64>,
}

/// What is known of the numbers of one row of A or column of B.
#[derive(Clone, Copy)]
struct Range {
    /// All are multiples of 2^`least`.
    least: i32,
    /// All are below 2^`most`.
    most: i32,
    finite: bool,
}

impl Range {
    const EMPTY: Self = Self { least: i32::MAX, most: i32::MIN, finite: true };

    fn add(&mut self, x: f64) {
        if x == 0.0 {
            return;
        }
        // Values here are normal f64 numbers, infinite or NaN: no element times scale is smaller.
        let exponent = (x.to_bits() >> 52 & 0x7FF) as i32;
        if exponent == 0x7FF {
            self.finite = false;
            return;
        }
        let mantissa = x.to_bits() | 1 << 52;
        self.least = self.least.min(exponent - 1075 + mantissa.trailing_zeros() as i32);
        self.most = self.most.max(exponent - 1022);
    }

    /// Whether every partial sum of `k` products of numbers of both is an f64 number.
    fn sums_are_exact(self, other: Self, k: usize) -> bool {
        if self.least == i32::MAX || other.least == i32::MAX {
            return true;
        }
        let bits = self.most + other.most - self.least - other.least + k.ilog2() as i32 + 1;
        bits <= 53
    }
}

impl Product {
    /// Adds the products to `c` (rows × columns): each sum exact, then rounded to nearest even.
    pub(super) fn add_to(&self, c: &mut [f32]) {
        let rows = self.a.chunks_exact(self.k);
        let mut of_columns = vec![Range::EMPTY; self.columns];
        for row in self.b.chunks_exact(self.columns) {
            of_columns.iter_mut().zip(row).for_each(|(range, x)| range.add(*x));
        }
        let mut sums = vec![0f64; self.columns];
        for (row, c) in rows.zip(c.chunks_exact_mut(self.columns)) {
            let mut of_row = Range::EMPTY;
            row.iter().for_each(|x| of_row.add(*x));
            match self.columns {
                16 => self.dense::<16>(row, &mut sums),
                _ => self.dense::<32>(row, &mut sums),
            }
            for (j, (c, sum)) in c.iter_mut().zip(&sums).enumerate() {
                let finite = of_row.finite && of_columns[j].finite;
                *c = if !finite || of_row.sums_are_exact(of_columns[j], self.k) {
                    // Where something is infinite or NaN, so is the result, whatever the order.
                    let (sum, lost) = float::two_sum(*sum, f64::from(*c));
                    round(sum, lost)
                } else {
                    let products = row.iter().enumerate().map(|(k, a)| a * self.b[k * self.columns + j]);
                    let terms: Vec<f64> = products.chain([f64::from(*c)]).collect();
                    exact(&terms)
                };
            }
        }
    }

    /// Sums in f64, all columns of one row side by side.
    fn dense<const N: usize>(&self, row: &[f64], sums: &mut [f64]) {
        let mut acc = [0f64; N];
        for (a, b) in row.iter().zip(self.b.chunks_exact(N)) {
            for (acc, b) in acc.iter_mut().zip(b) {
                *acc += a * b;
            }
        }
        sums.copy_from_slice(&acc);
    }
}

/// The exact sum of finite f64 numbers, rounded to f32.
fn exact(terms: &[f64]) -> f32 {
    // Parts that do not overlap, smallest first (Shewchuk).
    let mut parts: Vec<f64> = Vec::with_capacity(8);
    for term in terms {
        let mut high = *term;
        let mut kept = 0;
        for i in 0..parts.len() {
            let (sum, lost) = float::two_sum(high, parts[i]);
            if lost != 0.0 {
                parts[kept] = lost;
                kept += 1;
            }
            high = sum;
        }
        parts.truncate(kept);
        parts.push(high);
    }
    let sum = parts.pop().unwrap_or(0.0);
    let rest = parts.iter().rev().find(|p| **p != 0.0);
    round(sum, rest.copied().unwrap_or(0.0))
}

/// `sum` + `rest`, which is less than its last bit, rounded to f32; the one NaN that stands for all.
fn round(sum: f64, rest: f64) -> f32 {
    if sum.is_nan() {
        return f32::from_bits(float::NAN32);
    }
    if rest == 0.0 || !sum.is_finite() || sum == 0.0 {
        return sum as f32;
    }
    // Round to odd: the last bit says that there is more, so that the rounding to f32 is the only one.
    let beyond = (rest > 0.0) != (sum > 0.0);
    f64::from_bits((sum.to_bits() - u64::from(beyond)) | 1) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dot(a: &[f64], b: &[f64], c: f32) -> f32 {
        let k = a.len();
        let mut matrix = vec![0.0; k * 16];
        b.iter().enumerate().for_each(|(i, b)| matrix[i * 16 + 3] = *b);
        let product = Product { k, columns: 16, a: a.to_vec(), b: matrix };
        let mut out = [c; 16];
        product.add_to(&mut out);
        assert!(out[4] == c || !(a.iter().all(|a| a.is_finite()) && c.is_finite()), "a column of zeros adds nothing");
        out[3]
    }

    #[test]
    fn sums_are_exact_whatever_cancels() {
        let p = |n: i32| libm::scalbn(1.0, n);
        assert_eq!(dot(&[p(120), 1.0, -p(120)], &[1.0, 3.0, 1.0], 0.25), 3.25);
        assert_eq!(dot(&[p(60), 1.0], &[p(60), 1.0], 0.0), p(120) as f32);
        // 1 + 2^-24 is a tie, to even; a little more is not, however little.
        assert_eq!(dot(&[1.0, p(-12)], &[1.0, p(-12)], 0.0).to_bits(), 0x3F80_0000);
        assert_eq!(dot(&[1.0, p(-12), p(-100)], &[1.0, p(-12), p(-100)], 0.0).to_bits(), 0x3F80_0001);
        assert_eq!(dot(&[1.0, p(-12), -p(-100)], &[1.0, p(-12), p(-100)], 0.0).to_bits(), 0x3F80_0000);
        assert_eq!(dot(&[1.5], &[p(-149)], 0.0).to_bits(), 2, "a subnormal tie, to even");
        assert_eq!(dot(&[-1.0], &[1.0], 1.0).to_bits(), 0);
    }

    #[test]
    fn infinities_and_nans_come_through() {
        let inf = f64::INFINITY;
        assert_eq!(dot(&[inf, 1.0], &[2.0, 3.0], 1.0), f32::INFINITY);
        assert_eq!(dot(&[inf, inf], &[1.0, -1.0], 1.0).to_bits(), float::NAN32);
        assert_eq!(dot(&[inf], &[0.0], 1.0).to_bits(), float::NAN32);
        assert_eq!(dot(&[1.0], &[1.0], f32::NAN).to_bits(), float::NAN32);
        assert_eq!(dot(&[3e38], &[3e38], 0.0), f32::INFINITY, "beyond the range");
    }
}
