//! Matrix instructions: MFMA of CDNA, WMMA of RDNA 4. One routine for all shapes and types.
//!
//! D = A · B + C. The products of an element of D and C are summed exactly and rounded once, to nearest even; a sum of
//! zeros is +0, every NaN the same one. AMD does not say in which order its hardware adds and where it rounds in between;
//! a sum whose partial sums are all f32 numbers is the same everywhere. Denormals are kept, whatever the mode.

mod element;
mod layout;
mod sum;
mod table;

use crate::gcn::decode::{Arg, Inst, Kind as ArgKind};
use crate::gcn::error::{ErrorKind, Fault, unsupported};
use crate::gcn::isa::Context;
use crate::gcn::state::{LANES, constant, vector_range};

use element::Element;
use layout::Shape;
use sum::Product;

pub(crate) use table::{CDNA3, CDNA4, RDNA4};

/// What the operands hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Types {
    /// Floats, added to f32.
    Float {
        /// Of A.
        a: Element,
        /// Of B.
        b: Element,
    },
    /// i8, added to i32.
    Int8,
    /// i8 or u8 as `neg_lo` says, added to i32.
    IntOrUnsigned8,
    /// Floats of the formats that `cbsz` and `blgp` name, added to f32.
    Formats {
        /// Each block of 32 along K has a scale.
        scaled: bool,
    },
}

/// One matrix instruction.
#[derive(Debug)]
pub struct Row {
    pub(crate) name: &'static str,
    shape: Shape,
    types: Types,
}

impl Row {
    pub(crate) fn operands(&self) -> (usize, usize) {
        let n = if self.types == (Types::Formats { scaled: true }) { 6 } else { 4 };
        (n, n)
    }

    /// Whether A and B hold f32.
    pub(crate) fn multiplies_f32(&self) -> bool {
        matches!(self.types, Types::Float { a: Element::F32, .. })
    }

    /// Passes of four cycles through the matrix unit.
    pub(crate) fn passes(&self, inst: &Inst) -> u32 {
        let tile = if self.shape.m == 32 { 8 } else { 4 };
        let wide = match self.types {
            // Formats 0 and 1 have eight bits.
            Types::Formats { .. } => inst.mods.formats.iter().any(|format| *format < 2),
            _ => self.multiplies_f32(),
        };
        if wide { 2 * tile } else { tile }
    }

    /// MFMA computes in all lanes; WMMA wants all active.
    fn is_wmma(&self) -> bool {
        self.shape.lanes == 32
    }
}

/// Bits of the elements of one operand, and which rows (columns) hold undefined ones.
struct Loaded {
    /// By row (column), then along K.
    codes: Vec<u32>,
    undefined: Vec<bool>,
}

/// Reads A or B, whose elements have so many bits.
fn load(
    cx: &mut Context<'_, '_>,
    row: &Row,
    inst: &Inst,
    operand: usize,
    bits: u32,
    split: bool,
) -> Result<Loaded, Fault> {
    let s = row.shape;
    let per_lane = s.per_lane();
    let (accumulator, first, count) = vector_range(&inst.args[operand])?;
    let words = per_lane * bits as usize / 32;
    if usize::from(count) != words {
        let what = format!("{count} registers of operand {operand} of `{}`, {words} expected", inst.text);
        return Err(ErrorKind::Decode(what).into());
    }
    let mut lanes = vec![[0u32; 8]; s.lanes];
    let mut undefined = vec![false; s.m];
    for w in 0..words {
        let r = cx.wave.vector(accumulator, first + w as u16)?;
        for (lane, own) in lanes.iter_mut().enumerate() {
            own[w] = r.v[lane];
            undefined[s.row(lane)] |= r.u[lane] != 0;
        }
    }
    let mask = u32::MAX >> (32 - bits);
    let mut codes = vec![0; s.m * s.k];
    for (lane, own) in lanes.iter().enumerate() {
        let at = s.row(lane) * s.k;
        for j in 0..per_lane {
            let bit = j * bits as usize;
            let (word, shift) = (bit / 32, bit % 32);
            // An element of six bits may lie in two words.
            let pair = u64::from(own[word]) | u64::from(*own.get(word + 1).unwrap_or(&0)) << 32;
            codes[at + s.k_of(lane, j, split)] = (pair >> shift) as u32 & mask;
        }
    }
    Ok(Loaded { codes, undefined })
}

/// C as rows × columns, bits and undefined bits.
fn addend(cx: &mut Context<'_, '_>, row: &Row, inst: &Inst) -> Result<(Vec<u32>, Vec<u32>), Fault> {
    let s = row.shape;
    let arg = &inst.args[3];
    let n = s.m * s.n;
    if !matches!(arg.kind, ArgKind::V { .. } | ArgKind::A { .. }) {
        return Ok((vec![constant(arg, 32, false)? as u32; n], vec![0; n]));
    }
    let (accumulator, first) = results(row, inst, arg)?;
    let (mut bits, mut undefined) = (vec![0; n], vec![0; n]);
    for r in 0..s.results() {
        let register = cx.wave.vector(accumulator, first + r as u16)?;
        for lane in 0..s.lanes {
            let (i, j) = s.result(lane, r);
            (bits[i * s.n + j], undefined[i * s.n + j]) = (register.v[lane], register.u[lane]);
        }
    }
    Ok((bits, undefined))
}

/// Register file and first register of C or D.
fn results(row: &Row, inst: &Inst, arg: &Arg) -> Result<(bool, u16), Fault> {
    let (accumulator, first, count) = vector_range(arg)?;
    let want = row.shape.results();
    if usize::from(count) != want {
        let what = format!("{count} registers of a result of `{}`, {want} expected", inst.text);
        return Err(ErrorKind::Decode(what).into());
    }
    Ok((accumulator, first))
}

/// Modifiers that the instruction has not, and those that it has but that are not executed.
fn check_modifiers(row: &Row, inst: &Inst) -> Result<(), Fault> {
    let m = &inst.mods;
    let formats = matches!(row.types, Types::Formats { .. });
    let signs = row.is_wmma() && (m.neg_lo != 0 || m.neg_hi != 0);
    let wrong = m.omod != 1.0
        || m.dpp.is_some()
        || m.sdwa.is_some()
        || inst.args.iter().any(|a| a.neg || a.abs || a.sext)
        || (!formats && m.formats != [0; 2])
        || (m.clamp && row.types != Types::IntOrUnsigned8)
        || (!row.is_wmma() && (m.neg_lo != 0 || m.neg_hi != 0))
        || (signs && row.types == Types::IntOrUnsigned8 && (m.neg_hi != 0 || m.neg_lo & 4 != 0));
    if wrong { unsupported(format!("modifier in `{}`", inst.text)) } else { Ok(()) }
}

pub(crate) fn exec(cx: &mut Context<'_, '_>, row: &'static Row, inst: &Inst) -> Result<(), Fault> {
    check_modifiers(row, inst)?;
    if row.is_wmma() && cx.wave.exec() != cx.wave.chip.all_lanes() {
        return unsupported(format!("`{}` with inactive lanes", inst.text));
    }
    let s = row.shape;
    let (mut c, mut undefined) = addend(cx, row, inst)?;
    let (rows, columns) = match row.types {
        Types::Int8 | Types::IntOrUnsigned8 => integers(cx, row, inst, &mut c)?,
        Types::Float { .. } | Types::Formats { .. } => floats(cx, row, inst, &mut c)?,
    };
    for (i, row) in undefined.chunks_exact_mut(s.n).enumerate() {
        for (u, column) in row.iter_mut().zip(&columns) {
            if rows[i] || *column || *u != 0 {
                *u = u32::MAX;
            }
        }
    }
    let (accumulator, first) = results(row, inst, &inst.args[0])?;
    for r in 0..s.results() {
        let register = cx.wave.vector_mut(accumulator, first + r as u16)?;
        for lane in 0..s.lanes {
            let (i, j) = s.result(lane, r);
            (register.v[lane], register.u[lane]) = (c[i * s.n + j], undefined[i * s.n + j]);
        }
    }
    Ok(())
}

/// Rows of A and columns of B with undefined elements.
type Undefined = (Vec<bool>, Vec<bool>);

fn integers(cx: &mut Context<'_, '_>, row: &Row, inst: &Inst, c: &mut [u32]) -> Result<Undefined, Fault> {
    let s = row.shape;
    let (a, b) = (load(cx, row, inst, 1, 8, false)?, load(cx, row, inst, 2, 8, false)?);
    let signed = |operand: u8| row.types == Types::Int8 || inst.mods.neg_lo >> operand & 1 == 1;
    let extend = |codes: &[u32], signed: bool| -> Vec<i32> {
        codes.iter().map(|x| if signed { i32::from(*x as i8) } else { *x as i32 }).collect()
    };
    let (x, y) = (extend(&a.codes, signed(0)), extend(&b.codes, signed(1)));
    for (x, c) in x.chunks_exact(s.k).zip(c.chunks_exact_mut(s.n)) {
        for (y, c) in y.chunks_exact(s.k).zip(c) {
            let sum: i32 = x.iter().zip(y).map(|(x, y)| x * y).sum();
            let old = *c as i32;
            *c = if inst.mods.clamp { old.saturating_add(sum) } else { old.wrapping_add(sum) } as u32;
        }
    }
    Ok((a.undefined, b.undefined))
}

fn floats(cx: &mut Context<'_, '_>, row: &Row, inst: &Inst, c: &mut [u32]) -> Result<Undefined, Fault> {
    let s = row.shape;
    let elements = match row.types {
        Types::Float { a, b } => [a, b],
        _ => {
            let format = |number: u8| {
                let unknown = || ErrorKind::Unsupported(format!("format {number} in `{}`", inst.text));
                Element::of_format(number).ok_or_else(unknown)
            };
            [format(inst.mods.formats[0])?, format(inst.mods.formats[1])?]
        }
    };
    let fp8 = cx.wave.chip.fp8;
    let mut values = [Vec::new(), Vec::new()];
    let mut undefined = [Vec::new(), Vec::new()];
    for operand in 0..2 {
        let element = elements[operand];
        let split = matches!(row.types, Types::Formats { .. }) && element.bits() == 8;
        let loaded = load(cx, row, inst, 1 + operand, element.bits(), split)?;
        let decoder = element.decoder(fp8);
        values[operand] = loaded.codes.iter().map(|code| decoder.value(*code)).collect();
        undefined[operand] = loaded.undefined;
        negate(row, inst, operand, &mut values[operand])?;
        if row.types == (Types::Formats { scaled: true }) {
            scale(cx, row, inst, operand, &mut values[operand], &mut undefined[operand])?;
        }
    }
    let [a, columns] = values;
    // B comes by columns.
    let mut b = vec![0.0; columns.len()];
    for (j, column) in columns.chunks_exact(s.k).enumerate() {
        column.iter().enumerate().for_each(|(k, x)| b[k * s.n + j] = *x);
    }
    let mut sums: Vec<f32> = c.iter().map(|c| f32::from_bits(signs(row, inst, *c))).collect();
    Product { k: s.k, columns: s.n, a, b }.add_to(&mut sums);
    c.iter_mut().zip(sums).for_each(|(c, sum)| *c = sum.to_bits());
    let [rows, columns] = undefined;
    Ok((rows, columns))
}

/// C with the sign that WMMA gives it: bit 2 of `neg_hi` takes it away, then bit 2 of `neg_lo` turns it.
fn signs(row: &Row, inst: &Inst, c: u32) -> u32 {
    if !row.is_wmma() {
        return c;
    }
    let kept = if inst.mods.neg_hi & 4 != 0 { 0x7FFF_FFFF } else { u32::MAX };
    c & kept ^ u32::from(inst.mods.neg_lo & 4 != 0) << 31
}

/// Turns the signs of the even (`neg_lo`) and odd (`neg_hi`) elements of an operand of 16-bit floats.
fn negate(row: &Row, inst: &Inst, operand: usize, values: &mut [f64]) -> Result<(), Fault> {
    let bit = |bits: u8| bits >> operand & 1 == 1;
    let negative = [bit(inst.mods.neg_lo), bit(inst.mods.neg_hi)];
    if negative == [false; 2] {
        return Ok(());
    }
    if !matches!(row.types, Types::Float { a: Element::F16 | Element::Bf16, .. }) {
        return unsupported(format!("neg on eight-bit floats in `{}`", inst.text));
    }
    for (k, value) in values.iter_mut().enumerate() {
        if negative[k % 2] {
            *value = -*value;
        }
    }
    Ok(())
}

/// Elements that share a scale.
const BLOCK: usize = 32;

/// Multiplies each block of an operand by its scale: a power of two, or NaN.
fn scale(
    cx: &mut Context<'_, '_>,
    row: &Row,
    inst: &Inst,
    operand: usize,
    values: &mut [f64],
    undefined: &mut [bool],
) -> Result<(), Fault> {
    let s = row.shape;
    let arg = &inst.args[4 + operand];
    let ArgKind::V { first, .. } = arg.kind else {
        // Hardware reads something else than the operand says.
        return unsupported(format!("a scale that is in no VGPR, in `{}`", inst.text));
    };
    // The printer leaves `op_sel_hi` out only where it is 0, as the assembler does.
    let high = if inst.mods.op_sel_hi == 0xFF { 0 } else { inst.mods.op_sel_hi };
    let byte = u32::from(inst.mods.op_sel >> operand & 1) + 2 * u32::from(high >> operand & 1);
    let register = cx.wave.vector(false, first)?;
    let mut scales = [0u32; LANES];
    for (lane, scale) in scales.iter_mut().enumerate() {
        *scale = register.v[lane] >> (8 * byte) & 0xFF;
        undefined[s.row(lane)] |= register.u[lane] >> (8 * byte) & 0xFF != 0;
    }
    for (i, row_values) in values.chunks_exact_mut(s.k).enumerate() {
        for (block, values) in row_values.chunks_exact_mut(BLOCK).enumerate() {
            let factor = match scales[s.scale_lane(i, block)] {
                0xFF => f64::NAN,
                code => libm::scalbn(1.0, code as i32 - 127),
            };
            values.iter_mut().for_each(|v| *v *= factor);
        }
    }
    Ok(())
}
