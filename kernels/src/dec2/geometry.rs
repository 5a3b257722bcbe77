//! Extents, origins and blocks of a launch, and what stands for pixels outside of the image.

use lathe_dsl::ir::MAX_BUFFER_BYTES;

use super::options::{CoarseBorder, CoarseExtent, SkipBorder, TapBorder};
use super::{CHANNELS, WINDOW};

/// Width and height in pixels.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Extents {
    /// Width.
    pub x: u32,
    /// Height.
    pub y: u32,
}

impl Extents {
    /// Width and height.
    pub const fn new(x: u32, y: u32) -> Self {
        Self { x, y }
    }

    /// Width times height.
    pub const fn pixels(self) -> u64 {
        self.x as u64 * self.y as u64
    }

    /// Those of features at half the resolution.
    pub const fn coarse(self, rule: CoarseExtent) -> Self {
        match rule {
            CoarseExtent::Floor => Self { x: self.x / 2, y: self.y / 2 },
            CoarseExtent::Ceil => Self { x: self.x.div_ceil(2), y: self.y.div_ceil(2) },
        }
    }

    /// Whether a pixel is inside.
    pub const fn contains(self, x: i32, y: i32) -> bool {
        x >= 0 && y >= 0 && (x as u32) < self.x && (y as u32) < self.y
    }
}

impl std::fmt::Display for Extents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}×{}", self.x, self.y)
    }
}

/// How far the first block's corner lies before the image's, in pixels: windows of consecutive levels are shifted by it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Origin {
    /// To the left.
    pub x: u16,
    /// Upwards.
    pub y: u16,
}

impl Origin {
    /// To the left and upwards.
    pub const fn new(x: u16, y: u16) -> Self {
        Self { x, y }
    }
}

/// Why no block can be launched on an image.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum GeometryError {
    /// Nothing to border on: the border map would point outside of every buffer.
    #[error("the image is {extents}; width and height must be at least 1")]
    Empty {
        /// Its extents.
        extents: Extents,
    },
    /// As `Empty`, of the coarse features.
    #[error(
        "the image is {extents}, its coarse features {coarse} (coarse_extent={rule}); their width and height must be at least 1"
    )]
    NoCoarse {
        /// The image's extents.
        extents: Extents,
        /// Those of its coarse features.
        coarse: Extents,
        /// How they were halved.
        rule: CoarseExtent,
    },
    /// Pixels and sub-pixels would not come together.
    #[error("the origin ({x}, {y}) is odd; both numbers must be even", x = origin.x, y = origin.y)]
    OddOrigin {
        /// It.
        origin: Origin,
    },
    /// A feature plane would not fit a buffer.
    #[error("features of {extents} have {bytes} bytes; a buffer has at most {MAX_BUFFER_BYTES}")]
    TooLarge {
        /// The image's extents.
        extents: Extents,
        /// Bytes of its features.
        bytes: u64,
    },
    /// A grid has at most 65535 rows of blocks.
    #[error("{blocks} rows of blocks for {extents}; a grid has at most 65535")]
    TooHigh {
        /// The image's extents.
        extents: Extents,
        /// Blocks along y.
        blocks: u32,
    },
    /// Coordinates are 32-bit integers with a sign.
    #[error("the image is {extents}; it may be at most {MAX_SIDE} wide and high")]
    TooWide {
        /// The image's extents.
        extents: Extents,
    },
}

/// Largest width and height: coordinates of pixels around the image, and twice that, stay far from overflow.
pub const MAX_SIDE: u32 = 1 << 24;

/// An image that blocks can be launched on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Geometry {
    extents: Extents,
    origin: Origin,
}

impl Geometry {
    /// For stages that see fine features only.
    ///
    /// # Errors
    /// See [`GeometryError`]; never `NoCoarse`.
    pub fn fine(extents: Extents, origin: Origin) -> Result<Self, GeometryError> {
        if extents.x == 0 || extents.y == 0 {
            return Err(GeometryError::Empty { extents });
        }
        if extents.x > MAX_SIDE || extents.y > MAX_SIDE {
            return Err(GeometryError::TooWide { extents });
        }
        if !(origin.x.is_multiple_of(2) && origin.y.is_multiple_of(2)) {
            return Err(GeometryError::OddOrigin { origin });
        }
        let bytes = extents.pixels() * u64::from(CHANNELS);
        if bytes > MAX_BUFFER_BYTES {
            return Err(GeometryError::TooLarge { extents, bytes });
        }
        let geometry = Self { extents, origin };
        let blocks = geometry.grid()[1];
        if blocks > 0xFFFF {
            return Err(GeometryError::TooHigh { extents, blocks });
        }
        Ok(geometry)
    }

    /// For the whole block, which has coarse features too.
    ///
    /// # Errors
    /// See [`GeometryError`].
    pub fn whole(extents: Extents, origin: Origin, rule: CoarseExtent) -> Result<Self, GeometryError> {
        let geometry = Self::fine(extents, origin)?;
        let coarse = extents.coarse(rule);
        if coarse.x == 0 || coarse.y == 0 {
            return Err(GeometryError::NoCoarse { extents, coarse, rule });
        }
        Ok(geometry)
    }

    /// Width and height of the image.
    pub const fn extents(&self) -> Extents {
        self.extents
    }

    /// How far blocks are shifted.
    pub const fn origin(&self) -> Origin {
        self.origin
    }

    /// Blocks along x and y: the fewest that cover the image.
    pub fn grid(&self) -> [u32; 2] {
        let blocks = |extent: u32, origin: u16| (extent + origin as u32).div_ceil(WINDOW);
        [blocks(self.extents.x, self.origin.x), blocks(self.extents.y, self.origin.y)]
    }

    /// The block's first pixel, which may lie outside of the image.
    pub fn first_pixel(&self, block: [u32; 2]) -> (i32, i32) {
        let first = |block: u32, origin: u16| (WINDOW * block) as i32 - origin as i32;
        (first(block[0], self.origin.x), first(block[1], self.origin.y))
    }

    /// All blocks, by rows.
    pub fn blocks(&self) -> impl Iterator<Item = [u32; 2]> + use<> {
        let [columns, rows] = self.grid();
        (0..rows).flat_map(move |row| (0..columns).map(move |column| [column, row]))
    }
}

/// The coordinate that stands for `v`: reflected at 0 and at `e` − 1 without repeating them, then clamped. In range for every
/// `v` of at most 2^25 if `e` ≥ 1; with `e` = 0 it is 0xFFFF_FFFE for 0, which is why that is refused.
pub const fn reflect101_clamp(v: i32, e: u32) -> u32 {
    let magnitude = v.wrapping_abs();
    let mirrored = (2u32.wrapping_mul(e).wrapping_sub(2) as i32).wrapping_sub(magnitude);
    let reflected = (if magnitude < mirrored { magnitude } else { mirrored }) as u32;
    let last = e.wrapping_sub(1);
    if reflected < last { reflected } else { last }
}

/// The nearest coordinate inside; `e` ≥ 1.
pub const fn clamp(v: i32, e: u32) -> u32 {
    if v < 0 {
        0
    } else if (v as u32) < e {
        v as u32
    } else {
        e - 1
    }
}

impl SkipBorder {
    /// The coordinate that stands for `v` in an image `e` ≥ 1 wide or high.
    pub const fn map(self, v: i32, e: u32) -> u32 {
        match self {
            Self::Reflect101Clamp => reflect101_clamp(v, e),
            Self::Clamp => clamp(v, e),
        }
    }
}

impl CoarseBorder {
    /// The coordinate that stands for `v` in features `e` ≥ 1 wide or high.
    pub const fn map(self, v: i32, e: u32) -> u32 {
        match self {
            Self::Reflect101Clamp => reflect101_clamp(v, e),
            Self::Clamp => clamp(v, e),
        }
    }
}

impl TapBorder {
    /// The coordinate that stands for `v`, from −1 to `e`, in an image `e` ≥ 1 wide or high. Where `e` = 1 a reflected one is −1;
    /// the sampler clamps it.
    pub const fn map(self, v: i32, e: u32) -> i32 {
        match self {
            Self::Reflect101 => {
                let v = if v < 0 { 1 } else { v };
                if e as i32 - 1 < v { e as i32 - 2 } else { v }
            }
            Self::Clamp => clamp(v, e) as i32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_borders_of_every_small_image() {
        for e in 1..40u32 {
            let wide = e as i32;
            for v in -9..wide + 17 {
                assert!(reflect101_clamp(v, e) < e, "{v} of {e}");
                if e >= 2 && -wide < v && v < 2 * wide - 1 {
                    let reflected = if v < 0 {
                        -v
                    } else if v >= wide {
                        2 * wide - 2 - v
                    } else {
                        v
                    };
                    assert_eq!(reflect101_clamp(v, e) as i32, reflected, "{v} of {e}");
                }
                assert_eq!(clamp(v, e) as i32, v.clamp(0, wide - 1));
            }
        }
        for far in [-(1 << 25), 1 << 25] {
            assert!(reflect101_clamp(far, 1) == 0 && reflect101_clamp(far, MAX_SIDE) < MAX_SIDE);
        }
        assert_eq!(reflect101_clamp(0, 0), 0xFFFF_FFFE);
        let taps = |e: u32, vs: &[i32]| vs.iter().map(|v| TapBorder::Reflect101.map(*v, e)).collect::<Vec<_>>();
        assert_eq!(taps(1, &[-1, 0, 1]), [-1, 0, -1]);
        assert_eq!(taps(2, &[-1, 0, 1, 2]), [1, 0, 1, 0]);
        assert_eq!(taps(8, &[-1, 7, 8]), [1, 7, 6]);
        assert_eq!(TapBorder::Clamp.map(-1, 8), 0);
    }

    #[test]
    fn blocks_cover_an_image_and_no_fewer_do() {
        for x in [1, 2, 3, 7, 8, 9, 12, 15, 16, 17] {
            for y in [1, 2, 3, 7, 8, 9, 12, 15, 16, 17] {
                for origin in
                    [Origin::default(), Origin::new(4, 4), Origin::new(8, 8), Origin::new(2, 6), Origin::new(14, 0)]
                {
                    let geometry = Geometry::fine(Extents::new(x, y), origin).unwrap();
                    let mut seen = vec![0; (x * y) as usize];
                    for block in geometry.blocks() {
                        let (first_x, first_y) = geometry.first_pixel(block);
                        for (dx, dy) in (0..8).flat_map(|dy| (0..8).map(move |dx| (dx, dy))) {
                            if geometry.extents().contains(first_x + dx, first_y + dy) {
                                seen[((first_y + dy) * x as i32 + first_x + dx) as usize] += 1;
                            }
                        }
                    }
                    assert!(seen.iter().all(|n| *n == 1), "{x}×{y} {origin:?}");
                    let [columns, rows] = geometry.grid();
                    assert!(8 * (columns - 1) < x + u32::from(origin.x) && 8 * (rows - 1) < y + u32::from(origin.y));
                }
            }
        }
        let large = Geometry::fine(Extents::new(320, 184), Origin::new(4, 4)).unwrap();
        let mut seen = vec![0; 320 * 184];
        for block in large.blocks() {
            crate::dec2::reference::block::block_pixels(&large, block)
                .for_each(|(_, x, y)| seen[(320 * y + x) as usize] += 1);
        }
        assert!(seen.iter().all(|n| *n == 1));
        assert_eq!(Geometry::fine(Extents::new(320, 184), Origin::new(4, 4)).unwrap().grid(), [41, 24]);
    }

    #[test]
    fn impossible_images_are_refused() {
        let zero = Origin::default();
        let whole = |x, y, rule| Geometry::whole(Extents::new(x, y), zero, rule);
        let told = |e: GeometryError| e.to_string();
        for (x, y) in [(0, 8), (8, 0), (0, 0)] {
            assert_eq!(
                Geometry::fine(Extents::new(x, y), zero),
                Err(GeometryError::Empty { extents: Extents::new(x, y) })
            );
        }
        assert_eq!(
            told(whole(0, 8, CoarseExtent::Ceil).unwrap_err()),
            "the image is 0×8; width and height must be at least 1"
        );
        for (x, y) in [(1, 8), (8, 1), (1, 1)] {
            assert!(Geometry::fine(Extents::new(x, y), zero).is_ok() && whole(x, y, CoarseExtent::Ceil).is_ok());
            assert!(matches!(whole(x, y, CoarseExtent::Floor), Err(GeometryError::NoCoarse { .. })));
        }
        assert_eq!(
            told(whole(1, 8, CoarseExtent::Floor).unwrap_err()),
            "the image is 1×8, its coarse features 0×4 (coarse_extent=floor); their width and height must be at least 1"
        );
        assert!(whole(2, 2, CoarseExtent::Floor).is_ok());
        for origin in [Origin::new(1, 0), Origin::new(0, 3)] {
            assert_eq!(Geometry::fine(Extents::new(8, 8), origin), Err(GeometryError::OddOrigin { origin }));
        }
        assert_eq!(
            told(Geometry::fine(Extents::new(8, 8), Origin::new(3, 2)).unwrap_err()),
            "the origin (3, 2) is odd; both numbers must be even"
        );
        let wide = Geometry::fine(Extents::new(MAX_SIDE + 1, 1), zero);
        assert!(matches!(wide, Err(GeometryError::TooWide { .. })));
        assert!(matches!(Geometry::fine(Extents::new(8192, 8192), zero), Err(GeometryError::TooLarge { .. })));
        assert!(matches!(
            Geometry::fine(Extents::new(1, 8 * 65535 + 1), zero),
            Err(GeometryError::TooHigh { blocks: 65536, .. })
        ));
        assert_eq!(Extents::new(7, 8).coarse(CoarseExtent::Floor), Extents::new(3, 4));
        assert_eq!(Extents::new(7, 8).coarse(CoarseExtent::Ceil), Extents::new(4, 4));
    }
}
