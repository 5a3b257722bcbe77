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

/// Bytes that are no picture.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("no picture: {0}")]
pub struct PictureError(String);

/// A binary PPM file (`P6`, 8 bits a colour): what is below 0 or a NaN is black, what is above 1 as bright as there is.
pub fn to_ppm(image: &Image) -> Vec<u8> {
    let mut bytes = format!("P6\n{} {}\n255\n", image.width(), image.height()).into_bytes();
    // `as` saturates, and makes a NaN 0.
    bytes.extend(image.texels().iter().flat_map(|t| [t[0], t[1], t[2]]).map(|c| (c.to_f32() * 255.0).round() as u8));
    bytes
}

/// The picture of a binary PPM file of 8 bits a colour, values from 0 to 1.
///
/// # Errors
/// The file is of another kind, or cut off.
pub fn from_ppm(bytes: &[u8]) -> Result<Image, PictureError> {
    let fail = |what: &str| PictureError(what.to_owned());
    let mut rest = bytes.strip_prefix(b"P6").ok_or_else(|| fail("it does not begin with P6"))?;
    let mut numbers = [0u32; 3];
    for (number, what) in numbers.iter_mut().zip(["width", "height", "largest value"]) {
        // White space and comments, then digits.
        loop {
            rest = rest.trim_ascii_start();
            let Some(comment) = rest.strip_prefix(b"#") else { break };
            rest = &comment[comment.iter().position(|b| *b == b'\n').unwrap_or(comment.len())..];
        }
        let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
        let text = str::from_utf8(&rest[..digits]).unwrap_or_default();
        *number = text.parse().map_err(|_| fail(&format!("its {what} is no number")))?;
        rest = &rest[digits..];
    }
    let [width, height, largest] = numbers;
    if largest != 255 {
        return Err(PictureError(format!("its largest value is {largest}, not 255")));
    }
    // One white space, then the colours.
    let colours = rest.get(1..).unwrap_or_default();
    let value = |byte: u8| <f16 as Float>::from_f64(f64::from(byte) / 255.0);
    let texels = colours.as_chunks().0.iter().map(|[r, g, b]| [value(*r), value(*g), value(*b), f16::ONE]);
    let count = width as usize * height as usize;
    Image::new(width, height, texels.take(count).collect()).map_err(|e| PictureError(e.to_string()))
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
