//! What is known of the values of small kernels.

use super::*;
use crate::builder::{Builder, Element, Idx, Integer, V};
use crate::ir::{Access, Axis, Launch, Param};
use crate::kernel::InOut;
use crate::target::Target;

/// The fact of the last value that `f` makes.
fn fact<T>(f: impl for<'k> FnOnce(&'k crate::Builder<'k>) -> crate::V<'k, T>) -> Fact {
    let kernel = crate::builder::build("f", Target::GFX950, Launch::linear(24, 512), vec![], |k| {
        f(k);
    })
    .unwrap();
    let facts = Facts::of(&kernel);
    let last = kernel.body.insts.last().unwrap().results[0];
    facts.get(last)
}

fn is(f: Fact, min: i128, max: i128, zeros: u32) {
    assert_eq!(f, Fact { min, max, zeros });
}

#[test]
fn index_arithmetic_of_a_row_kernel() {
    is(fact(|k| k.thread_id(Axis::X).div_floor(128)), 0, 3, 0);
    is(fact(|k| k.thread_id(Axis::X).rem_floor(128)), 0, 127, 0);
    is(fact(|k| k.block_id(Axis::X).div_floor(12) * 4), 0, 4, 2);
    is(fact(|k| (k.block_id(Axis::X).div_floor(12) * 4 + 3).minimum(7)), 3, 7, 0);
    is(fact(|k| k.thread_id(Axis::X) << 4), 0, 511 * 16, 4);
    is(fact(|k| k.thread_id(Axis::X) & 0xF0), 0, 0xF0, 4);
}

#[test]
fn what_can_wrap_keeps_only_its_divisor() {
    is(fact(|k| k.thread_id(Axis::X) * 0x0100_0000), 0, 0xFFFF_FFFF, 24);
    is(fact(|k| k.thread_id(Axis::X) - 1), 0, 0xFFFF_FFFF, 0);
    is(fact(|k| k.thread_id(Axis::X) + 0xFFFF_FFFF), 0, 0xFFFF_FFFF, 0);
}

#[test]
fn signed_numbers_keep_their_sign() {
    is(fact(|k| k.constant(-1i32).div_floor(2)), -1, -1, 0);
    is(fact(|k| k.constant(-1i32).div_trunc(2)), 0, 0, 0);
    is(fact(|k| k.constant(-1i32).to::<i64>()), -1, -1, 0);
    is(fact(|k| k.constant(-1i32).to::<u64>()), 0, i128::from(u64::MAX), 0);
    is(fact(|k| k.constant(-1i32).bitcast::<u32>()), 0xFFFF_FFFF, 0xFFFF_FFFF, 0);
    is(fact(|k| k.constant(-8i32) >> 1), -4, -4, 2);
    is(fact(|k| k.constant(-8i32).shrui(28)), 0, 15, 0);
    is(fact(|k| -k.thread_id(Axis::X).to::<i32>() * 4), -2044, 0, 2);
    is(fact(|k| (k.thread_id(Axis::X).to::<i32>() - 5).abs()), 0, 506, 0);
    is(fact(|k| (k.thread_id(Axis::X).to::<i32>() - 5).rem_trunc(3)), -2, 2, 0);
    is(fact(|k| k.constant(i32::MIN).abs()), i128::from(i32::MIN), i128::from(i32::MAX), 31);
}

#[test]
fn lanes_and_bits() {
    is(fact(|k| k.lane_id()), 0, 63, 0);
    is(fact(|k| k.lane_id().lt(3).ballot()), 0, i128::from(u64::MAX), 0);
    is(fact(|k| k.lane_id().ctlz()), 26, 32, 0);
    is(fact(|k| k.lane_id().ctpop()), 0, 32, 0);
    is(fact(|k| k.lane_id().uniform() * 8), 0, 504, 3);
    is(fact(|k| k.lane_id().ceildiv(16)), 0, 4, 0);
    // What an exchange brings from an inactive lane is anything.
    is(fact(|k| k.lane_id().shuffle_xor(1, 64)), 0, 0xFFFF_FFFF, 0);
    is(fact(|k| k.lane_id().opaque()), 0, 0xFFFF_FFFF, 0);
    is(fact(|k| k.lane_id().lt(3).to::<u8>()), 0, 1, 0);
}

/// Bits that the last value of a kernel, an index, needs.
fn bits(f: impl for<'k> FnOnce(&'k Builder<'k>) -> V<'k, Idx>) -> u32 {
    let (kernel, facts) = analysed(vec![], |k| {
        f(k);
    });
    facts.idx_bits(last(&kernel))
}

fn analysed(params: Vec<Param>, f: impl for<'k> FnOnce(&'k Builder<'k>)) -> (Kernel, Facts) {
    let kernel = crate::builder::build("f", Target::GFX950, Launch::linear(24, 512), params, f).unwrap();
    let facts = Facts::of(&kernel);
    (kernel, facts)
}

fn last(kernel: &Kernel) -> Value {
    kernel.body.insts.last().unwrap().results[0]
}

#[test]
fn an_index_takes_as_few_bits_as_its_range() {
    assert_eq!(bits(|k| k.block_id(Axis::X).to::<Idx>() * 0x0500_0000), 32);
    assert_eq!(bits(|k| k.block_id(Axis::X).to::<Idx>() * 0x0600_0000), 64);
    assert_eq!(bits(|k| k.block_id(Axis::X).to::<Idx>() * -0x0500_0000 - 1), 32);
    assert_eq!(bits(|k| k.constant(Idx(-(1 << 31)))), 32);
    assert_eq!(bits(|k| k.constant(Idx(-(1 << 31) - 1))), 64);
    // A promise, not a proof: the sum is within 64 bits because indices never overflow.
    let sum = fact(|k| k.constant(Idx(i64::MAX)) + k.block_id(Axis::X).to::<Idx>());
    is(sum, i128::from(i64::MAX), i128::from(i64::MAX), 0);
}

#[test]
fn a_loop_counts_between_its_ends() {
    let (kernel, facts) = analysed(vec![], |k| {
        k.for_range(-8i32, k.thread_id(Axis::X).to::<i32>(), 4, (), |_, ()| ());
        k.for_range(k.constant(Idx(16)), 3, 1, (), |_, ()| ());
    });
    let index = |i: usize| {
        let loops: Vec<_> = kernel.body.insts.iter().filter(|i| matches!(i.op, Op::For { .. })).collect();
        let Op::For { body, .. } = &loops[i].op else { unreachable!("filtered") };
        facts.get(body.params[0])
    };
    is(index(0), -8, 510, 2);
    is(index(1), 16, 16, 0);
}

#[test]
fn what_a_loop_carries_is_unknown() {
    is(fact(|k| k.for_range(0, k.lane_id(), 1, k.constant(3u32), |_, n| n)), 0, 0xFFFF_FFFF, 0);
    is(fact(|k| k.while_(k.constant(3u32), |n| (n.lt(9), n & 15), |n| n + 1)), 0, 15, 0);
    is(fact(|k| k.if_else(k.lane_id().lt(3), || k.constant(8u32), || k.constant(24u32))), 8, 24, 3);
}

#[test]
fn sums_that_do_not_wrap() {
    fn flags<T: Element + Integer>(a: T, b: T) -> (bool, bool) {
        let (kernel, facts) = analysed(vec![], |k| {
            let _ = k.constant(a) + k.constant(b);
        });
        let Op::Binary(op, a, b) = kernel.body.insts.last().unwrap().op else { panic!("{kernel}") };
        facts.no_wrap(&kernel, op, a, b)
    }
    assert_eq!(flags(0x7FFF_FFFFu32, 1), (true, false));
    assert_eq!(flags(7u32, 1), (true, true));
    assert_eq!(flags(u32::MAX, 1), (false, false));
    assert_eq!(flags(-1i32, 1), (false, true));
    assert_eq!(flags(i32::MAX, 1), (true, false));
    assert_eq!(flags(Idx(i64::MAX), Idx(1)), (true, true));
    assert_eq!(flags(Idx(-1), Idx(1)), (false, true));
}

#[test]
fn alignments_of_pointers() {
    let align = |bytes: u32, memory: Memory| {
        let (kernel, facts) = analysed(vec![], |k| {
            let _ = k.lds_bytes("a", 1024, 64).byte_offset::<f32>(k.lane_id() * bytes);
        });
        facts.ptr_align(last(&kernel), Type::Vector(Scalar::F32, 4), &memory)
    };
    let plain = Memory::new();
    assert_eq!((align(8, plain), align(64, plain)), (8, 16));
    // A promise is taken; without one the element's size is promised.
    assert_eq!(align(8, plain.align(16)), 16);
    assert_eq!(align(2, plain), 4);
    assert_eq!(align(2, plain.align(1)), 2);
}

#[test]
fn lds_addresses_are_as_aligned_as_what_they_are_made_of() {
    let (kernel, facts) = analysed(vec![], |k| {
        let tile = k.lds_aligned::<f32>("tile", 256, 64);
        let at = (tile + k.lane_id() * 8).to_int();
        let _ = (at & 0xFF80).to_ptr::<f32>();
    });
    let mut known = vec![];
    kernel.walk(&mut |inst| {
        if let Op::PtrToInt(_) | Op::IntToPtr(_) = inst.op {
            let fact = facts.get(inst.results[0]);
            known.push((fact.zeros, fact.min, fact.max));
        }
    });
    // Of a pointer no range is known; LDS itself is no more aligned than an array wants.
    assert_eq!(known, [(5, 0, u32::MAX.into()), (6, 0, u64::MAX.into())]);
}

#[test]
fn twelve_bytes_may_be_aligned_to_sixteen() {
    let (kernel, facts) = analysed(vec![], |k| {
        let _ = k.lds_aligned::<f32>("tile", 256, 16) + k.lane_id() * 4;
    });
    let align = |n| facts.ptr_align(last(&kernel), Type::Vector(Scalar::F32, n), &Memory::new());
    assert_eq!([1, 2, 3, 4, 8].map(align), [4, 8, 16, 16, 16]);
}

#[test]
fn places_in_buffers() {
    let kind = ParamKind::Buffer { elem: Scalar::F32, len: 1024, access: Access::ReadWrite, align: 8 };
    let (kernel, facts) = analysed(vec![Param { name: "x", kind }], |k| {
        let x = k.buffer::<f32, InOut>(0);
        let made = k.make_buffer::<u16>(k.block_id(Axis::X).to::<u64>() * 64, 4096);
        k.buffer_load::<f32>(x, k.thread_id(Axis::X).to::<Idx>() * 2);
        k.buffer_load::<f32>(x, k.thread_id(Axis::X).to::<Idx>() - 1);
        k.buffer_load::<f32>(made.cast(), k.thread_id(Axis::X));
    });
    let mut known = vec![];
    kernel.walk(&mut |inst| {
        if let Op::BufferLoad { buffer, offset, unit, .. } = inst.op {
            let data = Type::Scalar(Scalar::F32);
            let range = facts.byte_range(offset, unit, data);
            let bounds = facts.in_bounds(&kernel, buffer, offset, unit, data);
            let align = facts.buffer_align(&kernel, buffer, offset, unit, Type::Vector(Scalar::F32, 4));
            known.push((buffer_extent(&kernel, buffer), range.min, range.max, bounds, align));
        }
    });
    assert_eq!(known, [(Some(4096), 0, 4088, true, 8), (Some(4096), -4, 2040, false, 4), (None, 0, 2044, false, 4)]);
    let range = ByteRange { min: 0, max: 4000, zeros: 4 };
    assert!(range.plus(Fact::constant(80)).ends_within(Type::U64, 4088));
    assert!(!range.plus(Fact::constant(84)).ends_within(Type::U64, 4088));
    assert_eq!(range.plus(Fact::constant(84)).zeros, 2);
}

#[test]
fn what_is_assumed_of_an_argument_is_known_of_it() {
    let params = |s| vec![Param { name: "n", kind: ParamKind::Scalar(s) }];
    let known = |s, f: for<'k> fn(&'k Builder<'k>)| analysed(params(s), f).1.get(Value(0));
    fn both<'k>(k: &'k Builder<'k>) {
        let n = k.param::<u32>(0);
        k.assume(n.ge(16) & n.le(4096));
        k.assume(n.rem_floor(16).eq(0));
    }
    is(known(Scalar::U32, |k| k.assume(k.param::<u32>(0).lt(100))), 0, 99, 0);
    is(known(Scalar::U32, |k| k.assume(k.constant(100u32).ge(k.param::<u32>(0)))), 0, 100, 0);
    is(known(Scalar::I32, |k| k.assume(k.param::<i32>(0).gt(-3))), -2, i128::from(i32::MAX), 0);
    is(known(Scalar::U32, both), 16, 4096, 4);
    is(known(Scalar::U32, |k| k.assume(k.param::<u32>(0).eq(7))), 7, 7, 0);
    // Neither what only some threads come by, nor what holds of another value, nor what cannot be.
    let all = |f| is(known(Scalar::U32, f), 0, i128::from(u32::MAX), 0);
    all(|k| k.if_(k.lane_id().lt(3), || k.assume(k.param::<u32>(0).lt(100))));
    all(|k| k.assume((k.param::<u32>(0) + 1).lt(100)));
    all(|k| k.assume(k.param::<u32>(0).lt(k.thread_id(Axis::X))));
    all(|k| k.assume(k.param::<u32>(0).ne(5)));
    all(|k| k.assume(k.param::<u32>(0).lt(0)));
}
