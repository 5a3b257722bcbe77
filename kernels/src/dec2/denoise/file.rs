//! Pictures in files: PNG and PPM, by the crate `image`.

use std::fs::File;
use std::io::{BufReader, Cursor};
use std::path::{Path, PathBuf};

use half::f16;
use image::codecs::png::PngEncoder;
use image::codecs::pnm::{PnmEncoder, PnmSubtype, SampleEncoding};
use image::{ImageReader, RgbImage};
use lathe_dsl::numerics::Float;

use crate::dec2::reference::Image;

/// Why a picture could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// File.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Its bytes are no picture of a format that is known.
    #[error("{} is no PNG or PNM picture: {reason}", path.display())]
    NoPicture {
        /// File.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The file's name does not tell a format.
    #[error("cannot write {}: its name must end in .png or .ppm", path.display())]
    Format {
        /// File.
        path: PathBuf,
    },
    /// The file cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// File.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// The picture of a PNG or PNM file, whichever its first bytes say: values from 0 to 1 as they are stored, in sRGB as a rule. Grey is
/// three equal colours; an alpha channel is dropped.
///
/// # Errors
/// The file cannot be read, or is no picture.
pub fn read(path: &Path) -> Result<Image, FileError> {
    let read = |source| FileError::Read { path: path.to_owned(), source };
    let no_picture = |reason: String| FileError::NoPicture { path: path.to_owned(), reason };
    // A folder opens, but cannot be read.
    let reader =
        ImageReader::new(BufReader::new(File::open(path).map_err(read)?)).with_guessed_format().map_err(read)?;
    let picture = reader.decode().map_err(|e| no_picture(e.to_string()))?.into_rgb32f();
    let value = |c: f32| <f16 as Float>::from_f64(f64::from(c));
    let texels = picture.pixels().map(|p| [value(p[0]), value(p[1]), value(p[2]), f16::ONE]).collect();
    Image::new(picture.width(), picture.height(), texels).map_err(|e| no_picture(e.to_string()))
}

/// Whether the file of this name can be written, found out before there is anything to write: it is left as it is.
///
/// # Errors
/// As [`write()`].
pub fn writable(path: &Path) -> Result<(), FileError> {
    format(path)?;
    let write = |source| FileError::Write { path: path.to_owned(), source };
    // Even a link to nothing.
    let there = path.symlink_metadata().is_ok();
    File::options().write(true).create(true).truncate(false).open(path).map_err(write)?;
    if there { Ok(()) } else { std::fs::remove_file(path).map_err(write) }
}

/// Writes a picture of 8 bits a colour, as PNG or PPM by the name's ending.
///
/// # Errors
/// The name says neither, or the file cannot be written.
pub fn write(path: &Path, image: &Image) -> Result<(), FileError> {
    let write = |source| FileError::Write { path: path.to_owned(), source };
    let picture = RgbImage::from_raw(image.width(), image.height(), codes(image));
    let picture = picture.unwrap_or_else(|| unreachable!("three colours a texel"));
    let mut bytes = Cursor::new(vec![]);
    let written = match format(path)? {
        Format::Png => picture.write_with_encoder(PngEncoder::new(&mut bytes)),
        // Without a subtype it would be PAM, which few programs read.
        Format::Ppm => picture
            .write_with_encoder(PnmEncoder::new(&mut bytes).with_subtype(PnmSubtype::Pixmap(SampleEncoding::Binary))),
    };
    written.map_err(|e| write(std::io::Error::other(e)))?;
    std::fs::write(path, bytes.into_inner()).map_err(write)
}

/// The picture as a file has it: 8 bits a colour.
#[must_use]
pub fn in_8_bits(image: &Image) -> Image {
    let codes = codes(image);
    let value = |code: u8| <f16 as Float>::from_f64(f64::from(code) / 255.0);
    let texels = codes.as_chunks().0.iter().map(|[r, g, b]| [value(*r), value(*g), value(*b), f16::ONE]).collect();
    Image::new(image.width(), image.height(), texels).unwrap_or_else(|e| unreachable!("as many texels: {e}"))
}

/// Red, green and blue of all texels: what is below 0 or a NaN is black, what is above 1 as bright as there is.
fn codes(image: &Image) -> Vec<u8> {
    // `as` saturates, and makes a NaN 0.
    image.texels().iter().flat_map(|t| [t[0], t[1], t[2]]).map(|c| (c.to_f32() * 255.0).round() as u8).collect()
}

/// What is written.
#[derive(Clone, Copy)]
enum Format {
    Png,
    Ppm,
}

fn format(path: &Path) -> Result<Format, FileError> {
    let is = |ending: &str| path.extension().is_some_and(|e| e.eq_ignore_ascii_case(ending));
    match (is("png"), is("ppm")) {
        (true, _) => Ok(Format::Png),
        (_, true) => Ok(Format::Ppm),
        _ => Err(FileError::Format { path: path.to_owned() }),
    }
}
