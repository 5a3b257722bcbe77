//! Arithmetic on floats, comparisons and selections.
//!
//! `bf16` is computed in `f32` and rounded once, on every chip: `f32` has more than twice its digits, so the second
//! rounding changes nothing, and a chip's own `bf16` instructions give the same.

use lathe_dsl::ir::{self, BinaryOp, Family, FastFlags, Predicate, Scalar, UnaryOp};
use melior::ir::{Value, ValueLike};

use super::Lowering;
use super::emit::{IntPredicate, Named, Result};

impl<'c, 'a> Lowering<'c, 'a, '_> {
    /// The kernel's licence for a family.
    pub(super) fn licence(&self, family: Family) -> FastFlags {
        self.kernel.fast_math.of(family)
    }

    /// A family's licence as the attribute that `arith` operations carry.
    pub(super) fn arith_flags(&self, family: Family) -> Result<Vec<Named<'c>>> {
        self.emit.arith_flags(self.licence(family))
    }

    /// A family's licence as the attribute that `llvm` operations carry.
    pub(super) fn llvm_flags(&self, family: Family) -> Result<Vec<Named<'c>>> {
        self.emit.llvm_flags(self.licence(family))
    }

    /// Computes in `f32` what is given and wanted in `bf16` or `f16`.
    pub(super) fn in_f32(
        &self,
        ty: ir::Type,
        operands: &[Value<'c, 'a>],
        f: impl FnOnce(ir::Type, &[Value<'c, 'a>]) -> Result<Value<'c, 'a>>,
    ) -> Result<Value<'c, 'a>> {
        let (e, wide) = (&self.emit, ty.with_scalar(Scalar::F32));
        let extend = |v: &Value<'c, 'a>| e.value("arith.extf", &[*v], e.ty(wide), &[]);
        let operands = operands.iter().map(extend).collect::<Result<Vec<_>>>()?;
        e.value("arith.truncf", &[f(wide, &operands)?], e.ty(ty), &[])
    }

    /// Computes in `f32` what is given in bf16 and gives a number that bf16 has.
    fn in_f32_exactly(
        &self,
        ty: ir::Type,
        operands: &[Value<'c, 'a>],
        f: impl FnOnce(ir::Type, &[Value<'c, 'a>]) -> Result<Value<'c, 'a>>,
    ) -> Result<Value<'c, 'a>> {
        if !self.backend.bf16_is_dear() {
            return self.in_f32(ty, operands, f);
        }
        // Not by `extf`, which LLVM would draw behind the operation, and round after it.
        let operands = operands.iter().map(|v| self.bf16_bits_to_f32(ty, *v)).collect::<Result<Vec<_>>>()?;
        self.upper_half(ty, f(ty.with_scalar(Scalar::F32), &operands)?)
    }

    /// The bf16 in the upper half of an `f32`, whose lower half is 0.
    fn upper_half(&self, ty: ir::Type, v: Value<'c, 'a>) -> Result<Value<'c, 'a>> {
        let (e, word) = (&self.emit, ty.with_scalar(Scalar::U32));
        let bits = e.same("arith.shrui", &[e.bitcast(v, e.ty(word))?, e.constant(word, 16)?])?;
        let half = e.value("arith.trunci", &[bits], e.ty(ty.with_scalar(Scalar::U16)), &[])?;
        e.bitcast(half, e.ty(ty))
    }

    /// An operation with one float operand.
    pub(super) fn float_unary(&self, op: UnaryOp, ty: ir::Type, v: Value<'c, 'a>) -> Result<Value<'c, 'a>> {
        let e = &self.emit;
        let scalar = ty.scalar();
        let intrinsic = |name: &str, v| e.float_intrinsic(name, ty, &[v], &[]);
        // Exact in `f32`: an integer near a bf16 or f16 number is one.
        let rounded = |name: &str| match scalar {
            Scalar::Bf16 => self.in_f32_exactly(ty, &[v], |wide, v| e.float_intrinsic(name, wide, v, &[])),
            _ => intrinsic(name, v),
        };
        match op {
            UnaryOp::Neg => e.value("arith.negf", &[v], e.ty(ty), &self.arith_flags(Family::Arith)?),
            UnaryOp::Abs => intrinsic("llvm.fabs", v),
            UnaryOp::Floor => rounded("llvm.floor"),
            UnaryOp::Ceil => rounded("llvm.ceil"),
            UnaryOp::Trunc => rounded("llvm.trunc"),
            UnaryOp::Roundeven => rounded("llvm.roundeven"),
            UnaryOp::Round if scalar.bits() == 16 => self.in_f32(ty, &[v], |wide, v| self.round_away(wide, v[0])),
            UnaryOp::Round => self.round_away(ty, v),
            UnaryOp::Sqrt => self.sqrt(ty, v),
            UnaryOp::Rsqrt => self.rsqrt(ty, v),
            UnaryOp::HwExp2 | UnaryOp::HwLog2 | UnaryOp::HwRcp | UnaryOp::HwRsq | UnaryOp::HwSqrt => {
                let (flush, licence) = (self.kernel.fast_math.flush_subnormals, self.licence(Family::Math));
                e.each(ty, v, |x| self.backend.hardware(e, op, x, flush, licence))
            }
            op => self.math_unary(op, ty, v),
        }
    }

    /// The nearest integer, halves away from 0: exact steps only.
    fn round_away(&self, ty: ir::Type, v: Value<'c, 'a>) -> Result<Value<'c, 'a>> {
        let e = &self.emit;
        let intrinsic = |name: &str, operands: &[Value<'c, 'a>]| e.float_intrinsic(name, ty, operands, &[]);
        let whole = intrinsic("llvm.trunc", &[v])?;
        let rest = intrinsic("llvm.fabs", &[e.same("arith.subf", &[v, whole])?])?;
        let (half, one) = (e.float_constant(ty, 0.5)?, e.float_constant(ty, 1.0)?);
        // MLIR's number of oge; of an infinity the rest is a NaN, which is not ≥ ½.
        let predicate = [("predicate", e.int_attribute(64, 3))];
        let up = e.value("arith.cmpf", &[rest, half], e.ty(ty.with_scalar(Scalar::Bool)), &predicate)?;
        let away = e.same("arith.addf", &[whole, intrinsic("llvm.copysign", &[one, v])?])?;
        e.same_as_second("arith.select", &[up, away, whole])
    }

    /// Correctly rounded square root. A chip's own `f16` root need not be, the `f32` one rounded is.
    fn sqrt(&self, ty: ir::Type, v: Value<'c, 'a>) -> Result<Value<'c, 'a>> {
        let flags = self.llvm_flags(Family::Math)?;
        let root = |ty, v: &[Value<'c, 'a>]| self.emit.float_intrinsic("llvm.sqrt", ty, v, &flags);
        if ty.scalar().bits() == 16 { self.in_f32(ty, &[v], root) } else { root(ty, &[v]) }
    }

    /// Root and quotient, each correctly rounded; of the 16-bit types both in `f32`.
    fn rsqrt(&self, ty: ir::Type, v: Value<'c, 'a>) -> Result<Value<'c, 'a>> {
        if ty.scalar().bits() == 16 {
            return self.in_f32(ty, &[v], |wide, v| self.rsqrt(wide, v[0]));
        }
        if ty.scalar() == Scalar::F32 && self.licence(Family::Math).has(FastFlags::AFN) {
            return self.float_unary(UnaryOp::HwRsq, ty, v);
        }
        self.quotient(Family::Math, ty, [self.emit.float_constant(ty, 1.0)?, self.sqrt(ty, v)?])
    }

    fn quotient(&self, family: Family, ty: ir::Type, operands: [Value<'c, 'a>; 2]) -> Result<Value<'c, 'a>> {
        let flags = self.arith_flags(family)?;
        let divide = |ty, v: &[Value<'c, 'a>]| self.emit.value("arith.divf", v, self.emit.ty(ty), &flags);
        if ty.scalar() == Scalar::Bf16 { self.in_f32(ty, &operands, divide) } else { divide(ty, &operands) }
    }

    /// Whether divisions by one divisor may become one reciprocal and products. Where quotients may be approximate LLVM makes
    /// a reciprocal of each; of exact ones it shares none on these targets.
    pub(super) fn reciprocals(&self) -> bool {
        let licence = self.licence(Family::Arith);
        licence.has(FastFlags::ARCP) && !licence.has(FastFlags::AFN)
    }

    /// `a · (1 / b)`; LLVM keeps one of equal reciprocals.
    pub(super) fn product_with_reciprocal(&self, ty: ir::Type, [a, b]: [Value<'c, 'a>; 2]) -> Result<Value<'c, 'a>> {
        let e = &self.emit;
        let reciprocal = self.quotient(Family::Arith, ty, [e.float_constant(ty, 1.0)?, b])?;
        e.value("arith.mulf", &[a, reciprocal], e.ty(ty), &self.arith_flags(Family::Arith)?)
    }

    /// `bf16` as the upper half of an `f32`, a signaling NaN too.
    fn bf16_bits_to_f32(&self, ty: ir::Type, v: Value<'c, 'a>) -> Result<Value<'c, 'a>> {
        let (e, word) = (&self.emit, ty.with_scalar(Scalar::U32));
        let half = e.bitcast(v, e.ty(ty.with_scalar(Scalar::U16)))?;
        let low = e.value("arith.extui", &[half], e.ty(word), &[])?;
        let high = e.same("arith.shli", &[low, e.constant(word, 16)?])?;
        e.bitcast(high, e.ty(ty.with_scalar(Scalar::F32)))
    }

    /// An operation with two float operands.
    pub(super) fn float_binary(
        &self,
        op: BinaryOp,
        ty: ir::Type,
        operands: [Value<'c, 'a>; 2],
    ) -> Result<Value<'c, 'a>> {
        let e = &self.emit;
        let bf16 = ty.scalar() == Scalar::Bf16;
        let arith = |name: &str, family| {
            let flags = self.arith_flags(family)?;
            let make = |ty, v: &[Value<'c, 'a>]| e.value(name, v, e.ty(ty), &flags);
            if bf16 { self.in_f32(ty, &operands, make) } else { make(ty, &operands) }
        };
        match op {
            BinaryOp::Add => arith("arith.addf", Family::Arith),
            BinaryOp::Sub => arith("arith.subf", Family::Arith),
            BinaryOp::Mul => arith("arith.mulf", Family::Arith),
            BinaryOp::Div => self.quotient(Family::Arith, ty, operands),
            BinaryOp::DivFloor => self.float_unary(UnaryOp::Floor, ty, self.quotient(Family::Arith, ty, operands)?),
            BinaryOp::Maximum | BinaryOp::Minimum => {
                let name = if op == BinaryOp::Maximum { "arith.maximumf" } else { "arith.minimumf" };
                let flags = self.arith_flags(Family::Extrema)?;
                let make = |ty, v: &[Value<'c, 'a>]| e.value(name, v, e.ty(ty), &flags);
                if bf16 { self.in_f32_exactly(ty, &operands, make) } else { make(ty, &operands) }
            }
            BinaryOp::Maxnum | BinaryOp::Minnum => {
                // Not `maxnum`, which leaves the sign of a zero open.
                let name = if op == BinaryOp::Maxnum { "llvm.maximumnum" } else { "llvm.minimumnum" };
                let flags = self.llvm_flags(Family::Extrema)?;
                let make = |ty, v: &[Value<'c, 'a>]| e.float_intrinsic(name, ty, v, &flags);
                if !bf16 {
                    return make(ty, &operands);
                }
                // Not by `extf`: LLVM takes its result for quiet, but widening bf16 moves bits, and gfx9's maximum of a
                // signaling NaN and a number is a NaN.
                let wide = [self.bf16_bits_to_f32(ty, operands[0])?, self.bf16_bits_to_f32(ty, operands[1])?];
                let result = make(ty.with_scalar(Scalar::F32), &wide)?;
                if self.backend.bf16_is_dear() {
                    return self.upper_half(ty, result);
                }
                e.value("arith.truncf", &[result], e.ty(ty), &[])
            }
            BinaryOp::Copysign if ty.scalar().bits() == 16 && !self.backend.short_copysign_keeps_nan() => {
                let bits = ty.with_scalar(Scalar::U16);
                let part = |v, mask| e.same("arith.andi", &[e.bitcast(v, e.ty(bits))?, e.constant(bits, mask)?]);
                let (magnitude, sign) = (part(operands[0], 0x7FFF)?, part(operands[1], 0x8000)?);
                e.bitcast(e.same("arith.ori", &[magnitude, sign])?, e.ty(ty))
            }
            BinaryOp::Copysign => e.float_intrinsic("llvm.copysign", ty, &operands, &[]),
            op => self.math_binary(op, ty, operands),
        }
    }

    /// `a·b + c`, rounded once.
    pub(super) fn fma(&self, operands: [ir::Value; 3]) -> Result<Value<'c, 'a>> {
        let (e, ty) = (&self.emit, self.kernel.ty(operands[0]));
        let values = [self.get(operands[0])?, self.get(operands[1])?, self.get(operands[2])?];
        let flags = self.llvm_flags(Family::Arith)?;
        let make = |ty, v: &[Value<'c, 'a>]| e.float_intrinsic("llvm.fma", ty, v, &flags);
        if ty.scalar() == Scalar::Bf16 { self.in_f32(ty, &values, make) } else { make(ty, &values) }
    }

    /// A comparison.
    pub(super) fn compare(&self, predicate: Predicate, a: ir::Value, b: ir::Value) -> Result<Value<'c, 'a>> {
        let (e, ty) = (&self.emit, self.work_type(&[a, b]));
        let (x, y) = (self.get_in(a, ty)?, self.get_in(b, ty)?);
        let result = e.ty(ty.with_scalar(Scalar::Bool));
        if ty.scalar().is_float() {
            // MLIR's numbers of oeq, une, olt, ole, ogt, oge.
            let number = match predicate {
                Predicate::Eq => 1,
                Predicate::Ne => 13,
                Predicate::Lt => 4,
                Predicate::Le => 5,
                Predicate::Gt => 2,
                Predicate::Ge => 3,
            };
            let mut attributes = vec![("predicate", e.int_attribute(64, number))];
            attributes.extend(self.arith_flags(Family::Compare)?);
            return e.value("arith.cmpf", &[x, y], result, &attributes);
        }
        let signed = ty.scalar().is_signed();
        let choose = |s, u| if signed { s } else { u };
        let predicate = match predicate {
            Predicate::Eq => IntPredicate::Eq,
            Predicate::Ne => IntPredicate::Ne,
            Predicate::Lt => choose(IntPredicate::Slt, IntPredicate::Ult),
            Predicate::Le => choose(IntPredicate::Sle, IntPredicate::Ule),
            Predicate::Gt => choose(IntPredicate::Sgt, IntPredicate::Ugt),
            Predicate::Ge => choose(IntPredicate::Sge, IntPredicate::Uge),
        };
        e.cmpi(predicate, x, y, result)
    }

    /// One of two values, by one condition or by one for each element.
    pub(super) fn select(
        &self,
        condition: ir::Value,
        [on_true, on_false]: [ir::Value; 2],
        result: ir::Value,
    ) -> Result<Value<'c, 'a>> {
        let (e, ty) = (&self.emit, self.work_type(&[result]));
        let operands = [self.get(condition)?, self.get_in(on_true, ty)?, self.get_in(on_false, ty)?];
        let flags = if ty.scalar().is_float() { self.llvm_flags(Family::Compare)? } else { vec![] };
        // Only LLVM's own select carries flags.
        let name = if flags.is_empty() { "arith.select" } else { "llvm.select" };
        e.value(name, &operands, operands[1].r#type(), &flags)
    }
}
