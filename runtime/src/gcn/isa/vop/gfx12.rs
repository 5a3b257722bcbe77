//! What only gfx12 has.

use super::{Row, Sem, Special, Ty, accumulate, bits, row, special};
use crate::gcn::isa::float::{propagate32, select16, select32};
use crate::gcn::isa::shadow::Shadow;
use crate::gcn::state::Mode;

use Sem::{Bits, D2, F2, F3, H2, H3, Moded};
use Shadow::{Bitwise, Move, Strict};
use Ty::{B16, B32, F16, F32, F64};

const FF: &[Ty] = &[F32, F32];
const FFF: &[Ty] = &[F32, F32, F32];
const HH: &[Ty] = &[F16, F16];
const HHH: &[Ty] = &[F16, F16, F16];
const WW: &[Ty] = &[B16, B16];
const WORDS3: &[Ty] = &[B32, B32, B32];

/// IEEE 754-2019 maximum or minimum: NaN if either is, −0 < +0.
fn propagate64(a: f64, b: f64, max: bool) -> f64 {
    if a.is_nan() || b.is_nan() {
        return f64::NAN;
    }
    if a.total_cmp(&b).is_ge() == max { a } else { b }
}

/// The f32 extremum of operands 0 and 1, then the opposite one with operand 2.
fn clamp32([a, b, c]: [u64; 3], max_first: bool, mode: Mode) -> u64 {
    let first = select32(a as u32, b as u32, max_first, mode);
    u64::from(select32(first, c as u32, !max_first, mode))
}

/// Likewise of f16.
fn clamp16([a, b, c]: [u64; 3], max_first: bool, mode: Mode) -> u64 {
    let first = select16(a as u16, b as u16, max_first, mode);
    u64::from(select16(first, c as u16, !max_first, mode))
}

fn i(x: u64) -> i32 {
    x as u32 as i32
}

pub(crate) static TABLE: &[Row] = &[
    row("v_minimum_f32", F32, FF, F2(|a, b| propagate32(a, b, false))),
    row("v_maximum_f32", F32, FF, F2(|a, b| propagate32(a, b, true))),
    row("v_minimum_f16", F16, HH, H2(|a, b| propagate64(a, b, false))),
    row("v_maximum_f16", F16, HH, H2(|a, b| propagate64(a, b, true))),
    row("v_minimum_f64", F64, &[F64, F64], D2(|a, b| propagate64(a, b, false))),
    row("v_maximum_f64", F64, &[F64, F64], D2(|a, b| propagate64(a, b, true))),
    row("v_minimum3_f16", F16, HHH, H3(|a, b, c| propagate64(propagate64(a, b, false), c, false))),
    row("v_maximum3_f16", F16, HHH, H3(|a, b, c| propagate64(propagate64(a, b, true), c, true))),
    row("v_maximumminimum_f32", F32, FFF, F3(|a, b, c| propagate32(propagate32(a, b, true), c, false))),
    row("v_minimummaximum_f32", F32, FFF, F3(|a, b, c| propagate32(propagate32(a, b, false), c, true))),
    row("v_maximumminimum_f16", F16, HHH, H3(|a, b, c| propagate64(propagate64(a, b, true), c, false))),
    row("v_minimummaximum_f16", F16, HHH, H3(|a, b, c| propagate64(propagate64(a, b, false), c, true))),
    row("v_maxmin_num_f32", F32, FFF, Moded(|v, m| clamp32(v, true, m))),
    row("v_minmax_num_f32", F32, FFF, Moded(|v, m| clamp32(v, false, m))),
    row("v_maxmin_num_f16", F16, HHH, Moded(|v, m| clamp16(v, true, m))),
    row("v_minmax_num_f16", F16, HHH, Moded(|v, m| clamp16(v, false, m))),
    row("v_maxmin_i32", B32, WORDS3, Bits(|[a, b, c]| i(a).max(i(b)).min(i(c)) as u64, Strict)),
    row("v_minmax_i32", B32, WORDS3, Bits(|[a, b, c]| i(a).min(i(b)).max(i(c)) as u64, Strict)),
    row("v_maxmin_u32", B32, WORDS3, Bits(|[a, b, c]| a.max(b).min(c), Strict)),
    row("v_minmax_u32", B32, WORDS3, Bits(|[a, b, c]| a.min(b).max(c), Strict)),
    accumulate("v_fmac_f16", F16, HHH, H3(libm::fma)),
    row("v_fmaak_f16", F16, HHH, H3(libm::fma)),
    row("v_fmamk_f16", F16, HHH, H3(libm::fma)),
    row("v_fma_dx9_zero_f32", F32, FFF, F3(|a, b, c| if a == 0.0 || b == 0.0 { c } else { libm::fmaf(a, b, c) })),
    // Bits.
    row("v_not_b16", B16, &[B16], Bits(|[a, ..]| !a, Bitwise)),
    row("v_and_b16", B16, WW, Bits(|[a, b, _]| a & b, Bitwise)),
    row("v_or_b16", B16, WW, Bits(|[a, b, _]| a | b, Bitwise)),
    row("v_xor_b16", B16, WW, Bits(|[a, b, _]| a ^ b, Bitwise)),
    row("v_xor3_b32", B32, WORDS3, Bits(|[a, b, c]| bits::bitop3(0x96, [a, b, c]), Bitwise)),
    row("v_cvt_i32_i16", B32, &[B16], Bits(|[a, ..]| i64::from(a as i16) as u64, Move(0))),
    row("v_cvt_u32_u16", B32, &[B16], Bits(|[a, ..]| a & 0xFFFF, Move(0))),
    special("v_cndmask_b16", B16, WW, Special::Cndmask),
    special("v_permlane16_b32", B32, WORDS3, Special::Permlane16 { other_row: false, vary: false }),
    special("v_permlanex16_b32", B32, WORDS3, Special::Permlane16 { other_row: true, vary: false }),
    special("v_permlane16_var_b32", B32, &[B32, B32], Special::Permlane16 { other_row: false, vary: true }),
    special("v_permlanex16_var_b32", B32, &[B32, B32], Special::Permlane16 { other_row: true, vary: true }),
];
