//! Typed device memory.

use std::marker::PhantomData;
use std::sync::Arc;

use bytemuck::Pod;
use lathe_dsl::builder::Element;
use lathe_dsl::kernel::BufferArg;

use crate::device::Device;
use crate::error::Error;

/// `len` elements of type `T` on a device, freed when dropped, which waits for the work that streams of the device were given.
pub struct DeviceBuffer<T> {
    device: Arc<dyn Device>,
    address: u64,
    len: u64,
    elem: PhantomData<T>,
}

impl<T: Element + Pod> DeviceBuffer<T> {
    /// Allocates `len` elements; their content is undefined.
    ///
    /// # Errors
    /// The device has no room.
    pub fn uninit(device: &Arc<dyn Device>, len: usize) -> Result<Self, Error> {
        let bytes = len as u64 * size_of::<T>() as u64;
        let address = device.alloc(bytes)?;
        Ok(Self { device: device.clone(), address, len: len as u64, elem: PhantomData })
    }

    /// Allocates room for `data` and copies it there.
    ///
    /// # Errors
    /// The device has no room, or the copy fails.
    pub fn from_slice(device: &Arc<dyn Device>, data: &[T]) -> Result<Self, Error> {
        let this = Self::uninit(device, data.len())?;
        device.write(this.address, bytemuck::cast_slice(data))?;
        Ok(this)
    }

    /// A copy of the content.
    ///
    /// # Errors
    /// The copy fails.
    pub fn to_vec(&self) -> Result<Vec<T>, Error> {
        let mut data = vec![T::zeroed(); self.len as usize];
        self.device.read(self.address, bytemuck::cast_slice_mut(&mut data))?;
        Ok(data)
    }

    /// This buffer as a launch argument.
    pub fn arg(&self) -> BufferArg<'_, T> {
        BufferArg::new(self, self.device.id().0, self.address, self.len)
    }
}

impl<T> DeviceBuffer<T> {
    /// The device that it lies on.
    pub fn device(&self) -> &Arc<dyn Device> {
        &self.device
    }

    /// Its device address.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Its elements.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl<T> Drop for DeviceBuffer<T> {
    fn drop(&mut self) {
        self.device.free(self.address);
    }
}
