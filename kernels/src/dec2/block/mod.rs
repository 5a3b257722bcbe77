//! `dec2`: the whole block in one launch.
//!
//! Per warp: the patch expand's product, then 38 times an epilogue and the product that it prepares. Between products everything is in
//! registers but for what warps hand to each other through 9600 bytes of shared memory; seven times the workgroup comes together.

mod launch;
pub mod problem;
mod run;

pub use launch::{LaunchError, Sent};
pub(crate) use run::checks;

use lathe_dsl::prelude::*;

use crate::dec2::geometry::{Extents, Geometry, GeometryError, MAX_SIDE, Origin};
use crate::dec2::images;
use crate::dec2::instances::{Instance, Stage, instances};
use crate::dec2::options::{
    ActRound, CoarseBorder, CoarseExtent, ColourFilter, MmaAcc, NanSign, ReduceTree, SkipBorder, SubpixelOrder,
    TapBorder, TapOrder, of_key,
};
use crate::dec2::phases::{Base, Left, PHASES, Phase, Right, Seed, phases};
use crate::dec2::plane::PlaneLayout;
use crate::dec2::stages::epilogue::{Outside, Registers};
use crate::dec2::stages::kernel_gate::Images;
use crate::dec2::stages::multiply::Coarse;
use crate::dec2::stages::skip_residual::Window;
use crate::dec2::stages::warp::Warp;
use crate::dec2::weights::{WeightItem, WeightLayout};
use crate::dec2::{CHANNELS, CHUNKS, COARSE_CHANNELS, LANES, WARPS};

build_key! {
    /// The block on an image of `ex`×`ey` pixels.
    pub struct Dec2 {
        /// Width of the image.
        ex: u32 = 64, range(1, MAX_SIDE);
        /// Height of the image.
        ey: u32 = 48, range(1, MAX_SIDE);
        /// Pixels that the first window lies to the left of the image; even.
        ox: u32 = 4, range(0, 65534);
        /// Pixels that it lies above the image; even.
        oy: u32 = 4, range(0, 65534);
        /// Width of the colour image.
        colour_width: u32 = 64, range(1, 65536);
        /// Height of the colour image.
        colour_height: u32 = 48, range(1, 65536);
        /// Option `mma_acc`.
        mma_acc: u32 = 0, range(0, MmaAcc::ALL.len() as u32 - 1);
        /// Option `act_round`.
        act_round: u32 = 0, range(0, ActRound::ALL.len() as u32 - 1);
        /// Option `reduce_tree`.
        reduce_tree: u32 = 0, range(0, ReduceTree::ALL.len() as u32 - 1);
        /// Option `nan_sign`.
        nan_sign: u32 = 0, range(0, NanSign::ALL.len() as u32 - 1);
        /// Option `subpixel_order`.
        subpixel_order: u32 = 0, range(0, SubpixelOrder::ALL.len() as u32 - 1);
        /// Option `skip_border`.
        skip_border: u32 = 0, range(0, SkipBorder::ALL.len() as u32 - 1);
        /// Option `coarse_border`.
        coarse_border: u32 = 0, range(0, CoarseBorder::ALL.len() as u32 - 1);
        /// Option `coarse_extent`.
        coarse_extent: u32 = 0, range(0, CoarseExtent::ALL.len() as u32 - 1);
        /// Option `tap_border`.
        tap_border: u32 = 0, range(0, TapBorder::ALL.len() as u32 - 1);
        /// Option `tap_order`.
        tap_order: u32 = 0, range(0, TapOrder::ALL.len() as u32 - 1);
        /// Option `colour_filter`.
        colour_filter: u32 = 0, range(0, ColourFilter::ALL.len() as u32 - 1);
        /// What reads and stores texels: 0 texture units where the target has them, 1 texture units, 2 buffers.
        textures: u32 = 0, range(0, images::MOST_UNITS);
    }
}

kernel_args! {
    /// Arguments of [`Dec2`].
    pub struct Dec2Args(key: Dec2) {
        /// The weight image.
        image: In<u8>[WeightLayout::dec2().map_or(0, |layout| layout.bytes().into())] align 16;
        /// Coarse features, e4m3 planes of 128 channels at half the extents.
        coarse: In<u32>[key.coarse_plane().words()] align 16;
        /// Skip features, e4m3 planes of 96 channels.
        skip: In<u32>[key.plane().words()] align 16;
        /// Features of the block, as `skip`.
        arena: Out<u32>[key.plane().words()] align 16;
        /// The image that is filtered, `[colour_height][colour_width][4]`.
        colour: Texture<f16>[images::colour(key.colour_width, key.colour_height, key.colour_filter, key.textures)];
        /// What a shut gate shows, `[ey][ex][4]`.
        blend: Texture<f16>[images::pixels(key.extents(), key.textures)];
        /// What is added where it is a number, `[ey][ex][4]`.
        offset: Texture<f16>[images::pixels(key.extents(), key.textures)];
        /// The result, `[ey][ex][4]`.
        surface: Surface<f16>[images::pixels(key.extents(), key.textures)];
        /// Width of a pixel where the colour image is 1 wide.
        sx: Scalar<f32>;
        /// Height of a pixel where the colour image is 1 high.
        sy: Scalar<f32>;
    }
}

of_key!(Dec2 {
    mma_acc: MmaAcc,
    act_round: ActRound,
    reduce_tree: ReduceTree,
    nan_sign: NanSign,
    subpixel_order: SubpixelOrder,
    skip_border: SkipBorder,
    coarse_border: CoarseBorder,
    coarse_extent: CoarseExtent,
    tap_border: TapBorder,
    tap_order: TapOrder,
    colour_filter: ColourFilter,
});

impl Dec2 {
    /// The image's extents.
    pub const fn extents(&self) -> Extents {
        Extents::new(self.ex, self.ey)
    }

    /// Extents and origin.
    ///
    /// # Errors
    /// There is no launch on such an image.
    pub fn geometry(&self) -> Result<Geometry, GeometryError> {
        // Both are in range by the key's limits.
        let rule = CoarseExtent::from_code(self.coarse_extent).unwrap_or_default();
        Geometry::whole(self.extents(), Origin::new(self.ox as u16, self.oy as u16), rule)
    }

    /// Skip features' and the arena's layout.
    pub const fn plane(&self) -> PlaneLayout {
        PlaneLayout::new(self.extents(), CHANNELS)
    }

    /// Coarse features' layout.
    pub fn coarse_plane(&self) -> PlaneLayout {
        let rule = CoarseExtent::from_code(self.coarse_extent).unwrap_or_default();
        PlaneLayout::new(self.extents().coarse(rule), COARSE_CHANNELS)
    }
}

/// The product behind the MLP's first chunk. From there on it is the same two epilogues and products for every chunk.
const FIRST_CHUNK: u32 = 15;

/// The product behind its last chunk.
const LAST_CHUNK: u32 = PHASES - 1;

/// The tables that a build follows.
struct Tables {
    epilogues: Vec<Instance>,
    products: Vec<Phase>,
    /// Bytes from the weights of a chunk to those of the next.
    stride: u32,
}

impl Tables {
    /// Of this network.
    ///
    /// # Errors
    /// The layout lacks a block, or its chunks do not lie evenly.
    fn new() -> Result<Self, String> {
        let layout = WeightLayout::dec2().map_err(|e| e.to_string())?;
        let epilogues = instances(&layout).map_err(|e| e.to_string())?;
        let products = phases(&layout).map_err(|e| e.to_string())?;
        let chunk = |chunk| layout.offset(WeightItem::Fc1 { chunk }).map_err(|e| e.to_string());
        let stride = chunk(2)? - chunk(1)?;
        let first = FIRST_CHUNK as usize - 1;
        for number in FIRST_CHUNK..LAST_CHUNK {
            let (template, after) = ((number - FIRST_CHUNK) % 2, (number - FIRST_CHUNK) / 2);
            let wanted: Vec<_> =
                epilogues[first + template as usize].stages.iter().map(|s| shifted(*s, after * stride)).collect();
            if wanted != epilogues[number as usize - 1].stages {
                return Err(format!(
                    "the weights of epilogue {number} do not lie {stride} bytes behind the chunk's before"
                ));
            }
        }
        Ok(Self { epilogues, products, stride })
    }
}

/// The stage with weights `by` bytes further on.
const fn shifted(stage: Stage, by: u32) -> Stage {
    const fn base(base: Base, by: u32) -> Base {
        Base { base: base.base + by, ..base }
    }
    match stage {
        Stage::LoadB { base: b, blocks } => Stage::LoadB { base: base(b, by), blocks },
        Stage::LoadCol { base: b, tiles } => Stage::LoadCol { base: base(b, by), tiles },
        other => other,
    }
}

impl Kernel for Dec2 {
    const NAME: &'static str = "dec2";
    type Args = Dec2Args;

    fn check(&self) -> Result<(), String> {
        self.geometry().map_err(|e| e.to_string())?;
        let options = self.options().map_err(|e| e.to_string())?;
        options.check_for_kernels().map_err(|e| e.to_string())?;
        Tables::new().map(|_| ())
    }

    fn launch(&self) -> Launch {
        let [x, y] = self.geometry().map_or([1, 1], |g| g.grid());
        Launch { grid: [x, y, 1], block: [LANES, 1, WARPS], ..Launch::linear(1, LANES) }
    }

    fn build<'k>(&self, k: &'k Builder<'k>, args: Dec2Args<Dev<'k>>) {
        let (Ok(tables), Ok(options)) = (Tables::new(), self.options()) else { unreachable!("the key was checked") };
        let window = Window::new(k, [self.ex, self.ey], [self.ox, self.oy]);
        let outside = Outside {
            image: args.image,
            skip: args.skip,
            arena: args.arena,
            images: Images {
                colour: args.colour,
                blend: args.blend,
                offset: args.offset,
                surface: args.surface,
                step: [args.sx, args.sy],
            },
            window,
        };
        let extents = self.coarse_plane().extents;
        let coarse = Coarse {
            features: args.coarse,
            ex: k.constant(extents.x),
            ey: k.constant(extents.y),
            border: options.coarse_border,
        };
        let mut registers = Registers::new(Warp::new(k, None), outside, options).with_rows_by_slice();
        let products = &tables.products;
        let multiply = |registers: &mut Registers<'k>, number: u32| {
            let product = &products[number as usize - 1];
            match (product.left, product.right, product.seed) {
                (Left::Coarse, Right::Weights(weights), Seed::Columns(bias)) => {
                    let sums = registers.warp.expand(args.image, [weights, bias], &coarse, &window, options.mma_acc);
                    registers.put_sums(number, sums);
                }
                _ => registers.product(product),
            }
        };
        let epilogue = |registers: &mut Registers<'k>, number: u32| {
            registers.epilogue(&tables.epilogues[number as usize - 1], products.get(number as usize));
        };
        multiply(&mut registers, 1);
        for number in 1..FIRST_CHUNK {
            match products[number as usize].seed {
                Seed::Scores(bias) => registers.attention(bias),
                _ if products[number as usize].left == Left::Probabilities => {}
                _ => {
                    epilogue(&mut registers, number);
                    multiply(&mut registers, number + 1);
                }
            }
        }
        let first = registers.sums(FIRST_CHUNK).clone();
        let sums = k.for_range_with(0u32, CHUNKS - 1, 1, Unroll::Never, first, |chunk, sums| {
            registers.shift = Some(chunk * tables.stride);
            registers.put_sums(FIRST_CHUNK, sums);
            for number in [FIRST_CHUNK, FIRST_CHUNK + 1] {
                epilogue(&mut registers, number);
                multiply(&mut registers, number + 1);
            }
            registers.sums(FIRST_CHUNK + 2).clone()
        });
        registers.shift = None;
        registers.put_sums(LAST_CHUNK, sums);
        epilogue(&mut registers, LAST_CHUNK);
        multiply(&mut registers, PHASES);
        epilogue(&mut registers, PHASES);
    }
}
