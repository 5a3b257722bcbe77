//! A masked load says what the lanes get that do not load.
use lathe_dsl::kernel::In;
use lathe_dsl::prelude::*;

fn load<'k>(k: &'k Builder<'k>, x: Buffer<'k, f32, In>, live: V<'k, bool>) -> V<'k, f32> {
    k.buffer_load_with(x, 0, LoadOptions::new().mask(live))
}

fn main() {
    let _ = load;
}
