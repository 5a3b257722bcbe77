//! Branches, loops and barriers.

use lathe_dsl::ir::{Access, Axis, Kernel, Scalar};
use lathe_dsl::kernel::{In, InOut};
use lathe_dsl::{Arch, Target};

use super::{buffer, count, has, kernel, lacks, scalar, text};
use crate::Level;

/// Sums `x[i]` over a range that `bounds` chooses.
fn sum(target: Target, hi_is_a_parameter: bool) -> Kernel {
    let params = vec![buffer("x", Scalar::F32, Access::ReadWrite), scalar("n", Scalar::U32)];
    kernel(target, params, move |k| {
        let x = k.buffer::<f32, InOut>(0);
        let hi = if hi_is_a_parameter { k.param::<u32>(1) } else { k.constant(100) };
        let start = k.constant(0.0f32);
        let total = k.for_range(k.thread_id(Axis::X), hi, 3, start, |i, sum| sum + k.buffer_load::<f32>(x, i));
        k.buffer_store(total, x, k.thread_id(Axis::X));
    })
}

#[test]
fn a_loop_counts_in_32_bits_only_where_it_cannot_wrap() {
    for target in Target::MAIN {
        let m = text(&sum(target, false), target, Level::Mlir);
        has(&m, &["scf.for unsigned", ": i32 {"]);
        lacks(&m, &[" : i64 {"]);
        // A bound near 2^32 would make the index wrap, and the loop never end.
        let m = text(&sum(target, true), target, Level::Mlir);
        has(&m, &["scf.for unsigned", " : i64 {", "arith.trunci"]);
        text(&sum(target, true), target, Level::Asm);
    }
}

#[test]
fn a_branch_hands_out_values() {
    for target in Target::MAIN {
        let k = kernel(target, vec![buffer("x", Scalar::F32, Access::ReadWrite)], |k| {
            let x = k.buffer::<f32, InOut>(0);
            let i = k.thread_id(Axis::X);
            let (a, b) =
                k.if_else(i.lt(7), || (k.buffer_load::<f32>(x, i), i + 1), || (k.constant(2.0f32), k.constant(9u32)));
            k.if_(b.gt(3), || k.buffer_store(a, x, b));
        });
        let m = text(&k, target, Level::Mlir);
        has(&m, &["-> (f32, i32)", "scf.yield"]);
        assert_eq!(count(&m, "} else {"), 1, "{m}");
        text(&k, target, Level::Asm);
    }
}

#[test]
fn loops_and_branches_nest_and_carry_vectors_and_pointers() {
    for target in Target::MAIN {
        let params = vec![buffer("x", Scalar::F32, Access::Read), buffer("y", Scalar::F32, Access::ReadWrite)];
        let k = kernel(target, params, |k| {
            let (x, y) = (k.buffer::<f32, In>(0), k.buffer::<f32, InOut>(1));
            let i = k.thread_id(Axis::X);
            let lds = k.lds::<f32>("row", 256);
            k.ptr_store(k.buffer_load::<f32>(x, i), lds + i);
            k.barrier();
            let start = (k.filled::<f32, 2>(k.constant(0.0)), lds);
            let (sums, _) = k.for_range(0, 16, 1, start, |j, (sums, p)| {
                let v = k.ptr_load::<f32>(p);
                let v = k.if_else(j.lt(i), || v, || v * 2.0);
                (sums + k.filled(v), p + 1)
            });
            let [a, b] = sums.elements();
            k.buffer_store(a + b, y, i);
        });
        has(&text(&k, target, Level::Mlir), &["(vector<2xf32>, !llvm.ptr<3>)"]);
        text(&k, target, Level::Asm);
    }
}

#[test]
fn a_barrier_is_one_instruction_and_orders_lds() {
    for (target, instruction) in [(Target::GFX950, "s_barrier"), (Target::SM_90, "bar.sync")] {
        let k = kernel(target, vec![buffer("x", Scalar::F32, Access::ReadWrite)], |k| {
            let (x, i) = (k.buffer::<f32, InOut>(0), k.thread_id(Axis::X));
            let lds = k.lds::<f32>("row", 256);
            k.ptr_store(k.buffer_load::<f32>(x, i), lds + i);
            k.barrier();
            k.buffer_store(k.ptr_load::<f32>(lds + (255 - i)), x, i);
        });
        let asm = text(&k, target, Level::Asm);
        let at = |what: &str| asm.find(what).unwrap_or_else(|| panic!("no {what} in {asm}"));
        let [store, load] = match target.chip().arch {
            Arch::Amdgpu => ["ds_write_b32", "ds_read_b32"],
            Arch::Nvptx => ["st.shared", "ld.shared"],
        };
        assert_eq!(count(&asm, instruction), 1);
        assert!(at(store) < at(instruction) && at(instruction) < at(load), "{asm}");
    }
}

#[test]
fn loops_of_every_index_type_end() {
    use super::{Body, usual_params};
    use lathe_dsl::prelude::{Builder, Idx, InOut as Rw, V};
    fn save<'k>(k: &'k Builder<'k>, sum: V<'k, u32>) {
        k.buffer_store(sum, k.buffer::<u32, Rw>(1), k.thread_id(Axis::X));
    }
    fn constant<'k>(k: &'k Builder<'k>) -> V<'k, u32> {
        k.constant(0u32)
    }
    let mlir = |target, body: Body| text(&kernel(target, usual_params(), body), target, Level::Mlir);
    // Signed ends compare as such; one that is not known is counted in more bits.
    let signed: Body = |k| {
        let hi = k.param::<u32>(3).to::<i32>();
        save(k, k.for_range(-5i32, hi, 7, constant(k), |i, sum| sum + i.to::<u32>()));
    };
    // A step of 1 never wraps.
    let ones: Body = |k| {
        let hi = k.param::<u32>(3).to::<i32>();
        save(k, k.for_range(-5i32, hi, 1, constant(k), |i, sum| sum + i.to::<u32>()));
    };
    // 64 bits have no more: the iterations are counted.
    let wide: Body = |k| {
        let hi = k.param::<u64>(2);
        save(k, k.for_range(3u64, hi, 7, constant(k), |i, sum| sum + i.to::<u32>()));
    };
    let index: Body = |k| {
        let hi = k.thread_id(Axis::X).to::<Idx>();
        save(k, k.for_range(Idx(0), hi, 3, constant(k), |i, sum| sum + i.to::<u32>()));
    };
    for target in Target::MAIN {
        let m = mlir(target, signed);
        has(&m, &["scf.for %", " : i64 {", "arith.trunci"]);
        lacks(&m, &["scf.for unsigned"]);
        let m = mlir(target, ones);
        has(&m, &["scf.for %"]);
        lacks(&m, &[" : i64 {"]);
        has(&mlir(target, wide), &["arith.divui", "scf.for unsigned"]);
        lacks(&mlir(target, index), &[" : i64 {"]);
        for body in [signed, ones, wide, index] {
            super::asm(target, body);
        }
    }
}

#[test]
fn a_loop_that_runs_while_something_holds_hands_out_what_ended_it() {
    use super::Body;
    let halve: Body = |k| {
        let n = k.thread_id(Axis::X) + 1;
        let (odd, steps) = k.while_((n, k.constant(0u32)), |(x, n)| ((x & 1).eq(0), (x, n)), |(x, n)| (x >> 1, n + 1));
        k.buffer_store(odd + steps, k.buffer::<u32, InOut>(1), k.thread_id(Axis::X));
    };
    for target in Target::all() {
        let m = text(&kernel(target, super::usual_params(), halve), target, Level::Mlir);
        has(&m, &["scf.while", "scf.condition"]);
        super::asm(target, halve);
    }
}
