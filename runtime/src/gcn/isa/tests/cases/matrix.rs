//! Matrix instructions: one element of A and of B that meet, placed by hand from the layouts of AMD's ISA documents.
//!
//! Below, A has 2 in row 1 or 13 and B 3 in column 2, at the same place along K; the one result that changes is 6 more
//! than C. In CDNA's 16 × 16 results, row 1 is register 1 of lanes 0 to 15; in its 32 × 32 results, row 13 is register 5
//! of lanes 32 to 63; in RDNA's results, row 11 is register 3 of lanes 16 to 31.

/// gfx950 and gfx942.
pub(in crate::gcn::isa::tests) const CDNA3: &str = "
# K = 1 is in lanes 16 to 31 (32 to 63).
v_mfma_f32_16x16x4_f32 v[0:3], v4, v5, 1.0 | v4=0 v5=0 v4@17=2.0 v5@18=3.0 | v0=1.0 v1@1=1.0 v1@2=7.0 v1@18=1.0 v2=1.0 v3=1.0
v_mfma_f32_32x32x2_f32 v[0:15], v16, v17, 1.0 | v16=0 v17=0 v16@45=2.0 v17@34=3.0 | v4=1.0 v5@34=7.0 v5@2=1.0 v5@33=1.0 v6=1.0
# Four halves a lane: lane 17 has K = 4 to 7.
v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], 0 | v4=0 v5=0 v6=0 v7=0 v5@17=0x40000000 v7@18=0x42000000 | v0=0 v1@2=6.0 v1@3=0 v2=0
v_mfma_f32_32x32x8_f16 v[0:15], v[16:17], v[18:19], 0 | v16=0 v17=0 v18=0 v19=0 v17@45=0x4000 v19@34=0x4200 | v5@34=6.0 v5@2=0 v4=0
v_mfma_f32_16x16x16_bf16 v[0:3], v[4:5], v[6:7], 0 | v4=0 v5=0 v6=0 v7=0 v5@17=0x40000000 v7@18=0x40400000 | v0=0 v1@2=6.0 v2=0
v_mfma_f32_32x32x8_bf16 v[0:15], v[16:17], v[18:19], 0 | v16=0 v17=0 v18=0 v19=0 v17@45=0x4000 v19@34=0x4040 | v5@34=6.0 v5@2=0
# A and B not at the same place along K: nothing.
v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], 0 | v4=0 v5=0 v6=0 v7=0 v5@17=0x40000000 v7@2=0x42000000 | v0=0 v1=0 v2=0 v3=0
# Eight bytes a lane: lane 17 has K = 8 to 15. Bytes are signed.
v_mfma_i32_16x16x32_i8 v[0:3], v[4:5], v[6:7], 1 | v4=0 v5=0 v6=0 v7=0 v5@17=0xfe00 v7@18=0x0300 | v0=1 v1@2=-5 v1@3=1
v_mfma_i32_32x32x16_i8 v[0:15], v[16:17], v[18:19], 0 | v16=0 v17=0 v18=0 v19=0 v17@45=0x8000 v19@34=0x8000 | v5@34=16384 v5@2=0
# Accumulation registers; C in place. All lanes count, whatever EXEC says.
v_mfma_f32_16x16x16_f16 a[0:3], v[4:5], a[4:5], a[0:3] | a0=0 a1=0.5 a2=0 a3=0 v4=0 v5=0 a4=0 a5=0 v5@17=0x40000000 a5@18=0x42000000 exec=1 | a1@2=6.5 a1@63=0.5 a2=0
# A whole dot product: 16 · 1 · 1 + 1.
v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[4:5], 1.0 | v4=0x3c003c00 v5=0x3c003c00 | v0=17.0 v1=17.0 v2=17.0 v3=17.0
";

/// gfx950: bytes are OCP's floats.
pub(in crate::gcn::isa::tests) const CDNA4: &str = "
v_mfma_f32_16x16x32_fp8_fp8 v[0:3], v[4:5], v[6:7], 0 | v4=0 v5=0 v6=0 v7=0 v5@17=0x4000 v7@18=0x4400 | v0=0 v1@2=6.0
v_mfma_f32_16x16x32_fp8_bf8 v[0:3], v[4:5], v[6:7], 0 | v4=0 v5=0 v6=0 v7=0 v5@17=0x4000 v7@18=0x4200 | v0=0 v1@2=6.0
v_mfma_f32_16x16x32_bf8_fp8 v[0:3], v[4:5], v[6:7], 0 | v4=0 v5=0 v6=0 v7=0 v5@17=0x4000 v7@18=0x4400 | v0=0 v1@2=6.0
v_mfma_f32_16x16x32_bf8_bf8 v[0:3], v[4:5], v[6:7], 0 | v4=0 v5=0 v6=0 v7=0 v5@17=0x4000 v7@18=0x4200 | v0=0 v1@2=6.0
v_mfma_f32_32x32x16_fp8_fp8 v[0:15], v[16:17], v[18:19], 0 | v16=0 v17=0 v18=0 v19=0 v17@45=0x40 v19@34=0x44 | v5@34=6.0 v5@2=0
v_mfma_f32_32x32x16_fp8_bf8 v[0:15], v[16:17], v[18:19], 0 | v16=0 v17=0 v18=0 v19=0 v17@45=0x40 v19@34=0x42 | v5@34=6.0
v_mfma_f32_32x32x16_bf8_fp8 v[0:15], v[16:17], v[18:19], 0 | v16=0 v17=0 v18=0 v19=0 v17@45=0x40 v19@34=0x44 | v5@34=6.0
v_mfma_f32_32x32x16_bf8_bf8 v[0:15], v[16:17], v[18:19], 0 | v16=0 v17=0 v18=0 v19=0 v17@45=0x40 v19@34=0x42 | v5@34=6.0
# Eight halves a lane: the sixth of lane 17 is K = 13.
v_mfma_f32_16x16x32_f16 v[0:3], v[4:7], v[8:11], 0 | v4=0 v5=0 v6=0 v7=0 v8=0 v9=0 v10=0 v11=0 v6@17=0x40000000 v10@18=0x42000000 | v0=0 v1@2=6.0
v_mfma_f32_32x32x16_f16 v[0:15], v[16:19], v[20:23], 0 | v16=0 v17=0 v18=0 v19=0 v20=0 v21=0 v22=0 v23=0 v18@45=0x40000000 v22@34=0x42000000 | v5@34=6.0 v5@2=0
v_mfma_f32_16x16x32_bf16 v[0:3], v[4:7], v[8:11], 0 | v4=0 v5=0 v6=0 v7=0 v8=0 v9=0 v10=0 v11=0 v6@17=0x40000000 v10@18=0x40400000 | v0=0 v1@2=6.0
v_mfma_f32_32x32x16_bf16 v[0:15], v[16:19], v[20:23], 0 | v16=0 v17=0 v18=0 v19=0 v20=0 v21=0 v22=0 v23=0 v18@45=0x40000000 v22@34=0x40400000 | v5@34=6.0
# Sixteen bytes a lane: the tenth of lane 17 is K = 25.
v_mfma_i32_16x16x64_i8 v[0:3], v[4:7], v[8:11], 0 | v4=0 v5=0 v6=0 v7=0 v8=0 v9=0 v10=0 v11=0 v6@17=0xfe00 v10@18=0x0300 | v0=0 v1@2=-6
v_mfma_i32_32x32x32_i8 v[0:15], v[16:19], v[20:23], 0 | v16=0 v17=0 v18=0 v19=0 v20=0 v21=0 v22=0 v23=0 v18@45=0xfe00 v22@34=0x0300 | v5@34=-6 v5@2=0
# fp8: byte 19 of lane 17 is K = 64 + 16 + 3 = 83. fp4: K = 83 is nibble 19 of lanes 32 to 47.
v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[4:11], v[12:19], 0 | v4=0 v5=0 v6=0 v7=0 v8=0 v9=0 v10=0 v11=0 v12=0 v13=0 v14=0 v15=0 v16=0 v17=0 v18=0 v19=0 v8@17=0x40000000 v16@18=0x44000000 | v0=0 v1@2=6.0
v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[4:11], v[12:15], 0 blgp:4 | v4=0 v5=0 v6=0 v7=0 v8=0 v9=0 v10=0 v11=0 v12=0 v13=0 v14=0 v15=0 v8@17=0x40000000 v14@34=0x5000 | v0=0 v1@2=6.0
v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[4:7], v[12:19], 0 cbsz:4 blgp:1 | v4=0 v5=0 v6=0 v7=0 v12=0 v13=0 v14=0 v15=0 v16=0 v17=0 v18=0 v19=0 v6@33=0x4000 v16@18=0x42000000 | v0=0 v1@2=6.0
# Six bits: element 5 of lane 17 is K = 37, in bits 30 to 35.
v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[4:9], v[10:15], 0 cbsz:2 blgp:3 | v4=0 v5=0 v6=0 v7=0 v8=0 v9=0 v10=0 v11=0 v12=0 v13=0 v14=0 v15=0 v5@17=4 v10@18=0x80000000 v11@18=4 | v0=0 v1@2=6.0
v_mfma_f32_32x32x64_f8f6f4 v[0:15], v[16:19], v[20:23], 0 cbsz:4 blgp:4 | v16=0 v17=0 v18=0 v19=0 v20=0 v21=0 v22=0 v23=0 v18@45=0x4000 v22@34=0x5000 | v5@34=6.0 v5@2=0
# fp8: byte 19 of lanes 32 to 63 is K = 32 + 16 + 3 = 51, as is nibble 19.
v_mfma_f32_32x32x64_f8f6f4 v[0:15], v[16:23], v[24:27], 0 blgp:4 | v16=0 v17=0 v18=0 v19=0 v20=0 v21=0 v22=0 v23=0 v24=0 v25=0 v26=0 v27=0 v20@45=0x40000000 v26@34=0x5000 | v5@34=6.0 v5@2=0
# Scales: 2 for row 1 and one half, then 4, for column 2, of K = 64 to 95: those of lanes 33 and 34. C is not scaled.
v_mfma_scale_f32_16x16x128_f8f6f4 v[0:3], v[4:7], v[8:11], 1.0, v20, v21 op_sel_hi:[0,0,0] cbsz:4 blgp:4 | v4=0 v5=0 v6=0 v7=0 v8=0 v9=0 v10=0 v11=0 v6@33=0x4000 v10@34=0x5000 v20=0x7f v21=0x7f v20@33=0x80 v21@34=0x7e | v0=1.0 v1@2=7.0 v1@3=1.0
v_mfma_scale_f32_16x16x128_f8f6f4 v[0:3], v[4:7], v[8:11], 1.0, v20, v21 op_sel_hi:[0,0,0] cbsz:4 blgp:4 | v4=0 v5=0 v6=0 v7=0 v8=0 v9=0 v10=0 v11=0 v6@33=0x4000 v10@34=0x5000 v20=0x7f v21=0x7f v20@33=0x80 v21@34=0x81 | v0=1.0 v1@2=49.0
# Scales of other blocks: none of them meets the elements.
v_mfma_scale_f32_16x16x128_f8f6f4 v[0:3], v[4:7], v[8:11], 1.0, v20, v21 op_sel_hi:[0,0,0] cbsz:4 blgp:4 | v4=0 v5=0 v6=0 v7=0 v8=0 v9=0 v10=0 v11=0 v6@33=0x4000 v10@34=0x5000 v20=0x80 v21=0x7e v20@33=0x7f v21@34=0x7f | v0=1.0 v1@2=7.0
# Byte 1 for A, byte 2 for B.
v_mfma_scale_f32_16x16x128_f8f6f4 v[0:3], v[4:7], v[8:11], 0, v20, v21 op_sel:[1,0,0] op_sel_hi:[0,1,0] cbsz:4 blgp:4 | v4=0 v5=0 v6=0 v7=0 v8=0 v9=0 v10=0 v11=0 v6@33=0x4000 v10@34=0x5000 v20=0x11117f11 v21=0x117f1111 v20@33=0x11118111 | v0=0 v1@2=24.0
# Byte 3 for both; fp8 has its scale by K too: byte 19 of lane 17 is in the block of lanes 32 to 47.
v_mfma_scale_f32_16x16x128_f8f6f4 v[0:3], v[4:11], v[12:15], 0, v20, v21 op_sel:[1,1,0] op_sel_hi:[1,1,0] blgp:4 | v4=0 v5=0 v6=0 v7=0 v8=0 v9=0 v10=0 v11=0 v12=0 v13=0 v14=0 v15=0 v8@17=0x40000000 v14@34=0x5000 v20=0x7f111111 v21=0x7f111111 v20@33=0x80111111 | v0=0 v1@2=12.0
# The scale 0xff is NaN, of zeros as well: all of row 1.
v_mfma_scale_f32_16x16x128_f8f6f4 v[0:3], v[4:7], v[8:11], 1.0, v20, v21 op_sel_hi:[0,0,0] cbsz:4 blgp:4 | v4=0 v5=0 v6=0 v7=0 v8=0 v9=0 v10=0 v11=0 v20=0x7f v21=0x7f v20@33=0xff | v0=1.0 v1@0=nan v1@15=nan v1@16=1.0 v2=1.0
v_mfma_scale_f32_32x32x64_f8f6f4 v[0:15], v[16:19], v[20:23], 1.0, v24, v25 op_sel_hi:[0,0,0] cbsz:4 blgp:4 | v16=0 v17=0 v18=0 v19=0 v20=0 v21=0 v22=0 v23=0 v18@45=0x4000 v22@34=0x5000 v24=0x7f v25=0x7f v24@45=0x80 | v5@34=13.0 v5@2=1.0
";

/// gfx942: its bytes have a bias larger by one, so that the codes of 2 and 3 above mean 1 and 1.5.
pub(in crate::gcn::isa::tests) const FNUZ: &str = "
v_mfma_f32_16x16x32_fp8_fp8 v[0:3], v[4:5], v[6:7], 0 | v4=0 v5=0 v6=0 v7=0 v5@17=0x4800 v7@18=0x4c00 | v0=0 v1@2=6.0
v_mfma_f32_16x16x32_fp8_bf8 v[0:3], v[4:5], v[6:7], 0 | v4=0 v5=0 v6=0 v7=0 v5@17=0x4800 v7@18=0x4600 | v0=0 v1@2=6.0
v_mfma_f32_16x16x32_bf8_fp8 v[0:3], v[4:5], v[6:7], 0 | v4=0 v5=0 v6=0 v7=0 v5@17=0x4400 v7@18=0x4c00 | v0=0 v1@2=6.0
v_mfma_f32_16x16x32_bf8_bf8 v[0:3], v[4:5], v[6:7], 0 | v4=0 v5=0 v6=0 v7=0 v5@17=0x4400 v7@18=0x4600 | v0=0 v1@2=6.0
v_mfma_f32_32x32x16_fp8_fp8 v[0:15], v[16:17], v[18:19], 0 | v16=0 v17=0 v18=0 v19=0 v17@45=0x48 v19@34=0x4c | v5@34=6.0
v_mfma_f32_32x32x16_fp8_bf8 v[0:15], v[16:17], v[18:19], 0 | v16=0 v17=0 v18=0 v19=0 v17@45=0x48 v19@34=0x46 | v5@34=6.0
v_mfma_f32_32x32x16_bf8_fp8 v[0:15], v[16:17], v[18:19], 0 | v16=0 v17=0 v18=0 v19=0 v17@45=0x44 v19@34=0x4c | v5@34=6.0
v_mfma_f32_32x32x16_bf8_bf8 v[0:15], v[16:17], v[18:19], 0 | v16=0 v17=0 v18=0 v19=0 v17@45=0x44 v19@34=0x46 | v5@34=6.0
# No negative zero: its code is NaN.
v_mfma_f32_16x16x32_fp8_fp8 v[0:3], v[4:5], v[6:7], 0 | v4=0 v5=0 v6=0 v7=0 v5@17=0x8000 | v0=0 v1@0=nan v1@16=0
";

/// gfx1201: lanes 16 to 31 have K = 8 to 15.
pub(in crate::gcn::isa::tests) const RDNA4: &str = "
v_wmma_f32_16x16x16_f16 v[0:7], v[8:11], v[12:15], v[0:7] | v0=1.0 v1=1.0 v2=1.0 v3=1.0 v4=1.0 v5=1.0 v6=1.0 v7=1.0 v8=0 v9=0 v10=0 v11=0 v12=0 v13=0 v14=0 v15=0 v10@27=0x40000000 v14@18=0x42000000 | v2=1.0 v3@18=7.0 v3@2=1.0 v3@17=1.0 v4=1.0
v_wmma_f32_16x16x16_bf16 v[0:7], v[8:11], v[12:15], 0 | v8=0 v9=0 v10=0 v11=0 v12=0 v13=0 v14=0 v15=0 v10@27=0x40000000 v14@18=0x40400000 | v3@18=6.0 v3@2=0
v_wmma_f32_16x16x16_fp8_fp8 v[0:7], v[8:9], v[12:13], 0 | v8=0 v9=0 v12=0 v13=0 v9@27=0x4000 v13@18=0x4400 | v3@18=6.0 v3@2=0
v_wmma_f32_16x16x16_fp8_bf8 v[0:7], v[8:9], v[12:13], 0 | v8=0 v9=0 v12=0 v13=0 v9@27=0x4000 v13@18=0x4200 | v3@18=6.0
v_wmma_f32_16x16x16_bf8_fp8 v[0:7], v[8:9], v[12:13], 0 | v8=0 v9=0 v12=0 v13=0 v9@27=0x4000 v13@18=0x4400 | v3@18=6.0
v_wmma_f32_16x16x16_bf8_bf8 v[0:7], v[8:9], v[12:13], 0 | v8=0 v9=0 v12=0 v13=0 v9@27=0x4000 v13@18=0x4200 | v3@18=6.0
# Unsigned, then signed A: 254 · 3, −2 · 3.
v_wmma_i32_16x16x16_iu8 v[0:7], v[8:9], v[12:13], 1 | v8=0 v9=0 v12=0 v13=0 v9@27=0xfe00 v13@18=0x0300 | v3@18=763 v3@2=1
v_wmma_i32_16x16x16_iu8 v[0:7], v[8:9], v[12:13], 1 neg_lo:[1,0,0] | v8=0 v9=0 v12=0 v13=0 v9@27=0xfe00 v13@18=0x0300 | v3@18=-5 v3@2=1
v_wmma_i32_16x16x16_iu8 v[0:7], v[8:9], v[12:13], v[0:7] clamp | v0=0 v1=0 v2=0 v3=0x7ffffff0 v4=0 v5=0 v6=0 v7=0 v8=0 v9=0 v12=0 v13=0 v9@27=0xfe00 v13@18=0x0300 | v3@18=0x7fffffff v3@2=0x7ffffff0
v_wmma_i32_16x16x16_iu8 v[0:7], v[8:9], v[12:13], v[0:7] | v0=0 v1=0 v2=0 v3=0x7ffffff0 v4=0 v5=0 v6=0 v7=0 v8=0 v9=0 v12=0 v13=0 v9@27=0xfe00 v13@18=0x0300 | v3@18=0x800002ea
# Signs: of the odd elements of A; of C.
v_wmma_f32_16x16x16_f16 v[0:7], v[8:11], v[12:15], 1.0 neg_hi:[1,0,0] | v8=0 v9=0 v10=0 v11=0 v12=0 v13=0 v14=0 v15=0 v10@27=0x40000000 v14@18=0x42000000 | v3@18=-5.0 v3@2=1.0
v_wmma_f32_16x16x16_f16 v[0:7], v[8:11], v[12:15], 1.0 neg_lo:[1,0,1] | v8=0 v9=0 v10=0 v11=0 v12=0 v13=0 v14=0 v15=0 v10@27=0x40000000 v14@18=0x42000000 | v3@18=5.0 v3@2=-1.0
";
