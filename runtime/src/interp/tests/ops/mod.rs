//! Every operation on every type it is defined on, over edge cases, at both wave widths, against expectations computed
//! another way.

mod convert;
mod floats;
mod indices;
mod integers;
mod math;
mod shape;

use lathe_dsl::ir::{ReduceOp, UnaryOp};

use super::*;

pub(super) const SIZED: [Scalar; 8] =
    [Scalar::I8, Scalar::U8, Scalar::I16, Scalar::U16, Scalar::I32, Scalar::U32, Scalar::I64, Scalar::U64];

const FLOATS: [Scalar; 4] = [Scalar::F16, Scalar::Bf16, Scalar::F32, Scalar::F64];

const PLAIN: [Scalar; 12] = [
    Scalar::I8,
    Scalar::U8,
    Scalar::I16,
    Scalar::U16,
    Scalar::I32,
    Scalar::U32,
    Scalar::I64,
    Scalar::U64,
    Scalar::F16,
    Scalar::Bf16,
    Scalar::F32,
    Scalar::F64,
];

/// Applies `op` to one lane a case. `operands[i]` gives operand `i`'s type and its elements, case after case; so does
/// the result. `bool` travels through memory as `u32`, `idx` as `i64`.
fn apply(operands: &[(Type, Vec<u64>)], result: Type, op: impl Fn(&[Value]) -> Op) -> Vec<u64> {
    let results = [32, 64].map(|wave| {
        let (report, out) = apply_with(wave, operands, result, &op);
        assert_eq!(report.unwrap().findings, []);
        out
    });
    assert_eq!(results[0], results[1]);
    results.into_iter().next().unwrap()
}

/// The fault that `op` gives on one case.
fn apply_fault(operands: &[(Type, u64)], result: Type, op: impl Fn(&[Value]) -> Op) -> Option<super::super::FaultKind> {
    let operands: Vec<(Type, Vec<u64>)> = operands.iter().map(|(t, x)| (*t, vec![*x; t.lanes() as usize])).collect();
    match apply_with(32, &operands, result, &op).0 {
        Ok(_) => None,
        Err(Error::Fault(fault)) => Some(fault.kind),
        Err(other) => panic!("{other}"),
    }
}

fn stored(ty: Type) -> Type {
    match ty.scalar() {
        Scalar::Bool => ty.with_scalar(Scalar::U32),
        Scalar::Idx => ty.with_scalar(Scalar::I64),
        _ => ty,
    }
}

fn apply_with(
    wave: u32,
    operands: &[(Type, Vec<u64>)],
    result: Type,
    op: impl Fn(&[Value]) -> Op,
) -> (Result<Report, Error>, Vec<u64>) {
    let cases = operands[0].1.len() / operands[0].0.lanes() as usize;
    let block = cases.min(256);
    let grid = cases.div_ceil(block);
    let mut b = Build::new(wave, grid as u32, block as u32);
    // The last workgroup's threads without a case repeat the last one.
    let elements = |ty: Type| grid * block * ty.lanes() as usize;
    let buffers: Vec<Value> = operands
        .iter()
        .map(|(ty, _)| b.buffer("in", stored(*ty).scalar(), elements(*ty) as u64, Access::Read))
        .collect();
    let out = b.buffer("out", stored(result).scalar(), elements(result) as u64, Access::Write);
    let id = b.global_id();
    let mut loaded = vec![];
    for ((ty, _), buffer) in operands.iter().zip(&buffers) {
        let n = b.u32(ty.lanes());
        let at = b.mul(id, n);
        let x = b.load(*buffer, at, stored(*ty));
        loaded.push(match ty.scalar() {
            Scalar::Bool => {
                let zero = b.constant(0, stored(*ty));
                b.compare(Predicate::Ne, x, zero)
            }
            Scalar::Idx => b.op(Op::Convert(x), *ty),
            _ => x,
        });
    }
    let mut r = b.op(op(&loaded), result);
    if stored(result) != result {
        r = b.op(Op::Convert(r), stored(result));
    }
    let n = b.u32(result.lanes());
    let at = b.mul(id, n);
    b.store(r, out, at);
    let kernel = b.finish();
    let inputs: Vec<GlobalBuffer> = operands
        .iter()
        .map(|(ty, e)| {
            let (w, n) = (stored(*ty).scalar().bytes() as usize, ty.lanes() as usize);
            let padded = e.iter().chain(e[e.len() - n..].iter().cycle()).take(elements(*ty));
            GlobalBuffer::from_bytes(&padded.flat_map(|e| e.to_le_bytes()[..w].to_vec()).collect::<Vec<_>>())
        })
        .collect();
    let w = stored(result).scalar().bytes() as usize;
    let output = GlobalBuffer::uninit(elements(result) * w);
    let args: Vec<ArgValue<'_>> = inputs.iter().chain([&output]).map(ArgValue::Buffer).collect();
    let report = run(&kernel, &args, &Options::default());
    let mut out: Vec<u64> =
        output.to_vec().chunks_exact(w).map(|c| c.iter().rev().fold(0, |v, b| v << 8 | u64::from(*b))).collect();
    out.truncate(cases * result.lanes() as usize);
    (report, out)
}

fn pairs(edges: &[u64]) -> (Vec<u64>, Vec<u64>) {
    edges.iter().flat_map(|a| edges.iter().map(|b| (*a, *b))).unzip()
}

/// Edge cases of a type.
fn edges(s: Scalar) -> Vec<u64> {
    match s {
        Scalar::Bool => vec![0, 1],
        _ if s.is_float() => float_edges(s),
        _ => int_edges(s),
    }
}

fn int_edges(s: Scalar) -> Vec<u64> {
    let mask = u64::MAX >> (64 - s.bits());
    let top = 1u64 << (s.bits() - 1);
    let mut all: Vec<u64> =
        [0, 1, 2, 3, 7, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, top - 1, top, top + 1, 0x5555_5555_5555_5555, 12_345]
            .into_iter()
            .chain([1u64, 2, 7, 100].map(u64::wrapping_neg))
            .map(|x| x & mask)
            .collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// ±0, ±∞, NaN, subnormals, the smallest and largest normals, 1 and its neighbours, halves, and odd numbers.
fn float_edges(s: Scalar) -> Vec<u64> {
    let (fraction, bias) = layout(s);
    let sign = 1u64 << (s.bits() - 1);
    let infinity = (2 * bias as u64 + 1) << fraction;
    let one = (bias as u64) << fraction;
    let half_way = 1u64 << (fraction - 1);
    let positive = [
        0,
        1,
        2,
        (1 << fraction) - 1,
        1 << fraction,
        (1 << fraction) + 1,
        one,
        one - 1,
        one + 1,
        one | half_way,
        one - (1 << fraction),
        // 2.5 and 3, and a number that fills all bits.
        (one + (1 << fraction)) | (half_way >> 1),
        (one + (1 << fraction)) | half_way,
        one | (0x5_5555_5555_5555 & (half_way - 1)),
        // The first number without a fraction, and half of it.
        (bias as u64 + u64::from(fraction)) << fraction | 1,
        (bias as u64 + u64::from(fraction) - 1) << fraction | 1,
        infinity - 1,
        infinity - (1 << fraction),
        infinity,
    ];
    positive.into_iter().flat_map(|x| [x, x | sign]).chain([infinity | half_way]).collect()
}

/// Bits of the fraction, and the exponent's bias.
fn layout(s: Scalar) -> (u32, i32) {
    match s {
        Scalar::F16 => (10, 15),
        Scalar::Bf16 => (7, 127),
        Scalar::F32 => (23, 127),
        _ => (52, 1023),
    }
}

/// The number that an integer's bits stand for.
fn number(s: Scalar, bits: u64) -> i128 {
    if s.is_signed() && bits >> (s.bits() - 1) == 1 { i128::from(bits) - (1i128 << s.bits()) } else { i128::from(bits) }
}

fn wrapped(s: Scalar, x: i128) -> u64 {
    x.rem_euclid(1i128 << s.bits()) as u64
}

fn is_nan(s: Scalar, bits: u64) -> bool {
    let (fraction, bias) = layout(s);
    s.is_float() && bits & !(1 << (s.bits() - 1)) > (2 * bias as u64 + 1) << fraction
}

/// The number that a float's bits stand for, taken apart by hand; exact for every type.
fn value(s: Scalar, bits: u64) -> f64 {
    if s == Scalar::F64 {
        return f64::from_bits(bits);
    }
    let (fraction, bias) = layout(s);
    let magnitude = bits & !(1 << (s.bits() - 1));
    let (exponent, digits) = ((magnitude >> fraction) as i32, magnitude & ((1 << fraction) - 1));
    let x = if exponent == 2 * bias + 1 {
        if digits == 0 { f64::INFINITY } else { f64::NAN }
    } else if exponent == 0 {
        digits as f64 * 2f64.powi(1 - bias - fraction as i32)
    } else {
        (digits | 1 << fraction) as f64 * 2f64.powi(exponent - bias - fraction as i32)
    };
    if bits >> (s.bits() - 1) == 1 { -x } else { x }
}

/// The float of type `s` (not `f64`) nearest to `x`, ties to even, found among all of them by value.
fn nearest(s: Scalar, x: f64) -> u64 {
    let (fraction, bias) = layout(s);
    let infinity = (2 * bias as u64 + 1) << fraction;
    if x.is_nan() {
        return infinity | 1 << (fraction - 1);
    }
    let sign = if x.is_sign_negative() { 1 << (s.bits() - 1) } else { 0 };
    // The first step past the largest finite one stands for ∞ when rounding.
    let bound = |bits: u64| if bits == infinity { 2f64.powi(bias + 1) } else { value(s, bits) };
    let x = x.abs();
    if x >= bound(infinity) {
        return sign | infinity;
    }
    let (mut below, mut above) = (0, infinity);
    while above - below > 1 {
        let middle = (below + above) / 2;
        *(if value(s, middle) <= x { &mut below } else { &mut above }) = middle;
    }
    let (down, up) = (x - bound(below), bound(above) - x);
    sign | if up < down || up == down && below & 1 == 1 { above } else { below }
}

#[track_caller]
fn check(s: Scalar, got: &[u64], expected: &[u64], what: impl Fn(usize) -> String) {
    assert_eq!(got.len(), expected.len());
    for (i, (g, e)) in got.iter().zip(expected).enumerate() {
        let same = g == e || is_nan(s, *g) && is_nan(s, *e);
        assert!(same, "{}: got {g:#x}, expected {e:#x}", what(i));
    }
}

#[track_caller]
fn check_unary(s: Scalar, op: UnaryOp, x: &[u64], expected: impl Fn(u64) -> u64) {
    let ty = Type::Scalar(s);
    let got = apply(&[(ty, x.to_vec())], ty, |v| Op::Unary(op, v[0]));
    let want: Vec<u64> = x.iter().map(|x| expected(*x)).collect();
    check(s, &got, &want, |i| format!("{op} {s} {:#x}", x[i]));
}

#[track_caller]
fn check_binary(s: Scalar, op: BinaryOp, edges: &[u64], expected: impl Fn(u64, u64) -> u64) {
    check_pairs(s, op, &pairs(edges), expected);
}

#[track_caller]
fn check_pairs(s: Scalar, op: BinaryOp, (a, b): &(Vec<u64>, Vec<u64>), expected: impl Fn(u64, u64) -> u64) {
    let ty = Type::Scalar(s);
    let got = apply(&[(ty, a.clone()), (ty, b.clone())], ty, |v| Op::Binary(op, v[0], v[1]));
    let want: Vec<u64> = a.iter().zip(b).map(|(a, b)| expected(*a, *b)).collect();
    check(s, &got, &want, |i| format!("{op} {s} {:#x} {:#x}", a[i], b[i]));
}

#[test]
fn comparisons() {
    use std::cmp::Ordering;
    for s in Scalar::ALL.iter().copied() {
        let order = |a: u64, b: u64| match s {
            _ if s.is_float() => value(s, a).partial_cmp(&value(s, b)),
            Scalar::Bool => Some(a.cmp(&b)),
            _ => Some(number(s, a).cmp(&number(s, b))),
        };
        let ty = Type::Scalar(s);
        let (a, b) = pairs(&edges(s));
        for p in Predicate::ALL.iter().copied().filter(|p| p.def().on.contains(s)) {
            let got = apply(&[(ty, a.clone()), (ty, b.clone())], BOOL, |v| Op::Compare(p, v[0], v[1]));
            for (i, g) in got.iter().enumerate() {
                let o = order(a[i], b[i]);
                let expected = match p {
                    Predicate::Eq => o == Some(Ordering::Equal),
                    Predicate::Ne => o != Some(Ordering::Equal),
                    Predicate::Lt => o == Some(Ordering::Less),
                    Predicate::Le => matches!(o, Some(Ordering::Less | Ordering::Equal)),
                    Predicate::Gt => o == Some(Ordering::Greater),
                    Predicate::Ge => matches!(o, Some(Ordering::Greater | Ordering::Equal)),
                };
                assert_eq!(*g, u64::from(expected), "{p:?} {s} {:#x} {:#x}", a[i], b[i]);
            }
        }
    }
}

#[test]
fn reductions_go_from_element_0_on() {
    for s in Scalar::ALL.iter().copied() {
        let e = edges(s);
        let ty = Type::Vector(s, 5);
        // Neighbouring edge cases; finite, so that the order of sums shows.
        let finite: Vec<u64> = e.iter().copied().filter(|x| !s.is_float() || value(s, *x).abs() < 1e30).collect();
        let v: Vec<u64> = (0..5 * finite.len()).map(|i| finite[(i * 7 + i / 5) % finite.len()]).collect();
        for op in ReduceOp::ALL.iter().copied().filter(|op| op.def().on.contains(s)) {
            // Sums and products of large indices overflow.
            let v: Vec<u64> = match s {
                Scalar::Idx => v.iter().map(|x| x & 0x7F).collect(),
                _ => v.clone(),
            };
            let got = apply(&[(ty, v.clone())], Type::Scalar(s), |o| Op::Reduce(op, o[0]));
            let cut = |k: usize| v.iter().copied().skip(k).step_by(5).collect::<Vec<u64>>();
            let mut want = cut(0);
            for k in 1..5 {
                let ty = Type::Scalar(s);
                want = apply(&[(ty, want), (ty, cut(k))], ty, |o| Op::Binary(op.step(), o[0], o[1]));
            }
            check(s, &got, &want, |i| format!("{op} {s} {:?}", &v[5 * i..5 * i + 5]));
        }
    }
}

/// Every combination of operation and type that the language defines is executed, and no other.
#[test]
fn exactly_the_defined_combinations_are_executed() {
    let accepted = |ty: Type, result: Type, op: &dyn Fn(Value, Value) -> Op| {
        let mut b = Build::new(64, 1, 1);
        let (x, y) = (b.constant(1, ty), b.constant(1, ty));
        b.op(op(x, y), result);
        Program::new(&b.finish()).is_ok()
    };
    for s in Scalar::ALL.iter().copied() {
        let ty = Type::Scalar(s);
        for op in UnaryOp::ALL.iter().copied() {
            assert_eq!(accepted(ty, ty, &|x, _| Op::Unary(op, x)), op.def().on.contains(s), "{op} of {s}");
        }
        for op in BinaryOp::ALL.iter().copied() {
            assert_eq!(accepted(ty, ty, &|x, y| Op::Binary(op, x, y)), op.def().on.contains(s), "{op} of {s}");
        }
        for p in Predicate::ALL.iter().copied() {
            assert_eq!(accepted(ty, BOOL, &|x, y| Op::Compare(p, x, y)), p.def().on.contains(s), "{p} of {s}");
        }
        for op in ReduceOp::ALL.iter().copied() {
            let vector = Type::Vector(s, 2);
            assert_eq!(accepted(vector, ty, &|x, _| Op::Reduce(op, x)), op.def().on.contains(s), "{op} of {s}");
        }
        assert_eq!(accepted(ty, ty, &|x, y| Op::Fma { a: x, b: y, c: x }), s.is_float(), "fma of {s}");
        for to in Scalar::ALL.iter().copied() {
            let known = to != Scalar::Bool || s == Scalar::Bool;
            assert_eq!(accepted(ty, Type::Scalar(to), &|x, _| Op::Convert(x)), known, "{s} to {to}");
        }
    }
}
