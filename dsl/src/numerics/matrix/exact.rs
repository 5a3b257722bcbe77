//! The exact sum of many f64, rounded once.

/// The exact sum of `terms` and `c`, rounded once to f32, nearest even. 0 is +0, whatever the signs of zeros in it. A NaN among
/// them, or infinities of both signs, give NaN.
///
/// Every finite term is 0 or has a magnitude from 2^-600 to 2^400, as products of two scaled factors of any matrix instruction have;
/// with others the sum may be rounded more than once.
pub fn exact_sum(terms: impl Iterator<Item = f64> + Clone, c: f32) -> f32 {
    let c = f64::from(c);
    // Error-free additions: as long as each error is 0, the sum is the exact one. NaN fails the comparison.
    let (mut sum, mut exact) = (0.0f64, true);
    for term in terms.clone() {
        let (next, error) = two_sum(sum, term);
        exact &= error == 0.0;
        sum = next;
    }
    let result = if exact {
        let (sum, error) = two_sum(sum, c);
        if error.is_nan() { sum as f32 } else { to_odd(sum, error) as f32 }
    } else {
        let all = terms.chain([c]);
        // A sum is infinite or NaN only by a term that is: none overflows f64.
        let plain: f64 = all.clone().sum();
        let fits = |term: f64| term == 0.0 || (2f64.powi(-600)..=2f64.powi(400)).contains(&term.abs());
        if plain.is_finite() && all.clone().all(fits) { Limbs::of(all).round() as f32 } else { plain as f32 }
    };
    // −0 becomes +0.
    result + 0.0
}

/// A sum and what rounding took from it.
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let of_b = sum - a;
    (sum, (a - (sum - of_b)) + (b - of_b))
}

/// `sum + error`, cut to 53 bits with the last one set if something was cut: rounding that to f32 is rounding the exact value.
fn to_odd(sum: f64, error: f64) -> f64 {
    if error == 0.0 {
        return sum;
    }
    let bits = sum.to_bits();
    // The exact value is nearer to 0 than `sum` if the error has the other sign.
    let cut = if (error < 0.0) == (sum < 0.0) { bits } else { bits - 1 };
    f64::from_bits(cut | 1)
}

/// 2^-704 is the unit of the lowest limb.
const LOWEST: i32 = -704;
const LIMBS: usize = 38;

/// A fixed-point number of 32 bits a limb, each with room for carries: exact sums of up to 2^30 terms.
struct Limbs([i64; LIMBS]);

impl Limbs {
    fn of(terms: impl Iterator<Item = f64>) -> Self {
        let mut limbs = [0i64; LIMBS];
        for term in terms.filter(|t| *t != 0.0) {
            let bits = term.to_bits();
            // Normal: products of factors never come near f64's subnormals.
            let significand = bits & ((1 << 52) - 1) | 1 << 52;
            let at = ((bits >> 52) as i32 & 0x7FF) - 1075 - LOWEST;
            let (limb, wide) = (at as usize / 32, u128::from(significand) << (at % 32));
            let sign = if term < 0.0 { -1 } else { 1 };
            for (i, limb) in limbs[limb..].iter_mut().take(3).enumerate() {
                *limb += sign * i64::from((wide >> (32 * i)) as u32);
            }
        }
        Self(limbs)
    }

    /// Rounded to odd.
    fn round(mut self) -> f64 {
        if self.carry() < 0 {
            self.0.iter_mut().for_each(|l| *l = -*l);
            self.carry();
            -self.magnitude()
        } else {
            self.magnitude()
        }
    }

    /// Brings all limbs but the highest within 32 bits; the highest has the sign.
    fn carry(&mut self) -> i64 {
        let mut carry = 0;
        for (i, limb) in self.0.iter_mut().enumerate() {
            let sum = *limb + carry;
            if i + 1 == LIMBS {
                *limb = sum;
            } else {
                (*limb, carry) = (sum & 0xFFFF_FFFF, sum >> 32);
            }
        }
        self.0[LIMBS - 1]
    }

    fn magnitude(&self) -> f64 {
        let Some(top) = self.0.iter().rposition(|l| *l != 0) else { return 0.0 };
        let limb = |i: usize| top.checked_sub(i).map_or(0, |i| self.0[i] as u64);
        // At least 65 bits below and with the highest set one.
        let high = u128::from(limb(0)) << 64 | u128::from(limb(1)) << 32 | u128::from(limb(2));
        let dropped = (128 - high.leading_zeros() as i32 - 53).max(0);
        let rest = high & ((1 << dropped) - 1) != 0 || self.0[..top.saturating_sub(2)].iter().any(|l| *l != 0);
        let cut = (high >> dropped) as u64 | u64::from(rest);
        let exponent = dropped + 32 * (top as i32 - 2) + LOWEST;
        // Two exact steps: the power itself may be beyond f64.
        cut as f64 * 2f64.powi(exponent / 2) * 2f64.powi(exponent - exponent / 2)
    }
}
