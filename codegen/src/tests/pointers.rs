//! Pointers: exact arithmetic, accesses with alignment, order, and hints.

use lathe_dsl::prelude::*;

use super::{Body, asm, becomes, count, has, kernel, lacks, text, usual_params};
use crate::Level;

fn mlir(target: Target, body: Body) -> String {
    text(&kernel(target, usual_params(), body), target, Level::Mlir)
}

fn tid<'k>(k: &'k Builder<'k>) -> V<'k, u32> {
    k.thread_id(Axis::X)
}

fn base<'k>(k: &'k Builder<'k>) -> V<'k, GlobalPtr<f32>> {
    k.param::<u64>(2).to_ptr::<f32>()
}

#[test]
fn counts_are_exact() {
    // Unsigned ones are never negative, signed ones may be, and all reach beyond 32 bits of bytes.
    let unsigned: Body = |k| k.ptr_store(1.0f32.into_v(k), base(k) + k.param::<u32>(3));
    let signed: Body = |k| k.ptr_store(1.0f32.into_v(k), base(k) + k.param::<u32>(3).to::<i32>());
    let wide: Body = |k| k.ptr_store(1.0f32.into_v(k), base(k) + k.param::<u64>(2));
    let index: Body = |k| k.ptr_store(1.0f32.into_v(k), base(k) + k.param::<u32>(3).to::<Idx>());
    let byte: Body = |k| k.ptr_store(1.0f32.into_v(k), base(k) + k.param::<u32>(3).to::<i8>());
    for target in Target::all() {
        let gep = "(!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32";
        has(&mlir(target, unsigned), &["arith.extui", gep]);
        has(&mlir(target, signed), &["arith.extsi", gep]);
        has(&mlir(target, wide), &[gep]);
        has(&mlir(target, index), &[gep]);
        has(&mlir(target, byte), &["arith.extsi %", gep]);
        for body in [unsigned, signed, wide, index, byte] {
            asm(target, body);
        }
    }
}

trait IntoV {
    fn into_v<'k>(self, k: &'k Builder<'k>) -> V<'k, f32>;
}

impl IntoV for f32 {
    fn into_v<'k>(self, k: &'k Builder<'k>) -> V<'k, f32> {
        k.constant(self)
    }
}

#[test]
fn addresses_and_pointers_are_the_same() {
    let round: Body = |k| {
        let p = k.buffer::<u32, InOut>(1).ptr() + tid(k);
        let address = p.to_int() + 64;
        k.ptr_store(k.ptr_load::<u32>(address.to_ptr::<u32>()), p);
        let bytes = p.cast::<u8>() + 8195u32;
        k.ptr_store(k.ptr_load::<u8>(bytes), p.cast::<u8>());
    };
    becomes(
        round,
        &[
            (Target::GFX950, &["global_load_dword ", "global_load_ubyte", "global_store_byte"]),
            (Target::GFX1201, &["global_load_b32", "global_load_u8", "global_store_b8"]),
            (Target::SM_90, &["ld.global.b32", "ld.global.b8", "st.global.b8"]),
        ],
    );
}

#[test]
fn accesses_are_as_wide_as_the_promised_alignment() {
    let wide: Body = |k| {
        let p = base(k) + tid(k) * 4;
        k.ptr_store_with(
            k.ptr_load_with::<Vector<f32, 4>>(p, Memory::new().align(16)),
            p + 2048u32,
            Memory::new().align(16),
        );
    };
    let bytes: Body = |k| {
        let p = base(k) + tid(k) * 4;
        k.ptr_store_with(k.ptr_load_with::<f32>(p, Memory::new().align(1)), p + 2048u32, Memory::new());
    };
    becomes(
        wide,
        &[
            (Target::GFX950, &["global_load_dwordx4", "global_store_dwordx4"]),
            (Target::GFX1201, &["global_load_b128", "global_store_b128"]),
            (Target::SM_90, &["ld.global.v4.b32", "st.global.v4.b32"]),
        ],
    );
    let ptx = asm(Target::SM_90, bytes);
    assert_eq!(count(&ptx, "ld.global.b8"), 4, "{ptx}");
    // Without a word the element's size counts.
    let plain: Body = |k| {
        let p = base(k) + tid(k) * 4;
        k.ptr_store(k.ptr_load::<Vector<f32, 4>>(p), p + 2048u32);
    };
    let ptx = asm(Target::SM_90, plain);
    assert_eq!(count(&ptx, "ld.global.b32"), 4, "{ptx}");
}

#[test]
fn volatile_and_nontemporal_accesses() {
    let volatile: Body = |k| {
        let p = base(k);
        let (a, b) =
            (k.ptr_load_with::<f32>(p, Memory::new().volatile()), k.ptr_load_with::<f32>(p, Memory::new().volatile()));
        k.ptr_store_with(a + b, p, Memory::new().volatile());
    };
    for target in Target::all() {
        let text = asm(target, volatile);
        let load = if target.chip().triple.starts_with("nvptx") { "ld.volatile.global" } else { "_load_" };
        assert_eq!(text.lines().filter(|l| l.contains(load) && !l.contains("s_load")).count(), 2, "{text}");
    }
    let stream: Body = |k| {
        let p = base(k) + tid(k);
        k.ptr_store_with(
            k.ptr_load_with::<f32>(p, Memory::new().nontemporal()),
            p + 256u32,
            Memory::new().nontemporal(),
        );
    };
    becomes(stream, &[(Target::GFX950, &[" nt"]), (Target::GFX1201, &["th:TH_LOAD_NT", "th:TH_STORE_NT"])]);
    asm(Target::SM_90, stream);
}

#[test]
fn atomic_accesses_have_their_order_and_scope() {
    let message: Body = |k| {
        let p = k.param::<u64>(2).to_ptr::<u32>();
        let flag = k.ptr_load_with::<u32>(p, Memory::new().acquire(Scope::Device));
        k.ptr_store_with(flag + 1, p + 1u32, Memory::new().release(Scope::System));
    };
    becomes(
        message,
        &[
            // The wave's own waits and cache operations belong to it.
            (Target::GFX950, &["sc1", "buffer_inv sc1", "buffer_wbl2 sc0 sc1"]),
            (Target::GFX942, &["sc1", "buffer_inv sc1", "buffer_wbl2 sc0 sc1"]),
            (Target::GFX1201, &["scope:SCOPE_DEV", "global_inv scope:SCOPE_DEV", "global_wb scope:SCOPE_SYS"]),
            (Target::SM_90, &["ld.acquire.gpu.global.b32", "st.release.sys.global.b32"]),
            (Target::SM_89, &["ld.acquire.gpu.global.b32", "st.release.sys.global.b32"]),
            (Target::SM_120A, &["ld.acquire.gpu.global.b32", "st.release.sys.global.b32"]),
        ],
    );
    let words: Body = |k| {
        let p = k.param::<u64>(2);
        let relaxed = Memory::new().relaxed(Scope::Workgroup);
        let a = k.ptr_load_with::<u8>(p.to_ptr::<u8>(), relaxed).to::<u64>();
        let b = k.ptr_load_with::<u16>(p.to_ptr::<u16>(), relaxed).to::<u64>();
        let c = k.ptr_load_with::<u64>(p.to_ptr::<u64>(), relaxed);
        let d = k.ptr_load_with::<f64>(p.to_ptr::<f64>(), relaxed).bitcast::<u64>();
        k.ptr_store_with(a + b + c + d, p.to_ptr::<u64>(), Memory::new().seq_cst(Scope::Wave));
    };
    for target in Target::all() {
        asm(target, words);
    }
    has(
        &asm(Target::SM_90, words),
        &["ld.relaxed.cta.global.b8", "ld.relaxed.cta.global.b16", "ld.relaxed.cta.global.b64"],
    );
}

#[test]
fn lds_pointers_stay_32_bits_wide() {
    let lds: Body = |k| {
        let p = k.lds::<u64>("words", 300);
        k.ptr_store(tid(k).to::<u64>(), p + tid(k));
        k.barrier();
        let q = (p + tid(k).to::<Idx>()).cast::<u32>() + 1u32;
        k.buffer_store(k.ptr_load::<u32>(q), k.buffer::<u32, InOut>(1), tid(k));
    };
    for target in Target::MAIN {
        let m = mlir(target, lds);
        has(&m, &["(!llvm.ptr<3>, i32) -> !llvm.ptr<3>"]);
        lacks(&m, &["(!llvm.ptr<3>, i64)"]);
        asm(target, lds);
    }
}
