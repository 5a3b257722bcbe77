//! Integers and floats have no sum together.
use lathe_dsl::prelude::*;

fn zero<'k>(k: &'k Builder<'k>) -> FragmentC<'k, Mma<16, 16, 32, i8, f16>> {
    k.zero_fragment()
}

fn main() {
    let _ = zero;
}
