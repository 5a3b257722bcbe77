//! Lane loops of arithmetic. The operation is picked outside, the loops inside run over whole rows without a mask, so
//! that they compile to vector code; inactive lanes compute junk that nobody reads.

use half::bf16;
use lathe_dsl::numerics;

use super::program::{Binary32, Binary64, Compared, Conversion, Divide, Reg, Relation, Unary32, Unary64};

/// One register of every lane.
pub(super) type Row<T, const W: usize> = [T; W];

/// Row `dst` to write and a look-up for every other row: results never overlap operands.
#[inline(always)]
fn split<'r, T, const W: usize>(
    rows: &'r mut [Row<T, W>],
    dst: Reg,
) -> (&'r mut Row<T, W>, impl Fn(Reg) -> &'r Row<T, W>) {
    let (below, rest) = rows.split_at_mut(dst as usize);
    let (to, above) = rest.split_at_mut(1);
    let (below, above) = (&*below, &*above);
    (&mut to[0], move |r| if r < dst { &below[r as usize] } else { &above[(r - dst - 1) as usize] })
}

/// `f` of every lane and of `n` consecutive rows.
#[inline(always)]
fn map1<T: Copy, const W: usize>(rows: &mut [Row<T, W>], dst: Reg, a: Reg, n: u32, f: impl Fn(T) -> T) {
    for e in 0..n {
        let (to, row) = split(rows, dst + e);
        let a = row(a + e);
        for i in 0..W {
            to[i] = f(a[i]);
        }
    }
}

#[inline(always)]
fn map2<T: Copy, const W: usize>(rows: &mut [Row<T, W>], dst: Reg, a: Reg, b: Reg, n: u32, f: impl Fn(T, T) -> T) {
    for e in 0..n {
        let (to, row) = split(rows, dst + e);
        let (a, b) = (row(a + e), row(b + e));
        for i in 0..W {
            to[i] = f(a[i], b[i]);
        }
    }
}

/// From one register file into the other.
#[inline(always)]
fn cross1<T: Copy, U, const W: usize>(
    to: &mut [Row<U, W>],
    from: &[Row<T, W>],
    dst: Reg,
    a: Reg,
    n: u32,
    f: impl Fn(T) -> U,
) {
    for e in 0..n {
        let a = &from[(a + e) as usize];
        to[(dst + e) as usize] = std::array::from_fn(|i| f(a[i]));
    }
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

fn float(bits: u32) -> f32 {
    f32::from_bits(bits)
}

/// bf16 bits as `f32`, exactly.
fn wide(bits: u32) -> f32 {
    f32::from_bits(bits << 16)
}

/// To bf16 bits, nearest even; NaN stays NaN.
fn narrow(x: f32) -> u32 {
    u32::from(bf16::from_f32(x).to_bits())
}

/// An integer's magnitude as bf16, rounded once.
fn bf16_from_magnitude(magnitude: u64) -> f32 {
    // Keep 24 bits and make the last one sticky ("round to odd"): then the second rounding is the only one that counts.
    let excess = 40u32.saturating_sub(magnitude.leading_zeros());
    let kept = magnitude >> excess;
    let sticky = u64::from(magnitude & !(u64::MAX << excess) != 0);
    ((kept | sticky) as f32) * f32::from_bits((127 + excess) << 23)
}

fn bf16_from_unsigned(x: u64) -> u32 {
    narrow(bf16_from_magnitude(x))
}

fn bf16_from_signed(x: i64) -> u32 {
    let magnitude = bf16_from_magnitude(x.unsigned_abs());
    narrow(if x < 0 { -magnitude } else { magnitude })
}

pub(super) fn unary32<const W: usize>(rows: &mut [Row<u32, W>], op: Unary32, dst: Reg, a: Reg, n: u32, mask: u64) {
    match op {
        Unary32::NegInt16 => map1(rows, dst, a, n, |x| x.wrapping_neg() & 0xFFFF),
        Unary32::NegInt32 => map1(rows, dst, a, n, u32::wrapping_neg),
        Unary32::NegF32 => map1(rows, dst, a, n, |x| x ^ 0x8000_0000),
        Unary32::NegBf16 => map1(rows, dst, a, n, |x| x ^ 0x8000),
        Unary32::NotBool => map1(rows, dst, a, n, |x| x ^ 1),
        Unary32::Not16 => map1(rows, dst, a, n, |x| x ^ 0xFFFF),
        Unary32::Not32 => map1(rows, dst, a, n, |x| !x),
        Unary32::HwExp2 => map1_active(rows, dst, a, n, mask, |x| numerics::hw_exp2(float(x)).to_bits()),
        Unary32::HwRcp => map1(rows, dst, a, n, |x| numerics::hw_rcp(float(x)).to_bits()),
    }
}

/// Like [`map1`], for functions too slow to run on junk.
#[inline(always)]
fn map1_active<const W: usize>(rows: &mut [Row<u32, W>], dst: Reg, a: Reg, n: u32, mask: u64, f: impl Fn(u32) -> u32) {
    for e in 0..n {
        let (to, row) = split(rows, dst + e);
        let a = row(a + e);
        for i in 0..W {
            if mask >> i & 1 == 1 {
                to[i] = f(a[i]);
            }
        }
    }
}

pub(super) fn unary64<const W: usize>(rows: &mut [Row<u64, W>], op: Unary64, dst: Reg, a: Reg, n: u32) {
    match op {
        Unary64::Neg => map1(rows, dst, a, n, u64::wrapping_neg),
        Unary64::Not => map1(rows, dst, a, n, |x| !x),
    }
}

pub(super) fn binary32<const W: usize>(rows: &mut [Row<u32, W>], op: Binary32, dst: Reg, a: Reg, b: Reg, n: u32) {
    use Binary32 as B;
    macro_rules! run {
        ($f:expr) => {
            map2(rows, dst, a, b, n, $f)
        };
    }
    macro_rules! f32s {
        ($x:ident, $y:ident, $f:expr) => {
            run!(|x, y| {
                let ($x, $y) = (float(x), float(y));
                ($f).to_bits()
            })
        };
    }
    // In f32 and then rounded is rounded once: 24 bits are more than twice 8 plus 2.
    macro_rules! bf16s {
        ($x:ident, $y:ident, $f:expr) => {
            run!(|x, y| {
                let ($x, $y) = (wide(x), wide(y));
                narrow($f)
            })
        };
    }
    match op {
        B::AddInt16 => run!(|x, y| x.wrapping_add(y) & 0xFFFF),
        B::AddInt32 => run!(u32::wrapping_add),
        B::AddF32 => f32s!(x, y, x + y),
        B::AddBf16 => bf16s!(x, y, x + y),
        B::SubInt16 => run!(|x, y| x.wrapping_sub(y) & 0xFFFF),
        B::SubInt32 => run!(u32::wrapping_sub),
        B::SubF32 => f32s!(x, y, x - y),
        B::SubBf16 => bf16s!(x, y, x - y),
        B::MulInt16 => run!(|x, y| x.wrapping_mul(y) & 0xFFFF),
        B::MulInt32 => run!(u32::wrapping_mul),
        B::MulF32 => f32s!(x, y, x * y),
        B::MulBf16 => bf16s!(x, y, x * y),
        B::DivF32 => f32s!(x, y, x / y),
        B::And => run!(|x, y| x & y),
        B::Or => run!(|x, y| x | y),
        B::Xor => run!(|x, y| x ^ y),
        B::Shl16 => run!(|x, y| x << (y & 15) & 0xFFFF),
        B::Shl32 => run!(|x, y| x << (y & 31)),
        B::Shr16 => run!(|x, y| x >> (y & 15)),
        B::ShrU32 => run!(|x, y| x >> (y & 31)),
        B::ShrI32 => run!(|x, y| (x as i32 >> (y & 31)) as u32),
        B::MaxU32 => run!(u32::max),
        B::MaxI32 => run!(|x, y| (x as i32).max(y as i32) as u32),
        B::MaxF32 => f32s!(x, y, numerics::maximum(x, y)),
        B::MaxBf16 => bf16s!(x, y, numerics::maximum(x, y)),
        B::MinU32 => run!(u32::min),
        B::MinI32 => run!(|x, y| (x as i32).min(y as i32) as u32),
        B::MinF32 => f32s!(x, y, numerics::minimum(x, y)),
        B::MinBf16 => bf16s!(x, y, numerics::minimum(x, y)),
    }
}

pub(super) fn binary64<const W: usize>(rows: &mut [Row<u64, W>], op: Binary64, dst: Reg, a: Reg, b: Reg, n: u32) {
    use Binary64 as B;
    macro_rules! run {
        ($f:expr) => {
            map2(rows, dst, a, b, n, $f)
        };
    }
    match op {
        B::Add => run!(u64::wrapping_add),
        B::Sub => run!(u64::wrapping_sub),
        B::Mul => run!(u64::wrapping_mul),
        B::And => run!(|x, y| x & y),
        B::Or => run!(|x, y| x | y),
        B::Xor => run!(|x, y| x ^ y),
        B::Shl => run!(|x, y| x << (y & 63)),
        B::ShrU => run!(|x, y| x >> (y & 63)),
        B::ShrI => run!(|x, y| (x as i64 >> (y & 63)) as u64),
        B::MaxU => run!(u64::max),
        B::MaxI => run!(|x, y| (x as i64).max(y as i64) as u64),
        B::MinU => run!(u64::min),
        B::MinI => run!(|x, y| (x as i64).min(y as i64) as u64),
    }
}

macro_rules! divide {
    ($(#[$doc:meta])* $name:ident, $unsigned:ty, $signed:ty) => {
        $(#[$doc])*
        pub(super) fn $name<const W: usize>(
            rows: &mut [Row<$unsigned, W>],
            op: Divide,
            dst: Reg,
            a: Reg,
            b: Reg,
            n: u32,
            mask: u64,
        ) -> Result<(), u32> {
            for e in 0..n {
                let zero = mask & lanes_where(&rows[(b + e) as usize], |d| d == 0);
                if zero != 0 {
                    return Err(zero.trailing_zeros());
                }
            }
            // Inactive lanes may hold 0.
            let safe = |d: $unsigned| if d == 0 { 1 } else { d };
            let divide = |x: $unsigned, y: $unsigned| {
                let (x, y) = (x as $signed, safe(y) as $signed);
                let (quotient, remainder) = (x.wrapping_div(y), x.wrapping_rem(y));
                // Truncation went the wrong way if the remainder's sign is not the divisor's.
                if remainder != 0 && (remainder < 0) != (y < 0) {
                    (quotient.wrapping_sub(1), remainder.wrapping_add(y))
                } else {
                    (quotient, remainder)
                }
            };
            match op {
                Divide::Unsigned => map2(rows, dst, a, b, n, |x, y| x / safe(y)),
                Divide::UnsignedRem => map2(rows, dst, a, b, n, |x, y| x % safe(y)),
                Divide::Signed => map2(rows, dst, a, b, n, |x, y| divide(x, y).0 as $unsigned),
                Divide::SignedRem => map2(rows, dst, a, b, n, |x, y| divide(x, y).1 as $unsigned),
            }
            Ok(())
        }
    };
}

divide! {
    /// Floored division of 32-bit rows (16-bit elements are unsigned and fit). An active lane that divides by zero is
    /// returned.
    divide32, u32, i32
}
divide! {
    /// Floored division of 64-bit rows. An active lane that divides by zero is returned.
    divide64, u64, i64
}

/// Calls `$run!(relation)` with the comparison as a closure on `$t`.
macro_rules! by_relation {
    ($relation:expr, $run:ident, $read:expr) => {
        match $relation {
            Relation::Eq => $run!(|x, y| $read(x) == $read(y)),
            Relation::Ne => $run!(|x, y| $read(x) != $read(y)),
            Relation::Lt => $run!(|x, y| $read(x) < $read(y)),
            Relation::Le => $run!(|x, y| $read(x) <= $read(y)),
            Relation::Gt => $run!(|x, y| $read(x) > $read(y)),
            Relation::Ge => $run!(|x, y| $read(x) >= $read(y)),
        }
    };
}

pub(super) fn compare32<const W: usize>(
    rows: &mut [Row<u32, W>],
    (relation, kind): (Relation, Compared),
    dst: Reg,
    a: Reg,
    b: Reg,
    n: u32,
) {
    macro_rules! run {
        (|$x:ident, $y:ident| $f:expr) => {
            map2(rows, dst, a, b, n, |$x: u32, $y: u32| u32::from($f))
        };
    }
    match kind {
        Compared::Unsigned => by_relation!(relation, run, |x: u32| x),
        Compared::Signed => by_relation!(relation, run, |x: u32| x as i32),
        Compared::F32 => by_relation!(relation, run, float),
        Compared::Bf16 => by_relation!(relation, run, wide),
    }
}

pub(super) fn compare64<const W: usize>(
    to: &mut [Row<u32, W>],
    from: &[Row<u64, W>],
    (relation, signed): (Relation, bool),
    dst: Reg,
    a: Reg,
    b: Reg,
    n: u32,
) {
    macro_rules! run {
        (|$x:ident, $y:ident| $f:expr) => {
            for e in 0..n {
                let (a, b) = (&from[(a + e) as usize], &from[(b + e) as usize]);
                to[(dst + e) as usize] = std::array::from_fn(|i| {
                    let ($x, $y) = (a[i], b[i]);
                    u32::from($f)
                });
            }
        };
    }
    if signed {
        by_relation!(relation, run, |x: u64| x as i64);
    } else {
        by_relation!(relation, run, |x: u64| x);
    }
}

pub(super) fn select<T: Copy, const W: usize>(
    rows: &mut [Row<T, W>],
    condition: &Row<u32, W>,
    dst: Reg,
    a: Reg,
    b: Reg,
    n: u32,
) {
    for e in 0..n {
        let (to, row) = split(rows, dst + e);
        let (a, b) = (row(a + e), row(b + e));
        for i in 0..W {
            to[i] = if condition[i] != 0 { a[i] } else { b[i] };
        }
    }
}

/// Copies rows in the lanes of `mask`.
pub(super) fn move_rows<T: Copy, const W: usize>(rows: &mut [Row<T, W>], dst: Reg, a: Reg, n: u32, mask: u64) {
    let all = mask == u64::MAX >> (64 - W);
    for e in 0..n {
        let (to, row) = split(rows, dst + e);
        let from = row(a + e);
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

pub(super) fn convert<const W: usize>(
    r32: &mut [Row<u32, W>],
    r64: &mut [Row<u64, W>],
    op: Conversion,
    dst: Reg,
    a: Reg,
    n: u32,
) {
    use Conversion as C;
    match op {
        C::Low16 => map1(r32, dst, a, n, |x| x & 0xFFFF),
        C::Low16From64 => cross1(r32, r64, dst, a, n, |x| x as u32 & 0xFFFF),
        C::Low32From64 => cross1(r32, r64, dst, a, n, |x| x as u32),
        C::Zero64From32 => cross1(r64, r32, dst, a, n, u64::from),
        C::Sign64From32 => cross1(r64, r32, dst, a, n, |x| i64::from(x as i32) as u64),
        C::F32FromU32 => map1(r32, dst, a, n, |x| (x as f32).to_bits()),
        C::F32FromI32 => map1(r32, dst, a, n, |x| (x as i32 as f32).to_bits()),
        C::F32FromU64 => cross1(r32, r64, dst, a, n, |x| (x as f32).to_bits()),
        C::F32FromI64 => cross1(r32, r64, dst, a, n, |x| (x as i64 as f32).to_bits()),
        C::Bf16FromU32 => map1(r32, dst, a, n, |x| bf16_from_unsigned(x.into())),
        C::Bf16FromI32 => map1(r32, dst, a, n, |x| bf16_from_signed((x as i32).into())),
        C::Bf16FromU64 => cross1(r32, r64, dst, a, n, bf16_from_unsigned),
        C::Bf16FromI64 => cross1(r32, r64, dst, a, n, |x| bf16_from_signed(x as i64)),
        C::Bf16FromF32 => map1(r32, dst, a, n, |x| narrow(float(x))),
        C::F32FromBf16 => map1(r32, dst, a, n, |x| x << 16),
    }
}

/// `ratio` elements of `bits` bits into one, first one lowest.
pub(super) fn join32<const W: usize>(rows: &mut [Row<u32, W>], dst: Reg, a: Reg, n: u32, ratio: u32, bits: u32) {
    for e in 0..n {
        let mut out = [0; W];
        for part in 0..ratio {
            for (out, x) in out.iter_mut().zip(&rows[(a + e * ratio + part) as usize]) {
                *out |= *x << (part * bits);
            }
        }
        rows[(dst + e) as usize] = out;
    }
}

/// Like [`join32`] into 64-bit rows.
pub(super) fn join64<const W: usize>(
    to: &mut [Row<u64, W>],
    from: &[Row<u32, W>],
    dst: Reg,
    a: Reg,
    n: u32,
    ratio: u32,
    bits: u32,
) {
    for e in 0..n {
        let out = &mut to[(dst + e) as usize];
        *out = [0; W];
        for part in 0..ratio {
            for (out, x) in out.iter_mut().zip(&from[(a + e * ratio + part) as usize]) {
                *out |= u64::from(*x) << (part * bits);
            }
        }
    }
}

/// Each element into `ratio` elements of `bits` bits, lowest first.
pub(super) fn split32<const W: usize>(rows: &mut [Row<u32, W>], dst: Reg, a: Reg, n: u32, ratio: u32, bits: u32) {
    let mask = (1 << bits) - 1;
    for e in 0..n {
        let from = rows[(a + e) as usize];
        for part in 0..ratio {
            rows[(dst + e * ratio + part) as usize] = from.map(|x| x >> (part * bits) & mask);
        }
    }
}

/// Like [`split32`] from 64-bit rows.
pub(super) fn split64<const W: usize>(
    to: &mut [Row<u32, W>],
    from: &[Row<u64, W>],
    dst: Reg,
    a: Reg,
    n: u32,
    ratio: u32,
    bits: u32,
) {
    let mask = (1 << bits) - 1;
    for e in 0..n {
        let from = &from[(a + e) as usize];
        for part in 0..ratio {
            to[(dst + e * ratio + part) as usize] = from.map(|x| (x >> (part * bits) & mask) as u32);
        }
    }
}
