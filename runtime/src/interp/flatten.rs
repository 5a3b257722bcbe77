//! Kernel IR → [`Program`]: structured control flow becomes jumps and mask instructions, typed operations become typed
//! instructions over virtual registers; [`super::registers`] then places those.
//!
//! What execution relies on is checked here, so that a kernel that skipped the verifier gives an error, not a panic.

use lathe_dsl::ir::{
    Access, BinaryOp, Bits, Block, Inst, Kernel, Location, OffsetUnit, Op, ParamKind, Predicate, Scalar, Space, Type,
    UnaryOp, Value,
};

use super::error::Error;
use super::lds;
use super::program::{
    Binary32, Binary64, Class, Compared, Conversion, Divide, Instr, Pc, Program, Relation, Unary32, Unary64, Width,
};
use super::registers::{self, VReg};

/// Regions may nest this deep; flattening recurses.
const MAX_DEPTH: u32 = lathe_dsl::verify::MAX_DEPTH as u32;
/// Elements of a vector.
const MAX_ELEMENTS: u32 = 1024;
/// Rows of lanes in one register file of a wave.
const MAX_ROWS: u32 = 1 << 16;
/// Threads of a workgroup: the limit of every target.
const MAX_THREADS: u32 = 1024;
/// LDS of a workgroup; far above any target's.
const MAX_LDS_BYTES: u32 = 16 << 20;

/// What a value of the kernel stands for.
#[derive(Clone, Copy)]
enum Binding {
    Rows(VReg),
    Buffer(u32),
}

struct Flattener<'a> {
    kernel: &'a Kernel,
    code: Vec<Instr<VReg>>,
    locations: Vec<Location>,
    /// Register file and rows of every virtual register.
    vregs: Vec<(Class, u32)>,
    bindings: Vec<Option<Binding>>,
    /// Values bound so far in the open regions.
    scope: Vec<Value>,
    /// Location of the operation being flattened.
    location: Option<Location>,
    depth: u32,
}

pub(super) fn flatten(kernel: &Kernel) -> Result<Program, Error> {
    let mut f = Flattener {
        kernel,
        code: vec![],
        locations: vec![],
        vregs: vec![],
        bindings: vec![None; kernel.values.len()],
        scope: vec![],
        location: None,
        depth: 0,
    };
    f.check_frame()?;
    f.bind_params()?;
    f.block(&kernel.body)?;
    f.location = None;
    f.emit(Instr::End);
    let (code, rows) = registers::place(f.code.as_slice(), &f.vregs);
    if rows.iter().any(|r| *r > MAX_ROWS) {
        let most = rows[0].max(rows[1]);
        return f.malformed(format!("it needs {most} registers a lane; the CPU device allows {MAX_ROWS}"));
    }
    Ok(Program {
        name: kernel.name.clone(),
        wave: kernel.wave,
        grid: kernel.launch.grid,
        block: kernel.launch.block,
        params: kernel.params.clone(),
        lds: kernel.lds.clone(),
        lds_layout: kernel.lds_layout(),
        code,
        locations: f.locations,
        rows,
    })
}

fn class(ty: Type) -> Class {
    match ty {
        Type::Ptr(..) => Class::R64,
        _ if ty.scalar().bits() == 64 => Class::R64,
        _ => Class::R32,
    }
}

fn low_bits(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}

impl Flattener<'_> {
    fn malformed<T>(&self, message: impl Into<String>) -> Result<T, Error> {
        Err(Error::Malformed { kernel: self.kernel.name.clone(), location: self.location, message: message.into() })
    }

    fn require(&self, holds: bool, message: impl FnOnce() -> String) -> Result<(), Error> {
        if holds { Ok(()) } else { self.malformed(message()) }
    }

    /// Wave, launch shape, LDS.
    fn check_frame(&self) -> Result<(), Error> {
        let k = self.kernel;
        self.require(matches!(k.wave, 32 | 64), || format!("waves of {} lanes; 32 and 64 are known", k.wave))?;
        let threads = k.launch.block_threads();
        self.require((1..=MAX_THREADS).contains(&threads), || {
            let [x, y, z] = k.launch.block;
            format!("workgroups of {x}×{y}×{z} threads; 1 to {MAX_THREADS} are allowed")
        })?;
        self.require(k.lds.len() <= lds::MAX_ARRAYS, || format!("{} LDS arrays", k.lds.len()))?;
        let mut end = 0u64;
        for a in &k.lds {
            self.require(a.align.is_power_of_two() && a.align <= MAX_LDS_BYTES, || {
                format!("LDS array `{}` is aligned to {} bytes", a.name, a.align)
            })?;
            self.require(a.elem != Scalar::Bool, || format!("LDS array `{}` of bool", a.name))?;
            end = end.next_multiple_of(u64::from(a.align)) + u64::from(a.len) * u64::from(a.elem.bytes());
            self.require(end <= u64::from(MAX_LDS_BYTES), || {
                format!("LDS array `{}` ends at byte {end}; the CPU device has {MAX_LDS_BYTES}", a.name)
            })?;
        }
        Ok(())
    }

    fn bind_params(&mut self) -> Result<(), Error> {
        for (i, p) in self.kernel.params.iter().enumerate() {
            let value = Value(i as u32);
            match (p.kind, self.ty(value)?) {
                (ParamKind::Buffer { elem, len, .. }, Type::Buffer(e)) if e == elem => {
                    self.require(len.checked_mul(u64::from(elem.bytes())).is_some(), || {
                        format!("buffer `{}` has {len} elements of {elem}", p.name)
                    })?;
                    self.bindings[i] = Some(Binding::Buffer(i as u32));
                }
                (ParamKind::Scalar(s), Type::Scalar(t)) if s == t => {
                    let dst = self.define(value)?;
                    let param = i as u32;
                    self.emit(match class(Type::Scalar(s)) {
                        Class::R32 => Instr::Param32 { dst, param },
                        Class::R64 => Instr::Param64 { dst, param },
                    });
                }
                (_, ty) => return self.malformed(format!("parameter `{}` has type {ty}", p.name)),
            }
        }
        // Parameters are visible everywhere.
        self.scope.clear();
        Ok(())
    }

    fn ty(&self, v: Value) -> Result<Type, Error> {
        match self.kernel.values.get(v.index()) {
            Some(ty) if ty.lanes() == 0 || ty.lanes() > MAX_ELEMENTS => {
                self.malformed(format!("{v:?} is a vector of {} elements", ty.lanes()))
            }
            Some(ty) => Ok(*ty),
            None => self.malformed(format!("{v:?} has no type")),
        }
    }

    fn temporary(&mut self, class: Class, n: u32) -> VReg {
        self.vregs.push((class, n));
        VReg { id: self.vregs.len() as u32 - 1, row: 0 }
    }

    fn bind(&mut self, v: Value, rows: VReg) -> Result<(), Error> {
        self.require(self.bindings[v.index()].is_none(), || format!("{v:?} is defined twice"))?;
        self.bindings[v.index()] = Some(Binding::Rows(rows));
        self.scope.push(v);
        Ok(())
    }

    /// A fresh register for `v`.
    fn define(&mut self, v: Value) -> Result<VReg, Error> {
        let ty = self.ty(v)?;
        let rows = self.temporary(class(ty), ty.lanes());
        self.bind(v, rows)?;
        Ok(rows)
    }

    fn binding(&self, v: Value) -> Result<Binding, Error> {
        match self.bindings.get(v.index()) {
            Some(Some(b)) => Ok(*b),
            _ => self.malformed(format!("{v:?} is used where it is not defined")),
        }
    }

    /// Register and type of an operand that is not a buffer.
    fn operand(&self, v: Value) -> Result<(VReg, Type), Error> {
        match self.binding(v)? {
            Binding::Rows(r) => Ok((r, self.ty(v)?)),
            Binding::Buffer(_) => self.malformed(format!("buffer {v:?} is used as a value")),
        }
    }

    /// Register of an operand that must have type `ty`.
    fn typed(&self, v: Value, ty: Type) -> Result<VReg, Error> {
        let (r, t) = self.operand(v)?;
        self.require(t == ty, || format!("operand {v:?} is {t}, not {ty}"))?;
        Ok(r)
    }

    fn emit(&mut self, instr: Instr<VReg>) {
        const NOWHERE: Location = Location { file: "<kernel>", line: 0, column: 0 };
        self.code.push(instr);
        self.locations.push(self.location.unwrap_or(NOWHERE));
    }

    fn pc(&self) -> Pc {
        self.code.len() as Pc
    }

    /// Flattens a region's operations; the values it defines stay bound until [`Self::leave`].
    fn block(&mut self, block: &Block) -> Result<(), Error> {
        self.depth += 1;
        self.require(self.depth <= MAX_DEPTH, || format!("regions nest deeper than {MAX_DEPTH}"))?;
        for inst in &block.insts {
            let index = (inst.number.0 as usize).wrapping_sub(1);
            self.location = self.kernel.locations.get(index).copied();
            self.require(self.location.is_some(), || format!("operation {} has no location", inst.number.0))?;
            self.inst(inst)?;
        }
        self.depth -= 1;
        Ok(())
    }

    /// Forgets the values bound since `scope` was `mark` long.
    fn leave(&mut self, mark: usize) {
        for v in self.scope.drain(mark..) {
            self.bindings[v.index()] = None;
        }
    }

    /// The single result's value and type.
    fn result(&self, inst: &Inst) -> Result<(Value, Type), Error> {
        match inst.results.as_slice() {
            [v] => Ok((*v, self.ty(*v)?)),
            r => self.malformed(format!("{} results where one is due", r.len())),
        }
    }

    fn no_result(&self, inst: &Inst) -> Result<(), Error> {
        self.require(inst.results.is_empty(), || format!("{} results where none is due", inst.results.len()))
    }

    fn inst(&mut self, inst: &Inst) -> Result<(), Error> {
        match &inst.op {
            Op::Const(bits) => self.constant(inst, *bits),
            Op::ThreadId(axis) | Op::BlockId(axis) => {
                let (v, ty) = self.result(inst)?;
                self.require(ty == Type::Scalar(Scalar::U32), || format!("an index of type {ty}"))?;
                let dst = self.define(v)?;
                self.emit(match inst.op {
                    Op::ThreadId(_) => Instr::ThreadId { dst, axis: *axis },
                    _ => Instr::BlockId { dst, axis: *axis },
                });
                Ok(())
            }
            Op::Unary(op, a) => self.unary(inst, *op, *a),
            Op::Binary(op, a, b) => self.binary(inst, *op, *a, *b),
            Op::Compare(p, a, b) => self.compare(inst, *p, *a, *b),
            Op::Select { condition, on_true, on_false } => {
                let (v, ty) = self.result(inst)?;
                let condition = self.typed(*condition, Type::Scalar(Scalar::Bool))?;
                let (a, b) = (self.typed(*on_true, ty)?, self.typed(*on_false, ty)?);
                let (dst, n) = (self.define(v)?, ty.lanes());
                self.emit(match class(ty) {
                    Class::R32 => Instr::Select32 { dst, condition, a, b, n },
                    Class::R64 => Instr::Select64 { dst, condition, a, b, n },
                });
                Ok(())
            }
            Op::Convert(a) => self.convert(inst, *a),
            Op::Bitcast(a) => self.bitcast(inst, *a),
            Op::VectorFrom(elements) => self.vector(inst, elements),
            Op::Extract(a, index) => {
                let (v, ty) = self.result(inst)?;
                let (a, from) = self.operand(*a)?;
                let fits = matches!(from, Type::Vector(s, n) if ty == Type::Scalar(s) && *index < n);
                self.require(fits, || format!("element {index} of {from} as {ty}"))?;
                self.bind(v, a.at(*index))
            }
            Op::LdsBase(array) => {
                let (v, ty) = self.result(inst)?;
                let elem = self.kernel.lds.get(*array as usize).map(|a| a.elem);
                self.require(elem.map(|s| Type::Ptr(Space::Lds, s)) == Some(ty), || {
                    format!("pointer to LDS array {array} as {ty}")
                })?;
                let dst = self.define(v)?;
                self.emit(Instr::LdsBase { dst, array: *array });
                Ok(())
            }
            Op::PtrAdd(pointer, count) => {
                let (v, ty) = self.result(inst)?;
                self.require(matches!(ty, Type::Ptr(..)), || format!("pointer arithmetic gives {ty}"))?;
                let pointer = self.typed(*pointer, ty)?;
                let count = self.typed(*count, Type::Scalar(Scalar::U32))?;
                let dst = self.define(v)?;
                self.emit(Instr::PtrAdd { dst, pointer, count, bytes: ty.scalar().bytes() });
                Ok(())
            }
            Op::PtrLoad { pointer, .. } => {
                let (v, ty) = self.result(inst)?;
                let width = self.memory_width(ty)?;
                let pointer = self.typed(*pointer, Type::Ptr(Space::Lds, ty.scalar()))?;
                let dst = self.define(v)?;
                self.emit(Instr::LdsLoad { dst, pointer, width, n: ty.lanes() });
                Ok(())
            }
            Op::PtrStore { value, pointer, .. } => {
                self.no_result(inst)?;
                let (value, ty) = self.operand(*value)?;
                let width = self.memory_width(ty)?;
                let pointer = self.typed(*pointer, Type::Ptr(Space::Lds, ty.scalar()))?;
                self.emit(Instr::LdsStore { value, pointer, width, n: ty.lanes() });
                Ok(())
            }
            Op::BufferLoad { buffer, offset, unit, .. } => {
                let (v, ty) = self.result(inst)?;
                let (param, offset, width, scale) = self.buffer_access(*buffer, *offset, *unit, ty, Access::Write)?;
                let dst = self.define(v)?;
                self.emit(Instr::BufferLoad { dst, offset, param, scale, width, n: ty.lanes() });
                Ok(())
            }
            Op::BufferStore { value, buffer, offset, unit, .. } => {
                self.no_result(inst)?;
                let (value, ty) = self.operand(*value)?;
                let (param, offset, width, scale) = self.buffer_access(*buffer, *offset, *unit, ty, Access::Read)?;
                self.emit(Instr::BufferStore { value, offset, param, scale, width, n: ty.lanes() });
                Ok(())
            }
            Op::Barrier => {
                self.no_result(inst)?;
                self.emit(Instr::Barrier);
                Ok(())
            }
            Op::If { condition, then, otherwise } => self.if_(inst, *condition, then, otherwise),
            Op::For { lo, hi, step, init, body, .. } => self.for_(inst, *lo, *hi, *step, init, body),
            op => self.malformed(format!("`{}` is not executed yet", op.def().name)),
        }
    }

    fn constant(&mut self, inst: &Inst, bits: Bits) -> Result<(), Error> {
        let (v, ty) = self.result(inst)?;
        self.require(ty.is_data(), || format!("a constant of type {ty}"))?;
        let fits = bits.0 & !low_bits(ty.scalar().bits()) == 0;
        self.require(fits, || format!("constant {:#x} does not fit {}", bits.0, ty.scalar()))?;
        let (dst, n) = (self.define(v)?, ty.lanes());
        self.emit(match class(ty) {
            Class::R32 => Instr::Fill32 { dst, n, bits: bits.0 as u32 },
            Class::R64 => Instr::Fill64 { dst, n, bits: bits.0 },
        });
        Ok(())
    }

    fn unary(&mut self, inst: &Inst, op: UnaryOp, a: Value) -> Result<(), Error> {
        let (v, ty) = self.result(inst)?;
        let a = self.typed(a, ty)?;
        let n = ty.lanes();
        let scalar = ty.scalar();
        self.require(ty.is_data(), || format!("{op:?} of {ty}"))?;
        if class(ty) == Class::R64 {
            let op = match op {
                UnaryOp::Neg => Unary64::Neg,
                UnaryOp::Not => Unary64::Not,
                _ => return self.malformed(format!("{op:?} of {ty}")),
            };
            let dst = self.define(v)?;
            self.emit(Instr::Unary64 { op, dst, a, n });
            return Ok(());
        }
        let op = match (op, scalar) {
            (UnaryOp::Neg, Scalar::U16) => Unary32::NegInt16,
            (UnaryOp::Neg, Scalar::I32 | Scalar::U32) => Unary32::NegInt32,
            (UnaryOp::Neg, Scalar::F32) => Unary32::NegF32,
            (UnaryOp::Neg, Scalar::Bf16) => Unary32::NegBf16,
            (UnaryOp::Not, Scalar::Bool) => Unary32::NotBool,
            (UnaryOp::Not, Scalar::U16) => Unary32::Not16,
            (UnaryOp::Not, Scalar::I32 | Scalar::U32) => Unary32::Not32,
            (UnaryOp::HwExp2, Scalar::F32) => Unary32::HwExp2,
            (UnaryOp::HwRcp, Scalar::F32) => Unary32::HwRcp,
            _ => return self.malformed(format!("{op:?} of {ty}")),
        };
        let dst = self.define(v)?;
        self.emit(Instr::Unary32 { op, dst, a, n });
        Ok(())
    }

    fn binary(&mut self, inst: &Inst, op: BinaryOp, a: Value, b: Value) -> Result<(), Error> {
        let (v, ty) = self.result(inst)?;
        let (a, b) = (self.typed(a, ty)?, self.typed(b, ty)?);
        self.require(ty.is_data(), || format!("{op:?} of {ty}"))?;
        let (n, scalar) = (ty.lanes(), ty.scalar());
        if matches!(op, BinaryOp::DivFloor | BinaryOp::RemFloor) && scalar.is_int() {
            let op = match (op, scalar.is_signed()) {
                (BinaryOp::DivFloor, false) => Divide::Unsigned,
                (BinaryOp::DivFloor, true) => Divide::Signed,
                (_, false) => Divide::UnsignedRem,
                (_, true) => Divide::SignedRem,
            };
            let dst = self.define(v)?;
            self.emit(match class(ty) {
                Class::R32 => Instr::Divide32 { op, dst, a, b, n },
                Class::R64 => Instr::Divide64 { op, dst, a, b, n },
            });
            return Ok(());
        }
        match class(ty) {
            Class::R32 => {
                let Some(op) = binary32(op, scalar) else { return self.malformed(format!("{op:?} of {ty}")) };
                let dst = self.define(v)?;
                self.emit(Instr::Binary32 { op, dst, a, b, n });
            }
            Class::R64 => {
                let Some(op) = binary64(op, scalar) else { return self.malformed(format!("{op:?} of {ty}")) };
                let dst = self.define(v)?;
                self.emit(Instr::Binary64 { op, dst, a, b, n });
            }
        }
        Ok(())
    }

    fn compare(&mut self, inst: &Inst, predicate: Predicate, a: Value, b: Value) -> Result<(), Error> {
        let (v, result) = self.result(inst)?;
        let (a, ty) = self.operand(a)?;
        let b = self.typed(b, ty)?;
        self.require(ty.is_data() && result == ty.with_scalar(Scalar::Bool), || {
            format!("comparison of {ty} gives {result}")
        })?;
        let relation = match predicate {
            Predicate::Eq => Relation::Eq,
            Predicate::Ne => Relation::Ne,
            Predicate::Lt => Relation::Lt,
            Predicate::Le => Relation::Le,
            Predicate::Gt => Relation::Gt,
            Predicate::Ge => Relation::Ge,
        };
        let (dst, n) = (self.define(v)?, ty.lanes());
        self.emit(match ty.scalar() {
            Scalar::I64 => Instr::Compare64 { relation, signed: true, dst, a, b, n },
            Scalar::U64 => Instr::Compare64 { relation, signed: false, dst, a, b, n },
            Scalar::I32 => Instr::Compare32 { relation, kind: Compared::Signed, dst, a, b, n },
            Scalar::F32 => Instr::Compare32 { relation, kind: Compared::F32, dst, a, b, n },
            Scalar::Bf16 => Instr::Compare32 { relation, kind: Compared::Bf16, dst, a, b, n },
            Scalar::Bool | Scalar::U16 | Scalar::U32 => {
                Instr::Compare32 { relation, kind: Compared::Unsigned, dst, a, b, n }
            }
            s => return self.malformed(format!("comparison of {s} is not executed yet")),
        });
        Ok(())
    }

    fn convert(&mut self, inst: &Inst, a: Value) -> Result<(), Error> {
        use Conversion as C;
        use Scalar::{Bf16, F32, I32, I64, U16, U32, U64};
        let (v, to) = self.result(inst)?;
        let (a, from) = self.operand(a)?;
        self.require(from.is_data() && to == from.with_scalar(to.scalar()), || format!("{from} converted to {to}"))?;
        let op = match (from.scalar(), to.scalar()) {
            // The same bits in the same row: nothing to do.
            (f, t) if f == t => None,
            (U16, I32 | U32) | (I32, U32) | (U32, I32) | (I64, U64) | (U64, I64) => None,
            (I32 | U32, U16) => Some(C::Low16),
            (I64 | U64, U16) => Some(C::Low16From64),
            (I64 | U64, I32 | U32) => Some(C::Low32From64),
            (U16 | U32, I64 | U64) => Some(C::Zero64From32),
            (I32, I64 | U64) => Some(C::Sign64From32),
            (U16 | U32, F32) => Some(C::F32FromU32),
            (I32, F32) => Some(C::F32FromI32),
            (U64, F32) => Some(C::F32FromU64),
            (I64, F32) => Some(C::F32FromI64),
            (U16 | U32, Bf16) => Some(C::Bf16FromU32),
            (I32, Bf16) => Some(C::Bf16FromI32),
            (U64, Bf16) => Some(C::Bf16FromU64),
            (I64, Bf16) => Some(C::Bf16FromI64),
            (F32, Bf16) => Some(C::Bf16FromF32),
            (Bf16, F32) => Some(C::F32FromBf16),
            _ => return self.malformed(format!("{from} converted to {to}")),
        };
        match op {
            None => self.bind(v, a),
            Some(op) => {
                let dst = self.define(v)?;
                self.emit(Instr::Convert { op, dst, a, n: to.lanes() });
                Ok(())
            }
        }
    }

    fn bitcast(&mut self, inst: &Inst, a: Value) -> Result<(), Error> {
        let (v, to) = self.result(inst)?;
        let (a, from) = self.operand(a)?;
        let (from_bits, to_bits) = (from.scalar().bits(), to.scalar().bits());
        let width = |t: Type| t.scalar().bits() * t.lanes();
        self.require(from.is_data() && to.is_data() && width(from) == width(to), || {
            format!("bitcast from {from} to {to}")
        })?;
        if from_bits == to_bits {
            return self.bind(v, a);
        }
        let dst = self.define(v)?;
        let (wide, narrow) = (from_bits.max(to_bits), from_bits.min(to_bits));
        let ratio = wide / narrow;
        self.emit(match (from_bits < to_bits, wide) {
            (true, 64) => Instr::Join64 { dst, a, n: to.lanes(), ratio, bits: narrow },
            (true, _) => Instr::Join32 { dst, a, n: to.lanes(), ratio, bits: narrow },
            (false, 64) => Instr::Split64 { dst, a, n: from.lanes(), ratio, bits: narrow },
            (false, _) => Instr::Split32 { dst, a, n: from.lanes(), ratio, bits: narrow },
        });
        Ok(())
    }

    fn vector(&mut self, inst: &Inst, elements: &[Value]) -> Result<(), Error> {
        let (v, ty) = self.result(inst)?;
        self.require(matches!(ty, Type::Vector(_, n) if n as usize == elements.len()), || {
            format!("{} elements make {ty}", elements.len())
        })?;
        let sources =
            elements.iter().map(|e| self.typed(*e, Type::Scalar(ty.scalar()))).collect::<Result<Vec<_>, _>>()?;
        let dst = self.define(v)?;
        for (i, a) in sources.into_iter().enumerate() {
            self.emit_move(dst.at(i as u32), a, class(ty), 1, false);
        }
        Ok(())
    }

    fn memory_width(&self, ty: Type) -> Result<Width, Error> {
        match ty.scalar().bits() {
            16 if ty.is_data() => Ok(Width::B16),
            32 if ty.is_data() => Ok(Width::B32),
            64 if ty.is_data() => Ok(Width::B64),
            _ => self.malformed(format!("{ty} in memory")),
        }
    }

    fn buffer_access(
        &self,
        buffer: Value,
        offset: Value,
        unit: OffsetUnit,
        ty: Type,
        forbidden: Access,
    ) -> Result<(u32, VReg, Width, u32), Error> {
        let Binding::Buffer(param) = self.binding(buffer)? else {
            return self.malformed(format!("{buffer:?} is accessed as a buffer"));
        };
        let p = &self.kernel.params[param as usize];
        if let ParamKind::Buffer { access, .. } = p.kind {
            self.require(access != forbidden, || match access {
                Access::Read => format!("store to read-only buffer `{}`", p.name),
                _ => format!("load from write-only buffer `{}`", p.name),
            })?;
        }
        let offset = self.typed(offset, Type::Scalar(Scalar::U32))?;
        let width = self.memory_width(ty)?;
        let scale = match unit {
            OffsetUnit::Bytes => 1,
            OffsetUnit::Elements => width.bytes(),
        };
        Ok((param, offset, width, scale))
    }

    fn emit_move(&mut self, dst: VReg, a: VReg, class: Class, n: u32, masked: bool) {
        self.emit(match class {
            Class::R32 => Instr::Move32 { dst, a, n, masked },
            Class::R64 => Instr::Move64 { dst, a, n, masked },
        });
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
                let saved = self.temporary(class(ty), ty.lanes());
                self.emit_move(saved, a, class(ty), ty.lanes(), false);
                moves[i].1 = saved;
            }
        }
        for (dst, a, ty) in moves {
            self.emit_move(dst, a, class(ty), ty.lanes(), true);
        }
        Ok(())
    }

    fn results(&self, inst: &Inst) -> Result<Vec<Type>, Error> {
        inst.results.iter().map(|v| self.ty(*v)).collect()
    }

    fn if_(&mut self, inst: &Inst, condition: Value, then: &Block, otherwise: &Block) -> Result<(), Error> {
        let condition = self.typed(condition, Type::Scalar(Scalar::Bool))?;
        self.require(then.params.is_empty() && otherwise.params.is_empty(), || "a branch with parameters".into())?;
        let targets: Vec<(VReg, Type)> =
            self.results(inst)?.into_iter().map(|ty| (self.temporary(class(ty), ty.lanes()), ty)).collect();
        let location = self.location;
        let start = self.pc();
        self.emit(Instr::If { condition, otherwise: 0 });
        let mark = self.scope.len();
        self.block(then)?;
        self.location = location;
        self.emit_yields(&then.yields, &targets)?;
        self.leave(mark);
        let mut end_of_then = None;
        if !(otherwise.insts.is_empty() && otherwise.yields.is_empty() && targets.is_empty()) {
            end_of_then = Some(self.pc());
            self.emit(Instr::Else { end: 0 });
            self.block(otherwise)?;
            self.location = location;
            self.emit_yields(&otherwise.yields, &targets)?;
            self.leave(mark);
        }
        let end = self.pc();
        self.emit(Instr::Pop);
        if let Some(at) = end_of_then {
            self.code[at as usize] = Instr::Else { end };
        }
        self.code[start as usize] = Instr::If { condition, otherwise: end_of_then.unwrap_or(end) };
        for (v, (rows, _)) in inst.results.iter().zip(targets) {
            self.bind(*v, rows)?;
        }
        Ok(())
    }

    fn for_(
        &mut self,
        inst: &Inst,
        lo: Value,
        hi: Value,
        step: u32,
        init: &[Value],
        body: &Block,
    ) -> Result<(), Error> {
        self.require(step > 0, || "a loop with step 0".into())?;
        let (lo, hi) = (self.typed(lo, Type::Scalar(Scalar::U32))?, self.typed(hi, Type::Scalar(Scalar::U32))?);
        let types = self.results(inst)?;
        self.require(init.len() == types.len() && body.params.len() == types.len() + 1, || {
            let params = body.params.len();
            format!("a loop with {} initial values, {params} parameters, {} results", init.len(), types.len())
        })?;
        let index = self.temporary(Class::R32, 1);
        self.emit_move(index, lo, Class::R32, 1, false);
        let mut carried = vec![];
        for (v, ty) in init.iter().zip(types) {
            let a = self.typed(*v, ty)?;
            let rows = self.temporary(class(ty), ty.lanes());
            self.emit_move(rows, a, class(ty), ty.lanes(), false);
            carried.push((rows, ty));
        }
        let location = self.location;
        let start = self.pc();
        self.emit(Instr::Loop { index, hi, exit: 0 });
        let mark = self.scope.len();
        let expected = std::iter::once((index, Type::Scalar(Scalar::U32))).chain(carried.iter().copied());
        for (v, (rows, ty)) in body.params.iter().zip(expected) {
            let t = self.ty(*v)?;
            self.require(t == ty, || format!("loop parameter {v:?} is {t}, not {ty}"))?;
            self.bind(*v, rows)?;
        }
        self.block(body)?;
        self.location = location;
        self.emit_yields(&body.yields, &carried)?;
        self.leave(mark);
        self.emit(Instr::Next { index, hi, step, body: start + 1 });
        self.code[start as usize] = Instr::Loop { index, hi, exit: self.pc() };
        self.emit(Instr::Pop);
        for (v, (rows, _)) in inst.results.iter().zip(carried) {
            self.bind(*v, rows)?;
        }
        Ok(())
    }
}

fn binary32(op: BinaryOp, scalar: Scalar) -> Option<Binary32> {
    use Binary32 as B;
    use Scalar::{Bf16, Bool, F32, I32, U16, U32};
    Some(match (op, scalar) {
        (BinaryOp::Add, U16) => B::AddInt16,
        (BinaryOp::Add, I32 | U32) => B::AddInt32,
        (BinaryOp::Add, F32) => B::AddF32,
        (BinaryOp::Add, Bf16) => B::AddBf16,
        (BinaryOp::Sub, U16) => B::SubInt16,
        (BinaryOp::Sub, I32 | U32) => B::SubInt32,
        (BinaryOp::Sub, F32) => B::SubF32,
        (BinaryOp::Sub, Bf16) => B::SubBf16,
        (BinaryOp::Mul, U16) => B::MulInt16,
        (BinaryOp::Mul, I32 | U32) => B::MulInt32,
        (BinaryOp::Mul, F32) => B::MulF32,
        (BinaryOp::Mul, Bf16) => B::MulBf16,
        (BinaryOp::Div, F32) => B::DivF32,
        (BinaryOp::And, Bool | U16 | I32 | U32) => B::And,
        (BinaryOp::Or, Bool | U16 | I32 | U32) => B::Or,
        (BinaryOp::Xor, Bool | U16 | I32 | U32) => B::Xor,
        (BinaryOp::Shl, U16) => B::Shl16,
        (BinaryOp::Shl, I32 | U32) => B::Shl32,
        (BinaryOp::Shr, U16) => B::Shr16,
        (BinaryOp::Shr, U32) => B::ShrU32,
        (BinaryOp::Shr, I32) => B::ShrI32,
        (BinaryOp::Maximum, U16 | U32) => B::MaxU32,
        (BinaryOp::Maximum, I32) => B::MaxI32,
        (BinaryOp::Maximum, F32) => B::MaxF32,
        (BinaryOp::Maximum, Bf16) => B::MaxBf16,
        (BinaryOp::Minimum, U16 | U32) => B::MinU32,
        (BinaryOp::Minimum, I32) => B::MinI32,
        (BinaryOp::Minimum, F32) => B::MinF32,
        (BinaryOp::Minimum, Bf16) => B::MinBf16,
        _ => return None,
    })
}

fn binary64(op: BinaryOp, scalar: Scalar) -> Option<Binary64> {
    use Binary64 as B;
    let signed = scalar.is_signed();
    Some(match op {
        BinaryOp::Add => B::Add,
        BinaryOp::Sub => B::Sub,
        BinaryOp::Mul => B::Mul,
        BinaryOp::And => B::And,
        BinaryOp::Or => B::Or,
        BinaryOp::Xor => B::Xor,
        BinaryOp::Shl => B::Shl,
        BinaryOp::Shr if signed => B::ShrI,
        BinaryOp::Shr => B::ShrU,
        BinaryOp::Maximum if signed => B::MaxI,
        BinaryOp::Maximum => B::MaxU,
        BinaryOp::Minimum if signed => B::MinI,
        BinaryOp::Minimum => B::MinU,
        _ => return None,
    })
}
