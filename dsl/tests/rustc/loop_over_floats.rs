//! A loop counts in integers.
use lathe_dsl::prelude::*;

fn count<'k>(k: &'k Builder<'k>, n: V<'k, f32>) {
    k.for_range(n, n, 1, (), |_, ()| ());
}

fn main() {
    let _ = count;
}
