//! Operations on data: which lowering each has, and vectors.

use lathe_dsl::ir::{self, BinaryOp, Op, ReduceOp, Scalar, UnaryOp};
use melior::ir::Value;
use melior::ir::attribute::DenseI32ArrayAttribute;

use super::Lowering;
use super::emit::{IntPredicate, Result};

impl<'c, 'a> Lowering<'c, 'a, '_> {
    /// An operation with one operand.
    fn unary(&self, op: UnaryOp, x: ir::Value, result: ir::Value) -> Result<Value<'c, 'a>> {
        let ty = self.work_type(&[x, result]);
        let v = self.get_in(x, ty)?;
        let made = if ty.scalar().is_float() { self.float_unary(op, ty, v) } else { self.int_unary(op, ty, v) };
        self.fit(made?, ty, result)
    }

    /// An operation with two operands.
    fn binary(&self, op: BinaryOp, a: ir::Value, b: ir::Value, result: ir::Value) -> Result<Value<'c, 'a>> {
        // All of it in a width that holds operands and result: what is promised of the result then holds of it.
        let ty = self.work_type(&[a, b, result]);
        let operands = [self.get_in(a, ty)?, self.get_in(b, ty)?];
        let made = if op == BinaryOp::Div && self.shared_divisors[b.index()] && self.reciprocals() {
            self.product_with_reciprocal(ty, operands)
        } else if ty.scalar().is_float() {
            self.float_binary(op, ty, operands)
        } else {
            self.int_binary(op, ty, operands, [a, b, result])
        };
        self.fit(made?, ty, result)
    }

    /// The elements of a vector combined one after another.
    fn reduce(&self, op: ReduceOp, vector: ir::Value, result: ir::Value) -> Result<Value<'c, 'a>> {
        let whole = self.work_type(&[vector]);
        let ty = ir::Type::Scalar(whole.scalar());
        let elements = self.emit.elements(whole, self.get(vector)?)?;
        let (first, rest) = elements.split_first().ok_or("a vector without elements")?;
        let made = rest.iter().try_fold(*first, |sum, v| {
            if ty.scalar().is_float() {
                self.float_binary(op.step(), ty, [sum, *v])
            } else {
                self.int_step(op.step(), ty, [sum, *v])
            }
        })?;
        self.fit(made, ty, result)
    }

    /// One element of a vector, named at run time: a chain of selects, because indexed registers are memory on some chips.
    /// Some element, if the name is none of an element.
    fn extract_at(&self, vector: ir::Value, index: ir::Value, result: ir::Value) -> Result<Value<'c, 'a>> {
        let (e, ty, index_ty) = (&self.emit, self.work_type(&[vector]), self.work_type(&[index]));
        let index = self.get(index)?;
        let elements = e.elements(ty, self.get(vector)?)?;
        let (first, rest) = elements.split_first().ok_or("a vector without elements")?;
        let made = rest.iter().zip(1..).try_fold(*first, |chosen, (element, i)| {
            let this = e.cmpi(IntPredicate::Eq, index, e.constant(index_ty, i)?, e.int(1))?;
            e.same_as_second("arith.select", &[this, *element, chosen])
        })?;
        self.fit(made, ir::Type::Scalar(ty.scalar()), result)
    }

    /// Operations that make one value and touch nothing else.
    pub(super) fn simple(&self, op: &Op, result: ir::Value) -> Result<Value<'c, 'a>> {
        let e = &self.emit;
        let ty = self.kernel.ty(result);
        match op {
            Op::Const(bits) => {
                // Of an index, the low bits of its representation.
                let work = self.work_type(&[result]);
                e.constant(work, bits.0 & (u64::MAX >> (64 - work.scalar().bits())))
            }
            Op::ThreadId(axis) => self.backend.thread_id(e, *axis, self.kernel.launch.block[axis.index()]),
            Op::BlockId(axis) => self.backend.block_id(e, *axis, self.kernel.launch.grid[axis.index()]),
            Op::Unary(op, x) => self.unary(*op, *x, result),
            Op::Binary(op, a, b) => self.binary(*op, *a, *b, result),
            Op::Compare(predicate, a, b) => self.compare(*predicate, *a, *b),
            Op::Fma { a, b, c } => self.fma([*a, *b, *c]),
            Op::Select { condition, on_true, on_false } => self.select(*condition, [*on_true, *on_false], result),
            Op::Convert(x) => self.convert(*x, result),
            Op::ConvertStochastic(x, random) => self.convert_stochastic(*x, *random, result),
            Op::Encode { .. } => self.encode(op, result),
            Op::Decode { codes, scale, format } => self.decode(*codes, *scale, *format, result),
            Op::Bitcast(x) => e.bitcast(self.get(*x)?, e.ty(ty)),
            Op::VectorFrom(elements) => {
                let whole = self.work_type(&[result]);
                let element = ir::Type::Scalar(whole.scalar());
                let elements = elements.iter().map(|v| self.get_in(*v, element)).collect::<Result<Vec<_>>>()?;
                e.gather(whole, &elements)
            }
            Op::Extract(vector, index) => {
                let element = self.work_type(&[*vector]).scalar();
                let made = e.extract(element, self.get(*vector)?, *index)?;
                self.fit(made, ir::Type::Scalar(element), result)
            }
            Op::ExtractAt(vector, index) => self.extract_at(*vector, *index, result),
            Op::Shuffle { a, b, mask } => {
                let mask: Vec<i32> = mask.iter().map(|i| *i as i32).collect();
                let mask = DenseI32ArrayAttribute::new(e.context, &mask).into();
                let operands = [self.get(*a)?, self.get(*b)?];
                e.value("llvm.shufflevector", &operands, e.ty(self.work_type(&[result])), &[("mask", mask)])
            }
            Op::Reduce(op, vector) => self.reduce(*op, *vector, result),
            op => Err(format!("`{}` is no operation on data", op.def().name)),
        }
    }
}

/// All bits of a scalar set.
pub(super) fn ones(s: Scalar) -> u64 {
    u64::MAX >> (64 - s.bits())
}
