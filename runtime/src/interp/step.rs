//! Steps of pointers and of loop indices.

use lathe_dsl::ir::{MAX_BUFFER_BYTES, Scalar, Space};

use super::error::FaultKind;
use super::lds;
use super::program::{Count, Reg};
use super::rows::{Done, Raised, Regs, Row, each_lane, lanes_where};

pub(super) fn ptr_add<const W: usize>(
    regs: &mut Regs<W>,
    dst: Reg,
    pointer: Reg,
    count: Reg,
    (space, kind): (Space, Count),
    bytes: u32,
) {
    let from = &regs.r64[pointer as usize];
    // Only one of the two is meant; the other one's row may not exist.
    let narrow = |i: usize| regs.r32[count as usize][i];
    let wide = |i: usize| regs.r64[count as usize][i];
    let size = i64::from(bytes);
    regs.r64[dst as usize] = match (space, kind) {
        (Space::Lds, Count::U32) => std::array::from_fn(|i| lds::advance(from[i], i64::from(narrow(i)) * size)),
        (Space::Lds, Count::I64) => {
            std::array::from_fn(|i| lds::advance(from[i], (wide(i) as i64).saturating_mul(size)))
        }
        (Space::Lds, Count::U64) => std::array::from_fn(|i| {
            lds::advance(from[i], i64::try_from(wide(i)).unwrap_or(i64::MAX).saturating_mul(size))
        }),
        (Space::Global, Count::U32) => {
            std::array::from_fn(|i| from[i].wrapping_add(u64::from(narrow(i)) * u64::from(bytes)))
        }
        (Space::Global, _) => std::array::from_fn(|i| from[i].wrapping_add(wide(i).wrapping_mul(bytes.into()))),
    };
}

/// Address and extent of a made buffer.
pub(super) fn check_buffer<const W: usize>(regs: &Regs<W>, buffer: Reg, align: u32, mask: u64) -> Done {
    let [address, bytes] = [0, 1].map(|i| &regs.r64[buffer as usize + i]);
    each_lane::<W>(mask, |i| {
        let (address, bytes) = (address[i], bytes[i]);
        if address.is_multiple_of(align.into()) && bytes <= MAX_BUFFER_BYTES && address.checked_add(bytes).is_some() {
            return Ok(());
        }
        Err(Raised::new(i, FaultKind::BadBuffer { address, bytes, align }))
    })
}

/// Lanes with `index < hi`.
pub(super) fn below<const W: usize>(regs: &Regs<W>, index: Reg, hi: Reg, ty: Scalar) -> u64 {
    macro_rules! of {
        ($file:ident, $t:ty) => {{
            let (index, hi) = (&regs.$file[index as usize], &regs.$file[hi as usize]);
            let enters: Row<bool, W> = std::array::from_fn(|i| (index[i] as $t) < hi[i] as $t);
            lanes_where(&enters, |b| b)
        }};
    }
    match ty {
        Scalar::I32 => of!(r32, i32),
        Scalar::U64 => of!(r64, u64),
        Scalar::I64 | Scalar::Idx => of!(r64, i64),
        _ => of!(r32, u32),
    }
}

/// Moves `index` on by `step`; lanes that are then below `hi`. Past the type's end means past `hi`.
pub(super) fn next<const W: usize>(regs: &mut Regs<W>, index: Reg, hi: Reg, ty: Scalar, step: u32) -> u64 {
    macro_rules! of {
        ($file:ident, $cell:ty, $t:ty, $add:ident) => {{
            let hi = regs.$file[hi as usize];
            let index = &mut regs.$file[index as usize];
            let goes_on: Row<bool, W> = std::array::from_fn(|i| {
                let (next, wrapped) = (index[i] as $t).$add(step.into());
                index[i] = next as $cell;
                !wrapped && next < hi[i] as $t
            });
            lanes_where(&goes_on, |b| b)
        }};
    }
    match ty {
        Scalar::I32 => of!(r32, u32, i32, overflowing_add_unsigned),
        Scalar::U64 => of!(r64, u64, u64, overflowing_add),
        Scalar::I64 | Scalar::Idx => of!(r64, u64, i64, overflowing_add_unsigned),
        _ => of!(r32, u32, u32, overflowing_add),
    }
}
