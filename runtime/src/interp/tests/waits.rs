//! Waits that never end.

use lathe_dsl::ir::{AtomicOp, Order, Scope};

use super::super::{FaultKind, WaitsOn};
use super::*;

fn relaxed() -> Memory {
    Memory { order: Order::Relaxed, scope: Scope::Device, ..Memory::default() }
}

/// All wait until `pointer` holds 1.
fn wait_for(b: &mut Build, pointer: Value) -> (u32, u32) {
    let one = b.u32(1);
    let mut load = 0;
    b.while_(
        &[],
        &[],
        |b, _| {
            let seen = b.op(Op::PtrLoad { pointer, memory: relaxed() }, U32);
            load = b.line();
            vec![b.compare(Predicate::Ne, seen, one)]
        },
        |b, _| {
            b.void(Op::SSleep(1));
            vec![]
        },
    );
    (b.line(), load)
}

#[track_caller]
fn endless(kernel: &Kernel) -> String {
    let mut first: Option<String> = None;
    for threads in [1, 2] {
        for seed in [None, Some(1), Some(2)] {
            let options = Options { seed, threads: Some(threads), step_limit: Some(10_000_000), ..Options::default() };
            let fault = fault(kernel, &options);
            assert!(matches!(fault.kind, FaultKind::EndlessWait(_)), "{fault}");
            let text = fault.to_string();
            assert_eq!(first.get_or_insert_with(|| text.clone()), &text, "{seed:?} {threads}");
        }
    }
    first.unwrap_or_default()
}

#[test]
fn a_flag_that_nobody_raises() {
    let mut b = Build::new(32, 2, 64);
    let flag = b.buffer("flag", Scalar::U32, 3, Access::ReadWrite);
    let (two, t, half) = (b.u32(2), b.tid(), b.u32(32));
    let p = b.op(Op::BufferPtr(flag), Type::Ptr(Space::Global, Scalar::U32));
    let p = b.ptr(p, two);
    // Wave 0 stands at a barrier meanwhile.
    let high = b.compare(Predicate::Ge, t, half);
    let mut lines = (0, 0);
    b.if_(high, |b| lines = wait_for(b, p));
    b.void(Op::Barrier);
    let barrier = b.line();
    let (wait, load) = lines;
    assert_eq!(
        endless(&b.finish()),
        format!(
            "k.rs:{wait}:1: endless wait for buffer `flag` at byte 8 to change, read at k.rs:{load}:1; no wave that \
             still runs stores anything; block (0,0,0), thread (0,0,0), wave 0, lane 0 waits at k.rs:{barrier}:1 at \
             the barrier; block (1,0,0), thread (32,0,0), wave 1, lane 0 waits at k.rs:{wait}:1 for buffer `flag` \
             at byte 8 to change, read at k.rs:{load}:1; block (1,0,0), thread (0,0,0), wave 0, lane 0 waits at \
             k.rs:{barrier}:1 at the barrier (block (0,0,0), thread (32,0,0), wave 1, lane 0)"
        )
    );
}

#[test]
fn workgroups_that_wait_for_each_other() {
    // Each raises its flag only after the other one's. A workgroup in between ends.
    let mut b = Build::new(32, 3, 1);
    let flags = b.buffer("flags", Scalar::U32, 4, Access::ReadWrite);
    let (g, one, two) = (b.bid(), b.u32(1), b.u32(2));
    let p = b.op(Op::BufferPtr(flags), Type::Ptr(Space::Global, Scalar::U32));
    let waits = b.compare(Predicate::Ne, g, one);
    let mut lines = (0, 0);
    b.if_(waits, |b| {
        let other = b.binary(BinaryOp::Xor, g, two);
        let q = b.ptr(p, other);
        lines = wait_for(b, q);
        let q = b.ptr(p, g);
        b.void(Op::PtrStore { value: one, pointer: q, memory: relaxed() });
    });
    let (wait, load) = lines;
    assert_eq!(
        endless(&b.finish()),
        format!(
            "k.rs:{wait}:1: endless wait for buffer `flags` at byte 8 to change, read at k.rs:{load}:1; no wave that \
             still runs stores anything; block (2,0,0), thread (0,0,0), wave 0, lane 0 waits at k.rs:{wait}:1 for \
             buffer `flags` at byte 0 to change, read at k.rs:{load}:1 \
             (block (0,0,0), thread (0,0,0), wave 0, lane 0)"
        )
    );
}

#[test]
fn a_loop_that_reads_nothing() {
    let mut b = Build::new(64, 40, 64);
    let yes = b.constant(1, BOOL);
    b.while_(&[], &[], |_, _| vec![yes], |_, _| vec![]);
    let line = b.line();
    let text = endless(&b.finish());
    let start = format!("k.rs:{line}:1: endless wait for nothing: it reads no memory; no wave that still runs ");
    assert!(text.starts_with(&start), "{text}");
    assert!(text.contains("; 36 more waves wait (block (0,0,0), thread (0,0,0), wave 0, lane 0)"), "{text}");
}

#[test]
fn polling_by_an_update_that_changes_nothing() {
    let mut b = Build::new(32, 1, 32);
    let zero = b.u32(0);
    let l = b.lds("l", Scalar::U32, 2);
    b.ptr_store(zero, l);
    b.while_(
        &[],
        &[],
        |b, _| {
            let (op, order, scope) = (AtomicOp::Or, Order::AcqRel, Scope::Workgroup);
            let seen = b.op(Op::AtomicRmw { op, pointer: l, value: zero, order, scope }, U32);
            vec![b.compare(Predicate::Eq, seen, zero)]
        },
        |_, _| vec![],
    );
    let FaultKind::EndlessWait(wait) = fault(&b.finish(), &Options::default()).kind else { panic!() };
    assert!(matches!(wait.on, WaitsOn::Memory(MemoryPlace::Lds { array: "l", element: 0 }, _)), "{wait}");
}

#[test]
fn bounded_waits_and_late_flags_are_right() {
    // Workgroup 0 gives up after 5000 rounds and raises the flag that all others wait for.
    let mut b = Build::new(32, 8, 32);
    let flags = b.buffer("flags", Scalar::U32, 2, Access::ReadWrite);
    let (g, zero, one, many) = (b.bid(), b.u32(0), b.u32(1), b.u32(5000));
    let p = b.op(Op::BufferPtr(flags), Type::Ptr(Space::Global, Scalar::U32));
    let first = b.compare(Predicate::Eq, g, zero);
    b.if_else(
        first,
        &[],
        |b| {
            let q = b.ptr(p, one);
            b.while_(
                &[zero],
                &[U32],
                |b, c| {
                    let seen = b.op(Op::PtrLoad { pointer: q, memory: relaxed() }, U32);
                    let (low, unseen) = (b.lt(c[0], many), b.compare(Predicate::Ne, seen, one));
                    vec![b.binary(BinaryOp::And, low, unseen), c[0]]
                },
                |b, c| {
                    b.void(Op::SSleep(1));
                    vec![b.add(c[0], one)]
                },
            );
            b.void(Op::PtrStore { value: one, pointer: p, memory: relaxed() });
            vec![]
        },
        |b| {
            wait_for(b, p);
            vec![]
        },
    );
    let program = Program::new(&b.finish()).unwrap();
    for threads in [1, 2] {
        for seed in [None, Some(3)] {
            let flags = GlobalBuffer::zeroed(8);
            let options = Options { seed, threads: Some(threads), ..Options::default() };
            launch(&program, &[ArgValue::Buffer(&flags)], &options).unwrap();
            assert_eq!(words(&flags), [1, 0]);
        }
    }
}
