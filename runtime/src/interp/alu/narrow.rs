//! Codes of narrow floats: between elements and codes, one a row, and between codes and the words that they are packed in.

use half::{bf16, f16};
use lathe_dsl::ir::Scalar;
use lathe_dsl::numerics::{Float, Narrow, Overflow, Rounding};

use super::super::program::Reg;
use super::super::rows::{Cell, Elem, Regs, Row};

/// How elements become codes, or codes elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) struct Coding {
    pub(in super::super) format: Narrow,
    /// Of encoding.
    pub(in super::super) overflow: Overflow,
    /// Type of the elements: `f32`, `f16` or `bf16`.
    pub(in super::super) element: Scalar,
    /// Whether there is a scale.
    pub(in super::super) scaled: bool,
}

fn encode_row<A: Elem<Cell = u32> + Float, const W: usize>(
    to: &mut Row<u32, W>,
    a: &Row<u32, W>,
    scale: Option<&Row<u32, W>>,
    Coding { format, overflow, .. }: Coding,
) {
    for i in 0..W {
        // Exact, and a NaN keeps its sign.
        let x = A::get(a[i]).to_f64() as f32;
        let code = match scale {
            Some(scale) => format.encode_scaled(x, f32::from_bits(scale[i]), Rounding::NearestEven, overflow),
            None => format.encode(x, Rounding::NearestEven, overflow),
        };
        to[i] = code.into();
    }
}

fn decode_row<Z: Elem<Cell = u32> + Float, const W: usize>(
    to: &mut Row<u32, W>,
    a: &Row<u32, W>,
    scale: Option<&Row<u32, W>>,
    Coding { format, .. }: Coding,
) {
    for i in 0..W {
        let x = match scale {
            Some(scale) => format.decode_scaled(a[i] as u8, f32::from_bits(scale[i])),
            None => format.decode(a[i] as u8),
        };
        to[i] = Z::from_f32(x).put();
    }
}

/// The code of each of `n` elements.
pub(in super::super) fn encode<const W: usize>(
    regs: &mut Regs<W>,
    dst: Reg,
    [a, scale]: [Reg; 2],
    n: u32,
    coding: Coding,
) {
    for e in 0..n {
        let (to, rows) = u32::split(regs, dst + e);
        let (a, scale) = (rows.row::<u32>(a + e), coding.scaled.then(|| rows.row::<u32>(scale)));
        match coding.element {
            Scalar::F16 => encode_row::<f16, W>(to, a, scale, coding),
            Scalar::Bf16 => encode_row::<bf16, W>(to, a, scale, coding),
            _ => encode_row::<f32, W>(to, a, scale, coding),
        }
    }
}

/// The element of each of `n` codes.
pub(in super::super) fn decode<const W: usize>(
    regs: &mut Regs<W>,
    dst: Reg,
    [a, scale]: [Reg; 2],
    n: u32,
    coding: Coding,
) {
    for e in 0..n {
        let (to, rows) = u32::split(regs, dst + e);
        let (a, scale) = (rows.row::<u32>(a + e), coding.scaled.then(|| rows.row::<u32>(scale)));
        match coding.element {
            Scalar::F16 => decode_row::<f16, W>(to, a, scale, coding),
            Scalar::Bf16 => decode_row::<bf16, W>(to, a, scale, coding),
            _ => decode_row::<f32, W>(to, a, scale, coding),
        }
    }
}

/// `n` codes of `bits` bits side by side, across words of 32 bits; `words` of those.
pub(in super::super) fn pack<const W: usize>(regs: &mut Regs<W>, dst: Reg, a: Reg, [words, n, bits]: [u32; 3]) {
    for word in 0..words {
        let (to, rows) = u32::split(regs, dst + word);
        let mut out = [0u64; W];
        // Each code from its bit on, counted from 32 bits below this word, so that none is negative.
        let start = 32 * word;
        for code in start / bits..(start + 32).div_ceil(bits).min(n) {
            let shift = code * bits + 32 - start;
            for (out, x) in out.iter_mut().zip(rows.row::<u32>(a + code)) {
                *out |= u64::from(*x) << shift;
            }
        }
        *to = out.map(|x| (x >> 32) as u32);
    }
}

/// `n` codes of `bits` bits out of the words that they are packed in.
pub(in super::super) fn unpack<const W: usize>(regs: &mut Regs<W>, dst: Reg, a: Reg, [n, bits]: [u32; 2]) {
    let mask = (1u64 << bits) - 1;
    for code in 0..n {
        let (to, rows) = u32::split(regs, dst + code);
        let (word, shift) = (code * bits / 32, code * bits % 32);
        let low = rows.row::<u32>(a + word);
        let high = if shift + bits > 32 { rows.row::<u32>(a + word + 1) } else { low };
        for i in 0..W {
            to[i] = ((u64::from(low[i]) | u64::from(high[i]) << 32) >> shift & mask) as u32;
        }
    }
}

/// `old` with `bits` bits from `shift` on replaced.
pub(in super::super) fn insert<const W: usize>(
    regs: &mut Regs<W>,
    dst: Reg,
    [old, a]: [Reg; 2],
    [shift, bits]: [u32; 2],
) {
    let mask = (u32::MAX >> (32 - bits)) << shift;
    let (to, rows) = u32::split(regs, dst);
    let (old, a) = (rows.row::<u32>(old), rows.row::<u32>(a));
    for i in 0..W {
        to[i] = old[i] & !mask | a[i] << shift & mask;
    }
}
