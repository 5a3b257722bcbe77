//! What a user sees when a compile does not succeed, and that the process goes on.

use std::fs;

use lathe_dsl::Target;
use lathe_dsl::ir::{Access, Axis, Kernel, Launch, Scalar};
use lathe_dsl::kernel::{In, InOut};

use super::{Sabotage, buffer, buffer_of, kernel, kernel_with};
use crate::{Error, Level, Options, Stage, compile, emit};

/// Copies one buffer in place, through LDS.
fn copy(target: Target) -> Kernel {
    kernel(target, vec![buffer("x", Scalar::F32, Access::ReadWrite)], |k| {
        let x = k.buffer::<f32, InOut>(0);
        let i = k.thread_id(Axis::X);
        let value = k.buffer_load::<f32>(x, i);
        k.buffer_store(value + value, x, i);
    })
}

/// Compiles with a failure built in, and returns the error with the reproducer's files.
fn fail(target: Target, sabotage: Sabotage) -> (Box<crate::Failure>, Vec<(String, String)>) {
    let dir = tempfile::tempdir().unwrap();
    let mut options = Options::default().with_reproducer_dir(dir.path().join("made/on/demand"));
    options.sabotage = Some(sabotage);
    let error = compile(&copy(target), target, &options).unwrap_err();
    let shown = error.to_string();
    let Error::Failed(failure) = error else { panic!("{shown}") };
    let path = failure.reproducer.clone().unwrap();
    for part in ["kernel `k`", &target.to_string(), failure.stage.name(), &path.display().to_string()] {
        assert!(shown.contains(part), "`{part}` is not in {shown}");
    }
    let mut files: Vec<_> = fs::read_dir(&path)
        .unwrap()
        .map(|f| {
            let f = f.unwrap();
            (f.file_name().into_string().unwrap(), fs::read_to_string(f.path()).unwrap())
        })
        .collect();
    files.sort();
    // Whatever happened, the next kernel compiles.
    compile(&copy(target), target, &Options::default()).unwrap();
    (failure, files)
}

fn names(files: &[(String, String)]) -> Vec<&str> {
    files.iter().map(|(n, _)| n.as_str()).collect()
}

#[test]
fn an_unselectable_kernel_is_an_error_and_the_process_goes_on() {
    // Instructions of other chips.
    for (target, intrinsic) in
        [(Target::GFX950, "llvm.amdgcn.buffer.wbinvl1.sc"), (Target::SM_90, "llvm.nvvm.tcgen05.wait.ld")]
    {
        let (failure, files) = fail(target, Sabotage::Unselectable(intrinsic));
        assert!(failure.fatal && failure.stage == Stage::Codegen, "{failure:?}");
        assert!(failure.message.to_lowercase().contains("cannot select"), "{failure:?}");
        assert_eq!(names(&files), ["error.txt", "flags.txt", "kernel.kir", "kernel.mlir"]);
        assert!(files[1].1.contains(target.chip().triple) && files[1].1.contains("22."), "{}", files[1].1);
        assert_eq!(files[2].1, copy(target).to_string());
        assert!(files[3].1.contains(intrinsic), "{}", files[3].1);
    }
}

#[test]
fn an_operation_that_no_pass_lowers_is_an_error_at_its_source() {
    let (failure, files) = fail(Target::GFX950, Sabotage::Unlowerable);
    assert!(!failure.fatal && matches!(failure.stage, Stage::Passes | Stage::Llvm), "{failure:?}");
    assert!(failure.message.contains("gpu.printf"), "{failure:?}");
    let location = failure.location.unwrap();
    assert!(location.file.ends_with("failures.rs"), "{location}");
    assert!(failure.to_string().starts_with(&location.to_string()), "{failure}");
    assert_eq!(names(&files), ["error.txt", "flags.txt", "kernel.kir", "kernel.mlir"]);
}

#[test]
fn mlir_s_verifier_always_runs() {
    let (failure, files) = fail(Target::SM_90, Sabotage::Invalid);
    assert_eq!(failure.stage, Stage::Mlir);
    assert!(failure.message.contains("arith.constant"), "{failure:?}");
    assert_eq!(names(&files), ["error.txt", "flags.txt", "kernel.kir"]);
}

#[test]
fn a_panic_is_an_error() {
    let (failure, _) = fail(Target::GFX950, Sabotage::Panic);
    assert_eq!((failure.stage, failure.message.as_str()), (Stage::Mlir, "panic: sabotaged"));
}

#[test]
fn a_reproducer_that_cannot_be_written_is_said_and_hides_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "in the way").unwrap();
    let mut options = Options::default().with_reproducer_dir(file.join("sub"));
    options.sabotage = Some(Sabotage::Invalid);
    let shown = compile(&copy(Target::GFX950), Target::GFX950, &options).unwrap_err().to_string();
    assert!(shown.contains("arith.constant") && shown.contains("no reproducer"), "{shown}");
}

/// The refusal of a kernel.
fn refusal(kernel: &Kernel, target: Target) -> String {
    let error = emit(kernel, target, &Options::default(), Level::Mlir).unwrap_err();
    assert!(matches!(error, Error::Refused { .. }), "{error:?}");
    error.to_string()
}

#[test]
fn what_the_chip_does_not_have_is_refused_by_name() {
    let huge = buffer_of("everything", Scalar::F32, 1 << 30, Access::Read);
    let k = kernel(Target::GFX950, vec![huge], |k| {
        k.buffer_load::<f32>(k.buffer::<f32, In>(0), k.thread_id(Axis::X));
    });
    let shown = refusal(&k, Target::GFX950);
    assert!(shown.contains("`k` is refused for gfx950") && shown.contains("`everything`"), "{shown}");

    let lds = |target, bytes: u32| {
        kernel(target, vec![buffer("x", Scalar::F32, Access::ReadWrite)], move |k| {
            let (x, lds) = (k.buffer::<f32, InOut>(0), k.lds::<f32>("scratchpad", bytes / 4));
            let i = k.thread_id(Axis::X);
            k.ptr_store(k.buffer_load::<f32>(x, i), lds + i);
            k.barrier();
            k.buffer_store(k.ptr_load::<f32>(lds + (255 - i)), x, i);
        })
    };
    let shown = refusal(&lds(Target::GFX950, 160 * 1024 + 4), Target::GFX950);
    assert!(shown.contains("scratchpad") && shown.contains("163840"), "{shown}");
    let shown = refusal(&lds(Target::SM_90, 227 * 1024 + 4), Target::SM_90);
    assert!(shown.contains("scratchpad") && shown.contains("232448"), "{shown}");
    for (target, most, dynamic) in [
        (Target::GFX950, 160 * 1024, 0),
        (Target::GFX1201, 64 * 1024, 0),
        (Target::SM_90, 48 * 1024, 0),
        (Target::SM_90, 227 * 1024, 227 * 1024),
        (Target::SM_89, 99 * 1024, 99 * 1024),
    ] {
        let made = compile(&lds(target, most), target, &Options::default()).unwrap();
        let resources = &made.record.resources;
        assert_eq!((resources.lds_bytes, resources.dynamic_lds_bytes), (most, dynamic));
        if dynamic > 0 {
            let ptx = String::from_utf8(made.code).unwrap();
            assert!(ptx.contains(".extern .shared .align 16 .b8 k__lds[];"), "{ptx}");
        }
    }
}

#[test]
fn a_kernel_traced_for_another_chip_is_refused() {
    let shown = refusal(&copy(Target::GFX950), Target::SM_90);
    assert!(shown.contains("sm_90"), "{shown}");
}

#[test]
fn ill_formed_kernel_ir_is_refused_at_its_source() {
    let mut k = kernel_with(Target::GFX950, Launch::linear(1, 64), vec![], |k| {
        let _ = k.thread_id(Axis::X) + 1;
    });
    // The addition now takes its own result.
    let own = k.body.insts.last().unwrap().results[0];
    if let lathe_dsl::ir::Op::Binary(_, a, _) = &mut k.body.insts.last_mut().unwrap().op {
        *a = own;
    }
    let shown = refusal(&k, Target::GFX950);
    assert!(shown.contains("failures.rs:"), "{shown}");
}
