//! Denoises a picture with `dec2` on a device.
//!
//! `denoise DEVICE OUTPUT.ppm [INPUT.ppm]`: without an input, the test card with noise; what was gained is then printed.

use std::error::Error;
use std::fs;

use half::f16;
use lathe_kernels::dec2::block::Dec2;
use lathe_kernels::dec2::denoise::picture::{card, from_ppm, noisy, psnr, psnr_at_edges, to_ppm};
use lathe_kernels::dec2::denoise::{features, weights};
use lathe_kernels::dec2::geometry::{Extents, Geometry, Origin};
use lathe_kernels::dec2::options::Options;
use lathe_kernels::dec2::reference::filter::Pictures;
use lathe_kernels::dec2::reference::{Image, Inputs};
use lathe_runtime::Engine;

/// Size of the card, and deviation of its noise.
const CARD: (u32, u32) = (96, 64);
const NOISE: f64 = 0.05;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (device, output, input) = match &arguments[..] {
        [device, output] => (device, output, None),
        [device, output, input] => (device, output, Some(input)),
        _ => return Err("usage: denoise DEVICE OUTPUT.ppm [INPUT.ppm]".into()),
    };
    let clean = card(CARD.0, CARD.1)?;
    let image = match input {
        Some(path) => from_ppm(&fs::read(path)?)?,
        None => noisy(&clean, NOISE, 1)?,
    };

    let options = Options::default();
    let extents = Extents::new(image.width(), image.height());
    let geometry = Geometry::whole(extents, Origin::new(4, 4), options.coarse_extent)?;
    let features = features(&image, options.coarse_extent)?;
    let weights = weights(options.subpixel_order, options.tap_order);
    let offset = Image::from_fn(extents.x, extents.y, |_, _| [f16::NAN; 4])?;
    let pictures = Pictures { colour: &image, step: image.step(), blend: &image, offset: &offset };
    let inputs =
        Inputs { geometry: &geometry, coarse: &features.coarse, skip: &features.skip, weights: &weights, pictures };

    let engine = Engine::open(device, None)?;
    let key = Dec2::of(&inputs, &options);
    let compiled = engine.jit.get(&key, engine.device.target())?;
    let (outputs, report) = key.launch_on(&engine, &compiled, &inputs)?;
    fs::write(output, to_ppm(&outputs.image))?;
    println!("{extents} on {}: {:.3} ms", engine.device.name(), report.time.as_secs_f64() * 1e3);
    if input.is_none() {
        let of = |image: &Image| (psnr(image, &clean), psnr_at_edges(image, &clean, 0.15));
        let ((before, edges_before), (after, edges_after)) = (of(&image), of(&outputs.image));
        let db = |x: Option<f64>| x.map_or_else(|| "none".to_owned(), |x| format!("{x:.2} dB"));
        println!("noisy {}, denoised {}", db(before), db(after));
        println!("beside edges: noisy {}, denoised {}", db(edges_before), db(edges_after));
    }
    Ok(())
}
