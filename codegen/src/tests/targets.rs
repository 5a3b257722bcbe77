//! Every chip of the table, from Kernel IR to code: what is the chip's own in it.

use lathe_dsl::ir::{Access, Axis, Kernel, Launch, Scalar};
use lathe_dsl::kernel::{In, InOut};
use lathe_dsl::{Arch, Target};

use super::{buffer_of, has, kernel_with, lacks, text};
use crate::{Disassembler, Level, Options, compile, listing};

/// Reads behind what it may read, so that the descriptor's check is at work.
fn kernel(target: Target) -> Kernel {
    let params =
        vec![buffer_of("x", Scalar::F32, 100, Access::Read), buffer_of("y", Scalar::F32, 100, Access::ReadWrite)];
    kernel_with(target, Launch::linear(2, 64), params, |k| {
        let (x, y) = (k.buffer::<f32, In>(0), k.buffer::<f32, InOut>(1));
        let i = k.block_id(Axis::X) * 64 + k.thread_id(Axis::X);
        let v = k.buffer_load::<f32>(x, i) / k.buffer_load::<f32>(y, i);
        k.buffer_store(v, y, i);
    })
}

#[test]
fn every_chip_gets_an_artifact_that_reads_back() {
    for target in Target::all() {
        let artifact = compile(&kernel(target), target, &Options::default()).unwrap();
        let resources = artifact.record.resources.clone();
        let instructions = listing(&artifact).unwrap();
        assert_eq!(instructions.len() as u32, resources.instructions, "{target}");
        match target.chip().arch {
            Arch::Amdgpu => {
                assert!(resources.vgpr.is_some_and(|n| (2..=64).contains(&n)), "{target}: {resources:?}");
                assert_eq!((resources.spills, resources.scratch_bytes), (Some(0), Some(0)), "{target}");
                assert!(Disassembler::new(target).is_ok());
            }
            Arch::Nvptx => assert!(resources.ptx_registers.is_some_and(|n| n > 4), "{target}: {resources:?}"),
        }
    }
}

#[test]
fn code_is_for_the_chip_and_its_waves() {
    for target in Target::all() {
        let asm = text(&kernel(target), target, Level::Asm);
        let name = target.chip().name;
        match target.chip().arch {
            Arch::Amdgpu => {
                has(&asm, &[&format!("amdgcn-amd-amdhsa--{name}"), &format!(".wavefront_size: {}", target.chip().wave)])
            }
            Arch::Nvptx => has(&asm, &[&format!(".target {name}\n")]),
        }
    }
    // The lowest PTX version that knows the chip: the widest range of drivers.
    has(&text(&kernel(Target::SM_90), Target::SM_90, Level::Asm), &[".version 7.8"]);
    has(&text(&kernel(Target::SM_89), Target::SM_89, Level::Asm), &[".version 7.8"]);
    has(&text(&kernel(Target::SM_120A), Target::SM_120A, Level::Asm), &[".version 8.7"]);
}

#[test]
fn rdna_descriptors_check_the_range() {
    // 0x27000, and on RDNA bit 24 and out-of-bounds select 3.
    for (target, word) in [(Target::GFX950, 0x27000u32), (Target::GFX942, 0x27000), (Target::GFX1201, 0x3102_7000)] {
        has(&text(&kernel(target), target, Level::LlvmIr), &[&format!("i64 400, i32 {word})")]);
        has(&text(&kernel(target), target, Level::Asm), &[&format!("{word:#x}"), "buffer_load_"]);
    }
}

#[test]
fn rdna_code_uses_its_own_instructions() {
    let asm = text(&kernel(Target::GFX1201), Target::GFX1201, Level::Asm);
    has(&asm, &["buffer_load_b32", "buffer_store_b32", "s_wait_loadcnt", "v_div_fixup_f32"]);
    lacks(&asm, &["s_waitcnt", "buffer_load_dword"]);
}
