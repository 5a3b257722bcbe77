use half::f16;
use lathe_dsl::numerics::Float;
use lathe_runtime::Engine;

use super::picture::{EDGE, card, noisy, psnr, psnr_at_edges};
use super::{SCALE, channel, features, file, weights};
use crate::dec2::block::{Dec2, LaunchError};
use crate::dec2::geometry::{Extents, Geometry, Origin};
use crate::dec2::options::{CoarseExtent, Options, SubpixelOrder, TapOrder};
use crate::dec2::reference::filter::{self, Pictures};
use crate::dec2::reference::{BlockTrace, Image, Inputs, frame};
use crate::registry::Entry;

/// Calls `f` with the inputs that an image makes.
fn with_inputs<R>(image: &Image, origin: Origin, options: &Options, f: impl FnOnce(&Inputs<'_>) -> R) -> R {
    let extents = Extents::new(image.width(), image.height());
    let geometry = Geometry::whole(extents, origin, options.coarse_extent).unwrap();
    let features = features(image, options.coarse_extent).unwrap();
    let weights = weights(options.subpixel_order, options.tap_order);
    let offset = Image::from_fn(extents.x, extents.y, |_, _| [f16::NAN; 4]).unwrap();
    let pictures = Pictures { colour: image, step: image.step(), blend: image, offset: &offset };
    f(&Inputs { geometry: &geometry, coarse: &features.coarse, skip: &features.skip, weights: &weights, pictures })
}

/// The block's image of a noisy one.
fn denoised(image: &Image, origin: Origin, options: &Options) -> Image {
    with_inputs(image, origin, options, |inputs| frame(inputs, options).unwrap().image)
}

/// The mean of 3×3 pixels.
fn boxed(image: &Image) -> Image {
    let texel = |x: u32, y: u32, k: i64, c: usize| {
        f64::from(image.texel(i64::from(x) + k % 3 - 1, i64::from(y) + k / 3 - 1)[c])
    };
    let mean = |x, y| std::array::from_fn(|c| near((0..9).map(|k| texel(x, y, k, c)).sum::<f64>() / 9.0));
    Image::from_fn(image.width(), image.height(), mean).unwrap()
}

fn near(x: f64) -> f16 {
    <f16 as Float>::from_f64(x)
}

#[test]
fn noise_goes_and_edges_stay() {
    let clean = card(96, 64).unwrap();
    // In dB: what must be gained over the noisy image, everywhere and beside edges.
    for (deviation, everywhere, at_edges) in [(0.05, 5.5, 2.8), (0.1, 6.3, 4.0)] {
        let noise = noisy(&clean, deviation, 1).unwrap();
        let images = [&noise, &denoised(&noise, Origin::new(4, 4), &Options::default()), &boxed(&noise)];
        let whole = images.map(|image| psnr(image, &clean).unwrap());
        let edge = images.map(|image| psnr_at_edges(image, &clean, EDGE).unwrap());
        println!("deviation {deviation}: noisy, block, box: {whole:.2?} dB; beside edges {edge:.2?} dB");
        assert!(whole[1] > whole[0] + everywhere, "{whole:?}");
        assert!(edge[1] > edge[0] + at_edges, "{edge:?}");
        // A filter that does not look at contrast loses more at edges than the noise was.
        assert!(whole[1] > whole[2] + 4.0 && edge[2] < edge[0] && edge[1] > edge[2] + 6.0, "{whole:?} {edge:?}");
    }
    // Without noise little is lost.
    let same = denoised(&clean, Origin::default(), &Options::default());
    assert!(psnr(&same, &clean).unwrap() > 38.0, "{:?}", psnr(&same, &clean));
}

/// Whichever warp makes which sub-pixel, and which logit is for which tap: the same picture.
#[test]
fn weights_follow_the_options() {
    let noise = noisy(&card(24, 17).unwrap(), 0.05, 2).unwrap();
    let base = denoised(&noise, Origin::new(2, 4), &Options::default());
    for (subpixel_order, tap_order) in
        [(SubpixelOrder::ColMajor, TapOrder::RowMajor), (SubpixelOrder::RowMajor, TapOrder::ColMajor)]
    {
        let options = Options { subpixel_order, tap_order, ..Options::default() };
        let out = denoised(&noise, Origin::new(2, 4), &options);
        // Taps in another order are added in another order.
        assert!(psnr(&out, &base).unwrap() > 60.0);
        assert_eq!(out == base, tap_order == TapOrder::RowMajor);
    }
}

/// On a slope every sub-pixel sees the same differences to its neighbours.
#[test]
fn the_patch_expand_interpolates() {
    let slope = 1.0 / 32.0;
    let image = Image::from_fn(32, 32, |x, _| [near(slope * f64::from(x)); 4]).unwrap();
    let options = Options::default();
    let trace = with_inputs(&image, Origin::default(), &options, |inputs| BlockTrace::new(inputs, [1, 1], &options));
    for row in 0..64 {
        for (i, (_, dx)) in super::NEIGHBOURS.into_iter().enumerate() {
            let expected = SCALE * slope * f64::from(dx);
            assert_eq!(trace.rows[(row, channel::GUIDE + i)].to_f64(), expected);
            assert_eq!(trace.rows[(row, channel::OWN + i)].to_f64(), expected);
            // Grey: no colour differences.
            assert_eq!(trace.rows[(row, channel::GUIDE + 8 + i)], f16::ZERO);
        }
        assert_eq!(trace.rows[(row, channel::CONSTANT)].to_f64(), 64.0);
        assert_eq!(trace.rows[(row, channel::ROUGHNESS)], f16::ZERO);
    }
}

/// The kernel is flat where the image is, and one-sided beside an edge.
#[test]
fn kernels_depend_on_local_contrast() {
    let image = Image::from_fn(16, 16, |x, _| [near(if x < 8 { 0.2 } else { 0.7 }); 4]).unwrap();
    let options = Options::default();
    let kernels = with_inputs(&noisy(&image, 0.02, 3).unwrap(), Origin::new(4, 4), &options, |inputs| {
        let trace = BlockTrace::new(inputs, [1, 1], &options);
        let kernel = |pixel: usize| filter::weights(&std::array::from_fn(|k| trace.outputs[(pixel, k)])).map(f64::from);
        // Columns 4 to 11 of the image; the edge is between the window's columns 3 and 4.
        [4 * 8, 4 * 8 + 3, 4 * 8 + 4].map(kernel)
    });
    let column = |kernel: &[f64; 9], i: usize| kernel[i] + kernel[3 + i] + kernel[6 + i];
    let [flat, left, right] = &kernels;
    // Not all 1/9: the activation is a little below 0 just before its threshold.
    assert!(flat.iter().all(|w| (0.085..0.15).contains(w)), "{flat:?}");
    // Along the edge only: the guide is blurred, so the neighbours on the own side are kept off as well.
    for beside in [left, right] {
        assert!(column(beside, 1) > 0.95 && beside[1].min(beside[7]) > 0.25, "{beside:?}");
    }
    assert!(column(left, 2) < 1e-6 && column(right, 0) < 1e-6, "{left:?} {right:?}");
}

/// Attention brings the mean roughness of the window to every pixel.
#[test]
fn attention_estimates_the_noise() {
    let grey = Image::from_fn(32, 32, |_, _| [near(0.5); 4]).unwrap();
    let options = Options::default();
    let estimate = |deviation: f64| {
        let noise = noisy(&grey, deviation, 4).unwrap();
        with_inputs(&noise, Origin::default(), &options, |inputs| {
            let trace = BlockTrace::new(inputs, [1, 1], &options);
            let all: Vec<f64> = (0..64).map(|row| trace.attended[3][(row, channel::NOISE)].to_f64()).collect();
            assert!(all.iter().all(|x| *x == all[0]), "{all:?}");
            all[0]
        })
    };
    let [none, low, high] = [0.0, 0.05, 0.1].map(estimate);
    assert!(none == 0.0 && low > 0.3 && (1.6..2.4).contains(&(high / low)), "{low} {high}");
}

#[test]
fn ratios_of_known_errors() {
    let of = |value: f64, size| Image::from_fn(size, 4, |_, _| [near(value); 4]).unwrap();
    let ratio = psnr(&of(0.5, 4), &of(0.625, 4)).unwrap();
    assert!((ratio - 20.0 * libm::log10(8.0)).abs() < 1e-12, "{ratio}");
    assert_eq!(psnr(&of(0.5, 4), &of(0.5, 4)), Some(f64::INFINITY));
    assert_eq!(psnr(&of(0.5, 4), &of(0.5, 5)), None);
    assert_eq!(psnr_at_edges(&of(0.5, 4), &of(0.5, 4), EDGE), None, "no edges");
    // One column in four is beside this edge on each side.
    let step = |far: f64| Image::from_fn(8, 4, |x, _| [near(if x < 4 { 0.0 } else { far }); 4]).unwrap();
    let ratio = psnr_at_edges(&step(0.5), &step(1.0), EDGE).unwrap();
    assert!((ratio - 10.0 * libm::log10(8.0)).abs() < 1e-12, "{ratio}");
    // The same seed, the same noise; its deviation is the one asked for.
    let noise = noisy(&card(64, 64).unwrap(), 0.05, 9).unwrap();
    assert_eq!(noise, noisy(&card(64, 64).unwrap(), 0.05, 9).unwrap());
    assert!((psnr(&noise, &card(64, 64).unwrap()).unwrap() - 26.02).abs() < 0.2);
    assert!(card(0, 3).is_err());
    assert!(features(&of(0.5, 1), CoarseExtent::Floor).is_err() && features(&of(0.5, 1), CoarseExtent::Ceil).is_ok());
}

/// The kernel makes the same picture, bit for bit.
#[test]
fn the_kernel_denoises_as_plain_rust_does() {
    let noise = noisy(&card(20, 12).unwrap(), 0.05, 5).unwrap();
    for device in ["cpu:sm_90", "cpu:gfx950"] {
        let engine = Engine::open(device, Some(1)).unwrap();
        let options = Options::default();
        with_inputs(&noise, Origin::new(4, 4), &options, |inputs| {
            let key = Dec2::of(inputs, &options);
            let compiled = engine.jit.get(&key, engine.device.target()).unwrap();
            let (outputs, report) = key.launch_on(&engine, &compiled, inputs).unwrap();
            assert!(report.findings.is_empty(), "{device}: {:?}", report.findings);
            assert!(outputs == frame(inputs, &options).unwrap(), "{device}");
            // Another image's key has no use for these inputs.
            let other = Dec2 { ox: 6, ..key };
            let refused = other.launch_on(&engine, &compiled, inputs).unwrap_err();
            assert!(matches!(refused, LaunchError::OtherKey { .. }), "{refused}");
        });
    }
}

#[test]
fn pictures_are_read_and_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let image = card(13, 7).unwrap();
    for name in ["a.png", "a.ppm"] {
        file::write(&path(name), &image).unwrap();
        let again = file::read(&path(name)).unwrap();
        assert_eq!(again, file::in_8_bits(&image), "{name}");
        assert!(psnr(&again, &image).unwrap() > 50.0);
    }
    assert!(std::fs::read(path("a.png")).unwrap().starts_with(b"\x89PNG"));
    let ppm = std::fs::read(path("a.ppm")).unwrap();
    assert!(ppm.starts_with(b"P6\n13 7 255\n"), "{ppm:?}");
    // The first bytes say what it is, not the name.
    std::fs::copy(path("a.ppm"), path("b.png")).unwrap();
    assert_eq!(file::read(&path("b.png")).unwrap(), file::in_8_bits(&image));
    let odd = Image::new(1, 1, vec![[near(-3.0), near(7.0), f16::NAN, f16::ONE]]).unwrap();
    file::write(&path("c.ppm"), &odd).unwrap();
    assert!(std::fs::read(path("c.ppm")).unwrap().ends_with(&[0, 255, 0]));
    // Grey of 16 bits.
    std::fs::write(path("d.pgm"), b"P5\n2 1\n65535\n\x80\0\xFF\xFF").unwrap();
    let grey = file::read(&path("d.pgm")).unwrap();
    assert_eq!(grey.texels(), [[near(0.5), near(0.5), near(0.5), f16::ONE], [f16::ONE; 4]]);

    let read = |name: &str| file::read(&path(name)).unwrap_err().to_string();
    assert!(read("none.png").contains("none.png: No such file"), "{}", read("none.png"));
    assert!(file::read(folder.path()).unwrap_err().to_string().contains("cannot read"));
    let png = std::fs::read(path("a.png")).unwrap();
    for (name, bytes) in [("e.png", &b""[..]), ("f.png", b"no picture"), ("g.png", &png[..png.len() / 2])] {
        std::fs::write(path(name), bytes).unwrap();
        assert!(read(name).contains(&format!("{name} is no PNG or PNM picture: ")), "{}", read(name));
    }
    for name in ["a.jpg", "a", "a.ppm.gz"] {
        let told = file::writable(&path(name)).unwrap_err().to_string();
        assert!(told.ends_with(&format!("{name}: its name must end in .png or .ppm")), "{told}");
        assert_eq!(file::write(&path(name), &image).unwrap_err().to_string(), told);
    }
    let nowhere = file::writable(&path("no/a.png")).unwrap_err().to_string();
    assert!(nowhere.contains("cannot write") && nowhere.contains("No such file"), "{nowhere}");
    // Nothing is left, nothing is lost.
    file::writable(&path("new.png")).unwrap();
    file::writable(&path("a.png")).unwrap();
    assert!(!path("new.png").exists() && std::fs::read(path("a.png")).unwrap() == png);
}

/// The kernel by name, on a picture.
#[test]
fn the_registry_filters_pictures() {
    let noise = noisy(&card(10, 7).unwrap(), 0.05, 5).unwrap();
    let engine = Engine::open("cpu:sm_90", Some(1)).unwrap();
    let set = |settings: &[(&str, &str)]| settings.iter().map(|(f, v)| ((*f).to_owned(), (*v).to_owned())).collect();
    let filter = |kernel: &str, image: &Image, settings: &[(&str, &str)]| {
        let settings: Vec<_> = set(settings);
        Entry::find(kernel).unwrap().filter(&engine, image, &settings, 1)
    };
    let filtered = filter("dec2", &noise, &[("ox", "2"), ("tap_order", "1")]).unwrap();
    let options = Options { tap_order: TapOrder::ColMajor, ..Options::default() };
    assert_eq!(filtered.picture, denoised(&noise, Origin::new(2, 4), &options));
    let report = filtered.report;
    assert!(
        report.ok && report.checks.len() == 2 && report.checks.iter().all(|c| c.max_abs_error == 0.0),
        "{report:?}"
    );
    assert!(report.key.starts_with(&[("ex", 10), ("ey", 7), ("ox", 2)]), "{:?}", report.key);

    let told = |kernel: &str, image: &Image, settings: &[(&str, &str)]| {
        let error = filter(kernel, image, settings).unwrap_err();
        assert!(error.is_request(), "{error}");
        error.to_string()
    };
    assert_eq!(told("gemm_mx", &noise, &[]), "`gemm_mx` takes no picture; kernels that do: dec2");
    assert_eq!(told("dec2", &noise, &[("ex", "10")]), "`ex` cannot be set: it is the picture's");
    assert!(told("dec2", &noise, &[("ox", "3")]).contains("the origin (3, 4) is odd"));
    assert!(told("dec2", &noise, &[("tap_order", "2")]).contains("tap_order=2"));
    let thin = Image::from_fn(1, 8, |_, _| [f16::ONE; 4]).unwrap();
    assert!(told("dec2", &thin, &[]).contains("the image is 1\u{d7}8, its coarse features 0\u{d7}4"));
}

/// The pictures that the documentation shows begin with this one; `LATHE_BLESS=1` writes it.
#[test]
fn the_documented_card_is_the_card() {
    let path = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/src/images/card.png"));
    let card = card(96, 64).unwrap();
    if std::env::var_os("LATHE_BLESS").is_some() {
        file::write(path, &card).unwrap();
    }
    assert_eq!(file::read(path).unwrap(), file::in_8_bits(&card));
}
