//! Instruction tables: mnemonic → semantics, one file an encoding family.
//!
//! A row names an instruction as gfx9 spells it and holds what it does to values; everything that is the same for all
//! rows of a family (operand fetch, modifiers, shadow, write-back) is that family's `exec`. Another chip is another
//! [`Isa`]: which rows it has, and its own names for them.

pub(crate) mod atomic;
pub(crate) mod control;
pub(crate) mod dpp;
pub(crate) mod ds;
pub(crate) mod flat;
pub(crate) mod float;
pub(crate) mod mubuf;
pub(crate) mod shadow;
pub(crate) mod smem;
pub(crate) mod sop;
#[cfg(test)]
mod tests;
pub(crate) mod transfer;
pub(crate) mod vop;
pub(crate) mod vop3p;
pub(crate) mod vopc;

use std::sync::OnceLock;

use lathe_dsl::target::{Arch, Target};
use rustc_hash::FxHashMap;

use crate::gcn::decode::{Inst, Kind};
use crate::gcn::error::{ErrorKind, Fault, unsupported};
use crate::gcn::lds::Lds;
use crate::gcn::memory::Space;
use crate::gcn::state::Wave;

/// What an instruction does: a row of its family's table.
#[derive(Clone, Copy, Debug)]
pub enum Op {
    /// Branches, waits, barriers, program end.
    Control(control::Control),
    /// Scalar ALU.
    Sop(&'static sop::Row),
    /// Scalar memory.
    Smem(&'static smem::Row),
    /// Vector ALU.
    Vop(&'static vop::Row),
    /// Vector compare.
    Vopc(vopc::Compare),
    /// Packed vector ALU.
    Vop3p(&'static vop3p::Row),
    /// LDS and lane exchange.
    Ds(&'static ds::Row),
    /// Buffer memory.
    Mubuf(&'static transfer::Row),
    /// Global, flat and scratch memory.
    Flat(flat::Segment, &'static transfer::Row),
}

impl Op {
    /// Whether the rest of the line is of no consequence.
    pub(crate) fn is_plain(self) -> bool {
        matches!(self, Self::Control(c) if c.is_plain())
    }

    /// Checks operand count and kinds, so that `exec` may index operands.
    pub(crate) fn check(self, inst: &Inst) -> Result<(), ErrorKind> {
        let (least, most) = match self {
            Self::Control(c) => c.operands(),
            Self::Sop(row) => row.operands(),
            Self::Smem(row) => row.operands(),
            Self::Vop(row) => row.operands(),
            Self::Vopc(_) => (3, 3),
            Self::Vop3p(row) => row.operands(),
            Self::Ds(row) => row.operands(),
            Self::Mubuf(row) => row.mubuf_operands(inst.mods.lds),
            Self::Flat(segment, row) => row.flat_operands(segment),
        };
        let n = inst.args.len();
        if n < least || n > most {
            return Err(ErrorKind::Decode(format!("`{}` has {n} operands, {least} to {most} expected", inst.text)));
        }
        let float_only = inst.args.iter().any(|a| matches!(a.kind, Kind::HwReg { .. }));
        if float_only && !matches!(self, Self::Control(_)) {
            return Err(ErrorKind::Decode(format!("`{}`: unexpected hwreg operand", inst.text)));
        }
        Ok(())
    }
}

/// Where control goes after an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Flow {
    /// The next instruction.
    Next,
    /// Another one.
    Jump(u64),
    /// The wave waits for its workgroup.
    Barrier,
    /// The wave lets others run (`s_sleep`).
    Yield,
    /// The wave is done.
    End,
}

/// Everything one instruction may touch.
pub(crate) struct Context<'a, 'm> {
    pub(crate) wave: &'a mut Wave,
    pub(crate) lds: &'a mut Lds,
    pub(crate) space: &'a mut Space<'m>,
}

/// Executes one instruction.
pub(crate) fn exec(cx: &mut Context<'_, '_>, inst: &Inst) -> Result<Flow, Fault> {
    if cx.wave.indexed && matches!(inst.op, Op::Vopc(_) | Op::Vop3p(_)) {
        return unsupported(format!("register index on `{}`", inst.text));
    }
    match inst.op {
        Op::Control(op) => return control::exec(cx, op, inst),
        Op::Sop(row) => sop::exec(cx, row, inst)?,
        Op::Smem(row) => smem::exec(cx, row, inst)?,
        Op::Vop(row) => vop::exec(cx, row, inst)?,
        Op::Vopc(op) => vopc::exec(cx, op, inst)?,
        Op::Vop3p(row) => vop3p::exec(cx, row, inst)?,
        Op::Ds(row) => ds::exec(cx, row, inst)?,
        Op::Mubuf(row) => mubuf::exec(cx, row, inst)?,
        Op::Flat(segment, row) => flat::exec(cx, segment, row, inst)?,
    }
    Ok(Flow::Next)
}

/// Instruction set of one chip.
#[derive(Debug)]
pub struct Isa {
    /// Chip name.
    pub name: &'static str,
    /// Lanes a wave.
    pub lanes: usize,
    map: FxHashMap<String, Op>,
}

impl Isa {
    /// Semantics of a mnemonic without its encoding suffix.
    pub(crate) fn lookup(&self, base: &str) -> Option<Op> {
        self.map.get(base).copied()
    }

    /// Mnemonics with semantics, sorted, without encoding suffixes.
    pub fn mnemonics(&self) -> Vec<&str> {
        let mut names: Vec<_> = self.map.keys().map(String::as_str).collect();
        names.sort_unstable();
        names
    }
}

fn gfx950() -> Isa {
    let mut map = FxHashMap::default();
    let mut add = |name: String, op: Op| {
        let old = map.insert(name, op);
        debug_assert!(old.is_none(), "two rows for one mnemonic");
    };
    for (name, op) in control::TABLE {
        add((*name).to_owned(), Op::Control(*op));
    }
    sop::TABLE.iter().for_each(|r| add(r.name.to_owned(), Op::Sop(r)));
    smem::TABLE.iter().for_each(|r| add(r.name.to_owned(), Op::Smem(r)));
    vop::tables().for_each(|r| add(r.name.to_owned(), Op::Vop(r)));
    vopc::all().for_each(|(name, c)| add(name, Op::Vopc(c)));
    vop3p::TABLE.iter().for_each(|r| add(r.name.to_owned(), Op::Vop3p(r)));
    ds::TABLE.iter().for_each(|r| add(r.name.to_owned(), Op::Ds(r)));
    for row in transfer::TABLE {
        add(format!("buffer_{}", row.name), Op::Mubuf(row));
        for segment in [flat::Segment::Global, flat::Segment::Flat, flat::Segment::Scratch] {
            if segment != flat::Segment::Scratch || !row.is_atomic() {
                add(format!("{}_{}", segment.prefix(), row.name), Op::Flat(segment, row));
            }
        }
    }
    Isa { name: "gfx950", lanes: 64, map }
}

/// Chips with a table, for messages.
pub(crate) fn names() -> &'static str {
    "gfx950"
}

/// The table of a chip.
///
/// # Errors
/// [`ErrorKind::UnsupportedTarget`] if there is none.
pub fn for_target(target: Target) -> Result<&'static Isa, ErrorKind> {
    static GFX950: OnceLock<Isa> = OnceLock::new();
    match target.chip().name {
        "gfx950" if target.chip().arch == Arch::Amdgpu => Ok(GFX950.get_or_init(gfx950)),
        other => Err(ErrorKind::UnsupportedTarget(other.to_owned())),
    }
}
