//! Which element of a matrix a lane's registers hold: the layout of NVIDIA's `m16n8k32`, as the block's memory images have it.
//!
//! `lane = 4·g + t`. Along K a word of four codes holds k = 2t, 2t+1, 16+2t, 17+2t (and 8 more in the second register), not 4t to
//! 4t+3: two adjacent f16x2 sums are then one word of the next product's A without any exchange. A and B agree on it, so it changes
//! no product, only which 16 of k a chip adds first ([`logical_k`]).

use super::LANES;

/// Bytes of a weight block: 16 columns of 32 codes.
pub const BLOCK_BYTES: u32 = 512;

/// Columns of a weight block.
pub const BLOCK_COLUMNS: u32 = 16;

/// Depth of a product's step and of a weight block.
pub const STEP: u32 = 32;

/// A lane's row in a fragment: `lane / 4`.
pub const fn lane_row(lane: u32) -> u32 {
    lane >> 2
}

/// A lane's place in its row: `lane mod 4`.
pub const fn lane_column(lane: u32) -> u32 {
    lane & 3
}

/// Row and column of the element that `half` (0 or 1) of register `(m, r, n)` of C or D holds.
pub const fn sum_element(lane: u32, m: u32, r: u32, n: u32, half: u32) -> (u32, u32) {
    (16 * m + 8 * r + lane_row(lane), 8 * n + 2 * lane_column(lane) + half)
}

/// Row (of 16) and k (of 32) of the code that byte `byte` of register `register` < 4 of an A quad holds.
pub const fn a_element(lane: u32, register: u32, byte: u32) -> (u32, u32) {
    (8 * (register & 1) + lane_row(lane), word_k(lane_column(lane), register >> 1, byte))
}

/// k (of 32) and column (of 8) of the code that byte `byte` of register `register` < 2 of a B pair holds.
pub const fn b_element(lane: u32, register: u32, byte: u32) -> (u32, u32) {
    (word_k(lane_column(lane), register, byte), lane_row(lane))
}

/// k of a byte of word `4·upper + t`: also the channel (of 32) that it holds in a feature plane.
pub const fn word_k(t: u32, upper: u32, byte: u32) -> u32 {
    8 * upper + 2 * t + (byte & 1) + 16 * (byte >> 1)
}

/// The k that the hardware's k position `position` < 32 carries.
pub const fn logical_k(position: u32) -> u32 {
    word_k((position >> 2) & 3, position >> 4, position & 3)
}

/// Where element (`column` < 16, `k` < 32) lies in a weight block, in bytes.
pub const fn block_byte(column: u32, k: u32) -> u32 {
    64 * (column & 7)
        + 16 * ((k >> 1) & 3)
        + 8 * ((column >> 3) & 1)
        + 4 * ((k >> 3) & 1)
        + 2 * ((k >> 4) & 1)
        + (k & 1)
}

/// Where the score bias of (`row` < 64, `column` < 96) lies in its table of f16, in bytes.
pub const fn score_bias_byte(row: u32, column: u32) -> u32 {
    let (m, r, n) = (row >> 4, (row >> 3) & 1, column >> 3);
    let lane = 4 * (row & 7) + ((column >> 1) & 3);
    BLOCK_BYTES * (4 * (n >> 1) + m) + 16 * lane + 8 * (n & 1) + 4 * r + 2 * (column & 1)
}

/// Offset of lane `lane`'s word of a column table's tile `n`, in bytes: f16 of columns 8n+2t and 8n+2t+1.
pub const fn column_word(lane: u32, n: u32) -> u32 {
    16 * n + 4 * lane_column(lane)
}

/// Offset of a lane's 16 bytes of a block or of a stored quad.
pub const fn lane_vector(lane: u32) -> u32 {
    16 * (lane % LANES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_holds_each_element_once_and_lanes_read_their_pairs() {
        let mut bytes: Vec<_> = (0..16).flat_map(|column| (0..32).map(move |k| block_byte(column, k))).collect();
        bytes.sort_unstable();
        assert!(bytes.into_iter().eq(0..BLOCK_BYTES));
        for lane in 0..LANES {
            for (n, register, byte) in (0..16).map(|i| (i >> 3, (i >> 2) & 1, i & 3)) {
                let (k, column) = b_element(lane, register, byte);
                assert_eq!(block_byte(8 * n + column, k), lane_vector(lane) + 8 * n + 4 * register + byte);
                // The hardware's own position of that byte.
                assert_eq!(logical_k(16 * register + 4 * lane_column(lane) + byte), k);
            }
        }
    }

    #[test]
    fn positions_along_k_are_a_permutation_whose_halves_are_the_two_byte_pairs() {
        let mut ks: Vec<_> = (0..32).map(logical_k).collect();
        assert!((0..32).all(|position| (ks[position as usize] < 16) == (position & 2 == 0)));
        ks.sort_unstable();
        assert!(ks.into_iter().eq(0..32));
        for position in 0..32 {
            let closed = 8 * (position >> 4) + 2 * ((position >> 2) & 3) + (position & 1) + 16 * ((position >> 1) & 1);
            assert_eq!(logical_k(position), closed);
        }
    }

    #[test]
    fn sums_become_quads_without_exchanges() {
        // Register 2h+r of quad (m, ks): the low halves of byte pairs come from tile 4ks+h, the upper from 4ks+2+h.
        for lane in 0..LANES {
            for (register, byte) in (0..16).map(|i| (i >> 2, i & 3)) {
                let (r, h) = (register & 1, register >> 1);
                let tile = h + 2 * (byte >> 1);
                assert_eq!(a_element(lane, register, byte), sum_element(lane, 0, r, tile, byte & 1));
            }
        }
    }

    #[test]
    fn score_biases_fill_their_table() {
        let mut bytes: Vec<_> = (0..64).flat_map(|r| (0..96).map(move |c| score_bias_byte(r, c))).collect();
        bytes.sort_unstable();
        assert!(bytes.into_iter().eq((0..12288).step_by(2)));
        for lane in 0..LANES {
            for (m, n, r, half) in
                (0..4).flat_map(|m| (0..12).flat_map(move |n| (0..4).map(move |i| (m, n, i >> 1, i & 1))))
            {
                let (row, column) = sum_element(lane, m, r, n, half);
                let byte = 512 * (4 * (n >> 1) + m) + 16 * lane + 8 * (n & 1) + 4 * r + 2 * half;
                assert_eq!(score_bias_byte(row, column), byte);
            }
        }
    }
}
