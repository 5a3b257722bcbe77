//! The rules of matrix products.

use super::Scope;
use super::rules::same;
use crate::ir::{Op, Type};
use crate::mma::{Fragments, MmaType, Tiles, plain, scaled};

impl Scope<'_> {
    /// Operands and result of a matrix product.
    pub(super) fn product(&self, op: &Op, operands: &[Type], result: Type) -> Result<(), String> {
        match *op {
            Op::Mma { shape, a_type, b_type, fragments, .. } => {
                self.own(fragments)?;
                let tiles = plain(fragments, shape, a_type, b_type)?;
                self.whole_waves(op)?;
                factors(&tiles, (a_type, b_type), operands, result)
            }
            Op::MfmaScaled { a_type, b_type, a_byte, b_byte, fragments, .. } => {
                self.own(fragments)?;
                let all = scaled(fragments, a_type, b_type)?;
                self.whole_waves(op)?;
                factors(&all.tiles, (MmaType::Narrow(a_type), MmaType::Narrow(b_type)), operands, result)?;
                let scale = all.scale_type();
                same(scale, "the scale of A", operands[3])?;
                same(scale, "the scale of B", operands[4])?;
                for (what, byte) in [("A", a_byte), ("B", b_byte)] {
                    if byte > 3 {
                        return Err(format!("byte {byte} of the scale of {what}; allowed are 0 to 3"));
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The fragments are the target's.
    fn own(&self, fragments: Fragments) -> Result<(), String> {
        let (target, own) = (self.target, Fragments::of(self.target));
        if fragments == own {
            return Ok(());
        }
        Err(format!(
            "a product of {fragments} fragments on {target}, which has {own} fragments: trace the kernel for {target}"
        ))
    }

    /// Every wave of the workgroup has all its lanes.
    fn whole_waves(&self, op: &Op) -> Result<(), String> {
        let (threads, wave) = (self.kernel.launch.block_threads(), self.kernel.wave);
        if threads.is_multiple_of(wave) {
            return Ok(());
        }
        Err(format!(
            "`{}` in a workgroup of {threads} threads, whose last wave has {} of {wave} lanes; it needs all of them: make the \
             workgroup a multiple of {wave} threads",
            op.def().name,
            threads % wave
        ))
    }
}

/// A, B, C and D have the registers of their fragments.
fn factors(tiles: &Tiles, (a, b): (MmaType, MmaType), operands: &[Type], result: Type) -> Result<(), String> {
    let sum = Type::Vector(a.sum(), tiles.c.elements());
    same(a.registers(tiles.a.elements()), "A", operands[0])?;
    same(b.registers(tiles.b.elements()), "B", operands[1])?;
    same(sum, "C", operands[2])?;
    same(sum, "the result", result)
}
