//! What a warp holds between products, and an epilogue's stages on it.

use std::cell::OnceCell;

use lathe_dsl::prelude::*;

use super::kernel_gate::{Images, Taps};
use super::load::Image;
use super::skip_residual::{Part, Window};
use super::tiles::{Columns, Quads, Tiles};
use super::warp::Warp;
use crate::dec2::instances::{self, Stage};
use crate::dec2::options::Options;
use crate::dec2::phases::{Base, Left, PHASES, Phase, Seed};
use crate::dec2::shared::{self, a_quad, head_quad};
use crate::dec2::{CHANNELS, KEYS, PIXELS};

/// Steps of 32 channels.
const SLICES: usize = (CHANNELS / 32) as usize;

/// Memory that epilogues read and write besides shared memory.
pub struct Outside<'k> {
    /// Weights.
    pub image: Image<'k>,
    /// Skip features.
    pub skip: Buffer<'k, u32, In>,
    /// Where the block's features go.
    pub arena: Buffer<'k, u32, Out>,
    /// Images of the gate.
    pub images: Images<'k>,
    /// Where the workgroup is.
    pub window: Window<'k>,
}

/// A warp's registers from one product to the next.
pub struct Registers<'k> {
    /// The warp.
    pub warp: Warp<'k>,
    outside: Outside<'k>,
    options: Options,
    shared: OnceCell<V<'k, LdsPtr<u8>>>,
    /// By product, from 1 on: its sums.
    sums: Vec<Option<Tiles<'k>>>,
    /// Patch plus skip features: of the warp's own tile, and of the halo.
    features: [Option<Tiles<'k>>; 2],
    /// These, or the attention's result, normed.
    normed: [Option<Tiles<'k>>; 2],
    /// The normed tile as a left factor: every chunk of the MLP takes it.
    normed_quads: Option<Quads<'k>>,
    /// Whether the attention rows' factor is loaded slice by slice, where it is multiplied, rather than as a whole.
    rows_by_slice: bool,
    /// Such a slice.
    slice: Option<(u32, Quads<'k>)>,
    /// Bytes that weights lie behind where the table has them: in a loop over what is there several times.
    pub shift: Option<V<'k, u32>>,
    /// Left factor of the next product.
    pub a: Option<Quads<'k>>,
    /// Its right factor.
    pub b: Option<Columns<'k>>,
    /// What it adds to, where an epilogue makes that.
    pub c: Option<Tiles<'k>>,
}

/// What an epilogue lacks is a fault of the table that it comes from, not of a kernel's author.
const ORDER: &str = "epilogues come in the order of the table";

impl<'k> Registers<'k> {
    /// Nothing yet.
    pub fn new(warp: Warp<'k>, outside: Outside<'k>, options: Options) -> Self {
        Self {
            warp,
            outside,
            options,
            shared: OnceCell::new(),
            sums: vec![None; PHASES as usize + 1],
            features: [None, None],
            normed: [None, None],
            normed_quads: None,
            rows_by_slice: false,
            slice: None,
            shift: None,
            a: None,
            b: None,
            c: None,
        }
    }

    /// The workgroup's shared memory.
    pub fn shared(&self) -> V<'k, LdsPtr<u8>> {
        *self.shared.get_or_init(|| self.warp.k.lds_bytes("shared", shared::BYTES, 16))
    }

    /// The sums of a product.
    pub fn sums(&self, product: u32) -> &Tiles<'k> {
        self.sums[product as usize].as_ref().expect(ORDER)
    }

    /// Keeps the sums of a product.
    pub fn put_sums(&mut self, product: u32, sums: Tiles<'k>) {
        self.sums[product as usize] = Some(sums);
    }

    /// Patch plus skip features of the warp's own tile.
    pub fn features(&self) -> &Tiles<'k> {
        self.features[0].as_ref().expect(ORDER)
    }

    /// Keeps such.
    pub fn put_features(&mut self, features: Tiles<'k>) {
        self.features[0] = Some(features);
    }

    /// The warp's own tile, normed.
    pub fn normed(&self) -> &Tiles<'k> {
        self.normed[0].as_ref().expect(ORDER)
    }

    /// Keeps such.
    pub fn put_normed(&mut self, normed: Tiles<'k>) {
        self.normed[0] = Some(normed);
    }

    /// Leaves the attention rows' factor in shared memory until a product takes a slice of it: 24 registers instead of 72.
    #[must_use]
    pub fn with_rows_by_slice(self) -> Self {
        Self { rows_by_slice: true, ..self }
    }

    /// Does a product whose factors are there, and keeps the sums.
    pub fn product(&mut self, product: &Phase) {
        if let (Left::Rows { slice }, true) = (product.left, self.rows_by_slice) {
            self.load_slice(slice);
        }
        let (a, b) = (self.a.as_ref().expect(ORDER), self.b.as_ref().expect(ORDER));
        let c = match product.seed {
            Seed::Zero => None,
            Seed::Result { phase } => Some(self.sums(phase)),
            Seed::Columns(_) | Seed::Scores(_) | Seed::Residual { .. } => Some(self.c.as_ref().expect(ORDER)),
        };
        let acc = self.options.mma_acc;
        let sums = match product.left {
            Left::Rows { slice } if !self.rows_by_slice => self.warp.multiply(&a.step(slice as usize), b, c, acc),
            _ => self.warp.multiply(a, b, c, acc),
        };
        self.put_sums(product.number, sums);
    }

    /// Makes a slice of the attention rows the left factor.
    fn load_slice(&mut self, slice: u32) {
        if self.slice.as_ref().is_none_or(|(loaded, _)| *loaded != slice) {
            let quad = |m: usize| {
                let at = self.warp.k.constant(a_quad(m as u32, slice, 0));
                self.warp.load_quad(self.shared(), at)
            };
            let quads = Quads::from_fn((KEYS / 16) as usize, 1, |m, _| quad(m));
            self.slice = Some((slice, quads));
        }
        self.a = self.slice.as_ref().map(|(_, quads)| quads.clone());
    }

    /// Epilogues 7 and 8 with products 8 and 9, a tile of 16 rows after the other: scores of a tile become codes before those of the
    /// next are there, which takes a quarter of the registers. The same stages, so the same numbers.
    pub fn attention(&mut self, bias: Base) {
        let (warp, options, image) = (&self.warp, self.options, self.outside.image);
        let nan = options.nan_sign;
        let (queries, keys) = warp.score_factors(self.sums(6), nan);
        let values = warp.transpose_pack(self.sums(7), nan);
        let bias = self.base(bias);
        let heads: Vec<_> = (0..queries.extent().0)
            .map(|m| {
                let bias = warp.load_score_bias(image, bias, m);
                let scores = warp.multiply(&queries.tile(m), &keys, Some(&bias), options.mma_acc);
                let probabilities = warp.pack_quads(&warp.cubic_softmax(&scores, options.reduce_tree), nan);
                let head = warp.multiply(&probabilities, &values, None, options.mma_acc);
                // Scores of the next tile do not begin before these are done with their registers.
                warp.k.sched_barrier(0);
                head
            })
            .collect();
        self.put_sums(9, Tiles::stacked(&heads));
        // Nothing reads these again.
        (2..=8).for_each(|product| self.sums[product] = None);
    }

    /// Does an epilogue; `next` is the product that it prepares.
    pub fn epilogue(&mut self, instance: &instances::Instance, next: Option<&Phase>) {
        for stage in &instance.stages {
            self.stage(instance.number, stage, next);
        }
    }

    fn base(&self, base: Base) -> V<'k, u32> {
        let at = self.warp.of_warp(base.base, base.z_stride);
        self.shift.map_or(at, |shift| at + shift)
    }

    fn stage(&mut self, number: u32, stage: &Stage, next: Option<&Phase>) {
        let (warp, options, image) = (&self.warp, self.options, self.outside.image);
        let nan = options.nan_sign;
        match *stage {
            Stage::Barrier => warp.k.barrier(),
            Stage::LoadB { base, .. } => {
                let next = next.expect(ORDER);
                let (n, ks) = ((next.n / 16) as usize, (next.k / 32) as usize);
                self.b = Some(warp.load_columns(image, self.base(base), n, ks));
            }
            Stage::LoadCol { base, tiles } => {
                let table = warp.load_table(image, self.base(base), tiles as usize);
                self.c = Some(warp.broadcast(1, &table));
            }
            Stage::PatchScatter => {
                warp.patch_scatter(self.sums(number), self.shared(), options.subpixel_order, nan);
            }
            Stage::SkipResidual => {
                let part = |part| {
                    let (skip, window) = (self.outside.skip, &self.outside.window);
                    warp.skip_residual(part, self.shared(), skip, window, options.skip_border)
                };
                let own = part(Part::Own);
                let zeros = Tiles::zeros(warp.k, 1, own.extent().1);
                let halo = warp.k.if_else(self.has_halo(), || part(Part::Halo), || zeros);
                self.features = [Some(own), Some(halo)];
            }
            Stage::RowNorm { gain, .. } => {
                let gain = warp.load_table(image, warp.k.constant(gain), 4 * SLICES);
                let norm = |x: &Tiles<'k>| warp.row_norm(x, &gain, options.reduce_tree);
                self.normed = match number {
                    1 => [0, 1].map(|i| self.features[i].as_ref().map(norm)),
                    _ => [Some(norm(self.sums(number))), None],
                };
                self.normed_quads = None;
            }
            Stage::StageQuads { from: instances::Quads::Rows, .. } => {
                let [own, halo] = [0, 1].map(|i| warp.pack_quads(self.normed[i].as_ref().expect(ORDER), nan));
                let first = warp.of_warp(0, a_quad(1, 0, 0));
                let put = |quads: &Quads<'k>, tile: u32| {
                    for ks in 0..SLICES {
                        let at = first + a_quad(tile, ks as u32, 0);
                        warp.stage_quad(quads.at(0, ks), self.shared(), at);
                    }
                };
                put(&own, 0);
                warp.k.if_(self.has_halo(), || put(&halo, PIXELS / 16));
            }
            Stage::StageQuads { tiles, .. } => {
                let quads = warp.pack_quads(self.sums(number), nan);
                let first = warp.of_warp(0, head_quad(1, 0, 0));
                for m in 0..tiles {
                    warp.stage_quad(quads.at(m as usize, 0), self.shared(), first + head_quad(0, m, 0));
                }
            }
            Stage::LoadQuad { from: instances::Quads::Head(head), .. } => {
                let at = warp.of_warp(head_quad(head, 0, 0), head_quad(0, 1, 0));
                self.a = Some(warp.load_quads(self.shared(), at, 1, 1));
            }
            Stage::LoadQuad { .. } if self.rows_by_slice => {}
            Stage::LoadQuad { .. } => {
                let first = warp.k.constant(0u32);
                self.a = Some(warp.load_quads(self.shared(), first, (KEYS / 16) as usize, SLICES));
            }
            Stage::ScoreSeed { bias, .. } => {
                let seed = warp.score_seed(self.sums(6), image, self.base(bias), nan);
                (self.a, self.b, self.c) = (Some(seed.a), Some(seed.b), Some(seed.c));
            }
            Stage::CubicSoftmax => {
                let probabilities = warp.cubic_softmax(self.sums(8), options.reduce_tree);
                self.a = Some(warp.pack_quads(&probabilities, nan));
            }
            Stage::TransposePack => self.b = Some(warp.transpose_pack(self.sums(7), nan)),
            Stage::ColAdd { table } => {
                let table = warp.load_table(image, warp.k.constant(table), 4 * SLICES);
                let residual = if number == 9 { self.features() } else { self.sums(13) };
                self.c = Some(warp.col_add(&table, residual));
            }
            Stage::CubicAct => {
                let hidden = warp.cubic_act(self.sums(number), options.act_round);
                self.a = Some(warp.pack_quads(&hidden, nan));
            }
            Stage::PackQuads { .. } if number == PHASES - 1 => {
                self.a = Some(warp.pack_quads(self.sums(number), nan));
            }
            Stage::PackQuads { .. } => {
                let quads = self.normed_quads.take().unwrap_or_else(|| warp.pack_quads(self.normed(), nan));
                self.a = Some(quads.clone());
                self.normed_quads = Some(quads);
            }
            Stage::PlaneScatter => {
                warp.plane_scatter(self.a.as_ref().expect(ORDER), self.outside.arena, &self.outside.window);
            }
            Stage::StageOutputs => warp.stage_outputs(self.sums(number), self.shared()),
            Stage::KernelGate => {
                let taps = Taps { border: options.tap_border, order: options.tap_order };
                warp.kernel_gate(self.shared(), &self.outside.window, &self.outside.images, taps);
            }
        }
    }

    /// Whether the warp has a tile of the halo.
    fn has_halo(&self) -> V<'k, bool> {
        self.warp.z.lt((KEYS - PIXELS) / 16)
    }
}
