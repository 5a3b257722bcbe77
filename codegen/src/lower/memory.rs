//! The workgroup's LDS block, and the form in which values travel to and from memory.

use lathe_dsl::ir::{Kernel, Op};
use melior::dialect::llvm;
use melior::ir::attribute::{FlatSymbolRefAttribute, TypeAttribute};
use melior::ir::{Attribute, Type, Value};

use super::emit::{Emitter, GepIndex, LDS, Result};
use super::marks::Marks;
use super::{Lowering, symbol_for_lds};

/// Alignment of the LDS block, in bytes: enough for the widest access.
const LDS_ALIGN: u64 = 16;

/// The type in which `bytes` bytes travel between memory and registers: whole words where there are any.
pub fn carrier<'c>(e: &Emitter<'c, '_>, bytes: u32) -> Type<'c> {
    match bytes {
        8 | 12 | 16 => Type::vector(&[u64::from(bytes / 4)], e.int(32)),
        bytes => e.int(bytes * 8),
    }
}

/// Whether a kernel copies to LDS.
pub(super) fn copies_to_lds(kernel: &Kernel) -> bool {
    let mut found = false;
    kernel.walk(&mut |inst| found |= matches!(inst.op, Op::CopyToLds { .. }));
    found
}

/// LLVM's alias scope of copies to LDS, in kernels that read LDS while copies are under way.
///
/// AMD's backend makes every access to LDS wait for all copies that may have written there; of accesses outside the scope
/// it knows that the author has waited. Each copy then stands behind a compiler barrier, lest a load from where it writes
/// be moved behind it.
pub(super) fn scope_of_copies<'c>(
    e: &Emitter<'c, '_>,
    kernel: &Kernel,
    marks: &Marks,
) -> Result<Option<Attribute<'c>>> {
    let mut counted = marks.leave_some();
    kernel.walk(&mut |inst| counted |= matches!(inst.op, Op::SWaitcnt { vmcnt: Some(1..), .. }));
    if !counted || !copies_to_lds(kernel) {
        return Ok(None);
    }
    e.attribute("[#llvm.alias_scope<id = \"copies\", domain = <id = \"lds\">>]").map(Some)
}

impl<'c, 'a> Lowering<'c, 'a, '_> {
    /// The byte offset in the workgroup's LDS that a pointer has.
    pub(super) fn lds_address(&self, pointer: Value<'c, 'a>) -> Result<Value<'c, 'a>> {
        let e = &self.emit;
        let at = e.value("llvm.ptrtoint", &[pointer], e.int(32), &[])?;
        match self.lds_block()? {
            Some(block) => e.same("arith.subi", &[at, e.value("llvm.ptrtoint", &[block], e.int(32), &[])?]),
            None => Ok(at),
        }
    }

    /// The reverse.
    pub(super) fn lds_pointer(&self, address: Value<'c, 'a>) -> Result<Value<'c, 'a>> {
        let e = &self.emit;
        match self.lds_block()? {
            Some(block) => e.gep(block, GepIndex::Value(address), e.int(8)),
            None => e.value("llvm.inttoptr", &[address], llvm::r#type::pointer(e.context, LDS), &[]),
        }
    }

    /// Pointer to the block that holds all arrays, if there are any.
    fn lds_block(&self) -> Result<Option<Value<'c, 'a>>> {
        let e = &self.emit;
        if self.kernel.lds_layout().1 == 0 {
            return Ok(None);
        }
        let name = FlatSymbolRefAttribute::new(e.context, &symbol_for_lds(&self.kernel.name)).into();
        let ty = llvm::r#type::pointer(e.context, LDS);
        e.value("llvm.mlir.addressof", &[], ty, &[("global_name", name)]).map(Some)
    }

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
        let block = self.lds_block()?.ok_or("no LDS")?;
        if offset == 0 { Ok(block) } else { e.gep(block, GepIndex::Constant(offset as i32), e.int(8)) }
    }
}

fn lds_align(kernel: &Kernel) -> u64 {
    kernel.lds.iter().map(|a| u64::from(a.align)).fold(LDS_ALIGN, u64::max)
}
