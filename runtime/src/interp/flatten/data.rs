//! Operations on data that stay in their lane.

use lathe_dsl::ir::{BinaryOp, Inst, Op, OpDef, Scalar, Type, Value};

use super::super::alu;
use super::super::error::Error;
use super::super::program::{Class, Instr};
use super::super::registers::VReg;
use super::{Flattener, class, low_bits, rows};

impl<const W: usize> Flattener<'_, W> {
    /// The element type must be one that the operation is defined on.
    pub(super) fn defined(&self, def: &OpDef, ty: Type) -> Result<(), Error> {
        self.require(ty.is_data() && def.on.contains(ty.scalar()), || format!("`{}` of {ty}", def.name))
    }

    /// The `n` rows `a op b` in `dst`.
    pub(super) fn emit_binary(
        &mut self,
        op: BinaryOp,
        s: Scalar,
        dst: VReg,
        [a, b]: [VReg; 2],
        n: u32,
    ) -> Result<(), Error> {
        let Some(f) = alu::binary(op, s) else { return self.malformed(format!("`{op}` of {s}")) };
        self.emit(Instr::Map2 { dst, a, b, f, n });
        Ok(())
    }

    pub(super) fn data_op(&mut self, inst: &Inst) -> Result<(), Error> {
        if let Op::Assume(condition) = inst.op {
            self.no_result(inst)?;
            let condition = self.typed(condition, Type::BOOL)?;
            self.emit(Instr::Assume { condition });
            return Ok(());
        }
        let (v, ty) = self.result(inst)?;
        let n = ty.lanes();
        match &inst.op {
            Op::Const(bits) => {
                self.require(ty.is_data(), || format!("a constant of type {ty}"))?;
                let fits = bits.0 & !low_bits(ty.scalar().bits()) == 0;
                self.require(fits, || format!("constant {:#x} does not fit {}", bits.0, ty.scalar()))?;
                let dst = self.define(v)?;
                self.emit(Instr::Fill { dst, class: class(ty), n, bits: bits.0 });
            }
            Op::ThreadId(_) | Op::BlockId(_) | Op::LaneId => {
                self.require(ty == Type::U32, || format!("an index of type {ty}"))?;
                let dst = self.define(v)?;
                self.emit(match inst.op {
                    Op::ThreadId(axis) => Instr::ThreadId { dst, axis },
                    Op::BlockId(axis) => Instr::BlockId { dst, axis },
                    _ => Instr::LaneId { dst },
                });
            }
            Op::Clock => {
                self.require(ty == Type::U64, || format!("`clock` gives {ty}"))?;
                let dst = self.define(v)?;
                self.emit(Instr::Clock { dst });
            }
            Op::Unary(op, a) => {
                self.defined(op.def(), ty)?;
                let a = self.typed(*a, ty)?;
                let Some(f) = alu::unary(*op, ty.scalar()) else {
                    return self.malformed(format!("`{op}` of {ty}"));
                };
                let dst = self.define(v)?;
                self.emit(Instr::Map1 { dst, a, f, n });
            }
            Op::Binary(op, a, b) => {
                self.defined(op.def(), ty)?;
                let operands = [self.typed(*a, ty)?, self.typed(*b, ty)?];
                let dst = self.define(v)?;
                self.emit_binary(*op, ty.scalar(), dst, operands, n)?;
            }
            Op::Compare(p, a, b) => {
                let (a, of) = self.data(*a)?;
                let b = self.typed(*b, of)?;
                self.defined(p.def(), of)?;
                self.require(ty == of.with_scalar(Scalar::Bool), || format!("comparison of {of} gives {ty}"))?;
                let dst = self.define(v)?;
                self.emit(Instr::Map2 { dst, a, b, f: alu::compare(*p, of.scalar()), n });
            }
            Op::Fma { a, b, c } => {
                let [a, b, c] = [self.typed(*a, ty)?, self.typed(*b, ty)?, self.typed(*c, ty)?];
                let f = alu::fma(ty.scalar()).filter(|_| ty.is_data());
                let Some(f) = f else { return self.malformed(format!("`fma` of {ty}")) };
                let dst = self.define(v)?;
                self.emit(Instr::Map3 { dst, a, b, c, f, n });
            }
            Op::Select { condition, on_true, on_false } => {
                let (condition, of) = self.operand(*condition)?;
                let each = of == ty.with_scalar(Scalar::Bool) && of != Type::BOOL;
                self.require(of == Type::BOOL || each && ty.is_data(), || format!("selection of {ty} by {of}"))?;
                let (a, b) = (self.typed(*on_true, ty)?, self.typed(*on_false, ty)?);
                let dst = self.define(v)?;
                self.emit(Instr::Select { dst, condition, a, b, class: class(ty), each, n: rows(ty) });
            }
            Op::Convert(a) => self.convert(v, ty, *a)?,
            Op::ConvertStochastic(a, random) => {
                let (a, from) = self.data(*a)?;
                let fits = from.scalar() == Scalar::F32 && ty == from.with_scalar(ty.scalar());
                let Some(f) = alu::convert_stochastic(ty.scalar()).filter(|_| fits) else {
                    return self.malformed(format!("{from} rounded stochastically to {ty}"));
                };
                let b = self.typed(*random, from.with_scalar(Scalar::U32))?;
                let dst = self.define(v)?;
                self.emit(Instr::Map2 { dst, a, b, f, n });
            }
            Op::Bitcast(a) => self.bitcast(v, ty, *a)?,
            Op::Encode { .. } => self.encode(v, ty, &inst.op)?,
            Op::Decode { codes, scale, format } => self.decode(v, ty, *codes, *scale, *format)?,
            Op::VectorFrom(elements) => {
                self.require(matches!(ty, Type::Vector(_, n) if n as usize == elements.len()), || {
                    format!("{} elements make {ty}", elements.len())
                })?;
                let element = Type::Scalar(ty.scalar());
                let sources = elements.iter().map(|e| self.typed(*e, element)).collect::<Result<Vec<_>, _>>()?;
                self.gather(v, ty, &sources)?;
            }
            Op::Extract(a, index) => {
                let (a, from) = self.data(*a)?;
                let fits = matches!(from, Type::Vector(s, n) if ty == Type::Scalar(s) && *index < n);
                self.require(fits, || format!("element {index} of {from} as {ty}"))?;
                self.bind(v, a.at(*index))?;
            }
            Op::ExtractAt(a, index) => {
                let (a, from) = self.data(*a)?;
                let fits = matches!(from, Type::Vector(s, _) if ty == Type::Scalar(s));
                self.require(fits, || format!("an element of {from} as {ty}"))?;
                let index = self.typed(*index, Type::U32)?;
                let dst = self.define(v)?;
                self.emit(Instr::ExtractAt { dst, a, index, class: class(ty), n: from.lanes() });
            }
            Op::Shuffle { a, b, mask } => {
                let (a, from) = self.data(*a)?;
                let b = self.typed(*b, from)?;
                let m = from.lanes();
                let fits = matches!((from, ty), (Type::Vector(s, _), Type::Vector(t, n)) if s == t && n as usize == mask.len());
                self.require(fits && mask.iter().all(|i| i / 2 < m), || {
                    format!("elements {mask:?} of two {from} make {ty}")
                })?;
                let sources: Vec<VReg> = mask.iter().map(|i| if *i < m { a.at(*i) } else { b.at(i - m) }).collect();
                self.gather(v, ty, &sources)?;
            }
            Op::Reduce(op, vector) => {
                let (a, from) = self.data(*vector)?;
                self.defined(op.def(), from)?;
                let fits = matches!(from, Type::Vector(s, _) if ty == Type::Scalar(s));
                self.require(fits, || format!("{from} reduced to {ty}"))?;
                let mut sum = a;
                for e in 1..from.lanes() {
                    let dst = self.temporary(ty);
                    self.emit_binary(op.step(), ty.scalar(), dst, [sum, a.at(e)], 1)?;
                    sum = dst;
                }
                self.bind(v, sum)?;
            }
            Op::PermB32(a, b, selector) => {
                self.require(ty == Type::U32, || format!("`perm_b32` gives {ty}"))?;
                let [a, b, c] = [self.typed(*a, ty)?, self.typed(*b, ty)?, self.typed(*selector, ty)?];
                let dst = self.define(v)?;
                self.emit(Instr::Map3 { dst, a, b, c, f: alu::perm_b32(), n: 1 });
            }
            Op::Opaque(a) | Op::Expect { condition: a, .. } => {
                let a = self.typed(*a, ty)?;
                self.bind(v, a)?;
            }
            op => return self.malformed(format!("`{}` is no operation on data", op.def().name)),
        }
        Ok(())
    }

    /// A vector of these elements.
    fn gather(&mut self, v: Value, ty: Type, elements: &[VReg]) -> Result<(), Error> {
        let dst = self.define(v)?;
        for (i, a) in elements.iter().enumerate() {
            self.emit(Instr::Move { dst: dst.at(i as u32), a: *a, class: class(ty), n: 1, masked: false });
        }
        Ok(())
    }

    fn convert(&mut self, v: Value, to: Type, a: Value) -> Result<(), Error> {
        let (a, from) = self.data(a)?;
        self.require(to == from.with_scalar(to.scalar()), || format!("{from} converted to {to}"))?;
        let a = self.converted(a, from, to.scalar())?;
        self.bind(v, a)
    }

    /// A register with `a` converted element by element.
    pub(super) fn converted(&mut self, a: VReg, from: Type, to: Scalar) -> Result<VReg, Error> {
        if alu::same_bits(from.scalar(), to) {
            return Ok(a);
        }
        let Some(f) = alu::convert(from.scalar(), to) else {
            return self.malformed(format!("{from} converted to {to}"));
        };
        let dst = self.temporary(from.with_scalar(to));
        self.emit(Instr::Map1 { dst, a, f, n: from.lanes() });
        Ok(dst)
    }

    fn bitcast(&mut self, v: Value, to: Type, a: Value) -> Result<(), Error> {
        let (a, from) = self.data(a)?;
        let (from_bits, to_bits) = (from.scalar().bits(), to.scalar().bits());
        let width = |t: Type| t.scalar().bits() * t.lanes();
        let plain = |t: Type| t.is_data() && t.scalar().in_memory();
        self.require(plain(from) && plain(to) && width(from) == width(to), || format!("bitcast from {from} to {to}"))?;
        if from_bits == to_bits {
            return self.bind(v, a);
        }
        let dst = self.define(v)?;
        let (wide, narrow) = (from_bits.max(to_bits), from_bits.min(to_bits));
        let class = if wide == 64 { Class::R64 } else { Class::R32 };
        let ratio = wide / narrow;
        self.emit(if from_bits < to_bits {
            Instr::Join { dst, a, class, n: to.lanes(), ratio, bits: narrow }
        } else {
            Instr::Split { dst, a, class, n: from.lanes(), ratio, bits: narrow }
        });
        Ok(())
    }
}
