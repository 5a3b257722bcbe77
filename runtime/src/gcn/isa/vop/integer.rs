//! Integer arithmetic.

use super::{Row, Sem, Ty, row};
use crate::gcn::isa::shadow::{Shadow, left};

use Sem::Bits;
use Shadow::{Left, Own, Strict};
use Ty::{B16, B32};

const WORDS2: &[Ty] = &[B32, B32];
const WORDS3: &[Ty] = &[B32, B32, B32];
const WW: &[Ty] = &[B16, B16];
const WWW: &[Ty] = &[B16, B16, B16];

fn i(x: u64) -> i32 {
    x as u32 as i32
}

fn s(x: u64) -> i16 {
    x as i16
}

fn i24(x: u64) -> i64 {
    i64::from((x << 8) as u32 as i32 >> 8)
}

fn u24(x: u64) -> u64 {
    x & 0xFF_FFFF
}

/// Undefined bits of a product of the low 24 bits, plus operand 2.
fn low24(_: [u64; 3], d: [u64; 3]) -> u64 {
    left((d[0] | d[1]) & 0xFF_FFFF | d[2])
}

fn median(v: [i64; 3]) -> u64 {
    let mut v = v;
    v.sort_unstable();
    v[1] as u64
}

fn signed(v: [u64; 3]) -> [i64; 3] {
    v.map(|x| i64::from(i(x)))
}

fn unsigned(v: [u64; 3]) -> [i64; 3] {
    v.map(|x| x as u32 as i64)
}

fn short(v: [u64; 3]) -> [i64; 3] {
    v.map(|x| i64::from(s(x)))
}

fn max(v: [i64; 3]) -> u64 {
    v[0].max(v[1]).max(v[2]) as u64
}

fn min(v: [i64; 3]) -> u64 {
    v[0].min(v[1]).min(v[2]) as u64
}

/// Operands to exact result, least and greatest result.
type Exact = fn([u64; 3]) -> (i64, i64, i64);

/// Exact result and range of the instructions whose `clamp` saturates.
pub(crate) fn exact(name: &str) -> Option<Exact> {
    const U32: i64 = u32::MAX as i64;
    const U16: i64 = u16::MAX as i64;
    const I32: (i64, i64) = (i32::MIN as i64, i32::MAX as i64);
    const I16: (i64, i64) = (i16::MIN as i64, i16::MAX as i64);
    Some(match name {
        "v_add_u32" => |[a, b, _]| ((a + b) as i64, 0, U32),
        "v_sub_u32" => |[a, b, _]| (a as i64 - b as i64, 0, U32),
        "v_subrev_u32" => |[a, b, _]| (b as i64 - a as i64, 0, U32),
        "v_add_i32" => |[a, b, _]| (i64::from(i(a)) + i64::from(i(b)), I32.0, I32.1),
        "v_sub_i32" => |[a, b, _]| (i64::from(i(a)) - i64::from(i(b)), I32.0, I32.1),
        "v_add_u16" => |[a, b, _]| ((a + b) as i64, 0, U16),
        "v_sub_u16" => |[a, b, _]| (a as i64 - b as i64, 0, U16),
        "v_add_i16" => |[a, b, _]| (i64::from(s(a)) + i64::from(s(b)), I16.0, I16.1),
        "v_sub_i16" => |[a, b, _]| (i64::from(s(a)) - i64::from(s(b)), I16.0, I16.1),
        "v_mad_u32_u24" => |[a, b, c]| ((u24(a) * u24(b) + c) as i64, 0, U32),
        _ => return None,
    })
}

pub(crate) static TABLE: &[Row] = &[
    row("v_add_u32", B32, WORDS2, Bits(|[a, b, _]| a.wrapping_add(b), Left)),
    row("v_sub_u32", B32, WORDS2, Bits(|[a, b, _]| a.wrapping_sub(b), Left)),
    row("v_subrev_u32", B32, WORDS2, Bits(|[a, b, _]| b.wrapping_sub(a), Left)),
    row("v_add_i32", B32, WORDS2, Bits(|[a, b, _]| a.wrapping_add(b), Left)),
    row("v_sub_i32", B32, WORDS2, Bits(|[a, b, _]| a.wrapping_sub(b), Left)),
    row("v_add3_u32", B32, WORDS3, Bits(|[a, b, c]| a.wrapping_add(b).wrapping_add(c), Left)),
    row("v_xad_u32", B32, WORDS3, Bits(|[a, b, c]| (a ^ b).wrapping_add(c), Left)),
    row("v_sad_u32", B32, WORDS3, Bits(|[a, b, c]| a.abs_diff(b).wrapping_add(c), Strict)),
    // Products.
    row("v_mul_lo_u32", B32, WORDS2, Bits(|[a, b, _]| a.wrapping_mul(b), Left)),
    row("v_mul_hi_u32", B32, WORDS2, Bits(|[a, b, _]| (a * b) >> 32, Strict)),
    row("v_mul_hi_i32", B32, WORDS2, Bits(|[a, b, _]| ((i64::from(i(a)) * i64::from(i(b))) >> 32) as u64, Strict)),
    row("v_mul_u32_u24", B32, WORDS2, Bits(|[a, b, _]| u24(a) * u24(b), Own(low24))),
    row("v_mul_hi_u32_u24", B32, WORDS2, Bits(|[a, b, _]| (u24(a) * u24(b)) >> 32, Strict)),
    row("v_mul_i32_i24", B32, WORDS2, Bits(|[a, b, _]| (i24(a) * i24(b)) as u64, Own(low24))),
    row("v_mul_hi_i32_i24", B32, WORDS2, Bits(|[a, b, _]| ((i24(a) * i24(b)) >> 32) as u64, Strict)),
    row("v_mad_u32_u24", B32, WORDS3, Bits(|[a, b, c]| (u24(a) * u24(b)).wrapping_add(c), Own(low24))),
    row("v_mad_i32_i24", B32, WORDS3, Bits(|[a, b, c]| ((i24(a) * i24(b)) as u64).wrapping_add(c), Own(low24))),
    row("v_mad_u32_u16", B32, &[B16, B16, B32], Bits(|[a, b, c]| (a * b).wrapping_add(c), Left)),
    row(
        "v_mad_i32_i16",
        B32,
        &[B16, B16, B32],
        Bits(|[a, b, c]| ((i64::from(s(a)) * i64::from(s(b))) as u64).wrapping_add(c), Left),
    ),
    // Order.
    row("v_max_u32", B32, WORDS2, Bits(|[a, b, _]| a.max(b), Strict)),
    row("v_min_u32", B32, WORDS2, Bits(|[a, b, _]| a.min(b), Strict)),
    row("v_max_i32", B32, WORDS2, Bits(|[a, b, _]| i(a).max(i(b)) as u64, Strict)),
    row("v_min_i32", B32, WORDS2, Bits(|[a, b, _]| i(a).min(i(b)) as u64, Strict)),
    row("v_max3_u32", B32, WORDS3, Bits(|v| max(unsigned(v)), Strict)),
    row("v_min3_u32", B32, WORDS3, Bits(|v| min(unsigned(v)), Strict)),
    row("v_med3_u32", B32, WORDS3, Bits(|v| median(unsigned(v)), Strict)),
    row("v_max3_i32", B32, WORDS3, Bits(|v| max(signed(v)), Strict)),
    row("v_min3_i32", B32, WORDS3, Bits(|v| min(signed(v)), Strict)),
    row("v_med3_i32", B32, WORDS3, Bits(|v| median(signed(v)), Strict)),
    // 16 bits; the upper half of the destination becomes zero.
    row("v_add_u16", B16, WW, Bits(|[a, b, _]| a.wrapping_add(b), Left)),
    row("v_sub_u16", B16, WW, Bits(|[a, b, _]| a.wrapping_sub(b), Left)),
    row("v_subrev_u16", B16, WW, Bits(|[a, b, _]| b.wrapping_sub(a), Left)),
    row("v_add_i16", B16, WW, Bits(|[a, b, _]| a.wrapping_add(b), Left)),
    row("v_sub_i16", B16, WW, Bits(|[a, b, _]| a.wrapping_sub(b), Left)),
    row("v_mul_lo_u16", B16, WW, Bits(|[a, b, _]| a * b, Left)),
    row("v_mad_u16", B16, WWW, Bits(|[a, b, c]| a * b + c, Left)),
    row("v_mad_i16", B16, WWW, Bits(|[a, b, c]| a * b + c, Left)),
    row("v_mad_legacy_u16", B16, WWW, Bits(|[a, b, c]| a * b + c, Left)),
    row("v_max_u16", B16, WW, Bits(|[a, b, _]| a.max(b), Strict)),
    row("v_min_u16", B16, WW, Bits(|[a, b, _]| a.min(b), Strict)),
    row("v_max_i16", B16, WW, Bits(|[a, b, _]| s(a).max(s(b)) as u64, Strict)),
    row("v_min_i16", B16, WW, Bits(|[a, b, _]| s(a).min(s(b)) as u64, Strict)),
    row("v_max3_u16", B16, WWW, Bits(|v| max(unsigned(v)), Strict)),
    row("v_min3_u16", B16, WWW, Bits(|v| min(unsigned(v)), Strict)),
    row("v_max3_i16", B16, WWW, Bits(|v| max(short(v)), Strict)),
    row("v_min3_i16", B16, WWW, Bits(|v| min(short(v)), Strict)),
    row("v_med3_u16", B16, WWW, Bits(|v| median(unsigned(v)), Strict)),
    row("v_med3_i16", B16, WWW, Bits(|v| median(short(v)), Strict)),
];
