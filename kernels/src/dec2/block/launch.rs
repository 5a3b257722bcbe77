//! Launches the block on host data.

use half::f16;
use lathe_runtime::device::LaunchReport;
use lathe_runtime::jit::Compiled;
use lathe_runtime::{DeviceBuffer, Engine};

use super::{Dec2, Dec2Args};
use crate::dec2::options::{OptionError, Options};
use crate::dec2::reference::block::InputError;
use crate::dec2::reference::{Image, Inputs, Outputs};
use crate::dec2::weights::{LayoutError, WeightError, WeightLayout};

/// What outputs hold before the launch.
const POISON: u32 = 0x7FA5_7FA5;

/// Why inputs could not be launched on.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LaunchError {
    /// Not of the geometry's sizes.
    #[error(transparent)]
    Inputs(#[from] InputError),
    /// Weights that no image holds.
    #[error(transparent)]
    Weights(#[from] WeightError),
    /// There is no image of weights.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The key has an option's code that there is not.
    #[error(transparent)]
    Options(#[from] OptionError),
    /// The inputs are for another image than the key.
    #[error("the kernel was built for {built}, the inputs are for {given}")]
    OtherKey {
        /// Extents, origin and the colour image's size that the key has.
        built: String,
        /// Those of the inputs.
        given: String,
    },
    /// The device.
    #[error(transparent)]
    Runtime(#[from] lathe_runtime::Error),
}

impl Dec2 {
    /// The key for these inputs and options.
    pub fn of(inputs: &Inputs<'_>, options: &Options) -> Self {
        let (extents, origin) = (inputs.geometry.extents(), inputs.geometry.origin());
        let (colour_width, colour_height) = (inputs.pictures.colour.width(), inputs.pictures.colour.height());
        let plain = <Self as lathe_dsl::kernel::BuildKey>::defaults();
        Self {
            ex: extents.x,
            ey: extents.y,
            ox: origin.x.into(),
            oy: origin.y.into(),
            colour_width,
            colour_height,
            ..plain
        }
        .with_options(options)
    }

    /// Copies `inputs` to the device, runs the block, which was built with this key, and copies its results back.
    ///
    /// # Errors
    /// The inputs are not the key's, or the device failed.
    pub fn launch_on(
        &self,
        engine: &Engine,
        compiled: &Compiled,
        inputs: &Inputs<'_>,
    ) -> Result<(Outputs, LaunchReport), LaunchError> {
        let options = self.options()?;
        inputs.check(&options)?;
        let given = Self::of(inputs, &options);
        if given != *self {
            let [built, given] = [self, &given].map(lathe_dsl::kernel::describe);
            return Err(LaunchError::OtherKey { built, given });
        }
        let image = inputs.weights.pack(&WeightLayout::dec2()?)?;

        let device = &engine.device;
        let words = |bytes: &[u8]| DeviceBuffer::from_slice(device, &words(bytes));
        let texels = |image: &Image| DeviceBuffer::from_slice(device, image.texels().as_flattened());
        let image = DeviceBuffer::from_slice(device, &image)?;
        let (coarse, skip) = (words(inputs.coarse)?, words(inputs.skip)?);
        let arena = DeviceBuffer::from_slice(device, &vec![POISON; inputs.skip.len() / 4])?;
        let pictures = &inputs.pictures;
        let (colour, blend, offset) = (texels(pictures.colour)?, texels(pictures.blend)?, texels(pictures.offset)?);
        let poison = vec![f16::from_bits(POISON as u16); 4 * pictures.blend.texels().len()];
        let surface = DeviceBuffer::from_slice(device, &poison)?;
        let [sx, sy] = pictures.step;
        let args = Dec2Args {
            image: image.arg(),
            coarse: coarse.arg(),
            skip: skip.arg(),
            arena: arena.arg(),
            colour: colour.arg(),
            blend: blend.arg(),
            offset: offset.arg(),
            surface: surface.arg(),
            sx,
            sy,
        };
        let report = compiled.launch::<Self>(device.as_ref(), &args)?;
        let features = arena.to_vec()?.into_iter().flat_map(u32::to_le_bytes).collect();
        let texels = surface.to_vec()?.as_chunks().0.to_vec();
        let extents = inputs.geometry.extents();
        let image = Image::new(extents.x, extents.y, texels).map_err(InputError::from)?;
        Ok((Outputs { features, image }, report))
    }
}

/// Little-endian words; planes have whole ones.
fn words(bytes: &[u8]) -> Vec<u32> {
    let (words, _) = bytes.as_chunks();
    words.iter().map(|w| u32::from_le_bytes(*w)).collect()
}
