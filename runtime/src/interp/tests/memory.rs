//! Buffers and LDS: widths, offsets, ranges, findings.

use super::super::{AccessKind, FindingKind};
use super::*;

fn run_with(kernel: &Kernel, buffers: &[&GlobalBuffer]) -> Report {
    let args: Vec<ArgValue<'_>> = buffers.iter().map(|b| ArgValue::Buffer(b)).collect();
    run(kernel, &args, &Options::default()).unwrap()
}

#[test]
fn loads_and_stores_reinterpret_the_buffer() {
    // Loads bf16x4 from a u32 buffer, stores it as u16x4 into an f32 buffer.
    for wave in [32, 64] {
        let mut b = Build::new(wave, 2, 37);
        let x = b.buffer("x", Scalar::U32, 148, Access::Read);
        let y = b.buffer("y", Scalar::F32, 148, Access::Write);
        let (id, four) = (b.global_id(), b.u32(4));
        let at = b.mul(id, four);
        let v = b.load(x, at, Type::Vector(Scalar::Bf16, 4));
        let v = b.op(Op::Bitcast(v), Type::Vector(Scalar::U16, 4));
        b.store(v, y, at);
        let data: Vec<u32> = (0..148u32).map(|i| i.wrapping_mul(0x0101_4321).wrapping_add(0x7FA0_0001)).collect();
        let (input, output) = (from_words(&data), GlobalBuffer::uninit(592));
        assert_eq!(run_with(&b.finish(), &[&input, &output]).findings, []);
        assert_eq!(words(&output), data);
    }
}

#[test]
fn element_offsets_count_the_accessed_element_and_byte_offsets_bytes() {
    let mut b = Build::new(32, 1, 1);
    let x = b.buffer("x", Scalar::U32, 4, Access::Read);
    let y = b.buffer("y", Scalar::U32, 4, Access::Write);
    let (two, three, eight, six) = (b.u32(2), b.u32(3), b.u32(8), b.u32(6));
    // Element 3 of u16 is byte 6.
    let h = b.load(x, three, U16);
    b.void(Op::BufferStore {
        value: h,
        buffer: y,
        offset: six,
        unit: OffsetUnit::Bytes,
        scalar: None,
        mask: None,
        cache: Cache::default(),
    });
    let w = b.op(
        Op::BufferLoad {
            buffer: x,
            offset: eight,
            unit: OffsetUnit::Bytes,
            scalar: None,
            mask: None,
            fill: None,
            cache: Cache::default(),
        },
        U32,
    );
    b.store(w, y, two);
    let (input, output) = (from_words(&[0x1111_0000, 0xABCD_2222, 0x3333_4444, 5]), GlobalBuffer::zeroed(16));
    run_with(&b.finish(), &[&input, &output]);
    assert_eq!(words(&output), [0, 0xABCD_0000, 0x3333_4444, 0]);
}

#[test]
fn accesses_past_the_end_give_zero_or_are_dropped_and_are_found() {
    // Threads 0..8 access u32x2 at element offsets 0..8 of a buffer of 5.
    let mut b = Build::new(32, 2, 8);
    let x = b.buffer("x", Scalar::U32, 5, Access::Read);
    let y = b.buffer("y", Scalar::U32, 32, Access::Write);
    let z = b.buffer("z", Scalar::U32, 3, Access::ReadWrite);
    let (t, id, two) = (b.tid(), b.global_id(), b.u32(2));
    let v = b.load(x, t, Type::Vector(Scalar::U32, 2));
    let load_line = b.line();
    let at = b.mul(id, two);
    b.store(v, y, at);
    b.store(t, z, t);
    let store_line = b.line();
    let (input, output, small) = (from_words(&[10, 11, 12, 13, 14]), GlobalBuffer::uninit(128), from_words(&[9; 3]));
    let args = [&input, &output, &small].map(ArgValue::Buffer);
    // Both workgroups store to `small`.
    let report = run(&b.finish(), &args, &Options { checks: Checks::NONE, ..Options::default() }).unwrap();
    let one_block = [10, 11, 11, 12, 12, 13, 13, 14, 0, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(words(&output), [one_block, one_block].concat());
    assert_eq!(words(&small), [0, 1, 2]);

    let found: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        [
            format!(
                "k.rs:{load_line}:1: read of buffer `x` at bytes 20..28, which has 20 bytes \
                 (block (0,0,0), thread (5,0,0), wave 0, lane 5; 6 such accesses)"
            ),
            format!(
                "k.rs:{load_line}:1: read of buffer `x` at bytes 16..24 straddles its end at byte 20 \
                 (block (0,0,0), thread (4,0,0), wave 0, lane 4; 2 such accesses)"
            ),
            format!(
                "k.rs:{store_line}:1: write to buffer `z` at bytes 12..16, which has 12 bytes \
                 (block (0,0,0), thread (3,0,0), wave 0, lane 3; 10 such accesses)"
            ),
        ]
    );
    assert_eq!(access(&report.findings[2]).access, AccessKind::Write);
}

#[test]
fn offsets_past_4_gib_never_wrap() {
    // Element 2^30 + 1 of u32 is byte 2^32 + 4: as a 32-bit number it would be element 1.
    let mut b = Build::new(64, 1, 1);
    let x = b.buffer("x", Scalar::U32, 4, Access::ReadWrite);
    let (far, zero) = (b.u32((1 << 30) + 1), b.u32(0));
    let v = b.load(x, far, U32);
    b.store(v, x, zero);
    b.store(far, x, far);
    let buffer = from_words(&[1, 2, 3, 4]);
    let report = run_with(&b.finish(), &[&buffer]);
    assert_eq!(words(&buffer), [0, 2, 3, 4]);
    assert_eq!(report.findings.len(), 2);
    assert_eq!(access(&report.findings[0]).offset, (1 << 32) + 4);
}

#[test]
fn misaligned_and_uninitialised_accesses_are_found_and_work() {
    let mut b = Build::new(32, 1, 2);
    let x = b.buffer("x", Scalar::U32, 4, Access::Read);
    let y = b.buffer("y", Scalar::U32, 4, Access::ReadWrite);
    let (t, two) = (b.tid(), b.u32(2));
    let w = b.op(
        Op::BufferLoad {
            buffer: x,
            offset: two,
            unit: OffsetUnit::Bytes,
            scalar: None,
            mask: None,
            fill: None,
            cache: Cache::default(),
        },
        U32,
    );
    b.store(w, y, t);
    let _ = b.load(y, two, U32);
    let (input, output) = (from_words(&[0x2211_0000, 0x0000_4433, 0, 0]), GlobalBuffer::uninit(16));
    let report = run_with(&b.finish(), &[&input, &output]);
    assert_eq!(words(&output), [0x4433_2211, 0x4433_2211, 0, 0]);
    let kinds: Vec<_> = report.findings.iter().map(|f| (access(f).kind, access(f).buffer, f.count)).collect();
    assert_eq!(kinds, [(FindingKind::Misaligned, "x", 2), (FindingKind::Uninitialised, "y", 2)]);
}

#[test]
fn findings_are_bounded() {
    let mut b = Build::new(32, 1, 1);
    let x = b.buffer("x", Scalar::U32, 1, Access::Write);
    let one = b.u32(1);
    (0..10).for_each(|_| b.store(one, x, one));
    let program = Program::new(&b.finish()).unwrap();
    let buffer = GlobalBuffer::zeroed(4);
    let options = Options { max_findings: 3, ..Options::default() };
    let report = launch(&program, &[ArgValue::Buffer(&buffer)], &options).unwrap();
    assert_eq!((report.findings.len(), report.findings_omitted), (3, 7));
}

#[test]
fn strict_bounds_make_them_faults() {
    let mut b = Build::new(32, 4, 8);
    let x = b.buffer("x", Scalar::U32, 30, Access::Write);
    let id = b.global_id();
    b.store(id, x, id);
    let line = b.line();
    let fault = fault(&b.finish(), &Options { strict_bounds: true, ..Options::default() });
    assert_eq!(
        fault.to_string(),
        format!(
            "k.rs:{line}:1: write to buffer `x` at bytes 120..124, which has 120 bytes \
             (block (3,0,0), thread (6,0,0), wave 0, lane 6)"
        )
    );
}

#[test]
fn blocks_that_write_neighbouring_halves_lose_nothing() {
    // Block g writes u16 elements g, g + 64, g + 128, …: every word is shared by two blocks.
    let mut b = Build::new(32, 64, 32);
    let x = b.buffer("x", Scalar::U16, 64 * 32, Access::Write);
    let (t, g, n) = (b.tid(), b.bid(), b.u32(64));
    let at = b.mul(t, n);
    let at = b.add(at, g);
    let v = b.op(Op::Convert(at), U16);
    b.store(v, x, at);
    let program = Program::new(&b.finish()).unwrap();
    for threads in [1, 2, 8] {
        let buffer = GlobalBuffer::zeroed(4096);
        let options = Options { threads: Some(threads), ..Options::default() };
        launch(&program, &[ArgValue::Buffer(&buffer)], &options).unwrap();
        let expected: Vec<u8> = (0..2048u16).flat_map(u16::to_le_bytes).collect();
        assert_eq!(buffer.to_vec(), expected, "{threads} threads");
    }
}

#[test]
fn lds_holds_every_width_and_vectors() {
    for (s, ty) in [
        (Scalar::Bf16, Type::Vector(Scalar::Bf16, 3)),
        (Scalar::F32, Type::Vector(Scalar::F32, 2)),
        (Scalar::U64, Type::Vector(Scalar::U64, 2)),
        (Scalar::U16, U16),
    ] {
        // Each thread stores its vector, thread t reads that of thread 69 − t.
        let n = ty.lanes();
        let mut b = Build::new(32, 1, 70);
        let x = b.buffer("x", s, u64::from(70 * n), Access::Read);
        let y = b.buffer("y", s, u64::from(70 * n), Access::Write);
        let _ = b.lds("pad", Scalar::U16, 3);
        let lds = b.lds("v", s, 70 * n);
        let (t, n, last) = (b.tid(), b.u32(n), b.u32(69));
        let (at, mirror) = (b.mul(t, n), b.binary(BinaryOp::Sub, last, t));
        let mirror = b.mul(mirror, n);
        let v = b.load(x, at, ty);
        let p = b.ptr(lds, at);
        b.ptr_store(v, p);
        b.void(Op::Barrier);
        let p = b.ptr(lds, mirror);
        let v = b.ptr_load(p, ty);
        b.store(v, y, at);
        let size = ty.bytes() as usize;
        let data: Vec<u8> = (0..70 * size).map(|i| (i * 31 + i / 7) as u8).collect();
        let (input, output) = (GlobalBuffer::from_bytes(&data), GlobalBuffer::uninit(data.len()));
        assert_eq!(run_with(&b.finish(), &[&input, &output]).findings, []);
        assert_eq!(output.to_vec(), data.chunks(size).rev().flatten().copied().collect::<Vec<_>>(), "{ty}");
    }
}

#[test]
fn stores_of_masked_lanes_do_not_happen() {
    let mut b = Build::new(64, 1, 64);
    let out = b.buffer("out", Scalar::U32, 64, Access::ReadWrite);
    let lds = b.lds("l", Scalar::U32, 64);
    let (t, zero, ten) = (b.tid(), b.u32(0), b.u32(10));
    let p = b.ptr(lds, t);
    b.ptr_store(zero, p);
    let low = b.lt(t, ten);
    b.if_(low, |b| {
        b.ptr_store(t, p);
        b.store(t, out, t);
    });
    let v = b.ptr_load(p, U32);
    let old = b.load(out, t, U32);
    let v = b.mul(v, ten);
    let v = b.add(v, old);
    b.store(v, out, t);
    let buffer = from_words(&[7000; 64]);
    run_with(&b.finish(), &[&buffer]);
    assert_eq!(words(&buffer), (0..64).map(|t| if t < 10 { 11 * t } else { 7000 }).collect::<Vec<_>>());
}
