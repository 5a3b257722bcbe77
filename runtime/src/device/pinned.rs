//! Host memory for asynchronous copies.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use bytemuck::Pod;
use lathe_dsl::builder::Element;

use super::Device;
use super::driver::{HostMemory, Transit};
use crate::error::Error;

/// `len` elements of host memory that a GPU reads and writes itself (page-locked), so that copies run beside other work.
///
/// A copy takes it by value ([`Stream::write`](super::Stream::write), [`Stream::read`](super::Stream::read)) and
/// [`Transfer::wait`] gives it back, so nobody can touch it meanwhile. On devices that run on the host it is ordinary memory.
///
/// Page-locked memory is scarce and slow to allocate: keep it and use it again.
pub struct Pinned<T> {
    memory: Box<dyn HostMemory>,
    elem: PhantomData<T>,
}

impl<T: Element + Pod> Pinned<T> {
    /// `len` zeros, for copies from and to `device`; other devices take it too.
    ///
    /// # Errors
    /// [`Error::HostMemory`], or what the driver says.
    pub fn zeroed(device: &Arc<dyn Device>, len: usize) -> Result<Self, Error> {
        let bytes = len.checked_mul(size_of::<T>()).ok_or(Error::HostMemory { bytes: u64::MAX })?;
        Ok(Self::new(device.driver().host_memory(bytes)?))
    }

    /// A copy of `data`.
    ///
    /// # Errors
    /// As [`Pinned::zeroed`].
    pub fn from_slice(device: &Arc<dyn Device>, data: &[T]) -> Result<Self, Error> {
        let mut this = Self::zeroed(device, data.len())?;
        this.copy_from_slice(data);
        Ok(this)
    }

    pub(super) fn new(memory: Box<dyn HostMemory>) -> Self {
        Self { memory, elem: PhantomData }
    }

    pub(super) fn into_memory(self) -> Box<dyn HostMemory> {
        self.memory
    }
}

impl<T: Pod> Deref for Pinned<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        bytemuck::cast_slice(self.memory.bytes())
    }
}

impl<T: Pod> DerefMut for Pinned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        bytemuck::cast_slice_mut(self.memory.bytes_mut())
    }
}

impl<T: Pod> fmt::Debug for Pinned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pinned").field("len", &self.len()).finish()
    }
}

/// A copy between host and device that a stream was given. It owns the host memory: dropped, it waits for the copy and then
/// frees the memory; forgotten (`mem::forget`), the memory is never freed.
#[must_use = "dropping it waits for the copy"]
pub struct Transfer<T> {
    transit: Box<dyn Transit>,
    elem: PhantomData<T>,
}

impl<T: Element + Pod> Transfer<T> {
    pub(super) fn new(transit: Box<dyn Transit>) -> Self {
        Self { transit, elem: PhantomData }
    }

    /// Whether the copy is done, so that [`Transfer::wait`] returns at once.
    ///
    /// # Errors
    /// What went wrong with the copy or with work before it.
    pub fn is_done(&self) -> Result<bool, Error> {
        self.transit.is_done()
    }

    /// Waits for the copy and gives the host memory back.
    ///
    /// # Errors
    /// What went wrong with the copy or with work before it; the memory is lost.
    pub fn wait(self) -> Result<Pinned<T>, Error> {
        Ok(Pinned::new(self.transit.finish()?))
    }
}

impl<T> fmt::Debug for Transfer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transfer").finish_non_exhaustive()
    }
}
