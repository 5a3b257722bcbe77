//! A copy to LDS goes to LDS.
use lathe_dsl::kernel::In;
use lathe_dsl::prelude::*;

fn copy<'k>(k: &'k Builder<'k>, x: Buffer<'k, f32, In>, p: V<'k, GlobalPtr<f32>>) {
    k.copy_to_lds(x, 0, p, 16);
}

fn main() {
    let _ = copy;
}
