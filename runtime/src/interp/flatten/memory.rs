//! Pointers, buffers, atomics.

use lathe_dsl::ir::{
    Access, AtomicKind, AtomicOp, Coherence, Inst, Memory, OffsetUnit, Op, Order, ParamKind, Scalar, Space, Type, Value,
};

use super::super::alu::{self, Rmw};
use super::super::error::Error;
use super::super::program::{Count, Instr, Offset, Source, Width};
use super::super::registers::VReg;
use super::{Binding, Flattener, class};

/// The operands that say where a buffer access lies.
struct Where {
    buffer: Value,
    offset: Value,
    unit: OffsetUnit,
    scalar: Option<Value>,
}

/// A buffer access made ready.
struct Placed {
    source: Source,
    buffer: VReg,
    offset: VReg,
    from: Offset,
}

impl<const W: usize> Flattener<'_, W> {
    pub(super) fn memory_op(&mut self, inst: &Inst) -> Result<(), Error> {
        match &inst.op {
            Op::LdsBase(_) | Op::PtrAdd(..) | Op::PtrCast(_) | Op::BufferPtr(_) | Op::IntToPtr(_) | Op::PtrToInt(_) => {
                return self.pointer(inst);
            }
            Op::PtrLoad { pointer, memory } => {
                let (v, ty) = self.result(inst)?;
                let (pointer, space, width) = self.access(*pointer, ty)?;
                let (n, align) = (ty.lanes(), self.alignment(memory, ty)?);
                let dst = self.define(v)?;
                self.ordered(memory.order, |f, ordered| {
                    f.emit(match space {
                        Space::Lds => Instr::LdsLoad { dst, pointer, width, n, align },
                        Space::Global => Instr::GlobalLoad { dst, pointer, width, n, align, ordered },
                    });
                });
            }
            Op::PtrStore { value, pointer, memory } => {
                self.no_result(inst)?;
                let (value, ty) = self.data(*value)?;
                let (pointer, space, width) = self.access(*pointer, ty)?;
                let (n, align) = (ty.lanes(), self.alignment(memory, ty)?);
                self.ordered(memory.order, |f, ordered| {
                    f.emit(match space {
                        Space::Lds => Instr::LdsStore { value, pointer, width, n, align },
                        Space::Global => Instr::GlobalStore { value, pointer, width, n, align, ordered },
                    });
                });
            }
            Op::LdsReadTr { pointer, bits } => {
                let (v, ty) = self.result(inst)?;
                let (pointer, space, width) = self.access(*pointer, ty)?;
                let (n, row) = (ty.lanes(), ty.scalar().bits());
                let chunk = if *bits == 6 { 96 } else { 64 };
                let known = matches!((bits, row), (16, 16) | (8, 8) | (4 | 6, 32));
                self.require(known && space == Space::Lds && n * row == chunk, || {
                    format!("a transposing read of {ty} with elements of {bits} bits")
                })?;
                let (a, align) = (self.temporary(ty), if *bits == 6 { 16 } else { 8 });
                self.emit(Instr::LdsLoad { dst: a, pointer, width, n, align });
                let dst = self.define(v)?;
                self.emit(Instr::Deal { dst, a, bits: *bits, row, n });
            }
            Op::AtomicRmw { op, pointer, value, .. } => {
                let (v, ty) = self.result(inst)?;
                let f = self.rmw(*op, ty)?;
                let value = self.typed(*value, ty)?;
                let (pointer, space, _) = self.access(*pointer, ty)?;
                let dst = self.define(v)?;
                self.emit(Instr::Rmw { dst, pointer, value, f, class: class(ty), space });
            }
            Op::AtomicCas { pointer, expected, value, .. } => {
                let (v, ty) = self.result(inst)?;
                self.rmw(AtomicOp::Xchg, ty)?;
                let (expected, value) = (self.typed(*expected, ty)?, self.typed(*value, ty)?);
                let (pointer, space, _) = self.access(*pointer, ty)?;
                let dst = self.define(v)?;
                self.emit(Instr::Cas { dst, pointer, expected, value, class: class(ty), space });
            }
            Op::Fence { .. } => {
                self.no_result(inst)?;
                self.emit(Instr::Fence {});
            }
            Op::Drain { .. } => {
                self.no_result(inst)?;
                self.emit(Instr::Fence {});
                self.emit(Instr::Drain {});
            }
            Op::MakeBuffer { address, bytes } => return self.make_buffer(inst, *address, *bytes),
            Op::BufferLoad { buffer, offset, unit, scalar, mask, fill, cache } => {
                let whole = cache.coherence != Coherence::Own;
                let (v, ty) = self.result(inst)?;
                let at = Where { buffer: *buffer, offset: *offset, unit: *unit, scalar: *scalar };
                self.require(mask.is_some() == fill.is_some(), || {
                    "a mask without a fill, or a fill without a mask".into()
                })?;
                let dst = self.define(v)?;
                if let Some(fill) = fill {
                    let a = self.typed(*fill, ty)?;
                    self.emit(Instr::Move { dst, a, class: class(ty), n: ty.lanes(), masked: false });
                }
                self.masked(*mask, |f| {
                    let (width, n) = (f.memory_width(ty)?, ty.lanes());
                    let Placed { source, buffer, offset, from } = f.place(at, width.bytes(), Access::Write)?;
                    f.emit(Instr::BufferLoad { dst, buffer, offset, source, from, width, n, whole });
                    Ok(())
                })?;
            }
            Op::BufferStore { value, buffer, offset, unit, scalar, mask, cache } => {
                self.no_result(inst)?;
                let whole = cache.coherence != Coherence::Own;
                let (value, ty) = self.data(*value)?;
                let at = Where { buffer: *buffer, offset: *offset, unit: *unit, scalar: *scalar };
                self.masked(*mask, |f| {
                    let (width, n) = (f.memory_width(ty)?, ty.lanes());
                    let Placed { source, buffer, offset, from } = f.place(at, width.bytes(), Access::Read)?;
                    f.emit(Instr::BufferStore { value, buffer, offset, source, from, width, n, whole });
                    Ok(())
                })?;
            }
            Op::SBufferLoad { buffer, offset, unit } => {
                let (v, ty) = self.result(inst)?;
                self.require(ty.is_data() && self.memory_width(ty)? == Width::B32, || {
                    format!("a scalar load of {ty}")
                })?;
                let at = Where { buffer: *buffer, offset: *offset, unit: *unit, scalar: None };
                let (dst, n) = (self.define(v)?, ty.lanes());
                let Placed { source, buffer, offset, from } = self.place(at, ty.scalar().bytes(), Access::Write)?;
                self.emit(Instr::ScalarLoad { dst, buffer, offset, source, from, n });
            }
            Op::BufferAtomicCas { expected, value, buffer, offset, unit, scalar, mask, .. } => {
                let (v, ty) = self.result(inst)?;
                self.rmw(AtomicOp::Xchg, ty)?;
                let (expected, value) = (self.typed(*expected, ty)?, self.typed(*value, ty)?);
                let at = Where { buffer: *buffer, offset: *offset, unit: *unit, scalar: *scalar };
                let (dst, class) = (self.define(v)?, class(ty));
                self.emit(Instr::Fill { dst, class, n: 1, bits: 0 });
                self.masked(*mask, |this| {
                    this.forbid(*buffer, Access::Write)?;
                    let Placed { source, buffer, offset, from } = this.place(at, ty.bytes(), Access::Read)?;
                    this.emit(Instr::BufferCas { dst, expected, value, buffer, offset, source, from, class });
                    Ok(())
                })?;
            }
            Op::BufferAtomic { kind: AtomicKind(op), value, buffer, offset, unit, scalar, mask, .. } => {
                let (v, ty) = self.result(inst)?;
                let f = self.rmw(*op, ty)?;
                let value = self.typed(*value, ty)?;
                let at = Where { buffer: *buffer, offset: *offset, unit: *unit, scalar: *scalar };
                let (dst, class) = (self.define(v)?, class(ty));
                self.emit(Instr::Fill { dst, class, n: 1, bits: 0 });
                self.masked(*mask, |this| {
                    this.forbid(*buffer, Access::Write)?;
                    let Placed { source, buffer, offset, from } = this.place(at, ty.bytes(), Access::Read)?;
                    this.emit(Instr::BufferRmw { dst, value, buffer, offset, f, source, from, class });
                    Ok(())
                })?;
            }
            Op::CopyToLds { buffer, offset, pointer, unit, scalar, bytes, .. } => {
                self.no_result(inst)?;
                self.require(matches!(bytes, 4 | 16), || format!("a copy of {bytes} bytes a lane"))?;
                let (pointer, ty) = self.operand(*pointer)?;
                let Type::Ptr(Space::Lds, elem) = ty else { return self.malformed(format!("a copy to {ty}")) };
                let at = Where { buffer: *buffer, offset: *offset, unit: *unit, scalar: *scalar };
                let Placed { source, buffer, offset, from } = self.place(at, elem.bytes(), Access::Write)?;
                self.emit(Instr::CopyToLds { pointer, buffer, offset, source, from, bytes: *bytes });
            }
            op => return self.malformed(format!("`{}` is no operation on memory", op.def().name)),
        }
        Ok(())
    }

    /// Operations that make pointers, or numbers of them.
    fn pointer(&mut self, inst: &Inst) -> Result<(), Error> {
        let (v, ty) = self.result(inst)?;
        match &inst.op {
            Op::LdsBase(array) => {
                let elem = self.kernel.lds.get(*array as usize).map(|a| a.elem);
                self.require(elem.map(|s| Type::Ptr(Space::Lds, s)) == Some(ty), || {
                    format!("pointer to LDS array {array} as {ty}")
                })?;
                let dst = self.define(v)?;
                self.emit(Instr::LdsBase { dst, array: *array });
            }
            Op::PtrAdd(pointer, count) => {
                let Type::Ptr(space, elem) = ty else {
                    return self.malformed(format!("pointer arithmetic gives {ty}"));
                };
                let pointer = self.typed(*pointer, ty)?;
                let (count, of) = self.operand(*count)?;
                self.require(matches!(of, Type::Scalar(s) if s.is_int()), || format!("{of} as a count"))?;
                let (count, kind) = match of.scalar() {
                    Scalar::U8 | Scalar::U16 | Scalar::U32 => (count, Count::U32),
                    Scalar::U64 => (count, Count::U64),
                    // Whatever is signed fits 64 bits.
                    _ => (self.converted(count, of, Scalar::I64)?, Count::I64),
                };
                let dst = self.define(v)?;
                self.emit(Instr::PtrAdd { dst, pointer, count, space, kind, bytes: elem.bytes() });
            }
            Op::PtrCast(pointer) => {
                let (r, of) = self.operand(*pointer)?;
                let fits = matches!((of, ty), (Type::Ptr(a, _), Type::Ptr(b, _)) if a == b);
                self.require(fits, || format!("{of} as {ty}"))?;
                self.bind(v, r)?;
            }
            Op::BufferPtr(buffer) => {
                let (r, of) = self.operand(*buffer)?;
                let fits = matches!((of, ty), (Type::Buffer(a), Type::Ptr(Space::Global, b)) if a == b);
                self.require(fits, || format!("{ty} to the memory of {of}"))?;
                // The first of its two rows.
                self.bind(v, r)?;
            }
            Op::IntToPtr(address) => match ty {
                Type::Ptr(Space::Global, _) => {
                    let r = self.typed(*address, Type::U64)?;
                    self.bind(v, r)?;
                }
                Type::Ptr(Space::Lds, _) => {
                    let address = self.typed(*address, Type::U32)?;
                    let dst = self.define(v)?;
                    self.emit(Instr::LdsPointer { dst, address });
                }
                ty => return self.malformed(format!("address as {ty}")),
            },
            Op::PtrToInt(pointer) => match (self.operand(*pointer)?, ty) {
                ((r, Type::Ptr(Space::Global, _)), Type::U64) => self.bind(v, r)?,
                ((pointer, Type::Ptr(Space::Lds, _)), Type::U32) => {
                    let dst = self.define(v)?;
                    self.emit(Instr::LdsAddress { dst, pointer });
                }
                ((_, of), ty) => return self.malformed(format!("address of {of} as {ty}")),
            },
            op => return self.malformed(format!("`{}` makes no pointer", op.def().name)),
        }
        Ok(())
    }

    fn make_buffer(&mut self, inst: &Inst, address: Value, bytes: Value) -> Result<(), Error> {
        let (v, ty) = self.result(inst)?;
        let Type::Buffer(elem) = ty else { return self.malformed(format!("`make_buffer` gives {ty}")) };
        let address = self.typed(address, Type::U64)?;
        let (bytes, of) = self.operand(bytes)?;
        let bytes = match of {
            Type::Scalar(Scalar::U32 | Scalar::Idx) => self.converted(bytes, of, Scalar::U64)?,
            Type::Scalar(Scalar::U64) => bytes,
            _ => return self.malformed(format!("{of} as an extent")),
        };
        let dst = self.define(v)?;
        for (i, a) in [address, bytes].into_iter().enumerate() {
            self.emit(Instr::Move { dst: dst.at(i as u32), a, class: class(ty), n: 1, masked: false });
        }
        self.emit(Instr::CheckBuffer { buffer: dst, align: elem.bytes() });
        Ok(())
    }

    /// The step of an atomic operation.
    fn rmw(&self, op: AtomicOp, ty: Type) -> Result<Rmw, Error> {
        let f = alu::rmw(op, ty.scalar()).filter(|_| matches!(ty, Type::Scalar(_)));
        f.map_or_else(|| self.malformed(format!("`{op}` of {ty}")), Ok)
    }

    /// Register and address space of a pointer through which `ty` is accessed.
    fn access(&mut self, pointer: Value, ty: Type) -> Result<(VReg, Space, Width), Error> {
        let (r, of) = self.operand(pointer)?;
        let Type::Ptr(space, elem) = of else { return self.malformed(format!("an access through {of}")) };
        self.require(elem == ty.scalar(), || format!("an access of {ty} through a pointer to {elem}"))?;
        Ok((r, space, self.memory_width(ty)?))
    }

    /// What the address must be a multiple of.
    fn alignment(&self, memory: &Memory, ty: Type) -> Result<u32, Error> {
        // What is atomic is so as a whole.
        let natural = if memory.order == Order::Plain { ty.scalar().bytes() } else { ty.bytes() };
        let align = memory.align.unwrap_or(natural);
        self.require(align.is_power_of_two(), || format!("an alignment of {align}"))?;
        Ok(align)
    }

    /// An access with fences around it if it has an order.
    fn ordered(&mut self, order: Order, emit: impl FnOnce(&mut Self, bool)) {
        let ordered = order != Order::Plain;
        if ordered {
            self.emit(Instr::Fence {});
        }
        emit(self, ordered);
        if ordered {
            self.emit(Instr::Fence {});
        }
    }

    /// What `emit` emits runs where `mask` holds.
    fn masked(&mut self, mask: Option<Value>, emit: impl FnOnce(&mut Self) -> Result<(), Error>) -> Result<(), Error> {
        let Some(mask) = mask else { return emit(self) };
        let condition = self.typed(mask, Type::BOOL)?;
        let start = self.pc();
        self.emit(Instr::If { condition, otherwise: 0 });
        emit(self)?;
        self.code[start as usize] = Instr::If { condition, otherwise: self.pc() };
        self.emit(Instr::Pop {});
        Ok(())
    }

    fn memory_width(&self, ty: Type) -> Result<Width, Error> {
        self.require(ty.is_data() && ty.scalar().in_memory(), || format!("{ty} in memory"))?;
        Ok(match ty.scalar().bytes() {
            1 => Width::B8,
            2 => Width::B16,
            4 => Width::B32,
            _ => Width::B64,
        })
    }

    /// A buffer parameter that is only loaded from must not be stored to, and the other way round.
    fn forbid(&self, buffer: Value, forbidden: Access) -> Result<(), Error> {
        let Binding::Buffer(param) = self.binding(buffer)? else { return Ok(()) };
        let p = &self.kernel.params[param as usize];
        let ParamKind::Buffer { access, .. } = p.kind else { return Ok(()) };
        self.require(access != forbidden, || match access {
            Access::Read => format!("store to read-only buffer `{}`", p.name),
            _ => format!("load from write-only buffer `{}`", p.name),
        })
    }

    /// Where an access to a buffer lies; `element` is the size of what the offset counts.
    fn place(&mut self, at: Where, element: u32, forbidden: Access) -> Result<Placed, Error> {
        let (offset, of) = self.operand(at.offset)?;
        let wide = match of {
            Type::Scalar(Scalar::U32) => false,
            Type::Scalar(Scalar::Idx) => true,
            _ => return self.malformed(format!("{of} as a buffer offset")),
        };
        let (source, buffer) = self.buffer(at.buffer, offset)?;
        self.forbid(at.buffer, forbidden)?;
        let scale = match at.unit {
            OffsetUnit::Bytes => 1,
            OffsetUnit::Elements => element as u8,
        };
        let from = Offset { wide, scale };
        let Some(scalar) = at.scalar else {
            // Any register does where the buffer is a parameter; it is not read.
            return Ok(Placed { source, buffer, offset, from });
        };
        let scalar = self.typed(scalar, Type::U32)?;
        let dst = self.temporary(Type::Scalar(Scalar::Idx));
        self.emit(Instr::ByteOffset { dst, offset, scalar, from });
        let buffer = if source == Source::Made { buffer } else { dst };
        Ok(Placed { source, buffer, offset: dst, from: Offset { wide: true, scale: 1 } })
    }
}
