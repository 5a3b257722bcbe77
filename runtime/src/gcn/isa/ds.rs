//! LDS instructions and lane exchange through the LDS unit.

mod transpose;

use crate::gcn::decode::{Arg, Inst};
use crate::gcn::error::{ErrorKind, Fault, Sink};
use crate::gcn::isa::atomic::Atomic;
use crate::gcn::isa::transfer::{self, Part};
use crate::gcn::isa::{Context, Op};
use crate::gcn::lds::By;
use crate::gcn::state::{LANES, Lanes, Via, lanes_of, vector_range};
use crate::gcn::trace::{Class, Event, LdsAccess, OpId};

/// What a row does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// `dst, addr`
    Read { bytes: u32, signed: bool, part: Part },
    /// `addr, data`
    Write { bytes: u32, part: Part },
    /// `dst, addr`: two elements at their own offsets, which count elements times `scale`.
    Read2 { bytes: u32, scale: u32 },
    /// `addr, data, data`
    Write2 { bytes: u32, scale: u32 },
    /// `addr, data[, data]`, or with `dst` first.
    Atomic { bytes: u32, op: Atomic, returns: bool },
    /// `addr, data, compare`, or with `dst` first.
    CompareStore { bytes: u32, returns: bool },
    /// `dst, addr, data`: read from the lane that the address names, which gives 0 if it is inactive, or what it has.
    Bpermute { fetch_inactive: bool },
    /// `dst, addr, data`: write to it.
    Permute,
    /// `dst, data`: fixed pattern.
    Swizzle,
    /// `dst, addr`: elements of `bits` bits dealt out among lanes.
    ReadTransposed { bytes: u32, bits: u32 },
}

/// One LDS instruction.
#[derive(Debug)]
pub struct Row {
    pub(crate) name: &'static str,
    kind: Kind,
}

/// Whether `inst` of `row` stores, if it finds what it expects, where `load` loaded as many bytes from.
pub(crate) fn is_exchange_of(inst: &Inst, load: &Inst) -> bool {
    let Op::Ds(row) = inst.op else { return false };
    let exchanged = match row.kind {
        Kind::Atomic { bytes, op: Atomic::CmpSwap, returns: true } | Kind::CompareStore { bytes, returns: true } => {
            bytes
        }
        _ => return false,
    };
    let Op::Ds(Row { kind: Kind::Read { bytes, part: Part::Whole, .. }, .. }) = load.op else { return false };
    *bytes == exchanged && load.args[1] == inst.args[1] && load.mods.offset == inst.mods.offset
}

impl Row {
    /// Whether it only loads.
    pub(crate) fn is_load(&self) -> bool {
        matches!(self.kind, Kind::Read { .. })
    }

    /// Operands in front that are results.
    pub(crate) fn results(&self) -> usize {
        match self.kind {
            Kind::Write { .. } | Kind::Write2 { .. } => 0,
            Kind::Atomic { returns, .. } | Kind::CompareStore { returns, .. } => usize::from(returns),
            _ => 1,
        }
    }

    pub(crate) fn operands(&self) -> (usize, usize) {
        let n = match self.kind {
            Kind::Read { .. }
            | Kind::Write { .. }
            | Kind::Read2 { .. }
            | Kind::Swizzle
            | Kind::ReadTransposed { .. } => 2,
            Kind::Write2 { .. } | Kind::Bpermute { .. } | Kind::Permute => 3,
            Kind::CompareStore { returns, .. } => 3 + usize::from(returns),
            Kind::Atomic { op, returns, .. } => 2 + usize::from(returns) + usize::from(op == Atomic::CmpSwap),
        };
        (n, n)
    }
}

const fn read(name: &'static str, bytes: u32, signed: bool, part: Part) -> Row {
    Row { name, kind: Kind::Read { bytes, signed, part } }
}

const fn write(name: &'static str, bytes: u32, part: Part) -> Row {
    Row { name, kind: Kind::Write { bytes, part } }
}

const fn atomic(name: &'static str, bytes: u32, op: Atomic, returns: bool) -> Row {
    Row { name, kind: Kind::Atomic { bytes, op, returns } }
}

const fn row(name: &'static str, kind: Kind) -> Row {
    Row { name, kind }
}

use Part::{High, Low, Whole};

pub(crate) static TABLE: &[Row] = &[
    read("ds_read_u8", 1, false, Whole),
    read("ds_read_i8", 1, true, Whole),
    read("ds_read_u16", 2, false, Whole),
    read("ds_read_i16", 2, true, Whole),
    read("ds_read_b32", 4, false, Whole),
    read("ds_read_b64", 8, false, Whole),
    read("ds_read_b96", 12, false, Whole),
    read("ds_read_b128", 16, false, Whole),
    read("ds_read_u8_d16", 1, false, Low),
    read("ds_read_u8_d16_hi", 1, false, High),
    read("ds_read_i8_d16", 1, true, Low),
    read("ds_read_i8_d16_hi", 1, true, High),
    read("ds_read_u16_d16", 2, false, Low),
    read("ds_read_u16_d16_hi", 2, false, High),
    row("ds_read2_b32", Kind::Read2 { bytes: 4, scale: 1 }),
    row("ds_read2_b64", Kind::Read2 { bytes: 8, scale: 1 }),
    row("ds_read2st64_b32", Kind::Read2 { bytes: 4, scale: 64 }),
    row("ds_read2st64_b64", Kind::Read2 { bytes: 8, scale: 64 }),
    write("ds_write_b8", 1, Whole),
    write("ds_write_b8_d16_hi", 1, High),
    write("ds_write_b16", 2, Whole),
    write("ds_write_b16_d16_hi", 2, High),
    write("ds_write_b32", 4, Whole),
    write("ds_write_b64", 8, Whole),
    write("ds_write_b96", 12, Whole),
    write("ds_write_b128", 16, Whole),
    row("ds_write2_b32", Kind::Write2 { bytes: 4, scale: 1 }),
    row("ds_write2_b64", Kind::Write2 { bytes: 8, scale: 1 }),
    row("ds_write2st64_b32", Kind::Write2 { bytes: 4, scale: 64 }),
    row("ds_write2st64_b64", Kind::Write2 { bytes: 8, scale: 64 }),
    atomic("ds_add_u32", 4, Atomic::Add, false),
    atomic("ds_sub_u32", 4, Atomic::Sub, false),
    atomic("ds_min_i32", 4, Atomic::Smin, false),
    atomic("ds_min_u32", 4, Atomic::Umin, false),
    atomic("ds_max_i32", 4, Atomic::Smax, false),
    atomic("ds_max_u32", 4, Atomic::Umax, false),
    atomic("ds_and_b32", 4, Atomic::And, false),
    atomic("ds_or_b32", 4, Atomic::Or, false),
    atomic("ds_xor_b32", 4, Atomic::Xor, false),
    atomic("ds_inc_u32", 4, Atomic::Inc, false),
    atomic("ds_dec_u32", 4, Atomic::Dec, false),
    atomic("ds_add_f32", 4, Atomic::AddFloat, false),
    atomic("ds_add_u64", 8, Atomic::Add, false),
    atomic("ds_sub_u64", 8, Atomic::Sub, false),
    atomic("ds_min_i64", 8, Atomic::Smin, false),
    atomic("ds_min_u64", 8, Atomic::Umin, false),
    atomic("ds_max_i64", 8, Atomic::Smax, false),
    atomic("ds_max_u64", 8, Atomic::Umax, false),
    atomic("ds_and_b64", 8, Atomic::And, false),
    atomic("ds_or_b64", 8, Atomic::Or, false),
    atomic("ds_xor_b64", 8, Atomic::Xor, false),
    atomic("ds_inc_u64", 8, Atomic::Inc, false),
    atomic("ds_dec_u64", 8, Atomic::Dec, false),
    atomic("ds_min_f32", 4, Atomic::MinFloat, false),
    atomic("ds_max_f32", 4, Atomic::MaxFloat, false),
    atomic("ds_add_f64", 8, Atomic::AddFloat, false),
    atomic("ds_min_f64", 8, Atomic::MinFloat, false),
    atomic("ds_max_f64", 8, Atomic::MaxFloat, false),
    atomic("ds_pk_add_f16", 4, Atomic::AddF16Pair, false),
    atomic("ds_pk_add_bf16", 4, Atomic::AddBf16Pair, false),
    atomic("ds_cmpst_b32", 4, Atomic::CmpSwap, false),
    atomic("ds_cmpst_b64", 8, Atomic::CmpSwap, false),
    atomic("ds_add_rtn_u32", 4, Atomic::Add, true),
    atomic("ds_sub_rtn_u32", 4, Atomic::Sub, true),
    atomic("ds_min_rtn_i32", 4, Atomic::Smin, true),
    atomic("ds_min_rtn_u32", 4, Atomic::Umin, true),
    atomic("ds_max_rtn_i32", 4, Atomic::Smax, true),
    atomic("ds_max_rtn_u32", 4, Atomic::Umax, true),
    atomic("ds_and_rtn_b32", 4, Atomic::And, true),
    atomic("ds_or_rtn_b32", 4, Atomic::Or, true),
    atomic("ds_xor_rtn_b32", 4, Atomic::Xor, true),
    atomic("ds_inc_rtn_u32", 4, Atomic::Inc, true),
    atomic("ds_dec_rtn_u32", 4, Atomic::Dec, true),
    atomic("ds_wrxchg_rtn_b32", 4, Atomic::Swap, true),
    atomic("ds_cmpst_rtn_b32", 4, Atomic::CmpSwap, true),
    atomic("ds_add_rtn_f32", 4, Atomic::AddFloat, true),
    atomic("ds_add_rtn_u64", 8, Atomic::Add, true),
    atomic("ds_sub_rtn_u64", 8, Atomic::Sub, true),
    atomic("ds_min_rtn_i64", 8, Atomic::Smin, true),
    atomic("ds_min_rtn_u64", 8, Atomic::Umin, true),
    atomic("ds_max_rtn_i64", 8, Atomic::Smax, true),
    atomic("ds_max_rtn_u64", 8, Atomic::Umax, true),
    atomic("ds_and_rtn_b64", 8, Atomic::And, true),
    atomic("ds_or_rtn_b64", 8, Atomic::Or, true),
    atomic("ds_xor_rtn_b64", 8, Atomic::Xor, true),
    atomic("ds_inc_rtn_u64", 8, Atomic::Inc, true),
    atomic("ds_dec_rtn_u64", 8, Atomic::Dec, true),
    atomic("ds_min_rtn_f32", 4, Atomic::MinFloat, true),
    atomic("ds_max_rtn_f32", 4, Atomic::MaxFloat, true),
    atomic("ds_add_rtn_f64", 8, Atomic::AddFloat, true),
    atomic("ds_min_rtn_f64", 8, Atomic::MinFloat, true),
    atomic("ds_max_rtn_f64", 8, Atomic::MaxFloat, true),
    atomic("ds_pk_add_rtn_f16", 4, Atomic::AddF16Pair, true),
    atomic("ds_pk_add_rtn_bf16", 4, Atomic::AddBf16Pair, true),
    atomic("ds_wrxchg_rtn_b64", 8, Atomic::Swap, true),
    atomic("ds_cmpst_rtn_b64", 8, Atomic::CmpSwap, true),
    row("ds_bpermute_b32", Kind::Bpermute { fetch_inactive: false }),
    row("ds_permute_b32", Kind::Permute),
    row("ds_swizzle_b32", Kind::Swizzle),
    row("ds_read_b64_tr_b16", Kind::ReadTransposed { bytes: 8, bits: 16 }),
    row("ds_read_b64_tr_b8", Kind::ReadTransposed { bytes: 8, bits: 8 }),
    row("ds_read_b64_tr_b4", Kind::ReadTransposed { bytes: 8, bits: 4 }),
    row("ds_read_b96_tr_b6", Kind::ReadTransposed { bytes: 12, bits: 6 }),
];

/// What only gfx12 has.
pub(crate) static GFX12: &[Row] = &[
    atomic("ds_min_num_f32", 4, Atomic::MinNum, false),
    atomic("ds_max_num_f32", 4, Atomic::MaxNum, false),
    atomic("ds_min_num_rtn_f32", 4, Atomic::MinNum, true),
    atomic("ds_max_num_rtn_f32", 4, Atomic::MaxNum, true),
    row("ds_cmpstore_b32", Kind::CompareStore { bytes: 4, returns: false }),
    row("ds_cmpstore_b64", Kind::CompareStore { bytes: 8, returns: false }),
    row("ds_cmpstore_rtn_b32", Kind::CompareStore { bytes: 4, returns: true }),
    row("ds_cmpstore_rtn_b64", Kind::CompareStore { bytes: 8, returns: true }),
    row("ds_bpermute_fi_b32", Kind::Bpermute { fetch_inactive: true }),
];

/// One element access of one lane: address and number of the element.
type Ranges = Vec<(u32, u32)>;

struct Issue {
    by: By,
    via: Via,
    op: OpId,
}

fn issue(cx: &mut Context<'_, '_>) -> Issue {
    let seq = cx.wave.outstanding.issue_lds();
    let pc = cx.wave.current_pc;
    let op = cx.wave.trace.as_mut().map_or(OpId::default(), |t| t.issue(pc, Class::Lds));
    Issue { by: By { wave: cx.wave.index, seq, vm: false }, via: Via::Lds(seq), op }
}

fn note(cx: &mut Context<'_, '_>, op: OpId, access: LdsAccess, ranges: Ranges) {
    if let Some(touched) = &mut cx.wave.touched {
        touched.lds.extend_from_slice(&ranges);
    }
    if let Some(trace) = &mut cx.wave.trace {
        trace.events.push(Event::Lds { op, access, ranges });
    }
}

/// Addresses of the active lanes, all defined.
fn addresses(cx: &mut Context<'_, '_>, arg: &Arg) -> Result<[u64; LANES], Fault> {
    let w = cx.wave.wide(arg, 32, false)?;
    for lane in lanes_of(cx.wave.exec()) {
        if w.u[lane] != 0 {
            let kind = ErrorKind::Undefined { what: "the LDS address".into(), bits: w.u[lane], sink: Sink::Address };
            return Err(kind.lane(lane));
        }
    }
    Ok(w.v)
}

fn registers(cx: &mut Context<'_, '_>, arg: &Arg, count: u32) -> Result<Vec<Lanes>, Fault> {
    let (accumulator, first, have) = vector_range(arg)?;
    if u32::from(have) != count {
        return Err(ErrorKind::Decode(format!("{have} data registers, {count} expected")).into());
    }
    (0..have).map(|i| cx.wave.vector(accumulator, first + i).cloned()).collect()
}

pub(crate) fn exec(cx: &mut Context<'_, '_>, row: &'static Row, inst: &Inst) -> Result<(), Fault> {
    transfer::no_modifiers(inst)?;
    let args = &inst.args;
    let m = &inst.mods;
    let offset = m.offset as u64;
    match row.kind {
        Kind::Read { bytes, signed, part } => read_elements(cx, inst, bytes, &[offset], signed, part),
        Kind::Read2 { bytes, scale } => {
            let at = m.offsets.map(|o| u64::from(o * bytes * scale));
            read_elements(cx, inst, bytes, &at, false, Part::Whole)
        }
        Kind::ReadTransposed { bytes, bits } => transpose::read(cx, inst, bytes, bits),
        Kind::Write { bytes, part } => write_elements(cx, inst, bytes, &[offset], part),
        Kind::Write2 { bytes, scale } => {
            let at = m.offsets.map(|o| u64::from(o * bytes * scale));
            write_elements(cx, inst, bytes, &at, Part::Whole)
        }
        Kind::Atomic { bytes, op, returns } => {
            let words = bytes / 4;
            let first = usize::from(returns);
            // gfx9 has the compare value first, unlike in memory.
            let (data, compare) = if op == Atomic::CmpSwap {
                (registers(cx, &args[first + 2], words)?, registers(cx, &args[first + 1], words)?)
            } else {
                (registers(cx, &args[first + 1], words)?, Vec::new())
            };
            atomic_elements(cx, inst, bytes, op, returns, &data, &compare)
        }
        Kind::CompareStore { bytes, returns } => {
            let first = usize::from(returns);
            let data = registers(cx, &args[first + 1], bytes / 4)?;
            let compare = registers(cx, &args[first + 2], bytes / 4)?;
            atomic_elements(cx, inst, bytes, Atomic::CmpSwap, returns, &data, &compare)
        }
        Kind::Bpermute { .. } | Kind::Permute => {
            let address = addresses(cx, &args[1])?;
            let data = registers(cx, &args[2], 1)?;
            let issue = issue(cx);
            let lanes = cx.wave.lanes;
            let exec = cx.wave.exec();
            let mut out = Lanes::ZERO;
            for lane in lanes_of(exec) {
                let other = ((address[lane] + offset) / 4) as usize % lanes;
                let (to, from) = if row.kind == Kind::Permute { (other, lane) } else { (lane, other) };
                // Of several writers the highest lane wins.
                if exec >> from & 1 == 1 || row.kind == (Kind::Bpermute { fetch_inactive: true }) {
                    (out.v[to], out.u[to]) = (data[0].v[from], data[0].u[from]);
                }
            }
            deliver(cx, &args[0], &[out], &issue, Part::Whole)
        }
        Kind::Swizzle => {
            let data = registers(cx, &args[1], 1)?;
            let pattern = m.swizzle.unwrap_or(m.offset as u32);
            let issue = issue(cx);
            let exec = cx.wave.exec();
            let mut out = Lanes::ZERO;
            for lane in lanes_of(exec) {
                let from = swizzle_source(pattern, lane)?;
                if exec >> from & 1 == 1 {
                    (out.v[lane], out.u[lane]) = (data[0].v[from], data[0].u[from]);
                }
            }
            deliver(cx, &args[0], &[out], &issue, Part::Whole)
        }
    }
}

/// Read-modify-write by every active lane, in order.
fn atomic_elements(
    cx: &mut Context<'_, '_>,
    inst: &Inst,
    bytes: u32,
    op: Atomic,
    returns: bool,
    data: &[Lanes],
    compare: &[Lanes],
) -> Result<(), Fault> {
    let address = addresses(cx, &inst.args[usize::from(returns)])?;
    let offset = inst.mods.offset as u64;
    let words = bytes / 4;
    let issue = issue(cx);
    let mut old = vec![Lanes::ZERO; words as usize];
    let mut ranges = Vec::new();
    for lane in lanes_of(cx.wave.exec()) {
        let join = |r: &[Lanes]| {
            r.iter().enumerate().fold((0u64, 0u64), |(v, u), (w, r)| {
                (v | u64::from(r.v[lane]) << (32 * w), u | u64::from(r.u[lane]) << (32 * w))
            })
        };
        let (d, c) = (join(data), join(compare));
        let at = lds_address(address[lane], offset);
        let own = cx.wave.outstanding;
        let update = |v: u64, u: u64| {
            // An exchange leaves nothing of what was there.
            let undefined = d.1 | c.1 | if op == Atomic::Swap { 0 } else { u } != 0;
            (op.apply(v, d.0, c.0, bytes), if undefined { u64::MAX } else { 0 })
        };
        let (v, u) = cx.lds.update(at, bytes, issue.by, &own, update).map_err(|e| e.lane(lane))?;
        for (w, r) in old.iter_mut().enumerate() {
            r.v[lane] = (v >> (32 * w)) as u32;
            r.u[lane] = (u >> (32 * w)) as u32;
        }
        ranges.push((at as u32, at as u32 + bytes));
    }
    note(cx, issue.op, LdsAccess::Atomic, ranges);
    if returns { deliver(cx, &inst.args[0], &old, &issue, Part::Whole) } else { Ok(()) }
}

/// Byte address in LDS: the sum wraps at 32 bits, which LLVM relies on when it moves a constant into the instruction.
fn lds_address(address: u64, offset: u64) -> u64 {
    (address + offset) & 0xFFFF_FFFF
}

/// Lane that `lane` reads under an offset pattern.
fn swizzle_source(pattern: u32, lane: usize) -> Result<usize, Fault> {
    match pattern >> 12 {
        // Quad permutation.
        8 => Ok((lane & !3) + (pattern >> (2 * (lane & 3)) & 3) as usize),
        // Rotation within 32 lanes; lane bits of the mask stay.
        12 | 13 => {
            let (fixed, by) = (lane as u32 & pattern & 31, pattern >> 5 & 31);
            let turned = if pattern >> 10 & 1 == 0 { lane as u32 + by } else { lane as u32 + 32 - by };
            Ok((lane & 32) + (fixed | turned & 31 & !pattern) as usize)
        }
        // Within 32 lanes: and, or, xor masks.
        0..=7 => {
            let (and, or, xor) = (pattern & 31, pattern >> 5 & 31, pattern >> 10 & 31);
            let from = ((lane as u32 & 31 & and) | or) ^ xor;
            Ok((lane & 32) + from as usize)
        }
        _ => Err(ErrorKind::Unsupported(format!("swizzle pattern {pattern:#x}")).into()),
    }
}

fn read_elements(
    cx: &mut Context<'_, '_>,
    inst: &Inst,
    bytes: u32,
    offsets: &[u64],
    signed: bool,
    part: Part,
) -> Result<(), Fault> {
    let address = addresses(cx, &inst.args[1])?;
    let issue = issue(cx);
    let words = bytes.div_ceil(4) as usize;
    // A guess that an atomic verifies collides with stores, not with atomics.
    let access = if inst.begins_exchange { LdsAccess::Atomic } else { LdsAccess::Read };
    let mut out = vec![Lanes::ZERO; words * offsets.len()];
    let mut ranges = Vec::new();
    for (element, offset) in offsets.iter().enumerate() {
        for lane in lanes_of(cx.wave.exec()) {
            let at = lds_address(address[lane], *offset);
            let own = cx.wave.outstanding;
            let (v, u) = cx.lds.read(at, bytes, access, issue.by, &own).map_err(|e| e.lane(lane))?;
            let size = bytes.min(4) as usize;
            let unused = 32 - 8 * size as u32;
            let word = |b: &[u8; 16], w: usize| {
                let x = b[4 * w..4 * w + size].iter().rev().fold(0u32, |x, b| x << 8 | u32::from(*b));
                if signed { ((x << unused) as i32 >> unused) as u32 } else { x }
            };
            for w in 0..words {
                let r = &mut out[element * words + w];
                (r.v[lane], r.u[lane]) = (word(&v, w), word(&u, w));
            }
            ranges.push((at as u32, at as u32 + bytes));
        }
    }
    note(cx, issue.op, access, ranges);
    deliver(cx, &inst.args[0], &out, &issue, part)
}

/// Writes results to registers, unusable until waited for.
fn deliver(cx: &mut Context<'_, '_>, dst: &Arg, out: &[Lanes], issue: &Issue, part: Part) -> Result<(), Fault> {
    let (accumulator, first, count) = vector_range(dst)?;
    if usize::from(count) != out.len() {
        return Err(ErrorKind::Decode(format!("{count} destination registers, {} expected", out.len())).into());
    }
    let exec = cx.wave.exec();
    for (i, value) in out.iter().enumerate() {
        let r = cx.wave.vector_load(accumulator, first + i as u16, issue.via, issue.op)?;
        for lane in lanes_of(exec) {
            let merge = |old: u32, new: u32| match part {
                Part::Whole => new,
                Part::Low => old & 0xFFFF_0000 | new & 0xFFFF,
                Part::High => old & 0xFFFF | new << 16,
            };
            r.v[lane] = merge(r.v[lane], value.v[lane]);
            r.u[lane] = merge(r.u[lane], value.u[lane]);
        }
    }
    Ok(())
}

fn write_elements(cx: &mut Context<'_, '_>, inst: &Inst, bytes: u32, offsets: &[u64], part: Part) -> Result<(), Fault> {
    let address = addresses(cx, &inst.args[0])?;
    let words = bytes.div_ceil(4);
    let mut data = Vec::new();
    for element in 0..offsets.len() {
        data.push(registers(cx, &inst.args[1 + element], words)?);
    }
    let issue = issue(cx);
    let mut writes = Vec::new();
    let mut ranges = Vec::new();
    for (offset, registers) in offsets.iter().zip(&data) {
        for lane in lanes_of(cx.wave.exec()) {
            let (mut v, mut u) = ([0u8; 16], [0u8; 16]);
            let shift = if part == Part::High { 16 } else { 0 };
            for (w, r) in registers.iter().enumerate() {
                v[4 * w..4 * w + 4].copy_from_slice(&(r.v[lane] >> shift).to_le_bytes());
                u[4 * w..4 * w + 4].copy_from_slice(&(r.u[lane] >> shift).to_le_bytes());
            }
            let n = bytes as usize;
            let at = lds_address(address[lane], *offset);
            let own = cx.wave.outstanding;
            cx.lds.write(at, &v[..n], &u[..n], issue.by, &own).map_err(|e| e.lane(lane))?;
            writes.push((at, n, v, lane));
            ranges.push((at as u32, at as u32 + bytes));
        }
    }
    transfer::check_lanes(&mut writes)?;
    note(cx, issue.op, LdsAccess::Write, ranges);
    Ok(())
}
