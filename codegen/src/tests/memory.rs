//! Buffer and LDS accesses: exact at every end, and no dearer than what is known allows.

use lathe_dsl::Target;
use lathe_dsl::builder::{Builder, Bytes, Vector, bf16};
use lathe_dsl::ir::{Access, Axis, Kernel, Scalar};
use lathe_dsl::kernel::{In, Out};

use super::{buffer_of, count, has, kernel, lacks, text};
use crate::Level;

/// Loads four `f32` of a buffer of `len` elements at an offset, and stores their first to `y`.
fn load4(
    target: Target,
    len: u64,
    offset: impl for<'k> FnOnce(&'k Builder<'k>) -> lathe_dsl::V<'k, u32>,
    bytes: bool,
) -> Kernel {
    let params = vec![buffer_of("x", Scalar::F32, len, Access::Read), buffer_of("y", Scalar::F32, 1024, Access::Write)];
    kernel(target, params, move |k| {
        let (x, y) = (k.buffer::<f32, In>(0), k.buffer::<f32, Out>(1));
        let at = offset(k);
        let v = match bytes {
            true => k.buffer_load::<Vector<f32, 4>>(x, Bytes(at)),
            false => k.buffer_load::<Vector<f32, 4>>(x, at),
        };
        k.buffer_store(v, y, k.thread_id(Axis::X) * 4);
    })
}

fn tid<'k>(k: &'k Builder<'k>) -> lathe_dsl::V<'k, u32> {
    k.thread_id(Axis::X)
}

/// The load's part of the MLIR: what lies before `y`'s store.
fn mlir(k: &Kernel, target: Target) -> String {
    text(k, target, Level::Mlir)
}

#[test]
fn a_load_that_is_proved_to_fit_has_no_guard() {
    for target in Target::MAIN {
        let k = load4(target, 1024, |k| tid(k) * 4, false);
        let m = mlir(&k, target);
        lacks(&m, &["arith.cmpi", "arith.select", "arith.minui", "scf.if"]);
    }
}

#[test]
fn amd_clamps_an_aligned_offset_that_may_be_outside() {
    let target = Target::GFX950;
    // Aligned slots of a buffer that is a whole number of them: in or out, never astride.
    let k = load4(target, 512, |k| tid(k) * 4, false);
    let m = mlir(&k, target);
    has(&m, &["arith.minui", "arith.constant 512 : i32"]);
    lacks(&m, &["arith.cmpi", "arith.select", "scf.if"]);
    has(&text(&k, target, Level::LlvmIr), &["i16 0, i64 2048, i32 159744"]);
}

#[test]
fn what_was_added_with_wrapping_does_not_reach_the_instruction() {
    // The hardware adds an instruction's constant offset without wrapping.
    let target = Target::GFX950;
    let k = load4(target, 512, |k| (k.block_id(Axis::X) - tid(k)) * 16 + 64, true);
    let asm = text(&k, target, Level::Asm);
    has(&asm, &["v_min_u32", "buffer_load_dwordx4"]);
    lacks(&asm, &["offset:64"]);
}

#[test]
fn amd_guards_an_access_that_may_straddle_the_end() {
    let target = Target::GFX950;
    // 1022 elements: the last aligned slot is cut in two.
    let k = load4(target, 1022, |k| tid(k) * 4, false);
    let m = mlir(&k, target);
    has(&m, &["arith.cmpi ule", "arith.select", "arith.constant 1018 : i32", "arith.constant -256 : i32"]);
    // Unaligned slots.
    let k = load4(target, 512, |k| tid(k) * 2, false);
    has(&mlir(&k, target), &["arith.cmpi ule", "arith.select", "arith.constant 508 : i32"]);
    // In bytes the limit is in bytes.
    let k = load4(target, 512, |k| tid(k) * 8, true);
    has(&mlir(&k, target), &["arith.constant 2032 : i32"]);
}

#[test]
fn amd_guards_an_offset_whose_bytes_pass_2_to_the_32() {
    let target = Target::GFX950;
    let k = load4(target, 512, |k| tid(k) * 0x0100_0000, false);
    let m = mlir(&k, target);
    // Slots stay aligned, so clamping to the end is enough.
    has(&m, &["arith.minui", "arith.constant 512 : i32"]);
    lacks(&m, &["arith.cmpi"]);
}

#[test]
fn nvidia_branches_around_an_access_that_may_be_outside() {
    let target = Target::SM_90;
    let k = load4(target, 512, |k| tid(k) * 4, false);
    let m = mlir(&k, target);
    has(&m, &["arith.cmpi ule", "scf.if", "arith.constant 508 : i32", "arith.constant dense<0>"]);
    // 64-bit addresses: the offset is widened before it is scaled.
    has(&m, &["arith.extui", "llvm.getelementptr", "-> !llvm.ptr<1>, i32"]);
    let store = super::kernel(target, vec![buffer_of("y", Scalar::F32, 100, Access::Write)], |k| {
        k.buffer_store(k.constant(1.0f32), k.buffer::<f32, Out>(0), k.thread_id(Axis::X));
    });
    has(&mlir(&store, target), &["scf.if", "arith.constant 99 : i32"]);
}

#[test]
fn accesses_are_as_wide_as_their_alignment_allows() {
    let aligned = |target| load4(target, 4096, |k| tid(k) * 4, false);
    let loose = |target| load4(target, 4096, tid, false);
    has(&text(&aligned(Target::SM_90), Target::SM_90, Level::Asm), &["ld.global.nc.v4.b32", "st.global.v4.b32"]);
    let ptx = text(&loose(Target::SM_90), Target::SM_90, Level::Asm);
    assert_eq!(count(&ptx, "ld.global.nc.b32"), 4, "{ptx}");
    // AMD takes any dword alignment.
    has(&text(&aligned(Target::GFX950), Target::GFX950, Level::Asm), &["buffer_load_dwordx4", "buffer_store_dwordx4"]);
    has(&text(&loose(Target::GFX950), Target::GFX950, Level::Asm), &["buffer_load_dwordx4"]);
}

#[test]
fn every_width_has_its_instruction() {
    fn copy<'k, D: lathe_dsl::builder::Data + lathe_dsl::builder::Plain>(k: &'k Builder<'k>) {
        let n = D::TYPE.lanes();
        let v = k.buffer_load::<D>(k.buffer::<u64, In>(0).cast(), k.thread_id(Axis::X) * n);
        k.buffer_store(v, k.buffer::<u64, Out>(1).cast(), k.thread_id(Axis::X) * n);
    }
    let check = |make: fn(Target) -> Kernel, amd: &str, nvidia: &str| {
        let asm = text(&make(Target::GFX950), Target::GFX950, Level::Asm);
        has(&asm, &[&format!("buffer_load_{amd} "), &format!("buffer_store_{}", amd.trim_start_matches('u'))]);
        has(&text(&make(Target::SM_90), Target::SM_90, Level::Asm), &[&format!("ld.global.nc.{nvidia}")]);
    };
    fn params() -> Vec<lathe_dsl::ir::Param> {
        vec![buffer_of("x", Scalar::U64, 1024, Access::Read), buffer_of("y", Scalar::U64, 1024, Access::Write)]
    }
    check(|t| kernel(t, params(), copy::<u16>), "ushort", "b16");
    check(|t| kernel(t, params(), copy::<bf16>), "ushort", "b16");
    check(|t| kernel(t, params(), copy::<f32>), "dword", "b32");
    check(|t| kernel(t, params(), copy::<Vector<bf16, 2>>), "dword", "b32");
    check(|t| kernel(t, params(), copy::<u64>), "dwordx2", "v2.b32");
    check(|t| kernel(t, params(), copy::<Vector<u16, 8>>), "dwordx4", "v4.b32");
}

/// Writes and reads LDS: `at` gives the element where four `f32` are read.
fn lds(target: Target, at: impl for<'k> FnOnce(&'k Builder<'k>) -> lathe_dsl::V<'k, u32>) -> Kernel {
    kernel(target, vec![buffer_of("y", Scalar::F32, 4096, Access::Write)], move |k| {
        let first = k.lds::<u32>("first", 3);
        let second = k.lds::<f32>("second", 2048);
        let i = k.thread_id(Axis::X);
        k.ptr_store(i, first + i.rem_floor(3));
        k.ptr_store(i.to::<f32>(), second + i);
        k.barrier();
        let v = k.ptr_load::<Vector<f32, 4>>(second + at(k));
        let w = k.ptr_load::<u32>(first + i.rem_floor(2));
        k.buffer_store(v, k.buffer::<f32, Out>(0), i * 4);
        k.buffer_store(w, k.buffer::<f32, Out>(0).cast(), i);
    })
}

#[test]
fn lds_arrays_share_one_block_in_layout_order() {
    for target in Target::MAIN {
        let k = lds(target, |k| tid(k) * 4);
        let (offsets, size) = k.lds_layout();
        let m = mlir(&k, target);
        has(
            &m,
            &[&format!(
                "llvm.mlir.global internal @k__lds() {{addr_space = 3 : i32, alignment = 16 : i64}} : !llvm.array<{size} x i8>"
            )],
        );
        assert_eq!(count(&m, "llvm.mlir.global"), 1);
        has(&m, &[&format!("[{}] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8", offsets[1])]);
        has(&m, &["gpu.barrier"]);
    }
}

#[test]
fn lds_accesses_are_as_wide_as_their_alignment_allows() {
    has(&text(&lds(Target::GFX950, |k| tid(k) * 4), Target::GFX950, Level::Asm), &["ds_read_b128"]);
    has(&text(&lds(Target::SM_90, |k| tid(k) * 4), Target::SM_90, Level::Asm), &["ld.shared.v4.b32"]);
    let ptx = text(&lds(Target::SM_90, tid), Target::SM_90, Level::Asm);
    lacks(&ptx, &["ld.shared.v4", "ld.shared.v2"]);
    has(
        &text(&lds(Target::GFX950, tid), Target::GFX950, Level::LlvmIr),
        &["load <4 x i32>, ptr addrspace(3) %", "align 4"],
    );
}
