//! Loading and launching, on small code objects put together by hand.

use std::collections::BTreeMap;

use lathe_dsl::Target;
use serde::Serialize;

use super::*;

mod apart;
mod hazards;
mod kernels;

/// Machine code and what LLVM must call it.
type Code = &'static [(&'static [u32], &'static str)];

const LOAD_POINTER: (&[u32], &str) = (&[0xC006_0000, 0], "s_load_dwordx2 s[0:1], s[0:1], 0x0");
const LOAD_WORD_8: (&[u32], &str) = (&[0xC002_0100, 8], "s_load_dword s4, s[0:1], 0x8");
const WAIT_LGKM: (&[u32], &str) = (&[0xBF8C_C07F], "s_waitcnt lgkmcnt(0)");
const WAIT_VM: (&[u32], &str) = (&[0xBF8C_0F70], "s_waitcnt vmcnt(0)");
const OFFSET: (&[u32], &str) = (&[0x2402_0082], "v_lshlrev_b32_e32 v1, 2, v0");
const OFFSET_2: (&[u32], &str) = (&[0x2404_0082], "v_lshlrev_b32_e32 v2, 2, v0");
const OTHER_WAVE: (&[u32], &str) = (&[0x2A04_04FF, 0x100], "v_xor_b32_e32 v2, 0x100, v2");
const ADD_GROUP: (&[u32], &str) = (&[0xD1FD_0001, 0x0405_1002], "v_lshl_add_u32 v1, s2, 8, v1");
const MOVE_GROUP: (&[u32], &str) = (&[0x7E06_0202], "v_mov_b32_e32 v3, s2");
const MOVE_S4: (&[u32], &str) = (&[0x7E08_0204], "v_mov_b32_e32 v4, s4");
const STORE_V0: (&[u32], &str) = (&[0xDC70_8000, 0x0000_0001], "global_store_dword v1, v0, s[0:1]");
const STORE_V3: (&[u32], &str) = (&[0xDC70_8000, 0x0000_0301], "global_store_dword v1, v3, s[0:1]");
const LDS_WRITE: (&[u32], &str) = (&[0xD81A_0000, 0x0000_0002], "ds_write_b32 v2, v0");
const LDS_READ: (&[u32], &str) = (&[0xD86C_0000, 0x0300_0002], "ds_read_b32 v3, v2");
const BARRIER: (&[u32], &str) = (&[0xBF8A_0000], "s_barrier");
const LOOP: (&[u32], &str) = (&[0xBF82_FFFF], "s_branch 65535");
const END: (&[u32], &str) = (&[0xBF81_0000], "s_endpgm");
const V9: (&[u32], &str) = (&[0x7E12_0280], "v_mov_b32_e32 v9, 0");
const MFMA: (&[u32], &str) = (&[0xD3C2_8000, 0x0402_0300], "v_mfma_f32_4x4x1_16b_f32 a[0:3], v0, v1, a[0:3]");

/// Every thread stores its id.
const STORE_IDS: Code = &[LOAD_POINTER, OFFSET, ADD_GROUP, WAIT_LGKM, STORE_V0, END];
/// Every thread stores the id of the thread in the same place of the other wave, through LDS.
const EXCHANGE: Code =
    &[LOAD_POINTER, OFFSET, OFFSET_2, LDS_WRITE, OTHER_WAVE, WAIT_LGKM, BARRIER, LDS_READ, WAIT_LGKM, STORE_V3, END];

/// A code object in the making.
#[derive(Clone)]
struct Builder {
    code: Vec<u32>,
    kernarg: u32,
    scratch: u32,
    lds: u32,
    metadata_lds: u32,
    vgprs: u32,
    metadata_vgprs: u32,
    threads: u32,
    target: &'static str,
    machine: u16,
    properties: u16,
    preload: u16,
    rsrc2: u32,
    rsrc1: u32,
}

#[derive(Serialize)]
struct Note {
    #[serde(rename = "amdhsa.kernels")]
    kernels: Vec<BTreeMap<&'static str, Value>>,
    #[serde(rename = "amdhsa.target")]
    target: String,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Value {
    Int(u32),
    Text(&'static str),
    List(Vec<BTreeMap<&'static str, Value>>),
}

impl Builder {
    fn new(code: Code) -> Self {
        Self {
            code: code.iter().flat_map(|c| c.0).copied().collect(),
            kernarg: 8,
            scratch: 0,
            lds: 512,
            metadata_lds: 512,
            vgprs: 8,
            metadata_vgprs: 5,
            threads: 1024,
            target: "amdgcn-amd-amdhsa--gfx950",
            machine: 224,
            // Kernel argument pointer.
            properties: 8,
            preload: 0,
            // Two user SGPRs, workgroup id x.
            rsrc2: 2 << 1 | 1 << 7,
            // Denormals kept, DX10 clamp, IEEE.
            rsrc1: 0xF << 16 | 1 << 21 | 1 << 23,
        }
    }

    fn build(&self) -> Vec<u8> {
        let argument = |offset: u32, size: u32| {
            BTreeMap::from([
                (".offset", Value::Int(offset)),
                (".size", Value::Int(size)),
                (".value_kind", Value::Text("by_value")),
            ])
        };
        let mut args = vec![argument(0, 8)];
        args.extend((8..self.kernarg).step_by(4).map(|o| argument(o, 4)));
        let kernel = BTreeMap::from([
            (".name", Value::Text("k")),
            (".symbol", Value::Text("k.kd")),
            (".kernarg_segment_size", Value::Int(self.kernarg)),
            (".group_segment_fixed_size", Value::Int(self.metadata_lds)),
            (".private_segment_fixed_size", Value::Int(self.scratch)),
            (".vgpr_count", Value::Int(self.metadata_vgprs)),
            (".sgpr_count", Value::Int(12)),
            (".wavefront_size", Value::Int(64)),
            (".max_flat_workgroup_size", Value::Int(self.threads)),
            (".args", Value::List(args)),
        ]);
        let note = rmp_serde::to_vec_named(&Note { kernels: vec![kernel], target: self.target.into() }).unwrap();

        // One segment: file offsets are addresses.
        let mut out = vec![0u8; 64 + 56];
        let align = |out: &mut Vec<u8>, n: usize| out.resize(out.len().next_multiple_of(n), 0);
        let note_at = out.len();
        out.extend([7u32, note.len() as u32, 32].iter().flat_map(|w| w.to_le_bytes()));
        out.extend(b"AMDGPU\0\0");
        out.extend(&note);
        align(&mut out, 4);
        let note_size = out.len() - note_at;
        align(&mut out, 64);
        let descriptor_at = out.len();
        let code_at = descriptor_at + 192;
        let mut d = [0u8; 64];
        let mut put = |at: usize, bytes: &[u8]| d[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &self.lds.to_le_bytes());
        put(4, &self.scratch.to_le_bytes());
        put(8, &self.kernarg.to_le_bytes());
        put(16, &192i64.to_le_bytes());
        // Registers in eights; the accumulation registers begin behind all of them, in fours.
        put(44, &(self.vgprs / 4 - 1).to_le_bytes());
        put(48, &(self.rsrc1 | (self.vgprs / 8 - 1)).to_le_bytes());
        put(52, &self.rsrc2.to_le_bytes());
        put(56, &self.properties.to_le_bytes());
        put(58, &self.preload.to_le_bytes());
        out.extend(d);
        out.resize(code_at, 0);
        out.extend(self.code.iter().flat_map(|w| w.to_le_bytes()));
        let code_size = out.len() - code_at;
        align(&mut out, 8);
        let symbols_at = out.len();
        let names = b"\0k\0k.kd\0";
        let symbol = |name: u32, info: u8, section: u16, value: usize, size: usize| {
            let mut s = Vec::new();
            s.extend(name.to_le_bytes());
            s.extend([info, 0]);
            s.extend(section.to_le_bytes());
            s.extend((value as u64).to_le_bytes());
            s.extend((size as u64).to_le_bytes());
            s
        };
        out.extend(symbol(0, 0, 0, 0, 0));
        out.extend(symbol(1, 0x12, 3, code_at, code_size));
        out.extend(symbol(3, 0x11, 2, descriptor_at, 64));
        let names_at = out.len();
        out.extend(names);
        let section_names = b"\0.note\0.rodata\0.text\0.symtab\0.strtab\0";
        let section_names_at = out.len();
        out.extend(section_names);
        align(&mut out, 8);
        let sections_at = out.len();
        // name, type, flags, offset, size, link, info, entry size
        let sections: [[u64; 8]; 7] = [
            [0; 8],
            [1, 7, 2, note_at as u64, note_size as u64, 0, 0, 0],
            [7, 1, 2, descriptor_at as u64, 64, 0, 0, 0],
            [15, 1, 6, code_at as u64, code_size as u64, 0, 0, 0],
            [21, 2, 0, symbols_at as u64, 72, 5, 1, 24],
            [29, 3, 0, names_at as u64, names.len() as u64, 0, 0, 0],
            [29, 3, 0, section_names_at as u64, section_names.len() as u64, 0, 0, 0],
        ];
        for [name, kind, flags, offset, size, link, info, entry] in sections {
            out.extend((name as u32).to_le_bytes());
            out.extend((kind as u32).to_le_bytes());
            out.extend(flags.to_le_bytes());
            out.extend(if flags & 2 != 0 { offset } else { 0 }.to_le_bytes());
            out.extend(offset.to_le_bytes());
            out.extend(size.to_le_bytes());
            out.extend((link as u32).to_le_bytes());
            out.extend((info as u32).to_le_bytes());
            out.extend(4u64.to_le_bytes());
            out.extend(entry.to_le_bytes());
        }
        let total = out.len() as u64;
        let mut h = Vec::new();
        h.extend(b"\x7fELF\x02\x01\x01\x40\x04\0\0\0\0\0\0\0");
        h.extend(3u16.to_le_bytes());
        h.extend(self.machine.to_le_bytes());
        h.extend(1u32.to_le_bytes());
        h.extend(0u64.to_le_bytes());
        h.extend(64u64.to_le_bytes());
        h.extend((sections_at as u64).to_le_bytes());
        h.extend(0x54Fu32.to_le_bytes());
        h.extend([64u16, 56, 1, 64, 7, 6].iter().flat_map(|x| x.to_le_bytes()));
        h.extend([1u32, 5].iter().flat_map(|x| x.to_le_bytes()));
        h.extend([0u64, 0, 0, total, total, 0x1000].iter().flat_map(|x| x.to_le_bytes()));
        out[..h.len()].copy_from_slice(&h);
        out
    }

    fn object(&self) -> CodeObject {
        CodeObject::load(&self.build(), Target::GFX950).unwrap_or_else(|e| panic!("{e}"))
    }

    fn refused(&self) -> String {
        match CodeObject::load(&self.build(), Target::GFX950) {
            Ok(_) => panic!("loaded"),
            Err(e) => e.to_string(),
        }
    }
}

/// Runs over `groups` workgroups of `threads`, each thread with one word of output.
fn run(object: &CodeObject, groups: u32, threads: u32, options: &Options) -> Result<(Vec<u32>, Stats)> {
    let mut memory = Memory::default();
    let words = (groups * 64).max(groups * threads) as usize;
    let out = memory.alloc(4 * words);
    memory.write(out, &vec![0xEE; 4 * words])?;
    let stats = launch(object, "k", [groups, 1, 1], [threads, 1, 1], &out.to_le_bytes(), &mut memory, options)?;
    let bytes = memory.read(out, 4 * words)?;
    Ok((bytes.chunks(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect(), stats))
}

#[test]
fn the_disassembly_is_what_the_tests_say() {
    for code in [STORE_IDS, EXCHANGE, &[LOAD_POINTER, LOAD_WORD_8, WAIT_LGKM, MOVE_S4, MOVE_GROUP, WAIT_VM, LOOP, END]]
    {
        let object = Builder::new(code).object();
        let listing: Vec<_> = object.listing(object.kernel("k").unwrap()).map(|(_, text)| text).collect();
        assert_eq!(listing, code.iter().map(|c| c.1).collect::<Vec<_>>());
    }
}

#[test]
fn threads_and_workgroups_have_their_ids() {
    let object = Builder::new(STORE_IDS).object();
    // 64-word stride a workgroup, and a last wave that is not full.
    let (out, stats) = run(&object, 3, 64, &Options::default()).unwrap();
    assert!(out.iter().enumerate().all(|(i, x)| *x == (i % 64) as u32));
    assert_eq!((stats.workgroups, stats.instructions), (3, 18));
    let (out, stats) = run(&object, 1, 65, &Options::default()).unwrap();
    assert!(out.iter().enumerate().all(|(i, x)| *x == i as u32), "{out:?}");
    assert_eq!(stats.instructions, 12);
}

#[test]
fn workgroups_may_wait_for_each_other() {
    // Workgroup 0 sleeps until workgroup 1 has stored its first id, 0.
    let object = Builder::new(&[
        LOAD_POINTER,
        OFFSET,
        ADD_GROUP,
        WAIT_LGKM,
        (&[0xBF06_8102], "s_cmp_eq_u32 s2, 1"),
        (&[0xBF85_0006], "s_cbranch_scc1 6"),
        (&[0xBF8E_0001], "s_sleep 1"),
        (&[0xC002_0100, 0x100], "s_load_dword s4, s[0:1], 0x100"),
        WAIT_LGKM,
        (&[0xBF06_8004], "s_cmp_eq_u32 s4, 0"),
        (&[0xBF84_FFFA], "s_cbranch_scc0 65530"),
        STORE_V0,
        END,
    ])
    .object();
    for seed in 0..5 {
        let options = Options { seed, max_steps: 10_000, ..Options::default() };
        let (out, _) = run(&object, 2, 64, &options).unwrap();
        assert!(out.iter().enumerate().all(|(i, x)| *x == (i % 64) as u32));
    }
    // The one that it waits for begins though no more are to be resident.
    for seed in 0..5 {
        run(&object, 2, 64, &Options { seed, resident: 1, max_steps: 10_000, ..Options::default() }).unwrap();
    }
    // Alone, its two waves wait for ever.
    for seed in 0..5 {
        let error = run(&object, 1, 128, &Options { seed, ..Options::default() }).unwrap_err();
        assert!(matches!(error.kind, ErrorKind::EndlessWait { on: Some(_), others: 1 }), "{error}");
        let site = error.site.as_ref().unwrap();
        assert_eq!((site.workgroup, site.wave), ([0; 3], 0), "{error}");
        assert!(
            error.to_string().contains("100 to change; no wave that still runs stores anything (1 more wait) at pc ")
        );
    }
    // A loop that reads nothing.
    let object = Builder::new(&[LOAD_POINTER, LOOP, END]).object();
    let error = run(&object, 1, 64, &Options::default()).unwrap_err();
    assert!(matches!(error.kind, ErrorKind::EndlessWait { others: 0, .. }), "{error}");
}

#[test]
fn three_dimensional_ids_are_packed() {
    let object = Builder::new(STORE_IDS).object();
    let mut memory = Memory::default();
    // The kernel uses the packed id as index: thread (3, 1, 1) stores at word 3 + 2^10 + 2^20.
    let out = memory.alloc(4 * (4 + (1 << 10) + (1 << 20)));
    launch(&object, "k", [1; 3], [4, 2, 2], &out.to_le_bytes(), &mut memory, &Options::default()).unwrap();
    let id = 3u32 | 1 << 10 | 1 << 20;
    assert_eq!(memory.read(out + 4 * u64::from(id), 4).unwrap(), id.to_le_bytes());
}

#[test]
fn every_order_of_waves_gives_the_same() {
    let object = Builder::new(EXCHANGE).object();
    for seed in 0..20 {
        for resident in [1, 4] {
            let options = Options { seed, resident, quantum: 1 + seed % 3, ..Options::default() };
            // One workgroup's worth of output: the workgroup id is not used, so all store the same.
            let (out, stats) = run(&object, 3, 128, &options).unwrap();
            assert!(out[..128].iter().enumerate().all(|(i, x)| *x == (i ^ 64) as u32), "seed {seed}: {out:?}");
            assert_eq!(stats.barriers, 3);
        }
    }
}

#[test]
fn mutants_are_found_exactly_where_the_trace_says_so() {
    let object = Builder::new(EXCHANGE).object();
    let (_, stats) = run(&object, 1, 128, &Options { record: true, ..Options::default() }).unwrap();
    let (needs, candidates) = (mutate::Needs::of(&stats.traces), mutate::candidates(&object, "k").unwrap());
    assert_eq!(candidates.iter().map(|c| c.text.as_str()).collect::<Vec<_>>(), [WAIT_LGKM.1, BARRIER.1, WAIT_LGKM.1]);
    for c in candidates {
        assert!(needs.verdict(c.pc).is_needed(), "{c:?}");
        let mutant = mutate::without(&object, c.pc).unwrap();
        for seed in 0..8 {
            let error = run(&mutant, 1, 128, &Options { seed, ..Options::default() }).unwrap_err();
            assert!(error.site.is_some(), "{error}");
        }
    }
    // With one wave alone the barrier orders nothing, and the wait before it still covers the pointer.
    let single = Builder::new(&[
        LOAD_POINTER,
        OFFSET,
        OFFSET_2,
        LDS_WRITE,
        WAIT_LGKM,
        BARRIER,
        LDS_READ,
        WAIT_LGKM,
        STORE_V3,
        END,
    ]);
    let object = single.object();
    let (_, stats) = run(&object, 1, 64, &Options { record: true, ..Options::default() }).unwrap();
    let needs = mutate::Needs::of(&stats.traces);
    let verdicts: Vec<_> = mutate::candidates(&object, "k").unwrap().iter().map(|c| needs.verdict(c.pc)).collect();
    assert_eq!(verdicts[1], mutate::Verdict::NoConflictAcrossIt);
    assert!(
        run(
            &mutate::without(&object, mutate::candidates(&object, "k").unwrap()[1].pc).unwrap(),
            1,
            64,
            &Options::default()
        )
        .is_ok()
    );
}

#[test]
fn mistakes_of_a_kernel_have_their_kind_and_place() {
    let fails = |code: Code| run(&Builder::new(code).object(), 1, 64, &Options::default()).unwrap_err();
    let over = fails(&[LOAD_WORD_8, END]);
    assert_eq!(over.kind, ErrorKind::KernargOverRead { offset: 8, bytes: 4, size: 8 });
    let early = fails(&[LOAD_POINTER, OFFSET, STORE_V0, END]);
    assert!(matches!(early.kind, ErrorKind::UseBeforeWait { counter: Counter::Lgkmcnt, .. }), "{early}");
    let undefined = fails(&[LOAD_POINTER, OFFSET, WAIT_LGKM, STORE_V3, END]);
    assert!(matches!(undefined.kind, ErrorKind::Undefined { sink: Sink::Store, .. }), "{undefined}");
    let site = undefined.site.unwrap();
    assert_eq!((site.text.as_str(), site.wave, site.lane, site.workgroup), (STORE_V3.1, 0, Some(0), [0; 3]));
    let off_end = fails(&[OFFSET]);
    assert!(matches!(off_end.kind, ErrorKind::NoInstruction(_)), "{off_end}");
    let race = run(
        &Builder::new(&[OFFSET_2, LDS_WRITE, OTHER_WAVE, WAIT_LGKM, LDS_READ, END]).object(),
        1,
        128,
        &Options::default(),
    );
    assert!(matches!(race.unwrap_err().kind, ErrorKind::LdsRace { .. }));
    let unknown = fails(&[MFMA, END]);
    assert!(matches!(&unknown.kind, ErrorKind::UnknownInstruction(m) if m.starts_with("v_mfma")), "{unknown}");
    let endless = Builder::new(&[LOOP, END]).object();
    let limit = run(&endless, 1, 64, &Options { max_steps: 1000, ..Options::default() }).unwrap_err();
    assert_eq!(limit.kind, ErrorKind::StepLimit(1000));
    assert!(limit.to_string().contains("s_branch"), "{limit}");
}

#[test]
fn preloaded_arguments_arrive_in_registers_and_the_prologue_is_skipped() {
    // 256 bytes of prologue that must not run, then: preloaded word 8 of the arguments is in s2, group id in s3.
    let mut b = Builder::new(&[LOAD_POINTER, OFFSET, WAIT_LGKM, MOVE_GROUP, STORE_V3, END]);
    b.code.splice(0..0, [LOOP.0[0]; 64]);
    b.kernarg = 12;
    b.preload = 2 << 7 | 1;
    b.rsrc2 = 3 << 1 | 1 << 7;
    let object = b.object();
    let mut memory = Memory::default();
    let out = memory.alloc(256);
    let args: Vec<u8> = out.to_le_bytes().into_iter().chain(77u32.to_le_bytes()).collect();
    launch(&object, "k", [1; 3], [64, 1, 1], &args, &mut memory, &Options::default()).unwrap();
    assert!(memory.read(out, 256).unwrap().chunks(4).all(|w| w == 77u32.to_le_bytes()));
}

#[test]
fn launches_that_do_not_fit_are_refused() {
    let object = Builder { threads: 256, ..Builder::new(STORE_IDS) }.object();
    let mut memory = Memory::default();
    let out = memory.alloc(4096).to_le_bytes();
    let mut go = |kernel: &str, grid, block, args: &[u8]| {
        launch(&object, kernel, grid, block, args, &mut memory, &Options::default()).unwrap_err().to_string()
    };
    assert!(go("q", [1; 3], [64, 1, 1], &out).contains("it has: k"));
    assert!(go("k", [1; 3], [257, 1, 1], &out).contains("257 threads, 1 to 256 allowed"));
    assert!(go("k", [1; 3], [0, 1, 1], &out).contains("0 threads"));
    assert!(go("k", [1; 3], [u32::MAX, u32::MAX, 2], &out).contains("allowed"));
    assert!(go("k", [0, 1, 1], [64, 1, 1], &out).contains("axis 0"));
    assert!(go("k", [1, 1 << 16, 1], [64, 1, 1], &out).contains("axis 1"));
    assert!(go("k", [1; 3], [64, 1, 1], &out[..4]).contains("4 bytes of arguments"));
    assert!(go("k", [1; 3], [64, 1, 1], &[0; 9]).contains("9 bytes of arguments"));
}

#[test]
fn contradictions_between_elf_descriptor_metadata_and_code_are_refused() {
    let b = Builder::new(STORE_IDS);
    assert!(
        Builder { metadata_lds: 256, ..b.clone() }.refused().contains("LDS bytes: descriptor says 512, metadata 256")
    );
    assert!(Builder { metadata_vgprs: 16, ..b.clone() }.refused().contains("metadata counts 16 VGPRs"));
    assert!(Builder { metadata_vgprs: 1, ..b.clone() }.refused().contains("uses VGPR 1, metadata counts 1"));
    assert!(Builder::new(&[V9, END]).refused().contains("uses VGPR 9"));
    assert!(Builder { target: "amdgcn-amd-amdhsa--gfx942", ..b.clone() }.refused().contains("not for gfx950"));
    assert!(Builder { machine: 62, ..b.clone() }.refused().contains("machine 62"));
    assert!(Builder { properties: 8 | 1 << 10, ..b.clone() }.refused().contains("wave size"));
    assert!(Builder { rsrc1: b.rsrc1 | 1 << 12, ..b.clone() }.refused().contains("rounding mode"));
    let error = CodeObject::load(&b.build(), Target::SM_90).err().unwrap();
    assert!(error.to_string().contains("no instruction table for sm_90"), "{error}");
}

#[test]
fn sizes_that_no_kernel_has_are_refused_before_memory_is_taken() {
    let b = Builder::new(STORE_IDS);
    let most = (1 << 13) * 1024 / 64 - 16;
    assert!(Builder { kernarg: (1 << 16) + 4, ..b.clone() }.refused().contains("65540 bytes of arguments"));
    assert!(
        Builder { scratch: most + 16, ..b.clone() }.refused().contains("bytes of scratch a lane, gfx950 has 131056")
    );
    // A wave alone may have so much, many at a time may not.
    let object = Builder { scratch: most, ..b.clone() }.object();
    run(&object, 1, 64, &Options::default()).unwrap();
    let many = run(&object, 64, 64, &Options { resident: usize::MAX, ..Options::default() }).unwrap_err();
    assert!(many.to_string().contains("536805376 bytes of scratch at a time"), "{many}");
    let registers = Builder { preload: 127, kernarg: 512, ..b.clone() }.object();
    let arguments = [0; 512];
    let error = launch(&registers, "k", [1; 3], [64, 1, 1], &arguments, &mut Memory::default(), &Options::default());
    assert!(error.unwrap_err().to_string().contains("asks for 129 user SGPRs but counts 2"));
    // More memory than file: the zeros behind the code are none, and take no time to decode.
    let mut bytes = b.build();
    let text = field(&bytes, 40) + 64 * 3;
    bytes[text + 32..text + 40].copy_from_slice(&(1u64 << 25).to_le_bytes());
    bytes[64 + 40..64 + 48].copy_from_slice(&(1u64 << 25).to_le_bytes());
    let error = CodeObject::load(&bytes, Target::GFX950).err().unwrap();
    assert!(error.to_string().contains("code outside the file"), "{error}");
}

/// A word of 64 bits of a file.
fn field(bytes: &[u8], at: usize) -> usize {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize
}

/// Damage anywhere gives an error or a program that runs or fails: never a panic.
#[test]
fn damaged_objects_do_no_harm() {
    let good = Builder::new(EXCHANGE).build();
    for n in 0..good.len() {
        let _ = CodeObject::load(&good[..n], Target::GFX950);
    }
    let options = Options { max_steps: 2000, ..Options::default() };
    let mut loaded = 0;
    for at in 0..good.len() {
        for flip in [0x01, 0x10, 0x80, 0xFF] {
            let mut bytes = good.clone();
            bytes[at] ^= flip;
            if let Ok(object) = CodeObject::load(&bytes, Target::GFX950) {
                loaded += 1;
                let _ = run(&object, 1, 128, &options);
            }
        }
    }
    assert!(loaded > 100, "most code bits may be flipped: {loaded} objects loaded");
}

#[test]
fn coverage_questions() {
    assert!(is_implemented(Target::GFX950, "v_add_f32_e32").unwrap());
    assert!(is_implemented(Target::GFX950, "v_add_u32_sdwa").unwrap());
    assert!(!is_implemented(Target::GFX950, "v_frobnicate_b32").unwrap());
    assert!(is_implemented(Target::SM_90, "v_add_f32").is_err());
    let all = implemented_mnemonics(Target::GFX950).unwrap();
    assert!(all.is_sorted() && all.len() > 800);
    let object = Builder::new(EXCHANGE).object();
    assert!(object.mnemonics().contains(&"ds_read_b32"));
}
