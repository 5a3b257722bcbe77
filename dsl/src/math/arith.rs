//! The arithmetic that the expansions are written in.

/// What of an expansion's values, for [`Arith::branch`]: floats, then integers.
pub type Values<A, const N: usize, const M: usize> = ([<A as Arith>::F; N], [<A as Arith>::I; M]);

/// 32-bit arithmetic, on host numbers ([`super::Host`]) or on values of a code generator.
///
/// Every float operation rounds once, to nearest even, keeps subnormals, and is neither contracted, reassociated nor
/// assumed free of NaN: no fast-math licence applies within an expansion. The bits of a NaN that arithmetic makes are
/// free; no expansion depends on them. Nothing here traps or is undefined, in the value not chosen by a select either.
///
/// `F` may also stand for several lanes at once; see [`Self::branch`].
pub trait Arith {
    /// f32.
    type F: Copy;
    /// 32-bit integer, two's complement, wrapping.
    type I: Copy;
    /// bool.
    type B: Copy;

    /// A float constant.
    fn f(&self, c: f32) -> Self::F;
    /// An integer constant.
    fn i(&self, c: i32) -> Self::I;

    /// a + b.
    fn fadd(&self, a: Self::F, b: Self::F) -> Self::F;
    /// a − b.
    fn fsub(&self, a: Self::F, b: Self::F) -> Self::F;
    /// a · b.
    fn fmul(&self, a: Self::F, b: Self::F) -> Self::F;
    /// a · b + c, rounded once.
    fn fma(&self, a: Self::F, b: Self::F, c: Self::F) -> Self::F;
    /// −a: the sign bit flipped.
    fn fneg(&self, a: Self::F) -> Self::F;
    /// |a|: the sign bit cleared.
    fn fabs(&self, a: Self::F) -> Self::F;
    /// a = b; false with a NaN.
    fn feq(&self, a: Self::F, b: Self::F) -> Self::B;
    /// a < b; false with a NaN.
    fn flt(&self, a: Self::F, b: Self::F) -> Self::B;
    /// a ≤ b; false with a NaN.
    fn fle(&self, a: Self::F, b: Self::F) -> Self::B;
    /// Whether it is a NaN.
    fn is_nan(&self, a: Self::F) -> Self::B {
        self.not(self.feq(a, a))
    }

    /// The bits of a float.
    fn bits(&self, a: Self::F) -> Self::I;
    /// The float of these bits.
    #[expect(clippy::wrong_self_convention, reason = "the arithmetic converts, not itself")]
    fn from_bits(&self, a: Self::I) -> Self::F;
    /// Signed integer → nearest float, ties to even.
    fn to_float(&self, a: Self::I) -> Self::F;

    /// a + b.
    fn iadd(&self, a: Self::I, b: Self::I) -> Self::I;
    /// a − b.
    fn isub(&self, a: Self::I, b: Self::I) -> Self::I;
    /// Low 32 bits of a · b.
    fn imul(&self, a: Self::I, b: Self::I) -> Self::I;
    /// High 32 bits of the unsigned 64-bit product.
    fn umulhi(&self, a: Self::I, b: Self::I) -> Self::I;
    /// Bitwise and.
    fn iand(&self, a: Self::I, b: Self::I) -> Self::I;
    /// Bitwise or.
    fn ior(&self, a: Self::I, b: Self::I) -> Self::I;
    /// Bitwise exclusive or.
    fn ixor(&self, a: Self::I, b: Self::I) -> Self::I;
    /// Shift left by 0 to 31.
    fn shl(&self, a: Self::I, n: Self::I) -> Self::I;
    /// Logical shift right by 0 to 31.
    fn shr_u(&self, a: Self::I, n: Self::I) -> Self::I;
    /// Arithmetic shift right by 0 to 31.
    fn shr_s(&self, a: Self::I, n: Self::I) -> Self::I;
    /// a = b.
    fn ieq(&self, a: Self::I, b: Self::I) -> Self::B;
    /// a < b, signed.
    fn slt(&self, a: Self::I, b: Self::I) -> Self::B;
    /// a < b, unsigned.
    fn ult(&self, a: Self::I, b: Self::I) -> Self::B;

    /// Both.
    fn and(&self, a: Self::B, b: Self::B) -> Self::B;
    /// Either.
    fn or(&self, a: Self::B, b: Self::B) -> Self::B;
    /// Not.
    fn not(&self, a: Self::B) -> Self::B;
    /// `a` where `c` holds, else `b`; NaN bits are kept.
    fn select(&self, c: Self::B, a: Self::F, b: Self::F) -> Self::F;
    /// `a` where `c` holds, else `b`.
    fn select_i(&self, c: Self::B, a: Self::I, b: Self::I) -> Self::I;

    /// What `then` gives where `rare` holds, else what `otherwise` gives. `rare` is rarely true: a real branch pays. Both
    /// sides are pure and defined whatever `rare` is, so that evaluating both, or `then` for lanes that do not need it,
    /// and selecting is right too.
    fn branch<const N: usize, const M: usize>(
        &self,
        rare: Self::B,
        then: impl FnOnce(&Self) -> Values<Self, N, M>,
        otherwise: impl FnOnce(&Self) -> Values<Self, N, M>,
    ) -> Values<Self, N, M>
    where
        Self: Sized;

    /// `x` limited to `lo ..= hi`, both finite and not 0; a NaN stays a NaN.
    ///
    /// A target with minima and maxima that keep NaN does it in 2 operations.
    fn clamp(&self, x: Self::F, lo: f32, hi: f32) -> Self::F {
        let (lo, hi) = (self.f(lo), self.f(hi));
        let x = self.select(self.flt(x, lo), lo, x);
        self.select(self.flt(hi, x), hi, x)
    }

    /// x · 2^n, rounded once, for x = 0, ½ ≤ |x| ≤ 4 or NaN, and −200 ≤ n ≤ 200 (of a NaN, any n). Overflows to infinity.
    ///
    /// A target with such an instruction (AMD's `v_ldexp_f32`) does it in 1 operation.
    fn ldexp(&self, x: Self::F, n: Self::I) -> Self::F {
        // Two factors: neither 2^n nor the first product leaves the normal numbers, so only the last product rounds.
        let first = self.shr_s(n, self.i(1));
        let second = self.isub(n, first);
        let power = |n| self.from_bits(self.iadd(self.shl(n, self.i(23)), self.i(0x3f80_0000)));
        self.fmul(self.fmul(x, power(first)), power(second))
    }
}
