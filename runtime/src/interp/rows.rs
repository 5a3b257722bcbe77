//! A wave's registers: rows of lanes in two files, the elements that live in them, and loops over whole rows.
//!
//! The loops are generic over element types and closures, so that each becomes one straight loop of vector code.

use half::{bf16, f16};

use super::error::FaultKind;
use super::program::Reg;

/// One register of every lane.
pub(super) type Row<T, const W: usize> = [T; W];

/// The two register files.
pub(super) struct Regs<const W: usize> {
    pub(super) r32: Vec<Row<u32, W>>,
    pub(super) r64: Vec<Row<u64, W>>,
}

/// A fault of one lane, before its site is known.
pub(super) struct Raised(pub(super) u32, pub(super) Box<FaultKind>);

impl Raised {
    #[cold]
    pub(super) fn new(lane: usize, kind: FaultKind) -> Self {
        Self(lane as u32, Box::new(kind))
    }
}

pub(super) type Done = Result<(), Raised>;

/// Every row but the one that is being written: results never overlap operands.
pub(super) struct Others<'r, const W: usize> {
    below32: &'r [Row<u32, W>],
    above32: &'r [Row<u32, W>],
    below64: &'r [Row<u64, W>],
    above64: &'r [Row<u64, W>],
}

impl<'r, const W: usize> Others<'r, W> {
    #[inline(always)]
    pub(super) fn row<C: Cell>(&self, r: Reg) -> &'r Row<C, W> {
        C::other(self, r)
    }
}

#[inline(always)]
fn find<'r, T>(below: &'r [T], above: &'r [T], r: Reg) -> &'r T {
    let r = r as usize;
    if r < below.len() { &below[r] } else { &above[r - below.len() - 1] }
}

/// What one lane of a row holds: 32 or 64 bits.
pub(super) trait Cell: Copy + PartialEq + 'static {
    fn from_bits(bits: u64) -> Self;
    fn bits(self) -> u64;
    fn file<const W: usize>(regs: &Regs<W>) -> &[Row<Self, W>];
    fn file_mut<const W: usize>(regs: &mut Regs<W>) -> &mut [Row<Self, W>];
    /// Row `dst` to write, and the others.
    fn split<const W: usize>(regs: &mut Regs<W>, dst: Reg) -> (&mut Row<Self, W>, Others<'_, W>);
    fn other<'r, const W: usize>(others: &Others<'r, W>, r: Reg) -> &'r Row<Self, W>;
}

impl Cell for u32 {
    #[inline(always)]
    fn from_bits(bits: u64) -> Self {
        bits as u32
    }
    #[inline(always)]
    fn bits(self) -> u64 {
        self.into()
    }
    #[inline(always)]
    fn file<const W: usize>(regs: &Regs<W>) -> &[Row<Self, W>] {
        &regs.r32
    }
    #[inline(always)]
    fn file_mut<const W: usize>(regs: &mut Regs<W>) -> &mut [Row<Self, W>] {
        &mut regs.r32
    }
    #[inline(always)]
    fn split<const W: usize>(regs: &mut Regs<W>, dst: Reg) -> (&mut Row<Self, W>, Others<'_, W>) {
        let (below32, rest) = regs.r32.split_at_mut(dst as usize);
        let (to, above32) = rest.split_at_mut(1);
        (&mut to[0], Others { below32, above32, below64: &regs.r64, above64: &[] })
    }
    #[inline(always)]
    fn other<'r, const W: usize>(others: &Others<'r, W>, r: Reg) -> &'r Row<Self, W> {
        find(others.below32, others.above32, r)
    }
}

impl Cell for u64 {
    #[inline(always)]
    fn from_bits(bits: u64) -> Self {
        bits
    }
    #[inline(always)]
    fn bits(self) -> u64 {
        self
    }
    #[inline(always)]
    fn file<const W: usize>(regs: &Regs<W>) -> &[Row<Self, W>] {
        &regs.r64
    }
    #[inline(always)]
    fn file_mut<const W: usize>(regs: &mut Regs<W>) -> &mut [Row<Self, W>] {
        &mut regs.r64
    }
    #[inline(always)]
    fn split<const W: usize>(regs: &mut Regs<W>, dst: Reg) -> (&mut Row<Self, W>, Others<'_, W>) {
        let (below64, rest) = regs.r64.split_at_mut(dst as usize);
        let (to, above64) = rest.split_at_mut(1);
        (&mut to[0], Others { below32: &regs.r32, above32: &[], below64, above64 })
    }
    #[inline(always)]
    fn other<'r, const W: usize>(others: &Others<'r, W>, r: Reg) -> &'r Row<Self, W> {
        find(others.below64, others.above64, r)
    }
}

/// A Rust type whose values stand for elements of a scalar type; `idx` is `i64`. In a cell it lies zero-extended.
pub(super) trait Elem: Copy {
    type Cell: Cell;
    fn get(cell: Self::Cell) -> Self;
    fn put(self) -> Self::Cell;
}

macro_rules! elements {
    ($($t:ty: $cell:ty, |$x:ident| $get:expr, |$y:ident| $put:expr;)*) => {$(
        impl Elem for $t {
            type Cell = $cell;
            #[inline(always)]
            fn get($x: $cell) -> Self {
                $get
            }
            #[inline(always)]
            fn put(self) -> $cell {
                let $y = self;
                $put
            }
        }
    )*};
}

elements! {
    bool: u32, |x| x != 0, |y| u32::from(y);
    i8: u32, |x| x as i8, |y| u32::from(y as u8);
    u8: u32, |x| x as u8, |y| u32::from(y);
    i16: u32, |x| x as i16, |y| u32::from(y as u16);
    u16: u32, |x| x as u16, |y| u32::from(y);
    i32: u32, |x| x as i32, |y| y as u32;
    u32: u32, |x| x, |y| y;
    i64: u64, |x| x as i64, |y| y as u64;
    u64: u64, |x| x, |y| y;
    f16: u32, |x| f16::from_bits(x as u16), |y| u32::from(y.to_bits());
    bf16: u32, |x| bf16::from_bits(x as u16), |y| u32::from(y.to_bits());
    f32: u32, |x| f32::from_bits(x), |y| y.to_bits();
    f64: u64, |x| f64::from_bits(x), |y| y.to_bits();
}

/// Mask with all `W` lanes.
pub(super) const fn all_lanes<const W: usize>() -> u64 {
    u64::MAX >> (64 - W)
}

/// Calls `f` on every lane of `mask`, in order.
#[inline(always)]
pub(super) fn each_lane<const W: usize>(mask: u64, mut f: impl FnMut(usize) -> Done) -> Done {
    let mut rest = mask;
    while rest != 0 {
        f(rest.trailing_zeros() as usize % W)?;
        rest &= rest - 1;
    }
    Ok(())
}

/// Bit `i` tells whether `f` holds in lane `i`.
#[inline(always)]
pub(super) fn lanes_where<T: Copy, const W: usize>(row: &Row<T, W>, f: impl Fn(T) -> bool) -> u64 {
    let mut bits = 0;
    for (i, x) in row.iter().enumerate() {
        bits |= u64::from(f(*x)) << i;
    }
    bits
}

/// `f` of every lane and of `n` consecutive rows.
#[inline(always)]
pub(super) fn map1<A: Elem, Z: Elem, const W: usize>(regs: &mut Regs<W>, dst: Reg, a: Reg, n: u32, f: impl Fn(A) -> Z) {
    for e in 0..n {
        let (to, rows) = Z::Cell::split(regs, dst + e);
        let a = rows.row::<A::Cell>(a + e);
        for i in 0..W {
            to[i] = f(A::get(a[i])).put();
        }
    }
}

#[inline(always)]
pub(super) fn map2<A: Elem, B: Elem, Z: Elem, const W: usize>(
    regs: &mut Regs<W>,
    dst: Reg,
    [a, b]: [Reg; 2],
    n: u32,
    f: impl Fn(A, B) -> Z,
) {
    for e in 0..n {
        let (to, rows) = Z::Cell::split(regs, dst + e);
        let (a, b) = (rows.row::<A::Cell>(a + e), rows.row::<B::Cell>(b + e));
        for i in 0..W {
            to[i] = f(A::get(a[i]), B::get(b[i])).put();
        }
    }
}

#[inline(always)]
pub(super) fn map3<A: Elem, Z: Elem, const W: usize>(
    regs: &mut Regs<W>,
    dst: Reg,
    [a, b, c]: [Reg; 3],
    n: u32,
    f: impl Fn(A, A, A) -> Z,
) {
    for e in 0..n {
        let (to, rows) = Z::Cell::split(regs, dst + e);
        let [a, b, c] = [a, b, c].map(|r| rows.row::<A::Cell>(r + e));
        for i in 0..W {
            to[i] = f(A::get(a[i]), A::get(b[i]), A::get(c[i])).put();
        }
    }
}

/// Like [`map1`] in the active lanes only, for functions too slow to run on junk, or that fail on it.
#[inline(always)]
pub(super) fn try_map1<A: Elem, Z: Elem, const W: usize>(
    regs: &mut Regs<W>,
    dst: Reg,
    a: Reg,
    n: u32,
    mask: u64,
    f: impl Fn(A) -> Result<Z, FaultKind>,
) -> Done {
    for e in 0..n {
        let (to, rows) = Z::Cell::split(regs, dst + e);
        let a = rows.row::<A::Cell>(a + e);
        each_lane::<W>(mask, |i| {
            to[i] = f(A::get(a[i])).map_err(|kind| Raised::new(i, kind))?.put();
            Ok(())
        })?;
    }
    Ok(())
}

/// Like [`map2`] in the active lanes only.
#[inline(always)]
pub(super) fn try_map2<A: Elem, B: Elem, Z: Elem, const W: usize>(
    regs: &mut Regs<W>,
    dst: Reg,
    [a, b]: [Reg; 2],
    n: u32,
    mask: u64,
    f: impl Fn(A, B) -> Result<Z, FaultKind>,
) -> Done {
    for e in 0..n {
        let (to, rows) = Z::Cell::split(regs, dst + e);
        let (a, b) = (rows.row::<A::Cell>(a + e), rows.row::<B::Cell>(b + e));
        each_lane::<W>(mask, |i| {
            to[i] = f(A::get(a[i]), B::get(b[i])).map_err(|kind| Raised::new(i, kind))?.put();
            Ok(())
        })?;
    }
    Ok(())
}

/// Like [`map2`] on `idx`: `f` also tells whether the result overflowed.
#[inline(always)]
pub(super) fn checked_map2<const W: usize>(
    regs: &mut Regs<W>,
    dst: Reg,
    [a, b]: [Reg; 2],
    n: u32,
    mask: u64,
    f: impl Fn(i64, i64) -> (i64, bool),
) -> Done {
    for e in 0..n {
        let (to, rows) = u64::split(regs, dst + e);
        let (a, b) = (rows.row::<u64>(a + e), rows.row::<u64>(b + e));
        let mut over = 0;
        for i in 0..W {
            let (x, o) = f(a[i] as i64, b[i] as i64);
            to[i] = x as u64;
            over |= u64::from(o) << i;
        }
        if over & mask != 0 {
            return Err(Raised::new((over & mask).trailing_zeros() as usize, FaultKind::IndexOverflow));
        }
    }
    Ok(())
}
