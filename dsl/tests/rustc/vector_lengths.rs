//! Vectors of different lengths do not mix.
use lathe_dsl::prelude::*;

fn sum<'k>(a: V<'k, Vector<f32, 2>>, b: V<'k, Vector<f32, 4>>) -> V<'k, Vector<f32, 2>> {
    a + b
}

fn main() {
    let _ = sum;
}
