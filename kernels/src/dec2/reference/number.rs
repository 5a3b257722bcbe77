//! Numbers of the block: f16 with one rounding an operation, and e4m3.

use std::sync::LazyLock;

use half::f16;
use lathe_dsl::numerics::{Float, Narrow, Overflow, Rounding, hw_exp2, hw_rcp, hw_rsq};
pub use lathe_dsl::numerics::{maxnum, minnum};

use crate::dec2::constants::LOG2_E;
use crate::dec2::options::NanSign;

/// `a + b`.
pub fn add(a: f16, b: f16) -> f16 {
    Float::add(a, b)
}

/// `a − b`.
pub fn sub(a: f16, b: f16) -> f16 {
    Float::sub(a, b)
}

/// `a · b`.
pub fn mul(a: f16, b: f16) -> f16 {
    Float::mul(a, b)
}

/// `a · b + c`, rounded once.
pub fn fma(a: f16, b: f16, c: f16) -> f16 {
    Float::fma(a, b, c)
}

/// The nearest f16.
pub fn rounded(x: f32) -> f16 {
    <f16 as Float>::from_f32(x)
}

/// The e4m3 code of `h`: nearest even, at most 448, a NaN as the option has it.
pub fn quantise(h: f16, nan_sign: NanSign) -> u8 {
    /// Of every f16 by its bits.
    static CODES: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let code = |h: f16| Narrow::E4m3.encode(h.to_f32(), Rounding::NearestEven, Overflow::Saturate);
        (0..=u16::MAX).map(|bits| code(f16::from_bits(bits))).collect()
    });
    let code = CODES[h.to_bits() as usize];
    let keeps = nan_sign == NanSign::Keep && h.is_nan() && h.is_sign_negative();
    if keeps { code | 0x80 } else { code }
}

/// The number that an e4m3 code means.
pub fn decode(code: u8) -> f16 {
    /// Of every code.
    static NUMBERS: LazyLock<[f16; 256]> =
        LazyLock::new(|| std::array::from_fn(|code| rounded(Narrow::E4m3.decode(code as u8))));
    NUMBERS[code as usize]
}

/// 1 / h: by an f32 reciprocal, which for an f16 is as good as rounding once.
pub fn rcp16(h: f16) -> f16 {
    rounded(hw_rcp(h.to_f32()))
}

/// 1 / √h, as [`rcp16`].
pub fn rsqrt16(h: f16) -> f16 {
    rounded(hw_rsq(h.to_f32()))
}

/// e^h in f32, by 2^x of a product rounded to f32.
pub fn exp32(h: f16) -> f32 {
    hw_exp2(h.to_f32() * LOG2_E)
}

/// 1 / (1 + e^−h), rounded to f16 at the end.
pub fn sigmoid16(h: f16) -> f16 {
    rounded(hw_rcp(1.0 + hw_exp2(h.to_f32() * -LOG2_E)))
}
