//! Integer division in its five forms. The divisor is not 0; the smallest number by −1 wraps.

/// An integer type of the language.
pub trait Int: Copy {
    /// Quotient rounded towards −∞.
    fn floor_div(self, d: Self) -> Self;
    /// `self − d·floor_div(self, d)`.
    fn floor_rem(self, d: Self) -> Self;
    /// Quotient rounded towards 0.
    fn trunc_div(self, d: Self) -> Self;
    /// `self − d·trunc_div(self, d)`.
    fn trunc_rem(self, d: Self) -> Self;
    /// Quotient rounded towards +∞.
    fn ceil_div(self, d: Self) -> Self;
}

macro_rules! unsigned {
    ($($t:ty),*) => {$(
        impl Int for $t {
            #[inline(always)]
            fn floor_div(self, d: Self) -> Self {
                self / d
            }
            #[inline(always)]
            fn floor_rem(self, d: Self) -> Self {
                self % d
            }
            #[inline(always)]
            fn trunc_div(self, d: Self) -> Self {
                self / d
            }
            #[inline(always)]
            fn trunc_rem(self, d: Self) -> Self {
                self % d
            }
            #[inline(always)]
            fn ceil_div(self, d: Self) -> Self {
                self.div_ceil(d)
            }
        }
    )*};
}

macro_rules! signed {
    ($($t:ty),*) => {$(
        impl Int for $t {
            #[inline(always)]
            fn floor_div(self, d: Self) -> Self {
                let (q, r) = (self.wrapping_div(d), self.wrapping_rem(d));
                // Truncation went the wrong way if the remainder's sign is not the divisor's.
                if r != 0 && (r < 0) != (d < 0) { q - 1 } else { q }
            }
            #[inline(always)]
            fn floor_rem(self, d: Self) -> Self {
                let r = self.wrapping_rem(d);
                if r != 0 && (r < 0) != (d < 0) { r + d } else { r }
            }
            #[inline(always)]
            fn trunc_div(self, d: Self) -> Self {
                self.wrapping_div(d)
            }
            #[inline(always)]
            fn trunc_rem(self, d: Self) -> Self {
                self.wrapping_rem(d)
            }
            #[inline(always)]
            fn ceil_div(self, d: Self) -> Self {
                let (q, r) = (self.wrapping_div(d), self.wrapping_rem(d));
                if r != 0 && (r < 0) == (d < 0) { q + 1 } else { q }
            }
        }
    )*};
}

unsigned!(u8, u16, u32, u64);
signed!(i8, i16, i32, i64);
