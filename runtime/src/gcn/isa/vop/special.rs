//! Vector instructions that are not lane by lane, or have a second result or a hidden operand.

use super::mix::{self, Mix};
use super::narrow;
use super::{Operands, Row, Ty, fetch, special, write_back};
use crate::gcn::decode::{Arg, Inst, Kind};
use crate::gcn::error::{ErrorKind, Fault, Sink, unsupported};
use crate::gcn::isa::chip::Fp8;
use crate::gcn::isa::shadow::left;
use crate::gcn::isa::{Context, float};
use crate::gcn::state::{LANES, Scalar, Wide, lanes_of, scalar_range, vector_range};

use Ty::{B32, B64, F32, F64, Moved};

/// Which one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Special {
    /// `v_nop`.
    Nop,
    /// `v_cndmask_b32`: select by a mask register.
    Cndmask,
    /// Sum or difference with carry out, and in.
    Carry {
        /// Subtract.
        sub: bool,
        /// Operand 1 − operand 0.
        rev: bool,
        /// With carry in.
        cin: bool,
    },
    /// `v_mad_u64_u32`, `v_mad_i64_i32`.
    MadWide {
        /// Signed product.
        signed: bool,
    },
    /// First active lane to a scalar.
    ReadFirstLane,
    /// A named lane to a scalar.
    ReadLane,
    /// A scalar to a named lane.
    WriteLane,
    /// Active bits of a mask below the lane, plus operand 1.
    Mbcnt {
        /// Upper half of the mask.
        high: bool,
    },
    /// Exchange two registers.
    Swap,
    /// Exchange rows of 16 or halves of 32 between two registers.
    PermlaneSwap(u8),
    /// Any lane of the same or of the other row of 16; sources are numbered by scalars or by each lane.
    Permlane16 {
        /// Of the other row of a pair.
        other_row: bool,
        /// Each lane brings the number of its source.
        vary: bool,
    },
    /// Scaling before a division.
    DivScale,
    /// Division step that undoes the scaling.
    DivFmas,
    /// `v_fma_mix*`: f32 fused multiply-add of f16 and f32 operands.
    Mix(Mix),
    /// `v_cvt_*` to and from codes of 8, 6 and 4 bits.
    Narrow(narrow::Convert),
}

impl Special {
    pub(crate) fn operands(self) -> (usize, usize) {
        match self {
            Self::Nop => (0, 0),
            Self::Cndmask => (4, 4),
            Self::Carry { cin, .. } => (4 + usize::from(cin), 4 + usize::from(cin)),
            Self::MadWide { .. } | Self::DivScale => (5, 5),
            Self::ReadFirstLane | Self::Swap | Self::PermlaneSwap(_) => (2, 2),
            Self::ReadLane | Self::WriteLane | Self::Mbcnt { .. } | Self::Permlane16 { vary: true, .. } => (3, 3),
            Self::Permlane16 { vary: false, .. } => (4, 4),
            Self::DivFmas | Self::Mix(_) => (4, 4),
            Self::Narrow(convert) => convert.operands(),
        }
    }
}

const fn carry(name: &'static str, sub: bool, rev: bool, cin: bool) -> Row {
    special(name, B32, WORDS2, Special::Carry { sub, rev, cin })
}

const WORD: &[Ty] = &[B32];
const WORDS2: &[Ty] = &[B32, B32];

pub(crate) static TABLE: &[Row] = &[
    special("v_nop", B32, &[], Special::Nop),
    special("v_cndmask_b32", B32, &[Moved, Moved], Special::Cndmask),
    carry("v_add_co_u32", false, false, false),
    carry("v_sub_co_u32", true, false, false),
    carry("v_subrev_co_u32", true, true, false),
    carry("v_addc_co_u32", false, false, true),
    carry("v_subb_co_u32", true, false, true),
    carry("v_subbrev_co_u32", true, true, true),
    special("v_mad_u64_u32", B64, &[B32, B32, B64], Special::MadWide { signed: false }),
    special("v_mad_i64_i32", B64, &[B32, B32, B64], Special::MadWide { signed: true }),
    special("v_readfirstlane_b32", B32, WORD, Special::ReadFirstLane),
    special("v_readlane_b32", B32, WORDS2, Special::ReadLane),
    special("v_writelane_b32", B32, WORDS2, Special::WriteLane),
    special("v_mbcnt_lo_u32_b32", B32, WORDS2, Special::Mbcnt { high: false }),
    special("v_mbcnt_hi_u32_b32", B32, WORDS2, Special::Mbcnt { high: true }),
    special("v_swap_b32", B32, WORD, Special::Swap),
    special("v_permlane16_swap_b32", B32, WORD, Special::PermlaneSwap(16)),
    special("v_permlane32_swap_b32", B32, WORD, Special::PermlaneSwap(32)),
    special("v_div_scale_f32", F32, &[F32, F32, F32], Special::DivScale),
    special("v_div_scale_f64", F64, &[F64, F64, F64], Special::DivScale),
    special("v_div_fmas_f32", F32, &[F32, F32, F32], Special::DivFmas),
    special("v_div_fmas_f64", F64, &[F64, F64, F64], Special::DivFmas),
];

/// Writes a lane mask to scalar registers; inactive lanes give 0.
pub(crate) fn write_mask(cx: &mut Context<'_, '_>, arg: &Arg, value: Scalar) -> Result<(), Fault> {
    let (first, count) = scalar_range(arg)?;
    cx.wave.set_scalar(first, count, value)
}

/// The lane number in a scalar operand.
fn lane_number(cx: &mut Context<'_, '_>, arg: &Arg) -> Result<usize, Fault> {
    let s = cx.wave.scalar_arg(arg, 32)?;
    let lane = s.defined(|| "the lane number".into(), Sink::Control)? as usize;
    Ok(lane % cx.wave.lanes)
}

pub(crate) fn exec(cx: &mut Context<'_, '_>, which: Special, row: &'static Row, inst: &Inst) -> Result<(), Fault> {
    if let Special::Mix(to) = which {
        return mix::exec(cx, to, inst);
    }
    if inst.mods.clamp || inst.mods.omod != 1.0 {
        return unsupported(format!("output modifier in `{}`", inst.text));
    }
    let args = &inst.args;
    match which {
        Special::Nop | Special::Mix(_) => Ok(()),
        Special::Narrow(convert) => {
            let fnuz = cx.wave.chip.fp8 == Fp8::Fnuz;
            narrow::exec(cx, convert, inst, fnuz)
        }
        Special::Cndmask => {
            let (mut out, write) = select(cx, row, inst)?;
            write_back(cx, inst, row.d, &mut out, write)
        }
        Special::Carry { sub, rev, cin } => {
            let o = fetch(cx, inst, &args[2..4], row.s)?;
            let carry = if cin { cx.wave.mask_arg(&args[4])? } else { Scalar::default() };
            let mut out = Wide::ZERO;
            let mut mask = Scalar::default();
            for l in lanes_of(o.write) {
                let (a, b) = if rev { (o.src[1].v[l], o.src[0].v[l]) } else { (o.src[0].v[l], o.src[1].v[l]) };
                let c = carry.v >> l & 1;
                let exact = if sub { a.wrapping_sub(b).wrapping_sub(c) } else { a + b + c };
                out.v[l] = exact & 0xFFFF_FFFF;
                mask.v |= (exact >> 32 & 1) << l;
                let u = o.src[0].u[l] | o.src[1].u[l] | carry.u >> l & 1;
                out.u[l] = left(u) & 0xFFFF_FFFF;
                mask.u |= u64::from(u != 0) << l;
            }
            write_mask(cx, &args[1], mask)?;
            write_back(cx, inst, row.d, &mut out, o.write)
        }
        Special::MadWide { signed } => {
            let o = fetch(cx, inst, &args[2..5], row.s)?;
            let mut out = Wide::ZERO;
            let mut mask = Scalar::default();
            for l in lanes_of(o.write) {
                let (a, b, c) = (o.src[0].v[l], o.src[1].v[l], o.src[2].v[l]);
                let overflow;
                if signed {
                    let product = i64::from(a as u32 as i32) * i64::from(b as u32 as i32);
                    let sum = i128::from(product) + i128::from(c as i64);
                    out.v[l] = sum as u64;
                    overflow = i64::try_from(sum).is_err();
                } else {
                    let sum = u128::from(a * b) + u128::from(c);
                    out.v[l] = sum as u64;
                    overflow = sum >> 64 != 0;
                }
                mask.v |= u64::from(overflow) << l;
                let u = o.src[0].u[l] | o.src[1].u[l] | o.src[2].u[l];
                out.u[l] = left(u);
                mask.u |= u64::from(u != 0) << l;
            }
            write_mask(cx, &args[1], mask)?;
            write_back(cx, inst, B64, &mut out, o.write)
        }
        Special::ReadFirstLane | Special::ReadLane => {
            let lane = if which == Special::ReadLane {
                lane_number(cx, &args[2])?
            } else {
                match cx.wave.exec() {
                    0 => 0,
                    exec => exec.trailing_zeros() as usize,
                }
            };
            let w = cx.wave.wide(&args[1], 32, false)?;
            let (first, count) = scalar_range(&args[0])?;
            cx.wave.set_scalar(first, count, Scalar { v: w.v[lane], u: w.u[lane] })
        }
        Special::WriteLane => {
            let lane = lane_number(cx, &args[2])?;
            let s = cx.wave.scalar_arg(&args[1], 32)?;
            // Whatever EXEC says.
            cx.wave.set_wide(&args[0], 32, &Wide::splat(s.v, s.u), 1 << lane)
        }
        Special::Mbcnt { high } => {
            let o = fetch(cx, inst, &args[1..3], row.s)?;
            let mut out = Wide::ZERO;
            for l in lanes_of(o.write) {
                let below = (1u64 << l) - 1;
                let below = if high { below >> 32 } else { below & 0xFFFF_FFFF };
                let count = u64::from((o.src[0].v[l] & below).count_ones());
                out.v[l] = count.wrapping_add(o.src[1].v[l]) & 0xFFFF_FFFF;
                if o.src[0].u[l] & below != 0 || o.src[1].u[l] != 0 {
                    out.u[l] = 0xFFFF_FFFF;
                }
            }
            write_back(cx, inst, B32, &mut out, o.write)
        }
        Special::Swap => {
            let exec = cx.wave.exec();
            let (a, b) = (cx.wave.wide(&args[0], 32, false)?, cx.wave.wide(&args[1], 32, false)?);
            cx.wave.set_wide(&args[0], 32, &b, exec)?;
            cx.wave.set_wide(&args[1], 32, &a, exec)
        }
        Special::Permlane16 { other_row, vary } => permlane16(cx, inst, other_row, vary),
        Special::PermlaneSwap(width) => permlane_swap(cx, inst, usize::from(width)),
        Special::DivScale => {
            let o = fetch(cx, inst, &args[2..5], row.s)?;
            let mut out = Wide::ZERO;
            let mut mask = Scalar::default();
            for l in lanes_of(o.write) {
                let v = [o.src[0].v[l], o.src[1].v[l], o.src[2].v[l]];
                let (d, scaled) = if row.d == F64 { div_scale64(v) } else { div_scale32(v) };
                out.v[l] = d;
                mask.v |= u64::from(scaled) << l;
                if o.src.iter().any(|s| s.u[l] != 0) {
                    out.u[l] = row.d.mask();
                    mask.u |= 1 << l;
                }
            }
            write_mask(cx, &args[1], mask)?;
            write_back(cx, inst, row.d, &mut out, o.write)
        }
        Special::DivFmas => {
            let o: Operands = fetch(cx, inst, &args[1..4], row.s)?;
            let vcc = cx.wave.vcc()?;
            let mut out = Wide::ZERO;
            for l in lanes_of(o.write) {
                let [a, b, c] = [o.src[0].v[l], o.src[1].v[l], o.src[2].v[l]];
                let scaled = vcc.v >> l & 1 == 1;
                out.v[l] = if row.d == F64 {
                    let power = if scaled { unscale(c >> 52 & 0x7FF, 1023, 128) } else { 0 };
                    let r = float::scaled_fma64(f64::from_bits(a), f64::from_bits(b), f64::from_bits(c), power);
                    float::result64(r, &[a, b, c])
                } else {
                    let f = |x: u64| f32::from_bits(x as u32);
                    let power = if scaled { unscale(c >> 23 & 0xFF, 127, 64) } else { 0 };
                    let r = float::scaled_fma(f(a), f(b), f(c), power);
                    u64::from(float::result32(r, &[a as u32, b as u32, c as u32]))
                };
                if o.src.iter().any(|s| s.u[l] != 0) || vcc.u >> l & 1 == 1 {
                    out.u[l] = row.d.mask();
                }
            }
            write_back(cx, inst, row.d, &mut out, o.write)
        }
    }
}

/// Exponent of the factor with which `v_div_fmas` undoes the scaling: a large quotient came from a denominator scaled
/// up, a small one from a numerator scaled up. (AMD's texts name one factor for both; only this gives right quotients.)
fn unscale(exponent: u64, bias: u64, by: i32) -> i32 {
    if exponent > bias { by } else { -by }
}

/// Scales operand 0 (the numerator or the denominator) where the quotient operand 2 / operand 1 would leave the range.
/// A huge denominator is scaled down (AMD's texts say up, which would overflow).
fn div_scale32([s0, s1, s2]: [u64; 3]) -> (u64, bool) {
    let f = |x: u64| f32::from_bits(x as u32);
    let exponent = |x: u64| (x >> 23 & 0xFF) as i32;
    let denormal = |x: f32| x != 0.0 && x.abs() < f32::MIN_POSITIVE;
    let scale = |e: i32| u64::from(libm::scalbnf(f(s0), e).to_bits());
    let (d, n) = (f(s1), f(s2));
    let reciprocal = 1.0 / f64::from(d);
    // The reciprocal of an f32 denominator counts as tiny where it is an f32 denormal.
    let tiny_reciprocal = reciprocal != 0.0 && reciprocal.abs() < f64::from(f32::MIN_POSITIVE);
    let tiny_quotient = denormal(n / d);
    if n == 0.0 || d == 0.0 {
        (u64::from(float::NAN32), false)
    } else if exponent(s2) - exponent(s1) >= 96 {
        (if s0 == s1 { scale(64) } else { s0 }, true)
    } else if denormal(d) {
        (scale(64), false)
    } else if tiny_reciprocal && tiny_quotient {
        (if s0 == s1 { scale(-64) } else { s0 }, true)
    } else if tiny_reciprocal {
        (scale(-64), false)
    } else if tiny_quotient {
        (if s0 == s2 { scale(64) } else { s0 }, true)
    } else if exponent(s2) <= 23 {
        (scale(64), false)
    } else {
        (s0, false)
    }
}

/// Likewise for f64.
fn div_scale64([s0, s1, s2]: [u64; 3]) -> (u64, bool) {
    let f = f64::from_bits;
    let exponent = |x: u64| (x >> 52 & 0x7FF) as i32;
    let denormal = |x: f64| x != 0.0 && x.abs() < f64::MIN_POSITIVE;
    let scale = |e: i32| libm::scalbn(f(s0), e).to_bits();
    let (d, n) = (f(s1), f(s2));
    let tiny_reciprocal = denormal(1.0 / d);
    let tiny_quotient = denormal(n / d);
    if n == 0.0 || d == 0.0 {
        (float::NAN64, false)
    } else if exponent(s2) - exponent(s1) >= 768 {
        (if s0 == s1 { scale(128) } else { s0 }, true)
    } else if denormal(d) {
        (scale(128), false)
    } else if tiny_reciprocal && tiny_quotient {
        (if s0 == s1 { scale(-128) } else { s0 }, true)
    } else if tiny_reciprocal {
        (scale(-128), false)
    } else if tiny_quotient {
        (if s0 == s2 { scale(128) } else { s0 }, true)
    } else if exponent(s2) <= 53 {
        (scale(128), false)
    } else {
        (s0, false)
    }
}

/// Operand 1 where the mask has a bit, else operand 0; and the lanes it goes to.
pub(super) fn select(cx: &mut Context<'_, '_>, row: &Row, inst: &Inst) -> Result<(Wide, u64), Fault> {
    let o = fetch(cx, inst, &inst.args[1..3], row.s)?;
    let mask = cx.wave.mask_arg(&inst.args[3])?;
    let [a, b, _] = &o.src;
    let mut out = Wide::ZERO;
    for l in lanes_of(o.write) {
        let (x, y) = ((a.v[l], a.u[l]), (b.v[l], b.u[l]));
        (out.v[l], out.u[l]) = if mask.v >> l & 1 == 1 { y } else { x };
        if mask.u >> l & 1 == 1 {
            // Known only where both choices agree.
            out.u[l] = (x.0 ^ y.0) | x.1 | y.1;
        }
    }
    Ok((out, o.write))
}

/// Every lane takes operand 0 of a lane of its row of 16, or of the row beside it. Four bits a lane say which: those of
/// operands 1 and 2, which are scalars, or the low ones of its own operand 1.
fn permlane16(cx: &mut Context<'_, '_>, inst: &Inst, other_row: bool, vary: bool) -> Result<(), Fault> {
    let data = cx.wave.wide(&inst.args[1], 32, false)?;
    let exec = cx.wave.exec();
    let numbers = if vary {
        cx.wave.wide(&inst.args[2], 32, false)?
    } else {
        let (low, high) = (cx.wave.scalar_arg(&inst.args[2], 32)?, cx.wave.scalar_arg(&inst.args[3], 32)?);
        let all = Scalar { v: low.v | high.v << 32, u: low.u | high.u << 32 };
        let all = all.defined(|| "the lane numbers".into(), Sink::Control)?;
        let mut w = Wide::ZERO;
        (0..LANES).for_each(|l| w.v[l] = all >> (4 * (l & 15)));
        w
    };
    // As the bits of `op_sel`: read inactive lanes too; inactive lanes give 0 instead of nothing.
    let (fetch_inactive, zero) = (inst.mods.op_sel & 1 == 1, inst.mods.op_sel >> 1 & 1 == 1);
    let mut out = Wide::ZERO;
    let mut write = exec;
    for l in lanes_of(exec) {
        if numbers.u[l] & 0xF != 0 {
            let (what, bits) = ("the lane number".to_owned(), numbers.u[l]);
            return Err(ErrorKind::Undefined { what, bits, sink: Sink::Control }.lane(l));
        }
        let row = (l & !15) ^ if other_row { 16 } else { 0 };
        let from = row + (numbers.v[l] & 0xF) as usize;
        if fetch_inactive || exec >> from & 1 == 1 {
            (out.v[l], out.u[l]) = (data.v[from], data.u[from]);
        } else if !zero {
            write &= !(1 << l);
        }
    }
    write_back(cx, inst, B32, &mut out, write)
}

/// Lanes of operand 0 with bit `width` set change places with those of operand 1 with it clear.
fn permlane_swap(cx: &mut Context<'_, '_>, inst: &Inst, width: usize) -> Result<(), Fault> {
    for arg in &inst.args {
        vector_range(arg)?;
        if !matches!(arg.kind, Kind::V { .. }) {
            return Err(ErrorKind::Decode("a VGPR was expected".into()).into());
        }
    }
    let exec = cx.wave.exec();
    let (d, s) = (cx.wave.wide(&inst.args[0], 32, false)?, cx.wave.wide(&inst.args[1], 32, false)?);
    let (mut new_d, mut new_s) = (d.clone(), s.clone());
    for lane in (0..LANES).filter(|l| l & width == 0) {
        let high = lane + width;
        // An inactive lane gives nothing: the other one keeps what it has, or gets 0 with bound_ctrl.
        let give = |from: usize, old: (u64, u64), new: (u64, u64)| match () {
            () if inst.mods.fetch_inactive || exec >> from & 1 == 1 => new,
            () if inst.mods.bound_ctrl => (0, 0),
            () => old,
        };
        (new_s.v[lane], new_s.u[lane]) = give(high, (s.v[lane], s.u[lane]), (d.v[high], d.u[high]));
        (new_d.v[high], new_d.u[high]) = give(lane, (d.v[high], d.u[high]), (s.v[lane], s.u[lane]));
    }
    cx.wave.set_wide(&inst.args[0], 32, &new_d, exec)?;
    cx.wave.set_wide(&inst.args[1], 32, &new_s, exec)
}
