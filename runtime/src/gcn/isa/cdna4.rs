//! What gfx950 (CDNA 4) has and gfx942 (CDNA 3) has not.

/// Mnemonics without encoding suffix; besides, all scaled conversions are new.
const NEW: &[&str] = &[
    "buffer_atomic_pk_add_bf16",
    "buffer_load_lds_dwordx3",
    "buffer_load_lds_dwordx4",
    "ds_read_b64_tr_b16",
    "ds_read_b64_tr_b4",
    "ds_read_b64_tr_b8",
    "ds_read_b96_tr_b6",
    "flat_load_lds_dwordx3",
    "flat_load_lds_dwordx4",
    "global_load_lds_dwordx3",
    "global_load_lds_dwordx4",
    "scratch_load_lds_dwordx3",
    "scratch_load_lds_dwordx4",
    "v_ashr_pk_i8_i32",
    "v_ashr_pk_u8_i32",
    "v_bitop3_b16",
    "v_bitop3_b32",
    "v_cvt_f32_bf16",
    "v_cvt_pk_bf16_f32",
    "v_cvt_pk_f16_f32",
    "v_dot2_f32_bf16",
    "v_dot2c_f32_bf16",
    "v_maximum3_f32",
    "v_minimum3_f32",
    "v_permlane16_swap_b32",
    "v_permlane32_swap_b32",
    "v_pk_maximum3_f16",
    "v_pk_minimum3_f16",
];

/// Whether gfx942 lacks an instruction of gfx950.
pub(super) fn is_new(base: &str) -> bool {
    NEW.contains(&base) || base.starts_with("v_cvt_scalef32_")
}
