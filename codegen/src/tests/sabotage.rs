//! Makes the compiler fail on purpose, by putting something into a kernel's MLIR that no Kernel IR can ask for.

use melior::ir::attribute::{Attribute, StringAttribute};
use melior::ir::operation::{OperationBuilder, OperationLike};
use melior::ir::r#type::IntegerType;
use melior::ir::{BlockLike, BlockRef, Identifier, Location, Module, RegionLike};

use crate::lower::Blame;
use crate::options::Options;
use crate::passes::Mlir;

/// A way to fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sabotage {
    /// An LLVM intrinsic that the chip has no instruction for: LLVM's instruction selection gives up the process.
    Unselectable(&'static str),
    /// An operation of a dialect that the passes do not lower.
    Unlowerable,
    /// An operation that MLIR's verifier refuses.
    Invalid,
    /// A panic of the compiler.
    Panic,
}

/// Puts the chosen failure at the start of the kernel, as operation 1.
pub fn sabotage_mlir(options: &Options, mlir: &Mlir, module: &Module<'_>) -> Result<(), Blame> {
    let Some(sabotage) = options.sabotage else { return Ok(()) };
    let context = &mlir.context;
    let entry = kernel_entry(module).ok_or_else(|| "no kernel".to_owned())?;
    let location = Location::new(context, "sabotage.kir", 1, 0);
    let attribute = |name: &str, text: &str| {
        (Identifier::new(context, name), Attribute::parse(context, text).expect("an attribute"))
    };
    let operation = match sabotage {
        Sabotage::Panic => panic!("sabotaged"),
        Sabotage::Unselectable(intrinsic) => OperationBuilder::new("llvm.call_intrinsic", location).add_attributes(&[
            (Identifier::new(context, "intrin"), StringAttribute::new(context, intrinsic).into()),
            attribute("operandSegmentSizes", "array<i32: 0, 0>"),
            attribute("op_bundle_sizes", "array<i32>"),
        ]),
        Sabotage::Unlowerable => {
            OperationBuilder::new("gpu.printf", location).add_attributes(&[attribute("format", "\"no printer\"")])
        }
        Sabotage::Invalid => OperationBuilder::new("arith.constant", location)
            .add_results(&[IntegerType::new(context, 16).into()])
            .add_attributes(&[attribute("value", "1 : i32")]),
    };
    let operation = operation.build().map_err(|e| e.to_string())?;
    entry.insert_operation(0, operation);
    Ok(())
}

/// First block of the kernel function.
fn kernel_entry<'c, 'a>(module: &'a Module<'c>) -> Option<BlockRef<'c, 'a>> {
    let gpu_module = module.body().first_operation()?;
    let mut operation = gpu_module.region(0).ok()?.first_block()?.first_operation()?;
    while operation.name().as_string_ref().as_str().ok()? != "gpu.func" {
        operation = operation.next_in_block()?;
    }
    operation.region(0).ok()?.first_block()
}
