//! What two instructions of a wave need between them, because hardware does not hold back the second one until the result of the
//! first is there.
//!
//! One table, [`RULES`], says which pairs there are and what they need; `History` watches a wave. On CDNA they need wait states. A
//! wait state is one instruction issued by the wave, `s_nop n` is n + 1 of them. Sources: AMD's ISA guides for CDNA 3 and 4, "manually
//! inserted wait states"; where these say less, what LLVM 22 inserts, measured instruction by instruction.
//!
//! RDNA 4 interlocks all of these and has others, of which `gfx12` tells.

mod gfx12;

use crate::gcn::decode::{EXEC, Inst, Kind, M0, Sel, VCC};
use crate::gcn::error::{ErrorKind, Fault};
use crate::gcn::isa::Op;
use crate::gcn::isa::control::{Branch, Control};
use crate::gcn::isa::transfer;
use crate::gcn::isa::vop::Special;
use crate::gcn::state::scalar_name;

pub(crate) use gfx12::History as Gfx12History;

use gfx12::AluWait;

/// What a rule asks for, mostly wait states.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum States {
    /// So many.
    Fixed(u32),
    /// The matrix instruction's passes and so many more; on gfx950 one more yet, unless its operands are f32.
    Passes {
        /// After products of f32.
        f32: u32,
        /// After all others.
        other: u32,
    },
    /// So many passes fewer than it has; nothing after products of f32.
    PassesLess(u32),
    /// An `s_wait_alu` that waits for this counter, or an access of scalar memory or of a buffer. On gfx1201.
    Alu(&'static str),
    /// One instruction of the vector ALU. On gfx1201.
    Vector,
}

/// One pair of instructions that must be apart.
#[derive(Debug)]
pub struct Rule {
    /// Name, as errors and the documentation have it.
    pub name: &'static str,
    /// The earlier instruction.
    pub first: &'static str,
    /// The later one.
    pub then: &'static str,
    /// What is needed between them.
    pub states: States,
}

macro_rules! rules {
    ($($id:ident $name:literal: $first:literal then $then:literal, $states:expr;)*) => {
        /// Numbers of the rules.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        enum Id { $($id),* }
        /// Every rule.
        pub static RULES: &[Rule] = &[$(Rule { name: $name, first: $first, then: $then, states: $states }),*];
    };
}

rules! {
    ValuSgprVmem "valu-sgpr-vmem": "VALU writes an SGPR or VCC" then "vector memory reads it", States::Fixed(5);
    ValuSgprLane "valu-sgpr-lane": "VALU writes an SGPR or VCC" then "v_readlane or v_writelane takes its lane number from it", States::Fixed(4);
    ValuSgprValu "valu-sgpr-valu": "VALU writes an SGPR or VCC" then "VALU reads it", States::Fixed(2);
    ValuVccDivFmas "valu-vcc-div-fmas": "VALU writes VCC" then "v_div_fmas", States::Fixed(4);
    ValuExecLane "valu-exec-lane": "VALU writes EXEC" then "v_readlane, v_readfirstlane or v_writelane", States::Fixed(4);
    ValuExecDpp "valu-exec-dpp": "VALU writes EXEC" then "DPP", States::Fixed(5);
    ValuExecPermlane "valu-exec-permlane": "VALU writes EXEC" then "v_permlane16_swap or v_permlane32_swap", States::Fixed(4);
    ValuExecMatrix "valu-exec-mfma": "VALU writes EXEC" then "MFMA", States::Fixed(4);
    ValuVgprLane "valu-vgpr-lane": "VALU writes a VGPR" then "v_readlane or v_readfirstlane reads it", States::Fixed(1);
    ValuVgprDpp "valu-vgpr-dpp": "VALU writes a VGPR" then "DPP reads it", States::Fixed(2);
    ValuVgprPermlane "valu-vgpr-permlane": "VALU writes a VGPR" then "v_permlane16_swap or v_permlane32_swap exchanges it", States::Fixed(2);
    ValuVgprMatrix "valu-vgpr-mfma": "VALU writes a VGPR" then "MFMA reads it", States::Fixed(2);
    TransValu "trans-valu": "v_exp, v_log, v_rcp, v_rsq, v_sqrt, v_sin or v_cos writes a VGPR" then "another kind of VALU reads it", States::Fixed(1);
    PartValu "part-valu": "SDWA or op_sel writes a part of a VGPR" then "VALU reads or writes it", States::Fixed(1);
    DotOther "dot-other": "v_dot writes a VGPR" then "another instruction than the same one's addend reads or writes it", States::Fixed(3);
    WideStore "wide-store": "a store of more than 8 bytes, a buffer's only without a scalar offset register" then "VALU or MFMA writes its data", States::Fixed(2);
    M0Lds "m0-load-lds": "SALU writes M0" then "a load into LDS", States::Fixed(1);
    SetregGetreg "setreg": "s_setreg" then "s_getreg or s_setreg of the same register", States::Fixed(2);
    MatrixRead "mfma-read": "MFMA writes a VGPR" then "VALU, memory or LDS reads it", States::Passes { f32: 2, other: 3 };
    MatrixOverwrite "mfma-overwrite": "MFMA writes a VGPR" then "VALU, memory or LDS writes it", States::Passes { f32: 2, other: 3 };
    MatrixAddend "mfma-addend-overwrite": "MFMA reads a VGPR as C" then "VALU, memory or LDS writes it", States::PassesLess(1);
    MatrixMatrixAb "mfma-mfma-ab": "MFMA writes a VGPR" then "MFMA reads it as A, B or a scale", States::Passes { f32: 2, other: 3 };
    MatrixMatrixC "mfma-mfma-c": "MFMA writes VGPRs" then "MFMA reads a part of them as C (all of them: none; not after f32 before other products)", States::Passes { f32: 0, other: 1 };
    SaluSgprRead "salu-sgpr-read": "SALU writes an SGPR or VCC, of which, or of whose pair, VALU has read one before" then "VALU or SALU reads it", States::Alu("sa_sdst");
    ValuSgprRead "valu-sgpr-read": "VALU writes an SGPR, of which, or of whose pair, VALU has read one before" then "VALU reads it, unless SALU has read what VALU wrote", States::Alu("va_sdst");
    ValuVccRead "valu-vcc-read": "VALU writes VCC, which VALU has read before" then "VALU reads it, unless SALU has read it", States::Alu("va_vcc");
    WmmaAb "wmma-ab": "WMMA writes a VGPR" then "WMMA reads it as A or B", States::Vector;
    CmpxPermlane "cmpx-permlane": "v_cmpx writes EXEC" then "v_permlane16 or v_permlanex16 (v_nop does not count)", States::Vector;
}

impl Id {
    fn rule(self) -> &'static Rule {
        &RULES[self as usize]
    }
}

/// Register file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum File {
    #[default]
    Vector,
    Accumulation,
    Scalar,
}

/// Registers `first .. first + count`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Range {
    file: File,
    first: u16,
    count: u16,
}

impl Range {
    fn of(kind: &Kind) -> Option<Self> {
        Some(match *kind {
            Kind::V { first, count } => Self { file: File::Vector, first, count },
            Kind::A { first, count } => Self { file: File::Accumulation, first, count },
            Kind::S { first, count } => Self { file: File::Scalar, first, count },
            _ => return None,
        })
    }

    /// The first register that both have.
    fn common(self, other: Self) -> Option<u16> {
        let start = self.first.max(other.first);
        let end = (self.first + self.count).min(other.first + other.count);
        (self.file == other.file && start < end).then_some(start)
    }

    fn name(self, register: u16) -> String {
        match self.file {
            File::Vector => format!("v{register}"),
            File::Accumulation => format!("a{register}"),
            File::Scalar => scalar_name(register),
        }
    }
}

/// At most six ranges.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Ranges {
    n: u8,
    items: [Range; 6],
}

impl Ranges {
    fn add(&mut self, kind: &Kind) {
        if let Some(range) = Range::of(kind)
            && usize::from(self.n) < self.items.len()
        {
            self.items[usize::from(self.n)] = range;
            self.n += 1;
        }
    }

    fn iter(&self) -> impl Iterator<Item = Range> {
        self.items.into_iter().take(usize::from(self.n))
    }

    /// The name of a register that is in both, of those files that `wanted` takes.
    fn common(&self, other: &Self, wanted: impl Fn(File) -> bool) -> Option<String> {
        self.iter()
            .filter(|r| wanted(r.file))
            .find_map(|a| other.iter().find_map(|b| a.common(b).map(|register| a.name(register))))
    }
}

/// What part of a wave issues an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Class {
    /// Branches, waits, messages.
    #[default]
    Control,
    Salu,
    Smem,
    Valu,
    /// Matrix product, its passes, and whether its operands are f32.
    Matrix {
        passes: u32,
        f32: bool,
    },
    /// Buffer, global, flat and scratch memory.
    Vmem,
    Lds,
}

/// Facts about an instruction that are the same each time it is executed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Facts {
    pub(crate) class: Class,
    /// Wait states that it is.
    states: u32,
    reads: Ranges,
    writes: Ranges,
    /// Of a matrix product: C. Of a wide store: its data.
    third: Option<Range>,
    /// The scalar that holds a lane number.
    lane: Option<Range>,
    /// Identifies `v_dot` instructions.
    dot: Option<&'static str>,
    writes_exec: bool,
    transcendental: bool,
    part: bool,
    dpp: bool,
    moves_lane: bool,
    reads_lane: bool,
    permlane_swap: bool,
    div_fmas: bool,
    to_lds: bool,
    /// `s_getreg` or `s_setreg`, the latter.
    mode: bool,
    sets_mode: bool,
    wide_store: bool,
    /// Reads VCC and does not say so.
    reads_vcc: bool,
    /// `v_permlane16` or `v_permlanex16`.
    permlane16: bool,
    /// `v_nop`.
    nop: bool,
    /// Buffer memory.
    buffer: bool,
    /// `s_wait_alu`.
    alu_wait: Option<AluWait>,
}

const TRANSCENDENTAL: [&str; 7] = ["v_exp_", "v_log_", "v_rcp_", "v_rsq_", "v_sqrt_", "v_sin_", "v_cos_"];

impl Facts {
    /// Of a decoded instruction that has none yet.
    pub(crate) fn of(inst: &Inst) -> Self {
        let mut f = Self { states: 1, ..Self::default() };
        let args = &inst.args;
        // How many operands in front are results; whether these are sources as well.
        let mut both = false;
        let results;
        match inst.op {
            Op::Control(control) => {
                f.sets_mode = control == Control::SetReg;
                f.mode = f.sets_mode || control == Control::GetReg;
                if let Some(n) = inst.text.strip_prefix("s_nop ").and_then(|n| n.parse::<u32>().ok()) {
                    f.states = n.min(15) + 1;
                }
                f.reads_vcc = matches!(control, Control::Branch(Branch::VccZero(_)));
                f.alu_wait = match inst.text.split_once(' ') {
                    Some(("s_wait_alu", operands)) => Some(AluWait::of(operands)),
                    None if inst.text == "s_wait_idle" => Some(AluWait::ALL),
                    _ => None,
                };
                let writes = [Control::GetReg, Control::GetPc, Control::SwapPc, Control::Call];
                results = usize::from(writes.contains(&control));
            }
            Op::Sop(_) => {
                let is = |prefixes: &[&str]| prefixes.iter().any(|prefix| inst.text.starts_with(prefix));
                (f.class, results) = (Class::Salu, usize::from(!is(&["s_cmp", "s_bitcmp"])));
                both = is(&["s_addk", "s_mulk", "s_bitset"]);
                if is(&["v_s_"]) {
                    // Scalars by name only.
                    (f.class, f.transcendental) = (Class::Valu, true);
                }
            }
            Op::Smem(_) => (f.class, results) = (Class::Smem, 1),
            Op::Vop(row) => {
                f.class = Class::Valu;
                let special = row.special();
                (results, both) = match special {
                    Some(Special::Carry { .. } | Special::MadWide { .. } | Special::DivScale) => (2, false),
                    Some(Special::Swap | Special::PermlaneSwap(_)) => (2, true),
                    _ => (1, row.accumulates()),
                };
                f.transcendental = TRANSCENDENTAL.iter().any(|name| row.name.starts_with(name));
                f.dot = row.name.starts_with("v_dot").then_some(row.name);
                f.part = inst.mods.sdwa.is_some_and(|s| s.dst != Sel::Dword) || inst.mods.op_sel_result;
                f.reads_lane = matches!(special, Some(Special::ReadLane | Special::ReadFirstLane));
                f.moves_lane = f.reads_lane || special == Some(Special::WriteLane);
                if matches!(special, Some(Special::ReadLane | Special::WriteLane)) {
                    f.lane = args.get(2).and_then(|a| Range::of(&a.kind)).filter(|r| r.file == File::Scalar);
                }
                f.permlane_swap = matches!(special, Some(Special::PermlaneSwap(_)));
                f.div_fmas = special == Some(Special::DivFmas);
                f.reads_vcc = f.div_fmas;
                f.permlane16 = matches!(special, Some(Special::Permlane16 { .. }));
                f.nop = special == Some(Special::Nop);
            }
            Op::Vopc(compare) => {
                f.class = Class::Valu;
                f.writes_exec = compare.writes_exec();
                results = usize::from(compare.names_result());
            }
            Op::Vop3p(_) => (f.class, results) = (Class::Valu, 1),
            Op::Matrix(row) => {
                f.class = Class::Matrix { passes: row.passes(inst), f32: row.multiplies_f32() };
                results = 1;
                f.third = args.get(3).and_then(|a| Range::of(&a.kind));
            }
            Op::Ds(row) => (f.class, results) = (Class::Lds, row.results()),
            Op::Mubuf(row) | Op::Flat(_, row) => {
                f.class = Class::Vmem;
                f.buffer = matches!(inst.op, Op::Mubuf(_));
                f.to_lds = inst.mods.lds || matches!(row.kind, transfer::Kind::LoadLds { .. });
                let data = match row.kind {
                    transfer::Kind::Store { bytes, .. } if bytes > 8 => {
                        // A buffer's scalar offset in a register takes the cycle that is missing.
                        let offset = matches!(inst.op, Op::Mubuf(_)) && matches!(args[3].kind, Kind::S { .. });
                        let data = usize::from(!matches!(inst.op, Op::Mubuf(_)));
                        (!offset).then_some(data)
                    }
                    _ => None,
                };
                f.third = data.and_then(|i| Range::of(&args[i].kind));
                f.wide_store = f.third.is_some();
                results = match row.kind {
                    transfer::Kind::Load { .. } => usize::from(!f.to_lds),
                    transfer::Kind::Atomic { .. } => usize::from(inst.mods.sc0),
                    _ => 0,
                };
                if matches!(inst.op, Op::Mubuf(_)) && row.is_atomic() && results == 1 {
                    // The register of the operand takes the old value.
                    both = true;
                }
            }
        }
        f.dpp = inst.mods.dpp.is_some();
        for (i, arg) in args.iter().enumerate() {
            if i < results {
                f.writes.add(&arg.kind);
            }
            // A DPP instruction keeps what it does not write of a vector register.
            let kept = f.dpp && i == 0 && Range::of(&arg.kind).is_some_and(|r| r.file != File::Scalar);
            if i >= results || both || kept {
                f.reads.add(&arg.kind);
            }
        }
        if f.class == Class::Valu && f.writes.iter().any(|r| r.common(EXEC_RANGE).is_some()) {
            f.writes_exec = true;
        }
        f
    }

    /// What a matrix product reads beside C.
    fn factors(&self) -> Ranges {
        // C is the third source; the scales stand behind it.
        let Some(c) = self.third else { return self.reads };
        let mut factors = Ranges::default();
        for range in self.reads.iter().filter(|range| *range != c) {
            factors.items[usize::from(factors.n)] = range;
            factors.n += 1;
        }
        factors
    }

    /// Whether it takes the slow unit of the vector ALU.
    pub(crate) fn is_transcendental(&self) -> bool {
        self.transcendental
    }

    /// Whether anything that follows may have to keep a distance from it: for how long at most.
    fn reach(&self, extra: u32) -> u32 {
        match self.class {
            Class::Matrix { passes, .. } => passes + 3 + extra,
            Class::Valu => {
                if self.writes_exec || self.writes.iter().any(|r| r.file == File::Scalar) {
                    5
                } else if self.dot.is_some() {
                    3
                } else {
                    2
                }
            }
            Class::Vmem if self.wide_store => 2,
            Class::Salu if self.writes.iter().any(|r| r.common(M0_RANGE).is_some()) => 1,
            Class::Control if self.sets_mode => 2,
            _ => 0,
        }
    }
}

const EXEC_RANGE: Range = Range { file: File::Scalar, first: EXEC, count: 2 };
const VCC_RANGE: Range = Range { file: File::Scalar, first: VCC, count: 2 };
const M0_RANGE: Range = Range { file: File::Scalar, first: M0, count: 1 };

/// An instruction that others may have to keep a distance from.
struct Entry {
    facts: Facts,
    pc: u64,
    /// Wait states before it.
    at: u64,
    /// From here on nobody has to.
    until: u64,
}

/// What a wave has issued lately.
#[derive(Default)]
pub(crate) struct History {
    /// Wait states so far.
    now: u64,
    entries: Vec<Entry>,
}

fn is_vector(file: File) -> bool {
    file != File::Scalar
}

fn is_scalar(file: File) -> bool {
    file == File::Scalar
}

/// The rule that a pair of instructions falls under and the register that it is about, however far they are apart.
fn rules(first: &Facts, then: &Facts, gfx950: bool, mut found: impl FnMut(Id, String)) {
    let mut add = |id, register: Option<String>| {
        if let Some(register) = register {
            found(id, register);
        }
    };
    let third = |writes: &Ranges| {
        let third = first.third?;
        writes.iter().find_map(|w| w.common(third)).map(|register| third.name(register))
    };
    let valu = then.class == Class::Valu;
    let matrix = matches!(then.class, Class::Matrix { .. });
    let memory = matches!(then.class, Class::Vmem | Class::Lds);
    match first.class {
        Class::Matrix { .. } if valu || memory => {
            add(Id::MatrixRead, first.writes.common(&then.reads, is_vector));
            add(Id::MatrixOverwrite, first.writes.common(&then.writes, is_vector));
            add(Id::MatrixAddend, third(&then.writes));
        }
        Class::Matrix { f32, .. } => {
            let Class::Matrix { f32: then_f32, .. } = then.class else { return };
            if let Some(c) = then.third {
                let whole = first.writes.iter().any(|w| w == c);
                if !whole && (!f32 || then_f32) {
                    let common = first.writes.iter().find_map(|w| w.common(c)).map(|register| c.name(register));
                    add(Id::MatrixMatrixC, common);
                }
            }
            add(Id::MatrixMatrixAb, first.writes.common(&then.factors(), is_vector));
        }
        Class::Valu if matrix => {
            if first.writes_exec {
                add(Id::ValuExecMatrix, Some("exec".into()));
            }
            if first.dot.is_none() {
                add(Id::ValuVgprMatrix, first.writes.common(&then.reads, is_vector));
            }
        }
        Class::Valu => {
            if let Some(dot) = first.dot
                && (valu || memory)
            {
                let same = then.dot == Some(dot);
                if !same {
                    add(Id::DotOther, first.writes.common(&then.writes, is_vector));
                }
                // The same instruction may take it as addend, its last source.
                let mut reads = then.reads;
                reads.n = if same { reads.n.min(2) } else { reads.n };
                add(Id::DotOther, first.writes.common(&reads, is_vector));
            }
            if then.class == Class::Vmem {
                add(Id::ValuSgprVmem, first.writes.common(&then.reads, is_scalar));
            }
            if !valu {
                return;
            }
            let read = first.writes.common(&then.reads, is_vector);
            if first.transcendental && !then.transcendental {
                add(Id::TransValu, read.clone());
            }
            if first.part {
                add(Id::PartValu, read.clone().or_else(|| first.writes.common(&then.writes, is_vector)));
            }
            if then.reads_lane {
                add(Id::ValuVgprLane, read.clone());
            }
            if then.dpp {
                add(Id::ValuVgprDpp, read.clone());
            }
            if gfx950 && then.permlane_swap {
                add(Id::ValuVgprPermlane, read);
            }
            add(Id::ValuSgprValu, first.writes.common(&then.reads, is_scalar));
            if let Some(lane) = then.lane {
                let common = first.writes.iter().find_map(|w| w.common(lane));
                add(Id::ValuSgprLane, common.map(|register| lane.name(register)));
            }
            if then.div_fmas {
                let common = first.writes.iter().find_map(|w| w.common(VCC_RANGE));
                add(Id::ValuVccDivFmas, common.map(scalar_name));
            }
            if first.writes_exec {
                let exec = || Some("exec".to_owned());
                add(Id::ValuExecLane, exec().filter(|_| then.moves_lane));
                add(Id::ValuExecDpp, exec().filter(|_| then.dpp));
                add(Id::ValuExecPermlane, exec().filter(|_| gfx950 && then.permlane_swap));
            }
        }
        Class::Vmem if first.wide_store && (valu || matrix) => add(Id::WideStore, third(&then.writes)),
        Class::Salu if then.to_lds => add(Id::M0Lds, Some("m0".into())),
        Class::Control if first.sets_mode && then.mode => add(Id::SetregGetreg, Some("the mode register".into())),
        _ => {}
    }
}

/// Wait states that a rule asks for after `first`.
fn needed(id: Id, first: &Facts, gfx950: bool) -> u32 {
    let (passes, is_f32) = match first.class {
        Class::Matrix { passes, f32 } => (passes, f32),
        _ => (0, false),
    };
    match id.rule().states {
        States::Fixed(n) => n,
        States::Passes { f32, .. } if is_f32 => passes + f32,
        States::Passes { other, .. } => passes + other + u32::from(gfx950),
        States::PassesLess(_) if is_f32 => 0,
        States::PassesLess(n) => passes - n,
        // Not on CDNA.
        States::Alu(_) | States::Vector => 0,
    }
}

impl History {
    /// Takes note of the next instruction, which must be far enough from what came before it.
    pub(crate) fn step(&mut self, facts: &Facts, pc: u64, gfx950: bool) -> Result<(), Fault> {
        let now = self.now;
        self.now += u64::from(facts.states);
        // Few, and a matrix product outlasts what was issued after it.
        self.entries.retain(|e| e.until > now);
        if facts.class != Class::Control || facts.mode {
            let mut worst: Option<(u32, ErrorKind)> = None;
            for e in self.entries.iter().rev() {
                let between = (now - e.at - 1) as u32;
                rules(&e.facts, facts, gfx950, |id, register| {
                    let need = needed(id, &e.facts, gfx950);
                    if between < need && worst.as_ref().is_none_or(|(missing, _)| *missing < need - between) {
                        let rule = id.rule().name;
                        let kind = ErrorKind::WaitStates { rule, register, need, between, first: e.pc };
                        worst = Some((need - between, kind));
                    }
                });
            }
            if let Some((_, kind)) = worst {
                return Err(kind.into());
            }
        }
        let reach = facts.reach(u32::from(gfx950));
        if reach > 0 {
            self.entries.push(Entry { facts: *facts, pc, at: now, until: now + 1 + u64::from(reach) });
        }
        Ok(())
    }
}
