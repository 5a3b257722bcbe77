//! Arguments, malformed kernels, reports, determinism.

use super::*;

fn scale_kernel() -> Kernel {
    let mut b = Build::new(64, 2, 64);
    let x = b.buffer("x", Scalar::F32, 128, Access::Read);
    let y = b.buffer("y", Scalar::F32, 128, Access::Write);
    let s = b.scalar("scale", Scalar::F32);
    let n = b.scalar("bias", Scalar::I64);
    let id = b.global_id();
    let v = b.load(x, id, F32);
    let v = b.mul(v, s);
    let n = b.op(Op::Convert(n), F32);
    let v = b.add(v, n);
    b.store(v, y, id);
    b.finish()
}

#[test]
fn scalars_and_buffers_arrive() {
    let x = from_words(&(0..128).map(|i| (i as f32).to_bits()).collect::<Vec<_>>());
    let y = GlobalBuffer::uninit(512);
    let args = [
        ArgValue::Buffer(&x),
        ArgValue::Buffer(&y),
        ArgValue::Scalar(u64::from(0.5f32.to_bits())),
        ArgValue::Scalar(-3i64 as u64),
    ];
    let report = run(&scale_kernel(), &args, &Options::default()).unwrap();
    let expected: Vec<u32> = (0..128).map(|i| (i as f32 * 0.5 - 3.0).to_bits()).collect();
    assert_eq!(words(&y), expected);
    assert_eq!((report.blocks, report.findings_omitted), (2, 0));
    // Two full waves: every instruction counts 64 lanes.
    assert_eq!(report.lane_ops, report.instructions * 64);
}

#[test]
fn arguments_that_do_not_fit_are_refused() {
    let (x, y, short) = (GlobalBuffer::zeroed(512), GlobalBuffer::zeroed(512), GlobalBuffer::zeroed(508));
    let (b, s) = (ArgValue::Buffer, ArgValue::Scalar);
    let cases = [
        (vec![b(&x), b(&y)], "kernel `k` takes 4 arguments, 2 were given"),
        (vec![b(&x), b(&short), s(0), s(0)], "kernel `k`: argument `y` has 508 bytes; 128 elements of f32 have 512"),
        (vec![s(1), b(&y), s(0), s(0)], "kernel `k`: argument `x` is a buffer of f32, a scalar was given"),
        (vec![b(&x), b(&y), b(&x), s(0)], "kernel `k`: argument `scale` is a scalar of type f32, a buffer was given"),
        (vec![b(&x), b(&y), s(1 << 32), s(0)], "kernel `k`: argument `scale` is 0x100000000, which does not fit f32"),
        (
            vec![b(&x), b(&x), s(0), s(0)],
            "kernel `k`: argument `y` is the same buffer as `x`, and one of them is written",
        ),
    ];
    for (args, expected) in cases {
        let e = run(&scale_kernel(), &args, &Options::default()).unwrap_err();
        assert_eq!(e.to_string(), expected);
    }
}

#[test]
fn read_only_buffers_may_be_the_same() {
    let mut b = Build::new(32, 1, 4);
    let x = b.buffer("x", Scalar::U32, 4, Access::Read);
    let y = b.buffer("y", Scalar::U32, 4, Access::Read);
    let z = b.buffer("z", Scalar::U32, 4, Access::Write);
    let t = b.tid();
    let (v, w) = (b.load(x, t, U32), b.load(y, t, U32));
    let sum = b.add(v, w);
    b.store(sum, z, t);
    let (input, output) = (from_words(&[1, 2, 3, 4]), GlobalBuffer::zeroed(16));
    let args = [&input, &input, &output].map(ArgValue::Buffer);
    run(&b.finish(), &args, &Options::default()).unwrap();
    assert_eq!(words(&output), [2, 4, 6, 8]);
}

#[test]
fn an_empty_grid_runs_nothing() {
    let b = Build::new(32, 1, 1).shape([4, 0, 2], [1, 1, 1]);
    let report = run(&b.finish(), &[], &Options::default()).unwrap();
    assert_eq!((report.blocks, report.instructions), (0, 0));
}

/// A kernel whose waves talk through LDS, diverge and make findings.
fn busy_kernel() -> Kernel {
    let mut b = Build::new(32, 24, 96);
    let out = b.buffer("out", Scalar::U32, 24 * 96 - 500, Access::Write);
    let lds = b.lds("l", Scalar::U32, 96);
    let (t, id, zero, seven) = (b.tid(), b.global_id(), b.u32(0), b.u32(7));
    let p = b.ptr(lds, t);
    b.ptr_store(id, p);
    b.void(Op::Barrier);
    let n = b.binary(BinaryOp::RemFloor, id, seven);
    let s = b.for_((zero, n, 1), &[zero], |b, i, c| {
        let p = b.ptr(lds, i);
        let x = b.ptr_load(p, U32);
        vec![b.add(c[0], x)]
    });
    b.store(s[0], out, id);
    b.finish()
}

#[test]
fn results_and_reports_do_not_depend_on_threads_or_seed() {
    let program = Program::new(&busy_kernel()).unwrap();
    let mut first: Option<(Vec<u32>, Report)> = None;
    for threads in [None, Some(1), Some(2), Some(5)] {
        for seed in [None, Some(0), Some(1), Some(0xDEAD_BEEF)] {
            let out = GlobalBuffer::zeroed((24 * 96 - 500) * 4);
            let options = Options { seed, threads, ..Options::default() };
            let report = launch(&program, &[ArgValue::Buffer(&out)], &options).unwrap();
            assert_eq!(report.findings.len(), 1);
            assert_eq!(report.findings[0].count, 500);
            let got = (words(&out), report);
            assert_eq!(first.get_or_insert_with(|| got.clone()), &got, "{threads:?} {seed:?}");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_interleaving_and_others_differ() {
    // All three waves race for one LDS element; which store comes last depends on the schedule alone.
    let mut b = Build::new(32, 1, 96);
    let out = b.buffer("out", Scalar::U32, 1, Access::Write);
    let lds = b.lds("l", Scalar::U32, 1);
    let (t, zero, n) = (b.tid(), b.u32(0), b.u32(20));
    b.for_((zero, n, 1), &[], |b, _, _| {
        b.ptr_store(t, lds);
        vec![]
    });
    b.void(Op::Barrier);
    let v = b.ptr_load(lds, U32);
    b.store(v, out, zero);
    let program = Program::new(&b.finish()).unwrap();
    let last = |seed| {
        let out = GlobalBuffer::zeroed(4);
        launch(&program, &[ArgValue::Buffer(&out)], &Options { seed, ..Options::default() }).unwrap();
        words(&out)[0]
    };
    assert_eq!(last(None), 95);
    let winners: Vec<u32> = (0..32).map(|s| last(Some(s))).collect();
    assert_eq!(winners, (0..32).map(|s| last(Some(s))).collect::<Vec<_>>());
    for winner in [31, 63, 95] {
        assert!(winners.contains(&winner), "{winners:?}");
    }
}

#[track_caller]
fn refused(b: Build, expected: &str) {
    match Program::new(&b.finish()) {
        Err(e @ Error::Malformed { .. }) => assert_eq!(e.to_string(), expected),
        other => panic!("a malformed kernel is due, got {other:?}"),
    }
}

#[test]
fn malformed_kernels_are_errors_not_panics() {
    refused(Build::new(16, 1, 1), "kernel `k`: waves of 16 lanes; 32 and 64 are known");
    refused(Build::new(32, 1, 0), "kernel `k`: workgroups of 0×1×1 threads; 1 to 1024 are allowed");
    refused(Build::new(32, 1, 1025), "kernel `k`: workgroups of 1025×1×1 threads; 1 to 1024 are allowed");

    let mut b = Build::new(32, 1, 1);
    let x = b.buffer("x", Scalar::U32, 4, Access::Read);
    let t = b.tid();
    b.store(t, x, t);
    refused(b, "k.rs:2:1: kernel `k`: store to read-only buffer `x`");

    let mut b = Build::new(32, 1, 1);
    let x = b.buffer("x", Scalar::U32, 4, Access::Write);
    let t = b.tid();
    let _ = b.load(x, t, U32);
    refused(b, "k.rs:2:1: kernel `k`: load from write-only buffer `x`");

    let mut b = Build::new(32, 1, 1);
    let (a, c) = (b.u32(1), b.constant(1, F32));
    b.add(a, c);
    refused(b, "k.rs:3:1: kernel `k`: operand %1 is f32, not u32");

    let mut b = Build::new(32, 1, 1);
    let a = b.constant(1, F32);
    b.binary(BinaryOp::Shl, a, a);
    refused(b, "k.rs:2:1: kernel `k`: `shl` of f32");

    let mut b = Build::new(32, 1, 1);
    b.constant(0x1_0000, U16);
    refused(b, "k.rs:1:1: kernel `k`: constant 0x10000 does not fit u16");

    let mut b = Build::new(32, 1, 1);
    let later = Value(1);
    b.op(Op::Binary(BinaryOp::Add, later, later), U32);
    b.u32(3);
    refused(b, "k.rs:1:1: kernel `k`: %1 is used where it is not defined");

    // A value of a branch does not leave it.
    let mut b = Build::new(32, 1, 1);
    let c = b.constant(1, BOOL);
    let mut inner = Value(0);
    b.if_(c, |b| inner = b.u32(5));
    b.add(inner, inner);
    refused(b, "k.rs:4:1: kernel `k`: %1 is used where it is not defined");

    let mut b = Build::new(32, 1, 1);
    let z = b.u32(0);
    b.for_((z, z, 0), &[], |_, _, _| vec![]);
    refused(b, "k.rs:2:1: kernel `k`: a loop with step 0");

    let mut b = Build::new(32, 1, 1);
    let z = b.u32(0);
    b.for_((z, z, 1), &[z], |_, _, _| vec![]);
    refused(b, "k.rs:2:1: kernel `k`: a region yields 0 values where 1 are due");

    let mut b = Build::new(32, 1, 1);
    let z = b.constant(0, F32);
    b.op(Op::Bitcast(z), U64);
    refused(b, "k.rs:2:1: kernel `k`: bitcast from f32 to u64");

    let mut b = Build::new(32, 1, 1);
    let z = b.constant(0, F32);
    b.op(Op::Convert(z), BOOL);
    refused(b, "k.rs:2:1: kernel `k`: f32 converted to bool");

    let mut b = Build::new(32, 1, 1);
    b.op(Op::LdsBase(0), Type::Ptr(Space::Lds, Scalar::U32));
    refused(b, "k.rs:1:1: kernel `k`: pointer to LDS array 0 as lds<u32>");

    let mut b = Build::new(32, 1, 1);
    b.lds("a", Scalar::U32, u32::MAX);
    refused(b, "kernel `k`: LDS array `a` ends at byte 17179869180; the CPU device has 16777216");

    let mut b = Build::new(32, 1, 1);
    b.buffer("x", Scalar::U64, u64::MAX, Access::Read);
    refused(b, "kernel `k`: buffer `x` has 18446744073709551615 elements of u64");

    let mut b = Build::new(32, 1, 1);
    let c = b.constant(1, BOOL);
    fn nest(b: &mut Build, c: Value, depth: u32) {
        if depth > 0 {
            b.if_(c, |b| nest(b, c, depth - 1));
        }
    }
    nest(&mut b, c, 64);
    let kernel = b.finish();
    let e = Program::new(&kernel).unwrap_err().to_string();
    assert!(e.ends_with("kernel `k`: regions nest deeper than 64"), "{e}");
}

#[test]
fn a_program_is_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Program>();
    shared::<GlobalBuffer>();
    shared::<Error>();
}
