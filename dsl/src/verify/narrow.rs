//! How codes of narrow floats are packed.

use super::Scope;
use super::rules::same;
use crate::ir::{Scalar, Type, Value};
use crate::numerics::Narrow;

/// The type that the codes of so many elements fill.
pub(super) fn packed(format: Narrow, elements: Type) -> Result<Type, String> {
    let bits = u64::from(elements.lanes()) * u64::from(format.bits());
    match (elements.lanes(), bits) {
        (1, _) | (_, 8) => Ok(Type::Scalar(Scalar::U8)),
        (_, 16) => Ok(Type::Scalar(Scalar::U16)),
        (_, 32) => Ok(Type::U32),
        (_, bits) if bits.is_multiple_of(32) => Ok(Type::Vector(Scalar::U32, (bits / 32) as u32)),
        (n, bits) => Err(format!(
            "{n} codes of {} are {bits} bits; allowed are one code, and 8, 16 and multiples of 32 bits",
            format.name()
        )),
    }
}

/// Whether codes that fill `packed` can replace bytes of a `u32` from `byte` on.
pub(super) fn inserted(packed: Type, byte: u32) -> Result<(), String> {
    let bytes = packed.bytes();
    if bytes > 2 {
        return Err(format!("codes of {} bits into a u32; allowed are 8 and 16", 8 * bytes));
    }
    if !byte.is_multiple_of(bytes) || byte + bytes > 4 {
        let last = 4 - bytes;
        return Err(format!(
            "codes of {} bits at byte {byte}; allowed are multiples of {bytes} up to {last}",
            8 * bytes
        ));
    }
    Ok(())
}

impl Scope<'_> {
    /// The scale of a block.
    pub(super) fn scale(&self, format: Narrow, scale: Option<Value>) -> Result<(), String> {
        let Some(scale) = scale else { return Ok(()) };
        if !format.signed() {
            return Err(format!("{} is what scales are in; it takes none itself", format.name()));
        }
        same(Type::Scalar(Scalar::F32), "the scale", self.ty(scale)?)
    }
}
