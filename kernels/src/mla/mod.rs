//! The tail of a multi-head latent attention decode step.
//!
//! One layer at tensor parallelism 8 gives every rank [`HEADS`] heads. Attention over a rank's shard of the KV cache leaves
//! partial rows and their log-sum-exp; [`combine`] merges them (those of one rank's splits: [`splits`]), [`uv`] makes gated values of
//! the merged latents. [`post`] does all of it in one launch, beginning with what ranks send each other.

pub mod combine;
pub mod latents;
pub mod message;
pub mod post;
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

/// Tokens of a combine task: [`TOKENS_A_TASK`], or with splits the fewest of 1, 2, 4 that divide `q` (a task's tokens are of one
/// request), whose parts of the workgroup divide the splits of a request, and whose tasks fit `ctas` workgroups; where none fits,
/// the most that divide. `None` where none divides: a request must have an even number of splits, or more factors of 2 where `q`
/// has less than two.
pub fn ctok(tokens: u32, q: u32, splits: u32, ctas: u32) -> Option<u32> {
    if splits == 0 {
        return Some(TOKENS_A_TASK);
    }
    let per = splits.checked_div(tokens.checked_div(q)?)?;
    let dividing = [1, 2, 4].into_iter().filter(|tc| q.is_multiple_of(*tc) && per.is_multiple_of(splits::WAVES / tc));
    dividing.clone().find(|tc| tasks(tokens, *tc) <= ctas).or(dividing.max())
}

/// The workgroups that share a kernel's tasks: all of a launch, or some of one that has other work, too.
#[derive(Clone, Copy)]
pub struct Workers<'k> {
    /// Number of this workgroup among them, the same in all its threads; others have `ctas` and more.
    pub index: V<'k, u32>,
    /// How many they are.
    pub ctas: u32,
}

impl<'k> Workers<'k> {
    /// All workgroups of a launch with a grid along x.
    pub fn all(k: &'k Builder<'k>) -> Self {
        Self { index: k.block_id(Axis::X), ctas: k.launch().grid[0] }
    }

    /// Whether they are all workgroups of the launch.
    fn are_all(&self, k: &'k Builder<'k>) -> bool {
        k.launch().grid[0] == self.ctas
    }

    /// Does tasks 0 to `tasks`, spread over the workgroups. A workgroup's threads come together between two of its tasks, but not
    /// behind its last one.
    pub fn each(self, k: &'k Builder<'k>, tasks: u32, mut task: impl FnMut(V<'k, u32>)) {
        let all = self.are_all(k);
        if tasks == self.ctas && all {
            task(self.index);
        } else if tasks <= self.ctas {
            k.if_(self.index.lt(tasks), || task(self.index));
        } else {
            let past = self.index.ge(self.ctas);
            let first = if all { self.index } else { past.select(tasks, self.index) };
            k.for_range(first, tasks, self.ctas, (), |i, ()| {
                task(i);
                k.barrier(); // What the task left in LDS is read before the next one overwrites it.
            });
        }
    }

    /// Does the tasks of [`tasks`]: `task` gets its number, a head and the first of `tokens_a_task` tokens.
    pub fn each_task(
        self,
        k: &'k Builder<'k>,
        tokens: u32,
        tokens_a_task: u32,
        mut task: impl FnMut(V<'k, u32>, V<'k, u32>, V<'k, u32>),
    ) {
        self.each(k, tasks(tokens, tokens_a_task), |i| {
            task(i, i.rem_floor(HEADS), i.div_floor(HEADS) * tokens_a_task);
        });
    }
}
