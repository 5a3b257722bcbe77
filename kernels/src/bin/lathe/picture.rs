//! `lathe run --image`: a kernel that filters pictures, on one of the caller's.

use std::path::{Path, PathBuf};

use lathe_kernels::dec2::denoise::file::{self, in_8_bits};
use lathe_kernels::dec2::denoise::picture::{EDGE, noisy, psnr, psnr_at_edges};
use lathe_kernels::dec2::reference::Image;
use lathe_kernels::registry::{Entry, RunReport};
use lathe_runtime::Engine;
use serde::Serialize;

use crate::failure::Failure;

/// Options of `lathe run` for pictures.
#[derive(clap::Args)]
pub struct PictureArgs {
    /// Picture to filter instead of random data, PNG or PNM; its size is the kernel's.
    #[arg(long, value_name = "FILE", requires = "output")]
    image: Option<PathBuf>,
    /// File to write the filtered picture to, .png or .ppm.
    #[arg(short, long, value_name = "FILE", requires = "image")]
    output: Option<PathBuf>,
    /// The picture without noise, which both are compared with.
    #[arg(long, value_name = "FILE", requires = "image", conflicts_with = "noise")]
    clean: Option<PathBuf>,
    /// Takes `--image` as the picture without noise, and adds normal noise of this deviation, where 1 is the brightest colour.
    #[arg(long, value_name = "SIGMA", requires = "image", value_parser = deviation, allow_negative_numbers = true)]
    noise: Option<f64>,
    /// File to write the noisy picture to.
    #[arg(long, value_name = "FILE", requires = "noise")]
    noisy_output: Option<PathBuf>,
}

fn deviation(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|x| (0.0..=1.0).contains(x));
    number.ok_or_else(|| "the noise's deviation is a number from 0 to 1".to_owned())
}

/// Peak signal-to-noise ratios against the clean picture, in dB, of pictures of 8 bits a colour.
#[derive(Serialize)]
pub struct Ratios {
    /// Of what was given to the kernel.
    before: Option<f64>,
    /// Of what it made.
    after: Option<f64>,
    /// As `before`, beside edges of the clean picture.
    edges_before: Option<f64>,
    /// As `after`, there.
    edges_after: Option<f64>,
}

/// What a run on a picture tells.
#[derive(Serialize)]
pub struct PictureReport {
    /// As of any run.
    #[serde(flatten)]
    pub run: RunReport,
    /// Where there is a clean picture.
    psnr: Option<Ratios>,
}

/// Pictures that were read.
pub struct Pictures<'a> {
    output: &'a Path,
    noisy_output: Option<&'a Path>,
    given: Image,
    clean: Option<Image>,
}

impl PictureArgs {
    /// Reads what is to be read, and makes sure that what is to be written can be, before the long part begins.
    pub fn open(&self, kernel: &Entry, seed: u64) -> Result<Option<Pictures<'_>>, Failure> {
        let (Some(image), Some(output)) = (&self.image, &self.output) else { return Ok(None) };
        kernel.filters_pictures().map_err(Failure::request)?;
        let image = file::read(image).map_err(Failure::request)?;
        let clean = self.clean.as_deref().map(file::read).transpose().map_err(Failure::request)?;
        if let Some(clean) = &clean {
            let size = |image: &Image| (image.width(), image.height());
            if size(clean) != size(&image) {
                let ((w, h), (cw, ch)) = (size(&image), size(clean));
                return Err(Failure::request(format!("the image is {w}×{h}, the clean one {cw}×{ch}")));
            }
        }
        for path in [Some(output), self.noisy_output.as_ref()].into_iter().flatten() {
            file::writable(path).map_err(Failure::request)?;
        }
        let noisy_output = self.noisy_output.as_deref();
        let (given, clean) = match self.noise {
            Some(deviation) => (in_8_bits(&noisy(&image, deviation, seed).map_err(Failure::request)?), Some(image)),
            None => (image, clean),
        };
        Ok(Some(Pictures { output, noisy_output, given, clean }))
    }
}

impl Pictures<'_> {
    /// Filters the picture, and writes what comes out and, if wanted, what went in.
    pub fn run(
        &self,
        kernel: &Entry,
        engine: &Engine,
        settings: &[(String, String)],
        seed: u64,
    ) -> Result<PictureReport, Failure> {
        let filtered =
            kernel.filter(engine, &self.given, settings, seed).map_err(|error| match error.is_request() {
                true => Failure::request(error),
                false => Failure::outcome(error),
            })?;
        file::write(self.output, &filtered.picture).map_err(Failure::request)?;
        if let Some(path) = self.noisy_output {
            file::write(path, &self.given).map_err(Failure::request)?;
        }
        let made = in_8_bits(&filtered.picture);
        let psnr = self.clean.as_ref().map(|clean| Ratios {
            before: psnr(&self.given, clean),
            after: psnr(&made, clean),
            edges_before: psnr_at_edges(&self.given, clean, EDGE),
            edges_after: psnr_at_edges(&made, clean, EDGE),
        });
        Ok(PictureReport { run: filtered.report, psnr })
    }
}

impl PictureReport {
    /// What it adds to the lines of a run.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![];
        if self.run.checks.is_empty() {
            lines.push("check    none: too many pixels for plain Rust".to_owned());
        }
        let line = |what: &str, before: Option<f64>, after: Option<f64>| match (before, after) {
            (Some(before), Some(after)) => Some(format!("psnr     {before:.2} dB before, {after:.2} dB after{what}")),
            _ => None,
        };
        if let Some(psnr) = &self.psnr {
            lines.extend(line("", psnr.before, psnr.after));
            lines.extend(line(", beside edges", psnr.edges_before, psnr.edges_after));
        }
        lines
    }
}
