//! Waiting, scheduling, and hints.

use lathe_dsl::prelude::*;

use super::{Body, asm, count, has, lacks};

fn load<'k>(k: &'k Builder<'k>, i: u32) -> V<'k, f32> {
    k.buffer_load(k.buffer::<f32, In>(0), k.thread_id(Axis::X) + i)
}

fn save<'k, T: lathe_dsl::builder::Element + lathe_dsl::builder::Plain>(k: &'k Builder<'k>, v: V<'k, T>) {
    k.buffer_store(v, k.buffer::<u32, InOut>(1).cast(), k.thread_id(Axis::X));
}

#[test]
fn counters_are_encoded_as_gfx9_has_them() {
    let waits: Body = |k| {
        k.s_waitcnt(Waitcnt::new().vmcnt(37));
        k.s_sleep(1);
        k.s_waitcnt(Waitcnt::new().lgkmcnt(3));
        k.s_sleep(1);
        k.s_waitcnt(Waitcnt::new().vmcnt(0).lgkmcnt(15).expcnt(2));
    };
    for target in [Target::GFX950, Target::GFX942] {
        has(
            &asm(target, waits),
            &["s_waitcnt vmcnt(37)\n", "s_waitcnt lgkmcnt(3)\n", "s_waitcnt vmcnt(0) expcnt(2)\n"],
        );
    }
}

#[test]
fn sleeping_priorities_and_the_scheduler() {
    let body: Body = |k| {
        k.s_setprio(3);
        k.s_sleep(5);
        k.sched_barrier(0);
        k.sched_group_barrier(0x20, 1, 0);
        k.s_setprio(0);
        save(k, load(k, 0));
    };
    for target in [Target::GFX950, Target::GFX942, Target::GFX1201] {
        has(&asm(target, body), &["s_setprio 3", "s_sleep 5"]);
        // These leave no instruction.
        let ir = super::text(&super::kernel(target, super::usual_params(), body), target, crate::Level::LlvmIr);
        has(&ir, &["@llvm.amdgcn.sched.barrier(i32 0)", "@llvm.amdgcn.sched.group.barrier(i32 32, i32 1, i32 0)"]);
    }
    for target in [Target::SM_90, Target::SM_89, Target::SM_120A] {
        let ptx = asm(target, body);
        has(&ptx, &["nanosleep.u32"]);
        assert!(ptx.contains("320"), "{ptx}");
        lacks(&ptx, &["sched", "setprio"]);
    }
}

#[test]
fn an_opaque_value_is_computed_with() {
    let folded: Body = |k| save(k, k.constant(5u32) * 7);
    let opaque: Body = |k| save(k, k.constant(5u32).opaque() * 7);
    for target in Target::all() {
        let amd = target.chip().triple.starts_with("amdgcn");
        let multiplies = |text: &str| text.contains(if amd { "mul" } else { "mul.lo" });
        assert!(!multiplies(&asm(target, folded)) && multiplies(&asm(target, opaque)), "{}", asm(target, opaque));
    }
    let every: Body = |k| {
        let x = load(k, 0);
        let mut sum = x.to::<f64>().opaque().to::<f32>() + x.to::<f16>().opaque().to::<f32>();
        sum = sum + x.to::<bf16>().opaque().to::<f32>() + x.to::<i8>().opaque().to::<f32>();
        sum = sum
            + k.filled::<f32, 4>(x).opaque().reduce_add()
            + k.filled::<f64, 8>(x.to::<f64>()).opaque().reduce_add().to::<f32>();
        sum = sum + k.filled::<f16, 3>(x.to::<f16>()).opaque().reduce_add().to::<f32>();
        save(k, sum);
    };
    for target in Target::all() {
        asm(target, every);
    }
}

#[test]
fn what_is_expected_is_laid_out_first() {
    let body: Body = |k| {
        let x = load(k, 0);
        let rare = x.lt(0.0f32).expect(false);
        let v = k.if_else(
            rare,
            || {
                k.s_sleep(1);
                x * 3.0
            },
            || x,
        );
        save(k, v);
    };
    for target in Target::MAIN {
        let ir = super::text(&super::kernel(target, super::usual_params(), body), target, crate::Level::LlvmIr);
        has(&ir, &["@llvm.expect.i1(i1 %", "i1 false)"]);
        asm(target, body);
    }
}

#[test]
fn what_is_assumed_is_used() {
    let with: Body = |k| {
        let n = k.param::<u32>(3);
        k.assume(n.lt(16));
        save(k, n.lt(32).select(n, 0u32));
    };
    for target in Target::MAIN {
        lacks(&asm(target, with), &["cndmask", "cselect", "selp", "v_cmp", "s_cmp", "setp"]);
    }
}

#[test]
fn loops_are_unrolled_as_asked() {
    fn sum<'k>(k: &'k Builder<'k>, unroll: Unroll) {
        let x = k.buffer::<f32, In>(0);
        let i = k.thread_id(Axis::X);
        let total = k.for_range_with(0u32, 8, 1, unroll, k.constant(0.0f32), |j, sum| {
            sum + k.buffer_load::<f32>(x, i + j * 256)
        });
        save(k, total);
    }
    let bodies: [(Body, usize); 2] = [(|k| sum(k, Unroll::Full), 8), (|k| sum(k, Unroll::Never), 1)];
    for (body, copies) in bodies {
        for target in Target::MAIN {
            let text = asm(target, body);
            let load = if target == Target::SM_90 { "ld.global" } else { "buffer_load" };
            assert_eq!(count(&text, load), copies, "{target}\n{text}");
        }
    }
    // The same without constant ends.
    let open: Body = |k| {
        let x = k.buffer::<f32, In>(0);
        let total = k.for_range_with(0u32, k.param::<u32>(3), 1, Unroll::Never, k.constant(0.0f32), |j, sum| {
            sum + k.buffer_load::<f32>(x, j)
        });
        save(k, total);
    };
    for target in Target::MAIN {
        let text = asm(target, open);
        let load = if target == Target::SM_90 { "ld.global" } else { "buffer_load" };
        assert_eq!(count(&text, load), 1, "{target}\n{text}");
    }
}
