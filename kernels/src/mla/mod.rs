//! The tail of a multi-head latent attention decode step.
//!
//! One layer at tensor parallelism 8 gives every rank [`HEADS`] heads. Attention over a rank's shard of the KV cache leaves
//! partial rows and their log-sum-exp; [`combine`] merges them.

pub mod combine;
pub mod problem;
pub mod reference;
mod run;

/// Attention heads a rank owns.
pub const HEADS: u32 = 12;

/// Latents of one head's row.
pub const LATENTS: u32 = 512;

/// Most workgroups of a launch: one per compute unit of an MI355X.
pub const CTAS: u32 = 256;

/// Threads of a workgroup.
pub const THREADS: u32 = 512;

/// Tokens that one task combines.
pub const TOKENS_A_TASK: u32 = 4;

/// Tasks of a launch: a head and [`TOKENS_A_TASK`] tokens each, head running fastest.
pub const fn tasks(tokens: u32) -> u32 {
    HEADS * tokens.div_ceil(TOKENS_A_TASK)
}
