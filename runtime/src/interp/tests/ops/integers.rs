//! Integers of a stated width, and `bool`.

use super::*;

#[test]
fn arithmetic_wraps() {
    for s in SIZED {
        let n = |x| number(s, x);
        let edges = int_edges(s);
        check_binary(s, BinaryOp::Add, &edges, |a, b| wrapped(s, n(a) + n(b)));
        check_binary(s, BinaryOp::Sub, &edges, |a, b| wrapped(s, n(a) - n(b)));
        // The product of two 64-bit numbers fits i128 only modulo 2^128, which is enough.
        check_binary(s, BinaryOp::Mul, &edges, |a, b| wrapped(s, n(a).wrapping_mul(n(b))));
        check_binary(s, BinaryOp::Maximum, &edges, |a, b| if n(a) >= n(b) { a } else { b });
        check_binary(s, BinaryOp::Minimum, &edges, |a, b| if n(a) <= n(b) { a } else { b });
        check_unary(s, UnaryOp::Neg, &edges, |x| wrapped(s, -n(x)));
        check_unary(s, UnaryOp::Abs, &edges, |x| wrapped(s, n(x).abs()));
    }
}

/// `(quotient, remainder)` by an operation's rounding.
pub(super) fn divided(op: BinaryOp, a: i128, b: i128) -> i128 {
    let floor = (a - a.rem_euclid(b.abs())) / b - i128::from(b < 0 && a.rem_euclid(-b) != 0);
    let exact = a % b == 0;
    let trunc = if exact || (a < 0) == (b < 0) { floor } else { floor + 1 };
    match op {
        BinaryOp::DivFloor => floor,
        BinaryOp::RemFloor => a - b * floor,
        BinaryOp::DivTrunc => trunc,
        BinaryOp::RemTrunc => a - b * trunc,
        _ => floor + i128::from(!exact),
    }
}

pub(super) const DIVISIONS: [BinaryOp; 5] =
    [BinaryOp::DivFloor, BinaryOp::RemFloor, BinaryOp::DivTrunc, BinaryOp::RemTrunc, BinaryOp::CeilDiv];

#[test]
fn division_rounds_as_named() {
    for s in SIZED {
        let mut edges = int_edges(s);
        let all = edges.clone();
        edges.retain(|x| *x != 0);
        let operands = all.iter().flat_map(|a| edges.iter().map(|b| (*a, *b))).unzip();
        for op in DIVISIONS {
            check_pairs(s, op, &operands, |a, b| wrapped(s, divided(op, number(s, a), number(s, b))));
        }
    }
    // By hand, on −7 and 2, 7 and −2, MIN and −1, −8 and 2, 7 and 2.
    let i32s = |x: &[i32]| x.iter().map(|x| u64::from(*x as u32)).collect::<Vec<_>>();
    let ty = Type::Scalar(Scalar::I32);
    let operands = [(ty, i32s(&[-7, 7, i32::MIN, -8, 7])), (ty, i32s(&[2, -2, -1, 2, 2]))];
    let results = [
        [-4, -4, i32::MIN, -4, 3],
        [1, -1, 0, 0, 1],
        [-3, -3, i32::MIN, -4, 3],
        [-1, 1, 0, 0, 1],
        [-3, -3, i32::MIN, -4, 4],
    ];
    for (op, expected) in DIVISIONS.into_iter().zip(results) {
        assert_eq!(apply(&operands, ty, |v| Op::Binary(op, v[0], v[1])), i32s(&expected), "{op}");
    }
}

#[test]
fn bits_and_shifts() {
    for s in SIZED {
        let edges = int_edges(s);
        let width = u64::from(s.bits());
        let ones = wrapped(s, -1);
        check_binary(s, BinaryOp::And, &edges, |a, b| a & b);
        check_binary(s, BinaryOp::Or, &edges, |a, b| a | b);
        check_binary(s, BinaryOp::Xor, &edges, |a, b| a ^ b);
        check_binary(s, BinaryOp::Shl, &edges, |a, b| wrapped(s, i128::from(a) << (b % width)));
        check_binary(s, BinaryOp::Shr, &edges, |a, b| wrapped(s, number(s, a) >> (b % width)));
        check_binary(s, BinaryOp::Shrui, &edges, |a, b| a >> (b % width));
        check_unary(s, UnaryOp::Not, &edges, |x| x ^ ones);
        let digits = |x: u64| (0..width).map(move |i| x >> i & 1);
        check_unary(s, UnaryOp::Ctpop, &edges, |x| digits(x).sum());
        check_unary(s, UnaryOp::Cttz, &edges, |x| digits(x).position(|d| d == 1).map_or(width, |p| p as u64));
        check_unary(s, UnaryOp::Ctlz, &edges, |x| {
            digits(x).enumerate().filter(|d| d.1 == 1).last().map_or(width, |d| width - 1 - d.0 as u64)
        });
    }
}

#[test]
fn truth_tables() {
    for (op, table) in [(BinaryOp::And, [0, 0, 0, 1]), (BinaryOp::Or, [0, 1, 1, 1]), (BinaryOp::Xor, [0, 1, 1, 0])] {
        let got = apply(&[(BOOL, vec![0, 0, 1, 1]), (BOOL, vec![0, 1, 0, 1])], BOOL, |v| Op::Binary(op, v[0], v[1]));
        assert_eq!(got, table, "{op:?}");
    }
    assert_eq!(apply(&[(BOOL, vec![0, 1])], BOOL, |v| Op::Unary(UnaryOp::Not, v[0])), [1, 0]);
}
