//! What read-modify-write operations compute, in global memory and in LDS alike.

use crate::gcn::isa::float;
use crate::gcn::state::Mode;

/// Read-modify-write operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Atomic {
    /// Integer sum.
    Add,
    /// Difference.
    Sub,
    /// Signed minimum.
    Smin,
    /// Unsigned minimum.
    Umin,
    /// Signed maximum.
    Smax,
    /// Unsigned maximum.
    Umax,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Up to a limit, then 0.
    Inc,
    /// Down to 0, then to the limit.
    Dec,
    /// Exchange.
    Swap,
    /// Exchange if equal.
    CmpSwap,
    /// f32 or f64 sum, subnormals kept.
    AddFloat,
    /// f32 or f64: the operand if it compares less, else what was there. So a NaN in memory stays, and so does the
    /// zero that was there first: not `minnum`.
    MinFloat,
    /// Likewise if it compares greater.
    MaxFloat,
    /// f32 minimum as gfx12 has it: a NaN loses, −0 < +0.
    MinNum,
    /// Likewise the maximum.
    MaxNum,
    /// Two f16 sums.
    AddF16Pair,
    /// Two bf16 sums.
    AddBf16Pair,
}

impl Atomic {
    /// New value of a word of `bytes` (4 or 8).
    pub(crate) fn apply(self, old: u64, data: u64, compare: u64, bytes: u32) -> u64 {
        let bits = 8 * bytes;
        let signed = |x: u64| (x << (64 - bits)) as i64 >> (64 - bits);
        // Exact for f32 as well.
        let float = |x: u64| if bytes == 4 { f64::from(f32::from_bits(x as u32)) } else { f64::from_bits(x) };
        let choose = |takes: bool| if takes { data } else { old };
        let new = match self {
            Self::Add => old.wrapping_add(data),
            Self::Sub => old.wrapping_sub(data),
            Self::Smin => choose(signed(data) < signed(old)),
            Self::Smax => choose(signed(data) > signed(old)),
            Self::Umin => old.min(data),
            Self::Umax => old.max(data),
            Self::And => old & data,
            Self::Or => old | data,
            Self::Xor => old ^ data,
            Self::Inc if old >= data => 0,
            Self::Inc => old + 1,
            Self::Dec if old == 0 || old > data => data,
            Self::Dec => old - 1,
            Self::Swap => data,
            Self::CmpSwap => choose(old == compare),
            Self::AddFloat if bytes == 4 => {
                let (a, b) = (old as u32, data as u32);
                u64::from(float::result32(f32::from_bits(a) + f32::from_bits(b), &[a, b]))
            }
            Self::AddFloat => float::result64(float(old) + float(data), &[old, data]),
            Self::MinFloat => choose(float(data) < float(old)),
            Self::MaxFloat => choose(float(data) > float(old)),
            Self::MinNum | Self::MaxNum => {
                let mode = Mode { ieee: false, ..Mode::default() };
                u64::from(float::select32(data as u32, old as u32, self == Self::MaxNum, mode))
            }
            Self::AddF16Pair => pair(old, data, |a, b| {
                let sum = half::f16::from_bits(a).to_f64() + half::f16::from_bits(b).to_f64();
                float::result16(float::round16(sum), &[a, b])
            }),
            Self::AddBf16Pair => pair(old, data, |a, b| {
                let (a, b) = (u32::from(a) << 16, u32::from(b) << 16);
                // f32 has more than twice bf16's bits, and two: the second rounding changes nothing.
                float::bf16(float::result32(f32::from_bits(a) + f32::from_bits(b), &[a, b]))
            }),
        };
        new & u64::MAX >> (64 - bits)
    }
}

/// Applies `f` to both halves of 32-bit words.
fn pair(a: u64, b: u64, f: impl Fn(u16, u16) -> u16) -> u64 {
    u64::from(f(a as u16, b as u16)) | u64::from(f((a >> 16) as u16, (b >> 16) as u16)) << 16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f32s(op: Atomic, old: f32, data: f32) -> u32 {
        op.apply(u64::from(old.to_bits()), u64::from(data.to_bits()), 0, 4) as u32
    }

    #[test]
    fn float_extrema_compare_and_nothing_more() {
        let nan = f32::from_bits(float::NAN32);
        assert_eq!(f32s(Atomic::MinFloat, 2.0, -1.0), (-1f32).to_bits());
        assert_eq!(f32s(Atomic::MinFloat, 2.0, nan), 2f32.to_bits());
        assert_eq!(f32s(Atomic::MinFloat, nan, 2.0), float::NAN32);
        assert_eq!(f32s(Atomic::MinFloat, 0.0, -0.0), 0);
        assert_eq!(f32s(Atomic::MaxFloat, -0.0, 0.0), 0x8000_0000);
        assert_eq!(f32s(Atomic::MaxFloat, f32::NEG_INFINITY, -1.0), (-1f32).to_bits());
    }

    #[test]
    fn number_extrema_lose_nans_and_order_zeros() {
        let nan = f32::from_bits(float::NAN32);
        assert_eq!(f32s(Atomic::MinNum, nan, 2.0), 2f32.to_bits());
        assert_eq!(f32s(Atomic::MaxNum, 2.0, nan), 2f32.to_bits());
        assert_eq!(f32s(Atomic::MinNum, 0.0, -0.0), 0x8000_0000);
        assert_eq!(f32s(Atomic::MaxNum, -0.0, 0.0), 0);
    }

    #[test]
    fn sums_keep_subnormals_and_quiet_nans() {
        assert_eq!(f32s(Atomic::AddFloat, f32::from_bits(1), f32::from_bits(2)), 3);
        assert_eq!(Atomic::AddFloat.apply(0x7F80_0001, 0x3F80_0000, 0, 4), 0x7FC0_0001);
        assert_eq!(Atomic::AddFloat.apply(1, 1, 0, 8), 2);
        // 1 + 2^-8 is a bf16 tie, to even; 1 + (2^-8 + 2^-16) is above it. Likewise 2^-11 in f16.
        assert_eq!(Atomic::AddBf16Pair.apply(0x3F80_3F80, 0x3B80_3B81, 0, 4), 0x3F80_3F81);
        assert_eq!(Atomic::AddF16Pair.apply(0x3C00_3C00, 0x1000_1001, 0, 4), 0x3C00_3C01);
    }
}
