//! Vectors: several elements a lane.

use half::bf16;

use super::Builder;
use super::element::{Bitwise, Data, Element, Numeric, Vector};
use super::value::{Operand, V};
use crate::ir::{Location, Op, ReduceOp};

impl<'k, T: Element, const N: usize> V<'k, Vector<T, N>>
where
    Vector<T, N>: Data<Elem = T>,
{
    /// The elements, in order.
    #[track_caller]
    pub fn elements(self) -> [V<'k, T>; N] {
        let location = Location::caller();
        std::array::from_fn(|i| self.k.emit_at(Op::Extract(self.id, i as u32), location))
    }

    /// Element `index`, a build-time number; out of range is refused.
    #[track_caller]
    pub fn element(self, index: usize) -> V<'k, T> {
        if index >= N {
            self.k.refuse(format!("element {index} of a vector of {N} elements"));
        }
        self.k.emit(Op::Extract(self.id, index.min(N.saturating_sub(1)) as u32))
    }

    /// Element `index`, a device value; outside the vector is reported on `cpu`, unspecified elsewhere.
    #[track_caller]
    pub fn at(self, index: impl Operand<'k, u32>) -> V<'k, T> {
        let index = index.value(self.k);
        self.k.emit(Op::ExtractAt(self.id, index.id))
    }

    /// The elements of `self` followed by those of `other`, picked by index (fx `shuffle`); out of range is refused.
    ///
    /// ```
    /// # use lathe_dsl::prelude::*;
    /// # lathe_dsl::builder::build("k", Target::GFX950, Launch::linear(1, 64), vec![], |k| {
    /// let a = k.vector([1.0f32, 2.0, 3.0, 4.0].map(|x| k.constant(x)));
    /// let b = k.filled::<_, 4>(k.constant(0.0f32));
    /// let interleaved: V<Vector<f32, 8>> = a.shuffle(b, [0, 4, 1, 5, 2, 6, 3, 7]);
    /// let high = a.slice::<2>(2);
    /// let sum = (high + a.slice::<2>(0)).reduce_add();
    /// # let _ = (interleaved, sum);
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn shuffle<const M: usize>(self, other: Self, picked: [u32; M]) -> V<'k, Vector<T, M>>
    where
        Vector<T, M>: Data<Elem = T>,
    {
        self.k.emit(Op::Shuffle { a: self.id, b: other.id, mask: picked.to_vec() })
    }

    /// `M` elements from element `start` on; out of range is refused.
    #[track_caller]
    pub fn slice<const M: usize>(self, start: usize) -> V<'k, Vector<T, M>>
    where
        Vector<T, M>: Data<Elem = T>,
    {
        if start.saturating_add(M) > N {
            self.k.refuse(format!("{M} elements from element {start} on, of a vector of {N} elements"));
        }
        let start = start.min(N.saturating_sub(M)) as u32;
        self.k.emit(Op::Shuffle { a: self.id, b: self.id, mask: (start..start + M as u32).collect() })
    }

    /// The elements of `self`, then those of `other`; `M` must be twice `N`.
    #[track_caller]
    pub fn concat<const M: usize>(self, other: Self) -> V<'k, Vector<T, M>>
    where
        Vector<T, M>: Data<Elem = T>,
    {
        const { assert!(M == 2 * N, "two vectors give one of twice the length") };
        self.k.emit(Op::Shuffle { a: self.id, b: other.id, mask: (0..M as u32).collect() })
    }

    /// A vector of what `f` makes of each element, in order.
    #[track_caller]
    pub fn map<U: Element>(self, f: impl FnMut(V<'k, T>) -> V<'k, U>) -> V<'k, Vector<U, N>>
    where
        Vector<U, N>: Data<Elem = U>,
    {
        let elements = self.elements().map(f);
        self.k.vector(elements)
    }

    #[track_caller]
    fn reduce(self, op: ReduceOp) -> V<'k, T> {
        self.k.emit(Op::Reduce(op, self.id))
    }
}

macro_rules! reduce {
    ($($class:ident { $($(#[$meta:meta])* $name:ident = $op:ident;)* })*) => {$(
        impl<'k, T: Element + $class, const N: usize> V<'k, Vector<T, N>>
        where
            Vector<T, N>: Data<Elem = T>,
        {
            $(
                $(#[$meta])*
                #[track_caller]
                pub fn $name(self) -> V<'k, T> {
                    self.reduce(ReduceOp::$op)
                }
            )*
        }
    )*};
}

reduce! {
    Numeric {
        /// Sum, from element 0 on, rounded after every step.
        reduce_add = Add;
        /// Product, from element 0 on, rounded after every step.
        reduce_mul = Mul;
        /// [`V::maximum`] of all.
        reduce_max = Maximum;
        /// [`V::minimum`] of all.
        reduce_min = Minimum;
    }
    Bitwise {
        /// `and` of all.
        reduce_and = And;
        /// `or` of all.
        reduce_or = Or;
        /// `xor` of all.
        reduce_xor = Xor;
    }
}

impl<'k> Builder<'k> {
    /// A vector of these elements, in order (fx `Vector.from_elements`).
    #[track_caller]
    pub fn vector<T: Element, const N: usize>(&'k self, elements: [V<'k, T>; N]) -> V<'k, Vector<T, N>>
    where
        Vector<T, N>: Data<Elem = T>,
    {
        self.emit(Op::VectorFrom(elements.iter().map(|e| e.id).collect()))
    }

    /// A vector of `N` equal elements (fx `Vector.filled`).
    #[track_caller]
    pub fn filled<T: Element, const N: usize>(&'k self, element: impl Operand<'k, T>) -> V<'k, Vector<T, N>>
    where
        Vector<T, N>: Data<Elem = T>,
    {
        let element = element.value(self);
        self.emit(Op::VectorFrom(vec![element.id; N]))
    }

    /// Two `f32` rounded to bf16 (nearest even) in one word: `low` in bits 15:0, `high` in bits 31:16 (fx `bf16_pair`).
    #[track_caller]
    pub fn bf16_pair(&'k self, low: V<'k, f32>, high: V<'k, f32>) -> V<'k, u32> {
        self.vector([low, high]).to::<Vector<bf16, 2>>().bitcast()
    }
}

impl<'k> V<'k, u32> {
    /// The bf16 in bits 15:0, as `f32` (fx `bf_lo`).
    #[track_caller]
    pub fn bf_lo(self) -> V<'k, f32> {
        (self << 16).bitcast()
    }

    /// The bf16 in bits 31:16, as `f32` (fx `bf_hi`).
    #[track_caller]
    pub fn bf_hi(self) -> V<'k, f32> {
        (self & 0xFFFF_0000).bitcast()
    }
}
