//! A fragment belongs to one product.
use lathe_dsl::prelude::*;

type Tile = Mma<16, 16, 32, bf16>;
type Other = Mma<32, 32, 16, bf16>;

fn product<'k>(
    k: &'k Builder<'k>,
    a: FragmentA<'k, Tile>,
    b: FragmentB<'k, Tile>,
    c: FragmentC<'k, Other>,
) -> FragmentC<'k, Tile> {
    k.mma(a, b, c)
}

fn main() {
    let _ = product;
}
