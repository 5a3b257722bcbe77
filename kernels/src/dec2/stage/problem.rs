//! Input of an epilogue that stands alone, and what plain Rust makes of it.

use fastrand::Rng;
use half::f16;

use super::ports::{Form, Matrix as Name, Port};
use super::{Dec2Stage, Table};
use crate::dec2::fragment::{STEP, word_k};
use crate::dec2::geometry::Geometry;
use crate::dec2::options::{Options, TapOrder};
use crate::dec2::plane::PlaneLayout;
use crate::dec2::reference::attention::cubic_softmax;
use crate::dec2::reference::block::{block_pixels, plane_scatter};
use crate::dec2::reference::filter::{self, Pictures, kernel_gate};
use crate::dec2::reference::gemm::columns;
use crate::dec2::reference::mlp::{col_add, cubic_act};
use crate::dec2::reference::norm::row_norms;
use crate::dec2::reference::patch::{patch_scatter, quantised, skip_residual};
use crate::dec2::reference::{Image, Matrix};
use crate::dec2::weights::{DenseWeights, WeightShape};
use crate::dec2::{CHANNELS, CHUNK, HEAD_WIDTH, OUTPUTS, PIXELS, WARPS};

/// Rows of a warp's own tile.
const TILE: usize = 16;

/// A port's matrix on the host.
#[derive(Clone, Debug)]
pub enum Content {
    /// Numbers.
    Halves(Matrix<f16>),
    /// Codes.
    Codes(Matrix<u8>),
}

impl Content {
    /// As it lies in a port.
    pub fn words(&self, form: Form) -> Vec<u32> {
        match (self, form) {
            (Self::Codes(codes), Form::Columns) => code_words(&codes.transposed()),
            (Self::Codes(codes), _) => code_words(codes),
            (Self::Halves(halves), _) => {
                let pair = |p: &[f16]| u32::from(p[0].to_bits()) | u32::from(p[1].to_bits()) << 16;
                halves.elements().chunks(2).map(pair).collect()
            }
        }
    }

    fn halves(&self) -> &Matrix<f16> {
        match self {
            Self::Halves(halves) => halves,
            Self::Codes(_) => unreachable!("a port of codes where numbers are wanted"),
        }
    }

    fn codes(&self) -> &Matrix<u8> {
        match self {
            Self::Codes(codes) => codes,
            Self::Halves(_) => unreachable!("a port of numbers where codes are wanted"),
        }
    }
}

/// Words of rows of codes, each 32 of them as a cell of a feature plane.
fn code_words(codes: &Matrix<u8>) -> Vec<u32> {
    let word =
        |cell: &[u8], w: u32| u32::from_le_bytes([0, 1, 2, 3].map(|byte| cell[word_k(w & 3, w >> 2, byte) as usize]));
    let cells = codes.elements().chunks(STEP as usize);
    cells.flat_map(|cell| (0..8).map(move |w| word(cell, w))).collect()
}

/// Everything that a launch reads, and what it must write.
pub struct Problem {
    /// Weights.
    pub weights: DenseWeights,
    /// Planes of skip features.
    pub skip: Vec<u8>,
    /// The image that is filtered.
    pub colour: Image,
    /// What a shut gate shows.
    pub blend: Image,
    /// What is added.
    pub offset: Image,
    /// What the epilogue takes.
    pub taken: Vec<u32>,
    /// What it must give.
    pub given: Vec<u32>,
    /// What it must store to the arena, if it does.
    pub arena: Option<Vec<u8>>,
    /// What it must store to the surface, if it does.
    pub surface: Option<Vec<Texel>>,
}

/// A texel of the surface.
#[derive(Clone, Copy, Debug, Default)]
pub struct Texel {
    /// What plain Rust gives.
    pub expected: [f16; 4],
    /// By channel, the size of what is mixed: `Σ |weight · colour|` and what a shut gate shows.
    pub size: [f64; 4],
    /// By channel, what filters of texture units may be off by parts of: `Σ |weight| · largest`, of the texels around each tap; not
    /// finite where one of them is not.
    pub around: [f64; 4],
}

/// A number: most are ordinary, one in 500 is special.
fn number(rng: &mut Rng, scale: f64) -> f16 {
    const SPECIAL: [u16; 14] = [
        0x0000, 0x8000, 0x0001, 0x03FF, 0x0400, 0x83FF, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00, 0x7C01, 0xFE00, 0x5F00,
    ];
    match rng.usize(0..500) {
        0 => f16::from_bits(SPECIAL[rng.usize(0..SPECIAL.len())]),
        // Something like a bell.
        _ => f16::from_f64(((0..4).map(|_| rng.f64()).sum::<f64>() - 2.0) * scale),
    }
}

/// A finite code of moderate size, or now and then any.
fn code(rng: &mut Rng) -> u8 {
    match rng.usize(0..500) {
        0 => rng.u8(..),
        _ => rng.u8(0..0x48) | rng.u8(..) & 0x80,
    }
}

fn weights(rng: &mut Rng) -> DenseWeights {
    let mut w = DenseWeights::zeros(&WeightShape::DEC2);
    let tables = [
        &mut w.patch_bias,
        &mut w.gain1,
        &mut w.out_bias,
        &mut w.gain2,
        &mut w.fc1_bias,
        &mut w.fc2_bias,
        &mut w.head_bias,
    ];
    let tables = tables.into_iter().chain(w.heads.iter_mut().map(|h| &mut h.score_bias));
    tables.for_each(|table| table.iter_mut().for_each(|x| *x = number(rng, 2.0)));
    for codes in [&mut w.patch, &mut w.fc1, &mut w.fc2, &mut w.head] {
        codes.iter_mut().for_each(|c| *c = code(rng));
    }
    for head in &mut w.heads {
        for codes in [&mut head.query_key, &mut head.value, &mut head.out_proj] {
            codes.iter_mut().for_each(|c| *c = code(rng));
        }
    }
    w
}

fn image(rng: &mut Rng, width: u32, height: u32) -> Image {
    let texel = |_, _| std::array::from_fn(|_| number(rng, 1.0));
    Image::from_fn(width, height, texel).unwrap_or_else(|e| unreachable!("the key has a pixel: {e}"))
}

impl Problem {
    /// That of a key.
    pub fn new(key: &Dec2Stage, table: &Table, geometry: &Geometry, options: &Options, seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let extents = geometry.extents();
        let planes = PlaneLayout::new(extents, CHANNELS).bytes();
        let mut problem = Self {
            weights: weights(&mut rng),
            skip: (0..planes).map(|_| code(&mut rng)).collect(),
            colour: image(&mut rng, key.colour_width, key.colour_height),
            blend: image(&mut rng, extents.x, extents.y),
            offset: image(&mut rng, extents.x, extents.y),
            taken: vec![],
            given: vec![],
            arena: (key.instance == 37).then(|| vec![0; planes as usize]),
            surface: (key.instance == 38).then(|| vec![Default::default(); extents.pixels() as usize]),
        };
        for block in geometry.blocks() {
            let warps: Vec<Vec<Content>> = (0..WARPS)
                .map(|_| table.inputs.ports.iter().map(|port| taken(&mut rng, key.instance, port)).collect())
                .collect();
            let taken = warps.iter().flatten().zip(table.inputs.ports.iter().cycle());
            problem.taken.extend(taken.flat_map(|(content, port)| content.words(port.form)));
            let stage = Epilogue { number: key.instance, table, warps: &warps, options, geometry, block };
            for z in 0..WARPS as usize {
                for port in &table.outputs.ports {
                    let content = stage.gives(&problem, z, port);
                    problem.given.extend(content.words(port.form));
                }
            }
            stage.stores(&mut problem);
        }
        // A buffer has at least one word.
        problem.taken.resize(problem.taken.len().max(1), 0);
        problem
    }
}

fn taken(rng: &mut Rng, instance: u32, port: &Port) -> Content {
    let [rows, cols] = port.extent.map(|n| n as usize);
    // Scores and the head's logits are spread wide; what is quantised now and then saturates.
    let scale = match instance {
        1 => 100.0,
        7 | 9 | 37 => 120.0,
        8 => 30.0,
        38 => 4.0,
        _ => 2.0,
    };
    match port.form {
        Form::Halves => Content::Halves(Matrix::from_fn(rows, cols, |_, _| number(rng, scale))),
        _ => Content::Codes(Matrix::from_fn(rows, cols, |_, _| code(rng))),
    }
}

/// One epilogue of one block.
struct Epilogue<'a> {
    number: u32,
    table: &'a Table,
    /// What each warp takes, in the order of the ports.
    warps: &'a [Vec<Content>],
    options: &'a Options,
    geometry: &'a Geometry,
    block: [u32; 2],
}

impl Epilogue<'_> {
    fn input(&self, z: usize, name: Name) -> &Content {
        let ports = &self.table.inputs.ports;
        let at = ports.iter().position(|port| port.matrix == name);
        &self.warps[z][at.unwrap_or_else(|| unreachable!("no port of {name:?}"))]
    }

    fn sums(&self, z: usize, product: u32) -> &Matrix<f16> {
        self.input(z, Name::Sums(product)).halves()
    }

    fn quantised(&self, x: &Matrix<f16>) -> Matrix<u8> {
        quantised(x, self.options.nan_sign)
    }

    /// All attention rows.
    fn attention_rows(&self, problem: &Problem) -> Matrix<f16> {
        let slabs: Vec<_> = (0..WARPS as usize).map(|z| self.sums(z, 1).clone()).collect();
        let grid = patch_scatter(&slabs, self.options);
        skip_residual(&grid, &problem.skip, self.geometry, self.block, self.options)
    }

    fn gives(&self, problem: &Problem, z: usize, port: &Port) -> Content {
        match port.matrix {
            Name::A => Content::Codes(self.a(problem, z)),
            Name::B => Content::Codes(self.b(problem, z)),
            Name::C => Content::Halves(self.c(problem, z)),
            Name::Features => Content::Halves(self.attention_rows(problem).rows(TILE * z, TILE)),
            Name::Normed => Content::Halves(self.normed(problem, z)),
            Name::Head => Content::Codes(self.quantised(self.sums(z, 9))),
            Name::Sums(_) | Name::HeadTile(_) => unreachable!("no epilogue gives {:?}", port.matrix),
        }
    }

    fn normed(&self, problem: &Problem, z: usize) -> Matrix<f16> {
        match self.number {
            13 => row_norms(self.sums(z, 13), &problem.weights.gain2, self.options.reduce_tree),
            _ => self.input(z, Name::Normed).halves().clone(),
        }
    }

    fn a(&self, problem: &Problem, z: usize) -> Matrix<u8> {
        let number = self.number;
        let x = match number {
            1 => {
                let rows = self.attention_rows(problem);
                row_norms(&rows, &problem.weights.gain1, self.options.reduce_tree)
            }
            7 => self.sums(z, 6).rows(0, PIXELS as usize),
            8 => cubic_softmax(self.sums(z, 8), self.options.reduce_tree),
            // Head 0's, of the warp's own pixels.
            9 => self.sums(0, 9).rows(TILE * z, TILE),
            10..=12 => return self.input(z, Name::HeadTile(number - 9)).codes().clone(),
            37 => self.sums(z, 37).clone(),
            _ if number % 2 == 1 => self.normed(problem, z),
            _ => self.sums(z, number).map(|x| cubic_act(x, self.options.act_round)),
        };
        self.quantised(&x)
    }

    /// The warp's right factor.
    fn b(&self, problem: &Problem, z: usize) -> Matrix<u8> {
        let w = &problem.weights;
        let (channels, head_width) = (CHANNELS as usize, HEAD_WIDTH as usize);
        let matrix =
            |data: &[u8], columns: usize| Matrix::from_fn(data.len() / columns, columns, |i, j| data[i * columns + j]);
        let step = STEP as usize;
        let chunk = |first: u32| ((self.number - first) / 2) as usize * step;
        match self.number {
            // Slices of queries and of values by turns, queries first.
            1..=6 => {
                let product = self.number + 1;
                let head = &w.heads[z];
                let projection = if product.is_multiple_of(2) { &head.query_key } else { &head.value };
                matrix(projection, head_width).rows((product as usize / 2 - 1) * step, step)
            }
            7 => self.quantised(self.sums(z, 6)).transposed(),
            8 => self.quantised(self.sums(z, 7)),
            9..=12 => matrix(&w.heads[self.number as usize - 9].out_proj, channels),
            37 => matrix(&w.head, OUTPUTS as usize),
            n if n % 2 == 1 => matrix(&w.fc1, 4 * channels).columns(chunk(13), step),
            _ => matrix(&w.fc2, channels).rows(chunk(14), step),
        }
    }

    fn c(&self, problem: &Problem, z: usize) -> Matrix<f16> {
        let w = &problem.weights;
        match self.number {
            7 => {
                let bias = &w.heads[z].score_bias;
                let columns = bias.len() / PIXELS as usize;
                Matrix::from_fn(PIXELS as usize, columns, |i, j| bias[i * columns + j])
            }
            9 => col_add(&w.out_bias, self.input(z, Name::Features).halves()),
            14 => col_add(&w.fc2_bias, self.sums(z, 13)),
            37 => columns(TILE, &w.head_bias),
            n => {
                let first = ((n - 13) / 2 * CHUNK) as usize;
                columns(TILE, &w.fc1_bias[first..first + CHUNK as usize])
            }
        }
    }

    /// What goes to the arena and to the surface.
    fn stores(&self, problem: &mut Problem) {
        let all = |product: u32| {
            let (of, cols) = (self.sums(0, product), self.sums(0, product).column_count());
            let tile = of.row_count();
            Matrix::from_fn(tile * WARPS as usize, cols, |i, j| self.sums(i / tile, product)[(i % tile, j)])
        };
        if let Some(arena) = &mut problem.arena {
            plane_scatter(&self.quantised(&all(37)), arena, self.geometry, self.block);
        }
        if let Some(surface) = &mut problem.surface {
            let (outputs, extents) = (all(38), self.geometry.extents());
            let step = problem.colour.step();
            let pictures = Pictures { colour: &problem.colour, blend: &problem.blend, offset: &problem.offset, step };
            for (pixel, x, y) in block_pixels(self.geometry, self.block) {
                let texel = kernel_gate(outputs.row(pixel), &pictures, extents, (x, y), self.options);
                let [size, around] = self.mixed_sizes(outputs.row(pixel), &pictures, (x, y));
                surface[(y * extents.x + x) as usize] = Texel { expected: texel, size, around };
            }
        }
    }

    /// [`Texel::size`] and [`Texel::around`].
    fn mixed_sizes(&self, outputs: &[f16], pictures: &Pictures<'_>, (x, y): (u32, u32)) -> [[f64; 4]; 2] {
        let (extents, options) = (self.geometry.extents(), self.options);
        let weights = filter::weights(&std::array::from_fn(|k| outputs[k]));
        let [us, vs] = [(x, extents.x, pictures.step[0]), (y, extents.y, pictures.step[1])]
            .map(|(at, extent, step)| filter::tap_coordinates(at, extent, step, options));
        let mut around = [0.0; 4];
        let mut sizes = pictures.blend.texel(x.into(), y.into()).map(|c| c.to_f64().abs());
        for (k, weight) in weights.iter().enumerate() {
            let (row, column) = match options.tap_order {
                TapOrder::RowMajor => (k / 3, k % 3),
                TapOrder::ColMajor => (k % 3, k / 3),
            };
            let texel = pictures.colour.sample(us[column], vs[row], options.colour_filter);
            sizes.iter_mut().zip(texel).for_each(|(size, c)| *size += (c.to_f64() * weight.to_f64()).abs());
            let largest = largest_around(pictures.colour, us[column], vs[row]);
            around.iter_mut().zip(largest).for_each(|(around, c)| *around += c * weight.to_f64().abs());
        }
        [sizes, around]
    }
}

/// The largest magnitude, by channel, of the texels that a filter with a place a little off may reach; infinite if one is not finite.
fn largest_around(image: &Image, u: f32, v: f32) -> [f64; 4] {
    let [x, y] = [(u, image.width()), (v, image.height())].map(|(at, e)| (at * e as f32 - 0.5).floor() as i64);
    let mut largest = [0.0f64; 4];
    for (dx, dy) in (-1..=2).flat_map(|dy| (-1..=2).map(move |dx| (dx, dy))) {
        for (largest, c) in largest.iter_mut().zip(image.texel(x + dx, y + dy)) {
            *largest = largest.max(if c.is_finite() { c.to_f64().abs() } else { f64::INFINITY });
        }
    }
    largest
}
