//! A buffer declared as an input takes no store.
use lathe_dsl::kernel::In;
use lathe_dsl::prelude::*;

fn store<'k>(k: &'k Builder<'k>, x: Buffer<'k, f32, In>) {
    k.buffer_store(k.constant(1.0f32), x, 0);
}

fn main() {
    let _ = store;
}
