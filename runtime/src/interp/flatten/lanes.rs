//! Operations across lanes, and what is said to the wave.

use lathe_dsl::ir::{Inst, Op, Scalar, Scope, Type};

use super::super::error::Error;
use super::super::program::Instr;
use super::{Flattener, class};

impl<const W: usize> Flattener<'_, W> {
    fn group(&self, width: u32) -> Result<(), Error> {
        self.require(width.is_power_of_two() && width as usize <= W, || {
            format!("groups of {width} lanes in a wave of {W}")
        })
    }

    pub(super) fn lane_op(&mut self, inst: &Inst) -> Result<(), Error> {
        let (v, ty) = self.result(inst)?;
        let n = ty.lanes();
        let class = class(ty);
        match inst.op {
            Op::LaneShuffle { op, value, amount, width } => {
                self.defined(op.def(), ty)?;
                self.group(width)?;
                let a = self.typed(value, ty)?;
                let amount = self.typed(amount, Type::U32)?;
                let dst = self.define(v)?;
                self.emit(Instr::Shuffle { dst, a, amount, op, class, n, width });
            }
            Op::Butterfly { op, value, offset, width } => {
                self.defined(op.def(), ty)?;
                self.group(width)?;
                self.require(offset.is_power_of_two() && offset < width, || {
                    format!("partner at distance {offset} in groups of {width} lanes")
                })?;
                let a = self.typed(value, ty)?;
                let partner = self.temporary(ty);
                self.emit(Instr::Partner { dst: partner, a, class, n, offset, width });
                let dst = self.define(v)?;
                self.emit_binary(op.step(), ty.scalar(), dst, [a, partner], n)?;
            }
            Op::Ballot(condition) => {
                self.require(ty == Type::U64, || format!("`ballot` gives {ty}"))?;
                let condition = self.typed(condition, Type::BOOL)?;
                let dst = self.define(v)?;
                self.emit(Instr::Ballot { dst, condition });
            }
            Op::ReadFirstLane(value) => {
                self.defined(inst.op.def(), ty)?;
                let a = self.typed(value, ty)?;
                let dst = self.define(v)?;
                self.emit(Instr::ReadFirst { dst, a, class, n });
            }
            Op::ReadLane(value, lane) => {
                self.defined(inst.op.def(), ty)?;
                let a = self.typed(value, ty)?;
                let lane = self.typed(lane, Type::U32)?;
                let dst = self.define(v)?;
                self.emit(Instr::ReadLane { dst, a, lane, class, n });
            }
            Op::Transpose8x8(value) => {
                self.require(ty == Type::Scalar(Scalar::U32), || format!("`transpose8x8` of {ty}"))?;
                let a = self.typed(value, ty)?;
                let dst = self.define(v)?;
                self.emit(Instr::Transpose { dst, a });
            }
            Op::AssumeUniform { value, scope } => {
                self.require(matches!(ty, Type::Scalar(_)), || format!("`assume_uniform` of {ty}"))?;
                let a = self.typed(value, ty)?;
                self.emit(Instr::Agree { a, class, workgroup: scope != Scope::Wave });
                let dst = self.define(v)?;
                self.emit(Instr::Move { dst, a, class, n, masked: false });
            }
            ref op => return self.malformed(format!("`{}` is no operation across lanes", op.def().name)),
        }
        Ok(())
    }

    /// Barriers, and hints to the hardware, most of which mean nothing here.
    pub(super) fn wave_op(&mut self, inst: &Inst) -> Result<(), Error> {
        self.no_result(inst)?;
        match inst.op {
            Op::Barrier => self.emit(Instr::Barrier {}),
            Op::SWaitcnt { vmcnt: Some(vmcnt), .. } => self.emit(Instr::WaitCount { vmcnt }),
            Op::AsyncMark => self.emit(Instr::AsyncMark {}),
            Op::WaitAsyncMark(groups) => self.emit(Instr::WaitAsyncMark { groups }),
            Op::SSleep(_) => self.emit(Instr::Yield {}),
            _ => {}
        }
        Ok(())
    }
}
