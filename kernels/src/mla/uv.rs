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

use lathe_dsl::ir::MAX_BUFFER_BYTES;
use lathe_dsl::prelude::*;

use super::latents::{Product, QuantisedLatents, Scales, WORDS_A_THREAD};
use super::{CTAS, HEADS, LATENTS, THREADS, TOKENS_A_TASK, VALUES, each_task, tasks};

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

/// Elements along K of a step, and steps.
const STEP: u32 = 128;
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
        let latents = QuantisedLatents::new(k);
        each_task(k, self.tokens, TOKENS_A_TASK, |head, first_token| {
            let stage = StageUv { tokens: self.tokens, head, first_token, latents, args: &args };
            let ahead = stage.loads_ahead(k);
            self.copy(k, &stage);
            k.barrier();
            stage.multiply(k, ahead);
        });
    }
}

impl MlaUv {
    /// Quantises the latents of the task's tokens. Thread `t` does token `t / 128`, latents `4 (t mod 128) ..`.
    fn copy<'k>(&self, k: &'k Builder<'k>, stage: &StageUv<'_, 'k>) {
        let threads_a_row = LATENT_WORDS / WORDS_A_THREAD;
        let row = k.thread_id(Axis::X).div_floor(threads_a_row);
        let word = k.thread_id(Axis::X).rem_floor(threads_a_row) * WORDS_A_THREAD;
        let token = (stage.first_token + row).minimum(self.tokens - 1);
        let words =
            k.buffer_load::<Vector<u32, 2>>(stage.args.latents, (token * HEADS + stage.head) * LATENT_WORDS + word);
        stage.latents.put(k, row, word, words.elements());
    }
}

/// The values of a head of four tokens.
struct StageUv<'a, 'k> {
    tokens: u32,
    head: V<'k, u32>,
    first_token: V<'k, u32>,
    latents: QuantisedLatents<'k>,
    args: &'a MlaUvArgs<Dev<'k>>,
}

/// What a wave needs beside the latents.
struct Loads<'k> {
    /// By steps.
    weights: Vec<FragmentA<'k, Product>>,
    scales: Scales<'k>,
    gates: Vec<V<'k, bf16>>,
}

impl<'k> StageUv<'_, 'k> {
    /// Waves that have nothing to multiply: a narrow wave does as much as a wide one.
    fn has_idle_waves(k: &Builder<'k>) -> bool {
        THREADS / k.wave() > TILES
    }

    /// The loads that do not wait for latents, where all waves have some: they are on their way while latents are made.
    fn loads_ahead(&self, k: &'k Builder<'k>) -> Option<Loads<'k>> {
        (!Self::has_idle_waves(k)).then(|| self.loads(k))
    }

    fn loads(&self, k: &'k Builder<'k>) -> Loads<'k> {
        let first_row = self.head * VALUES + Self::wave(k) * TILE;
        let first = first_row.to::<Idx>() * LATENTS;
        let step = |s| Matrix::new(k, self.args.w_v, Storage::RowMajor, first + s * STEP, LATENTS);
        let weights = (0..STEPS).map(|s| k.load_fragment(step(s))).collect();
        let rows = k.lanes(64).lane_index().map(|lane| {
            let row = (first_row + lane.rem_floor(TILE)).to::<Idx>();
            k.buffer_load(self.args.w_v_scale, Bytes(row * SCALES))
        });
        let gate = Matrix::new(k, self.args.gate, Storage::ColMajor, self.first(k), ROW);
        let gates = k.load_elements::<Product, bf16>(gate.clamped(self.live_tokens(k)));
        Loads { weights, scales: Scales { rows }, gates }
    }

    /// Multiplies and stores. A barrier must have come after the latents.
    fn multiply(&self, k: &'k Builder<'k>, ahead: Option<Loads<'k>>) {
        let multiply = || {
            let loads = ahead.unwrap_or_else(|| self.loads(k));
            let scales = self.latents.scales(k);
            let sum = (0..STEPS).fold(k.zero_fragment(), |sum, s| {
                let weights = loads.weights[s as usize];
                k.mfma_scaled(weights, self.latents.fragment(k, s), sum, loads.scales.step(s), scales.step(s))
            });
            let core = Matrix::new(k, self.args.core, Storage::ColMajor, self.first(k), ROW)
                .within(k.constant(TILE), self.live_tokens(k));
            let mut gates = loads.gates.into_iter();
            k.store_fragment(sum, core, |x, _| {
                let value = x.to::<bf16>().to::<f32>();
                gates.next().map_or(value, |gate| value * gate.to::<f32>()).to::<bf16>()
            });
        };
        if Self::has_idle_waves(k) {
            k.if_(Self::wave(k).lt(TILES), multiply);
        } else {
            multiply();
        }
    }

    fn wave(k: &'k Builder<'k>) -> V<'k, u32> {
        k.thread_id(Axis::X).div_floor(k.wave()).uniform()
    }

    /// Element of `gate` and `core` where the wave's values of the first token begin.
    fn first(&self, k: &'k Builder<'k>) -> V<'k, Idx> {
        (self.first_token * ROW + self.head * VALUES + Self::wave(k) * TILE).to::<Idx>()
    }

    /// Tokens of the task that the batch has.
    fn live_tokens(&self, k: &'k Builder<'k>) -> V<'k, u32> {
        (k.constant(self.tokens) - self.first_token).minimum(TOKENS_A_TASK)
    }
}
