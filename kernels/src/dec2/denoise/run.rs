//! The block as a denoiser of any picture, on any device.

use half::f16;
use lathe_dsl::kernel::KeyError;
use lathe_runtime::{Engine, Error};

use super::{features, weights};
use crate::dec2::block::{Dec2, LaunchError, checks};
use crate::dec2::geometry::GeometryError;
use crate::dec2::host::of_device;
use crate::dec2::reference::block::InputError;
use crate::dec2::reference::filter::Pictures;
use crate::dec2::reference::{Image, Inputs, frame};
use crate::run::{Outcome, RunReport};

/// What a kernel made of a picture.
#[derive(Clone, Debug)]
pub struct Filtered {
    /// The new picture.
    pub picture: Image,
    /// How.
    pub report: RunReport,
}

/// Why a picture could not be denoised.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DenoiseError {
    /// A setting that the key does not allow.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A setting that contradicts, or repeats, the picture.
    #[error("`{field}` cannot be set: it is the picture's")]
    FromPicture {
        /// The field.
        field: String,
    },
    /// There is no launch on a picture of this size.
    #[error(transparent)]
    Geometry(#[from] GeometryError),
    /// Compiling failed.
    #[error(transparent)]
    Runtime(#[from] Error),
    /// Launching failed.
    #[error(transparent)]
    Launch(#[from] LaunchError),
}

impl DenoiseError {
    /// Whether what was asked for is wrong, rather than what came of it.
    pub const fn is_request(&self) -> bool {
        match self {
            Self::Key(_) | Self::FromPicture { .. } | Self::Geometry(_) => true,
            Self::Runtime(error) => matches!(error, Error::Trace(_)),
            Self::Launch(_) => false,
        }
    }
}

/// Fields of the key that the picture gives.
const OF_PICTURE: [&str; 4] = ["ex", "ey", "colour_width", "colour_height"];

/// Pixels up to which a picture's check adds no more than seconds.
const CHECKED_PIXELS: u64 = 1 << 16;

/// Denoises a picture: the key's extents are its own, origin and options those of `settings`. Up to [`CHECKED_PIXELS`] the result is
/// compared with plain Rust.
///
/// # Errors
/// A setting is not allowed, the picture is too small or too large, compiling or launching failed.
pub(crate) fn run(
    engine: &Engine,
    picture: &Image,
    settings: &[(String, String)],
    seed: u64,
) -> Result<Filtered, DenoiseError> {
    if let Some((field, _)) = settings.iter().find(|(field, _)| OF_PICTURE.contains(&field.as_str())) {
        return Err(DenoiseError::FromPicture { field: field.clone() });
    }
    let size = [picture.width(), picture.height(), picture.width(), picture.height()].map(|n| n.to_string());
    let all = OF_PICTURE.into_iter().zip(&size).map(|(field, n)| (field, n.as_str()));
    let all = all.chain(settings.iter().map(|(field, value)| (field.as_str(), value.as_str())));
    let key: Dec2 = lathe_dsl::kernel::key_from(all)?;

    // Both were checked with the key.
    let (geometry, options) = (key.geometry()?, key.options().map_err(LaunchError::from)?);
    let features = features(picture, options.coarse_extent)?;
    let weights = weights(options.subpixel_order, options.tap_order);
    // Nothing is added to the result.
    let (width, height) = (picture.width(), picture.height());
    let input = |e| DenoiseError::from(LaunchError::from(InputError::from(e)));
    let offset = Image::from_fn(width, height, |_, _| [f16::NAN; 4]).map_err(input)?;
    let pictures = Pictures { colour: picture, step: picture.step(), blend: picture, offset: &offset };
    let inputs =
        Inputs { geometry: &geometry, coarse: &features.coarse, skip: &features.skip, weights: &weights, pictures };

    let compiled = engine.jit.get(&key, engine.device.target())?;
    let (found, report) = key.launch_on(engine, &compiled, &inputs)?;
    let mut checked = vec![];
    if geometry.extents().pixels() <= CHECKED_PIXELS {
        let options = of_device(options, &*engine.device);
        let expected = frame(&inputs, &options).map_err(LaunchError::from)?;
        checked = checks(&found, &expected);
    }
    let outcome = Outcome { checks: checked, findings: report.findings, time: report.time };
    Ok(Filtered { picture: found.image, report: RunReport::new(&key, engine, &compiled, seed, outcome) })
}
