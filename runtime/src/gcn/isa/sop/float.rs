//! Scalar float instructions of gfx12, and its vector instructions with a scalar operand and result (`v_s_*`).
//!
//! Denormals are kept: a kernel that flushes them is refused by [`super::exec`].

use std::cmp::Ordering::{self, Equal, Greater, Less};

use super::{Row, S32, S32X2, Scc, Shadow, Shape, compare, row, shaped};
use crate::gcn::isa::float::{self, propagate32, select16, select32, via64};
use crate::gcn::state::Mode;

use Scc::Keep;
use Shadow::{Halves, Strict};

const S32X3: &[u32] = &[32, 32, 32];

/// As vector instructions of gfx12 have it.
const MODE: Mode = Mode { round32: 0, round64: 0, denorm32: 3, denorm64: 3, dx10_clamp: true, ieee: false };

fn f(x: u64) -> f32 {
    f32::from_bits(x as u32)
}

fn h(x: u64) -> f64 {
    half::f16::from_bits(x as u16).to_f64()
}

fn r32<const N: usize>(r: f32, operands: [u64; N]) -> u64 {
    u64::from(float::result32(r, &operands.map(|x| x as u32)))
}

fn r16<const N: usize>(r: f64, operands: [u64; N]) -> u64 {
    u64::from(float::result16(float::round16(r), &operands.map(|x| x as u16)))
}

fn select(a: u64, b: u64, max: bool) -> u64 {
    u64::from(select32(a as u32, b as u32, max, MODE))
}

fn select_half(a: u64, b: u64, max: bool) -> u64 {
    u64::from(select16(a as u16, b as u16, max, MODE))
}

/// IEEE 754-2019 maximum or minimum of f16.
fn propagate16(a: u64, b: u64, max: bool) -> u64 {
    r16(f64::from(propagate32(h(a) as f32, h(b) as f32, max)), [a, b])
}

fn fma([a, b, c]: [u64; 3]) -> u64 {
    r32(libm::fmaf(f(a), f(b), f(c)), [a, b, c])
}

fn fma16([a, b, c]: [u64; 3]) -> u64 {
    r16(libm::fma(h(a), h(b), h(c)), [a, b, c])
}

fn order32([a, b, _]: [u64; 3]) -> Option<Ordering> {
    f(a).partial_cmp(&f(b))
}

fn order16([a, b, _]: [u64; 3]) -> Option<Ordering> {
    h(a).partial_cmp(&h(b))
}

fn to_f16(x: u64) -> u64 {
    r16(f64::from(f(x)), [])
}

const fn floating(row: Row) -> Row {
    Row { float: true, ..row }
}

const fn unary(name: &'static str, f: fn([u64; 3]) -> u64) -> Row {
    floating(row(name, 32, S32, f, Strict, Keep))
}

const fn binary(name: &'static str, f: fn([u64; 3]) -> u64) -> Row {
    floating(row(name, 32, S32X2, f, Strict, Keep))
}

const fn compare_floats(name: &'static str, f: fn([u64; 3]) -> bool) -> Row {
    floating(compare(name, S32X2, f))
}

/// A vector instruction of one scalar.
const fn scalar(name: &'static str, f: fn([u64; 3]) -> u64) -> Row {
    Row { signs: true, ..unary(name, f) }
}

pub(crate) static TABLE: &[Row] = &[
    binary("s_add_f32", |[a, b, _]| r32(f(a) + f(b), [a, b])),
    binary("s_sub_f32", |[a, b, _]| r32(f(a) - f(b), [a, b])),
    binary("s_mul_f32", |[a, b, _]| r32(f(a) * f(b), [a, b])),
    binary("s_min_num_f32", |[a, b, _]| select(a, b, false)),
    binary("s_max_num_f32", |[a, b, _]| select(a, b, true)),
    binary("s_minimum_f32", |[a, b, _]| r32(propagate32(f(a), f(b), false), [a, b])),
    binary("s_maximum_f32", |[a, b, _]| r32(propagate32(f(a), f(b), true), [a, b])),
    floating(row("s_fmaak_f32", 32, S32X3, fma, Strict, Keep)),
    floating(row("s_fmamk_f32", 32, S32X3, fma, Strict, Keep)),
    // The destination comes first in the text, and is what is added to.
    floating(shaped(Shape::Accumulate, "s_fmac_f32", 32, S32X3, |[d, a, b]| fma([a, b, d]), Strict, Keep)),
    floating(shaped(Shape::Accumulate, "s_fmac_f16", 32, S32X3, |[d, a, b]| fma16([a, b, d]), Strict, Keep)),
    unary("s_ceil_f32", |[a, ..]| r32(libm::ceilf(f(a)), [a])),
    unary("s_floor_f32", |[a, ..]| r32(libm::floorf(f(a)), [a])),
    unary("s_trunc_f32", |[a, ..]| r32(libm::truncf(f(a)), [a])),
    unary("s_rndne_f32", |[a, ..]| r32(libm::rintf(f(a)), [a])),
    binary("s_add_f16", |[a, b, _]| r16(h(a) + h(b), [a, b])),
    binary("s_sub_f16", |[a, b, _]| r16(h(a) - h(b), [a, b])),
    binary("s_mul_f16", |[a, b, _]| r16(h(a) * h(b), [a, b])),
    binary("s_min_num_f16", |[a, b, _]| select_half(a, b, false)),
    binary("s_max_num_f16", |[a, b, _]| select_half(a, b, true)),
    binary("s_minimum_f16", |[a, b, _]| propagate16(a, b, false)),
    binary("s_maximum_f16", |[a, b, _]| propagate16(a, b, true)),
    unary("s_ceil_f16", |[a, ..]| r16(libm::ceil(h(a)), [a])),
    unary("s_floor_f16", |[a, ..]| r16(libm::floor(h(a)), [a])),
    unary("s_trunc_f16", |[a, ..]| r16(libm::trunc(h(a)), [a])),
    unary("s_rndne_f16", |[a, ..]| r16(libm::rint(h(a)), [a])),
    // Conversions. To integers: towards zero, saturating, NaN gives 0.
    unary("s_cvt_f32_i32", |[a, ..]| u64::from((a as i32 as f32).to_bits())),
    unary("s_cvt_f32_u32", |[a, ..]| u64::from((a as u32 as f32).to_bits())),
    unary("s_cvt_i32_f32", |[a, ..]| u64::from(f(a) as i32 as u32)),
    unary("s_cvt_u32_f32", |[a, ..]| u64::from(f(a) as u32)),
    unary("s_cvt_f32_f16", |[a, ..]| u64::from(float::widen16(a as u16))),
    unary("s_cvt_hi_f32_f16", |[a, ..]| u64::from(float::widen16((a >> 16) as u16))),
    unary("s_cvt_f16_f32", |[a, ..]| to_f16(a)),
    row(
        "s_cvt_pk_rtz_f16_f32",
        32,
        S32X2,
        |[a, b, _]| u64::from(float::f16_towards_zero(a as u32)) | u64::from(float::f16_towards_zero(b as u32)) << 16,
        Halves,
        Keep,
    ),
    // Approximations in hardware; correctly rounded here, as their vector forms.
    scalar("v_s_exp_f32", |[a, ..]| r32(via64(f(a), libm::exp2), [a])),
    scalar("v_s_log_f32", |[a, ..]| r32(via64(f(a), libm::log2), [a])),
    scalar("v_s_rcp_f32", |[a, ..]| r32(1.0 / f(a), [a])),
    scalar("v_s_rsq_f32", |[a, ..]| r32(via64(f(a), |x| 1.0 / libm::sqrt(x)), [a])),
    scalar("v_s_sqrt_f32", |[a, ..]| r32(libm::sqrtf(f(a)), [a])),
    // Compares.
    compare_floats("s_cmp_lt_f32", |v| matches!(order32(v), Some(Less))),
    compare_floats("s_cmp_lt_f16", |v| matches!(order16(v), Some(Less))),
    compare_floats("s_cmp_eq_f32", |v| matches!(order32(v), Some(Equal))),
    compare_floats("s_cmp_eq_f16", |v| matches!(order16(v), Some(Equal))),
    compare_floats("s_cmp_le_f32", |v| matches!(order32(v), Some(Less) | Some(Equal))),
    compare_floats("s_cmp_le_f16", |v| matches!(order16(v), Some(Less) | Some(Equal))),
    compare_floats("s_cmp_gt_f32", |v| matches!(order32(v), Some(Greater))),
    compare_floats("s_cmp_gt_f16", |v| matches!(order16(v), Some(Greater))),
    compare_floats("s_cmp_lg_f32", |v| matches!(order32(v), Some(Less) | Some(Greater))),
    compare_floats("s_cmp_lg_f16", |v| matches!(order16(v), Some(Less) | Some(Greater))),
    compare_floats("s_cmp_ge_f32", |v| matches!(order32(v), Some(Greater) | Some(Equal))),
    compare_floats("s_cmp_ge_f16", |v| matches!(order16(v), Some(Greater) | Some(Equal))),
    compare_floats("s_cmp_o_f32", |v| matches!(order32(v), Some(Less) | Some(Equal) | Some(Greater))),
    compare_floats("s_cmp_o_f16", |v| matches!(order16(v), Some(Less) | Some(Equal) | Some(Greater))),
    compare_floats("s_cmp_u_f32", |v| order32(v).is_none()),
    compare_floats("s_cmp_u_f16", |v| order16(v).is_none()),
    compare_floats("s_cmp_nge_f32", |v| matches!(order32(v), Some(Less) | None)),
    compare_floats("s_cmp_nge_f16", |v| matches!(order16(v), Some(Less) | None)),
    compare_floats("s_cmp_nlg_f32", |v| matches!(order32(v), Some(Equal) | None)),
    compare_floats("s_cmp_nlg_f16", |v| matches!(order16(v), Some(Equal) | None)),
    compare_floats("s_cmp_ngt_f32", |v| matches!(order32(v), Some(Less) | Some(Equal) | None)),
    compare_floats("s_cmp_ngt_f16", |v| matches!(order16(v), Some(Less) | Some(Equal) | None)),
    compare_floats("s_cmp_nle_f32", |v| matches!(order32(v), Some(Greater) | None)),
    compare_floats("s_cmp_nle_f16", |v| matches!(order16(v), Some(Greater) | None)),
    compare_floats("s_cmp_neq_f32", |v| matches!(order32(v), Some(Less) | Some(Greater) | None)),
    compare_floats("s_cmp_neq_f16", |v| matches!(order16(v), Some(Less) | Some(Greater) | None)),
    compare_floats("s_cmp_nlt_f32", |v| matches!(order32(v), Some(Equal) | Some(Greater) | None)),
    compare_floats("s_cmp_nlt_f16", |v| matches!(order16(v), Some(Equal) | Some(Greater) | None)),
];
