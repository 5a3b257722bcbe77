//! The other chips: what they share with gfx950, and what they do otherwise.

use std::collections::BTreeSet;

use lathe_dsl::Target;

use super::{Bench, bases, case_on, cases, lines};
use crate::gcn::decode;
use crate::gcn::error::{ErrorKind, Fault};
use crate::gcn::isa::{self, Flow};

#[test]
fn gfx942_has_the_same_results_where_it_has_the_instruction() {
    let isa = isa::for_target(Target::GFX942).unwrap();
    let (mut run, mut lacks) = (0, BTreeSet::new());
    for line in cases::ALL.iter().flat_map(|table| lines(table)) {
        let missing: Vec<_> = bases(line).into_iter().filter(|name| isa.lookup(name).is_none()).collect();
        // Its eight-bit floats are others; they have cases of their own.
        if missing.is_empty() && !line.contains("fp8") && !line.contains("bf8") {
            case_on(Target::GFX942, line);
            run += 1;
        }
        lacks.extend(missing);
    }
    assert!(run > 500, "{run} cases");
    for name in lacks {
        let e = decode::parse(isa, &format!("{name} v0, v1"), 4).unwrap_err();
        assert_eq!(e, ErrorKind::NotOnChip { mnemonic: name, chip: "gfx942" });
    }
}

#[test]
fn gfx1201_gives_the_hand_worked_results() {
    lines(cases::GFX12).for_each(|line| case_on(Target::GFX1201, line));
}

/// Cases of gfx9, renamed, where wave width and the halves of registers make no difference.
#[test]
fn gfx1201_has_the_results_of_gfx9_under_its_own_names() {
    let isa = isa::for_target(Target::GFX1201).unwrap();
    let differs = [
        "vcc",
        "exec",
        "ieee",
        "op_sel",
        "sdwa",
        "wave_",
        "row_bcast",
        "s_cbranch",
        "denorm",
        "@3",
        "@4",
        "@5",
        "@6",
        "mbcnt",
        "readlane",
        "writelane",
        "saveexec",
        "f16",
        "16",
        "cndmask",
        "_co_",
        "addc",
        "subb",
        "div_scale",
        "v_mad_u64",
        "v_mad_i64",
        "ds_add_u32",
        "ds_add_rtn_u32",
        "sub_u32 v1, v2 |",
        "ds_",
        "global_",
        "flat_",
        "getreg",
        "v_cmp",
        "s_buffer",
    ];
    let mut run = BTreeSet::new();
    for line in cases::ALL.iter().flat_map(|table| lines(table)) {
        if differs.iter().any(|word| line.contains(word)) {
            continue;
        }
        let mut respelt = line.to_owned();
        let names = bases(line);
        for old in &names {
            if let Some(new) = isa::gfx12::renamed(old) {
                respelt = respelt.replace(old, new);
            }
        }
        if bases(&respelt).iter().all(|name| isa.lookup(name).is_some()) {
            case_on(Target::GFX1201, &respelt);
            run.extend(names);
        }
    }
    assert!(run.len() > 200, "{} instructions", run.len());
}

#[test]
fn scalar_float_compares_hold_for_the_outcomes_in_their_name() {
    let predicates = [
        ("lt", "L"),
        ("eq", "E"),
        ("le", "LE"),
        ("gt", "G"),
        ("lg", "LG"),
        ("ge", "GE"),
        ("o", "LEG"),
        ("u", "U"),
        ("nge", "LU"),
        ("nlg", "EU"),
        ("ngt", "LEU"),
        ("nle", "GU"),
        ("neq", "LGU"),
        ("nlt", "EGU"),
    ];
    for (name, holds) in predicates {
        for (ty, small, large, nan) in [("f32", "1.0", "2.0", "nan"), ("f16", "1.0h", "2.0h", "0x7e00")] {
            for (outcome, a, b) in [('L', small, large), ('E', small, small), ('G', large, small), ('U', nan, small)] {
                let scc = u8::from(holds.contains(outcome));
                case_on(Target::GFX1201, &format!("s_cmp_{name}_{ty} s1, s2 | s1={a} s2={b} | scc={scc}"));
            }
        }
    }
}

#[test]
fn gfx1201_waits_for_each_kind_of_load_apart() {
    let state = "v[2:3]=$ v4=0 s[2:3]=$ mem+0=1 mem+4=2 lds+0=3 exec=1";
    let run = |program: &str| {
        let mut b = Bench::new(Target::GFX1201);
        for item in state.split_whitespace() {
            let (name, value) = item.split_once('=').unwrap();
            b.set(name, value);
        }
        b.run(program)
    };
    let load = "global_load_b32 v1, v[2:3], off; ";
    for (program, counter) in [
        (format!("{load}s_wait_dscnt 0x0; s_wait_kmcnt 0x0; v_mov_b32_e32 v0, v1"), "loadcnt"),
        // A store is not counted, so that this waits for nothing.
        (format!("{load}global_store_b32 v[2:3], v4, off; s_wait_loadcnt 0x1; v_mov_b32_e32 v0, v1"), "loadcnt"),
        (format!("{load}s_wait_storecnt 0x0; v_mov_b32_e32 v0, v1"), "loadcnt"),
        (
            format!("{load}s_delay_alu instid0(VALU_DEP_1); s_wait_alu depctr_sa_sdst(0); v_mov_b32_e32 v0, v1"),
            "loadcnt",
        ),
        (format!("{load}v_dual_mov_b32 v0, v4 :: v_dual_mov_b32 v5, v1"), "loadcnt"),
        ("ds_load_b32 v1, v4; s_wait_loadcnt 0x0; v_mov_b32_e32 v0, v1".into(), "dscnt"),
        ("ds_load_b32 v1, v4; s_wait_kmcnt 0x0; v_mov_b32_e32 v0, v1".into(), "dscnt"),
        ("s_load_b32 s8, s[2:3], 0x0; s_wait_dscnt 0x0; s_mov_b32 s9, s8".into(), "kmcnt"),
        ("s_load_b32 s8, s[2:3], 0x0; s_load_b32 s9, s[2:3], 0x0; s_wait_kmcnt 0x1; s_mov_b32 s10, s8".into(), "kmcnt"),
        ("flat_load_b32 v1, v[2:3]; s_wait_loadcnt 0x0; v_mov_b32_e32 v0, v1".into(), "dscnt"),
        ("flat_load_b32 v1, v[2:3]; s_wait_dscnt 0x0; v_mov_b32_e32 v0, v1".into(), "loadcnt"),
        ("flat_load_b32 v1, v[2:3]; s_wait_loadcnt 0x0; s_wait_kmcnt 0x0; v_mov_b32_e32 v0, v1".into(), "dscnt"),
        (
            "global_atomic_add_u32 v1, v[2:3], v4, off th:TH_ATOMIC_RETURN; s_wait_storecnt 0x0; v_mov_b32_e32 v0, v1"
                .into(),
            "loadcnt",
        ),
    ] {
        match run(&program) {
            Err(Fault { kind: ErrorKind::UseBeforeWait { counter: c, .. }, .. }) => {
                assert_eq!(c.to_string(), counter, "{program}")
            }
            other => panic!("{program}: {other:?}"),
        }
    }
    for program in [
        format!("{load}global_store_b32 v[2:3], v4, off; s_wait_loadcnt 0x0; v_mov_b32_e32 v0, v1"),
        format!("{load}ds_load_b32 v5, v4; s_wait_loadcnt_dscnt 0x0; v_dual_mov_b32 v0, v1 :: v_dual_mov_b32 v7, v5"),
        format!("{load}global_load_b32 v5, v[2:3], off; s_wait_loadcnt 0x1; v_mov_b32_e32 v0, v1"),
        "s_load_b32 s8, s[2:3], 0x0; s_wait_kmcnt 0x0; s_mov_b32 s9, s8".into(),
        "flat_load_b32 v1, v[2:3]; s_wait_loadcnt_dscnt 0x0; v_mov_b32_e32 v0, v1".into(),
    ] {
        run(&program).unwrap_or_else(|f| panic!("{program}: {}", f.kind));
    }
}

#[test]
fn gfx1201_splits_the_barrier() {
    let run = |program: &str| {
        let mut b = Bench::new(Target::GFX1201);
        for (name, value) in [("v1", "0"), ("lds+0", "1")] {
            b.set(name, value);
        }
        b.run(program).map_err(|f| f.kind.to_string())
    };
    assert_eq!(run("s_barrier_signal -1; s_barrier_wait 0xffff"), Ok(Flow::Barrier));
    assert_eq!(run("s_barrier_signal -1; v_mov_b32_e32 v0, v1"), Ok(Flow::Next));
    for (program, expected) in [
        ("s_barrier_wait 0xffff", "without a signal"),
        ("s_barrier_signal -1; s_barrier_signal -1", "second signal"),
        ("s_barrier_signal 3", "named barrier"),
        ("s_barrier_signal -1; ds_load_b32 v0, v1", "between the signal"),
    ] {
        let e = run(program).unwrap_err();
        assert!(e.contains(expected), "{program}: {e}");
    }
}

#[test]
fn gfx1201_refuses_what_buffers_leave_open() {
    let run = |program: &str, word3: &str| {
        let mut b = Bench::new(Target::GFX1201);
        for (name, value) in [("s[4:5]", "$"), ("s6", "64"), ("s7", word3), ("s8", "8"), ("exec", "1")] {
            b.set(name, value);
        }
        b.run(program).map(drop).map_err(|f| f.kind.to_string())
    };
    for (program, word3, expected) in [
        ("buffer_load_b64 v[0:1], off, s[4:7], null offset:60", "0x31027000", "cuts"),
        ("buffer_load_b32 v0, off, s[4:7], s8 offset:60", "0x31027000", "scalar offset"),
        ("buffer_load_b32 v0, off, s[4:7], null", "0x01027000", "OOB_SELECT 0"),
    ] {
        let e = run(program, word3).unwrap_err();
        assert!(e.contains(expected), "{program}: {e}");
    }
    for program in
        ["buffer_load_b64 v[0:1], off, s[4:7], null offset:56", "buffer_load_b32 v0, off, s[4:7], s8 offset:64"]
    {
        run(program, "0x31027000").unwrap_or_else(|e| panic!("{program}: {e}"));
    }
}
