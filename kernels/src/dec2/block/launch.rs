//! Launches the block on host data.

use std::sync::Arc;

use half::f16;
use lathe_dsl::kernel::Host;
use lathe_runtime::device::{Device, LaunchReport};
use lathe_runtime::jit::Compiled;
use lathe_runtime::{DeviceBuffer, DeviceImage, Engine};

use super::{Dec2, Dec2Args};
use crate::dec2::geometry::Extents;
use crate::dec2::host::{POISON, texels, untouched, words};
use crate::dec2::images;
use crate::dec2::options::{OptionError, Options};
use crate::dec2::reference::block::InputError;
use crate::dec2::reference::{Image, Inputs, Outputs};
use crate::dec2::weights::{LayoutError, WeightError, WeightLayout};

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
    /// The key for these inputs and options; texels are read as is the target's way.
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

    /// Copies `inputs` to the device, for launches of the block that was built with this key; outputs are filled with what no
    /// block stores.
    ///
    /// # Errors
    /// The inputs are not the key's, or the device has too little memory.
    pub fn send(&self, device: &Arc<dyn Device>, inputs: &Inputs<'_>) -> Result<Sent, LaunchError> {
        let options = self.options()?;
        inputs.check(&options)?;
        let given = Self { textures: self.textures, ..Self::of(inputs, &options) };
        if given != *self {
            let [built, given] = [self, &given].map(lathe_dsl::kernel::describe);
            return Err(LaunchError::OtherKey { built, given });
        }
        let image = inputs.weights.pack(&WeightLayout::dec2()?)?;
        let pictures = &inputs.pictures;
        let pixels = images::pixels(self.extents(), self.textures);
        let colour = images::colour(self.colour_width, self.colour_height, self.colour_filter, self.textures);
        Ok(Sent {
            image: DeviceBuffer::from_slice(device, &image)?,
            coarse: DeviceBuffer::from_slice(device, &words(inputs.coarse))?,
            skip: DeviceBuffer::from_slice(device, &words(inputs.skip))?,
            arena: DeviceBuffer::from_slice(device, &vec![POISON; inputs.skip.len() / 4])?,
            colour: texels(device, pictures.colour, colour)?,
            blend: texels(device, pictures.blend, pixels)?,
            offset: texels(device, pictures.offset, pixels)?,
            surface: untouched(device, pixels)?,
            step: pictures.step,
            extents: inputs.geometry.extents(),
        })
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
        let sent = self.send(&engine.device, inputs)?;
        let report = compiled.launch::<Self>(engine.device.as_ref(), &sent.args())?;
        Ok((sent.outputs()?, report))
    }
}

/// The block's inputs and outputs in a device's memory.
pub struct Sent {
    image: DeviceBuffer<u8>,
    coarse: DeviceBuffer<u32>,
    skip: DeviceBuffer<u32>,
    arena: DeviceBuffer<u32>,
    colour: DeviceImage<f16>,
    blend: DeviceImage<f16>,
    offset: DeviceImage<f16>,
    surface: DeviceImage<f16>,
    step: [f32; 2],
    extents: Extents,
}

impl Sent {
    /// Arguments of a launch.
    pub fn args(&self) -> Dec2Args<Host<'_>> {
        Dec2Args {
            image: self.image.arg(),
            coarse: self.coarse.arg(),
            skip: self.skip.arg(),
            arena: self.arena.arg(),
            colour: self.colour.texture(),
            blend: self.blend.texture(),
            offset: self.offset.texture(),
            surface: self.surface.surface(),
            sx: self.step[0],
            sy: self.step[1],
        }
    }

    /// Bytes of all inputs and outputs, each counted once.
    pub fn bytes(&self) -> u64 {
        let words = [&self.coarse, &self.skip, &self.arena].map(|b| 4 * b.len());
        let images = [&self.colour, &self.blend, &self.offset, &self.surface].map(DeviceImage::bytes);
        (self.image.len() + words.iter().sum::<usize>()) as u64 + images.iter().sum::<u64>()
    }

    /// What the launches so far gave.
    ///
    /// # Errors
    /// The device failed.
    pub fn outputs(&self) -> Result<Outputs, LaunchError> {
        let features = self.arena.to_vec()?.into_iter().flat_map(u32::to_le_bytes).collect();
        let texels = self.surface.to_vec()?.as_chunks().0.to_vec();
        let image = Image::new(self.extents.x, self.extents.y, texels).map_err(InputError::from)?;
        Ok(Outputs { features, image })
    }
}
