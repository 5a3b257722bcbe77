//! Between the lanes of one wave.

use super::*;

/// Lane `t` stores to element `t`, `between` comes, lane `t` reads element `t ^ 1`.
fn neighbours(between: impl FnOnce(&mut Build)) -> (Kernel, u32, u32) {
    let mut b = Build::new(64, 1, 64);
    let l = b.filled_lds(64);
    let store = b.line();
    between(&mut b);
    let (t, one) = (b.tid(), b.u32(1));
    let other = b.binary(BinaryOp::Xor, t, one);
    let p = b.ptr(l, other);
    b.ptr_load(p, U32);
    let load = b.line();
    (b.finish(), store, load)
}

#[test]
fn lock_step_orders_nothing() {
    let (kernel, store, load) = neighbours(|_| ());
    let expected = |store, load| {
        format!(
            "k.rs:{load}:1: read of LDS array `l` at element 1 races with the write at k.rs:{store}:1 of \
             block (0,0,0), thread (1,0,0), wave 0, lane 1: no fence or barrier orders lanes of the wave \
             (block (0,0,0), thread (0,0,0), wave 0, lane 0)"
        )
    };
    assert_eq!(race(&kernel), expected(store, load));
    // A drain is for global memory, and one half of a fence is not enough.
    for half in [Op::Drain { scope: Scope::Wave }, Op::Fence { order: Order::Release, scope: Scope::Wave }] {
        let (kernel, store, load) = neighbours(|b| b.void(half));
        assert_eq!(race(&kernel), expected(store, load));
    }
}

#[test]
fn a_fence_or_a_barrier_does() {
    for scope in [Scope::Wave, Scope::Workgroup, Scope::Device, Scope::System] {
        let (kernel, ..) = neighbours(|b| b.fence(Order::AcqRel, scope));
        assert_eq!(found(&kernel), [""; 0]);
        let (kernel, ..) = neighbours(|b| {
            b.fence(Order::Release, scope);
            b.fence(Order::Acquire, scope);
        });
        assert_eq!(found(&kernel), [""; 0]);
    }
    assert_eq!(found(&neighbours(Build::barrier).0), [""; 0]);
}

#[test]
fn a_fence_of_some_lanes_orders_those() {
    // Lanes below 32 meet in a fence, the others do not.
    let (kernel, store, load) = neighbours(|b| {
        let (t, half) = (b.tid(), b.u32(32));
        let low = b.lt(t, half);
        b.if_(low, |b| b.fence(Order::SeqCst, Scope::Wave));
    });
    assert_eq!(
        race(&kernel),
        format!(
            "k.rs:{load}:1: read of LDS array `l` at element 33 races with the write at k.rs:{store}:1 of \
             block (0,0,0), thread (33,0,0), wave 0, lane 33: no fence or barrier orders lanes of the wave \
             (block (0,0,0), thread (32,0,0), wave 0, lane 32)"
        )
    );
}

#[test]
fn a_store_that_comes_after_another_lane_s_load() {
    let mut b = Build::new(32, 1, 32);
    let l = b.filled_lds(32);
    b.barrier();
    let (t, one) = (b.tid(), b.u32(1));
    let other = b.binary(BinaryOp::Xor, t, one);
    let p = b.ptr(l, other);
    b.ptr_load(p, U32);
    let load = b.line();
    let p = b.ptr(l, t);
    b.ptr_store(one, p);
    let store = b.line();
    assert_eq!(
        race(&b.finish()),
        format!(
            "k.rs:{store}:1: write to LDS array `l` at element 0 races with the read at k.rs:{load}:1 of \
             block (0,0,0), thread (1,0,0), wave 0, lane 1: no fence or barrier orders lanes of the wave \
             (block (0,0,0), thread (0,0,0), wave 0, lane 0)"
        )
    );
}

#[test]
fn lanes_of_one_store_may_agree_but_not_differ() {
    let kernel = |same: bool| {
        let mut b = Build::new(32, 1, 32);
        let l = b.lds("l", Scalar::U32, 1);
        let (t, zero) = (b.tid(), b.u32(0));
        b.ptr_store(if same { zero } else { t }, l);
        (b.finish(), l)
    };
    assert_eq!(found(&kernel(true).0), [""; 0]);
    assert_eq!(
        race(&kernel(false).0),
        "k.rs:4:1: write to LDS array `l` at element 0 races with the write at k.rs:4:1 of block (0,0,0), \
         thread (0,0,0), wave 0, lane 0: the lanes store different values \
         (block (0,0,0), thread (1,0,0), wave 0, lane 1)"
    );
    // Two executions of it are two stores.
    let mut b = Build::new(32, 1, 32);
    let l = b.lds("l", Scalar::U32, 33);
    let (t, zero, two) = (b.tid(), b.u32(0), b.u32(2));
    b.for_((zero, two, 1), &[], |b, i, _| {
        let at = b.add(t, i);
        let p = b.ptr(l, at);
        b.ptr_store(zero, p);
        vec![]
    });
    assert_eq!(found(&b.finish()).len(), 1);
}

#[test]
fn a_thread_never_races_with_itself() {
    let mut b = Build::new(32, 1, 96);
    let l = b.filled_lds(96);
    let (t, zero, n) = (b.tid(), b.u32(0), b.u32(5));
    b.for_((zero, n, 1), &[], |b, i, _| {
        let p = b.ptr(l, t);
        let x = b.ptr_load(p, U32);
        let y = b.add(x, i);
        b.ptr_store(y, p);
        vec![]
    });
    assert_eq!(found(&b.finish()), [""; 0]);
}
