//! LDS and buffer accesses, and the guards that their exact meaning needs.

use lathe_dsl::ir::{self, OffsetUnit};
use melior::dialect::llvm;
use melior::ir::attribute::{FlatSymbolRefAttribute, TypeAttribute};
use melior::ir::{Type, Value};

use super::emit::{Emitter, GepIndex, IntPredicate, LDS, Result};
use super::{Lowering, symbol_for_lds};

/// Alignment of the LDS block, in bytes: enough for the widest access.
const LDS_ALIGN: u64 = 16;

/// A buffer access, with what is known about it.
pub struct BufferAccess<'c, 'a> {
    /// What [`crate::target::Backend::open_buffer`] made of the parameter.
    pub buffer: Value<'c, 'a>,
    /// Offset in units, 32 bits, unsigned.
    pub offset: Value<'c, 'a>,
    /// Bytes a unit: 1, 2, 4 or 8.
    pub scale: u32,
    /// Bytes accessed: 1, 2, 4, 8 or 16.
    pub bytes: u32,
    /// Bytes of the buffer, below 2^32.
    pub extent: u64,
    /// Whether every offset there can be lets the access end within the buffer.
    pub inside: bool,
    /// A power of two that divides every byte offset there can be.
    pub divisor: u64,
    /// Known alignment of the accessed address, in bytes.
    pub align: u64,
}

/// Where a buffer access may end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bounds {
    /// Always within the buffer.
    Inside,
    /// Never within it.
    Outside,
    /// Within it if the offset, in units, is at most this.
    UpTo(u32),
}

impl BufferAccess<'_, '_> {
    /// Whether the access ends within the buffer.
    pub fn bounds(&self) -> Bounds {
        match self.extent.checked_sub(u64::from(self.bytes)) {
            None => Bounds::Outside,
            Some(_) if self.inside => Bounds::Inside,
            Some(last) => Bounds::UpTo((last / u64::from(self.scale)) as u32),
        }
    }

    /// Whether an access may begin inside the buffer and end outside it.
    pub fn straddles(&self) -> bool {
        let bytes = u64::from(self.bytes);
        self.divisor < bytes || !self.extent.is_multiple_of(bytes)
    }
}

/// The type in which `bytes` bytes travel between memory and registers: whole words where there are any.
pub fn carrier<'c>(e: &Emitter<'c, '_>, bytes: u32) -> Type<'c> {
    match bytes {
        8 | 16 => Type::vector(&[u64::from(bytes / 4)], e.int(32)),
        bytes => e.int(bytes * 8),
    }
}

/// Whether the access at `offset` ends within its buffer.
pub fn in_range<'c, 'a>(e: &Emitter<'c, 'a>, access: &BufferAccess<'c, 'a>, last: u32) -> Result<Value<'c, 'a>> {
    e.cmpi(IntPredicate::Ule, access.offset, e.int_const(32, i64::from(last))?, e.int(1))
}

/// `load` where `condition` holds, else zeros.
pub fn load_if<'c, 'a>(
    e: &Emitter<'c, 'a>,
    condition: Value<'c, 'a>,
    ty: Type<'c>,
    load: impl FnOnce(&Emitter<'c, 'a>) -> Result<Value<'c, 'a>>,
) -> Result<Value<'c, 'a>> {
    let branch = e.op_with_regions("scf.if", &[condition], &[ty], &[], 2)?;
    let then = e.enter(branch, 0, &[])?;
    let loaded = load(&then)?;
    then.op("scf.yield", &[loaded], &[], &[])?;
    let otherwise = e.enter(branch, 1, &[])?;
    let zeros = otherwise.zeros(ty)?;
    otherwise.op("scf.yield", &[zeros], &[], &[])?;
    branch.result(0).map(Into::into).map_err(|e| e.to_string())
}

/// `store` where `condition` holds.
pub fn store_if<'c, 'a>(
    e: &Emitter<'c, 'a>,
    condition: Value<'c, 'a>,
    store: impl FnOnce(&Emitter<'c, 'a>) -> Result<()>,
) -> Result<()> {
    let branch = e.op_with_regions("scf.if", &[condition], &[], &[], 2)?;
    let then = e.enter(branch, 0, &[])?;
    store(&then)?;
    then.op("scf.yield", &[], &[], &[])?;
    Ok(())
}

impl<'c, 'a> Lowering<'c, 'a, '_> {
    /// Declares the one LDS block that holds all arrays, at module level.
    pub(super) fn declare_lds(&self, module: &Emitter<'c, 'a>) -> Result<()> {
        let (_, bytes) = self.kernel.lds_layout();
        if bytes == 0 {
            return Ok(());
        }
        let attributes = [
            ("addr_space", module.int_attribute(32, i64::from(LDS))),
            ("alignment", module.int_attribute(64, self.lds_align() as i64)),
            ("global_type", TypeAttribute::new(llvm::r#type::array(module.int(8), bytes)).into()),
            ("linkage", module.attribute("#llvm.linkage<internal>")?),
            ("sym_name", module.string(&symbol_for_lds(&self.kernel.name))),
        ];
        module.op_with_regions("llvm.mlir.global", &[], &[], &attributes, 1)?;
        Ok(())
    }

    fn lds_align(&self) -> u64 {
        self.kernel.lds.iter().map(|a| u64::from(a.align)).fold(LDS_ALIGN, u64::max)
    }

    /// Pointer to the first element of an LDS array.
    pub(super) fn lds_base(&self, array: u32) -> Result<Value<'c, 'a>> {
        let e = &self.emit;
        let (offsets, _) = self.kernel.lds_layout();
        let offset = *offsets.get(array as usize).ok_or("no such LDS array")?;
        let name = FlatSymbolRefAttribute::new(e.context, &symbol_for_lds(&self.kernel.name)).into();
        let block =
            e.value("llvm.mlir.addressof", &[], llvm::r#type::pointer(e.context, LDS), &[("global_name", name)])?;
        if offset == 0 { Ok(block) } else { e.gep(block, GepIndex::Constant(offset as i32), e.int(8)) }
    }

    /// Pointer moved on by a number of elements.
    pub(super) fn pointer_add(&self, pointer: ir::Value, count: ir::Value) -> Result<Value<'c, 'a>> {
        let element = self.kernel.ty(pointer).scalar();
        // LDS holds less than 2^31 elements, so reading the count as signed makes no difference to a valid pointer.
        self.emit.gep(self.get(pointer)?, GepIndex::Value(self.get(count)?), self.emit.scalar(element))
    }

    /// Load from LDS.
    pub(super) fn pointer_load(&self, pointer: ir::Value, ty: ir::Type) -> Result<Value<'c, 'a>> {
        let e = &self.emit;
        let align = u64::from(self.facts.lds_align(pointer, ty));
        let bits = e.load(self.get(pointer)?, carrier(e, ty.bytes()), align)?;
        e.bitcast(bits, e.ty(ty))
    }

    /// Store to LDS.
    pub(super) fn pointer_store(&self, value: ir::Value, pointer: ir::Value) -> Result<()> {
        let (e, ty) = (&self.emit, self.kernel.ty(value));
        let align = u64::from(self.facts.lds_align(pointer, ty));
        let bits = e.bitcast(self.get(value)?, carrier(e, ty.bytes()))?;
        e.store(bits, self.get(pointer)?, align)
    }

    fn access(
        &self,
        buffer: ir::Value,
        offset: ir::Value,
        unit: OffsetUnit,
        ty: ir::Type,
    ) -> Result<BufferAccess<'c, 'a>> {
        let extent = self.kernel.params.get(buffer.index()).and_then(|p| p.kind.buffer_bytes());
        let scale = match unit {
            OffsetUnit::Bytes => 1,
            OffsetUnit::Elements => ty.scalar().bytes(),
        };
        Ok(BufferAccess {
            buffer: self.get(buffer)?,
            offset: self.get(offset)?,
            scale,
            bytes: ty.bytes(),
            extent: extent.ok_or_else(|| format!("{buffer:?} is not a buffer parameter"))?,
            inside: self.facts.in_bounds(self.kernel, buffer, offset, unit, ty),
            divisor: 1 << self.facts.byte_range(offset, unit, ty).zeros.min(32),
            align: u64::from(self.facts.buffer_align(self.kernel, buffer, offset, unit, ty)),
        })
    }

    /// Load from a buffer; zeros outside it.
    pub(super) fn buffer_load(
        &self,
        buffer: ir::Value,
        offset: ir::Value,
        unit: OffsetUnit,
        ty: ir::Type,
    ) -> Result<Value<'c, 'a>> {
        let e = &self.emit;
        let access = self.access(buffer, offset, unit, ty)?;
        if access.bounds() == Bounds::Outside {
            return e.constant(ty, 0);
        }
        let bits = self.backend.buffer_load(e, &access, carrier(e, access.bytes))?;
        e.bitcast(bits, e.ty(ty))
    }

    /// Store to a buffer; nothing outside it.
    pub(super) fn buffer_store(
        &self,
        value: ir::Value,
        buffer: ir::Value,
        offset: ir::Value,
        unit: OffsetUnit,
    ) -> Result<()> {
        let e = &self.emit;
        let access = self.access(buffer, offset, unit, self.kernel.ty(value))?;
        if access.bounds() == Bounds::Outside {
            return Ok(());
        }
        let bits = e.bitcast(self.get(value)?, carrier(e, access.bytes))?;
        self.backend.buffer_store(e, &access, bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use melior::Context;
    use melior::ir::{Block, BlockLike, Location, Module};

    fn with_access(change: impl FnOnce(&mut BufferAccess<'_, '_>), check: impl FnOnce(&BufferAccess<'_, '_>)) {
        let context = Context::new();
        let location = Location::unknown(&context);
        let module = Module::new(location);
        let block = Block::new(&[(Type::index(&context), location)]);
        let value: Value<'_, '_> = block.argument(0).unwrap().into();
        let mut access = BufferAccess {
            buffer: value,
            offset: value,
            scale: 4,
            bytes: 16,
            extent: 4096,
            inside: false,
            divisor: 4,
            align: 4,
        };
        change(&mut access);
        check(&access);
        drop(module);
    }

    #[test]
    fn bounds_are_exact() {
        with_access(|_| (), |a| assert_eq!(a.bounds(), Bounds::UpTo(1020)));
        with_access(|a| a.inside = true, |a| assert_eq!(a.bounds(), Bounds::Inside));
        with_access(|a| a.extent = 15, |a| assert_eq!(a.bounds(), Bounds::Outside));
        with_access(|a| a.extent = 19, |a| assert_eq!(a.bounds(), Bounds::UpTo(0)));
    }

    #[test]
    fn straddling_is_seen() {
        with_access(|_| (), |a| assert!(a.straddles()));
        with_access(|a| a.divisor = 16, |a| assert!(!a.straddles()));
        with_access(
            |a| {
                a.divisor = 32;
                a.extent = 4104;
            },
            |a| assert!(a.straddles()),
        );
    }
}
