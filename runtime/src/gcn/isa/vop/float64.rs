//! f64 arithmetic.

use super::{Row, Sem, Ty, accumulate, row};
use crate::gcn::isa::float::{self, frexp64, select64};
use crate::gcn::state::Mode;

use Sem::{D1, D2, D3, Moded};
use Ty::{B32, F64};

const D: &[Ty] = &[F64];
const DD: &[Ty] = &[F64, F64];
const DDD: &[Ty] = &[F64, F64, F64];

fn div_fixup([q, d, n]: [u64; 3], _: Mode) -> u64 {
    let (qf, df, nf) = (f64::from_bits(q), f64::from_bits(d), f64::from_bits(n));
    let sign = (d ^ n) & 1 << 63;
    let exponent = |x: u64| (x >> 52 & 0x7FF) as i32;
    if nf.is_nan() || df.is_nan() {
        float::result64(f64::NAN, &[n, d])
    } else if (df == 0.0 && nf == 0.0) || (df.is_infinite() && nf.is_infinite()) {
        0xFFF8_0000_0000_0000
    } else if df == 0.0 || nf.is_infinite() {
        f64::INFINITY.to_bits() | sign
    } else if df.is_infinite() || nf == 0.0 || exponent(n) - exponent(d) < -1075 {
        sign
    } else if qf.is_nan() {
        // The steps before made inf − inf of a quotient beyond the range.
        f64::INFINITY.to_bits() | sign
    } else {
        qf.abs().to_bits() | sign
    }
}

pub(crate) static TABLE: &[Row] = &[
    row("v_add_f64", F64, DD, D2(|a, b| a + b)),
    row("v_mul_f64", F64, DD, D2(|a, b| a * b)),
    row("v_fma_f64", F64, DDD, D3(libm::fma)),
    accumulate("v_fmac_f64", F64, DDD, D3(libm::fma)),
    row("v_max_f64", F64, DD, Moded(|[a, b, _], m| select64(a, b, true, m))),
    row("v_min_f64", F64, DD, Moded(|[a, b, _], m| select64(a, b, false, m))),
    row("v_trunc_f64", F64, D, D1(libm::trunc)),
    row("v_ceil_f64", F64, D, D1(libm::ceil)),
    row("v_floor_f64", F64, D, D1(libm::floor)),
    row("v_rndne_f64", F64, D, D1(libm::rint)),
    row("v_fract_f64", F64, D, D1(|a| (a - libm::floor(a)).min(f64::from_bits(0x3FEF_FFFF_FFFF_FFFF)))),
    // Hardware gives about 2^-22 relative error; these are correctly rounded.
    row("v_rcp_f64", F64, D, D1(|a| 1.0 / a)),
    row("v_rsq_f64", F64, D, D1(|a| 1.0 / libm::sqrt(a))),
    row("v_sqrt_f64", F64, D, D1(libm::sqrt)),
    row(
        "v_ldexp_f64",
        F64,
        &[F64, B32],
        Moded(|[a, n, _], _| float::result64(libm::ldexp(f64::from_bits(a), n as u32 as i32), &[a])),
    ),
    row("v_frexp_mant_f64", F64, D, D1(|a| frexp64(a).0)),
    row("v_frexp_exp_i32_f64", B32, D, Moded(|[a, ..], _| frexp64(f64::from_bits(a)).1 as u64)),
    row("v_div_fixup_f64", F64, DDD, Moded(div_fixup)),
];
