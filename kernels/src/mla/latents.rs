//! The latents of a task in LDS, as MXFP4: what the combine stages leave for [`stage_uv`](super::uv).
//!
//! A scale for 32 latents, by the even rule, not below 2^−126:
//!
//! ```text
//! am      = largest of the bf16 bit patterns without their signs
//! code    = max(((am + 0x20) >> 7) − 2, 1)                           e8m0: the scale is 2^(code − 127)
//! e2m1[i] = latent[i] / scale, to nearest even, saturating at ±6     NaN too, whatever its block's scale
//! ```
//!
//! So the largest latent of a block is from 3.5 to 7 scales, and one above 6 is cut.
//!
//! ```text
//! LDS: a row a token, 272 bytes each: 512 codes, two a byte, then the scales of their 16 blocks
//! ```

use lathe_dsl::prelude::*;

use super::LATENTS;

/// Latents that share a scale.
pub const BLOCK: u32 = 32;

/// Bytes of a row's codes, and words of it as bf16.
const CODES: u32 = LATENTS / 2;

/// Bytes of a row. Rows begin in different banks.
const ROW: u32 = CODES + LATENTS / BLOCK;

/// Words (two latents) of a block.
const WORDS_A_BLOCK: u32 = BLOCK / 2;

/// The e8m0 codes are 1 and more, of normal f32.
const LEAST_CODE: i32 = 1;

/// Elements of K of one product.
const STEP: u32 = 128;

/// The product of W_UV and the latents.
pub type Product = MfmaScaled<E2m1>;

/// Four latents of a block as e2m1 codes, first one lowest, and the block's e8m0 code: the block's other latents are those of the
/// neighbouring lanes, eight together. All eight must come to it.
pub fn quantise<'k>(k: &'k Builder<'k>, words: [V<'k, u32>; 2]) -> (V<'k, u16>, V<'k, u32>) {
    let code = block_code(k, words);
    let latents: V<'k, Vector<bf16, 4>> = k.vector(words).bitcast();
    (latents.encode_scaled(Narrow::E2m1, Overflow::Saturate, k.pow2(code)), code)
}

/// As [`quantise`], of eight latents: four neighbouring lanes have a block together.
fn quantise_eight<'k>(k: &'k Builder<'k>, words: [V<'k, u32>; 4]) -> (V<'k, u32>, V<'k, u32>) {
    let code = block_code(k, words);
    let latents: V<'k, Vector<bf16, 8>> = k.vector(words).bitcast();
    (latents.encode_scaled(Narrow::E2m1, Overflow::Saturate, k.pow2(code)), code)
}

/// The e8m0 code of a block that neighbouring lanes have `N` words each of.
fn block_code<'k, const N: usize>(k: &'k Builder<'k>, words: [V<'k, u32>; N]) -> V<'k, u32> {
    let magnitudes = words.map(|w| (w & 0x7FFF_7FFF).bitcast::<Vector<u16, 2>>());
    let [first, more @ ..] = &magnitudes[..] else { return k.constant(LEAST_CODE as u32) };
    let most = more.iter().fold(*first, |a, b| a.maximum(*b)).reduce_max().to::<u32>();
    let lanes = WORDS_A_BLOCK / N as u32;
    let distances = std::iter::successors(Some(lanes / 2), |d| Some(d / 2)).take_while(|d| *d > 0);
    let most = most.butterfly(distances, ButterflyOp::Maximum);
    k.even_code(most).maximum(LEAST_CODE).bitcast()
}

/// The latents of a task's tokens.
#[derive(Clone, Copy)]
pub struct QuantisedLatents<'k> {
    lds: V<'k, LdsPtr<u8>>,
    tokens: u32,
}

impl<'k> QuantisedLatents<'k> {
    /// Reserves LDS for those of so many tokens, at most 16.
    pub fn new(k: &'k Builder<'k>, tokens: u32) -> Self {
        Self { lds: k.lds_bytes("latents", tokens * ROW, 16), tokens }
    }

    /// Tokens that there are.
    pub fn tokens(self) -> u32 {
        self.tokens
    }

    /// Quantises a thread's four latents of row `row`, of which its words are those from `word` on. Neighbouring threads have
    /// neighbouring words; all threads of the wave must come to it. A barrier must follow before they are used.
    pub fn put(self, k: &'k Builder<'k>, row: V<'k, u32>, word: V<'k, u32>, words: [V<'k, u32>; 2]) {
        let (codes, scale) = quantise(k, words);
        let row = self.lds + row * ROW;
        k.ptr_store(codes, (row + word).cast::<u16>());
        Self::put_scale(k, row, word, scale);
    }

    /// As [`QuantisedLatents::put`], of eight latents.
    pub fn put_eight(self, k: &'k Builder<'k>, row: V<'k, u32>, word: V<'k, u32>, words: [V<'k, u32>; 4]) {
        let (codes, scale) = quantise_eight(k, words);
        let row = self.lds + row * ROW;
        k.ptr_store(codes, (row + word).cast::<u32>());
        Self::put_scale(k, row, word, scale);
    }

    fn put_scale(k: &'k Builder<'k>, row: V<'k, LdsPtr<u8>>, word: V<'k, u32>, scale: V<'k, u32>) {
        let first_of_block = word.rem_floor(WORDS_A_BLOCK).eq(0);
        k.if_(first_of_block, || k.ptr_store(scale.to::<u8>(), row + (word.div_floor(WORDS_A_BLOCK) + CODES)));
    }

    /// The right factor of a product's step: the columns are tokens, those past the last one repeat it.
    pub fn fragment(self, k: &'k Builder<'k>, step: u32) -> FragmentB<'k, Product> {
        let rows = Matrix::new(k, self.lds, Storage::ColMajor, step * STEP, 2 * ROW);
        k.load_fragment(rows.clamped(self.tokens))
    }

    /// The scales of all steps as a product takes them.
    pub fn scales(self, k: &'k Builder<'k>) -> Scales<'k> {
        let rows = k.lanes(64).lane_index().map(|lane| {
            let row = lane.rem_floor(16).minimum(self.tokens - 1);
            k.ptr_load((self.lds + (row * ROW + CODES)).cast::<u32>())
        });
        Scales { rows }
    }
}

/// The 16 scales of a row, or column, in each of the 64 logical lanes that have elements of it.
#[derive(Clone, Copy)]
pub struct Scales<'k> {
    /// Word `i` holds those of step `i`.
    pub rows: Grouped<'k, Vector<u32, 4>>,
}

impl<'k> Scales<'k> {
    /// The scales of a step: logical lane `l` has that of block `l div 16` lowest.
    pub fn step(self, step: u32) -> Grouped<'k, u32> {
        let lanes = self.rows.group().lane_index();
        lanes.zip(self.rows, |lane, row| row.element(step as usize) >> (lane.div_floor(16) * 8))
    }
}
