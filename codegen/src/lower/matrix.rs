//! Matrix products: what a target is asked for.

use lathe_dsl::ir::{self, Op, Scalar};
use lathe_dsl::mma::{MmaShape, MmaType};
use lathe_dsl::numerics::Narrow;
use melior::ir::{Type, Value};

use super::Lowering;
use super::emit::{Emitter, Result};
use super::words::{from_words, words};

/// Registers of a lane: a value and its type in Kernel IR.
#[derive(Clone, Copy)]
pub struct Registers<'c, 'a> {
    /// Type in Kernel IR.
    pub ty: ir::Type,
    /// The value.
    pub value: Value<'c, 'a>,
}

impl<'c, 'a> Registers<'c, 'a> {
    /// As 32-bit words, lowest first.
    pub fn words(&self, e: &Emitter<'c, 'a>) -> Result<Vec<Value<'c, 'a>>> {
        words(e, self.ty, self.value)
    }

    /// The same bits as a vector of integers or, of 64 bits, as an integer.
    pub fn ints(&self, e: &Emitter<'c, 'a>, n: u32, bits: u32) -> Result<Value<'c, 'a>> {
        let int = e.int(bits);
        e.bitcast(self.value, if n == 1 { int } else { Type::vector(&[n.into()], int) })
    }

    /// The elements, each a value of its own.
    pub fn elements(&self, e: &Emitter<'c, 'a>) -> Result<Vec<Value<'c, 'a>>> {
        e.elements(self.ty, self.value)
    }
}

/// A product without scales: D = A·B + C.
pub struct Product<'c, 'a> {
    /// Extents.
    pub shape: MmaShape,
    /// Elements of A and B.
    pub types: (MmaType, MmaType),
    /// A.
    pub a: Registers<'c, 'a>,
    /// B.
    pub b: Registers<'c, 'a>,
    /// C.
    pub c: Registers<'c, 'a>,
}

/// A block-scaled product of 16×16×128: D = A·B + C.
pub struct Scaled<'c, 'a> {
    /// Elements of A and B.
    pub formats: [Narrow; 2],
    /// A and B.
    pub factors: [Registers<'c, 'a>; 2],
    /// C.
    pub c: Registers<'c, 'a>,
    /// Scales of A and B.
    pub scales: [Registers<'c, 'a>; 2],
    /// Which byte of their words.
    pub bytes: [u32; 2],
}

impl<'c, 'a> Lowering<'c, 'a, '_> {
    fn registers(&self, v: ir::Value) -> Result<Registers<'c, 'a>> {
        Ok(Registers { ty: self.kernel.ty(v), value: self.get(v)? })
    }

    /// A matrix product.
    pub(super) fn matrix_product(&self, op: &Op) -> Result<Value<'c, 'a>> {
        match *op {
            Op::Mma { a, b, c, shape, a_type, b_type, .. } => {
                let [a, b, c] = [self.registers(a)?, self.registers(b)?, self.registers(c)?];
                self.backend.mma(&self.lanes(), &Product { shape, types: (a_type, b_type), a, b, c })
            }
            Op::MfmaScaled { a, b, c, a_scale, b_scale, a_type, b_type, a_byte, b_byte, .. } => {
                let [a, b, c] = [self.registers(a)?, self.registers(b)?, self.registers(c)?];
                let scales = [self.registers(a_scale)?, self.registers(b_scale)?];
                let (formats, factors, bytes) = ([a_type, b_type], [a, b], [a_byte, b_byte]);
                self.backend.mfma_scaled(&self.lanes(), &Scaled { formats, factors, c, scales, bytes })
            }
            _ => Err(format!("`{}` is no matrix product", op.def().name)),
        }
    }
}

/// A vector of `f32` or `i32` of these elements.
pub fn sums<'c, 'a>(e: &Emitter<'c, 'a>, scalar: Scalar, elements: &[Value<'c, 'a>]) -> Result<Value<'c, 'a>> {
    e.gather(ir::Type::Vector(scalar, elements.len() as u32), elements)
}

/// Words as a vector of `i32`.
pub fn word_vector<'c, 'a>(e: &Emitter<'c, 'a>, words: &[Value<'c, 'a>]) -> Result<Value<'c, 'a>> {
    from_words(e, ir::Type::Vector(Scalar::U32, words.len() as u32), words)
}

/// The shape of e4m3 products that every chip has.
pub use lathe_dsl::mma::E4M3;
