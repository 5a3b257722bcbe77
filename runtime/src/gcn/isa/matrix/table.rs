//! The matrix instructions by chip.

use super::element::Element::{self, Bf8, Bf16, F16, F32, Fp8};
use super::{Row, Shape, Types};

const fn row(name: &'static str, m: usize, k: usize, lanes: usize, types: Types) -> Row {
    Row { name, shape: Shape { m, n: m, k, lanes }, types }
}

const fn mfma(name: &'static str, m: usize, k: usize, a: Element, b: Element) -> Row {
    row(name, m, k, 64, Types::Float { a, b })
}

const fn wmma(name: &'static str, a: Element, b: Element) -> Row {
    row(name, 16, 16, 32, Types::Float { a, b })
}

/// gfx942 and gfx950.
pub(crate) static CDNA3: &[Row] = &[
    mfma("v_mfma_f32_16x16x4_f32", 16, 4, F32, F32),
    mfma("v_mfma_f32_32x32x2_f32", 32, 2, F32, F32),
    mfma("v_mfma_f32_16x16x16_f16", 16, 16, F16, F16),
    mfma("v_mfma_f32_32x32x8_f16", 32, 8, F16, F16),
    mfma("v_mfma_f32_16x16x16_bf16", 16, 16, Bf16, Bf16),
    mfma("v_mfma_f32_32x32x8_bf16", 32, 8, Bf16, Bf16),
    mfma("v_mfma_f32_16x16x32_fp8_fp8", 16, 32, Fp8, Fp8),
    mfma("v_mfma_f32_16x16x32_fp8_bf8", 16, 32, Fp8, Bf8),
    mfma("v_mfma_f32_16x16x32_bf8_fp8", 16, 32, Bf8, Fp8),
    mfma("v_mfma_f32_16x16x32_bf8_bf8", 16, 32, Bf8, Bf8),
    mfma("v_mfma_f32_32x32x16_fp8_fp8", 32, 16, Fp8, Fp8),
    mfma("v_mfma_f32_32x32x16_fp8_bf8", 32, 16, Fp8, Bf8),
    mfma("v_mfma_f32_32x32x16_bf8_fp8", 32, 16, Bf8, Fp8),
    mfma("v_mfma_f32_32x32x16_bf8_bf8", 32, 16, Bf8, Bf8),
    row("v_mfma_i32_16x16x32_i8", 16, 32, 64, Types::Int8),
    row("v_mfma_i32_32x32x16_i8", 32, 16, 64, Types::Int8),
];

/// gfx950 alone.
pub(crate) static CDNA4: &[Row] = &[
    mfma("v_mfma_f32_16x16x32_f16", 16, 32, F16, F16),
    mfma("v_mfma_f32_32x32x16_f16", 32, 16, F16, F16),
    mfma("v_mfma_f32_16x16x32_bf16", 16, 32, Bf16, Bf16),
    mfma("v_mfma_f32_32x32x16_bf16", 32, 16, Bf16, Bf16),
    row("v_mfma_i32_16x16x64_i8", 16, 64, 64, Types::Int8),
    row("v_mfma_i32_32x32x32_i8", 32, 32, 64, Types::Int8),
    row("v_mfma_f32_16x16x128_f8f6f4", 16, 128, 64, Types::Formats { scaled: false }),
    row("v_mfma_f32_32x32x64_f8f6f4", 32, 64, 64, Types::Formats { scaled: false }),
    row("v_mfma_scale_f32_16x16x128_f8f6f4", 16, 128, 64, Types::Formats { scaled: true }),
    row("v_mfma_scale_f32_32x32x64_f8f6f4", 32, 64, 64, Types::Formats { scaled: true }),
];

/// gfx1201.
pub(crate) static RDNA4: &[Row] = &[
    wmma("v_wmma_f32_16x16x16_f16", F16, F16),
    wmma("v_wmma_f32_16x16x16_bf16", Bf16, Bf16),
    wmma("v_wmma_f32_16x16x16_fp8_fp8", Fp8, Fp8),
    wmma("v_wmma_f32_16x16x16_fp8_bf8", Fp8, Bf8),
    wmma("v_wmma_f32_16x16x16_bf8_fp8", Bf8, Fp8),
    wmma("v_wmma_f32_16x16x16_bf8_bf8", Bf8, Bf8),
    row("v_wmma_i32_16x16x16_iu8", 16, 16, 32, Types::IntOrUnsigned8),
];
