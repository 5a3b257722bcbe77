//! Branches, loops, regions.

use lathe_dsl::ir::{Block, Inst, Scalar, Type, Value};

use super::super::error::Error;
use super::super::program::{Instr, Pc};
use super::super::registers::VReg;
use super::{Flattener, class, rows};

impl<const W: usize> Flattener<'_, W> {
    fn emit_move(&mut self, dst: VReg, a: VReg, ty: Type, masked: bool) {
        self.emit(Instr::Move { dst, a, class: class(ty), n: rows(ty), masked });
    }

    /// Copies `values` to `targets` at once, in the active lanes.
    fn emit_yields(&mut self, values: &[Value], targets: &[(VReg, Type)]) -> Result<(), Error> {
        self.require(values.len() == targets.len(), || {
            format!("a region yields {} values where {} are due", values.len(), targets.len())
        })?;
        let mut moves = vec![];
        for (v, (dst, ty)) in values.iter().zip(targets) {
            let a = self.typed(*v, *ty)?;
            if a != *dst {
                moves.push((*dst, a, *ty));
            }
        }
        // A source that one of the moves overwrites (`a, b = b, a`) is saved first.
        for i in 0..moves.len() {
            let (_, a, ty) = moves[i];
            if moves.iter().any(|(dst, ..)| dst.id == a.id) {
                let saved = self.temporary(ty);
                self.emit_move(saved, a, ty, false);
                moves[i].1 = saved;
            }
        }
        for (dst, a, ty) in moves {
            self.emit_move(dst, a, ty, true);
        }
        Ok(())
    }

    fn results(&self, inst: &Inst) -> Result<Vec<Type>, Error> {
        inst.results.iter().map(|v| self.ty(*v)).collect()
    }

    fn bind_results(&mut self, inst: &Inst, from: &[(VReg, Type)]) -> Result<(), Error> {
        inst.results.iter().zip(from).try_for_each(|(v, (rows, _))| self.bind(*v, *rows))
    }

    /// Binds a region's parameters.
    fn bind_params_of(&mut self, block: &Block, to: &[(VReg, Type)]) -> Result<(), Error> {
        let n = block.params.len();
        self.require(n == to.len(), || format!("a region with {n} parameters where {} are due", to.len()))?;
        for (v, (rows, ty)) in block.params.iter().zip(to) {
            let t = self.ty(*v)?;
            self.require(t == *ty, || format!("parameter {v:?} of a region is {t}, not {ty}"))?;
            self.bind(*v, *rows)?;
        }
        Ok(())
    }

    /// Registers of their own for values that change in a loop, with their first values in them.
    fn carried(&mut self, init: &[Value], types: &[Type]) -> Result<Vec<(VReg, Type)>, Error> {
        let (given, due) = (init.len(), types.len());
        self.require(given == due, || format!("a loop with {given} initial values where {due} are due"))?;
        let mut carried = vec![];
        for (v, ty) in init.iter().zip(types) {
            let a = self.typed(*v, *ty)?;
            let rows = self.temporary(*ty);
            self.emit_move(rows, a, *ty, false);
            carried.push((rows, *ty));
        }
        Ok(carried)
    }

    pub(super) fn if_(&mut self, inst: &Inst, condition: Value, then: &Block, otherwise: &Block) -> Result<(), Error> {
        let condition = self.typed(condition, Type::BOOL)?;
        let targets: Vec<(VReg, Type)> = self.results(inst)?.into_iter().map(|ty| (self.temporary(ty), ty)).collect();
        let location = self.location;
        let start = self.pc();
        self.emit(Instr::If { condition, otherwise: 0 });
        let mark = self.scope.len();
        self.bind_params_of(then, &[])?;
        self.block(then)?;
        self.location = location;
        self.emit_yields(&then.yields, &targets)?;
        self.leave(mark);
        let mut end_of_then = None;
        self.bind_params_of(otherwise, &[])?;
        if !(otherwise.insts.is_empty() && otherwise.yields.is_empty() && targets.is_empty()) {
            end_of_then = Some(self.pc());
            self.emit(Instr::Else { end: 0 });
            self.block(otherwise)?;
            self.location = location;
            self.emit_yields(&otherwise.yields, &targets)?;
            self.leave(mark);
        }
        let end = self.pc();
        self.emit(Instr::Pop {});
        if let Some(at) = end_of_then {
            self.code[at as usize] = Instr::Else { end };
        }
        self.code[start as usize] = Instr::If { condition, otherwise: end_of_then.unwrap_or(end) };
        self.bind_results(inst, &targets)
    }

    pub(super) fn for_(
        &mut self,
        inst: &Inst,
        (lo, hi, step): (Value, Value, u32),
        init: &[Value],
        body: &Block,
    ) -> Result<(), Error> {
        self.require(step > 0, || "a loop with step 0".into())?;
        let (lo, of) = self.operand(lo)?;
        let hi = self.typed(hi, of)?;
        let Type::Scalar(ty @ (Scalar::I32 | Scalar::U32 | Scalar::I64 | Scalar::U64 | Scalar::Idx)) = of else {
            return self.malformed(format!("a loop over {of}"));
        };
        let types = self.results(inst)?;
        let index = self.temporary(of);
        self.emit_move(index, lo, of, false);
        let carried = self.carried(init, &types)?;
        let location = self.location;
        let start = self.pc();
        self.emit(Instr::Loop { index, hi, ty, exit: 0 });
        let mark = self.scope.len();
        let params: Vec<_> = std::iter::once((index, of)).chain(carried.iter().copied()).collect();
        self.bind_params_of(body, &params)?;
        self.block(body)?;
        self.location = location;
        self.emit_yields(&body.yields, &carried)?;
        self.leave(mark);
        self.emit(Instr::Next { index, hi, ty, step, body: start + 1 });
        self.code[start as usize] = Instr::Loop { index, hi, ty, exit: self.pc() };
        self.emit(Instr::Pop {});
        self.bind_results(inst, &carried)
    }

    pub(super) fn while_(&mut self, inst: &Inst, init: &[Value], before: &Block, after: &Block) -> Result<(), Error> {
        let types = init.iter().map(|v| self.ty(*v)).collect::<Result<Vec<_>, _>>()?;
        let carried = self.carried(init, &types)?;
        let mut results = vec![];
        for ty in self.results(inst)? {
            let rows = self.temporary(ty);
            // A mention before the loop: lanes that have left it keep their results to its end.
            self.emit(Instr::Fill { dst: rows, class: class(ty), n: super::rows(ty), bits: 0 });
            results.push((rows, ty));
        }
        let location = self.location;
        let start = self.pc();
        self.emit(Instr::While {});
        let mark = self.scope.len();
        self.bind_params_of(before, &carried)?;
        self.block(before)?;
        self.location = location;
        let [condition, values @ ..] = before.yields.as_slice() else {
            return self.malformed("a `while` without a condition");
        };
        let condition = self.typed(*condition, Type::BOOL)?;
        self.emit_yields(values, &results)?;
        self.leave(mark);
        let test = self.pc();
        self.emit(Instr::Test { condition, exit: 0 });
        self.bind_params_of(after, &results)?;
        self.block(after)?;
        self.location = location;
        self.emit_yields(&after.yields, &carried)?;
        self.leave(mark);
        self.emit(Instr::Again { body: start + 1 });
        let exit: Pc = self.pc();
        self.code[test as usize] = Instr::Test { condition, exit };
        self.emit(Instr::Pop {});
        self.bind_results(inst, &results)
    }

    /// Runs the region in place.
    pub(super) fn native(&mut self, inst: &Inst, args: &[Value], meaning: &Block) -> Result<(), Error> {
        let args = args.iter().map(|v| self.operand(*v)).collect::<Result<Vec<_>, _>>()?;
        let location = self.location;
        let mark = self.scope.len();
        self.bind_params_of(meaning, &args)?;
        self.block(meaning)?;
        self.location = location;
        let types = self.results(inst)?;
        let (given, due) = (meaning.yields.len(), types.len());
        self.require(given == due, || format!("a region yields {given} values where {due} are due"))?;
        let mut results = vec![];
        for (v, ty) in meaning.yields.iter().zip(types) {
            results.push((self.typed(*v, ty)?, ty));
        }
        self.leave(mark);
        self.bind_results(inst, &results)
    }
}
