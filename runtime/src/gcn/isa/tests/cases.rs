//! The cases, one table an encoding family.

mod float;
mod gfx12;
pub(super) mod matrix;
mod memory;
mod narrow;
mod scalar;
mod vector;

pub(super) use gfx12::GFX12;
pub(super) use memory::TRANSFERS;

pub(super) const ALL: &[&str] = &[
    scalar::SCALAR,
    scalar::SCALAR_MEMORY,
    vector::VECTOR_BITS,
    vector::VECTOR_INTEGER,
    float::VECTOR_FLOAT,
    vector::CONVERT,
    narrow::NARROW,
    vector::SPECIAL,
    vector::PACKED,
    memory::LDS,
    memory::LOAD_LDS,
    vector::MODIFIERS,
];
