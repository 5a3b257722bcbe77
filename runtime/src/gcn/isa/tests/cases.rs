//! The cases, one table an encoding family.

pub(super) const ALL: &[&str] = &[
    SCALAR,
    SCALAR_MEMORY,
    VECTOR_BITS,
    VECTOR_INTEGER,
    VECTOR_FLOAT,
    CONVERT,
    SPECIAL,
    PACKED,
    LDS,
    LOAD_LDS,
    MODIFIERS,
];

const SCALAR: &str = "
s_mov_b32 s0, s1 | s1=7 | s0=7
s_mov_b32 s0, 0x12345678 | s1=7 | s0=0x12345678
s_mov_b32 s0, 0.5 | s1=7 | s0=0x3f000000
s_mov_b64 s[0:1], s[2:3] | s[2:3]=0x123456789abcdef0 | s[0:1]=0x123456789abcdef0
s_mov_b64 s[0:1], -1 | s2=0 | s[0:1]=0xffffffffffffffff
s_movk_i32 s0, 0x8000 | s1=0 | s0=0xffff8000
s_cmov_b32 s0, 5 | scc=1 s0=1 | s0=5
s_cmov_b32 s0, 5 | scc=0 s0=1 | s0=1
s_cmov_b64 s[0:1], 5 | scc=1 s[0:1]=0x100000001 | s[0:1]=0x0000000000000005
s_cmovk_i32 s0, 0xffff | scc=1 s0=1 | s0=-1
s_cselect_b32 s0, s1, s2 | scc=1 s1=10 s2=20 | s0=10
s_cselect_b32 s0, s1, s2 | scc=0 s1=10 s2=20 | s0=20
s_cselect_b64 s[0:1], -1, 0 | scc=1 | s[0:1]=0xffffffffffffffff
s_add_u32 s0, s1, s2 | s1=0xffffffff s2=2 | s0=1 scc=1
s_add_u32 s0, s1, s2 | s1=3 s2=2 | s0=5 scc=0
s_addc_u32 s0, s1, 0 | s1=4 scc=1 | s0=5 scc=0
s_addc_u32 s0, s1, 0 | s1=0xffffffff scc=1 | s0=0 scc=1
s_sub_u32 s0, s1, s2 | s1=2 s2=3 | s0=0xffffffff scc=1
s_subb_u32 s0, s1, 0 | s1=5 scc=1 | s0=4 scc=0
s_subb_u32 s0, s1, 0 | s1=0 scc=1 | s0=0xffffffff scc=1
s_add_i32 s0, s1, 1 | s1=0x7fffffff | s0=0x80000000 scc=1
s_add_i32 s0, s1, -1 | s1=1 | s0=0 scc=0
s_sub_i32 s0, s1, 1 | s1=0x80000000 | s0=0x7fffffff scc=1
s_sub_i32 s0, s1, 3 | s1=1 | s0=-2 scc=0
s_addk_i32 s0, 0xfff8 | s0=10 | s0=2 scc=0
s_mulk_i32 s0, 0xfffe | s0=10 | s0=-20
s_lshl1_add_u32 s0, s1, s2 | s1=3 s2=1 | s0=7 scc=0
s_lshl2_add_u32 s0, s1, s2 | s1=3 s2=1 | s0=13 scc=0
s_lshl3_add_u32 s0, s1, s2 | s1=3 s2=1 | s0=25 scc=0
s_lshl4_add_u32 s0, s1, s2 | s1=0x10000000 s2=1 | s0=1 scc=1
s_abs_i32 s0, s1 | s1=-5 | s0=5 scc=1
s_absdiff_i32 s0, s1, s2 | s1=3 s2=10 | s0=7 scc=1
s_mul_i32 s0, s1, s2 | s1=-3 s2=5 | s0=-15
s_mul_hi_u32 s0, s1, s2 | s1=0xffffffff s2=0x10 | s0=0xf
s_mul_hi_i32 s0, s1, s2 | s1=-1 s2=0x10 | s0=-1
s_min_i32 s0, s1, s2 | s1=-1 s2=1 | s0=-1 scc=1
s_min_u32 s0, s1, s2 | s1=-1 s2=1 | s0=1 scc=0
s_max_i32 s0, s1, s2 | s1=-1 s2=1 | s0=1 scc=0
s_max_u32 s0, s1, s2 | s1=-1 s2=1 | s0=-1 scc=1
s_not_b32 s0, s1 | s1=0xf0f0f0f0 | s0=0x0f0f0f0f scc=1
s_not_b64 s[0:1], s[2:3] | s[2:3]=0xffffffffffffffff | s[0:1]=0x0000000000000000 scc=0
s_and_b32 s0, s1, s2 | s1=0xff00 s2=0x0ff0 | s0=0x0f00 scc=1
s_and_b64 s[0:1], s[2:3], s[4:5] | s[2:3]=0xf0000000000000ff s[4:5]=0x8000000000000f00 | s[0:1]=0x8000000000000000 scc=1
s_or_b32 s0, s1, s2 | s1=0xf s2=0xf0 | s0=0xff scc=1
s_or_b64 s[0:1], s[2:3], 0 | s[2:3]=0x0000000000000000 | s[0:1]=0x0000000000000000 scc=0
s_xor_b32 s0, s1, s2 | s1=0xff s2=0xf | s0=0xf0 scc=1
s_xor_b64 s[0:1], s[2:3], -1 | s[2:3]=0x00000000ffffffff | s[0:1]=0xffffffff00000000 scc=1
s_andn2_b32 s0, s1, s2 | s1=0xff s2=0xf | s0=0xf0 scc=1
s_andn2_b64 s[0:1], s[2:3], s[4:5] | s[2:3]=0xff000000000000ff s[4:5]=0x0f0000000000000f | s[0:1]=0xf0000000000000f0 scc=1
s_orn2_b32 s0, s1, s2 | s1=1 s2=0xfffffff0 | s0=0xf scc=1
s_orn2_b64 s[0:1], s[2:3], -1 | s[2:3]=0x0000000100000000 | s[0:1]=0x0000000100000000 scc=1
s_nand_b32 s0, s1, s2 | s1=-1 s2=0xffff | s0=0xffff0000 scc=1
s_nand_b64 s[0:1], s[2:3], -1 | s[2:3]=0xffffffff00000000 | s[0:1]=0x00000000ffffffff scc=1
s_nor_b32 s0, s1, s2 | s1=0xff s2=0xff00 | s0=0xffff0000 scc=1
s_nor_b64 s[0:1], s[2:3], 0 | s[2:3]=0xffffffffffffffff | s[0:1]=0x0000000000000000 scc=0
s_xnor_b32 s0, s1, s2 | s1=0xff s2=0xff | s0=-1 scc=1
s_xnor_b64 s[0:1], s[2:3], 0 | s[2:3]=0x00000000ffffffff | s[0:1]=0xffffffff00000000 scc=1
s_lshl_b32 s0, s1, 36 | s1=3 | s0=48 scc=1
s_lshl_b64 s[0:1], s[2:3], 33 | s[2:3]=0x0000000000000001 | s[0:1]=0x0000000200000000 scc=1
s_lshr_b32 s0, s1, 4 | s1=0x80000000 | s0=0x08000000 scc=1
s_lshr_b64 s[0:1], s[2:3], 36 | s[2:3]=0x8000000000000000 | s[0:1]=0x0000000008000000 scc=1
s_ashr_i32 s0, s1, 4 | s1=0x80000000 | s0=0xf8000000 scc=1
s_ashr_i64 s[0:1], s[2:3], 60 | s[2:3]=0x8000000000000000 | s[0:1]=0xfffffffffffffff8 scc=1
s_bfe_u32 s0, s1, 0x80004 | s1=0xabcd | s0=0xbc scc=1
s_bfe_i32 s0, s1, 0x80004 | s1=0xabcd | s0=0xffffffbc scc=1
s_bfe_i32 s0, s1, 0x80008 | s1=0x12345678 | s0=0x56 scc=1
s_bfe_u64 s[0:1], s[2:3], 0x100020 | s[2:3]=0x1234567800000000 | s[0:1]=0x0000000000005678 scc=1
s_bfe_i64 s[0:1], s[2:3], 0x100000 | s[2:3]=0x000000000000ffff | s[0:1]=0xffffffffffffffff scc=1
s_bfm_b32 s0, 4, 8 | s1=0 | s0=0xf00
s_bfm_b64 s[0:1], 4, 36 | s1=0 | s[0:1]=0x000000f000000000
s_brev_b32 s0, s1 | s1=1 | s0=0x80000000
s_brev_b64 s[0:1], s[2:3] | s[2:3]=0x0000000000000003 | s[0:1]=0xc000000000000000
s_sext_i32_i8 s0, s1 | s1=0x1280 | s0=0xffffff80
s_sext_i32_i16 s0, s1 | s1=0x18000 | s0=0xffff8000
s_pack_ll_b32_b16 s0, s1, s2 | s1=0x11112222 s2=0x33334444 | s0=0x44442222
s_pack_lh_b32_b16 s0, s1, s2 | s1=0x11112222 s2=0x33334444 | s0=0x33332222
s_pack_hh_b32_b16 s0, s1, s2 | s1=0x11112222 s2=0x33334444 | s0=0x33331111
s_wqm_b32 s0, s1 | s1=0x204 | s0=0xf0f scc=1
s_wqm_b64 s[0:1], s[2:3] | s[2:3]=0x8000000000000001 | s[0:1]=0xf00000000000000f scc=1
s_bitset0_b32 s0, 3 | s0=0xff | s0=0xf7
s_bitset1_b32 s0, 8 | s0=0xff | s0=0x1ff
s_bcnt0_i32_b32 s0, s1 | s1=0xff | s0=24 scc=1
s_bcnt0_i32_b64 s0, s[2:3] | s[2:3]=0xffffffffffffffff | s0=0 scc=0
s_bcnt1_i32_b32 s0, s1 | s1=0xff | s0=8 scc=1
s_bcnt1_i32_b64 s0, s[2:3] | s[2:3]=0xff000000000000ff | s0=16 scc=1
s_ff0_i32_b32 s0, s1 | s1=0xf | s0=4
s_ff0_i32_b64 s0, s[2:3] | s[2:3]=0x0000000fffffffff | s0=36
s_ff1_i32_b32 s0, s1 | s1=0x10 | s0=4
s_ff1_i32_b32 s0, s1 | s1=0 | s0=-1
s_ff1_i32_b64 s0, s[2:3] | s[2:3]=0x0000001000000000 | s0=36
s_flbit_i32_b32 s0, s1 | s1=0x00010000 | s0=15
s_flbit_i32_b64 s0, s[2:3] | s[2:3]=0x0000000000010000 | s0=47
s_flbit_i32 s0, s1 | s1=0xffff0000 | s0=16
s_flbit_i32_i64 s0, s[2:3] | s[2:3]=0x0000000000000000 | s0=-1
s_cmp_eq_i32 s0, s1 | s0=4 s1=4 | scc=1
s_cmp_lg_i32 s0, s1 | s0=4 s1=4 | scc=0
s_cmp_gt_i32 s0, s1 | s0=1 s1=-1 | scc=1
s_cmp_ge_i32 s0, s1 | s0=-1 s1=-1 | scc=1
s_cmp_lt_i32 s0, s1 | s0=1 s1=-1 | scc=0
s_cmp_le_i32 s0, s1 | s0=-2 s1=-1 | scc=1
s_cmp_eq_u32 s0, s1 | s0=4 s1=5 | scc=0
s_cmp_lg_u32 s0, s1 | s0=4 s1=5 | scc=1
s_cmp_gt_u32 s0, s1 | s0=1 s1=-1 | scc=0
s_cmp_ge_u32 s0, s1 | s0=-1 s1=1 | scc=1
s_cmp_lt_u32 s0, s1 | s0=1 s1=-1 | scc=1
s_cmp_le_u32 s0, s1 | s0=-1 s1=1 | scc=0
s_cmp_eq_u64 s[0:1], s[2:3] | s[0:1]=0x0000000100000000 s[2:3]=0x0000000000000000 | scc=0
s_cmp_lg_u64 s[0:1], s[2:3] | s[0:1]=0x0000000100000000 s[2:3]=0x0000000000000000 | scc=1
s_bitcmp0_b32 s0, 4 | s0=0x10 | scc=0
s_bitcmp1_b32 s0, 4 | s0=0x10 | scc=1
s_bitcmp0_b64 s[0:1], 40 | s[0:1]=0x0000010000000000 | scc=0
s_bitcmp1_b64 s[0:1], 40 | s[0:1]=0x0000010000000000 | scc=1
s_cmpk_eq_i32 s0, 0xffff | s0=-1 | scc=1
s_cmpk_lg_i32 s0, 0xffff | s0=-1 | scc=0
s_cmpk_gt_i32 s0, 0xffff | s0=0 | scc=1
s_cmpk_ge_i32 s0, 0x1 | s0=1 | scc=1
s_cmpk_lt_i32 s0, 0xffff | s0=0 | scc=0
s_cmpk_le_i32 s0, 0xffff | s0=-1 | scc=1
s_cmpk_eq_u32 s0, 0xffff | s0=0xffff | scc=1
s_cmpk_lg_u32 s0, 0xffff | s0=-1 | scc=1
s_cmpk_gt_u32 s0, 0xffff | s0=0x10000 | scc=1
s_cmpk_ge_u32 s0, 0xffff | s0=0xfffe | scc=0
s_cmpk_lt_u32 s0, 0xffff | s0=0 | scc=1
s_cmpk_le_u32 s0, 0x10 | s0=0x10 | scc=1
s_and_saveexec_b64 s[0:1], s[2:3] | s[2:3]=0x000000000000000f exec=0x00000000000000fc | s[0:1]=0x00000000000000fc exec=0x000000000000000c scc=1
s_or_saveexec_b64 s[0:1], s[2:3] | s[2:3]=0x000000000000000f exec=0x00000000000000f0 | s[0:1]=0x00000000000000f0 exec=0x00000000000000ff scc=1
s_xor_saveexec_b64 s[0:1], s[2:3] | s[2:3]=0x000000000000000f exec=0x000000000000000f | s[0:1]=0x000000000000000f exec=0x0000000000000000 scc=0
s_andn2_saveexec_b64 s[0:1], s[2:3] | s[2:3]=0x00000000000000ff exec=0x000000000000000f | s[0:1]=0x000000000000000f exec=0x00000000000000f0 scc=1
s_orn2_saveexec_b64 s[0:1], s[2:3] | s[2:3]=0x0000000000000001 exec=0xfffffffffffffff0 | s[0:1]=0xfffffffffffffff0 exec=0x000000000000000f scc=1
s_nand_saveexec_b64 s[0:1], s[2:3] | s[2:3]=0xffffffffffffffff exec=0xfffffffffffffff0 | s[0:1]=0xfffffffffffffff0 exec=0x000000000000000f scc=1
s_nor_saveexec_b64 s[0:1], s[2:3] | s[2:3]=0x00000000000000ff exec=0xffffffffffff0000 | s[0:1]=0xffffffffffff0000 exec=0x000000000000ff00 scc=1
s_xnor_saveexec_b64 s[0:1], s[2:3] | s[2:3]=0x000000000000000f exec=0xfffffffffffffff0 | s[0:1]=0xfffffffffffffff0 exec=0x0000000000000000 scc=0
s_andn1_saveexec_b64 s[0:1], s[2:3] | s[2:3]=0x000000000000000f exec=0x00000000000000ff | s[0:1]=0x00000000000000ff exec=0x00000000000000f0 scc=1
s_orn1_saveexec_b64 s[0:1], s[2:3] | s[2:3]=0xfffffffffffffff0 exec=0x00000000000000f0 | s[0:1]=0x00000000000000f0 exec=0x00000000000000ff scc=1
s_andn1_wrexec_b64 s[0:1], s[2:3] | s[2:3]=0x000000000000000f exec=0x00000000000000ff | s[0:1]=0x00000000000000f0 exec=0x00000000000000f0 scc=1
s_andn2_wrexec_b64 s[0:1], s[2:3] | s[2:3]=0x00000000000000ff exec=0x000000000000000f | s[0:1]=0x00000000000000f0 exec=0x00000000000000f0 scc=1
# The test's first instruction lies at 0x100, the code object at this address.
s_getpc_b64 s[0:1] | s2=0 | s[0:1]=0x00002b0000000104
# Default mode: denormals kept (bits 4 to 7), DX10 clamp, IEEE.
s_getreg_b32 s0, hwreg(HW_REG_MODE) | s2=0 | s0=0x3f0
s_getreg_b32 s0, hwreg(HW_REG_MODE, 4, 2) | s2=0 | s0=3
s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 0; s_getreg_b32 s0, hwreg(HW_REG_MODE) | s2=0 | s0=0x3c0
s_setreg_b32 hwreg(HW_REG_MODE, 4, 2), s2; s_getreg_b32 s0, hwreg(HW_REG_MODE) | s2=1 | s0=0x3d0
";

const SCALAR_MEMORY: &str = "
s_load_dword s0, s[2:3], 0x4 | s[2:3]=$ mem+4=11 | s0=11
s_load_dword s0, s[2:3], s4 | s[2:3]=$ s4=8 mem+8=12 | s0=12
s_load_dword s0, s[2:3], s4 offset:0x4 | s[2:3]=$ s4=8 mem+12=13 | s0=13
s_load_dwordx2 s[0:1], s[2:3], 0x0 | s[2:3]=$+4 mem+4=1 mem+8=2 | s0=1 s1=2
s_load_dwordx4 s[4:7], s[2:3], 0x0 | s[2:3]=$ mem+0=1 mem+4=2 mem+8=3 mem+12=4 | s4=1 s5=2 s6=3 s7=4
s_load_dwordx8 s[8:15], s[2:3], 0x10 | s[2:3]=$ mem+16=1 mem+44=8 | s8=1 s15=8
s_load_dwordx16 s[16:31], s[2:3], 0x0 | s[2:3]=$ mem+0=1 mem+60=16 | s16=1 s31=16
# Words beyond num_records give 0.
s_buffer_load_dword s0, s[4:7], 0x4 | s[4:5]=$ s6=8 s7=0x27000 mem+4=7 | s0=7
s_buffer_load_dword s0, s[4:7], 0x8 | s[4:5]=$ s6=8 s7=0x27000 mem+8=7 | s0=0
s_buffer_load_dwordx2 s[0:1], s[4:7], 0x4 | s[4:5]=$ s6=8 s7=0x27000 mem+4=7 mem+8=9 | s0=7 s1=0
s_buffer_load_dwordx4 s[8:11], s[4:7], s2 | s[4:5]=$ s6=64 s7=0x27000 s2=4 mem+4=1 mem+16=4 | s8=1 s11=4
s_buffer_load_dwordx8 s[8:15], s[4:7], 0x0 | s[4:5]=$ s6=64 s7=0x27000 mem+0=1 mem+28=8 | s8=1 s15=8
s_buffer_load_dwordx16 s[16:31], s[4:7], 0x0 | s[4:5]=$ s6=60 s7=0x27000 mem+0=1 mem+60=8 | s16=1 s31=0
";

const VECTOR_BITS: &str = "
v_mov_b32_e32 v0, v1 | v1=7 | v0=7
v_mov_b32_e32 v0, 1.0 | v1=7 | v0=1.0
v_mov_b32_e32 v0, 0.15915494 | v1=7 | v0=0x3e22f983
v_mov_b32_e32 v0, s3 | s3=9 | v0=9
v_mov_b32_e32 v0, v1 | v0=3 v1=7 exec=0x2 | v0@0=3 v0@1=7 v0@2=3
v_mov_b64_e32 v[0:1], v[2:3] | v[2:3]=0x123456789abcdef0 | v[0:1]=0x123456789abcdef0
v_accvgpr_write_b32 a1, v1; v_accvgpr_read_b32 v0, a1 | v1=7 | v0=7 a1=7
v_accvgpr_mov_b32 a2, a1 | a1=5 | a2=5
v_not_b32_e32 v0, v1 | v1=0xf0 | v0=0xffffff0f
v_and_b32_e32 v0, 0xff0, v1 | v1=0xabcd | v0=0xbc0
v_or_b32_e32 v0, 1, v1 | v1=0xf0 | v0=0xf1
v_xor_b32_e32 v0, -1, v1 | v1=0xff | v0=0xffffff00
v_xnor_b32_e32 v0, v1, v2 | v1=0xff v2=0xf0 | v0=0xfffffff0
v_and_or_b32 v0, v1, v2, v3 | v1=0xff v2=0xf0 v3=1 | v0=0xf1
v_or3_b32 v0, v1, v2, v3 | v1=1 v2=2 v3=4 | v0=7
v_bfi_b32 v0, v1, v2, v3 | v1=0xff00 v2=0x1234 v3=0x5678 | v0=0x1278
# Table 0xca is the select of bfi; 0x96 the parity of three.
v_bitop3_b32 v0, v1, v2, v3 bitop3:0xca | v1=0xff00 v2=0x1234 v3=0x5678 | v0=0x1278
v_bitop3_b32 v0, v1, v2, v3 bitop3:0x96 | v1=0xf v2=0x3 v3=0x5 | v0=0x9
v_bitop3_b16 v0, v1, v2, v3 bitop3:0x80 | v1=0xff v2=0xf0 v3=0x30 | v0=0x30
v_lshlrev_b32_e32 v0, 36, v1 | v1=3 | v0=48
v_lshrrev_b32_e32 v0, 4, v1 | v1=0x80000000 | v0=0x08000000
v_ashrrev_i32_e32 v0, 4, v1 | v1=0x80000000 | v0=0xf8000000
v_lshlrev_b64 v[0:1], 36, v[2:3] | v[2:3]=0x0000000000000003 | v[0:1]=0x0000003000000000
v_lshrrev_b64 v[0:1], 36, v[2:3] | v[2:3]=0x8000000000000000 | v[0:1]=0x0000000008000000
v_ashrrev_i64 v[0:1], v4, v[2:3] | v[2:3]=0x8000000000000000 v4=4 | v[0:1]=0xf800000000000000
v_lshlrev_b16_e32 v0, 4, v1 | v1=0x1fff | v0=0xfff0
v_lshrrev_b16_e32 v0, 4, v1 | v1=0x1ffff | v0=0x0fff
v_ashrrev_i16_e32 v0, 4, v1 | v1=0x8000 | v0=0xf800
v_lshl_or_b32 v0, v1, 8, v2 | v1=0xab v2=0xcd | v0=0xabcd
v_lshl_add_u32 v0, v1, 2, v2 | v1=3 v2=5 | v0=17
v_add_lshl_u32 v0, v1, v2, 2 | v1=3 v2=5 | v0=32
v_lshl_add_u64 v[0:1], v[2:3], 2, v[4:5] | v[2:3]=0x00000000c0000000 v[4:5]=0x0000000000000001 | v[0:1]=0x0000000300000001
v_alignbit_b32 v0, v1, v2, 8 | v1=0x11223344 v2=0x55667788 | v0=0x44556677
v_alignbyte_b32 v0, v1, v2, 3 | v1=0x11223344 v2=0x55667788 | v0=0x22334455
v_bfe_u32 v0, v1, 4, 8 | v1=0xabcd | v0=0xbc
v_bfe_i32 v0, v1, 4, 8 | v1=0xabcd | v0=0xffffffbc
v_bfe_i32 v0, v1, 28, 8 | v1=0x80000000 | v0=0xfffffff8
v_bfm_b32 v0, 4, 8 | v1=0 | v0=0xf00
v_bfrev_b32_e32 v0, v1 | v1=0x1 | v0=0x80000000
v_perm_b32 v0, v1, v2, v3 | v1=0x80112233 v2=0x44556677 v3=0x0d0c0700 | v0=0xff008077
v_perm_b32 v0, v1, v2, v3 | v1=0x80112233 v2=0x44556677 v3=0x0b0a0908 | v0=0xff000000
v_perm_b32 v0, v1, v2, v3 | v1=0xaabbccdd v2=0x44556677 v3=0x05040100 | v0=0xccdd6677
v_pack_b32_f16 v0, v1, v2 | v1=0x11112222 v2=0x33334444 | v0=0x44442222
v_pack_b32_f16 v0, v1, v2 op_sel:[1,1,0] | v1=0x11112222 v2=0x33334444 | v0=0x33331111
v_ffbh_u32_e32 v0, v1 | v1=0x00010000 | v0=15
v_ffbh_u32_e32 v0, v1 | v1=0 | v0=-1
v_ffbh_i32_e32 v0, v1 | v1=0xffff0000 | v0=16
v_ffbl_b32_e32 v0, v1 | v1=0x10 | v0=4
v_bcnt_u32_b32 v0, v1, v2 | v1=0xff v2=2 | v0=10
";

const VECTOR_INTEGER: &str = "
v_add_u32_e32 v0, v1, v2 | v1=-1 v2=3 | v0=2
v_add_u32_e64 v0, v1, v2 clamp | v1=-1 v2=3 | v0=-1
v_sub_u32_e32 v0, v1, v2 | v1=1 v2=3 | v0=-2
v_sub_u32_e64 v0, v1, v2 clamp | v1=1 v2=3 | v0=0
v_subrev_u32_e32 v0, v1, v2 | v1=1 v2=3 | v0=2
v_add_i32 v0, v1, v2 | v1=0x7fffffff v2=1 | v0=0x80000000
v_add_i32 v0, v1, v2 clamp | v1=0x7fffffff v2=1 | v0=0x7fffffff
v_sub_i32 v0, v1, v2 clamp | v1=0x80000000 v2=1 | v0=0x80000000
v_add3_u32 v0, v1, v2, v3 | v1=1 v2=2 v3=-4 | v0=-1
v_xad_u32 v0, v1, v2, v3 | v1=6 v2=3 v3=10 | v0=15
v_sad_u32 v0, v1, v2, v3 | v1=3 v2=10 v3=1 | v0=8
v_mul_lo_u32 v0, v1, v2 | v1=0x10001 v2=0x10001 | v0=0x20001
v_mul_hi_u32 v0, v1, v2 | v1=0x10000000 v2=0x100 | v0=0x10
v_mul_hi_i32 v0, v1, v2 | v1=-1 v2=2 | v0=-1
v_mul_u32_u24_e32 v0, v1, v2 | v1=0xff000003 v2=5 | v0=15
v_mul_hi_u32_u24_e32 v0, v1, v2 | v1=0x800000 v2=0x800 | v0=4
v_mul_i32_i24_e32 v0, v1, v2 | v1=0x00ffffff v2=5 | v0=-5
v_mul_hi_i32_i24_e32 v0, v1, v2 | v1=0x00ffffff v2=5 | v0=-1
v_mad_u32_u24 v0, v1, v2, v3 | v1=0xff000003 v2=5 v3=1 | v0=16
v_mad_i32_i24 v0, v1, v2, v3 | v1=0x00ffffff v2=5 v3=7 | v0=2
v_mad_u32_u16 v0, v1, v2, v3 | v1=0xffff0003 v2=5 v3=0x10000 | v0=0x1000f
v_mad_i32_i16 v0, v1, v2, v3 | v1=0xffff v2=5 v3=7 | v0=2
v_max_u32_e32 v0, v1, v2 | v1=-1 v2=1 | v0=-1
v_min_u32_e32 v0, v1, v2 | v1=-1 v2=1 | v0=1
v_max_i32_e32 v0, v1, v2 | v1=-1 v2=1 | v0=1
v_min_i32_e32 v0, v1, v2 | v1=-1 v2=1 | v0=-1
v_max3_u32 v0, v1, v2, v3 | v1=1 v2=-1 v3=5 | v0=-1
v_min3_u32 v0, v1, v2, v3 | v1=1 v2=-1 v3=5 | v0=1
v_med3_u32 v0, v1, v2, v3 | v1=1 v2=-1 v3=5 | v0=5
v_max3_i32 v0, v1, v2, v3 | v1=1 v2=-1 v3=5 | v0=5
v_min3_i32 v0, v1, v2, v3 | v1=1 v2=-1 v3=5 | v0=-1
v_med3_i32 v0, v1, v2, v3 | v1=1 v2=-1 v3=5 | v0=1
v_add_u16_e32 v0, v1, v2 | v1=0x1ffff v2=3 | v0=2
v_add_u16_e64 v0, v1, v2 clamp | v1=0xffff v2=3 | v0=0xffff
v_sub_u16_e32 v0, v1, v2 | v1=1 v2=3 | v0=0xfffe
v_subrev_u16_e32 v0, v1, v2 | v1=1 v2=3 | v0=2
v_add_i16 v0, v1, v2 clamp | v1=0x7fff v2=3 | v0=0x7fff
v_sub_i16 v0, v1, v2 | v1=1 v2=3 | v0=0xfffe
v_mul_lo_u16_e32 v0, v1, v2 | v1=0x101 v2=0x101 | v0=0x0201
v_mad_u16 v0, v1, v2, v3 | v1=0x100 v2=0x101 v3=5 | v0=0x0105
v_mad_i16 v0, v1, v2, v3 | v1=0xffff v2=2 v3=3 | v0=1
v_mad_legacy_u16 v0, v1, v2, v3 | v1=2 v2=3 v3=4 | v0=10
v_max_u16_e32 v0, v1, v2 | v1=0xffff v2=1 | v0=0xffff
v_min_u16_e32 v0, v1, v2 | v1=0xffff v2=1 | v0=1
v_max_i16_e32 v0, v1, v2 | v1=0xffff v2=1 | v0=1
v_min_i16_e32 v0, v1, v2 | v1=0xffff v2=1 | v0=0xffff
v_max3_u16 v0, v1, v2, v3 | v1=0xffff v2=1 v3=2 | v0=0xffff
v_min3_u16 v0, v1, v2, v3 | v1=0xffff v2=1 v3=2 | v0=1
v_max3_i16 v0, v1, v2, v3 | v1=0xffff v2=1 v3=2 | v0=2
v_min3_i16 v0, v1, v2, v3 | v1=0xffff v2=1 v3=2 | v0=0xffff
";

const VECTOR_FLOAT: &str = "
v_add_f32_e32 v0, v1, v2 | v1=1.5 v2=2.25 | v0=3.75
# 1 + 2^-24 is a tie: to even.
v_add_f32_e32 v0, v1, v2 | v1=1.0 v2=0x33800000 | v0=1.0
v_add_f32_e32 v0, v1, v2 | v1=inf v2=-inf | v0=0x7fc00000
v_add_f32_e32 v0, v1, v2 | v1=1.0 v2=0xffa00001 | v0=0xffe00001
# Subnormals are kept: 2^-126 - 2^-127.
v_add_f32_e32 v0, v1, v2 | v1=0x00800000 v2=0x80400000 | v0=0x00400000
v_add_f32_e32 v0, v1, v2 | v1=0x00800000 v2=0x80400000 denorm=0 | v0=0x00800000
v_sub_f32_e32 v0, v1, v2 | v1=1.5 v2=2.25 | v0=-0.75
v_subrev_f32_e32 v0, v1, v2 | v1=1.5 v2=2.25 | v0=0.75
v_mul_f32_e32 v0, v1, v2 | v1=1.5 v2=-2.0 | v0=-3.0
v_mul_f32_e32 v0, 0, v2 | v2=inf | v0=0x7fc00000
v_mul_legacy_f32_e64 v0, v1, v2 | v1=0.0 v2=inf | v0=0.0
# (1 + 3u)² − 1 = 6u + 9u² with u = 2^-23, rounded once: 1.5 · 2^-21 and two units in the last place.
v_fma_f32 v0, v1, v2, v3 | v1=0x3f800003 v2=0x3f800003 v3=-1.0 | v0=0x35400002
v_fmac_f32_e32 v0, v1, v2 | v0=1.0 v1=2.0 v2=3.0 | v0=7.0
v_fmaak_f32 v0, v1, v2, 0x40000000 | v1=2.0 v2=3.0 | v0=8.0
v_fmamk_f32 v0, v1, 0x40000000, v2 | v1=2.0 v2=3.0 | v0=7.0
v_max_f32_e32 v0, v1, v2 | v1=-1.0 v2=2.0 | v0=2.0
v_max_f32_e32 v0, v1, v2 | v1=0x7fc00000 v2=2.0 | v0=2.0
v_max_f32_e32 v0, v1, v2 | v1=0x80000000 v2=0 | v0=0
v_min_f32_e32 v0, v1, v2 | v1=0 v2=0x80000000 | v0=0x80000000
v_min_f32_e32 v0, v1, v2 | v1=-1.0 v2=2.0 | v0=-1.0
v_max3_f32 v0, v1, v2, v3 | v1=-1.0 v2=2.0 v3=1.0 | v0=2.0
v_min3_f32 v0, v1, v2, v3 | v1=-1.0 v2=2.0 v3=1.0 | v0=-1.0
v_med3_f32 v0, v1, v2, v3 | v1=-1.0 v2=2.0 v3=1.0 | v0=1.0
v_med3_f32 v0, v1, v2, v3 | v1=0x7fc00000 v2=2.0 v3=1.0 | v0=1.0
v_maximum3_f32 v0, v1, v2, v3 | v1=-1.0 v2=2.0 v3=1.0 | v0=2.0
v_maximum3_f32 v0, v1, v2, v2 | v1=0x7fc00000 v2=2.0 | v0=0x7fc00000
v_maximum3_f32 v0, v1, v2, v2 | v1=0x80000000 v2=0 | v0=0
v_minimum3_f32 v0, v1, v2, v3 | v1=-1.0 v2=2.0 v3=1.0 | v0=-1.0
v_minimum3_f32 v0, v1, v2, v2 | v1=0 v2=0x80000000 | v0=0x80000000
v_div_fixup_f32 v0, v1, v2, v3 | v1=2.0 v2=-3.0 v3=6.0 | v0=-2.0
v_div_fixup_f32 v0, v1, v2, v3 | v1=2.0 v2=0 v3=6.0 | v0=inf
v_div_fixup_f32 v0, v1, v2, v3 | v1=2.0 v2=0 v3=0 | v0=0xffc00000
v_trunc_f32_e32 v0, v1 | v1=-1.75 | v0=-1.0
v_ceil_f32_e32 v0, v1 | v1=-1.75 | v0=-1.0
v_floor_f32_e32 v0, v1 | v1=-1.25 | v0=-2.0
v_rndne_f32_e32 v0, v1 | v1=2.5 | v0=2.0
v_fract_f32_e32 v0, v1 | v1=-1.25 | v0=0.75
v_fract_f32_e32 v0, v1 | v1=0x80000001 | v0=0x3f7fffff
v_exp_f32_e32 v0, v1 | v1=-3.0 | v0=0.125
# 2^0.5 = 1.41421356…
v_exp_f32_e32 v0, v1 | v1=0.5 | v0=0x3fb504f3
v_exp_f32_e32 v0, v1 | v1=-inf | v0=0.0
v_log_f32_e32 v0, v1 | v1=0.125 | v0=-3.0
v_log_f32_e32 v0, v1 | v1=-1.0 | v0=0x7fc00000
v_rcp_f32_e32 v0, v1 | v1=-4.0 | v0=-0.25
v_rcp_f32_e32 v0, v1 | v1=0x80000000 | v0=-inf
# 1/3 = 0.333333343…
v_rcp_f32_e32 v0, v1 | v1=3.0 | v0=0x3eaaaaab
v_rcp_iflag_f32_e32 v0, v1 | v1=2.0 | v0=0.5
v_rsq_f32_e32 v0, v1 | v1=16.0 | v0=0.25
v_sqrt_f32_e32 v0, v1 | v1=2.0 | v0=0x3fb504f3
v_sin_f32_e32 v0, v1 | v1=0.25 | v0=1.0
v_cos_f32_e32 v0, v1 | v1=7.5 | v0=-1.0
v_ldexp_f32 v0, v1, v2 | v1=1.5 v2=-3 | v0=0.1875
v_ldexp_f32 v0, v1, v2 | v1=1.5 v2=1000 | v0=inf
# 1.5 · 2^-149 rounds to even, 2 · 2^-149.
v_ldexp_f32 v0, v1, v2 | v1=1.5 v2=-149 | v0=2
v_frexp_mant_f32_e32 v0, v1 | v1=-12.0 | v0=-0.75
v_frexp_exp_i32_f32_e32 v0, v1 | v1=12.0 | v0=4
v_frexp_exp_i32_f32_e32 v0, v1 | v1=inf | v0=0
v_add_f64 v[0:1], v[2:3], v[4:5] | v[2:3]=1.5d v[4:5]=2.25d | v[0:1]=3.75d
v_add_f64 v[0:1], v[2:3], 0x40240000 | v[2:3]=1.5d | v[0:1]=11.5d
v_mul_f64 v[0:1], v[2:3], 0.5 | v[2:3]=1.5d | v[0:1]=0.75d
v_fma_f64 v[0:1], v[2:3], v[4:5], v[6:7] | v[2:3]=2.0d v[4:5]=3.0d v[6:7]=-1.0d | v[0:1]=5.0d
v_fmac_f64_e32 v[0:1], v[2:3], v[4:5] | v[0:1]=1.0d v[2:3]=2.0d v[4:5]=3.0d | v[0:1]=7.0d
v_max_f64 v[0:1], v[2:3], v[4:5] | v[2:3]=-2.0d v[4:5]=-3.0d | v[0:1]=-2.0d
v_min_f64 v[0:1], v[2:3], v[4:5] | v[2:3]=-2.0d v[4:5]=-3.0d | v[0:1]=-3.0d
v_trunc_f64_e32 v[0:1], v[2:3] | v[2:3]=-1.75d | v[0:1]=-1.0d
v_ceil_f64_e32 v[0:1], v[2:3] | v[2:3]=1.25d | v[0:1]=2.0d
v_floor_f64_e32 v[0:1], v[2:3] | v[2:3]=-1.25d | v[0:1]=-2.0d
v_rndne_f64_e32 v[0:1], v[2:3] | v[2:3]=3.5d | v[0:1]=4.0d
v_fract_f64_e32 v[0:1], v[2:3] | v[2:3]=-1.25d | v[0:1]=0.75d
v_rcp_f64_e32 v[0:1], v[2:3] | v[2:3]=-4.0d | v[0:1]=-0.25d
v_rsq_f64_e32 v[0:1], v[2:3] | v[2:3]=16.0d | v[0:1]=0.25d
v_sqrt_f64_e32 v[0:1], v[2:3] | v[2:3]=6.25d | v[0:1]=2.5d
v_ldexp_f64 v[0:1], v[2:3], v4 | v[2:3]=1.5d v4=3 | v[0:1]=12.0d
v_frexp_mant_f64_e32 v[0:1], v[2:3] | v[2:3]=-12.0d | v[0:1]=-0.75d
v_frexp_exp_i32_f64_e32 v0, v[2:3] | v[2:3]=12.0d | v0=4
v_div_fixup_f64 v[0:1], v[2:3], v[4:5], v[6:7] | v[2:3]=2.0d v[4:5]=-3.0d v[6:7]=6.0d | v[0:1]=-2.0d
v_add_f16_e32 v0, v1, v2 | v1=1.5h v2=2.25h | v0=3.75h
v_sub_f16_e32 v0, v1, v2 | v1=1.5h v2=2.25h | v0=-0.75h
v_subrev_f16_e32 v0, v1, v2 | v1=1.5h v2=2.25h | v0=0.75h
v_mul_f16_e32 v0, 2.0, v2 | v2=1.5h | v0=3.0h
v_fma_f16 v0, v1, v2, v3 | v1=1.5h v2=2.0h v3=1.0h | v0=4.0h
v_max_f16_e32 v0, v1, v2 | v1=-1.5h v2=2.0h | v0=2.0h
v_min_f16_e32 v0, v1, v2 | v1=-1.5h v2=2.0h | v0=-1.5h
v_trunc_f16_e32 v0, v1 | v1=-1.5h | v0=-1.0h
v_ceil_f16_e32 v0, v1 | v1=1.5h | v0=2.0h
v_floor_f16_e32 v0, v1 | v1=-1.5h | v0=-2.0h
v_rndne_f16_e32 v0, v1 | v1=2.5h | v0=2.0h
v_exp_f16_e32 v0, v1 | v1=-2.0h | v0=0.25h
v_log_f16_e32 v0, v1 | v1=0.25h | v0=-2.0h
v_rcp_f16_e32 v0, v1 | v1=4.0h | v0=0.25h
v_rsq_f16_e32 v0, v1 | v1=4.0h | v0=0.5h
v_sqrt_f16_e32 v0, v1 | v1=6.25h | v0=2.5h
";

const CONVERT: &str = "
v_cvt_f32_u32_e32 v0, v1 | v1=-1 | v0=0x4f800000
v_cvt_f32_u32_e32 v0, v1 | v1=0x1000001 | v0=16777216.0
v_cvt_f32_i32_e32 v0, v1 | v1=-3 | v0=-3.0
v_cvt_u32_f32_e32 v0, v1 | v1=3.9 | v0=3
v_cvt_u32_f32_e32 v0, v1 | v1=-3.9 | v0=0
v_cvt_u32_f32_e32 v0, v1 | v1=1e20 | v0=-1
v_cvt_i32_f32_e32 v0, v1 | v1=-3.9 | v0=-3
v_cvt_i32_f32_e32 v0, v1 | v1=nan | v0=0
v_cvt_rpi_i32_f32_e32 v0, v1 | v1=2.5 | v0=3
v_cvt_flr_i32_f32_e32 v0, v1 | v1=-2.5 | v0=-3
v_cvt_f32_ubyte0_e32 v0, v1 | v1=0x04030201 | v0=1.0
v_cvt_f32_ubyte1_e32 v0, v1 | v1=0x04030201 | v0=2.0
v_cvt_f32_ubyte2_e32 v0, v1 | v1=0x04030201 | v0=3.0
v_cvt_f32_ubyte3_e32 v0, v1 | v1=0xff030201 | v0=255.0
v_cvt_pk_u8_f32 v0, v1, 1, v2 | v1=7.0 v2=0x11223344 | v0=0x11220744
v_cvt_f64_f32_e32 v[0:1], v2 | v2=-1.5 | v[0:1]=-1.5d
v_cvt_f32_f64_e32 v0, v[2:3] | v[2:3]=-1.5d | v0=-1.5
v_cvt_f32_f64_e32 v0, v[2:3] | v[2:3]=0x7ff8000000000000 | v0=0x7fc00000
v_cvt_f64_i32_e32 v[0:1], v2 | v2=-3 | v[0:1]=-3.0d
v_cvt_f64_u32_e32 v[0:1], v2 | v2=-1 | v[0:1]=4294967295.0d
v_cvt_i32_f64_e32 v0, v[2:3] | v[2:3]=-3.9d | v0=-3
v_cvt_u32_f64_e32 v0, v[2:3] | v[2:3]=3.9d | v0=3
v_cvt_f16_f32_e32 v0, v1 | v1=-1.5 | v0=0xbe00
v_cvt_f32_f16_e32 v0, v1 | v1=0xffffbe00 | v0=-1.5
v_cvt_f32_f16_e32 v0, v1 | v1=0x7c01 | v0=0x7fc02000
v_cvt_f32_bf16_e32 v0, v1 | v1=0xffffbfc0 | v0=-1.5
# bf16 of 1.00390625 = 1 + 2^-8: a tie, to even (1.0); 1 + 3·2^-8 ties up to 1 + 2^-6.
v_cvt_pk_bf16_f32 v0, v1, v2 | v1=1.00390625 v2=1.01171875 | v0=0x3f823f80
v_cvt_pk_bf16_f32 v0, v1, -v2 | v1=nan v2=1.0 | v0=0xbf807fc0
v_cvt_pk_f16_f32 v0, v1, v2 | v1=1.5 v2=-2.0 | v0=0xc0003e00
# 1.0009 lies between 0x3c00 and 0x3c01.
v_cvt_pkrtz_f16_f32 v0, v1, v2 | v1=1.0009 v2=-1.0009 | v0=0xbc003c00
v_cvt_f16_u16_e32 v0, v1 | v1=0xffff0003 | v0=3.0h
v_cvt_f16_i16_e32 v0, v1 | v1=0xffff | v0=-1.0h
v_cvt_u16_f16_e32 v0, v1 | v1=3.5h | v0=3
v_cvt_i16_f16_e32 v0, v1 | v1=-3.5h | v0=0xfffd
v_cvt_pk_u16_u32 v0, v1, v2 | v1=0x12345 v2=7 | v0=0x0007ffff
v_cvt_pk_i16_i32 v0, v1, v2 | v1=0x12345 v2=-7 | v0=0xfff97fff
v_sat_pk_u8_i16_e32 v0, v1 | v1=0x0123fff0 | v0=0xff00
v_ashr_pk_i8_i32 v0, v1, v2, 4 | v1=0x1000 v2=-32 | v0=0xfe7f
v_ashr_pk_u8_i32 v0, v1, v2, 4 | v1=0x1000 v2=-32 | v0=0x00ff
";

const SPECIAL: &str = "
v_nop | v1=1 | v1=1
v_cndmask_b32_e32 v0, v1, v2, vcc | v1=10 v2=20 vcc=0x0000000000000002 | v0@0=10 v0@1=20 v0@63=10
v_cndmask_b32_e64 v0, 0, 1, s[4:5] | s[4:5]=0x8000000000000000 | v0@0=0 v0@63=1
v_cndmask_b32_e64 v0, v1, -v2, s[4:5] | v1=1.0 v2=2.0 s[4:5]=0xffffffffffffffff | v0=-2.0
v_add_co_u32_e32 v0, vcc, v1, v2 | v1=-1 v2=2 | v0=1 vcc=0xffffffffffffffff
v_add_co_u32_e64 v0, s[4:5], v1, v2 | v1=5 v2=2 v1@3=-1 exec=0x000000000000000f | v0@0=7 v0@3=1 s[4:5]=0x0000000000000008
v_addc_co_u32_e32 v0, vcc, v1, v2, vcc | v1=5 v2=2 vcc=0x0000000000000001 | v0@0=8 v0@1=7 vcc=0x0000000000000000
v_sub_co_u32_e32 v0, vcc, v1, v2 | v1=1 v2=2 | v0=-1 vcc=0xffffffffffffffff
v_subrev_co_u32_e32 v0, vcc, v1, v2 | v1=1 v2=2 | v0=1 vcc=0x0000000000000000
v_subb_co_u32_e32 v0, vcc, v1, v2, vcc | v1=5 v2=5 vcc=0x0000000000000001 | v0@0=-1 v0@1=0 vcc=0x0000000000000001
v_subbrev_co_u32_e32 v0, vcc, v1, v2, vcc | v1=1 v2=5 vcc=0x0000000000000001 | v0@0=3 v0@1=4 vcc=0x0000000000000000
v_mad_u64_u32 v[0:1], s[4:5], v2, v3, v[6:7] | v2=-1 v3=-1 v[6:7]=0x00000000ffffffff | v[0:1]=0xffffffff00000000 s[4:5]=0x0000000000000000
v_mad_u64_u32 v[0:1], s[4:5], v2, v3, v[6:7] | v2=2 v3=2 v[6:7]=0xffffffffffffffff | v[0:1]=0x0000000000000003 s[4:5]=0xffffffffffffffff
v_mad_i64_i32 v[0:1], s[4:5], v2, v3, v[6:7] | v2=-2 v3=3 v[6:7]=0x0000000000000001 | v[0:1]=0xfffffffffffffffb s[4:5]=0x0000000000000000
v_readfirstlane_b32 s0, v1 | v1=3 v1@2=7 exec=0x000000000000000c | s0=7
v_readfirstlane_b32 s0, v1 | v1=3 v1@0=7 exec=0x0000000000000000 | s0=7
v_readlane_b32 s0, v1, 5 | v1=3 v1@5=7 exec=0x0000000000000001 | s0=7
v_readlane_b32 s0, v1, s2 | v1=3 v1@5=7 s2=69 | s0=7
v_writelane_b32 v0, s1, 5 | v0=1 s1=9 exec=0x0000000000000001 | v0@0=1 v0@5=9
v_mbcnt_lo_u32_b32 v0, -1, 0 | v1=0 | v0@0=0 v0@5=5 v0@31=31 v0@32=32 v0@63=32
v_mbcnt_lo_u32_b32 v0, s2, v1 | s2=5 v1=10 | v0@0=10 v0@1=11 v0@2=11 v0@3=12
v_mbcnt_hi_u32_b32 v0, -1, v1 | v1=32 | v0@0=32 v0@32=32 v0@63=63
v_swap_b32 v0, v1 | v0=1 v1=2 | v0=2 v1=1
# Rows 0 and 2 of v1 change places with rows 1 and 3 of v0.
v_permlane16_swap_b32_e32 v0, v1 | v0=1 v1=2 | v0@0=1 v0@16=2 v0@32=1 v0@48=2 v1@0=1 v1@16=2 v1@32=1 v1@63=2
v_permlane32_swap_b32_e32 v0, v1 | v0=1 v1=2 | v0@0=1 v0@31=1 v0@32=2 v1@31=1 v1@32=2
# Nothing to scale: 6 / 3. 2^-20 / 2^110 is subnormal: the numerator is scaled by 2^64.
v_div_scale_f32 v0, s[4:5], v1, v2, v1 | v1=6.0 v2=3.0 | v0=6.0 s[4:5]=0x0000000000000000
v_div_scale_f32 v0, vcc, v1, v2, v1 | v1=0x35800000 v2=0x76800000 | v0=0x55800000 vcc=0xffffffffffffffff
v_div_scale_f64 v[0:1], vcc, v[2:3], v[4:5], v[2:3] | v[2:3]=6.0d v[4:5]=3.0d | v[0:1]=6.0d vcc=0x0000000000000000
v_div_fmas_f32 v0, v1, v2, v3 | v1=2.0 v2=3.0 v3=2.0 vcc=0x0000000000000001 | v0@0=0x61000000 v0@1=8.0
v_div_fmas_f32 v0, v1, v2, v3 | v1=2.0 v2=3.0 v3=1.0 v3@0=0.5 v1@0=0.5 vcc=0x0000000000000001 | v0@0=0x20000000 v0@1=7.0
v_div_fmas_f64 v[0:1], v[2:3], v[4:5], v[6:7] | v[2:3]=2.0d v[4:5]=3.0d v[6:7]=1.0d vcc=0x0000000000000000 | v[0:1]=7.0d
# Class mask: bit 2 is -inf, bit 9 +inf, bit 6 +0.
v_cmp_class_f32_e64 s[4:5], v1, v2 | v1=-inf v2=4 | s[4:5]=0xffffffffffffffff
v_cmp_class_f32_e32 vcc, v1, v2 | v1=inf v2=4 | vcc=0x0000000000000000
v_cmp_class_f16_e64 s[4:5], v1, v2 | v1=0x7c00 v2=0x200 | s[4:5]=0xffffffffffffffff
v_cmp_class_f64_e64 s[4:5], v[2:3], v1 | v[2:3]=0.0d v1=0x40 | s[4:5]=0xffffffffffffffff
v_cmpx_class_f32_e32 vcc, v1, v2 | v1=1.0 v1@3=inf v2=0x200 | vcc=0x0000000000000008 exec=0x0000000000000008
v_cmpx_class_f16_e32 vcc, v1, v2 | v1=0x7c00 v2=0x200 | exec=0xffffffffffffffff
v_cmpx_class_f64_e32 vcc, v[2:3], v1 | v[2:3]=0.0d v1=0x40 | exec=0xffffffffffffffff
v_cmp_lt_u32_e32 vcc, v1, v2 | v1=1 v2=2 v1@4=3 exec=0x00000000000000ff | vcc=0x00000000000000ef
";

const PACKED: &str = "
v_pk_add_f32 v[0:1], v[2:3], v[4:5] | v2=1.0 v3=2.0 v4=10.0 v5=20.0 | v0=11.0 v1=22.0
v_pk_add_f32 v[0:1], v[2:3], v[4:5] op_sel:[0,1] op_sel_hi:[1,0] | v2=1.0 v3=2.0 v4=10.0 v5=20.0 | v0=21.0 v1=12.0
v_pk_add_f32 v[0:1], v[2:3], v[4:5] neg_lo:[0,1] neg_hi:[1,0] | v2=1.0 v3=2.0 v4=10.0 v5=20.0 | v0=-9.0 v1=18.0
v_pk_add_f32 v[0:1], v[2:3], v[4:5] clamp | v2=1.0 v3=-2.0 v4=10.0 v5=1.5 | v0=1.0 v1=0.0
v_pk_mul_f32 v[0:1], v[2:3], v[4:5] op_sel_hi:[1,0] | v2=1.0 v3=2.0 v4=10.0 v5=20.0 | v0=10.0 v1=20.0
v_pk_mul_f32 v[0:1], s[2:3], v[4:5] | s2=3.0 s3=4.0 v4=10.0 v5=20.0 | v0=30.0 v1=80.0
v_pk_mul_f32 v[0:1], v[2:3], 2.0 op_sel_hi:[1,0] | v2=1.0 v3=2.0 | v0=2.0 v1=4.0
v_pk_fma_f32 v[0:1], v[2:3], v[4:5], v[6:7] | v2=1.0 v3=2.0 v4=10.0 v5=20.0 v6=0.5 v7=0.25 | v0=10.5 v1=40.25
v_pk_mov_b32 v[0:1], v[2:3], v[4:5] op_sel:[1,0] | v2=1 v3=2 v4=3 v5=4 | v0=2 v1=3
v_pk_add_f16 v0, v1, v2 | v1=0x40003c00 v2=0x3c004000 | v0=0x42004200
v_pk_mul_f16 v0, v1, v2 op_sel_hi:[1,0] | v1=0x40003c00 v2=0x3c004000 | v0=0x44004000
v_pk_fma_f16 v0, v1, v2, v3 | v1=0x40003c00 v2=0x40004000 v3=0x3c003c00 | v0=0x45004200
v_pk_max_f16 v0, v1, v2 | v1=0xc0003c00 v2=0xbc004000 | v0=0xbc004000
v_pk_min_f16 v0, v1, v2 | v1=0xc0003c00 v2=0xbc004000 | v0=0xc0003c00
v_pk_add_u16 v0, v1, v2 | v1=0xffff0001 v2=0x00020003 | v0=0x00010004
v_pk_add_i16 v0, v1, -1 op_sel_hi:[1,0] | v1=0x00020001 | v0=0x00010000
v_pk_sub_u16 v0, v1, v2 | v1=0x00010005 v2=0x00020003 | v0=0xffff0002
v_pk_sub_i16 v0, v1, v2 | v1=0x00010005 v2=0x00020003 | v0=0xffff0002
v_pk_mul_lo_u16 v0, v1, v2 | v1=0x01010005 v2=0x01010003 | v0=0x0201000f
v_pk_mad_u16 v0, v1, v2, v3 | v1=0x00020005 v2=0x00030003 v3=0x00010002 | v0=0x00070011
v_pk_mad_i16 v0, v1, v2, v3 | v1=0xffff0005 v2=0x00030003 v3=0x00010002 | v0=0xfffe0011
v_pk_max_u16 v0, v1, v2 | v1=0xffff0001 v2=0x00020003 | v0=0xffff0003
v_pk_min_u16 v0, v1, v2 | v1=0xffff0001 v2=0x00020003 | v0=0x00020001
v_pk_max_i16 v0, v1, v2 | v1=0xffff0001 v2=0x00020003 | v0=0x00020003
v_pk_min_i16 v0, v1, v2 | v1=0xffff0001 v2=0x00020003 | v0=0xffff0001
v_pk_lshlrev_b16 v0, v1, v2 | v1=0x00040001 v2=0x12348001 | v0=0x23400002
v_pk_lshrrev_b16 v0, v1, v2 | v1=0x00040001 v2=0x12348001 | v0=0x01234000
v_pk_ashrrev_i16 v0, v1, v2 | v1=0x00040001 v2=0x82348001 | v0=0xf823c000
";

const LDS: &str = "
ds_read_u8 v0, v1 | v1=5 lds+4=0x11f23344 | v0=0x33
ds_read_i8 v0, v1 offset:2 | v1=4 lds+4=0x11f23344 | v0=0xfffffff2
ds_read_u16 v0, v1 offset:2 | v1=4 lds+4=0xf1f23344 | v0=0xf1f2
ds_read_i16 v0, v1 offset:2 | v1=4 lds+4=0xf1f23344 | v0=0xfffff1f2
ds_read_b32 v0, v1 offset:16 | v1=4 lds+20=77 | v0=77
ds_read_b64 v[2:3], v1 | v1=8 lds+8=1 lds+12=2 | v2=1 v3=2
ds_read_b96 v[2:4], v1 | v1=8 lds+8=1 lds+12=2 lds+16=3 | v2=1 v3=2 v4=3
ds_read_b128 v[2:5], v1 | v1=16 lds+16=1 lds+20=2 lds+24=3 lds+28=4 | v2=1 v3=2 v4=3 v5=4
ds_read_u8_d16 v0, v1 | v0=0xaaaabbbb v1=4 lds+4=0x112233f4 | v0=0xaaaa00f4
ds_read_u8_d16_hi v0, v1 | v0=0xaaaabbbb v1=4 lds+4=0x112233f4 | v0=0x00f4bbbb
ds_read_i8_d16 v0, v1 | v0=0xaaaabbbb v1=4 lds+4=0x112233f4 | v0=0xaaaafff4
ds_read_i8_d16_hi v0, v1 | v0=0xaaaabbbb v1=4 lds+4=0x112233f4 | v0=0xfff4bbbb
ds_read_u16_d16 v0, v1 | v0=0xaaaabbbb v1=4 lds+4=0x112233f4 | v0=0xaaaa33f4
ds_read_u16_d16_hi v0, v1 | v0=0xaaaabbbb v1=4 lds+4=0x112233f4 | v0=0x33f4bbbb
ds_read2_b32 v[2:3], v1 offset0:1 offset1:3 | v1=4 lds+8=1 lds+16=2 | v2=1 v3=2
ds_read2_b64 v[2:5], v1 offset1:2 | v1=0 lds+0=1 lds+4=2 lds+16=3 lds+20=4 | v2=1 v3=2 v4=3 v5=4
ds_read2st64_b32 v[2:3], v1 offset0:1 offset1:2 | v1=4 lds+260=1 lds+516=2 | v2=1 v3=2
ds_read2st64_b64 v[2:5], v1 offset1:1 | v1=0 lds+0=1 lds+4=2 lds+512=3 lds+516=4 | v2=1 v3=2 v4=3 v5=4
ds_write_b8 v1, v2 offset:1 | v1=4 v2=0xabcd lds+4=0x11223344 | lds+4=0x1122cd44
ds_write_b8_d16_hi v1, v2 | v1=4 v2=0xabcd1234 lds+4=0x11223344 | lds+4=0x112233cd
ds_write_b16 v1, v2 offset:2 | v1=4 v2=0x5678abcd lds+4=0x11223344 | lds+4=0xabcd3344
ds_write_b16_d16_hi v1, v2 | v1=4 v2=0x5678abcd lds+4=0x11223344 | lds+4=0x11225678
ds_write_b32 v1, v2 | v1=4 v2=9 | lds+4=9
ds_write_b64 v1, v[2:3] | v1=8 v2=9 v3=10 | lds+8=9 lds+12=10
ds_write_b96 v1, v[2:4] | v1=8 v2=9 v3=10 v4=11 | lds+8=9 lds+12=10 lds+16=11
ds_write_b128 v1, v[2:5] | v1=16 v2=9 v3=10 v4=11 v5=12 | lds+16=9 lds+20=10 lds+24=11 lds+28=12
ds_write2_b32 v1, v2, v3 offset0:1 offset1:3 | v1=4 v2=9 v3=10 | lds+8=9 lds+16=10
ds_write2_b64 v1, v[2:3], v[4:5] offset1:2 | v1=0 v2=1 v3=2 v4=3 v5=4 | lds+0=1 lds+4=2 lds+16=3 lds+20=4
ds_write2st64_b32 v1, v2, v3 offset1:1 | v1=4 v2=9 v3=10 | lds+4=9 lds+260=10
ds_write2st64_b64 v1, v[2:3], v[4:5] offset1:1 | v1=0 v2=1 v3=2 v4=3 v5=4 | lds+0=1 lds+512=3 lds+516=4
# 64 lanes add 2 each; the lane that comes n-th gets 2n + 1 back.
ds_add_u32 v1, v2 | v1=4 v2=2 lds+4=1 | lds+4=129
ds_add_rtn_u32 v0, v1, v2 | v1=4 v2=2 lds+4=1 | lds+4=129 v0@0=1 v0@63=127
ds_sub_u32 v1, v2 | v1=4 v2=2 lds+4=128 | lds+4=0
ds_sub_rtn_u32 v0, v1, v2 | v1=4 v2=2 lds+4=128 | lds+4=0 v0@0=128
ds_min_i32 v1, v2 | v1=4 v2=-2 lds+4=1 | lds+4=-2
ds_min_rtn_i32 v0, v1, v2 | v1=4 v2=-2 lds+4=1 | lds+4=-2 v0@0=1 v0@1=-2
ds_min_u32 v1, v2 | v1=4 v2=-2 lds+4=1 | lds+4=1
ds_min_rtn_u32 v0, v1, v2 | v1=4 v2=-2 lds+4=1 | lds+4=1 v0=1
ds_max_i32 v1, v2 | v1=4 v2=-2 lds+4=1 | lds+4=1
ds_max_rtn_i32 v0, v1, v2 | v1=4 v2=-2 lds+4=1 | lds+4=1 v0=1
ds_max_u32 v1, v2 | v1=4 v2=-2 lds+4=1 | lds+4=-2
ds_max_rtn_u32 v0, v1, v2 | v1=4 v2=-2 lds+4=1 | lds+4=-2 v0@0=1
ds_and_b32 v1, v2 | v1=4 v2=0xf0 lds+4=0xff | lds+4=0xf0
ds_and_rtn_b32 v0, v1, v2 | v1=4 v2=0xf0 lds+4=0xff | lds+4=0xf0 v0@0=0xff
ds_or_b32 v1, v2 | v1=4 v2=0xf0 lds+4=0xf | lds+4=0xff
ds_or_rtn_b32 v0, v1, v2 | v1=4 v2=0xf0 lds+4=0xf | lds+4=0xff v0@0=0xf
ds_xor_b32 v1, v2 | v1=4 v2=0xf0 lds+4=0xff exec=1 | lds+4=0xf
ds_xor_rtn_b32 v0, v1, v2 | v1=4 v2=0xf0 lds+4=0xff exec=1 | lds+4=0xf v0@0=0xff
# Counts 0 1 2 3 0 1 …: 64 steps from 3 with limit 3 end at 3 again.
ds_inc_u32 v1, v2 | v1=4 v2=3 lds+4=3 | lds+4=3
ds_inc_rtn_u32 v0, v1, v2 | v1=4 v2=3 lds+4=3 | v0@0=3 v0@1=0
ds_dec_u32 v1, v2 | v1=4 v2=3 lds+4=0 exec=1 | lds+4=3
ds_dec_rtn_u32 v0, v1, v2 | v1=4 v2=3 lds+4=2 exec=1 | lds+4=1 v0@0=2
ds_wrxchg_rtn_b32 v0, v1, v2 | v1=4 v2=3 lds+4=2 exec=1 | lds+4=3 v0@0=2
# Compare value first, then the new one.
ds_cmpst_rtn_b32 v0, v1, v2, v3 | v1=4 v2=2 v3=9 lds+4=2 exec=1 | lds+4=9 v0@0=2
ds_cmpst_rtn_b32 v0, v1, v2, v3 | v1=4 v2=1 v3=9 lds+4=2 exec=1 | lds+4=2 v0@0=2
ds_add_f32 v1, v2 | v1=4 v2=0.5 lds+4=1.0 | lds+4=33.0
ds_add_rtn_f32 v0, v1, v2 | v1=4 v2=0.5 lds+4=1.0 | v0@1=1.5
ds_add_u64 v1, v[2:3] | v1=8 v2=-1 v3=0 lds+8=1 lds+12=0 exec=1 | lds+8=0 lds+12=1
ds_add_rtn_u64 v[4:5], v1, v[2:3] | v1=8 v2=-1 v3=0 lds+8=1 lds+12=0 exec=1 | lds+12=1 v4@0=1 v5@0=0
ds_bpermute_b32 v0, v1, v2 | v1=12 v2=5 v2@3=7 v1@9=16 | v0@0=7 v0@9=5
ds_bpermute_b32 v0, v1, v2 offset:4 | v1=8 v2=5 v2@3=7 | v0=7
ds_bpermute_b32 v0, v1, v2 | v1=12 v2=5 exec=0x0000000000000001 | v0@0=0
ds_permute_b32 v0, v1, v2 | v1=12 v2=5 v2@63=7 | v0@0=0 v0@3=7
ds_swizzle_b32 v0, v1 offset:swizzle(QUAD_PERM,1,0,3,2) | v1=5 v1@1=7 | v0@0=7 v0@1=5
ds_swizzle_b32 v0, v1 offset:swizzle(SWAP,16) | v1=5 v1@16=7 | v0@0=7 v0@16=5
ds_swizzle_b32 v0, v1 offset:swizzle(REVERSE,4) | v1=5 v1@3=7 | v0@0=7 v0@3=5
ds_swizzle_b32 v0, v1 offset:swizzle(BROADCAST,8,2) | v1=5 v1@2=7 v1@10=8 | v0@0=7 v0@7=7 v0@8=8
ds_swizzle_b32 v0, v1 offset:swizzle(BITMASK_PERM,\"00p1i\") | v1=5 v1@3=7 | v0@0=7 v0@2=7 v0@1=5
ds_swizzle_b32 v0, v1 offset:31775 | v1=5 v1@31=7 | v0@0=7
";

const LOAD_LDS: &str = "
buffer_load_dword v1, s[4:7], 0 offen lds | v1=8 m0=16 s[4:5]=$ s6=4096 s7=0x27000 mem+8=7 exec=0x0000000000000003 | lds+16=7 lds+20=7
# Out of range: zero is written.
buffer_load_dword v1, s[4:7], 0 offen lds | v1=8 m0=16 s[4:5]=$ s6=8 s7=0x27000 mem+8=7 lds+16=1 exec=0x0000000000000001 | lds+16=0
buffer_load_lds_ubyte v1, s[4:7], 0 offen | v1=8 m0=0 s[4:5]=$ s6=4096 s7=0x27000 mem+8=0x1234 exec=0x0000000000000001 | lds+0=0x34
buffer_load_lds_ushort v1, s[4:7], 0 offen | v1=8 m0=0 s[4:5]=$ s6=4096 s7=0x27000 mem+8=0x51234 exec=0x0000000000000001 | lds+0=0x1234
buffer_load_lds_dword v1, s[4:7], 0 offen | v1=8 m0=4 s[4:5]=$ s6=4096 s7=0x27000 mem+8=5 exec=0x0000000000000001 | lds+4=5
buffer_load_lds_dwordx3 v1, s[4:7], 0 offen | v1=8 m0=4 s[4:5]=$ s6=4096 s7=0x27000 mem+8=5 mem+16=6 mem+12=9 exec=0x0000000000000001 | lds+4=5 lds+12=6
buffer_load_lds_dwordx4 v1, s[4:7], 0 offen | v1=0 m0=0 s[4:5]=$ s6=4096 s7=0x27000 mem+0=1 mem+4=2 mem+8=3 mem+12=4 exec=0x0000000000000002 | lds+16=1 lds+28=4
global_load_lds_ubyte v[2:3], off | v[2:3]=$ m0=0 mem+0=0x1234 exec=0x0000000000000001 | lds+0=0x34
global_load_lds_ushort v[2:3], off | v[2:3]=$ m0=0 mem+0=0x51234 exec=0x0000000000000001 | lds+0=0x1234
global_load_lds_dword v[2:3], off offset:4 | v[2:3]=$ m0=4 mem+4=9 exec=0x0000000000000001 | lds+8=9
global_load_lds_dwordx3 v1, s[2:3] | v1=0 s[2:3]=$ m0=0 mem+0=1 mem+4=2 mem+8=3 exec=0x0000000000000001 | lds+0=1 lds+8=3
global_load_lds_dwordx4 v1, s[2:3] | v1=0 s[2:3]=$ m0=0 mem+0=1 mem+4=2 mem+8=3 mem+12=4 exec=0x0000000000000001 | lds+0=1 lds+12=4
flat_load_lds_ubyte v[2:3] | v[2:3]=$ m0=0 mem+0=0x1234 exec=0x0000000000000001 | lds+0=0x34
flat_load_lds_ushort v[2:3] | v[2:3]=$ m0=0 mem+0=0x51234 exec=0x0000000000000001 | lds+0=0x1234
flat_load_lds_dword v[2:3] | v[2:3]=$ m0=4 mem+0=9 exec=0x0000000000000001 | lds+4=9
flat_load_lds_dwordx3 v[2:3] | v[2:3]=$ m0=0 mem+0=1 mem+4=2 mem+8=3 exec=0x0000000000000001 | lds+8=3
flat_load_lds_dwordx4 v[2:3] | v[2:3]=$ m0=0 mem+0=1 mem+4=2 mem+8=3 mem+12=4 exec=0x0000000000000001 | lds+12=4
# Stored four bytes beyond what scratch holds at first, at byte 12; lane 1 gets its own.
scratch_store_dword off, v1, off offset:12; scratch_load_lds_dword off, off offset:12 | v1=7 v1@1=8 m0=0 exec=0x0000000000000003 | lds+12=7 lds+16=8
scratch_store_dword off, v1, off; scratch_load_lds_ubyte off, off | v1=0x1234 m0=0 exec=0x0000000000000001 | lds+0=0x34
scratch_store_dword off, v1, off; scratch_load_lds_ushort off, off | v1=0x51234 m0=0 exec=0x0000000000000001 | lds+0=0x1234
scratch_store_dwordx3 off, v[1:3], off; scratch_load_lds_dwordx3 off, off | v1=1 v2=2 v3=3 m0=0 exec=0x0000000000000001 | lds+8=3
scratch_store_dwordx4 off, v[1:4], off; scratch_load_lds_dwordx4 off, off | v1=1 v2=2 v3=3 v4=4 m0=0 exec=0x0000000000000001 | lds+12=4
";

const MODIFIERS: &str = "
v_add_f32_e64 v0, -v1, |v2| | v1=1.5 v2=-2.0 | v0=0.5
v_add_f32_e64 v0, -|v1|, v2 | v1=-1.5 v2=2.0 | v0=0.5
v_add_f32_e64 v0, v1, v2 clamp | v1=1.5 v2=2.0 | v0=1.0
v_add_f32_e64 v0, v1, v2 mul:4 | v1=1.5 v2=2.0 denorm=0 ieee=0 | v0=14.0
v_add_f32_e64 v0, v1, v2 div:2 | v1=1.5 v2=2.0 denorm=0 ieee=0 | v0=1.75
v_add_f32_e64 v0, neg(1.0), v2 | v2=2.0 | v0=1.0
v_mov_b32_dpp v0, v1 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf | v1=5 v1@1=7 | v0@0=7 v0@1=5
v_mov_b32_dpp v0, v1 row_shr:1 row_mask:0xf bank_mask:0xf | v0=9 v1=5 v1@0=7 | v0@0=9 v0@1=7 v0@2=5
v_mov_b32_dpp v0, v1 row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:1 | v0=9 v1=5 v1@0=7 | v0@0=0 v0@1=7
v_add_f32_dpp v0, v1, v2 row_mirror row_mask:0xf bank_mask:0xf | v1=1.0 v1@15=3.0 v2=0.5 | v0@0=3.5 v0@15=1.5
v_max_f32_dpp v0, v1, v2 row_bcast:15 row_mask:0xa bank_mask:0xf | v0=-1.0 v1=1.0 v1@15=3.0 v2=0.5 | v0@0=-1.0 v0@16=3.0 v0@32=-1.0 v0@48=1.0
v_add_u32_sdwa v0, v1, v2 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_1 src1_sel:WORD_1 | v1=0x11223344 v2=0x55667788 | v0=0x5599
v_add_u32_sdwa v0, sext(v1), v2 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_3 src1_sel:DWORD | v1=0xff000000 v2=5 | v0=4
v_or_b32_sdwa v0, v1, v2 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:WORD_0 src1_sel:WORD_0 | v0=0xaaaabbbb v1=0x1234 v2=0x4321 | v0=0x5335bbbb
v_cvt_f32_f16_sdwa v0, v1 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 | v1=0x3e000000 | v0=1.5
v_cmp_eq_u32_sdwa vcc, v1, v2 src0_sel:BYTE_0 src1_sel:DWORD | v1=0x1105 v2=5 | vcc=0xffffffffffffffff
v_add_f16_e64 v0, v1, v2 op_sel:[1,0,1] | v0=0x11111111 v1=0x3c000000 v2=0x4000 | v0=0x00004200
v_mad_u16 v0, v1, v2, v3 op_sel:[0,0,0,1] | v0=0x11112222 v1=2 v2=3 v3=4 | v0=0x000a2222
buffer_load_dwordx4 v[0:3], v9, s[4:7], 0 offen | v9=8 s[4:5]=$ s6=16 s7=0x27000 mem+8=1 mem+12=2 mem+16=3 mem+20=4 | v0=1 v1=2 v2=0 v3=0
buffer_store_dwordx2 v[0:1], v9, s[4:7], 0 offen | v0=7 v1=8 v9=4 s[4:5]=$ s6=8 s7=0x27000 mem+4=1 mem+8=2 exec=1 | mem+4=7 mem+8=2
# The scalar offset counts; a sum beyond 32 bits does not wrap.
buffer_load_dword v0, v9, s[4:7], s3 offen | v9=4 s3=4 s[4:5]=$ s6=8 s7=0x27000 mem+8=1 | v0=0
buffer_load_dword v0, v9, s[4:7], 0 offen offset:8 | v9=-8 s[4:5]=$ s6=8 s7=0x27000 mem+0=1 | v0=0
buffer_load_ushort v0, off, s[4:7], 0 offset:6 | s[4:5]=$ s6=7 s7=0x27000 mem+4=1 | v0=0
global_load_dword v0, v1, s[2:3] offset:-4 | v1=8 s[2:3]=$ mem+4=5 | v0=5
# The LDS aperture of the flat address space.
flat_load_dword v0, v[2:3] | v[2:3]=0x0001000000000008 lds+8=6 exec=1 | v0@0=6
";

/// `name | data before | memory before | data after | memory after`, words of registers and of memory.
pub(super) const TRANSFERS: &str = "
load_ubyte | | 0x112233f4 | 0xf4 |
load_sbyte | | 0x112233f4 | 0xfffffff4 |
load_ushort | | 0x1122f3f4 | 0xf3f4 |
load_sshort | | 0x1122f3f4 | 0xfffff3f4 |
load_dword | | 0x1122f3f4 | 0x1122f3f4 |
load_dwordx2 | | 1 2 | 1 2 |
load_dwordx3 | | 1 2 3 | 1 2 3 |
load_dwordx4 | | 1 2 3 4 | 1 2 3 4 |
load_ubyte_d16 | 0xaaaabbbb | 0x112233f4 | 0xaaaa00f4 |
load_ubyte_d16_hi | 0xaaaabbbb | 0x112233f4 | 0x00f4bbbb |
load_sbyte_d16 | 0xaaaabbbb | 0x112233f4 | 0xaaaafff4 |
load_sbyte_d16_hi | 0xaaaabbbb | 0x112233f4 | 0xfff4bbbb |
load_short_d16 | 0xaaaabbbb | 0x1122f3f4 | 0xaaaaf3f4 |
load_short_d16_hi | 0xaaaabbbb | 0x1122f3f4 | 0xf3f4bbbb |
store_byte | 0xabcd | 0x11223344 | 0xabcd | 0x112233cd
store_byte_d16_hi | 0x12345678 | 0x11223344 | 0x12345678 | 0x11223334
store_short | 0x9999abcd | 0x11223344 | 0x9999abcd | 0x1122abcd
store_short_d16_hi | 0x12345678 | 0x11223344 | 0x12345678 | 0x11221234
store_dword | 7 | 0x11223344 | 7 | 7
store_dwordx2 | 7 8 | 0 0 0 | 7 8 | 7 8 0
store_dwordx3 | 7 8 9 | 0 0 0 0 | 7 8 9 | 7 8 9 0
store_dwordx4 | 7 8 9 10 | 0 0 0 0 0 | 7 8 9 10 | 7 8 9 10 0
atomic_add | 3 | 4 | 4 | 7
atomic_sub | 3 | 4 | 4 | 1
atomic_smin | -3 | 4 | 4 | -3
atomic_umin | -3 | 4 | 4 | 4
atomic_smax | -3 | 4 | 4 | 4
atomic_umax | -3 | 4 | 4 | -3
atomic_and | 6 | 3 | 3 | 2
atomic_or | 6 | 3 | 3 | 7
atomic_xor | 6 | 3 | 3 | 5
atomic_inc | 3 | 3 | 3 | 0
atomic_dec | 3 | 0 | 0 | 3
atomic_swap | 6 | 3 | 3 | 6
atomic_cmpswap | 9 3 | 3 | 3 | 9
atomic_add_x2 | 1 0 | -1 0 | -1 0 | 0 1
atomic_sub_x2 | 1 0 | 0 1 | 0 1 | -1 0
atomic_smin_x2 | 0 -1 | 1 0 | 1 0 | 0 -1
atomic_umin_x2 | 0 -1 | 1 0 | 1 0 | 1 0
atomic_smax_x2 | 0 -1 | 1 0 | 1 0 | 1 0
atomic_umax_x2 | 0 -1 | 1 0 | 1 0 | 0 -1
atomic_and_x2 | 6 5 | 3 1 | 3 1 | 2 1
atomic_or_x2 | 6 4 | 3 1 | 3 1 | 7 5
atomic_xor_x2 | 6 5 | 3 1 | 3 1 | 5 4
atomic_inc_x2 | 0 9 | -1 1 | -1 1 | 0 2
atomic_dec_x2 | 5 9 | 0 1 | 0 1 | -1 0
atomic_swap_x2 | 6 7 | 3 1 | 3 1 | 6 7
atomic_cmpswap_x2 | 9 8 3 1 | 3 1 | 3 1 | 9 8
atomic_add_f32 | 1.5 | 2.0 | 2.0 | 3.5
atomic_add_f64 | 0 0x3ff80000 | 0 0x40000000 | 0 0x40000000 | 0 0x400c0000
atomic_min_f64 | 0 0xbff80000 | 0 0x40000000 | 0 0x40000000 | 0 0xbff80000
atomic_max_f64 | 0 0xbff80000 | 0 0x40000000 | 0 0x40000000 | 0 0x40000000
";
