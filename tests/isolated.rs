//! Promise: a compile in a child process gives what one in this process gives, and whatever happens to the child, this process
//! has an error in hand and can compile on.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use lathe_codegen::Options;
use lathe_dsl::artifact::Artifact;
use lathe_dsl::builder::{self, LdsPtr, V};
use lathe_dsl::ir::{Axis, Kernel, Launch};
use lathe_dsl::{Target, trace};
use lathe_kernels::mla::combine::MlaCombine;
use lathe_runtime::Error;
use lathe_runtime::jit::isolated::{End, Isolated, IsolatedError};
use lathe_runtime::jit::{Code, Compiler, Jit};

use crate::{GOLDEN, compiled};

/// `lathe`, beside this test, of the same profile. Built first: nothing else makes it as new as this test.
pub static LATHE: LazyLock<PathBuf> = LazyLock::new(|| {
    let exe = std::env::current_exe().expect("this test's path");
    let dir = exe.parent().and_then(|deps| deps.parent()).expect("target/PROFILE/deps/TEST");
    let profile = match dir.file_name().and_then(|name| name.to_str()) {
        Some("debug") => "dev",
        Some(name) => name,
        None => panic!("{} names no profile", dir.display()),
    };
    let target_dir = dir.parent().expect("a target directory");
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--package", "lathe-kernels", "--bin", "lathe", "--profile", profile])
        // With the features that this test has, so that both share one build.
        .args(["--features", "lathe-kernels/hip"])
        .arg("--target-dir")
        .arg(target_dir)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()
        .expect("cargo runs");
    assert!(status.success(), "`lathe` does not build");
    dir.join("lathe")
});

fn worker() -> Isolated {
    Isolated::new(&*LATHE, ["compile-worker"])
}

fn object(compiler: &Isolated, kernel: &Arc<Kernel>, target: Target) -> Result<Artifact, Error> {
    match compiler.compile(kernel, target)?.0 {
        Code::Object(artifact) => Ok(*artifact),
        other => panic!("no object: {other:?}"),
    }
}

#[test]
fn the_code_is_the_same_byte_for_byte() {
    for (_, key) in GOLDEN {
        for target in Target::MAIN {
            let here = compiled(key, target);
            let there = object(&worker(), &Arc::new(key.trace(target).unwrap()), target).unwrap();
            assert_eq!(there.code, here.code);
            assert_eq!((there.target, &there.symbol), (here.target, &here.symbol));
            assert_eq!(there.record.resources, here.record.resources);
            assert!(there.record.compile_ms > 0.0 && !there.record.stages.is_empty());
        }
    }
}

#[test]
fn the_worker_names_its_toolchain() {
    let fingerprint = worker().fingerprint().expect("an answer");
    let here = lathe_codegen::toolchain();
    assert_eq!((fingerprint.llvm.as_str(), fingerprint.lathe.as_str()), (here.llvm.as_str(), here.lathe));
}

#[test]
fn a_refusal_keeps_its_words() {
    let kernel = builder::build("wide", Target::SM_90, Launch::linear(1, 64), vec![], |k| {
        let row: V<'_, LdsPtr<u32>> = k.lds::<u32>("row", 60_000);
        k.ptr_store(k.constant(0u32), row + k.thread_id(Axis::X));
    })
    .unwrap();
    let here = lathe_codegen::compile(&kernel, Target::SM_90, &Options::default()).unwrap_err().to_string();
    let there = object(&worker(), &Arc::new(kernel), Target::SM_90).unwrap_err().to_string();
    assert_eq!(there, here);
    assert!(there.contains("LDS"), "{there}");
}

/// One that dies by SIGSEGV when it first compiles, and is sound from then on.
#[test]
fn a_crash_is_told_once_and_the_next_compile_works() {
    let dir = tempfile::tempdir().unwrap();
    let crashed = dir.path().join("crashed");
    let script = format!(
        "if [ -e '{0}' ]; then exec '{1}' compile-worker; fi\n: > '{0}'; cat > /dev/null; kill -SEGV $$",
        crashed.display(),
        LATHE.display()
    );
    let jit = Jit::new(Isolated::new("/bin/sh", ["-c", &script]).with_reproducer_dir(dir.path()));
    let key = MlaCombine { ranks: 2, tokens: 3 };
    // The key's fingerprint is asked for first: that worker is the one that crashes, unless nobody asks.
    let error = match jit.get(&key, Target::GFX950) {
        Err(error) => error,
        Ok(_) => {
            std::fs::remove_file(&crashed).unwrap();
            jit.get(&MlaCombine { ranks: 4, tokens: 3 }, Target::GFX950).unwrap_err()
        }
    };
    let message = error.to_string();
    for words in ["`mla_combine", "gfx950", "signal 11 (SIGSEGV)", "(reproducer: "] {
        assert!(message.contains(words), "`{words}` is not in: {message}");
    }
    for ranks in [2, 4] {
        let got = jit.get(&MlaCombine { ranks, tokens: 3 }, Target::GFX950).unwrap();
        let Code::Object(artifact) = got.code() else { panic!("no object") };
        assert!(artifact.code.starts_with(b"\x7fELF"));
    }

    // What it leaves behind is enough to see the failure again, or that it is mended.
    let (_, rest) = message.split_once("(reproducer: ").unwrap();
    let reproducer = PathBuf::from(rest.trim_end_matches(')'));
    let request = std::fs::File::open(reproducer.join("request.bin")).unwrap();
    let again = Command::new(&*LATHE).arg("compile-worker").stdin(Stdio::from(request)).output().unwrap();
    assert!(again.status.success() && again.stdout.windows(4).any(|w| w == b"\x7fELF"));
}

#[test]
fn a_compile_that_takes_too_long_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let kernel = Arc::new(trace(&MlaCombine { ranks: 8, tokens: 8 }, Target::GFX950).unwrap());
    let hurried = worker().with_timeout(Duration::from_millis(1)).with_reproducer_dir(dir.path());
    let Err(Error::Compile(error)) = object(&hurried, &kernel, Target::GFX950) else {
        panic!("an error of the compiler")
    };
    let Some(IsolatedError::Worker(lost)) = error.downcast_ref() else { panic!("a lost worker, not {error}") };
    assert_eq!(lost.end, End::TimedOut(Duration::from_millis(1)));
    object(&worker(), &kernel, Target::GFX950).unwrap();
}

#[test]
fn a_request_that_is_none_ends_the_worker_with_a_message() {
    let output = Command::new(&*LATHE).arg("compile-worker").stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("the request on standard input is no message of Lathe's"), "{message}");
}
