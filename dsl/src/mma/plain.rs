//! Products without scales: the shapes of every chip.
//!
//! Sources: the CDNA 3, CDNA 4 and RDNA 4 instruction sets (MFMA and WMMA operand layouts), the PTX manual (`mma` fragments).

use super::layout::{cols, rows};
use super::{Fragments, Layout, MmaShape, MmaType, Tiles};
use crate::numerics::Narrow;

/// The product that dec2 and its like are written in, on every chip: e4m3, by logical groups of 32 lanes.
pub const E4M3: MmaShape = MmaShape::new(16, 8, 32);

/// The shapes that these registers multiply elements of these types in.
fn shapes(on: Fragments, a: MmaType, b: MmaType) -> Vec<MmaShape> {
    use MmaType::{Bf16, F16, I8};
    let sixteen = matches!((a, b), (F16, F16) | (Bf16, Bf16));
    let ints = (a, b) == (I8, I8);
    let e4m3 = a == MmaType::Narrow(Narrow::E4m3) && b == a;
    let list: &[(u32, u32, u32)] = match on {
        Fragments::Cdna3 if sixteen => &[(16, 16, 16), (32, 32, 8)],
        Fragments::Cdna3 if ints => &[(16, 16, 32), (32, 32, 16)],
        Fragments::Cdna3 if MmaType::fp8(a, b, true) => &[(16, 16, 32), (32, 32, 16)],
        Fragments::Cdna4 if sixteen => &[(16, 16, 16), (32, 32, 8), (16, 16, 32), (32, 32, 16)],
        Fragments::Cdna4 if ints => &[(16, 16, 32), (32, 32, 16), (16, 16, 64), (32, 32, 32)],
        Fragments::Cdna4 if MmaType::fp8(a, b, false) => &[(16, 16, 32), (32, 32, 16)],
        Fragments::Rdna4 if sixteen || ints || MmaType::fp8(a, b, false) => &[(16, 16, 16)],
        Fragments::Nvidia if sixteen => &[(16, 8, 8), (16, 8, 16)],
        Fragments::Nvidia if ints => &[(16, 8, 16), (16, 8, 32)],
        Fragments::Nvidia if MmaType::fp8(a, b, false) => &[(16, 8, 32)],
        _ => &[],
    };
    let mut list: Vec<MmaShape> = list.iter().map(|&(m, n, k)| MmaShape { m, n, k }).collect();
    if e4m3 && !list.contains(&E4M3) {
        list.push(E4M3);
    }
    list
}

/// Where the elements of such a product are.
///
/// # Errors
/// A text that tells which shapes there are instead, if there is no such product.
pub fn plain(on: Fragments, shape: MmaShape, a: MmaType, b: MmaType) -> Result<Tiles, String> {
    let known = shapes(on, a, b);
    if known.contains(&shape) {
        return Ok(tiles(on, shape, a));
    }
    let list = |shapes: &[MmaShape]| shapes.iter().map(MmaShape::to_string).collect::<Vec<_>>().join(", ");
    let others = if known.is_empty() { types(on) } else { list(&known) };
    Err(format!("no product {shape} of {a} by {b} in {on} fragments; there are {others}"))
}

/// The types of which there is a product at all.
fn types(on: Fragments) -> String {
    let fp8 = if on == Fragments::Cdna3 { "e4m3fnuz or e5m2fnuz by either" } else { "e4m3 or e5m2 by either" };
    format!("f16 by f16, bf16 by bf16, i8 by i8, e4m3 by e4m3 as {E4M3}, {fp8}; with scales, `mfma_scaled`")
}

fn tiles(on: Fragments, shape: MmaShape, a: MmaType) -> Tiles {
    let MmaShape { m, n, k } = shape;
    match on {
        Fragments::Cdna3 | Fragments::Cdna4 if shape == E4M3 => {
            // Two products at a time, one for each half of the wave, in one MFMA of the transposes: lanes are rows of A, and
            // which 8 of the 16 columns of B a lane feeds depends on the half. See the lowering.
            let b = Layout::new(cols(1, 8).chain(rows(16, 32)).chain(rows(8, 16)), rows(1, 8));
            Tiles { a: e4m3_a(), b, c: e4m3_c() }
        }
        Fragments::Rdna4 if shape == E4M3 => {
            // One WMMA of the transposes a half of K: its rows 0–3 and 8–11 are the columns of B, the other lanes hold the second
            // half of K.
            let b = Layout::new(cols(1, 4).chain(rows(16, 32)).chain(cols(4, 8)).chain(rows(8, 16)), rows(1, 8));
            Tiles { a: e4m3_a(), b, c: e4m3_c() }
        }
        Fragments::Cdna3 | Fragments::Cdna4 => {
            // Lanes run over rows (columns of B), then over pieces of K.
            let piece = m * k / 64;
            let a = Layout::new(rows(1, m).chain(cols(piece, k)), cols(1, piece));
            // 16 rows: lanes 16 apart are 4 rows apart. 32 rows: lanes 32 apart are 4 rows apart, every fourth register 8.
            let c = Layout::new(
                cols(1, n).chain(rows(4, if m == 16 { 16 } else { 8 })),
                rows(1, 4).chain(rows(8, if m == 16 { 8 } else { 32 })),
            );
            Tiles { b: a.transposed(), a, c }
        }
        Fragments::Rdna4 => {
            let a = Layout::new(rows(1, 16).chain(cols(8, 16)), cols(1, 8));
            let c = Layout::new(cols(1, 16).chain(rows(8, 16)), rows(1, 8));
            Tiles { b: a.transposed(), a, c }
        }
        Fragments::Nvidia => {
            // A word a lane along K: 2 or 4 elements; four lanes side by side.
            let word = 32 / a.bits();
            let lane = |word: u32| cols(word, 4 * word).chain(rows(1, 8));
            let layout_a = Layout::new(lane(word), cols(1, word).chain(rows(8, 16)).chain(cols(4 * word, k)));
            let b = Layout::new(lane(word), cols(1, word).chain(cols(4 * word, k))).transposed();
            let c = Layout::new(lane(2), cols(1, 2).chain(rows(8, 16)));
            Tiles { a: layout_a, b, c }
        }
    }
}

fn e4m3_a() -> Layout {
    Layout::new(rows(1, 16).chain(cols(8, 16)), cols(1, 8).chain(cols(16, 32)))
}

fn e4m3_c() -> Layout {
    Layout::new(rows(1, 16).chain(cols(4, 8)), cols(1, 4))
}
