//! An LDS pointer loads its own element type.
use lathe_dsl::prelude::*;

fn load<'k>(k: &'k Builder<'k>, p: V<'k, LdsPtr<u32>>) -> V<'k, f32> {
    k.ptr_load(p)
}

fn main() {
    let _ = load;
}
