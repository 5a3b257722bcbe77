//! Atomics work on 32 and 64 bits.
use lathe_dsl::prelude::*;

fn add<'k>(k: &'k Builder<'k>, p: V<'k, LdsPtr<bf16>>, x: V<'k, bf16>) {
    k.atomic_add(p, x, Order::Relaxed, Scope::Workgroup);
}

fn main() {
    let _ = add;
}
