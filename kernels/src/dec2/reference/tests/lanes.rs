//! A warp's lanes and registers, simulated: the layouts in memory and registers give the products that the reference makes of
//! whole matrices.
//!
//! Here a lane's bytes are where the PTX manual has them for `mma.m16n8k32`, and words, blocks and tables are built as the stages
//! build them. Nothing uses the closed forms of [`fragment`](crate::dec2::fragment).

use fastrand::Rng;
use half::f16;
use lathe_dsl::numerics::Narrow;

use super::near;
use crate::dec2::options::{MmaAcc, Options};
use crate::dec2::phases::{Right, Seed, phases};
use crate::dec2::reference::Matrix;
use crate::dec2::reference::attention::{mixed, scores};
use crate::dec2::reference::gemm::{columns, product, step};
use crate::dec2::reference::number::quantise;
use crate::dec2::weights::{DenseWeights, WeightItem, WeightLayout};

const LANES: usize = 32;

/// A word of four codes, lowest byte first.
type Word = [u8; 4];

/// A lane's f16x2 register `[m][r][n]` of a matrix, as its halves.
fn register(x: &Matrix<f16>, lane: usize, m: usize, r: usize, n: usize) -> [f16; 2] {
    let (g, t) = (lane >> 2, lane & 3);
    [x[(16 * m + 8 * r + g, 8 * n + 2 * t)], x[(16 * m + 8 * r + g, 8 * n + 2 * t + 1)]]
}

/// Two f16x2 registers, quantised.
fn word(p: [f16; 2], q: [f16; 2]) -> Word {
    [p[0], p[1], q[0], q[1]].map(|x| quantise(x, Default::default()))
}

/// A lane's A quad of tile `m`, slice `ks`.
fn quad(x: &Matrix<f16>, lane: usize, m: usize, ks: usize) -> [Word; 4] {
    let of = |r, n| register(x, lane, m, r, 4 * ks + n);
    [word(of(0, 0), of(0, 2)), word(of(1, 0), of(1, 2)), word(of(0, 1), of(0, 3)), word(of(1, 1), of(1, 3))]
}

/// The instruction: a step on all lanes, by the places that bytes have in hardware. Which 16 of k come first is bytes 0 and 1 of
/// every register.
fn mma(a: &[[Word; 4]], b: &[[Word; 2]], c: &[[[f16; 2]; 2]], options: &Options) -> Vec<[[f16; 2]; 2]> {
    let value = |code: u8| f64::from(Narrow::E4m3.decode(code));
    let (mut left, mut right) = (Matrix::filled(16, 32, 0.0), Matrix::filled(8, 32, 0.0));
    for lane in 0..LANES {
        let (g, t) = (lane >> 2, lane & 3);
        for byte in 0..4 {
            for (r, word) in a[lane].iter().enumerate() {
                left[(g + 8 * (r & 1), 16 * (r >> 1) + 4 * t + byte)] = value(word[byte]);
            }
            for (r, word) in b[lane].iter().enumerate() {
                right[(g, 16 * r + 4 * t + byte)] = value(word[byte]);
            }
        }
    }
    let halves: Vec<usize> = (0..32).filter(|k| k & 2 == 0).chain((0..32).filter(|k| k & 2 != 0)).collect();
    let in_order = |row: &[f64]| halves.iter().map(|k| row[*k]).collect::<Vec<_>>();
    let element = |lane: usize, r: usize, half: usize| {
        let (g, t) = (lane >> 2, lane & 3);
        step(&in_order(left.row(g + 8 * r)), &in_order(right.row(2 * t + half)), c[lane][r][half], options)
    };
    (0..LANES).map(|lane| [0, 1].map(|r| [0, 1].map(|half| element(lane, r, half)))).collect()
}

/// The C or D of all lanes of tile (m, n) as they are in a matrix.
fn fragment(x: &Matrix<f16>, m: usize, n: usize) -> Vec<[[f16; 2]; 2]> {
    (0..LANES).map(|lane| [0, 1].map(|r| register(x, lane, m, r, n))).collect()
}

fn store(x: &mut Matrix<f16>, m: usize, n: usize, d: &[[[f16; 2]; 2]]) {
    for (lane, d) in d.iter().enumerate() {
        let (g, t) = (lane >> 2, lane & 3);
        for (r, half) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            x[(16 * m + 8 * r + g, 8 * n + 2 * t + half)] = d[r][half];
        }
    }
}

/// A whole product: `b` gives a lane's pair of n-tile and slice.
fn lanes_product(
    x: &Matrix<f16>,
    [m, n, k]: [usize; 3],
    b: &dyn Fn(usize, usize, usize) -> [Word; 2],
    c: &Matrix<f16>,
    options: &Options,
) -> Matrix<f16> {
    let mut out = c.clone();
    for (i, j) in (0..m / 16).flat_map(|i| (0..n / 8).map(move |j| (i, j))) {
        let mut sum = fragment(c, i, j);
        for ks in 0..k / 32 {
            let left: Vec<_> = (0..LANES).map(|lane| quad(x, lane, i, ks)).collect();
            let right: Vec<_> = (0..LANES).map(|lane| b(lane, j, ks)).collect();
            sum = mma(&left, &right, &sum, options);
        }
        store(&mut out, i, j, &sum);
    }
    out
}

/// Numbers of ordinary size: roundings differ between models, so that a wrong order would show.
fn random(rng: &mut Rng, rows: usize, columns: usize) -> Matrix<f16> {
    Matrix::from_fn(rows, columns, |_, _| near(super::normal(rng)))
}

fn both() -> [Options; 2] {
    [MmaAcc::F32PerK32, MmaAcc::Sm90Emul].map(|mma_acc| Options { mma_acc, ..Options::default() })
}

fn codes(x: &Matrix<f16>) -> Matrix<u8> {
    x.map(|x| quantise(x, Default::default()))
}

/// Every product with weights, from the image's bytes.
#[test]
fn products_with_weights() {
    let mut rng = Rng::with_seed(21);
    let layout = WeightLayout::dec2().unwrap();
    let mut dense = DenseWeights::zeros(layout.shape());
    let code = |rng: &mut Rng| quantise(near(super::normal(rng)), Default::default());
    let mut fill = |codes: &mut Vec<u8>| codes.iter_mut().for_each(|c| *c = code(&mut rng));
    [&mut dense.patch, &mut dense.fc1, &mut dense.fc2, &mut dense.head].into_iter().for_each(&mut fill);
    for head in &mut dense.heads {
        [&mut head.query_key, &mut head.value, &mut head.out_proj].into_iter().for_each(&mut fill);
    }
    dense.patch_bias.iter_mut().enumerate().for_each(|(i, x)| *x = near(i as f64 / 64.0 - 3.0));
    dense.fc1_bias.iter_mut().enumerate().for_each(|(i, x)| *x = near(3.0 - i as f64 / 64.0));
    dense.head_bias.iter_mut().enumerate().for_each(|(i, x)| *x = near(i as f64));
    let image = dense.pack(&layout).unwrap();

    for (phase, z) in phases(&layout).unwrap().iter().flat_map(|p| [(p, 0), (p, 3)]) {
        let Right::Weights(base) = phase.right else { continue };
        if base.z_stride == 0 && z > 0 {
            continue;
        }
        let [m, n, k] = [phase.m, phase.n, phase.k].map(|x| x as usize);
        // B from memory: a lane's 16 bytes of a block are the pairs of two n-tiles.
        let pair = |lane: usize, j: usize, ks: usize| {
            let block = (j / 2) * (k / 32) + ks;
            let at = base.of(z) as usize + 512 * block + 16 * lane + 8 * (j & 1);
            [0, 4].map(|offset| [0, 1, 2, 3].map(|byte| image[at + offset + byte]))
        };
        // C from memory: a word of the table for columns 8n+2t and 8n+2t+1.
        let x = random(&mut rng, m, k);
        let mut c = random(&mut rng, m, n);
        if let Seed::Columns(table) = phase.seed {
            for (lane, j) in (0..LANES).flat_map(|lane| (0..n / 8).map(move |j| (lane, j))) {
                let at = (table.of(z) as usize) + 16 * j + 4 * (lane & 3);
                let value = |at: usize| f16::from_bits(u16::from_le_bytes([image[at], image[at + 1]]));
                for row in 0..m {
                    c[(row, 8 * j + 2 * (lane & 3))] = value(at);
                    c[(row, 8 * j + 2 * (lane & 3) + 1)] = value(at + 2);
                }
            }
        }
        let (z, number) = (z as usize, phase.number as usize);
        let whole =
            |data: &[u8], columns: usize| Matrix::from_fn(data.len() / columns, columns, |i, j| data[i * columns + j]);
        let (weights, table) = match number {
            1 => (whole(&dense.patch, 384).columns(96 * z, 96), Some(&dense.patch_bias[96 * z..96 * (z + 1)])),
            2 | 4 | 6 => (whole(&dense.heads[z].query_key, 32).rows(32 * (number / 2 - 1), 32), None),
            3 | 5 | 7 => (whole(&dense.heads[z].value, 32).rows(32 * (number / 2 - 1), 32), None),
            10..=13 => (whole(&dense.heads[number - 10].out_proj, 96), None),
            38 => (whole(&dense.head, 16), Some(&dense.head_bias[..])),
            _ if number % 2 == 0 => {
                let first = 32 * ((number - 14) / 2);
                (whole(&dense.fc1, 384).columns(first, 32), Some(&dense.fc1_bias[first..first + 32]))
            }
            _ => (whole(&dense.fc2, 96).rows(32 * ((number - 15) / 2), 32), None),
        };
        if let Some(table) = table {
            assert_eq!(c, columns(m, table), "phase {number}");
        }
        for options in both() {
            let found = lanes_product(&x, [m, n, k], &pair, &c, &options);
            assert_eq!(found, product(&codes(&x), &weights, &c, &options), "phase {number}, {options}");
        }
    }
}

/// V5: A and B of the scores are the same words, C comes from the image.
#[test]
fn scores_from_one_tile() {
    let mut rng = Rng::with_seed(22);
    let layout = WeightLayout::dec2().unwrap();
    let keys = random(&mut rng, 96, 32);
    let mut dense = DenseWeights::zeros(layout.shape());
    dense.heads[2].score_bias.iter_mut().for_each(|x| *x = near(super::normal(&mut rng)));
    let image = dense.pack(&layout).unwrap();
    let base = layout.offset(WeightItem::ScoreBias { head: 2 }).unwrap() as usize;
    let pair = |lane: usize, nb: usize| {
        let of = |n: usize| register(&keys, lane, nb >> 1, nb & 1, n);
        [word(of(0), of(2)), word(of(1), of(3))]
    };
    for (lane, m) in (0..LANES).flat_map(|lane| (0..4).map(move |m| (lane, m))) {
        let (even, odd) = (pair(lane, 2 * m), pair(lane, 2 * m + 1));
        assert_eq!(quad(&keys, lane, m, 0), [even[0], odd[0], even[1], odd[1]]);
    }
    let half = |at: usize| f16::from_bits(u16::from_le_bytes([image[at], image[at + 1]]));
    let mut c = Matrix::filled(64, 96, f16::ZERO);
    for (m, n) in (0..4).flat_map(|m| (0..12).map(move |n| (m, n))) {
        let of_lane = |lane: usize| {
            let at = base + 512 * (4 * (n >> 1) + m) + 16 * lane + 8 * (n & 1);
            [0, 1].map(|r| [half(at + 4 * r), half(at + 4 * r + 2)])
        };
        store(&mut c, m, n, &(0..LANES).map(of_lane).collect::<Vec<_>>());
    }
    for options in both() {
        let found = lanes_product(&keys, [64, 96, 32], &|lane, n, _| pair(lane, n), &c, &options);
        assert_eq!(found, scores(&keys, &dense.heads[2].score_bias, &options), "{options}");
    }
    // Beyond e4m3's range codes saturate.
    let large = keys.map(|x| near(1000.0 * x.to_f64()));
    let found = scores(&large, &dense.heads[0].score_bias, &Options::default());
    let exact = |i: usize, j: usize| {
        let value = |x: f16| f64::from(Narrow::E4m3.decode(quantise(x, Default::default())));
        (0..32).map(|k| value(large[(i, k)]) * value(large[(j, k)])).sum::<f64>()
    };
    assert!(large.elements().iter().any(|x| x.to_f64().abs() > 448.0));
    assert_eq!(found, Matrix::from_fn(64, 96, |i, j| near(exact(i, j))));
}

/// The transposed 8×8 tile of registers, as `movmatrix` gives it: by its definition, and by two reads of other lanes.
fn transposed(v: &Matrix<f16>, lane: usize, m: usize, r: usize, n: usize) -> [f16; 2] {
    let (g, t) = (lane >> 2, lane & 3);
    let by_definition = [0, 1].map(|half| v[(16 * m + 8 * r + 2 * t + half, 8 * n + g)]);
    let source = 8 * t + (g >> 1);
    let by_lanes = [source, source + 4].map(|source| register(v, source, m, r, n)[g & 1]);
    assert_eq!(by_definition, by_lanes);
    by_definition
}

/// V6 and V7: quads of probabilities times pairs of transposed values.
#[test]
fn probabilities_times_values() {
    let mut rng = Rng::with_seed(23);
    let (p, v) = (random(&mut rng, 64, 96), random(&mut rng, 96, 32));
    let pair = |lane: usize, n: usize, ks: usize| {
        let t = |m: usize, r: usize| transposed(&v, lane, m, r, n);
        [word(t(2 * ks, 0), t(2 * ks + 1, 0)), word(t(2 * ks, 1), t(2 * ks + 1, 1))]
    };
    let zero = Matrix::filled(64, 32, f16::ZERO);
    for options in both() {
        assert_eq!(lanes_product(&p, [64, 32, 96], &pair, &zero, &options), mixed(&p, &v, &options), "{options}");
    }
}

/// Words of a feature plane are words of a quad: what V11 stores is what V10 packs.
#[test]
fn quads_are_words_of_planes() {
    use crate::dec2::geometry::{Extents, Geometry, Origin};
    use crate::dec2::reference::block::plane_scatter;
    let mut rng = Rng::with_seed(24);
    let tile = random(&mut rng, 64, 96);
    let geometry = Geometry::fine(Extents::new(8, 8), Origin::default()).unwrap();
    let mut planes = vec![0; 64 * 96];
    plane_scatter(&codes(&tile), &mut planes, &geometry, [0, 0]);
    for (z, lane, q) in (0..4).flat_map(|z| (0..32).flat_map(move |lane| (0..3).map(move |q| (z, lane, q)))) {
        let (g, t) = (lane >> 2, lane & 3);
        let words = quad(&tile, lane, z, q);
        for (r, h) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
            let index = q * 8 * 64 + 64 * (2 * z + r) + 8 * g + 4 * h + t;
            assert_eq!(planes[4 * index..4 * index + 4], words[2 * h + r]);
        }
    }
}
