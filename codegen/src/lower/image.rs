//! Textures and surfaces: coordinates as texture units take them, and what they give as the language wants it.

use lathe_dsl::ir::{self, Coordinates, ImageType, ParamKind, Scalar, TEXEL};
use melior::ir::Value;

use super::Lowering;
use super::emit::Result;

const F32: ir::Type = ir::Type::Scalar(Scalar::F32);

impl<'c, 'a> Lowering<'c, 'a, '_> {
    /// The texel in a column and a row.
    pub(super) fn texture_fetch(
        &self,
        texture: ir::Value,
        [x, y]: [ir::Value; 2],
        result: ir::Type,
    ) -> Result<Value<'c, 'a>> {
        let image = self.image(texture)?;
        let inside = |at, extent: u32| self.clamped(at, 0, i64::from(extent) - 1);
        let at = [inside(x, image.width)?, inside(y, image.height)?];
        let elements = self.backend.texture_fetch(&self.emit, self.get(texture)?, at)?;
        self.texel(&elements, result)
    }

    /// The colour at a place.
    pub(super) fn texture_sample(
        &self,
        texture: ir::Value,
        [u, v]: [ir::Value; 2],
        result: ir::Type,
    ) -> Result<Value<'c, 'a>> {
        let image = self.image(texture)?;
        let normalized =
            matches!(self.param(texture), Some(ParamKind::Texture { coordinates: Coordinates::Normalized, .. }));
        let edge = |extent: u32| if normalized { 1.0 } else { extent as f32 };
        let at = [self.place(u, edge(image.width))?, self.place(v, edge(image.height))?];
        let elements = self.backend.texture_sample(&self.emit, self.get(texture)?, at)?;
        self.texel(&elements, result)
    }

    /// Stores a texel.
    pub(super) fn surface_store(&self, value: ir::Value, surface: ir::Value, [x, y]: [ir::Value; 2]) -> Result<()> {
        let e = &self.emit;
        let image = self.image(surface)?;
        // In bytes, which a column far outside would wrap.
        let column = self.clamped(x, -1, i64::from(image.width))?;
        let shift = e.word((image.elem.bytes() * TEXEL).trailing_zeros())?;
        let at = [e.same("arith.shli", &[column, shift])?, self.get(y)?];
        let ty = self.kernel.ty(value);
        let bits = e.int(image.elem.bits());
        let elements = e.elements(ty, self.get(value)?)?;
        let elements = elements.into_iter().map(|x| e.bitcast(x, bits)).collect::<Result<Vec<_>>>()?;
        self.backend.surface_store(e, self.get(surface)?, at, &elements)
    }

    fn param(&self, v: ir::Value) -> Option<ParamKind> {
        self.kernel.params.get(v.index()).map(|p| p.kind)
    }

    fn image(&self, v: ir::Value) -> Result<ImageType> {
        self.param(v).and_then(ParamKind::image).ok_or_else(|| format!("{v:?} is no image"))
    }

    /// An `i32` in a range, by as few operations as what is known of it allows.
    fn clamped(&self, v: ir::Value, lo: i64, hi: i64) -> Result<Value<'c, 'a>> {
        let e = &self.emit;
        let (min, max) = self.range(v);
        let mut value = self.get(v)?;
        if min < i128::from(lo) {
            value = e.same("arith.maxsi", &[value, e.int_const(32, lo)?])?;
        }
        if max > i128::from(hi) {
            value = e.same("arith.minsi", &[value, e.int_const(32, hi)?])?;
        }
        Ok(value)
    }

    /// A coordinate from 0 to the image's edge, 0 for a NaN: what units make of one outside is written down nowhere.
    fn place(&self, v: ir::Value, edge: f32) -> Result<Value<'c, 'a>> {
        let e = &self.emit;
        let bound = |name, value, to| e.float_intrinsic(name, F32, &[value, e.float_constant(F32, to)?], &[]);
        bound("llvm.minimumnum", bound("llvm.maximumnum", self.get(v)?, 0.0)?, edge)
    }

    /// A texel of four f32 as a vector of what is wanted.
    fn texel(&self, elements: &[Value<'c, 'a>], result: ir::Type) -> Result<Value<'c, 'a>> {
        let e = &self.emit;
        let elements = match result.scalar() {
            Scalar::F32 => elements.to_vec(),
            to => {
                let rounded = |x: &Value<'c, 'a>| e.value("arith.truncf", &[*x], e.scalar(to), &[]);
                elements.iter().map(rounded).collect::<Result<Vec<_>>>()?
            }
        };
        e.gather(result, &elements)
    }
}
