//! Conversions between element types: one rounding, saturating to integers.

use lathe_dsl::ir::{self, Scalar};
use melior::ir::Value;

use super::Lowering;
use super::emit::{IntPredicate, Result};

impl<'c, 'a> Lowering<'c, 'a, '_> {
    /// A conversion to the element type of `result`.
    pub(super) fn convert(&self, x: ir::Value, result: ir::Value) -> Result<Value<'c, 'a>> {
        let (from, to) = (self.work_type(&[x]), self.work_type(&[result]));
        let v = self.get(x)?;
        let (a, b) = (from.scalar(), to.scalar());
        match (a, b) {
            (Scalar::Bool, b) if b.is_float() => {
                let (one, zero) = (self.emit.float_constant(to, 1.0)?, self.emit.constant(to, 0)?);
                self.emit.same_as_second("arith.select", &[v, one, zero])
            }
            (Scalar::Bool, b) if b.is_int() => self.emit.value("arith.extui", &[v], self.emit.ty(to), &[]),
            (a, b) if a.is_int() && b.is_int() => {
                // An index that is wanted as an unsigned number is not negative.
                let positive =
                    self.kernel.ty(x).scalar() == Scalar::Idx && !self.kernel.ty(result).scalar().is_signed();
                let signed = a.is_signed() && !positive;
                self.resize(v, from, to, signed)
            }
            (a, b) if a.is_int() && b.is_float() => self.int_to_float(v, from, to),
            (a, b) if a.is_float() && b.is_int() => self.float_to_int(v, from, to),
            (a, b) if a.is_float() && b.is_float() => self.float_to_float(v, from, to),
            _ => Err(format!("no conversion from {from} to {to}")),
        }
    }

    /// Nearest float, ties to even, rounded once.
    fn int_to_float(&self, v: Value<'c, 'a>, from: ir::Type, to: ir::Type) -> Result<Value<'c, 'a>> {
        let e = &self.emit;
        let name = if from.scalar().is_signed() { "arith.sitofp" } else { "arith.uitofp" };
        let direct = |v, to| e.value(name, &[v], e.ty(to), &[]);
        let single = to.with_scalar(Scalar::F32);
        match to.scalar() {
            // What f32 does not hold exactly is past f16's range, also once rounded; bf16 needs no rounding of 16 bits to
            // f32 either.
            Scalar::F16 => e.value("arith.truncf", &[direct(v, single)?], e.ty(to), &[]),
            Scalar::Bf16 if from.scalar().bits() <= 16 => e.value("arith.truncf", &[direct(v, single)?], e.ty(to), &[]),
            Scalar::Bf16 => e.value("arith.truncf", &[self.int_to_odd(v, from)?], e.ty(to), &[]),
            _ => direct(v, to),
        }
    }

    /// An `f32` that rounds to the same bf16 as an integer of 32 or 64 bits: the integer with its low bits replaced by
    /// one that tells whether any of them was set.
    fn int_to_odd(&self, v: Value<'c, 'a>, from: ir::Type) -> Result<Value<'c, 'a>> {
        let e = &self.emit;
        let (word, single) = (from.with_scalar(Scalar::U32), from.with_scalar(Scalar::F32));
        let signed = from.scalar().is_signed();
        let absolute = [("is_int_min_poison", e.int_attribute(1, 0))];
        let magnitude = if signed { e.value("llvm.intr.abs", &[v], e.ty(from), &absolute)? } else { v };
        // Left-aligned, so that the first 24 bits hold bf16's 8, one to round by, and many that only need to be told
        // from 0.
        let bits = from.scalar().bits();
        let total = [("is_zero_poison", e.int_attribute(1, 0))];
        let zeros = e.value("llvm.intr.ctlz", &[magnitude], e.ty(from), &total)?;
        let at_most = e.same("arith.minui", &[zeros, e.constant(from, u64::from(bits - 1))?])?;
        let aligned = e.same("arith.shli", &[magnitude, at_most])?;
        let drop = u64::from(bits - 24);
        let top = e.same("arith.shrui", &[aligned, e.constant(from, drop)?])?;
        let low = e.same("arith.andi", &[aligned, e.constant(from, (1 << drop) - 1)?])?;
        let any = e.cmpi(IntPredicate::Ne, low, e.constant(from, 0)?, e.ty(from.with_scalar(Scalar::Bool)))?;
        let sticky = e.value("arith.extui", &[any], e.ty(from), &[])?;
        let digits = self.resize(e.same("arith.ori", &[top, sticky])?, from, word, false)?;
        let digits = e.value("arith.uitofp", &[digits], e.ty(single), &[])?;
        // Times 2^(drop − zeros), an exact power.
        let zeros = self.resize(at_most, from, word, false)?;
        let exponent = e.same("arith.subi", &[e.constant(word, 127 + drop)?, zeros])?;
        let power = e.same("arith.shli", &[exponent, e.constant(word, 23)?])?;
        let value = e.same("arith.mulf", &[digits, e.bitcast(power, e.ty(single))?])?;
        if !signed {
            return Ok(value);
        }
        let negative = e.cmpi(IntPredicate::Slt, v, e.constant(from, 0)?, e.ty(from.with_scalar(Scalar::Bool)))?;
        e.same_as_second("arith.select", &[negative, e.same("arith.negf", &[value])?, value])
    }

    /// Towards 0, saturating; 0 of a NaN.
    fn float_to_int(&self, v: Value<'c, 'a>, from: ir::Type, to: ir::Type) -> Result<Value<'c, 'a>> {
        let e = &self.emit;
        let wide = from.with_scalar(Scalar::F32);
        let (v, from) =
            if from.scalar().bits() == 16 { (e.value("arith.extf", &[v], e.ty(wide), &[])?, wide) } else { (v, from) };
        if to.scalar().bits() <= 32
            && let Some(result) = self.float_to_word(v, from, to)?
        {
            return Ok(result);
        }
        let name = if to.scalar().is_signed() { "llvm.fptosi.sat" } else { "llvm.fptoui.sat" };
        let name = format!("{}{}", e.overloaded(name, to), e.overloaded("", from));
        e.intrinsic(&name, &[v], e.ty(to), &[])
    }

    /// The same by the chip's own conversion to 32 bits, limited further for narrower integers; `None` if it has none.
    fn float_to_word(&self, v: Value<'c, 'a>, from: ir::Type, to: ir::Type) -> Result<Option<Value<'c, 'a>>> {
        let (e, signed, bits) = (&self.emit, to.scalar().is_signed(), to.scalar().bits());
        let word = to.with_scalar(if signed { Scalar::I32 } else { Scalar::U32 });
        let mut words = vec![];
        for x in e.elements(from, v)? {
            let Some(w) = self.backend.saturating_int(e, x, from.scalar(), signed)? else { return Ok(None) };
            words.push(w);
        }
        let words = e.gather(word, &words)?;
        if bits == 32 {
            return Ok(Some(words));
        }
        let limited = if signed {
            let most = (1u32 << (bits - 1)) - 1;
            let raised = e.same("arith.maxsi", &[words, e.constant(word, u64::from(!most))?])?;
            e.same("arith.minsi", &[raised, e.constant(word, u64::from(most))?])?
        } else {
            e.same("arith.minui", &[words, e.constant(word, (1 << bits) - 1)?])?
        };
        self.resize(limited, word, to, signed).map(Some)
    }

    /// Exact, or rounded to nearest even, once.
    fn float_to_float(&self, v: Value<'c, 'a>, from: ir::Type, to: ir::Type) -> Result<Value<'c, 'a>> {
        let e = &self.emit;
        let (a, b) = (from.scalar(), to.scalar());
        if a.bits() == 16 && b.bits() == 16 {
            let wide = e.value("arith.extf", &[v], e.ty(from.with_scalar(Scalar::F32)), &[])?;
            return e.value("arith.truncf", &[wide], e.ty(to), &[]);
        }
        e.value(if a.bits() < b.bits() { "arith.extf" } else { "arith.truncf" }, &[v], e.ty(to), &[])
    }

    /// An integer in another width: its low bits, or extended.
    pub(super) fn resize(&self, v: Value<'c, 'a>, from: ir::Type, to: ir::Type, signed: bool) -> Result<Value<'c, 'a>> {
        let (a, b) = (from.scalar().bits(), to.scalar().bits());
        let name = match a.cmp(&b) {
            std::cmp::Ordering::Equal => return Ok(v),
            std::cmp::Ordering::Greater => "arith.trunci",
            std::cmp::Ordering::Less if signed => "arith.extsi",
            std::cmp::Ordering::Less => "arith.extui",
        };
        self.emit.value(name, &[v], self.emit.ty(to), &[])
    }
}
