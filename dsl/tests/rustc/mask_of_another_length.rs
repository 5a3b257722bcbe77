//! A mask has as many elements as what it chooses.
use lathe_dsl::prelude::*;

fn choose<'k>(mask: V<'k, Vector<bool, 2>>, x: V<'k, Vector<f32, 4>>) -> V<'k, Vector<f32, 4>> {
    mask.select(x, 0.0)
}

fn main() {
    let _ = choose;
}
