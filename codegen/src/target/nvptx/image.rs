//! Texture and surface instructions in PTX's unified mode: a kernel argument of 64 bits is the object.

use lathe_dsl::ir::Scalar;
use melior::ir::{Value, ValueLike};

use super::Nvptx;
use crate::lower::emit::{Emitter, Result};

impl Nvptx {
    /// `tex.2d.v4.f32` at coordinates of this type, `s32` or `f32`.
    pub(super) fn tex<'c, 'a>(
        e: &Emitter<'c, 'a>,
        coordinates: &str,
        texture: Value<'c, 'a>,
        [x, y]: [Value<'c, 'a>; 2],
    ) -> Result<Vec<Value<'c, 'a>>> {
        let name = format!("llvm.nvvm.tex.unified.2d.v4f32.{coordinates}");
        e.call_many(&name, &[texture, x, y], &[e.scalar(Scalar::F32); 4])
    }

    /// `sust.b.2d.v4.zero` of four integers at a column in bytes and a row; outside the surface it stores nothing.
    pub(super) fn sust<'c, 'a>(
        e: &Emitter<'c, 'a>,
        surface: Value<'c, 'a>,
        [x, y]: [Value<'c, 'a>; 2],
        elements: &[Value<'c, 'a>],
    ) -> Result<()> {
        let ty = elements.first().map(ValueLike::r#type).ok_or("a texel without elements")?;
        let name = format!("llvm.nvvm.sust.b.2d.v4{ty}.zero");
        e.call_void(&name, &[&[surface, x, y], elements].concat())
    }
}
