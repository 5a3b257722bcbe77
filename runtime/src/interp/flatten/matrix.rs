//! Matrix products.

use lathe_dsl::ir::{Inst, Op, Type, Value};
use lathe_dsl::mma::{self, MmaType, SCALED, Tiles};

use super::super::error::Error;
use super::super::matrix::Product;
use super::super::program::Instr;
use super::super::registers::VReg;
use super::Flattener;

impl<const W: usize> Flattener<'_, W> {
    pub(super) fn product(&mut self, inst: &Inst) -> Result<(), Error> {
        match inst.op {
            Op::Mma { a, b, c, shape, a_type, b_type, fragments } => {
                let tiles = mma::plain(fragments, shape, a_type, b_type).or_else(|why| self.malformed(why))?;
                let [a, b, c, dst] = self.factors(inst, &tiles, [a_type, b_type], [a, b, c])?;
                let product = self.keep(Product::new(fragments, shape, &tiles, [a_type, b_type]));
                self.emit(Instr::Product { dst, a, b, c, product });
            }
            Op::MfmaScaled { a, b, c, a_scale, b_scale, a_type, b_type, a_byte, b_byte, fragments } => {
                let all = mma::scaled(fragments, a_type, b_type).or_else(|why| self.malformed(why))?;
                self.require(a_byte < 4 && b_byte < 4, || format!("bytes {a_byte} and {b_byte} of scales"))?;
                let types = [a_type, b_type].map(MmaType::Narrow);
                let word = all.scale_type();
                let (a_scale, b_scale) = (self.typed(a_scale, word)?, self.typed(b_scale, word)?);
                let [a, b, c, dst] = self.factors(inst, &all.tiles, types, [a, b, c])?;
                let product = Product::new(fragments, SCALED, &all.tiles, types);
                let product = self.keep(product.scaled([&all.scale_a, &all.scale_b], [a_byte, b_byte]));
                self.emit(Instr::ScaledProduct { dst, a, b, c, a_scale, b_scale, product });
            }
            ref op => return self.malformed(format!("`{}` is no matrix product", op.def().name)),
        }
        Ok(())
    }

    /// Registers of A, B, C and D.
    fn factors(
        &mut self,
        inst: &Inst,
        tiles: &Tiles,
        [a, b]: [MmaType; 2],
        operands: [Value; 3],
    ) -> Result<[VReg; 4], Error> {
        self.require(tiles.lanes() as usize <= W, || format!("groups of {} lanes in a wave of {W}", tiles.lanes()))?;
        let sum = Type::Vector(a.sum(), tiles.c.elements());
        let (v, ty) = self.result(inst)?;
        self.require(ty == sum, || format!("a product of {a} gives {ty}, not {sum}"))?;
        let types = [a.registers(tiles.a.elements()), b.registers(tiles.b.elements()), sum];
        let mut regs =
            operands.into_iter().zip(types).map(|(v, ty)| self.typed(v, ty)).collect::<Result<Vec<_>, _>>()?;
        regs.push(self.define(v)?);
        <[VReg; 4]>::try_from(regs).or_else(|_| self.malformed("a product of three matrices".to_owned()))
    }

    fn keep(&mut self, product: Product) -> u32 {
        self.products.push(product);
        self.products.len() as u32 - 1
    }
}
