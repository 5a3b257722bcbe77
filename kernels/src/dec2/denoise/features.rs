//! From an image to features: what the levels before this one would bring.

use half::f16;
use lathe_dsl::numerics::Float;

use super::{NEIGHBOURS, PLANES, SCALE, channel};
use crate::dec2::geometry::{Extents, GeometryError};
use crate::dec2::options::{CoarseExtent, NanSign};
use crate::dec2::plane::PlaneLayout;
use crate::dec2::reference::Image;
use crate::dec2::reference::number::quantise;
use crate::dec2::{CHANNELS, COARSE_CHANNELS};

/// Feature planes of an image.
#[derive(Clone, PartialEq, Debug)]
pub struct Features {
    /// 128 channels at half the extents.
    pub coarse: Vec<u8>,
    /// 96 channels.
    pub skip: Vec<u8>,
}

/// Features of an image.
///
/// # Errors
/// The image is too small to have coarse features.
pub fn features(image: &Image, rule: CoarseExtent) -> Result<Features, GeometryError> {
    let extents = Extents::new(image.width(), image.height());
    let coarse_extents = extents.coarse(rule);
    if coarse_extents.pixels() == 0 {
        return Err(GeometryError::NoCoarse { extents, coarse: coarse_extents, rule });
    }
    let own =
        |plane: [f64; 3]| move |x: i64, y: i64| (0..3).map(|c| plane[c] * image.texel(x, y)[c].to_f64()).sum::<f64>();
    let mut skip = vec![0; PlaneLayout::new(extents, CHANNELS).bytes() as usize];
    let mut coarse = vec![0; PlaneLayout::new(coarse_extents, COARSE_CHANNELS).bytes() as usize];
    for (i, plane) in PLANES.into_iter().enumerate() {
        let first = (i * NEIGHBOURS.len()) as u32;
        differences(&mut skip, PlaneLayout::new(extents, CHANNELS), channel::OWN as u32 + first, &own(plane));
        // A coarse pixel is the mean of 4×4 pixels around its 2×2, weighted 1 3 3 1.
        let guide = |x: i64, y: i64| {
            let clamp = |v: i64, e: u32| v.clamp(0, i64::from(e) - 1);
            let (x, y) = (2 * clamp(x, coarse_extents.x) - 1, 2 * clamp(y, coarse_extents.y) - 1);
            let row = |dy: i64| (0..4).zip(TENT).map(|(dx, w)| w * own(plane)(x + dx, y + dy)).sum::<f64>();
            (0..4).zip(TENT).map(|(dy, w)| w * row(dy)).sum::<f64>()
        };
        differences(&mut coarse, PlaneLayout::new(coarse_extents, COARSE_CHANNELS), first, &guide);
    }
    let layout = PlaneLayout::new(extents, CHANNELS);
    for (x, y) in pixels(extents) {
        // Along an edge there is only noise: the least of four directions.
        let at = |dx: i32, dy: i32| own(PLANES[0])(i64::from(x) + i64::from(dx), i64::from(y) + i64::from(dy));
        let bent = NEIGHBOURS[..4].iter().map(|(dy, dx)| (at(*dx, *dy) + at(-dx, -dy) - 2.0 * at(0, 0)).abs());
        skip[layout.byte(channel::ROUGHNESS as u32, x, y) as usize] = code(bent.fold(f64::INFINITY, f64::min));
    }
    Ok(Features { coarse, skip })
}

/// Weights of a coarse pixel along x and along y.
const TENT: [f64; 4] = [0.125, 0.375, 0.375, 0.125];

/// Each pixel's differences to its neighbours, in the channels from `first` on.
fn differences(codes: &mut [u8], layout: PlaneLayout, first: u32, value: &dyn Fn(i64, i64) -> f64) {
    for (x, y) in pixels(layout.extents) {
        let at = |dx: i32, dy: i32| value(i64::from(x) + i64::from(dx), i64::from(y) + i64::from(dy));
        for (channel, (dy, dx)) in (first..).zip(NEIGHBOURS) {
            codes[layout.byte(channel, x, y) as usize] = code(at(dx, dy) - at(0, 0));
        }
    }
}

fn pixels(extents: Extents) -> impl Iterator<Item = (u32, u32)> {
    (0..extents.y).flat_map(move |y| (0..extents.x).map(move |x| (x, y)))
}

fn code(x: f64) -> u8 {
    quantise(<f16 as Float>::from_f64(SCALE * x), NanSign::Positive)
}
