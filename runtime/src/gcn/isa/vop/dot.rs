//! Dot products of the parts of two registers, added to a third operand (the destination in the `c` forms).
//!
//! The float forms add one product after the other, each sum rounded once. LLVM makes them only of code that allows
//! contraction, so nothing compares their rounding.

use super::{Row, Sem, Ty, accumulate, row};
use crate::gcn::isa::float;
use crate::gcn::isa::shadow::Shadow;

use Sem::Bits;
use Ty::B32;

const WORDS3: &[Ty] = &[B32, B32, B32];

/// Sum of products of the parts of `bits` bits.
fn integer([a, b, c]: [u64; 3], bits: u32, signed: bool) -> u64 {
    let part = |x: u64, i: u32| {
        let x = (x as u32) << (32 - bits - bits * i);
        if signed { i64::from(x as i32 >> (32 - bits)) } else { i64::from(x >> (32 - bits)) }
    };
    (0..32 / bits).fold(c as i64, |sum, i| sum.wrapping_add(part(a, i) * part(b, i))) as u64
}

fn float([a, b, c]: [u64; 3], widen: fn(u16) -> u32) -> u64 {
    let mut sum = c as u32;
    for shift in [0, 16] {
        let bits = [widen((a >> shift) as u16), widen((b >> shift) as u16), sum];
        let [x, y, z] = bits.map(f32::from_bits);
        sum = float::result32(libm::fmaf(x, y, z), &bits);
    }
    u64::from(sum)
}

fn bf16(x: u16) -> u32 {
    u32::from(x) << 16
}

pub(crate) static TABLE: &[Row] = &[
    row("v_dot2_i32_i16", B32, WORDS3, Bits(|v| integer(v, 16, true), Shadow::Strict)),
    row("v_dot2_u32_u16", B32, WORDS3, Bits(|v| integer(v, 16, false), Shadow::Strict)),
    row("v_dot4_i32_i8", B32, WORDS3, Bits(|v| integer(v, 8, true), Shadow::Strict)),
    row("v_dot4_u32_u8", B32, WORDS3, Bits(|v| integer(v, 8, false), Shadow::Strict)),
    row("v_dot8_i32_i4", B32, WORDS3, Bits(|v| integer(v, 4, true), Shadow::Strict)),
    row("v_dot8_u32_u4", B32, WORDS3, Bits(|v| integer(v, 4, false), Shadow::Strict)),
    accumulate("v_dot2c_i32_i16", B32, WORDS3, Bits(|v| integer(v, 16, true), Shadow::Strict)),
    accumulate("v_dot4c_i32_i8", B32, WORDS3, Bits(|v| integer(v, 8, true), Shadow::Strict)),
    accumulate("v_dot8c_i32_i4", B32, WORDS3, Bits(|v| integer(v, 4, true), Shadow::Strict)),
    row("v_dot2_f32_f16", B32, WORDS3, Bits(|v| float(v, float::widen16), Shadow::Strict)),
    row("v_dot2_f32_bf16", B32, WORDS3, Bits(|v| float(v, bf16), Shadow::Strict)),
    accumulate("v_dot2c_f32_f16", B32, WORDS3, Bits(|v| float(v, float::widen16), Shadow::Strict)),
    accumulate("v_dot2c_f32_bf16", B32, WORDS3, Bits(|v| float(v, bf16), Shadow::Strict)),
];
