//! f32 arithmetic. `v_exp`, `v_log`, `v_rcp`, `v_rsq`, `v_sqrt`, `v_sin` and `v_cos` are approximations in hardware;
//! here they are computed in f64 and rounded once, so their results are the correctly rounded ones.

use super::{Row, Sem, Ty, accumulate, row};
use crate::gcn::isa::float::{self, frexp32, propagate32, select32, via64};
use crate::gcn::state::Mode;

use Sem::{F1, F2, F3, Moded};
use Ty::{B32, F32};

const F: &[Ty] = &[F32];
const FF: &[Ty] = &[F32, F32];
const FFF: &[Ty] = &[F32, F32, F32];

fn u(x: u64) -> u32 {
    x as u32
}

fn select(a: u64, b: u64, max: bool, mode: Mode) -> u64 {
    u64::from(select32(u(a), u(b), max, mode))
}

fn select3(v: [u64; 3], max: bool, mode: Mode) -> u64 {
    select(select(v[0], v[1], max, mode), v[2], max, mode)
}

fn med3(v: [u64; 3], mode: Mode) -> u64 {
    let f = v.map(|x| f32::from_bits(u(x)));
    if f.iter().any(|x| x.is_nan()) {
        return select3(v, false, mode);
    }
    let most = select3(v, true, mode);
    if most == v[0] {
        select(v[1], v[2], true, mode)
    } else if most == v[1] {
        select(v[0], v[2], true, mode)
    } else {
        select(v[0], v[1], true, mode)
    }
}

/// Quotient fix-up after `v_div_fmas`: operand 0 is the quotient's magnitude, 1 the denominator, 2 the numerator.
fn div_fixup([q, d, n]: [u64; 3], _: Mode) -> u64 {
    let (qf, df, nf) = (f32::from_bits(u(q)), f32::from_bits(u(d)), f32::from_bits(u(n)));
    let sign = (u(d) ^ u(n)) & 0x8000_0000;
    let exponent = |x: u64| (u(x) >> 23 & 0xFF) as i32;
    u64::from(if nf.is_nan() {
        float::quiet32(u(n))
    } else if df.is_nan() {
        float::quiet32(u(d))
    } else if (df == 0.0 && nf == 0.0) || (df.is_infinite() && nf.is_infinite()) {
        0xFFC0_0000
    } else if df == 0.0 || nf.is_infinite() {
        0x7F80_0000 | sign
    } else if df.is_infinite() || nf == 0.0 || exponent(n) - exponent(d) < -150 {
        sign
    } else if qf.is_nan() {
        // The steps before made inf − inf of a quotient beyond the range.
        0x7F80_0000 | sign
    } else {
        (qf.abs()).to_bits() | sign
    })
}

pub(crate) static TABLE: &[Row] = &[
    row("v_add_f32", F32, FF, F2(|a, b| a + b)),
    row("v_sub_f32", F32, FF, F2(|a, b| a - b)),
    row("v_subrev_f32", F32, FF, F2(|a, b| b - a)),
    row("v_mul_f32", F32, FF, F2(|a, b| a * b)),
    row("v_mul_legacy_f32", F32, FF, F2(|a, b| if a == 0.0 || b == 0.0 { 0.0 } else { a * b })),
    row("v_fma_f32", F32, FFF, F3(libm::fmaf)),
    accumulate("v_fmac_f32", F32, FFF, F3(libm::fmaf)),
    row("v_fmaak_f32", F32, FFF, F3(libm::fmaf)),
    row("v_fmamk_f32", F32, FFF, F3(libm::fmaf)),
    row("v_max_f32", F32, FF, Moded(|[a, b, _], m| select(a, b, true, m))),
    row("v_min_f32", F32, FF, Moded(|[a, b, _], m| select(a, b, false, m))),
    row("v_max3_f32", F32, FFF, Moded(|v, m| select3(v, true, m))),
    row("v_min3_f32", F32, FFF, Moded(|v, m| select3(v, false, m))),
    row("v_med3_f32", F32, FFF, Moded(med3)),
    row("v_maximum3_f32", F32, FFF, F3(|a, b, c| propagate32(propagate32(a, b, true), c, true))),
    row("v_minimum3_f32", F32, FFF, F3(|a, b, c| propagate32(propagate32(a, b, false), c, false))),
    row("v_div_fixup_f32", F32, FFF, Moded(div_fixup)),
    // Rounding to integers.
    row("v_trunc_f32", F32, F, F1(libm::truncf)),
    row("v_ceil_f32", F32, F, F1(libm::ceilf)),
    row("v_floor_f32", F32, F, F1(libm::floorf)),
    row("v_rndne_f32", F32, F, F1(libm::rintf)),
    // At most the largest number below 1, where the difference itself would round to 1.
    row("v_fract_f32", F32, F, F1(|a| (a - libm::floorf(a)).min(f32::from_bits(0x3F7F_FFFF)))),
    // Transcendental.
    row("v_exp_f32", F32, F, F1(|a| via64(a, libm::exp2))),
    row("v_log_f32", F32, F, F1(|a| via64(a, libm::log2))),
    row("v_rcp_f32", F32, F, F1(|a| 1.0 / a)),
    row("v_rcp_iflag_f32", F32, F, F1(|a| 1.0 / a)),
    row("v_rsq_f32", F32, F, F1(|a| via64(a, |x| 1.0 / libm::sqrt(x)))),
    row("v_sqrt_f32", F32, F, F1(libm::sqrtf)),
    row("v_sin_f32", F32, F, F1(|a| turns(a, libm::sin))),
    row("v_cos_f32", F32, F, F1(|a| turns(a, libm::cos))),
    // Exponent and significand.
    row("v_ldexp_f32", F32, &[F32, B32], Moded(ldexp)),
    row("v_frexp_mant_f32", F32, F, F1(|a| frexp32(a).0)),
    row("v_frexp_exp_i32_f32", B32, F, Moded(|[a, ..], _| frexp32(f32::from_bits(u(a))).1 as u64)),
];

/// A function of an angle given in turns; exact reduction first.
fn turns(a: f32, f: fn(f64) -> f64) -> f32 {
    let x = f64::from(a);
    f((x - libm::rint(x)) * std::f64::consts::TAU) as f32
}

fn ldexp([a, n, _]: [u64; 3], _: Mode) -> u64 {
    let x = f32::from_bits(u(a));
    // Through f64: exact for every exponent that leaves a non-zero f32, and rounded once.
    let n = (u(n) as i32).clamp(-400, 400);
    u64::from(float::result32((f64::from(x) * libm::exp2(f64::from(n))) as f32, &[u(a)]))
}
