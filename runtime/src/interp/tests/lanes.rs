//! Operations across lanes, at both wave widths.

use lathe_dsl::ir::{ButterflyOp, ShuffleOp};

use super::super::FaultKind;
use super::ops::SIZED;
use super::*;

/// A kernel of one workgroup whose thread `t` stores what `f` makes of `value(t)`; gives the stored elements.
fn per_lane(
    wave: u32,
    threads: u32,
    ty: Type,
    value: impl Fn(u32) -> u64,
    result: Type,
    f: impl FnOnce(&mut Build, Value, Value) -> Value,
) -> Vec<u64> {
    let (kernel, input, output) = lane_kernel(wave, threads, ty, value, result, f);
    let report = run(&kernel, &[ArgValue::Buffer(&input), ArgValue::Buffer(&output)], &Options::default()).unwrap();
    assert_eq!(report.findings, []);
    let w = result.scalar().bytes() as usize;
    output.to_vec().chunks_exact(w).map(|c| c.iter().rev().fold(0, |v, b| v << 8 | u64::from(*b))).collect()
}

fn lane_kernel(
    wave: u32,
    threads: u32,
    ty: Type,
    value: impl Fn(u32) -> u64,
    result: Type,
    f: impl FnOnce(&mut Build, Value, Value) -> Value,
) -> (Kernel, GlobalBuffer, GlobalBuffer) {
    let mut b = Build::new(wave, 1, threads);
    let x = b.buffer("x", ty.scalar(), threads.into(), Access::Read);
    let y = b.buffer("y", result.scalar(), threads.into(), Access::Write);
    let t = b.tid();
    let v = b.load(x, t, ty);
    let r = f(&mut b, t, v);
    b.store(r, y, t);
    let w = ty.scalar().bytes() as usize;
    let bytes: Vec<u8> = (0..threads).flat_map(|t| value(t).to_le_bytes()[..w].to_vec()).collect();
    (b.finish(), GlobalBuffer::from_bytes(&bytes), GlobalBuffer::zeroed((threads * result.scalar().bytes()) as usize))
}

/// The fault of a kernel with a `u32` a lane.
fn lane_fault(wave: u32, threads: u32, f: impl FnOnce(&mut Build, Value, Value) -> Value) -> Fault {
    let (kernel, input, output) = lane_kernel(wave, threads, U32, u64::from, U32, f);
    match run(&kernel, &[ArgValue::Buffer(&input), ArgValue::Buffer(&output)], &Options::default()) {
        Err(Error::Fault(fault)) => *fault,
        other => panic!("a fault is due, got {other:?}"),
    }
}

fn shuffle(b: &mut Build, op: ShuffleOp, value: Value, amount: Value, width: u32) -> Value {
    let ty = b.kernel.values[value.index()];
    b.op(Op::LaneShuffle { op, value, amount, width }, ty)
}

#[test]
fn shuffles_exchange_within_their_groups() {
    let plain = SIZED.into_iter().chain([Scalar::F16, Scalar::Bf16, Scalar::F32, Scalar::F64]);
    for (i, s) in plain.enumerate() {
        let value = |t: u32| (u64::from(t) * 0x0101_0101_0101_0101 + 0x40) & (u64::MAX >> (64 - s.bits()));
        for wave in [32, 64] {
            // Two full waves; widths in turn.
            for width in [1, 2, 4, 8, 16, 32, wave].into_iter().skip(i % 3).step_by(3).chain([wave]) {
                for op in ShuffleOp::ALL.iter().copied() {
                    // Amounts that differ between lanes, some past the group.
                    let amount = |t: u32| if t % 5 == 4 { u32::MAX - t } else { t * 7 % 41 };
                    let ty = Type::Scalar(s);
                    let got = per_lane(wave, 2 * wave, ty, value, ty, |b, t, v| {
                        let n = |b: &mut Build, n| b.u32(n);
                        let (five, seven, m, four, max) = (n(b, 5), n(b, 7), n(b, 41), n(b, 4), n(b, u32::MAX));
                        let r = b.binary(BinaryOp::RemFloor, t, five);
                        let far = b.compare(Predicate::Eq, r, four);
                        let huge = b.binary(BinaryOp::Sub, max, t);
                        let near = b.mul(t, seven);
                        let near = b.binary(BinaryOp::RemFloor, near, m);
                        let amount = b.op(Op::Select { condition: far, on_true: huge, on_false: near }, U32);
                        shuffle(b, op, v, amount, width)
                    });
                    let want: Vec<u64> = (0..2 * wave)
                        .map(|t| {
                            let (l, n) = (i64::from(t % width), i64::from(amount(t)));
                            let source = match op {
                                ShuffleOp::Xor => l ^ (n % i64::from(width)),
                                ShuffleOp::Up => l - n,
                                ShuffleOp::Down => l + n,
                                ShuffleOp::Idx => n % i64::from(width),
                            };
                            let source = if (0..i64::from(width)).contains(&source) { source } else { l };
                            value(t - t % width + source as u32)
                        })
                        .collect();
                    assert_eq!(got, want, "{op} {s} width {width} wave {wave}");
                }
            }
        }
    }
}

#[test]
fn a_shuffle_must_not_read_an_inactive_lane() {
    // Lane 9 stays out of the branch; lane 8 reads it.
    let fault = lane_fault(32, 32, |b, t, v| {
        let (nine, one) = (b.u32(9), b.u32(1));
        let takes = b.compare(Predicate::Ne, t, nine);
        let r = b.if_else(takes, &[U32], |b| vec![shuffle(b, ShuffleOp::Xor, v, one, 32)], |_| vec![v]);
        r[0]
    });
    assert_eq!((fault.kind, fault.site.lane), (FaultKind::InactiveLane { lane: 9 }, 8));
    // In a partial wave the lanes without a thread are inactive.
    let fault = lane_fault(64, 70, |b, _, v| {
        let one = b.u32(1);
        shuffle(b, ShuffleOp::Down, v, one, 64)
    });
    assert!(fault.to_string().contains("value of lane 6, which is not active (block"), "{fault}");
    assert_eq!((fault.kind, fault.site.thread), (FaultKind::InactiveLane { lane: 6 }, [69, 0, 0]));
    // Nobody reads them here.
    per_lane(64, 70, U32, u64::from, U32, |b, _, v| {
        let one = b.u32(1);
        shuffle(b, ShuffleOp::Up, v, one, 64)
    });
}

#[test]
fn butterflies_combine_with_the_partner() {
    for s in Scalar::ALL.iter().copied() {
        for op in ButterflyOp::ALL.iter().copied().filter(|op| op.def().on.contains(s)) {
            for (wave, offset, width) in [(32, 1, 2), (32, 16, 32), (64, 8, 16), (64, 32, 64)] {
                // Small numbers in memory, converted to the type.
                let number = |t: u32| u64::from(t * 13 % 50);
                let got = per_lane(wave, 128, U32, number, U32, |b, _, v| {
                    let x = if s == Scalar::Bool {
                        let c = b.u32(25);
                        b.lt(v, c)
                    } else {
                        b.op(Op::Convert(v), Type::Scalar(s))
                    };
                    let r = b.op(Op::Butterfly { op, value: x, offset, width }, Type::Scalar(s));
                    b.op(Op::Convert(r), U32)
                });
                let want: Vec<u64> = (0..128)
                    .map(|t| {
                        let of = |t| if s == Scalar::Bool { u64::from(number(t) < 25) } else { number(t) };
                        let (a, b) = (of(t), of(t ^ offset));
                        match op {
                            ButterflyOp::Add => a + b,
                            ButterflyOp::Maximum => a.max(b),
                            ButterflyOp::Minimum => a.min(b),
                            ButterflyOp::And => a & b,
                            ButterflyOp::Or => a | b,
                            ButterflyOp::Xor => a ^ b,
                        }
                    })
                    .collect();
                assert_eq!(got, want, "{op} {s} {offset} {width}");
            }
        }
    }
}

#[test]
fn a_butterfly_needs_its_whole_group() {
    let butterfly =
        |b: &mut Build, value, offset, width| b.op(Op::Butterfly { op: ButterflyOp::Add, value, offset, width }, U32);
    // Lane 13 is missing; its partner is not, but it is in the group of 8.
    let missing = |width| {
        move |b: &mut Build, t, v| {
            let out = b.u32(13);
            let takes = b.compare(Predicate::Ne, t, out);
            b.if_else(takes, &[U32], |b| vec![butterfly(b, v, 1, width)], |_| vec![v])[0]
        }
    };
    let fault = lane_fault(64, 64, missing(8));
    assert_eq!((fault.kind, fault.site.lane), (FaultKind::InactiveLane { lane: 13 }, 8));
    // Groups without any active lane do not count.
    let got = per_lane(64, 64, U32, u64::from, U32, |b, t, v| {
        let half = b.u32(32);
        let low = b.lt(t, half);
        b.if_else(low, &[U32], |b| vec![butterfly(b, v, 16, 32)], |_| vec![v])[0]
    });
    assert_eq!(got, (0..64).map(|t| if t < 32 { t + (t ^ 16) } else { t }).collect::<Vec<u64>>());
}

#[test]
fn ballots_count_active_lanes() {
    for wave in [32, 64u32] {
        let threads = 2 * wave - 5;
        let got = per_lane(
            wave,
            threads,
            U32,
            |t| u64::from(t % 3),
            U64,
            |b, t, v| {
                let (zero, one, four) = (b.u32(0), b.u32(1), b.u32(4));
                let condition = b.compare(Predicate::Eq, v, one);
                let late = b.compare(Predicate::Ge, t, four);
                let none = b.constant(0, U64);
                let _ = zero;
                b.if_else(late, &[U64], |b| vec![b.op(Op::Ballot(condition), U64)], |_| vec![none])[0]
            },
        );
        for (t, g) in got.iter().enumerate() {
            let t = t as u32;
            let first = t / wave * wave;
            let bit = |l: u32| u64::from(first + l < threads && first + l >= 4 && (first + l) % 3 == 1) << l;
            let want = if t < 4 { 0 } else { (0..wave).map(bit).sum() };
            assert_eq!(*g, want, "lane {t} of waves of {wave}");
        }
    }
}

#[test]
fn reads_of_one_lane_reach_all() {
    for s in [Scalar::I8, Scalar::F16, Scalar::U32, Scalar::F64] {
        let ty = Type::Scalar(s);
        let value = |t: u32| u64::from(t + 3);
        for wave in [32, 64u32] {
            let got = per_lane(wave, 96, ty, value, ty, |b, t, v| {
                // Lanes 0 to 4 of the first wave stay out.
                let five = b.u32(5);
                let late = b.compare(Predicate::Ge, t, five);
                b.if_else(late, &[ty], |b| vec![b.op(Op::ReadFirstLane(v), ty)], |_| vec![v])[0]
            });
            let first = |t: u32| if t < wave { 5 } else { t / wave * wave };
            assert_eq!(got, (0..96).map(|t| value(if t < 5 { t } else { first(t) })).collect::<Vec<_>>(), "{s} {wave}");
            // Lane 7, named past the wave's width.
            let got = per_lane(wave, 96, ty, value, ty, |b, _, v| {
                let lane = b.u32(7 + 3 * wave);
                b.op(Op::ReadLane(v, lane), ty)
            });
            assert_eq!(got, (0..96).map(|t| value(t / wave * wave + 7)).collect::<Vec<_>>(), "{s} {wave}");
        }
    }
}

#[test]
fn one_lane_is_named_by_all_and_active() {
    let fault = lane_fault(64, 64, |b, t, v| b.op(Op::ReadLane(v, t), U32));
    assert_eq!((fault.kind.to_string(), fault.site.lane), ("lane to read differs between lanes of the wave".into(), 1));
    let fault = lane_fault(64, 10, |b, _, v| {
        let ten = b.u32(10);
        b.op(Op::ReadLane(v, ten), U32)
    });
    assert_eq!((fault.kind, fault.site.lane), (FaultKind::InactiveLane { lane: 10 }, 0));
}

#[test]
fn transposition_swaps_rows_and_columns() {
    for wave in [32, 64u32] {
        // Element (r, c) of group g holds g·64 + 8·r + c.
        let word = |t: u32| {
            let base = u64::from(t / 32 * 64 + t % 32 / 4 * 8 + t % 4 * 2);
            base | (base + 1) << 16
        };
        let got = per_lane(wave, 128, U32, word, U32, |b, _, v| b.op(Op::Transpose8x8(v), U32));
        let want: Vec<u64> = (0..128u32)
            .map(|t| {
                let (base, column, row) = (u64::from(t / 32 * 64), u64::from(t % 32 / 4), u64::from(t % 4 * 2));
                (base + 8 * row + column) | (base + 8 * (row + 1) + column) << 16
            })
            .collect();
        assert_eq!(got, want);
    }
    let fault = lane_fault(64, 60, |b, _, v| b.op(Op::Transpose8x8(v), U32));
    assert_eq!((fault.kind, fault.site.lane), (FaultKind::InactiveLane { lane: 60 }, 32));
}
