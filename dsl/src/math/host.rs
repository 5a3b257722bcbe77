//! Expansions evaluated on host numbers.

use super::arith::{Arith, Values};

/// The host's own f32, i32 and bool. `f32::mul_add` is exact on every host: the processor's fma or a correct routine.
#[derive(Clone, Copy, Default, Debug)]
pub struct Host;

impl Arith for Host {
    type F = f32;
    type I = i32;
    type B = bool;

    #[inline(always)]
    fn f(&self, c: f32) -> f32 {
        c
    }
    #[inline(always)]
    fn i(&self, c: i32) -> i32 {
        c
    }
    #[inline(always)]
    fn fadd(&self, a: f32, b: f32) -> f32 {
        a + b
    }
    #[inline(always)]
    fn fsub(&self, a: f32, b: f32) -> f32 {
        a - b
    }
    #[inline(always)]
    fn fmul(&self, a: f32, b: f32) -> f32 {
        a * b
    }
    #[inline(always)]
    fn fma(&self, a: f32, b: f32, c: f32) -> f32 {
        a.mul_add(b, c)
    }
    #[inline(always)]
    fn fneg(&self, a: f32) -> f32 {
        -a
    }
    #[inline(always)]
    fn fabs(&self, a: f32) -> f32 {
        a.abs()
    }
    #[inline(always)]
    fn feq(&self, a: f32, b: f32) -> bool {
        a == b
    }
    #[inline(always)]
    fn flt(&self, a: f32, b: f32) -> bool {
        a < b
    }
    #[inline(always)]
    fn fle(&self, a: f32, b: f32) -> bool {
        a <= b
    }
    #[inline(always)]
    fn bits(&self, a: f32) -> i32 {
        a.to_bits().cast_signed()
    }
    #[inline(always)]
    fn from_bits(&self, a: i32) -> f32 {
        f32::from_bits(a.cast_unsigned())
    }
    #[inline(always)]
    fn to_float(&self, a: i32) -> f32 {
        a as f32
    }
    #[inline(always)]
    fn iadd(&self, a: i32, b: i32) -> i32 {
        a.wrapping_add(b)
    }
    #[inline(always)]
    fn isub(&self, a: i32, b: i32) -> i32 {
        a.wrapping_sub(b)
    }
    #[inline(always)]
    fn imul(&self, a: i32, b: i32) -> i32 {
        a.wrapping_mul(b)
    }
    #[inline(always)]
    fn umulhi(&self, a: i32, b: i32) -> i32 {
        let product = u64::from(a.cast_unsigned()) * u64::from(b.cast_unsigned());
        (product >> 32) as i32
    }
    #[inline(always)]
    fn iand(&self, a: i32, b: i32) -> i32 {
        a & b
    }
    #[inline(always)]
    fn ior(&self, a: i32, b: i32) -> i32 {
        a | b
    }
    #[inline(always)]
    fn ixor(&self, a: i32, b: i32) -> i32 {
        a ^ b
    }
    #[inline(always)]
    fn shl(&self, a: i32, n: i32) -> i32 {
        a.wrapping_shl(n.cast_unsigned())
    }
    #[inline(always)]
    fn shr_u(&self, a: i32, n: i32) -> i32 {
        a.cast_unsigned().wrapping_shr(n.cast_unsigned()).cast_signed()
    }
    #[inline(always)]
    fn shr_s(&self, a: i32, n: i32) -> i32 {
        a.wrapping_shr(n.cast_unsigned())
    }
    #[inline(always)]
    fn ieq(&self, a: i32, b: i32) -> bool {
        a == b
    }
    #[inline(always)]
    fn slt(&self, a: i32, b: i32) -> bool {
        a < b
    }
    #[inline(always)]
    fn ult(&self, a: i32, b: i32) -> bool {
        a.cast_unsigned() < b.cast_unsigned()
    }
    #[inline(always)]
    fn and(&self, a: bool, b: bool) -> bool {
        a & b
    }
    #[inline(always)]
    fn or(&self, a: bool, b: bool) -> bool {
        a | b
    }
    #[inline(always)]
    fn not(&self, a: bool) -> bool {
        !a
    }
    #[inline(always)]
    fn select(&self, c: bool, a: f32, b: f32) -> f32 {
        if c { a } else { b }
    }
    #[inline(always)]
    fn select_i(&self, c: bool, a: i32, b: i32) -> i32 {
        if c { a } else { b }
    }
    #[inline(always)]
    fn branch<const N: usize, const M: usize>(
        &self,
        rare: bool,
        then: impl FnOnce(&Self) -> Values<Self, N, M>,
        otherwise: impl FnOnce(&Self) -> Values<Self, N, M>,
    ) -> Values<Self, N, M> {
        if rare { then(self) } else { otherwise(self) }
    }
}
