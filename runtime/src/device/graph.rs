//! Launches recorded once and run many times.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use lathe_dsl::ir::{Kernel, ParamKind};

use super::Device;
use super::driver::{Image, ImageHandle, Recording};
use super::stream::Stream;
use crate::error::Error;
use crate::launch::ArgBlock;

/// What [`Stream::capture`] recorded. Send it to any thread and run it as often as wanted, in one stream or in several.
///
/// It keeps what it needs: the code of its kernels, and the memory of every buffer that one of its launches has as an argument
/// or that it copies. That memory is freed when both the buffer and the graph are gone. Memory that kernels reach only by
/// addresses (scalars, tables in buffers) is not kept: who records such a launch keeps that.
pub struct Graph {
    recording: Arc<dyn Recording>,
    /// After the recording, whose runs it waits for.
    kept: Kept,
}

impl Graph {
    pub(super) fn new(recording: Arc<dyn Recording>, kept: Kept) -> Self {
        Self { recording, kept }
    }

    /// Gives one run to `stream`, after what the stream was given before. The steps run in the order in which they were recorded.
    /// Runs of one graph follow each other, in whichever streams they are.
    ///
    /// # Errors
    /// [`Error::Foreign`] on another device than the one it was recorded on; as
    /// [`Compiled::launch_on`](crate::jit::Compiled::launch_on).
    pub fn launch(&self, stream: &Stream) -> Result<(), Error> {
        if stream.device().id() != self.kept.device.id() {
            return Err(Error::Foreign { what: "graph", device: stream.device().name() });
        }
        stream.replay(&self.recording)
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Graph").field("device", &self.kept.device.name()).finish_non_exhaustive()
    }
}

/// Allocations and images that are kept until this is dropped.
pub(super) struct Kept {
    device: Arc<dyn Device>,
    addresses: Mutex<Vec<u64>>,
    images: Mutex<Vec<Arc<dyn Image>>>,
}

impl Kept {
    pub(super) fn new(device: Arc<dyn Device>) -> Self {
        Self { device, addresses: Mutex::default(), images: Mutex::default() }
    }

    /// Keeps the allocation that covers `address`.
    pub(super) fn keep(&self, address: u64) -> Result<(), Error> {
        let mut addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        let unknown = || Error::BadAddress { device: self.device.name(), address, bytes: 0 };
        let start = self.device.retain(address).ok_or_else(unknown)?;
        addresses.push(start);
        Ok(())
    }

    /// Keeps an image that kernels get as `handle`.
    fn keep_image(&self, handle: ImageHandle) -> Result<(), Error> {
        let (ImageHandle::Texture(address) | ImageHandle::Surface(address)) = handle;
        let unknown = || Error::BadAddress { device: self.device.name(), address, bytes: 0 };
        let image = self.device.images().and_then(|images| images.owner(handle)).ok_or_else(unknown)?;
        self.images.lock().unwrap_or_else(PoisonError::into_inner).push(image);
        Ok(())
    }

    /// Keeps the buffers and images among a launch's arguments.
    pub(super) fn keep_arguments(&self, kernel: &Kernel, args: &ArgBlock) -> Result<(), Error> {
        let (offsets, _) = kernel.abi_layout();
        for (param, at) in kernel.params.iter().zip(offsets) {
            let Some(word) = args.bytes().get(at as usize..).and_then(|rest| rest.first_chunk()) else { continue };
            let word = u64::from_le_bytes(*word);
            match param.kind {
                ParamKind::Buffer { .. } => self.keep(word)?,
                ParamKind::Texture { .. } => self.keep_image(ImageHandle::Texture(word))?,
                ParamKind::Surface(_) => self.keep_image(ImageHandle::Surface(word))?,
                ParamKind::Scalar(_) => {}
            }
        }
        Ok(())
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let addresses = std::mem::take(&mut *self.addresses.lock().unwrap_or_else(PoisonError::into_inner));
        addresses.into_iter().for_each(|address| self.device.free(address));
    }
}
