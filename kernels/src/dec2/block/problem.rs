//! Random input of the block.

use fastrand::Rng;
use half::f16;

use super::Dec2;
use crate::dec2::geometry::Geometry;
use crate::dec2::plane::PlaneLayout;
use crate::dec2::reference::filter::Pictures;
use crate::dec2::reference::{Image, Inputs};
use crate::dec2::weights::{DenseWeights, WeightShape};
use crate::dec2::{CHANNELS, COARSE_CHANNELS};
use lathe_dsl::numerics::{Narrow, Overflow, Rounding};

/// Everything that a launch reads.
pub struct Problem {
    /// Weights.
    pub weights: DenseWeights,
    /// Planes of coarse features.
    pub coarse: Vec<u8>,
    /// Planes of skip features.
    pub skip: Vec<u8>,
    /// The image that is filtered.
    pub colour: Image,
    /// What a shut gate shows.
    pub blend: Image,
    /// What is added; a NaN now and then.
    pub offset: Image,
}

/// Something like a bell, ±2·`scale` wide.
fn number(rng: &mut Rng, scale: f64) -> f64 {
    ((0..4).map(|_| rng.f64()).sum::<f64>() - 2.0) * scale
}

fn code(rng: &mut Rng, scale: f64) -> u8 {
    Narrow::E4m3.encode(number(rng, scale) as f32, Rounding::NearestEven, Overflow::Saturate)
}

/// Weights that keep numbers about as large as they were, so that every part of the block matters to the result.
fn weights(rng: &mut Rng) -> DenseWeights {
    let mut w = DenseWeights::zeros(&WeightShape::DEC2);
    let mut codes = |all: &mut Vec<u8>, scale: f64| all.iter_mut().for_each(|c| *c = code(rng, scale));
    codes(&mut w.patch, 0.25);
    codes(&mut w.fc1, 0.4);
    codes(&mut w.fc2, 0.15);
    codes(&mut w.head, 0.3);
    for head in &mut w.heads {
        codes(&mut head.query_key, 0.7);
        codes(&mut head.value, 0.4);
        codes(&mut head.out_proj, 0.4);
    }
    let mut table = |all: &mut Vec<f16>, centre: f64, scale: f64| {
        all.iter_mut().for_each(|x| *x = f16::from_f64(centre + number(rng, scale)));
    };
    table(&mut w.patch_bias, 0.0, 0.5);
    // Norms do not divide by the root of the number of channels.
    table(&mut w.gain1, 8.0, 4.0);
    table(&mut w.gain2, 8.0, 4.0);
    table(&mut w.out_bias, 0.0, 0.5);
    table(&mut w.fc1_bias, 0.0, 0.5);
    table(&mut w.fc2_bias, 0.0, 0.5);
    table(&mut w.head_bias, 0.0, 1.0);
    w.heads.iter_mut().for_each(|head| table(&mut head.score_bias, 0.0, 8.0));
    w
}

impl Problem {
    /// That of a key.
    pub fn new(key: &Dec2, geometry: &Geometry, seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let extents = geometry.extents();
        let mut plane = |layout: PlaneLayout| (0..layout.bytes()).map(|_| code(&mut rng, 1.5)).collect();
        let coarse: Vec<u8> = plane(key.coarse_plane());
        debug_assert_eq!(coarse.len() as u64 % u64::from(COARSE_CHANNELS), 0);
        let skip = plane(PlaneLayout::new(extents, CHANNELS));
        let mut image = |width, height, nan: bool| {
            let channel = |rng: &mut Rng| match rng.usize(0..16) {
                0 if nan => f16::NAN,
                _ => f16::from_f64(number(rng, 1.0)),
            };
            Image::from_fn(width, height, |_, _| std::array::from_fn(|_| channel(&mut rng)))
                .unwrap_or_else(|e| unreachable!("the key has a pixel: {e}"))
        };
        let colour = image(key.colour_width, key.colour_height, false);
        let blend = image(extents.x, extents.y, false);
        let offset = image(extents.x, extents.y, true);
        Self { weights: weights(&mut rng), coarse, skip, colour, blend, offset }
    }

    /// For plain Rust.
    pub fn inputs<'a>(&'a self, geometry: &'a Geometry) -> Inputs<'a> {
        let pictures =
            Pictures { colour: &self.colour, blend: &self.blend, offset: &self.offset, step: self.colour.step() };
        Inputs { geometry, coarse: &self.coarse, skip: &self.skip, weights: &self.weights, pictures }
    }
}
