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
/// Least code of a scale.
const LEAST_CODE: i32 = 1;

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
        let code = (((am + 0x20) >> 7) - 2).max(LEAST_CODE);
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

    /// How far the numbers can move if each latent of `block`, which this was made of, moves by so much. Quantising keeps order: the
    /// ends of where a latent can be, by the scales that the block can have, give the ends of its numbers.
    fn others(&self, block: &[bf16], by: &[f64]) -> Vec<f64> {
        if by.iter().all(|d| *d == 0.0) {
            return vec![0.0; block.len()];
        }
        let ends = |x: &bf16, d: &f64| [x.to_f64() - d, x.to_f64() + d];
        let largest = |end: fn(f64, f64) -> f64| {
            let magnitudes = block.iter().zip(by).map(|(x, d)| end(x.to_f64().abs(), *d));
            magnitudes.fold(0.0, f64::max) as f32
        };
        // bf16 numbers between two bounds lie between what is cut off of them.
        let code = |amax: f32| ((((amax.to_bits() >> 16) as i32 + 0x20) >> 7) - 2).max(LEAST_CODE);
        let (least, most) = (code(largest(|x, d| x - d).next_down().max(0.0)), code(largest(|x, d| x + d).next_up()));
        let numbers: Vec<f64> = self.numbers().collect();
        let of_latent = |((x, d), number): ((&bf16, &f64), f64)| {
            let moved = (least..=most).flat_map(|code| {
                let scale = f32::from_bits((code as u32) << 23);
                ends(x, d).map(|end| {
                    let code = Narrow::E2m1.encode_scaled(end as f32, scale, Rounding::NearestEven, Overflow::Saturate);
                    (f64::from(Narrow::E2m1.decode(code)) * f64::from(scale) - number).abs()
                })
            });
            moved.fold(0.0, f64::max)
        };
        block.iter().zip(by).zip(numbers).map(of_latent).collect()
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
            // A block's products have one scale and few bits: their sum in f64 is exact.
            let blocks = weights.chunks(BLOCK_LEN).zip(numbers.chunks(BLOCK_LEN));
            let sums: Vec<f64> = blocks.map(|(w, x)| w.iter().zip(x).map(|(w, x)| w * x).sum()).collect();
            let acc = sums.chunks(STEP / BLOCK_LEN).fold(0.0, |acc, step| exact_sum(step.iter().copied(), acc));
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
    /// 2^−126; four in a chain by 4 · 2^−20 of all there is, and by 2^−124. Where a device's latents may be others, what quantising
    /// those can give comes on top.
    pub stage: Interval,
    /// Of it, around the product with the latents that were never split, rounded or quantised: what the latents may be away from
    /// those, and rounding them to MXFP4, comes on top.
    pub mathematics: Interval,
}

/// Where latents may lie.
#[derive(Clone, Copy, Debug)]
pub struct Around<'a> {
    /// The reference's own, which are quantised.
    pub latents: &'a [bf16],
    /// How far each of a device's can be from it.
    pub device: &'a [f64],
    /// In f64, never split or rounded.
    pub exact: &'a [f64],
    /// How far each of the reference's can be from that.
    pub error: &'a [f64],
}

/// How far a latent can be from the number in f64 that it was rounded of.
pub fn rounding(latents: &[bf16]) -> Vec<f64> {
    // Relative to the rounded latent, with room for the rounding's own and for subnormals.
    latents.iter().map(|x| U_BF16 * x.to_f64().abs() + 2f64.powi(-133)).collect()
}

/// Bounds of every element (shapes as for [`uv`], all finite).
///
/// # Panics
///
/// Where a slice is shorter or longer than these shapes say.
pub fn bounds(tokens: usize, around: Around<'_>, w_v: &Mxfp4, gate: &[bf16]) -> Vec<Bounds> {
    let weights = w_v.numbers();
    let Around { latents, device, exact, error } = around;
    check_shapes(tokens, latents, &weights, gate);
    assert!([device.len(), exact.len(), error.len()] == [latents.len(); 3], "four of each latent");
    let mut out = Vec::with_capacity(gate.len());
    for (row, exact) in exact.chunks(LATENTS).enumerate() {
        let (mut numbers, mut moved, mut errors) = (vec![], vec![], vec![]);
        for block in (row * LATENTS..(row + 1) * LATENTS).step_by(BLOCK_LEN).map(|first| first..first + BLOCK_LEN) {
            let (latents, device, error) = (&latents[block.clone()], &device[block.clone()], &error[block]);
            let quantised = Quantised::new(latents);
            let others = quantised.others(latents, device);
            errors.extend(quantised.errors(latents).zip(error).zip(&others).map(|((a, b), c)| a + b + c));
            numbers.extend(quantised.numbers());
            moved.extend(others);
        }
        for weights in weights.chunks(LATENTS).skip(row % HEADS * VALUES).take(VALUES) {
            let (mut quantised, mut size, mut unquantised) = (0.0, 0.0, 0.0);
            let (mut of_device, mut of_all) = (0.0, 0.0);
            for (i, w) in weights.iter().enumerate() {
                quantised += w * numbers[i];
                size += w.abs() * (numbers[i].abs() + moved[i]);
                unquantised += w * exact[i];
                of_device += w.abs() * moved[i];
                of_all += w.abs() * errors[i];
            }
            // The steps' errors are relative to sums that have errors themselves: a little more than 4.
            let radius = size * 4.001 * 2f64.powi(-20) + 2f64.powi(-124);
            out.push(Bounds {
                stage: Interval { centre: quantised, radius: radius + of_device },
                mathematics: Interval { centre: unquantised, radius: radius + of_all },
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
    fn numbers_of_latents_that_move_stay_where_they_may() {
        // The block's largest is just below the threshold of the next scale, so that either may be taken.
        let mut rng = fastrand::Rng::with_seed(1);
        let mut moved_at_all = 0;
        for _ in 0..200 {
            let mut block: Vec<bf16> = (0..32).map(|_| bf16::from_f64(3.4 * (rng.f64() - 0.5))).collect();
            block[7] = bf16::from_f32(if rng.bool() { 1.742_187_5 } else { 1.6 });
            let by: Vec<f64> = block.iter().map(|x| x.to_f64().abs() / 128.0).collect();
            let quantised = Quantised::new(&block);
            let most = quantised.others(&block, &by);
            let numbers: Vec<f64> = quantised.numbers().collect();
            for _ in 0..20 {
                let step = |x: &bf16| bf16::from_bits(x.to_bits() + 1 - rng.u16(0..3).min(x.to_bits() & 0x7FFF));
                let other: Vec<bf16> = block.iter().map(step).collect();
                assert!(other.iter().zip(&block).zip(&by).all(|((a, b), d)| (a.to_f64() - b.to_f64()).abs() <= *d));
                for ((a, b), most) in Quantised::new(&other).numbers().zip(&numbers).zip(&most) {
                    assert!((a - b).abs() <= *most, "{a} {b} {most}");
                    moved_at_all += u32::from(a != *b);
                }
            }
        }
        assert!(moved_at_all > 100, "{moved_at_all}");
        assert_eq!(Quantised::new(&[bf16::ONE; 32]).others(&[bf16::ONE; 32], &[0.0; 32]), [0.0; 32]);
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
