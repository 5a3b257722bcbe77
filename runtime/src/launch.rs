//! Packing and checking of launch arguments, from the one declaration of a kernel's argument struct.

use std::sync::Arc;

use lathe_dsl::ir::{Access, Kernel, MAX_IMAGES, Param, ParamKind};
use lathe_dsl::kernel::{Arg, Arguments, Host};

use crate::device::{Device, DeviceId, LaunchReport, Stream};
use crate::error::Error;
use crate::jit::Compiled;

impl Compiled {
    /// Launches the kernel on `device` and waits for it. Every argument is checked against its declaration first. A grid
    /// without workgroups launches nothing.
    ///
    /// # Errors
    /// An argument that does not match, code for another device, or what the kernel did wrong.
    pub fn launch<K: lathe_dsl::Kernel>(
        &self,
        device: &dyn Device,
        args: &<K::Args as Arguments<K>>::On<Host<'_>>,
    ) -> Result<LaunchReport, Error> {
        let mut block = ArgBlock { bytes: [0; MAX_BYTES], len: 0 };
        self.pack::<K>(device.id(), args, &mut block)?;
        if self.kernel().launch.blocks() == 0 {
            return Ok(LaunchReport::default());
        }
        device.launch(self, &block)
    }

    /// Gives a launch to `stream` and returns; nothing is allocated once the kernel is loaded. Every argument is checked against
    /// its declaration first. The arguments' buffers may be dropped right away: that waits for the launch. The kernel may be
    /// dropped too. A grid without workgroups launches nothing.
    ///
    /// A first launch loads the kernel, which CUDA may do only once nothing runs on the device. Where kernels wait for ones that are
    /// launched later, load all of them first, with [`Compiled::resources_on`]; [`Group`](crate::device::Group) does.
    ///
    /// # Errors
    /// As [`Compiled::launch`]; what the kernel does wrong on a GPU is told by a later call, at the latest by
    /// [`Stream::synchronize`].
    pub fn launch_on<K: lathe_dsl::Kernel>(
        self: &Arc<Self>,
        stream: &Stream,
        args: &<K::Args as Arguments<K>>::On<Host<'_>>,
    ) -> Result<(), Error> {
        let mut block = ArgBlock { bytes: [0; MAX_BYTES], len: 0 };
        self.pack::<K>(stream.device().id(), args, &mut block)?;
        if self.kernel().launch.blocks() == 0 {
            return Ok(());
        }
        stream.launch(self, &block)
    }

    /// The checked argument block of a launch on `device`.
    pub(crate) fn packed<K: lathe_dsl::Kernel>(
        &self,
        device: DeviceId,
        args: &<K::Args as Arguments<K>>::On<Host<'_>>,
    ) -> Result<Box<ArgBlock>, Error> {
        let mut block = Box::new(ArgBlock { bytes: [0; MAX_BYTES], len: 0 });
        self.pack::<K>(device, args, &mut block)?;
        Ok(block)
    }

    fn pack<K: lathe_dsl::Kernel>(
        &self,
        device: DeviceId,
        args: &<K::Args as Arguments<K>>::On<Host<'_>>,
        block: &mut ArgBlock,
    ) -> Result<(), Error> {
        // Another kernel's arguments may have the same number and types.
        if self.kernel().name != K::NAME {
            return Err(Error::OtherKernel { kernel: self.kernel().name.clone(), given: K::NAME });
        }
        let mut packed = Pack::new(self.kernel(), device, block);
        K::Args::pack(args, &mut |arg| packed.push(arg));
        packed.finish()
    }
}

/// Most bytes of one launch's argument block; the verifier refuses kernels that need more.
const MAX_BYTES: usize = lathe_dsl::ir::MAX_ARGUMENT_BYTES as usize;

/// The argument block of a launch: the kernel ABI's bytes.
#[derive(Clone, Copy, Debug)]
pub struct ArgBlock {
    bytes: [u8; MAX_BYTES],
    len: usize,
}

impl ArgBlock {
    /// A block of these bytes, laid out by [`Kernel::abi_layout`], for launches without an argument struct. Nothing is
    /// checked against the kernel; `None` if it is more than any kernel takes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut block = Self { bytes: [0; MAX_BYTES], len: bytes.len() };
        block.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(block)
    }

    /// The bytes, as the kernel's parameters lay them out.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// A parameter's kind in words.
fn shown(kind: ParamKind) -> String {
    match kind {
        ParamKind::Buffer { elem, len, .. } => format!("a buffer of {len} elements of {elem}"),
        ParamKind::Texture { image, filter, coordinates } => {
            let (w, h) = (image.width, image.height);
            format!("a texture of {w}x{h} texels of {}, filter {filter}, coordinates {coordinates}", image.elem)
        }
        ParamKind::Surface(image) => format!("a surface of {}x{} texels of {}", image.width, image.height, image.elem),
        ParamKind::Scalar(s) => format!("a number of type {s}"),
    }
}

/// The next offset from `at` on that is a multiple of a parameter's size, a power of two.
fn aligned(at: usize, size: usize) -> usize {
    debug_assert!(size.is_power_of_two());
    (at + size - 1) & !(size - 1)
}

/// Fills an [`ArgBlock`], parameter by parameter, without allocating. The block stays where it is: copying it would take
/// longer than everything else.
pub(crate) struct Pack<'a> {
    kernel: &'a Kernel,
    device: DeviceId,
    block: &'a mut ArgBlock,
    next: usize,
    failed: Option<Error>,
    /// Numbers of the images so far.
    images: [u64; MAX_IMAGES],
}

impl<'a> Pack<'a> {
    pub(crate) fn new(kernel: &'a Kernel, device: DeviceId, block: &'a mut ArgBlock) -> Self {
        Self { kernel, device, block, next: 0, failed: None, images: [0; MAX_IMAGES] }
    }

    /// Checks the next argument against its parameter and appends it.
    pub(crate) fn push(&mut self, arg: Arg) {
        let index = self.next;
        self.next += 1;
        let Some(param) = self.kernel.params.get(index) else { return };
        let mismatch = |given, elem, wanted, wanted_elem| Error::BadBuffer {
            kernel: self.kernel.name.clone(),
            name: param.name,
            given,
            elem,
            wanted,
            wanted_elem,
        };
        let (value, failed) = match (arg, param.kind) {
            (
                Arg::Buffer { device, address, len, elem },
                ParamKind::Buffer { elem: wanted_elem, len: wanted, align, .. },
            ) => {
                let failed = if len != wanted || elem != wanted_elem {
                    Some(mismatch(len, elem, wanted, wanted_elem))
                } else if device != self.device.0 {
                    Some(Error::OtherDevice { kernel: self.kernel.name.clone(), name: param.name })
                } else if address & (u64::from(align) - 1) != 0 {
                    Some(Error::Misaligned { kernel: self.kernel.name.clone(), name: param.name, address, align })
                } else {
                    None
                };
                (address, failed)
            }
            (Arg::Scalar { bits, ty }, ParamKind::Scalar(wanted)) => {
                (bits, (ty != wanted).then(|| mismatch(1, ty, 1, wanted)))
            }
            (Arg::Scalar { bits, ty }, ParamKind::Buffer { elem, len, .. }) => (bits, Some(mismatch(1, ty, len, elem))),
            (Arg::Buffer { address, len, elem, .. }, ParamKind::Scalar(s)) => {
                (address, Some(mismatch(len, elem, 1, s)))
            }
            (Arg::Image { device, number, handle, image, object }, wanted) => {
                let before = &self.kernel.params[..index];
                if let Some(slot) = self.images.get_mut(before.iter().filter(|p| p.kind.image().is_some()).count()) {
                    *slot = number;
                }
                let given = object.param(image);
                let failed = if given != wanted {
                    Some(self.other_kind(param, &shown(given)))
                } else if device != self.device.0 {
                    Some(Error::OtherDevice { kernel: self.kernel.name.clone(), name: param.name })
                } else {
                    None
                };
                (handle, failed)
            }
            (Arg::Buffer { address: value, len, elem, .. }, ParamKind::Texture { .. } | ParamKind::Surface(_)) => {
                (value, Some(self.other_kind(param, &format!("a buffer of {len} elements of {elem}"))))
            }
            (Arg::Scalar { bits: value, ty }, ParamKind::Texture { .. } | ParamKind::Surface(_)) => {
                (value, Some(self.other_kind(param, &format!("a number of type {ty}"))))
            }
        };
        if self.failed.is_none() {
            self.failed = failed;
        }
        let size = param.kind.abi_bytes() as usize;
        let start = aligned(self.block.len, size);
        if let Some(slot) = self.block.bytes.get_mut(start..start + size) {
            slot.copy_from_slice(&value.to_le_bytes()[..size]);
            self.block.len = start + size;
        }
    }

    fn other_kind(&self, param: &Param, given: &str) -> Error {
        let kernel = self.kernel.name.clone();
        Error::BadArgument { kernel, name: param.name, given: given.to_owned(), wanted: shown(param.kind) }
    }

    /// Two images that are one, and one of which is stored to.
    fn same_image(&self) -> Option<(&'static str, &'static str)> {
        let images = || self.kernel.params.iter().filter(|p| p.kind.image().is_some()).zip(&self.images);
        images().enumerate().find_map(|(i, (first, number))| {
            let writes = |p: &Param| matches!(p.kind, ParamKind::Surface(_));
            let (second, _) = images().skip(i + 1).find(|(p, n)| *n == number && (writes(first) || writes(p)))?;
            Some((first.name, second.name))
        })
    }

    /// Whether every argument matches its declaration and no written buffer or image overlaps another one.
    pub(crate) fn finish(self) -> Result<(), Error> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let (given, wanted) = (self.next, self.kernel.params.len());
        if given != wanted || self.block.len != self.kernel.abi_bytes() as usize {
            return Err(Error::ArgumentCount { kernel: self.kernel.name.clone(), given, wanted });
        }
        if let Some((first, second)) = self.same_image() {
            return Err(Error::Overlap { kernel: self.kernel.name.clone(), first, second });
        }
        let bytes = self.block.bytes();
        let mut at = 0usize;
        let mut rest = self.kernel.params.iter().filter_map(move |p| {
            let size = p.kind.abi_bytes() as usize;
            let start = aligned(at, size);
            at = start + size;
            let ParamKind::Buffer { access, .. } = p.kind else { return None };
            let address = u64::from_le_bytes(bytes.get(start..start + 8)?.try_into().ok()?);
            Some((p.name, access, address, p.kind.buffer_bytes()?))
        });
        while let Some((first, access, start, len)) = rest.next() {
            for (second, other_access, other_start, other_len) in rest.clone() {
                let written = access != Access::Read || other_access != Access::Read;
                if written && start < other_start + other_len && other_start < start + len {
                    return Err(Error::Overlap { kernel: self.kernel.name.clone(), first, second });
                }
            }
        }
        Ok(())
    }
}
