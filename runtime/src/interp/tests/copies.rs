//! Copies to LDS that bypass registers: what they write, and when it may be read.

use lathe_dsl::ir::Scope;

use super::super::{AccessKind, FaultKind, FindingKind};
use super::*;

/// Where the copies are waited for.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Wait {
    Drain,
    Waitcnt,
    Mark,
    /// `vmcnt` of another number.
    TooLittle,
    /// For a mark that stands before the copy.
    OlderMark,
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
        Wait::Mark => {
            b.void(Op::AsyncMark);
            b.void(Op::WaitAsyncMark(0));
        }
        Wait::OlderMark => {
            b.void(Op::AsyncMark);
            b.void(Op::WaitAsyncMark(1));
        }
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
            for wait in [Wait::Drain, Wait::Waitcnt, Wait::Mark] {
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
        for wait in [Wait::Never, Wait::TooLittle, Wait::OlderMark] {
            let (kernel, line, read) = copy(wave, 128, 4, 128, wait);
            assert_eq!(
                message(&kernel),
                format!(
                    "k.rs:{read}:1: read of LDS array `l` at element 1: bytes whose copy to LDS (k.rs:{line}:1) has not \
                     been waited for (block (0,0,0), thread (0,0,0), wave 0, lane 0)"
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

/// One wave copies `x` to place after place, each of one word a lane; `f` gets the pointers to the places and the lane.
fn several(places: u32, f: impl FnOnce(&mut Build, &[Value], Value, &mut dyn FnMut(&mut Build, usize))) -> Kernel {
    let mut b = Build::new(32, 1, 32);
    let x = b.buffer("x", Scalar::U32, 64, Access::ReadWrite);
    let base = b.lds("l", Scalar::U32, places * 32);
    let t = b.tid();
    let pointers: Vec<Value> = (0..places)
        .map(|i| {
            let n = b.u32(i * 32);
            b.ptr(base, n)
        })
        .collect();
    let all = pointers.clone();
    let mut copy = |b: &mut Build, place: usize| {
        let unit = OffsetUnit::Elements;
        let (pointer, cache) = (all[place], Cache::default());
        b.void(Op::CopyToLds { buffer: x, offset: t, pointer, unit, scalar: None, bytes: 4, cache });
    };
    f(&mut b, &pointers, t, &mut copy);
    b.finish()
}

fn runs(kernel: &Kernel) -> bool {
    match run(kernel, &[ArgValue::Buffer(&GlobalBuffer::zeroed(256))], &Options::default()) {
        Ok(_) => true,
        Err(Error::Fault(f)) if matches!(f.kind, FaultKind::LdsPending { .. }) => false,
        Err(e) => panic!("{e}"),
    }
}

#[test]
fn a_wait_for_a_mark_lands_the_groups_before_it_and_no_other() {
    // Copies 0 and 1 in the first group, 2 in the second, 3 in none.
    let read = |n: u32, place: usize| {
        runs(&several(4, |b, p, t, copy| {
            for place in 0..4 {
                copy(b, place);
                if matches!(place, 1 | 2) {
                    b.void(Op::AsyncMark);
                }
            }
            b.void(Op::WaitAsyncMark(n));
            let at = b.ptr(p[place], t);
            b.ptr_load(at, U32);
        }))
    };
    for (n, landed) in [(0, 3), (1, 2), (2, 0)] {
        for place in 0..4 {
            assert_eq!(read(n, place), place < landed, "place {place} after waiting for mark {n}");
        }
    }
}

#[test]
fn marks_before_which_nothing_is_under_way_still_count() {
    // The third mark from the newest stands before the copy.
    let kernel = |n| {
        several(1, |b, p, _, copy| {
            b.void(Op::AsyncMark);
            b.void(Op::AsyncMark);
            copy(b, 0);
            b.void(Op::AsyncMark);
            b.void(Op::AsyncMark);
            b.void(Op::WaitAsyncMark(n));
            b.ptr_load(p[0], U32);
        })
    };
    assert_eq!([0, 1, 2, 3].map(|n| runs(&kernel(n))), [true, true, false, false]);
}

#[test]
fn a_lane_waits_for_its_own_copies() {
    // Lanes 0 to 15 wait; lane 0 then reads its own part, or that of lane 16.
    let kernel = |place: u32, wait: Op| {
        several(1, |b, p, t, copy| {
            copy(b, 0);
            b.void(Op::AsyncMark);
            let half = b.u32(16);
            let low = b.lt(t, half);
            b.if_(low, |b| {
                b.void(wait);
                let n = b.u32(place);
                let at = b.ptr(p[0], n);
                b.ptr_load(at, U32);
            });
        })
    };
    for wait in [Op::WaitAsyncMark(0), Op::Drain { scope: Scope::Wave }] {
        assert_eq!((runs(&kernel(15, wait.clone())), runs(&kernel(16, wait))), (true, false));
    }
    // The counter is the wave's.
    let waitcnt = Op::SWaitcnt { vmcnt: Some(0), lgkmcnt: None, expcnt: None };
    assert!(runs(&kernel(16, waitcnt)));
}

#[test]
fn a_wait_counts_the_operations_behind_a_copy() {
    // Behind the copy: a store, a load that differs between lanes, one that does not, and another copy.
    let kernel = |vmcnt, place: usize| {
        several(2, |b, p, t, copy| {
            copy(b, 0);
            let x = Value(0);
            b.store(t, x, t);
            let address = b.op(Op::BufferPtr(x), Type::Ptr(Space::Global, Scalar::U32));
            let mine = b.ptr(address, t);
            b.ptr_load(mine, U32);
            b.ptr_load(address, U32);
            copy(b, 1);
            b.void(Op::SWaitcnt { vmcnt: Some(vmcnt), lgkmcnt: None, expcnt: None });
            b.ptr_load(p[place], U32);
        })
    };
    for vmcnt in 0..6 {
        assert_eq!((runs(&kernel(vmcnt, 0)), runs(&kernel(vmcnt, 1))), (vmcnt <= 3, vmcnt == 0), "vmcnt({vmcnt})");
    }
}

#[test]
fn what_a_later_copy_overwrites_is_under_way_until_that_one_lands() {
    let kernel = |n| {
        several(1, |b, p, _, copy| {
            copy(b, 0);
            b.void(Op::AsyncMark);
            copy(b, 0);
            b.void(Op::AsyncMark);
            b.void(Op::WaitAsyncMark(n));
            b.ptr_load(p[0], U32);
        })
    };
    assert_eq!([0, 1].map(|n| runs(&kernel(n))), [true, false]);
}

#[test]
fn a_pipelined_loop_needs_the_right_distance() {
    // Two places in turn: each round starts the next round's copy and reads its own.
    let kernel = |distance| {
        several(2, |b, p, t, copy| {
            copy(b, 0);
            b.void(Op::AsyncMark);
            for round in 0..8 {
                copy(b, (round + 1) % 2);
                b.void(Op::AsyncMark);
                b.void(Op::WaitAsyncMark(distance));
                let at = b.ptr(p[round % 2], t);
                b.ptr_load(at, U32);
            }
        })
    };
    assert_eq!([0, 1, 2].map(|n| runs(&kernel(n))), [true, true, false]);
}
