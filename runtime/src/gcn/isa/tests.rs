//! Every instruction on hand-worked values.
//!
//! A case is `program | state before | state after`. Programs are lines of assembly separated by `;`. A register of the
//! state holds its value in every lane, or in one (`v1@3=7`). Values: integers, `1.5` (f32), `1.5d` (f64 in a register
//! pair), `1.5h` (f16), `$+4` (address in the test's memory). `mem+8=` and `lds+8=` are words of memory and LDS, `u:v0=`
//! in a result the undefined bits. At the end everything outstanding is waited for.

mod cases;
mod chips;
mod matrix;

use std::collections::BTreeSet;

use lathe_dsl::Target;

use crate::gcn::decode::{self, M0, VCC};
use crate::gcn::error::{ErrorKind, Fault};
use crate::gcn::isa::chip::Family;
use crate::gcn::isa::{self, Context, Flow};
use crate::gcn::lds::Lds;
use crate::gcn::memory::{Memory, Space};
use crate::gcn::state::{LANES, Lanes, Mode, Registers, Scalar, Wave};
use crate::gcn::trace::LdsAccess;
use crate::gcn::wait::WaitCounts;

const MEMORY_BYTES: usize = 4096;
const LDS_BYTES: usize = 1024;
const SCRATCH_BYTES: usize = 64;

/// One wave with memory and LDS to run single instructions on.
pub(crate) struct Bench {
    isa: &'static isa::Isa,
    pub(crate) wave: Wave,
    pub(crate) lds: Lds,
    pub(crate) memory: Memory,
    pub(crate) base: u64,
    /// Instructions whose access the end of a buffer cut.
    cut: BTreeSet<u64>,
}

impl Bench {
    pub(crate) fn new(target: Target) -> Self {
        let isa = isa::for_target(target).unwrap();
        let registers = Registers { vgpr: 32, agpr: 8, sgpr: 64 };
        // As the descriptor's reader sets it.
        let mode = Mode { ieee: isa.chip.family == Family::Gfx9, ..Mode::default() };
        let mut wave = Wave::new(0, isa.chip, registers, mode, SCRATCH_BYTES, isa.chip.all_lanes());
        wave.set_scc(false, false);
        let mut memory = Memory::default();
        let base = memory.alloc(MEMORY_BYTES);
        Self { isa, wave, lds: Lds::new(LDS_BYTES, 2), memory, base, cut: BTreeSet::new() }
    }

    pub(crate) fn run(&mut self, program: &str) -> Result<Flow, Fault> {
        let mut flow = Flow::Next;
        for (i, line) in program.split(';').enumerate() {
            let inst = decode::parse(self.isa, line, 4).map_err(Fault::from)?;
            self.wave.current_pc = 0x100 + 4 * i as u64;
            let mut space = Space::new(&mut self.memory, &[], &[]);
            flow = isa::exec(&mut Context { wave: &mut self.wave, lds: &mut self.lds, space: &mut space }, &inst)?;
            self.cut.append(&mut space.cut);
        }
        Ok(flow)
    }

    fn value(&self, text: &str) -> (u64, u32) {
        if let Some(offset) = text.strip_prefix('$') {
            let offset: i64 = if offset.is_empty() { 0 } else { offset.parse().unwrap() };
            return (self.base.wrapping_add_signed(offset), 64);
        }
        if let Some(f) = text.strip_suffix('d').filter(|t| t.contains('.') || t.contains("inf") || t.contains("nan")) {
            return (f.parse::<f64>().unwrap().to_bits(), 64);
        }
        if let Some(f) = text.strip_suffix('h').filter(|t| t.contains('.')) {
            return (u64::from(half::f16::from_f32(f.parse().unwrap()).to_bits()), 32);
        }
        if let Some(hex) = text.strip_prefix("0x") {
            let v = u64::from_str_radix(hex, 16).unwrap();
            return (v, if hex.len() > 8 { 64 } else { 32 });
        }
        if let Ok(i) = text.parse::<i64>() {
            return (i as u64, 32);
        }
        let f: f32 = text.parse().unwrap_or_else(|_| panic!("value `{text}`"));
        (u64::from(f.to_bits()), 32)
    }

    fn set(&mut self, name: &str, text: &str) {
        let (v, _) = self.value(text);
        let words = |n: u16| (0..n).map(move |i| (v >> (32 * i)) as u32);
        if let Some(offset) = name.strip_prefix("mem+") {
            let at = self.base + offset.parse::<u64>().unwrap();
            return self.memory.write(at, &(v as u32).to_le_bytes()).unwrap();
        }
        if let Some(offset) = name.strip_prefix("lds+") {
            let by = crate::gcn::lds::By { wave: 0, seq: 0, vm: false };
            let own = self.wave.outstanding;
            return self.lds.write(offset.parse().unwrap(), &(v as u32).to_le_bytes(), &[0; 4], by, &own).unwrap();
        }
        let (register, lane) = match name.split_once('@') {
            Some((r, lane)) => (r, Some(lane.parse::<usize>().unwrap())),
            None => (name, None),
        };
        match register {
            "scc" => return self.wave.set_scc(v != 0, false),
            "vcc" => return self.wave.set_scalar(VCC, (self.wave.lanes / 32) as u16, Scalar::known(v)).unwrap(),
            "exec" => return self.wave.set_exec(Scalar::known(v)).unwrap(),
            "m0" => return self.wave.set_scalar(M0, 1, Scalar::known(v)).unwrap(),
            "ieee" => return self.wave.mode.ieee = v != 0,
            "denorm" => return (self.wave.mode.denorm32, self.wave.mode.denorm64) = (v as u8, v as u8),
            _ => {}
        }
        let (kind, first, count) = register_name(register);
        for (i, word) in words(count).enumerate() {
            let index = first + i as u16;
            if kind == 's' {
                self.wave.set_scalar(index, 1, Scalar::known(u64::from(word))).unwrap();
                continue;
            }
            let lanes = lane.map_or(0..self.wave.lanes, |l| l..l + 1);
            let r = self.wave.vector_mut(kind == 'a', index).unwrap();
            for l in lanes {
                (r.v[l], r.u[l]) = (word, 0);
            }
        }
    }

    fn check(&mut self, case: &str, name: &str, text: &str) {
        let (want, _) = self.value(text);
        let (name, undefined) = match name.strip_prefix("u:") {
            Some(n) => (n, true),
            None => (name, false),
        };
        let same = |what: String, v: u64, u: u64, mask: u64| {
            if undefined {
                assert_eq!(u, want & mask, "{case}\nundefined bits of {what}: {u:#x}");
            } else {
                assert_eq!(v, want & mask, "{case}\n{what} is {v:#x}, {:#x} wanted", want & mask);
                assert_eq!(u, 0, "{case}\n{what} is undefined");
            }
        };
        if let Some(offset) = name.strip_prefix("mem+") {
            let at = self.base + offset.parse::<u64>().unwrap();
            let bytes = self.memory.read(at, 4).unwrap();
            let v = u32::from_le_bytes(bytes.try_into().unwrap());
            let u = if self.memory.undefined_bytes(at, 4).unwrap() == 0 { 0 } else { 0xFFFF_FFFF };
            return same(name.to_owned(), u64::from(v), u, 0xFFFF_FFFF);
        }
        if let Some(offset) = name.strip_prefix("lds+") {
            let by = crate::gcn::lds::By { wave: 0, seq: 0, vm: false };
            let own = self.wave.outstanding;
            let (v, u) = self.lds.read(offset.parse().unwrap(), 4, LdsAccess::Read, by, &own).unwrap();
            let word = |b: [u8; 16]| u64::from(u32::from_le_bytes(b[..4].try_into().unwrap()));
            return same(name.to_owned(), word(v), word(u), 0xFFFF_FFFF);
        }
        let (register, lane) = match name.split_once('@') {
            Some((r, lane)) => (r, Some(lane.parse::<usize>().unwrap())),
            None => (name, None),
        };
        match register {
            "scc" => return same("scc".into(), u64::from(self.wave.scc), u64::from(self.wave.scc_undefined), 1),
            "exec" => return same("exec".into(), self.wave.exec(), 0, u64::MAX),
            "vcc" => {
                let s = self.wave.vcc().unwrap();
                return same("vcc".into(), s.v, s.u, u64::MAX);
            }
            "m0" => {
                let s = self.wave.scalar(M0, 1).unwrap();
                return same("m0".into(), s.v, s.u, 0xFFFF_FFFF);
            }
            _ => {}
        }
        let (kind, first, count) = register_name(register);
        for i in 0..count {
            let half = |x: u64| x >> (32 * i) & 0xFFFF_FFFF;
            let fits = |v: u64, u: u64, what: String| {
                if undefined {
                    assert_eq!(u, half(want), "{case}\nundefined bits of {what}: {u:#x}");
                } else {
                    assert_eq!(v, half(want), "{case}\n{what} is {v:#x}, {:#x} wanted", half(want));
                    assert_eq!(u, 0, "{case}\n{what} has undefined bits {u:#x}");
                }
            };
            if kind == 's' {
                let s = self.wave.scalar(first + i, 1).unwrap();
                fits(s.v, s.u, format!("s{}", first + i));
                continue;
            }
            let r: Lanes = self.wave.vector(kind == 'a', first + i).unwrap().clone();
            let lanes = lane.map_or(0..LANES, |l| l..l + 1);
            for l in lanes.filter(|l| lane.is_some() || self.wave.exec() >> l & 1 == 1) {
                fits(u64::from(r.v[l]), u64::from(r.u[l]), format!("{kind}{}@{l}", first + i));
            }
        }
    }
}

/// `v[2:3]` → ('v', 2, 2).
fn register_name(name: &str) -> (char, u16, u16) {
    let kind = name.chars().next().unwrap();
    let rest = &name[1..];
    match rest.strip_prefix('[').and_then(|r| r.strip_suffix(']')).and_then(|r| r.split_once(':')) {
        Some((a, b)) => (kind, a.parse().unwrap(), b.parse::<u16>().unwrap() - a.parse::<u16>().unwrap() + 1),
        None => (kind, rest.parse().unwrap_or_else(|_| panic!("register `{name}`")), 1),
    }
}

/// Runs one case on gfx950.
fn case(line: &str) {
    case_on(Target::GFX950, line);
}

/// Runs one case.
fn case_on(target: Target, line: &str) {
    // Operands hold bars too (`|v1|`), without blanks around them.
    let line = &line.replace("| |", "|  |");
    let parts: Vec<_> = line.split(" | ").map(str::trim).collect();
    let [program, before, after] = parts[..] else { panic!("case `{line}`") };
    let mut b = Bench::new(target);
    for item in before.split_whitespace() {
        let (name, value) = item.split_once('=').unwrap();
        // EXEC last: registers are set in all lanes.
        b.set(name, value);
    }
    b.run(program).unwrap_or_else(|f| panic!("{line}\n{} (lane {:?})", f.kind, f.lane));
    b.wave.wait(WaitCounts::ALL);
    for item in after.split_whitespace() {
        let (name, value) = item.split_once('=').unwrap();
        b.check(line, name, value);
    }
}

/// Mnemonics of a case's instructions, without encoding suffix, both halves of pairs.
fn bases(line: &str) -> Vec<String> {
    let program = line.split(" | ").next().unwrap_or_default();
    let name = |text: &str| decode::base_mnemonic(crate::gcn::object::mnemonic(text.trim())).into_owned();
    program.split(';').flat_map(|inst| inst.split(" :: ")).map(name).collect()
}

fn lines(table: &str) -> impl Iterator<Item = &str> {
    table.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#'))
}

#[test]
fn instructions_give_the_hand_worked_results() {
    for table in cases::ALL {
        lines(table).for_each(case);
    }
}

/// Buffer, global, flat and scratch share one table: `name | data before | memory before | data after | memory after`.
#[test]
fn transfers_give_the_hand_worked_results_in_every_segment() {
    for target in [Target::GFX950, Target::GFX942, Target::GFX1201] {
        let run = lines(cases::TRANSFERS).map(|line| transfers(target, line)).sum::<usize>();
        assert!(run > 100, "{target}: {run} cases");
    }
}

/// Runs a line of the table in all segments that a chip has it for; how many that is.
fn transfers(target: Target, line: &str) -> usize {
    let isa = isa::for_target(target).unwrap();
    let mut run = 0;
    let parts: Vec<_> = line.split('|').map(str::trim).collect();
    let [name, data, memory, data_after, memory_after] = parts[..] else { panic!("case `{line}`") };
    let words = |t: &str| t.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let register = |n: usize| if n == 1 { "v4".to_owned() } else { format!("v[4:{}]", 3 + n) };
    let atomic = name.starts_with("atomic");
    for segment in ["buffer", "global", "flat", "scratch"] {
        if (segment == "scratch" && atomic) || name.contains("_lds_") {
            continue;
        }
        let v = register(words(data).len().max(words(data_after).len()));
        // An atomic returns its old value where it took its operand, in as many registers as it swaps.
        let result = if name.contains("cmpswap") {
            register(words(data).len() / 2).replace('4', "8").replace('5', "9")
        } else {
            v.clone()
        };
        // In the chip's own spelling.
        let own = match isa.chip.family {
            Family::Gfx9 => format!("{segment}_{name}"),
            Family::Gfx12 => isa::gfx12::spelling(&format!("{segment}_{name}")),
        };
        if isa.lookup(&own).is_none() {
            continue;
        }
        let program = match (segment, atomic) {
            ("buffer", false) => format!("buffer_{name} {v}, v1, s[4:7], s8 offen offset:8"),
            ("buffer", true) => format!("buffer_{name} {v}, v1, s[4:7], s8 offen offset:8 sc0"),
            ("global", false) if name.starts_with("store") => format!("global_{name} v1, {v}, s[2:3] offset:8"),
            ("global", false) => format!("global_{name} {v}, v1, s[2:3] offset:8"),
            ("flat", false) if name.starts_with("store") => format!("flat_{name} v[2:3], {v} offset:8"),
            ("flat", false) => format!("flat_{name} {v}, v[2:3] offset:8"),
            ("scratch", false) if name.starts_with("store") => format!("scratch_{name} off, {v}, s8 offset:16"),
            ("scratch", _) => format!("scratch_{name} {v}, off, s8 offset:16"),
            ("global", true) => format!("global_{name} {result}, v[2:3], {v}, off offset:8 sc0"),
            (_, _) => format!("flat_{name} {result}, v[2:3], {v} offset:8 sc0"),
        };
        let program = match isa.chip.family {
            Family::Gfx9 => program,
            Family::Gfx12 => program
                .replacen(&format!("{segment}_{name}"), &own, 1)
                .replace(" sc0", " th:TH_ATOMIC_RETURN scope:SCOPE_DEV"),
        };
        run += 1;
        // One lane: atomics of many would add up.
        let mut b = Bench::new(target);
        for (name, value) in [
            ("v1", "4"),
            ("v[2:3]", "$+8"),
            ("s[2:3]", "$+4"),
            ("s[4:5]", "$"),
            ("s6", "4096"),
            ("s7", if target == Target::GFX1201 { "0x31027000" } else { "0x27000" }),
            ("s8", "4"),
        ] {
            b.set(name, value);
        }
        b.wave.set_exec(Scalar::known(1)).unwrap();
        // All ways lead to byte 16, in scratch to byte 20.
        for (i, w) in words(memory).iter().enumerate() {
            if segment == "scratch" {
                let v = (b.value(w).0 as u32).to_le_bytes();
                b.wave.scratch.data[20 + 4 * i..24 + 4 * i].copy_from_slice(&v);
                b.wave.scratch.undefined[20 + 4 * i..24 + 4 * i].fill(0);
            } else {
                b.set(&format!("mem+{}", 16 + 4 * i), w);
            }
        }
        for (i, w) in words(data).iter().enumerate() {
            b.set(&format!("v{}", 4 + i), w);
        }
        b.run(&program).unwrap_or_else(|f| panic!("{program}: {}", f.kind));
        b.wave.wait(WaitCounts::ALL);
        let first = if name.contains("cmpswap") && segment != "buffer" { 8 } else { 4 };
        for (i, w) in words(data_after).iter().enumerate() {
            b.check(&program, &format!("v{}@0", first + i), w);
        }
        for (i, w) in words(memory_after).iter().enumerate() {
            if segment == "scratch" {
                let got = u32::from_le_bytes(b.wave.scratch.data[20 + 4 * i..24 + 4 * i].try_into().unwrap());
                assert_eq!(u64::from(got), b.value(w).0 & 0xFFFF_FFFF, "{program}");
            } else {
                b.check(&program, &format!("mem+{}", 16 + 4 * i), w);
            }
        }
    }
    run
}

/// Predicates by name: which of less, equal, greater, unordered make them true.
#[test]
fn compares_hold_for_the_outcomes_in_their_name() {
    let float = [
        ("f", ""),
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
        ("tru", "LEGU"),
    ];
    let integer =
        [("f", ""), ("lt", "L"), ("eq", "E"), ("le", "LE"), ("gt", "G"), ("ne", "LG"), ("ge", "GE"), ("t", "LEG")];
    // Type, a smaller and a larger value, NaN. Signed and unsigned order the pair differently.
    let types = [
        ("f16", "0xbc00", "0x3c00", Some("0x7e00"), 32),
        ("f32", "-1.0", "1.0", Some("0x7fc00000"), 32),
        ("f64", "-1.0d", "1.0d", Some("0x7ff8000000000000"), 64),
        ("i16", "0xffff", "1", None, 32),
        ("u16", "1", "0xffff", None, 32),
        ("i32", "0xffffffff", "1", None, 32),
        ("u32", "1", "0xffffffff", None, 32),
        ("i64", "0xffffffffffffffff", "1", None, 64),
        ("u64", "1", "0xffffffffffffffff", None, 64),
    ];
    for (ty, small, large, nan, bits) in types {
        let (a, b) = if bits == 64 { ("v[2:3]", "v[4:5]") } else { ("v2", "v4") };
        let predicates: &[(&str, &str)] = if nan.is_some() { &float } else { &integer };
        for (name, outcomes) in predicates {
            let pairs =
                [('L', small, large), ('E', large, large), ('G', large, small), ('U', large, nan.unwrap_or(large))];
            for (outcome, x, y) in pairs.into_iter().filter(|p| p.0 != 'U' || nan.is_some()) {
                let all = if outcomes.contains(outcome) { "0xffffffffffffffff" } else { "0x0000000000000000" };
                case(&format!("v_cmp_{name}_{ty}_e32 vcc, {a}, {b} | {a}={x} {b}={y} | vcc={all}"));
                case(&format!("v_cmp_{name}_{ty}_e64 s[10:11], {a}, {b} | {a}={x} {b}={y} | s[10:11]={all}"));
                case(&format!("v_cmpx_{name}_{ty}_e32 vcc, {a}, {b} | {a}={x} {b}={y} | vcc={all} exec={all}"));
            }
        }
    }
}

/// Mnemonics whose effect is on control flow, or on nothing.
const CONTROL: &[&str] = &[
    "s_nop",
    "s_setprio",
    "s_sethalt",
    "s_trap",
    "s_icache_inv",
    "s_dcache_inv",
    "s_dcache_wb",
    "s_dcache_inv_vol",
    "s_dcache_wb_vol",
    "buffer_wbl2",
    "buffer_inv",
    "s_sleep",
    "s_endpgm",
    "s_barrier",
    "s_waitcnt",
    "s_branch",
    "s_cbranch_scc0",
    "s_cbranch_scc1",
    "s_cbranch_vccz",
    "s_cbranch_vccnz",
    "s_cbranch_execz",
    "s_cbranch_execnz",
    "s_setpc_b64",
    "s_swappc_b64",
    "s_call_b64",
];

#[test]
fn control_goes_where_the_instruction_says() {
    let go = |program: &str, before: &str| {
        let mut b = Bench::new(Target::GFX950);
        for item in before.split_whitespace() {
            let (name, value) = item.split_once('=').unwrap();
            b.set(name, value);
        }
        b.run(program)
    };
    // At 0x100: 3 words on from the next instruction; 65535 is one back.
    let there = Ok(Flow::Jump(0x110));
    assert_eq!(go("s_branch 3", ""), there);
    assert_eq!(go("s_branch 65535", ""), Ok(Flow::Jump(0x100)));
    assert_eq!(go("s_cbranch_scc0 3", "scc=0"), there);
    assert_eq!(go("s_cbranch_scc0 3", "scc=1"), Ok(Flow::Next));
    assert_eq!(go("s_cbranch_scc1 3", "scc=1"), there);
    assert_eq!(go("s_cbranch_vccz 3", "vcc=0"), there);
    assert_eq!(go("s_cbranch_vccz 3", "vcc=4"), Ok(Flow::Next));
    assert_eq!(go("s_cbranch_vccnz 3", "vcc=4"), there);
    assert_eq!(go("s_cbranch_execz 3", "exec=0"), there);
    assert_eq!(go("s_cbranch_execnz 3", "exec=0"), Ok(Flow::Next));
    assert_eq!(go("s_cbranch_execnz 3", "exec=8"), there);
    let hints = [
        "s_nop 7",
        "s_setprio 1",
        "s_icache_inv",
        "s_dcache_inv",
        "s_dcache_wb",
        "s_dcache_inv_vol",
        "s_dcache_wb_vol",
    ];
    for hint in hints.into_iter().chain(["buffer_wbl2 sc0 sc1", "buffer_inv sc1", "s_waitcnt vmcnt(0)"]) {
        assert_eq!(go(hint, ""), Ok(Flow::Next), "{hint}");
    }
    assert_eq!(go("s_sleep 1", ""), Ok(Flow::Yield));
    assert_eq!(go("s_endpgm", ""), Ok(Flow::End));
    assert_eq!(go("s_barrier", ""), Ok(Flow::Barrier));
    for trap in ["s_trap 2", "s_sethalt 1"] {
        assert!(matches!(go(trap, ""), Err(Fault { kind: ErrorKind::Trap(_), .. })), "{trap}");
    }
    // Jumps through registers take device addresses: there and back.
    let code = crate::gcn::memory::code_address(0x40);
    let mut b = Bench::new(Target::GFX950);
    b.wave.set_scalar(2, 2, Scalar::known(code)).unwrap();
    assert_eq!(b.run("s_setpc_b64 s[2:3]"), Ok(Flow::Jump(0x40)));
    assert_eq!(b.run("s_swappc_b64 s[4:5], s[2:3]"), Ok(Flow::Jump(0x40)));
    assert_eq!(b.run("s_setpc_b64 s[4:5]"), Ok(Flow::Jump(0x104)));
    assert_eq!(b.run("s_call_b64 s[6:7], 2"), Ok(Flow::Jump(0x10C)));
    assert_eq!(b.run("s_setpc_b64 s[6:7]"), Ok(Flow::Jump(0x104)));
}

#[test]
fn every_implemented_mnemonic_has_a_hand_worked_case() {
    let mut tested: BTreeSet<String> = CONTROL.iter().map(|m| (*m).to_owned()).collect();
    for line in cases::ALL.iter().flat_map(|t| lines(t)) {
        for inst in line.split(" | ").next().unwrap_or_default().split(';') {
            tested.insert(decode::base_mnemonic(crate::gcn::object::mnemonic(inst.trim())).into_owned());
        }
    }
    for line in lines(cases::TRANSFERS) {
        let name = line.split('|').next().unwrap_or_default().trim();
        for segment in ["buffer", "global", "flat", "scratch"] {
            tested.insert(format!("{segment}_{name}"));
        }
    }
    let isa = isa::for_target(Target::GFX950).unwrap();
    // Matrix instructions have tests of their own.
    tested.extend(isa.mnemonics().into_iter().filter(|m| m.starts_with("v_mfma_")).map(str::to_owned));
    // Compares are built from predicate and type; the test of those covers all combinations.
    let is_compare = |m: &str| m.starts_with("v_cmp") && !m.contains("class");
    let missing: Vec<_> = isa.mnemonics().into_iter().filter(|m| !tested.contains(*m) && !is_compare(m)).collect();
    assert!(missing.is_empty(), "{} without a case: {missing:?}", missing.len());
    // Of gfx12, what is not one of those rows under the same or another name.
    let gfx12 = isa::for_target(Target::GFX1201).unwrap();
    let mut own: BTreeSet<String> = lines(cases::GFX12).flat_map(bases).collect();
    own.extend(GFX12_CONTROL.iter().map(|m| (*m).to_owned()));
    let known: BTreeSet<String> = isa.mnemonics().into_iter().map(isa::gfx12::spelling).collect();
    let is_compare = |m: &str| m.starts_with("s_cmp_") || m.starts_with("v_wmma_");
    let all = gfx12.mnemonics();
    let missing: Vec<_> = all.iter().filter(|m| !own.contains(**m) && !known.contains(**m) && !is_compare(m)).collect();
    assert!(missing.is_empty(), "gfx12: {} without a case: {missing:?}", missing.len());
}

/// Tested below and by whole kernels, not by cases.
const GFX12_CONTROL: &[&str] = &[
    "s_delay_alu",
    "s_wait_alu",
    "s_wait_idle",
    "s_clause",
    "s_sendmsg",
    "s_code_end",
    "global_inv",
    "global_wb",
    "global_wbinv",
    "s_barrier_signal",
    "s_barrier_wait",
    "s_wait_loadcnt",
    "s_wait_storecnt",
    "s_wait_samplecnt",
    "s_wait_bvhcnt",
    "s_wait_expcnt",
    "s_wait_dscnt",
    "s_wait_kmcnt",
    "s_wait_loadcnt_dscnt",
    "s_wait_storecnt_dscnt",
];

fn fault(program: &str, before: &str) -> ErrorKind {
    fault_on(Target::GFX950, program, before)
}

fn fault_on(target: Target, program: &str, before: &str) -> ErrorKind {
    let mut b = Bench::new(target);
    for item in before.split_whitespace() {
        let (name, value) = item.split_once('=').unwrap();
        b.set(name, value);
    }
    match b.run(program) {
        Ok(flow) => panic!("{program}: {flow:?}"),
        Err(fault) => fault.kind,
    }
}

#[test]
fn results_are_unusable_before_their_wait() {
    let state = "v[2:3]=$ v4=0 s[2:3]=$ mem+0=1 mem+4=2 lds+0=3 exec=1";
    let late = [
        "global_load_dword v1, v[2:3], off; v_mov_b32_e32 v0, v1",
        "global_load_dword v1, v[2:3], off; v_mov_b32_e32 v1, v4",
        "global_load_dword v1, v[2:3], off; s_waitcnt lgkmcnt(0); v_mov_b32_e32 v0, v1",
        "global_load_dword v1, v[2:3], off; global_load_dword v5, v[2:3], off; s_waitcnt vmcnt(1); v_mov_b32_e32 v0, v5",
        "ds_read_b32 v1, v4; v_mov_b32_e32 v0, v1",
        "ds_read_b32 v1, v4; ds_read_b32 v5, v4; s_waitcnt lgkmcnt(1); v_mov_b32_e32 v0, v5",
        "s_load_dword s8, s[2:3], 0x0; s_mov_b32 s9, s8",
        "s_load_dword s8, s[2:3], 0x0; s_load_dword s9, s[2:3], 0x0; s_waitcnt lgkmcnt(1); s_mov_b32 s10, s8",
        "s_load_dword s8, s[2:3], 0x0; s_mov_b32 s8, 0",
        "flat_load_dword v1, v[2:3]; s_waitcnt vmcnt(0); v_mov_b32_e32 v0, v1",
        "global_atomic_add v1, v[2:3], v4, off sc0; s_waitcnt lgkmcnt(0); v_mov_b32_e32 v0, v1",
        "global_atomic_add v1, v[2:3], v4, off sc0; global_store_dword v[2:3], v4, off; s_waitcnt vmcnt(2); v_mov_b32_e32 v0, v1",
        "ds_add_rtn_u32 v1, v4, v4; s_waitcnt vmcnt(0); v_mov_b32_e32 v0, v1",
        "flat_load_dword v1, v[2:3]; s_waitcnt lgkmcnt(0); v_mov_b32_e32 v0, v1",
        "global_load_dword v1, v[2:3], off; ds_read_b32 v1, v4",
    ];
    for program in late {
        let kind = fault(program, state);
        assert!(matches!(kind, ErrorKind::UseBeforeWait { .. }), "{program}: {kind}");
    }
    let fine = [
        "global_load_dword v1, v[2:3], off; global_load_dword v5, v[2:3], off; s_waitcnt vmcnt(1); v_mov_b32_e32 v0, v1",
        // In-order returns: the second one certainly lands last.
        "global_load_dword v1, v[2:3], off; global_load_dword v1, v[2:3], off; s_waitcnt vmcnt(0); v_mov_b32_e32 v0, v1",
        "flat_load_dword v1, v[2:3]; s_waitcnt vmcnt(0) lgkmcnt(0); v_mov_b32_e32 v0, v1",
        // Stores and atomics count like loads.
        "global_load_dword v1, v[2:3], off; global_store_dword v[2:3], v4, off; global_atomic_add v[2:3], v4, off; s_waitcnt vmcnt(2); v_mov_b32_e32 v0, v1",
        // What a wave copied to LDS it may read after the wait.
        "s_mov_b32 m0, 0; global_load_lds_dword v[2:3], off; s_waitcnt vmcnt(0); ds_read_b32 v1, v4",
        // A store reads its data at issue.
        "global_store_dword v[2:3], v4, off; v_mov_b32_e32 v4, 1",
    ];
    for program in fine {
        let mut b = Bench::new(Target::GFX950);
        for item in state.split_whitespace() {
            let (name, value) = item.split_once('=').unwrap();
            b.set(name, value);
        }
        b.run(program).unwrap_or_else(|f| panic!("{program}: {}", f.kind));
    }
}

#[test]
fn copies_to_lds_are_unusable_before_their_wait() {
    let state = "v[2:3]=$ v4=0 m0=0 mem+0=1 exec=1";
    for program in [
        "global_load_lds_dword v[2:3], off; ds_read_b32 v1, v4",
        "global_load_lds_dword v[2:3], off; s_waitcnt lgkmcnt(0); ds_write_b32 v4, v4",
        "global_load_lds_dword v[2:3], off; global_load_lds_dword v[2:3], off; s_waitcnt vmcnt(1); ds_add_u32 v4, v4",
    ] {
        assert_eq!(fault(program, state), ErrorKind::LdsBeforeWait { address: 0 }, "{program}");
    }
}

#[test]
fn a_transposing_read_wants_all_lanes_and_aligned_addresses() {
    for (program, before, expected) in [
        ("ds_read_b64_tr_b16 v[0:1], v2", "v2=0 lds+0=1 lds+4=2 exec=0x7fffffffffffffff", "inactive lanes"),
        ("ds_read_b64_tr_b8 v[0:1], v2", "v2=0 v2@9=4 lds+0=1 lds+4=2 lds+8=3", "8 bytes at LDS byte 4, misaligned"),
        ("ds_read_b96_tr_b6 v[0:2], v3", "v3=8 lds+8=1 lds+12=2 lds+16=3", "12 bytes at LDS byte 8, misaligned"),
    ] {
        let kind = fault(program, before).to_string();
        assert!(kind.contains(expected), "{program}: {kind}");
    }
    // An undefined element is undefined where it goes to, nowhere else.
    let mut b = Bench::new(Target::GFX950);
    for (name, value) in [("v2", "0"), ("v2@8", "64"), ("lds+0", "1"), ("lds+4", "2"), ("lds+64", "3")] {
        b.set(name, value);
    }
    b.run("ds_read_b64_tr_b16 v[0:1], v2").unwrap();
    b.wave.wait(WaitCounts::ALL);
    for (name, undefined) in [("u:v1@0", "0"), ("u:v1@2", "0xffff"), ("u:v0@2", "0"), ("u:v1@6", "0")] {
        b.check("an undefined element", name, undefined);
    }
}

#[test]
fn undefined_bits_are_errors_only_where_they_matter() {
    use crate::gcn::error::Sink::{Address, Branch, Control, Exec, Store};
    let caught = [
        ("global_load_dword v0, v[2:3], off", "", Address),
        ("buffer_load_dword v0, v9, s[4:7], 0 offen", "s[4:5]=$ s6=64 s7=0", Address),
        ("buffer_load_dword v0, off, s[4:7], 0", "s[4:5]=$ s7=0", Address),
        ("ds_read_b32 v0, v9", "", Address),
        ("s_load_dword s0, s[2:3], 0x0", "", Address),
        ("global_store_dword v[2:3], v9, off", "v[2:3]=$", Store),
        ("s_cmp_eq_u32 s9, 0; s_cbranch_scc1 1", "", Branch),
        ("v_cmp_eq_u32_e32 vcc, 0, v9; s_cbranch_vccz 1", "", Branch),
        ("v_cmp_eq_u32_e32 vcc, 0, v9; s_and_saveexec_b64 s[0:1], vcc", "", Exec),
        ("v_cmpx_eq_u32_e32 vcc, 0, v9", "", Exec),
        ("s_mov_b64 exec, s[8:9]", "", Exec),
        ("v_readlane_b32 s0, v1, s9", "v1=0", Control),
        ("s_cmov_b32 s0, 1; s_cmp_eq_u32 s9, 0; s_cmov_b32 s0, 1", "s0=0 scc=0", Control),
    ];
    for (program, state, sink) in caught {
        match fault(program, state) {
            ErrorKind::Undefined { sink: found, .. } => assert_eq!(found, sink, "{program}"),
            other => panic!("{program}: {other}"),
        }
    }
    // Copies and arithmetic are legitimate; bits that are masked off do not count.
    case("v_mov_b32_e32 v0, v9; v_add_u32_e32 v1, 1, v0 | | u:v1=0xffffffff");
    case("v_and_b32_e32 v0, 0xff, v9; v_lshlrev_b32_e32 v0, 4, v0 | | u:v0=0xff0");
    case("v_and_b32_e32 v0, 0, v9; v_cmp_eq_u32_e32 vcc, 0, v0; s_cbranch_vccz 1 | | vcc=0xffffffffffffffff");
    case("v_cndmask_b32_e32 v0, v1, v9, vcc | v1=5 vcc=0 | v0=5");
    case("v_cndmask_b32_e32 v0, v1, v9, vcc | v1=5 vcc=1 exec=1 | u:v0=0xffffffff");
    case("v_cndmask_b32_e64 v0, v1, v2, s[8:9] | v1=5 v2=6 | u:v0=3");
    case("ds_write_b32 v1, v9; s_waitcnt lgkmcnt(0); ds_read_b32 v0, v1 | v1=8 exec=1 | u:v0=0xffffffff");
    case("ds_write_b8 v1, v2; ds_read_b32 v0, v1 | v1=8 v2=7 exec=1 | u:v0=0xffffff00");
    case("global_load_dword v0, v[2:3], off | v[2:3]=$ exec=1 | u:v0=0xffffffff");
}

#[test]
fn places_outside_everything_are_errors() {
    let outside = |k: &ErrorKind| matches!(k, ErrorKind::OutsideAllocations { .. });
    assert!(outside(&fault("global_load_dword v0, v[2:3], off", "v[2:3]=$+4093 exec=1")));
    assert!(outside(&fault("global_store_dword v[2:3], v0, off", "v[2:3]=$-4 v0=0 exec=1")));
    assert!(outside(&fault("s_load_dwordx2 s[0:1], s[2:3], 0x0", "s[2:3]=$+4092")));
    assert!(outside(&fault("scratch_store_dword off, v0, off offset:64", "v0=0 exec=1")));
    // The descriptor promises more than was allocated.
    assert!(outside(&fault("buffer_load_dword v0, off, s[4:7], 0 offset:4092", "s[4:5]=$+4 s6=4096 s7=0 exec=1")));
    let lds = |k: &ErrorKind| matches!(k, ErrorKind::LdsOutOfRange { .. });
    assert!(lds(&fault("ds_read_b64 v[0:1], v2", "v2=1020 exec=1")));
    assert!(lds(&fault("ds_write_b32 v2, v0", "v2=-4 v0=0 exec=1")));
    let register = |k: &ErrorKind| matches!(k, ErrorKind::RegisterOutOfRange { .. });
    assert!(register(&fault("v_mov_b32_e32 v32, 0", "")));
    assert!(register(&fault("s_mov_b32 s64, 0", "")));
    assert!(register(&fault("v_accvgpr_write_b32 a8, v0", "v0=0")));
}

#[test]
fn a_wide_access_that_the_end_of_a_buffer_cuts_is_noted() {
    let cut = |program: &str, bytes: u32| {
        let mut b = Bench::new(Target::GFX950);
        let base = b.base;
        for (i, word) in [base as u32, (base >> 32) as u32, bytes, 0].into_iter().enumerate() {
            b.wave.set_scalar(4 + i as u16, 1, Scalar::known(u64::from(word))).unwrap();
        }
        b.set("v[8:9]", "0");
        b.set("v8", "4");
        b.run(program).unwrap();
        !b.cut.is_empty()
    };
    let load = "buffer_load_dwordx4 v[0:3], off, s[4:7], 0 offset:8";
    // Bytes 8 to 24: of a buffer that ends there, that ends among them, that ends before them.
    assert!(!cut(load, 24) && cut(load, 23) && cut(load, 12) && !cut(load, 8) && !cut(load, 0));
    let by_lane = "buffer_load_dwordx2 v[0:1], v8, s[4:7], 0 offen";
    assert!(!cut(by_lane, 12) && cut(by_lane, 8) && !cut(by_lane, 4));
    // One word is in the buffer or is not.
    assert!(!cut("buffer_load_dword v0, off, s[4:7], 0 offset:8", 10));
}

#[test]
fn unknown_text_is_an_error_that_names_it() {
    let isa = isa::for_target(Target::GFX950).unwrap();
    let unknown = decode::parse(isa, "v_frobnicate_b32_e32 v0, v1", 4).unwrap_err();
    assert_eq!(unknown, ErrorKind::UnknownInstruction("v_frobnicate_b32_e32".into()));
    let bad = [
        "v_add_f32_e32 v0, v1",
        "v_add_f32_e32 v0, v1, v2, v3",
        "v_add_f32_e32 v0, q1, v2",
        "v_add_f32_e32 v0, v[1:2, v2",
        "v_add_f32_e32 v0, v1, v2 frobnicate",
        "v_add_f32_e32 v0, v1, v2 row_shl:99",
        "v_add_f32_e32 v0, v9999, v2",
        "v_add_f32_e32 v0, v[5:2], v2",
        "s_waitcnt frobcnt(0)",
        "s_add_u32 s0, hwreg(HW_REG_MODE), s1",
        "ds_swizzle_b32 v0, v1 offset:swizzle(QUAD_PERM,0,1,2,9)",
        "v_mov_b32_dpp v0, v1 quad_perm:[0,1,2]",
        "v_mov_b32_e32 v0, 0x123456789ab",
    ];
    for text in bad {
        assert!(decode::parse(isa, text, 4).is_err(), "{text}");
    }
}

#[test]
fn operand_mistakes_are_errors_not_panics() {
    // What parses but makes no sense to the semantics.
    for program in [
        "v_add_f32_e32 s0, v1, v2",
        "v_add_f64 v0, v[2:3], v[4:5]",
        "s_mov_b64 s0, s[2:3]",
        "s_mov_b32 s[0:1], s2",
        "s_add_u32 v0, s1, s2",
        "global_load_dwordx4 v0, v[2:3], off",
        "global_store_dword v[2:3], s0, off",
        "buffer_load_dword v0, v1, s[4:5], 0 offen",
        "ds_read_b64 v0, v1",
        "v_readfirstlane_b32 v0, v1",
        "v_add_u32_e64 v0, -v1, v2",
        "v_mul_lo_u32 v0, v1, v2 clamp",
        "s_cbranch_scc1 s0",
        "v_pk_add_f32 v[0:1], v[2:3], 1.0",
        "v_cmp_lt_f32_e64 v0, v1, v2",
        "v_add_f32_e64 v0, v1, v2 mul:2",
    ] {
        let mut b = Bench::new(Target::GFX950);
        for r in 0..8 {
            b.set(&format!("v{r}"), "0");
            b.set(&format!("s{r}"), "0");
        }
        assert!(b.run(program).is_err(), "{program}");
    }
}
