//! `while`, loops over every index type, `native` regions, and waves that wait for each other.

use lathe_dsl::ir::AtomicOp;
use lathe_dsl::ir::{AtomicKind, Order, Scope};

use super::super::FaultKind;
use super::*;

#[test]
fn collatz_runs_by_lane() {
    let steps = |n: u32| {
        let (mut n, mut s) = (n, 0);
        while n > 1 {
            n = if n % 2 == 0 { n / 2 } else { 3 * n + 1 };
            s += 1;
        }
        (n, s)
    };
    for (wave, threads) in [(32, 100), (64, 130), (64, 1)] {
        let mut b = Build::new(wave, 1, threads);
        let out = b.buffer("out", Scalar::U32, u64::from(2 * threads), Access::Write);
        let (t, zero, one, three) = (b.tid(), b.u32(0), b.u32(1), b.u32(3));
        let r = b.while_(
            &[t, zero],
            &[U32, U32],
            |b, c| {
                let goes_on = b.lt(one, c[0]);
                vec![goes_on, c[0], c[1]]
            },
            |b, c| {
                let bit = b.binary(BinaryOp::And, c[0], one);
                let odd = b.compare(Predicate::Eq, bit, one);
                let up = b.mul(c[0], three);
                let up = b.add(up, one);
                let down = b.binary(BinaryOp::Shr, c[0], one);
                let n = b.op(Op::Select { condition: odd, on_true: up, on_false: down }, U32);
                vec![n, b.add(c[1], one)]
            },
        );
        let two = b.u32(2);
        let at = b.mul(t, two);
        let v = b.op(Op::VectorFrom(r), Type::Vector(Scalar::U32, 2));
        b.store(v, out, at);
        let want: Vec<u32> = (0..threads).flat_map(|t| <[u32; 2]>::from(steps(t))).collect();
        assert_eq!(run_u32(&b.finish()), want);
    }
}

#[test]
fn what_is_handed_on_need_not_be_what_is_carried() {
    // State: one u32 n. `before` hands out (2n, n as u64); `after` makes n from them. Results are those of the last time.
    let mut b = Build::new(64, 1, 80);
    let out = b.buffer("out", Scalar::U32, 160, Access::Write);
    let (t, limit, two) = (b.tid(), b.u32(100), b.u32(2));
    let r = b.while_(
        &[t],
        &[U32, U64],
        |b, c| {
            let double = b.mul(c[0], two);
            let long = b.op(Op::Convert(c[0]), U64);
            let goes_on = b.lt(double, limit);
            vec![goes_on, double, long]
        },
        |b, c| {
            let n = b.op(Op::Convert(c[1]), U32);
            let one = b.u32(1);
            let n = b.add(n, c[0]);
            vec![b.add(n, one)]
        },
    );
    let low = b.op(Op::Convert(r[1]), U32);
    let v = b.op(Op::VectorFrom(vec![r[0], low]), Type::Vector(Scalar::U32, 2));
    let at = b.mul(t, two);
    b.store(v, out, at);
    let want: Vec<u32> = (0..80)
        .flat_map(|mut n| {
            while 2 * n < 100 {
                n = n + 2 * n + 1;
            }
            [2 * n, n]
        })
        .collect();
    assert_eq!(run_u32(&b.finish()), want);
}

#[test]
fn results_of_lanes_that_left_survive_what_follows_in_the_loop() {
    // Lane t leaves after t rounds; the body has many short-lived values that could take the results' rows.
    let mut b = Build::new(64, 1, 64);
    let out = b.buffer("out", Scalar::U32, 64, Access::Write);
    let (t, zero, one, k) = (b.tid(), b.u32(0), b.u32(1), b.u32(0x9E37_79B9));
    let r = b.while_(
        &[zero],
        &[U32],
        |b, c| {
            let mut x = c[0];
            for _ in 0..20 {
                x = b.mul(x, k);
                x = b.add(x, t);
            }
            let goes_on = b.lt(c[0], t);
            let junk = b.binary(BinaryOp::Xor, x, x);
            vec![goes_on, b.add(c[0], junk)]
        },
        |b, c| {
            let mut x = c[0];
            for _ in 0..20 {
                x = b.mul(x, k);
            }
            let junk = b.binary(BinaryOp::Xor, x, x);
            let n = b.add(c[0], one);
            vec![b.add(n, junk)]
        },
    );
    b.store(r[0], out, t);
    assert_eq!(run_u32(&b.finish()), (0..64).collect::<Vec<_>>());
}

#[test]
fn loops_count_in_every_index_type() {
    for s in [Scalar::I32, Scalar::U32, Scalar::I64, Scalar::U64, Scalar::Idx] {
        let (bits, signed) = (s.bits(), s.is_signed());
        let (min, max) =
            if signed { (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1) } else { (0, (1i128 << bits) - 1) };
        let cases: [(i128, i128, u32); 6] = [
            (0, 10, 3),
            (if signed { -7 } else { 2 }, 5, 2),
            (max - 5, max, 4),
            (max - 5, max, u32::MAX),
            (min, min + 3, 1),
            (5, if signed { -5 } else { 3 }, 1),
        ];
        for (lo, hi, step) in cases {
            let ty = Type::Scalar(s);
            let raw = |x: i128| x.rem_euclid(1 << bits) as u64;
            let mut b = Build::new(64, 1, 1);
            let out = b.buffer("out", Scalar::U32, 1, Access::Write);
            let (l, h, zero, k) = (b.constant(raw(lo), ty), b.constant(raw(hi), ty), b.u32(0), b.u32(31));
            // A digest of the indices; an index is cut to 32 bits by way of its distance from `lo`.
            let r = b.for_typed((l, h, step), ty, &[zero], |b, i, c| {
                let d = b.binary(BinaryOp::Sub, i, l);
                let d = if s.bits() == 32 && s != Scalar::I32 { d } else { b.op(Op::Convert(d), U32) };
                let x = b.mul(c[0], k);
                let x = b.add(x, d);
                vec![b.add(x, k)]
            });
            b.store(r[0], out, zero);
            let want = (0..)
                .map(|n| lo + n * i128::from(step))
                .take_while(|i| *i < hi)
                .fold(0u32, |x, i| x.wrapping_mul(31).wrapping_add((i - lo) as u32).wrapping_add(31));
            assert_eq!(run_u32(&b.finish()), [want], "{s} {lo} {hi} {step}");
        }
    }
}

#[test]
fn waves_that_wait_in_a_loop_let_others_run() {
    // Wave w waits until an LDS counter is w + 1 from the end, so the last wave goes first.
    for wave in [32, 64u32] {
        for sleep in [false, true] {
            let waves = 4;
            let mut b = Build::new(wave, 3, waves * wave);
            let out = b.buffer("out", Scalar::U32, u64::from(3 * waves), Access::Write);
            let turn = b.lds("turn", Scalar::U32, 1);
            let (t, zero, one, w, last) = (b.tid(), b.u32(0), b.u32(1), b.u32(wave), b.u32(waves - 1));
            let lane = b.op(Op::LaneId, U32);
            let leads = b.compare(Predicate::Eq, lane, zero);
            let first = b.compare(Predicate::Eq, t, zero);
            b.if_(first, |b| b.ptr_store(zero, turn));
            b.void(Op::Barrier);
            let number = b.binary(BinaryOp::DivFloor, t, w);
            let mine = b.binary(BinaryOp::Sub, last, number);
            let got = b.while_(
                &[],
                &[U32],
                |b, _| {
                    let memory = Memory { order: Order::Relaxed, scope: Scope::Workgroup, ..Memory::default() };
                    let v = b.op(Op::PtrLoad { pointer: turn, memory }, U32);
                    vec![b.compare(Predicate::Ne, v, mine), v]
                },
                |b, _| {
                    if sleep {
                        b.void(Op::SSleep(1));
                    }
                    vec![]
                },
            );
            b.if_(leads, |b| {
                let (order, scope) = (Order::AcqRel, Scope::Workgroup);
                b.op(Op::AtomicRmw { op: AtomicOp::Add, pointer: turn, value: one, order, scope }, U32);
                let (g, n) = (b.bid(), b.u32(waves));
                let at = b.mul(g, n);
                let at = b.add(at, number);
                b.store(got[0], out, at);
            });
            let kernel = b.finish();
            assert_eq!(run_u32(&kernel), [3, 2, 1, 0].repeat(3));
            for seed in 0..5 {
                let out = GlobalBuffer::zeroed(48);
                let options = Options { seed: Some(seed), step_limit: Some(10_000_000), ..Options::default() };
                run(&kernel, &[ArgValue::Buffer(&out)], &options).unwrap();
                assert_eq!(words(&out), [3, 2, 1, 0].repeat(3));
            }
        }
    }
}

#[test]
fn all_workgroups_of_a_launch_can_meet() {
    // Every workgroup adds 1 to a counter and waits until all have; the host has fewer threads than there are workgroups.
    let n = 40;
    let mut b = Build::new(64, n, 64);
    let count = b.buffer("count", Scalar::U32, 1, Access::ReadWrite);
    let out = b.buffer("out", Scalar::U32, n.into(), Access::Write);
    let (t, g, zero, one, all) = (b.tid(), b.bid(), b.u32(0), b.u32(1), b.u32(n));
    let first = b.compare(Predicate::Eq, t, zero);
    b.if_(first, |b| {
        let op = |value| Op::BufferAtomic {
            kind: AtomicKind(AtomicOp::Add),
            value,
            buffer: count,
            offset: zero,
            unit: OffsetUnit::Elements,
            scalar: None,
            mask: None,
            nontemporal: false,
            scope: Scope::Device,
        };
        b.op(op(one), U32);
        let seen = b.while_(
            &[],
            &[U32],
            |b, _| {
                let v = b.op(op(zero), U32);
                vec![b.lt(v, all), v]
            },
            |_, _| vec![],
        );
        b.store(seen[0], out, g);
    });
    let program = Program::new(&b.finish()).unwrap();
    for threads in [1, 3] {
        for seed in [None, Some(7)] {
            let (count, out) = (GlobalBuffer::zeroed(4), GlobalBuffer::zeroed(4 * n as usize));
            let options = Options { threads: Some(threads), seed, step_limit: Some(1 << 30), ..Options::default() };
            launch(&program, &[ArgValue::Buffer(&count), ArgValue::Buffer(&out)], &options).unwrap();
            assert_eq!(words(&out), vec![n; n as usize]);
        }
    }
}

#[test]
fn workgroups_can_wait_for_lower_ones_however_many_there_are() {
    // Workgroup g waits until the counter is g, then makes it g + 1. Their LDS lets few of them begin at once.
    let n = 100;
    let mut b = Build::new(32, n, 1);
    let count = b.buffer("count", Scalar::U32, 1, Access::ReadWrite);
    b.lds("large", Scalar::U32, 1 << 18);
    let (g, zero, one) = (b.bid(), b.u32(0), b.u32(1));
    let op = |value| Op::BufferAtomic {
        kind: AtomicKind(AtomicOp::Add),
        value,
        buffer: count,
        offset: zero,
        unit: OffsetUnit::Elements,
        scalar: None,
        mask: None,
        nontemporal: false,
        scope: Scope::Device,
    };
    b.while_(
        &[],
        &[],
        |b, _| {
            let v = b.op(op(zero), U32);
            vec![b.compare(Predicate::Ne, v, g)]
        },
        |_, _| vec![],
    );
    b.op(op(one), U32);
    let program = Program::new(&b.finish()).unwrap();
    for (threads, seed) in [(1, None), (1, Some(3)), (2, Some(4))] {
        let count = GlobalBuffer::zeroed(4);
        let options = Options { threads: Some(threads), seed, ..Options::default() };
        launch(&program, &[ArgValue::Buffer(&count)], &options).unwrap();
        assert_eq!(words(&count), [n]);
    }
}

#[test]
fn a_fault_ends_those_that_wait_for_it() {
    // Workgroup 1 divides by zero before it raises the flag that workgroup 0 waits for.
    let mut b = Build::new(32, 2, 1);
    let flag = b.buffer("flag", Scalar::U32, 1, Access::ReadWrite);
    let (g, zero) = (b.bid(), b.u32(0));
    let waits = b.compare(Predicate::Eq, g, zero);
    let mut line = 0;
    b.if_else(
        waits,
        &[],
        |b| {
            b.while_(
                &[],
                &[],
                |b, _| {
                    let v = b.load(flag, zero, U32);
                    vec![b.compare(Predicate::Eq, v, zero)]
                },
                |_, _| vec![],
            );
            vec![]
        },
        |b| {
            let v = b.binary(BinaryOp::DivFloor, g, zero);
            line = b.line();
            b.store(v, flag, zero);
            vec![]
        },
    );
    let kernel = b.finish();
    for threads in [1, 2] {
        let fault = fault(&kernel, &Options { threads: Some(threads), ..Options::default() });
        assert_eq!((fault.kind, fault.site.block), (FaultKind::DivisionByZero, [1, 0, 0]));
        assert_eq!(fault.site.location.line, line);
    }
}

#[test]
fn an_endless_while_is_found() {
    let mut b = Build::new(32, 3, 64);
    let (t, forty) = (b.tid(), b.u32(40));
    let mut line = 0;
    let late = b.compare(Predicate::Ge, t, forty);
    b.if_(late, |b| {
        let yes = b.constant(1, BOOL);
        b.while_(&[], &[], |_, _| vec![yes], |_, _| vec![]);
        line = b.line();
    });
    for threads in [1, 2] {
        let checks = Checks::NONE;
        let options = Options { step_limit: Some(10_000), threads: Some(threads), checks, ..Options::default() };
        let fault = fault(&b_clone(&b).finish(), &options);
        assert_eq!((fault.kind, fault.site.location.line), (FaultKind::StepLimit { limit: 10_000 }, line));
        assert_eq!((fault.site.block, fault.site.thread), ([0, 0, 0], [40, 0, 0]));
    }
}

fn b_clone(b: &Build) -> Build {
    Build { kernel: b.kernel.clone(), open: b.open.clone() }
}

#[test]
fn native_runs_its_meaning() {
    let mut b = Build::new(64, 1, 70);
    let out = b.buffer("out", Scalar::U32, 70, Access::Write);
    let (t, nine) = (b.tid(), b.u32(9));
    let (x, y) = (b.value(U32), b.value(U32));
    let meaning = b.region(vec![x, y], |b| {
        let sum = b.add(x, y);
        let low = b.lt(x, y);
        let r = b.if_else(low, &[U32], |_| vec![y], |_| vec![x]);
        vec![sum, r[0]]
    });
    let results = vec![b.value(U32), b.value(U32)];
    b.push(Op::Native { args: vec![t, nine], forms: vec![], meaning }, results.clone());
    let v = b.mul(results[0], results[1]);
    b.store(v, out, t);
    assert_eq!(run_u32(&b.finish()), (0..70).map(|t: u32| (t + 9) * t.max(9)).collect::<Vec<_>>());
}

#[test]
fn hints_do_nothing() {
    let mut b = Build::new(32, 1, 64);
    let out = b.buffer("out", Scalar::U32, 64, Access::Write);
    let t = b.tid();
    for op in [
        Op::SWaitcnt { vmcnt: Some(0), lgkmcnt: Some(3), expcnt: None },
        Op::SWaitcnt { vmcnt: None, lgkmcnt: Some(0), expcnt: Some(0) },
        Op::SSleep(5),
        Op::SSetprio(3),
        Op::SchedBarrier(1),
        Op::SchedGroupBarrier { mask: 1, size: 2, group: 0 },
        Op::Fence { order: Order::SeqCst, scope: Scope::System },
        Op::Drain { scope: Scope::Workgroup },
    ] {
        b.void(op);
    }
    b.store(t, out, t);
    assert_eq!(run_u32(&b.finish()), (0..64).collect::<Vec<_>>());
}

#[test]
fn broken_assumptions_and_vector_indices_are_faults() {
    let mut b = Build::new(64, 1, 70);
    let (t, n) = (b.tid(), b.u32(66));
    let holds = b.lt(t, n);
    b.void(Op::Assume(holds));
    let line = b.line();
    assert_eq!(
        message(&b.finish()),
        format!("k.rs:{line}:1: assumption does not hold (block (0,0,0), thread (66,0,0), wave 1, lane 2)")
    );
    let mut b = Build::new(64, 1, 4);
    let (t, v) = (b.tid(), b.constant(1, Type::Vector(Scalar::F16, 3)));
    b.op(Op::ExtractAt(v, t), Type::Scalar(Scalar::F16));
    let fault = fault(&b.finish(), &Options::default());
    assert_eq!((fault.kind, fault.site.lane), (FaultKind::VectorIndex { index: 3, len: 3 }, 3));
}
