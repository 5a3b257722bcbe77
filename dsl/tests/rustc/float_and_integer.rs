//! A float and an integer do not add up.
use lathe_dsl::prelude::*;

fn sum<'k>(x: V<'k, f32>, n: V<'k, i32>) -> V<'k, f32> {
    x + n
}

fn main() {
    let _ = sum;
}
