//! What is undefined is reported, with source line, workgroup, thread and lane.

use super::super::{Absence, FaultKind};
use super::*;

#[test]
fn an_lds_access_is_held_against_its_array() {
    // Two arrays: past the end of `lat` lies `next`, which does not make the access right.
    for (wave, in_wave) in [(64, "wave 0, lane 17"), (32, "wave 0, lane 17")] {
        let mut b = Build::new(wave, 4, 64);
        let lds = b.lds("lat", Scalar::F32, 1040);
        let _ = b.lds("next", Scalar::F32, 1040);
        let (t, g, c) = (b.tid(), b.bid(), b.u32(341));
        // Block 3, thread 17 reaches element 3 · 341 + 17 = 1040, first of all.
        let at = b.mul(g, c);
        let at = b.add(at, t);
        let p = b.ptr(lds, at);
        let zero = b.constant(0, F32);
        b.ptr_store(zero, p);
        let line = b.line();
        assert_eq!(
            message(&b.finish()),
            format!(
                "k.rs:{line}:1: write to LDS array `lat` at element 1040, which has 1040 elements \
                 (block (3,0,0), thread (17,0,0), {in_wave})"
            )
        );
    }
}

#[test]
fn a_vector_that_ends_past_the_array_is_out_of_range() {
    let mut b = Build::new(32, 1, 40);
    let lds = b.lds("a", Scalar::U16, 10);
    let c = b.u32(8);
    let p = b.ptr(lds, c);
    let _ = b.ptr_load(p, Type::Vector(Scalar::U16, 4));
    let line = b.line();
    assert_eq!(
        message(&b.finish()),
        format!(
            "k.rs:{line}:1: read of LDS array `a` at elements 8..12, which has 10 elements \
             (block (0,0,0), thread (0,0,0), wave 0, lane 0)"
        )
    );
}

#[test]
fn pointer_arithmetic_does_not_wrap_into_range() {
    // 2^32 − 1 elements forward and one more is 2^32 elements forward, not zero.
    let mut b = Build::new(32, 1, 1);
    let lds = b.lds("a", Scalar::U32, 4);
    let (max, one, zero) = (b.u32(u32::MAX), b.u32(1), b.u32(0));
    let p = b.ptr(lds, max);
    let p = b.ptr(p, one);
    b.ptr_store(zero, p);
    let FaultKind::LdsOutOfRange { element, .. } = fault(&b.finish(), &Options::default()).kind else { panic!() };
    assert_eq!(element, 1 << 32);
}

#[test]
fn lds_never_written_in_this_workgroup_is_reported() {
    // Block 0 writes element 3, block 1 does not, though both read it; one host thread runs both in the same memory.
    let mut b = Build::new(64, 2, 1);
    let lds = b.lds("a", Scalar::Bf16, 8);
    let (g, one, three, v) = (b.bid(), b.u32(1), b.u32(3), b.constant(0x3F80, BF16));
    let p = b.ptr(lds, three);
    let first = b.lt(g, one);
    b.if_(first, |b| b.ptr_store(v, p));
    let _ = b.ptr_load(p, BF16);
    let line = b.line();
    let fault = fault(&b.finish(), &Options { threads: Some(1), ..Options::default() });
    assert_eq!(
        fault.to_string(),
        format!(
            "k.rs:{line}:1: read of LDS array `a` at element 3, which was never written in this workgroup before; \
             if another wave writes it, a barrier in between is missing (block (1,0,0), thread (0,0,0), wave 0, lane 0)"
        )
    );
}

#[test]
fn the_first_unwritten_element_of_a_vector_is_named() {
    let mut b = Build::new(32, 1, 1);
    let lds = b.lds("a", Scalar::U32, 8);
    let (one, v) = (b.u32(1), b.constant(5, Type::Vector(Scalar::U32, 2)));
    let p = b.ptr(lds, one);
    b.ptr_store(v, p);
    let _ = b.ptr_load(p, Type::Vector(Scalar::U32, 4));
    let kind = fault(&b.finish(), &Options::default()).kind;
    assert_eq!(kind, FaultKind::LdsUninitialised { array: "a", element: 3 });
}

#[test]
fn a_missing_barrier_shows_as_an_unwritten_read() {
    // Thread t reads what thread t + 32 of the next wave writes; without a barrier the first wave is too early.
    let mut b = Build::new(32, 1, 64);
    let lds = b.lds("a", Scalar::U32, 96);
    let (t, half) = (b.tid(), b.u32(32));
    let p = b.ptr(lds, t);
    b.ptr_store(t, p);
    let p = b.ptr(p, half);
    let _ = b.ptr_load(p, U32);
    let fault = fault(&b.finish(), &Options::default());
    assert_eq!(fault.kind, FaultKind::LdsUninitialised { array: "a", element: 32 });
    assert_eq!((fault.site.wave, fault.site.lane, fault.site.thread), (0, 0, [0, 0, 0]));
}

#[test]
fn lds_misaligned_for_its_element_is_reported() {
    let mut b = Build::new(32, 1, 1);
    let _ = b.lds("pad", Scalar::U16, 1);
    let lds = b.lds("a", Scalar::U32, 8);
    b.kernel.lds[1].align = 2;
    let zero = b.u32(0);
    b.ptr_store(zero, lds);
    let line = b.line();
    assert_eq!(
        message(&b.finish()),
        format!(
            "k.rs:{line}:1: write to LDS array `a` at LDS byte 2, which is not aligned to its 4-byte elements \
             (block (0,0,0), thread (0,0,0), wave 0, lane 0)"
        )
    );
}

#[test]
fn division_by_zero_is_reported_for_active_lanes_only() {
    for op in [BinaryOp::DivFloor, BinaryOp::RemFloor] {
        for s in [Scalar::U16, Scalar::I32, Scalar::U32, Scalar::I64, Scalar::U64] {
            // 1000 / (70 − t) for t < limit: thread 70 must not take part.
            let kernel = |limit: u32| {
                let mut b = Build::new(64, 1, 80);
                let (t, seventy, limit) = (b.tid(), b.u32(70), b.u32(limit));
                let d = b.binary(BinaryOp::Sub, seventy, t);
                let d = b.op(Op::Convert(d), Type::Scalar(s));
                let x = b.constant(1000, Type::Scalar(s));
                let takes = b.lt(t, limit);
                let mut line = 0;
                b.if_(takes, |b| {
                    b.binary(op, x, d);
                    line = b.line();
                });
                (b.finish(), line)
            };
            let (fine, _) = kernel(70);
            run(&fine, &[], &Options::default()).unwrap();
            let (wrong, line) = kernel(71);
            assert_eq!(
                message(&wrong),
                format!("k.rs:{line}:1: integer division by zero (block (0,0,0), thread (70,0,0), wave 1, lane 6)"),
                "{op:?} {s}"
            );
        }
    }
}

#[test]
fn a_barrier_under_divergence_is_reported() {
    let mut b = Build::new(64, 1, 128);
    let (t, c) = (b.tid(), b.u32(100));
    let low = b.lt(t, c);
    let mut line = 0;
    b.if_(low, |b| {
        b.void(Op::Barrier);
        line = b.line();
    });
    let branch = b.line();
    // Wave 0 waits with all lanes; wave 1 comes with lanes 0..36 only.
    assert_eq!(
        message(&b.finish()),
        format!(
            "k.rs:{line}:1: barrier not reached by all threads: this one waits, thread (100,0,0) does not take this \
             path, which leads off at k.rs:{branch}:1 (block (0,0,0), thread (64,0,0), wave 1, lane 0)"
        )
    );
}

#[test]
fn a_barrier_that_a_whole_wave_misses_is_reported() {
    let mut b = Build::new(32, 2, 96);
    let (t, c) = (b.tid(), b.u32(32));
    let high = b.compare(Predicate::Ge, t, c);
    let mut line = 0;
    b.if_(high, |b| {
        b.void(Op::Barrier);
        line = b.line();
    });
    assert_eq!(
        message(&b.finish()),
        format!(
            "k.rs:{line}:1: barrier not reached by all threads: this one waits, thread (0,0,0) has ended \
             (block (0,0,0), thread (32,0,0), wave 1, lane 0)"
        )
    );
}

#[test]
fn waves_at_different_barriers_are_reported() {
    let mut b = Build::new(32, 1, 64);
    let (t, c) = (b.tid(), b.u32(32));
    let low = b.lt(t, c);
    let mut lines = [0; 2];
    let [first, second] = &mut lines;
    b.if_else(
        low,
        &[],
        |b| {
            b.void(Op::Barrier);
            *first = b.line();
            vec![]
        },
        |b| {
            b.void(Op::Barrier);
            *second = b.line();
            vec![]
        },
    );
    let kernel = b.finish();
    let fault = fault(&kernel, &Options::default());
    assert_eq!(fault.site.location.line, lines[0]);
    let FaultKind::BarrierNotReached { missing, absence: Absence::Elsewhere(at) } = fault.kind else { panic!() };
    assert_eq!((missing, at.line), ([32, 0, 0], lines[1]));
}

#[test]
fn lanes_that_left_a_loop_early_do_not_reach_its_barrier() {
    let mut b = Build::new(32, 1, 32);
    let (t, zero, always) = (b.tid(), b.u32(0), b.constant(1, BOOL));
    b.for_((zero, t, 1), &[], |b, _, _| {
        // A branch that lane 0 would take, too.
        b.if_(always, |b| b.void(Op::Barrier));
        vec![]
    });
    let line = b.line();
    let FaultKind::BarrierNotReached { missing, absence: Absence::PassedBy(at) } =
        fault(&b.finish(), &Options::default()).kind
    else {
        panic!()
    };
    assert_eq!((missing, at.line), ([0, 0, 0], line));
}

#[test]
fn the_step_limit_names_the_loop() {
    let mut b = Build::new(32, 1, 64);
    let (t, zero, max, forty) = (b.tid(), b.u32(0), b.u32(u32::MAX), b.u32(40));
    b.for_((zero, forty, 1), &[], |_, _, _| vec![]);
    let late = b.compare(Predicate::Ge, t, forty);
    let mut line = 0;
    b.if_(late, |b| {
        b.for_((zero, max, 1), &[zero], |b, i, c| vec![b.add(c[0], i)]);
        line = b.line();
    });
    let fault = fault(&b.finish(), &Options { step_limit: Some(10_000), ..Options::default() });
    assert_eq!(
        fault.to_string(),
        format!(
            "k.rs:{line}:1: loop still running after 10000 instructions of its wave, the limit that \
             `step_limit` sets (block (0,0,0), thread (40,0,0), wave 1, lane 8)"
        )
    );
}

#[test]
fn the_lowest_workgroup_s_fault_is_reported_whatever_the_order() {
    // Blocks 5, 6, … fail, the higher the sooner.
    let mut b = Build::new(32, 64, 32);
    let lds = b.lds("a", Scalar::U32, 1);
    let (g, zero, five, c, n) = (b.bid(), b.u32(0), b.u32(5), b.u32(40), b.u32(64));
    let left = b.binary(BinaryOp::Sub, n, g);
    let spins = b.mul(left, c);
    b.for_((zero, spins, 1), &[zero], |b, i, c| vec![b.add(c[0], i)]);
    let bad = b.compare(Predicate::Ge, g, five);
    let at = b.op(Op::Select { condition: bad, on_true: g, on_false: zero }, U32);
    let p = b.ptr(lds, at);
    b.ptr_store(zero, p);
    let kernel = b.finish();
    for threads in [1, 2, 3, 16] {
        for seed in [None; 5].into_iter().chain((0..10).map(Some)) {
            let fault = fault(&kernel, &Options { threads: Some(threads), seed, ..Options::default() });
            assert_eq!(fault.site.block, [5, 0, 0]);
        }
    }
}
