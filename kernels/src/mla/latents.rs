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
//! LDS: a row a token, [4][272 bytes]: 512 codes, two a byte, then the scales of their 16 blocks
//! ```

use lathe_dsl::prelude::*;

use super::{LATENTS, TOKENS_A_TASK};

/// Latents that share a scale.
pub const BLOCK: u32 = 32;

/// Bytes of a row's codes, and words of it as bf16.
const CODES: u32 = LATENTS / 2;

/// Bytes of a row. Rows begin in different banks.
const ROW: u32 = CODES + LATENTS / BLOCK;

/// Words (two latents) that one thread quantises.
pub const WORDS_A_THREAD: u32 = 2;

/// The e8m0 codes are 1 and more, of normal f32.
const LEAST_CODE: i32 = 1;

/// Elements of K of one product.
const STEP: u32 = 128;

/// The product of W_UV and the latents.
pub type Product = MfmaScaled<E2m1>;

/// Four latents of a block as e2m1 codes, first one lowest, and the block's e8m0 code: the block's other latents are those of the
/// neighbouring lanes, eight together. All eight must come to it.
pub fn quantise<'k>(k: &'k Builder<'k>, words: [V<'k, u32>; 2]) -> (V<'k, u16>, V<'k, u32>) {
    let magnitudes = words.map(|w| (w & 0x7FFF_7FFF).bitcast::<Vector<u16, 2>>());
    let most = magnitudes[0].maximum(magnitudes[1]).reduce_max().to::<u32>();
    let most = most.butterfly([4, 2, 1], ButterflyOp::Maximum);
    let code = k.even_code(most).maximum(LEAST_CODE).bitcast::<u32>();
    let latents: V<'k, Vector<bf16, 4>> = k.vector(words).bitcast();
    (latents.encode_scaled(Narrow::E2m1, Overflow::Saturate, k.pow2(code)), code)
}

/// The latents of a task's tokens.
#[derive(Clone, Copy)]
pub struct QuantisedLatents<'k> {
    lds: V<'k, LdsPtr<u8>>,
}

impl<'k> QuantisedLatents<'k> {
    /// Reserves LDS for them.
    pub fn new(k: &'k Builder<'k>) -> Self {
        Self { lds: k.lds_bytes("latents", TOKENS_A_TASK * ROW, 16) }
    }

    /// Quantises a thread's latents of row `row` (0 to 3), of which its words are those from `word` on. Neighbouring threads have
    /// neighbouring words; all threads of the workgroup must come to it. A barrier must follow before they are used.
    pub fn put(self, k: &'k Builder<'k>, row: V<'k, u32>, word: V<'k, u32>, words: [V<'k, u32>; 2]) {
        let (codes, scale) = quantise(k, words);
        let row = self.lds + row * ROW;
        k.ptr_store(codes, (row + word).cast::<u16>());
        let words_a_block = BLOCK / 2;
        let first_of_block = word.rem_floor(words_a_block).eq(0);
        k.if_(first_of_block, || k.ptr_store(scale.to::<u8>(), row + (word.div_floor(words_a_block) + CODES)));
    }

    /// The right factor of a product's step: the columns are tokens, the fourth and all after it the last one.
    pub fn fragment(self, k: &'k Builder<'k>, step: u32) -> FragmentB<'k, Product> {
        let rows = Matrix::new(k, self.lds, Storage::ColMajor, step * STEP, 2 * ROW);
        k.load_fragment(rows.clamped(TOKENS_A_TASK))
    }

    /// The scales of all steps as a product takes them.
    pub fn scales(self, k: &'k Builder<'k>) -> Scales<'k> {
        let rows = k.lanes(64).lane_index().map(|lane| {
            let row = lane.rem_floor(16).minimum(TOKENS_A_TASK - 1);
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
