//! A number is no condition.
use lathe_dsl::prelude::*;

fn truth<'k>(n: V<'k, u32>) -> V<'k, bool> {
    n.to()
}

fn main() {
    let _ = truth;
}
