//! What RDNA 4 leaves to software.
//!
//! The vector ALU keeps a copy of pairs of SGPRs that it has read. When one of such a pair is written, the copy may be old until
//! an `s_wait_alu` for the writer's kind, or a scalar or buffer access, comes between; a scalar read of a register that the vector ALU
//! wrote waits by itself, for all of them. Sources: LLVM 22's pass on SGPR hazards and its hazard recogniser for gfx12, and what
//! they insert into single pairs of instructions for gfx1201.

use super::{Class, Facts, File, Id, Ranges, States};
use crate::gcn::decode::{M0, VCC};
use crate::gcn::error::{ErrorKind, Fault};
use crate::gcn::state::scalar_name;

/// Which counters an `s_wait_alu` waits for to be zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct AluWait {
    salu: bool,
    valu: bool,
    vcc: bool,
}

impl AluWait {
    /// Of the operands of an `s_wait_alu`.
    pub(super) fn of(operands: &str) -> Self {
        let number = match operands.strip_prefix("0x") {
            Some(digits) => u16::from_str_radix(digits, 16).ok(),
            None => operands.parse().ok(),
        };
        match number {
            Some(bits) => Self { salu: bits & 1 == 0, vcc: bits & 2 == 0, valu: bits & 0xE00 == 0 },
            None => Self {
                salu: operands.contains("sa_sdst(0)"),
                vcc: operands.contains("va_vcc(0)"),
                valu: operands.contains("va_sdst(0)"),
            },
        }
    }

    /// Waits for everything.
    pub(super) const ALL: Self = Self { salu: true, valu: true, vcc: true };
}

/// The bit of VCC's registers.
const VCC_BITS: u128 = 3 << VCC;

/// What a wave has issued so far.
pub(crate) struct History {
    /// Pairs of SGPRs that the vector ALU has read.
    read: u64,
    /// SGPRs of such pairs that the scalar, and the vector ALU, wrote since.
    salu: u128,
    valu: u128,
    /// Where each was written last.
    writers: Box<[u64; 128]>,
    /// If the last instruction of the vector ALU was a WMMA: what it wrote, and its pc.
    wmma: Option<(Ranges, u64)>,
    /// If the last one that did something was a `v_cmpx`: its pc.
    cmpx: Option<u64>,
}

impl Default for History {
    fn default() -> Self {
        Self { read: 0, salu: 0, valu: 0, writers: Box::new([0; 128]), wmma: None, cmpx: None }
    }
}

/// SGPRs of some ranges, without M0, EXEC and `null`.
fn sgprs(ranges: &Ranges) -> impl Iterator<Item = u16> {
    ranges.iter().filter(|r| r.file == File::Scalar).flat_map(|r| r.first..r.first + r.count).filter(|r| *r < M0)
}

impl History {
    /// Takes note of the next instruction, a pair's two halves if there is a `second`. What it needs must have come before it.
    pub(crate) fn step(&mut self, facts: &Facts, second: Option<&Facts>, pc: u64) -> Result<(), Fault> {
        if let Some(wait) = facts.alu_wait {
            self.wait(wait);
            return Ok(());
        }
        let vector = match facts.class {
            Class::Smem => {
                self.wait(AluWait::ALL);
                return Ok(());
            }
            Class::Vmem | Class::Lds => {
                if facts.buffer {
                    self.wait(AluWait::ALL);
                }
                return Ok(());
            }
            Class::Valu | Class::Matrix { .. } => true,
            Class::Salu | Class::Control => false,
        };
        for facts in std::iter::once(facts).chain(second) {
            let vcc = facts.reads_vcc.then_some(VCC);
            sgprs(&facts.reads).chain(vcc).try_for_each(|register| self.reads(register, vector))?;
        }
        for facts in std::iter::once(facts).chain(second) {
            sgprs(&facts.writes).for_each(|register| self.writes(register, vector, pc));
        }
        if vector { self.after_vector(facts, pc) } else { Ok(()) }
    }

    fn wait(&mut self, wait: AluWait) {
        if wait.salu {
            self.salu = 0;
        }
        if wait.valu {
            self.valu &= VCC_BITS;
        }
        if wait.vcc {
            self.valu &= !VCC_BITS;
        }
    }

    fn reads(&mut self, register: u16, vector: bool) -> Result<(), Fault> {
        let (pair, bit) = (1 << (register / 2), 1u128 << register);
        if self.read & pair == 0 {
            if vector {
                self.read |= pair;
            }
            return Ok(());
        }
        let of_vcc = bit & VCC_BITS != 0;
        if !vector {
            self.valu &= if of_vcc { !VCC_BITS } else { VCC_BITS };
        }
        let id = match (self.salu & bit != 0, self.valu & bit != 0) {
            (true, _) => Id::SaluSgprRead,
            (false, true) if of_vcc => Id::ValuVccRead,
            (false, true) => Id::ValuSgprRead,
            (false, false) => return Ok(()),
        };
        Err(missing(id, scalar_name(register), self.writers[usize::from(register)]))
    }

    fn writes(&mut self, register: u16, vector: bool, pc: u64) {
        if self.read & 1 << (register / 2) == 0 {
            return;
        }
        self.writers[usize::from(register)] = pc;
        let bit = 1u128 << register;
        let (own, other) = if vector { (&mut self.valu, &mut self.salu) } else { (&mut self.salu, &mut self.valu) };
        *own |= bit;
        if bit & VCC_BITS != 0 {
            // Who wrote VCC last counts.
            *other &= !VCC_BITS;
        }
    }

    /// Instructions of the vector ALU that want another one between them.
    fn after_vector(&mut self, facts: &Facts, pc: u64) -> Result<(), Fault> {
        let matrix = matches!(facts.class, Class::Matrix { .. });
        if let Some((writes, first)) = self.wmma.filter(|_| matrix)
            && let Some(register) = writes.common(&facts.factors(), |file| file == File::Vector)
        {
            return Err(missing(Id::WmmaAb, register, first));
        }
        if let Some(first) = self.cmpx.filter(|_| facts.permlane16) {
            return Err(missing(Id::CmpxPermlane, "exec_lo".into(), first));
        }
        self.wmma = matrix.then_some((facts.writes, pc));
        if !facts.nop {
            self.cmpx = facts.writes_exec.then_some(pc);
        }
        Ok(())
    }
}

fn missing(id: Id, register: String, first: u64) -> Fault {
    let rule = id.rule();
    let need = match rule.states {
        States::Alu(field) => format!("`s_wait_alu depctr_{field}(0)`"),
        _ => "another instruction of the vector ALU".to_owned(),
    };
    ErrorKind::NothingBetween { rule: rule.name, register, need, first }.into()
}
