//! The block's shared memory: one buffer that four uses share in turn.
//!
//! The layouts are the block's own affair. Between two uses the workgroup comes together: after the patch grid is stored, after it is
//! read, after the A tiles are stored, before the head tiles are (other warps may still read A tiles), after, before the head's
//! outputs are stored, after: seven times.

use super::fragment::lane_vector;
use super::{GRID, LANES};

/// Bytes of the buffer: the patch grid's.
pub const BYTES: u32 = 9600;

/// Bytes of a quad that all lanes store.
const QUAD: u32 = 16 * LANES;

/// Bytes of a plane of half cells: 16 channels' words of all cells.
const HALF_PLANE: u32 = 16 * GRID * GRID;

/// Word `t` of half `h` of plane `q` < 3 of a cell of the patch grid, in bytes.
pub const fn grid_word(q: u32, h: u32, row: u32, column: u32, t: u32) -> u32 {
    HALF_PLANE * (2 * q + h) + 16 * (GRID * row + column) + 4 * t
}

/// A lane's quad of A tile `tile` < 6, slice `slice` < 3 along K, in bytes.
pub const fn a_quad(tile: u32, slice: u32, lane: u32) -> u32 {
    QUAD * (3 * tile + slice) + lane_vector(lane)
}

/// A lane's quad of tile `tile` < 4 of head `head` < 4, in bytes.
pub const fn head_quad(head: u32, tile: u32, lane: u32) -> u32 {
    QUAD * (4 * head + tile) + lane_vector(lane)
}

/// Word `word` < 6 (channels 2·word and 2·word + 1, f16) of a pixel's head outputs, in bytes.
pub const fn output_word(pixel: u32, word: u32) -> u32 {
    24 * pixel + 4 * word
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fills(mut bytes: Vec<u32>, step: u32, end: u32) {
        bytes.sort_unstable();
        assert!(bytes.into_iter().eq((0..end).step_by(step as usize)));
        assert!(end <= BYTES);
    }

    #[test]
    fn each_use_fills_its_part() {
        let cells = |plane: u32| (0..400).map(move |i| grid_word(plane >> 1, plane & 1, i / 40, i / 4 % 10, i % 4));
        fills((0..6).flat_map(cells).collect(), 4, 9600);
        assert_eq!(grid_word(2, 1, 9, 9, 3), 1600 * 5 + 160 * 9 + 16 * 9 + 12);
        fills((0..18).flat_map(|i| (0..32).map(move |lane| a_quad(i / 3, i % 3, lane))).collect(), 16, 9216);
        fills((0..16).flat_map(|i| (0..32).map(move |lane| head_quad(i / 4, i % 4, lane))).collect(), 16, 8192);
        fills((0..64).flat_map(|pixel| (0..6).map(move |word| output_word(pixel, word))).collect(), 4, 1536);
    }
}
