//! Promise: any number of threads may compile at once, and a process may compile for ever: its memory does not grow.

use std::process::Command;

use lathe_codegen::Options;
use lathe_dsl::Target;
use lathe_dsl::builder;
use lathe_dsl::ir::{Access, Axis, Kernel, Launch, Param, ParamKind, Scalar};
use lathe_dsl::kernel::InOut;
use lathe_kernels::mla::combine::MlaCombine;

use crate::compiled;

/// 8 threads compile the same 20 keys, each in another order; everyone gets what one thread alone gets.
#[test]
fn threads_that_compile_at_once_get_what_one_alone_gets() {
    let keys: Vec<_> = (0..20)
        .map(|i| {
            let key = MlaCombine { ranks: [1, 2, 4, 8][i % 4], tokens: [3, 8, 100, 1000, 7][i % 5] };
            (key, if i % 3 == 0 { Target::SM_90 } else { Target::GFX950 })
        })
        .collect();
    let alone: Vec<_> = keys.iter().map(|(key, target)| compiled(key, *target).code).collect();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (keys, alone) = (&keys, &alone);
            scope.spawn(move || {
                for i in 0..keys.len() {
                    let at = (i * 7 + thread * 3) % keys.len();
                    let (key, target) = keys[at];
                    assert_eq!(compiled(&key, target).code, alone[at], "{key:?} for {target}");
                }
            });
        }
    });
}

/// Compiles of the memory test.
const COMPILES: u32 = 1000;

/// Compiles before its first look: allocators and LLVM's tables have their size by then.
const SETTLED: u32 = 400;

/// Compiles between two looks.
const BETWEEN: u32 = 100;

/// Most that the resident set may grow with each compile after that, in bytes, between most looks: an allocator may take a new
/// piece once. A leaked LLVM or MLIR context, module or thread stack is hundreds of KiB, and grows between all of them.
const MAX_GROWTH: i64 = 1024;

/// Set for the process that the memory test starts.
const MEASURE: &str = "LATHE_TEST_MEASURE_MEMORY";

fn resident_bytes() -> i64 {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages: i64 = statm.split(' ').nth(1).and_then(|n| n.parse().ok()).expect("resident pages");
    pages * 4096
}

fn tiny(target: Target) -> Kernel {
    let kind = ParamKind::Buffer { elem: Scalar::F32, len: 64, access: Access::ReadWrite, align: 4 };
    builder::build("tiny", target, Launch::linear(1, 64), vec![Param { name: "x", kind }], |k| {
        let (x, i) = (k.buffer::<f32, InOut>(0), k.thread_id(Axis::X));
        k.buffer_store(k.buffer_load::<f32>(x, i) + 1.0, x, i);
    })
    .expect("traces")
}

/// In a process of its own, since the other tests of this one use memory, too.
#[test]
#[cfg(target_os = "linux")]
fn memory_stays_flat_over_a_thousand_compiles() {
    let exe = std::env::current_exe().unwrap();
    let args = ["--exact", "threads::measure_memory", "--ignored", "--nocapture", "--test-threads=1"];
    let output = Command::new(exe).args(args).env(MEASURE, "1").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("bytes a compile"),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
#[ignore = "run by memory_stays_flat_over_a_thousand_compiles"]
fn measure_memory() {
    if std::env::var_os(MEASURE).is_none() {
        return;
    }
    let kernels = [Target::GFX950, Target::SM_90].map(|target| (tiny(target), target));
    let mut looks = vec![];
    for i in 0..COMPILES {
        let (kernel, target) = &kernels[i as usize % 2];
        lathe_codegen::compile(kernel, *target, &Options::default()).expect("compiles");
        if (i + 1).is_multiple_of(BETWEEN) {
            let resident = resident_bytes();
            println!("after {} compiles: {} KiB resident", i + 1, resident / 1024);
            if i + 1 >= SETTLED {
                looks.push(resident);
            }
        }
    }
    let mut growths: Vec<i64> = looks.windows(2).map(|pair| (pair[1] - pair[0]) / i64::from(BETWEEN)).collect();
    growths.sort_unstable();
    // The larger of the two in the middle.
    let growth = growths[growths.len() / 2];
    println!("{growth} bytes a compile");
    assert!(growth <= MAX_GROWTH, "memory grows by {growth} bytes a compile");
}
