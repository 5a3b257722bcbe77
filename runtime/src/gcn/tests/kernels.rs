//! Whole kernels with atomics and copies to LDS.

use super::*;

/// Every thread draws a number from word 0 and stores 1 in the word behind it that has this number.
const TICKETS: Code = &[
    (&[0xC006_0000, 0x0000_0000], "s_load_dwordx2 s[0:1], s[0:1], 0x0"),
    (&[0x7E02_0280], "v_mov_b32_e32 v1, 0"),
    (&[0x7E04_0281], "v_mov_b32_e32 v2, 1"),
    (&[0xBF8C_C07F], "s_waitcnt lgkmcnt(0)"),
    (&[0xDD09_8000, 0x0300_0201], "global_atomic_add v3, v1, v2, s[0:1] sc0"),
    (&[0xBF8C_0F70], "s_waitcnt vmcnt(0)"),
    (&[0x2408_0682], "v_lshlrev_b32_e32 v4, 2, v3"),
    (&[0xDC70_8004, 0x0000_0204], "global_store_dword v4, v2, s[0:1] offset:4"),
    (&[0xBF81_0000], "s_endpgm"),
];

/// Every thread adds 1.0 to word 0 by exchanging it until nobody was in between.
const FLOAT_COUNT: Code = &[
    (&[0xC006_0000, 0x0000_0000], "s_load_dwordx2 s[0:1], s[0:1], 0x0"),
    (&[0x7E02_0280], "v_mov_b32_e32 v1, 0"),
    (&[0xBF8C_C07F], "s_waitcnt lgkmcnt(0)"),
    (&[0xDC50_8000, 0x0300_0001], "global_load_dword v3, v1, s[0:1]"),
    (&[0xBF8C_0F70], "s_waitcnt vmcnt(0)"),
    (&[0x0204_06F2], "v_add_f32_e32 v2, 1.0, v3"),
    (&[0xDD05_8000, 0x0400_0201], "global_atomic_cmpswap v4, v1, v[2:3], s[0:1] sc0"),
    (&[0xBF8C_0F70], "s_waitcnt vmcnt(0)"),
    (&[0x7D94_0704], "v_cmp_eq_u32_e32 vcc, v4, v3"),
    (&[0x7E06_0304], "v_mov_b32_e32 v3, v4"),
    (&[0x89FE_6A7E], "s_andn2_b64 exec, exec, vcc"),
    (&[0xBF89_FFF7], "s_cbranch_execnz 65527"),
    (&[0xBF81_0000], "s_endpgm"),
];

/// Counts in LDS the threads whose ids agree modulo 8; every thread stores the count of its class.
const HISTOGRAM: Code = &[
    (&[0xC006_0000, 0x0000_0000], "s_load_dwordx2 s[0:1], s[0:1], 0x0"),
    (&[0x2602_0087], "v_and_b32_e32 v1, 7, v0"),
    (&[0x2402_0282], "v_lshlrev_b32_e32 v1, 2, v1"),
    (&[0x7E04_0281], "v_mov_b32_e32 v2, 1"),
    (&[0x7E06_0280], "v_mov_b32_e32 v3, 0"),
    (&[0x7D98_0088], "v_cmp_gt_u32_e32 vcc, 8, v0"),
    (&[0xBE84_206A], "s_and_saveexec_b64 s[4:5], vcc"),
    (&[0xD81A_0000, 0x0000_0301], "ds_write_b32 v1, v3"),
    (&[0xBEFE_0104], "s_mov_b64 exec, s[4:5]"),
    (&[0xBF8C_C07F], "s_waitcnt lgkmcnt(0)"),
    (&[0xBF8A_0000], "s_barrier"),
    (&[0xD800_0000, 0x0000_0201], "ds_add_u32 v1, v2"),
    (&[0xBF8C_C07F], "s_waitcnt lgkmcnt(0)"),
    (&[0xBF8A_0000], "s_barrier"),
    (&[0xD86C_0000, 0x0300_0001], "ds_read_b32 v3, v1"),
    (&[0x2408_0082], "v_lshlrev_b32_e32 v4, 2, v0"),
    (&[0xBF8C_C07F], "s_waitcnt lgkmcnt(0)"),
    (&[0xDC70_8000, 0x0000_0304], "global_store_dword v4, v3, s[0:1]"),
    (&[0xBF81_0000], "s_endpgm"),
];

/// Every wave copies its 64 words to LDS without registers; every thread stores the word of the other wave, 512 bytes on.
const COPY_TO_LDS: Code = &[
    (&[0xC006_0000, 0x0000_0000], "s_load_dwordx2 s[0:1], s[0:1], 0x0"),
    (&[0x2402_0082], "v_lshlrev_b32_e32 v1, 2, v0"),
    (&[0x2A04_02FF, 0x0000_0100], "v_xor_b32_e32 v2, 0x100, v1"),
    (&[0x7E06_0501], "v_readfirstlane_b32 s3, v1"),
    (&[0xBEFC_0003], "s_mov_b32 m0, s3"),
    (&[0xBF8C_C07F], "s_waitcnt lgkmcnt(0)"),
    (&[0xDCA8_8000, 0x0000_0001], "global_load_lds_dword v1, s[0:1]"),
    (&[0xBF8C_0F70], "s_waitcnt vmcnt(0)"),
    (&[0xBF8A_0000], "s_barrier"),
    (&[0xD86C_0000, 0x0300_0002], "ds_read_b32 v3, v2"),
    (&[0xBF8C_C07F], "s_waitcnt lgkmcnt(0)"),
    (&[0xDC70_8200, 0x0000_0301], "global_store_dword v1, v3, s[0:1] offset:512"),
    (&[0xBF81_0000], "s_endpgm"),
];

/// Runs on words of memory, in an order of workgroups and waves by `seed`, one instruction a turn.
fn on(object: &CodeObject, words: &[u32], groups: u32, threads: u32, seed: u64) -> Result<Vec<u32>> {
    let mut memory = Memory::default();
    let at = memory.alloc(4 * words.len());
    memory.write(at, &words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<_>>())?;
    let options = Options { seed, quantum: 1, max_steps: 1_000_000, ..Options::default() };
    launch(object, "k", [groups, 1, 1], [threads, 1, 1], &at.to_le_bytes(), &mut memory, &options)?;
    let bytes = memory.read(at, 4 * words.len())?;
    Ok(bytes.chunks(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect())
}

#[test]
fn the_disassembly_is_what_the_kernels_say() {
    for code in [TICKETS, FLOAT_COUNT, HISTOGRAM, COPY_TO_LDS] {
        let object = Builder::new(code).object();
        let listing: Vec<_> = object.listing(object.kernel("k").unwrap()).map(|(_, text)| text).collect();
        assert_eq!(listing, code.iter().map(|c| c.1).collect::<Vec<_>>());
    }
}

#[test]
fn every_thread_of_all_workgroups_draws_its_own_number() {
    let object = Builder::new(TICKETS).object();
    for seed in 0..4 {
        let out = on(&object, &[0; 3 * 100 + 2], 3, 100, seed).unwrap();
        assert_eq!(out[0], 300);
        assert!(out[1..301].iter().all(|w| *w == 1), "seed {seed}");
        assert_eq!(out[301], 0);
    }
}

#[test]
fn exchanges_in_a_loop_lose_nothing() {
    let object = Builder::new(FLOAT_COUNT).object();
    for seed in 0..4 {
        assert_eq!(on(&object, &[0], 2, 128, seed).unwrap(), [256f32.to_bits()], "seed {seed}");
    }
}

#[test]
fn a_histogram_needs_its_waits_and_barriers() {
    let object = Builder::new(HISTOGRAM).object();
    for seed in 0..4 {
        let out = on(&object, &[0; 128], 2, 128, seed).unwrap();
        assert!(out.iter().all(|w| *w == 16), "seed {seed}: {out:?}");
    }
    all_needed(&object, 128);
}

#[test]
fn copies_to_lds_need_their_wait_and_barrier() {
    let object = Builder::new(COPY_TO_LDS).object();
    let words: Vec<_> = (0..256).collect();
    for seed in 0..4 {
        let out = on(&object, &words, 1, 128, seed).unwrap();
        assert!((0..128).all(|i| out[128 + i] == (i ^ 64) as u32), "seed {seed}: {out:?}");
    }
    all_needed(&object, 256);
}

/// Without any one of its waits and barriers the kernel is refused, in every order.
fn all_needed(object: &CodeObject, words: usize) {
    for c in mutate::candidates(object, "k").unwrap() {
        let mutant = mutate::without(object, c.pc).unwrap();
        for seed in 0..4 {
            let error = on(&mutant, &vec![0; words], 1, 128, seed).unwrap_err();
            assert!(error.site.is_some(), "{}: {error}", c.text);
        }
    }
}
