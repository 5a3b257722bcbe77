//! One operation of each definition, and every value of each attribute. None of it need make sense.

use super::Sketch;
use crate::ir::{
    AtomicKind, AtomicOp, Axis, BinaryOp, Bits, Block, ButterflyOp, Cache, Coherence, Memory, NativeCode, NativeForm,
    OffsetUnit, Op, Order, Predicate, ReduceOp, Scalar, Scope, ShuffleOp, Space, Type, UnaryOp, Unroll, Value,
};
use crate::mma::{Fragments, MmaShape, MmaType};
use crate::numerics::{Narrow, Overflow};

const A: Value = Value(0);
const B: Value = Value(1);
const C: Value = Value(2);
const D: Value = Value(3);

const F32: Type = Type::Scalar(Scalar::F32);
const LDS: Type = Type::Ptr(Space::Lds, Scalar::F32);
const GLOBAL: Type = Type::Ptr(Space::Global, Scalar::Bf16);

/// A region with parameters and yields, and one inside it.
fn region(sketch: &mut Sketch, params: u32, yields: &[Value]) -> Block {
    let inner = Block { params: vec![], insts: vec![sketch.inst(Op::Barrier, &[])], yields: vec![] };
    let params = (0..params).map(|i| sketch.value(Type::Vector(Scalar::I16, i + 1))).collect();
    let first = sketch.inst(Op::LaneId, &[Type::U32]);
    let mut all = yields.to_vec();
    all.extend(&first.results);
    let nested = sketch.inst(Op::If { condition: A, then: inner, otherwise: Block::default() }, &[]);
    Block { params, insts: vec![first, nested], yields: all }
}

fn memories() -> Vec<Memory> {
    let plain = Memory::default();
    let mut all = vec![
        plain,
        Memory { align: Some(1), ..plain },
        Memory { align: Some(16), volatile: true, nontemporal: true, order: Order::SeqCst, scope: Scope::Wave },
        Memory { nontemporal: true, ..plain },
    ];
    all.extend(Order::ALL.iter().map(|order| Memory { order: *order, ..plain }));
    all.extend(Scope::ALL.iter().map(|scope| Memory { order: Order::Acquire, scope: *scope, ..plain }));
    all
}

fn caches() -> Vec<Cache> {
    let pair = |coherence| [false, true].map(|nontemporal| Cache { coherence, nontemporal });
    Coherence::ALL.iter().flat_map(|c| pair(*c)).collect()
}

/// Every operation, with the types of its results.
pub fn all(sketch: &mut Sketch) -> Vec<(Op, Vec<Type>)> {
    let mut all = vec![];
    families(&mut all);
    plain(&mut all);
    memory(&mut all);
    control(sketch, &mut all);
    all
}

fn families(all: &mut Vec<(Op, Vec<Type>)>) {
    all.extend(UnaryOp::ALL.iter().map(|op| (Op::Unary(*op, A), vec![F32])));
    all.extend(BinaryOp::ALL.iter().map(|op| (Op::Binary(*op, A, B), vec![Type::Vector(Scalar::F16, 16)])));
    all.extend(Predicate::ALL.iter().map(|op| (Op::Compare(*op, A, B), vec![Type::Vector(Scalar::Bool, 3)])));
    all.extend(ReduceOp::ALL.iter().map(|op| (Op::Reduce(*op, A), vec![F32])));
    for op in ButterflyOp::ALL {
        all.push((Op::Butterfly { op: *op, value: A, offset: 1, width: 64 }, vec![F32]));
    }
    for op in ShuffleOp::ALL {
        all.push((Op::LaneShuffle { op: *op, value: A, amount: B, width: 32 }, vec![F32]));
    }
    for op in AtomicOp::ALL {
        for (order, scope) in [(Order::Relaxed, Scope::System), (Order::AcqRel, Scope::Device)] {
            all.push((Op::AtomicRmw { op: *op, pointer: A, value: B, order, scope }, vec![F32]));
        }
        let kind = AtomicKind(*op);
        for (unit, mask, nontemporal) in [(OffsetUnit::Elements, None, false), (OffsetUnit::Bytes, Some(D), true)] {
            let (scalar, scope) = (mask, Scope::Workgroup);
            let op = Op::BufferAtomic { kind, value: A, buffer: B, offset: C, unit, scalar, mask, nontemporal, scope };
            all.push((op, vec![F32]));
        }
    }
}

fn plain(all: &mut Vec<(Op, Vec<Type>)>) {
    for axis in Axis::ALL {
        all.extend([(Op::ThreadId(*axis), vec![Type::U32]), (Op::BlockId(*axis), vec![Type::U32])]);
    }
    let mut f32 = |op| all.push((op, vec![F32]));
    f32(Op::Const(Bits(0x3F80_0000)));
    f32(Op::LaneId);
    f32(Op::Clock);
    f32(Op::Fma { a: A, b: B, c: C });
    f32(Op::Select { condition: A, on_true: B, on_false: C });
    f32(Op::Convert(A));
    f32(Op::ConvertStochastic(A, B));
    for (format, overflow) in Narrow::ALL.into_iter().zip(Overflow::ALL.into_iter().cycle()) {
        f32(Op::Encode { value: A, scale: None, old: None, format, overflow, byte: None });
        f32(Op::Encode { value: A, scale: Some(B), old: Some(C), format, overflow, byte: Some(3) });
        f32(Op::Decode { codes: A, scale: None, format });
        f32(Op::Decode { codes: A, scale: Some(B), format });
    }
    f32(Op::Bitcast(A));
    f32(Op::VectorFrom(vec![]));
    f32(Op::VectorFrom(vec![A]));
    f32(Op::VectorFrom(vec![A, B, C, D]));
    f32(Op::Extract(A, 15));
    f32(Op::ExtractAt(A, B));
    f32(Op::Shuffle { a: A, b: B, mask: vec![] });
    f32(Op::Shuffle { a: A, b: B, mask: vec![0, 7, u32::MAX] });
    f32(Op::Ballot(A));
    f32(Op::ReadFirstLane(A));
    f32(Op::ReadLane(A, B));
    f32(Op::Transpose8x8(A));
    f32(Op::PermB32(A, B, C));
    f32(Op::Opaque(A));
    f32(Op::Expect { condition: A, likely: true });
    f32(Op::Expect { condition: A, likely: false });
    for scope in [Scope::Wave, Scope::Workgroup] {
        f32(Op::AssumeUniform { value: A, scope });
    }
    for (i, fragments) in Fragments::ALL.into_iter().enumerate() {
        let shape = MmaShape::new(16 << i, 8, 32);
        for (a_type, b_type) in [(MmaType::F16, MmaType::Bf16), (MmaType::I8, MmaType::Narrow(Narrow::E5m2Fnuz))] {
            f32(Op::Mma { a: A, b: B, c: C, shape, a_type, b_type, fragments });
        }
        let (a_byte, b_byte, a_type, b_type) = (i as u32, 3 - i as u32, Narrow::ALL[i], Narrow::ALL[7 - i]);
        let (a_scale, b_scale) = (D, A);
        f32(Op::MfmaScaled { a: A, b: B, c: C, a_scale, b_scale, a_type, b_type, a_byte, b_byte, fragments });
    }
    let mut void = |op| all.push((op, vec![]));
    void(Op::SWaitcnt { vmcnt: None, lgkmcnt: None, expcnt: None });
    void(Op::SWaitcnt { vmcnt: Some(0), lgkmcnt: None, expcnt: Some(7) });
    void(Op::SWaitcnt { vmcnt: None, lgkmcnt: Some(15), expcnt: None });
    void(Op::AsyncMark);
    void(Op::WaitAsyncMark(31));
    void(Op::SSleep(127));
    void(Op::SSetprio(3));
    void(Op::SchedBarrier(0));
    void(Op::SchedGroupBarrier { mask: 8, size: 2, group: 0 });
    void(Op::Assume(A));
    void(Op::Barrier);
}

fn memory(all: &mut Vec<(Op, Vec<Type>)>) {
    all.push((Op::LdsBase(3), vec![LDS]));
    all.push((Op::PtrAdd(A, B), vec![LDS]));
    all.push((Op::PtrCast(A), vec![Type::Ptr(Space::Lds, Scalar::U8)]));
    all.push((Op::BufferPtr(A), vec![GLOBAL]));
    all.push((Op::IntToPtr(A), vec![GLOBAL]));
    all.push((Op::IntToPtr(A), vec![LDS]));
    all.push((Op::PtrToInt(A), vec![Type::U64]));
    all.push((Op::PtrToInt(A), vec![Type::U32]));
    all.push((Op::MakeBuffer { address: A, bytes: B }, vec![Type::Buffer(Scalar::F64)]));
    all.extend([16, 8, 6, 4].map(|bits| (Op::LdsReadTr { pointer: A, bits }, vec![Type::Vector(Scalar::U16, 4)])));
    for memory in memories() {
        all.push((Op::PtrLoad { pointer: A, memory }, vec![F32]));
        all.push((Op::PtrStore { value: A, pointer: B, memory }, vec![]));
    }
    for order in Order::ALL.iter().copied() {
        for scope in Scope::ALL.iter().copied() {
            all.push((Op::AtomicCas { pointer: A, expected: B, value: C, order, scope }, vec![F32]));
            all.push((Op::Fence { order, scope }, vec![]));
        }
    }
    all.extend(Scope::ALL.iter().map(|scope| (Op::Drain { scope: *scope }, vec![])));
    for unit in OffsetUnit::ALL.iter().copied() {
        all.push((Op::SBufferLoad { buffer: A, offset: B, unit }, vec![F32]));
        for (scalar, mask, nontemporal) in [(None, None, true), (Some(A), Some(B), false)] {
            let (expected, value, buffer, offset, scope) = (A, B, C, D, Scope::WaveOneAs);
            all.push((
                Op::BufferAtomicCas { expected, value, buffer, offset, unit, scalar, mask, nontemporal, scope },
                vec![F32],
            ));
        }
    }
    all.push((Op::TextureFetch { texture: A, x: B, y: C }, vec![Type::Vector(Scalar::F16, 4)]));
    all.push((Op::TextureSample { texture: A, u: B, v: C }, vec![Type::Vector(Scalar::F32, 4)]));
    all.push((Op::SurfaceStore { value: A, surface: B, x: C, y: D }, vec![]));
    for cache in caches() {
        for unit in OffsetUnit::ALL.iter().copied() {
            for (scalar, mask) in [(None, None), (Some(C), None), (None, Some(D)), (Some(C), Some(D))] {
                let fill = mask.map(|_| B);
                all.push((Op::BufferLoad { buffer: A, offset: B, unit, scalar, mask, fill, cache }, vec![F32]));
                all.push((Op::BufferStore { value: A, buffer: B, offset: C, unit, scalar, mask, cache }, vec![]));
            }
            for (scalar, bytes) in [(None, 4), (Some(C), 16)] {
                let copy = Op::CopyToLds { buffer: A, offset: B, pointer: C, unit, scalar, bytes, cache };
                all.push((copy, vec![]));
            }
        }
    }
}

fn control(sketch: &mut Sketch, all: &mut Vec<(Op, Vec<Type>)>) {
    all.push((Op::If { condition: A, then: Block::default(), otherwise: Block::default() }, vec![]));
    let (then, otherwise) = (region(sketch, 0, &[A]), region(sketch, 0, &[B]));
    all.push((Op::If { condition: A, then, otherwise }, vec![F32, LDS]));
    for (unroll, init) in Unroll::ALL.iter().zip([vec![], vec![C], vec![C, D]]) {
        let body = region(sketch, 2, &init);
        let results = vec![F32; init.len()];
        all.push((Op::For { lo: A, hi: B, init, step: u32::MAX, unroll: *unroll, body }, results));
    }
    for init in [vec![], vec![A, B]] {
        let (before, after) = (region(sketch, 2, &init), region(sketch, 1, &[]));
        all.push((Op::While { init, before, after }, vec![F32]));
    }
    let asm = |target: &str, template: &str, constraints: &str, effects| NativeForm {
        target: target.to_owned(),
        code: NativeCode::Asm { template: template.to_owned(), constraints: constraints.to_owned() },
        effects,
    };
    let call = |target: &str, name: &str, effects| NativeForm {
        target: target.to_owned(),
        code: NativeCode::Intrinsic { name: name.to_owned() },
        effects,
    };
    let none = region(sketch, 0, &[]);
    all.push((Op::Native { args: vec![], forms: vec![], meaning: none }, vec![]));
    let forms = vec![
        call("gfx950", "llvm.amdgcn.rsq.f32", false),
        asm("amdgpu", "v_rsq_f32 $0, $1 ; \"quoted\"\n\ts_nop \\0\r\u{7f}µ", "=v,v", true),
        asm("nvptx", "", "", false),
        call("sm_90", "", true),
    ];
    let meaning = region(sketch, 1, &[B]);
    all.push((Op::Native { args: vec![A, C], forms, meaning }, vec![F32, F32]));
}
