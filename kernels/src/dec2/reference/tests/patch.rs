//! The patch expand's geometry: P0, V1, V2, V11.

use half::f16;

use super::{h, near};
use crate::dec2::geometry::{Extents, Geometry, Origin};
use crate::dec2::options::{CoarseBorder, CoarseExtent, Options, SkipBorder, SubpixelOrder};
use crate::dec2::plane::PlaneLayout;
use crate::dec2::reference::Matrix;
use crate::dec2::reference::block::{block_pixels, plane_scatter};
use crate::dec2::reference::number::decode;
use crate::dec2::reference::patch::*;

const EXTENTS: [u32; 10] = [1, 2, 3, 7, 8, 9, 12, 15, 16, 17];
const ORIGINS: [(u16, u16); 6] = [(0, 0), (4, 4), (8, 8), (2, 6), (6, 0), (0, 10)];

fn geometries() -> impl Iterator<Item = Geometry> {
    let extents = EXTENTS.iter().flat_map(|x| EXTENTS.map(|y| Extents::new(*x, y)));
    extents.flat_map(|e| ORIGINS.map(|(x, y)| Geometry::fine(e, Origin::new(x, y)).unwrap()))
}

/// A finite code that depends on where it is.
fn hash(seed: u32, at: usize) -> u8 {
    let mixed = (at as u32 ^ seed).wrapping_mul(0x9E37_79B1);
    let code = (mixed >> 24) as u8;
    if code & 0x7F == 0x7F { code ^ 1 } else { code }
}

fn hashed(seed: u32, bytes: u64) -> Vec<u8> {
    (0..bytes as usize).map(|at| hash(seed, at)).collect()
}

#[test]
fn four_warps_write_each_cell_once() {
    for order in [SubpixelOrder::RowMajor, SubpixelOrder::ColMajor] {
        let mut seen = [0; 100];
        for (z, row) in (0..4).flat_map(|z| (0..48).map(move |row| (z, row))) {
            match patch_cell(row, z, order) {
                Some((y, x)) => seen[(10 * y + x) as usize] += 1,
                None => continue,
            }
            assert!(row < 36);
        }
        assert_eq!(seen, [1; 100]);
    }
    // Cells by lane row, four planes, both columns: as another level of the network was seen to store them.
    for (dy, expected) in [(0, [28, 28, 28, 24, 20, 20, 24, 28]), (1, [24, 28, 28, 28, 28, 24, 20, 20])] {
        let of_lane = |g: u32| {
            let cells =
                (0..2).flat_map(|dx| (0..6).map(move |m| patch_cell(8 * m + g, 2 * dy + dx, SubpixelOrder::RowMajor)));
            4 * cells.flatten().count()
        };
        assert_eq!(std::array::from_fn(|g| of_lane(g as u32)), expected);
    }
}

#[test]
fn patches_reach_their_cells() {
    // A value that tells the warp and the row, in e4m3: a sign for rows from 18 on, and steps of sixteen exponents.
    let code = |z: usize, row: usize, channel: usize| ((z * 36 + row) * 7 + channel) as u8 % 0x7E;
    for order in [SubpixelOrder::RowMajor, SubpixelOrder::ColMajor] {
        let options = Options { subpixel_order: order, ..Options::default() };
        let slab =
            |z: usize| Matrix::from_fn(48, 96, |row, c| if row < 36 { decode(code(z, row, c)) } else { f16::NAN });
        let grid = patch_scatter(&[0, 1, 2, 3].map(slab), &options);
        for (cell, c) in (0..100).flat_map(|cell| (0..96).map(move |c| (cell, c))) {
            let (y, x) = (cell / 10, cell % 10);
            let (dy, dx) = ((y + 1) % 2, (x + 1) % 2);
            let row = 6 * usize::div_ceil(y, 2) + usize::div_ceil(x, 2);
            let z = if order == SubpixelOrder::RowMajor { 2 * dy + dx } else { dy + 2 * dx };
            assert_eq!(grid[(cell, c)], code(z, row, c), "cell {y},{x}");
        }
    }
}

/// By the index arithmetic of words.
#[test]
fn coarse_features_of_every_block() {
    let options = [
        Options::default(),
        Options { coarse_border: CoarseBorder::Clamp, ..Options::default() },
        Options { coarse_extent: CoarseExtent::Ceil, ..Options::default() },
    ];
    for options in options {
        for geometry in geometries() {
            let coarse = geometry.extents().coarse(options.coarse_extent);
            if coarse.pixels() == 0 {
                continue;
            }
            let planes = hashed(5, 128 * coarse.pixels());
            for block in geometry.blocks() {
                let rows = coarse_rows(&planes, &geometry, block, &options);
                let (x0, y0) = geometry.first_pixel(block);
                let (first_x, first_y) = (x0.div_euclid(2) - 1, y0.div_euclid(2) - 1);
                for row in 0..48 {
                    let (x, y) = (first_x + row % 6, first_y + row / 6);
                    let (x, y) = (options.coarse_border.map(x, coarse.x), options.coarse_border.map(y, coarse.y));
                    for (plane, word, byte) in (0..128).map(|i| (i / 32, i / 4 % 8, i % 4)) {
                        let at = plane * 8 * coarse.x * coarse.y + 8 * coarse.x * y + 8 * x + word;
                        let channel = 32 * plane + 8 * (word / 4) + 2 * (word % 4) + byte % 2 + 16 * (byte / 2);
                        let expected = planes[(4 * at + byte) as usize];
                        assert_eq!(rows[(row as usize, channel as usize)], expected);
                    }
                }
            }
        }
    }
}

/// By the index arithmetic of words.
#[test]
fn skip_features_of_every_block() {
    let grid = Matrix::from_fn(100, 96, |cell, c| hash(9, 96 * cell + c));
    for border in [SkipBorder::Reflect101Clamp, SkipBorder::Clamp] {
        let options = Options { skip_border: border, ..Options::default() };
        for geometry in geometries() {
            let e = geometry.extents();
            let skip = hashed(7, 96 * e.pixels());
            for block in geometry.blocks() {
                let rows = skip_residual(&grid, &skip, &geometry, block, &options);
                let (x0, y0) = geometry.first_pixel(block);
                let cells = (0..64).map(|p| (p / 8 + 1, p % 8 + 1));
                let halo = (0..8).map(|i| (0, i + 1)).chain((0..8).map(|i| (9, i + 1)));
                let halo = halo.chain((0..8).map(|i| (i + 1, 0))).chain((0..8).map(|i| (i + 1, 9)));
                for (rho, (row, col)) in cells.chain(halo).enumerate() {
                    let y = border.map(y0 - 1 + row, e.y);
                    let x = border.map(x0 - 1 + col, e.x);
                    for (plane, word, byte) in (0..96).map(|i| (i / 32, i / 4 % 8, i % 4)) {
                        let at = plane * 8 * e.x * e.y + 8 * e.x * y + 8 * x + word;
                        let channel =
                            (32 * plane + 8 * (word / 4) + 2 * (word % 4) + byte % 2 + 16 * (byte / 2)) as usize;
                        let patch = decode(grid[((10 * row + col) as usize, channel)]);
                        let expected = near(patch.to_f64() + decode(skip[(4 * at + byte) as usize]).to_f64());
                        assert_eq!(rows[(rho, channel)], expected, "row {rho} of {block:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn sums_of_features() {
    let geometry = Geometry::fine(Extents::new(8, 8), Origin::default()).unwrap();
    for (patch, skip, sum) in [(0x7E, 0x7E, 896.0), (0x01, 0x81, 0.0), (0x08, 0x01, 2f64.powi(-6) + 2f64.powi(-9))] {
        let rows =
            skip_residual(&Matrix::filled(100, 96, patch), &[skip; 64 * 96], &geometry, [0, 0], &Options::default());
        assert!(rows.elements().iter().all(|x| x.to_f64() == sum));
    }
    let sum = |patch, skip| {
        let rows =
            skip_residual(&Matrix::filled(100, 96, patch), &[skip; 64 * 96], &geometry, [0, 0], &Options::default());
        rows[(0, 0)]
    };
    assert_eq!((sum(0x80, 0x80), sum(0x80, 0x00)), (h(0x8000), h(0)));
    assert!(sum(0x7F, 0).is_nan() && sum(0, 0xFF).is_nan());
}

/// Features land where the index arithmetic of words has them, once, and nothing else is touched.
#[test]
fn results_of_every_block() {
    for geometry in geometries() {
        let e = geometry.extents();
        let layout = PlaneLayout::new(e, 96);
        let mut planes = vec![0xEE; layout.bytes() as usize];
        let mut written = vec![0; planes.len()];
        for (i, block) in geometry.blocks().enumerate() {
            let features = Matrix::from_fn(64, 96, |pixel, c| hash(i as u32, 96 * pixel + c) & 0x6F);
            let before = planes.clone();
            plane_scatter(&features, &mut planes, &geometry, block);
            let (x0, y0) = geometry.first_pixel(block);
            for (pixel, plane, word, byte) in (0..64 * 96).map(|i| (i / 96, i / 32 % 3, i / 4 % 8, i % 4)) {
                let (x, y) = (x0 + pixel % 8, y0 + pixel / 8);
                if x < 0 || y < 0 || x >= e.x as i32 || y >= e.y as i32 {
                    continue;
                }
                let at = plane * 8 * e.x as i32 * e.y as i32 + 8 * e.x as i32 * y + 8 * x + word;
                let channel = 32 * plane + 8 * (word / 4) + 2 * (word % 4) + byte % 2 + 16 * (byte / 2);
                let at = (4 * at + byte) as usize;
                assert_eq!(planes[at], features[(pixel as usize, channel as usize)]);
                assert_eq!(before[at], 0xEE);
                written[at] += 1;
            }
            let changed = planes.iter().zip(&before).filter(|(a, b)| a != b).count();
            assert_eq!(changed, 96 * block_pixels(&geometry, block).count());
        }
        assert!(written.iter().all(|n| *n == 1), "{e}");
    }
}
