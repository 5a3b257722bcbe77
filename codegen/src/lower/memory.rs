//! The workgroup's LDS block, and the form in which values travel to and from memory.

use lathe_dsl::ir::Kernel;
use melior::dialect::llvm;
use melior::ir::attribute::{FlatSymbolRefAttribute, TypeAttribute};
use melior::ir::{Type, Value};

use super::emit::{Emitter, GepIndex, LDS, Result};
use super::{Lowering, symbol_for_lds};

/// Alignment of the LDS block, in bytes: enough for the widest access.
const LDS_ALIGN: u64 = 16;

/// The type in which `bytes` bytes travel between memory and registers: whole words where there are any.
pub fn carrier<'c>(e: &Emitter<'c, '_>, bytes: u32) -> Type<'c> {
    match bytes {
        8 | 16 => Type::vector(&[u64::from(bytes / 4)], e.int(32)),
        bytes => e.int(bytes * 8),
    }
}

impl<'c, 'a> Lowering<'c, 'a, '_> {
    /// Declares the one LDS block that holds all arrays, at module level.
    pub(super) fn declare_lds(&self, module: &Emitter<'c, 'a>) -> Result<()> {
        let (_, bytes) = self.kernel.lds_layout();
        if bytes == 0 {
            return Ok(());
        }
        // What the launch allocates has no size here.
        let (linkage, size) = match self.backend.dynamic_lds(self.kernel) {
            0 => ("internal", bytes),
            _ => ("external", 0),
        };
        let attributes = [
            ("addr_space", module.int_attribute(32, i64::from(LDS))),
            ("alignment", module.int_attribute(64, lds_align(self.kernel) as i64)),
            ("global_type", TypeAttribute::new(llvm::r#type::array(module.int(8), size)).into()),
            ("linkage", module.attribute(&format!("#llvm.linkage<{linkage}>"))?),
            ("sym_name", module.string(&symbol_for_lds(&self.kernel.name))),
        ];
        module.op_with_regions("llvm.mlir.global", &[], &[], &attributes, 1)?;
        Ok(())
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
}

fn lds_align(kernel: &Kernel) -> u64 {
    kernel.lds.iter().map(|a| u64::from(a.align)).fold(LDS_ALIGN, u64::max)
}
