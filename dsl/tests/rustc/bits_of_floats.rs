//! Floats have no bitwise operations.
use lathe_dsl::prelude::*;

fn sign<'k>(x: V<'k, f32>) -> V<'k, f32> {
    x & x
}

fn main() {
    let _ = sign;
}
