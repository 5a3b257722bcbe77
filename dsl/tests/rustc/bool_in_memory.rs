//! A bool has no form in memory.
use lathe_dsl::prelude::*;

fn load<'k>(k: &'k Builder<'k>, p: V<'k, LdsPtr<bool>>) -> V<'k, bool> {
    k.ptr_load(p)
}

fn main() {
    let _ = load;
}
