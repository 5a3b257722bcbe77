//! 2D images with texels of four elements: what a kernel declares of one, and how accesses are spelt out where a target has no
//! texture units.

mod spelt;

pub use spelt::{Emit, Sampling, fetch, sample, spelt_out, store};

use crate::ir::{Access, Coordinates, Filter, ImageType, ParamKind, Scalar};
use crate::target::{Arch, Target};

/// What reads and writes an image.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Units {
    /// The target's texture units where Lathe uses them, on NVIDIA's chips; elsewhere as [`Units::Emulated`].
    #[default]
    WhereThereAre,
    /// Texture units; kernels for targets without them are refused.
    Hardware,
    /// Loads and stores of a buffer, with the filter spelt out: the same bits on every target.
    Emulated,
}

/// Alignment in bytes of an image that is a buffer.
const ALIGN: u32 = 16;

/// Whether Lathe uses texture units of a target's.
pub fn has_units(target: Target) -> bool {
    target.chip().arch == Arch::Nvptx
}

/// What a kernel declares of an image argument: extents in texels, how samples are taken, and by what.
///
/// ```
/// use lathe_dsl::prelude::*;
/// let image = Image2d::new(320, 184).linear().normalized();
/// assert!(image.is_emulated(Target::GFX950) && !image.is_emulated(Target::SM_90));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Image2d {
    /// Texels of a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// What samples between texel centres are.
    pub filter: Filter,
    /// What sample coordinates count.
    pub coordinates: Coordinates,
    /// What reads and writes it.
    pub units: Units,
}

impl Image2d {
    /// Of these extents: samples are the nearest texel at coordinates that count texels, by texture units where there are some.
    pub const fn new(width: u32, height: u32) -> Self {
        let (filter, coordinates, units) = (Filter::Nearest, Coordinates::Texels, Units::WhereThereAre);
        Self { width, height, filter, coordinates, units }
    }

    /// With samples between the four texels around.
    #[must_use]
    pub const fn linear(self) -> Self {
        Self { filter: Filter::Linear, ..self }
    }

    /// With sample coordinates for which the image is 1 wide and 1 high.
    #[must_use]
    pub const fn normalized(self) -> Self {
        Self { coordinates: Coordinates::Normalized, ..self }
    }

    /// Read and written by these.
    #[must_use]
    pub const fn units(self, units: Units) -> Self {
        Self { units, ..self }
    }

    /// Whether a kernel for `target` takes it as a buffer, row by row.
    pub fn is_emulated(self, target: Target) -> bool {
        match self.units {
            Units::WhereThereAre => !has_units(target),
            Units::Hardware => false,
            Units::Emulated => true,
        }
    }

    /// The type of such an image.
    pub const fn image(self, elem: Scalar) -> ImageType {
        ImageType { elem, width: self.width, height: self.height }
    }

    /// As a parameter of a kernel that reads it.
    pub fn texture(self, elem: Scalar, target: Target) -> ParamKind {
        let image = self.image(elem);
        match self.is_emulated(target) {
            true => ParamKind::Buffer { elem, len: image.elements(), access: Access::Read, align: ALIGN },
            false => ParamKind::Texture { image, filter: self.filter, coordinates: self.coordinates },
        }
    }

    /// As a parameter of a kernel that stores to it.
    pub fn surface(self, elem: Scalar, target: Target) -> ParamKind {
        let image = self.image(elem);
        match self.is_emulated(target) {
            true => ParamKind::Buffer { elem, len: image.elements(), access: Access::Write, align: ALIGN },
            false => ParamKind::Surface(image),
        }
    }
}
