//! Where a weight image's blocks lie: a function of the network's shape.

use crate::dec2::fragment::{BLOCK_BYTES, BLOCK_COLUMNS, STEP};
use crate::dec2::{CHANNELS, CHUNK, COARSE_CHANNELS, HEAD_WIDTH, KEYS, OUTPUTS, PIXELS, WARPS};

/// What a decoder level's image depends on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct WeightShape {
    /// Channels of the level.
    pub channels: u32,
    /// Channels of the coarse features.
    pub coarse_channels: u32,
    /// Warps that share the patch expand's columns.
    pub slabs: u32,
    /// Attention heads.
    pub heads: u32,
    /// Outputs of the head.
    pub outputs: u32,
}

impl WeightShape {
    /// The block that [`dec2`](crate::dec2) is about.
    pub const DEC2: Self =
        Self { channels: CHANNELS, coarse_channels: COARSE_CHANNELS, slabs: WARPS, heads: WARPS, outputs: OUTPUTS };

    /// Columns of the patch expand that one slab makes.
    pub const fn slab_columns(&self) -> u32 {
        4 * self.channels / self.slabs
    }

    /// Slices of 32 channels.
    pub const fn slices(&self) -> u32 {
        self.channels / STEP
    }

    /// Chunks of 32 of the 4·`channels` hidden units.
    pub const fn chunks(&self) -> u32 {
        4 * self.channels / CHUNK
    }

    /// The blocks of its image in order, each with its bytes.
    pub fn items(&self) -> Vec<(WeightItem, u32)> {
        use WeightItem::*;
        let (c, columns, tile) = (self.channels, self.slab_columns(), HEAD_WIDTH * STEP);
        let mut items = vec![];
        items.extend((0..self.slabs).map(|slab| (Patch { slab }, columns * self.coarse_channels)));
        items.extend((0..self.slabs).map(|slab| (PatchBias { slab }, 2 * columns)));
        items.push((Gain1, 2 * c));
        for head in 0..self.heads {
            items.extend((0..self.slices()).map(|slice| (QueryKey { head, slice }, tile)));
            items.extend((0..self.slices()).map(|slice| (Value { head, slice }, tile)));
            items.extend([(ScoreBias { head }, 2 * PIXELS * KEYS), (OutProj { head }, HEAD_WIDTH * c)]);
        }
        items.extend([(OutBias, 2 * c), (Gain2, 2 * c)]);
        for chunk in 0..self.chunks() {
            items.extend([(Fc1 { chunk }, CHUNK * c), (Fc1Bias { chunk }, 2 * CHUNK), (Fc2 { chunk }, CHUNK * c)]);
            if chunk == 0 {
                items.push((Fc2Bias, 2 * c));
            }
        }
        items.extend([(Head, self.outputs * c), (HeadBias, 2 * self.outputs)]);
        items
    }
}

/// A block of an image. `slice` counts 32 rows of K.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum WeightItem {
    /// The patch expand's weights of a slab.
    Patch {
        /// Which.
        slab: u32,
    },
    /// The patch expand's bias of a slab.
    PatchBias {
        /// Which.
        slab: u32,
    },
    /// Gain of the norm before attention.
    Gain1,
    /// Projection to queries, which are the keys too.
    QueryKey {
        /// Head.
        head: u32,
        /// Slice along K.
        slice: u32,
    },
    /// Projection to values.
    Value {
        /// Head.
        head: u32,
        /// Slice along K.
        slice: u32,
    },
    /// Bias of the scores, f16.
    ScoreBias {
        /// Head.
        head: u32,
    },
    /// Projection of a head's result.
    OutProj {
        /// Head.
        head: u32,
    },
    /// Bias of that projection.
    OutBias,
    /// Gain of the norm before the MLP.
    Gain2,
    /// To a chunk's hidden units.
    Fc1 {
        /// Chunk.
        chunk: u32,
    },
    /// Their bias.
    Fc1Bias {
        /// Chunk.
        chunk: u32,
    },
    /// From a chunk's hidden units.
    Fc2 {
        /// Chunk.
        chunk: u32,
    },
    /// The MLP's last bias.
    Fc2Bias,
    /// The head's weights.
    Head,
    /// The head's bias.
    HeadBias,
}

impl WeightItem {
    /// Whether lanes load 16 bytes of it at a time; of the others they load words.
    const fn is_vector(self) -> bool {
        use WeightItem::{Fc1, Fc2, Head, OutProj, Patch, QueryKey, ScoreBias, Value};
        matches!(
            self,
            Patch { .. }
                | QueryKey { .. }
                | Value { .. }
                | ScoreBias { .. }
                | OutProj { .. }
                | Fc1 { .. }
                | Fc2 { .. }
                | Head
        )
    }
}

impl std::fmt::Display for WeightItem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Patch { slab } => write!(f, "patch[{slab}]"),
            Self::PatchBias { slab } => write!(f, "patch_bias[{slab}]"),
            Self::Gain1 => f.write_str("gain1"),
            Self::QueryKey { head, slice } => write!(f, "query_key[{head}][{slice}]"),
            Self::Value { head, slice } => write!(f, "value[{head}][{slice}]"),
            Self::ScoreBias { head } => write!(f, "score_bias[{head}]"),
            Self::OutProj { head } => write!(f, "out_proj[{head}]"),
            Self::OutBias => f.write_str("out_bias"),
            Self::Gain2 => f.write_str("gain2"),
            Self::Fc1 { chunk } => write!(f, "fc1[{chunk}]"),
            Self::Fc1Bias { chunk } => write!(f, "fc1_bias[{chunk}]"),
            Self::Fc2 { chunk } => write!(f, "fc2[{chunk}]"),
            Self::Fc2Bias => f.write_str("fc2_bias"),
            Self::Head => f.write_str("head"),
            Self::HeadBias => f.write_str("head_bias"),
        }
    }
}

/// A block and where it lies.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct WeightBlock {
    /// What it holds.
    pub item: WeightItem,
    /// Its first byte.
    pub offset: u32,
    /// Its bytes.
    pub bytes: u32,
}

impl WeightBlock {
    /// Its bytes in the image.
    pub const fn range(&self) -> std::ops::Range<usize> {
        self.offset as usize..self.offset as usize + self.bytes as usize
    }
}

/// Why a shape has no image, or blocks are none.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LayoutError {
    /// A number of the shape does not fit fragments.
    #[error("weight shape: {what} is {value}; it must be a multiple of {of} from {of} to {most}")]
    Shape {
        /// Which.
        what: &'static str,
        /// Its value.
        value: u32,
        /// What it must be a multiple of.
        of: u32,
        /// Its largest value.
        most: u32,
    },
    /// The slabs cannot share the columns.
    #[error(
        "weight shape: {columns} columns of the patch expand are not {slabs} slabs of a multiple of {BLOCK_COLUMNS}"
    )]
    Slabs {
        /// Columns.
        columns: u32,
        /// Slabs.
        slabs: u32,
    },
    /// The heads do not make up the channels.
    #[error("weight shape: {heads} heads; there must be from 1 to 64")]
    Heads {
        /// Heads.
        heads: u32,
    },
    /// Two blocks share bytes.
    #[error("weight image: {first} ends at byte {end}, {second} begins at {begin}")]
    Overlap {
        /// The one before.
        first: WeightItem,
        /// Its end.
        end: u64,
        /// The one behind.
        second: WeightItem,
        /// Its first byte.
        begin: u32,
    },
    /// Bytes that no block has.
    #[error("weight image: bytes {from} to {to} belong to no block")]
    Gap {
        /// First.
        from: u64,
        /// One past the last.
        to: u64,
    },
    /// The buffer is not as long as the blocks.
    #[error("weight image: the blocks end at byte {end}, the buffer has {bytes}")]
    Size {
        /// End of the last block.
        end: u64,
        /// Bytes of the buffer.
        bytes: u64,
    },
    /// A block that lanes could not load.
    #[error("weight image: {item} begins at byte {offset}, which is no multiple of {align}")]
    Align {
        /// It.
        item: WeightItem,
        /// Its first byte.
        offset: u32,
        /// Bytes of a load.
        align: u32,
    },
    /// Two blocks of one name.
    #[error("weight image: {item} is there twice")]
    Twice {
        /// It.
        item: WeightItem,
    },
    /// There is no such block.
    #[error("weight image: there is no {item}")]
    Missing {
        /// It.
        item: WeightItem,
    },
    /// A block that the shape does not have, or not with that length.
    #[error("weight image: {item} with {bytes} bytes is no block of {shape:?}")]
    Foreign {
        /// It.
        item: WeightItem,
        /// Its bytes.
        bytes: u32,
        /// The shape.
        shape: WeightShape,
    },
}

/// The blocks of an image, in order: disjoint, without gaps, as long as the image, aligned for the loads that read them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WeightLayout {
    shape: WeightShape,
    blocks: Vec<WeightBlock>,
    bytes: u32,
}

impl WeightLayout {
    /// The image of a shape.
    ///
    /// # Errors
    /// The shape does not fit fragments.
    pub fn new(shape: WeightShape) -> Result<Self, LayoutError> {
        check_shape(&shape)?;
        let mut end = 0;
        let mut place = |(item, bytes)| {
            let block = WeightBlock { item, offset: end, bytes };
            end += bytes;
            block
        };
        let blocks = shape.items().into_iter().map(&mut place).collect();
        Self::of_blocks(shape, blocks, u64::from(end))
    }

    /// The image of the block that [`dec2`](crate::dec2) is about: 212,768 bytes.
    ///
    /// # Errors
    /// None: its shape fits.
    pub fn dec2() -> Result<Self, LayoutError> {
        Self::new(WeightShape::DEC2)
    }

    /// An image of these blocks, in any order, in a buffer of `bytes`.
    ///
    /// # Errors
    /// The blocks are not the shape's, overlap, leave a gap, are misaligned or not as long as the buffer.
    pub fn of_blocks(shape: WeightShape, mut blocks: Vec<WeightBlock>, bytes: u64) -> Result<Self, LayoutError> {
        check_shape(&shape)?;
        blocks.sort_by_key(|b| b.offset);
        let mut missing: std::collections::BTreeMap<_, _> = shape.items().into_iter().collect();
        let mut end = 0;
        let mut last = None;
        for block in &blocks {
            let WeightBlock { item, offset, bytes } = *block;
            match missing.remove(&item) {
                Some(own) if own == bytes => {}
                None if blocks.iter().filter(|b| b.item == item).count() > 1 => {
                    return Err(LayoutError::Twice { item });
                }
                _ => return Err(LayoutError::Foreign { item, bytes, shape }),
            }
            let align = if item.is_vector() { 16 } else { 4 };
            if offset % align != 0 {
                return Err(LayoutError::Align { item, offset, align });
            }
            match last {
                Some(first) if u64::from(offset) < end => {
                    return Err(LayoutError::Overlap { first, end, second: item, begin: offset });
                }
                _ if u64::from(offset) > end => return Err(LayoutError::Gap { from: end, to: offset.into() }),
                _ => {}
            }
            (last, end) = (Some(item), u64::from(offset) + u64::from(bytes));
        }
        if let Some(item) = missing.into_keys().next() {
            return Err(LayoutError::Missing { item });
        }
        if end != bytes {
            return Err(LayoutError::Size { end, bytes });
        }
        // Bounded by the shape's numbers, whose image is far below 2^32 bytes.
        let bytes = u32::try_from(bytes).map_err(|_| LayoutError::Size { end, bytes })?;
        Ok(Self { shape, blocks, bytes })
    }

    /// What it depends on.
    pub const fn shape(&self) -> &WeightShape {
        &self.shape
    }

    /// The blocks, in order.
    pub fn blocks(&self) -> &[WeightBlock] {
        &self.blocks
    }

    /// Bytes of the image.
    pub const fn bytes(&self) -> u32 {
        self.bytes
    }

    /// Where a block lies.
    ///
    /// # Errors
    /// There is no such block.
    pub fn block(&self, item: WeightItem) -> Result<WeightBlock, LayoutError> {
        self.blocks.iter().copied().find(|b| b.item == item).ok_or(LayoutError::Missing { item })
    }

    /// A block's first byte.
    ///
    /// # Errors
    /// There is no such block.
    pub fn offset(&self, item: WeightItem) -> Result<u32, LayoutError> {
        self.block(item).map(|b| b.offset)
    }
}

fn check_shape(shape: &WeightShape) -> Result<(), LayoutError> {
    let multiple = |what, value: u32, of: u32, most: u32| {
        if value == 0 || !value.is_multiple_of(of) || value > most {
            return Err(LayoutError::Shape { what, value, of, most });
        }
        Ok(())
    };
    multiple("channels", shape.channels, STEP, 512)?;
    multiple("coarse_channels", shape.coarse_channels, STEP, 1024)?;
    multiple("outputs", shape.outputs, BLOCK_COLUMNS, 64)?;
    if !(1..=64).contains(&shape.heads) {
        return Err(LayoutError::Heads { heads: shape.heads });
    }
    let columns = 4 * shape.channels;
    if shape.slabs == 0 || !columns.is_multiple_of(shape.slabs * BLOCK_COLUMNS) {
        return Err(LayoutError::Slabs { columns, slabs: shape.slabs });
    }
    Ok(())
}

// A block of K = 32 and 16 columns is what one load of all lanes brings.
const _: () = assert!(BLOCK_BYTES == STEP * BLOCK_COLUMNS);

#[cfg(test)]
mod tests {
    use super::*;
    use WeightItem::*;

    fn layout(channels: u32, coarse_channels: u32, slabs: u32, heads: u32) -> WeightLayout {
        WeightLayout::new(WeightShape { channels, coarse_channels, slabs, heads, outputs: 16 }).unwrap()
    }

    fn at(layout: &WeightLayout, expected: &[(WeightItem, u32)]) {
        for (item, offset) in expected {
            assert_eq!(layout.offset(*item), Ok(*offset), "{item}");
        }
    }

    #[test]
    fn dec2_is_where_it_was_measured() {
        let l = WeightLayout::dec2().unwrap();
        assert_eq!((l.blocks().len(), l.bytes()), (82, 212_768));
        for z in 0..4 {
            at(&l, &[(Patch { slab: z }, 12288 * z), (PatchBias { slab: z }, 49152 + 192 * z)]);
            let head = 21504 * z;
            for slice in 0..3 {
                at(&l, &[(QueryKey { head: z, slice }, 50112 + head + 1024 * slice)]);
                at(&l, &[(Value { head: z, slice }, 53184 + head + 1024 * slice)]);
            }
            at(&l, &[(ScoreBias { head: z }, 56256 + head), (OutProj { head: z }, 68544 + head)]);
        }
        at(
            &l,
            &[
                (Gain1, 49920),
                (OutBias, 136_128),
                (Gain2, 136_320),
                (Fc2Bias, 142_720),
                (Head, 211_200),
                (HeadBias, 212_736),
            ],
        );
        at(&l, &[(Fc1 { chunk: 0 }, 136_512), (Fc1Bias { chunk: 0 }, 139_584), (Fc2 { chunk: 0 }, 139_648)]);
        for j in 1..12 {
            let first = 142_912 + 6208 * (j - 1);
            at(
                &l,
                &[
                    (Fc1 { chunk: j }, first),
                    (Fc1Bias { chunk: j }, first + 3072),
                    (Fc2 { chunk: j }, 146_048 + 6208 * (j - 1)),
                ],
            );
        }
        let bytes = |item| l.block(item).unwrap().bytes;
        assert_eq!(
            [Patch { slab: 0 }, PatchBias { slab: 0 }, Gain1, ScoreBias { head: 0 }].map(bytes),
            [12288, 192, 192, 12288]
        );
        assert_eq!(
            [QueryKey { head: 0, slice: 0 }, OutProj { head: 3 }, Fc1 { chunk: 5 }].map(bytes),
            [1024, 3072, 3072]
        );
        assert_eq!([Fc1Bias { chunk: 5 }, Head, HeadBias].map(bytes), [64, 1536, 32]);
        assert!(l.blocks().iter().all(|b| b.offset % 16 == 0));
        // Without the blocks of warps 1 to 3 most of the image would never be read.
        let read = l.blocks().iter().filter(|b| {
            !matches!(b.item, QueryKey { head: 1.., .. } | Value { head: 1.., .. } | ScoreBias { head: 1.. })
        });
        assert_eq!(l.bytes() - read.map(|b| b.bytes).sum::<u32>(), 3 * 18432);
    }

    #[test]
    fn the_same_function_gives_its_siblings() {
        let one = layout(64, 96, 2, 2);
        at(&one, &[(Patch { slab: 1 }, 12288), (PatchBias { slab: 0 }, 24576), (PatchBias { slab: 1 }, 24576 + 256)]);
        at(
            &one,
            &[(Gain1, 25088), (QueryKey { head: 0, slice: 0 }, 25216), (QueryKey { head: 1, slice: 0 }, 25216 + 18432)],
        );
        at(&one, &[(ScoreBias { head: 0 }, 29312), (OutProj { head: 0 }, 41600), (OutBias, 62080), (Gain2, 62208)]);
        at(
            &one,
            &[(Fc1 { chunk: 0 }, 62336), (Fc1Bias { chunk: 0 }, 64384), (Fc2 { chunk: 0 }, 64448), (Fc2Bias, 66496)],
        );
        at(&one, &[(Head, 95744), (HeadBias, 96768)]);
        assert_eq!(one.bytes(), 96800);
        let three = layout(128, 160, 4, 4);
        at(&three, &[(Patch { slab: 1 }, 20480), (PatchBias { slab: 0 }, 81920), (PatchBias { slab: 1 }, 81920 + 256)]);
        at(
            &three,
            &[(Gain1, 82944), (QueryKey { head: 0, slice: 0 }, 83200), (QueryKey { head: 1, slice: 0 }, 83200 + 24576)],
        );
        at(
            &three,
            &[(OutBias, 181_504), (Gain2, 181_760), (Fc1 { chunk: 0 }, 182_016), (Fc1Bias { chunk: 0 }, 186_112)],
        );
        at(&three, &[(Fc1Bias { chunk: 2 }, 186_112 + 2 * 8256 + 256), (Head, 314_368), (HeadBias, 316_416)]);
        let four = layout(160, 160, 4, 8);
        at(
            &four,
            &[(Patch { slab: 1 }, 25600), (PatchBias { slab: 0 }, 102_400), (Gain1, 103_680), (OutBias, 325_184)],
        );
        at(&four, &[(QueryKey { head: 0, slice: 0 }, 104_000), (QueryKey { head: 1, slice: 0 }, 104_000 + 27648)]);
        at(&four, &[(ScoreBias { head: 0 }, 114_240), (OutProj { head: 0 }, 126_528), (Gain2, 325_504)]);
        at(&four, &[(Fc1Bias { chunk: 0 }, 330_944), (Fc2 { chunk: 0 }, 331_008), (Fc2Bias, 336_128)]);
        at(&four, &[(Head, 532_224), (HeadBias, 534_784)]);
    }

    #[test]
    fn impossible_shapes_are_refused() {
        let told = |change: fn(&mut WeightShape)| {
            let mut shape = WeightShape::DEC2;
            change(&mut shape);
            WeightLayout::new(shape).unwrap_err().to_string()
        };
        assert_eq!(
            told(|s| s.channels = 80),
            "weight shape: channels is 80; it must be a multiple of 32 from 32 to 512"
        );
        assert_eq!(
            told(|s| s.coarse_channels = 0),
            "weight shape: coarse_channels is 0; it must be a multiple of 32 from 32 to 1024"
        );
        assert_eq!(told(|s| s.outputs = 10), "weight shape: outputs is 10; it must be a multiple of 16 from 16 to 64");
        assert_eq!(told(|s| s.heads = 0), "weight shape: 0 heads; there must be from 1 to 64");
        assert_eq!(
            told(|s| s.slabs = 5),
            "weight shape: 384 columns of the patch expand are not 5 slabs of a multiple of 16"
        );
        assert_eq!(
            told(|s| s.slabs = 0),
            "weight shape: 384 columns of the patch expand are not 0 slabs of a multiple of 16"
        );
    }

    #[test]
    fn blocks_that_are_no_image_are_refused() {
        let good = WeightLayout::dec2().unwrap();
        let bytes = u64::from(good.bytes());
        let of = |change: &dyn Fn(&mut Vec<WeightBlock>), bytes| {
            let mut blocks = good.blocks().to_vec();
            change(&mut blocks);
            WeightLayout::of_blocks(WeightShape::DEC2, blocks, bytes)
        };
        let told = |change: &dyn Fn(&mut Vec<WeightBlock>), bytes| of(change, bytes).unwrap_err().to_string();
        assert_eq!(of(&|b| b.reverse(), bytes), Ok(good.clone()));
        assert_eq!(
            told(&|b| b[1].offset -= 16, bytes),
            "weight image: patch[0] ends at byte 12288, patch[1] begins at 12272"
        );
        assert_eq!(
            told(&|b| b[81].offset += 16, bytes + 16),
            "weight image: bytes 212736 to 212752 belong to no block"
        );
        assert_eq!(told(&|b| b[0].offset = 32, bytes), "weight image: bytes 0 to 32 belong to no block");
        assert!(
            told(&|b| b[1].bytes -= 16, bytes).starts_with("weight image: patch[1] with 12272 bytes is no block of ")
        );
        let foreign = |b: &mut Vec<WeightBlock>| b[1].item = Patch { slab: 4 };
        assert!(told(&foreign, bytes).starts_with("weight image: patch[4] with 12288 bytes is no block of "));
        assert_eq!(told(&|b| b.truncate(81), bytes - 32), "weight image: there is no head_bias");
        assert_eq!(told(&|_| {}, bytes + 4), "weight image: the blocks end at byte 212768, the buffer has 212772");
        assert_eq!(
            told(&|b| b[1].offset += 4, bytes),
            "weight image: patch[1] begins at byte 12292, which is no multiple of 16"
        );
        assert_eq!(
            told(&|b| b[8].offset += 2, bytes),
            "weight image: gain1 begins at byte 49922, which is no multiple of 4"
        );
        assert_eq!(told(&|b| b[1].item = Patch { slab: 0 }, bytes), "weight image: patch[0] is there twice");
        assert_eq!(good.offset(OutProj { head: 4 }).unwrap_err().to_string(), "weight image: there is no out_proj[4]");
    }
}
