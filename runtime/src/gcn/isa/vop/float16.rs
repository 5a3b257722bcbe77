//! f16 arithmetic: computed in f64, where sums and products of f16 are exact, and rounded to nearest even.

use super::{Row, Sem, Ty, row};
use crate::gcn::isa::float::select16;

use Sem::{H1, H2, H3, Moded};
use Ty::F16;

const H: &[Ty] = &[F16];
const HH: &[Ty] = &[F16, F16];
const HHH: &[Ty] = &[F16, F16, F16];

pub(crate) static TABLE: &[Row] = &[
    row("v_add_f16", F16, HH, H2(|a, b| a + b)),
    row("v_sub_f16", F16, HH, H2(|a, b| a - b)),
    row("v_subrev_f16", F16, HH, H2(|a, b| b - a)),
    row("v_mul_f16", F16, HH, H2(|a, b| a * b)),
    row("v_fma_f16", F16, HHH, H3(libm::fma)),
    row("v_max_f16", F16, HH, Moded(|[a, b, _], m| u64::from(select16(a as u16, b as u16, true, m)))),
    row("v_min_f16", F16, HH, Moded(|[a, b, _], m| u64::from(select16(a as u16, b as u16, false, m)))),
    row("v_trunc_f16", F16, H, H1(libm::trunc)),
    row("v_ceil_f16", F16, H, H1(libm::ceil)),
    row("v_floor_f16", F16, H, H1(libm::floor)),
    row("v_rndne_f16", F16, H, H1(libm::rint)),
    row("v_exp_f16", F16, H, H1(libm::exp2)),
    row("v_log_f16", F16, H, H1(libm::log2)),
    row("v_rcp_f16", F16, H, H1(|a| 1.0 / a)),
    row("v_rsq_f16", F16, H, H1(|a| 1.0 / libm::sqrt(a))),
    row("v_sqrt_f16", F16, H, H1(libm::sqrt)),
];
