//! The products.

use super::super::Builder;
use super::super::group::Grouped;
use super::{Factor, FragmentA, FragmentB, FragmentC, MfmaScaled, Mma, NarrowFactor, Product, Role, roles};
use crate::ir::{Op, Scalar, Type, Value};
use crate::mma::Fragments;

impl<'k> Builder<'k> {
    /// D = A·B + C (`rocdl.mfma_*`, `wmma_*`, `mma.sync`): of every logical group of lanes its own. All lanes of the wave must
    /// come to it together. A product that the target lacks is refused by name.
    ///
    /// Floats: the exact sum, rounded once to f32 (on chips within the bound that the operation states). Integers wrap.
    ///
    /// ```
    /// # use lathe_dsl::prelude::*;
    /// # lathe_dsl::builder::build("k", Target::GFX950, Launch::linear(1, 64), vec![], |k| {
    /// type Tile = Mma<16, 16, 32, bf16>;
    /// let a: FragmentA<Tile> = k.fragment(&[k.constant(bf16::ONE); 8]);
    /// let b: FragmentB<Tile> = k.fragment(&[k.constant(bf16::ONE); 8]);
    /// let sum = k.mma(a, b, k.zero_fragment());
    /// for (place, x) in sum.elements() {
    ///     let _ = (place.row, place.col, x);
    /// }
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn mma<const M: u32, const N: u32, const K: u32, A: Factor, B: Factor<Sum = A::Sum>>(
        &'k self,
        a: FragmentA<'k, Mma<M, N, K, A, B>>,
        b: FragmentB<'k, Mma<M, N, K, A, B>>,
        c: FragmentC<'k, Mma<M, N, K, A, B>>,
    ) -> FragmentC<'k, Mma<M, N, K, A, B>> {
        let op = Op::Mma {
            a: a.id,
            b: b.id,
            c: c.id,
            shape: Mma::<M, N, K, A, B>::SHAPE,
            a_type: A::TYPE,
            b_type: B::TYPE,
            fragments: Fragments::of(self.target),
        };
        self.sum(op)
    }

    /// Block-scaled product of 16×16×128: D = A·B + C with a power of two for every 32 elements along K of a row of A and of a
    /// column of B (`mfma_scaled`, `rocdl.mfma_scale_f32_16x16x128_f8f6f4`). The scales are e8m0 codes in the lowest bytes of
    /// words; logical lane `l` of 64 ([`Builder::lanes`]) gives those of row, or column, `l mod 16` and elements 32·(l div 16)
    /// to 32·(l div 16) + 31 along K. 0xFF is NaN. C is not scaled.
    ///
    /// ```
    /// # use lathe_dsl::prelude::*;
    /// # for target in Target::all() {
    /// # lathe_dsl::builder::build("k", target, Launch::linear(1, 64), vec![], |k| {
    /// type Fp4 = MfmaScaled<E2m1>;
    /// let (a, b) = (k.zero_fragment(), k.zero_fragment());
    /// let unit = k.lanes(64).filled(k.constant(127u32));
    /// let sum: FragmentC<Fp4> = k.mfma_scaled(a, b, k.zero_fragment(), unit, unit);
    /// # let _ = sum;
    /// # }).unwrap();
    /// # }
    /// ```
    #[track_caller]
    pub fn mfma_scaled<A: NarrowFactor, B: NarrowFactor>(
        &'k self,
        a: FragmentA<'k, MfmaScaled<A, B>>,
        b: FragmentB<'k, MfmaScaled<A, B>>,
        c: FragmentC<'k, MfmaScaled<A, B>>,
        a_scale: Grouped<'k, u32>,
        b_scale: Grouped<'k, u32>,
    ) -> FragmentC<'k, MfmaScaled<A, B>> {
        self.mfma_scaled_bytes(a, b, c, (a_scale, 0), (b_scale, 0))
    }

    /// As [`Builder::mfma_scaled`], with the number (0 to 3) of the byte of each word that is the scale (opsel).
    #[track_caller]
    pub fn mfma_scaled_bytes<A: NarrowFactor, B: NarrowFactor>(
        &'k self,
        a: FragmentA<'k, MfmaScaled<A, B>>,
        b: FragmentB<'k, MfmaScaled<A, B>>,
        c: FragmentC<'k, MfmaScaled<A, B>>,
        (a_scale, a_byte): (Grouped<'k, u32>, u32),
        (b_scale, b_byte): (Grouped<'k, u32>, u32),
    ) -> FragmentC<'k, MfmaScaled<A, B>> {
        let op = Op::MfmaScaled {
            a: a.id,
            b: b.id,
            c: c.id,
            a_scale: self.scale_words(a_scale),
            b_scale: self.scale_words(b_scale),
            a_type: A::FORMAT,
            b_type: B::FORMAT,
            a_byte,
            b_byte,
            fragments: Fragments::of(self.target),
        };
        self.sum(op)
    }

    /// A lane's words of scales.
    #[track_caller]
    fn scale_words(&'k self, scale: Grouped<'k, u32>) -> Value {
        let group = scale.group();
        if group.size() != 64 {
            self.refuse(format!("scales of a logical group of {} lanes; 64 give them", group.size()));
        }
        match group.parts() {
            1 => scale.part(0).id,
            n => {
                let words = (0..n).map(|i| scale.part(i).id).collect();
                self.emit_op(Op::VectorFrom(words), &[Type::Vector(Scalar::U32, n as u32)])[0]
            }
        }
    }

    #[track_caller]
    fn sum<P: Product>(&'k self, op: Op) -> FragmentC<'k, P> {
        let ty = <roles::C as Role<P>>::registers(self.fragment_layout::<P, roles::C>().elements());
        FragmentC::new(self, self.emit_op(op, &[ty])[0])
    }
}
