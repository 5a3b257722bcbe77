//! Float arithmetic.

pub(super) const VECTOR_FLOAT: &str = "
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
v_max3_f16 v0, v1, v2, v3 | v1=-1.5h v2=2.0h v3=1.0h | v0=2.0h
v_min3_f16 v0, v1, v2, v3 | v1=-1.5h v2=2.0h v3=1.0h | v0=-1.5h
v_med3_f16 v0, v1, v2, v3 | v1=-1.5h v2=2.0h v3=1.0h | v0=1.0h
v_med3_f16 v0, v1, v2, v3 | v1=0x7e00 v2=2.0h v3=1.0h | v0=1.0h
v_div_fixup_f16 v0, v1, v2, v3 | v1=2.0h v2=-3.0h v3=6.0h | v0=-2.0h
v_div_fixup_f16 v0, v1, v2, v3 | v1=2.0h v2=0 v3=6.0h | v0=0x7c00
v_div_fixup_f16 v0, v1, v2, v3 | v1=2.0h v2=0 v3=0x8000 | v0=0xfe00
v_div_fixup_f16 v0, v1, v2, v3 | v1=2.0h v2=1.0h v3=0x7d00 | v0=0x7f00
v_div_fixup_f16 v0, v1, v2, v3 | v1=2.0h v2=0xfc00 v3=1.0h | v0=0x8000
v_fract_f16_e32 v0, v1 | v1=-1.25h | v0=0.75h
v_fract_f16_e32 v0, v1 | v1=0x8001 | v0=0x3bff
v_ldexp_f16_e32 v0, v1, v2 | v1=1.5h v2=-3 | v0=0.1875h
v_ldexp_f16_e32 v0, v1, v2 | v1=1.5h v2=100 | v0=0x7c00
# 1.5 · 2^-24 rounds to even, 2 · 2^-24.
v_ldexp_f16_e32 v0, v1, v2 | v1=1.5h v2=-24 | v0=2
v_frexp_mant_f16_e32 v0, v1 | v1=-12.0h | v0=-0.75h
v_frexp_exp_i16_f16_e32 v0, v1 | v1=12.0h | v0=4
v_frexp_exp_i16_f16_e32 v0, v1 | v1=0.25h | v0=0xffff
v_frexp_exp_i16_f16_e32 v0, v1 | v1=0x7c00 | v0=0
v_sin_f16_e32 v0, v1 | v1=0.25h | v0=1.0h
v_cos_f16_e32 v0, v1 | v1=7.5h | v0=-1.0h
v_dot2_f32_f16 v0, v1, v2, v3 | v1=0x40003c00 v2=0x42004000 v3=0.5 | v0=8.5
v_dot2_f32_bf16 v0, v1, v2, v3 | v1=0x40003f80 v2=0x40404000 v3=0.5 | v0=8.5
v_dot2c_f32_f16_e32 v0, v1, v2 | v0=0.5 v1=0x40003c00 v2=0x42004000 | v0=8.5
v_dot2c_f32_bf16_e32 v0, v1, v2 | v0=0.5 v1=0x40003f80 v2=0x40404000 | v0=8.5
v_fma_mix_f32 v0, v1, v2, v3 | v1=1.5 v2=2.0 v3=1.0 | v0=4.0
v_fma_mix_f32 v0, v1, v2, v3 op_sel:[0,1,0] op_sel_hi:[1,1,0] | v1=0xffff3e00 v2=0x4000ffff v3=1.0 | v0=4.0
v_fma_mix_f32 v0, -v1, |v2|, v3 op_sel_hi:[0,1,1] | v1=1.5 v2=0xc000 v3=0x3c00 | v0=-2.0
v_fma_mix_f32 v0, v1, v2, 1.0 op_sel_hi:[0,1,1] clamp | v1=1.5 v2=0x3c00 | v0=1.0
v_fma_mixlo_f16 v0, v1, v2, v3 op_sel_hi:[1,0,0] | v0=0xaaaabbbb v1=0x3e00 v2=2.0 v3=1.0 | v0=0xaaaa4400
v_fma_mixhi_f16 v0, v1, v2, v3 op_sel_hi:[1,0,0] | v0=0xaaaabbbb v1=0x3e00 v2=2.0 v3=1.0 | v0=0x4400bbbb
# Rounded to f32 first: 1 + 2^-11 + 2^-30 becomes a tie there, then an even f16.
v_fma_mixlo_f16 v0, v1, v2, v3 | v0=0 v1=0x30800000 v2=1.0 v3=0x3f801000 | v0=0x3c00
";
