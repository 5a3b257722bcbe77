//! Values as 32-bit words, in which lanes exchange them.

use lathe_dsl::ir;
use melior::ir::{Type, Value};

use super::emit::{Emitter, Result};

/// Bits of a data value.
fn bits(ty: ir::Type) -> u32 {
    ty.scalar().bits() * ty.lanes()
}

/// The words of a value, the least significant first; what is left over in the last one is zero.
pub fn words<'c, 'a>(e: &Emitter<'c, 'a>, ty: ir::Type, v: Value<'c, 'a>) -> Result<Vec<Value<'c, 'a>>> {
    let bits = bits(ty);
    let padded = bits.next_multiple_of(32);
    let n = padded / 32;
    let v = if bits == padded { v } else { e.resize(e.bitcast(v, e.int(bits))?, bits, padded, false)? };
    if n == 1 {
        return Ok(vec![e.bitcast(v, e.int(32))?]);
    }
    let v = e.bitcast(v, Type::vector(&[u64::from(n)], e.int(32)))?;
    (0..n).map(|i| e.part(v, i, e.int(32))).collect()
}

/// The value of these words.
pub fn from_words<'c, 'a>(e: &Emitter<'c, 'a>, ty: ir::Type, words: &[Value<'c, 'a>]) -> Result<Value<'c, 'a>> {
    let bits = bits(ty);
    let padded = words.len() as u32 * 32;
    let v = match words {
        [one] => *one,
        words => e.value("vector.from_elements", words, Type::vector(&[words.len() as u64], e.int(32)), &[])?,
    };
    let v = if bits == padded { v } else { e.resize(e.bitcast(v, e.int(padded))?, padded, bits, false)? };
    e.bitcast(v, e.ty(ty))
}
