//! The whole block.

use fastrand::Rng;
use half::f16;

use super::{h, near, normal};
use crate::dec2::geometry::{Extents, Geometry, Origin};
use crate::dec2::options::{CoarseExtent, MmaAcc, NanSign, Options, SubpixelOrder};
use crate::dec2::plane::PlaneLayout;
use crate::dec2::reference::block::block_pixels;
use crate::dec2::reference::filter::{Pictures, kernel_gate};
use crate::dec2::reference::number::{add, decode, quantise};
use crate::dec2::reference::{BlockTrace, Image, Inputs, frame};
use crate::dec2::weights::{DenseWeights, WeightShape};

/// Inputs that a test owns.
#[derive(Clone)]
struct Scene {
    geometry: Geometry,
    coarse: Vec<u8>,
    skip: Vec<u8>,
    weights: DenseWeights,
    colour: Image,
    blend: Image,
    offset: Image,
}

fn code(x: f64) -> u8 {
    quantise(near(x), NanSign::Positive)
}

impl Scene {
    /// All zero, in an image of these extents.
    fn zeros(extents: Extents, origin: Origin, rule: CoarseExtent) -> Self {
        let geometry = Geometry::whole(extents, origin, rule).unwrap();
        let image = Image::from_fn(extents.x, extents.y, |_, _| [f16::ZERO; 4]).unwrap();
        Self {
            geometry,
            coarse: vec![0; PlaneLayout::new(extents.coarse(rule), 128).bytes() as usize],
            skip: vec![0; PlaneLayout::new(extents, 96).bytes() as usize],
            weights: DenseWeights::zeros(&WeightShape::DEC2),
            colour: image.clone(),
            blend: image.clone(),
            offset: image,
        }
    }

    /// Everything random, of sizes that keep sums ordinary.
    fn random(extents: Extents, origin: Origin, rule: CoarseExtent, seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let mut scene = Self::zeros(extents, origin, rule);
        let mut fill =
            |codes: &mut Vec<u8>, scale: f64| codes.iter_mut().for_each(|c| *c = code(scale * normal(&mut rng)));
        fill(&mut scene.coarse, 1.0);
        fill(&mut scene.skip, 1.0);
        let w = &mut scene.weights;
        fill(&mut w.patch, 0.08);
        fill(&mut w.fc1, 0.1);
        fill(&mut w.fc2, 0.05);
        fill(&mut w.head, 0.1);
        for head in &mut w.heads {
            fill(&mut head.query_key, 0.12);
            fill(&mut head.value, 1.0);
            fill(&mut head.out_proj, 0.2);
        }
        let mut values = vec![&mut w.patch_bias, &mut w.out_bias, &mut w.fc1_bias, &mut w.fc2_bias, &mut w.head_bias];
        values.extend(w.heads.iter_mut().map(|head| &mut head.score_bias));
        for value in values.into_iter().flatten() {
            *value = near(0.1 * normal(&mut rng));
        }
        for gain in w.gain1.iter_mut().chain(&mut w.gain2) {
            *gain = near(8.0 + normal(&mut rng));
        }
        for image in [&mut scene.colour, &mut scene.blend, &mut scene.offset] {
            let texel = |_, _| std::array::from_fn(|_| near(rng.f64()));
            *image = Image::from_fn(extents.x, extents.y, texel).unwrap();
        }
        scene
    }

    fn inputs(&self) -> Inputs<'_> {
        let step = [self.geometry.extents().x, self.geometry.extents().y].map(|e| 1.0 / e as f32);
        let pictures = Pictures { colour: &self.colour, step, blend: &self.blend, offset: &self.offset };
        Inputs { geometry: &self.geometry, coarse: &self.coarse, skip: &self.skip, weights: &self.weights, pictures }
    }

    fn trace(&self, block: [u32; 2]) -> BlockTrace {
        BlockTrace::new(&self.inputs(), block, &Options::default())
    }
}

fn one_block() -> (Extents, Origin) {
    (Extents::new(8, 8), Origin::default())
}

/// With zero weights the block is a chain of biases.
#[test]
fn biases_alone() {
    let (extents, origin) = one_block();
    let mut scene = Scene::zeros(extents, origin, CoarseExtent::Floor);
    scene.weights.patch_bias.iter_mut().enumerate().for_each(|(i, x)| *x = near((i / 96) as f64));
    scene.weights.out_bias.fill(near(0.25));
    scene.weights.fc2_bias.fill(near(-2.25));
    scene.weights.head_bias.iter_mut().enumerate().for_each(|(i, x)| *x = near(i as f64));
    scene.skip.fill(code(4.0));
    for order in [SubpixelOrder::RowMajor, SubpixelOrder::ColMajor] {
        let options = Options { subpixel_order: order, ..Options::default() };
        let trace = BlockTrace::new(&scene.inputs(), [0, 0], &options);
        for (pixel, c) in (0..64).flat_map(|pixel| (0..96).map(move |c| (pixel, c))) {
            // The window's pixels begin at cell (1, 1), whose sub-pixel is (0, 0).
            let (y, x) = (pixel / 8 % 2, pixel % 2);
            let z = if order == SubpixelOrder::RowMajor { 2 * y + x } else { y + 2 * x } as f64;
            assert_eq!(trace.rows[(pixel, c)].to_f64(), z + 4.0);
            assert_eq!(trace.attended[3][(pixel, c)].to_f64(), z + 4.25);
            assert_eq!(trace.sums[11][(pixel, c)].to_f64(), z + 2.0);
            assert_eq!(decode(trace.features[(pixel, c)]).to_f64(), z + 2.0);
        }
        assert!((0..64).all(|pixel| trace.outputs[(pixel, 13)].to_f64() == 13.0));
        assert!(trace.probabilities.iter().all(|p| p.elements().iter().all(|p| *p == p_uniform())));
    }
}

/// A probability of one of 96 equal scores.
fn p_uniform() -> f16 {
    near(0.125 * near(1.0 / 12.0).to_f64())
}

/// Each warp is a sub-pixel, a head and the owner of a tile, and heads are added in order.
#[test]
fn roles_of_the_four_warps() {
    let (extents, origin) = one_block();
    let scene = Scene::random(extents, origin, CoarseExtent::Floor, 1);
    let base = scene.trace([0, 0]);
    for z in 0..4 {
        // A warp's slab makes one sub-pixel of every patch.
        let mut other = scene.clone();
        other.weights.patch_bias[96 * z] = near(100.0);
        let trace = other.trace([0, 0]);
        for cell in 0..100 {
            let sub = 2 * ((cell / 10 + 1) % 2) + (cell % 10 + 1) % 2;
            assert_eq!(trace.grid.row(cell) != base.grid.row(cell), sub == z, "cell {cell}");
        }
        // A head's weights change that head alone, and sums from its own on.
        let mut other = scene.clone();
        other.weights.heads[z].value.iter_mut().for_each(|c| *c ^= 0x80);
        let trace = other.trace([0, 0]);
        for head in 0..4 {
            assert_eq!(trace.heads[head] != base.heads[head], head == z);
            assert_eq!(trace.keys[head], base.keys[head]);
            assert_eq!(trace.attended[head] != base.attended[head], head >= z);
        }
        let mut other = scene.clone();
        other.weights.heads[z].score_bias[17 * 96 + 70] = near(30.0);
        let trace = other.trace([0, 0]);
        for (head, row) in (0..4).flat_map(|head| (0..64).map(move |row| (head, row))) {
            assert_eq!(trace.probabilities[head].row(row) != base.probabilities[head].row(row), (head, row) == (z, 17));
        }
    }
    // A chunk's weights change hidden units of that chunk, and sums from its own on.
    for chunk in [0, 5, 11] {
        let mut other = scene.clone();
        other.weights.fc1_bias[32 * chunk + 31] = near(1.5);
        let trace = other.trace([0, 0]);
        for j in 0..12 {
            assert_eq!(trace.hidden[j] != base.hidden[j], j == chunk);
            assert_eq!(trace.sums[j] != base.sums[j], j >= chunk);
        }
    }
}

/// A pixel's result depends on skip features of its window and the halo, not on the corners or what is beyond.
#[test]
fn what_a_window_sees() {
    let extents = Extents::new(24, 24);
    let scene = Scene::random(extents, Origin::default(), CoarseExtent::Floor, 2);
    let base = scene.trace([1, 1]);
    let layout = PlaneLayout::new(extents, 96);
    for (x, y, seen) in [
        (8, 8, true),
        (15, 15, true),
        (7, 8, true),
        (16, 15, true),
        (8, 7, true),
        (12, 16, true),
        (7, 7, false),
        (16, 16, false),
        (7, 16, false),
        (6, 10, false),
        (17, 10, false),
        (0, 0, false),
    ] {
        let mut other = scene.clone();
        other.skip[layout.byte(3, x, y) as usize] ^= 0x80;
        assert_eq!(other.trace([1, 1]).outputs != base.outputs, seen, "{x},{y}");
    }
    // Coarse features: 5×5 around the window's 4×4, one pixel more than that on each side is never used.
    let layout = PlaneLayout::new(Extents::new(12, 12), 128);
    for (x, y, seen) in
        [(3, 4, true), (8, 7, true), (4, 3, true), (2, 4, false), (9, 4, false), (3, 3, false), (8, 8, false)]
    {
        let mut other = scene.clone();
        other.coarse[layout.byte(100, x, y) as usize] ^= 0x80;
        assert_eq!(other.trace([1, 1]).outputs != base.outputs, seen, "coarse {x},{y}");
    }
}

/// Frames of awkward sizes: every pixel is its own block's.
#[test]
fn frames_are_their_blocks() {
    for (i, (x, y)) in [(2, 2), (3, 7), (8, 9), (12, 1), (15, 16), (17, 2), (1, 1)].into_iter().enumerate() {
        for origin in
            [Origin::new(0, 0), Origin::new(4, 4), Origin::new(8, 8)].into_iter().take(if i < 3 { 3 } else { 2 })
        {
            let extents = Extents::new(x, y);
            let options = Options { coarse_extent: CoarseExtent::Ceil, ..Options::default() };
            let scene = Scene::random(extents, origin, CoarseExtent::Ceil, i as u64);
            let inputs = scene.inputs();
            let out = frame(&inputs, &options).unwrap();
            let layout = PlaneLayout::new(extents, 96);
            let dense = layout.unpack(&out.features).unwrap();
            let mut pixels = 0;
            for block in scene.geometry.blocks() {
                let trace = BlockTrace::new(&inputs, block, &options);
                for (pixel, px, py) in block_pixels(&scene.geometry, block) {
                    pixels += 1;
                    let first = 96 * (py * x + px) as usize;
                    assert_eq!(dense[first..first + 96], *trace.features.row(pixel));
                    let texel = kernel_gate(trace.outputs.row(pixel), &inputs.pictures, extents, (px, py), &options);
                    assert_eq!(out.image.texel(px.into(), py.into()), texel);
                }
            }
            assert_eq!(pixels, x * y);
        }
    }
}

/// Every option changes something, and only where it should.
#[test]
fn options_change_results() {
    let extents = Extents::new(9, 7);
    let scene = Scene::random(extents, Origin::new(4, 2), CoarseExtent::Floor, 3);
    let mut ceil = Scene::random(extents, Origin::new(4, 2), CoarseExtent::Ceil, 3);
    ceil.skip.clone_from(&scene.skip);
    ceil.weights.clone_from(&scene.weights);
    // Of another size than the image: a filter between texels matters.
    let mut rng = Rng::with_seed(5);
    let colour = Image::from_fn(13, 10, |_, _| std::array::from_fn(|_| near(rng.f64()))).unwrap();
    let run = |options: &Options| {
        let mut scene = if options.coarse_extent == CoarseExtent::Ceil { ceil.clone() } else { scene.clone() };
        scene.colour = colour.clone();
        // A NaN of each sign among the features.
        scene.skip[40] = 0x7F;
        frame(&scene.inputs(), options).unwrap()
    };
    let base = run(&Options::default());
    for options in &Options::each_alternative()[1..] {
        let out = run(options);
        let changed = (out.features != base.features, class_image(&out.image) != class_image(&base.image));
        let expected = match options {
            o if o.nan_sign != NanSign::Positive => continue,
            // Rounding to f32 first matters at ties alone.
            o if o.mma_acc == MmaAcc::NativeF16 => continue,
            o if o.tap_border != Default::default() || o.tap_order != Default::default() => (false, true),
            o if o.colour_filter != Default::default() => (false, true),
            _ => (true, true),
        };
        assert_eq!(changed, expected, "{options}");
    }
}

fn class_image(image: &Image) -> Vec<[u16; 4]> {
    image.texels().iter().map(|t| t.map(super::class)).collect()
}

#[test]
fn the_sign_of_a_nan_is_kept_or_not() {
    let (extents, origin) = one_block();
    let mut scene = Scene::zeros(extents, origin, CoarseExtent::Floor);
    scene.weights.fc2_bias[5] = h(0xFE00);
    for (nan_sign, code) in [(NanSign::Positive, 0x7F), (NanSign::Keep, 0xFF)] {
        let options = Options { nan_sign, ..Options::default() };
        let trace = BlockTrace::new(&scene.inputs(), [0, 0], &options);
        assert_eq!(trace.features[(0, 5)], code);
        assert!(trace.outputs.row(0).iter().all(|x| x.is_nan()));
    }
}

#[test]
fn inputs_of_other_sizes_are_refused() {
    let (extents, origin) = one_block();
    let scene = Scene::zeros(extents, origin, CoarseExtent::Floor);
    let told = |change: &dyn Fn(&mut Scene)| {
        let mut scene = scene.clone();
        change(&mut scene);
        frame(&scene.inputs(), &Options::default()).unwrap_err().to_string()
    };
    assert_eq!(told(&|s| s.coarse.truncate(7)), "coarse features of 4×4 have 2048 bytes, not 7");
    assert_eq!(told(&|s| s.skip.push(0)), "skip features of 8×8 have 6144 bytes, not 6145");
    assert_eq!(told(&|s| s.weights.gain1.truncate(95)), "weights: gain1 has 95 elements, not 96");
    let small = Image::from_fn(8, 7, |_, _| [f16::ZERO; 4]).unwrap();
    assert_eq!(told(&|s| s.blend = small.clone()), "blend is 8×7, the image 8×8");
    assert_eq!(told(&|s| s.offset = small.clone()), "offset is 8×7, the image 8×8");
    // The colour may have any size.
    let mut other = scene.clone();
    other.colour = small.clone();
    assert!(frame(&other.inputs(), &Options::default()).is_ok());
}

/// In the window every residual is the skip feature plus the patch, whatever attention and MLP do with zero weights.
#[test]
fn zero_weights_pass_the_residual_through() {
    let (extents, origin) = one_block();
    let mut scene = Scene::random(extents, origin, CoarseExtent::Floor, 4);
    let zeros = DenseWeights::zeros(&WeightShape::DEC2);
    scene.weights.fc2.clone_from(&zeros.fc2);
    scene.weights.fc2_bias.clone_from(&zeros.fc2_bias);
    scene.weights.out_bias.clone_from(&zeros.out_bias);
    for (head, zero) in scene.weights.heads.iter_mut().zip(&zeros.heads) {
        head.out_proj.clone_from(&zero.out_proj);
    }
    let trace = scene.trace([0, 0]);
    assert_eq!(trace.sums[11], trace.rows.rows(0, 64));
    let skip = PlaneLayout::new(extents, 96).unpack(&scene.skip).unwrap();
    for pixel in 0..64 {
        let patch = decode(trace.grid[(10 * (pixel / 8 + 1) + pixel % 8 + 1, 9)]);
        assert_eq!(trace.rows[(pixel, 9)], add(patch, decode(skip[96 * pixel + 9])));
    }
}
