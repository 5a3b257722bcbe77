//! What launches on host data have in common: the block's and those of its epilogues.

use std::sync::Arc;

use half::f16;
use lathe_dsl::builder::Element;
use lathe_dsl::image::Image2d;
use lathe_dsl::{Kernel, kernel};
use lathe_runtime::device::Device;
use lathe_runtime::{DeviceImage, Error};

use super::geometry::{Geometry, GeometryError};
use super::reference::Image;
use super::{PIXELS, options};
use crate::run::RunError;

/// What outputs hold before a launch.
pub(crate) const POISON: u32 = 0x7FA5_7FA5;

/// [`POISON`] of an image.
pub(crate) const POISON_HALF: f16 = f16::from_bits(POISON as u16);

/// Little-endian words; planes have whole ones.
pub(crate) fn words(bytes: &[u8]) -> Vec<u32> {
    let (words, _) = bytes.as_chunks();
    words.iter().map(|w| u32::from_le_bytes(*w)).collect()
}

/// An image on a device, for kernels that declare it so.
pub(crate) fn texels(device: &Arc<dyn Device>, image: &Image, declared: Image2d) -> Result<DeviceImage<f16>, Error> {
    DeviceImage::from_texels(device, declared, image.texels().as_flattened())
}

/// What nothing was stored to.
pub(crate) fn untouched(device: &Arc<dyn Device>, declared: Image2d) -> Result<DeviceImage<f16>, Error> {
    let elements = declared.image(f16::SCALAR).elements() as usize;
    DeviceImage::from_texels(device, declared, &vec![POISON_HALF; elements])
}

/// Refuses a run of more than `most` pixels: those of whole windows, or of the colour image if that has more. A key without a
/// geometry is refused when it is traced.
pub(crate) fn check_pixels<K: Kernel>(
    key: &K,
    geometry: Result<Geometry, GeometryError>,
    colour: [u32; 2],
    most: u64,
) -> Result<(), RunError> {
    let windows = geometry.map_or(0, |g| g.grid().map(u64::from).iter().product::<u64>() * u64::from(PIXELS));
    let pixels = colour.map(u64::from).iter().product::<u64>().max(windows);
    if pixels <= most {
        return Ok(());
    }
    Err(RunError::TooManyPixels { kernel: K::NAME, key: kernel::describe(key), pixels, most })
}

/// The options with the roundings of a device: results are then its own, where they are known.
pub(crate) fn of_device(options: options::Options, device: &dyn Device) -> options::Options {
    options::Options { mma_rounding: device.mma_rounding(), ..options }
}
