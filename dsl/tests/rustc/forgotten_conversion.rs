//! An f32 that is to be stored to a buffer of bf16.

use lathe_dsl::prelude::*;

fn main() {
    lathe_dsl::builder::build("k", Target::GFX950, Launch::linear(1, 64), vec![], |k| {
        let out = k.make_buffer::<bf16>(k.constant(0u64), 4096);
        let x = k.lane_id().to::<f32>() * 2.0;
        k.buffer_store(x, out, k.lane_id());
    })
    .unwrap();
}
