//! Transcendental functions: their expansions as MLIR, or the chip's own approximations where the kernel allows them.

use std::cell::{Cell, RefCell};

use lathe_dsl::ir::{self, BinaryOp, Family, FastFlags, Scalar, UnaryOp};
use lathe_dsl::math::{self, Arith, Hardware, Values};
use lathe_dsl::target::Generation;
use lathe_dsl::{Arch, target::Chip};
use melior::ir::Value;

use super::Lowering;
use super::emit::{Emitter, IntPredicate, Result};
use crate::target::Backend;

const F32: ir::Type = ir::Type::Scalar(Scalar::F32);
const U32: ir::Type = ir::Type::Scalar(Scalar::U32);

impl<'c, 'a> Lowering<'c, 'a, '_> {
    /// A function of one operand: computed in `f32`, rounded once.
    pub(super) fn math_unary(&self, op: UnaryOp, ty: ir::Type, v: Value<'c, 'a>) -> Result<Value<'c, 'a>> {
        self.math_on(ty, &[v], |x| match self.approximation(op, x[0])? {
            Some(v) => Ok(v),
            None => self.expand(|e| math::unary(op, e, Some(x[0])))?.ok_or(format!("`{op}` has no expansion")),
        })
    }

    /// A function of two operands: computed in `f32`, rounded once.
    pub(super) fn math_binary(
        &self,
        op: BinaryOp,
        ty: ir::Type,
        operands: [Value<'c, 'a>; 2],
    ) -> Result<Value<'c, 'a>> {
        self.math_on(ty, &operands, |x| {
            let [a, b] = [Some(x[0]), Some(x[1])];
            let short = match self.licence(Family::Math).has(FastFlags::AFN) {
                true => self.expand(|e| math::approximate_binary(op, e, a, b))?,
                false => None,
            };
            match short.map_or_else(|| self.expand(|e| math::binary(op, e, a, b)), |v| Ok(Some(v)))? {
                Some(v) => Ok(v),
                None => Err(format!("`{op}` has no expansion")),
            }
        })
    }

    /// Applies a function on `f32` to every element.
    fn math_on(
        &self,
        ty: ir::Type,
        operands: &[Value<'c, 'a>],
        f: impl Fn(&[Value<'c, 'a>]) -> Result<Value<'c, 'a>>,
    ) -> Result<Value<'c, 'a>> {
        if ty.scalar().bits() == 16 {
            return self.in_f32(ty, operands, |wide, v| self.math_on(wide, v, f));
        }
        let e = &self.emit;
        let columns = operands.iter().map(|v| e.elements(ty, *v)).collect::<Result<Vec<_>>>()?;
        let row = |i: usize| f(&columns.iter().map(|c| c[i]).collect::<Vec<_>>());
        e.gather(ty, &(0..ty.lanes() as usize).map(row).collect::<Result<Vec<_>>>()?)
    }

    /// The chip's own approximation, or a few steps around such, where the kernel allows it.
    fn approximation(&self, op: UnaryOp, x: Value<'c, 'a>) -> Result<Option<Value<'c, 'a>>> {
        if !self.licence(Family::Math).has(FastFlags::AFN) {
            return Ok(None);
        }
        let e = &self.emit;
        let flags = self.arith_flags(Family::Math)?;
        let times = |x, c| e.value("arith.mulf", &[x, e.float_constant(F32, c)?], e.ty(F32), &flags);
        let hardware = |op, x| self.float_unary(op, F32, x);
        Ok(Some(match op {
            UnaryOp::Exp2 => hardware(UnaryOp::HwExp2, x)?,
            UnaryOp::Exp => hardware(UnaryOp::HwExp2, times(x, std::f32::consts::LOG2_E)?)?,
            UnaryOp::Log2 => hardware(UnaryOp::HwLog2, x)?,
            UnaryOp::Log => times(hardware(UnaryOp::HwLog2, x)?, std::f32::consts::LN_2)?,
            UnaryOp::Sin | UnaryOp::Cos => {
                let (flush, licence) = (self.kernel.fast_math.flush_subnormals, self.licence(Family::Math));
                self.backend.hardware(e, op, x, flush, licence)?
            }
            UnaryOp::Tanh if self.backend.has_tanh() => {
                e.float_intrinsic("llvm.tanh", F32, &[x], &self.llvm_flags(Family::Math)?)?
            }
            op => return self.expand(|e| math::approximate_unary(op, e, Some(x))),
        }))
    }

    /// Writes an expansion at the current place; `None` if there is none.
    fn expand(&self, f: impl FnOnce(&Expand<'c, 'a, '_>) -> Option<V<'c, 'a>>) -> Result<Option<Value<'c, 'a>>> {
        let place = Expand {
            emit: Cell::new(self.emit),
            chip: self.backend.chip(),
            backend: self.backend,
            flush: self.kernel.fast_math.flush_subnormals,
            licence: self.licence(Family::Math),
            error: RefCell::new(None),
        };
        let Some(made) = f(&place) else { return Ok(None) };
        made.map(Some).ok_or_else(|| place.error.into_inner().unwrap_or_else(|| "an expansion failed".into()))
    }
}

/// A value, or nothing once something has failed.
type V<'c, 'a> = Option<Value<'c, 'a>>;

/// Writes the steps of an expansion as plain operations without a flag, so that none of them is contracted; only the chip's own
/// approximations carry the kernel's licence.
struct Expand<'c, 'a, 'r> {
    emit: Cell<Emitter<'c, 'a>>,
    chip: &'static Chip,
    backend: &'r dyn Backend,
    flush: bool,
    licence: FastFlags,
    /// What failed first.
    error: RefCell<Option<String>>,
}

impl<'c, 'a> Hardware for Expand<'c, 'a, '_> {
    fn hw_exp2(&self, x: Self::F) -> Self::F {
        self.hardware(UnaryOp::HwExp2, x)
    }
    fn hw_log2(&self, x: Self::F) -> Self::F {
        self.hardware(UnaryOp::HwLog2, x)
    }
    fn hw_rcp(&self, x: Self::F) -> Self::F {
        self.hardware(UnaryOp::HwRcp, x)
    }
}

impl<'c, 'a> Expand<'c, 'a, '_> {
    fn hardware(&self, op: UnaryOp, x: V<'c, 'a>) -> V<'c, 'a> {
        self.step([x], |e, [x]| self.backend.hardware(e, op, x, self.flush, self.licence))
    }

    /// Runs a step on values that are there.
    fn step<const N: usize>(
        &self,
        operands: [V<'c, 'a>; N],
        f: impl FnOnce(&Emitter<'c, 'a>, [Value<'c, 'a>; N]) -> Result<Value<'c, 'a>>,
    ) -> V<'c, 'a> {
        let mut values = vec![];
        for v in operands {
            values.push(v?);
        }
        self.keep(f(&self.emit.get(), values.try_into().ok()?))
    }

    fn keep<T>(&self, made: Result<T>) -> Option<T> {
        made.map_err(|message| self.error.borrow_mut().get_or_insert(message).clone()).ok()
    }

    fn same<const N: usize>(&self, name: &str, operands: [V<'c, 'a>; N]) -> V<'c, 'a> {
        self.step(operands, |e, v| e.same(name, &v))
    }

    fn cmpf(&self, predicate: i64, operands: [V<'c, 'a>; 2]) -> V<'c, 'a> {
        self.step(operands, |e, v| {
            e.value("arith.cmpf", &v, e.int(1), &[("predicate", e.int_attribute(64, predicate))])
        })
    }

    fn cmpi(&self, predicate: IntPredicate, operands: [V<'c, 'a>; 2]) -> V<'c, 'a> {
        self.step(operands, |e, [a, b]| e.cmpi(predicate, a, b, e.int(1)))
    }

    fn yields<const N: usize, const M: usize>(
        &self,
        place: Emitter<'c, 'a>,
        f: impl FnOnce(&Self) -> Values<Self, N, M>,
    ) -> Option<()> {
        let outer = self.emit.replace(place);
        let (floats, ints) = f(self);
        let place = self.emit.replace(outer);
        let values = floats.into_iter().chain(ints).collect::<Option<Vec<_>>>()?;
        self.keep(place.op("scf.yield", &values, &[], &[])).map(drop)
    }
}

impl<'c, 'a> Arith for Expand<'c, 'a, '_> {
    type F = V<'c, 'a>;
    type I = V<'c, 'a>;
    type B = V<'c, 'a>;

    fn f(&self, c: f32) -> Self::F {
        self.step([], |e, []| e.constant(F32, c.to_bits().into()))
    }
    fn i(&self, c: i32) -> Self::I {
        self.step([], |e, []| e.constant(U32, c.cast_unsigned().into()))
    }

    fn fadd(&self, a: Self::F, b: Self::F) -> Self::F {
        self.same("arith.addf", [a, b])
    }
    fn fsub(&self, a: Self::F, b: Self::F) -> Self::F {
        self.same("arith.subf", [a, b])
    }
    fn fmul(&self, a: Self::F, b: Self::F) -> Self::F {
        self.same("arith.mulf", [a, b])
    }
    fn fma(&self, a: Self::F, b: Self::F, c: Self::F) -> Self::F {
        self.step([a, b, c], |e, v| e.float_intrinsic("llvm.fma", F32, &v, &[]))
    }
    fn fneg(&self, a: Self::F) -> Self::F {
        self.same("arith.negf", [a])
    }
    fn fabs(&self, a: Self::F) -> Self::F {
        self.step([a], |e, v| e.float_intrinsic("llvm.fabs", F32, &v, &[]))
    }
    fn feq(&self, a: Self::F, b: Self::F) -> Self::B {
        self.cmpf(1, [a, b])
    }
    fn flt(&self, a: Self::F, b: Self::F) -> Self::B {
        self.cmpf(4, [a, b])
    }
    fn fle(&self, a: Self::F, b: Self::F) -> Self::B {
        self.cmpf(5, [a, b])
    }
    fn is_nan(&self, a: Self::F) -> Self::B {
        // MLIR's number of uno.
        self.cmpf(14, [a, a])
    }

    fn bits(&self, a: Self::F) -> Self::I {
        self.step([a], |e, [a]| e.bitcast(a, e.int(32)))
    }
    fn from_bits(&self, a: Self::I) -> Self::F {
        self.step([a], |e, [a]| e.bitcast(a, e.ty(F32)))
    }
    fn to_float(&self, a: Self::I) -> Self::F {
        self.step([a], |e, a| e.value("arith.sitofp", &a, e.ty(F32), &[]))
    }

    fn iadd(&self, a: Self::I, b: Self::I) -> Self::I {
        self.same("arith.addi", [a, b])
    }
    fn isub(&self, a: Self::I, b: Self::I) -> Self::I {
        self.same("arith.subi", [a, b])
    }
    fn imul(&self, a: Self::I, b: Self::I) -> Self::I {
        self.same("arith.muli", [a, b])
    }
    fn umulhi(&self, a: Self::I, b: Self::I) -> Self::I {
        self.step([a, b], |e, v| {
            let op = e.op("arith.mului_extended", &v, &[e.int(32), e.int(32)], &[])?;
            op.result(1).map(Into::into).map_err(|e| e.to_string())
        })
    }
    fn iand(&self, a: Self::I, b: Self::I) -> Self::I {
        self.same("arith.andi", [a, b])
    }
    fn ior(&self, a: Self::I, b: Self::I) -> Self::I {
        self.same("arith.ori", [a, b])
    }
    fn ixor(&self, a: Self::I, b: Self::I) -> Self::I {
        self.same("arith.xori", [a, b])
    }
    fn shl(&self, a: Self::I, n: Self::I) -> Self::I {
        self.same("arith.shli", [a, n])
    }
    fn shr_u(&self, a: Self::I, n: Self::I) -> Self::I {
        self.same("arith.shrui", [a, n])
    }
    fn shr_s(&self, a: Self::I, n: Self::I) -> Self::I {
        self.same("arith.shrsi", [a, n])
    }
    fn ieq(&self, a: Self::I, b: Self::I) -> Self::B {
        self.cmpi(IntPredicate::Eq, [a, b])
    }
    fn slt(&self, a: Self::I, b: Self::I) -> Self::B {
        self.cmpi(IntPredicate::Slt, [a, b])
    }
    fn ult(&self, a: Self::I, b: Self::I) -> Self::B {
        self.cmpi(IntPredicate::Ult, [a, b])
    }

    fn and(&self, a: Self::B, b: Self::B) -> Self::B {
        self.same("arith.andi", [a, b])
    }
    fn or(&self, a: Self::B, b: Self::B) -> Self::B {
        self.same("arith.ori", [a, b])
    }
    fn not(&self, a: Self::B) -> Self::B {
        self.step([a], |e, [a]| e.same("arith.xori", &[a, e.int_const(1, -1)?]))
    }
    fn select(&self, c: Self::B, a: Self::F, b: Self::F) -> Self::F {
        self.step([c, a, b], |e, v| e.same_as_second("arith.select", &v))
    }
    fn select_i(&self, c: Self::B, a: Self::I, b: Self::I) -> Self::I {
        self.select(c, a, b)
    }

    fn branch<const N: usize, const M: usize>(
        &self,
        rare: Self::B,
        then: impl FnOnce(&Self) -> Values<Self, N, M>,
        otherwise: impl FnOnce(&Self) -> Values<Self, N, M>,
    ) -> Values<Self, N, M> {
        let made = (|| {
            let e = self.emit.get();
            let types: Vec<_> = [e.ty(F32)].repeat(N).into_iter().chain([e.int(32)].repeat(M)).collect();
            let branch = self.keep(e.op_with_regions("scf.if", &[rare?], &types, &[], 2))?;
            self.yields(self.keep(e.enter(branch, 0, &[]))?, then)?;
            self.yields(self.keep(e.enter(branch, 1, &[]))?, otherwise)?;
            Some(branch)
        })();
        let result = |i| made.and_then(|b| self.keep(b.result(i).map(Into::into).map_err(|e| e.to_string())));
        (std::array::from_fn(result), std::array::from_fn(|i| result(N + i)))
    }

    fn clamp(&self, x: Self::F, lo: f32, hi: f32) -> Self::F {
        let (lo, hi) = (self.f(lo), self.f(hi));
        if self.chip.generation == Generation::Cdna3 {
            // It has no maximum that keeps a NaN.
            let x = self.select(self.flt(x, lo), lo, x);
            return self.select(self.flt(hi, x), hi, x);
        }
        self.same("arith.minimumf", [self.same("arith.maximumf", [x, lo]), hi])
    }

    fn ldexp(&self, x: Self::F, n: Self::I) -> Self::F {
        if self.chip.arch == Arch::Amdgpu {
            return self.step([x, n], |e, v| e.intrinsic("llvm.ldexp.f32.i32", &v, e.ty(F32), &[]));
        }
        // Two factors: neither 2^n nor the first product leaves the normal numbers, so only the last product rounds.
        let first = self.shr_s(n, self.i(1));
        let second = self.isub(n, first);
        let power = |n| self.from_bits(self.iadd(self.shl(n, self.i(23)), self.i(0x3f80_0000)));
        self.fmul(self.fmul(x, power(first)), power(second))
    }
}
