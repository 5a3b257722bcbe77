//! State of one wave: registers with their shadow of undefined bits, outstanding loads, mode.
//!
//! Every register bit has a shadow bit that is 1 while the bit is undefined. Instructions propagate the shadow;
//! it is an error only where an undefined bit would change what the kernel does (see [`Sink`]).

use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;

use crate::gcn::decode::{Arg, EXEC, Kind, M0, NULL, Special, TTMP0, VCC};
use crate::gcn::error::{ErrorKind, Fault, Sink};
use crate::gcn::hazard::{Gfx12History, History};
use crate::gcn::isa::chip::Chip;
use crate::gcn::profile::Touched;
use crate::gcn::trace::{OpId, Trace};
use crate::gcn::wait::{Outstanding, Seq, WaitCounts};
use crate::stuck::Probe;

/// Most lanes a wave has on any chip.
pub(crate) const LANES: usize = 64;
/// High half of LDS addresses in the flat address space.
pub(crate) const SHARED_APERTURE: u32 = 0x0001_0000;
/// High half of scratch addresses in the flat address space.
pub(crate) const PRIVATE_APERTURE: u32 = 0x0002_0000;

/// One 32-bit value a lane, with shadow.
#[derive(Clone)]
pub(crate) struct Lanes {
    pub(crate) v: [u32; LANES],
    pub(crate) u: [u32; LANES],
}

impl Lanes {
    pub(crate) const UNDEFINED: Self = Self { v: [0; LANES], u: [u32::MAX; LANES] };
    pub(crate) const ZERO: Self = Self { v: [0; LANES], u: [0; LANES] };
}

/// One value of up to 64 bits a lane, with shadow.
#[derive(Clone)]
pub(crate) struct Wide {
    pub(crate) v: [u64; LANES],
    pub(crate) u: [u64; LANES],
}

impl Wide {
    pub(crate) const ZERO: Self = Self { v: [0; LANES], u: [0; LANES] };

    pub(crate) fn splat(v: u64, u: u64) -> Self {
        Self { v: [v; LANES], u: [u; LANES] }
    }

    /// The same value in every lane.
    pub(crate) fn fill(&mut self, v: u64, u: u64) {
        self.v.fill(v);
        self.u.fill(u);
    }

    /// Whether any bit is undefined.
    pub(crate) fn any_undefined(&self) -> bool {
        self.u.iter().fold(0, |a, b| a | b) != 0
    }
}

/// A scalar of up to 64 bits with shadow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Scalar {
    pub(crate) v: u64,
    pub(crate) u: u64,
}

impl Scalar {
    pub(crate) fn known(v: u64) -> Self {
        Self { v, u: 0 }
    }

    /// The value, or an error if any bit of it is undefined.
    pub(crate) fn defined(self, what: impl FnOnce() -> String, sink: Sink) -> Result<u64, Fault> {
        if self.u == 0 { Ok(self.v) } else { Err(ErrorKind::Undefined { what: what(), bits: self.u, sink }.into()) }
    }
}

/// Floating-point mode, from the kernel descriptor and `s_setreg`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Mode {
    /// Round mode of f32: 0 = nearest even.
    pub(crate) round32: u8,
    /// Round mode of f16 and f64.
    pub(crate) round64: u8,
    /// Denormals of f32: bit 0 keeps inputs, bit 1 keeps outputs.
    pub(crate) denorm32: u8,
    /// Denormals of f16 and f64.
    pub(crate) denorm64: u8,
    /// Clamp turns NaN into 0.
    pub(crate) dx10_clamp: bool,
    /// Signalling NaNs are quieted by min and max.
    pub(crate) ieee: bool,
}

impl Default for Mode {
    /// What LLVM asks for in a kernel without attributes: everything kept, nearest even.
    fn default() -> Self {
        Self { round32: 0, round64: 0, denorm32: 3, denorm64: 3, dx10_clamp: true, ieee: true }
    }
}

/// The asynchronous operation whose result a register holds.
#[derive(Clone, Copy, Default)]
struct Pending {
    vm: Seq,
    lds: Seq,
    flat: Seq,
    scalar: Seq,
    issued_pc: u64,
    op: OpId,
}

/// How a register is touched.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Touch {
    Read,
    Overwrite,
}

/// What completes an asynchronous write to registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Via {
    /// The counter of vector memory, in order.
    Vm(Seq),
    /// The counter of LDS, in order.
    Lds(Seq),
    /// FLAT: both counters, the LDS half without order.
    Flat(Seq, Seq),
}

/// One wave.
pub(crate) struct Wave {
    /// Number in its workgroup.
    pub(crate) index: u32,
    pub(crate) chip: &'static Chip,
    /// Lanes of the chip.
    pub(crate) lanes: usize,
    pub(crate) pc: u64,
    /// pc of the instruction being executed.
    pub(crate) current_pc: u64,
    pub(crate) scc: bool,
    pub(crate) scc_undefined: bool,
    pub(crate) mode: Mode,
    /// `s_set_gpr_idx_on` is in force.
    pub(crate) indexed: bool,
    pub(crate) outstanding: Outstanding,
    /// It has signalled the barrier that it will wait for; what was complete then.
    pub(crate) arrived: Option<Outstanding>,
    pub(crate) scratch: Scratch,
    /// Time of the last reading, in ticks of 10 ns.
    pub(crate) clock: u64,
    pub(crate) trace: Option<Box<Trace>>,
    /// Where in global memory it loaded last.
    pub(crate) last_load: Option<u64>,
    /// Whether it goes round for ever.
    pub(crate) probe: Probe,
    pub(crate) history: History,
    pub(crate) gfx12_history: Gfx12History,
    /// What the current instruction touches, if somebody asks.
    pub(crate) touched: Option<Box<Touched>>,
    sgpr: [u32; 128],
    sgpr_u: [u32; 128],
    sgpr_pending: [Pending; 128],
    any_sgpr_pending: bool,
    sgpr_limit: u16,
    vgpr: Vec<Lanes>,
    agpr: Vec<Lanes>,
    /// VGPRs, then AGPRs.
    pending: Vec<Pending>,
}

/// Scratch memory of a wave: `bytes` a lane, lane after lane.
#[derive(Default)]
pub(crate) struct Scratch {
    pub(crate) bytes: usize,
    pub(crate) data: Vec<u8>,
    /// Undefined bits of each byte.
    pub(crate) undefined: Vec<u8>,
}

/// Register counts that a kernel descriptor allocates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Registers {
    pub(crate) vgpr: u16,
    pub(crate) agpr: u16,
    pub(crate) sgpr: u16,
}

pub(crate) fn scalar_name(index: u16) -> String {
    match index {
        VCC => "vcc_lo".into(),
        i if i == VCC + 1 => "vcc_hi".into(),
        M0 => "m0".into(),
        NULL => "null".into(),
        EXEC => "exec_lo".into(),
        i if i == EXEC + 1 => "exec_hi".into(),
        i if (TTMP0..M0).contains(&i) => format!("ttmp{}", i - TTMP0),
        i => format!("s{i}"),
    }
}

impl Wave {
    /// A wave whose registers are all undefined and whose EXEC is `exec`.
    pub(crate) fn new(
        index: u32,
        chip: &'static Chip,
        registers: Registers,
        mode: Mode,
        scratch: usize,
        exec: u64,
    ) -> Self {
        let lanes = chip.lanes;
        let mut sgpr = [0; 128];
        let mut sgpr_u = [u32::MAX; 128];
        sgpr[usize::from(EXEC)] = exec as u32;
        sgpr[usize::from(EXEC) + 1] = (exec >> 32) as u32;
        sgpr_u[usize::from(EXEC)] = 0;
        sgpr_u[usize::from(EXEC) + 1] = 0;
        let file = |n: u16| vec![Lanes::UNDEFINED; usize::from(n)];
        Self {
            index,
            chip,
            lanes,
            pc: 0,
            current_pc: 0,
            scc: false,
            scc_undefined: true,
            mode,
            indexed: false,
            outstanding: Outstanding::default(),
            arrived: None,
            scratch: Scratch { bytes: scratch, data: vec![0; scratch * lanes], undefined: vec![0xFF; scratch * lanes] },
            clock: 0,
            trace: None,
            last_load: None,
            probe: Probe::default(),
            history: History::default(),
            gfx12_history: Gfx12History::default(),
            touched: None,
            sgpr,
            sgpr_u,
            sgpr_pending: [Pending::default(); 128],
            any_sgpr_pending: false,
            sgpr_limit: registers.sgpr,
            vgpr: file(registers.vgpr),
            agpr: file(registers.agpr),
            pending: vec![Pending::default(); usize::from(registers.vgpr) + usize::from(registers.agpr)],
        }
    }

    /// Active lanes as a mask.
    pub(crate) fn exec(&self) -> u64 {
        let all = u64::from(self.sgpr[usize::from(EXEC)]) | u64::from(self.sgpr[usize::from(EXEC) + 1]) << 32;
        all & self.chip.all_lanes()
    }

    /// Sets EXEC.
    pub(crate) fn set_exec(&mut self, value: Scalar) -> Result<(), Fault> {
        self.check_exec_bits(value)?;
        self.sgpr[usize::from(EXEC)] = value.v as u32;
        if self.lanes == 64 {
            self.sgpr[usize::from(EXEC) + 1] = (value.v >> 32) as u32;
        }
        Ok(())
    }

    fn check_exec_bits(&self, value: Scalar) -> Result<(), Fault> {
        if value.u == 0 {
            return Ok(());
        }
        let kind = ErrorKind::Undefined { what: "the new mask".into(), bits: value.u, sink: Sink::Exec };
        Err(kind.lane(value.u.trailing_zeros() as usize))
    }

    /// Applies `s_waitcnt`.
    pub(crate) fn wait(&mut self, counts: WaitCounts) {
        self.outstanding.wait(counts);
        if self.outstanding.scalar.retired == self.outstanding.scalar.issued {
            self.any_sgpr_pending = false;
        }
    }

    /// Number of the last store that is certainly complete, as [`Wave::store_number`] counts.
    pub(crate) fn stores_retired(&self) -> u64 {
        let o = &self.outstanding;
        u64::from(if self.chip.counts_stores_apart() { o.store.retired } else { o.vm.retired })
    }

    /// Number of the store that was issued last, by the counter that covers stores.
    pub(crate) fn store_number(&self) -> u64 {
        let o = &self.outstanding;
        u64::from(if self.chip.counts_stores_apart() { o.store.issued } else { o.vm.issued })
    }

    /// A digest of all that decides, with memory, what it does next.
    pub(crate) fn state(&self) -> u64 {
        let mut hasher = FxHasher::default();
        (self.pc, self.scc, self.scc_undefined, self.indexed).hash(&mut hasher);
        self.sgpr.iter().chain(&self.sgpr_u).for_each(|x| hasher.write_u32(*x));
        for register in self.vgpr.iter().chain(&self.agpr) {
            register.v.iter().chain(&register.u).for_each(|x| hasher.write_u32(*x));
        }
        hasher.finish()
    }

    // ---- scalar registers ----

    fn check_scalar_index(&self, first: u16, count: u16) -> Result<(), Fault> {
        if first < VCC && first + count > self.sgpr_limit {
            let register = scalar_name(first + count - 1);
            return Err(ErrorKind::RegisterOutOfRange { register, allocated: u32::from(self.sgpr_limit) }.into());
        }
        Ok(())
    }

    fn touch_scalar(&mut self, index: u16, touch: Touch) -> Result<(), Fault> {
        let p = self.sgpr_pending[usize::from(index)];
        if let Some(trace) = &mut self.trace {
            trace.touch(p.op, self.current_pc);
        }
        if self.any_sgpr_pending && p.scalar > self.outstanding.scalar.retired {
            let how = if touch == Touch::Read { "read" } else { "overwritten" };
            let register = scalar_name(index);
            let counter = self.chip.scalar_counter();
            return Err(ErrorKind::UseBeforeWait { register, how, counter, issued: p.issued_pc }.into());
        }
        Ok(())
    }

    /// Reads `count` (1 or 2) scalar registers.
    pub(crate) fn scalar(&mut self, first: u16, count: u16) -> Result<Scalar, Fault> {
        self.check_scalar_index(first, count)?;
        let mut out = Scalar::default();
        if first == NULL {
            return Ok(out);
        }
        for i in 0..count.min(2) {
            self.touch_scalar(first + i, Touch::Read)?;
            out.v |= u64::from(self.sgpr[usize::from(first + i)]) << (32 * i);
            out.u |= u64::from(self.sgpr_u[usize::from(first + i)]) << (32 * i);
        }
        Ok(out)
    }

    /// Writes `count` (1 or 2) scalar registers.
    pub(crate) fn set_scalar(&mut self, first: u16, count: u16, value: Scalar) -> Result<(), Fault> {
        self.check_scalar_index(first, count)?;
        if first == NULL {
            return Ok(());
        }
        for i in 0..count.min(2) {
            self.touch_scalar(first + i, Touch::Overwrite)?;
            self.put_scalar(first + i, (value.v >> (32 * i)) as u32, (value.u >> (32 * i)) as u32)?;
            self.sgpr_pending[usize::from(first + i)] = Pending::default();
        }
        Ok(())
    }

    fn put_scalar(&mut self, index: u16, v: u32, u: u32) -> Result<(), Fault> {
        if index == EXEC || index == EXEC + 1 {
            self.check_exec_bits(Scalar { v: u64::from(v), u: u64::from(u) })?;
        }
        self.sgpr[usize::from(index)] = v;
        self.sgpr_u[usize::from(index)] = u;
        Ok(())
    }

    /// Writes the result of a scalar load: the register stays unusable until the load is waited for.
    pub(crate) fn load_scalar(&mut self, index: u16, v: u32, u: u32, seq: Seq, op: OpId) -> Result<(), Fault> {
        self.check_scalar_index(index, 1)?;
        self.touch_scalar(index, Touch::Overwrite)?;
        self.put_scalar(index, v, u)?;
        self.any_sgpr_pending = true;
        self.sgpr_pending[usize::from(index)] =
            Pending { scalar: seq, issued_pc: self.current_pc, op, ..Pending::default() };
        Ok(())
    }

    /// VCC, one bit a lane.
    pub(crate) fn vcc(&mut self) -> Result<Scalar, Fault> {
        self.scalar(VCC, (self.lanes / 32) as u16)
    }

    /// An operand that holds one bit a lane.
    pub(crate) fn mask_arg(&mut self, arg: &Arg) -> Result<Scalar, Fault> {
        self.scalar_arg(arg, self.chip.mask_bits())
    }

    /// SCC, which must be defined to be read by `sink`.
    pub(crate) fn scc_for(&self, sink: Sink) -> Result<bool, Fault> {
        if self.scc_undefined {
            return Err(ErrorKind::Undefined { what: "SCC".into(), bits: 1, sink }.into());
        }
        Ok(self.scc)
    }

    pub(crate) fn set_scc(&mut self, value: bool, undefined: bool) {
        self.scc = value;
        self.scc_undefined = undefined;
    }

    /// A scalar operand of `width` bits (32 or 64).
    pub(crate) fn scalar_arg(&mut self, arg: &Arg, width: u32) -> Result<Scalar, Fault> {
        Ok(match arg.kind {
            Kind::S { first, count } => {
                if u32::from(count) * 32 < width {
                    return Err(ErrorKind::Decode(format!("{} is too narrow", scalar_name(first))).into());
                }
                self.scalar(first, (width / 32) as u16)?
            }
            Kind::Special(special) => match special {
                Special::Scc => Scalar { v: u64::from(self.scc), u: u64::from(self.scc_undefined) },
                Special::Execz => Scalar::known(u64::from(self.exec() == 0)),
                Special::Vccz => {
                    let vcc = self.vcc()?;
                    let nonzero = vcc.v & !vcc.u != 0;
                    Scalar { v: u64::from(!nonzero), u: u64::from(!nonzero && vcc.u != 0) }
                }
                // As a 64-bit operand the aperture sits in the high half, as a 32-bit one it is the value.
                Special::SharedBase => aperture(SHARED_APERTURE, width),
                Special::PrivateBase => aperture(PRIVATE_APERTURE, width),
                Special::SharedLimit | Special::PrivateLimit => {
                    return Err(ErrorKind::Unsupported("aperture limits".into()).into());
                }
            },
            // Zeros above it, as LLVM counts on where it makes `s_mov_b64` of a number below 2^32.
            Kind::Literal(bits) => Scalar::known(bits.into()),
            _ => Scalar::known(constant(arg, width, false)?),
        })
    }

    // ---- vector registers ----

    fn vector_index(&self, accumulator: bool, index: u16) -> Result<usize, Fault> {
        let (limit, prefix) = if accumulator { (self.agpr.len(), 'a') } else { (self.vgpr.len(), 'v') };
        if usize::from(index) >= limit {
            let register = format!("{prefix}{index}");
            return Err(ErrorKind::RegisterOutOfRange { register, allocated: limit as u32 }.into());
        }
        Ok(usize::from(index) + if accumulator { self.vgpr.len() } else { 0 })
    }

    fn touch_vector(&mut self, slot: usize, touch: Touch, via: Option<Via>) -> Result<(), Fault> {
        let p = self.pending[slot];
        if p.issued_pc == 0 && p.op == OpId::default() {
            return Ok(());
        }
        if let Some(trace) = &mut self.trace {
            let ordered = matches!((via, p.vm, p.lds), (Some(Via::Vm(_)), 1.., 0) | (Some(Via::Lds(_)), 0, 1..));
            if !(touch == Touch::Overwrite && ordered) {
                trace.touch(p.op, self.current_pc);
            }
        }
        // A load that completes after the pending one by the order of its counter may overwrite it.
        let vm_late = p.vm > self.outstanding.vm.retired && !matches!(via, Some(Via::Vm(_)));
        let lds_late = p.lds > self.outstanding.lds.retired && !matches!(via, Some(Via::Lds(_)));
        let any_late = p.flat > self.outstanding.flat.retired;
        if vm_late || lds_late || any_late {
            let n = self.vgpr.len();
            let register = if slot < n { format!("v{slot}") } else { format!("a{}", slot - n) };
            let how = if touch == Touch::Read { "read" } else { "overwritten" };
            let counter = if vm_late { self.chip.vector_counter() } else { self.chip.lds_counter() };
            let kind = ErrorKind::UseBeforeWait { register, how, counter, issued: p.issued_pc };
            return Err(match self.exec() {
                0 => kind.into(),
                exec => kind.lane(exec.trailing_zeros() as usize),
            });
        }
        Ok(())
    }

    /// All lanes of a vector register.
    pub(crate) fn vector(&mut self, accumulator: bool, index: u16) -> Result<&Lanes, Fault> {
        let slot = self.vector_index(accumulator, index)?;
        self.touch_vector(slot, Touch::Read, None)?;
        Ok(if accumulator { &self.agpr[usize::from(index)] } else { &self.vgpr[usize::from(index)] })
    }

    /// A vector register to write to; the caller writes only the lanes it may.
    pub(crate) fn vector_mut(&mut self, accumulator: bool, index: u16) -> Result<&mut Lanes, Fault> {
        let slot = self.vector_index(accumulator, index)?;
        self.touch_vector(slot, Touch::Overwrite, None)?;
        self.pending[slot] = Pending::default();
        Ok(if accumulator { &mut self.agpr[usize::from(index)] } else { &mut self.vgpr[usize::from(index)] })
    }

    /// A vector register as destination of a load, unusable until that is waited for.
    pub(crate) fn vector_load(
        &mut self,
        accumulator: bool,
        index: u16,
        via: Via,
        op: OpId,
    ) -> Result<&mut Lanes, Fault> {
        let slot = self.vector_index(accumulator, index)?;
        self.touch_vector(slot, Touch::Overwrite, Some(via))?;
        if self.exec() != 0 {
            let mut p = Pending { issued_pc: self.current_pc, op, ..Pending::default() };
            match via {
                Via::Vm(s) => p.vm = s,
                Via::Lds(s) => p.lds = s,
                Via::Flat(vm, lds) => (p.vm, p.flat) = (vm, lds),
            }
            self.pending[slot] = p;
        }
        Ok(if accumulator { &mut self.agpr[usize::from(index)] } else { &mut self.vgpr[usize::from(index)] })
    }

    /// Sets a register before the kernel starts.
    pub(crate) fn preset_vector(&mut self, index: u16, value: Lanes) {
        if let Some(r) = self.vgpr.get_mut(usize::from(index)) {
            *r = value;
        }
    }

    /// Vector operand `arg` of `width` bits (32 or 64) in every lane, scalars and constants spread.
    ///
    /// `float` says how inline float constants of 64-bit operands are encoded.
    pub(crate) fn wide(&mut self, arg: &Arg, width: u32, float: bool) -> Result<Wide, Fault> {
        let mut out = Wide::ZERO;
        self.read_wide(arg, width, float, &mut out)?;
        Ok(out)
    }

    /// Likewise, in place.
    pub(crate) fn read_wide(&mut self, arg: &Arg, width: u32, float: bool, out: &mut Wide) -> Result<(), Fault> {
        let (accumulator, first, count) = match arg.kind {
            Kind::V { first, count } => (false, first, count),
            Kind::A { first, count } => (true, first, count),
            Kind::S { .. } | Kind::Special(_) => {
                let s = self.scalar_arg(arg, width)?;
                out.fill(s.v, s.u);
                return Ok(());
            }
            _ => {
                out.fill(constant(arg, width, float)?, 0);
                return Ok(());
            }
        };
        if u32::from(count) * 32 < width {
            return Err(ErrorKind::Decode("a register operand is too narrow".into()).into());
        }
        let low = self.vector(accumulator, first)?;
        for i in 0..LANES {
            out.v[i] = u64::from(low.v[i]);
            out.u[i] = u64::from(low.u[i]);
        }
        if width == 64 {
            let high = self.vector(accumulator, first + 1)?;
            for i in 0..LANES {
                out.v[i] |= u64::from(high.v[i]) << 32;
                out.u[i] |= u64::from(high.u[i]) << 32;
            }
        }
        Ok(())
    }

    /// Writes the lanes of `mask` of a vector register operand.
    pub(crate) fn set_wide(&mut self, arg: &Arg, width: u32, value: &Wide, mask: u64) -> Result<(), Fault> {
        let (accumulator, first, count) = vector_range(arg)?;
        if u32::from(count) * 32 < width {
            return Err(ErrorKind::Decode("a destination is too narrow".into()).into());
        }
        for half in 0..(width / 32) as u16 {
            let r = self.vector_mut(accumulator, first + half)?;
            let shift = 32 * half;
            if mask == u64::MAX {
                for i in 0..LANES {
                    r.v[i] = (value.v[i] >> shift) as u32;
                    r.u[i] = (value.u[i] >> shift) as u32;
                }
            } else {
                for i in lanes_of(mask) {
                    r.v[i] = (value.v[i] >> shift) as u32;
                    r.u[i] = (value.u[i] >> shift) as u32;
                }
            }
        }
        Ok(())
    }
}

fn aperture(base: u32, width: u32) -> Scalar {
    Scalar::known(if width == 64 { u64::from(base) << 32 } else { u64::from(base) })
}

/// Register file, first register and count of a vector register operand.
pub(crate) fn vector_range(arg: &Arg) -> Result<(bool, u16, u16), Fault> {
    match arg.kind {
        Kind::V { first, count } => Ok((false, first, count)),
        Kind::A { first, count } => Ok((true, first, count)),
        _ => Err(ErrorKind::Decode("a vector register was expected".into()).into()),
    }
}

/// First register and count of a scalar register operand.
pub(crate) fn scalar_range(arg: &Arg) -> Result<(u16, u16), Fault> {
    match arg.kind {
        Kind::S { first, count } => Ok((first, count)),
        _ => Err(ErrorKind::Decode("a scalar register was expected".into()).into()),
    }
}

/// The lanes of a mask, ascending.
pub(crate) fn lanes_of(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        if mask == 0 {
            return None;
        }
        let lane = mask.trailing_zeros() as usize;
        mask &= mask - 1;
        Some(lane)
    })
}

/// Bits of a constant operand of `width` bits: 16, 32 or 64.
pub(crate) fn constant(arg: &Arg, width: u32, float: bool) -> Result<u64, Fault> {
    const HALF_PER_TURN: f64 = 0.159_154_94;
    Ok(match arg.kind {
        Kind::Int(i) => match width {
            64 => i as u64,
            16 => u64::from(i as u16),
            _ => u64::from(i as u32),
        },
        Kind::Float(f) => {
            let per_turn = (f - HALF_PER_TURN).abs() < 1e-8;
            match width {
                64 if per_turn => 0x3FC4_5F30_6DC9_C882,
                64 => f.to_bits(),
                16 if per_turn => 0x3118,
                16 => u64::from(half::f16::from_f64(f).to_bits()),
                _ if per_turn => 0x3E22_F983,
                _ => u64::from((f as f32).to_bits()),
            }
        }
        Kind::Literal(l) if width == 64 && float => u64::from(l) << 32,
        Kind::Literal(l) if width == 64 && l >> 31 != 0 => {
            // A vector operand: chips differ in whether they extend it by sign or by zero.
            return Err(
                ErrorKind::Unsupported("64-bit operand from a 32-bit literal with the top bit set".into()).into()
            );
        }
        Kind::Literal(l) => u64::from(l),
        _ => return Err(ErrorKind::Decode("an operand that is no value".into()).into()),
    })
}
