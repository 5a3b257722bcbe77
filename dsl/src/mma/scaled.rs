//! The block-scaled product: 16×16×128 of 8-, 6- and 4-bit floats with one power of two for 32 elements along K.

use super::layout::{cols, rows};
use super::{Fragments, Layout, MmaShape, MmaType, Tiles};
use crate::ir::{Scalar, Type};
use crate::numerics::Narrow;

/// The shape of `mfma_scaled`.
pub const SCALED: MmaShape = MmaShape::new(16, 16, 128);

/// Elements along K that share a scale.
pub const BLOCK: u32 = 32;

/// Where the elements of a scaled product and its scales are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScaledTiles {
    /// Factors and sums.
    pub tiles: Tiles,
    /// Scales of A: 16 rows, a column a block of 32 along K.
    pub scale_a: Layout,
    /// Scales of B: a row a block of 32 along K, 16 columns.
    pub scale_b: Layout,
}

impl ScaledTiles {
    /// Type of a lane's scales of A, and of B.
    pub fn scale_type(&self) -> Type {
        match self.scale_a.elements() {
            1 => Type::U32,
            n => Type::Vector(Scalar::U32, n),
        }
    }
}

/// Where everything is in a scaled product of these formats.
///
/// # Errors
/// A text that tells what is allowed, if a format cannot be a factor.
pub fn scaled(on: Fragments, a: Narrow, b: Narrow) -> Result<ScaledTiles, String> {
    for format in [a, b] {
        if !matches!(format, Narrow::E4m3 | Narrow::E5m2 | Narrow::E2m3 | Narrow::E3m2 | Narrow::E2m1) {
            return Err(format!("a scaled product of {format}; allowed are e4m3, e5m2, e2m3, e3m2 and e2m1"));
        }
    }
    let k = SCALED.k;
    let (layout_a, c) = match on {
        Fragments::Cdna4 => (cdna4(a), Layout::new(cols(1, 16).chain(rows(4, 16)), rows(1, 4))),
        // In the others every block of K is spread over all lanes, so that one product of the plain kind takes one block.
        Fragments::Cdna3 => (
            Layout::new(rows(1, 16).chain(cols(8, 32)), cols(1, 8).chain(cols(32, k))),
            Layout::new(cols(1, 16).chain(rows(4, 16)), rows(1, 4)),
        ),
        Fragments::Rdna4 => (
            Layout::new(rows(1, 16).chain(cols(16, 32)), cols(1, 16).chain(cols(32, k))),
            Layout::new(cols(1, 16).chain(rows(8, 16)), rows(1, 8)),
        ),
        Fragments::Nvidia => (
            Layout::new(cols(8, 32).chain(rows(1, 8)), cols(1, 8).chain(cols(32, k)).chain(rows(8, 16))),
            Layout::new(cols(2, 8).chain(rows(1, 8)), cols(1, 2).chain(rows(8, 16)).chain(cols(8, 16))),
        ),
    };
    let layout_b = if on == Fragments::Cdna4 { cdna4(b) } else { layout_a.clone() }.transposed();
    // A lane a row and block; with 32 lanes, blocks 2 and 3 in a second register.
    let blocks = k / BLOCK;
    let in_lanes = on.wave() / 16;
    let scale_a = Layout::new(rows(1, 16).chain(cols(1, in_lanes)), cols(in_lanes, blocks));
    let scale_b = scale_a.transposed();
    Ok(ScaledTiles { tiles: Tiles { a: layout_a, b: layout_b, c }, scale_a, scale_b })
}

/// gfx950: 32 elements of a block side by side in a lane; of 8-bit floats two runs of 16, 64 apart.
fn cdna4(format: Narrow) -> Layout {
    match MmaType::Narrow(format).bits() {
        8 => Layout::new(rows(1, 16).chain(cols(16, 64)), cols(1, 16).chain(cols(64, 128))),
        _ => Layout::new(rows(1, 16).chain(cols(32, 128)), cols(1, 32)),
    }
}
