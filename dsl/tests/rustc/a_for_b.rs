//! The left factor is no right one.
use lathe_dsl::prelude::*;

type Tile = Mma<16, 16, 32, f16>;

fn product<'k>(k: &'k Builder<'k>, a: FragmentA<'k, Tile>, c: FragmentC<'k, Tile>) -> FragmentC<'k, Tile> {
    k.mma(a, a, c)
}

fn main() {
    let _ = product;
}
