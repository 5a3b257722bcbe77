//! What gfx1201 alone has, or does otherwise than gfx9.

pub(in crate::gcn::isa::tests) const GFX12: &str = "
# Scalar ALU.
s_add_nc_u64 s[0:1], s[2:3], s[4:5] | s[2:3]=0x00000000ffffffff s[4:5]=0x0000000000000001 | s[0:1]=0x0000000100000000
s_sub_nc_u64 s[0:1], s[2:3], 1 | s[2:3]=0x0000000100000000 | s[0:1]=0x00000000ffffffff
s_mul_u64 s[0:1], s[2:3], s[4:5] | s[2:3]=0x0000000100000003 s[4:5]=0x0000000000000005 | s[0:1]=0x000000050000000f
s_pack_hl_b32_b16 s0, s1, s2 | s1=0x11112222 s2=0x33334444 | s0=0x44441111
s_add_co_u32 s0, s1, s2; s_add_co_ci_u32 s3, s1, 0 | s1=-1 s2=2 | s0=1 s3=0 scc=1
s_mov_b32 null, s1; s_mov_b32 s0, null; s_add_co_u32 s2, null, s1 | s1=7 | s0=0 s2=7
s_and_saveexec_b32 s0, s1 | s1=3 exec=6 | s0=6 exec=2 scc=1
s_or_saveexec_b32 s0, s1 | s1=1 exec=6 | s0=6 exec=7 scc=1
s_xor_saveexec_b32 s0, s1 | s1=3 exec=6 | s0=6 exec=5 scc=1
s_nand_saveexec_b32 s0, s1 | s1=3 exec=6 | s0=6 exec=0xfffffffd scc=1
s_nor_saveexec_b32 s0, s1 | s1=3 exec=6 | s0=6 exec=0xfffffff8 scc=1
s_xnor_saveexec_b32 s0, s1 | s1=3 exec=6 | s0=6 exec=0xfffffffa scc=1
s_and_not0_saveexec_b32 s0, s1 | s1=3 exec=6 | s0=6 exec=4 scc=1
s_and_not1_saveexec_b32 s0, s1 | s1=3 exec=6 | s0=6 exec=1 scc=1
s_or_not0_saveexec_b32 s0, s1 | s1=3 exec=6 | s0=6 exec=0xfffffffe scc=1
s_or_not1_saveexec_b32 s0, s1 | s1=3 exec=6 | s0=6 exec=0xfffffffb scc=1
s_and_not0_wrexec_b32 s0, s1 | s1=3 exec=6 | s0=4 exec=4 scc=1
s_and_not1_wrexec_b32 s0, s1 | s1=3 exec=6 | s0=1 exec=1 scc=1
# The register above EXEC is no lane's business.
s_mov_b32 exec_hi, -1; s_mov_b32 exec_lo, 1; s_and_saveexec_b32 s0, s1 | s1=3 | s0=1 exec=1 scc=1
# Scalar floats.
s_add_f32 s0, s1, s2 | s1=1.5 s2=2.0 | s0=3.5
s_sub_f32 s0, s1, s2 | s1=1.5 s2=2.0 | s0=-0.5
s_mul_f32 s0, s1, s2 | s1=1.5 s2=2.0 | s0=3.0
s_min_num_f32 s0, s1, s2 | s1=nan s2=2.0 | s0=2.0
s_max_num_f32 s0, s1, s2 | s1=-0.0 s2=0.0 | s0=0.0
s_minimum_f32 s0, s1, s2 | s1=nan s2=2.0 | s0=nan
s_maximum_f32 s0, s1, s2 | s1=1.0 s2=2.0 | s0=2.0
s_fmac_f32 s0, s1, s2 | s0=1.0 s1=1.5 s2=2.0 | s0=4.0
s_fmaak_f32 s0, s1, s2, 0x3f800000 | s1=1.5 s2=2.0 | s0=4.0
s_fmamk_f32 s0, s1, 0x40000000, s2 | s1=1.5 s2=1.0 | s0=4.0
s_ceil_f32 s0, s1 | s1=1.25 | s0=2.0
s_floor_f32 s0, s1 | s1=-1.25 | s0=-2.0
s_trunc_f32 s0, s1 | s1=-1.75 | s0=-1.0
s_rndne_f32 s0, s1 | s1=2.5 | s0=2.0
s_add_f16 s0, s1, s2 | s1=1.5h s2=2.0h | s0=3.5h
s_sub_f16 s0, s1, s2 | s1=1.5h s2=2.0h | s0=-0.5h
s_mul_f16 s0, s1, s2 | s1=1.5h s2=2.0h | s0=3.0h
s_fmac_f16 s0, s1, s2 | s0=1.0h s1=1.5h s2=2.0h | s0=4.0h
s_min_num_f16 s0, s1, s2 | s1=0x7e00 s2=2.0h | s0=2.0h
s_max_num_f16 s0, s1, s2 | s1=1.5h s2=2.0h | s0=2.0h
s_minimum_f16 s0, s1, s2 | s1=1.5h s2=2.0h | s0=1.5h
s_maximum_f16 s0, s1, s2 | s1=0x7e00 s2=2.0h | s0=0x7e00
s_ceil_f16 s0, s1 | s1=1.25h | s0=2.0h
s_floor_f16 s0, s1 | s1=1.25h | s0=1.0h
s_trunc_f16 s0, s1 | s1=-1.75h | s0=-1.0h
s_rndne_f16 s0, s1 | s1=3.5h | s0=4.0h
s_cvt_f32_i32 s0, s1 | s1=-3 | s0=-3.0
s_cvt_f32_u32 s0, s1 | s1=0x80000000 | s0=2147483648.0
s_cvt_i32_f32 s0, s1 | s1=-3.75 | s0=-3
s_cvt_u32_f32 s0, s1 | s1=-3.75 | s0=0
s_cvt_f32_f16 s0, s1 | s1=1.5h | s0=1.5
s_cvt_hi_f32_f16 s0, s1 | s1=0x3e004000 | s0=1.5
s_cvt_f16_f32 s0, s1 | s1=1.5 | s0=1.5h
# 1 + 2^-10 - 2^-24 is cut to 1.
s_cvt_pk_rtz_f16_f32 s0, s1, s2 | s1=0x3f801fff s2=2.0 | s0=0x40003c00
v_s_exp_f32 s0, s1 | s1=3.0 | s0=8.0
v_s_log_f32 s0, -s1 | s1=-8.0 | s0=3.0
v_s_rcp_f32 s0, s1 | s1=4.0 | s0=0.25
v_s_rsq_f32 s0, |s1| | s1=-4.0 | s0=0.5
v_s_sqrt_f32 s0, s1 | s1=9.0 | s0=3.0
# Scalar memory.
s_sendmsg_rtn_b64 s[0:1], sendmsg(MSG_RTN_GET_REALTIME); s_wait_kmcnt 0x0 | s2=0 | s[0:1]=100
s_load_b96 s[4:6], s[2:3], 0x4; s_wait_kmcnt 0x0 | s[2:3]=$ mem+4=1 mem+8=2 mem+12=3 | s4=1 s5=2 s6=3
s_load_u8 s0, s[2:3], 0x1 | s[2:3]=$ mem+0=0x11f23344 | s0=0x33
s_load_i8 s0, s[2:3], 0x2 | s[2:3]=$ mem+0=0x11f23344 | s0=0xfffffff2
s_load_u16 s0, s[2:3], 0x2 | s[2:3]=$ mem+0=0xf1f23344 | s0=0xf1f2
s_load_i16 s0, s[2:3], -0x2 | s[2:3]=$+4 mem+0=0xf1f23344 | s0=0xfffff1f2
s_buffer_load_b96 s[8:10], s[4:7], 0x4 | s[4:5]=$ s6=12 s7=0x31027000 mem+4=1 mem+8=2 | s8=1 s9=2 s10=0
s_buffer_load_u8 s0, s[4:7], 0x1 | s[4:5]=$ s6=64 s7=0x31027000 mem+0=0x11f23344 | s0=0x33
s_buffer_load_i8 s0, s[4:7], 0x2 | s[4:5]=$ s6=64 s7=0x31027000 mem+0=0x11f23344 | s0=0xfffffff2
s_buffer_load_u16 s0, s[4:7], 0x2 | s[4:5]=$ s6=64 s7=0x31027000 mem+0=0xf1f23344 | s0=0xf1f2
s_buffer_load_i16 s0, s[4:7], 0x2 | s[4:5]=$ s6=3 s7=0x31027000 mem+0=0xf1f23344 | s0=0
# Vector ALU.
v_minimum_f32 v0, v1, v2 | v1=-0.0 v2=0.0 | v0=-0.0
v_minimum_f32 v0, v1, v2 | v1=nan v2=1.0 | v0=nan
v_maximum_f32 v0, v1, v2 | v1=-0.0 v2=0.0 | v0=0.0
v_minimum_f16 v0, v1, v2 | v0=0 v1=1.5h v2=2.0h | v0=1.5h
v_maximum_f16 v0, v1, v2 | v0=0 v1=0x7e00 v2=2.0h | v0=0x7e00
v_minimum_f64 v[0:1], v[2:3], v[4:5] | v[2:3]=1.5d v[4:5]=-2.5d | v[0:1]=-2.5d
v_maximum_f64 v[0:1], v[2:3], v[4:5] | v[2:3]=1.5d v[4:5]=-2.5d | v[0:1]=1.5d
v_minimum3_f16 v0, v1, v2, v3 | v0=0 v1=1.5h v2=2.0h v3=0.5h | v0=0.5h
v_maximum3_f16 v0, v1, v2, v3 | v0=0 v1=1.5h v2=2.0h v3=0x7e00 | v0=0x7e00
v_maximumminimum_f32 v0, v1, v2, v3 | v1=1.0 v2=5.0 v3=3.0 | v0=3.0
v_minimummaximum_f32 v0, v1, v2, v3 | v1=1.0 v2=5.0 v3=3.0 | v0=3.0
v_maximumminimum_f16 v0, v1, v2, v3 | v0=0 v1=1.0h v2=2.0h v3=3.0h | v0=2.0h
v_minimummaximum_f16 v0, v1, v2, v3 | v0=0 v1=1.0h v2=2.0h v3=0.5h | v0=1.0h
v_maxmin_num_f32 v0, v1, v2, v3 | v1=nan v2=5.0 v3=3.0 | v0=3.0
v_minmax_num_f32 v0, v1, v2, v3 | v1=1.0 v2=5.0 v3=nan | v0=1.0
v_maxmin_num_f16 v0, v1, v2, v3 | v0=0 v1=1.0h v2=2.0h v3=1.5h | v0=1.5h
v_minmax_num_f16 v0, v1, v2, v3 | v0=0 v1=1.0h v2=2.0h v3=1.5h | v0=1.5h
v_maxmin_i32 v0, v1, v2, v3 | v1=-5 v2=-3 v3=7 | v0=-3
v_minmax_i32 v0, v1, v2, v3 | v1=-5 v2=-3 v3=-4 | v0=-4
v_maxmin_u32 v0, v1, v2, v3 | v1=-5 v2=3 v3=7 | v0=7
v_minmax_u32 v0, v1, v2, v3 | v1=-5 v2=3 v3=7 | v0=7
v_fmac_f16_e32 v0, v1, v2 | v0=0xaaaa3c00 v1=1.5h v2=2.0h | v0=0xaaaa4400
v_fmaak_f16 v0, v1, v2, 0x3c00 | v0=0 v1=1.5h v2=2.0h | v0=4.0h
v_fmamk_f16 v0, v1, 0x4000, v2 | v0=0 v1=1.5h v2=1.0h | v0=4.0h
v_fma_dx9_zero_f32 v0, v1, v2, v3 | v1=0.0 v2=inf v3=1.5 | v0=1.5
v_not_b16_e32 v0, v1 | v0=0xaaaa0000 v1=0xff00 | v0=0xaaaa00ff
v_and_b16 v0, v1, v2 | v0=0xaaaa0000 v1=0xff00 v2=0x0ff0 | v0=0xaaaa0f00
v_or_b16 v0, v1, v2 | v0=0 v1=0xff00 v2=0x0ff0 | v0=0xfff0
v_xor_b16 v0, v1, v2 | v0=0 v1=0xff00 v2=0x0ff0 | v0=0xf0f0
v_xor3_b32 v0, v1, v2, v3 | v1=1 v2=3 v3=4 | v0=6
v_cvt_i32_i16_e32 v0, v1 | v1=0x18000 | v0=0xffff8000
v_cvt_u32_u16_e32 v0, v1 | v1=0x18000 | v0=0x8000
v_cndmask_b16 v0, v1, v2, s4 | v0=0xaaaa0000 v1=1 v2=2 s4=2 | v0@0=0xaaaa0001 v0@1=0xaaaa0002
v_cndmask_b32_e32 v0, v1, v2, vcc_lo | v1=1 v2=2 vcc=2 | v0@0=1 v0@1=2
v_add_co_u32 v0, s4, v1, v2; v_add_co_ci_u32_e64 v3, null, v1, v2, s4 | v1=-1 v1@3=0 v2=2 | v0@0=1 v0@3=2 s4=0xfffffff7 v3@0=2 v3@3=2
v_mad_co_u64_u32 v[0:1], null, v2, v3, v[4:5] | v2=0x10000 v3=0x10000 v[4:5]=0x0000000000000005 | v[0:1]=0x0000000100000005
# A 16-bit result leaves the other half alone.
v_add_f16_e32 v0, v1, v2 | v0=0xaaaabbbb v1=1.5h v2=2.0h | v0=0xaaaa4300
v_add_nc_u16 v0, v1, v2 op_sel:[1,0,1] | v0=0xaaaabbbb v1=0x00030000 v2=4 | v0=0x0007bbbb
v_cvt_f16_f32_e32 v0, v1 | v0=0xaaaabbbb v1=1.5 | v0=0xaaaa3e00
# Compares: 32 bits of mask; those that write EXEC write nothing else.
v_cmp_gt_u32_e64 s4, v1, v2 | v1=1 v1@5=9 v2=3 | s4=0x20
v_cmpx_gt_u32_e32 v1, v2 | v1=1 v1@5=9 v2=3 | exec=0x20
# Extrema: a signalling NaN is a NaN.
v_max_num_f32_e32 v0, v1, v2 | v1=0x7f800001 v2=1.0 | v0=1.0
v_min_num_f32_e32 v0, v1, v2 | v1=1.0 v2=0x7f800001 | v0=1.0
# Lane exchange.
v_mov_b32_dpp v0, v1 row_xmask:1 row_mask:0xf bank_mask:0xf | v0=9 v1=0 v1@1=7 v1@17=8 | v0@0=7 v0@1=0 v0@16=8
v_mov_b32_dpp v0, v1 row_share:1 row_mask:0xf bank_mask:0xf | v0=9 v1=0 v1@1=7 v1@17=8 | v0@0=7 v0@15=7 v0@16=8
v_mov_b32_dpp v0, v1 dpp8:[7,6,5,4,3,2,1,0] | v0=9 v1=0 v1@1=7 v1@15=8 | v0@6=7 v0@8=8
v_permlane16_b32 v0, v1, s2, s3 | v1=0 v1@3=7 v1@19=8 s2=0x33333330 s3=3 | v0@0=0 v0@1=7 v0@8=7 v0@9=0 v0@17=8
v_permlanex16_b32 v0, v1, s2, s3 | v1=0 v1@3=7 v1@19=8 s2=0x33333330 s3=3 | v0@0=0 v0@1=8 v0@17=7
# An inactive source gives nothing, 0, or what it has.
v_permlane16_b32 v0, v1, s2, s3 | v0=5 v1=7 s2=1 s3=0 exec=1 | v0@0=5
v_permlane16_b32 v0, v1, s2, s3 op_sel:[0,1] | v0=5 v1=7 s2=1 s3=0 exec=1 | v0@0=0
v_permlane16_b32 v0, v1, s2, s3 op_sel:[1,0] | v0=5 v1=7 s2=1 s3=0 exec=1 | v0@0=7
v_permlane16_var_b32 v0, v1, v2 | v1=0 v1@3=7 v1@19=8 v2=0 v2@4=3 v2@20=3 | v0@4=7 v0@5=0 v0@20=8
v_permlanex16_var_b32 v0, v1, v2 | v1=0 v1@3=7 v1@19=8 v2=0 v2@4=3 v2@20=3 | v0@4=8 v0@20=7
v_readfirstlane_b32 s0, v1 | v1=3 v1@1=4 exec=2 | s0=4
# Pairs: both halves read before either writes.
v_dual_mov_b32 v0, v1 :: v_dual_mov_b32 v1, v0 | v0=1 v1=2 | v0=2 v1=1
v_dual_add_f32 v0, v1, v2 :: v_dual_mul_f32 v3, v0, v2 | v0=4.0 v1=1.0 v2=2.0 | v0=3.0 v3=8.0
v_dual_fmac_f32 v0, v1, v2 :: v_dual_cndmask_b32 v1, v2, v0 | v0=1.0 v1=3.0 v2=2.0 vcc=1 | v0=7.0 v1@0=1.0 v1@1=2.0
v_dual_fmaak_f32 v0, v1, v2, 0x3f800000 :: v_dual_add_nc_u32 v3, 5, v4 | v1=3.0 v2=2.0 v4=2 | v0=7.0 v3=7
v_dual_max_num_f32 v0, v1, v2 :: v_dual_and_b32 v3, 6, v4 | v1=3.0 v2=2.0 v4=3 | v0=3.0 v3=2
v_dual_lshlrev_b32 v0, 4, v1 :: v_dual_sub_f32 v2, v3, v4 | v1=3 v3=3.0 v4=2.0 | v0=48 v2=1.0
v_pk_maximum_f16 v0, v1, v2 | v1=0x3c007e00 v2=0x40004000 | v0=0x40007e00
v_pk_minimum_f16 v0, v1, v2 | v1=0x3c003c00 v2=0x40004000 | v0=0x3c003c00
# LDS: the value to store comes before the one to compare with.
ds_cmpstore_b32 v1, v2, v3 | v1=4 v2=9 v3=2 lds+4=2 exec=1 | lds+4=9
ds_cmpstore_rtn_b32 v0, v1, v2, v3 | v1=4 v2=9 v3=1 lds+4=2 exec=1 | lds+4=2 v0@0=2
ds_cmpstore_b64 v1, v[2:3], v[4:5] | v1=8 v2=9 v3=8 v4=2 v5=1 lds+8=2 lds+12=1 exec=1 | lds+8=9 lds+12=8
ds_cmpstore_rtn_b64 v[6:7], v1, v[2:3], v[4:5] | v1=8 v2=9 v3=8 v4=2 v5=1 lds+8=2 lds+12=1 exec=1 | lds+8=9 v6@0=2 v7@0=1
ds_min_num_f32 v1, v2 | v1=4 v2=nan lds+4=2.0 exec=1 | lds+4=2.0
ds_min_num_rtn_f32 v0, v1, v2 | v1=4 v2=-1.0 lds+4=2.0 exec=1 | lds+4=-1.0 v0@0=2.0
ds_max_num_f32 v1, v2 | v1=4 v2=3.0 lds+4=nan exec=1 | lds+4=3.0
ds_max_num_rtn_f32 v0, v1, v2 | v1=4 v2=3.0 lds+4=2.0 exec=1 | lds+4=3.0 v0@0=2.0
ds_bpermute_b32 v0, v1, v2 | v1=8 v2=0 v2@2=7 exec=1 | v0@0=0
ds_bpermute_fi_b32 v0, v1, v2 | v1=8 v2=0 v2@2=7 exec=1 | v0@0=7
ds_store_2addr_stride64_b32 v1, v2, v3 offset1:1; s_wait_dscnt 0x0; ds_load_2addr_stride64_b32 v[4:5], v1 offset1:1 | v1=4 v2=9 v3=10 exec=1 | lds+260=10 v4@0=9 v5@0=10
# Memory.
global_atomic_min_num_f32 v0, v[2:3], v1, off th:TH_ATOMIC_RETURN scope:SCOPE_DEV | v[2:3]=$ v1=-1.0 mem+0=2.0 exec=1 | mem+0=-1.0 v0@0=2.0
global_atomic_max_num_f32 v[2:3], v1, off | v[2:3]=$ v1=nan mem+0=2.0 exec=1 | mem+0=2.0
flat_atomic_min_num_f32 v[2:3], v1 | v[2:3]=$ v1=-0.0 mem+0=0.0 exec=1 | mem+0=-0.0
flat_atomic_max_num_f32 v[2:3], v1 | v[2:3]=$ v1=3.0 mem+0=0.0 exec=1 | mem+0=3.0
buffer_atomic_min_num_f32 v1, off, s[4:7], null | s[4:5]=$ s6=64 s7=0x31027000 v1=-1.0 mem+0=2.0 exec=1 | mem+0=-1.0
buffer_atomic_max_num_f32 v1, off, s[4:7], null offset:4 th:TH_ATOMIC_RETURN | s[4:5]=$ s6=64 s7=0x31027000 v1=3.0 mem+4=2.0 exec=1 | mem+4=3.0 v1@0=2.0
buffer_load_b64 v[0:1], v2, s[4:7], null offen offset:8 th:TH_LOAD_NT | s[4:5]=$ s6=64 s7=0x31027000 v2=4 mem+12=1 mem+16=2 exec=1 | v0@0=1 v1@0=2
buffer_load_b32 v0, off, s[4:7], null offset:64 | s[4:5]=$ s6=64 s7=0x31027000 mem+64=1 exec=1 | v0@0=0
# OOB_SELECT 2: no check of a buffer that is not empty.
buffer_load_b32 v0, off, s[4:7], null offset:64 | s[4:5]=$ s6=64 s7=0x21027000 mem+64=1 exec=1 | v0@0=1
buffer_load_b32 v0, off, s[4:7], null offset:64 | s[4:5]=$ s6=0 s7=0x21027000 mem+64=1 exec=1 | v0@0=0
";
