//! `idx`: exact, and overflow is a fault.

use super::super::super::FaultKind;
use super::integers::{DIVISIONS, divided};
use super::*;

const IDX: Type = Type::Scalar(Scalar::Idx);

fn exact(op: BinaryOp, a: i128, b: i128) -> i128 {
    match op {
        BinaryOp::Add => a + b,
        BinaryOp::Sub => a - b,
        BinaryOp::Mul => a * b,
        BinaryOp::Maximum => a.max(b),
        BinaryOp::Minimum => a.min(b),
        op => divided(op, a, b),
    }
}

fn fits(x: i128) -> bool {
    i64::try_from(x).is_ok()
}

#[test]
fn arithmetic_is_exact_or_a_fault() {
    let arithmetic = [BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::Maximum, BinaryOp::Minimum];
    for op in arithmetic.into_iter().chain(DIVISIONS) {
        let (mut a, mut b) = pairs(&int_edges(Scalar::Idx));
        let mut wrong = vec![];
        let mut i = 0;
        while i < a.len() {
            let (x, y) = (number(Scalar::Idx, a[i]), number(Scalar::Idx, b[i]));
            if y == 0 && DIVISIONS.contains(&op) || !fits(exact(op, x, y)) {
                wrong.push((a.swap_remove(i), b.swap_remove(i)));
            } else {
                i += 1;
            }
        }
        check_pairs(Scalar::Idx, op, &(a, b), |a, b| {
            wrapped(Scalar::Idx, exact(op, number(Scalar::Idx, a), number(Scalar::Idx, b)))
        });
        // A few of those that are wrong, the first and last among them.
        let n = wrong.len();
        for (a, b) in wrong.into_iter().enumerate().filter(|(i, _)| i % 17 == 0 || i + 1 == n).map(|w| w.1) {
            let kind = apply_fault(&[(IDX, a), (IDX, b)], IDX, |v| Op::Binary(op, v[0], v[1]));
            let expected =
                if b == 0 && DIVISIONS.contains(&op) { FaultKind::DivisionByZero } else { FaultKind::IndexOverflow };
            assert_eq!(kind, Some(expected), "{op} {a:#x} {b:#x}");
        }
    }
    for op in [UnaryOp::Neg, UnaryOp::Abs] {
        let mut edges = int_edges(Scalar::Idx);
        edges.retain(|x| *x != 1 << 63);
        check_unary(Scalar::Idx, op, &edges, |x| {
            let n = number(Scalar::Idx, x);
            wrapped(Scalar::Idx, if op == UnaryOp::Neg { -n } else { n.abs() })
        });
        let kind = apply_fault(&[(IDX, 1 << 63)], IDX, |v| Op::Unary(op, v[0]));
        assert_eq!(kind, Some(FaultKind::IndexOverflow));
    }
}

#[test]
fn only_active_lanes_overflow() {
    // 2^62 + 2^62 in lanes that do not take the branch.
    let kernel = |limit: u32| {
        let mut b = Build::new(64, 1, 80);
        let (t, n) = (b.tid(), b.u32(limit));
        let (big, small) = (b.constant(1 << 62, IDX), b.constant(1, IDX));
        let last = b.u32(70);
        let is = b.compare(Predicate::Eq, t, last);
        let x = b.op(Op::Select { condition: is, on_true: big, on_false: small }, IDX);
        let takes = b.lt(t, n);
        let mut line = 0;
        b.if_(takes, |b| {
            b.add(x, x);
            line = b.line();
        });
        (b.finish(), line)
    };
    run(&kernel(70).0, &[], &Options::default()).unwrap();
    let (wrong, line) = kernel(71);
    assert_eq!(
        message(&wrong),
        format!("k.rs:{line}:1: index overflow (block (0,0,0), thread (70,0,0), wave 1, lane 6)")
    );
}

#[test]
fn conversions_fit_or_are_faults() {
    for s in SIZED {
        let ty = Type::Scalar(s);
        for (from, to, edges) in [(ty, IDX, int_edges(s)), (IDX, ty, conversion_edges(s))] {
            let fits = |x: &u64| {
                wrapped(to.scalar(), number(from.scalar(), *x)) as i128 == {
                    let n = number(from.scalar(), *x);
                    let target = number(to.scalar(), wrapped(to.scalar(), n));
                    if target == n { wrapped(to.scalar(), n) as i128 } else { -1 }
                }
            };
            let (good, bad): (Vec<u64>, Vec<u64>) = edges.into_iter().partition(fits);
            let got = apply(&[(from, good.clone())], to, |v| Op::Convert(v[0]));
            let want: Vec<u64> = good.iter().map(|x| wrapped(to.scalar(), number(from.scalar(), *x))).collect();
            check(to.scalar(), &got, &want, |i| format!("{from} {:#x} to {to}", good[i]));
            for x in bad {
                let kind = apply_fault(&[(from, x)], to, |v| Op::Convert(v[0]));
                assert_eq!(kind, Some(FaultKind::IndexOverflow), "{from} {x:#x} to {to}");
            }
        }
    }
}

/// Indices around the limits of a type.
fn conversion_edges(s: Scalar) -> Vec<u64> {
    let (min, max) = if s.is_signed() {
        (-(1i128 << (s.bits() - 1)), (1i128 << (s.bits() - 1)) - 1)
    } else {
        (0, (1i128 << s.bits()) - 1)
    };
    let all = [min - 1, min, min + 1, -1, 0, 1, max - 1, max, max + 1];
    all.into_iter().filter(|x| fits(*x)).map(|x| wrapped(Scalar::Idx, x)).collect()
}

#[test]
fn floats_to_indices_fit_or_are_faults() {
    for s in FLOATS {
        let fits = |x: &u64| (-2f64.powi(63)..2f64.powi(63)).contains(&value(s, *x));
        let (good, bad): (Vec<u64>, Vec<u64>) = float_edges(s).into_iter().partition(fits);
        let got = apply(&[(Type::Scalar(s), good.clone())], IDX, |v| Op::Convert(v[0]));
        let want: Vec<u64> = good.iter().map(|x| wrapped(Scalar::Idx, value(s, *x) as i128)).collect();
        check(Scalar::Idx, &got, &want, |i| format!("{s} {:#x}", good[i]));
        for x in bad {
            let kind = apply_fault(&[(Type::Scalar(s), x)], IDX, |v| Op::Convert(v[0]));
            assert_eq!(kind, Some(FaultKind::IndexOverflow), "{s} {x:#x}");
        }
    }
}
