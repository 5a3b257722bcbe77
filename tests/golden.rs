//! Promise: what is emitted changes only when somebody means it to. `cargo xtask bless` accepts a change.
//!
//! Each kernel is pinned for each target as Kernel IR, MLIR, LLVM IR before optimisation, and a digest of the machine code. MLIR and
//! LLVM IR that nobody would read to its end is pinned by how often each operation occurs and a hash of the text, which
//! `lathe compile KERNEL --emit mlir` (or `llvm`) prints.
//! The levels that LLVM makes are pinned for one LLVM; with another they are skipped, saying so.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;

use lathe_codegen::{Level, Options, mnemonics};
use lathe_dsl::Target;

use crate::{GOLDEN, compiled};

/// The LLVM whose output the snapshots hold.
const LLVM: &str = "22.1.8";

/// Most bytes of a text that is pinned as it is.
const READABLE: usize = 64 << 10;

/// Compares a text with the snapshot of this name.
pub fn pin_text(name: &str, text: &str) {
    insta::with_settings!({ snapshot_path => "snapshots", prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(name, text);
    });
}

fn pin(name: &str, target: Target, level: &str, text: &str) {
    pin_text(&format!("{name}.{target}.{level}"), text);
}

/// A text of MLIR or LLVM IR, or what it comes to if it is long.
fn readable(text: &str) -> Cow<'_, str> {
    if text.len() <= READABLE {
        return Cow::Borrowed(text);
    }
    let mut counts = BTreeMap::<String, u32>::new();
    for operation in text.lines().filter_map(operation) {
        *counts.entry(operation).or_default() += 1;
    }
    let mut digest = format!("lines: {}\nblake3: {}\n\n", text.lines().count(), blake3::hash(text.as_bytes()));
    for (operation, count) in counts {
        writeln!(digest, "{count:5} {operation}").unwrap();
    }
    Cow::Owned(digest)
}

/// The operation of a line of MLIR or LLVM IR, if it has one: an intrinsic's name, where it is a call of one.
fn operation(line: &str) -> Option<String> {
    let line = line.trim_start();
    let line = match line.split_once(" = ") {
        Some((results, rest)) if results.starts_with('%') => rest,
        _ => line,
    };
    let name = |s: &str| s.split(|c: char| !(c.is_alphanumeric() || "._".contains(c))).next().map(str::to_owned);
    let first = line.split_whitespace().next().filter(|word| word.starts_with(|c: char| c.is_alphabetic()))?;
    match line.split_once('@') {
        Some((_, callee)) if ["call", "tail", "llvm.call_intrinsic"].contains(&first) => name(callee),
        // Labels of blocks.
        _ if first.ends_with(':') => None,
        _ => name(first),
    }
}

#[test]
fn long_texts_are_told_by_their_operations() {
    for (line, told) in [
        ("  %4 = arith.addi %2, %3 : i32", Some("arith.addi")),
        ("      gpu.return", Some("gpu.return")),
        ("  scf.yield %4 : i32", Some("scf.yield")),
        (
            "  %6 = call range(i32 0, 24) i32 @llvm.nvvm.read.ptx.sreg.ctaid.x(), !dbg !6",
            Some("llvm.nvvm.read.ptx.sreg.ctaid.x"),
        ),
        ("  tail call void @llvm.nvvm.bar(i32 0)", Some("llvm.nvvm.bar")),
        ("  store i32 %3, ptr addrspace(1) %4, align 4", Some("store")),
        ("  br label %489, !dbg !205", Some("br")),
        ("489:                    ; preds = %4", None),
        ("entry:", None),
        ("!777 = !DILocation(line: 1139, scope: !3)", None),
        ("^bb1(%5: i32):", None),
        ("}", None),
    ] {
        assert_eq!(operation(line).as_deref(), told, "{line}");
    }
    let short = "short\n";
    assert_eq!(readable(short), short);
    let (one, other) = ("br label %1\n".repeat(READABLE), "br label %2\n".repeat(READABLE));
    assert!(readable(&one).ends_with(&format!("{READABLE} br\n")));
    assert_ne!(readable(&one), readable(&other));
}

/// Whether the levels that LLVM makes can be compared.
pub fn llvm_is_pinned() -> bool {
    let found = lathe_codegen::toolchain().llvm;
    if found != LLVM {
        // Past the test harness, which would keep it from a passing test's reader.
        let mut out = std::io::stderr();
        let _ =
            writeln!(out, "skipped: golden MLIR, LLVM IR and machine code are pinned to LLVM {LLVM}, this is {found}");
    }
    found == LLVM
}

#[test]
fn kernel_ir() {
    for (name, key) in GOLDEN {
        for target in Target::MAIN {
            pin(name, target, "kir", &key.trace(target).unwrap().to_string());
        }
    }
}

#[test]
fn mlir_and_llvm_ir() {
    if !llvm_is_pinned() {
        return;
    }
    for (name, key) in GOLDEN {
        for target in Target::MAIN {
            let kernel = key.trace(target).unwrap();
            for (level, extension) in [(Level::Mlir, "mlir"), (Level::LlvmIr, "ll")] {
                let text = lathe_codegen::emit(&kernel, target, &Options::default(), level).unwrap();
                pin(name, target, extension, &readable(&String::from_utf8(text).unwrap()));
            }
        }
    }
}

#[test]
fn machine_code() {
    if !llvm_is_pinned() {
        return;
    }
    for (name, key) in GOLDEN {
        for target in Target::MAIN {
            let artifact = compiled(key, target);
            let resources = artifact.record.resources.clone();
            let mut digest = String::new();
            let mut line = |what: &str, n: Option<u64>| {
                if let Some(n) = n {
                    writeln!(digest, "{what}: {n}").unwrap();
                }
            };
            line("vgpr", resources.vgpr.map(u64::from));
            line("sgpr", resources.sgpr.map(u64::from));
            line("ptx registers", resources.ptx_registers.map(u64::from));
            line("lds bytes", Some(resources.lds_bytes.into()));
            line("spills", resources.spills.map(u64::from));
            line("scratch bytes", resources.scratch_bytes.map(u64::from));
            line("instructions", Some(resources.instructions.into()));
            let counts = mnemonics(&artifact).unwrap();
            assert_eq!(counts.values().sum::<u32>(), resources.instructions, "one count of instructions");
            writeln!(digest).unwrap();
            for (mnemonic, count) in counts {
                writeln!(digest, "{count:4} {mnemonic}").unwrap();
            }
            pin(name, target, "isa", &digest);
        }
    }
}

/// The same bytes on every run: nothing of an earlier compile, of an address or of a path shows.
#[test]
fn output_is_deterministic_and_free_of_places() {
    for (_, key) in GOLDEN {
        for target in Target::MAIN {
            let first = compiled(key, target);
            for _ in 0..3 {
                assert_eq!(compiled(key, target).code, first.code);
            }
            let kernel = key.trace(target).unwrap();
            for level in [Level::Mlir, Level::LlvmIr, Level::Asm, Level::Obj] {
                let bytes = lathe_codegen::emit(&kernel, target, &Options::default(), level).unwrap();
                for place in [env!("CARGO_MANIFEST_DIR"), "combine.rs", "splits.rs", "uv.rs", "mx.rs", "/usr/"] {
                    assert!(!bytes.windows(place.len()).any(|w| w == place.as_bytes()), "{target} {level:?}: {place}");
                }
            }
        }
    }
}
