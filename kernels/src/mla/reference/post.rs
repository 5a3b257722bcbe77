//! What `mla_post` must compute, in plain Rust: its stages one after the other.

use half::bf16;

use super::super::post::MlaPost;
use super::super::splits::MlaCombineSplits;
use super::splits::combine_splits_in_tasks;
use super::uv::uv;
use crate::gemm::reference::Mxfp4;

/// The combined latents of one rank's heads, `[tokens][12][512]`. `partial` is `[ranks][tokens][12][512]` and `lse`
/// `[ranks][tokens][12]`, read of more than one; with splits, these stand in the place of ranks.
///
/// # Panics
///
/// Where a slice is shorter or longer than these shapes say.
pub fn combined(key: &MlaPost, partial: &[bf16], lse: &[f32]) -> Vec<bf16> {
    let MlaPost { ranks, tokens, q, splits, .. } = *key;
    if splits == 0 {
        return super::combine(ranks as usize, tokens as usize, partial, lse);
    }
    combine_splits_in_tasks(&MlaCombineSplits { splits, tokens, q }, key.tokens_a_task(), partial, lse)
}

/// The gated values, `[tokens][12 · 128]`: [`uv`] of what [`combined`] gives.
///
/// # Panics
///
/// Where a slice is shorter or longer than these shapes say.
pub fn mla_post(key: &MlaPost, partial: &[bf16], lse: &[f32], w_v: &Mxfp4, gate: &[bf16]) -> Vec<bf16> {
    uv(key.tokens as usize, &combined(key, partial, lse), w_v, gate)
}
