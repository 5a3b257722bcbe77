//! Every layout holds every element once; and what the vendors' manuals draw.

use std::collections::HashSet;

use super::*;

fn whole(layout: &Layout, rows: u32, cols: u32, what: &str) {
    assert_eq!((layout.rows(), layout.cols()), (rows, cols), "{what}");
    let mut seen = HashSet::new();
    for lane in 0..layout.lanes() {
        for element in 0..layout.elements() {
            let (row, col) = layout.at(lane, element);
            assert!(row < rows && col < cols && seen.insert((row, col)), "{what}: lane {lane} element {element}");
            assert_eq!(layout.holder(row, col), (lane, element), "{what}");
        }
    }
    assert_eq!(seen.len() as u32, rows * cols, "{what}");
}

const TYPES: [MmaType; 10] = [
    MmaType::F16,
    MmaType::Bf16,
    MmaType::I8,
    MmaType::Narrow(Narrow::E4m3),
    MmaType::Narrow(Narrow::E5m2),
    MmaType::Narrow(Narrow::E4m3Fnuz),
    MmaType::Narrow(Narrow::E5m2Fnuz),
    MmaType::Narrow(Narrow::E2m3),
    MmaType::Narrow(Narrow::E3m2),
    MmaType::Narrow(Narrow::E2m1),
];

#[test]
fn every_element_is_held_once() {
    let mut products = 0;
    for on in Fragments::ALL {
        for (a, b) in TYPES.iter().flat_map(|a| TYPES.iter().map(move |b| (*a, *b))) {
            for (m, n) in [(16, 8), (16, 16), (32, 32)] {
                for k in [4, 8, 16, 32, 64, 128] {
                    let shape = MmaShape { m, n, k };
                    let Ok(tiles) = plain(on, shape, a, b) else { continue };
                    products += 1;
                    let what = format!("{on} {shape} {a} {b}");
                    whole(&tiles.a, m, k, &what);
                    whole(&tiles.b, k, n, &what);
                    whole(&tiles.c, m, n, &what);
                    assert!(tiles.a.lanes() == tiles.lanes() && tiles.b.lanes() == tiles.lanes(), "{what}");
                    assert!(on.wave().is_multiple_of(tiles.lanes()), "{what}");
                }
            }
            let (MmaType::Narrow(a), MmaType::Narrow(b)) = (a, b) else { continue };
            let Ok(all) = scaled(on, a, b) else { continue };
            products += 1;
            whole(&all.tiles.a, 16, 128, "a");
            whole(&all.tiles.b, 128, 16, "b");
            whole(&all.tiles.c, 16, 16, "c");
            whole(&all.scale_a, 16, 4, "scales of a");
            whole(&all.scale_b, 4, 16, "scales of b");
            assert_eq!(all.scale_a.lanes(), on.wave());
        }
    }
    // 3 kinds of 16 and 8 bits and fp8 in four mixes by their shapes, e4m3 everywhere, 25 scaled mixes a chip.
    let cdna3 = 2 * 2 + 2 + 4 * 2 + 1;
    let cdna4 = 2 * 4 + 4 + 4 * 2 + 1;
    let rdna4 = 2 + 1 + 4 + 1;
    let nvidia = 2 * 2 + 2 + 4;
    assert_eq!(products, cdna3 + cdna4 + rdna4 + nvidia + 4 * 25);
}

#[test]
fn mfma_as_the_instruction_set_draws_it() {
    let f16 = plain(Fragments::Cdna4, MmaShape::new(16, 16, 32), MmaType::F16, MmaType::F16).unwrap();
    let wide = plain(Fragments::Cdna4, MmaShape::new(32, 32, 16), MmaType::F16, MmaType::F16).unwrap();
    for l in 0..64 {
        for r in 0..8 {
            assert_eq!(f16.a.at(l, r), (l % 16, 8 * (l / 16) + r));
            assert_eq!(f16.b.at(l, r), (8 * (l / 16) + r, l % 16));
            assert_eq!(wide.a.at(l, r), (l % 32, 8 * (l / 32) + r));
        }
        for r in 0..4 {
            assert_eq!(f16.c.at(l, r), (4 * (l / 16) + r, l % 16));
        }
        for r in 0..16 {
            assert_eq!(wide.c.at(l, r), (8 * (r / 4) + 4 * (l / 32) + r % 4, l % 32));
        }
    }
}

#[test]
fn wmma_as_the_instruction_set_draws_it() {
    let tiles = plain(Fragments::Rdna4, MmaShape::new(16, 16, 16), MmaType::Bf16, MmaType::Bf16).unwrap();
    for (l, r) in (0..32).flat_map(|l| (0..8).map(move |r| (l, r))) {
        assert_eq!(tiles.a.at(l, r), (l % 16, 8 * (l / 16) + r));
        assert_eq!(tiles.b.at(l, r), (8 * (l / 16) + r, l % 16));
        assert_eq!(tiles.c.at(l, r), (8 * (l / 16) + r, l % 16));
    }
}

#[test]
fn mma_sync_as_the_ptx_manual_draws_it() {
    let f16 = plain(Fragments::Nvidia, MmaShape::new(16, 8, 16), MmaType::F16, MmaType::F16).unwrap();
    let e4m3 = MmaType::Narrow(Narrow::E4m3);
    let fp8 = plain(Fragments::Nvidia, MmaShape::new(16, 8, 32), e4m3, e4m3).unwrap();
    for l in 0..32 {
        let (g, t) = (l / 4, l % 4);
        for i in 0..8 {
            let row = if (i / 2) % 2 == 0 { g } else { g + 8 };
            assert_eq!(f16.a.at(l, i), (row, 2 * t + i % 2 + if i >= 4 { 8 } else { 0 }));
        }
        for i in 0..4 {
            assert_eq!(f16.b.at(l, i), (2 * t + i % 2 + if i >= 2 { 8 } else { 0 }, g));
            assert_eq!(f16.c.at(l, i), (g + 8 * (i / 2), 2 * t + i % 2));
        }
        for i in 0..16 {
            let row = if (i / 4) % 2 == 0 { g } else { g + 8 };
            assert_eq!(fp8.a.at(l, i), (row, 4 * t + i % 4 + if i >= 8 { 16 } else { 0 }));
        }
        for i in 0..8 {
            assert_eq!(fp8.b.at(l, i), (4 * t + i % 4 + if i >= 4 { 16 } else { 0 }, g));
        }
    }
}

#[test]
fn mfma_scaled_as_gfx950_has_it() {
    let fp4 = scaled(Fragments::Cdna4, Narrow::E2m1, Narrow::E4m3).unwrap();
    for l in 0..64 {
        for i in 0..32 {
            assert_eq!(fp4.tiles.a.at(l, i), (l % 16, 32 * (l / 16) + i));
            // 8-bit factors lie in two runs of 16.
            assert_eq!(fp4.tiles.b.at(l, i), (16 * (l / 16) + i % 16 + 64 * (i / 16), l % 16));
        }
        assert_eq!(fp4.scale_a.at(l, 0), (l % 16, l / 16));
        assert_eq!(fp4.scale_b.at(l, 0), (l / 16, l % 16));
    }
}

#[test]
fn what_there_is_not_is_told() {
    let e4m3 = MmaType::Narrow(Narrow::E4m3);
    let no = |on, (m, n, k), a, b| plain(on, MmaShape { m, n, k }, a, b).unwrap_err();
    assert_eq!(
        no(Fragments::Cdna3, (16, 16, 32), MmaType::Bf16, MmaType::Bf16),
        "no product m16n16k32 of bf16 by bf16 in cdna3 fragments; there are m16n16k16, m32n32k8"
    );
    assert_eq!(
        no(Fragments::Cdna3, (16, 16, 32), e4m3, e4m3),
        "no product m16n16k32 of e4m3 by e4m3 in cdna3 fragments; there are m16n8k32"
    );
    assert!(no(Fragments::Nvidia, (16, 8, 16), MmaType::F16, MmaType::Bf16).contains("bf16 by bf16"));
    assert!(
        scaled(Fragments::Cdna4, Narrow::E4m3Fnuz, Narrow::E2m1).unwrap_err().contains("a scaled product of e4m3fnuz")
    );
    for text in ["m16n16k32", "m16n8k8"] {
        assert_eq!(MmaShape::named(text).unwrap().to_string(), text);
    }
    for text in ["16x16x32", "m16n16", "m016n16k32", "m16n16k+32", "m16n16k", "k16"] {
        assert_eq!(MmaShape::named(text), None, "{text}");
    }
}
