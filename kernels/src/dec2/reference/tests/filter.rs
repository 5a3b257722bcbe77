//! V12 and textures.

use half::f16;

use super::{class, h, near, ulps};
use crate::dec2::geometry::Extents;
use crate::dec2::options::{ColourFilter, Options, TapBorder, TapOrder};
use crate::dec2::reference::Image;
use crate::dec2::reference::filter::*;

fn same(value: f16) -> [f16; 9] {
    [value; 9]
}

/// A colour that tells its place, exact in f16.
fn place(x: u32, y: u32) -> [f16; 4] {
    [near(f64::from(x)), near(f64::from(y)), near(f64::from(x + 32 * y)), near(-1.0)]
}

#[test]
fn equal_logits_weigh_the_same() {
    let ninth = near(1.0 / 9.0);
    for logit in [near(0.0), near(-65504.0), near(65504.0), near(3.25), h(1)] {
        assert!(weights(&same(logit)).iter().all(|w| ulps(*w, ninth) <= 1));
    }
    for zero in [0x0000, 0x8000] {
        let mut logits = same(h(zero));
        logits[4] = h(0x8000);
        assert!(weights(&logits).iter().all(|w| ulps(*w, ninth) <= 1));
    }
}

#[test]
fn the_largest_logit_takes_all() {
    for at in 0..9 {
        let mut logits = same(near(-65504.0));
        logits[at] = near(65504.0);
        // The differences overflow to −∞.
        for (k, w) in weights(&logits).iter().enumerate() {
            assert_eq!(*w, if k == at { f16::ONE } else { f16::ZERO });
        }
    }
}

#[test]
fn nans_and_infinities_spread_over_the_kernel() {
    for at in 0..9 {
        for bad in [0x7E00, 0x7C01, 0xFE00, 0x7C00] {
            let mut logits = same(f16::ONE);
            logits[at] = h(bad);
            assert!(weights(&logits).iter().all(|w| w.is_nan()), "{bad:04X} at {at}");
        }
        let mut logits = same(f16::ONE);
        logits[at] = f16::NEG_INFINITY;
        let w = weights(&logits);
        assert_eq!(w[at], f16::ZERO);
        assert!(w.iter().enumerate().all(|(k, w)| k == at || ulps(*w, near(0.125)) == 0));
    }
    assert!(weights(&same(f16::NEG_INFINITY)).iter().all(|w| w.is_nan()));
}

/// Against a softmax in f64.
#[test]
fn weights_are_a_softmax() {
    let mut rng = fastrand::Rng::with_seed(6);
    for _ in 0..2000 {
        let logits: [f16; 9] = std::array::from_fn(|_| near(4.0 * super::normal(&mut rng)));
        let exact: Vec<f64> = logits.iter().map(|l| libm::exp(l.to_f64())).collect();
        let total: f64 = exact.iter().sum();
        for (w, e) in weights(&logits).iter().zip(&exact) {
            let right = e / total;
            // Three f16 roundings, and that of the difference to the largest, which is at most 2^-11 of it.
            let bound = right * (0.0015 + 0.0005 * 40.0) + 2f64.powi(-24);
            assert!((w.to_f64() - right).abs() <= bound, "{w} {right}");
        }
    }
}

#[test]
fn gates_open_and_close() {
    let filtered = [near(0.5), near(0.25), near(2.0)];
    let (blend, none) = (place(7, 3), [f16::NAN; 4]);
    let result = |gate| gated(filtered, gate, blend, none);
    assert_eq!(result(f16::INFINITY)[..3], filtered);
    assert_eq!(result(f16::NEG_INFINITY)[..3], blend[..3]);
    assert!(result(f16::NAN)[..3].iter().all(|c| c.is_nan()));
    assert_eq!(result(f16::NAN)[3].to_bits(), 0);
    let half = result(f16::ZERO);
    assert_eq!(half[0], near(3.75));
    // What is added, is so by channel.
    for c in 0..3 {
        let mut offset = [near(1.0), near(2.0), near(4.0), f16::NAN];
        offset[c] = h(0xFE00);
        let out = gated(filtered, f16::INFINITY, blend, offset);
        for d in 0..3 {
            let added = if d == c { 0.0 } else { offset[d].to_f64() };
            assert_eq!(out[d].to_f64(), filtered[d].to_f64() + added);
        }
    }
}

/// One tap at a time: which texel it is, at every pixel of small images.
#[test]
fn taps_look_at_their_neighbours() {
    for border in [TapBorder::Reflect101, TapBorder::Clamp] {
        for order in [TapOrder::RowMajor, TapOrder::ColMajor] {
            for filter in [ColourFilter::Nearest, ColourFilter::Bilinear] {
                let options =
                    Options { tap_border: border, tap_order: order, colour_filter: filter, ..Options::default() };
                for (ex, ey) in [(1, 1), (1, 9), (2, 3), (8, 7), (9, 1), (15, 17), (17, 16)] {
                    let image = Image::from_fn(ex, ey, place).unwrap();
                    for (x, y, k) in
                        (0..ex).flat_map(|x| (0..ey).flat_map(move |y| (0..9usize).map(move |k| (x, y, k))))
                    {
                        let mut one = [f16::ZERO; 9];
                        one[k] = f16::ONE;
                        let (dy, dx) = (k as i64 / 3 - 1, k as i64 % 3 - 1);
                        let (dy, dx) = if order == TapOrder::RowMajor { (dy, dx) } else { (dx, dy) };
                        let at = |v: u32, d: i64, e: u32| {
                            let (v, last) = (i64::from(v) + d, i64::from(e) - 1);
                            match border {
                                TapBorder::Clamp => v.clamp(0, last),
                                // A single column has itself as neighbour.
                                TapBorder::Reflect101 if last == 0 => 0,
                                TapBorder::Reflect101 if v < 0 => 1,
                                TapBorder::Reflect101 if v > last => last - 1,
                                TapBorder::Reflect101 => v,
                            }
                        };
                        let expected = place(at(x, dx, ex) as u32, at(y, dy, ey) as u32);
                        let pictures = Pictures { colour: &image, step: image.step(), blend: &image, offset: &image };
                        let found = filtered(&pictures, &one, Extents::new(ex, ey), (x, y), &options);
                        assert_eq!(found, expected[..3], "tap {k} at {x},{y} of {ex}×{ey}, {options}");
                    }
                }
            }
        }
    }
}

/// Where image and texture are equally large both filters give the texel itself.
#[test]
fn filters_agree_at_texel_centres() {
    for width in (1..=700).chain([1280, 1920, 3840, 7680]) {
        let image = Image::from_fn(width, 1, |x, _| [near(f64::from(x % 2048)); 4]).unwrap();
        let step = 1.0 / width as f32;
        for x in 0..width {
            let u = step.mul_add(x as f32, step * 0.5);
            for filter in [ColourFilter::Nearest, ColourFilter::Bilinear] {
                assert_eq!(image.sample(u, 0.5, filter), image.texel(x.into(), 0), "{x} of {width}");
            }
        }
    }
}

#[test]
fn bilinear_is_between_texels_and_clamped_outside() {
    let image =
        Image::from_fn(4, 2, |x, y| [near(f64::from(8 * x + 64 * y)), f16::ONE, f16::NEG_ONE, f16::ZERO]).unwrap();
    let sample = |u, v| image.sample(u, v, ColourFilter::Bilinear)[0].to_f64();
    assert_eq!(sample(0.25, 0.25), 4.0);
    assert_eq!(sample(0.3125, 0.25), 6.0);
    assert_eq!(sample(0.25, 0.5), 36.0);
    assert_eq!((sample(-1.0, -1.0), sample(2.0, 2.0)), (0.0, 88.0));
    assert_eq!(image.sample(0.4, 0.7, ColourFilter::Bilinear)[1..], [f16::ONE, f16::NEG_ONE, f16::ZERO]);
    let nearest = |u, v| image.sample(u, v, ColourFilter::Nearest)[0].to_f64();
    assert_eq!((nearest(0.26, 0.49), nearest(0.24, 0.51), nearest(-3.0, 9.0)), (8.0, 64.0, 64.0));
    assert_eq!(Image::new(2, 2, vec![[f16::ZERO; 4]; 3]).unwrap_err().to_string(), "an image of 2×2 has 3 texels");
    assert!(Image::from_fn(0, 4, place).is_err());
}

/// A step of a texture that is twice as large: between four texels, or the one whose corner it is.
#[test]
fn textures_of_other_sizes() {
    let image = Image::from_fn(16, 8, |x, y| [near(f64::from(x)), near(f64::from(y)), f16::ONE, f16::ONE]).unwrap();
    let mut centre = [f16::ZERO; 9];
    centre[4] = f16::ONE;
    let pictures = Pictures { colour: &image, step: [1.0 / 8.0, 1.0 / 4.0], blend: &image, offset: &image };
    for (x, y) in (0..8).flat_map(|x| (0..4).map(move |y| (x, y))) {
        let found = |colour_filter| {
            let options = Options { colour_filter, ..Options::default() };
            filtered(&pictures, &centre, Extents::new(8, 4), (x, y), &options)[..2]
                .iter()
                .map(|c| c.to_f64())
                .collect::<Vec<_>>()
        };
        let (x, y) = (f64::from(x), f64::from(y));
        assert_eq!(found(ColourFilter::Bilinear), [2.0 * x + 0.5, 2.0 * y + 0.5]);
        assert_eq!(found(ColourFilter::Nearest), [2.0 * x + 1.0, 2.0 * y + 1.0]);
    }
}

/// A pixel from its parts: nine fma in order, then the gate.
#[test]
fn a_whole_pixel() {
    let mut rng = fastrand::Rng::with_seed(8);
    let extents = Extents::new(9, 5);
    let mut random = |n: f64| Image::from_fn(9, 5, |_, _| std::array::from_fn(|_| near(n * rng.f64()))).unwrap();
    let (colour, blend, offset) = (random(1.0), random(1.0), random(0.125));
    let pictures = Pictures { colour: &colour, step: colour.step(), blend: &blend, offset: &offset };
    let mut rng = fastrand::Rng::with_seed(9);
    for (x, y) in (0..9).flat_map(|x| (0..5).map(move |y| (x, y))) {
        let outputs: Vec<_> = (0..16).map(|_| near(super::normal(&mut rng))).collect();
        let out = kernel_gate(&outputs, &pictures, extents, (x, y), &Options::default());
        let w = weights(&std::array::from_fn(|k| outputs[k]));
        for (c, found) in out[..3].iter().enumerate() {
            let mut sum = f16::ZERO;
            for (k, weight) in w.iter().enumerate() {
                let reflect = |v: i64, e: i64| {
                    if v < 0 {
                        1
                    } else if v >= e {
                        e - 2
                    } else {
                        v
                    }
                };
                let (tx, ty) = (i64::from(x) + k as i64 % 3 - 1, i64::from(y) + k as i64 / 3 - 1);
                let texel = colour.texel(reflect(tx, 9), reflect(ty, 5))[c];
                sum = near(texel.to_f64() * weight.to_f64() + sum.to_f64());
            }
            let gate = near(1.0 / (1.0 + libm::exp(-outputs[9].to_f64())));
            let at = |image: &Image| image.texel(x.into(), y.into())[c].to_f64();
            let closed = near(1.0 - gate.to_f64()).to_f64();
            let mixed = near(at(&blend) * closed + near(sum.to_f64() * gate.to_f64()).to_f64());
            assert_eq!(class(*found), class(near(mixed.to_f64() + at(&offset))), "{x},{y}");
        }
        assert_eq!(out[3].to_bits(), 0);
    }
}
