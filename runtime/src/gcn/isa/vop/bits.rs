//! Moves, bitwise operations, shifts, fields, packing.

use super::{Row, Sem, Ty, row};
use crate::gcn::isa::shadow::{Shadow, left};

use Sem::{Bits, Truth};
use Shadow::{Bitwise, Move, Own, Strict};
use Ty::{B16, B32, B64};

const WORD: &[Ty] = &[B32];
const WORDS2: &[Ty] = &[B32, B32];
const WORDS3: &[Ty] = &[B32, B32, B32];

fn u(x: u64) -> u32 {
    x as u32
}

fn bfe(a: u64, offset: u64, width: u64) -> u64 {
    (a & 0xFFFF_FFFF) >> (offset & 31) & ((1 << (width & 31)) - 1)
}

fn bfe_signed(a: u64, offset: u64, width: u64) -> u64 {
    let width = width & 31;
    if width == 0 {
        return 0;
    }
    // Bits beyond 31 are copies of the sign.
    let shifted = i64::from(u(a) as i32) >> (offset & 31);
    (shifted << (64 - width) >> (64 - width)) as u64
}

/// One byte of `v_perm_b32`: 0–3 from operand 1, 4–7 from operand 0, 8–11 a replicated sign, 12 zero, above it ones.
fn perm_byte(data: u64, select: u8) -> u8 {
    let bytes = data.to_le_bytes();
    let sign = |byte: usize| if bytes[byte] & 0x80 != 0 { 0xFF } else { 0 };
    match select {
        0..=7 => bytes[usize::from(select)],
        8..=11 => sign(usize::from(select - 8) * 2 + 1),
        12 => 0,
        _ => 0xFF,
    }
}

fn perm([a, b, s]: [u64; 3]) -> u64 {
    let data = (a & 0xFFFF_FFFF) << 32 | b & 0xFFFF_FFFF;
    (0..4).fold(0, |r, i| r | u64::from(perm_byte(data, (s >> (8 * i)) as u8)) << (8 * i))
}

fn perm_shadow(v: [u64; 3], und: [u64; 3]) -> u64 {
    if und[2] != 0 {
        return u64::MAX;
    }
    let data = (und[0] & 0xFFFF_FFFF) << 32 | und[1] & 0xFFFF_FFFF;
    (0..4).fold(0, |r, i| {
        let select = (v[2] >> (8 * i)) as u8;
        // Constant bytes are defined.
        let byte = if select >= 12 { 0 } else { perm_byte(data, select) };
        r | u64::from(byte) << (8 * i)
    })
}

/// Truth-table bit `4a + 2b + c` for every bit position.
pub(crate) fn bitop3(table: u8, [a, b, c]: [u64; 3]) -> u64 {
    (0..8).filter(|i| table >> i & 1 == 1).fold(0, |r, i| {
        let pick = |x: u64, on: bool| if on { x } else { !x };
        r | pick(a, i & 4 != 0) & pick(b, i & 2 != 0) & pick(c, i & 1 != 0)
    })
}

fn shift_left_or(v: [u64; 3], und: [u64; 3]) -> u64 {
    if und[1] != 0 {
        return u64::MAX;
    }
    let (x, ux) = (v[0] << (v[1] & 31), und[0] << (v[1] & 31));
    // A defined 1 on either side decides an or.
    (ux | und[2]) & !(x & !ux) & !(v[2] & !und[2])
}

fn count_leading(x: u64) -> u64 {
    match u(x) {
        0 => u64::from(u32::MAX),
        x => u64::from(x.leading_zeros()),
    }
}

fn count_leading_signed(x: u64) -> u64 {
    let x = u(x);
    let folded = if x >> 31 == 1 { !x } else { x };
    if folded == 0 { u64::from(u32::MAX) } else { u64::from(folded.leading_zeros()) }
}

pub(crate) static TABLE: &[Row] = &[
    row("v_mov_b32", B32, WORD, Bits(|[a, ..]| a, Move(0))),
    row("v_mov_b64", B64, &[B64], Bits(|[a, ..]| a, Move(0))),
    row("v_accvgpr_read_b32", B32, WORD, Bits(|[a, ..]| a, Move(0))),
    row("v_accvgpr_write_b32", B32, WORD, Bits(|[a, ..]| a, Move(0))),
    row("v_accvgpr_mov_b32", B32, WORD, Bits(|[a, ..]| a, Move(0))),
    row("v_not_b32", B32, WORD, Bits(|[a, ..]| !a, Bitwise)),
    row("v_and_b32", B32, WORDS2, Bits(|[a, b, _]| a & b, Bitwise)),
    row("v_or_b32", B32, WORDS2, Bits(|[a, b, _]| a | b, Bitwise)),
    row("v_xor_b32", B32, WORDS2, Bits(|[a, b, _]| a ^ b, Bitwise)),
    row("v_xnor_b32", B32, WORDS2, Bits(|[a, b, _]| !(a ^ b), Bitwise)),
    row("v_and_or_b32", B32, WORDS3, Bits(|[a, b, c]| a & b | c, Bitwise)),
    row("v_or3_b32", B32, WORDS3, Bits(|[a, b, c]| a | b | c, Bitwise)),
    row("v_bfi_b32", B32, WORDS3, Bits(|[a, b, c]| a & b | !a & c, Bitwise)),
    row("v_bitop3_b32", B32, WORDS3, Truth),
    row("v_bitop3_b16", B16, &[B16, B16, B16], Truth),
    // Shifts by operand 0.
    row("v_lshlrev_b32", B32, WORDS2, Bits(|[n, a, _]| a << (n & 31), Move(1))),
    row("v_lshrrev_b32", B32, WORDS2, Bits(|[n, a, _]| a >> (n & 31), Move(1))),
    row("v_ashrrev_i32", B32, WORDS2, Bits(|[n, a, _]| (u(a) as i32 >> (n & 31)) as u64, Move(1))),
    row("v_lshlrev_b64", B64, &[B32, B64], Bits(|[n, a, _]| a << (n & 63), Move(1))),
    row("v_lshrrev_b64", B64, &[B32, B64], Bits(|[n, a, _]| a >> (n & 63), Move(1))),
    row("v_ashrrev_i64", B64, &[B32, B64], Bits(|[n, a, _]| (a as i64 >> (n & 63)) as u64, Move(1))),
    row("v_lshlrev_b16", B16, &[B16, B16], Bits(|[n, a, _]| a << (n & 15), Move(1))),
    row("v_lshrrev_b16", B16, &[B16, B16], Bits(|[n, a, _]| (a & 0xFFFF) >> (n & 15), Move(1))),
    row("v_ashrrev_i16", B16, &[B16, B16], Bits(|[n, a, _]| (a as i16 >> (n & 15)) as u64, Move(1))),
    row("v_lshl_or_b32", B32, WORDS3, Bits(|[a, n, c]| a << (n & 31) | c, Own(shift_left_or))),
    row(
        "v_lshl_add_u32",
        B32,
        WORDS3,
        Bits(
            |[a, n, c]| (a << (n & 31)).wrapping_add(c),
            Own(|v, d| if d[1] != 0 { u64::MAX } else { left(d[0] << (v[1] & 31) | d[2]) }),
        ),
    ),
    row(
        "v_add_lshl_u32",
        B32,
        WORDS3,
        Bits(
            |[a, b, n]| a.wrapping_add(b) << (n & 31),
            Own(|v, d| if d[2] != 0 { u64::MAX } else { left(d[0] | d[1]) << (v[2] & 31) }),
        ),
    ),
    row(
        "v_lshl_add_u64",
        B64,
        &[B64, B32, B64],
        Bits(
            |[a, n, c]| (a << (n & 7)).wrapping_add(c),
            Own(|v, d| if d[1] != 0 { u64::MAX } else { left(d[0] << (v[1] & 7) | d[2]) }),
        ),
    ),
    row("v_alignbit_b32", B32, WORDS3, Bits(|[a, b, n]| (a << 32 | b & 0xFFFF_FFFF) >> (n & 31), Move(4))),
    row("v_alignbyte_b32", B32, WORDS3, Bits(|[a, b, n]| (a << 32 | b & 0xFFFF_FFFF) >> (8 * (n & 3)), Move(4))),
    // Fields.
    row("v_bfe_u32", B32, WORDS3, Bits(|[a, o, w]| bfe(a, o, w), Move(6))),
    row("v_bfe_i32", B32, WORDS3, Bits(|[a, o, w]| bfe_signed(a, o, w), Move(6))),
    row("v_bfm_b32", B32, WORDS2, Bits(|[w, o, _]| ((1 << (w & 31)) - 1) << (o & 31), Strict)),
    row("v_bfrev_b32", B32, WORD, Bits(|[a, ..]| u64::from(u(a).reverse_bits()), Move(0))),
    row("v_perm_b32", B32, WORDS3, Bits(perm, Own(perm_shadow))),
    row("v_pack_b32_f16", B32, &[B16, B16], Bits(|[a, b, _]| a & 0xFFFF | b << 16, Move(0))),
    // Counts.
    row("v_ffbh_u32", B32, WORD, Bits(|[a, ..]| count_leading(a), Strict)),
    row("v_ffbh_i32", B32, WORD, Bits(|[a, ..]| count_leading_signed(a), Strict)),
    row(
        "v_ffbl_b32",
        B32,
        WORD,
        Bits(|[a, ..]| if u(a) == 0 { u64::from(u32::MAX) } else { u64::from(u(a).trailing_zeros()) }, Strict),
    ),
    row("v_bcnt_u32_b32", B32, WORDS2, Bits(|[a, b, _]| u64::from(u(a).count_ones()).wrapping_add(b), Strict)),
];
