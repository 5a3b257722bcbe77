//! Pointers, and accesses through them.

use lathe_dsl::ir::{self, Memory, Order, Space, Type as IrType};
use melior::ir::Value;

use super::Lowering;
use super::atomic::ordering;
use super::emit::{Emitter, GepIndex, Named, Result};
use super::memory::carrier;

impl<'c, 'a> Lowering<'c, 'a, '_> {
    /// Address space of a pointer.
    pub(super) fn space(&self, pointer: ir::Value) -> Result<Space> {
        match self.kernel.ty(pointer) {
            IrType::Ptr(space, _) => Ok(space),
            other => Err(format!("{other} is not a pointer")),
        }
    }

    /// Pointer moved on by a number of elements.
    pub(super) fn pointer_add(&self, pointer: ir::Value, count: ir::Value) -> Result<Value<'c, 'a>> {
        let e = &self.emit;
        let (element, by) = (self.kernel.ty(pointer).scalar(), self.work_type(&[count]).scalar());
        // Addresses of LDS have 32 bits, so whatever is above them in a count makes no difference.
        let bits = match self.space(pointer)? {
            Space::Lds => by.bits().max(32),
            Space::Global => 64,
        };
        let count = e.resize(self.get(count)?, by.bits(), bits, by.is_signed())?;
        e.gep(self.get(pointer)?, GepIndex::Value(count), e.scalar(element))
    }

    /// Attributes of a load or store.
    fn memory_attributes(&self, pointer: ir::Value, memory: Memory, data: IrType) -> Vec<Named<'c>> {
        let e = &self.emit;
        // An atomic access is as aligned as it is wide.
        let align = match memory.order {
            Order::Plain => self.facts.ptr_align(pointer, data, &memory),
            _ => data.bytes(),
        };
        let mut attributes = vec![("alignment", e.int_attribute(64, i64::from(align)))];
        if memory.volatile {
            attributes.push(("volatile_", e.unit()));
        }
        if memory.nontemporal {
            attributes.push(("nontemporal", e.unit()));
        }
        if let (Some(copies), Order::Plain, false, Ok(Space::Lds)) =
            (self.copies_apart, memory.order, memory.volatile, self.space(pointer))
        {
            attributes.push(("noalias_scopes", copies));
        }
        if memory.order != Order::Plain {
            attributes.push(("ordering", ordering(memory.order).attribute(e)));
            attributes.push(("syncscope", e.string(self.backend.sync_scope(memory.scope))));
        }
        attributes
    }

    /// Load through a pointer.
    pub(super) fn pointer_load(&self, pointer: ir::Value, memory: Memory, ty: IrType) -> Result<Value<'c, 'a>> {
        let e = &self.emit;
        let attributes = self.memory_attributes(pointer, memory, ty);
        let mut address = self.get(pointer)?;
        if memory.order != Order::Plain && self.space(pointer)? == Space::Global {
            // Others may write meanwhile, between one lane's turn and the next one's.
            address = self.backend.apart(e, address)?;
        }
        let bits = e.value("llvm.load", &[address], memory_type(e, memory, ty), &attributes)?;
        e.bitcast(bits, e.ty(ty))
    }

    /// Store through a pointer.
    pub(super) fn pointer_store(&self, value: ir::Value, pointer: ir::Value, memory: Memory) -> Result<()> {
        let (e, ty) = (&self.emit, self.kernel.ty(value));
        let attributes = self.memory_attributes(pointer, memory, ty);
        let bits = e.bitcast(self.get(value)?, memory_type(e, memory, ty))?;
        e.op("llvm.store", &[bits, self.get(pointer)?], &[], &attributes).map(drop)
    }
}

/// The type that a load or store names: atomic ones take one integer.
fn memory_type<'c>(e: &Emitter<'c, '_>, memory: Memory, ty: IrType) -> melior::ir::Type<'c> {
    if memory.order == Order::Plain { carrier(e, ty.bytes()) } else { e.int(ty.bytes() * 8) }
}
