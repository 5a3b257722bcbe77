//! An index has no width, so it has no shifts.
use lathe_dsl::prelude::*;

fn half<'k>(i: V<'k, Idx>) -> V<'k, Idx> {
    i >> 1
}

fn main() {
    let _ = half;
}
