//! Number rules of operations that Rust does not have as they are: the CPU device and the plain-Rust references call
//! these, so there is one meaning. (Device `gcn` follows the instruction set's own rules.)

/// 2^x, correctly rounded to `f32` (nearest even) but for exact ties of the 53-bit intermediate result.
///
/// The CPU meaning of the `hw_exp2` operation. NaN gives NaN; results below the smallest subnormal round to zero.
pub fn hw_exp2(x: f32) -> f32 {
    libm::exp2(f64::from(x)) as f32
}

/// 1/x, correctly rounded to `f32`.
///
/// The CPU meaning of the `hw_rcp` operation. `±0` gives `±∞`, `±∞` gives `±0`.
pub fn hw_rcp(x: f32) -> f32 {
    1.0 / x
}

/// The larger operand; NaN if either is NaN; −0 < +0 (IEEE 754-2019 `maximum`).
pub fn maximum(a: f32, b: f32) -> f32 {
    if a.is_nan() || b.is_nan() {
        f32::NAN
    } else if a == b {
        if a.is_sign_negative() { b } else { a }
    } else if a > b {
        a
    } else {
        b
    }
}

/// The smaller operand; NaN if either is NaN; −0 < +0 (IEEE 754-2019 `minimum`).
pub fn minimum(a: f32, b: f32) -> f32 {
    if a.is_nan() || b.is_nan() {
        f32::NAN
    } else if a == b {
        if a.is_sign_negative() { a } else { b }
    } else if a < b {
        a
    } else {
        b
    }
}

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
}
