//! Mixed-precision fused multiply-add: f16 and f32 operands, computed in f32.
//!
//! `op_sel_hi` says for each operand whether it is an f16 (else an f32), `op_sel` which half of its register that is.

use super::{Row, Special, Ty, fetch, output, special, write_back};
use crate::gcn::decode::Inst;
use crate::gcn::error::Fault;
use crate::gcn::isa::{Context, float};
use crate::gcn::state::{Wide, lanes_of};

/// Where the result goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mix {
    /// As f32.
    F32,
    /// Rounded again, to an f16 in the low half; the high one is kept.
    Low,
    /// To the high half.
    High,
}

pub(crate) static TABLE: &[Row] = &[
    special("v_fma_mix_f32", Ty::F32, &[Ty::F32; 3], Special::Mix(Mix::F32)),
    special("v_fma_mixlo_f16", Ty::F16, &[Ty::F32; 3], Special::Mix(Mix::Low)),
    special("v_fma_mixhi_f16", Ty::F16, &[Ty::F32; 3], Special::Mix(Mix::High)),
];

pub(super) fn exec(cx: &mut Context<'_, '_>, to: Mix, inst: &Inst) -> Result<(), Fault> {
    // Unlike in packed instructions, the printer leaves `op_sel_hi` out where it is 0.
    let halves = if inst.mods.op_sel_hi == 0xFF { 0 } else { inst.mods.op_sel_hi };
    let tys = [0, 1, 2].map(|i| if halves >> i & 1 == 1 { Ty::F16 } else { Ty::F32 });
    let o = fetch(cx, inst, &inst.args[1..4], &tys)?;
    let mut out = Wide::ZERO;
    for l in lanes_of(o.write) {
        let operand = |i: usize| {
            let v = o.src[i].v[l];
            if tys[i] == Ty::F16 { float::widen16(v as u16) } else { v as u32 }
        };
        let bits = [operand(0), operand(1), operand(2)];
        let [a, b, c] = bits.map(f32::from_bits);
        let r = float::result32(libm::fmaf(a, b, c), &bits);
        out.v[l] = match to {
            Mix::F32 => u64::from(r),
            Mix::Low | Mix::High => u64::from(half::f16::from_f32(f32::from_bits(r)).to_bits()),
        };
        if o.src.iter().any(|s| s.u[l] != 0) {
            out.u[l] = if to == Mix::F32 { 0xFFFF_FFFF } else { 0xFFFF };
        }
    }
    if to == Mix::F32 {
        output(&mut out, Ty::F32, inst, cx.wave.mode, o.write)?;
        return write_back(cx, inst, Ty::F32, &mut out, o.write);
    }
    output(&mut out, Ty::F16, inst, cx.wave.mode, o.write)?;
    let old = cx.wave.wide(&inst.args[0], 32, false)?;
    for l in lanes_of(o.write) {
        let place = |new: u64, old: u64| match to {
            Mix::High => new << 16 | old & 0xFFFF,
            _ => old & 0xFFFF_0000 | new,
        };
        (out.v[l], out.u[l]) = (place(out.v[l], old.v[l]), place(out.u[l], old.u[l]));
    }
    cx.wave.set_wide(&inst.args[0], 32, &out, o.write)
}
