//! Vectors, selection, bit casts, constants, indices.

use super::*;

#[test]
fn vectors_compute_element_by_element() {
    let ty = Type::Vector(Scalar::I64, 3);
    let a: Vec<u64> = (0..3 * 70).map(|i| i * 0x1234_5678_9ABC).collect();
    let b: Vec<u64> = (0..3 * 70).map(|i| u64::MAX - i * 77).collect();
    let sum = apply(&[(ty, a.clone()), (ty, b.clone())], ty, |v| Op::Binary(BinaryOp::Add, v[0], v[1]));
    assert_eq!(sum, a.iter().zip(&b).map(|(a, b)| a.wrapping_add(*b)).collect::<Vec<_>>());
    let mask = Type::Vector(Scalar::Bool, 3);
    let lt = apply(&[(ty, a.clone()), (ty, b.clone())], mask, |v| Op::Compare(Predicate::Lt, v[0], v[1]));
    assert_eq!(lt, a.iter().zip(&b).map(|(a, b)| u64::from((*a as i64) < (*b as i64))).collect::<Vec<_>>());
}

#[test]
fn select_keeps_nan_bits() {
    let condition: Vec<u64> = vec![1, 0, 1, 0];
    let (a, b) = (vec![0x7FA0_0001, 1, 2, 3], vec![5, 0xFF80_0001, 7, 0x8000_0000]);
    let got = apply(&[(BOOL, condition.clone()), (F32, a), (F32, b)], F32, |v| Op::Select {
        condition: v[0],
        on_true: v[1],
        on_false: v[2],
    });
    assert_eq!(got, [0x7FA0_0001, 0xFF80_0001, 2, 0x8000_0000]);
    let ty = Type::Vector(Scalar::U64, 2);
    let got = apply(&[(BOOL, condition), (ty, (0..8).collect()), (ty, (100..108).collect())], ty, |v| Op::Select {
        condition: v[0],
        on_true: v[1],
        on_false: v[2],
    });
    assert_eq!(got, [0, 1, 102, 103, 4, 5, 106, 107]);
}

#[test]
fn bitcast_puts_element_0_lowest() {
    let types = [
        (U64, 1u32),
        (Type::Vector(Scalar::U32, 2), 2),
        (Type::Vector(Scalar::F32, 2), 2),
        (Type::Vector(Scalar::U16, 4), 4),
        (Type::Vector(Scalar::Bf16, 4), 4),
        (Type::Scalar(Scalar::I64), 1),
    ];
    let whole: Vec<u64> = (0..67u64).map(|i| 0x0123_4567_89AB_CDEFu64.rotate_left(i as u32) ^ i).collect();
    let cut = |n: u32| {
        let bits = 64 / n;
        whole.iter().flat_map(|x| (0..n).map(move |i| x >> (i * bits) & (u64::MAX >> (64 - bits)))).collect::<Vec<_>>()
    };
    for (from, n) in types {
        for (to, m) in types {
            let got = apply(&[(from, cut(n))], to, |v| Op::Bitcast(v[0]));
            assert_eq!(got, cut(m), "{from} to {to}");
        }
    }
    // 32 bits: a bf16 pair in a word.
    let pair = apply(&[(Type::Vector(Scalar::Bf16, 2), vec![0x3F80, 0xC000])], U32, |v| Op::Bitcast(v[0]));
    assert_eq!(pair, [0xC000_3F80]);
    let halves = apply(&[(F32, vec![0x7FA0_1234])], Type::Vector(Scalar::U16, 2), |v| Op::Bitcast(v[0]));
    assert_eq!(halves, [0x1234, 0x7FA0]);
    let words =
        apply(&[(Type::Vector(Scalar::U16, 4), vec![1, 2, 3, 4])], Type::Vector(Scalar::U32, 2), |v| Op::Bitcast(v[0]));
    assert_eq!(words, [0x0002_0001, 0x0004_0003]);
}

#[test]
fn vector_from_and_extract() {
    for s in [Scalar::Bf16, Scalar::F32, Scalar::U64] {
        let ty = Type::Scalar(s);
        let x: [Vec<u64>; 3] = [0, 1, 2].map(|k| (0..65).map(|i| i * 3 + k).collect());
        let operands: Vec<_> = x.iter().map(|x| (ty, x.clone())).collect();
        let v = apply(&operands, Type::Vector(s, 3), |v| Op::VectorFrom(v.to_vec()));
        assert_eq!(v, (0..195).collect::<Vec<u64>>());
        for (k, x) in x.iter().enumerate() {
            let got = apply(&[(Type::Vector(s, 3), v.clone())], ty, |v| Op::Extract(v[0], k as u32));
            assert_eq!(got, *x);
        }
    }
}

#[test]
fn constants_fill_every_element() {
    for (ty, bits) in [(Type::Vector(Scalar::F32, 4), 0x7FA0_0000), (Type::Vector(Scalar::U64, 2), u64::MAX - 5)] {
        let got = apply(&[(U32, vec![0; 33])], ty, |_| Op::Const(Bits(bits)));
        assert_eq!(got, vec![bits; 33 * ty.lanes() as usize]);
    }
}

#[test]
fn ids_run_x_fastest_over_partial_waves() {
    let (grid, block) = ([2, 3, 2], [5, 3, 7]);
    for wave in [32, 64] {
        let mut b = Build::new(wave, 1, 1).shape(grid, block);
        let out = b.buffer("out", Scalar::U32, 12 * 105 * 6, Access::Write);
        let axes = [Axis::X, Axis::Y, Axis::Z];
        let ids: Vec<Value> = axes
            .map(|a| b.op(Op::ThreadId(a), U32))
            .into_iter()
            .chain(axes.map(|a| b.op(Op::BlockId(a), U32)))
            .collect();
        let mut at = b.u32(0);
        for (i, extent) in [5, 3, 7, 2, 3, 2].into_iter().enumerate().rev() {
            let e = b.u32(extent);
            at = b.mul(at, e);
            at = b.add(at, ids[i]);
        }
        let six = b.u32(6);
        let at = b.mul(at, six);
        let v = b.op(Op::VectorFrom(ids), Type::Vector(Scalar::U32, 6));
        b.store(v, out, at);
        let mut expected = vec![];
        for i in 0..12 * 105 {
            let (t, g) = (i % 105, i / 105);
            expected.extend([t % 5, t / 5 % 3, t / 15, g % 2, g / 2 % 3, g / 6]);
        }
        assert_eq!(run_u32(&b.finish()), expected);
    }
}

#[test]
fn a_vector_of_conditions_selects_element_by_element() {
    for s in [Scalar::U8, Scalar::F16, Scalar::I32, Scalar::F64] {
        let (ty, mask) = (Type::Vector(s, 3), Type::Vector(Scalar::Bool, 3));
        let condition: Vec<u64> = (0..9).map(|i| u64::from(i % 2 == 0 || i == 7)).collect();
        let (a, b): (Vec<u64>, Vec<u64>) = ((1..10).collect(), (101..110).collect());
        let got = apply(&[(mask, condition.clone()), (ty, a.clone()), (ty, b.clone())], ty, |v| Op::Select {
            condition: v[0],
            on_true: v[1],
            on_false: v[2],
        });
        let want: Vec<u64> = (0..9).map(|i| if condition[i] == 1 { a[i] } else { b[i] }).collect();
        assert_eq!(got, want);
    }
}

#[test]
fn bytes_and_halves_join_and_split() {
    let whole: Vec<u64> = (0..40u64).map(|i| 0xF1E2_D3C4_B5A6_9788u64.rotate_left(i as u32 * 3)).collect();
    let cut = |bits: u32| {
        let n = 64 / bits;
        whole.iter().flat_map(|x| (0..n).map(move |i| x >> (i * bits) & (u64::MAX >> (64 - bits)))).collect::<Vec<_>>()
    };
    let of = |s: Scalar| if s.bits() == 64 { Type::Scalar(s) } else { Type::Vector(s, 64 / s.bits()) };
    for from in PLAIN {
        for to in PLAIN {
            let got = apply(&[(of(from), cut(from.bits()))], of(to), |v| Op::Bitcast(v[0]));
            assert_eq!(got, cut(to.bits()), "{from} to {to}");
        }
    }
    // Vectors whose length is no power of two.
    let bytes = (Type::Vector(Scalar::I8, 6), vec![1, 2, 3, 4, 5, 255]);
    assert_eq!(apply(&[bytes], Type::Vector(Scalar::F16, 3), |v| Op::Bitcast(v[0])), [0x0201, 0x0403, 0xFF05]);
}

#[test]
fn shuffles_pick_from_both_vectors() {
    for s in [Scalar::I8, Scalar::U64, Scalar::Bool, Scalar::F32] {
        let ty = Type::Vector(s, 3);
        let bit = |x: u64| if s == Scalar::Bool { x % 2 } else { x };
        let (a, b): (Vec<u64>, Vec<u64>) =
            ((0..9).map(bit).collect(), (50..59).map(|x| bit(x * x / 3 % 200)).collect());
        let mask = vec![5, 0, 0, 3, 2];
        let got = apply(&[(ty, a.clone()), (ty, b.clone())], Type::Vector(s, 5), |v| Op::Shuffle {
            a: v[0],
            b: v[1],
            mask: mask.clone(),
        });
        let want: Vec<u64> = (0..3).flat_map(|c| [b[3 * c + 2], a[3 * c], a[3 * c], b[3 * c], a[3 * c + 2]]).collect();
        assert_eq!(got, want, "{s}");
    }
}

#[test]
fn elements_are_named_at_run_time() {
    for s in [Scalar::U8, Scalar::F64, Scalar::Bool] {
        let bit = |x: u64| if s == Scalar::Bool { x / 2 % 2 } else { x };
        let v: Vec<u64> = (0..5 * 67).map(|x| bit(x % 251)).collect();
        let index: Vec<u64> = (0..67).map(|i| i * 3 % 5).collect();
        let got = apply(&[(Type::Vector(s, 5), v.clone()), (U32, index.clone())], Type::Scalar(s), |o| {
            Op::ExtractAt(o[0], o[1])
        });
        let want: Vec<u64> = index.iter().enumerate().map(|(c, i)| v[5 * c + *i as usize]).collect();
        assert_eq!(got, want);
    }
}

#[test]
fn opaque_and_expect_change_nothing() {
    let x = vec![0x7FA0_0001, 5, u64::from(u32::MAX)];
    assert_eq!(apply(&[(F32, x.clone())], F32, |v| Op::Opaque(v[0])), x);
    for likely in [true, false] {
        assert_eq!(apply(&[(BOOL, vec![0, 1])], BOOL, |v| Op::Expect { condition: v[0], likely }), [0, 1]);
    }
}

#[test]
fn bytes_are_permuted() {
    // By hand: b is bytes 0 to 3, a bytes 4 to 7.
    let (a, b) = (0xDDCC_BBAA, 0x4433_2211);
    let cases = [
        (0x0706_0504, 0xDDCC_BBAA),
        (0x0302_0100, 0x4433_2211),
        (0x0005_0206, 0x11BB_33CC),
        // Only the low three bits of each selector count.
        (0xFFF8_0DFB, 0xDD11_BB44),
    ];
    let operands = [
        (U32, vec![a; cases.len()]),
        (U32, vec![b; cases.len()]),
        (U32, cases.iter().map(|c| c.0).collect::<Vec<u64>>()),
    ];
    let got = apply(&operands, U32, |v| Op::PermB32(v[0], v[1], v[2]));
    assert_eq!(got, cases.map(|c| c.1));
}

#[test]
fn lanes_are_numbered_within_their_wave() {
    for wave in [32, 64u32] {
        let mut b = Build::new(wave, 2, 1).shape([2, 1, 1], [10, 3, 5]);
        let out = b.buffer("out", Scalar::U32, 300, Access::Write);
        let ids = [Axis::Z, Axis::Y, Axis::X].map(|a| b.op(Op::ThreadId(a), U32));
        let (lane, g) = (b.op(Op::LaneId, U32), b.bid());
        let mut at = g;
        for (id, extent) in ids.into_iter().zip([5, 3, 10]) {
            let e = b.u32(extent);
            at = b.mul(at, e);
            at = b.add(at, id);
        }
        b.store(lane, out, at);
        assert_eq!(run_u32(&b.finish()), (0..300).map(|i| i % 150 % wave).collect::<Vec<_>>());
    }
}
