//! Arithmetic, comparisons, conversions and vectors.

use lathe_dsl::ir::{self, BinaryOp, Op, Predicate, Scalar, UnaryOp};
use melior::ir::Value;

use super::Lowering;
use super::emit::{IntPredicate, Named, Result, sign_extend};

impl<'c, 'a> Lowering<'c, 'a, '_> {
    /// An operation with one operand.
    pub(super) fn unary(&self, op: UnaryOp, x: ir::Value) -> Result<Value<'c, 'a>> {
        let (e, ty, v) = (&self.emit, self.kernel.ty(x), self.get(x)?);
        match op {
            UnaryOp::Neg if ty.scalar().is_float() => e.same("arith.negf", &[v]),
            UnaryOp::Neg => e.same("arith.subi", &[e.constant(ty, 0)?, v]),
            UnaryOp::Not => e.same("arith.xori", &[v, e.constant(ty, ones(ty.scalar()))?]),
            UnaryOp::HwExp2 => e.each(ty, v, |x| self.backend.hw_exp2(e, x)),
            UnaryOp::HwRcp => e.each(ty, v, |x| self.backend.hw_rcp(e, x)),
            op => Err(format!("`{op}` is not lowered yet")),
        }
    }

    /// An operation with two operands.
    pub(super) fn binary(&self, op: BinaryOp, a: ir::Value, b: ir::Value) -> Result<Value<'c, 'a>> {
        let (e, ty) = (&self.emit, self.kernel.ty(a));
        let scalar = ty.scalar();
        let operands = [self.get(a)?, self.get(b)?];
        let pick = |float: &'static str, signed: &'static str, unsigned: &'static str| {
            e.same(
                if scalar.is_float() {
                    float
                } else if scalar.is_signed() {
                    signed
                } else {
                    unsigned
                },
                &operands,
            )
        };
        match op {
            BinaryOp::Add if scalar.is_float() => e.same("arith.addf", &operands),
            BinaryOp::Sub if scalar.is_float() => e.same("arith.subf", &operands),
            BinaryOp::Mul if scalar.is_float() => e.same("arith.mulf", &operands),
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul => {
                let name = match op {
                    BinaryOp::Add => "arith.addi",
                    BinaryOp::Sub => "arith.subi",
                    _ => "arith.muli",
                };
                e.value(name, &operands, e.ty(ty), &self.no_wrap(op, a, b)?)
            }
            BinaryOp::Div => e.same("arith.divf", &operands),
            BinaryOp::Maximum => pick("arith.maximumf", "arith.maxsi", "arith.maxui"),
            BinaryOp::Minimum => pick("arith.minimumf", "arith.minsi", "arith.minui"),
            BinaryOp::And => e.same("arith.andi", &operands),
            BinaryOp::Or => e.same("arith.ori", &operands),
            BinaryOp::Xor => e.same("arith.xori", &operands),
            BinaryOp::Shl | BinaryOp::Shr => {
                let mask = e.constant(ty, u64::from(scalar.bits() - 1))?;
                let amount = e.same("arith.andi", &[operands[1], mask])?;
                let name = match op {
                    BinaryOp::Shl => "arith.shli",
                    _ if scalar.is_signed() => "arith.shrsi",
                    _ => "arith.shrui",
                };
                let flags = if op == BinaryOp::Shl { self.no_wrap(op, a, b)? } else { vec![] };
                e.value(name, &[operands[0], amount], e.ty(ty), &flags)
            }
            BinaryOp::DivFloor => self.divide(ty, operands, [a, b], true),
            BinaryOp::RemFloor => self.divide(ty, operands, [a, b], false),
            op => Err(format!("`{op}` is not lowered yet")),
        }
    }

    /// The promises about wrap-around that are proved for an integer operation.
    fn no_wrap(&self, op: BinaryOp, a: ir::Value, b: ir::Value) -> Result<Vec<Named<'c>>> {
        let flags = match self.facts.no_wrap(self.kernel, op, a, b) {
            (false, false) => return Ok(vec![]),
            (true, false) => "nuw",
            (false, true) => "nsw",
            (true, true) => "nsw, nuw",
        };
        Ok(vec![("overflowFlags", self.emit.attribute(&format!("#arith.overflow<{flags}>"))?)])
    }

    /// Floor quotient or remainder.
    ///
    /// LLVM's division by zero, and of the smallest number by −1, is undefined behaviour of the whole program; here it
    /// may be no more than an unspecified (for −1: the wrapped) value.
    fn divide(
        &self,
        ty: ir::Type,
        [a, b]: [Value<'c, 'a>; 2],
        [dividend, divisor]: [ir::Value; 2],
        quotient: bool,
    ) -> Result<Value<'c, 'a>> {
        let e = &self.emit;
        let scalar = ty.scalar();
        let bits = scalar.bits();
        // Facts are about scalars; of vectors they know nothing.
        let (dividend, divisor) = (self.facts.get(dividend), self.facts.get(divisor));
        let top = u64::MAX >> (65 - bits);
        if !scalar.is_signed() || (dividend.max <= top && divisor.max <= top && divisor.min > 0) {
            let b = if divisor.min > 0 { b } else { e.same("arith.maxui", &[b, e.constant(ty, 1)?])? };
            return e.same(if quotient { "arith.divui" } else { "arith.remui" }, &[a, b]);
        }
        let signed = (divisor.min == divisor.max).then(|| sign_extend(divisor.min, bits));
        if let Some(d) = signed
            && d > 0
            && d.count_ones() == 1
        {
            return if quotient {
                e.same("arith.shrsi", &[a, e.constant(ty, u64::from(d.trailing_zeros()))?])
            } else {
                e.same("arith.andi", &[a, e.constant(ty, (d - 1) as u64)?])
            };
        }
        let (zero, one) = (e.constant(ty, 0)?, e.constant(ty, 1)?);
        let bool_ty = e.ty(ty.with_scalar(Scalar::Bool));
        // b ∈ {−1, 0} becomes 1: then the remainder is 0 and the quotient a, to be negated for −1.
        let awkward = match signed {
            Some(d) if d != 0 && d != -1 => None,
            _ => {
                let shifted = e.same("arith.addi", &[b, one])?;
                Some(e.cmpi(IntPredicate::Ule, shifted, one, bool_ty)?)
            }
        };
        let safe = match awkward {
            Some(c) => e.same_as_second("arith.select", &[c, one, b])?,
            None => b,
        };
        let remainder = e.same("arith.remsi", &[a, safe])?;
        // Truncation and floor differ where a remainder is left whose sign is not the divisor's.
        let left = e.cmpi(IntPredicate::Ne, remainder, zero, bool_ty)?;
        let signs = e.same("arith.xori", &[remainder, safe])?;
        let differ = e.cmpi(IntPredicate::Slt, signs, zero, bool_ty)?;
        let adjust = e.same("arith.andi", &[left, differ])?;
        if !quotient {
            let adjusted = e.same("arith.addi", &[remainder, safe])?;
            return e.same_as_second("arith.select", &[adjust, adjusted, remainder]);
        }
        let truncated = e.same("arith.divsi", &[a, safe])?;
        let lower = e.same("arith.subi", &[truncated, one])?;
        let floor = e.same_as_second("arith.select", &[adjust, lower, truncated])?;
        match awkward {
            None => Ok(floor),
            Some(c) => {
                let negated = e.same("arith.subi", &[zero, a])?;
                e.same_as_second("arith.select", &[c, negated, floor])
            }
        }
    }

    /// A comparison.
    pub(super) fn compare(&self, predicate: Predicate, a: ir::Value, b: ir::Value) -> Result<Value<'c, 'a>> {
        let (e, ty) = (&self.emit, self.kernel.ty(a));
        let (x, y) = (self.get(a)?, self.get(b)?);
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
            return e.value("arith.cmpf", &[x, y], result, &[("predicate", e.int_attribute(64, number))]);
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

    /// A conversion to the type of `result`.
    pub(super) fn convert(&self, x: ir::Value, result: ir::Value) -> Result<Value<'c, 'a>> {
        let (e, from, to) = (&self.emit, self.kernel.ty(x), self.kernel.ty(result));
        let (v, ty) = (self.get(x)?, e.ty(to));
        let (a, b) = (from.scalar(), to.scalar());
        let name = match (a, b) {
            (Scalar::Bf16, Scalar::F32) => "arith.extf",
            (Scalar::F32, Scalar::Bf16) => "arith.truncf",
            (a, Scalar::F32) if a.is_signed() => "arith.sitofp",
            (a, Scalar::F32) if a.is_int() => "arith.uitofp",
            (a, b) if a.is_int() && b.is_int() => {
                if a.bits() == b.bits() {
                    return Ok(v);
                } else if a.bits() > b.bits() {
                    "arith.trunci"
                } else if a.is_signed() {
                    "arith.extsi"
                } else {
                    "arith.extui"
                }
            }
            _ => return Err(format!("no conversion from {from} to {to}")),
        };
        e.value(name, &[v], ty, &[])
    }

    /// Operations on values that are none of the above.
    pub(super) fn simple(&self, op: &Op, result: ir::Value) -> Result<Value<'c, 'a>> {
        let e = &self.emit;
        let ty = self.kernel.ty(result);
        match op {
            Op::Const(bits) => e.constant(ty, bits.0),
            Op::ThreadId(axis) => self.backend.thread_id(e, *axis, self.kernel.launch.block[axis.index()]),
            Op::BlockId(axis) => self.backend.block_id(e, *axis, self.kernel.launch.grid[axis.index()]),
            Op::Unary(op, x) => self.unary(*op, *x),
            Op::Binary(op, a, b) => self.binary(*op, *a, *b),
            Op::Compare(predicate, a, b) => self.compare(*predicate, *a, *b),
            Op::Select { condition, on_true, on_false } => {
                let operands = [self.get(*condition)?, self.get(*on_true)?, self.get(*on_false)?];
                e.same_as_second("arith.select", &operands)
            }
            Op::Convert(x) => self.convert(*x, result),
            Op::Bitcast(x) => e.bitcast(self.get(*x)?, e.ty(ty)),
            Op::VectorFrom(elements) => {
                let elements = elements.iter().map(|v| self.get(*v)).collect::<Result<Vec<_>>>()?;
                e.gather(ty, &elements)
            }
            Op::Extract(vector, index) => e.extract(ty.scalar(), self.get(*vector)?, *index),
            op => Err(format!("`{}` is not lowered yet", op.def().name)),
        }
    }
}

/// All bits of a scalar set.
fn ones(s: Scalar) -> u64 {
    u64::MAX >> (64 - s.bits())
}
