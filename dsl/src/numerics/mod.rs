//! Number rules of operations that Rust does not have as they are: the CPU device and the plain-Rust references call
//! these, so there is one meaning. (Device `gcn` follows the instruction set's own rules.)

mod float;
mod hw;
mod int;
mod matrix;
mod narrow;
mod round;
mod stochastic;

pub use float::{Float, maximum, maxnum, minimum, minnum};
pub use hw::{hw_exp2, hw_log2, hw_rcp, hw_rsq, hw_sqrt};
pub use int::Int;
pub use matrix::{MmaRounding, exact_sum, hopper_step, hopper_step_f16};
pub(crate) use narrow::scale_parts;
pub use narrow::{Narrow, Overflow, Rounding, ScaleRule, block_scale, scale_code};
pub use stochastic::{bf16_stochastic, f16_stochastic};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp2_is_exact_at_integers_and_rounds_elsewhere() {
        for e in -149..128 {
            let expected =
                if e >= -126 { f32::from_bits(((e + 127) as u32) << 23) } else { f32::from_bits(1 << (e + 149)) };
            assert_eq!(hw_exp2(e as f32), expected, "2^{e}");
        }
        assert_eq!(hw_exp2(0.5), std::f32::consts::SQRT_2);
        assert_eq!(hw_exp2(f32::NEG_INFINITY), 0.0);
        assert_eq!(hw_exp2(-150.5), 0.0);
        assert_eq!(hw_exp2(128.0), f32::INFINITY);
        assert!(hw_exp2(f32::NAN).is_nan());
    }

    #[test]
    fn rcp_of_zero_keeps_the_sign() {
        assert_eq!(hw_rcp(0.0), f32::INFINITY);
        assert_eq!(hw_rcp(-0.0), f32::NEG_INFINITY);
        assert_eq!(hw_rcp(3.0), 1.0 / 3.0);
        assert!(hw_rcp(f32::NEG_INFINITY).is_sign_negative());
    }

    #[test]
    fn extremum_rules() {
        assert!(maximum(f32::NAN, 1.0).is_nan() && minimum(1.0, f32::NAN).is_nan());
        for (a, b) in [(0.0f32, -0.0f32), (-0.0, 0.0)] {
            assert!(maximum(a, b).is_sign_positive());
            assert!(minimum(a, b).is_sign_negative());
        }
        assert_eq!(maximum(-1.0, 2.0), 2.0);
        assert_eq!(minimum(-1.0, 2.0), -1.0);
        assert_eq!(maximum(f32::NEG_INFINITY, f32::NEG_INFINITY), f32::NEG_INFINITY);
    }

    #[test]
    fn reciprocal_roots_round_once() {
        // r is the nearest exactly if x lies between the squares of its neighbours' midpoints, inverted: all in integers,
        // (2r ± 1)² · m against 2^k.
        let nearest = |x: f32, r: f32| {
            let part = |f: f32| {
                let (b, e) = (u128::from(f.to_bits() & 0x7F_FFFF), (f.to_bits() >> 23) as i32);
                if e == 0 { (b, -149) } else { (b | 1 << 23, e - 150) }
            };
            let ((m, e), (q, d)) = (part(x), part(r));
            // ((2q ± 1) · 2^(d−1))² · m · 2^e against 1.
            let k = -(2 * (d - 1) + e);
            let one = 1u128 << k;
            (2 * q - 1).pow(2) * m <= one && one <= (2 * q + 1).pow(2) * m
        };
        let mut bits = 1u32;
        while bits < 0x7F80_0000 {
            let x = f32::from_bits(bits);
            assert!(nearest(x, hw_rsq(x)), "{x:e}");
            bits += 1 + bits / 300 + bits % 7;
        }
        for x in [4.0f32, 0.25, 1.0, 2.0, f32::MAX, f32::MIN_POSITIVE, 1e-45] {
            assert!(nearest(x, hw_rsq(x)), "{x:e}");
        }
        assert_eq!((hw_rsq(0.0), hw_rsq(-0.0)), (f32::INFINITY, f32::NEG_INFINITY));
        assert_eq!((hw_rsq(f32::INFINITY), hw_rsq(4.0)), (0.0, 0.5));
        assert!(hw_rsq(-1.0).is_nan() && hw_rsq(f32::NAN).is_nan() && hw_rsq(f32::NEG_INFINITY).is_nan());
    }

    #[test]
    fn logarithms_at_powers_of_two_and_at_the_edges() {
        for e in -149..128 {
            assert_eq!(hw_log2(libm::exp2(f64::from(e)) as f32), e as f32);
        }
        assert_eq!((hw_log2(0.0), hw_log2(-0.0)), (f32::NEG_INFINITY, f32::NEG_INFINITY));
        assert!(hw_log2(-1.0).is_nan() && hw_log2(f32::NAN).is_nan());
        assert_eq!(hw_log2(f32::INFINITY), f32::INFINITY);
    }
}
