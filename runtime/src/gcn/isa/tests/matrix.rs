//! Matrix instructions beyond their hand-worked cases: what is refused, undefined bits, and time.

use lathe_dsl::Target;

use super::{Bench, case_on, cases, fault_on, lines};
use crate::gcn::isa::{Op, for_target};

#[test]
fn elements_meet_where_the_layouts_say() {
    for (target, tables) in [
        (Target::GFX950, &[cases::matrix::CDNA3, cases::matrix::CDNA4][..]),
        (Target::GFX942, &[cases::matrix::CDNA3, cases::matrix::FNUZ]),
        (Target::GFX1201, &[cases::matrix::RDNA4]),
    ] {
        tables.iter().flat_map(|table| lines(table)).for_each(|line| case_on(target, line));
        let all: Vec<_> = tables.iter().flat_map(|table| lines(table)).collect();
        let isa = for_target(target).unwrap();
        for name in isa.mnemonics().into_iter().filter(|m| matches!(isa.lookup(m), Some(Op::Matrix(_)))) {
            assert!(all.iter().any(|line| line.split(' ').next() == Some(name)), "{target}: no case of {name}");
        }
    }
}

#[test]
fn operands_that_the_hardware_has_not_are_refused() {
    let zeros = "v0=0 v1=0 v2=0 v3=0 v4=0 v5=0 v6=0 v7=0 v8=0 v9=0 v10=0 v11=0 v12=0 v13=0 v14=0 v15=0 s0=0";
    let scaled = "v_mfma_scale_f32_16x16x128_f8f6f4 v[0:3], v[4:7], v[8:11], v[0:3]";
    for (target, program, expected) in [
        (Target::GFX950, format!("{scaled}, 0, v12 op_sel_hi:[0,0,0] cbsz:4 blgp:4"), "a scale that is in no VGPR"),
        (Target::GFX950, format!("{scaled}, v12, s0 op_sel_hi:[0,0,0] cbsz:4 blgp:4"), "a scale that is in no VGPR"),
        (Target::GFX950, format!("{scaled}, v12, v13 op_sel_hi:[0,0,0] cbsz:5 blgp:4"), "format 5"),
        (Target::GFX950, format!("{scaled}, v12, v13 op_sel_hi:[0,0,0] cbsz:4"), "8 expected"),
        (Target::GFX950, "v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], 0 cbsz:1".into(), "modifier"),
        (Target::GFX950, "v_mfma_f32_16x16x16_f16 v[0:1], v[4:5], v[6:7], 0".into(), "4 expected"),
        (Target::GFX950, "v_mfma_f32_16x16x16_f16 v[0:3], v4, v[6:7], 0".into(), "2 expected"),
        (
            Target::GFX942,
            format!("{scaled}, v12, v13 op_sel_hi:[0,0,0] cbsz:4 blgp:4"),
            "gfx942 has no instruction `v_mfma_scale",
        ),
        (Target::GFX942, "v_mfma_f32_16x16x32_bf16 v[0:3], v[4:7], v[8:11], 0".into(), "gfx942 has no instruction"),
        (Target::GFX1201, "v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], 0".into(), "gfx1201 has no instruction"),
        (
            Target::GFX1201,
            "v_wmma_f32_16x16x16_fp8_fp8 v[0:7], v[8:9], v[12:13], 0 neg_lo:[1,0,0]".into(),
            "neg on eight-bit",
        ),
    ] {
        let e = fault_on(target, &program, zeros).to_string();
        assert!(e.contains(expected), "{program}: {e}");
    }
    let e = fault_on(
        Target::GFX1201,
        "v_wmma_f32_16x16x16_f16 v[0:7], v[8:11], v[12:15], 0",
        &format!("{zeros} exec=0x7fffffff"),
    );
    assert!(e.to_string().contains("inactive lanes"), "{e}");
}

#[test]
fn undefined_elements_spoil_their_row_or_column_only() {
    let zeros = "v4=0 v5=0 v6=0 v7=0 v8=0 v9=0 v10=0 v11=0";
    let product = "v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], 0";
    // Lane 17 of a register never written holds row 1 of A, or column 1 of B.
    case_on(
        Target::GFX950,
        &format!(
            "v_mov_b32_e32 v4, v12; {product} | {zeros} exec=0x20000 | u:v1@0=0xffffffff u:v1@15=0xffffffff u:v1@16=0 u:v0@0=0"
        ),
    );
    case_on(
        Target::GFX950,
        &format!(
            "v_mov_b32_e32 v6, v12; {product} | {zeros} exec=0x20000 | u:v1@1=0xffffffff u:v3@49=0xffffffff u:v0@0=0 u:v1@2=0"
        ),
    );
    // An undefined C spoils what is added to it.
    let added = "v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], v[8:11]";
    case_on(
        Target::GFX950,
        &format!("v_mov_b32_e32 v9, v12; {added} | {zeros} exec=0x20000 | u:v1@17=0xffffffff u:v1@16=0 u:v0@17=0"),
    );
}

/// The instructions of a product of 256 × 256 × 1024 of MXFP4, 2048, with random operands.
#[test]
fn a_block_scaled_product_takes_well_under_two_seconds() {
    let mut b = Bench::new(Target::GFX950);
    for r in 0..22u16 {
        let register = b.wave.vector_mut(false, r).unwrap();
        for lane in 0..64 {
            let random = (u32::from(r) * 64 + lane as u32 + 1).wrapping_mul(0x9E37_79B9);
            let v = if r >= 20 { 0x7B7B_7B7B + (random >> 29) * 0x0101_0101 } else { random ^ random >> 15 };
            (register.v[lane], register.u[lane]) = (if r < 4 { 0 } else { v }, 0);
        }
    }
    let program =
        "v_mfma_scale_f32_16x16x128_f8f6f4 v[0:3], v[4:7], v[8:11], v[0:3], v20, v21 op_sel_hi:[0,0,0] cbsz:4 blgp:4";
    let start = std::time::Instant::now();
    for _ in 0..2048 {
        b.run(program).unwrap();
    }
    let taken = start.elapsed();
    println!("2048 products: {taken:?}");
    // Many times what it takes: machines that run tests are busy with other things.
    assert!(cfg!(debug_assertions) || taken.as_secs() < 4, "{taken:?}");
}
