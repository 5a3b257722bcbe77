//! How kernels declare the block's images.

use lathe_dsl::prelude::*;

use super::geometry::Extents;
use super::options::ColourFilter;

/// Largest code of [`units`].
pub(super) const MOST_UNITS: u32 = 2;

/// What reads and stores texels, by a key's code: 0 texture units where the target has them, 1 texture units, 2 loads and stores of
/// buffers with the filter spelt out.
pub(super) const fn units(code: u32) -> Units {
    match code {
        0 => Units::WhereThereAre,
        1 => Units::Hardware,
        _ => Units::Emulated,
    }
}

/// The colour image, which is read where it is 1×1 large.
pub(super) fn colour(width: u32, height: u32, filter: u32, textures: u32) -> Image2d {
    let image = Image2d::new(width, height).normalized().units(units(textures));
    match ColourFilter::from_code(filter) {
        Ok(ColourFilter::Bilinear) => image.linear(),
        // A code that there is not is refused with the key.
        Ok(ColourFilter::Nearest) | Err(_) => image,
    }
}

/// An image as large as the block's.
pub(super) fn pixels(extents: Extents, textures: u32) -> Image2d {
    Image2d::new(extents.x, extents.y).units(units(textures))
}
