//! How far values of small kernels are seen to be the same.

use super::*;
use crate::builder::{Buffer, Builder, Idx, V};
use crate::ir::{Access, Axis, ButterflyOp, Launch, Param, ParamKind, Scalar, Scope};
use crate::kernel::{In, InOut};
use crate::target::Target;

/// Over which blocks the last value that `f` makes is the same, for waves of 64.
fn span<T>(launch: Launch, f: impl for<'k> FnOnce(&'k Builder<'k>) -> V<'k, T>) -> Span {
    let buffer =
        |name, access| Param { name, kind: ParamKind::Buffer { elem: Scalar::U32, len: 4096, access, align: 16 } };
    let scalar = Param { name: "n", kind: ParamKind::Scalar(Scalar::U32) };
    let params = vec![buffer("x", Access::Read), buffer("y", Access::ReadWrite), scalar];
    let kernel = crate::builder::build("f", Target::GFX950, launch, params, |k| {
        f(k);
    })
    .unwrap();
    let facts = Facts::of(&kernel);
    let last = kernel.body.insts.last().unwrap().results[0];
    Uniformity::of(&kernel, &facts).value(last)
}

fn of_256<T>(f: impl for<'k> FnOnce(&'k Builder<'k>) -> V<'k, T>) -> Span {
    span(Launch::linear(4, 256), f)
}

fn x<'k>(k: &'k Builder<'k>) -> Buffer<'k, u32, In> {
    k.buffer(0)
}

fn y<'k>(k: &'k Builder<'k>) -> Buffer<'k, u32, InOut> {
    k.buffer(1)
}

const ALL: Span = Span::WORKGROUP;
const WAVE: Span = Span::of(64);
const ONE: Span = Span::THREAD;

#[test]
fn thread_and_lane_numbers() {
    assert_eq!(of_256(|k| k.thread_id(Axis::X)), ONE);
    assert_eq!(of_256(|k| k.lane_id()), ONE);
    assert_eq!(of_256(|k| k.block_id(Axis::X)), ALL);
    assert_eq!(of_256(|k| k.param::<u32>(2) * 7), ALL);
    assert_eq!(of_256(|k| k.thread_id(Axis::Y)), ALL);
    assert_eq!(span(Launch::linear(1, 1), |k| k.thread_id(Axis::X) + 3), ALL);
    assert_eq!(span(Launch::linear(1, 48), |k| k.lane_id().eq(3).ballot()), ALL);
    let shape = |x, y, z| Launch { block: [x, y, z], ..Launch::linear(1, 1) };
    let x = |launch| span(launch, |k| k.thread_id(Axis::X) >> 4);
    let y = |launch| span(launch, |k| k.thread_id(Axis::Y));
    let z = |launch| span(launch, |k| k.thread_id(Axis::Z));
    // Rows of 32, of 48 and of 12 threads.
    assert_eq!(
        [x(shape(32, 8, 1)), y(shape(32, 8, 1)), z(shape(32, 4, 2))],
        [Span::of(16), Span::of(32), Span::of(128)]
    );
    assert_eq!(
        [x(shape(48, 4, 1)), y(shape(48, 4, 1)), z(shape(48, 2, 2))],
        [Span::of(16), Span::of(16), Span::of(32)]
    );
    assert_eq!([x(shape(12, 4, 1)), y(shape(12, 4, 1)), z(shape(12, 4, 2))], [ALL, Span::of(4), Span::of(16)]);
    let rows = |launch, by: u32| span(launch, move |k| k.thread_id(Axis::Y) >> by);
    assert_eq!([rows(shape(16, 16, 1), 2), rows(shape(12, 16, 1), 2)], [WAVE, Span::of(4)]);
    // The linear number, put together again.
    fn linear<'k>(k: &'k Builder<'k>) -> V<'k, u32> {
        k.thread_id(Axis::X) + (k.thread_id(Axis::Y) + k.thread_id(Axis::Z) * 4) * 16
    }
    assert_eq!(span(shape(16, 4, 4), |k| linear(k).div_floor(64)), WAVE);
}

#[test]
fn arithmetic_that_makes_coarser() {
    assert_eq!(of_256(|k| k.thread_id(Axis::X) >> 6), WAVE);
    assert_eq!(of_256(|k| k.thread_id(Axis::X).div_floor(64)), WAVE);
    assert_eq!(of_256(|k| k.thread_id(Axis::X).to::<i32>().div_trunc(64)), WAVE);
    assert_eq!(of_256(|k| k.thread_id(Axis::X) & !63), WAVE);
    assert_eq!(of_256(|k| k.thread_id(Axis::X) & !31), Span::of(32));
    assert_eq!(of_256(|k| (k.thread_id(Axis::X) * 4) >> 7), Span::of(32));
    assert_eq!(of_256(|k| (k.thread_id(Axis::X) >> 3) & 7), Span::of(8));
    assert_eq!(of_256(|k| k.thread_id(Axis::X) & 63), ONE);
    assert_eq!(of_256(|k| k.thread_id(Axis::X).div_floor(192)), WAVE);
    assert_eq!(of_256(|k| k.thread_id(Axis::X).div_floor(48)), Span::of(16));
    assert_eq!(of_256(|k| k.thread_id(Axis::X).rem_floor(128) >> 6), WAVE);
    assert_eq!(of_256(|k| k.thread_id(Axis::X).div_floor(256)), ALL);
    assert_eq!(of_256(|k| k.block_id(Axis::X) * 256 + (k.thread_id(Axis::X) & !63)), WAVE);
    assert_eq!(of_256(|k| (k.block_id(Axis::X) * 256 + k.thread_id(Axis::X)) >> 6), WAVE);
    assert_eq!(
        of_256(|k| (k.block_id(Axis::X).to::<Idx>() * 256 + k.thread_id(Axis::X).to::<Idx>()).div_floor(64)),
        WAVE
    );
    // A carry may come anywhere.
    assert_eq!(of_256(|k| (k.thread_id(Axis::X) + k.param::<u32>(2)) >> 6), ONE);
    assert_eq!(of_256(|k| (k.thread_id(Axis::X) >> 6).to::<f32>() * 2.0), WAVE);
    assert_eq!(of_256(|k| k.thread_id(Axis::X).to::<f32>()), ONE);
}

#[test]
fn comparisons() {
    for (n, span) in [(64, WAVE), (128, Span::of(128)), (192, WAVE)] {
        assert_eq!(of_256(move |k| k.thread_id(Axis::X).lt(n)), span);
        assert_eq!(of_256(move |k| k.thread_id(Axis::X).ge(n)), span);
        assert_eq!(of_256(move |k| k.thread_id(Axis::X).le(n - 1)), span);
        assert_eq!(of_256(move |k| k.thread_id(Axis::X).gt(n - 1)), span);
    }
    assert_eq!(of_256(|k| k.thread_id(Axis::X).lt(32)), Span::of(32));
    assert_eq!(of_256(|k| k.thread_id(Axis::X).lt(100)), Span::of(4));
    assert_eq!(of_256(|k| k.thread_id(Axis::X).lt(256)), ALL);
    assert_eq!(of_256(|k| k.thread_id(Axis::X).eq(0)), ONE);
    assert_eq!(of_256(|k| k.thread_id(Axis::X).eq(300)), ALL);
    assert_eq!(of_256(|k| (k.thread_id(Axis::X) >> 6).eq(0)), WAVE);
    assert_eq!(of_256(|k| (k.thread_id(Axis::X).to::<i32>() - 64).lt(0)), WAVE);
}

#[test]
fn lanes_and_memory() {
    assert_eq!(of_256(|k| k.thread_id(Axis::X).uniform()), WAVE);
    assert_eq!(of_256(|k| k.block_id(Axis::X).uniform()), ALL);
    assert_eq!(of_256(|k| k.thread_id(Axis::X).readlane(5)), WAVE);
    assert_eq!(of_256(|k| k.thread_id(Axis::X).eq(3).ballot()), WAVE);
    assert_eq!(of_256(|k| k.thread_id(Axis::X).shuffle_idx(3, 16)), Span::of(16));
    assert_eq!(of_256(|k| (k.thread_id(Axis::X) >> 3).shuffle_xor(8, 64)), Span::of(8));
    assert_eq!(of_256(|k| (k.thread_id(Axis::X) >> 3).shuffle_up(1, 64)), ONE);
    let butterfly = |offsets: &'static [u32]| {
        of_256(move |k| k.thread_id(Axis::X).to::<f32>().butterfly(offsets.iter().copied(), ButterflyOp::Add))
    };
    assert_eq!(butterfly(&[32, 16, 8, 4, 2, 1]), WAVE);
    assert_eq!(butterfly(&[1, 2, 4]), Span::of(8));
    assert_eq!(butterfly(&[4, 1]), Span::of(2));
    assert_eq!(butterfly(&[32, 16, 8]), ONE);
    assert_eq!(of_256(|k| (k.thread_id(Axis::X) >> 3).to::<f32>().butterfly([32, 16, 8], ButterflyOp::Add)), WAVE);
    // What nobody writes is the same for all who read it; else a wave reads it at once, other waves perhaps later.
    assert_eq!(of_256(|k| k.buffer_load::<u32>(x(k), k.block_id(Axis::X))), ALL);
    assert_eq!(of_256(|k| k.buffer_load::<u32>(y(k), k.block_id(Axis::X))), WAVE);
    assert_eq!(of_256(|k| k.buffer_load::<u32>(x(k), k.thread_id(Axis::X) >> 3)), Span::of(8));
    assert_eq!(of_256(|k| k.ptr_load::<u32>(x(k).ptr() + k.param::<u32>(2))), ALL);
    assert_eq!(of_256(|k| k.ptr_load::<u32>(y(k).ptr() + k.param::<u32>(2))), WAVE);
    assert_eq!(of_256(|k| k.ptr_load::<u32>(k.lds::<u32>("a", 4))), WAVE);
    assert_eq!(of_256(|k| k.ptr_load::<u32>(k.lds::<u32>("a", 4)).assume_uniform(Scope::Workgroup)), ALL);
    assert_eq!(of_256(|k| k.thread_id(Axis::X).assume_uniform(Scope::Wave)), WAVE);
    assert_eq!(of_256(|k| k.thread_id(Axis::X).opaque()), ONE);
}

#[test]
fn what_leaves_control_flow() {
    let branch = |by: u32| {
        of_256(move |k| k.if_else((k.thread_id(Axis::X) >> by).eq(1), || k.param::<u32>(2), || k.block_id(Axis::X)))
    };
    assert_eq!([branch(0), branch(4), branch(6), branch(8)], [ONE, Span::of(16), WAVE, ALL]);
    let select =
        |by: u32| of_256(move |k| (k.thread_id(Axis::X) >> by).eq(1).select(k.param::<u32>(2), k.block_id(Axis::X)));
    assert_eq!([select(0), select(4), select(6)], [ONE, Span::of(16), WAVE]);
    let rounds =
        |hi: u32| of_256(move |k| k.for_range(0, k.thread_id(Axis::X) >> hi, 1, k.constant(0u32), |i, n| n + i));
    assert_eq!([rounds(0), rounds(5), rounds(6), rounds(8)], [ONE, Span::of(32), WAVE, ALL]);
    // Threads of a workgroup stride together over what a workgroup's size divides.
    let stride = |lo: u32, hi: u32, step: u32| {
        of_256(move |k| k.for_range(k.thread_id(Axis::X) + lo, hi, step, k.param::<u32>(2), |_, n| n + 1))
    };
    assert_eq!([stride(0, 1024, 256), stride(0, 1024, 64), stride(0, 1000, 256)], [ALL, WAVE, Span::of(8)]);
    assert_eq!(stride(1, 1024, 256), ONE);
}

/// A value that is the same until a later round mixes another one in, through any number of carried values.
#[test]
fn loops_are_followed_to_the_end() {
    let chain = |n: usize| {
        of_256(move |k| {
            let start = vec![k.constant(0u32); n];
            let end = k.for_range(0u32, 100, 1, start, |_, c| {
                let mut next = c[1..].to_vec();
                next.push(c[n - 1] + k.thread_id(Axis::X));
                next
            });
            end[0] + 1
        })
    };
    assert_eq!([chain(1), chain(2), chain(20)], [ONE; 3]);
    let nested = of_256(|k| {
        k.for_range(0u32, 9, 1, k.constant(0u32), |_, a| {
            k.for_range(0u32, 9, 1, a, |_, b| k.for_range(0u32, 9, 1, b, |i, c| c * 2 + i))
        })
    });
    assert_eq!(nested, ALL);
    // How long a loop runs may depend on what it carries.
    let until =
        |by: u32| of_256(move |k| k.while_(k.constant(0u32), |n| (n.lt(k.thread_id(Axis::X) >> by), n), |n| n + 1) + 1);
    assert_eq!([until(0), until(6), until(8)], [ONE, WAVE, ALL]);
}

#[test]
fn places_and_causes() {
    let kernel = crate::builder::build("f", Target::GFX950, Launch::linear(1, 256), vec![], |k| {
        let lane = k.lane_id();
        k.if_((k.thread_id(Axis::X) >> 6).eq(0), || {
            k.for_range(0u32, lane * 2 + 1, 1, (), |_, ()| k.s_sleep(1));
        });
        k.s_sleep(2);
    })
    .unwrap();
    let facts = Facts::of(&kernel);
    let uniform = Uniformity::of(&kernel, &facts);
    let mut seen = vec![];
    let mut loops = vec![];
    kernel.walk(&mut |inst| match inst.op {
        Op::SSleep(n) => seen.push((n, uniform.control(inst.number))),
        Op::For { .. } => loops.push(inst),
        _ => {}
    });
    assert_eq!(seen, [(1, ONE), (2, ALL)]);
    assert_eq!(uniform.control(loops[0].number), WAVE);
    let cause = uniform.why_apart(loops[0]).unwrap();
    assert_eq!((cause.what.as_str(), cause.loads), ("`lane_id`", false));
    assert_eq!(cause.location.line, line!() - 20);
}

/// Twice the kernel takes about twice the time: checked by counting how often equations are solved.
#[test]
fn each_value_rises_a_bounded_number_of_times() {
    let nest = |depth: u32| {
        fn inner<'k>(k: &'k Builder<'k>, depth: u32, x: V<'k, u32>) -> V<'k, u32> {
            if depth == 0 {
                return x + k.thread_id(Axis::X);
            }
            k.for_range(0u32, 3, 1, x, |_, x| inner(k, depth - 1, x))
        }
        let kernel = crate::builder::build("f", Target::GFX950, Launch::linear(1, 256), vec![], |k| {
            inner(k, depth, k.constant(0u32));
        });
        let kernel = kernel.unwrap();
        let facts = Facts::of(&kernel);
        solve::updates(&kernel, &facts) / kernel.op_count() as usize
    };
    assert!(nest(60) <= nest(6) + 2 && nest(60) < 20, "{} and {} updates an operation", nest(6), nest(60));
}
