//! Codes of 8, 6 and 4 bits.

pub(super) const NARROW: &str = "
# Two codes in a half, the other half stays; past the largest number lies NaN of that sign, of bf8 infinity; NaN is 0x7e there.
v_cvt_pk_fp8_f32 v0, v1, v2 | v0=0xaaaabbbb v1=1.0 v2=-1.0625 | v0=0xaaaab838
v_cvt_pk_fp8_f32 v0, v1, -v2 op_sel:[0,0,1] | v0=0xaaaabbbb v1=465.0 v2=0x7fc00000 | v0=0xff7fbbbb
v_cvt_pk_fp8_f32 v0, |v1|, 1.0 | v0=0xaaaabbbb v1=-464.0 | v0=0xaaaa387e
v_cvt_pk_bf8_f32 v0, v1, v2 | v0=0xaaaabbbb v1=61440.0 v2=-61439.0 | v0=0xaaaafb7c
v_cvt_pk_bf8_f32 v0, v1, v2 op_sel:[0,0,1] | v0=0xaaaabbbb v1=0xffc00000 v2=1.125 | v0=0x3cfebbbb
v_cvt_pk_f32_fp8_e32 v[0:1], v2 | v2=0xffff01b8 | v0=-1.0 v1=0x3b000000
v_cvt_pk_f32_fp8_sdwa v[0:1], v2 src0_sel:WORD_1 | v2=0x7e80ffff | v0=0x80000000 v1=448.0
v_cvt_pk_f32_bf8_e32 v[0:1], v2 | v2=0xfffffc3c | v0=1.0 v1=-inf
# Divided by 2^(exponent field − 127), rounded once; the scale's other bits do not count.
v_cvt_scalef32_pk_fp8_f32 v0, v1, v2, v3 | v0=0xaaaabbbb v1=896.0 v2=-2.0 v3=0xc07fffff | v0=0xaaaab87e
v_cvt_scalef32_pk_fp8_f32 v0, v1, v2, v3 op_sel:[0,0,0,1] | v0=0xaaaabbbb v1=1.0 v2=-1.0 v3=inf | v0=0xff7fbbbb
v_cvt_scalef32_pk_fp8_f32 v0, v1, v2, v3 | v0=0 v1=0x00400000 v2=0x00200000 v3=0 | v0=0x3038
v_cvt_scalef32_pk_bf8_f32 v0, v1, v2, 2.0 | v0=0 v1=2.0 v2=122880.0 | v0=0x7c3c
v_cvt_scalef32_pk_fp4_f32 v0, v1, v2, 1.0 | v0=0xaaaabbbb v1=5.0 v2=-0.25 | v0=0xaaaabb86
v_cvt_scalef32_pk_fp4_f32 v0, v1, v2, 1.0 op_sel:[0,0,1,0] | v0=0xaaaabbbb v1=7.0 v2=-inf | v0=0xaaaaf7bb
v_cvt_scalef32_pk_fp4_f32 v0, v1, v2, 1.0 op_sel:[0,0,0,1] | v0=0xaaaabbbb v1=0x7fc00000 v2=0xffc00000 | v0=0xaaf7bbbb
v_cvt_scalef32_pk_fp4_f32 v0, v1, v2, 1.0 op_sel:[0,0,1,1] | v0=0xaaaabbbb v1=1.0 v2=0.5 | v0=0x12aabbbb
v_cvt_scalef32_pk_fp8_f16 v0, v1, 1.0 | v0=0xaaaabbbb v1=0xbc003c00 | v0=0xaaaab838
v_cvt_scalef32_pk_fp8_f16 v0, v1, 2.0 op_sel:[0,0,1] | v0=0xaaaabbbb v1=0x0001fc00 | v0=0x00ffbbbb
v_cvt_scalef32_pk_bf8_f16 v0, v1, 1.0 | v0=0xaaaabbbb v1=0x7c000001 | v0=0xaaaa7c00
v_cvt_scalef32_pk_fp4_f16 v0, v1, 1.0 op_sel:[0,0,1,0] | v0=0xaaaabbbb v1=0xc6003800 | v0=0xaaaaf1bb
v_cvt_scalef32_pk_fp8_bf16 v0, v1, 1.0 | v0=0xaaaabbbb v1=0xbf803f80 | v0=0xaaaab838
v_cvt_scalef32_pk_bf8_bf16 v0, v1, v2 op_sel:[0,0,1] | v0=0xaaaabbbb v1=0xbf803f80 v2=0.5 | v0=0xc040bbbb
v_cvt_scalef32_pk_fp4_bf16 v0, v1, v2 op_sel:[0,0,1,1] | v0=0xaaaabbbb v1=0xc0c03f80 v2=1.0 | v0=0xf2aabbbb
v_cvt_scalef32_pk_f32_fp8 v[0:1], v2, 2.0 | v2=0xffff7fb8 | v0=-2.0 v1=0x7fc00000
v_cvt_scalef32_pk_f32_fp8 v[0:1], v2, v3 op_sel:[1,0,0] | v2=0x017effff v3=0 | v0=0x04600000 v1=0x00002000
v_cvt_scalef32_pk_f32_bf8 v[0:1], v2, v3 | v2=0x7b3c v3=0x7f000000 | v0=0x7f000000 v1=inf
v_cvt_scalef32_pk_f32_fp4 v[0:1], v2, 1.0 op_sel:[1,0,0] | v2=0xffff9fff | v0=-6.0 v1=-0.5
v_cvt_scalef32_pk_f32_fp4 v[0:1], v2, 1.0 op_sel:[0,1,0] | v2=0xff72ffff | v0=1.0 v1=6.0
v_cvt_scalef32_pk_f16_fp8 v0, v2, 1.0 | v2=0xffffb838 | v0=0xbc003c00
# 3·2^-9 · 2^-16 is 1.5 of f16's smallest steps: to even.
v_cvt_scalef32_pk_f16_fp8 v0, v2, v3 | v2=0xffff0103 v3=0x37800000 | v0=0x00000002
v_cvt_scalef32_pk_f16_bf8 v0, v2, v3 op_sel:[1,0,0] | v2=0x7b3cffff v3=0x47000000 | v0=0x7c007800
v_cvt_scalef32_pk_f16_fp4 v0, v2, 1.0 op_sel:[1,1,0] | v2=0x92ffffff | v0=0xb8003c00
v_cvt_scalef32_pk_bf16_fp8 v0, v2, 1.0 op_sel:[1,0,0] | v2=0xb838ffff | v0=0xbf803f80
v_cvt_scalef32_pk_bf16_bf8 v0, v2, 1.0 | v2=0xfc3c | v0=0xff803f80
v_cvt_scalef32_pk_bf16_fp4 v0, v2, 2.0 | v2=0xffffff92 | v0=0xbf804000
# The elements of two operands by turns.
v_cvt_scalef32_2xpk16_fp6_f32 v[0:5], v[0:15], v[16:31], 1.0 | v0=1.0 v1=1.0 v2=1.0 v3=1.0 v4=1.0 v5=1.0 v6=1.0 v7=1.0 v8=1.0 v9=1.0 v10=1.0 v11=1.0 v12=1.0 v13=1.0 v14=1.0 v15=1.0 v16=2.0 v17=2.0 v18=2.0 v19=2.0 v20=2.0 v21=2.0 v22=2.0 v23=2.0 v24=2.0 v25=2.0 v26=2.0 v27=2.0 v28=2.0 v29=2.0 v30=2.0 v31=2.0 | v0=0x08408408 v1=0x84084084 v2=0x40840840 v3=0x08408408 v4=0x84084084 v5=0x40840840
v_cvt_scalef32_2xpk16_bf6_f32 v[0:5], v[0:15], v[16:31], 2.0 | v0=1.0 v1=1.0 v2=1.0 v3=1.0 v4=1.0 v5=1.0 v6=1.0 v7=1.0 v8=1.0 v9=1.0 v10=1.0 v11=1.0 v12=1.0 v13=1.0 v14=1.0 v15=1.0 v16=2.0 v17=2.0 v18=2.0 v19=2.0 v20=2.0 v21=2.0 v22=2.0 v23=2.0 v24=2.0 v25=2.0 v26=2.0 v27=2.0 v28=2.0 v29=2.0 v30=2.0 v31=2.0 | v0=0x08308308 v1=0x83083083 v2=0x30830830 v3=0x08308308 v4=0x83083083 v5=0x30830830
v_cvt_scalef32_pk32_fp6_f16 v[0:5], v[0:15], 1.0 | v0=0x40003c00 v1=0x40003c00 v2=0x40003c00 v3=0x40003c00 v4=0x40003c00 v5=0x40003c00 v6=0x40003c00 v7=0x40003c00 v8=0x40003c00 v9=0x40003c00 v10=0x40003c00 v11=0x40003c00 v12=0x40003c00 v13=0x40003c00 v14=0x40003c00 v15=0x40003c00 | v0=0x08408408 v1=0x84084084 v2=0x40840840 v3=0x08408408 v4=0x84084084 v5=0x40840840
v_cvt_scalef32_pk32_bf6_f16 v[0:5], v[0:15], 1.0 | v0=0x40003c00 v1=0x40003c00 v2=0x40003c00 v3=0x40003c00 v4=0x40003c00 v5=0x40003c00 v6=0x40003c00 v7=0x40003c00 v8=0x40003c00 v9=0x40003c00 v10=0x40003c00 v11=0x40003c00 v12=0x40003c00 v13=0x40003c00 v14=0x40003c00 v15=0x40003c00 | v0=0x0c40c40c v1=0xc40c40c4 v2=0x40c40c40 v3=0x0c40c40c v4=0xc40c40c4 v5=0x40c40c40
v_cvt_scalef32_pk32_fp6_bf16 v[0:5], v[0:15], 1.0 | v0=0xc0003f80 v1=0xc0003f80 v2=0xc0003f80 v3=0xc0003f80 v4=0xc0003f80 v5=0xc0003f80 v6=0xc0003f80 v7=0xc0003f80 v8=0xc0003f80 v9=0xc0003f80 v10=0xc0003f80 v11=0xc0003f80 v12=0xc0003f80 v13=0xc0003f80 v14=0xc0003f80 v15=0xc0003f80 | v0=0x08c08c08 v1=0x8c08c08c v2=0xc08c08c0 v3=0x08c08c08 v4=0x8c08c08c v5=0xc08c08c0
v_cvt_scalef32_pk32_bf6_bf16 v[0:5], v[0:15], 1.0 | v0=0xc0003f80 v1=0xc0003f80 v2=0xc0003f80 v3=0xc0003f80 v4=0xc0003f80 v5=0xc0003f80 v6=0xc0003f80 v7=0xc0003f80 v8=0xc0003f80 v9=0xc0003f80 v10=0xc0003f80 v11=0xc0003f80 v12=0xc0003f80 v13=0xc0003f80 v14=0xc0003f80 v15=0xc0003f80 | v0=0x0cc0cc0c v1=0xcc0cc0cc v2=0xc0cc0cc0 v3=0x0cc0cc0c v4=0xcc0cc0cc v5=0xc0cc0cc0
v_cvt_scalef32_pk32_f32_fp6 v[0:31], v[0:5], 1.0 | v0=0x440c2040 v1=0xa2481c61 v2=0x3ce34c2c v3=0x544d2450 v4=0xa6585d65 v5=0x7de75c6d | v0=0.0 v1=0.125 v2=0.25 v3=0.375 v4=0.5 v5=0.625 v6=0.75 v7=0.875 v8=1.0 v9=1.125 v10=1.25 v11=1.375 v12=1.5 v13=1.625 v14=1.75 v15=1.875 v16=2.0 v17=2.25 v18=2.5 v19=2.75 v20=3.0 v21=3.25 v22=3.5 v23=3.75 v24=4.0 v25=4.5 v26=5.0 v27=5.5 v28=6.0 v29=6.5 v30=7.0 v31=7.5
v_cvt_scalef32_pk32_f32_bf6 v[0:31], v[0:5], 2.0 | v0=0x440c2040 v1=0xa2481c61 v2=0x3ce34c2c v3=0x544d2450 v4=0xa6585d65 v5=0x7de75c6d | v0=0.0 v1=0.125 v2=0.25 v3=0.375 v4=0.5 v5=0.625 v6=0.75 v7=0.875 v8=1.0 v9=1.25 v10=1.5 v11=1.75 v12=2.0 v13=2.5 v14=3.0 v15=3.5 v16=4.0 v17=5.0 v18=6.0 v19=7.0 v20=8.0 v21=10.0 v22=12.0 v23=14.0 v24=16.0 v25=20.0 v26=24.0 v27=28.0 v28=32.0 v29=40.0 v30=48.0 v31=56.0
v_cvt_scalef32_pk32_f16_fp6 v[0:15], v[0:5], 1.0 | v0=0x440c2040 v1=0xa2481c61 v2=0x3ce34c2c v3=0x544d2450 v4=0xa6585d65 v5=0x7de75c6d | v0=0x30000000 v1=0x36003400 v2=0x39003800 v3=0x3b003a00 v4=0x3c803c00 v5=0x3d803d00 v6=0x3e803e00 v7=0x3f803f00 v8=0x40804000 v9=0x41804100 v10=0x42804200 v11=0x43804300 v12=0x44804400 v13=0x45804500 v14=0x46804600 v15=0x47804700
v_cvt_scalef32_pk32_f16_bf6 v[0:15], v[0:5], 1.0 | v0=0x440c2040 v1=0xa2481c61 v2=0x3ce34c2c v3=0x544d2450 v4=0xa6585d65 v5=0x7de75c6d | v0=0x2c000000 v1=0x32003000 v2=0x35003400 v3=0x37003600 v4=0x39003800 v5=0x3b003a00 v6=0x3d003c00 v7=0x3f003e00 v8=0x41004000 v9=0x43004200 v10=0x45004400 v11=0x47004600 v12=0x49004800 v13=0x4b004a00 v14=0x4d004c00 v15=0x4f004e00
v_cvt_scalef32_pk32_bf16_fp6 v[0:15], v[0:5], 1.0 | v0=0x440c2040 v1=0xa2481c61 v2=0x3ce34c2c v3=0x544d2450 v4=0xa6585d65 v5=0x7de75c6d | v0=0x3e000000 v1=0x3ec03e80 v2=0x3f203f00 v3=0x3f603f40 v4=0x3f903f80 v5=0x3fb03fa0 v6=0x3fd03fc0 v7=0x3ff03fe0 v8=0x40104000 v9=0x40304020 v10=0x40504040 v11=0x40704060 v12=0x40904080 v13=0x40b040a0 v14=0x40d040c0 v15=0x40f040e0
v_cvt_scalef32_pk32_bf16_bf6 v[0:15], v[0:5], 1.0 | v0=0x440c2040 v1=0xa2481c61 v2=0x3ce34c2c v3=0x544d2450 v4=0xa6585d65 v5=0x7de75c6d | v0=0x3d800000 v1=0x3e403e00 v2=0x3ea03e80 v3=0x3ee03ec0 v4=0x3f203f00 v5=0x3f603f40 v6=0x3fa03f80 v7=0x3fe03fc0 v8=0x40204000 v9=0x40604040 v10=0x40a04080 v11=0x40e040c0 v12=0x41204100 v13=0x41604140 v14=0x41a04180 v15=0x41e041c0
";
