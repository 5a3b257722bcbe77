//! What `mla_uv` must compute, in plain Rust, and what a device's product may make of it.

use half::bf16;
use lathe_dsl::numerics::{Narrow, Overflow, Rounding, exact_sum};

use super::super::latents::BLOCK;
use super::super::problem::{HEADS, LATENTS};
use super::super::uv::ROW;
use super::U_BF16;
use crate::gemm::reference::Mxfp4;

/// Values of a head, and latents of a block.
const VALUES: usize = super::super::VALUES as usize;
const BLOCK_LEN: usize = BLOCK as usize;
/// Values of a token.
const ROW_LEN: usize = ROW as usize;
/// Latents of one step of the product.
const STEP: usize = 128;

/// A block of latents as MXFP4: e2m1 codes, and the e8m0 code of their scale.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Quantised {
    /// One a latent, in the low bits.
    pub codes: Vec<u8>,
    /// 2^(scale − 127).
    pub scale: u8,
}

impl Quantised {
    /// By the even rule: with `am` the largest bit pattern without its sign, the scale's code is `((am + 0x20) >> 7) − 2`, at least
    /// 1; each latent is divided by the scale and rounded to the nearest e2m1, ties to even, at most 6. A NaN becomes ±6.
    pub fn new(block: &[bf16]) -> Self {
        let am = block.iter().map(|x| i32::from(x.to_bits() & 0x7FFF)).max().unwrap_or(0);
        let code = (((am + 0x20) >> 7) - 2).max(1);
        let scale = f32::from_bits((code as u32) << 23);
        let encode =
            |x: &bf16| Narrow::E2m1.encode_scaled(x.to_f32(), scale, Rounding::NearestEven, Overflow::Saturate);
        Self { codes: block.iter().map(encode).collect(), scale: code as u8 }
    }

    /// The numbers that the codes mean.
    fn numbers(&self) -> impl Iterator<Item = f64> {
        let scale = f64::from(Narrow::E8m0.decode(self.scale));
        self.codes.iter().map(move |code| f64::from(Narrow::E2m1.decode(*code)) * scale)
    }

    /// How far each number can be from the latent that it was made of.
    fn errors(&self, block: &[bf16]) -> impl Iterator<Item = f64> {
        let scale = f64::from(Narrow::E8m0.decode(self.scale));
        block.iter().map(move |x| {
            // Half the distance of e2m1's numbers around it: 4 and 6 are the last, and at most 7 comes.
            let scales = x.to_f64().abs() / scale;
            scale
                * if scales <= 2.0 {
                    0.25
                } else if scales <= 4.0 {
                    0.5
                } else {
                    1.0
                }
        })
    }
}

/// The stage for one batch: `latents` is `[tokens][12][512]`, `w_v` has 12 · 128 rows of 512, `gate` is `[tokens][12 · 128]`, as is
/// the result.
///
/// 1. latents to MXFP4, by blocks of 32 ([`Quantised`]);
/// 2. from `acc = 0`, for each 128 latents in order: `acc` = the exact sum of `acc` and the products, rounded to f32;
/// 3. `acc` rounded to bf16, times the gate in f32, rounded to bf16; nearest even both.
///
/// # Panics
///
/// Where a slice is shorter or longer than these shapes say.
pub fn uv(tokens: usize, latents: &[bf16], w_v: &Mxfp4, gate: &[bf16]) -> Vec<bf16> {
    let weights = w_v.numbers();
    check_shapes(tokens, latents, &weights, gate);
    let mut out = Vec::with_capacity(gate.len());
    for (row, latents) in latents.chunks(LATENTS).enumerate() {
        let numbers: Vec<f64> =
            latents.chunks(BLOCK_LEN).flat_map(|b| Quantised::new(b).numbers().collect::<Vec<_>>()).collect();
        for weights in weights.chunks(LATENTS).skip(row % HEADS * VALUES).take(VALUES) {
            let steps = weights.chunks(STEP).zip(numbers.chunks(STEP));
            let acc = steps.fold(0.0, |acc, (w, x)| exact_sum(w.iter().zip(x).map(|(w, x)| w * x), acc));
            out.push(gated(acc, gate[out.len()]));
        }
    }
    out
}

/// Step 3 of [`uv`].
fn gated(acc: f32, gate: bf16) -> bf16 {
    bf16::from_f32(bf16::from_f32(acc).to_f32() * gate.to_f32())
}

fn check_shapes(tokens: usize, latents: &[bf16], weights: &[f64], gate: &[bf16]) {
    assert_eq!(latents.len(), tokens * HEADS * LATENTS, "latents are [{tokens}][{HEADS}][{LATENTS}]");
    assert_eq!(weights.len(), ROW_LEN * LATENTS, "W_UV has {ROW_LEN} rows of {LATENTS}");
    assert_eq!(gate.len(), tokens * ROW_LEN, "gates are [{tokens}][{ROW_LEN}]");
}

/// Where an accumulator can lie: the stage's results are what its ends give, or between them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Interval {
    /// The exact sum.
    pub centre: f64,
    /// Most that an accumulator can be away from it.
    pub radius: f64,
}

impl Interval {
    /// Whether a correct stage may give `got`. Rounding and multiplying by the gate keep order, so the results of an interval are
    /// those between the results of its ends; the ends are moved outwards to the next f32.
    pub fn admits(self, got: bf16, gate: bf16) -> bool {
        let low = gated(((self.centre - self.radius) as f32).next_down(), gate).to_f64();
        let high = gated(((self.centre + self.radius) as f32).next_up(), gate).to_f64();
        let got = got.to_f64();
        // A NaN is within nothing.
        low.min(high) <= got && got <= low.max(high)
    }
}

/// Bounds of one element.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bounds {
    /// Of a device's accumulator for the quantised latents: `mfma_scaled` errs by 2^−20 of what it sums up and of C, and by
    /// 2^−126; four in a chain by 4 · 2^−20 of all there is, and by 2^−124.
    pub stage: Interval,
    /// Of it, around the product with the latents that were never split, rounded or quantised: rounding them to bf16 and to MXFP4
    /// comes on top.
    pub mathematics: Interval,
}

/// Bounds of every element, from the stage's inputs (shapes as for [`uv`], all finite) and from the latents in f64 that `latents`
/// is rounded of.
///
/// # Panics
///
/// Where a slice is shorter or longer than these shapes say.
pub fn bounds(tokens: usize, exact: &[f64], latents: &[bf16], w_v: &Mxfp4, gate: &[bf16]) -> Vec<Bounds> {
    let weights = w_v.numbers();
    check_shapes(tokens, latents, &weights, gate);
    assert_eq!(exact.len(), latents.len(), "latents twice");
    let mut out = Vec::with_capacity(gate.len());
    for (row, (latents, exact)) in latents.chunks(LATENTS).zip(exact.chunks(LATENTS)).enumerate() {
        let (mut numbers, mut errors) = (vec![], vec![]);
        for block in latents.chunks(BLOCK_LEN) {
            let quantised = Quantised::new(block);
            numbers.extend(quantised.numbers());
            // Relative to the rounded latent, with room for the rounding's own and for subnormals.
            let rounding = block.iter().map(|x| U_BF16 * x.to_f64().abs() + 2f64.powi(-133));
            errors.extend(quantised.errors(block).zip(rounding).map(|(a, b)| a + b));
        }
        for weights in weights.chunks(LATENTS).skip(row % HEADS * VALUES).take(VALUES) {
            let (mut quantised, mut size, mut unquantised, mut error) = (0.0, 0.0, 0.0, 0.0);
            for (i, w) in weights.iter().enumerate() {
                quantised += w * numbers[i];
                size += (w * numbers[i]).abs();
                unquantised += w * exact[i];
                error += w.abs() * errors[i];
            }
            // The steps' errors are relative to sums that have errors themselves: a little more than 4.
            let radius = size * 4.001 * 2f64.powi(-20) + 2f64.powi(-124);
            out.push(Bounds {
                stage: Interval { centre: quantised, radius },
                mathematics: Interval { centre: unquantised, radius: radius + error },
            });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The scale by the other form of the rule, in 32 bits.
    fn scale_of(amax: bf16) -> u8 {
        let bits = amax.to_f32().to_bits();
        ((((bits + 0x20_0000) & 0xFF80_0000) >> 23) as i32 - 2).max(1) as u8
    }

    /// e2m1 by looking for the nearest number, of two the one with the even code.
    fn nearest(x: f64) -> u8 {
        const NUMBERS: [f64; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
        let distance = |code: &u8| (x.abs() - NUMBERS[usize::from(*code)]).abs();
        let best = (0..8u8).min_by(|a, b| distance(a).total_cmp(&distance(b)).then((a % 2).cmp(&(b % 2)))).unwrap();
        best | if x.is_sign_negative() { 8 } else { 0 }
    }

    #[test]
    fn every_bf16_is_quantised_as_the_rule_says() {
        for bits in 0..=u16::MAX {
            let x = bf16::from_bits(bits);
            let quantised = Quantised::new(&[x, bf16::ZERO]);
            if x.is_nan() {
                assert_eq!(quantised.codes[0] & 7, 7, "{bits:#06x}");
                continue;
            }
            assert_eq!(quantised.scale, scale_of(bf16::from_bits(bits & 0x7FFF)), "{bits:#06x}");
            let scale = 2f64.powi(i32::from(quantised.scale) - 127);
            assert_eq!(quantised.codes, [nearest((x.to_f64() / scale).clamp(-6.0, 6.0)), 0], "{bits:#06x}");
            if x.is_finite() {
                let number = quantised.numbers().next().unwrap();
                let error = (number - x.to_f64()).abs();
                assert!(error <= quantised.errors(&[x]).next().unwrap(), "{bits:#06x}: {number}");
            }
        }
    }

    #[test]
    fn known_scales() {
        let scale = |x: f32| Quantised::new(&[bf16::from_f32(-x)]).scale;
        let cases = [(0.0, 1), (f32::MIN_POSITIVE, 1), (1.0, 125), (1.5, 125), (1.742_187_5, 125), (1.75, 126)];
        for (x, code) in cases.into_iter().chain([(6.0, 127), (7.0, 128), (448.0, 134), (f32::INFINITY, 253)]) {
            assert_eq!(scale(x), code, "{x}");
        }
        assert_eq!(Quantised::new(&[bf16::from_bits(0x7FFF)]).scale, 254);
    }

    #[test]
    fn every_latent_meets_its_own_weight() {
        // Token 1, head 3: latent 77 is 4, its weights are 1.5 of value 5 and −2 of value 127; all others 0.
        let mut latents = vec![bf16::ZERO; 2 * HEADS * LATENTS];
        latents[(HEADS + 3) * LATENTS + 77] = bf16::from_f32(4.0);
        let mut w_v = Mxfp4::zeros(ROW, LATENTS as u32);
        let mut set = |value: usize, code: u8| w_v.codes[((3 * VALUES + value) * LATENTS + 77) / 2] = code << 4;
        set(5, 3);
        set(127, 12);
        let mut gate = vec![bf16::ONE; 2 * ROW_LEN];
        gate[ROW_LEN + 3 * VALUES + 127] = bf16::from_f32(0.25);
        let out = uv(2, &latents, &w_v, &gate);
        for (i, x) in out.iter().enumerate() {
            let expected = match i.checked_sub(ROW_LEN + 3 * VALUES) {
                Some(5) => 6.0,
                Some(127) => -2.0,
                _ => 0.0,
            };
            assert_eq!(x.to_f32(), expected, "{i}");
        }
    }

    #[test]
    fn an_interval_admits_its_own_and_no_others() {
        let gate = bf16::from_f32(-0.5);
        let of = |centre, radius| Interval { centre, radius };
        let one = bf16::from_f32(-0.5);
        let next = bf16::from_bits(one.to_bits() + 1);
        assert!(of(1.0, 0.0).admits(one, gate) && !of(1.0, 0.0).admits(next, gate));
        assert!(of(1.0, 0.01).admits(next, gate) && !of(1.0, 0.01).admits(bf16::NAN, gate));
        // On a tie of the first rounding, both of its sides.
        let tie = 1.0 + 2f64.powi(-8);
        assert!(of(tie, 0.0).admits(one, gate) && of(tie, 0.0).admits(next, gate));
        assert!(of(0.0, 0.0).admits(bf16::from_f32(-0.0), gate));
    }
}
