//! DPP and SDWA: operand 0 taken from another lane, operands and destination taken as parts of registers.

use crate::gcn::decode::{Dpp, Mods, Sdwa, Sel, Unused};
use crate::gcn::state::{LANES, Wide};

/// Lane that `lane` reads, or `None` where the pattern leaves its row or the wave.
fn source(dpp: Dpp, lane: usize, lanes: usize) -> Option<usize> {
    let row = lane & !15;
    let at = lane & 15;
    let in_row = |i: usize| (i < 16).then(|| row + i);
    match dpp {
        Dpp::QuadPerm(q) => Some((lane & !3) + usize::from(q[lane & 3])),
        Dpp::RowShl(n) => in_row(at + usize::from(n)),
        Dpp::RowShr(n) => at.checked_sub(usize::from(n)).and_then(in_row),
        Dpp::RowRor(n) => in_row((at + 16 - usize::from(n)) & 15),
        Dpp::WaveShl => Some(lane + 1).filter(|l| *l < lanes),
        Dpp::WaveRol => Some((lane + 1) % lanes),
        Dpp::WaveShr => lane.checked_sub(1),
        Dpp::WaveRor => Some((lane + lanes - 1) % lanes),
        Dpp::RowMirror => in_row(15 - at),
        Dpp::RowHalfMirror => Some((lane & !7) + 7 - (lane & 7)),
        Dpp::RowBcast15 => row.checked_sub(1),
        Dpp::RowBcast31 => (lane & !31).checked_sub(1),
        Dpp::RowNewBcast(n) => Some(row + usize::from(n)),
        Dpp::RowXmask(n) => in_row(at ^ usize::from(n)),
        Dpp::Dpp8(d) => Some((lane & !7) + usize::from(d[lane & 7])),
    }
}

/// Moves `operand` across lanes in place and returns the lanes that the instruction may write.
pub(crate) fn permute(dpp: Dpp, mods: &Mods, operand: &mut Wide, exec: u64, lanes: usize) -> u64 {
    let old = operand.clone();
    let mut write = 0u64;
    for lane in 0..LANES {
        let enabled =
            lane < lanes && mods.row_mask >> (lane / 16) & 1 == 1 && mods.bank_mask >> (lane / 4 % 4) & 1 == 1;
        let from = source(dpp, lane, lanes).filter(|from| mods.fetch_inactive || exec >> from & 1 == 1);
        match from {
            Some(from) => {
                operand.v[lane] = old.v[from];
                operand.u[lane] = old.u[from];
            }
            None => {
                operand.v[lane] = 0;
                operand.u[lane] = 0;
            }
        }
        // The form of eight has no such bit: what it cannot read is 0.
        if enabled && (from.is_some() || mods.bound_ctrl || matches!(dpp, Dpp::Dpp8(_))) {
            write |= 1 << lane;
        }
    }
    exec & write
}

/// Takes part `sel` of each lane, extended by zero or sign.
pub(crate) fn select(operand: &mut Wide, sel: Sel, sext: bool) {
    let (shift, mask) = sel.field();
    if sel == Sel::Dword {
        return;
    }
    let bits = 32 - mask.leading_zeros();
    let extend = |x: u64| {
        let part = (x as u32 >> shift) & mask;
        let unused = 32 - bits;
        u64::from(if sext { ((part << unused) as i32 >> unused) as u32 } else { part })
    };
    for lane in 0..LANES {
        operand.v[lane] = extend(operand.v[lane]);
        operand.u[lane] = extend(operand.u[lane]);
    }
}

/// Result to be written where SDWA writes only a part of the destination, which holds `old`.
pub(crate) fn merge(result: &mut Wide, old: &Wide, sdwa: Sdwa) {
    let (shift, mask) = sdwa.dst.field();
    let bits = 32 - mask.leading_zeros();
    let place = |new: u64, old: u64| {
        let part = (new as u32 & mask) << shift;
        let field = mask << shift;
        let rest = match sdwa.unused {
            Unused::Pad => 0,
            Unused::Preserve => old as u32 & !field,
            // Bits above the part repeat its sign; bits below are zero.
            Unused::Sext if bits + shift < 32 => {
                ((((new as u32) << (32 - bits)) as i32 >> 31) as u32) << (bits + shift)
            }
            Unused::Sext => 0,
        };
        u64::from(part | rest)
    };
    for lane in 0..LANES {
        let (v, u) = (place(result.v[lane], old.v[lane]), place(result.u[lane], old.u[lane]));
        result.v[lane] = v;
        result.u[lane] = u;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lanes() -> Wide {
        let mut w = Wide::ZERO;
        for i in 0..LANES {
            w.v[i] = i as u64;
        }
        w
    }

    fn apply(dpp: Dpp, mods: Mods, exec: u64) -> ([u64; LANES], u64) {
        let mut w = lanes();
        let written = permute(dpp, &mods, &mut w, exec, 64);
        (w.v, written)
    }

    #[test]
    fn patterns_read_the_lanes_they_name() {
        let all = u64::MAX;
        assert_eq!(apply(Dpp::QuadPerm([1, 0, 3, 2]), Mods::default(), all).0[..4], [1, 0, 3, 2]);
        let (v, w) = apply(Dpp::RowShl(4), Mods::default(), all);
        assert_eq!((v[0], v[11], w & 0xFFFF), (4, 15, 0x0FFF));
        let (v, w) = apply(Dpp::RowShr(8), Mods::default(), all);
        assert_eq!((v[8], v[31], w & 0xFFFF), (0, 23, 0xFF00));
        assert_eq!(apply(Dpp::RowRor(1), Mods::default(), all).0[..2], [15, 0]);
        assert_eq!(apply(Dpp::RowMirror, Mods::default(), all).0[16], 31);
        assert_eq!(apply(Dpp::RowHalfMirror, Mods::default(), all).0[8], 15);
        let (v, w) = apply(Dpp::RowBcast15, Mods::default(), all);
        assert_eq!((v[16], v[63], w), (15, 47, 0xFFFF_FFFF_FFFF_0000));
        let (v, w) = apply(Dpp::RowBcast31, Mods::default(), all);
        assert_eq!((v[32], v[63], w), (31, 31, 0xFFFF_FFFF_0000_0000));
        assert_eq!(apply(Dpp::RowNewBcast(3), Mods::default(), all).0[20], 19);
        assert_eq!(apply(Dpp::RowXmask(5), Mods::default(), all).0[16..18], [21, 20]);
        assert_eq!(apply(Dpp::Dpp8([7, 6, 5, 4, 3, 2, 1, 0]), Mods::default(), all).0[8..10], [15, 14]);
        assert_eq!(apply(Dpp::WaveShl, Mods::default(), all).1, all >> 1);
        assert_eq!(apply(Dpp::WaveRor, Mods::default(), all).0[0], 63);
        assert_eq!(apply(Dpp::WaveRol, Mods::default(), all).0[63], 0);
        assert_eq!(apply(Dpp::WaveShr, Mods::default(), all).1, all << 1);
    }

    #[test]
    fn masks_and_inactive_sources() {
        let m = Mods { bank_mask: 0xC, ..Mods::default() };
        assert_eq!(apply(Dpp::QuadPerm([0, 1, 2, 3]), m, u64::MAX).1 & 0xFFFF, 0xFF00);
        let m = Mods { row_mask: 0x2, ..Mods::default() };
        assert_eq!(apply(Dpp::QuadPerm([0, 1, 2, 3]), m, u64::MAX).1, 0xFFFF_0000);
        // Lane 1 is off: lane 0, which reads it, is left alone, or reads 0 with bound_ctrl.
        assert_eq!(apply(Dpp::QuadPerm([1, 1, 2, 3]), Mods::default(), !2).1 & 0xF, 0xC);
        let m = Mods { bound_ctrl: true, ..Mods::default() };
        let (v, w) = apply(Dpp::QuadPerm([1, 1, 2, 3]), m, !2);
        assert_eq!((v[0], w & 0xF), (0, 0xD));
        let m = Mods { fetch_inactive: true, ..Mods::default() };
        let (v, w) = apply(Dpp::QuadPerm([1, 1, 2, 3]), m, !2);
        assert_eq!((v[0], w & 0xF), (1, 0xD));
        let (v, w) = apply(Dpp::Dpp8([1, 1, 2, 3, 4, 5, 6, 7]), Mods::default(), !2);
        assert_eq!((v[0], w & 0xF), (0, 0xD));
    }

    #[test]
    fn sdwa_parts() {
        let mut w = Wide::splat(0x89AB_CDEF, 0);
        select(&mut w, Sel::Byte(2), false);
        assert_eq!(w.v[0], 0xAB);
        let mut w = Wide::splat(0x89AB_CDEF, 0);
        select(&mut w, Sel::Word(1), true);
        assert_eq!(w.v[0], 0xFFFF_89AB);
        let old = Wide::splat(0x1111_2222, 0);
        let merged = |dst, unused| {
            let mut r = Wide::splat(0x8765, 0);
            merge(&mut r, &old, Sdwa { dst, unused, src: [Sel::Dword; 2] });
            r.v[0]
        };
        assert_eq!(merged(Sel::Word(1), Unused::Preserve), 0x8765_2222);
        assert_eq!(merged(Sel::Word(1), Unused::Pad), 0x8765_0000);
        assert_eq!(merged(Sel::Byte(1), Unused::Preserve), 0x1111_6522);
        assert_eq!(merged(Sel::Word(0), Unused::Sext), 0xFFFF_8765);
    }
}
