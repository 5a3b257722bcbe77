//! A comparison of device values is no Rust condition.
use lathe_dsl::prelude::*;

fn pick<'k>(a: V<'k, u32>, b: V<'k, u32>) -> bool {
    a == b
}

fn main() {
    let _ = pick;
}
