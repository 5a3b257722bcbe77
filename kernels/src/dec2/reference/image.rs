//! Images, and a texture unit's two ways to read one.

use half::f16;

use super::number::rounded;
use crate::dec2::options::ColourFilter;

/// Texels of four channels, by rows.
#[derive(Clone, PartialEq, Debug)]
pub struct Image {
    width: u32,
    height: u32,
    texels: Vec<[f16; 4]>,
}

/// An image without texels, or with others than its size asks for.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("an image of {width}×{height} has {found} texels")]
pub struct ImageError {
    width: u32,
    height: u32,
    found: usize,
}

impl Image {
    /// From texels by rows.
    ///
    /// # Errors
    /// There are none, or not `width · height`.
    pub fn new(width: u32, height: u32, texels: Vec<[f16; 4]>) -> Result<Self, ImageError> {
        if texels.is_empty() || texels.len() as u64 != u64::from(width) * u64::from(height) {
            return Err(ImageError { width, height, found: texels.len() });
        }
        Ok(Self { width, height, texels })
    }

    /// From each texel's coordinates.
    ///
    /// # Errors
    /// It has no texels.
    pub fn from_fn(width: u32, height: u32, mut f: impl FnMut(u32, u32) -> [f16; 4]) -> Result<Self, ImageError> {
        let mut texels = vec![];
        for y in 0..height {
            texels.extend((0..width).map(|x| f(x, y)));
        }
        Self::new(width, height, texels)
    }

    /// Texels of a row.
    pub const fn width(&self) -> u32 {
        self.width
    }

    /// Rows.
    pub const fn height(&self) -> u32 {
        self.height
    }

    /// A texel's width and height in normalised coordinates.
    pub fn step(&self) -> [f32; 2] {
        [self.width, self.height].map(|size| 1.0 / size as f32)
    }

    /// All texels, by rows.
    pub fn texels(&self) -> &[[f16; 4]] {
        &self.texels
    }

    /// The texel at integer coordinates, or the nearest one.
    pub fn texel(&self, x: i64, y: i64) -> [f16; 4] {
        let clamp = |v: i64, size: u32| v.clamp(0, i64::from(size) - 1) as usize;
        self.texels[clamp(y, self.height) * self.width as usize + clamp(x, self.width)]
    }

    /// The colour at normalised coordinates, rounded to f16 once.
    ///
    /// Bilinear: the place between texel centres in steps of 1/256, `fma(u, width, −0.5) · 256 + 0.5` rounded down; weights along x,
    /// then along y, each `fma(a, q, fma(−a, p, p))` in f32.
    pub fn sample(&self, u: f32, v: f32, filter: ColourFilter) -> [f16; 4] {
        match filter {
            ColourFilter::Nearest => {
                let place = |u: f32, size: u32| (u * size as f32).floor() as i64;
                self.texel(place(u, self.width), place(v, self.height))
            }
            ColourFilter::Bilinear => {
                let place = |u: f32, size: u32| {
                    let fixed = (u.mul_add(size as f32, -0.5) * 256.0 + 0.5).floor() as i64;
                    (fixed >> 8, (fixed & 255) as f32 / 256.0)
                };
                let ((x, a), (y, b)) = (place(u, self.width), place(v, self.height));
                let lerp = |p: f32, q: f32, a: f32| a.mul_add(q, (-a).mul_add(p, p));
                let texel = |dx: i64, dy: i64| self.texel(x + dx, y + dy).map(f16::to_f32);
                let [[p, q], [r, s]] = [0, 1].map(|dy| [0, 1].map(|dx| texel(dx, dy)));
                std::array::from_fn(|c| rounded(lerp(lerp(p[c], q[c], a), lerp(r[c], s[c], a), b)))
            }
        }
    }
}
