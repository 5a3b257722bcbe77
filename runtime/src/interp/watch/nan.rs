//! Finds arithmetic that makes a NaN of operands that are none.

use half::{bf16, f16};
use lathe_dsl::ir::Scalar;

use super::super::error::Unusual;
use super::super::findings::{Kind, Order};
use super::super::matrix::Operands;
use super::super::program::{Instr, Pc, Reg};
use super::super::rows::Regs;
use super::super::wave::Context;
use super::mark::Mark;
use super::report::NanMade;

fn is_nan(scalar: Scalar, bits: u64) -> bool {
    match scalar {
        Scalar::F16 => f16::from_bits(bits as u16).is_nan(),
        Scalar::Bf16 => bf16::from_bits(bits as u16).is_nan(),
        Scalar::F32 => f32::from_bits(bits as u32).is_nan(),
        Scalar::F64 => f64::from_bits(bits).is_nan(),
        _ => false,
    }
}

/// Looks at the results of an instruction of wave `wave` that has just been executed.
pub(in super::super) fn check<const W: usize>(
    cx: &mut Context<'_>,
    regs: &Regs<W>,
    mask: u64,
    (wave, pc): (u32, Pc),
    instr: &Instr<W>,
) {
    let Mark::Float(scalar) = cx.program.marks[pc as usize] else { return };
    let report = |cx: &mut Context<'_>, lane: u32| {
        let order = Order::of(cx.block_number, wave * cx.program.wave() + lane);
        let site = cx.site(pc, wave, lane);
        cx.findings.add((cx.party, pc), Kind::Nan, order, site, Unusual::Nan(NanMade { scalar }));
    };
    if let Some((operands, product)) = Operands::of(instr) {
        let made = cx.program.products[product as usize].made_nans(regs, &operands);
        (0..W as u32).filter(|lane| made >> lane & 1 == 1).for_each(|lane| report(cx, lane));
        return;
    }
    let (dst, operands, n): (Reg, &[Reg], u32) = match instr {
        Instr::Map1 { dst, a, n, .. } => (*dst, &[*a], *n),
        Instr::Map2 { dst, a, b, n, .. } => (*dst, &[*a, *b], *n),
        Instr::Map3 { dst, a, b, c, n, .. } => (*dst, &[*a, *b, *c], *n),
        _ => return,
    };
    let is_nan = |row: Reg, lane: usize| {
        let row = row as usize;
        is_nan(scalar, if scalar == Scalar::F64 { regs.r64[row][lane] } else { regs.r32[row][lane].into() })
    };
    let mut lanes = mask;
    while lanes != 0 {
        let lane = lanes.trailing_zeros();
        lanes &= lanes - 1;
        let made = |e: u32| is_nan(dst + e, lane as usize) && !operands.iter().any(|a| is_nan(a + e, lane as usize));
        if (0..n).any(made) {
            report(cx, lane);
        }
    }
}
