//! Stochastic rounding of `f32`, by integers.

use lathe_dsl::ir::{self, Scalar};
use melior::ir::Value;

use super::Lowering;
use super::emit::{IntPredicate, Result};

impl<'c, 'a> Lowering<'c, 'a, '_> {
    /// `x` as bf16 or f16, rounded up or down by `random`.
    pub(super) fn convert_stochastic(
        &self,
        x: ir::Value,
        random: ir::Value,
        result: ir::Value,
    ) -> Result<Value<'c, 'a>> {
        let (e, from, to) = (&self.emit, self.kernel.ty(x), self.kernel.ty(result));
        let word = from.with_scalar(Scalar::U32);
        let (x, random) = (self.get(x)?, self.get(random)?);
        let bits = e.bitcast(x, e.ty(word))?;
        let (rounded, quiet) = match to.scalar() {
            Scalar::Bf16 => {
                let sixteen = e.constant(word, 16)?;
                let sum = e.same("arith.addi", &[bits, e.same("arith.shrui", &[random, sixteen])?])?;
                // A NaN keeps its upper bits.
                let quiet =
                    e.same("arith.ori", &[e.same("arith.shrui", &[bits, sixteen])?, e.constant(word, 0x40)?])?;
                (e.same("arith.shrui", &[sum, sixteen])?, quiet)
            }
            _ => (self.f16_bits(word, bits, random)?, e.constant(word, 0x7E00)?),
        };
        // MLIR's number of uno.
        let predicate = [("predicate", e.int_attribute(64, 14))];
        let nan = e.value("arith.cmpf", &[x, x], e.ty(from.with_scalar(Scalar::Bool)), &predicate)?;
        let made = e.same_as_second("arith.select", &[nan, quiet, rounded])?;
        let half = e.value("arith.trunci", &[made], e.ty(to.with_scalar(Scalar::U16)), &[])?;
        e.bitcast(half, e.ty(to))
    }

    /// f16 of a number, in the lower half of a word.
    fn f16_bits(&self, word: ir::Type, bits: Value<'c, 'a>, random: Value<'c, 'a>) -> Result<Value<'c, 'a>> {
        let e = &self.emit;
        let (long, truth) = (word.with_scalar(Scalar::U64), e.ty(word.with_scalar(Scalar::Bool)));
        let n = |value| e.constant(word, value);
        let two = |name, a, b| e.same(name, &[a, b]);
        let wide = |v| e.value("arith.extui", &[v], e.ty(long), &[]);
        let size = two("arith.andi", bits, n(0x7FFF_FFFF)?)?;
        let exponent = two("arith.shrui", size, n(23)?)?;
        let significand = two("arith.ori", two("arith.andi", bits, n(0x7F_FFFF)?)?, n(0x80_0000)?)?;
        // What is cut off: 13 bits, of f16's subnormals more; 63 leave nothing.
        let cut = two("arith.subi", n(126)?, exponent)?;
        let cut = two("arith.minsi", two("arith.maxsi", cut, n(13)?)?, n(63)?)?;
        let fixed = two("arith.shli", wide(significand)?, e.constant(long, 32)?)?;
        let sum = two("arith.addi", two("arith.shrui", fixed, wide(cut)?)?, wide(random)?)?;
        let sum = two("arith.shrui", sum, e.constant(long, 32)?)?;
        let units = e.value("arith.trunci", &[sum], e.ty(word), &[])?;
        // The hidden bit counts one exponent more.
        let normal = two("arith.maxsi", two("arith.subi", exponent, n(113)?)?, n(0)?)?;
        let finite = two("arith.addi", two("arith.shli", normal, n(10)?)?, units)?;
        let large = e.cmpi(IntPredicate::Uge, size, n(65536f32.to_bits().into())?, truth)?;
        let magnitude = e.same_as_second("arith.select", &[large, n(0x7C00)?, finite])?;
        let sign = two("arith.andi", two("arith.shrui", bits, n(16)?)?, n(0x8000)?)?;
        two("arith.ori", sign, magnitude)
    }
}
