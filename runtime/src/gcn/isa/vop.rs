//! Vector ALU: VOP1, VOP2, VOP3 (DPP and SDWA forms are operand modifiers of these).

mod bits;
mod convert;
mod dot;
mod float16;
mod float32;
mod float64;
pub(crate) mod gfx12;
mod integer;
mod mix;
mod narrow;
mod special;

use crate::gcn::decode::{Arg, Inst, Kind, M0, Sel};
use crate::gcn::error::{Fault, Sink, unsupported};
use crate::gcn::isa::shadow::{self, Shadow};
use crate::gcn::isa::{Context, Op, dpp, float};
use crate::gcn::state::{LANES, Mode, Scalar, Wide, lanes_of};

pub(crate) use special::Special;

/// Type of an operand or result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ty {
    /// 32 bits without float meaning.
    B32,
    /// 64 bits without float meaning.
    B64,
    /// 16 bits (low half, or the half that op_sel names).
    B16,
    /// f32.
    F32,
    /// f64.
    F64,
    /// f16.
    F16,
    /// 32 bits that are only moved, yet may carry float sign modifiers.
    Moved,
}

impl Ty {
    fn register_bits(self) -> u32 {
        if matches!(self, Self::B64 | Self::F64) { 64 } else { 32 }
    }

    fn bits(self) -> u32 {
        match self {
            Self::B16 | Self::F16 => 16,
            Self::B32 | Self::F32 | Self::Moved => 32,
            Self::B64 | Self::F64 => 64,
        }
    }

    fn mask(self) -> u64 {
        u64::MAX >> (64 - self.bits())
    }

    fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::F32 | Self::F64)
    }
}

/// What a row computes for one lane.
#[derive(Clone, Copy, Debug)]
pub enum Sem {
    /// f32 of one operand. NaN and denormal rules are applied around all of these.
    F1(fn(f32) -> f32),
    /// f32 of two.
    F2(fn(f32, f32) -> f32),
    /// f32 of three.
    F3(fn(f32, f32, f32) -> f32),
    /// f64.
    D1(fn(f64) -> f64),
    /// f64.
    D2(fn(f64, f64) -> f64),
    /// f64.
    D3(fn(f64, f64, f64) -> f64),
    /// f16, computed in f64 and rounded.
    H1(fn(f64) -> f64),
    /// f16.
    H2(fn(f64, f64) -> f64),
    /// f16.
    H3(fn(f64, f64, f64) -> f64),
    /// Bits to bits, and how undefined bits pass.
    Bits(fn([u64; 3]) -> u64, Shadow),
    /// The truth table that the instruction carries, bit by bit.
    Truth,
    /// Likewise, with the mode.
    Moded(fn([u64; 3], Mode) -> u64),
    /// Not lane by lane, or with a second result.
    Special(Special),
}

/// One vector instruction.
#[derive(Debug)]
pub struct Row {
    pub(crate) name: &'static str,
    d: Ty,
    s: &'static [Ty],
    /// The destination is the last operand as well.
    accumulate: bool,
    sem: Sem,
}

const fn row(name: &'static str, d: Ty, s: &'static [Ty], sem: Sem) -> Row {
    Row { name, d, s, accumulate: false, sem }
}

const fn accumulate(name: &'static str, d: Ty, s: &'static [Ty], sem: Sem) -> Row {
    Row { name, d, s, accumulate: true, sem }
}

const fn special(name: &'static str, d: Ty, s: &'static [Ty], which: Special) -> Row {
    row(name, d, s, Sem::Special(which))
}

impl Row {
    /// Whether it may be one half of a dual instruction.
    pub(crate) fn is_pairable(&self) -> bool {
        match self.sem {
            Sem::Special(which) => which == Special::Cndmask,
            _ => true,
        }
    }

    /// Which one, if it is not lane by lane.
    pub(crate) fn special(&self) -> Option<Special> {
        match self.sem {
            Sem::Special(which) => Some(which),
            _ => None,
        }
    }

    /// Whether the destination is a source too.
    pub(crate) fn accumulates(&self) -> bool {
        self.accumulate
    }

    pub(crate) fn operands(&self) -> (usize, usize) {
        match self.sem {
            Sem::Special(s) => s.operands(),
            _ => {
                let n = 1 + self.s.len() - usize::from(self.accumulate);
                (n, n)
            }
        }
    }
}

/// All rows.
pub(crate) fn tables() -> impl Iterator<Item = &'static Row> {
    let floats = [convert::TABLE, float16::TABLE, float32::TABLE, float64::TABLE, mix::TABLE];
    let others = [bits::TABLE, dot::TABLE, integer::TABLE, narrow::TABLE, special::TABLE];
    floats.into_iter().chain(others).flatten()
}

/// Operands of one instruction, ready for lane-wise work, and the lanes it may write.
pub(crate) struct Operands {
    pub(crate) src: [Wide; 3],
    pub(crate) n: usize,
    pub(crate) write: u64,
}

/// Computes `f` in every lane that is written, and its undefined bits by `rule`.
fn bitwise(o: &Operands, mask: u64, rule: Shadow, f: impl Fn([u64; 3]) -> u64, out: &mut Wide) {
    let [a, b, c] = &o.src;
    let any = o.src.iter().any(Wide::any_undefined);
    for l in lanes_of(o.write) {
        let vals = [a.v[l], b.v[l], c.v[l]];
        out.v[l] = f(vals) & mask;
        if any {
            out.u[l] = shadow::eval(rule, &f, o.n, vals, [a.u[l], b.u[l], c.u[l]], mask);
        }
    }
}

/// Fetches source `index` with all modifiers except DPP.
fn source(cx: &mut Context<'_, '_>, inst: &Inst, arg: &Arg, ty: Ty, index: usize, w: &mut Wide) -> Result<(), Fault> {
    let is_register = matches!(arg.kind, Kind::V { .. } | Kind::A { .. } | Kind::S { .. } | Kind::Special(_));
    if is_register {
        cx.wave.read_wide(arg, ty.register_bits(), ty.is_float(), w)?;
    } else {
        // 16-bit constants are encoded as such, wide ones by their own type.
        w.fill(crate::gcn::state::constant(arg, ty.bits(), ty == Ty::F64)?, 0);
    }
    if let Some(sdwa) = inst.mods.sdwa {
        let sel = sdwa.src.get(index).copied().unwrap_or_default();
        dpp::select(w, sel, arg.sext);
    } else if arg.sext {
        return unsupported("sext() outside SDWA");
    }
    if ty.bits() == 16 && is_register {
        half(w, inst.mods.op_sel >> index & 1 == 1);
    }
    if arg.neg || arg.abs {
        if !ty.is_float() && ty != Ty::Moved {
            return unsupported(format!("neg or abs on an operand that is no float in `{}`", inst.text));
        }
        let sign = 1u64 << (ty.bits() - 1);
        for lane in 0..LANES {
            if arg.abs {
                w.v[lane] &= !sign;
                w.u[lane] &= !sign;
            }
            if arg.neg {
                w.v[lane] ^= sign;
            }
        }
    }
    flush(w, ty, input_flush(cx.wave.mode, ty));
    Ok(())
}

/// Takes one half of each register.
fn half(w: &mut Wide, high: bool) {
    let shift = if high { 16 } else { 0 };
    for lane in 0..LANES {
        w.v[lane] = w.v[lane] >> shift & 0xFFFF;
        w.u[lane] = w.u[lane] >> shift & 0xFFFF;
    }
}

fn input_flush(mode: Mode, ty: Ty) -> bool {
    match ty {
        Ty::F32 => mode.denorm32 & 1 == 0,
        Ty::F16 | Ty::F64 => mode.denorm64 & 1 == 0,
        _ => false,
    }
}

fn output_flush(mode: Mode, ty: Ty) -> bool {
    match ty {
        Ty::F32 => mode.denorm32 & 2 == 0,
        Ty::F16 | Ty::F64 => mode.denorm64 & 2 == 0,
        _ => false,
    }
}

fn flush(w: &mut Wide, ty: Ty, wanted: bool) {
    if !wanted {
        return;
    }
    for v in &mut w.v {
        *v = flush_bits(*v, ty);
    }
}

fn flush_bits(v: u64, ty: Ty) -> u64 {
    match ty {
        Ty::F32 => u64::from(float::flush32(v as u32)),
        Ty::F64 => float::flush64(v),
        Ty::F16 => u64::from(float::flush16(v as u16)),
        _ => v,
    }
}

/// Fetches operands `args` of the types `tys`.
pub(crate) fn fetch(cx: &mut Context<'_, '_>, inst: &Inst, args: &[Arg], tys: &[Ty]) -> Result<Operands, Fault> {
    let mut o = Operands { src: [Wide::ZERO, Wide::ZERO, Wide::ZERO], n: tys.len(), write: cx.wave.exec() };
    for (i, (arg, ty)) in args.iter().zip(tys).enumerate().take(3) {
        source(cx, inst, arg, *ty, i, &mut o.src[i])?;
    }
    if let Some(dpp) = inst.mods.dpp {
        let exec = cx.wave.exec();
        o.write = dpp::permute(dpp, &inst.mods, &mut o.src[0], exec, cx.wave.lanes);
    }
    Ok(o)
}

/// The instruction with the operands that M0 names moved up by its index.
fn indexed(cx: &mut Context<'_, '_>, row: &Row, inst: &Inst) -> Result<Inst, Fault> {
    // Sources 0 to 2, then the destination; only lane-wise rows have their operands in that order.
    if matches!(row.sem, Sem::Special(_)) || row.accumulate {
        return unsupported(format!("register index on `{}`", inst.text));
    }
    let m0 = cx.wave.scalar(M0, 1)?;
    let m0 = Scalar { v: m0.v & 0xF0FF, u: m0.u & 0xF0FF }.defined(|| "m0".into(), Sink::Control)?;
    let mut moved = inst.clone();
    for (i, arg) in moved.args.iter_mut().enumerate() {
        let bit = if i == 0 { 15 } else { 11 + i };
        if let Kind::V { first, .. } = &mut arg.kind
            && m0 >> bit & 1 == 1
        {
            *first += (m0 & 0xFF) as u16;
        }
    }
    Ok(moved)
}

pub(crate) fn exec(cx: &mut Context<'_, '_>, row: &'static Row, inst: &Inst) -> Result<(), Fault> {
    if cx.wave.indexed {
        let moved = indexed(cx, row, inst)?;
        let (mut out, write) = lanewise(cx, row, &moved)?;
        return write_back(cx, &moved, row.d, &mut out, write);
    }
    if let Sem::Special(which) = row.sem {
        return special::exec(cx, which, row, inst);
    }
    let (mut out, write) = lanewise(cx, row, inst)?;
    write_back(cx, inst, row.d, &mut out, write)
}

/// Executes both halves of a dual instruction.
pub(crate) fn exec_pair(cx: &mut Context<'_, '_>, first: &Inst, second: &Inst) -> Result<(), Fault> {
    let mut results = [None, None];
    for (result, half) in results.iter_mut().zip([first, second]) {
        let Op::Vop(row) = half.op else { return unsupported(format!("`{}`", half.text)) };
        let (out, write) = match row.sem {
            Sem::Special(Special::Cndmask) => special::select(cx, row, half)?,
            _ => lanewise(cx, row, half)?,
        };
        *result = Some((row, half, out, write));
    }
    for (row, half, mut out, write) in results.into_iter().flatten() {
        write_back(cx, half, row.d, &mut out, write)?;
    }
    Ok(())
}

/// Result of a lane-wise row, and the lanes it goes to.
fn lanewise(cx: &mut Context<'_, '_>, row: &'static Row, inst: &Inst) -> Result<(Wide, u64), Fault> {
    let mut o = fetch(cx, inst, &inst.args[1..], row.s)?;
    if row.accumulate {
        let last = row.s.len() - 1;
        let plain = Arg { neg: false, abs: false, sext: false, ..inst.args[0].clone() };
        o.src[last] = cx.wave.wide(&plain, row.s[last].register_bits(), false)?;
        if row.s[last].bits() == 16 {
            half(&mut o.src[last], inst.mods.op_sel_result);
        }
        flush(&mut o.src[last], row.s[last], input_flush(cx.wave.mode, row.s[last]));
    }
    let mode = cx.wave.mode;
    let mut out = Wide::ZERO;
    compute(row, inst, &o, mode, &mut out)?;
    if row.d.is_float() {
        output(&mut out, row.d, inst, mode, o.write)?;
    } else if inst.mods.clamp {
        saturate(row, &o, &mut out)?;
    } else if inst.mods.omod != 1.0 {
        return unsupported("output factor on an integer result");
    }
    Ok((out, o.write))
}

/// Output modifiers and denormal flushing of a float result.
fn output(out: &mut Wide, ty: Ty, inst: &Inst, mode: Mode, lanes: u64) -> Result<(), Fault> {
    let m = &inst.mods;
    if m.omod != 1.0 {
        let kept = if ty == Ty::F32 { mode.denorm32 } else { mode.denorm64 } & 2 != 0;
        if ty != Ty::F32 || kept || mode.ieee {
            // The hardware ignores it then, so that no compiler means it.
            return unsupported("output factor with denormals or IEEE mode on");
        }
        for lane in lanes_of(lanes) {
            let x = f32::from_bits(out.v[lane] as u32) * m.omod;
            out.v[lane] = u64::from(if x == 0.0 { 0 } else { x.to_bits() });
        }
    }
    if m.clamp {
        if ty != Ty::F32 {
            return unsupported("clamp of f16 or f64");
        }
        for lane in lanes_of(lanes) {
            out.v[lane] = u64::from(float::clamp32(out.v[lane] as u32, mode));
        }
    }
    flush(out, ty, output_flush(mode, ty));
    Ok(())
}

/// `clamp` of an integer sum, difference or product: saturation.
fn saturate(row: &Row, o: &Operands, out: &mut Wide) -> Result<(), Fault> {
    let Some(f) = integer::exact(row.name) else {
        return unsupported(format!("clamp on {}", row.name));
    };
    for lane in lanes_of(o.write) {
        let (exact, low, high) = f([o.src[0].v[lane], o.src[1].v[lane], o.src[2].v[lane]]);
        out.v[lane] = exact.clamp(low, high) as u64 & row.d.mask();
        if out.u[lane] != 0 {
            out.u[lane] = row.d.mask();
        }
    }
    Ok(())
}

/// Runs a lane-wise row.
fn compute(row: &Row, inst: &Inst, o: &Operands, mode: Mode, out: &mut Wide) -> Result<(), Fault> {
    let [a, b, c] = &o.src;
    let lanes = o.write;
    let f32s = |x: &Wide, l: usize| f32::from_bits(x.v[l] as u32);
    let f64s = |x: &Wide, l: usize| f64::from_bits(x.v[l]);
    let f16s = |x: &Wide, l: usize| half::f16::from_bits(x.v[l] as u16).to_f64();
    let mut strict = true;
    match row.sem {
        Sem::F1(f) => {
            for l in lanes_of(lanes) {
                out.v[l] = u64::from(float::result32(f(f32s(a, l)), &[a.v[l] as u32]));
            }
        }
        Sem::F2(f) => {
            for l in lanes_of(lanes) {
                let r = f(f32s(a, l), f32s(b, l));
                out.v[l] = u64::from(float::result32(r, &[a.v[l] as u32, b.v[l] as u32]));
            }
        }
        Sem::F3(f) => {
            for l in lanes_of(lanes) {
                let r = f(f32s(a, l), f32s(b, l), f32s(c, l));
                out.v[l] = u64::from(float::result32(r, &[a.v[l] as u32, b.v[l] as u32, c.v[l] as u32]));
            }
        }
        Sem::D1(f) => {
            for l in lanes_of(lanes) {
                out.v[l] = float::result64(f(f64s(a, l)), &[a.v[l]]);
            }
        }
        Sem::D2(f) => {
            for l in lanes_of(lanes) {
                out.v[l] = float::result64(f(f64s(a, l), f64s(b, l)), &[a.v[l], b.v[l]]);
            }
        }
        Sem::D3(f) => {
            for l in lanes_of(lanes) {
                out.v[l] = float::result64(f(f64s(a, l), f64s(b, l), f64s(c, l)), &[a.v[l], b.v[l], c.v[l]]);
            }
        }
        Sem::H1(f) => {
            for l in lanes_of(lanes) {
                let r = float::round16(f(f16s(a, l)));
                out.v[l] = u64::from(float::result16(r, &[a.v[l] as u16]));
            }
        }
        Sem::H2(f) => {
            for l in lanes_of(lanes) {
                let r = float::round16(f(f16s(a, l), f16s(b, l)));
                out.v[l] = u64::from(float::result16(r, &[a.v[l] as u16, b.v[l] as u16]));
            }
        }
        Sem::H3(f) => {
            for l in lanes_of(lanes) {
                let r = float::round16(f(f16s(a, l), f16s(b, l), f16s(c, l)));
                out.v[l] = u64::from(float::result16(r, &[a.v[l] as u16, b.v[l] as u16, c.v[l] as u16]));
            }
        }
        Sem::Moded(f) => {
            for l in lanes_of(lanes) {
                out.v[l] = f([a.v[l], b.v[l], c.v[l]], mode) & row.d.mask();
            }
        }
        Sem::Bits(f, rule) => {
            strict = false;
            bitwise(o, row.d.mask(), rule, f, out);
        }
        Sem::Truth => {
            strict = false;
            let table = inst.mods.bitop3;
            bitwise(o, row.d.mask(), Shadow::Bitwise, |v| bits::bitop3(table, v), out);
        }
        Sem::Special(_) => return unsupported("special instruction without its routine"),
    }
    if strict && o.src.iter().any(Wide::any_undefined) {
        for l in lanes_of(lanes) {
            if a.u[l] | b.u[l] | c.u[l] != 0 {
                out.u[l] = row.d.mask();
            }
        }
    }
    Ok(())
}

/// Writes a result, merging where only a part of the register is written.
pub(crate) fn write_back(
    cx: &mut Context<'_, '_>,
    inst: &Inst,
    ty: Ty,
    out: &mut Wide,
    write: u64,
) -> Result<(), Fault> {
    let dst = Arg { neg: false, abs: false, sext: false, ..inst.args[0].clone() };
    let narrow = ty.bits() == 16;
    let high = narrow && inst.mods.op_sel_result;
    if let Some(sdwa) = inst.mods.sdwa {
        if sdwa.dst != Sel::Dword {
            let old = cx.wave.wide(&dst, 32, false)?;
            dpp::merge(out, &old, sdwa);
        }
    } else if high || (narrow && cx.wave.chip.keeps_other_half()) {
        let old = cx.wave.wide(&dst, 32, false)?;
        let (shift, kept) = if high { (16, 0xFFFF) } else { (0, 0xFFFF_0000) };
        for lane in 0..LANES {
            out.v[lane] = (out.v[lane] & 0xFFFF) << shift | old.v[lane] & kept;
            out.u[lane] = (out.u[lane] & 0xFFFF) << shift | old.u[lane] & kept;
        }
    }
    cx.wave.set_wide(&dst, ty.register_bits(), out, write)
}
