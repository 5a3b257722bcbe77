//! Matrix products by MFMA (CDNA) and WMMA (RDNA 4).
//!
//! Lanes hold matrices as [`lathe_dsl::mma::plain`] says, which is how the instructions have them; only e4m3 16×8×32, which
//! every chip has, takes a few moves first.

use lathe_dsl::ir::Scalar;
use lathe_dsl::mma::{MmaShape, MmaType};
use lathe_dsl::numerics::Narrow;
use lathe_dsl::target::Generation;
use melior::ir::attribute::DenseI32ArrayAttribute;
use melior::ir::{Type, Value};

use super::Amdgpu;
use super::lanes::dpp;
use crate::lower::codes::{Emitted, ocp_as_fnuz};
use crate::lower::emit::{Emitter, IntPredicate, Result};
use crate::lower::lanes::Lanes;
use crate::lower::matrix::{E4M3, Product, Registers, sums, word_vector};
use crate::target::Backend;

/// A float of 8 bits as instructions call it: `fp8` has four bits of exponent, `bf8` five; the chip decides on the family.
fn fp8_name(ty: MmaType) -> Result<&'static str> {
    match ty {
        MmaType::Narrow(Narrow::E4m3 | Narrow::E4m3Fnuz) => Ok("fp8"),
        MmaType::Narrow(Narrow::E5m2 | Narrow::E5m2Fnuz) => Ok("bf8"),
        ty => Err(format!("{ty} is no float of 8 bits")),
    }
}

impl Amdgpu {
    pub(super) fn product<'c, 'a>(&self, at: &Lanes<'_, 'c, 'a>, p: &Product<'c, 'a>) -> Result<Value<'c, 'a>> {
        let e = at.e;
        match (self.chip.generation, p.shape) {
            (Generation::Rdna4, E4M3) => self.e4m3_by_wmma(e, p),
            (_, E4M3) => self.e4m3_by_mfma(at, p),
            (Generation::Rdna4, _) => wmma(e, p.types, [p.a, p.b], p.c.value),
            _ => mfma(e, p.shape, p.types, [p.a, p.b], p.c.value),
        }
    }

    /// Two products, one for each half of the wave, by two MFMAs of 16×16×32, which compute the transposes: rows 0–7 are the
    /// columns of B of the lower half, rows 8–15 those of the upper one; columns are the rows of A. Of their 32 elements along K
    /// the lower 16 are the lower half's, the upper 16 the upper one's, and where a row and those are not of one half there are
    /// zeros. So every MFMA multiplies 16 of the 32 elements along K of both halves.
    ///
    /// B's lanes are such that either MFMA has one half's elements where they are and takes the other's from 8 lanes aside: the
    /// first elements 0–15 of the lower half and 16–31 of the upper, the second the others.
    fn e4m3_by_mfma<'c, 'a>(&self, at: &Lanes<'_, 'c, 'a>, p: &Product<'c, 'a>) -> Result<Value<'c, 'a>> {
        let e = at.e;
        let lane = self.lane(at)?;
        let fnuz = self.chip.generation == Generation::Cdna3;
        let factor = |words: Vec<Value<'c, 'a>>| -> Result<Vec<Value<'c, 'a>>> {
            if fnuz {
                words.into_iter().map(|w| ocp_as_fnuz(&Emitted { backend: self, e }, w)).collect()
            } else {
                Ok(words)
            }
        };
        let (numbers, poison) = self.without_nans(at, p.a.words(e)?)?;
        let (a, b) = (factor(numbers)?, factor(p.b.words(e)?)?);
        // All ones where bits 3 and 5 of the lane are equal.
        let shifted = |n| e.same("arith.shrui", &[lane, e.word(n)?]);
        let differs = at.and(e.same("arith.xori", &[shifted(3)?, shifted(5)?])?, 1)?;
        let mask = e.same("arith.subi", &[differs, e.word(1)?])?;
        let masked = |w: Value<'c, 'a>| e.same("arith.andi", &[w, mask]);
        let upper = e.cmpi(IntPredicate::Ne, at.and(lane, 32)?, e.word(0)?, e.int(1))?;
        let summands = p.c.elements(e)?.into_iter().map(|c| e.same("arith.addf", &[c, poison]));
        let mut sum = sums(e, Scalar::F32, &summands.collect::<Result<Vec<_>>>()?)?;
        if fnuz {
            sum = scaled(e, sum, 0.25)?;
        }
        for own in [true, false] {
            let of_b = |w: &Value<'c, 'a>| masked(if own { *w } else { Self::dpp(e, *w, dpp::ROW_ROR_8, false)? });
            let of_a = |i: usize| {
                let (low, high) = if own { (a[i], a[i + 2]) } else { (a[i + 2], a[i]) };
                e.select(upper, high, low)
            };
            let rows = [of_b(&b[0])?, of_b(&b[1])?];
            let cols = [of_a(0)?, of_a(1)?];
            sum = fp8_mfma(e, rows, cols, sum)?;
        }
        // Every factor was half of what it stands for.
        if fnuz { scaled(e, sum, 4.0) } else { Ok(sum) }
    }

    /// A row of e4m3 codes of A without its NaNs, and NaN if it has one, else −0, which changes no sum. A NaN in the one half's A
    /// would spoil the other half's sums, as a zero times it.
    fn without_nans<'c, 'a>(
        &self,
        at: &Lanes<'_, 'c, 'a>,
        words: Vec<Value<'c, 'a>>,
    ) -> Result<(Vec<Value<'c, 'a>>, Value<'c, 'a>)> {
        let e = at.e;
        let mut found = e.word(0)?;
        for word in &words {
            let next = e.same("arith.addi", &[at.and(*word, 0x7F7F_7F7F)?, e.word(0x0101_0101)?])?;
            found = e.same("arith.ori", &[found, next])?;
        }
        let some = e.cmpi(IntPredicate::Ne, at.and(found, 0x8080_8080)?, e.word(0)?, e.int(1))?;
        let zero = e.word(0)?;
        let kept = words.into_iter().map(|w| e.select(some, zero, w)).collect::<Result<_>>()?;
        // The row's other half along K is 16 lanes aside.
        let own = e.select(some, e.word(0x7FC0_0000)?, e.word(0x8000_0000)?)?;
        let (one, other) = self.exchange(at, &[own], 16, self.chip.wave)?;
        let both = e.same("arith.ori", &[one[0], other[0]])?;
        Ok((kept, e.bitcast(both, e.scalar(Scalar::F32))?))
    }

    /// One product by two WMMAs of 16×16×16, which compute the transpose: of their rows 0–3 are columns 0–3 of B and 8–11
    /// columns 4–7, so that those of either half of the wave are the lower four registers of its sums; the others are of no use.
    /// Those other rows' lanes hold the second half of B along K.
    fn e4m3_by_wmma<'c, 'a>(&self, e: &Emitter<'c, 'a>, p: &Product<'c, 'a>) -> Result<Value<'c, 'a>> {
        let (a, b) = (p.a.words(e)?, p.b.words(e)?);
        let seed = sums(e, Scalar::F32, &p.c.elements(e)?)?;
        // Anything in the upper four: MLIR's `vector.from_elements` is at a loss with `llvm.mlir.poison` among constants.
        let mask = DenseI32ArrayAttribute::new(e.context, &[0, 1, 2, 3, -1, -1, -1, -1]).into();
        let wide = e.ty(lathe_dsl::ir::Type::Vector(Scalar::F32, 8));
        let mut sum = e.value("llvm.shufflevector", &[seed, seed], wide, &[("mask", mask)])?;
        for step in 0..2 {
            let of_b = |w: &Value<'c, 'a>| {
                if step == 0 { Ok(*w) } else { Self::dpp(e, *w, dpp::ROW_SHL | 4, false) }
            };
            let rows = word_vector(e, &[of_b(&b[0])?, of_b(&b[1])?])?;
            let cols = word_vector(e, &a[2 * step..2 * step + 2])?;
            sum = fp8_wmma(e, ("fp8", "fp8"), rows, cols, sum)?;
        }
        let lower: Vec<_> = (0..4).map(|i| e.extract(Scalar::F32, sum, i)).collect::<Result<_>>()?;
        sums(e, Scalar::F32, &lower)
    }
}

/// Every element times a power of two.
fn scaled<'c, 'a>(e: &Emitter<'c, 'a>, sums: Value<'c, 'a>, by: f32) -> Result<Value<'c, 'a>> {
    let ty = lathe_dsl::ir::Type::Vector(Scalar::F32, 4);
    e.same("arith.mulf", &[sums, e.float_constant(ty, by)?])
}

/// MFMA 16×16×32 of two words of `fp8` each.
fn fp8_mfma<'c, 'a>(
    e: &Emitter<'c, 'a>,
    a: [Value<'c, 'a>; 2],
    b: [Value<'c, 'a>; 2],
    c: Value<'c, 'a>,
) -> Result<Value<'c, 'a>> {
    let factor = |w: [Value<'c, 'a>; 2]| e.bitcast(word_vector(e, &w)?, e.int(64));
    call_mfma(e, "f32.16x16x32.fp8.fp8", [factor(a)?, factor(b)?], c)
}

/// An MFMA with nothing changed about its operands.
pub(super) fn call_mfma<'c, 'a>(
    e: &Emitter<'c, 'a>,
    name: &str,
    [a, b]: [Value<'c, 'a>; 2],
    c: Value<'c, 'a>,
) -> Result<Value<'c, 'a>> {
    use melior::ir::ValueLike;
    let zero = e.word(0)?;
    e.call(&format!("llvm.amdgcn.mfma.{name}"), &[a, b, c, zero, zero, zero], c.r#type())
}

/// The MFMA of a shape and types.
fn mfma<'c, 'a>(
    e: &Emitter<'c, 'a>,
    MmaShape { m, n, k }: MmaShape,
    (a_type, b_type): (MmaType, MmaType),
    [a, b]: [Registers<'c, 'a>; 2],
    c: Value<'c, 'a>,
) -> Result<Value<'c, 'a>> {
    // Shapes that came with gfx950 take twice as many elements, and have names of another kind.
    let elements = m * k / 64;
    let (name, factors) = match (a_type, elements) {
        (MmaType::F16, 4) => (format!("f32.{m}x{n}x{k}f16"), [a.value, b.value]),
        (MmaType::F16, _) => (format!("f32.{m}x{n}x{k}.f16"), [a.value, b.value]),
        (MmaType::Bf16, 4) => (format!("f32.{m}x{n}x{k}bf16.1k"), [a.ints(e, 4, 16)?, b.ints(e, 4, 16)?]),
        (MmaType::Bf16, _) => (format!("f32.{m}x{n}x{k}.bf16"), [a.value, b.value]),
        (MmaType::I8, 8) => (format!("i32.{m}x{n}x{k}.i8"), [a.ints(e, 1, 64)?, b.ints(e, 1, 64)?]),
        (MmaType::I8, _) => (format!("i32.{m}x{n}x{k}.i8"), [a.ints(e, 4, 32)?, b.ints(e, 4, 32)?]),
        _ => {
            let name = format!("f32.{m}x{n}x{k}.{}.{}", fp8_name(a_type)?, fp8_name(b_type)?);
            (name, [a.ints(e, 1, 64)?, b.ints(e, 1, 64)?])
        }
    };
    call_mfma(e, &name, factors, c)
}

/// The WMMA 16×16×16 of these types.
fn wmma<'c, 'a>(
    e: &Emitter<'c, 'a>,
    (a_type, b_type): (MmaType, MmaType),
    [a, b]: [Registers<'c, 'a>; 2],
    c: Value<'c, 'a>,
) -> Result<Value<'c, 'a>> {
    let floats = Type::vector(&[8], e.scalar(Scalar::F32));
    match a_type {
        MmaType::F16 => e.call("llvm.amdgcn.wmma.f32.16x16x16.f16.v8f32.v8f16", &[a.value, b.value, c], floats),
        MmaType::Bf16 => {
            let operands = [a.ints(e, 8, 16)?, b.ints(e, 8, 16)?, c];
            e.call("llvm.amdgcn.wmma.f32.16x16x16.bf16.v8f32.v8i16", &operands, floats)
        }
        MmaType::I8 => {
            // Both signed; sums wrap.
            let (signed, wrap) = (e.bit(true)?, e.bit(false)?);
            let operands = [signed, a.ints(e, 2, 32)?, signed, b.ints(e, 2, 32)?, c, wrap];
            e.call("llvm.amdgcn.wmma.i32.16x16x16.iu8.v8i32.v2i32", &operands, Type::vector(&[8], e.int(32)))
        }
        MmaType::Narrow(_) => fp8_wmma(e, (fp8_name(a_type)?, fp8_name(b_type)?), a.value, b.value, c),
    }
}

/// WMMA 16×16×16 of two words of `fp8` or `bf8` each.
pub(super) fn fp8_wmma<'c, 'a>(
    e: &Emitter<'c, 'a>,
    (a_name, b_name): (&str, &str),
    a: Value<'c, 'a>,
    b: Value<'c, 'a>,
    c: Value<'c, 'a>,
) -> Result<Value<'c, 'a>> {
    let name = format!("llvm.amdgcn.wmma.f32.16x16x16.{a_name}.{b_name}.v8f32.v2i32");
    e.call(&name, &[a, b, c], Type::vector(&[8], e.scalar(Scalar::F32)))
}

/// The moves of e4m3 16×8×32, lane by lane, against the layouts.
#[cfg(test)]
mod tests {
    use lathe_dsl::mma::{Fragments, Tiles, plain};

    use super::*;

    fn tiles(on: Fragments) -> Tiles {
        let e4m3 = MmaType::Narrow(Narrow::E4m3);
        plain(on, E4M3, e4m3, e4m3).unwrap()
    }

    /// Rows and columns of matrices of 16 columns.
    type Matrix = Vec<[i64; 32]>;

    fn matrices(seed: i64) -> (Matrix, Matrix) {
        let number = |i: usize, j: usize, n: i64| (i as i64 * 31 + j as i64 * 7 + n) * 2_654_435_761 / 128 % 17 - 8;
        let matrix = |rows: usize, n| (0..rows).map(|i| std::array::from_fn(|j| number(i, j, n))).collect();
        (matrix(16, seed), matrix(32, seed + 1000))
    }

    fn expected(a: &Matrix, b: &Matrix, row: u32, col: u32) -> i64 {
        (0..32).map(|k| a[row as usize][k] * b[k][col as usize]).sum()
    }

    /// Elements of lane `lane` of a group, by word of four.
    fn words(layout: &lathe_dsl::mma::Layout, m: &Matrix, lane: u32) -> Vec<[i64; 4]> {
        let element = |e| {
            let (row, col) = layout.at(lane, e);
            m[row as usize][col as usize]
        };
        (0..layout.elements() / 4).map(|w| std::array::from_fn(|i| element(4 * w + i as u32))).collect()
    }

    /// A product of the chip: rows from lanes modulo 16 of one factor, columns of the other, eight elements along K a lane.
    fn multiplied(rows: &[[i64; 8]], cols: &[[i64; 8]]) -> [[i64; 16]; 16] {
        let pieces = rows.len() / 16;
        std::array::from_fn(|i| {
            std::array::from_fn(|j| {
                (0..pieces).flat_map(|p| (0..8).map(move |e| rows[16 * p + i][e] * cols[16 * p + j][e])).sum()
            })
        })
    }

    fn pair(words: &[[i64; 4]], first: usize) -> [i64; 8] {
        std::array::from_fn(|e| words[first + e / 4][e % 4])
    }

    #[test]
    fn two_mfmas_multiply_for_both_halves_of_the_wave() {
        let tiles = tiles(Fragments::Cdna4);
        let halves = [matrices(1), matrices(2)];
        let of = |lane: usize| &halves[lane / 32];
        let a: Vec<_> = (0..64).map(|l| words(&tiles.a, &of(l).0, l as u32 % 32)).collect();
        let b: Vec<_> = (0..64).map(|l| pair(&words(&tiles.b, &of(l).1, l as u32 % 32), 0)).collect();
        let mut sums = [[0; 16]; 16];
        for own in [true, false] {
            let rows: Vec<[i64; 8]> = (0..64)
                .map(|l| {
                    // `row_ror:8` reads from the lane whose bit 3 is the other.
                    let source = if own { l } else { l ^ 8 };
                    if (l >> 3 ^ l >> 5) & 1 == 0 { b[source] } else { [0; 8] }
                })
                .collect();
            let cols: Vec<[i64; 8]> = (0..64).map(|l| pair(&a[l], if own == (l < 32) { 0 } else { 2 })).collect();
            let more = multiplied(&rows, &cols);
            for (sums, more) in sums.as_flattened_mut().iter_mut().zip(more.as_flattened()) {
                *sums += more;
            }
        }
        for lane in 0..64 {
            for r in 0..4 {
                let (row, col) = tiles.c.at(lane % 32, r);
                let (a, b) = of(lane as usize);
                let got = sums[(4 * (lane / 16) + r) as usize][(lane % 16) as usize];
                assert_eq!(got, expected(a, b, row, col), "lane {lane} register {r}");
            }
        }
    }

    #[test]
    fn two_wmmas_multiply() {
        let tiles = tiles(Fragments::Rdna4);
        let (ma, mb) = matrices(3);
        let a: Vec<_> = (0..32).map(|l| words(&tiles.a, &ma, l)).collect();
        let b: Vec<_> = (0..32).map(|l| pair(&words(&tiles.b, &mb, l), 0)).collect();
        let mut sums = [[0; 16]; 16];
        for step in 0..2 {
            // `row_shl:4` reads from four lanes above, 0 beyond the row.
            let moved = |l: usize| if l % 16 < 12 { b[l + 4] } else { [0; 8] };
            let rows: Vec<_> = (0..32).map(|l| if step == 0 { b[l] } else { moved(l) }).collect();
            let cols: Vec<_> = (0..32).map(|l| pair(&a[l], 2 * step)).collect();
            let more = multiplied(&rows, &cols);
            for (sums, more) in sums.as_flattened_mut().iter_mut().zip(more.as_flattened()) {
                *sums += more;
            }
        }
        for lane in 0..32 {
            for r in 0..4 {
                let (row, col) = tiles.c.at(lane, r);
                let got = sums[(8 * (lane / 16) + r) as usize][(lane % 16) as usize];
                assert_eq!(got, expected(&ma, &mb, row, col), "lane {lane} register {r}");
            }
        }
    }
}
