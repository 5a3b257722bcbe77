//! Packed vector ALU: two 16-bit or two 32-bit operations an instruction.

use crate::gcn::decode::{Inst, Kind};
use crate::gcn::error::{Fault, unsupported};
use crate::gcn::isa::{Context, float};
use crate::gcn::state::{Wide, constant, lanes_of};

/// What each half computes.
#[derive(Clone, Copy, Debug)]
enum Sem {
    /// f32 halves of 64-bit operands.
    F32x2(fn(f32, f32) -> f32),
    /// Likewise with three operands.
    F32x3(fn(f32, f32, f32) -> f32),
    /// `v_pk_mov_b32`: operand 0 gives the low half, operand 1 the high half.
    Mov,
    /// 16-bit halves; integers wrap.
    Int2(fn(u16, u16) -> u16),
    /// Likewise, or saturate with `clamp`.
    Clamped(fn(u16, u16) -> u16, fn(u16, u16) -> u16),
    /// Likewise with three operands.
    Int3(fn(u16, u16, u16) -> u16),
    /// f16 halves.
    F16x2(fn(f64, f64) -> f64),
    /// f16 fused multiply-add.
    F16x3(fn(f64, f64, f64) -> f64),
    /// f16 minimum or maximum.
    Select16 {
        /// Maximum.
        max: bool,
    },
}

/// One packed instruction.
#[derive(Debug)]
pub struct Row {
    pub(crate) name: &'static str,
    sem: Sem,
}

impl Row {
    pub(crate) fn operands(&self) -> (usize, usize) {
        let n = self.sources() + 1;
        (n, n)
    }

    fn sources(&self) -> usize {
        match self.sem {
            Sem::F32x3(_) | Sem::Int3(_) | Sem::F16x3(_) => 3,
            _ => 2,
        }
    }
}

const fn row(name: &'static str, sem: Sem) -> Row {
    Row { name, sem }
}

/// IEEE 754-2019 maximum or minimum of f16 values: NaN if either is, −0 < +0.
fn propagate(a: f64, b: f64, max: bool) -> f64 {
    if a.is_nan() || b.is_nan() {
        return f64::NAN;
    }
    if (a.total_cmp(&b).is_ge()) == max { a } else { b }
}

fn i(x: u16) -> i16 {
    x as i16
}

use Sem::{Clamped, F16x2, F16x3, F32x2, F32x3, Int2, Int3, Mov, Select16};

pub(crate) static TABLE: &[Row] = &[
    row("v_pk_add_f32", F32x2(|a, b| a + b)),
    row("v_pk_mul_f32", F32x2(|a, b| a * b)),
    row("v_pk_fma_f32", F32x3(libm::fmaf)),
    row("v_pk_mov_b32", Mov),
    row("v_pk_add_f16", F16x2(|a, b| a + b)),
    row("v_pk_mul_f16", F16x2(|a, b| a * b)),
    row("v_pk_fma_f16", F16x3(libm::fma)),
    row("v_pk_max_f16", Select16 { max: true }),
    row("v_pk_min_f16", Select16 { max: false }),
    row("v_pk_maximum3_f16", F16x3(|a, b, c| propagate(propagate(a, b, true), c, true))),
    row("v_pk_minimum3_f16", F16x3(|a, b, c| propagate(propagate(a, b, false), c, false))),
    row("v_pk_add_u16", Clamped(u16::wrapping_add, u16::saturating_add)),
    row("v_pk_add_i16", Clamped(u16::wrapping_add, |a, b| i(a).saturating_add(i(b)) as u16)),
    row("v_pk_sub_u16", Clamped(u16::wrapping_sub, u16::saturating_sub)),
    row("v_pk_sub_i16", Clamped(u16::wrapping_sub, |a, b| i(a).saturating_sub(i(b)) as u16)),
    row("v_pk_mul_lo_u16", Int2(u16::wrapping_mul)),
    row("v_pk_mad_u16", Int3(|a, b, c| a.wrapping_mul(b).wrapping_add(c))),
    row("v_pk_mad_i16", Int3(|a, b, c| a.wrapping_mul(b).wrapping_add(c))),
    row("v_pk_max_u16", Int2(u16::max)),
    row("v_pk_min_u16", Int2(u16::min)),
    row("v_pk_max_i16", Int2(|a, b| i(a).max(i(b)) as u16)),
    row("v_pk_min_i16", Int2(|a, b| i(a).min(i(b)) as u16)),
    row("v_pk_lshlrev_b16", Int2(|n, a| a << (n & 15))),
    row("v_pk_lshrrev_b16", Int2(|n, a| a >> (n & 15))),
    row("v_pk_ashrrev_i16", Int2(|n, a| (i(a) >> (n & 15)) as u16)),
];

/// What only gfx12 has.
pub(crate) static GFX12: &[Row] = &[
    row("v_pk_maximum_f16", F16x2(|a, b| propagate(a, b, true))),
    row("v_pk_minimum_f16", F16x2(|a, b| propagate(a, b, false))),
];

/// Both halves of operand `index` as each half of the operation sees them: `[low, high]`.
fn halves(cx: &mut Context<'_, '_>, inst: &Inst, index: usize, half: u32, float: bool) -> Result<[Wide; 2], Fault> {
    let arg = &inst.args[index + 1];
    if arg.neg || arg.abs || arg.sext {
        return unsupported(format!("source modifier in `{}`", inst.text));
    }
    let m = &inst.mods;
    let bit = |bits: u8| bits >> index & 1 == 1;
    let (low_from_high, high_from_high) = (bit(m.op_sel), bit(m.op_sel_hi));
    let is_constant = !matches!(arg.kind, Kind::V { .. } | Kind::A { .. } | Kind::S { .. });
    let whole = if is_constant {
        let c = constant(arg, if half == 16 && float { 16 } else { 32 }, float)?;
        // The constant fills the low half; what the high half holds differs between chips and types.
        if c != 0 && half == 32 && (low_from_high || (high_from_high && float)) {
            return unsupported(format!("high half of a constant in `{}`", inst.text));
        }
        Wide::splat(c, 0)
    } else {
        cx.wave.wide(arg, 2 * half, false)?
    };
    let mask = u64::MAX >> (64 - half);
    let take = |high: bool, negate: bool| {
        let mut w = whole.clone();
        let shift = if high { half } else { 0 };
        let sign = if negate { 1u64 << (half - 1) } else { 0 };
        for (v, u) in w.v.iter_mut().zip(&mut w.u) {
            *v = (*v >> shift & mask) ^ sign;
            *u = *u >> shift & mask;
        }
        w
    };
    let (neg_lo, neg_hi) = (bit(m.neg_lo), bit(m.neg_hi));
    if (neg_lo || neg_hi) && !float {
        return unsupported(format!("neg on integers in `{}`", inst.text));
    }
    Ok([take(low_from_high, neg_lo), take(high_from_high, neg_hi)])
}

pub(crate) fn exec(cx: &mut Context<'_, '_>, row: &'static Row, inst: &Inst) -> Result<(), Fault> {
    let (half, is_float) = match row.sem {
        Sem::F32x2(_) | Sem::F32x3(_) => (32, true),
        Sem::Mov => (32, false),
        Sem::F16x2(_) | Sem::F16x3(_) | Sem::Select16 { .. } => (16, true),
        Sem::Int2(_) | Sem::Int3(_) | Sem::Clamped(..) => (16, false),
    };
    let mode = cx.wave.mode;
    let keep = if half == 32 { mode.denorm32 } else { mode.denorm64 };
    if is_float && keep != 3 {
        return unsupported(format!("`{}` with denormals flushed", inst.text));
    }
    if inst.mods.clamp && !matches!(row.sem, Sem::F32x2(_) | Sem::F32x3(_) | Sem::Clamped(..)) {
        return unsupported(format!("clamp in `{}`", inst.text));
    }
    let mut src = Vec::with_capacity(3);
    for index in 0..row.sources() {
        src.push(halves(cx, inst, index, half, is_float)?);
    }
    let mut out = Wide::ZERO;
    let exec = cx.wave.exec();
    let mask = u64::MAX >> (64 - half);
    for l in lanes_of(exec) {
        for part in 0..2 {
            let at = |i: usize| src[i][part].v[l];
            let f = |i: usize| f32::from_bits(at(i) as u32);
            let h = |i: usize| half::f16::from_bits(at(i) as u16).to_f64();
            let bits32 = || src.iter().map(|s| s[part].v[l] as u32);
            let bits16 = || src.iter().map(|s| s[part].v[l] as u16);
            let f32_result = |r: f32| {
                let bits = bits32().fold((0, [0u32; 3]), |(n, mut a), b| {
                    a[n] = b;
                    (n + 1, a)
                });
                let r = float::result32(r, &bits.1[..bits.0]);
                u64::from(if inst.mods.clamp { float::clamp32(r, mode) } else { r })
            };
            let f16_result = |r: f64| {
                let bits = bits16().fold((0, [0u16; 3]), |(n, mut a), b| {
                    a[n] = b;
                    (n + 1, a)
                });
                u64::from(float::result16(float::round16(r), &bits.1[..bits.0]))
            };
            let v = match row.sem {
                Sem::F32x2(g) => f32_result(g(f(0), f(1))),
                Sem::F32x3(g) => f32_result(g(f(0), f(1), f(2))),
                // Operand 0 makes the low half by op_sel[0], operand 1 the high half by op_sel[1].
                Sem::Mov => src[part][0].v[l],
                Sem::Int2(g) => u64::from(g(at(0) as u16, at(1) as u16)),
                Sem::Clamped(wrap, saturate) => {
                    let g = if inst.mods.clamp { saturate } else { wrap };
                    u64::from(g(at(0) as u16, at(1) as u16))
                }
                Sem::Int3(g) => u64::from(g(at(0) as u16, at(1) as u16, at(2) as u16)),
                Sem::F16x2(g) => f16_result(g(h(0), h(1))),
                Sem::F16x3(g) => f16_result(g(h(0), h(1), h(2))),
                Sem::Select16 { max } => u64::from(float::select16(at(0) as u16, at(1) as u16, max, mode)),
            };
            let u = match row.sem {
                Sem::Mov => src[part][0].u[l],
                _ if src.iter().any(|s| s[part].u[l] != 0) => mask,
                _ => 0,
            };
            let shift = half * part as u32;
            out.v[l] |= (v & mask) << shift;
            out.u[l] |= (u & mask) << shift;
        }
    }
    cx.wave.set_wide(&inst.args[0], 2 * half, &out, exec)
}
