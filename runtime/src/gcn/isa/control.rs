//! Program flow, waits, barriers, and what changes no value (SOPP, part of SOP1 and SOPK).

use crate::gcn::decode::{Inst, Kind, M0};
use crate::gcn::error::{ErrorKind, Fault, Sink, unsupported};
use crate::gcn::isa::chip::Family;
use crate::gcn::isa::{Context, Flow};
use crate::gcn::state::{Scalar, scalar_range};
use crate::gcn::trace::{Class, Event};
use crate::visibility::Reach;

/// Condition of a branch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Branch {
    /// Always.
    Always,
    /// SCC equals this.
    Scc(bool),
    /// VCC is zero (or not).
    VccZero(bool),
    /// EXEC is zero (or not).
    ExecZero(bool),
}

/// Control instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Control {
    /// Without effect on results: `s_nop`, priorities, cache hints.
    Hint,
    /// Lets other waves run.
    Sleep,
    /// End of the wave.
    End,
    /// Stop with an error.
    Trap,
    /// Workgroup barrier.
    Barrier,
    /// Its first half: this wave has arrived.
    Signal,
    /// Its second half: all have.
    BarrierWait,
    /// Earlier stores are to go through the caches, as far as the scope says.
    WriteBack,
    /// Caches are to drop what they hold, as far as the scope says.
    Invalidate,
    /// Both.
    WriteBackInvalidate,
    /// `s_waitcnt` and its like.
    Wait,
    /// Relative branch.
    Branch(Branch),
    /// Address of the next instruction.
    GetPc,
    /// Jump to a register pair.
    SetPc,
    /// Jump to a register pair, keeping the return address.
    SwapPc,
    /// Relative call.
    Call,
    /// Read a hardware register field.
    GetReg,
    /// Write one.
    SetReg,
    /// `s_set_gpr_idx_on`: vector operands are indexed by M0 from here on.
    IndexOn,
    /// `s_set_gpr_idx_off`.
    IndexOff,
    /// `s_set_gpr_idx_idx`: another index.
    Index,
    /// `s_set_gpr_idx_mode`: other operands.
    IndexMode,
}

use Control::{
    Barrier, BarrierWait, Call, End, GetPc, GetReg, Hint, Index, IndexMode, IndexOff, IndexOn, Invalidate, SetPc,
    SetReg, Signal, Sleep, SwapPc, Trap, Wait, WriteBack, WriteBackInvalidate,
};

/// What gfx9 alone has.
pub(crate) static GFX9: &[(&str, Control)] = &[
    ("s_dcache_wb", Hint),
    ("s_dcache_inv_vol", Hint),
    ("s_dcache_wb_vol", Hint),
    ("buffer_wbl2", WriteBack),
    ("buffer_inv", Invalidate),
    ("s_barrier", Barrier),
    ("s_waitcnt", Wait),
    ("s_set_gpr_idx_on", IndexOn),
    ("s_set_gpr_idx_off", IndexOff),
    ("s_set_gpr_idx_idx", Index),
    ("s_set_gpr_idx_mode", IndexMode),
];

/// What gfx12 alone has.
pub(crate) static GFX12: &[(&str, Control)] = &[
    // Of interest for speed, the second one also for what hardware leaves to software: see `hazard`.
    ("s_delay_alu", Hint),
    ("s_wait_alu", Hint),
    ("s_wait_idle", Hint),
    ("s_clause", Hint),
    ("s_sendmsg", Hint),
    ("s_code_end", Trap),
    ("global_inv", Invalidate),
    ("global_wb", WriteBack),
    ("global_wbinv", WriteBackInvalidate),
    ("s_barrier_signal", Signal),
    ("s_barrier_wait", BarrierWait),
    ("s_wait_loadcnt", Wait),
    ("s_wait_storecnt", Wait),
    ("s_wait_samplecnt", Wait),
    ("s_wait_bvhcnt", Wait),
    ("s_wait_expcnt", Wait),
    ("s_wait_dscnt", Wait),
    ("s_wait_kmcnt", Wait),
    ("s_wait_loadcnt_dscnt", Wait),
    ("s_wait_storecnt_dscnt", Wait),
];

/// What all have.
pub(crate) static TABLE: &[(&str, Control)] = &[
    ("s_nop", Hint),
    ("s_setprio", Hint),
    ("s_sethalt", Trap),
    ("s_trap", Trap),
    ("s_icache_inv", Hint),
    ("s_dcache_inv", Hint),
    ("s_sleep", Sleep),
    ("s_endpgm", End),
    ("s_branch", Control::Branch(Branch::Always)),
    ("s_cbranch_scc0", Control::Branch(Branch::Scc(false))),
    ("s_cbranch_scc1", Control::Branch(Branch::Scc(true))),
    ("s_cbranch_vccz", Control::Branch(Branch::VccZero(true))),
    ("s_cbranch_vccnz", Control::Branch(Branch::VccZero(false))),
    ("s_cbranch_execz", Control::Branch(Branch::ExecZero(true))),
    ("s_cbranch_execnz", Control::Branch(Branch::ExecZero(false))),
    ("s_getpc_b64", GetPc),
    ("s_setpc_b64", SetPc),
    ("s_swappc_b64", SwapPc),
    ("s_call_b64", Call),
    ("s_getreg_b32", GetReg),
    ("s_setreg_b32", SetReg),
    ("s_setreg_imm32_b32", SetReg),
];

impl Control {
    pub(crate) fn is_plain(self) -> bool {
        matches!(self, Hint | WriteBack | Invalidate | WriteBackInvalidate | Sleep | End | Trap | Barrier | Wait)
    }

    pub(crate) fn operands(self) -> (usize, usize) {
        match self {
            Hint | WriteBack | Invalidate | WriteBackInvalidate | Sleep | End | Trap | Barrier | Wait | IndexOff => {
                (0, 0)
            }
            Self::Branch(_) | GetPc | SetPc | Index | IndexMode | Signal | BarrierWait => (1, 1),
            SwapPc | Call | GetReg | SetReg | IndexOn => (2, 2),
        }
    }
}

/// How far an instruction goes through the caches, by its text.
pub(crate) fn reach(text: &str) -> Option<Reach> {
    let has = |modifier: &str| text.split([' ', ',']).any(|word| word == modifier);
    match (has("sc0"), has("sc1")) {
        (true, true) => Some(Reach::System),
        (false, true) => Some(Reach::Device),
        (true, false) => Some(Reach::Workgroup),
        _ if has("scope:SCOPE_SYS") => Some(Reach::System),
        _ if has("scope:SCOPE_DEV") => Some(Reach::Device),
        _ if has("scope:SCOPE_SE") => Some(Reach::Workgroup),
        _ => None,
    }
}

/// Likewise an atomic operation, which the device's last cache makes, unless it goes to the system; `sc0` asks for the old value.
pub(crate) fn reach_of_atomic(text: &str) -> Option<Reach> {
    let system = text.split([' ', ',']).any(|word| word == "sc1" || word == "scope:SCOPE_SYS");
    Some(if system { Reach::System } else { Reach::Device })
}

/// The wave has arrived at the workgroup's barrier.
fn arrive(cx: &mut Context<'_, '_>) {
    let pc = cx.wave.current_pc;
    if let Some(trace) = &mut cx.wave.trace {
        trace.events.push(Event::Barrier { pc });
    }
    cx.wave.arrived = Some(cx.wave.outstanding);
}

/// Checks that the operand names the workgroup's own barrier, number −1.
fn workgroup_barrier(inst: &Inst) -> Result<(), Fault> {
    match inst.args[0].kind {
        Kind::Int(-1) | Kind::Literal(0xFFFF | u32::MAX) => Ok(()),
        _ => unsupported(format!("named barrier in `{}`", inst.text)),
    }
}

/// Target of a relative branch: the operand counts words from the next instruction, modulo 2^16.
fn target(cx: &Context<'_, '_>, inst: &Inst, operand: usize) -> Result<u64, Fault> {
    let words = match inst.args[operand].kind {
        Kind::Int(n) => n as i16,
        Kind::Literal(n) => n as i16,
        _ => return unsupported("branch target that is no number"),
    };
    Ok(cx.wave.current_pc.wrapping_add(4).wrapping_add_signed(i64::from(words) * 4))
}

/// Fields of the MODE register: first bit, bits.
const MODE_DEFINED: u32 = 0x3FF;
/// Those that gfx12 has too.
const ROUND_AND_DENORM: u32 = 0xFF;

fn mode_bits(cx: &Context<'_, '_>) -> u32 {
    let m = cx.wave.mode;
    u32::from(m.round32)
        | u32::from(m.round64) << 2
        | u32::from(m.denorm32) << 4
        | u32::from(m.denorm64) << 6
        | u32::from(m.dx10_clamp) << 8
        | u32::from(m.ieee) << 9
}

fn mode_field(kind: &Kind) -> Result<(u32, u32), Fault> {
    match kind {
        Kind::HwReg { id, offset, size }
            if matches!(id.as_str(), "HW_REG_MODE" | "HW_REG_WAVE_MODE") && *size >= 1 && offset + size <= 32 =>
        {
            Ok((*offset, *size))
        }
        Kind::HwReg { id, offset, size } => unsupported(format!("hardware register {id}, bits {offset}+{size}")),
        _ => unsupported("an operand that is no hardware register"),
    }
}

pub(crate) fn exec(cx: &mut Context<'_, '_>, op: Control, inst: &Inst) -> Result<Flow, Fault> {
    let next = cx.wave.current_pc + u64::from(inst.size);
    let jump = |target: Scalar| target.defined(|| "the jump target".into(), Sink::Branch).map(Flow::Jump);
    match op {
        Hint => Ok(Flow::Next),
        WriteBack | WriteBackInvalidate => {
            // Counted like a store: what waits for it waits for what it writes back.
            let pc = cx.wave.current_pc;
            let class = if cx.wave.chip.counts_stores_apart() {
                cx.wave.outstanding.issue_store();
                Class::Store
            } else {
                cx.wave.outstanding.issue_vm();
                Class::Vm
            };
            if let Some(trace) = &mut cx.wave.trace {
                trace.issue(pc, class);
            }
            if let Some(reach) = reach(&inst.text) {
                cx.space.write_back(reach);
                if op == WriteBackInvalidate {
                    cx.space.invalidate(reach);
                }
            }
            Ok(Flow::Next)
        }
        Invalidate => {
            // Loads come from no cache here; those that could have are errors.
            if let Some(reach) = reach(&inst.text) {
                cx.space.invalidate(reach);
            }
            Ok(Flow::Next)
        }
        Sleep => Ok(Flow::Yield),
        End => Ok(Flow::End),
        Trap => Err(ErrorKind::Trap(inst.text.clone()).into()),
        Barrier => {
            arrive(cx);
            Ok(Flow::Barrier)
        }
        Signal => {
            workgroup_barrier(inst)?;
            if cx.wave.arrived.is_some() {
                return Err(ErrorKind::Trap("a second signal to the barrier before the wait".into()).into());
            }
            arrive(cx);
            Ok(Flow::Next)
        }
        BarrierWait => {
            workgroup_barrier(inst)?;
            match cx.wave.arrived {
                Some(_) => Ok(Flow::Barrier),
                None => Err(ErrorKind::Trap("a wait for the barrier without a signal to it".into()).into()),
            }
        }
        Wait => {
            let pc = cx.wave.current_pc;
            if let Some(trace) = &mut cx.wave.trace {
                trace.events.push(Event::Wait { pc, counts: inst.mods.wait });
            }
            cx.wave.wait(inst.mods.wait);
            cx.space.waited(cx.wave.stores_retired());
            Ok(Flow::Next)
        }
        Control::Branch(condition) => {
            let target = target(cx, inst, 0)?;
            let taken = match condition {
                Branch::Always => true,
                Branch::Scc(value) => cx.wave.scc_for(Sink::Branch)? == value,
                Branch::ExecZero(zero) => (cx.wave.exec() == 0) == zero,
                Branch::VccZero(zero) => {
                    let vcc = cx.wave.vcc()?;
                    if vcc.v & !vcc.u == 0 && vcc.u != 0 {
                        let kind = ErrorKind::Undefined { what: "vcc".into(), bits: vcc.u, sink: Sink::Branch };
                        return Err(kind.lane(vcc.u.trailing_zeros() as usize));
                    }
                    (vcc.v == 0) == zero
                }
            };
            Ok(if taken { Flow::Jump(target) } else { Flow::Next })
        }
        GetPc => {
            let (first, count) = scalar_range(&inst.args[0])?;
            let address = cx.space.code_address(next);
            cx.wave.set_scalar(first, count, Scalar::known(address))?;
            Ok(Flow::Next)
        }
        SetPc => {
            let s = cx.wave.scalar_arg(&inst.args[0], 64)?;
            jump(s).map(|f| from_address(cx, f))
        }
        SwapPc => {
            let s = cx.wave.scalar_arg(&inst.args[1], 64)?;
            let (first, count) = scalar_range(&inst.args[0])?;
            let address = cx.space.code_address(next);
            cx.wave.set_scalar(first, count, Scalar::known(address))?;
            jump(s).map(|f| from_address(cx, f))
        }
        Call => {
            let (first, count) = scalar_range(&inst.args[0])?;
            let address = cx.space.code_address(next);
            cx.wave.set_scalar(first, count, Scalar::known(address))?;
            target(cx, inst, 1).map(Flow::Jump)
        }
        GetReg => {
            let (offset, size) = mode_field(&inst.args[1].kind)?;
            let (first, count) = scalar_range(&inst.args[0])?;
            let value = u64::from(mode_bits(cx) >> offset) & ((1 << size) - 1);
            cx.wave.set_scalar(first, count, Scalar::known(value))?;
            Ok(Flow::Next)
        }
        SetReg => {
            let (offset, size) = mode_field(&inst.args[0].kind)?;
            let s = cx.wave.scalar_arg(&inst.args[1], 32)?;
            let value = s.defined(|| "the new mode".into(), Sink::Control)? as u32;
            let mask = (((1u64 << size) - 1) << offset) as u32;
            let bits = mode_bits(cx) & !mask | value << offset & mask;
            let defined = if cx.wave.chip.family == Family::Gfx12 { ROUND_AND_DENORM } else { MODE_DEFINED };
            let fixed = mode_bits(cx) & MODE_DEFINED & !defined;
            if bits & !defined != fixed {
                return unsupported(format!("MODE bits {:#x}", bits & !defined));
            }
            let m = &mut cx.wave.mode;
            m.round32 = (bits & 3) as u8;
            m.round64 = (bits >> 2 & 3) as u8;
            m.denorm32 = (bits >> 4 & 3) as u8;
            m.denorm64 = (bits >> 6 & 3) as u8;
            m.dx10_clamp = bits >> 8 & 1 == 1;
            m.ieee = bits >> 9 & 1 == 1;
            if m.round32 != 0 || m.round64 != 0 {
                return unsupported("a rounding mode other than nearest even");
            }
            Ok(Flow::Next)
        }
        IndexOn => {
            let index = cx.wave.scalar_arg(&inst.args[0], 32)?;
            let operands = cx.wave.scalar_arg(&inst.args[1], 32)?;
            set_m0(cx, index, 0, 8)?;
            set_m0(cx, operands, 12, 4)?;
            cx.wave.indexed = true;
            Ok(Flow::Next)
        }
        IndexOff => {
            cx.wave.indexed = false;
            Ok(Flow::Next)
        }
        Index => {
            let index = cx.wave.scalar_arg(&inst.args[0], 32)?;
            set_m0(cx, index, 0, 8)?;
            Ok(Flow::Next)
        }
        IndexMode => {
            let operands = cx.wave.scalar_arg(&inst.args[0], 32)?;
            set_m0(cx, operands, 12, 4)?;
            Ok(Flow::Next)
        }
    }
}

/// Puts `width` bits from `shift` up into M0: the register index (bits 0–7), the indexed operands (bits 12–15).
fn set_m0(cx: &mut Context<'_, '_>, value: Scalar, shift: u32, width: u32) -> Result<(), Fault> {
    let m0 = cx.wave.scalar(M0, 1)?;
    let mask = ((1u64 << width) - 1) << shift;
    let put = |old: u64, new: u64| old & !mask | new << shift & mask;
    cx.wave.set_scalar(M0, 1, Scalar { v: put(m0.v, value.v), u: put(m0.u, value.u) })
}

/// A jump to a device address, as an address in the code object.
fn from_address(cx: &Context<'_, '_>, flow: Flow) -> Flow {
    match flow {
        Flow::Jump(address) => Flow::Jump(cx.space.code_offset(address)),
        other => other,
    }
}
