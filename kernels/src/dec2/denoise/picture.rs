//! Pictures to denoise, and how good a result is.

use fastrand::Rng;
use half::f16;
use lathe_dsl::numerics::Float;

use crate::dec2::reference::Image;
use crate::dec2::reference::image::ImageError;

/// A test card: a gradient with discs, bars of several widths and orientations, and a checkerboard; sharp edges, values from 0 to 1.
///
/// # Errors
/// It has no pixels.
pub fn card(width: u32, height: u32) -> Result<Image, ImageError> {
    let (w, h) = (f64::from(width), f64::from(height));
    Image::from_fn(width, height, |px, py| {
        let (x, y) = ((f64::from(px) + 0.5) / w, (f64::from(py) + 0.5) / h);
        let aspect = w / h;
        let mut colour = [0.25 + 0.4 * x, 0.35 + 0.3 * y, 0.6 - 0.3 * x];
        let disc = |cx: f64, cy: f64, radius: f64| ((x - cx) * aspect).hypot(y - cy) < radius;
        if disc(0.25, 0.35, 0.26) {
            colour = [0.9, 0.55 + 0.3 * (y - 0.35), 0.15];
        }
        if disc(0.3, 0.42, 0.1) {
            colour = [0.1, 0.2, 0.45];
        }
        // Slanted bars.
        if (0.5..0.95).contains(&x) && (0.1..0.45).contains(&y) && ((x * aspect + 0.5 * y) * 7.0).rem_euclid(1.0) < 0.5
        {
            colour = [0.85, 0.9, 0.8];
        }
        // Upright bars that become narrower, down to three pixels.
        if (0.62..0.92).contains(&y) && x > 0.08 && x < 0.5 {
            let bar = 3.0 + 6.0 * (0.5 - x);
            if ((f64::from(px) / bar).floor() as i64) % 2 == 0 {
                colour = [0.15, 0.75, 0.3];
            }
        }
        if (0.6..0.92).contains(&x) && (0.55..0.9).contains(&y) {
            let cell = i64::from(px / 6) + i64::from(py / 6);
            colour = if cell % 2 == 0 { [0.2, 0.15, 0.2] } else { [0.75, 0.7, 0.55] };
        }
        let value = |c: f64| <f16 as Float>::from_f64(c);
        [value(colour[0]), value(colour[1]), value(colour[2]), f16::ONE]
    })
}

/// The image with normal noise of this deviation in each colour; the same for the same seed.
///
/// # Errors
/// None: `image` has pixels.
pub fn noisy(image: &Image, deviation: f64, seed: u64) -> Result<Image, ImageError> {
    let mut rng = Rng::with_seed(seed);
    // Twelve uniform numbers: normal enough, and the same on every platform.
    let mut normal = || (0..12).map(|_| rng.f64()).sum::<f64>() - 6.0;
    let texels = image.texels().iter().map(|texel| {
        let mut out = *texel;
        for c in &mut out[..3] {
            *c = <f16 as Float>::from_f64(c.to_f64() + deviation * normal());
        }
        out
    });
    Image::new(image.width(), image.height(), texels.collect())
}

/// What contrast counts as an edge.
pub const EDGE: f64 = 0.15;

/// Peak signal-to-noise ratio of the three colours, in dB, for a peak of 1; infinite for equal images, `None` for unequal sizes.
pub fn psnr(image: &Image, against: &Image) -> Option<f64> {
    let count = image.texels().len();
    mean_square(image, against, (0..count).map(|_| true)).map(|error| -10.0 * libm::log10(error))
}

/// As [`psnr`], of the pixels beside an edge of `clean`: those that differ from a neighbour by more than `contrast` in a colour.
pub fn psnr_at_edges(image: &Image, clean: &Image, contrast: f64) -> Option<f64> {
    mean_square(image, clean, edges(clean, contrast)).map(|error| -10.0 * libm::log10(error))
}

/// Which pixels are beside an edge.
pub fn edges(image: &Image, contrast: f64) -> impl Iterator<Item = bool> {
    let (width, height) = (i64::from(image.width()), i64::from(image.height()));
    (0..width * height).map(move |i| {
        let (x, y) = (i % width, i / width);
        let own = image.texel(x, y).map(f64::from);
        [(1, 0), (-1, 0), (0, 1), (0, -1)].into_iter().any(|(dx, dy)| {
            let other = image.texel(x + dx, y + dy).map(f64::from);
            (0..3).any(|c| (own[c] - other[c]).abs() > contrast)
        })
    })
}

/// Mean squared error of the colours of the chosen pixels; `None` if sizes differ or nothing is chosen.
fn mean_square(image: &Image, against: &Image, chosen: impl Iterator<Item = bool>) -> Option<f64> {
    if (image.width(), image.height()) != (against.width(), against.height()) {
        return None;
    }
    let pairs = image.texels().iter().zip(against.texels()).zip(chosen).filter(|(_, chosen)| *chosen);
    let (mut sum, mut count) = (0.0, 0u32);
    for ((a, b), _) in pairs {
        sum += (0..3).map(|c| (a[c].to_f64() - b[c].to_f64()).powi(2)).sum::<f64>();
        count += 3;
    }
    (count > 0).then(|| sum / f64::from(count))
}
