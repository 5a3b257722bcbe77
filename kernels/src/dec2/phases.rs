//! The thirty-eight matrix products of the block.

use super::fragment::STEP;
use super::weights::{LayoutError, WeightItem, WeightLayout};
use super::{CHANNELS, CHUNK, CHUNKS, COARSE_CHANNELS, COARSE_ROWS, HEAD_WIDTH, KEYS, OUTPUTS, PIXELS, WARPS};

/// Number of products, and of the epilogues behind them.
pub const PHASES: u32 = 38;

/// Rows of a warp's own tile.
const TILE: u32 = 16;

/// Where a weight block of a product lies: `base + z_stride · z`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Base {
    /// That of warp 0.
    pub base: u32,
    /// From a warp to the next; 0 if all use the same.
    pub z_stride: u32,
}

impl Base {
    pub(super) const fn same(base: u32) -> Self {
        Self { base, z_stride: 0 }
    }

    /// Of two blocks of neighbouring warps.
    pub(super) fn between(layout: &WeightLayout, of: impl Fn(u32) -> WeightItem) -> Result<Self, LayoutError> {
        let [first, second] = [layout.offset(of(0))?, layout.offset(of(1))?];
        Ok(Self { base: first, z_stride: second - first })
    }

    /// Of a warp.
    pub const fn of(&self, z: u32) -> u32 {
        self.base + self.z_stride * z
    }
}

impl std::fmt::Display for Base {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.z_stride {
            0 => write!(f, "{}", self.base),
            stride => write!(f, "{} + {stride} z", self.base),
        }
    }
}

/// The left factor of a product.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Left {
    /// Coarse pixels, 36 of them.
    Coarse,
    /// Slice `slice` of 32 channels of the normed attention rows.
    Rows {
        /// Which.
        slice: u32,
    },
    /// The window's rows of the head's queries, D6.
    Queries,
    /// The head's probabilities.
    Probabilities,
    /// Head `head`'s result, of the warp's own tile.
    Head {
        /// Which.
        head: u32,
    },
    /// The warp's own tile, normed.
    Normed,
    /// The activated result of the product before.
    Activated,
    /// The block's result.
    Features,
}

/// The right factor of a product.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Right {
    /// Weights: 16 columns have all their K, then the next 16 follow.
    Weights(Base),
    /// All rows of the head's keys, D6, transposed.
    Keys,
    /// The head's values, D7.
    Values,
}

/// What a product is added to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Seed {
    /// Nothing.
    Zero,
    /// A value for each column.
    Columns(Base),
    /// A value for each score.
    Scores(Base),
    /// A value for each column and the tile's residual.
    Residual {
        /// The columns' table.
        table: u32,
    },
    /// The result of another product.
    Result {
        /// Its number.
        phase: u32,
    },
}

/// A product of the block, for one warp: D = A·B + C.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Phase {
    /// Its number, 1 to 38.
    pub number: u32,
    /// Rows.
    pub m: u32,
    /// Columns.
    pub n: u32,
    /// Depth.
    pub k: u32,
    /// A.
    pub left: Left,
    /// B.
    pub right: Right,
    /// C.
    pub seed: Seed,
}

impl Phase {
    /// Steps of 16×8×32.
    pub const fn steps(&self) -> u32 {
        self.m / 16 * (self.n / 8) * (self.k / STEP)
    }
}

/// All products, in order.
///
/// # Errors
/// The layout lacks a block of this network.
pub fn phases(layout: &WeightLayout) -> Result<Vec<Phase>, LayoutError> {
    let mut phases = vec![];
    let mut push = |[m, n, k]: [u32; 3], left, right, seed| {
        let number = phases.len() as u32 + 1;
        phases.push(Phase { number, m, n, k, left, right, seed });
    };
    let weights = |of: &dyn Fn(u32) -> WeightItem| Base::between(layout, of);
    let same = |item| layout.offset(item).map(Base::same);

    let patch = weights(&|slab| WeightItem::Patch { slab })?;
    let bias = weights(&|slab| WeightItem::PatchBias { slab })?;
    push([COARSE_ROWS, CHANNELS, COARSE_CHANNELS], Left::Coarse, Right::Weights(patch), Seed::Columns(bias));
    for slice in 0..CHANNELS / STEP {
        let seed = |last: u32| if slice == 0 { Seed::Zero } else { Seed::Result { phase: last } };
        let query_key = weights(&|head| WeightItem::QueryKey { head, slice })?;
        let value = weights(&|head| WeightItem::Value { head, slice })?;
        push([KEYS, HEAD_WIDTH, STEP], Left::Rows { slice }, Right::Weights(query_key), seed(2 * slice));
        push([KEYS, HEAD_WIDTH, STEP], Left::Rows { slice }, Right::Weights(value), seed(2 * slice + 1));
    }
    let bias = weights(&|head| WeightItem::ScoreBias { head })?;
    push([PIXELS, KEYS, HEAD_WIDTH], Left::Queries, Right::Keys, Seed::Scores(bias));
    push([PIXELS, HEAD_WIDTH, KEYS], Left::Probabilities, Right::Values, Seed::Zero);
    for head in 0..WARPS {
        let seed = match head {
            0 => Seed::Residual { table: layout.offset(WeightItem::OutBias)? },
            _ => Seed::Result { phase: 9 + head },
        };
        let out = same(WeightItem::OutProj { head })?;
        push([TILE, CHANNELS, HEAD_WIDTH], Left::Head { head }, Right::Weights(out), seed);
    }
    for chunk in 0..CHUNKS {
        let first = same(WeightItem::Fc1 { chunk })?;
        let bias = same(WeightItem::Fc1Bias { chunk })?;
        push([TILE, CHUNK, CHANNELS], Left::Normed, Right::Weights(first), Seed::Columns(bias));
        let seed = match chunk {
            0 => Seed::Residual { table: layout.offset(WeightItem::Fc2Bias)? },
            _ => Seed::Result { phase: 13 + 2 * chunk },
        };
        push([TILE, CHANNELS, CHUNK], Left::Activated, Right::Weights(same(WeightItem::Fc2 { chunk })?), seed);
    }
    let (head, bias) = (same(WeightItem::Head)?, same(WeightItem::HeadBias)?);
    push([TILE, OUTPUTS, CHANNELS], Left::Features, Right::Weights(head), Seed::Columns(bias));
    Ok(phases)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_and_operands_are_those_of_the_table() {
        let all = phases(&WeightLayout::dec2().unwrap()).unwrap();
        assert_eq!(all.len(), PHASES as usize);
        let weights = |base, z_stride| Right::Weights(Base { base, z_stride });
        let columns = |base, z_stride| Seed::Columns(Base { base, z_stride });
        for (i, p) in all.iter().enumerate() {
            let number = i as u32 + 1;
            assert_eq!(p.number, number);
            let j = number.saturating_sub(14) / 2;
            let (shape, steps, left, right, seed) = match number {
                1 => ([48, 96, 128], 144, Left::Coarse, weights(0, 12288), columns(49152, 192)),
                2..=7 => {
                    let (slice, value) = (number / 2 - 1, number % 2);
                    let seed = if slice == 0 { Seed::Zero } else { Seed::Result { phase: number - 2 } };
                    ([96, 32, 32], 24, Left::Rows { slice }, weights(50112 + 1024 * slice + 3072 * value, 21504), seed)
                }
                8 => {
                    ([64, 96, 32], 48, Left::Queries, Right::Keys, Seed::Scores(Base { base: 56256, z_stride: 21504 }))
                }
                9 => ([64, 32, 96], 48, Left::Probabilities, Right::Values, Seed::Zero),
                10..=13 => {
                    let head = number - 10;
                    let seed =
                        if head == 0 { Seed::Residual { table: 136_128 } } else { Seed::Result { phase: number - 1 } };
                    ([16, 96, 32], 12, Left::Head { head }, weights(68544 + 21504 * head, 0), seed)
                }
                38 => ([16, 16, 96], 6, Left::Features, weights(211_200, 0), columns(212_736, 0)),
                _ if number.is_multiple_of(2) => {
                    let first = if j == 0 { 136_512 } else { 142_912 + 6208 * (j - 1) };
                    ([16, 32, 96], 12, Left::Normed, weights(first, 0), columns(first + 3072, 0))
                }
                _ => {
                    let second = if j == 0 { 139_648 } else { 146_048 + 6208 * (j - 1) };
                    let seed =
                        if j == 0 { Seed::Residual { table: 142_720 } } else { Seed::Result { phase: number - 2 } };
                    ([16, 96, 32], 12, Left::Activated, weights(second, 0), seed)
                }
            };
            assert_eq!(*p, Phase { number, m: shape[0], n: shape[1], k: shape[2], left, right, seed });
            assert_eq!(p.steps(), steps, "phase {number}");
        }
        assert_eq!(all.iter().map(Phase::steps).sum::<u32>(), 726);
        let firsts: Vec<_> = all[13..37]
            .iter()
            .map(|p| match p.right {
                Right::Weights(base) => base.base,
                _ => 0,
            })
            .collect();
        let expected = [
            136_512, 139_648, 142_912, 146_048, 149_120, 152_256, 155_328, 158_464, 161_536, 164_672, 167_744, 170_880,
            173_952, 177_088, 180_160, 183_296, 186_368, 189_504, 192_576, 195_712, 198_784, 201_920, 204_992, 208_128,
        ];
        assert_eq!(firsts, expected);
    }

    #[test]
    fn another_network_is_told() {
        let shape = super::super::weights::WeightShape {
            channels: 64,
            heads: 2,
            slabs: 2,
            ..super::super::weights::WeightShape::DEC2
        };
        let told = phases(&WeightLayout::new(shape).unwrap()).unwrap_err().to_string();
        assert_eq!(told, "weight image: there is no query_key[0][2]");
    }
}
