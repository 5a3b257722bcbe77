//! From features to attention rows: the patch expand's left factor, V1 and V2.

use half::f16;

use super::matrix::Matrix;
use super::number::{add, decode, quantise};
use crate::dec2::geometry::Geometry;
use crate::dec2::options::{NanSign, Options, SubpixelOrder};
use crate::dec2::plane::PlaneLayout;
use crate::dec2::{CHANNELS, COARSE_CHANNELS, COARSE_ROWS, COARSE_SIDE, GRID, KEYS, attention_cell};

/// Codes of the 10×10 cells' 96 channels, `[10 · row + column][channel]`.
pub type PatchGrid = Matrix<u8>;

/// Row and column, 0 or 1, of the sub-pixel that warp `z` makes.
pub fn sub_pixel(z: u32, order: SubpixelOrder) -> (u32, u32) {
    match order {
        SubpixelOrder::RowMajor => (z >> 1, z & 1),
        SubpixelOrder::ColMajor => (z & 1, z >> 1),
    }
}

/// The cell (row, column) of the patch grid that row `row` < 48 of warp `z`'s product is for, if there is one.
pub fn patch_cell(row: u32, z: u32, order: SubpixelOrder) -> Option<(u32, u32)> {
    let (dy, dx) = sub_pixel(z, order);
    let place = |along: u32, offset: u32| (2 * along + offset).checked_sub(1).filter(|v| *v < GRID);
    Some((place(row / COARSE_SIDE, dy)?, place(row % COARSE_SIDE, dx)?))
}

/// The coarse pixel (x, y), border applied, that row `row` < 48 of the product reads.
pub fn coarse_pixel(geometry: &Geometry, block: [u32; 2], row: u32, options: &Options) -> (u32, u32) {
    let extents = geometry.extents().coarse(options.coarse_extent);
    let (x0, y0) = geometry.first_pixel(block);
    let place =
        |first: i32, along: u32, extent: u32| options.coarse_border.map((first >> 1) - 1 + along as i32, extent);
    (place(x0, row % COARSE_SIDE, extents.x), place(y0, row / COARSE_SIDE, extents.y))
}

/// A of the patch expand: codes `[48][128]`, from planes of coarse features.
pub fn coarse_rows(planes: &[u8], geometry: &Geometry, block: [u32; 2], options: &Options) -> Matrix<u8> {
    let layout = PlaneLayout::new(geometry.extents().coarse(options.coarse_extent), COARSE_CHANNELS);
    Matrix::from_fn(COARSE_ROWS as usize, COARSE_CHANNELS as usize, |row, channel| {
        let (x, y) = coarse_pixel(geometry, block, row as u32, options);
        planes[layout.byte(channel as u32, x, y) as usize]
    })
}

/// V1: the products `[48][96]` of the four warps, quantised, in their cells.
pub fn patch_scatter(slabs: &[Matrix<f16>], options: &Options) -> PatchGrid {
    let mut grid = Matrix::filled((GRID * GRID) as usize, CHANNELS as usize, 0);
    for (z, slab) in slabs.iter().enumerate() {
        for row in 0..slab.row_count() {
            if let Some((y, x)) = patch_cell(row as u32, z as u32, options.subpixel_order) {
                let cell = grid.row_mut((GRID * y + x) as usize);
                for (code, value) in cell.iter_mut().zip(slab.row(row)) {
                    *code = quantise(*value, options.nan_sign);
                }
            }
        }
    }
    grid
}

/// The skip pixel (x, y), border applied, that belongs to attention row `row` < 96.
pub fn skip_pixel(geometry: &Geometry, block: [u32; 2], row: u32, options: &Options) -> (u32, u32) {
    let (x0, y0) = geometry.first_pixel(block);
    let (cell_y, cell_x) = attention_cell(row);
    let place = |first: i32, cell: u32, extent: u32| options.skip_border.map(first - 1 + cell as i32, extent);
    (place(x0, cell_x, geometry.extents().x), place(y0, cell_y, geometry.extents().y))
}

/// V2: attention rows `[96][96]`: a cell of the grid plus the skip features of its pixel.
pub fn skip_residual(
    grid: &PatchGrid,
    skip: &[u8],
    geometry: &Geometry,
    block: [u32; 2],
    options: &Options,
) -> Matrix<f16> {
    let layout = PlaneLayout::new(geometry.extents(), CHANNELS);
    Matrix::from_fn(KEYS as usize, CHANNELS as usize, |row, channel| {
        let (y, x) = attention_cell(row as u32);
        let (skip_x, skip_y) = skip_pixel(geometry, block, row as u32, options);
        let code = skip[layout.byte(channel as u32, skip_x, skip_y) as usize];
        add(decode(grid[((GRID * y + x) as usize, channel)]), decode(code))
    })
}

/// V4, V10: the codes of f16 sums.
pub fn quantised(values: &Matrix<f16>, nan_sign: NanSign) -> Matrix<u8> {
    values.map(|value| quantise(value, nan_sign))
}
