//! There are no transcendental functions of f64.
use lathe_dsl::prelude::*;

fn exp<'k>(x: V<'k, f64>) -> V<'k, f64> {
    x.exp()
}

fn main() {
    let _ = exp;
}
