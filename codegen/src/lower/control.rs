//! Blocks, branches, loops and barriers.

use lathe_dsl::ir::{self, Inst, Op};
use melior::ir::Value;
use melior::ir::operation::OperationRef;

use super::emit::{Emitter, Result};
use super::{Blame, Lowering};

impl<'c, 'a> Lowering<'c, 'a, '_> {
    /// Lowers a block into the current place.
    pub(super) fn block(&mut self, block: &ir::Block) -> std::result::Result<(), Blame> {
        for inst in &block.insts {
            let outer = self.emit.location;
            self.emit.location = self.location_of(inst.number);
            self.inst(inst)?;
            self.emit.location = outer;
        }
        Ok(())
    }

    fn inst(&mut self, inst: &Inst) -> std::result::Result<(), Blame> {
        let blame = |message| Blame { op: Some(inst.number), message };
        match &inst.op {
            Op::PtrStore { value, pointer, .. } => self.pointer_store(*value, *pointer).map_err(blame),
            Op::BufferStore { value, buffer, offset, unit, .. } => {
                self.buffer_store(*value, *buffer, *offset, *unit).map_err(blame)
            }
            Op::Barrier => self.emit.op("gpu.barrier", &[], &[], &[]).map(drop).map_err(blame),
            Op::If { condition, then, otherwise } => self.if_(inst, *condition, then, otherwise),
            Op::For { lo, hi, step, init, body, .. } => self.for_(inst, [*lo, *hi], *step, init, body),
            op => {
                let [result] = inst.results[..] else { return Err(blame("has not one result".into())) };
                let value = self.simple(op, result).map_err(blame)?;
                self.set(result, value);
                Ok(())
            }
        }
    }

    /// Lowers a nested block into `place` and ends it with its yields.
    fn nested(&mut self, block: &ir::Block, place: Emitter<'c, 'a>) -> std::result::Result<(), Blame> {
        let outer = std::mem::replace(&mut self.emit, place);
        self.block(block)?;
        let place = std::mem::replace(&mut self.emit, outer);
        let yields = block.yields.iter().map(|v| self.get(*v)).collect::<Result<Vec<_>>>();
        yields.and_then(|y| place.op("scf.yield", &y, &[], &[])).map(drop).map_err(|m| Blame { op: None, message: m })
    }

    fn if_(
        &mut self,
        inst: &Inst,
        condition: ir::Value,
        then: &ir::Block,
        otherwise: &ir::Block,
    ) -> std::result::Result<(), Blame> {
        let blame = |message| Blame { op: Some(inst.number), message };
        let e = self.emit;
        let types: Vec<_> = inst.results.iter().map(|r| e.ty(self.kernel.ty(*r))).collect();
        let condition = self.get(condition).map_err(blame)?;
        let branch = e.op_with_regions("scf.if", &[condition], &types, &[], 2).map_err(blame)?;
        self.nested(then, e.enter(branch, 0, &[]).map_err(blame)?)?;
        if !(otherwise.insts.is_empty() && types.is_empty()) {
            self.nested(otherwise, e.enter(branch, 1, &[]).map_err(blame)?)?;
        }
        self.set_results(inst, branch).map_err(blame)
    }

    fn for_(
        &mut self,
        inst: &Inst,
        [lo, hi]: [ir::Value; 2],
        step: u32,
        init: &[ir::Value],
        body: &ir::Block,
    ) -> std::result::Result<(), Blame> {
        let blame = |message| Blame { op: Some(inst.number), message };
        let e = self.emit;
        // The last index plus the step must not wrap; where it might, the loop counts in 64 bits.
        let wide = self.facts.get(hi).max + u64::from(step) > u64::from(u32::MAX) + 1;
        let bits = if wide { 64 } else { 32 };
        let bound = |v: ir::Value| {
            let v = self.get(v)?;
            if wide { e.value("arith.extui", &[v], e.int(64), &[]) } else { Ok(v) }
        };
        let mut operands = vec![
            bound(lo).map_err(blame)?,
            bound(hi).map_err(blame)?,
            e.int_const(bits, i64::from(step)).map_err(blame)?,
        ];
        for v in init {
            operands.push(self.get(*v).map_err(blame)?);
        }
        let types: Vec<_> = inst.results.iter().map(|r| e.ty(self.kernel.ty(*r))).collect();
        let unsigned = [("unsignedCmp", e.unit())];
        let loop_ = e.op_with_regions("scf.for", &operands, &types, &unsigned, 1).map_err(blame)?;
        let params: Vec<_> = std::iter::once(e.int(bits)).chain(types.iter().copied()).collect();
        let inside = e.enter(loop_, 0, &params).map_err(blame)?;
        for (i, p) in body.params.iter().enumerate() {
            let mut value = inside.param(i).map_err(blame)?;
            if i == 0 && wide {
                value = inside.value("arith.trunci", &[value], e.int(32), &[]).map_err(blame)?;
            }
            self.set(*p, value);
        }
        self.nested(body, inside)?;
        self.set_results(inst, loop_).map_err(blame)
    }

    fn set_results(&mut self, inst: &Inst, operation: OperationRef<'c, 'a>) -> Result<()> {
        for (i, r) in inst.results.iter().enumerate() {
            let value: Value<'c, 'a> = operation.result(i).map_err(|e| e.to_string())?.into();
            self.set(*r, value);
        }
        Ok(())
    }
}
