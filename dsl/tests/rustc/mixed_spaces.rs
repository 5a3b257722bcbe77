//! Pointers into LDS and into global memory do not mix.
use lathe_dsl::prelude::*;

fn pick<'k>(k: &'k Builder<'k>, c: V<'k, bool>, a: V<'k, LdsPtr<f32>>, b: V<'k, GlobalPtr<f32>>) {
    let p = k.if_else(c, || a, || b);
    k.ptr_store(k.constant(1.0f32), p);
}

fn main() {
    let _ = pick;
}
