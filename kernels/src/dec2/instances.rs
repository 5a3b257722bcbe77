//! The thirty-eight epilogues, as what they are: thirteen stages with parameters.
//!
//! An epilogue prepares the operands of the product behind it. Eleven of them are one row of the table with other offsets, eleven
//! another, five are a load.

use super::phases::{Base, PHASES};
use super::weights::{LayoutError, WeightItem, WeightLayout};

/// A stage with its parameters. Tables and bases are offsets in the weight image, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Stage {
    /// The workgroup comes together; no stage of its own.
    Barrier,
    /// V0: B fragments, `blocks` vectors of 16 bytes a lane.
    LoadB {
        /// First block.
        base: Base,
        /// How many.
        blocks: u32,
    },
    /// V0: C as a value for each column.
    LoadCol {
        /// The table.
        base: Base,
        /// Tiles of 8 columns.
        tiles: u32,
    },
    /// V1: expanded patches, quantised, to the patch grid.
    PatchScatter,
    /// V2: the grid's cells and skip features, added.
    SkipResidual,
    /// V3: norm of `rows` row halves a lane.
    RowNorm {
        /// Row halves: 4 with the halo, 2 without.
        rows: u32,
        /// Table of gains.
        gain: u32,
    },
    /// V4: `tiles` quads of A to shared memory.
    StageQuads {
        /// Of what.
        from: Quads,
        /// How many.
        tiles: u32,
    },
    /// V4: `tiles` quads of A from shared memory.
    LoadQuad {
        /// Of what.
        from: Quads,
        /// How many.
        tiles: u32,
    },
    /// V5: A, B and C of the scores, from the head's keys.
    ScoreSeed {
        /// Table of score biases.
        bias: Base,
        /// Vectors of 16 bytes a lane.
        blocks: u32,
    },
    /// V6: scores to probabilities, as A.
    CubicSoftmax,
    /// V7: the head's values, transposed, as B.
    TransposePack,
    /// V8: a value for each column plus the residual, as C.
    ColAdd {
        /// The table.
        table: u32,
    },
    /// V9: the activation, as A.
    CubicAct,
    /// V10: quads of A from f16 sums.
    PackQuads {
        /// How many.
        quads: u32,
    },
    /// V11: the block's result to the feature plane.
    PlaneScatter,
    /// V12: the head's outputs to shared memory, so that a lane gets all of a pixel's.
    StageOutputs,
    /// V12: filter and gate, to the image.
    KernelGate,
}

/// What lies in shared memory as quads.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Quads {
    /// The normed attention rows: a tile is 16 of the 96, and has three quads.
    Rows,
    /// The result of the warp's head: a tile is 16 of the 64 pixels, and has one quad.
    OwnHead,
    /// This head's result, of the warp's own 16 pixels.
    Head(u32),
}

impl Stage {
    /// Number of its kind, V0 to V12; `None` for a barrier.
    pub const fn kind(&self) -> Option<u32> {
        Some(match self {
            Self::Barrier => return None,
            Self::LoadB { .. } | Self::LoadCol { .. } => 0,
            Self::PatchScatter => 1,
            Self::SkipResidual => 2,
            Self::RowNorm { .. } => 3,
            Self::StageQuads { .. } | Self::LoadQuad { .. } => 4,
            Self::ScoreSeed { .. } => 5,
            Self::CubicSoftmax => 6,
            Self::TransposePack => 7,
            Self::ColAdd { .. } => 8,
            Self::CubicAct => 9,
            Self::PackQuads { .. } => 10,
            Self::PlaneScatter => 11,
            Self::StageOutputs | Self::KernelGate => 12,
        })
    }

    /// Name of the kind.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Barrier => "Barrier",
            Self::LoadB { .. } => "LoadB",
            Self::LoadCol { .. } => "LoadCol",
            Self::PatchScatter => "PatchScatter",
            Self::SkipResidual => "SkipResidual",
            Self::RowNorm { .. } => "RowNorm",
            Self::StageQuads { .. } => "StageQuads",
            Self::LoadQuad { .. } => "LoadQuad",
            Self::ScoreSeed { .. } => "ScoreSeed",
            Self::CubicSoftmax => "CubicSoftmax",
            Self::TransposePack => "TransposePack",
            Self::ColAdd { .. } => "ColAdd",
            Self::CubicAct => "CubicAct",
            Self::PackQuads { .. } => "PackQuads",
            Self::PlaneScatter => "PlaneScatter",
            Self::StageOutputs => "StageOutputs",
            Self::KernelGate => "KernelGate",
        }
    }
}

/// An epilogue: what happens between a product and the next.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Instance {
    /// Its number, that of the product before it.
    pub number: u32,
    /// Its stages, in order.
    pub stages: Vec<Stage>,
    /// Products whose sums it reads.
    pub reads: Vec<u32>,
    /// Products whose operands it prepares.
    pub feeds: Vec<u32>,
}

/// All epilogues, in order.
///
/// # Errors
/// The layout lacks a block of this network.
pub fn instances(layout: &WeightLayout) -> Result<Vec<Instance>, LayoutError> {
    (1..=PHASES).map(|number| instance(layout, number)).collect()
}

fn instance(layout: &WeightLayout, number: u32) -> Result<Instance, LayoutError> {
    use Stage::*;
    let of_warp = |of: &dyn Fn(u32) -> WeightItem| Base::between(layout, of);
    let same = |item| layout.offset(item).map(Base::same);
    let load = |item, blocks| same(item).map(|base| LoadB { base, blocks });
    let column_load = |item, tiles| same(item).map(|base| LoadCol { base, tiles });
    let rows = |tiles| LoadQuad { from: Quads::Rows, tiles };
    let head_tile = |head| LoadQuad { from: Quads::Head(head), tiles: 1 };
    // The first slice of queries comes with the rows; the others, and all of values, one epilogue each.
    let (stages, reads, feeds) = match number {
        1 => {
            let stage = StageQuads { from: Quads::Rows, tiles: 2 };
            let gain = layout.offset(WeightItem::Gain1)?;
            let first = of_warp(&|head| WeightItem::QueryKey { head, slice: 0 })?;
            let norm = RowNorm { rows: 4, gain };
            let load = LoadB { base: first, blocks: 2 };
            let stages = vec![PatchScatter, Barrier, SkipResidual, Barrier, norm, stage, Barrier, rows(6), load];
            (stages, vec![1], (2..=7).collect())
        }
        2..=6 => {
            let base = match number % 2 {
                0 => of_warp(&|head| WeightItem::Value { head, slice: number / 2 - 1 })?,
                _ => of_warp(&|head| WeightItem::QueryKey { head, slice: number / 2 })?,
            };
            (vec![LoadB { base, blocks: 2 }], vec![], vec![number + 1])
        }
        7 => {
            let bias = of_warp(&|head| WeightItem::ScoreBias { head })?;
            (vec![ScoreSeed { bias, blocks: 24 }], vec![6], vec![8])
        }
        8 => (vec![CubicSoftmax, TransposePack], vec![8, 7], vec![9]),
        9 => {
            let stage = StageQuads { from: Quads::OwnHead, tiles: 4 };
            let table = layout.offset(WeightItem::OutBias)?;
            let load = load(WeightItem::OutProj { head: 0 }, 6)?;
            (vec![Barrier, stage, Barrier, head_tile(0), load, ColAdd { table }], vec![9], vec![10])
        }
        10..=12 => {
            let head = number - 9;
            (vec![head_tile(head), load(WeightItem::OutProj { head }, 6)?], vec![], vec![number + 1])
        }
        13 => {
            let norm = RowNorm { rows: 2, gain: layout.offset(WeightItem::Gain2)? };
            let (first, bias) =
                (load(WeightItem::Fc1 { chunk: 0 }, 6)?, column_load(WeightItem::Fc1Bias { chunk: 0 }, 4)?);
            (vec![norm, PackQuads { quads: 3 }, first, bias], vec![13], vec![14])
        }
        14 => {
            let table = layout.offset(WeightItem::Fc2Bias)?;
            (vec![CubicAct, load(WeightItem::Fc2 { chunk: 0 }, 6)?, ColAdd { table }], vec![14, 13], vec![15])
        }
        37 => {
            let (head, bias) = (load(WeightItem::Head, 3)?, column_load(WeightItem::HeadBias, 2)?);
            (vec![PackQuads { quads: 3 }, PlaneScatter, head, bias], vec![37], vec![38])
        }
        38 => (vec![Barrier, StageOutputs, Barrier, KernelGate], vec![38], vec![]),
        _ if number % 2 == 1 => {
            let chunk = (number - 13) / 2;
            let (first, bias) = (load(WeightItem::Fc1 { chunk }, 6)?, column_load(WeightItem::Fc1Bias { chunk }, 4)?);
            (vec![PackQuads { quads: 3 }, first, bias], vec![], vec![number + 1])
        }
        _ => {
            let chunk = (number - 14) / 2;
            (vec![CubicAct, load(WeightItem::Fc2 { chunk }, 6)?], vec![number], vec![number + 1])
        }
    };
    Ok(Instance { number, stages, reads, feeds })
}

impl std::fmt::Display for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())?;
        match self {
            Self::LoadB { base, blocks } => write!(f, "({base}, {blocks} blocks)"),
            Self::LoadCol { base, tiles } => write!(f, "({base}, {tiles} tiles)"),
            Self::RowNorm { rows, gain } => write!(f, "({rows} rows, gain {gain})"),
            Self::StageQuads { from, tiles } | Self::LoadQuad { from, tiles } => write!(f, "({from}, {tiles})"),
            Self::ScoreSeed { bias, blocks } => write!(f, "({bias}, {blocks} blocks)"),
            Self::ColAdd { table } => write!(f, "({table})"),
            Self::PackQuads { quads } => write!(f, "({quads})"),
            _ => Ok(()),
        }
    }
}

impl std::fmt::Display for Quads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Rows => f.write_str("rows"),
            Self::OwnHead => f.write_str("own head"),
            Self::Head(head) => write!(f, "head {head}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dec2::phases::{Left, Right, Seed, phases};

    fn all() -> Vec<Instance> {
        instances(&WeightLayout::dec2().unwrap()).unwrap()
    }

    /// The table of the epilogues, offsets as they were read off, in the notation of [`Stage`]'s text.
    #[test]
    fn the_table() {
        let mut expected = vec![
            "PatchScatter; Barrier; SkipResidual; Barrier; RowNorm(4 rows, gain 49920); StageQuads(rows, 2); Barrier; \
             LoadQuad(rows, 6); LoadB(50112 + 21504 z, 2 blocks)"
                .to_owned(),
        ];
        for base in [53184, 51136, 54208, 52160, 55232] {
            expected.push(format!("LoadB({base} + 21504 z, 2 blocks)"));
        }
        expected.push("ScoreSeed(56256 + 21504 z, 24 blocks)".to_owned());
        expected.push("CubicSoftmax; TransposePack".to_owned());
        expected.push(
            "Barrier; StageQuads(own head, 4); Barrier; LoadQuad(head 0, 1); LoadB(68544, 6 blocks); ColAdd(136128)"
                .to_owned(),
        );
        for (head, base) in [(1, 90048), (2, 111_552), (3, 133_056)] {
            expected.push(format!("LoadQuad(head {head}, 1); LoadB({base}, 6 blocks)"));
        }
        expected.push(
            "RowNorm(2 rows, gain 136320); PackQuads(3); LoadB(136512, 6 blocks); LoadCol(139584, 4 tiles)".to_owned(),
        );
        expected.push("CubicAct; LoadB(139648, 6 blocks); ColAdd(142720)".to_owned());
        let firsts =
            [142_912, 149_120, 155_328, 161_536, 167_744, 173_952, 180_160, 186_368, 192_576, 198_784, 204_992];
        let biases =
            [145_984, 152_192, 158_400, 164_608, 170_816, 177_024, 183_232, 189_440, 195_648, 201_856, 208_064];
        let seconds =
            [146_048, 152_256, 158_464, 164_672, 170_880, 177_088, 183_296, 189_504, 195_712, 201_920, 208_128];
        for ((first, bias), second) in firsts.into_iter().zip(biases).zip(seconds) {
            expected.push(format!("PackQuads(3); LoadB({first}, 6 blocks); LoadCol({bias}, 4 tiles)"));
            expected.push(format!("CubicAct; LoadB({second}, 6 blocks)"));
        }
        expected.push("PackQuads(3); PlaneScatter; LoadB(211200, 3 blocks); LoadCol(212736, 2 tiles)".to_owned());
        expected.push("Barrier; StageOutputs; Barrier; KernelGate".to_owned());
        let found: Vec<_> =
            all().iter().map(|i| i.stages.iter().map(Stage::to_string).collect::<Vec<_>>().join("; ")).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn thirteen_kinds_and_seven_barriers() {
        let all = all();
        let stages: Vec<_> = all.iter().flat_map(|i| &i.stages).collect();
        let kinds: std::collections::BTreeSet<_> = stages.iter().filter_map(|s| s.kind()).collect();
        assert!(kinds.into_iter().eq(0..13));
        assert_eq!(stages.iter().filter(|s| ***s == Stage::Barrier).count(), 7);
        let same_row = |kind: fn(&Stage) -> bool| {
            all.iter().filter(|i| i.number >= 15 && i.number < 37 && i.stages.iter().any(kind)).count()
        };
        assert_eq!(same_row(|s| matches!(s, Stage::PackQuads { .. })), 11);
        assert_eq!(same_row(|s| matches!(s, Stage::CubicAct)), 11);
        assert_eq!(all.iter().filter(|i| matches!(i.stages[..], [Stage::LoadB { .. }])).count(), 5);
    }

    /// Every product gets its B and its tables from the epilogues before it, in the number of vectors that its shape needs.
    #[test]
    fn epilogues_feed_their_products() {
        let layout = WeightLayout::dec2().unwrap();
        let (all, products) = (all(), phases(&layout).unwrap());
        for product in &products[1..] {
            let feeding: Vec<_> = all.iter().filter(|i| i.feeds.contains(&product.number)).collect();
            assert!(feeding.iter().any(|i| i.number == product.number - 1), "phase {}", product.number);
            let stages: Vec<_> = all[product.number as usize - 2].stages.iter().collect();
            if let Right::Weights(base) = product.right {
                let blocks = product.n / 16 * (product.k / 32);
                assert!(stages.contains(&&Stage::LoadB { base, blocks }), "phase {}", product.number);
            }
            match product.seed {
                Seed::Columns(base) => assert!(stages.contains(&&Stage::LoadCol { base, tiles: product.n / 8 })),
                Seed::Residual { table } => assert!(stages.contains(&&Stage::ColAdd { table })),
                Seed::Scores(bias) => assert!(stages.contains(&&Stage::ScoreSeed { bias, blocks: 24 })),
                Seed::Result { phase } => assert!(phase + 2 >= product.number && phase < product.number),
                Seed::Zero => {}
            }
            if let Left::Head { head } = product.left {
                assert!(stages.contains(&&Stage::LoadQuad { from: Quads::Head(head), tiles: 1 }));
            }
        }
        for instance in &all {
            assert!(instance.reads.iter().all(|phase| *phase <= instance.number));
            assert!(instance.feeds.iter().all(|phase| *phase > instance.number));
        }
    }

    /// Words of weights that a lane loads, tables of f16 counted by element: as many as there are loads in the original.
    #[test]
    fn loads_of_weights() {
        let patch = 24 * 4 + 12;
        let of_stage = |stage: &Stage| match stage {
            Stage::LoadB { blocks, .. } | Stage::ScoreSeed { blocks, .. } => 4 * blocks,
            Stage::LoadCol { tiles, .. } => *tiles,
            Stage::RowNorm { .. } | Stage::ColAdd { .. } => 2 * 12,
            _ => 0,
        };
        assert_eq!(patch + all().iter().flat_map(|i| &i.stages).map(of_stage).sum::<u32>(), 1082);
    }
}
