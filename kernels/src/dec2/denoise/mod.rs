//! Weights that make the block a denoiser: smoothing that stops at edges.
//!
//! They are constructed, not trained, and use every part of the block. The filter of a pixel gives a neighbour little weight where
//! a smoothed copy of the image, the guide, differs between the two:
//!
//! * [`features`](features()): coarse features are the guide at half the resolution, as differences of a coarse pixel to its eight
//!   neighbours in luma and two colour differences. Skip features are the pixel's own differences to its eight neighbours, and how
//!   rough the image is there.
//! * The patch expand interpolates: for each sub-pixel, the guide's differences to the eight neighbours of that pixel.
//! * The norm is of rows that one constant channel dominates, so that differences keep their size.
//! * Attention weighs all pixels of the window and its halo the same: what it adds is the mean roughness, an estimate of the noise.
//! * The MLP makes `act(s·d − t) + act(−s·d − t)` of a difference d: nothing of a small one, its magnitude beyond a threshold t that
//!   grows with the noise. Two hidden units for a neighbour and a plane of colour, 48 of 384.
//! * The head takes these from the neighbours' logits. The gate is open.

mod features;
pub mod file;
pub mod picture;
mod run;
mod weights;

pub use features::{Features, features};
pub(crate) use run::run;
pub use run::{DenoiseError, Filtered};
pub use weights::weights;

/// Directions of a pixel's neighbours: the taps of the filter but the centre's, (row, column).
const NEIGHBOURS: [(i32, i32); 8] = [(-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1)];

/// Planes of colour: luma, orange against blue, green against purple, of red, green and blue.
const PLANES: [[f64; 3]; 3] = [[0.25, 0.5, 0.25], [0.5, 0.0, -0.5], [-0.25, 0.5, -0.25]];

/// Differences of a pixel: to each neighbour in each plane.
const DIFFERENCES: usize = PLANES.len() * NEIGHBOURS.len();

/// What a difference of 1 is in features.
const SCALE: f64 = 16.0;

/// Channels of the block.
mod channel {
    use super::DIFFERENCES;

    /// Differences of the guide: by plane, then by neighbour.
    pub const GUIDE: usize = 0;
    /// Differences of the pixel itself.
    pub const OWN: usize = DIFFERENCES;
    /// The constant that dominates the norm.
    pub const CONSTANT: usize = 2 * DIFFERENCES;
    /// How rough the image is at the pixel.
    pub const ROUGHNESS: usize = CONSTANT + 1;
    /// The mean of that in the window.
    pub const NOISE: usize = CONSTANT + 2;
    /// What the MLP adds: a penalty for each neighbour.
    pub const PENALTY: usize = 64;
}

#[cfg(test)]
mod tests;
