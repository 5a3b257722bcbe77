//! Arithmetic on integers, truth values and indices.

use lathe_dsl::ir::{self, BinaryOp, Scalar, UnaryOp};
use melior::ir::Value;

use super::Lowering;
use super::arith::ones;
use super::emit::{IntPredicate, Named, Result};

/// What is known of the operands of an integer operation: their least and largest value, as the numbers they are.
type Ranges = [(i128, i128); 2];

impl<'c, 'a> Lowering<'c, 'a, '_> {
    /// An operation with one operand, an integer or `bool`.
    pub(super) fn int_unary(&self, op: UnaryOp, ty: ir::Type, v: Value<'c, 'a>) -> Result<Value<'c, 'a>> {
        let e = &self.emit;
        let total = [("is_zero_poison", e.int_attribute(1, 0))];
        match op {
            UnaryOp::Neg => e.same("arith.subi", &[e.constant(ty, 0)?, v]),
            UnaryOp::Not => e.same("arith.xori", &[v, e.constant(ty, ones(ty.scalar()))?]),
            UnaryOp::Abs if !ty.scalar().is_signed() => Ok(v),
            UnaryOp::Abs => e.value("llvm.intr.abs", &[v], e.ty(ty), &[("is_int_min_poison", e.int_attribute(1, 0))]),
            UnaryOp::Ctpop => e.same("llvm.intr.ctpop", &[v]),
            UnaryOp::Ctlz => e.value("llvm.intr.ctlz", &[v], e.ty(ty), &total),
            UnaryOp::Cttz => self.trailing_zeros(ty, v),
            op => Err(format!("`{op}` of {ty} has no meaning")),
        }
    }

    /// Zeros below the lowest set bit.
    fn trailing_zeros(&self, ty: ir::Type, v: Value<'c, 'a>) -> Result<Value<'c, 'a>> {
        let (e, bits) = (&self.emit, ty.scalar().bits());
        let total = [("is_zero_poison", e.int_attribute(1, 0))];
        // Narrower ones with a bit set above them.
        let wide = if bits < 32 { ty.with_scalar(Scalar::U32) } else { ty };
        let mut padded = self.resize(v, ty, wide, false)?;
        if bits < 32 {
            padded = e.same("arith.ori", &[padded, e.constant(wide, 1 << bits)?])?;
        }
        let mut reversed = vec![];
        for x in e.elements(wide, padded)? {
            let Some(x) = self.backend.reversed(e, x, bits.max(32))? else {
                return e.value("llvm.intr.cttz", &[v], e.ty(ty), &total);
            };
            reversed.push(x);
        }
        let count = e.value("llvm.intr.ctlz", &[e.gather(wide, &reversed)?], e.ty(wide), &total)?;
        self.resize(count, wide, ty, false)
    }

    /// An operation with two operands, integers or `bool`, of which something may be known.
    pub(super) fn int_binary(
        &self,
        op: BinaryOp,
        ty: ir::Type,
        operands: [Value<'c, 'a>; 2],
        [a, b, result]: [ir::Value; 3],
    ) -> Result<Value<'c, 'a>> {
        let e = &self.emit;
        let name = match op {
            BinaryOp::Add => "arith.addi",
            BinaryOp::Sub => "arith.subi",
            BinaryOp::Mul => "arith.muli",
            BinaryOp::Shl => "arith.shli",
            BinaryOp::DivFloor | BinaryOp::RemFloor | BinaryOp::DivTrunc | BinaryOp::RemTrunc | BinaryOp::CeilDiv => {
                return self.divide(op, ty, operands, [self.range(a), self.range(b)]);
            }
            op => return self.int_step(op, ty, operands),
        };
        let operands = if op == BinaryOp::Shl { [operands[0], self.shift_amount(ty, operands[1])?] } else { operands };
        e.value(name, &operands, e.ty(ty), &self.no_wrap(op, a, b, result)?)
    }

    /// An operation with two operands, integers or `bool`, of which nothing is known.
    pub(super) fn int_step(&self, op: BinaryOp, ty: ir::Type, operands: [Value<'c, 'a>; 2]) -> Result<Value<'c, 'a>> {
        let e = &self.emit;
        let signed = ty.scalar().is_signed();
        let name = match op {
            BinaryOp::Add => "arith.addi",
            BinaryOp::Mul => "arith.muli",
            BinaryOp::Maximum if signed => "arith.maxsi",
            BinaryOp::Maximum => "arith.maxui",
            BinaryOp::Minimum if signed => "arith.minsi",
            BinaryOp::Minimum => "arith.minui",
            BinaryOp::And => "arith.andi",
            BinaryOp::Or => "arith.ori",
            BinaryOp::Xor => "arith.xori",
            BinaryOp::Shr | BinaryOp::Shrui => {
                let name = if signed && op == BinaryOp::Shr { "arith.shrsi" } else { "arith.shrui" };
                return e.same(name, &[operands[0], self.shift_amount(ty, operands[1])?]);
            }
            op => return Err(format!("`{op}` of {ty} has no meaning")),
        };
        e.same(name, &operands)
    }

    fn shift_amount(&self, ty: ir::Type, amount: Value<'c, 'a>) -> Result<Value<'c, 'a>> {
        self.emit.same("arith.andi", &[amount, self.emit.constant(ty, u64::from(ty.scalar().bits() - 1))?])
    }

    /// The promises about wrap-around that hold of an integer operation.
    fn no_wrap(&self, op: BinaryOp, a: ir::Value, b: ir::Value, result: ir::Value) -> Result<Vec<Named<'c>>> {
        let proved = if self.kernel.ty(result).scalar() == Scalar::Idx {
            // The author promised it; and numbers that are not negative are the same read as unsigned ones.
            let positive = [a, b, result].into_iter().all(|v| self.range(v).0 >= 0);
            (positive, true)
        } else {
            self.facts.no_wrap(self.kernel, op, a, b)
        };
        let flags = match proved {
            (false, false) => return Ok(vec![]),
            (true, false) => "nuw",
            (false, true) => "nsw",
            (true, true) => "nsw, nuw",
        };
        Ok(vec![("overflowFlags", self.emit.attribute(&format!("#arith.overflow<{flags}>"))?)])
    }

    /// A quotient or remainder.
    ///
    /// LLVM's division by zero, and of the smallest number by −1, is undefined behaviour of the whole program; here it
    /// may be no more than an unspecified (for −1: the wrapped) value.
    fn divide(
        &self,
        op: BinaryOp,
        ty: ir::Type,
        [a, b]: [Value<'c, 'a>; 2],
        [dividend, divisor]: Ranges,
    ) -> Result<Value<'c, 'a>> {
        if !ty.scalar().is_signed() || (dividend.0 >= 0 && divisor.0 >= 0) {
            return self.divide_unsigned(op, ty, [a, b], [dividend, divisor]);
        }
        let e = &self.emit;
        let known = (divisor.0 == divisor.1).then_some(divisor.0);
        if let Some(d) = known.filter(|d| *d > 0 && d.count_ones() == 1) {
            let shift = || e.same("arith.shrsi", &[a, e.constant(ty, u64::from(d.trailing_zeros()))?]);
            let low = || e.same("arith.andi", &[a, e.constant(ty, (d - 1) as u64)?]);
            match op {
                BinaryOp::DivFloor => return shift(),
                BinaryOp::RemFloor => return low(),
                BinaryOp::CeilDiv => return self.add_if_nonzero(ty, shift()?, low()?),
                _ => {}
            }
        }
        let (zero, one) = (e.constant(ty, 0)?, e.constant(ty, 1)?);
        let bool_ty = e.ty(ty.with_scalar(Scalar::Bool));
        // b ∈ {−1, 0} becomes 1: then the remainder is 0 and the quotient a, to be negated for −1.
        let awkward = if divisor.0 > 0 || divisor.1 < -1 {
            None
        } else {
            let shifted = e.same("arith.addi", &[b, one])?;
            Some(e.cmpi(IntPredicate::Ule, shifted, one, bool_ty)?)
        };
        let safe = match awkward {
            Some(c) => e.same_as_second("arith.select", &[c, one, b])?,
            None => b,
        };
        let remainder = || e.same("arith.remsi", &[a, safe]);
        // Whether a remainder is left, and whether its sign is the divisor's: where a quotient rounded down or up differs
        // from one rounded towards 0.
        let adjust = |remainder, same_sign: bool| {
            let left = e.cmpi(IntPredicate::Ne, remainder, zero, bool_ty)?;
            let signs = e.same("arith.xori", &[remainder, safe])?;
            let predicate = if same_sign { IntPredicate::Sge } else { IntPredicate::Slt };
            e.same("arith.andi", &[left, e.cmpi(predicate, signs, zero, bool_ty)?])
        };
        let quotient = match op {
            BinaryOp::RemTrunc => return remainder(),
            BinaryOp::RemFloor => {
                let remainder = remainder()?;
                let adjusted = e.same("arith.addi", &[remainder, safe])?;
                return e.same_as_second("arith.select", &[adjust(remainder, false)?, adjusted, remainder]);
            }
            BinaryOp::DivTrunc => e.same("arith.divsi", &[a, safe])?,
            op => {
                let up = op == BinaryOp::CeilDiv;
                let condition = adjust(remainder()?, up)?;
                let truncated = e.same("arith.divsi", &[a, safe])?;
                let next = e.same(if up { "arith.addi" } else { "arith.subi" }, &[truncated, one])?;
                e.same_as_second("arith.select", &[condition, next, truncated])?
            }
        };
        match awkward {
            None => Ok(quotient),
            Some(c) => {
                let negated = e.same("arith.subi", &[zero, a])?;
                e.same_as_second("arith.select", &[c, negated, quotient])
            }
        }
    }

    /// A quotient or remainder of numbers that are not negative.
    fn divide_unsigned(
        &self,
        op: BinaryOp,
        ty: ir::Type,
        [a, b]: [Value<'c, 'a>; 2],
        [dividend, divisor]: Ranges,
    ) -> Result<Value<'c, 'a>> {
        let e = &self.emit;
        let b = if divisor.0 > 0 { b } else { e.same("arith.maxui", &[b, e.constant(ty, 1)?])? };
        match op {
            BinaryOp::DivFloor | BinaryOp::DivTrunc => e.same("arith.divui", &[a, b]),
            BinaryOp::RemFloor | BinaryOp::RemTrunc => e.same("arith.remui", &[a, b]),
            // A sum that needs more bits than both operands would make the division a wider one.
            _ if dividend.1 + divisor.1 - 1 <= i128::from(ones(ty.scalar()))
                && (divisor.0 == divisor.1
                    || dividend.1.max(divisor.1) > u32::MAX.into()
                    || dividend.1 + divisor.1 - 1 <= u32::MAX.into()) =>
            {
                let less = e.same("arith.subi", &[b, e.constant(ty, 1)?])?;
                let raised = e.same("arith.addi", &[a, less])?;
                e.same("arith.divui", &[raised, b])
            }
            _ => {
                let (quotient, rest) = (e.same("arith.divui", &[a, b])?, e.same("arith.remui", &[a, b])?);
                self.add_if_nonzero(ty, quotient, rest)
            }
        }
    }

    /// `value + 1` where `rest` is not 0, else `value`.
    fn add_if_nonzero(&self, ty: ir::Type, value: Value<'c, 'a>, rest: Value<'c, 'a>) -> Result<Value<'c, 'a>> {
        let e = &self.emit;
        let left = e.cmpi(IntPredicate::Ne, rest, e.constant(ty, 0)?, e.ty(ty.with_scalar(Scalar::Bool)))?;
        e.same("arith.addi", &[value, e.value("arith.extui", &[left], e.ty(ty), &[])?])
    }
}
