//! The whole block, product by product, and all blocks of an image.

use std::sync::atomic::AtomicBool;

use half::f16;
use lathe_runtime::jit::on_all_cores;

use super::attention::{cubic_softmax, mixed, scores};
use super::filter::{Pictures, kernel_gate};
use super::gemm::{columns, product};
use super::image::{Image, ImageError};
use super::matrix::Matrix;
use super::mlp::{col_add, cubic_act};
use super::norm::row_norms;
use super::patch::{PatchGrid, coarse_rows, patch_scatter, quantised, skip_residual};
use crate::dec2::geometry::{Extents, Geometry};
use crate::dec2::options::Options;
use crate::dec2::plane::PlaneLayout;
use crate::dec2::weights::{DenseWeights, HeadWeights};
use crate::dec2::{CHANNELS, CHUNK, CHUNKS, COARSE_CHANNELS, HEAD_WIDTH, OUTPUTS, PIXELS, WARPS, WINDOW};

/// What the block reads.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    /// Where blocks lie.
    pub geometry: &'a Geometry,
    /// Planes of coarse features, 128 channels at half extents.
    pub coarse: &'a [u8],
    /// Planes of skip features, 96 channels.
    pub skip: &'a [u8],
    /// Its weights, of [`WeightShape::DEC2`](crate::dec2::weights::WeightShape::DEC2).
    pub weights: &'a DenseWeights,
    /// Images.
    pub pictures: Pictures<'a>,
}

/// What all blocks write.
#[derive(Clone, PartialEq, Debug)]
pub struct Outputs {
    /// Planes of features, 96 channels.
    pub features: Vec<u8>,
    /// The image.
    pub image: Image,
}

/// Why inputs are none of the block's.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum InputError {
    /// A plane's length is not that of its extents.
    #[error("{what} features of {extents} have {expected} bytes, not {found}")]
    Plane {
        /// `coarse` or `skip`.
        what: &'static str,
        /// Width and height.
        extents: Extents,
        /// Bytes they must have.
        expected: u64,
        /// Bytes they have.
        found: usize,
    },
    /// An image is not as large as the extents.
    #[error("{what} is {width}×{height}, the image {extents}")]
    Picture {
        /// `blend` or `offset`.
        what: &'static str,
        /// Its width.
        width: u32,
        /// Its height.
        height: u32,
        /// The image's extents.
        extents: Extents,
    },
    /// Weights of another shape.
    #[error(transparent)]
    Weights(#[from] crate::dec2::weights::WeightError),
    /// The output has no pixel.
    #[error(transparent)]
    Image(#[from] ImageError),
}

impl Inputs<'_> {
    /// Refuses what is not as large as the geometry and the network ask for.
    ///
    /// # Errors
    /// See [`InputError`].
    pub fn check(&self, options: &Options) -> Result<(), InputError> {
        let extents = self.geometry.extents();
        let plane = |what, planes: &[u8], extents, channels| {
            let expected = PlaneLayout::new(extents, channels).bytes();
            let found = planes.len();
            if expected == found as u64 { Ok(()) } else { Err(InputError::Plane { what, extents, expected, found }) }
        };
        plane("coarse", self.coarse, extents.coarse(options.coarse_extent), COARSE_CHANNELS)?;
        plane("skip", self.skip, extents, CHANNELS)?;
        for (what, image) in [("blend", self.pictures.blend), ("offset", self.pictures.offset)] {
            let (width, height) = (image.width(), image.height());
            if (width, height) != (extents.x, extents.y) {
                return Err(InputError::Picture { what, width, height, extents });
            }
        }
        Ok(self.weights.check(&crate::dec2::weights::WeightShape::DEC2)?)
    }
}

/// Everything that a block computes between its inputs and its outputs. Rows of what four warps share lie one behind the other: row
/// 16·z + i of warp z's 16.
#[derive(Clone, PartialEq, Debug)]
pub struct BlockTrace {
    /// D1 of each warp: expanded patches, `[48][96]`.
    pub patches: Vec<Matrix<f16>>,
    /// V1.
    pub grid: PatchGrid,
    /// V2: attention rows, `[96][96]`.
    pub rows: Matrix<f16>,
    /// V3 of them, quantised: A of products 2 to 7.
    pub normed_rows: Matrix<u8>,
    /// D6 of each head: keys, `[96][32]`.
    pub keys: Vec<Matrix<f16>>,
    /// D7 of each head: values, `[96][32]`.
    pub values: Vec<Matrix<f16>>,
    /// D8 of each head, `[64][96]`.
    pub scores: Vec<Matrix<f16>>,
    /// V6 of them.
    pub probabilities: Vec<Matrix<f16>>,
    /// D9 of each head, `[64][32]`.
    pub heads: Vec<Matrix<f16>>,
    /// D10 to D13, `[64][96]`.
    pub attended: Vec<Matrix<f16>>,
    /// E13's V3, quantised: A of the MLP's first products, `[64][96]`.
    pub normed: Matrix<u8>,
    /// D14, D16, …, D36: hidden units of each chunk before the activation, `[64][32]`.
    pub hidden: Vec<Matrix<f16>>,
    /// D15, D17, …, D37, `[64][96]`.
    pub sums: Vec<Matrix<f16>>,
    /// V11: the block's result, codes `[64][96]`.
    pub features: Matrix<u8>,
    /// D38, `[64][16]`.
    pub outputs: Matrix<f16>,
}

impl BlockTrace {
    /// Computes a block up to the head's outputs; `inputs` have been checked.
    pub fn new(inputs: &Inputs<'_>, block: [u32; 2], options: &Options) -> Self {
        let weights = inputs.weights;
        let codes = |values: &Matrix<f16>| quantised(values, options.nan_sign);
        let [c, hidden_all, width] = [CHANNELS, 4 * CHANNELS, HEAD_WIDTH].map(|n| n as usize);
        let matrix =
            |data: &[u8], columns: usize| Matrix::from_fn(data.len() / columns, columns, |i, j| data[i * columns + j]);

        let coarse = coarse_rows(inputs.coarse, inputs.geometry, block, options);
        let patch = matrix(&weights.patch, hidden_all);
        let expand = |z: usize| {
            let bias = columns(coarse.row_count(), &weights.patch_bias[c * z..c * (z + 1)]);
            product(&coarse, &patch.columns(c * z, c), &bias, options)
        };
        let patches: Vec<_> = (0..WARPS as usize).map(expand).collect();
        let grid = patch_scatter(&patches, options);
        let rows = skip_residual(&grid, inputs.skip, inputs.geometry, block, options);
        let normed_rows = codes(&row_norms(&rows, &weights.gain1, options.reduce_tree));

        let zero = Matrix::filled(rows.row_count(), width, f16::ZERO);
        let project = |data: &[u8]| product(&normed_rows, &matrix(data, width), &zero, options);
        let keys: Vec<_> = weights.heads.iter().map(|h| project(&h.query_key)).collect();
        let values: Vec<_> = weights.heads.iter().map(|h| project(&h.value)).collect();
        let of_head = |(keys, head): (&Matrix<f16>, &HeadWeights)| scores(keys, &head.score_bias, options);
        let scores: Vec<_> = keys.iter().zip(&weights.heads).map(of_head).collect();
        let probabilities: Vec<_> = scores.iter().map(|s| cubic_softmax(s, options.reduce_tree)).collect();
        let heads: Vec<_> = probabilities.iter().zip(&values).map(|(p, v)| mixed(p, v, options)).collect();

        let mut attended: Vec<Matrix<f16>> = vec![];
        for (head, result) in weights.heads.iter().zip(&heads) {
            let seed = match attended.last() {
                Some(before) => before.clone(),
                None => col_add(&weights.out_bias, &rows.rows(0, PIXELS as usize)),
            };
            attended.push(product(&codes(result), &matrix(&head.out_proj, c), &seed, options));
        }
        let residual = attended.last().cloned().unwrap_or_else(|| rows.rows(0, PIXELS as usize));

        let normed = codes(&row_norms(&residual, &weights.gain2, options.reduce_tree));
        let (first, second) = (matrix(&weights.fc1, hidden_all), matrix(&weights.fc2, c));
        let (mut hidden, mut sums) = (vec![], vec![col_add(&weights.fc2_bias, &residual)]);
        for chunk in (0..CHUNKS).map(|j| (CHUNK * j) as usize) {
            let chunk_width = CHUNK as usize;
            let bias = columns(normed.row_count(), &weights.fc1_bias[chunk..chunk + chunk_width]);
            let units = product(&normed, &first.columns(chunk, chunk_width), &bias, options);
            let activated = codes(&units.map(|x| cubic_act(x, options.act_round)));
            let sum = product(&activated, &second.rows(chunk, chunk_width), &sums[sums.len() - 1], options);
            hidden.push(units);
            sums.push(sum);
        }
        let features = codes(&sums[sums.len() - 1]);
        sums.remove(0);
        let bias = columns(features.row_count(), &weights.head_bias);
        let outputs = product(&features, &matrix(&weights.head, OUTPUTS as usize), &bias, options);
        Self {
            patches,
            grid,
            rows,
            normed_rows,
            keys,
            values,
            scores,
            probabilities,
            heads,
            attended,
            normed,
            hidden,
            sums,
            features,
            outputs,
        }
    }
}

/// V11: a block's result in the planes of the whole image; pixels outside are left out.
pub fn plane_scatter(features: &Matrix<u8>, planes: &mut [u8], geometry: &Geometry, block: [u32; 2]) {
    let layout = PlaneLayout::new(geometry.extents(), CHANNELS);
    for (pixel, x, y) in block_pixels(geometry, block) {
        for (channel, code) in features.row(pixel).iter().enumerate() {
            planes[layout.byte(channel as u32, x, y) as usize] = *code;
        }
    }
}

/// The block's pixels inside of the image: number in the window, x and y.
pub fn block_pixels(geometry: &Geometry, block: [u32; 2]) -> impl Iterator<Item = (usize, u32, u32)> + use<> {
    let extents = geometry.extents();
    let (x0, y0) = geometry.first_pixel(block);
    (0..PIXELS).filter_map(move |pixel| {
        let (x, y) = (x0 + (pixel % WINDOW) as i32, y0 + (pixel / WINDOW) as i32);
        extents.contains(x, y).then_some((pixel as usize, x as u32, y as u32))
    })
}

/// All blocks of an image, shared out to all processors.
///
/// # Errors
/// The inputs are not as large as the geometry asks for.
pub fn frame(inputs: &Inputs<'_>, options: &Options) -> Result<Outputs, InputError> {
    inputs.check(options)?;
    let extents = inputs.geometry.extents();
    let mut features = vec![0; PlaneLayout::new(extents, CHANNELS).bytes() as usize];
    let mut texels = vec![[f16::ZERO; 4]; extents.pixels() as usize];
    let blocks: Vec<_> = inputs.geometry.blocks().collect();
    let done = on_all_cores(&blocks, |block| finished(inputs, *block, options), |_| {}, &AtomicBool::new(false));
    for (block, (codes, colours)) in blocks.into_iter().zip(done.into_iter().flatten()) {
        plane_scatter(&codes, &mut features, inputs.geometry, block);
        for ((_, x, y), texel) in block_pixels(inputs.geometry, block).zip(colours) {
            texels[(y * extents.x + x) as usize] = texel;
        }
    }
    Ok(Outputs { features, image: Image::new(extents.x, extents.y, texels)? })
}

/// A block's features, and the texels of its pixels inside of the image.
fn finished(inputs: &Inputs<'_>, block: [u32; 2], options: &Options) -> (Matrix<u8>, Vec<[f16; 4]>) {
    let trace = BlockTrace::new(inputs, block, options);
    let texel = |(pixel, x, y): (usize, u32, u32)| {
        kernel_gate(trace.outputs.row(pixel), &inputs.pictures, inputs.geometry.extents(), (x, y), options)
    };
    let texels = block_pixels(inputs.geometry, block).map(texel).collect();
    (trace.features, texels)
}
