//! Matrix products by `mma.sync`.
//!
//! Lanes hold matrices as the instruction's fragments do. `mma.sync` of fp8 sums with the full precision of `f32` on sm_90,
//! where it is made of products of f16; the fp8 units of sm_89 and sm_120 keep fewer bits, so there the same is done here:
//! every code becomes the f16 that it stands for.

use lathe_dsl::ir::{Kernel, Op, Scalar};
use lathe_dsl::mma::{MmaShape, MmaType};
use lathe_dsl::numerics::Narrow;
use lathe_dsl::target::Generation;
use melior::ir::{Type, Value};

use super::Nvptx;
use crate::lower::emit::{Emitter, Result};
use crate::lower::matrix::{Product, sums};

/// The shape that products of fp8 are made of where the chip's own are not exact enough.
pub(super) const HALF: MmaShape = MmaShape::new(16, 8, 16);

impl Nvptx {
    /// Whether `mma.sync` of fp8 keeps as many bits as products of f16 do.
    fn has_exact_fp8(&self) -> bool {
        self.chip.generation == Generation::Hopper
    }

    /// Features of a kernel: by default the lowest PTX version that knows the chip, so that as many drivers as possible take the
    /// code, and a higher one only for instructions that came later.
    pub(super) fn features_for_products(&self, kernel: &Kernel) -> &'static str {
        let (mut products, mut conversions) = (false, false);
        kernel.walk(&mut |inst| match inst.op {
            Op::Mma { a_type: MmaType::Narrow(_), .. } => products = true,
            Op::MfmaScaled { a_type, b_type, .. } => conversions |= a_type.bits() == 8 || b_type.bits() == 8,
            _ => {}
        });
        match self.chip.generation {
            // `cvt` of fp8.
            Generation::Ada if products || conversions => "+ptx81",
            // `mma` of fp8.
            Generation::Hopper if products => "+ptx84",
            _ => self.chip.features,
        }
    }

    pub(super) fn product<'c, 'a>(&self, e: &Emitter<'c, 'a>, p: &Product<'c, 'a>) -> Result<Value<'c, 'a>> {
        let (a, b, c) = (p.a.words(e)?, p.b.words(e)?, p.c.elements(e)?);
        let (shape, sum) = (p.shape, p.c.ty.scalar());
        let d = match p.types {
            (MmaType::F16, _) => half_mma(e, shape, &as_halves(e, &a)?, &as_halves(e, &b)?, &c)?,
            (MmaType::Bf16, _) => call_mma(e, &format!("{shape}.row.col.bf16"), &[&a, &b, &c], sum)?,
            (MmaType::I8, _) => call_mma(e, &format!("{shape}.row.col.s8"), &[&a, &b, &c], sum)?,
            (a_type, b_type) if self.has_exact_fp8() => {
                call_mma(e, &format!("{shape}.row.col.f32.{a_type}.{b_type}.f32"), &[&a, &b, &c], sum)?
            }
            (MmaType::Narrow(a_type), MmaType::Narrow(b_type)) => {
                let halves = |format, words: &[Value<'c, 'a>]| {
                    words.iter().map(|w| fp8_halves(e, format, *w)).collect::<Result<Vec<_>>>()
                };
                let (a, b) = (halves(a_type, &a)?, halves(b_type, &b)?);
                let mut sums = c;
                // Of A two words, of B one are of the lower 16 elements along K. Which of them a lane's four are does not
                // matter, as long as A and B agree.
                for (a, b) in a.chunks_exact(2).zip(b) {
                    sums = half_mma(e, HALF, &[a[0][0], a[1][0], a[0][1], a[1][1]], &b, &sums)?;
                }
                sums
            }
            (a, b) => return Err(format!("no product of {a} by {b}")),
        };
        sums(e, sum, &d)
    }
}

/// `mma.sync` of these lists of operands, with four sums.
pub(super) fn call_mma<'c, 'a>(
    e: &Emitter<'c, 'a>,
    name: &str,
    operands: &[&[Value<'c, 'a>]],
    sum: Scalar,
) -> Result<Vec<Value<'c, 'a>>> {
    e.call_many(&format!("llvm.nvvm.mma.{name}"), &operands.concat(), &[e.scalar(sum); 4])
}

/// The product of pairs of f16.
pub(super) fn half_mma<'c, 'a>(
    e: &Emitter<'c, 'a>,
    shape: MmaShape,
    a: &[Value<'c, 'a>],
    b: &[Value<'c, 'a>],
    c: &[Value<'c, 'a>],
) -> Result<Vec<Value<'c, 'a>>> {
    call_mma(e, &format!("{shape}.row.col.f32.f32"), &[a, b, c], Scalar::F32)
}

/// Words as pairs of f16.
pub(super) fn as_halves<'c, 'a>(e: &Emitter<'c, 'a>, words: &[Value<'c, 'a>]) -> Result<Vec<Value<'c, 'a>>> {
    let pair = Type::vector(&[2], e.scalar(Scalar::F16));
    words.iter().map(|w| e.bitcast(*w, pair)).collect()
}

/// The f16 that the four codes of a word stand for, by pairs.
pub(super) fn fp8_halves<'c, 'a>(
    e: &Emitter<'c, 'a>,
    format: Narrow,
    word: Value<'c, 'a>,
) -> Result<[Value<'c, 'a>; 2]> {
    let (pair, name) = (Type::vector(&[2], e.scalar(Scalar::F16)), format!("llvm.nvvm.{format}x2.to.f16x2.rn"));
    let convert = |word| e.call(&name, &[e.resize(word, 32, 16, false)?], pair);
    Ok([convert(word)?, convert(e.same("arith.shrui", &[word, e.word(16)?])?)?])
}
