//! A decoder level of a Swin transformer with a kernel-prediction head, fused into one launch.
//!
//! A workgroup makes 8×8 pixels. Coarse e4m3 features (128 channels, half extents) are expanded to 10×10 cells of 96 channels and
//! added to skip features; window attention of 4 heads over the 64 pixels and a halo of 32; an MLP of 384 hidden units; and a head
//! whose ten outputs are the logits of a 3×3 filter and a gate. Thirty-eight matrix products ([`phases`]) with thirty-eight
//! epilogues between them, which are thirteen parameterised stages ([`instances`]).
//!
//! What host and device must agree on is here: the [`weights`] image, the feature [`plane`], [`fragment`]s, [`shared`] memory,
//! the [`geometry`] of a launch, and the [`options`] that change results. [`mod@reference`]
//! computes all of it in plain Rust.

pub mod block;
pub mod constants;
pub mod denoise;
pub mod fragment;
pub mod geometry;
mod host;
mod images;
pub mod instances;
pub mod options;
pub mod phases;
pub mod plane;
pub mod reference;
pub mod shared;
pub mod stage;
pub mod stages;
pub mod weights;

/// Channels of skip features, of the block and of its output.
pub const CHANNELS: u32 = 96;

/// Channels of coarse features.
pub const COARSE_CHANNELS: u32 = 128;

/// Logical warps of a workgroup: one a sub-pixel of the patch expand, one an attention head, one a 16-pixel tile.
pub const WARPS: u32 = 4;

/// Lanes of a logical warp.
pub const LANES: u32 = 32;

/// Channels of an attention head.
pub const HEAD_WIDTH: u32 = 32;

/// Pixels of a side of the window that a workgroup makes.
pub const WINDOW: u32 = 8;

/// Pixels of the window: rows of queries.
pub const PIXELS: u32 = WINDOW * WINDOW;

/// Cells of a side of the patch grid: the window and one pixel around it.
pub const GRID: u32 = WINDOW + 2;

/// Rows of keys and values: the window's pixels, then the halo's edges without its corners.
pub const KEYS: u32 = PIXELS + 4 * WINDOW;

/// Coarse pixels of a side that a workgroup expands.
pub const COARSE_SIDE: u32 = 6;

/// Rows of the patch expand's product, of which `COARSE_SIDE`² are live.
pub const COARSE_ROWS: u32 = 48;

/// Hidden units of a chunk of the MLP.
pub const CHUNK: u32 = 32;

/// Chunks of the MLP.
pub const CHUNKS: u32 = 4 * CHANNELS / CHUNK;

/// Outputs of the head: nine logits, a gate, two that are staged and two pairs that nothing reads.
pub const OUTPUTS: u32 = 16;

/// Taps of the 3×3 filter.
pub const TAPS: u32 = 9;

/// The cell (row, column) of the patch grid that attention row `row` < [`KEYS`] is made of: pixels by rows, then the top,
/// bottom, left and right edges of the halo.
pub const fn attention_cell(row: u32) -> (u32, u32) {
    let along = row % WINDOW + 1;
    match row / WINDOW {
        8 => (0, along),
        9 => (GRID - 1, along),
        10 => (along, 0),
        11 => (along, GRID - 1),
        line => (line + 1, along),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attention_rows_are_all_cells_but_the_corners() {
        let mut cells: Vec<_> = (0..KEYS).map(attention_cell).collect();
        assert_eq!(cells[..2], [(1, 1), (1, 2)]);
        assert_eq!((cells[8], cells[63]), ((2, 1), (8, 8)));
        assert_eq!((cells[64], cells[72], cells[80], cells[88]), ((0, 1), (9, 1), (1, 0), (1, 9)));
        cells.extend([(0, 0), (0, 9), (9, 0), (9, 9)]);
        cells.sort_unstable();
        let all: Vec<_> = (0..GRID).flat_map(|row| (0..GRID).map(move |column| (row, column))).collect();
        assert_eq!(cells, all);
    }
}
