//! Everything that a buffer access can be told: masks, fills, scalar offsets, index offsets.

use lathe_dsl::ir::{AtomicKind, AtomicOp, Coherence, Scope};

use super::super::{FaultKind, FindingKind};
use super::*;

const IDX: Type = Type::Scalar(Scalar::Idx);

fn report(kernel: &Kernel, buffers: &[&GlobalBuffer]) -> Result<Report, Error> {
    let args: Vec<ArgValue<'_>> = buffers.iter().map(|b| ArgValue::Buffer(b)).collect();
    run(kernel, &args, &Options::default())
}

#[test]
fn masked_lanes_touch_nothing_and_get_the_fill() {
    for wave in [32, 64] {
        // Even threads load; odd ones, whose offset is far outside, get 1000 + t. Threads below 3 store.
        let mut b = Build::new(wave, 1, 70);
        let x = b.buffer("x", Scalar::U32, 70, Access::Read);
        let y = b.buffer("y", Scalar::U32, 70, Access::Write);
        let z = b.buffer("z", Scalar::U32, 3, Access::Write);
        let (t, one, zero, thousand, three, far) = (b.tid(), b.u32(1), b.u32(0), b.u32(1000), b.u32(3), b.u32(1 << 30));
        let bit = b.binary(BinaryOp::And, t, one);
        let even = b.compare(Predicate::Eq, bit, zero);
        let offset = b.op(Op::Select { condition: even, on_true: t, on_false: far }, U32);
        let fill = b.add(t, thousand);
        let cache = Cache { coherence: Coherence::System, nontemporal: true };
        let v = b.op(
            Op::BufferLoad {
                buffer: x,
                offset,
                unit: OffsetUnit::Elements,
                scalar: None,
                mask: Some(even),
                fill: Some(fill),
                cache,
            },
            U32,
        );
        b.store(v, y, t);
        let low = b.lt(t, three);
        b.void(Op::BufferStore {
            value: v,
            buffer: z,
            offset: t,
            unit: OffsetUnit::Elements,
            scalar: None,
            mask: Some(low),
            cache,
        });
        // The mask ends with the operation.
        b.store(v, y, t);
        let input = from_words(&(0..70).map(|i| i * 3).collect::<Vec<_>>());
        let (y, z) = (GlobalBuffer::zeroed(280), GlobalBuffer::zeroed(12));
        assert_eq!(report(&b.finish(), &[&input, &y, &z]).unwrap().findings, []);
        assert_eq!(words(&y), (0..70).map(|t| if t % 2 == 0 { t * 3 } else { 1000 + t }).collect::<Vec<_>>());
        assert_eq!(words(&z), [0, 1001, 6]);
    }
}

#[test]
fn scalar_and_index_offsets_add_up_exactly() {
    let kernel = |index: i64, scalar: u32| {
        let mut b = Build::new(32, 1, 1);
        let x = b.buffer("x", Scalar::U32, 4, Access::Read);
        let y = b.buffer("y", Scalar::U32, 1, Access::Write);
        let (offset, scalar, zero) = (b.constant(index as u64, IDX), b.u32(scalar), b.constant(0, IDX));
        let v = b.op(
            Op::BufferLoad {
                buffer: x,
                offset,
                unit: OffsetUnit::Elements,
                scalar: Some(scalar),
                mask: None,
                fill: None,
                cache: Cache::default(),
            },
            U32,
        );
        b.store(v, y, zero);
        b.finish()
    };
    let load = |index, scalar| {
        let (x, y) = (from_words(&[5, 6, 7, 8]), from_words(&[99]));
        let report = report(&kernel(index, scalar), &[&x, &y]).unwrap();
        (words(&y)[0], report.findings.iter().map(|f| (access(f).kind, access(f).offset)).collect::<Vec<_>>())
    };
    assert_eq!(load(1, 8), (8, vec![]));
    // Below 0 is outside, even where the sum is not.
    assert_eq!(load(-2, 16), (0, vec![(FindingKind::OutOfRange, -8)]));
    assert_eq!(load(-3, 8), (0, vec![(FindingKind::OutOfRange, -12)]));
    // As 32-bit numbers both would be in range.
    assert_eq!(load(1 << 30, 0), (0, vec![(FindingKind::OutOfRange, 1 << 32)]));
    assert_eq!(load(1, u32::MAX - 3), (0, vec![(FindingKind::OutOfRange, 1 << 32)]));
    assert_eq!(load(i64::MAX, 0), (0, vec![(FindingKind::OutOfRange, i64::MAX)]));
    assert_eq!(load(i64::MIN, 4), (0, vec![(FindingKind::OutOfRange, i64::MIN)]));
}

#[test]
fn a_scalar_offset_is_the_same_in_all_lanes() {
    let kernel = |limit: u32| {
        let mut b = Build::new(64, 1, 64);
        let x = b.buffer("x", Scalar::U32, 64, Access::Write);
        let (t, zero, limit) = (b.tid(), b.u32(0), b.u32(limit));
        let nine = b.u32(9);
        let late = b.compare(Predicate::Ge, t, nine);
        let scalar = b.op(Op::Select { condition: late, on_true: nine, on_false: zero }, U32);
        let takes = b.lt(t, limit);
        b.if_(takes, |b| {
            b.void(Op::BufferStore {
                value: t,
                buffer: x,
                offset: t,
                unit: OffsetUnit::Elements,
                scalar: Some(scalar),
                mask: None,
                cache: Cache::default(),
            });
        });
        b.finish()
    };
    let x = GlobalBuffer::zeroed(256);
    // Only active lanes count.
    report(&kernel(9), &[&x]).unwrap();
    let Err(Error::Fault(fault)) = report(&kernel(10), &[&x]) else { panic!() };
    assert_eq!((fault.kind, fault.site.lane), (FaultKind::NotUniform { what: "scalar offset" }, 9));
}

#[test]
fn buffer_atomics_give_the_old_value_or_zero_outside() {
    // Threads 0..6 add 1 to element t / 2 of 2; those of element 2 are outside, thread 1 is masked out.
    let mut b = Build::new(32, 1, 6);
    let x = b.buffer("x", Scalar::U32, 2, Access::ReadWrite);
    let y = b.buffer("y", Scalar::U32, 6, Access::Write);
    let (t, one) = (b.tid(), b.u32(1));
    let at = b.binary(BinaryOp::Shr, t, one);
    let mask = b.compare(Predicate::Ne, t, one);
    let op = Op::BufferAtomic {
        kind: AtomicKind(AtomicOp::Add),
        value: one,
        buffer: x,
        offset: at,
        unit: OffsetUnit::Elements,
        scalar: None,
        mask: Some(mask),
        nontemporal: false,
        scope: Scope::Device,
    };
    let old = b.op(op, U32);
    b.store(old, y, t);
    let (x, y) = (from_words(&[10, 20]), GlobalBuffer::zeroed(24));
    let report = report(&b.finish(), &[&x, &y]).unwrap();
    assert_eq!((words(&x), words(&y)), (vec![11, 22], vec![10, 0, 20, 21, 0, 0]));
    let found: Vec<_> = report.findings.iter().map(|f| (access(f).kind, f.count)).collect();
    assert_eq!(found, [(FindingKind::OutOfRange, 2)]);
    assert!(report.findings[0].to_string().contains("atomic update of buffer `x` at bytes 8..12"));
}

#[test]
fn a_misaligned_buffer_atomic_is_a_fault() {
    let mut b = Build::new(32, 1, 1);
    let x = b.buffer("x", Scalar::U64, 4, Access::ReadWrite);
    let (four, v) = (b.u32(4), b.constant(1, U64));
    let op = Op::BufferAtomic {
        kind: AtomicKind(AtomicOp::Max),
        value: v,
        buffer: x,
        offset: four,
        unit: OffsetUnit::Bytes,
        scalar: None,
        mask: None,
        nontemporal: false,
        scope: Scope::Device,
    };
    b.op(op, U64);
    let x = GlobalBuffer::zeroed(32);
    let Err(Error::Fault(fault)) = report(&b.finish(), &[&x]) else { panic!() };
    let expected =
        format!("atomic update of global memory at address {:#x}, which is not aligned to 8 bytes", x.address() + 4);
    assert_eq!(fault.kind.to_string(), expected);
}
