//! What gfx1201 (RDNA 4) calls otherwise than gfx9, lacks, or adds.

use rustc_hash::FxHashMap;

use super::{Op, control, ds, flat, matrix, smem, sop, transfer, vop, vop3p};

/// Same meaning, other name: gfx9's, gfx12's.
const RENAMED: &[(&str, &str)] = &[
    // Scalar ALU.
    ("s_add_u32", "s_add_co_u32"),
    ("s_sub_u32", "s_sub_co_u32"),
    ("s_add_i32", "s_add_co_i32"),
    ("s_sub_i32", "s_sub_co_i32"),
    ("s_addc_u32", "s_add_co_ci_u32"),
    ("s_subb_u32", "s_sub_co_ci_u32"),
    ("s_addk_i32", "s_addk_co_i32"),
    ("s_andn2_b32", "s_and_not1_b32"),
    ("s_andn2_b64", "s_and_not1_b64"),
    ("s_orn2_b32", "s_or_not1_b32"),
    ("s_orn2_b64", "s_or_not1_b64"),
    ("s_flbit_i32_b32", "s_clz_i32_u32"),
    ("s_flbit_i32_b64", "s_clz_i32_u64"),
    ("s_flbit_i32", "s_cls_i32"),
    ("s_flbit_i32_i64", "s_cls_i32_i64"),
    ("s_ff1_i32_b32", "s_ctz_i32_b32"),
    ("s_ff1_i32_b64", "s_ctz_i32_b64"),
    ("s_andn1_saveexec_b64", "s_and_not0_saveexec_b64"),
    ("s_andn2_saveexec_b64", "s_and_not1_saveexec_b64"),
    ("s_orn1_saveexec_b64", "s_or_not0_saveexec_b64"),
    ("s_orn2_saveexec_b64", "s_or_not1_saveexec_b64"),
    ("s_andn1_wrexec_b64", "s_and_not0_wrexec_b64"),
    ("s_andn2_wrexec_b64", "s_and_not1_wrexec_b64"),
    // Scalar memory.
    ("s_load_dword", "s_load_b32"),
    ("s_load_dwordx2", "s_load_b64"),
    ("s_load_dwordx4", "s_load_b128"),
    ("s_load_dwordx8", "s_load_b256"),
    ("s_load_dwordx16", "s_load_b512"),
    ("s_buffer_load_dword", "s_buffer_load_b32"),
    ("s_buffer_load_dwordx2", "s_buffer_load_b64"),
    ("s_buffer_load_dwordx4", "s_buffer_load_b128"),
    ("s_buffer_load_dwordx8", "s_buffer_load_b256"),
    ("s_buffer_load_dwordx16", "s_buffer_load_b512"),
    // Vector ALU.
    ("v_add_u32", "v_add_nc_u32"),
    ("v_sub_u32", "v_sub_nc_u32"),
    ("v_subrev_u32", "v_subrev_nc_u32"),
    ("v_add_i32", "v_add_nc_i32"),
    ("v_sub_i32", "v_sub_nc_i32"),
    ("v_add_u16", "v_add_nc_u16"),
    ("v_sub_u16", "v_sub_nc_u16"),
    ("v_add_i16", "v_add_nc_i16"),
    ("v_sub_i16", "v_sub_nc_i16"),
    ("v_addc_co_u32", "v_add_co_ci_u32"),
    ("v_subb_co_u32", "v_sub_co_ci_u32"),
    ("v_subbrev_co_u32", "v_subrev_co_ci_u32"),
    ("v_mad_u64_u32", "v_mad_co_u64_u32"),
    ("v_mad_i64_i32", "v_mad_co_i64_i32"),
    ("v_mul_legacy_f32", "v_mul_dx9_zero_f32"),
    ("v_max_f16", "v_max_num_f16"),
    ("v_max_f32", "v_max_num_f32"),
    ("v_max_f64", "v_max_num_f64"),
    ("v_min_f16", "v_min_num_f16"),
    ("v_min_f32", "v_min_num_f32"),
    ("v_min_f64", "v_min_num_f64"),
    ("v_max3_f16", "v_max3_num_f16"),
    ("v_max3_f32", "v_max3_num_f32"),
    ("v_min3_f16", "v_min3_num_f16"),
    ("v_min3_f32", "v_min3_num_f32"),
    ("v_med3_f16", "v_med3_num_f16"),
    ("v_med3_f32", "v_med3_num_f32"),
    ("v_ffbh_u32", "v_clz_i32_u32"),
    ("v_ffbl_b32", "v_ctz_i32_b32"),
    ("v_ffbh_i32", "v_cls_i32"),
    ("v_cvt_rpi_i32_f32", "v_cvt_nearest_i32_f32"),
    ("v_cvt_flr_i32_f32", "v_cvt_floor_i32_f32"),
    ("v_cvt_pkrtz_f16_f32", "v_cvt_pk_rtz_f16_f32"),
    ("v_pk_max_f16", "v_pk_max_num_f16"),
    ("v_pk_min_f16", "v_pk_min_num_f16"),
    // LDS.
    ("ds_read2_b32", "ds_load_2addr_b32"),
    ("ds_read2_b64", "ds_load_2addr_b64"),
    ("ds_read2st64_b32", "ds_load_2addr_stride64_b32"),
    ("ds_read2st64_b64", "ds_load_2addr_stride64_b64"),
    ("ds_write2_b32", "ds_store_2addr_b32"),
    ("ds_write2_b64", "ds_store_2addr_b64"),
    ("ds_write2st64_b32", "ds_store_2addr_stride64_b32"),
    ("ds_write2st64_b64", "ds_store_2addr_stride64_b64"),
    ("ds_wrxchg_rtn_b32", "ds_storexchg_rtn_b32"),
    ("ds_wrxchg_rtn_b64", "ds_storexchg_rtn_b64"),
];

/// The same for transfers, whose names follow their segment.
const TRANSFERS: &[(&str, &str)] = &[
    ("load_ubyte", "load_u8"),
    ("load_sbyte", "load_i8"),
    ("load_ushort", "load_u16"),
    ("load_sshort", "load_i16"),
    ("load_dword", "load_b32"),
    ("load_dwordx2", "load_b64"),
    ("load_dwordx3", "load_b96"),
    ("load_dwordx4", "load_b128"),
    ("load_ubyte_d16", "load_d16_u8"),
    ("load_ubyte_d16_hi", "load_d16_hi_u8"),
    ("load_sbyte_d16", "load_d16_i8"),
    ("load_sbyte_d16_hi", "load_d16_hi_i8"),
    ("load_short_d16", "load_d16_b16"),
    ("load_short_d16_hi", "load_d16_hi_b16"),
    ("store_byte", "store_b8"),
    ("store_byte_d16_hi", "store_d16_hi_b8"),
    ("store_short", "store_b16"),
    ("store_short_d16_hi", "store_d16_hi_b16"),
    ("store_dword", "store_b32"),
    ("store_dwordx2", "store_b64"),
    ("store_dwordx3", "store_b96"),
    ("store_dwordx4", "store_b128"),
    ("atomic_add", "atomic_add_u32"),
    ("atomic_sub", "atomic_sub_u32"),
    ("atomic_smin", "atomic_min_i32"),
    ("atomic_umin", "atomic_min_u32"),
    ("atomic_smax", "atomic_max_i32"),
    ("atomic_umax", "atomic_max_u32"),
    ("atomic_and", "atomic_and_b32"),
    ("atomic_or", "atomic_or_b32"),
    ("atomic_xor", "atomic_xor_b32"),
    ("atomic_inc", "atomic_inc_u32"),
    ("atomic_dec", "atomic_dec_u32"),
    ("atomic_swap", "atomic_swap_b32"),
    ("atomic_cmpswap", "atomic_cmpswap_b32"),
    ("atomic_add_x2", "atomic_add_u64"),
    ("atomic_sub_x2", "atomic_sub_u64"),
    ("atomic_smin_x2", "atomic_min_i64"),
    ("atomic_umin_x2", "atomic_min_u64"),
    ("atomic_smax_x2", "atomic_max_i64"),
    ("atomic_umax_x2", "atomic_max_u64"),
    ("atomic_and_x2", "atomic_and_b64"),
    ("atomic_or_x2", "atomic_or_b64"),
    ("atomic_xor_x2", "atomic_xor_b64"),
    ("atomic_inc_x2", "atomic_inc_u64"),
    ("atomic_dec_x2", "atomic_dec_u64"),
    ("atomic_swap_x2", "atomic_swap_b64"),
    ("atomic_cmpswap_x2", "atomic_cmpswap_b64"),
    ("atomic_add_f32", "atomic_add_f32"),
    ("atomic_pk_add_f16", "atomic_pk_add_f16"),
    ("atomic_pk_add_bf16", "atomic_pk_add_bf16"),
];

/// What gfx12 has not, and what of the same name means something else there.
const GONE: &[&str] = &[
    "ds_add_f64",
    "ds_add_rtn_f64",
    "ds_max_f32",
    "ds_max_f64",
    "ds_max_rtn_f32",
    "ds_max_rtn_f64",
    "ds_min_f32",
    "ds_min_f64",
    "ds_min_rtn_f32",
    "ds_min_rtn_f64",
    "ds_cmpst_b32",
    "ds_cmpst_b64",
    "ds_cmpst_rtn_b32",
    "ds_cmpst_rtn_b64",
    "ds_read_b64_tr_b16",
    "ds_read_b64_tr_b4",
    "ds_read_b64_tr_b8",
    "ds_read_b96_tr_b6",
    "s_ff0_i32_b32",
    "s_ff0_i32_b64",
    "v_accvgpr_mov_b32",
    "v_accvgpr_read_b32",
    "v_accvgpr_write_b32",
    "v_ashr_pk_i8_i32",
    "v_ashr_pk_u8_i32",
    "v_bitop3_b16",
    "v_bitop3_b32",
    "v_cvt_f32_bf16",
    "v_cvt_pk_bf16_f32",
    "v_cvt_pk_f16_f32",
    "v_dot2_i32_i16",
    "v_dot2_u32_u16",
    "v_dot2c_f32_bf16",
    "v_dot2c_f32_f16",
    "v_dot2c_i32_i16",
    "v_dot4_i32_i8",
    "v_dot4c_i32_i8",
    "v_dot8_i32_i4",
    "v_dot8c_i32_i4",
    "v_fmac_f64",
    "v_lshl_add_u64",
    "v_mad_legacy_u16",
    "v_mov_b64",
    "v_permlane16_swap_b32",
    "v_permlane32_swap_b32",
    "v_pk_add_f32",
    "v_pk_fma_f32",
    "v_pk_maximum3_f16",
    "v_pk_minimum3_f16",
    "v_pk_mov_b32",
    "v_pk_mul_f32",
    "v_subrev_u16",
];

/// Compares that always or never hold.
fn is_constant_compare(name: &str) -> bool {
    let predicate =
        name.strip_prefix("v_cmpx_").or_else(|| name.strip_prefix("v_cmp_")).and_then(|n| n.split('_').next());
    matches!(predicate, Some("f" | "t" | "tru"))
}

/// Whether the name is of a transfer, in gfx9's spelling.
fn is_transfer(name: &str) -> bool {
    let segments = ["buffer_", "global_", "flat_", "scratch_"];
    segments.iter().filter_map(|s| name.strip_prefix(s)).any(|n| transfer::TABLE.iter().any(|row| row.name == n))
}

/// Turns gfx9's table into gfx12's.
pub(super) fn respell(map: &mut FxHashMap<String, Op>) {
    map.retain(|name, _| {
        !GONE.contains(&name.as_str())
            && !is_constant_compare(name)
            && !is_transfer(name)
            && !name.starts_with("s_cmpk_")
    });
    for (old, new) in RENAMED {
        let op = map.remove(*old);
        debug_assert!(op.is_some(), "no row {old}");
        map.extend(op.map(|op| ((*new).to_owned(), op)));
    }
    let one_by_one: Vec<_> =
        map.keys().filter(|n| n.starts_with("ds_read_") || n.starts_with("ds_write_")).cloned().collect();
    for old in one_by_one {
        let op = map.remove(&old);
        let new = old.replacen("ds_read_", "ds_load_", 1).replacen("ds_write_", "ds_store_", 1);
        map.extend(op.map(|op| (new, op)));
    }
    for op in map.values_mut() {
        if let Op::Vopc(compare) = op {
            *compare = compare.without_register();
        }
    }
    let mut add = |name: String, op: Op| {
        let old = map.insert(name, op);
        debug_assert!(old.is_none(), "two rows for one mnemonic");
    };
    for (old, new) in TRANSFERS {
        let row = transfer::TABLE.iter().find(|row| row.name == *old);
        row.into_iter().for_each(|row| transfers(&mut add, new, row));
    }
    transfer::GFX12.iter().for_each(|row| transfers(&mut add, row.name, row));
    control::GFX12.iter().for_each(|(name, op)| add((*name).to_owned(), Op::Control(*op)));
    sop::GFX12.iter().chain(sop::float::TABLE).for_each(|r| add(r.name.to_owned(), Op::Sop(r)));
    smem::GFX12.iter().for_each(|r| add(r.name.to_owned(), Op::Smem(r)));
    vop::gfx12::TABLE.iter().for_each(|r| add(r.name.to_owned(), Op::Vop(r)));
    vop3p::GFX12.iter().for_each(|r| add(r.name.to_owned(), Op::Vop3p(r)));
    matrix::RDNA4.iter().for_each(|r| add(r.name.to_owned(), Op::Matrix(r)));
    ds::GFX12.iter().for_each(|r| add(r.name.to_owned(), Op::Ds(r)));
}

/// gfx12's name of what gfx9 calls `name`, whether it has it or not.
#[cfg(test)]
pub(super) fn spelling(name: &str) -> String {
    if let Some(new) = renamed(name) {
        return new.to_owned();
    }
    if let Some((segment, rest)) = name.split_once('_')
        && let Some((_, new)) = TRANSFERS.iter().find(|(old, _)| *old == rest)
    {
        return format!("{segment}_{new}");
    }
    name.replacen("ds_read_", "ds_load_", 1).replacen("ds_write_", "ds_store_", 1)
}

/// What gfx12 calls the instruction, if it renames it.
#[cfg(test)]
pub(super) fn renamed(name: &str) -> Option<&'static str> {
    RENAMED.iter().find(|(old, _)| *old == name).map(|(_, new)| *new)
}

fn transfers(add: &mut impl FnMut(String, Op), name: &str, row: &'static transfer::Row) {
    add(format!("buffer_{name}"), Op::Mubuf(row));
    for segment in [flat::Segment::Global, flat::Segment::Flat, flat::Segment::Scratch] {
        if segment != flat::Segment::Scratch || !row.is_atomic() {
            add(format!("{}_{name}", segment.prefix()), Op::Flat(segment, row));
        }
    }
}
