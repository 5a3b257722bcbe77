//! In global memory, within a workgroup and between workgroups.

use lathe_dsl::ir::{AtomicKind, AtomicOp};

use super::*;

/// Thread `t` of one workgroup stores to element `t` of a buffer, `between` comes, it reads element `t ^ 32` or `t ^ 1`.
fn exchange(distance: u32, between: impl FnOnce(&mut Build)) -> (Kernel, u32, u32) {
    let mut b = Build::new(32, 1, 64);
    let x = b.buffer("x", Scalar::U32, 64, Access::ReadWrite);
    let (t, d) = (b.tid(), b.u32(distance));
    b.store(t, x, t);
    let store = b.line();
    between(&mut b);
    let other = b.binary(BinaryOp::Xor, t, d);
    b.load(x, other, U32);
    let load = b.line();
    (b.finish(), store, load)
}

#[test]
fn within_a_workgroup_it_takes_a_drain_and_a_barrier() {
    let expected = |store, load| {
        format!(
            "k.rs:{load}:1: read of buffer `x` at byte 128 races with the write at k.rs:{store}:1 of \
             block (0,0,0), thread (32,0,0), wave 1, lane 0: no drain or fence, followed by a barrier, between them \
             (block (0,0,0), thread (0,0,0), wave 0, lane 0)"
        )
    };
    let wrong: [fn(&mut Build); 5] = [
        |_| (),
        |b| b.barrier(),
        |b| b.drain(Scope::System),
        |b| {
            b.drain(Scope::Wave);
            b.barrier();
        },
        |b| {
            b.barrier();
            b.fence(Order::SeqCst, Scope::Device);
        },
    ];
    for between in wrong {
        let (kernel, store, load) = exchange(32, between);
        assert_eq!(race(&kernel), expected(store, load));
    }
    let right: [fn(&mut Build); 5] = [
        |b| {
            b.drain(Scope::Workgroup);
            b.barrier();
        },
        |b| {
            b.drain(Scope::Device);
            b.barrier();
        },
        |b| {
            b.fence(Order::Release, Scope::Workgroup);
            b.barrier();
        },
        |b| {
            b.fence(Order::AcqRel, Scope::System);
            b.barrier();
        },
        |b| {
            b.void(Op::SWaitcnt { vmcnt: Some(0), lgkmcnt: None, expcnt: None });
            b.barrier();
        },
    ];
    for between in right {
        assert_eq!(found(&exchange(32, between).0), [""; 0]);
    }
}

#[test]
fn within_a_wave_it_takes_a_drain_or_a_fence() {
    for wrong in [|_: &mut Build| (), Build::barrier] {
        let (kernel, store, load) = exchange(1, wrong);
        assert_eq!(
            race(&kernel),
            format!(
                "k.rs:{load}:1: read of buffer `x` at byte 4 races with the write at k.rs:{store}:1 of \
                 block (0,0,0), thread (1,0,0), wave 0, lane 1: no fence or barrier orders lanes of the wave \
                 (block (0,0,0), thread (0,0,0), wave 0, lane 0)"
            )
        );
    }
    assert_eq!(found(&exchange(1, |b| b.drain(Scope::Wave)).0), [""; 0]);
    assert_eq!(found(&exchange(1, |b| b.fence(Order::AcqRel, Scope::Wave)).0), [""; 0]);
}

#[test]
fn a_read_before_a_store_needs_the_same() {
    for drains in [false, true] {
        let mut b = Build::new(32, 1, 64);
        let x = b.buffer("x", Scalar::U32, 64, Access::ReadWrite);
        let (t, d) = (b.tid(), b.u32(32));
        let other = b.binary(BinaryOp::Xor, t, d);
        let v = b.load(x, other, U32);
        let load = b.line();
        if drains {
            b.drain(Scope::Workgroup);
        }
        b.barrier();
        b.store(v, x, t);
        let store = b.line();
        let kernel = b.finish();
        if drains {
            assert_eq!(found(&kernel), [""; 0]);
        } else {
            assert_eq!(
                race(&kernel),
                format!(
                    "k.rs:{store}:1: write to buffer `x` at byte 0 races with the read at k.rs:{load}:1 of \
                     block (0,0,0), thread (32,0,0), wave 1, lane 0: no drain or fence, followed by a barrier, \
                     between them (block (0,0,0), thread (0,0,0), wave 0, lane 0)"
                )
            );
        }
    }
}

#[test]
fn workgroups_that_share_an_element() {
    // Every workgroup stores to element 5: through the buffer, through a pointer, through a buffer made of its address.
    for way in 0..3 {
        let mut b = Build::new(64, 3, 1);
        let x = b.buffer("x", Scalar::U16, 8, Access::Write);
        let (five, v) = (b.u32(5), b.constant(7, U16));
        let p = b.op(Op::BufferPtr(x), Type::Ptr(Space::Global, Scalar::U16));
        match way {
            0 => b.store(v, x, five),
            1 => {
                let p = b.ptr(p, five);
                b.ptr_store(v, p);
            }
            _ => {
                let address = b.op(Op::PtrToInt(p), U64);
                let bytes = b.u32(16);
                let made = b.op(Op::MakeBuffer { address, bytes }, Type::Buffer(Scalar::U16));
                b.store(v, made, five);
            }
        }
        let line = b.line();
        assert_eq!(
            race(&b.finish()),
            format!(
                "k.rs:{line}:1: write to buffer `x` at byte 10 races with the write at k.rs:{line}:1 of \
                 block (0,0,0), thread (0,0,0), wave 0, lane 0: no release by one and acquire by the other between \
                 them (block (1,0,0), thread (0,0,0), wave 0, lane 0)"
            )
        );
    }
}

#[test]
fn neighbouring_parts_of_a_word_are_apart() {
    let mut b = Build::new(32, 8, 32);
    let x = b.buffer("x", Scalar::U8, 256, Access::ReadWrite);
    let (t, g, n, v) = (b.tid(), b.bid(), b.u32(8), b.constant(1, Type::Scalar(Scalar::U8)));
    // Neighbouring bytes belong to different workgroups.
    let at = b.mul(t, n);
    let at = b.add(at, g);
    b.store(v, x, at);
    b.load(x, at, Type::Scalar(Scalar::U8));
    assert_eq!(found(&b.finish()), [""; 0]);
}

#[test]
fn reading_together_is_no_race() {
    // All read everything, through a buffer and through pointers; then each stores to its own element of another one.
    let mut b = Build::new(32, 20, 64);
    let x = b.buffer("x", Scalar::U32, 4, Access::ReadWrite);
    let y = b.buffer("y", Scalar::U32, 20 * 64, Access::Write);
    let (id, zero, four) = (b.global_id(), b.u32(0), b.u32(4));
    let p = b.op(Op::BufferPtr(x), Type::Ptr(Space::Global, Scalar::U32));
    let sum = b.for_((zero, four, 1), &[zero], |b, i, c| {
        let v = b.load(x, i, U32);
        let q = b.ptr(p, i);
        let w = b.ptr_load(q, U32);
        let sum = b.add(c[0], v);
        vec![b.add(sum, w)]
    });
    let p = b.op(Op::BufferPtr(y), Type::Ptr(Space::Global, Scalar::U32));
    let p = b.ptr(p, id);
    b.ptr_store(sum[0], p);
    assert_eq!(found(&b.finish()), [""; 0]);
}

#[test]
fn a_store_after_many_readers_is_a_race() {
    // 19 workgroups read element 0, the last one stores to it.
    let mut b = Build::new(32, 20, 32);
    let x = b.buffer("x", Scalar::U32, 1, Access::ReadWrite);
    let (g, zero, last) = (b.bid(), b.u32(0), b.u32(19));
    let writes = b.compare(Predicate::Eq, g, last);
    b.if_else(
        writes,
        &[],
        |b| {
            b.store(zero, x, zero);
            vec![]
        },
        |b| {
            b.load(x, zero, U32);
            vec![]
        },
    );
    let kernel = b.finish();
    let report = run(&kernel, &[ArgValue::Buffer(&from_words(&[0]))], &Options::default()).unwrap();
    assert_eq!(report.findings.len(), 1, "{:?}", report.findings);
}

#[test]
fn atomics_reach_as_far_as_their_scope() {
    for (scope, clean) in [(Scope::Device, true), (Scope::System, true), (Scope::Workgroup, false)] {
        let mut b = Build::new(32, 4, 32);
        let x = b.buffer("x", Scalar::U32, 1, Access::ReadWrite);
        let (one, zero) = (b.u32(1), b.u32(0));
        let kind = AtomicKind(AtomicOp::Add);
        let unit = OffsetUnit::Elements;
        let (scalar, mask, nontemporal) = (None, None, false);
        b.op(
            Op::BufferAtomic { kind, value: one, buffer: x, offset: zero, unit, scalar, mask, nontemporal, scope },
            U32,
        );
        let line = b.line();
        let found = found(&b.finish());
        if clean {
            assert_eq!(found, [""; 0]);
        } else {
            assert_eq!(
                found,
                [format!(
                    "k.rs:{line}:1: atomic update of buffer `x` at byte 0 races with the atomic update at \
                     k.rs:{line}:1 of block (0,0,0), thread (0,0,0), wave 0, lane 0: both are atomic, but not in a \
                     scope that reaches the other (block (1,0,0), thread (0,0,0), wave 0, lane 0)"
                )]
            );
        }
    }
}

#[test]
fn copies_to_lds_read_global_memory() {
    for drains in [false, true] {
        let mut b = Build::new(32, 1, 64);
        let x = b.buffer("x", Scalar::U32, 64, Access::ReadWrite);
        let l = b.lds("l", Scalar::U32, 32);
        let (t, half) = (b.tid(), b.u32(32));
        b.store(t, x, t);
        let store = b.line();
        if drains {
            b.drain(Scope::Workgroup);
        }
        b.barrier();
        let low = b.lt(t, half);
        b.if_(low, |b| {
            let offset = b.add(t, half);
            let (unit, cache) = (OffsetUnit::Elements, Cache::default());
            b.void(Op::CopyToLds { buffer: x, offset, pointer: l, unit, scalar: None, bytes: 4, cache });
        });
        let copy = b.line() - 1;
        b.drain(Scope::Workgroup);
        b.if_(low, |b| {
            // What other lanes of the wave copied; other waves would need a barrier.
            let p = b.binary(BinaryOp::Sub, half, t);
            let one = b.u32(1);
            let p = b.binary(BinaryOp::Sub, p, one);
            let p = b.ptr(l, p);
            b.ptr_load(p, U32);
        });
        let kernel = b.finish();
        if drains {
            assert_eq!(found(&kernel), [""; 0]);
        } else {
            assert_eq!(
                race(&kernel),
                format!(
                    "k.rs:{copy}:1: read of buffer `x` at byte 128 races with the write at k.rs:{store}:1 of \
                     block (0,0,0), thread (32,0,0), wave 1, lane 0: no drain or fence, followed by a barrier, \
                     between them (block (0,0,0), thread (0,0,0), wave 0, lane 0)"
                )
            );
        }
    }
}
