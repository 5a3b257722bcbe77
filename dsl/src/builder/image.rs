//! 2D images: textures that a kernel reads, surfaces that it stores texels to.

use std::marker::PhantomData;

use half::f16;

use super::Builder;
use super::element::{Data, Element, Plain, Vector};
use super::value::{Operand, V};
use crate::image::{self, Emit, Image2d, Sampling};
use crate::ir::{Bits, Location, Op, Type, Value};

/// Elements of texels: `f16` and `f32`.
#[diagnostic::on_unimplemented(message = "no image has texels of `{Self}`: they are of f16 or f32")]
pub trait Texel: Element + Plain {
    /// Four of them.
    type Four: Data + Plain;
}

impl Texel for f16 {
    type Four = Vector<Self, 4>;
}

impl Texel for f32 {
    type Four = Vector<Self, 4>;
}

/// Elements that texels of `T` are read as: their own, or `f32`.
#[diagnostic::on_unimplemented(message = "texels of `{T}` are read as they are or as f32, not as `{Self}`")]
pub trait ReadFrom<T>: Texel {}
impl ReadFrom<f16> for f16 {}
impl ReadFrom<Self> for f32 {}
impl ReadFrom<f16> for f32 {}

macro_rules! handle {
    ($(#[doc = $doc:literal])+ $name:ident) => {
        $(#[doc = $doc])+
        pub struct $name<'k, T> {
            id: Value,
            image: Image2d,
            ty: PhantomData<fn(&'k ()) -> (&'k (), T)>,
        }

        impl<T> Clone for $name<'_, T> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<T> Copy for $name<'_, T> {}

        impl<T> $name<'_, T> {
            /// What is declared of it.
            pub const fn image(self) -> Image2d {
                self.image
            }
        }
    };
}

handle! {
    /// An image with texels of four `T` that a kernel reads.
    Texture
}

handle! {
    /// An image with texels of four `T` that a kernel stores to.
    Surface
}

impl<'k> Builder<'k> {
    /// The handle of image parameter `index`, which is read.
    pub fn texture<T: Texel>(&'k self, index: u32, image: Image2d) -> Texture<'k, T> {
        Texture { id: Value(index), image, ty: PhantomData }
    }

    /// The handle of image parameter `index`, which is stored to.
    pub fn surface<T: Texel>(&'k self, index: u32, image: Image2d) -> Surface<'k, T> {
        Surface { id: Value(index), image, ty: PhantomData }
    }

    /// The texel in column `x` and row `y`, or the nearest one where there is none; its elements as they are, or as f32.
    ///
    /// ```
    /// # use lathe_dsl::prelude::*;
    /// # let image = Image2d::new(8, 8).linear();
    /// # let params = vec![lathe_dsl::ir::Param { name: "t", kind: image.texture(lathe_dsl::ir::Scalar::F16, Target::SM_90) }];
    /// # lathe_dsl::builder::build("k", Target::SM_90, Launch::linear(1, 64), params, |k| {
    /// # let t = k.texture::<f16>(0, image);
    /// let texel: V<Vector<f16, 4>> = k.texture_fetch::<f16, _>(t, 3, -1);
    /// let colour: V<Vector<f32, 4>> = k.texture_sample::<f32, _>(t, 3.25, 1.0);
    /// # let _ = (texel, colour);
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn texture_fetch<U: ReadFrom<T>, T: Texel>(
        &'k self,
        texture: Texture<'k, T>,
        x: impl Operand<'k, i32>,
        y: impl Operand<'k, i32>,
    ) -> V<'k, U::Four> {
        let (x, y) = (x.value(self).id, y.value(self).id);
        if texture.image.is_emulated(self.target()) {
            let image = texture.image.image(T::SCALAR);
            return V::new(self, image::fetch(&mut Spelt::here(self), texture.id, image, [x, y], U::SCALAR));
        }
        self.emit(Op::TextureFetch { texture: texture.id, x, y })
    }

    /// The colour at (`u`, `v`), by the filter and the coordinates that the image is declared with; its elements as the image's,
    /// or as f32.
    #[track_caller]
    pub fn texture_sample<U: ReadFrom<T>, T: Texel>(
        &'k self,
        texture: Texture<'k, T>,
        u: impl Operand<'k, f32>,
        v: impl Operand<'k, f32>,
    ) -> V<'k, U::Four> {
        let (u, v) = (u.value(self).id, v.value(self).id);
        let Image2d { filter, coordinates, .. } = texture.image;
        if texture.image.is_emulated(self.target()) {
            let how = Sampling { image: texture.image.image(T::SCALAR), filter, coordinates };
            return V::new(self, image::sample(&mut Spelt::here(self), texture.id, how, [u, v], U::SCALAR));
        }
        self.emit(Op::TextureSample { texture: texture.id, u, v })
    }

    /// Stores a texel in column `x` and row `y`; nothing where there is none.
    ///
    /// ```
    /// # use lathe_dsl::prelude::*;
    /// # let image = Image2d::new(8, 8);
    /// # let params = vec![lathe_dsl::ir::Param { name: "s", kind: image.surface(lathe_dsl::ir::Scalar::F32, Target::SM_90) }];
    /// # lathe_dsl::builder::build("k", Target::SM_90, Launch::linear(1, 64), params, |k| {
    /// # let s = k.surface::<f32>(0, image);
    /// # let x = k.lane_id().bitcast::<i32>();
    /// k.surface_store(k.vector([k.constant(1.0f32); 4]), s, x, 0);
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn surface_store<T: Texel>(
        &'k self,
        value: V<'k, T::Four>,
        surface: Surface<'k, T>,
        x: impl Operand<'k, i32>,
        y: impl Operand<'k, i32>,
    ) {
        let (x, y) = (x.value(self).id, y.value(self).id);
        if surface.image.is_emulated(self.target()) {
            let image = surface.image.image(T::SCALAR);
            image::store(&mut Spelt::here(self), value.id, surface.id, image, [x, y]);
            return;
        }
        self.emit_void(Op::SurfaceStore { value: value.id, surface: surface.id, x, y });
    }
}

/// Operations of an access that is spelt out, all at the author's place.
struct Spelt<'k> {
    k: &'k Builder<'k>,
    location: Location,
}

impl<'k> Spelt<'k> {
    #[track_caller]
    fn here(k: &'k Builder<'k>) -> Self {
        Self { k, location: Location::caller() }
    }
}

impl Emit for Spelt<'_> {
    fn constant(&mut self, ty: Type, bits: Bits) -> Value {
        self.k.const_value_at(ty, bits, self.location)
    }

    fn op(&mut self, op: Op, ty: Type) -> Value {
        self.k.emit_op_at(op, &[ty], self.location)[0]
    }

    fn effect(&mut self, op: Op) {
        self.k.emit_op_at(op, &[], self.location);
    }
}
