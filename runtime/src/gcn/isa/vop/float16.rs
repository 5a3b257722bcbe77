//! f16 arithmetic: computed in f64, where sums and products of f16 are exact, and rounded to nearest even.

use super::{Row, Sem, Ty, row};
use crate::gcn::isa::float::{self, frexp64, select16};
use crate::gcn::state::Mode;

use Sem::{H1, H2, H3, Moded};
use Ty::{B16, F16};

const H: &[Ty] = &[F16];
const HH: &[Ty] = &[F16, F16];
const HHH: &[Ty] = &[F16, F16, F16];

fn select(a: u64, b: u64, max: bool, mode: Mode) -> u64 {
    u64::from(select16(a as u16, b as u16, max, mode))
}

fn select3(v: [u64; 3], max: bool, mode: Mode) -> u64 {
    select(select(v[0], v[1], max, mode), v[2], max, mode)
}

fn value(x: u64) -> f64 {
    half::f16::from_bits(x as u16).to_f64()
}

fn med3(v: [u64; 3], mode: Mode) -> u64 {
    if v.iter().any(|x| value(*x).is_nan()) {
        return select3(v, false, mode);
    }
    let most = select3(v, true, mode);
    match v.iter().position(|x| *x == most) {
        Some(0) => select(v[1], v[2], true, mode),
        Some(1) => select(v[0], v[2], true, mode),
        _ => select(v[0], v[1], true, mode),
    }
}

/// Quotient fix-up: operand 0 is the quotient's magnitude, 1 the denominator, 2 the numerator.
fn div_fixup([q, d, n]: [u64; 3], _: Mode) -> u64 {
    let (df, nf) = (value(d), value(n));
    let sign = (d ^ n) & 0x8000;
    if nf.is_nan() {
        n | 0x0200
    } else if df.is_nan() {
        d | 0x0200
    } else if (df == 0.0 && nf == 0.0) || (df.is_infinite() && nf.is_infinite()) {
        0xFE00
    } else if df == 0.0 || nf.is_infinite() {
        0x7C00 | sign
    } else if df.is_infinite() || nf == 0.0 {
        sign
    } else {
        q & 0x7FFF | sign
    }
}

/// Operand 0 · 2^(operand 1 as i16).
fn ldexp([a, n, _]: [u64; 3], _: Mode) -> u64 {
    u64::from(float::result16(float::round16(libm::ldexp(value(a), i32::from(n as i16))), &[a as u16]))
}

/// A function of an angle given in turns; exact reduction first.
fn turns(x: f64, f: fn(f64) -> f64) -> f64 {
    f((x - libm::rint(x)) * std::f64::consts::TAU)
}

pub(crate) static TABLE: &[Row] = &[
    row("v_add_f16", F16, HH, H2(|a, b| a + b)),
    row("v_sub_f16", F16, HH, H2(|a, b| a - b)),
    row("v_subrev_f16", F16, HH, H2(|a, b| b - a)),
    row("v_mul_f16", F16, HH, H2(|a, b| a * b)),
    row("v_fma_f16", F16, HHH, H3(libm::fma)),
    row("v_max_f16", F16, HH, Moded(|[a, b, _], m| select(a, b, true, m))),
    row("v_min_f16", F16, HH, Moded(|[a, b, _], m| select(a, b, false, m))),
    row("v_max3_f16", F16, HHH, Moded(|v, m| select3(v, true, m))),
    row("v_min3_f16", F16, HHH, Moded(|v, m| select3(v, false, m))),
    row("v_med3_f16", F16, HHH, Moded(med3)),
    row("v_div_fixup_f16", F16, HHH, Moded(div_fixup)),
    row("v_trunc_f16", F16, H, H1(libm::trunc)),
    row("v_ceil_f16", F16, H, H1(libm::ceil)),
    row("v_floor_f16", F16, H, H1(libm::floor)),
    row("v_rndne_f16", F16, H, H1(libm::rint)),
    // At most the largest number below 1, where the difference itself would round to 1.
    row("v_fract_f16", F16, H, H1(|a| (a - libm::floor(a)).min(1.0 - 1.0 / 2048.0))),
    row("v_ldexp_f16", F16, &[F16, B16], Moded(ldexp)),
    row("v_frexp_mant_f16", F16, H, H1(|a| frexp64(a).0)),
    row("v_frexp_exp_i16_f16", B16, H, Moded(|[a, ..], _| frexp64(value(a)).1 as u64)),
    row("v_exp_f16", F16, H, H1(libm::exp2)),
    row("v_log_f16", F16, H, H1(libm::log2)),
    row("v_rcp_f16", F16, H, H1(|a| 1.0 / a)),
    row("v_rsq_f16", F16, H, H1(|a| 1.0 / libm::sqrt(a))),
    row("v_sqrt_f16", F16, H, H1(libm::sqrt)),
    row("v_sin_f16", F16, H, H1(|a| turns(a, libm::sin))),
    row("v_cos_f16", F16, H, H1(|a| turns(a, libm::cos))),
];
