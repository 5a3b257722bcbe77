//! Atomics: what each one does, in both memories, and that they are atomic between threads.

use lathe_dsl::ir::{AtomicKind, AtomicOp, Coherence, Order, Scope};

use super::super::FaultKind;
use super::*;

const TYPES: [Scalar; 6] = [Scalar::I32, Scalar::U32, Scalar::I64, Scalar::U64, Scalar::F32, Scalar::F64];

/// Where an atomic operation goes.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Way {
    Lds,
    Pointer,
    Buffer,
}

fn rmw(b: &mut Build, way: Way, op: AtomicOp, place: Value, value: Value, ty: Type) -> Value {
    let (order, scope) = (Order::AcqRel, Scope::Device);
    let offset = b.u32(0);
    let (unit, kind, mask) = (OffsetUnit::Elements, AtomicKind(op), None);
    let op = match way {
        Way::Buffer => {
            let (buffer, scalar, nontemporal) = (place, None, false);
            Op::BufferAtomic { kind, value, buffer, offset, unit, scalar, mask, nontemporal, scope }
        }
        _ => Op::AtomicRmw { op, pointer: place, value, order, scope },
    };
    b.op(op, ty)
}

/// `(memory before, operand) → (result, memory after)`.
fn one(way: Way, op: AtomicOp, s: Scalar, before: u64, operand: u64) -> (u64, u64) {
    let ty = Type::Scalar(s);
    let mut b = Build::new(64, 1, 1);
    let x = b.buffer("x", s, 1, Access::ReadWrite);
    let out = b.buffer("out", s, 1, Access::Write);
    let (zero, v) = (b.u32(0), b.constant(operand, ty));
    let place = match way {
        Way::Buffer => x,
        Way::Pointer => b.op(Op::BufferPtr(x), Type::Ptr(Space::Global, s)),
        Way::Lds => {
            let p = b.lds("l", s, 1);
            let first = b.load(x, zero, ty);
            b.ptr_store(first, p);
            p
        }
    };
    let old = rmw(&mut b, way, op, place, v, ty);
    b.store(old, out, zero);
    if way == Way::Lds {
        let now = b.ptr_load(place, ty);
        b.store(now, x, zero);
    }
    let w = s.bytes() as usize;
    let x = GlobalBuffer::from_bytes(&before.to_le_bytes()[..w]);
    let out = GlobalBuffer::zeroed(w);
    run(&b.finish(), &[ArgValue::Buffer(&x), ArgValue::Buffer(&out)], &Options::default()).unwrap();
    let bits = |b: &GlobalBuffer| b.to_vec().iter().rev().fold(0, |v, b| v << 8 | u64::from(*b));
    (bits(&out), bits(&x))
}

#[test]
fn every_operation_on_every_type_in_every_memory() {
    for s in TYPES {
        let mask = u64::MAX >> (64 - s.bits());
        let float = |x: f64| if s == Scalar::F32 { u64::from((x as f32).to_bits()) } else { x.to_bits() };
        let of_float = |x: u64| if s == Scalar::F32 { f32::from_bits(x as u32).into() } else { f64::from_bits(x) };
        let cases: Vec<(u64, u64)> = if s.is_float() {
            let nan = float(f64::NAN);
            vec![
                (float(1.5), float(2.25)),
                (float(0.0), float(-0.0)),
                (float(-0.0), float(0.0)),
                (nan, float(3.0)),
                (float(3.0), nan),
                (float(f64::INFINITY), float(-7.0)),
            ]
        } else {
            let top = 1 << (s.bits() - 1);
            vec![(5, 3), (mask, 1), (top, mask), (3, mask - 1), (top - 1, top)]
        };
        for (before, v) in cases {
            for op in AtomicOp::ALL.iter().copied().filter(|op| op.def().on.contains(s)) {
                let after = if s.is_float() {
                    let (x, y) = (of_float(before), of_float(v));
                    let pick = |first: bool| if y.is_nan() || !x.is_nan() && first { before } else { v };
                    let below = x < y || x == y && x.is_sign_negative();
                    match op {
                        AtomicOp::Add => float(x + y),
                        AtomicOp::Sub => float(x - y),
                        AtomicOp::Min => pick(below),
                        AtomicOp::Max => pick(!below),
                        _ => v,
                    }
                } else {
                    let signed = |x: u64| {
                        let negative = s.is_signed() && x >> (s.bits() - 1) == 1;
                        i128::from(x) - if negative { 1 << s.bits() } else { 0 }
                    };
                    let (x, y) = (signed(before), signed(v));
                    let r = match op {
                        AtomicOp::Add => x + y,
                        AtomicOp::Sub => x - y,
                        AtomicOp::Min => x.min(y),
                        AtomicOp::Max => x.max(y),
                        AtomicOp::And => x & y,
                        AtomicOp::Or => x | y,
                        AtomicOp::Xor => x ^ y,
                        AtomicOp::Xchg => y,
                    };
                    r.rem_euclid(1 << s.bits()) as u64
                };
                for way in [Way::Lds, Way::Pointer, Way::Buffer] {
                    let got = one(way, op, s, before, v);
                    let same = got.1 == after || s.is_float() && of_float(got.1).is_nan() && of_float(after).is_nan();
                    assert!(got.0 == before && same, "{op} {s} {way:?} {before:#x} {v:#x}: {got:x?}, not {after:#x}");
                }
            }
        }
    }
}

#[test]
fn compare_and_swap_compares_bits() {
    // Of −0 and 0, and of a NaN with itself.
    for s in TYPES {
        for space in [Space::Lds, Space::Global] {
            let top = 1u64 << (s.bits() - 1);
            let nan = if s.bits() == 32 { 0x7FC0_0001 } else { 0x7FF8_0000_0000_0001 };
            for (before, expected) in [(0, top), (0, 0), (nan, nan), (5, 6)] {
                let ty = Type::Scalar(s);
                let mut b = Build::new(32, 1, 1);
                let x = b.buffer("x", s, 2, Access::ReadWrite);
                let (zero, one, e, v, first) =
                    (b.u32(0), b.u32(1), b.constant(expected, ty), b.constant(7, ty), b.constant(before, ty));
                let pointer = match space {
                    Space::Lds => b.lds("l", s, 1),
                    Space::Global => b.op(Op::BufferPtr(x), Type::Ptr(space, s)),
                };
                b.ptr_store(first, pointer);
                let (order, scope) = (Order::SeqCst, Scope::System);
                let old = b.op(Op::AtomicCas { pointer, expected: e, value: v, order, scope }, ty);
                let now = b.ptr_load(pointer, ty);
                b.store(now, x, zero);
                b.store(old, x, one);
                let x = GlobalBuffer::zeroed(2 * s.bytes() as usize);
                run(&b.finish(), &[ArgValue::Buffer(&x)], &Options::default()).unwrap();
                let w = s.bytes() as usize;
                let after: u64 = if before == expected { 7 } else { before };
                let expected = [&after.to_le_bytes()[..w], &before.to_le_bytes()[..w]].concat();
                assert_eq!(x.to_vec(), expected, "{s} {space:?} {before:#x}");
            }
        }
    }
}

#[test]
fn nothing_is_lost_between_threads() {
    for s in [Scalar::U32, Scalar::U64, Scalar::F32, Scalar::F64] {
        for way in [Way::Pointer, Way::Buffer] {
            // 64 workgroups of 64 threads add 1 each to one element.
            let ty = Type::Scalar(s);
            let mut b = Build::new(64, 64, 64);
            let x = b.buffer("x", s, 1, Access::ReadWrite);
            let one_bits = match s {
                Scalar::F32 => u64::from(1f32.to_bits()),
                Scalar::F64 => 1f64.to_bits(),
                _ => 1,
            };
            let one = b.constant(one_bits, ty);
            let place = if way == Way::Buffer { x } else { b.op(Op::BufferPtr(x), Type::Ptr(Space::Global, s)) };
            rmw(&mut b, way, AtomicOp::Add, place, one, ty);
            let program = Program::new(&b.finish()).unwrap();
            let x = GlobalBuffer::zeroed(s.bytes() as usize);
            let options = Options { threads: Some(4), ..Options::default() };
            launch(&program, &[ArgValue::Buffer(&x)], &options).unwrap();
            let bits = x.to_vec().iter().rev().fold(0, |v, b| v << 8 | u64::from(*b));
            let n = match s {
                Scalar::F32 => f32::from_bits(bits as u32) as u64,
                Scalar::F64 => f64::from_bits(bits) as u64,
                _ => bits,
            };
            assert_eq!(n, 4096, "{s} {way:?}");
        }
    }
}

#[test]
fn every_thread_of_a_launch_gets_a_number_of_its_own() {
    let mut b = Build::new(32, 16, 96);
    let (n, out) =
        (b.buffer("n", Scalar::U32, 1, Access::ReadWrite), b.buffer("out", Scalar::U32, 1536, Access::Write));
    let one = b.u32(1);
    let ticket = rmw(&mut b, Way::Buffer, AtomicOp::Add, n, one, U32);
    b.store(one, out, ticket);
    let program = Program::new(&b.finish()).unwrap();
    for threads in [1, 4] {
        let (n, out) = (GlobalBuffer::zeroed(4), GlobalBuffer::zeroed(4 * 1536));
        let options = Options { threads: Some(threads), ..Options::default() };
        launch(&program, &[ArgValue::Buffer(&n), ArgValue::Buffer(&out)], &options).unwrap();
        assert_eq!((words(&n), words(&out)), (vec![1536], vec![1; 1536]));
    }
}

#[test]
fn misaligned_and_outside_are_faults() {
    for space in [Space::Lds, Space::Global] {
        for (count, what) in [(2, "aligned"), (16, "allocation"), (16, "elements")] {
            if (space == Space::Lds) == (what == "allocation") && count == 16 {
                continue;
            }
            let mut b = Build::new(32, 1, 1);
            let x = b.buffer("x", Scalar::U32, 4, Access::ReadWrite);
            let (n, v) = (b.u32(count), b.u32(1));
            let p = match space {
                Space::Lds => b.lds("l", Scalar::U32, 4),
                Space::Global => b.op(Op::BufferPtr(x), Type::Ptr(space, Scalar::U32)),
            };
            let p = b.op(Op::PtrCast(p), Type::Ptr(space, Scalar::U8));
            let p = b.ptr(p, n);
            let p = b.op(Op::PtrCast(p), Type::Ptr(space, Scalar::U32));
            rmw(&mut b, Way::Pointer, AtomicOp::Add, p, v, U32);
            let kind = fault(&b.finish(), &Options::default()).kind.to_string();
            assert!(kind.starts_with("atomic update of") && kind.contains(what), "{space:?} {count}: {kind}");
        }
    }
    // LDS that nobody wrote holds nothing to update.
    let mut b = Build::new(32, 1, 1);
    let (p, v) = (b.lds("l", Scalar::U32, 4), b.u32(1));
    rmw(&mut b, Way::Lds, AtomicOp::Xchg, p, v, U32);
    assert_eq!(fault(&b.finish(), &Options::default()).kind, FaultKind::LdsUninitialised { array: "l", element: 0 });
}

#[test]
fn a_message_passed_by_a_flag_arrives() {
    // Workgroup 0 writes data and releases a flag; workgroup 1 spins on it and reads the data. One host thread must run
    // both in turn, whichever comes first.
    for first in [0, 1u32] {
        let mut b = Build::new(32, 2, 32);
        let data = b.buffer("data", Scalar::U64, 32, Access::ReadWrite);
        let flag = b.buffer("flag", Scalar::U64, 1, Access::ReadWrite);
        let out = b.buffer("out", Scalar::U64, 32, Access::Write);
        let (t, g, c) = (b.tid(), b.bid(), b.u32(first));
        let sends = b.compare(Predicate::Eq, g, c);
        let p = b.op(Op::BufferPtr(flag), Type::Ptr(Space::Global, Scalar::U64));
        let memory = |order| Memory { order, scope: Scope::Device, ..Memory::default() };
        b.if_else(
            sends,
            &[],
            |b| {
                let v = b.op(Op::Convert(t), U64);
                b.store(v, data, t);
                b.void(Op::Drain { scope: Scope::Device });
                let one = b.constant(1, U64);
                b.void(Op::PtrStore { value: one, pointer: p, memory: memory(Order::Release) });
                vec![]
            },
            |b| {
                let one = b.constant(1, U64);
                b.while_(
                    &[],
                    &[],
                    |b, _| {
                        let v = b.op(Op::PtrLoad { pointer: p, memory: memory(Order::Acquire) }, U64);
                        vec![b.compare(Predicate::Ne, v, one)]
                    },
                    |_, _| vec![],
                );
                let v = b.load(data, t, U64);
                b.store(v, out, t);
                vec![]
            },
        );
        let program = Program::new(&b.finish()).unwrap();
        for threads in [1, 2] {
            for seed in [None, Some(1)] {
                let (data, flag, out) = (GlobalBuffer::zeroed(256), GlobalBuffer::zeroed(8), GlobalBuffer::zeroed(256));
                let args = [&data, &flag, &out].map(ArgValue::Buffer);
                let options = Options { threads: Some(threads), seed, step_limit: Some(1 << 30), ..Options::default() };
                launch(&program, &args, &options).unwrap();
                assert_eq!(out.to_vec(), (0..32u64).flat_map(u64::to_le_bytes).collect::<Vec<_>>());
            }
        }
    }
}

/// Workgroup 0 stores vectors of `n` equal words over and over, workgroup 1 loads them; gives how many it saw torn.
fn torn(n: u32, coherence: Coherence) -> u32 {
    let ty = Type::Vector(Scalar::U32, n);
    let cache = Cache { coherence, nontemporal: false };
    let mut b = Build::new(32, 2, 1);
    let data = b.buffer("data", Scalar::U32, 4, Access::ReadWrite);
    let out = b.buffer("out", Scalar::U32, 1, Access::Write);
    let (g, zero, rounds) = (b.bid(), b.u32(0), b.u32(200_000));
    let first = b.compare(Predicate::Eq, g, zero);
    let (unit, scalar, mask) = (OffsetUnit::Elements, None, None);
    b.if_else(
        first,
        &[],
        |b| {
            b.for_((zero, rounds, 1), &[], |b, i, _| {
                let value = b.op(Op::VectorFrom(vec![i; n as usize]), ty);
                b.void(Op::BufferStore { value, buffer: data, offset: zero, unit, scalar, mask, cache });
                vec![]
            });
            vec![]
        },
        |b| {
            let seen = b.for_((zero, rounds, 1), &[zero], |b, _, carried| {
                let v = b.op(Op::BufferLoad { buffer: data, offset: zero, unit, scalar, mask, fill: None, cache }, ty);
                let (low, high) = (b.op(Op::Extract(v, 0), U32), b.op(Op::Extract(v, n - 1), U32));
                let torn = b.compare(Predicate::Ne, low, high);
                let torn = b.op(Op::Convert(torn), U32);
                vec![b.add(carried[0], torn)]
            });
            b.store(seen[0], out, zero);
            vec![]
        },
    );
    let (data, out) = (GlobalBuffer::zeroed(16), GlobalBuffer::zeroed(4));
    let options = Options { threads: Some(2), ..Options::default() };
    run(&b.finish(), &[ArgValue::Buffer(&data), ArgValue::Buffer(&out)], &options).unwrap();
    words(&out)[0]
}

#[test]
fn coherent_accesses_of_up_to_16_bytes_happen_at_once() {
    for n in [2, 4] {
        for coherence in [Coherence::Device, Coherence::System] {
            assert_eq!(torn(n, coherence), 0, "{n} words, {coherence}");
        }
    }
}
