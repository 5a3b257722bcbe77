//! Operations across the lanes of a wave.

use lathe_dsl::ir::ShuffleOp;

use super::error::FaultKind;
use super::program::Reg;
use super::rows::{Cell, Done, Raised, Regs, Row, each_lane};

/// Bits of the lanes from which every lane of a row takes its value.
fn gather<C: Cell, const W: usize>(regs: &mut Regs<W>, dst: Reg, a: Reg, n: u32, from: &Row<usize, W>) {
    for e in 0..n {
        let (to, rows) = C::split(regs, dst + e);
        let a = rows.row::<C>(a + e);
        for i in 0..W {
            to[i] = a[from[i] % W];
        }
    }
}

/// Bit `i` tells whether `condition` holds in lane `i`; inactive lanes count as 0.
pub(super) fn ballot<const W: usize>(regs: &mut Regs<W>, dst: Reg, condition: Reg, mask: u64) {
    let holds = super::rows::lanes_where(&regs.r32[condition as usize], |c| c != 0);
    regs.r64[dst as usize] = [holds & mask; W];
}

/// The value of the first active lane in all lanes.
pub(super) fn read_first<C: Cell, const W: usize>(regs: &mut Regs<W>, dst: Reg, a: Reg, n: u32, mask: u64) {
    gather::<C, W>(regs, dst, a, n, &[mask.trailing_zeros() as usize; W]);
}

/// The lane that `row` holds the value of must be the same in all active lanes.
pub(super) fn uniform<C: Cell, const W: usize>(row: &Row<C, W>, mask: u64, what: &'static str) -> Done {
    let first = row[mask.trailing_zeros() as usize % W];
    each_lane::<W>(mask, |i| if row[i] == first { Ok(()) } else { Err(Raised::new(i, FaultKind::NotUniform { what })) })
}

/// The value of lane `lane` (modulo the wave) in all lanes.
pub(super) fn read_lane<C: Cell, const W: usize>(
    regs: &mut Regs<W>,
    dst: Reg,
    a: Reg,
    lane: Reg,
    n: u32,
    mask: u64,
) -> Done {
    let lane = &regs.r32[lane as usize];
    uniform(lane, mask, "lane to read")?;
    let first = mask.trailing_zeros() as usize % W;
    let source = lane[first] as usize % W;
    if mask >> source & 1 == 0 {
        return Err(Raised::new(first, FaultKind::InactiveLane { lane: source as u32 }));
    }
    gather::<C, W>(regs, dst, a, n, &[source; W]);
    Ok(())
}

/// An exchange within groups of `width` lanes.
pub(super) fn shuffle<C: Cell, const W: usize>(
    regs: &mut Regs<W>,
    (op, width): (ShuffleOp, u32),
    dst: Reg,
    a: Reg,
    amount: Reg,
    n: u32,
    mask: u64,
) -> Done {
    let amount = &regs.r32[amount as usize];
    let from: Row<usize, W> = std::array::from_fn(|i| {
        let (group, l) = (i as u32 / width * width, i as u32 % width);
        let source = match op {
            ShuffleOp::Xor => l ^ (amount[i] % width),
            ShuffleOp::Up => l.checked_sub(amount[i]).unwrap_or(l),
            ShuffleOp::Down => l.checked_add(amount[i]).filter(|s| *s < width).unwrap_or(l),
            ShuffleOp::Idx => amount[i] % width,
        };
        (group + source) as usize
    });
    each_lane::<W>(mask, |i| {
        if mask >> from[i] & 1 == 1 {
            Ok(())
        } else {
            Err(Raised::new(i, FaultKind::InactiveLane { lane: from[i] as u32 }))
        }
    })?;
    gather::<C, W>(regs, dst, a, n, &from);
    Ok(())
}

/// Every group of `width` lanes that has an active one must have no inactive one.
pub(super) fn whole_groups<const W: usize>(width: u32, mask: u64) -> Done {
    each_lane::<W>(mask, |i| {
        let first = i as u32 / width * width;
        let missing = (u64::MAX >> (64 - width)) << first & !mask;
        if missing == 0 {
            return Ok(());
        }
        Err(Raised::new(i, FaultKind::InactiveLane { lane: missing.trailing_zeros() }))
    })
}

/// The value of the lane at distance `offset` in every group of `width` lanes.
pub(super) fn partner<C: Cell, const W: usize>(
    regs: &mut Regs<W>,
    (offset, width): (u32, u32),
    dst: Reg,
    a: Reg,
    n: u32,
    mask: u64,
) -> Done {
    whole_groups::<W>(width, mask)?;
    gather::<C, W>(regs, dst, a, n, &std::array::from_fn(|i| i ^ offset as usize));
    Ok(())
}

/// Deals elements of `bits` bits out among every 16 lanes. A lane has `n` rows of `row` bits, together a chunk of E elements;
/// lane `i` gets as element `j` the element `i mod E` of lane `(16/E)·j + i div E`.
pub(super) fn deal<const W: usize>(
    regs: &mut Regs<W>,
    (bits, row, n): (u32, u32, u32),
    dst: Reg,
    a: Reg,
    mask: u64,
) -> Done {
    whole_groups::<W>(W as u32, mask)?;
    let chunks: Row<u128, W> = std::array::from_fn(|lane| {
        (0..n).fold(0, |chunk, r| chunk | u128::from(regs.r32[(a + r) as usize][lane]) << (r * row))
    });
    let elements = (n * row / bits) as usize;
    let ones = |bits: u32| (1u128 << bits) - 1;
    for lane in 0..W {
        let (group, i) = (lane / 16 * 16, lane % 16);
        let dealt = (0..elements).fold(0, |dealt, j| {
            let from = chunks[group + 16 / elements * j + i / elements];
            let element = from >> (i % elements * bits as usize) & ones(bits);
            dealt | element << (j * bits as usize)
        });
        for r in 0..n {
            regs.r32[(dst + r) as usize][lane] = (dealt >> (r * row) & ones(row)) as u32;
        }
    }
    Ok(())
}

/// Transposes the 8×8 matrix of 16-bit elements that every group of 32 lanes holds: lane `4g + t` has row `g`, columns
/// `2t` and `2t + 1`.
pub(super) fn transpose<const W: usize>(regs: &mut Regs<W>, dst: Reg, a: Reg, mask: u64) -> Done {
    whole_groups::<W>(32, mask)?;
    let (to, rows) = u32::split(regs, dst);
    let a = rows.row::<u32>(a);
    for (i, to) in to.iter_mut().enumerate() {
        let (group, g, t) = (i / 32 * 32, i % 32 / 4, i % 4);
        let element = |row: usize, column: usize| a[group + 4 * row + column / 2] >> (column % 2 * 16) & 0xFFFF;
        *to = element(2 * t, g) | element(2 * t + 1, g) << 16;
    }
    Ok(())
}
