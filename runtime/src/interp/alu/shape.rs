//! Moving whole elements: selection, copies, and cutting elements into narrower or joining them into wider ones.

use super::super::error::FaultKind;
use super::super::program::Reg;
use super::super::rows::{Cell, Done, Raised, Regs, each_lane};

/// Rows `a` where `condition` holds, else rows `b`; `each` row has a condition of its own, or all have one.
pub(in super::super) fn select<C: Cell, const W: usize>(
    regs: &mut Regs<W>,
    condition: Reg,
    each: bool,
    dst: Reg,
    [a, b]: [Reg; 2],
    n: u32,
) {
    for e in 0..n {
        let (to, rows) = C::split(regs, dst + e);
        let condition = rows.row::<u32>(if each { condition + e } else { condition });
        let (a, b) = (rows.row::<C>(a + e), rows.row::<C>(b + e));
        for i in 0..W {
            to[i] = if condition[i] != 0 { a[i] } else { b[i] };
        }
    }
}

/// Copies rows in the lanes of `mask`.
pub(in super::super) fn move_rows<C: Cell, const W: usize>(regs: &mut Regs<W>, dst: Reg, a: Reg, n: u32, mask: u64) {
    let all = mask == u64::MAX >> (64 - W);
    for e in 0..n {
        let (to, rows) = C::split(regs, dst + e);
        let from = rows.row::<C>(a + e);
        if all {
            *to = *from;
        } else {
            for (i, (to, from)) in to.iter_mut().zip(from).enumerate() {
                if mask >> i & 1 == 1 {
                    *to = *from;
                }
            }
        }
    }
}

/// `ratio` elements of `bits` bits each into one, first one lowest.
pub(in super::super) fn join<A: Cell, Z: Cell, const W: usize>(
    regs: &mut Regs<W>,
    dst: Reg,
    a: Reg,
    n: u32,
    ratio: u32,
    bits: u32,
) {
    for e in 0..n {
        let (to, rows) = Z::split(regs, dst + e);
        let mut out = [0; W];
        for part in 0..ratio {
            for (out, x) in out.iter_mut().zip(rows.row::<A>(a + e * ratio + part)) {
                *out |= x.bits() << (part * bits);
            }
        }
        *to = out.map(Z::from_bits);
    }
}

/// Each element into `ratio` elements of `bits` bits, lowest first.
pub(in super::super) fn split_rows<A: Cell, Z: Cell, const W: usize>(
    regs: &mut Regs<W>,
    dst: Reg,
    a: Reg,
    n: u32,
    ratio: u32,
    bits: u32,
) {
    let mask = u64::MAX >> (64 - bits);
    for e in 0..n {
        for part in 0..ratio {
            let (to, rows) = Z::split(regs, dst + e * ratio + part);
            for (to, x) in to.iter_mut().zip(rows.row::<A>(a + e)) {
                *to = Z::from_bits(x.bits() >> (part * bits) & mask);
            }
        }
    }
}

/// Element number `index` of the `n` from `a` on, lane by lane.
pub(in super::super) fn extract_at<C: Cell, const W: usize>(
    regs: &mut Regs<W>,
    dst: Reg,
    a: Reg,
    index: Reg,
    n: u32,
    mask: u64,
) -> Done {
    let (to, rows) = C::split(regs, dst);
    let index = rows.row::<u32>(index);
    each_lane::<W>(mask, |i| {
        if index[i] >= n {
            return Err(Raised::new(i, FaultKind::VectorIndex { index: index[i], len: n }));
        }
        to[i] = rows.row::<C>(a + index[i])[i];
        Ok(())
    })
}
