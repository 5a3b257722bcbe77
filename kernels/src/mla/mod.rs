//! The tail of a multi-head latent attention decode step.
//!
//! One layer at tensor parallelism 8 gives every rank [`HEADS`] heads. Attention over a rank's shard of the KV cache leaves
//! partial rows and their log-sum-exp; [`combine`] merges them (those of one rank's splits: [`splits`]), [`uv`] makes gated values of the merged latents.

pub mod combine;
pub mod latents;
pub mod message;
pub mod problem;
pub mod push;
pub mod ranks;
pub mod reference;
mod run;
pub mod splits;
pub mod uv;

use lathe_dsl::prelude::*;

/// Attention heads a rank owns.
pub const HEADS: u32 = 12;

/// Latents of one head's row.
pub const LATENTS: u32 = 512;

/// Values of one head's row: the latents times W_UV.
pub const VALUES: u32 = 128;

/// Most workgroups of a launch: one per compute unit of an MI355X.
pub const CTAS: u32 = 256;

/// Threads of a workgroup.
pub const THREADS: u32 = 512;

/// Tokens of a task, where nothing divides them otherwise.
pub const TOKENS_A_TASK: u32 = 4;

/// Tasks of a launch: a head and `tokens_a_task` tokens each, head running fastest.
pub const fn tasks(tokens: u32, tokens_a_task: u32) -> u32 {
    HEADS * tokens.div_ceil(tokens_a_task)
}

/// Does a launch's tasks, spread over its workgroups: `task` gets a head and the first of `tokens_a_task` tokens. The workgroup's
/// threads come together between two tasks.
pub fn each_task<'k>(
    k: &'k Builder<'k>,
    tokens: u32,
    tokens_a_task: u32,
    mut task: impl FnMut(V<'k, u32>, V<'k, u32>),
) {
    let mut task = |task_id: V<'k, u32>| {
        let head = task_id.rem_floor(HEADS);
        let first_token = task_id.div_floor(HEADS) * tokens_a_task;
        task(head, first_token);
    };
    let (tasks, ctas) = (tasks(tokens, tokens_a_task), k.launch().grid[0]);
    if tasks == ctas {
        task(k.block_id(Axis::X));
    } else {
        k.for_range(k.block_id(Axis::X), tasks, ctas, (), |i, ()| {
            task(i);
            k.barrier(); // What the task left in LDS is read before the next one overwrites it.
        });
    }
}
