//! Global pointers, made buffers, casts.

use lathe_dsl::ir::Access as A;

use super::super::{AccessKind, FaultKind, FindingKind, launch_among};
use super::*;

const GLOBAL: fn(Scalar) -> Type = |s| Type::Ptr(Space::Global, s);

fn fault_of(kernel: &Kernel, buffers: &[&GlobalBuffer]) -> FaultKind {
    let args: Vec<ArgValue<'_>> = buffers.iter().map(|b| ArgValue::Buffer(b)).collect();
    match run(kernel, &args, &Options::default()) {
        Err(Error::Fault(fault)) => fault.kind,
        other => panic!("a fault is due, got {other:?}"),
    }
}

fn run_with(kernel: &Kernel, buffers: &[&GlobalBuffer]) -> Report {
    let args: Vec<ArgValue<'_>> = buffers.iter().map(|b| ArgValue::Buffer(b)).collect();
    run(kernel, &args, &Options::default()).unwrap()
}

#[test]
fn pointers_reach_every_width_of_a_buffer() {
    for wave in [32, 64] {
        for (s, n) in [(Scalar::I8, 16), (Scalar::U8, 1), (Scalar::F16, 2), (Scalar::F32, 4), (Scalar::U64, 2)] {
            let ty = if n == 1 { Type::Scalar(s) } else { Type::Vector(s, n) };
            let len = 70 * u64::from(n);
            let mut b = Build::new(wave, 1, 70);
            let (x, y) = (b.buffer("x", s, len, A::Read), b.buffer("y", s, len, A::Write));
            let (px, py) = (b.op(Op::BufferPtr(x), GLOBAL(s)), b.op(Op::BufferPtr(y), GLOBAL(s)));
            let (t, n) = (b.tid(), b.u32(n));
            let at = b.mul(t, n);
            let (px, py) = (b.ptr(px, at), b.ptr(py, at));
            let v = b.ptr_load(px, ty);
            b.ptr_store(v, py);
            let data: Vec<u8> = (0..len as u32 * s.bytes()).map(|i| (i * 7 + 3) as u8).collect();
            let (input, output) = (GlobalBuffer::from_bytes(&data), GlobalBuffer::uninit(data.len()));
            assert_eq!(run_with(&b.finish(), &[&input, &output]).findings, []);
            assert_eq!(output.to_vec(), data, "{ty}");
        }
    }
}

#[test]
fn counts_of_every_integer_type_move_pointers_both_ways() {
    for s in super::ops::SIZED.into_iter().chain([Scalar::Idx]) {
        for space in [Space::Lds, Space::Global] {
            // Forward by 5, back by 2 if the type has negative numbers, else forward by 1.
            let mut b = Build::new(32, 1, 1);
            let out = b.buffer("out", Scalar::U16, 1, A::Write);
            let x = b.buffer("x", Scalar::U16, 8, A::Read);
            let ty = Type::Scalar(s);
            let base = match space {
                Space::Lds => b.lds("l", Scalar::U16, 8),
                Space::Global => b.op(Op::BufferPtr(x), GLOBAL(Scalar::U16)),
            };
            let (five, second) = (b.constant(5, ty), if s.is_signed() { u64::MAX - 1 } else { 1 });
            let second = b.constant(second & (u64::MAX >> (64 - s.bits())), ty);
            let zero = b.u32(0);
            if space == Space::Lds {
                let all = b.load(x, zero, Type::Vector(Scalar::U16, 8));
                b.ptr_store(all, base);
            }
            let p = b.ptr(base, five);
            let p = b.ptr(p, second);
            let v = b.ptr_load(p, U16);
            b.store(v, out, zero);
            let input = GlobalBuffer::from_bytes(&(0..8u16).flat_map(|i| (100 + i).to_le_bytes()).collect::<Vec<_>>());
            let output = GlobalBuffer::zeroed(2);
            run_with(&b.finish(), &[&output, &input]);
            assert_eq!(output.to_vec(), [if s.is_signed() { 103 } else { 106 }, 0], "{s} in {space:?}");
        }
    }
}

#[test]
fn an_address_in_memory_leads_to_another_allocation() {
    // x holds the addresses of two allocations that are no arguments; thread t adds 1 to element t of the first and
    // writes it to the second.
    let mut b = Build::new(64, 1, 16);
    let x = b.buffer("x", Scalar::U64, 2, A::Read);
    let (t, zero, one) = (b.tid(), b.u32(0), b.u32(1));
    let [from, to] = [zero, one].map(|i| {
        let address = b.load(x, i, U64);
        let p = b.op(Op::IntToPtr(address), GLOBAL(Scalar::U32));
        b.ptr(p, t)
    });
    let v = b.ptr_load(from, U32);
    let v = b.add(v, one);
    b.ptr_store(v, to);
    let kernel = b.finish();
    let source = from_words(&(0..16).map(|i| i * 10).collect::<Vec<_>>());
    let sink = GlobalBuffer::zeroed(64);
    let addresses = [source.address(), sink.address()].map(u64::to_le_bytes).concat();
    let x = GlobalBuffer::from_bytes(&addresses);
    let program = Program::new(&kernel).unwrap();
    let args = [ArgValue::Buffer(&x)];
    launch_among(&program, &args, &[&sink, &source], &Options::default()).unwrap();
    assert_eq!(words(&sink), (0..16).map(|i| i * 10 + 1).collect::<Vec<_>>());
    // What is not given is not reached.
    let error = launch_among(&program, &args, &[&sink], &Options::default()).unwrap_err();
    let Error::Fault(fault) = error else { panic!("{error}") };
    let (access, address) = (AccessKind::Read, source.address());
    assert_eq!(fault.kind, FaultKind::Unallocated { access, address, bytes: 4 });
    assert_eq!(fault.site.lane, 0);
}

#[test]
fn addresses_come_back_as_numbers() {
    let mut b = Build::new(32, 1, 1);
    let x = b.buffer("x", Scalar::F32, 4, A::Read);
    let out = b.buffer("out", Scalar::U64, 1, A::Write);
    let (zero, three) = (b.u32(0), b.u32(3));
    let p = b.op(Op::BufferPtr(x), GLOBAL(Scalar::F32));
    let p = b.ptr(p, three);
    let p = b.op(Op::PtrCast(p), GLOBAL(Scalar::U8));
    let p = b.ptr(p, three);
    let address = b.op(Op::PtrToInt(p), U64);
    b.store(address, out, zero);
    let (x, out) = (GlobalBuffer::zeroed(16), GlobalBuffer::zeroed(8));
    run_with(&b.finish(), &[&x, &out]);
    assert_eq!(out.to_vec(), (x.address() + 15).to_le_bytes());
}

#[test]
fn accesses_outside_every_allocation_are_faults() {
    for store in [false, true] {
        // Bytes 13..17 of 16 through a byte pointer cast to u32 and promised nothing; then element 4 of 4.
        for (count, align, bytes) in [(13, Some(1), 4u32), (16, None, 4)] {
            let mut b = Build::new(32, 1, 1);
            let x = b.buffer("x", Scalar::U32, 4, A::ReadWrite);
            let (n, v) = (b.u32(count), b.u32(7));
            let p = b.op(Op::BufferPtr(x), GLOBAL(Scalar::U32));
            let p = b.op(Op::PtrCast(p), GLOBAL(Scalar::U8));
            let p = b.ptr(p, n);
            let pointer = b.op(Op::PtrCast(p), GLOBAL(Scalar::U32));
            let memory = Memory { align, ..Memory::default() };
            if store {
                b.void(Op::PtrStore { value: v, pointer, memory });
            } else {
                b.op(Op::PtrLoad { pointer, memory }, U32);
            }
            let line = b.line();
            let kernel = b.finish();
            let x = GlobalBuffer::zeroed(16);
            let access = if store { AccessKind::Write } else { AccessKind::Read };
            let address = x.address() + u64::from(count);
            assert_eq!(fault_of(&kernel, &[&x]), FaultKind::Unallocated { access, address, bytes });
            let Err(e) = run(&kernel, &[ArgValue::Buffer(&x)], &Options::default()) else { panic!() };
            assert_eq!(
                e.to_string(),
                format!(
                    "k.rs:{line}:1: {access} global memory at address {address:#x}, 4 bytes that lie in no allocation \
                     (block (0,0,0), thread (0,0,0), wave 0, lane 0)"
                )
            );
        }
    }
}

#[test]
fn promised_alignment_is_checked() {
    // Element 1 of u32 is aligned to 4, not to 8; byte 2 not to 4.
    for space in [Space::Global, Space::Lds] {
        for (cast, count, align, good) in [
            (Scalar::U32, 1, None, true),
            (Scalar::U32, 1, Some(8), false),
            (Scalar::U32, 2, Some(8), true),
            (Scalar::U8, 2, None, false),
            (Scalar::U8, 2, Some(2), true),
            (Scalar::U8, 2, Some(1), true),
        ] {
            let mut b = Build::new(32, 1, 1);
            let x = b.buffer("x", Scalar::U32, 4, A::ReadWrite);
            let (n, v) = (b.u32(count), b.u32(0x0403_0201));
            let p = match space {
                Space::Lds => b.lds("l", Scalar::U32, 4),
                Space::Global => b.op(Op::BufferPtr(x), GLOBAL(Scalar::U32)),
            };
            let p = b.op(Op::PtrCast(p), Type::Ptr(space, cast));
            let p = b.ptr(p, n);
            let pointer = b.op(Op::PtrCast(p), Type::Ptr(space, Scalar::U32));
            let memory = Memory { align, ..Memory::default() };
            b.void(Op::PtrStore { value: v, pointer, memory });
            let v = b.op(Op::PtrLoad { pointer, memory }, U32);
            let zero = b.u32(0);
            b.store(v, x, zero);
            let kernel = b.finish();
            let x = GlobalBuffer::zeroed(16);
            if good {
                run_with(&kernel, &[&x]);
                assert_eq!(words(&x)[0], 0x0403_0201);
                continue;
            }
            let at = u64::from(count * cast.bytes());
            let kind = fault_of(&kernel, &[&x]);
            let address = if space == Space::Global { x.address() + at } else { at };
            let message = match align {
                None if space == Space::Lds => {
                    format!("write to LDS array `l` at LDS byte {at}, which is not aligned to its 4-byte elements")
                }
                _ => {
                    let place = if space == Space::Lds { "LDS" } else { "global memory" };
                    let align = align.unwrap_or(4);
                    format!("write to {place} at address {address:#x}, which is not aligned to {align} bytes")
                }
            };
            assert_eq!(kind.to_string(), message);
        }
    }
}

#[test]
fn uninitialised_memory_behind_a_pointer_is_found() {
    let mut b = Build::new(32, 1, 2);
    let x = b.buffer("x", Scalar::U32, 4, A::ReadWrite);
    let t = b.tid();
    let p = b.op(Op::BufferPtr(x), GLOBAL(Scalar::U32));
    let p = b.ptr(p, t);
    b.ptr_load(p, U32);
    let x = GlobalBuffer::uninit(16);
    let report = run_with(&b.finish(), &[&x]);
    let found: Vec<_> = report.findings.iter().map(|f| (access(f).kind, access(f).buffer, f.count)).collect();
    assert_eq!(found, [(FindingKind::Uninitialised, "x", 2)]);
}

#[test]
fn lds_casts_are_byte_exact() {
    // Words written, bytes and halves read; then a byte written that no word load before had.
    let mut b = Build::new(64, 1, 1);
    let out = b.buffer("out", Scalar::U8, 12, A::Write);
    let base = b.lds("l", Scalar::U32, 2);
    let v = b.u32(0x4433_2211);
    b.ptr_store(v, base);
    let bytes = b.op(Op::PtrCast(base), Type::Ptr(Space::Lds, Scalar::I8));
    let all = b.ptr_load(bytes, Type::Vector(Scalar::I8, 4));
    let (zero, one, four, eight) = (b.u32(0), b.u32(1), b.u32(4), b.u32(8));
    b.store(all, out, zero);
    let second = b.ptr(bytes, one);
    let nine = b.constant(0x99, Type::Scalar(Scalar::I8));
    b.ptr_store(nine, second);
    let halves = b.op(Op::PtrCast(base), Type::Ptr(Space::Lds, Scalar::U16));
    let halves = b.ptr_load(halves, Type::Vector(Scalar::U16, 2));
    let halves = b.op(Op::Bitcast(halves), Type::Vector(Scalar::U8, 4));
    b.store(halves, out, four);
    let all = b.ptr_load(base, U32);
    let all = b.op(Op::Bitcast(all), Type::Vector(Scalar::U8, 4));
    b.store(all, out, eight);
    let output = GlobalBuffer::zeroed(12);
    run_with(&b.finish(), &[&output]);
    assert_eq!(output.to_vec(), [0x11, 0x22, 0x33, 0x44, 0x11, 0x99, 0x33, 0x44, 0x11, 0x99, 0x33, 0x44]);
}

#[test]
fn one_unwritten_byte_of_an_lds_word_is_seen() {
    let mut b = Build::new(64, 1, 1);
    let base = b.lds("l", Scalar::U32, 2);
    let bytes = b.op(Op::PtrCast(base), Type::Ptr(Space::Lds, Scalar::U8));
    let v = b.constant(7, Type::Vector(Scalar::U8, 4));
    let three = b.u32(3);
    let p = b.ptr(bytes, three);
    b.ptr_store(v, p);
    // Bytes 3..7 are written; element 1 lacks its last.
    let one = b.u32(1);
    let p = b.ptr(base, one);
    b.ptr_load(p, U32);
    assert_eq!(fault_of(&b.finish(), &[]), FaultKind::LdsUninitialised { array: "l", element: 1 });
}

#[test]
fn negative_lds_elements_are_out_of_range() {
    let mut b = Build::new(64, 1, 1);
    let _ = b.lds("before", Scalar::U32, 4);
    let base = b.lds("l", Scalar::U32, 4);
    let minus = b.constant(u64::from(u32::MAX - 1), Type::Scalar(Scalar::I32));
    let p = b.ptr(base, minus);
    b.ptr_load(p, U32);
    let message = fault_of(&b.finish(), &[]).to_string();
    assert_eq!(message, "read of LDS array `l` at element -2, which has 4 elements");
}

/// Element `t` of a made buffer of `bytes` bytes from byte `from` of `x` on, plus 1, back to the same place; loads to `y`.
fn made(extent: Type, from: u64, bytes: u64) -> (Kernel, u32) {
    let mut b = Build::new(64, 1, 4);
    let x = b.buffer("x", Scalar::U32, 4, A::ReadWrite);
    let y = b.buffer("y", Scalar::U32, 4, A::Write);
    let (t, one, from, bytes) = (b.tid(), b.u32(1), b.constant(from, U64), b.constant(bytes, extent));
    let p = b.op(Op::BufferPtr(x), GLOBAL(Scalar::U32));
    let address = b.op(Op::PtrToInt(p), U64);
    let address = b.add(address, from);
    let buffer = b.op(Op::MakeBuffer { address, bytes }, Type::Buffer(Scalar::U32));
    let line = b.line();
    let v = b.load(buffer, t, U32);
    b.store(v, y, t);
    let v = b.add(v, one);
    b.store(v, buffer, t);
    (b.finish(), line)
}

#[test]
fn made_buffers_have_an_extent_of_their_own() {
    for extent in [U32, U64, Type::Scalar(Scalar::Idx)] {
        let (kernel, line) = made(extent, 4, 8);
        let (x, y) = (from_words(&[10, 20, 30, 40]), GlobalBuffer::zeroed(16));
        let report = run_with(&kernel, &[&x, &y]);
        assert_eq!((words(&x), words(&y)), (vec![10, 21, 31, 40], vec![20, 30, 0, 0]));
        let found: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
        assert_eq!(
            found[0],
            format!(
                "k.rs:{}:1: read of buffer `make_buffer` at bytes 8..12, which has 8 bytes (block (0,0,0), thread \
                 (2,0,0), wave 0, lane 2; 2 such accesses)",
                line + 1
            )
        );
        assert_eq!(found.len(), 2);
    }
}

#[test]
fn made_buffers_lie_in_memory_and_are_aligned() {
    let x = || (GlobalBuffer::zeroed(16), GlobalBuffer::zeroed(16));
    // Within its extent, but past the allocation.
    let (buffer, y) = x();
    let kind = fault_of(&made(U64, 8, 16).0, &[&buffer, &y]);
    let address = buffer.address() + 16;
    assert_eq!(kind, FaultKind::Unallocated { access: AccessKind::Read, address, bytes: 4 });
    let (buffer, y) = x();
    let kind = fault_of(&made(U64, 2, 8).0, &[&buffer, &y]);
    assert_eq!(kind, FaultKind::BadBuffer { address: buffer.address() + 2, bytes: 8, align: 4 });
    let (buffer, y) = x();
    let kind = fault_of(&made(U64, 0, 0xFFFF_FF01).0, &[&buffer, &y]);
    assert_eq!(kind, FaultKind::BadBuffer { address: buffer.address(), bytes: 0xFFFF_FF01, align: 4 });
}
