//! Instruction tables: mnemonic → semantics, one file an encoding family.
//!
//! A row names an instruction as gfx9 spells it and holds what it does to values; everything that is the same for all
//! rows of a family (operand fetch, modifiers, shadow, write-back) is that family's `exec`. Another chip is another
//! [`Isa`]: which rows it has, and its own names for them. `chip` has what else differs between chips; `cdna4` what gfx950
//! has and gfx942 has not; `gfx12` what gfx1201 calls otherwise, lacks or adds.

pub(crate) mod atomic;
mod cdna4;
pub(crate) mod chip;
pub(crate) mod control;
pub(crate) mod dpp;
pub(crate) mod ds;
pub(crate) mod flat;
pub(crate) mod float;
mod gfx12;
pub(crate) mod matrix;
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

use lathe_dsl::target::{Generation, Target};
use rustc_hash::FxHashMap;

use crate::gcn::decode::{Inst, Kind};
use crate::gcn::error::{ErrorKind, Fault, unsupported};
use crate::gcn::isa::chip::{Chip, Family};
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
    /// Matrix multiply-accumulate.
    Matrix(&'static matrix::Row),
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

    /// Checks that an instruction may be one half of a pair: one result, from a routine that writes nothing by itself.
    pub(crate) fn check_pairable(self, inst: &Inst) -> Result<(), ErrorKind> {
        match self {
            Self::Vop(row) if row.is_pairable() => Ok(()),
            _ => Err(ErrorKind::Decode(format!("`{}` in a pair", inst.text))),
        }
    }

    /// Checks operand count and kinds, so that `exec` may index operands.
    pub(crate) fn check(self, inst: &Inst) -> Result<(), ErrorKind> {
        let (least, most) = match self {
            Self::Control(c) => c.operands(),
            Self::Sop(row) => row.operands(),
            Self::Smem(row) => row.operands(),
            Self::Vop(row) => row.operands(),
            Self::Vopc(compare) => compare.operands(),
            Self::Vop3p(row) => row.operands(),
            Self::Matrix(row) => row.operands(),
            Self::Ds(row) => row.operands(),
            Self::Mubuf(row) => row.mubuf_operands(inst.mods.lds),
            Self::Flat(segment, row) => row.flat_operands(segment),
        };
        let n = inst.args.len();
        if n < least || n > most {
            return Err(ErrorKind::Decode(format!("`{}` has {n} operands, {least} to {most} expected", inst.text)));
        }
        for arg in &inst.args {
            let what = match (&arg.kind, self) {
                (Kind::HwReg { .. }, Self::Control(_)) | (Kind::Message(_), Self::Smem(_)) => continue,
                (Kind::HwReg { .. }, _) => "hwreg",
                (Kind::Message(_), _) => "sendmsg",
                _ => continue,
            };
            return Err(ErrorKind::Decode(format!("`{}`: unexpected {what} operand", inst.text)));
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
    if cx.wave.indexed && matches!(inst.op, Op::Vopc(_) | Op::Vop3p(_) | Op::Matrix(_)) {
        return unsupported(format!("register index on `{}`", inst.text));
    }
    if cx.wave.arrived.is_some() && matches!(inst.op, Op::Ds(_) | Op::Flat(flat::Segment::Flat, _)) {
        return unsupported("LDS access between the signal to a barrier and the wait for it");
    }
    if let Some(second) = &inst.second {
        vop::exec_pair(cx, inst, second)?;
        return Ok(Flow::Next);
    }
    match inst.op {
        Op::Control(op) => return control::exec(cx, op, inst),
        Op::Sop(row) => sop::exec(cx, row, inst)?,
        Op::Smem(row) => smem::exec(cx, row, inst)?,
        Op::Vop(row) => vop::exec(cx, row, inst)?,
        Op::Vopc(op) => vopc::exec(cx, op, inst)?,
        Op::Vop3p(row) => vop3p::exec(cx, row, inst)?,
        Op::Matrix(row) => matrix::exec(cx, row, inst)?,
        Op::Ds(row) => ds::exec(cx, row, inst)?,
        Op::Mubuf(row) => mubuf::exec(cx, row, inst)?,
        Op::Flat(segment, row) => flat::exec(cx, segment, row, inst)?,
    }
    Ok(Flow::Next)
}

/// Instruction set of one chip.
#[derive(Debug)]
pub struct Isa {
    pub(crate) chip: &'static Chip,
    map: FxHashMap<String, Op>,
}

impl Isa {
    /// Semantics of a mnemonic without its encoding suffix.
    pub(crate) fn lookup(&self, base: &str) -> Option<Op> {
        self.map.get(base).copied()
    }

    /// The error for a mnemonic without semantics; `base` is the mnemonic without its encoding suffix.
    pub(crate) fn unknown(&self, mnemonic: &str, base: &str) -> ErrorKind {
        if Chip::all().any(|(i, _)| isa(i).lookup(base).is_some()) {
            ErrorKind::NotOnChip { mnemonic: mnemonic.to_owned(), chip: self.chip.name }
        } else {
            ErrorKind::UnknownInstruction(mnemonic.to_owned())
        }
    }

    /// Mnemonics with semantics, sorted, without encoding suffixes.
    pub fn mnemonics(&self) -> Vec<&str> {
        let mut names: Vec<_> = self.map.keys().map(String::as_str).collect();
        names.sort_unstable();
        names
    }
}

/// Every row that is written in gfx9's spelling, of whichever chip.
fn rows() -> FxHashMap<String, Op> {
    let mut map = FxHashMap::default();
    let mut add = |name: String, op: Op| {
        let old = map.insert(name, op);
        debug_assert!(old.is_none(), "two rows for one mnemonic");
    };
    control::TABLE.iter().for_each(|(name, op)| add((*name).to_owned(), Op::Control(*op)));
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
    map
}

fn build(chip: &'static Chip) -> Isa {
    let mut map = rows();
    match chip.family {
        Family::Gfx9 => {
            map.extend(control::GFX9.iter().map(|(name, op)| ((*name).to_owned(), Op::Control(*op))));
            map.extend(smem::GFX9.iter().map(|row| (row.name.to_owned(), Op::Smem(row))));
            let mut add = |row: &'static matrix::Row| map.extend([(row.name.to_owned(), Op::Matrix(row))]);
            matrix::CDNA3.iter().for_each(&mut add);
            if chip.generation == Generation::Cdna3 {
                map.retain(|name, _| !cdna4::is_new(name));
            } else {
                matrix::CDNA4.iter().for_each(add);
            }
        }
        Family::Gfx12 => gfx12::respell(&mut map),
    }
    Isa { chip, map }
}

/// The instruction set of row `index` of the chips' table.
fn isa(index: usize) -> &'static Isa {
    static ALL: [OnceLock<Isa>; Chip::COUNT] = [const { OnceLock::new() }; Chip::COUNT];
    ALL[index].get_or_init(|| build(Chip::all().nth(index).expect("a row of the table").1))
}

/// Chips with a table, for messages.
pub(crate) fn names() -> String {
    Chip::all().map(|(_, c)| c.name).collect::<Vec<_>>().join(", ")
}

/// The table of a chip.
///
/// # Errors
/// [`ErrorKind::UnsupportedTarget`] if there is none.
pub fn for_target(target: Target) -> Result<&'static Isa, ErrorKind> {
    match Chip::of(target) {
        Some((index, _)) => Ok(isa(index)),
        None => Err(ErrorKind::UnsupportedTarget(target.to_string())),
    }
}
