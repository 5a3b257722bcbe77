//! `mla_uv`: latents back to values: W_UV of a head times its latents, times the gate.
//!
//! For one (token, head), with the latents as MXFP4 ([`latents`](super::latents)) and W_UV in it:
//!
//! ```text
//! acc  = 0
//! acc  = mfma_scaled(W_UV[:, 128 s ..], latents[128 s ..], acc)      s = 0, 1, 2, 3
//! core = bf16(f32(bf16(acc)) · f32(gate))                            both to nearest even
//! ```
//!
//! A workgroup has a head's 128 values of four tokens; each of eight waves 16 of them. The tokens are columns of a product that has
//! 16: the others repeat the last token, and are not stored.

use lathe_dsl::builder::{Readable, Writable};
use lathe_dsl::ir::MAX_BUFFER_BYTES;
use lathe_dsl::prelude::*;

use super::combine::own_words;
use super::latents::{Product, QuantisedLatents, Scales};
use super::{CTAS, HEADS, LATENTS, THREADS, TOKENS_A_TASK, VALUES, Workers, tasks};

/// Values of all heads: elements of a row of `gate` and `core`.
pub const ROW: u32 = HEADS * VALUES;

/// Words (two latents) of a head's latents.
const LATENT_WORDS: u32 = LATENTS / 2;

/// Scales of a row of W_UV.
const SCALES: u32 = LATENTS / super::latents::BLOCK;

/// Rows of W_UV that a wave multiplies.
const TILE: u32 = 16;

/// Waves that multiply.
const TILES: u32 = VALUES / TILE;

/// Elements along K of a step, the blocks in them, and steps.
const STEP: u32 = 128;
const BLOCKS: u32 = STEP / super::latents::BLOCK;
const STEPS: u32 = LATENTS / STEP;

/// Most tokens: `latents` must end below 2^32 bytes.
const MAX_TOKENS: u32 = (MAX_BUFFER_BYTES / (HEADS as u64 * LATENTS as u64 * 2)) as u32;

build_key! {
    /// Gated values of `tokens` query tokens.
    pub struct MlaUv {
        /// Query tokens.
        tokens: u32 = 8, range(1, MAX_TOKENS);
    }
}

kernel_args! {
    /// Arguments of [`MlaUv`].
    pub struct MlaUvArgs(key: MlaUv) {
        /// Combined latents, `[tokens][12][512]`.
        latents: In<bf16>[u64::from(key.tokens) * u64::from(HEADS * LATENTS)] align 16;
        /// W_UV, `[12][128][256]`: two e2m1 codes a byte, the first in the low half.
        w_v: In<u8>[u64::from(ROW * LATENTS / 2)] align 16;
        /// Its scales, `[12][128][16]`: e8m0 codes, one for 32 elements.
        w_v_scale: In<u8>[u64::from(ROW * SCALES)] align 16;
        /// What every value is multiplied by, `[tokens][12 · 128]`: a sigmoid's result, as a rule.
        gate: In<bf16>[u64::from(key.tokens) * u64::from(ROW)] align 16;
        /// Gated values, `[tokens][12 · 128]`.
        core: Out<bf16>[u64::from(key.tokens) * u64::from(ROW)] align 16;
    }
}

impl Kernel for MlaUv {
    const NAME: &'static str = "mla_uv";
    type Args = MlaUvArgs;

    fn launch(&self) -> Launch {
        Launch::linear(tasks(self.tokens, TOKENS_A_TASK).min(CTAS), THREADS)
    }

    fn build<'k>(&self, k: &'k Builder<'k>, args: MlaUvArgs<Dev<'k>>) {
        let latents = QuantisedLatents::new(k, TOKENS_A_TASK);
        let weights = Weights::dense(k, args.w_v, args.w_v_scale);
        let stage =
            StageUv { k, tokens: self.tokens, latents, weights, gate: args.gate, core: args.core, cache: Cache::OWN };
        Workers::all(k).each_task(k, self.tokens, TOKENS_A_TASK, |_, head, first_token| {
            let ahead = stage.wv_loads(head, first_token);
            // Quantises the latents of the task's tokens.
            let (row, word) = own_words(k);
            let token = (first_token + row).minimum(self.tokens - 1);
            let words =
                k.buffer_load::<Vector<u32, 2>>(args.latents.cast(), (token * HEADS + head) * LATENT_WORDS + word);
            latents.put(k, row, word, words.elements());
            k.barrier();
            stage.stage_uv(head, first_token, ahead);
        });
    }
}

/// W_UV of all heads, in MXFP4. `A` is how the kernel uses it.
pub struct Weights<'k, A> {
    /// Codes, two a byte.
    pub codes: Buffer<'k, u8, A>,
    /// Bytes from a head's codes to the next one's, and from a row's: multiples of 16.
    pub head: V<'k, Idx>,
    /// See `head`.
    pub row: V<'k, Idx>,
    /// E8m0 codes of the scales.
    pub scales: Buffer<'k, u8, A>,
    /// Bytes from a head's scales to the next one's.
    pub scale_head: V<'k, u32>,
    /// Bytes from a row's scales to the next one's.
    pub scale_row: V<'k, u32>,
    /// Bytes from a block's scale to the next one's; `None` if a row's 16 lie side by side at a multiple of 16.
    pub scale_block: Option<V<'k, u32>>,
}

impl<'k, A: Readable> Weights<'k, A> {
    /// Codes `[12][128][256]`, scales `[12][128][16]`.
    pub fn dense(k: &'k Builder<'k>, codes: Buffer<'k, u8, A>, scales: Buffer<'k, u8, A>) -> Self {
        Self {
            codes,
            head: k.constant(Idx::from(VALUES * LATENTS / 2)),
            row: k.constant(Idx::from(LATENTS / 2)),
            scales,
            scale_head: k.constant(VALUES * SCALES),
            scale_row: k.constant(SCALES),
            scale_block: None,
        }
    }

    /// The left factor of a step: [`TILE`] rows of a head, from `first_row` on.
    fn fragment(
        &self,
        k: &'k Builder<'k>,
        head: V<'k, u32>,
        first_row: V<'k, u32>,
        step: u32,
    ) -> FragmentA<'k, Product> {
        let first = head.to::<Idx>() * self.head + first_row.to::<Idx>() * self.row + step * (STEP / 2);
        k.load_fragment(Matrix::new(k, self.codes, Storage::RowMajor, first * 2, self.row * 2))
    }

    /// The scales of those rows.
    fn scales(&self, k: &'k Builder<'k>, head: V<'k, u32>, first_row: V<'k, u32>) -> WeightScales<'k> {
        let lanes = k.lanes(64).lane_index();
        let of_row = |lane: V<'k, u32>| {
            let row = first_row + lane.rem_floor(TILE);
            head * self.scale_head + row * self.scale_row
        };
        match self.scale_block {
            None => WeightScales::Rows(Scales {
                rows: lanes.map(|lane| k.buffer_load(self.scales.cast(), Bytes(of_row(lane)))),
            }),
            Some(block) => {
                let of_step = |step| {
                    let options = LoadOptions::new().soffset(block * (step * BLOCKS));
                    lanes.map(|lane| {
                        let at = of_row(lane) + lane.div_floor(TILE) * block;
                        k.buffer_load_with::<u8>(self.scales, at, options).to::<u32>()
                    })
                };
                WeightScales::Steps(std::array::from_fn(|step| of_step(step as u32)))
            }
        }
    }
}

/// Scales of a wave's rows of W_UV.
enum WeightScales<'k> {
    /// A row's side by side.
    Rows(Scales<'k>),
    /// Those of each step.
    Steps([Grouped<'k, u32>; STEPS as usize]),
}

impl<'k> WeightScales<'k> {
    fn step(&self, step: u32) -> Grouped<'k, u32> {
        match self {
            Self::Rows(scales) => scales.step(step),
            Self::Steps(steps) => steps[step as usize],
        }
    }
}

/// Makes the values of a head of a task's tokens, whose latents are in LDS. `A` is how the kernel uses W_UV, `C` the values.
pub struct StageUv<'k, A, C> {
    /// The kernel.
    pub k: &'k Builder<'k>,
    /// Query tokens of the batch.
    pub tokens: u32,
    /// Latents of the task's tokens.
    pub latents: QuantisedLatents<'k>,
    /// W_UV.
    pub weights: Weights<'k, A>,
    /// Gates, `[tokens][12 · 128]`.
    pub gate: Buffer<'k, bf16, In>,
    /// Values, `[tokens][12 · 128]`.
    pub core: Buffer<'k, bf16, C>,
    /// How the values are stored.
    pub cache: Cache,
}

/// What a wave needs beside the latents.
pub struct Loads<'k> {
    /// By steps.
    weights: Vec<FragmentA<'k, Product>>,
    scales: WeightScales<'k>,
    gates: Vec<V<'k, bf16>>,
}

impl<'k, A: Readable, C: Writable> StageUv<'k, A, C> {
    /// Waves that have nothing to multiply: a narrow wave does as much as a wide one.
    fn has_idle_waves(&self) -> bool {
        THREADS / self.k.wave() > TILES
    }

    /// The loads that do not wait for latents, where all waves have some: they are on their way while latents are made.
    pub fn wv_loads(&self, head: V<'k, u32>, first_token: V<'k, u32>) -> Option<Loads<'k>> {
        (!self.has_idle_waves()).then(|| self.loads(head, first_token))
    }

    fn loads(&self, head: V<'k, u32>, first_token: V<'k, u32>) -> Loads<'k> {
        let k = self.k;
        let first_row = self.wave() * TILE;
        let weights = (0..STEPS).map(|s| self.weights.fragment(k, head, first_row, s)).collect();
        let gate = Matrix::new(k, self.gate, Storage::ColMajor, self.first(head, first_token), ROW);
        let gates = k.load_elements::<Product, bf16>(gate.clamped(self.live_tokens(first_token)));
        Loads { weights, scales: self.weights.scales(k, head, first_row), gates }
    }

    /// Multiplies and stores. A barrier must have come after the latents.
    pub fn stage_uv(&self, head: V<'k, u32>, first_token: V<'k, u32>, ahead: Option<Loads<'k>>) {
        let k = self.k;
        let multiply = || {
            let loads = ahead.unwrap_or_else(|| self.loads(head, first_token));
            let scales = self.latents.scales(k);
            let sum = (0..STEPS).fold(k.zero_fragment(), |sum, s| {
                let weights = loads.weights[s as usize];
                k.mfma_scaled(weights, self.latents.fragment(k, s), sum, loads.scales.step(s), scales.step(s))
            });
            let core = Matrix::new(k, self.core, Storage::ColMajor, self.first(head, first_token), ROW)
                .within(k.constant(TILE), self.live_tokens(first_token))
                .cached(self.cache);
            let mut gates = loads.gates.into_iter();
            k.store_fragment(sum, core, |x, _| {
                let value = x.to::<bf16>().to::<f32>();
                gates.next().map_or(value, |gate| value * gate.to::<f32>()).to::<bf16>()
            });
        };
        if self.has_idle_waves() {
            k.if_(self.wave().lt(TILES), multiply);
        } else {
            multiply();
        }
    }

    fn wave(&self) -> V<'k, u32> {
        self.k.thread_id(Axis::X).div_floor(self.k.wave()).uniform()
    }

    /// Element of `gate` and `core` where the wave's values of the first token begin.
    fn first(&self, head: V<'k, u32>, first_token: V<'k, u32>) -> V<'k, Idx> {
        (first_token * ROW + head * VALUES + self.wave() * TILE).to::<Idx>()
    }

    /// Tokens of the task that the batch has.
    fn live_tokens(&self, first_token: V<'k, u32>) -> V<'k, u32> {
        (self.k.constant(self.tokens) - first_token).minimum(self.latents.tokens())
    }
}
