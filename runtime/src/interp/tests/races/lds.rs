//! Between the waves of a workgroup, in LDS.

use lathe_dsl::ir::AtomicOp;

use super::*;

/// Thread `t` stores to element `t`, then (after a barrier, if there is one) reads element `t ^ 32`, after the array was
/// filled.
fn exchange(with_barrier: bool) -> (Kernel, u32, u32) {
    let mut b = Build::new(32, 2, 64);
    let l = b.filled_lds(64);
    b.barrier();
    let (t, half) = (b.tid(), b.u32(32));
    let p = b.ptr(l, t);
    b.ptr_store(half, p);
    let store = b.line();
    if with_barrier {
        b.barrier();
    }
    let other = b.binary(BinaryOp::Xor, t, half);
    let p = b.ptr(l, other);
    b.ptr_load(p, U32);
    let load = b.line();
    (b.finish(), store, load)
}

#[test]
fn a_missing_barrier_between_store_and_load() {
    let (kernel, store, load) = exchange(false);
    assert_eq!(
        race(&kernel),
        format!(
            "k.rs:{load}:1: read of LDS array `l` at element 32 races with the write at k.rs:{store}:1 of \
             block (0,0,0), thread (32,0,0), wave 1, lane 0: no barrier between them \
             (block (0,0,0), thread (0,0,0), wave 0, lane 0)"
        )
    );
    assert_eq!(found(&exchange(true).0), [""; 0]);
}

#[test]
fn two_stores() {
    // Threads t and t + 32 store to element t.
    for apart in [false, true] {
        let mut b = Build::new(32, 1, 64);
        let l = b.lds("l", Scalar::U32, 32);
        let (t, half) = (b.tid(), b.u32(32));
        let low = b.lt(t, half);
        let at = b.binary(BinaryOp::RemFloor, t, half);
        let p = b.ptr(l, at);
        b.if_(low, |b| b.ptr_store(t, p));
        let store = b.line() - 1;
        if apart {
            b.barrier();
        }
        let high = b.compare(Predicate::Ge, t, half);
        b.if_(high, |b| b.ptr_store(t, p));
        let line = b.line() - 1;
        let kernel = b.finish();
        if apart {
            assert_eq!(found(&kernel), [""; 0]);
            continue;
        }
        assert_eq!(
            race(&kernel),
            format!(
                "k.rs:{line}:1: write to LDS array `l` at element 0 races with the write at k.rs:{store}:1 of \
                 block (0,0,0), thread (0,0,0), wave 0, lane 0: no barrier between them \
                 (block (0,0,0), thread (32,0,0), wave 1, lane 0)"
            )
        );
    }
}

#[test]
fn a_load_before_the_next_store() {
    // In every round all read element 0, which the last thread stores to: without a second barrier it is too early.
    let kernel = |barriers: u32| {
        let mut b = Build::new(32, 1, 96);
        let l = b.filled_lds(96);
        b.barrier();
        let (t, zero, rounds, last) = (b.tid(), b.u32(0), b.u32(3), b.u32(95));
        let writes = b.compare(Predicate::Eq, t, last);
        let mut lines = [0; 2];
        b.for_((zero, rounds, 1), &[], |b, i, _| {
            b.ptr_load(l, U32);
            lines[0] = b.line();
            if barriers == 2 {
                b.barrier();
            }
            b.if_(writes, |b| b.ptr_store(i, l));
            lines[1] = b.line() - 1;
            b.barrier();
            vec![]
        });
        (b.finish(), lines)
    };
    let (wrong, [load, store]) = kernel(1);
    assert_eq!(
        race(&wrong),
        format!(
            "k.rs:{store}:1: write to LDS array `l` at element 0 races with the read at k.rs:{load}:1 of \
             block (0,0,0), thread (0,0,0), wave 0, lane 0: no barrier between them \
             (block (0,0,0), thread (95,0,0), wave 2, lane 31)"
        )
    );
    assert_eq!(found(&kernel(2).0), [""; 0]);
}

#[test]
fn a_double_buffer_needs_a_barrier_a_round() {
    // Round i stores to half i mod 2 and, after the barrier, reads the neighbour's there: one barrier a round is enough with
    // two halves, and not with one.
    let kernel = |halves: u32| {
        let mut b = Build::new(32, 1, 64);
        let l = b.lds("l", Scalar::U32, 128);
        let (t, zero, rounds, n, size, one, mask) =
            (b.tid(), b.u32(0), b.u32(6), b.u32(halves), b.u32(64), b.u32(33), b.u32(63));
        let mut lines = [0; 2];
        b.for_((zero, rounds, 1), &[], |b, i, _| {
            let half = b.binary(BinaryOp::RemFloor, i, n);
            let start = b.mul(half, size);
            let at = b.add(start, t);
            let p = b.ptr(l, at);
            b.ptr_store(i, p);
            lines[0] = b.line();
            b.barrier();
            let next = b.add(t, one);
            let next = b.binary(BinaryOp::And, next, mask);
            let at = b.add(start, next);
            let p = b.ptr(l, at);
            b.ptr_load(p, U32);
            lines[1] = b.line();
            vec![]
        });
        (b.finish(), lines)
    };
    assert_eq!(found(&kernel(2).0), [""; 0]);
    let (wrong, [store, load]) = kernel(1);
    assert_eq!(
        race(&wrong),
        format!(
            "k.rs:{load}:1: read of LDS array `l` at element 33 races with the write at k.rs:{store}:1 of \
             block (0,0,0), thread (33,0,0), wave 1, lane 1: no barrier between them \
             (block (0,0,0), thread (0,0,0), wave 0, lane 0)"
        )
    );
}

#[test]
fn a_tree_reduction_is_clean_and_one_without_barriers_is_not() {
    for barriers in [true, false] {
        let mut b = Build::new(32, 3, 256);
        let l = b.filled_lds(256);
        b.barrier();
        let t = b.tid();
        for half in [128, 64, 32, 16, 8, 4, 2, 1] {
            let half = b.u32(half);
            let low = b.lt(t, half);
            b.if_(low, |b| {
                let p = b.ptr(l, t);
                let q = b.ptr(p, half);
                let (x, y) = (b.ptr_load(p, U32), b.ptr_load(q, U32));
                let sum = b.add(x, y);
                b.ptr_store(sum, p);
            });
            if barriers {
                b.barrier();
            }
        }
        let found = found_once(&b.finish());
        assert_eq!(found.is_empty(), barriers, "{found:#?}");
    }
}

/// Which of many races are found depends on the schedule; that some are does not.
fn found_once(kernel: &Kernel) -> Vec<String> {
    let report = run(kernel, &[], &Options::default()).unwrap();
    report.findings.iter().map(ToString::to_string).collect()
}

#[test]
fn parts_of_a_word_are_apart() {
    // Bytes, halves and words of one array: each thread its own, next to those of other waves.
    for (s, ty) in [(Scalar::U8, Type::Scalar(Scalar::U8)), (Scalar::U16, U16)] {
        for stride in [1, 2] {
            let mut b = Build::new(32, 1, 128);
            let l = b.lds("l", s, 256);
            let (t, v, k, m) = (b.tid(), b.constant(3, ty), b.u32(stride), b.u32(37));
            // Neighbours lie in different waves.
            let at = b.mul(t, m);
            let n = b.u32(128);
            let at = b.binary(BinaryOp::RemFloor, at, n);
            let at = b.mul(at, k);
            let p = b.ptr(l, at);
            b.ptr_store(v, p);
            b.ptr_load(p, ty);
            b.barrier();
            let p = b.ptr(l, t);
            if stride == 1 {
                b.ptr_load(p, ty);
            }
            b.barrier();
            let wide = b.op(Op::PtrCast(l), Type::Ptr(Space::Lds, Scalar::U32));
            b.first_only(|b| {
                let x = b.u32(7);
                b.ptr_store(x, wide);
            });
            assert_eq!(found(&b.finish()), [""; 0], "{s} {stride}");
        }
    }
}

#[test]
fn a_byte_in_common_is_enough() {
    // Thread 32 stores a word, thread 0 reads its last byte.
    let mut b = Build::new(32, 1, 64);
    let l = b.lds("l", Scalar::U8, 64);
    let words = b.op(Op::PtrCast(l), Type::Ptr(Space::Lds, Scalar::U32));
    let (t, zero, half) = (b.tid(), b.u32(0), b.u32(32));
    b.first_only(|b| b.ptr_store(zero, words));
    b.barrier();
    let writes = b.compare(Predicate::Eq, t, half);
    b.if_(writes, |b| b.ptr_store(half, words));
    let store = b.line() - 1;
    let mut load = 0;
    b.first_only(|b| {
        let three = b.u32(3);
        let p = b.ptr(l, three);
        b.ptr_load(p, Type::Scalar(Scalar::U8));
        load = b.line();
    });
    assert_eq!(
        race(&b.finish()),
        format!(
            "k.rs:{load}:1: read of LDS array `l` at element 3 races with the write at k.rs:{store}:1 of \
             block (0,0,0), thread (32,0,0), wave 1, lane 0: no barrier between them \
             (block (0,0,0), thread (0,0,0), wave 0, lane 0)"
        )
    );
}

#[test]
fn atomics_race_with_plain_accesses_only() {
    for plain in [false, true] {
        let mut b = Build::new(64, 1, 128);
        let l = b.lds("l", Scalar::U32, 1);
        let (one, zero) = (b.u32(1), b.u32(0));
        b.first_only(|b| b.ptr_store(zero, l));
        b.barrier();
        let (order, scope) = (Order::Relaxed, Scope::Workgroup);
        b.op(Op::AtomicRmw { op: AtomicOp::Add, pointer: l, value: one, order, scope }, U32);
        let update = b.line();
        let memory = Memory { order, scope, ..Memory::default() };
        b.op(Op::PtrLoad { pointer: l, memory }, U32);
        if plain {
            b.first_only(|b| {
                b.ptr_load(l, U32);
            });
        }
        let load = b.line() - 1;
        let kernel = b.finish();
        if plain {
            assert_eq!(
                race(&kernel),
                format!(
                    "k.rs:{load}:1: read of LDS array `l` at element 0 races with the atomic update at \
                     k.rs:{update}:1 of block (0,0,0), thread (1,0,0), wave 0, lane 1: no fence or barrier orders \
                     lanes of the wave (block (0,0,0), thread (0,0,0), wave 0, lane 0)"
                )
            );
        } else {
            assert_eq!(found(&kernel), [""; 0]);
        }
    }
}

#[test]
fn workgroups_have_lds_of_their_own() {
    // What the last workgroup did in the same host memory does not count.
    let mut b = Build::new(32, 50, 64);
    let l = b.lds("l", Scalar::U32, 64);
    let (t, n) = (b.tid(), b.u32(63));
    let at = b.binary(BinaryOp::Sub, n, t);
    let p = b.ptr(l, at);
    b.ptr_store(t, p);
    assert_eq!(found(&b.finish()), [""; 0]);
}
