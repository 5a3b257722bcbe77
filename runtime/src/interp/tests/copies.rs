//! Copies to LDS that bypass registers: what they write, and when it may be read.

use lathe_dsl::ir::Scope;

use super::super::{AccessKind, FaultKind, FindingKind};
use super::*;

/// Where the copies are waited for.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Wait {
    Drain,
    Waitcnt,
    /// `vmcnt` of another number.
    TooLittle,
    Never,
}

/// Every thread copies `bytes` bytes from offset `t · bytes` of `x`; then thread `t` reads what thread `t ^ 1` copied.
fn copy(wave: u32, threads: u32, bytes: u32, len: u32, wait: Wait) -> (Kernel, u32, u32) {
    let mut b = Build::new(wave, 1, threads);
    let words = bytes / 4;
    let x = b.buffer("x", Scalar::U32, len.into(), Access::Read);
    let y = b.buffer("y", Scalar::U32, u64::from(threads * words), Access::Write);
    let base = b.lds("l", Scalar::U32, threads * words);
    let (t, one, w, n) = (b.tid(), b.u32(1), b.u32(wave), b.u32(words));
    let number = b.binary(BinaryOp::DivFloor, t, w);
    let start = b.mul(number, w);
    let start = b.mul(start, n);
    let pointer = b.ptr(base, start);
    let offset = b.mul(t, n);
    b.void(Op::CopyToLds {
        buffer: x,
        offset,
        pointer,
        unit: OffsetUnit::Elements,
        scalar: None,
        bytes,
        cache: Cache::default(),
    });
    let line = b.line();
    match wait {
        Wait::Drain => b.void(Op::Drain { scope: Scope::Workgroup }),
        Wait::Waitcnt => b.void(Op::SWaitcnt { vmcnt: Some(0), lgkmcnt: None, expcnt: None }),
        Wait::TooLittle => b.void(Op::SWaitcnt { vmcnt: Some(1), lgkmcnt: Some(0), expcnt: None }),
        Wait::Never => {}
    }
    b.void(Op::Barrier);
    let other = b.binary(BinaryOp::Xor, t, one);
    let at = b.mul(other, n);
    let p = b.ptr(base, at);
    let v = b.ptr_load(p, if words == 1 { U32 } else { Type::Vector(Scalar::U32, words) });
    let read = b.line();
    b.store(v, y, offset);
    (b.finish(), line, read)
}

#[test]
fn copies_write_lane_after_lane_and_zeros_outside() {
    for wave in [32, 64] {
        for bytes in [4, 16] {
            for wait in [Wait::Drain, Wait::Waitcnt] {
                let words_a_lane = bytes / 4;
                let len = 120 * words_a_lane + words_a_lane / 2;
                let (kernel, ..) = copy(wave, 128, bytes, len, wait);
                let data: Vec<u32> = (0..len).map(|i| i * 3 + 1).collect();
                let (x, y) = (from_words(&data), GlobalBuffer::zeroed((128 * bytes) as usize));
                let report = run(&kernel, &[ArgValue::Buffer(&x), ArgValue::Buffer(&y)], &Options::default()).unwrap();
                let want: Vec<u32> = (0..128 * words_a_lane)
                    .map(|i| {
                        let (t, e) = ((i / words_a_lane) ^ 1, i % words_a_lane);
                        if t < 120 { (t * words_a_lane + e) * 3 + 1 } else { 0 }
                    })
                    .collect();
                assert_eq!(words(&y), want);
                let mut found: Vec<_> = report.findings.iter().map(|f| (access(f).kind, f.count)).collect();
                found.sort();
                let straddles = u64::from(words_a_lane / 2 > 0);
                let mut expected = vec![(FindingKind::OutOfRange, 8 - straddles), (FindingKind::Straddle, straddles)];
                expected.retain(|f| f.1 > 0);
                assert_eq!(found, expected);
            }
        }
    }
}

#[test]
fn bytes_that_were_not_drained_must_not_be_read() {
    for wave in [32, 64] {
        for wait in [Wait::Never, Wait::TooLittle] {
            let (kernel, line, read) = copy(wave, 128, 4, 128, wait);
            assert_eq!(
                message(&kernel),
                format!(
                    "k.rs:{read}:1: read of LDS array `l` at element 1: bytes whose copy to LDS (k.rs:{line}:1) has not \
                     been drained (block (0,0,0), thread (0,0,0), wave 0, lane 0)"
                )
            );
        }
    }
}

/// One wave copies one word a lane to LDS; `f` goes on with the pointer to it.
fn then(threads: u32, f: impl FnOnce(&mut Build, Value, Value)) -> Kernel {
    let mut b = Build::new(32, 1, threads);
    let x = b.buffer("x", Scalar::U32, 64, Access::Read);
    let base = b.lds("l", Scalar::U32, 64);
    let (t, w) = (b.tid(), b.u32(32));
    let first = b.lt(t, w);
    b.if_(first, |b| {
        b.void(Op::CopyToLds {
            buffer: x,
            offset: t,
            pointer: base,
            unit: OffsetUnit::Elements,
            scalar: None,
            bytes: 4,
            cache: Cache::default(),
        });
    });
    f(&mut b, base, t);
    b.finish()
}

#[test]
fn another_wave_s_drain_does_not_count() {
    // Wave 1 drains, wave 0, which copied, does not.
    let kernel = then(64, |b, base, t| {
        let w = b.u32(32);
        let second = b.compare(Predicate::Ge, t, w);
        b.if_(second, |b| b.void(Op::Drain { scope: Scope::Device }));
        b.void(Op::Barrier);
        b.ptr_load(base, U32);
    });
    let FaultKind::LdsPending { access: AccessKind::Read, array: "l", element: 0, .. } =
        fault(&kernel, &Options::default()).kind
    else {
        panic!()
    };
}

#[test]
fn bytes_under_way_must_not_be_written_either() {
    let kernel = then(32, |b, base, t| b.ptr_store(t, base));
    let kind = fault(&kernel, &Options::default()).kind;
    assert!(matches!(kind, FaultKind::LdsPending { access: AccessKind::Write, element: 0, .. }), "{kind}");
    // Next to them, or after the drain, all is well.
    let kernel = then(32, |b, base, t| {
        let w = b.u32(32);
        let p = b.ptr(base, w);
        b.ptr_store(t, p);
        b.void(Op::Drain { scope: Scope::Workgroup });
        b.ptr_store(t, base);
        b.ptr_load(base, U32);
    });
    run(&kernel, &[ArgValue::Buffer(&GlobalBuffer::zeroed(256))], &Options::default()).unwrap();
}

#[test]
fn a_copy_goes_to_one_aligned_place() {
    let kernel = |count_of: fn(&mut Build, Value) -> Value, bytes| {
        let mut b = Build::new(64, 1, 2);
        let x = b.buffer("x", Scalar::U32, 64, Access::Read);
        let (base, t) = (b.lds("l", Scalar::U32, 64), b.tid());
        let n = count_of(&mut b, t);
        let pointer = b.ptr(base, n);
        b.void(Op::CopyToLds {
            buffer: x,
            offset: t,
            pointer,
            unit: OffsetUnit::Elements,
            scalar: None,
            bytes,
            cache: Cache::default(),
        });
        b.finish()
    };
    let fault_of = |kernel: &Kernel| fault(kernel, &Options::default()).kind.to_string();
    assert_eq!(fault_of(&kernel(|_, t| t, 4)), "LDS pointer of a copy differs between lanes of the wave");
    assert_eq!(fault_of(&kernel(|b, _| b.u32(1), 16)), "write to LDS at address 0x4, which is not aligned to 16 bytes");
    assert_eq!(
        fault_of(&kernel(|b, _| b.u32(60), 16)),
        "write to LDS array `l` at elements 64..68, which has 64 elements"
    );
}
