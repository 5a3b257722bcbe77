//! Dense weights, and the image that lanes load fragments from.

use half::f16;

use super::layout::{WeightItem, WeightLayout, WeightShape};
use crate::dec2::fragment::{BLOCK_BYTES, BLOCK_COLUMNS, STEP, block_byte, score_bias_byte};
use crate::dec2::{CHUNK, HEAD_WIDTH, KEYS, PIXELS};

/// A head's weights.
#[derive(Clone, PartialEq, Debug)]
pub struct HeadWeights {
    /// To queries and keys, e4m3, `[channels][32]`.
    pub query_key: Vec<u8>,
    /// To values, e4m3, `[channels][32]`.
    pub value: Vec<u8>,
    /// Added to scores, `[64][96]`: queries are pixels, keys attention rows.
    pub score_bias: Vec<f16>,
    /// From the head's result, e4m3, `[32][channels]`.
    pub out_proj: Vec<u8>,
}

/// A level's weights: matrices `[k][n]` of e4m3 codes, biases and gains of f16.
#[derive(Clone, PartialEq, Debug)]
pub struct DenseWeights {
    /// Patch expand, `[coarse_channels][4 · channels]`: slab z has the columns from z · `slab_columns`.
    pub patch: Vec<u8>,
    /// Its bias, `[4 · channels]`.
    pub patch_bias: Vec<f16>,
    /// Gain of the norm before attention, `[channels]`.
    pub gain1: Vec<f16>,
    /// Attention heads.
    pub heads: Vec<HeadWeights>,
    /// Bias of attention's result, `[channels]`.
    pub out_bias: Vec<f16>,
    /// Gain of the norm before the MLP, `[channels]`.
    pub gain2: Vec<f16>,
    /// To hidden units, `[channels][4 · channels]`.
    pub fc1: Vec<u8>,
    /// Their bias, `[4 · channels]`.
    pub fc1_bias: Vec<f16>,
    /// From hidden units, `[4 · channels][channels]`.
    pub fc2: Vec<u8>,
    /// The MLP's bias, `[channels]`.
    pub fc2_bias: Vec<f16>,
    /// To the head's outputs, `[channels][outputs]`.
    pub head: Vec<u8>,
    /// Their bias, `[outputs]`.
    pub head_bias: Vec<f16>,
}

/// An array of weights, or an image, that has another length than the shape asks for.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("weights: {what} has {found} elements, not {expected}")]
pub struct WeightError {
    /// Which.
    pub what: String,
    /// What it has.
    pub found: usize,
    /// What it must have.
    pub expected: usize,
}

/// Part of a dense matrix `[k][n]` that is one block of an image.
struct Part {
    /// Columns of the whole matrix.
    stride: u32,
    /// First row and column.
    row: u32,
    column: u32,
    /// Rows, a multiple of 32, and columns, a multiple of 16.
    rows: u32,
    columns: u32,
}

impl Part {
    /// Calls `f` with each element's offset in the image's block and in the matrix. In a block 16 columns have all their K, then the
    /// next 16 follow.
    fn each(&self, mut f: impl FnMut(usize, usize)) {
        let steps = self.rows / STEP;
        for column in 0..self.columns {
            for k in 0..self.rows {
                let block = column / BLOCK_COLUMNS * steps + k / STEP;
                let byte = BLOCK_BYTES * block + block_byte(column % BLOCK_COLUMNS, k % STEP);
                f(byte as usize, ((self.row + k) * self.stride + self.column + column) as usize);
            }
        }
    }
}

/// What a block of an image is a part of.
enum Content<'w> {
    Matrix(&'w mut Vec<u8>, Part),
    /// Values from the first index on.
    Table(&'w mut Vec<f16>, usize),
    ScoreBias(&'w mut Vec<f16>),
}

impl DenseWeights {
    /// Weights of 0 for a shape.
    pub fn zeros(shape: &WeightShape) -> Self {
        let [c, hidden, coarse, outputs] =
            [shape.channels, 4 * shape.channels, shape.coarse_channels, shape.outputs].map(|n| n as usize);
        let width = HEAD_WIDTH as usize;
        let table = |n: usize| vec![f16::ZERO; n];
        let head = HeadWeights {
            query_key: vec![0; c * width],
            value: vec![0; c * width],
            score_bias: table((PIXELS * KEYS) as usize),
            out_proj: vec![0; width * c],
        };
        Self {
            patch: vec![0; coarse * hidden],
            patch_bias: table(hidden),
            gain1: table(c),
            heads: vec![head; shape.heads as usize],
            out_bias: table(c),
            gain2: table(c),
            fc1: vec![0; c * hidden],
            fc1_bias: table(hidden),
            fc2: vec![0; hidden * c],
            fc2_bias: table(c),
            head: vec![0; c * outputs],
            head_bias: table(outputs),
        }
    }

    /// The image of these weights.
    ///
    /// # Errors
    /// An array's length is not that of the layout's shape.
    pub fn pack(&self, layout: &WeightLayout) -> Result<Vec<u8>, WeightError> {
        self.check(layout.shape())?;
        let mut image = vec![0; layout.bytes() as usize];
        // `content` gives parts of weights to fill; here they are only read.
        let mut weights = self.clone();
        for block in layout.blocks() {
            let bytes = &mut image[block.range()];
            match weights.content(layout.shape(), block.item) {
                Content::Matrix(matrix, part) => part.each(|at, place| bytes[at] = matrix[place]),
                Content::Table(table, first) => {
                    for (pair, value) in bytes.chunks_exact_mut(2).zip(&table[first..]) {
                        pair.copy_from_slice(&value.to_bits().to_le_bytes());
                    }
                }
                Content::ScoreBias(table) => each_score(|at, place| {
                    bytes[at..at + 2].copy_from_slice(&table[place].to_bits().to_le_bytes());
                }),
            }
        }
        Ok(image)
    }

    /// The weights of an image.
    ///
    /// # Errors
    /// The image has not the layout's length.
    pub fn unpack(image: &[u8], layout: &WeightLayout) -> Result<Self, WeightError> {
        let expected = layout.bytes() as usize;
        if image.len() != expected {
            return Err(WeightError { what: "the image".to_owned(), found: image.len(), expected });
        }
        let mut weights = Self::zeros(layout.shape());
        let value = |pair: &[u8]| f16::from_bits(u16::from_le_bytes([pair[0], pair[1]]));
        for block in layout.blocks() {
            let bytes = &image[block.range()];
            match weights.content(layout.shape(), block.item) {
                Content::Matrix(matrix, part) => part.each(|at, place| matrix[place] = bytes[at]),
                Content::Table(table, first) => {
                    for (pair, to) in bytes.chunks_exact(2).zip(&mut table[first..]) {
                        *to = value(pair);
                    }
                }
                Content::ScoreBias(table) => each_score(|at, place| table[place] = value(&bytes[at..at + 2])),
            }
        }
        Ok(weights)
    }

    /// What `item`, one of the shape's, is a part of.
    fn content(&mut self, shape: &WeightShape, item: WeightItem) -> Content<'_> {
        let (c, hidden, columns) = (shape.channels, 4 * shape.channels, shape.slab_columns());
        let whole = |rows, columns| Part { stride: columns, row: 0, column: 0, rows, columns };
        let slice_of_head =
            |slice| Part { stride: HEAD_WIDTH, row: STEP * slice, column: 0, rows: STEP, columns: HEAD_WIDTH };
        match item {
            WeightItem::Patch { slab } => Content::Matrix(
                &mut self.patch,
                Part { stride: hidden, row: 0, column: columns * slab, rows: shape.coarse_channels, columns },
            ),
            WeightItem::PatchBias { slab } => Content::Table(&mut self.patch_bias, (columns * slab) as usize),
            WeightItem::Gain1 => Content::Table(&mut self.gain1, 0),
            WeightItem::QueryKey { head, slice } => {
                Content::Matrix(&mut self.heads[head as usize].query_key, slice_of_head(slice))
            }
            WeightItem::Value { head, slice } => {
                Content::Matrix(&mut self.heads[head as usize].value, slice_of_head(slice))
            }
            WeightItem::ScoreBias { head } => Content::ScoreBias(&mut self.heads[head as usize].score_bias),
            WeightItem::OutProj { head } => {
                Content::Matrix(&mut self.heads[head as usize].out_proj, whole(HEAD_WIDTH, c))
            }
            WeightItem::OutBias => Content::Table(&mut self.out_bias, 0),
            WeightItem::Gain2 => Content::Table(&mut self.gain2, 0),
            WeightItem::Fc1 { chunk } => Content::Matrix(
                &mut self.fc1,
                Part { stride: hidden, row: 0, column: CHUNK * chunk, rows: c, columns: CHUNK },
            ),
            WeightItem::Fc1Bias { chunk } => Content::Table(&mut self.fc1_bias, (CHUNK * chunk) as usize),
            WeightItem::Fc2 { chunk } => Content::Matrix(
                &mut self.fc2,
                Part { stride: c, row: CHUNK * chunk, column: 0, rows: CHUNK, columns: c },
            ),
            WeightItem::Fc2Bias => Content::Table(&mut self.fc2_bias, 0),
            WeightItem::Head => Content::Matrix(&mut self.head, whole(c, shape.outputs)),
            WeightItem::HeadBias => Content::Table(&mut self.head_bias, 0),
        }
    }

    /// Refuses arrays that have not the lengths of a shape.
    ///
    /// # Errors
    /// The first that has not.
    pub fn check(&self, shape: &WeightShape) -> Result<(), WeightError> {
        let right = Self::zeros(shape);
        let mut lengths = vec![
            ("patch".to_owned(), self.patch.len(), right.patch.len()),
            ("patch_bias".to_owned(), self.patch_bias.len(), right.patch_bias.len()),
            ("gain1".to_owned(), self.gain1.len(), right.gain1.len()),
            ("heads".to_owned(), self.heads.len(), right.heads.len()),
            ("out_bias".to_owned(), self.out_bias.len(), right.out_bias.len()),
            ("gain2".to_owned(), self.gain2.len(), right.gain2.len()),
            ("fc1".to_owned(), self.fc1.len(), right.fc1.len()),
            ("fc1_bias".to_owned(), self.fc1_bias.len(), right.fc1_bias.len()),
            ("fc2".to_owned(), self.fc2.len(), right.fc2.len()),
            ("fc2_bias".to_owned(), self.fc2_bias.len(), right.fc2_bias.len()),
            ("head".to_owned(), self.head.len(), right.head.len()),
            ("head_bias".to_owned(), self.head_bias.len(), right.head_bias.len()),
        ];
        for (i, (head, right)) in self.heads.iter().zip(&right.heads).enumerate() {
            let name = |what: &str| format!("heads[{i}].{what}");
            lengths.push((name("query_key"), head.query_key.len(), right.query_key.len()));
            lengths.push((name("value"), head.value.len(), right.value.len()));
            lengths.push((name("score_bias"), head.score_bias.len(), right.score_bias.len()));
            lengths.push((name("out_proj"), head.out_proj.len(), right.out_proj.len()));
        }
        match lengths.into_iter().find(|(_, found, expected)| found != expected) {
            Some((what, found, expected)) => Err(WeightError { what, found, expected }),
            None => Ok(()),
        }
    }
}

/// Calls `f` with each score bias's offset in its block and index in its table.
fn each_score(mut f: impl FnMut(usize, usize)) {
    for row in 0..PIXELS {
        for column in 0..KEYS {
            f(score_bias_byte(row, column) as usize, (row * KEYS + column) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;

    /// Weights all of whose elements differ from their neighbours.
    fn random(shape: &WeightShape, seed: u64) -> DenseWeights {
        let mut rng = Rng::with_seed(seed);
        let mut weights = DenseWeights::zeros(shape);
        let DenseWeights {
            patch,
            patch_bias,
            gain1,
            heads,
            out_bias,
            gain2,
            fc1,
            fc1_bias,
            fc2,
            fc2_bias,
            head,
            head_bias,
        } = &mut weights;
        let mut codes = vec![patch, fc1, fc2, head];
        let mut values = vec![patch_bias, gain1, out_bias, gain2, fc1_bias, fc2_bias, head_bias];
        for head in heads {
            codes.extend([&mut head.query_key, &mut head.value, &mut head.out_proj]);
            values.push(&mut head.score_bias);
        }
        codes.into_iter().for_each(|codes| rng.fill(codes));
        // NaNs would not compare equal.
        let finite = |rng: &mut Rng| f16::from_bits(rng.u16(0..0x7C00) | rng.u16(0..2) << 15);
        values.into_iter().flatten().for_each(|value| *value = finite(&mut rng));
        weights
    }

    #[test]
    fn packing_leads_back_for_every_sibling() {
        for (channels, coarse_channels, slabs, heads) in
            [(96, 128, 4, 4), (64, 96, 2, 2), (128, 160, 4, 4), (160, 160, 4, 8)]
        {
            let layout =
                WeightLayout::new(WeightShape { channels, coarse_channels, slabs, heads, outputs: 16 }).unwrap();
            let weights = random(layout.shape(), channels.into());
            let image = weights.pack(&layout).unwrap();
            assert_eq!(image.len(), layout.bytes() as usize);
            assert!(DenseWeights::unpack(&image, &layout).unwrap() == weights);
            // And the other way: an image has no byte that weights do not.
            let mut any = vec![0; image.len()];
            Rng::with_seed(7).fill(&mut any);
            assert!(DenseWeights::unpack(&any, &layout).unwrap().pack(&layout).unwrap() == any);
        }
    }

    /// A weight's place as the phases' block order and the closed form have it.
    #[test]
    fn elements_are_where_lanes_look_for_them() {
        let layout = WeightLayout::dec2().unwrap();
        let weights = random(layout.shape(), 1);
        let image = weights.pack(&layout).unwrap();
        let byte =
            |base: u32, block: u32, column: u32, k: u32| image[(base + 512 * block + block_byte(column, k)) as usize];
        let half = |at: u32| f16::from_bits(u16::from_le_bytes([image[at as usize], image[at as usize + 1]]));
        for (column, k) in (0..16).flat_map(|column| (0..32).map(move |k| (column, k))) {
            for z in 0..4 {
                for (group, step) in (0..6).flat_map(|group| (0..4).map(move |step| (group, step))) {
                    let (n, k_all) = (96 * z + 16 * group + column, 32 * step + k);
                    assert_eq!(byte(12288 * z, 4 * group + step, column, k), weights.patch[(k_all * 384 + n) as usize]);
                }
                let head = &weights.heads[z as usize];
                for (slice, group) in (0..3).flat_map(|slice| (0..2).map(move |group| (slice, group))) {
                    let at = ((32 * slice + k) * 32 + 16 * group + column) as usize;
                    assert_eq!(byte(50112 + 21504 * z + 1024 * slice, group, column, k), head.query_key[at]);
                    assert_eq!(byte(53184 + 21504 * z + 1024 * slice, group, column, k), head.value[at]);
                }
                for group in 0..6 {
                    assert_eq!(
                        byte(68544 + 21504 * z, group, column, k),
                        head.out_proj[(k * 96 + 16 * group + column) as usize]
                    );
                }
            }
            for chunk in 0..12 {
                let first = if chunk == 0 { 136_512 } else { 142_912 + 6208 * (chunk - 1) };
                let second = if chunk == 0 { 139_648 } else { 146_048 + 6208 * (chunk - 1) };
                for (group, step) in (0..2).flat_map(|group| (0..3).map(move |step| (group, step))) {
                    let at = (32 * step + k) * 384 + 32 * chunk + 16 * group + column;
                    assert_eq!(byte(first, 3 * group + step, column, k), weights.fc1[at as usize]);
                }
                for group in 0..6 {
                    assert_eq!(
                        byte(second, group, column, k),
                        weights.fc2[((32 * chunk + k) * 96 + 16 * group + column) as usize]
                    );
                }
            }
            for step in 0..3 {
                assert_eq!(byte(211_200, step, column, k), weights.head[((32 * step + k) * 16 + column) as usize]);
            }
        }
        for c in 0..96 {
            let at = c as usize;
            assert_eq!((half(49920 + 2 * c), half(136_128 + 2 * c)), (weights.gain1[at], weights.out_bias[at]));
            assert_eq!((half(136_320 + 2 * c), half(142_720 + 2 * c)), (weights.gain2[at], weights.fc2_bias[at]));
            assert_eq!(half(49152 + 192 * 3 + 2 * c), weights.patch_bias[288 + at]);
        }
        assert_eq!((half(145_984 + 2), half(212_736 + 30)), (weights.fc1_bias[33], weights.head_bias[15]));
        assert_eq!(half(56256 + 21504 * 2 + score_bias_byte(17, 70)), weights.heads[2].score_bias[17 * 96 + 70]);
    }

    #[test]
    fn wrong_lengths_are_told() {
        let layout = WeightLayout::dec2().unwrap();
        let told = |change: fn(&mut DenseWeights)| {
            let mut weights = DenseWeights::zeros(layout.shape());
            change(&mut weights);
            weights.pack(&layout).unwrap_err().to_string()
        };
        assert_eq!(told(|w| w.patch.truncate(49151)), "weights: patch has 49151 elements, not 49152");
        assert_eq!(told(|w| w.heads.truncate(3)), "weights: heads has 3 elements, not 4");
        assert_eq!(
            told(|w| w.heads[2].score_bias.push(f16::ONE)),
            "weights: heads[2].score_bias has 6145 elements, not 6144"
        );
        let short = DenseWeights::unpack(&[0; 212_756], &layout).unwrap_err();
        assert_eq!(short.to_string(), "weights: the image has 212756 elements, not 212768");
    }
}
