//! Element types do not mix without a conversion that the author names.
use lathe_dsl::prelude::*;

fn sum<'k>(a: V<'k, f32>, b: V<'k, u32>) -> V<'k, f32> {
    a + b
}

fn main() {
    let _ = sum;
}
