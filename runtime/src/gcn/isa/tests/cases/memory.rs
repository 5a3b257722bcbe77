//! LDS; global, buffer, flat and scratch memory.

pub(super) const LDS: &str = "
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
ds_swizzle_b32 v0, v1 offset:swizzle(ROTATE,0,1) | v1=5 v1@0=9 v1@1=7 | v0@0=7 v0@31=9 v0@32=5
ds_swizzle_b32 v0, v1 offset:swizzle(ROTATE,1,1) | v1=5 v1@0=9 v1@31=7 | v0@1=9 v0@0=7
# Lane 8 (lane 4, 9, 2 below) has another chunk; it gives lane i of the first 16 its element number i.
ds_read_b64_tr_b16 v[2:3], v1 | v1=0 v1@8=64 lds+0=0x00020001 lds+4=0x00040003 lds+64=0x00120011 lds+68=0x00140013 | \
 v2@0=0x00010001 v3@0=0x00010011 v2@1=0x00020002 v3@1=0x00020012 v3@3=0x00040014 v2@4=0x00010001 v3@4=0x00010001 v3@16=0x00010001
ds_read_b64_tr_b8 v[2:3], v1 offset:8 | v1=0 v1@4=64 lds+8=0x04030201 lds+12=0x08070605 lds+72=0x14131211 lds+76=0x18171615 | \
 v2@0=0x01110101 v3@0=0x01010101 v2@5=0x06160606 v3@5=0x06060606 v2@8=0x01010101 v2@15=0x08080808
ds_read_b64_tr_b4 v[2:3], v1 | v1=0 v1@9=64 lds+0=0x87654321 lds+4=0xfedcba90 lds+64=0 lds+68=0 | \
 v2@0=0x11111111 v3@0=0x11111101 v2@15=0xffffffff v3@15=0xffffff0f v3@16=0x11111111
ds_read_b96_tr_b6 v[2:4], v1 | v1=0 v1@2=64 lds+0=0xfc1 lds+4=0 lds+8=0xfc000000 lds+64=0 lds+68=0 lds+72=0 | \
 v2@0=0x41040041 v3@0=0x10410410 v4@0=0x04104104 v2@1=0xfffc0fff v3@1=0xffffffff v4@1=0xffffffff v2@2=0 v2@15=0xfffc0fff
# An exchange defines what was undefined.
ds_wrxchg_rtn_b32 v0, v1, v2; s_waitcnt lgkmcnt(0); ds_read_b32 v3, v1 | v1=8 v2=5 exec=1 | v3@0=5
ds_cmpst_b32 v1, v2, v3 | v1=4 v2=2 v3=9 lds+4=2 exec=1 | lds+4=9
ds_cmpst_b64 v1, v[2:3], v[4:5] | v1=8 v2=2 v3=1 v4=9 v5=8 lds+8=2 lds+12=1 exec=1 | lds+8=9 lds+12=8
ds_cmpst_rtn_b64 v[6:7], v1, v[2:3], v[4:5] | v1=8 v2=2 v3=0 v4=9 v5=8 lds+8=2 lds+12=1 exec=1 | lds+8=2 lds+12=1 v6@0=2 v7@0=1
ds_wrxchg_rtn_b64 v[6:7], v1, v[2:3] | v1=8 v2=3 v3=4 lds+8=1 lds+12=2 exec=1 | lds+8=3 lds+12=4 v6@0=1 v7@0=2
ds_sub_u64 v1, v[2:3] | v1=8 v2=1 v3=0 lds+8=0 lds+12=1 exec=1 | lds+8=-1 lds+12=0
ds_sub_rtn_u64 v[4:5], v1, v[2:3] | v1=8 v2=1 v3=0 lds+8=0 lds+12=1 exec=1 | lds+8=-1 lds+12=0 v4@0=0 v5@0=1
ds_min_i64 v1, v[2:3] | v1=8 v2=5 v3=-1 lds+8=1 lds+12=0 exec=1 | lds+8=5 lds+12=-1
ds_min_rtn_i64 v[4:5], v1, v[2:3] | v1=8 v2=5 v3=-1 lds+8=1 lds+12=0 exec=1 | lds+8=5 lds+12=-1 v4@0=1 v5@0=0
ds_min_u64 v1, v[2:3] | v1=8 v2=5 v3=-1 lds+8=1 lds+12=0 exec=1 | lds+8=1 lds+12=0
ds_min_rtn_u64 v[4:5], v1, v[2:3] | v1=8 v2=5 v3=-1 lds+8=1 lds+12=0 exec=1 | lds+8=1 lds+12=0 v4@0=1 v5@0=0
ds_max_i64 v1, v[2:3] | v1=8 v2=5 v3=-1 lds+8=1 lds+12=0 exec=1 | lds+8=1 lds+12=0
ds_max_rtn_i64 v[4:5], v1, v[2:3] | v1=8 v2=5 v3=-1 lds+8=1 lds+12=0 exec=1 | lds+8=1 lds+12=0 v4@0=1 v5@0=0
ds_max_u64 v1, v[2:3] | v1=8 v2=5 v3=-1 lds+8=1 lds+12=0 exec=1 | lds+8=5 lds+12=-1
ds_max_rtn_u64 v[4:5], v1, v[2:3] | v1=8 v2=5 v3=-1 lds+8=1 lds+12=0 exec=1 | lds+8=5 lds+12=-1 v4@0=1 v5@0=0
ds_and_b64 v1, v[2:3] | v1=8 v2=0x3 v3=0xf lds+8=0xf lds+12=0xff exec=1 | lds+8=0x3 lds+12=0xf
ds_and_rtn_b64 v[4:5], v1, v[2:3] | v1=8 v2=0x3 v3=0xf lds+8=0xf lds+12=0xff exec=1 | lds+8=0x3 lds+12=0xf v4@0=0xf v5@0=0xff
ds_or_b64 v1, v[2:3] | v1=8 v2=2 v3=0xf lds+8=1 lds+12=0xf0 exec=1 | lds+8=3 lds+12=0xff
ds_or_rtn_b64 v[4:5], v1, v[2:3] | v1=8 v2=2 v3=0xf lds+8=1 lds+12=0xf0 exec=1 | lds+8=3 lds+12=0xff v4@0=1 v5@0=0xf0
ds_xor_b64 v1, v[2:3] | v1=8 v2=1 v3=0xf lds+8=3 lds+12=0xff exec=1 | lds+8=2 lds+12=0xf0
ds_xor_rtn_b64 v[4:5], v1, v[2:3] | v1=8 v2=1 v3=0xf lds+8=3 lds+12=0xff exec=1 | lds+8=2 lds+12=0xf0 v4@0=3 v5@0=0xff
ds_inc_u64 v1, v[2:3] | v1=8 v2=0 v3=1 lds+8=-1 lds+12=0 exec=1 | lds+8=0 lds+12=1
ds_inc_rtn_u64 v[4:5], v1, v[2:3] | v1=8 v2=0 v3=1 lds+8=-1 lds+12=0 exec=1 | lds+8=0 lds+12=1 v4@0=-1 v5@0=0
ds_dec_u64 v1, v[2:3] | v1=8 v2=9 v3=9 lds+8=0 lds+12=1 exec=1 | lds+8=-1 lds+12=0
ds_dec_rtn_u64 v[4:5], v1, v[2:3] | v1=8 v2=9 v3=9 lds+8=0 lds+12=1 exec=1 | lds+8=-1 lds+12=0 v4@0=0 v5@0=1
ds_add_f64 v1, v[2:3] | v1=8 v2=0 v3=0x3ff80000 lds+8=0 lds+12=0x40000000 exec=1 | lds+8=0 lds+12=0x400c0000
ds_add_rtn_f64 v[4:5], v1, v[2:3] | v1=8 v2=0 v3=0x3ff80000 lds+8=0 lds+12=0x40000000 exec=1 | lds+8=0 lds+12=0x400c0000 v4@0=0 v5@0=0x40000000
ds_min_f64 v1, v[2:3] | v1=8 v2=0 v3=0xbff80000 lds+8=0 lds+12=0x40000000 exec=1 | lds+8=0 lds+12=0xbff80000
ds_min_rtn_f64 v[4:5], v1, v[2:3] | v1=8 v2=0 v3=0xbff80000 lds+8=0 lds+12=0x40000000 exec=1 | lds+8=0 lds+12=0xbff80000 v4@0=0 v5@0=0x40000000
ds_max_f64 v1, v[2:3] | v1=8 v2=0 v3=0xbff80000 lds+8=0 lds+12=0x40000000 exec=1 | lds+8=0 lds+12=0x40000000
ds_max_rtn_f64 v[4:5], v1, v[2:3] | v1=8 v2=0 v3=0xbff80000 lds+8=0 lds+12=0x40000000 exec=1 | lds+8=0 lds+12=0x40000000 v4@0=0 v5@0=0x40000000
ds_min_f32 v1, v2 | v1=4 v2=-1.0 lds+4=2.0 exec=1 | lds+4=-1.0
ds_min_rtn_f32 v0, v1, v2 | v1=4 v2=-1.0 lds+4=2.0 exec=1 | lds+4=-1.0 v0@0=2.0
ds_max_f32 v1, v2 | v1=4 v2=3.0 lds+4=2.0 exec=1 | lds+4=3.0
ds_max_rtn_f32 v0, v1, v2 | v1=4 v2=3.0 lds+4=2.0 exec=1 | lds+4=3.0 v0@0=2.0
ds_pk_add_f16 v1, v2 | v1=4 v2=0x3c004000 lds+4=0x40003c00 exec=1 | lds+4=0x42004200
ds_pk_add_rtn_f16 v0, v1, v2 | v1=4 v2=0x3c004000 lds+4=0x40003c00 exec=1 | lds+4=0x42004200 v0@0=0x40003c00
ds_pk_add_bf16 v1, v2 | v1=4 v2=0x3f804000 lds+4=0x40003f80 exec=1 | lds+4=0x40404040
ds_pk_add_rtn_bf16 v0, v1, v2 | v1=4 v2=0x3f804000 lds+4=0x40003f80 exec=1 | lds+4=0x40404040 v0@0=0x40003f80
";

pub(super) const LOAD_LDS: &str = "
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

/// `name | data before | memory before | data after | memory after`, words of registers and of memory.
pub(in crate::gcn::isa::tests) const TRANSFERS: &str = "
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
atomic_pk_add_f16 | 0x3c004000 | 0x40003c00 | 0x40003c00 | 0x42004200
atomic_pk_add_bf16 | 0x3f804000 | 0x40003f80 | 0x40003f80 | 0x40404040
";
