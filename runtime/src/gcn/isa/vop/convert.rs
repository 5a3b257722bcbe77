//! Conversions between types.

use super::{Row, Sem, Ty, row};
use crate::gcn::isa::float::{self, bf16};
use crate::gcn::isa::shadow::Shadow;

use Sem::Bits;
use Shadow::{Halves, Move, Own, Strict};
use Ty::{B16, B32, F16, F32, F64};

const F: &[Ty] = &[F32];
const FF: &[Ty] = &[F32, F32];
const WORD: &[Ty] = &[B32];
const WORDS2: &[Ty] = &[B32, B32];

fn f(x: u64) -> f32 {
    f32::from_bits(x as u32)
}

fn i(x: u64) -> i32 {
    x as u32 as i32
}

fn bits(x: f32) -> u64 {
    u64::from(x.to_bits())
}

fn to_f16(x: u64) -> u64 {
    u64::from(half::f16::from_f32(f(x)).to_bits())
}

/// Undefined bits of one byte converted to a float: zero unless that byte has any.
fn byte_shadow(d: [u64; 3], byte: u32) -> u64 {
    if d[0] >> (8 * byte) & 0xFF != 0 { u64::MAX } else { 0 }
}

/// f32 to u8 as `v_cvt_pk_u8_f32` does: nearest even, saturating.
fn to_u8(x: u64) -> u64 {
    u64::from(libm::rintf(f(x)) as u8)
}

/// Inserts a byte at the position that operand 1 names.
fn insert_u8([a, at, old]: [u64; 3]) -> u64 {
    let shift = 8 * (at & 3);
    old & !(0xFF << shift) | to_u8(a) << shift
}

fn saturate_u8(x: i16) -> u64 {
    x.clamp(0, 255) as u64
}

fn ashr_pack([a, b, n]: [u64; 3], low: i32, high: i32) -> u64 {
    let part = |x: u64| (i(x) >> (n & 31)).clamp(low, high) as u64 & 0xFF;
    part(a) | part(b) << 8
}

pub(crate) static TABLE: &[Row] = &[
    // Integer ↔ f32. To integers: towards zero, saturating, NaN gives 0.
    row("v_cvt_f32_u32", F32, WORD, Bits(|[a, ..]| bits(a as u32 as f32), Strict)),
    row("v_cvt_f32_i32", F32, WORD, Bits(|[a, ..]| bits(i(a) as f32), Strict)),
    row("v_cvt_u32_f32", B32, F, Bits(|[a, ..]| u64::from(f(a) as u32), Strict)),
    row("v_cvt_i32_f32", B32, F, Bits(|[a, ..]| f(a) as i32 as u64, Strict)),
    row("v_cvt_rpi_i32_f32", B32, F, Bits(|[a, ..]| libm::floor(f64::from(f(a)) + 0.5) as i32 as u64, Strict)),
    row("v_cvt_flr_i32_f32", B32, F, Bits(|[a, ..]| libm::floorf(f(a)) as i32 as u64, Strict)),
    row("v_cvt_f32_ubyte0", F32, WORD, Bits(|[a, ..]| bits((a & 0xFF) as f32), Own(|_, d| byte_shadow(d, 0)))),
    row("v_cvt_f32_ubyte1", F32, WORD, Bits(|[a, ..]| bits((a >> 8 & 0xFF) as f32), Own(|_, d| byte_shadow(d, 1)))),
    row("v_cvt_f32_ubyte2", F32, WORD, Bits(|[a, ..]| bits((a >> 16 & 0xFF) as f32), Own(|_, d| byte_shadow(d, 2)))),
    row("v_cvt_f32_ubyte3", F32, WORD, Bits(|[a, ..]| bits((a >> 24 & 0xFF) as f32), Own(|_, d| byte_shadow(d, 3)))),
    row("v_cvt_pk_u8_f32", B32, &[F32, B32, B32], Bits(insert_u8, Strict)),
    // f64.
    row("v_cvt_f64_f32", F64, F, Bits(|[a, ..]| float::result64(f64::from(f(a)), &[widen_nan(a)]), Strict)),
    row(
        "v_cvt_f32_f64",
        F32,
        &[F64],
        Bits(
            |[a, ..]| {
                let r = f64::from_bits(a) as f32;
                u64::from(if r.is_nan() {
                    float::quiet32((a >> 32) as u32 & 0x8000_0000 | (a >> 29) as u32 & 0x007F_FFFF | 0x7F80_0000)
                } else {
                    r.to_bits()
                })
            },
            Strict,
        ),
    ),
    row("v_cvt_f64_i32", F64, WORD, Bits(|[a, ..]| f64::from(i(a)).to_bits(), Strict)),
    row("v_cvt_f64_u32", F64, WORD, Bits(|[a, ..]| f64::from(a as u32).to_bits(), Strict)),
    row("v_cvt_i32_f64", B32, &[F64], Bits(|[a, ..]| f64::from_bits(a) as i32 as u64, Strict)),
    row("v_cvt_u32_f64", B32, &[F64], Bits(|[a, ..]| u64::from(f64::from_bits(a) as u32), Strict)),
    // 16-bit floats.
    row("v_cvt_f16_f32", F16, F, Bits(|[a, ..]| to_f16(a), Strict)),
    row("v_cvt_f32_f16", F32, &[F16], Bits(|[a, ..]| u64::from(float::widen16(a as u16)), Strict)),
    row("v_cvt_f32_bf16", F32, &[B16], Bits(|[a, ..]| a << 16, Move(0))),
    row(
        "v_cvt_pk_bf16_f32",
        B32,
        FF,
        Bits(|[a, b, _]| u64::from(bf16(a as u32)) | u64::from(bf16(b as u32)) << 16, Halves),
    ),
    row("v_cvt_pk_f16_f32", B32, FF, Bits(|[a, b, _]| to_f16(a) | to_f16(b) << 16, Halves)),
    row(
        "v_cvt_pkrtz_f16_f32",
        B32,
        FF,
        Bits(
            |[a, b, _]| {
                u64::from(float::f16_towards_zero(a as u32)) | u64::from(float::f16_towards_zero(b as u32)) << 16
            },
            Halves,
        ),
    ),
    row(
        "v_cvt_f16_u16",
        F16,
        &[B16],
        Bits(|[a, ..]| u64::from(half::f16::from_f32(a as u16 as f32).to_bits()), Strict),
    ),
    row(
        "v_cvt_f16_i16",
        F16,
        &[B16],
        Bits(|[a, ..]| u64::from(half::f16::from_f32(a as i16 as f32).to_bits()), Strict),
    ),
    row(
        "v_cvt_u16_f16",
        B16,
        &[F16],
        Bits(|[a, ..]| u64::from(half::f16::from_bits(a as u16).to_f32() as u16), Strict),
    ),
    row("v_cvt_i16_f16", B16, &[F16], Bits(|[a, ..]| half::f16::from_bits(a as u16).to_f32() as i16 as u64, Strict)),
    // Narrowing integers, saturating.
    row("v_cvt_pk_u16_u32", B32, WORDS2, Bits(|[a, b, _]| a.min(0xFFFF) | b.min(0xFFFF) << 16, Halves)),
    row(
        "v_cvt_pk_i16_i32",
        B32,
        WORDS2,
        Bits(
            |[a, b, _]| {
                let part = |x: u64| u64::from(i(x).clamp(-0x8000, 0x7FFF) as u16);
                part(a) | part(b) << 16
            },
            Halves,
        ),
    ),
    row(
        "v_sat_pk_u8_i16",
        B16,
        WORD,
        Bits(|[a, ..]| saturate_u8(a as i16) | saturate_u8((a >> 16) as i16) << 8, Strict),
    ),
    row("v_ashr_pk_i8_i32", B16, &[B32, B32, B32], Bits(|v| ashr_pack(v, -128, 127), Strict)),
    row("v_ashr_pk_u8_i32", B16, &[B32, B32, B32], Bits(|v| ashr_pack(v, 0, 255), Strict)),
];

/// f64 NaN with the payload of an f32 NaN.
fn widen_nan(a: u64) -> u64 {
    (a & 0x8000_0000) << 32 | 0x7FF0_0000_0000_0000 | (a & 0x007F_FFFF) << 29
}
