//! Scalar ALU and memory.

pub(super) const SCALAR: &str = "
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
# Registers indexed by M0: its bits 12 to 15 name the operands (source 0, 1, 2, destination).
s_set_gpr_idx_on s2, gpr_idx(SRC0); v_mov_b32_e32 v0, v1; s_set_gpr_idx_off; v_mov_b32_e32 v5, v1 | s2=2 m0=0 v1=5 v3=9 | v0=9 v5=5 m0=0x1002
s_set_gpr_idx_on s2, gpr_idx(DST); v_mov_b32_e32 v0, v1; s_set_gpr_idx_idx s3; v_mov_b32_e32 v0, v2; s_set_gpr_idx_off | s2=3 s3=4 m0=0x10000 v0=1 v1=5 v2=6 | v0=1 v3=5 v4=6 m0=0x18004
s_set_gpr_idx_on 4, gpr_idx(DST); s_set_gpr_idx_mode gpr_idx(SRC0); v_mov_b32_e32 v6, v1; s_set_gpr_idx_off | m0=0 v5=9 | v6=9
";

pub(super) const SCALAR_MEMORY: &str = "
s_memrealtime s[0:1]; s_waitcnt lgkmcnt(0); s_memrealtime s[4:5] | s2=0 | s[0:1]=100 s[4:5]=200
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
