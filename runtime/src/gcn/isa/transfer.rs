//! Loads, stores and atomics that buffer, global, flat and scratch instructions share.

use crate::gcn::decode::{Arg, Inst, Kind as Operand, M0};
use crate::gcn::error::{ErrorKind, Fault, Sink, unsupported};
use crate::gcn::isa::atomic::Atomic;
use crate::gcn::isa::control;
use crate::gcn::isa::flat::Segment;
use crate::gcn::isa::{Context, Op};
use crate::gcn::lds::{By, Lds};
use crate::gcn::profile::Touched;
use crate::gcn::state::{LANES, Lanes, Via, lanes_of, vector_range};
use crate::gcn::trace::{Class, Event, LdsAccess, OpId};
use crate::visibility::Reach;

/// Which part of a 32-bit register a narrow access uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// All of it; loads extend.
    Whole,
    /// Low half, the high one is kept.
    Low,
    /// High half, the low one is kept.
    High,
}

/// What a row transfers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Memory to registers.
    Load {
        /// Bytes of memory.
        bytes: u32,
        /// Sign-extend a narrow value.
        signed: bool,
        /// Register part.
        part: Part,
    },
    /// Memory to LDS, at M0 + offset + lane · stride.
    LoadLds {
        /// Bytes of memory.
        bytes: u32,
    },
    /// Registers to memory.
    Store {
        /// Bytes of memory.
        bytes: u32,
        /// Register part.
        part: Part,
    },
    /// Read-modify-write.
    Atomic {
        /// 4 or 8.
        bytes: u32,
        /// Operation.
        op: Atomic,
    },
}

impl Kind {
    /// Bytes of memory that a lane accesses.
    pub(crate) fn bytes(self) -> u32 {
        match self {
            Self::Load { bytes, .. }
            | Self::LoadLds { bytes }
            | Self::Store { bytes, .. }
            | Self::Atomic { bytes, .. } => bytes,
        }
    }
}

/// One transfer instruction, named without its segment.
#[derive(Debug)]
pub struct Row {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
}

impl Kind {
    /// Whether it loads from memory.
    pub(crate) fn loads(self) -> bool {
        !matches!(self, Self::Store { .. })
    }

    /// Whether it stores to memory.
    pub(crate) fn stores(self) -> bool {
        matches!(self, Self::Store { .. } | Self::Atomic { .. })
    }
}

impl Row {
    pub(crate) fn is_atomic(&self) -> bool {
        matches!(self.kind, Kind::Atomic { .. })
    }

    /// Whether it only loads, all of its registers.
    pub(crate) fn is_load(&self) -> bool {
        matches!(self.kind, Kind::Load { part: Part::Whole, .. })
    }

    pub(crate) fn mubuf_operands(&self, lds: bool) -> (usize, usize) {
        // data, address, resource, scalar offset
        if lds || matches!(self.kind, Kind::LoadLds { .. }) { (3, 3) } else { (4, 4) }
    }

    pub(crate) fn flat_operands(&self, segment: Segment) -> (usize, usize) {
        let scalar = usize::from(segment != Segment::Flat);
        match self.kind {
            Kind::Load { .. } | Kind::Store { .. } => (2 + scalar, 2 + scalar),
            Kind::LoadLds { .. } => (1 + scalar, 1 + scalar),
            Kind::Atomic { .. } => (2 + scalar, 3 + scalar),
        }
    }
}

const fn load(name: &'static str, bytes: u32, signed: bool, part: Part) -> Row {
    Row { name, kind: Kind::Load { bytes, signed, part } }
}

const fn store(name: &'static str, bytes: u32, part: Part) -> Row {
    Row { name, kind: Kind::Store { bytes, part } }
}

const fn lds(name: &'static str, bytes: u32) -> Row {
    Row { name, kind: Kind::LoadLds { bytes } }
}

const fn atomic(name: &'static str, bytes: u32, op: Atomic) -> Row {
    Row { name, kind: Kind::Atomic { bytes, op } }
}

use Part::{High, Low, Whole};

pub(crate) static TABLE: &[Row] = &[
    load("load_ubyte", 1, false, Whole),
    load("load_sbyte", 1, true, Whole),
    load("load_ushort", 2, false, Whole),
    load("load_sshort", 2, true, Whole),
    load("load_dword", 4, false, Whole),
    load("load_dwordx2", 8, false, Whole),
    load("load_dwordx3", 12, false, Whole),
    load("load_dwordx4", 16, false, Whole),
    load("load_ubyte_d16", 1, false, Low),
    load("load_ubyte_d16_hi", 1, false, High),
    load("load_sbyte_d16", 1, true, Low),
    load("load_sbyte_d16_hi", 1, true, High),
    load("load_short_d16", 2, false, Low),
    load("load_short_d16_hi", 2, false, High),
    lds("load_lds_ubyte", 1),
    lds("load_lds_ushort", 2),
    lds("load_lds_dword", 4),
    lds("load_lds_dwordx3", 12),
    lds("load_lds_dwordx4", 16),
    store("store_byte", 1, Whole),
    store("store_byte_d16_hi", 1, High),
    store("store_short", 2, Whole),
    store("store_short_d16_hi", 2, High),
    store("store_dword", 4, Whole),
    store("store_dwordx2", 8, Whole),
    store("store_dwordx3", 12, Whole),
    store("store_dwordx4", 16, Whole),
    atomic("atomic_add", 4, Atomic::Add),
    atomic("atomic_sub", 4, Atomic::Sub),
    atomic("atomic_smin", 4, Atomic::Smin),
    atomic("atomic_umin", 4, Atomic::Umin),
    atomic("atomic_smax", 4, Atomic::Smax),
    atomic("atomic_umax", 4, Atomic::Umax),
    atomic("atomic_and", 4, Atomic::And),
    atomic("atomic_or", 4, Atomic::Or),
    atomic("atomic_xor", 4, Atomic::Xor),
    atomic("atomic_inc", 4, Atomic::Inc),
    atomic("atomic_dec", 4, Atomic::Dec),
    atomic("atomic_swap", 4, Atomic::Swap),
    atomic("atomic_cmpswap", 4, Atomic::CmpSwap),
    atomic("atomic_add_x2", 8, Atomic::Add),
    atomic("atomic_sub_x2", 8, Atomic::Sub),
    atomic("atomic_smin_x2", 8, Atomic::Smin),
    atomic("atomic_umin_x2", 8, Atomic::Umin),
    atomic("atomic_smax_x2", 8, Atomic::Smax),
    atomic("atomic_umax_x2", 8, Atomic::Umax),
    atomic("atomic_and_x2", 8, Atomic::And),
    atomic("atomic_or_x2", 8, Atomic::Or),
    atomic("atomic_xor_x2", 8, Atomic::Xor),
    atomic("atomic_inc_x2", 8, Atomic::Inc),
    atomic("atomic_dec_x2", 8, Atomic::Dec),
    atomic("atomic_swap_x2", 8, Atomic::Swap),
    atomic("atomic_cmpswap_x2", 8, Atomic::CmpSwap),
    atomic("atomic_add_f32", 4, Atomic::AddFloat),
    atomic("atomic_pk_add_f16", 4, Atomic::AddF16Pair),
    atomic("atomic_pk_add_bf16", 4, Atomic::AddBf16Pair),
    atomic("atomic_add_f64", 8, Atomic::AddFloat),
    atomic("atomic_min_f64", 8, Atomic::MinFloat),
    atomic("atomic_max_f64", 8, Atomic::MaxFloat),
];

/// What only gfx12 has.
pub(crate) static GFX12: &[Row] =
    &[atomic("atomic_min_num_f32", 4, Atomic::MinNum), atomic("atomic_max_num_f32", 4, Atomic::MaxNum)];

/// Whether an instruction compares and stores what `load` loaded: as many bytes at the same place.
pub(crate) fn is_exchange_of(inst: &Inst, load: &Inst) -> bool {
    let exchanges = |row: &Row| matches!(row.kind, Kind::Atomic { op: Atomic::CmpSwap, .. });
    let same = match (inst.op, load.op) {
        (Op::Mubuf(row), Op::Mubuf(loaded)) => exchanges(row) && row.kind.bytes() == loaded.kind.bytes(),
        (Op::Flat(segment, row), Op::Flat(of, loaded)) => {
            segment == of && exchanges(row) && row.kind.bytes() == loaded.kind.bytes()
        }
        _ => false,
    };
    // A loaded or an old value comes first; the data stands behind the address of a flat access, and before that of a buffer's.
    let address = |inst: &Inst| -> Option<Vec<Arg>> {
        let returns = usize::from(matches!(inst.op, Op::Flat(_, row) if row.is_load() || inst.mods.sc0));
        let rest = inst.args.get(returns..)?;
        let data = match inst.op {
            Op::Flat(_, row) if row.is_load() => None,
            Op::Flat(..) => Some(1),
            _ => Some(0),
        };
        Some(rest.iter().enumerate().filter(|(i, _)| Some(*i) != data).map(|(_, arg)| arg.clone()).collect())
    };
    if !same {
        return false;
    }
    let (at, loaded_at) = (address(inst), address(load));
    // Of a scalar base and an offset LLVM makes an address of its own for the store, with which nothing can be compared.
    let has_base =
        |address: &Option<Vec<Arg>>| address.iter().flatten().any(|arg| matches!(arg.kind, Operand::S { .. }));
    let rewritten = matches!(inst.op, Op::Flat(..)) && has_base(&loaded_at) && !has_base(&at);
    rewritten || (at == loaded_at && inst.mods.offset == load.mods.offset)
}

/// Where one lane's access starts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    /// Device address.
    Memory(u64),
    /// Offset in a buffer: out-of-range loads give 0, stores are dropped.
    Buffer {
        /// First byte of the buffer.
        base: u64,
        /// Byte offset of the access.
        offset: u64,
        /// Bytes of the buffer.
        limit: u64,
    },
    /// Byte in LDS.
    Lds(u64),
    /// Byte of the lane's scratch.
    Scratch(u64),
}

impl Place {
    /// Address and number of those of `bytes` bytes that lie in global memory, if any.
    pub(crate) fn global(self, bytes: u32) -> Option<(u64, u32)> {
        match self {
            Self::Memory(address) => Some((address, bytes)),
            Self::Buffer { base, offset, limit } => {
                let bytes = limit.saturating_sub(offset).min(bytes.into()) as u32;
                (bytes > 0).then(|| (base.wrapping_add(offset), bytes))
            }
            Self::Lds(_) | Self::Scratch(_) => None,
        }
    }

    /// The place `bytes` further.
    fn plus(self, bytes: u32) -> Self {
        let n = u64::from(bytes);
        match self {
            Self::Memory(a) => Self::Memory(a.wrapping_add(n)),
            Self::Buffer { base, offset, limit } => Self::Buffer { base, offset: offset + n, limit },
            Self::Lds(a) => Self::Lds(a + n),
            Self::Scratch(a) => Self::Scratch(a + n),
        }
    }
}

/// Places of the active lanes.
pub(crate) type Places = [Option<Place>; LANES];

/// A word of up to 4 bytes with its undefined bits.
type Word = (u32, u32);

fn word(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |w, b| w << 8 | u32::from(*b))
}

/// Loads `size` (1, 2, 4) bytes; `None` where a buffer's range check fails.
fn load_word(
    cx: &mut Context<'_, '_>,
    place: Place,
    size: u32,
    lane: usize,
    by: By,
) -> Result<Option<Word>, ErrorKind> {
    let n = size as usize;
    Ok(Some(match place {
        Place::Memory(address) => {
            cx.wave.last_load = Some(address);
            cx.space.load(address, n, |v, u| (word(v), word(u)))?
        }
        Place::Buffer { base, offset, limit } => {
            if offset + u64::from(size) > limit {
                return Ok(None);
            }
            cx.wave.last_load = Some(base.wrapping_add(offset));
            cx.space.load(base.wrapping_add(offset), n, |v, u| (word(v), word(u)))?
        }
        Place::Lds(address) => {
            let own = cx.wave.outstanding;
            let (v, u) = cx.lds.read(address, size, LdsAccess::Read, by, &own)?;
            (word(&v[..n]), word(&u[..n]))
        }
        Place::Scratch(offset) => {
            let at = scratch_index(cx, offset, size, lane)?;
            (word(&cx.wave.scratch.data[at..at + n]), word(&cx.wave.scratch.undefined[at..at + n]))
        }
    }))
}

fn scratch_index(cx: &Context<'_, '_>, offset: u64, size: u32, lane: usize) -> Result<usize, ErrorKind> {
    let bytes = cx.wave.scratch.bytes;
    match usize::try_from(offset).ok().filter(|o| o.saturating_add(size as usize) <= bytes) {
        Some(o) => Ok(lane * bytes + o),
        None => {
            let hint = format!(" (scratch has {bytes} bytes a lane)");
            Err(ErrorKind::OutsideAllocations { what: "scratch access", address: offset, size, hint })
        }
    }
}

fn store_word(
    cx: &mut Context<'_, '_>,
    place: Place,
    size: u32,
    (v, u): Word,
    lane: usize,
    by: By,
) -> Result<(), ErrorKind> {
    let n = size as usize;
    let u = u & (u32::MAX >> (32 - 8 * size));
    let undefined = || ErrorKind::Undefined { what: "the stored value".into(), bits: u64::from(u), sink: Sink::Store };
    let address = match place {
        Place::Memory(address) => address,
        Place::Buffer { base, offset, limit } => {
            if offset + u64::from(size) > limit {
                return Ok(());
            }
            base.wrapping_add(offset)
        }
        Place::Lds(address) => {
            let own = cx.wave.outstanding;
            return cx.lds.write(address, &v.to_le_bytes()[..n], &u.to_le_bytes()[..n], by, &own);
        }
        Place::Scratch(offset) => {
            let at = scratch_index(cx, offset, size, lane)?;
            cx.wave.scratch.data[at..at + n].copy_from_slice(&v.to_le_bytes()[..n]);
            cx.wave.scratch.undefined[at..at + n].copy_from_slice(&u.to_le_bytes()[..n]);
            return Ok(());
        }
    };
    cx.space.store("store", address, n, |data, shadow| {
        if u != 0 {
            return Err(undefined());
        }
        data.copy_from_slice(&v.to_le_bytes()[..n]);
        shadow.fill(0);
        Ok(())
    })?
}

/// A lane's store to global memory where stores become visible late: all of it at once.
fn store_late(
    cx: &mut Context<'_, '_>,
    place: Place,
    bytes: u32,
    stored: &[Lanes],
    part: Part,
    lane: usize,
    reach: Option<Reach>,
) -> Result<(), ErrorKind> {
    let (address, room) = match place {
        Place::Memory(address) => (address, u64::from(bytes)),
        Place::Buffer { base, offset, limit } => (base.wrapping_add(offset), limit.saturating_sub(offset)),
        Place::Lds(_) | Place::Scratch(_) => return Ok(()),
    };
    let size = bytes.min(4);
    let shift = if part == Part::High { 16 } else { 0 };
    let mut data = vec![];
    // Words of a buffer that do not end within it are dropped.
    for register in stored.iter().take((room / u64::from(size)) as usize) {
        let (v, u) = (register.v[lane] >> shift, register.u[lane] >> shift & (u32::MAX >> (32 - 8 * size)));
        if u != 0 {
            let what = "the stored value".into();
            return Err(ErrorKind::Undefined { what, bits: u64::from(u), sink: Sink::Store });
        }
        data.extend_from_slice(&v.to_le_bytes()[..size as usize]);
    }
    cx.space.store_late(lane, address, &data, cx.wave.store_number(), reach)
}

/// Reads `count` registers of a data operand.
fn data_registers(cx: &mut Context<'_, '_>, arg: &Arg, count: u32) -> Result<Vec<Lanes>, Fault> {
    let (accumulator, first, have) = vector_range(arg)?;
    if u32::from(have) != count {
        return Err(ErrorKind::Decode(format!("{have} data registers, {count} expected")).into());
    }
    (0..have).map(|i| cx.wave.vector(accumulator, first + i).cloned()).collect()
}

/// Notes what the lanes access.
fn touch(touched: &mut Touched, kind: Kind, places: &Places) {
    let bytes = kind.bytes();
    for (lane, place) in places.iter().enumerate() {
        let Some(place) = *place else { continue };
        let stores = matches!(kind, Kind::Store { .. } | Kind::Atomic { .. });
        let accesses = if stores { &mut touched.stored } else { &mut touched.loaded };
        let address = match place {
            Place::Memory(address) => address,
            Place::Buffer { base, offset, limit } if offset + u64::from(bytes) <= limit => base.wrapping_add(offset),
            // Out of range: no access.
            Place::Buffer { .. } => continue,
            Place::Lds(address) => {
                touched.lds.push((address as u32, address as u32 + bytes));
                continue;
            }
            // The lanes' words of one offset are neighbours.
            Place::Scratch(offset) => {
                let word = |w: u32| ((offset / 4 + u64::from(w)) * LANES as u64 + lane as u64) * 4;
                accesses.extend((0..bytes.div_ceil(4)).map(|w| (word(w), bytes.min(4))));
                continue;
            }
        };
        accesses.push((address, bytes));
    }
}

/// Notes what the lanes store, and holds what they load against what others have stored.
fn tell(cx: &mut Context<'_, '_>, kind: Kind, inst: &Inst, places: &Places) -> Result<(), Fault> {
    let pc = cx.wave.current_pc;
    let Some((coherence, block)) = &mut cx.space.coherence else { return Ok(()) };
    let reach = if matches!(kind, Kind::Atomic { .. }) {
        control::reach_of_atomic(&inst.text)
    } else {
        control::reach(&inst.text)
    };
    for (lane, place) in places.iter().enumerate() {
        let Some((address, bytes)) = place.and_then(|place| place.global(kind.bytes())) else { continue };
        if kind.loads() && !inst.begins_exchange {
            coherence.load(*block, address, bytes, reach).map_err(|e| e.lane(lane))?;
        }
        if kind.stores() {
            coherence.store(*block, address, bytes, reach, pc);
        }
    }
    Ok(())
}

/// Executes a transfer whose lanes access `places`.
///
/// `data` is the data or destination operand, `result` where an atomic's old value goes.
pub(crate) fn run(
    cx: &mut Context<'_, '_>,
    kind: Kind,
    inst: &Inst,
    places: &Places,
    data: Option<&Arg>,
    result: Option<&Arg>,
    flat: bool,
) -> Result<(), Fault> {
    let pc = cx.wave.current_pc;
    // Data registers are read at issue.
    let need = |arg: Option<&Arg>| match arg {
        Some(a) => Ok(a.clone()),
        None => Err(Fault::from(ErrorKind::Decode(format!("`{}` lacks an operand", inst.text)))),
    };
    let stored = match kind {
        Kind::Store { bytes, .. } => data_registers(cx, &need(data)?, bytes.div_ceil(4))?,
        Kind::Atomic { bytes, op } => {
            data_registers(cx, &need(data)?, bytes / 4 * if op == Atomic::CmpSwap { 2 } else { 1 })?
        }
        Kind::Load { .. } | Kind::LoadLds { .. } => Vec::new(),
    };
    // A store without a counter that covers loads leaves nothing that a wait for loads would count.
    let returns = matches!(kind, Kind::Load { .. } | Kind::LoadLds { .. }) || result.is_some();
    let counted = returns || !cx.wave.chip.counts_stores_apart();
    if !counted && places.iter().flatten().any(|p| matches!(p, Place::Lds(_))) {
        return unsupported(format!("flat access to LDS by `{}`", inst.text));
    }
    let vm = if counted {
        cx.wave.outstanding.issue_vm()
    } else {
        cx.wave.outstanding.issue_store();
        cx.wave.outstanding.vm.issued
    };
    let via = if flat { Via::Flat(vm, cx.wave.outstanding.issue_flat()) } else { Via::Vm(vm) };
    let class = match (flat, counted) {
        (true, true) => Class::Flat,
        (false, true) => Class::Vm,
        (_, false) => Class::Store,
    };
    let op_id = cx.wave.trace.as_mut().map_or(OpId::default(), |t| t.issue(pc, class));
    if let Some(trace) = cx.wave.trace.as_mut().filter(|t| t.memory) {
        let ranges: Vec<_> = places.iter().filter_map(|p| (*p)?.global(kind.bytes())).collect();
        if !ranges.is_empty() {
            trace.events.push(Event::Memory { op: op_id, pc, loads: kind.loads(), stores: kind.stores(), ranges });
        }
    }
    if cx.space.coherence.is_some() {
        tell(cx, kind, inst, places)?;
    }
    let by = By { wave: cx.wave.index, seq: vm, vm: true };
    if let Some(touched) = &mut cx.wave.touched {
        touch(touched, kind, places);
    }
    match kind {
        Kind::Load { bytes, signed, part } => {
            let arg = need(data)?;
            let (accumulator, first, count) = vector_range(&arg)?;
            let words = bytes.div_ceil(4);
            if u32::from(count) != words {
                return Err(ErrorKind::Decode(format!("{count} destination registers, {words} expected")).into());
            }
            for w in 0..words {
                let size = bytes.min(4);
                let mut loaded = Lanes::ZERO;
                for lane in lanes_of(cx.wave.exec()) {
                    let Some(place) = places[lane] else { continue };
                    let got = load_word(cx, place.plus(4 * w), size, lane, by).map_err(|e| e.lane(lane))?;
                    (loaded.v[lane], loaded.u[lane]) = got.unwrap_or((0, 0));
                }
                let exec = cx.wave.exec();
                let r = cx.wave.vector_load(accumulator, first + w as u16, via, op_id)?;
                for lane in lanes_of(exec) {
                    let extend = |x: u32| {
                        let unused = 32 - 8 * size;
                        if signed { ((x << unused) as i32 >> unused) as u32 } else { x }
                    };
                    let (v, u) = (extend(loaded.v[lane]), extend(loaded.u[lane]));
                    let merge = |old: u32, new: u32| match part {
                        Part::Whole => new,
                        Part::Low => old & 0xFFFF_0000 | new & 0xFFFF,
                        Part::High => old & 0xFFFF | new << 16,
                    };
                    r.v[lane] = merge(r.v[lane], v);
                    r.u[lane] = merge(r.u[lane], u);
                }
            }
            Ok(())
        }
        Kind::LoadLds { bytes } => {
            let m0 = cx.wave.scalar(M0, 1)?.defined(|| "m0".into(), Sink::Address)?;
            // A narrow element still takes a word of LDS.
            let stride = u64::from(bytes.max(4));
            let mut ranges = Vec::new();
            for lane in lanes_of(cx.wave.exec()) {
                let Some(place) = places[lane] else { continue };
                let start = m0.wrapping_add_signed(inst.mods.offset).wrapping_add(lane as u64 * stride);
                for w in 0..bytes.div_ceil(4) {
                    let got = load_word(cx, place.plus(4 * w), bytes.min(4), lane, by).map_err(|e| e.lane(lane))?;
                    // Lanes out of range write zero.
                    let at = Place::Lds(start + u64::from(4 * w));
                    store_word(cx, at, 4, got.unwrap_or((0, 0)), lane, by).map_err(|e| e.lane(lane))?;
                }
                ranges.push((start as u32, start as u32 + stride as u32));
            }
            if let Some(touched) = &mut cx.wave.touched {
                touched.lds.extend_from_slice(&ranges);
            }
            if let Some(trace) = &mut cx.wave.trace {
                trace.events.push(Event::Lds { op: op_id, access: LdsAccess::Write, ranges });
            }
            Ok(())
        }
        Kind::Store { bytes, part } => {
            let size = bytes.min(4);
            let reach = control::reach(&inst.text);
            for lane in lanes_of(cx.wave.exec()) {
                let Some(place) = places[lane] else { continue };
                if cx.space.is_late() && matches!(place, Place::Memory(_) | Place::Buffer { .. }) {
                    store_late(cx, place, bytes, &stored, part, lane, reach).map_err(|e| e.lane(lane))?;
                    continue;
                }
                for (w, register) in stored.iter().enumerate() {
                    let shift = if part == Part::High { 16 } else { 0 };
                    let word = (register.v[lane] >> shift, register.u[lane] >> shift);
                    store_word(cx, place.plus(4 * w as u32), size, word, lane, by).map_err(|e| e.lane(lane))?;
                }
            }
            Ok(())
        }
        Kind::Atomic { bytes, op } => {
            let words = (bytes / 4) as usize;
            let mut old = vec![Lanes::ZERO; words];
            for lane in lanes_of(cx.wave.exec()) {
                let Some(place) = places[lane] else { continue };
                let join = |at: usize| {
                    (0..words).fold((0u64, 0u64), |(v, u), w| {
                        let r = &stored[at + w];
                        (v | u64::from(r.v[lane]) << (32 * w), u | u64::from(r.u[lane]) << (32 * w))
                    })
                };
                let data = join(0);
                let compare = if op == Atomic::CmpSwap { join(words) } else { (0, 0) };
                if data.1 | compare.1 != 0 {
                    let (what, bits) = ("the atomic's operand".to_owned(), data.1 | compare.1);
                    return Err(ErrorKind::Undefined { what, bits, sink: Sink::Store }.lane(lane));
                }
                let (v, u) = atomic_word(cx, place, bytes, by, op, (data.0, compare.0)).map_err(|e| e.lane(lane))?;
                for (w, register) in old.iter_mut().enumerate() {
                    register.v[lane] = (v >> (32 * w)) as u32;
                    register.u[lane] = (u >> (32 * w)) as u32;
                }
            }
            let Some(result) = result else { return Ok(()) };
            let (accumulator, first, count) = vector_range(result)?;
            if op != Atomic::CmpSwap && usize::from(count) != words {
                return Err(ErrorKind::Decode("result width of an atomic".into()).into());
            }
            let exec = cx.wave.exec();
            for (w, old) in old.iter().enumerate() {
                let r = cx.wave.vector_load(accumulator, first + w as u16, via, op_id)?;
                for lane in lanes_of(exec) {
                    r.v[lane] = old.v[lane];
                    r.u[lane] = old.u[lane];
                }
            }
            Ok(())
        }
    }
}

/// Replaces a word of memory; returns its old value and undefined bits.
fn atomic_word(
    cx: &mut Context<'_, '_>,
    place: Place,
    bytes: u32,
    by: By,
    op: Atomic,
    (data, compare): (u64, u64),
) -> Result<(u64, u64), ErrorKind> {
    let f = |old| op.apply(old, data, compare, bytes);
    // From an undefined value an undefined one is made, but an exchange leaves nothing of it.
    let spoils = |undefined: u64| undefined != 0 && op != Atomic::Swap;
    let n = bytes as usize;
    let address = match place {
        Place::Memory(address) => address,
        // All or nothing.
        Place::Buffer { offset, limit, .. } if offset + u64::from(bytes) > limit => return Ok((0, 0)),
        Place::Buffer { base, offset, .. } => base.wrapping_add(offset),
        Place::Lds(address) => {
            let own = cx.wave.outstanding;
            return cx.lds.update(address, bytes, by, &own, |v, u| (f(v), if spoils(u) { u64::MAX } else { 0 }));
        }
        Place::Scratch(_) => return Err(ErrorKind::Unsupported("atomic on scratch".into())),
    };
    if !address.is_multiple_of(u64::from(bytes)) {
        return Err(ErrorKind::Unsupported(format!("misaligned atomic at {address:#x}")));
    }
    cx.space.store("atomic", address, n, |bytes, shadow| {
        let join = |b: &[u8]| b.iter().rev().fold(0u64, |w, b| w << 8 | u64::from(*b));
        let (v, u) = (join(bytes), join(shadow));
        bytes.copy_from_slice(&f(v).to_le_bytes()[..n]);
        shadow.fill(if spoils(u) { 0xFF } else { 0 });
        (v, u)
    })
}

/// Checks for lanes of one DS store that contradict each other (see [`Lds::lane_conflict`]).
pub(crate) fn check_lanes(writes: &mut [(u64, usize, [u8; 16], usize)]) -> Result<(), Fault> {
    Lds::lane_conflict(writes)
}

/// Refuses a modifier that a family does not have.
pub(crate) fn no_modifiers(inst: &Inst) -> Result<(), Fault> {
    let m = &inst.mods;
    if m.clamp
        || m.omod != 1.0
        || m.dpp.is_some()
        || m.sdwa.is_some()
        || inst.args.iter().any(|a| a.neg || a.abs || a.sext)
    {
        return unsupported(format!("modifier in `{}`", inst.text));
    }
    Ok(())
}
