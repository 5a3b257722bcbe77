//! Divergence: branches, loops with lane-varying bounds, nesting, barriers.

use super::*;

/// A kernel with one `u32` output a thread, whose value `f` computes from the flat index.
fn per_thread(wave: u32, grid: u32, block: u32, f: impl FnOnce(&mut Build, Value) -> Value) -> Vec<u32> {
    let mut b = Build::new(wave, grid, block);
    let out = b.buffer("out", Scalar::U32, u64::from(grid * block), Access::Write);
    let id = b.global_id();
    let r = f(&mut b, id);
    b.store(r, out, id);
    run_u32(&b.finish())
}

#[track_caller]
fn check(f: impl Fn(&mut Build, Value) -> Value, expected: impl Fn(u32) -> u32) {
    for (wave, grid, block) in [(64, 1, 64), (32, 2, 100), (64, 3, 130), (32, 1, 1)] {
        let want: Vec<u32> = (0..grid * block).map(&expected).collect();
        assert_eq!(per_thread(wave, grid, block, &f), want, "wave {wave}, {grid}×{block}");
    }
}

#[test]
fn branches_merge_by_lane() {
    check(
        |b, id| {
            let one = b.u32(1);
            let zero = b.u32(0);
            let bit = b.binary(BinaryOp::And, id, one);
            let odd = b.compare(Predicate::Ne, bit, zero);
            let r = b.if_else(
                odd,
                &[U32, U32],
                |b| {
                    let c = b.u32(1000);
                    vec![b.add(id, c), id]
                },
                |b| {
                    let c = b.u32(3);
                    vec![id, b.mul(id, c)]
                },
            );
            let ten = b.u32(10);
            let scaled = b.mul(r[1], ten);
            b.add(r[0], scaled)
        },
        |i| if i & 1 == 1 { i + 1000 + 10 * i } else { i + 30 * i },
    );
}

#[test]
fn a_branch_that_no_lane_takes_does_nothing() {
    // Division by zero in it would be reported.
    for limit in [0u32, u32::MAX] {
        check(
            |b, id| {
                let limit = b.u32(limit);
                let below = b.lt(id, limit);
                let zero = b.u32(0);
                let r = b.if_else(
                    below,
                    &[U32],
                    |b| vec![if limit_is_zero(limit, b) { b.binary(BinaryOp::DivFloor, id, zero) } else { id }],
                    |b| vec![if limit_is_zero(limit, b) { id } else { b.binary(BinaryOp::RemFloor, id, zero) }],
                );
                r[0]
            },
            |i| i,
        );
    }
}

/// Whether constant `v` is 0.
fn limit_is_zero(v: Value, b: &Build) -> bool {
    b.open[0].insts.iter().any(|i| i.results == [v] && i.op == Op::Const(Bits(0)))
}

#[test]
fn loops_run_by_lane_and_carry_values() {
    // Fibonacci of id % 13: swaps its carried values.
    let fib = |n: u32| (0..n).fold((0u32, 1u32), |(a, b), _| (b, a + b)).0;
    check(
        |b, id| {
            let (zero, one, m) = (b.u32(0), b.u32(1), b.u32(13));
            let n = b.binary(BinaryOp::RemFloor, id, m);
            let r = b.for_((zero, n, 1), &[zero, one], |b, _, c| {
                let next = b.add(c[0], c[1]);
                vec![c[1], next]
            });
            r[0]
        },
        |i| fib(i % 13),
    );
}

#[test]
fn carried_values_rotate() {
    check(
        |b, id| {
            let (zero, five) = (b.u32(0), b.u32(5));
            let init = [1u32, 2, 3].map(|c| {
                let c = b.u32(c);
                b.mul(id, c)
            });
            // (a, b, c) ← (c, a, b), five times: a is the second.
            let r = b.for_((zero, five, 1), &init, |_, _, c| vec![c[2], c[0], c[1]]);
            let hundred = b.u32(100);
            let high = b.mul(r[0], hundred);
            b.add(high, r[2])
        },
        |i| i * 2 * 100 + i,
    );
}

#[test]
fn an_element_of_a_carried_vector_outlives_its_update() {
    check(
        |b, id| {
            let (zero, one, four) = (b.u32(0), b.u32(1), b.u32(4));
            let ty = Type::Vector(Scalar::U32, 2);
            let v = b.op(Op::VectorFrom(vec![id, one]), ty);
            // (v, s) ← ((v1, v0 + v1), v0): s is the v0 before the update.
            let r = b.for_((zero, four, 1), &[v, zero], |b, _, c| {
                let (x, y) = (b.op(Op::Extract(c[0], 0), U32), b.op(Op::Extract(c[0], 1), U32));
                let sum = b.add(x, y);
                vec![b.op(Op::VectorFrom(vec![y, sum]), ty), x]
            });
            r[1]
        },
        // v0 runs: id, 1, id + 1, id + 2.
        |i| i + 2,
    );
}

#[test]
fn loop_bounds_vary_by_lane_and_never_wrap() {
    // Sum of the indices of `for i in lo..hi step 3`, some ranges empty, some up to the type's end.
    let bounds = |i: u32| match i % 4 {
        0 => (i, i + i % 7),
        1 => (i + 5, i),
        2 => (u32::MAX - i % 11, u32::MAX),
        _ => (u32::MAX, u32::MAX),
    };
    check(
        |b, id| {
            let c = |b: &mut Build, x| b.u32(x);
            let (zero, three, five, seven, eleven, max) =
                (c(b, 0), c(b, 3), c(b, 5), c(b, 7), c(b, 11), c(b, u32::MAX));
            let kind = b.binary(BinaryOp::And, id, three);
            let r7 = b.binary(BinaryOp::RemFloor, id, seven);
            let r11 = b.binary(BinaryOp::RemFloor, id, eleven);
            let hi0 = b.add(id, r7);
            let lo1 = b.add(id, five);
            let lo2 = b.binary(BinaryOp::Sub, max, r11);
            let (mut lo, mut hi) = (max, max);
            for (k, (l, h)) in [(0, (id, hi0)), (1, (lo1, id)), (2, (lo2, max))] {
                let k = b.u32(k);
                let is = b.compare(Predicate::Eq, kind, k);
                lo = b.op(Op::Select { condition: is, on_true: l, on_false: lo }, U32);
                hi = b.op(Op::Select { condition: is, on_true: h, on_false: hi }, U32);
            }
            b.for_((lo, hi, 3), &[zero], |b, i, c| vec![b.add(c[0], i)])[0]
        },
        |i| {
            let (lo, hi) = bounds(i);
            (u64::from(lo)..u64::from(hi)).step_by(3).fold(0, |s, i| s.wrapping_add(i as u32))
        },
    );
}

#[test]
fn control_flow_nests() {
    // for i in 0..id % 5 { if i is odd { for j in 0..i { s += id ^ j } } else { s += i } }
    check(
        |b, id| {
            let (zero, one, five) = (b.u32(0), b.u32(1), b.u32(5));
            let n = b.binary(BinaryOp::RemFloor, id, five);
            b.for_((zero, n, 1), &[zero], |b, i, c| {
                let bit = b.binary(BinaryOp::And, i, one);
                let odd = b.compare(Predicate::Eq, bit, one);
                b.if_else(
                    odd,
                    &[U32],
                    |b| {
                        b.for_((zero, i, 1), &[c[0]], |b, j, c| {
                            let x = b.binary(BinaryOp::Xor, id, j);
                            vec![b.add(c[0], x)]
                        })
                    },
                    |b| vec![b.add(c[0], i)],
                )
            })[0]
        },
        |id| {
            let mut s = 0u32;
            for i in 0..id % 5 {
                if i & 1 == 1 {
                    (0..i).for_each(|j| s = s.wrapping_add(id ^ j));
                } else {
                    s += i;
                }
            }
            s
        },
    );
}

/// Every thread stores to LDS, waits, and reads another thread's element; twice over, in a loop.
fn exchange(wave: u32, grid: u32, block: u32) -> Kernel {
    let mut b = Build::new(wave, grid, block);
    let out = b.buffer("out", Scalar::U32, u64::from(grid * block), Access::Write);
    let lds = b.lds("ring", Scalar::U32, block);
    let (t, id, zero, two, one, n) = (b.tid(), b.global_id(), b.u32(0), b.u32(2), b.u32(1), b.u32(block));
    let next = b.add(t, one);
    let next = b.binary(BinaryOp::RemFloor, next, n);
    let (mine, theirs) = (b.ptr(lds, t), b.ptr(lds, next));
    let r = b.for_((zero, two, 1), &[id], |b, _, c| {
        b.ptr_store(c[0], mine);
        b.void(Op::Barrier);
        let x = b.ptr_load(theirs, U32);
        b.void(Op::Barrier);
        vec![x]
    });
    b.store(r[0], out, id);
    b.finish()
}

#[test]
fn barriers_order_lds_between_waves_under_any_schedule() {
    for (wave, grid, block) in [(64, 3, 256), (32, 2, 100), (64, 2, 64)] {
        let kernel = exchange(wave, grid, block);
        let expected: Vec<u32> = (0..grid * block).map(|i| i / block * block + (i % block + 2) % block).collect();
        for seed in std::iter::once(None).chain((0..20).map(Some)) {
            let out = GlobalBuffer::zeroed(expected.len() * 4);
            run(&kernel, &[ArgValue::Buffer(&out)], &Options { seed, ..Options::default() }).unwrap();
            assert_eq!(words(&out), expected, "seed {seed:?}");
        }
    }
}

#[test]
fn a_barrier_in_a_branch_that_all_threads_take_is_fine() {
    let mut b = Build::new(32, 1, 96);
    let out = b.buffer("out", Scalar::U32, 96, Access::Write);
    let (t, n) = (b.tid(), b.u32(96));
    let all = b.lt(t, n);
    b.if_(all, |b| b.void(Op::Barrier));
    b.store(t, out, t);
    assert_eq!(run_u32(&b.finish()), (0..96).collect::<Vec<_>>());
}

#[test]
fn pointers_travel_through_branches_loops_and_selects() {
    // a: element i holds i, b: element i holds 1000 + i; odd threads read b through a selected and carried pointer.
    let mut b = Build::new(32, 1, 40);
    let out = b.buffer("out", Scalar::U32, 40, Access::Write);
    let (x, y) = (b.lds("x", Scalar::U32, 40), b.lds("y", Scalar::U32, 80));
    let (t, one, zero, thousand) = (b.tid(), b.u32(1), b.u32(0), b.u32(1000));
    let other = b.add(t, thousand);
    let (px, py) = (b.ptr(x, t), b.ptr(y, t));
    b.ptr_store(t, px);
    b.ptr_store(other, py);
    b.void(Op::Barrier);
    let bit = b.binary(BinaryOp::And, t, one);
    let odd = b.compare(Predicate::Eq, bit, one);
    let ptr = Type::Ptr(Space::Lds, Scalar::U32);
    let selected = b.op(Op::Select { condition: odd, on_true: y, on_false: x }, ptr);
    let p = b.if_else(odd, &[ptr], |_| vec![y], |_| vec![selected])[0];
    let p = b.for_((zero, t, 1), &[p], |b, _, c| vec![b.ptr(c[0], one)])[0];
    let v = b.ptr_load(p, U32);
    b.store(v, out, t);
    assert_eq!(run_u32(&b.finish()), (0..40).map(|t| if t % 2 == 1 { 1000 + t } else { t }).collect::<Vec<_>>());
}

#[test]
fn every_wave_has_a_clock_that_goes_on_when_it_is_read() {
    let mut b = Build::new(32, 2, 96);
    let out = b.buffer("out", Scalar::U64, 2 * 96, Access::Write);
    let (t, bound, id) = (b.tid(), b.u32(40), b.global_id());
    // Only some lanes of wave 1 read it once more.
    let early = b.lt(t, bound);
    b.if_(early, |b| {
        let _ = b.op(Op::Clock, Type::U64);
    });
    let time = b.op(Op::Clock, Type::U64);
    b.store(time, out, id);
    let program = Program::new(&b.finish()).unwrap();
    for seed in [None, Some(1), Some(2)] {
        let out = GlobalBuffer::zeroed(2 * 96 * 8);
        launch(&program, &[ArgValue::Buffer(&out)], &Options { seed, ..Options::default() }).unwrap();
        let times: Vec<u64> = words(&out).chunks(2).map(|w| u64::from(w[0]) | u64::from(w[1]) << 32).collect();
        let expected = |thread: usize| if thread < 64 { 2000 } else { 1000 };
        assert!(times.iter().enumerate().all(|(i, t)| *t == expected(i % 96)), "{seed:?}: {times:?}");
    }
}
