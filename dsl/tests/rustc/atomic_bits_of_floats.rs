//! Bitwise atomics are for integers.
use lathe_dsl::prelude::*;

fn mask<'k>(k: &'k Builder<'k>, p: V<'k, GlobalPtr<f32>>, x: V<'k, f32>) {
    k.atomic_and(p, x, Order::Relaxed, Scope::Device);
}

fn main() {
    let _ = mask;
}
