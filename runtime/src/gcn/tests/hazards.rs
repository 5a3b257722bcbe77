//! Every rule on wait states: one `s_nop` too few is found, exactly enough is accepted.

use std::collections::BTreeSet;

use lathe_dsl::Target;

mod gfx12;

use super::*;
use crate::gcn::decode;
use crate::gcn::error::Fault;
use crate::gcn::hazard::{History, RULES, States};
use crate::gcn::isa;

/// Issues instructions, one a line or separated by `;`, to a fresh wave; tells the rule that one of them breaks.
fn issue(target: Target, program: &str) -> std::result::Result<(), (&'static str, u32, u32)> {
    let isa = isa::for_target(target).unwrap();
    let mut history = History::default();
    for (i, line) in program.split(';').enumerate() {
        let inst = decode::parse(isa, line, 4).unwrap_or_else(|e| panic!("{line}: {e}"));
        match history.step(&inst.facts, 4 * i as u64, target == Target::GFX950) {
            Ok(()) => {}
            Err(Fault { kind: ErrorKind::WaitStates { rule, need, between, .. }, .. }) => {
                return Err((rule, need, between));
            }
            Err(other) => panic!("{other:?}"),
        }
    }
    Ok(())
}

/// Checks that `then` must be exactly so many wait states behind `first`, however these are made up.
fn apart(target: Target, rule: &str, need: u32, first: &str, then: &str) {
    for between in 0..=need {
        let filler: Vec<String> = match between {
            0 => vec![],
            1..=16 => vec![format!("s_nop {}", between - 1)],
            _ => vec!["s_nop 15".into(), format!("s_nop {}", between - 17)],
        };
        let unrelated = vec!["s_mov_b32 s90, 0".to_owned(); between as usize];
        for filler in [filler, unrelated] {
            let program = [&[first.to_owned()][..], &filler, &[then.to_owned()]].concat().join("; ");
            let expected = if between < need { Err((rule, need, between)) } else { Ok(()) };
            let got = issue(target, &program);
            assert_eq!(got, expected, "{target}: {program}");
        }
    }
}

/// Checks that two instructions may follow each other at once.
fn free(target: Target, first: &str, then: &str) {
    assert_eq!(issue(target, &format!("{first}; {then}")), Ok(()), "{target}: {first}; {then}");
}

const READ_FIRST: &str = "v_readfirstlane_b32 s4, v100";
const COMPARE: &str = "v_cmp_eq_u32_e32 vcc, v100, v101";
const COMPARE_EXEC: &str = "v_cmpx_eq_u32_e32 vcc, v100, v101";
const MOVE: &str = "v_mov_b32_e32 v1, v100";
const DPP: &str = "v_mov_b32_dpp v0, v1 row_shl:1 row_mask:0xf bank_mask:0xf";
const DIV_FMAS: &str = "v_div_fmas_f32 v0, v1, v2, v3";
const EXP: &str = "v_exp_f32_e32 v1, v2";
const SDWA: &str = "v_add_u32_sdwa v1, v2, v3 dst_sel:BYTE_0 dst_unused:UNUSED_PRESERVE src0_sel:DWORD src1_sel:DWORD";
const DOT: &str = "v_dot2_f32_f16 v1, v2, v3, v4";
const STORE: &str = "global_store_dword v[102:103], v1, off";
const STORE_4: &str = "global_store_dwordx4 v[102:103], v[4:7], off";
const F16_SMALL: &str = "v_mfma_f32_16x16x16_f16 v[40:43], v[4:5], v[6:7], v[80:83]";
const F16_LARGE: &str = "v_mfma_f32_32x32x8_f16 v[40:55], v[4:5], v[6:7], v[80:95]";
const F32_SMALL: &str = "v_mfma_f32_16x16x4_f32 v[40:43], v4, v5, v[80:83]";
const F32_LARGE: &str = "v_mfma_f32_32x32x2_f32 v[40:55], v4, v5, v[80:95]";

/// Rule, wait states, the two instructions; for gfx950 and gfx942 alike.
const BOTH: &[(&str, u32, &str, &str)] = &[
    ("valu-sgpr-vmem", 5, READ_FIRST, "global_load_dword v0, v2, s[4:5]"),
    ("valu-sgpr-vmem", 5, READ_FIRST, "buffer_load_dword v0, v2, s[8:11], s4 offen"),
    ("valu-sgpr-vmem", 5, READ_FIRST, "buffer_load_dword v0, v2, s[4:7], 0 offen"),
    ("valu-sgpr-vmem", 5, COMPARE, "global_load_dword v0, v2, vcc"),
    ("valu-sgpr-lane", 4, READ_FIRST, "v_readlane_b32 s7, v1, s4"),
    ("valu-sgpr-lane", 4, READ_FIRST, "v_writelane_b32 v7, 1, s4"),
    ("valu-sgpr-valu", 2, READ_FIRST, "v_mov_b32_e32 v0, s4"),
    ("valu-sgpr-valu", 2, COMPARE, "v_cndmask_b32_e32 v0, v1, v2, vcc"),
    ("valu-sgpr-valu", 2, "v_cmp_eq_u32_e64 s[4:5], v100, v101", "v_cndmask_b32_e64 v0, v1, v2, s[4:5]"),
    ("valu-sgpr-valu", 2, "v_add_co_u32_e32 v0, vcc, v1, v2", "v_addc_co_u32_e32 v3, vcc, v4, v5, vcc"),
    ("valu-sgpr-valu", 2, READ_FIRST, "v_writelane_b32 v7, s4, 3"),
    ("valu-vcc-div-fmas", 4, COMPARE, DIV_FMAS),
    ("valu-exec-lane", 4, COMPARE_EXEC, "v_readlane_b32 s7, v1, 3"),
    ("valu-exec-lane", 4, COMPARE_EXEC, "v_readfirstlane_b32 s7, v1"),
    ("valu-exec-lane", 4, COMPARE_EXEC, "v_writelane_b32 v7, 1, 3"),
    ("valu-exec-dpp", 5, COMPARE_EXEC, DPP),
    ("valu-exec-mfma", 4, COMPARE_EXEC, F16_SMALL),
    ("valu-vgpr-lane", 1, MOVE, "v_readlane_b32 s7, v1, 3"),
    ("valu-vgpr-lane", 1, MOVE, "v_readfirstlane_b32 s7, v1"),
    ("valu-vgpr-dpp", 2, MOVE, DPP),
    ("valu-vgpr-dpp", 2, "v_mov_b32_e32 v0, v100", DPP),
    ("valu-vgpr-mfma", 2, "v_mov_b32_e32 v5, v100", F16_SMALL),
    ("valu-vgpr-mfma", 2, "v_mov_b32_e32 v83, v100", F16_SMALL),
    ("valu-vgpr-mfma", 2, "v_exp_f32_e32 v4, v100", F16_SMALL),
    ("trans-valu", 1, EXP, "v_mov_b32_e32 v0, v1"),
    ("trans-valu", 1, EXP, "v_fma_f32 v0, v2, v3, v1"),
    ("part-valu", 1, SDWA, "v_mov_b32_e32 v0, v1"),
    ("part-valu", 1, "v_cvt_pk_fp8_f32 v1, v2, v3 op_sel:[0,0,1]", "v_mov_b32_e32 v1, v3"),
    ("dot-other", 3, DOT, "v_mov_b32_e32 v0, v1"),
    ("dot-other", 3, DOT, "v_mov_b32_e32 v1, v2"),
    ("dot-other", 3, DOT, STORE),
    ("dot-other", 3, DOT, "v_dot2_f32_f16 v9, v1, v3, v9"),
    ("wide-store", 2, STORE_4, "v_mov_b32_e32 v5, v3"),
    ("wide-store", 2, "global_store_dwordx3 v[102:103], v[4:6], off", "v_mov_b32_e32 v6, v3"),
    ("wide-store", 2, "buffer_store_dwordx4 v[4:7], v2, s[8:11], 0 offen", "v_mov_b32_e32 v5, v3"),
    ("wide-store", 2, "buffer_store_dwordx4 v[40:43], v2, s[8:11], 0 offen", F16_SMALL),
    ("m0-load-lds", 1, "s_mov_b32 m0, 0", "global_load_lds_dword v[0:1], off"),
    ("m0-load-lds", 1, "s_mov_b32 m0, 0", "buffer_load_dword v2, s[8:11], 0 offen lds"),
    ("setreg", 2, "s_setreg_b32 hwreg(HW_REG_MODE), s4", "s_getreg_b32 s5, hwreg(HW_REG_MODE)"),
    ("setreg", 2, "s_setreg_b32 hwreg(HW_REG_MODE), s4", "s_setreg_b32 hwreg(HW_REG_MODE), s5"),
    ("mfma-read", 10, F32_SMALL, "v_mov_b32_e32 v0, v40"),
    ("mfma-read", 18, F32_LARGE, "v_mov_b32_e32 v0, v55"),
    ("mfma-overwrite", 10, F32_SMALL, "v_mov_b32_e32 v40, v0"),
    ("mfma-mfma-ab", 10, F32_SMALL, "v_mfma_f32_16x16x4_f32 v[60:63], v42, v5, v[80:83]"),
    ("mfma-mfma-c", 8, F32_SMALL, "v_mfma_f32_16x16x4_f32 v[60:63], v4, v5, v[42:45]"),
    ("mfma-addend-overwrite", 3, F16_SMALL, "v_mov_b32_e32 v83, v100"),
    ("mfma-addend-overwrite", 7, F16_LARGE, "v_mov_b32_e32 v83, v100"),
];

/// Likewise, with the wait states on gfx942 and one more on gfx950.
const ONE_MORE: &[(&str, u32, &str, &str)] = &[
    ("mfma-read", 7, F16_SMALL, "v_mov_b32_e32 v0, v40"),
    ("mfma-read", 7, F16_SMALL, "v_readlane_b32 s4, v40, 3"),
    ("mfma-read", 7, F16_SMALL, "global_store_dword v[102:103], v41, off"),
    ("mfma-read", 7, F16_SMALL, "ds_write_b32 v100, v43"),
    ("mfma-read", 7, "v_mfma_i32_16x16x32_i8 a[0:3], v[4:5], v[6:7], 0", "v_accvgpr_read_b32 v0, a3"),
    ("mfma-read", 11, F16_LARGE, "v_mov_b32_e32 v0, v55"),
    ("mfma-overwrite", 7, F16_SMALL, "v_mov_b32_e32 v40, v0"),
    ("mfma-overwrite", 7, F16_SMALL, "global_load_dword v40, v[102:103], off"),
    ("mfma-overwrite", 11, F16_LARGE, "ds_read_b32 v41, v100"),
    ("mfma-mfma-ab", 7, F16_SMALL, "v_mfma_f32_16x16x16_f16 v[60:63], v[40:41], v[6:7], v[80:83]"),
    ("mfma-mfma-ab", 11, F16_LARGE, "v_mfma_f32_16x16x16_f16 v[60:63], v[8:9], v[54:55], v[80:83]"),
    ("mfma-mfma-c", 5, F16_SMALL, "v_mfma_f32_16x16x16_f16 v[60:63], v[4:5], v[6:7], v[42:45]"),
    ("mfma-mfma-c", 9, F16_LARGE, "v_mfma_f32_16x16x16_f16 v[60:63], v[4:5], v[6:7], v[42:45]"),
];

/// For gfx950 alone.
const GFX950: &[(&str, u32, &str, &str)] = &[
    ("valu-vgpr-permlane", 2, MOVE, "v_permlane32_swap_b32_e32 v1, v2"),
    ("valu-vgpr-permlane", 2, MOVE, "v_permlane16_swap_b32_e32 v2, v1"),
    ("valu-exec-permlane", 4, COMPARE_EXEC, "v_permlane32_swap_b32_e32 v1, v2"),
    ("mfma-read", 12, "v_mfma_f32_16x16x128_f8f6f4 v[40:43], v[4:11], v[12:19], v[80:83]", "v_mov_b32_e32 v0, v40"),
    (
        "mfma-read",
        8,
        "v_mfma_f32_16x16x128_f8f6f4 v[40:43], v[4:7], v[12:15], v[80:83] cbsz:4 blgp:4",
        "v_mov_b32_e32 v0, v40",
    ),
    ("mfma-read", 20, "v_mfma_f32_32x32x64_f8f6f4 v[40:55], v[4:11], v[12:19], v[80:95]", "v_mov_b32_e32 v0, v40"),
    (
        "mfma-addend-overwrite",
        15,
        "v_mfma_f32_32x32x64_f8f6f4 v[40:55], v[4:11], v[12:19], v[80:95]",
        "v_mov_b32_e32 v90, v100",
    ),
    (
        "mfma-mfma-ab",
        8,
        F16_SMALL,
        "v_mfma_scale_f32_16x16x128_f8f6f4 v[60:63], v[4:7], v[12:15], v[80:83], v42, v21 op_sel_hi:[0,0,0] cbsz:4 blgp:4",
    ),
];

#[test]
fn one_wait_state_too_few_is_found_and_exactly_enough_is_accepted() {
    let mut tested = BTreeSet::new();
    for target in [Target::GFX950, Target::GFX942] {
        for (rule, need, first, then) in BOTH {
            apart(target, rule, *need, first, then);
            tested.insert(*rule);
        }
        for (rule, need, first, then) in ONE_MORE {
            apart(target, rule, need + u32::from(target == Target::GFX950), first, then);
            tested.insert(*rule);
        }
    }
    for (rule, need, first, then) in GFX950 {
        apart(Target::GFX950, rule, *need, first, then);
        tested.insert(*rule);
    }
    let of_cdna = RULES.iter().filter(|r| !matches!(r.states, States::Alu(_) | States::Vector));
    assert_eq!(tested, of_cdna.map(|r| r.name).collect(), "every rule has a case");
}

#[test]
fn pairs_that_hardware_holds_apart_are_accepted() {
    for target in [Target::GFX950, Target::GFX942] {
        for (first, then) in [
            (READ_FIRST, "s_mov_b32 s6, s4"),
            (READ_FIRST, "s_load_dword s8, s[4:5], 0x0"),
            ("s_mov_b32 s4, 0", "global_load_dword v0, v2, s[4:5]"),
            ("s_mov_b64 vcc, -1", DIV_FMAS),
            ("s_mov_b64 exec, -1", DPP),
            (COMPARE_EXEC, MOVE),
            (MOVE, STORE),
            (MOVE, "v_add_u32_e32 v2, v1, v3"),
            (EXP, "v_exp_f32_e32 v3, v1"),
            (EXP, STORE),
            (EXP, "v_mov_b32_e32 v1, v3"),
            (DOT, "v_dot2_f32_f16 v1, v2, v3, v1"),
            ("global_store_dwordx2 v[102:103], v[4:5], off", "v_mov_b32_e32 v5, v3"),
            ("buffer_store_dwordx4 v[4:7], v2, s[8:11], s4 offen", "v_mov_b32_e32 v5, v3"),
            ("ds_write_b128 v0, v[4:7]", "v_mov_b32_e32 v5, v3"),
            (STORE_4, "v_mov_b32_e32 v102, v3"),
            // The whole of D as the next C.
            (F16_SMALL, "v_mfma_f32_16x16x16_f16 v[40:43], v[8:9], v[10:11], v[40:43]"),
            (F32_SMALL, "v_mfma_f32_16x16x16_f16 v[60:63], v[8:9], v[10:11], v[42:45]"),
            (F32_SMALL, "v_mov_b32_e32 v83, v100"),
            (F16_SMALL, "v_mov_b32_e32 v4, v100"),
            ("s_getreg_b32 s5, hwreg(HW_REG_MODE)", "s_setreg_b32 hwreg(HW_REG_MODE), s4"),
            ("s_mov_b32 m0, 0", "global_load_dword v1, v[2:3], off"),
            // Another register file of the same number.
            ("v_mfma_f32_16x16x16_f16 a[40:43], v[4:5], v[6:7], 0", "v_mov_b32_e32 v0, v40"),
        ] {
            free(target, first, then);
        }
    }
}

/// A matrix product stays in mind while many other instructions come and go.
#[test]
fn a_long_distance_is_kept_through_what_comes_between() {
    let between = ["v_add_u32_e32 v1, v2, v3"; 9].join("; ");
    let program = format!("{F16_LARGE}; {between}; v_mov_b32_e32 v0, v40");
    assert_eq!(issue(Target::GFX942, &program), Err(("mfma-read", 11, 9)));
    let program = format!("{F16_LARGE}; {between}; s_nop 1; v_mov_b32_e32 v0, v40");
    assert_eq!(issue(Target::GFX942, &program), Ok(()));
}

/// The whole way: machine code, its error with pc, rule and register; two `s_nop`s later it runs.
#[test]
fn a_missing_nop_in_machine_code_has_its_place() {
    const MOVE_V1: (&[u32], &str) = (&[0x7E02_0300], "v_mov_b32_e32 v1, v0");
    const DPP_V1: (&[u32], &str) = (
        &[0x7E06_02FA, 0xFF08_E401],
        "v_mov_b32_dpp v3, v1 quad_perm:[0,1,2,3] row_mask:0xf bank_mask:0xf bound_ctrl:1",
    );
    const NOP_0: (&[u32], &str) = (&[0xBF80_0000], "s_nop 0");
    const NOP_1: (&[u32], &str) = (&[0xBF80_0001], "s_nop 1");
    let with = |nops: Option<(&'static [u32], &'static str)>| {
        let code: Vec<_> = [MOVE_V1].into_iter().chain(nops).chain([DPP_V1, END]).collect();
        run(&Builder::new(code.leak()).object(), 1, 64, &Options::default()).map(|_| ())
    };
    let error = with(Some(NOP_0)).unwrap_err();
    let ErrorKind::WaitStates { rule: "valu-vgpr-dpp", ref register, need: 2, between: 1, first } = error.kind else {
        panic!("{error}");
    };
    let site = error.site.as_ref().unwrap();
    assert_eq!((register.as_str(), first), ("v1", site.pc - 8));
    assert!(error.to_string().contains("rule `valu-vgpr-dpp` of the hazard table"), "{error}");
    assert!(with(None).is_err());
    with(Some(NOP_1)).unwrap();
}

/// The documentation has every rule with its number.
#[test]
fn the_documentation_lists_the_rules() {
    let text = include_str!("../../../../docs/src/gcn.md");
    for rule in RULES {
        let states = match rule.states {
            States::Fixed(n) => n.to_string(),
            States::Passes { f32: 0, other } => format!("p + {other}, f32: p"),
            States::Passes { f32, other } => format!("p + {other}, f32: p + {f32}"),
            States::PassesLess(n) => format!("p − {n}, f32: 0"),
            States::Alu(counter) => format!("`s_wait_alu depctr_{counter}(0)`"),
            States::Vector => "another instruction of the vector ALU".to_owned(),
        };
        let row = format!("| `{}` | {} | {} | {states} |", rule.name, rule.first, rule.then);
        assert!(text.contains(&row), "docs/src/gcn.md lacks the row\n{row}");
    }
}
