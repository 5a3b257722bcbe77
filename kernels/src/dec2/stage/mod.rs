//! `dec2_stage`: one of the block's epilogues alone, `dec2.e1` to `dec2.e38`.
//!
//! What the block has in registers and shared memory comes from a buffer and goes to one, as [`ports`] tell; what it loads and
//! stores outside is the block's own: the weight image, the skip features, the arena, the images.

pub mod names;
pub mod ports;
mod problem;
mod run;

use lathe_dsl::mma::Fragments;
use lathe_dsl::prelude::*;

use self::ports::{Form, Matrix, Port, Ports};
use super::fragment::STEP;
use super::geometry::{Extents, Geometry, MAX_SIDE, Origin};
use super::images;
use super::instances::{Instance, instances};
use super::options::{
    ActRound, ColourFilter, NanSign, ReduceTree, SkipBorder, SubpixelOrder, TapBorder, TapOrder, of_key,
};
use super::phases::{PHASES, Phase, phases};
use super::plane::PlaneLayout;
use super::shared::head_quad;
use super::stages::epilogue::{Outside, Registers};
use super::stages::kernel_gate::Images;
use super::stages::skip_residual::Window;
use super::stages::tiles::{Columns, Quads, Tiles};
use super::stages::warp::Warp;
use super::weights::{LayoutError, WeightLayout};
use super::{CHANNELS, LANES, WARPS};

build_key! {
    /// An epilogue of an image of `ex`×`ey` pixels.
    pub struct Dec2Stage {
        /// Which epilogue.
        instance: u32 = 1, range(1, PHASES);
        /// Width of the image.
        ex: u32 = 16, range(1, MAX_SIDE);
        /// Height of the image.
        ey: u32 = 8, range(1, MAX_SIDE);
        /// Pixels that the first window lies to the left of the image; even.
        ox: u32 = 4, range(0, 65534);
        /// Pixels that it lies above the image; even.
        oy: u32 = 4, range(0, 65534);
        /// Width of the colour image.
        colour_width: u32 = 16, range(1, 65536);
        /// Height of the colour image.
        colour_height: u32 = 8, range(1, 65536);
        /// Where matrices lie in lanes: 0 as on the target, 1 to 4 as on gfx942, gfx950, gfx12 and NVIDIA.
        fragments: u32 = 0, range(0, 4);
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
    /// Arguments of [`Dec2Stage`].
    pub struct Dec2StageArgs(key: Dec2Stage) {
        /// The weight image.
        image: In<u8>[key.image_bytes()] align 16;
        /// Skip features, e4m3 planes of 96 channels.
        skip: In<u32>[key.plane().words()] align 16;
        /// What the epilogue takes: by workgroups, warps and [`ports::inputs`].
        taken: In<u32>[key.warp_words(|table| table.inputs.words())] align 16;
        /// What it gives: by workgroups, warps and [`ports::outputs`].
        given: Out<u32>[key.warp_words(|table| table.outputs.words())] align 16;
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

/// What the tables say of an instance.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its stages.
    pub instance: Instance,
    /// All products.
    pub phases: Vec<Phase>,
    /// What it takes.
    pub inputs: Ports,
    /// What it gives.
    pub outputs: Ports,
}

impl Table {
    /// Of an instance, 1 to 38.
    ///
    /// # Errors
    /// The layout lacks a block of this network.
    pub fn new(layout: &WeightLayout, number: u32) -> Result<Self, LayoutError> {
        let phases = phases(layout)?;
        let instance = instances(layout)?.swap_remove(number as usize - 1);
        let (inputs, outputs) = (ports::inputs(&instance, &phases), ports::outputs(&instance, &phases));
        Ok(Self { instance, phases, inputs, outputs })
    }
}

of_key!(Dec2Stage {
    act_round: ActRound,
    reduce_tree: ReduceTree,
    nan_sign: NanSign,
    subpixel_order: SubpixelOrder,
    skip_border: SkipBorder,
    tap_border: TapBorder,
    tap_order: TapOrder,
    colour_filter: ColourFilter,
});

impl Dec2Stage {
    /// The image's extents.
    pub const fn extents(&self) -> Extents {
        Extents::new(self.ex, self.ey)
    }

    /// Extents and origin.
    ///
    /// # Errors
    /// There is no launch on such an image.
    pub fn geometry(&self) -> Result<Geometry, super::geometry::GeometryError> {
        // In range by the key's limits.
        Geometry::fine(self.extents(), Origin::new(self.ox as u16, self.oy as u16))
    }

    /// Skip features' and the arena's layout.
    pub const fn plane(&self) -> PlaneLayout {
        PlaneLayout::new(self.extents(), CHANNELS)
    }

    /// What the tables say.
    ///
    /// # Errors
    /// Never: the layout is this network's.
    pub fn table(&self) -> Result<Table, LayoutError> {
        Table::new(&WeightLayout::dec2()?, self.instance)
    }

    fn image_bytes(&self) -> u64 {
        WeightLayout::dec2().map_or(0, |layout| layout.bytes().into())
    }

    /// Words of all warps; at least one, as a buffer has an extent.
    fn warp_words(&self, words: impl Fn(&Table) -> u32) -> u64 {
        let words = self.table().map_or(0, |table| words(&table));
        let blocks = self.geometry().map_or(0, |g| g.grid().map(u64::from).iter().product());
        (u64::from(words) * u64::from(WARPS) * blocks).max(1)
    }
}

impl Kernel for Dec2Stage {
    const NAME: &'static str = "dec2_stage";
    type Args = Dec2StageArgs;

    fn check(&self) -> Result<(), String> {
        self.geometry().map_err(|e| e.to_string())?;
        self.table().map_err(|e| e.to_string())?;
        Ok(())
    }

    fn launch(&self) -> Launch {
        let [x, y] = self.geometry().map_or([1, 1], |g| g.grid());
        Launch { grid: [x, y, 1], block: [LANES, 1, WARPS], ..Launch::linear(1, LANES) }
    }

    fn build<'k>(&self, k: &'k Builder<'k>, args: Dec2StageArgs<Dev<'k>>) {
        let (table, options) = (self.table(), self.options());
        let (Ok(table), Ok(options)) = (table, options) else { unreachable!("the key was checked") };
        let fragments = self.fragments.checked_sub(1).map(|i| Fragments::ALL[i as usize]);
        let warp = Warp::new(k, fragments);
        let block = k.block_id(Axis::Y) * k.grid_dim()[0] + k.block_id(Axis::X);
        let number = block * WARPS + warp.z;
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
            window: Window::new(k, [self.ex, self.ey], [self.ox, self.oy]),
        };
        let mut registers = Registers::new(warp, outside, options);
        let words = number * table.inputs.words();
        table.inputs.ports.iter().for_each(|port| take(&mut registers, args.taken, words, port));
        registers.epilogue(&table.instance, table.phases.get(self.instance as usize));
        let words = number * table.outputs.words();
        table.outputs.ports.iter().for_each(|port| give(&registers, args.given, words, port));
    }
}

/// Loads a port's matrix to where the block has it.
fn take<'k>(registers: &mut Registers<'k>, buffer: Buffer<'k, u32, In>, words: V<'k, u32>, port: &Port) {
    let (warp, first) = (&registers.warp, words + port.first);
    match port.matrix {
        Matrix::Sums(product) => {
            let sums = load_halves(warp, buffer, first, port);
            registers.put_sums(product, sums);
        }
        Matrix::Features => {
            let features = load_halves(warp, buffer, first, port);
            registers.put_features(features);
        }
        Matrix::Normed => {
            let normed = load_halves(warp, buffer, first, port);
            registers.put_normed(normed);
        }
        Matrix::HeadTile(head) => {
            let words = row_words(warp, port, 0, 0).map(|at| warp.k.buffer_load(buffer, first + at));
            let at = warp.of_warp(head_quad(head, 0, 0), head_quad(0, 1, 0));
            warp.stage_quad(words, registers.shared(), at);
            warp.k.barrier();
        }
        Matrix::Head | Matrix::A | Matrix::B | Matrix::C => unreachable!("no epilogue takes {:?}", port.matrix),
    }
}

/// Stores a port's matrix from where the block has it.
fn give<'k>(registers: &Registers<'k>, buffer: Buffer<'k, u32, Out>, words: V<'k, u32>, port: &Port) {
    let (warp, first) = (&registers.warp, words + port.first);
    let halves = |tiles: &Tiles<'k>| store_halves(warp, tiles, buffer, first, port);
    let rows = |quads: &Quads<'k>| store_rows(warp, quads, buffer, first, port);
    match (port.matrix, &registers.a, &registers.b, &registers.c) {
        (Matrix::A, Some(a), ..) => rows(a),
        (Matrix::B, _, Some(b), _) => store_columns(warp, b, buffer, first, port),
        (Matrix::C, .., Some(c)) => halves(c),
        (Matrix::Features, ..) => halves(registers.features()),
        (Matrix::Normed, ..) => halves(registers.normed()),
        (Matrix::Head, ..) => {
            let at = warp.of_warp(0, head_quad(1, 0, 0));
            rows(&warp.load_quads(registers.shared(), at, port.extent[0] as usize / 16, 1));
        }
        (matrix, ..) => unreachable!("no epilogue gives {matrix:?}"),
    }
}

/// Word of slot `p` of tile (`m`, `n`) in a matrix of f16.
fn half_word<'k>(warp: &Warp<'k>, port: &Port, [m, p, n]: [usize; 3]) -> V<'k, u32> {
    let slot = warp.slots[p];
    (slot.row + 16 * m as u32) * (port.extent[1] / 2) + slot.t + 4 * n as u32
}

/// Words of a quad's registers in a left factor.
fn row_words<'k>(warp: &Warp<'k>, port: &Port, m: usize, ks: usize) -> [V<'k, u32>; 4] {
    [0, 1, 2, 3].map(|register: u32| {
        let (slot, h) = (warp.slots[register as usize % 2], register / 2);
        (slot.row + 16 * m as u32) * (port.extent[1] / 4) + slot.t + (8 * ks as u32 + 4 * h)
    })
}

fn load_halves<'k>(warp: &Warp<'k>, buffer: Buffer<'k, u32, In>, first: V<'k, u32>, port: &Port) -> Tiles<'k> {
    let [m, n] = [port.extent[0] / 16, port.extent[1] / 8].map(|n| n as usize);
    Tiles::from_fn(m, n, |m, p, n| {
        let at = first + half_word(warp, port, [m, p, n]);
        warp.k.buffer_load::<u32>(buffer, at).bitcast()
    })
}

fn store_halves<'k>(warp: &Warp<'k>, tiles: &Tiles<'k>, buffer: Buffer<'k, u32, Out>, first: V<'k, u32>, port: &Port) {
    let (m_tiles, n_tiles) = tiles.extent();
    for (m, p, n) in (0..m_tiles).flat_map(|m| (0..2 * n_tiles).map(move |i| (m, i / n_tiles, i % n_tiles))) {
        let at = first + half_word(warp, port, [m, p, n]);
        warp.k.buffer_store(tiles.at(m, p, n).bitcast::<u32>(), buffer, at);
    }
}

fn store_rows<'k>(warp: &Warp<'k>, quads: &Quads<'k>, buffer: Buffer<'k, u32, Out>, first: V<'k, u32>, port: &Port) {
    let (m_tiles, steps) = quads.extent();
    for (m, ks) in (0..m_tiles).flat_map(|m| (0..steps).map(move |ks| (m, ks))) {
        for (word, at) in quads.at(m, ks).into_iter().zip(row_words(warp, port, m, ks)) {
            warp.k.buffer_store(word, buffer, first + at);
        }
    }
}

fn store_columns<'k>(
    warp: &Warp<'k>,
    columns: &Columns<'k>,
    buffer: Buffer<'k, u32, Out>,
    first: V<'k, u32>,
    port: &Port,
) {
    debug_assert_eq!(port.form, Form::Columns);
    let (n_tiles, steps) = columns.extent();
    for (n, ks) in (0..n_tiles).flat_map(|n| (0..steps).map(move |ks| (n, ks))) {
        for (word, own) in columns.at(n, ks).into_iter().zip(warp.columns) {
            let at = (own.col + 8 * n as u32) * (port.extent[0] / 4) + own.word + ks as u32 * STEP / 4;
            warp.k.buffer_store(word, buffer, first + at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_epilogue_is_a_kernel_on_every_chip_in_every_layout() {
        for instance in 1..=PHASES {
            for fragments in 0..=4 {
                for target in Target::all() {
                    let key = Dec2Stage { instance, fragments, ..Dec2Stage::defaults() };
                    if let Err(e) = trace(&key, target) {
                        panic!("{instance} {fragments} {target}: {e}");
                    }
                }
            }
        }
    }
}
