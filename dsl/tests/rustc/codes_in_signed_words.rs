//! Packed codes lie in unsigned words.
use lathe_dsl::prelude::*;

fn codes<'k>(x: V<'k, Vector<f32, 4>>) -> V<'k, i32> {
    x.encode(Narrow::E4m3, Overflow::Saturate)
}

fn main() {
    let _ = codes;
}
