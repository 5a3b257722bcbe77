//! What gfx1201 leaves to software. Every case is what LLVM 22 inserts into these instructions, or does not.

use std::collections::BTreeSet;

use lathe_dsl::Target;

use crate::gcn::decode;
use crate::gcn::error::{ErrorKind, Fault};
use crate::gcn::hazard::{Gfx12History, RULES, States};
use crate::gcn::isa;

/// Issues instructions, separated by `;`, to a fresh wave; tells the rule that one of them breaks, where its first one is and what it needs.
fn issue(program: &str) -> Result<(), (&'static str, u64, String)> {
    let isa = isa::for_target(Target::GFX1201).unwrap();
    let mut history = Gfx12History::default();
    for (i, line) in program.split(';').enumerate() {
        let inst = decode::parse(isa, line, 4).unwrap_or_else(|e| panic!("{line}: {e}"));
        match history.step(&inst.facts, inst.second.as_ref().map(|second| &second.facts), i as u64) {
            Ok(()) => {}
            Err(Fault { kind: ErrorKind::NothingBetween { rule, need, first, .. }, .. }) => {
                return Err((rule, first, need));
            }
            Err(other) => panic!("{other:?}"),
        }
    }
    Ok(())
}

const READ_S2: &str = "v_mov_b32_e32 v3, s2";
const READ_VCC: &str = "v_cndmask_b32_e32 v1, v1, v2, vcc_lo";
const READ_VCC_PAIR: &str = "v_dual_cndmask_b32 v1, v1, v2 :: v_dual_mov_b32 v4, v5";
const WRITE_S2: &str = "s_mov_b32 s2, 0";
const WRITE_S2_LANE: &str = "v_readfirstlane_b32 s2, v0";
const WRITE_VCC: &str = "s_mov_b32 vcc_lo, 0";
const COMPARE: &str = "v_cmp_eq_u32_e32 vcc_lo, v0, v1";
const COMPARE_S2: &str = "v_cmp_eq_u32_e64 s2, v0, v1";
const WMMA: &str = "v_wmma_f32_16x16x16_f16 v[40:47], v[4:7], v[8:11], v[40:47]";

const SALU: &str = "s_wait_alu depctr_sa_sdst(0)";
const VALU: &str = "s_wait_alu depctr_va_sdst(0)";
const VCC: &str = "s_wait_alu depctr_va_vcc(0)";
const SCALAR_LOAD: &str = "s_load_b32 s8, s[4:5], 0x0";
const BUFFER_LOAD: &str = "buffer_load_b32 v7, v0, s[4:7], null offen";
const GLOBAL_LOAD: &str = "global_load_b32 v7, v0, s[4:5]";

/// Rule, instructions before, the earlier one, the later one.
const ALU: &[(&str, &str, &str, &str)] = &[
    ("salu-sgpr-read", READ_S2, WRITE_S2, READ_S2),
    ("salu-sgpr-read", READ_S2, WRITE_S2, "s_mov_b32 s4, s2"),
    ("salu-sgpr-read", READ_S2, WRITE_S2, "s_cmp_eq_u32 s2, 0"),
    ("salu-sgpr-read", READ_S2, WRITE_S2, "s_bitcmp1_b32 s2, 0"),
    ("salu-sgpr-read", READ_S2, WRITE_S2, "s_addk_co_i32 s2, 0x7"),
    // The other one of the pair.
    ("salu-sgpr-read", READ_S2, "s_mov_b32 s3, 0", "v_mov_b32_e32 v3, s3"),
    ("salu-sgpr-read", READ_S2, "s_mov_b64 s[2:3], 0", "s_mov_b64 s[8:9], s[2:3]"),
    ("salu-sgpr-read", READ_VCC, WRITE_VCC, READ_VCC),
    ("salu-sgpr-read", READ_VCC_PAIR, WRITE_VCC, READ_VCC_PAIR),
    ("salu-sgpr-read", READ_VCC, WRITE_VCC, "s_cbranch_vccnz 4"),
    ("valu-sgpr-read", READ_S2, WRITE_S2_LANE, READ_S2),
    ("valu-sgpr-read", READ_S2, COMPARE_S2, "v_cndmask_b32_e64 v1, v1, v2, s2"),
    ("valu-sgpr-read", READ_S2, "v_s_exp_f32 s2, s8", READ_S2),
    ("valu-vcc-read", READ_VCC, COMPARE, READ_VCC),
    ("valu-vcc-read", READ_VCC, COMPARE, READ_VCC_PAIR),
    ("valu-vcc-read", READ_VCC, COMPARE, "v_div_fmas_f32 v1, v2, v3, v4"),
];

#[test]
fn an_sgpr_that_the_vector_alu_has_read_needs_a_wait_when_it_changes() {
    let mut tested = BTreeSet::new();
    for (rule, before, first, then) in ALU {
        let with = |between: &str| issue(&format!("{before}; {first}; {between}{then}"));
        let field = match RULES.iter().find(|r| r.name == *rule).unwrap().states {
            States::Alu(field) => field,
            other => panic!("{other:?}"),
        };
        let need = format!("`s_wait_alu depctr_{field}(0)`");
        let missing = Err((*rule, 1, need));
        assert_eq!(with(""), missing, "{first}; {then}");
        // What does not help.
        let others = [SALU, VALU, VCC].into_iter().filter(|wait| !wait.contains(field));
        for other in
            others.chain(["s_wait_alu depctr_va_vdst(0)", "s_wait_alu 0xffff", "s_nop 7", "v_nop", GLOBAL_LOAD])
        {
            assert_eq!(with(&format!("{other}; ")), missing, "{first}; {other}; {then}");
        }
        // What does, and what was never read by the vector ALU.
        let wait = format!("s_wait_alu depctr_{field}(0); ");
        let both = format!("s_wait_alu depctr_va_vdst(3) depctr_{field}(0); ");
        for between in [&wait, &both, "s_wait_alu 0; ", &format!("{SCALAR_LOAD}; "), &format!("{BUFFER_LOAD}; ")] {
            assert_eq!(with(between), Ok(()), "{first}; {between}{then}");
        }
        assert_eq!(issue(&format!("{first}; {then}")), Ok(()));
        tested.insert(*rule);
    }
    let all = RULES.iter().filter(|r| matches!(r.states, States::Alu(_))).map(|r| r.name).collect();
    assert_eq!(tested, all, "every rule has a case");
}

#[test]
fn what_hardware_holds_back_itself_is_accepted() {
    for program in [
        // A scalar read waits for what the vector ALU wrote, all of it.
        format!("{READ_S2}; {WRITE_S2_LANE}; s_mov_b32 s4, s2"),
        format!("{READ_S2}; {WRITE_S2_LANE}; s_mov_b32 s4, s2; {READ_S2}"),
        format!("{READ_S2}; v_mov_b32_e32 v3, s8; {WRITE_S2_LANE}; s_mov_b32 s4, s8; {READ_S2}"),
        format!("{READ_VCC}; {COMPARE}; s_mov_b32 s3, vcc_lo; {READ_VCC}"),
        format!("{READ_VCC}; {COMPARE}; s_cbranch_vccnz 4; {READ_VCC}"),
        format!("{READ_S2}; {WRITE_S2}; {SALU}; v_s_exp_f32 s2, s2; s_cmp_neq_f32 s2, 0"),
        // EXEC, M0 and SCC are not among those registers.
        "v_mov_b32_e32 v0, exec_lo; s_mov_b32 exec_lo, -1; v_mov_b32_e32 v0, exec_lo".to_owned(),
        "v_mov_b32_e32 v0, m0; s_mov_b32 m0, 0; v_mov_b32_e32 v0, m0".to_owned(),
        // Memory reads what it needs from the registers themselves.
        format!("{READ_S2}; {WRITE_S2}; global_load_b32 v7, v0, s[2:3]"),
    ] {
        assert_eq!(issue(&program), Ok(()), "{program}");
    }
    // A wait for one kind leaves the other one.
    let program = format!("{READ_S2}; {READ_VCC}; {COMPARE}; {WRITE_S2}; {VCC}; {READ_VCC}; {READ_S2}");
    assert_eq!(issue(&program).unwrap_err().0, "salu-sgpr-read");
}

#[test]
fn some_pairs_want_an_instruction_of_the_vector_alu_between_them() {
    let wmma = |operands: &str| format!("v_wmma_f32_16x16x16_f16 v[50:57], {operands}, v[50:57]");
    let (cmpx, permlane) = ("v_cmpx_eq_u32_e32 v0, v1", "v_permlane16_b32 v2, v2, s0, s1");
    let mut tested = BTreeSet::new();
    for (rule, first, then, helps, not) in [
        ("wmma-ab", WMMA, wmma("v[40:43], v[8:11]"), &["v_nop", READ_S2, COMPARE][..], &["s_nop 7", WRITE_S2][..]),
        ("wmma-ab", WMMA, wmma("v[4:7], v[44:47]"), &["v_nop", READ_VCC_PAIR], &[SALU]),
        ("cmpx-permlane", cmpx, permlane.to_owned(), &["v_mov_b32_e32 v9, v9"], &["v_nop", "s_nop 7"]),
        ("cmpx-permlane", cmpx, permlane.replace("16", "x16"), &[READ_S2], &["v_nop; v_nop"]),
    ] {
        let missing = Err((rule, 0, "another instruction of the vector ALU".to_owned()));
        assert_eq!(issue(&format!("{first}; {then}")), missing);
        for between in helps {
            assert_eq!(issue(&format!("{first}; {between}; {then}")), Ok(()), "{between}; {then}");
        }
        for between in not {
            assert_eq!(issue(&format!("{first}; {between}; {then}")), missing, "{between}; {then}");
        }
        tested.insert(rule);
    }
    let all = RULES.iter().filter(|r| r.states == States::Vector).map(|r| r.name).collect();
    assert_eq!(tested, all, "every rule has a case");
    // C, and what another one overwrites.
    for then in [WMMA.to_owned(), wmma("v[4:7], v[8:11]").replace("v[50:57]", "v[4:11]"), permlane.to_owned()] {
        assert_eq!(issue(&format!("{WMMA}; {then}")), Ok(()), "{then}");
    }
}
