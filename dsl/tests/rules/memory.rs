//! Memory accesses, pointers, atomics, copies.

use lathe_dsl::ir::{
    Access, AtomicKind, AtomicOp, Cache, Memory, OffsetUnit, Op, Order, Scalar, Scope, Space, Type, Value,
};
use lathe_dsl::prelude::Target;

use super::*;

#[test]
fn pointers() {
    refused_op(
        "the element count is f32; allowed are i8, u8, i16, u16, i32, u32, i64, u64, idx",
        [LDS, F32],
        &[LDS],
        |[p, n]| Op::PtrAdd(p, n),
    );
    refused_op("the pointer is lds<u32> where global<u32> is wanted", [LDS, U32], &[GLOBAL], |[p, n]| Op::PtrAdd(p, n));
    refused_op("`ptr_add` of u64; only a pointer can be moved", [U64, U32], &[U64], |[p, n]| Op::PtrAdd(p, n));
    refused_op(
        "no pointer cast from lds<u32> to global<u32>; allowed is a pointer into the same memory, to elements with a memory form (no bool, no idx)",
        [LDS],
        &[GLOBAL],
        |[p]| Op::PtrCast(p),
    );
    refused_op(
        "no pointer cast from lds<u32> to lds<bool>; allowed is a pointer into the same memory, to elements with a memory form (no bool, no idx)",
        [LDS],
        &[Type::Ptr(Space::Lds, Scalar::Bool)],
        |[p]| Op::PtrCast(p),
    );
    refused_op("the address is u64 where u32 is wanted", [U64], &[LDS], |[a]| Op::IntToPtr(a));
    refused_op("the address is u32 where u64 is wanted", [U32], &[GLOBAL], |[a]| Op::IntToPtr(a));
    refused_op(
        "an address as u64; it makes a pointer to elements with a memory form (no bool, no idx)",
        [U64],
        &[U64],
        |[a]| Op::IntToPtr(a),
    );
    refused_op("the result is u64 where u32 is wanted", [LDS], &[U64], |[p]| Op::PtrToInt(p));
    refused_op("the result is u32 where u64 is wanted", [GLOBAL], &[U32], |[p]| Op::PtrToInt(p));
    refused_op("the address of u64; only a pointer has one", [U64], &[U64], |[p]| Op::PtrToInt(p));
    accepted_op([U32], &[LDS], |[a]| Op::IntToPtr(a));
    accepted_op([LDS], &[U32], |[p]| Op::PtrToInt(p));
    refused_op(
        "pointer to a buffer that is no parameter; use the address that it was made of",
        [BUFFER],
        &[GLOBAL],
        |[b]| Op::BufferPtr(b),
    );
    refused_op("LDS array #7 is not declared", [], &[LDS], |[]| Op::LdsBase(7));
}

fn load(memory: Memory) -> impl FnOnce([Value; 1]) -> Op {
    move |[pointer]| Op::PtrLoad { pointer, memory }
}

fn store(memory: Memory) -> impl FnOnce([Value; 2]) -> Op {
    move |[value, pointer]| Op::PtrStore { value, pointer, memory }
}

#[test]
fn accesses_through_pointers() {
    let plain = Memory::new();
    let x4 = Type::Vector(Scalar::U32, 4);
    refused_op(
        "access of f32 through a pointer to u32; cast the pointer by `.cast::<f32>()`",
        [LDS],
        &[F32],
        load(plain),
    );
    refused_op("memory access through u64; it needs a pointer", [U64], &[U64], load(plain));
    refused_op("alignment of 12 bytes; allowed are powers of two up to 4096", [LDS], &[U32], load(plain.align(12)));
    refused_op("alignment of 8192 bytes; allowed are powers of two up to 4096", [LDS], &[U32], load(plain.align(8192)));
    refused_op(
        "a load with order release; allowed are relaxed, acquire and seq_cst",
        [LDS],
        &[U32],
        load(plain.release(Scope::Device)),
    );
    refused_op(
        "a store with order acquire; allowed are relaxed, release and seq_cst",
        [U32, GLOBAL],
        &[],
        store(plain.acquire(Scope::Device)),
    );
    refused_op(
        "an atomic load of u32x4, 16 bytes; allowed are 1, 2, 4 and 8",
        [GLOBAL],
        &[x4],
        load(plain.relaxed(Scope::Device)),
    );
    refused_op(
        "an atomic load of u32 aligned to 2 bytes; it needs its own size, 4",
        [GLOBAL],
        &[U32],
        load(plain.relaxed(Scope::Device).align(2)),
    );
    refused_op(
        "an access that is not atomic has scope device; give it a memory order, or leave the scope out",
        [GLOBAL],
        &[U32],
        load(Memory { scope: Scope::Device, ..plain }),
    );
    refused_op(
        "memory access of u32x8, 32 bytes; allowed are 1, 2, 4, 8, 12 and 16",
        [GLOBAL],
        &[Type::Vector(Scalar::U32, 8)],
        load(plain),
    );
    accepted_op([GLOBAL], &[Type::Vector(Scalar::U32, 2)], load(plain.acquire(Scope::System)));
    accepted_op([GLOBAL], &[x4], load(plain.align(1)));
}

#[test]
fn pointers_into_parameters_keep_their_declaration() {
    let (read, write) = (Value(0), Value(1));
    let through = |ir: &mut Ir, buffer| {
        let p = ir.push(Op::BufferPtr(buffer), &[GLOBAL])[0];
        let n = ir.value(U32);
        ir.push(Op::PtrAdd(p, n), &[GLOBAL])[0]
    };
    refused("stores to buffer `in`, which is declared as only read; declare it as `Out` or `InOut`", |ir| {
        let (p, v) = (through(ir, read), ir.value(U32));
        ir.push(Op::PtrStore { value: v, pointer: p, memory: Memory::new() }, &[]);
    });
    refused("loads from buffer `out`, which is declared as only written; declare it as `InOut`", |ir| {
        let p = through(ir, write);
        ir.push(Op::PtrLoad { pointer: p, memory: Memory::new() }, &[U32]);
    });
    // Through a branch and a loop.
    refused("stores to buffer `in`, which is declared as only read; declare it as `Out` or `InOut`", |ir| {
        let (a, b, v, c) = (through(ir, read), through(ir, write), ir.value(U32), ir.value(BOOL));
        let side = |p| Block { yields: vec![p], ..Block::default() };
        let p = ir.push(Op::If { condition: c, then: side(a), otherwise: side(b) }, &[GLOBAL])[0];
        let body = {
            let (i, carried) = (ir.fresh(U32), ir.fresh(GLOBAL));
            Block { params: vec![i, carried], insts: vec![], yields: vec![carried] }
        };
        let op = Op::For { lo: v, hi: v, init: vec![p], step: 1, unroll: Unroll::Auto, body };
        let p = ir.push(op, &[GLOBAL])[0];
        ir.push(Op::PtrStore { value: v, pointer: p, memory: Memory::new() }, &[]);
    });
    refused("loads from buffer `out`, which is declared as only written; declare it as `InOut`", |ir| {
        let (p, v) = (through(ir, write), ir.value(U32));
        let op = Op::AtomicRmw { op: AtomicOp::Add, pointer: p, value: v, order: Order::Relaxed, scope: Scope::Device };
        ir.push(op, &[U32]);
    });
}

#[test]
fn atomics() {
    let rmw = |op, order| {
        move |[pointer, value]: [Value; 2]| Op::AtomicRmw { op, pointer, value, order, scope: Scope::Device }
    };
    let relaxed = Order::Relaxed;
    refused_op(
        "`atomic_add` of global<u16>; it is defined on i32, u32, i64, u64, f32, f64",
        [Type::Ptr(Space::Global, Scalar::U16), U16],
        &[U16],
        rmw(AtomicOp::Add, relaxed),
    );
    refused_op(
        "`atomic_xor` of global<f32>; it is defined on i32, u32, i64, u64",
        [Type::Ptr(Space::Global, Scalar::F32), F32],
        &[F32],
        rmw(AtomicOp::Xor, relaxed),
    );
    refused_op(
        "an atomic operation with order plain; allowed are relaxed, acquire, release, acq_rel and seq_cst",
        [GLOBAL, U32],
        &[U32],
        rmw(AtomicOp::Add, Order::Plain),
    );
    refused_op("the value is u64 where u32 is wanted", [GLOBAL, U64], &[U32], rmw(AtomicOp::Add, relaxed));
    refused_op(
        "access of u64 through a pointer to u32; cast the pointer by `.cast::<u64>()`",
        [GLOBAL, U64],
        &[U64],
        rmw(AtomicOp::Add, relaxed),
    );
    refused_op(
        "the value is u32x2 where one element is wanted",
        [GLOBAL, Type::Vector(Scalar::U32, 2)],
        &[Type::Vector(Scalar::U32, 2)],
        rmw(AtomicOp::Add, relaxed),
    );
    let cas = |order| {
        move |[pointer, expected, value]: [Value; 3]| Op::AtomicCas {
            pointer,
            expected,
            value,
            order,
            scope: Scope::Device,
        }
    };
    refused_op("the expected value is i32 where u32 is wanted", [GLOBAL, I32, U32], &[U32], cas(relaxed));
    refused_op(
        "an atomic operation with order plain; allowed are relaxed, acquire, release, acq_rel and seq_cst",
        [GLOBAL, U32, U32],
        &[U32],
        cas(Order::Plain),
    );
    for order in [Order::Plain, Order::Relaxed] {
        let expected = format!("a fence with order {order}; allowed are acquire, release, acq_rel and seq_cst");
        refused_op(&expected, [], &[], |[]| Op::Fence { order, scope: Scope::Device });
    }
}

fn buffer_load(buffer: Value, offset: Value) -> Op {
    let (scalar, mask, fill) = (None, None, None);
    Op::BufferLoad { buffer, offset, unit: OffsetUnit::Elements, scalar, mask, fill, cache: Cache::default() }
}

#[test]
fn buffer_accesses() {
    refused_op("the offset is i32; allowed are u32, idx", [BUFFER, I32], &[U32], |[b, i]| buffer_load(b, i));
    refused_op("buffer access through global<u32>; it needs a buffer", [GLOBAL, U32], &[U32], |[b, i]| {
        buffer_load(b, i)
    });
    refused_op("memory access of bool, which has no memory form; use u32", [BUFFER, U32], &[BOOL], |[b, i]| {
        buffer_load(b, i)
    });
    refused_op("memory access of idx, which has no memory form; use i32 or i64", [BUFFER, U32], &[IDX], |[b, i]| {
        buffer_load(b, i)
    });
    let with = |change: fn(&mut Op, Value)| {
        move |[b, i, v]: [Value; 3]| {
            let mut op = buffer_load(b, i);
            change(&mut op, v);
            op
        }
    };
    let mask = |op: &mut Op, v| {
        if let Op::BufferLoad { mask, .. } = op {
            *mask = Some(v);
        }
    };
    let fill = |op: &mut Op, v| {
        if let Op::BufferLoad { fill, .. } = op {
            *fill = Some(v);
        }
    };
    let scalar = |op: &mut Op, v| {
        if let Op::BufferLoad { scalar, .. } = op {
            *scalar = Some(v);
        }
    };
    refused_op("a masked load without a fill value; give both", [BUFFER, U32, BOOL], &[U32], with(mask));
    refused_op("the mask is u32 where bool is wanted", [BUFFER, U32, U32], &[U32], with(mask));
    refused_op("a load with a fill value, but without a mask; give both", [BUFFER, U32, U32], &[U32], with(fill));
    refused_op("the scalar offset is idx where u32 is wanted", [BUFFER, U32, IDX], &[U32], with(scalar));
    refused_op(
        "the fill value is f32 where u32 is wanted",
        [BUFFER, U32, BOOL, F32],
        &[U32],
        |[buffer, offset, mask, fill]| Op::BufferLoad {
            buffer,
            offset,
            unit: OffsetUnit::Bytes,
            scalar: None,
            mask: Some(mask),
            fill: Some(fill),
            cache: Cache::default(),
        },
    );
    let atomic = |op| {
        move |[value, buffer, offset]: [Value; 3]| Op::BufferAtomic {
            kind: AtomicKind(op),
            value,
            buffer,
            offset,
            unit: OffsetUnit::Elements,
            scalar: None,
            mask: None,
            nontemporal: false,
            scope: Scope::Device,
        }
    };
    refused_op(
        "the value of `atomic_or` is f32; allowed are i32, u32, i64, u64",
        [F32, BUFFER, U32],
        &[F32],
        atomic(AtomicOp::Or),
    );
    refused_op(
        "`buffer_atomic` of f16; it is defined on i32, u32, i64, u64, f32, f64",
        [F16, BUFFER, U32],
        &[F16],
        atomic(AtomicOp::Add),
    );
    refused("stores to buffer `in`, which is declared as only read; declare it as `Out` or `InOut`", |ir| {
        let (value, offset) = (ir.value(U32), ir.value(U32));
        ir.push(atomic(AtomicOp::Add)([value, Value(0), offset]), &[U32]);
    });
    let made = |[address, bytes]: [Value; 2]| Op::MakeBuffer { address, bytes };
    refused_op("the extent is i32; allowed are u32, u64 and idx", [U64, I32], &[BUFFER], made);
    refused_op("the address is u32 where u64 is wanted", [U32, U32], &[BUFFER], made);
    refused_op(
        "makes a buffer, but the result is u32; allowed are buffers of elements with a memory form (no bool, no idx)",
        [U64, U32],
        &[U32],
        made,
    );
}

#[test]
fn copies_to_lds() {
    let copy = |bytes| {
        move |[buffer, offset, pointer]: [Value; 3]| Op::CopyToLds {
            buffer,
            offset,
            pointer,
            unit: OffsetUnit::Elements,
            scalar: None,
            bytes,
            cache: Cache::default(),
        }
    };
    refused_op("a copy of 8 bytes a lane; allowed are 4 and 16", [BUFFER, U32, LDS], &[], copy(8));
    refused_op("a copy to global<u32>; it needs a pointer to LDS", [BUFFER, U32, GLOBAL], &[], copy(4));
    accepted_op([BUFFER, IDX, LDS], &[], copy(16));
    refused("loads from buffer `out`, which is declared as only written; declare it as `InOut`", |ir| {
        let (offset, pointer) = (ir.value(U32), ir.value(LDS));
        ir.push(copy(4)([Value(1), offset, pointer]), &[]);
    });
}

#[test]
fn accesses_of_twelve_bytes() {
    for ty in [Type::Vector(Scalar::U32, 3), Type::Vector(Scalar::F16, 6), Type::Vector(Scalar::I8, 12)] {
        accepted_op([BUFFER, U32], &[ty], |[b, i]| buffer_load(b, i));
    }
    refused_op(
        "memory access of u16x5, 10 bytes; allowed are 1, 2, 4, 8, 12 and 16",
        [BUFFER, U32],
        &[Type::Vector(Scalar::U16, 5)],
        |[b, i]| buffer_load(b, i),
    );
    refused_op(
        "an atomic load of u32x3, 12 bytes; allowed are 1, 2, 4 and 8",
        [GLOBAL],
        &[Type::Vector(Scalar::U32, 3)],
        load(Memory::new().relaxed(Scope::Device)),
    );
}

#[test]
fn scalar_loads() {
    let load = |[buffer, offset]: [Value; 2]| Op::SBufferLoad { buffer, offset, unit: OffsetUnit::Elements };
    for n in [2, 3, 4, 8, 16] {
        accepted_op([BUFFER, U32], &[Type::Vector(Scalar::F32, n)], load);
    }
    accepted_op([BUFFER, IDX], &[U32], load);
    for (ty, what) in [(F16, "f16"), (F64, "f64"), (Type::Vector(Scalar::U32, 6), "u32x6")] {
        let expected = format!("a scalar load of {what}; allowed are 1, 2, 3, 4, 8 and 16 elements of 32 bits");
        refused_op(&expected, [BUFFER, U32], &[ty], load);
    }
    refused_op("the offset is i32; allowed are u32, idx", [BUFFER, I32], &[U32], load);
    refused_op(
        "a scalar load from a buffer of u16; allowed are elements of 4 bytes or more, which align it",
        [Type::Buffer(Scalar::U16), U32],
        &[U32],
        load,
    );
    accepted(|ir| {
        let offset = ir.value(U32);
        ir.push(load([Value(0), offset]), &[U32]);
    });
    refused("loads from buffer `out`, which is declared as only written; declare it as `InOut`", |ir| {
        let offset = ir.value(U32);
        ir.push(load([Value(1), offset]), &[U32]);
    });
    refused(
        "a scalar load from buffer `in`, which is declared as written; the scalar cache does not see writes: use buffer_load",
        |ir| {
            ir.declare(0, Access::ReadWrite, 4);
            let offset = ir.value(U32);
            ir.push(load([Value(0), offset]), &[U32]);
        },
    );
}

#[test]
fn compare_and_swap_in_buffers() {
    let (unit, scope) = (OffsetUnit::Bytes, Scope::Device);
    let cas = |[expected, value, buffer, offset]: [Value; 4]| {
        let (scalar, mask, nontemporal) = (None, None, false);
        Op::BufferAtomicCas { expected, value, buffer, offset, unit, scalar, mask, nontemporal, scope }
    };
    accepted_op([F32, F32, BUFFER, IDX], &[F32], cas);
    refused_op("the expected value is u32 where f32 is wanted", [U32, F32, BUFFER, U32], &[F32], cas);
    refused_op("the value is u32 where f32 is wanted", [F32, U32, BUFFER, U32], &[F32], cas);
    refused_op(
        "`buffer_atomic_cas` of u16; it is defined on i32, u32, i64, u64, f32, f64",
        [U16, U16, BUFFER, U32],
        &[U16],
        cas,
    );
    refused_op(
        "the scalar offset is idx where u32 is wanted",
        [U32, U32, BUFFER, U32, IDX],
        &[U32],
        |[expected, value, buffer, offset, scalar]| {
            let (scalar, mask, nontemporal) = (Some(scalar), None, true);
            Op::BufferAtomicCas { expected, value, buffer, offset, unit, scalar, mask, nontemporal, scope }
        },
    );
    for (param, why) in [
        (0, "stores to buffer `in`, which is declared as only read; declare it as `Out` or `InOut`"),
        (1, "loads from buffer `out`, which is declared as only written; declare it as `InOut`"),
    ] {
        refused(why, |ir| {
            let (v, offset) = (ir.value(U32), ir.value(U32));
            ir.push(cas([v, v, Value(param), offset]), &[U32]);
        });
    }
}

#[test]
fn marks() {
    accepted_op([], &[], |[]| Op::AsyncMark);
    accepted_op([], &[], |[]| Op::WaitAsyncMark(31));
    refused_op("wait_asyncmark 32; allowed are 0 to 31", [], &[], |[]| Op::WaitAsyncMark(32));
}

#[test]
fn what_a_pointer_comes_from_is_found_in_time_that_grows_with_the_kernel() {
    // Every pointer is made of the one before; each is stored through. Looking at every origin of each would take minutes.
    let n = 100_000;
    let kernel = |last: Access| {
        message(Target::GFX950, |ir| {
            ir.declare(1, Access::ReadWrite, 4);
            ir.declare(0, last, 4);
            let (v, one) = (ir.value(U32), ir.value(U32));
            let mut pointer = ir.push(Op::BufferPtr(Value(0)), &[GLOBAL])[0];
            for _ in 0..n {
                pointer = ir.push(Op::PtrAdd(pointer, one), &[GLOBAL])[0];
                ir.push(Op::PtrStore { value: v, pointer, memory: Memory::new() }, &[]);
            }
        })
    };
    let start = std::time::Instant::now();
    assert_eq!(kernel(Access::ReadWrite), Ok(()));
    assert_eq!(
        kernel(Access::Read),
        Err("stores to buffer `in`, which is declared as only read; declare it as `Out` or `InOut`".to_owned())
    );
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
}
