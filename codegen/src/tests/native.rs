//! Inline assembly and raw intrinsics.

use lathe_dsl::ir::Kernel;
use lathe_dsl::prelude::*;

use super::{Body, asm, has, kernel, lacks, usual_params};
use crate::{Error, Options, compile};

fn save<'k>(k: &'k Builder<'k>, v: V<'k, u32>) {
    k.buffer_store(v, k.buffer::<u32, InOut>(1), k.thread_id(Axis::X));
}

#[test]
fn the_first_form_that_fits_is_taken_and_else_the_meaning() {
    let body: Body = |k| {
        let forms = [
            NativeForm::asm("gfx950", "v_lshl_add_u32 $0, $1, 4, $2", "=v,v,v"),
            NativeForm::asm("amdgpu", "v_mad_u32_u24 $0, $1, 16, $2", "=v,v,v"),
            NativeForm::asm("sm_90", "mad.lo.u32 $0, $1, 16, $2;", "=r,r,r"),
        ];
        let (a, b) = (k.thread_id(Axis::X), k.param::<u32>(3));
        save(k, k.native((a, b), forms, |(a, b)| (a << 4) ^ b));
    };
    has(&asm(Target::GFX950, body), &["v_lshl_add_u32", ", 4, "]);
    lacks(&asm(Target::GFX950, body), &["v_mad_u32_u24", "v_xor"]);
    has(&asm(Target::GFX942, body), &["v_mad_u32_u24"]);
    has(&asm(Target::GFX1201, body), &["v_mad_u32_u24"]);
    has(&asm(Target::SM_90, body), &["mad.lo.u32"]);
    let other = asm(Target::SM_89, body);
    has(&other, &["xor.b32"]);
    lacks(&other, &["mad.lo.u32"]);
}

#[test]
fn several_results_and_intrinsics() {
    let body: Body = |k| {
        let forms = [
            NativeForm::asm("amdgpu", "v_mov_b32 $0, $2\nv_mov_b32 $1, $3", "=&v,=&v,v,v"),
            NativeForm::asm("nvptx", "mov.b32 $0, $2; mov.b32 $1, $3;", "=&r,=&r,r,r"),
        ];
        let (a, b) = (k.thread_id(Axis::X), k.param::<u32>(3));
        let (a, b) = k.native((a, b), forms, |(a, b)| (a, b));
        let forms = [NativeForm::intrinsic("amdgpu", "llvm.amdgcn.ubfe.i32")];
        let five = k.constant(5u32);
        let field = k.native((a, b, five), forms, |(a, b, _)| (a >> b) & 31);
        save(k, field + b);
    };
    has(&asm(Target::GFX950, body), &["v_mov_b32", "v_bfe_u32"]);
    has(&asm(Target::SM_90, body), &["mov.b32", "shr.u32"]);
}

#[test]
fn effects_keep_it_where_it_stands() {
    let unused: Body = |k| {
        let forms = [NativeForm::asm("amdgpu", "s_nop 3", ""), NativeForm::asm("nvptx", "nanosleep.u32 7;", "")];
        k.native((), forms, |()| ());
    };
    let kept: Body = |k| {
        let forms = [
            NativeForm::asm("amdgpu", "s_nop 3", "").effects(),
            NativeForm::asm("nvptx", "nanosleep.u32 7;", "").effects(),
        ];
        k.native((), forms, |()| ());
    };
    for (target, text) in [(Target::GFX950, "s_nop 3"), (Target::SM_90, "nanosleep.u32 7")] {
        lacks(&asm(target, unused), &[text]);
        has(&asm(target, kept), &[text]);
    }
}

/// The failure of a native form of one operand and one result.
fn fails(target: Target, form: NativeForm) -> Box<crate::Failure> {
    let k: Kernel = kernel(target, usual_params(), |k| {
        save(k, k.native(k.thread_id(Axis::X), [form], |a| a + 1));
    });
    let dir = tempfile::tempdir().unwrap();
    match compile(&k, target, &Options::default().with_reproducer_dir(dir.path())) {
        Err(Error::Failed(failure)) => failure,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_the_compiler_does_not_know_is_an_error_at_its_source() {
    for (target, form) in [
        (Target::GFX950, NativeForm::intrinsic("amdgpu", "llvm.amdgcn.no.such.thing")),
        (Target::SM_90, NativeForm::intrinsic("nvptx", "llvm.nvvm.no.such.thing")),
        (Target::GFX950, NativeForm::intrinsic("amdgpu", "llvm.amdgcn.ubfe.i32")),
        (Target::GFX950, NativeForm::asm("amdgpu", "v_no_such_thing $0, $1", "=v,v")),
        (Target::GFX950, NativeForm::asm("amdgpu", "v_mov_b32 $0, $1", "=q,v")),
        (Target::GFX950, NativeForm::asm("amdgpu", "v_mov_b32 $0, $1", "not constraints")),
        (Target::SM_90, NativeForm::asm("nvptx", "mov.b32 $0, $1;", "=q9,r")),
    ] {
        let what = format!("{form:?}");
        let failure = fails(target, form);
        let location = failure.location.unwrap_or_else(|| panic!("{what}: {failure:?}"));
        assert!(location.file.ends_with("native.rs"), "{what}: {failure:?}");
        // The process goes on.
        asm(target, |k| save(k, k.thread_id(Axis::X)));
    }
}
