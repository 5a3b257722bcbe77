//! A value of one kernel cannot be used in another.
use lathe_dsl::builder::build;
use lathe_dsl::prelude::*;

fn main() {
    let launch = Launch::linear(1, 64);
    let _ = build("outer", Target::GFX950, launch, vec![], |a| {
        let x = a.thread_id(Axis::X);
        let _ = build("inner", Target::GFX950, launch, vec![], |b| {
            let _ = x + b.thread_id(Axis::X);
        });
    });
}
