//! Keeps the sign of a zero product that is rounded to f16 on AMD.
//!
//! LLVM 22 makes `fptrunc (fmul a, b)` to f16 one `v_fma_mixlo_f16 a, b, 0`, where the addend turns −0 into +0. Its pattern
//! does not take the constrained form of the conversion, which otherwise means the same.

use inkwell::context::Context;
use inkwell::intrinsics::Intrinsic;
use inkwell::module::Module;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{
    AnyValue, BasicMetadataValueEnum, BasicValue, BasicValueEnum, FastMathFlags, InstructionOpcode, InstructionValue,
};

/// Rewrites the conversions of a module that is optimised and about to be emitted.
pub fn keep(module: &Module<'_>, context: &Context) -> Result<(), String> {
    let found = module.get_functions().flat_map(|f| f.get_basic_block_iter()).flat_map(|b| b.get_instructions());
    for conversion in found.filter(|i| loses_sign(*i)).collect::<Vec<_>>() {
        constrain(module, context, conversion)?;
    }
    Ok(())
}

/// Vectors are taken apart through so many instructions; behind more of them a product is assumed.
const DEPTH: u32 = 16;

/// Whether it rounds what may be a product, negated or not, to f16.
fn loses_sign(conversion: InstructionValue<'_>) -> bool {
    conversion.get_opcode() == InstructionOpcode::FPTrunc
        && BasicTypeEnum::try_from(conversion.get_type()).is_ok_and(|ty| element(ty) == Some(16))
        && operands(conversion).any(|value| may_be_product(value, DEPTH))
}

fn may_be_product(value: InstructionValue<'_>, depth: u32) -> bool {
    let counts = |flags: FastMathFlags| !flags.contains(FastMathFlags::NoSignedZeros);
    match value.get_opcode() {
        _ if depth == 0 => true,
        InstructionOpcode::FMul => value.get_fast_math_flags().is_ok_and(counts),
        InstructionOpcode::FNeg
        | InstructionOpcode::ExtractElement
        | InstructionOpcode::InsertElement
        | InstructionOpcode::ShuffleVector
        | InstructionOpcode::Freeze => operands(value).any(|operand| may_be_product(operand, depth - 1)),
        _ => false,
    }
}

/// Operands that are instructions.
fn operands(of: InstructionValue<'_>) -> impl Iterator<Item = InstructionValue<'_>> {
    of.get_operands().filter_map(|operand| operand?.value()?.as_instruction_value())
}

/// Bits of a float, or of a vector's floats; bf16, which no instruction of this kind makes, has none.
fn element(ty: BasicTypeEnum<'_>) -> Option<u32> {
    let scalar = match ty {
        BasicTypeEnum::VectorType(vector) => vector.get_element_type(),
        other => other,
    };
    match scalar {
        BasicTypeEnum::FloatType(float) if float == float.get_context().f16_type() => Some(16),
        _ => None,
    }
}

fn constrain(module: &Module<'_>, context: &Context, conversion: InstructionValue<'_>) -> Result<(), String> {
    let missing = || "a conversion without its parts".to_owned();
    let to = BasicTypeEnum::try_from(conversion.get_type()).map_err(|()| missing())?;
    let from = conversion.get_operand(0).and_then(|o| o.value()).ok_or_else(missing)?;
    let intrinsic = Intrinsic::find("llvm.experimental.constrained.fptrunc").ok_or_else(missing)?;
    let function = intrinsic.get_declaration(module, &[to, from.get_type()]).ok_or_else(missing)?;
    let builder = context.create_builder();
    builder.position_before(&conversion);
    let word = |text| BasicMetadataValueEnum::from(context.metadata_string(text));
    let args = [from.into(), word("round.tonearest"), word("fpexcept.ignore")];
    let call = builder.build_call(function, &args, "").map_err(|e| e.to_string())?;
    let made = BasicValueEnum::try_from(call.as_any_value_enum()).map_err(|()| missing())?;
    let made = made.as_instruction_value().ok_or_else(missing)?;
    conversion.replace_all_uses_with(&made);
    conversion.erase_from_basic_block();
    Ok(())
}
