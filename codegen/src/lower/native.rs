//! Inline assembly and raw intrinsics.

use lathe_dsl::ir::{Inst, Kernel, NativeCode, NativeForm, Op, OpNumber, Scalar, Space};
use lathe_dsl::target::Chip;
use lathe_dsl::{Arch, ir};

use super::emit::{GLOBAL, LDS};
use super::{Blame, Lowering};
use crate::llvm;

/// The form that a chip uses: the first that names it or its family.
pub fn form<'k>(forms: &'k [NativeForm], chip: &Chip) -> Option<&'k NativeForm> {
    let family = match chip.arch {
        Arch::Amdgpu => "amdgpu",
        Arch::Nvptx => "nvptx",
    };
    forms.iter().find(|f| f.target == chip.name || f.target == family)
}

/// The operation whose inline assembly a message of the assembler's is about: the one that holds the line that it quotes,
/// or the only one there is.
pub fn blamed(kernel: &Kernel, chip: &Chip, message: &str) -> Option<OpNumber> {
    let mut found = vec![];
    kernel.walk(&mut |inst| {
        if let Op::Native { forms, .. } = &inst.op
            && let Some(NativeForm { code: NativeCode::Asm { template, constraints }, .. }) = form(forms, chip)
        {
            found.push((inst.number, template, constraints));
        }
    });
    let about_assembly = ["asm", "constraint", "instruction", "operand", "register"];
    if !about_assembly.iter().any(|word| message.contains(word)) {
        return None;
    }
    if let [(only, ..)] = found[..] {
        return Some(only);
    }
    // Operands are substituted, but an instruction's name is as it was written.
    let quotes = |template: &str| template.split_whitespace().next().is_some_and(|name| message.contains(name));
    let mut of_those = found.into_iter().filter(|(_, template, constraints)| {
        quotes(template) || (!constraints.is_empty() && message.contains(constraints.as_str()))
    });
    of_those.next().map(|(number, ..)| number)
}

impl Lowering<'_, '_, '_> {
    /// Emits the form that fits, or the meaning.
    pub(super) fn native(
        &mut self,
        inst: &Inst,
        args: &[ir::Value],
        forms: &[NativeForm],
        meaning: &ir::Block,
    ) -> Result<(), Blame> {
        let blame = |message| Blame { op: Some(inst.number), message };
        let Some(form) = form(forms, self.backend.chip()) else {
            for (param, arg) in meaning.params.iter().zip(args) {
                let value = self.get_as(*arg, *param).map_err(blame)?;
                self.set(*param, value);
            }
            self.block(meaning)?;
            for (result, value) in inst.results.iter().zip(&meaning.yields) {
                let value = self.get_as(*value, *result).map_err(blame)?;
                self.set(*result, value);
            }
            return Ok(());
        };
        let e = self.emit;
        let operands = args.iter().map(|a| self.get(*a)).collect::<Result<Vec<_>, _>>().map_err(blame)?;
        let types: Vec<_> = inst.results.iter().map(|r| e.ty(self.kernel.ty(*r))).collect();
        let values = match &form.code {
            NativeCode::Asm { template, constraints } => {
                let name = |v: &ir::Value| llvm_type(self.kernel.ty(*v));
                let (args, results): (Vec<_>, Vec<_>) =
                    (args.iter().map(name).collect(), inst.results.iter().map(name).collect());
                llvm::check_asm(constraints, &args, &results).map_err(blame)?;
                e.asm(template, constraints, &operands, &types, form.effects)
            }
            NativeCode::Intrinsic { name } => e.call_many(name, &operands, &types),
        };
        for (result, value) in inst.results.iter().zip(values.map_err(blame)?) {
            self.set(*result, value);
        }
        Ok(())
    }
}

/// A type as LLVM's text has it.
fn llvm_type(ty: ir::Type) -> String {
    let scalar = match ty.scalar() {
        Scalar::F16 => "half".to_owned(),
        Scalar::Bf16 => "bfloat".to_owned(),
        Scalar::F32 => "float".to_owned(),
        Scalar::F64 => "double".to_owned(),
        s => format!("i{}", s.bits()),
    };
    match ty {
        ir::Type::Vector(_, n) => format!("<{n} x {scalar}>"),
        ir::Type::Ptr(Space::Lds, _) => format!("ptr addrspace({LDS})"),
        ir::Type::Ptr(Space::Global, _) | ir::Type::Buffer(_) => format!("ptr addrspace({GLOBAL})"),
        ir::Type::Texture(_) | ir::Type::Surface(_) => "i64".to_owned(),
        ir::Type::Scalar(_) => scalar,
    }
}
