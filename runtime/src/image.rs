//! Typed device images.

use std::marker::PhantomData;
use std::sync::Arc;

use bytemuck::Pod;
use lathe_dsl::builder::Texel;
use lathe_dsl::image::Image2d;
use lathe_dsl::kernel::{ImageHandle, SurfaceArg, TextureArg};

use crate::device::Device;
use crate::device::driver::{Image, Sampling};
use crate::error::Error;

/// A 2D image with texels of four `T` on a device: what launches take for [`Image2d`] arguments. Freed when dropped, which waits
/// for the work that streams of the device were given.
pub struct DeviceImage<T> {
    device: Arc<dyn Device>,
    image: Image2d,
    texels: Texels,
    elem: PhantomData<T>,
}

/// Where its texels are.
enum Texels {
    /// At an address, row by row, for kernels that take it as a buffer.
    Rows { address: u64, elements: u64 },
    /// Where texture units find them.
    Units { image: Arc<dyn Image>, elements: u64 },
}

impl<T: Texel + Pod> DeviceImage<T> {
    /// An image as kernels for the device declare it; its content is undefined.
    ///
    /// # Errors
    /// [`Error::BadImage`] for extents that no image has, [`Error::NoImages`] if it is for texture units and the device has none,
    /// no room, or what the driver says.
    pub fn uninit(device: &Arc<dyn Device>, image: Image2d) -> Result<Self, Error> {
        let ty = image.image(T::SCALAR);
        ty.check().map_err(|reason| Error::BadImage { reason })?;
        let elements = ty.elements();
        let texels = if image.is_emulated(device.target()) {
            Texels::Rows { address: device.alloc(ty.bytes())?, elements }
        } else {
            let images = device.images().ok_or_else(|| Error::NoImages { device: device.name() })?;
            let sampling = Sampling { filter: image.filter, coordinates: image.coordinates };
            Texels::Units { image: images.image(ty, sampling)?, elements }
        };
        Ok(Self { device: device.clone(), image, texels, elem: PhantomData })
    }

    /// An image with these texels, row by row, four elements each.
    ///
    /// # Errors
    /// As [`DeviceImage::uninit`]; [`Error::ImageTexels`] if there are not as many as the image has; the copy fails.
    pub fn from_texels(device: &Arc<dyn Device>, image: Image2d, texels: &[T]) -> Result<Self, Error> {
        let ty = image.image(T::SCALAR);
        ty.check().map_err(|reason| Error::BadImage { reason })?;
        if texels.len() as u64 != ty.elements() {
            return Err(Error::ImageTexels { given: texels.len(), wanted: ty.elements() });
        }
        let this = Self::uninit(device, image)?;
        let bytes = bytemuck::cast_slice(texels);
        match &this.texels {
            Texels::Rows { address, .. } => device.write(*address, bytes)?,
            Texels::Units { image, .. } => image.write(bytes)?,
        }
        Ok(this)
    }

    /// A copy of the texels, row by row, four elements each.
    ///
    /// # Errors
    /// The copy fails.
    pub fn to_vec(&self) -> Result<Vec<T>, Error> {
        let (Texels::Rows { elements, .. } | Texels::Units { elements, .. }) = self.texels;
        let mut texels = vec![T::zeroed(); elements as usize];
        let bytes = bytemuck::cast_slice_mut(&mut texels);
        match &self.texels {
            Texels::Rows { address, .. } => self.device.read(*address, bytes)?,
            Texels::Units { image, .. } => image.read(bytes)?,
        }
        Ok(texels)
    }

    /// This image as the argument of a launch that reads it.
    pub fn texture(&self) -> TextureArg<'_, T> {
        TextureArg::new(self, self.device.id().0, self.handle(Image::texture), self.image)
    }

    /// This image as the argument of a launch that stores to it.
    pub fn surface(&self) -> SurfaceArg<'_, T> {
        SurfaceArg::new(self, self.device.id().0, self.handle(Image::surface), self.image)
    }
}

impl<T: Texel> DeviceImage<T> {
    /// Bytes of its texels.
    pub fn bytes(&self) -> u64 {
        self.image.image(T::SCALAR).bytes()
    }
}

impl<T> DeviceImage<T> {
    /// What was declared of it.
    pub const fn image(&self) -> Image2d {
        self.image
    }

    fn handle(&self, object: fn(&(dyn Image + 'static)) -> u64) -> ImageHandle {
        match &self.texels {
            Texels::Rows { address, .. } => ImageHandle::Rows(*address),
            Texels::Units { image, .. } => ImageHandle::Units { image: image.number(), object: object(&**image) },
        }
    }
}

impl<T> Drop for DeviceImage<T> {
    fn drop(&mut self) {
        if let Texels::Rows { address, .. } = self.texels {
            self.device.free(address);
        }
    }
}
