//! Conversions between elements and packed codes of narrow floats.

use lathe_dsl::ir::{Op, Scalar, Type, Value};
use lathe_dsl::numerics::{Narrow, Overflow};

use super::super::alu::Coding;
use super::super::error::Error;
use super::super::program::Instr;
use super::super::registers::VReg;
use super::Flattener;

/// Whether `n` codes fill `ty`.
fn fills(format: Narrow, n: u32, ty: Type) -> bool {
    let bits = n * format.bits();
    let unsigned = matches!(ty.scalar(), Scalar::U8 | Scalar::U16 | Scalar::U32) && ty.is_data();
    let one = n == 1 && ty == Type::Scalar(Scalar::U8);
    unsigned && (one || bits == ty.scalar().bits() * ty.lanes())
}

impl<const W: usize> Flattener<'_, W> {
    fn coding(&self, format: Narrow, overflow: Overflow, of: Type, scaled: bool) -> Result<Coding, Error> {
        let element = of.scalar();
        self.require(matches!(element, Scalar::F32 | Scalar::F16 | Scalar::Bf16) && of.is_data(), || {
            format!("{of} as {}", format.name())
        })?;
        Ok(Coding { format, overflow, element, scaled })
    }

    /// The scale's register; without one, another that is alive.
    fn scale(&mut self, scale: Option<Value>, instead: VReg) -> Result<VReg, Error> {
        scale.map_or(Ok(instead), |s| self.typed(s, Type::Scalar(Scalar::F32)))
    }

    pub(super) fn encode(&mut self, v: Value, ty: Type, op: &Op) -> Result<(), Error> {
        let Op::Encode { value, scale, old, format, overflow, byte } = op else {
            return self.malformed(format!("`{}` makes no codes", op.def().name));
        };
        let (a, from) = self.data(*value)?;
        let (n, bits) = (from.lanes(), format.bits());
        let coding = self.coding(*format, *overflow, from, scale.is_some())?;
        let scale = self.scale(*scale, a)?;
        let codes = self.temporary(Type::Vector(Scalar::U32, n));
        if old.is_none() {
            let fits = fills(*format, n, ty);
            self.require(fits, || format!("{from} as {} in {ty}", format.name()))?;
        }
        self.emit(Instr::Encode { dst: codes, a, scale, n, coding });
        let (Some(old), Some(byte)) = (old, byte) else {
            let dst = self.define(v)?;
            self.emit(Instr::Pack { dst, a: codes, n: ty.lanes(), codes: n, bits });
            return Ok(());
        };
        let all = n * bits;
        self.require(ty == Type::U32 && all <= 16 && *byte < 4 && 8 * byte + all <= 32, || {
            format!("{from} as {} into {ty} at byte {byte}", format.name())
        })?;
        // One code alone fills a byte.
        let width = all.next_multiple_of(8);
        let old = self.typed(*old, Type::U32)?;
        let packed = self.temporary(Type::U32);
        self.emit(Instr::Pack { dst: packed, a: codes, n: 1, codes: n, bits });
        let dst = self.define(v)?;
        self.emit(Instr::Insert { dst, old, a: packed, shift: 8 * byte, bits: width });
        Ok(())
    }

    pub(super) fn decode(
        &mut self,
        v: Value,
        ty: Type,
        codes: Value,
        scale: Option<Value>,
        format: Narrow,
    ) -> Result<(), Error> {
        let (a, from) = self.data(codes)?;
        let n = ty.lanes();
        let coding = self.coding(format, Overflow::default(), ty, scale.is_some())?;
        let fits = fills(format, n, from);
        self.require(fits, || format!("{from} of {} as {ty}", format.name()))?;
        let scale = self.scale(scale, a)?;
        let each = self.temporary(Type::Vector(Scalar::U32, n));
        self.emit(Instr::Unpack { dst: each, a, n, bits: format.bits() });
        let dst = self.define(v)?;
        self.emit(Instr::Decode { dst, a: each, scale, n, coding });
        Ok(())
    }
}
