//! Promise: what is emitted changes only when somebody means it to. `cargo xtask bless` accepts a change.
//!
//! Each kernel is pinned for each target as Kernel IR, MLIR, LLVM IR before optimisation, and a digest of the machine code.
//! The levels that LLVM makes are pinned for one LLVM; with another they are skipped, saying so.

use std::fmt::Write as _;
use std::io::Write as _;

use lathe_codegen::{Level, Options, mnemonics};
use lathe_dsl::Target;

use crate::{GOLDEN, compiled};

/// The LLVM whose output the snapshots hold.
const LLVM: &str = "22.1.8";

/// Compares a text with the snapshot of this name.
pub fn pin_text(name: &str, text: &str) {
    insta::with_settings!({ snapshot_path => "snapshots", prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(name, text);
    });
}

fn pin(name: &str, target: Target, level: &str, text: &str) {
    pin_text(&format!("{name}.{target}.{level}"), text);
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
                pin(name, target, extension, &String::from_utf8(text).unwrap());
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
