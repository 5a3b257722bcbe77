//! 2D images of four elements a texel, as kernels declare them.

use serde::{Deserialize, Serialize};

use super::def::attribute;
use super::types::{Class, Scalar};
use super::{Access, MAX_BUFFER_BYTES, ParamKind};

/// Elements of a texel.
pub const TEXEL: u32 = 4;

/// Largest width and height of an image, in texels: what NVIDIA's chips take of both textures and surfaces.
pub const MAX_IMAGE: [u32; 2] = [131_072, 65_536];

/// Most images that one kernel takes, so that a launch can tell them apart without allocating.
pub const MAX_IMAGES: usize = 32;

attribute! {
    /// What a sample between texel centres is.
    pub enum Filter {
        /// The texel that the coordinate lies in.
        Nearest = "nearest",
        /// Between the four texels around it, by weights in steps of 1/256.
        Linear = "linear",
    }
}

attribute! {
    /// What sample coordinates count.
    pub enum Coordinates {
        /// Texels: the image is `width` wide and `height` high.
        Texels = "texels",
        /// Images: it is 1 wide and 1 high.
        Normalized = "normalized",
    }
}

/// An image that a kernel takes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct ImageType {
    /// Elements of its texels: `f16` or `f32`.
    pub elem: Scalar,
    /// Texels of a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
}

impl ImageType {
    /// What texels are made of.
    pub const ELEMENTS: Class = Class::TEXEL;

    /// Elements of all texels.
    pub fn elements(self) -> u64 {
        u64::from(self.width) * u64::from(self.height) * u64::from(TEXEL)
    }

    /// Bytes of all texels, row by row.
    pub fn bytes(self) -> u64 {
        self.elements() * u64::from(self.elem.bytes())
    }

    /// What is wrong with it.
    ///
    /// # Errors
    /// Elements, extents or a size that no image has.
    pub fn check(self) -> Result<(), String> {
        let Self { elem, width, height } = self;
        let [w, h] = MAX_IMAGE;
        if !Self::ELEMENTS.contains(elem) {
            return Err(format!("has texels of {elem}; allowed are {}", Self::ELEMENTS));
        }
        if !(1..=w).contains(&width) || !(1..=h).contains(&height) {
            return Err(format!("is {width}x{height} texels; allowed are 1x1 to {w}x{h}"));
        }
        if self.bytes() > MAX_BUFFER_BYTES {
            return Err(format!(
                "is {width}x{height} texels of {elem}, past the {MAX_BUFFER_BYTES} bytes of one image"
            ));
        }
        Ok(())
    }
}

impl ParamKind {
    /// The image, if it is one.
    pub const fn image(self) -> Option<ImageType> {
        match self {
            Self::Texture { image, .. } | Self::Surface(image) => Some(image),
            Self::Buffer { .. } | Self::Scalar(_) => None,
        }
    }

    /// Element type, number of elements and use of what lies in memory: of a buffer, or of an image row by row.
    pub fn elements(self) -> Option<(Scalar, u64, Access)> {
        match self {
            Self::Buffer { elem, len, access, .. } => Some((elem, len, access)),
            Self::Texture { image, .. } => Some((image.elem, image.elements(), Access::Read)),
            Self::Surface(image) => Some((image.elem, image.elements(), Access::Write)),
            Self::Scalar(_) => None,
        }
    }
}
