//! Scalar ALU: SOP1, SOP2, SOPC, SOPK.

pub(crate) mod float;

use crate::gcn::decode::{Inst, NULL};
use crate::gcn::error::{Fault, Sink, unsupported};
use crate::gcn::isa::Context;
use crate::gcn::isa::shadow::{self, Shadow};
use crate::gcn::state::{Scalar, scalar_range};

/// What happens to SCC.
#[derive(Clone, Copy, Debug)]
pub enum Scc {
    /// Untouched.
    Keep,
    /// Result ≠ 0.
    NonZero,
    /// A predicate of the operands.
    If(fn([u64; 3]) -> bool),
}

/// Operand list of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Shape {
    /// `dst, src…`
    Plain,
    /// Operand 2 of `f` is SCC.
    CarryIn,
    /// `src, src`: result only in SCC.
    Compare,
    /// `dst, imm` with the destination as operand 0.
    Accumulate,
    /// `dst, src` or `dst, src, src`: written only if SCC.
    IfScc,
    /// `dst, src, src`: SCC selects.
    Select,
    /// `dst, src`: EXEC becomes `f(src, EXEC)`; `dst` its old value.
    SaveExec,
    /// Likewise, but `dst` gets the new EXEC.
    WriteExec,
}

/// One scalar instruction.
#[derive(Debug)]
pub struct Row {
    pub(crate) name: &'static str,
    /// Bits of the destination, 0 if none.
    d: u32,
    /// Bits of each source.
    s: &'static [u32],
    shape: Shape,
    f: fn([u64; 3]) -> u64,
    shadow: Shadow,
    scc: Scc,
    /// Computes with floats.
    float: bool,
    /// Sources may be negated or taken without sign, as f32.
    signs: bool,
}

impl Row {
    pub(crate) fn operands(&self) -> (usize, usize) {
        let n = self.s.len() + usize::from(self.d != 0);
        // The destination is also the first source, written once.
        let n = if self.shape == Shape::Accumulate { n - 1 } else { n };
        (n, n)
    }
}

const fn row(name: &'static str, d: u32, s: &'static [u32], f: fn([u64; 3]) -> u64, shadow: Shadow, scc: Scc) -> Row {
    Row { name, d, s, shape: Shape::Plain, f, shadow, scc, float: false, signs: false }
}

const fn shaped(
    shape: Shape,
    name: &'static str,
    d: u32,
    s: &'static [u32],
    f: fn([u64; 3]) -> u64,
    shadow: Shadow,
    scc: Scc,
) -> Row {
    Row { name, d, s, shape, f, shadow, scc, float: false, signs: false }
}

const fn compare(name: &'static str, s: &'static [u32], f: fn([u64; 3]) -> bool) -> Row {
    Row {
        name,
        d: 0,
        s,
        shape: Shape::Compare,
        f: |_| 0,
        shadow: Shadow::Strict,
        scc: Scc::If(f),
        float: false,
        signs: false,
    }
}

const fn saveexec(name: &'static str, f: fn([u64; 3]) -> u64) -> Row {
    shaped(Shape::SaveExec, name, 64, S64, f, Shadow::Bitwise, Scc::NonZero)
}

/// Likewise for waves of 32 lanes.
const fn saveexec32(name: &'static str, f: fn([u64; 3]) -> u64) -> Row {
    shaped(Shape::SaveExec, name, 32, S32, f, Shadow::Bitwise, Scc::NonZero)
}

const S32: &[u32] = &[32];
const S64: &[u32] = &[64];
const S32X2: &[u32] = &[32, 32];
const S64X2: &[u32] = &[64, 64];
const S64_32: &[u32] = &[64, 32];

use Scc::{If, Keep, NonZero};
use Shadow::{Bitwise, Left, Move, Own, Strict};

fn u(x: u64) -> u32 {
    x as u32
}

fn i(x: u64) -> i32 {
    x as i32
}

fn overflow(a: u64, b: u64, r: i32) -> bool {
    (i(a) < 0) == (i(b) < 0) && (i(a) < 0) != (r < 0)
}

/// Field `width` from `offset` as `s_bfe` packs them in its second operand.
fn bfe(a: u64, control: u64, bits: u32, signed: bool) -> u64 {
    let offset = (control & u64::from(bits - 1)) as u32;
    let width = ((control >> 16 & 0x7F) as u32).min(bits);
    if width == 0 {
        return 0;
    }
    let shifted = if signed && bits == 32 {
        (i64::from(i(a)) >> offset) as u64
    } else if signed {
        (a as i64 >> offset) as u64
    } else {
        a >> offset
    };
    let unused = 64 - width;
    if signed { ((shifted << unused) as i64 >> unused) as u64 } else { shifted << unused >> unused }
}

fn first(x: u64, bits: u32, bit: bool) -> u64 {
    let x = if bit { x } else { !x };
    (0..bits).find(|n| x >> n & 1 == 1).map_or(u64::from(u32::MAX), u64::from)
}

fn leading(x: u64, bits: u32) -> u64 {
    (0..bits).find(|n| x >> (bits - 1 - n) & 1 == 1).map_or(u64::from(u32::MAX), u64::from)
}

fn leading_differs(x: u64, bits: u32) -> u64 {
    let sign = x >> (bits - 1) & 1;
    (1..bits).find(|n| x >> (bits - 1 - n) & 1 != sign).map_or(u64::from(u32::MAX), u64::from)
}

/// Whole quads of any set bit.
fn wqm(x: u64) -> u64 {
    let any = x | x >> 1 | x >> 2 | x >> 3;
    let quads = any & 0x1111_1111_1111_1111;
    quads * 0xF
}

fn sext16(x: u64) -> u64 {
    i64::from(x as i16) as u64
}

/// Shadow of the shift-and-add forms.
fn shift_add(vals: [u64; 3], unds: [u64; 3], n: u32) -> u64 {
    let _ = vals;
    shadow::left(unds[0] << n | unds[1])
}

pub(crate) static TABLE: &[Row] = &[
    // Moves and conditional moves.
    row("s_mov_b32", 32, S32, |[a, ..]| a, Move(0), Keep),
    row("s_mov_b64", 64, S64, |[a, ..]| a, Move(0), Keep),
    row("s_movk_i32", 32, S32, |[a, ..]| sext16(a), Move(0), Keep),
    shaped(Shape::IfScc, "s_cmov_b32", 32, S32, |[a, ..]| a, Move(0), Keep),
    shaped(Shape::IfScc, "s_cmov_b64", 64, S64, |[a, ..]| a, Move(0), Keep),
    shaped(Shape::IfScc, "s_cmovk_i32", 32, S32, |[a, ..]| sext16(a), Move(0), Keep),
    shaped(Shape::Select, "s_cselect_b32", 32, S32X2, |[a, b, c]| if c != 0 { a } else { b }, Move(4), Keep),
    shaped(Shape::Select, "s_cselect_b64", 64, S64X2, |[a, b, c]| if c != 0 { a } else { b }, Move(4), Keep),
    // Sums.
    row("s_add_u32", 32, S32X2, |[a, b, _]| a + b, Left, If(|[a, b, _]| (a + b) >> 32 != 0)),
    row("s_sub_u32", 32, S32X2, |[a, b, _]| a.wrapping_sub(b), Left, If(|[a, b, _]| b > a)),
    row("s_add_i32", 32, S32X2, |[a, b, _]| a + b, Left, If(|[a, b, _]| overflow(a, b, i(a + b)))),
    row(
        "s_sub_i32",
        32,
        S32X2,
        |[a, b, _]| a.wrapping_sub(b),
        Left,
        If(|[a, b, _]| (i(a) < 0) != (i(b) < 0) && (i(a) < 0) != (i(a.wrapping_sub(b)) < 0)),
    ),
    shaped(
        Shape::CarryIn,
        "s_addc_u32",
        32,
        S32X2,
        |[a, b, c]| a + b + c,
        Left,
        If(|[a, b, c]| (a + b + c) >> 32 != 0),
    ),
    shaped(
        Shape::CarryIn,
        "s_subb_u32",
        32,
        S32X2,
        |[a, b, c]| a.wrapping_sub(b).wrapping_sub(c),
        Left,
        If(|[a, b, c]| b + c > a),
    ),
    shaped(
        Shape::Accumulate,
        "s_addk_i32",
        32,
        S32X2,
        |[a, b, _]| a.wrapping_add(sext16(b)),
        Left,
        If(|[a, b, _]| overflow(a, sext16(b), i(a.wrapping_add(sext16(b))))),
    ),
    row(
        "s_lshl1_add_u32",
        32,
        S32X2,
        |[a, b, _]| (a << 1) + b,
        Own(|v, u| shift_add(v, u, 1)),
        If(|[a, b, _]| ((a << 1) + b) >> 32 != 0),
    ),
    row(
        "s_lshl2_add_u32",
        32,
        S32X2,
        |[a, b, _]| (a << 2) + b,
        Own(|v, u| shift_add(v, u, 2)),
        If(|[a, b, _]| ((a << 2) + b) >> 32 != 0),
    ),
    row(
        "s_lshl3_add_u32",
        32,
        S32X2,
        |[a, b, _]| (a << 3) + b,
        Own(|v, u| shift_add(v, u, 3)),
        If(|[a, b, _]| ((a << 3) + b) >> 32 != 0),
    ),
    row(
        "s_lshl4_add_u32",
        32,
        S32X2,
        |[a, b, _]| (a << 4) + b,
        Own(|v, u| shift_add(v, u, 4)),
        If(|[a, b, _]| ((a << 4) + b) >> 32 != 0),
    ),
    row("s_abs_i32", 32, S32, |[a, ..]| u64::from(i(a).unsigned_abs()), Strict, NonZero),
    row("s_absdiff_i32", 32, S32X2, |[a, b, _]| u64::from(i(a).wrapping_sub(i(b)).unsigned_abs()), Strict, NonZero),
    // Products.
    row("s_mul_i32", 32, S32X2, |[a, b, _]| a.wrapping_mul(b), Left, Keep),
    row("s_mul_hi_u32", 32, S32X2, |[a, b, _]| (a * b) >> 32, Strict, Keep),
    row("s_mul_hi_i32", 32, S32X2, |[a, b, _]| ((i64::from(i(a)) * i64::from(i(b))) >> 32) as u64, Strict, Keep),
    shaped(Shape::Accumulate, "s_mulk_i32", 32, S32X2, |[a, b, _]| a.wrapping_mul(sext16(b)), Left, Keep),
    // Minimum, maximum.
    row("s_min_i32", 32, S32X2, |[a, b, _]| u64::from(i(a).min(i(b)) as u32), Strict, If(|[a, b, _]| i(a) < i(b))),
    row("s_min_u32", 32, S32X2, |[a, b, _]| a.min(b), Strict, If(|[a, b, _]| a < b)),
    row("s_max_i32", 32, S32X2, |[a, b, _]| u64::from(i(a).max(i(b)) as u32), Strict, If(|[a, b, _]| i(a) >= i(b))),
    row("s_max_u32", 32, S32X2, |[a, b, _]| a.max(b), Strict, If(|[a, b, _]| a >= b)),
    // Bitwise.
    row("s_not_b32", 32, S32, |[a, ..]| !a, Bitwise, NonZero),
    row("s_not_b64", 64, S64, |[a, ..]| !a, Bitwise, NonZero),
    row("s_and_b32", 32, S32X2, |[a, b, _]| a & b, Bitwise, NonZero),
    row("s_and_b64", 64, S64X2, |[a, b, _]| a & b, Bitwise, NonZero),
    row("s_or_b32", 32, S32X2, |[a, b, _]| a | b, Bitwise, NonZero),
    row("s_or_b64", 64, S64X2, |[a, b, _]| a | b, Bitwise, NonZero),
    row("s_xor_b32", 32, S32X2, |[a, b, _]| a ^ b, Bitwise, NonZero),
    row("s_xor_b64", 64, S64X2, |[a, b, _]| a ^ b, Bitwise, NonZero),
    row("s_andn2_b32", 32, S32X2, |[a, b, _]| a & !b, Bitwise, NonZero),
    row("s_andn2_b64", 64, S64X2, |[a, b, _]| a & !b, Bitwise, NonZero),
    row("s_orn2_b32", 32, S32X2, |[a, b, _]| a | !b, Bitwise, NonZero),
    row("s_orn2_b64", 64, S64X2, |[a, b, _]| a | !b, Bitwise, NonZero),
    row("s_nand_b32", 32, S32X2, |[a, b, _]| !(a & b), Bitwise, NonZero),
    row("s_nand_b64", 64, S64X2, |[a, b, _]| !(a & b), Bitwise, NonZero),
    row("s_nor_b32", 32, S32X2, |[a, b, _]| !(a | b), Bitwise, NonZero),
    row("s_nor_b64", 64, S64X2, |[a, b, _]| !(a | b), Bitwise, NonZero),
    row("s_xnor_b32", 32, S32X2, |[a, b, _]| !(a ^ b), Bitwise, NonZero),
    row("s_xnor_b64", 64, S64X2, |[a, b, _]| !(a ^ b), Bitwise, NonZero),
    // Shifts and fields.
    row("s_lshl_b32", 32, S32X2, |[a, b, _]| a << (b & 31), Move(2), NonZero),
    row("s_lshl_b64", 64, S64_32, |[a, b, _]| a << (b & 63), Move(2), NonZero),
    row("s_lshr_b32", 32, S32X2, |[a, b, _]| a >> (b & 31), Move(2), NonZero),
    row("s_lshr_b64", 64, S64_32, |[a, b, _]| a >> (b & 63), Move(2), NonZero),
    row("s_ashr_i32", 32, S32X2, |[a, b, _]| u64::from((i(a) >> (b & 31)) as u32), Move(2), NonZero),
    row("s_ashr_i64", 64, S64_32, |[a, b, _]| (a as i64 >> (b & 63)) as u64, Move(2), NonZero),
    row("s_bfe_u32", 32, S32X2, |[a, b, _]| bfe(a, b, 32, false), Move(2), NonZero),
    row("s_bfe_i32", 32, S32X2, |[a, b, _]| bfe(a, b, 32, true), Move(2), NonZero),
    row("s_bfe_u64", 64, S64_32, |[a, b, _]| bfe(a, b, 64, false), Move(2), NonZero),
    row("s_bfe_i64", 64, S64_32, |[a, b, _]| bfe(a, b, 64, true), Move(2), NonZero),
    row("s_bfm_b32", 32, S32X2, |[a, b, _]| ((1 << (a & 31)) - 1) << (b & 31), Strict, Keep),
    row("s_bfm_b64", 64, S32X2, |[a, b, _]| ((1 << (a & 63)) - 1) << (b & 63), Strict, Keep),
    row("s_brev_b32", 32, S32, |[a, ..]| u64::from(u(a).reverse_bits()), Move(0), Keep),
    row("s_brev_b64", 64, S64, |[a, ..]| a.reverse_bits(), Move(0), Keep),
    row("s_sext_i32_i8", 32, S32, |[a, ..]| i64::from(a as i8) as u64, Move(0), Keep),
    row("s_sext_i32_i16", 32, S32, |[a, ..]| sext16(a), Move(0), Keep),
    row("s_pack_ll_b32_b16", 32, S32X2, |[a, b, _]| a & 0xFFFF | b << 16, Move(0), Keep),
    row("s_pack_lh_b32_b16", 32, S32X2, |[a, b, _]| a & 0xFFFF | b & 0xFFFF_0000, Move(0), Keep),
    row("s_pack_hh_b32_b16", 32, S32X2, |[a, b, _]| a >> 16 | b & 0xFFFF_0000, Move(0), Keep),
    row("s_wqm_b32", 32, S32, |[a, ..]| wqm(a), Strict, NonZero),
    row("s_wqm_b64", 64, S64, |[a, ..]| wqm(a), Strict, NonZero),
    shaped(Shape::Accumulate, "s_bitset0_b32", 32, S32X2, |[a, b, _]| a & !(1 << (b & 31)), Move(2), Keep),
    shaped(Shape::Accumulate, "s_bitset1_b32", 32, S32X2, |[a, b, _]| a | 1 << (b & 31), Strict, Keep),
    // Counts.
    row("s_bcnt0_i32_b32", 32, S32, |[a, ..]| u64::from(u(a).count_zeros()), Strict, NonZero),
    row("s_bcnt0_i32_b64", 32, S64, |[a, ..]| u64::from(a.count_zeros()), Strict, NonZero),
    row("s_bcnt1_i32_b32", 32, S32, |[a, ..]| u64::from(u(a).count_ones()), Strict, NonZero),
    row("s_bcnt1_i32_b64", 32, S64, |[a, ..]| u64::from(a.count_ones()), Strict, NonZero),
    row("s_ff0_i32_b32", 32, S32, |[a, ..]| first(a, 32, false), Strict, Keep),
    row("s_ff0_i32_b64", 32, S64, |[a, ..]| first(a, 64, false), Strict, Keep),
    row("s_ff1_i32_b32", 32, S32, |[a, ..]| first(a, 32, true), Strict, Keep),
    row("s_ff1_i32_b64", 32, S64, |[a, ..]| first(a, 64, true), Strict, Keep),
    row("s_flbit_i32_b32", 32, S32, |[a, ..]| leading(a, 32), Strict, Keep),
    row("s_flbit_i32_b64", 32, S64, |[a, ..]| leading(a, 64), Strict, Keep),
    row("s_flbit_i32", 32, S32, |[a, ..]| leading_differs(a, 32), Strict, Keep),
    row("s_flbit_i32_i64", 32, S64, |[a, ..]| leading_differs(a, 64), Strict, Keep),
    // Compares.
    compare("s_cmp_eq_i32", S32X2, |[a, b, _]| a == b),
    compare("s_cmp_lg_i32", S32X2, |[a, b, _]| a != b),
    compare("s_cmp_gt_i32", S32X2, |[a, b, _]| i(a) > i(b)),
    compare("s_cmp_ge_i32", S32X2, |[a, b, _]| i(a) >= i(b)),
    compare("s_cmp_lt_i32", S32X2, |[a, b, _]| i(a) < i(b)),
    compare("s_cmp_le_i32", S32X2, |[a, b, _]| i(a) <= i(b)),
    compare("s_cmp_eq_u32", S32X2, |[a, b, _]| a == b),
    compare("s_cmp_lg_u32", S32X2, |[a, b, _]| a != b),
    compare("s_cmp_gt_u32", S32X2, |[a, b, _]| a > b),
    compare("s_cmp_ge_u32", S32X2, |[a, b, _]| a >= b),
    compare("s_cmp_lt_u32", S32X2, |[a, b, _]| a < b),
    compare("s_cmp_le_u32", S32X2, |[a, b, _]| a <= b),
    compare("s_cmp_eq_u64", S64X2, |[a, b, _]| a == b),
    compare("s_cmp_lg_u64", S64X2, |[a, b, _]| a != b),
    compare("s_bitcmp0_b32", S32X2, |[a, b, _]| a >> (b & 31) & 1 == 0),
    compare("s_bitcmp1_b32", S32X2, |[a, b, _]| a >> (b & 31) & 1 == 1),
    compare("s_bitcmp0_b64", S64_32, |[a, b, _]| a >> (b & 63) & 1 == 0),
    compare("s_bitcmp1_b64", S64_32, |[a, b, _]| a >> (b & 63) & 1 == 1),
    compare("s_cmpk_eq_i32", S32X2, |[a, b, _]| i(a) == i(sext16(b))),
    compare("s_cmpk_lg_i32", S32X2, |[a, b, _]| i(a) != i(sext16(b))),
    compare("s_cmpk_gt_i32", S32X2, |[a, b, _]| i(a) > i(sext16(b))),
    compare("s_cmpk_ge_i32", S32X2, |[a, b, _]| i(a) >= i(sext16(b))),
    compare("s_cmpk_lt_i32", S32X2, |[a, b, _]| i(a) < i(sext16(b))),
    compare("s_cmpk_le_i32", S32X2, |[a, b, _]| i(a) <= i(sext16(b))),
    compare("s_cmpk_eq_u32", S32X2, |[a, b, _]| a == b & 0xFFFF),
    compare("s_cmpk_lg_u32", S32X2, |[a, b, _]| a != b & 0xFFFF),
    compare("s_cmpk_gt_u32", S32X2, |[a, b, _]| a > b & 0xFFFF),
    compare("s_cmpk_ge_u32", S32X2, |[a, b, _]| a >= b & 0xFFFF),
    compare("s_cmpk_lt_u32", S32X2, |[a, b, _]| a < b & 0xFFFF),
    compare("s_cmpk_le_u32", S32X2, |[a, b, _]| a <= b & 0xFFFF),
    // EXEC.
    saveexec("s_and_saveexec_b64", |[a, e, _]| a & e),
    saveexec("s_or_saveexec_b64", |[a, e, _]| a | e),
    saveexec("s_xor_saveexec_b64", |[a, e, _]| a ^ e),
    saveexec("s_andn2_saveexec_b64", |[a, e, _]| a & !e),
    saveexec("s_orn2_saveexec_b64", |[a, e, _]| a | !e),
    saveexec("s_nand_saveexec_b64", |[a, e, _]| !(a & e)),
    saveexec("s_nor_saveexec_b64", |[a, e, _]| !(a | e)),
    saveexec("s_xnor_saveexec_b64", |[a, e, _]| !(a ^ e)),
    saveexec("s_andn1_saveexec_b64", |[a, e, _]| !a & e),
    saveexec("s_orn1_saveexec_b64", |[a, e, _]| !a | e),
    shaped(Shape::WriteExec, "s_andn1_wrexec_b64", 64, S64, |[a, e, _]| !a & e, Bitwise, NonZero),
    shaped(Shape::WriteExec, "s_andn2_wrexec_b64", 64, S64, |[a, e, _]| a & !e, Bitwise, NonZero),
];

/// What only gfx12 has.
pub(crate) static GFX12: &[Row] = &[
    row("s_add_nc_u64", 64, S64X2, |[a, b, _]| a.wrapping_add(b), Left, Keep),
    row("s_sub_nc_u64", 64, S64X2, |[a, b, _]| a.wrapping_sub(b), Left, Keep),
    row("s_mul_u64", 64, S64X2, |[a, b, _]| a.wrapping_mul(b), Left, Keep),
    row("s_pack_hl_b32_b16", 32, S32X2, |[a, b, _]| (a & 0xFFFF_0000) >> 16 | b << 16, Move(0), Keep),
    saveexec32("s_and_saveexec_b32", |[a, e, _]| a & e),
    saveexec32("s_or_saveexec_b32", |[a, e, _]| a | e),
    saveexec32("s_xor_saveexec_b32", |[a, e, _]| a ^ e),
    saveexec32("s_nand_saveexec_b32", |[a, e, _]| !(a & e)),
    saveexec32("s_nor_saveexec_b32", |[a, e, _]| !(a | e)),
    saveexec32("s_xnor_saveexec_b32", |[a, e, _]| !(a ^ e)),
    saveexec32("s_and_not0_saveexec_b32", |[a, e, _]| !a & e),
    saveexec32("s_and_not1_saveexec_b32", |[a, e, _]| a & !e),
    saveexec32("s_or_not0_saveexec_b32", |[a, e, _]| !a | e),
    saveexec32("s_or_not1_saveexec_b32", |[a, e, _]| a | !e),
    shaped(Shape::WriteExec, "s_and_not0_wrexec_b32", 32, S32, |[a, e, _]| !a & e, Bitwise, NonZero),
    shaped(Shape::WriteExec, "s_and_not1_wrexec_b32", 32, S32, |[a, e, _]| a & !e, Bitwise, NonZero),
];

pub(crate) fn exec(cx: &mut Context<'_, '_>, row: &'static Row, inst: &Inst) -> Result<(), Fault> {
    if !row.signs && inst.args.iter().any(|a| a.neg || a.abs) {
        return unsupported("source modifier on a scalar instruction");
    }
    let wave = &mut *cx.wave;
    if row.float && (wave.mode.denorm32, wave.mode.denorm64) != (3, 3) {
        return unsupported(format!("`{}` with denormals flushed", inst.text));
    }
    let has_destination = row.d != 0;
    let sources =
        if row.shape == Shape::Accumulate { &inst.args[..] } else { &inst.args[usize::from(has_destination)..] };
    let mut vals = [0u64; 3];
    let mut unds = [0u64; 3];
    for (n, (arg, width)) in sources.iter().zip(row.s).enumerate() {
        let s = wave.scalar_arg(arg, *width)?;
        let kept = if arg.abs { !(1 << 31) } else { u64::MAX };
        (vals[n], unds[n]) = (s.v & kept ^ u64::from(arg.neg) << 31, s.u & kept);
    }
    let mut operands = row.s.len();
    match row.shape {
        Shape::CarryIn | Shape::Select => {
            vals[2] = u64::from(wave.scc);
            unds[2] = u64::from(wave.scc_undefined);
            operands = 3;
        }
        Shape::SaveExec | Shape::WriteExec => {
            vals[1] = wave.exec();
            operands = 2;
        }
        Shape::IfScc => {
            if !wave.scc_for(Sink::Control)? {
                return Ok(());
            }
        }
        Shape::Plain | Shape::Compare | Shape::Accumulate => {}
    }
    let mask = if row.d == 64 { u64::MAX } else { u64::from(u32::MAX) };
    let v = (row.f)(vals) & mask;
    let u = if row.shape == Shape::Select && unds[2] == 0 {
        // Only the selected operand counts.
        if vals[2] != 0 { unds[0] } else { unds[1] }
    } else {
        shadow::eval(row.shadow, row.f, operands, vals, unds, mask)
    };
    let any = unds != [0; 3];
    match row.scc {
        Scc::Keep => {}
        // One defined 1 decides, whatever the undefined bits are.
        Scc::NonZero => wave.set_scc(v != 0, v & !u == 0 && u != 0),
        Scc::If(f) => wave.set_scc(f(vals), any && !settled(row, vals, unds)),
    }
    if !has_destination {
        return Ok(());
    }
    let (first, count) = scalar_range(&inst.args[0])?;
    if first != NULL && u32::from(count) * 32 != row.d {
        return unsupported(format!("destination width in `{}`", inst.text));
    }
    match row.shape {
        Shape::SaveExec => {
            let old = Scalar::known(wave.exec());
            wave.set_exec(Scalar { v, u })?;
            wave.set_scalar(first, count, old)
        }
        Shape::WriteExec => {
            wave.set_exec(Scalar { v, u })?;
            wave.set_scalar(first, count, Scalar { v, u })
        }
        _ => wave.set_scalar(first, count, Scalar { v, u }),
    }
}

/// Whether the result of a compare is certain despite undefined bits.
fn settled(row: &Row, vals: [u64; 3], unds: [u64; 3]) -> bool {
    if row.shape != Shape::Compare || row.float {
        return false;
    }
    let name = row.name;
    if name.starts_with("s_bitcmp") {
        let bits = row.s[0] - 1;
        return unds[1] == 0 && unds[0] >> (vals[1] & u64::from(bits)) & 1 == 0;
    }
    // Unequal in a defined bit.
    (name.contains("_eq_") || name.contains("_lg_"))
        && !name.contains("cmpk")
        && (vals[0] ^ vals[1]) & !(unds[0] | unds[1]) != 0
}
