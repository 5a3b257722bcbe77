//! Matrix products over typed fragments: which product a fragment belongs to, and which of its matrices it is, are part of its
//! type; where its elements are is asked of the target.

mod fragment;
mod memory;
mod multiply;
mod relayout;

pub use fragment::{Fragment, FragmentA, FragmentB, FragmentC, Place};
pub use memory::{Matrix, Storage};

use std::marker::PhantomData;

use half::{bf16, f16};

use super::element::{Element, Number, Plain, Sealed};
use crate::ir::Type;
use crate::mma::{self, Fragments, Layout, MmaShape, MmaType, Tiles};
use crate::numerics::Narrow;

/// Element type of A or B: `f16`, `bf16`, `i8`, or a narrow float's name from [`formats`].
#[diagnostic::on_unimplemented(
    message = "no matrix product of `{Self}`",
    note = "factors are f16, bf16, i8 and the narrow floats E4m3, E5m2, E4m3Fnuz, E5m2Fnuz, E2m3, E3m2, E2m1"
)]
pub trait Factor: Sealed + 'static {
    /// What it is.
    const TYPE: MmaType;
    /// What a register holds: an element, or a word of packed codes, first one lowest.
    type Register: Element + Plain + Number;
    /// Type of sums.
    type Sum: Element + Plain + Number;
}

macro_rules! factors {
    ($($t:ty => $ty:expr, $register:ty, $sum:ty;)*) => {$(
        impl Factor for $t {
            const TYPE: MmaType = $ty;
            type Register = $register;
            type Sum = $sum;
        }
    )*};
}

factors! {
    f16 => MmaType::F16, f16, f32;
    bf16 => MmaType::Bf16, bf16, f32;
    i8 => MmaType::I8, i8, i32;
}

/// Names of narrow floats, as types.
pub mod formats {
    use super::{Factor, MmaType, Narrow, NarrowFactor, Sealed};

    macro_rules! formats {
        ($($(#[doc = $doc:literal])+ $name:ident;)*) => {$(
            $(#[doc = $doc])+
            #[derive(Clone, Copy, Debug)]
            pub enum $name {}
            impl Sealed for $name {}
            impl Factor for $name {
                const TYPE: MmaType = MmaType::Narrow(Narrow::$name);
                type Register = u32;
                type Sum = f32;
            }
            impl NarrowFactor for $name {
                const FORMAT: Narrow = Narrow::$name;
            }
        )*};
    }

    formats! {
        /// [`Narrow::E4m3`].
        E4m3;
        /// [`Narrow::E5m2`].
        E5m2;
        /// [`Narrow::E4m3Fnuz`].
        E4m3Fnuz;
        /// [`Narrow::E5m2Fnuz`].
        E5m2Fnuz;
        /// [`Narrow::E2m3`].
        E2m3;
        /// [`Narrow::E3m2`].
        E3m2;
        /// [`Narrow::E2m1`].
        E2m1;
    }
}

/// A narrow float as a factor.
#[diagnostic::on_unimplemented(message = "`{Self}` is no narrow float")]
pub trait NarrowFactor: Factor<Register = u32, Sum = f32> {
    /// Which.
    const FORMAT: Narrow;
}

/// A matrix product: D = A·B + C.
pub trait Product: Sealed + 'static {
    /// Elements of A.
    type A: Factor;
    /// Elements of B.
    type B: Factor<Sum = <Self::A as Factor>::Sum>;
    /// Extents.
    const SHAPE: MmaShape;
    /// Where the elements are.
    ///
    /// # Errors
    /// What there is instead, if these fragments have no such product.
    fn tiles(on: Fragments) -> Result<Tiles, String>;
}

/// The product of M×N×K without scales ([`crate::mma::plain`] tells which there are): `Mma<16, 16, 32, f16>`.
pub struct Mma<const M: u32, const N: u32, const K: u32, A, B = A>(PhantomData<fn() -> (A, B)>);

/// The product that every chip has: 16×8×32 of e4m3, a product of its own in every logical group of 32 lanes.
pub type MmaE4m3 = Mma<16, 8, 32, formats::E4m3>;

/// The block-scaled product of 16×16×128: `MfmaScaled<E2m1>`, `MfmaScaled<E4m3, E2m1>`.
pub struct MfmaScaled<A, B = A>(PhantomData<fn() -> (A, B)>);

impl<const M: u32, const N: u32, const K: u32, A, B> Sealed for Mma<M, N, K, A, B> {}

impl<const M: u32, const N: u32, const K: u32, A: Factor, B: Factor<Sum = A::Sum>> Product for Mma<M, N, K, A, B> {
    type A = A;
    type B = B;
    const SHAPE: MmaShape = MmaShape::new(M, N, K);
    fn tiles(on: Fragments) -> Result<Tiles, String> {
        mma::plain(on, Self::SHAPE, A::TYPE, B::TYPE)
    }
}

impl<A, B> Sealed for MfmaScaled<A, B> {}

impl<A: NarrowFactor, B: NarrowFactor> Product for MfmaScaled<A, B> {
    type A = A;
    type B = B;
    const SHAPE: MmaShape = mma::SCALED;
    fn tiles(on: Fragments) -> Result<Tiles, String> {
        mma::scaled(on, A::FORMAT, B::FORMAT).map(|all| all.tiles)
    }
}

/// Which of a product's matrices.
pub trait Role<P: Product>: Sealed + 'static {
    /// What a register holds.
    type Register: Element + Plain + Number;
    /// Bits of an element.
    const BITS: u32;
    /// Its name.
    const NAME: &'static str;
    /// Rows and columns.
    const EXTENT: (u32, u32);
    /// Its layout among the three.
    fn layout(tiles: Tiles) -> Layout;
    /// Type of a lane's registers that hold `n` elements.
    fn registers(n: u32) -> Type;
}

/// The matrices of a product.
pub mod roles {
    /// The left factor, M×K.
    pub enum A {}
    /// The right factor, K×N.
    pub enum B {}
    /// The summand and the result, M×N.
    pub enum C {}
}

impl Sealed for roles::A {}
impl Sealed for roles::B {}
impl Sealed for roles::C {}

impl<P: Product> Role<P> for roles::A {
    type Register = <P::A as Factor>::Register;
    const BITS: u32 = P::A::TYPE.bits();
    const NAME: &'static str = "A";
    const EXTENT: (u32, u32) = (P::SHAPE.m, P::SHAPE.k);
    fn layout(tiles: Tiles) -> Layout {
        tiles.a
    }
    fn registers(n: u32) -> Type {
        P::A::TYPE.registers(n)
    }
}

impl<P: Product> Role<P> for roles::B {
    type Register = <P::B as Factor>::Register;
    const BITS: u32 = P::B::TYPE.bits();
    const NAME: &'static str = "B";
    const EXTENT: (u32, u32) = (P::SHAPE.k, P::SHAPE.n);
    fn layout(tiles: Tiles) -> Layout {
        tiles.b
    }
    fn registers(n: u32) -> Type {
        P::B::TYPE.registers(n)
    }
}

impl<P: Product> Role<P> for roles::C {
    type Register = <P::A as Factor>::Sum;
    const BITS: u32 = 32;
    const NAME: &'static str = "C";
    const EXTENT: (u32, u32) = (P::SHAPE.m, P::SHAPE.n);
    fn layout(tiles: Tiles) -> Layout {
        tiles.c
    }
    fn registers(n: u32) -> Type {
        Type::Vector(P::A::TYPE.sum(), n)
    }
}
