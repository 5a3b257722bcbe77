//! NaNs made of operands that are none.

use lathe_dsl::ir::UnaryOp;

use super::*;

#[test]
fn a_nan_out_of_nothing_is_found_on_request() {
    // Lane t: (t − 3) · inf, which is a NaN for t = 3 only; then what the NaN makes is no finding of its own.
    for (s, inf) in
        [(Scalar::F32, 0x7F80_0000), (Scalar::F16, 0x7C00), (Scalar::Bf16, 0x7F80), (Scalar::F64, 0x7FF << 52)]
    {
        let mut b = Build::new(64, 2, 64);
        let ty = Type::Scalar(s);
        let (t, three) = (b.tid(), b.u32(3));
        let d = b.binary(BinaryOp::Sub, t, three);
        let x = b.op(Op::Convert(d), ty);
        let inf = b.constant(inf, ty);
        let y = b.mul(x, inf);
        let line = b.line();
        let z = b.add(y, x);
        let v = b.op(Op::VectorFrom(vec![z, z]), Type::Vector(s, 2));
        b.mul(v, v);
        let kernel = b.finish();
        let texts = |checks| {
            let report = run(&kernel, &[], &Options { checks, ..Options::default() }).unwrap();
            report.findings.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(texts(Checks::DEFAULT), [""; 0]);
        assert_eq!(
            texts(Checks::ALL),
            [format!(
                "k.rs:{line}:1: a NaN ({s}) made of operands that are none \
                 (block (0,0,0), thread (3,0,0), wave 0, lane 3; 2 times)"
            )]
        );
    }
}

#[test]
fn inactive_lanes_and_other_operations_are_left_alone() {
    let mut b = Build::new(32, 1, 32);
    let (t, zero, four) = (b.tid(), b.u32(0), b.u32(4));
    let x = b.op(Op::Convert(t), F32);
    let minus = b.op(Op::Unary(UnaryOp::Neg, x), F32);
    let none = b.compare(Predicate::Lt, t, zero);
    b.if_(none, |b| {
        b.op(Op::Unary(UnaryOp::Sqrt, minus), F32);
    });
    let bits = b.constant(0x7FC0_0000, U32);
    b.op(Op::Bitcast(bits), F32);
    let some = b.lt(t, four);
    b.if_(some, |b| {
        b.op(Op::Unary(UnaryOp::Sqrt, minus), F32);
    });
    let line = b.line() - 1;
    let report = run(&b.finish(), &[], &Options { checks: Checks::ALL, ..Options::default() }).unwrap();
    let [finding] = report.findings.as_slice() else { panic!("{:?}", report.findings) };
    // Lane 0 has −0, whose root is −0.
    assert_eq!((finding.site.location.line, finding.site.lane, finding.count), (line, 1, 3));
}

/// Row 5 of A is +∞ where the column of B is +∞ and −∞ in turn: their sum is a NaN of D's row 5 alone. Row 6 begins with one.
#[test]
fn a_product_that_makes_nans_is_found_on_request() {
    use lathe_dsl::prelude::*;
    let mut line = 0;
    let kernel = lathe_dsl::builder::build("k", Target::GFX950, Launch::linear(1, 64), vec![], |k| {
        type Tile = Mma<16, 16, 32, f16>;
        let places = k.places::<Tile, roles::A>();
        let a: Vec<V<f16>> = places
            .iter()
            .map(|p| p.row.eq(5).select(f16::INFINITY, p.row.eq(6).select(f16::NAN, k.constant(f16::ONE))))
            .collect();
        let b: Vec<V<f16>> = k
            .places::<Tile, roles::B>()
            .iter()
            .map(|p| (p.row & 1).eq(0).select(f16::ONE, k.constant(f16::NEG_ONE)))
            .collect();
        let (a, b): (FragmentA<Tile>, FragmentB<Tile>) = (k.fragment(&a), k.fragment(&b));
        line = line!() + 1;
        k.mma(a, b, k.zero_fragment());
    })
    .unwrap();
    let found = |checks| super::run(&kernel, &[], &Options { checks, ..Options::default() }).unwrap().findings;
    assert!(found(Checks::DEFAULT).is_empty());
    let findings = found(Checks::ALL);
    let [finding] = findings.as_slice() else { panic!("{findings:?}") };
    // Row 5 lies in lanes 16 to 31.
    assert_eq!((finding.site.location.line, finding.site.lane, finding.count), (line, 16, 16));
}
