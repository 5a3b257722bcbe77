//! Vector ALU without float arithmetic; packed operations; modifiers.

pub(super) const VECTOR_BITS: &str = "
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

pub(super) const VECTOR_INTEGER: &str = "
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
v_med3_u16 v0, v1, v2, v3 | v1=0xffff v2=1 v3=5 | v0=5
v_med3_i16 v0, v1, v2, v3 | v1=0xffff v2=1 v3=5 | v0=1
# 3·5 + 2·4 − 1·3 + 1·2 + 10.
v_dot4_i32_i8 v0, v1, v2, v3 | v1=0x01ff0203 v2=0x02030405 v3=10 | v0=32
v_dot4_u32_u8 v0, v1, v2, v3 | v1=0x01ff0203 v2=0x02030405 v3=10 | v0=800
v_dot4c_i32_i8_e32 v0, v1, v2 | v0=10 v1=0x01ff0203 v2=0x02030405 | v0=32
v_dot2_i32_i16 v0, v1, v2, v3 | v1=0xffff0003 v2=0x00020005 v3=1 | v0=14
v_dot2_u32_u16 v0, v1, v2, v3 | v1=0xffff0003 v2=0x00020005 v3=1 | v0=131086
v_dot2c_i32_i16_e32 v0, v1, v2 | v0=1 v1=0xffff0003 v2=0x00020005 | v0=14
v_dot8_i32_i4 v0, v1, v2, v3 | v1=0xf123 v2=0x2345 v3=1 | v0=25
v_dot8_u32_u4 v0, v1, v2, v3 | v1=0xf123 v2=0x2345 v3=1 | v0=57
v_dot8c_i32_i4_e32 v0, v1, v2 | v0=1 v1=0xf123 v2=0x2345 | v0=25
";

pub(super) const CONVERT: &str = "
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

pub(super) const SPECIAL: &str = "
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
# Only lane 16 is active, so that lane 0 gives nothing, unless inactive lanes may be fetched from.
v_permlane16_swap_b32_e32 v0, v1 | v0=1 v1=2 exec=0x0000000000010000 | v0@16=1 v1@0=2
v_permlane16_swap_b32_e64 v0, v1 bound_ctrl:1 | v0=1 v1=2 exec=0x0000000000010000 | v0@16=0
v_permlane16_swap_b32_e64 v0, v1 fi:1 | v0=1 v1=2 exec=0x0000000000010000 | v0@16=2 v1@0=2
";

pub(super) const PACKED: &str = "
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
v_pk_maximum3_f16 v0, v1, v2, v2 | v1=0x7e003c00 v2=0x40004000 | v0=0x7e004000
v_pk_maximum3_f16 v0, v1, v2, v2 | v1=0x80008000 v2=0 | v0=0
v_pk_minimum3_f16 v0, v1, v2, v2 | v1=0x7e003c00 v2=0x40004000 | v0=0x7e003c00
v_pk_minimum3_f16 v0, v1, v2, v2 | v1=0 v2=0x80008000 | v0=0x80008000
v_pk_add_u16 v0, v1, v2 clamp | v1=0xffff0001 v2=0x00020003 | v0=0xffff0004
v_pk_add_i16 v0, v1, v2 clamp | v1=0x7fff0001 v2=0x00018000 | v0=0x7fff8001
v_pk_sub_u16 v0, v1, v2 clamp | v1=0x00010005 v2=0x00020003 | v0=0x00000002
v_pk_sub_i16 v0, v1, v2 clamp | v1=0x80000005 v2=0x00010003 | v0=0x80000002
";

pub(super) const MODIFIERS: &str = "
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
v_add_f16_e64 v0, v1, v2 op_sel:[1,0,1] | v0=0x11111111 v1=0x3c000000 v2=0x4000 | v0=0x42001111
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
